"""Add a home inside a work tree to the repository's own exclude file, so that git status omits it.

Only in a plain repository: a `.git` folder of the same user, or a work tree that its repository
knows. No link is followed: the repository's author could have planted links to the user's files.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from codingagent.workspace.dirfd import BINARY, NO_FOLLOW, Folder, open_root, write_new

# Far more than anyone writes by hand; a longer file is left alone.
_LIMIT_BYTES = 1 << 20
_TEMPORARY = ".ca-exclude.tmp"


def exclude(folder: Path) -> None:
    """Add a folder to the exclude file of its repository, once; ignore all failures."""
    with contextlib.suppress(OSError, ValueError):
        if folder.is_symlink():
            return
        real = folder.resolve(strict=True)
        for above in real.parents:
            if os.path.lexists(above / ".git"):
                line = _line(real.relative_to(above))
                with _common(above) as common:
                    _add(common, line)
                return


def _line(path: Path) -> bytes:
    name = os.fsencode(path.as_posix())
    if b"\n" in name or b"\r" in name:
        raise ValueError("no line can name it")
    return b"/" + re.sub(rb"([\\*?\[\]])", rb"\\\1", name) + b"/"


@contextlib.contextmanager
def _common(top: Path) -> Iterator[Folder]:
    """Yield the folder that all work trees of a repository share, opened without following links.

    Raises:
        OSError, ValueError: if there is none that is plainly the user's.
    """
    git = top / ".git"
    if stat.S_ISREG(os.lstat(git).st_mode):
        # git writes the path of the work tree into it. A process that can forge it can write there
        # anyway.
        own = _named(git, b"gitdir: ")
        if own.parent.name != "worktrees" or _named(own / "gitdir", b"") != git.resolve():
            raise ValueError("it does not know this work tree")
        git = own.parent.parent
        if _named(own / "commondir", b"") != git:
            raise ValueError("it is laid out otherwise")
    with contextlib.ExitStack() as stack:
        above = stack.enter_context(contextlib.closing(open_root(git.parent)))
        folder = stack.enter_context(contextlib.closing(above.open(git.name)))
        for name, is_right in (
            ("HEAD", stat.S_ISREG),
            ("objects", stat.S_ISDIR),
            ("refs", stat.S_ISDIR),
        ):
            _check(folder.lstat(name), is_right)
        _check(above.lstat(git.name), stat.S_ISDIR)
        yield folder


def _named(file: Path, before: bytes) -> Path:
    """Return the real path in a one-line file."""
    _check(os.lstat(file), stat.S_ISREG)
    with open(os.open(file, os.O_RDONLY | NO_FOLLOW | BINARY), "rb") as opened:
        data = opened.read(1 << 13)
    if not data.startswith(before):
        raise ValueError("it names nothing")
    return (file.parent / os.fsdecode(data[len(before) :].rstrip(b"\r\n"))).resolve(strict=True)


def _check(found: os.stat_result | None, is_right: Callable[[int], bool]) -> None:
    """Refuse a file of another kind or owner, as git does with whole repositories."""
    if found is None or not is_right(found.st_mode):
        raise ValueError("it is of another kind")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise ValueError("it is somebody else's")


def _add(common: Folder, line: bytes) -> None:
    if common.lstat("info") is None:
        common.mkdir("info")
    _check(common.lstat("info"), stat.S_ISDIR)
    with contextlib.closing(common.open("info")) as info:
        found = info.lstat("exclude")
        old = b""
        if found is not None:
            _check(found, stat.S_ISREG)
            with open(info.open_file("exclude", os.O_RDONLY | NO_FOLLOW | BINARY), "rb") as file:
                old = file.read(_LIMIT_BYTES + 1)
        if len(old) > _LIMIT_BYTES or line in old.replace(b"\r\n", b"\n").split(b"\n"):
            return
        end = b"\r\n" if b"\r\n" in old else b"\n"
        new = old + (end if old and not old.endswith(b"\n") else b"") + line + end
        _replace(info, new, 0o666 if found is None else stat.S_IMODE(found.st_mode))


def _replace(info: Folder, data: bytes, mode: int) -> None:
    """Replace the file atomically, under a random temporary name, since a file beside it may be a trap."""
    try:
        write_new(info, _TEMPORARY, data, None if mode == 0o666 else mode, is_durable=True)
        info.rename(_TEMPORARY, "exclude")
    except OSError:
        with contextlib.suppress(OSError):
            info.unlink(_TEMPORARY)
        raise
