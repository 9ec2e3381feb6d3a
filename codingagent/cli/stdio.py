"""Properties of output streams: terminal or not, which characters they can show; and how to silence one."""

import codecs
import contextlib
import errno
import io
import os
import sys
from typing import TextIO

# Our own characters that an old terminal can't show.
_PLAINER = dict(zip("…✓✗−—–━─→←•", ("...", "+", "x", "-", "-", "-", "#", "-", ">", "<", "*"), strict=True))
_OBEYS = 4  # ENABLE_VIRTUAL_TERMINAL_PROCESSING


def silence(stream: TextIO) -> None:
    """Discard the rest of the output: its reader has gone, or its disk is full."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def is_stuck(stream: TextIO) -> bool:
    """Return whether nothing can be written: a line end is tried."""
    with contextlib.suppress(OSError):
        stream.write("\n")
        stream.flush()
        return False
    return True


def has_no_reader(fault: OSError) -> bool:
    """Return whether a pipe's reader has gone: Windows calls that an invalid argument, of no file."""
    is_told_so = os.name == "nt" and fault.errno == errno.EINVAL and fault.filename is None
    return isinstance(fault, BrokenPipeError) or is_told_so


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal: to Windows `nul` is a device like one."""
    return stream.isatty() and _is_console(stream)


def obeys_codes(stream: TextIO) -> bool:
    """Return whether a terminal obeys escape codes; have the classic console of Windows do so."""
    return _is_console(stream, _OBEYS)


def _is_console(stream: TextIO, added: int = 0) -> bool:
    """Return whether a stream is a console, on Windows, and its mode got these bits."""
    is_one = True
    if sys.platform == "win32":
        import ctypes
        import msvcrt

        kernel, mode = ctypes.WinDLL("kernel32"), ctypes.c_uint32()
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(stream.fileno()))
        is_one = bool(kernel.GetConsoleMode(handle, ctypes.byref(mode)))
        is_one = is_one and bool(not added or kernel.SetConsoleMode(handle, mode.value | added))
    return is_one


def be_utf8(stream: TextIO) -> None:
    """Have what a program reads be UTF-8 with plain line ends, also on Windows; a screen stays as it is."""
    if isinstance(stream, io.TextIOWrapper) and not is_terminal(stream):
        stream.reconfigure(encoding="utf-8", newline="\n")


def is_living(stream: TextIO) -> bool:
    """Return whether the stream is a terminal that can move its cursor."""
    return is_terminal(stream) and os.environ.get("TERM") not in ("dumb", "unknown")


def can_show_marks(stream: TextIO) -> bool:
    """Return whether the stream's encoding has all marks that this program prints."""
    try:
        "".join(_PLAINER).encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def be_plainer(stream: TextIO) -> None:
    """Make the stream replace marks that its encoding lacks with plainer ones, and anything else with `?`."""

    def plainer(fault: UnicodeError) -> tuple[str, int]:
        assert isinstance(fault, UnicodeEncodeError), "it is for what is written"
        text = fault.object[fault.start : fault.end]
        return "".join(_PLAINER.get(char, "?") for char in text), fault.end

    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error("codingagent", plainer)
        stream.reconfigure(errors="codingagent")
