"""Folder handles and a race-free walk from folder to folder that follows no link.

Every name is looked up in an open folder, and no link is followed on the way. On systems without folder
handles (Windows), folders are addressed by name; there this guards against mistakes, not against races, and
another program may hold a file for a moment.
"""

import contextlib
import errno
import hashlib
import os
import posixpath
import stat
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from codingagent.errors import OperationError, WorkError
from codingagent.model import paths

# A handle's place in its folder is one for all threads: of two that list, each would get a part.
_LISTING = threading.Lock()
_HAS_HANDLES = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
# If a FIFO has replaced a file, opening it must not block.
CAREFULLY = os.O_RDONLY | _BINARY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_ONLY_FOLDER = getattr(os, "O_DIRECTORY", 0)
PATH_ONLY = getattr(os, "O_PATH", 0)
_NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | NO_FOLLOW | _BINARY
# winnt.h: what `mklink /J` and package managers make, without any privilege.
_JUNCTION = 0xA000_0003
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


@contextlib.contextmanager
def open_handle(path: str | Path, flags: int, *, dir_fd: int | None = None) -> Iterator[int]:
    """Open a file or a folder as `os.open` does, and close it at the end."""
    handle = retried(lambda: os.open(path, flags, dir_fd=dir_fd))
    try:
        yield handle
    finally:
        os.close(handle)


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


def is_link(found: os.stat_result) -> bool:
    """Return whether a name leads elsewhere: a link, or a junction of Windows, a folder by its mode."""
    return stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", 0) == _JUNCTION


def file_id(of: Path | os.stat_result) -> tuple[int, int]:
    """Return the device and inode of a file or folder; those of a link are its own."""
    found = os.lstat(of) if isinstance(of, Path) else of
    return found.st_dev, found.st_ino


def is_link_at(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return is_link(os.lstat(path))
    return False


def composed(name: str) -> str:
    """Return a name as git lists it. On macOS Finder decomposes letters, and each form names the file."""
    return unicodedata.normalize("NFC", name) if sys.platform == "darwin" else name


def stat_of(entry: "os.DirEntry[str]") -> os.stat_result:
    """Return an entry's own stat: on Windows it does not know its identity, nor its size of now."""
    return entry.stat(follow_symlinks=False) if os.name != "nt" else os.lstat(entry.path)


def refused(told: str, path: str, advice: str = "") -> OperationError:
    """Return an error of an operation, which tells of a path in the place of `{}`."""
    return OperationError(told.format(f"'{paths.shown(path)}'"), advice=advice)


class NotFoundError(OperationError):
    """A folder or file on the path does not exist. `real` is the path it would have, without links."""

    def __init__(self, path: str, real: str = "") -> None:
        super().__init__(f"File '{paths.shown(path)}' not found")
        self.real = real or path


# linux/fs.h
_NO_REPLACE = 1
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP)  # exFAT, a share


def _rename_no_replace(source: int, name: str, target: int, new_name: str) -> bool:
    """Rename without replacing anything, in one step; return whether this system and disk can."""
    import ctypes  # Late: only a move needs it.

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(source, os.fsencode(name), target, os.fsencode(new_name), _NO_REPLACE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS):
        return False
    raise OSError(number, os.strerror(number), new_name)


State = tuple[int, int, int, int]
"""Of a file: device, inode, size and time of its last change."""


class Folder:
    """An open folder, in which names are looked up even if it is renamed; by its path without handles."""

    def __init__(self, handle: int | str) -> None:
        self.handle = handle
        self.fd = handle if isinstance(handle, int) else None

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)

    def identity(self) -> tuple[int, int]:
        return file_id(os.stat(self.handle))

    def open(self, name: str) -> "Folder":
        if self.fd is not None:
            return Folder(os.open(name, os.O_RDONLY | _ONLY_FOLDER | NO_FOLLOW, dir_fd=self.fd))
        found = os.lstat(self.at(name))
        if not stat.S_ISDIR(found.st_mode) or is_link(found):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        return Folder(self.at(name))

    def open_file(self, name: str, flags: int) -> int:
        return os.open(self.at(name), flags, 0o666, dir_fd=self.fd)

    def stat(self, name: str) -> os.stat_result | None:
        """Return the stat of what a name leads to, if anything: unlike all else here, it follows links."""
        with contextlib.suppress(OSError, ValueError):
            return os.stat(self.at(name), dir_fd=self.fd)
        return None

    def lstat(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(self.at(name), dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def readlink(self, name: str) -> str:
        return os.readlink(self.at(name), dir_fd=self.fd)

    def symlink(self, target: str, name: str) -> None:
        os.symlink(target, self.at(name), dir_fd=self.fd)

    def mkdir(self, name: str) -> None:
        os.mkdir(self.at(name), dir_fd=self.fd)

    def rmdir(self, name: str) -> None:
        os.rmdir(self.at(name), dir_fd=self.fd)

    def unlink(self, name: str) -> None:
        self._let_go(name)
        retried(lambda: os.unlink(self.at(name), dir_fd=self.fd))

    def rename(self, name: str, new_name: str) -> None:
        self.move(name, self, new_name, overwrite=True)

    def move(self, name: str, folder: "Folder", new_name: str, *, overwrite: bool) -> None:
        """Give a file a name in another folder of the same walk, or in this one.

        FileExistsError if something has that name and is not to be replaced; OSError if it can't be done.
        """
        source, target = self.fd, folder.fd
        old, new = self.at(name), folder.at(new_name)
        if overwrite:
            folder._let_go(new_name)  # noqa: SLF001  # of this class
            retried(lambda: os.replace(old, new, src_dir_fd=source, dst_dir_fd=target))
        elif os.name == "nt":
            retried(lambda: os.rename(old, new))  # it never replaces there
        elif source is None or target is None or not _rename_no_replace(source, old, target, new):
            # As safe, but a kill in between leaves both names.
            try:
                os.link(old, new, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
            except OSError as fault:
                found, other = self.lstat(name), folder.lstat(new_name)
                # The same name in another spelling where the disk ignores case, or a disk without links.
                is_same = found and other and os.path.samestat(found, other) and found.st_nlink == 1
                if not is_same and (other or fault.errno not in _NO_LINKS):
                    raise
                os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)
            else:
                os.unlink(old, dir_fd=source)

    def _let_go(self, name: str) -> None:
        """Take a file's read-only mark away, with which Windows neither removes nor replaces it."""
        found = self.lstat(name) if os.name == "nt" else None
        if found and stat.S_ISREG(found.st_mode) and not found.st_mode & stat.S_IWRITE:
            os.chmod(self.at(name), stat.S_IWRITE)

    def entries(self) -> list[os.DirEntry[str]]:
        with _LISTING, os.scandir(self.handle) as entries:
            return list(entries)

    def at(self, name: str) -> str:
        return name if isinstance(self.handle, int) else os.path.join(self.handle, name)


class Position:
    """The position of a walk: the folder reached, the root, and the real names between them.

    Only these two are held open, however deep it goes. At its end `name` is the path's last component.
    """

    def __init__(self, root: Folder, name: str = "") -> None:
        self._root = root
        self._trail: list[str] = []
        self.folder = root
        self.name = name
        self.made: list[tuple[str, ...]] = []
        """Folders created on the way, each as its names from the root."""

    @property
    def path(self) -> str:
        """The real path of `name`, without links."""
        return "/".join((*self._trail, self.name))

    def enter(self, name: str, *, create: bool) -> None:
        """Enter a folder; create it if it is missing and `create` is on."""
        if create:
            with contextlib.suppress(FileExistsError):
                self.folder.mkdir(name)
                self.made.append((*self._trail, name))
        self._go(self.folder.open(name))
        self._trail.append(name)

    def would_be(self, names: list[str]) -> str:
        """Return the path that names would have below here, none of which exists yet."""
        return posixpath.normpath("/".join(("", *self._trail, *filter(None, names))))[1:]

    def leave(self, path: str) -> None:
        """Return to the parent folder by its names, since the folder may have been moved."""
        if not self._trail:
            raise refused(f"{paths.OUTSIDE}: {{}} leads through a link out of it", path)
        trail = self._trail[:-1]
        self.restart()
        for name in trail:
            self.enter(name, create=False)

    def restart(self) -> None:
        self._go(self._root)
        self._trail.clear()

    def close(self) -> None:
        """Close all handles; remove folders created for a write that failed."""
        for made in reversed(self.made):
            with contextlib.suppress(OSError):
                self.restart()
                for name in made[:-1]:
                    self.enter(name, create=False)
                self.folder.rmdir(made[-1])
        self.restart()

    def _go(self, folder: Folder) -> None:
        if self.folder is not self._root:
            self.folder.close()
        self.folder = folder


def walk_names(root: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder below a root with the names of its folders and of everything else in it.

    Like os.walk, top down and without following links, but depth costs no stack (os.walk of Python
    3.11 goes no deeper than a thousand). Remove a folder's name from the list to skip it.
    """
    todo = [root]
    while todo:
        folder = todo.pop()
        try:
            with os.scandir(folder) as entries:
                found = [(composed(entry.name), is_folder(entry)) for entry in entries]
        except OSError:
            continue  # removed meanwhile, unreadable, or too deep for a path
        inner = [name for name, is_inner in found if is_inner]
        yield folder, inner, [name for name, is_inner in found if not is_inner]
        todo += [os.path.join(folder, name) for name in inner]


def is_folder(entry: "os.DirEntry[str]") -> bool:
    """Return whether an entry is a folder and no link: package managers make circles of junctions."""
    is_one = entry.is_dir(follow_symlinks=False)
    return is_one and (os.name != "nt" or not is_link(entry.stat(follow_symlinks=False)))


def open_root(root: Path) -> Folder:
    """Return the root of a walk; on a system without folder handles, by its name."""
    return Folder(os.open(root, os.O_RDONLY | _ONLY_FOLDER) if _HAS_HANDLES else os.fspath(root))


def identity_of(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        return file_id(path.stat())
    return None


def check_root(root: Path, folder: Folder) -> None:
    """Check that a root's name still leads to the folder that was opened; else WorkError."""
    if identity_of(root) != folder.identity():
        raise WorkError(
            f"the workspace {root} was moved or replaced; put back what belongs there, then"
            " `codingagent resume` goes on with a session"
        )


def hidden_identities(hidden: Iterable[Path], root: Folder) -> frozenset[tuple[int, int]]:
    """Return the identities of folders that exist, except the root's own."""
    found = {identity for path in hidden if (identity := identity_of(path)) is not None}
    return frozenset(found - {root.identity()})


def temporary_name(name: str) -> str:
    """Return the temporary name under which a file is written; always the same for a name."""
    return f".ca-{hashlib.sha256(os.fsencode(name)).hexdigest()[:12]}.tmp"


def write_new(
    folder: Folder,
    name: str,
    data: bytes,
    mode: int | None = None,
    owner: tuple[int, int] | None = None,
    *,
    is_durable: bool,
) -> None:
    """Write a new file, to be renamed when all is ready; with `is_durable`, return when it is on the disk.

    Under its name there may be a leftover of an earlier kill, or a planted trap: it is removed, never
    followed. Only root may set the owner, a user and a group.
    """
    try:
        handle = folder.open_file(name, _NEW_FILE)
    except FileExistsError:
        with contextlib.suppress(FileNotFoundError):
            folder.unlink(name)
        handle = folder.open_file(name, _NEW_FILE)
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        if mode is not None and sys.platform != "win32":  # there the folder decides both
            if owner is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), *owner)
            os.fchmod(file.fileno(), mode)
        if is_durable:
            # The time of the change may follow: it takes a tenth less.
            sync(file.fileno(), only_content=True)


def regular(place: Position, path: str) -> os.stat_result:
    found = place.folder.lstat(place.name)
    if found is None:
        raise NotFoundError(path)
    if stat.S_ISDIR(found.st_mode):
        raise refused("{} is a folder, not a file", path)
    if not stat.S_ISREG(found.st_mode):
        raise refused("{} is not a regular file; only those can be used", path)
    return found


def read_regular(place: Position, found: os.stat_result, limit_bytes: int) -> tuple[bytes, State]:
    """Read a file known to be regular, up to one byte beyond the limit."""
    return read_opened(place.folder.open_file(place.name, CAREFULLY | NO_FOLLOW), found, limit_bytes)


def read_opened(file: int, found: os.stat_result, limit_bytes: int) -> tuple[bytes, State]:
    """Read and close an open file, which must be the one that was found; return its state, too."""
    try:
        opened = os.fstat(file)
        if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino):
            raise OperationError("The file was replaced while it was opened", advice="; try again")
        # One byte more than the size tells the end of it without a second buffer of a megabyte.
        size = max(opened.st_size + 1, 4096)
        chunks: list[bytes] = []
        got = 0
        while got <= limit_bytes and (chunk := os.read(file, min(limit_bytes + 1 - got, size))):
            chunks.append(chunk)
            got += len(chunk)
            if len(chunk) < size and got >= opened.st_size:
                break  # that was the end: one call less for each file of a workspace
        return b"".join(chunks), state_of(opened)
    finally:
        os.close(file)


def state_of(found: os.stat_result) -> State:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


_WORDS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the disk is read-only",
    errno.ENAMETOOLONG: "the name is too long for this disk",
    errno.ELOOP: "a link was put in its place meanwhile",
}


# What Windows takes of a folder, by default; of a file 12 more.
_LONGEST = 247


def reason_of(fault: OSError, path: str) -> str:
    words = _WORDS.get(fault.errno or 0) or fault.strerror or str(fault)
    if os.name == "nt" and isinstance(fault, PermissionError):
        words += ", or another program has it open: close it there first"
    longest = max(len(str(name)) for name in (fault.filename, fault.filename2))
    if os.name == "nt" and isinstance(fault, FileNotFoundError) and longest > _LONGEST:
        words = f"its whole path, {longest} characters, is too long for this system: shorten it"
    return f"'{paths.shown(path)}' could not be used: {words}"
