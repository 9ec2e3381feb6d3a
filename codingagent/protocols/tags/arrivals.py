"""The answer under repair, and what its tags prove about each body."""

import re

from msgspec import Struct, field

from codingagent.model import chat_damage
from codingagent.model.chat_damage import Arrival, Damage, Kept
from codingagent.model.patterns import lazy_pattern
from codingagent.protocols.tags import scanner
from codingagent.protocols.tags.tag_blocks import Block, Scan

_ADJACENT = lazy_pattern(r"\S[^\S\n]*\n[^\S\n]*\S")
_FENCE = lazy_pattern(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^`\n]*?)[ \t]*$", re.MULTILINE)


class Mended(Struct):
    """An answer, and what was done to make it readable.

    `notes` are about the answer as a whole, `notes_of` are by the line of a block's opening tag. `ways`
    are the damages to its tags, each with the line of the first. `doubts` are by line too: why a block
    is not to be executed, and advice. `leads` are the indentation of tags that each line of their body has
    too, and whether they are an item of a list.
    """

    text: str
    notes: list[str] = field(default_factory=list)
    notes_of: dict[int, list[str]] = field(default_factory=dict)
    ways: dict[Damage, int] = field(default_factory=dict)
    doubts: dict[int, tuple[str, str]] = field(default_factory=dict)
    leads: dict[int, tuple[str, bool]] = field(default_factory=dict)
    _scan: Scan | None = None

    @property
    def scan(self) -> Scan:
        """Return the blocks of the text as it is now."""
        if self._scan is None:
            self._scan = scanner.scan_lines(self.text)
        return self._scan

    @scan.setter
    def scan(self, scan: Scan) -> None:
        self._scan = scan

    def change(self, text: str) -> None:
        """Take another text; lines keep their numbers."""
        self.text, self._scan = text, None

    def blank(self, *parts: tuple[int, int]) -> None:
        """Take parts out of the text and leave their line ends."""
        text, kept, at = self.text, "", 0
        for start, end in parts:
            kept += text[at:start] + "\n" * text.count("\n", start, end)
            at = end
        self.change(kept + text[at:])


class Arrivals:
    """The arrival of each body of an answer; blocks are asked for in their order, and each costs little."""

    def __init__(self, mended: Mended) -> None:
        self._mended = mended
        self._text = mended.text
        self._fenced = _in_fences(mended)
        self._margins: dict[str, int] = {}
        adjacent = _ADJACENT.search(self._text)
        self._spaced_to = len(self._text) if adjacent is None else adjacent.end()
        self._kept: dict[int, frozenset[Kept]] = {}
        kept: frozenset[Kept] = frozenset()
        for block in mended.scan.blocks:
            self._kept[block.start] = kept
            if block.name != "MESSAGE" and len(kept) < len(Kept):
                kept |= chat_damage.kept_in(block.body)

    def of(self, block: Block) -> Arrival:
        """Return how a block's body came, as the tags up to its own show.

        Later tags don't count: a block must be read the same way if the answer is cut off after it.
        """
        last = block.line + block.body.count("\n") + 1
        way = frozenset(d for d, line in self._mended.ways.items() if line <= last)
        lead, is_item = self._mended.leads.get(block.line, ("", False))
        return Arrival(
            way,
            lead,
            is_moved=is_item or (bool(lead) and self._is_all_indented(block, lead)),
            in_code=block.start in self._fenced,
            # A body of one blank line says nothing of how it came: it is taken as written.
            is_spaced=block.body[:1] == "\n" != block.body and block.end <= self._spaced_to,
            kept=self._kept.get(block.start, frozenset()),
        )

    def _is_all_indented(self, block: Block, lead: str) -> bool:
        """Return whether the text before a block is indented like it: then all of the answer moved."""
        if lead not in self._margins:
            found = re.search(rf"^(?!{re.escape(lead)})[ \t]*\S", self._text, re.MULTILINE)
            self._margins[lead] = len(self._text) if found is None else found.start()
        first = len(self._text) - len(self._text.lstrip())
        return first < self._text.rfind("\n", 0, block.start) and self._margins[lead] >= block.start


def _in_fences(mended: Mended) -> frozenset[int]:
    """Return where the blocks begin that are in a code block, and that no chat has damaged."""
    text, scan = mended.text, mended.scan
    if mended.ways.keys() - {Damage.CITATIONS, Damage.DIRECTION} or not any(
        _FENCE.search(text, *part) for part in scan.around
    ):
        return frozenset()
    marks = (mark for part in scan.around for mark in _FENCE.finditer(text, *part))
    found: list[int] = []
    fence, mark = "", next(marks, None)
    for block in scan.blocks:
        while mark is not None and mark.start() < block.start:
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not mark[2]:
                fence = ""
            mark = next(marks, None)
        if fence:
            found.append(block.start)
    return frozenset(found)
