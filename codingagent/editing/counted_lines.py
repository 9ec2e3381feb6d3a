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
from codingagent.model.events import Hunk
from codingagent.model.operations import LineRange
from codingagent.model.plain_text import joined

# Comparing takes time that grows with the square.
_COMPARED_LINES, _COMPARED_CHARACTERS = 2_000, 1_000
_LIKE, _LIKER = 0.6, 0.25
# To tell which lines each of so many means takes seconds.
_OTHERS = 200
_MOVED = "lines have moved since the chat was shown them: {} of the edit was taken as {}"
# A shorter line may be anywhere.
_TELLING = 3
Span = tuple[int, int]
"""Indexes of lines: the first, and the one behind the last."""


class Fit(NamedTuple):
    """Whether a file can be parsed with new lines in a place, and how like the lines there they are."""

    is_whole: bool
    likeness: float


def place_of(
    change: LineRange, now: Sequence[str], hunks: Iterable[Hunk], shown: Sequence[str] | None
) -> Span | None:
    """Return where the lines are now that an edit's numbers mean in the text that was shown; None: nowhere.

    Where that text is not known, the edits count that have moved lines, in their order.
    """
    start, end = change.start_line - 1, change.end_line
    if shown is not None:
        return _moved(shown, now, start, end)
    for hunk in hunks:
        first = hunk.old_start - 1
        if start < first + hunk.old_count and first < end:
            return None
        by = hunk.new_count - hunk.old_count if first < end else 0
        start, end = start + by, end + by
    return start, end


def meant(
    change: LineRange, place: Span | None, now: Sequence[str], path: str, others: int = 0
) -> tuple[LineRange, str]:
    """Return an edit with the numbers of the lines that it means now, and a note if they had moved.

    `place` is where the lines are that the chat was shown, `now` all of the file. With a path, what it would
    be for a parser counts too. OperationError if its new lines do not show which of two places is meant, or
    too many `others` of the same change have moved.
    """
    start, end = change.start_line - 1, change.end_line
    if place == (start, end):
        return change, ""
    if others >= _OTHERS:
        fact = f"more than {_OTHERS} edits count lines that others have moved"
        raise OperationError(fact, advice="; send them from the bottom of the file up")
    spans = [each for each in ((start, end), place) if each is not None and each[1] <= len(now)]
    best = _best({each: _fit(change, now, each, path) for each in spans}, is_sure=place is not None)
    if best is None and spans:
        raise OperationError(
            f"its lines have moved meanwhile: {_named(start, end)} may be two places",
            around([*now], sorted((first + 1, last) for first, last in spans)),
            advice="; send this edit again, with SEARCH/REPLACE or with the numbers of now",
        )
    if best is None or best == (start, end):
        return change, _MOVED.format(_named(start, end), "it is now") if spans else ""
    moved = replace(change, start_line=best[0] + 1, end_line=best[1])
    return moved, _MOVED.format(_named(start, end), f"{_named(*best)} of now")


def _named(start: int, end: int) -> str:
    return f"line {end}" if end - start == 1 else f"lines {start + 1}-{end}"


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


def _moved(shown: Sequence[str], now: Sequence[str], start: int, end: int) -> Span | None:
    """Return where lines are now, or as many in their place; None if neither is."""
    head, tail = common_ends(shown, now)
    if end <= head or end > len(shown):  # the shown text has no such lines
        return start, end
    by = len(now) - len(shown)
    if start >= len(shown) - tail:
        return start + by, end + by
    old, new = shown[head : len(shown) - tail], now[head : len(now) - tail]
    if max(len(old), len(new)) > _COMPARED_LINES:
        return None
    before, after = 0, by
    for a, b, size in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        if head + a >= end:
            after = b - a
            break
        before = b - a
        if head + a <= start and end <= head + a + size:
            after = before
            break
    return (start + before, end + before) if before == after else None


def _fit(change: LineRange, now: Sequence[str], place: Span, path: str) -> Fit:
    new, (start, end) = places.split(change.text), place
    is_whole = not path or syntax_check.parses(path, joined([*now[:start], *new, *now[end:]])) is not False
    old = [line.strip() for line in now[start:end] if line.strip()]
    bare = [line.strip() for line in new]
    if new and (
        (bare[0] and new[:1] == now[max(start - 1, 0) : start])
        or (bare[-1] and new[-1:] == now[end : end + 1])
    ):
        return Fit(is_whole, 0)  # the file would have that line twice
    shared = sum(line in bare for line in old if len(line) > _TELLING)
    # What is new stands most often behind what was there.
    was, *both = ("\n".join(lines)[:_COMPARED_CHARACTERS] for lines in (old, bare, bare[: len(old)]))
    ratio = (
        max(difflib.SequenceMatcher(None, was, each, autojunk=False).ratio() for each in both) if was else 0
    )
    return Fit(is_whole, 1 if 2 * shared >= len(old) > 0 else ratio)
