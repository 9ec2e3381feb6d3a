"""Read the checkpoints of a store: how two differ, and what one does not cover."""

import contextlib
import itertools
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from codingagent.checkpoints.changes import (
    Change,
    LeftOut,
    Notes,
    State,
    kind_of,
    left_out_by,
    with_folders,
)
from codingagent.checkpoints.repository import Store
from codingagent.checkpoints.repository_files import real, stored
from codingagent.errors import WorkError
from codingagent.model.encoding import decode_file
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
    """Read and compare the checkpoints of a store. All raise WorkError if that is damaged or lacks one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # A checkpoint never changes: an undo of many turns asks for the same ones over and over.
        self._known: dict[str, Notes] = {}
        self._compared = lru_cache(_REMEMBERED)(self._compare)

    def leaves_out(self, commit: str, path: str) -> bool:
        """Return whether a checkpoint does not cover a path, though something may have been there."""
        return left_out_by(self._notes(commit))(path)

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return how the files differ between two checkpoints, sorted by path."""
        return () if old == new else self._compared(old, new)

    def _compare(self, old: str, new: str) -> tuple[Change, ...]:
        before, after = self._notes(old), self._notes(new)
        words = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
        parts = fields(self._store.git(*words, old, new, "--", FILES).stdout)
        states: dict[str, tuple[State | None, State | None]] = {}
        for head, name in zip(parts[::2], parts[1::2], strict=True):
            path = _path(name)
            old_mode, new_mode, old_blob, new_blob, _ = head[1:].decode().split(" ")
            states[path] = (
                before.state(path, int(old_mode, 8), old_blob),
                after.state(path, int(new_mode, 8), new_blob),
            )
        # Permissions that git's trees do not show.
        differing = dict(before.unusual.items() ^ after.unusual.items()).keys() - states.keys()
        listed = self._listed(old, differing)
        for path, (mode, blob) in listed.items():
            states[path] = before.state(path, mode, blob), after.state(path, mode, blob)
        left_by_old, left_by_new = left_out_by(before), left_out_by(after)
        changes: list[Change] = []
        for path in sorted(states, key=os.fsencode):
            first, second = states[path]
            if first != second:
                unknown = (first is None and left_by_old(path)) or (
                    second is None and left_by_new(path)
                )
                kind = "left_out" if unknown else kind_of(first, second)
                changes.append(Change(path, kind, first, second))
        return tuple(changes)

    def _listed(self, commit: str, paths: Iterable[str]) -> dict[str, tuple[int, str]]:
        """Return git's mode and id of those paths that a checkpoint holds."""
        found: dict[str, tuple[int, str]] = {}
        for batch in _batches(paths):
            for line in fields(self._store.git("ls-tree", "-z", commit, "--", *batch).stdout):
                head, _, name = line.partition(b"\t")
                mode, kind, blob = head.decode().split(" ")
                if kind == "blob":
                    found[_path(name)] = int(mode, 8), blob
        return found

    def contents(self, ids: Iterable[str]) -> dict[str, bytes]:
        """Return the content of files in checkpoints, by its id."""
        return dict(self._store.blobs(ids))

    def diff(
        self, old: str, new: str, paths: Collection[str] = (), limit_bytes: int = 2_000_000
    ) -> str:
        """Return a unified diff of content from an older to a newer checkpoint; binary files are only named.

        `paths` are the only files and folders; all if empty. Content of `limit_bytes` is compared; a last
        line counts the other files.
        """
        wanted = frozenset(path.rstrip("/") for path in paths)
        differing = [
            change
            for change in self.changes(old, new)
            if not wanted
            or not wanted.isdisjoint(each.rstrip("/") for each in with_folders(change.path))
        ]
        shown = self._shown(differing, limit_bytes)
        parts = self._compared_by_git(old, new, shown)
        files = (file for part in parts for file in re.split(rb"(?m)^(?=diff --git )", part))
        texts = [
            real(found.text) for each in files if (found := decode_file(each, neighbours=tuple))
        ]
        if rest := len(differing) - len(shown):
            texts.append(f"({rest} more files differ; too much to show at once)\n")
        return "".join(texts)

    def counts(
        self, old: str, new: str, limit_bytes: int = 2_000_000
    ) -> dict[str, tuple[int, int]]:
        """Return how many lines were added and removed, by path; binary files are left out."""
        shown = self._shown(self.changes(old, new), limit_bytes)
        parts = self._compared_by_git(old, new, shown, "--numstat", "-z")
        told = [line.split(b"\t", 2) for part in parts for line in fields(part)]
        return {
            real(os.fsdecode(path)): (int(more), int(less))
            for more, less, path in told
            if more != b"-"
        }

    def _compared_by_git(
        self, old: str, new: str, shown: list[str], *options: str
    ) -> Iterator[bytes]:
        words = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"]
        words += [f"--relative={FILES}", "--ignore-submodules=all", *options]
        for batch in _batches(shown):
            yield self._store.git(*words, old, new, "--", *batch).stdout

    def _shown(self, changes: Collection[Change], limit_bytes: int) -> list[str]:
        """Return the paths whose content is compared."""
        sizes = self._store.sizes(
            {state.blob for change in changes for state in (change.old, change.new) if state}
        )
        shown: list[str] = []
        left = limit_bytes
        for change in changes:
            size = sum(sizes[state.blob] for state in (change.old, change.new) if state)
            # Each costs git some work, even an empty one.
            if size <= left and len(shown) < _SHOWN_FILES:
                left -= size
                shown.append(change.path)
        return shown

    def covers(self, old: str, new: str, paths: Collection[str]) -> frozenset[str]:
        """Return the paths whose change between two checkpoints can be undone."""
        if not paths:
            return frozenset()
        changed = {change.path: change for change in self.changes(old, new)}
        held = {path for path in paths if path in changed and changed[path].kind != "left_out"}
        # The others are in both, or in none.
        return frozenset(held.union(self._listed(new, set(paths) - changed.keys())))

    def changed_outside(
        self, old: str, new: str, since_ns: int, own: Collection[str]
    ) -> tuple[LeftOut, ...]:
        """Return paths that neither checkpoint covers and that appeared, changed or vanished since a time.

        It compares the system's change times, which no program can set. In folders, a bounded
        number of files is examined. Paths that operations changed, `own`, are excluded.
        """
        before = {left.path for left in self._notes(old).left}
        left_by_old = left_out_by(self._notes(old))
        names = {each for path in own for each in with_folders(path)}
        after = {left.path: left for left in self._notes(new).left}
        root = os.fspath(self._store.root)
        looks = iter(range(_LOOKS))
        apart = {os.path.join(root, name.rstrip("/")) for name in names}
        found = [
            left
            for path, left in after.items()
            if (path not in names and not left_by_old(path))
            or _is_younger(os.path.join(root, path), since_ns, looks, apart)
        ]
        gone = [
            LeftOut(path, "it is gone")
            for path in sorted(before - after.keys() - names)
            if not os.path.lexists(os.path.join(root, path.rstrip("/")))
        ]
        return (*found, *gone)

    def _notes(self, commit: str) -> Notes:
        if commit in self._known:
            return self._known[commit]
        try:
            # Anything else could be an option, or a name that moves.
            ids = [f"{commit}:{NOTES}"] if COMMIT.fullmatch(commit) else []
            ((_, data),) = self._store.contents(ids)
            return self._remember(commit, Notes.decoded(data))
        except (GitError, ValueError, KeyError, TypeError) as fault:
            raise DamagedError(
                f"the checkpoint {commit[:12]!a} can't be read from {self._store.path}"
            ) from fault

    def _remember(self, commit: str, notes: Notes) -> Notes:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[commit] = notes
        return notes


def _path(name: bytes) -> str:
    """Return the path in the workspace of a name in a commit."""
    return real(os.fsdecode(name.partition(b"/")[2]))


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


def _batches(paths: Iterable[str]) -> Iterator[list[str]]:
    """Yield the names of paths in a commit, as many at once as fit on a command line."""
    batch: list[str] = []
    left = _WORDS_LIMIT
    for path in paths:
        word = f"{FILES}/{stored(path)}"
        if batch and len(word) > left:
            yield batch
            batch, left = [], _WORDS_LIMIT
        batch.append(word)
        left -= len(word) + 1
    if batch:
        yield batch
