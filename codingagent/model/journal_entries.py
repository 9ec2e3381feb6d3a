"""What a journal holds: a record for each thing that happened in a session, or in a run.

What they come to is the state in `core/session.py`. In all of them `at` is UTC, ISO 8601 with Z.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

from codingagent.model.approval import Answer, Question, operation_id
from codingagent.model.events import Event

if TYPE_CHECKING:
    from pydantic import TypeAdapter

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

    `digest` is the SHA-256 of the message, which is beside the journal until all of it is done.
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
class ShownFile:
    """A file that a request shows whole, and the digest of its bytes."""

    path: str
    digest: str


@dataclass(frozen=True, slots=True)
class OutboxWritten:
    """A request is in place, whole."""

    sequence: int
    at: str
    shown: tuple[ShownFile, ...] = ()
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
class CheckNamed:
    """The person names another check than before; empty: none from now on."""

    command: str
    at: str
    kind: Literal["check_named"] = "check_named"


@dataclass(frozen=True, slots=True)
class ReplyTaken:
    """A reply is in inbox/processed/ under `name`; `digest` is the SHA-256 of its bytes."""

    sequence: int
    name: str
    digest: str
    at: str
    files: tuple[str, ...] = ()
    """The names by which paths in another format were made out, if there were such."""
    kind: Literal["reply_taken"] = "reply_taken"


@dataclass(frozen=True, slots=True)
class ReplySetAside:
    """A file of the inbox was not taken, and is in inbox/rejected/ under `name`."""

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
    is_unseen: bool = False
    """The person had changed the file since the chat saw it whole."""
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
class GrantsRevoked:
    """The person took back what they had said "always" to."""

    grants: tuple[str, ...]
    at: str
    kind: Literal["grants_revoked"] = "grants_revoked"


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
class ProtectedChange:
    """A protected file that a turn changed unasked, and checkpoints with it as it was and as it is now."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ProtectedFound:
    """A turn changed protected files unasked: they are to be kept, or put back, before it ends."""

    changes: tuple[ProtectedChange, ...]
    at: str
    kind: Literal["protected_found"] = "protected_found"


@dataclass(frozen=True, slots=True)
class ProtectedSettled:
    """What became of them. `left` are those that could not be put back; `reason` is the person's."""

    kept: tuple[str, ...]
    put_back: tuple[str, ...]
    left: tuple[str, ...]
    at: str
    reason: str = ""
    kind: Literal["protected_settled"] = "protected_settled"


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
    """The undo is done; `name` is the checkpoint after it, `notes` say what it did.

    `told` is for the model: what all undos since its last answer come to; empty: nothing. None: a journal
    of an earlier version, whose `notes` the model was told one by one.
    """

    name: str
    notes: tuple[str, ...]
    at: str
    told: str | None = None
    kept: tuple[str, ...] = ()
    """Files that it left as they were, because someone had changed them again."""
    kind: Literal["undo_ended"] = "undo_ended"


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """All items of the reply are done; `notes` are about the reply as a whole."""

    sequence: int
    notes: tuple[str, ...]
    at: str
    cut: str = ""
    """The text of a block within which the reply was cut short, kept until it is gone on with."""
    changed: tuple[str, ...] = ()
    """Files that changed in this turn, whoever changed them; not recorded by earlier versions."""
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
        ValueError: if the line is no record.
    """
    return _records().validate_json(line)


@cache
def _records() -> "TypeAdapter[Record]":
    # Imported late: it costs a third of a second, and a new session has no journal to read.
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[Record, Field(discriminator="kind")])
