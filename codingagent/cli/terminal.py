"""Show notices on a terminal: colour, live output, a spinner while waiting. Only this module uses rich."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

from rich.console import Console as RichConsole
from rich.markup import escape
from rich.status import Status
from rich.text import Text

from codingagent.cli import keyboard, layout
from codingagent.cli.keyboard import Keyboard, PasteError
from codingagent.cli.layout import Line, Span
from codingagent.cli.plain_output import (
    Changes,
    done_lines,
    output_of,
    question_line,
    summary_of,
    turn_line,
    waiting_line,
)
from codingagent.model import ui_events as ui
from codingagent.model.approval import KEEPING, Answer, Decision
from codingagent.model.plain_text import on_screen, unmasked, without_controls
from codingagent.model.results import CHECK

# The end of a failure's output says most; the request to the model has more of it.
_FAILURE_LINES = 15

_LOOK_ELSEWHERE_S = 0.2

_DO_IT = "  Do it? ([bold]y[/])es, ([bold]n[/])o, ([bold]a[/])lways in this session: "
_KEEP_IT = (
    "  Keep what was changed? ([bold]y[/])es, ([bold]n[/])o: put it back, ([bold]a[/])lways in this"
    " session: "
)

# Longer lines of prose are hard to read.
_PAGE_CELLS = 100

_TYPED_BEFORE = "  what was typed before this question was discarded"
_PASTED = "  pasted text is ignored: type the answer"

_DECISIONS: dict[str, Decision] = {
    "y": "yes",
    "yes": "yes",
    "n": "no",
    "no": "no",
    "a": "always",
    "always": "always",
}

# Colours of the styles in `layout`.
_COLOURS = {"good": "green", "bad": "red", "warn": "yellow", "name": "cyan"}

_WAITING = "waiting (Ctrl-C stops)"

# A file's diff is indented below its operation.
_MARGIN = "      "

_SIGNS = {"+": "green", "-": "red", "@": "cyan", "…": "dim"}


def _style_of(line: str) -> str:
    """Return the colour of a line of a diff."""
    if line.startswith(("+++", "---")):
        return "bold"
    return _SIGNS.get(line[:1], "")


_COLOUR_SYSTEMS = {
    "standard": "16 colours",
    "256": "256 colours",
    "truecolor": "16 million colours",
    "windows": "16 colours",
}


class Console:
    """Show notices on a terminal as they come."""

    def __init__(self) -> None:
        self._can_ask = sys.stdin.isatty() and sys.stdout.isatty()
        # no-color.org: no colour code at all then.
        has_colour = not os.environ.get("NO_COLOR")
        self._rich = RichConsole(highlight=False, color_system="auto" if has_colour else None)
        self._look = layout.look_of(sys.stdout)
        self._changes = Changes("short")
        self._status: Status | None = None
        self._said_output = False
        self._within_line = False

    def tell_changes(self, how: str, *, asked: bool) -> None:
        del asked  # a terminal always has a reader
        self._changes.how = how

    def show(self, notice: ui.Notice) -> None:
        self._stop_status()
        self._look = layout.look_of(sys.stdout)  # the window may have been resized
        self._changes.note(notice)
        match notice:
            case ui.OutboxReady():
                self._show_ready(notice)
            case ui.Waiting():
                self._show_waiting(notice)
            case ui.ReplyAccepted():
                self._rich.rule(f"Answer {notice.sequence}", style="dim")
            case ui.ReplyRejected():
                self._say(("Not taken:", "warn"), (f" {notice.name}: {notice.reason}", ""))
                self._say(("  kept as", ""))
                self._say_path(notice.path)
                self._rich.print(Text(f"  {notice.remedy}"), soft_wrap=True)
            case ui.OperationBegan():
                self._begin(notice)
            case ui.OutputCame():
                self._show_output(notice.text)
            case ui.FileChanged():
                pass  # shown with its operation's result
            case ui.OperationDone():
                self._show_result(notice)
            case ui.ApprovalAwaited():
                self._show_awaited(notice)
            case ui.ModelSaid():
                for line in notice.text.split("\n"):
                    self._say((line, "name"), indent=0)
            case ui.QuestionAsked():
                self._say(("? ", "warn"), (question_line(notice), ""))
            case ui.TurnDone():
                self._say((turn_line(notice), "dim"))
                for note in notice.notes:
                    self._say(("  ", ""), ("note:", "warn"), (f" {note}", ""), indent=4)
            case ui.SessionDone():
                first, *rest = done_lines(notice)
                for line in first.split("\n"):
                    self._say((line, "bold green"))
                for line in rest:
                    self._say((line, "warn"), indent=4)
            case ui.Remark():
                self._say((notice.text, "dim"))
            case _:
                assert_never(notice)

    def ask(self, notice: ui.ApprovalAwaited, elsewhere: ui.Elsewhere) -> Answer | None:
        """Ask the person to approve what was shown; None if this process can't read their keyboard.

        An answer given in another terminal counts as theirs.

        Raises:
            KeyboardInterrupt: passed on; also at the end of input, which is not an answer.
        """
        if not self._can_ask:
            return None
        while not keyboard.is_ours(sys.stdin):
            if (found := elsewhere(notice)) is not None:
                return self._answered_elsewhere(found)
            time.sleep(_LOOK_ELSEWHERE_S)
        try:
            with Keyboard(sys.stdin, sys.stdout) as keys:
                prompt = _KEEP_IT if notice.command_type == KEEPING else _DO_IT
                return self._ask(keys, prompt, lambda: elsewhere(notice), notice.grants)
        except EOFError:
            raise KeyboardInterrupt from None

    def _ask(
        self,
        keys: Keyboard,
        prompt: str,
        elsewhere: Callable[[], Answer | None],
        grants: Sequence[str],
    ) -> Answer:
        for grant in grants:
            self._say(("    ", ""), ("always would cover:", "warn"), (f" {grant}", ""), indent=6)
        if keys.discard():
            self._say((_TYPED_BEFORE, "dim"))
        while True:
            found = self._line(keys, prompt, elsewhere)
            if isinstance(found, Answer):
                self._rich.print()
                return self._answered_elsewhere(found)
            if (said := found.strip().lower()) in _DECISIONS:
                break
            keys.discard(settles=True)
        decision, reason = _DECISIONS[said], ""
        if decision == "no":
            with contextlib.suppress(EOFError):
                why = "  Why not? (for the model; may be empty): "
                typed = self._line(keys, why, lambda: None)
                reason = typed.strip() if isinstance(typed, str) else ""
        return Answer(decision, reason=reason, how="terminal")

    def _line(
        self, keys: Keyboard, prompt: str, elsewhere: Callable[[], Answer | None]
    ) -> str | Answer:
        """Return what is typed after a prompt, or an answer from elsewhere that came first."""
        while True:
            keys.discard()
            try:
                return keys.line(lambda: self._rich.print(prompt, end=""), elsewhere)
            except PasteError:
                self._say((_PASTED, "warn"))

    def _answered_elsewhere(self, answer: Answer) -> Answer:
        self._say((f"  answered elsewhere: {answer.decision}", "dim"))
        return answer

    def choose(self, question: str, choices: Sequence[str]) -> int | None:
        """Ask the person for one of these, by its number; None if nobody can answer.

        Raises:
            KeyboardInterrupt: passed on; also at the end of input, which is not an answer.
        """
        if not self._can_ask or not keyboard.is_ours(sys.stdin):
            return None
        self._say((f"? {question}", "bold yellow"))
        for number, choice in enumerate(choices, start=1):
            self._say((f"  {number}  {choice}", ""))
        numbers = [str(number) for number in range(1, len(choices) + 1)]
        said = ""
        try:
            with Keyboard(sys.stdin, sys.stdout) as keys:
                while said not in numbers:
                    said = str(self._line(keys, "  Its number: ", lambda: None)).strip()
        except EOFError:
            raise KeyboardInterrupt from None
        return numbers.index(said)

    def _show_awaited(self, notice: ui.ApprovalAwaited) -> None:
        mark = (f"? {notice.command_type}", "bold yellow")
        self._say(("  ", ""), mark, (" needs your approval:", ""), indent=4)
        for line in unmasked(notice.shown).split("\n"):
            self._rich.print(Text(f"{_MARGIN}{line}", style=_style_of(line)), soft_wrap=True)
        for reason in notice.reasons:
            self._say(("    ", ""), ("because:", "warn"), (f" {reason}", ""), indent=6)

    def close(self) -> None:
        """Restore the terminal: no spinner, the cursor shown."""
        self._stop_status()

    def diff(self, text: str) -> None:
        """Show a unified diff in colour."""
        for line in text.splitlines():
            self._rich.print(Text(line, style=_style_of(line)), soft_wrap=True)

    def lines(self, lines: Iterable[Line]) -> None:
        """Show lines that were laid out to fit."""
        for line in lines:
            spans = [(text, _COLOURS.get(style, style)) for text, style in line]
            self._rich.print(Text.assemble(*spans), soft_wrap=True)

    def page(self, text: str) -> None:
        """Show a page of Markdown; in the person's pager if it is longer than the screen."""
        import shlex
        import shutil

        from rich.markdown import Markdown
        from rich.theme import Theme

        width = min(self._rich.width, _PAGE_CELLS)
        # No backgrounds: the terminal's own may be light or dark.
        theme = Theme({"markdown.code": "cyan", "markdown.h1": "bold", "markdown.h2": "bold"})
        page = Markdown(text, code_theme="ansi_dark", hyperlinks=False)
        with self._rich.use_theme(theme), self._rich.capture() as captured:
            self._rich.print(page, width=width)
        shown = captured.get()
        try:
            pager = next(iter(shlex.split(os.environ.get("PAGER", "less"))), "")
        except ValueError:  # an unclosed quote
            pager = ""
        is_long = shown.count("\n") >= self._rich.height
        if not (is_long and self._can_ask and pager and shutil.which(pager)):
            sys.stdout.write(shown)
            return
        import pydoc

        os.environ.setdefault("LESS", "FRX")  # as git does: colours, and no alternate screen
        pydoc.pager(shown)

    def colours(self) -> str:
        """Return the number of colours in words."""
        return _COLOUR_SYSTEMS.get(self._rich.color_system or "", "no colours")

    def _say(self, *spans: Span, indent: int = 2) -> None:
        """Show a line, laid out to fit."""
        clean = [(on_screen(text).replace("\n", " "), style) for text, style in spans]
        self.lines(layout.hang(clean, self._look, indent))

    def _say_path(self, path: str) -> None:
        # Never wrapped here, so that it can be copied whole.
        self.lines([[("     ", ""), (without_controls(path), "bold cyan")]])

    def _show_ready(self, notice: ui.OutboxReady) -> None:
        size = layout.size(notice.characters, notice.tokens)
        self._say((f"Request {notice.sequence}", "bold"), (f" is ready: {size}", ""))
        if notice.budget:
            drawn = layout.bar(notice.characters, notice.budget, self._look)
            said = layout.share(notice.characters, notice.budget)
            self._say(("  ", ""), *drawn, (f" {said}", "dim"))
        if notice.short_path:
            size = layout.size(notice.short_characters, notice.short_tokens)
            self._say((f"  short, for the same chat: {size}", "dim"), indent=4)

    def _show_waiting(self, notice: ui.Waiting) -> None:
        self._say(("Now it is your turn:", ""))
        first = "Attach this file to any chat, or paste its text, and send it:"
        if notice.short:
            self._step("1.", "In the same chat send this file, attached or pasted:")
            self._say_path(notice.short)
            self._say(("     or in a new chat send this complete one:", ""), indent=5)
        else:
            self._step("1.", first)
        self._say_path(notice.outbox)
        self._step("2.", "Save the chat's whole answer as a .txt file in this folder:")
        self._say_path(notice.inbox)
        hint = "(`codingagent copy` and `paste` do both through the clipboard)"
        self._say((f"     {hint}", "dim"), indent=5)
        if not notice.watched:
            self._say((waiting_line(notice), ""))
        elif len(waiting_line(notice)) < self._look.width - 2:
            self._start_status(waiting_line(notice))
        else:
            # A spinner has one line; Ctrl-C says how to continue.
            self._start_status(layout.cut(_WAITING, self._look.width - 3, self._look))

    def _step(self, number: str, text: str) -> None:
        self._say(("  ", ""), (number, "bold"), (f" {text}", ""), indent=5)

    def _begin(self, notice: ui.OperationBegan) -> None:
        self._said_output = False
        if notice.command_type in ("RUN_COMMAND", CHECK):
            whose = " (your check)" if notice.command_type == CHECK else ""
            self._say(
                ("  ", ""), ("$", "bold"), (f" {notice.subject}", ""), (whose, "dim"), indent=4
            )
            self._start_status("running")

    def _show_output(self, text: str) -> None:
        if text:
            self._said_output = True
            self._within_line = not text.endswith("\n")
            self._rich.print(Text(text, style="dim"), end="", soft_wrap=True)

    def _show_result(self, notice: ui.OperationDone) -> None:
        if self._within_line:
            self._rich.print()
            self._within_line = False
        result, told = notice.result, self._changes.take()
        if result.command_type not in ("MESSAGE", "DONE") or not result.success:
            count = "" if told is None else layout.counted(told[0], self._look)
            mark = self._look.mark(result.success)
            summary = f" {result.command_type}: {summary_of(result)}"
            self._say(("  ", ""), mark, (summary, ""), (count, "dim"), indent=4)
        for line in told[1] if told is not None else ():
            shown = layout.cut(f"{_MARGIN}{line}", self._look.width, self._look)
            self._rich.print(Text(shown, style=_SIGNS.get(line[:1], "")), soft_wrap=True)
        if (output := output_of(result)) and not self._said_output:
            for line in output.rstrip("\n").split("\n")[-_FAILURE_LINES:]:
                clean = f"{_MARGIN}{on_screen(line)}"
                self._rich.print(Text(clean, style="dim"), soft_wrap=True)
        for note in result.notes:
            self._say((_MARGIN, ""), ("note:", "warn"), (f" {note}", ""), indent=len(_MARGIN))

    def _start_status(self, text: str) -> None:
        if not sys.stdout.isatty():
            return  # colours were forced in a pipe; a spinner would only fill it
        spinner = "dots" if self._look.has_marks else "line"
        self._status = self._rich.status(f"[dim]{escape(text)}[/]", spinner=spinner)
        self._status.start()

    def _stop_status(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
