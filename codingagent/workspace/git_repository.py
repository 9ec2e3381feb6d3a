"""Find the git repository around a folder and read of it, without git: its configuration names programs."""

import contextlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from codingagent.errors import OperationError
from codingagent.workspace import dirfd

# Far more of an ignore file than anyone writes by hand.
RULES_LIMIT_BYTES = 1 << 20
# What Finder writes into each folder that is looked at, and beside files on disks of other systems.
OF_FINDER = ".DS_Store\n._*\n" if sys.platform == "darwin" else ""
# About 600,000 files. A larger index is not read in part, because its end identifies it.
_INDEX_LIMIT_BYTES = 1 << 26
_LINE_LIMIT_BYTES = 1 << 13


class Repository(Struct, frozen=True):
    """The repository whose `.git` is in a folder; paths are relative to that folder."""

    folder: dirfd.Folder
    own: str
    """The part of this work tree."""
    common: str
    """The part that all its work trees share."""
    names: tuple[str, ...]
    """The way from that folder down to the one that it was looked for in."""

    def excludes(self) -> bytes:
        """Return its own exclude file, without what exceeds a limit."""
        return whole_lines(_read(self.folder, f"{self.common}/info/exclude", RULES_LIMIT_BYTES))

    def head(self) -> str:
        """Return the id of the commit that is checked out; empty if there is none."""
        told = _read(self.folder, f"{self.own}/HEAD", _LINE_LIMIT_BYTES).decode("ascii", "replace")
        if not told.startswith("ref: "):
            return told.strip()
        name = told.removeprefix("ref: ").strip()
        if not name.startswith("refs/") or ".." in name:
            return ""
        if data := _read(self.folder, f"{self.common}/{name}", _LINE_LIMIT_BYTES):
            return data.decode("ascii", "replace").strip()
        packed = _read(self.folder, f"{self.common}/packed-refs", _INDEX_LIMIT_BYTES)
        found = re.search(rb"(?m)^([0-9a-f]+) " + re.escape(name.encode()) + b"$", packed)
        return found[1].decode() if found else ""

    def index(self) -> bytes | None:
        """Return its index; None if it is too large."""
        path = f"{self.own}/index"
        state = self.folder.stat(path)
        is_large = state is not None and state.st_size > _INDEX_LIMIT_BYTES
        return None if is_large else _read(self.folder, path, _INDEX_LIMIT_BYTES)

    def shared_index(self, index: bytes) -> tuple[str, bytes]:
        """Return name and bytes of what a split index builds on (gitformat-index, `link`), or nothing."""
        for found in re.finditer(rb"(?s)link(.{4})(?=(.{20}))(?=(.{32})?)", index):
            for digest in filter(None, found.groups()[1:]):
                name = f"sharedindex.{digest.hex()}"
                if data := _read(self.folder, f"{self.own}/{name}", _INDEX_LIMIT_BYTES):
                    return name, data
        return "", b""


def _repository_in(folder: dirfd.Folder, names: tuple[str, ...]) -> Repository | None:
    """Return the repository of a folder that holds `.git`, a folder or a file that names one."""
    found = folder.stat(".git")
    if found is None:
        return None
    own = ".git"
    if stat.S_ISREG(found.st_mode):
        own = _named(_read(folder, ".git", _LINE_LIMIT_BYTES), b"gitdir: ")
    shared = _named(_read(folder, f"{own}/commondir", _LINE_LIMIT_BYTES), b"") if own else ""
    common = os.path.join(own, shared) if shared else own
    needed = (f"{own}/HEAD", f"{common}/objects", f"{common}/refs")
    if not own or any(folder.stat(name) is None for name in needed):
        return None
    return Repository(folder, own, common, names)


@contextlib.contextmanager
def repository_of(root: Path, *, looks_above: bool = True) -> Iterator[Repository | None]:
    """Yield the repository of a folder, or the nearest around it on its file system, as git does."""
    device = None
    names: tuple[str, ...] = ()
    for above in (root, *root.parents) if looks_above else (root,):
        try:
            folder = dirfd.open_root(above)
        except OSError:
            break
        with contextlib.closing(folder):
            if folder.identity()[0] != (device := device or folder.identity()[0]):
                break
            if (found := _repository_in(folder, names)) is not None:
                yield found
                return
        names = (above.name, *names)
    yield None


def text_of(data: bytes) -> str:
    """Return names or lines of files as text; Windows' own way refuses what is not UTF-8."""
    try:
        return os.fsdecode(data)
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")


def whole_lines(data: bytes) -> bytes:
    """Return patterns without a truncated last line, which could mean something else."""
    return data if len(data) <= RULES_LIMIT_BYTES else data[: data.rfind(b"\n") + 1]


def _named(data: bytes, before: bytes) -> str:
    if not data.startswith(before):
        return ""
    return text_of(data[len(before) :].rstrip(b"\r\n"))


def _read(folder: dirfd.Folder, name: str, limit_bytes: int) -> bytes:
    """Read a file of git's by links, up to a byte beyond the limit; empty if there is none."""
    found = folder.stat(name)
    if found is None or not stat.S_ISREG(found.st_mode):
        return b""
    try:
        return dirfd.read_opened(folder.open_file(name, dirfd.CAREFULLY), found, limit_bytes)[0]
    except (OSError, OperationError):
        return b""
