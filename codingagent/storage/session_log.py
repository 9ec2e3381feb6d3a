"""A session's journal together with the state folded from it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from codingagent.model.journal_entries import Record
from codingagent.model.session_fold import fold
from codingagent.model.session_state import Session

if TYPE_CHECKING:
    from codingagent.storage.journal import Journal

Tell: TypeAlias = Callable[[Record, Session], object]
"""Show a record, with the session's state after it."""


class SessionLog:
    """A session's journal, if it is kept, and the state folded from all its records."""

    def __init__(
        self,
        journal: "Journal | None",
        session: Session,
        tell: Tell = lambda _record, _session: None,
    ) -> None:
        self._journal = journal
        self.session = session
        self._tell = tell

    def record(self, record: Record) -> None:
        """Append a record, update the state, and tell; if it can't be written, the state is unchanged."""
        # Fold first: a record that can't follow must not be written, or the journal is damaged for
        # good.
        after = fold(self.session, record)
        if self._journal is not None:
            self._journal.append(record)
        self.session = after
        self._tell(record, after)

    def has_grown(self) -> bool:
        """Return whether another process has added records."""
        return self._journal is not None and self._journal.has_grown()

    def catch_up(self) -> list[tuple[Record, Session]]:
        """Take the records that another process has added into the state, and return them.

        With each comes the state after it.
        """
        found: list[tuple[Record, Session]] = []
        for record in () if self._journal is None else self._journal.read_on():
            self.session = fold(self.session, record)
            found.append((record, self.session))
        return found

    def sync(self) -> None:
        if self._journal is not None:
            self._journal.sync()

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()


class UnkeptLog(SessionLog):
    """A log for single operations that belong to no session: it keeps nothing, and has no state."""

    def __init__(self) -> None:
        self._journal = None

    def record(self, record: Record) -> None:
        """Keep nothing."""
