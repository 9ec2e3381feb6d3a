"""A session as it is told: its turns in order, with all that came of them, and what came between."""

from codingagent.model.events import CommandRan, FileCreated, FileDeleted, MessageShown
from codingagent.model.journal_entries import (
    AnswerSetAside,
    AnswerTaken,
    CheckEnded,
    OperationEnded,
    Record,
    RequestWritten,
    TurnEnded,
)
from codingagent.model.timeline import TurnTold, entries
from tests.builders import LATER, started

MADE = FileCreated("a", 1, replaced=False)
RAN = CommandRan("pytest", 0, "", 0.1)


def test_turns_are_told_in_order_the_one_under_way_too() -> None:
    """Design, the command line: `show` gives one session's turns, results, files touched."""
    made = OperationEnded(0, MADE, LATER)
    deleted = OperationEnded(1, FileDeleted("b"), LATER)
    checked = CheckEnded(RAN, LATER, "pytest")
    aside = AnswerSetAside("x", "why", LATER)
    said = OperationEnded(0, MessageShown("hi"), LATER)
    records: tuple[Record, ...] = (
        started(),
        RequestWritten(1, LATER),
        AnswerTaken(1, "one.txt", "c", LATER),
        made,
        deleted,
        checked,
        TurnEnded(1, ("n",), LATER),
        aside,
        RequestWritten(2, LATER),
        AnswerTaken(2, "two.txt", "d", LATER),
        said,
    )
    first = TurnTold(1, "one.txt", LATER, LATER, (made, deleted, checked), ("n",))
    second = TurnTold(2, "two.txt", LATER, "", (said,))
    assert entries(records) == [first, aside, second]
    assert (first.results, first.checked) == ((MADE, FileDeleted("b")), RAN)
    assert (second.results, second.checked) == ((MessageShown("hi"),), None)
    assert entries((started(),)) == []
