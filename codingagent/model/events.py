"""Outcomes of operations. Each outcome has its own class, so that no flag can contradict another.

The journal stores events: their fields are text, numbers and tuples of these, and `kind` names the
class.
"""

from dataclasses import dataclass
from typing import Literal

from codingagent.model.encoding import Encoding

EndedBy = Literal["itself", "time_limit", "output_limit", "process_limit", "memory_limit", "agent"]
"""What ended a command; `agent`: the process that had started it was gone."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines of a file that an edit replaced; a count of 0 means none.

    All four are 1-based line numbers or counts; `new_start` refers to the file after the edit.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int


@dataclass(frozen=True, slots=True)
class FileCreated:
    """A whole file was written."""

    path: str
    size_bytes: int
    replaced: bool
    notes: tuple[str, ...] = ()
    kind: Literal["file_created"] = "file_created"


@dataclass(frozen=True, slots=True)
class FileEdited:
    """Part of a file was changed; `excerpt` shows the lines around it with their new numbers."""

    path: str
    hunks: tuple[Hunk, ...]
    excerpt: str
    edits: int = 1
    """How many consecutive edits led to this."""
    notes: tuple[str, ...] = ()
    kind: Literal["file_edited"] = "file_edited"


@dataclass(frozen=True, slots=True)
class FileDeleted:
    """A file was deleted."""

    path: str
    notes: tuple[str, ...] = ()
    kind: Literal["file_deleted"] = "file_deleted"


@dataclass(frozen=True, slots=True)
class FileMoved:
    """A file has another path; `replaced` says that another file was there."""

    path: str
    to: str
    size_bytes: int
    replaced: bool
    notes: tuple[str, ...] = ()
    kind: Literal["file_moved"] = "file_moved"


@dataclass(frozen=True, slots=True)
class FileRequested:
    """Files whose text the next request will hold; `asked` is the path or glob as written."""

    asked: str
    paths: tuple[str, ...]
    start_line: int | None = None
    end_line: int | None = None
    notes: tuple[str, ...] = ()
    kind: Literal["file_requested"] = "file_requested"


@dataclass(frozen=True, slots=True)
class FileFetched:
    """A file's whole content, as text or in base64."""

    path: str
    content: str
    encoding: Encoding
    size_bytes: int
    notes: tuple[str, ...] = ()
    kind: Literal["file_fetched"] = "file_fetched"


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One name in a folder; a folder's size is 0. A link that stays inside is shown as its target."""

    name: str
    is_folder: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FolderListed:
    """The contents of a folder, by name."""

    path: str
    entries: tuple[FolderEntry, ...]
    notes: tuple[str, ...] = ()
    kind: Literal["folder_listed"] = "folder_listed"


@dataclass(frozen=True, slots=True)
class CommandRan:
    """A command ended by itself, or at a limit.

    `exit_code` is the shell's, or minus the number of the signal that ended it. `output` has both
    streams
    in the order they came, cut in the middle. `stopped_processes` counts the processes that it left
    running.
    """

    command: str
    exit_code: int
    output: str
    duration_s: float
    ended_by: EndedBy = "itself"
    limit: str = ""
    """The limit that ended it, in words with its unit; empty if it ended by itself."""
    stopped_processes: int = 0
    sandbox: str = "none"
    """What confined it: `bwrap` or `none`."""
    has_network: bool = True
    stdout: str | None = None
    """With `stderr`, if they were kept apart: each as it came, cut at its end."""
    stderr: str | None = None
    notes: tuple[str, ...] = ()
    kind: Literal["command_ran"] = "command_ran"


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The agent was killed during this operation, and its outcome is unknown."""

    tag: str
    subject: str
    """The command, or the path of the file."""
    notes: tuple[str, ...] = ()
    kind: Literal["interrupted"] = "interrupted"


@dataclass(frozen=True, slots=True)
class MessageShown:
    """A text was shown to the person."""

    text: str
    notes: tuple[str, ...] = ()
    kind: Literal["message_shown"] = "message_shown"


@dataclass(frozen=True, slots=True)
class Finished:
    """The model says that the task is done."""

    summary: str
    notes: tuple[str, ...] = ()
    kind: Literal["finished"] = "finished"


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was done. `reason` is one line that says what to send instead; `detail` may show more."""

    tag: str
    reason: str
    detail: str = ""
    subject: str = ""
    """The path or the command, if known."""
    notes: tuple[str, ...] = ()
    digest: str = ""
    """The digest of the file as the person changed it, if that is the reason: the next request shows
    it."""
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True, slots=True)
class Denied:
    """The policy or the person refused the operation. `suggestion` says what to do instead."""

    tag: str
    subject: str
    rules: tuple[str, ...]
    reason: str
    suggestion: str = ""
    notes: tuple[str, ...] = ()
    kind: Literal["denied"] = "denied"


Event = (
    FileCreated
    | FileEdited
    | FileDeleted
    | FileMoved
    | FileRequested
    | FileFetched
    | FolderListed
    | CommandRan
    | Interrupted
    | MessageShown
    | Finished
    | Refused
    | Denied
)


def succeeded(event: Event) -> bool:
    """Return whether the operation did what was asked; a command must exit with 0 by itself."""
    match event:
        case Refused() | Interrupted() | Denied():
            return False
        case CommandRan():
            return event.exit_code == 0 and event.ended_by == "itself"
        case _:
            return True
