"""The one folder that operations may touch, and the only code that touches it.

How it works. A path is walked name by name. Each folder is opened relative to the one before it
without following links, and a link is read and its target walked in turn, so that nobody can slip a
link in between the check and the use: there is no check, only the walk. What ends outside is refused.
Where the system has no such handles (Windows), the same walk goes by names; that is a guard against
mistakes there, not against a race.
"""

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from codingagent.core import paths
from codingagent.core.findings import Seen, digest_of
from codingagent.core.ignore import IGNORE_FILES, IgnoreRules
from codingagent.core.listing import Ignored, ListedFile, Listing
from codingagent.errors import OperationError, UsageError, WorkError

# Larger files are no text that a chat could hold; commands can still work on them.
READ_LIMIT_BYTES = 32 * 1024 * 1024

# As Linux itself (MAXSYMLINKS).
_LINK_LIMIT = 40
# Each level holds one handle while the workspace is listed, and 256 is a common limit of handles.
_DEPTH_LIMIT = 150
# Counting what is ignored is a courtesy; node_modules must not make every turn slow.
_IGNORED_COUNT_LIMIT = 20_000
_DIGEST_LIMIT_BYTES = 64 * 1024 * 1024

_HAS_HANDLES = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class Workspace:
    """The folder at `root`; all paths given to it are in the plain form of `paths.workspace_path`.

    Args:
        root: the folder; links in it are resolved once, here.
        hidden: folders that do not exist for operations, though they may lie inside.

    Raises:
        UsageError: if the root is no folder, or too much of the machine to hand to a model.
    """

    def __init__(self, root: Path, hidden: tuple[Path, ...] = ()) -> None:
        self.root = _checked_root(root)
        self._names = tuple({os.fspath(self.root), os.path.abspath(root)})
        self._folder = _open_root(self.root)
        self._hidden = frozenset(
            identity for path in hidden if (identity := _identity(path)) is not None
        ) - {self._folder.identity()}

    def close(self) -> None:
        """Gives back the handle on the root."""
        self._folder.close()

    def check(self) -> None:
        """Makes sure that the root's name still leads to the folder that was opened.

        Raises:
            WorkError: if it was moved, or another was put in its place.
        """
        if _identity(self.root) != self._folder.identity():
            raise WorkError(f"the workspace {self.root} was moved or replaced; start again")

    # --- files ---------------------------------------------------------------------------------

    def read(self, path: str, *, whole: bool = True) -> Seen:
        """Gives a regular file's bytes, following links that stay inside.

        Args:
            path: the file.
            whole: refuse a file that is too large; else only its beginning is given.

        Raises:
            OperationError: if there is no such file, it is no regular file, or it is too large.
        """
        with self._walk(path) as place:
            found = _regular(place, path)
            data, state = _read_regular(place, found, READ_LIMIT_BYTES)
        if whole and len(data) > READ_LIMIT_BYTES:
            raise OperationError(
                f"File '{paths.shown(path)}' is larger than {READ_LIMIT_BYTES // 2**20} MiB;"
                " use RUN_COMMAND to look at parts of it"
            )
        return Seen(data, state, stat.S_IMODE(found.st_mode))

    def exists(self, path: str) -> bool:
        """Tells whether something has this name.

        Raises:
            OperationError: if the path leads outside.
        """
        try:
            with self._walk(path) as place:
                return place.folder.lstat(place.name) is not None
        except _NotFoundError:
            return False

    def check_writable(self, path: str) -> None:
        """Makes sure that a file may be made or replaced here, before anything is journalled.

        Raises:
            OperationError: if the path leads outside or into .git, or what is there is no regular
                file or is read-only.
        """
        try:
            with self._walk(path, writing=True) as place:
                if place.folder.lstat(place.name) is not None:
                    _check_replaceable(_regular(place, path), path)
        except _NotFoundError:
            pass

    def write(self, path: str, data: bytes, seen: Seen | None) -> None:
        """Puts a whole file in place, or leaves all as it was. Makes missing folders.

        Args:
            path: a link to a file inside is followed: its target is replaced.
            data: the new bytes.
            seen: what was read before, for a file that exists; None for a new one. If that is no
                longer so, nothing is written.

        Raises:
            OperationError: as `check_writable`, or if the file changed meanwhile, or on a full disk.
        """
        with self._walk(path, writing=True, create=True) as place:
            temporary = temporary_name(place.name)
            try:
                self._write_temporary(place, temporary, data, seen)
                _check_unchanged(place, path, seen)
                place.folder.rename(temporary, place.name)
            except OSError as fault:
                raise OperationError(_reason(fault, path)) from fault
            finally:
                with contextlib.suppress(OSError):
                    place.folder.unlink(temporary)
            place.made.clear()

    @staticmethod
    def _write_temporary(place: "_Place", name: str, data: bytes, seen: Seen | None) -> None:
        # A leftover of an earlier kill, or a trap laid in the workspace: remove it, never follow it.
        with contextlib.suppress(FileNotFoundError):
            place.folder.unlink(name)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | _NO_FOLLOW | _BINARY
        handle = place.folder.open_file(name, flags)
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            if seen is not None:
                if hasattr(os, "fchmod"):
                    os.fchmod(handle, seen.mode & 0o777)
                # Old bytes are about to go; the new ones must not be only in memory then.
                os.fsync(handle)

    def delete(self, path: str) -> None:
        """Removes a regular file, or a link (never its target).

        Raises:
            OperationError: if there is no such file, or it is a folder or a special file.
        """
        with self._walk(path, writing=True, follow_last=False) as place:
            found = place.folder.lstat(place.name)
            if found is None or not stat.S_ISLNK(found.st_mode):
                _regular(place, path)
            try:
                place.folder.unlink(place.name)
            except OSError as fault:
                raise OperationError(_reason(fault, path)) from fault

    def digest(self, path: str, *, follow_last: bool = True) -> str | None:
        """Gives a digest of what has this name, or None if nothing has.

        Of a file beyond 64 MiB the digest covers the beginning, the size and the time of change.

        Raises:
            OperationError: if the path leads outside.
        """
        try:
            with self._walk(path, follow_last=follow_last) as place:
                return _digest(place)
        except _NotFoundError:
            return None

    def discard_temporary(self, path: str) -> None:
        """Removes what a killed write of this path may have left behind.

        Raises:
            OperationError: if the path leads outside.
        """
        with contextlib.suppress(_NotFoundError), self._walk(path, writing=True) as place:
            temporary = temporary_name(place.name)
            if place.folder.lstat(temporary) is not None:
                place.folder.unlink(temporary)

    @contextlib.contextmanager
    def folder(self, path: str) -> Iterator[int | str]:
        """Gives a folder to run a command in: a handle, or its name where there are no handles.

        Raises:
            OperationError: if it is no folder of the workspace.
        """
        if path == ".":
            yield self._folder.handle()
            return
        with self._walk(path) as place:
            try:
                folder = place.folder.open(place.name)
            except FileNotFoundError:
                raise OperationError(f"Folder '{paths.shown(path)}' not found") from None
            except OSError as fault:
                raise OperationError(f"'{paths.shown(path)}' is not a folder") from fault
            with contextlib.closing(folder):
                self._refuse_hidden(folder, path)
                yield folder.handle()

    # --- listing -------------------------------------------------------------------------------

    def listing(self, always: frozenset[str] = frozenset()) -> Listing:
        """Gives all regular files but those that ignore files leave out; `.git` never.

        Args:
            always: paths that are listed even if an ignore file names them.
        """
        walk = _Listing(self._hidden)
        walk.walk(self._folder)
        listed = {file.path for file in walk.files}
        files = list(walk.files)
        for path in [*walk.links, *sorted(always)]:
            if path not in listed and (file := self._listed(path)) is not None:
                listed.add(path)
                files.append(file)
                if path in always and path not in walk.links:
                    walk.uncount(file)
        return Listing(
            tuple(files), Ignored(walk.ignored_files, walk.ignored_bytes, walk.is_partial)
        )

    def _listed(self, path: str) -> ListedFile | None:
        try:
            with self._walk(path) as place:
                return ListedFile(path, _regular(place, path).st_size)
        except OperationError:
            return None

    # --- the walk ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _walk(
        self,
        path: str,
        *,
        writing: bool = False,
        create: bool = False,
        follow_last: bool = True,
    ) -> Iterator["_Place"]:
        """Gives the folder that holds the last name, opened, and that name, which is no link.

        Raises:
            OperationError: if the walk leads outside, to a hidden folder or, writing, to .git.
            _NotFoundError: if a folder on the way is missing and is not to be made.
        """
        place = _Place(self._folder)
        left = path.split("/")[::-1]
        links = 0
        try:
            while left:
                name = left.pop()
                if name in ("", "."):
                    continue
                if name == "..":
                    place.leave(path)
                    continue
                if writing and paths.is_git_name(name):
                    raise OperationError(
                        f"REJECTED: '{paths.shown(path)}' is in .git, which is read-only here;"
                        " the person commits"
                    )
                found = place.folder.lstat(name)
                is_link = found is not None and stat.S_ISLNK(found.st_mode)
                if is_link and (left or follow_last):
                    links += 1
                    if links > _LINK_LIMIT:
                        raise OperationError(f"'{paths.shown(path)}' has too many links in it")
                    left.extend(self._target(place, name, path))
                elif left:
                    self._enter(place, name, path, create=create and found is None)
                else:
                    place.name = name
                    yield place
                    return
            raise OperationError(f"'{paths.shown(path)}' is a folder")
        except OSError as fault:
            raise OperationError(_reason(fault, path)) from fault
        finally:
            place.close()

    def _target(self, place: "_Place", name: str, path: str) -> list[str]:
        """Gives a link's target as names still to be walked, last first; an absolute one from the root."""
        target = place.folder.readlink(name).replace(os.sep, "/")
        if not os.path.isabs(target):
            return target.split("/")[::-1]
        for root in self._names:
            root_name = root.replace(os.sep, "/")
            if target == root_name or target.startswith(f"{root_name}/"):
                place.restart()
                return target[len(root_name) :].split("/")[::-1]
        raise OperationError(f"{paths.OUTSIDE}: '{paths.shown(path)}' is a link that leads out")

    def _enter(self, place: "_Place", name: str, path: str, *, create: bool) -> None:
        try:
            place.enter(name, create=create)
        except FileNotFoundError:
            raise _NotFoundError(path) from None
        except NotADirectoryError:
            raise OperationError(
                f"'{paths.shown(path)}': '{paths.shown(name)}' is a file, not a folder"
            ) from None
        self._refuse_hidden(place.folder, path)

    def _refuse_hidden(self, folder: "_Folder", path: str) -> None:
        if folder.identity() in self._hidden:
            raise OperationError(
                f"REJECTED: '{paths.shown(path)}' belongs to codingagent itself, not to the workspace"
            )


def temporary_name(name: str) -> str:
    """Gives the name under which a file is written before it takes its own; the same each time."""
    return f".ca-{hashlib.sha256(os.fsencode(name)).hexdigest()[:12]}.tmp"


def _is_temporary(name: str) -> bool:
    return len(name) == 20 and name.startswith(".ca-") and name.endswith(".tmp")


class _NotFoundError(OperationError):
    """A folder or file on the way is not there."""

    def __init__(self, path: str) -> None:
        super().__init__(f"File '{paths.shown(path)}' not found")


# --- handles ---------------------------------------------------------------------------------------


class _Folder:
    """One open folder; every name is looked up in it, whatever happens to its own name."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def handle(self) -> int | str:
        return self._handle

    def close(self) -> None:
        os.close(self._handle)

    def identity(self) -> tuple[int, int]:
        found = os.fstat(self._handle)
        return found.st_dev, found.st_ino

    def open(self, name: str) -> "_Folder":
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        return _Folder(os.open(name, flags, dir_fd=self._handle))

    def open_file(self, name: str, flags: int) -> int:
        return os.open(name, flags, 0o666, dir_fd=self._handle)

    def lstat(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def readlink(self, name: str) -> str:
        return os.readlink(name, dir_fd=self._handle)

    def mkdir(self, name: str) -> None:
        os.mkdir(name, dir_fd=self._handle)

    def rmdir(self, name: str) -> None:
        os.rmdir(name, dir_fd=self._handle)

    def unlink(self, name: str) -> None:
        os.unlink(name, dir_fd=self._handle)

    def rename(self, name: str, new_name: str) -> None:
        os.replace(name, new_name, src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def entries(self) -> list[os.DirEntry[str]]:
        with os.scandir(self._handle) as entries:
            return list(entries)


class _NamedFolder(_Folder):
    """A folder by its name, for systems without handles on folders."""

    def __init__(self, path: str) -> None:
        self._path = path

    def handle(self) -> int | str:
        return self._path

    def close(self) -> None:
        pass

    def identity(self) -> tuple[int, int]:
        found = os.stat(self._path)
        return found.st_dev, found.st_ino

    def open(self, name: str) -> "_Folder":
        found = os.lstat(self._join(name))
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        return _NamedFolder(self._join(name))

    def open_file(self, name: str, flags: int) -> int:
        return os.open(self._join(name), flags, 0o666)

    def lstat(self, name: str) -> os.stat_result | None:
        try:
            return os.lstat(self._join(name))
        except FileNotFoundError:
            return None

    def readlink(self, name: str) -> str:
        return os.readlink(self._join(name))

    def mkdir(self, name: str) -> None:
        os.mkdir(self._join(name))

    def rmdir(self, name: str) -> None:
        os.rmdir(self._join(name))

    def unlink(self, name: str) -> None:
        os.unlink(self._join(name))

    def rename(self, name: str, new_name: str) -> None:
        os.replace(self._join(name), self._join(new_name))

    def entries(self) -> list[os.DirEntry[str]]:
        with os.scandir(self._path) as entries:
            return list(entries)

    def _join(self, name: str) -> str:
        return os.path.join(self._path, name)


class _Place:
    """Where a walk stands: the folder reached, the root, and the true names between the two.

    Only these two are held open, however deep the walk goes. `name` is the last name of the path,
    once the walk has come to it.
    """

    def __init__(self, root: _Folder, name: str = "") -> None:
        self._root = root
        self._trail: list[str] = []
        self.folder = root
        self.name = name
        self.made: list[tuple[str, ...]] = []
        """Folders made on the way, each by its names from the root on."""

    def enter(self, name: str, *, create: bool) -> None:
        """Goes into a folder, which is made if it is missing and is to be made."""
        if create:
            with contextlib.suppress(FileExistsError):
                self.folder.mkdir(name)
                self.made.append((*self._trail, name))
        self._go(self.folder.open(name))
        self._trail.append(name)

    def leave(self, path: str) -> None:
        """Goes back to the folder above; by its names, since a folder may have been moved meanwhile."""
        if not self._trail:
            raise OperationError(
                f"{paths.OUTSIDE}: '{paths.shown(path)}' leads through a link out of it"
            )
        trail = self._trail[:-1]
        self.restart()
        for name in trail:
            self.enter(name, create=False)

    def restart(self) -> None:
        """Goes back to the root."""
        self._go(self._root)
        self._trail.clear()

    def close(self) -> None:
        """Closes what was opened; folders made for a write that then failed go again."""
        for made in reversed(self.made):
            with contextlib.suppress(OSError):
                self.restart()
                for name in made[:-1]:
                    self.enter(name, create=False)
                self.folder.rmdir(made[-1])
        self.restart()

    def _go(self, folder: _Folder) -> None:
        if self.folder is not self._root:
            self.folder.close()
        self.folder = folder


def _open_root(root: Path) -> _Folder:
    if _HAS_HANDLES:
        return _Folder(os.open(root, os.O_RDONLY | os.O_DIRECTORY))
    return _NamedFolder(os.fspath(root))


def _checked_root(root: Path) -> Path:
    try:
        real = root.resolve(strict=True)
    except OSError:
        raise UsageError(
            f"workspace {root} does not exist; make the folder or name another"
        ) from None
    if not real.is_dir():
        raise UsageError(f"workspace {root} is not a folder; name a folder")
    home = Path.home().resolve()
    if real in (home, *home.parents):
        raise UsageError(
            f"workspace {real} is too much to hand to a model; name a project's folder inside it"
        )
    if not os.access(real, os.R_OK | os.X_OK):
        raise UsageError(f"workspace {root} can't be read; change its permissions or name another")
    return real


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


# --- one file --------------------------------------------------------------------------------------


def _regular(place: _Place, path: str) -> os.stat_result:
    found = place.folder.lstat(place.name)
    if found is None:
        raise _NotFoundError(path)
    if stat.S_ISDIR(found.st_mode):
        raise OperationError(f"'{paths.shown(path)}' is a folder, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise OperationError(f"'{paths.shown(path)}' is not a regular file; only those can be used")
    return found


def _check_replaceable(found: os.stat_result, path: str) -> None:
    if not found.st_mode & 0o222:
        raise OperationError(
            f"File '{paths.shown(path)}' is read-only; ask the person before changing it"
        )


def _check_unchanged(place: _Place, path: str, seen: Seen | None) -> None:
    found = place.folder.lstat(place.name)
    if found is not None:
        _check_replaceable(_regular(place, path), path)
    if (None if found is None else _state(found)) != (None if seen is None else seen.state):
        raise OperationError(
            f"File '{paths.shown(path)}' was changed by something else meanwhile; nothing was written:"
            " read it and send the change again"
        )


def _state(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _read_regular(
    place: _Place, found: os.stat_result, limit_bytes: int
) -> tuple[bytes, tuple[int, int, int, int]]:
    """Reads at most a byte more than the limit of a file known to be regular."""
    # O_NONBLOCK: if a FIFO took the file's place since, opening it must not wait for a writer.
    flags = (
        os.O_RDONLY
        | _NO_FOLLOW
        | _BINARY
        | getattr(os, "O_NONBLOCK", 0)
        | getattr(os, "O_NOCTTY", 0)
    )
    with open(place.folder.open_file(place.name, flags), "rb", buffering=0) as file:
        opened = os.fstat(file.fileno())
        if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino):
            raise OperationError("The file was replaced while it was opened; try again")
        chunks: list[bytes] = []
        left = limit_bytes + 1
        while left and (chunk := file.read(min(left, 1 << 20))):
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks), _state(opened)


def _digest(place: _Place) -> str | None:
    found = place.folder.lstat(place.name)
    if found is None:
        return None
    if stat.S_ISLNK(found.st_mode):
        return f"link:{place.folder.readlink(place.name)}"
    if not stat.S_ISREG(found.st_mode):
        return "special"
    data, _ = _read_regular(place, found, _DIGEST_LIMIT_BYTES)
    if len(data) > _DIGEST_LIMIT_BYTES:
        return f"{digest_of(data)}:{found.st_size}:{found.st_mtime_ns}"
    return digest_of(data)


_WORDS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the disk is read-only",
    errno.ENAMETOOLONG: "the name is too long for this disk",
    errno.ELOOP: "a link was put in its place meanwhile",
}


def _reason(fault: OSError, path: str) -> str:
    words = _WORDS.get(fault.errno or 0) or fault.strerror or str(fault)
    return f"'{paths.shown(path)}' could not be used: {words}"


# --- all files -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Listing:
    """A walk over all files, pruned by ignore rules; what is pruned is counted up to a limit."""

    hidden: frozenset[tuple[int, int]]
    files: list[ListedFile] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ignored_files: int = 0
    ignored_bytes: int = 0
    is_partial: bool = False

    def walk(self, folder: _Folder, prefix: str = "", rules: IgnoreRules | None = None) -> None:
        if (entries := _entries(folder)) is None:
            return
        known = rules or IgnoreRules()
        names = {entry.name for entry in entries}
        for name in IGNORE_FILES:
            if name in names:
                known = known.extended(prefix.rstrip("/"), _ignore_text(folder, name))
        for entry in entries:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    self._walk_inner(folder, entry.name, path, known)
            elif known.ignores(path, is_folder=False):
                self._count(entry)
            elif entry.is_symlink():
                self.links.append(path)
            elif entry.is_file(follow_symlinks=False) and not _is_skipped(entry.name):
                with contextlib.suppress(OSError):
                    size = entry.stat(follow_symlinks=False).st_size
                    self.files.append(ListedFile(path, size))

    def _walk_inner(self, folder: _Folder, name: str, path: str, rules: IgnoreRules) -> None:
        ignored = rules.ignores(path, is_folder=True)
        if path.count("/") >= _DEPTH_LIMIT or (ignored and self.is_partial):
            return
        try:
            inner = folder.open(name)
        except OSError:
            return
        with contextlib.closing(inner):
            if inner.identity() in self.hidden:
                return
            if ignored:
                self._count_all(inner, path.count("/"))
            else:
                self.walk(inner, f"{path}/", rules)

    def _count_all(self, folder: _Folder, depth: int) -> None:
        for entry in _entries(folder) or ():
            if self.ignored_files >= _IGNORED_COUNT_LIMIT:
                self.is_partial = True
            if self.is_partial or depth >= _DEPTH_LIMIT:
                return
            if not entry.is_dir(follow_symlinks=False):
                self._count(entry)
                continue
            with contextlib.suppress(OSError), contextlib.closing(folder.open(entry.name)) as inner:
                self._count_all(inner, depth + 1)

    def uncount(self, file: ListedFile) -> None:
        """Takes back the count of an ignored file that is listed all the same."""
        if not self.is_partial:
            self.ignored_files -= 1
            self.ignored_bytes -= file.size_bytes

    def _count(self, entry: "os.DirEntry[str]") -> None:
        with contextlib.suppress(OSError):
            self.ignored_bytes += entry.stat(follow_symlinks=False).st_size
            self.ignored_files += 1


def _entries(folder: _Folder) -> "list[os.DirEntry[str]] | None":
    try:
        return folder.entries()
    except OSError:
        return None  # a folder without permission is listed as if it were empty


def _is_skipped(name: str) -> bool:
    return name == ".git" or _is_temporary(name)


def _ignore_text(folder: _Folder, name: str) -> str:
    place = _Place(folder, name)
    try:
        data, _ = _read_regular(place, _regular(place, name), 1 << 20)
    except (OSError, OperationError):
        return ""
    return data.decode("utf-8", "replace")
