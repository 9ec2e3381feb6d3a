"""A lock on an open file, which the system releases however the process ends."""

import os
import sys
from pathlib import Path

from codingagent.workspace.sharing import retried


def is_held(path: Path) -> bool:
    """Return whether a living process holds a lock file; nothing is created or written."""
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = retried(lambda: os.open(path, flags))
    except OSError:
        return False
    try:
        take(handle)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


if sys.platform == "win32":
    import msvcrt

    def take(handle: int) -> None:
        """Lock an open file; raise OSError if another process has it."""
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def take(handle: int) -> None:
        """Lock an open file; raise OSError if another process has it."""
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
