"""Show records and notices as lines of text, or of JSON; `terminal` adds colours and questions."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, get_args

from msgspec import to_builtins
from msgspec.structs import replace

from codingagent.cli import layout, stdio
from codingagent.cli.command_table import runnable
from codingagent.cli.record_words import Hung, asked_in, laid_out, lines_of, margin, request_line
from codingagent.editing import diff
from codingagent.errors import WorkError
from codingagent.model import check_outcome, events, operations, results
from codingagent.model import journal_entries as entries
from codingagent.model import notices as ui
from codingagent.model.approval import Answer
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import on_screen, plural
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings

if TYPE_CHECKING:
    from codingagent.cli.keyboard import Keyboard
    from codingagent.storage.mailbox import Mailbox

# A change that needs no approval is shown in brief; the rest is counted.
_SHORT_LINES = 12
_SHORT_CONTEXT = 1
_NEARLY_FULL = 0.8
# More names than this help nobody.
_NAMES = 30
# The end of a failure's output says most; the request to the model has more of it.
_FAILURE_LINES = 4
Kinds = tuple[type[entries.Record], ...]


class Screen:
    """An output that shows notices. If it fails (`| head`, a full disk), the work goes on without it."""

    told: Kinds = ()
    """The records that it shows of this process's own work."""
    told_elsewhere: Kinds = ()
    """Those that it shows of another's."""

    def __init__(self, stream: TextIO, changes: str = "never") -> None:
        self._stream = stream
        self._fault: OSError | None = None
        self.how = changes
        """How much of each change to show: never, short or full."""
        self._approved = ""
        self._change: ui.FileChanged | None = None
        self.is_passing = False
        """The session is gone when this process ends: no command can name it."""
        self.files_found: Callable[[], int] = int
        """How many files of the workspace were found, while it is looked through."""
        self.files_saved: Callable[[], int] = int
        """How many of them were read, while a checkpoint is taken."""
        self.mailbox: Mailbox | None = None
        """Where the requests and answers are."""
        self.changes: Callable[[], ui.Changes] = ui.Changes
        self._budget = Settings().context_chars
        """How many characters a request may have."""
        self.offers: tuple[str, ...] = ()
        """The commands that were offered by their numbers when the task was done."""

    def show(self, notice: ui.Notice) -> None:
        # A change that was not shown for approval; the diff is computed later.
        if isinstance(notice, ui.FileChanged) and notice.path != self._approved:
            self._change = notice
        self._output(lambda: self._show(notice))

    def record(self, record: entries.Record, session: Session, *, is_elsewhere: bool = False) -> bool:
        """Show a record, perhaps of another process; return whether it has anything to show."""
        if not isinstance(record, self.told_elsewhere if is_elsewhere else self.told):
            return False
        self._output(lambda: self._record(record, session))
        if isinstance(record, entries.OperationEnded):
            self._approved, self._change = "", None
        return True

    def _output(self, act: Callable[[], None]) -> None:
        if self._fault is not None:
            return
        try:
            act()
            self._stream.flush()
        except OSError as fault:
            self._fault = fault
            stdio.silence(sys.stdout)

    def check(self) -> None:
        """Raise a WorkError if something could not be shown, unless its reader only went away."""
        if self._fault is not None and not stdio.has_no_reader(self._fault):
            reason = self._fault.strerror or self._fault
            raise WorkError(f"standard output can't be written: {reason}; what was done stays")

    def remark(self, text: str) -> None:
        self.show(ui.Remark(text))

    def obey(self, settings: Settings, mailbox: "Mailbox", *, asked: bool) -> None:
        """Set how much of each change to show; `asked`: explicitly requested."""
        # Nobody may be looking: show only what was asked for explicitly.
        self.how = settings.diff if asked or settings.diff == "full" else "never"
        self._budget, self.mailbox = settings.context_chars, mailbox

    def ask(self, asked: entries.ApprovalAsked, session: Session, elsewhere: ui.Elsewhere) -> Answer | None:
        """Show a question. Return the answer; None if nobody can answer here, or did `elsewhere`."""
        del elsewhere  # nobody is waited for
        self._approved = asked.question.subject
        self._output(lambda: self._record(asked, session))
        return None

    def choose(self, question: str, choices: Sequence[str]) -> int | None:
        """Ask the person for one of these; None if nobody can answer."""

    def keyboard(self) -> "AbstractContextManager[Keyboard] | None":
        """Return the person's keyboard, to be entered; None if nobody can type here."""

    def any_key(self, what: str, limit_s: float | None = None) -> AbstractContextManager[Callable[[], bool]]:
        """Show what goes on; what is entered says whether a key was pressed, which stays to be read."""
        self.busy(what, limit_s)
        return contextlib.nullcontext(bool)

    def busy(self, what: str, limit_s: float | None = None, count: Callable[[], int] = int) -> None:
        """Show a sign of life until the next notice, if that takes long; it may count files."""

    def flush(self) -> None:
        """Show what waits to be shown with what comes next."""

    def offer(self, session: Session) -> None:
        """Show what a session that is done changed and no commit has, and what keeps it or takes it back."""

    def copied(self, sequence: int, done: str, if_not: str) -> None:
        """Show that a request was put on the clipboard, and what to try if that does not help."""
        self.remark(f"request {sequence} {done}" + (f";{if_not[1:].rstrip()}" * bool(if_not)))

    def close(self) -> None:
        """Show what is left to show; restore the terminal, if it is one."""
        self._output(self.flush)

    def _take_change(self, context: int = _SHORT_CONTEXT) -> tuple[diff.Difference, tuple[str, ...]] | None:
        """Return what the last operation changed, and the lines of it to show; once."""
        change, self._change = self._change, None
        if change is None:
            return None
        is_full = self.how == "full"
        found = diff.between(change.old or b"", change.new, *(() if is_full else (context,)))
        if change.old is None:
            # The position of lines in a new file says nothing.
            found = replace(found, lines=found.lines[1:])
        lines = found.first(diff.LINES_LIMIT if is_full else _SHORT_LINES)
        return found, tuple(on_screen(line).expandtabs(4) for line in lines)

    def _show(self, notice: ui.Notice) -> None:
        """Show nothing, here; a screen of a kind shows the notice."""

    def _record(self, record: entries.Record, session: Session) -> None:
        """Show nothing, here, as `_show`."""


class Lines(Screen):
    """Show records and notices as lines of text: laid out for a terminal, or plain."""

    told: Kinds = (
        *(entries.InboxFound, entries.RequestWritten, entries.AnswerTaken, entries.AnswerSetAside),
        *(entries.OperationEnded, entries.CheckEnded, entries.TurnEnded, entries.GrantsRevoked),
        *(entries.ProtectedSettled, entries.UndoEnded, entries.ChatsNamed),
        *(entries.CandidateBegan, entries.CandidateEnded),
    )
    told_elsewhere: Kinds = (
        *(*told, entries.PersonSaid, entries.RefreshAsked, entries.CheckNamed),
        *(entries.ApprovalAnswered, entries.SessionClosed, entries.CommitMade, entries.HookChanged),
    )
    _look = layout.PIPE
    _can_ask = False
    _keys: "Keyboard | None" = None
    """Where the person types: words and commands, while this process waits."""
    _knows_steps = False
    """The person was told in full what to do, while this process waits."""
    _turn: Hung | None = None
    """How the turn ended, until its request is shown."""
    _request: tuple[entries.RequestWritten, Session] | None = None
    """The request that was written, until it is known what the person is to do with it."""

    def lines(self, lines: Iterable[layout.Line]) -> None:
        """Show lines that were laid out to fit."""
        self._stream.write(layout.plain_lines(lines))

    def _say(self, *spans: layout.Span, indent: int = 2) -> None:
        """Show a line, laid out to fit."""
        self._lay([(spans, indent)])

    def _lay(self, lines: Iterable[Hung]) -> None:
        self.lines(laid_out(lines, self._look))

    def _below(self, line: str, style: str) -> Hung:
        """Return a line of a diff or an output; no piece of it begins where our own lines do."""
        indent = margin(self._look)
        return [(" " * indent + line, style)], indent

    def ask(self, asked: entries.ApprovalAsked, session: Session, elsewhere: ui.Elsewhere) -> Answer | None:
        # Without an answer about secrets the work goes on.
        if self._can_ask or asked.question.kind is not operations.Kind.READ_FILE:
            super().ask(asked, session, elsewhere)
        return None

    def _record(self, record: entries.Record, session: Session) -> None:
        beside: layout.Line = ()
        below: Iterable[Hung] = ()
        if isinstance(record, entries.RequestWritten):
            self._request = record, session
            return
        self.flush()
        if isinstance(record, entries.TurnEnded) and not session.is_complete:
            self._turn, *notes = lines_of(record, session, self.mailbox, self._look)
            self._lay(notes)
            return
        if isinstance(record, entries.OperationEnded | entries.CheckEnded):
            beside, below = self._details(record.event)
        elif isinstance(record, entries.ApprovalAsked):
            below = [self._below(line, diff_style(line)) for line in asked_in(record.question)]
        self._lay(lines_of(record, session, self.mailbox, self._look, beside, below))
        if isinstance(record, entries.TurnEnded):
            self.offer(session)
            if session.is_asking:
                say = f"codingagent say {session.session_id}"
                way = f'ask more with {say} "…"; have something done with {say} --do "…"'
                if self._keys is not None:
                    way = "type the next question, or /do WISH to have something done; /quit ends"
                self._say(("? ", "warn"), (runnable(way), ""))
        elif isinstance(record, entries.OperationEnded) and results.is_refused_by_check(record.event):
            way = f'Set another: codingagent resume {session.session_id} --check "COMMAND"'
            way = "/check COMMAND sets another." if self._keys is not None else runnable(way)
            if session.refused == 1:
                self._say((f"    Wrong check? {way}", "dim"))

    def flush(self, notice: ui.Waiting | None = None) -> None:
        """Show how the turn ended, its request, and what to do now, if a notice tells that."""
        turn, written = self._turn, self._request
        self._turn = self._request = None
        if turn is not None:
            self._lay([turn])
        if written is not None:
            record, session = written
            self._lay(lines_of(record, session, self.mailbox, self._look))
            is_second = record.sequence == 2 and not session.is_rewritten
            if is_second and self.mailbox and not self._look.is_terminal:
                whole = on_screen(str(self.mailbox.outbox_path(session.session_id, 2)))
                self._whole(f"It is for the same chat; a new one needs {whole}")
            self._show_budget(record)
            if session.awaits_words:
                say = f"`codingagent say {session.session_id}"
                way = f'The model asks. Reply: {say} "…"`; {OR_SEND.format(session.sequence)}'
                if session.is_answered:
                    way = f'Ask more: {say} --ask "…"`; or {GO_ON.format(session.sequence)}'
                self._say(("? ", "warn"), (runnable(way), ""))
        if notice is not None:
            is_again = written is not None and written[1].is_rewritten
            self._show_steps(notice, has_request=written is not None, is_again=is_again)

    def _show_budget(self, record: entries.RequestWritten) -> None:
        size = 0 if record.egress is None else record.egress.characters
        if size >= _NEARLY_FULL * self._budget:
            share = f"{100 * size // self._budget} % of context_chars, {self._budget:,}"
            self._say((f"  The request takes {share}", "warn"))

    def _details(self, event: events.Event) -> tuple[layout.Line, list[Hung]]:
        """Return the number of changed lines, and what is shown below an operation."""
        is_full = self.how == "full"
        told, below = self._take_change(0), list[Hung]()
        found = None if told is None or not told[0].lines else told[0]
        count = f"  {layout.counted(found.added, found.removed, self._look)}" if found else ""
        shown = () if told is None else told[1]
        if not is_full:  # the line above says where
            shown = tuple(self._look.dots if each[:2] == "@@" else each for each in shown)
            shown = shown[shown[:1] == (self._look.dots,) :]
        for line in shown:
            text = layout.cut(" " * margin(self._look) + line, self._look.width, self._look)
            below.append(([(text, _SIGNS.get(line[:1], ""))], 0))
        lines: list[str] = []
        if isinstance(event, events.CommandRan) and (is_full or not events.succeeded(event)):
            lines = event.output.rstrip("\n").split("\n") if event.output else []
            if not is_full:
                first = check_outcome.first_failure(event.output).rstrip("\n").split("\n")
                left = len(lines) - _FAILURE_LINES
                last = [line for line in lines if line.strip()][-1:]
                lines = [line for line in first if line.strip()][-_FAILURE_LINES:]
                lines = lines if lines[-1:] == last else [*lines[1:], *last]
                if left > 0:
                    more = f"{left} more {plural(left, 'line')} (show --output)"
                    lines.append(f"{self._look.dots} {more}")
        elif isinstance(event, events.Refused) and event.kind is not operations.Kind.ANSWER:
            # The rest of it is for the model.
            lines = [each for each in event.detail.split("\n") if each[:1] in ("-", "+")][:_SHORT_LINES]
        below += [self._below(on_screen(line), _SIGNS.get(line[:1], "dim")) for line in lines]
        return [(count, "dim")], below

    def _show(self, notice: ui.Notice) -> None:
        if isinstance(notice, ui.Waiting):
            self.flush(notice)
        elif isinstance(notice, ui.Remark):  # the others are shown with the operation's result
            self._say((runnable(notice.text), "dim"))

    def offer(self, session: Session) -> None:
        found = self.changes()
        names = [
            path + " (deleted)" * (not os.path.lexists(Path(found.workspace) / path))
            for path in found.paths[:_NAMES]
        ]
        more = len(found.paths) - len(names)
        if names:
            changed = f"{', '.join(names)}{f' and {more:,} more' if more else ''}"
            self._say((f"Changed: {changed}", "dim"))
        ways = ["commit"] * found.can_commit + ["diff", "undo"] * bool(names and found.can_undo)
        if self.is_passing or not (ways or self._keys):
            return
        if self._keys is None:
            # Never wrapped, so that they can be copied.
            self._whole(f"Next: {', '.join(runnable(f'`codingagent {way}`') for way in ways)}")
        elif not session.is_asking:
            self.offers = tuple(f"/{name}" for name in ways)
            told = {"diff": "look", "undo": f"undo turn {found.last}"}
            numbers = "".join(f"{n} {told.get(name, name)}  " for n, name in enumerate(ways, start=1))
            way = f"{numbers}or type" if ways else "Type"
            self._say((f"  {way} the next wish; /ask asks, /quit ends", "dim"), indent=4)

    def _show_steps(self, notice: ui.Waiting, *, has_request: bool, is_again: bool) -> None:
        """Show what the person has to do now."""
        resume = runnable(f"codingagent resume {notice.session_id}")
        if not has_request and not notice.watched:
            self._whole(f"Save it there as a .txt file, then: {resume}")
            return
        if not has_request:
            path, look = on_screen(notice.short or notice.outbox), self._look
            self._lay([request_line(notice.sequence, path, None, look, again=False)])
        if notice.sequence == 1 and not is_again:
            self._whole(f"Send it to a chat; save the answer as a .txt file in {on_screen(notice.inbox)}")
        if notice.elsewhere:
            self._say(("The other terminal waits for the answer.", ""))
        elif notice.watched and not self._knows_steps:
            self._knows_steps = True
            self._say((f"Waiting for the answer (Ctrl-C stops; `{resume}` continues)", ""))
        elif not (notice.watched or is_again):
            self._whole(f"Then: {resume}")

    def _whole(self, text: str) -> None:
        """Show a line that is not wrapped: a path or a command in it can be copied."""
        self.lines([[(text, "")]])


class JsonLines(Screen):
    """Show each record and each notice as one JSON object on a line; `kind` names it."""

    _question: entries.Record | None = None
    told = told_elsewhere = get_args(entries.Record)

    def _record(self, record: entries.Record, _: Session) -> None:
        # A question is told when it is recorded, and when it is asked.
        is_new = record != self._question
        self._question = record if isinstance(record, entries.ApprovalAsked) else None
        if is_new:
            write_json_line(self._stream, to_builtins(record))

    def _show(self, notice: ui.Notice) -> None:
        if not isinstance(notice, ui.FileChanged):
            write_json_line(self._stream, to_builtins(notice))
        elif (told := self._take_change()) is not None:
            found, lines = told
            said = {"kind": notice.class_name, "path": notice.path, "added": found.added}
            more = {"removed": found.removed, "difference": "\n".join(lines)}
            write_json_line(self._stream, {**said, **more})


def write_json_line(stream: TextIO, document: object) -> None:
    """Write one JSON object and a line end; keys are in camelCase, as in the session files."""
    stream.write(json.dumps(_camel_keys(document)) + "\n")
    stream.flush()


_UNDERLINED = lazy_pattern(r"_([^_])")
GO_ON = "send request {} to go on"
OR_SEND = "or send request {} as it is to let it decide."
_SIGNS = {"+": "good", "-": "bad", "@": "name", "…": "dim"}


def diff_style(line: str) -> str:
    return "bold" if line.startswith(("+++", "---")) else _SIGNS.get(line[:1], "")


def _camel_keys(value: object) -> object:
    if isinstance(value, dict):
        return {
            _UNDERLINED.sub(lambda found: found[1].upper(), key): _camel_keys(value[key]) for key in value
        }
    if isinstance(value, list | tuple):
        return [_camel_keys(inner) for inner in value]
    return value
