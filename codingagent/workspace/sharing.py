"""Files that another program holds for a moment, on Windows, and files that must be on the disk."""

import os
import sys
import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
_TRIES, _PAUSE_S = 11, 0.2


def retried(call: Callable[[], _T]) -> _T:
    """Open, rename, replace or remove a file; on Windows again, for two seconds, while a scanner holds it."""
    for _ in range(_TRIES - 1):
        try:
            return call()
        except PermissionError as fault:
            if os.name != "nt" and not hasattr(fault, "winerror"):
                raise
            time.sleep(_PAUSE_S)
    return call()


def sync(handle: int, *, only_content: bool = False) -> None:
    """Return when a file is on the disk: its content and length, and also its times if not `only_content`."""
    if sys.platform == "darwin":
        import fcntl

        try:
            # fsync leaves it in the disk's own memory there (fsync(2) of macOS).
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        except OSError:  # a network drive
            os.fsync(handle)
    elif sys.platform == "linux" and only_content:
        os.fdatasync(handle)
    else:
        os.fsync(handle)
