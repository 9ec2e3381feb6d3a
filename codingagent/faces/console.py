"""Notices on a terminal: colour, live output, a spinner while waiting. The only user of rich."""

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import assert_never

from rich.console import Console as RichConsole
from rich.markup import escape
from rich.status import Status
from rich.table import Table
from rich.text import Text

from codingagent.core.approval import Answer, Decision
from codingagent.core.notices import (
    ApprovalAwaited,
    ModelSaid,
    Notice,
    OperationBegan,
    OperationDone,
    OutboxReady,
    OutputCame,
    QuestionAsked,
    Remark,
    ReplyAccepted,
    ReplyRejected,
    SessionDone,
    TurnDone,
    Waiting,
)
from codingagent.core.plain import without_controls
from codingagent.faces.lines import done_lines, question_line, turn_line, waiting_line
from codingagent.faces.screens import Elsewhere

# Of a failure's output the end says most; the request to the model has more of it.
_FAILURE_LINES = 15


_LOOK_ELSEWHERE_S = 0.2

_DECISIONS: dict[str, Decision] = {
    "y": "yes",
    "yes": "yes",
    "n": "no",
    "no": "no",
    "a": "always",
    "always": "always",
}


def _wait_for_line(elsewhere: Callable[[], Answer | None]) -> Answer | None:
    """Waits until something was typed, or answered elsewhere; then gives that answer."""
    if sys.platform == "win32":
        return (
            None  # a console can't be waited for beside something else: the keyboard alone answers
        )
    import select

    while (answer := elsewhere()) is None:
        if select.select([sys.stdin], [], [], _LOOK_ELSEWHERE_S)[0]:
            break
    return answer


def _style_of(line: str) -> str:
    """Gives the colour of a line of a difference."""
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


class Console:
    """Shows notices on a terminal as they come."""

    def __init__(self, *, can_ask: bool = False) -> None:
        self._can_ask = can_ask
        self._rich = RichConsole(highlight=False)
        self._status: Status | None = None
        self._said_output = False
        self._within_line = False

    def show(self, notice: Notice) -> None:
        self._stop_status()
        match notice:
            case OutboxReady():
                self._print(
                    f"[bold]Request {notice.sequence}[/] is ready:"
                    f" {notice.characters:,} characters, about {notice.tokens:,} tokens"
                )
                if notice.short_path:
                    self._print(
                        f"  [dim]short, for the same chat: {notice.short_characters:,} characters,"
                        f" about {notice.short_tokens:,} tokens[/]"
                    )
            case Waiting():
                self._show_waiting(notice)
            case ReplyAccepted():
                self._rich.rule(f"Reply {notice.sequence}", style="dim")
            case ReplyRejected():
                self._print(f"[yellow]Not taken:[/] {escape(notice.name)}: {escape(notice.reason)}")
                self._print("  kept as")
                self._print_path(notice.path)
                self._rich.print(Text(f"  {notice.remedy}"), soft_wrap=True)
            case OperationBegan():
                self._begin(notice)
            case OutputCame():
                self._show_output(notice.text)
            case OperationDone():
                self._show_result(notice)
            case ApprovalAwaited():
                self._show_awaited(notice)
            case ModelSaid():
                self._rich.print(Text(notice.text, style="cyan"))
            case QuestionAsked():
                self._print(f"[bold yellow]?[/] {escape(question_line(notice))}")
            case TurnDone():
                self._print(f"[dim]{escape(turn_line(notice))}[/]")
                for note in notice.notes:
                    self._print(f"  [yellow]note:[/] {escape(note)}")
            case SessionDone():
                first, *rest = done_lines(notice)
                self._rich.print(Text(first, style="bold green"))
                for line in rest:
                    self._print(f"[yellow]{escape(line)}[/]")
            case Remark():
                self._print(f"[dim]{escape(notice.text)}[/]")
            case _:
                assert_never(notice)

    def ask(self, notice: ApprovalAwaited, elsewhere: Elsewhere) -> Answer | None:
        """Asks the person for a yes or no to what was shown; None if their keyboard is not ours.

        An answer given in another terminal counts as theirs.

        Raises:
            KeyboardInterrupt: passed on; so is the end of input, which is no answer.
        """
        if not self._can_ask:
            return None
        choices = "([bold]y[/])es, ([bold]n[/])o, ([bold]a[/])lways in this session"
        while True:
            self._rich.print(f"  Do it? {choices}: ", end="")
            if (answer := _wait_for_line(lambda: elsewhere(notice))) is not None:
                self._print(f"\n  answered elsewhere: {answer.decision}")
                return answer
            try:
                said = self._rich.input().strip().lower()
            except EOFError:
                raise KeyboardInterrupt from None
            if said in _DECISIONS:
                break
        decision = _DECISIONS[said]
        reason = ""
        if decision == "no":
            with contextlib.suppress(EOFError):
                reason = self._rich.input("  Why not? (for the model; may be empty): ").strip()
        return Answer(decision, reason=reason)

    def _show_awaited(self, notice: ApprovalAwaited) -> None:
        self._print(f"  [bold yellow]? {escape(notice.command_type)}[/] needs your approval:")
        for line in without_controls(notice.shown).split("\n"):
            self._rich.print(Text(f"      {line}", style=_style_of(line)), soft_wrap=True)
        for reason in notice.reasons:
            self._print(f"    [yellow]because:[/] {escape(reason)}")

    def close(self) -> None:
        """Puts the terminal back as it was: no spinner, the cursor shown."""
        self._stop_status()

    def diff(self, text: str) -> None:
        """Shows a unified difference in colour."""
        for line in text.splitlines():
            self._rich.print(Text(line, style=_style_of(line)), soft_wrap=True)

    def table(self, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
        """Shows a table."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in headings:
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        self._rich.print(table)

    def _show_waiting(self, notice: Waiting) -> None:
        self._print("Now it is your turn:")
        if notice.short:
            self._print("  [bold]1.[/] In the same chat send this file, attached or pasted:")
            self._print_path(notice.short)
            self._print("     or in a new chat this one, which is whole:")
        else:
            self._print(
                "  [bold]1.[/] Attach this file to any chat, or paste its text, and send it:"
            )
        self._print_path(notice.outbox)
        self._print("  [bold]2.[/] Save the chat's whole answer as a .txt file in this folder:")
        self._print_path(notice.inbox)
        self._print("     [dim](`codingagent copy` and `paste` do both by way of the clipboard)[/]")
        if notice.watched:
            self._start_status(waiting_line(notice))
        else:
            self._print(escape(waiting_line(notice)))

    def _begin(self, notice: OperationBegan) -> None:
        self._said_output = False
        if notice.command_type == "RUN_COMMAND":
            self._print(f"  [bold]$[/] {escape(notice.subject)}")
            self._start_status("running")

    def _show_output(self, text: str) -> None:
        if text:
            self._said_output = True
            self._within_line = not text.endswith("\n")
            self._rich.print(Text(text, style="dim"), end="", soft_wrap=True)

    def _show_result(self, notice: OperationDone) -> None:
        if self._within_line:
            self._rich.print()
            self._within_line = False
        result = notice.result
        mark = "[green]✓[/]" if result.success else "[red]✗[/]"
        if result.command_type not in ("MESSAGE", "DONE") or not result.success:
            self._print(f"  {mark} {escape(result.command_type)}: {escape(result.summary)}")
        if not result.success and result.output and not self._said_output:
            for line in result.output.rstrip("\n").split("\n")[-_FAILURE_LINES:]:
                self._print(f"      [dim]{escape(line)}[/]")
        for note in result.notes:
            self._print(f"      [yellow]note:[/] {escape(note)}")

    def _print(self, markup: str) -> None:
        self._rich.print(markup)

    def _print_path(self, path: str) -> None:
        # Never broken by us, so that it can be copied whole.
        self._rich.print(Text(f"     {path}", style="bold cyan"), soft_wrap=True)

    def _start_status(self, text: str) -> None:
        self._status = self._rich.status(f"[dim]{escape(text)}[/]")
        self._status.start()

    def _stop_status(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
