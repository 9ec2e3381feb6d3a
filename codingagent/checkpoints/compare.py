"""Read the checkpoints of a store: how two differ, and what one does not cover."""

import contextlib
import itertools
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from msgspec.structs import replace

from codingagent.checkpoints.changed_paths import folders_above
from codingagent.checkpoints.file_changes import Change, LeftOut, State, kind_of
from codingagent.checkpoints.git_objects import Store
from codingagent.checkpoints.metadata import Covering, Notes
from codingagent.checkpoints.repository_files import real, stored
from codingagent.errors import WorkError
from codingagent.model.patterns import lazy_pattern
from codingagent.workspace.git_files import GitError, fields

# In a commit: the files, and the metadata that git's trees can't hold.
FILES = "files"
NOTES = "notes"

COMMIT = lazy_pattern(r"[0-9a-f]{40}")

# Of how many checkpoints, and pairs of them, one process remembers what it read.
_REMEMBERED = 16

# How many uncovered files are examined after a command.
_LOOKS = 5_000

# How many files a diff or its counts show.
_SHOWN_FILES = 2_000

# Windows allows 32,767 characters in a command line.
_WORDS_LIMIT = 20_000


class DamagedError(WorkError):
    """The store can't be used any more."""


class Reader:
    """Read and compare the checkpoints of a store.

    Args:
        store: the store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: tuple[str, Notes] | None = None
        # A checkpoint never changes: an undo of many turns asks for the same ones over and over.
        self._read_notes = lru_cache(_REMEMBERED)(self._read_notes_of)
        self._compared = lru_cache(_REMEMBERED)(self._compare)

    def _forget(self) -> None:
        self._known = None
        self._read_notes.cache_clear()
        self._compared.cache_clear()

    def leaves_out(self, commit: str, path: str) -> bool:
        """Return whether a checkpoint does not cover a path, though something may have been there.

        Raises:
            WorkError: if the checkpoint does not exist, or the store is damaged.
        """
        return Covering(self._notes(commit), is_doubtful=False).leaves_out(path)

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return how the files differ between two checkpoints, sorted by path.

        Raises:
            WorkError: if one does not exist, or the store is damaged.
        """
        return () if old == new else self._compared(old, new)

    def _compare(self, old: str, new: str) -> tuple[Change, ...]:
        old_notes, new_notes = self._notes(old), self._notes(new)
        words = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
        parts = fields(self._store.git(*words, old, new, "--", FILES).stdout)
        changes: dict[str, Change] = {}
        for head, name in zip(parts[::2], parts[1::2], strict=True):
            path = real(os.fsdecode(name.partition(b"/")[2]))
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
        words = ("ls-tree", "-r", "-z", "--full-tree", old, FILES)
        for line in fields(self._store.git(*words).stdout):
            head, _, name = line.partition(b"\t")
            path = real(os.fsdecode(name.partition(b"/")[2]))
            if path in differing or (before.usual != after.usual and path not in seen):
                git_mode, _, blob = head.decode().split(" ")
                first = _state(path, git_mode, blob, before)
                second = _state(path, git_mode, blob, after)
                if first != second:
                    yield Change(path, "mode", first, second)

    def contents(self, ids: Iterable[str]) -> dict[str, bytes]:
        """Return the content of files in checkpoints, by its id.

        Raises:
            WorkError: if it can't be read.
        """
        return dict(self._store.blobs(ids))

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
        wanted = frozenset(path.rstrip("/") for path in paths)
        differing = [
            change
            for change in self.changes(old, new)
            if not wanted or not wanted.isdisjoint(_with_folders(change.path))
        ]
        shown = self._shown(differing, limit_bytes)
        texts = [
            real(part.decode("utf-8", "replace")) for part in self._compared_by_git(old, new, shown)
        ]
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
            real(os.fsdecode(path)): (int(more), int(less))
            for more, less, path in told
            if more != b"-"
        }

    def _compared_by_git(
        self, old: str, new: str, shown: list[Change], *options: str
    ) -> Iterator[bytes]:
        words = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"]
        words += [f"--relative={FILES}", "--ignore-submodules=all", *options]
        for batch in batches(f"{FILES}/{stored(change.path)}" for change in shown):
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
            # Each costs git some work, even an empty one.
            if size <= left and len(shown) < _SHOWN_FILES:
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
        for batch in batches(f"{FILES}/{stored(path)}" for path in paths if path not in changed):
            listed = self._store.git("ls-tree", "-z", "--name-only", new, "--", *batch).stdout
            held.update(real(os.fsdecode(name.partition(b"/")[2])) for name in fields(listed))
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
        root = os.fspath(self._store.root)
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

    def _notes(self, commit: str) -> Notes:
        if self._known is not None and self._known[0] == commit:
            return self._known[1]
        return self._read_notes(commit)

    def _read_notes_of(self, commit: str) -> Notes:
        try:
            # Anything else could be an option, or a name that moves.
            ids = [f"{commit}:{NOTES}"] if COMMIT.fullmatch(commit) else []
            ((_, data),) = self._store.contents(ids)
            return Notes.decoded(data)
        except (GitError, ValueError, KeyError, TypeError) as fault:
            raise DamagedError(
                f"the checkpoint {commit[:12]!a} can't be read from {self._store.path}"
            ) from fault


def _rules_changed(paths: Iterable[str]) -> bool:
    return any(path.rpartition("/")[2] == ".gitignore" for path in paths)


def _state(path: str, git_mode: str, blob: str, notes: Notes) -> State | None:
    number = int(git_mode, 8)
    return State(blob, notes.mode(path, number)) if number else None


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


def _with_folders(path: str) -> Iterator[str]:
    """Yield a path and each folder above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def batches(words: Iterable[str]) -> Iterator[list[str]]:
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
