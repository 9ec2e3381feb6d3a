"""The history of a session for people: turns with all that happened in them, and what came between."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model import journal_entries as journal
from codingagent.model.effects import changed_paths
from codingagent.model.events import Event


class Asking(Struct, frozen=True):
    """A question to the person, and their answer; None while it waits."""

    asked: journal.ApprovalAsked
    answered: journal.ApprovalAnswered | None = None


Item = journal.OperationEnded | journal.CheckEnded | Asking


class TurnTold(Struct, frozen=True):
    """One answer, what it asked for and the outcomes, in order. `ended_at` is empty until it is done."""

    sequence: int
    reply_name: str
    at: str
    ended_at: str = ""
    items: tuple[Item, ...] = ()
    notes: tuple[str, ...] = ()
    ended_with: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[str, ...]:
        """Files that changed in it, no matter what changed them, as far as the record says."""
        return tuple(dict.fromkeys((*changed_paths(self.results), *self.ended_with)))

    @property
    def results(self) -> tuple[Event, ...]:
        return tuple(item.event for item in self.items if isinstance(item, journal.OperationEnded))

    @property
    def checked(self) -> Event | None:
        """The outcome of the person's check, if it was run."""
        checks = [item.event for item in self.items if isinstance(item, journal.CheckEnded)]
        return checks[-1] if checks else None


Entry = (
    TurnTold
    | journal.PersonSaid
    | journal.AnswerSetAside
    | journal.UndoEnded
    | journal.SessionReopened
    | journal.SessionClosed
)


def entries(records: Iterable[journal.Record]) -> list[Entry]:
    """Return what happened in a session, oldest first."""
    found: list[Entry] = []
    turn = -1
    items: list[Item] = []
    for record in records:
        match record:
            case journal.RunStarted():
                turn, items = len(found), []
                found.append(TurnTold(1, journal.MESSAGE_NAME, record.at))
            case journal.AnswerTaken():
                turn, items = len(found), []
                found.append(TurnTold(record.sequence, record.name, record.at))
            case journal.OperationEnded() | journal.CheckEnded():
                items.append(record)
            case journal.ApprovalAsked():
                items.append(Asking(record))
            case journal.ApprovalAnswered() if items and isinstance(items[-1], Asking):
                items[-1] = replace(items[-1], answered=record)
            case journal.TurnEnded():
                found[turn] = _with(found[turn], items, record)
                turn = -1
            case journal.RefreshAsked(unsays=True):
                last = max(
                    (n for n, each in enumerate(found) if isinstance(each, journal.PersonSaid)),
                    default=-1,
                )
                if last >= 0:
                    said = found[last]
                    assert isinstance(said, journal.PersonSaid)
                    found[last] = replace(said, text=f"{said.text} (withdrawn)".strip())
            case (
                journal.PersonSaid()
                | journal.AnswerSetAside()
                | journal.UndoEnded()
                | journal.SessionReopened()
                | journal.SessionClosed()
            ):
                found.append(record)
            case _:
                pass
    if turn >= 0:
        found[turn] = _with(found[turn], items)
    return found


def _with(entry: Entry, items: list[Item], ended: journal.TurnEnded | None = None) -> Entry:
    assert isinstance(entry, TurnTold), "it is where a turn began"
    told = replace(entry, items=tuple(items))
    if ended is None:
        return told
    return replace(told, ended_at=ended.at, notes=ended.notes, ended_with=ended.changed)
