"""Events for the person while the agent works. Each front end shows them in its own way."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct, field

from codingagent.model.operations import Kind
from codingagent.model.results import Result


class OutboxReady(Struct, frozen=True):
    """A request is written. `characters` and `tokens` are its size; the tokens are an estimate.

    `short_path` is its shorter version for a chat that has seen the earlier ones; empty for the first.
    """

    session_id: str
    sequence: int
    path: str
    characters: int
    tokens: int
    short_path: str = ""
    short_characters: int = 0
    short_tokens: int = 0
    budget: int = 0
    """How many characters a request may have; 0 if unknown."""


class Waiting(Struct, frozen=True):
    """It is the person's turn: the answer goes into `inbox`.

    `watched` says whether this process stays and watches, `elsewhere` whether one in another terminal
    does.
    """

    session_id: str
    sequence: int
    outbox: str
    inbox: str
    watched: bool
    short: str = ""
    elsewhere: bool = False


class ReplyAccepted(Struct, frozen=True):
    """An answer was taken and is about to be executed; `name` is its file in inbox/processed/."""

    sequence: int
    name: str
    operations: int


class ReplyRejected(Struct, frozen=True):
    """A file was moved to inbox/rejected/; nothing of it was executed.

    `path` is its new place, `remedy` says what to do about it.
    """

    name: str
    path: str
    reason: str
    remedy: str


class OperationBegan(Struct, frozen=True):
    """An operation has started; `subject` is its path, or the command, which may run `timeout_s` seconds."""

    index: int
    kind: Kind = field(name="command_type")
    subject: str
    timeout_s: float | None = None


class OutputCame(Struct, frozen=True):
    """A running command printed this."""

    text: str


class FileChanged(Struct, frozen=True):
    """The current operation wrote a file: its bytes before (None if it is new) and after.

    The front end computes the diff: most do not need it, and the next request waits.
    """

    path: str
    old: bytes | None
    new: bytes


class OperationDone(Struct, frozen=True):
    """The outcome of the operation that began last."""

    index: int
    result: Result


class ApprovalAwaited(Struct, frozen=True):
    """An operation waits for approval.

    `reasons` say why, `shown` is what would be done, `grants` is what an "always" would cover.
    """

    session_id: str
    operation_id: str
    kind: Kind = field(name="command_type")
    subject: str
    reasons: tuple[str, ...]
    shown: str
    grants: tuple[str, ...] = ()


Elsewhere: TypeAlias = Callable[[], bool]
"""Return whether a question was answered in another terminal."""


class ModelSaid(Struct, frozen=True):
    """The model's words for the person."""

    text: str


class QuestionAsked(Struct, frozen=True):
    """The answer was only words for the person: it probably expects words in return."""

    session_id: str


# A turn's record names no more changed files.
CHANGED_LIMIT = 1000


class TurnDone(Struct, frozen=True):
    """All of an answer was executed. `notes` are about the answer as a whole.

    `changed` are the first CHANGED_LIMIT files that changed.
    """

    sequence: int
    succeeded: int
    failed: int
    changed: tuple[str, ...]
    notes: tuple[str, ...]


class SessionDone(Struct, frozen=True):
    """The model ended the task. `failed` are results of the same answer that did not succeed.

    The session took `answers` answers, to requests of `carried_bytes` bytes in all. It `changed` files of the
    `workspace`, those of undone turns not counted; `addable` are those that `git add` takes there.
    """

    session_id: str
    summary: str
    failed: tuple[str, ...]
    answers: int = 0
    carried_bytes: int = 0
    workspace: str = ""
    changed: tuple[str, ...] = ()
    addable: tuple[str, ...] = ()
    has_checkpoints: bool = False


class Remark(Struct, frozen=True):
    """A one-line notice to the person."""

    text: str


Notice = (
    OutboxReady
    | Waiting
    | ReplyAccepted
    | ReplyRejected
    | OperationBegan
    | OutputCame
    | FileChanged
    | OperationDone
    | ApprovalAwaited
    | ModelSaid
    | QuestionAsked
    | TurnDone
    | SessionDone
    | Remark
)
