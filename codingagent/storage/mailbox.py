"""The folders through which a person and the agent pass texts: `outbox/` and `inbox/`."""

import contextlib
import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from codingagent.errors import WorkError
from codingagent.model.file_settled import Sighting
from codingagent.model.observations import Letter
from codingagent.storage import atomic_write

# A reply of this size is no reply; reading it would only fill the memory.
REPLY_LIMIT_BYTES = 256 * 2**20

_SUFFIXES = (".txt", ".md")

# What some program is still writing, or keeps for itself, is called so.
_UNDER_WAY = (".part", ".partial", ".crdownload", ".download", ".tmp", ".swp", ".lock", ".bak", "~")

# As requests are called, and what is pasted: a session's id and a sequence.
_NAMED = re.compile(r"([0-9a-f]{8})_seq([0-9]{4,9})(?![0-9])")

# With a number, a suffix and ".reason" after it a name must stay under 255 bytes.
_STEM_LIMIT = 50

# linux/fcntl.h. A read lease is granted only on a file that nobody has open for writing.
_F_SETSIG, _F_SETLEASE = 10, 1024


class Mailbox:
    """The outbox and the inbox of one home."""

    def __init__(self, home: Path) -> None:
        self.outbox = home / "outbox"
        self.inbox = home / "inbox"
        self.processed = self.inbox / "processed"
        self.rejected = self.inbox / "rejected"

    def outbox_path(self, session_id: str, sequence: int) -> Path:
        """Return where a request is."""
        return self.outbox / f"{_stem(session_id, sequence)}.txt"

    def short_path(self, session_id: str, sequence: int) -> Path:
        """Return where the short companion of a request is."""
        return self.outbox / "short" / f"{_stem(session_id, sequence)}.txt"

    def write_beside(self, path: Path, text: str) -> None:
        """Write a request, or its companion, beside its path. It is durable once all is synced.

        Raises:
            WorkError: if it can't be written.
        """
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as fault:
            raise WorkError(f"{path.parent} can't be made: {fault.strerror or fault}") from fault
        atomic_write.write_beside(path, text, is_synced=not atomic_write.SYNC_WAITS)

    def put_in_place(self, path: Path) -> None:
        """Return what was written beside its path, and is durable now, its name.

        Raises:
            WorkError: if that can't be.
        """
        atomic_write.put_in_place(path)

    def write_parts(self, stem: str, parts: Sequence[str]) -> list[Path]:
        """Write a request in parts, for a chat that takes no more at once; return their paths.

        Raises:
            WorkError: if one can't be written.
        """
        folder = self.outbox / "parts"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as fault:
            raise WorkError(f"{folder} can't be made: {fault.strerror or fault}") from fault
        count = len(parts)
        paths = [folder / f"{stem}_part{number}of{count}.txt" for number in range(1, count + 1)]
        for path, part in zip(paths, parts, strict=True):
            atomic_write.write_whole(path, part)
        return paths

    def look(self) -> list[Letter]:
        """Return the files of the inbox that may be replies, oldest first (specification 003).

        Subfolders, links, hidden files and other suffixes are left alone.

        Raises:
            WorkError: if the inbox is gone or can't be read.
        """
        return self._letters(lambda name: name.lower().endswith(_SUFFIXES))

    def look_at_others(self) -> list[Letter]:
        """Return the files of the inbox that can't be taken as they are: empty, or of another kind.

        Raises:
            WorkError: as `look`.
        """
        others = self._letters(lambda name: not name.lower().endswith(_UNDER_WAY))
        return [
            letter
            for letter in others
            if not letter.sighting.size_bytes or not letter.name.lower().endswith(_SUFFIXES)
        ]

    def _letters(self, is_wanted: Callable[[str], bool]) -> list[Letter]:
        try:
            with os.scandir(self.inbox) as entries:
                wanted = [entry for entry in entries if is_wanted(entry.name)]
                letters = [letter for entry in wanted if (letter := _letter(entry)) is not None]
        except OSError as fault:
            raise WorkError(
                f"the inbox {self.inbox} can't be read: {fault.strerror or fault};"
                " make it again, then go on with `codingagent resume`"
            ) from fault
        return sorted(letters, key=lambda letter: (letter.sighting.modified_ns, letter.name))

    @staticmethod
    def named(name: str) -> tuple[str, int] | None:
        """Return the session and the sequence that a letter is named after; None if after none."""
        found = _NAMED.match(name)
        return None if found is None else (found[1], int(found[2]))

    def has(self, name: str) -> bool:
        """Tells whether a letter is still there; a person may take one away at any time."""
        return os.path.lexists(self.inbox / name)

    def read(self, name: str) -> bytes | None:
        """Return a letter's bytes; None if it is too large to be a reply.

        Raises:
            WorkError: if it can't be read.
        """
        return _read(self.inbox / name)

    def take(self, name: str, session_id: str, sequence: int) -> str:
        """Move a letter to `processed/`; return its new name, which says session and sequence.

        Raises:
            WorkError: if it can't be moved.
        """
        suffix = Path(name).suffix.lower()
        return self._move(self.inbox / name, self.processed, _stem(session_id, sequence), suffix)

    def put_back(self, taken: str, name: str) -> None:
        """Move a letter that was taken too early back under its old name.

        Raises:
            WorkError: if it can't be moved.
        """
        self._move(self.processed / taken, self.inbox, Path(name).stem, Path(name).suffix)

    def find_taken(self, session_id: str, sequence: int) -> str | None:
        """Return the name of a reply that was moved but perhaps not journalled before a kill."""
        stem = _stem(session_id, sequence)
        names = (f"{stem}{suffix}" for suffix in _SUFFIXES)
        return next((name for name in names if (self.processed / name).exists()), None)

    def read_taken(self, name: str) -> bytes | None:
        """Return the bytes of a reply in `processed/`; None if it is gone.

        Raises:
            WorkError: if it is there and can't be read.
        """
        return _read(self.processed / name) if (self.processed / name).exists() else None

    def set_aside(self, name: str, reason: str) -> str:
        """Move a letter to `rejected/`, the reason in a file beside it; return its new name.

        Raises:
            WorkError: if it can't be moved.
        """
        new = self._move(self.inbox / name, self.rejected, Path(name).stem, Path(name).suffix)
        atomic_write.write_whole(self.rejected / f"{new}.reason", f"{reason}\n")
        return new

    def drop(self, data: bytes, session_id: str, sequence: int) -> Path:
        """Put an answer into the inbox, whole, as if the person had saved it there; return its path.

        Raises:
            WorkError: if it can't be written.
        """
        part = self.part_path(session_id, sequence)
        try:
            part.write_bytes(data)
        except OSError as fault:
            with contextlib.suppress(OSError):
                part.unlink()
            raise WorkError(f"{part} can't be written: {fault.strerror or fault}") from fault
        return self.inbox / self.put_in(part, session_id, sequence, "pasted")

    def part_path(self, session_id: str, sequence: int, writer: str = "") -> Path:
        """Return where an answer may be written before it is whole: what is there is never taken.

        Each process has its own, unless `writer` names whoever writes alone: then a kill's rest is found.
        """
        return self.inbox / f"{_stem(session_id, sequence)}.{writer or os.getpid()}.part"

    def put_in(self, part: Path, session_id: str, sequence: int, how: str) -> str:
        """Make a part that is whole a letter; return its name, which says how it came.

        Raises:
            WorkError: if it can't be moved.
        """
        return self._move(part, self.inbox, f"{_stem(session_id, sequence)}_{how}", ".txt")

    def bring_back(self, path: Path) -> str:
        """Brings a file to the inbox, to be executed after all; gives its name there.

        One that was set aside is moved, any other is copied: it is the person's own.

        Raises:
            WorkError: if it can't be read, or not be written to the inbox.
        """
        suffix = path.suffix if path.suffix in _SUFFIXES else ".txt"
        if path.resolve().parent == self.rejected.resolve():
            name = self._move(path, self.inbox, path.stem, suffix)
            with contextlib.suppress(OSError):
                path.with_name(f"{path.name}.reason").unlink()
            return name
        part = self.inbox / f"{path.stem[:_STEM_LIMIT]}.part"
        try:
            shutil.copyfile(path, part)
        except OSError as fault:
            raise WorkError(f"{path} can't be copied: {fault.strerror or fault}") from fault
        return self._move(part, self.inbox, path.stem, suffix)

    @staticmethod
    def _move(source: Path, folder: Path, stem: str, suffix: str) -> str:
        """Move a file without ever overwriting another; there is one executor, so no one races us."""
        try:
            folder.mkdir(exist_ok=True)
            stem = stem[:_STEM_LIMIT]
            name = f"{stem}{suffix}"
            number = 2
            while os.path.lexists(folder / name):
                name = f"{stem}_{number}{suffix}"
                number += 1
            os.rename(source, folder / name)
        except OSError as fault:
            raise WorkError(
                f"{source} can't be moved to {folder}: {fault.strerror or fault}"
            ) from fault
        return name


def _stem(session_id: str, sequence: int) -> str:
    return f"{session_id}_seq{sequence:04d}"


def _letter(entry: "os.DirEntry[str]") -> Letter | None:
    name = entry.name
    if name.startswith((".", "~")):
        return None
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return None  # gone since
    if not stat.S_ISREG(found.st_mode):
        return None
    # Windows gives no inode here without another look; size and time then have to do.
    is_open = _is_open(entry.path) if found.st_size else None
    return Letter(
        name, Sighting(found.st_ino, found.st_size, found.st_mtime_ns, time.monotonic(), is_open)
    )


def _is_open(path: str) -> bool | None:
    """Tells whether some process has a file open for writing; None where that can't be known."""
    try:
        import fcntl

        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (ImportError, OSError):
        return None
    try:
        # Whoever opens the file in this instant breaks the lease; the signal for that must be one
        # that is ignored, not SIGIO, which would end us.
        import signal

        fcntl.fcntl(handle, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, _F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(handle, _F_SETLEASE, fcntl.F_UNLCK)
    except OSError as fault:
        return True if fault.errno == errno.EAGAIN else None
    else:
        return False
    finally:
        os.close(handle)


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = file.read(REPLY_LIMIT_BYTES + 1)
    except OSError as fault:
        raise WorkError(f"{path} can't be read: {fault.strerror or fault}") from fault
    return data if len(data) <= REPLY_LIMIT_BYTES else None
