"""How much memory a command may take, and how much a tree of processes takes.

Not a limit of the kernel for each process: what reserves address space and never uses it (a sanitizer's
shadow, 14 TB) would not start, and a hundred processes could each take the whole. Nor a control group, in
which few systems let a user put anything. The guard of a command looks.

The supervisor uses it, which must start at once: it imports nothing of the package.
"""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator

# Of the machine's memory, unless the person says otherwise.
_SHARE = 3 / 4

_MIB = 2**20


def limit_bytes(megabytes: int) -> int | None:
    """Return what a command and all that it starts may take; None where nobody can look.

    Args:
        megabytes: as the person says; 0 for three quarters of what there is.
    """
    if sys.platform != "linux":
        return None
    return megabytes * _MIB if megabytes else int(_available() * _SHARE)


def in_words(limit: int | None) -> str:
    """Return a limit as a person reads it; nothing for none."""
    return "" if limit is None else f"{limit // _MIB:,} MiB of memory"


def _available() -> int:
    """Return the machine's memory, or what the container has of it."""
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_of_groups()])


def _of_groups() -> Iterator[int]:
    """Yield the limits of the control groups around this process, as far as they are seen here."""
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
    """Return what processes take; above a limit, what they share is counted once.

    That takes long, of large ones: it is looked at only where it matters.
    """
    resident = {pid: _resident(pid) for pid in pids}
    if sum(resident.values()) <= limit:
        return sum(resident.values())
    return sum(_own(pid, bytes_) for pid, bytes_ in resident.items())


def _resident(pid: int) -> int:
    fields = _text(f"/proc/{pid}/statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def _own(pid: int, resident: int) -> int:
    said = dict(line.split(":", 1) for line in _text(f"/proc/{pid}/smaps_rollup").splitlines()[1:])
    if "Pss" not in said:
        return resident
    return sum(int(said.get(name, "0").split()[0]) * 1024 for name in ("Pss", "SwapPss"))


def end_first() -> str:
    """Let this process, and what it starts, be ended first where all memory is taken; return what was."""
    before = _text(_SCORE)
    put_score(_ENDED_FIRST)
    return before


def put_score(score: str) -> None:
    """Put back what `end_first` has returned; what was started meanwhile keeps it."""
    with contextlib.suppress(OSError), open(_SCORE, "w", encoding="ascii") as file:
        file.write(score)


_SCORE, _ENDED_FIRST = "/proc/self/oom_score_adj", "1000"


def _text(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
        return file.read()
    return ""
