"""Decode a file's bytes to text, and encode the text back to the same bytes."""

import codecs
from typing import Literal

from msgspec import Struct

from codingagent.errors import OperationError

Encoding = Literal["utf-8", "base64"]
"""How a file's content is represented where it has to be text."""

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# git, grep and diff search no further than this for a NUL either.
_BINARY_SAMPLE_BYTES = 8000


class FileText(Struct, frozen=True):
    """A file's text, and how to write it back: bytes that are not edited stay as they were."""

    text: str
    codec: str
    mark: bytes
    """The byte-order mark, or empty."""

    def encode(self, text: str) -> bytes:
        """Return the file's new bytes.

        Raises:
            OperationError: if the file's encoding lacks a character.
        """
        errors = "surrogateescape" if self.codec == "utf-8" else "strict"
        try:
            return self.mark + text.encode(self.codec, errors)
        except UnicodeEncodeError as fault:
            character = text[fault.start]
            raise OperationError(
                f"The file is not UTF-8 but {self.codec}, which has no {character!a}:"
                " use other characters, or write the whole file with CREATE_FILE"
            ) from fault


def decode_file(data: bytes) -> FileText | None:
    """Return the text of a file's bytes, or None if they are binary (they hold NUL).

    Bytes that are neither UTF-8 nor UTF-16 with a mark are read as Latin-1, or as UTF-8 with the stray
    bytes kept if part of them is UTF-8. Either way `FileText.encode` restores each byte.
    """
    for mark in _UTF16_MARKS:
        if data.startswith(mark):
            return _decode_utf16(data, mark)
    if is_binary(data):
        return None
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    body = data[len(mark) :]
    try:
        return FileText(body.decode("utf-8"), "utf-8", mark)
    except UnicodeDecodeError:
        kept = body.decode("utf-8", "surrogateescape")
    if any(c > "\x7f" and not "\udc80" <= c <= "\udcff" for c in kept):
        return FileText(kept, "utf-8", mark)
    return FileText(body.decode("latin-1"), "latin-1", mark)


def is_binary(data: bytes) -> bool:
    """Return whether bytes are binary: they hold a NUL near the start."""
    return b"\0" in data[:_BINARY_SAMPLE_BYTES]


class ReplyText(Struct, frozen=True):
    """The text of an inbox file, and a note if its encoding was guessed."""

    text: str
    note: str = ""


def decode_reply(data: bytes, locale_codec: str) -> ReplyText | None:
    """Return the text of an inbox file, or None if it is binary.

    DESIGN, inbox: UTF-8 with or without mark, UTF-16 with mark, else the locale's 8-bit encoding
    (where that is UTF-8 itself, windows-1252, which chats' download buttons produce).
    """
    if data.startswith(_UTF16_MARKS):
        try:
            return ReplyText(data.decode("utf-16"))
        except UnicodeDecodeError:
            return None
    if b"\0" in data:
        return None
    try:
        return ReplyText(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        codec = _eight_bit(locale_codec)
        note = f"the reply was not UTF-8 and was read as {codec}: check letters beyond ASCII"
        return ReplyText(data.decode(codec, "replace"), note)


def _eight_bit(locale_codec: str) -> str:
    name = codecs.lookup(locale_codec).name
    return "cp1252" if name in ("utf-8", "ascii") or name.startswith("utf") else name


def _decode_utf16(data: bytes, mark: bytes) -> FileText | None:
    codec = "utf-16-le" if mark == codecs.BOM_UTF16_LE else "utf-16-be"
    try:
        text = data[len(mark) :].decode(codec)
    except UnicodeDecodeError:
        return None
    return FileText(text, codec, mark)
