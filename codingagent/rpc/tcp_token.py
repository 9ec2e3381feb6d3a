"""Token of `serve --tcp`: every user of this machine can reach a port; only its owner has the token."""

import os
import re
import secrets
import stat
from pathlib import Path

from msgspec import Struct

from codingagent.errors import UsageError

# 128 bits can't be guessed through a socket.
_BYTES = 16
_TOKEN = re.compile(r"[\x21-\x7e]{16,200}")
_READ_LIMIT_BYTES = 1024


class ServerToken(Struct, frozen=True):
    """The token that clients must present (None: none), and what the person is told about it."""

    value: str | None
    remark: str


def for_server(file: Path | None, *, is_needed: bool) -> ServerToken:
    """Return the token of a server on a port: the one in a file, which is created if missing, or a new one.

    Raises:
        UsageError: if the file can't be used.
    """
    if not is_needed:
        remark = "no token: every user of this machine can run commands here"
        return ServerToken(None, remark)
    if file is None:
        value = secrets.token_hex(_BYTES)
        return ServerToken(value, f"token {value}")
    if not file.exists():
        _make(file, secrets.token_hex(_BYTES))
    return ServerToken(read(file), f"the token is in {file}")


def read(file: Path) -> str:
    """Return the token in a file.

    Raises:
        UsageError: if it can't be read, others may read it, or it holds no token.
    """
    try:
        # Opening a named pipe must not block.
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode):
                raise UsageError(f"{file} is not a regular file; name another for the token")
            text = os.read(handle, _READ_LIMIT_BYTES).decode("ascii", "replace").strip()
        finally:
            os.close(handle)
    except OSError as fault:
        raise UsageError(f"{file} can't be read: {fault.strerror or fault}") from fault
    if os.name != "nt" and state.st_mode & 0o077:
        raise UsageError(f"others can read {file}; make it yours alone: chmod 600 {file}")
    if not _TOKEN.fullmatch(text):
        raise UsageError(
            f"{file} does not hold a token: 16 to 200 letters, digits or signs on one line;"
            " remove it, and `serve` creates a new one"
        )
    return text


def _make(file: Path, token: str) -> None:
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, f"{token}\n".encode())
        finally:
            os.close(handle)
    except FileExistsError:
        return  # another server was faster: use its token
    except OSError as fault:
        raise UsageError(f"{file} can't be written: {fault.strerror or fault}") from fault
