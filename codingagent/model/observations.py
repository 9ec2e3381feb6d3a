"""What the world answers: values that pass between the outside and the agent."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from codingagent.model.events import EndedBy
from codingagent.model.file_settled import Sighting


@dataclass(frozen=True, slots=True)
class Seen:
    """A file's bytes, and what identifies the file and its state when they were read."""

    data: bytes
    state: tuple[int, int, int, int]
    mode: int
    owner: tuple[int, int] = (-1, -1)
    """User and group; -1 where that is not known."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What a command may want besides a folder and a limit.

    `variables` are added to its environment; they are not trusted. `parts_streams` keeps stdout and
    stderr apart, and more of each. `is_flooded` is asked now and then (not on Windows): True ends the
    command as one that has printed too much.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    parts_streams: bool = False
    is_flooded: Callable[[], bool] | None = None


PLAIN = Extras()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended. `exit_code` is minus the signal's number if one ended it.

    `output` has both streams in the order they came; `dropped_characters` are missing from its middle.
    If they were to be kept apart, `stdout` and `stderr` have each as it came, cut at its end, and
    `output` has the one after the other. `failure` says why nothing was started, or is empty.
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


@dataclass(frozen=True, slots=True)
class Letter:
    """A file in the inbox, as it looked just now."""

    name: str
    sighting: Sighting


def digest_of(data: bytes) -> str:
    """Return the digest by which the journal knows bytes: SHA-256, in hex digits."""
    return hashlib.sha256(data).hexdigest()
