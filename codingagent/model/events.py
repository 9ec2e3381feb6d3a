"""Outcomes of operations, stored in the journal; each has its class, so that no flag contradicts another."""

from collections.abc import Iterable
from typing import ClassVar, Literal

from msgspec import Struct, field

from codingagent.model.encoding import Encoding
from codingagent.model.operations import EVERYWHERE, Changes, Kind, PathChange, moved

_Limit = Literal["time_limit", "output_limit", "process_limit", "memory_limit", "layer_limit"]
EndedBy = Literal["itself", "agent"] | _Limit
"""What ended a command; `agent`: the process that had started it was gone."""
SKIPPED = ("skipped",)


class Tagged(Struct, frozen=True, tag_field="kind"):
    """Base of what the journal stores: `kind` in its JSON names the class, `tag` an operation's kind."""

    @property
    def class_name(self) -> str:
        return str(self.__struct_config__.tag)


class _Noted(Tagged, frozen=True, kw_only=True):
    """What came of an operation; `notes` are for the model, one line each."""

    notes: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    """The notes as the person reads them; empty: as they are."""

    @property
    def changes(self) -> Changes:
        return ()


class Hunk(Struct, frozen=True):
    """Lines of a file that an edit replaced: from 1, `new_start` in the file after it; a count of 0: none."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int


class FileCreated(_Noted, frozen=True, tag="file_created"):
    kind: ClassVar[Kind] = Kind.CREATE_FILE

    path: str
    size_bytes: int
    replaced: bool
    fault: str = ""
    """Why a program that the session made can't be parsed; empty if it ever could, or is meant so."""

    @property
    def changes(self) -> Changes:
        return (PathChange(self.path, "whole", not self.replaced),)


class FileEdited(_Noted, frozen=True, tag="file_edited"):
    """Part of a file was changed; `excerpt` shows the lines around it with their new numbers."""

    kind: ClassVar[Kind] = Kind.EDIT_FILE

    path: str
    hunks: tuple[Hunk, ...]
    excerpt: str
    edits: int = 1
    fault: str = ""

    @property
    def changes(self) -> Changes:
        return (PathChange(self.path, "part", is_new=False),)


class FileDeleted(_Noted, frozen=True, tag="file_deleted"):
    kind: ClassVar[Kind] = Kind.DELETE_FILE

    path: str

    @property
    def changes(self) -> Changes:
        return (PathChange(self.path, "nothing", is_new=False),)


class FileMoved(_Noted, frozen=True, tag="file_moved"):
    """A file has another path; `replaced` says that another file was there."""

    kind: ClassVar[Kind] = Kind.MOVE_FILE

    path: str
    to: str
    size_bytes: int
    replaced: bool

    @property
    def changes(self) -> Changes:
        return moved(self.path, self.to, is_new=not self.replaced)


class FileRequested(_Noted, frozen=True, tag="file_requested"):
    """Files whose text the next request will hold; `asked` is the path or glob as written."""

    kind: ClassVar[Kind] = Kind.READ_FILE

    asked: str
    paths: tuple[str, ...]
    start_line: int | None = None
    end_line: int | None = None


class FileFetched(_Noted, frozen=True, tag="file_fetched"):
    """A file's whole content, as text or in base64."""

    kind: ClassVar[Kind] = Kind.READ_FILE

    path: str
    content: str
    encoding: Encoding
    size_bytes: int


class FolderEntry(Struct, frozen=True):
    """One name in a folder; a folder's size is 0. A link that stays inside is shown as its target."""

    name: str
    is_folder: bool
    size_bytes: int


class FolderListed(_Noted, frozen=True, tag="folder_listed"):
    kind: ClassVar[Kind] = Kind.LIST_FOLDER
    path: str
    entries: tuple[FolderEntry, ...]


class CommandRan(_Noted, frozen=True, tag="command_ran"):
    """A command ended by itself, or at a limit."""

    kind: ClassVar[Kind] = Kind.RUN_COMMAND
    changes: ClassVar[Changes] = (EVERYWHERE,)

    command: str
    exit_code: int
    """The shell's, or minus the number of the signal that ended it."""
    output: str
    """Both streams in the order they came, cut in the middle."""
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


class Interrupted(_Noted, frozen=True, tag="interrupted"):
    """The agent was killed during this operation, and its outcome is unknown."""

    changes: ClassVar[Changes] = (EVERYWHERE,)

    kind: Kind = field(name="tag")
    subject: str


class MessageShown(_Noted, frozen=True, tag="message_shown"):
    kind: ClassVar[Kind] = Kind.MESSAGE
    text: str


class Finished(_Noted, frozen=True, tag="finished"):
    kind: ClassVar[Kind] = Kind.DONE
    summary: str


class Refused(_Noted, frozen=True, tag="refused"):
    """Nothing was done. `fact` says why; `advice` and `detail` are for the model, see OperationError."""

    kind: Kind = field(name="tag")
    fact: str = field(name="reason")
    detail: str = ""
    subject: str = ""
    digest: str = ""
    """Of the file as the person changed it, if that is the reason: the next request shows it."""
    advice: str = ""

    @property
    def reason(self) -> str:
        return self.fact + self.advice


class Denied(_Noted, frozen=True, tag="denied"):
    """The policy or the person refused the operation. `suggestion` says what to do instead."""

    kind: Kind = field(name="tag")
    subject: str
    rules: tuple[str, ...]
    reason: str
    suggestion: str = ""


_OfFiles = FileCreated | FileEdited | FileDeleted | FileMoved | FileRequested | FileFetched | FolderListed
Event = _OfFiles | CommandRan | Interrupted | MessageShown | Finished | Refused | Denied


def succeeded(event: Event) -> bool:
    """Return whether the operation did what was asked; a command must exit with 0 by itself."""
    if isinstance(event, CommandRan):
        return event.exit_code == 0 and event.ended_by == "itself"
    return not isinstance(event, Refused | Interrupted | Denied)


def file_changes(made: Iterable[Event]) -> Changes:
    """Return the changes that file operations made, in order."""
    found = (change for event in made for change in event.changes)
    return tuple(change for change in found if change is not EVERYWHERE)
