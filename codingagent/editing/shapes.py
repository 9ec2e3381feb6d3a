"""What a chat may have put round or between all lines of an edit: fences, numbers, marks, blank lines."""

from collections.abc import Callable, Iterator, Sequence

from codingagent.editing import blank_lines
from codingagent.editing.places import Sought
from codingagent.model import citations
from codingagent.model.patterns import lazy_pattern
from codingagent.model.rule import Rule

_FENCE = lazy_pattern(r"[ \t]*(?:`{3,}|~{3,})[ \t]*[\w+#.-]*[ \t]*")
_NUMBER = lazy_pattern(r"[ \t]*(\d+)[ \t]?(?:\||│|:|→|\t)")


def shapes(sought: Sought) -> Iterator[tuple[str, Sought]]:
    """Yield the edit as it came, and without what may have been copied along on each of its lines."""
    yield "", sought
    for rule in RULES:
        strip = rule.run
        search = strip(sought.search, "-")
        if search is None or not search:
            continue
        new = strip(sought.replace, "+")
        if new is None:
            new = sought.replace
            if strip in _BOTH:
                continue  # it came as SEARCH did, so it has the same
            if strip is _unmarked and any(line[:1] in ("-", " ") for line in new):
                continue
            if strip in (_unnumbered, _unnumbered_closely) and (
                any(map(_NUMBER.match, new)) or all(line[:1].isspace() for line in sought.search)
            ):
                continue  # some have a number; or all were indented, and no one knows by how much
        yield (
            rule.said,
            Sought(search, new, sought.label, sought.way, is_verbatim=sought.is_verbatim),
        )


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
    if not lines or not all(found):
        return None
    return tuple(line[each.end() :] for line, each in zip(lines, found, strict=True) if each)


def _unmarked(lines: Sequence[str], mark: str) -> tuple[str, ...] | None:
    if not any(line.startswith(mark) for line in lines):
        return None if lines else ()
    if any(line and line[0] not in (mark, " ") for line in lines):
        return None
    return tuple(line[1:] for line in lines)


def _added(lines: Sequence[str], _: str) -> tuple[str, ...] | None:
    if not all(line.startswith("+") for line in lines):
        return None
    return tuple(line[1:] for line in lines)


def _unspaced(lines: Sequence[str], side: str) -> tuple[str, ...] | None:
    """Return the lines without the blank one after each, and after the marker before them if it is there."""
    after_marker = len(lines) % 2
    if any(line.strip() for line in lines[1 - after_marker :: 2]):
        return None
    bare = tuple(lines[after_marker::2])
    # One line with a blank one after it is often written so.
    return bare if side == "+" or sum(map(bool, map(str.strip, bare))) > 1 else None


def _halved(lines: Sequence[str], side: str) -> tuple[str, ...] | None:
    halved = blank_lines.halved(lines)
    # Before a definition many a chat writes two where the file has one.
    proof = _PAIR.search("\n".join(lines).strip("\n")) if side == "-" else lines
    return None if halved is None or proof is None else tuple(halved)


_PAIR = lazy_pattern(r"\n\n\n(?!(?:def|class|async|@)\b)")
_BOTH = (_added, _unspaced, _halved)

RULES: tuple[Rule[Callable[[Sequence[str], str], tuple[str, ...] | None]], ...] = (
    Rule(
        "code fences in an edit",
        "a code fence round SEARCH",
        "SEARCH fits without it",
        "takes it off SEARCH and REPLACE",
        "without the code fences in it",
        _unfenced,
    ),
    Rule(
        "citation marks in an edit",
        "a line that is only the citation marks of a chat",
        "SEARCH fits without it",
        "takes it out",
        "without the chat's citation marks",
        _uncited,
    ),
    Rule(
        "line numbers in an edit",
        "a number, a mark and a blank before each line",
        "SEARCH fits without them, and REPLACE has them on all lines or on none",
        "takes them off",
        "without the line numbers copied along",
        _unnumbered,
    ),
    Rule(
        "line numbers, closely",
        "a number and a mark before each line, without a blank",
        "the same",
        "takes them off",
        "without the line numbers copied along",
        _unnumbered_closely,
    ),
    Rule(
        "marks of a diff in an edit",
        "`-` before lines of SEARCH, `+` before those of REPLACE",
        "SEARCH fits without them",
        "takes them off",
        "without the marks of a diff",
        _unmarked,
    ),
    Rule(
        "marks of new lines in an edit",
        "`+` before all lines of SEARCH and REPLACE",
        "SEARCH fits without them",
        "takes them off",
        "without the + of a diff before each line",
        _added,
    ),
    Rule(
        "blank lines between the lines of an edit",
        "a blank line after each line of SEARCH and REPLACE, two at least",
        "SEARCH fits without them",
        "takes them out",
        "without the blank line after each line",
        _unspaced,
    ),
    Rule(
        "blank lines of an edit in twos",
        "all blank lines of SEARCH and REPLACE in twos",
        "SEARCH fits with half of them, and not only before a definition",
        "takes half of them out",
        "without every second blank line",
        _halved,
    ),
)
