"""Choose how to show events: on a terminal, as plain lines or as JSON; and report errors."""

import contextlib
import difflib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from codingagent.cli.command_table import runnable
from codingagent.cli.stdio import is_living

if TYPE_CHECKING:
    from codingagent.cli.plain_output import Screen


class LeaveError(Exception):
    """The person ends the wait: `arguments` follow, or, if they are refused, `otherwise`."""

    def __init__(self, *arguments: str, otherwise: Sequence[str] = ()) -> None:
        super().__init__()
        self.arguments, self.otherwise = list(arguments), list(otherwise)


@contextlib.contextmanager
def screen_for(json: bool) -> "Iterator[Screen]":
    """Yield the screen for this output: JSON, a terminal, or plain lines."""
    from codingagent.cli.plain_output import JsonLines, Lines

    screen: Screen = (JsonLines if json else Lines)(sys.stdout)
    if not json and is_living(sys.stdout):
        from codingagent.cli.terminal import Console

        screen = Console()
    try:
        yield screen
        screen.check()
    finally:
        with contextlib.suppress(OSError):
            screen.close()


def suggestion(word: str, known: Sequence[str], otherwise: str) -> str:
    """Return a hint with the known word that was probably meant, or what helps without one."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.65)
    return f"did you mean '{close[0]}'?" if close else otherwise


def fail(message: str, status: int = 1) -> int:
    """Print an error on stderr in one line; on a terminal, wrapped. Return the exit status."""
    from codingagent.cli import layout
    from codingagent.model.plain_text import on_screen

    line = f"codingagent: {runnable(on_screen(' '.join(message.split())))}"
    with contextlib.suppress(OSError):
        sys.stderr.write(layout.plain_lines(layout.hang([(line, "")], layout.look_of(sys.stderr), 2)))
    return status
