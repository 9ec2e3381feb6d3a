"""What the workspace, the runner, the sandbox and the mailbox exchange with others."""

import hashlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec import Struct, field

from codingagent.model.events import EndedBy
from codingagent.model.file_settled import Sighting


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
    """How to start a command. A number in `argv` is an index into `handles`.

    The caller closes `handles`. `mounts` are made before the command starts, while the sandbox waits at
    descriptor 4; descriptor 3 then reports its start and end.
    """

    argv: tuple[str | int, ...]
    variables: Mapping[str, str]
    handles: tuple[int, ...] = ()
    mounts: tuple[Mapping[str, object], ...] = ()


class Outcome(Struct, frozen=True):
    """How a command ended. `exit_code` is minus the signal's number if one ended it.

    `output` has both streams in the order they came; `dropped_characters` are missing from its middle.
    If they were kept apart, `stdout` and `stderr` have each as it came, cut at its end, and `output`
    has one after the other. `failure` says why nothing was started, or is empty.
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


class InboxFile(Struct, frozen=True):
    name: str
    sighting: Sighting


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of bytes in hex, as the journal records it."""
    return hashlib.sha256(data).hexdigest()


class PastCommit(NamedTuple):
    """A past commit: its message, the files that it changed, and when, in seconds since the epoch."""

    message: str
    paths: tuple[str, ...]
    at_s: int = 0
