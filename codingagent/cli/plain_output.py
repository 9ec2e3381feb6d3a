"""Show notices as lines of text, or as JSON, one object a line. `terminal` adds colours and questions."""

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
from codingagent.cli.stdio import has_no_reader, silence
from codingagent.editing import diff
from codingagent.editing.diff import LINES_LIMIT, Difference
from codingagent.errors import WorkError
from codingagent.model import ui_events as ui
from codingagent.model.approval import Answer
from codingagent.model.operations import Kind, Operation
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import on_screen, plural, unmasked
from codingagent.model.results import Result
from codingagent.model.settings import Settings

if TYPE_CHECKING:
    from codingagent.cli.keyboard import Keyboard

# A change that needs no approval is shown in brief; the rest is counted.
_SHORT_LINES = 12
_SHORT_CONTEXT = 1

# The end of a failure's output says most; the request to the model has more of it.
_FAILURE_LINES = 12


class Screen:
    """An output that shows notices. If it fails (`| head`, a full disk), the work goes on without it."""

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

    def show(self, notice: ui.Notice) -> None:
        if self._fault is not None:
            return
        try:
            self._note(notice)
            self._show(notice)
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

    def obey(self, settings: Settings, *, asked: bool) -> None:
        """Set how much of each change to show; `asked`: explicitly requested."""
        # Nobody may be looking: show only what was asked for explicitly.
        self._how = settings.diff if asked or settings.diff == "full" else "never"

    @property
    def sees_changes(self) -> bool:
        """Whether it shows what an operation changed."""
        return self._how != "never"

    def ask(self, notice: ui.ApprovalAwaited, elsewhere: ui.Elsewhere) -> Answer | None:
        """Return the person's answer; None if nobody can answer here, or did `elsewhere`."""

    def choose(self, question: str, choices: Sequence[str]) -> int | None:
        """Ask the person for one of these; None if nobody can answer."""

    def keyboard(self) -> "AbstractContextManager[Keyboard] | None":
        """Return the person's keyboard, to be entered; None if nobody can type here."""

    def busy(self, what: str, limit_s: float | None = None, count: Callable[[], int] = int) -> None:
        """Show a sign of life until the next notice, if that takes long; it may count files."""

    def close(self) -> None:
        """Restore the terminal, if it is one."""

    def _note(self, notice: ui.Notice) -> None:
        """Record what is shown for approval, and a change; the diff is computed later."""
        match notice:
            case ui.OperationBegan():
                self._approved, self._change = "", None
            case ui.ApprovalAwaited():
                self._approved = notice.subject
            case ui.FileChanged() if notice.path != self._approved:
                self._change = notice
            case _:
                pass

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


class Lines(Screen):
    """Show each notice as lines of text: laid out for a terminal, or plain."""

    _look = layout.PIPE
    _has_shown_output = False

    def lines(self, lines: Iterable[Line]) -> None:
        """Show lines that were laid out to fit."""
        self._stream.write(layout.plain_lines(lines))

    def _say(self, *spans: Span, indent: int = 2) -> None:
        """Show a line, laid out to fit."""
        clean = [(on_screen(text).replace("\n", " "), style) for text, style in spans]
        self.lines(layout.hang(clean, self._look, indent))

    @property
    def _margin(self) -> str:
        """The indent of a diff or an output below its operation."""
        return " " * (6 if self._look.is_terminal else 9)

    def _show_below(self, line: str, style: str) -> None:
        """Show a line of a diff or an output; no piece of it begins where our own lines do."""
        spans = [(f"{self._margin}{line}", style)]
        self.lines(layout.hang(spans, self._look, len(self._margin)))

    def _show(self, notice: ui.Notice) -> None:
        match notice:
            case ui.OutboxReady():
                self._show_ready(notice)
            case ui.Waiting():
                self._show_steps(notice)
                self._wait(notice)
            case ui.ReplyAccepted():
                count = notice.operations
                what = f"{count} {plural(count, 'operation')}"
                self._say((f"answer {notice.sequence}: {what}", ""))
            case ui.ReplyRejected():
                self._say(("rejected:", "warn"), (f" {notice.name}: {notice.reason}", ""))
                # Never wrapped here, so that they can be copied whole.
                told = (f"  moved to {notice.path}", f"  {runnable(notice.remedy)}")
                self.lines([[(on_screen(line), "")] for line in told])
            case ui.OperationBegan() | ui.OutputCame() | ui.FileChanged():
                pass  # shown with the operation's result
            case ui.OperationDone():
                self._show_result(notice.result)
            case ui.ApprovalAwaited():
                self._show_awaited(notice)
            case ui.ModelSaid():
                self._show_words(notice.text)
            case ui.QuestionAsked():
                words = "the model has a question or a message (see above); to answer:"
                how = (
                    f'codingagent say {notice.session_id} "your words" (this rewrites the request)'
                )
                self._say(("? ", "warn"), (runnable(f"{words} {how}"), ""))
            case ui.TurnDone():
                self._say((_turn_line(notice), "dim"))
                for note in notice.notes:
                    self._say(("  ", ""), ("note:", "warn"), (f" {runnable(note)}", ""), indent=4)
            case ui.SessionDone():
                self._show_done(notice)
            case ui.Remark():
                self._say((runnable(notice.text), "dim"))
            case _:
                assert_never(notice)

    def _show_ready(self, notice: ui.OutboxReady) -> None:
        def place(path: str, characters: int, tokens: int) -> str:
            size = layout.size(characters, tokens)
            # On a terminal the paths follow, with what to do.
            return size if self._look.is_terminal else f"{path} ({size})"

        said = place(notice.path, notice.characters, notice.tokens)
        self._say((f"request {notice.sequence}", "bold"), (f" is ready: {said}", ""))
        if notice.budget:
            drawn = layout.budget_line(notice.characters, notice.budget, self._look)
            self._say(("  ", ""), *drawn)
        if notice.short_path:
            said = place(notice.short_path, notice.short_characters, notice.short_tokens)
            self._say((f"  short, for the same chat: {said}", "dim"), indent=4)

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

    def _show_result(self, result: Result) -> None:
        told, margin = self._take_change(), self._margin
        # A message, or the end, is shown by another notice.
        if not result.success or result.notes or result.kind not in ("MESSAGE", "DONE"):
            found = None if told is None or not told[0].lines else told[0]
            count = f"  {layout.counted(found.added, found.removed, self._look)}" if found else ""
            summary = f" {result.kind}: {_summary_of(result)}"
            mark = self._look.mark(result.success)
            self._say(("  ", ""), mark, (summary, ""), (count, "dim"), indent=4)
        for line in told[1] if told is not None else ():
            shown = layout.cut(f"{margin}{line}", self._look.width, self._look)
            self.lines([[(shown, _SIGNS.get(line[:1], ""))]])
        # What a refusal printed is advice for the model.
        if not (result.success or self._has_shown_output or result.summary.startswith(_DENIED)):
            for line in result.output.rstrip("\n").split("\n")[-_FAILURE_LINES:]:
                self._show_below(on_screen(line), "dim") if result.output else None
        for note in result.notes:
            self._say((margin, ""), ("note:", "warn"), (f" {note}", ""), indent=len(margin))

    def _show_words(self, text: str) -> None:
        """Show what the model says, each line marked: none looks like a line of this program."""
        first, *others = _ESCAPED.sub(r"\1", text).split("\n")
        if self._look.is_terminal:
            others = [first, *others]
        else:
            self._say((f"the model says: {first}", ""))
        self._quote(others, "name")

    def _quote(self, lines: Iterable[str], style: str) -> None:
        """Show a model's lines, each with a mark, also where one is wrapped."""
        if not self._look.is_terminal:
            for line in lines:
                self._say((f"  {line}", ""))
            return
        sign = "│ " if self._look.has_marks else "| "
        room = replace(self._look, width=max(self._look.width - len(sign), 1))
        for line in lines:
            for piece in layout.hang([(on_screen(line), style)], room, 0):
                self.lines([[(sign, "dim"), *piece]])

    def _show_awaited(self, notice: ui.ApprovalAwaited) -> None:
        what = f"{notice.operation_id} {notice.kind} awaits approval:"
        if notice.kind is Kind.READ_FILE:
            what = "may the chat see the values in this file?"
        self._say(("? ", "bold yellow"), (what, ""), indent=4)
        for line in unmasked(notice.shown).split("\n"):
            self._show_below(line, diff_style(line))
        for reason in notice.reasons:
            self._say(("  ", ""), ("because:", "warn"), (f" {reason}", ""), indent=4)
        for grant in notice.grants:
            self._say(("  ", ""), ('"always" would cover:', "warn"), (f" {grant}", ""), indent=4)

    def _show_done(self, notice: ui.SessionDone) -> None:
        """Show that the task is done, and what failed in the last answer."""
        first, *others = notice.summary.split("\n")
        self._say((f"done: {first}" if first else "done", "bold green"), indent=6)
        self._quote(others, "bold green")
        if notice.failed:
            what = f"your check decides; what failed in the answer: {'; '.join(notice.failed)}"
            self._say((what, "warn"), indent=4)


class JsonLines(Screen):
    """Show each notice as one JSON object on a line; `type` is the notice's name."""

    def _show(self, notice: ui.Notice) -> None:
        if not isinstance(notice, ui.FileChanged):
            write_json_line(self._stream, {"type": _type(notice), **to_builtins(notice)})
        elif (told := self._take_change()) is not None:
            found, lines = told
            said = {"path": notice.path, "added": found.added, "removed": found.removed}
            document = {"type": _type(notice), **said, "difference": "\n".join(lines)}
            write_json_line(self._stream, document)


def write_json_line(stream: TextIO, document: object) -> None:
    """Write one JSON object and a line end; keys are in camelCase, as in the session files."""
    stream.write(json.dumps(_camel_keys(document)) + "\n")
    stream.flush()


# What Markdown escapes, chats show without the backslash.
_ESCAPED = lazy_pattern(r"\\([_*#\[\]`~])")

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


# What a command prints may have a semicolon of its own.
_ADVISED = {each.kind for each in get_args(Operation)} - {Kind.RUN_COMMAND, Kind.MESSAGE}
_DENIED = "DENIED"


def fault_of(result: Result) -> str:
    """Return a summary for the person: without what a failed operation advises the model to do."""
    if result.summary.startswith(_DENIED):
        return result.summary.replace(": the person said no", ": you said no", 1)
    if result.success or result.kind not in _ADVISED:
        return result.summary
    return result.summary.partition("; ")[0]


def _summary_of(result: Result) -> str:
    """Return a summary for the person while a session runs; the request has the advice for the model."""
    fault = fault_of(result)
    if fault == result.summary or result.summary.startswith(_DENIED):
        return fault
    return f"{fault}; the next request asks the model to fix it"


def _turn_line(notice: ui.TurnDone) -> str:
    failed = f", {notice.failed} failed" if notice.failed else ""
    count = len(notice.changed)
    more = " or more" if count == ui.CHANGED_LIMIT else ""
    changed = f", {count}{more} {plural(count, 'file')} changed" if count else ""
    return f"turn {notice.sequence}: {notice.succeeded} ok{failed}{changed}"


def _type(notice: ui.Notice) -> str:
    name = type(notice).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).removeprefix("_")


def _camel_keys(value: object) -> object:
    if isinstance(value, dict):
        return {_camel(key): _camel_keys(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_camel_keys(inner) for inner in value]
    return value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
