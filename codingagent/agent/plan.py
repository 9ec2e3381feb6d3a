"""An operation to do, and the plan of one that changes files or runs a command: judged, not yet begun."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from codingagent.model.events import Denied, Event, FileEdited
from codingagent.model.journal_entries import ContentChange
from codingagent.model.operations import Finish, Kind, Operation, RunCommand, ShowMessage
from codingagent.policy.rules import Ask, Deny
from codingagent.protocols.tags.reply import ForeignConsent


class OperationRequest(Struct, frozen=True):
    """An operation to do, and its position in the answer, counted from 0.

    `id` is its name in a JSON message; in others it has none. `earlier` are the edits of the same file so far
    in the answer. `room` is the number of characters of contents and outputs that its event may hold.
    `foreign` says whether it came in a format other than the protocol's. `is_check` means that it is the
    person's own check: the policy does not ask. `names` are those of the secrets that it writes. `later`
    returns the operations that follow in a chat's answer: its changes are checked, a program's are not.
    `counted` is the text of its file in which the chat counts lines.
    """

    index: int
    operation: Operation
    earlier: Sequence[FileEdited] = ()
    room: int = 2**62
    id: str = ""
    foreign: ForeignConsent = "no"
    is_check: bool = False
    later: Callable[[], Iterable[Operation]] | None = None
    names: tuple[str, ...] = ()
    counted: str | None = None

    @property
    def kind(self) -> Kind:
        return Kind.CHECK if self.is_check else self.operation.kind

    def denied(self, subject: str, verdict: Deny) -> Denied:
        return Denied(self.kind, subject, (verdict.rule,), verdict.reason, verdict.suggestion)


class Plan(Struct, frozen=True):
    """A change or a command that is about to be made, for the journal and for approval.

    `parts` are everything that a yes depends on, `shown` what the person sees of it. `asked` is what needs
    their approval. `changes` and `event` say what will be true once `act` is done; a command has neither.
    """

    subject: str
    parts: tuple[str, ...]
    shown: Callable[[], str]
    act: Callable[[], Event]
    asked: tuple[Ask, ...] = ()
    changes: tuple[ContentChange, ...] = ()
    event: Event | None = None
    is_unseen: bool = False
    """The person had changed the file since the chat last saw it whole."""
    limit_s: float | None = None
    edited: tuple[bytes, bytes, int] | None = None
    """What a file holds before and after an edit, and its mode."""


def subject_of(operation: Operation) -> str:
    """Return the subject of an operation: a path or a command; empty for messages."""
    match operation:
        case RunCommand():
            return operation.command
        case ShowMessage() | Finish():
            return ""
        case _:
            return operation.path
