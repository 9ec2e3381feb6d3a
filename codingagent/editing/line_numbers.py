"""Numbers that were copied with lines: those that requests show, and those of a code box."""

from collections.abc import Sequence

from codingagent.editing.characters import Ground
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import blanks

# As requests show the lines of a file.
OURS = lazy_pattern(r"[ \t]*(\d{1,9}) \|(?: |$)")
# Those of a code box, glued to its lines.
_GLUED = lazy_pattern(r"(\d+)(?![\d|│:→,]| [^ ])")
_CLOSELY = lazy_pattern(r"(\d+)(?:[^\W\d]|[\"'`<\\]|  |\t)")  # so few lines may begin with a value


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


def restore(new: Sequence[str], ground: Ground, *, is_program: bool) -> tuple[list[str] | None, bool]:
    """Return new lines without the numbers of a request; a line of the file with its number proves them.

    Without a proof None, and whether only some of them look like lines of the file with a number. The numbers
    of a code box may come before all of its lines, one to a line, or glued to them.
    """
    if not any(line.lstrip()[:1].isdigit() for line in new):
        return None, False
    known = ground.file.once("lines", frozenset)
    half, odd = divmod(len(new), 2)
    column, rest = [*map(str.strip, new[:half])], list(new[half:])
    is_meant = not is_program and known.isdisjoint(filter(None, rest))
    if half and not odd and column == [*map(str, range(1, half + 1))] and not is_meant:
        return (rest, False) if half > 3 else (None, True)
    pattern = _GLUED if len(new) > 3 else _CLOSELY
    glued = [int(found[1]) for line in new if (found := pattern.match(line))]
    if glued and any(glued == [*range(at, at + len(new))] for at in (1, ground.start + 1)):
        return None, True
    bare = list(map(without, new))
    cut = [each for each in zip(new, bare, strict=True) if each[1].strip() and each[0] != each[1]]
    if known.isdisjoint(line for _, line in cut) or ground.file.once(
        OURS, lambda lines: any(map(OURS.match, lines))
    ):
        return None, False
    ours = [(int(found[1]), line) for each, line in cut if (found := OURS.match(each))]
    is_proven = any(at and ground.lines[at - 1 : at] == [line] for at, line in ours)
    if is_proven and levels_are_known(ground.replaced, new, new):
        return bare, False
    return None, len(cut) < sum(1 for line in bare if line.strip())
