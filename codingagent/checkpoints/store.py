"""Take checkpoints of the workspace, whoever changed its files, and restore them.

git's metadata comparison finds the few files to read; this code reads them without following links,
and stores their content in a private git directory. A checkpoint covers what git would add: not
ignored files, `.git` or large files; nested repositories are covered too.
"""

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from codingagent.checkpoints import history
from codingagent.checkpoints.compare import Notes, Reader, with_folders
from codingagent.checkpoints.history import Change, Checkpoint, LeftOut, State
from codingagent.checkpoints.repository import Import, Store, free_name, names_of
from codingagent.checkpoints.repository_files import is_of_git, is_storable, repository_files
from codingagent.checkpoints.restore import Present, RestoreTarget, obstacle
from codingagent.errors import OperationError, disk_errors
from codingagent.policy.presets import EXECUTED_NAMES, TAKEN_IN
from codingagent.policy.rules import covering
from codingagent.workspace import git_files
from codingagent.workspace.dirfd import Folder, check_root, hidden_identities, open_root, walk_names
from codingagent.workspace.git_repository import text_of
from codingagent.workspace.sharing import retried
from codingagent.workspace.walk import is_temporary

# Files that other programs execute are covered even if git ignores them.
_TAKEN_IN = (*TAKEN_IN, ".github")
_EXECUTED = tuple(EXECUTED_NAMES)
# What looking at a file costs beside reading it, in bytes.
_FILE_BYTES = 20_000


class Limits(Struct, frozen=True):
    """The limits of one checkpoint; the first of all may take in more files."""

    file_bytes: int = 5_000_000
    # All ignored or large content that is kept because operations change it.
    held_bytes: int = 100_000_000
    new_files: int = 50_000
    first_files: int = 500_000
    new_bytes: int = 10**9
    # A file changed this recently may change again with the same modification time.
    recent_ns: int = 2 * 10**9
    # So much may be read again each time before git is asked to note the metadata; a file counts as more.
    stale_bytes: int = 10**6


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
        self._hidden = (*site.hidden, store.absolute())
        hidden_paths = git_files.paths_below(site.root, self._hidden)
        super().__init__(Store(store.absolute(), site.root, git), hidden_paths)
        self._limits = limits or Limits()
        with disk_errors(f"put the workspace {site.root} back where it was: it can't be opened"):
            self._folder = site.open_folder(site.root)
        self._covered: tuple[str, frozenset[str]] = "", frozenset()  # a commit, and its paths
        self.files_read = 0  # by the checkpoint that is being taken

    def close(self) -> None:
        self._folder.close()

    # --- taking --------------------------------------------------------------------------------
    def take(self, held: Collection[str] = ()) -> Checkpoint:
        """Checkpoint the files as they are now; set a damaged store aside and begin a new one.

        `held` are paths to cover even if ignored or large, up to a total limit. WorkError if it can't be
        taken; earlier checkpoints are unchanged.
        """
        latest = self._store.latest()
        try:
            return self._take(latest, held)
        except git_files.GitError:
            # A damaged store, or a full disk?
            if not latest or self._is_readable(latest):
                raise
        aside = self._store.set_aside()
        return replace(self._take("", held), set_aside=os.fspath(aside))

    def _take(self, base: str, held: Collection[str]) -> Checkpoint:
        store = self._store
        check_root(store.root, self._folder)
        store.prepare()
        notes = self._notes(base) if base else Notes()
        taking = _Taking(notes, self._limits, {*held}, Import(store))
        store.ready_index(base)
        listed = self._list(taking, base)
        limit = self._limits.new_files if base else self._limits.first_files
        with contextlib.closing(self._ground()) as ground:
            names = {*taking.bounded(limit), *taking.known}
            # By folder, so that the walk stays where it is.
            by_folder = sorted(names, key=lambda path: path.rpartition("/"))
            for self.files_read, path in enumerate(by_folder, 1):
                if not self._is_hidden(path):
                    taking.examine(path, ground)
        new, new_notes = base, taking.noted(is_first=not base)
        if taking.changes or new_notes != notes or not base:
            new = taking.stream.commit(base, taking.changes, new_notes.encoded())
        recent = taking.recent if taking.stale_bytes > self._limits.stale_bytes else None
        if new != base or recent is not None:
            store.write_index(base, new, taking.changes, recent)
        if not any(state and state.is_link for state in taking.changes.values()):
            covered = self.covered(base)
            gone = {path for path, state in taking.changes.items() if state is None}
            if made := taking.changes.keys() - gone - covered:
                covered |= made
            self._covered = new, covered - gone if gone else covered
        self._known[new] = new_notes
        if base and new != base:
            states = {path: (taking.known.get(path), s) for path, s in taking.changes.items()}
            self._remember_changes(base, new, states)
        self.files_read = 0
        return Checkpoint(new, new_notes.left, listed=listed)

    def _list(self, taking: "_Taking", base: str) -> git_files.Belonging:
        """Find the paths to read: git compares metadata, and names the files that belong."""
        store, notes, root = self._store, taking.notes, os.fspath(self._store.root)
        words = ("diff-files", "--raw", "-z", "--no-abbrev", "--ignore-submodules=all")
        found: git_files.Belonging
        changed, covered, found = git_files.together(
            None,
            lambda: names_of(store.git(*words, index=store.index(base))) if base else [],
            lambda: self.covered(base),
            # The request asks there, too.
            lambda: git_files.belonging(store.root, store.own_git, self._hidden_paths),
        )
        for head, path in zip(changed[::2], changed[1::2], strict=True):
            mode, _, blob, *_ = head[1:].split(" ")
            state = notes.state(path, int(mode, 8), blob)
            if state is not None:
                taking.known[path] = state
        # Sets of all files would cost more than these passes.
        listed, ignored = (
            text_of(b"\0".join(names)).split("\0") if names else []
            for names in (found.files, found.ignored)
        )
        taken, ignored = _taken_in(root, ignored)
        files = listed + taken
        new = {path for path in files if path not in covered}
        odd = {path for path in new if not is_storable(path)}
        taking.new = taking.held - covered | new - odd
        taking.forced = taking.held - covered - new
        taking.left = [LeftOut(name, reason) for name, reason in found.unread]
        taking.left += [LeftOut(path, "its name can't be recorded") for path in odd]
        of_git, unseen = repository_files(root, found)
        taking.new |= of_git - covered
        without = {*ignored}
        gone = covered.difference(files) if ignored else set[str]()
        tracked = {path for path in gone | of_git if not without.isdisjoint(with_folders(path))}
        taking.tracked = tracked | without & taking.held
        taking.left += [
            LeftOut(path, history.UNSEEN if path in unseen else history.IGNORED)
            for path in without - taking.tracked
            if not self._is_hidden(path)
        ]
        return found

    def covered(self, commit: str) -> frozenset[str]:
        """Return the paths of all files of the latest checkpoint."""
        if self._covered[0] != commit:
            listed = self._store.git("ls-files", "-z", index=self._store.index(commit))
            self._covered = commit, frozenset(names_of(listed))
        return self._covered[1]

    # --- restoring -----------------------------------------------------------------------------
    def restore(self, target: str, now: str, paths: Collection[str]) -> list[LeftOut]:
        """Restore paths to one checkpoint where they are as in another, which was taken just before.

        Return those that were left alone. Nothing is lost: what `now` does not hold is never overwritten or
        removed. If it is killed and run again, with the same `now` or a new one, the result is the same.
        """
        wanted = {*paths}
        changes = [change for change in self.changes(target, now) if change.path in wanted]
        certain = [change for change in changes if change.kind != "left_out"]
        unknown = (change.path for change in changes if change.kind == "left_out")
        left = [LeftOut(path, history.NO_CHECKPOINT) for path in unknown]
        by_blob: dict[str, list[Change]] = {}
        for change in certain:
            if change.old is not None:
                by_blob.setdefault(change.old.blob, []).append(change)
        # Removals make room for additions; innermost first, so that folders become empty.
        made = [change for change in reversed(certain) if change.old is None]
        blobs = self._store.blobs(by_blob)
        additions = ((change, data) for blob, data in blobs for change in by_blob[blob])
        with contextlib.closing(self._ground()) as ground:
            for change, data in itertools.chain(((each, b"") for each in made), additions):
                try:
                    ground.settle(change, data, self._limits.held_bytes)
                except (OSError, OperationError) as fault:
                    left.append(LeftOut(change.path, obstacle(fault)))
        for path in {change.path for change in made}.difference(each.path for each in left):
            if f"/{path}".endswith("/.git/config"):
                self._move_aside((self._store.root / path).parent)
        return left

    def _move_aside(self, git: Path) -> None:
        """Take a repository that was not there out of the workspace: no commit in it is lost."""
        # On another disk the rest stays, which makes git run nothing.
        with contextlib.suppress(OSError):
            if git.is_dir() and git.resolve() == git:
                aside = free_name(self._store.path.parent, "removed-{}.git")
                retried(lambda: os.rename(git, aside))

    def _ground(self) -> RestoreTarget:
        return RestoreTarget(self._folder, hidden_identities(self._hidden, self._folder))


class _Taking(Struct):
    """A checkpoint being taken, after one with these notes: what is to be read, and what was."""

    notes: Notes
    limits: Limits
    held: set[str]
    stream: Import
    tracked: set[str] = field(default_factory=set)
    """Covered paths that are ignored now, by themselves or with a folder."""
    known: dict[str, State] = field(default_factory=dict)
    """Covered paths whose metadata changed, with their old state."""
    forced: set[str] = field(default_factory=set)
    """Those of `held` that nothing else would cover, as far as it was asked."""
    new: set[str] = field(default_factory=set)
    left: list[LeftOut] = field(default_factory=list)
    changes: dict[str, State | None] = field(default_factory=dict)
    recent: dict[str, State] = field(default_factory=dict)
    """Files that may change again without a difference in their metadata."""
    stale_bytes: int = 0
    """What was read though it is not recent: the index lacks the metadata."""
    new_bytes: int = 0
    held_blobs: dict[str, int] = field(default_factory=dict)

    def bounded(self, limit: int) -> Iterable[str]:
        """Return new paths without the topmost folders that hold most, until they are within the limit."""
        by_folder: dict[str, list[str]] = {}
        for path in self.new - self.known.keys():
            folder, slash, _ = path.partition("/")
            by_folder.setdefault(folder + slash if slash else "", []).append(path)
        count = sum(map(len, by_folder.values()))
        for folder, held in sorted(by_folder.items(), key=lambda item: -len(item[1])):
            if count > limit:
                reason = f"more than {limit} new files at once"
                self.left += [LeftOut(name, reason) for name in ([folder] if folder else held)]
                # Not what other programs execute: it is never displaced by a crowd.
                by_folder[folder] = [path for path in held if covering(_EXECUTED, path)]
                count -= len(held) - len(by_folder[folder])
        return itertools.chain.from_iterable(by_folder.values())

    def examine(self, path: str, ground: RestoreTarget) -> None:
        """Read a path, and keep what differs."""
        old = self.known.get(path)
        if old is None and is_temporary(path.rpartition("/")[2]):
            return
        limits = self.limits
        try:
            limit = limits.held_bytes if path in self.held else limits.file_bytes
            if (look := ground.look(path, limit)) is not None:
                self._check_room(path, look)
        except (OSError, OperationError) as fault:
            self.left.append(LeftOut(path, obstacle(fault)))
            look = None
        state = None if look is None else look.state
        if state != old:
            self.changes[path] = state
        if look is None or state is None:
            return
        if old is None or old.blob != state.blob:
            self.stream.blob(look.data)
        if look.changed_ns > time.time_ns() - limits.recent_ns:
            self.recent[path] = state
        elif not is_of_git(path):
            self.stale_bytes += len(look.data) + _FILE_BYTES

    def _check_room(self, path: str, look: Present) -> None:
        """Count new content, and content that is kept only because of operations."""
        size, limits = len(look.data), self.limits
        if path not in self.known:
            if self.new_bytes + size > limits.new_bytes:
                raise OperationError(
                    f"more than {limits.new_bytes / 10**9:g} GB of new files at once"
                )
            self.new_bytes += size
        if path in self.forced or size > limits.file_bytes:
            kept = {**self.notes.held, **self.held_blobs, look.state.blob: size}
            if sum(kept.values()) > limits.held_bytes:
                limit = f"{limits.held_bytes // 10**6} MB of ignored or large files"
                raise OperationError(f"more than {limit} are kept already")
            self.held_blobs[look.state.blob] = size

    def noted(self, *, is_first: bool) -> Notes:
        left = tuple(sorted(self.left, key=lambda each: (each.is_ignored, each.path)))
        held = {**self.notes.held, **self.held_blobs}
        notes = replace(
            self.notes.with_modes(self.changes, is_first=is_first), left=left, held=held
        )
        # Content that could not be held is left out by its own name; a path that was empty is known to be.
        refused = {each.path for each in left if not each.is_ignored}
        known = replace(notes, tracked=(*self.tracked,)).left_out_of(self.held - refused)
        return replace(notes, tracked=tuple(sorted({*self.tracked, *known} - refused)))


def _taken_in(root: str, ignored: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return those ignored files that are covered all the same, and what is ignored besides."""
    files: list[str] = []
    others: list[str] = []
    for name in ignored:
        if covering(_TAKEN_IN, name.rstrip("/")) is None:
            others.append(name)
        elif not name.endswith("/"):
            files.append(name)
        else:
            for folder, inner, names in walk_names(os.path.join(root, name.rstrip("/"))):
                inner[:] = [each for each in inner if each != ".git"]
                at = os.path.relpath(folder, root).replace(os.sep, "/")
                files += [f"{at}/{each}" for each in names if each != ".git"]
    return files, others
