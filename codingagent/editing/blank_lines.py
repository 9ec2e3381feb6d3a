"""Blank lines that a chat has put between all lines, doubled or lost: the lines of the file prove it."""

from collections.abc import Sequence
from functools import partial
from itertools import groupby, pairwise

from codingagent.editing import file_kinds
from codingagent.editing.characters import ReplacedLines
from codingagent.model.patterns import lazy_pattern

_FEWEST = 3
# A function of Python begins after two.
_PART = lazy_pattern(r"def |class |@|async |if |#")


def fault_in(lines: list[str], ground: ReplacedLines, *, is_spaced: bool) -> str:
    """Return what is wrong with the blank lines of a body; empty: nothing is.

    `is_spaced` means that a blank line follows each line of the answer, its tags too.
    """
    old = list(ground.replaced)
    if lines and all(map(str.strip, lines)) and all(map(str.strip, old)):
        return ""
    if is_spaced and not any(map(str.strip, lines[::2])) and lines[1::2] != old:
        return "a blank line follows each line, including the tags"
    was, now = _gaps(old), _gaps(lines)
    shared = [(was[key], now[key]) for key in now.keys() & was.keys()]
    if all(after == before for before, after in shared):
        return ""
    if any(all(after == 2 * before + more for before, after in shared) for more in (0, 1)):
        return "" if [*filter(None, lines)] == [*filter(None, old)] else "blank lines are doubled"
    lost = [not after for before, after in shared if before]
    if lost and all(lost) and "" not in lines and lines != [*filter(None, old)]:
        return "the blank lines between lines of the file are gone"
    return ""


def are_doubled(new: Sequence[str], ground: ReplacedLines) -> bool:
    """Return whether all blank lines of a part are in twos, and those of the file before such lines never."""
    now = [] if all(map(str.strip, new)) else _runs(new, ground.path)
    if not now or any(count % 2 for count, _ in now):
        return False
    was = _runs(ground.replaced, ground.path)
    fresh = [run for run in now if run not in was]
    there = ground.lines.once(_runs, partial(_runs, path=ground.path)) if fresh else []
    counts = [[each for each, other in there if other == sort] for _, sort in fresh]
    return any(len(c) >= _FEWEST and max(c) < run[0] for run, c in zip(fresh, counts, strict=True))


def _runs(lines: Sequence[str], path: str) -> list[tuple[int, str]]:
    """Return how many blank lines are before a line each time, and what sort of line that is."""
    runs = [(is_blank, list(run)) for is_blank, run in groupby(lines, lambda line: not line.strip())]
    before = [(len(run), line) for (is_blank, run), (_, (line, *_)) in pairwise(runs) if is_blank]
    is_python = file_kinds.is_python(path)

    def sort(line: str) -> str:
        return "indented" if line[0].isspace() else "part" if is_python and _PART.match(line) else "margin"

    return [(count, sort(line)) for count, line in before]


def _gaps(lines: Sequence[str]) -> dict[tuple[str, str], int]:
    """Return how many blank lines are between any two that follow one another, if always as many."""
    found: dict[tuple[str, str], int] = {}
    words = [index for index, line in enumerate(lines) if line.strip()]
    for at, after in pairwise(words):
        pair, count = (lines[at], lines[after]), after - at - 1
        found[pair] = count if found.get(pair, count) == count else -1
    return {pair: count for pair, count in found.items() if count >= 0}


def bare(new: Sequence[str], ground: ReplacedLines) -> list[str] | None:
    """Return lines with nothing in the blank ones; None if they may be meant as they are.

    The blank lines of the file show it, unless others of these have none. In a string they may be meant.
    """
    spaced = {i for i, line in enumerate(new) if line and not line.strip(" \t")}
    if not spaced or "" in new or file_kinds.ending(ground.path) in ("csv", "tsv", "log", "diff", "patch"):
        return None
    text = ground.text_among(new) if file_kinds.is_code(ground.path) else frozenset[int]()
    there = ground.lines.once("blank", lambda lines: {x for x in lines if not x.strip(" \t")})
    if there != {""} or spaced <= text:
        return None
    return ["" if i in spaced else line for i, line in enumerate(new)]
