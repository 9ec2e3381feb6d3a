"""Levels of indentation: what begins one, and whether new lines are as deep as the file shows.

Nothing is restored here: lines whose indentation may be lost are refused, where a file shows that they
have one. `indentation` restores what the replaced lines prove.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

from codingagent.editing import file_kinds
from codingagent.editing.characters import Ground
from codingagent.errors import OperationError
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import blanks

_ITEM = lazy_pattern(r"\s*([-*+]|\d{1,3}[.)])[ \t]+\S")
CLOSER = lazy_pattern(
    r"\s*(?:[)}\]]|</|(?:end|fi|done|else|elif|elsif|elseif|except|finally|until|esac|case|default)\b)"
)
_OPENER = lazy_pattern(r"(?:[{(\[:]|\b(?:then|do))[ \t]*$|<[a-z][^<>/]*>[ \t]*$")
_CUT_COLUMN = 40
_STATEMENT_END = lazy_pattern(r"[;{}()\[\],:\\]$")
MEANT = 'if it is intended, send it with until="TOKEN" and close it with [/EDIT_FILE TOKEN]'


def depth(line: str) -> int:
    """Return how deep a line is: a tab is deeper than a blank."""
    return len(blanks(line).replace("\t", "    "))


def has_levels(lines: Sequence[str]) -> bool:
    """Return whether a line opens a level, and the next that has a word is not deeper."""
    words = [line for line in lines if line.strip()]
    return any(
        is_opener(a) and not CLOSER.match(b) and len(blanks(b)) <= len(blanks(a))
        for a, b in pairwise(words)
    )


def is_opener(line: str) -> bool:
    return _OPENER.search(line) is not None


def is_cut(new: Sequence[str], ground: Ground) -> bool:
    """Return whether a long line was broken at a blank, and goes on at the margin.

    All breaks must be at one column that no line goes beyond, as where a chat wraps lines.
    """
    if not file_kinds.is_code(ground.path):
        return False
    breaks = {
        index: len(a) + 1 + len(b.split()[0])
        for index, (a, b) in enumerate(pairwise(new), 1)
        if a[:1].isspace() and b[:1].strip() and len(a) > _CUT_COLUMN
        if not (CLOSER.match(b) or b[0] == "#" or _STATEMENT_END.search(a) or b in ground.replaced)
    }
    if not breaks or ground.parses is not None:
        return False
    text = ground.text_among(new)
    ends = [end for index, end in breaks.items() if index not in text and index - 1 not in text]
    widest = max((len(line) for line in new if " " in line.strip()), default=0)
    return widest < min(ends, default=0)


def is_cut_from_file(new: Sequence[str], ground: Ground) -> bool:
    """Return whether a long line that is replaced was broken at a blank, and goes on at the margin.

    No line goes beyond a column where one was broken. What is broken on purpose goes on indented.
    """
    known = {" ".join(line.split()) for line in ground.replaced if len(line) > _CUT_COLUMN}
    if not known or not file_kinds.is_program(ground.path):
        return False
    starts, text = {line[:_CUT_COLUMN] for line in known}, ground.text_among(new)
    widest = max((len(line) for line in new if " " in line.strip()), default=0)
    for index, (a, b) in enumerate(pairwise(new), 1):
        if len(a) <= _CUT_COLUMN or not a[0].isspace() or not b[:1].strip() or b in ground.replaced:
            continue
        words = " ".join(a.split())
        # In a string of several lines such a break is no fault of the grammar.
        is_start = index in text and words[:_CUT_COLUMN] in starts and words not in known
        is_joined = f"{words} {' '.join(b.split())}" in known
        if (is_start or is_joined) and widest < len(a) + 1 + len(b.split()[0]):
            return True
    return False


def last_line(lines: Sequence[str]) -> list[str]:
    """Return the last line with a word as a list of one, which may be empty."""
    return [next((line for line in reversed(lines) if line.strip()), "")]


def is_out(line: str, there: Sequence[str]) -> bool:
    """Return whether a line is less deep than all of some others; a label and a `#if` may be."""
    if not line.strip() or line.startswith("#") or line.endswith(":"):
        return False
    if (item := _ITEM.match(line)) is not None:
        # An item beside others like it.
        like = [each for each in there if (a := _ITEM.match(each)) and a[1] == item[1]]
        there = like or there
    return bool(there) and all(depth(each) > depth(line) for each in there)


def lacks_levels(ground: Ground, new: Sequence[str]) -> bool:
    """Return whether a new line opens a level and the next is not as deep as any such line of the file."""
    known = set(ground.replaced)
    lines = [*last_line(ground.lines[: ground.start]), *new]
    for opener in (lambda line: is_opener(line) and not _STARRED.match(line), _COMMENT.search):
        fresh = [level for level in _levels(lines, opener) if level[1] not in known]
        there = _levels(ground.lines, opener) if fresh else []
        deeper = {step for _, _, step in there if step > 0}
        flat = [line for line, _, step in there if step <= 0]
        steps = {step for line, _, step in fresh if line not in flat}
        if len(flat) < (1 - _MOSTLY) * len(there) and not steps <= deeper:
            return True
    return False


def _levels(lines: Sequence[str], opener: Callable[[str], object]) -> list[tuple[str, str, int]]:
    """Return each line that opens a level, the one behind it, and by how much that is deeper."""
    words = [line for line in lines if line.strip()]
    return [
        (a, b, depth(b) - depth(a))
        for a, b in pairwise(words)
        if opener(a) and not CLOSER.match(b) and b[0] != "#"
    ]


_STARRED = lazy_pattern(r"[ \t]*(?:/?\*+(?:[ \t!]|$)|//)")
_COMMENT = lazy_pattern(r"/\*(?!.*\*/)")
_MOSTLY = 0.7


def is_indented(line: str) -> bool:
    """Return whether a line has an indentation that a chat would have taken."""
    return line.startswith(("  ", "\t")) and bool(line.strip())


def check_kind(lines: Sequence[str], new: Sequence[str], what: str) -> None:
    """Refuse lines that are indented as no line of the file is: by blanks where it has tabs alone."""
    if odd := _odd_kind(lines, new):
        came, has = odd
        raise OperationError(
            f"the file is indented with {has} and {what} with {came}",
            advice=f"; write it with {has}; {MEANT}",
        )


def _odd_kind(lines: Sequence[str], new: Sequence[str]) -> tuple[str, str] | None:
    kinds = {"tabs": "\t", "spaces": "  "}
    for came, has in (("spaces", "tabs"), ("tabs", "spaces")):
        if (
            any(line.startswith(kinds[came]) and line.strip() for line in new)
            and not any(line.startswith(kinds[came]) and line.strip() for line in lines)
            and any(line.startswith(kinds[has]) and line.strip() for line in lines)
        ):
            return came, has
    return None
