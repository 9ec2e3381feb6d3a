"""Tell files that hold an answer in another form than plain text, by their first bytes, and what to do."""

import re

from codingagent.model.patterns import lazy_pattern, sections

_BY_ENDING: dict[str, tuple[str, str]] = {}
_BY_MAGIC: dict[bytes, tuple[str, str]] = {}
_IN_ZIP: dict[bytes, tuple[str, str]] = {}
# What chats take beside a text, by the kinds and by endings.
_BESIDE, _BESIDE_ENDINGS = set[str](), set[str]()


for _advice, _rows in sections(__file__).items():
    for _kind, _marks in re.findall(r"^ +(.+): (.+)$", _rows, re.MULTILINE):
        _endings = re.findall(r"(?<!\S)\.(\w+)", _marks)
        _BY_ENDING.update(dict.fromkeys(_endings, (_kind, _advice)))
        for _zip, _mark in re.findall(r"(zip)?=(\S+)", _marks):
            _data = _mark.encode().decode("unicode_escape").encode("latin-1")
            (_IN_ZIP if _zip else _BY_MAGIC)[_data] = _kind, _advice
        if "beside" in _marks:
            _BESIDE.add(_kind)
            _BESIDE_ENDINGS.update(_endings)

_HEAD_BYTES, _MARK_BYTES = 8192, 100
_PAGE = lazy_pattern(
    r"(?:\s|<\?xml[^>]*\?>|<!--.*?-->)*<(?:!doctype\s+html|html[\s>]|head[\s>]|body[\s>]|meta\s)",
    re.IGNORECASE | re.DOTALL,
)
_MAIL_HEADER = lazy_pattern(r"(?:[A-Za-z][A-Za-z0-9-]*:[ \t][^\n]*\r?\n(?:[ \t][^\n]*\r?\n)*){2,}")
_MAIL_WORD = lazy_pattern(
    r"^(?:Received|Message-ID|MIME-Version|Delivered-To|Return-Path|Content-Type):",
    re.IGNORECASE | re.MULTILINE,
)
# A patch in a mail that has one part, with its lines as they are.
_PATCH = re.compile(rb"^(?:diff --git |--- a/)", re.MULTILINE)
_CODED = lazy_pattern(
    r"(?i)^Content-Type:[ \t]*multipart/|^Content-Transfer-Encoding:[ \t]*[qb]", re.MULTILINE
)


def kind_of(data: bytes) -> tuple[str, str] | None:
    """Return what the bytes of a file are instead of plain text, and what to do; None if they may be text."""
    for magic, found in _BY_MAGIC.items():
        if data.startswith(magic):
            return found
    if data.startswith(b"PK\x03\x04"):
        # The names stand in the list at the end (APPNOTE.TXT 4.3.16); some kinds begin with what they are.
        end = data.rfind(b"PK\x05\x06")
        size, start = (int.from_bytes(data[end + at : end + at + 4], "little") for at in (12, 16))
        names = data[:_MARK_BYTES] + data[start : start + size]
        return next((kind for mark, kind in _IN_ZIP.items() if mark in names), None)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _BY_ENDING["webp"]
    # UTF-16 has a NUL beside each of these characters.
    head = data[:_HEAD_BYTES].replace(b"\0", b"").decode("utf-8", "replace").lstrip("\ufeff\ufffd \t\r\n")
    if head.startswith("{\\rtf"):
        return _BY_ENDING["rtf"]
    if _PAGE.match(head):
        return _BY_ENDING["html"]
    mail = _MAIL_HEADER.match(head)
    if mail is None or not _MAIL_WORD.search(mail[0]):
        return None
    if _PATCH.search(data.replace(b"\0", b"")) and not _CODED.search(mail[0]):
        return None  # of `git format-patch`
    return _BY_ENDING["mhtml" if "multipart/related" in mail[0] else "eml"]


def is_zip(data: bytes) -> bool:
    """Return whether bytes are a zip archive, and no document that is packed so."""
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06")) and kind_of(data) is None


def goes_beside(data: bytes) -> bool:
    """Return whether a file with these bytes is attached to a message: a picture, a PDF, an office file."""
    kind = kind_of(data)
    return kind is not None and kind[0] in _BESIDE


def is_asked_for(path: str, pattern: str) -> bool:
    """Return whether a glob or a folder means a file that may go beside the text: its ending is named."""
    ending = path.rpartition(".")[2].lower()
    return ending not in _BESIDE_ENDINGS or pattern.lower().endswith(f".{ending}")


def kind_by_name(name: str) -> tuple[str, str] | None:
    """Return what a file is by its ending, and what to do; None if that says nothing."""
    return _BY_ENDING.get(name.rpartition(".")[2].lower())
