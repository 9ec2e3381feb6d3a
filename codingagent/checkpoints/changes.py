"""Checkpoints as values: file states, how two checkpoints differ, and what one of them did not cover."""

import json
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, convert, field, to_builtins

from codingagent.checkpoints.repository_files import is_of_git
from codingagent.model import paths

ChangeKind = Literal["added", "deleted", "modified", "mode", "type", "left_out"]

IGNORED = "ignored"
UNSEEN = "ignored, and too large to be looked through for git repositories"

# How many files one line names; the file list has all.
NAMED = 20


class LeftOut(Struct, frozen=True, array_like=True):
    """A path that was not covered or not restored, and why; a folder's path ends with /."""

    path: str
    reason: str


class Checkpoint(Struct, frozen=True):
    """The files at one moment; `id` finds them again.

    `left_out` lists paths that are not covered. `set_aside` is the new path of a damaged store, or empty;
    earlier checkpoints are in there. `missed` lists paths that had changed again before they were read.
    """

    id: str
    left_out: tuple[LeftOut, ...] = ()
    set_aside: str = ""
    missed: tuple[str, ...] = ()


class State(Struct, frozen=True):
    """One file or link: git's id of its content, and its type and permissions as in `st_mode`."""

    blob: str
    mode: int

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)


class Change(Struct, frozen=True):
    """How a path differs between two checkpoints; None means that nothing is there.

    The kind is `left_out` if one of the two did not cover the path, so the change is unknown.
    """

    path: str
    kind: ChangeKind
    old: State | None
    new: State | None


class Restored(Struct, frozen=True):
    """The paths restored (including those already correct), and those left alone with the reason."""

    paths: tuple[str, ...]
    left_alone: tuple[LeftOut, ...]


def kind_of(old: State | None, new: State | None) -> ChangeKind:
    if old is None or new is None:
        return "added" if old is None else "deleted"
    if old.is_link != new.is_link:
        return "type"
    return "modified" if old.blob != new.blob else "mode"


def named(names: Sequence[str]) -> str:
    """Return the first names as one line, and how many more there are."""
    shown = ", ".join(map(paths.shown, names[:NAMED])) or "no files"
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown


class Notes(Struct, frozen=True):
    """What a commit holds beside the files: permissions, and what was not covered."""

    usual: tuple[int, int] = (0o644, 0o755)
    """The most common permissions of a non-executable and of an executable file, in all of a store."""
    unusual: Mapping[str, int] = field(default_factory=dict)
    left: tuple[LeftOut, ...] = ()
    tracked: tuple[str, ...] = ()
    """Paths that are covered though `left` names them or a folder above: the workspace's repository
    tracks them, or operations were about to change them.
    """
    held: Mapping[str, int] = field(default_factory=dict)
    """Contents kept only because of operations, with their sizes, whose sum is limited."""

    def state(self, path: str, git_mode: int, blob: str) -> State | None:
        """Return the state of a path that has a mode in git's tree."""
        if git_mode == 0:
            return None
        if stat.S_ISLNK(git_mode):
            return State(blob, stat.S_IFLNK)
        permissions = self.unusual.get(path, self.usual[bool(git_mode & 0o100)])
        return State(blob, stat.S_IFREG | permissions)

    def encoded(self) -> bytes:
        # msgspec writes no names that are not UTF-8; json escapes them.
        return json.dumps(to_builtins(self), separators=(",", ":"), sort_keys=True).encode()

    @classmethod
    def decoded(cls, data: bytes) -> "Notes":
        """Read notes; ValueError if they are damaged."""
        return convert(json.loads(data), cls)


def left_out_by(notes: Notes) -> Callable[[str], bool]:
    """Return what tells whether a checkpoint did not cover a path, though something may have been there."""
    every = frozenset(left.path for left in notes.left)
    unseen = frozenset(left.path for left in notes.left if left.reason == UNSEEN)
    tracked = frozenset(notes.tracked)

    def leaves_out(path: str) -> bool:
        left = unseen if is_of_git(path) else every
        return path not in tracked and not left.isdisjoint(with_folders(path))

    return leaves_out


def with_folders(path: str) -> Iterable[str]:
    """Yield a path, and each folder above it with its slash."""
    yield path
    while path := path.rpartition("/")[0]:
        yield path + "/"


def most_common(modes: Iterable[int | None]) -> tuple[int, int]:
    """Return the most common permissions of non-executable and of executable files."""
    ordered = [mode for mode, _ in Counter(modes).most_common() if mode is not None]
    plain = next((mode for mode in ordered if not mode & 0o100), 0o644)
    return plain, next((mode for mode in ordered if mode & 0o100), 0o755)
