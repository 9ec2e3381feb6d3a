"""Choose how to show events: on a terminal, as plain lines or as JSON; and report errors."""

import contextlib
import difflib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from codingagent.cli.stdio import is_living, silence

if TYPE_CHECKING:
    from codingagent.agent.context import Person
    from codingagent.model.approval import Answer
    from codingagent.model.settings import Settings
    from codingagent.model.ui_events import ApprovalAwaited, Elsewhere, Notice


class Screen(Protocol):
    """An output that shows notices."""

    def tell_changes(self, how: str, *, asked: bool) -> None:
        """Set how much of each change to show: never, short or full; `asked`: explicitly requested."""
        ...

    def show(self, notice: "Notice") -> None: ...
    def ask(self, notice: "ApprovalAwaited", elsewhere: "Elsewhere") -> "Answer | None":
        """Ask the person; an answer from `elsewhere` counts as theirs. None if nobody can answer."""
        ...

    def choose(self, question: str, choices: "Sequence[str]") -> int | None:
        """Ask the person for one of these; None if nobody can answer."""
        ...

    def close(self) -> None: ...


@contextlib.contextmanager
def screen_for(json: bool) -> Iterator[Screen]:
    """Yield the screen for this output: JSON, a terminal, or plain lines."""
    screen: Screen
    if json:
        from codingagent.cli.plain_output import JsonLines

        screen = JsonLines(sys.stdout)
    elif is_living(sys.stdout):
        from codingagent.cli.terminal import Console

        screen = Console()
    else:
        from codingagent.cli.plain_output import Lines

        screen = Lines(sys.stdout)
    try:
        yield Steady(screen)
    finally:
        with contextlib.suppress(OSError):
            screen.close()


class Steady:
    """A screen whose output may fail (`| head`, a full disk) without ending the work."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._is_gone = False

    def tell_changes(self, how: str, *, asked: bool) -> None:
        self._screen.tell_changes(how, asked=asked)

    def show(self, notice: "Notice") -> None:
        if self._is_gone:
            return
        try:
            self._screen.show(notice)
        except OSError:
            self._is_gone = True
            silence(sys.stdout)

    def ask(self, notice: "ApprovalAwaited", elsewhere: "Elsewhere") -> "Answer | None":
        return None if self._is_gone else self._screen.ask(notice, elsewhere)

    def choose(self, question: str, choices: "Sequence[str]") -> int | None:
        return None if self._is_gone else self._screen.choose(question, choices)

    def close(self) -> None:
        self._screen.close()


def person_at(
    screen: Screen,
    settings: "Settings | None" = None,
    *,
    approves_all: bool,
    accepts_formats: bool = False,
    elsewhere: "Elsewhere" = lambda _: None,
    diff: object = None,
) -> "Person":
    """Return the person at a screen, who may also answer from another terminal (`elsewhere`).

    The settings say how much of each change to show; `diff` is not None if an option said so.
    """
    from codingagent.agent.context import Person

    if settings is not None:
        screen.tell_changes(settings.diff, asked=diff is not None)
    return Person(
        screen.show, lambda notice: screen.ask(notice, elsewhere), approves_all, accepts_formats
    )


def remark(screen: Screen, text: str) -> None:
    """Show one line."""
    from codingagent.model.ui_events import Remark

    screen.show(Remark(text))


def suggestion(word: str, known: Sequence[str], otherwise: str) -> str:
    """Return a hint with the known word that was probably meant, or what helps without one."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else otherwise


def fail(message: str, status: int = 1) -> int:
    """Print an error on stderr in one line; on a terminal, wrapped between words.

    Returns:
        The exit status.
    """
    from codingagent.model.plain_text import without_controls

    line = f"codingagent: {without_controls(' '.join(message.split()))}"
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{_wrapped(line)}\n")
    return status


def _wrapped(line: str) -> str:
    """Wrap a line for the terminal; text in backquotes, to be copied, stays whole if it fits."""
    if not sys.stderr.isatty():
        return line
    from codingagent.cli import layout

    width = os.get_terminal_size(sys.stderr.fileno()).columns
    # A terminal that does not know its size reports 0.
    look = layout.Look(max(width, 10) if width else 80)
    whole = _QUOTED.sub(lambda found: found[0].replace(" ", _NO_BREAK), line)
    lines = layout.hang([(whole, "")], look, 2)
    return layout.plain_lines(lines).rstrip("\n").replace(_NO_BREAK, " ")


_QUOTED = re.compile(r"`[^`]*`")
# No message holds it: control characters are removed before.
_NO_BREAK = "\x00"
