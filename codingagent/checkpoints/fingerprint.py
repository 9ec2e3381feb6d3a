"""Fingerprint a folder by names and metadata, to detect changes since the last look."""

import hashlib
import os
import time
from collections.abc import Collection

from msgspec import Struct

# A second change within one clock tick of the disk does not show. System ticks are 10 ms at most; a
# disk that stores whole seconds may store only even ones.
_TICK_NS = 100 * 10**6
_COARSE_TICK_NS = 2 * 10**9
_SECOND_NS = 10**9


class Survey(Struct, frozen=True):
    """The fingerprint of a folder; two equal ones saw the same files."""

    digest: bytes
    newest_ns: int
    """The newest modification time."""
    at_ns: int

    @property
    def is_sure(self) -> bool:
        """Return whether any later change would show in the next fingerprint."""
        tick = _TICK_NS if self.newest_ns % _SECOND_NS else _COARSE_TICK_NS
        return self.newest_ns < self.at_ns - tick


def survey(root: str, left_out: Collection[str]) -> Survey:
    """Fingerprint all files and links below a folder without reading them or following links.

    Args:
        root: the folder.
        left_out: paths to skip; a folder's path ends with /. `.git` is always skipped.
    """
    at_ns = time.time_ns()
    hasher = hashlib.blake2b(digest_size=20)
    newest = 0
    waiting = [""]
    while waiting:
        above = waiting.pop()
        told = [f"{above}:"]
        try:
            with os.scandir(f"{root}/{above}") as entries:
                for entry in entries:
                    path = above + entry.name
                    if path in left_out:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != ".git" and f"{path}/" not in left_out:
                            waiting.append(f"{path}/")
                        continue
                    found = entry.stat(follow_symlinks=False)
                    ctime, mtime = found.st_ctime_ns, found.st_mtime_ns
                    told.append(
                        f"{entry.name}/{found.st_mode}/{found.st_size}/{mtime}/{ctime}/{found.st_ino}"
                    )
                    newest = max(newest, ctime, mtime)
        except OSError as fault:
            told.append(f"?{fault.errno}")
        hasher.update("\0".join(told).encode("utf-8", "surrogatepass"))
    return Survey(hasher.digest(), newest, at_ns)
