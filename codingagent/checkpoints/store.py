"""Take checkpoints of the workspace, whoever changed its files, and restore them.

git's metadata comparison finds the few files to read; this code reads them without following links,
and stores their content in a private git directory. A checkpoint covers what git would add: not
ignored files, `.git` or large files; nested repositories are covered too.
"""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from codingagent.checkpoints.changes import (
    IGNORED,
    UNSEEN,
    Checkpoint,
    LeftOut,
    Notes,
    Restored,
    left_out_by,
    most_common,
    with_folders,
)
from codingagent.checkpoints.compare import COMMIT, FILES, NOTES, DamagedError, Reader
from codingagent.checkpoints.history import Expected
from codingagent.checkpoints.repository import Import, Store, Stored
from codingagent.checkpoints.repository_files import (
    Holds,
    is_storable,
    makes_git_run,
    real,
    repository_files,
)
from codingagent.checkpoints.restore import Present, RestoreTarget, blob_id, restored
from codingagent.errors import OperationError, WorkError
from codingagent.model.observations import digest_of
from codingagent.policy.executed_names import EXECUTED_NAMES, TAKEN_IN
from codingagent.policy.rules import covering
from codingagent.workspace import git_files
from codingagent.workspace.dirfd import Folder, check_root, hidden_identities, open_root, walk_names
from codingagent.workspace.sharing import retried
from codingagent.workspace.walk import is_temporary

# Files that other programs execute are covered even if git ignores them.
_TAKEN_IN = (*TAKEN_IN, ".github")
_EXECUTED = tuple(EXECUTED_NAMES)


class Limits(Struct, frozen=True):
    """The limits of one checkpoint; the first of all may take in more files."""

    file_bytes: int = 5_000_000
    # All ignored or large content that is kept because operations change it.
    held_bytes: int = 100_000_000
    new_files: int = 50_000
    first_files: int = 500_000
    new_bytes: int = 10**9
    repositories: int = 500
    # A file changed this recently may change again with the same modification time.
    recent_ns: int = 2 * 10**9


class Site(Struct, frozen=True):
    """A workspace: its folder, with links resolved; folders in it that are not covered; what opens it."""

    root: Path
    hidden: tuple[Path, ...]
    open_folder: Callable[[Path], Folder] = open_root


class Checkpoints(Reader):
    """The checkpoints of one session, in a folder of their own that the first one creates."""

    def __init__(
        self, store: Path, site: Site, git: git_files.Git, limits: Limits | None = None
    ) -> None:
        super().__init__(Store(store.absolute(), site.root, git))
        self._site = site
        self._limits = limits or Limits()
        try:
            self._folder = site.open_folder(site.root)
        except OSError as fault:
            reason = fault.strerror or fault
            raise WorkError(
                f"the workspace {site.root} can't be opened: {reason}; put it back where it was"
            ) from fault
        self.files_read = 0  # by the checkpoint that is being taken
        self.listed: git_files.Belonging | None = (
            None  # at the latest checkpoint, if it asked for all
        )
        # Ignored folders that the latest checkpoint did not look through for repositories.
        self.unseen: list[str] = []
        self._indexed: tuple[str, frozenset[bytes]] = "", frozenset()  # a commit, and its paths
        self._hidden = (*site.hidden, self._store.path)
        self._hidden_paths = git_files.paths_below(site.root, self._hidden)

    def close(self) -> None:
        self._folder.close()

    # --- taking --------------------------------------------------------------------------------

    def take(self, *, with_ignored: bool = True, held: Collection[str] = ()) -> Checkpoint:
        """Checkpoint the files as they are now; set a damaged store aside and begin a new one.

        Args:
            with_ignored: list the ignored paths. Only a checkpoint that may be restored needs it:
                paths that it ignored are then left alone, though later ones may cover them.
            held: paths to cover even if ignored or large, up to a total limit.

        Raises:
            WorkError: if it can't be taken; earlier checkpoints are unchanged.
        """
        latest = self._store.latest
        try:
            return self._take(latest(), with_ignored=with_ignored, held=held)
        except DamagedError:
            aside = self._store.set_aside()
            self._known.clear()
            self._compared.cache_clear()
            again = self._take(latest(), with_ignored=with_ignored, held=held)
            return replace(again, set_aside=os.fspath(aside))

    def take_only(self, since: str, expected: Expected) -> Checkpoint:
        """Take a checkpoint like an earlier one, with the expected state of some paths.

        A path with none of its digests was changed by someone else meanwhile: it is `missed`. A kill may
        have left a later checkpoint that no record names.
        """
        return self._take(since, with_ignored=False, expected=expected, held=expected.keys())

    def _take(
        self,
        base: str,
        *,
        with_ignored: bool,
        expected: Expected | None = None,
        held: Collection[str] = (),
    ) -> Checkpoint:
        check_root(self._site.root, self._folder)
        store = self._store
        store.prepare()
        if base and not COMMIT.fullmatch(base):
            raise DamagedError(f"{store.path} is damaged: its branch names no commit")
        notes = self._notes(base) if base else Notes()
        taking = _Taking(notes, self._limits, frozenset(held), expected, Import(store))
        try:
            store.ready_index(base, FILES)
            self._list(taking, base, with_ignored=with_ignored)
            self._read(taking, is_first=not base)
            new_notes = self._noted(taking, with_ignored=with_ignored, is_first=not base)
            new = base
            if taking.changes or new_notes != notes or not base:
                new = taking.commit(base, new_notes)
        except git_files.GitError:
            # A damaged store, or a full disk?
            if base:
                try:
                    store.git("ls-tree", "-r", "--name-only", "-z", base)
                except git_files.GitError as fault:
                    raise DamagedError(str(fault)) from fault
            raise
        recent = taking.recent if taking.is_stale and expected is None else None
        if new != base or recent is not None:
            store.write_index(base, new, taking.changes, recent)
        if taking.changes.keys() <= self._covered(base):
            # Nothing was added, which could have displaced other paths of the index.
            gone = {path for path, what in taking.changes.items() if what is None}
            self._indexed = new, self._covered(base) - gone
        self._remember(new, new_notes)
        self.files_read = 0
        self.listed = taking.found if with_ignored else None
        return Checkpoint(new, new_notes.left, missed=tuple(taking.missed))

    def _list(self, taking: "_Taking", base: str, *, with_ignored: bool) -> None:
        """Find the paths to read: git compares metadata, and names the files that belong."""
        store, index = self._store, self._store.index(base)
        words = ("diff-files", "--raw", "-z", "--no-abbrev", "--ignore-submodules=all")
        found, changed, covered = git_files.together(
            None,
            # The request asks there, too.
            lambda: git_files.belonging(
                store.root, store.own_git, self._hidden_paths, self._limits.repositories
            ),
            lambda: store.git(*words, index=index),
            lambda: self._covered(base),
        )
        taking.found = found
        # Sets of all files would cost more than these passes.
        taken, taking.ignored = _taken_in(os.fspath(store.root), found.ignored)
        files = found.files + taken
        new = {path for path in files if path not in covered}
        odd = {path for path in new if not is_storable(path)}
        new -= odd
        of_git, self.unseen = set[bytes](), list[str]()
        if with_ignored:
            of_git, self.unseen = repository_files(os.fspath(store.root), found)
            new |= of_git - covered
        forced = frozenset(map(os.fsencode, taking.held)) - covered - new
        ignored = frozenset(taking.ignored)
        gone = covered.difference(files) if ignored else ()
        tracked = {
            path
            for path in {*gone, *of_git}
            if not ignored.isdisjoint(map(os.fsencode, with_folders(os.fsdecode(path))))
        }
        taking.forced, taking.new = forced, new | forced
        taking.tracked = sorted(tracked | (forced & ignored))
        parts = git_files.fields(changed.stdout)
        for head, path in zip(parts[::2], parts[1::2], strict=True):
            mode, _, blob, _, _ = head[1:].split(b" ")
            taking.known[path] = int(mode, 8), blob.decode()
        taking.left = [LeftOut(name, reason) for name, reason in found.unread]
        taking.left += [LeftOut(os.fsdecode(path), "its name can't be recorded") for path in odd]
        taking.restrict()

    def _covered(self, commit: str) -> frozenset[bytes]:
        if self._indexed[0] != commit:
            listed = self._store.git("ls-files", "-z", index=self._store.index(commit))
            self._indexed = commit, frozenset(git_files.fields(listed.stdout))
        return self._indexed[1]

    def _read(self, taking: "_Taking", *, is_first: bool) -> None:
        limit = self._limits.first_files if is_first else self._limits.new_files
        new = taking.bounded(limit)
        with contextlib.closing(self._ground()) as ground:
            # By folder, so that the walk stays where it is.
            paths = sorted({*new, *taking.known}, key=lambda path: path.rpartition(b"/"))
            for self.files_read, path in enumerate(paths, 1):
                if not self._is_hidden(real(os.fsdecode(path))):
                    taking.examine(path, ground)

    def _is_hidden(self, path: str) -> bool:
        return any(f"{path}/".startswith(f"{hidden}/") for hidden in self._hidden_paths)

    def _noted(self, taking: "_Taking", *, with_ignored: bool, is_first: bool) -> Notes:
        notes = taking.notes
        usual = most_common(taking.modes.values()) if is_first else notes.usual
        unusual = dict(notes.unusual)
        for path, mode in taking.modes.items():
            unusual.pop(path, None)
            if mode is not None and mode != usual[bool(mode & 0o100)]:
                unusual[path] = mode
        tracked = notes.tracked
        ignored = [left for left in notes.left if left.reason in (IGNORED, UNSEEN)]
        if with_ignored:
            names = sorted({*taking.ignored}.difference(taking.tracked))
            ignored = [
                LeftOut(path, UNSEEN if path in self.unseen else IGNORED)
                for path in map(os.fsdecode, names)
            ]
            tracked = tuple(real(os.fsdecode(name)) for name in taking.tracked)
        ignored = [left for left in ignored if not self._is_hidden(left.path)]
        others = sorted(taking.left, key=lambda left: left.path)
        new = Notes(usual, unusual, (*others, *ignored), tracked, taking.held_blobs)
        # Content that could not be held is left out by its own name; a path that was empty is known
        # to be.
        leaves_out, refused = left_out_by(new), {each.path for each in others}
        known = {path for path in taking.held - refused if leaves_out(path)}
        return replace(new, tracked=tuple(sorted({*tracked, *known} - refused)))

    def makes_git_run(self, path: str) -> bool:
        """Return whether a path is one by which a repository makes git run something."""
        return makes_git_run(path, Holds(os.fspath(self._site.root)))

    def younger(self, since_ns: int) -> Iterator[LeftOut]:
        """Yield the files that changed since a time, covered or not, and all below a folder that did."""
        root, young = os.fspath(self._site.root), set[str]()
        for folder, inner, names in walk_names(root):
            at = "" if folder == root else f"{folder[len(root) + 1 :]}/".replace(os.sep, "/")
            inner[:] = [name for name in inner if not self._is_hidden(at + name)]
            # A file that came with its folder is as old as it was.
            if at and (folder in young or _changed_ns(folder) >= since_ns):
                young.update(os.path.join(folder, name) for name in (*inner, *names))
            for path in (os.path.join(folder, name) for name in names):
                if path in young or _changed_ns(path) >= since_ns:
                    yield LeftOut(at + os.path.basename(path), "no checkpoint could be taken")

    # --- restoring -----------------------------------------------------------------------------

    def restore(self, target: str, now: str, paths: Collection[str]) -> Restored:
        """Restore paths to one checkpoint where they are as in another, which was taken just before.

        Nothing is lost: what `now` does not hold is never overwritten or removed. If it is killed
        and run again, with the same `now` or a new one, the result is the same.
        """
        wanted = set(paths)
        differing = [change for change in self.changes(target, now) if change.path in wanted]
        with contextlib.closing(self._ground()) as ground:
            done, left = restored(ground, differing, self._store.blobs, self._limits.held_bytes)
        for change in differing:
            folder = change.path.removesuffix("/config")
            if change.old is None and change.path in done and folder.rpartition("/")[2] == ".git":
                self._move_aside(self._site.root / folder)
        same = wanted - {change.path for change in differing}
        refused = {out.path for out in left}
        return Restored(tuple(sorted({*done, *same} - refused)), tuple(left))

    def _move_aside(self, git: Path) -> None:
        """Take a repository that was not there out of the workspace: no commit in it is lost."""
        place, number = self._store.path.parent, 1
        while os.path.lexists(aside := place / f"removed-{number}.git"):
            number += 1
        # On another disk the rest stays, which makes git run nothing.
        with contextlib.suppress(OSError):
            if git.is_dir() and git.resolve() == git:
                retried(lambda: os.rename(git, aside))

    def _ground(self) -> RestoreTarget:
        return RestoreTarget(self._folder, hidden_identities(self._hidden, self._folder))


def _changed_ns(path: str) -> int:
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        # On Windows the first one is when it was made.
        return max(found.st_ctime_ns, found.st_mtime_ns)
    return 0


class _Taking:
    """A checkpoint being taken, after one with these notes: what is to be read, and what was."""

    def __init__(
        self,
        notes: Notes,
        limits: Limits,
        held: frozenset[str],
        expected: Expected | None,
        stream: Import,
    ) -> None:
        self.notes, self.held, self.expected = notes, held, expected
        self._limits, self._stream = limits, stream
        self.known: dict[bytes, Stored] = {}
        """Covered paths whose metadata changed, with their old state."""
        self.new: set[bytes] = set()
        self.forced: frozenset[bytes] = frozenset()
        """Those of `held` that nothing else would cover."""
        self.found = git_files.Belonging()
        self.ignored: list[bytes] = []
        self.tracked: list[bytes] = []
        """Covered paths that are ignored now, by themselves or with a folder."""
        self.left: list[LeftOut] = []
        self.changes: dict[bytes, Stored | None] = {}
        self.modes: dict[str, int | None] = {}
        self.missed: list[str] = []
        self.held_blobs = dict(notes.held)
        self.recent: dict[bytes, Stored] = {}
        """Files that may change again without a difference in their metadata."""
        self.is_stale = False
        """The index lacks metadata of a file that is not recent."""
        self._new_bytes = 0

    def restrict(self) -> None:
        """Only expected paths are read; the rest stays as recorded before."""
        if self.expected is None:
            return
        # A tracked path that was gone may be there again.
        self.new.update(map(os.fsencode, self.expected.keys() & {*self.notes.tracked}))
        names = set(map(os.fsencode, self.expected))
        self.new &= names
        self.known = {path: what for path, what in self.known.items() if path in names}
        self.left = [
            left
            for left in self.notes.left
            if left.reason not in (IGNORED, UNSEEN) and left.path not in self.expected
        ]

    def bounded(self, limit: int) -> Iterable[bytes]:
        """Return new paths without the topmost folders that hold most, until they are within the limit."""
        by_folder: dict[bytes, list[bytes]] = {}
        for path in self.new - self.known.keys():
            folder, slash, _ = path.partition(b"/")
            by_folder.setdefault(folder + slash if slash else b"", []).append(path)
        count = sum(map(len, by_folder.values()))
        for folder, held in sorted(by_folder.items(), key=lambda item: -len(item[1])):
            if count > limit:
                reason = f"more than {limit} new files at once"
                names = [folder] if folder else held
                self.left += [LeftOut(os.fsdecode(name), reason) for name in names]
                # Not what other programs execute: it is never displaced by a crowd.
                kept = [path for path in held if covering(_EXECUTED, real(os.fsdecode(path)))]
                by_folder[folder] = kept
                count -= len(held) - len(kept)
        return [path for held in by_folder.values() for path in held]

    def examine(self, path: bytes, ground: RestoreTarget) -> None:
        """Read a path, and keep what differs."""
        shown, old = real(os.fsdecode(path)), self.known.get(path)
        if old is None and is_temporary(shown.rpartition("/")[2]):
            return
        limits, is_held = self._limits, shown in self.held
        look: Present | None = None
        try:
            look = ground.look(shown, limits.held_bytes if is_held else limits.file_bytes)
            if look is not None and old is None:
                self._check_room(look)
            if look is not None and is_held:
                self._check_held(path, look)
        except OperationError as obstacle:
            self.left.append(LeftOut(shown, obstacle.reason))
            look = None
        state = None if look is None else (_git_mode(look.mode), blob_id(look.data))
        if self.expected is not None:
            digest = None if look is None else digest_of(look.data)
            if digest not in self.expected[shown] and (look is None or state != old):
                self.missed.append(shown)
                return
        if look is None or state is None:
            if old is not None:
                self.changes[path] = self.modes[shown] = None
            return
        self.modes[shown] = None if look.mode == stat.S_IFLNK else look.mode & 0o6777
        if state != old:
            self.changes[path] = state
            if old is None or old[1] != state[1]:
                self._stream.blob(look.data)
        if max(look.found.st_ctime_ns, look.found.st_mtime_ns) > time.time_ns() - limits.recent_ns:
            self.recent[path] = state
        elif shown == os.fsdecode(path):
            self.is_stale = True

    def _check_room(self, look: Present) -> None:
        if self._new_bytes + len(look.data) > self._limits.new_bytes:
            size = self._limits.new_bytes / 10**9
            raise OperationError(f"more than {size:g} GB of new files at once")
        self._new_bytes += len(look.data)

    def _check_held(self, path: bytes, look: Present) -> None:
        """Count the content that is kept only because of operations."""
        size, blob = len(look.data), blob_id(look.data)
        if path not in self.forced and size <= self._limits.file_bytes:
            return
        others = sum(size for each, size in self.held_blobs.items() if each != blob)
        if others + size > self._limits.held_bytes:
            limit = self._limits.held_bytes // 10**6
            raise OperationError(f"more than {limit} MB of ignored or large files are kept already")
        self.held_blobs[blob] = size

    def commit(self, base: str, notes: Notes) -> str:
        text = notes.encoded()
        self._stream.blob(text)
        entries = {f"{FILES}/".encode() + path: what for path, what in self.changes.items()}
        return self._stream.commit(base, {**entries, NOTES.encode(): (0o100644, blob_id(text))})


def _taken_in(root: str, ignored: Iterable[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return those ignored files that are covered all the same, and what is ignored besides."""
    files: list[bytes] = []
    others: list[bytes] = []
    for name in ignored:
        if covering(_TAKEN_IN, path := os.fsdecode(name).rstrip("/")) is None:
            others.append(name)
        elif not name.endswith(b"/"):
            files.append(name)
        else:
            for folder, inner, names in walk_names(os.path.join(root, path)):
                inner[:] = [each for each in inner if each != ".git"]
                at = os.path.relpath(folder, root).replace(os.sep, "/")
                files += [os.fsencode(f"{at}/{each}") for each in names if each != ".git"]
    return files, others


def _git_mode(mode: int) -> int:
    if mode == stat.S_IFLNK:
        return mode
    return 0o100755 if mode & 0o100 else 0o100644
