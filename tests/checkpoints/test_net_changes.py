"""What file operations made of the workspace, told by the records of their starts alone."""

import pytest
from msgspec.structs import replace

from codingagent.checkpoints.history import Change, ChangeKind, altogether, done, expected
from codingagent.model.events import FileCreated, FileDeleted, FileEdited, Refused
from codingagent.model.journal_entries import (
    AnswerTaken,
    CheckpointTaken,
    ContentChange,
    OperationEnded,
    OperationStarted,
    RequestWritten,
)
from codingagent.model.operations import Kind
from tests.builders import LATER, session_of


def created(path: str, after: str, before: str | None = None, real: str = "") -> OperationStarted:
    event = FileCreated(path, 1, replaced=before is not None)
    return OperationStarted(
        0, Kind.CREATE_FILE, path, LATER, (ContentChange(path, before, after, real),), event
    )


def edited(path: str, before: str, after: str) -> OperationStarted:
    changes = (ContentChange(path, before, after),)
    return OperationStarted(0, Kind.EDIT_FILE, path, LATER, changes, FileEdited(path, (), ""))


def deleted(path: str, before: str) -> OperationStarted:
    changes = (ContentChange(path, before, None),)
    return OperationStarted(0, Kind.DELETE_FILE, path, LATER, changes, FileDeleted(path))


COMMAND = OperationStarted(0, Kind.RUN_COMMAND, "make", LATER)


def test_what_stands_there_is_what_the_last_one_left_or_found() -> None:
    """Design, undo: one that failed has left all as it was; a link's path is where it leads to."""
    starts = (created("a", "1"), edited("a", "1", "2"), created("l/b", "3", real="b"))
    assert expected(starts) == {"a": frozenset({"1", "2"}), "b": frozenset({None, "3"})}
    assert expected(()) == {}
    assert expected((*starts, COMMAND)) is None  # a command may change anything


NET: dict[str, tuple[ChangeKind | None, tuple[OperationStarted, ...]]] = {
    "added: new": (None, (created("new", "1"),)),
    "": (None, (created("a", "1"), deleted("a", "1"))),
    "modified: old": (None, (edited("old", "1", "2"),)),
    " ": (None, (edited("same", "1", "2"), edited("same", "2", "1"))),
    "deleted: gone": (None, (deleted("gone", "1"),)),
    "modified: mine": ("modified", ()),
    "modified: back": ("deleted", (created("back", "2"),)),
    # The chat has not seen yet what the person made.
    "added: a": ("added", (edited("a", "1", "2"),)),
    "  ": ("added", (deleted("b", "1"),)),
    "modified: c": ("modified", (edited("c", "1", "2"),)),
}


@pytest.mark.parametrize("net", NET)
def test_changed_files_are_those_of_the_person_and_of_the_turn(net: str) -> None:
    """Design, outbox: the short request says how the files differ from those the chat knows."""
    kind, starts = NET[net]
    path = starts[0].changes[0].path if starts else "mine"
    earlier = () if kind is None else (Change(path, kind, None, None),)
    assert altogether(earlier, starts) == ((net,) if net.strip() else ())


def test_what_failed_changed_nothing() -> None:
    """Design, nothing is lost: a start is recorded before the change that then fails."""
    starts = (created("a", "1"), replace(created("b", "1"), index=1))
    session = session_of(
        RequestWritten(1, LATER),
        AnswerTaken(1, "r", "d", LATER),
        CheckpointTaken(1, before=True, name="c", left_out=(), at=LATER),
        starts[0],
        OperationEnded(0, FileCreated("a", 1, replaced=False), LATER),
        starts[1],
        OperationEnded(1, Refused(Kind.CREATE_FILE, "the disk is full"), LATER),
    )
    assert done(session) == starts[:1]
