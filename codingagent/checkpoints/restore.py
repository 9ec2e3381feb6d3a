"""Looks at files for a checkpoint, and puts them back. No link on the way is ever followed.

A link, a file where a folder was, a folder of our own: all that is an obstacle, and the path is left
alone. Content is put in place whole: a file of another name first, then a rename.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from codingagent.checkpoints.file_changes import State
from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.workspace.dirfd import BINARY, NO_FOLLOW, Folder, Place, reason_of

_OPEN = os.O_RDONLY | NO_FOLLOW | BINARY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing has this name, or a folder has it."""


@dataclass(frozen=True, slots=True)
class Present:
    """A file or a link: its bytes (a link's are its target), and what the system says of it."""

    data: bytes
    found: os.stat_result

    @property
    def mode(self) -> int:
        """Gives type and permissions; those of a link mean nothing."""
        if stat.S_ISLNK(self.found.st_mode):
            return stat.S_IFLNK
        return stat.S_IFREG | (self.found.st_mode & 0o777)


class ObstacleError(OperationError):
    """A path can't be looked at or put back; the reason is for the person."""


class Ground:
    """A workspace's files, one after the other; sorted paths cost least.

    Args:
        root: the workspace, held open.
        hidden: folders that do not exist here, though they may be inside.
        temporary_name: the name under which a file is written before it takes its own.
    """

    def __init__(
        self,
        root: Folder,
        hidden: frozenset[tuple[int, int]],
        temporary_name: Callable[[str], str],
    ) -> None:
        self._hidden = hidden
        self._temporary_name = temporary_name
        self._place = Place(root)
        self._at = ""

    def close(self) -> None:
        """Return back what is held open."""
        self._place.close()
        self._at = ""

    def look(self, path: str, limit_bytes: int) -> Absent | Present:
        """Return what has this name.

        Raises:
            ObstacleError: if it is neither file nor link, is too large or can't be read.
        """
        folder, _, name = path.rpartition("/")
        try:
            self._go(folder, create=False)
            _refuse_protected(name)
            found = self._place.folder.lstat(name)
            if found is None or stat.S_ISDIR(found.st_mode):
                return Absent()
            if stat.S_ISLNK(found.st_mode):
                return Present(os.fsencode(self._place.folder.readlink(name)), found)
            return self._read(name, found, limit_bytes)
        except (FileNotFoundError, NotADirectoryError):
            return Absent()
        except OSError as fault:
            raise ObstacleError(_words(fault)) from fault

    def _read(self, name: str, found: os.stat_result, limit_bytes: int) -> Present:
        if not stat.S_ISREG(found.st_mode):
            raise ObstacleError("neither a file nor a link")
        if found.st_size > limit_bytes:
            raise ObstacleError(f"larger than {limit_bytes // 10**6} MB")
        handle = self._place.folder.open_file(name, _OPEN)
        try:
            # What is said of the bytes was so before they were read: a later change shows in it.
            opened = os.fstat(handle)
            if not stat.S_ISREG(opened.st_mode):
                raise ObstacleError("neither a file nor a link")
            data = os.read(handle, min(opened.st_size, limit_bytes) + 1)
            while len(data) <= limit_bytes and len(data) != opened.st_size:
                # It grows or shrinks, or the disk gives less than was asked for.
                if not (more := os.read(handle, limit_bytes + 1 - len(data))):
                    break
                data += more
        finally:
            os.close(handle)
        if len(data) > limit_bytes:
            raise ObstacleError(f"larger than {limit_bytes // 10**6} MB")
        return Present(data, opened)

    def remove(self, path: str) -> None:
        """Remove a file or a link, and the folders that become empty by it.

        Raises:
            ObstacleError: if that can't be.
        """
        folder, _, name = path.rpartition("/")
        with self._acting(folder, name, create=False):
            self._place.folder.unlink(name)
        self._remove_empty(folder)

    def _remove_empty(self, folder: str) -> None:
        with contextlib.suppress(OSError, ObstacleError):
            while folder:
                folder, _, name = folder.rpartition("/")
                self._go(folder, create=False)
                self._place.folder.rmdir(name)

    def put(self, path: str, state: State, data: bytes, check: Callable[[], object]) -> None:
        """Put a file or a link in place whole; make missing folders.

        Args:
            path: where.
            state: its type and permissions.
            data: a file's bytes, or a link's target.
            check: called when all is ready; what it raises leaves everything as it was.

        Raises:
            ObstacleError: if that can't be.
        """
        folder, _, name = path.rpartition("/")
        temporary = self._temporary_name(name)
        with self._acting(folder, name, create=True):
            target = self._place.folder
            try:
                # A leftover of an earlier kill, or a trap: it is removed, never followed.
                with contextlib.suppress(FileNotFoundError):
                    target.unlink(temporary)
                if state.is_link:
                    _make_link(target, temporary, data)
                else:
                    _make_file(target, temporary, data, state.mode)
                # It may look at this path, not at another: the walk must still be here.
                check()
                found = target.lstat(name)
                if found is not None and stat.S_ISDIR(found.st_mode):
                    # An empty one; with anything in it this fails, and all stays as it is.
                    target.rmdir(name)
                target.rename(temporary, name)
            finally:
                with contextlib.suppress(OSError):
                    target.unlink(temporary)
            self._place.made.clear()

    @contextlib.contextmanager
    def _acting(self, folder: str, name: str, *, create: bool) -> Iterator[None]:
        try:
            self._go(folder, create=create)
            _refuse_protected(name)
            yield
        except OSError as fault:
            self.close()
            raise ObstacleError(_words(fault)) from fault
        except BaseException:
            self.close()
            raise

    def _go(self, folder: str, *, create: bool) -> None:
        """Goes to a folder from the root, or stays if the walk is there already."""
        if folder and folder == self._at:
            return
        self.close()
        for name in folder.split("/") if folder else ():
            _refuse_protected(name)
            missing = create and self._place.folder.lstat(name) is None
            self._place.enter(name, create=missing)
            if self._place.folder.identity() in self._hidden:
                raise ObstacleError("not covered: it belongs to codingagent itself")
        self._at = folder


def _refuse_protected(name: str) -> None:
    """No checkpoint covers what some file system would take for `.git` or a home of ours."""
    if name.isascii():
        # Quick, because it is asked of every name: nothing else in ASCII folds to one of the two.
        lower = name.lower()
        if "git" not in lower and "codingagent" not in lower:
            return
    if paths.is_git_name(name) or paths.is_home_name(name):
        raise ObstacleError("its name is git's or codingagent's own on some systems")


def _make_file(folder: Folder, name: str, data: bytes, mode: int) -> None:
    handle = folder.open_file(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | NO_FOLLOW | BINARY)
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        if hasattr(os, "fchmod"):
            os.fchmod(handle, mode & 0o777)


def _make_link(folder: Folder, name: str, target: bytes) -> None:
    handle = folder.handle()
    if isinstance(handle, int):
        os.symlink(os.fsdecode(target), name, dir_fd=handle)
    else:
        os.symlink(os.fsdecode(target), os.path.join(handle, name))


def _words(fault: OSError) -> str:
    """Return the reason without the path, which is beside it."""
    if fault.errno in (errno.ENOTDIR, errno.ELOOP):
        return "a file or a link stands where a folder was"
    if fault.errno in (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST):
        return "a folder with other files stands there"
    return reason_of(fault, "").partition(": ")[2]
