"""Journal records: one for each thing that happened in a session, or in a run.

`session_state` folds them into a state. In all of them `at` is UTC, ISO 8601 with Z.
"""

import re
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from codingagent.model.approval import Answer, Question, operation_id
from codingagent.model.events import Event

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_SESSION_ID = re.compile(r"[0-9a-f]{8}")


# The file that holds the message of a run.
MESSAGE_NAME = "message.json"


def is_session_id(text: str) -> bool:
    """Return whether a text is a session id: eight lower-case hex digits."""
    return _SESSION_ID.fullmatch(text) is not None


_RUN_ID = re.compile(r"run_[0-9a-f]{12}")


def is_run_id(text: str) -> bool:
    """Return whether a text is a run id: `run_` and twelve lower-case hex digits."""
    return _RUN_ID.fullmatch(text) is not None


Protocol = Literal["tags", "json"]
"""The protocol in which a session's requests ask to be answered."""


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """The first record of every journal."""

    session_id: str
    task: str
    workspace: str
    at: str
    policy: str = ""
    """A preset's name or a file's path; empty: the settings apply whenever the session resumes."""
    sandbox: str = ""
    network: bool = False
    protocol: Protocol = "tags"
    check: str = ""
    """The person's command that checks the work; empty: none."""
    kind: Literal["session_started"] = "session_started"


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The first record of a run: one message, executed by itself.

    `digest` is the SHA-256 of the message, which stays beside the journal until all of it is done.
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
    """A file that was in the inbox before the session began; ignored until it changes."""

    name: str
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class InboxFound:
    """The files in the inbox when the session began: answers to something else."""

    files: tuple[LyingFile, ...]
    at: str
    kind: Literal["inbox_found"] = "inbox_found"


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file that a request shows whole, with the digest of its bytes."""

    path: str
    digest: str


@dataclass(frozen=True, slots=True)
class OutboxWritten:
    """A request was written, complete."""

    sequence: int
    at: str
    shown: tuple[ShownFile, ...] = ()
    kind: Literal["outbox_written"] = "outbox_written"


@dataclass(frozen=True, slots=True)
class PersonSaid:
    """The person's words, and files of the workspace, for the next request; either may be missing.

    A waiting request is rewritten with them. `errand` names what another process handed over.
    """

    text: str
    attached: tuple[str, ...]
    at: str
    errand: str = ""
    kind: Literal["person_said"] = "person_said"


@dataclass(frozen=True, slots=True)
class RefreshAsked:
    """The waiting request is to be rewritten from the workspace as it is now."""

    at: str
    kind: Literal["refresh_asked"] = "refresh_asked"


@dataclass(frozen=True, slots=True)
class CheckNamed:
    """The person chose another check; empty: none from now on."""

    command: str
    at: str
    kind: Literal["check_named"] = "check_named"


@dataclass(frozen=True, slots=True)
class ReplyTaken:
    """An answer is in inbox/processed/ under `name`; `digest` is the SHA-256 of its bytes."""

    sequence: int
    name: str
    digest: str
    at: str
    files: tuple[str, ...] = ()
    """The file names found for code blocks of an answer in another format, if it was one."""
    kind: Literal["reply_taken"] = "reply_taken"


@dataclass(frozen=True, slots=True)
class ReplySetAside:
    """A file in the inbox was rejected, and is in inbox/rejected/ under `name`."""

    name: str
    reason: str
    at: str
    kind: Literal["reply_set_aside"] = "reply_set_aside"


@dataclass(frozen=True, slots=True)
class ContentChange:
    """The digests of what is at a path `before` and `after` an operation; None: no file."""

    path: str
    before: str | None
    after: str | None
    real: str = ""
    """The path without links, where there is one on its way."""

    @property
    def place(self) -> str:
        """The path without links."""
        return self.real or self.path


@dataclass(frozen=True, slots=True)
class OperationStarted:
    """An operation is about to change something.

    One that changes files carries each of these changes, and the event that will be true once all are
    made, so that a look at the files settles a doubt. A command carries neither.
    """

    index: int
    tag: str
    subject: str
    at: str
    changes: tuple[ContentChange, ...] = ()
    event: Event | None = None
    operation_id: str = ""
    is_unseen: bool = False
    """The person had changed the file since the chat last saw it whole."""
    kind: Literal["operation_started"] = "operation_started"


@dataclass(frozen=True, slots=True)
class OperationEnded:
    """The outcome of the item at `index` of the answer, counted from 0."""

    index: int
    event: Event
    at: str
    operation_id: str = ""
    """The id that the answer gives it, if any."""
    kind: Literal["operation_ended"] = "operation_ended"

    @property
    def name(self) -> str:
        """Its own id, or one made from its position."""
        return self.operation_id or operation_id(self.index)


@dataclass(frozen=True, slots=True)
class CheckEnded:
    """The outcome of the person's check after this turn; it started under the tag CHECK."""

    event: Event
    at: str
    command: str = ""
    kind: Literal["check_ended"] = "check_ended"


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """The item at `index` waits for approval."""

    index: int
    question: Question
    at: str
    operation_id: str = ""
    kind: Literal["approval_asked"] = "approval_asked"

    @property
    def name(self) -> str:
        """Its own id, or one made from its position."""
        return self.operation_id or operation_id(self.index)


@dataclass(frozen=True, slots=True)
class ApprovalAnswered:
    """The answer to the last question."""

    index: int
    answer: Answer
    at: str
    kind: Literal["approval_answered"] = "approval_answered"


@dataclass(frozen=True, slots=True)
class GrantsRevoked:
    """The person revoked what they had approved with "always"."""

    grants: tuple[str, ...]
    at: str
    kind: Literal["grants_revoked"] = "grants_revoked"


@dataclass(frozen=True, slots=True)
class CheckpointTaken:
    """A checkpoint of the workspace from `before` or after a turn is kept under `name`.

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
class ProtectedChange:
    """A protected file that a turn changed without approval, with checkpoints of it before and now."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ProtectedFound:
    """A turn changed protected files without approval: keep them or put them back before it ends."""

    changes: tuple[ProtectedChange, ...]
    at: str
    kind: Literal["protected_found"] = "protected_found"


@dataclass(frozen=True, slots=True)
class ProtectedSettled:
    """The decision on them. `left` are those that could not be put back; `reason` is the person's."""

    kept: tuple[str, ...]
    put_back: tuple[str, ...]
    left: tuple[str, ...]
    at: str
    reason: str = ""
    kind: Literal["protected_settled"] = "protected_settled"


@dataclass(frozen=True, slots=True)
class UndoBegan:
    """The files that these steps changed are about to be restored to their state before them.

    A step is a turn, or an earlier undo; `steps` are indexes into the journal's `steps`. `name` is
    the
    checkpoint of the workspace as it is now.
    """

    steps: tuple[int, ...]
    name: str
    at: str
    force: bool = False
    """Also undo what someone has changed again since."""
    kind: Literal["undo_began"] = "undo_began"


@dataclass(frozen=True, slots=True)
class UndoEnded:
    """The undo is done; `name` is the checkpoint after it, and `notes` say what it did.

    `told` is for the model: the net effect of all undos since its last answer; empty: nothing.
    None: a
    journal of an earlier version, whose `notes` the model was told one by one.
    """

    name: str
    notes: tuple[str, ...]
    at: str
    told: str | None = None
    kept: tuple[str, ...] = ()
    """Files that it left alone because someone had changed them again."""
    kind: Literal["undo_ended"] = "undo_ended"


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """All items of the answer are done; `notes` are about the answer as a whole."""

    sequence: int
    notes: tuple[str, ...]
    at: str
    cut: str = ""
    """The text of the block in which the answer was truncated, kept until the answer resumes."""
    changed: tuple[str, ...] = ()
    """Files that changed in this turn, no matter what changed them; not recorded by earlier versions."""
    kind: Literal["turn_ended"] = "turn_ended"


@dataclass(frozen=True, slots=True)
class SessionReopened:
    """The person continues a complete session."""

    at: str
    kind: Literal["session_reopened"] = "session_reopened"


Record = (
    SessionStarted
    | RunStarted
    | InboxFound
    | OutboxWritten
    | PersonSaid
    | RefreshAsked
    | CheckNamed
    | ReplyTaken
    | ReplySetAside
    | OperationStarted
    | OperationEnded
    | CheckEnded
    | ApprovalAsked
    | ApprovalAnswered
    | GrantsRevoked
    | CheckpointTaken
    | ProtectedFound
    | ProtectedSettled
    | UndoBegan
    | UndoEnded
    | TurnEnded
    | SessionReopened
)


def decode_record(line: bytes) -> Record:
    """Return the record of one journal line, a JSON object whose `kind` names its class.

    Raises:
        ValueError: if the line is not a record.
    """
    return _records().validate_json(line)


@cache
def _records() -> "TypeAdapter[Record]":
    # Imported late: it costs a third of a second, and a new session has no journal to read.
    from pydantic import BeforeValidator, Field, TypeAdapter

    # Only of a start the fields are looked at in Python: of the rest that would cost as much as reading them.
    started = Annotated[OperationStarted, BeforeValidator(_with_changes)]
    records = reduce(
        or_, (started if each is OperationStarted else each for each in get_args(Record))
    )
    return TypeAdapter(Annotated[records, Field(discriminator="kind")])  # type: ignore[arg-type]  # a union that is made here


def _with_changes(fields: object) -> object:
    """Return a start's fields as they are now: earlier versions wrote its only change beside the rest."""
    if not isinstance(fields, dict) or "changes" in fields or fields.get("event") is None:
        return fields
    change = {"path": fields.get("subject"), "before": fields.get("before")}
    change |= {"after": fields.get("after"), "real": fields.get("real", "")}
    return {**fields, "changes": (change,)}
