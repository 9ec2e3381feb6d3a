"""What bytes mean as text: Design, tag blocks (body to bytes) and the inbox."""

import codecs

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codingagent.errors import OperationError
from codingagent.model import encoding
from codingagent.model.encoding import FileText
from tests.rows import each_row

_BYTES = st.one_of(
    st.binary(max_size=200),
    st.lists(
        st.sampled_from(
            [
                b"\xff\xfe",
                b"\xfe\xff",
                b"\xef\xbb\xbf",
                b"\xc3\xa9",
                b"\xe9",
                b"\r\n",
                b"a",
                b"\0",
                b"\xed\xa0\x80",
            ]
        )
    ).map(b"".join),
)


def decoded(data: bytes) -> FileText:
    found = encoding.decode_file(data)
    assert found is not None
    return found


@each_row(
    ("data", "expected"),
    [
        (b"", FileText("", "utf-8", b"")),
        (b"a\r\nb\n", FileText("a\r\nb\n", "utf-8", b"")),
        ("é".encode(), FileText("é", "utf-8", b"")),
        (b"\xef\xbb\xbfa", FileText("a", "utf-8", b"\xef\xbb\xbf")),
        (b"\xef\xbb\xbf\xef\xbb\xbfa", FileText("\ufeffa", "utf-8", b"\xef\xbb\xbf")),
        ("aé".encode("utf-16"), FileText("aé", "utf-16-le", codecs.BOM_UTF16_LE)),
        (codecs.BOM_UTF16_BE + "aé".encode("utf-16-be"), FileText("aé", "utf-16-be", codecs.BOM_UTF16_BE)),
        (b"caf\xe9\n", FileText("café\n", "latin-1", b"")),
        (b"\xc3\xa9 \xff", FileText("é \udcff", "utf-8", b"")),
    ],
)
def test_a_file_is_read_by_its_mark_or_its_bytes(data: bytes, expected: FileText) -> None:
    """Design, tag blocks: EDIT_FILE keeps the byte-order mark and all bytes, whatever their encoding."""
    assert encoding.decode_file(data) == expected


@each_row("data", [b"\0", b"\x7fELF\0", b"a" * 7999 + b"\0", b"\xff\xfea", b"\xff\xfe\x00\xd8"])
def test_bytes_that_are_no_text_are_none(data: bytes) -> None:
    """Design, replies as chats give them: never wrong bytes, so no edit of what is no text."""
    assert encoding.decode_file(data) is None


def test_a_nul_is_looked_for_near_the_start() -> None:
    """Design, tag blocks: as git does, in the first 8000 bytes."""
    assert decoded(b"a" * 8000 + b"\0").text.endswith("a\0")


@given(_BYTES)
@example(b"\xef\xbb\xbf\xff")
@example(b"\xed\xa0\x80")
@example(b"\xff\xfe\xff\xfe")
@example(b"\xff\xfe\0\0")
def test_all_bytes_come_back(data: bytes) -> None:
    """Design, tag blocks: bytes outside the edited lines are untouched, whatever their encoding."""
    found = encoding.decode_file(data)
    if found is not None:
        assert found.encode(found.text) == data


def test_text_that_the_files_encoding_has_not_is_refused() -> None:
    """Design, tag blocks: other bytes stay as they are, so the new text must fit their encoding."""
    with pytest.raises(OperationError) as caught:
        decoded(b"caf\xe9\n").encode("café €\n")
    assert caught.value.reason == (
        "The file is latin-1, which has no '\\u20ac' (€): use other characters, or send it whole, with utf-8"
        " where its text names an encoding"
    )


def test_an_edit_keeps_the_mark_and_the_encoding() -> None:
    """Design, tag blocks: EDIT_FILE keeps the byte-order mark."""
    assert decoded(b"\xef\xbb\xbfa\n").encode("b\n") == b"\xef\xbb\xbfb\n"
    assert decoded("a\n".encode("utf-16")).encode("é\n") == codecs.BOM_UTF16_LE + "é\n".encode("utf-16-le")
    assert decoded(b"\xc3\xa9\xff").encode("x\udcff") == b"x\xff"
    assert decoded(b"\xe9").encode("é!") == b"\xe9!"


@each_row(
    "data",
    [
        "é[DONE]".encode(),
        "é[DONE]".encode("utf-8-sig"),
        "é[DONE]".encode("utf-16"),
        codecs.BOM_UTF16_BE + "é[DONE]".encode("utf-16-be"),
    ],
)
def test_a_reply_is_utf_8_or_marked_utf_16(data: bytes) -> None:
    """Design, the inbox: UTF-8 with or without mark, UTF-16 with mark."""
    assert encoding.decode_reply(data, "iso-8859-1") == ("é[DONE]", "")


@each_row(
    ("data", "locale_codec", "text", "codec"),
    [
        (b"caf\xe9", "iso-8859-1", "café", "iso8859-1"),
        (b"\xe0", "cp1251", "а", "cp1251"),
        (b"\x93caf\xe9\x94", "utf-8", "“café”", "cp1252"),
        (b"\x93caf\xe9\x94", "UTF8", "“café”", "cp1252"),
        (b"\x93caf\xe9\x94", "ANSI_X3.4-1968", "“café”", "cp1252"),
        (b"caf\xe9", "utf-16", "café", "cp1252"),
        ("Größe ändern".encode("cp1252"), "utf-8", "Größe ändern", "cp1252"),
        # Its letters are those of another.
        (
            "# 返回词列表，然后计数，返回所有的词语。".encode("gbk"),
            "utf-8",
            "# 返回词列表，然后计数，返回所有的词语。",
            "gb18030",
        ),
        ("日本語のテキスト".encode("cp932"), "utf-8", "日本語のテキスト", "cp932"),
        ("český příliš žluťoučký kůň".encode("cp1250"), "utf-8", "český příliš žluťoučký kůň", "cp1250"),
    ],
)
def test_else_a_reply_has_the_locales_8_bit_encoding_and_it_is_said(
    data: bytes, locale_codec: str, text: str, codec: str
) -> None:
    """Design, the inbox: else the locale's 8-bit encoding, said in the result."""
    note = f"the reply was not UTF-8 and was read as {codec}: check letters beyond ASCII"
    assert encoding.decode_reply(data, locale_codec) == (text, note)


@each_row(
    "data",
    [
        *(b"PK\x03\x04\0", b"a\0", b"\xff\xfea", "[DONE]".encode("utf-16-le")),
        # More than one encoding may be meant, none is, or it is UTF-8 with a damaged byte.
        *("Şifre değiştir".encode("cp1254"), "Привет".encode("koi8-r"), b"\x81a\xe9"),
        "Größe ändern: für alle, ü".encode() + b"\xff",
    ],
)
def test_a_reply_that_is_no_text_is_none(data: bytes) -> None:
    """Design, the inbox: UTF-16 has its mark; what holds NUL is no text; no letters are guessed."""
    assert encoding.decode_reply(data, "utf-8") is None


@given(_BYTES, st.sampled_from(["utf-8", "iso-8859-1", "cp1252", "ascii", "koi8-r", "utf-16"]))
def test_reading_a_reply_never_raises(data: bytes, locale_codec: str) -> None:
    """Design, replies as chats give them: never silence, and its text can always be written again."""
    found = encoding.decode_reply(data, locale_codec)
    if found is not None:
        found[0].encode()
