"""Show the lines of a file that a search most likely meant, and how they differ."""

import difflib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, groupby
from operator import ne

from codingagent.model.plain_text import without_halves

# Enough to see where one is and to write the next SEARCH, little enough for a result.
_CONTEXT_LINES = 3
_NEAREST_CONTEXT_LINES = 8
EXCERPT_LIMIT_LINES = 40
SHOWN_LINE_CHARACTERS = 300
# Beyond this many places a line ("}", "else:") says nothing about where the search belongs.
_COMMON_LINE_COUNT = 50
_FUZZY_LIMIT_LINES = 3000
_DIFFERENCE_LIMIT_LINES = 30
# Lines before times lines after: of more, difflib takes time that grows with the square.
_COMPARED = 1_000_000


def around(lines: list[str], places: Iterable[tuple[int, int]]) -> str:
    """Show ranges of lines, 1-based and inclusive, in rising order, each with a few lines around it.

    What is left out between them is a line of its own.
    """
    wanted: list[tuple[int, int]] = []
    for first, last in places:
        start = max(first - _CONTEXT_LINES, 1)
        end = min(last + _CONTEXT_LINES, len(lines))
        if wanted and start <= wanted[-1][1] + 1:
            wanted[-1] = (wanted[-1][0], max(end, wanted[-1][1]))
        else:
            wanted.append((start, end))
    shown = [_numbered(lines, start, end) for start, end in wanted]
    return "\n…\n".join(part for part in shown if part)


def nearest(lines: list[str], search: list[str]) -> str:
    """Show the lines of the file that most likely were meant, with their numbers and the difference."""
    start = _likely_start(lines, search)
    if start is None:
        return ""
    first = max(start - _NEAREST_CONTEXT_LINES, 0)
    last = min(start + len(search) + _NEAREST_CONTEXT_LINES, len(lines))
    shown = "The nearest lines in the file are:\n" + _numbered(lines, first + 1, last)
    return shown + _difference(search, lines[start : start + len(search)])


def _difference(search: list[str], there: list[str]) -> str:
    if len(search) > EXCERPT_LIMIT_LINES:
        return ""
    old, new = ([clip(line) for line in each] for each in (search, there))
    found = list(difflib.unified_diff(old, new, "SEARCH", "the file", n=1, lineterm=""))[2:]
    if not found or len(found) > _DIFFERENCE_LIMIT_LINES:
        return ""
    return "\nSEARCH (-) differs from the file (+):\n" + "\n".join(found)


def _likely_start(lines: list[str], search: list[str]) -> int | None:
    places: dict[str, list[int]] = defaultdict(list)
    for index, line in enumerate(lines):
        places[line.strip()].append(index)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(search):
        hits = places.get(line.strip(), ()) if line.strip() else ()
        if len(hits) <= _COMMON_LINE_COUNT:
            votes.update(max(index - offset, 0) for index in hits)
    if votes:
        # The most votes; of equals the first in the file.
        return min(votes, key=lambda start: (-votes[start], start))
    wanted = max((line.strip()[:SHOWN_LINE_CHARACTERS] for line in search), key=len)
    offset = next(i for i, line in enumerate(search) if line.strip().startswith(wanted))
    stripped = [line.strip()[:SHOWN_LINE_CHARACTERS] for line in lines[:_FUZZY_LIMIT_LINES]]
    close = difflib.get_close_matches(wanted, set(stripped), n=1, cutoff=0.5)
    return max(stripped.index(close[0]) - offset, 0) if close else None


def _numbered(lines: list[str], start: int, end: int) -> str:
    """Show lines `start` to `end`, 1-based and inclusive; the middle of many is left out."""
    numbers = list(range(start, end + 1))
    width = len(str(end))
    draw: Callable[[int], str] = lambda n: f"{n:>{width}} | {clip(lines[n - 1])}"  # noqa: E731
    if len(numbers) <= EXCERPT_LIMIT_LINES:
        return "\n".join(map(draw, numbers))
    half = EXCERPT_LIMIT_LINES // 2
    left_out = f"{'…':>{width}} | ({len(numbers) - 2 * half} lines left out)"
    return "\n".join([*map(draw, numbers[:half]), left_out, *map(draw, numbers[-half:])])


def clip(line: str) -> str:
    # Stray bytes of the file can't be sent.
    line = without_halves(line)
    return line if len(line) <= SHOWN_LINE_CHARACTERS else f"{line[:SHOWN_LINE_CHARACTERS]}…"


def steps(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield how lines become others, as difflib tells it; but only in place where that would take long.

    Of lines that are not as many as before, all between equal ends are one step then.
    """
    head, tail = common_ends(old, new)
    ends = len(old) - tail, len(new) - tail
    yield "equal", 0, head, 0, head
    if (ends[0] - head) * (ends[1] - head) <= _COMPARED:
        compared = difflib.SequenceMatcher(None, old[head : ends[0]], new[head : ends[1]], autojunk=False)
        for kind, *at in compared.get_opcodes():
            yield kind, at[0] + head, at[1] + head, at[2] + head, at[3] + head
    elif len(old) != len(new):
        yield "replace", head, ends[0], head, ends[1]
    else:
        for is_equal, run in groupby(range(head, ends[0]), lambda at: old[at] == new[at]):
            first, end = (lines := [*run])[0], lines[-1] + 1
            yield "equal" if is_equal else "replace", first, end, first, end
    yield "equal", ends[0], len(old), ends[1], len(new)


def common_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """Return how many lines two lists share at the head, and of the rest at the tail."""
    most = min(len(old), len(new))
    head = next(compress(range(most), map(ne, old, new)), most)
    differ = map(ne, reversed(old), reversed(new))
    return head, next(compress(range(most - head), differ), most - head)
