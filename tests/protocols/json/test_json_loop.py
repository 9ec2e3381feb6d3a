"""JSON in the file-drop loop: requests that ask for it, answers in it. Design section 7."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codingagent.errors import ApprovalError
from codingagent.model.results import NOT_RUN_AGAIN
from codingagent.model.settings import Settings
from codingagent.protocols.json import guide as json_guide
from codingagent.protocols.json.messages import validate_events_message
from tests.helpers import LiveSession, new_marker, none_left, plain_session, use_no_git
from tests.killing import command_line_here, kill_when

OFF = Settings(sandbox="off")
READ = {"type": "readFile", "path": "a.txt"}
REMOVE = {"type": "shell", "id": "cleanup", "command": "rm -r build"}


def create(path: str, content: str = "alpha\n") -> dict[str, str]:
    return {"type": "createFile", "path": path, "content": content}


def say(content: str) -> dict[str, str]:
    return {"type": "message", "content": content}


def message(*operations: object, **more: object) -> str:
    return json.dumps({"protocolVersion": "1.0", **more, "operations": operations})


def events(live: LiveSession) -> list[dict[str, Any]]:
    """Return what came of the last turn, as the request tells it: without the task."""
    text = live.request().partition("## Previous Command Results\n")[2]
    found, _ = json.JSONDecoder().raw_decode(text)
    assert validate_events_message(found).success
    task, *rest = found["events"]
    assert (task["type"], task["content"]) == ("userMessage", "the task")
    return list(rest)


def take(live: LiveSession, reply: str) -> list[dict[str, Any]]:
    live.drop(reply)
    live.conversation.take("reply.txt")
    return events(live)


def begun(home: Path) -> str:
    """Begins a JSON session on the command line, and gives its id."""
    use_no_git(home / "workspace")
    words = ("new", "--no-wait", "--protocol", "json", "--sandbox", "off", "the task")
    status, _, err = command_line_here(home, *words)
    assert status == 0, err
    return next((home / "sessions").glob("*.json")).stem


@pytest.fixture(name="live")
def _live(tmp_path: Path) -> Iterator[LiveSession]:
    """A session that was asked for JSON."""
    session_id = begun(tmp_path)
    with plain_session(tmp_path, settings=OFF, session_id=session_id) as made:
        yield made


@pytest.fixture(name="tags")
def _tags(tmp_path: Path) -> Iterator[LiveSession]:
    """A session that was asked for tag blocks."""
    with plain_session(tmp_path, settings=OFF) as made:
        yield made


# --- the request -----------------------------------------------------------------------------------


def test_the_first_request_asks_for_json(live: LiveSession) -> None:
    """Design: the JSON guide is in PROTOCOL, the task is the first userMessage in CONTEXT."""
    request = live.request()
    assert f"=== PROTOCOL ===\n{json_guide.GUIDE}\n" in request
    assert "[CREATE_FILE" not in request
    assert events(live) == []
    assert f'"session": "{live.session_id}", "sequence": 1' in request.partition("=== PROMPT ===")[2]
    sections = ["HEADER", "PROTOCOL", "CONTEXT", "PROMPT"]
    assert [line[4:-4] for line in request.splitlines() if line.startswith("=== ")] == sections


def test_without_being_asked_for_json_nothing_changes(tags: LiveSession) -> None:
    """Tags are the default; their request does not speak of JSON."""
    assert "[CREATE_FILE" in tags.request()
    assert "protocolVersion" not in tags.request()


def test_events_answer_operations(live: LiveSession) -> None:
    """Design: the events message is in CONTEXT of the next request, one event for each operation."""
    told = take(live, message(create("a.txt"), READ, {"type": "no"}, say("next")))
    assert [event["type"] for event in told] == ["createFile", "readFile", "error", "message"]
    assert told[1]["content"] == "alpha\n"
    assert (live.workspace / "a.txt").read_bytes() == b"alpha\n"
    assert "## Requested File Contents" not in live.request(), "it stands in the event"
    assert "MessageShown" in str(live.notices)
    assert "a.txt (6 bytes)" in live.request()


def test_many_turns(live: LiveSession) -> None:
    """The protocol of a session is kept: each request is in it, also after a restart."""
    take(live, message(create("a.txt")))
    assert take(live, message(READ))[0]["type"] == "readFile"
    assert live.conversation.session.sequence == 3
    again = live.home.sessions.load(live.session_id)
    assert again.terms.protocol == "json"


# --- either protocol in either session -------------------------------------------------------------


@pytest.mark.parametrize("wrap", ["{}", "```json\n{}\n```\n", "Here:\n\n```\n{}\n```\nDone.\n"])
def test_a_message_is_executed_in_a_session_of_tags(tags: LiveSession, wrap: str) -> None:
    """Design: a reply that has no tag block and is an operations message is executed in either mode."""
    (tags.workspace / "a.txt").write_text("beta\n")
    result = tags.answer(wrap.replace("{}", message(READ, create("b.txt"))))
    assert "[OK] CREATE_FILE: Created 'b.txt'" in result
    assert (tags.workspace / "b.txt").exists()
    assert "--- a.txt ---\nbeta\n--- end a.txt ---" in tags.contents()


def test_scanner_are_executed_in_a_session_of_json(live: LiveSession) -> None:
    """Design: in either mode; what came of it are events."""
    (live.workspace / "a.txt").write_text("beta\n")
    blocks = (
        '[CREATE_FILE path="b.txt"]\nx\n[/CREATE_FILE]\n'
        '[READ_FILE path="a.txt"]\n[/READ_FILE]\n'
        "[RUN_COMMAND]\necho hi\n[/RUN_COMMAND]\n"
        '[DELETE_FILE path="nope"]\n[/DELETE_FILE]\n'
    )
    created, read, ran, deleted = take(live, blocks)
    assert (created["type"], created["bytesWritten"]) == ("createFile", 2)
    assert (read["type"], read["success"]) == ("readFile", True)
    assert (ran["type"], ran["stdout"]) == ("shell", "hi\n")
    assert (deleted["type"], deleted["success"]) == ("deleteFile", False)
    assert "--- a.txt ---\nbeta\n" in live.contents()


def test_what_failed_is_called_as_the_protocol_calls_it(tmp_path: Path) -> None:
    """House, what an operation is: one kind in the journal; the model reads the words of its protocol."""
    session_id = begun(tmp_path)
    edit = {"type": "editFile", "path": "nope", "edits": [{"oldContent": "a", "newContent": "b"}]}
    wrong = message(edit, {"type": "shell", "command": " "}, create("a.txt"), say("DONE: x"))
    (tmp_path / "inbox" / "reply.txt").write_text(wrong)
    status, _, err = command_line_here(tmp_path, "resume", session_id, "--once")
    assert status == 0, err
    for request in (tmp_path / "outbox").rglob(f"{session_id}_seq0002.txt"):
        text = request.read_text("utf-8")
        assert "this failed: editFile 'nope', shell ' '; fix" in text
        assert "EDIT_FILE" not in text
    (short,) = (tmp_path / "outbox" / "short").iterdir()
    assert "\n  editFile: File 'nope' not found" in short.read_text("utf-8")
    journal = tmp_path / "sessions" / session_id / "journal.jsonl"
    written = journal.read_bytes()
    assert b'"tag":"EDIT_FILE"' in written


def test_beside_scanner_json_is_not_executed(tags: LiveSession) -> None:
    """Design: a reply that has no tag block."""
    block = '[CREATE_FILE path="b.txt"]\nx\n[/CREATE_FILE]\n'
    tags.answer(f"{block}\n```json\n{message(create('c.txt'))}\n```\n")
    assert (tags.workspace / "b.txt").exists()
    assert not (tags.workspace / "c.txt").exists()


def test_a_message_within_a_block_is_its_body(tags: LiveSession) -> None:
    """A file that holds a message is a file."""
    text = message(create("c.txt"))
    tags.answer(f'[CREATE_FILE path="b.json"]\n{text}\n[/CREATE_FILE]\n')
    assert (tags.workspace / "b.json").read_text() == f"{text}\n"
    assert not (tags.workspace / "c.txt").exists()


# --- what is no message ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("I don't know.", "The answer has no operations message"),
        ('{"a": 1}', "The answer has no operations message"),
        (message(create("a.txt"))[:-4], "The JSON message was not executed"),
        (f"```\n{message()}\n```\n```\n{message(READ)}\n```\n", "holds 2 JSON messages"),
        ('{"approval": {"operationId": "op-1", "decision": "approved"}}', "no operations message"),
    ],
)
def test_what_cant_be_executed_is_told_to_the_model(live: LiveSession, reply: str, said: str) -> None:
    """Nothing is lost, and the next request says what to send."""
    *words, event = take(live, reply)
    assert all(each["type"] == "message" for each in words)
    assert (event["type"], event["category"]) == ("error", "validation")
    assert said in event["message"]
    assert not (live.workspace / "a.txt").exists()
    assert live.conversation.session.sequence == 2


def test_prose_in_a_session_of_tags_is_answered_as_before(tags: LiveSession) -> None:
    """A brace alone makes no message."""
    assert "The answer has no operations" in tags.answer("f() { return 1 }")


# --- the end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["live", "tags"])
def test_a_message_that_says_done_ends_the_session(name: str, request: pytest.FixtureRequest) -> None:
    """Design: a reply whose only operation is a message that begins DONE: ends the session."""
    live: LiveSession = request.getfixturevalue(name)
    live.drop(message(say("DONE: all tests pass")))
    live.conversation.take("reply.txt")
    assert live.conversation.session.is_complete


def test_done_after_changes_ends_it(live: LiveSession) -> None:
    """Design, after DONE: all of the answer succeeded."""
    live.drop(message(create("a.txt"), say("DONE: x")))
    live.conversation.take("reply.txt")
    assert live.conversation.session.is_complete


# --- which request it answers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"session": "00000000", "sequence": 2}, "it answers session 00000000"),
        ({"sequence": 1}, "it answers request 1, but request 2 is waiting"),
    ],
)
def test_an_answer_to_another_request_is_set_aside(
    live: LiveSession, more: dict[str, object], reason: str
) -> None:
    """Design: one that names another session or an older sequence is not executed, but set aside."""
    take(live, message(create("a.txt")))
    live.drop(message(create("b.txt"), **more))
    live.conversation.take("reply.txt")
    assert not (live.workspace / "b.txt").exists()
    assert live.conversation.session.sequence == 2
    assert [name for name in live.rejected() if not name.endswith(".reason.txt")] != []
    assert any(reason in str(notice) for notice in live.notices)


def test_an_answer_to_this_request_is_taken(live: LiveSession) -> None:
    """Its header says so; a later number is taken, and noted."""
    take(live, message(create("a.txt"), session=live.session_id, sequence=1))
    take(live, message(create("b.txt"), session=live.session_id, sequence=7))
    assert (live.workspace / "b.txt").exists()
    assert "the answer says sequence 7; it was applied as the one to 2" in live.request()


def test_the_same_answer_again_is_set_aside(live: LiveSession) -> None:
    """Design: the same reply text does nothing a second time, and says so."""
    text = message({"type": "shell", "command": "echo >> log"})
    take(live, text)
    live.drop(text)
    live.conversation.take("reply.txt")
    assert (live.workspace / "log").read_text() == "\n"
    assert live.rejected() != []


def test_a_request_pasted_back_is_never_executed(live: LiveSession) -> None:
    """Its examples are operations."""
    live.drop(live.request())
    live.conversation.take("reply.txt")
    assert live.conversation.session.sequence == 1
    assert live.rejected() != []
    assert list(live.workspace.iterdir()) == []


# --- approvals -------------------------------------------------------------------------------------


@pytest.fixture(name="waiting")
def _waiting(live: LiveSession) -> LiveSession:
    """A session that waits for a yes within a JSON reply."""
    (live.workspace / "build").mkdir()
    live.drop(message(create("a.txt"), REMOVE, create("b.txt")))
    with pytest.raises(ApprovalError, match=f"codingagent approve {live.session_id} cleanup"):
        live.conversation.take("reply.txt")
    return live


def after(live: LiveSession, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Do something on the command line after the session is closed; return its status and the events."""
    status, _, _ = command_line_here(live.home.root, *words)
    session = live.home.sessions.load(live.session_id)
    name = f"{live.session_id}_seq{session.sequence:04d}.txt"
    text = (live.home.mailbox.outbox / name).read_text("utf-8")
    found, _ = json.JSONDecoder().raw_decode(text.partition("Previous Command Results\n")[2])
    return status, found["events"][1:]


def test_what_needs_a_yes_waits_under_its_own_id(waiting: LiveSession) -> None:
    """Approvals hold in the loop too; approve takes the operation's id, and goes on with the rest."""
    assert (waiting.workspace / "a.txt").exists()
    assert (waiting.workspace / "build").exists()
    assert not (waiting.workspace / "b.txt").exists()
    status, told = after(waiting, "approve", waiting.session_id, "cleanup")
    assert status == 0
    assert [event["type"] for event in told] == ["createFile", "shell", "createFile"]
    assert told[1]["operationId"] == "cleanup"
    assert not (waiting.workspace / "build").exists()


def test_a_denial_is_an_event(waiting: LiveSession) -> None:
    """policyDenied, with the person's reason."""
    status, told = after(waiting, "deny", waiting.session_id, "cleanup", "--reason", "keep it")
    assert status == 0
    assert [event["type"] for event in told] == ["createFile", "policyDenied", "createFile"]
    assert told[1]["reason"] == "the user said no: keep it"
    assert (waiting.workspace / "build").exists()


@pytest.mark.parametrize(
    "answer",
    [
        {"approval": {"operationId": "cleanup", "decision": "approved"}},
        {"type": "userMessage", "content": "approved"},
        {"protocolVersion": "1.0", "operations": [{"type": "userMessage", "content": "approved"}]},
    ],
)
def test_what_lies_in_the_inbox_approves_nothing(waiting: LiveSession, answer: object) -> None:
    """A model can't approve what it asks for: the inbox is the model's, approve is the person's."""
    waiting.drop(json.dumps(answer), "approval.txt")
    status, _, err = command_line_here(waiting.home.root, "resume", waiting.session_id, "--once")
    assert status == 3
    assert "waits for approval" in err
    assert (waiting.workspace / "build").exists()
    assert (waiting.home.mailbox.inbox / "approval.txt").exists()


# --- killed ----------------------------------------------------------------------------------------


def test_a_json_reply_that_was_killed_is_finished(tmp_path: Path) -> None:
    """Design: killed at any instant, the next resume finishes the turn, and nothing runs twice."""
    session_id = begun(tmp_path)
    marker = new_marker()
    command = f"echo started >> log; sleep {marker}"
    slow = {"type": "shell", "id": "slow", "command": command, "timeout": 60_000}
    log = tmp_path / "workspace" / "log"
    reply = f"```json\n{message(create('a.txt'), slow, create('b.txt'))}\n```\n"
    (tmp_path / "inbox" / "reply.txt").write_text(reply)

    def has_begun() -> bool:
        return log.exists() and bool(log.read_text())

    with none_left(marker):
        assert kill_when(tmp_path, ("resume", session_id, "--once"), has_begun)
    assert command_line_here(tmp_path, "resume", session_id, "--once")[0] == 0
    assert log.read_text() == "started\n"
    text = (tmp_path / "outbox" / f"{session_id}_seq0002.txt").read_text("utf-8")
    found, _ = json.JSONDecoder().raw_decode(text.partition("Previous Command Results\n")[2])
    _, first, second, third = found["events"]
    assert (first["type"], first["success"]) == ("createFile", True)
    assert (second["operationId"], second["error"]) == ("slow", NOT_RUN_AGAIN)
    assert (third["path"], third["success"]) == ("b.txt", True)
    assert (tmp_path / "inbox" / "processed" / f"{session_id}_seq0001.txt").read_text() == reply
