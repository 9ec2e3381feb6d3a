"""Find the git repositories in a workspace, whose `.git` no command may write to."""

import contextlib
import os
import stat
from itertools import islice
from pathlib import Path

from codingagent.process.toolchains import small_text
from codingagent.workspace.dirfd import NO_FOLLOW, PATH_ONLY, walk_names

# A start must not wait for a walk through everything ever installed.
_LOOK_LIMIT_FOLDERS = 2000
_NOT_LOOKED_INTO = frozenset({".git", "node_modules", ".venv", "venv", "target", "__pycache__"})

# Each is held open, and a process has about a thousand descriptors.
_REPOSITORY_LIMIT = 400


def git_folders(workspace: Path) -> list[Path]:
    """Return the paths to make read-only to protect git's data: `.git` and, for a worktree, its repository.

    A worktree's `.git` is a file that names a folder elsewhere. It is trusted only if that folder
    names this worktree in turn, which a process that writes only here can't arrange.
    """
    git = workspace / ".git"
    if git.is_symlink():
        # A command may have written this file: its target must not become visible because of that.
        with contextlib.suppress(
            OSError, RuntimeError
        ):  # a link to itself; Python 3.11 raises the latter
            real = git.resolve()
            return [real] if workspace in real.parents and real.exists() else []
        return []
    if git.is_dir():
        return [git]
    said = small_text(git)
    if not said.startswith("gitdir:") or "\0" in said:
        return [git] if git.exists() else []
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        folder = (workspace / said.removeprefix("gitdir:").strip()).resolve()
        back = small_text(folder / "gitdir").strip()
        common = (folder / small_text(folder / "commondir").strip()).resolve()
        is_ours = (
            back and (folder / back).resolve() == git and folder.parent == common / "worktrees"
        )
        if is_ours and (common / "HEAD").is_file() and (common / "objects").is_dir():
            return [git, common]
    return [git]


class OpenRepository:
    """The `.git` of a repository, held open so that it can be found wherever a command moves it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        found = os.fstat(handle)
        self.identity = found.st_dev, found.st_ino

    def __del__(self) -> None:
        os.close(self._handle)

    def place(self) -> Path:
        """Return its current path; one that is nowhere if it was removed."""
        path = os.readlink(f"/proc/self/fd/{self._handle}")
        return Path() if path.endswith("/.git (deleted)") else Path(path)


def repositories_in(workspace: Path) -> tuple[OpenRepository, ...]:
    """Return the repositories below a workspace's root, as far as a bounded walk finds them."""
    found: list[OpenRepository] = []
    for folder, names, others in islice(walk_names(os.fspath(workspace)), _LOOK_LIMIT_FOLDERS):
        if (".git" in names or ".git" in others) and Path(folder) != workspace:
            with contextlib.suppress(OSError):  # removed meanwhile
                handle = os.open(Path(folder) / ".git", PATH_ONLY | NO_FOLLOW)
                repository = OpenRepository(handle)
                if not stat.S_ISLNK(os.fstat(handle).st_mode):
                    found.append(repository)
        for name in _NOT_LOOKED_INTO.intersection(names):
            names.remove(name)
        if len(found) == _REPOSITORY_LIMIT:
            break
    return tuple(found)
