"""Show records and notices on a terminal: colour, live output, a spinner. Only this module uses rich."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, get_args

from rich.console import Console as RichConsole
from rich.status import Status
from rich.text import Text

from codingagent.cli import keyboard, layout, record_words
from codingagent.cli.keyboard import Keyboard, PasteError
from codingagent.cli.plain_output import GO_ON, OR_SEND, Lines
from codingagent.cli.stdio import is_terminal, obeys_codes
from codingagent.errors import UsageError
from codingagent.model import events, operations
from codingagent.model import journal_entries as entries
from codingagent.model import notices as ui
from codingagent.model.approval import Answer, Decision
from codingagent.model.plain_text import as_typed, estimated, on_screen, one_line, plural
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings
from codingagent.storage.mailbox import Mailbox
from codingagent.workspace.programs import UntrustedError, command_line, for_system

_DO_IT = "  Approve? [y]es, [n]o, [a]lways this session: "
_KEEP_IT = "  Keep them? [y]es, [n]o (restore the files), [a]lways this session: "
_SHOW_THEM = "  Send them? [y]es, [n]o: "
_PROMPTS = {operations.Kind.FILES_CHANGED: _KEEP_IT, operations.Kind.READ_FILE: _SHOW_THEM}
# Longer lines of prose are hard to read.
_PAGE_CELLS = 100
_DECISIONS: Mapping[str, Decision] = {word: each for each in get_args(Decision) for word in (each, each[0])}
_T = TypeVar("_T")
# Colours of the styles in `layout`.
_COLOURS = {"good": "green", "bad": "red", "warn": "yellow", "name": "cyan"}
_LINE_CHARACTERS = 1_000
# Shorter work needs no sign of life.
_SOON_S = 0.5
# xterm, control sequences: keep the title, and bring it back.
_KEEP_TITLE, _OLD_TITLE = "\x1b[22;2t", "\x1b[23;2t"


class _Sign:
    """A sign of life: what goes on, how far, for how long, and the last line that came of it."""

    def __init__(self, what: str, limit_s: float | None, count: Callable[[], int]) -> None:
        self._what, self._limit_s, self._count = what, limit_s, count
        self._line = self._open = ""
        self._began_s = time.monotonic()

    def add(self, text: str) -> None:
        """Take what a command prints; what a carriage return overwrites is gone."""
        *ended, self._open = (self._open + text)[-_LINE_CHARACTERS:].split("\n")
        lines = [each.rstrip("\r").rpartition("\r")[2] for each in (*ended, self._open)]
        self._line = next((each for each in reversed(lines) if each), self._line)

    def __rich__(self) -> Text:
        passed_s = time.monotonic() - self._began_s
        limit = f" of {self._limit_s:g}" if self._limit_s else ""
        line = f": {on_screen(self._line)}" if self._line else ""
        count = self._count()
        files = f": {count:,} {plural(count, 'file')}" if count else ""
        said = f"{self._what}{files}, {passed_s:.0f}{limit} s{line}"
        return Text(said, style="dim", no_wrap=True, overflow="ellipsis")


class Console(Lines):
    told = (*Lines.told, entries.OperationStarted)
    told_elsewhere = (*Lines.told_elsewhere, entries.OperationStarted)

    def __init__(self) -> None:
        super().__init__(sys.stdout, "short")
        self._can_ask = is_terminal(sys.stdin) and is_terminal(sys.stdout)
        # no-color.org: no colour code at all then.
        has_colour = not os.environ.get("NO_COLOR") and obeys_codes(sys.stdout)
        self._rich = RichConsole(highlight=False, color_system="auto" if has_colour else None)
        self._look = layout.look_of(sys.stdout)
        self._status: Status | None = None
        self._timer: threading.Timer | None = None
        """Draws the status, if it is not stopped before."""
        self._drawing = threading.Lock()
        self._sign: _Sign | None = None
        self._notifies = self._has_title = False
        self._copied: tuple[str, str] | None = None
        """What was done to put the waiting request on the clipboard, and what to try if that failed."""

    def obey(self, settings: Settings, mailbox: Mailbox, *, asked: bool) -> None:
        super().obey(settings, mailbox, asked=asked)
        # A terminal always has a reader.
        self.how, self._notifies = settings.diff, settings.notify

    def _show(self, notice: ui.Notice) -> None:
        if isinstance(notice, ui.OutputCame):
            if self._sign is not None:
                self._sign.add(notice.text)
            return
        self._interrupt()
        super()._show(notice)
        if isinstance(notice, ui.Waiting):
            self._notify("your turn")

    def record(self, record: entries.Record, session: Session, *, is_elsewhere: bool = False) -> bool:
        what = "Withdrawn" * (isinstance(record, entries.RefreshAsked) and record.unsays)
        if isinstance(record, entries.PersonSaid) and record.text:
            wish = "Wish: files may change" * (record.wants == "edits")
            what = "Question: nothing will change" if session.is_asking else wish
        if what and self._keys is not None and not is_elsewhere:
            self._turn = [(what, "dim")], 2
        return super().record(record, session, is_elsewhere=is_elsewhere)

    def _record(self, record: entries.Record, session: Session) -> None:
        if isinstance(record, entries.OperationStarted):
            is_beside = record.kind is operations.Kind.CHECK and session.taken is None
            if record.kind in record_words.COMMANDS and not is_beside:  # who waits is not disturbed
                self._interrupt()
                self.busy(f"running {one_line(record.subject)}", record.limit_s)
            return
        self._interrupt()
        if isinstance(record, entries.AnswerTaken):
            rule = "──" if self._look.has_marks else "--"
            self._say((f"{rule} Answer {record.sequence} {rule}", "dim"))
        else:
            super()._record(record, session)
        is_step = isinstance(record, entries.AnswerTaken | entries.CheckEnded)
        is_step = is_step or isinstance(getattr(record, "event", None), events.CommandRan)
        if isinstance(record, entries.ApprovalAsked):
            self._notify("your approval")
        elif isinstance(record, entries.TurnEnded) and session.is_complete:
            self._notify("done")
        elif isinstance(record, entries.TurnEnded):
            self.busy("writing the request", count=self.files_found)
        elif is_step and session.taken is not None:
            self.busy("working", count=self.files_saved)

    def ask(self, asked: entries.ApprovalAsked, session: Session, elsewhere: ui.Elsewhere) -> Answer | None:
        """Ask the person to approve what is shown; None if they can't answer here, or did elsewhere."""
        super().ask(asked, session, elsewhere)
        if self._fault is not None or not self._can_ask:
            return None
        while not keyboard.is_ours(sys.stdin):
            if elsewhere():
                return None
            time.sleep(keyboard.LOOK_ELSEWHERE_S)
        with self._keyboard() as keys:
            if keys.discard():
                self._say(("  what was typed before this question was discarded", "dim"))
            prompt = _PROMPTS.get(asked.question.kind, _DO_IT)
            decision = self._meant(keys, prompt, _DECISIONS, elsewhere)
            if decision is None:
                self._rich.print()
                return None
            why = "  Reason for the model (Enter for none): "
            asks_why = decision == "no" and prompt != _SHOW_THEM
            reason = (self._line(keys, why) or "").strip() if asks_why else ""
        return Answer(decision, reason=reason, how="terminal")

    def keyboard(self) -> contextlib.AbstractContextManager[Keyboard] | None:
        return self._keyboard() if self._can_ask and self._fault is None else None

    @contextlib.contextmanager
    def any_key(self, what: str, limit_s: float | None = None) -> Iterator[Callable[[], bool]]:
        keys = self.keyboard() if keyboard.is_ours(sys.stdin) else None
        with keys or contextlib.nullcontext() as pressed:
            self.busy(f"{what}; any key goes on without it" * bool(pressed) or what, limit_s)
            yield pressed.has_key if pressed else bool

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

    def _meant(
        self, keys: Keyboard, prompt: str, meanings: Mapping[str, _T], elsewhere: ui.Elsewhere = bool
    ) -> _T | None:
        """Ask until one of these words is typed, and return what it means; None if it came from elsewhere."""
        while (found := self._line(keys, prompt, elsewhere)) is not None:
            if (said := as_typed(found)) in meanings:
                return meanings[said]
            keys.discard(settles=True)
        return None

    def _line(self, keys: Keyboard, prompt: str, elsewhere: ui.Elsewhere = bool) -> str | None:
        """Return what is typed after a prompt; None if an answer from elsewhere came first.

        KeyboardInterrupt also at the end of input, which is not an answer.
        """
        while True:
            keys.discard()
            try:
                return keys.line(lambda: self._rich.print(prompt, end="", markup=False), elsewhere)
            except PasteError:
                self._say(("  pasted text is ignored: type the answer", "warn"))
            except (KeyboardInterrupt, EOFError):
                self._rich.print()
                raise KeyboardInterrupt from None

    def choose(self, question: str, choices: Sequence[str]) -> int | None:
        """Ask the person for one of these, by its number; None if nobody can answer.

        One that begins with `yes:` or `no:` also by that word, or its first letter.
        """
        if self._fault is not None or not self._can_ask or not keyboard.is_ours(sys.stdin):
            return None
        is_brief = tuple(choices) == ("yes", "no")
        self._say((f"? {question}", "bold yellow"))
        for number, choice in enumerate(() if is_brief else choices, start=1):
            self._say((f"  {number}  {choice}", ""))
        prompt = "  [y]es, [n]o: " if is_brief else "  Its number: "
        meant = {str(number): number - 1 for number in range(1, len(choices) + 1)}
        for number, choice in enumerate(choices):
            if (word := choice.partition(":")[0]) in ("yes", "no"):
                meant |= {word: number, word[0]: number}
        with self._keyboard() as keys:
            return self._meant(keys, prompt, meant)

    def copied(self, sequence: int, done: str, if_not: str) -> None:
        if self._keys is None:
            super().copied(sequence, done, if_not)
        else:
            self._copied = done, if_not

    def close(self) -> None:
        self._interrupt()
        super().close()
        if self._has_title:
            with contextlib.suppress(OSError):
                self._rich.file.write(_OLD_TITLE)
            self._has_title = False

    def lines(self, lines: Iterable[layout.Line]) -> None:
        for line in lines:
            spans = [(text, _COLOURS.get(style, style)) for text, style in line]
            self._rich.print(Text.assemble(*spans), soft_wrap=True)

    def page(self, text: str) -> None:
        """Show a page of Markdown; in the person's pager if it is longer than the screen."""
        from rich.markdown import Markdown
        from rich.theme import Theme

        width = min(self._rich.width, _PAGE_CELLS)
        # No backgrounds: the terminal's own may be light or dark.
        theme = Theme({"markdown.code": "cyan", "markdown.h1": "bold", "markdown.h2": "bold"})
        page = Markdown(text, code_theme="ansi_dark", hyperlinks=False)
        with self._rich.use_theme(theme), self.paged():
            self._rich.print(page, width=width)

    @contextlib.contextmanager
    def paged(self) -> Iterator[None]:
        """Show what is shown meanwhile; in the person's pager if it is more than the screen has."""
        with self._rich.capture() as captured:
            yield
        shown = captured.get()
        line = os.environ.get("PAGER", "less")
        if not (self._can_ask and line.strip() and shown.count("\n") >= self._rich.height):
            sys.stdout.write(shown)
            return
        import pydoc

        try:
            program, *words = command_line(line)
        except UsageError as fault:
            sys.stdout.write(shown)
            if isinstance(fault, UntrustedError):
                sys.stderr.write(f"codingagent: the pager {fault}\n")
            return
        os.environ.pop("MANPAGER", None)  # it would have this in place of PAGER
        if Path(program).stem.lower() == "less" and "LESS" not in os.environ:
            # As git does: colours, and no alternate screen. From 3.13 on pydoc sets LESS itself.
            words.append("-FRX")
        os.environ["PAGER"] = for_system([program, *words])
        pydoc.pager(shown)

    def flush(self, notice: ui.Waiting | None = None) -> None:
        if notice is None or self._keys is None or self.is_passing:
            super().flush(None if self.is_passing else notice)
            return
        turn, written = self._turn, self._request
        self._turn = self._request = None
        egress = None if written is None else written[0].egress
        tokens = record_words.sent_size(egress)[1]
        about = estimated(tokens) if tokens else ""
        path, same = on_screen(notice.short or notice.outbox), "the same" if notice.short else "any"
        is_first, self._knows_steps = not self._knows_steps, True
        copied, self._copied = self._copied, None
        before = [] if turn is None or notice.asks else [*turn[0], (". ", "dim")]
        if copied:
            told = f" ({about})" if about else ""
            sign = "→" if self._look.has_marks else "->"
            self.lines([[*before, (f"{sign} paste this in {same} chat: copied{told}", "")]])
            if is_first and copied[1]:
                self._whole(f"{copied[1].rstrip()}: {path}")
        elif is_first:
            told = f", {about}" if about else ""
            way = f"{told}. Enter copies it: paste it into {same} chat, or attach"
            self._say(*before, (f"Request {notice.sequence}", "bold"), (way, ""))
            self.lines([[("  ", ""), (path, "name")]])
        elif not notice.asks:
            again = written is not None and written[1].is_rewritten
            line, _ = record_words.request_line(notice.sequence, path, egress, self._look, again=again)
            self.lines([[*before, *line]])
        if is_first:
            save = f"save it as a .txt file in {on_screen(notice.inbox)}"
            self._whole(f"Then paste the chat's whole answer here, or {save}")
        if written is not None:
            self._show_budget(written[0])
        if notice.asks:
            way = f"The model asks: type your reply, {OR_SEND.format(notice.sequence)}"
            if notice.answered:
                way = f"Type what to do next, /ask QUESTION, or /copy and {GO_ON.format(notice.sequence)}"
            self._say(("? ", "warn"), (way, ""))

    def busy(self, what: str, limit_s: float | None = None, count: Callable[[], int] = int) -> None:
        self._interrupt()
        sign = self._sign = _Sign(what, limit_s, count)

        def appear() -> None:
            with self._drawing:
                if self._timer is threading.current_thread():
                    spinner = "dots" if self._look.has_marks else "line"
                    self._status = self._rich.status(sign, spinner=spinner)
                    self._status.start()

        self._timer = threading.Timer(_SOON_S, appear)
        self._timer.daemon = True
        self._timer.start()

    def _notify(self, title: str) -> None:
        """Ring the bell, and say in the terminal's title, in fixed words, whose turn it is."""
        is_there = self._keys is not None or self._knows_steps
        if not (is_there and self._notifies) or os.environ.get("TERM", "dumb") in ("dumb", "linux"):
            return
        keep = "" if self._has_title else _KEEP_TITLE
        self._has_title = True
        if self._keys is not None:
            self._keys.last_codes = _OLD_TITLE
        self._rich.file.write(f"{keep}\x1b]2;codingagent: {title}\x1b\\\a")

    def _interrupt(self) -> None:
        """Remove the sign of life: a line follows."""
        with self._drawing:
            self._sign = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._status is not None:
                self._status.stop()
                self._status = None
        self._look = layout.look_of(sys.stdout)  # the window may have been resized
