"""Blank lines that a chat has doubled; how the file has them proves it.

How it works. All blank lines of a body are in twos, or no line of the answer has a single one; and in
the file so many of them are rare before a line of the same sort, or the lines replaced had half of them.
"""

from collections.abc import Sequence
from itertools import pairwise

from codingagent.editing import file_kinds, indentation
from codingagent.editing.characters import Ground
from codingagent.model.patterns import lazy_pattern

_FEWEST = 3
_RARELY = 0.1
_DEFINITION = lazy_pattern(r"def |class |@|async |if |#")


def halved(lines: Sequence[str]) -> list[str] | None:
    """Return lines with half of the blank ones where several follow one another; None if one does not."""
    out: list[str] = []
    count = 0
    for line in (*lines, None):
        if line is not None and not line.strip():
            count += 1
            continue
        if count % 2:
            return None
        out += [""] * (count // 2)
        count = 0
        if line is not None:
            out.append(line)
    return out


def is_in_twos(lines: Sequence[str], *, is_go: bool) -> bool:
    """Return whether blank lines are in twos, one such pair within a level, or in fours."""
    runs = "".join(
        "x" if not line.strip() else "a" if line[:1].isspace() else "b" for line in lines
    )
    is_odd = "xxxx" in runs or "xxa" in runs or (is_go and runs.count("xx") > 1)
    return is_odd and halved(lines) is not None


def gaps(lines: Sequence[str]) -> dict[tuple[str, str], int]:
    """Return how many blank lines are between any two that follow one another."""
    found: dict[tuple[str, str], int] = {}
    before, count = "", 0
    for line in lines:
        if not line.strip():
            count += 1
            continue
        if before:
            pair = (before, line)
            found[pair] = count if found.get(pair, count) == count else -1
        before, count = line, 0
    return {pair: count for pair, count in found.items() if count >= 0}


def are_as_in(there: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether lines that a file has, too, are as far apart there, some of them not adjacent.

    With one more blank line after each they would be three apart: no text is written so.
    """
    was, now = gaps(there), gaps(new)
    shared = was.keys() & now.keys()
    return any(was[pair] for pair in shared) and all(was[pair] == now[pair] for pair in shared)


def is_spaced_out(spaced: Sequence[str], new: Sequence[str], ground: Ground) -> bool:
    """Return whether a blank line after each line is no text that is meant."""
    words = [line for line in spaced if line.strip()]
    if len(words) < 2:
        return False
    is_program = file_kinds.is_program(ground.path)
    # Blank lines of the text itself that were doubled with the rest; a new one may end with some.
    text = "\n".join(map(str.strip, spaced))
    if "\n\n" in text.strip("\n") or (ground.lines and len(words) < len(spaced)):
        return is_program or bool(ground.lines) or len(words) > 2
    there = gaps(ground.lines)
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
    if (
        not spaced
        or "" in new
        or file_kinds.ending(ground.path) in ("csv", "tsv", "log", "diff", "patch")
    ):
        return None
    text = ground.text_among(new) if file_kinds.is_code(ground.path) else frozenset[int]()
    there = [line for line in ground.lines if not line.strip(" \t")]
    if not there or any(there) or spaced <= text:
        return None
    return ["" if i in spaced else line for i, line in enumerate(new)]


def every_second(lines: list[str]) -> list[str] | None:
    """Return lines without the blank one after each, or before each."""
    for start in (1, 0):
        if len(lines) > 2 and not any(line.strip() for line in lines[start::2]):
            return lines[1 - start :: 2]
    return None


def are_doubled(new: Sequence[str], ground: Ground) -> bool:
    """Return whether all blank lines of a part are in twos, as they hardly ever are in the file."""
    if len(ground.replaced) == len(ground.lines) or halved(new) is None:
        return False
    if is_part(new, ground.replaced):
        return False
    after = ground.lines[ground.end :][:1]
    runs = _runs([*new, *after], ground.path)
    was = _runs([*ground.replaced, *after], ground.path) if runs else []
    there = _runs(ground.lines, ground.path) if runs else []
    for count, sort, _ in (run for run in runs if run not in was):
        counts = [each for each, other, _ in there if other == sort]
        as_many = sum(each >= count for each in counts)
        if len(counts) >= _FEWEST and as_many <= _RARELY * len(counts):
            return True
    if file_kinds.is_python(ground.path) or not any(map(str.strip, new)):
        return False
    old = ground.replaced
    return any(_lead(b) == 2 * _lead(a) > 0 for a, b in ((old, new), (old[::-1], new[::-1])))


def are_lost(new: Sequence[str], old: Sequence[str], shared: Sequence[tuple[int, int]]) -> bool:
    """Return whether blank lines are gone, by the counts before and now, and not they alone."""
    lost = [was for was, now in shared if was and not now]
    if not lost or "" in new or list(new) == [*filter(None, old)]:
        return False
    return len(lost) == sum(1 for was, _ in shared if was)


def is_part(new: Sequence[str], old: Sequence[str]) -> bool:
    """Return whether new lines are old ones in their order: then an edit only removes lines."""
    rest = iter(old)
    return all(line in rest for line in new)


def _lead(lines: Sequence[str]) -> int:
    return next((index for index, line in enumerate(lines) if line.strip()), 0)


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
