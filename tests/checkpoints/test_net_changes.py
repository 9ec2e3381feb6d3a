"""What file operations made of the workspace, told by the records of their starts alone."""

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


def change(path: str, kind: ChangeKind) -> Change:
    return Change(path, kind, None, None)


def test_what_stands_there_is_what_the_last_one_left_or_found() -> None:
    """Design, undo: one that failed has left all as it was; a link's path is where it leads to."""
    starts = (created("a", "1"), edited("a", "1", "2"), created("l/b", "3", real="b"))
    assert expected(starts) == {"a": frozenset({"1", "2"}), "b": frozenset({None, "3"})}
    assert expected(()) == {}


def test_what_a_command_did_is_not_known() -> None:
    """Design, undo: a command may change anything."""
    assert expected((created("a", "1"), COMMAND)) is None


def test_changed_files_are_those_of_the_person_and_of_the_turn() -> None:
    """Design, outbox: the short request says how the files differ from those the chat knows."""
    starts = (
        created("new", "1"),
        created("came-and-went", "1"),
        deleted("came-and-went", "1"),
        edited("old", "1", "2"),
        edited("same", "1", "2"),
        edited("same", "2", "1"),
        deleted("gone", "1"),
        created("gone-and-back", "2", None),
    )
    earlier = (change("mine", "modified"), change("gone-and-back", "deleted"))
    assert altogether(earlier, starts) == (
        "deleted: gone",
        "modified: gone-and-back",
        "modified: mine",
        "added: new",
        "modified: old",
    )


def test_what_the_person_had_made_is_still_new_after_an_edit() -> None:
    """Design, outbox: the chat has not seen it yet."""
    earlier = (change("a", "added"), change("b", "added"), change("c", "modified"))
    starts = (edited("a", "1", "2"), deleted("b", "1"), edited("c", "1", "2"))
    assert altogether(earlier, starts) == ("added: a", "modified: c")


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
