"""Read the checkpoints of a store: how two differ, and what one does not cover."""

import contextlib
import itertools
import json
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct, convert, field, to_builtins

from codingagent.checkpoints.history import UNSEEN, Change, LeftOut, State, is_of_git, kind_of
from codingagent.checkpoints.repository import FILES, NOTES, Store, names_of, real, stored
from codingagent.model import encoding, patterns, plain_text
from codingagent.workspace.dirfd import composed, is_link
from codingagent.workspace.git_files import GitError

_COMMIT = patterns.lazy_pattern(r"[0-9a-f]{40}")
# Of how many checkpoints, and pairs of them, one process remembers what it read.
_REMEMBERED = 16
# How many uncovered files are examined after a command.
_LOOKS = 5_000
# How many files a diff or its counts show.
_SHOWN_FILES = 2_000
_DIFF_BYTES = 2_000_000
# Windows allows 32,767 characters in a command line.
_WORDS_LIMIT = 20_000


class Notes(Struct, frozen=True):
    """What a commit holds beside the files: permissions, and what was not covered."""

    usual: tuple[int, int] = (stat.S_IFREG | 0o644, stat.S_IFREG | 0o755)
    """The most common mode of a non-executable and of an executable file, in all of a store."""
    unusual: Mapping[str, State] = field(default_factory=dict)
    left: tuple[LeftOut, ...] = ()
    tracked: tuple[str, ...] = ()
    """Paths that are covered though `left` names them or a folder above: the workspace's repository
    tracks them, or operations were about to change them.
    """
    held: Mapping[str, int] = field(default_factory=dict)
    """Contents kept only because of operations, with their sizes, whose sum is limited."""

    def state(self, path: str, git_mode: int, blob: str) -> State | None:
        """Return what git tells of a path as a state; None: nothing is there."""
        if git_mode == 0 or stat.S_ISLNK(git_mode):
            return State(blob, git_mode) if git_mode else None
        odd = self.unusual.get(path)
        return State(blob, odd.mode if odd else self.usual[bool(git_mode & 0o100)])

    def left_out_of(self, names: Iterable[str]) -> set[str]:
        """Return those paths that are not covered, though something may have been there."""
        every = {left.path for left in self.left}
        unseen = {left.path for left in self.left if left.reason == UNSEEN}
        return {
            path
            for path in {*names}.difference(self.tracked)
            if not (unseen if is_of_git(path) else every).isdisjoint(with_folders(path))
        }

    def encoded(self) -> bytes:
        # msgspec writes no names that are not UTF-8; json escapes them.
        return json.dumps(to_builtins(self), separators=(",", ":"), sort_keys=True).encode()

    @classmethod
    def decoded(cls, data: bytes) -> "Notes":
        """Read notes; ValueError if they are damaged."""
        return convert(json.loads(data), cls)


def with_folders(path: str) -> Iterable[str]:
    """Yield a path, and each folder above it with its slash."""
    yield path
    while path := path.rpartition("/")[0]:
        yield path + "/"


class Reader:
    """Read and compare the checkpoints of a store. All raise WorkError if that is damaged or lacks one."""

    def __init__(self, store: Store, hidden_paths: Collection[str]) -> None:
        self._store, self._hidden_paths = store, hidden_paths
        # A checkpoint never changes: an undo of many turns asks for the same ones over and over.
        self._known: dict[str, Notes] = {}
        self._compared: dict[tuple[str, str], tuple[Change, ...]] = {}

    def left_out_of(self, commits: Iterable[str], paths: Collection[str]) -> set[str]:
        """Return the paths that one of some checkpoints does not cover, though something may be there."""
        found = (self._notes(commit).left_out_of(paths) for commit in commits if paths)
        return set[str]().union(*found)

    def left(self, *commits: str) -> set[str]:
        every = {left for commit in commits for left in self._notes(commit).left}
        return {each.path for each in every if not (each.is_ignored or is_of_git(each.path))}

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return how the files differ between two checkpoints, sorted by path."""
        if old == new:
            return ()
        if (old, new) not in self._compared:
            notes = self._notes(old, new), self._notes(new, old)
            words = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
            parts = names_of(self._store.git(*words, old, new, "--", FILES))
            found: dict[str, list[State | None]] = {}
            for head, name in zip(parts[::2], parts[1::2], strict=True):
                path, told = name.partition("/")[2], head[1:].split(" ")
                sides = zip(notes, told[:2], told[2:4], strict=True)
                found[path] = [each.state(path, int(mode, 8), blob) for each, mode, blob in sides]
            # Permissions that git's trees do not show.
            for path, odd in notes[0].unusual.items() ^ notes[1].unusual.items():
                if path not in found:
                    found[path] = [each.state(path, odd.git_mode, odd.blob) for each in notes]
            self._remember(old, new, {path: (was, now) for path, (was, now) in found.items()})
        return self._compared[old, new]

    def _remember(self, old: str, new: str, states: Mapping[str, tuple[State | None, State | None]]) -> None:
        """Remember how two checkpoints differ; `states` are what was at each path, and what is."""
        before, after = self._notes(old), self._notes(new)
        unknown = before.left_out_of(path for path, (was, _) in states.items() if was is None)
        unknown |= after.left_out_of(path for path, (_, now) in states.items() if now is None)
        if len(self._compared) >= _REMEMBERED:
            self._compared.clear()
        self._compared[old, new] = tuple(
            Change(path, "left_out" if path in unknown else kind_of(was, now), was, now)
            for path, (was, now) in sorted(states.items(), key=lambda each: os.fsencode(each[0]))
            if was != now
        )

    def are_alike(self, old: str, new: str) -> bool:
        """Return whether two checkpoints have the same files, and leave out the same, ignored ones aside."""
        both = (self._notes(old, new), self._notes(new, old))
        left, right = ({each for each in notes.left if not each.is_ignored} for notes in both)
        return left == right and not self.changes(old, new)

    def contents(self, ids: Iterable[str]) -> dict[str, bytes]:
        return dict(self._store.contents([*ids]))

    def diff(self, old: str, new: str, paths: Collection[str] = (), limit_bytes: int = _DIFF_BYTES) -> str:
        """Return a unified diff of two checkpoints, of `paths` if any; a last line counts what is beyond."""
        wanted = {*paths}
        differing = [each for each in self.changes(old, new) if not paths or each.path in wanted]
        parts, left = self._compared_by_git(old, new, differing, limit_bytes)
        texts: list[str] = []
        for each in (file for part in parts for file in re.split(rb"(?m)^(?=diff --git )", part)):
            if found := encoding.decode_file(each, neighbours=tuple):
                # Without the carriage returns that end all lines of a file.
                head, mark, hunks = found.text.partition("\n@@ ")
                texts.append(real(f"{head}{mark[:1]}{''.join(plain_text.uniform(mark[1:] + hunks))}"))
        if left:
            texts.append(f"({left} more files differ; too much to show at once)\n")
        return "".join(texts)

    def counts(self, old: str, new: str) -> dict[str, tuple[int, int]]:
        """Return how many lines were added and removed, by path; binary and huge files are left out."""
        words = ["-c", f"core.bigFileThreshold={_DIFF_BYTES}", "diff-tree", "-r", "-z", "--numstat"]
        words += ["--no-renames", "--no-ext-diff", "--no-textconv", f"--relative={FILES}"]
        counts: dict[str, tuple[int, int]] = {}
        for part in names_of(self._store.git(*words, "--ignore-submodules=all", old, new)):
            more, less, path = part.split("\t", 2)
            if more != "-":
                counts[path] = (int(more), int(less))
        return counts

    def _compared_by_git(
        self, old: str, new: str, changes: Collection[Change], limit_bytes: int
    ) -> tuple[list[bytes], int]:
        """Return git's diffs of the first changes within a limit, and how many others there are."""
        of = {each: [state.blob for state in (each.old, each.new) if state] for each in changes}
        sizes = self._store.sizes({blob for blobs in of.values() for blob in blobs})
        shown: list[str] = []
        for each, blobs in of.items():
            size = sum(sizes[blob] for blob in blobs)
            # Each costs git some work, even an empty one.
            if size <= limit_bytes and len(shown) < _SHOWN_FILES:
                limit_bytes -= size
                shown.append(f"{FILES}/{stored(each.path)}")
        words = ["-c", "core.quotePath=off", "diff", "--no-color", "--no-ext-diff", "--no-textconv"]
        words += ["--no-renames", f"--relative={FILES}", "--ignore-submodules=all", old, new, "--"]
        ends = itertools.accumulate(len(name) + 1 for name in shown)
        batches = itertools.groupby(zip(ends, shown, strict=True), lambda e: e[0] // _WORDS_LIMIT)
        parts = [self._store.git(*words, *(name for _, name in batch)) for _, batch in batches]
        return parts, len(changes) - len(shown)

    def changed_outside(self, old: str, new: str, since_ns: int, own: Collection[str]) -> tuple[LeftOut, ...]:
        """Return paths that neither checkpoint covers and that appeared, changed or vanished since a time.

        It compares the system's change times, which no program can set. In folders, a bounded
        number of files is examined. Paths that operations changed, `own`, are excluded.
        """
        before, after, root = self._notes(old), self._notes(new).left, self._store.root
        names = {each for path in own for each in with_folders(path)}
        apart = {each.rstrip("/") for each in names}
        looks = iter(range(_LOOKS))
        old_or_own = names | before.left_out_of(left.path for left in after)
        found = [
            left
            for left in after
            if left.path not in old_or_own or any(self._young(left.path, since_ns, looks, apart))
        ]
        known = names.union(left.path for left in after)
        gone = sorted({left.path for left in before.left} - known)
        found += [LeftOut(p, "it is gone") for p in gone if not os.path.lexists(root / p)]
        return tuple(found)

    def younger(self, since_ns: int) -> Iterator[LeftOut]:
        """Yield the files that changed since a time, covered or not, and all below a folder that did."""
        for path, is_folder in self._young("", since_ns, itertools.repeat(0), ("",)):
            if not is_folder and not self._is_hidden(path):
                yield LeftOut(path, "no checkpoint could be taken")

    def _young(
        self, top: str, since_ns: int, looks: Iterator[object], apart: Collection[str]
    ) -> Iterator[tuple[str, bool]]:
        """Yield what changed since a time, at a path and below, and whether it is a folder; follow no links.

        A file that came with its folder is as old as it was, so it counts as changed if its folder did.
        Paths in `apart` don't count; the content of folders in it does.
        """
        waiting = [(top.rstrip("/"), False)]
        while waiting and next(looks, None) is not None:
            path, is_young = waiting.pop()
            place = os.path.join(self._store.root, path)
            with contextlib.suppress(OSError):
                found = os.lstat(place)
                is_folder = stat.S_ISDIR(found.st_mode) and not is_link(found)
                is_young = is_young or max(found.st_ctime_ns, found.st_mtime_ns) >= since_ns
                is_young = is_young and path not in apart
                if is_young:
                    yield path, is_folder
                if is_folder:
                    with os.scandir(place) as entries:
                        lead = f"{path}/" if path else ""
                        waiting += [(lead + composed(each.name), is_young) for each in entries]

    def _is_hidden(self, path: str) -> bool:
        return any(f"{path}/".startswith(f"{hidden}/") for hidden in self._hidden_paths)

    def _notes(self, commit: str, *others: str) -> Notes:
        """Return the notes of a commit; read those of others with them."""
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        wanted = [each for each in {commit, *others} if each not in self._known]
        try:
            # Anything else could be an option, or a name that moves.
            ids = [f"{each}:{NOTES}" for each in wanted if _COMMIT.fullmatch(each)]
            for each, (_, data) in zip(wanted, self._store.contents(ids), strict=True):
                self._known[each] = Notes.decoded(data)
            return self._known[commit]
        except (GitError, ValueError, KeyError, TypeError) as fault:
            path = self._store.path
            raise GitError(f"the checkpoint {commit[:12]!a} can't be read from {path}") from fault

    def _is_readable(self, commit: str) -> bool:
        with contextlib.suppress(GitError):
            self._notes(commit)
            return bool(self._store.git("ls-tree", "-r", "--name-only", "-z", commit))
        return False
