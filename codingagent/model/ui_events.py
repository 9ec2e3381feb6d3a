"""Events for the person while the agent works. Each front end shows them in its own way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from codingagent.model.approval import Answer
from codingagent.model.results import Result


@dataclass(frozen=True, slots=True)
class OutboxReady:
    """A request is written. `characters` and `tokens` are its size; the tokens are an estimate.

    `short_path` is its shorter version for a chat that has seen the earlier ones; empty for the
    first.
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


@dataclass(frozen=True, slots=True)
class Waiting:
    """It is the person's turn: the answer goes into `inbox`.

    `watched` says whether this process stays and watches, `elsewhere` whether one in another
    terminal does.
    """

    session_id: str
    sequence: int
    outbox: str
    inbox: str
    watched: bool
    short: str = ""
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class ReplyAccepted:
    """An answer was taken and is about to be executed; `name` is its file in inbox/processed/."""

    sequence: int
    name: str
    operations: int


@dataclass(frozen=True, slots=True)
class ReplyRejected:
    """A file was moved to inbox/rejected/; nothing of it was executed.

    `path` is its new place, `remedy` says what to do about it.
    """

    name: str
    path: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class OperationBegan:
    """An operation has started; `subject` is its path, or the command."""

    index: int
    command_type: str
    subject: str


@dataclass(frozen=True, slots=True)
class OutputCame:
    """A running command printed this."""

    text: str


@dataclass(frozen=True, slots=True)
class FileChanged:
    """The current operation wrote a file: its bytes before (None if it is new) and after.

    The front end computes the diff: most do not need it, and the next request waits.
    """

    path: str
    old: bytes | None
    new: bytes


@dataclass(frozen=True, slots=True)
class OperationDone:
    """The outcome of the operation that began last."""

    index: int
    result: Result


@dataclass(frozen=True, slots=True)
class ApprovalAwaited:
    """An operation waits for approval.

    `reasons` say why, `shown` is what would be done, `grants` is what an "always" would cover.
    """

    session_id: str
    operation_id: str
    command_type: str
    subject: str
    reasons: tuple[str, ...]
    shown: str
    grants: tuple[str, ...] = ()


Elsewhere: TypeAlias = Callable[[ApprovalAwaited], Answer | None]
"""Return the answer given to a question in another terminal, if any."""


@dataclass(frozen=True, slots=True)
class ModelSaid:
    """The model's words for the person."""

    text: str


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """The answer was only words for the person: it probably expects words in return."""

    session_id: str


@dataclass(frozen=True, slots=True)
class TurnDone:
    """All of an answer was executed. `notes` are about the answer as a whole."""

    sequence: int
    succeeded: int
    failed: int
    changed: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionDone:
    """The model ended the task. `failed` are results of the same answer that did not succeed."""

    session_id: str
    summary: str
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Remark:
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
