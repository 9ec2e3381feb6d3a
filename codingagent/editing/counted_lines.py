"""Which lines the numbers of an edit mean, where the file has changed since the chat was shown it.

Specification 003 counts in the file as it stands. Models count in what they were shown, and forget that their
own edits and commands have moved the lines. Where these are two places, the new lines show which is meant, or
nobody knows.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from codingagent.editing import places, syntax_check
from codingagent.editing.nearest import around, common_ends
from codingagent.errors import OperationError
from codingagent.model.operations import LineRange
from codingagent.model.plain_text import joined

# Comparing takes time that grows with the square.
_COMPARED_LINES, _COMPARED_CHARACTERS = 2_000, 1_000
_LIKE, _LIKER = 0.6, 0.25
# A shorter line may be anywhere.
_TELLING = 3
Span = tuple[int, int]
"""Indexes of lines: the first, and the one behind the last."""


class Fit(NamedTuple):
    """Whether a file can be parsed with new lines in a place, and how like the lines there they are."""

    is_whole: bool
    likeness: float


def counted(change: LineRange, shown: Sequence[str], now: Sequence[str], path: str) -> tuple[LineRange, str]:
    """Return an edit with the numbers of the lines that it means now, and a note if they had moved.

    `shown` are the lines that the chat counted, `now` those of the file. OperationError if its new lines
    do not show which of two places is meant.
    """
    start, end = change.start_line - 1, change.end_line
    place = _moved(shown, now, start, end)
    if place == (start, end):
        return change, ""
    fits = {
        each: _fit(change, now, each, path)
        for each in ((start, end), place)
        if each is not None and each[1] <= len(now)
    }
    best = _best(fits, is_sure=place is not None or end > len(shown))
    if best is None:
        raise moved(change, now, fits)
    what = f"the lines of '{path}' have moved since the chat was shown them: {_named(start, end)} of the edit"
    how = "was taken as it is now" if best == (start, end) else f"was taken as {_named(*best)} of now"
    return replace(change, start_line=best[0] + 1, end_line=best[1]), f"{what} {how}"


def moved(change: LineRange, now: Sequence[str], spans: Iterable[Span] = ()) -> OperationError:
    """Return the refusal of numbers that may mean several places, which it shows."""
    there = sorted((first + 1, last) for first, last in spans)
    return OperationError(
        f"its lines have moved meanwhile: {_named(change.start_line - 1, change.end_line)} may be two places",
        around([*now], there or [(change.start_line, change.end_line)]),
        advice="; send this edit again, with SEARCH/REPLACE or with the numbers of now",
    )


def _best(fits: Mapping[Span, Fit], *, is_sure: bool) -> Span | None:
    """Return the place that is meant; None if that is not certain. `is_sure`: one alone is meant."""
    if len(fits) == 1 and is_sure:
        return next(iter(fits))
    ranked = sorted(fits, key=lambda place: fits[place].likeness, reverse=True)
    whole = [place for place in ranked if fits[place].is_whole]
    likeness = [fits[place].likeness for place in ranked] + [0.0]
    if likeness[0] >= _LIKE and likeness[0] - likeness[1] >= _LIKER:
        return ranked[0] if ranked[0] in whole or not whole else None
    return whole[0] if len(whole) == 1 < len(fits) else None


def _named(start: int, end: int) -> str:
    return f"line {end}" if end - start == 1 else f"lines {start + 1}-{end}"


def _moved(shown: Sequence[str], now: Sequence[str], start: int, end: int) -> Span | None:
    """Return where lines are now, by indexes; None if they are not there as they were."""
    head, tail = common_ends(shown, now)
    if end <= head:
        return start, end
    if end > len(shown):
        return None
    by = len(now) - len(shown)
    if start >= len(shown) - tail:
        return start + by, end + by
    old, new = shown[head : len(shown) - tail], now[head : len(now) - tail]
    if max(len(old), len(new)) <= _COMPARED_LINES:
        for a, b, size in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
            if head + a <= start and end <= head + a + size:
                return start + b - a, end + b - a
    return None


def _fit(change: LineRange, now: Sequence[str], place: Span, path: str) -> Fit:
    new, (start, end) = places.split(change.text), place
    is_whole = syntax_check.parses(path, joined([*now[:start], *new, *now[end:]])) is not False
    old = [line.strip() for line in now[start:end] if line.strip()]
    bare = [line.strip() for line in new]
    if new and (
        (bare[0] and new[:1] == now[max(start - 1, 0) : start])
        or (bare[-1] and new[-1:] == now[end : end + 1])
    ):
        return Fit(is_whole, 0)  # the file would have that line twice
    shared = sum(line in bare for line in old if len(line) > _TELLING)
    was, is_ = ("\n".join(lines)[:_COMPARED_CHARACTERS] for lines in (old, bare))
    ratio = difflib.SequenceMatcher(None, was, is_, autojunk=False).ratio() if was else 0
    return Fit(is_whole, 1 if 2 * shared >= len(old) > 0 else ratio)
