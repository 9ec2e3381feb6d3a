"""Show records and notices as lines of text, or as JSON, one object a line.

`terminal` adds colours and questions.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TextIO, assert_never, get_args

from msgspec import to_builtins
from msgspec.structs import replace

from codingagent.cli import layout
from codingagent.cli.hints import runnable
from codingagent.cli.layout import Line, Span
from codingagent.cli.record_words import Hung, laid_out, lines_of, margin
from codingagent.cli.stdio import has_no_reader, silence
from codingagent.editing import diff
from codingagent.editing.diff import LINES_LIMIT, Difference
from codingagent.errors import WorkError
from codingagent.model import events
from codingagent.model import journal_entries as entries
from codingagent.model import ui_events as ui
from codingagent.model.approval import Answer
from codingagent.model.events import Event, succeeded
from codingagent.model.operations import Kind
from codingagent.model.plain_text import on_screen, unmasked
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings

if TYPE_CHECKING:
    from codingagent.cli.keyboard import Keyboard
    from codingagent.storage.mailbox import Mailbox

# A change that needs no approval is shown in brief; the rest is counted.
_SHORT_LINES = 12
_SHORT_CONTEXT = 1

# The end of a failure's output says most; the request to the model has more of it.
_FAILURE_LINES = 12

Kinds = tuple[type[entries.Record], ...]


class Screen:
    """An output that shows notices. If it fails (`| head`, a full disk), the work goes on without it."""

    told: Kinds = ()
    told_elsewhere: Kinds = ()
    """The records that it shows: of this process's own work, and of another's."""

    def __init__(self, stream: TextIO, changes: str = "never") -> None:
        self._stream = stream
        self._fault: OSError | None = None
        self._how = changes
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
        self._asked = 0
        """The request with which the model's question was shown last."""

    def show(self, notice: ui.Notice) -> None:
        self._note(notice)
        self._output(lambda: self._show(notice))

    def record(
        self, record: entries.Record, session: Session, *, is_elsewhere: bool = False
    ) -> bool:
        """Show a record; `session` is its state after it. Return whether it has anything to show.

        `is_elsewhere`: another process wrote it.
        """
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
            silence(sys.stdout)

    def check(self) -> None:
        """Raise a WorkError if something could not be shown, unless its reader only went away."""
        if self._fault is not None and not has_no_reader(self._fault):
            reason = self._fault.strerror or self._fault
            raise WorkError(f"standard output can't be written: {reason}; what was done stays")

    def remark(self, text: str) -> None:
        self.show(ui.Remark(text))

    def obey(self, settings: Settings, mailbox: "Mailbox", *, asked: bool) -> None:
        """Set how much of each change to show; `asked`: explicitly requested."""
        # Nobody may be looking: show only what was asked for explicitly.
        self._how = settings.diff if asked or settings.diff == "full" else "never"
        self._budget, self.mailbox = settings.context_chars, mailbox

    @property
    def sees_changes(self) -> bool:
        """Whether it shows what an operation changed."""
        return self._how != "never"

    def ask(
        self, asked: entries.ApprovalAsked, session: Session, elsewhere: ui.Elsewhere
    ) -> Answer | None:
        """Show a question. Return the answer; None if nobody can answer here, or did `elsewhere`."""
        del elsewhere  # nobody is waited for
        self._approved = asked.question.subject
        self._output(lambda: self._record(asked, session))
        return None

    def choose(self, question: str, choices: Sequence[str]) -> int | None:
        """Ask the person for one of these; None if nobody can answer."""

    def keyboard(self) -> "AbstractContextManager[Keyboard] | None":
        """Return the person's keyboard, to be entered; None if nobody can type here."""

    def busy(self, what: str, limit_s: float | None = None, count: Callable[[], int] = int) -> None:
        """Show a sign of life until the next notice, if that takes long; it may count files."""

    def close(self) -> None:
        """Restore the terminal, if it is one."""

    def _note(self, notice: ui.Notice) -> None:
        """Record a change that was not shown for approval; the diff is computed later."""
        if isinstance(notice, ui.FileChanged) and notice.path != self._approved:
            self._change = notice

    def _take_change(self) -> tuple[Difference, tuple[str, ...]] | None:
        """Return what the last operation changed, and the lines of it to show; once."""
        change, self._change = self._change, None
        if change is None:
            return None
        is_full = self._how == "full"
        found = diff.between(change.old or b"", change.new, *(() if is_full else (_SHORT_CONTEXT,)))
        if change.old is None:
            # The position of lines in a new file says nothing.
            found = replace(found, lines=found.lines[1:])
        lines = found.first(LINES_LIMIT if is_full else _SHORT_LINES)
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
        *(entries.ProtectedSettled, entries.UndoEnded),
    )
    told_elsewhere: Kinds = (
        *(*told, entries.PersonSaid, entries.RefreshAsked, entries.CheckNamed),
        *(entries.ApprovalAnswered, entries.SessionClosed, entries.CommitMade),
    )
    _look = layout.PIPE
    _has_shown_output = False

    def lines(self, lines: Iterable[Line]) -> None:
        """Show lines that were laid out to fit."""
        self._stream.write(layout.plain_lines(lines))

    def _say(self, *spans: Span, indent: int = 2) -> None:
        """Show a line, laid out to fit."""
        clean = [(on_screen(text).replace("\n", " "), style) for text, style in spans]
        self.lines(layout.hang(clean, self._look, indent))

    def _lay(self, lines: Iterable[Hung]) -> None:
        self.lines(laid_out(lines, self._look))

    def _below(self, line: str, style: str) -> Hung:
        """Return a line of a diff or an output; no piece of it begins where our own lines do."""
        indent = margin(self._look)
        return [(" " * indent + line, style)], indent

    def _record(self, record: entries.Record, session: Session) -> None:
        beside: Line = ()
        below: Iterable[Hung] = ()
        match record:
            case entries.OperationEnded() | entries.CheckEnded():
                beside, below = self._details(record.event)
            case entries.ApprovalAsked():
                shown = unmasked(record.question.shown).split("\n")
                below = [self._below(line, diff_style(line)) for line in shown]
            case entries.RequestWritten(egress=entries.Egress(characters=size)) if size:
                below = self._budget_line(size)
            case _:
                pass
        self._lay(lines_of(record, session, self.mailbox, self._look, beside, below))
        is_answered = session.is_complete and session.is_only_words
        if isinstance(record, entries.TurnEnded) and (is_answered or session.awaits_words):
            self._show_question(session.session_id, session.sequence, is_answered=is_answered)

    def _budget_line(self, size: int) -> list[Hung]:
        return [([("  ", ""), *layout.budget_line(size, self._budget, self._look)], 2)]

    def _details(self, event: Event) -> tuple[Line, list[Hung]]:
        """Return the number of changed lines, and what is shown below an operation."""
        told, below = self._take_change(), list[Hung]()
        found = None if told is None or not told[0].lines else told[0]
        count = f"  {layout.counted(found.added, found.removed, self._look)}" if found else ""
        for line in told[1] if told is not None else ():
            text = layout.cut(" " * margin(self._look) + line, self._look.width, self._look)
            below.append(([(text, _SIGNS.get(line[:1], ""))], 0))
        output = ""
        match event:
            case events.CommandRan() if not (succeeded(event) or self._has_shown_output):
                output = event.output
            case events.Refused() if event.kind is not Kind.ANSWER:
                output = event.detail
            case _:
                pass
        for line in output.rstrip("\n").split("\n")[-_FAILURE_LINES:] if output else ():
            below.append(self._below(on_screen(line), "dim"))
        return [(count, "dim")], below

    def _show(self, notice: ui.Notice) -> None:
        match notice:
            case ui.Waiting():
                self._show_steps(notice)
                self._wait(notice)
                if notice.asks:
                    self._show_question(notice.session_id, notice.sequence)
            case ui.OutputCame() | ui.FileChanged():
                pass  # shown with the operation's result
            case ui.Remark():
                self._say((runnable(notice.text), "dim"))
            case _:
                assert_never(notice)

    def _show_question(self, session_id: str, sequence: int, *, is_answered: bool = False) -> None:
        """Show how the model's words are answered, once for each request; or how to ask more."""
        if self._asked != sequence:
            self._asked = sequence
            how = (self._how_to_ask if is_answered else self._how_to_answer)(session_id)
            self._say(("? ", "warn"), (runnable(how), ""))

    def _how_to_ask(self, session_id: str) -> str:
        say = f"codingagent say {session_id}"
        return f'ask more with {say} "…"; have something done with {say} --do "…"'

    def _how_to_answer(self, session_id: str) -> str:
        return (
            "the model has a question or a message (see above); to answer:"
            f' codingagent say {session_id} "your words" (this rewrites the request)'
        )

    def _show_steps(self, notice: ui.Waiting) -> None:
        """Show what the person has to do now, for a newcomer."""
        self._say(("now it is your turn:", ""))
        if notice.short:
            self._step("1.", "in the same chat send this file, attached or pasted:", notice.short)
            self._step("  ", "or in a new chat send this complete one:", notice.outbox)
        else:
            first = "attach this file to any chat, or paste its text, and send it:"
            self._step("1.", first, notice.outbox)
        self._step("2.", "save the chat's whole answer as a .txt file in:", notice.inbox)

    def _step(self, number: str, text: str, path: str) -> None:
        spans: list[Span] = [("  ", ""), (number, "bold"), (f" {text}", "")]
        place = (on_screen(path), "bold cyan")
        if self._look.is_terminal:
            self._say(*spans, indent=5)
            # Never wrapped here, so that it can be copied whole.
            self.lines([[("     ", ""), place]])
        else:
            self.lines([[*spans, (" ", ""), place]])

    def _wait(self, notice: ui.Waiting) -> None:
        said = "waiting for the answer" if self.is_passing else waiting_line(notice)
        self._say((said, ""))


class JsonLines(Screen):
    """Show each record and each notice as one JSON object on a line; `kind` names it."""

    _question: entries.Record | None = None
    told = told_elsewhere = get_args(entries.Record)

    def _record(self, record: entries.Record, session: Session) -> None:
        del session
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


_SIGNS = {"+": "good", "-": "bad", "@": "name", "…": "dim"}


def diff_style(line: str) -> str:
    return "bold" if line.startswith(("+++", "---")) else _SIGNS.get(line[:1], "")


def waiting_line(notice: ui.Waiting) -> str:
    """Return what happens next: this process waits, another one does, or the person runs a command."""
    if notice.elsewhere:
        return "the other terminal waits for the answer"
    resume = runnable(f"`codingagent resume {notice.session_id}`")
    if notice.watched:
        return f"waiting for the answer (Ctrl-C stops; {resume} continues)"
    return f"then: {resume} takes the answer and continues"


def _camel_keys(value: object) -> object:
    if isinstance(value, dict):
        return {_camel(key): _camel_keys(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_camel_keys(inner) for inner in value]
    return value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
