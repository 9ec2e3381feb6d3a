"""Write the agent's own files atomically and durably, and remove folders of any depth.

What the disk refuses raises WorkError; the old file stays then.
"""

import contextlib
import itertools
import json
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from codingagent.errors import WorkError, system_reason
from codingagent.workspace import dirfd

SYNC_WAITS = sys.platform == "linux"
"""Whether everything is durable when `sync` returns; elsewhere writing may only have begun."""
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


def write_whole(path: Path, content: str | bytes, *, is_synced: bool = True) -> None:
    """Write a file atomically: `{path}.tmp`, then rename (specification 003, atomic writes)."""
    write_beside(path, content, is_synced=is_synced)
    put_in_place(path)


def write_beside(path: Path, content: str | bytes, *, is_synced: bool) -> None:
    """Write the content of a path to `{path}.tmp`, ready for `put_in_place`; durable if `is_synced`."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    with (
        clearing(temporary := f"{path}.tmp", path),
        # Requests and records quote the person's files: nobody else reads them.
        open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file,
    ):
        file.write(data)
        if is_synced:
            file.flush()
            dirfd.sync(file.fileno())


def put_in_place(path: Path) -> None:
    """Rename `{path}.tmp` to its final path."""
    with clearing(temporary := f"{path}.tmp", path):
        dirfd.retried(lambda: os.replace(temporary, path))


@contextlib.contextmanager
def clearing(temporary: "str | Path", path: Path) -> Iterator[None]:
    """Remove a temporary file where the disk refuses to write it, or to put it in its place."""
    try:
        yield
    except OSError as fault:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise WorkError(f"{path} can't be written: {system_reason(fault)}") from fault


def free_name(folder: Path, name: str) -> Path:
    """Return a path in a folder that nothing has yet; the name holds {} for a number."""
    every = (folder / name.format(number) for number in itertools.count(1))
    return next(path for path in every if not os.path.lexists(path))


def write_json(path: Path, document: object) -> None:
    # The json module itself indents in Python: half a second for ten thousand results.
    data = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
    write_whole(path, msgspec.json.format(data) + b"\n")


def sync(folders: Iterable[Path]) -> None:
    """Make everything written so far durable on the disks that hold these folders.

    One call per turn costs less than one per file. On systems without `syncfs`, all disks are
    synced; on systems without either call (Windows), the rename of the request must do.
    """
    on_disks: dict[int, Path] = {}
    for folder in folders:
        with contextlib.suppress(OSError):  # what was removed holds nothing to make durable
            on_disks[folder.stat().st_dev] = folder
    if sys.platform == "linux":
        import ctypes  # Late: only what is not synced on its own needs it.

        for folder in on_disks.values():
            with dirfd.open_handle(folder, os.O_RDONLY) as handle:
                if ctypes.CDLL(None, use_errno=True).syncfs(handle) != 0:
                    os.sync()
    elif sys.platform != "win32":
        os.sync()


def remove_folder(path: Path) -> None:
    """Remove a folder and everything in it; skip what can't be removed.

    A command may have nested folders deeper than any path or recursion reaches, and made them
    inaccessible. No other process may still write there.
    """
    if os.rename not in os.supports_dir_fd:
        shutil.rmtree(path, onerror=_make_removable)
        return
    with contextlib.suppress(OSError):
        with dirfd.open_handle(path, _FOLDER) as handle:
            _empty(handle)
        os.rmdir(path)


def _make_removable(function: object, name: str, fault: object) -> None:
    """Remove a file that git marked as read-only: Windows keeps such files from being removed."""
    del function, fault
    with contextlib.suppress(OSError):
        os.chmod(name, stat.S_IWRITE)
        dirfd.retried(lambda: os.unlink(name))


def _empty(top: int) -> None:
    """Remove everything in a folder; move deeper folders up to it, so that depth is never a limit."""
    todo = list(_moved_up(top, top))
    while todo:
        name = todo.pop()
        with contextlib.suppress(OSError):
            with dirfd.open_handle(name, _FOLDER, dir_fd=top) as handle:
                todo += _moved_up(handle, top)
            os.rmdir(name, dir_fd=top)


def _moved_up(folder: int, top: int) -> Iterator[str]:
    """Remove the files of a folder and move its folders to `top`; yield their new names."""
    for entry in list(os.scandir(folder)):
        with contextlib.suppress(OSError):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=folder)
                continue
            new_name = secrets.token_hex(16)
            os.chmod(entry.name, 0o700, dir_fd=folder)
            os.rename(entry.name, new_name, src_dir_fd=folder, dst_dir_fd=top)
            yield new_name
