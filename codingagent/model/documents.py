"""Tell files that hold an answer in another form than plain text, by their first bytes, and what to do."""

import re

from codingagent.model.patterns import lazy_pattern

_SAVE = "open it, copy the chat's answer and save that as a plain .txt file in the inbox, or paste it here"
_COPY = "copy the answer's text, or use the chat's copy button, and save that as a .txt file in the inbox"
_TAKE_OUT = "take the text of the answer out of it and save that as a .txt file in the inbox"
_READ = "a picture can't be read: copy the answer's text and save that as a .txt file in the inbox"

_ZIP = b"PK\x03\x04"
_IN_ZIP = {
    b"word/": "a Word document (.docx)",
    b"application/vnd.oasis.opendocument": "an OpenDocument file (.odt)",
    b"application/epub+zip": "an e-book (.epub)",
    b"Index/Document.iwa": "a Pages document",
    b"xl/": "a spreadsheet (.xlsx)",
    b"ppt/": "a presentation (.pptx)",
}
_BY_MAGIC = {
    b"{\\rtf": ("a rich text document (RTF)", _SAVE),
    b"%PDF-": ("a PDF file", _SAVE),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an old Word document (.doc)", _SAVE),
    b"\x89PNG\r\n": ("a picture", _READ),
    b"\xff\xd8\xff": ("a picture", _READ),
    b"GIF8": ("a picture", _READ),
    b"\x1f\x8b\x08": ("a packed file (gzip)", _TAKE_OUT),
    b"7z\xbc\xaf\x27\x1c": ("an archive (7z)", _TAKE_OUT),
    b"Rar!\x1a\x07": ("an archive (rar)", _TAKE_OUT),
    b"bplist00": ("a web archive of Safari", _COPY),
}
_WEB = ("a web page (HTML)", _COPY)
_MAIL = ("a message with its mail headers (.eml)", _SAVE)
_SAVED_PAGE = ("a web page with its parts (MHTML)", _COPY)
_BY_ENDING = {
    "rtf": _BY_MAGIC[b"{\\rtf"],
    "pdf": _BY_MAGIC[b"%PDF-"],
    "doc": _BY_MAGIC[b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"],
    **{
        kind.rpartition("(.")[2].rstrip(")"): (kind, _SAVE)
        for kind in _IN_ZIP.values()
        if "(." in kind
    },
    **dict.fromkeys(("pages", "wps"), ("a word processor's document", _SAVE)),
    **dict.fromkeys(("html", "htm", "xhtml"), _WEB),
    **dict.fromkeys(("mhtml", "mht"), _SAVED_PAGE),
    "webarchive": _BY_MAGIC[b"bplist00"],
    **dict.fromkeys(("eml", "msg", "mbox"), _MAIL),
    **dict.fromkeys(("zip", "gz", "7z", "rar", "tar", "tgz"), ("an archive", _TAKE_OUT)),
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "heic"), ("a picture", _READ)),
}

# What chats take beside a text, by the kinds above and by endings.
_BESIDE = ("a PDF file", "a picture", *(_IN_ZIP[part] for part in (b"word/", b"xl/", b"ppt/")))
_BESIDE_ENDINGS = ("pdf", "png", "jpg", "jpeg", "gif", "webp", "docx", "xlsx", "pptx")

_HEAD_BYTES = 8192
_PAGE = lazy_pattern(
    r"(?:\s|<\?xml[^>]*\?>|<!--.*?-->)*<(?:!doctype\s+html|html[\s>]|head[\s>]|body[\s>]|meta\s)",
    re.IGNORECASE | re.DOTALL,
)
_WEB_ARCHIVE = lazy_pattern(r"\s*<\?xml[^>]*\?>\s*<!DOCTYPE plist")
_MAIL_HEADER = lazy_pattern(r"(?:[A-Za-z][A-Za-z0-9-]*:[ \t][^\n]*\r?\n(?:[ \t][^\n]*\r?\n)*){2,}")
_MAIL_WORD = lazy_pattern(
    r"^(?:Received|Message-ID|MIME-Version|Delivered-To|Return-Path|Content-Type):",
    re.IGNORECASE | re.MULTILINE,
)


def kind_of(data: bytes) -> tuple[str, str] | None:
    """Return what the bytes of a file are instead of plain text, and what to do; None if they may be text."""
    if data.startswith(_ZIP):
        name = next((kind for mark, kind in _IN_ZIP.items() if mark in data), None)
        return (name, _SAVE) if name else ("an archive (zip)", _TAKE_OUT)
    for magic, found in _BY_MAGIC.items():
        if data.startswith(magic):
            return found
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _BY_ENDING["webp"]
    # UTF-16 has a NUL beside each of these characters.
    head = (
        data[:_HEAD_BYTES]
        .replace(b"\0", b"")
        .decode("utf-8", "replace")
        .lstrip("\ufeff\ufffd \t\r\n")
    )
    if head.startswith("{\\rtf"):
        return _BY_MAGIC[b"{\\rtf"]
    if _PAGE.match(head):
        return _WEB
    if _WEB_ARCHIVE.match(head):
        return _BY_MAGIC[b"bplist00"] if "WebMainResource" in head else None
    mail = _MAIL_HEADER.match(head)
    if mail is None or not _MAIL_WORD.search(mail[0]):
        return None
    return _SAVED_PAGE if "multipart/related" in mail[0] else _MAIL


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
