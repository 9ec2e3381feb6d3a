"""One home, one executor: a lock that dies with its holder."""

import contextlib
import os
import sys
from pathlib import Path

from codingagent.errors import WorkError


class HeldError(WorkError):
    """Another process holds the lock."""


class HomeLock:
    """Held from construction to `close`; the system lets go of it when the process ends, however.

    Args:
        path: the lock's file, which also says who holds it and is never removed.

    Raises:
        HeldError: if another process does; the message has its pid.
        WorkError: if the file can't be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as fault:
            raise WorkError(f"{path} can't be written: {fault.strerror or fault}") from fault
        try:
            _lock(self._handle)
        except OSError:
            # The first byte is what Windows locks; the pid is after it.
            os.lseek(self._handle, 1, os.SEEK_SET)
            pid = os.read(self._handle, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(self._handle)
            raise HeldError(
                f"another codingagent (pid {pid}) is at work in {path.parent.parent};"
                " let it finish, or stop it with Ctrl-C"
            ) from None
        os.ftruncate(self._handle, 0)
        os.write(self._handle, f" {os.getpid()}\n".encode())

    def close(self) -> None:
        """Lets go of the lock."""
        with contextlib.suppress(OSError):
            os.close(self._handle)


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
