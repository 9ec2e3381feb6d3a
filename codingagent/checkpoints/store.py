"""Take checkpoints of the workspace, whoever changed its files, and restore them.

git's metadata comparison finds the few files to read; this code reads them without following links,
and stores their content in a private git directory. A checkpoint covers what git would add: not
ignored files, `.git` or large files; nested repositories are covered too.
"""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from codingagent.checkpoints import git_index
from codingagent.checkpoints.changed_paths import ChangedPaths, Lister, bounded, only
from codingagent.checkpoints.compare import COMMIT, FILES, NOTES, DamagedError, Reader
from codingagent.checkpoints.file_changes import (
    NAMED_LIMIT,
    Checkpoint,
    LeftOut,
    Restored,
)
from codingagent.checkpoints.git_objects import Import, Store
from codingagent.checkpoints.metadata import IGNORED, UNSEEN, Covering, Notes, most_common
from codingagent.checkpoints.net_changes import Expected
from codingagent.checkpoints.repository_files import Holds, makes_git_run, real
from codingagent.checkpoints.restore import (
    Absent,
    ObstacleError,
    PresentFile,
    RestoreTarget,
    blob_id,
    restored,
)
from codingagent.errors import WorkError
from codingagent.model.observations import digest_of
from codingagent.workspace.dirfd import Folder, check_root, hidden_identities, open_root
from codingagent.workspace.git_files import Belonging, Git, GitError, fields
from codingagent.workspace.walk import is_temporary

# Ignored paths that are recorded individually; a wholly ignored folder counts as one.
_IGNORED_LIMIT = 20_000


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
    """A workspace.

    Args:
        root: its folder, with links resolved.
        hidden: folders that are not covered, though they may be inside.
        open_folder: opens the root.
    """

    root: Path
    hidden: tuple[Path, ...]
    open_folder: Callable[[Path], Folder] = open_root


class _Found(Struct):
    """The results of reading paths."""

    entries: dict[bytes, bytes | None] = field(default_factory=dict)
    """Entries for the index."""
    changes: dict[bytes, tuple[int, str] | None] = field(default_factory=dict)
    """Changes for the commit."""
    modes: dict[str, int | None] = field(default_factory=dict)
    left: list[LeftOut] = field(default_factory=list)
    expected: Expected | None = None
    """By path, the digests that it may have; None: keep every path as it is."""
    missed: list[str] = field(default_factory=list)
    is_settled: bool = True
    """The index need not be rewritten for metadata alone."""
    new_bytes: int = 0
    held: frozenset[str] = frozenset()
    """Paths to cover even if ignored or large."""
    forced: frozenset[bytes] = frozenset()
    """The ignored ones among them."""
    held_blobs: dict[str, int] = field(default_factory=dict)


class Checkpoints(Reader):
    """The checkpoints of one session.

    Args:
        store: a folder for checkpoints only, created at the first one.
        site: the workspace.
        git: the program and the function that runs it.
        limits: the limits of one checkpoint.

    Raises:
        WorkError: if the workspace can't be opened.
    """

    def __init__(self, store: Path, site: Site, git: Git, limits: Limits | None = None) -> None:
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
        self.listed: Belonging | None = None  # at the latest checkpoint, if it asked for all
        hidden = (*site.hidden, self._store.path)
        self._lister = Lister(self._store, hidden, self._limits.repositories)
        self._hidden = hidden

    def close(self) -> None:
        """Close the handle on the workspace."""
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
        check_root(self._site.root, self._folder)
        try:
            return self._take(with_ignored=with_ignored, held=held)
        except DamagedError:
            aside = self._store.set_aside()
            self._forget()
            again = self._take(with_ignored=with_ignored, held=held)
            return replace(again, set_aside=os.fspath(aside))

    def take_only(self, since: str, expected: Expected) -> Checkpoint:
        """Take a checkpoint like an earlier one, with the expected state of some paths.

        A path with none of its digests was changed by someone else meanwhile: it is `missed`.

        Args:
            since: the earlier checkpoint.
            expected: for each path the digests of what may be there; None for nothing.

        Raises:
            WorkError: as `take`.
        """
        check_root(self._site.root, self._folder)
        try:
            if self._store.latest() != since:
                # A kill may have come between this checkpoint and its journal record.
                self._notes(since)
                self._rebuild_index(since)
            return self._take(with_ignored=False, expected=expected, held=expected.keys())
        except DamagedError as fault:
            raise WorkError(str(fault)) from fault

    def _take(
        self,
        *,
        with_ignored: bool,
        expected: Expected | None = None,
        held: Collection[str] = (),
    ) -> Checkpoint:
        self._store.prepare()
        commit = self._latest()
        notes = self._notes(commit) if commit else Notes()
        try:
            listing = self._lister.listing(commit, with_ignored=with_ignored)
        except GitError:
            self._known = None  # the next check of the index is a thorough one
            raise
        forced = frozenset(map(os.fsencode, held)) - listing.covered - listing.new
        listing.new.update(forced)
        if with_ignored:
            listing.tracked += sorted(forced.intersection(listing.ignored))
        if expected is not None:
            # A tracked path that was gone may be there again.
            listing.new.update(map(os.fsencode, expected.keys() & {*notes.tracked}))
            listing = only(listing, notes, expected)
        stream = Import(self._store)
        try:
            found = _Found(
                left=listing.left,
                expected=expected,
                held=frozenset(held),
                forced=forced,
                held_blobs=dict(notes.held),
            )
            self._examine_all(listing, stream, found, is_first=not commit)
            new_notes = self._noted(found, listing, notes, with_ignored=with_ignored, commit=commit)
            new = commit
            if found.changes or new_notes != notes or not commit:
                new = self._commit(stream, commit, found, new_notes)
        except GitError:
            self._check_sound(commit)
            raise
        if new != commit or not found.is_settled:
            self._write_index(commit, new, found.entries)
        self._known = new, new_notes
        self.files_read = 0
        self.listed = listing.found if with_ignored else None
        left = new_notes.left
        return Checkpoint(new, left[:NAMED_LIMIT], len(left), missed=tuple(found.missed))

    def _latest(self) -> str:
        """Return the commit to continue from, with its index in place; "" if there is none."""
        commit = self._store.latest()
        if commit and not COMMIT.fullmatch(commit):
            raise DamagedError(f"{self._store.path} is damaged: its branch names no commit")
        # Only a machine crash damages it: one check at the start is enough.
        if commit and not (self._known and self._store.index(commit).exists()):
            self._mend_index(commit)
        return commit

    def _mend_index(self, commit: str) -> None:
        try:
            git_index.paths(self._store.index(commit).read_bytes())
        except (OSError, ValueError):
            self._rebuild_index(commit)

    def _rebuild_index(self, commit: str) -> None:
        """Rebuild a lost index; the next checkpoint reads every file, since no metadata is known."""
        entries: dict[bytes, bytes | None] = {}
        try:
            listed = self._store.git("ls-tree", "-r", "-z", "--full-tree", commit, FILES).stdout
        except GitError as fault:
            raise DamagedError(str(fault)) from fault
        for line in fields(listed):
            words, _, path = line.partition(b"\t")
            mode, _, blob = words.split(b" ")
            name = path.partition(b"/")[2]
            entries[name] = git_index.entry(name, int(mode, 8), blob.decode(), git_index.UNKNOWN)
        self._store.write_index(commit, git_index.merged(git_index.empty(), entries))

    def _check_sound(self, commit: str) -> None:
        """Distinguish a damaged store from a full disk after git has failed.

        Raises:
            DamagedError: if not all trees of the commit can be read.
        """
        if commit:
            try:
                self._store.git("ls-tree", "-r", "--name-only", "-z", commit)
            except GitError as fault:
                raise DamagedError(str(fault)) from fault

    def _write_index(self, commit: str, new: str, entries: Mapping[bytes, bytes | None]) -> None:
        path = self._store.index(commit)
        try:
            index = git_index.merged(path.read_bytes(), entries)
        except (OSError, ValueError) as fault:
            self._known = None  # the next check is a thorough one
            raise WorkError(f"{path} can't be read: {fault}; try again") from fault
        self._store.write_index(new, index)

    # --- reading -------------------------------------------------------------------------------

    def _examine_all(
        self, listing: ChangedPaths, stream: Import, found: _Found, *, is_first: bool
    ) -> None:
        limit = self._limits.first_files if is_first else self._limits.new_files
        new, left = bounded(listing.new - listing.known.keys(), limit)
        found.left += left
        with contextlib.closing(self._ground()) as ground:
            # By folder, so that the walk stays where it is.
            paths = sorted({*new, *listing.known}, key=lambda path: path.rpartition(b"/"))
            for self.files_read, path in enumerate(paths, 1):
                self._examine(path, listing.known.get(path), found, ground, stream)

    def _examine(
        self,
        path: bytes,
        old: tuple[int, str] | None,
        found: _Found,
        ground: RestoreTarget,
        stream: Import,
    ) -> None:
        shown = real(os.fsdecode(path))
        if self._lister.is_hidden(shown) or (old is None and is_temporary(_name(shown))):
            return
        try:
            limits, is_held = self._limits, shown in found.held
            look = ground.look(shown, limits.held_bytes if is_held else limits.file_bytes)
            if isinstance(look, PresentFile) and old is None:
                self._check_room(look, found)
            if isinstance(look, PresentFile) and is_held:
                self._check_held(path, look, found)
        except ObstacleError as obstacle:
            found.left.append(LeftOut(shown, obstacle.reason))
            look = Absent()
        if found.expected is not None and not _is_expected(look, found.expected[shown], old):
            found.missed.append(shown)
            return
        if isinstance(look, Absent):
            if old is not None:
                found.entries[path] = found.changes[path] = None
                found.modes[shown] = None
                found.is_settled = False
            return
        blob = blob_id(look.data)
        git_mode = _git_mode(look.mode)
        metadata = _metadata(look.found, self._limits.recent_ns)
        found.entries[path] = git_index.entry(path, git_mode, blob, metadata)
        found.modes[shown] = None if look.mode == stat.S_IFLNK else look.mode & 0o6777
        if old != (git_mode, blob):
            found.changes[path] = git_mode, blob
            if old is None or old[1] != blob:
                stream.blob(look.data)
        if old is None or old != (git_mode, blob) or metadata is not git_index.UNKNOWN:
            found.is_settled = False

    def _check_room(self, look: PresentFile, found: _Found) -> None:
        if found.new_bytes + len(look.data) > self._limits.new_bytes:
            size = self._limits.new_bytes / 10**9
            raise ObstacleError(f"more than {size:g} GB of new files at once")
        found.new_bytes += len(look.data)

    def _check_held(self, path: bytes, look: PresentFile, found: _Found) -> None:
        """Count the content that is kept only because of operations."""
        size, blob = len(look.data), blob_id(look.data)
        if path not in found.forced and size <= self._limits.file_bytes:
            return
        others = sum(size for each, size in found.held_blobs.items() if each != blob)
        if others + size > self._limits.held_bytes:
            limit = self._limits.held_bytes // 10**6
            raise ObstacleError(f"more than {limit} MB of ignored or large files are kept already")
        found.held_blobs[blob] = size

    def _noted(
        self, found: _Found, listing: ChangedPaths, notes: Notes, *, with_ignored: bool, commit: str
    ) -> Notes:
        """Return the metadata of the next commit."""
        usual = notes.usual if commit else most_common(found.modes.values())
        unusual = dict(notes.unusual)
        for path, mode in found.modes.items():
            if mode is None or mode == usual[bool(mode & 0o100)]:
                unusual.pop(path, None)
            else:
                unusual[path] = mode
        if with_ignored:
            names = sorted({*listing.ignored}.difference(listing.tracked))
            ignored = [
                LeftOut(path, UNSEEN if path in self.unseen else IGNORED)
                for path in map(os.fsdecode, names)
            ]
            is_partial = len(ignored) > _IGNORED_LIMIT
            names = listing.tracked[:_IGNORED_LIMIT]
            tracked = tuple(sorted(real(os.fsdecode(name)) for name in names))
        else:
            ignored = [left for left in notes.left if left.reason in (IGNORED, UNSEEN)]
            is_partial, tracked = notes.is_partial, notes.tracked
        ignored = [left for left in ignored if not self._lister.is_hidden(left.path)]
        others = sorted(found.left, key=lambda left: left.path)
        left = (*others, *ignored[:_IGNORED_LIMIT])
        new = Notes(usual, unusual, left, is_partial, tracked, found.held_blobs)
        # Content that could not be held is left out by its own name; a path that was empty is known
        # to be.
        covering, refused = Covering(new, is_doubtful=False), {each.path for each in others}
        known = {path for path in found.held - refused if covering.leaves_out(path)}
        return replace(new, tracked=tuple(sorted({*tracked, *known} - refused)))

    @staticmethod
    def _commit(stream: Import, parent: str, found: _Found, notes: Notes) -> str:
        entries = {f"{FILES}/".encode() + path: what for path, what in found.changes.items()}
        text = notes.encoded()
        stream.blob(text)
        entries[NOTES.encode()] = 0o100644, blob_id(text)
        return stream.commit(parent, entries)

    @property
    def unseen(self) -> list[str]:
        """The ignored folders that the latest checkpoint did not look through for repositories."""
        return self._lister.unseen

    def makes_git_run(self, path: str) -> bool:
        """Return whether a path is one by which a repository makes git run something."""
        return makes_git_run(path, Holds(os.fspath(self._site.root)))

    # --- restoring -----------------------------------------------------------------------------

    def restore(self, target: str, now: str, paths: Collection[str]) -> Restored:
        """Restore paths to one checkpoint where they are as in another.

        Nothing is lost: what `now` does not hold is never overwritten or removed. If it is killed
        and run again, with the same `now` or a new one, the result is the same.

        Args:
            target: the checkpoint to go back to.
            now: a checkpoint taken just before.
            paths: the paths to restore.

        Raises:
            WorkError: if a checkpoint does not exist, or the store is damaged.
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
                os.rename(git, aside)

    def _ground(self) -> RestoreTarget:
        return RestoreTarget(self._folder, hidden_identities(self._hidden, self._folder))


def _is_expected(
    look: Absent | PresentFile, digests: frozenset[str | None], old: tuple[int, str] | None
) -> bool:
    if isinstance(look, Absent):
        return None in digests
    is_as_before = old == (_git_mode(look.mode), blob_id(look.data))
    return is_as_before or digest_of(look.data) in digests


def _git_mode(mode: int) -> int:
    if mode == stat.S_IFLNK:
        return mode
    return 0o100755 if mode & 0o100 else 0o100644


def _metadata(found: os.stat_result, recent_ns: int) -> git_index.IndexStat:
    if max(found.st_ctime_ns, found.st_mtime_ns) > time.time_ns() - recent_ns:
        return git_index.UNKNOWN
    return git_index.IndexStat(
        found.st_ctime_ns,
        found.st_mtime_ns,
        found.st_dev,
        found.st_ino,
        found.st_uid,
        found.st_gid,
        found.st_size,
    )


def _name(path: str) -> str:
    return path.rpartition("/")[2]
