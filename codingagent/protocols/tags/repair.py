"""A reply as a chat gave it, made readable: what is certain is undone, what is in doubt is named.

How it works. The strict grammar (`tags`) reads the text first. A reply in which it finds every tag is
clean, and no byte of it is changed. Only where a tag is outside of all blocks in a damaged form,
or a block is doubtful (unclosed, unreadable, or holding what may be another tag), the lines that name
a command are looked at one by one: a line that is one of our tags once its damage is undone becomes
that tag. Then the grammar reads again. Lines keep their numbers. Closed blocks that the grammar had
no doubt about are never looked into.

Damage to whole blocks is undone for their bodies too where the two tags prove it (`_Block` below).
What the tags say of the way in general (`channel`) is kept for those who judge bodies.

Over 500 lines: one function for each damage of a tag, in the order in which they are undone.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from codingagent.model import chat_damage, commands
from codingagent.model.chat_damage import Arrival, Channel, Damage, Kept
from codingagent.protocols.tags import scanner
from codingagent.protocols.tags.scanner import Block, Scan

_LINE_ENDS = ("\r", "\x85", "<br>", "<br/>", "<br />")

# Longer lines are no tags that a chat has damaged; undoing them would only cost time.
_TAG_LIMIT_CHARACTERS = 2000
_NOTE_LIMIT = 8
# No answer has so many lines that name a command; looking at ten megabytes of them would take a minute.
_TAG_LIMIT = 20_000

_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+•‣◦]|\d{1,3}[.)])[ \t]+")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]+")
_QUOTED = re.compile(r"[ \t]*(?:>[ \t]?)+")
_WRAPPING = "*_`~"
_UNSEEN = {Damage.ZERO_WIDTH.value, Damage.BLANKS.value}
_HEAD = re.compile(r"\[(/?)[*_`~]*([A-Z][A-Z0-9_]*)[*_`~]*(?=[ \t\]])")
_VALUE_QUOTES = re.compile(
    r"""=[ \t]*(?:'([^'"\n]*)'|"([^'"\n]*)'|([^\s"'\[\]=<>&\\]+))(?=[ \t\]])"""
)
_BREAK = re.compile(r"(?:[ \t]*<br[ \t]*/?>)+[ \t]*$", re.IGNORECASE)
_COMMENT = re.compile(r"[ \t]*<!--[ \t]*(.*?)[ \t]*-->[ \t]*")
_TRAIL = re.compile(r"(?:<br[ \t]*/?>|[ \t])*$", re.IGNORECASE)
_THOUGHT = re.compile(r"\\?(?:<|&lt;)(/?)(?:think|thinking)\\?(?:>|&gt;)")
_MARK = r"[^A-Za-z0-9\n]"
_REQUEST = {
    name: re.compile(
        rf"^{_MARK}{{0,20}}={{3}}{_MARK}{{1,9}}{name}{_MARK}{{1,9}}={{3}}", re.MULTILINE
    )
    for name in ("HEADER", "PROTOCOL")
}
_ADJACENT = re.compile(r"\S[^\S\n]*\n[^\S\n]*\S")
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^`\n]*?)[ \t]*$", re.MULTILINE)
_BLANK_REST = re.compile(r"(?:\s|`{3,}|\[END\])*")


@dataclass(frozen=True, slots=True)
class Mended:
    """A reply that could be read, and what was done to it.

    `text` is what was read in the end. `ways` are what its tags have suffered, each with the line of
    the first of these. `doubts` are by the line of the opening tag: why its block is not to be
    executed. `notes_of` are by line too. `notes` are about the reply as a whole. `leads` are the
    indentation of tags that each line of their body has too, and whether they are an item of a list.
    """

    scan: Scan
    text: str
    ways: Mapping[Damage, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    notes_of: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    doubts: Mapping[int, str] = field(default_factory=dict)

    leads: Mapping[int, tuple[str, bool]] = field(default_factory=dict)


class Arrivals:
    """How each body of an answer came; blocks are asked for in their order, and each costs little."""

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

        Not those after it: what becomes of a block must not change when the answer is cut off there.
        """
        last = block.line + block.body.count("\n") + 1
        way = frozenset(d for d, line in self._mended.ways.items() if line <= last)
        lead, is_item = self._mended.leads.get(block.line, ("", False))
        return Arrival(
            way,
            lead,
            is_moved=is_item or (bool(lead) and self._is_all_indented(block, lead)),
            in_code=block.start in self._fenced,
            is_spaced=block.body.startswith("\n") and block.end <= self._spaced_to,
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
    if mended.ways or not any(_FENCE.search(text, *part) for part in scan.around):
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


def read(text: str, has_body: Mapping[str, bool]) -> Mended:
    """Find the blocks of a reply, also where a chat has damaged the tags. Never raises.

    A reply whose tags are as they should be is read as it came, but for its line ends.

    Args:
        text: the reply.
        has_body: the command names, and whether each has a body and a closing tag.
    """
    notes: list[str] = []
    text = scanner.fold_line_ends(_with_line_ends(scanner.fold_line_ends(text), notes))
    if text.startswith("\ufeff"):
        text = text.lstrip("\ufeff")
    found = scanner.scan_lines(text, has_body)
    if (changed := _without_thoughts(text, found, notes)) is not None:
        text = changed
        found = scanner.scan_lines(text, has_body)
    mender = _Mender(text, found, has_body)
    if mender.is_needed():
        mender.run()
        text = mender.text()
        found = scanner.scan_lines(text, has_body)
    if (changed := _once(text, found, notes)) is not None:
        text = changed
        found = scanner.scan_lines(text, has_body)
    found, linked = _without_links(found)
    ways = {**_with_angles(found, mender.ways), **linked}
    if not found.has_outbox and _has_damaged_request(text, found):
        found = replace(found, has_outbox=True)
    return Mended(
        found,
        text,
        ways,
        (*notes, *mender.notes()),
        {line: tuple(said) for line, said in mender.notes_of.items()},
        mender.doubts,
        mender.leads,
    )


# --- the whole reply -------------------------------------------------------------------------------


def _with_line_ends(text: str, notes: list[str]) -> str:
    r"""Return "\n" for another line end if that is the only one there is.

    A text with a tag in it is of many lines, or is one block on one line. So where not one "\n"
    stands, and the other character does are before a tag, it is the line end.
    """
    if 0 <= text.find("\n") < len(text) - 1:
        return text
    for end in _LINE_ENDS:
        if end in text and (text.startswith("[") or f"{end}[" in text):
            notes.append(
                f"its lines ended with {end.encode('unicode_escape').decode()}: read as line ends"
            )
            return text.replace("\r\n", "\n").replace(end, "\n")
    return text


def _has_damaged_request(text: str, found: Scan) -> bool:
    """Tells whether the headings of a request are outside of whole blocks, whatever a chat made of them."""
    doubtful = ((block.start, block.end) for block in found.odd if block.is_doubtful)
    parts = sorted([*found.around, *doubtful])
    header, protocol = (_first(name, text, parts) for name in _REQUEST)
    return header is not None and protocol is not None and header < protocol


def _first(name: str, text: str, parts: Iterable[tuple[int, int]]) -> int | None:
    """Return where a heading of a request is first, in these parts of a text."""
    for start, end in parts:
        if text.find(name, start, end) >= 0:
            found = _REQUEST[name].search(text, start, end)
            if found is not None:
                return found.start()
    return None


def _with_angles(found: Scan, ways: Mapping[Damage, int]) -> Mapping[Damage, int]:
    """Add what the markers of edits show: tags hold no character that HTML needs encoded but quotes."""
    for block in found.blocks:
        if (
            block.name == "EDIT_FILE"
            and not block.is_doubtful
            and "until" not in dict(block.attributes)
            and chat_damage.has_encoded_marker(block.body)
        ):
            return {**ways, Damage.ANGLES: block.line + 1}
    return ways


def _without_links(found: Scan) -> tuple[Scan, Mapping[Damage, int]]:
    """Return blocks with the paths that a messenger has made links of, and the line of the first."""
    linked = [b for b in found.blocks if any("http" in value for _, value in b.attributes)]
    made = {b.start: whole for b in linked if (whole := _unlinked(b)) is not b}
    if not made:
        return found, {}
    blocks, odd = (
        tuple(made.get(block.start, block) for block in each) for each in (found.blocks, found.odd)
    )
    return replace(found, blocks=blocks, odd=odd), {
        Damage.LINKS: min(block.line for block in made.values())
    }


def _unlinked(block: Block) -> Block:
    attributes = tuple(
        (name, chat_damage.without_links(value) if chat_damage.LINK.fullmatch(value) else value)
        for name, value in block.attributes
    )
    if attributes == block.attributes:
        return block
    note = f"the tag was read without what the chat made of it: {Damage.LINKS.value}"
    return block._replace(attributes=attributes, notes=(*block.notes, note))


def _without_thoughts(text: str, found: Scan, notes: list[str]) -> str | None:
    """Blanks what a model thought before it answered: blocks in there are drafts.

    A reply that begins with <think> is thought up to </think>. Where the opening one was lost, all
    before a </think> is thought, if that is outside of all blocks.
    """
    start = _first_word(text)
    opened = _THOUGHT.match(text, start)
    if (opened is None or opened[1]) and not any(
        text.find("/think", *part) >= 0 for part in found.around
    ):
        return None
    first = start
    end = -1
    if opened is not None and not opened[1]:
        closed = next((m for m in _THOUGHT.finditer(text, opened.end()) if m[1]), None)
        end = len(text) if closed is None else closed.end()
    for mark in _THOUGHT.finditer(text, max(end, 0)):
        if mark[1] and not _is_inside(found.blocks, mark.start(), end):
            end = mark.end()
    if end < 0:
        return None
    drafts = [block for block in found.blocks if first <= block.start < end]
    said = f", with {len(drafts)} blocks in it that were not executed" if drafts else ""
    notes.append(f"what the model thought before its answer was passed over{said}")
    return _blanked(text, first, end)


def _first_word(text: str) -> int:
    """Return where the first word is that is no fence, label or byte-order mark."""
    found = re.match(r"(?:\s|\ufeff|`{3,}[a-z]*\n|(?:plaintext|text|Copy code)\n)*", text)
    return found.end() if found else 0


def _is_inside(blocks: Sequence[Block], offset: int, behind: int) -> bool:
    """Tells whether an offset is in a block that begins after another offset; blocks are in order."""
    index = bisect_right(blocks, offset, key=lambda block: block.start) - 1
    return index >= 0 and blocks[index].start >= behind and offset < blocks[index].end


def _once(text: str, found: Scan, notes: list[str]) -> str | None:
    """Blanks an answer that stands a second time, letter by letter.

    Certain where it begins with its [REPLY] again (then it may also be cut off), or where both halves
    are the same and change files: nobody means the same changes twice. A command may be meant to run
    twice, and what repeats itself many times is something else.
    """
    blocks = found.blocks
    first, start = _headers(text, found)
    count = sum(block.start < start for block in blocks) if start >= 0 else len(blocks) // 2
    again = blocks[count:]
    if not count or not 0 < len(again) <= count or again[0].behind_end:
        return None
    if blocks[count - 1].name == "DONE":
        return None
    if start >= 0:
        answer, second = text[first : blocks[count - 1].end], text[start:].rstrip()
        is_same = answer.startswith(second) or second.startswith(answer)
    else:
        first, start = blocks[0].start, again[0].start
        # The first blocks tell most answers apart, before anything is copied.
        is_half = len(blocks) == 2 * count and _is_same(blocks[0], again[0])
        is_once = is_half and not any(_is_same(blocks[0], b) for b in blocks[1:count])
        changes = any(block.name in ("CREATE_FILE", "EDIT_FILE") for block in again)
        is_sure = is_once and changes and not any(block.is_doubtful for block in found.odd)
        is_same = is_sure and (text[first : blocks[count - 1].end] == text[start : again[-1].end])
    if not is_same:
        return None
    notes.append("the same answer stood twice in the reply: it was executed once")
    return _blanked(text, start, again[-1].end)


def _headers(text: str, found: Scan) -> tuple[int, int]:
    """Return where the answer's [REPLY …] line stands, and where again between two blocks; else -1."""
    blocks = found.blocks
    if not blocks or (first := text.find("[REPLY ", 0, blocks[0].start)) < 0:
        return -1, -1
    if not any(text.find("[REPLY ", *part) >= 0 for part in found.around if part[0]):
        return first, -1
    header = text[first : _line_end(text, first)]
    at = text.find(f"\n{header}\n", blocks[0].end - 1)
    if at < 0 or any(block.start < at < block.end - 1 for block in blocks):
        return first, -1
    return first, at + 1


def _is_same(one: Block, two: Block) -> bool:
    return (one.name, one.attributes, one.body) == (two.name, two.attributes, two.body)


def _blanked(text: str, start: int, end: int) -> str:
    """Take a part out and leave its line ends, so that all lines keep their numbers."""
    return text[:start] + "\n" * text.count("\n", start, end) + text[end:]


# --- tags ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tag:
    """A line that is a tag of ours once its damage is undone.

    `prefix` is what stood before it (a quote mark, the blanks of an indentation). `how` names what
    was undone; it is empty for a tag as it should be.
    """

    start: int
    end: int
    text: str
    name: str
    is_closing: bool
    prefix: str
    how: tuple[str, ...]
    way: Channel

    @property
    def is_one_line(self) -> bool:
        return self.text.endswith(f"[/{self.name}]") and not self.is_closing


def _undo(line: str, names: frozenset[str]) -> tuple[str, str, tuple[str, ...], Channel] | None:
    """Return a line as the tag that it is, its prefix, and what was undone; None if it is no tag."""
    how: list[str] = []
    way: set[Damage] = set()
    text = line.rstrip()
    for damage, undo in (
        (Damage.BREAKS, lambda t: _BREAK.sub("", t)),
        (Damage.ZERO_WIDTH, chat_damage.without_zero_width),
        (Damage.BLANKS, chat_damage.with_plain_blanks),
    ):
        undone = undo(text).rstrip()
        if undone != text and not _reads(text, names):
            text = undone
            way.add(damage)
    prefix, text = _without_prefix(text, how)
    # Each of these alone, then on top of one another: a tag that reads is not touched any more.
    for step in (
        lambda t: (_COMMENT.sub(r"\1", t), "a comment"),
        _unwrapped,
        lambda t: (chat_damage.with_ascii_brackets(t), Damage.BRACKETS),
        lambda t: (chat_damage.without_entities(t), Damage.ENTITIES),
        lambda t: (
            _if_reads(chat_damage.without_underscore_escapes(t), t, names),
            Damage.UNDERSCORES,
        ),
        lambda t: (chat_damage.without_escapes(t), Damage.ESCAPES),
        lambda t: (chat_damage.with_straight_quotes(t), Damage.QUOTES),
        _unwrapped,
        lambda t: (_closed_up(t), "blanks inside its brackets"),
        lambda t: (_VALUE_QUOTES.sub(_double_quoted, t), "attributes without double quotes"),
    ):
        if _reads(text, names):
            break
        undone, what = step(text)
        if undone != text:
            text = undone
            if isinstance(what, Damage):
                way.add(what)
            else:
                how.append(what)
    if not _reads(text, names):
        return None
    how.extend(damage.value for damage in Damage if damage in way)
    return text, prefix, tuple(how), frozenset(way)


def _double_quoted(found: re.Match[str]) -> str:
    return f'="{next(value for value in found.groups() if value is not None)}"'


def _closed_up(text: str) -> str:
    """Take out the blanks right inside the brackets of a tag."""
    return re.sub(r"[ \t]+\]\Z", "]", re.sub(r"\A\[[ \t]*(/?)[ \t]*(?=[A-Z])", r"[\1", text))


def _if_reads(undone: str, text: str, names: frozenset[str]) -> str:
    """Return what was undone if that alone makes a tag of it."""
    return undone if _reads(undone, names) else text


def _without_prefix(text: str, how: list[str]) -> tuple[str, str]:
    """Take off what makes a line a quote, a list item or a heading; blanks are kept as the prefix."""
    prefix = text[: len(text) - len(text.lstrip())]
    for pattern, what in (
        (_QUOTED, "quoted"),
        (_LIST_ITEM, "a list item"),
        (_HEADING, "a heading"),
    ):
        found = pattern.match(text)
        if found is not None:
            how.append(what)
            prefix = found[0]
            return prefix, text[found.end() :]
    return prefix, text[len(prefix) :]


def _unwrapped(text: str) -> tuple[str, str]:
    """Take off emphasis and code marks round a tag, and round the name in it."""
    bare = (
        text.strip(_WRAPPING).strip() if text[:1] in _WRAPPING or text[-1:] in _WRAPPING else text
    )
    bare = re.sub(r"\A\[[*_`~]*(/?)[*_`~]*([A-Z][A-Z_]*?)[*_`~]+(?=[ \]])", r"[\1\2", bare)
    return bare, "bold or code"


def _reads(text: str, names: frozenset[str]) -> bool:
    """Tells whether a line is a tag of ours as the grammar has it, with nothing after it."""
    found = _HEAD.match(text)
    if found is None or found[2] not in names or text[found.start(2) - 1] not in "[/":
        return False
    name = found[2]
    if found[1]:
        return re.fullmatch(r"\[/[A-Z_]+(?: [A-Za-z0-9._-]+)?\]", text) is not None
    if text[found.end(2)] not in " \t]":
        return False
    return scanner.is_opening(text, found.end(2)) or (
        text.endswith(f"[/{name}]")
        and scanner.is_opening(text.partition("]")[0] + "]", found.end(2))
    )


class _Mender:
    """Undoes the damage to tags in a text that the strict grammar has read."""

    def __init__(self, text: str, found: Scan, has_body: Mapping[str, bool]) -> None:
        self._text = text
        self._found = found
        self._has_body = has_body
        self._names = frozenset((*has_body, "REPLY", "END"))
        is_unseen = not text.isascii() and chat_damage.ZERO_WIDTH.search(text) is not None
        self._mention = _mention_of(tuple(has_body), unseen=is_unseen)
        self._changes: list[tuple[int, int, str]] = []
        self._said: dict[str, int] = {}
        self._lines = _LineCounter(text)
        self._looks_left, self._looked_to = _TAG_LIMIT, 0
        self._header_how: frozenset[str] = frozenset()
        self._how_before: set[str] = set()
        self.ways: dict[Damage, int] = {}
        self.notes_of: dict[int, list[str]] = {}
        self.doubts: dict[int, str] = {}
        self.leads: dict[int, tuple[str, bool]] = {}

    # --- is there anything to do ---------------------------------------------------------------

    def is_needed(self) -> bool:
        """Tells whether a tag is damaged, a block is doubtful or moved as a whole, or there are too many."""
        if any(block.is_doubtful or self._is_moved(block) for block in self._found.odd):
            return True
        is_damaged = any(self._is_damaged(start, end) for start, end in self._found.around)
        return is_damaged or not self._looks_left

    def _gaps(self, blocks: Iterable[Block]) -> Iterable[tuple[int, int]]:
        at = 0
        for block in blocks:
            yield at, block.start
            at = block.end
        yield at, len(self._text)

    def _is_damaged(self, start: int, end: int) -> bool:
        return any(tag.how for tag in self._tags_in(start, end))

    def _is_moved(self, block: Block) -> bool:
        """Tells whether both tags of a block are indented, or both end in blanks."""
        if not block.body:
            return False
        if block.start and self._text[block.start - 1] != "\n":
            return True
        opening_end = self._text.find("\n", block.start)
        return opening_end > 0 and self._text[opening_end - 1] in " \t"

    @cached_property
    def _is_all_quoted(self) -> bool:
        """Whether each line of the answer is marked as quoted: then nothing in it is another's words."""
        return all(line.startswith(">") for line in self._text.split("\n") if line.strip())

    # --- finding -------------------------------------------------------------------------------

    def _tags_in(self, start: int, end: int) -> Iterable[_Tag]:
        """Yield the lines that are tags, as they should be or damaged, in their order."""
        at = start
        while (
            self._looks_left and (mention := self._mention.search(self._text, at, end)) is not None
        ):
            self._looks_left -= 1
            self._looked_to = mention.start()
            line_start = self._text.rfind("\n", 0, mention.start()) + 1
            line_end = self._text.find("\n", mention.end())
            line_end = len(self._text) if line_end < 0 else line_end
            at = line_end
            if line_end - line_start <= _TAG_LIMIT_CHARACTERS:
                tag = self._tag(line_start, line_end)
                if tag is not None:
                    yield tag

    def _tag(self, start: int, end: int) -> _Tag | None:
        undone = _undo(self._text[start:end], self._names)
        if undone is None:
            return None
        text, prefix, how, way = undone
        head = _HEAD.match(text)
        assert head is not None, "it reads as a tag"
        return _Tag(start, end, text, head[2], bool(head[1]), prefix, how, way)

    # --- mending -------------------------------------------------------------------------------

    def run(self) -> None:
        """Goes through the tags; blocks that the grammar had no doubt about are passed by."""
        settled = {b.start: b for b in self._found.blocks if not b.is_doubtful}
        every = self._unsettled_tags(settled.values())
        closings = _Closings(every)
        inside = -1
        for index, tag in enumerate(every):
            if tag.start < inside or tag.is_closing:
                continue
            if tag.name in ("REPLY", "END") or tag.is_one_line or not self._has_body[tag.name]:
                self._put_alone(tag)
                continue
            inside = self._put_block(tag, closings, every[index + 1 : index + 2], index, len(every))
        for block in self._found.odd:
            if not block.is_doubtful and self._is_moved(block):
                self._move(block)

    def _unsettled_tags(self, settled: Iterable[Block]) -> list[_Tag]:
        self._looks_left = _TAG_LIMIT
        gaps = self._gaps(settled)
        found = [tag for start, end in gaps for tag in self._tags_in(start, end)]
        if not self._looks_left:
            line = self._lines.of(self._looked_to)
            self._say(f"line {line}: too many tags; damaged ones behind this line were not read")
        return found

    def _put_alone(self, tag: _Tag) -> None:
        if not tag.how:
            return
        if tag.name == "REPLY" and not self._header_how:
            self._header_how = frozenset(tag.how)
        # A plan may name commands in this form. The header names none: marked alike, it shows the way.
        mention = {"quoted", "a list item", "bold or code"} & set(tag.how)
        acts = (
            not commands.HAS_BODY.get(tag.name, True) and tag.name != "READ_FILE"
        ) or tag.is_one_line
        if "quoted" in mention and self._is_all_quoted:
            mention.remove("quoted")
        if acts and not mention <= self._header_how:
            self._doubt(tag, f"it stands as {tag.how[0]}, so it may only be mentioned")
        self._put(tag)

    def _put_block(
        self, tag: _Tag, closings: "_Closings", following: list[_Tag], index: int, count: int
    ) -> int:
        """Mends one block; gives the offset after it, up to which all is body."""
        closing = scanner.closing_tag(tag.name, scanner.until_of(tag.text))
        strict = closings.next(closing, tag.end, damaged=False)
        damaged = closings.next(closing, tag.end, damaged=True)
        close = self._choose(tag, strict, damaged, closings)
        if close is None:
            return self._put_unclosed(tag, following, index, count)
        is_quoted = "quoted" in tag.how and "quoted" not in self._header_how
        if is_quoted and not self._is_all_quoted:
            self._doubt(tag, "it is quoted, and no [REPLY] line before it is")
        if (inner := self._opens_alike(tag, close, closings)) is not None:
            line = self._lines.of(inner.start)
            self._doubt(
                tag, f"{inner.text} opens in it, at line {line}, so a closing tag may be missing"
            )
        self._put(tag)
        self._put(close, about=tag)
        self._put_body(tag, close)
        return close.end

    def _choose(
        self, tag: _Tag, strict: _Tag | None, damaged: _Tag | None, closings: "_Closings"
    ) -> _Tag | None:
        """Return the line that closes a block, or None if none certainly does."""
        if damaged is None or (strict is not None and strict.start < damaged.start):
            return strict
        if tag.how:
            return damaged
        # The opening came whole and this did not. With a whole one after it, this is text, unless
        # another block begins in between: then the whole one may be that block's.
        if strict is not None:
            if closings.opens_between(damaged.end, strict.start):
                self._doubt(
                    tag,
                    f"{damaged.text} stands in it in another form, at line {self._lines.of(damaged.start)}",
                )
            return strict
        # A document about these tags may hold one in this form and be cut off after it. Only a tag
        # before it that was damaged alike shows that it is none.
        # Damage that nobody sees is another matter: in a document, too, the line would close the block.
        return damaged if set(damaged.how) <= self._how_before | _UNSEEN else None

    @staticmethod
    def _opens_alike(tag: _Tag, close: _Tag, closings: "_Closings") -> _Tag | None:
        """Return an opening in a block that was damaged as the block's own was: the next one, perhaps.

        Openings as they should be are seen by the grammar.
        """
        if not tag.how or scanner.until_of(tag.text) is not None:
            return None
        for inner in closings.openings(tag.end, close.start):
            if set(inner.how) == set(tag.how) and inner.name not in ("REPLY", "END"):
                return inner
        return None

    def _put_unclosed(self, tag: _Tag, following: list[_Tag], index: int, count: int) -> int:
        if not tag.how:
            return len(self._text)
        is_last = index == count - 1 or all(each.name == "END" for each in following)
        behind = _BLANK_REST.fullmatch(self._text, tag.end)
        if is_last and (tag.name != "DONE" or behind):
            self._put(tag)
            return len(self._text)
        line = self._lines.of(tag.start)
        self._say(f"line {line}: {tag.text} has no closing tag: read as prose")
        return tag.end

    def _put(self, tag: _Tag, about: _Tag | None = None) -> None:
        for damage in tag.way:
            self.ways.setdefault(damage, self._lines.of(tag.start))
        if tag.how:
            self._how_before.update(tag.how)
            self._changes.append((tag.start, tag.end, tag.text))
            line = self._lines.of((about or tag).start)
            said = self.notes_of.setdefault(line, [])
            for what in tag.how:
                note = f"the tag was read without what the chat made of it: {what}"
                if note not in said:
                    said.append(note)

    def _doubt(self, tag: _Tag, why: str) -> None:
        self.doubts[self._lines.of(tag.start)] = (
            f"{tag.text} is in doubt: {why}; if it is meant, send this block again, each tag on a line of"
            " its own, inside of a code block"
        )

    # --- bodies that were moved as a whole -----------------------------------------------------

    def _put_body(self, opening: _Tag, closing: _Tag) -> None:
        start, end = opening.end + 1, closing.start
        if end <= start:
            return
        body = self._text[start:end]
        if "quoted" in opening.how:
            # A tag can't be quoted by itself: who quotes takes whole lines, and marks each of them.
            body = _without_lead(body, opening.prefix) or ""
            if not body:
                self._doubt(opening, "it is quoted, and lines of its body are not")
                return
            self._put_moved(opening, closing, body, "")
            return
        there = _indentation(self._text[opening.start : opening.end])
        here = _indentation(self._text[closing.start : closing.end])
        is_item = "a list item" in opening.how and len(here) == len(opening.prefix)
        self._put_moved(opening, closing, body, here if here == there or is_item else None)

    def _move(self, block: Block) -> None:
        """Undoes what was done alike to both tags of a whole block and to every line between."""
        start = self._text.rfind("\n", 0, block.start) + 1
        opening = self._tag(start, _line_end(self._text, start))
        end = self._text.rfind("\n", 0, block.end) + 1
        closing = self._tag(end, _line_end(self._text, end))
        if opening is not None and closing is not None and opening.end < closing.start:
            self._put_body(opening, closing)

    def _put_moved(self, opening: _Tag, closing: _Tag, body: str, lead: str | None) -> None:
        """Take off the blanks that both tags and each line end with; keep in mind how they all begin.

        Whether the indentation of the tags is the body's own is for the file on disk to say.

        Args:
            opening: the line that opens the block.
            closing: the line that closes it.
            body: what is between, perhaps changed already.
            lead: the indentation of both tags; None if theirs is not the same.
        """
        moved = body
        line = self._lines.of(opening.start)
        said = self.notes_of.setdefault(line, [])
        if lead and _without_lead(moved, lead, blank_may_lack=True) is not None:
            self.leads[line] = (lead, "a list item" in opening.how)
        trail = _trail_of(self._text[opening.start : opening.end])
        if trail and trail == _trail_of(self._text[closing.start : closing.end]):
            cut = _without_trail(moved, trail)
            if cut is not None:
                moved = cut
                what = "<br>" if "<" in trail else "blanks"
                said.append(f"{what} at the end of each line, of the tags too, were taken off")
            elif "<" in trail:
                self._doubt(opening, "it ends with <br>, and lines of its body do not")
        start, end = opening.end + 1, closing.start
        if moved != self._text[start:end]:
            self._changes.append((start, end, moved))

    # --- the outcome ---------------------------------------------------------------------------

    def text(self) -> str:
        """Return the text with all changes made."""
        parts: list[str] = []
        at = 0
        for start, end, new in sorted(self._changes):
            parts += (self._text[at:start], new)
            at = end
        return "".join((*parts, self._text[at:]))

    def notes(self) -> tuple[str, ...]:
        return tuple(self._said)

    def _say(self, note: str) -> None:
        if len(self._said) < _NOTE_LIMIT:
            self._said[note] = 1


class _Closings:
    """Where closing tags stand, each kind in its order; a search in them never looks at one twice."""

    def __init__(self, every: Iterable[_Tag]) -> None:
        self._by_text: dict[tuple[str, bool], list[_Tag]] = {}
        self._openings: list[_Tag] = []
        for tag in every:
            if tag.is_closing:
                self._by_text.setdefault((tag.text, bool(tag.how)), []).append(tag)
            else:
                self._openings.append(tag)

    def next(self, closing: str, offset: int, *, damaged: bool) -> _Tag | None:
        found = self._by_text.get((closing, damaged), [])
        index = bisect_left(found, offset, key=lambda tag: tag.start)
        return found[index] if index < len(found) else None

    def openings(self, start: int, end: int) -> Iterable[_Tag]:
        """Yield the openings between two offsets."""
        for index in range(bisect_left(self._openings, start, key=_start), len(self._openings)):
            if self._openings[index].start >= end:
                return
            yield self._openings[index]

    def opens_between(self, start: int, end: int) -> bool:
        return any(True for _ in self.openings(start, end))


def _start(tag: _Tag) -> int:
    return tag.start


class _LineCounter:
    """Gives the line of offsets; one near the last one costs little."""

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


@cache
def _mention_of(names: tuple[str, ...], *, unseen: bool) -> re.Pattern[str]:
    """Return a pattern that finds the names of commands, whatever became of the `_` in them.

    Args:
        names: the commands.
        unseen: characters that nobody sees may be between any two.
    """
    joint = r"(?:_|[^\sA-Za-z0-9]{1,9}|&#[xX]?[0-9A-Fa-f]{2,4};)"
    between = f"(?:{chat_damage.ZERO_WIDTH.pattern})*" if unseen else ""
    parts = ([between.join(part) for part in name.split("_")] for name in (*names, "REPLY", "END"))
    words = map(joint.join, parts)
    return re.compile(f"(?:{'|'.join(words)})(?![A-Za-z0-9])")


def _without_lead(body: str, lead: str, *, blank_may_lack: bool = False) -> str | None:
    """Return a body without what each of its lines begins with; None if one does not."""
    lines = body.split("\n")
    bare = lead.rstrip()
    out: list[str] = []
    for line in lines:
        if line.startswith(lead):
            out.append(line[len(lead) :])
        elif not line.strip() or (bare and line.rstrip() == bare and not blank_may_lack):
            out.append("")
        else:
            return None
    return "\n".join(out)


def _trail_of(line: str) -> str:
    found = _TRAIL.search(line)
    return "" if found is None else found[0]


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


def _without_trail(body: str, trail: str) -> str | None:
    """Return a body without what each of its lines ends with; None if one that has a word does not."""
    lines = body.split("\n")
    if any(line.strip() and not line.endswith(trail) for line in lines):
        return None
    return "\n".join(line.removesuffix(trail) if line.strip() else "" for line in lines)


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
