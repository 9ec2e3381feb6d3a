"""What is dropped as an archive: bounded in what it costs, whatever it claims."""

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest

from codingagent.agent import downloads
from codingagent.errors import UsageError

_LARGE = 48 * 2**20
_MOST_BYTES = 30 * 2**20


def _made(kind: int, *texts: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", kind) as archive:
        for number, text in enumerate(texts):
            archive.writestr(f"{number}.txt", text)
    return made.getvalue()


def _twice() -> bytes:
    """Return an archive in which a file comes twice: which of them is meant, nobody knows."""
    return _made(zipfile.ZIP_STORED, b"one", b"two").replace(b"1.txt", b"0.txt")


def _zeros(kind: int) -> bytes:
    """Return an archive of one long file, written piece by piece."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", kind) as archive, archive.open("0.txt", "w") as target:
        for _ in range(_LARGE // 2**20):
            target.write(bytes(2**20))
    return made.getvalue()


def _claiming(size: int, data: bytes) -> bytes:
    """Return an archive whose one file claims another size, in both places."""
    changed = bytearray(data)
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", changed, data.rindex(mark) + place, size)
    return bytes(changed)


def _many_entries() -> bytes:
    """Return an archive that lists one file 100,000 times, all of them empty."""
    one = _made(zipfile.ZIP_STORED, b"")
    begin, end = one.index(b"PK\x01\x02"), one.index(b"PK\x05\x06")
    listed = one[begin:end] * 100_000
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(listed), begin, 0)
    return one[:begin] + listed + tail


def _listing_more_than_it_says() -> bytes:
    """Return an archive whose last record counts one file, and whose list has 100,000."""
    data = _many_entries()
    return data[:-14] + struct.pack("<2H", 1, 1) + data[-10:]


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: _zeros(zipfile.ZIP_DEFLATED), "holds too much"),
        (lambda: _claiming(5, _zeros(zipfile.ZIP_DEFLATED)), "Bad CRC-32"),
        (lambda: _claiming(5, _zeros(zipfile.ZIP_BZIP2)), "packed in a way that is not taken"),
        (lambda: _made(zipfile.ZIP_LZMA, b"text"), "packed in a way that is not taken"),
        (_many_entries, "holds too much"),
        (_listing_more_than_it_says, "holds too much"),
        (lambda: _made(zipfile.ZIP_STORED, *[b"x"] * 201), "holds too much"),
        (_twice, "holds a file twice"),
    ],
    ids=["large", "larger than it says", "bzip2", "lzma", "entries", "more than it says", "files", "twice"],
)
def test_an_archive_costs_no_more_than_an_answer(made: Callable[[], bytes], told: str) -> None:
    data = made()
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=told):
            downloads.opened(data, ())
        assert tracemalloc.get_traced_memory()[1] < _MOST_BYTES
    finally:
        tracemalloc.stop()


def test_the_most_that_an_archive_holds_is_taken_for_a_few_times_its_size() -> None:
    text = "\N{EURO SIGN}\n".encode() * 2**20
    data = _made(zipfile.ZIP_DEFLATED, text, text[:-1])
    tracemalloc.start()
    try:
        taken = downloads.opened(data, ())
        assert [len(each.data) for each in taken[1]] == [len(text), len(text) - 1]
        assert tracemalloc.get_traced_memory()[1] < 3 * _MOST_BYTES
    finally:
        tracemalloc.stop()


def _packed(*names: str, **texts: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for number, name in enumerate(names):
            archive.writestr(name, texts.get(name, b"%d\n" % number))
    return made.getvalue()


_KNOWN = ("main.py", "x.py", "shop/cart.py", "shop/tax.py", "docs/index.md")


@pytest.mark.parametrize(
    ("names", "head"),
    [
        (["plugins/foo/main.py", "plugins/foo/y.py"], ""),
        (["frontend/shop/app.js"], ""),
        (["any/shop/cart.py", "any/new.py"], "any/"),
        (["any/main.py", "any/x.py", "any/y.py"], "any/"),
        (["store-main/y.py"], "store-main/"),
        (["store (1)/y.py", "store (1)/main.py"], "store (1)/"),
        (["docs/delete.md", "docs/index.md"], ""),
        (["bin/remove", "main.py"], ""),
        (["docs/operations.md", "tests/fixtures/response.txt"], ""),
    ],
)
def test_a_folder_is_taken_off_by_proof_and_deeper_names_are_files(names: list[str], head: str) -> None:
    text = b"[DELETE_FILE]shop/cart.py[/DELETE_FILE]\n"
    data = _packed(*names, **dict.fromkeys(("docs/operations.md", "tests/fixtures/response.txt"), text))
    given, found, _ = downloads.opened(data, _KNOWN, "store")
    assert (given, sorted(e.path for e in found)) == (b"", sorted(name.removeprefix(head) for name in names))


@pytest.mark.parametrize("other", ["shop//cart.py", "shop/./cart.py", "shop/Cart.py", "a/../shop/cart.py"])
def test_a_file_comes_once_in_whatever_spelling(other: str) -> None:
    with pytest.raises(UsageError, match="holds a file twice"):
        downloads.opened(_packed("shop/cart.py", other), _KNOWN)
    with pytest.raises(UsageError, match="lists to be deleted"):
        downloads.opened(_packed("shop/cart.py", "deleted.txt", **{"deleted.txt": other.encode()}), _KNOWN)


def test_a_list_of_deletions_may_have_a_mark_and_a_zip_may_hold_zips() -> None:
    inner = _made(zipfile.ZIP_STORED, *[b""] * 150)
    names = {"to-delete.txt": b"\xef\xbb\xbfx.py\n", "1.bin": inner, "2.bin": inner}
    found = downloads.opened(_packed(*names, **names), _KNOWN)[1]
    assert [(each.path, each.is_gone) for each in found][-1] == ("x.py", True)


@pytest.mark.parametrize("said", ["/app/shop/cart.py", "~/shop/cart.py", "../shop/cart.py", "../cart.py"])
def test_a_first_line_with_a_path_outside_is_no_end(said: str) -> None:
    data = f"# {said}\n".encode()
    made = downloads.as_answer([("cart.py", data)], lambda: _KNOWN)
    assert [each.path for each in downloads.opened(made, _KNOWN)[1]] == ["shop/cart.py"]
    with pytest.raises(UsageError, match="no file of the workspace"):
        downloads.as_answer([("cart.py", data)], lambda: ["main.py"])


def test_a_download_whose_first_line_says_a_path_is_a_file_whatever_its_name() -> None:
    made = downloads.as_answer([("delete.md", b"<!-- new/delete.md -->\n")] * 2, tuple)
    assert [each.path for each in downloads.opened(made, ())[1]] == ["new/delete.md"]
