"""Find the one place that a SEARCH means, and the lines that REPLACE puts there.

A search is tried exactly, then up to trailing blanks, then up to one constant indentation (`places`). If
all of that fails, damage that chats do is undone in it (`derive`), then lines that replace others are
looked for, and last a change that is there already.
"""

from collections.abc import Callable
from itertools import pairwise

from codingagent.editing.derive import (
    as_the_others,
    check_flush,
    check_new_lines,
    mended,
    without_citations,
)
from codingagent.editing.elisions import is_elision
from codingagent.editing.indentation import is_alike
from codingagent.editing.nearest import clip, common_ends, nearest
from codingagent.editing.places import AS_IT_CAME, Found, Sought, only, positions, up_to_indentation
from codingagent.errors import OperationError
from codingagent.model.rule import Rule

_APPLIED_FEWEST_CHARACTERS = 16


def find(lines: list[str], sought: Sought) -> Found:
    """Return the one place where a search is meant to be.

    Raises:
        OperationError: if there is none or more than one, or if REPLACE may have been damaged in a way
            that can't be proven; the detail shows the nearest lines and how they differ.
    """
    search = list(sought.search)
    if not search:
        raise OperationError(f"{sought.label} is empty; give the lines whose place REPLACE takes")
    for rule in AS_IT_CAME:
        if places := rule.run(lines, search):
            place = only(lines, sought.label, places)
            sought, note = without_citations(lines, sought)
            if not sought.is_literal and (found := as_the_others(lines, sought, place)) is not None:
                return found
            new, same = place.new(sought.replace), common_ends(search, sought.replace)
            if rule.run is up_to_indentation and not sought.is_verbatim:
                check_flush(sought, place, lines)
            check_new_lines(lines, sought, new, (place.start, place.start + place.count))
            note = ", ".join(filter(None, (place.note, note)))
            return Found(place.start, place.count, new, same, note)
    for way_out in RULES:
        if (fitting := way_out.run(lines, sought)) is not None:
            return fitting
    raise OperationError(
        f"{sought.label} was not found; write its lines letter by letter as they are in the file",
        detail=nearest(lines, search),
    )


def _elided(lines: list[str], sought: Sought) -> Found | None:
    """Resolve lines that replace others, if each fits one place and REPLACE keeps it; else refuse."""
    search = list(sought.search)
    dots = [i for i in range(len(search)) if is_elision(search, i)]
    if not dots:
        return None
    kept = [i for i in range(len(sought.replace)) if is_elision(sought.replace, i)]
    refusal = OperationError(
        f"{sought.label} has the line '{clip(search[dots[0]].strip())}' in place of others, and it can't be"
        " told which; write all lines, or only those that change with enough around them",
        detail=nearest(lines, search),
    )
    parts = _parts(search, dots)
    same = [sought.replace[i].strip() for i in kept] == [search[i].strip() for i in dots]
    if not same or not all(parts):
        raise refusal
    starts = [positions(lines, part) for part in parts]
    if any(len(each) != 1 for each in starts):
        raise refusal
    spans = [(each[0], each[0] + len(part)) for each, part in zip(starts, parts, strict=True)]
    between = [(end, start) for (_, end), (start, _) in pairwise(spans)]
    if any(end > start for end, start in between):
        raise refusal
    gaps = [lines[end:start] for end, start in between]
    first, last = spans[0][0], spans[-1][1]
    new: list[str] = []
    for index, line in enumerate(sought.replace):
        new += gaps[kept.index(index)] if index in kept else [line]
    there, left_out = lines[first:last], clip(search[dots[0]].strip())
    note = f"fitted with {sum(map(len, gaps))} lines of the file for '{left_out}'"
    return Found(first, last - first, tuple(new), common_ends(there, new), note)


def _parts(lines: list[str], cuts: list[int]) -> list[list[str]]:
    starts = [0, *(cut + 1 for cut in cuts)]
    return [lines[start:end] for start, end in zip(starts, [*cuts, len(lines)], strict=True)]


def _applied(lines: list[str], sought: Sought) -> Found | None:
    """Return the place where REPLACE is already, if what is there can't be there by chance.

    SEARCH is nowhere, REPLACE is once, and it is more than a line that any file may have: at
    least two lines, or one that is much like the one it was to replace.
    """
    words = [line for line in sought.replace if line.strip()]
    if sum(len(line.strip()) for line in words) < _APPLIED_FEWEST_CHARACTERS:
        return None
    if len(words) == 1:
        before = [line for line in sought.search if line.strip()]
        if len(before) != 1 or not is_alike(before[0], words[0]):
            return None
    gone = [line for line in sought.search if line.strip() and line not in sought.replace]
    there = {line.strip() for line in lines}
    if not gone or any(line.strip() in there for line in gone):
        return None
    starts = positions(lines, list(sought.replace))
    if len(starts) != 1:
        return None
    count = len(sought.replace)
    note = f"was not found, but REPLACE is at line {starts[0] + 1} already: nothing was to be done"
    return Found(starts[0], count, sought.replace, (count, 0), note)


# What is tried after the search has not fitted as it came.
RULES: tuple[Rule[Callable[[list[str], Sought], Found | None]], ...] = (
    Rule("damage undone",
         "lines of the file after the damage of a chat is undone (`characters`), or a shape is taken off",
         "it fits only then, at one place, and all repairs that fit come to the same text",
         "undoes it in REPLACE, too; asks again where a new line may be meant as it came",
         "fitted after undoing {damage}", mended),
    Rule("elision", "a line such as `# ... existing code ...` between lines of the file",
         "each part fits one place, in order, and REPLACE has the same such lines",
         "keeps the lines of the file that it replaces", "fitted with {count} lines of the file for '{line}'",
         _elided),
    Rule("applied already", "REPLACE is in the file, and SEARCH is not",
         "it is there once, with several lines or one much like SEARCH", "changes nothing",
         "was not found, but REPLACE is at line {line} already: nothing was to be done", _applied),
)  # fmt: skip
