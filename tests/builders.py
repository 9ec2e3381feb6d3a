"""Small values that many core tests start from."""

from codingagent.model.events import Event
from codingagent.model.journal_entries import (
    AnswerTaken,
    OperationEnded,
    Record,
    RequestWritten,
    SessionStarted,
    TurnEnded,
)
from codingagent.model.session_fold import replay
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings
from codingagent.prompt import file_contents, render
from codingagent.prompt.file_list import Listing

SESSION_ID = "a1b2c3d4"
CREATED_AT = "2025-01-15T10:30:00Z"
LATER = "2025-01-15T10:35:00Z"

ENVIRONMENT = {"System": "Linux", "Sandbox": "bubblewrap", "Check": "", "Network": "off: commands have none"}
BUDGET = Settings()


def started(task: str = "Create a calculator") -> SessionStarted:
    return SessionStarted(SESSION_ID, task, "/work", CREATED_AT)


def turn(*events: Event, sequence: int = 1, notes: tuple[str, ...] = ()) -> tuple[Record, ...]:
    """Return the records of one whole turn."""
    return (
        RequestWritten(sequence, LATER),
        AnswerTaken(sequence, f"reply-{sequence}.txt", f"digest-{sequence}", LATER),
        *(OperationEnded(index, event, LATER) for index, event in enumerate(events)),
        TurnEnded(sequence, notes, LATER),
    )


def session_of(*records: Record, task: str = "Create a calculator") -> Session:
    session = replay((started(task), *records))
    assert session is not None
    return session


def listing_of(*paths: str) -> Listing:
    return Listing(dict.fromkeys(paths, 10))


def context_of(
    *views: file_contents.FileView, listing: Listing | None = None, unread: tuple[str, ...] = ()
) -> render.Material:
    return render.Material(listing or listing_of(), views, unread, ENVIRONMENT)
