"""Elements in which other tools have their models put a file: `<file path="a.py">`, its text, `</file>`."""

import re
from bisect import bisect_left

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern

_OPENING = lazy_pattern(
    r"[ \t]*<(?P<tag>[A-Za-z][\w:.-]*)(?:[ \t][^<>]*?)?[ \t](?:path|file|file_?name|file_?path)="
    r"(?:\"(?P<double>[^\"<>]+)\"|'(?P<single>[^']+)'|(?P<bare>[^\s\"'<>]+?))"
    r"(?:[ \t][^<>]*?)?(?P<empty>/?)>[ \t]*",
    re.IGNORECASE,
)
_CLOSING = lazy_pattern(r"[ \t]*</([A-Za-z][\w:.-]*)>[ \t]*")
_WHOLE = lazy_pattern(
    r"(?:code|source)[_-]?(?:block|file)?|artifact|bolt[_-]?action|document|content"
    r"|(?:(?:new|add|create|write|save|full)[_-]?)?(?:to[_-]?)?file",
    re.IGNORECASE,
)
_GONE = lazy_pattern(r"(?:delete|remove)[_-]?file", re.IGNORECASE)


class Element(Struct, frozen=True):
    """The opening of an element that names a file."""

    tag: str
    path: str
    is_empty: bool

    @property
    def is_whole(self) -> bool:
        """Return whether its text is the whole file, as far as its tag says."""
        return _WHOLE.fullmatch(self.tag) is not None and not self.is_empty

    @property
    def is_gone(self) -> bool:
        """Return whether it asks for the deletion of the file."""
        return _GONE.fullmatch(self.tag) is not None


def opening(line: str) -> Element | None:
    """Return the element that a line opens, if it names a file and nothing else is on the line."""
    if "<" not in line[:80] or len(line) > 400:
        return None
    found = _OPENING.fullmatch(line)
    if found is None:
        return None
    path = found["double"] or found["single"] or found["bare"]
    return Element(found["tag"], path.strip(), bool(found["empty"]))


class Closings:
    """The lines that close elements, each a tag and nothing else."""

    def __init__(self, lines: list[str]) -> None:
        self._lines: dict[str, list[int]] = {}
        for index, line in enumerate(lines):
            if "</" in line and (found := _CLOSING.fullmatch(line)) is not None:
                self._lines.setdefault(found[1], []).append(index)

    def first(self, tag: str, start: int, end: int) -> int | None:
        """Return the first line that closes an element, between two others."""
        known = self._lines.get(tag, [])
        at = bisect_left(known, start)
        return known[at] if at < len(known) and known[at] < end else None


def inner(lines: list[str], start: int, end: int) -> tuple[int, int]:
    """Return where the text of an element begins and ends, without CDATA marks on lines of their own."""
    words = [i for i in range(start, end) if lines[i].strip()]
    marks = [lines[i].strip() for i in (*words[:1], *words[-1:])]
    return (words[0] + 1, words[-1]) if marks == ["<![CDATA[", "]]>"] else (start, end)
