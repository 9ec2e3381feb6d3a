"""Several sessions of one home: each answer goes to its own, with real processes and files."""

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.cli.test_amend import holding
from tests.cli.test_cli import DONE, drop, run
from tests.helpers import HANG_S, wait_until
from tests.killing import kill_when
from tests.warm import start_command

pytestmark = pytest.mark.usefixtures("plain")


def creating(name: str, session: str = "", sequence: int = 1) -> str:
    header = f'[REPLY session="{session}" sequence="{sequence}"]\n' if session else ""
    return f'{header}[CREATE_FILE path="{name}"]\nmade\n[/CREATE_FILE]\n[END]\n'


class Sessions:
    """A home with two sessions that wait; `late` was begun last."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.early, self.late = self._begin("the early task"), self._begin("the late task")

    def _begin(self, task: str) -> str:
        known = set(self._ids())
        assert run(self.home, "new", "--no-wait", task) == 0
        (session,) = set(self._ids()) - known
        return session

    def _ids(self) -> list[str]:
        return [path.stem for path in (self.home / "sessions").glob("*.json")]

    def sequence(self, session: str) -> int:
        document = json.loads((self.home / "sessions" / f"{session}.json").read_text("utf-8"))
        return int(document["sequenceNumber"])

    @property
    def made(self) -> list[str]:
        return sorted(path.name for path in (self.home / "workspace").iterdir())

    @property
    def lying(self) -> list[str]:
        return sorted(path.name for path in (self.home / "inbox").glob("*.txt"))

    @property
    def rejected(self) -> list[str]:
        return sorted(path.name for path in (self.home / "inbox" / "rejected").glob("*"))


@pytest.fixture(name="sessions")
def _sessions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Sessions:
    sessions = Sessions(tmp_path / "home")
    capsys.readouterr()
    return sessions


def test_an_answer_to_another_session_is_left_to_it(
    sessions: Sessions, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, inbox: the session that was named takes its own, and says what is another's."""
    drop(sessions.home, creating("a.txt", sessions.early), "first.txt")
    drop(sessions.home, creating("b.txt"), "second.txt")
    assert run(sessions.home, "resume", sessions.late, "--once") == 0
    said = capsys.readouterr().out
    assert f"first.txt is for session {sessions.early}: it stays in the inbox" in said
    assert f" resume {sessions.early}` takes it" in said
    assert (sessions.made, sessions.lying, sessions.rejected) == (["b.txt"], ["first.txt"], [])
    assert run(sessions.home, "resume", sessions.early, "--once") == 0
    assert sessions.made == ["a.txt", "b.txt"]
    assert (sessions.sequence(sessions.early), sessions.sequence(sessions.late)) == (2, 2)


@pytest.mark.parametrize("option", [(), ("--yes",), ("--check", "true")])
def test_resume_without_a_name_leaves_an_answer_to_another_session(
    sessions: Sessions, option: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, command line: `resume` means the latest session, and says what is another's."""
    drop(sessions.home, creating("1.txt", sessions.early), "1.txt")
    drop(sessions.home, creating("2.txt", sessions.late), "2.txt")
    assert run(sessions.home, "resume", "--once", *option) == 0
    said = capsys.readouterr().out
    assert f"1.txt is for session {sessions.early}: it stays in the inbox" in said
    assert f" resume {sessions.early}` takes it" in said
    assert (sessions.made, sessions.lying) == (["2.txt"], ["1.txt"])
    assert run(sessions.home, "resume", sessions.early, "--once") == 0
    assert (sessions.made, sessions.lying) == (["1.txt", "2.txt"], [])


@pytest.mark.with_git
def test_an_answer_that_names_none_of_several_needs_a_name(
    sessions: Sessions, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, inbox: nobody guesses; it is one line and exit status 2."""
    drop(sessions.home, creating("a.txt"))
    assert run(sessions.home, "resume", "--once") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "reply.txt doesn't say which session it answers, and 2 wait" in line
    for named in (f"{sessions.early} (the early task)", f"{sessions.late} (the late task)"):
        assert named in line
    assert (sessions.made, sessions.lying) == ([], ["reply.txt"])
    assert run(sessions.home, "resume", sessions.early, "--once") == 0
    assert sessions.sequence(sessions.early) == 2
    # Now the other one waits alone with it; once it is complete nobody need be asked.
    drop(sessions.home, DONE)
    assert run(sessions.home, "resume", sessions.early, "--once") == 0
    drop(sessions.home, creating("b.txt"))
    assert run(sessions.home, "resume", "--once") == 0
    assert sessions.made == ["a.txt", "b.txt"]


def test_who_waits_leaves_an_answer_to_another_session(sessions: Sessions) -> None:
    """Design, command line: it is said once, with the command that takes it."""
    with holding(sessions.home) as holder:
        drop(sessions.home, creating("a.txt", sessions.early), "a-for-early.txt")
        holder.says(f"a-for-early.txt is for session {sessions.early}: it stays in the inbox")
        drop(sessions.home, f'[REPLY session="{sessions.late}" sequence="1"]\n{DONE}[END]\n', "end.txt")
        assert holder.ends() == 0
    assert (sessions.made, sessions.lying) == ([], ["a-for-early.txt"])


def test_a_new_session_in_its_terminal_is_one_that_was_named(sessions: Sessions) -> None:
    with holding(sessions.home, "new", "a third task") as holder:
        drop(sessions.home, creating("a.txt", sessions.early), "other.txt")
        holder.says(f"other.txt is for session {sessions.early}: it stays in the inbox")
        drop(sessions.home, creating("b.txt"), "mine.txt")
        wait_until(lambda: sessions.made == ["b.txt"])
        drop(sessions.home, DONE, "mine.txt")
        assert holder.ends() == 0
        assert holder.said.count("other.txt is for session") == 1
    assert sessions.lying == ["other.txt"]


def test_an_answer_to_a_request_that_waits_no_more_is_not_executed_elsewhere(
    sessions: Sessions, capsys: pytest.CaptureFixture[str]
) -> None:
    drop(sessions.home, creating("a.txt", sessions.early))
    assert run(sessions.home, "resume", sessions.early, "--once") == 0
    drop(sessions.home, creating("b.txt", sessions.early))
    capsys.readouterr()
    assert run(sessions.home, "resume", sessions.late, "--once") == 0
    said = capsys.readouterr().out
    assert f"an earlier request of session {sessions.early}" in said
    assert f" show {sessions.early}`" in said
    assert "--accept" not in said
    assert (sessions.made, sessions.sequence(sessions.late)) == (["a.txt"], 1)


def test_what_is_pasted_goes_to_the_session_that_it_names_or_that_was_named(sessions: Sessions) -> None:
    def pasted(text: str, *words: str) -> tuple[int, str]:
        with start_command(
            *("--home", str(sessions.home), "paste", *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            said, _ = process.communicate(text, HANG_S)
        return process.returncode, said

    status, said = pasted(creating("a.txt"))
    assert (status, f"{sessions.early} (the early task)" in said) == (2, True)
    status, said = pasted(creating("a.txt"), sessions.early)
    assert (status, f"resume {sessions.early}" in said) == (0, True)
    operation = {"type": "createFile", "path": "b.txt", "content": "made\n"}
    message = {"protocolVersion": "1.0", "session": sessions.late, "sequence": 1}
    status, said = pasted(json.dumps({**message, "operations": [operation]}))
    assert (status, f"resume {sessions.late}" in said) == (0, True)
    # A file that is named after a session need not name it inside.
    for session in (sessions.late, sessions.early):
        assert run(sessions.home, "resume", session, "--once") == 0
    assert (sessions.made, sessions.lying) == (["a.txt", "b.txt"], [])
    status, said = pasted(creating("c.txt", sessions.early, 2), sessions.late)
    assert (status, f"resume {sessions.early}" in said) == (0, True)


def test_a_kill_between_two_sessions_loses_nothing(sessions: Sessions) -> None:
    """Design, nothing is lost: each answer is executed once, by its own session."""
    home = sessions.home
    counting = "[RUN_COMMAND]\necho {0} >>ran\n[/RUN_COMMAND]\n"
    for number, session in enumerate([sessions.early, sessions.late, sessions.early], start=1):
        sequence = 1 + (number == 3)
        header = f'[REPLY session="{session}" sequence="{sequence}"]\n'
        drop(home, header + counting.format(number) + "[END]\n", f"{number}.txt")
    processed = home / "inbox" / "processed"

    def has_taken(count: int) -> bool:
        return processed.is_dir() and len(list(processed.iterdir())) >= count

    for count, session in ((1, sessions.early), (2, sessions.late)):
        kill_when(home, ("resume", session, "--once"), partial(has_taken, count))
    for session in (sessions.early, sessions.late):
        assert run(home, "resume", session, "--once") == 0
    assert sessions.lying == []
    ran = (home / "workspace" / "ran").read_text().split()
    assert sorted(set(ran)) == sorted(ran)
    assert (sessions.sequence(sessions.early), sessions.sequence(sessions.late)) == (3, 2)
