"""`--check`: the person's own command after each turn that changed a file; DONE needs its success."""

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent.agent import context, factory
from codingagent.checkpoints.undo import UndoChoice, take_back
from codingagent.model.journal_entries import CheckEnded, Protocol
from codingagent.model.session_state import Phase
from codingagent.model.settings import Settings
from codingagent.storage.homes import Home
from tests.helpers import LiveSession, command_line, conversation_in, live_session, new_marker, none_left
from tests.killing import command_line_here, kill_when, kinds_of
from tests.sandboxes import needs_bwrap

pytestmark = pytest.mark.usefixtures("plain")

# Tells each time that it ran; succeeds once the file is right.
CHECK = "echo ran >> ../checks; echo 'said by the check'; grep -q right a.txt"
WRONG = '[CREATE_FILE path="a.txt"]\nwrong\n[/CREATE_FILE]\n'
RIGHT = '[CREATE_FILE path="a.txt"]\nright\n[/CREATE_FILE]\n'
DONE = "[DONE]\nIt works.\n[/DONE]\n"
MESSAGE = {"type": "operations", "protocolVersion": "1.0"}


def settings(check: str = CHECK, **others: object) -> Settings:
    return Settings(check=check, sandbox="off", **others)  # type: ignore[arg-type]  # each is a setting


@contextlib.contextmanager
def live_with(root: Path, check: str = CHECK, session_id: str = "") -> Iterator[LiveSession]:
    with live_session(root, settings=settings(check), session_id=session_id) as live:
        yield live


def runs(root: Path) -> int:
    """Return how often the check ran."""
    log = root / "checks"
    return log.read_text("utf-8").count("ran") if log.exists() else 0


def is_complete(live: LiveSession) -> bool:
    return live.conversation.session.is_complete


def command(line: str) -> str:
    return f"[RUN_COMMAND]\n{line}\n[/RUN_COMMAND]\n"


@pytest.mark.with_git
def test_it_runs_after_turns_that_changed_a_file_and_no_others(tmp_path: Path) -> None:
    """README, settings: after each turn that changed a file, by operations or by commands."""
    with live_with(tmp_path) as live:
        for reply, expected in (
            ('[READ_FILE path="a.txt"]\n', 0),
            (command("ls"), 0),
            (WRONG, 1),
            (command("cat a.txt"), 1),
            (command("echo more >> a.txt"), 2),
            ("[MESSAGE]\nWhat now?\n[/MESSAGE]\n", 2),
            (command("mkdir -p x && touch x/new"), 3),
            ('[DELETE_FILE path="x/new"]\n', 4),
        ):
            live.answer(reply)
            assert (reply, runs(tmp_path)) == (reply, expected)


@pytest.mark.with_git
def test_without_git_every_command_may_have_changed_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without checkpoints nobody can tell: it is run once too often, not once too seldom."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "grep", "ls", "echo"):
        (tools / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(tools))
    with live_with(tmp_path / "h") as live:
        live.answer(command("ls"))
        assert runs(tmp_path / "h") == 1
        live.answer('[READ_FILE path="a.txt"]\n')
        assert runs(tmp_path / "h") == 1


@pytest.mark.parametrize("protocol", ["tags", "json"])
def test_its_result_is_in_the_next_request_whole_and_short(tmp_path: Path, protocol: str) -> None:
    """Both requests tell what the check said, and that it must be mended first."""
    home = Home.at(tmp_path, create=True)
    (tmp_path / "workspace").mkdir(exist_ok=True)
    kind: Protocol = "json" if protocol == "json" else "tags"
    session = factory.start_session(home, tmp_path / "workspace", "t", settings(), kind)
    person = context.Person(lambda _: None)
    with conversation_in(home, session, settings(), person) as conversation:
        live = LiveSession(home, session.session_id, conversation)
        conversation.recover()
        assert "Check: after each answer that changes a file" in live.request()
        live.drop(WRONG)
        conversation.take("reply.txt")
        name = f"{live.session_id}_seq0002.txt"
        for text in (live.request(), (home.mailbox.outbox / "short" / name).read_text("utf-8")):
            assert "[FAILED] CHECK: Ran 'echo ran" in text
            assert "said by the check" in text
            assert "is not accepted while it fails" in " ".join(text.split())
        if protocol == "json":
            operation = {"type": "message", "content": "DONE: all is well"}
            live.drop(json.dumps({**MESSAGE, "operations": [operation]}))
            conversation.take("reply.txt")
            assert not conversation.session.is_complete


@pytest.mark.with_git
def test_done_needs_its_success(tmp_path: Path) -> None:
    """A DONE behind changes is checked; while it fails it is refused with what the check said."""
    with live_with(tmp_path) as live:
        results = live.answer(WRONG + DONE)
        assert not is_complete(live)
        assert "[FAILED] DONE: Not accepted: the user's check fails" in results
        assert results.count("Output: said by the check") == 1
        assert runs(tmp_path) == 1
        live.drop(RIGHT + DONE)
        live.conversation.take("reply.txt")
        assert is_complete(live)
        assert runs(tmp_path) == 2


def test_one_that_failed_is_run_again_at_the_next_done(tmp_path: Path) -> None:
    """The person may have mended what it fails for."""
    with live_with(tmp_path) as live:
        live.answer(WRONG)
        live.answer("[DONE]\nNo change needed.\n[/DONE]\n")
        assert (runs(tmp_path), is_complete(live)) == (2, False)
        (live.workspace / "a.txt").write_text("right\n")
        live.drop(DONE)
        live.conversation.take("reply.txt")
        assert (runs(tmp_path), is_complete(live)) == (3, True)


@pytest.mark.with_git
def test_done_without_any_change_is_checked_too(tmp_path: Path) -> None:
    """Design, after DONE: the check succeeds on the files as they are, no matter who changed them."""
    with live_with(tmp_path) as live:
        live.answer(command("ls"))
        live.answer(DONE)
        assert (runs(tmp_path), is_complete(live)) == (1, False)
        (live.workspace / "a.txt").write_text("right\n")
        live.drop("[DONE]\nIt is there.\n[/DONE]\n")
        live.conversation.take("reply.txt")
        assert (runs(tmp_path), is_complete(live)) == (2, True)


@pytest.mark.parametrize("name", ["a.txt", "new.txt", ".gitignore"])
def test_one_that_succeeded_on_other_files_is_run_again_at_done(tmp_path: Path, name: str) -> None:
    """The person changed one since."""
    with live_with(tmp_path) as live:
        live.answer(RIGHT)
        live.answer('[READ_FILE path="a.txt"]\n')
        (live.workspace / name).write_text("wrong\n")
        live.drop(DONE)
        live.conversation.take("reply.txt")
        assert (runs(tmp_path), is_complete(live)) == (2, name != "a.txt")


@pytest.mark.with_git
def test_one_that_succeeded_is_known_after_a_turn_that_changed_nothing(tmp_path: Path) -> None:
    """Exactly these files were checked."""
    with live_with(tmp_path) as live:
        live.answer(RIGHT)
        live.answer('[READ_FILE path="a.txt"]\n')
        live.drop(DONE)
        live.conversation.take("reply.txt")
        assert (runs(tmp_path), is_complete(live)) == (1, True)


def test_one_that_is_named_later_is_run_before_done_is_accepted(tmp_path: Path) -> None:
    """What earlier turns changed was never checked."""
    with live_with(tmp_path, "") as live:
        live.answer(WRONG)
    with live_with(tmp_path, CHECK, live.session_id) as again:
        again.answer(DONE)
        assert (runs(tmp_path), is_complete(again)) == (1, False)


@pytest.mark.with_git
def test_what_a_command_did_to_ignored_files_is_checked_at_done(tmp_path: Path) -> None:
    """No checkpoint holds them; a DONE behind them is none while the check fails."""
    with live_with(tmp_path, "grep -q right gen/a.txt") as live:
        (live.workspace / ".gitignore").write_text("gen/\n")
        live.answer('[CREATE_FILE path="gen/a.txt"]\nright\n[/CREATE_FILE]\n')
        results = live.answer(command("echo wrong > gen/a.txt") + DONE)
        assert "[FAILED] DONE: Not accepted" in results
        live.answer(command("echo right > gen/a.txt"))
        live.drop(DONE)
        live.conversation.take("reply.txt")
        assert is_complete(live)


def test_another_one_is_run_before_done_is_accepted(tmp_path: Path) -> None:
    """The success of one command says nothing of another."""
    with live_with(tmp_path) as live:
        live.answer(RIGHT)
    with live_with(tmp_path, "false", live.session_id) as again:
        results = again.answer(DONE)
        assert "the user's check fails: Ran 'false' (exit code 1)" in results


@pytest.mark.with_git
def test_what_an_undo_leaves_is_checked_at_done(tmp_path: Path) -> None:
    """The success was of files that are no longer there."""
    with live_with(tmp_path) as live:
        live.answer(WRONG)
        take_back(live.home, live.conversation.context.checkpointer, UndoChoice(1))
        live.conversation.recover()
        assert "The user's check failed when it was run last" in live.request()
        live.answer(RIGHT)
        take_back(live.home, live.conversation.context.checkpointer, UndoChoice(1))
        live.conversation.recover()
        live.answer(DONE)
        assert (runs(tmp_path), is_complete(live)) == (3, False)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("sleep 60", "(ended at its time limit of 1 s)"),
        ("yes", "(ended after 256 MiB of output"),
        ("no-such-program", "(exit code 127)"),
        ("kill -9 $PPID; sleep 60", "ended the process that watched over it"),
        ("kill -STOP $PPID; sleep 60", "(ended at its time limit of 1 s)"),
        ("kill -9 $$", "(ended by signal SIGKILL)"),
        ("echo (", "(exit code 2)"),
        ('printf "\\377\\000"; exit 1', "(exit code 1)"),
    ],
)
def test_one_that_misbehaves_fails(tmp_path: Path, check: str, said: str) -> None:
    """Whatever it does, the turn ends, the request says so, and the session goes on."""
    chosen = Settings(check=check, sandbox="off", check_timeout=1 if "sleep" in check else 100)
    with live_session(tmp_path, settings=chosen) as live:
        results = live.answer(RIGHT + DONE)
        assert "[FAILED] CHECK: Ran" in results
        assert said in results
        assert "[FAILED] DONE: Not accepted" in results
        assert 'timeout="' not in results
        assert "[OK] RUN_COMMAND" in live.answer(command("true"))


def test_what_it_leaves_running_is_ended(tmp_path: Path) -> None:
    """As with every command."""
    marker = new_marker()
    with none_left(marker), live_with(tmp_path, f"setsid sleep {marker} >/dev/null 2>&1 & exit 0") as live:
        assert "[OK] CHECK" in live.answer(RIGHT)


def test_one_that_deletes_the_workspace_ends_the_work_in_one_line(tmp_path: Path) -> None:
    """No traceback, and what the check did is on the record."""
    home = tmp_path / "home"
    words = ("--sandbox", "off", "--check", 'rm -rf "$PWD"; false')
    new, again = ("new", "--no-wait", "task", *words), ("resume", "--once")
    for line in (new, again):  # before the first request, and after the answer
        status, _, err = command_line_here(home, *line)
        assert (status, err.count("\n")) == (1, 1)
        (home / "workspace").mkdir(exist_ok=True)
        (home / "inbox" / "reply.txt").write_text(RIGHT + DONE)
    status, _, err = command_line_here(home, "resume", "--once")
    assert status == 0
    (request,) = (home / "outbox").glob("*_seq0002.txt")
    assert "[FAILED] CHECK" in request.read_text("utf-8")
    assert "[FAILED] DONE: Not accepted" in request.read_text("utf-8")


@pytest.mark.with_git
def test_one_that_would_need_a_yes_is_not_asked_for(tmp_path: Path) -> None:
    """The person has said what they want."""
    with live_with(tmp_path, "rm -rf build && git push --dry-run 2>/dev/null; true") as live:
        assert "[OK] CHECK" in live.answer(RIGHT)


@pytest.mark.parametrize("policy", ["standard", "restrictive"])
def test_one_that_the_policy_denies_is_refused_at_once(tmp_path: Path, policy: str) -> None:
    """It could never succeed."""
    (tmp_path / "workspace").mkdir()
    check = "sudo true" if policy == "standard" else "true"
    words = ("new", "--no-wait", "task", "--check", check, "--policy", policy)
    status, _, err = command_line_here(tmp_path, *words)
    assert status == 2
    assert f"the check `{check}` is blocked by the policy" in err
    assert not (tmp_path / "sessions").exists()


def test_a_pause_for_a_yes_does_not_hide_what_was_changed_before_it(tmp_path: Path) -> None:
    """It runs once, when the whole turn is done."""
    with live_with(tmp_path) as live:
        pass
    (live.workspace / "a.txt").write_text("wrong\n")
    live.drop(command("touch made") + command("rm -r not-there") + DONE)
    assert command_line_here(tmp_path, "resume", "--once")[0] == 3
    assert runs(tmp_path) == 1  # before the answer
    assert command_line_here(tmp_path, "approve", live.session_id)[0] == 0
    assert runs(tmp_path) == 2
    assert not live.home.sessions.load(live.session_id).is_complete


def test_one_that_was_killed_is_not_run_again_in_that_turn(tmp_path: Path) -> None:
    """README: a command that had started is never started again. What is in doubt is no success."""
    marker = new_marker()
    check = f"echo ran >> ../checks; test ! -e a.txt || test -e ok || exec sleep {marker}"
    with none_left(marker):
        with live_with(tmp_path, check) as live:
            pass
        live.drop(RIGHT + DONE)
        assert kill_when(tmp_path, ("resume", "--once"), lambda: runs(tmp_path) == 2)
    with live_with(tmp_path, check, live.session_id) as again:
        assert runs(tmp_path) == 2
        results = again.results()
        assert "[FAILED] CHECK: 'echo ran" in results
        assert "interrupted: it may have run in part; it was not run again" in results
        assert "[FAILED] DONE: Not accepted" in results
        (again.workspace / "ok").touch()
        again.drop(DONE)
        again.conversation.take("reply.txt")
        assert is_complete(again)
        assert runs(tmp_path) == 3
    records = tuple(again.home.records(again.session_id))
    assert kinds_of(records).count("check_ended") == 3
    assert [r.command == check for r in records if isinstance(r, CheckEnded)] == [True] * 3


def test_another_one_is_run_in_the_place_of_one_that_was_interrupted(tmp_path: Path) -> None:
    """A check that hangs is stopped by Ctrl-C, and another named, as the screen says."""
    marker = new_marker()
    with none_left(marker):
        with live_with(tmp_path, f"echo ran >> ../checks; test ! -e a.txt || exec sleep {marker}") as live:
            pass
        live.drop(RIGHT + DONE)
        assert kill_when(tmp_path, ("resume", "--once"), lambda: runs(tmp_path) == 2)
    with live_with(tmp_path, CHECK, live.session_id) as again:
        assert (runs(tmp_path), is_complete(again)) == (3, True)


def test_an_interrupt_while_it_runs_leaves_the_session_to_be_resumed(tmp_path: Path) -> None:
    """Ctrl-C: 130, and the check counts as interrupted."""
    with live_with(tmp_path) as live:
        pass
    settings_ = Settings(check=f"kill -INT {os.getpid()}; sleep 60", sandbox="off")
    with live_session(tmp_path, settings=settings_, session_id=live.session_id) as again:
        again.drop(RIGHT)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                again.conversation.take("reply.txt")
        finally:
            signal.signal(signal.SIGINT, before)
        assert again.conversation.session.phase is Phase.EXECUTING
        again.conversation.recover()
        assert "[FAILED] CHECK" in again.results()


def test_it_shows_in_log_and_json(tmp_path: Path) -> None:
    """What was run and what came of it is on the record."""
    with live_with(tmp_path) as live:
        pass
    live.drop(WRONG + DONE)
    status, out, _ = command_line_here(tmp_path, "resume", "--once", "--json")
    assert status == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert any("CHECK" in json.dumps(line) for line in lines)
    for words, said in (
        (("log",), "  FAILED check: echo ran"),
        (("log", "--json"), '"check_ended"'),
        (("show",), "  FAILED check: echo ran"),
        (("show", "--json"), '"CHECK"'),
    ):
        status, out, _ = command_line_here(tmp_path, *words)
        assert (status, said in out) == (0, True), out


def test_another_check_holds_from_then_on_and_an_empty_one_turns_it_off(tmp_path: Path) -> None:
    """README: a session keeps its check until `resume --check` names another."""
    with live_with(tmp_path) as live:
        pass
    live.drop(WRONG)
    assert command_line_here(tmp_path, "resume", "--once", "--check", "echo other")[0] == 0
    assert runs(tmp_path) == 0
    assert "[OK] CHECK: Ran 'echo other'" in live_results(live, 2)
    live.drop(WRONG.replace("wrong", "wrong too"))
    assert command_line_here(tmp_path, "resume", "--once")[0] == 0
    assert runs(tmp_path) == 0
    assert "`echo other`" in live.request(3).partition("## Environment")[2]
    assert command_line_here(tmp_path, "resume", "--once", "--check", "")[0] == 0
    assert "`echo other`" not in live.request(3).partition("## Environment")[2]
    live.drop(DONE)
    assert command_line_here(tmp_path, "resume", "--once")[0] == 0
    assert live.home.sessions.load(live.session_id).is_complete


def live_results(live: LiveSession, sequence: int) -> str:
    return live.request(sequence).partition("## Previous Command Results\n")[2]


def test_a_run_never_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One message is no session."""
    (tmp_path / "workspace").mkdir()
    monkeypatch.setenv("CODINGAGENT_CHECK", CHECK)
    message = tmp_path / "m.json"
    operation = {"type": "createFile", "path": "a.txt", "content": "x"}
    message.write_text(json.dumps({**MESSAGE, "operations": [operation]}))
    command_line(tmp_path, "run", str(message))
    assert (tmp_path / "workspace" / "a.txt").exists()
    assert runs(tmp_path) == 0


@pytest.mark.with_git
def test_it_is_confined_as_commands_are(tmp_path: Path) -> None:
    """It runs code that the answer wrote."""
    needs_bwrap()
    check = "echo out > ../outside; test ! -e ../outside"
    with live_session(tmp_path, settings=Settings(check=check, sandbox="require")) as live:
        live.answer(RIGHT)
    assert not (tmp_path / "outside").exists()
