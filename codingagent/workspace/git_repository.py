"""Read the git repository around a folder from its files: excludes, tracked paths, and its root.

git itself is not run: its configuration belongs to the workspace, and names programs to run.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from codingagent.errors import OperationError, WorkError
from codingagent.workspace.dirfd import BINARY, Folder, Position, open_root, read_regular, regular
from codingagent.workspace.git_index_reader import Index, Tracked, read_index

# Far more of an ignore file than anyone writes by hand.
RULES_LIMIT_BYTES = 1 << 20
# About 600,000 files. A larger index is not read in part, because its end identifies it.
_INDEX_LIMIT_BYTES = 1 << 26
_LINE_LIMIT_BYTES = 1 << 13


class Repository(Struct, frozen=True):
    """The repository whose `.git` is in a folder; paths are relative to that folder.

    `own` is this work tree's part of it, `common` the part that all its work trees share.
    """

    folder: Folder
    own: str
    common: str

    def excludes(self) -> tuple[str, bool]:
        """Return its own exclude file, and whether that is all of it."""
        data = _read(self.folder, f"{self.common}/info/exclude", RULES_LIMIT_BYTES)
        return _text(data), len(data) <= RULES_LIMIT_BYTES

    def stamp(self) -> tuple[int, int, int] | None:
        """Return a stamp that changes when its index does; None without an index."""
        state = _found(self.folder, f"{self.own}/index")
        return None if state is None else (state.st_mtime_ns, state.st_size, state.st_ino)

    def tracked(self) -> Tracked:
        """Return what its index tracks; empty if that can't be read."""
        found, rest = self._index("index"), Index([])
        if found.shared:
            rest = self._index(f"sharedindex.{found.shared}")
        faults = {"index": found.fault, "sharedindex": rest.fault}
        unread = "; ".join(f"{name}: {fault}" for name, fault in faults.items() if fault)
        return Tracked(found.paths, rest.paths, unread=unread)

    def _index(self, name: str) -> Index:
        path = f"{self.own}/{name}"
        state = _found(self.folder, path)
        if state is not None and state.st_size > _INDEX_LIMIT_BYTES:
            return Index([], fault=f"it is larger than {_INDEX_LIMIT_BYTES >> 20} MiB")
        return read_index(_read(self.folder, path, _INDEX_LIMIT_BYTES))


def repository_in(folder: Folder) -> Repository | None:
    """Return the repository of a folder that holds `.git`, a folder or a file that names one."""
    found = _found(folder, ".git")
    if found is None:
        return None
    own = ".git"
    if stat.S_ISREG(found.st_mode):
        own = _named(_read(folder, ".git", _LINE_LIMIT_BYTES), b"gitdir: ")
    shared = _named(_read(folder, f"{own}/commondir", _LINE_LIMIT_BYTES), b"") if own else ""
    common = os.path.join(own, shared) if shared else own
    needed = (f"{own}/HEAD", f"{common}/objects", f"{common}/refs")
    if not own or any(_found(folder, name) is None for name in needed):
        return None
    return Repository(folder, own, common)


def is_bare(root: Path) -> bool:
    """Return whether a folder is a bare repository: its hooks are then ordinary files there."""
    return all((root / name).exists() for name in ("HEAD", "objects", "refs"))


@contextlib.contextmanager
def repository_above(root: Path) -> Iterator[tuple[Repository, tuple[str, ...]] | None]:
    """Yield the repository that contains a folder below its root, and the names down to the folder.

    Like git, search only the file system of the folder.
    """
    try:
        device = os.stat(root).st_dev
    except OSError:
        yield None
        return
    names: tuple[str, ...] = (root.name,)
    for above in root.parents:
        try:
            folder = open_root(above)
        except OSError:
            break
        with contextlib.closing(folder):
            if folder.identity()[0] != device:
                break
            if (found := repository_in(folder)) is not None:
                yield found, names
                return
        names = (above.name, *names)
    yield None


def ignore_text(folder: Folder, name: str) -> tuple[str, bool]:
    """Return the text of an ignore file in a work tree, and whether that is all of it.

    A link does not count, as in git.
    """
    place = Position(folder, name)
    try:
        data, _ = read_regular(place, regular(place, name), RULES_LIMIT_BYTES)
    except (OSError, OperationError):
        return "", True
    return _text(data), len(data) <= RULES_LIMIT_BYTES


class ToolResult(Protocol):
    """The result of a program that has ended."""

    @property
    def returncode(self) -> int: ...

    @property
    def stdout(self) -> bytes: ...


def user_excludes(
    program: str | None,
    run: Callable[[Sequence[str], Mapping[str, str]], ToolResult],
    variables: Mapping[str, str],
) -> str:
    """Return the user's global ignore patterns.

    Args:
        program: git, which knows where its configuration is and what it includes; without it, the
            file is read from its default path.
        run: runs a program to its end, given its arguments and whole environment.
        variables: the environment.
    """
    path = _configured(program, run, variables) if program is not None else None
    if path is None:
        configuration = variables.get("XDG_CONFIG_HOME") or os.path.join(
            variables.get("HOME") or os.path.expanduser("~"), ".config"
        )
        path = os.path.join(configuration, "git", "ignore")
    return _text(_read(None, path, RULES_LIMIT_BYTES)) if os.path.isabs(path) else ""


# Variables that lead git to the user's configuration and, on Windows, to itself.
_FOR_GIT = (
    *("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
    *("USERPROFILE", "HOMEDRIVE", "HOMEPATH", "SYSTEMROOT", "PROGRAMDATA"),
)


def _configured(
    program: str,
    run: Callable[[Sequence[str], Mapping[str, str]], ToolResult],
    variables: Mapping[str, str],
) -> str | None:
    own = {name: variables[name] for name in _FOR_GIT if name in variables}
    # With GIT_DIR set, git does not use the surrounding repository, whose configuration is
    # untrusted.
    own |= {"GIT_DIR": os.devnull, "LC_ALL": "C"}
    try:
        done = run([program, "config", "--type=path", "--get", "core.excludesFile"], own)
    except WorkError:
        return None
    return os.fsdecode(done.stdout.removesuffix(b"\n")) if done.returncode == 0 else None


def _text(data: bytes) -> str:
    """Return the text of patterns without a truncated last line, which could mean something else."""
    if len(data) > RULES_LIMIT_BYTES:
        data = data[: data.rfind(b"\n") + 1]
    return data.decode("utf-8", "surrogateescape")


def _named(data: bytes, before: bytes) -> str:
    """Return the path in a one-line file."""
    if not data.startswith(before):
        return ""
    return os.fsdecode(data[len(before) :].rstrip(b"\r\n"))


def _found(folder: Folder | None, name: str) -> os.stat_result | None:
    """Return the stat of a name, following links; with no folder, the name is a whole path."""
    handle = None if folder is None else folder.handle()
    try:
        if isinstance(handle, str):
            return os.stat(os.path.join(handle, name))
        return os.stat(name, dir_fd=handle)
    except (OSError, ValueError):
        return None


def _read(folder: Folder | None, name: str, limit_bytes: int) -> bytes:
    """Read a regular file, following links, up to one byte beyond the limit; empty if there is none.

    git follows links in `.git`. Nothing that is read here is shown to anyone.
    """
    found = _found(folder, name)
    if found is None or not stat.S_ISREG(found.st_mode):
        return b""
    # O_NONBLOCK: if a FIFO has replaced the file, opening it must not block.
    flags = os.O_RDONLY | BINARY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    try:
        handle = os.open(name, flags) if folder is None else folder.open_file(name, flags)
        with open(handle, "rb", buffering=0) as file:
            opened = os.fstat(handle)
            if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino):
                return b""
            chunks: list[bytes] = []
            left = limit_bytes + 1
            # In one read: an index read in pieces would be copied once more.
            while left and (chunk := file.read(min(left, opened.st_size + 1))):
                chunks.append(chunk)
                left -= len(chunk)
    except OSError:
        return b""
    return b"".join(chunks)
