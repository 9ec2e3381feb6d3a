"""Which face shows what happens, and whether there is someone to ask."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TextIO, TypeAlias

if TYPE_CHECKING:
    from codingagent.compose import Person
    from codingagent.core.approval import Answer
    from codingagent.core.notices import ApprovalAwaited, Notice


Elsewhere: TypeAlias = "Callable[[ApprovalAwaited], Answer | None]"
"""Gives the answer that was given to a question in another terminal, if one was."""


class Screen(Protocol):
    """What shows notices."""

    def show(self, notice: "Notice") -> None: ...
    def ask(self, notice: "ApprovalAwaited", elsewhere: "Elsewhere") -> "Answer | None":
        """Asks the person; None if nobody can answer here, or `elsewhere` did."""
        ...

    def close(self) -> None: ...


def silence(stream: TextIO) -> None:
    """Sends what is still to be said nowhere: its reader has gone, or its disk is full."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def screen_for(json: bool) -> Iterator[Screen]:
    """Gives the face for this output: JSON, a living terminal, or plain lines."""
    screen: Screen
    if json:
        from codingagent.faces.lines import JsonLines

        screen = JsonLines(sys.stdout)
    elif sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        from codingagent.faces.console import Console

        screen = Console(can_ask=sys.stdin is not None and sys.stdin.isatty())
    else:
        from codingagent.faces.lines import Lines

        screen = Lines(sys.stdout)
    try:
        yield Steady(screen)
    finally:
        with contextlib.suppress(OSError):
            screen.close()


class Steady:
    """A screen that may vanish (`| head`, a full disk): the work goes on without it."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._is_gone = False

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

    def close(self) -> None:
        self._screen.close()


def person_at(
    screen: Screen,
    *,
    approves_all: bool,
    accepts_formats: bool = False,
    elsewhere: "Elsewhere" = lambda _: None,
) -> "Person":
    """Gives the person before a screen, who may also answer from another terminal."""
    from codingagent.compose import Person

    return Person(
        screen.show, lambda notice: screen.ask(notice, elsewhere), approves_all, accepts_formats
    )


def remark(screen: Screen, text: str) -> None:
    """Shows one line."""
    from codingagent.core.notices import Remark

    screen.show(Remark(text))


def fail(message: str, status: int = 1) -> int:
    """Says on stderr, in one line, what went wrong; gives the exit status."""
    from codingagent.core.plain import without_controls

    line = without_controls(" ".join(message.split()))
    with contextlib.suppress(OSError):
        sys.stderr.write(f"codingagent: {line}\n")
    return status
