"""The git repository around a folder, as files: what it leaves out, what it tracks, where it ends.

git itself is never asked about it: its configuration is the workspace's own, and names programs to run.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from codingagent.errors import OperationError, WorkError
from codingagent.workspace.dirfd import BINARY, Folder, Place, open_root, read_regular, regular
from codingagent.workspace.git_index_reader import Index, Tracked, read_index

# As much of an ignore file as anyone has written by hand, many times over.
RULES_LIMIT_BYTES = 1 << 20
# Some six hundred thousand files; one that is larger is not read in part, for its end says what it is.
_INDEX_LIMIT_BYTES = 1 << 26
_LINE_LIMIT_BYTES = 1 << 13


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository whose `.git` is in a folder; names count from that folder.

    `own` is this work tree's part of it, `common` what all its work trees share.
    """

    folder: Folder
    own: str
    common: str

    def excludes(self) -> tuple[str, bool]:
        """Return what its own exclude file says, and whether that is all of it."""
        data = _read(self.folder, f"{self.common}/info/exclude", RULES_LIMIT_BYTES)
        return _text(data), len(data) <= RULES_LIMIT_BYTES

    def stamp(self) -> tuple[int, int, int] | None:
        """Return what tells whether its index is the same as before; None without one."""
        state = _found(self.folder, f"{self.own}/index")
        return None if state is None else (state.st_mtime_ns, state.st_size, state.st_ino)

    def tracked(self) -> Tracked:
        """Return what its index tracks; nothing if that can't be read."""
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
    """Return the repository whose `.git`, a folder or a file that names one, is in a folder."""
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
    """Return whether a folder is a repository itself: its hooks are then ordinary files there."""
    return all((root / name).exists() for name in ("HEAD", "objects", "refs"))


@contextlib.contextmanager
def repository_above(root: Path) -> Iterator[tuple[Repository, tuple[str, ...]] | None]:
    """Yield the repository that a folder is in without being its root, and the names down to it.

    As git, it looks no further than the disk that the folder is on.
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

    One that is a link is none, as in git.
    """
    place = Place(folder, name)
    try:
        data, _ = read_regular(place, regular(place, name), RULES_LIMIT_BYTES)
    except (OSError, OperationError):
        return "", True
    return _text(data), len(data) <= RULES_LIMIT_BYTES


class Done(Protocol):
    """What a program that has ended left behind."""

    @property
    def returncode(self) -> int: ...

    @property
    def stdout(self) -> bytes: ...


def user_excludes(
    program: str | None,
    run: Callable[[Sequence[str], Mapping[str, str]], Done],
    variables: Mapping[str, str],
) -> str:
    """Return what the user leaves out of all repositories.

    Args:
        program: git, which knows where its configuration is and what that includes; without it the
            file is looked for where it is by default.
        run: runs a program to its end: its arguments, its whole environment.
        variables: the environment.
    """
    path = _configured(program, run, variables) if program is not None else None
    if path is None:
        configuration = variables.get("XDG_CONFIG_HOME") or os.path.join(
            variables.get("HOME") or os.path.expanduser("~"), ".config"
        )
        path = os.path.join(configuration, "git", "ignore")
    return _text(_read(None, path, RULES_LIMIT_BYTES)) if os.path.isabs(path) else ""


# Where git finds the user's configuration, and on Windows itself.
_FOR_GIT = (
    *("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
    *("USERPROFILE", "HOMEDRIVE", "HOMEPATH", "SYSTEMROOT", "PROGRAMDATA"),
)


def _configured(
    program: str,
    run: Callable[[Sequence[str], Mapping[str, str]], Done],
    variables: Mapping[str, str],
) -> str | None:
    own = {name: variables[name] for name in _FOR_GIT if name in variables}
    # Named, a repository is not looked for: the one around us has a configuration that nobody vouches for.
    own |= {"GIT_DIR": os.devnull, "LC_ALL": "C"}
    try:
        done = run([program, "config", "--type=path", "--get", "core.excludesFile"], own)
    except WorkError:
        return None
    return os.fsdecode(done.stdout.removesuffix(b"\n")) if done.returncode == 0 else None


def _text(data: bytes) -> str:
    """Return the text of patterns; a last one that was cut off would mean something else."""
    if len(data) > RULES_LIMIT_BYTES:
        data = data[: data.rfind(b"\n") + 1]
    return data.decode("utf-8", "surrogateescape")


def _named(data: bytes, before: bytes) -> str:
    """Return the path that a file of one line names."""
    if not data.startswith(before):
        return ""
    return os.fsdecode(data[len(before) :].rstrip(b"\r\n"))


def _found(folder: Folder | None, name: str) -> os.stat_result | None:
    """Return what has a name, links followed; None for no folder means that the name is a whole path."""
    handle = None if folder is None else folder.handle()
    try:
        if isinstance(handle, str):
            return os.stat(os.path.join(handle, name))
        return os.stat(name, dir_fd=handle)
    except (OSError, ValueError):
        return None


def _read(folder: Folder | None, name: str, limit_bytes: int) -> bytes:
    """Read at most a byte more than the limit of a regular file, links followed; else nothing.

    In `.git` git follows them. Nothing of what is read here is shown to anyone.
    """
    found = _found(folder, name)
    if found is None or not stat.S_ISREG(found.st_mode):
        return b""
    # O_NONBLOCK: if a FIFO took the file's place since, opening it must not wait for a writer.
    flags = os.O_RDONLY | BINARY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    try:
        handle = os.open(name, flags) if folder is None else folder.open_file(name, flags)
        with open(handle, "rb", buffering=0) as file:
            opened = os.fstat(handle)
            if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino):
                return b""
            chunks: list[bytes] = []
            left = limit_bytes + 1
            # All at once: an index in pieces would be copied once more.
            while left and (chunk := file.read(min(left, opened.st_size + 1))):
                chunks.append(chunk)
                left -= len(chunk)
    except OSError:
        return b""
    return b"".join(chunks)
