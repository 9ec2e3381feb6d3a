"""Cut a file into blocks: definitions, methods, sections of a text, keys of data.

By indentation and expression, without a parser: a line that looks like a definition of its language family
begins a block, with the comments and decorators above it. A class is cut into its members. Each line of a
file is in exactly one block.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern, sections
from codingagent.model.plain_text import blanks

# Longer blocks are cut into pieces, of about so many lines.
_LONG_LINES, _PIECE_LINES = 40, 20
# A file of more definitions is made by a program: it is cut into pieces alone.
_MOST_HEADS = 10_000
# What begins a definition, by the endings of files. The first group that takes part is the name. A pattern
# without leading blanks matches at the margin only; one may hold that of another ending.
_DEFINITIONS = {
    kinds: "".join(map(str.strip, body.splitlines())) for kinds, body in sections(__file__).items()
}
_HELD = {f"<{kinds.split()[0]}>": each for kinds, each in _DEFINITIONS.items()}
_PATTERNS = {
    suffix: lazy_pattern(each.replace("<py>", _HELD["<py>"]).replace("<m>", _HELD["<m>"]))
    for kinds, each in _DEFINITIONS.items()
    for suffix in kinds.split()
}
_HAS_MEMBERS = lazy_pattern(
    r"\s*(?:[\w@]+\s+)*?(?:class|interface|namespace|impl|trait|mod|module|object|struct|enum|record)\b"
    r"|\s*(?:describe|suite|context)(?:\.\w+)*\(|\s*(?:\{%|<\w)"
)
# What Go declares in one pair of brackets is called by the names within.
_GROUP, _GROUPED = lazy_pattern(r"(?:const|var|type)\s*\("), lazy_pattern(r"\t(\w+)")
_BELONGS_BELOW = lazy_pattern(r"\s*(?:@|#(?!\s*define|include|pragma|if|endif)|//|/\*|\*|--|;)")


class CodeBlock(Struct, frozen=True, gc=False):
    """Lines of a file, from `first` to `last`, counted from 1, and what they define."""

    first: int
    last: int
    names: tuple[str, ...] = ()
    around: tuple[int, ...] = ()
    """The lines that begin what its lines are in: classes, and the last of its own definitions."""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text; a final line end begins no further line."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


@functools.lru_cache(maxsize=100)
def blocks(path: str, text: str) -> Sequence[CodeBlock]:
    """Return the blocks of a file, in its order; together they hold each line once."""
    lines = lines_of(text)
    if not lines:
        return []
    # At what stands at the outermost level, and at the members of classes: first line, names, around.
    cuts: list[tuple[int, tuple[str, ...], tuple[int, ...]]] = [(1, (), ())]
    within: list[tuple[int, int, bool]] = []  # line, depth, whether all to there have members
    heads = [*islice(_heads(path, lines), _MOST_HEADS + 1), (0, 0, "")]
    for (line, depth, name), below in pairwise(heads) if len(heads) <= _MOST_HEADS + 1 else ():
        while within and within[-1][1] >= depth:
            within.pop()
        are_members = not within or within[-1][2]
        is_cut = are_members and (within or not depth)
        has_members = below[1] > depth and _HAS_MEMBERS.match(lines[line - 1]) is not None
        within.append((line, depth, are_members and has_members))
        if is_cut:
            names: tuple[str, ...] = (name,)
            first = _with_what_is_above(lines, line, depth)
            if first <= cuts[-1][0]:
                first, above, _ = cuts.pop()
                names = (*above, name)
            cuts.append((first, names, tuple([each[0] for each in within])))
    ends = [*(first - 1 for first, *_ in cuts[1:]), len(lines)]
    made: list[CodeBlock] = []
    for (start, defined, around), last in zip(cuts, ends, strict=True):
        first, names = start, defined
        if around and path.endswith(".go") and _GROUP.match(lines[around[-1] - 1]):
            inner = (_GROUPED.match(line) for line in lines[first:last])
            names = (*names, *(found[1] for found in inner if found))
        while last - first >= _LONG_LINES:
            end = _piece_end(lines, first)
            made.append(CodeBlock(first, end, names, around))
            first = end + 1
        made.append(CodeBlock(first, last, names, around))
    return made


def lines_meant(path: str, text: str, part: str) -> list[int]:
    """Return the lines that "120-180" means, or the name of a definition (`total`, `Cart.total`); or none."""
    first, _, last = part.partition("-")
    if first.isdecimal():
        return list(range(max(int(first), 1), min(int(last or first), len(lines_of(text))) + 1))
    *outer, own = re.split(r"::|\.", part.partition("(")[0].partition("[")[0])
    lines, found = ["", *lines_of(text)], blocks(path, text)
    heads = {
        each.around[-1]
        for each in found
        if own in each.names and all(any(name in lines[line] for line in each.around) for name in outer)
    }
    inner = (range(each.first, each.last + 1) for each in found if heads.intersection(each.around))
    return [line for some in inner for line in some]


def _piece_end(lines: Sequence[str], first: int) -> int:
    """Return the last line of a piece: above a line of little depth, best after a blank one."""

    def cost(end: int) -> float:
        below = lines[end]
        is_within = bool(lines[end - 1].strip()), below.lstrip()[:1] in {"}", ")", "]"}
        far = abs(end - first - _PIECE_LINES + 1) / 30
        return len(blanks(below)) + 4 * is_within[0] + 6 * is_within[1] + far

    middle, half = first + _PIECE_LINES - 1, _PIECE_LINES // 2
    ends = (end for end in range(middle - half + 1, middle + half + 1) if lines[end].strip())
    return min(ends, key=cost, default=middle)


def _heads(path: str, lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield each line that begins a definition, a section or a key, its depth, and the name."""
    suffix, in_code = path.rpartition(".")[2].lower(), False
    is_markdown, pattern = suffix in ("md", "mdx", "markdown"), _PATTERNS.get(suffix)
    is_text = is_markdown or suffix in ("rst", "txt")
    for at, line in enumerate(lines if pattern else (), 1):
        if is_markdown and line.startswith("```"):
            in_code = not in_code
        whole = "\n".join((line, *(lines[at : at + 1] or [""]))) if is_text else line
        if line and not in_code and pattern and (found := pattern.match(whole)):
            name = next(filter(None, found.groups()), "")
            yield at, len(line) - len(line.lstrip()), name


def _with_what_is_above(lines: Sequence[str], line: int, depth: int) -> int:
    """Return the first line of a definition with its comments and decorators, also one of several lines."""
    first = at = line
    if at > 2 and not lines[at - 2].strip() and lines[at - 3].rstrip().endswith("*/"):
        first = at = line - 1
    while at > 1 and lines[at - 2].strip():
        at -= 1
        above = lines[at - 1]
        if above[0] == "@" or (at == first - 1 and _BELONGS_BELOW.match(above)):
            first = at
        elif depth or above[0] not in ") ":
            break
    return first
