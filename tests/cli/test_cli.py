"""The command line as a person uses it: real processes, real files, real signals."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codingagent import __version__
from codingagent.cli import main
from codingagent.storage.lock import HomeLock
from tests.helpers import HANG_S, REPOSITORY, run_here, wait_until
from tests.rows import each_row
from tests.warm import start_command

pytestmark = pytest.mark.usefixtures("plain")

DONE = "[DONE]\nAll is well.\n[/DONE]\n"
CREATE = '[CREATE_FILE path="a.txt"]\nalpha\n[/CREATE_FILE]\n'


@contextmanager
def started(home: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Runs the command beside the test; it is killed at the end if it still runs."""
    process = start_command(
        *("--home", str(home), *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def outboxes(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "outbox").glob("*.txt"))


def session_of(home: Path) -> str:
    return next((home / "sessions").glob("*.json")).stem


def drop(home: Path, text: str, name: str = "reply.txt") -> None:
    """Renames a whole reply into the inbox, as a download does."""
    part = home / f"{name}.part"
    part.write_text(text, "utf-8")
    part.rename(home / "inbox" / name)


def run(home: Path, *arguments: str) -> int:
    return main.run(["--home", str(home), *arguments])


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(name="waiting")
def _waiting(home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A home with a session that waits for its first reply."""
    assert run(home, "new", "--no-wait", "Write", "a", "file") == 0
    capsys.readouterr()
    return home


# --- new -------------------------------------------------------------------------------------------


def test_new_writes_the_first_request_and_the_session_file(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, command line: new starts a session, writes outbox 1; --no-wait then exits with 0."""
    assert run(home, "new", "--no-wait", "Create", "a", "calculator") == 0
    session = session_of(home)
    assert re.fullmatch("[0-9a-f]{8}", session)
    assert outboxes(home) == [f"{session}_seq0001.txt"]
    text = (home / "outbox" / f"{session}_seq0001.txt").read_text("utf-8")
    assert text.startswith(f"=== HEADER ===\nSession: {session}\nSequence: 1\nTask: Create a calculator\n")
    said = capsys.readouterr().out
    assert f"{session}_seq0001.txt" in said
    assert "Send it to a chat" in said
    assert str(home / "inbox") in said


def test_new_waits_and_each_reply_is_a_turn(home: Path) -> None:
    """Design, command line: new waits on the inbox, until DONE ends it with exit status 0."""
    with started(home, "new", "Write a file") as process:
        wait_until(lambda: (home / "outbox").is_dir() and len(outboxes(home)) == 1)
        drop(home, CREATE)
        wait_until(lambda: len(outboxes(home)) == 2)
        drop(home, DONE, "second.txt")
        out, err = process.communicate(timeout=HANG_S)
    session = session_of(home)
    assert process.returncode == 0, err
    assert err == ""
    assert (home / "workspace" / "a.txt").read_text() == "alpha\n"
    assert "[OK] CREATE_FILE: Created 'a.txt'" in (home / "outbox" / f"{session}_seq0002.txt").read_text(
        "utf-8"
    )
    assert "All is well." in out
    assert json.loads((home / "sessions" / f"{session}.json").read_text("utf-8"))["isComplete"] is True
    processed = sorted(path.name for path in (home / "inbox" / "processed").iterdir())
    assert processed == [f"{session}_seq0001.txt", f"{session}_seq0002.txt"]
    assert len(outboxes(home)) == 2


def test_a_reply_that_is_still_being_written_is_not_taken(home: Path) -> None:
    """Design, inbox: a file is taken when it is finished, however slowly an editor writes it."""
    with started(home, "new", "Write a file") as process:
        wait_until(lambda: (home / "outbox").is_dir() and len(outboxes(home)) == 1)
        path = home / "inbox" / "slow.txt"
        with path.open("w") as file:
            file.write('[CREATE_FILE path="a.txt"]\n')
            file.flush()
            # It lies there, unchanged, for longer than 300 ms, while another file comes and goes.
            old = path.stat().st_mtime
            os.utime(path, (old - 10, old - 10))
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.5)
            assert path.exists()
            assert len(outboxes(home)) == 1
            file.write(f"whole\n[/CREATE_FILE]\n{DONE}")
        process.wait(timeout=HANG_S)
    assert (home / "workspace" / "a.txt").read_text() == "whole\n"


def test_an_empty_file_waits_and_holds_up_nobody(waiting: Path) -> None:
    """Design, inbox: empty files wait, as a sync tool makes them before it fills them."""
    (waiting / "inbox" / "empty.txt").touch()
    drop(waiting, DONE)
    assert run(waiting, "resume", "--once") == 0
    assert [path.name for path in (waiting / "inbox").glob("*.txt")] == ["empty.txt"]
    assert json.loads((waiting / "sessions" / f"{session_of(waiting)}.json").read_bytes())["isComplete"]


def test_files_that_lie_in_the_inbox_are_named_and_not_taken_by_new(home: Path) -> None:
    """Design, command line: files that already are in the inbox are named, not taken."""
    (home / "inbox").mkdir(parents=True)
    (home / "inbox" / "old.txt").write_text('[CREATE_FILE path="old"]\n[/CREATE_FILE]\n')
    with started(home, "new", "Write a file") as process:
        wait_until(lambda: (home / "outbox").is_dir() and len(outboxes(home)) == 1)
        drop(home, DONE, "new.txt")
        out, _ = process.communicate(timeout=HANG_S)
    assert "old.txt" in out
    assert (home / "inbox" / "old.txt").exists()
    assert not (home / "workspace" / "old").exists()


def test_files_that_lay_in_the_inbox_are_not_taken_by_resume_either(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, command line: they were answers to something else, and stay so until they change."""
    (home / "inbox").mkdir(parents=True)
    old = home / "inbox" / "old.txt"
    old.write_text(CREATE)
    assert run(home, "new", "--no-wait", "Write a file") == 0
    assert "ignored, because it was in the inbox before: old.txt" in capsys.readouterr().out
    assert run(home, "resume", "--once") == 0
    assert old.exists()
    old.write_text(f"{CREATE}and more\n")
    assert run(home, "resume", "--once") == 0
    assert (home / "workspace" / "a.txt").exists()


def test_a_workspace_that_is_the_home_leaves_no_folders_behind(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake on the command line makes nothing."""
    home.mkdir()
    assert run(home, "new", "--no-wait", "--workspace", str(home), "x") == 2
    assert "new --here" in capsys.readouterr().err
    assert list(home.iterdir()) == []


def test_a_relative_workspace_in_the_settings_counts_from_the_home(home: Path) -> None:
    """Design, command line: settings come from codingagent.toml in home, wherever one stands."""
    (home / "code").mkdir(parents=True)
    (home / "code" / "a.py").touch()
    (home / "codingagent.toml").write_text('workspace = "code"\n')
    assert run(home, "new", "--no-wait", "x") == 0
    assert "## Workspace Files\n  a.py (0 bytes)\n" in (home / "outbox" / outboxes(home)[0]).read_text()


def test_a_home_inside_a_project_works_in_that_project(tmp_path: Path) -> None:
    """Design, command line: the second task begun in a folder works there too, with --here or not."""
    (tmp_path / "a.py").touch()
    home = tmp_path / ".codingagent"
    assert run(home, "new", "--no-wait", "x") == 0
    assert "## Workspace Files\n  a.py (0 bytes)\n" in (home / "outbox" / outboxes(home)[0]).read_text()


@pytest.mark.with_git
def test_a_session_says_once_that_commands_are_not_confined(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, commands: where nothing confines commands, every session says so once in plain words."""
    assert run(home, "new", "--no-wait", "--sandbox", "off", "x") == 0
    assert capsys.readouterr().out.count("commands in answers run without a sandbox") == 1
    assert run(home, "resume", "--once") == 0
    assert "without a sandbox" not in capsys.readouterr().out


def test_a_reply_can_not_plant_a_home(waiting: Path) -> None:
    """Design, purpose: no file outside is written; a planted home would have a workspace of its own."""
    drop(waiting, '[CREATE_FILE path="sub/.CodingAgent/sessions/x"]\nx\n[/CREATE_FILE]\n')
    assert run(waiting, "resume", "--once") == 0
    assert list((waiting / "workspace").iterdir()) == []


def test_a_home_that_was_found_holds_only_sessions_of_its_folder(tmp_path: Path) -> None:
    """Design, command line: a home found upwards may have been planted there by a command."""
    victim, project = tmp_path / "victim", tmp_path / "project"
    victim.mkdir()
    project.mkdir()
    home = project / ".codingagent"
    assert run(home, "new", "--no-wait", "--workspace", str(victim), "x") == 0
    drop(home, CREATE)
    done = run_here("resume", "--once", folder=project)
    assert done.returncode == 2
    assert "not where its home was found" in done.stderr
    assert list(victim.iterdir()) == []
    assert run(home, "resume", "--once") == 0
    assert (victim / "a.txt").exists()


@each_row("own", ["inbox", "outbox", "sessions", "inbox/sub"])
def test_the_homes_own_folders_are_no_workspace(
    waiting: Path, capsys: pytest.CaptureFixture[str], own: str
) -> None:
    """Design, purpose: in the inbox a reply could write the next reply."""
    folder = waiting / own
    folder.mkdir(exist_ok=True)
    assert run(waiting, "new", "--no-wait", "--workspace", str(folder), "x") == 2
    assert "belongs to codingagent itself" in capsys.readouterr().err


def test_a_turn_is_finished_though_its_reader_went_away(waiting: Path) -> None:
    """Design, journal: the screen is no part of the work; `| head` must not stop a turn halfway."""
    drop(waiting, f"[RUN_COMMAND]\necho a; sleep 0.3; echo b\n[/RUN_COMMAND]\n{CREATE}")
    done = subprocess.run(
        f"{sys.executable} -m codingagent --home {waiting} resume --once | true",
        shell=True,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert (waiting / "workspace" / "a.txt").exists()
    assert len(outboxes(waiting)) == 2


def test_a_closed_stdout_is_no_fault(waiting: Path) -> None:
    """Anyone who starts us without a stdout wants no words, not a traceback."""
    done = subprocess.run(
        f"{sys.executable} -m codingagent --home {waiting} list >&-",
        shell=True,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.outside_dev
def test_a_workspace_that_a_command_moves_away_ends_the_work(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, workspace: what was opened at the start is what is written, or nothing."""
    drop(waiting, f"[RUN_COMMAND]\nmv ../workspace ../other; mkdir ../workspace\n[/RUN_COMMAND]\n{CREATE}")
    assert run(waiting, "resume", "--once", "--sandbox", "off") == 1
    assert "was moved or replaced" in capsys.readouterr().err
    assert not (waiting / "other" / "a.txt").exists()


@pytest.mark.with_git
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["show"], 0),
        (["log"], 0),
        (["diff"], 2),
        (["resume", "--once"], 2),
        (["refresh"], 2),
        (["say", "x"], 2),
        (["say", "x", "--attach", "a.txt"], 2),
        (["undo"], 2),
    ],
)
@pytest.mark.one_in(3)
def test_a_workspace_that_is_gone_can_only_be_put_back(
    waiting: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int
) -> None:
    """A session can't go on in another; what only tells of it needs none."""
    drop(waiting, CREATE)
    assert run(waiting, "resume", "--once") == 0
    capsys.readouterr()
    (waiting / "workspace").rename(waiting / "moved")
    assert run(waiting, *words) == status
    said = capsys.readouterr()
    if status:
        assert said.err.endswith("does not exist; put it back where it was\n")
        assert (waiting / "sessions").is_dir()
    else:
        assert "a.txt" in said.out
        assert said.err == ""


def test_without_words_the_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    """A newcomer's first word is the bare command."""
    assert main.run([]) == 0
    assert "Work on a task:" in capsys.readouterr().out


def test_a_task_that_is_no_utf_8_begins_a_session_that_can_be_read(home: Path) -> None:
    """Design, journal: nothing is lost; a half character must not make the record unreadable."""
    done = run_here("--home", str(home), "new", "--no-wait", "-", stdin=b"fix caf\xe9\n")
    assert done.returncode == 0
    assert run(home, "list") == 0
    assert run(home, "resume", "--once") == 0


def test_an_inbox_that_is_removed_ends_the_wait_with_one_line(home: Path) -> None:
    """Design, command line: a traceback is a bug; status 1, and the session can be resumed."""
    with started(home, "new", "Write a file") as process:
        wait_until(lambda: (home / "outbox").is_dir() and len(outboxes(home)) == 1)
        (home / "inbox").rmdir()
        _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 1
    assert err.count("\n") == 1
    assert "can't be read" in err


@pytest.mark.parametrize("how", ["-", "--file", "--edit"])
def test_a_task_of_many_lines_comes_from_stdin_a_file_or_an_editor(
    home: Path, tmp_path: Path, how: str
) -> None:
    """Design, command line: tasks have many lines; HEADER has the first, PROMPT all."""
    task = tmp_path / "task.txt"
    task.write_text("First line\nsecond line\n")
    arguments = {"-": ["-"], "--file": ["--file", str(task)], "--edit": ["--edit"]}[how]
    words = ("--home", str(home), "new", "--no-wait", *arguments)
    done = run_here(*words, stdin=task.read_bytes(), variables={"VISUAL": "", "EDITOR": f"cp {task}"})
    assert done.returncode == 0, done.stderr
    text = (home / "outbox" / outboxes(home)[0]).read_text("utf-8")
    assert "Task: First line … (+1 line)\n" in text
    assert "=== PROMPT ===\nFirst line\nsecond line\n" in text


@pytest.mark.with_git
def test_here_works_in_the_current_folder_and_is_found_from_below(tmp_path: Path) -> None:
    """Design, command line: new --here; every command finds that home from a subfolder, as git does."""
    below = tmp_path / "src" / "deep"
    below.mkdir(parents=True)
    (tmp_path / "a.py").write_text("x = 1\n")
    new = run_here("new", "--here", "--no-wait", "task", folder=tmp_path)
    assert new.returncode == 0, new.stderr
    text = next((tmp_path / ".codingagent" / "outbox").iterdir()).read_text("utf-8")
    assert "## Workspace Files\n  a.py (6 bytes)\n\n" in text
    listed = run_here("list", "--json", folder=below)
    assert json.loads(listed.stdout)["workspace"] == str(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".codingagent", "a.py", "src"]


# --- resume ----------------------------------------------------------------------------------------


def test_once_with_nothing_there_writes_nothing(waiting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Design, command line: resume --once with no reply there exits 0 and writes nothing; it says so."""
    before = {path: path.read_bytes() for path in waiting.rglob("*") if path.is_file()}
    assert run(waiting, "resume", "--once") == 0
    after = {path: path.read_bytes() for path in waiting.rglob("*") if path.is_file()}
    before.pop(waiting / "sessions" / ".lock")  # has our pid, which is its purpose
    after.pop(waiting / "sessions" / ".lock")
    assert after == before
    said = capsys.readouterr().out
    assert f"No answer to request 1 in {waiting / 'inbox'}; nothing was done." in said


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("reply.txt", b"", "reply.txt in the inbox is empty: save the answer again"),
        ("empty", b"", "empty in the inbox is empty: save the answer again"),
        (
            "answer.v2.DOCX",
            b"PK\3\4",
            (
                "answer.v2.DOCX in the inbox is a Word document (.docx), not plain text: open it, copy"
                " the chat's answer and save that as a plain .txt file in the inbox, or paste it here"
            ),
        ),
        ("reply", b"hi", "reply in the inbox has no extension: rename it to reply.txt"),
        ("reply.zip", b"PK\3\4", "reply.zip in the inbox is not a whole zip: save it again"),
    ],
)
def test_a_file_that_cannot_be_taken_is_named_with_what_to_do(
    waiting: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, advice: str
) -> None:
    """Nothing is passed over in silence; what is hidden, or still under way, is nobody's answer."""
    for other in (name, ".hidden", "~$answer.docx", "x.txt.part", "y.crdownload"):
        (waiting / "inbox" / other).write_bytes(content)
    (waiting / "inbox" / "folder").mkdir()
    assert run(waiting, "resume", "--once") == 0
    said = capsys.readouterr().out
    assert [line.strip() for line in said.splitlines() if "in the inbox" in line] == [advice]
    assert (waiting / "inbox" / name).read_bytes() == content


def test_a_file_that_cannot_be_taken_is_named_while_we_wait(waiting: Path) -> None:
    """Once, and when it is there for good; then the answer is taken as ever."""
    with started(waiting, "resume") as process:
        (waiting / "inbox" / "reply.docx").write_bytes(b"PK")
        assert process.stdout is not None
        said = next(line for line in process.stdout if "docx" in line)
        assert "is a Word document (.docx), not plain text: open it" in said
        drop(waiting, DONE)
        rest = process.stdout.read()
    assert "docx" not in rest
    assert process.returncode == 0


def test_an_answer_from_before_the_session_is_named_again(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not taken by itself, so it is said how to."""
    (home / "inbox").mkdir(parents=True)
    (home / "inbox" / "old.txt").write_text(DONE)
    assert run(home, "new", "--no-wait", "Write", "a", "file") == 0
    capsys.readouterr()
    assert run(home, "resume", "--once") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"old.txt; to use one: codingagent --home {home} resume {session_of(home)} --accept FILE" in said
    assert "nothing was done" in said


def test_once_says_that_a_complete_session_waits_for_nothing(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to send, and nothing is reopened."""
    drop(waiting, DONE)
    assert run(waiting, "resume", "--once") == 0
    capsys.readouterr()
    assert run(waiting, "resume", session_of(waiting), "--once") == 0
    assert f"Session {session_of(waiting)} is complete; no answer in " in capsys.readouterr().out


def test_a_request_whose_file_is_gone_is_written_again(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The person needs it, and learns that it is gone; to look is always possible, and writes nothing."""
    request = waiting / "outbox" / outboxes(waiting)[0]
    text = request.read_text()
    for command in ("resume --once", "refresh"):
        request.unlink()
        assert run(waiting, "show", "--json") == 0
        done = capsys.readouterr()
        assert f"{request} is missing: `codingagent --home {waiting} refresh " in done.err
        assert len(done.out.splitlines()) == 1
        assert run(waiting, *command.split()) == 0
        done = capsys.readouterr()
        assert (f"request 1 was missing from {request}" in done.out) == (command != "refresh")
        assert request.read_text() == text
        assert run(waiting, "show") == 0
        assert "missing" not in capsys.readouterr().err


def test_once_takes_what_lies_there_oldest_first(waiting: Path) -> None:
    """Specification 003, inbox: files are processed in order of last-write time, oldest first."""
    for age, name in ((30, "b.txt"), (10, "a.txt")):
        path = waiting / "inbox" / name
        path.write_text(f'[CREATE_FILE path="last"]\n{name}\n[/CREATE_FILE]\n')
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    assert run(waiting, "resume", "--once") == 0
    assert (waiting / "workspace" / "last").read_text() == "a.txt\n"
    assert len(outboxes(waiting)) == 3


def test_a_complete_session_that_is_named_is_reopened(waiting: Path) -> None:
    """Design, command line: one named that is complete is reopened, its results in the request."""
    drop(waiting, f"[MESSAGE]\nSo be it.\n[/MESSAGE]\n{DONE}")
    assert run(waiting, "resume", "--once") == 0
    session = session_of(waiting)
    assert len(outboxes(waiting)) == 1
    with started(waiting, "resume", session):
        wait_until(lambda: len(outboxes(waiting)) == 2)
    text = (waiting / "outbox" / f"{session}_seq0002.txt").read_text("utf-8")
    assert "[OK] MESSAGE: Message was shown" in text
    assert "Sequence: 2" in text


def test_without_an_open_session_resume_says_so(waiting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Design, command line: the default is the latest session that is not complete."""
    drop(waiting, DONE)
    assert run(waiting, "resume", "--once") == 0
    assert run(waiting, "resume", "--once") == 2
    assert capsys.readouterr().err == (
        "codingagent: no session is waiting; start one with"
        f" `codingagent --home {waiting} new`, or reopen the last with"
        f" `codingagent --home {waiting} resume {session_of(waiting)}`\n"
    )
    first = session_of(waiting)
    assert run(waiting, "new", "--no-wait", "more") == 0
    drop(waiting, DONE + "\n")
    assert run(waiting, "resume", "--once") == 0
    capsys.readouterr()
    assert run(waiting, "resume", "--once") == 2
    (last,) = {path.name[:8] for path in (waiting / "outbox").iterdir()} - {first, "short"}
    assert capsys.readouterr().err.endswith(f" resume {last}`\n")
    assert run(waiting, "say", "one word more") == 0
    assert (waiting / "outbox" / f"{last}_seq0002.txt").exists()
    assert run(waiting, "sessions") == 2
    assert "did you mean 'list'?" in capsys.readouterr().err


def test_a_rejected_reply_is_executed_with_accept(waiting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Design, journal: resume --accept FILE executes a reply that was set aside."""
    drop(waiting, f'[REPLY session="ffffffff" sequence="1"]\n{CREATE}[END]\n')
    assert run(waiting, "resume", "--once") == 0
    said = capsys.readouterr().out
    rejected = waiting / "inbox" / "rejected" / "reply.txt"
    assert "it answers session ffffffff" in said
    assert f"--accept {rejected}" in said
    assert not (waiting / "workspace" / "a.txt").exists()
    assert run(waiting, "resume", "--once", "--accept", str(rejected)) == 0
    assert (waiting / "workspace" / "a.txt").read_text() == "alpha\n"


def test_ctrl_c_leaves_a_session_that_can_be_resumed(home: Path) -> None:
    """Design, command line: 130 interrupted (the session can be resumed)."""
    with started(home, "new", "Write a file") as process:
        wait_until(lambda: (home / "outbox").is_dir() and len(outboxes(home)) == 1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANG_S)
    session = session_of(home)
    assert process.returncode == 130
    assert (
        err == "codingagent: stopped; nothing is lost:"
        f" `codingagent --home {home} resume {session}` continues\n"
    )
    drop(home, DONE)
    assert run(home, "resume", "--once") == 0


def test_ctrl_c_during_a_command_ends_it_and_never_runs_it_again(waiting: Path) -> None:
    """Design, commands: interrupting us ends the command; journal: it is never started again."""
    log = waiting / "workspace" / "log"
    drop(waiting, "[RUN_COMMAND]\necho started >> log; sleep 60; echo ended >> log\n[/RUN_COMMAND]\n")
    with started(waiting, "resume") as process:
        wait_until(log.exists)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert run(waiting, "resume", "--once") == 0
    assert log.read_text() == "started\n"
    text = (waiting / "outbox" / outboxes(waiting)[-1]).read_text("utf-8")
    assert "interrupted: it may have run in part; it was not run again" in text


def test_those_that_only_look_never_take_the_lock(waiting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Design, command line: one home, one executor; those that only look never take the lock."""
    with HomeLock(waiting / "sessions" / ".lock").held():
        for looks in ("list", "show", "log", "doctor"):
            assert run(waiting, looks) == 0 or looks == "doctor"  # which may miss git
    assert "is using" not in capsys.readouterr().err


# --- looking ---------------------------------------------------------------------------------------


def test_list_and_show_tell_of_a_session(waiting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Design, command line: list: sessions with state; show: turns, results, files touched."""
    drop(waiting, CREATE)
    assert run(waiting, "resume", "--once") == 0
    capsys.readouterr()
    session = session_of(waiting)
    assert run(waiting, "list") == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert line.split()[:5] == [session, "waiting", "for", "answer", "2"]
    assert run(waiting, "show", session) == 0
    said = capsys.readouterr().out
    assert "ok     a.txt, new" in said
    assert "files changed: a.txt" in said
    assert run(waiting, "show", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    (ended,) = [each for each in shown["records"] if each["kind"] == "turn_ended"]
    assert ended["changed"] == ["a.txt"]


@pytest.mark.with_git
def test_json_is_one_object_a_line_and_nothing_else(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, command line: --json gives one JSON object a line on stdout and nothing else there."""
    drop(waiting, f"{CREATE}[RUN_COMMAND]\necho hi\n[/RUN_COMMAND]\n")
    assert run(waiting, "resume", "--once", "--json") == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [entry["kind"] for entry in said if entry["kind"] != "checkpoint_taken"] == [
        "reply_taken",
        *("operation_started", "operation_ended") * 1,
        *("operation_started", "output_came", "operation_ended"),
        *("turn_ended", "outbox_written"),
    ]
    assert run(waiting, "log", "--json") == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    created, ran = (each for each in said if each["kind"] == "operation_ended")
    assert created in records
    assert created["event"]["path"] == "a.txt"
    assert ran["event"]["sandbox"] in ("bwrap", "none")


def test_config_names_each_setting_and_its_source(waiting: Path) -> None:
    """Design, command line: config prints the settings in force and where each came from."""
    (waiting / "codingagent.toml").write_text("list_entries = 50\ncontext_chars = 20000\n")
    words = ("--home", str(waiting), "config", "--json")
    done = run_here(*words, variables={"CODINGAGENT_CONTEXT_CHARS": "30000"})
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert (rows["list_entries"]["value"], rows["list_entries"]["origin"]) == (50, "codingagent.toml")
    assert (rows["context_chars"]["value"], rows["context_chars"]["origin"]) == (30000, "environment")
    assert (rows["command_timeout"]["value"], rows["command_timeout"]["origin"]) == (30, "default")


def test_version_and_help_answer_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Design, command line: global --version and --help; each command has an example."""
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"codingagent {__version__}\n"
    for command in ("new", "resume", "list", "show", "config", "demo"):
        assert main.run([command, "--help"]) == 0
        assert f"Example: codingagent {command}" in capsys.readouterr().out


def test_a_reader_that_goes_away_is_no_fault(waiting: Path) -> None:
    """A pipe into `head` must not end in a traceback."""
    done = subprocess.run(
        f"{sys.executable} -m codingagent --home {waiting} list | true",
        shell=True,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""


# --- bad input -------------------------------------------------------------------------------------

BAD_WORDS = [
    (["new", "--no-wait"], "no task given"),
    (["new", "--no-wait", " "], "no task given"),
    (["new", "--no-wait", "x", "--edit"], "the task is given twice"),
    (["new", "--no-wait", "--file", "{tmp}/none"], "can't be read: No such file"),
    (["new", "--no-wait", "--file", "{tmp}/binary"], "is not UTF-8 text"),
    (["new", "--no-wait", "--workspace", "{tmp}/none", "x"], "does not exist"),
    (["new", "--no-wait", "--workspace", "{tmp}/binary", "x"], "is not a folder"),
    (["new", "--no-wait", "--workspace", "/", "x"], "too much to hand to a model"),
    (["new", "--no-wait", "--workspace", "~home", "x"], "too much to hand to a model"),
    (["new", "--no-wait", "--workspace", "{home}", "x"], "new --here"),
    (["new", "--no-wait", "--here", "x"], "leave those out"),
    (["show", "../../etc"], "is not a session id"),
    (["show", "0123"], "is not a session id"),
    (["show", "0123456g"], "is not a session id"),
    (["resume", "01234567"], "no session 01234567"),
    (["copy", "run_0123456789ab"], "run_0123456789ab is a run, but this command needs"),
    (["resume", "--once", "--accept", "{tmp}/none"], "is not a file"),
    (["nwe", "x"], "there is no command 'nwe'; did you mean 'new'?"),
    (["zzzz"], "there is no command 'zzzz'; `codingagent --help` lists them"),
    (["Add an option"], "to begin a task: codingagent new "),
    (["new", "--no-wiat", "x"], "there is no option --no-wiat; did you mean --no-wait?"),
    (["list", "--xyzzy"], "there is no option --xyzzy; `codingagent list --help` lists all"),
    (["list", "--home", "x"], "--home after list: it goes before the command"),
    (["--policy", "x", "new"], "--policy before the command; it goes after"),
    (["show", "a", "b"], "`codingagent show --help` shows how it is used"),
]


@each_row(("words", "message"), BAD_WORDS, ids=[" ".join(words) for words, _ in BAD_WORDS])
def test_wrong_words_get_one_line_and_status_2(
    waiting: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    """Design, command line: 2 wrong usage or settings; one line: what, where, what to do."""
    (tmp_path / "binary").write_bytes(b"\xff\x00\x80")
    names = {"tmp": tmp_path, "home": waiting}
    filled = [str(Path.home()) if word == "~home" else word.format(**names) for word in words]
    assert run(waiting, *filled) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert message in said.err
    assert "Traceback" not in said.err
    assert len(list((waiting / "sessions").glob("*.json"))) == 1


BAD_SETTINGS = [
    ("contxt_chars = 1", "codingagent.toml: unknown setting 'contxt_chars'; did you mean 'context_chars'?"),
    ("context_chars = 'many'", "codingagent.toml: context_chars is 'many'; it must be a whole number"),
    ("context_chars = 3", "it must be a whole number from 10000 up"),
    ("pass_env = 'A'", "pass_env is 'A'; it must be a list of names"),
    ("= broken", "codingagent.toml can't be read"),
]


@each_row(("line", "message"), BAD_SETTINGS, ids=[line for line, _ in BAD_SETTINGS])
def test_a_setting_that_can_not_be_used_is_named(
    waiting: Path, capsys: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    """Design, command line: an unknown key is an error that names it."""
    (waiting / "codingagent.toml").write_text(f"{line}\n")
    assert run(waiting, "resume", "--once") == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_home_that_can_not_be_written_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file where the home should be: what, where, and what to do instead."""
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "home", "new", "--no-wait", "x") == 2
    err = capsys.readouterr().err
    assert "can't be used" in err
    assert "--home" in err
    assert err.count("\n") == 1


def test_looking_does_not_make_a_home(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands that only look leave no folders behind where there is no home."""
    assert run(home, "list") == 2
    assert not home.exists()
    assert "is not a codingagent home yet: start a task there with `" in capsys.readouterr().err


def test_a_damaged_session_does_not_hide_the_others(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, journal: a damaged file is reported; exit status 1 when it is the one that is wanted."""
    damaged = waiting / "sessions" / "00000000" / "journal.jsonl"
    damaged.parent.mkdir()
    damaged.write_text("not a record\n")
    assert run(waiting, "list") == 0
    said = capsys.readouterr()
    assert session_of(waiting) in said.out
    assert f"{damaged} is damaged at line 1" in said.err
    assert run(waiting, "show", "00000000") == 1


@pytest.mark.parametrize("of", ["operations", "events", "settings"])
def test_schema_prints_one_json_document(of: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Design, command line: schema operations / events / settings prints the JSON Schema."""
    assert main.run(["schema", of]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].endswith("2020-12/schema")


def test_schema_of_anything_else_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Design, command line: wrong usage: one line, what, where, what to do instead; status 2."""
    assert main.run(["schema", "policies"]) == 2
    assert "operations" in capsys.readouterr().err


def test_the_package_offers_the_protocol_without_importing_it_at_once() -> None:
    """Design, operations and events: validate_* and parse_operation come from the package itself."""
    program = (
        "import sys, codingagent as c\n"
        "assert 'pydantic' not in sys.modules\n"
        "assert all(getattr(c, name) for name in c.__all__)\n"
        "assert c.validate_operation({'type': 'deleteFile', 'path': 'a'}).success\n"
        "assert not c.validate_operation({'type': 'deleteFile', 'path': '../a'}).success\n"
        "try: c.parse_operation({})\n"
        "except c.OperationValidationError as fault: print(fault)\n"
        "assert c.PROTOCOL_VERSION == '1.0'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert "type" in done.stdout


def test_a_home_that_can_not_be_remembered_is_said_to_need_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the next command would refuse it, though the screen had just said to give that command."""
    (tmp_path / "file").touch()
    for state, is_said in (("file", True), ("state", False)):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / state))
        (tmp_path / f"at_{state}").mkdir()
        monkeypatch.chdir(tmp_path / f"at_{state}")
        assert main.run(["new", "--no-wait", "task"]) == 0
        said = f"this home can't be remembered, since {tmp_path / state}/codingagent/homes can't be written"
        assert (said in capsys.readouterr().out.replace("\n", " ")) == is_said
