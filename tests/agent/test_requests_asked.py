"""What a request asks for: what is to be sent again, nothing that ends the task where it is copied."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent.agent import context, factory
from codingagent.model.journal_entries import Protocol
from codingagent.model.settings import Settings
from codingagent.storage.homes import Home
from tests.helpers import LiveSession, conversation_in, plain_session, run_here, use_no_git

DONE = "[DONE]\nIt works.\n[/DONE]\n"
EDIT = '[EDIT_FILE path="a.py"]\n<<<<<<< SEARCH\nnot there\n=======\nnew\n>>>>>>> REPLACE\n[/EDIT_FILE]\n'
BAD_JSON_EDIT = {
    "type": "editFile",
    "path": "a.py",
    "edits": [{"oldContent": "not there", "newContent": "x"}],
}


def command(line: str) -> str:
    return f"[RUN_COMMAND]\n{line}\n[/RUN_COMMAND]\n"


def create(path: str, body: str) -> str:
    return f'[CREATE_FILE path="{path}"]\n{body}\n[/CREATE_FILE]\n'


def message(*operations: object) -> str:
    return json.dumps({"protocolVersion": "1.0", "operations": operations})


@contextlib.contextmanager
def working(root: Path, check: str = "", protocol: Protocol = "tags") -> Iterator[LiveSession]:
    """A session in a workspace that holds `a.py`."""
    (root / "workspace").mkdir(parents=True)
    (root / "workspace" / "a.py").write_text("def f():\n    return 1\n")
    use_no_git(root / "workspace")
    settings = Settings(check=check, sandbox="off")
    home = Home.at(root, create=True)
    session = factory.start_session(home, root / "workspace", "task", settings, protocol)
    person = context.Person(lambda _: None)
    with conversation_in(home, session, settings, person) as conversation:
        conversation.recover()
        yield LiveSession(home, session.session_id, conversation)


def short(live: LiveSession) -> str:
    name = f"{live.session_id}_seq{live.conversation.session.sequence:04d}.txt"
    return (live.home.mailbox.outbox / "short" / name).read_text("utf-8")


def again(live: LiveSession) -> list[str]:
    """Return what the short request asks for once more, line by line; first what to do with it."""
    _, found, rest = short(live).partition("These operations of your last answer failed. ")
    assert "Continue working" not in rest
    return rest.partition("Then go on with the task.\n\n")[0].splitlines() if found else []


# --- no end of the task to copy --------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        "I think that we should talk first.\n",
        "[DONE] will follow.\n",
        "[done]\nAll is well.\n[/done]\n",
        "[Done]\nAll is well.\n[/Done]\n",
        "[/DONE]\n" + command("true"),
        command("true") + "[DONE] All is well, says\n the model\n",
        '[REPLY sequence="1"]\n' + command("true") + "[DONE]\nAll is w",
        command("true") + "[DONE]\nAll is well.\n\nAnd more of that.\n",
        create("b.py", "x = 1") + DONE,
        command("true") + "[OK] RUN_COMMAND: Ran 'true' (exit code 0)\n" + DONE,
        EDIT + "\n```diff\n--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-old\n+new\n```\n" + DONE,
        '[CREATE_FILE path="b.py"]\nx = 1\n' + DONE,
        '[CREATE_FILE path="b.py"]\nx = 1\n[DONE]\nx\n',
        "\\[DONE\\] and then [DONE\\]\nx\n[/DONE]\n" + EDIT,
    ],
)
@pytest.mark.one_in(3)
def test_no_result_shows_an_end_to_copy(tmp_path: Path, answer: str) -> None:
    """Design, no block at all: never a DONE. A model that copies what it is shown must not end the task."""
    with working(tmp_path, "false") as live:
        live.drop(answer)
        live.conversation.take("reply.txt")
        assert not live.conversation.session.is_complete
        for text in (live.request(), short(live)):
            results = text.partition("## Previous Command Results\n")[2].partition("=== PROMPT")[0]
            results = results.partition("## Environment")[0]
            assert "[DONE" not in results
            assert "[/DONE" not in results


def test_no_event_shows_an_end_to_copy(tmp_path: Path) -> None:
    with working(tmp_path, "false", "json") as live:
        for answer in (
            "Let us talk first.",
            message(BAD_JSON_EDIT, {"type": "message", "content": "well"}),
            message({"type": "createFile", "path": "b.py", "content": "x = 1\n"}),
            DONE,
        ):
            live.drop(answer)
            live.conversation.take("reply.txt")
            results = live.request().partition("## Previous Command Results\n")[2]
            results = results.partition("## Environment")[0]
            assert "DONE:" not in results
            assert "[DONE" not in results


# --- what is to be sent again ----------------------------------------------------------------------


def test_only_what_must_be_sent_again_is_named(tmp_path: Path) -> None:
    """Not what ends the task, what is said, what ran, what the check says, nor what was made up for."""
    with working(tmp_path, "false") as live:
        live.answer(
            EDIT.replace("a.py", "later.py")
            + EDIT.replace("a.py", "later.py")
            + command("exit 3")
            + EDIT
            + EDIT
            + create("later.py", "x = 1")
            + "[MESSAGE]\nSo\n"
            + DONE
        )
        lines = again(live)
    assert lines[0].startswith("Send only these again, corrected")
    assert len(lines) == 2, lines
    assert lines[1].startswith("  EDIT_FILE: ")
    assert "'a.py'" in lines[1]


@pytest.mark.parametrize(
    "answer",
    [
        "Let us talk.\n",
        command("exit 3"),
        create("b.py", "x = 1") + DONE,
        command("true") + "[DONE]\nnever closed, and more\nof that\n",
    ],
)
def test_where_nothing_is_to_be_sent_again_nothing_is_named(tmp_path: Path, answer: str) -> None:
    with working(tmp_path, "false") as live:
        live.answer(answer)
        assert again(live) == []


def test_commands_that_failed_behind_a_failed_edit_are_to_be_run_again(tmp_path: Path) -> None:
    """They could not succeed: what they try was not there. The check is run without being asked for."""
    check = "test -e mended"
    with working(tmp_path, check) as live:
        live.answer(command("exit 2") + EDIT + command("exit 4") + command("true") + command(check))
        lines = again(live)
        assert lines[2:] == ["Then run again what failed after them:", "  exit 4"]
        assert lines[1].startswith("  EDIT_FILE: ")
        live.answer('[READ_FILE path="no.py"]\n' + command("exit 5"))
        assert len(again(live)) == 2, "a file that is not there breaks no command"


def test_operations_to_be_sent_again_are_named_in_json_too(tmp_path: Path) -> None:
    with working(tmp_path, protocol="json") as live:
        fails = {"type": "shell", "command": "exit 4"}
        live.drop(message(BAD_JSON_EDIT, fails, {"type": "message", "content": "so"}))
        live.conversation.take("reply.txt")
        lines = again(live)
    assert lines[1].startswith("  editFile: ")
    assert lines[2:] == ["Then run again what failed after them:", "  exit 4"]


def test_what_follows_a_half_answer_is_sent_again_behind_it(tmp_path: Path) -> None:
    """Design, truncation: it may need the missing block."""
    with plain_session(tmp_path, settings=Settings(sandbox="off")) as live:
        header = f'[REPLY session="{live.session_id}" sequence="1"]\n'
        live.answer(f'{header}[CREATE_FILE path="b.py"]\nfirst line of it\nsecond li')
        text = live.answer("third line\n[/CREATE_FILE]\n" + command("touch ran") + DONE + "[END]\n")
        assert not (live.workspace / "ran").exists()
    assert "not executed: RUN_COMMAND at line 3, DONE at line 6; send" in " ".join(text.split())
    assert "again from its start, and then those" in text


@pytest.mark.parametrize("fails", ["", EDIT])
def test_one_order_says_how_to_go_on_with_a_cut_answer(tmp_path: Path, fails: str) -> None:
    """It stands in PROMPT alone, with the lines to repeat below it, and what follows it works."""
    with working(tmp_path) as live:
        header = f'[REPLY session="{live.session_id}" sequence="1"]\n'
        text = f'{header}{fails}[CREATE_FILE path="b.py"]\ndef first():\n    return 1\n    # the secon'
        live.answer(text)
        for request in (short(live), live.request()):
            results, prompt = request.split("=== PROMPT ===\n")[-2:]
            assert "Cut off inside CREATE_FILE 'b.py'" in results
            assert "    # the secon" not in results.partition("## Previous Command Results")[2]
            order, _, rest = prompt.partition("\n")
            assert "repeat the lines below" in order
            assert rest.startswith("        # the secon\n")
            assert "Continue working" not in prompt
            assert "Then go on with the task." in rest
        assert ("After it, send again what else failed" in short(live)) == bool(fails)
        header = header.replace('"1"', '"2"')
        mended = fails.replace("not there", "def f():").replace("new", "def g():")
        live.answer(f"{header}    # the second\n[/CREATE_FILE]\n{mended}[END]\n")
        made = (live.workspace / "b.py").read_text()
        assert made == "def first():\n    return 1\n    # the second\n"
        assert (live.workspace / "a.py").read_text().startswith("def g" if fails else "def f")


# --- a new chat --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["tags", "json"])
def test_the_whole_request_suffices_for_a_new_chat(tmp_path: Path, protocol: Protocol) -> None:
    """It holds what the person attached, as it is now, and names what else earlier turns have shown."""
    with working(tmp_path, protocol=protocol) as live:
        for name in ("read.py", "gone.py", "more.py"):
            (live.workspace / name).write_text(f"text of {name}\n")
        live.conversation.requests.say("keep it short", {"a.py": True, "gone.py": True})
        live.conversation.write_due()
        answers = (
            [{"type": "readFile", "path": "read.py"}],
            [
                {"type": "createFile", "path": "made.py", "content": "x = 1\n"},
                {"type": "deleteFile", "path": "gone.py"},
            ],
            [{"type": "message", "content": "so"}],
        )
        tags = (
            '[READ_FILE path="read.py"]\n',
            create("made.py", "x = 1") + '[DELETE_FILE path="gone.py"]\n',
            "[MESSAGE]\nso\n[/MESSAGE]\n",
        )
        for operations, text in zip(answers, tags, strict=True):
            live.drop(text if protocol == "tags" else message(*operations))
            live.conversation.take("reply.txt")
        (live.workspace / "a.py").write_text("as it is now\n")
        live.conversation.requests.refresh()
        live.conversation.write_due()
        whole = live.request()
        assert "Earlier the user said:\nkeep it short" in whole
        assert "--- a.py (attached by the user before) ---\nas it is now\n" in whole
        read = "READ_FILE" if protocol == "tags" else "readFile"
        assert (
            f"showed or wrote made.py, read.py, more.py. If this chat has not seen them, {read} those that"
            in whole
        )
        assert "as it is now" not in short(live)
        assert "those that you need" not in short(live)


def test_what_only_the_whole_request_shows_is_not_known_to_the_chat(tmp_path: Path) -> None:
    """The chat may have got the short one: a file that the person changed is not replaced unseen."""
    with working(tmp_path) as live:
        live.conversation.requests.say("", {"a.py": True})
        live.conversation.write_due()
        live.answer("[MESSAGE]\nso\n[/MESSAGE]\n")
        (live.workspace / "a.py").write_text("mine = 1\n")
        live.conversation.requests.refresh()
        live.conversation.write_due()
        assert "mine = 1" in live.request()
        results = live.answer(create("a.py", "yours = 1"))
        assert "[FAILED] CREATE_FILE" in results
        assert (live.workspace / "a.py").read_text() == "mine = 1\n"


def test_that_the_check_failed_is_told_until_it_succeeds(tmp_path: Path) -> None:
    """A turn that changes nothing does not run it; the next request says all the same how it stands."""
    with working(tmp_path, "grep -q right b.py") as live:
        live.answer(create("b.py", "wrong = 1"))
        live.answer('[READ_FILE path="b.py"]\n')
        assert "The user's check failed when it was run last: fix that first" in live.request()
        live.answer(create("b.py", "right = 1"))
        live.answer('[READ_FILE path="b.py"]\n')
        assert "The user's check" not in live.request()


def test_data_that_is_not_named_goes_as_its_ends(tmp_path: Path) -> None:
    """A glob fits it; by its name it goes whole."""
    with plain_session(tmp_path) as live:
        rows = "".join(f"row {number}\n" for number in range(1, 1001))
        (live.workspace / "data.csv").write_text(rows, "utf-8")
        (live.workspace / "some.csv").write_text(rows[:100], "utf-8")
        live.answer('[READ_FILE path="*.csv"]')
        text = live.contents()
        assert "--- data.csv (parts of 1,000 lines) ---\nrow 1\n" in text
        assert "row 20\n… lines 21-990\nrow 991\n" in text
        assert rows[:100] in text
        live.answer('[READ_FILE path="data.csv"]')
        assert rows in live.contents()


def test_data_of_an_attached_folder_goes_as_its_ends(tmp_path: Path) -> None:
    """In the request that it came with and in later ones, until the file itself is named."""
    rows = "".join(f"row {number}\n" for number in range(1, 1001))
    folder = tmp_path / "workspace" / "data"
    folder.mkdir(parents=True)
    (folder / "all.csv").write_text(rows, "utf-8")
    (folder / "notes.md").write_text(rows, "utf-8")

    def request(*words: str) -> str:
        done = run_here("--home", str(tmp_path), *words)
        assert done.returncode == 0, done.stderr
        is_brief = "data/all.csv: only the first and last of its 1,000 lines go" in done.stdout
        assert is_brief == (words[0] == "new")
        return max((tmp_path / "outbox").glob("*.txt")).read_text("utf-8")

    ends = "--- data/all.csv (parts of 1,000 lines"
    text = request("new", "--no-wait", "--sandbox", "off", "--attach", "data", "--context", "0", "x")
    assert ends in text
    assert f"--- data/notes.md ---\n{rows}---" in text
    (tmp_path / "inbox" / "a.txt").write_text("[MESSAGE]\nhm\n[/MESSAGE]\n", "utf-8")
    assert ends in request("resume", "--once")
    assert f"--- data/all.csv ---\n{rows}---" in request("say", "--attach", "data/all.csv", "x")
    assert f"--- data/all.csv ---\n{rows}---" in request("say", "--attach", "data", "x")
