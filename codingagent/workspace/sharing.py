"""Files that another program holds for a moment: on Windows a virus scanner, OneDrive or the indexer."""

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

# winerror.h: access denied, sharing violation, lock violation.
_HELD = (5, 32, 33)
_TRIES, _PAUSE_S = 11, 0.2


def retried(call: Callable[[], _T]) -> _T:
    """Rename, replace or remove a file; on Windows again, for two seconds, while a program holds it.

    Raises:
        OSError: as the call does.
    """
    for _ in range(_TRIES - 1):
        try:
            return call()
        except OSError as fault:
            if getattr(fault, "winerror", None) not in _HELD:
                raise
            time.sleep(_PAUSE_S)
    return call()
