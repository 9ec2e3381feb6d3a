"""A session's state, folded from the records of its journal. Resuming folds them again.

How it works. Phases follow one another in a circle until COMPLETE:

    REQUEST_DUE --RequestWritten--> AWAITING_ANSWER --AnswerTaken--> EXECUTING
    EXECUTING --TurnEnded--> REQUEST_DUE
    EXECUTING --TurnEnded, with Finished and nothing said meanwhile--> COMPLETE
    COMPLETE --SessionReopened--> REQUEST_DUE
    AWAITING_ANSWER --UndoEnded, PersonSaid, RefreshAsked, CheckNamed--> REQUEST_DUE

    EXECUTING --ApprovalAsked--> AWAITING_APPROVAL --ApprovalAnswered--> EXECUTING

Within EXECUTING each operation leaves OperationStarted (only if it changes something) and
OperationEnded; the person's own check leaves OperationStarted and CheckEnded. A start without an end
was interrupted by a kill: `Session.started`.

Over 500 lines: it is one state with one function that folds each record into it.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Never, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from codingagent.model.append_list import AppendList
from codingagent.model.checkpoint_state import CheckpointState
from codingagent.model.effects import PathChange, file_changes, may_change_anything
from codingagent.model.events import (
    CommandRan,
    Event,
    FileFetched,
    FileRequested,
    Finished,
    MessageShown,
    Refused,
    succeeded,
)
from codingagent.model.journal_entries import (
    MESSAGE_NAME,
    AnswerSetAside,
    AnswerTaken,
    ApprovalAnswered,
    ApprovalAsked,
    CheckEnded,
    CheckNamed,
    CheckpointTaken,
    EarlierFile,
    GrantsRevoked,
    InboxFound,
    OperationEnded,
    OperationStarted,
    PersonSaid,
    ProtectedChange,
    ProtectedFound,
    ProtectedSettled,
    Protocol,
    Record,
    RefreshAsked,
    RequestWritten,
    RunStarted,
    SessionReopened,
    SessionStarted,
    TurnEnded,
    UndoBegan,
    UndoEnded,
)
from codingagent.model.operations import Kind
from codingagent.model.plain_text import json_length

_REOPENED = (
    "the person goes on with the task after your DONE: what FAILED above, or is missing from the"
    " task, is still to be done"
)


_NONE: AppendList[Never] = AppendList()


class Phase(Enum):
    """The step of its cycle that a session is in."""

    REQUEST_DUE = "outbox due"
    AWAITING_ANSWER = "awaiting reply"
    EXECUTING = "executing"
    AWAITING_APPROVAL = "awaiting approval"
    COMPLETE = "complete"


class Said(Struct, frozen=True):
    """The person's words or files, and the request that they came with."""

    sequence: int
    text: str
    errand: str = ""
    attached: tuple[str, ...] = ()
    is_late: bool = False
    """That request was already out and was rewritten: the answer may be to the earlier version."""


class Session(Struct, frozen=True):
    """A session between two records. `results` are those of the current turn, or of the last one.

    `touched` holds every path that the session created, changed or read. `last_digest` is the digest of
    the answer taken last.
    """

    session_id: str
    task: str
    workspace: str
    created_at: str
    updated_at: str
    sequence: int = 1
    phase: Phase = Phase.REQUEST_DUE
    reply: AnswerTaken | None = None
    started: OperationStarted | None = None
    results: AppendList[Event] = _NONE
    ends: AppendList[OperationEnded] = _NONE
    """The records of these results."""
    returned: int = 0
    """Total characters of contents and outputs in these results."""
    notes: tuple[str, ...] = ()
    touched: frozenset[str] = frozenset()
    last_digest: str = ""
    earlier: tuple[EarlierFile, ...] = ()
    asked: ApprovalAsked | None = None
    answered: ApprovalAnswered | None = None
    granted: frozenset[str] = frozenset()
    """What the person approved with "always", in words, without what they revoked."""
    policy: str = ""
    sandbox: str = ""
    network: bool = False
    tier: str = ""
    """What confined the last command."""
    checkpoints: CheckpointState = CheckpointState()
    cut: str = ""
    """The part that arrived of the block in which the last answer was truncated."""
    undoing: UndoBegan | None = None
    undos: int = 0
    """Undos since the last answer, and their net effect in words for the model."""
    undo_note: str = ""
    protocol: Protocol = "tags"
    is_run: bool = False
    """One message without a conversation: complete when that message is done."""
    said: tuple[Said, ...] = ()
    attached: tuple[str, ...] = ()
    """Files that the person attaches to the request that is due or waits."""
    check: str = ""
    checked: Event | None = None
    """The outcome of the check in this turn or the last one; None: it was not run."""
    is_failing: bool = False
    """The last run of the check failed."""
    checked_by: str = ""
    """The command of the last check."""
    checked_on: str = ""
    """The checkpoint of the files as they were when the check succeeded last; empty: there is none."""
    is_unchecked: bool = False
    """An operation or an undo has changed a file since the last check.

    After a check, commands count too: nothing shows what they did to files that no checkpoint holds.
    """
    known: Mapping[str, str] = field(default_factory=dict)
    """By path, the digests of files as the chat last saw or wrote them whole; empty: it deleted it."""
    parts: frozenset[str] = frozenset()
    """Files that a request showed in part because a guess chose them."""
    context: int = 0
    """Tokens for such files, and globs of those that are never chosen."""
    leave_out: tuple[str, ...] = ()
    conventions: bool = False
    """Requests show AGENTS.md, or a file like it."""
    requested: int = 0
    """The number of the last request written."""
    written: AppendList[OperationStarted] = _NONE
    """The file changes of this turn so far."""
    spans: AppendList[tuple[str, str]] = _NONE
    """Start and end of each command, check and undo that may have changed files."""
    changed: tuple[str, ...] = ()
    """Files that changed in the last turn, no matter what changed them."""
    agreed: frozenset[str] = frozenset()
    """Grants given to commands of the turn before they ran."""
    found: tuple[ProtectedChange, ...] = ()
    """Protected files that the turn changed without approval, once that was checked."""
    settled: ProtectedSettled | None = None
    """The decision on them."""

    @property
    def all_notes(self) -> tuple[str, ...]:
        """Return the notes of the next request: about the last answer, and about undos since."""
        return (*self.notes, *filter(None, (self.undo_note,)))

    @property
    def is_only_words(self) -> bool:
        """Whether the last answer was words for the person and nothing else, in a block or without."""
        events = self.results
        said = [event for event in events if isinstance(event, MessageShown)]
        rest = [event for event in events if not isinstance(event, MessageShown)]
        return bool(said) and all(isinstance(e, Refused) and e.kind is Kind.ANSWER for e in rest)

    @property
    def is_new(self) -> bool:
        """Return whether nothing has happened yet."""
        return self.sequence == 1 and self.phase is Phase.REQUEST_DUE

    @property
    def is_complete(self) -> bool:
        return self.phase is Phase.COMPLETE

    @property
    def is_executing(self) -> bool:
        return self.phase is Phase.EXECUTING

    @property
    def is_awaiting_answer(self) -> bool:
        return self.phase is Phase.AWAITING_ANSWER

    @property
    def is_awaiting_approval(self) -> bool:
        return self.phase is Phase.AWAITING_APPROVAL


def fold(session: Session | None, record: Record) -> Session:
    """Return the state after one more record.

    Raises:
        ValueError: if the record can't follow: this program did not write the journal.
    """
    if session is not None:
        return replace(_step(session, record), updated_at=record.at)
    match record:
        case SessionStarted():
            begun = Session(
                record.session_id,
                record.task,
                record.workspace,
                record.at,
                record.at,
                protocol=record.protocol,
                check=record.check,
                context=record.context,
                leave_out=record.leave_out,
                conventions=record.conventions,
            )
        case RunStarted():
            begun = Session(
                record.run_id,
                "",
                record.workspace,
                record.at,
                record.at,
                phase=Phase.EXECUTING,
                reply=AnswerTaken(1, MESSAGE_NAME, record.digest, record.at),
                is_run=True,
            )
        case _:
            raise ValueError("no start of a session")
    return replace(begun, policy=record.policy, sandbox=record.sandbox, network=record.network)


def no_request_waits(session: Session) -> str:
    """Return the message that no request waits to be sent, and what waits instead."""
    session_id, phase = session.session_id, session.phase.value
    return (
        f"session {session_id} has no request that waits; it is {phase}: see `codingagent show"
        f" {session_id}`"
    )


def replay(records: Iterable[Record]) -> Session | None:
    """Return the state after all records; None if there are none.

    Raises:
        ValueError: as `fold`.
    """
    session: Session | None = None
    for record in records:
        session = fold(session, record)
    return session


# The phases in which a record may come; records not listed may come in any.
_COMES_IN = {
    RequestWritten: (Phase.REQUEST_DUE,),
    # During a turn its own request is due anyway.
    PersonSaid: tuple(phase for phase in Phase if phase is not Phase.COMPLETE),
    RefreshAsked: (Phase.AWAITING_ANSWER,),
    AnswerTaken: (Phase.AWAITING_ANSWER,),
    OperationStarted: (Phase.EXECUTING,),
    OperationEnded: (Phase.EXECUTING,),
    CheckEnded: (Phase.EXECUTING,),
    # The question may be asked again: the file that the operation would change has changed.
    ApprovalAsked: (Phase.EXECUTING, Phase.AWAITING_APPROVAL),
    ApprovalAnswered: (Phase.AWAITING_APPROVAL,),
    # Found after a turn, it may come after the request.
    ProtectedFound: (Phase.EXECUTING,),
    ProtectedSettled: (Phase.EXECUTING,),
    CheckpointTaken: (
        Phase.EXECUTING,
        Phase.AWAITING_APPROVAL,
        Phase.AWAITING_ANSWER,
        Phase.COMPLETE,
    ),
    UndoBegan: (Phase.AWAITING_ANSWER, Phase.COMPLETE),
    # REQUEST_DUE: words or a refresh came while an undo was being finished.
    UndoEnded: (Phase.REQUEST_DUE, Phase.AWAITING_ANSWER, Phase.COMPLETE),
    TurnEnded: (Phase.EXECUTING,),
    SessionReopened: (Phase.COMPLETE,),
}


def _step(session: Session, record: Record) -> Session:
    if session.phase not in _COMES_IN.get(type(record), (session.phase,)):
        raise ValueError(f"a {record.class_name} while the session is {session.phase.value}")
    match record:
        case InboxFound():
            return replace(session, earlier=record.files)
        case RequestWritten():
            known = _known_with_request(session, record)
            return replace(
                session,
                phase=Phase.AWAITING_ANSWER,
                checkpoints=session.checkpoints.with_request(),
                known=known,
                parts=session.parts.union(record.parts),
                requested=record.sequence,
            )
        case PersonSaid():
            return _hear(session, record)
        case RefreshAsked():
            return replace(session, phase=Phase.REQUEST_DUE)
        case GrantsRevoked():
            return replace(session, granted=session.granted.difference(record.grants))
        case CheckNamed():
            # The waiting request tells of the old check.
            waits = session.phase is Phase.AWAITING_ANSWER
            phase = Phase.REQUEST_DUE if waits else session.phase
            return replace(session, check=record.command, phase=phase)
        case AnswerTaken():
            return replace(
                session,
                phase=Phase.EXECUTING,
                attached=(),
                checked=None,
                checkpoints=session.checkpoints.with_answer(),
                reply=record,
                last_digest=record.digest,
                results=_NONE,
                ends=_NONE,
                returned=0,
                notes=(),
                undos=0,
                undo_note="",
                written=_NONE,
                agreed=frozenset(),
                found=(),
                settled=None,
            )
        case OperationStarted():
            checkpoints = session.checkpoints.with_start(record)
            return replace(session, started=record, checkpoints=checkpoints)
        case OperationEnded():
            event = record.event
            tier = event.sandbox if isinstance(event, CommandRan) else session.tier
            return replace(
                session,
                started=None,
                asked=None,
                answered=None,
                results=session.results.with_one(event),
                ends=session.ends.with_one(record),
                returned=session.returned + _returned(event),
                tier=tier,
                is_unchecked=session.is_unchecked or _may_undo_check(session, event),
                written=_written(session, event),
                spans=_spans(session, event, record.at),
            )
        case CheckEnded():
            return replace(
                session,
                started=None,
                checked=record.event,
                is_failing=not succeeded(record.event),
                checked_by=record.command,
                checked_on="",
                is_unchecked=False,
                spans=_spans(session, record.event, record.at),
            )
        case ApprovalAsked():
            phase = Phase.AWAITING_APPROVAL
            return replace(session, phase=phase, asked=record, answered=None)
        case ApprovalAnswered():
            return _answer(session, record)
        case CheckpointTaken():
            return _keep(session, record)
        case ProtectedFound():
            return replace(session, found=record.changes)
        case ProtectedSettled():
            is_unchecked = session.is_unchecked or bool(record.put_back)
            return replace(
                session, asked=None, answered=None, settled=record, is_unchecked=is_unchecked
            )
        case UndoBegan():
            return replace(session, undoing=record)
        case UndoEnded():
            # A waiting request is rewritten with the files as they are now.
            waits = session.phase is Phase.AWAITING_ANSWER
            phase = Phase.REQUEST_DUE if waits else session.phase
            notes = (*session.notes, *record.notes) if record.told is None else session.notes
            return replace(
                session,
                phase=phase,
                undoing=None,
                spans=_with_undo(session, record.at),
                undos=session.undos + 1,
                undo_note=record.told or "",
                notes=notes,
                is_unchecked=True,
            )
        case TurnEnded():
            return _end_turn(session, record)
        case SessionReopened():
            return replace(
                session,
                phase=Phase.REQUEST_DUE,
                sequence=session.sequence + 1,
                notes=(*session.notes, _REOPENED),
            )
        case AnswerSetAside():
            return session
        case SessionStarted() | RunStarted():
            raise ValueError("a second start of a session")
        case _:
            assert_never(record)


def _hear(session: Session, record: PersonSaid) -> Session:
    """Add words and files to the request that is due; one that waits becomes due again."""
    waits = session.phase is Phase.AWAITING_ANSWER
    # What is said during a turn goes into the request after it.
    is_busy = session.phase in (Phase.EXECUTING, Phase.AWAITING_APPROVAL)
    sequence = session.sequence + is_busy
    is_late = sequence == session.requested
    said = Said(sequence, record.text, record.errand, record.attached, is_late)
    return replace(
        session,
        phase=Phase.REQUEST_DUE if waits else session.phase,
        said=(*session.said, said),
        attached=tuple(dict.fromkeys((*session.attached, *record.attached))),
        touched=session.touched.union(record.attached),
    )


def _may_undo_check(session: Session, event: Event) -> bool:
    """Return whether the last check may no longer hold; a command counts only after a check has run."""
    if file_changes((event,)):
        return True
    return bool(session.checked_by) and may_change_anything(event)


def _returned(event: Event) -> int:
    match event:
        case FileFetched():
            return json_length(event.content)
        case CommandRan():
            return json_length(event.stdout or "") + json_length(event.stderr or "")
        case _:
            return 0


def _answer(session: Session, record: ApprovalAnswered) -> Session:
    asked = session.asked
    if asked is None or asked.index != record.index:
        raise ValueError("an answer to what was not asked")
    lasts = record.answer.decision == "always"
    granted = session.granted.union(asked.question.grants) if lasts else session.granted
    agreed = session.agreed
    if record.answer.decision != "no" and asked.question.kind is Kind.RUN_COMMAND:
        agreed = agreed.union(asked.question.grants)
    return replace(session, phase=Phase.EXECUTING, answered=record, granted=granted, agreed=agreed)


def _keep(session: Session, record: CheckpointTaken) -> Session:
    if session.phase in (Phase.AWAITING_ANSWER, Phase.COMPLETE) and record.before:
        raise ValueError("a checkpoint before a turn that has not begun")
    # The check comes last in a turn, so that the first one after it shows what it ran on.
    is_first = not (record.before or session.checked_on) and session.checked is not None
    is_told = session.phase is Phase.AWAITING_ANSWER
    return replace(
        session,
        checkpoints=session.checkpoints.with_one(record, is_told=is_told),
        checked_on=record.name if is_first and not session.is_failing else session.checked_on,
    )


def _end_turn(session: Session, record: TurnEnded) -> Session:
    done = any(isinstance(event, Finished) for event in session.results)
    # The DONE referred to the files as they were before.
    done = done and not (session.settled and session.settled.put_back)
    touched = session.touched.union(*map(_paths, session.results))
    ended = replace(
        session,
        reply=None,
        notes=record.notes,
        changed=record.changed,
        touched=touched,
        cut=record.cut,
        checkpoints=session.checkpoints.with_turn_ended(),
        known=_known_after(session.known, session.written),
    )
    # No request has included yet what was said during the turn: the DONE did not take it into
    # account.
    is_unheard = any(said.sequence > session.sequence for said in session.said)
    if done and is_unheard:
        ended = replace(ended, notes=(*record.notes, _REOPENED))
    elif done or session.is_run:
        return replace(ended, phase=Phase.COMPLETE)
    return replace(ended, phase=Phase.REQUEST_DUE, sequence=session.sequence + 1)


def _known_after(
    known: Mapping[str, str], written: Iterable[OperationStarted]
) -> Mapping[str, str]:
    """Return what the chat knows of files after its own changes, in their order."""
    found = dict(known)
    for start in written:
        kinds = {change.path: change.after for change in _made(start)}
        were = [found.get(change.path) for change in start.changes]
        for change in start.changes:
            kind = kinds.get(change.path)
            is_known = change.path in found and not start.is_unseen
            if kind == "moved" and change.after not in were:
                found.pop(change.path, None)
            elif kind != "part" or is_known:
                found[change.path] = change.after or ""
    return found


def _made(start: OperationStarted) -> tuple[PathChange, ...]:
    return () if start.event is None else file_changes((start.event,))


def _known_with_request(session: Session, record: RequestWritten) -> Mapping[str, str]:
    """Return what the chat knows once it has the request, including files that the person changed."""
    told = {e.subject: e.digest for e in session.results if isinstance(e, Refused) and e.digest}
    shown = {file.path: file.digest for file in record.shown}
    return {**session.known, **told, **shown} if told or shown else session.known


def _written(session: Session, event: Event) -> AppendList[OperationStarted]:
    started = session.started
    is_change = bool(file_changes((event,)))
    return session.written.with_one(started) if started and is_change else session.written


def _spans(session: Session, event: Event, at: str) -> AppendList[tuple[str, str]]:
    """Return when commands ran, including one that has just ended; the end of a killed one is unknown."""
    started = session.started
    ran = started is not None and isinstance(event, CommandRan)
    return session.spans.with_one((started.at, at)) if started and ran else session.spans


def _with_undo(session: Session, at: str) -> AppendList[tuple[str, str]]:
    begun = session.undoing
    return session.spans if begun is None else session.spans.with_one((begun.at, at))


def _paths(event: Event) -> tuple[str, ...]:
    match event:
        case FileFetched():
            return (event.path,)
        case FileRequested():
            return event.paths
        case _:
            return tuple(each.path for each in file_changes((event,)) if each.after != "nothing")
