"""say, refresh, undo and approve, also while another process waits: real processes, terminals, kills."""

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codingagent.storage.lock import HomeLock, is_held
from tests.cli.test_cli import CREATE, DONE, drop, outboxes, run, session_of, started
from tests.helpers import HANG_S, REPOSITORY, new_marker, none_left, processes_with, wait_until
from tests.killing import command_line_here, has_lines, kill_when, lines_of, no_halves, tree
from tests.rows import each_row
from tests.sandboxes import needs_bwrap
from tests.warm import start_command

pytestmark = pytest.mark.usefixtures("plain")

MESSAGE = "[MESSAGE]\nTabs or blanks?\n[/MESSAGE]\n"
REMOVE = "[RUN_COMMAND]\nrm -r build\n[/RUN_COMMAND]\n"
QUESTION = "The model asks. Reply: `codingagent --home"
AGAIN = " was rewritten; send this one: "
ELSEWHERE = "The other terminal waits for the answer"
LATER = "noted for the next request"


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(name="waiting")
def _waiting(home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A home with a session that waits for its first reply."""
    assert run(home, "new", "--no-wait", "Write", "a", "file") == 0
    capsys.readouterr()
    return home


def request(home: Path, sequence: int = 1, *, session: str = "", short: bool = False) -> str:
    folder = home / "outbox" / "short" if short else home / "outbox"
    return (folder / f"{session or session_of(home)}_seq{sequence:04d}.txt").read_text("utf-8")


def words(home: Path, session: str = "") -> list[str]:
    """Return what the record says that the person said, in order."""
    journal = home / "sessions" / (session or session_of(home)) / "journal.jsonl"
    records = map(json.loads, journal.read_text("utf-8").splitlines())
    return [record["text"] for record in records if record["kind"] == "person_said"]


def take(home: Path, reply: str) -> None:
    drop(home, reply)
    status, _, err = command_line_here(home, "resume", "--once")
    assert status in (0, 3), err


class Holder:
    """A `new` or `resume` that waits; what it prints is read as it comes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line

    def says(self, text: str, times: int = 1) -> None:
        wait_until(lambda: self.said.count(text) >= times)

    def ends(self) -> int:
        status = self.process.wait(HANG_S)
        self._reader.join(HANG_S)
        return status


@contextmanager
def holding(home: Path, *arguments: str) -> Iterator[Holder]:
    """Runs a command that waits for an answer, until it waits."""
    with started(home, *(arguments or ("resume",))) as process:
        holder = Holder(process)
        holder.says("Waiting for the answer")
        yield holder
        process.kill()


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Holds the home's lock, as a process that works."""
    with HomeLock(home / "sessions" / ".lock").held():
        yield


# --- by itself -------------------------------------------------------------------------------------


def test_say_writes_the_request_anew_under_its_number(waiting: Path) -> None:
    """Design, command line: the outbox that awaits its reply is rewritten, whole; send it again."""
    before = request(waiting)
    status, out, err = command_line_here(waiting, "say", "Python 3.9", "must still work")
    assert (status, err) == (0, "")
    assert AGAIN in out
    assert "The user says:\nPython 3.9 must still work\n" in request(waiting)
    assert request(waiting).startswith(before.partition("=== PROMPT ===")[0])
    assert outboxes(waiting) == [f"{session_of(waiting)}_seq0001.txt"]
    no_halves(waiting)


def test_all_that_is_said_stays_and_the_short_request_has_it_too(waiting: Path) -> None:
    assert run(waiting, "say", "one") == 0
    take(waiting, CREATE)
    assert run(waiting, "say", session_of(waiting), "two") == 0
    assert run(waiting, "say", "three") == 0
    for short in (False, True):
        text = request(waiting, 2, short=short)
        assert "before your last answer, which might not have seen it:\none\n" in text
        assert "The user says:\ntwo\n\nthree\n" in text
    take(waiting, CREATE.replace("a.txt", "b.txt"))
    take(waiting, CREATE.replace("a.txt", "c.txt"))
    assert "Earlier the user said:\none\n\ntwo\n\nthree\n" in request(waiting, 4)
    assert words(waiting) == ["one", "two", "three"]


def test_say_reopens_the_only_session_also_when_it_is_complete(waiting: Path) -> None:
    take(waiting, DONE)
    assert run(waiting, "say", "one more thing") == 0
    assert "The user says:\none more thing\n" in request(waiting, 2)
    take(waiting, DONE.replace("well", "done"))
    assert json.loads(next((waiting / "sessions").glob("*.json")).read_text("utf-8"))["isComplete"]


def test_words_and_a_file_are_said_together(waiting: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("Traceback\n  in pool\n")
    assert run(waiting, "say", "it", "still", "fails:", "--file", str(log)) == 0
    assert words(waiting) == ["it still fails:\n\nTraceback\n  in pool"]
    assert run(waiting, "say", "twice", "--file", str(log), "--edit") == 2


def test_words_come_from_stdin_or_a_file_and_without_any_that_is_said(waiting: Path, tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("from a file\nof two lines\n", "utf-8")
    assert run(waiting, "say", session_of(waiting), "--file", str(file)) == 0
    assert "The user says:\nfrom a file\nof two lines\n" in request(waiting)
    for arguments in (["say"], ["say", session_of(waiting)], ["say", " "]):
        status, _, err = command_line_here(waiting, *arguments)
        assert (status, "no words given" in err) == (2, True)


@each_row(
    ("arguments", "said"),
    [
        (("say", "deadbeef", "is", "meant"), "no session deadbeef"),
        (("say", "run_0123456789ab", "hello"), "is a run"),
        (("refresh", "deadbeef"), "no session deadbeef"),
        (("refresh", "run_0123456789ab"), "run_0123456789ab is a run, but this command needs a session"),
        (("say", "x", "--attach", "missing.py"), "no file in the workspace matches"),
        (("say", "x", "--attach", "../../etc/passwd"), "outside"),
    ],
)
def test_words_for_what_is_not_there_go_nowhere(waiting: Path, arguments: tuple[str, ...], said: str) -> None:
    """What was meant for one session must not go into another, and from there to a chat."""
    before = tree(waiting)
    status, _, err = command_line_here(waiting, *arguments)
    assert status == 2
    assert said in err
    assert err.count("\n") == 1
    assert words(waiting) == []
    assert tree(waiting / "outbox") == {
        name.removeprefix("outbox/"): what for name, what in before.items() if name.startswith("outbox/")
    }


def test_a_word_that_looks_like_an_id_is_a_word(waiting: Path) -> None:
    assert run(waiting, "say", "deadbeef") == 0
    assert run(waiting, "say", "cafebabe is the commit") == 0
    assert words(waiting) == ["deadbeef", "cafebabe is the commit"]


def test_in_a_home_that_is_none_nothing_is_made(home: Path) -> None:
    for arguments in (("say", "hello"), ("refresh",)):
        status, _, err = command_line_here(home, *arguments)
        assert (status, err.count("\n")) == (2, 1)
    assert not home.exists()


def test_refresh_writes_the_request_from_the_workspace_as_it_is_now(waiting: Path) -> None:
    assert run(waiting, "say", "stays") == 0
    (waiting / "workspace" / "fresh.py").write_text("x\n", "utf-8")
    assert "fresh.py" not in request(waiting)
    status, out, _ = command_line_here(waiting, "refresh")
    assert (status, AGAIN in out) == (0, True)
    assert "fresh.py (2 bytes)" in request(waiting)
    assert "The user says:\nstays\n" in request(waiting)
    take(waiting, DONE)
    status, _, err = command_line_here(waiting, "refresh", session_of(waiting))
    assert status == 2
    assert "has no request that waits; it is complete" in err


def test_attached_files_are_in_the_request_until_it_is_answered(home: Path) -> None:
    workspace = home / "workspace"
    (workspace / "src").mkdir(parents=True)
    for name in ("src/a.py", "src/b.py", "c.txt"):
        (workspace / name).write_text(f"text of {name}\n", "utf-8")
    assert run(home, "new", "--no-wait", "task", "--attach", "src/*.py", "--attach", "c.txt") == 0
    assert all(f"text of {name}" in request(home) for name in ("src/a.py", "src/b.py", "c.txt"))
    take(home, MESSAGE)
    # A new chat gets them with the whole request; one that saw the first has them.
    assert "--- c.txt (attached by the user before) ---\ntext of c.txt\n" in request(home, 2)
    assert "text of c.txt" not in request(home, 2, short=True)
    assert run(home, "say", "--attach", str(workspace / "c.txt")) == 0
    assert "--- c.txt ---\ntext of c.txt\n" in request(home, 2)
    assert "--- c.txt ---\ntext of c.txt\n" in request(home, 2, short=True)
    assert "The user attaches c.txt: see Requested File Contents." in request(home, 2)


def test_json_is_one_object_a_line(waiting: Path) -> None:
    for arguments, kind in (
        (("say", "x", "--json"), "person_said"),
        (("refresh", "--json"), "refresh_asked"),
    ):
        status, out, err = command_line_here(waiting, *arguments)
        assert (status, err) == (0, "")
        assert [json.loads(line)["kind"] for line in out.splitlines()] == [kind, "outbox_written", "waiting"]


def test_what_was_said_is_shown(waiting: Path) -> None:
    (waiting / "workspace" / "a.py").touch()
    assert run(waiting, "say", "only\tthis\x1b[2J", "--attach", "a.py") == 0
    assert "a.py" in command_line_here(waiting, "log")[1]
    for command in ("show", "log"):
        out = command_line_here(waiting, command)[1]
        assert "only" in out
        assert "\x1b" not in out
    said = json.loads(command_line_here(waiting, "show", "--json")[1])["said"]
    assert [(each["sequence"], each["attached"]) for each in said] == [(1, ["a.py"])]
    assert command_line_here(waiting, "list")[0] == 0
    document = json.loads(next((waiting / "sessions").glob("*.json")).read_text("utf-8"))
    assert (document["sequenceNumber"], document["isComplete"]) == (1, False)


@pytest.mark.with_git
def test_undo_after_words_keeps_them(waiting: Path) -> None:
    take(waiting, CREATE)
    assert run(waiting, "say", "not like that") == 0
    assert run(waiting, "undo") == 0
    assert "The user says:\nnot like that\n" in request(waiting, 2)
    assert not (waiting / "workspace" / "a.txt").exists()
    assert run(waiting, "undo", "--redo") == 0
    assert request(waiting, 2).count("not like that") == 1


@pytest.mark.parametrize("protocol", ["tags", "json"])
def test_a_message_alone_is_a_question(home: Path, protocol: str) -> None:
    assert run(home, "new", "--no-wait", "task", "--protocol", protocol) == 0
    operations = [{"type": "message", "content": "Tabs or blanks?"}]
    message = json.dumps({"protocolVersion": "1.0", "operations": operations})
    drop(home, MESSAGE if protocol == "tags" else message)
    status, out, _ = command_line_here(home, "resume", "--once")
    assert status == 0
    assert f'{QUESTION} {home} say {session_of(home)} "…"' in out
    assert "no reply to your message" in request(home, 2)
    assert run(home, "say", "blanks") == 0
    assert "no reply to your message" not in request(home, 2)
    assert "The user says:\nblanks\n" in request(home, 2)
    take(home, CREATE if protocol == "tags" else message.replace("Tabs", "So tabs"))
    assert "which might not have seen it:\nblanks\n" in request(home, 3)


def test_words_in_mid_turn_go_with_the_next_request(waiting: Path) -> None:
    (waiting / "workspace" / "build").mkdir()
    take(waiting, REMOVE + DONE)
    status, out, _ = command_line_here(waiting, "say", "and keep src")
    assert status == 0
    assert LATER in out
    assert outboxes(waiting) == [f"{session_of(waiting)}_seq0001.txt"]
    status, _, err = command_line_here(waiting, "refresh")
    assert (status, "it is awaiting approval" in err) == (2, True)
    assert run(waiting, "approve", session_of(waiting)) == 0
    # The task was ended without them, so it goes on.
    assert "The user says:\nand keep src\n" in request(waiting, 2)
    drop(waiting, MESSAGE)
    assert run(waiting, "resume", "--once") == 0
    assert "might not have seen" not in request(waiting, 3), "request 2 had them from the first"
    assert "Earlier the user said:\nand keep src\n" in request(waiting, 3)
    take(waiting, DONE)
    assert words(waiting) == ["and keep src"]
    assert len(outboxes(waiting)) == 3


def test_words_are_kept_though_the_request_can_not_be_written(waiting: Path) -> None:
    """Anyone who is told of the fault must not say them twice."""
    path = waiting / "outbox" / outboxes(waiting)[0]
    path.unlink()
    path.mkdir()
    status, _, err = command_line_here(waiting, "say", "hello")
    assert (status, err.count("\n")) == (1, 1)
    assert "your words are kept, don't repeat them: `codingagent --home" in err
    status, _, err = command_line_here(waiting, "refresh")
    assert (status, " refresh" in err, "said" in err) == (1, True, False)
    path.rmdir()
    assert run(waiting, "refresh") == 0
    assert request(waiting).count("hello") == 1


@pytest.mark.with_git
@pytest.mark.outside_dev
def test_a_home_that_can_not_be_written_gets_one_line(waiting: Path) -> None:
    """Read-only for anyone who runs this, root too."""
    needs_bwrap()
    ours = [sys.executable, "-m", "codingagent", "--home", str(waiting)]
    confined = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *ours]
    for arguments in (["say", "x"], ["refresh"]):
        ended = subprocess.run(
            [*confined, *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
        assert "sessions/.lock can't be written" in ended.stderr
    assert words(waiting) == []


# --- while another terminal waits --------------------------------------------------------------------


def test_words_and_refreshes_beside_the_terminal_that_waits(home: Path) -> None:
    """Design, command line: the lock is held while one works, and whoever waits follows the journal."""
    with holding(home, "new", "Write a file") as holder:
        status, out, err = command_line_here(home, "say", "with a test")
        assert (status, err) == (0, "")
        assert AGAIN in out
        assert ELSEWHERE in out
        assert "The user says:\nwith a test\n" in request(home)
        holder.says("you said: ")
        holder.says("Request 1 was rewritten")
        (home / "workspace" / "new.py").touch()
        status, out, _ = command_line_here(home, "refresh", "--json")
        assert status == 0
        shown = [json.loads(line) for line in out.splitlines()]
        assert ("waiting", True) in [(each["kind"], each.get("elsewhere")) for each in shown]
        assert "new.py" in request(home)
        holder.says("refresh requested")
        assert command_line_here(home, "say", "--attach", "new.py")[0] == 0
        assert "(attached: new.py)" in request(home)
        status, _, err = command_line_here(home, "approve", session_of(home))
        assert (status, "waits for approval" in err) == (2, True)
        drop(home, DONE)
        assert holder.ends() == 0
    assert words(home) == ["with a test", ""]


@pytest.mark.with_git
def test_an_undo_beside_the_terminal_that_waits(home: Path) -> None:
    with holding(home, "new", "Write a file") as holder:
        drop(home, CREATE)
        holder.says("Request 2")
        made = next(path for path in (home / "workspace").iterdir() if path.is_file())
        status, out, err = command_line_here(home, "undo")
        assert (status, err, made.exists()) == (0, "", False)
        assert AGAIN in out
        holder.says("Undid turn 1: ")
        assert command_line_here(home, "undo", "--redo")[0] == 0
        assert made.exists()
        assert command_line_here(home, "undo", "--turns", "5")[0] in {0, 2}
        drop(home, DONE)
        assert holder.ends() == 0


def test_an_answer_that_another_terminal_takes_is_taken_once(home: Path) -> None:
    """Two may wait for one answer: the one that is first takes it, and both know."""
    with holding(home, "new", "Write a file") as first, holding(home) as second:
        drop(home, CREATE)
        for each in (first, second):
            each.says("Request 2")
        wait_until(lambda: len(outboxes(home)) == 2)
        assert [each.said.count("Turn 1: 1 ok") for each in (first, second)] == [1, 1]
        told = [each.said.count("in another terminal:\nanswer 1: ") for each in (first, second)]
        assert sorted(told) == [0, 1]
        drop(home, DONE)
        assert (first.ends(), second.ends()) == (0, 0)
        assert [each.said.count("Done: ") for each in (first, second)] == [1, 1]
    assert len(list((home / "inbox" / "processed").iterdir())) == 2


def test_a_session_for_which_a_terminal_waits_is_not_deleted(home: Path) -> None:
    """On Windows the half of it was gone when the files that the terminal has open could not be deleted."""
    with holding(home, "new", "Write a file") as holder:
        session = session_of(home)
        status, _, err = command_line_here(home, "delete", session, "--yes")
        assert status == 2
        assert f"another terminal waits for session {session}" in err
        assert outboxes(home)
        assert run(home, "close", session) == 0
        assert holder.ends() == 0
        assert run(home, "delete", session, "--yes") == 0


@pytest.mark.with_git
def test_who_waits_for_a_session_that_is_gone_is_told(home: Path) -> None:
    with holding(home, "new", "Write a file") as holder:
        # It says that it waits, and prepares a checkpoint; from then on it writes nothing there.
        wait_until(lambda: not is_held(home / "sessions" / ".lock"))
        shutil.rmtree(home / "sessions" / session_of(home))
        assert holder.ends() == 1
        assert holder.process.stderr is not None
        assert "the session was deleted" in holder.process.stderr.read()


@pytest.mark.one_in(3)
@pytest.mark.with_git
@pytest.mark.parametrize("words_", [("undo",), ("say", "THE WORDS"), ("refresh",)], ids=" ".join)
def test_what_was_asked_in_a_terminal_that_was_closed_is_not_done_later(
    home: Path, words_: tuple[str, ...]
) -> None:
    """Design, command line: what is asked for dies with who typed it."""
    assert run(home, "new", "--no-wait", "Write a file") == 0
    take(home, CREATE)
    made = next(path for path in (home / "workspace").iterdir() if path.is_file())
    with locked(home), started(home, *words_) as asker:
        Holder(asker).says("is using")
        asker.send_signal(signal.SIGHUP)
        asker.wait(HANG_S)
    before = request(home, 2)
    take(home, MESSAGE)
    assert (made.exists(), words(home), request(home, 2)) == (True, [], before)


@pytest.mark.with_git
def test_an_undo_is_refused_once_another_turn_is_the_last(home: Path) -> None:
    """Design, command line: what is asked for names the turn that it is about."""
    assert run(home, "new", "--no-wait", "--sandbox", "off", "Write a file") == 0
    take(home, CREATE)
    made = next(path for path in (home / "workspace").iterdir() if path.is_file())
    os.mkfifo(home / "workspace" / "wait")
    with holding(home) as holder:
        drop(home, "[RUN_COMMAND]\ntouch begun; cat wait\n[/RUN_COMMAND]\n")
        wait_until((home / "workspace" / "begun").exists)
        with started(home, "undo") as asker:
            Holder(asker).says("is using")
            (home / "workspace" / "wait").write_text("go", "utf-8")
            assert asker.wait(HANG_S) == 2
            assert asker.stderr is not None
            assert "has gone on from request 2 to 3" in asker.stderr.read()
        assert made.exists()
        assert (home / "workspace" / "begun").exists()
        assert command_line_here(home, "undo")[0] == 0
        assert not (home / "workspace" / "begun").exists()
        drop(home, DONE)
        assert holder.ends() == 0


def test_two_terminals_at_once_are_both_heard_once(waiting: Path) -> None:
    said = [f"word {number}" for number in range(4)]
    with holding(waiting):
        askers = [
            start_command("--home", str(waiting), "say", word, stdout=subprocess.DEVNULL) for word in said
        ]
        assert [asker.wait(HANG_S) for asker in askers] == [0] * 4
    assert sorted(words(waiting)) == said
    assert all(request(waiting).count(word) == 1 for word in said)


def test_two_terminals_at_once_need_no_third(waiting: Path) -> None:
    said = [f"word {number}" for number in range(3)]
    askers = [start_command("--home", str(waiting), "say", word, stdout=subprocess.DEVNULL) for word in said]
    assert [asker.wait(HANG_S) for asker in askers] == [0] * 3
    assert sorted(words(waiting)) == said
    assert all(request(waiting).count(word) == 1 for word in said)
    no_halves(waiting)


def test_a_terminal_that_waits_keeps_no_other_session_waiting(waiting: Path) -> None:
    first = session_of(waiting)
    with holding(waiting, "new", "Another task"):
        second = next(n.stem for n in (waiting / "sessions").glob("*.json") if n.stem != first)
        assert command_line_here(waiting, "say", first, "to the first")[0] == 0
        assert command_line_here(waiting, "say", second, "to the second")[0] == 0
    assert (words(waiting, first), words(waiting, second)) == (["to the first"], ["to the second"])


def test_an_answer_that_comes_with_the_words_is_taken_and_they_are_repeated(waiting: Path) -> None:
    with holding(waiting) as holder:
        for number in range(1, 4):
            drop(waiting, CREATE.replace("a.txt", f"{number}.txt"))
            status, _, err = command_line_here(waiting, "say", f"word {number}")
            assert (status, err) == (0, "")
            holder.says(f"Turn {number}: 1 ok")
        wait_until(lambda: len(outboxes(waiting)) == 4)
    assert words(waiting) == ["word 1", "word 2", "word 3"]
    assert run(waiting, "refresh") == 0
    assert all(request(waiting, 4).count(word) == 1 for word in words(waiting))


def test_words_behind_an_answer_that_lies_in_the_inbox_are_said_to_be_late(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else a DONE that knows nothing of them would end the task, and nobody would notice."""
    assert run(waiting, "say", "first") == 0
    assert "is already in the inbox" not in capsys.readouterr().out
    drop(waiting, DONE)
    assert run(waiting, "say", "one more thing") == 0
    assert "an earlier answer is already in the inbox" in capsys.readouterr().out


def test_words_that_an_answer_overtook_which_ended_the_task_come_with_a_resume(waiting: Path) -> None:
    assert run(waiting, "say", "one more thing") == 0
    take(waiting, DONE)
    with holding(waiting, "resume", session_of(waiting)):
        text = request(waiting, 2)
    assert "which might not have seen it:\none more thing\n" in text


def test_one_that_executes_is_waited_for_and_ctrl_c_takes_it_back(waiting: Path) -> None:
    marker = new_marker()
    command = f"[RUN_COMMAND]\nsleep {marker} || test -e go\n[/RUN_COMMAND]\n"
    with none_left(marker), holding(waiting) as holder:
        drop(waiting, command)
        wait_until(lambda: bool(processes_with(marker)))
        with started(waiting, "say", "too late") as asker:
            said = Holder(asker)
            said.says("is using")
            assert "waiting for it (Ctrl-C cancels this)" in said.said
            asker.send_signal(signal.SIGINT)
            assert said.ends() == 130
        with started(waiting, "say", "in time") as asker:
            said = Holder(asker)
            said.says("is using")
            for pid in processes_with(marker):
                with contextlib.suppress(OSError):  # one of them ends with another
                    if b"sleep\0" in Path(f"/proc/{pid}/cmdline").read_bytes()[:6]:
                        os.kill(pid, signal.SIGTERM)
            assert said.ends() == 0
        holder.says("Request 2")
    assert words(waiting) == ["in time"]
    assert "The user says:\nin time\n" in request(waiting, 2)


def test_a_run_that_works_in_the_home_is_waited_for(waiting: Path, tmp_path: Path) -> None:
    marker = new_marker()
    message = tmp_path / "message.json"
    shell = {"type": "shell", "command": f"touch begun; sleep {marker} || true"}
    message.write_text(json.dumps({"protocolVersion": "1.0", "operations": [shell]}), "utf-8")
    with none_left(marker), started(waiting, "run", str(message)) as runner:
        wait_until(lambda: bool(processes_with(marker)))
        with started(waiting, "say", "behind it") as asker:
            Holder(asker).says("is using")
            runner.send_signal(signal.SIGINT)
            assert asker.wait(HANG_S) == 0
    assert words(waiting) == ["behind it"]


# --- kills -------------------------------------------------------------------------------------------


_MOMENTS: dict[str, Callable[[Path], bool]] = {
    "said": lambda home: bool(words(home)),
    "written": lambda home: "THE WORDS" in request(home),
}


@pytest.mark.with_git
@pytest.mark.one_in(2)
@pytest.mark.parametrize("moment", _MOMENTS)
def test_words_are_in_once_though_the_other_terminal_is_killed(waiting: Path, moment: str) -> None:
    """Design, nothing is lost: killed at any instant."""
    with holding(waiting) as holder, started(waiting, "say", "THE WORDS") as asker:
        pause = threading.Event()
        while not _MOMENTS[moment](waiting) and asker.poll() is None:
            pause.wait(0.0002)
        holder.process.kill()
        assert holder.ends() == -signal.SIGKILL
        status = asker.wait(HANG_S)
        assert asker.stderr is not None
        assert (status, asker.stderr.read()) == (0, "")
    assert words(waiting) == ["THE WORDS"]
    assert request(waiting).count("THE WORDS") == 1
    assert outboxes(waiting) == [f"{session_of(waiting)}_seq0001.txt"]
    # Who waits prepares a checkpoint: what git was writing is cleared away by the next one.
    take(waiting, CREATE)
    no_halves(waiting)
    take(waiting, DONE)
    assert "THE WORDS" not in "".join(outboxes(waiting))


@pytest.mark.parametrize("more", [1, 2])
def test_words_are_in_once_though_say_itself_is_killed(waiting: Path, more: int) -> None:
    """Killed behind its record, before the request or behind it: refresh, or the next say, writes it."""
    journal = waiting / "sessions" / session_of(waiting) / "journal.jsonl"
    kill_when(waiting, ["say", "THE WORDS"], has_lines(journal, lines_of(journal) + more))
    assert run(waiting, "refresh") == 0
    assert words(waiting) == ["THE WORDS"]
    assert request(waiting).count("THE WORDS") == 1
    assert outboxes(waiting) == [f"{session_of(waiting)}_seq0001.txt"]
    no_halves(waiting)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("moment", _MOMENTS)
def test_who_waits_goes_on_though_the_one_who_spoke_is_killed(waiting: Path, moment: str) -> None:
    with holding(waiting) as holder:
        with started(waiting, "say", "THE WORDS") as asker:
            pause = threading.Event()
            while not _MOMENTS[moment](waiting) and asker.poll() is None:
                pause.wait(0.0002)
            asker.kill()
        holder.says("you said: ")
        wait_until(lambda: request(waiting).count("THE WORDS") == 1)
        assert command_line_here(waiting, "say", "second")[0] == 0
        assert words(waiting) == ["THE WORDS", "second"]
        drop(waiting, DONE)
        assert holder.ends() == 0


# --- a question on another terminal ------------------------------------------------------------------


class Terminal:
    """A `resume` on a terminal of its own."""

    def __init__(self, process: "subprocess.Popen[bytes]", handle: int, name: str = "") -> None:
        self.process = process
        self._handle = handle
        self._name = name
        self._seen = b""
        # Of its own: the number of one that is closed meanwhile may be another terminal's next.
        threading.Thread(target=self._read, args=(os.dup(handle),), daemon=True).start()

    def _read(self, handle: int) -> None:
        with open(handle, "rb", buffering=0) as screen, contextlib.suppress(OSError):
            while data := screen.read(65536):
                self._seen += data

    @property
    def raw(self) -> str:
        """What came, with all control sequences."""
        return self._seen.decode("utf-8", "replace")

    @property
    def said(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.raw).replace("\r", "")

    def has_unread(self) -> bool:
        """Return whether something was typed that the process has not read yet."""
        theirs = os.open(self._name, os.O_RDONLY | os.O_NOCTTY)
        try:
            return bool(select.select([theirs], [], [], 0)[0])
        finally:
            os.close(theirs)

    def says(self, text: str, times: int = 1) -> None:
        wait_until(lambda: self.said.count(text) >= times)

    def types(self, text: str) -> None:
        self.write(text.encode())

    def leaves(self) -> None:
        """Leave a task that is done."""
        self.says("/quit ends")
        self.types("\x04")
        assert self.process.wait(HANG_S) == 0

    def write(self, data: bytes) -> int:
        return os.write(self._handle, data)


@contextmanager
def terminal(home: Path, *arguments: str) -> Iterator[Terminal]:
    """Run a command line in a home; without arguments only the environment names it."""
    ours, theirs = pty.openpty()
    name = os.ttyname(theirs)
    named = {} if arguments else {"CODINGAGENT_HOME": str(home)}
    process = start_command(
        *(("--home", str(home), *arguments) if arguments else ()),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200", **named},
    )
    os.close(theirs)
    with process:
        try:
            yield Terminal(process, ours, name)
        finally:
            process.kill()
            process.wait()
            os.close(ours)


@pytest.fixture(name="building")
def _building(waiting: Path) -> Path:
    """A home whose workspace has a folder that a reply wants to remove."""
    (waiting / "workspace" / "build").mkdir()
    drop(waiting, REMOVE)
    return waiting


def test_an_approval_for_always_is_shown_and_revoked(building: Path) -> None:
    """Design, policy: the question, `show` and `config` say what it covers; `revoke` takes it back."""
    with terminal(building, "resume") as asked:
        asked.says("\"always\" covers: `rm -r` of 'build'")
        asked.says("Approve?")
        asked.types("a\n")
        asked.says("Request 2")
        assert "always approved (1): `rm -r` of 'build'" in command_line_here(building, "show")[1]
        assert "`rm -r` of 'build'" in command_line_here(building, "config", "policy")[1]
        status, _, err = command_line_here(building, "revoke", session_of(building), "2")
        assert (status, "there is no approval '2', only 1 to 1" in err) == (2, True)
        status, out, err = command_line_here(building, "revoke")
        assert (status, err) == (0, "")
        assert "no longer granted: `rm -r` of 'build'" in out
        asked.says("no longer granted: `rm -r` of 'build'")
        (building / "workspace" / "build").mkdir()
        drop(building, f"once more\n{REMOVE}")
        asked.says("Approve?", 2)
        asked.types("n\n\n")
        drop(building, DONE)
    assert command_line_here(building, "revoke")[0] == 2


def test_a_question_on_a_terminal_is_answered_from_another(building: Path) -> None:
    """Design, command line: whoever waits follows the journal."""
    with terminal(building, "resume") as asked:
        asked.says("Approve?")
        status, _, err = command_line_here(building, "approve", session_of(building), "op-7")
        assert (status, "op-1" in err) == (2, True)
        assert command_line_here(building, "say", "keep src")[0] == 0
        assert (building / "workspace" / "build").exists()
        status, out, err = command_line_here(building, "approve", session_of(building), "op-1")
        assert (status, err) == (0, "")
        assert "Request 2" in out
        assert ELSEWHERE in out
        asked.says("you said: ")
        asked.says("op-1: you said yes")
        asked.says(" rm -r build")
        asked.says("Paste the answer")
        assert not (building / "workspace" / "build").exists()
        assert "The user says:\nkeep src\n" in request(building, 2)
        drop(building, DONE)
        asked.leaves()
    assert words(building) == ["keep src"]


def test_a_no_from_another_terminal_says_why(building: Path) -> None:
    with terminal(building, "resume") as asked:
        asked.says("Approve?")
        assert run(building, "deny", session_of(building), "--reason", "keep it") == 0
        asked.says("op-1: you said no")
        asked.says("Paste the answer")
    assert "the user said no: keep it" in request(building, 2)
    _, told, _ = command_line_here(building, "log")
    assert "op-1: you said no (`codingagent deny`): keep it" in told
    assert (building / "workspace" / "build").exists()


def test_a_keyboard_still_answers_after_words_from_elsewhere(building: Path) -> None:
    with terminal(building, "resume") as asked:
        asked.says("Approve?")
        assert run(building, "say", "fine") == 0
        status, _, err = command_line_here(building, "refresh")
        assert (status, "it is awaiting approval" in err) == (2, True)
        asked.types("y\n")
        asked.says("Request 2")
        asked.says("Paste the answer")
        assert not (building / "workspace" / "build").exists()
    assert "The user says:\nfine\n" in request(building, 2)


def test_a_question_about_secrets_keeps_nobody_waiting(waiting: Path) -> None:
    """Design, command line: the lock is held while a process works, not while it waits."""
    (waiting / "workspace" / ".env").write_text("DB_PASSWORD=hunter4Blue!x\n", "utf-8")
    with terminal(waiting, "resume") as asked:
        drop(waiting, '[READ_FILE path=".env"]\n')
        asked.says("[y]es")
        with terminal(waiting, "say", "hello") as other:
            other.says("noted for the next request")
        asked.says("you said: ")
        asked.says("[y]es", 2)
        asked.types("n\n")
        asked.says("Request 2")
    assert "The user says:\nhello\n" in request(waiting, 2)
    assert "hunter4" not in request(waiting, 2)


def test_a_question_without_a_terminal_ends_the_wait_and_is_answered_here(building: Path) -> None:
    with started(building, "resume") as process:
        assert process.wait(HANG_S) == 3
    assert run(building, "approve", session_of(building)) == 0
    assert not (building / "workspace" / "build").exists()


@pytest.mark.parametrize("next_", ["kept", "build"])
def test_an_answer_that_waited_for_the_lock_is_none_to_what_is_asked_by_then(
    waiting: Path, next_: str
) -> None:
    """Design, policy: a yes holds for exactly what was shown, also if the next question reads the same."""
    for folder in {"build", next_}:
        (waiting / "workspace" / folder).mkdir()
    drop(waiting, REMOVE + REMOVE.replace("build", next_))
    assert run(waiting, "resume", "--once") == 3
    session = session_of(waiting)
    journal = waiting / "sessions" / session / "journal.jsonl"
    first = journal.read_bytes()
    assert run(waiting, "deny", session) == 3
    second = journal.read_bytes()
    journal.write_bytes(first)
    with started(waiting, "approve", session) as asker:
        with locked(waiting):
            Holder(asker).says("is using")
            journal.write_bytes(second)
        assert asker.wait(HANG_S) == 2
    assert (waiting / "workspace" / next_).exists()
    assert run(waiting, "approve", session, "op-2") == 0
    assert not (waiting / "workspace" / next_).exists()


@pytest.mark.one_in(2)
@pytest.mark.with_git
@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\r ls -la", "\\r ls -la"),
        ("\x1b] and more \x07", "\\x1b] and more \\x07"),
        ("\u202edliub\u2066", "\\u202edliub\\u2066"),
    ],
)
def test_what_needs_a_yes_can_not_hide(building: Path, hidden: str, shown: str) -> None:
    """Design, policy: we ask, showing what: all of it, on a terminal and elsewhere."""
    drop(building, REMOVE.replace("build", f"build # {hidden}"))
    whole = f"rm -r build # {shown}"
    with terminal(building, "resume") as asked:
        asked.says(whole)
        asked.says("Approve?")
    for words_ in (("resume", "--once"), ("show",), ("log",)):
        _, out, _ = command_line_here(building, *words_)
        assert whole in out
    session = session_of(building)
    status, out, _ = command_line_here(building, "approve", session)
    assert (status, whole in out) == (0, True)
    assert whole in request(building, 2)
