"""Journal records: what happened in a session or run, for `session_fold`; `at` is UTC, ISO 8601 with Z."""

import re
from functools import cache
from typing import Literal

from msgspec import MsgspecError, Struct, field, json

from codingagent.model.approval import Answer, Question, operation_id
from codingagent.model.events import Event, Tagged
from codingagent.model.operations import Kind
from codingagent.model.plain_text import in_json

# The file that holds the message of a run.
MESSAGE_NAME = "message.json"
# So many of the files that a turn changed are named.
CHANGED_LIMIT = 1000


def is_session_id(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{8}", text) is not None


def is_run_id(text: str) -> bool:
    return re.fullmatch(r"run_[0-9a-f]{12}", text) is not None


Protocol = Literal["tags", "json"]

Wants = Literal["words", "edits"]
"""What a request asks for: words that answer a question, or commands that do a task."""


class SessionStarted(Tagged, frozen=True, tag="session_started"):
    """The first record of every journal."""

    session_id: str
    task: str
    workspace: str
    at: str
    policy: str = ""
    """A preset's name or a file's path; empty: the settings apply whenever the session resumes."""
    sandbox: str = ""
    network: bool = False
    protocol: Protocol | Literal["calls"] = "tags"
    """`calls`: it has no chat; a client calls its tools."""
    check: str = ""
    context: int = 0
    """Tokens for files that are chosen from the task."""
    leave_out: tuple[str, ...] = ()
    conventions: bool = False
    secrets: str = ""
    """How secrets are protected; empty: as the settings say."""
    wants: Wants = "edits"
    guide: Literal["whole", "installed"] = "whole"
    """Whether requests have the guide, or the chat keeps it."""


class RunStarted(Tagged, frozen=True, tag="run_started"):
    """The first record of a run: one message, executed by itself."""

    run_id: str
    workspace: str
    digest: str
    """The SHA-256 of the message, which stays beside the journal until all of it is done."""
    at: str
    policy: str
    sandbox: str
    network: bool
    secrets: str = "off"


class EarlierFile(Struct, frozen=True):
    """A file that was in the inbox before the session began; ignored until it changes."""

    name: str
    size_bytes: int
    modified_ns: int


class InboxFound(Tagged, frozen=True, tag="inbox_found"):
    """The files in the inbox when the session began: answers to something else."""

    files: tuple[EarlierFile, ...]
    at: str


class ShownFile(Struct, frozen=True):
    """A file that a request shows whole, with the digest of its bytes."""

    path: str
    digest: str


class ShownLines(Struct, frozen=True):
    """Lines of a file in a request, from the first to the last; a last one of 0 means all of them."""

    path: str
    first: int
    last: int


class ShownPart(Struct, frozen=True):
    """Lines of a file that the chat has, as runs from the first to the last line of one state of the file."""

    path: str
    digest: str
    lines: tuple[tuple[int, int], ...]
    own: str = ""
    """The digest of what the chat itself made of that state since; empty: it is that state."""


class Egress(Struct, frozen=True):
    """What a request carries out: its bytes, its short version's, and the secrets that it hides, by kind."""

    size_bytes: int
    digest: str
    files: tuple[ShownLines, ...] = ()
    hidden: dict[str, int] = {}
    secrets: str = ""
    short_size_bytes: int = 0
    short_digest: str = ""
    kept: tuple[str, ...] = ()
    """Files that the repository's rules keep from all chats."""
    characters: int = 0
    """Its length; the tokens are an estimate."""
    tokens: int = 0
    short_characters: int = 0
    short_tokens: int = 0


class RequestWritten(Tagged, frozen=True, tag="outbox_written"):
    sequence: int
    at: str
    shown: tuple[ShownFile, ...] = ()
    parts: tuple[str, ...] = ()
    """Files of which it shows some lines that nobody asked for."""
    egress: Egress | None = None
    beside: dict[str, int] = field(default_factory=dict)
    """Files that are no text, to be attached beside it, and the size of each in bytes."""
    held: tuple[ShownPart, ...] = ()
    """What the chat then has of files that it does not know whole."""


# What the person attaches of a file: parts of it, or all, True if they named it by itself.
Attached = bool | tuple[str, ...]


class PersonSaid(Tagged, frozen=True, tag="person_said"):
    """The person's words and files, either or both; a request that waits is rewritten with them."""

    text: str
    attached: tuple[str, ...]
    at: str
    wants: Wants | None = None
    brief: tuple[str, ...] = ()
    """Files of data among them that a folder or a glob named: their ends are shown."""
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of which of them only some lines go: "120-180", or the name of a definition."""


class RefreshAsked(Tagged, frozen=True, tag="refresh_asked"):
    """The waiting request is to be rewritten from the files of now; if `unsays`, without the last words."""

    at: str
    unsays: bool = False
    leave_out: tuple[str, ...] | None = None
    """The globs of files that are not chosen from now on; None: as before."""


class CheckNamed(Tagged, frozen=True, tag="check_named"):
    command: str
    """Another check of the person's; empty: none from now on."""
    at: str


class AnswerTaken(Tagged, frozen=True, tag="reply_taken"):
    """An answer is in inbox/processed/ under `name`; `digest` is the SHA-256 of its bytes."""

    sequence: int
    name: str
    digest: str
    at: str
    files: tuple[str, ...] = ()
    """The file names found for code blocks of an answer in another format, if it was one."""
    operations: int = 0
    skipped: tuple[int, ...] = ()
    """What the person left out of it when they reviewed it: indexes of its items."""
    lacks_guide: bool = False
    """It shows that its chat does not keep the guide, or an older one."""
    candidate: int = 0
    """Which candidate it is: its changes are made as they were tried, and nothing is run; 0: none."""


class CandidateBegan(Tagged, frozen=True, tag="candidate_began"):
    """An answer to the waiting request, kept as AnswerTaken tells, is tried in `candidates/NUMBER`."""

    number: int
    sequence: int
    name: str
    digest: str
    at: str


TrialOutcome = Literal["green", "red", "unchecked", "asks", "refused"]


class CandidateEnded(Tagged, frozen=True, tag="candidate_ended"):
    """What came of a candidate so far; one that asks, or whose chat answers again, has several."""

    number: int
    outcome: TrialOutcome
    told: str
    """What is to be compared, in a line."""
    words: str
    """The model's own last ones."""
    before: str
    after: str
    """The checkpoints of its copy; empty: nothing was changed."""
    waits: bool
    """Its own chat can answer a next request."""
    at: str
    sequence: int = 0
    egress: Egress | None = None
    """That request, and what it sends."""


class ChatsNamed(Tagged, frozen=True, tag="chats_named"):
    """So many answers to each request are tried before one is taken; 0: the first one is executed.

    With `takes_green`, one whose check succeeds is taken by itself if it is the only one.
    """

    count: int
    takes_green: bool
    at: str


class AnswerSetAside(Tagged, frozen=True, tag="reply_set_aside"):
    """A file in the inbox was rejected, and is in inbox/rejected/ under `name`."""

    name: str
    reason: str
    at: str
    remedy: str = ""


class ContentChange(Struct, frozen=True):
    """The digests of what is at a path `before` and `after` an operation; None: no file."""

    path: str
    before: str | None
    after: str | None
    real: str = ""
    """The path without links, where there is one on its way."""

    @property
    def place(self) -> str:
        return self.real or self.path


class KeptEdit(Struct, frozen=True, array_like=True):
    """What a file holds before and after an edit, by the checkpoints' ids of it, and its mode."""

    path: str
    before: str
    after: str
    mode: int


class OperationStarted(Tagged, frozen=True, tag="operation_started"):
    """An operation is about to change something.

    One that changes files carries each change, and the event that is true once all are made: a look at the
    files settles a doubt. A command carries neither.
    """

    index: int
    kind: Kind = field(name="tag")
    subject: str
    at: str
    changes: tuple[ContentChange, ...] = ()
    event: Event | None = None
    operation_id: str = ""
    is_unseen: bool = False
    """The person had changed the file since the chat last saw it whole."""
    limit_s: float | None = None
    kept: KeptEdit | None = None
    """The edit, if its checkpoints are made later than its turn."""


class _Named:
    index: int
    operation_id: str

    @property
    def name(self) -> str:
        """Its own id, or one made from its position."""
        return self.operation_id or operation_id(self.index)


class OperationEnded(_Named, Tagged, frozen=True, tag="operation_ended"):
    """The outcome of the item at `index` of the answer, counted from 0."""

    index: int
    event: Event
    at: str
    operation_id: str = ""


class CheckEnded(Tagged, frozen=True, tag="check_ended"):
    """The outcome of the person's check after this turn, or before the first answer."""

    event: Event
    at: str
    command: str = ""
    sees: str = ""
    """Which program it is, where it ran before the first answer."""
    is_news: bool = False
    """It failed after the first request was written, which is to be rewritten with that."""
    settings: str = ""
    """The digest of the settings that it saw, where it ran before the first answer."""


class ApprovalAsked(_Named, Tagged, frozen=True, tag="approval_asked"):
    """The item at `index` waits for approval."""

    index: int
    question: Question
    at: str
    operation_id: str = ""


class ApprovalAnswered(Tagged, frozen=True, tag="approval_answered"):
    index: int
    answer: Answer
    at: str


class GrantsRevoked(Tagged, frozen=True, tag="grants_revoked"):
    """The person revoked what they had approved with "always"."""

    grants: tuple[str, ...]
    at: str


class CheckpointTaken(Tagged, frozen=True, tag="checkpoint_taken"):
    """A checkpoint of the workspace from `before` or after a turn is kept under `name`."""

    sequence: int
    before: bool
    name: str
    left_out: tuple[str, ...]
    """What it does not hold, in words."""
    at: str
    uncovered: tuple[str, ...] = ()
    """Files that operations of the turn changed and that it does not hold."""


class ProtectedChange(Struct, frozen=True):
    """A protected file that a turn changed without approval, with checkpoints of it before and now."""

    path: str
    before: str
    after: str


class ProtectedFound(Tagged, frozen=True, tag="protected_found"):
    """A turn changed protected files without approval: keep them or put them back before it ends."""

    changes: tuple[ProtectedChange, ...]
    at: str


class ProtectedSettled(Tagged, frozen=True, tag="protected_settled"):
    """The decision on them. `left` are those that could not be put back; `reason` is the person's."""

    kept: tuple[str, ...]
    put_back: tuple[str, ...]
    left: tuple[str, ...]
    at: str
    reason: str = ""


class UndoBegan(Tagged, frozen=True, tag="undo_began"):
    """The files that these steps changed are about to be restored to their state before them."""

    steps: tuple[int, ...]
    """Indexes into `checkpoints.history.steps`, each a turn or an earlier undo."""
    name: str
    """The checkpoint of the workspace as it is now."""
    at: str
    force: bool = False
    files: tuple[str, ...] = ()


class UndoEnded(Tagged, frozen=True, tag="undo_ended"):
    """The undo is done; `name` is the checkpoint after it, and `notes` say what it did."""

    name: str
    notes: tuple[str, ...]
    at: str
    told: str = ""
    """The net effect, for the model, of all undos since its last answer; empty: nothing."""
    kept: tuple[str, ...] = ()
    """Files that it left alone because someone had changed them again."""
    failed: tuple[str, ...] = ()
    """Files that could not be restored; another undo does the rest."""
    is_void: bool = False


class TurnEnded(Tagged, frozen=True, tag="turn_ended"):
    """All items of the answer are done; `notes` and `facts` are about all of it, as those of events."""

    sequence: int
    notes: tuple[str, ...]
    at: str
    cut: str = ""
    """The text of the block in which the answer was truncated, kept until the answer resumes."""
    changed: tuple[str, ...] = ()
    """The first files that changed in this turn, no matter what changed them."""
    facts: tuple[str, ...] = ()


class CommitMade(Tagged, frozen=True, tag="commit_made"):
    """The person committed what the session had changed in its first `records` records."""

    commit: str
    branch: str
    files: tuple[str, ...]
    """Paths from the top of the repository."""
    records: int
    at: str


class HookChanged(Tagged, frozen=True, tag="hook_changed"):
    """Hooks of the person changed files of the session, as they were committed: a part of its last turn."""

    sequence: int
    before: str
    after: str
    files: tuple[str, ...]
    at: str


class SessionReopened(Tagged, frozen=True, tag="session_reopened"):
    at: str


class SessionClosed(Tagged, frozen=True, tag="session_closed"):
    """The person ended a session whose task is not done; it can be reopened like a complete one."""

    at: str


class SessionRenamed(Tagged, frozen=True, tag="session_renamed"):
    """The person gave the session a name, which lists show in place of its task; empty: none."""

    name: str
    at: str


_OfSession = SessionStarted | RunStarted | SessionReopened | SessionClosed | SessionRenamed
_OfRequest = InboxFound | RequestWritten | PersonSaid | RefreshAsked | CheckNamed
_OfTrials = CandidateBegan | CandidateEnded | ChatsNamed
_OfAnswer = AnswerTaken | AnswerSetAside | OperationStarted | OperationEnded | CheckEnded | TurnEnded
_OfApproval = ApprovalAsked | ApprovalAnswered | GrantsRevoked | ProtectedFound | ProtectedSettled
_OfFiles = CheckpointTaken | UndoBegan | UndoEnded | CommitMade | HookChanged
Record = _OfSession | _OfRequest | _OfTrials | _OfAnswer | _OfApproval | _OfFiles


def encode_record(record: Record) -> bytes:
    return in_json(record) + b"\n"


def decode_record(line: bytes) -> Record:
    """Return the record of one journal line, a JSON object whose `kind` names its class; else ValueError."""
    try:
        return _decoder().decode(line)
    except (MsgspecError, RecursionError) as fault:
        raise ValueError(f"not a record: {fault}") from fault


@cache
def _decoder() -> json.Decoder[Record]:
    return json.Decoder(Record)
