"""Copy files of a workspace with their times and permissions, sharing blocks where the file system can."""

import contextlib
import errno
import fcntl
import itertools
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from codingagent.workspace.dirfd import walk_names

assert sys.platform == "linux"

# linux/fs.h: the copy shares the blocks of the file until one of them is written to.
_FICLONE = 0x4004_9409
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_CHUNK_BYTES = 2**30
# A folder of no more is copied in a moment, as are hundreds of its kind.
_FEW_FILES, _FEW_BYTES = 500, 10**7


def copy_files(source: Path, target: Path, paths: Iterable[str]) -> None:
    """Copy the files and links at these paths, relative to both folders; OSError if the disk refuses.

    What is gone meanwhile is left out, and so is what is neither a file nor a link. No link is followed.
    """
    by_folder = sorted(path.rpartition("/")[::2] for path in paths)
    for folder, group in itertools.groupby(by_folder, key=lambda each: each[0]):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), _opened(source / folder) as there:
            (target / folder).mkdir(parents=True, exist_ok=True)
            with _opened(target / folder) as here:
                for _, name in group:
                    _copy(name, there, here)


def files_below(root: Path, folder: str) -> list[str] | None:
    """Return the files and links below a folder, relative to the root; None if they are much to copy."""
    found, left_bytes = list[str](), _FEW_BYTES
    for where, _, names in walk_names(os.fspath(root / folder)):
        for path in (os.path.join(where, name) for name in names):
            with contextlib.suppress(OSError):  # gone meanwhile
                left_bytes -= os.lstat(path).st_size
            found.append(os.path.relpath(path, root))
        if len(found) > _FEW_FILES or left_bytes < 0:
            return None
    return found


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    handle = os.open(folder, _FOLDER)
    try:
        yield handle
    finally:
        os.close(handle)


def _copy(name: str, there: int, here: int) -> None:
    try:
        read = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=there)
    except OSError as fault:
        if fault.errno == errno.ELOOP:
            os.symlink(os.readlink(name, dir_fd=there), name, dir_fd=here)
        elif fault.errno not in (errno.ENOENT, errno.ENXIO, errno.EACCES):  # nobody reads it there either
            raise
        return
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, read)
        found = os.fstat(read)
        if not stat.S_ISREG(found.st_mode):
            return
        write = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=here)
        stack.callback(os.close, write)
        try:
            fcntl.ioctl(write, _FICLONE, read)
        except OSError:
            while os.sendfile(write, read, None, _CHUNK_BYTES):
                pass
        os.fchmod(write, stat.S_IMODE(found.st_mode))
        # Tools compare times with those in their caches.
        os.utime(write, ns=(found.st_atime_ns, found.st_mtime_ns))
