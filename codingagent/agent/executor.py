"""Execute operations: check the policy, change files or run commands, journal the start, return an event.

Every change is recorded before it is made, so that after a kill at any instant the journal tells what to
do: what had not begun is done, an interrupted file operation is settled by looking at the file, and an
interrupted command is never run again.

Over 500 lines: each kind of operation is a method here, and all share the two steps of the journal.
"""

import base64
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent.context import Context
from codingagent.agent.file_views import Views
from codingagent.editing import answer_checks, apply, body_repair, diff, elisions, syntax_check
from codingagent.errors import OperationError
from codingagent.model import encoding, known_files, paths, plain_text
from codingagent.model.approval import Question
from codingagent.model.effects import PathChange, changes_of
from codingagent.model.events import (
    CommandRan,
    Denied,
    Event,
    FileCreated,
    FileDeleted,
    FileEdited,
    FileFetched,
    FileMoved,
    FileRequested,
    Finished,
    FolderListed,
    Hunk,
    Interrupted,
    MessageShown,
    Refused,
)
from codingagent.model.journal_entries import ContentChange, OperationStarted
from codingagent.model.observations import Extras, Seen, digest_of
from codingagent.model.operations import (
    CreateFile,
    DeleteFile,
    Diff,
    EditFile,
    FetchFile,
    Finish,
    Kind,
    LineEnd,
    LineRange,
    ListFolder,
    MoveFile,
    Operation,
    ReadFile,
    RunCommand,
    ShowMessage,
    Substitutions,
)
from codingagent.model.session_state import Session
from codingagent.model.ui_events import FileChanged, ModelSaid, Notice, OutputCame, Remark
from codingagent.policy import evaluate
from codingagent.policy import rules as policies
from codingagent.policy.rules import Allow, Ask, Deny, Verdict
from codingagent.protocols.json.spelling import type_of
from codingagent.protocols.tags.reply import Foreign
from codingagent.storage.clock import now
from codingagent.storage.shown_texts import ShownTexts

# How much of a command's output a result shows (specification 003, RUN_COMMAND).
OUTPUT_LIMIT_CHARACTERS = 20_000

# How much of a command's output the screen shows as it comes.
_LIVE_LIMIT_CHARACTERS = 50_000

_GIT_CAME = (
    "this command made .git here: commands can only read it from now on, and the person should look"
    " at its config and hooks before using git here"
)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

# More files in one request do not help a model; it can narrow the glob.
_GLOB_LIMIT_FILES = 100


class Chat(Struct, frozen=True):
    """Context for checking the changes in a chat's answer; a program's are not checked.

    `later` returns the operations that follow in the answer. `session` holds what the chat knows of files,
    and `texts` the contents of such files, by digest.
    """

    later: Callable[[], Iterable[Operation]] = tuple
    session: Session | None = None
    texts: ShownTexts | None = None


class Order(Struct, frozen=True):
    """An operation to do, and its position in the answer, counted from 0.

    `id` is the answer's own name for it, or empty. `earlier` are the events of the same answer so far. `room`
    is the number of characters of contents and outputs that its event may hold. `foreign` says whether it
    came in a format other than the protocol's. `is_check` means that it is the person's own check: the policy
    does not ask. `chat` is set for operations of an answer.
    """

    index: int
    operation: Operation
    earlier: Sequence[Event] = ()
    room: int = 2**62
    id: str = ""
    foreign: Foreign = "no"
    is_check: bool = False
    chat: Chat | None = None

    @property
    def is_json(self) -> bool:
        """Return whether it came in a JSON message: only there operations have names."""
        return bool(self.id)

    @property
    def kind(self) -> Kind:
        return Kind.CHECK if self.is_check else self.operation.kind


class _Change(Struct, frozen=True):
    """A file change that is known to be possible: its bytes before and after, and its event."""

    path: str
    seen: Seen | None
    data: bytes | None
    """None deletes the file."""
    before: str | None
    event: Event
    is_unseen: bool = False
    """The person had changed the file since the chat last saw it whole."""


class _Plan(Struct, frozen=True):
    """The planned operation, for approval; `parts` are everything that a yes depends on."""

    subject: str
    parts: tuple[str, ...]
    shown: Callable[[], str]


class Agent:
    """Execute operations of any protocol."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._views = Views(context.workspace)

    def perform(self, order: Order, approved: str = "") -> Event | Question:
        """Do one operation and return its outcome; the model's mistakes are events too.

        If the policy requires approval, return a question instead. Call again with the question's digest: the
        operation is done if it would still do exactly the same.

        Args:
            order: the operation.
            approved: the digest of the question that was answered with yes.

        Raises:
            WorkError: if the journal can't be written. Nothing was changed then.
            KeyboardInterrupt: passed on; a running command was ended.
        """
        try:
            return self._do(order, approved)
        except OperationError as fault:
            return Refused(order.kind, fault.reason, fault.detail, subject_of(order.operation))

    def settle(self, started: OperationStarted) -> Event | None:
        """Return the outcome of an operation that a kill interrupted.

        None means that nothing had happened yet: it can be done as if it had never begun.
        """
        if started.event is None:
            return Interrupted(started.kind, started.subject)
        follows = {change.path: change.follows for change in changes_of(started.event)}
        found = [self._digest_now(each.path, follows[each.path]) for each in started.changes]
        if found == [change.after for change in started.changes]:
            return started.event
        if found == [change.before for change in started.changes]:
            return None
        if isinstance(started.event, FileMoved) and self._has_both_names(started.event):
            return started.event
        note = "the file is neither as it was before nor as it should be now: read it"
        return Interrupted(started.kind, started.subject, (note,))

    def _has_both_names(self, event: FileMoved) -> bool:
        """Finish a move that a kill stopped between its two steps; return whether it did."""
        try:
            return self._context.workspace.finish_move(event.path, event.to)
        except OperationError:
            return False

    def _digest_now(self, path: str, follow_last: bool) -> str | None:
        """Return the digest of the file that a kill left at a path, and remove a partial one beside it."""
        try:
            self._context.workspace.discard_temporary(path)
            return self._context.workspace.digest(path, follow_last=follow_last)
        except OperationError:
            return "out of reach"

    def _do(self, order: Order, approved: str) -> Event | Question:
        operation = order.operation
        match operation:
            case CreateFile():
                return self._change(
                    order, operation, self._plan_creation(order, operation), approved
                )
            case EditFile():
                return self._change(order, operation, self._plan_edit(order, operation), approved)
            case DeleteFile():
                return self._apply(order, self._plan_deletion(operation), approved)
            case MoveFile():
                return self._move(order, operation, approved)
            case ReadFile():
                return self._request(order, operation)
            case FetchFile():
                return self._fetch(order, operation)
            case ListFolder():
                return self._list(order, operation)
            case RunCommand():
                return self._run(order, operation, approved)
            case ShowMessage():
                self._context.show(ModelSaid(plain_text.without_controls(operation.text)))
                return MessageShown(operation.text)
            case Finish():
                return Finished(operation.summary)
            case _:
                assert_never(operation)

    # --- policy --------------------------------------------------------------------------------

    def _gate(
        self, order: Order, verdict: Verdict, plan: _Plan, approved: str
    ) -> Event | Question | None:
        """Return what prevents an operation from being done, or None."""
        match verdict:
            case Allow():
                return None
            case Deny():
                return _denied(order, plan.subject, verdict)
            case Ask():
                # So questions of sessions of version 0.1.0 keep their digests.
                kind = type_of(order.kind) if order.is_json else order.kind
                digest = digest_of(
                    "\0".join((kind, plan.subject, *plan.parts)).encode(errors="replace")
                )
                if order.is_check or digest == approved:
                    return None
                return Question(
                    order.kind,
                    plan.subject,
                    verdict.rules,
                    verdict.reasons,
                    plan.shown(),
                    digest,
                    verdict.grants,
                )
            case _:
                assert_never(verdict)

    def _judge(self, effect: PathChange, size_bytes: int) -> tuple[str, Verdict]:
        """Return the path without links, which may lead to a protected file, and what the policy says."""
        real = self._context.workspace.resolved(effect.path, follow_last=effect.follows)
        return real, policies.judge_change(self._context.policy, effect.after, real, size_bytes)

    def _start(
        self,
        order: Order,
        subject: str,
        changes: tuple[ContentChange, ...] = (),
        event: Event | None = None,
        *,
        is_unseen: bool = False,
    ) -> None:
        """Journal that an operation begins: everything that it changes is recorded before it is changed."""
        started = OperationStarted(
            order.index, order.kind, subject, now(), changes, event, order.id, is_unseen
        )
        self._context.log.record(started)

    # --- files ---------------------------------------------------------------------------------

    def _plan_creation(self, order: Order, operation: CreateFile) -> _Change:
        workspace, path = self._context.workspace, operation.path
        workspace.check_writable(path)
        exists = workspace.exists(path)
        # Of a file too large to read, the beginning is enough: only its line ends matter here.
        seen = workspace.read(path, whole=False) if exists else None
        if seen is not None and not operation.overwrite:
            if order.foreign == "no" or _bytes_of(operation, seen) != seen.data:
                raise OperationError(
                    f"File '{path}' already exists; set overwrite to true, or name another path"
                )
            event = FileCreated(path, len(seen.data), replaced=True, notes=(_THERE_ALREADY,))
            return _Change(path, seen, seen.data, workspace.digest(path), event)
        if not exists:
            paths.check_new_name(path)
        if order.chat is not None:
            meant = answer_checks.edit_meant(operation, _text_of(seen))
            if meant is not None:
                return self._plan_edit(order, meant, (_EDIT_MEANT,))
        operation, notes = _as_meant(operation, seen)
        _check_whole(operation, seen)
        data = _bytes_of(operation, seen)
        before = workspace.digest(path) if exists else None
        notes += _check_reading(order, operation, seen, data)
        return _Change(path, seen, data, before, FileCreated(path, len(data), exists, notes))

    def _plan_edit(self, order: Order, operation: EditFile, notes: tuple[str, ...] = ()) -> _Change:
        path = operation.path
        self._context.workspace.check_writable(path)
        seen = self._context.workspace.read(path)
        text = encoding.decode_file(seen.data)
        if text is None:
            raise OperationError(
                f"File '{path}' is not text ({len(seen.data)} bytes); replace it whole"
            )
        try:
            earlier = _earlier_hunks(path, order.earlier)
            edited = answer_checks.apply_edit(operation, text.text, earlier)
        except OperationError as fault:
            raise OperationError(f"'{path}': {fault.reason}", fault.detail) from fault
        data = text.encode(edited.text)
        notes += edited.notes + _shift_notes(operation, order.earlier)
        notes += _check_reading(order, operation, seen, data)
        if edited.text == text.text:
            notes += ("the new lines are the same as the old ones: the file is as it was",)
        excerpt = apply.excerpt(edited.text, edited.hunks)
        event = FileEdited(path, edited.hunks, excerpt, _count(operation), notes)
        return _Change(path, seen, data, digest_of(seen.data), event)

    def _plan_deletion(self, operation: DeleteFile) -> _Change:
        path = operation.path
        self._context.workspace.check_deletable(path)
        before = self._context.workspace.digest(path, follow_last=False)
        return _Change(path, None, None, before, FileDeleted(path))

    def _change(
        self, order: Order, operation: CreateFile | EditFile, change: _Change, approved: str
    ) -> Event | Question:
        """Make a change, unless it would overwrite a change by the person that the chat has not seen."""
        known = self._known_otherwise(order, change)
        if known is None:
            return self._apply(order, change, approved)
        assert order.chat is not None, "a chat knows it"
        assert change.seen is not None, "the file is there"
        texts = order.chat.texts
        old = "" if known == "" else None if texts is None else texts.read(known)
        present = _text_of(change.seen)
        present = None if present is None else present.replace("\r\n", "\n")
        if isinstance(change.event, FileEdited) and _has_same_lines(operation, old, present):
            event = replace(change.event, notes=(*change.event.notes, _UNSEEN))
            return self._apply(order, replace(change, event=event, is_unseen=True), approved)
        path = change.path
        detail = ""
        if self._context.may_read(path) and old is not None and present is not None:
            detail = diff.text_of(path, old.encode(), present.encode(errors="replace"))
        self._context.show(
            Remark(
                f"{paths.shown(path)}: you changed it since the chat saw it last, so the answer did not"
                " replace it; the next request shows your change"
            )
        )
        what = "these lines" if isinstance(change.event, FileEdited) else "it"
        reason = (
            f"The person changed '{path}' since you saw it last, and this would take that back: nothing"
            f" was written. {'Their change and the whole file are' if detail else 'The whole file is'} shown"
            f" in this request: keep what they changed, or drop it on purpose, and send {what} again"
        )
        assert change.before is not None, "the file is there"
        return Refused(order.kind, reason, detail, path, digest=change.before)

    def _known_otherwise(self, order: Order, change: _Change) -> str | None:
        """Return the digest of a file as the chat knows it, if the person has changed it since."""
        session = None if order.chat is None else order.chat.session
        if session is None or change.seen is None or change.data == change.seen.data:
            return None
        # Most files are unchanged: search the journal only for the others.
        if session.known.get(change.path) in (None, change.before):
            return None
        known = known_files.digest_known(session, change.path)
        if known == change.before or known_files.is_ours(session, change.seen.state[3]):
            return None
        return known

    def _apply(self, order: Order, change: _Change, approved: str) -> Event | Question:
        after = None if change.data is None else digest_of(change.data)
        plan = _Plan(
            change.path,
            (change.before or "", after or ""),
            lambda: _difference(change),
        )
        (effect,) = changes_of(change.event)
        real, verdict = self._judge(effect, len(change.data or b""))
        verdict = self._with_part(order, change, _with_format(order, change, verdict))
        if change.before is not None and change.before != after:
            verdict = self._with_loss(real, verdict)
        stopped = self._gate(order, verdict, plan, approved)
        if stopped is not None:
            return stopped
        made = _content_change(change.path, real, change.before, after)
        self._start(order, change.path, (made,), change.event, is_unseen=change.is_unseen)
        if change.data is None:
            self._context.workspace.delete(change.path)
        else:
            self._context.workspace.write(change.path, change.data, change.seen)
            old = None if change.seen is None else change.seen.data
            self._context.show(FileChanged(change.path, old, change.data))
        return change.event

    @staticmethod
    def _with_part(order: Order, change: _Change, verdict: Verdict) -> Verdict:
        """Require approval to replace a file of which the chat was shown a part, by a guess."""
        session = None if order.chat is None else order.chat.session
        is_created = isinstance(change.event, FileCreated) and change.seen is not None
        if session is None or not is_created or isinstance(verdict, Deny):
            return verdict
        if change.path not in session.parts or change.path in session.known:
            return verdict
        path = paths.shown(change.path)
        reason = f"the model saw only a part of '{path}', and replaces all of it"
        asked = Ask(("context.part",), (reason,), (f"'{path}' may be replaced unseen",))
        return _with(verdict, asked)

    def _move(self, order: Order, operation: MoveFile, approved: str) -> Event | Question:
        workspace, path, to = self._context.workspace, operation.path, operation.to
        state, replaces = workspace.check_movable(path, to, overwrite=operation.overwrite)
        if not replaces:
            paths.check_new_name(to)
        moved = workspace.digest(path, follow_last=False)
        before = workspace.digest(to, follow_last=False) if replaces else None
        event = FileMoved(path, to, state[2], replaces)
        seen = workspace.read(to, whole=False) if replaces else None
        replaced = _Change(to, seen, None, before, event)
        if self._known_otherwise(order, replaced) is not None:
            raise OperationError(
                f"The person changed '{to}' since you saw it last, and this would take that back: READ_FILE"
                " it first"
            )
        changes: list[ContentChange] = []
        asked: list[Ask] = []
        digests = {path: (moved, None), to: (before, moved)}
        for effect in changes_of(event):
            real, verdict = self._judge(effect, state[2])
            was, will_be = digests[effect.path]
            if was is not None:
                verdict = self._with_loss(real, verdict)
            if isinstance(verdict, Deny):
                return _denied(order, effect.path, verdict)
            asked += [verdict] if isinstance(verdict, Ask) else []
            changes.append(_content_change(effect.path, real, was, will_be))
        if order.foreign == "asked":
            asked.append(_FOREIGN_ASKED)
        plan = _Plan(
            path,
            (to, moved or "", before or ""),
            lambda: f"'{path}' is moved to '{to}'\n{_difference(replaced) if replaces else ''}",
        )
        stopped = self._gate(order, _all_of(asked) if asked else Allow(), plan, approved)
        if stopped is not None:
            return stopped
        self._start(order, path, tuple(changes), event)
        workspace.move(path, to, state, overwrite=operation.overwrite)
        return event

    def _with_loss(self, real: str, verdict: Verdict) -> Verdict:
        """Require approval for a change that no undo covers, unless the policy asks for nothing."""
        asks = self._context.policy.filesystem.approval_required
        if (
            not asks
            or isinstance(verdict, Deny)
            or not self._context.checkpointer.is_uncovered(real)
        ):
            return verdict
        shown = paths.shown(real)
        reason = (
            f"undo does not cover '{shown}': there is no checkpoint of it, or too much of what git ignores,"
            " or is large, is kept already"
        )
        loss = Ask(("undo.uncovered",), (reason,), (f"replacing '{shown}' without undo",))
        return _with(verdict, loss)

    def _request(self, order: Order, operation: ReadFile) -> Event:
        workspace, path = self._context.workspace, operation.path
        lines = (operation.start_line, operation.end_line)
        if not paths.is_glob(path) or workspace.exists(path):
            verdict = self._context.verdict_on_reading(path)
            if isinstance(verdict, Deny):
                return _denied(order, path, verdict)
            self._views.view(path, *lines)
            return FileRequested(path, (path,), *lines)
        fits = paths.glob_matcher(path)
        # No answer can ask for a name that is not UTF-8.
        listed = filter(_is_utf8, workspace.listing().files)
        found = sorted(filter(fits, listed))
        readable = list(filter(self._context.may_read, found))
        if not readable:
            which = "that the policy lets be read " if found else ""
            raise OperationError(
                f"No file {which}fits '{path}'; see Workspace Files for what there is"
            )
        notes: tuple[str, ...] = ()
        if len(readable) < len(found):
            notes += (f"{len(found) - len(readable)} more files fit; the policy blocks them",)
        if len(readable) > _GLOB_LIMIT_FILES:
            notes += (f"{len(readable)} files fit; only the first {_GLOB_LIMIT_FILES} were read",)
        return FileRequested(path, tuple(readable[:_GLOB_LIMIT_FILES]), *lines, notes)

    def _fetch(self, order: Order, operation: FetchFile) -> Event:
        path = operation.path
        verdict = self._context.verdict_on_reading(path)
        if isinstance(verdict, Deny):
            return _denied(order, path, verdict)
        data = self._context.workspace.read(path).data
        if len(data) > order.room:
            raise OperationError(
                f"File '{path}' has {len(data)} bytes and no room is left for them among these results;"
                " ask for fewer files at once"
            )
        size_bytes = len(data)
        if operation.encoding == "base64":
            content = base64.b64encode(data).decode()
        else:
            try:
                content = data.decode()
            except UnicodeDecodeError as fault:
                raise OperationError(
                    f"File '{path}' is not UTF-8 text (byte {fault.start + 1} of {size_bytes} can't"
                    " stand there); ask for it with encoding base64"
                ) from fault
        if plain_text.json_length(content) > order.room:
            raise OperationError(
                f"File '{path}' is full of control characters, which take more room than is left among these"
                " results; ask for it with encoding base64"
            )
        return FileFetched(path, content, operation.encoding, size_bytes)

    def _list(self, order: Order, operation: ListFolder) -> Event:
        path = operation.path
        # The root has no name of its own that a policy could block; what matters is whether it can be
        # read.
        verdict = (
            policies.judge_read(self._context.policy, path)
            if path == "."
            else self._context.verdict_on_reading(path)
        )
        if isinstance(verdict, Deny):
            return _denied(order, path, verdict)
        return FolderListed(path, self._context.workspace.entries(path))

    # --- commands ------------------------------------------------------------------------------

    def _run(self, order: Order, operation: RunCommand, approved: str) -> Event | Question:
        context = self._context
        variables = operation.variables
        _check_command(operation)
        verdict = evaluate.judge_command(
            context.policy, operation.command, str(context.workspace.root), variables
        )
        # A yes holds for the folder that cwd leads to now, and for these variables.
        where = context.workspace.resolved(operation.cwd) if operation.cwd != "." else ""
        parts = (operation.cwd, where, *(f"{name}={value}" for name, value in variables.items()))
        plan = _Plan(operation.command, parts, lambda: _command_shown(operation))
        if isinstance(verdict, Ask) and (where or variables):
            # An "always" holds only for this folder and these variables.
            given = digest_of("\0".join(parts).encode(errors="replace"))[:12]
            here = f" in '{paths.shown(operation.cwd)}' ({given})"
            verdict = replace(verdict, grants=tuple(grant + here for grant in verdict.grants))
        stopped = self._gate(order, verdict, plan, approved)
        if stopped is not None:
            return stopped
        asked_s, most_s = operation.timeout_s, context.policy.shell.timeout
        limit_s = context.settings.command_timeout if asked_s is None else asked_s or None
        if most_s is not None:
            limit_s = min(limit_s or most_s, most_s)
        had_git = context.workspace.has_git()
        with self._context.workspace.folder(operation.cwd) as folder:
            self._start(order, operation.command)
            # A command whose start is lost in a power failure would start twice.
            self._context.log.sync()
            show = _Live(self._context.show)
            extras = Extras(variables, operation.parts_streams)
            outcome = context.runner.run(operation.command, folder, limit_s, show.add, extras)
        if outcome.failure:
            raise OperationError(f"The command could not be started: {outcome.failure}")
        output = plain_text.without_controls(outcome.output)
        notes = outcome.notes
        if not had_git and context.workspace.has_git():
            notes += (_GIT_CAME,)
        if outcome.stopped_processes and outcome.ended_by == "itself":
            count = outcome.stopped_processes
            what = "background process was" if count == 1 else "background processes were"
            notes += (f"{count} {what} ended with the command",)
        return CommandRan(
            operation.command,
            outcome.exit_code,
            plain_text.clip_middle(output, OUTPUT_LIMIT_CHARACTERS, outcome.dropped_characters),
            round(outcome.duration_s, 3),
            outcome.ended_by,
            outcome.limit,
            outcome.stopped_processes,
            outcome.sandbox,
            outcome.has_network,
            _within(outcome.stdout, order.room),
            _within(outcome.stderr, order.room),
            notes,
        )


def subject_of(operation: Operation) -> str:
    """Return the subject of an operation: a path or a command; empty for messages."""
    match operation:
        case (
            CreateFile(path=path)
            | EditFile(path=path)
            | DeleteFile(path=path)
            | MoveFile(path=path)
            | ReadFile(path=path)
            | FetchFile(path=path)
            | ListFolder(path=path)
        ):
            return path
        case RunCommand(command=command):
            return command
        case ShowMessage() | Finish():
            return ""
        case _:
            assert_never(operation)


_THERE_ALREADY = "it is there already, to the byte: nothing was to be done"
_FOREIGN = "it came in another format than was asked for, and may have been meant otherwise"


_FOREIGN_ASKED = Ask(
    ("format.foreign",), (_FOREIGN,), ("changes in another format than asked for",)
)


def _with_format(order: Order, change: _Change, verdict: Verdict) -> Verdict:
    """Require approval for a change in another format, and for one that removes most of a file."""
    is_same = change.seen is not None and change.data == change.seen.data
    if order.foreign == "no" or is_same or isinstance(verdict, Deny):
        return verdict
    asked = []
    if order.foreign == "asked":
        asked.append(_FOREIGN_ASKED)
    old, new = len(change.seen.data) if change.seen is not None else 0, len(change.data or b"")
    if change.data is not None and new * 2 < old:
        reason = f"the file would shrink from {old} to {new} bytes"
        grant = f"'{paths.shown(change.path)}' may shrink to less than half"
        asked.append(Ask(("format.shrinks",), (reason,), (grant,)))
    return _with(verdict, *asked)


def _with(verdict: Verdict, *asked: Ask) -> Verdict:
    """Add questions to a verdict that is no denial, before those of the policy."""
    if not asked:
        return verdict
    return _all_of([*asked, verdict] if isinstance(verdict, Ask) else asked)


def _all_of(asked: Sequence[Ask]) -> Ask:
    """Merge several questions into one."""
    return Ask(
        tuple(rule for each in asked for rule in each.rules),
        tuple(reason for each in asked for reason in each.reasons),
        tuple(grant for each in asked for grant in each.grants),
    )


def _has_same_lines(operation: CreateFile | EditFile, old: str | None, now: str | None) -> bool:
    """Return whether an edit changes what the chat saw: its search matches, or its range is unchanged."""
    if not isinstance(operation, EditFile) or not isinstance(operation.change, LineRange):
        return True
    if old is None or now is None:
        return False
    first, last = operation.change.start_line - 1, operation.change.end_line
    return old.split("\n")[first:last] == now.split("\n")[first:last]


_UNSEEN = (
    "the person changed this file since you saw it whole: READ_FILE before you replace more of it"
)
_EDIT_MEANT = (
    "the body holds edits, so they were applied to the file; EDIT_FILE is the command for them"
)


def _check_reading(
    order: Order, operation: CreateFile | EditFile, seen: Seen | None, data: bytes
) -> tuple[str, ...]:
    """Refuse a change that makes a file unparsable; return notes."""
    chat = order.chat
    if chat is None or not syntax_check.is_known(operation.path):
        return ()
    new = encoding.decode_file(data)
    return answer_checks.check_reading(
        operation,
        _text_of(seen),
        "" if new is None else new.text,
        chat.later(),
        is_json=order.is_json,
    )


def _text_of(seen: Seen | None) -> str | None:
    found = None if seen is None else encoding.decode_file(seen.data)
    return None if found is None else found.text


def _check_command(operation: RunCommand) -> None:
    """Refuse a command that no system can start.

    Raises:
        OperationError: for an empty command, a NUL, or an invalid name of a variable.
    """
    if not operation.command.strip():
        raise OperationError("The command is empty; give a shell line")
    if "\0" in operation.command:
        raise OperationError("The command has a NUL character; write it without")
    for name, value in operation.variables.items():
        if not _VARIABLE.fullmatch(name):
            raise OperationError(
                f"'{paths.shown(name)}' is no name of a variable; use letters, digits and _"
            )
        if "\0" in value:
            raise OperationError(f"The variable {name} has a NUL character; write it without")


def _command_shown(operation: RunCommand) -> str:
    where = "" if operation.cwd == "." else f"in {operation.cwd}: "
    variables = "".join(f"{name}={shlex.quote(v)} " for name, v in operation.variables.items())
    return f"{where}{variables}{operation.command}"


def _within(text: str | None, room: int) -> str | None:
    return (
        None if text is None else plain_text.clip_middle(text, max(room, OUTPUT_LIMIT_CHARACTERS))
    )


def _content_change(path: str, real: str, was: str | None, will_be: str | None) -> ContentChange:
    return ContentChange(path, was, will_be, "" if real == path else real)


def _denied(order: Order, subject: str, verdict: Deny) -> Denied:
    return Denied(order.kind, subject, (verdict.rule,), verdict.reason, verdict.suggestion)


def _difference(change: _Change) -> str:
    """Return a change as a unified diff, for approval."""
    old = b"" if change.seen is None else change.seen.data
    return diff.text_of(change.path, old, change.data)


def _count(operation: EditFile) -> int:
    match operation.change:
        case LineRange():
            return 1
        case Substitutions():
            return len(operation.change.edits)
        case Diff():
            return len(operation.change.hunks)
        case _:
            return len(operation.change)


def _shift_notes(operation: EditFile, events: Sequence[Event]) -> tuple[str, ...]:
    """Return a note if earlier edits of this answer have moved the lines that this one counts."""
    if not isinstance(operation.change, LineRange):
        return ()
    by = apply.shift_at(_earlier_hunks(operation.path, events), operation.change.start_line)
    if not by:
        return ()
    note = (
        f"earlier edits in this reply had moved these lines by {by:+d}; the numbers were counted"
        " in the file as it stood after them: check the lines above"
    )
    return (note,)


def _earlier_hunks(path: str, events: Sequence[Event]) -> list[Hunk]:
    """Return the hunks of earlier edits of this answer in a file, in order."""
    edited = [each for each in events if isinstance(each, FileEdited) and each.path == path]
    return [hunk for event in edited for hunk in event.hunks]


class _Live:
    """Pass a running command's output to the screen, up to a limit: nobody reads more."""

    def __init__(self, show: Callable[[Notice], None]) -> None:
        self._show = show
        self._left = _LIVE_LIMIT_CHARACTERS

    def add(self, text: str) -> None:
        if self._left > 0:
            shown = plain_text.without_controls(text[: self._left])
            self._left -= len(text)
            self._show(OutputCame(shown if self._left > 0 else f"{shown}\n… (more is not shown)\n"))


def _is_utf8(name: str) -> bool:
    return name.isprintable() or not any("\ud800" <= c <= "\udfff" for c in name)


def _as_meant(operation: CreateFile, seen: Seen | None) -> tuple[CreateFile, tuple[str, ...]]:
    """Return a file without certain damage from the chat, and notes about what was repaired."""
    if isinstance(operation.content, bytes) or operation.arrival is None:
        return operation, ()
    old = None if seen is None else encoding.decode_file(seen.data)
    body = body_repair.mend_file(
        operation.content, operation.path, operation.arrival, None if old is None else old.text
    )
    if body.text == operation.content:
        return operation, body.notes
    return replace(operation, content=body.text), body.notes


def _check_whole(operation: CreateFile, seen: Seen | None) -> None:
    """Refuse to replace a whole file by a part with a placeholder for the rest."""
    if seen is None or isinstance(operation.content, bytes):
        return
    elision = elisions.elision_in(operation.content, _text_of(seen) or "", operation.path)
    if elision:
        raise OperationError(
            f"The body has '{plain_text.one_line(elision, 60)}' in place of lines of '{operation.path}',"
            " and a part never takes the place of a whole file; send all of its lines, or use EDIT_FILE"
        )


def _bytes_of(operation: CreateFile, seen: Seen | None) -> bytes:
    if isinstance(operation.content, bytes):
        return operation.content
    text = operation.content
    keeps_crlf = operation.line_end is None and seen is not None and apply.is_all_crlf(seen.data)
    if keeps_crlf or operation.line_end is LineEnd.CRLF:
        text = text.replace("\n", "\r\n")
    return text.encode()
