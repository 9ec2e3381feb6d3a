"""`Space` for real: files, processes, approvals, restarts. Specification 001 and design section 7."""

import gc
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from codingagent import MessageError, Space, validate_events_message
from codingagent.agent.space import Run
from codingagent.errors import UsageError, WorkError
from codingagent.protocols.json.wire import (
    CreateFileEvent,
    CreateFileOperation,
    ErrorEvent,
    Event,
    PolicyDeniedEvent,
    ReadFileEvent,
    ShellEvent,
    to_wire,
)
from tests.helpers import new_marker, none_left, use_no_git
from tests.killing import none_outlives
from tests.rows import each_row
from tests.sandboxes import needs_bwrap

REMOVE = {"type": "shell", "command": "rm -r build"}
SAY = {"type": "message", "content": "hello"}


def create(path: str, content: str = "x", **more: object) -> dict[str, object]:
    return {"type": "createFile", "path": path, "content": content, **more}


def edit(path: str, *pairs: tuple[str, str]) -> dict[str, object]:
    edits = [{"oldContent": old, "newContent": new} for old, new in pairs]
    return {"type": "editFile", "path": path, "edits": edits}


def shell(command: str, **more: object) -> dict[str, object]:
    return {"type": "shell", "command": command, **more}


@pytest.fixture(name="project")
def _project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "build").mkdir(parents=True)
    (project / "build" / "o").touch()
    use_no_git(project)
    return project


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(name="space")
def _space(project: Path) -> Iterator[Space]:
    with Space(project, sandbox="off") as space:
        yield space


@pytest.fixture(name="kept")
def _kept(project: Path, home: Path) -> Iterator[Space]:
    with Space(project, sandbox="off", home=home) as space:
        yield space


def events(run: Run) -> list[dict[str, Any]]:
    """Return a run's events as they go out; they are valid as a message."""
    said = to_wire(run.message())
    validated = validate_events_message(said)
    assert validated.success, validated.error
    return list(said["events"])


def one(space: Space, operation: Mapping[str, object]) -> dict[str, Any]:
    """Executes one operation and gives its event."""
    run = space.run(operations=[operation])
    assert status_of(run) == "completed"
    (event,) = events(run)
    return event


def status_of(run: Run) -> str:
    """Return what it says now; of an attribute type checkers remember what it said before."""
    return run.status


def kinds(run: Run) -> list[str]:
    return [event.type for event in run.events]


# --- the message -----------------------------------------------------------------------------------


def test_five_lines_are_enough(project: Path) -> None:
    """A Space is usable in five lines, typed, as a context manager."""
    with Space(project) as space:
        run = space.run(operations=[shell("echo hi")])
    assert status_of(run) == "completed"
    assert isinstance(run.events[-1], ShellEvent)
    assert run.events[-1].stdout == "hi\n"


def test_operations_may_come_in_any_form(space: Space) -> None:
    """Values of JSON, our own values, a message as text, as bytes or as a value."""
    own = CreateFileOperation(path="b", content="x")
    assert kinds(space.run(operations=[SAY, own])) == ["message", "createFile"]
    assert kinds(space.run(operations=iter([SAY]))) == ["message"]
    whole = {"protocolVersion": "1.0", "operations": [SAY]}
    for message in (whole, json.dumps(whole), json.dumps(whole).encode()):
        assert kinds(space.run(message=message)) == ["message"]


def test_either_operations_or_a_message(space: Space) -> None:
    """Neither, and both, are the caller's mistake."""
    with pytest.raises(UsageError, match="either operations or a message"):
        space.run()
    with pytest.raises(UsageError, match="either operations or a message"):
        space.run(operations=[], message="{}")


@each_row("message", ["", "[]", "{}", '{"protocolVersion": "2.0", "operations": []}', b"\xff", "[" * 100_000])
def test_what_is_no_message_is_refused_whole(project: Path, home: Path, message: Any) -> None:
    """Design: only a message that is not an operations message at all is refused whole."""
    for kept in (None, home):
        with Space(project, home=kept, sandbox="off") as space, pytest.raises(MessageError):
            space.run(message=message)
    assert not (home / "sessions" / "runs").exists(), "no run was begun"


@pytest.mark.parametrize("value", [{("a",): 1}, {1: 2}, {"type": "message", "content": b"x"}, 7])
def test_what_is_no_json_is_one_malformed_operation(space: Space, kept: Space, value: Any) -> None:
    """Specification 001: a malformed operation is skipped; with a home and without."""
    for each in (space, kept):
        message = {"protocolVersion": "1.0", "operations": [value, SAY]}
        run = each.run(message=message)
        assert kinds(run) == ["error", "message"]


def test_a_value_that_holds_itself_is_refused(kept: Space) -> None:
    """It can't be kept; that is said, and nothing is executed."""
    value: dict[str, object] = {}
    value["more"] = value
    with pytest.raises(MessageError, match="is no value of JSON"):
        kept.run(operations=[{**SAY, **value}])


# --- order, one event each, degradation ------------------------------------------------------------


def test_each_operation_gives_one_event_in_order(space: Space) -> None:
    """Specification 001: operation N completes before N+1 starts; events in operation order."""
    run = space.run(
        operations=[
            create("a", "1"),
            shell("cat a; printf 2 > a"),
            {"type": "readFile", "path": "a", "id": "mine"},
            edit("a", ("2", "3")),
            {"type": "readFile", "path": "a"},
            {"type": "deleteFile", "path": "a"},
            SAY,
        ]
    )
    told = events(run)
    types = ["createFile", "shell", "readFile", "editFile", "readFile", "deleteFile", "message"]
    assert [event["type"] for event in told] == types
    names = ["op-1", "op-2", "mine", "op-4", "op-5", "op-6", "op-7"]
    assert [event["operationId"] for event in told] == names
    assert told[1]["stdout"] == "1"
    assert (told[2]["content"], told[4]["content"]) == ("2", "3")
    times = [event["timestamp"] for event in told]
    assert times == sorted(times)
    assert all(time.endswith("Z") for time in times), "UTC, ISO 8601 with Z"


def test_ids_may_be_the_same(space: Space) -> None:
    """001 asks for no unique ids: both are executed, each under its name."""
    run = space.run(operations=[create("a", id="x"), create("b", id="x")])
    assert [event["operationId"] for event in events(run)] == ["x", "x"]


BAD = {
    "fails": ({"type": "readFile", "path": "nope"}, "readFile"),
    "malformed": ({"type": "createFile"}, "error"),
    "no type": ({"type": "rename"}, "error"),
    "no object": ("ls", "error"),
    "denied": (shell("sudo id"), "policyDenied"),
    "fails as a command": (shell("exit 1"), "shell"),
}


@pytest.mark.parametrize(("bad", "type_"), BAD.values(), ids=BAD)
def test_whatever_fails_the_rest_goes_on(space: Space, bad: Any, type_: str) -> None:
    """Specification 001, graceful degradation: continue; skip and continue; denial and continue."""
    run = space.run(message={"protocolVersion": "1.0", "operations": [create("a"), bad, SAY]})
    assert status_of(run) == "completed", "an operation that failed is a result"
    first, middle, last = events(run)
    assert (first["success"], last["success"]) == (True, True)
    assert middle["type"] == type_
    assert middle["operationId"] == "op-2"
    assert not middle.get("success")
    if type_ == "error":
        assert middle["category"] == "validation"
        assert middle["message"].startswith("operations[1]")


_DEEP = "[" * 150 + "]" * 150
ODD = {
    "NaN": ('{"type": "shell", "command": "ls", "timeout": NaN}', "error"),
    "no end": ('{"type": "shell", "command": "ls", "timeout": 1e999}', "error"),
    "half a character": (r'{"type": "message", "content": "\ud800"}', "error"),
    "half a name": (r'{"type": "createFile", "path": "\udfff", "content": ""}', "error"),
    "null": ('{"type": "message", "id": null, "content": "x"}', "error"),
    "named twice": ('{"type": "createFile", "type": "message", "content": "x"}', "message"),
    "unknown fields": ('{"type": "message", "content": "x", "NaN": NaN, "x": {}}', "message"),
    "nested": (f'{{"type": "message", "content": "x", "deep": {_DEEP}}}', "message"),
    "whole number": ('{"type": "shell", "command": "true", "timeout": 1000.0}', "shell"),
}


@pytest.mark.parametrize(("odd", "type_"), ODD.values(), ids=ODD)
@pytest.mark.one_in(3)
def test_whatever_json_holds_the_good_ones_are_executed(
    space: Space, kept: Space, odd: str, type_: str
) -> None:
    """Bad input: the event that 001 asks for, the good operations executed; with a home too."""
    good = json.dumps(create("a", overwrite=True))
    message = f'{{"operations": [{good}, {odd}, {json.dumps(SAY)}], "protocolVersion": "1.0"}}'
    for each in (space, kept):
        run = each.run(message=message)
        assert kinds(run) == ["createFile", type_, "message"]
        assert run.status == "completed"
        assert events(run)[0]["success"] is True


@pytest.mark.outside_dev
def test_a_system_fault_halts_the_run(project: Path, home: Path) -> None:
    """Specification 001: a system error may halt the run, with the status error; and one event says it."""
    for kept in (None, home):
        moved = project.with_name("moved")
        with Space(project, sandbox="off", home=kept) as space:
            run = space.run(operations=[create("a", overwrite=True), shell("mv ../project ../moved"), SAY])
        assert status_of(run) == "error"
        assert kinds(run) == ["createFile", "shell", "error"]
        assert isinstance(run.events[-1], ErrorEvent)
        assert run.events[-1].category == "system"
        assert "was moved or replaced" in run.events[-1].message
        moved.rename(project)


@pytest.mark.outside_dev
def test_a_run_that_was_halted_can_go_on(project: Path, home: Path) -> None:
    """Once the machine is well again the rest is executed; what was done is not done again."""
    moved = project.with_name("moved")
    with Space(project, sandbox="off", home=home) as space:
        run = space.run(operations=[shell("echo >> a; mv ../project ../moved"), SAY])
        assert status_of(run) == "error"
    moved.rename(project)
    with Space(project, sandbox="off", home=home) as space:
        again = space.open_run(run.run_id)
        assert status_of(again) == "error", "it was halted, and waits for nobody"
        assert again.pending_approval is None
        again.go_on()
        assert status_of(again) == "completed"
        assert kinds(again) == ["shell", "message"]
    assert (project / "a").read_text() == "\n"


def test_each_event_is_told_as_it_comes(project: Path) -> None:
    """`on_event` gets each event when it is there, before the next operation starts."""
    told: list[tuple[str, bool]] = []

    def tell(event: Event) -> None:
        told.append((event.type, (project / "b").exists()))

    with Space(project, sandbox="off", on_event=tell) as space:
        run = space.run(operations=[create("a"), create("b"), REMOVE, SAY])
        assert told == [("createFile", False), ("createFile", True), ("approvalRequired", True)]
        run.deny()
    assert [type_ for type_, _ in told[3:]] == ["policyDenied", "message"]


# --- files -----------------------------------------------------------------------------------------


def test_a_file_is_not_overwritten_unless_that_is_said(space: Space, project: Path) -> None:
    """Specification 001, createFile: overwrite false and the file exists: fails; true: replaced."""
    assert one(space, create("d/e/a", "1"))["bytesWritten"] == 1
    refused = one(space, create("d/e/a", "2"))
    assert refused["success"] is False
    assert "already exists" in refused["error"]
    assert "bytesWritten" not in refused
    assert (project / "d/e/a").read_text() == "1"
    assert one(space, create("d/e/a", "22", overwrite=True))["bytesWritten"] == 2
    assert (project / "d/e/a").read_text() == "22"


@pytest.mark.parametrize("content", ["", "no newline", "a\r\nb\r\n", "\ufeffmark\n", "é\x00\x0c\u2028😀"])
def test_bytes_are_exactly_as_sent(space: Space, project: Path, content: str) -> None:
    """Content is the file: no newline is added, no line end changed, also not of a file with CRLF."""
    (project / "a").write_bytes(b"old\r\nlines\r\n")
    data = content.encode()
    made = one(space, create("a", content, overwrite=True))
    assert made["bytesWritten"] == len(data)
    assert (project / "a").read_bytes() == data
    read = one(space, {"type": "readFile", "path": "a"})
    assert (read["content"], read["size"], read["encoding"]) == (content, len(data), "utf-8")


def test_base64_both_ways(space: Space, project: Path) -> None:
    """Specification 001, content encoding: base64 for binary files."""
    assert one(space, create("a", "AP+A\nCg==", encoding="base64"))["bytesWritten"] == 4
    assert (project / "a").read_bytes() == b"\x00\xff\x80\n"
    read = one(space, {"type": "readFile", "path": "a", "encoding": "base64"})
    assert (read["content"], read["encoding"], read["size"]) == ("AP+ACg==", "base64", 4)
    as_text = one(space, {"type": "readFile", "path": "a"})
    assert as_text["success"] is False
    assert "ask for it with encoding base64" in as_text["error"]
    assert "content" not in as_text


@each_row("content", ["?", "AAA", "A===", "é"])
def test_invalid_base64_writes_nothing(space: Space, project: Path, content: str) -> None:
    """Bad input: the failure event of that operation."""
    made = one(space, create("a", content, encoding="base64"))
    assert (made["success"], made["type"]) == (False, "createFile")
    assert "no valid base64" in made["error"]
    assert not (project / "a").exists()


@pytest.mark.parametrize(
    ("old", "pairs", "new"),
    [
        (b"x x\n", [("x", "y")], b"y x\n"),
        (b"a b", [("a", "b"), ("b b", "c")], b"c"),
        (b"a\r\nb\r\nc", [("b", "B")], b"a\r\nB\r\nc"),
        (b"a\r\nb", [("a\r\nb", "c\n")], b"c\n"),
        (b"\xef\xbb\xbfa\n", [("a", "b")], b"\xef\xbb\xbfb\n"),
        (b"a\n", [("\n", "")], b"a"),
        (b"a", [], b"a"),
    ],
)
def test_edits_apply_in_order_to_the_first_occurrence(
    space: Space, project: Path, old: bytes, pairs: list[tuple[str, str]], new: bytes
) -> None:
    """Specification 001, editFile; bytes outside of it are untouched."""
    (project / "a").write_bytes(old)
    event = one(space, edit("a", *pairs))
    assert (event["success"], event["editsApplied"]) == (True, len(pairs))
    assert (project / "a").read_bytes() == new


@pytest.mark.parametrize(
    ("pairs", "error"),
    [
        ([("a", "b"), ("nowhere", "c")], "edits[1].oldContent not found"),
        ([("a", "b"), ("a", "c")], "edits[1].oldContent not found"),
        ([("", "c")], "edits[0].oldContent is empty"),
    ],
)
def test_all_edits_must_succeed(
    space: Space, project: Path, pairs: list[tuple[str, str]], error: str
) -> None:
    """Specification 001, editFile: if oldContent is not found it fails; all or nothing."""
    (project / "a").write_bytes(b"a")
    event = one(space, edit("a", *pairs))
    assert event["success"] is False
    assert error in event["error"]
    assert "editsApplied" not in event
    assert (project / "a").read_bytes() == b"a"


def test_only_what_is_there_is_edited_read_or_deleted(space: Space) -> None:
    """Specification 001: a file that does not exist fails each of them."""
    for operation in (
        edit("nope", ("a", "b")),
        {"type": "readFile", "path": "nope"},
        {"type": "deleteFile", "path": "nope"},
    ):
        event = one(space, operation)
        assert event["error"] == "File 'nope' not found"
        assert (event["path"], event["success"]) == ("nope", False)


@pytest.mark.parametrize("path", ["build", "build/", "empty", "."])
def test_a_folder_is_never_deleted(space: Space, project: Path, path: str) -> None:
    """Specification 001, deleteFile: cannot delete directories."""
    (project / "empty").mkdir()
    event = one(space, {"type": "deleteFile", "path": path})
    assert event["success"] is False
    assert "folder" in event["error"]
    assert (project / "build" / "o").exists()
    assert (project / "empty").is_dir()


def test_files_are_confined_to_the_workspace(space: Space, project: Path, tmp_path: Path) -> None:
    """Design: whatever the text says, no file outside the workspace is read or written."""
    (tmp_path / "secret").write_text("s")
    (project / "link").symlink_to(tmp_path)
    for operation in (
        {"type": "readFile", "path": "link/secret"},
        create("link/new"),
        create("link/secret", overwrite=True),
        edit("link/secret", ("s", "t")),
        {"type": "deleteFile", "path": "link/secret"},
        create(".git/config"),
    ):
        event = one(space, operation)
        assert event["success"] is False
        assert "REJECTED" in event["error"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project", "secret"]
    assert (tmp_path / "secret").read_text() == "s"


# --- commands --------------------------------------------------------------------------------------


def test_a_command_tells_its_two_streams_apart(space: Space) -> None:
    """Specification 001, shell: stdout and stderr are captured, the exit code is returned."""
    event = one(space, shell("echo out; echo err >&2; exit 3"))
    assert (event["stdout"], event["stderr"], event["exitCode"]) == ("out\n", "err\n", 3)
    assert event["success"] is False
    assert "error" not in event, "a command's failure is no error of the system"
    assert isinstance(event["durationMs"], int)


def test_a_command_that_a_signal_ended(space: Space) -> None:
    """POSIX: 128 and the signal's number."""
    event = one(space, shell("kill -9 $$"))
    assert (event["exitCode"], event["success"]) == (137, False)


def test_output_is_returned_as_it_came_up_to_a_mebibyte(space: Space) -> None:
    """More than the 4,000 characters of a chat; controls and carriage returns are kept."""
    event = one(space, shell(r"printf 'a\r\033[1mb\n'; head -c 100000 /dev/zero | tr '\0' x"))
    assert event["stdout"].startswith("a\r\x1b[1mb\n")
    assert len(event["stdout"]) == 100_008
    long = one(space, shell("head -c 3000000 /dev/zero | tr '\\0' x"))["stdout"]
    assert long.endswith("... [output truncated]")
    assert len(long) < 2**20 + 100


def test_a_command_runs_in_its_folder(space: Space, project: Path) -> None:
    """Specification 001, shell: cwd is a relative path; missing, a file and outside are refused."""
    (project / "a").touch()
    assert one(space, shell("pwd"))["stdout"] == f"{project}\n"
    assert one(space, shell("pwd", cwd="build"))["stdout"] == f"{project}/build\n"
    assert one(space, shell("pwd", cwd="nope"))["error"] == "Folder 'nope' not found"
    assert one(space, shell("pwd", cwd="a"))["error"] == "'a' is not a folder"
    (project / "out").symlink_to("/")
    assert "REJECTED" in one(space, shell("pwd", cwd="out"))["error"]


def test_a_command_has_its_variables(space: Space) -> None:
    """Specification 001, shell: additional environment variables; for this command, and as they are."""
    odd = "a b'\"$(id)\n=é"
    event = one(space, shell('printf %s "$ODD"; test "$HOME" = /x', env={"ODD": odd, "HOME": "/x"}))
    assert (event["stdout"], event["exitCode"]) == (odd, 0)
    assert one(space, shell('printf %s "$ODD"'))["stdout"] == ""


@each_row("env", [{"A B": ""}, {"": "x"}, {"A=B": "x"}, {"A": "x\0"}, {"é": ""}])
def test_what_is_no_variable_is_refused(space: Space, env: dict[str, str]) -> None:
    """It fails when it is executed; nothing is started."""
    event = one(space, shell("echo hi", env=env))
    assert event["success"] is False
    assert "exitCode" not in event
    assert "variable" in event["error"]


@pytest.mark.parametrize("command", ["", " \n", "a\0b"])
def test_a_command_that_is_none_is_refused(space: Space, command: str) -> None:
    """Design: an empty command fails when it is executed."""
    event = one(space, shell(command))
    assert event["success"] is False
    assert "exitCode" not in event


def test_a_command_is_ended_at_its_time_limit(space: Space) -> None:
    """Design: 30 s unless said, timeout in ms, then the whole tree is ended; exit code 124, timedOut."""
    marker = new_marker()
    with none_left(marker):
        event = one(space, shell(f"echo hi; setsid sleep {marker} & sleep {marker}", timeout=4000))
    assert (event["exitCode"], event["timedOut"], event["success"]) == (124, True, False)
    assert event["stdout"] == "hi\n"
    assert event["durationMs"] >= 4000


def test_the_time_limit_without_one_is_the_spaces(project: Path) -> None:
    """`command_timeout` is for a command that names none."""
    with Space(project, sandbox="off", command_timeout=1) as space:
        assert one(space, shell("sleep 60"))["timedOut"] is True
        assert "timedOut" not in one(space, shell("sleep 1.1", timeout=60_000))


# --- policy ----------------------------------------------------------------------------------------


def test_restrictive_reads_and_does_nothing_else(project: Path) -> None:
    """Design, policy: restrictive is read-only, without commands."""
    (project / "a").write_text("x")
    with Space(project, "restrictive", sandbox="off") as space:
        run = space.run(
            operations=[
                {"type": "readFile", "path": "a"},
                create("b"),
                edit("a", ("x", "y")),
                {"type": "deleteFile", "path": "a"},
                shell("ls"),
                SAY,
            ]
        )
    assert kinds(run) == ["readFile", *["policyDenied"] * 4, "message"]
    denied = [event for event in run.events if isinstance(event, PolicyDeniedEvent)]
    types = ["createFile", "editFile", "deleteFile", "shell"]
    assert [event.operation_type for event in denied] == types
    assert all(event.suggestion for event in denied)
    assert (project / "a").read_text() == "x"
    assert not (project / "b").exists()


def test_permissive_asks_nothing_and_blocks_the_same(project: Path) -> None:
    """Design, policy: permissive."""
    with Space(project, "permissive", sandbox="off") as space:
        run = space.run(operations=[REMOVE, create(".vscode/tasks.json"), shell("sudo id")])
    assert status_of(run) == "completed"
    assert kinds(run) == ["shell", "createFile", "policyDenied"]
    assert not (project / "build").exists()


def test_standard_asks_for_what_is_easily_regretted(space: Space) -> None:
    """Design, policy: standard is the default everywhere; protected files too."""
    command = space.run(operations=[REMOVE]).pending_approval
    assert command is not None
    assert (command.operation_type, command.details.command) == ("shell", "rm -r build")
    assert command.details.path is None
    path = space.run(operations=[create(".vscode/tasks.json")]).pending_approval
    assert path is not None
    assert (path.operation_type, path.details.path) == ("createFile", ".vscode/tasks.json")
    assert path.details.command is None
    assert path.details.policy == "filesystem.approval_required: **/.vscode"


def test_a_variable_that_loads_other_programs_is_asked_for(space: Space) -> None:
    """What `LD_PRELOAD=x ls` asks for in a line, `env` does not get by; PATH every environment sets."""
    run = space.run(operations=[shell("ls", env={"LD_PRELOAD": "./x.so"}), SAY])
    assert run.pending_approval is not None
    assert "LD_PRELOAD" in run.pending_approval.reason
    run.deny()
    assert kinds(run) == ["policyDenied", "message"]
    assert one(space, shell("ls", env={"PATH": os.environ["PATH"]}))["success"] is True


def test_an_approval_holds_for_these_variables_and_this_folder(space: Space, project: Path) -> None:
    """A yes holds for exactly what was shown: the line alone is not all that would be done."""
    run = space.run(operations=[shell("rm -r $WHAT", env={"WHAT": "build"})])
    assert status_of(run) == "awaiting_approval"
    run.approve()
    assert status_of(run) == "completed"
    assert not (project / "build").exists()


@pytest.fixture(name="listed")
def _listed(project: Path, tmp_path: Path) -> Iterator[Space]:
    """A space with an allow list."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[shell]\nallowed_commands = ["ls", "git status"]\n')
    with Space(project, policy, sandbox="off") as space:
        yield space


@pytest.mark.parametrize("command", ["cat x", "ls; cat x", "ls $(cat x)", "git push", "$x", "'"])
def test_what_is_not_allowed_is_denied_with_the_list(listed: Space, command: str) -> None:
    """Design: policyDenied has reason and suggestion."""
    event = one(listed, shell(command))
    assert event["type"] == "policyDenied"
    assert event["reason"] == "Command not in allowed list"
    assert event["suggestion"] == "Allowed commands: ls, git status"


def test_what_is_allowed_is_executed(listed: Space) -> None:
    """A name is judged as it is written; variables that say what else runs are refused."""
    assert one(listed, shell("ls build", cwd=""))["stdout"] == "o\n"
    assert one(listed, shell("ls build", env={"LC_ALL": "C"}))["stdout"] == "o\n"


@pytest.mark.parametrize("name", ["PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "HOME", "GIT_DIR"])
def test_under_a_list_no_variable_chooses_what_runs(listed: Space, name: str) -> None:
    """An allowed command must not be made to run one that is not."""
    for operation in (shell("ls", env={name: "."}), shell(f"{name}=. ls")):
        event = one(listed, operation)
        assert event["type"] == "policyDenied"
        assert event["reason"].startswith(f"{name} decides which programs run")


def test_a_policy_that_cant_be_used_is_said(project: Path, tmp_path: Path) -> None:
    """A mistyped policy is no policy, and never none at all."""
    (tmp_path / "p.toml").write_text("[shel]\n")
    for policy in ("strict", tmp_path / "none.toml", tmp_path / "p.toml"):
        with pytest.raises(UsageError):
            Space(project, policy)


# --- approvals -------------------------------------------------------------------------------------


@pytest.fixture(name="start", params=["in memory", "kept"])
def _start(request: pytest.FixtureRequest, project: Path, home: Path) -> Iterator[Callable[..., Run]]:
    """Starts a run, in memory and with a home."""
    kept = home if request.param == "kept" else None
    with Space(project, sandbox="off", home=kept) as space:
        yield lambda *operations: space.run(operations=operations)


Start = Callable[..., Run]


def test_a_run_pauses_at_the_first_that_needs_a_yes(start: Start, project: Path) -> None:
    """Specification 001, approval flow: awaiting_approval, with approvalRequired as the last event."""
    run = start(create("a"), REMOVE, create("b"))
    assert status_of(run) == "awaiting_approval"
    assert kinds(run) == ["createFile", "approvalRequired"]
    assert run.pending_approval == run.events[-1]
    assert run.pending_approval is not None
    assert run.pending_approval.operation_id == "op-2"
    assert (project / "build" / "o").exists()
    assert not (project / "b").exists(), "what comes behind waits too"


def test_approved_it_is_executed_and_the_rest(start: Start, project: Path) -> None:
    """Specification 001: if approved, execute the operation and return the event."""
    run = start(create("a"), REMOVE, create("b"))
    run.approve("op-2")
    assert status_of(run) == "completed"
    assert run.pending_approval is None
    assert kinds(run) == ["createFile", "shell", "createFile"], "all so far, the question answered"
    assert not (project / "build").exists()
    assert (project / "b").exists()


def test_denied_the_rest_goes_on(start: Start, project: Path) -> None:
    """Specification 001: if denied, return policyDenied and continue; the reason is told."""
    run = start(REMOVE, create("b"))
    run.deny("op-1", "the release needs it")
    assert status_of(run) == "completed"
    assert kinds(run) == ["policyDenied", "createFile"]
    denied = events(run)[0]
    assert denied["reason"] == "the user said no: the release needs it"
    assert (denied["operationType"], denied["operationId"]) == ("shell", "op-1")
    assert denied["suggestion"]
    assert (project / "build" / "o").exists()


def test_it_pauses_again_if_it_must(start: Start) -> None:
    """Each question needs its own answer, also for the same line."""
    run = start(REMOVE, shell("git push"), REMOVE)
    for name in ("op-1", "op-2", "op-3"):
        assert run.pending_approval is not None
        assert run.pending_approval.operation_id == name
        run.deny()
    assert status_of(run) == "completed"


def test_what_does_not_wait_is_not_approved(start: Start, project: Path) -> None:
    """Approving twice, an unknown id, a run that is not waiting: clear errors, nothing executed."""
    run = start(REMOVE, shell("git push"))
    before = run.events
    for name in ("op-2", "op-9", ""):
        with pytest.raises(UsageError, match=f"'{name}' does not wait for approval; op-1 does"):
            run.approve(name)
    assert run.events == before
    assert (project / "build").exists()
    run.approve("op-1")
    with pytest.raises(UsageError, match="'op-1' does not wait for approval; op-2 does"):
        run.approve("op-1")
    run.deny()
    after = run.events
    for decide in (run.approve, run.deny):
        with pytest.raises(UsageError, match=f"nothing in {run.run_id} waits for approval"):
            decide()
    assert run.events == after


def test_a_run_that_is_done_executes_nothing_more(start: Start, project: Path) -> None:
    """go_on of what is done does nothing."""
    run = start(shell("echo >> a"))
    run.go_on()
    assert status_of(run) == "completed"
    assert kinds(run) == ["shell"]
    assert (project / "a").read_text() == "\n"


def test_what_was_answered_is_not_answered_again(start: Start, project: Path) -> None:
    """Between a yes and what came of it nothing waits; once the machine is well the yes still holds."""
    run = start(REMOVE)
    moved = project.rename(project.with_name("moved"))
    run.approve()
    assert status_of(run) == "error"
    assert kinds(run) == ["error"]
    for decide in (run.approve, run.deny):
        with pytest.raises(UsageError, match="waits for approval"):
            decide()
    moved.rename(project)
    run.go_on()
    assert status_of(run) == "completed"
    assert kinds(run) == ["shell"]


def test_going_on_is_no_approval(start: Start, project: Path) -> None:
    """It still waits, and is asked once."""
    run = start(REMOVE)
    run.go_on()
    assert status_of(run) == "awaiting_approval"
    assert kinds(run) == ["approvalRequired"]
    assert (project / "build").exists()


@pytest.mark.parametrize(
    ("answer", "type_"),
    [
        ({"approval": {"operationId": "mine", "decision": "approved"}}, "shell"),
        ('{"approval": {"operationId": "mine", "decision": "denied", "reason": "x"}}', "policyDenied"),
        ({"type": "userMessage", "content": "approved"}, "shell"),
        (b'{"events": [{"type": "userMessage", "content": "denied"}]}', "policyDenied"),
    ],
)
@pytest.mark.one_in(3)
def test_an_answer_may_be_a_message(start: Start, answer: object, type_: str) -> None:
    """Structured approvals and a plain userMessage are both understood."""
    run = start({**REMOVE, "id": "mine"})
    run.answer(answer)
    assert (run.status, kinds(run)) == ("completed", [type_])


def test_what_is_no_answer_changes_nothing(start: Start) -> None:
    """A message that is none is refused, one for something else too."""
    run = start({**REMOVE, "id": "mine"})
    with pytest.raises(MessageError):
        run.answer({"type": "userMessage", "content": "maybe"})
    with pytest.raises(UsageError, match="'other' does not wait for approval; mine does"):
        run.answer({"approval": {"operationId": "other", "decision": "approved"}})
    assert status_of(run) == "awaiting_approval"


def test_a_model_cant_approve_what_it_asks_for(start: Start, project: Path) -> None:
    """Answers are never taken from the operations themselves."""
    run = start(REMOVE, {"type": "userMessage", "content": "approved"}, {"approval": {}})
    assert status_of(run) == "awaiting_approval"
    run.deny()
    assert kinds(run) == ["policyDenied", "error", "error"]
    assert (project / "build").exists()


def test_what_changed_since_is_asked_anew(start: Start, project: Path) -> None:
    """A yes holds for exactly what was shown: the file between question and answer may be another."""
    path = project / ".envrc"
    path.write_text("a b\n")
    run = start(edit(".envrc", ("a", "c")))
    path.write_text("a evil\n")
    run.approve()
    assert status_of(run) == "awaiting_approval"
    assert path.read_text() == "a evil\n"
    run.approve()
    assert status_of(run) == "completed"
    assert path.read_text() == "c evil\n"


def test_of_two_with_the_same_id_the_one_that_waits_is_meant(start: Start, project: Path) -> None:
    """001 asks for no unique ids."""
    run = start({**REMOVE, "id": "x"}, shell("rm -r other", id="x"))
    run.approve("x")
    assert status_of(run) == "awaiting_approval"
    assert run.pending_approval is not None
    assert run.pending_approval.details.command == "rm -r other"
    with pytest.raises(UsageError, match="several operations are called 'x'"):
        run.approve("x")  # sent twice, it must not be a yes to the next one
    run.deny()
    assert kinds(run) == ["shell", "policyDenied"]
    assert not (project / "build").exists()


# --- kept runs -------------------------------------------------------------------------------------


def document(home: Path, run_id: str) -> dict[str, Any]:
    found = json.loads((home / "sessions" / "runs" / f"{run_id}.json").read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def test_a_run_that_waits_is_stored_with_what_is_to_come(kept: Space, home: Path, project: Path) -> None:
    """Design: stored in `sessions/runs/RUN_ID.json`, with the operations still to come."""
    rest: list[dict[str, object]] = [{**REMOVE, "id": "r", "extra": [1]}, {"type": "bad"}, create("b")]
    run = kept.run(operations=[create("a"), *rest])
    found = document(home, run.run_id)
    message = {name: found[name] for name in ("protocolVersion", "runId", "status", "events")}
    assert message == to_wire(run.message())
    assert validate_events_message(message).success
    assert found["status"] == "awaiting_approval"
    assert found["operations"] == rest, "as they were sent"
    assert found["workspace"] == str(project)
    assert found["createdAt"] <= found["updatedAt"]
    run.approve()
    done = document(home, run.run_id)
    assert (done["status"], done["operations"]) == ("completed", [])
    assert done["events"] == events(run)


def test_a_run_survives_a_restart(project: Path, home: Path) -> None:
    """Design: it survives a restart: another space, or process, approves it and goes on."""
    with Space(project, sandbox="off", home=home) as space:
        run_id = space.run(operations=[shell("echo >> a"), REMOVE, create("b")]).run_id
    with Space(project, sandbox="off", home=home) as space:
        run = space.open_run(run_id)
        assert status_of(run) == "awaiting_approval"
        assert kinds(run) == ["shell", "approvalRequired"]
        run.approve("op-2")
        assert status_of(run) == "completed"
        assert kinds(run) == ["shell", "shell", "createFile"]
    assert (project / "a").read_text() == "\n", "what was done is not done again"
    with Space(project, sandbox="off", home=home) as space:
        done = space.open_run(run_id)
        assert status_of(done) == "completed"
        assert kinds(done) == ["shell", "shell", "createFile"]
        with pytest.raises(UsageError, match="waits for approval"):
            done.approve()


def test_there_is_one_of_each_run(kept: Space, project: Path) -> None:
    """Two handles on one run would execute the same twice."""
    run = kept.run(operations=[shell("rm -r build; echo >> a")])
    again = kept.open_run(run.run_id)
    again.approve()
    with pytest.raises(UsageError, match="waits for approval"):
        run.approve()
    assert (project / "a").read_text() == "\n"


def test_what_was_changed_since_is_not_executed(project: Path, home: Path) -> None:
    """The message of a run is known by its digest."""
    with Space(project, sandbox="off", home=home) as space:
        run_id = space.run(operations=[REMOVE, create("b")]).run_id
    path = home / "sessions" / "runs" / run_id / "message.json"
    path.write_text(path.read_text().replace('"b"', '"c"'))
    with (
        Space(project, sandbox="off", home=home) as space,
        pytest.raises(WorkError, match="was changed after it began"),
    ):
        space.open_run(run_id)


@pytest.mark.parametrize("run_id", ["run_000000000000", "a1b2c3d4", "../x", ""])
def test_a_run_that_is_not_there(kept: Space, run_id: str) -> None:
    """One line, whatever was given."""
    with pytest.raises(UsageError):
        kept.open_run(run_id)


LEAVE = "cat /tmp/left /tmp/mine; echo left >/tmp/left; mkdir -p /tmp/a/b; chmod 500 /tmp/a"


def test_each_run_has_its_own_tmp_that_is_emptied_after(project: Path, home: Path) -> None:
    """Design, sandbox: what one run leaves in /tmp, another does not find, also where it waits between."""
    needs_bwrap()
    for kept in (None, home):
        with Space(project, sandbox="require", home=kept) as space:
            waiting = space.run(operations=[shell("echo mine >/tmp/mine"), REMOVE, shell("cat /tmp/mine")])
            for _ in range(2):
                [event] = events(space.run(operations=[shell(LEAVE)]))
                assert event["stdout"] == "", "another run's /tmp"
            waiting.approve()
            assert events(waiting)[-1]["stdout"] == "mine\n"
    assert list((home / "sessions" / "runs" / "tmp").iterdir()) == []


def test_a_run_that_goes_on_elsewhere_finds_its_tmp(project: Path, home: Path) -> None:
    """The same /tmp until it ends, no matter who goes on with it."""
    needs_bwrap()
    with Space(project, sandbox="require", home=home) as space:
        waiting = space.run(operations=[shell("echo mine >/tmp/mine"), REMOVE, shell("cat /tmp/mine")])
        run_id = waiting.run_id
    with Space(project, sandbox="require", home=home) as space:
        again = space.open_run(run_id)
        again.deny()
        assert events(again)[-1]["stdout"] == "mine\n"
    assert list((home / "sessions" / "runs" / "tmp").iterdir()) == []


def test_a_run_belongs_to_its_workspace(project: Path, home: Path, tmp_path: Path) -> None:
    """Its operations were meant for that one."""
    other = tmp_path / "other"
    other.mkdir()
    with Space(project, sandbox="off", home=home) as space:
        run_id = space.run(operations=[REMOVE]).run_id
    with (
        Space(other, sandbox="off", home=home) as space,
        pytest.raises(UsageError, match=f"works in '{project}'"),
    ):
        space.open_run(run_id)


def test_without_a_home_nothing_is_kept(space: Space, project: Path, tmp_path: Path) -> None:
    """Design: runs live in memory unless `home=` is given."""
    run = space.run(operations=[REMOVE])
    with pytest.raises(UsageError, match="without a home no run is kept"):
        space.open_run(run.run_id)
    run.approve()
    assert list(project.iterdir()) == []
    assert list(tmp_path.iterdir()) == [project]


def test_one_home_one_executor(kept: Space, project: Path, home: Path) -> None:
    """A second space with the same home is refused while the first has run something."""
    run = kept.run(operations=[REMOVE])
    with Space(project, sandbox="off", home=home) as second:
        busy = f"another codingagent \\(pid {os.getpid()}\\)"
        with pytest.raises(WorkError, match=busy):
            second.run(operations=[create("a")])
        # What is there is looked at under the lock, or another may do it before we have that.
        for run_id in (run.run_id, "run_000000000000"):
            with pytest.raises(WorkError, match=busy):
                second.open_run(run_id)
        assert not (project / "a").exists()
        kept.close()
        assert second.open_run(run.run_id).status == "awaiting_approval"


def test_a_home_may_not_be_the_workspaces_own_ground(project: Path) -> None:
    """A workspace in which a reply could write the record is refused."""
    with pytest.raises(UsageError):
        Space(project, home=project / "deep" / "home")
    with pytest.raises(UsageError):
        Space(project / "nope")
    with pytest.raises(UsageError):
        Space("/")


# --- closing ---------------------------------------------------------------------------------------


def test_a_closed_space_executes_nothing(project: Path, home: Path) -> None:
    """Neither a new run nor one that it began; what they said can still be read."""
    for kept in (None, home):
        space = Space(project, sandbox="off", home=kept)
        run = space.run(operations=[create("a", overwrite=True), REMOVE])
        space.close()
        space.close()
        for act in (
            run.approve,
            run.deny,
            run.go_on,
            lambda: space.run(operations=[SAY]),  # noqa: B023  # called at once
        ):
            with pytest.raises(UsageError, match="this space is closed"):
                act()
        assert status_of(run) == "awaiting_approval"
        assert kinds(run) == ["createFile", "approvalRequired"]
        assert (project / "build" / "o").exists()


def test_whoever_holds_a_run_can_go_on_with_it(project: Path, home: Path) -> None:
    """Design: `Space(path).run(…)` returns a run with `.approve`: nobody need hold the space itself."""
    for kept in (None, home):
        run = Space(project, sandbox="off", home=kept).run(operations=[REMOVE, SAY])
        gc.collect()
        run.approve("op-1")
        assert status_of(run) == "completed"
        del run
        (project / "build").mkdir()


def test_nothing_is_left_of_a_space_that_was_closed(project: Path, home: Path) -> None:
    """The context manager ends what still runs, with a sandbox and without."""
    for kept in (None, home):
        marker = new_marker()
        with none_left(marker), none_outlives(), Space(project, home=kept) as space:
            one(space, shell(f"setsid sleep {marker} >/dev/null 2>&1 & true"))


def test_nothing_is_left_of_a_space_that_nobody_holds(project: Path, home: Path) -> None:
    """No process, and no lock: another can begin."""
    with none_outlives():
        space = Space(project, sandbox="off", home=home)
        run = space.run(operations=[REMOVE])
        del space, run
        gc.collect()
        with Space(project, sandbox="off", home=home) as second:
            one(second, SAY)


def test_a_space_that_did_nothing_holds_nothing(project: Path, home: Path) -> None:
    """The lock is held from the first run."""
    with Space(project, home=home), Space(project, home=home) as second:
        one(second, SAY)


# --- limits ----------------------------------------------------------------------------------------


@pytest.mark.deep
def test_contents_of_a_run_have_a_limit_together(space: Space, project: Path) -> None:
    """Memory is not endless: what is read beyond about 64 MB fails, and says what to do."""
    (project / "a").write_bytes(b"x" * 9 * 2**20)
    reads = [{"type": "readFile", "path": "a"}] * 9
    run = space.run(operations=[*reads, SAY])
    results = [event.success for event in run.events if isinstance(event, ReadFileEvent)]
    assert results == [True] * 7 + [False] * 2
    refused = events(run)[7]
    assert "ask for fewer files at a time" in refused["error"]
    assert run.events[-1].type == "message"


def test_content_over_the_limit_is_one_malformed_operation(space: Space, project: Path) -> None:
    """Specification 001: max 10 MB for files; the rest goes on."""
    run = space.run(operations=[create("big", "x" * (10 * 2**20 + 1)), create("full", "x" * 10 * 2**20)])
    assert kinds(run) == ["error", "createFile"]
    assert isinstance(run.events[1], CreateFileEvent)
    assert run.events[1].bytes_written == 10 * 2**20
    assert not (project / "big").exists()
