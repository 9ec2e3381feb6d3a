"""Which paths a repository tracks, from the bytes of git's index, whoever wrote it and in what version."""

import itertools
import struct
from bisect import bisect_left

_HEADER = struct.Struct(">4sII")
_ENTRY_BYTES = 62  # up to the name, with SHA-1
_SHA256_MORE = 12
_MORE_FLAGS = 0x40
_LONG_NAME = 0xFFF


class Tracked:
    """Paths as one or two indexes name them."""

    def __init__(self, *found: list[bytes]) -> None:
        self._sorted = found[0] if len(found) == 1 else sorted(itertools.chain(*found))
        self._set = frozenset(self._sorted)

    def has_file(self, path: bytes) -> bool:
        return path in self._set

    def has_below(self, folder: bytes) -> bool:
        """Tells whether anything below a folder is tracked; it is given with its slash."""
        at = bisect_left(self._sorted, folder)
        return at < len(self._sorted) and self._sorted[at].startswith(folder)


def paths(index: bytes) -> tuple[list[bytes], str]:
    """Gives the paths of an index, and the name of the one that it shares the rest with ("" if none).

    Of an index that is not whole, or that no git has written, nothing is believed.
    """
    if len(index) < _HEADER.size:
        return [], ""
    kind, version, count = _HEADER.unpack_from(index)
    if kind != b"DIRC" or version not in (2, 3, 4):
        return [], ""
    read = {2: _plain, 3: _extended, 4: _packed}[version]
    for more in (0, _SHA256_MORE):
        try:
            found, end = read(index, count, _ENTRY_BYTES + more)
        except (IndexError, ValueError):
            continue
        return sorted(filter(None, found)), _shared(index, end, 20 + more)
    return [], ""


def _plain(index: bytes, count: int, skip: int) -> tuple[list[bytes], int]:
    found: list[bytes] = []
    at = _HEADER.size
    find, add = index.index, found.append
    for _ in range(count):
        end = find(b"\0", at + skip)
        add(index[at + skip : end])
        at += end - at + 8 & ~7
    # The first tells of all: digests of another length than thought of shift every name.
    if found:
        _check_length(index, _HEADER.size + skip - 2, found[0])
    return found, at


def _extended(index: bytes, count: int, skip: int) -> tuple[list[bytes], int]:
    """Version 3: some entries have two bytes more before the name."""
    found: list[bytes] = []
    at = _HEADER.size
    for _ in range(count):
        name_at = at + skip + (2 if index[at + skip - 2] & _MORE_FLAGS else 0)
        end = index.index(b"\0", name_at)
        found.append(index[name_at:end])
        _check_length(index, at + skip - 2, found[-1])
        at += end - at + 8 & ~7
    return found, at


def _check_length(index: bytes, flags_at: int, name: bytes) -> None:
    length = (index[flags_at] & 0xF) << 8 | index[flags_at + 1]
    if length not in (_LONG_NAME, len(name)):
        raise ValueError("the digests are of another length")


def _packed(index: bytes, count: int, skip: int) -> tuple[list[bytes], int]:
    """Version 4: each name is told by how much of the one before it goes, and what comes then."""
    found: list[bytes] = []
    at = _HEADER.size
    name = b""
    for _ in range(count):
        flags_at = at + skip - 2
        at += skip + (2 if index[flags_at] & _MORE_FLAGS else 0)
        less = index[at] & 0x7F
        while index[at] & 0x80:
            at += 1
            less = (less + 1 << 7) | index[at] & 0x7F
        end = index.index(b"\0", at + 1)
        if less > len(name):
            raise ValueError("there is not so much to take off")
        name = name[: len(name) - less] + index[at + 1 : end]
        _check_length(index, flags_at, name)
        found.append(name)
        at = end + 1
    return found, at


def _shared(index: bytes, at: int, digest_bytes: int) -> str:
    """Gives the digest that names the shared part of an index which is split in two."""
    while at + 8 <= len(index) - digest_bytes:
        kind, size = struct.unpack_from(">4sI", index, at)
        if kind == b"link":
            return index[at + 8 : at + 8 + digest_bytes].hex()
        at += 8 + size
    return ""
