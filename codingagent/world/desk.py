"""Where processes of one home leave errands for the one that holds its lock, and it its reports.

How it works. An errand is a file; whoever does it renames it first, so that it can be withdrawn up to
that moment and not behind it. The report is a file beside it. All of it is polled: no socket, so it
works on every system, and a process that was killed leaves nothing that could block another.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codingagent.errors import WorkError
from codingagent.world import disk

# What nobody fetched: its process was ended.
_STALE_AFTER_S = 3600
_LIMIT_BYTES = 16 * 2**20

_ERRAND, _TAKEN, _REPORT = ".errand", ".taken", ".report"


@dataclass(frozen=True, slots=True)
class Left:
    """An errand that lies on the desk: its name, and its bytes."""

    name: str
    data: bytes


class Desk:
    """A folder of errands; made when the first is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # --- for whoever asks ----------------------------------------------------------------------

    def leave(self, data: bytes) -> str:
        """Leaves an errand, and gives its name.

        Raises:
            WorkError: if it can't be written.
        """
        self.open()
        # In the order they were left.
        name = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
        disk.write_whole(self.folder / f"{name}{_ERRAND}", data)
        return name

    def withdraw(self, name: str) -> bool:
        """Takes an errand back; tells whether that was in time."""
        try:
            (self.folder / f"{name}{_ERRAND}").unlink()
        except OSError:
            return False
        return True

    def fetch(self, name: str) -> bytes | None:
        """Gives the report on an errand, once; None while there is none."""
        path = self.folder / f"{name}{_REPORT}"
        try:
            data = path.read_bytes()
        except OSError:
            return None
        for suffix in (_REPORT, _TAKEN):
            with contextlib.suppress(OSError):
                path.with_suffix(suffix).unlink()
        return data

    # --- for whoever does them -----------------------------------------------------------------

    def open(self) -> None:
        """Makes the folder if it is missing, and removes what nobody will fetch.

        Raises:
            WorkError: if it can't be made.
        """
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as fault:
            raise WorkError(f"{self.folder} can't be made: {fault.strerror or fault}") from fault
        for entry in self._entries():
            with contextlib.suppress(OSError):
                if time.time() - entry.stat().st_mtime > _STALE_AFTER_S:
                    Path(entry.path).unlink()

    def take(self, wanted: Callable[[bytes], bool] = lambda _: True) -> Iterator[Left]:
        """Takes the errands that are wanted, the oldest first; from then on they can't be withdrawn."""
        names = sorted(entry.name for entry in self._entries() if entry.name.endswith(_ERRAND))
        for file in names:
            path = self.folder / file
            try:
                with path.open("rb") as stream:
                    data = stream.read(_LIMIT_BYTES)
                if not wanted(data):
                    continue
                os.rename(path, path.with_suffix(_TAKEN))
            except OSError:
                continue  # withdrawn in this instant
            yield Left(path.stem, data)

    def report(self, name: str, data: bytes) -> None:
        """Says what came of an errand.

        Raises:
            WorkError: if it can't be written.
        """
        disk.write_whole(self.folder / f"{name}{_REPORT}", data)

    def _entries(self) -> "list[os.DirEntry[str]]":
        try:
            with os.scandir(self.folder) as entries:
                return list(entries)
        except OSError:
            return []
