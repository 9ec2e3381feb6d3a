"""A session's state, folded from the records of its journal. To resume is to fold again.

How it works. Phases follow one another in a circle until COMPLETE:

    OUTBOX_DUE --OutboxWritten--> AWAITING_REPLY --ReplyTaken--> EXECUTING --TurnEnded--> OUTBOX_DUE
                                                                     (with Finished) --> COMPLETE
                                             (with Finished, and words said meanwhile) --> OUTBOX_DUE
    COMPLETE --SessionReopened--> OUTBOX_DUE
    AWAITING_REPLY --UndoEnded, PersonSaid, RefreshAsked--> OUTBOX_DUE

    EXECUTING --ApprovalAsked--> AWAITING_APPROVAL --ApprovalAnswered--> EXECUTING

Within EXECUTING each operation leaves OperationStarted (only if it changes something) and
OperationEnded; the person's own check leaves OperationStarted and CheckEnded. A start without its end
is what a kill left behind: `Session.started`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal, Never, assert_never

from codingagent.core.approval import Answer, Question, operation_id
from codingagent.core.events import (
    CommandRan,
    Event,
    FileCreated,
    FileDeleted,
    FileEdited,
    FileFetched,
    FileRequested,
    Finished,
    Interrupted,
    succeeded,
)
from codingagent.core.plain import json_length
from codingagent.core.results import result_of
from codingagent.core.rows import Row

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_REOPENED = (
    "the person goes on with the task after your [DONE]: what FAILED above, or is missing from the"
    " task, is still to be done"
)

_SESSION_ID = re.compile(r"[0-9a-f]{8}")


# How the message of a run is called, as long as it is kept.
MESSAGE_NAME = "message.json"


def is_session_id(text: str) -> bool:
    """Tells whether a text is a session id: eight hex digits in lower case."""
    return _SESSION_ID.fullmatch(text) is not None


_RUN_ID = re.compile(r"run_[0-9a-f]{12}")


def is_run_id(text: str) -> bool:
    """Tells whether a text is the id of a run: `run_` and twelve hex digits in lower case."""
    return _RUN_ID.fullmatch(text) is not None


Protocol = Literal["tags", "json"]
"""What a session's requests ask to be answered in."""


# --- records ---------------------------------------------------------------------------------------
# `at` is UTC, ISO 8601 with Z.


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """The first record of every journal."""

    session_id: str
    task: str
    workspace: str
    at: str
    policy: str = ""
    """A preset's name or a file's path; empty: as the settings say when it goes on."""
    sandbox: str = ""
    network: bool = False
    protocol: Protocol = "tags"
    check: str = ""
    """The person's command that tells whether the work is right; empty: none."""
    kind: Literal["session_started"] = "session_started"


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The first record of a run: one message, executed by itself.

    `digest` is the SHA-256 of the message, which lies beside the journal until all of it is done.
    """

    run_id: str
    workspace: str
    digest: str
    at: str
    policy: str
    sandbox: str
    network: bool
    kind: Literal["run_started"] = "run_started"


@dataclass(frozen=True, slots=True)
class LyingFile:
    """A file as it lay in the inbox before the session began; left alone until it changes."""

    name: str
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class InboxFound:
    """What lay in the inbox when the session began: answers to something else."""

    files: tuple[LyingFile, ...]
    at: str
    kind: Literal["inbox_found"] = "inbox_found"


@dataclass(frozen=True, slots=True)
class OutboxWritten:
    """A request is in place, whole."""

    sequence: int
    at: str
    kind: Literal["outbox_written"] = "outbox_written"


@dataclass(frozen=True, slots=True)
class PersonSaid:
    """Words of the person, and files of the workspace, for the next request; either may be missing.

    A request that waits is written anew with them. `errand` names what another process handed over.
    """

    text: str
    attached: tuple[str, ...]
    at: str
    errand: str = ""
    kind: Literal["person_said"] = "person_said"


@dataclass(frozen=True, slots=True)
class RefreshAsked:
    """The request that waits is to be written anew, from the workspace as it is now."""

    at: str
    kind: Literal["refresh_asked"] = "refresh_asked"


@dataclass(frozen=True, slots=True)
class ReplyTaken:
    """A reply lies in inbox/processed/ under `name`; `digest` is the SHA-256 of its bytes."""

    sequence: int
    name: str
    digest: str
    at: str
    files: tuple[str, ...] = ()
    """The names by which paths in another format were made out, if there were such."""
    kind: Literal["reply_taken"] = "reply_taken"


@dataclass(frozen=True, slots=True)
class ReplySetAside:
    """A file of the inbox was not taken, and lies in inbox/rejected/ under `name`."""

    name: str
    reason: str
    at: str
    kind: Literal["reply_set_aside"] = "reply_set_aside"


@dataclass(frozen=True, slots=True)
class OperationStarted:
    """An operation is about to change something.

    A change of a file carries the digests of its bytes `before` and `after` (None: no file) and the
    event that will be true once it is done, so that a look at the file settles a doubt. A command
    carries none of these.
    """

    index: int
    tag: str
    subject: str
    at: str
    before: str | None = None
    after: str | None = None
    event: Event | None = None
    operation_id: str = ""
    real: str = ""
    """The path without links, where the subject has one on its way."""
    kind: Literal["operation_started"] = "operation_started"


@dataclass(frozen=True, slots=True)
class OperationEnded:
    """What came of the item at `index` of the reply, counted from 0."""

    index: int
    event: Event
    at: str
    operation_id: str = ""
    """What the reply itself calls it, if it does."""
    kind: Literal["operation_ended"] = "operation_ended"

    @property
    def name(self) -> str:
        """What it is called: by its own id, or by its place."""
        return self.operation_id or operation_id(self.index)


@dataclass(frozen=True, slots=True)
class CheckEnded:
    """What came of the person's check after this turn; it had started under the tag CHECK."""

    event: Event
    at: str
    command: str = ""
    kind: Literal["check_ended"] = "check_ended"


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """The item at `index` waits for a yes."""

    index: int
    question: Question
    at: str
    operation_id: str = ""
    kind: Literal["approval_asked"] = "approval_asked"

    @property
    def name(self) -> str:
        """What it is called: by its own id, or by its place."""
        return self.operation_id or operation_id(self.index)


@dataclass(frozen=True, slots=True)
class ApprovalAnswered:
    """The answer to what was asked last."""

    index: int
    answer: Answer
    at: str
    kind: Literal["approval_answered"] = "approval_answered"


@dataclass(frozen=True, slots=True)
class CheckpointTaken:
    """The workspace as it was `before` or after a turn is kept under `name`.

    `left_out` says in words what it does not hold.
    """

    sequence: int
    before: bool
    name: str
    left_out: tuple[str, ...]
    at: str
    uncovered: tuple[str, ...] = ()
    """Files that operations of the turn changed and that it does not hold."""
    kind: Literal["checkpoint_taken"] = "checkpoint_taken"


@dataclass(frozen=True, slots=True)
class UndoBegan:
    """The files that these steps changed are about to be as they were before them.

    A step is a turn, or an earlier undo; `steps` are their places in the journal's `steps`. `name` is the
    checkpoint of the workspace as it is now.
    """

    steps: tuple[int, ...]
    name: str
    at: str
    force: bool = False
    """Also what someone changed again since is taken back."""
    kind: Literal["undo_began"] = "undo_began"


@dataclass(frozen=True, slots=True)
class UndoEnded:
    """The undo is done; `name` is the checkpoint after it, `notes` say it to the model."""

    name: str
    notes: tuple[str, ...]
    at: str
    kind: Literal["undo_ended"] = "undo_ended"


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """All items of the reply are done; `notes` are about the reply as a whole."""

    sequence: int
    notes: tuple[str, ...]
    at: str
    cut: str = ""
    """The text of a block within which the reply was cut short, kept until it is gone on with."""
    kind: Literal["turn_ended"] = "turn_ended"


@dataclass(frozen=True, slots=True)
class SessionReopened:
    """The person goes on with a session that was complete."""

    at: str
    kind: Literal["session_reopened"] = "session_reopened"


Record = (
    SessionStarted
    | RunStarted
    | InboxFound
    | OutboxWritten
    | PersonSaid
    | RefreshAsked
    | ReplyTaken
    | ReplySetAside
    | OperationStarted
    | OperationEnded
    | CheckEnded
    | ApprovalAsked
    | ApprovalAnswered
    | CheckpointTaken
    | UndoBegan
    | UndoEnded
    | TurnEnded
    | SessionReopened
)


# --- state -----------------------------------------------------------------------------------------


_NONE: Row[Never] = Row()


class Phase(Enum):
    """What a session is doing."""

    OUTBOX_DUE = "outbox due"
    AWAITING_REPLY = "awaiting reply"
    EXECUTING = "executing"
    AWAITING_APPROVAL = "awaiting approval"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Said:
    """Words of the person, or files, and the request that they came with."""

    sequence: int
    text: str
    errand: str = ""
    attached: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """A session between two records. `results` are those of the turn under way, or of the last one.

    `touched` holds every path that the session made, changed or read. `last_digest` is the digest of
    the reply taken last.
    """

    session_id: str
    task: str
    workspace: str
    created_at: str
    updated_at: str
    sequence: int = 1
    phase: Phase = Phase.OUTBOX_DUE
    reply: ReplyTaken | None = None
    started: OperationStarted | None = None
    results: Row[Event] = _NONE
    ends: Row[OperationEnded] = _NONE
    """The records of these results."""
    returned: int = 0
    """Characters of contents and outputs in these results."""
    notes: tuple[str, ...] = ()
    touched: frozenset[str] = frozenset()
    last_digest: str = ""
    lying: tuple[LyingFile, ...] = ()
    asked: ApprovalAsked | None = None
    answered: ApprovalAnswered | None = None
    always: frozenset[str] = frozenset()
    """The rules for which the person said "always"."""
    policy: str = ""
    sandbox: str = ""
    network: bool = False
    tier: str = ""
    """What confined the command that ran last."""
    checkpoint: str = ""
    """The workspace as it was before the part of a turn of which none after it is taken yet."""
    checkpoint_of: int = 0
    """That turn's number."""
    starts: Row[OperationStarted] = _NONE
    """What was begun since that checkpoint."""
    cut: str = ""
    """What arrived of the block within which the last reply was cut short."""
    kept: str = ""
    """The checkpoint taken last."""
    told: str = ""
    """The one that was last when a request was written last."""
    shown: str = ""
    """The same of the request before the one that is due, or waits: what changed since is news there."""
    undoing: UndoBegan | None = None
    protocol: Protocol = "tags"
    is_run: bool = False
    """One message and no conversation: it is complete when that is done."""
    said: tuple[Said, ...] = ()
    attached: tuple[str, ...] = ()
    """Files that the person puts into the request that is due, or waits."""
    check: str = ""
    checked: Event | None = None
    """What came of the check in this turn, or in the last one; None: it was not run."""
    is_failing: bool = False
    """The check failed when it was run last."""
    checked_by: str = ""
    """The command that was run as the check last."""
    is_unchecked: bool = False
    """A file was changed by an operation, or put back by an undo, since the check was run last.

    Behind a check commands count too: what they did to files that no checkpoint holds, nobody sees.
    """
    began: str = ""
    """The workspace as it was before the turn, of which `checkpoint` may be before a part only."""

    @property
    def is_new(self) -> bool:
        """Tells whether nothing has happened yet."""
        return self.sequence == 1 and self.phase is Phase.OUTBOX_DUE

    @property
    def is_complete(self) -> bool:
        return self.phase is Phase.COMPLETE

    @property
    def is_awaiting_reply(self) -> bool:
        return self.phase is Phase.AWAITING_REPLY

    @property
    def is_awaiting_approval(self) -> bool:
        return self.phase is Phase.AWAITING_APPROVAL


def fold(session: Session | None, record: Record) -> Session:
    """Gives the state after one more record.

    Raises:
        ValueError: if the record can't follow: the journal is not one of ours.
    """
    if isinstance(record, SessionStarted):
        if session is not None:
            raise ValueError("a second start of a session")
        return Session(
            record.session_id,
            record.task,
            record.workspace,
            record.at,
            record.at,
            policy=record.policy,
            sandbox=record.sandbox,
            network=record.network,
            protocol=record.protocol,
            check=record.check,
        )
    if isinstance(record, RunStarted):
        if session is not None:
            raise ValueError("a second start of a session")
        return Session(
            record.run_id,
            "",
            record.workspace,
            record.at,
            record.at,
            phase=Phase.EXECUTING,
            reply=ReplyTaken(1, MESSAGE_NAME, record.digest, record.at),
            policy=record.policy,
            sandbox=record.sandbox,
            network=record.network,
            is_run=True,
        )
    if session is None:
        raise ValueError("no start of a session")
    after = _step(session, record)
    if after is session:
        return replace(session, updated_at=record.at)
    # Nobody has seen it yet; to copy it once more would cost as much as the step itself.
    object.__setattr__(after, "updated_at", record.at)
    return after


def replay(records: Iterable[Record]) -> Session | None:
    """Gives the state after all records; None if there are none.

    Raises:
        ValueError: as `fold`.
    """
    session: Session | None = None
    for record in records:
        session = fold(session, record)
    return session


# The phases in which a record may come; those that are not named may come in any.
_COMES_IN = {
    OutboxWritten: (Phase.OUTBOX_DUE,),
    # Where a turn is under way its own request is due by itself.
    PersonSaid: tuple(phase for phase in Phase if phase is not Phase.COMPLETE),
    RefreshAsked: (Phase.AWAITING_REPLY,),
    ReplyTaken: (Phase.AWAITING_REPLY,),
    OperationStarted: (Phase.EXECUTING,),
    OperationEnded: (Phase.EXECUTING,),
    CheckEnded: (Phase.EXECUTING,),
    # What waits may be asked for anew: the file that it would change has changed.
    ApprovalAsked: (Phase.EXECUTING, Phase.AWAITING_APPROVAL),
    ApprovalAnswered: (Phase.AWAITING_APPROVAL,),
    # The one after a turn may come behind its request.
    CheckpointTaken: (
        Phase.EXECUTING,
        Phase.AWAITING_APPROVAL,
        Phase.AWAITING_REPLY,
        Phase.COMPLETE,
    ),
    UndoBegan: (Phase.AWAITING_REPLY, Phase.COMPLETE),
    # Due: words came, or a refresh, while an undo was to be finished.
    UndoEnded: (Phase.OUTBOX_DUE, Phase.AWAITING_REPLY, Phase.COMPLETE),
    TurnEnded: (Phase.EXECUTING,),
    SessionReopened: (Phase.COMPLETE,),
}


def _step(session: Session, record: Record) -> Session:
    if session.phase not in _COMES_IN.get(type(record), (session.phase,)):
        raise ValueError(f"a {record.kind} while the session is {session.phase.value}")
    match record:
        case InboxFound():
            return replace(session, lying=record.files)
        case OutboxWritten():
            return replace(session, phase=Phase.AWAITING_REPLY, told=session.kept)
        case PersonSaid():
            return _hear(session, record)
        case RefreshAsked():
            return replace(session, phase=Phase.OUTBOX_DUE)
        case ReplyTaken():
            return replace(
                session,
                phase=Phase.EXECUTING,
                attached=(),
                checked=None,
                checkpoint="",
                starts=_NONE,
                began="",
                reply=record,
                last_digest=record.digest,
                results=_NONE,
                ends=_NONE,
                returned=0,
                notes=(),
            )
        case OperationStarted():
            starts = session.starts.with_one(record) if session.checkpoint else session.starts
            return replace(session, started=record, starts=starts)
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
            )
        case CheckEnded():
            return replace(
                session,
                started=None,
                checked=record.event,
                is_failing=not succeeded(record.event),
                checked_by=record.command,
                is_unchecked=False,
            )
        case ApprovalAsked():
            phase = Phase.AWAITING_APPROVAL
            return replace(session, phase=phase, asked=record, answered=None)
        case ApprovalAnswered():
            return _answer(session, record)
        case CheckpointTaken():
            return _keep(session, record)
        case UndoBegan():
            return replace(session, undoing=record)
        case UndoEnded():
            # A request that waits is written anew, with the files as they are now.
            waits = session.phase is Phase.AWAITING_REPLY
            phase = Phase.OUTBOX_DUE if waits else session.phase
            notes = (*session.notes, *record.notes)
            return replace(session, phase=phase, undoing=None, notes=notes, is_unchecked=True)
        case TurnEnded():
            return _end_turn(session, record)
        case SessionReopened():
            return replace(
                session,
                phase=Phase.OUTBOX_DUE,
                sequence=session.sequence + 1,
                notes=(*session.notes, _REOPENED),
            )
        case ReplySetAside():
            return session
        case SessionStarted() | RunStarted():
            raise ValueError("a second start of a session")
        case _:
            assert_never(record)


def _hear(session: Session, record: PersonSaid) -> Session:
    """Adds words and files to the request that is due; one that waits becomes due again."""
    waits = session.phase is Phase.AWAITING_REPLY
    # What is said while a turn is under way goes with the request behind it.
    is_busy = session.phase in (Phase.EXECUTING, Phase.AWAITING_APPROVAL)
    said = Said(session.sequence + is_busy, record.text, record.errand, record.attached)
    return replace(
        session,
        phase=Phase.OUTBOX_DUE if waits else session.phase,
        said=(*session.said, said),
        attached=tuple(dict.fromkeys((*session.attached, *record.attached))),
        touched=session.touched.union(record.attached),
    )


def _may_undo_check(session: Session, event: Event) -> bool:
    """Tells whether what the check said may hold no more: of a command only if it has said something."""
    if isinstance(event, FileCreated | FileEdited | FileDeleted):
        return True
    return bool(session.checked_by) and isinstance(event, CommandRan | Interrupted)


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
    always = session.always.union(asked.question.rules) if lasts else session.always
    return replace(session, phase=Phase.EXECUTING, answered=record, always=always)


def _keep(session: Session, record: CheckpointTaken) -> Session:
    name = record.name
    told = session.told or name
    if session.phase in (Phase.AWAITING_REPLY, Phase.COMPLETE) and record.before:
        raise ValueError("a checkpoint before a turn that has not begun")
    if session.phase is Phase.AWAITING_REPLY:
        # The request that told of this turn is out already.
        told = name
    return replace(
        session,
        checkpoint=name if record.before else "",
        began=session.began or (name if record.before else ""),
        checkpoint_of=record.sequence,
        starts=_NONE,
        kept=name,
        told=told,
    )


def _end_turn(session: Session, record: TurnEnded) -> Session:
    done = any(isinstance(event, Finished) for event in session.results)
    touched = session.touched.union(*map(_paths, session.results))
    ended = replace(
        session,
        reply=None,
        notes=record.notes,
        touched=touched,
        cut=record.cut,
        shown=session.told,
    )
    # What was said in mid-turn was in no request yet: the end of the task did not know of it.
    is_unheard = any(said.sequence > session.sequence for said in session.said)
    if done and is_unheard:
        ended = replace(ended, notes=(*record.notes, _REOPENED))
    elif done or session.is_run:
        return replace(ended, phase=Phase.COMPLETE)
    return replace(ended, phase=Phase.OUTBOX_DUE, sequence=session.sequence + 1)


def _paths(event: Event) -> tuple[str, ...]:
    match event:
        case FileCreated() | FileEdited() | FileFetched():
            return (event.path,)
        case FileRequested():
            return event.paths
        case _:
            return ()


# --- what is shown of it ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply and what came of it."""

    sequence: int
    reply_name: str
    at: str
    results: tuple[Event, ...]
    notes: tuple[str, ...] = ()
    checked: Event | None = None
    """What came of the person's check, if it was run."""


def turns(records: Iterable[Record]) -> tuple[Turn, ...]:
    """Gives all turns of a journal in order, the one under way too."""
    found: list[Turn] = []
    events: list[list[Event]] = []
    for record in records:
        match record:
            case RunStarted():
                found.append(Turn(1, MESSAGE_NAME, record.at, ()))
                events.append([])
            case ReplyTaken():
                found.append(Turn(record.sequence, record.name, record.at, ()))
                events.append([])
            case OperationEnded():
                events[-1].append(record.event)
            case CheckEnded():
                found[-1] = replace(found[-1], checked=record.event)
            case TurnEnded():
                found[-1] = replace(found[-1], notes=record.notes)
            case _:
                pass
    return tuple(
        replace(turn, results=tuple(results)) for turn, results in zip(found, events, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Step:
    """A turn or a part of one, or an undo, with the checkpoints before and after it.

    A turn that paused for approval has several parts: what the person did meanwhile is in none of them.
    `sequence` is 0 for an undo; `after` is empty if no checkpoint could be taken then. `uncovered` are
    files that operations changed and no checkpoint holds. `undone` says that a later undo took it back,
    `undoes` which steps this one took back.
    """

    sequence: int
    before: str
    after: str
    at: str
    left_out: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
    undoes: tuple[int, ...] = ()
    undone: bool = False


def _ends(found: list[Step], record: CheckpointTaken) -> bool:
    """Tells whether a checkpoint is the one after the last step; a turn that only read has none before."""
    if not found or found[-1].after or found[-1].undoes:
        return False
    return found[-1].sequence == record.sequence


def steps(records: Iterable[Record]) -> tuple[Step, ...]:
    """Gives all steps of a journal that can be taken back, or were, in order."""
    found: list[Step] = []
    began: UndoBegan | None = None
    for record in records:
        match record:
            case CheckpointTaken(before=True):
                # Of one before it nothing came after: what it began with is known all the same.
                found.append(Step(record.sequence, record.name, "", record.at, record.left_out))
            case CheckpointTaken() if _ends(found, record):
                left_out = tuple(dict.fromkeys((*found[-1].left_out, *record.left_out)))
                found[-1] = replace(
                    found[-1], after=record.name, left_out=left_out, uncovered=record.uncovered
                )
            case UndoBegan():
                began = record
            case UndoEnded() if began is not None:
                for index in began.steps:
                    # Taking back an undo brings back what that had taken back.
                    for again in found[index].undoes:
                        found[again] = replace(found[again], undone=False)
                    found[index] = replace(found[index], undone=True)
                found.append(Step(0, began.name, record.name, record.at, undoes=began.steps))
                began = None
            case _:
                pass
    return tuple(found)


def changed_paths(events: Iterable[Event]) -> tuple[str, ...]:
    """Gives the paths that file operations changed, in order, each once."""
    return tuple(
        dict.fromkeys(
            event.path
            for event in events
            if isinstance(event, FileCreated | FileEdited | FileDeleted)
        )
    )


def document(session: Session) -> dict[str, object]:
    """Gives the session as `sessions/{id}.json` holds it (specification 003, session state)."""
    results = [result_of(event) for event in session.results]
    requested = [path for e in session.results if isinstance(e, FileRequested) for path in e.paths]
    return {
        "sessionId": session.session_id,
        "task": session.task,
        "sequenceNumber": session.sequence,
        "isComplete": session.is_complete,
        "createdAt": session.created_at,
        "updatedAt": session.updated_at,
        "lastResults": [
            {
                "commandType": result.command_type,
                "summary": result.summary,
                "success": result.success,
                "output": "\n".join((result.output, *result.notes)).strip("\n"),
            }
            for result in results
        ],
        "readFileRequests": list(dict.fromkeys(requested)),
        "workspace": session.workspace,
    }


# --- the journal's lines ---------------------------------------------------------------------------


def decode_record(line: bytes) -> Record:
    """Gives the record of one journal line, a JSON object whose `kind` names its class.

    Raises:
        ValueError: if the line is no record.
    """
    return _records().validate_json(line)


@cache
def _records() -> "TypeAdapter[Record]":
    # Imported late: it costs a third of a second, and a new session has no journal to read.
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[Record, Field(discriminator="kind")])
