"""Value types: checkpoints, file states, and how two checkpoints differ."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from codingagent.model import paths

ChangeKind = Literal["added", "deleted", "modified", "mode", "type", "left_out"]

_TYPE = 0o170000
_LINK = 0o120000

# Nobody reads more names than this; the count covers the rest.
NAMED_LIMIT = 1000


# How many files one line names; the file list has all.
NAMED = 20


class LeftOut(Struct, frozen=True, array_like=True):
    """A path that was not covered or not restored, and why; a folder's path ends with /."""

    path: str
    reason: str


class Checkpoint(Struct, frozen=True):
    """The files at one moment; `id` finds them again.

    `left_out` lists paths that are not covered, up to a limit; `left_out_count` counts all.
    `set_aside` is the new path of a damaged store, or empty; earlier checkpoints are in there.
    `missed` lists paths that had changed again before they were read.
    """

    id: str
    left_out: tuple[LeftOut, ...] = ()
    left_out_count: int = 0
    set_aside: str = ""
    missed: tuple[str, ...] = ()


class State(Struct, frozen=True):
    """One file or link: git's id of its content, and its type and permissions as in `st_mode`."""

    blob: str
    mode: int

    @property
    def is_link(self) -> bool:
        return self.mode & _TYPE == _LINK


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
    """Return how two different states of a path differ."""
    if old is None:
        return "added"
    if new is None:
        return "deleted"
    if old.is_link != new.is_link:
        return "type"
    return "modified" if old.blob != new.blob else "mode"


def named(names: Sequence[str]) -> str:
    """Return the first names as one line, and how many more there are."""
    shown = ", ".join(map(paths.shown, names[:NAMED])) or "no files"
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown
