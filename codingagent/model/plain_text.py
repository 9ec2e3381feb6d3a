"""Sanitize and shorten text from commands and models, for a terminal and for the next request."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Self

from msgspec import json, to_builtins

from codingagent.model.patterns import lazy_pattern

# ECMA-48: CSI, then OSC, DCS, SOS, PM and APC up to their end (or the end of the line, for a string
# that never ends), then the two-character escapes, then stray C0 and C1 controls.
_CONTROL = lazy_pattern(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


DOUBT = "written as it came"
"""How a note ends that doubts an edit: DONE waits until the model has looked at it."""


class Note(str):
    """A note for the model; `fact` is what the person reads of it."""

    __slots__ = ("fact",)
    fact: str

    def __new__(cls, fact: str, advice: str) -> Self:
        note = super().__new__(cls, fact + advice)
        note.fact = fact
        return note


def parted(notes: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return notes for the model, and as the person reads them; the latter are empty if they are the same."""
    whole = tuple(map(str, notes))
    facts = tuple(note.fact if isinstance(note, Note) else note for note in notes)
    return whole, () if facts == whole else facts


def joined(lines: Iterable[str]) -> str:
    return "\n".join((*lines, ""))


def estimated(tokens: int) -> str:
    """Return an estimated number of tokens, in two digits: `~1,600 tokens`."""
    return f"~{round(tokens, 2 - len(str(tokens))):,} tokens"


def blanks(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def without_controls(text: str) -> str:
    """Return the text without terminal control sequences; of a redrawn line, the last drawing."""
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _CONTROL.sub("", text)


def on_screen(text: str, spaces: tuple[str, ...] = ("Zs", "Co")) -> str:
    """Return a text as a person may see it: each character that is no sign, or shows as none, is escaped.

    Nothing is left out or drawn over. CRLF is a line end where all lines have it. `spaces` are the categories
    that stay besides what is printed.
    """
    if text.isascii() and text.isprintable():
        return text
    (text,) = uniform(text) if spaces and "\r\n" in text else (text,)
    unseen = {ord(c): escaped(c) for c in set(text) if _is_unseen(c, spaces)}
    text = text.translate(unseen) if unseen else text
    return text if text.isascii() else _IN_CONTEXT.sub(lambda found: found[1] or escaped(found[0]), text)


def without_unseen(text: str) -> str:
    """Return the text without controls, direction marks and all else that nobody sees; all words stay."""
    clean = text.translate({ord(c): None for c in set(text) if _is_unseen(c, ("Zs", "Co"))})
    return _IN_CONTEXT.sub(lambda found: found[1] or "", clean)


def _is_unseen(character: str, spaces: tuple[str, ...]) -> bool:
    # Wide spaces are seen as such, and private characters are the icons of some fonts.
    if character.isprintable():
        return character in _EMPTY
    return character not in "\n\t" + _JOINERS and unicodedata.category(character) not in spaces


# Letters and marks that show nothing.
_EMPTY = frozenset(map(chr, (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0)))
# A variation selector chooses the form of a sign before it; any other hides text that nobody sees.
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
# Signs that are joined to one, and scripts whose letters are.
_JOINERS = "\u180e\u200c\u200d"
_EMOJI = "[\u2190-\u2bff\U0001f000-\U0001faff]"
_CURSIVE = "[\u0600-\u061b\u061d-\u109f\u1780-\u180a\u1810-\u1aff\ua840-\ua9ff]"
_IN_CONTEXT = lazy_pattern(
    rf"((?:[^\w\s{_SELECTORS}]|ℹ|Ⓜ)[\ufe0e\ufe0f]|[0-9]\ufe0f(?=\u20e3)|[\u1800-\u18af][\u180b-\u180f]"
    r"|[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff][\ufe00-\ufe02\U000e0100-\U000e01ef]"
    rf"|(?:(?<={_EMOJI})|(?<={_EMOJI}\ufe0f))\u200d(?={_EMOJI})|(?<={_CURSIVE})[{_JOINERS}](?={_CURSIVE}))"
    rf"|[{_SELECTORS}{_JOINERS}]"
)


def escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def unmasked(text: str) -> str:
    """Return a command as a person may see it: no space passes for another, and no line end."""
    return on_screen(text, ())


_BARE_END = lazy_pattern(r"^(?!@@ |\\ No)[^\n]*(?<!\r)\n(?!\\ No)", re.MULTILINE)


def uniform(*texts: str) -> tuple[str, ...]:
    """Return texts, or hunks of a diff, without the CR that ends all lines; if a line has none, all stay."""
    has_bare = any(map(_BARE_END.search, texts))
    return texts if has_bare else tuple(text.replace("\r\n", "\n") for text in texts)


# A form feed parts the pages of some sources, and moves nothing.
_RAW = {c: f"\\u{c:04x}" for c in (*range(32), *range(127, 160)) if chr(c) not in "\t\n\f"}
WRITTEN = lazy_pattern(r"\\u(00(?:[01][0-9a-f]|7f|[89][0-9a-f]))")


def in_request(text: str) -> str:
    """Return a text with controls, which a chat's terminal would obey, escaped as JSON does it."""
    return text.translate(_RAW)


def with_controls(text: str) -> str:
    """Return a text that a model copied from a request, with the control characters of the file."""
    return WRITTEN.sub(lambda found: chr(int(found[1], 16)), text)


def clip_middle(text: str, limit: int, dropped: int = 0) -> str:
    """Return about `limit` characters, head and tail; how many are left out is said, `dropped` ones too."""
    left_out = max(len(text) - limit, 0) + dropped
    if not left_out:
        return text
    half = min(limit, len(text)) // 2
    head, tail = text[:half], text[len(text) - half :]
    # Cut at line ends where one is near.
    head_end, tail_start = head.rfind("\n") + 1, tail.find("\n") + 1
    head = head[:head_end] if head_end > half * 3 // 4 else head
    tail = tail[tail_start:] if 0 < tail_start < half // 4 else tail
    left_out = len(text) - len(head) - len(tail) + dropped
    return f"{head.rstrip(chr(10))}\n… {left_out} characters left out …\n{tail}"


def without_halves(text: str) -> str:
    """Replace lone surrogates, bytes that are not UTF-8, with `?`: UTF-8 and JSON hold none."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def in_json(value: object) -> bytes:
    """Return a value as JSON, without lone surrogates."""
    try:
        return json.encode(value)
    except UnicodeEncodeError:
        from json import dumps  # lets them pass

        return without_halves(dumps(to_builtins(value), ensure_ascii=False)).encode()


_CONTROLS = tuple(map(chr, range(32)))


def json_length(text: str) -> int:
    """Return roughly how many characters a text takes in JSON, where a control character takes six."""
    return len(text) + 5 * sum(map(text.count, _CONTROLS)) - 4 * text.count("\n")


def one_line(text: str, limit: int = 200) -> str:
    """Return the first line of a text, clipped and sanitized, with the number of lines that follow."""
    text = unmasked(text.strip("\n"))
    first, _, rest = text.partition("\n")
    if len(first) > limit:
        return f"{first[:limit]}…"
    more = rest.count("\n") + 1 if rest else 0
    return first if not more else f"{first} … (+{more} {plural(more, 'line')})"


def some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def as_typed(text: str) -> str:
    """Return a typed line for comparison: in small letters, wide ones as the usual ones."""
    return unicodedata.normalize("NFKC", text).strip().lower()


def plural(number: int, one: str, many: str = "") -> str:
    return one if number == 1 else many or f"{one}s"
