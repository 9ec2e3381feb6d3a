"""The home lock: one process executes in a home; the lock ends with that process."""

import contextlib
import os
import sys
from pathlib import Path

from codingagent.errors import WorkError, disk_errors


class HeldError(WorkError):
    """Another process holds the lock."""


class HomeLock:
    """Held from construction to `close`; the system releases it however the process ends.

    Args:
        path: the lock file, which also names the holder and is never removed.

    Raises:
        HeldError: if another process holds it; the message has its pid.
        WorkError: if the file can't be written.
    """

    def __init__(self, path: Path) -> None:
        with disk_errors(f"{path} can't be written"):
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._handle)
        except OSError:
            # Windows locks the first byte; the pid follows it.
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
        """Release the lock."""
        with contextlib.suppress(OSError):
            os.close(self._handle)


def is_held(path: Path) -> bool:
    """Return whether a living process holds a lock file; nothing is created or written."""
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags)
    except OSError:
        return False
    try:
        _lock(handle)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
