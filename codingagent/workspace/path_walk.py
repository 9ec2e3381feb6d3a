"""Walk a path of the workspace name by name: the only way to its files.

Each folder is opened relative to its parent without following links; a link is read and its target walked in
turn. So none can be slipped in between check and use. A path that ends outside is refused.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from codingagent.errors import OperationError, UsageError
from codingagent.model import paths
from codingagent.workspace import dirfd, own_code, programs
from codingagent.workspace.real_paths import below, plain_target, resolved, root_of

# System folders are not projects.
_SYSTEM = frozenset(
    {
        *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/root", "/run"),
        *("/sbin", "/srv", "/sys", "/usr", "/var"),
        # macOS
        *("/Applications", "/Library", "/Users", "/Volumes", "/private", "/private/etc"),
        *("/private/tmp", "/private/var"),
    }
)

_SYSTEM_OF_WINDOWS = (*("SYSTEMROOT", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "PROGRAMDATA"),)
_ON_WINDOWS = os.name == "nt"
_OURS = "REJECTED: {} belongs to codingagent itself, not to the workspace"
# The limit of Linux (MAXSYMLINKS).
_LINK_LIMIT = 40


class PathWalk:
    """Paths below a root but `hidden` ones; UsageError for too much of a machine, unless `is_guest`."""

    def __init__(
        self,
        root: Path,
        hidden: tuple[Path, ...],
        open_folder: Callable[[Path], dirfd.Folder],
        *,
        is_guest: bool,
    ) -> None:
        self.root = _checked_root(root, is_guest=is_guest)
        self._names = {os.path.abspath(root), *map(os.fspath, (self.root, self.root.resolve()))}
        self._folder = open_folder(self.root)
        self._hidden = dirfd.hidden_identities(hidden, self._folder)
        if not is_too_much(self.root):
            programs.distrust(self.root)
        self._kept = frozenset(map(dirfd.file_id, own_code.own_code_in(self.root).kept))

    def close(self) -> None:
        self._folder.close()

    def check_root(self) -> None:
        """Check that the root's name still leads to the opened folder; else WorkError."""
        dirfd.check_root(self.root, self._folder)

    def resolved(self, path: str, *, follow_last: bool = True) -> str:
        """Resolve all links in a path, which need not exist; OperationError if it leads outside."""
        try:
            with self._walk(path, follow_last=follow_last) as place:
                return place.path
        except dirfd.NotFoundError as fault:
            return fault.real

    def exists(self, path: str) -> bool:
        """Return whether something exists at this path; OperationError if it leads outside."""
        if self._folder.fd is None and paths.is_glob(path):
            return False  # Windows has no such names
        with contextlib.suppress(dirfd.NotFoundError), self._walk(path) as place:
            return place.folder.lstat(place.name) is not None
        return False

    def _leads_to(self, place: dirfd.Position) -> bool:
        with (
            contextlib.suppress(OperationError, dirfd.NotFoundError),
            self._walk(place.path, follow_last=False) as again,
        ):
            return again.folder.identity() == place.folder.identity()
        return False

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[dirfd.Folder]:
        if path == ".":
            yield self._folder
            return
        with self._walk(path) as place:
            try:
                folder = place.folder.open(place.name)
            except FileNotFoundError:
                raise dirfd.refused("Folder {} not found", path) from None
            except OSError as fault:
                raise dirfd.refused("{} is not a folder", path) from fault
            with contextlib.closing(folder):
                self._refuse_hidden(folder, path)
                yield folder

    @contextlib.contextmanager
    def _walk(
        self, path: str, *, writing: bool = False, create: bool = False, follow_last: bool = True
    ) -> Iterator[dirfd.Position]:
        """Open the parent, following no link; yield it with the final name; OperationError, NotFoundError."""
        place = dirfd.Position(self._folder)
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
                    _refuse_own(name, path, place.folder)
                if place.folder.fd is None:
                    _refuse_other_names(place, name, path)
                found = place.folder.lstat(name)
                if writing and found is not None and dirfd.file_id(found) in self._kept:
                    what = "codingagent itself, its Python or settings, or shares files with them"
                    raise dirfd.refused(f"REJECTED: {{}} belongs to {what}: read-only here", path)
                if found is not None and dirfd.is_link(found) and (left or follow_last):
                    links += 1
                    if links > _LINK_LIMIT:
                        raise dirfd.refused("{} has too many links in it", path)
                    left.extend(self._target(place, name, path))
                elif left:
                    if found is None and not create:
                        for missing in left if writing else ():
                            _refuse_own(missing, path, None)
                        raise dirfd.NotFoundError(path, place.would_be([name, *reversed(left)]))
                    self._enter(place, name, path, create=create and found is None)
                else:
                    place.name = name
                    yield place
                    return
            raise dirfd.refused("{} is a folder", path)
        except OSError as fault:
            raise OperationError(dirfd.reason_of(fault, path)) from fault
        except UnicodeEncodeError as fault:
            told = "REJECTED: no file can be called {} in this locale"
            raise dirfd.refused(told, path, "; choose another name") from fault
        finally:
            place.close()

    def _target(self, place: dirfd.Position, name: str, path: str) -> list[str]:
        """Return a link's target as names still to walk, last first; an absolute one relative to the root."""
        target = plain_target(place.folder.readlink(name))
        if not os.path.isabs(target) and not target.startswith("/"):
            return target.split("/")[::-1]
        if (inner := below(target, self._names)) is None:
            raise dirfd.refused(f"{paths.OUTSIDE}: {{}} is a link that leads out", path)
        place.restart()
        return inner.split("/")[::-1]

    def _enter(self, place: dirfd.Position, name: str, path: str, *, create: bool) -> None:
        try:
            place.enter(name, create=create)
        except FileNotFoundError as fault:
            if create:  # beyond what Windows takes
                raise OperationError(dirfd.reason_of(fault, path)) from fault
            raise dirfd.NotFoundError(path) from None
        except NotADirectoryError:
            what = f"'{paths.shown(name)}' is a file, not a folder"
            raise OperationError(f"'{paths.shown(path)}': {what}") from None
        self._refuse_hidden(place.folder, path)

    def _refuse_hidden(self, folder: dirfd.Folder, path: str) -> None:
        if folder.identity() in self._hidden:
            raise dirfd.refused(_OURS, path)


def _refuse_other_names(place: dirfd.Position, name: str, path: str) -> None:
    """Refuse what Windows takes for another file than the name says: a drive, a stream, a short name."""
    if not paths.is_plain_on_windows(name):
        why = f"has a part that is not a file name on Windows: '{paths.shown(name)}'"
        raise OperationError(f"REJECTED: '{paths.shown(path)}' {why}")
    if "~" in name and place.folder.lstat(name) is not None:
        listed = {entry.name.casefold() for entry in place.folder.entries()}
        if name.casefold() not in listed:
            told = f"REJECTED: '{paths.shown(path)}' has a short name in it, '{paths.shown(name)}'"
            raise OperationError(told, advice=": write the name that a listing of its folder shows")


def _refuse_own(name: str, path: str, folder: dirfd.Folder | None) -> None:
    is_of_home = paths.folded(name) in paths.OF_HOME and folder is not None and _is_home(folder)
    if paths.is_home_name(name) or is_of_home:
        raise dirfd.refused(_OURS, path)
    if paths.is_git_name(name):
        told = "REJECTED: {} is in .git, which is read-only here"
        raise dirfd.refused(told, path, "; the user commits")


def _is_home(folder: dirfd.Folder) -> bool:
    with contextlib.suppress(OSError), contextlib.closing(folder.open("sessions")) as sessions:
        return sessions.lstat(paths.HOME_MARK) is not None
    return False


def _checked_root(root: Path, *, is_guest: bool) -> Path:
    name = os.fspath(root)
    if "\0" in name or name.encode("utf-8", "replace") != os.fsencode(root):
        what = "has a name that is not UTF-8; rename it or name another"
        raise UsageError(f"workspace {name!a} {what}")
    if not os.path.exists(root):  # resolving can fail on a RAM disk of Windows
        raise UsageError(f"workspace {root} does not exist; make the folder or name another")
    real = root_of(root)
    if not real.is_dir():
        raise UsageError(f"workspace {root} is not a folder; name a folder")
    if not is_guest and is_too_much(real):
        what = "is too much to hand to a model; name a project's folder inside it"
        raise UsageError(f"workspace {real} {what}")
    if not os.access(real, os.R_OK | os.X_OK):
        raise UsageError(f"workspace {root} can't be read; change its permissions or name another")
    return real


def is_too_much(real: Path) -> bool:
    """Return whether a folder is more of the machine than anyone may hand to a model."""
    home = resolved(Path.home())
    if real in (home, *home.parents) or real == Path(real.anchor):
        return True
    if _ON_WINDOWS:
        of_system = (os.environ.get(name) for name in _SYSTEM_OF_WINDOWS)
        return any(name and Path(name) in (real, *real.parents) for name in of_system)
    # On macOS all of the disk has a second name below /System, and each file a third one by its number.
    is_other = real.parts[1] in ("System", ".vol") or real.parent == Path("/Volumes")
    return is_other or os.fspath(real) in _SYSTEM
