"""The command line for programs: an operations message in, the events message out."""

import io
import json
import os
import re
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codingagent import Space, validate_event, validate_events_message
from codingagent.cli import main
from codingagent.errors import UsageError
from codingagent.model.results import NOT_RUN_AGAIN
from tests import warm
from tests.cli.test_cli import started
from tests.helpers import HANG_S, new_marker, none_left, wait_until
from tests.killing import has_text, kill_when
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("plain")

SAY = {"type": "message", "content": "hello"}
CREATE = {"type": "createFile", "path": "a.txt", "content": "alpha"}
REMOVE = {"type": "shell", "id": "cleanup", "command": "rm -r build"}


class Caller:
    """A program that calls the command line, with a home and what it was answered last."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys
        self.out = ""
        self.err = ""

    @property
    def workspace(self) -> Path:
        return self.home / "workspace"

    @property
    def run_id(self) -> str:
        (found,) = {path.name[:16] for path in (self.home / "sessions" / "runs").glob("run_*")}
        return found

    def message(self, *operations: object) -> str:
        """Writes an operations message, and gives the file's name."""
        path = self.home.parent / "operations.json"
        path.write_text(json.dumps({"protocolVersion": "1.0", "operations": operations}))
        return str(path)

    def call(self, *arguments: str) -> int:
        status = main.run(["--home", str(self.home), *arguments])
        said = self._capsys.readouterr()
        self.out, self.err = said.out, said.err
        return status

    def run(self, *operations: object) -> int:
        return self.call("run", self.message(*operations), "--sandbox", "off")

    def pipe(self, stdin: str, *arguments: str) -> int:
        """Calls with something on stdin."""
        before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin.encode()))
        try:
            return self.call(*arguments)
        finally:
            sys.stdin = before

    def said(self) -> dict[str, Any]:
        """Return the events message, which is all there is on stdout."""
        (line,) = self.out.splitlines()
        found = json.loads(line)
        validated = validate_events_message(found)
        assert validated.success, validated.error
        assert isinstance(found, dict)
        return found

    def kinds(self) -> list[str]:
        return [event["type"] for event in self.said()["events"]]

    def fault(self) -> str:
        """Return the one line on stderr."""
        (line,) = self.err.splitlines()
        assert line.startswith("codingagent: ")
        return line


@pytest.fixture(name="caller")
def _caller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Caller:
    home = tmp_path / "home"
    (home / "workspace" / "build").mkdir(parents=True)
    (home / "workspace" / "build" / "o").write_text("kept\n")
    return Caller(home, capsys)


# --- run -------------------------------------------------------------------------------------------


def test_run_prints_the_events_message_and_nothing_else(caller: Caller) -> None:
    """Design, command line: run FILE executes one message, prints the events message; exit status 0."""
    assert caller.run(CREATE, {"type": "shell", "command": "cat a.txt"}) == 0
    said = caller.said()
    assert (said["protocolVersion"], said["status"]) == ("1.0", "completed")
    assert re.fullmatch("run_[0-9a-f]{12}", said["runId"])
    assert caller.kinds() == ["createFile", "shell"]
    assert said["events"][1]["stdout"] == "alpha"
    assert caller.err == ""


def test_run_reads_stdin(caller: Caller) -> None:
    """Design, command line: `-` is stdin; a real process."""
    message = Path(caller.message(CREATE)).read_text("utf-8")
    done = warm.run_command(
        *("run", "-", "--sandbox", "off"),
        cwd=caller.home,
        env={**os.environ, "CODINGAGENT_HOME": str(caller.home)},
        input=f"\ufeff{message}",
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert validate_events_message(json.loads(done.stdout)).success
    assert (caller.workspace / "a.txt").read_bytes() == b"alpha"


def test_an_operation_that_failed_is_a_result_not_an_exit_status(caller: Caller) -> None:
    """Design, exit status: 0 done what was asked."""
    bad = {"type": "readFile", "path": "nope"}
    assert caller.run(bad, {"type": "no"}, {"type": "shell", "command": "exit 7"}) == 0
    assert caller.kinds() == ["readFile", "error", "shell"]


def test_what_the_model_says_is_for_the_person(caller: Caller) -> None:
    """stdout is for the program, a message is for people."""
    assert caller.run(SAY) == 0
    assert caller.kinds() == ["message"]
    assert caller.err == "hello\n"


def test_events_stream_prints_each_event_on_a_line(caller: Caller) -> None:
    """Each event as it happens, one a line; last the message without them."""
    file = caller.message(CREATE, {"type": "no"}, REMOVE, SAY)
    assert caller.call("run", file, "--events-stream", "--sandbox", "off") == 3
    *events, last = map(json.loads, caller.out.splitlines())
    assert [event["type"] for event in events] == ["createFile", "error", "approvalRequired"]
    assert all(validate_event(event).success for event in events)
    assert validate_events_message(last).success
    assert (last["events"], last["status"]) == ([], "awaiting_approval")
    assert caller.run_id == last["runId"]


def test_events_come_when_they_happen(caller: Caller) -> None:
    """Not at the end: the first can be read while the second operation still runs."""
    wait = {"type": "shell", "command": "until test -e go; do sleep 0.02; done"}
    file = caller.message(CREATE, wait, {**CREATE, "path": "b.txt"})
    with started(caller.home, "run", file, "--events-stream", "--sandbox", "off") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["type"] == "createFile"
        assert process.poll() is None
        (caller.workspace / "go").touch()
        out, err = process.communicate(timeout=HANG_S)
    assert [json.loads(line).get("type") for line in out.splitlines()] == ["shell", "createFile", None]
    assert (process.returncode, err) == (0, "")


def test_a_reader_that_goes_does_not_stop_the_work(caller: Caller) -> None:
    """`--events-stream | head -1`: what was asked is done all the same."""
    wait = {"type": "shell", "command": "until test -e go; do sleep 0.02; done"}
    file = caller.message(CREATE, wait, {**CREATE, "path": "b.txt"}, SAY)
    with started(caller.home, "run", file, "--events-stream", "--sandbox", "off") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        (caller.workspace / "go").touch()
        assert process.wait(timeout=HANG_S) == 0
    assert (caller.workspace / "b.txt").exists()
    assert caller.call("show", caller.run_id, "--json") == 0
    assert json.loads(caller.out)["isComplete"] is True


@pytest.mark.parametrize("stream", [(), ("--events-stream",)])
def test_what_is_no_message_is_answered_with_one_error_event(caller: Caller, stream: tuple[str, ...]) -> None:
    """Design: an events message of status error with one such event, exit status 2."""
    path = caller.home.parent / "bad.json"
    path.write_text('{"protocolVersion": "2.0", "operations": []}')
    assert caller.call("run", str(path), *stream) == 2
    *events, last = map(json.loads, caller.out.splitlines())
    assert validate_events_message(last).success
    assert last["status"] == "error"
    (event,) = events or last["events"]
    assert (event["type"], event["category"]) == ("error", "validation")
    assert "protocolVersion" in event["message"]
    assert event["message"] in caller.fault()
    assert list((caller.home / "sessions").glob("runs/*")) == [], "no run was begun"


def test_a_file_that_cant_be_read_is_a_mistake_of_the_caller(caller: Caller) -> None:
    """Exit status 2; one line on stderr, nothing on stdout; no home is made for it."""
    shutil.rmtree(caller.home)
    for name in ("nope.json", str(caller.home.parent)):
        assert caller.call("run", name) == 2
        assert caller.out == ""
        assert f"{name} can't be read" in caller.fault()
    assert not caller.home.exists()


def test_a_message_without_end_is_refused_unread(caller: Caller) -> None:
    """Bad input: 200 MB; no more is read than may be executed."""
    path = caller.home.parent / "huge.json"
    with path.open("wb") as file:
        file.truncate(200 * 2**20)
    assert caller.call("run", str(path)) == 2
    (event,) = caller.said()["events"]
    assert "at most 33554432 are read" in event["message"]
    caller.fault()


@pytest.mark.with_git
@pytest.mark.outside_dev
def test_a_system_fault_is_exit_status_1(caller: Caller) -> None:
    """Design, exit status: 1 the work failed; the events message says it too."""
    move = {"type": "shell", "command": "mv ../workspace ../moved"}
    assert caller.run(CREATE, move, SAY) == 1
    said = caller.said()
    assert said["status"] == "error"
    assert caller.kinds() == ["createFile", "shell", "error"]
    assert said["events"][-1]["category"] == "system"
    for words in (["resume"], ["deny"], ["undo"]):
        assert caller.call(*words, said["runId"]) == 2
        assert f"of run {said['runId']} does not exist; put it back" in caller.fault()
    (caller.home / "moved").rename(caller.workspace)
    assert caller.call("resume", said["runId"]) == 0
    assert caller.kinds() == ["createFile", "shell", "message"]


def test_a_workspace_can_be_named(caller: Caller, tmp_path: Path) -> None:
    """Design, command line: --workspace DIR; one that is not there is refused, and not made."""
    project = tmp_path / "project"
    file = caller.message(CREATE)
    assert caller.call("run", file, "--workspace", str(project)) == 2
    assert caller.out == ""
    assert "project" in caller.fault()
    assert not project.exists()
    project.mkdir()
    assert caller.call("run", file, "--workspace", str(project), "--sandbox", "off") == 0
    assert (project / "a.txt").exists()
    assert not (caller.workspace / "a.txt").exists()


def test_policy_by_name_and_by_file(caller: Caller, tmp_path: Path) -> None:
    """Design, policy: presets and a TOML file of the same shape."""
    listing = {"type": "shell", "command": "ls build"}
    file = caller.message(CREATE, listing)
    off = ("--sandbox", "off")
    assert caller.call("run", file, "--policy", "restrictive", *off) == 0
    assert caller.kinds() == ["policyDenied", "policyDenied"]
    policy = tmp_path / "policy.toml"
    policy.write_text('[shell]\nallowed_commands = ["cat"]\n')
    assert caller.call("run", file, "--policy", str(policy), *off) == 0
    created, denied = caller.said()["events"]
    assert created["success"] is True
    assert denied["reason"] == "Command not in allowed list"
    assert denied["suggestion"] == "Allowed commands: cat"
    assert caller.call("run", file, "--policy", "strict", *off) == 2
    assert caller.out == ""
    caller.fault()


@pytest.mark.parametrize(
    "words", [("--policy", "none"), ("--sandbox", "off", "--secrets", "mask"), ("--secrets", "none")]
)
def test_a_run_that_is_refused_leaves_no_home(caller: Caller, words: tuple[str, ...]) -> None:
    assert caller.call("run", caller.message(), *words) == 2
    assert [path.name for path in caller.home.iterdir()] == ["workspace"]
    with pytest.raises(UsageError):
        Space(caller.workspace, "none", home=caller.home.parent / "other")
    assert not (caller.home.parent / "other").exists()


def test_yes_approves_what_is_asked_and_never_what_is_blocked(caller: Caller) -> None:
    """Design, policy: `--yes`."""
    file = caller.message(REMOVE, {"type": "shell", "command": "sudo id"})
    assert caller.call("run", file, "--yes", "--sandbox", "off") == 0
    assert caller.kinds() == ["shell", "policyDenied"]
    assert not (caller.workspace / "build").exists()


def test_a_run_waits_for_another_and_says_so_in_one_line(caller: Caller) -> None:
    """Design, command line: a second one waits, and says for whom; those that only look go on."""
    marker = new_marker()
    slow = {"type": "shell", "command": f"touch begun; sleep {marker}", "timeout": 60_000}
    with none_left(marker), started(caller.home, "run", caller.message(slow)) as process:
        wait_until((caller.workspace / "begun").exists)
        assert caller.call("list", "--runs") == 0
        with started(caller.home, "run", caller.message(CREATE)) as second:
            assert second.stderr is not None
            line = second.stderr.readline()
            assert f"pid {process.pid}" in line
            assert "waiting for it" in line
            assert not (caller.workspace / "a.txt").exists()
            process.send_signal(signal.SIGINT)
            assert second.wait(HANG_S) == 0
    assert (caller.workspace / "a.txt").exists()


# --- approvals -------------------------------------------------------------------------------------


@pytest.fixture(name="waiting")
def _waiting(caller: Caller) -> Caller:
    """One with a run that waits."""
    assert caller.run(CREATE, REMOVE, {**CREATE, "path": "b.txt"}) == 3
    return caller


def test_what_awaits_approval_is_exit_status_3(waiting: Caller) -> None:
    """Design, exit status: 3 stopped, awaiting approval; the question is the last event."""
    said = waiting.said()
    assert said["status"] == "awaiting_approval"
    assert waiting.kinds() == ["createFile", "approvalRequired"]
    assert said["events"][-1]["operationId"] == "cleanup"
    assert waiting.err == ""
    assert (waiting.workspace / "build" / "o").exists()
    document = waiting.home / "sessions" / "runs" / f"{said['runId']}.json"
    assert json.loads(document.read_text("utf-8"))["status"] == "awaiting_approval"


def test_approve_executes_and_prints_the_new_events(waiting: Caller) -> None:
    """Design: approve on the command line prints the new ones; the rest is executed."""
    assert waiting.call("approve", waiting.run_id, "cleanup") == 0
    said = waiting.said()
    assert (said["runId"], said["status"]) == (waiting.run_id, "completed")
    assert waiting.kinds() == ["shell", "createFile"]
    assert not (waiting.workspace / "build").exists()
    assert waiting.call("approve", waiting.run_id) == 2
    assert waiting.out == ""
    assert "waits for approval" in waiting.fault()


def test_deny_goes_on_without_it(waiting: Caller) -> None:
    """Design: deny answers it with policyDenied and goes on; the reason is told."""
    assert waiting.call("deny", waiting.run_id, "--reason", "the release needs it") == 0
    denied, created = waiting.said()["events"]
    assert denied["type"] == "policyDenied"
    assert denied["reason"] == "the user said no: the release needs it"
    assert created["success"] is True
    assert (waiting.workspace / "build" / "o").exists()


@pytest.mark.parametrize("command", ["approve", "deny"])
@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("op-9",), "'op-9' does not wait for approval; cleanup does"),
        (("op-2",), "'op-2' does not wait for approval; cleanup does"),
        (("",), "'' does not wait for approval; cleanup does"),
    ],
)
@pytest.mark.one_in(2)
def test_an_unknown_operation_is_a_mistake(
    waiting: Caller, command: str, words: tuple[str, ...], fault: str
) -> None:
    """A clear error, nothing executed: exit status 2."""
    assert waiting.call(command, waiting.run_id, *words) == 2
    assert waiting.out == ""
    assert fault in waiting.fault()
    assert (waiting.workspace / "build").exists()
    assert not (waiting.workspace / "b.txt").exists()


@pytest.mark.with_git
def test_an_unknown_run_is_a_mistake(waiting: Caller) -> None:
    """For each command that takes one."""
    for command in ("approve", "deny", "resume", "show", "log", "diff", "undo"):
        assert waiting.call(command, "run_000000000000") == 2, command
        assert waiting.out == ""
        assert "run_000000000000" in waiting.fault()


@pytest.mark.with_git
def test_one_approval_after_the_other(caller: Caller) -> None:
    """They may end with 3 again; `--always` answers the like for the rest of the run."""
    push = {"type": "shell", "command": "git push"}
    again = {"type": "shell", "command": "mkdir build; rm -r build"}
    assert caller.run(REMOVE, push, again) == 3
    assert caller.call("approve", caller.run_id, "--always") == 3
    assert caller.kinds() == ["shell", "approvalRequired"]
    assert caller.call("deny", caller.run_id, "op-2") == 0
    assert caller.kinds() == ["policyDenied", "shell"]


@pytest.mark.parametrize(
    ("command", "answer", "type_"),
    [
        ("approve", {"approval": {"operationId": "cleanup", "decision": "approved"}}, "shell"),
        ("approve", {"type": "userMessage", "content": "approved"}, "shell"),
        ("approve", {"type": "userMessage", "content": "denied"}, "policyDenied"),
        ("deny", {"approval": {"operationId": "cleanup", "decision": "denied"}}, "policyDenied"),
    ],
)
@pytest.mark.one_in(2)
def test_the_answer_may_come_on_stdin(waiting: Caller, command: str, answer: object, type_: str) -> None:
    """`-` reads the answer as JSON: a structured approval, or a userMessage."""
    assert waiting.pipe(json.dumps(answer), command, waiting.run_id, "-") == 0
    assert waiting.kinds() == [type_, "createFile"]


@pytest.mark.with_git
def test_options_hold_for_an_answer_on_stdin_too(caller: Caller) -> None:
    """`--always` and `--reason` say more than the message does."""
    again = {"type": "shell", "command": "mkdir build; rm -r build"}
    said = json.dumps({"type": "userMessage", "content": "approved"})
    assert caller.run(REMOVE, again, {"type": "shell", "command": "git push"}) == 3
    assert caller.pipe(said, "approve", caller.run_id, "-", "--always") == 3
    assert caller.kinds() == ["shell", "shell", "approvalRequired"]
    said = json.dumps({"type": "userMessage", "content": "denied"})
    assert caller.pipe(said, "deny", caller.run_id, "-", "--reason", "not yet") == 0
    assert caller.said()["events"][0]["reason"] == "the user said no: not yet"


@each_row(
    ("command", "answer"),
    [
        ("approve", "approved"),
        ("approve", '{"type": "userMessage", "content": "ok"}'),
        ("approve", '{"approval": {"operationId": "op-1", "decision": "approved"}}'),
        ("deny", '{"type": "userMessage", "content": "approved"}'),
    ],
)
def test_an_answer_that_is_none_executes_nothing(waiting: Caller, command: str, answer: str) -> None:
    """Exit status 2, one line; `deny` never approves."""
    assert waiting.pipe(answer, command, waiting.run_id, "-") == 2
    assert waiting.out == ""
    waiting.fault()
    assert (waiting.workspace / "build").exists()


def test_the_policy_of_a_run_is_kept(caller: Caller) -> None:
    """What it was begun with it goes on with, unless an option says else."""
    file = caller.message(REMOVE, {"type": "shell", "command": "ls"})
    assert caller.call("run", file, "--policy", "standard", "--sandbox", "off") == 3
    assert caller.call("approve", caller.run_id, "--policy", "restrictive") == 0
    assert caller.kinds() == ["policyDenied", "policyDenied"], "judged by the policy named now"


# --- looking ---------------------------------------------------------------------------------------


def test_runs_are_listed_apart_from_sessions(waiting: Caller) -> None:
    """`list --runs`; a run is no session."""
    assert waiting.call("list", "--runs", "--json") == 0
    (entry,) = map(json.loads, waiting.out.splitlines())
    assert waiting.run_id in entry.values()
    assert waiting.call("list", "--runs") == 0
    assert waiting.run_id in waiting.out
    assert "awaiting approval" in waiting.out
    assert waiting.call("list", "--json") == 0
    assert waiting.out == ""


def test_show_and_log_take_a_run(waiting: Caller) -> None:
    """`show` and `log` tell of a run as of a session."""
    assert waiting.call("show", waiting.run_id) == 0
    assert "a.txt" in waiting.out
    assert waiting.call("log", waiting.run_id, "--json") == 0
    kinds = [json.loads(line)["kind"] for line in waiting.out.splitlines()]
    assert kinds[0] == "run_started"
    assert "approval_asked" in kinds


@pytest.mark.with_git
@pytest.mark.skipif(shutil.which("git") is None, reason="checkpoints need git")
def test_without_a_session_the_latest_run_is_meant(caller: Caller) -> None:
    """README, commands: where there is no session, `show`, `log`, `diff` and `undo` mean the latest run."""
    caller.run({**CREATE, "path": "first.txt"})
    assert caller.call("list") == 0
    assert " list --runs`" in caller.out
    for command in ("show", "log", "diff"):
        assert (caller.call(command), caller.err) == (0, "")
        assert "first.txt" in caller.out
    caller.run({**CREATE, "path": "second.txt"})
    for command in ("show", "log", "diff"):
        assert caller.call(command) == 0
        assert "second.txt" in caller.out
        assert "first.txt" not in caller.out
        assert "this is the latest of 2 runs" in caller.fault()
    assert caller.call("undo") == 0
    assert not (caller.workspace / "second.txt").exists()
    assert (caller.workspace / "first.txt").exists()


@pytest.mark.with_git
@pytest.mark.skipif(shutil.which("git") is None, reason="checkpoints need git")
def test_undo_brings_the_bytes_back(caller: Caller) -> None:
    """Checkpoints hold here too: diff shows what a run changed, undo takes it back, --redo again."""
    old = b"\x00\xff old\r\nno newline"
    (caller.workspace / "kept.bin").write_bytes(old)
    change = {"type": "createFile", "path": "kept.bin", "content": "new", "overwrite": True}
    by_command = {"type": "shell", "command": "echo >> build/o; chmod +x build/o"}
    assert caller.run(change, by_command, CREATE) == 0
    run_id = caller.run_id
    assert caller.call("diff", run_id) == 0
    assert all(name in caller.out for name in ("kept.bin", "build/o", "a.txt"))
    assert caller.call("undo", run_id) == 0
    assert (caller.workspace / "kept.bin").read_bytes() == old
    assert (caller.workspace / "build" / "o").read_bytes() == b"kept\n"
    assert not (caller.workspace / "a.txt").exists()
    assert caller.call("undo", run_id, "--redo") == 0
    assert (caller.workspace / "kept.bin").read_bytes() == b"new"
    assert (caller.workspace / "a.txt").exists()


# --- interrupted -----------------------------------------------------------------------------------


def test_a_run_that_was_killed_is_finished_and_nothing_done_twice(caller: Caller) -> None:
    """Design: a command that had started is never started again, its event says so; the rest is done."""
    marker = new_marker()
    command = f"echo started >> begun; sleep {marker}"
    file = caller.message(CREATE, {"type": "shell", "id": "slow", "command": command}, REMOVE, SAY)
    begun = caller.workspace / "begun"
    with none_left(marker):
        has_begun = partial(has_text, begun)
        assert kill_when(caller.home, ("run", file, "--sandbox", "off"), has_begun)
    assert caller.call("approve", caller.run_id) == 2, "it does not wait"
    assert caller.call("resume", caller.run_id) == 3
    created, slow, _ = caller.said()["events"]
    assert created["success"] is True
    assert (slow["operationId"], slow["command"]) == ("slow", command)
    assert (slow["success"], slow["error"]) == (False, NOT_RUN_AGAIN)
    assert "exitCode" not in slow
    assert begun.read_text() == "started\n"
    assert caller.call("resume", caller.run_id) == 3, "it waits, and is asked again"
    assert caller.call("resume", caller.run_id, "--yes") == 0, "as of a session"
    assert caller.kinds() == ["createFile", "shell", "shell", "message"]
    assert caller.call("resume", caller.run_id) == 2
    assert "is done" in caller.fault()


def test_resume_of_a_run_takes_no_reply(waiting: Caller) -> None:
    """`--accept` is for sessions."""
    assert waiting.call("resume", waiting.run_id, "--accept", "x") == 2
    assert "--accept is for sessions" in waiting.fault()


def test_ctrl_c_ends_the_command_and_the_run_can_be_resumed(caller: Caller) -> None:
    """Design, exit status: 130 interrupted; one line; nothing is left running."""
    marker = new_marker()
    slow = {"type": "shell", "command": f"touch begun; sleep {marker}", "timeout": 60_000}
    file = caller.message(slow, CREATE)
    with none_left(marker), started(caller.home, "run", file, "--sandbox", "off") as process:
        wait_until((caller.workspace / "begun").exists)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, out) == (130, "")
    assert re.fullmatch(r"codingagent: stopped; .*resume RUN_ID.*\n", err)
    assert not (caller.workspace / "a.txt").exists()
    assert caller.call("resume", caller.run_id) == 0
    interrupted, created = caller.said()["events"]
    assert interrupted["error"] == NOT_RUN_AGAIN
    assert created["success"] is True


def test_the_record_is_for_its_owner_alone(waiting: Caller) -> None:
    """What a program sent may hold secrets: the journal is not for everyone's eyes."""
    journal = waiting.home / "sessions" / "runs" / waiting.run_id / "journal.jsonl"
    assert journal.stat().st_mode & 0o077 == 0
