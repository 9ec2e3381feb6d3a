"""What an output stream is: a terminal or not, which characters it can show; and an end of writing to it."""

import codecs
import contextlib
import io
import os
from typing import TextIO

# What we write ourselves and an old terminal can't show.
_PLAINER = dict(
    zip("…✓✗−—–━─→←•", ("...", "+", "x", "-", "-", "-", "#", "-", ">", "<", "*"), strict=True)
)
_ERRORS = "codingagent"


def silence(stream: TextIO) -> None:
    """Send the rest of the output nowhere: its reader has gone, or its disk is full."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def is_seen(stream: TextIO) -> bool:
    """Return whether a person looks at the stream, or FORCE_COLOR says so."""
    return stream.isatty() or bool(os.environ.get("FORCE_COLOR"))


def is_living(stream: TextIO) -> bool:
    """Return whether the stream is a terminal that can do more than lines."""
    return is_seen(stream) and os.environ.get("TERM") not in ("dumb", "unknown")


def can_show_marks(stream: TextIO) -> bool:
    """Return whether the stream's encoding has all our marks."""
    try:
        "".join(_PLAINER).encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def be_plainer(stream: TextIO) -> None:
    """Make the stream write marks that its encoding lacks as plainer ones, anything else as `?`."""
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error(_ERRORS, _plainer)
        stream.reconfigure(errors=_ERRORS)


def _plainer(fault: UnicodeError) -> tuple[str, int]:
    assert isinstance(fault, UnicodeEncodeError), "it is for what is written"
    text = fault.object[fault.start : fault.end]
    return "".join(_PLAINER.get(char, "?") for char in text), fault.end
