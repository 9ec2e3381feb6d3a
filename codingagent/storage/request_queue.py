"""File queue of errands for the process that holds the home's lock, and of its reports.

An errand is a file. The process that does it first renames it, so it can be withdrawn until that
moment and not later. The report is a file beside it, and the renamed errand is removed once the
report exists: a renamed errand without a report was begun by a process that was killed. The process
that asks holds a lock on one more file: an errand dies with it. The folder is polled, without a
socket: that works on every system, and a killed process leaves nothing that could block another.

What the disk refuses raises WorkError.

Only files with names of this pattern are read, and links are not followed.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from codingagent.errors import UsageError, disk_errors
from codingagent.model.patterns import lazy_pattern
from codingagent.storage import atomic_write, file_lock
from codingagent.workspace.dirfd import small_file
from codingagent.workspace.sharing import retried

# Nobody fetched it: its process ended. A waiting process touches its errand.
_STALE_AFTER_S = 3600
_LIMIT_BYTES = 16 * 2**20

_ERRAND, _TAKEN, _REPORT, _ASKER = ".errand", ".taken", ".report", ".asker"
# The time it was left, which orders errands, and a number that nobody can guess.
_OURS = lazy_pattern(
    r"([0-9]{20}-[0-9a-f]{16})(\.errand|\.taken|\.report|\.asker|\.[0-9a-f]{16}\.tmp)"
)


class Left(Struct, frozen=True):
    """A queued errand: its name and its bytes."""

    name: str
    data: bytes


class RequestQueue:
    """A folder of errands, created when the first is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._asking: dict[str, int] = {}

    # --- for the process that asks -------------------------------------------------------------

    @staticmethod
    def new_name() -> str:
        return f"{time.time_ns():020d}-{secrets.token_hex(8)}"

    def leave(self, name: str, data: bytes) -> None:
        """Leave an errand under a name from `new_name`; UsageError if it is too large."""
        if len(data) > _LIMIT_BYTES:
            limit = _LIMIT_BYTES // 2**20
            raise UsageError(
                f"that is too large to pass to the other terminal: {limit} MiB at most; write less, or"
                " attach fewer files"
            )
        self.open()
        path = self.folder / f"{name}{_ASKER}"
        with disk_errors(f"{path} can't be written"):
            self._asking[name] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            file_lock.take(self._asking[name])
        self._put(f"{name}{_ERRAND}", data)

    def keep(self, name: str) -> None:
        """Touch an errand that is still waited for, so that it does not grow stale."""
        for suffix in (_ERRAND, _ASKER):
            with contextlib.suppress(OSError):
                os.utime(self.folder / f"{name}{suffix}")

    def withdraw(self, name: str) -> bool:
        """Withdraw an errand; return whether that was in time."""
        with contextlib.suppress(OSError):
            retried((self.folder / f"{name}{_ERRAND}").unlink)
            self.forget(name)
            return True
        return False

    def fetch(self, name: str) -> bytes | None:
        """Return the report on an errand and remove both; None if there is no report yet."""
        data = small_file(self.folder / f"{name}{_REPORT}", _LIMIT_BYTES)
        if data is not None:
            self.forget(name)
        return data

    def forget(self, name: str) -> None:
        """Remove all files of an errand."""
        if (lock := self._asking.pop(name, None)) is not None:
            os.close(lock)
        # Remove the report last: without it, the errand would seem begun and not done.
        for suffix in (_ASKER, _ERRAND, _TAKEN, _REPORT):
            with contextlib.suppress(OSError):
                (self.folder / f"{name}{suffix}").unlink()

    # --- for the process that does them --------------------------------------------------------

    def has_errands(self) -> bool:
        return any(entry.name.endswith(_ERRAND) for entry in self._entries())

    def open(self) -> None:
        """Create the folder if it is missing, and remove stale files."""
        with disk_errors(f"{self.folder} can't be made"):
            self.folder.mkdir(exist_ok=True)
        for entry in self._entries():
            with contextlib.suppress(OSError):
                age_s = time.time() - entry.stat(follow_symlinks=False).st_mtime
                if age_s > _STALE_AFTER_S:
                    os.unlink(entry.path)

    def take(self) -> Iterator[Left]:
        """Take all errands, oldest first; from then on they can't be withdrawn.

        Only for the holder of the home's lock. An errand that an earlier holder took but did not report
        on is yielded again. One whose asker has ended, by a closed terminal say, is removed.
        """
        found = {entry.name for entry in self._entries()}
        for file in sorted(found):
            name, suffix = os.path.splitext(file)
            path = self.folder / file
            if suffix not in (_ERRAND, _TAKEN) or f"{name}{_REPORT}" in found:
                continue
            if not file_lock.is_held(self.folder / f"{name}{_ASKER}"):
                self.forget(name)
                continue
            data = small_file(path, _LIMIT_BYTES)
            if data is None:
                continue
            try:
                os.rename(path, self.folder / f"{name}{_TAKEN}")
            except OSError:
                continue  # withdrawn at this moment
            yield Left(name, data)

    def report(self, name: str, data: bytes) -> None:
        self._put(f"{name}{_REPORT}", data)
        with contextlib.suppress(OSError):
            (self.folder / f"{name}{_TAKEN}").unlink()

    def _put(self, file: str, data: bytes) -> None:
        """Write a file atomically. It need not be durable: a power failure also ends all who wait for it."""
        stem = file.partition(".")[0]
        temporary = self.folder / f"{stem}.{secrets.token_hex(8)}.tmp"
        with atomic_write.clearing(temporary, self.folder / file):
            with open(temporary, "xb") as stream:
                stream.write(data)
            retried(lambda: os.replace(temporary, self.folder / file))

    def _entries(self) -> "list[os.DirEntry[str]]":
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            return [entry for entry in entries if _OURS.fullmatch(entry.name)]
        return []
