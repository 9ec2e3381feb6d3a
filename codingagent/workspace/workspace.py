"""The one folder that operations may touch, and the only way to touch it.

How it works. A path is walked name by name. Each folder is opened relative to the one before it
without following links, and a link is read and its target walked in turn, so that nobody can slip a
link in between the check and the use: there is no check, only the walk. What ends outside is refused.
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from codingagent.errors import OperationError, UsageError, WorkError
from codingagent.model import paths
from codingagent.model.events import FolderEntry
from codingagent.model.observations import Seen
from codingagent.prompt.file_list import Ignored, ListedFile, Listing
from codingagent.workspace.dirfd import (
    BINARY,
    NO_FOLLOW,
    Folder,
    NotFoundError,
    Place,
    digest_at,
    open_root,
    read_regular,
    reason_of,
    regular,
    state_of,
)
from codingagent.workspace.walk import ListingWalk

# Larger files are no text that a chat could hold; commands can still work on them.
READ_LIMIT_BYTES = 32 * 1024 * 1024

# What the machine itself is made of is no project.
_SYSTEM = frozenset(
    {
        *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/root", "/run"),
        *("/sbin", "/srv", "/sys", "/usr", "/var"),
    }
)

# A list of more is of use to nobody, and megabytes of JSON.
_ENTRIES_LIMIT = 200_000

# As Linux itself (MAXSYMLINKS).
_LINK_LIMIT = 40


class Workspace:
    """The folder at `root`; all paths given to it are in the plain form of `paths.workspace_path`.

    Args:
        root: the folder; links in it are resolved once, here.
        hidden: folders that do not exist for operations, though they may be inside.
        open_folder: how to hold the root.
        is_guest: the folder is what a whole machine is served by: whatever it is, it may be used.
        user_rules: gives what the user leaves out of every repository, as an ignore file says it.
        entries: how many lines a listing will have.

    Raises:
        UsageError: if the root is no folder, or too much of the machine to hand to a model.
    """

    def __init__(
        self,
        root: Path,
        hidden: tuple[Path, ...] = (),
        open_folder: Callable[[Path], Folder] = open_root,
        *,
        is_guest: bool = False,
        user_rules: Callable[[], str] = str,
        entries: int = 2_000,
    ) -> None:
        self.root = _checked_root(root, is_guest=is_guest)
        self._names = tuple({os.fspath(self.root), os.path.abspath(root)})
        self._folder = open_folder(self.root)
        self._user_rules = user_rules
        self._entries = entries
        self._hidden = frozenset(
            identity for path in hidden if (identity := _identity(path)) is not None
        ) - {self._folder.identity()}

    def close(self) -> None:
        """Return back the handle on the root."""
        self._folder.close()

    def check(self) -> None:
        """Make sure that the root's name still leads to the folder that was opened.

        Raises:
            WorkError: if it was moved, or another was put in its place.
        """
        if _identity(self.root) != self._folder.identity():
            raise WorkError(
                f"the workspace {self.root} was moved or replaced; put back what belongs there, then"
                " `codingagent resume` goes on with a session"
            )

    # --- files ---------------------------------------------------------------------------------

    def read(self, path: str, *, whole: bool = True) -> Seen:
        """Return a regular file's bytes, following links that stay inside.

        Args:
            path: the file.
            whole: refuse a file that is too large; else only its beginning is given.

        Raises:
            OperationError: if there is no such file, it is no regular file, or it is too large.
        """
        with self._walk(path) as place:
            found = regular(place, path)
            data, state = read_regular(place, found, READ_LIMIT_BYTES)
        if whole and len(data) > READ_LIMIT_BYTES:
            raise OperationError(
                f"File '{paths.shown(path)}' is larger than {READ_LIMIT_BYTES // 2**20} MiB;"
                " use RUN_COMMAND to look at parts of it"
            )
        return Seen(data, state, stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid))

    def resolved(self, path: str, *, follow_last: bool = True) -> str:
        """Return the path without links that this one leads to, be anything there or not.

        Raises:
            OperationError: if it leads outside.
        """
        try:
            with self._walk(path, follow_last=follow_last) as place:
                return place.path
        except NotFoundError as fault:
            return fault.real

    def has_git(self) -> bool:
        """Tells whether `.git` is in the root."""
        return self._folder.lstat(".git") is not None

    def exists(self, path: str) -> bool:
        """Tells whether something has this name.

        Raises:
            OperationError: if the path leads outside.
        """
        try:
            with self._walk(path) as place:
                return place.folder.lstat(place.name) is not None
        except NotFoundError:
            return False

    def check_writable(self, path: str) -> None:
        """Make sure that a file may be made or replaced here, before anything is journalled.

        Raises:
            OperationError: if the path leads outside or into .git, or what is there is no regular
                file or is read-only.
        """
        try:
            with self._walk(path, writing=True) as place:
                if place.folder.lstat(place.name) is not None:
                    _check_replaceable(regular(place, path), path)
        except NotFoundError:
            pass

    def write(self, path: str, data: bytes, seen: Seen | None) -> None:
        """Put a whole file in place, or leaves all as it was. Makes missing folders.

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
                raise OperationError(reason_of(fault, path)) from fault
            finally:
                with contextlib.suppress(OSError):
                    place.folder.unlink(temporary)
            place.made.clear()
            self._make_sure(place, path, is_new=seen is None)

    def _make_sure(self, place: Place, path: str, *, is_new: bool) -> None:
        """Refuse a write whose folder was moved away meanwhile; a new file is removed from there.

        The folder is held open, and goes on being written to wherever another process puts it.

        Raises:
            OperationError: if the path does not lead there any more.
        """
        with (
            contextlib.suppress(OperationError, NotFoundError),
            self._walk(place.path, follow_last=False) as again,
        ):
            if again.folder.identity() == place.folder.identity():
                return
        if is_new:
            with contextlib.suppress(OSError):
                place.folder.unlink(place.name)
        raise OperationError(
            f"'{paths.shown(path)}': its folder was moved away while it was written; look where it is now"
        )

    @staticmethod
    def _write_temporary(place: Place, name: str, data: bytes, seen: Seen | None) -> None:
        # A leftover of an earlier kill, or a trap laid in the workspace: remove it, never follow it.
        with contextlib.suppress(FileNotFoundError):
            place.folder.unlink(name)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | NO_FOLLOW | BINARY
        handle = place.folder.open_file(name, flags)
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            if seen is not None:
                if hasattr(os, "fchmod"):
                    with contextlib.suppress(PermissionError):  # only root may give files away
                        os.fchown(handle, *seen.owner)
                    os.fchmod(handle, seen.mode & 0o777)
                # Old bytes are about to go; the new ones must not be only in memory then.
                os.fsync(handle)

    def check_deletable(self, path: str) -> None:
        """Make sure that a file or link may be removed, before anything is journalled.

        Raises:
            OperationError: as `delete`.
        """
        with self._walk(path, writing=True, follow_last=False) as place:
            _check_deletable(place, path)

    def delete(self, path: str) -> None:
        """Remove a regular file, or a link (never its target).

        Raises:
            OperationError: if there is no such file, or it is a folder or a special file.
        """
        with self._walk(path, writing=True, follow_last=False) as place:
            _check_deletable(place, path)
            try:
                place.folder.unlink(place.name)
            except OSError as fault:
                raise OperationError(reason_of(fault, path)) from fault

    def digest(self, path: str, *, follow_last: bool = True) -> str | None:
        """Return a digest of what has this name, or None if nothing has.

        Of a file beyond 64 MiB the digest covers the beginning, the size and the time of change.

        Raises:
            OperationError: if the path leads outside.
        """
        try:
            with self._walk(path, follow_last=follow_last) as place:
                return digest_at(place)
        except NotFoundError:
            return None

    def discard_temporary(self, path: str) -> None:
        """Remove what a killed write of this path may have left behind.

        Raises:
            OperationError: if the path leads outside.
        """
        with contextlib.suppress(NotFoundError), self._walk(path, writing=True) as place:
            temporary = temporary_name(place.name)
            if place.folder.lstat(temporary) is not None:
                place.folder.unlink(temporary)

    @contextlib.contextmanager
    def folder(self, path: str) -> Iterator[int | str]:
        """Yield a folder to run a command in: a handle, or its name where there are no handles.

        Raises:
            OperationError: if it is no folder of the workspace.
        """
        with self._opened(path) as folder:
            yield folder.handle()

    def entries(self, path: str) -> tuple[FolderEntry, ...]:
        """Return what a folder holds, by name; a link that stays inside is what it leads to.

        Raises:
            OperationError: if it is no folder of the workspace, or holds too much to be told.
        """
        with self._opened(path) as folder:
            try:
                found = folder.entries()
            except OSError as fault:
                raise OperationError(reason_of(fault, path)) from fault
            if len(found) > _ENTRIES_LIMIT:
                raise OperationError(
                    f"'{paths.shown(path)}' holds {len(found)} entries, more than {_ENTRIES_LIMIT}"
                )
            told = (self._entry(path, entry) for entry in found)
            return tuple(sorted(filter(None, told), key=lambda entry: entry.name))

    def _entry(self, folder: str, entry: "os.DirEntry[str]") -> FolderEntry | None:
        """Return one entry; None for one that is ours, or gone since."""
        try:
            seen = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(seen.st_mode):
                # What it leads to is found by the walk, which does not leave the workspace.
                with self._walk(f"{folder}/{entry.name}") as place:
                    seen = place.folder.lstat(place.name) or seen
        except (OSError, OperationError):
            # Gone since; or a link to nowhere, or out: that it is there is all that is told of it.
            return FolderEntry(entry.name, is_folder=False, size_bytes=0)
        if (seen.st_dev, seen.st_ino) in self._hidden:
            return None
        is_folder = stat.S_ISDIR(seen.st_mode)
        size = seen.st_size if stat.S_ISREG(seen.st_mode) else 0
        return FolderEntry(entry.name, is_folder, size)

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[Folder]:
        if path == ".":
            yield self._folder
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
                yield folder

    # --- listing -------------------------------------------------------------------------------

    def listing(self, always: frozenset[str] = frozenset()) -> Listing:
        """Return all regular files but those that ignore files leave out; `.git` never.

        Args:
            always: paths that are listed even if an ignore file names them, or through a link.
        """
        walk = ListingWalk(self._hidden, self._user_rules, self._entries)
        walk.walk(self._folder, self.root)
        files = list(walk.files())
        wanted = [path for path in sorted(always) if not _is_in_git(path)]
        more = [*walk.links, *wanted]
        listed = {file.path: number for number, file in enumerate(files)} if more else {}
        for path in more:
            number = listed.get(path)
            if number is not None and files[number].size_bytes is not None:
                continue
            if (file := self._listed(path)) is None:
                continue
            if number is not None:
                files[number] = file
                continue
            listed[path] = len(files)
            files.append(file)
            if path in always and self._is_its_own(path):
                walk.uncount(file)
        ignored = Ignored(walk.ignored_files, walk.ignored_bytes, walk.is_partial)
        return Listing(tuple(files), ignored, tuple(walk.unread))

    def _listed(self, path: str) -> ListedFile | None:
        try:
            with self._walk(path) as place:
                return ListedFile(path, regular(place, path).st_size)
        except OperationError:
            return None

    def _is_its_own(self, path: str) -> bool:
        """Tells whether no link leads to a file under this path: only then the walk has counted it."""
        try:
            return self.resolved(path) == path
        except OperationError:
            return False

    # --- the walk ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _walk(
        self,
        path: str,
        *,
        writing: bool = False,
        create: bool = False,
        follow_last: bool = True,
    ) -> Iterator[Place]:
        """Yield the folder that holds the last name, opened, and that name, which is no link.

        Raises:
            OperationError: if the walk leads outside, to a hidden folder or, writing, to .git.
            NotFoundError: if a folder on the way is missing and is not to be made.
        """
        place = Place(self._folder)
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
                if writing:
                    _refuse_own(name, path)
                found = place.folder.lstat(name)
                is_link = found is not None and stat.S_ISLNK(found.st_mode)
                if is_link and (left or follow_last):
                    links += 1
                    if links > _LINK_LIMIT:
                        raise OperationError(f"'{paths.shown(path)}' has too many links in it")
                    left.extend(self._target(place, name, path))
                elif left:
                    if found is None and not create:
                        for missing in left if writing else ():
                            _refuse_own(missing, path)
                        raise NotFoundError(path, place.would_be([name, *reversed(left)]))
                    self._enter(place, name, path, create=create and found is None)
                else:
                    place.name = name
                    yield place
                    return
            raise OperationError(f"'{paths.shown(path)}' is a folder")
        except OSError as fault:
            raise OperationError(reason_of(fault, path)) from fault
        finally:
            place.close()

    def _target(self, place: Place, name: str, path: str) -> list[str]:
        """Return a link's target as names still to be walked, last first; an absolute one from the root."""
        target = place.folder.readlink(name).replace(os.sep, "/")
        if not os.path.isabs(target):
            return target.split("/")[::-1]
        for root in self._names:
            root_name = root.replace(os.sep, "/").rstrip("/")
            if target == root_name or target.startswith(f"{root_name}/"):
                place.restart()
                return target[len(root_name) :].split("/")[::-1]
        raise OperationError(f"{paths.OUTSIDE}: '{paths.shown(path)}' is a link that leads out")

    def _enter(self, place: Place, name: str, path: str, *, create: bool) -> None:
        try:
            place.enter(name, create=create)
        except FileNotFoundError:
            raise NotFoundError(path) from None
        except NotADirectoryError:
            raise OperationError(
                f"'{paths.shown(path)}': '{paths.shown(name)}' is a file, not a folder"
            ) from None
        self._refuse_hidden(place.folder, path)

    def _refuse_hidden(self, folder: Folder, path: str) -> None:
        if folder.identity() in self._hidden:
            raise OperationError(
                f"REJECTED: '{paths.shown(path)}' belongs to codingagent itself, not to the workspace"
            )


def _check_deletable(place: Place, path: str) -> None:
    found = place.folder.lstat(place.name)
    if found is None or not stat.S_ISLNK(found.st_mode):
        regular(place, path)


def _is_in_git(path: str) -> bool:
    return any(map(paths.is_git_name, path.split("/")))


def _refuse_own(name: str, path: str) -> None:
    if paths.is_home_name(name):
        raise OperationError(
            f"REJECTED: '{paths.shown(path)}' belongs to codingagent itself, not to the workspace"
        )
    if paths.is_git_name(name):
        raise OperationError(
            f"REJECTED: '{paths.shown(path)}' is in .git, which is read-only here; the person commits"
        )


def temporary_name(name: str) -> str:
    """Return the name under which a file is written before it takes its own; the same each time."""
    return f".ca-{hashlib.sha256(os.fsencode(name)).hexdigest()[:12]}.tmp"


def _checked_root(root: Path, *, is_guest: bool) -> Path:
    name = os.fspath(root)
    if "\0" in name or name.encode("utf-8", "replace") != os.fsencode(root):
        raise UsageError(
            f"workspace {name!a} has a name that is not UTF-8; rename it or name another"
        )
    try:
        real = root.resolve(strict=True)
    except OSError:
        raise UsageError(
            f"workspace {root} does not exist; make the folder or name another"
        ) from None
    if not real.is_dir():
        raise UsageError(f"workspace {root} is not a folder; name a folder")
    if not is_guest and _is_too_much(real):
        raise UsageError(
            f"workspace {real} is too much to hand to a model; name a project's folder inside it"
        )
    if not os.access(real, os.R_OK | os.X_OK):
        raise UsageError(f"workspace {root} can't be read; change its permissions or name another")
    return real


def _is_too_much(real: Path) -> bool:
    home = Path.home().resolve()
    return real in (home, *home.parents) or os.fspath(real) in _SYSTEM


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _check_replaceable(found: os.stat_result, path: str) -> None:
    if not found.st_mode & 0o222:
        raise OperationError(
            f"File '{paths.shown(path)}' is read-only; ask the person before changing it"
        )


def _check_unchanged(place: Place, path: str, seen: Seen | None) -> None:
    found = place.folder.lstat(place.name)
    if found is not None:
        _check_replaceable(regular(place, path), path)
    if (None if found is None else state_of(found)) != (None if seen is None else seen.state):
        raise OperationError(
            f"File '{paths.shown(path)}' was changed by something else meanwhile; nothing was written:"
            " read it and send the change again"
        )
