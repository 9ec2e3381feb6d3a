"""Read the blocks of an answer whose tags a chat has damaged.

How it works. The strict grammar (`scanner`) has read the text. Where a tag is outside of all blocks in a
damaged form, or a block is doubtful (unclosed, unreadable, or holding what may be another tag), the lines
that name a command are looked at one by one: a line that is one of our tags once its damage is undone
(`RULES`) becomes that tag. Closed blocks that the grammar had no doubt about are never looked into.
Damage to whole blocks is undone for their bodies too where the two tags prove it; what the tags prove else of
each body is its evidence.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice, takewhile

from msgspec import Struct, field

from codingagent.model import chat_damage, citations, commands
from codingagent.model.chat_damage import BodyEvidence, Channel, Damage, Rule
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import blanks
from codingagent.protocols.tags import scanner
from codingagent.protocols.tags.scanner import Block, Scan

# Longer lines are not tags that a chat has damaged; undoing them would only cost time.
_TAG_LIMIT_CHARACTERS = 2000
# No answer has so many lines that name a command; looking at ten megabytes of them would take a minute.
_TAG_LIMIT = 20_000
# Damage that no author writes beside a tag, not even in a document about these tags.
_UNSEEN = {Damage.BLANKS, Damage.CITATIONS, Damage.DIRECTION}
_ADJACENT = lazy_pattern(r"\S[^\S\n]*\n[^\S\n]*\S")
_FENCE = lazy_pattern(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^`\n]*?)[ \t]*$", re.MULTILINE)
_HEADER = lazy_pattern(r"^\[REPLY ", re.MULTILINE)


# --- one line as a tag --------------------------------------------------------------------------------
# Each row undoes one thing that chats do to a tag. They are tried in order, each on top of those before it,
# until the line reads as the grammar has it. A line that never does is not a tag.
_HEAD = lazy_pattern(r"\[(/?)([A-Z][A-Z0-9_]*)(?=[ \t\]])")
_CLOSING = lazy_pattern(r"\[/[A-Z_]+(?: [A-Za-z0-9._-]+)?\]")
_NAMES = (*commands.HAS_BODY, "REPLY", "END")
_JOINT = r"(?:_|[^\sA-Za-z0-9]{1,9}|&#[xX]?[0-9A-Fa-f]{2,4};)"
# A command's name, whatever became of its `_`.
_MENTION = lazy_pattern(f"(?:{'|'.join(_NAMES).replace('_', _JOINT)})(?![A-Za-z0-9])")
SAID = "the chat changed the tag, and it was read as meant: {what}"


_UNDO: dict[Damage, Callable[[str], str]] = {
    Damage.DIRECTION: lambda tag: chat_damage.TURN.sub("", tag),
    Damage.CITATIONS: citations.off_tag,
    Damage.BLANKS: chat_damage.with_plain_blanks,
    Damage.ENTITIES: chat_damage.without_entities,
    # A chat that escapes all has escaped the bracket, too.
    Damage.UNDERSCORES: lambda tag: tag.replace(r"\_", "_") if tag[:1] == "[" else tag,
    Damage.ESCAPES: chat_damage.without_escapes,
    Damage.QUOTES: chat_damage.with_straight_quotes,
}
RULES = tuple(Rule(damage.value, SAID, undo) for damage, undo in _UNDO.items())


class _Tag(Struct, frozen=True):
    """A line that is one of our tags once its damage is undone.

    `way` is the damage to its characters that was undone; it is empty for a tag as it should be.
    """

    start: int
    end: int
    text: str
    name: str
    is_closing: bool
    way: Channel

    @property
    def is_one_line(self) -> bool:
        return self.text.endswith(f"[/{self.name}]") and not self.is_closing


def _tag_of(text: str, start: int, end: int) -> _Tag | None:
    """Return the line between two offsets as the tag that it is; None if it is not a tag."""
    line = text[start:end].rstrip().lstrip(" \t")
    if line[-1:].isalnum() and line[-1:].isascii() and "cite" not in line:
        return None  # no damage ends so: none of the rules need be tried
    done: list[str] = []
    head = _head(line)
    for rule in () if head is not None else RULES:
        undone = rule.run(line).strip(" \t")
        if undone == line:
            continue
        line = undone
        done.append(rule.name)
        if (head := _head(undone)) is not None:
            break
    if head is None:
        return None
    return _Tag(start, end, line, head[2], bool(head[1]), frozenset(map(Damage, done)))


def _head(text: str) -> re.Match[str] | None:
    """Return the start of a tag as the grammar has it, with nothing after it; None if it is not one."""
    head = _HEAD.match(text)
    if head is None or head[2] not in _NAMES:
        return None
    if head[1]:
        return head if _CLOSING.fullmatch(text) else None
    is_tag = scanner.is_opening(text, head.end()) or (
        text.endswith(f"[/{head[2]}]") and scanner.is_opening(text.partition("]")[0] + "]", head.end())
    )
    return head if is_tag else None


# --- the answer ---------------------------------------------------------------------------------------
class RepairedAnswer(Struct, dict=True):
    """An answer, and what was done to make it readable.

    `notes` are about the answer as a whole, `notes_of` are by the line of a block's opening tag. `ways`
    are the damages to its tags, each with the line of the first. `doubts` are by line too: why a block
    is not to be executed, and advice. `leads` are the indentation of tags that each line of their body has
    too. `joints` are where the code block ends within a block, as offsets in the text.
    """

    text: str
    notes: list[str] = field(default_factory=list)
    notes_of: dict[int, list[str]] = field(default_factory=dict)
    ways: dict[Damage, int] = field(default_factory=dict)
    doubts: dict[int, tuple[str, str]] = field(default_factory=dict)
    leads: dict[int, str] = field(default_factory=dict)
    joints: dict[int, int] = field(default_factory=dict)

    @cached_property
    def scan(self) -> Scan:
        """The blocks of the text as it is now."""
        return scanner.scan_lines(self.text)

    @cached_property
    def fenced(self) -> dict[int, str]:
        """Where the blocks begin that are in a code block, undamaged by a chat, with its fence.

        To be asked for once all damage to the tags is known.
        """
        is_spared = not self.ways.keys() - {Damage.CITATIONS, Damage.DIRECTION}
        return dict(_fences(self.text, self.scan)) if is_spared else {}

    @property
    def header_at(self) -> int:
        """Return the offset of the last `[REPLY …]` line above a block that counts; -1: there is none."""
        last = max((block.start for block in self.scan.blocks if not block.behind_end), default=0)
        found = (each for part in self.scan.around for each in _HEADER.finditer(self.text, *part))
        return max((header.start() for header in found if header.start() < last), default=-1)

    def change(self, text: str) -> None:
        """Take another text; lines keep their numbers."""
        self.text = text
        self.__dict__.clear()  # what was found in the other one

    def blank(self, *parts: tuple[int, int]) -> None:
        """Take parts out of the text and leave their line ends."""
        text, kept, at = self.text, "", 0
        for start, end in parts:
            kept += text[at:start] + "\n" * text.count("\n", start, end)
            at = end
        self.change(kept + text[at:])

    # --- how each body came; each block costs little ---
    @cached_property
    def _first_line_end(self) -> int:
        return scanner.line_end(self.text, len(self.text) - len(self.text.lstrip()))

    @cached_property
    def _spaced_to(self) -> int:
        adjacent = _ADJACENT.search(self.text)
        return len(self.text) if adjacent is None else adjacent.end()

    @cached_property
    def _margins(self) -> dict[str, int]:
        """Where the first line begins that is not indented so, by indentation."""
        found = {
            lead: re.search(rf"^(?!{re.escape(lead)})[ \t]*\S", self.text, re.MULTILINE)
            for lead in {*self.leads.values()}
        }
        return {lead: len(self.text) if at is None else at.start() for lead, at in found.items()}

    def evidence_of(self, block: Block) -> BodyEvidence:
        """Return how a block's body came, as the tags up to its own show.

        Later tags don't count: a block must be read the same way if the answer is cut off after it.
        """
        last = block.line + block.body.count("\n") + 1
        lead = self.leads.get(block.line, "")
        way = frozenset(d for d, line in self.ways.items() if line <= last)
        return BodyEvidence(
            way,
            lead,
            is_moved=bool(lead) and self._margins[lead] >= block.start > self._first_line_end,
            in_code=block.start in self.fenced,
            # A body of one blank line says nothing of how it came: it is taken as written.
            is_spaced=block.body[:1] == "\n" != block.body and block.end <= self._spaced_to,
            is_one_line=self.text.find("\n", block.start, block.end) < 0,
        )


def _fences(text: str, scan: Scan) -> Iterator[tuple[int, str]]:
    """Yield where the blocks begin that are in a code block, and its fence."""
    marks = (mark for part in scan.around for mark in _FENCE.finditer(text, *part))
    fence, mark = "", next(marks, None)
    for block in scan.blocks:
        while mark is not None and mark.start() < block.start:
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not mark[2]:
                fence = ""
            mark = next(marks, None)
        if fence:
            yield block.start, fence


def repair(mended: RepairedAnswer) -> None:
    """Undo the damage to the tags of an answer."""
    _Mender(mended).run()


class _Mender:
    def __init__(self, mended: RepairedAnswer) -> None:
        self._mended = mended
        self._text = mended.text
        self._blocks = mended.scan.blocks
        self._changes: list[tuple[int, int, str]] = []
        self._lines = scanner.LineCounter(mended.text)
        self._looks_left, self._looked_to = _TAG_LIMIT, 0
        self._way_before: set[Damage] = set()
        self._openings: list[_Tag] = []
        self._closings: dict[tuple[str, bool], list[_Tag]] = {}
        """The closing tags by their text, and whether they are damaged."""

    # --- finding -------------------------------------------------------------------------------
    def _is_moved(self, block: Block) -> bool:
        """Return whether both tags of a block are indented, or both end in blanks."""
        if not block.body:
            return False
        if block.start and self._text[block.start - 1] != "\n":
            return True
        opening_end = self._text.find("\n", block.start)
        return opening_end > 0 and self._text[opening_end - 1] in " \t"

    def _tags_in(self, start: int, end: int) -> Iterator[_Tag]:
        """Yield the lines that are tags, as they should be or damaged, in their order."""
        at = start
        while self._looks_left and (mention := _MENTION.search(self._text, at, end)) is not None:
            self._looks_left -= 1
            self._looked_to = mention.start()
            line = self._text.rfind("\n", 0, mention.start()) + 1
            at = scanner.line_end(self._text, mention.end())
            if at - line <= _TAG_LIMIT_CHARACTERS and (tag := _tag_of(self._text, line, at)):
                yield tag

    # --- mending -------------------------------------------------------------------------------
    def run(self) -> None:
        """Go through the tags; blocks that the grammar had no doubt about are passed by."""
        certain = [block for block in self._blocks if not block.is_doubtful]
        gaps = scanner.gaps(certain, len(self._text))
        every = [tag for start, end in gaps for tag in self._tags_in(start, end)]
        moved = [*filter(self._is_moved, certain)]
        is_whole = len(certain) == len(self._blocks) and self._looks_left > 0
        if is_whole and not (moved or any(tag.way for tag in every)):
            return
        if not self._looks_left:
            line = self._lines.of(self._looked_to)
            note = f"line {line}: too many tags; damaged ones after this line were not read"
            self._mended.notes.append(note)
        for tag in every:
            if tag.is_closing:
                self._closings.setdefault((tag.text, bool(tag.way)), []).append(tag)
            else:
                self._openings.append(tag)
        inside = -1
        for tag in every:
            if tag.start < inside or tag.is_closing:
                continue
            if tag.is_one_line or not commands.HAS_BODY.get(tag.name, False):
                self._put(tag)
            else:
                inside = self._put_block(tag)
        for block in moved:
            self._move(block)
        parts: list[str] = []
        at = 0
        for start, end, new in sorted(self._changes):
            parts += (self._text[at:start], new)
            at = end
        self._mended.change("".join((*parts, self._text[at:])))

    def _put_block(self, tag: _Tag) -> int:
        """Mend one block; return the offset after it, up to which all is body."""
        close = self._choose(tag)
        if close is None:
            self._put(tag)
            return len(self._text)
        # An opening that was damaged as the block's own was: the next one, perhaps. One as it should be is
        # seen by the grammar.
        may_hold = not tag.way or scanner.until_of(tag.text) is not None
        inside = () if may_hold else self._opened(tag.end, close.start)
        inner = next((t for t in inside if t.way == tag.way and t.name not in ("REPLY", "END")), None)
        if inner is not None:
            where = f"{inner.text} opens in it, at line {self._lines.of(inner.start)}"
            self._doubt(tag, f"{where}, so a closing tag may be missing")
        self._put(tag)
        self._put(close, about=tag)
        self._look_at_body(tag, close)
        return close.end

    def _choose(self, tag: _Tag) -> _Tag | None:
        """Return the line that closes a block, or None if none certainly does."""
        closing = scanner.closing_tag(tag.name, scanner.until_of(tag.text))
        strict, damaged = (
            self._closed(closing, tag.end, is_damaged=is_damaged) for is_damaged in (False, True)
        )
        if damaged is None or (strict is not None and strict.start < damaged.start):
            return strict
        if tag.way:
            return damaged
        # The opening came whole and this did not: with a whole one after it, it is text. A document about
        # these tags may also be cut off after one in this form: only a tag before it that was damaged alike
        # shows that it is none, or damage that nobody sees.
        is_sure = strict is None and damaged.way <= self._way_before | _UNSEEN
        return damaged if is_sure else strict

    def _closed(self, closing: str, offset: int, *, is_damaged: bool) -> _Tag | None:
        found = self._closings.get((closing, is_damaged), [])
        index = bisect_left(found, offset, key=lambda tag: tag.start)
        return found[index] if index < len(found) else None

    def _opened(self, start: int, end: int) -> Iterator[_Tag]:
        first = bisect_left(self._openings, start, key=lambda tag: tag.start)
        return takewhile(lambda tag: tag.start < end, islice(self._openings, first, None))

    def _put(self, tag: _Tag, about: _Tag | None = None) -> None:
        if not tag.way:
            return
        self._way_before |= tag.way
        self._changes.append((tag.start, tag.end, tag.text))
        for damage in sorted(tag.way, key=[*Damage].index):
            self._mended.ways.setdefault(damage, self._lines.of(tag.start))
            said = self._mended.notes_of.setdefault(self._lines.of((about or tag).start), [])
            if (note := SAID.format(what=damage.value)) not in said:
                said.append(note)

    def _doubt(self, tag: _Tag, why: str) -> None:
        self._mended.doubts[self._lines.of(tag.start)] = (
            f"{tag.text} is in doubt: {why}",
            "; if it is intended, send this block again in a code block, each tag on its own line",
        )

    # --- bodies that were moved as a whole -----------------------------------------------------
    def _move(self, block: Block) -> None:
        """Look at what was done alike to both tags of a whole block and to every line between."""
        starts = (self._text.rfind("\n", 0, at) + 1 for at in (block.start, block.end))
        ends = ((start, scanner.line_end(self._text, start)) for start in starts)
        opening, closing = (_tag_of(self._text, *each) for each in ends)
        if opening is not None and closing is not None and opening.end < closing.start:
            self._look_at_body(opening, closing)

    def _look_at_body(self, opening: _Tag, closing: _Tag) -> None:
        """Keep in mind what both tags and each line begin with; doubt a block whose lines all end in blanks.

        Whether the indentation is the body's own is for the file on disk to say.
        """
        lines = [line for line in self._text[opening.end + 1 : closing.start].split("\n") if line.strip()]
        first, last = (self._text[tag.start : tag.end] for tag in (opening, closing))
        lead = blanks(first)
        if lead and lead == blanks(last) and all(line.startswith(lead) for line in lines):
            self._mended.leads[self._lines.of(opening.start)] = lead
        if lines and all(line[-1:] in (" ", "\t") for line in (first, last, *lines)):
            self._doubt(opening, "spaces end it and each line of its body")
