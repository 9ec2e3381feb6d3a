"""Find code fences: where one opens, what it says, and where it certainly closes.

A fence whose text holds fences of the same length has no certain end by itself: the rules of Markdown
close it at the first bare fence, and models nest them all the same. An end is given only where both
readings agree, or one of them is not possible.
"""

import re
from bisect import bisect_right
from enum import Enum

from msgspec import Struct

from codingagent.model.chat_damage import without_direction
from codingagent.model.patterns import lazy_pattern, words
from codingagent.protocols.tags.reply import BLOCK_LINE

_FENCE = lazy_pattern(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^`]*?)[ \t]*")

SHELLS = words(
    "bash sh shell zsh fish console terminal shell-session shellsession sh-session powershell pwsh ps1"
    " ps cmd bat batch dos cli"
)


TEXT_LANGUAGES = ("", "text", "txt", "plaintext", "plain")
MARKDOWN_LANGUAGES = ("markdown", "md", "mdx")


class Ending(Enum):
    """The certainty of the end of a fence."""

    PLAIN = "nothing else in it"
    NESTED = "fences in it, closed each"
    DOUBTFUL = "not sure"


class Fence(Struct, frozen=True):
    """A line that opens or closes a fence; `indent` is the blanks before it."""

    line: int
    indent: str
    marks: str
    info: str

    @property
    def language(self) -> str:
        """The language that the fence names, in lower case."""
        return re.split(r"[\s:{,]", self.info, maxsplit=1)[0].lower()


class Fences:
    """All fence lines of a text."""

    def __init__(self, lines: list[str]) -> None:
        marked = ((at, line) for at, line in enumerate(lines) if "```" in line or "~~~" in line)
        found = ((at, _FENCE.fullmatch(without_direction(line))) for at, line in marked)
        self._all = [Fence(at, one[1], one[2], one[3]) for at, one in found if one]
        self._lines = [fence.line for fence in self._all]
        # What was found from which line on: openings without a close must not each look to the end.
        self._closes: dict[tuple[str, int], tuple[int, int | None]] = {}
        self._by_line = {fence.line: fence for fence in self._all}

    def count(self) -> int:
        """Return how many fence lines there are."""
        return len(self._all)

    def at(self, line: int) -> Fence | None:
        """Return the fence at a line."""
        return self._by_line.get(line)

    def next_from(self, line: int) -> Fence | None:
        """Return the first fence from a line on."""
        index = bisect_right(self._lines, line - 1)
        return self._all[index] if index < len(self._all) else None

    def first_close(self, opening: Fence, start: int) -> int | None:
        """Return the first line from `start` on that could close a fence."""
        key = (opening.marks, len(opening.indent))
        known = self._closes.get(key)
        if known is not None and known[0] <= start and (known[1] is None or start <= known[1]):
            return known[1]
        found = None
        for index in range(bisect_right(self._lines, start - 1), len(self._all)):
            fence = self._all[index]
            if not fence.info and _belongs(opening, fence):
                found = fence.line
                break
        self._closes[key] = (start, found)
        return found

    def close(self, opening: Fence, *, is_markdown: bool) -> tuple[int | None, Ending]:
        """Return the line that closes a fence, and how certain that is; Markdown may hold bare fences."""
        inner, ending = False, Ending.PLAIN
        for index in range(bisect_right(self._lines, opening.line), len(self._all)):
            fence = self._all[index]
            if not _belongs(opening, fence):
                continue
            if fence.info:
                if inner:
                    return None, Ending.DOUBTFUL
                inner, ending = True, Ending.NESTED
            elif inner:
                inner = False
            else:
                behind = self._all[index + 1] if index + 1 < len(self._all) else None
                bare = behind is not None and not behind.info and _belongs(opening, behind)
                return fence.line, Ending.DOUBTFUL if bare and is_markdown else ending
        return None, Ending.DOUBTFUL


def _belongs(opening: Fence, fence: Fence) -> bool:
    """Return whether a fence could close the opening one, or open one in it that could."""
    return fence.marks.startswith(opening.marks) and len(fence.indent) <= len(opening.indent)


def dedented(lines: list[str], indent: str) -> list[str]:
    """Return a fence's lines without the blanks before the fence, if all of them have those."""
    if not indent or any(line.strip() and not line.startswith(indent) for line in lines):
        return lines
    return [line.removeprefix(indent) for line in lines]


def _without_wrappers(lines: list[str]) -> list[str]:
    """Return the lines without the fences around commands of ours: they belong to these."""
    blocks = [index for index, line in enumerate(lines) if line.startswith(BLOCK_LINE)]
    if not blocks:
        return lines
    kept = list(lines)
    found = Fences(lines)
    closed: set[int] = set()
    at = 0
    while (fence := found.next_from(at)) is not None:
        at = fence.line + 1
        if fence.line in closed:
            continue
        close = found.first_close(fence, at)
        block = bisect_right(blocks, fence.line)
        if block < len(blocks) and (close is None or blocks[block] < close):
            kept[fence.line] = BLOCK_LINE
            if close is not None:
                kept[close] = ""
                closed.add(close)
        elif close is not None:
            at = close + 1
        else:
            break
    return kept


def unwrapped(lines: list[str]) -> list[str]:
    """Return the lines without fences around commands of ours, or around all of them and fences inside."""
    lines = _without_wrappers(lines)
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None or not lines[first].strip().startswith(("```", "~~~")):
        return lines
    last = next(i for i in range(len(lines) - 1, -1, -1) if lines[i].strip())
    found = Fences(lines)
    opening = found.at(first)
    may_wrap = opening and opening.info in (*TEXT_LANGUAGES, *MARKDOWN_LANGUAGES)
    if opening is None or not may_wrap or found.count() < 4:
        return lines
    close, ending = found.close(opening, is_markdown=False)
    if close != last or ending is Ending.DOUBTFUL:
        return lines
    return [*lines[:first], "", *lines[first + 1 : last], "", *lines[last + 1 :]]
