"""A project's layer: what its commands write where tools keep their data, in place of the person's own folders.

It lies with the person's state, never in a workspace and never in a cache of theirs:

    LAYER/1/upper/PART   what was changed over the person's part (overlayfs), and its `work`
    LAYER/1/plain/PART   a part of the project's own
    LAYER/2/…            for a command that runs at the same time: two must not write to one

What is in it is as untrusted as the workspace: outside of a sandbox it is only measured and removed.

The supervisor imports it and must start fast: it imports nothing from the package.
"""

import contextlib
import fcntl
import os
import sys

assert sys.platform != "win32"

_SLOTS = 16
# A walk is worth it when the disk lost that share of the bound; a command that wrote nothing costs none.
_SHARE, _NOTHING_BYTES = 8, 2**20
_BLOCK = 512
SET_ASIDE = ".full"


class Slot:
    """A folder of a layer that one command alone writes to, up to `most` bytes.

    `path` is empty if there is none: no layer, no right to write there, or too many commands at once.
    """

    def __init__(self, layer: str, most: int) -> None:
        self.path, self._most = "", most
        for number in range(1, _SLOTS + 1 if layer else 1):
            path = f"{layer}/{number}"
            with contextlib.suppress(OSError):
                os.makedirs(path, 0o700, exist_ok=True)
                if (handle := _locked(path)) is not None:
                    self.path, self._handle = path, handle
                    break
        self._free = self._begun_free = self._free_bytes()

    def is_full(self) -> bool:
        """Return whether it holds more than it may; it is measured only after the disk lost enough."""
        if not self.path or self._free - self._free_bytes() < self._most // _SHARE:
            return False
        self._free = self._free_bytes()
        return is_over(self.path, self._most)

    def set_aside(self) -> None:
        """Give it another name, under which the agent removes it; the next command begins with an empty one."""
        with contextlib.suppress(OSError):
            os.rename(self.path, f"{self.path}{SET_ASIDE}-{os.urandom(8).hex()}")

    def settle(self) -> None:
        """Let the next command have it, then set it aside if it holds too much and nobody has it."""
        if not self.path:
            return
        os.close(self._handle)
        if self._begun_free - self._free_bytes() > _NOTHING_BYTES and is_over(self.path, self._most):
            with contextlib.suppress(OSError):
                handle = _locked(self.path)
                if handle is not None:
                    self.set_aside()
                    os.close(handle)

    def _free_bytes(self) -> int:
        with contextlib.suppress(OSError):
            disk = os.statvfs(self.path)
            return disk.f_bfree * disk.f_frsize
        return 0


def _locked(path: str) -> int | None:
    """Return a locked handle on a folder, and no link; None if another process has it."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), os.lstat(path)):
            return handle
    except OSError:
        pass
    os.close(handle)
    return None


def is_over(folder: str, most: int) -> bool:
    """Return whether what is below a folder takes more than `most` bytes on the disk."""
    return size_of(folder, most) > most


def size_of(folder: str, most: int | None = None) -> int:
    """Return how many bytes on the disk are taken by what is below a folder; more than `most` is not counted."""
    found, todo = 0, [folder]
    while todo and (most is None or found <= most):
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
    return found
