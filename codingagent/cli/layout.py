"""Lay out text for people: fit the width, choose the marks, word the times.

A line is made of spans: a text with a style by its meaning (`good`, `bad`, `warn`, `name`, `bold`, `dim`,
or none). Plain output drops the styles; `terminal` maps them to colours.
"""

import os
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import TextIO

from msgspec import Struct

from codingagent.cli.stdio import can_show_marks, is_terminal
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import estimated

Span = tuple[str, str]
Line = Sequence[Span]
# Narrower columns are unreadable.
_FEWEST_CELLS = 20
_QUOTED = lazy_pattern(r"`[^`]*`")


class Look(Struct, frozen=True):
    """The properties of the output that text is laid out for."""

    width: int = 0
    """That of the terminal, in cells; 0 means no limit: a pipe."""
    has_marks: bool = False
    """It can show ✓ and the like."""

    @property
    def is_terminal(self) -> bool:
        return self.width > 0

    @property
    def dots(self) -> str:
        return "…" if self.has_marks else "..."

    def mark(self, success: bool) -> Span:
        """Return the mark of a result; a word if marks can't be shown."""
        good, bad = ("✓", "✗") if self.has_marks else ("ok    ", "FAILED")
        return (good, "good") if success else (bad, "bad")


PIPE = Look()


def look_of(stream: TextIO) -> Look:
    if not is_terminal(stream):
        return PIPE
    # Of standard output, else of this stream. A terminal that does not know its size reports 0.
    width = max(shutil.get_terminal_size(os.get_terminal_size(stream.fileno())).columns or 80, 10)
    return Look(width, can_show_marks(stream))


def cells(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def _cells_of(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, width: int, look: Look) -> str:
    """Cut a text to a width; an ellipsis shows that there is more."""
    if not look.is_terminal or cells(text) <= width:
        return text
    end = _fit(text, 0, max(width - len(look.dots), 0))
    return f"{text[:end].rstrip()}{look.dots[: max(width, 0)]}"


def _fit(text: str, start: int, width: int) -> int:
    """Return where the piece ends that begins at `start` and fits into a width."""
    for index in range(start, len(text)):
        width -= _cells_of(text[index])
        if width < 0:
            return index
    return len(text)


def _breaks(text: str, first: int, later: int) -> Iterator[tuple[int, int]]:
    """Yield where each line begins and ends: between words, or in a long one; text in backquotes is one."""
    start, width = 0, first
    spaced = _QUOTED.sub(
        lambda found: found[0].replace(" ", "_") if cells(found[0]) <= later else found[0], text
    )
    while (end := _fit(text, start, width)) < len(text):
        # Spaces at the beginning are an indent and stay.
        word = start + len(text[start:]) - len(text[start:].lstrip(" "))
        space = spaced.rfind(" ", word, end + 1)
        if space > word:
            end = start + len(text[start:space].rstrip(" "))
        end = max(end, start + 1)
        yield start, end
        start, width = end + len(text[end:]) - len(text[end:].lstrip(" ")), later
    if start < len(text) or not text:
        yield start, end


def wrap(text: str, width: int) -> list[str]:
    """Wrap a text between words, and within a word that is longer than a line."""
    plain = " ".join(text.split())
    return [plain[start:end] for start, end in _breaks(plain, width, width)]


def hang(spans: Line, look: Look, indent: int) -> Iterator[Line]:
    """Wrap a line; indent all lines after the first."""
    text = "".join(text for text, _ in spans)
    if not look.is_terminal or 2 * len(text) <= look.width or cells(text) <= look.width:
        yield spans
        return
    styles = [style for text, style in spans for _ in text]
    for start, end in _breaks(text, look.width, look.width - indent):
        runs = groupby(range(start, end), key=styles.__getitem__)
        line = [("".join(text[i] for i in run), style) for style, run in runs]
        yield [(" " * indent, ""), *line] if start else line


def table(
    headings: Sequence[str], rows: Sequence[Sequence[Span]], look: Look, *, cuts: bool = False
) -> Iterator[Line]:
    """Yield a table that fits, the last column wrapped, or cut by `cuts`; else a card for each row."""
    heads = [(heading, "bold") for heading in headings]
    widths = [max(cells(row[i][0]) for row in [heads, *rows]) for i in range(len(headings))]
    taken = sum(width + 2 for width in widths[:-1])
    room = look.width - taken if look.is_terminal else widths[-1]
    if room < min(_FEWEST_CELLS, widths[-1]):
        for first, *others in rows:
            yield [first]
            for text, style in others:
                lines = wrap(text, look.width - 2)
                if cuts and len(lines) > 2:
                    lines = [lines[0], cut(" ".join(lines[1:]), look.width - 2, look)]
                yield from ([("  ", ""), (line, style)] for line in lines if text)
        return
    for row in [heads, *rows]:
        *firsts, (last, style) = row
        spaced = [
            (text + " " * (width + 2 - cells(text)), style_)
            for (text, style_), width in zip(firsts, widths, strict=False)
        ]
        folded = [cut(last, room, look)] if cuts or not look.is_terminal else wrap(last, room)
        yield [*spaced, (folded[0], style)]
        for more in folded[1:]:
            yield [(" " * taken, ""), (more, style)]


def plain_lines(lines: Iterable[Line]) -> str:
    """Return lines without their styles, each with a line end."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def size(characters: int, tokens: int) -> str:
    """Return the size of a text in words."""
    return f"{characters:,} characters, {estimated(tokens)}"


def counted(added: int, removed: int, look: Look) -> str:
    """Return the number of added and removed lines: `+3 -1`."""
    return f"+{added} {'−' if look.has_marks else '-'}{removed}"


_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def ago(at: str, now: datetime) -> str:
    """Return how long ago a moment was, or its date if that is long ago."""
    moment = datetime.fromisoformat(at)
    seconds = (now - moment).total_seconds()
    if seconds < _MINUTE:
        return "just now"
    return f"{duration(seconds)} ago" if seconds < 7 * _DAY else f"{moment.astimezone(now.tzinfo):%Y-%m-%d}"


def clock(at: str, now: datetime) -> str:
    """Return a moment in the person's own time; today's without the date."""
    moment = datetime.fromisoformat(at).astimezone(now.tzinfo)
    return f"{moment:%H:%M}" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M}"


def local_now() -> datetime:
    return datetime.now(UTC).astimezone()


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.0f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.0f} days"
