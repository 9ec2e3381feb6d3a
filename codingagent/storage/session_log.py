"""A session's journal together with the state that it says."""

from typing import Protocol

from codingagent.model.journal_entries import Record
from codingagent.model.session_state import Session, fold


class JournalLike(Protocol):
    """One session's records."""

    def append(self, record: Record) -> None: ...
    def sync(self) -> None: ...


class Ledger:
    """A session's journal together with what it says: `session` is the fold of all that it holds."""

    def __init__(self, journal: JournalLike, session: Session) -> None:
        self._journal = journal
        self.session = session

    def record(self, record: Record) -> None:
        """Add a record.

        Raises:
            WorkError: if it can't be written; the session is then as before.
        """
        # What can't follow must not be written either: the record would be damaged for good.
        after = fold(self.session, record)
        self._journal.append(record)
        self.session = after

    def sync(self) -> None:
        """Make all records durable."""
        self._journal.sync()
