"""Decode a file's bytes to text, and encode the text back to the same bytes."""

import codecs
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from codingagent.errors import OperationError
from codingagent.model import charsets
from codingagent.model.paths import shown
from codingagent.model.patterns import lazy_pattern

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
# git, grep and diff search no further than this for a NUL either.
_BINARY_SAMPLE_BYTES = 8000
# So many bytes of a line are not UTF-8 by chance.
_NO_CHANCE = 8
# Of so few letters nobody can tell another encoding.
_FEW_LETTERS = 2
_ASCII = bytes(range(0x80))
# Blanks of other scripts are bytes that encodings do not share.
_WORDS = lazy_pattern(r"[^ \t\r\n\f\v]+")


class FileText(Struct, frozen=True):
    """A file's text, and how to write it back: bytes that are not edited stay as they were."""

    text: str
    codec: str
    mark: bytes
    """The byte-order mark, or empty."""
    others: tuple[str, ...] = ()
    """Encodings that it may have as well; "?": any."""

    def encode(self, text: str) -> bytes:
        """Return the file's new bytes; OperationError if its encoding lacks a character or is not certain."""
        codec, said = self.codec, charsets.declared(text)
        if said and said != codec and said != charsets.declared(self.text):
            if self.text.isascii() and not self.mark and charsets.decoded(b"a", said) == "a":
                codec = said
            elif not text.isascii() and codec not in charsets.alike(said):
                raise OperationError(
                    f"The text would say that it is {said}, but the file is {codec}",
                    advice="; leave that line as it is, or replace the file whole",
                )
        if self.others:
            self._check_words(text)
        return self.mark + _encoded(
            text, codec, "surrogateescape" if codec == "utf-8" else "strict"
        )

    def _check_words(self, text: str) -> None:
        """Refuse words that are not in the file, unless they are the same bytes in all its encodings."""
        known = {*_WORDS.findall(self.text)}
        for word in _WORDS.findall(text):
            if word.isascii() or word in known:
                continue
            if "?" in self.others or len(set(map(partial(_tried, word), self._codecs()))) > 1:
                names = [each for each in self._codecs()[:3] if each != "?"]
                may_be = "" if "?" in self.others else f" ({' or '.join(names)})"
                raise OperationError(
                    f"The file is not UTF-8, and which encoding it has{may_be} is not certain. Nothing was"
                    f" written: '{shown(word[:40])}' is not the same bytes in all",
                    advice=". Use ASCII, and words that"
                    " the file has; or ask the user to name it in .editorconfig (charset = ...)",
                )

    def _codecs(self) -> tuple[str, ...]:
        return self.codec, *self.others


def encode_whole(text: str, old: FileText | None) -> tuple[bytes, str]:
    """Return the bytes of a whole file, and a note if its encoding is another than that of the old one.

    OperationError if what the text says of its encoding would be wrong, or nobody knows the old one.
    """
    said = charsets.declared(text)
    if old is None:
        return _encoded(text, said or "utf-8"), ""
    is_kept = said in ("", charsets.declared(old.text), *charsets.alike(old.codec))
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
            advice=": use other characters, or"
            " send it whole, with utf-8 where its text names an encoding",
        ) from fault


def decode_file(
    data: bytes,
    charset: Callable[[], str] = str,
    neighbours: Callable[[], Iterable[bytes]] | None = None,
) -> FileText | None:
    """Return the text of a file's bytes, or None if they are binary (they hold NUL).

    It is UTF-8 only if all of it is. Otherwise it has the encoding of its mark, the one that it or the person
    (`charset`; empty: none) names, or the one that its letters and its `neighbours` show: files that are
    likely to have the same encoding; None: guess nothing, the text is only searched. `FileText.encode`
    restores each byte.
    """
    doubt = () if neighbours is None else ("?",)
    for mark, codec in _MARKS:
        if data.startswith(mark):
            body = data[len(mark) :]
            if (text := charsets.decoded(body, codec)) is not None:
                return FileText(text, codec, mark)
            if codec == "utf-8":
                return replace(_unknown(body, doubt), mark=mark)
    if data.startswith(_UTF16_MARKS):
        return None
    if is_binary(data):
        wide = charsets.codec_of(charset())
        text = charsets.decoded(data, wide) if wide.startswith(("utf-16-", "utf-32-")) else None
        return None if text is None else FileText(text, wide, b"")
    for codec in _SHIFTED if b"\x1b" in data else ():
        text = charsets.decoded(data, codec)
        if text is not None and not text.isascii():
            return _in(data, doubt, codec)
    text = charsets.decoded(data, "utf-8")
    if text is not None and not data.isascii():
        return FileText(text, "utf-8", b"")
    named = charsets.codec_of(charset()) or charsets.declared_in(data)
    if text is not None:
        is_plain = named and charsets.decoded(data, named) == text
        return FileText(text, named if is_plain else "utf-8", b"")
    if codec := charsets.fitting(data, named):
        return _in(data, doubt, codec)
    if neighbours is None or named or _is_partly_utf8(data):
        return _unknown(data, doubt)
    likely = charsets.plausible(data)
    if len(likely) > 1:
        near = list(_encodings(neighbours()))
        likely = tuple(c for c in likely if all(c in each for each in near)) or likely
    return _in(data, doubt, *likely)


def _in(data: bytes, doubt: tuple[str, ...], *likely: str) -> FileText:
    """Return a text in the first encoding, unless it would be written otherwise."""
    for codec in likely[:1]:
        text = data.decode(codec)
        if _tried(text, codec) == data:
            return FileText(text, codec, b"", likely[1:])
    return _unknown(data, doubt)


def _unknown(data: bytes, doubt: tuple[str, ...]) -> FileText:
    """Return a text of bytes in no known encoding, from which each comes back."""
    kept = data.decode("utf-8", "surrogateescape")
    if any(c > "\x7f" and not "\udc80" <= c <= "\udcff" for c in kept):
        return FileText(kept, "utf-8", b"", doubt)
    return FileText(data.decode("latin-1"), "latin-1", b"", doubt)


def _is_partly_utf8(data: bytes) -> bool:
    """Return whether bytes are damaged UTF-8, or lines of UTF-8 among others."""
    stray = len(data) - len(data.decode("utf-8", "ignore").encode())
    if stray * 4 < len(data.translate(None, _ASCII)):
        return True
    lines = (line for line in data.split(b"\n") if len(line.translate(None, _ASCII)) >= _NO_CHANCE)
    return any(charsets.decoded(line, "utf-8") for line in lines)


def _encodings(neighbours: Iterable[bytes]) -> Iterator[tuple[str, ...]]:
    """Yield the encodings that each of some files may have, of those that have neither UTF-8 nor a mark."""
    for data in neighbours:
        text = None if data.isascii() else decode_file(data, neighbours=tuple)
        if text is not None and not text.mark and text.codec != "utf-8" and "?" not in text.others:
            yield text.codec, *text.others


def is_binary(data: bytes) -> bool:
    """Return whether bytes are binary: they hold a NUL near the start."""
    return b"\0" in data[:_BINARY_SAMPLE_BYTES]


class ReplyText(Struct, frozen=True):
    """The text of an inbox file, and a note if its encoding was guessed."""

    text: str
    note: str = ""


def typed_text(data: bytes, errors: str = "strict") -> str:
    """Return what a person wrote: UTF-8, or UTF-16 with its mark, as `>` in PowerShell 5.1 writes it."""
    return data.decode("utf-16" if data.startswith(_UTF16_MARKS) else "utf-8-sig", errors)


def decode_reply(data: bytes, locale_codec: str) -> ReplyText | None:
    """Return the text of an inbox file; None if it is binary, or nobody knows its letters.

    UTF-8 with or without mark, UTF-16 with mark, else the locale's 8-bit encoding
    (where that is UTF-8 itself, windows-1252, which chats' download buttons produce), unless its letters
    are those of another one.
    """
    is_wide = data.startswith(_UTF16_MARKS)
    if b"\0" in data and not is_wide:
        return None
    try:
        return ReplyText(typed_text(data))
    except UnicodeDecodeError:
        usual = codecs.lookup(locale_codec).name
        codec = "cp1252" if usual == "ascii" or usual.startswith("utf") else usual
    if is_wide or _is_partly_utf8(data):
        return None
    letters = data.translate(None, _ASCII)
    likely = charsets.plausible(data) if len(letters) > _FEW_LETTERS else ()
    # Of a locale that has one encoding of 8 bits more is known than of windows-1252 for all others.
    first = len(likely) if codec == usual else 1
    if likely and not any(each in likely[:first] for each in charsets.alike(codec)):
        if len(set(map(data.decode, likely))) > 1:
            return None
        codec = likely[0]
    text = charsets.decoded(data, codec)
    note = f"the reply was not UTF-8 and was read as {codec}: check letters beyond ASCII"
    return None if text is None else ReplyText(text, note)
