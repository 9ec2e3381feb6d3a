"""An operation is defined in one place: each table has a row for every one of them, and says the same."""

from typing import get_args

import pytest

from codingagent.model import commands
from codingagent.model.approval import Question
from codingagent.model.events import (
    CommandRan,
    Denied,
    Event,
    FileCreated,
    FileDeleted,
    FileEdited,
    FileMoved,
    Interrupted,
    Refused,
)
from codingagent.model.journal_entries import ApprovalAsked, OperationEnded
from codingagent.model.operations import (
    EVERYWHERE,
    CreateFile,
    DeleteFile,
    EditFile,
    FetchFile,
    Finish,
    Kind,
    LineRange,
    ListFolder,
    MoveFile,
    Operation,
    PathChange,
    ReadFile,
    RunCommand,
    ShowMessage,
    named,
)
from codingagent.policy.rules import PRESETS, judge_change
from codingagent.protocols.json import messages, wire
from codingagent.protocols.tags import decoder
from tests.builders import LATER
from tests.rows import each_row

KINDS = get_args(Operation)

# What each asks to be changed; a path that is not followed at its end is marked with !.
EXAMPLES: dict[type, tuple[Operation, tuple[str, ...]]] = {
    CreateFile: (CreateFile("a", "x\n"), ("a",)),
    EditFile: (EditFile("a", LineRange(1, 1, "x\n")), ("a",)),
    DeleteFile: (DeleteFile("a"), ("!a",)),
    MoveFile: (MoveFile("a", "b"), ("!a", "!b")),
    ReadFile: (ReadFile("a"), ()),
    FetchFile: (FetchFile("a"), ()),
    ListFolder: (ListFolder("a"), ()),
    RunCommand: (RunCommand("make"), ("*",)),
    ShowMessage: (ShowMessage("x"), ()),
    Finish: (Finish("x"), ()),
}


# Only the other protocols list folders and move files.
NOT_IN_JSON = {Kind.LIST_FOLDER, Kind.MOVE_FILE}


@each_row("kind", KINDS)
def test_every_table_has_a_row_for_each_operation(kind: type[Operation]) -> None:
    """House, what an operation is: one that is missing in a table is named here."""
    operation, told = EXAMPLES[kind]
    assert type(operation) is kind
    if operation.kind in commands.BY_TAG:
        assert operation.kind in decoder.DECODE
    assert operation.kind in wire.TYPES or operation.kind in NOT_IN_JSON
    shown = []
    for change in operation.changes:
        assert judge_change(PRESETS["standard"], change.after, change.path or "a", 1) is not None
        follows = "" if change.follows else "!"
        shown.append("*" if change is EVERYWHERE else follows + change.path)
    assert tuple(shown) == told
    assert EVERYWHERE not in named(operation)


def test_every_tag_and_every_row_is_of_an_operation() -> None:
    """House, what an operation is: no row stays behind."""
    kinds = {operation.kind for operation in KINDS}
    assert set(EXAMPLES) == set(KINDS)
    # Only JSON-RPC lists a folder.
    assert set(commands.BY_TAG) == set(decoder.DECODE) == kinds - {Kind.LIST_FOLDER}
    assert set(wire.TYPES) | NOT_IN_JSON == kinds


@each_row(
    ("event", "changes"),
    [
        (FileCreated("a", 1, replaced=False), (PathChange("a", "whole", is_new=True),)),
        (FileCreated("a", 1, replaced=True), (PathChange("a", "whole", is_new=False),)),
        (FileEdited("a", (), ""), (PathChange("a", "part", is_new=False),)),
        (FileDeleted("a"), (PathChange("a", "nothing", is_new=False),)),
        (
            FileMoved("a", "b", 1, replaced=False),
            (PathChange("a", "nothing", is_new=False), PathChange("b", "moved", is_new=True)),
        ),
        (CommandRan("make", 0, "", 1.0), (EVERYWHERE,)),
    ],
)
def test_what_came_of_it_says_what_was_changed(event: Event, changes: tuple[PathChange, ...]) -> None:
    """House, what an operation is: whoever asks what changed asks the event; each wire has words for it."""
    assert event.changes == changes
    assert event.kind in {operation.kind for operation in KINDS}
    assert isinstance(messages.event_of(OperationEnded(0, event, LATER)), get_args(wire.Event))


@pytest.mark.parametrize("kind", sorted(NOT_IN_JSON))
def test_what_a_message_can_not_ask_for_has_words_all_the_same(kind: Kind) -> None:
    """House, what an operation is: a record of the other protocol never stops this one."""
    for event in (
        Refused(kind, "no", subject="a"),
        Denied(kind, "a", ("rule",), "no"),
        Interrupted(kind, "a"),
    ):
        assert isinstance(messages.event_of(OperationEnded(0, event, LATER)), get_args(wire.Event))
    question = Question(kind, "a", ("rule",), ("why",), "a", "digest", ())
    assert messages.approval_event(ApprovalAsked(0, question, LATER)).operation_type == kind
