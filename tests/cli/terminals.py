"""A real terminal of a given size: the command runs in it, and what it showed is given back."""

import fcntl
import locale
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import HANG_S, REPOSITORY
from tests.warm import start

# ECMA-48: what moves the cursor, colours text, sets the title or rings, and is no text.
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\].*?(?:\x07|\x1b\\)|\x07")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[1-9][0-9;]*m")  # not what ends colours

HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"

_UTF8 = {} if locale.getpreferredencoding().lower() == "utf-8" else {"PYTHONUTF8": "1"}

# What would decide on the looks in place of the test.
_DECIDING = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "PYTHONIOENCODING")


@dataclass(frozen=True, slots=True)
class Shown:
    """What came to the terminal, and the exit status."""

    raw: str
    status: int

    @property
    def text(self) -> str:
        """What there was to read, in lines."""
        return _CODES.sub("", self.raw).replace("\r\n", "\n")

    @property
    def has_colour(self) -> bool:
        return _COLOUR.search(self.raw) is not None

    @property
    def width(self) -> int:
        """How wide the widest line is, but for paths and commands: to be copied they are never broken."""
        whole = re.compile(r"/|\r|\bcodingagent (resume|approve|deny) ")
        lines = (line for line in self.text.split("\n") if not whole.search(line))
        return max(map(len, lines), default=0)


def on_terminal(
    words: Iterable[str],
    columns: int = 80,
    variables: Mapping[str, str] | None = None,
    answers: Iterable[tuple[str, str]] = (),
    folder: Path = REPOSITORY,
    called: str = "-c",
) -> Shown:
    """Runs the command line in a terminal.

    Args:
        words: of the command line.
        columns: how wide the terminal is.
        variables: the environment's, besides the usual.
        answers: what to type once a text has come, one after the other. Ctrl-C is "\\x03".
        folder: the current one.
        called: the path by which the program was started.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    usual = {name: value for name, value in os.environ.items() if name not in _DECIDING}
    usual |= {"TERM": "xterm-256color", **_UTF8, **(variables or {})}

    process = start(
        *(f"import sys; sys.argv[0] = {called!r}; {_OWN_TERMINAL}", *words),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env={"PYTHONPATH": os.fspath(REPOSITORY), **usual},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        data = _read(ours, list(answers), time.monotonic() + HANG_S)
        process.wait(HANG_S)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    encoding = (variables or {}).get("PYTHONIOENCODING", "utf-8")
    return Shown(data.decode(encoding), process.returncode)


# Ctrl-C is a signal only on the terminal that is one's own.
_OWN_TERMINAL = (
    "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "from codingagent.cli import main; main.main()"
)


def _read(terminal: int, answers: list[tuple[str, str]], deadline: float) -> bytes:
    data, seen = b"", 0
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            came = os.read(terminal, 65536)
        except OSError:  # Linux: the last one who had it open is gone
            break
        if not came:
            break
        data += came
        while answers and (found := data.find(answers[0][0].encode(), seen)) >= 0:
            seen = found + len(answers[0][0])
            os.write(terminal, answers.pop(0)[1].encode())
    return data
