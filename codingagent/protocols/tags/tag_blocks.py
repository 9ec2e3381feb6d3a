"""The blocks of an answer as values, and the text of their tags."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern

_UNTIL = lazy_pattern(r'\buntil[ \t]*=[ \t]*"([^"\n]+)"')


class InnerTag(NamedTuple):
    """An opening line in the body of a block that has no `until`: a closing tag may be missing."""

    line: int
    text: str
    closed: bool
    """Every tag in the body is closed in it, so that the body's own end is certain."""


class Block(NamedTuple):
    """One command as written in an answer.

    `body` has each of its lines ended by "\\n" and is empty where the tag has none. `line` is where
    the opening is, 1-based. `fault` says why the opening can't be read, with advice. It reaches from
    `start` to `end`; `is_doubtful` tells that its body holds what may be another tag of ours.
    """

    name: str
    attributes: tuple[tuple[str, str], ...]
    body: str
    line: int
    closed: bool = True
    fault: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()
    behind_end: bool = False
    start: int = 0
    end: int = 0
    is_doubtful: bool = False
    inner: InnerTag | None = None

    @property
    def closing(self) -> str:
        return closing_tag(self.name, until_in(self.attributes))


class Scan(Struct, frozen=True):
    """All blocks of an answer in order, and what was around them.

    `header` holds the attributes of the first `[REPLY …]` line, `ended` tells whether `[END]` was
    met, `has_outbox` whether the headings of a request are outside of all blocks. `around` is where
    the text around the blocks is, but for single line ends.
    """

    blocks: tuple[Block, ...]
    header: Mapping[str, str] | None
    ended: bool
    has_outbox: bool
    notes: tuple[str, ...]
    around: tuple[tuple[int, int], ...] = ()
    unread: tuple[str, ...] = ()
    """Those of the notes that are about what was meant as a block, and is none."""


class LineCounter:
    """Count the lines up to an offset; one near the last one costs little."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._counted = (0, 1)

    def of(self, offset: int) -> int:
        at, line = self._counted
        if offset < at:
            line -= self._text.count("\n", offset, at)
        else:
            line += self._text.count("\n", at, offset)
        self._counted = (offset, line)
        return line


def fold_line_ends(text: str) -> str:
    r"""Return the text with `\r\n` and a lone final `\r` as `\n`; other characters are no line ends."""
    if "\r" not in text:
        return text
    folded = text.replace("\r\n", "\n")
    return f"{folded[:-1]}\n" if folded.endswith("\r") else folded


def line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


def gaps(blocks: Iterable[Block], end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text around some blocks, the empty ones too."""
    at = 0
    for block in blocks:
        yield at, block.start
        at = max(at, block.end)
    yield at, end


def closing_tag(name: str, until: str | None) -> str:
    return f"[/{name} {until}]" if until else f"[/{name}]"


def until_of(line: str) -> str | None:
    """Return the word that the closing tag of an opening needs, even where its attributes can't be read."""
    found = _UNTIL.search(line)
    return None if found is None else found[1]


def until_in(attributes: Iterable[tuple[str, str]]) -> str | None:
    return next((value for name, value in attributes if name == "until"), None) or None
