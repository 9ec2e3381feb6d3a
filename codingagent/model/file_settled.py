"""Decide from two observations whether a file in the inbox is complete. Has no clock of its own."""

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

# Size and time are unchanged for 300 ms.
SETTLED_AFTER_S = 0.3
SETTLED_OPEN_AFTER_S = 10.0


class Sighting(Struct, frozen=True):
    """One observation of a file: its identity and state, and its time in seconds."""

    inode: int
    size_bytes: int
    modified_ns: int
    at_s: float
    is_open: bool | None = None
    """Whether a process has it open for writing; None where that is unknown."""
    is_held: bool = False
    """A process, on Windows, keeps it from being moved."""

    def is_same(self, other: "Sighting") -> bool:
        return (self.inode, self.size_bytes, self.modified_ns) == (
            other.inode,
            other.size_bytes,
            other.modified_ns,
        )


class Hint(Enum):
    """What the system has reported about a file since it was last observed."""

    NOTHING = "nothing"
    APPEARED = "appeared"
    """It is new, or was moved in from another folder: the two look alike."""
    CLOSED = "closed"
    """It was closed after writing, or renamed within the folder."""


def is_finished(first: Sighting, now: Sighting, hint: Hint) -> bool:
    """Return whether a file may be taken.

    `first` is the earliest observation since which nothing has changed; `hint` is what the system reported.
    """
    if now.size_bytes == 0:
        return False
    if now.is_open:
        # Some programs never close what they have written.
        return first.is_same(now) and now.at_s - first.at_s >= SETTLED_OPEN_AFTER_S
    if hint is Hint.CLOSED or (hint is Hint.APPEARED and now.is_open is False):
        return True
    return first.is_same(now) and now.at_s - first.at_s >= SETTLED_AFTER_S


def first_looks(
    before: Mapping[str, Sighting], looks: Mapping[str, Sighting]
) -> dict[str, Sighting]:
    """Return the first unchanged observation of each file, by name, after one more of all files."""
    firsts = ((name, before.get(name, now), now) for name, now in looks.items())
    return {name: first if first.is_same(now) else now for name, first, now in firsts}
