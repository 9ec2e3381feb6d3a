"""The workspace: the one folder that operations may touch, and all that they do with its files."""

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from codingagent.errors import OperationError, WorkError
from codingagent.model import encoding, paths, patterns
from codingagent.model.events import FolderEntry
from codingagent.model.observations import Seen, digest_of
from codingagent.prompt.file_list import Listing
from codingagent.workspace import dirfd, path_walk

if TYPE_CHECKING:
    from configparser import ConfigParser

    from codingagent.model.observations import PastCommit
    from codingagent.workspace.git_files import Git, GitListing
    from codingagent.workspace.walk import PlainRules

LEAVE_FILE = ".codingagent/leave"
"""What may leave: the repository's file of rules. A session reads it once, so that no command changes it."""
# Larger files are not text for a chat; commands can still work on them.
READ_LIMIT_BYTES = 32 * 1024 * 1024
# A larger file is digested only at its beginning: nobody waits for a whole disk image.
_DIGEST_LIMIT_BYTES = 64 * 1024 * 1024
# A longer list is useless, and megabytes of JSON.
_ENTRIES_LIMIT = 200_000
_CHANGED = "File {} was changed by something else meanwhile; nothing was"
# Enough to know the habits of a folder.
_NEIGHBOURS, _NEIGHBOUR_BYTES = 30, 200_000
_BRACES = patterns.lazy_pattern(r"\{([^{}]*,[^{}]*)\}")
_GLOBS = 100
# Deeper folders are not looked into for an .editorconfig.
_DEPTH = 100
# Enough to know how files of one kind end their lines.
_LIKE, _FEWEST_LIKE = 8, 3
_ENDS = frozenset({"eol=lf", "eol=crlf"})
_EOL = _ENDS | {"-text", "binary"}


class Workspace(path_walk.PathWalk):
    """The workspace at `root`. `git` returns git, which knows the files that belong to it, or None.

    A copy goes by what never leaves of its `original`.
    """

    def __init__(
        self,
        root: Path,
        hidden: tuple[Path, ...] = (),
        open_folder: Callable[[Path], dirfd.Folder] = dirfd.open_root,
        *,
        is_guest: bool = False,
        git: "Callable[[], Git | None]" = lambda: None,
        original: Path | None = None,
    ) -> None:
        super().__init__(root, hidden, open_folder, is_guest=is_guest)
        self._original = original
        self._git = git
        self._hidden_paths = hidden
        self._count_listed: Callable[[], int] = int
        # Every text asks for them: they are read once for each answer, and after its commands.
        self._told_above = dict[str, bytes | None]()
        self._habits = dict[tuple[str, str], tuple[str, str]]()
        # The text read last is kept: it is often asked for again.
        self._last: tuple[str, bytes, encoding.FileText | None] = ("", b"", None)

    def check(self) -> None:
        """Check that the root is there, and forget what its files told: others may have changed it.

        But not what never leaves: those rules are read before anything of an answer is done.
        """
        self.check_root()
        self.stays("")
        self._told_above.clear()
        self._habits.clear()

    @cached_property
    def _rules(self) -> "tuple[PlainRules, str] | None":
        """What never leaves, and where this folder is for those rules; None: there are none."""
        from codingagent.workspace.walk import rules_above

        return rules_above(self._original or self.root, LEAVE_FILE)

    def stays(self, path: str) -> bool:
        """Return whether a file is sent to no chat, by its path or by that of what it links to."""
        if self._rules is None:
            return False
        names = {path}
        with contextlib.suppress(OperationError):
            names.add(self.resolved(path))
        rules, here = self._rules
        return any(rules.decides(f"{here}{name}") for name in names)

    def check_leaves(self, path: str) -> None:
        """Refuse a file that is sent to no chat."""
        if self.stays(path):
            fact = f"File '{paths.shown(path)}' never leaves this machine: {LEAVE_FILE} names it"
            raise OperationError(fact, advice="; work without it")

    # --- files ---------------------------------------------------------------------------------
    def read(self, path: str, *, whole: bool = True, to_write: bool = False) -> Seen:
        """Return a regular file's bytes, following links that stay inside; else OperationError.

        Without `whole`, of a file that is too large its beginning. With `to_write`, check as
        `check_writable`.
        """
        with self._walk(path, writing=to_write) as place:
            found = dirfd.regular(place, path)
            if to_write:
                _check_replaceable(found, path)
            data, state = dirfd.read_regular(place, found, READ_LIMIT_BYTES)
        if whole and len(data) > READ_LIMIT_BYTES:
            told = f"File {{}} is larger than {READ_LIMIT_BYTES // 2**20} MiB"
            raise dirfd.refused(told, path, "; use RUN_COMMAND to look at parts of it")
        return Seen(data, state, stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid))

    def read_each(self, files: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the beginning of each regular file; those of one folder in a row are one walk."""
        for folder, group in itertools.groupby(files, lambda path: path.rpartition("/")[0]):
            with contextlib.suppress(OperationError), self._opened(folder or ".") as opened:
                place = dirfd.Position(opened)
                for path in group:
                    place.name = path.rpartition("/")[2]
                    with contextlib.suppress(OperationError, OSError):
                        found = opened.lstat(place.name)
                        is_short = opened.fd is None and "~" in place.name  # on Windows, maybe
                        if found is not None and (is_short or dirfd.is_link(found)):
                            yield path, self.read(path, whole=False).data
                        elif found is not None and stat.S_ISREG(found.st_mode):
                            yield path, dirfd.read_regular(place, found, READ_LIMIT_BYTES)[0]

    def text(self, path: str, data: bytes) -> encoding.FileText | None:
        """Return the text of a file with these bytes; None: it is no text."""
        if self._last[:2] != (path, data):
            charset = lambda: self._told(path, "charset")  # noqa: E731
            found = encoding.decode_file(data, charset, lambda: self._neighbours(path))
            self._last = path, data, found
        return self._last[2]

    def _neighbours(self, path: str) -> Iterator[bytes]:
        folder, ending = _folder(path), path.rpartition(".")[2]
        near = sorted(
            (_folder(each) != folder, each.rpartition(".")[2] != ending, each)
            for each, size in self.listing().files.items()
            if each != path and 0 < (size or 0) <= _NEIGHBOUR_BYTES
        )
        alike = [each for is_far, is_other, each in near if not (is_far and is_other)]
        yield from (data for _, data in self.read_each(alike[:_NEIGHBOURS]))

    def line_end(self, path: str) -> tuple[str, str]:
        """Return the line end that a new file should have, `lf` or `crlf`, and what says so; else empty.

        Of too few files of its ending in the nearest folder with any, only the source is returned.
        """
        for inner, data in self._above(path, ".gitattributes"):
            # The last line counts that names the attribute.
            for line in reversed(data.decode("utf-8", "replace").split("\n")):
                glob, *attributes = line.split() or [""]
                if _EOL.intersection(attributes) and any(paths.glob_matcher(g)(inner) for g in _globs(glob)):
                    end = next((each[4:] for each in attributes if each in _ENDS), "")
                    return end, ".gitattributes" if end else ""
        if (end := self._told(path, "end_of_line")) in ("lf", "crlf"):
            return end, ".editorconfig"
        folder, name = _folder(path), path.rpartition("/")[2]
        key = folder, name[name.rfind(".") :] if "." in name else "/"
        if key not in self._habits:
            self._habits[key] = self._habit(*key)
        return self._habits[key]

    def _habit(self, folder: str, ending: str) -> tuple[str, str]:
        """Return as `line_end` how the files of an ending are, in a folder or the nearest one above."""
        while not (like := [each for each in self.names(folder or ".") if each.endswith(ending)]) and folder:
            folder = _folder(folder)
        texts = self.read_each(f"{folder}/{each}".lstrip("/") for each in like[:_LIKE])
        ends = [data.count(b"\r\n") == data.count(b"\n") for _, data in texts if b"\n" in data]
        end = "crlf" if len(ends) >= _FEWEST_LIKE else ""
        return (end, f"other files of {ending}") if ends and all(ends) else ("", "")

    def _told(self, path: str, key: str) -> str:
        """Return what .editorconfig says of a file: the nearest one, its last section that fits."""
        for inner, data in self._above(path, ".editorconfig"):
            config = _parsed(data)
            told = [
                section[key].lower()
                for name, section in config.items()
                if key in section and any(paths.glob_matcher(g)(inner) for g in _globs(name))
            ]
            if told or config.get("/", "root", fallback="").lower() == "true":
                return told[-1] if told else ""
        return ""

    def _above(self, path: str, name: str) -> Iterator[tuple[str, bytes]]:
        """Yield the files of a name in the folders above a path, nearest first, and the path from there."""
        names = path.split("/")
        for at in range(min(len(names) - 1, _DEPTH), -1, -1):
            place = "/".join((*names[:at], name))
            if place not in self._told_above:
                self._told_above[place] = None
                with contextlib.suppress(OperationError):
                    self._told_above[place] = self.read(place).data
            if (data := self._told_above[place]) is not None:
                yield "/".join(names[at:]), data

    def history(self) -> "list[PastCommit]":
        """Return the latest commits of the repository around it; none without one, or without git."""
        from codingagent.workspace.git_files import history

        git = self._git()
        return [] if git is None else history(self.root, git)

    def addable(self, files: Collection[str]) -> set[str]:
        """Return those of some paths that `git add` takes; none without a repository, or without git."""
        from codingagent.workspace.git_files import addable

        # Also too many paths for one command line.
        with contextlib.suppress(WorkError):
            if files and (git := self._git()) is not None:
                return addable(self.root, git, files)
        return set()

    def check_writable(self, path: str) -> bool:
        """Return whether a file is here, if it may be created or replaced: before anything is journalled."""
        with contextlib.suppress(dirfd.NotFoundError), self._walk(path, writing=True) as place:
            if place.folder.lstat(place.name) is not None:
                _check_replaceable(dirfd.regular(place, path), path)
                return True
        return False

    def write(self, path: str, data: bytes, seen: Seen | None) -> None:
        """Write a file atomically, or leave everything unchanged; create missing folders.

        `seen` is the file as read before, None for a new one: if it differs now, nothing is written.
        """
        with self._walk(path, writing=True, create=True) as place:
            folder, temporary = place.folder, dirfd.temporary_name(place.name)
            try:
                if seen is None:
                    dirfd.write_new(folder, temporary, data, is_durable=False)
                else:
                    mode = seen.mode & 0o777
                    # Old content is about to be replaced; the new content must be on disk first.
                    dirfd.write_new(folder, temporary, data, mode, seen.owner, is_durable=True)
                _check_unchanged(place, path, seen)
                folder.rename(temporary, place.name)
            except BaseException:
                with contextlib.suppress(OSError):
                    folder.unlink(temporary)
                raise
            place.made.clear()
            # The open folder still receives writes wherever another process moved it.
            if not self._leads_to(place):
                if seen is None:
                    with contextlib.suppress(OSError):
                        place.folder.unlink(place.name)
                told = "{}: its folder was moved away while it was written"
                raise dirfd.refused(told, path, "; look where it is now")

    def check_deletable(self, path: str) -> None:
        """Check that a file or link may be deleted, before anything is journalled."""
        with self._walk(path, writing=True, follow_last=False) as place:
            _check_deletable(place, path)

    def delete(self, path: str) -> None:
        """Delete a regular file, or a link (never its target); OperationError for all else."""
        with self._walk(path, writing=True, follow_last=False) as place:
            _check_deletable(place, path)
            place.folder.unlink(place.name)

    def check_movable(self, path: str, to: str, *, overwrite: bool) -> tuple[dirfd.State, bool]:
        """Return a file's state, as in `Seen`, and whether another is replaced, if it may be moved."""
        with self._walk(path, writing=True, follow_last=False) as source:
            found, real = dirfd.regular(source, path), source.path
        try:
            with self._walk(to, writing=True, follow_last=False) as target:
                replaces = _check_target(found, real, target, to, overwrite=overwrite)
        except dirfd.NotFoundError:
            replaces = False
        return dirfd.state_of(found), replaces

    def move(self, path: str, to: str, state: dirfd.State, *, overwrite: bool) -> None:
        """Give a regular file another path, or leave all as it was; make missing folders.

        No link is followed at the end of either path. `state` is what `check_movable` found, and must hold.
        """
        with (
            self._walk(path, writing=True, follow_last=False) as source,
            self._walk(to, writing=True, follow_last=False, create=True) as target,
        ):
            found = dirfd.regular(source, path)
            if dirfd.state_of(found) != state:
                advice = ": read it and send the move again"
                raise dirfd.refused(f"{_CHANGED} moved", path, advice)
            replaces = _check_target(found, source.path, target, to, overwrite=overwrite)
            try:
                source.folder.move(source.name, target.folder, target.name, overwrite=replaces)
            except FileExistsError:
                raise _is_there(to) from None
            except OSError as fault:
                if fault.errno == errno.EXDEV:
                    both = f"'{paths.shown(to)}' is on another disk than '{paths.shown(path)}'"
                    raise OperationError(both, advice="; use mv in RUN_COMMAND") from fault
                raise OperationError(dirfd.reason_of(fault, path)) from fault
            target.made.clear()
            if not self._leads_to(target):
                with contextlib.suppress(OSError):
                    if not replaces:
                        target.folder.move(target.name, source.folder, source.name, overwrite=False)
                told = "{}: its folder was moved away meanwhile"
                raise dirfd.refused(told, to, "; look where it is now")

    def finish_move(self, path: str, to: str) -> bool:
        """Remove a file's old name where a kill left it both; return whether that was so."""
        with (
            self._walk(path, writing=True, follow_last=False) as source,
            self._walk(to, writing=True, follow_last=False) as target,
        ):
            old, new = source.folder.lstat(source.name), target.folder.lstat(target.name)
            if old and new and os.path.samestat(old, new) and old.st_nlink > 1:
                source.folder.unlink(source.name)
                return True
            return False

    def digest(self, path: str, *, follow_last: bool = True) -> str | None:
        """Return a digest of what exists at this path; None if nothing does; else as `resolved`.

        Beyond 64 MiB, the digest covers a file's beginning, size and modification time.
        """
        with contextlib.suppress(dirfd.NotFoundError), self._walk(path, follow_last=follow_last) as place:
            found = place.folder.lstat(place.name)
            if found is None:
                return None
            if dirfd.is_link(found):
                return f"link:{place.folder.readlink(place.name)}"
            if not stat.S_ISREG(found.st_mode):
                return "special"
            data, _ = dirfd.read_regular(place, found, _DIGEST_LIMIT_BYTES)
            is_cut = len(data) > _DIGEST_LIMIT_BYTES
            rest = f":{found.st_size}:{found.st_mtime_ns}" if is_cut else ""
            return digest_of(data) + rest
        return None

    def discard_temporary(self, path: str) -> None:
        """Remove the temporary file that a killed write of this path may have left."""
        with contextlib.suppress(dirfd.NotFoundError), self._walk(path, writing=True) as place:
            temporary = dirfd.temporary_name(place.name)
            if place.folder.lstat(temporary) is not None:
                place.folder.unlink(temporary)

    @contextlib.contextmanager
    def folder(self, path: str) -> Iterator[int | str]:
        """Yield a folder to run a command in: a handle, or its name on systems without handles."""
        with self._opened(path) as folder:
            yield folder.handle

    def names(self, folder: str = ".") -> list[str]:
        """Return the names in a folder, unsorted; none if it can't be read."""
        with contextlib.suppress(OSError, OperationError), self._opened(folder) as opened:
            return [dirfd.composed(entry.name) for entry in opened.entries()]
        return []

    def entries(self, path: str) -> tuple[FolderEntry, ...]:
        """Return a folder's entries by name, if not too many; a link that stays inside is its target."""
        with self._opened(path) as folder:
            try:
                found = folder.entries()
            except OSError as fault:
                raise OperationError(dirfd.reason_of(fault, path)) from fault
            if len(found) > _ENTRIES_LIMIT:
                many = f"holds {len(found)} entries, more than {_ENTRIES_LIMIT}"
                raise dirfd.refused(f"{{}} {many}", path)
            told = (self._entry(path, entry) for entry in found)
            return tuple(sorted(filter(None, told), key=lambda entry: entry.name))

    def _entry(self, folder: str, entry: "os.DirEntry[str]") -> FolderEntry | None:
        """Return one entry; None if it is the agent's own, or removed meanwhile."""
        name = dirfd.composed(entry.name)
        try:
            seen = dirfd.stat_of(entry)
            if dirfd.is_link(seen):
                # Its target is found by the walk, which does not leave the workspace.
                with self._walk(f"{folder}/{name}") as place:
                    seen = place.folder.lstat(place.name) or seen
        except (OSError, OperationError):
            # Removed meanwhile, or a link to nowhere or outside: only its existence is told.
            return FolderEntry(name, is_folder=False, size_bytes=0)
        if dirfd.file_id(seen) in self._hidden:
            return None
        size = seen.st_size if stat.S_ISREG(seen.st_mode) else 0
        return FolderEntry(name, stat.S_ISDIR(seen.st_mode), size)

    # --- listing -------------------------------------------------------------------------------
    def listing(self, always: frozenset[str] = frozenset(), known: "GitListing | None" = None) -> Listing:
        """Return all regular files but ignored ones, save `always`, and never `.git`."""
        # Imported late: most commands list nothing.
        from codingagent.workspace.walk import ListingWalk

        self._told_above.clear()
        walk = ListingWalk(self._hidden_paths, self._git)
        self._count_listed = lambda: walk.count
        walk.walk(self._folder, self.root, known)
        files = walk.files
        for path in (*walk.links, *sorted(always)):
            if any(map(paths.is_git_name, path.split("/"))) or files.get(path) is not None:
                continue
            with contextlib.suppress(OperationError), self._walk(path) as place:
                size = dirfd.regular(place, path).st_size
                # Only without a link in its path has the walk counted it.
                if path not in files and path in always and place.path == path:
                    walk.uncount(size)
                files[path] = size
        count = walk.count
        self._count_listed = lambda: count  # the walk itself takes memory
        return Listing(files, walk.ignored, tuple(walk.unread))

    def listed(self) -> int:
        """Return how many files the latest listing has found so far; another thread may ask."""
        return self._count_listed()


def _check_deletable(place: dirfd.Position, path: str) -> None:
    found = place.folder.lstat(place.name)
    if found is None or not dirfd.is_link(found):
        dirfd.regular(place, path)


def _check_target(
    found: os.stat_result, real: str, target: dirfd.Position, to: str, *, overwrite: bool
) -> bool:
    """Return whether a file is replaced by one that is moved; OperationError if it may not be."""
    there = target.folder.lstat(target.name)
    if there is None:
        return False
    if target.path == real:
        raise dirfd.refused("{} is where the file is already", to, "; name another path in to")
    if os.path.samestat(found, there):
        if there.st_nlink == 1:
            return True  # The same name in other letters, where the disk does not tell them apart.
        raise dirfd.refused("{} is the same file by another name", to, "; delete one of them")
    if not overwrite:
        raise _is_there(to)
    _check_replaceable(dirfd.regular(target, to), to)
    return True


def _is_there(path: str) -> OperationError:
    advice = '; name another path, or add overwrite="true"'
    return dirfd.refused("{} already exists", path, advice)


def _check_replaceable(found: os.stat_result, path: str) -> None:
    if not found.st_mode & 0o222:
        raise dirfd.refused("File {} is read-only", path, "; ask the user before changing it")


def _check_unchanged(place: dirfd.Position, path: str, seen: Seen | None) -> None:
    found = place.folder.lstat(place.name)
    if found is not None:
        _check_replaceable(dirfd.regular(place, path), path)
    if (None if found is None else dirfd.state_of(found)) != (None if seen is None else seen.state):
        raise dirfd.refused(f"{_CHANGED} written: read it and send the change again", path)


@lru_cache(8)  # asked for each edit
def _parsed(data: bytes) -> "ConfigParser":
    from configparser import ConfigParser, Error

    config = ConfigParser(None, strict=False, interpolation=None, delimiters=("=",))
    with contextlib.suppress(Error):
        config.read_string(f"[/]\n{data.decode('utf-8-sig', 'replace')}")
    return config


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _globs(section: str) -> list[str]:
    """Return the globs of a section's name: `*.{c,h}` is two, and one without a slash fits in any folder."""
    todo = [section]
    for glob in todo:
        if (braces := _BRACES.search(glob)) is not None and len(todo) < _GLOBS:
            head, tail = glob[: braces.start()], glob[braces.end() :]
            todo += [f"{head}{each}{tail}" for each in braces[1].split(",")]
    return [glob.removeprefix("/") if "/" in glob else f"**/{glob}" for glob in todo]
