"""The state of a session between two records; `session_fold` makes it, and has a table of its phases."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from itertools import islice
from typing import Never, TypeVar, overload

from msgspec import Struct, field

from codingagent.errors import UsageError
from codingagent.model import journal_entries as entries
from codingagent.model.events import Event, Finished, MessageShown, Refused
from codingagent.model.operations import Kind

# A kernel may set a modification time one tick before the clock; the record has milliseconds.
_TICK_NS, _ROUNDED_NS = 20 * 10**6, 10**6
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class AppendList(Sequence[T_co]):
    """Immutable sequence whose `with_one` shares storage; a tuple is copied whole for each new value."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, shared: Sequence[T_co] = (), length: int | None = None) -> None:
        self._shared = list(shared) if length is None else shared
        self._length = len(shared) if length is None else length

    def with_one(self, value: T) -> "AppendList[T_co | T]":
        # Another row may already have grown from this one; in that case, copy.
        is_last = len(self._shared) == self._length
        shared: list[T_co | T] = self._shared if is_last else [*self]  # type: ignore[assignment]  # our own
        shared.append(value)
        return AppendList(shared, self._length + 1)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T_co]:
        return islice(self._shared, self._length)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, index: int | slice) -> T_co | tuple[T_co, ...]:
        found = range(self._length)[index]
        return self._shared[found] if isinstance(found, int) else tuple(self._shared[at] for at in found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AppendList | tuple) and (*self,) == (*other,)


NONE: AppendList[Never] = AppendList()


class Phase(Enum):
    """The step of its cycle that a session is in."""

    REQUEST_DUE = "writing request"
    AWAITING_ANSWER = "waiting for answer"
    EXECUTING = "executing"
    AWAITING_APPROVAL = "awaiting approval"
    COMPLETE = "complete"

    __hash__ = object.__hash__  # each record of a journal is looked up by it


class CheckpointState(Struct, frozen=True):
    """The checkpoints of a session, by name; empty: none. A pause for approval ends a part of a turn."""

    before: str = ""
    """The one before the part of a turn that has none after it yet."""
    turn: int = 0
    commanded_at: str = ""
    """When the first command since it was taken began; empty: none did."""
    began: str = ""
    """The one before the whole turn."""
    parts: tuple[tuple[str, str], ...] = ()
    """Those before and after each part of the turn."""
    latest: str = ""
    told: str = ""
    """The latest when the last request was written."""
    shown: str = ""
    """The same for the request before the one that is due or waits: later changes are news in it."""


class Said(Struct, frozen=True):
    """The person's words or files, and the request that they came with."""

    sequence: int
    text: str
    attached: tuple[str, ...] = ()
    is_late: bool = False
    """That request was already out and was rewritten: the answer may be to the earlier version."""
    wants: entries.Wants | None = None
    brief: tuple[str, ...] = ()
    parts: Mapping[str, tuple[str, ...]] = {}


class Session(Struct, frozen=True):
    """A session between two records. `results` are those of the current turn, or of the last one."""

    session_id: str
    task: str
    workspace: str
    created_at: str
    updated_at: str
    sequence: int = 1
    phase: Phase = Phase.REQUEST_DUE
    taken: entries.AnswerTaken | None = None
    unfinished: entries.OperationStarted | None = None
    results: AppendList[Event] = NONE
    ends: AppendList[entries.OperationEnded] = NONE
    """The records of these results."""
    returned: int = 0
    """Total characters of contents and outputs in these results."""
    notes: tuple[str, ...] = ()
    touched: frozenset[str] = frozenset()
    """Every path that the session created, changed or read."""
    last_digest: str = ""
    digests: AppendList[str] = NONE
    """Those of all answers taken."""
    lacks_guide: int = 0
    """The first request whose answer showed that its chat does not keep the guide; 0: none did."""
    earlier: tuple[entries.EarlierFile, ...] = ()
    asked: entries.ApprovalAsked | None = None
    answered: entries.ApprovalAnswered | None = None
    granted: frozenset[str] = frozenset()
    """What the person approved with "always", in words, without what they revoked."""
    denied: frozenset[str] = frozenset()
    """What they denied a secret: nothing but their own answer to a later question allows it."""
    tier: str = ""
    checkpoints: CheckpointState = CheckpointState()
    late: AppendList[tuple[int, entries.KeptEdit]] = NONE
    """Edits whose checkpoints follow later, each with its turn."""
    cut: str = ""
    """The part that arrived of the block in which the last answer was truncated."""
    undoing: entries.UndoBegan | None = None
    refused: int = 0
    """How many times DONE was not accepted because the check fails."""
    is_closed: bool = False
    """Complete because the person ended it, and its task may not be done."""
    undos: int = 0
    """Undos since the last answer, and their net effect in words for the model."""
    undo_note: str = ""
    name: str = ""
    is_run: bool = False
    """One message without a conversation: complete when that message is done."""
    said: tuple[Said, ...] = ()
    check: str = ""
    check_before: entries.CheckEnded | None = None
    """The outcome of the check before the first answer; None: it was not run then."""
    checked: Event | None = None
    """The outcome of the check in this turn or the last one; None: it was not run."""
    last_checked: Event | None = None
    is_failing: bool = False
    checked_by: str = ""
    checked_on: str = ""
    """The checkpoint of the files as they were when the check succeeded last; empty: there is none."""
    is_unchecked: bool = False
    """A file was changed since the last check; after one, also by a command: none may show that."""
    unparsed: frozenset[str] = frozenset()
    """Programs that the session made and that never could be parsed, but those that are meant so."""
    known: Mapping[str, str] = field(default_factory=dict)
    """By path, the digests of files as the chat last saw or wrote them whole; empty: it deleted it.

    A request that shows a whole file makes it known, and so does an answer that writes one. An edit of a
    known file makes the result known, unless someone else had changed the file in between. A change made
    while one of our commands, checks or undos ran counts as ours. Every other difference is the person's.
    """
    known_before: Mapping[str, str] = field(default_factory=dict)
    """The same before the request that is due or waits."""
    shown_in_part: frozenset[str] = frozenset()
    """Files that a request showed in part because a guess chose them."""
    held: Mapping[str, entries.ShownPart] = field(default_factory=dict)
    """By path, the lines that the chat has of files that a request showed in part."""
    held_before: Mapping[str, entries.ShownPart] = field(default_factory=dict)
    leave_out: tuple[str, ...] = ()
    requested: int = 0
    is_rewritten: bool = False
    """It had been written before, otherwise."""
    written: AppendList[entries.OperationStarted] = NONE
    """The file changes of this turn so far."""
    spans: AppendList[tuple[str, str]] = NONE
    """Start and end of each command, check and undo that may have changed files."""
    agreed: frozenset[str] = frozenset()
    """Grants given to commands of the turn before they ran."""
    protected_found: tuple[entries.ProtectedChange, ...] = ()
    """Protected files that the turn changed without approval, once that was checked."""
    protected_settled: entries.ProtectedSettled | None = None
    replies: AppendList[tuple[int, str]] = NONE
    """What the model said to the person, each with the number of the request that it answered."""
    turns: AppendList[tuple[int, str]] = NONE
    """By the number of the answer, what it changed and what failed in it, in words."""
    worded: int = 0
    terms: entries.SessionStarted = entries.SessionStarted("", "", "", "")
    is_taught: bool = True
    """The chat has seen the guide to the commands that edit."""
    candidates: tuple[entries.CandidateBegan, ...] = ()
    """The answers that are tried, to all requests."""
    tried: Mapping[int, entries.CandidateEnded] = {}
    """By number, what came of them last."""
    chats: entries.ChatsNamed | None = None
    """How many answers to each request are tried first, if any."""
    was_done: bool = False
    """Its task is done, and it was reopened for nothing but questions."""

    @property
    def trials(self) -> list[tuple[int, entries.CandidateEnded | None]]:
        """The numbers of the candidates for the request that waits, and what came of each so far."""
        numbers = (each.number for each in self.candidates if each.sequence == self.sequence)
        return [(number, self.tried.get(number)) for number in numbers]

    @property
    def is_asking(self) -> bool:
        """Whether the request that is due or waits is a question, whose answer may only read."""
        goes_on, asked = self.terms.wants == "words", 0
        for said in self.said:
            if said.wants and said.sequence <= self.sequence:
                goes_on = goes_on and said.wants == "words"
                asked = said.sequence if said.wants == "words" else 0
        return goes_on or asked > self.worded

    @property
    def is_first_wish(self) -> bool:
        """Whether the request that is due or waits is the first one that asks for edits."""
        return (self.sequence == 1 or not self.is_taught) and not self.is_asking

    @property
    def question(self) -> str:
        return next((said.text for said in reversed(self.said) if said.text), self.task)

    @property
    def new_wish(self) -> str:
        """What the person wants anew with this request: a question, what follows questions, or DONE."""
        words = [said for said in self.said if said.sequence == self.sequence > 1 and said.text]
        was_done = isinstance(next(reversed(self.results), None), Finished)
        is_new = self.is_asking or was_done or any(said.wants for said in words)
        return "\n\n".join(said.text for said in words) if is_new else ""

    @property
    def wish(self) -> str:
        """What is to be done: after questions, what the person wanted done first."""
        done = (said.text for said in self.said if said.wants == "edits" and said.text)
        return next(done, self.task) if self.terms.wants == "words" else self.task

    @property
    def all_notes(self) -> tuple[str, ...]:
        return (*self.notes, *filter(None, (self.undo_note,)))

    @property
    def is_only_words(self) -> bool:
        """Whether the last answer was words for the person and nothing else, in a block or without."""
        events = self.results
        said = [event for event in events if isinstance(event, MessageShown)]
        rest = [event for event in events if not isinstance(event, MessageShown)]
        return bool(said) and all(isinstance(e, Refused) and e.kind is Kind.ANSWER for e in rest)

    @property
    def is_of_tools(self) -> bool:
        """Whether a client calls tools in it: it has no chat, and nothing is sent or pasted."""
        return self.terms.protocol == "calls"

    @property
    def awaits_words(self) -> bool:
        """Whether its last words wait for the person's: a question, or the answer to one of theirs."""
        return self.is_only_words and all(said.sequence != self.sequence for said in self.said)

    @property
    def attached(self) -> tuple[str, ...]:
        """Files that the person attaches to the request that is due or waits."""
        now = (said.attached for said in self.said if said.sequence == self.sequence)
        return tuple(dict.fromkeys(path for paths in now for path in paths))

    @property
    def is_answered(self) -> bool:
        """Whether the last answer was to a question of the person's, in the middle of a task."""
        return self.worded == self.sequence - 1 > 0

    def digest_known(self, path: str) -> str | None:
        """Return the digest of a file as the chat knows it whole; None if it never did before this turn."""
        if path not in self.known:
            return None
        for start in reversed(self.written):
            for change in () if start.is_unseen else start.changes:
                if change.path == path:
                    return change.after or ""
        return self.known[path]

    @property
    def changed(self) -> tuple[str, ...]:
        """The files that operations of this turn changed, in order, each once."""
        changes = (change for start in self.written for change in start.changes)
        return tuple(dict.fromkeys(each.path for each in changes if each.before != each.after))

    def is_ours(self, modified_ns: int) -> bool:
        """Return whether a file with that modification time was written by what we ran, not by the person."""
        for begun, ended in reversed(self.spans):
            if _ns(ended) + _ROUNDED_NS < modified_ns:
                return False
            if _ns(begun) - _TICK_NS <= modified_ns:
                return True
        return False

    @property
    def is_new(self) -> bool:
        return self.sequence == 1 and self.phase is Phase.REQUEST_DUE

    @property
    def is_complete(self) -> bool:
        return self.phase is Phase.COMPLETE

    @property
    def is_awaiting_answer(self) -> bool:
        return self.phase is Phase.AWAITING_ANSWER

    @property
    def is_awaiting_approval(self) -> bool:
        return self.phase is Phase.AWAITING_APPROVAL


def _ns(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1000) * 10**6


def check_request_waits(session: Session) -> None:
    """Raise UsageError unless a request of the session waits for an answer."""
    if not session.is_awaiting_answer:
        session_id, phase = session.session_id, session.phase.value
        see = f"see `codingagent show {session_id}`"
        raise UsageError(f"session {session_id} has no request that waits; it is {phase}: {see}")
