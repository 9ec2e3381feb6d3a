"""Files of our own, written whole and made durable."""

import contextlib
import ctypes
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from codingagent.errors import WorkError


def write_whole(path: Path, content: str | bytes) -> None:
    """Puts a file in place whole: `{path}.tmp`, then rename (specification 003, atomic writes).

    Raises:
        WorkError: if it can't be written; what was there stays.
    """
    write_beside(path, content, is_synced=True)
    put_in_place(path)


def write_beside(path: Path, content: str | bytes, *, is_synced: bool) -> None:
    """Writes what is to be put in place as `{path}.tmp`.

    Args:
        path: where it will be.
        content: the whole of it.
        is_synced: make it durable; else whoever puts it in place must have done that.

    Raises:
        WorkError: if it can't be written.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    with _clearing(path), open(_temporary(path), "wb") as file:
        file.write(data)
        if is_synced:
            file.flush()
            os.fsync(file.fileno())


def put_in_place(path: Path) -> None:
    """Gives what lies beside a path its name.

    Raises:
        WorkError: if that can't be; what was there stays.
    """
    with _clearing(path):
        os.replace(_temporary(path), path)


def _temporary(path: Path) -> str:
    return f"{path}.tmp"


@contextlib.contextmanager
def _clearing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        with contextlib.suppress(OSError):
            os.unlink(_temporary(path))
        raise WorkError(f"{path} can't be written: {fault.strerror or fault}") from fault


def write_json(path: Path, document: object) -> None:
    """Puts a JSON file in place whole.

    Raises:
        WorkError: as `write_whole`.
    """
    write_whole(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def sync(folders: Iterable[Path]) -> None:
    """Makes all that was written so far durable on the disks that hold these folders.

    One call for a whole turn costs less than one for each file. Where the system has no such call,
    all disks are synced; where it has neither (Windows), the rename of the outbox has to do.
    """
    synced: set[int] = set()
    for folder in folders:
        try:
            device = folder.stat().st_dev
        except OSError:
            continue  # it was removed: then nothing in it is left to be kept
        if device not in synced:
            synced.add(device)
            _sync_disk(folder)


SYNC_WAITS = sys.platform == "linux"
"""Whether all is durable once `sync` is done; elsewhere it may only have begun."""


def _sync_disk(folder: Path) -> None:
    if sys.platform != "linux":
        getattr(os, "sync", lambda: None)()
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(handle) != 0:
            os.sync()
    finally:
        os.close(handle)
