"""Decode a file's bytes to text by what it says or its letters show, and encode it back to the same bytes."""

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from codingagent.errors import OperationError
from codingagent.model.paths import shown
from codingagent.model.patterns import alternatives, lazy_pattern, sections

Encoding = Literal["utf-8", "base64"]
"""How a file's content is represented where it has to be text."""

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# In this order: the mark of UTF-32 begins with one of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
# Bytes of ASCII that switch to other letters.
_SHIFTED = ("iso2022_jp", "iso2022_jp_2", "iso2022_jp_ext", "iso2022_kr")
_ASCII = bytes(range(0x80))
# Blanks of other scripts are bytes that encodings do not share.
_WORDS = lazy_pattern(r"[^ \t\r\n\f\v]+")

_TABLES = sections(__file__)
# What a file says of itself; then vim, which looks at both ends.
_HEAD = alternatives(_TABLES["named"], re.IGNORECASE | re.MULTILINE)
_VIM = lazy_pattern(r"\b(?:vim?|ex):[^\n]*?\b(?:fileencoding|fenc)=([-\w.]+)", re.IGNORECASE)
_HEAD_CHARACTERS, _VIM_CHARACTERS = 2_000, 500

_MORE, _LESS = (
    dict(pair.split("=") for pair in _TABLES[name].split()) for name in ("called by less", "called by more")
)
_ALIKE = tuple(tuple(line.split()) for line in _TABLES["alike"].splitlines())
_USUAL = frozenset(_TABLES["usual"].split())
# By the number of words that are not ASCII: what part of the best one's confidence keeps another in the race.
# Fitted on messages of Django in 36 languages and their encodings: of 6,384 new lines none was written wrong.
_LEAST_PARTS = ((3, 0.05), (6, 0.3), (15, 0.7))
_LEAST_PART = 0.9
_EVIDENCE_BYTES, _WORDS_CHARACTERS = 16_384, 2_000
# Some languages have no blanks between words.
_WORD_BYTES = 8
_WORDS_AN_ODD_ONE = 4
# They are written without blanks between other letters.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH", "HALFWIDTH", "IDEOGRAPHIC")


class FileText(Struct, frozen=True):
    """A file's text, and how to write it back: bytes that are not edited stay as they were."""

    text: str
    codec: str
    mark: bytes
    others: tuple[str, ...] = ()
    """Encodings that it may have as well; "?": any."""

    def encode(self, text: str) -> bytes:
        """Return the file's new bytes; OperationError if its encoding lacks a character or is not certain."""
        codec, said = self.codec, declared(text)
        if said and said != codec and said != declared(self.text):
            if self.text.isascii() and not self.mark and decoded(b"a", said) == "a":
                codec = said
            elif not text.isascii() and codec not in alike(said):
                fact = f"The text would say that it is {said}, but the file is {codec}"
                raise OperationError(fact, advice="; leave that line as it is, or replace the file whole")
        if self.others:
            # Only words of the file are certain, and those that are the same bytes in all its encodings.
            may_be, known = (self.codec, *self.others), {*_WORDS.findall(self.text)}
            new = (w for w in _WORDS.findall(text) if not (w.isascii() or w in known))
            is_open = "?" in may_be
            doubtful = (w for w in new if is_open or len({_tried(w, each) for each in may_be}) > 1)
            if (word := next(doubtful, None)) is not None:
                names = "" if is_open else f" ({' or '.join(may_be[:3])})"
                raise OperationError(
                    f"The file is not UTF-8, and which encoding it has{names} is not certain. Nothing was"
                    f" written: '{shown(word[:40])}' is not the same bytes in all",
                    advice=". Use ASCII, and words that"
                    " the file has; or ask the user to name it in .editorconfig (charset = ...)",
                )
        return self.mark + _encoded(text, codec, "surrogateescape" if codec == "utf-8" else "strict")


def encode_whole(text: str, old: FileText | None) -> tuple[bytes, str]:
    """Return a whole file's bytes, and a note on a new encoding; OperationError where none is certain."""
    said = declared(text)
    if old is None:
        return _encoded(text, said or "utf-8"), ""
    is_kept = said in ("", declared(old.text), *alike(old.codec))
    if not is_kept and not old.text.isascii():
        return _encoded(text, said), f"it is {said} now, as its own text says; it was {old.codec}"
    try:
        return old.encode(text), ""
    except OperationError as fault:
        if said:
            raise
        if old.others:
            raise fault.but(advice="; DELETE_FILE before it makes it UTF-8") from fault
        lacks = next(c for c in text if isinstance(_tried(c, old.codec), str))
        note = f"it is UTF-8 now: it was {old.codec}, which has no {shown(lacks)}"
        return text.encode(), note


def _tried(word: str, codec: str) -> bytes | str:
    try:
        return word.encode(codec)
    except UnicodeEncodeError:
        return codec  # differs from all others


def _encoded(text: str, codec: str, errors: str = "strict") -> bytes:
    try:
        return text.encode(codec, errors)
    except UnicodeEncodeError as fault:
        character = text[fault.start]
        raise OperationError(
            f"The file is {codec}, which has no {character!a} ({shown(character)})",
            advice=": use other characters, or send it whole, with utf-8 where its text names an encoding",
        ) from fault


def decode_file(
    data: bytes, charset: Callable[[], str] = str, neighbours: Callable[[], Iterable[bytes]] | None = None
) -> FileText | None:
    """Return the text of a file's bytes, or None if they are binary (they hold NUL).

    UTF-8 only if all of it is. Else it has the encoding of its mark, the one that it or the person
    (`charset`; empty: none) names, or the one that its letters and its `neighbours`, files that are likely
    to have the same, show; None: guess nothing, the text is only searched. `encode` restores each byte.
    """
    doubt = () if neighbours is None else ("?",)
    for mark, codec in _MARKS:
        if data.startswith(mark):
            body = data[len(mark) :]
            if (text := decoded(body, codec)) is not None:
                return FileText(text, codec, mark)
            if codec == "utf-8":
                return replace(_in(body, doubt), mark=mark)
    if data.startswith(_UTF16_MARKS):
        return None
    if b"\0" in data[:8000]:  # as far as git and grep look
        wide = codec_of(charset())
        text = decoded(data, wide) if wide.startswith(("utf-16-", "utf-32-")) else None
        return None if text is None else FileText(text, wide, b"")
    for codec in _SHIFTED if b"\x1b" in data else ():
        text = decoded(data, codec)
        if text is not None and not text.isascii():
            return _in(data, doubt, codec)
    text = decoded(data, "utf-8")
    if text is not None and not data.isascii():
        return FileText(text, "utf-8", b"")
    named = codec_of(charset()) or declared(data.decode("latin-1") if text is None else text)
    if text is not None:
        is_plain = named and decoded(data, named) == text
        return FileText(text, named if is_plain else "utf-8", b"")
    if codec := _fitting(data, named):
        return _in(data, doubt, codec)
    if neighbours is None or named or _is_partly_utf8(data):
        return _in(data, doubt)
    likely = plausible(data)
    kept = likely
    for each in neighbours() if len(likely) > 1 else ():
        near = None if each.isascii() else decode_file(each, neighbours=tuple)
        if near is not None and not near.mark and near.codec != "utf-8" and "?" not in near.others:
            kept = tuple(codec for codec in kept if codec in (near.codec, *near.others))
    return _in(data, doubt, *(kept or likely))


def _in(data: bytes, doubt: tuple[str, ...], *likely: str) -> FileText:
    """Return a text in the first encoding, or in none that is known if it would be written otherwise."""
    for codec in likely[:1]:
        text = data.decode(codec)
        if _tried(text, codec) == data:
            return FileText(text, codec, b"", likely[1:])
    kept = data.decode("utf-8", "surrogateescape")
    if any(c > "\x7f" and not "\udc80" <= c <= "\udcff" for c in kept):
        return FileText(kept, "utf-8", b"", doubt)
    return FileText(data.decode("latin-1"), "latin-1", b"", doubt)


def _is_partly_utf8(data: bytes) -> bool:
    """Return whether bytes are damaged UTF-8, or lines of UTF-8 among others."""
    stray = len(data) - len(data.decode("utf-8", "ignore").encode())
    if stray * 4 < len(data.translate(None, _ASCII)):
        return True
    # So many bytes of a line are not UTF-8 by chance.
    lines = (line for line in data.split(b"\n") if len(line.translate(None, _ASCII)) >= 8)
    return any(decoded(line, "utf-8") for line in lines)


def codec_of(name: str) -> str:
    """Return Python's name of an encoding of texts; empty if there is none."""
    try:
        known = codecs.lookup(name)
        "".encode(known.name)  # not base64 or rot13
    except (LookupError, ValueError):
        return ""
    return known.name.removesuffix("-sig")


def declared(text: str) -> str:
    """Return the encoding that a file's text itself names; empty if none that is known here."""
    return _declared(text[:_HEAD_CHARACTERS], text[-_VIM_CHARACTERS:])


@lru_cache(64)  # asked ten times for each edit
def _declared(head: str, tail: str) -> str:
    found = _HEAD.search(head) or _VIM.search(head, 0, _VIM_CHARACTERS) or _VIM.search(tail)
    return "" if found is None else codec_of(next(filter(None, found.groups())))


def decoded(data: bytes, codec: str) -> str | None:
    """Return all of some bytes as text; None if they are not in that encoding."""
    try:
        return data.decode(codec)
    except (UnicodeError, LookupError):
        return None


def _fitting(data: bytes, name: str) -> str:
    """Return the encoding of this name, or the one that it often means, if all bytes are in it."""
    codec = codec_of(name)
    wide = _MORE.get(codec, "")
    if codec == "iso8859-1" and any(0x80 <= byte < 0xA0 for byte in set(data)):
        codec = wide
    return next((each for each in (codec, wide) if each and decoded(data, each) is not None), "")


def alike(codec: str) -> tuple[str, ...]:
    return (codec, *next((group for group in _ALIKE if codec in group), ()))


def plausible(data: bytes) -> tuple[str, ...]:
    """Return all encodings that bytes may well be in, the likeliest first; empty: nothing is likely."""
    lines = dict.fromkeys(line for line in data.split(b"\n") if not line.isascii())
    found = _measured(b"\n".join(lines)[:_EVIDENCE_BYTES])
    fit = [codec for codec in found if decoded(data, codec) is not None]
    return tuple(codec for codec in fit if codec in _USUAL and fit[0] in _USUAL)


@lru_cache(64)
def _measured(evidence: bytes) -> tuple[str, ...]:
    # Imported late: only a file that is neither UTF-8 nor says its encoding needs it.
    from chardet import detect_all

    words = dict.fromkeys(word for word in evidence.split() if not word.isascii())
    size = max(len(words), sum(map(len, words)) // _WORD_BYTES)
    limits = (part for count, part in _LEAST_PARTS if size < count)
    found = detect_all(evidence, ignore_threshold=True, compat_names=False, max_bytes=len(evidence))
    least = found[0]["confidence"] * next(limits, _LEAST_PART)
    near = dict.fromkeys(
        like
        for each in found
        if (name := each["encoding"]) and each["confidence"] >= least
        for like in alike(_LESS.get(name, codec_of(name)))
    )
    sample = b"\n".join(words)[:_WORDS_CHARACTERS]
    odd = {codec: _odd(sample.decode(codec, "replace")) for codec in near if codec}
    fewest = min(odd.values(), default=0)
    if fewest * _WORDS_AN_ODD_ONE > size:
        return ()
    return tuple(codec for codec, count in odd.items() if count == fewest)


def _odd(text: str) -> int:
    """Count what nobody writes: controls, signs or other scripts in words, capitals after small letters."""
    count, before, kind_before = 0, "", ""
    for character in text:
        kind = _kind(character)
        if character > "\x7f" or before > "\x7f":
            is_mixed = bool(kind and kind_before) and kind != kind_before
            count += kind == "?" or is_mixed or (before.islower() and character.isupper())
        before, kind_before = character, kind
    return count


@cache
def _kind(character: str) -> str:
    """Return the script of a letter, "#" for a sign, "?" for what is no text; empty for all else."""
    category = unicodedata.category(character)
    if character < "\x80":
        return "LATIN" if category[0] == "L" else ""
    if category in ("Cc", "Cn", "Co"):
        return "?"
    if category in ("So", "Sm", "Sk", "Sc", "No") or character in "ªº":
        return "" if character == "°" else "#"
    script = unicodedata.name(character, "?").partition(" ")[0] if category[0] == "L" else ""
    return "" if script.startswith(_UNSPACED) else script


def typed_text(data: bytes, errors: str = "strict") -> str:
    """Return what a person wrote: UTF-8, or UTF-16 with its mark, as `>` in PowerShell 5.1 writes it."""
    return data.decode("utf-16" if data.startswith(_UTF16_MARKS) else "utf-8-sig", errors)


def decode_reply(data: bytes, locale_codec: str) -> tuple[str, str] | None:
    """Return the text of an inbox file, and a note if its encoding is a guess; None if nobody knows it.

    UTF-8 with or without mark, UTF-16 with mark, else the locale's 8-bit encoding (windows-1252, as chats'
    download buttons write, where that is UTF-8 itself), unless its letters are those of another.
    """
    is_wide = data.startswith(_UTF16_MARKS)
    if b"\0" in data and not is_wide:
        return None
    try:
        return typed_text(data), ""
    except UnicodeDecodeError:
        usual = codecs.lookup(locale_codec).name
        codec = "cp1252" if usual == "ascii" or usual.startswith("utf") else usual
    if is_wide or _is_partly_utf8(data):
        return None
    letters = data.translate(None, _ASCII)
    likely = plausible(data) if len(letters) > 2 else ()
    # Of a locale that has one encoding of 8 bits more is known than of windows-1252 for all others.
    first = len(likely) if codec == usual else 1
    if likely and not any(each in likely[:first] for each in alike(codec)):
        if len(set(map(data.decode, likely))) > 1:
            return None
        codec = likely[0]
    text = decoded(data, codec)
    note = f"the reply was not UTF-8 and was read as {codec}: check letters beyond ASCII"
    return None if text is None else (text, note)
