"""Read files for a checkpoint, and restore them, without ever following a link.

A link on the way, a file in place of a folder, one of the agent's own folders: each is an obstacle,
and the path is left alone. Content is written atomically, to a temporary name and then renamed.
"""

import contextlib
import errno
import hashlib
import os
import stat

from msgspec import Struct

from codingagent.checkpoints.history import Change, State
from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.workspace import dirfd


class Present(Struct, frozen=True):
    """A file or link as it is now, its bytes (a link's are its target), and when it changed."""

    state: State
    data: bytes
    changed_ns: int


class RestoreTarget:
    """A workspace's files, one at a time, but not in `hidden` folders; sorted paths cost least."""

    def __init__(self, root: dirfd.Folder, hidden: frozenset[tuple[int, int]]) -> None:
        self._hidden = hidden
        self._place = dirfd.Position(root)
        self._at = ""

    def close(self) -> None:
        self._place.close()
        self._at = ""

    def look(self, path: str, limit_bytes: int) -> Present | None:
        """Return the file or link at this path, if any; a folder is none."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            name = self._go(path)
            found = self._place.folder.lstat(name)
            if found is None or (stat.S_ISDIR(found.st_mode) and not dirfd.is_link(found)):
                return None
            if dirfd.is_link(found):
                # A link's permissions are meaningless.
                data, mode = os.fsencode(self._place.folder.readlink(name)), stat.S_IFLNK
            elif not stat.S_ISREG(found.st_mode):
                raise OperationError("neither a file nor a link")
            else:
                self._place.name, mode = name, stat.S_IFREG | (found.st_mode & 0o6777)
                size, data = found.st_size, b""
                if size <= limit_bytes:
                    data, _ = dirfd.read_regular(self._place, found, limit_bytes)
                if max(size, len(data)) > limit_bytes:
                    raise OperationError(f"larger than {limit_bytes // 10**6} MB")
            # git identifies content by SHA-1; it is no security measure here.
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
            # Metadata is from before the bytes were read, so a later change shows in it.
            changed_ns = max(found.st_ctime_ns, found.st_mtime_ns)
            return Present(State(blob, mode), data, changed_ns)
        return None

    def settle(self, change: Change, data: bytes, limit_bytes: int) -> None:
        """Restore the old state of a path, with this content, if it is in its new one, or done already."""
        if not self._is_settled(change, limit_bytes):
            if change.old is None:
                self._remove(change.path)
            else:
                self._put(change, change.old, data, limit_bytes)

    def _is_settled(self, change: Change, limit_bytes: int) -> bool:
        look = self.look(change.path, limit_bytes)
        state = None if look is None else look.state
        if state not in (change.old, change.new):
            raise OperationError("it was changed after the latest checkpoint, or is not covered")
        return state == change.old

    def _remove(self, path: str) -> None:
        """Remove a file or link, and the folders that become empty."""
        name = self._go(path)
        self._place.folder.unlink(name)
        with contextlib.suppress(OSError, OperationError):
            while path := path.rpartition("/")[0]:
                name = self._go(path)
                self._place.folder.rmdir(name)

    def _put(self, change: Change, state: State, data: bytes, limit_bytes: int) -> None:
        """Write a file or link atomically; create missing folders."""
        name = self._go(change.path, create=True)
        target, temporary = self._place.folder, dirfd.temporary_name(name)
        try:
            if state.is_link:
                # A leftover of an earlier kill, or a trap.
                with contextlib.suppress(FileNotFoundError):
                    target.unlink(temporary)
                target.symlink(os.fsdecode(data), temporary)
            else:
                dirfd.write_new(target, temporary, data, state.mode & 0o777, is_durable=False)
            # Looked at once more when all is ready; the walk is still here then.
            self._is_settled(change, limit_bytes)
            found = target.lstat(name)
            if found is not None and stat.S_ISDIR(found.st_mode):
                # Only an empty folder; with anything in it this fails and changes nothing.
                target.rmdir(name)
            target.rename(temporary, name)
        except BaseException:
            with contextlib.suppress(OSError):
                target.unlink(temporary)
            self.close()
            raise
        self._place.made.clear()

    def _go(self, path: str, *, create: bool = False) -> str:
        """Go to a path's folder, from the root or a folder above it; return its name there."""
        folder, _, name = path.rpartition("/")
        # A deep tree would otherwise cost the square of its depth.
        if not f"{folder}/".startswith(f"{self._at}/"):
            self.close()
        try:
            for part in filter(None, folder[len(self._at) :].split("/")):
                _refuse_protected(part)
                missing = create and self._place.folder.lstat(part) is None
                self._place.enter(part, create=missing)
                if self._place.folder.identity() in self._hidden:
                    raise OperationError("not covered: it belongs to codingagent itself")  # noqa: TRY301
            _refuse_protected(name)
        except BaseException:
            # The walk ended somewhere on the way: the next one begins at the root.
            self.close()
            raise
        self._at = folder
        return name


def obstacle(fault: OSError | OperationError) -> str:
    """Return what stands in the way, without the path, which is shown beside it."""
    if isinstance(fault, OperationError):
        return fault.reason
    if fault.errno in (errno.ENOTDIR, errno.ELOOP):
        return "a file or link is where a folder was"
    if fault.errno in (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST):
        return "a folder with other files is there"
    return dirfd.reason_of(fault, "").partition(": ")[2]


def _refuse_protected(name: str) -> None:
    """Refuse a name that some file system would take for `.git` or an agent home."""
    if name.isascii():
        # Fast, since every name passes here: nothing else in ASCII folds to one of the two.
        lower = name.lower()
        if ("git" not in lower and "codingagent" not in lower) or name == ".git":
            return  # of a repository, checkpoints hold only what makes git run something
    if paths.is_git_name(name) or paths.is_home_name(name):
        raise OperationError("its name is git's or codingagent's own on some systems")
