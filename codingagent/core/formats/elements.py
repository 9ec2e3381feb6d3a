"""Elements in which other tools have their models put a file: `<file path="a.py">`, its text, `</file>`."""

import re
from dataclasses import dataclass

_OPENING = re.compile(
    r"[ \t]*<(?P<tag>[A-Za-z][\w:.-]*)(?:[ \t][^<>]*?)?[ \t](?:path|file|file_?name|file_?path)="
    r"(?:\"(?P<double>[^\"<>]+)\"|'(?P<single>[^']+)'|(?P<bare>[^\s\"'<>]+?))"
    r"(?:[ \t][^<>]*?)?(?P<empty>/?)>[ \t]*",
    re.IGNORECASE,
)
_WHOLE = re.compile(
    r"(?:code|source)[_-]?(?:block|file)?|artifact|bolt[_-]?action|document|content"
    r"|(?:(?:new|add|create|write|save|full)[_-]?)?(?:to[_-]?)?file",
    re.IGNORECASE,
)
_GONE = re.compile(r"(?:delete|remove)[_-]?file", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Element:
    """The opening of an element that names a file."""

    tag: str
    path: str
    is_empty: bool

    @property
    def is_whole(self) -> bool:
        """Tell whether its text is the whole file, as far as its tag says."""
        return _WHOLE.fullmatch(self.tag) is not None and not self.is_empty

    @property
    def is_gone(self) -> bool:
        """Tell whether it asks for the deletion of the file."""
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


def close(lines: list[str], start: int, end: int, tag: str) -> int | None:
    """Return the index of the line that closes an element."""
    return next((i for i in range(start, end) if lines[i].strip() == f"</{tag}>"), None)


def inner(lines: list[str], start: int, end: int) -> tuple[int, int]:
    """Return where the text of an element begins and ends, without CDATA marks on lines of their own."""
    words = [i for i in range(start, end) if lines[i].strip()]
    if (
        len(words) < 2
        or lines[words[0]].strip() != "<![CDATA["
        or lines[words[-1]].strip() != "]]>"
    ):
        return start, end
    return words[0] + 1, words[-1]
