"""List the paths that a checkpoint must read: git compares metadata, and names the files that belong."""

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct, field

from codingagent.checkpoints import repository_files
from codingagent.checkpoints.file_changes import LeftOut
from codingagent.checkpoints.git_objects import Store
from codingagent.checkpoints.metadata import IGNORED, UNSEEN, Notes
from codingagent.checkpoints.net_changes import Expected
from codingagent.policy.executed_names import TAKEN_IN
from codingagent.policy.rules import covering
from codingagent.workspace.git_files import (
    Belonging,
    TakenIn,
    belonging,
    fields,
    paths_below,
    together,
)

# Files that other programs execute are covered even if git ignores them; the last rule of a command
# line wins.
_PROTECTED = tuple(f"--exclude=!{name}{inside}" for name in TAKEN_IN for inside in ("", "/**"))
# Within a folder that is excluded itself nothing can be taken back in.
_GITHUB = "**/.github"
_TAKEN_IN = TakenIn(
    (f"--exclude=!{_GITHUB}", *_PROTECTED),
    lambda path: covering((*TAKEN_IN, _GITHUB), path) is not None,
)


class ChangedPaths(Struct):
    """The paths to read, as git names them."""

    known: dict[bytes, tuple[int, str]] = field(default_factory=dict)
    """Covered paths whose metadata changed, with their old state."""
    new: set[bytes] = field(default_factory=set)
    left: list[LeftOut] = field(default_factory=list)
    ignored: list[bytes] = field(default_factory=list)
    tracked: list[bytes] = field(default_factory=list)
    """Covered paths that are ignored now, by themselves or with a folder."""
    covered: frozenset[bytes] = frozenset()
    """All paths of the commit that it was compared with."""
    found: Belonging = field(default_factory=Belonging)
    """What git said, as a whole."""


class Lister:
    """List the paths of a workspace.

    Args:
        store: runs git.
        hidden: folders that are never listed, though they may be inside.
        repositories: how many nested repositories are listed at once.
    """

    def __init__(self, store: Store, hidden: Iterable[Path], repositories: int) -> None:
        self._store = store
        self.hidden_paths = paths_below(store.root, hidden)
        self._repositories = repositories
        self.unseen: list[str] = []
        """Ignored folders that were not looked through for repositories."""

    def is_hidden(self, path: str) -> bool:
        return any(f"{path}/".startswith(f"{hidden}/") for hidden in self.hidden_paths)

    def listing(self, commit: str, *, with_ignored: bool) -> ChangedPaths:
        index = self._store.index(commit)
        words = ("diff-files", "--raw", "-z", "--no-abbrev", "--ignore-submodules=all")
        found, changed = together(
            None,
            lambda: self._belonging(with_ignored=with_ignored),
            lambda: self._store.git(*words, index=index),
        )
        parts = fields(changed.stdout)
        covered = self._store.indexed(commit)
        # Sets of all files would cost more than these passes.
        new = {path for path in found.files if path not in covered}
        ignored = frozenset(found.ignored)
        odd = {path for path in new if not repository_files.is_storable(path)}
        new -= odd
        of_git, unseen = set[bytes](), list[str]()
        if with_ignored:
            of_git, unseen = repository_files.repository_files(os.fspath(self._store.root), found)
            new |= of_git - covered
        gone = covered.difference(found.files) if ignored else ()
        listing = ChangedPaths(new=new, covered=covered, ignored=[*found.ignored], found=found)
        for head, path in zip(parts[::2], parts[1::2], strict=True):
            words_ = head[1:].split(b" ")
            listing.known[path] = int(words_[0], 8), words_[2].decode()
        listing.left = [LeftOut(name, reason) for name, reason in found.unread]
        listing.left += [LeftOut(os.fsdecode(path), "its name can't be recorded") for path in odd]
        self.unseen = unseen
        listing.tracked = sorted(
            path for path in {*gone, *of_git} if not ignored.isdisjoint(folders_above(path))
        )
        return listing

    def _belonging(self, *, with_ignored: bool) -> Belonging:
        """Ask where the request asks too; only protected files are taken in besides."""
        return belonging(
            self._store.root,
            self._store.own_git,
            self.hidden_paths,
            _TAKEN_IN,
            with_ignored=with_ignored,
            repositories=self._repositories,
        )


def folders_above(path: bytes) -> Iterable[bytes]:
    """Yield a path, and each folder above it with its slash."""
    yield path
    while path := path.rpartition(b"/")[0]:
        yield path + b"/"


def only(listing: ChangedPaths, notes: Notes, expected: Expected) -> ChangedPaths:
    """Restrict a listing to the expected paths; the rest stays as recorded before."""
    names = set(map(os.fsencode, expected))
    return ChangedPaths(
        {path: what for path, what in listing.known.items() if path in names},
        listing.new & names,
        [
            left
            for left in notes.left
            if left.reason not in (IGNORED, UNSEEN) and left.path not in expected
        ],
    )


def bounded(new: Iterable[bytes], limit: int) -> tuple[list[bytes], list[LeftOut]]:
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
