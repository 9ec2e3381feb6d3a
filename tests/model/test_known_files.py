"""What a chat knows of files, folded from the record: Design, the workspace."""

import pytest

from codingagent.model.events import CommandRan, Event, FileCreated, FileDeleted, FileEdited, Refused
from codingagent.model.journal_entries import (
    AnswerTaken,
    CheckEnded,
    ContentChange,
    OperationEnded,
    OperationStarted,
    Record,
    RequestWritten,
    ShownFile,
    TurnEnded,
    UndoBegan,
    UndoEnded,
)
from codingagent.model.operations import Kind
from tests.builders import LATER, session_of
from tests.rows import each_row

SHOWN = RequestWritten(1, LATER, (ShownFile("a", "old"),))
TAKEN = AnswerTaken(1, "r.txt", "d", LATER)
RAN = CommandRan("make", 0, "", 1.0)
ENDED = TurnEnded(1, (), LATER)


def change(event: Event, before: str, after: str | None, *, is_unseen: bool = False) -> list[Record]:
    changes = (ContentChange("a", before, after),)
    start = OperationStarted(0, Kind.EDIT_FILE, "a", LATER, changes, event, is_unseen=is_unseen)
    return [start, OperationEnded(0, event, LATER)]


@each_row(
    ("records", "known"),
    [
        ([], "old"),
        (change(FileCreated("a", 1, True), "theirs", "new"), "new"),
        (change(FileEdited("a", (), ""), "old", "new"), "new"),
        (change(FileEdited("a", (), ""), "theirs", "new", is_unseen=True), "old"),
        (change(FileDeleted("a"), "old", None), ""),
        ([OperationEnded(0, Refused(Kind.CREATE_FILE, "no", subject="a", digest="new"), LATER)], "old"),
    ],
)
def test_a_turn_makes_known_what_it_writes(records: list[Record], known: str) -> None:
    """At once for the rest of it, and from then on."""
    under_way = session_of(SHOWN, TAKEN, *records)
    assert under_way.digest_known("a") == known
    assert session_of(SHOWN, TAKEN, *records, ENDED).digest_known("a") == known
    assert under_way.digest_known("b") is None


def test_an_edit_of_what_the_chat_never_saw_whole_makes_nothing_known() -> None:
    """It knows the lines around the edit."""
    session = session_of(RequestWritten(1, LATER), TAKEN, *change(FileEdited("a", (), ""), "x", "y"), ENDED)
    assert session.digest_known("a") is None


def test_a_request_makes_known_what_it_shows_and_what_was_refused() -> None:
    """A refused file's change is in the request, even if the file did not fit there."""
    refused = OperationEnded(0, Refused(Kind.CREATE_FILE, "no", subject="a", digest="theirs"), LATER)
    turn = (SHOWN, TAKEN, refused, ENDED)
    assert session_of(*turn, RequestWritten(2, LATER)).digest_known("a") == "theirs"
    later = RequestWritten(2, LATER, (ShownFile("a", "later"),))
    assert session_of(*turn, later).digest_known("a") == "later"


BEGUN, OVER = "2025-01-15T10:30:00.500Z", "2025-01-15T10:30:02.000Z"
COMMAND = OperationStarted(0, Kind.RUN_COMMAND, "make", BEGUN)
NS = 1_736_937_000 * 10**9


@pytest.mark.parametrize(
    "records",
    [
        [TAKEN, COMMAND, OperationEnded(0, RAN, OVER)],
        [TAKEN, COMMAND, CheckEnded(RAN, OVER)],
        [UndoBegan((0,), "c", BEGUN), UndoEnded("c", (), OVER)],
    ],
)
def test_what_was_written_while_something_of_ours_ran_is_not_the_persons(records: list[Record]) -> None:
    """A command, the check, an undo: from its beginning to its end, and no longer."""
    session = session_of(SHOWN, *records)
    assert [
        session.is_ours(NS + after_ms * 10**6) for after_ms in (0, 400, 490, 500, 1999, 2000, 2010, 60_000)
    ] == [False, False, True, True, True, True, False, False]


def test_a_command_that_a_kill_ended_counts_for_nothing() -> None:
    """Nobody knows when it ended; the person may have worked on since."""
    interrupted = Refused(Kind.RUN_COMMAND, "interrupted")
    session = session_of(SHOWN, TAKEN, COMMAND, OperationEnded(0, interrupted, OVER))
    assert not session.is_ours(NS + 10**9)
