"""What the way through a chat does to text, and how each such damage is undone; not where it is undone.

A damage is undone by one function from text to text. Whether it may be undone is for the callers to
prove: `characters` from the tags of the same answer, from the file on disk and from its kind.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Damage(Enum):
    """A change of characters, by the name that results give it."""

    ESCAPES = "Markdown escapes"
    UNDERSCORES = "escaped underscores"
    ENTITIES = "HTML entities"
    ANGLES = "HTML entities in place of <, > and &"
    QUOTES = "typographic quotes"
    BLANKS = "no-break spaces"
    ZERO_WIDTH = "zero-width characters"
    BRACKETS = "full-width brackets"
    LINKS = "links in place of file names"
    DASHES = "typographic dashes and dots"
    BREAKS = "<br> at the ends of lines"


Channel = frozenset[Damage]
"""What the tags of a reply show that its text has suffered on the way."""

UNHARMED: Channel = frozenset()


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a text came through a chat, as far as the answer around it shows.

    `way` is what the tags up to its own have suffered. `lead` is the indentation of its tags, which every
    line of it has too, so that it may be the chat's or its own; `is_moved` tells that more than its own
    tags is indented so. `in_code` tells that it came in a code block, where blanks are not lost, and
    `is_spaced` that no line of the answer follows another without a blank one between.
    """

    way: Channel = UNHARMED
    lead: str = ""
    is_moved: bool = False
    in_code: bool = False
    is_spaced: bool = False


AS_IT_IS = Arrival()

# CommonMark 2.4: any ASCII punctuation may be escaped.
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
# A chat that escapes one of these escapes all: they are what makes emphasis and links.
_INLINE_ESCAPE = re.compile(r"\\([_*\[\]])")
_BARE_INLINE = re.compile(r"(?<!\\)[_\[\]]")

# What serializers of HTML write, and no others: `&copy;` was never a plain character of a program.
ENTITY = re.compile(
    r"&(?:lt|gt|amp|quot|apos|#0*(?:34|38|39|60|62|91|93|95)|#[xX]0*(?:2[267]|3[ceCE]|5[bdfBDF]));"
)
_ENTITY_NAMES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}

_QUOTES = str.maketrans({**dict.fromkeys("“”„‟″＂", '"'), **dict.fromkeys("‘’‚‛′", "'")})
_BLANKS = str.maketrans(
    dict.fromkeys(
        "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
        " ",
    )
)
_ZERO_WIDTH = str.maketrans(dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad"))
_BRACKETS = str.maketrans("［］【】〔〕〖〗", "[][][][]")

TYPOGRAPHIC = re.compile("[“”„‟″＂‘’‚‛′]")
ODD_BLANK = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]|&nbsp;")
ZERO_WIDTH = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")
FULL_WIDTH = re.compile("[［］【】〔〕〖〗]")


def without_escapes(text: str) -> str:
    """Undoes every escape of CommonMark, also that of the backslash."""
    return _ESCAPE.sub(r"\1", text) if "\\" in text else text


def without_inline_escapes(text: str) -> str:
    """Undoes the escapes of `_`, `*`, `[` and `]` only."""
    return _INLINE_ESCAPE.sub(r"\1", text) if "\\" in text else text


def without_underscore_escapes(text: str) -> str:
    """Undoes the escape of `_` only."""
    return text.replace("\\_", "_")


def without_entities(text: str) -> str:
    """Decode once what a serializer of HTML has to encode, and nothing else."""
    return ENTITY.sub(_decoded, text) if "&" in text else text


def _decoded(found: re.Match[str]) -> str:
    name = found[0][1:-1]
    if not name.startswith("#"):
        return _ENTITY_NAMES[name]
    return chr(int(name[2:], 16) if name[1] in "xX" else int(name[1:]))  # noqa: FURB166  # "0x" does not stand there


def with_straight_quotes(text: str) -> str:
    """Return ASCII quotes for typographic ones."""
    return text if text.isascii() else text.translate(_QUOTES)


def with_plain_blanks(text: str) -> str:
    """Return ordinary blanks for no-break and other wide or narrow ones."""
    text = text.replace("&nbsp;", " ") if "&nbsp;" in text else text
    return text if text.isascii() else text.translate(_BLANKS)


def without_zero_width(text: str) -> str:
    """Take out what has no width: byte-order marks, joiners, soft hyphens."""
    return text if text.isascii() else text.translate(_ZERO_WIDTH)


def with_ascii_brackets(text: str) -> str:
    """Return ASCII brackets for full-width ones."""
    return text if text.isascii() else text.translate(_BRACKETS)


LEADING_BLANK = re.compile("^[ \t]*(?:[\u00a0\u3000]|&nbsp;)")
_LEAD = re.compile("(?:[ \t\u00a0\u3000]|&nbsp;)+")


def with_plain_indentation(text: str) -> str:
    """Return ordinary blanks for those at the start of a line."""
    found = _LEAD.match(text)
    return text if found is None else with_plain_blanks(found[0]) + text[found.end() :]


# What messengers make of a file name whose ending is a country's: [x.py](http://x.py), <http://x.py|x.py>.
LINK = re.compile(r"\[([\w./+-]+\.\w+)\]\(<?https?://\1/?>?\)|<https?://([\w./+-]+\.\w+)/?\|\2>")


def without_links(text: str) -> str:
    """Return file names for links that only repeat them."""
    if "http" not in text:
        return text
    return LINK.sub(lambda found: found[1] or found[2], text)


DASH = re.compile("[\u2010\u2011—…]")
_DASHES = str.maketrans({"\u2010": "-", "\u2011": "-", "—": "--", "…": "..."})


def with_plain_dashes(text: str) -> str:
    """Return what a keyboard has for dashes and dots that were set in their place."""
    return text if text.isascii() else text.translate(_DASHES)


@dataclass(frozen=True, slots=True)
class Row:
    """One damage to characters.

    `trace` finds what it leaves behind, `undo` takes that back, and each of `plain` is a character that
    it would not have left: one of them in a text shows that the text was spared.
    """

    damage: Damage
    trace: re.Pattern[str]
    undo: Callable[[str], str]
    plain: str


ESCAPE = _ESCAPE
_ESCAPED = "`*_[]"
ROWS = (
    Row(Damage.ZERO_WIDTH, ZERO_WIDTH, without_zero_width, ""),
    Row(Damage.BLANKS, LEADING_BLANK, with_plain_indentation, ""),
    Row(Damage.BLANKS, ODD_BLANK, with_plain_blanks, " "),
    Row(Damage.BRACKETS, FULL_WIDTH, with_ascii_brackets, "[]"),
    Row(Damage.LINKS, LINK, without_links, ""),
    Row(Damage.ENTITIES, ENTITY, without_entities, "<>&"),
    Row(Damage.UNDERSCORES, re.compile(r"\\_"), without_underscore_escapes, "_"),
    Row(Damage.ESCAPES, ESCAPE, without_escapes, _ESCAPED),
    Row(Damage.ESCAPES, _INLINE_ESCAPE, without_inline_escapes, _ESCAPED),
    Row(Damage.QUOTES, TYPOGRAPHIC, with_straight_quotes, "\"'"),
    Row(Damage.DASHES, DASH, with_plain_dashes, ""),
)


def is_escaped_throughout(text: str) -> bool:
    """Tells whether a text is what a chat that escapes makes, with nothing in it that it would not.

    Such a chat escapes each `_`, `[`, `]` and each backslash. So a bare one of these, or a backslash
    before a letter (LaTeX, a regular expression, "\\n"), shows that the text did not pass there.
    """
    pairs = _ESCAPE.findall(text)
    rest = _ESCAPE.sub("", text)
    return any(c in "_[]" for c in pairs) and "\\" not in rest and not _BARE_INLINE.search(rest)


def is_spared_by_escapes(text: str) -> bool:
    """Tells whether a text shows that no chat has escaped it: a bare `_` or bracket, and no escaped one.

    A chat escapes no code, so a text with code fences may hold both.
    """
    if "```" in text or "~~~" in text or re.search(r"\\[`_*\[\]]", text):
        return False
    return _BARE_INLINE.search(text) is not None


def has_escapes(text: str) -> bool:
    """Tells whether a text has what could be an escape of Markdown."""
    return "\\" in text and _ESCAPE.search(text) is not None


def is_encoded_throughout(text: str) -> bool:
    """Tells whether entities are in a text, and nothing that a serializer of HTML would have encoded."""
    rest = ENTITY.sub("", text)
    return len(rest) != len(text) and not any(c in rest for c in '<>"&')


_ENCODED_MARKER = re.compile(
    r"^[ \t]*(?:(?:&lt;){5,} ?SEARCH|(?:&gt;){5,} ?REPLACE)[ \t]*$", re.MULTILINE
)


def has_encoded_marker(body: str) -> bool:
    """Tells whether a marker of an edit is in a body with entities for its characters."""
    return ("&lt;" in body or "&gt;" in body) and _ENCODED_MARKER.search(body) is not None
