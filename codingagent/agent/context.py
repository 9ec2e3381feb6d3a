"""Hold what the work on a session shares (`factory` makes it), read its files, and say what is to be done."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict

from codingagent.agent.secrecy import NO_SECRECY, Secrecy
from codingagent.checkpoints.checkpointer import Checkpointer, LazyStore, WorkLayout
from codingagent.editing import notebooks
from codingagent.errors import OperationError
from codingagent.model import documents, operations
from codingagent.model.approval import Answer
from codingagent.model.events import Denied, Event, FileEdited
from codingagent.model.journal_entries import ApprovalAsked, ContentChange, Record
from codingagent.model.notices import Notice, Remark
from codingagent.model.observations import digest_of
from codingagent.model.plain_text import joined, plural, without_halves
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings
from codingagent.policy.rules import Ask, Deny, Policy, judge_read
from codingagent.process.bubblewrap import Bubblewrap, Unconfined
from codingagent.process.runner import Runner
from codingagent.prompt.file_contents import FileView
from codingagent.secrets.files import is_secret_file
from codingagent.secrets.vault import Hides
from codingagent.storage.journal import SessionLog, ShownTexts, Tell, UnkeptLog
from codingagent.workspace.workspace import Workspace

if TYPE_CHECKING:
    from codingagent.protocols.tags.reply import ForeignConsent

# Files of many lines that are all alike: unless they are named, their ends say enough.
DATA = (".csv", ".tsv", ".jsonl", ".ndjson", ".log")


def untold(_record: Record, _session: Session) -> None:
    """Tell nobody of a record: nothing needs to be hidden in it."""


class Person(Struct, frozen=True):
    """The person at the screen: how to show them notices and records, and ask them."""

    show: Callable[[Notice], None]
    ask: Callable[[ApprovalAsked], Answer | None] = lambda _: None
    """Show a question; return None if nobody can answer."""
    approves_all: bool = False
    accepts_formats: bool = False
    """Operations in other formats need no approval."""
    sees_changes: bool = False
    """They are shown what each operation changed: its secrets are looked for in both texts."""
    record: Tell = untold
    any_key: Callable[[str], AbstractContextManager[Callable[[], bool]]] = lambda _: nullcontext(bool)
    """Show what a key of theirs skips; what is entered says whether one came."""


class Resources(Struct, frozen=True):
    """Hold what is open for a workspace: one session's, or shared by all runs in it."""

    workspace: Workspace
    runner: Runner
    sandbox: Bubblewrap | Unconfined
    policy: Policy
    settings: Settings
    lazy_store: LazyStore
    folders: tuple[Path, ...]
    """Folders that must be durable before anything is reported."""


class Context(Resources, frozen=True):
    """Everything that requests and the execution of answers need, in one session or run."""

    log: SessionLog
    checkpointer: Checkpointer
    person: Person
    texts: ShownTexts | None = None
    """File texts as the chat knows them; None for a run, which has no chat."""
    secrecy: Secrecy = NO_SECRECY

    def remark(self, text: str) -> None:
        self.person.show(Remark(text))

    @property
    def chat(self) -> Session | None:
        """The session as far as its chat knows it; None for a run."""
        return None if self.texts is None else self.log.session

    def may_read(self, path: str) -> bool:
        return may_read(self.workspace, self.policy, path)


def may_read(workspace: Workspace, policy: Policy, path: str) -> bool:
    """Return whether the policy allows a file's text to go to the chat."""
    return not isinstance(judge_read(policy, workspace.resolved(path)), Deny)


def in_brief(view: FileView) -> FileView:
    """Return a file of data as its ends; any other as it is."""
    if not view.path.endswith(DATA):
        return view
    from codingagent.context.show import ends_of

    return ends_of(view)


class Views:
    """Read files of a workspace, without their secrets; the last one's lines are cached."""

    def __init__(self, workspace: Workspace, hide: Hides = lambda text, _: text) -> None:
        self._workspace = workspace
        self._hide = hide
        self._key: object = None
        self._lines: list[str] = []
        self._digest = ""
        self._beside = 0

    def view(self, path: str, start: int | None, end: int | None) -> FileView:
        """Return the requested lines of a file; OperationError if missing, binary or shorter."""
        self._workspace.check_leaves(path)
        seen = self._workspace.read(path)
        if (path, seen.state) != self._key:
            self._beside = len(seen.data) if documents.goes_beside(seen.data) else 0
            self._lines = [] if self._beside else self._lines_of(path, seen.data)
            self._digest = digest_of(seen.data)
            self._key = (path, seen.state)
        total = len(self._lines)
        if start is not None and start > total:
            has = f"{total} {plural(total, 'line')}"
            raise OperationError(f"File '{path}' has {has}, no line {start}")
        first = start or 1
        lines = self._lines[first - 1 : min(end or total, total)]
        text = joined(lines)
        return FileView(path, text, first, total, digest=self._digest, beside_bytes=self._beside)

    def _lines_of(self, path: str, data: bytes) -> list[str]:
        decoded = self._workspace.text(path, data)
        if decoded is None:
            raise OperationError(f"File '{path}' is not text ({len(data)} bytes)")
        if notebooks.is_old(path, decoded.text):
            advice = "; jupyter nbconvert --to notebook --inplace makes it one of 4"
            raise OperationError(f"File '{path}' is a notebook of nbformat 3", advice=advice)
        text = without_halves(notebooks.shown(path, decoded.text)).replace("\r\n", "\n")
        # A link may have a harmless name.
        real = self._workspace.resolved(path)
        # All of it, before anybody takes a part: a secret may be cut by the part's ends.
        lines = self._hide(text, real if is_secret_file(real) else path).split("\n")
        return lines if lines[-1] else lines[:-1]


def context_of(
    resources: Resources, log: SessionLog, person: Person, texts: ShownTexts | None, secrecy: Secrecy
) -> Context:
    """Return the context of one session or run; only a session has texts and secrets."""
    checkpointer = Checkpointer(log, resources.lazy_store, resources.folders, person.show)
    return Context(
        **asdict(resources), log=log, checkpointer=checkpointer, person=person, texts=texts, secrecy=secrecy
    )


def bare_context(
    workspace: Workspace, runner: Runner, policy: Policy, log: SessionLog | None = None
) -> Context:
    """Return a context for single operations: nothing is kept, nobody is asked, nothing can be undone."""
    nowhere = LazyStore(WorkLayout(workspace.root, (), workspace.root, None))
    resources = Resources(workspace, runner, Unconfined(), policy, Settings(), nowhere, ())
    return context_of(resources, log or UnkeptLog(), Person(lambda _: None), None, NO_SECRECY)


# --- an operation to do, and the plan of one ------------------------------------------------------
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
    operation: operations.Operation
    earlier: Sequence[FileEdited] = ()
    room: int = 2**62
    id: str = ""
    foreign: "ForeignConsent" = "no"
    is_check: bool = False
    later: Callable[[], Iterable[operations.Operation]] | None = None
    names: tuple[str, ...] = ()
    counted: str | None = None

    @property
    def kind(self) -> operations.Kind:
        return operations.Kind.CHECK if self.is_check else self.operation.kind

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


def subject_of(operation: operations.Operation) -> str:
    """Return the subject of an operation: a path or a command; empty for messages."""
    if isinstance(operation, operations.RunCommand):
        return operation.command
    return getattr(operation, "path", "")
