"""Show notices on a terminal: colour, live output, a spinner while waiting. Only this module uses rich."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from rich.console import Console as RichConsole
from rich.markup import escape
from rich.status import Status
from rich.text import Text

from codingagent.cli import keyboard, layout
from codingagent.cli.keyboard import Keyboard, PasteError
from codingagent.cli.layout import Line
from codingagent.cli.plain_output import Lines, waiting_line
from codingagent.model import ui_events as ui
from codingagent.model.approval import Answer, Decision
from codingagent.model.operations import Kind

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

_DECISIONS: tuple[Decision, ...] = ("yes", "no", "always")

# Colours of the styles in `layout`.
_COLOURS = {"good": "green", "bad": "red", "warn": "yellow", "name": "cyan"}

# From here on a request's size is news.
_NEARLY_FULL = 0.8

_AFTER = (
    "`codingagent diff` shows it, `codingagent undo` takes the last turn back,"
    " `git add -p && git commit` keeps it"
)

_COLOUR_SYSTEMS = {
    "standard": "16 colours",
    "256": "256 colours",
    "truecolor": "16 million colours",
    "windows": "16 colours",
}


class Console(Lines):
    def __init__(self) -> None:
        super().__init__(sys.stdout, "short")
        self._can_ask = sys.stdin.isatty() and sys.stdout.isatty()
        # no-color.org: no colour code at all then.
        has_colour = not os.environ.get("NO_COLOR")
        self._rich = RichConsole(highlight=False, color_system="auto" if has_colour else None)
        self._look = layout.look_of(sys.stdout)
        self._status: Status | None = None
        self._keys: Keyboard | None = None
        self._knows_steps = False
        """The person was told in full what to do, while this terminal waits."""
        self._changed: dict[str, None] = {}
        """The files that turns changed here."""
        self._within_line = False

    def tell_changes(self, how: str, *, asked: bool) -> None:
        del asked  # a terminal always has a reader
        self._how = how

    def _show(self, notice: ui.Notice) -> None:
        self._stop_status()
        self._look = layout.look_of(sys.stdout)  # the window may have been resized
        match notice:
            case ui.ReplyAccepted():
                self._rich.rule(f"Answer {notice.sequence}", style="dim")
            case ui.OperationBegan():
                self._begin(notice)
            case ui.OutputCame() if notice.text:
                self._has_shown_output = True
                self._within_line = not notice.text.endswith("\n")
                self._rich.print(Text(notice.text, style="dim"), end="", soft_wrap=True)
            case _:
                if isinstance(notice, ui.TurnDone):
                    self._changed |= dict.fromkeys(notice.changed)
                if isinstance(notice, ui.OperationDone) and self._within_line:
                    self._rich.print()
                    self._within_line = False
                super()._show(notice)

    def ask(self, notice: ui.ApprovalAwaited, elsewhere: ui.Elsewhere) -> Answer | None:
        """Ask the person to approve what was shown; None if this process can't read their keyboard.

        An answer given in another terminal counts as theirs.

        Raises:
            KeyboardInterrupt: passed on; also at the end of input, which is not an answer.
        """
        if self._is_gone or not self._can_ask:
            return None
        while not keyboard.is_ours(sys.stdin):
            if (found := elsewhere(notice)) is not None:
                return self._answered_elsewhere(found)
            time.sleep(_LOOK_ELSEWHERE_S)
        try:
            with self._keyboard() as keys:
                prompt = _KEEP_IT if notice.kind is Kind.FILES_CHANGED else _DO_IT
                return self._ask(keys, prompt, lambda: elsewhere(notice))
        except EOFError:
            raise KeyboardInterrupt from None

    def keyboard(self) -> AbstractContextManager[Keyboard] | None:
        return self._keyboard() if self._can_ask and not self._is_gone else None

    @contextlib.contextmanager
    def _keyboard(self) -> Iterator[Keyboard]:
        if self._keys is not None:
            yield self._keys
            return
        with Keyboard(sys.stdin, sys.stdout) as keys:
            self._keys = keys
            try:
                yield keys
            finally:
                self._keys = None

    def _ask(self, keys: Keyboard, prompt: str, elsewhere: Callable[[], Answer | None]) -> Answer:
        if keys.discard():
            self._say((_TYPED_BEFORE, "dim"))
        while True:
            found = self._line(keys, prompt, elsewhere)
            if isinstance(found, Answer):
                self._rich.print()
                return self._answered_elsewhere(found)
            said = found.strip().lower()
            decision = next((each for each in _DECISIONS if said in (each, each[0])), None)
            if decision is not None:
                break
            keys.discard(settles=True)
        reason = ""
        if decision == "no":
            with contextlib.suppress(EOFError):
                why = "  Why not? (for the model; may be empty): "
                reason = str(self._line(keys, why, lambda: None)).strip()
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
        if self._is_gone or not self._can_ask or not keyboard.is_ours(sys.stdin):
            return None
        self._say((f"? {question}", "bold yellow"))
        for number, choice in enumerate(choices, start=1):
            self._say((f"  {number}  {choice}", ""))
        numbers = [str(number) for number in range(1, len(choices) + 1)]
        said = ""
        try:
            with self._keyboard() as keys:
                while said not in numbers:
                    said = str(self._line(keys, "  Its number: ", lambda: None)).strip()
        except EOFError:
            raise KeyboardInterrupt from None
        return numbers.index(said)

    def close(self) -> None:
        self._stop_status()

    def lines(self, lines: Iterable[Line]) -> None:
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
        return _COLOUR_SYSTEMS.get(self._rich.color_system or "", "no colours")

    def _show_ready(self, notice: ui.OutboxReady) -> None:
        if not self._knows_steps:
            super()._show_ready(notice)
            return
        short = (notice.short_characters, notice.short_tokens)
        size = layout.size(*(short if notice.short_path else (notice.characters, notice.tokens)))
        self._say((f"request {notice.sequence}", "bold"), (f" is ready: {size}", ""))
        if notice.characters >= _NEARLY_FULL * notice.budget > 0:
            self._say(("  ", ""), *layout.budget_line(notice.characters, notice.budget, self._look))

    def _show_steps(self, notice: ui.Waiting) -> None:
        if self._knows_steps and notice.watched:
            self.lines([[("  send ", ""), (notice.short or notice.outbox, "bold cyan")]])
            return
        super()._show_steps(notice)
        self._knows_steps = notice.watched and self._keys is not None

    def _show_done(self, notice: ui.SessionDone) -> None:
        super()._show_done(notice)
        if self._changed:
            what = f"changed: {', '.join(self._changed)}"
            self._say((f"{what}; {_AFTER}", "dim"))

    def _wait(self, notice: ui.Waiting) -> None:
        hint = "     (`codingagent copy` and `paste` do both through the clipboard)"
        if not notice.watched or self._keys is None:
            self._say((hint, "dim"), indent=5)
            self._say((waiting_line(notice), ""))

    def _begin(self, notice: ui.OperationBegan) -> None:
        self._has_shown_output = False
        if notice.kind in (Kind.RUN_COMMAND, Kind.CHECK):
            whose = " (your check)" if notice.kind is Kind.CHECK else ""
            command = (f" {notice.subject}", "")
            self._say(("  ", ""), ("$", "bold"), command, (whose, "dim"), indent=4)
            self._start_status("running")

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
