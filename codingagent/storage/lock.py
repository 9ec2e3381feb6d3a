"""Locks on files, which the system releases however the process ends; a home has one for who works in it."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from codingagent.errors import WorkError, disk_errors, system_reason
from codingagent.workspace.dirfd import open_handle, retried

# A call of a tool holds it for a millisecond.
_LOOK_FIRST_EVERY_S, _LOOK_EVERY_S = 0.001, 0.05
_SAY_SO_AFTER_S = 2.0


class HomeLock:
    """The lock of a home. `path` is a file that also names the holder and is never removed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1

    @contextlib.contextmanager
    def held(self, say: Callable[[str], object] | None = None) -> Iterator[None]:
        """Hold the lock: wait for another process, and `say` so; without `say`, WorkError."""
        self._take(say)
        try:
            yield
        finally:
            self._release()

    @contextlib.contextmanager
    def set_aside(self, say: Callable[[str], object]) -> Iterator[None]:
        """Let others have the lock while this process only waits; not taken again after an exception."""
        self._release()
        yield
        self._take(say)

    def _take(self, say: Callable[[str], object] | None) -> None:
        started, has_said = time.monotonic(), False
        while holder := self._try():
            home = self._path.parent.parent
            busy = f"another codingagent (pid {holder}) is using {home}"
            if say is None:
                raise WorkError(f"{busy}; wait for it, or stop it there with Ctrl-C")
            if not has_said and time.monotonic() - started > _SAY_SO_AFTER_S:
                say(f"{busy}; waiting for it (Ctrl-C cancels this)")
                has_said = True
            time.sleep(_LOOK_EVERY_S if has_said else _LOOK_FIRST_EVERY_S)

    def _try(self) -> str:
        """Take the lock; return who holds it, if another process does."""
        with disk_errors(f"{self._path} can't be written"):
            handle = retried(lambda: os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        try:
            take(handle)
        except (BlockingIOError, PermissionError):
            # Windows locks the first byte; the pid follows it.
            os.lseek(handle, 1, os.SEEK_SET)
            pid = os.read(handle, 20).decode("ascii", "replace").strip()
            os.close(handle)
            return pid or "unknown"
        except OSError as fault:
            os.close(handle)
            raise WorkError(
                f"{self._path} can't be locked ({system_reason(fault)}): have the home on another disk"
            ) from fault
        self._handle = handle
        os.ftruncate(handle, 0)
        os.write(handle, f" {os.getpid()}\n".encode())
        return ""

    def _release(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            with contextlib.suppress(OSError):
                os.close(handle)


def is_held(path: Path) -> bool:
    """Return whether a living process holds a lock file; nothing is created or written."""
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with contextlib.suppress(OSError), open_handle(path, flags) as handle:
        try:
            take(handle)
        except OSError:
            return True
    return False


def take(handle: int) -> None:
    """Lock an open file; raise OSError if another process has it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
