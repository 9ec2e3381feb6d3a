"""What a candidate did: an answer that was executed in a copy of the workspace, as its own journal tells."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from codingagent.model import events
from codingagent.model.check_outcome import failures_in
from codingagent.model.journal_entries import (
    AnswerSetAside,
    CandidateBegan,
    CheckEnded,
    CheckpointTaken,
    OperationEnded,
    OperationStarted,
    Record,
    TurnEnded,
)
from codingagent.model.session_state import Phase, Session
from codingagent.storage.homes import Home

ANSWER = "answer.txt"
_FAILURES_NAMED = 3


class Tried(Struct, frozen=True):
    """A candidate, and the records of its own since it began; without a session its copy is not whole yet."""

    number: int
    sequence: int
    digest: str
    folder: Path
    home: Home
    session: Session | None = None
    records: tuple[Record, ...] = ()

    @property
    def state(self) -> str:
        """What it is at, in words; empty if it has ended."""
        session = self.session
        if session is None:
            return "was interrupted before it began"
        for record in self.records:
            if isinstance(record, AnswerSetAside):
                return f"is no answer: {record.reason}"
        if session.phase is Phase.AWAITING_APPROVAL and session.asked is not None:
            question = session.asked.question
            return f"asks you: {question.kind} {question.subject} ({'; '.join(question.reasons)})"
        is_over = any(isinstance(record, TurnEnded) for record in self.records)
        return "" if is_over and session.phase is not Phase.EXECUTING else "was interrupted"

    @property
    def is_interrupted(self) -> bool:
        return self.state.startswith("was interrupted")

    @property
    def before(self) -> str:
        """The checkpoint of its copy before its first operation; empty if it changed nothing."""
        taken = (each for each in self.records if isinstance(each, CheckpointTaken) and each.before)
        return next((each.name for each in taken), "")

    @property
    def after(self) -> str:
        return self.session.checkpoints.latest if self.session and self.before else ""

    @property
    def check(self) -> events.Event | None:
        ran = [each.event for each in self.records if isinstance(each, CheckEnded)]
        return ran[-1] if ran else None

    @property
    def is_green(self) -> bool:
        """Whether the person's check ran on its files last and succeeded."""
        check = self.check
        return not self.state and isinstance(check, events.CommandRan) and events.succeeded(check)

    @property
    def ended(self) -> TurnEnded:
        return [each for each in self.records if isinstance(each, TurnEnded)][-1]

    def outcomes(self) -> Iterator[tuple[OperationStarted | None, OperationEnded | CheckEnded]]:
        """Yield what came of its operations and of its last check, each with the record of its start."""
        started: OperationStarted | None = None
        last: tuple[OperationStarted | None, CheckEnded] | None = None
        for record in self.records:
            match record:
                case OperationStarted():
                    started = record
                case OperationEnded():
                    yield started, record
                    started = None
                case CheckEnded():
                    last, started = (started, record), None
                case _:
                    pass
        if last is not None:
            yield last

    def told(self) -> str:
        """Return in a line what is to be compared, but for its files."""
        if self.state:
            return self.state
        check = self.check
        said = "no check ran"
        if isinstance(check, events.CommandRan):
            names = failures_in(check).names[:_FAILURES_NAMED]
            said = "check green" if events.succeeded(check) else f"check FAILS {', '.join(names)}".rstrip()
        ended = [each.event for each in self.records if isinstance(each, OperationEnded)]
        failed = sum(not events.succeeded(each) for each in ended)
        ran = [*ended, check]
        took_s = sum(each.duration_s for each in ran if isinstance(each, events.CommandRan))
        words = [e.summary for e in ended if isinstance(e, events.Finished) and e.summary]
        words += [e.text for e in ended if isinstance(e, events.MessageShown)]
        parts = [said, f"{failed} of {len(ended)} operations failed" if failed else ""]
        parts += [f"commands took {took_s:.1f} s" if took_s else ""]
        parts += [f'"{" ".join(words[0].split())[:80]}"' if words else ""]
        return ", ".join(filter(None, parts))


def folder_of(home: Home, session_id: str, number: int) -> Path:
    return home.sessions.folder / session_id / "candidates" / str(number)


def tried(home: Home, session_id: str, began: CandidateBegan) -> Tried:
    """Return a candidate of a session as far as it has come; WorkError if its journal is damaged."""
    folder = folder_of(home, session_id, began.number)
    own = Home.of(folder / "home")
    found = Tried(began.number, began.sequence, began.digest, folder, own)
    if not own.root.is_dir():
        return found
    records = [*own.sessions.records(session_id)]
    # What came before it is the session's own.
    [began_at] = [at for at, each in enumerate(records) if each == began]
    state = own.sessions.load(session_id)
    return Tried(began.number, began.sequence, began.digest, folder, own, state, tuple(records[began_at:]))
