"""Numbers that were copied with lines: those that requests show, and those of a code box."""

from collections.abc import Sequence

from codingagent.editing import file_kinds
from codingagent.editing.characters import ReplacedLines
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import blanks

# As requests show the lines of a file.
OURS = lazy_pattern(r"[ \t]*(\d{1,9}) \|(?: |$)")
# As a code box shows them, with a mark or glued to its lines.
_ANY = lazy_pattern(r"[ \t]*(\d{1,9})(:(?!$)|[^,.\d]|$)")
_FREE = frozenset(("csv", "tsv", "log"))


def without(line: str) -> str:
    """Return a line without the number that requests show before it, if it has one."""
    found = OURS.match(line)
    return line[found.end() :] if found else line


def levels_are_known(old: Sequence[str], new: Sequence[str], numbered: Sequence[str]) -> bool:
    """Return whether new lines without a number are as deep as was meant, where others have one.

    Blanks before all numbers may be those of a request, or all lines were indented by as many. `old` are
    the lines that are replaced, `numbered` the lines that came, of which some have numbers.
    """
    kept = [line for line in new if line.strip() and not OURS.match(line)]
    if not kept or not all(line[:1].isspace() for line in numbered if OURS.match(line)):
        return True
    bare = {*map(without, new)}
    gone = [blanks(line) for line in old if line.strip() and line not in bare]
    is_alike = [blanks(line) for line in (kept[0], kept[-1])] == [*gone[:1], *gone[-1:]]
    return is_alike or not {*old}.isdisjoint(kept) or not all(map(blanks, kept))


def undone(new: Sequence[str], ground: ReplacedLines) -> list[str] | None:
    """Return lines without the numbers of a request, if one is that of its line in the file; else None."""
    found = [(OURS.match(line), without(line)) for line in new]
    is_proven = any(
        number and bare.strip() and ground.lines[(at := max(int(number[1]) - 1, 0)) : at + 1] == [bare]
        for number, bare in found
    )
    is_known = is_proven and levels_are_known(ground.replaced, new, new)
    return [bare for _, bare in found] if is_known and not _has_ours(ground) else None


def _has_ours(ground: ReplacedLines) -> bool:
    return ground.lines.once(OURS, lambda lines: any(map(OURS.match, lines)))


def fault_in(new: Sequence[str], ground: ReplacedLines) -> str:
    """Return what shows that lines came with their numbers; empty: nothing does.

    The numbers of a code box may come before all of its lines, one to a line.
    """
    if file_kinds.ending(ground.path) in _FREE or _has_ours(ground):
        return ""
    known = ground.lines.once("lines", frozenset) - {""}
    if any(OURS.match(line) and without(line) in known for line in new):
        return "some of its lines begin with a number"
    is_program, half = file_kinds.is_program(ground.path), len(new) // 2
    column = [*map(str.strip, new[:half])]
    if (
        half
        and column == [*map(str, range(1, half + 1))]
        and (is_program or not known.isdisjoint(new[half:]))
    ):
        return "it begins with the numbers of its lines"
    found = [_ANY.match(line) for line in new]
    numbers = [int(each[1]) for each in found if each]
    is_ours, start = all(map(OURS.match, new)), numbers[0] if numbers else 0
    if numbers != [*range(start, start + len(new))]:
        return "its lines begin with numbers, not consecutive ones" if is_program and is_ours else ""
    if ground.parses_with(new) or any(map(_ANY.match, ground.replaced)):
        return ""
    bare = [line[each.end(1) :].lstrip("|│:→\t ") for line, each in zip(new, found, strict=True) if each]
    is_proven = not {line.strip() for line in known}.isdisjoint(filter(None, bare))
    # Numbers with a colon may be the keys of a mapping.
    is_key = file_kinds.ending(ground.path) in ("yml", "yaml") and all(
        each[2] == ":" for each in found if each
    )
    is_odd = (is_program and not is_key) or is_ours
    is_sure = is_proven or (is_odd and (len(new) > 1 or (is_ours and start == ground.start + 1)))
    return "each of its lines begins with its number" if is_sure else ""
