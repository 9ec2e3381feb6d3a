"""The mailbox: requests in `outbox/`, answers in `inbox/`. What the disk refuses raises WorkError."""

import contextlib
import errno
import itertools
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from codingagent.errors import CodingAgentError, WorkError, disk_errors
from codingagent.model.documents import kind_by_name
from codingagent.model.observations import InboxFile
from codingagent.model.patterns import lazy_pattern
from codingagent.storage import atomic_write
from codingagent.workspace.dirfd import open_handle, retried, stat_of

# A larger file is not an answer, and reading it would only exhaust the memory.
REPLY_LIMIT_BYTES = 256 * 2**20
_SUFFIXES = (".txt", ".md", ".zip", ".patch", ".diff", ".json")
# Suffixes of files that a program is still writing, or keeps for itself.
_UNDER_WAY = (".part", ".partial", ".crdownload", ".download", ".tmp", ".swp", ".lock", ".bak", "~")
# The name of a request, and of a pasted answer: a session id and a sequence number.
_NAMED = lazy_pattern(r"([0-9a-f]{8})_seq([0-9]{4,9})(?![0-9])")
# With a number, a suffix and ".reason" appended, a name must stay under 255 bytes.
_STEM_LIMIT = 50
# PowerShell and cmd.exe put something else in their place, in quotes too: a command names the file.
_READ_BY_SHELLS = str.maketrans(dict.fromkeys("$`%\u201c\u201d\u201e", "_"))
# linux/fcntl.h. A read lease is granted only on a file that nobody has open for writing.
_F_SETSIG, _F_SETLEASE = 10, 1024
_HIDDEN = 0x2  # FILE_ATTRIBUTE_HIDDEN
# winnt.h, fileapi.h, winerror.h
_GENERIC_READ, _DELETE, _OPEN_EXISTING, _SHARING_VIOLATION = 0x8000_0000, 0x1_0000, 3, 32
_SHARE_READ, _SHARE_ALL = 1, 7


class Mailbox:
    """The outbox and the inbox of one home."""

    def __init__(self, home: Path) -> None:
        self.outbox = home / "outbox"
        self.inbox = home / "inbox"
        self.processed = self.inbox / "processed"
        self.rejected = self.inbox / "rejected"

    def outbox_path(self, session_id: str, sequence: int) -> Path:
        return self.outbox / f"{_stem(session_id, sequence)}.txt"

    def short_path(self, session_id: str, sequence: int) -> Path:
        return self.outbox / "short" / f"{_stem(session_id, sequence)}.txt"

    def waiting_paths(self, session_id: str, sequence: int) -> list[Path]:
        """Return the files of a request that are there: its short companion first."""
        both = (self.short_path(session_id, sequence), self.outbox_path(session_id, sequence))
        return [path for path in both if path.exists()]

    def write_beside(self, path: Path, text: str) -> None:
        """Write a request, or its companion, beside its path; `sync` and `put_in_place` then follow."""
        with disk_errors(f"{path.parent} can't be made"):
            path.parent.mkdir(exist_ok=True)
        atomic_write.write_beside(path, text, is_synced=not atomic_write.SYNC_WAITS)

    def write_parts(self, stem: str, parts: Sequence[str]) -> list[Path]:
        """Write a request in parts, for a chat with a message limit; return their paths."""
        folder = self.outbox / "parts"
        with disk_errors(f"{folder} can't be made"):
            folder.mkdir(exist_ok=True)
        count = len(parts)
        paths = [folder / f"{stem}_part{number}of{count}.txt" for number in range(1, count + 1)]
        for path, part in zip(paths, parts, strict=True):
            atomic_write.write_whole(path, part)
        return paths

    def look(self) -> list[InboxFile]:
        """Return the inbox files that may be answers, or a part of one, oldest first (specification 003)."""
        return self._letters(_may_answer)

    def look_at_others(self) -> list[InboxFile]:
        """Return the inbox files that can't be executed as they are: empty, held, or of another kind."""
        files = self._letters(lambda name: not name.lower().endswith(_UNDER_WAY))
        whole = (each for each in files if each.size_bytes and not each.is_held)
        answers = {each.name for each in whole if _may_answer(each.name)}
        return [each for each in files if each.name not in answers]

    def _letters(self, is_wanted: Callable[[str], bool]) -> list[InboxFile]:
        failed = f"make the inbox {self.inbox} again, then go on with `codingagent resume`: it can't be read"
        with disk_errors(failed), os.scandir(self.inbox) as entries:
            wanted = [entry for entry in entries if is_wanted(entry.name)]
            files = [file for entry in wanted if (file := _inbox_file(entry)) is not None]
        return sorted(files, key=lambda file: (file.modified_ns, file.name))

    @staticmethod
    def named(name: str) -> tuple[str, int] | None:
        """Return the session id and sequence number in a file name; None if it has none."""
        found = _NAMED.match(name)
        return None if found is None else (found[1], int(found[2]))

    def has(self, name: str) -> bool:
        """Return whether a file is still in the inbox; you may remove one at any time."""
        return os.path.lexists(self.inbox / name)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of an inbox file; None if it is too large to be an answer."""
        return read_bounded(self.inbox / name)

    def take(self, name: str, session_id: str, sequence: int) -> str:
        """Move an inbox file to `processed/`; return its new name, with session id and sequence number."""
        suffix = Path(name).suffix.lower()
        suffix = suffix if suffix in _SUFFIXES else _SUFFIXES[0]
        return self._move(self.inbox / name, self.processed, _stem(session_id, sequence), suffix)

    def put_back(self, taken: str, name: str) -> None:
        """Move a file that was taken too early back under its old name."""
        self._move(self.processed / taken, self.inbox, Path(name).stem, Path(name).suffix)

    def find_taken(self, session_id: str, sequence: int) -> str | None:
        """Return the name of an answer that was moved but maybe not journalled before a kill."""
        stem = _stem(session_id, sequence)
        names = (f"{stem}{suffix}" for suffix in _SUFFIXES)
        return next((name for name in names if (self.processed / name).exists()), None)

    def read_taken(self, name: str) -> bytes | None:
        """Return the bytes of an answer in `processed/`; None if it is gone."""
        return read_bounded(self.processed / name) if (self.processed / name).is_file() else None

    def keep(self, data: bytes, session_id: str, sequence: int, end: str, *, is_synced: bool = True) -> str:
        """Write an answer that was not in the inbox to `processed/`; return its name, which ends in `end`."""
        name = f"{_stem(session_id, sequence)}{end}"
        with disk_errors(f"{self.processed} can't be made"):
            self.processed.mkdir(exist_ok=True)
        atomic_write.write_whole(self.processed / name, data, is_synced=is_synced)
        return name

    def remove(self, name: str) -> None:
        """Remove a file from the inbox that is kept elsewhere."""
        with disk_errors(f"{name} can't be removed from the inbox"):
            retried(lambda: (self.inbox / name).unlink(missing_ok=True))

    def set_aside(self, name: str, reason: str) -> str:
        """Move an inbox file to `rejected/` with a file that says why; return its new name."""
        stem = Path(name).stem.translate(_READ_BY_SHELLS)
        new = self._move(self.inbox / name, self.rejected, stem, Path(name).suffix)
        atomic_write.write_whole(self.rejected / f"{new}.reason", f"{reason}\n")
        return new

    def drop(self, data: bytes, session_id: str, sequence: int) -> Path:
        """Write an answer to the inbox atomically, as if you had saved it there; return its path."""
        part = self.part_path(session_id, sequence)
        with atomic_write.clearing(part, part):
            part.write_bytes(data)
        return self.inbox / self.put_in(part, session_id, sequence, "pasted")

    def part_path(self, session_id: str, sequence: int, writer: str = "") -> Path:
        """Return the path where an answer is written until it is whole; such a file is never executed.

        Each process has its own, unless `writer` names the only writer: then what a kill left is found.
        """
        return self.inbox / f"{_stem(session_id, sequence)}.{writer or os.getpid()}.part"

    def put_in(self, part: Path, session_id: str, sequence: int, how: str) -> str:
        """Rename a completed part to an answer; return its name, which says how it came."""
        return self._move(part, self.inbox, f"{_stem(session_id, sequence)}_{how}", ".txt")

    def replace(self, names: Sequence[str], data: bytes) -> str:
        """Put one answer in the place of the inbox files that it consists of; return its name.

        A kill between the two leaves both: the files then make the same answer, which is not executed twice.
        """
        stem = Path(names[0]).stem[:_STEM_LIMIT]
        part = self.inbox / f"{stem}.part"
        atomic_write.write_whole(part, data)
        name = self._move(part, self.inbox, stem, ".zip")
        for each in names:
            self.remove(each)
        return name

    def bring_back(self, path: Path) -> str:
        """Bring a file to the inbox to execute it after all; return its name there.

        A rejected file is moved; any other is copied, because it is yours.
        """
        suffix = path.suffix if _may_answer(path.name) else ".txt"
        if path.resolve().parent == self.rejected.resolve():
            name = self._move(path, self.inbox, path.stem, suffix)
            with contextlib.suppress(OSError):
                path.with_name(f"{path.name}.reason").unlink()
            return name
        part = self.inbox / f"{path.stem[:_STEM_LIMIT]}.part"
        with disk_errors(f"{path} can't be copied"):
            shutil.copyfile(path, part)
        return self._move(part, self.inbox, path.stem, suffix)

    @staticmethod
    def _move(source: Path, folder: Path, stem: str, suffix: str) -> str:
        """Move a file without ever overwriting another; with one executor, nothing races."""
        with disk_errors(f"{source} can't be moved to {folder}"):
            folder.mkdir(exist_ok=True)
            stem = stem[:_STEM_LIMIT]
            numbers = itertools.chain([""], (f"_{number}" for number in itertools.count(2)))
            names = (f"{stem}{number}{suffix}" for number in numbers)
            name = next(each for each in names if not os.path.lexists(folder / each))
            retried(lambda: os.rename(source, folder / name))
        return name


def is_bare(name: str) -> bool:
    """Return whether a file of the inbox is one of the workspace by its ending, and no answer by itself."""
    return not name.lower().endswith(_SUFFIXES)


def _may_answer(name: str) -> bool:
    lower = name.lower()
    # A page may be one of the workspace.
    is_file = kind_by_name(name) is None or lower.endswith((".html", ".htm"))
    return "." in name and is_file and not lower.endswith(_UNDER_WAY)


def _stem(session_id: str, sequence: int) -> str:
    return f"{session_id}_seq{sequence:04d}"


def _inbox_file(entry: "os.DirEntry[str]") -> InboxFile | None:
    name = entry.name
    if name.startswith((".", "~")):
        return None
    try:
        found = stat_of(entry)
    except OSError:
        return None  # it was removed meanwhile
    # On Windows a folder's own settings lie in it as a hidden file.
    if not stat.S_ISREG(found.st_mode) or getattr(found, "st_file_attributes", 0) & _HIDDEN:
        return None
    is_open = _is_open(entry.path) if found.st_size else None
    is_held = bool(is_open is not None and _is_refused(entry.path, _DELETE, _SHARE_ALL))
    if found.st_size and name.lower().endswith(".zip"):
        import zipfile

        with contextlib.suppress(zipfile.BadZipFile):  # one of several disks is whole, too
            # A download that stands still lacks its end.
            is_held = is_held or not zipfile.is_zipfile(entry.path)
    state = found.st_ino, found.st_size, found.st_mtime_ns
    return InboxFile(name, *state, time.monotonic(), is_open, is_held)


def _is_open(path: str) -> bool | None:
    """Return whether a process has a file open for writing; None if unknown."""
    if sys.platform == "linux":
        import fcntl
        import signal

        try:
            with open_handle(path, os.O_RDONLY | os.O_NONBLOCK) as handle:
                # A process that opens the file now breaks the lease; the signal for that must be one that
                # is ignored, not SIGIO, which would end this process.
                fcntl.fcntl(handle, _F_SETSIG, signal.SIGURG)
                fcntl.fcntl(handle, _F_SETLEASE, fcntl.F_RDLCK)
                fcntl.fcntl(handle, _F_SETLEASE, fcntl.F_UNLCK)
                return False
        except OSError as fault:
            return True if fault.errno == errno.EAGAIN else None
    else:
        # As one who shares it with readers only: a writer is in the way.
        return _is_refused(path, _GENERIC_READ, _SHARE_READ)


def _is_refused(path: str, access: int, shared: int) -> bool | None:
    """Return whether Windows lets nobody open a file so, as another has it open; None if unknown."""
    is_refused = None
    if sys.platform == "win32":
        import ctypes

        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.CreateFileW.restype = ctypes.c_void_p
        handle = kernel.CreateFileW(path, access, shared, None, _OPEN_EXISTING, 0, None)
        if handle not in (None, ctypes.c_void_p(-1).value):
            kernel.CloseHandle(ctypes.c_void_p(handle))
            is_refused = False
        elif ctypes.get_last_error() == _SHARING_VIOLATION:
            is_refused = True
    return is_refused


def read_bounded(path: Path, error: type[CodingAgentError] = WorkError) -> bytes | None:
    """Return the bytes of a file; None if it is too large to be an answer, or has no end."""
    with disk_errors(f"{path} can't be read", error), retried(lambda: path.open("rb")) as file:
        data = file.read(REPLY_LIMIT_BYTES + 1)
    return data if len(data) <= REPLY_LIMIT_BYTES else None
