"""Limits of a command's process tree, and its memory, which is measured.

The memory limit is not a per-process kernel limit: programs that reserve address space without using it (a
sanitizer's shadow, 14 TB) would not start, and a hundred processes could each take the whole. Nor
is it a control group, which few systems let a user create. Instead, the command's guard measures.

The supervisor imports it and must start fast: it imports nothing from the package.
"""

import contextlib
import mmap
import os
import sys
from collections.abc import Iterable, Iterator

# The default share of the machine's memory.
_SHARE = 3 / 4
_MIB = 2**20
# More processes than this are a fork bomb, which must not take the machine down.
PROCESS_LIMIT = 1000


def limit_bytes(megabytes: int) -> int | None:
    """Return the memory limit of a command's process tree; None where memory can't be measured.

    0 megabytes mean three quarters of the machine's memory.
    """
    if sys.platform == "linux":
        most = min([mmap.PAGESIZE * os.sysconf("SC_PHYS_PAGES"), *_of_groups()])
        return megabytes * _MIB if megabytes else int(most * _SHARE)
    elif sys.platform == "win32":  # noqa: RET505  # the type checker follows this
        import ctypes

        status = (ctypes.c_uint64 * 8)(64)  # MEMORYSTATUSEX: its length first, the memory second
        ctypes.WinDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status))
        return megabytes * _MIB if megabytes else int(status[1] * _SHARE)
    else:
        return None


def in_words(limit: int | None) -> str:
    return "" if limit is None else f"{limit // _MIB:,} MiB of memory"


def _of_groups() -> Iterator[int]:
    """Yield the limits of this process's control groups, as far as they are visible."""
    for line in _text("/proc/self/cgroup").splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds not in ("", "memory"):
            continue
        root = "/sys/fs/cgroup" if not kinds else f"/sys/fs/cgroup/{kinds}"
        name = "memory.limit_in_bytes" if kinds else "memory.max"
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts) + 1):
            said = _text("/".join([root, *parts[:depth], name])).strip()
            if said.isdigit():
                yield int(said)


def taken_bytes(pids: Iterable[int], limit: int) -> int:
    """Return the memory that processes take; above the limit, shared memory counts once."""
    resident = {}
    for pid in pids:
        fields = _text(f"/proc/{pid}/statm").split()
        resident[pid] = int(fields[1]) * mmap.PAGESIZE if fields else 0
    if sum(resident.values()) <= limit:
        return sum(resident.values())
    return sum(_own(pid, bytes_) for pid, bytes_ in resident.items())


def _own(pid: int, resident: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            said = dict(line.split(":", 1) for line in file.read().splitlines()[1:])
    except ProcessLookupError:
        return 0  # it ended meanwhile; what it shared is counted with the others
    except OSError:
        return resident
    if "Pss" not in said:
        return resident
    return sum(int(said.get(name, "0").split()[0]) * 1024 for name in ("Pss", "SwapPss"))


def end_first() -> str:
    """Make the out-of-memory killer prefer this process and its children; return the previous score."""
    before = _text(_SCORE)
    put_score(_ENDED_FIRST)
    return before


def put_score(score: str) -> None:
    """Restore the score that `end_first` returned; processes started meanwhile keep theirs."""
    with contextlib.suppress(OSError), open(_SCORE, "w", encoding="ascii") as file:
        file.write(score)


_SCORE, _ENDED_FIRST = "/proc/self/oom_score_adj", "1000"


def _text(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
        return file.read()
    return ""
