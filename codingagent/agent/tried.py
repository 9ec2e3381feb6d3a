"""What a candidate did: an answer that was executed in a copy of the workspace, as its own journal tells."""

from collections.abc import Iterator

from msgspec import Struct

from codingagent.model import check_outcome, events, plain_text, session_state
from codingagent.model import journal_entries as entries
from codingagent.storage.homes import Home

ANSWER = "answer.txt"
_WORDS_SHOWN = 80


class Tried(Struct, frozen=True):
    """A candidate, and the records of its own since it began; without a session its copy is not whole yet."""

    began: entries.CandidateBegan
    home: Home
    session: session_state.Session | None = None
    records: tuple[entries.Record, ...] = ()

    @property
    def state(self) -> str:
        """What it is at, in words; empty if its answer was executed to the end."""
        if (session := self.session) is None:
            return "was interrupted before it began"
        if session.is_awaiting_approval and session.asked is not None:
            asked = session.asked.question
            return f"asks you: {asked.kind} {asked.subject} ({'; '.join(asked.reasons)})"
        if session.phase is session_state.Phase.EXECUTING or self.home.mailbox.has(ANSWER):
            return "was interrupted"
        if any(isinstance(each, entries.TurnEnded) for each in self.records):
            return ""
        rejected = [each.reason for each in self.records if isinstance(each, entries.AnswerSetAside)]
        return f"is no answer: {rejected[-1]}" if rejected else "was interrupted"

    def awaits(self, sequence: int) -> bool:
        """Return whether an answer to this request of its own, later than the session's, is awaited."""
        session = self.session
        is_waiting = session is not None and session.is_awaiting_answer and session.sequence == sequence
        return is_waiting and sequence > self.began.sequence

    @property
    def before(self) -> str:
        """The checkpoint of its copy before its first operation; empty if it changed nothing."""
        taken = (each for each in self.records if isinstance(each, entries.CheckpointTaken) and each.before)
        return next((each.name for each in taken), "")

    @property
    def after(self) -> str:
        return self.session.checkpoints.latest if self.session and self.before else ""

    def outcomes(self) -> "Iterator[tuple[entries.OperationStarted | None, _Ended]]":
        """Yield what came of its operations, and of its last check, each with the record of its start."""
        started: entries.OperationStarted | None = None
        checks: list[tuple[entries.OperationStarted | None, _Ended]] = []
        for record in self.records:
            if isinstance(record, entries.OperationStarted):
                started = record
            elif isinstance(record, entries.CheckEnded):
                checks.append((started, record))
            elif isinstance(record, entries.OperationEnded):
                yield started, record
                started = None
        if self.session is not None and self.session.checked is not None:
            yield from checks[-1:]

    @property
    def is_green(self) -> bool:
        """Whether the person's check ran on its files last and succeeded."""
        check = self.session.checked if self.session else None
        return not self.state and isinstance(check, events.CommandRan) and events.succeeded(check)

    def told(self) -> str:
        """Return in a line what is to be compared, but for its files."""
        if self.state or self.session is None:
            return self.state
        check, records = self.session.checked, [record for _, record in self.outcomes()]
        ended = [record.event for record in records]
        said = "check green" if self.is_green else "no check ran"
        if isinstance(check, events.CommandRan) and not self.is_green:
            names = check_outcome.failures_in(check).names
            said = f"check FAILS {plain_text.some(names, check_outcome.NAMED)}".rstrip()
        operations = (each.event for each in records if isinstance(each, entries.OperationEnded))
        failed = sum(not events.succeeded(each) for each in operations)
        took_s = sum(each.duration_s for each in ended if isinstance(each, events.CommandRan))
        words = [e.text for e in ended if isinstance(e, events.MessageShown)]
        words += [e.summary for e in ended if isinstance(e, events.Finished)]
        parts = said, f"{failed} failed" * bool(failed), f"commands took {took_s:.1f} s" * bool(took_s)
        own = (f'"{plain_text.one_line(each, _WORDS_SHOWN)}"' for each in words[-1:])
        return ", ".join(filter(None, (*parts, *own)))


_Ended = entries.OperationEnded | entries.CheckEnded


def tried(home: Home, session_id: str, began: entries.CandidateBegan) -> Tried:
    """Return a candidate of a session as far as it has come; WorkError if its journal is damaged."""
    own = Home.of(home.sessions.folder / session_id / "candidates" / str(began.number) / "home")
    if not own.root.is_dir():
        return Tried(began, own)
    records = [*own.sessions.records(session_id)]
    # What came before it is the session's own.
    return Tried(began, own, own.sessions.load(session_id), tuple(records[records.index(began) :]))
