"""What checkpoints hold and how they differ: values alone."""

from dataclasses import dataclass
from typing import Literal

ChangeKind = Literal["added", "deleted", "modified", "mode", "type", "left_out"]

_TYPE = 0o170000
_LINK = 0o120000

# More names than that nobody reads; the count says how many there are.
NAMED_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A path that was not covered or not put back, and why; a folder's path ends with /."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The files as they stood at one moment; `id` finds them again.

    `left_out` names what is not covered, up to a limit; `left_out_count` is the number of all.
    `set_aside` is where a damaged store is now; if it is not empty, earlier checkpoints are in there.
    `missed` are paths that had changed again before it came to them.
    """

    id: str
    left_out: tuple[LeftOut, ...] = ()
    left_out_count: int = 0
    set_aside: str = ""
    missed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """One file or link: git's id of its content, and its type and permissions as in `st_mode`."""

    blob: str
    mode: int

    @property
    def is_link(self) -> bool:
        return self.mode & _TYPE == _LINK


@dataclass(frozen=True, slots=True)
class Change:
    """How a path differs between two checkpoints; None stands for nothing there.

    The kind is `left_out` if one of the two did not cover the path: then nobody knows how it changed.
    """

    path: str
    kind: ChangeKind
    old: State | None
    new: State | None


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back (also what already stood so), and what was left alone and why."""

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
