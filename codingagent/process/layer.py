"""A project's layer: what its commands write where tools keep their data, not in the person's folders.

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
import time

assert sys.platform != "win32"

_SLOTS = 16
# A walk through it is made at most so often, and takes a small part of the time; a command that wrote little
# costs none.
_LOOK_EVERY_S, _REST, _LITTLE_BYTES = 1.0, 20, 2**16
_BLOCK = 512


class Slot:
    """A folder of a layer for one command, which writes up to `most` bytes; without one `path` is empty."""

    def __init__(self, layer: str, most: int) -> None:
        self.path, self._most = "", most
        for number in range(1, _SLOTS + 1 if layer else 1):
            path = f"{layer}/{number}"
            with contextlib.suppress(OSError):
                os.makedirs(path, 0o700, exist_ok=True)
                if (handle := _locked(path)) is not None:
                    self.path, self._handle = path, handle
                    break
        self._look_at = time.monotonic() + _LOOK_EVERY_S

    def is_full(self) -> bool:
        """Return whether it holds more than it may, as far as it is measured now and then."""
        if not self.path or (now := time.monotonic()) < self._look_at:
            return False
        is_over = size_of(self.path, self._most) > self._most
        took_s = time.monotonic() - now
        self._look_at = now + _LOOK_EVERY_S + _REST * took_s
        return is_over

    def release(self) -> None:
        """Let the next command have it."""
        if self.path:
            os.close(self._handle)

    def settle(self, *, was_killed: bool) -> None:
        """Set it aside, once it is released and no command has it, if it holds too much."""
        # What killed processes wrote is not counted.
        may_be = self.path and (was_killed or _written() > _LITTLE_BYTES)
        if may_be and size_of(self.path, self._most) > self._most:
            set_aside(self.path, waits=True)


def _written() -> int:
    """Return how many bytes this process, and all that ended below it, wrote to disks."""
    with contextlib.suppress(OSError), open("/proc/self/io", encoding="ascii") as file:
        return int(dict(line.split(": ") for line in file)["write_bytes"])
    return _LITTLE_BYTES + 1


def _locked(path: str, how: int = fcntl.LOCK_NB) -> int | None:
    """Return a locked handle on a folder, and no link; None if another process has it."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | how)
        if os.path.samestat(os.fstat(handle), os.lstat(path)):
            return handle
    os.close(handle)
    return None


def set_aside(path: str, *, waits: bool = False) -> None:
    """Rename a slot that no command has (or `waits` until none has it), for the agent to remove."""
    with contextlib.suppress(OSError):
        if (handle := _locked(path, 0 if waits else fcntl.LOCK_NB)) is not None:
            os.rename(path, f"{path}.full-{os.urandom(8).hex()}")
            os.close(handle)


def size_of(folder: str, most: int | None = None) -> int:
    """Return how many bytes of the disk are taken by what is below a folder, or more than `most`."""
    found, todo = 0, [folder]
    while todo and (most is None or found <= most):
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
    return found
