"""What is read of git's index, which may be anybody's bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.workspace.git_index_reader import Tracked, read_index

FOREIGN = "it is not as git writes it"


def header(version: int, count: int) -> bytes:
    return struct.pack(">4sII", b"DIRC", version, count)


def entry(name: bytes, taken_off: bytes = b"\0", length: int | None = None) -> bytes:
    """Return an entry of version 4: the number of bytes to take off the name before, and what follows."""
    flags = struct.pack(">H", min(0xFFF, len(name) if length is None else length))
    return bytes(60) + flags + taken_off + name + b"\0"


def plain(name: bytes) -> bytes:
    """Return an entry of version 2."""
    data = bytes(60) + struct.pack(">H", min(0xFFF, len(name))) + name
    return data + bytes(8 - len(data) % 8)


DIGEST = bytes(20)


def test_names_are_read_in_each_version() -> None:
    assert read_index(header(2, 2) + plain(b"a") + plain(b"b/c") + DIGEST).paths == [b"a", b"b/c"]
    packed = header(4, 2) + entry(b"b/c") + entry(b"d", b"\x01", 3) + DIGEST
    assert read_index(packed).paths == [b"b/c", b"b/d"]


# A number that never ends cost quadratic time, a name that grows with each entry as much memory, and
# extensions without a size sixteen million steps. Each of these is read to a bound, and refused.
@pytest.mark.parametrize(
    "index",
    [
        header(4, 1) + entry(b"a", b"\xff" * 20_000_000 + b"\0"),
        header(4, 1) + entry(b"a", b"\x80" * 5 + b"\0"),
        header(4, 1) + entry(b"a" * 5_000),
        header(4, 60_000) + entry(b"a" * 4_000) + entry(b"", length=4_000) * 59_999,
        header(4, 2) + entry(b"a") + entry(b"b", b"\x02"),
        header(2, 2**32 - 1),
        header(3, 2**32 - 1) + bytes(1_000_000),
        header(5, 0),
        b"DIRC",
        bytes(70_000_000),
    ],
    ids=[
        "a number without end",
        "a number too long",
        "a name too long",
        "names that are one name over and over",
        "more taken off than there is",
        "entries that are not there",
        "zeros",
        "another version",
        "a beginning",
        "a hole",
    ],
)
def test_what_git_does_not_write_is_refused_in_bounded_work(index: bytes) -> None:
    """Design, the workspace: its bytes may be anybody's; every reader of them has a bound."""
    found = read_index(index)
    assert (found.paths, found.shared, found.fault) == ([], "", FOREIGN)


def test_extensions_are_looked_through_to_a_bound() -> None:
    one = header(2, 1) + plain(b"a")
    empty = b"TREE" + bytes(4)
    link = b"link" + struct.pack(">I", 20) + b"\xab" * 20
    assert read_index(one + empty + link + DIGEST).shared == "ab" * 20
    assert read_index(one + empty * 1_000_000 + link + DIGEST).shared == ""


def test_no_index_is_no_fault() -> None:
    assert read_index(b"") == ([], "", "")
    assert not Tracked().has_below(b"")


@given(
    version=st.sampled_from([2, 3, 4]),
    count=st.integers(0, 2**32 - 1),
    pieces=st.lists(st.sampled_from([b"\0", b"\xff", b"\x80", bytes(60), b"abc", b"\0\3abc\0"])),
)
def test_reading_never_raises(version: int, count: int, pieces: list[bytes]) -> None:
    """Whatever the bytes, what is found is names, and never more of them than bytes are there for."""
    data = header(version, count) + b"".join(pieces) + DIGEST
    found = read_index(data)
    assert len(found.paths) * 62 <= len(data)
    assert all(found.paths)


@given(at=st.integers(0, 400), byte=st.integers(0, 255), version=st.sampled_from([2, 4]))
def test_a_changed_byte_never_raises(at: int, byte: int, version: int) -> None:
    """A true index in which one byte is another is read or refused."""
    entries = [plain(n) if version == 2 else entry(n) for n in (b"a", b"b/c", b"d" * 100)]
    data = bytearray(header(version, 3) + b"".join(entries) + DIGEST)
    if version == 4:
        data[: len(data)] = header(4, 1) + entry(b"b/c") + DIGEST
    data[at % len(data)] = byte
    found = read_index(bytes(data))
    assert found.fault in ("", FOREIGN)
