"""Character damage by chats, each with its inverse; that undoing is right, the caller must prove."""

import re
from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

from msgspec import Struct

from codingagent.model import citations
from codingagent.model.patterns import lazy_pattern

F = TypeVar("F")


class Rule(Struct, Generic[F], frozen=True):
    """A row of a table of rules by which a damaged answer is read: its function `run`, which the loop calls.

    `name` is that on the help page `answers`; `said` goes into the result (`{…}` for what differs).
    """

    name: str
    said: str
    run: F


class Damage(Enum):
    """A kind of character damage, by its name in results."""

    ESCAPES = "Markdown escapes"
    UNDERSCORES = "escaped underscores"
    ENTITIES = "HTML entities"
    ANGLES = "HTML entities in place of <, > and &"
    QUOTES = "typographic quotes"
    BLANKS = "no-break spaces"
    ZERO_WIDTH = "zero-width characters"
    BRACKETS = "full-width brackets"
    LINKS = "links in place of file names"
    HYPHENS = "no-break hyphens"
    DASHES = "typographic dashes and dots"
    CITATIONS = "citation marks"
    DIRECTION = "direction marks"
    CONTROLS = "control characters written out"


Channel = frozenset[Damage]

UNHARMED: Channel = frozenset()


class BodyEvidence(Struct, frozen=True):
    """How a text came through a chat, as far as the answer around it shows.

    `way` is the damage to the tags up to its own. `lead` is the indentation of its tags, which
    every line of the text has too: it may be the chat's or the text's own. `is_moved` means that
    all above it is indented this way. `in_code` means that it came in a code block, where spaces
    are not lost; `is_spaced` that a blank line follows every line of the answer; `is_one_line` that
    it is on one line with its tags.
    """

    way: Channel = UNHARMED
    lead: str = ""
    is_moved: bool = False
    in_code: bool = False
    is_spaced: bool = False
    is_one_line: bool = False


AS_IT_IS = BodyEvidence()
# CommonMark 2.4: any ASCII punctuation may be escaped.
ESCAPE = lazy_pattern(r"\\([!-/:-@\[-`{-~])")
# A chat that escapes one of these escapes them all: they form emphasis and links.
_INLINE_ESCAPE = lazy_pattern(r"\\([_*\[\]])")
_BARE_INLINE = lazy_pattern(r"(?<!\\)[_\[\]]")

# Only what HTML serializers write, and letters of other scripts: `&copy;` was never a plain character.
ENTITY = lazy_pattern(
    r"&(?:lt|gt|amp|quot|apos|#0*(?:34|38|39|60|62|91|93|95|8[89]\d|9\d\d|[1-7]\d{3}|1[2-9]\d{3}|[2-6]\d{4})"
    r"|#[xX]0*(?:2[267]|3[ceCE]|5[bdfBDF]|[3-9a-fA-F][\da-fA-F]{2,3}|1[\da-fA-F]{3}));"
)

UNDERSCORE = lazy_pattern(r"\\_")
TYPOGRAPHIC = lazy_pattern("[“”„‟″＂‘’‚‛′]")
ODD_BLANK = lazy_pattern("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]|&nbsp;")
ZERO_WIDTH = lazy_pattern("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")
# Persian, the languages of India and emoji are written with the joiners.
_NO_JOINER = lazy_pattern("[\u200b\u2060\ufeff\u00ad]")
FULL_WIDTH = lazy_pattern("[［］【】〔〕〖〗]")
HYPHEN = lazy_pattern("[\u2010\u2011]")
DASH = lazy_pattern("[—…]")
# Messengers turn a file name whose extension is also a country's domain into a link:
# [x.py](http://x.py), <http://x.py|x.py>.
LINK = lazy_pattern(r"\[([\w./+-]+\.\w+)\]\(<?https?://\1/?>?\)|<https?://([\w./+-]+\.\w+)/?\|\2>")
_PLAIN = dict.fromkeys("“”„‟″＂", '"') | dict.fromkeys("‘’‚‛′", "'") | {"—": "--", "…": "..."}
_PLAIN |= zip("［］【】〔〕〖〗", "[][][][]", strict=True)


def _plain(found: re.Match[str]) -> str:
    return _PLAIN[found[0]]


def _character(found: re.Match[str]) -> str:
    from html import unescape  # its table takes long to import

    # What stands for no character is left: half of a pair.
    return unescape(found[0]).replace("\ufffd", "") or found[0]


def _undoing(trace: re.Pattern[str], plain: str | Callable[[re.Match[str]], str]) -> Callable[[str], str]:
    """Return what puts plain text in the place of all that a pattern matches, once."""
    return lambda text: trace.sub(plain, text)


without_escapes = _undoing(ESCAPE, r"\1")
without_entities = _undoing(ENTITY, _character)
with_straight_quotes = _undoing(TYPOGRAPHIC, _plain)
without_zero_width = _undoing(ZERO_WIDTH, "")
with_ascii_brackets = _undoing(FULL_WIDTH, _plain)
with_plain_blanks = _undoing(ODD_BLANK, " ")

LEADING_BLANK = lazy_pattern("^[ \t]*(?:[\u00a0\u3000]|&nbsp;)")
_LEAD = lazy_pattern("^(?:[ \t\u00a0\u3000]|&nbsp;)+")


def _plain_lead(found: re.Match[str]) -> str:
    # U+3000 is as wide as two.
    return with_plain_blanks(found[0].replace("\u3000", "  "))


# They turn the direction in which a line is shown; a page for Arabic or Hebrew puts one before each.
_TURN = "[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]"
TURN = lazy_pattern(_TURN)
_MARGIN = lazy_pattern(rf"^([ \t]*){_TURN}+([^\n]*?){_TURN}*$", re.MULTILINE)
_END = "[\u200e\u200f\u061c]+$"
MARGIN = lazy_pattern(rf"^[ \t]*{_TURN}|{_END}", re.MULTILINE)


def without_direction(text: str) -> str:
    """Remove direction marks before each line, and those behind it that belong to them."""
    return text if text.isascii() else re.sub(_END, "", _MARGIN.sub(r"\1\2", text), flags=re.MULTILINE)


class DamageRow(Struct, frozen=True):
    """One kind of character damage: `trace` matches its marks and `undo` reverses it."""

    damage: Damage
    trace: re.Pattern[str]
    undo: Callable[[str], str]
    plain: str
    """Characters of which it leaves none: one of them in a text shows that the text was spared."""


_ESCAPED = "`*_[]"
ROWS = (
    DamageRow(Damage.CITATIONS, citations.ANY, citations.without, ""),
    DamageRow(Damage.DIRECTION, MARGIN, without_direction, ""),
    DamageRow(Damage.ZERO_WIDTH, _NO_JOINER, _undoing(_NO_JOINER, ""), ""),
    DamageRow(Damage.BLANKS, LEADING_BLANK, _undoing(_LEAD, _plain_lead), ""),
    DamageRow(Damage.BLANKS, ODD_BLANK, with_plain_blanks, " "),
    DamageRow(Damage.BRACKETS, FULL_WIDTH, with_ascii_brackets, "[]"),
    DamageRow(Damage.LINKS, LINK, _undoing(LINK, lambda found: found[1] or found[2]), ""),
    DamageRow(Damage.ENTITIES, ENTITY, without_entities, "<>&"),
    DamageRow(Damage.UNDERSCORES, UNDERSCORE, _undoing(UNDERSCORE, "_"), "_"),
    DamageRow(Damage.ESCAPES, ESCAPE, without_escapes, _ESCAPED),
    DamageRow(Damage.ESCAPES, _INLINE_ESCAPE, _undoing(_INLINE_ESCAPE, r"\1"), _ESCAPED),
    DamageRow(Damage.QUOTES, TYPOGRAPHIC, with_straight_quotes, "\"'"),
    DamageRow(Damage.HYPHENS, HYPHEN, _undoing(HYPHEN, "-"), ""),
    DamageRow(Damage.DASHES, DASH, _undoing(DASH, _plain), ""),
)


def is_escaped_throughout(text: str) -> bool:
    """Return whether all that a chat escapes is escaped, and no bare `_`, bracket or "\\n" is there."""
    pairs = ESCAPE.findall(text)
    rest = ESCAPE.sub("", text)
    return any(c in "_[]" for c in pairs) and "\\" not in rest and not _BARE_INLINE.search(rest)


def is_spared_by_escapes(text: str) -> bool:
    """Return whether no chat escaped a text: it has bare `_` or brackets, no escaped ones, no code fence."""
    if "```" in text or "~~~" in text or re.search(r"\\[`_*\[\]]", text):
        return False
    return _BARE_INLINE.search(text) is not None


_ENCODED_MARKER = lazy_pattern(r"^[ \t]*(?:(?:&lt;){5,} ?SEARCH|(?:&gt;){5,} ?REPLACE)[ \t]*$", re.MULTILINE)


def has_encoded_marker(body: str) -> bool:
    """Return whether a body holds an edit marker whose characters are entities."""
    return ("&lt;" in body or "&gt;" in body) and _ENCODED_MARKER.search(body) is not None
