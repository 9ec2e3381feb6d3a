"""Mount the person's folders in a sandbox by descriptor, so that swapping names can't redirect a mount.

bwrap resolves a path by name, more than once, and follows links, which another command could put there
in between. So it mounts only the system and waits. A child of the guard enters the sandbox's namespaces,
opens every path without following a link, compares each with what the agent examined, and mounts it.

A project's layer has what its commands write where tools keep their data, not in the person's folders. It is
as untrusted as the workspace: outside of a sandbox it is only measured and removed.

    LAYER/1/upper/PART   what was changed over the person's part (overlayfs), and its `work`
    LAYER/1/plain/PART   a part of the project's own
    LAYER/2/…            for a command that runs at the same time: two must not write to one

The supervisor imports it and must start fast: it imports nothing from the package.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache

assert sys.platform != "win32"

# linux/sched.h, mount.h, fcntl.h, openat2.h; the system calls have these numbers on all architectures.
_CLONE_NEWNS, _CLONE_NEWUSER = 0x0002_0000, 0x1000_0000
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_PATH_ONLY = getattr(os, "O_PATH", 0)
_NO_LINKS = 0x04 | 0x08  # RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH
_OPEN_TREE_CLONE = 1
_EMPTY_PATHS = 0x04 | 0x40
_AT_EMPTY_PATH, _AT_RECURSIVE = 0x1000, 0x8000
_READ_ONLY, _NO_SETUID, _NO_DEVICES = 1, 2, 4  # as flags of a mount and as its attributes
# bwrap's names for the two while it sets up a sandbox.
_HOST, _SANDBOX = "/oldroot", "/newroot"
# While another process swaps two names as fast as it can, about every second try finds the right one.
_LOOKS, _PAUSE_S = 100, 0.0005
# Errors of opening a path that has changed meanwhile, or is none.
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_CHANGED = _MISSING | {errno.EAGAIN}
_NO_PLACE = _MISSING | {errno.EROFS, errno.EACCES, errno.EINVAL}
_ABOVE_STANDARD = 10
_opened_root = cache(os.open)
# A mounter's report of success.
_MOUNTED = "+"
# A path where bwrap mounts last, so this file ends up hidden.
_EMPTY_FILE, _EMPTY_FOLDER = f"{_SANDBOX}/proc/.empty", f"{_SANDBOX}/proc/.none"
# Where the kernel notes that a layer was not synced; while it says so, it does not take it again.
_VOLATILE = "work/incompat/volatile"


def moved_up(handle: int) -> int:
    """Duplicate a descriptor above those that a command starts with."""
    return fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, _ABOVE_STANDARD)


class Gate:
    """A full pipe that a sandbox reads to its end before it runs anything."""

    def __init__(self) -> None:
        entry, self._exit = os.pipe()
        self.entry = moved_up(entry)
        os.close(entry)
        os.set_blocking(self._exit, False)
        # It becomes writable exactly when the sandbox has come to read it.
        if sys.platform == "linux":
            os.write(self._exit, bytes(fcntl.fcntl(self._exit, fcntl.F_SETPIPE_SZ, 1)))

    def prepare(self, find: Callable[[], int], mounts: list[Mapping[str, object]], slot: str) -> int:
        """Fork a child that mounts once the sandbox reaches the gate; return its report's descriptor.

        `find` returns the pid of the waiting bwrap, `mounts` are the fields of a `Mount` each, `slot` is the
        layer's folder, or empty.
        """
        os.close(self.entry)
        self._report, theirs = os.pipe()
        if os.fork() == 0:
            said = ""
            try:
                said = self._mounted(find, mounts, slot)
            finally:
                os.write(theirs, os.fsencode(said))
                os._exit(0)
        os.close(theirs)
        return self._report

    def open(self) -> str:
        """Let the sandbox continue if everything is mounted; return why not, or an empty string."""
        said = os.fsdecode(os.read(self._report, 4096))
        if said == _MOUNTED:
            os.close(self._exit)
            return ""
        return f"the sandbox can't be set up: {said or 'what mounts in it was ended'}"

    def _mounted(self, find: Callable[[], int], mounts: list[Mapping[str, object]], slot: str) -> str:
        waiting = select.poll()
        waiting.register(self._exit, select.POLLOUT)
        [(_, events)] = waiting.poll()
        if events & select.POLLERR:
            return _MOUNTED  # it has ended, and reports the reason itself
        target = ""
        try:
            _enter(find())
            for mount in mounts:
                target = f"{mount['target']}: "
                _mount(mount, slot)
        except OSError as fault:
            return f"{target}{fault.strerror}"
        return _MOUNTED


def _enter(pid: int) -> None:
    """Enter a process's namespaces, for good."""
    kinds = {"user": _CLONE_NEWUSER, "mnt": _CLONE_NEWNS}
    # Open both first: a process that has entered one can't open the other.
    opened = [(os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY), kinds[kind]) for kind in kinds]
    for handle, kind in opened:
        _check(_library().setns(handle, kind))
    os.umask(0o022)


def _mount(mount: Mapping[str, object], slot: str) -> None:
    """Make one mount; retry while the path is being swapped."""
    for look in range(1, _LOOKS + 1):
        try:
            with contextlib.ExitStack() as opened:
                return _mount_once(mount, slot, opened)
        except OSError as fault:
            if mount["is_optional"] and fault.errno in _NO_PLACE:
                return None
            if fault.errno not in _CHANGED or (look == _LOOKS and mount["identity"] is None):
                raise
        time.sleep(_PAUSE_S)
    raise OSError(errno.ESTALE, "changed while the sandbox was set up; run the command again")


def _mount_once(mount: Mapping[str, object], slot: str, opened: contextlib.ExitStack) -> None:
    kind, target, identity = mount["kind"], str(mount["target"]), mount["identity"]
    attributes = _NO_SETUID | _NO_DEVICES | (_READ_ONLY if mount["is_read_only"] else 0)
    if kind == "layer":
        _mount_layer(mount, slot, opened)
        return
    if kind == "bind":
        source = opened_at(_HOST, str(mount["source"]), opened)
        _compare(source, identity)
        is_folder = stat.S_ISDIR(os.fstat(source).st_mode)
        place = opened_at(_SANDBOX, target, opened, "folder" if is_folder else "file")
        # What is hidden in a folder stays so if another process replaces the file there: not in a plain one.
        if is_folder and mount["is_pinned"] and _overlay(place, source):
            return
    else:
        try:
            is_made = identity is None and kind != "mask"
            place = source = opened_at(_SANDBOX, target, opened, "folder" if is_made else "")
        except OSError as fault:
            if kind == "mask" and fault.errno in _MISSING:
                return  # nothing is seen there, so there is nothing to hide
            raise
        _compare(place, identity)
    if kind in ("empty", "mask"):
        if stat.S_ISDIR(os.fstat(place).st_mode):
            name = _named(place).encode()
            options = f"mode={mount['mode']:o},size={mount['size']}".encode()
            _check(_library().mount(b"tmpfs", name, b"tmpfs", attributes, options))
            return
        source = os.open(_EMPTY_FILE, os.O_RDONLY | os.O_CREAT, 0o444)
        opened.callback(os.close, source)
    _bind(source, place, attributes)


def _mount_layer(mount: Mapping[str, object], slot: str, opened: contextlib.ExitStack) -> None:
    """Mount a folder with a layer over it, as `Mount` says of its kind."""
    source, stored = mount["source"], mount["stored"]
    attributes, is_cache = _NO_SETUID | _NO_DEVICES, not mount["is_read_only"]
    if not (source or slot):
        return
    place = opened_at(_SANDBOX, str(mount["target"]), opened, "folder")
    if source:
        lower = opened_at(_HOST, str(source), opened)
        _compare(lower, mount["identity"])
        names = [f"{slot}/upper/{stored}", f"{slot}/work/{stored}"] if slot else []
        kept = [opened_at(_HOST, name, opened, "folder") for name in names]
        if kept and _overlay(place, lower, *kept):
            return
        if not (is_cache and slot):
            _bind(lower, place, attributes | _READ_ONLY)
            return
    _bind(opened_at(_HOST, f"{slot}/plain/{stored}", opened, "folder"), place, attributes)


def _overlay(place: int, lower: int, upper: int = -1, work: int = -1) -> bool:
    """Mount a folder with a layer over it, read-only if there is none; return whether the kernel can."""
    attributes = _NO_SETUID | _NO_DEVICES
    if work >= 0:
        # What is lost when the power fails, tools make again; the kernel would sync the disk at each end.
        options = f"upperdir={_named(upper)},workdir={_named(work)},lowerdir={_named(lower)},volatile"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{_VOLATILE}/dirty", dir_fd=work)
            os.rmdir(_VOLATILE, dir_fd=work)
    else:
        with contextlib.suppress(FileExistsError):
            os.mkdir(_EMPTY_FOLDER)
        attributes |= _READ_ONLY
        options = f"lowerdir={_EMPTY_FOLDER}:{_named(lower)}"
    text, name = f"userxattr,{options}".encode(), b"overlay"
    return bool(_library().mount(name, _named(place).encode(), name, attributes, text) == 0)


def _named(handle: int) -> str:
    return f"{_HOST}/proc/self/fd/{handle}"


def opened_at(root: str, path: str, opened: contextlib.ExitStack, made: str = "", mode: int = 0o755) -> int:
    """Open a path without following links; it is absolute, and relative to the folder `root`.

    `opened` closes the descriptors. `made` is "folder" or "file": create missing
    components, ending in this; folders with a `mode`.
    """
    at = _opened_root(root, _PATH_ONLY)
    try:
        return _open_below(at, path, opened)
    except FileNotFoundError:
        if not made:
            raise
    names = path.strip("/").split("/")
    for depth, name in enumerate(names, 1):
        with contextlib.suppress(FileExistsError):  # also if another command has just made it
            if made == "folder" or depth < len(names):
                os.mkdir(name, mode, dir_fd=at)
            else:
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o444, dir_fd=at))
        at = _open_below(at, name, opened)
    return at


def _open_below(folder: int, path: str, opened: contextlib.ExitStack) -> int:
    # The last name may be a link that is kept as such, and not followed either.
    flags = _PATH_ONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    how = _words(flags, 0, _NO_LINKS)  # struct open_how: flags, mode, resolve
    name = os.fsencode(path.strip("/"))
    handle = _call(_OPENAT2, folder, name, ctypes.byref(how), ctypes.sizeof(how))
    opened.callback(os.close, handle)
    return handle


def _compare(handle: int, identity: object) -> None:
    found = os.fstat(handle)
    if identity is not None and (found.st_dev, found.st_ino) != identity:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _bind(source: int, place: int, attributes: int) -> None:
    """Mount the tree open as `source`, with all mounts below it, at a place."""
    clone = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_EMPTY_PATH | _AT_RECURSIVE
    tree = _call(_OPEN_TREE, source, b"", clone)
    chosen = _words(attributes, 0, 0, 0)  # struct mount_attr: set, clear, propagation, users
    size = ctypes.sizeof(chosen)
    try:
        _call(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, ctypes.byref(chosen), size)
        _call(_MOVE_MOUNT, tree, b"", place, b"", _EMPTY_PATHS)
    finally:
        os.close(tree)


def _words(*values: int) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * len(values))(*values)


def _call(number: int, *arguments: object) -> int:
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _check(_library().syscall(ctypes.c_long(number), *words))


def _check(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


# --- the layer --------------------------------------------------------------------------------------
_SLOTS = 16
# A walk through it is made at most so often, and takes a small part of the time; a command that wrote little
# costs none.
_MEASURED_EVERY_S, _REST, _LITTLE_BYTES = 1.0, 20, 2**16
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
        self._look_at = time.monotonic() + _MEASURED_EVERY_S

    def is_full(self) -> bool:
        """Return whether it holds more than it may, as far as it is measured now and then."""
        if not self.path or (now := time.monotonic()) < self._look_at:
            return False
        is_over = size_of(self.path, self._most) > self._most
        took_s = time.monotonic() - now
        self._look_at = now + _MEASURED_EVERY_S + _REST * took_s
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
