"""What the workspace, the runner, the sandbox and the mailbox exchange with others."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from msgspec import Struct, field

from codingagent.model.events import EndedBy
from codingagent.model.journal_entries import EarlierFile

# Size and time are unchanged for 300 ms.
SETTLED_AFTER_S = 0.3
SETTLED_OPEN_AFTER_S = 10.0
# What the commands of a workspace may keep where tools have their data.
LAYER_BYTES = 5 * 10**9


class Seen(Struct, frozen=True):
    """A file's bytes, with its identity and state when they were read."""

    data: bytes
    state: tuple[int, int, int, int]
    mode: int
    owner: tuple[int, int] = (-1, -1)
    """User and group; -1 where unknown."""


class Extras(Struct, frozen=True):
    """Options of a command besides its folder and its limit."""

    variables: Mapping[str, str] = field(default_factory=dict)
    """Added to its environment; they are not trusted."""
    parts_streams: bool = False
    """Keep stdout and stderr apart, and more of each."""
    is_flooded: Callable[[], bool] | None = None
    """Polled (not on Windows): True ends the command because it has printed too much."""


PLAIN = Extras()


class Confined(Struct, frozen=True):
    """How to start a command. A number in `argv` is an index into `handles`, which the caller closes.

    `mounts` are made before the command starts, while the sandbox waits at descriptor 4; descriptor 3 then
    reports its start and end. `layer` is the folder for what is written to such mounts; empty: none.
    """

    argv: tuple[str | int, ...]
    variables: Mapping[str, str]
    handles: tuple[int, ...] = ()
    mounts: tuple[Mapping[str, object], ...] = ()
    layer: str = ""
    layer_bytes: int = LAYER_BYTES


class Outcome(Struct, frozen=True):
    """How a command ended. `exit_code` is minus the signal's number if one ended it.

    `output` has both streams in their order, without `dropped_characters` of its middle, and `stdout` and
    `stderr` each, cut at its end, if they were kept apart. `failure` says why nothing was started.
    """

    exit_code: int
    output: str
    duration_s: float
    ended_by: EndedBy = "itself"
    limit: str = ""
    stopped_processes: int = 0
    dropped_characters: int = 0
    failure: str = ""
    stdout: str | None = None
    stderr: str | None = None
    sandbox: str = "none"
    has_network: bool = True
    notes: tuple[str, ...] = ()


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of bytes in hex, as the journal records it."""
    return hashlib.sha256(data).hexdigest()


class PastCommit(NamedTuple):
    """A past commit: its message, the files that it changed, and when, in seconds since the epoch."""

    message: str
    paths: tuple[str, ...]
    at_s: int = 0


class InboxFile(Struct, frozen=True):
    """One observation of a file in the inbox: its identity and state, and its time in seconds."""

    name: str
    inode: int
    size_bytes: int
    modified_ns: int
    at_s: float
    is_open: bool | None = None
    """Whether a process has it open for writing; None where that is unknown."""
    is_held: bool = False
    """A process, on Windows, keeps it from being moved."""

    @property
    def earlier(self) -> EarlierFile:
        """What a journal holds of it, to ignore it until it changes."""
        return EarlierFile(self.name, self.size_bytes, self.modified_ns)

    def is_same(self, other: "InboxFile") -> bool:
        return (self.inode, self.earlier) == (other.inode, other.earlier)


class Hint(Enum):
    """What the system has reported about a file since the last look."""

    NOTHING = "nothing"
    APPEARED = "appeared"
    """It is new, or was moved in from another folder: the two look alike."""
    CLOSED = "closed"
    """It was closed after writing, or renamed within the folder."""


def is_finished(first: InboxFile, now: InboxFile, hint: Hint) -> bool:
    """Return whether a file may be taken; nothing of it has changed since `first`."""
    if now.size_bytes == 0:
        return False
    if now.is_open:
        # Some programs never close what they have written.
        return first.is_same(now) and now.at_s - first.at_s >= SETTLED_OPEN_AFTER_S
    if hint is Hint.CLOSED or (hint is Hint.APPEARED and now.is_open is False):
        return True
    return first.is_same(now) and now.at_s - first.at_s >= SETTLED_AFTER_S


def first_looks(before: Mapping[str, InboxFile], files: Iterable[InboxFile]) -> dict[str, InboxFile]:
    """Return the first unchanged observation of each file, by name, after one more of all files."""
    firsts = ((now.name, before.get(now.name, now), now) for now in files)
    return {name: first if first.is_same(now) else now for name, first, now in firsts}
