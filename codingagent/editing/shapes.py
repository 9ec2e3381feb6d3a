"""What a chat may have put round or between all lines of an edit: fences, numbers, marks, blank lines."""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from codingagent.editing.characters import Ground
from codingagent.editing.places import Sought
from codingagent.model import citations
from codingagent.model.chat_damage import Rule
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import blanks

_FENCE = lazy_pattern(r"[ \t]*(?:`{3,}|~{3,})[ \t]*[\w+#.-]*[ \t]*")
# As requests show the lines of a file.
OURS = lazy_pattern(r"[ \t]*(\d{1,9}) \|(?: |$)")
_NUMBER = lazy_pattern(r"[ \t]*(\d+)[ \t]?(?:\||│|:|→|\t)")


def shapes(sought: Sought) -> Iterator[tuple[str, Sought]]:
    """Yield the edit as it came, and without what may have been copied along on each of its lines."""
    yield "", sought
    for rule in RULES:
        strip = rule.run
        if not (search := strip(sought.search, "-")):
            continue
        new = strip(sought.replace, "+")
        if new is None:
            new = sought.replace
            if strip in _BOTH:
                continue  # it came as SEARCH did, so it has the same
            if strip is _unmarked and any(line[:1] in ("-", " ") for line in new):
                continue
            if strip in (_unnumbered, _unnumbered_closely):
                if any(map(OURS.match, new)) and any(map(OURS.match, {*new} & {*sought.search})):
                    new = tuple(map(without_number, new))
                is_level = levels_are_known(search, sought.replace, sought.search)
                if not is_level or any(map(_NUMBER.match, new)):
                    continue
        bare = replace(sought, search=search, replace=new)
        yield rule.said, bare


def without_number(line: str) -> str:
    """Return a line without the number that requests show before it, if it has one."""
    found = OURS.match(line)
    return line[found.end() :] if found else line


def levels_are_known(old: Sequence[str], new: Sequence[str], numbered: Sequence[str]) -> bool:
    """Return whether new lines without a number are as deep as was meant, where others have one.

    Blanks before all numbers may be those of a request, or all lines were indented by as many. `old` are
    the lines that are replaced, `numbered` the lines that came, of which some have numbers.
    """
    kept = [line for line in new if line.strip() and not _NUMBER.match(line)]
    if not kept or not all(line[:1].isspace() for line in numbered if _NUMBER.match(line)):
        return True
    bare = {*map(without_number, new)}
    gone = [blanks(line) for line in old if line.strip() and line not in bare]
    is_alike = [blanks(line) for line in (kept[0], kept[-1])] == [*gone[:1], *gone[-1:]]
    return is_alike or not {*old}.isdisjoint(kept) or not all(map(blanks, kept))


# Those of a code box, glued to its lines.
_GLUED = lazy_pattern(r"(\d+)(?![\d|│:→,]| [^ ])")
_CLOSELY = lazy_pattern(r"(\d+)(?:[^\W\d]|[\"'`<\\]|  |\t)")  # so few lines may begin with a value


def without_numbers(new: Sequence[str], ground: Ground, *, is_program: bool) -> tuple[list[str] | None, bool]:
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
    bare = list(map(without_number, new))
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


def _unfenced(lines: Sequence[str], _: str) -> tuple[str, ...] | None:
    if len(lines) > 2 and _FENCE.fullmatch(lines[0]) and _FENCE.fullmatch(lines[-1]):
        return tuple(lines[1:-1])
    return None


def _uncited(lines: Sequence[str], _: str) -> tuple[str, ...] | None:
    bare = tuple(line for line in lines if citations.without(line).strip() or not line.strip())
    return None if len(bare) == len(lines) else bare


def _unnumbered(lines: Sequence[str], _: str) -> tuple[str, ...] | None:
    bare = _unnumbered_closely(lines, "")
    if bare is None or not all(line.startswith(" ") for line in bare if line.strip()):
        return None
    return tuple(line.removeprefix(" ") for line in bare)


def _unnumbered_closely(lines: Sequence[str], _: str) -> tuple[str, ...] | None:
    found = [_NUMBER.match(line) for line in lines]
    if not any(found) or any(line.strip() and not m for line, m in zip(lines, found, strict=True)):
        return None
    return tuple(line[m.end() :] if m else line for line, m in zip(lines, found, strict=True))


def _unmarked(lines: Sequence[str], mark: str) -> tuple[str, ...] | None:
    if not any(line.startswith(mark) for line in lines):
        return None if lines else ()
    if any(line and line[0] not in (mark, " ") for line in lines):
        return None
    return tuple(line[1:] for line in lines)


def _added(lines: Sequence[str], _: str) -> tuple[str, ...] | None:
    is_added = all(line.startswith("+") for line in lines)
    return tuple(line[1:] for line in lines) if is_added else None


def _unspaced(lines: Sequence[str], side: str) -> tuple[str, ...] | None:
    """Return the lines without the blank one after each, and after the marker before them if it is there."""
    after_marker = len(lines) % 2
    if any(line.strip() for line in lines[1 - after_marker :: 2]):
        return None
    bare = tuple(lines[after_marker::2])
    # One line with a blank one after it is often written so.
    return bare if side == "+" or sum(map(bool, map(str.strip, bare))) > 1 else None


_BOTH = (_added, _unspaced)

RULES: tuple[Rule[Callable[[Sequence[str], str], tuple[str, ...] | None]], ...] = (
    Rule("code fences in an edit", "without the code fences in it", _unfenced),
    Rule("citation marks in an edit", "without the chat's citation marks", _uncited),
    Rule("line numbers in an edit", "without the copied line numbers", _unnumbered),
    Rule("line numbers, closely", "without the copied line numbers", _unnumbered_closely),
    Rule("marks of a diff in an edit", "without the marks of a diff", _unmarked),
    Rule("marks of new lines in an edit", "without the + of a diff before each line", _added),
    Rule(
        "blank lines between the lines of an edit",
        "without the blank line after each line",
        _unspaced,
    ),
)
