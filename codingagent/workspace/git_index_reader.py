"""Read which paths a repository tracks from the bytes of git's index, in any version.

A command, or the repository's author, may have forged it: every loop here is bounded.
"""

import itertools
import struct
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = struct.Struct(">4sII")
_ENTRY_BYTES = 62  # up to the name, with SHA-1
_SHA256_MORE = 12
_MORE_FLAGS = 0x40
_LONG_NAME = 0xFFF

# The path limit of Linux. In version 4 a name may cost one byte and be as long as the previous one.
_NAME_LIMIT_BYTES = 4096
_NAMES_LIMIT_BYTES = 1 << 27
# git's variable-length number needs at most three bytes for a name of that length.
_NUMBER_LIMIT_BYTES = 5
# git knows nine kinds, each used once.
_EXTENSIONS_LIMIT = 100


class Tracked:
    """The paths in one or two indexes; `unread` names the indexes that could not be read, and why."""

    def __init__(self, *found: list[bytes], unread: str = "") -> None:
        self.unread = unread
        self._sorted = found[0] if len(found) == 1 else sorted(itertools.chain(*found))
        self._set = frozenset(self._sorted)

    def has_file(self, path: bytes) -> bool:
        return path in self._set

    def below(self, folder: bytes) -> Iterator[bytes]:
        """Yield the tracked paths below a folder, which is given with its slash."""
        at = bisect_left(self._sorted, folder)
        return itertools.takewhile(lambda path: path.startswith(folder), self._sorted[at:])

    def has_below(self, folder: bytes) -> bool:
        """Return whether anything below a folder, given with its slash, is tracked."""
        at = bisect_left(self._sorted, folder)
        return at < len(self._sorted) and self._sorted[at].startswith(folder)


class Index(NamedTuple):
    """The content of an index.

    `shared` names the index that holds the rest; `fault` says why nothing was read.
    """

    paths: list[bytes]
    shared: str = ""
    fault: str = ""


def read_index(index: bytes) -> Index:
    """Parse an index; trust nothing in one that differs from what git writes."""
    if not index:
        return Index([])
    foreign = Index([], fault="it is not as git writes it")
    if len(index) < _HEADER.size:
        return foreign
    kind, version, count = _HEADER.unpack_from(index)
    if kind != b"DIRC" or version not in (2, 3, 4):
        return foreign
    read = {2: _plain, 3: _extended, 4: _packed}[version]
    for more in (0, _SHA256_MORE):
        try:
            found, end = read(index, count, _ENTRY_BYTES + more)
        except (IndexError, ValueError):
            continue
        return Index(sorted(filter(None, found)), _shared(index, end, 20 + more))
    return foreign


def _plain(index: bytes, count: int, skip: int) -> tuple[list[bytes], int]:
    found: list[bytes] = []
    at = _HEADER.size
    find, add = index.index, found.append
    for _ in range(count):
        end = find(b"\0", at + skip)
        add(index[at + skip : end])
        at += end - at + 8 & ~7
    # The first entry decides: with another digest length, every name would shift.
    if found:
        _check_length(index, _HEADER.size + skip - 2, found[0])
    return found, at


def _extended(index: bytes, count: int, skip: int) -> tuple[list[bytes], int]:
    """Parse version 3: some entries have two more bytes before the name."""
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
    """Parse version 4: each name is stored as the length of the prefix to drop and a new suffix."""
    found: list[bytes] = []
    at = _HEADER.size
    name = b""
    total = 0
    for _ in range(count):
        flags_at = at + skip - 2
        at += skip + (2 if index[flags_at] & _MORE_FLAGS else 0)
        less = index[at] & 0x7F
        number_at = at
        while index[at] & 0x80:
            at += 1
            if at - number_at >= _NUMBER_LIMIT_BYTES:
                raise ValueError("no name is so long")
            less = (less + 1 << 7) | index[at] & 0x7F
        end = index.index(b"\0", at + 1)
        if less > len(name):
            raise ValueError("there is not so much to take off")
        name = name[: len(name) - less] + index[at + 1 : end]
        total += len(name)
        if len(name) > _NAME_LIMIT_BYTES or total > _NAMES_LIMIT_BYTES:
            raise ValueError("the names are longer than a system takes")
        _check_length(index, flags_at, name)
        found.append(name)
        at = end + 1
    return found, at


def _shared(index: bytes, at: int, digest_bytes: int) -> str:
    """Return the digest that names the shared part of a split index."""
    for _ in range(_EXTENSIONS_LIMIT):
        if at + 8 > len(index) - digest_bytes:
            break
        kind, size = struct.unpack_from(">4sI", index, at)
        if kind == b"link":
            return index[at + 8 : at + 8 + digest_bytes].hex()
        at += 8 + size
    return ""
