"""Files in the encodings that people have: what an edit writes is in the file's encoding, or is refused."""

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent.errors import OperationError
from codingagent.model.encoding import FileText, declared, decode_file, encode_whole
from tests.rows import each_row

SAMPLES: dict[str, tuple[list[str], list[str]]] = {}
for block in Path(__file__).with_name("encoding_samples.txt").read_text("utf-8").splitlines()[1:]:
    language, colon, encodings = block.partition(": ")
    if colon and language.replace("-", "").isascii() and len(language) < 6 and " " not in language:
        SAMPLES[language] = encodings.split(), []
    else:
        SAMPLES[[*SAMPLES][-1]][1].append(block)


def guessed(data: bytes, *neighbours: bytes, charset: str = "") -> FileText:
    found = decode_file(data, lambda: charset, lambda: neighbours)
    assert found is not None
    return found


def files(lines: list[str], size: int) -> Iterator[str]:
    """Yield texts, programs and tables of so many lines."""
    some = list(itertools.islice(itertools.cycle(lines), size))
    yield "".join(f"{line}\n" for line in some)
    yield "".join(f"    total += price * {number}  # {line}\n\n" for number, line in enumerate(some))
    yield "".join(f'msg_{number} = "{line}";\r\n' for number, line in enumerate(some))


@pytest.mark.parametrize("size", [1, *(pytest.param(size, marks=pytest.mark.deep) for size in (3, 100))])
def test_no_language_in_no_encoding_gets_wrong_bytes(size: int) -> None:
    """A line is added, others are changed: the bytes are right, or nothing is written and it is said."""
    count: Counter[str] = Counter()
    for encodings, lines in SAMPLES.values():
        for encoding, start in itertools.product(encodings, (0, 3)):
            *some, new = lines[start:] + lines[:start]
            for text in files(some, size):
                data = text.encode(encoding)
                found = guessed(data)
                assert found.encode(found.text) == data
                # A change in ASCII can always be made.
                changed = (each.replace("total", "sum") + "end\n" for each in (found.text, text))
                assert found.encode(next(changed)) == next(changed).encode(encoding)
                try:
                    done = found.encode(f"{found.text}{new}\n")
                except OperationError:
                    count["refused"] += 1
                    continue
                assert done == f"{text}{new}\n".encode(encoding), (encoding, found)
                count["right"] += 1
    assert count["refused"] < {1: 0.5, 3: 0.1, 100: 0.03}[size] * count.total(), count


def test_what_two_encodings_write_alike_is_written_and_what_they_do_not_is_refused() -> None:
    """A French file is windows-1252 as well as ISO 8859-15: é is the same byte in both, the euro is not."""
    data = "\n".join(SAMPLES["fr"][1]).encode("cp1252")
    found = guessed(data)
    assert {found.codec, *found.others} >= {"cp1252", "iso8859-15"}
    assert found.encode(f"{found.text}\ncréé") == data + b"\ncr\xe9\xe9"
    with pytest.raises(OperationError) as caught:
        found.encode(f"{found.text}\n5 €")
    assert caught.value.reason.startswith("The file is not UTF-8, and which encoding it has (")
    assert "is not certain. Nothing was written: '€' is not the same bytes in all" in caught.value.reason


def test_neighbours_tell_what_one_line_does_not() -> None:
    """The other files of a folder are in the same encoding, if this one may be in it and they agree."""
    lines = SAMPLES["pl"][1]
    data, new = b"// zgin\xea\xb3o\n", "Źródło"
    others = ["\n".join(lines).encode("iso8859-2"), "\n".join(lines[2:]).encode("iso8859-2")]
    with pytest.raises(OperationError):
        guessed(data).encode(new)
    assert guessed(data, *others, "é".encode()).encode(new) == new.encode("iso8859-2")
    for apart in ("\n".join(lines).encode("cp1250"), "\n".join(SAMPLES["ru"][1]).encode("koi8-r")):
        with pytest.raises(OperationError):
            guessed(data, others[0], apart).encode(new)


@each_row(
    ("text", "codec"),
    [
        ("# -*- coding: gbk -*-\n# 中文\n", "gbk"),
        ("#!/usr/bin/python\n# vim: set fileencoding=gbk :\n# 中文\n", "gbk"),
        ("#!/usr/bin/env ruby\n# encoding: EUC-JP\n# 日本\n", "euc_jp"),
        ("/* -*- coding: koi8-r; mode: c -*- */\n// ё\n", "koi8-r"),
        ('<?xml version="1.0" encoding="windows-1251"?>\n<a>ё</a>\n', "cp1251"),
        ("<!DOCTYPE html>\n<html><head><meta charset=big5>\n<p>中文\n", "big5"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">\n日本\n', "shift_jis"),
        ('@charset "iso-8859-2";\n/* ž */\n', "iso8859-2"),
        ('msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=ISO-8859-15\\n"\n# é\n', "iso8859-15"),
        ("\\documentclass{article}\n\\usepackage[latin2]{inputenc}\nž\n", "iso8859-2"),
        ("// ž\n\n// vim: fenc=cp852\n", "cp852"),
        ("# coding: latin-1\n# “é”\n", "cp1252"),
        ("# coding: gb2312\n# 镕\n", "gb18030"),
    ],
)
def test_a_file_has_the_encoding_that_it_names(text: str, codec: str) -> None:
    """PEP 263, XML, HTML, CSS, gettext, TeX, vim and Emacs; the names that mean more are taken so."""
    data = text.encode(codec)
    found = guessed(data)
    assert (found.text, found.codec, found.others) == (text, codec, ())
    assert found.encode(found.text) == data


@pytest.mark.parametrize(
    "text", ['x = open(p, encoding="gbk")\n', "a\n# coding style:gbk\n", "a\nb\n# coding: gbk\n"]
)
def test_a_file_that_speaks_of_an_encoding_does_not_name_its_own(text: str) -> None:
    """Only where those who read such a file would look."""
    assert declared(text) == ""
    assert guessed(text.encode()).encode(f"{text}é").endswith("é".encode())


def test_a_file_is_utf_8_only_if_all_of_it_is() -> None:
    """One stray byte, and no other letter is added; what is in ASCII goes on."""
    data = "\n".join(SAMPLES["fr"][1]).encode() + b"\n\xff\n"
    found = guessed(data)
    assert found.encode(f"{found.text}x\n") == data + b"x\n"
    with pytest.raises(OperationError, match="is not certain"):
        found.encode(f"{found.text}é\n")
    # What programs left that took half of a file for UTF-8.
    mixed = "中文的注释。\n".encode() + "".join(f"{each}\n" for each in SAMPLES["zh"][1]).encode("gbk")
    assert guessed(mixed).encode(f"{guessed(mixed).text}x\n") == mixed + b"x\n"
    with pytest.raises(OperationError, match="is not certain"):
        guessed(mixed).encode("新的\n")
    utf8 = "# coding: latin-1\n# é\n"
    assert guessed(utf8.encode()).encode(f"{utf8}è\n") == f"{utf8}è\n".encode()


def test_a_file_that_names_an_encoding_and_is_in_another_is_not_certain() -> None:
    """Neither its name nor its letters are believed."""
    with pytest.raises(OperationError, match="is not certain"):
        guessed("# coding: utf-8\n# é\n".encode("cp1252")).encode("# coding: utf-8\n# è\n")


def test_an_edit_can_not_make_a_coding_line_lie() -> None:
    """The line and the bytes change together, or not at all; in a file of ASCII the new line counts."""
    data = "\n".join(SAMPLES["ru"][1]).encode("cp1251")
    found = guessed(data)
    with pytest.raises(OperationError, match="would say that it is koi8-r, but the file is cp1251"):
        found.encode(f"# coding: koi8-r\n{found.text}")
    assert found.encode(f"# coding: cp1251\n{found.text}") == b"# coding: cp1251\n" + data
    assert guessed(b"x\n").encode("# coding: koi8-r\n# ё\n") == "# coding: koi8-r\n# ё\n".encode("koi8-r")
    with pytest.raises(OperationError, match=r"The file is cp1251, which has no '\\u4e2d' \(中\)"):
        guessed(data, charset="cp1251").encode("中")


@each_row("codec", ["utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be", "utf-8"])
def test_a_mark_tells_the_encoding(codec: str) -> None:
    """And is kept."""
    data = "\ufeffaé\r\n".encode(codec)
    found = guessed(data)
    assert (found.text, found.codec) == ("aé\r\n", codec)
    assert found.encode("ж") == "\ufeffж".encode(codec)
    assert encode_whole("ж", found) == ("\ufeffж".encode(codec), "")


@pytest.mark.parametrize("codec", ["utf-16-le", "cp1251", "koi8-r"])
def test_the_person_tells_the_encoding(codec: str) -> None:
    """By its name; also of a file that would be binary otherwise, or is in ASCII so far."""
    assert guessed("ё\n".encode(codec), charset=codec).encode("щ") == "щ".encode(codec)
    if codec != "utf-16-le":
        assert guessed(b"x\n", charset=codec).encode("щ") == "щ".encode(codec)


@each_row(
    ("old", "codec", "new", "written", "note"),
    [
        ("# coding: latin-1\n# é\n", "latin-1", "# coding: latin-1\n# è\n", "latin-1", ""),
        ("# coding: latin-1\n# é\n", "latin-1", "# è\n", "latin-1", ""),
        ("# coding: latin-1\n# é\n", "latin-1", "# coding: utf-8\n# è\n", "utf-8", "it is utf-8 now"),
        ("# coding: latin-1\n# é\n", "latin-1", "# €\n", "utf-8", "which has no €"),
        ("# coding: latin-1\n# é\n", "latin-1", "# coding: latin-1\n# €\n", "", "has no '\\u20ac'"),
        ("é\n", "cp1252", "# a\n", "utf-8", ""),
        ("é\n", "cp1252", "# €\n", "", "DELETE_FILE before it makes it UTF-8"),
        (None, "", "# coding: latin-1\n# è\n", "latin-1", ""),
        (None, "", "# coding: latin-1\n# €\n", "", "has no '\\u20ac'"),
        (None, "", "# è\n", "utf-8", ""),
        ("", "utf-8", "# è\n", "utf-8", ""),
    ],
)
def test_a_whole_file_keeps_its_encoding_or_it_is_said(
    old: str | None, codec: str, new: str, written: str, note: str
) -> None:
    """No coding line lies."""
    found = None if old is None else guessed(old.encode(codec))
    try:
        data, said = encode_whole(new, found)
    except OperationError as fault:
        assert not written
        assert note in fault.reason
    else:
        assert data == new.encode(written)
        assert note in said
        assert bool(note) is bool(said)
