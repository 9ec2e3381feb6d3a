"""What may have been copied along on each line of an edit: fences, line numbers, the marks of a diff."""

import re
from collections.abc import Callable, Iterator, Sequence

from codingagent.editing.places import Sought
from codingagent.model.rule import Rule

_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*[\w+#.-]*[ \t]*")
_NUMBER = re.compile(r"[ \t]*(\d+)[ \t]?(?:\||│|:|→|\t)")


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
)
