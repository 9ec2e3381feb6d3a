"""What a candidate did: an answer that was executed in a copy of the workspace, as its own journal tells."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from codingagent.agent.secrecy import secrecy_of
from codingagent.checkpoints import undo
from codingagent.errors import CodingAgentError, UsageError
from codingagent.model import check_outcome, events, plain_text, session_state
from codingagent.model import journal_entries as entries
from codingagent.storage.homes import Home

ANSWER = "answer.txt"
_WORDS_SHOWN, _NAMED = 80, 5


class Tried(Struct, frozen=True):
    """A candidate, and the records of its own since it began; without a session its copy is not whole yet."""

    began: entries.CandidateBegan
    home: Home
    session: session_state.Session | None = None
    records: tuple[entries.Record, ...] = ()
    damage: str = ""
    """Why its journal can't be read."""

    @property
    def asks(self) -> str:
        """What it asks the person, in words."""
        if self.session is None or not self.session.is_awaiting_approval or self.session.asked is None:
            return ""
        asked = self.session.asked.question
        return f"asks you: {asked.kind} {asked.subject} ({'; '.join(asked.reasons)})"

    @property
    def is_interrupted(self) -> bool:
        """Whether something of it is still to be done by itself."""
        if self.damage or self.asks or self.session is None:
            return not (self.damage or self.asks)
        mailbox, session, words = self.home.mailbox, self.session, (entries.TurnEnded, entries.AnswerSetAside)
        if not session.is_awaiting_answer:
            return not session.is_complete
        has_answer = mailbox.find_taken(session.session_id, session.sequence) or mailbox.has(ANSWER)
        return bool(has_answer) or not any(isinstance(each, words) for each in self.records)

    @property
    def state(self) -> str:
        """What it is at, in words; empty if its answer was executed to the end."""
        if self.damage or self.asks or self.is_interrupted:
            return self.damage or self.asks or "was interrupted"
        if any(isinstance(each, entries.TurnEnded) for each in self.records):
            return ""
        reasons = (each.reason for each in self.records if isinstance(each, entries.AnswerSetAside))
        return f"is no answer: {next(reasons, '')}"

    def awaits(self, sequence: int) -> bool:
        """Return whether an answer to this request of its own, later than the session's, is awaited."""
        own = self.session
        return own is not None and own.is_awaiting_answer and own.sequence == sequence > self.began.sequence

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

    def ended(self, changed: str, at: str) -> entries.CandidateEnded:
        """Return what is told of it, with what it `changed`, in words."""
        number, session = self.began.number, self.session
        outcome: entries.TrialOutcome = "asks" if self.asks else "refused"
        if self.state or session is None:
            return entries.CandidateEnded(number, outcome, self.state, "", "", "", False, at)
        check, records = session.checked, [record for _, record in self.outcomes()]
        found = [record.event for record in records]
        outcome, said = "unchecked", "check did not end" if check else "no check ran"
        if isinstance(check, events.CommandRan):
            names = check_outcome.failures_in(check).names
            said = f"check FAILS {plain_text.some(names, check_outcome.NAMED)}".rstrip()
            # It ran on its files last.
            outcome, said = ("green", "check green") if events.succeeded(check) else ("red", said)
        operations = (each.event for each in records if isinstance(each, entries.OperationEnded))
        failed = sum(not events.succeeded(each) for each in operations)
        took_s = sum(each.duration_s for each in found if isinstance(each, events.CommandRan))
        words = [e.text for e in found if isinstance(e, events.MessageShown)]
        words += [e.summary for e in found if isinstance(e, events.Finished)]
        own = "\n".join(words[-1:])
        parts = said, f"{failed} failed" * bool(failed), f"commands took {took_s:.1f} s" * bool(took_s)
        told = ", ".join(filter(None, (*parts, changed)))
        told += f'; "{plain_text.one_line(own, _WORDS_SHOWN)}"' * bool(own)
        waits = session.is_awaiting_answer and outcome != "green"
        sent = [each.egress for each in self.records if isinstance(each, entries.RequestWritten) and waits]
        egress, before, after = sent[-1] if sent else None, self.before, self.after
        return entries.CandidateEnded(
            number, outcome, told, own, before, after, waits, at, session.sequence, egress
        )


_Ended = entries.OperationEnded | entries.CheckEnded


def trials_of(session: session_state.Session) -> dict[int, entries.CandidateEnded | None]:
    """Return the candidates for the request that waits, and what came of each; UsageError if none waits."""
    session_state.check_request_waits(session)
    return dict(session.trials)


def named(home: Home, session: session_state.Session, number: int) -> Tried:
    """Return a candidate for the request that waits; UsageError if none is."""
    found = trials_of(session)
    if number not in found:
        have = plain_text.some([*map(str, found)], _NAMED) or "none, until `codingagent try FILE`"
        raise UsageError(f"there is no candidate {number} for the request that waits, only {have}")
    return tried(home, session, number)


def difference(home: Home, session: session_state.Session, old: int, new: int) -> str:
    """Return how the files of two candidates differ, without secrets; 0: the files before both."""
    ended = trials_of(session)
    first, last = ended.get(old or new), ended.get(new)
    before = first and (first.after if old else first.before)
    if not (before and last and last.after):
        why = "one of them changed nothing, or has not ended"
        raise UsageError(f"candidates {old} and {new} can't be compared: {why}")
    with undo.history_of(home, session) as (checkpoints, _):
        return secrecy_of(home.sessions.folder, session).hide_diffs(checkpoints.diff(before, last.after))


def folder_of(home: Home, session_id: str) -> Path:
    """Return where the candidates of a session are kept until it ends."""
    return home.sessions.folder / session_id / "candidates"


def tried(home: Home, session: session_state.Session, number: int) -> Tried:
    """Return a candidate of a session as far as it has come."""
    began, session_id = session.candidates[number - 1], session.session_id
    own = Home.of(folder_of(home, session_id) / str(number) / "home")
    if not own.root.is_dir():
        return Tried(began, own)
    try:
        records = [*own.sessions.records(session_id)]
        # What came before it is the session's own.
        return Tried(began, own, own.sessions.load(session_id), tuple(records[records.index(began) :]))
    except (CodingAgentError, ValueError) as fault:
        return Tried(began, own, damage=f"can't be read ({fault}): try its answer again")
