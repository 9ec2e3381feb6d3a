"""The hinge: takes a reply, does what it says through the world, and journals all of it.

How it works. A turn is: take the reply (moved first, then journalled), execute its items in order,
end the turn, write the next request. Every change is journalled before it is made, so that a kill at
any instant leaves a state from which `recover` goes on: what had not begun is done, a file operation
in doubt is settled by looking at the file, and a command in doubt is never run again.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, assert_never

from codingagent.core import edits, encoding, outbox, paths, plain, reply, results, tokens
from codingagent.core.events import (
    CommandRan,
    Event,
    FileCreated,
    FileDeleted,
    FileEdited,
    FileRequested,
    Finished,
    Interrupted,
    MessageShown,
    Refused,
)
from codingagent.core.findings import Outcome, Seen, digest_of
from codingagent.core.listing import Listing
from codingagent.core.notices import (
    ModelSaid,
    Notice,
    OperationBegan,
    OperationDone,
    OutboxReady,
    OutputCame,
    Remark,
    ReplyAccepted,
    ReplyRejected,
    SessionDone,
    TurnDone,
    Waiting,
)
from codingagent.core.operations import (
    CreateFile,
    DeleteFile,
    EditFile,
    Finish,
    LineEnd,
    LineRange,
    ReadFile,
    RunCommand,
    ShowMessage,
)
from codingagent.core.reply import Problem, Reply, Step
from codingagent.core.session import (
    OperationEnded,
    OperationStarted,
    OutboxWritten,
    Phase,
    Record,
    ReplySetAside,
    ReplyTaken,
    Session,
    SessionReopened,
    Turn,
    TurnEnded,
    changed_paths,
    fold,
)
from codingagent.errors import OperationError

# What a result shows of a command's output (specification 003, RUN_COMMAND).
OUTPUT_LIMIT_CHARACTERS = 4000

# Of a command's output the screen shows the beginning as it comes.
_LIVE_LIMIT_CHARACTERS = 50_000

# More files than this in one request help no model; the glob can be narrowed.
_GLOB_LIMIT_FILES = 100


class WorkspaceLike(Protocol):
    """The folder that operations may touch; paths are in plain form."""

    root: Path

    def check(self) -> None: ...
    def read(self, path: str) -> Seen: ...
    def exists(self, path: str) -> bool: ...
    def check_writable(self, path: str) -> None: ...
    def write(self, path: str, data: bytes, seen: Seen | None) -> None: ...
    def delete(self, path: str) -> None: ...
    def digest(self, path: str, *, follow_last: bool = True) -> str | None: ...
    def discard_temporary(self, path: str) -> None: ...
    def folder(self, path: str) -> AbstractContextManager[int | str]: ...
    def listing(self, always: frozenset[str] = frozenset()) -> Listing: ...


class RunnerLike(Protocol):
    """What runs shell lines."""

    def run(
        self,
        command: str,
        folder: int | str,
        timeout_s: float | None,
        show: Callable[[str], None],
    ) -> Outcome: ...


class MailboxLike(Protocol):
    """The outbox and the inbox."""

    inbox: Path
    rejected: Path

    def write_outbox(self, session_id: str, sequence: int, text: str) -> Path: ...
    def read(self, name: str) -> bytes | None: ...
    def take(self, name: str, session_id: str, sequence: int) -> str: ...
    def put_back(self, taken: str, name: str) -> None: ...
    def find_taken(self, session_id: str, sequence: int) -> str | None: ...
    def read_taken(self, name: str) -> bytes | None: ...
    def set_aside(self, name: str, reason: str) -> str: ...


class JournalLike(Protocol):
    """One session's records."""

    def append(self, record: Record) -> None: ...
    def sync(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Means:
    """All that an agent works with besides its session."""

    workspace: WorkspaceLike
    runner: RunnerLike
    mailbox: MailboxLike
    journal: JournalLike
    write_document: Callable[[Session], None]
    sync: Callable[[], None]
    """Makes all that was written durable."""
    now: Callable[[], str]
    """UTC, ISO 8601 with Z."""
    show: Callable[[Notice], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings that an agent heeds."""

    budget: outbox.Budget
    environment: outbox.Environment
    locale_codec: str


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a file that is sure to be possible: its bytes before and after, and the event then."""

    path: str
    seen: Seen | None
    data: bytes | None
    """None deletes the file."""
    before: str | None
    event: Event


class Agent:
    """One session at work. `session` is always the fold of what the journal holds."""

    def __init__(self, session: Session, means: Means, limits: Limits) -> None:
        self.session = session
        self._means = means
        self._limits = limits

    # --- turns ---------------------------------------------------------------------------------

    def recover(self) -> None:
        """Finishes what a kill, an interrupt or a fault left unfinished, up to the next request.

        Raises:
            WorkError: if the disk does not let it.
        """
        if self.session.phase is Phase.AWAITING_REPLY:
            self._recover_taken()
        if self.session.phase is Phase.EXECUTING:
            self._means.show(
                Remark(f"going on with reply {self.session.sequence}, which was interrupted")
            )
            self._settle()
            self._execute()
        if self.session.phase is Phase.OUTBOX_DUE:
            self._write_outbox()
        self._means.write_document(self.session)

    def reopen(self) -> None:
        """Goes on with a session that was complete: the next request has its last results."""
        self._record(SessionReopened(self._means.now()))

    def announce(self, *, watched: bool) -> None:
        """Says what the person is to do now, and whether someone waits for it."""
        path = self._means.mailbox.inbox.parent / "outbox"
        name = f"{self.session.session_id}_seq{self.session.sequence:04d}.txt"
        self._means.show(
            Waiting(
                self.session.session_id,
                self.session.sequence,
                str(path / name),
                str(self._means.mailbox.inbox),
                watched,
            )
        )

    def take(self, name: str, *, accept: bool = False) -> None:
        """Takes a finished file of the inbox: a turn, or to `rejected/` with the reason.

        Args:
            name: the file.
            accept: execute it even if it answers another request or was executed already.

        Raises:
            WorkError: if the disk does not let it. The reply is then in the inbox or in processed/.
        """
        data = self._means.mailbox.read(name)
        reason, remedy = self._objection(data, accept=accept)
        if reason or data is None:
            self._set_aside(name, reason, remedy)
            return
        taken = self._means.mailbox.take(name, self.session.session_id, self.session.sequence)
        if self._means.mailbox.read_taken(taken) != data:
            # Someone was still writing it; nothing was journalled, so it is simply not ready yet.
            self._means.mailbox.put_back(taken, name)
            return
        self._begin(taken, data)
        self._execute()
        self._finish_turn()

    def _finish_turn(self) -> None:
        if self.session.phase is Phase.OUTBOX_DUE:
            self._write_outbox()
        self._means.sync()
        self._means.write_document(self.session)

    def _begin(self, taken: str, data: bytes) -> None:
        self._record(ReplyTaken(self.session.sequence, taken, digest_of(data), self._means.now()))

    def _recover_taken(self) -> None:
        """A reply that was moved and not journalled: the name that it got says whose it is."""
        name = self._means.mailbox.find_taken(self.session.session_id, self.session.sequence)
        data = None if name is None else self._means.mailbox.read_taken(name)
        if name is not None and data is not None:
            self._begin(name, data)

    def _objection(self, data: bytes | None, *, accept: bool) -> tuple[str, str]:
        """Gives why a reply is not to be executed, and what to do about it; nothing if it is."""
        save_again = "save the answer's text as a plain .txt file in the inbox"
        if data is None:
            return "it is too large to be a reply", save_again
        read = encoding.decode_reply(data, self._limits.locale_codec)
        if read is None:
            return "it is no text", save_again
        found = reply.read(read.text)
        if found.has_outbox:
            return (
                "it holds a request, not an answer: a request's examples must not be executed",
                "save only the chat's answer in the inbox",
            )
        reason = "" if accept else reply.objection(found.header, self.session, digest_of(data))
        return (
            reason,
            f"to execute it all the same: codingagent resume {self.session.session_id} --accept",
        )

    def _set_aside(self, name: str, reason: str, remedy: str) -> None:
        new = self._means.mailbox.set_aside(name, reason)
        self._record(ReplySetAside(new, reason, self._means.now()))
        path = self._means.mailbox.rejected / new
        if remedy.endswith("--accept"):
            remedy = f"{remedy} {path}"
        self._means.show(ReplyRejected(name, str(path), reason, remedy))

    # --- execution -----------------------------------------------------------------------------

    def _execute(self) -> None:
        """Does all items of the reply that are not done yet, and ends the turn."""
        taken = self.session.reply
        assert taken is not None, "a turn has a reply"
        found = self._read_reply(taken)
        self._means.workspace.check()
        operations = sum(isinstance(item, Step) for item in found.items)
        self._means.show(ReplyAccepted(taken.sequence, taken.name, operations))
        for index, item in enumerate(found.items):
            if index >= len(self.session.results):
                self._perform(index, item)
        self._record(TurnEnded(self.session.sequence, found.notes, self._means.now()))
        self._conclude(taken)

    def _read_reply(self, taken: ReplyTaken) -> Reply:
        data = self._means.mailbox.read_taken(taken.name)
        if data is None or digest_of(data) != taken.digest:
            reason = (
                f"The reply {taken.name} was changed or removed while it was executed; what is not"
                " among these results was not done: send it again"
            )
            done = len(self.session.results)
            lost = (Problem("REPLY", reason, 1),) * (done + 1)
            return Reply(lost, None, has_outbox=False, notes=())
        read = encoding.decode_reply(data, self._limits.locale_codec)
        assert read is not None, "no text is never taken"
        return reply.with_note(reply.read(read.text), read.note)

    def _conclude(self, taken: ReplyTaken) -> None:
        told = [results.result_of(event) for event in self.session.results]
        failed = [result for result in told if not result.success]
        turn = Turn(taken.sequence, taken.name, taken.at, self.session.results)
        self._means.show(
            TurnDone(
                taken.sequence,
                len(told) - len(failed),
                len(failed),
                changed_paths(turn),
                self.session.notes,
            )
        )
        if self.session.is_complete:
            last = self.session.results[-1]
            summary = last.summary if isinstance(last, Finished) else ""
            lines = tuple(f"{result.command_type}: {result.summary}" for result in failed)
            self._means.show(SessionDone(self.session.session_id, summary, lines))

    def _perform(self, index: int, item: Step | Problem) -> None:
        """Does one item; whatever the model got wrong in it becomes its result."""
        self._means.show(OperationBegan(index, item.tag, _subject(item)))
        try:
            event = self._execute_item(index, item)
        except OperationError as fault:
            event = Refused(item.tag, fault.reason, fault.detail)
        self._end(index, replace(event, notes=item.notes + event.notes))

    def _end(self, index: int, event: Event) -> None:
        self._record(OperationEnded(index, event, self._means.now()))
        self._means.show(OperationDone(index, results.result_of(event)))

    def _execute_item(self, index: int, item: Step | Problem) -> Event:
        if isinstance(item, Problem):
            return Refused(item.tag, item.reason, item.detail)
        operation = item.operation
        match operation:
            case CreateFile():
                return self._apply(index, item, self._plan_creation(operation))
            case EditFile():
                return self._apply(index, item, self._plan_edit(operation))
            case DeleteFile():
                return self._apply(index, item, self._plan_deletion(operation))
            case ReadFile():
                return self._request(operation)
            case RunCommand():
                return self._run(index, item, operation)
            case ShowMessage():
                self._means.show(ModelSaid(plain.without_controls(operation.text)))
                return MessageShown(operation.text)
            case Finish():
                return Finished(operation.summary)
            case _:
                assert_never(operation)

    # --- files ---------------------------------------------------------------------------------

    def _plan_creation(self, operation: CreateFile) -> _Change:
        workspace, path = self._means.workspace, operation.path
        workspace.check_writable(path)
        exists = workspace.exists(path)
        if exists and not operation.overwrite:
            raise OperationError(
                f"File '{path}' exists already; leave out overwrite=\"false\" to replace it"
            )
        if not exists:
            paths.check_new_name(path)
        seen = workspace.read(path) if exists else None
        data = _bytes_of(operation, seen)
        event = FileCreated(path, len(data), exists)
        return _Change(path, seen, data, None if seen is None else digest_of(seen.data), event)

    def _plan_edit(self, operation: EditFile) -> _Change:
        path = operation.path
        self._means.workspace.check_writable(path)
        seen = self._means.workspace.read(path)
        text = encoding.decode_file(seen.data)
        if text is None:
            raise OperationError(
                f"File '{path}' is not text ({len(seen.data)} bytes); replace it whole"
            )
        try:
            edited = edits.apply(operation.change, text.text)
        except OperationError as fault:
            raise OperationError(f"'{path}': {fault.reason}", fault.detail) from fault
        notes = edited.notes + self._shift_notes(operation)
        if edited.text == text.text:
            notes += ("the new lines are the same as the old ones: the file is as it was",)
        event = FileEdited(path, edited.hunks, edits.excerpt(edited.text, edited.hunks), notes)
        return _Change(path, seen, text.encode(edited.text), digest_of(seen.data), event)

    def _shift_notes(self, operation: EditFile) -> tuple[str, ...]:
        """Says so if earlier edits of this reply have moved the lines that this one counts."""
        if not isinstance(operation.change, LineRange):
            return ()
        earlier = [
            hunk
            for event in self.session.results
            if isinstance(event, FileEdited) and event.path == operation.path
            for hunk in event.hunks
        ]
        by = edits.shift_at(earlier, operation.change.start_line)
        if not by:
            return ()
        note = (
            f"earlier edits in this reply had moved these lines by {by:+d}; the numbers were counted"
            " in the file as it stood after them: check the lines above"
        )
        return (note,)

    def _plan_deletion(self, operation: DeleteFile) -> _Change:
        path = operation.path
        before = self._means.workspace.digest(path, follow_last=False)
        if before is None:
            raise OperationError(f"File '{path}' not found")
        return _Change(path, None, None, before, FileDeleted(path))

    def _apply(self, index: int, item: Step, change: _Change) -> Event:
        after = None if change.data is None else digest_of(change.data)
        start = OperationStarted(
            index, item.tag, change.path, self._means.now(), change.before, after, change.event
        )
        self._record(start)
        if change.data is None:
            self._means.workspace.delete(change.path)
        else:
            self._means.workspace.write(change.path, change.data, change.seen)
        return change.event

    def _request(self, operation: ReadFile) -> Event:
        workspace, path = self._means.workspace, operation.path
        lines = (operation.start_line, operation.end_line)
        if not paths.is_glob(path) or workspace.exists(path):
            view = _view(path, workspace.read(path), *lines)
            return FileRequested(path, (view.path,), *lines)
        fits = paths.glob_pattern(path).fullmatch
        found = sorted(file.path for file in workspace.listing().files if fits(file.path))
        if not found:
            raise OperationError(f"No file fits '{path}'; see Workspace Files for what there is")
        notes: tuple[str, ...] = ()
        if len(found) > _GLOB_LIMIT_FILES:
            notes = (f"{len(found)} files fit; only the first {_GLOB_LIMIT_FILES} were read",)
        return FileRequested(path, tuple(found[:_GLOB_LIMIT_FILES]), *lines, notes)

    # --- commands ------------------------------------------------------------------------------

    def _run(self, index: int, item: Step, operation: RunCommand) -> Event:
        limit_s = operation.timeout_s or self._limits.environment.timeout_s
        with self._means.workspace.folder(operation.cwd) as folder:
            self._record(OperationStarted(index, item.tag, operation.command, self._means.now()))
            # A start that is forgotten would be a second start after a power failure.
            self._means.journal.sync()
            show = _Live(self._means.show)
            outcome = self._means.runner.run(operation.command, folder, limit_s, show.add)
        if outcome.failure:
            raise OperationError(f"The command could not be started: {outcome.failure}")
        output = plain.without_controls(outcome.output)
        notes = outcome.notes
        if outcome.stopped_processes and outcome.ended_by == "itself":
            count = outcome.stopped_processes
            what = "background process was" if count == 1 else "background processes were"
            notes += (f"{count} {what} ended with the command",)
        return CommandRan(
            operation.command,
            outcome.exit_code,
            plain.clip_middle(output, OUTPUT_LIMIT_CHARACTERS, outcome.dropped_bytes),
            round(outcome.duration_s, 3),
            outcome.ended_by,
            outcome.limit,
            outcome.stopped_processes,
            notes=notes,
        )

    # --- after a kill --------------------------------------------------------------------------

    def _settle(self) -> None:
        """Finds out what came of the operation that had started and not ended."""
        started = self.session.started
        if started is None:
            return
        if started.event is None:
            self._end(started.index, Interrupted(started.tag, started.subject))
            return
        follow = not isinstance(started.event, FileDeleted)
        try:
            self._means.workspace.discard_temporary(started.subject)
            now = self._means.workspace.digest(started.subject, follow_last=follow)
        except OperationError:
            now = "out of reach"
        if now == started.after:
            self._end(started.index, started.event)
        elif now != started.before:
            note = "the file is neither as it was before nor as it should be now: read it"
            self._end(started.index, Interrupted(started.tag, started.subject, (note,)))
        # Else nothing had happened yet, and the item is done as if it had never begun.

    # --- the request ---------------------------------------------------------------------------

    def _write_outbox(self) -> None:
        """Writes the request that is due. All that it tells of is durable before it appears."""
        text = outbox.render(self.session, self._context(), self._limits.budget)
        self._means.sync()
        session_id, sequence = self.session.session_id, self.session.sequence
        path = self._means.mailbox.write_outbox(session_id, sequence, text)
        self._record(OutboxWritten(sequence, self._means.now()))
        self._means.show(
            OutboxReady(session_id, sequence, str(path), len(text), tokens.estimate(text))
        )

    def _context(self) -> outbox.Context:
        views: dict[tuple[str, int | None, int | None], outbox.FileView] = {}
        unread: list[str] = []
        requests = [event for event in self.session.results if isinstance(event, FileRequested)]
        for path, start, end in _wanted(requests):
            try:
                views[path, start, end] = _view(path, self._means.workspace.read(path), start, end)
            except OperationError as fault:
                unread.append(f"{paths.shown(path)}: {fault.reason}")
        listing = self._means.workspace.listing(self.session.touched)
        return outbox.Context(listing, tuple(views.values()), unread, self._limits.environment)

    def _record(self, record: Record) -> None:
        self._means.journal.append(record)
        self.session = fold(self.session, record)


class _Live:
    """Passes a running command's output on to the screen, up to a limit: no one reads more."""

    def __init__(self, show: Callable[[Notice], None]) -> None:
        self._show = show
        self._left = _LIVE_LIMIT_CHARACTERS

    def add(self, text: str) -> None:
        if self._left > 0:
            shown = plain.without_controls(text[: self._left])
            self._left -= len(text)
            self._show(OutputCame(shown if self._left > 0 else f"{shown}\n… (more is not shown)\n"))


def _wanted(requests: Iterable[FileRequested]) -> Iterator[tuple[str, int | None, int | None]]:
    """Gives each file and range once, and no range of a file that is wanted whole."""
    wanted = dict.fromkeys(
        (path, event.start_line, event.end_line) for event in requests for path in event.paths
    )
    for path, start, end in wanted:
        if (start, end) == (None, None) or (path, None, None) not in wanted:
            yield path, start, end


def _subject(item: Step | Problem) -> str:
    if isinstance(item, Problem):
        return f"line {item.line}"
    match item.operation:
        case (
            CreateFile(path=path)
            | EditFile(path=path)
            | DeleteFile(path=path)
            | ReadFile(path=path)
        ):
            return path
        case RunCommand(command=command):
            return plain.one_line(command)
        case ShowMessage() | Finish():
            return ""
        case _:
            assert_never(item.operation)


def _bytes_of(operation: CreateFile, seen: Seen | None) -> bytes:
    if isinstance(operation.content, bytes):
        return operation.content
    text = operation.content
    keeps_crlf = operation.line_end is None and seen is not None and edits.is_all_crlf(seen.data)
    if keeps_crlf or operation.line_end is LineEnd.CRLF:
        text = text.replace("\n", "\r\n")
    return text.encode()


def _view(path: str, seen: Seen, start: int | None, end: int | None) -> outbox.FileView:
    """Gives the lines asked for of a file's bytes.

    Raises:
        OperationError: if the file is no text, or has no such line.
    """
    decoded = encoding.decode_file(seen.data)
    if decoded is None:
        raise OperationError(f"File '{path}' is not text ({len(seen.data)} bytes)")
    text = decoded.text.encode("utf-8", "replace").decode().replace("\r\n", "\n")
    if text and not text.endswith("\n"):
        text += "\n"
    total = text.count("\n")
    if start is None and end is None:
        return outbox.FileView(path, text, 1, total)
    if start is not None and start > total:
        raise OperationError(
            f"File '{path}' has {total} {'line' if total == 1 else 'lines'}, no line {start}"
        )
    first = start or 1
    last = min(end or total, total)
    lines = text.split("\n")[first - 1 : last]
    return outbox.FileView(path, "".join(f"{line}\n" for line in lines), first, total)
