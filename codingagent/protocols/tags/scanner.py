"""Find the tag blocks of an answer: where each begins and ends. Not what a block means.

How it works. The text is searched for `[NAME` and `[/NAME`, and only those at the start of a
trimmed line count. An opening that has a body is followed to its own closing line; all between is body,
whatever it looks like. Everything is found by offset and sliced once, so that ten megabytes take no longer
than copying them a few times.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from codingagent.model import citations
from codingagent.model.commands import HAS_BODY
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import Note

_CANDIDATE = lazy_pattern(r"\[/?([A-Za-z][A-Za-z0-9_]*)(?![^ \t\]\n])")
_ATTRIBUTE = lazy_pattern(
    r'[^\S\n]*(?:,[^\S\n]*)?([A-Za-z_][A-Za-z0-9_-]*)[^\S\n]*=[^\S\n]*"([^"\\\n]*(?:\\.[^"\\\n]*)*)"'
)
_HEAD_END = lazy_pattern(r"[^\S\n]*\]")
# What may be after a bare [DONE]: the end of the answer, and that of a fence round all of it.
_BEHIND_LAST = lazy_pattern(r"\s*(?:\[END\]\s*)?(?:`{3,}\s*)?")
_HEADER_VALUE = lazy_pattern(r"(session|sequence)\s*=\s*[\"'“”„«»]*([0-9A-Za-z]+)")
_ESCAPE = lazy_pattern(r'\\(["\\])')
_UNTIL = lazy_pattern(r'\buntil[ \t]*=[ \t]*"([^"\n]+)"')
# The headings of a request of ours, in whatever form a chat gives them back.
_MARK = r"[^A-Za-z0-9\n]"
_HEADINGS = {
    name: lazy_pattern(rf"^{_MARK}{{0,20}}={{3}}{_MARK}{{1,9}}{name}{_MARK}{{1,9}}={{3}}", re.MULTILINE)
    for name in ("HEADER", "PROTOCOL")
}

_WORDS = ("MESSAGE", "DONE")
"""Commands whose body is words: a link behind their tag may be one of them."""

CITED = "citation marks next to its tags were removed"
# Notes are for the model to learn from; a page of the same remark teaches no more than a few.
_NOTE_LIMIT = 12


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
    def values(self) -> dict[str, str]:
        return dict(self.attributes)

    @property
    def closing(self) -> str:
        return closing_tag(self.name, self.values.get("until"))


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


def scan_lines(text: str) -> Scan:
    r"""Find the blocks of an answer whose line ends are `\n`; all else is characters. Never raises."""
    return _Scanner(text).run()


class _Head(NamedTuple):
    """An opening tag, from `start` to after its bracket; `junk` is what could not be read."""

    name: str
    start: int
    end: int
    attributes: tuple[tuple[str, str], ...]
    until: str | None
    junk: str

    @property
    def closing(self) -> str:
        return closing_tag(self.name, self.until)


def _tag_of(names: Iterable[str], bracket: str = r"\[/?") -> re.Pattern[str]:
    """Return a pattern for the openings and closings of commands. With the bracket first, it is quick."""
    return re.compile(rf"{bracket}(?:{'|'.join(names)})(?![^ \t\]\n])")


_OPENING = _tag_of(HAS_BODY, r"\[")


class _Scanner:
    """One pass over one text; `_at` only moves forward."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._blocks: list[Block] = []
        self._header: dict[str, str] | None = None
        self._ended = False
        self._notes: list[str] = []
        self._unread: list[str] = []
        self._at = 0
        self._line_number = LineCounter(text).of
        self._lookups = 0
        self._passed_over = False
        self._ends_of: dict[str, dict[int, int]] = {}

    def run(self) -> Scan:
        while (found := _CANDIDATE.search(self._text, self._at)) is not None:
            self._at = found.end()
            start = found.start()
            if self._is_line_start(start):
                self._read_tag(found)
        parts = gaps(self._blocks, len(self._text))
        around = tuple((start, end) for start, end in parts if end - start > 1)
        has_outbox, notes, unread = self._has_outbox(around), self._notes, self._unread
        blocks = tuple(self._blocks), self._header, self._ended
        return Scan(*blocks, has_outbox, tuple(notes), around, tuple(unread))

    # --- one tag -------------------------------------------------------------------------------
    def _read_tag(self, found: re.Match[str]) -> None:
        name, start = found[1], found.start()
        if self._text[start + 1] == "/":
            if HAS_BODY.get(name) and self._text.startswith("]", found.end()):
                how = "; if the body before it contains this line as text, send the block again with"
                how += f' until="TOKEN" and [/{name} TOKEN]'
                self._note(start, f"[/{name}] closes nothing", how, is_unread=True)
        elif name in HAS_BODY:
            head = self._read_head(found)
            if HAS_BODY[name]:
                self._read_block(head)
                return
            end = line_end(self._text, head.end)
            behind = self._text[head.end : end].strip()
            is_ignored = behind and not head.junk and behind != f"[/{name}]"
            note = f"text after the tag was ignored: {_clip(behind)}"
            self._add(head, "", end, notes=(note,) if is_ignored else ())
        elif name == "REPLY":
            if self._header is None:
                # It decides whether the answer is executed at all, so it is read however it is quoted.
                self._header = dict(_HEADER_VALUE.findall(self._line(start)))
            self._at = self._read_head(found).end
        elif name == "END":
            line = self._line(start).strip()
            if "[END]" in (line, citations.behind_tag(line).strip() if line != "[END]" else ""):
                self._ended = True
        elif name.upper() in HAS_BODY:
            upper = f"names are upper case, [{name.upper()}]"
            self._note(start, f"[{name}] is no operation: {upper}")
        elif name.isupper() and self._lookups < _NOTE_LIMIT:
            # Each look ahead costs a search, so there are few of them.
            self._lookups += 1
            if self._find_closing(f"[/{name}]", found.end(), len(self._text)) is not None:
                note = f"[{name}] is no operation and was ignored"
                self._note(start, note, is_unread=True)

    def _read_head(self, found: re.Match[str]) -> _Head:
        """Read attributes from after the name up to the bracket that is outside of quotes."""
        attributes, at = _attributes(self._text, found.end())
        bracket, stop = _HEAD_END.match(self._text, at), line_end(self._text, at)
        junk = "" if bracket else self._text[at:stop].strip() or "no ]"
        until = next((value for name, value in attributes if name == "until"), None) or until_of(junk)
        end = bracket.end() if bracket else stop
        return _Head(found[1], found.start(), end, attributes, until, junk)

    def _read_block(self, head: _Head) -> None:
        name, closing = head.name, head.closing
        stop = line_end(self._text, head.end)
        behind, notes = self._text[head.end : stop].strip(), tuple[str, ...]()
        off = citations.without if name in _WORDS else citations.behind_tag
        bare = off(behind).strip() if behind else ""
        if bare != behind and (not bare or bare.endswith(closing)):
            behind, notes = bare, (CITED,)
        if head.junk:
            self._read_unreadable(head)
        elif behind.endswith(closing):
            body = self._text[head.end : self._text.rindex(closing, head.end, stop)]
            several = "two blocks on one line", "; write each on lines of its own"
            fault = several if closing in body else None
            body = f"{body}\n" if body.strip() else ""
            self._add(head, body, stop, notes=notes, fault=fault)
        elif behind:
            # A block only if its closing tag comes before another opening.
            close = self._find_closing(closing, stop, self._next_opening(stop))
            if close is None:
                self._note(head.start, f"[{name}] has text after it and no closing tag: read as prose")
                self._at = stop
                return
            # One blank parts the tag from its text; it is no part of the text.
            first = head.end + self._text.startswith(" ", head.end)
            note = "the text after the opening tag was read as the first line of the body"
            self._add_closed(head, first, close, notes=(note,))
        elif (close := self._find_closing(closing, stop, len(self._text))) is not None:
            self._add_closed(head, stop + 1, close, notes=notes, inner=head.until is None)
        elif name == "DONE" and _BEHIND_LAST.fullmatch(self._text, stop):
            how = "; write a summary and its closing tag after it"
            note = Note("a bare DONE was read as the end", how)
            self._add(head, "", stop, notes=(note,))
        else:
            self._add(head, self._text[stop + 1 :], len(self._text), closed=False)

    def _read_unreadable(self, head: _Head) -> None:
        """Pass over an opening whose attributes can't be read, and its body: it is never executed.

        Prose such as `[DONE will follow]` has no `=` and no closing tag of its own.
        """
        stop = head.end
        if self._text[head.start : stop].rstrip().endswith(head.closing):
            self._add(head, "", stop)
            return
        is_attempt = "=" in head.junk or head.attributes
        until = len(self._text) if is_attempt else self._next_opening(stop)
        close = self._find_closing(head.closing, stop, until)
        if close is not None:
            self._add_closed(head, stop + 1, close)
        elif is_attempt:
            self._add(head, self._text[stop + 1 :], len(self._text), closed=False)
        else:
            self._note(head.start, f"{_clip(self._text[head.start : stop])} was read as prose")
            self._at = stop

    # --- the outcome ---------------------------------------------------------------------------
    def _add_closed(
        self, head: _Head, body_start: int, close: int, *, notes: tuple[str, ...] = (), inner: bool = True
    ) -> None:
        text_end = self._text.rfind("\n", body_start - 1, close) + 1
        found: InnerTag | None = None
        has_inner = False
        if inner and (opening := self._next_opening(body_start - 1, text_end)) < text_end:
            line = self._line_number(opening)
            note = (
                f"an opening tag is inside this body, at line {line} of the answer, and was read"
                f" as text: if a [/{head.name}] is missing before it, send the block again; if it is"
                ' intended, use until="TOKEN"'
            )
            notes += (note,)
            # Perhaps an unclosed block with a whole request after it: headings in there are seen.
            has_inner = True
            found = self._find_inner(head, opening, text_end)
        body_text = self._text[body_start:text_end] if text_end > body_start else ""
        if found is not None and not found.closed:
            # Blocks within blocks: what follows up to the last closing tag may all be text.
            close = max(close, self._ends(head.name).get(head.start, close))
        end = line_end(self._text, close)
        if CITED not in notes and self._text[close:end].rstrip() != head.closing:
            notes += (CITED,)
        self._add(head, body_text, end, notes=notes, has_inner=has_inner, inner=found)

    def _find_inner(self, outer: _Head, at: int, end: int) -> InnerTag | None:
        """Return the first line of a body that may open the next block, with what the others say.

        One that is deeper than the block's own opening is part of a text.
        """
        depth = self._indentation(outer.start)
        first: InnerTag | None = None
        while at < end:
            tag = _OPENING.match(self._text, at)
            assert tag is not None, "an opening begins here"
            here, at = at, line_end(self._text, at)
            if self._indentation(here) <= depth and self._is_tag(here, tag.end()):
                line, inner_name = self._line(here), tag[0][1:]
                if first is None:
                    first = InnerTag(self._line_number(here), line.strip(), closed=True)
                if HAS_BODY[inner_name] and not line.rstrip().endswith(f"[/{inner_name}]"):
                    until = until_of(line)
                    closing = closing_tag(inner_name, until)
                    is_own = inner_name == outer.name and until is None
                    found = None if is_own else self._find_closing(closing, at, end)
                    if found is None:
                        return first._replace(closed=False)
                    at = line_end(self._text, found)
            at = self._next_opening(at, end)
        return first

    def _is_tag(self, start: int, at: int) -> bool:
        """Return whether a line opens a block, or tries to; prose has words after the name or the bracket."""
        line = self._line(start)
        end = _HEAD_END.match(self._text, _attributes(self._text, at)[1])
        if end is None:
            return "=" in line
        behind = line[end.end() - start :].strip()
        name = line[1:].partition("]")[0].partition(" ")[0]
        return not behind or behind.endswith(f"[/{name}]")

    def _indentation(self, offset: int) -> int:
        return offset - (self._text.rfind("\n", 0, offset) + 1)

    def _ends(self, name: str) -> dict[int, int]:
        """Return where each opening of a command is closed if blocks may be within blocks."""
        if (ends := self._ends_of.get(name)) is not None:
            return ends
        ends = self._ends_of[name] = {}
        found = [m for m in _tag_of([name]).finditer(self._text) if self._is_line_start(m.start())]
        opened: list[int] = []
        for tag in found:
            line = self._line(tag.start()).strip()
            if line == f"[/{name}]":
                if opened:
                    ends[opened.pop()] = tag.start()
            elif line[1] != "/" and until_of(line) is None and not line.endswith(f"[/{name}]"):
                opened += [tag.start()] * self._is_tag(tag.start(), tag.end())
        return ends

    def _add(  # noqa: PLR0913  # the parts of a block
        self,
        head: _Head,
        body: str,
        end: int,
        *,
        notes: tuple[str, ...] = (),
        closed: bool = True,
        has_inner: bool = False,
        inner: InnerTag | None = None,
        fault: tuple[str, str] | None = None,
    ) -> None:
        if not closed and body and not body.endswith("\n"):
            body += "\n"
        if head.junk:
            how = ': write attributes as name="value" and end the tag with ]'
            fault = f"can't read the opening tag at {_clip(head.junk)}", how
        is_doubtful = has_inner or not closed or bool(fault) or self._passed_over
        self._passed_over = False
        said = head.name, head.attributes, body, self._line_number(head.start), closed, fault, notes
        self._blocks.append(Block(*said, self._ended, head.start, end, is_doubtful, inner))
        self._at = end

    def _note(self, offset: int, text: str, advice: str = "", *, is_unread: bool = False) -> None:
        """Add a note; with `is_unread` it is of what was meant as a block, and is none."""
        if len(self._notes) < _NOTE_LIMIT:
            line = f"line {self._line_number(offset)}: "
            self._notes.append(Note(f"{line}{text}", advice) if advice else f"{line}{text}")
            self._unread += self._notes[-1:] if is_unread else []

    # --- where things are --------------------------------------------------------------------
    def _is_line_start(self, offset: int) -> bool:
        """Walk back over blanks; each run of blanks has at most one bracket after it to do so."""
        text = self._text
        while offset and text[offset - 1] != "\n":
            if not text[offset - 1].isspace():
                return False
            offset -= 1
        return True

    def _line(self, offset: int) -> str:
        return self._text[offset : line_end(self._text, offset)]

    def _find_closing(self, closing: str, start: int, end: int) -> int | None:
        """Return the offset of the first line that is the closing tag and nothing else."""
        at = self._text.find(closing, start, end)
        while at >= 0:
            if self._is_line_start(at) and not citations.behind_tag(
                self._text[at + len(closing) : line_end(self._text, at)].strip()
            ):
                return at
            # Perhaps this was meant: `> [/CREATE_FILE]`.
            self._passed_over = True
            at = self._text.find(closing, at + len(closing), end)
        return None

    def _next_opening(self, start: int, end: int | None = None) -> int:
        """Return the offset of the next line that opens one of our blocks, else `end`."""
        stop = len(self._text) if end is None else end
        starts = (found.start() for found in _OPENING.finditer(self._text, max(start, 0), stop))
        return next(filter(self._is_line_start, starts), stop)

    def _has_outbox(self, around: Iterable[tuple[int, int]]) -> bool:
        """Return whether the headings of a request are outside of blocks, or in one that may be none."""
        doubtful = ((block.start, block.end) for block in self._blocks if block.is_doubtful)
        parts, at = sorted([*around, *doubtful]), 0
        for name, heading in _HEADINGS.items():
            # The word is looked for first: that is quick.
            spans = ((max(start, at), end) for start, end in parts)
            likely = (span for span in spans if self._text.find(name, *span) >= 0)
            found = (heading.search(self._text, *span) for span in likely)
            first = next((each for each in found if each is not None), None)
            if first is None:
                return False
            at = first.start()
        return True


def is_opening(line: str, at: int) -> bool:
    """Return whether a line ends as an opening tag, from after its name on: attributes and a bracket."""
    end = _HEAD_END.match(line, _attributes(line, at)[1])
    return end is not None and not line[end.end() :].strip()


def _attributes(text: str, at: int) -> tuple[tuple[tuple[str, str], ...], int]:
    found: list[tuple[str, str]] = []
    while (attribute := _ATTRIBUTE.match(text, at)) is not None:
        name, value = attribute.groups()
        found.append((name, _ESCAPE.sub(r"\1", value) if "\\" in value else value))
        at = attribute.end()
    return tuple(found), at


def _clip(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


# --- the text of tags, and where lines are ---------------------------------------------------------------
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
