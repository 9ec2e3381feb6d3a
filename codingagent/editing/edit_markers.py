"""Recognise the markers of edits and of merge conflicts, in whatever spelling.

How it works. A block is an opening (`<<<<<<<`, or `------- SEARCH`), a middle (`=======`) and a closing
(`>>>>>>>`, or `+++++++ REPLACE`), of four to nine signs. After the signs may be a word in any
case. Words that edits use tell the block even if a marker is missing; a block without them needs all
three markers, of equal length, as version control writes them. A chat may have encoded the signs,
or escaped them. Whether such text is meant is for the caller to say.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model import chat_damage, citations
from codingagent.model.chat_damage import UNHARMED, Channel, Damage
from codingagent.model.patterns import lazy_pattern

# Words of a chat's edit; version control has others.
_ASKING_WORD = lazy_pattern("search|find|original|orig|old|before")
_ANSWERING_LABEL = lazy_pattern("(?:replaced?|updated)[:>]*", re.IGNORECASE)
_OPENING_WORD = lazy_pattern(f"{_ASKING_WORD.pattern}|head|current|ours|mine")
_CLOSING_WORD = lazy_pattern("replace|replaced|replacement|update|updated|new|after|modified|incoming|theirs")
_OPENING = lazy_pattern(
    r"[ \t]*(?:(<{4,9})(?:[ \t]*([^\s<=>].{0,120}?))?|-{4,9}[ \t]*((?:search|find)\b[:>]*))[ \t]*",
    re.IGNORECASE,
)
_MIDDLE = lazy_pattern(r"[ \t]*(={4,9})[ \t]*")
_BASE = lazy_pattern(r"[ \t]*(\|{4,9})(?:[ \t].*)?")
_CLOSING = lazy_pattern(
    r"[ \t]*(?:(>{4,9})(?:[ \t]*([^\s<=>].{0,120}?))?|\+{4,9}[ \t]*(replace\b[:>]*))[ \t]*", re.IGNORECASE
)
# Cheap, and true of every text that has an opening.
_HINT = lazy_pattern(
    r"<<<<|----[ \t]*(?:search|find)|(?:&(?:lt|#0*60|#x0*3c);){4}|(?:\\<){4}|(?:\\-){4}", re.IGNORECASE
)
_ENCODED = lazy_pattern(r"[ \t]*&(?:lt|gt|#)", re.IGNORECASE)
_ESCAPED = lazy_pattern(r"[ \t]*(?:[<=>|+-]*\\[<=>|+-])")
_FENCE = lazy_pattern(r" {0,3}(`{3,}|~{3,})")


class MarkedEdit(Struct, frozen=True):
    """One block: the index of its opening line and the one after its last line, and its two sides."""

    start: int
    end: int
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    fault: str = ""
    """What it lacks, or empty; it has no sides then."""
    label: str = ""
    """What the opening says after its signs."""
    asks: bool = False
    """Its words are those of a chat's edit, not version control's."""
    way: Channel = UNHARMED
    """The damage to its markers; its sides are as they came."""


class _Marker(Struct, frozen=True):
    index: int
    length: int
    """How many signs; 0 where the marker is another pair of signs, which needs its word."""
    is_known: bool
    """It has a word that edits use."""
    label: str = ""
    way: Channel = UNHARMED


def find_edits(
    lines: Sequence[str], *, is_prose: bool = False, has_strays: bool = False
) -> tuple[MarkedEdit, ...]:
    """Return the blocks between markers, in order; examples in prose are passed over.

    So are strays, or each marker of a chat's edit that belongs to no block is a broken one.
    """
    if not (has_strays or any(_HINT.search(line, 0, 200) for line in lines)):
        return ()
    skipped = _examples(lines) if is_prose else frozenset[int]()
    signs = [i for i, line in enumerate(lines) if _is_sign(line) and i not in skipped]
    openings, closings = (
        [marker for i in signs if (marker := read(lines[i], i)) is not None] for read in (_opening, _closing)
    )
    plain = ((i, _plain(lines[i])[0]) for i in signs)
    equals = ((i, _MIDDLE.fullmatch(line)) for i, line in plain if "====" in line[:200])
    middles = [_Marker(i, len(found[1]), is_known=False) for i, found in equals if found]
    found: list[MarkedEdit] = []
    passed: list[tuple[int, str]] = []
    for opening, after in zip_longest(openings, openings[1:]):
        limit = len(lines) if after is None else after.index
        inside = []
        for markers in (middles, closings):
            first, last = (
                bisect_left(markers, at, key=lambda marker: marker.index) for at in (opening.index, limit)
            )
            inside.append(markers[first:last])
        if (edit := _edit(lines, opening, *inside)) is not None:
            found.append(edit)
        elif _asks(opening.label):
            passed.append((opening.index, "closing"))
    if not has_strays:
        return tuple(found)
    passed += ((m.index, "opening") for m in closings if _ANSWERING_LABEL.fullmatch(m.label))
    inside_of = {at for edit in found for at in range(edit.start, edit.end)}
    strays = (
        MarkedEdit(at, at + 1, fault=f"it has no {lacks} marker", asks=True)
        for at, lacks in passed
        if at not in inside_of
    )
    return tuple(sorted((*found, *strays), key=lambda edit: edit.start))


def _is_sign(line: str) -> bool:
    """Return whether a line begins as a marker does; that is cheap to see."""
    return line.lstrip(" \t").startswith(("<", ">", "=", "-", "+", "&", "\\"))


def _asks(label: str) -> bool:
    """Return whether an opening is that of a chat's edit, not of version control."""
    return _ASKING_WORD.fullmatch(_first_word(label)) is not None


def is_doubled(lines: Sequence[str], opening: int, middle: int, close: int) -> bool:
    """Return whether a second middle marker only repeats the first, before the closing one.

    As text it would be the underline of a heading, under a short line, or all that is searched for.
    """
    if any(line.strip() for line in lines[middle + 1 : close]) or middle == opening + 2:
        return False
    above = lines[middle - 1].rstrip()
    is_title = above[:1].isalnum() and len(above) <= len(lines[middle].strip())
    return not is_title


def _edit(
    lines: Sequence[str], opening: _Marker, middles: list[_Marker], closings: list[_Marker]
) -> MarkedEdit | None:
    """Return the block that an opening begins, or None if it is no marker."""
    is_equal = [m for m in closings if m.length == opening.length]
    known = [m for m in closings if m.is_known]
    if not opening.is_known:
        # Version control's: three markers alike.
        middles = [m for m in middles if m.length == opening.length]
        closings = is_equal
        if not middles or not closings or middles[0].index > closings[-1].index:
            return None
    else:
        closings = known or is_equal or closings
        if not middles and not known:
            return None
    start = opening.index
    bare = MarkedEdit(start, start + 1, label=opening.label, asks=_asks(opening.label))
    if not closings:
        return replace(bare, fault="it has no closing marker")
    close = next((m for m in closings if m.length == opening.length), closings[0])
    inside = [m for m in middles if m.index < close.index]
    if len(inside) > 1:
        inside = [m for m in inside if m.length == opening.length] or inside
    end = close.index
    if len(inside) == 2 and is_doubled(lines, opening.index, inside[1].index, end):
        end = inside.pop().index
    bare = replace(bare, end=close.index + 1)
    if len(inside) != 1:
        what = "more than one" if inside else "no"
        return replace(bare, fault=f"it has {what} line =======")
    middle = inside[0].index
    old, new = lines[start + 1 : middle], tuple(lines[middle + 1 : end])
    base = next((i for i, line in enumerate(old) if _BASE.fullmatch(line)), len(old))
    return replace(bare, old=tuple(old[:base]), new=new, way=opening.way | close.way)


def _marker(pattern: re.Pattern[str], word: re.Pattern[str], line: str, index: int) -> _Marker | None:
    line, way = _plain(line)
    found = pattern.fullmatch(line) if len(line) <= 300 else None
    if found is None:
        return None
    label = found[2] or found[3] or ""
    is_known = word.fullmatch(_first_word(label)) is not None
    return _Marker(index, len(found[1] or ""), is_known, label, way)


_opening = partial(_marker, _OPENING, _OPENING_WORD)
_closing = partial(_marker, _CLOSING, _CLOSING_WORD)


def _plain(line: str) -> tuple[str, Channel]:
    """Return a line as it was before a chat encoded or escaped its signs, and the damage to it."""
    if "&" in line[:20] and _ENCODED.match(line):
        return chat_damage.without_entities(line), frozenset((Damage.ANGLES,))
    if "\\" in line[:20] and _ESCAPED.match(line):
        return chat_damage.without_escapes(line), frozenset((Damage.ESCAPES,))
    return line, UNHARMED


def _first_word(label: str) -> str:
    words = label.split(None, 1)
    return words[0].strip(":<>").lower() if words else ""


def _examples(lines: Sequence[str]) -> frozenset[int]:
    """Return the lines of documentation that are fenced, or as deep as a block of code."""
    inside: set[int] = set()
    fence = ""
    for index, line in enumerate(lines):
        found = _FENCE.match(line)
        if fence:
            inside.add(index)
            if found is not None and found[1].startswith(fence) and not line[found.end() :].strip():
                fence = ""
        elif found is not None:
            fence = found[1]
        elif line.startswith(("    ", "\t")):
            inside.add(index)
    return frozenset(inside)


_OURS = lazy_pattern(r"(<{7,}) ?SEARCH|(={7,})|(>{7,}) ?REPLACE")


def marker_of(line: str) -> str | None:
    """Return the marker that a line is, whatever was done to it, or None.

    Only used where the body can't be read otherwise, so that a body that holds such text is safe.
    """
    if len(line) > 200 or not any(mark in line for mark in ("SEARCH", "REPLACE", "===", "\\=")):
        return None
    text = chat_damage.with_plain_blanks(chat_damage.without_zero_width(line))
    text = citations.behind_tag(chat_damage.without_direction(text))
    text = chat_damage.without_escapes(chat_damage.without_entities(text)).strip().strip("*`~ ")
    found = _OURS.fullmatch(text)
    if found is None:
        return None
    return f"{found[1]} SEARCH" if found[1] else found[2] or f"{found[3]} REPLACE"
