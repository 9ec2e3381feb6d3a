"""Blank lines that a chat has doubled; how the file has them proves it.

How it works. All blank lines of a body are in twos, or no line of the answer has a single one; and in
the file so many of them are rare before a line of the same sort, or the lines replaced had half of them.
"""

from collections.abc import Sequence
from functools import partial
from itertools import groupby, pairwise

from codingagent.editing import file_kinds, indentation
from codingagent.editing.characters import Ground, refusal
from codingagent.model.chat_damage import Arrival, Kept
from codingagent.model.patterns import lazy_pattern

_FEWEST = 3
_RARELY = 0.1
_DEFINITION = lazy_pattern(r"def |class |@|async |if |#")


def without_spacing(lines: list[str], ground: Ground, arrival: Arrival) -> list[str] | None:
    """Return a body of an answer that has a blank line after each line, its tags too, without those."""
    if not arrival.is_spaced or any(map(str.strip, lines[::2])):
        return None
    bare = lines[1::2]
    if file_kinds.is_prose(ground.path):
        # Lines that the file has, too, and as far apart, some of them not adjacent: with one more blank
        # line after each they would be three apart, and no text is written so.
        was, now = ground.file.once(_gaps, _gaps), _gaps(bare)
        shared = was.keys() & now.keys()
        if not any(was[pair] for pair in shared) or any(was[pair] != now[pair] for pair in shared):
            raise refusal("a blank line follows each line, including the tags", arrival)
    return bare


def undoubled(lines: list[str], ground: Ground, arrival: Arrival) -> list[str] | None:
    """Return lines without the blank ones that were put after each, or doubled; None if there are none.

    Refuse lines of which some may be meant so, and those that have lost blank ones.
    """
    old = list(ground.replaced)
    # Without the blank line after each, or before each.
    halves = [lines[1 - at :: 2] for at in (1, 0) if not any(map(str.strip, lines[at::2]))]
    spaced = halves[0] if halves and len(lines) > 2 else None
    if spaced == old:
        return None  # all that the edit does is to put them there
    if spaced is not None and _is_spaced_out(spaced, lines, ground):
        if len(list(filter(None, spaced))) < 3:
            raise refusal("a blank line follows each of its two lines", arrival)
        return spaced
    if "" not in lines and "" not in old:
        return None
    pairs, now = _gaps(old), _gaps(lines)
    shared = [(pairs[key], now[key]) for key in now.keys() & pairs.keys()]
    for undone, more in ((spaced, 1), (_halved(lines), 0)):
        if undone is None or all(was == is_ for was, is_ in shared):
            continue
        if all(is_ == 2 * was + more for was, is_ in shared):
            if more and len(undone) < 3:
                raise refusal("a blank line follows each of its two lines", arrival)
            return None if undone == old else undone
    lost = [now == 0 for was, now in shared if was]
    if lost and all(lost) and "" not in lines and lines != list(filter(None, old)):
        raise refusal("the blank lines between lines of the file are gone", arrival)
    if Kept.LINES not in arrival.kept and _are_doubled(lines, ground):
        raise refusal("blank lines are doubled, where the file has single ones", arrival)
    if not ground.lines and file_kinds.is_code(ground.path) and _halved(lines) is not None:
        runs = "".join("x" if not line.strip() else "a" if line[0].isspace() else "b" for line in lines)
        # In twos within a level, or in fours.
        if "xxxx" in runs or "xxa" in runs or (ground.path.endswith(".go") and runs.count("xx") > 1):
            raise refusal("blank lines are doubled", arrival)
    return None


def _halved(lines: Sequence[str]) -> list[str] | None:
    """Return lines with half of the blank ones where several follow one another; None if one does not."""
    out: list[str] = []
    for is_blank, run in groupby(lines, lambda line: not line.strip()):
        found = list(run)
        if is_blank and len(found) % 2:
            return None
        out += [""] * (len(found) // 2) if is_blank else found
    return out


def _gaps(lines: Sequence[str]) -> dict[tuple[str, str], int]:
    """Return how many blank lines are between any two that follow one another, if always as many."""
    found: dict[tuple[str, str], int] = {}
    words = [index for index, line in enumerate(lines) if line.strip()]
    for at, after in pairwise(words):
        pair, count = (lines[at], lines[after]), after - at - 1
        found[pair] = count if found.get(pair, count) == count else -1
    return {pair: count for pair, count in found.items() if count >= 0}


def _is_spaced_out(spaced: Sequence[str], new: Sequence[str], ground: Ground) -> bool:
    """Return whether a blank line after each line is no text that is meant."""
    words = [line for line in spaced if line.strip()]
    if len(words) < 2:
        return False
    is_program = file_kinds.is_program(ground.path)
    # Blank lines of the text itself that were doubled with the rest; a new one may end with some.
    text = "\n".join(map(str.strip, spaced))
    if "\n\n" in text.strip("\n") or (ground.lines and len(words) < len(spaced)):
        return is_program or bool(ground.lines) or len(words) > 2
    there = ground.file.once(_gaps, _gaps)
    if any(a in words and not b.strip() for a, b in pairwise(ground.replaced)):
        return False  # in its own place such a line would have two more behind it
    is_airy = 2 * sum(map(bool, there.values())) > len(there)
    if not is_program or new[-1].strip() or is_airy:
        return False
    has_levels = any(line[:1].isspace() for line in words) or any(map(indentation.is_opener, words))
    return has_levels and (bool(there) or len(words) >= 8)


def bare(new: Sequence[str], ground: Ground) -> list[str] | None:
    """Return lines with nothing in the blank ones; None if they may be meant as they are.

    The blank lines of the file show it, unless others of these have none. In a string they may be meant.
    """
    spaced = {i for i, line in enumerate(new) if line and not line.strip(" \t")}
    if not spaced or "" in new or file_kinds.ending(ground.path) in ("csv", "tsv", "log", "diff", "patch"):
        return None
    text = ground.text_among(new) if file_kinds.is_code(ground.path) else frozenset[int]()
    there = ground.file.once("blank", lambda lines: {x for x in lines if not x.strip(" \t")})
    if there != {""} or spaced <= text:
        return None
    return ["" if i in spaced else line for i, line in enumerate(new)]


def _are_doubled(new: Sequence[str], ground: Ground) -> bool:
    """Return whether all blank lines of a part are in twos, as they hardly ever are in the file."""
    if len(ground.replaced) == len(ground.lines) or _halved(new) is None:
        return False
    rest = iter(ground.replaced)
    if all(line in rest for line in new):
        return False  # the edit only removes lines
    after = ground.lines[ground.end :][:1]
    runs = _runs([*new, *after], ground.path)
    was = _runs([*ground.replaced, *after], ground.path) if runs else []
    there = ground.file.once(_runs, partial(_runs, path=ground.path)) if runs else []
    for count, sort, _ in (run for run in runs if run not in was):
        counts = [each for each, other, _ in there if other == sort]
        as_many = sum(each >= count for each in counts)
        if len(counts) >= _FEWEST and as_many <= _RARELY * len(counts):
            return True
    if file_kinds.is_python(ground.path) or not any(map(str.strip, new)):
        return False

    def lead(lines: Sequence[str]) -> int:
        return next((index for index, line in enumerate(lines) if line.strip()), 0)

    old = ground.replaced
    return any(lead(b) == 2 * lead(a) > 0 for a, b in ((old, new), (old[::-1], new[::-1])))


def _runs(lines: Sequence[str], path: str) -> list[tuple[int, str, str]]:
    """Return how many blank lines follow one another each time, before what sort of line, and which."""
    found: list[tuple[int, str, str]] = []
    count = 0
    for line in lines:
        if not line.strip():
            count += 1
            continue
        if count:
            # A function of Python begins after two.
            is_free = file_kinds.is_python(path) and _DEFINITION.match(line) is not None
            sort = "indented" if line[0].isspace() else "definition" if is_free else "margin"
            found.append((count, sort, line))
        count = 0
    return found
