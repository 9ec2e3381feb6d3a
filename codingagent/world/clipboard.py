"""The system's clipboard, and the terminal's where the system is another machine's."""

import base64
import threading
from collections.abc import Callable, Mapping
from typing import TextIO

from codingagent.errors import WorkError

# xterm and others drop what is longer; tmux passes on about as much.
_TERMINAL_LIMIT_BYTES = 74_000

_PATIENCE_S = 5.0

REMEDY = (
    "install xclip, xsel or wl-clipboard, or attach the file itself; an answer can be piped:"
    " `codingagent paste < FILE`"
)


def read() -> str:
    """Gives the text on the clipboard.

    Raises:
        WorkError: if there is no clipboard here, or nothing can be read from it.
    """
    import pyperclip  # type: ignore[import-untyped]  # its stubs are a package of their own

    try:
        return str(_within_patience(pyperclip.paste))
    except (pyperclip.PyperclipException, OSError, ValueError) as fault:
        raise WorkError(f"the clipboard can't be read: {_first_line(fault)}; {REMEDY}") from fault


def write(text: str) -> None:
    """Puts a text on the clipboard.

    Raises:
        WorkError: if there is no clipboard here, or it does not take the text.
    """
    import pyperclip

    try:
        _within_patience(lambda: pyperclip.copy(text))
    except (pyperclip.PyperclipException, OSError, ValueError) as fault:
        raise WorkError(
            f"the text can't be put on the clipboard: {_first_line(fault)}; {REMEDY}"
        ) from fault


def program() -> str:
    """Gives what reaches the clipboard here, in a word; empty if nothing does."""
    import pyperclip

    copying, _ = pyperclip.determine_clipboard()
    made_by = str(getattr(copying, "__qualname__", "")).partition(".")[0]
    if not made_by:
        return ""  # what stands in for one is no function
    word = made_by.removeprefix("init_").removesuffix("_clipboard")
    return {"wl": "wl-clipboard", "osx_pbcopy": "pbcopy", "osx_pyobjc": "pyobjc"}.get(word, word)


def _within_patience(call: Callable[[], object]) -> object:
    """Gives what a call gives; the clipboard's program may wait for a desktop that is not there."""
    found: list[object] = []
    faults: list[Exception] = []

    def run() -> None:
        try:
            found.append(call())
        except Exception as fault:  # noqa: BLE001  # raised again by the caller
            faults.append(fault)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    if faults:
        raise faults[0]
    if not found:
        raise OSError(f"its program does not answer in {_PATIENCE_S:g} s")
    return found[0]


def is_remote(variables: Mapping[str, str]) -> bool:
    """Tells whether the person sits at another machine: then its terminal has the clipboard."""
    return bool(variables.get("SSH_TTY") or variables.get("SSH_CONNECTION"))


def write_through_terminal(text: str, terminal: TextIO, *, in_tmux: bool) -> bool:
    """Asks the terminal to take a text (OSC 52); False if that is too long for terminals.

    Whether it did can't be known: many must be told first to allow it.
    """
    data = base64.b64encode(text.encode("utf-8", "replace"))
    if len(data) > _TERMINAL_LIMIT_BYTES:
        return False
    sequence = f"\x1b]52;c;{data.decode()}\x07"
    if in_tmux:
        sequence = f"\x1bPtmux;\x1b{sequence}\x1b\\"
    terminal.write(sequence)
    terminal.flush()
    return True


def _first_line(fault: Exception) -> str:
    return next(
        (line.strip() for line in str(fault).splitlines() if line.strip()), "no reason given"
    )
