"""Token of `serve --tcp`: every user of this machine can reach a port; only its owner has the token."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from codingagent.errors import UsageError, disk_errors
from codingagent.model.patterns import lazy_pattern

# 128 bits can't be guessed through a socket.
_BYTES = 16
_TOKEN = lazy_pattern(r"[\x21-\x7e]{16,200}")
_READ_LIMIT_BYTES = 1024


def for_server(file: Path | None, *, is_needed: bool) -> tuple[str | None, str]:
    """Return the token of a server on a port, and what to tell the person about it.

    It is the one in a file, which is created if missing, or a new one; None if clients need none.
    """
    if not is_needed:
        return None, "no token: every user of this machine can run commands here"
    new = secrets.token_hex(_BYTES)
    if file is None:
        return new, f"token {new}"
    with (
        disk_errors(f"{file} can't be written", UsageError),
        suppress(FileExistsError),
        open(file, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as made,
    ):
        made.write(f"{new}\n")
    return read(file), f"the token is in {file}"


def read(file: Path) -> str:
    """Return the token in a file; UsageError if it holds none, or others may read it."""

    def opened(name: str, flags: int) -> int:
        # Opening a named pipe must not block.
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    with disk_errors(f"{file} can't be read", UsageError), open(file, "rb", opener=opened) as held:
        state = os.fstat(held.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise UsageError(f"{file} is not a regular file; name another for the token")
        text = held.read(_READ_LIMIT_BYTES).decode("ascii", "replace").strip()
    if os.name != "nt" and state.st_mode & 0o077:
        raise UsageError(f"others can read {file}; make it yours alone: chmod 600 {file}")
    if not _TOKEN.fullmatch(text):
        raise UsageError(
            f"{file} does not hold a token: 16 to 200 letters, digits or signs on one line;"
            " remove it, and `serve` creates a new one"
        )
    return text
