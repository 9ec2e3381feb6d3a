"""Files that hold an answer in another form than plain text: each is named, with what to do."""

import io
import zipfile
from pathlib import Path

import pytest

from codingagent.model import documents
from tests.helpers import plain_session
from tests.rows import each_row

BLOCK = '[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]\n'


def packed(*names: str, text: str = "x") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, text)
    return file.getvalue()


PAGE = f"<pre>{BLOCK}</pre>"
DOCUMENTS = {
    "rich text": (rb"{\rtf1\ansi [CREATE_FILE path=\'22a.txt\'22]\par x\par}", "RTF", "copy"),
    "rich text with a mark": (b"\xef\xbb\xbf{\\rtf1 x}", "RTF", "copy"),
    "pdf": (b"%PDF-1.7\n", "PDF", "copy"),
    "docx": (packed("[Content_Types].xml", "word/document.xml"), "Word", "copy"),
    "odt": (packed("mimetype", text="application/vnd.oasis.opendocument.text"), ".odt", "copy"),
    "doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "Word", "copy"),
    "html": (f"<!DOCTYPE html>\n<html><body>{PAGE}".encode(), "web page", "copy button"),
    "html from a browser": (f"<!-- saved from url -->\n<HTML>{PAGE}".encode(), "web page", "copy button"),
    "html in UTF-16": (f"<html><body>{PAGE}".encode("utf-16"), "web page", "copy button"),
    "xhtml": (b'<?xml version="1.0"?>\n<!DOCTYPE html><html/>', "web page", "copy button"),
    "mhtml": (
        b"From: <Saved by Blink>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n\tx\r\n",
        "MHTML",
        "copy button",
    ),
    "mail": (b"Received: from a\r\n\tby b\r\nMessage-ID: <a@b>\r\n\r\n[DONE]\n", "mail", "copy"),
    "webarchive": (b"bplist00\xd1\x01", "web archive", "copy button"),
    "picture": (b"\x89PNG\r\n\x1a\n", "picture", "copy the answer"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_renamed_to_txt_is_named(name: str, tmp_path: Path) -> None:
    """Design, inbox: it is set aside with the reason, and is no question of the model."""
    data, kind, remedy = DOCUMENTS[name]
    with plain_session(tmp_path) as live:
        (live.home.mailbox.inbox / "reply.txt").write_bytes(data)
        live.conversation.take("reply.txt")
        assert live.rejected() == ["reply.txt", "reply.txt.reason"]
        said = " ".join(map(str, live.notices))
        assert kind in said
        assert "not plain text" in said
        assert remedy in said
        assert not (live.workspace / "a.txt").exists()


@each_row("ending", ["rtf", "pdf", "docx", "odt", "html", "mhtml", "eml", "webarchive"])
def test_a_document_by_its_name_has_the_same_words(ending: str) -> None:
    found = documents.kind_by_name(f"answer.{ending.upper()}")
    assert found is not None
    assert found[1]


@each_row(
    "text",
    [
        BLOCK,
        "Here is the page:\n```html\n<!DOCTYPE html>\n<html></html>\n```\n",
        "Message-ID: <a@b>\nSubject: [PATCH] x\n\n---\ndiff --git a/x b/x\n",
        "Note: this is short.\nFile: a.py\n\nMIME-Version: is a header.\n",
        "PK is a prefix.\n",
        "{\n",
        "",
        "<think>\nx\n</think>\n",
    ],
)
@each_row("encoding", ["utf-8", "utf-16"])
def test_plain_text_is_no_document(text: str, encoding: str) -> None:
    assert documents.kind_of(text.encode(encoding)) is None
