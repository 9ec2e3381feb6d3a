"""Read and write git's index (version 2): the files that a checkpoint covers, with their metadata.

git compares it with the files' metadata, which is fast; only this code writes it. So git never
reads a file, which would follow links and run the filters that a workspace configures.
"""

import hashlib
import struct
from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate

from msgspec import Struct

_HEADER = struct.Struct(">4sII")
_ENTRY = struct.Struct(">10I20sH")
_NAME_AT = _ENTRY.size
_DIGEST_BYTES = 20
_LONG_NAME = 0xFFF
_WORD = 0xFFFFFFFF
_SECOND = 10**9


class IndexStat(Struct, frozen=True):
    """The metadata of a file that git compares."""

    ctime_ns: int
    mtime_ns: int
    device: int
    inode: int
    user: int
    group: int
    size_bytes: int


# Differs from every file, so git lists the path and its content is read.
UNKNOWN = IndexStat(0, 0, 0, 0, 0, 0, 0)


def entry(path: bytes, mode: int, blob: str, look: IndexStat) -> bytes:
    """Return one entry; `mode` is git's: 0o100644, 0o100755 or 0o120000."""
    words = (
        *divmod(look.ctime_ns, _SECOND),
        *divmod(look.mtime_ns, _SECOND),
        *(look.device, look.inode, mode, look.user, look.group, look.size_bytes),
    )
    flags = min(len(path), _LONG_NAME)
    fields = _ENTRY.pack(*(word & _WORD for word in words), bytes.fromhex(blob), flags)
    return fields + path + bytes(8 - (_NAME_AT + len(path)) % 8)


class _Entries(Struct, frozen=True):
    """The paths of an index, in order and as a set."""

    names: list[bytes]
    paths: frozenset[bytes]

    def starts(self) -> list[int]:
        """Return where each entry begins, and where the last one ends."""
        sizes = ((_NAME_AT + len(name) & ~7) + 8 for name in self.names)
        return list(accumulate(sizes, initial=_HEADER.size))


# The latest index that was read or merged: reading 60,000 entries costs as much as all else about
# it, and two checkpoints of a turn ask for them up to four times.
_latest: tuple[bytes, _Entries] = b"", _Entries([], frozenset())


def paths(index: bytes) -> frozenset[bytes]:
    """Return the paths of all entries.

    Raises:
        ValueError: if the index is damaged.
    """
    return _parsed(index).paths


def merged(index: bytes, updates: Mapping[bytes, bytes | None]) -> bytes:
    """Return an index with some entries added or replaced by path, or removed (None).

    A path is a file or a folder, never both: the added one wins.

    Raises:
        ValueError: if the index is damaged.
    """
    entries = _parsed(index)
    names, starts = entries.names, entries.starts()
    every = {**_conflicts(names, updates), **updates}
    pieces: list[bytes] = []
    kept: list[bytes] = []
    done = 0
    for path in sorted(every):
        at = bisect_left(names, path)
        pieces.append(index[starts[done] : starts[at]])
        kept += names[done:at]
        done = at + (at < len(names) and names[at] == path)
        piece = every[path]
        if piece is not None:
            pieces.append(piece)
            kept.append(path)
    pieces.append(index[starts[done] : starts[-1]])
    kept += names[done:]
    body = b"".join([_HEADER.pack(b"DIRC", 2, len(kept)), *pieces])
    new = body + _digest(body)
    _remember(new, kept)
    return new


def empty() -> bytes:
    """Return an index without entries."""
    body = _HEADER.pack(b"DIRC", 2, 0)
    return body + _digest(body)


def _is_whole(index: bytes) -> bool:
    body = memoryview(index)[:-_DIGEST_BYTES]
    return len(index) >= len(empty()) and _digest(body) == index[-_DIGEST_BYTES:]


def _parsed(index: bytes) -> _Entries:
    if index == _latest[0]:
        return _latest[1]
    if not _is_whole(index):
        raise ValueError("the index is not whole")
    kind, version, count = _HEADER.unpack_from(index)
    if (kind, version) != (b"DIRC", 2):
        raise ValueError("the index is of another kind")
    names: list[bytes] = []
    at = _HEADER.size
    for _ in range(count):
        name_at = at + _NAME_AT
        length = (index[name_at - 2] & 0xF) << 8 | index[name_at - 1]
        if length == _LONG_NAME:
            length = index.index(0, name_at) - name_at
        names.append(index[name_at : name_at + length])
        at = (name_at + length - _HEADER.size & ~7) + 8 + _HEADER.size
    return _remember(index, names)


def _remember(index: bytes, names: list[bytes]) -> _Entries:
    global _latest  # noqa: PLW0603  # as a cache of one
    _latest = index, _Entries(names, frozenset(names))
    return _latest[1]


def _conflicts(names: list[bytes], updates: Mapping[bytes, bytes | None]) -> dict[bytes, None]:
    """Return the entries that conflict with added ones, since the listings are from different moments."""
    conflicts: dict[bytes, None] = {}
    if not names:
        return conflicts
    folders: set[bytes] = set()
    for path, piece in updates.items():
        if piece is None:
            continue
        folder = path.rpartition(b"/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            at = bisect_left(names, folder)
            if at < len(names) and names[at] == folder:
                conflicts[folder] = None
            folder = folder.rpartition(b"/")[0]
        below = path + b"/"
        at = bisect_left(names, below)
        while at < len(names) and names[at].startswith(below):
            conflicts[names[at]] = None
            at += 1
    return conflicts


def _digest(body: "bytes | memoryview") -> bytes:
    # SHA-1 is git's format; here it guards against torn writes, not against attackers.
    return hashlib.sha1(body, usedforsecurity=False).digest()
