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


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: _zeros(zipfile.ZIP_DEFLATED), "holds too much"),
        (lambda: _claiming(5, _zeros(zipfile.ZIP_DEFLATED)), "Bad CRC-32"),
        (lambda: _claiming(5, _zeros(zipfile.ZIP_BZIP2)), "packed in a way that is not taken"),
        (lambda: _made(zipfile.ZIP_LZMA, b"text"), "packed in a way that is not taken"),
        (_many_entries, "holds too much"),
        (lambda: _made(zipfile.ZIP_STORED, *[b"x"] * 201), "holds too much"),
        (_twice, "holds a file twice"),
    ],
    ids=["large", "larger than it says", "bzip2", "lzma", "entries", "files", "twice"],
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
