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
from collections.abc import Collection, Iterator

# The default share of the machine's memory.
_SHARE = 3 / 4
_MIB = 2**20
# More processes than this are a fork bomb, which must not take the machine down.
PROCESS_LIMIT = 1000
FILE_LIMIT_BYTES = 2 * 2**30
_SCORE, ENDED_FIRST = "/proc/self/oom_score_adj", "1000"


def limit_bytes(megabytes: int) -> int | None:
    """Return the memory limit of a command's process tree; None where memory can't be measured.

    0 megabytes mean three quarters of the machine's memory.
    """
    most = 0
    if sys.platform == "linux":
        most = min([mmap.PAGESIZE * os.sysconf("SC_PHYS_PAGES"), *_of_groups()])
    elif sys.platform == "win32":
        import ctypes

        status = (ctypes.c_uint64 * 8)(64)  # MEMORYSTATUSEX: its length first, the memory second
        ctypes.WinDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status))
        most = status[1]
    return (megabytes * _MIB or int(most * _SHARE)) if most else None


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


def exceeded(pids: Collection[int], limit: int | None) -> str:
    """Return which limit a process tree exceeds, "itself" if none; shared memory counts once."""
    if len(pids) > PROCESS_LIMIT:
        return "process_limit"
    resident = {}
    for pid in pids if limit is not None else ():
        fields = _text(f"/proc/{pid}/statm").split()
        resident[pid] = int(fields[1]) * mmap.PAGESIZE if fields else 0
    # Which part is shared takes longer to find.
    if limit is None or sum(resident.values()) <= limit:
        return "itself"
    return "memory_limit" if sum(map(_own, resident, resident.values())) > limit else "itself"


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


def put_score(score: str) -> str:
    """Set how soon the out-of-memory killer takes this process and children to come; return what it was."""
    before = _text(_SCORE)
    with contextlib.suppress(OSError), open(_SCORE, "w", encoding="ascii") as file:
        file.write(score)
    return before


def _text(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
        return file.read()
    return ""
