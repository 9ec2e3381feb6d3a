"""What the person is told while the agent works. Each face shows these in its own way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from codingagent.model.approval import Answer
from codingagent.model.results import Result


@dataclass(frozen=True, slots=True)
class OutboxReady:
    """A request is written. `characters` and `tokens` are its size, the tokens an estimate.

    `short_path` is its companion for a chat that has seen the earlier ones; empty for the first.
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
    """How many characters a request may have; 0 if that is not known."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Now it is the person's turn: the answer goes to `inbox`.

    `watched` tells whether we stay, `elsewhere` whether another does, in another terminal.
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
    """A reply was taken and is about to be executed; `name` is its file in inbox/processed/."""

    sequence: int
    name: str
    operations: int


@dataclass(frozen=True, slots=True)
class ReplyRejected:
    """A file was moved to inbox/rejected/, nothing of it executed.

    `path` is where it is now, `remedy` what to do about it.
    """

    name: str
    path: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class OperationBegan:
    """An operation is under way; `subject` is its path, or the command."""

    index: int
    command_type: str
    subject: str


@dataclass(frozen=True, slots=True)
class OutputCame:
    """A running command printed this."""

    text: str


@dataclass(frozen=True, slots=True)
class FileChanged:
    """The operation under way wrote a file: its bytes before, None if it is new, and now.

    The difference is reckoned by whoever shows it: most do not, and the next request waits.
    """

    path: str
    old: bytes | None
    new: bytes


@dataclass(frozen=True, slots=True)
class OperationDone:
    """What came of the operation that began last."""

    index: int
    result: Result


@dataclass(frozen=True, slots=True)
class ApprovalAwaited:
    """An operation waits for a yes.

    `reasons` say why, `shown` is what would be done, `grants` what a yes for always would cover.
    """

    session_id: str
    operation_id: str
    command_type: str
    subject: str
    reasons: tuple[str, ...]
    shown: str
    grants: tuple[str, ...] = ()


Elsewhere: TypeAlias = Callable[[ApprovalAwaited], Answer | None]
"""Return the answer that was given to a question in another terminal, if one was."""


@dataclass(frozen=True, slots=True)
class ModelSaid:
    """The model's words for the person."""

    text: str


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """The answer was words for the person and nothing else: it probably wants an answer of theirs."""

    session_id: str


@dataclass(frozen=True, slots=True)
class TurnDone:
    """All of a reply was executed. `notes` are about the reply as a whole."""

    sequence: int
    succeeded: int
    failed: int
    changed: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionDone:
    """The model ended the task. `failed` are results of the same reply that did not succeed."""

    session_id: str
    summary: str
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Remark:
    """Something the person should know, in one line."""

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
