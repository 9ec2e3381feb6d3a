"""Questions on a terminal: answered only by what is typed after they are shown, and by no paste."""

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codingagent.cli.keyboard import Keyboard, PasteError
from tests.cli.test_amend import terminal
from tests.cli.test_cli import DONE, drop, run, session_of
from tests.helpers import HANG_S, wait_until
from tests.rows import each_row
from tests.warm import start

pytestmark = pytest.mark.usefixtures("plain")

MARK, UNMARK = "\x1b[?2004h", "\x1b[?2004l\x1b[?25h"
BUILD = "[RUN_COMMAND]\nrm -r build\n[/RUN_COMMAND]\n"
KEPT = "[RUN_COMMAND]\nrm -r kept\n[/RUN_COMMAND]\n"
ASKED = "Approve?"


# --- the reader, on a terminal of its own ----------------------------------------------------------


class Pad:
    """A keyboard at a terminal of the test's own; `type` is the person."""

    def __init__(self, ours: int, theirs: int, encoding: str) -> None:
        self._ours = ours
        self._theirs = theirs
        self.screen = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.terminal = open(theirs, encoding=encoding, closefd=False)  # noqa: SIM115
        self.keyboard = Keyboard(self.terminal, self.screen)

    def type(self, keys: str | bytes) -> None:
        os.write(self._ours, keys if isinstance(keys, bytes) else keys.encode())

    def line(self, *keys: str | bytes) -> str:
        """Returns the line typed once the prompt was shown, each piece when the one before was read."""
        left = iter([*keys, *[""] * 300])

        def elsewhere() -> bool:
            self.type(next(left))  # in the end it fails: nothing that was typed is a line
            return False

        line = self.keyboard.line(lambda: None, elsewhere)
        assert line is not None
        return line

    @contextmanager
    def typing(self, *pieces: str) -> Iterator[None]:
        """Types each piece as soon as the one before was read."""

        def types() -> None:
            for piece in pieces:
                wait_until(lambda: not select.select([self._theirs], [], [], 0)[0])
                self.type(piece)

        thread = threading.Thread(target=types)
        thread.start()
        yield
        thread.join()

    @property
    def modes(self) -> list[object]:
        return termios.tcgetattr(self._theirs)


@contextmanager
def pad(encoding: str = "utf-8") -> Iterator[Pad]:
    ours, theirs = pty.openpty()
    found = Pad(ours, theirs, encoding)
    try:
        with found.terminal, found.screen:
            yield found
    finally:
        os.close(ours)
        os.close(theirs)


@each_row(
    ("before", "found"),
    [("", False), ("a\n", True), ("a\n" * 1000, True), ("half a li", True), ("\x04", True)],
)
def test_what_was_typed_before_is_discarded(before: str, found: bool) -> None:
    """Whole lines, a queue full of them, and half a line that has not been sent yet."""
    with pad() as person:
        person.type(before)
        with person.keyboard as keys:
            assert keys.discard() is found
            assert person.line("y\r") == "y"


@pytest.mark.parametrize(
    "pieces",
    [("eas", "y\n", "a", "\n"), ("some text\n", "y\n"), ("\x1b[200~a text\n", "y\n", "\x1b[20", "1~", "a\n")],
)
def test_what_is_still_on_its_way_is_discarded_too(pieces: tuple[str, ...]) -> None:
    """A line typed across the moment of the question, a paste that comes in pieces: no half is an answer."""
    with pad() as person:
        person.type("so")
        with person.keyboard as keys, person.typing(*pieces):
            assert keys.discard()
        with person.keyboard:
            assert person.line("n\r") == "n"


@each_row(
    ("keys", "line"),
    [
        (("y\r",), "y"),
        (("y\n",), "y"),
        (("y\r\n",), "y"),
        (("y", "\r"), "y"),
        (("nx\x7f\r",), "n"),
        (("no way\x17\x17yes\r",), "yes"),
        (("never\x15n\r",), "n"),
        (("\x7f\x7fn\r",), "n"),
        (("\x1b[A\x1b[Dn\x1bOC\r",), "n"),
        (("\x1b", "n\r"), "n"),
        (("zu groß — 遅い\r",), "zu groß — 遅い"),
        ((b"gro\xc3", b"\x9f\r"), "groß"),
        (("\x00\x01n\x02\r",), "n"),
        (("\r",), ""),
    ],
)
def test_a_line_is_typed(keys: tuple[str | bytes, ...], line: str) -> None:
    """Key by key or in one go, with the editing that a terminal's own lines have."""
    with pad() as person, person.keyboard:
        assert person.line(*keys) == line


@each_row(
    "keys",
    [
        ("\x1b[200~y\x1b[201~",),
        ("\x1b[200~y\n\x1b[201~",),
        ("\x1b[200~y\n\x1b[201~\r",),
        ("n\x1b[200~y\n\x1b[201~",),
        ("\x1b[200~\x1b[31my\x1b[201~y\n",),
        ("\x1b[200~one\x1b[201~\x1b[200~y\n\x1b[201~",),
        ("y\ny\n",),
        ("some text\ny\n",),
        ("y\nrm -r /\n",),
        ("y\nhalf a li",),
        ("x" * 5000 + "\ny\n",),
    ],
)
def test_a_paste_is_no_line(keys: tuple[str, ...]) -> None:
    """Marked as one by the terminal, or known by its lines; nothing of it is left for the next prompt."""
    with pad() as person, person.keyboard as keyboard:
        with pytest.raises(PasteError):
            person.line(*keys)
        assert not keyboard.discard()
        assert person.line("n\r") == "n"


def test_the_end_of_input_is_no_line() -> None:
    with pad() as person, person.keyboard, pytest.raises(EOFError):
        person.line("\x04")
    with pad() as person, person.keyboard:
        # On a line that has begun it means nothing.
        assert person.line("n\x04\r") == "n"


def test_a_terminal_that_is_gone_is_the_end_of_input() -> None:
    ours, theirs = pty.openpty()
    with (
        os.fdopen(theirs, "r+b", 0) as raw,
        io.TextIOWrapper(raw) as terminal,
        Keyboard(terminal, terminal) as keyboard,
    ):
        os.close(ours)
        with pytest.raises(EOFError):
            keyboard.line(lambda: None, lambda: False)


def test_what_came_from_elsewhere_comes_first() -> None:
    with pad() as person, person.keyboard as keyboard:
        person.type("y\r")
        assert keyboard.line(lambda: None, lambda: True) is None
        person.type("half a li")
        assert keyboard.line(lambda: None, lambda: True) is None
        assert not keyboard.discard()


def test_a_terminal_of_another_encoding() -> None:
    with pad("latin-1") as person, person.keyboard:
        assert person.line("groß\r".encode("latin-1")) == "groß"


def test_it_is_left_as_it_was() -> None:
    """Modes and marks, also by way of a fault; signals are where they were."""
    with pad() as person:
        before = person.modes
        with pytest.raises(KeyboardInterrupt), person.keyboard:
            assert person.modes != before
            raise KeyboardInterrupt
        assert person.modes == before
        person.screen.seek(0)
        assert person.screen.read() == f"{MARK}{UNMARK}"
        assert signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL


# --- the command on a terminal ---------------------------------------------------------------------


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    """A home whose session waits; its workspace has two folders that an answer wants to remove."""
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "clean up") == 0
    for folder in ("build", "kept"):
        (home / "workspace" / folder).mkdir()
    return home


def folders(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "workspace").iterdir() if path.is_dir())


def log(home: Path, capsys: pytest.CaptureFixture[str], command: str = "log") -> str:
    capsys.readouterr()
    assert run(home, command) == 0
    return " ".join(capsys.readouterr().out.split())


def test_what_is_typed_while_it_waits_answers_no_question(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line "a" in the waiting terminal is no "always" to what is asked a minute later."""
    with terminal(home, "resume") as asked:
        asked.says("Paste the answer")
        asked.types("a\ny\nand half a li")
        asked.says("Its number:")
        drop(home, BUILD)
        asked.types("3\n")
        asked.says(ASKED)
        asked.types("n\n")
        asked.says("Reason for the model")
        asked.types("keep it\n")
        asked.says("Request 2")
    assert folders(home) == ["build", "kept"]
    told = "you said no: keep it"
    assert told in log(home, capsys)
    assert told.removeprefix("answered ") in log(home, capsys, "show")


def test_an_answer_typed_twice_answers_one_question(home: Path) -> None:
    """The second of two lines comes while the first is being done, before the next question."""
    go = home / "workspace" / "go"
    first = BUILD.replace("build", f"build; echo removed; until [ -e {go.name} ]; do sleep 0.1; done")
    drop(home, first + KEPT)
    with terminal(home, "resume") as asked:
        asked.says(ASKED)
        asked.types("y\n")
        wait_until(lambda: folders(home) == ["kept"])
        asked.types("y\ny\n")
        go.touch()
        asked.says("discarded")
        asked.says(ASKED, 2)
        # What comes in one go is a paste, whether it is marked or not.
        asked.types("y\ny\n")
        asked.says("pasted text is ignored: type the answer")
        asked.says(ASKED, 3)
        asked.types("\x1b[200~y\n\x1b[201~")
        asked.says("pasted text is ignored: type the answer", 2)
        asked.says(ASKED, 4)
        asked.types("n\n\n")
        asked.says("Reason for the model")
        assert "Request 2" not in asked.said  # its second line was typed before that
        asked.types("\n")
        asked.says("Request 2")
    assert folders(home) == ["kept"]


@contextmanager
def owning(program: str, **variables: str) -> Iterator[tuple["subprocess.Popen[bytes]", int, int]]:
    """Runs a Python program on a terminal that is its own, so that Ctrl-C and Ctrl-Z are signals."""
    ours, theirs = pty.openpty()
    own = "import fcntl, os, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
    with start(
        f"{own}; {program}",
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", **variables},
    ) as process:
        try:
            yield process, ours, theirs
        finally:
            process.kill()
            os.close(ours)
            os.close(theirs)


def read_until(terminal: int, is_enough: Callable[[str], bool]) -> str:
    seen = ""
    while not is_enough(seen):
        assert select.select([terminal], [], [], 60)[0], seen
        seen += os.read(terminal, 65536).decode("utf-8", "replace")
    return seen


@pytest.mark.parametrize("ending", ["\x03", signal.SIGTERM])
def test_a_question_gives_the_terminal_back(home: Path, ending: str | signal.Signals) -> None:
    """However it ends: pastes are as they were, and so is the line editing of the system."""
    drop(home, BUILD)
    words = ["--home", str(home), "resume"]
    program = f"from codingagent.cli import main; import sys; sys.exit(main.run({words}))"
    with owning(program) as (process, ours, theirs):
        before = termios.tcgetattr(theirs)
        seen = read_until(ours, lambda text: ASKED in text)
        assert termios.tcgetattr(theirs) != before
        if isinstance(ending, str):
            os.write(ours, ending.encode())
        else:
            process.send_signal(ending)
        assert process.wait(HANG_S) == (130 if isinstance(ending, str) else -signal.SIGTERM)
        os.write(theirs, b"the end")
        seen += read_until(ours, lambda text: "the end" in text)
        assert seen.count(MARK) == seen.count(UNMARK) == 1
        assert seen.index(MARK) < seen.index(UNMARK)
        assert termios.tcgetattr(theirs) == before
    assert folders(home) == ["build", "kept"]


def test_a_shell_has_its_terminal_while_the_question_is_stopped(home: Path) -> None:
    """Ctrl-Z, a command of the shell's, then fg: the question is shown again and can be answered."""
    drop(home, BUILD)
    line = f"{sys.executable} -m codingagent --home {home} resume --once\n"
    with owning("os.execlp('sh', 'sh', '-i')", PS1="ready> ") as (shell, ours, _):
        read_until(ours, lambda text: "ready> " in text)
        os.write(ours, line.encode())
        read_until(ours, lambda text: ASKED in text)
        os.write(ours, b"no")
        read_until(ours, lambda text: "no" in text)
        os.write(ours, b"\x1a")
        read_until(ours, lambda text: UNMARK in text and "ready> " in text)
        os.write(ours, b"stty -a | tr ' ' '\\n' | grep -x icanon; fg\n")
        seen = read_until(ours, lambda text: ASKED in text)
        assert re.search(r"\nicanon\r\n", seen)
        os.write(ours, b"no\r")
        read_until(ours, lambda text: "Reason for the model" in text)
        os.write(ours, b"\r")
        read_until(ours, lambda text: "ready> " in text)
        os.write(ours, b"exit\n")
        shell.wait(60)
    assert folders(home) == ["build", "kept"]


def test_the_record_says_which_way_an_answer_came(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From a command, from `--yes`, from an earlier always; and what an older version wrote still reads."""
    drop(home, BUILD)
    assert run(home, "resume", "--once") == 3
    assert run(home, "approve", session_of(home), "--always") == 0
    drop(home, BUILD.replace("rm", "mkdir build; rm"))
    assert run(home, "resume", "--once") == 0
    drop(home, '[CREATE_FILE path=".envrc"]\nuse nix\n[/CREATE_FILE]\n')
    assert run(home, "resume", "--once", "--yes") == 0
    told = log(home, capsys)
    assert "you said always (`codingagent approve`)" in told
    assert 'your earlier "always" said yes' in told
    assert "--yes said yes" in told
    journal = home / "sessions" / session_of(home) / "journal.jsonl"
    journal.write_text(re.sub(r',"how":"[^"]*"', "", journal.read_text("utf-8")), "utf-8")
    assert "you said always (" not in (told := log(home, capsys))
    assert "person said always" in told
    drop(home, DONE)
    assert run(home, "resume", "--once") == 0
