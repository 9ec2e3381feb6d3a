"""`--reply-with`: a command in the place of the chat, whatever it prints, and whatever becomes of it."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codingagent.model.session_state import Phase, Session
from codingagent.storage.homes import Home
from tests.cli.test_amend import Holder
from tests.cli.test_cli import started
from tests.helpers import HANG_S, REPOSITORY, new_marker, none_left, processes_with, wait_until
from tests.killing import command_line_here, kill_when

pytestmark = pytest.mark.usefixtures("plain")

DONE = "[DONE]\nAll is well.\n[/DONE]\n"
APPEND = "[RUN_COMMAND]\necho once >> log\n[/RUN_COMMAND]\n"


@pytest.fixture(name="home")
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home with a workspace, and the current folder."""
    (tmp_path / "home" / "workspace").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def start(home: Path, line: str, *words: str) -> tuple[int, str, str]:
    return command_line_here(home, "new", "task", "--sandbox", "off", "--reply-with", line, *words)


def go_on(home: Path, line: str, *words: str) -> tuple[int, str, str]:
    return command_line_here(home, "resume", "--reply-with", line, *words)


def said(home: Path, text: str, name: str = "answer") -> str:
    """Return a command that prints a text."""
    path = home.parent / name
    path.write_text(text)
    return f"cat {path}"


def session_of(home: Path) -> Session:
    found = Home.at(home, create=False)
    (session_id,) = found.sessions.ids()
    return found.sessions.load(session_id)


def inbox(home: Path) -> list[str]:
    """Return what is in the inbox itself."""
    return sorted(path.name for path in (home / "inbox").iterdir() if path.is_file())


def test_it_answers_until_done_from_what_it_reads(home: Path) -> None:
    """README: the request on its stdin, its stdout is the answer, taken like any other."""
    line = (
        'case "$(cat)" in *"Previous Command Results"*"line of a file"*)'
        ' printf "[DONE]\\nread it\\n[/DONE]\\n";;'
        ' *) printf "[READ_FILE path=\\"a.txt\\"]\\n";; esac'
    )
    (home / "workspace" / "a.txt").write_text("line of a file\n")
    status, _, err = start(home, line)
    assert (status, err) == (0, "")
    assert session_of(home).is_complete
    processed = sorted(path.name for path in (home / "inbox" / "processed").iterdir())
    assert [name.partition("_")[2] for name in processed] == ["seq0001.txt", "seq0002.txt"]
    assert inbox(home) == []


def test_it_is_told_session_sequence_and_the_short_request(home: Path) -> None:
    """And these variables are no settings for a codingagent that it calls itself."""
    line = (
        'echo "$CODINGAGENT_SESSION $CODINGAGENT_SEQUENCE $CODINGAGENT_SHORT" >> told;'
        f" {sys.executable} -m codingagent --home {home} show $CODINGAGENT_SESSION >> shown || exit 9;"
        ' if test "$CODINGAGENT_SEQUENCE" = 2; then'
        ' grep -q "As in the earlier requests" "$CODINGAGENT_SHORT" && echo [DONE]; else'
        " echo '[READ_FILE path=\"*\"]'; fi"
    )
    assert start(home, line)[0] == 0
    session_id = session_of(home).session_id
    first, second = (home / "told").read_text().splitlines()
    assert first.split() == [session_id, "1"]
    assert second.split()[:2] == [session_id, "2"]
    assert (home / "shown").read_text().count(f"session {session_id}: waiting for answer") == 2


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("true", "the --reply-with command printed nothing"),
        ("exit 3", "failed (exit code 3)"),
        ("echo no credit left >&2; echo half; exit 1", "failed (exit code 1): no credit left"),
        ("no-such-llm", "failed (exit code 127): "),
        ("echo '", "failed (exit code 2): "),
        ("kill -9 $$", "failed (exit code -9)"),
        ("printf '\\000\\001\\377'", "request 1: the command gave no answer to it"),
        ("cat", "request 1: the command gave no answer to it"),
        (
            'printf "[REPLY session=\\"00000000\\" sequence=\\"1\\"]\\n[DONE]\\nx\\n[/DONE]\\n[END]\\n"',
            "request 1: the command gave no answer to it",
        ),
        ("yes", "printed more than 256 MiB"),
        ("head -c 300000000 /dev/zero", "printed more than 256 MiB"),
    ],
)
def test_what_gives_no_answer_ends_the_wait_with_its_reason(home: Path, line: str, reason: str) -> None:
    """One line, status 1; nothing was executed, and the session can be gone on with."""
    status, _, err = start(home, line)
    assert (status, reason in err, err.count("\n")) == (1, True, 1), err
    session = session_of(home)
    assert (session.phase, session.sequence) == (Phase.AWAITING_ANSWER, 1)
    assert f"`codingagent resume {session.session_id}`" in err
    assert inbox(home) == []
    assert go_on(home, said(home, DONE))[0] == 0
    assert session_of(home).is_complete


def test_the_same_answer_twice_ends_the_wait(home: Path) -> None:
    """A loop that repeats itself would go on for ever; and nothing is run twice."""
    status, _, err = start(home, said(home, APPEND))
    assert (status, "request 2: the command gave the same answer twice" in err) == (1, True)
    rejected = sorted(path.name for path in (home / "inbox" / "rejected").iterdir())
    assert rejected[0] == f"{session_of(home).session_id}_seq0002_replied.txt"
    assert (home / "workspace" / "log").read_text() == "once\n"


def test_it_has_so_many_turns(home: Path) -> None:
    """--max-turns counts its answers; the request behind the last waits."""
    line = 'echo "[MESSAGE]"; echo "turn $CODINGAGENT_SEQUENCE"; echo "[/MESSAGE]"'
    status, _, err = start(home, line, "--max-turns", "3")
    assert (status, "stopped after 3 turns (--max-turns); the task is not done" in err) == (1, True)
    assert session_of(home).sequence == 4
    assert "no reply to your message" in request(home, 4)


def request(home: Path, sequence: int) -> str:
    (path,) = (home / "outbox").glob(f"*_seq{sequence:04d}.txt")
    return path.read_text("utf-8")


def test_an_answer_that_is_cut_short_or_only_talk_is_a_turn(home: Path) -> None:
    """The next request asks for the rest, as for a chat's."""
    line = (
        "case $CODINGAGENT_SEQUENCE in"
        " 1) echo 'I would first look around.';;"
        " 2) printf '[CREATE_FILE path=\"a.txt\"]\\nfirst line\\n';;"
        " 3) printf '[CREATE_FILE path=\"a.txt\"]\\nfirst line\\nlast\\n[/CREATE_FILE]\\n'; echo '[DONE]';;"
        " esac"
    )
    assert start(home, line)[0] == 0
    assert "FAILED" in request(home, 2)
    assert "a.txt" in request(home, 3)
    assert (home / "workspace" / "a.txt").read_text() == "first line\nlast\n"


def test_one_that_never_ends_is_ended_with_all_that_it_started(home: Path) -> None:
    """--reply-timeout; what it had printed is not taken."""
    marker = new_marker()
    line = f"cat {said(home, DONE)[4:]}; setsid sleep {marker} & sleep {marker}"
    with none_left(marker):
        status, _, err = start(home, line, "--reply-timeout", "1")
    assert (status, "did not end within 1 s (--reply-timeout)" in err) == (1, True)
    assert not session_of(home).is_complete
    assert inbox(home) == []


@pytest.mark.parametrize("end", ["exit 3", "sleep 60"])
def test_what_one_printed_before_it_failed_is_kept(home: Path, end: str) -> None:
    """Design, purpose: never lose a reply. It is not taken by itself, for it may be a half."""
    status, _, err = start(home, f"{said(home, DONE)}; {end}", "--reply-timeout", "3")
    assert (status, err.count("\n")) == (1, 1)
    (kept,) = (home / "inbox" / "rejected").glob("*.part")
    assert kept.read_text() == DONE
    words = shlex.split(err.partition("is kept: codingagent ")[2].partition("; nothing is lost")[0])
    assert words[-1] == str(kept)
    assert command_line_here(home, *words, "--once")[0] == 0
    assert session_of(home).is_complete


def test_it_has_the_persons_environment_and_commands_of_answers_have_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API key is for the one that replies alone; of what it is told nothing reaches commands either."""
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    seen = 'echo "key=$SOME_API_KEY session=$CODINGAGENT_SESSION" > seen'
    answer = said(home, f"[RUN_COMMAND]\n{seen}\n[/RUN_COMMAND]\n{DONE}")
    line = f'test "$SOME_API_KEY" = sk-secret || exit 9\necho thinking >&2 # done\n{answer}'
    status, out, _ = start(home, line)
    assert (status, "thinking" in out) == (0, True)
    assert (home / "workspace" / "seen").read_text() == "key= session=\n"


def test_json_stays_json(home: Path) -> None:
    """What it writes to stderr is shown in a line of its own."""
    status, out, _ = start(home, f"echo thinking >&2; {said(home, DONE)}", "--json")
    assert status == 0
    assert all(json.loads(line) for line in out.splitlines())


def test_an_approval_stops_it_and_it_goes_on_after_the_yes(home: Path) -> None:
    """Status 3, then `approve`, then `resume --reply-with`."""
    (home / "workspace" / "build").mkdir()
    answer = said(home, f"[RUN_COMMAND]\nrm -r build\n[/RUN_COMMAND]\n{APPEND}")
    assert start(home, answer)[0] == 3
    session_id = session_of(home).session_id
    assert go_on(home, "exit 9")[0] == 3
    assert command_line_here(home, "approve", session_id, "op-1")[0] == 0
    assert not (home / "workspace" / "build").exists()
    assert go_on(home, said(home, DONE))[0] == 0
    assert session_of(home).is_complete
    assert (home / "workspace" / "log").read_text() == "once\n"


def test_an_answer_that_the_person_saves_goes_first(home: Path) -> None:
    """Both ways lead to the inbox; what is there before the command is asked is the answer."""
    assert command_line_here(home, "new", "task", "--no-wait", "--sandbox", "off")[0] == 0
    (home / "inbox" / "mine.txt").write_text(APPEND + DONE)
    assert go_on(home, "touch asked; exit 9")[0] == 0
    assert session_of(home).is_complete
    assert not (home / "asked").exists()


def test_it_can_not_be_combined_with_other_ways(home: Path) -> None:
    """Wrong usage, before anything is made."""
    for words in (("--no-wait",), ("--clipboard",)):
        status, _, err = start(home, "true", *words)
        assert (status, f"--reply-with and {words[0]} can't be combined" in err) == (2, True)
    assert start(home, "  ")[0] == 2
    assert start(home, "true", "--reply-timeout", "nan")[0] == 2
    assert start(home, "true", "--max-turns", "0")[0] == 2
    assert not (home / "sessions").exists()


def test_a_kill_in_mid_reply_loses_nothing_and_takes_no_half(home: Path) -> None:
    """SIGKILL: what it had printed is no answer; its tree is ended; it is asked again."""
    marker = new_marker()
    assert command_line_here(home, "new", "task", "--no-wait", "--sandbox", "off")[0] == 0
    line = f"cat {said(home, APPEND + DONE)[4:]}; echo asked >> asked; sleep {marker}"

    def is_printed() -> bool:
        return any(path.stat().st_size for path in (home / "inbox").glob("*.part"))

    with none_left(marker):
        words = ("resume", "--reply-with", f"cd {home}; {line}")
        assert kill_when(home, words, lambda: is_printed() and (home / "asked").exists())
    assert not (home / "workspace" / "log").exists()
    assert session_of(home).phase is Phase.AWAITING_ANSWER
    assert go_on(home, said(home, APPEND + DONE))[0] == 0
    assert (home / "workspace" / "log").read_text() == "once\n"
    assert session_of(home).is_complete
    assert inbox(home) == []


def test_a_kill_while_its_answer_is_executed_runs_nothing_twice(home: Path) -> None:
    """The command that had started is not started again; the next request says so."""
    marker = new_marker()
    assert command_line_here(home, "new", "task", "--no-wait", "--sandbox", "off")[0] == 0
    answer = f'{APPEND}[RUN_COMMAND timeout="60"]\necho once >> log; sleep {marker}\n[/RUN_COMMAND]\n'
    log = home / "workspace" / "log"
    with none_left(marker):
        words = ("resume", "--reply-with", said(home, answer))
        assert kill_when(home, words, lambda: log.exists() and log.read_text().count("once") == 2)
    assert go_on(home, said(home, DONE, "last"))[0] == 0
    assert log.read_text() == "once\nonce\n"
    assert "it was not run again" in request(home, 2)


def test_ctrl_c_ends_it_and_all_that_it_started(home: Path) -> None:
    """Status 130, in one line that says how to go on."""
    marker = new_marker()
    words = [sys.executable, "-m", "codingagent", "--home", str(home), "new", "task"]
    words += ["--reply-with", f"sleep {marker}"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with (
        none_left(marker),
        subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, text=True
        ) as process,
    ):
        # The words of codingagent itself have it too.
        wait_until(lambda: len(processes_with(marker)) > 1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err.count("\n")) == (130, 1)
    assert "stopped; nothing is lost" in err
    assert inbox(home) == []


def test_the_command_itself_may_say_something(tmp_path: Path) -> None:
    """While it answers, nobody works in the home; its words go out with the next request."""
    script = tmp_path / "model.py"
    say = [sys.executable, "-m", "codingagent", "--home", str(tmp_path / "home"), "say", "hello"]
    script.write_text(
        f"import subprocess\ndone = subprocess.run({say!r}, capture_output=True)\n"
        "print(f'[MESSAGE]\\nstatus {done.returncode}\\n[/MESSAGE]\\n[DONE]\\nx\\n[/DONE]')\n"
    )
    line = f"{sys.executable} {script}"
    status, out, _ = command_line_here(tmp_path / "home", "new", "--reply-with", line, "a task")
    assert status == 0, out
    assert "status 0" in out
    assert "in another terminal:\nyou said: hello" in out


@pytest.mark.parametrize("how", ["close", "resume"])
def test_its_answer_to_a_request_that_waits_no_more_is_kept(home: Path, how: str) -> None:
    """Meanwhile another terminal closed the session, or took an answer: this one answers nothing now."""
    assert command_line_here(home, "new", "task", "--no-wait", "--sandbox", "off")[0] == 0
    os.mkfifo(home / "late")
    with started(home, "resume", "--reply-with", f"cat {home / 'late'}") as process:
        holder = Holder(process)
        holder.says("request 1 goes to")
        if how == "resume":
            (home / "inbox" / "mine.txt").write_text("[MESSAGE]\nFirst?\n[/MESSAGE]\n")
        assert command_line_here(home, how, *["--once"] * (how == "resume"))[0] == 0
        (home / "late").write_text(APPEND, "utf-8")
        holder.says("request 1 waits no more; what it had printed is kept: ")
        if how == "close":
            assert holder.ends() == 0
        else:
            holder.says("request 2 goes to")
        process.kill()
    assert not (home / "workspace" / "log").exists()
    assert [path.suffix for path in (home / "inbox" / "rejected").iterdir()].count(".part") == 1


def test_two_commands_do_not_answer_one_session(home: Path) -> None:
    assert command_line_here(home, "new", "task", "--no-wait", "--sandbox", "off")[0] == 0
    os.mkfifo(home / "late")
    with started(home, "resume", "--reply-with", f"cat {home / 'late'}") as process:
        holder = Holder(process)
        holder.says("request 1 goes to")
        status, _, err = go_on(home, "echo hello")
        assert (status, f"(pid {process.pid}) is using" in err) == (1, True)
        (home / "late").write_text(DONE, "utf-8")
        assert holder.ends() == 0
