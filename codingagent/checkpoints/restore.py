"""Read files for a checkpoint, and restore them, without ever following a link.

A link on the way, a file in place of a folder, one of the agent's own folders: each is an obstacle,
and the path is left alone. Content is written atomically, to a temporary name and then renamed.
"""

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from codingagent.checkpoints.changes import Change, LeftOut, State
from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.workspace import dirfd

NO_CHECKPOINT = "one of the checkpoints did not cover it"

Contents = Callable[[Iterable[str]], Iterator[tuple[str, bytes]]]


class Present(Struct, frozen=True):
    """A file or link: its bytes (a link's are its target) and its metadata."""

    data: bytes
    found: os.stat_result

    @property
    def mode(self) -> int:
        """Type and permissions; a link's permissions are meaningless."""
        if stat.S_ISLNK(self.found.st_mode):
            return stat.S_IFLNK
        return stat.S_IFREG | (self.found.st_mode & 0o6777)


class RestoreTarget:
    """A workspace's files, one at a time, but not in `hidden` folders; sorted paths cost least.

    What stands in the way is an OperationError, whose reason is for the person.
    """

    def __init__(self, root: dirfd.Folder, hidden: frozenset[tuple[int, int]]) -> None:
        self._hidden = hidden
        self._place = dirfd.Position(root)
        self._at = ""

    def close(self) -> None:
        self._place.close()
        self._at = ""

    def look(self, path: str, limit_bytes: int) -> Present | None:
        """Return the file or link at this path, if any; a folder is none."""
        folder, _, name = path.rpartition("/")
        try:
            self._go(folder, create=False)
            _refuse_protected(name)
            found = self._place.folder.lstat(name)
            if found is None or stat.S_ISDIR(found.st_mode):
                return None
            if stat.S_ISLNK(found.st_mode):
                return Present(os.fsencode(self._place.folder.readlink(name)), found)
            if not stat.S_ISREG(found.st_mode):
                raise OperationError("neither a file nor a link")
            self._place.name = name
            is_large = found.st_size > limit_bytes
            data = b"" if is_large else dirfd.read_regular(self._place, found, limit_bytes)[0]
            if is_large or len(data) > limit_bytes:
                raise OperationError(f"larger than {limit_bytes // 10**6} MB")
            # Metadata is from before the bytes were read, so a later change shows in it.
            return Present(data, found)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as fault:
            raise OperationError(_words(fault)) from fault

    def remove(self, path: str) -> None:
        """Remove a file or link, and the folders that become empty."""
        folder, _, name = path.rpartition("/")
        with self._acting(folder, name, create=False):
            self._place.folder.unlink(name)
        with contextlib.suppress(OSError, OperationError):
            while folder:
                folder, _, name = folder.rpartition("/")
                self._go(folder, create=False)
                self._place.folder.rmdir(name)

    def put(self, path: str, state: State, data: bytes, check: Callable[[], object]) -> None:
        """Write a file or link atomically; create missing folders.

        `data` is a file's bytes, or a link's target. `check` is called when all is ready; an error in it
        leaves everything unchanged.
        """
        folder, _, name = path.rpartition("/")
        temporary = dirfd.temporary_name(name)
        with self._acting(folder, name, create=True):
            target = self._place.folder
            try:
                if state.is_link:
                    # A leftover of an earlier kill, or a trap.
                    with contextlib.suppress(FileNotFoundError):
                        target.unlink(temporary)
                    target.symlink(os.fsdecode(data), temporary)
                else:
                    dirfd.write_new(target, temporary, data, state.mode & 0o777, is_durable=False)
                # The check may only look at this path, so that the walk is still here.
                check()
                found = target.lstat(name)
                if found is not None and stat.S_ISDIR(found.st_mode):
                    # Only an empty folder; with anything in it this fails and changes nothing.
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
        except BaseException as fault:
            self.close()
            if isinstance(fault, OSError):
                raise OperationError(_words(fault)) from fault
            raise

    def _go(self, folder: str, *, create: bool) -> None:
        """Go to a folder from the root, or from where the walk is if that is above it."""
        # A deep tree would otherwise cost the square of its depth.
        if not f"{folder}/".startswith(f"{self._at}/"):
            self.close()
        try:
            for name in filter(None, folder[len(self._at) :].split("/")):
                _refuse_protected(name)
                missing = create and self._place.folder.lstat(name) is None
                self._place.enter(name, create=missing)
                if self._place.folder.identity() in self._hidden:
                    raise OperationError("not covered: it belongs to codingagent itself")  # noqa: TRY301
        except BaseException:
            # The walk ended somewhere on the way: the next one begins at the root.
            self.close()
            raise
        self._at = folder


def restored(
    ground: RestoreTarget, changes: Sequence[Change], contents: Contents, limit_bytes: int
) -> tuple[list[str], list[LeftOut]]:
    """Restore the old state of paths that are in their new one.

    Return the paths that are now in their old state, and those left alone. `changes` are sorted by path;
    no larger file than `limit_bytes` is read.
    """
    done: list[str] = []
    left = [LeftOut(change.path, NO_CHECKPOINT) for change in changes if change.kind == "left_out"]
    certain = [change for change in changes if change.kind != "left_out"]

    def is_done(change: Change) -> bool:
        look = ground.look(change.path, limit_bytes)
        if _fits(look, change.old):
            return True
        if not _fits(look, change.new):
            raise OperationError("it was changed after the latest checkpoint, or is not covered")
        return False

    def settle(change: Change, data: bytes) -> None:
        try:
            if not is_done(change):
                if change.old is None:
                    ground.remove(change.path)
                else:
                    ground.put(change.path, change.old, data, lambda: is_done(change))
            done.append(change.path)
        except OperationError as obstacle:
            left.append(LeftOut(change.path, obstacle.reason))

    # Removals make room for additions; innermost first, so that folders become empty.
    for change in reversed(certain):
        if change.old is None:
            settle(change, b"")
    by_blob: dict[str, list[Change]] = {}
    for change in certain:
        if change.old is not None:
            by_blob.setdefault(change.old.blob, []).append(change)
    for blob, data in contents(by_blob):
        for change in by_blob[blob]:
            settle(change, data)
    return done, left


def blob_id(data: bytes) -> str:
    # git identifies content by SHA-1; it is no security measure here.
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _fits(look: Present | None, state: State | None) -> bool:
    if look is None or state is None:
        return look is None and state is None
    return look.mode == state.mode and blob_id(look.data) == state.blob


def _refuse_protected(name: str) -> None:
    """Refuse a name that some file system would take for `.git` or an agent home."""
    if name.isascii():
        # Fast, since every name passes here: nothing else in ASCII folds to one of the two.
        lower = name.lower()
        if ("git" not in lower and "codingagent" not in lower) or name == ".git":
            return  # of a repository, checkpoints hold only what makes git run something
    if paths.is_git_name(name) or paths.is_home_name(name):
        raise OperationError("its name is git's or codingagent's own on some systems")


def _words(fault: OSError) -> str:
    """Return the reason without the path, which is shown beside it."""
    if fault.errno in (errno.ENOTDIR, errno.ELOOP):
        return "a file or link is where a folder was"
    if fault.errno in (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST):
        return "a folder with other files is there"
    return dirfd.reason_of(fault, "").partition(": ")[2]
