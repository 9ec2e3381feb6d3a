"""What operations may change and what they changed: the one place that says so for all who ask.

Checkpoints and undo, the policy, the record, changed files and the person's check ask here. A new operation
needs its case in `effects`, a new event its case in `changes_of`; the type checker names both.
"""

from collections.abc import Iterable
from typing import Literal, assert_never

from msgspec import Struct

from codingagent.model import events, operations
from codingagent.model.events import Event
from codingagent.model.operations import Operation

After = Literal["whole", "part", "moved", "nothing", "anything"]
"""What is at a path afterwards: a file written whole, one changed in part, one from another path, none, or
nobody knows."""


class PathChange(Struct, frozen=True):
    """A path that changes, and what is there then; `is_new`: nothing was before (None: unknown)."""

    path: str
    after: After
    is_new: bool | None = None

    @property
    def follows(self) -> bool:
        """Whether a link at the end of the path is followed, so that its target is changed."""
        return self.after not in ("moved", "nothing")

    @property
    def removes(self) -> bool:
        return self.after == "nothing"

    def may_be_at(self, path: str) -> bool:
        return self.path == path or self.after == "anything"


EVERYWHERE = PathChange("", "anything")
"""A command may change any path."""


def effects(operation: Operation) -> tuple[PathChange, ...]:
    """Return what an operation may change, as far as it says so itself."""
    match operation:
        case operations.CreateFile():
            return (PathChange(operation.path, "whole", None if operation.overwrite else True),)
        case operations.EditFile():
            return (PathChange(operation.path, "part", is_new=False),)
        case operations.DeleteFile():
            return (PathChange(operation.path, "nothing", is_new=False),)
        case operations.MoveFile():
            is_new = None if operation.overwrite else True
            return _moved(operation.path, operation.to, is_new=is_new)
        case operations.RunCommand():
            return (EVERYWHERE,)
        case (
            operations.ReadFile()
            | operations.FetchFile()
            | operations.ListFolder()
            | operations.ShowMessage()
            | operations.Finish()
        ):
            return ()
        case _:
            assert_never(operation)


def _moved(path: str, to: str, *, is_new: bool | None) -> tuple[PathChange, ...]:
    return PathChange(path, "nothing", is_new=False), PathChange(to, "moved", is_new)


def named(operation: Operation) -> tuple[PathChange, ...]:
    """Return the changes of an operation whose paths it names."""
    return tuple(change for change in effects(operation) if change is not EVERYWHERE)


def changes_of(event: Event) -> tuple[PathChange, ...]:
    """Return what an operation changed; of a command nobody knows, nor of what was interrupted."""
    match event:
        case events.FileCreated():
            return (PathChange(event.path, "whole", not event.replaced),)
        case events.FileEdited():
            return (PathChange(event.path, "part", is_new=False),)
        case events.FileDeleted():
            return (PathChange(event.path, "nothing", is_new=False),)
        case events.FileMoved():
            return _moved(event.path, event.to, is_new=not event.replaced)
        case events.CommandRan() | events.Interrupted():
            return (EVERYWHERE,)
        case (
            events.FileRequested()
            | events.FileFetched()
            | events.FolderListed()
            | events.MessageShown()
            | events.Finished()
            | events.Refused()
            | events.Denied()
        ):
            return ()
        case _:
            assert_never(event)


def file_changes(made: Iterable[Event]) -> tuple[PathChange, ...]:
    """Return the changes that file operations made, in order."""
    found = (change for event in made for change in changes_of(event))
    return tuple(change for change in found if change is not EVERYWHERE)


def may_change_anything(event: Event) -> bool:
    """Return whether nobody knows from the event alone what it changed."""
    return EVERYWHERE in changes_of(event)


def changed_paths(made: Iterable[Event]) -> tuple[str, ...]:
    """Return the paths that file operations changed, in order, each once."""
    return tuple(dict.fromkeys(change.path for change in file_changes(made)))
