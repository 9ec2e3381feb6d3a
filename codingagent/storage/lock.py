"""The home lock: one process executes in a home; the lock ends with that process."""

import contextlib
import os
from pathlib import Path

from codingagent.errors import WorkError, disk_errors
from codingagent.storage import file_lock
from codingagent.workspace.sharing import retried


class HeldError(WorkError):
    """Another process holds the lock."""


class HomeLock:
    """Held from construction to `close`; the system releases it however the process ends.

    `path` is the lock file, which also names the holder and is never removed. HeldError if another process
    holds it; the message has its pid.
    """

    def __init__(self, path: Path) -> None:
        with disk_errors(f"{path} can't be written"):
            self._handle = retried(lambda: os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        try:
            file_lock.take(self._handle)
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
        with contextlib.suppress(OSError):
            os.close(self._handle)
