"""Take, compare and restore checkpoints of the workspace, whoever changed its files.

git's metadata comparison finds the few files to read; this code reads them without following links,
and stores their content in a private git directory. A checkpoint covers what git would add: not
ignored files, `.git` or large files; nested repositories are covered too.

Over 500 lines: taking, comparing and restoring share one view of what a checkpoint holds.
"""

import contextlib
import hashlib
import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from codingagent.checkpoints import git_index
from codingagent.checkpoints.changed_paths import ChangedPaths, Lister, folders_above
from codingagent.checkpoints.file_changes import (
    NAMED_LIMIT,
    Change,
    Checkpoint,
    LeftOut,
    Restored,
    State,
    kind_of,
)
from codingagent.checkpoints.fingerprint import Survey, survey
from codingagent.checkpoints.git_objects import Import, Store
from codingagent.checkpoints.metadata import IGNORED, Covering, Notes, most_common
from codingagent.checkpoints.net_changes import Expected
from codingagent.checkpoints.restore import Absent, ObstacleError, PresentFile, RestoreTarget
from codingagent.errors import WorkError
from codingagent.model.observations import digest_of
from codingagent.workspace.dirfd import Folder, check_root, hidden_identities, open_root
from codingagent.workspace.git_files import Git, GitError, fields
from codingagent.workspace.walk import is_temporary

# In a commit: the files, and the metadata that git's trees can't hold.
_FILES = "files"
_NOTES = "notes"

# Ignored paths that are recorded individually; a wholly ignored folder counts as one.
_IGNORED_LIMIT = 20_000

_ID = re.compile(r"[0-9a-f]{40}")

# Of how many checkpoints, and pairs of them, one process remembers what it read.
_REMEMBERED = 16

# How many uncovered files are examined after a command.
_LOOKS = 5_000

# Windows allows 32,767 characters in a command line.
_WORDS_LIMIT = 20_000


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


class _DamagedError(WorkError):
    """The store can't be used any more."""


class Checkpoints:
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
        self._store = Store(store.absolute(), site.root, git)
        self._site = site
        self._limits = limits or Limits()
        try:
            self._folder = site.open_folder(site.root)
        except OSError as fault:
            reason = fault.strerror or fault
            raise WorkError(
                f"the workspace {site.root} can't be opened: {reason}; put it back where it was"
            ) from fault
        self._known: tuple[str, Notes] | None = None
        self._ignored: frozenset[str] = frozenset()
        self._standing: tuple[Checkpoint, Survey] | None = None
        # A checkpoint never changes: an undo of many turns asks for the same ones over and over.
        self._read_notes = lru_cache(_REMEMBERED)(self._read_notes_of)
        self._compared = lru_cache(_REMEMBERED)(self._compare)
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
        self._check_root()
        if (standing := self._still_standing()) is not None and self._covers(standing.id, held):
            return standing
        try:
            return self._take(with_ignored=with_ignored, held=held)
        except _DamagedError:
            aside = self._store.set_aside()
            self._known = None
            self._read_notes.cache_clear()
            self._compared.cache_clear()
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
        self._check_root()
        try:
            if self._store.latest() != since:
                # A kill may have come between this checkpoint and its journal record.
                self._notes(since)
                self._rebuild_index(since)
            return self._take(with_ignored=False, expected=expected, held=expected.keys())
        except _DamagedError as fault:
            raise WorkError(str(fault)) from fault

    def prepare(self, compared: str) -> bool:
        """Take a checkpoint ahead of time: `take` returns it while nothing has changed since.

        Return whether that is certain. Right after a change, another change might not show: then
        prepare again a little later.

        Args:
            compared: a checkpoint that it will be compared with, or "".

        Raises:
            WorkError: as `take`.
        """
        first = self._survey()
        if self._standing is not None and self._standing[1].digest == first.digest:
            return True
        self._standing = None
        taken = self.take()
        # The ignored paths may be known only now; then the next fingerprint is the first.
        if self._survey().digest != first.digest or not first.is_sure:
            return False
        self._standing = replace(taken, set_aside=""), first
        if compared not in ("", taken.id):
            self.changes(compared, taken.id)
        return True

    def _survey(self) -> Survey:
        hidden = {f"{path}/" for path in self._lister.hidden_paths}
        return survey(os.fspath(self._site.root), self._ignored | hidden)

    def _still_standing(self) -> Checkpoint | None:
        """Return the prepared checkpoint if the files have not changed since."""
        if self._standing is None:
            return None
        taken, then = self._standing
        if self._store.index(taken.id).exists() and self._survey().digest == then.digest:
            return taken
        self._standing = None
        return None

    def _check_root(self) -> None:
        check_root(self._site.root, self._folder)

    def leaves_out(self, commit: str, path: str) -> bool:
        """Return whether a checkpoint does not cover a path, though something may have been there.

        Raises:
            WorkError: if the checkpoint does not exist, or the store is damaged.
        """
        return Covering(self._notes(commit), is_doubtful=False).leaves_out(path)

    def _covers(self, commit: str, held: Collection[str]) -> bool:
        """Return whether a checkpoint of the current files covers all of these paths."""
        covering = Covering(self._notes(commit), is_doubtful=False)
        return not any(
            covering.leaves_out(os.fsdecode(path))
            or os.path.lexists(self._site.root / os.fsdecode(path))
            for path in self._unlisted(commit, held)
        )

    def _unlisted(self, commit: str, held: Collection[str]) -> frozenset[bytes]:
        """Return the paths that are missing in a checkpoint's index."""
        listed: set[bytes] = set()
        for batch in _batches(held):
            done = self._store.git("ls-files", "-z", "--", *batch, index=self._store.index(commit))
            listed.update(fields(done.stdout))
        return frozenset(map(os.fsencode, held)) - listed

    def _take(
        self,
        *,
        with_ignored: bool,
        expected: Expected | None = None,
        held: Collection[str] = (),
    ) -> Checkpoint:
        self._standing = None
        self._store.prepare()
        commit = self._latest()
        notes = self._notes(commit) if commit else Notes()
        listing = self._lister.listing(commit, with_ignored=with_ignored)
        forced = frozenset(map(os.fsencode, held)) - listing.covered - listing.new
        listing.new.update(forced)
        if with_ignored:
            listing.tracked += sorted(forced.intersection(listing.ignored))
            above = {path for name in listing.tracked for path in folders_above(name)}
            self._ignored = frozenset(map(os.fsdecode, {*listing.ignored} - above))
        if expected is not None:
            # A tracked path that was gone may be there again.
            listing.new.update(map(os.fsencode, expected.keys() & {*notes.tracked}))
            listing = _only(listing, notes, expected)
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
        left = new_notes.left
        return Checkpoint(new, left[:NAMED_LIMIT], len(left), missed=tuple(found.missed))

    def _latest(self) -> str:
        """Return the commit to continue from, with its index in place; "" if there is none."""
        commit = self._store.latest()
        if commit and not _ID.fullmatch(commit):
            raise _DamagedError(f"{self._store.path} is damaged: its branch names no commit")
        # Only a machine crash damages it: one check at the start is enough.
        if commit and not (self._known and self._store.index(commit).exists()):
            self._mend_index(commit)
        return commit

    def _mend_index(self, commit: str) -> None:
        try:
            is_whole = git_index.is_whole(self._store.index(commit).read_bytes())
        except OSError:
            is_whole = False
        if not is_whole:
            self._rebuild_index(commit)

    def _rebuild_index(self, commit: str) -> None:
        """Rebuild a lost index; the next checkpoint reads every file, since no metadata is known."""
        entries: dict[bytes, bytes | None] = {}
        try:
            listed = self._store.git("ls-tree", "-r", "-z", "--full-tree", commit, _FILES).stdout
        except GitError as fault:
            raise _DamagedError(str(fault)) from fault
        for line in fields(listed):
            words, _, path = line.partition(b"\t")
            mode, _, blob = words.split(b" ")
            name = path.partition(b"/")[2]
            entries[name] = git_index.entry(name, int(mode, 8), blob.decode(), git_index.UNKNOWN)
        self._store.write_index(commit, git_index.merged(git_index.empty(), entries))

    def _check_sound(self, commit: str) -> None:
        """Distinguish a damaged store from a full disk after git has failed.

        Raises:
            _DamagedError: if not all trees of the commit can be read.
        """
        if commit:
            try:
                self._store.git("ls-tree", "-r", "--name-only", "-z", commit)
            except GitError as fault:
                raise _DamagedError(str(fault)) from fault

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
        new, left = _bounded(listing.new - listing.known.keys(), limit)
        found.left += left
        with contextlib.closing(self._ground()) as ground:
            # By folder, so that the walk stays where it is.
            for path in sorted({*new, *listing.known}, key=lambda path: path.rpartition(b"/")):
                self._examine(path, listing.known.get(path), found, ground, stream)

    def _examine(
        self,
        path: bytes,
        old: tuple[int, str] | None,
        found: _Found,
        ground: RestoreTarget,
        stream: Import,
    ) -> None:
        shown = os.fsdecode(path)
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
        blob = _blob_id(look.data)
        git_mode = _git_mode(look.mode)
        metadata = _metadata(look.found, self._limits.recent_ns)
        found.entries[path] = git_index.entry(path, git_mode, blob, metadata)
        found.modes[shown] = None if look.mode == stat.S_IFLNK else look.mode & 0o777
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
        size, blob = len(look.data), _blob_id(look.data)
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
            ignored = [LeftOut(os.fsdecode(path), IGNORED) for path in names]
            is_partial = len(ignored) > _IGNORED_LIMIT
            tracked = tuple(sorted(map(os.fsdecode, listing.tracked[:_IGNORED_LIMIT])))
        else:
            ignored = [left for left in notes.left if left.reason == IGNORED]
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
        entries = {f"{_FILES}/".encode() + path: what for path, what in found.changes.items()}
        text = notes.encoded()
        stream.blob(text)
        entries[_NOTES.encode()] = 0o100644, _blob_id(text)
        return stream.commit(parent, entries)

    # --- comparing -----------------------------------------------------------------------------

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return how the files differ between two checkpoints, sorted by path.

        Raises:
            WorkError: if one does not exist, or the store is damaged.
        """
        return () if old == new else self._compared(old, new)

    def _compare(self, old: str, new: str) -> tuple[Change, ...]:
        old_notes, new_notes = self._notes(old), self._notes(new)
        words = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
        parts = fields(self._store.git(*words, old, new, "--", _FILES).stdout)
        changes: dict[str, Change] = {}
        for head, name in zip(parts[::2], parts[1::2], strict=True):
            path = os.fsdecode(name.partition(b"/")[2])
            old_mode, new_mode, old_blob, new_blob, _ = head[1:].decode().split(" ")
            before = _state(path, old_mode, old_blob, old_notes)
            after = _state(path, new_mode, new_blob, new_notes)
            if before != after:
                changes[path] = Change(path, kind_of(before, after), before, after)
        for change in self._mode_changes(old, (old_notes, new_notes), changes.keys()):
            changes[change.path] = change
        left_by_old = Covering(old_notes, is_doubtful=_rules_changed(changes))
        left_by_new = Covering(new_notes, is_doubtful=False)
        for path, change in changes.items():
            unknown = (change.old is None and left_by_old.leaves_out(path)) or (
                change.new is None and left_by_new.leaves_out(path)
            )
            if unknown:
                changes[path] = replace(change, kind="left_out")
        return tuple(changes[path] for path in sorted(changes, key=os.fsencode))

    def _mode_changes(
        self, old: str, notes: tuple[Notes, Notes], seen: Collection[str]
    ) -> Iterable[Change]:
        """Yield the permission changes that git's trees do not show."""
        before, after = notes
        differing = {
            path
            for path in before.unusual.keys() | after.unusual.keys()
            if path not in seen and before.unusual.get(path) != after.unusual.get(path)
        }
        if not differing and before.usual == after.usual:
            return
        words = ("ls-tree", "-r", "-z", "--full-tree", old, _FILES)
        for line in fields(self._store.git(*words).stdout):
            head, _, name = line.partition(b"\t")
            path = os.fsdecode(name.partition(b"/")[2])
            if path in differing or (before.usual != after.usual and path not in seen):
                git_mode, _, blob = head.decode().split(" ")
                first = _state(path, git_mode, blob, before)
                second = _state(path, git_mode, blob, after)
                if first != second:
                    yield Change(path, "mode", first, second)

    def diff(
        self, old: str, new: str, paths: Collection[str] = (), limit_bytes: int = 2_000_000
    ) -> str:
        """Return a unified diff of content; binary files are only named.

        Args:
            old: the older checkpoint.
            new: the newer one.
            paths: only these; all if empty.
            limit_bytes: how much content is compared; a last line counts the other files.

        Raises:
            WorkError: if a checkpoint does not exist, or the store is damaged.
        """
        differing = [
            change
            for change in self.changes(old, new)
            if not paths or change.path in paths or change.path.startswith(_folders(paths))
        ]
        shown = self._shown(differing, limit_bytes)
        texts = [part.decode("utf-8", "replace") for part in self._compared_by_git(old, new, shown)]
        if rest := len(differing) - len(shown):
            texts.append(f"({rest} more files differ; too much to show at once)\n")
        return "".join(texts)

    def counts(
        self, old: str, new: str, limit_bytes: int = 2_000_000
    ) -> dict[str, tuple[int, int]]:
        """Return how many lines were added and removed, by path; binary files are left out.

        Arguments and errors are as for `diff`.
        """
        shown = self._shown(list(self.changes(old, new)), limit_bytes)
        parts = self._compared_by_git(old, new, shown, "--numstat", "-z")
        told = [line.split(b"\t", 2) for part in parts for line in fields(part)]
        return {
            os.fsdecode(path): (int(more), int(less)) for more, less, path in told if more != b"-"
        }

    def _compared_by_git(
        self, old: str, new: str, shown: list[Change], *options: str
    ) -> Iterator[bytes]:
        words = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"]
        words += [f"--relative={_FILES}", "--ignore-submodules=all", *options]
        for batch in _batches(f"{_FILES}/{change.path}" for change in shown):
            yield self._store.git(*words, old, new, "--", *batch).stdout

    def _shown(self, changes: list[Change], limit_bytes: int) -> list[Change]:
        states = [
            state for change in changes for state in (change.old, change.new) if state is not None
        ]
        sizes = dict(self._store.sizes({state.blob for state in states}))
        shown: list[Change] = []
        left = limit_bytes
        for change in changes:
            both = (change.old, change.new)
            size = sum(sizes[state.blob] for state in both if state is not None)
            if size <= left:
                left -= size
                shown.append(change)
        return shown

    def covers(self, old: str, new: str, paths: Collection[str]) -> frozenset[str]:
        """Return the paths whose change between two checkpoints can be undone.

        Raises:
            WorkError: if a checkpoint does not exist, or the store is damaged.
        """
        changed = {change.path: change for change in self.changes(old, new)}
        held = {path for path in paths if path in changed and changed[path].kind != "left_out"}
        # The others are in both, or in none.
        for batch in _batches(f"{_FILES}/{path}" for path in paths if path not in changed):
            listed = self._store.git("ls-tree", "-z", "--name-only", new, "--", *batch).stdout
            held.update(os.fsdecode(name.partition(b"/")[2]) for name in fields(listed))
        return frozenset(held)

    def changed_outside(
        self, old: str, new: str, since_ns: int, own: Collection[str]
    ) -> tuple[LeftOut, ...]:
        """Return paths that neither checkpoint covers and that appeared, changed or vanished since a time.

        It compares the system's change times, which no program can set. In folders, a bounded
        number of files is examined. Paths that operations changed, `own`, are excluded.

        Raises:
            WorkError: if a checkpoint does not exist, or the store is damaged.
        """
        before = {left.path for left in self._notes(old).left}
        covering = Covering(self._notes(old), is_doubtful=False)
        names = {*own, *(os.fsdecode(f) for path in own for f in folders_above(os.fsencode(path)))}
        after = {left.path: left for left in self._notes(new).left}
        root = os.fspath(self._site.root)
        looks = iter(range(_LOOKS))
        apart = {os.path.join(root, name.rstrip("/")) for name in names}
        found = [
            left
            for path, left in after.items()
            if (path not in names and not covering.leaves_out(path))
            or _is_younger(os.path.join(root, path), since_ns, looks, apart)
        ]
        gone = [
            LeftOut(path, "it is gone")
            for path in sorted(before - after.keys() - names)
            if not os.path.lexists(os.path.join(root, path.rstrip("/")))
        ]
        return (*found, *gone)

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
        done: list[str] = []
        left: list[LeftOut] = []
        with contextlib.closing(self._ground()) as ground:
            putting = _Putting(ground, self._limits.held_bytes, done, left)
            certain: list[Change] = []
            for change in differing:
                if change.kind == "left_out":
                    left.append(LeftOut(change.path, "one of the checkpoints did not cover it"))
                else:
                    certain.append(change)
            # Removals make room for additions; innermost first, so that folders become empty.
            for change in reversed(certain):
                if change.old is None:
                    putting.remove(change)
            self._put_all([change for change in certain if change.old is not None], putting)
        refused = {out.path for out in left}
        same = wanted - {change.path for change in differing}
        return Restored(tuple(sorted({*done, *same} - refused)), tuple(left))

    def _put_all(self, changes: list[Change], putting: "_Putting") -> None:
        """Write content, read in batches; several paths may share one blob."""
        by_blob: dict[str, list[Change]] = {}
        for change in changes:
            assert change.old is not None
            by_blob.setdefault(change.old.blob, []).append(change)
        for blob, data in self._store.blobs(by_blob):
            for change in by_blob[blob]:
                putting.put(change, data)

    # --- shared helpers ------------------------------------------------------------------------

    def _notes(self, commit: str) -> Notes:
        if self._known is not None and self._known[0] == commit:
            return self._known[1]
        return self._read_notes(commit)

    def _read_notes_of(self, commit: str) -> Notes:
        try:
            # Anything else could be an option, or a name that moves.
            ids = [f"{commit}:{_NOTES}"] if _ID.fullmatch(commit) else []
            ((_, data),) = self._store.contents(ids)
            return Notes.decoded(data)
        except (GitError, ValueError, KeyError, TypeError) as fault:
            raise _DamagedError(
                f"the checkpoint {commit[:12]!a} can't be read from {self._store.path}"
            ) from fault

    def _ground(self) -> RestoreTarget:
        return RestoreTarget(self._folder, hidden_identities(self._hidden, self._folder))


class _Putting(Struct, frozen=True):
    """Restore one path after the other, and record the results."""

    ground: RestoreTarget
    limit_bytes: int
    done: list[str]
    left: list[LeftOut]

    def remove(self, change: Change) -> None:
        with self._noting(change.path):
            if not self._is_done(change):
                self.ground.remove(change.path)

    def put(self, change: Change, data: bytes) -> None:
        assert change.old is not None
        with self._noting(change.path):
            if self._is_done(change):
                return

            self.ground.put(change.path, change.old, data, lambda: self._is_done(change))

    @contextlib.contextmanager
    def _noting(self, path: str) -> Iterator[None]:
        try:
            yield
        except ObstacleError as obstacle:
            self.left.append(LeftOut(path, obstacle.reason))
        else:
            self.done.append(path)

    def _is_done(self, change: Change) -> bool:
        """Return whether the path is already as it should be.

        Raises:
            ObstacleError: if its state is one that no checkpoint has.
        """
        look = self.ground.look(change.path, self.limit_bytes)
        if _fits(look, change.old):
            return True
        if not _fits(look, change.new):
            raise ObstacleError("it was changed after the latest checkpoint, or is not covered")
        return False


def _only(listing: ChangedPaths, notes: Notes, expected: Expected) -> ChangedPaths:
    """Restrict a listing to the expected paths; the rest stays as recorded before."""
    names = set(map(os.fsencode, expected))
    return ChangedPaths(
        {path: what for path, what in listing.known.items() if path in names},
        listing.new & names,
        [left for left in notes.left if left.reason != IGNORED and left.path not in expected],
    )


def _is_expected(
    look: Absent | PresentFile, digests: frozenset[str | None], old: tuple[int, str] | None
) -> bool:
    if isinstance(look, Absent):
        return None in digests
    is_as_before = old == (_git_mode(look.mode), _blob_id(look.data))
    return is_as_before or digest_of(look.data) in digests


def _rules_changed(paths: Iterable[str]) -> bool:
    return any(_name(path) == ".gitignore" for path in paths)


def _state(path: str, git_mode: str, blob: str, notes: Notes) -> State | None:
    number = int(git_mode, 8)
    return State(blob, notes.mode(path, number)) if number else None


def _fits(look: Absent | PresentFile, state: State | None) -> bool:
    if isinstance(look, Absent) or state is None:
        return isinstance(look, Absent) and state is None
    return look.mode == state.mode and _blob_id(look.data) == state.blob


def _blob_id(data: bytes) -> str:
    # git identifies content by SHA-1; it is no security measure here.
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


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


def _bounded(new: Iterable[bytes], limit: int) -> tuple[list[bytes], list[LeftOut]]:
    """Drop the topmost folders with the most new files until the rest is within the limit."""
    by_folder: dict[bytes, list[bytes]] = {}
    for path in new:
        folder, slash, _ = path.partition(b"/")
        by_folder.setdefault(folder + slash if slash else b"", []).append(path)
    count = sum(map(len, by_folder.values()))
    left: list[LeftOut] = []
    for folder, held in sorted(by_folder.items(), key=lambda item: -len(item[1])):
        if count <= limit:
            break
        reason = f"more than {limit} new files at once"
        names = [folder] if folder else held
        left += [LeftOut(os.fsdecode(name), reason) for name in names]
        count -= len(by_folder.pop(folder))
    return [path for held in by_folder.values() for path in held], left


def _is_younger(path: str, since_ns: int, looks: Iterator[int], apart: Collection[str]) -> bool:
    """Return whether a file, or anything in a folder, changed since a time, without following links.

    Paths in `apart` don't count; the content of folders in it does.
    """
    waiting = [path.rstrip("/")]
    while waiting and next(looks, None) is not None:
        name = waiting.pop()
        with contextlib.suppress(OSError):
            found = os.lstat(name)
            if name not in apart and max(found.st_ctime_ns, found.st_mtime_ns) >= since_ns:
                return True
            if stat.S_ISDIR(found.st_mode):
                with os.scandir(name) as entries:
                    waiting += [entry.path for entry in itertools.islice(entries, _LOOKS)]
    return False


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _folders(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{path.rstrip('/')}/" for path in paths)


def _batches(words: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    left = _WORDS_LIMIT
    for word in words:
        if batch and len(word) > left:
            yield batch
            batch, left = [], _WORDS_LIMIT
        batch.append(word)
        left -= len(word) + 1
    if batch:
        yield batch
