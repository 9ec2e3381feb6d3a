"""Find the files by which a repository makes git run something, wherever a command made one.

`git status` in a folder runs what the configuration of its repository names, and hooks. git lists no
`.git`, so these files are found here, for the checkpoints to hold: then they are named, asked about
and put back like any protected file. The rest of a `.git` runs nothing.
"""

import contextlib
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from codingagent.workspace.dirfd import composed, is_folder, is_link
from codingagent.workspace.git_files import GitListing, text_of

# In a checkpoint: git refuses to store a `.git`, and no file is called like the other one.
# As the bytes that they are in UTF-8: another locale can't encode the character.
STORED, _REAL = os.fsdecode(".git\u2063".encode()), ".git"
# How many folders that git ignores are looked into: nobody waits for all of node_modules.
LOOK_LIMIT_FOLDERS = 3_000
# Of one repository: its hooks, submodules and work trees.
_OWN_LIMIT = 500
_PROGRAMS = ("config", "config.worktree", "commondir", "gitdir")
# The first holds programs; the second, which of those that a configuration names are run.
_FOLDERS = ("hooks", "info")
_ATTRIBUTES = ("info", "attributes")
# Repositories of submodules, and other work trees.
_OTHERS = ("modules", "worktrees")
_DATA = ("objects", "refs", "logs", "lfs")
Holds = Callable[[str, str], bool]


def stored(path: str) -> str:
    """Return the name of a path in a checkpoint."""
    parts = path.split("/")
    return path if _REAL not in parts else "/".join(STORED if p == _REAL else p for p in parts)


def real(path: str) -> str:
    """Return the path of a name in a checkpoint."""
    return path.replace(STORED, _REAL) if STORED in path else path


def is_of_git(path: str) -> bool:
    return _REAL in path.split("/")


def makes_git_run(path: str, holds: Holds) -> bool:
    """Return whether a path is such a file of a bare repository, which lies in no `.git`."""
    folder, _, name = path.rpartition("/")
    above, _, last = folder.rpartition("/")
    at = above if last in ("hooks", "info") else folder
    is_one = last == "hooks" or (last == "info" and name == "attributes")
    return (is_one or name in (*_PROGRAMS, "HEAD")) and _is_repository(at, holds)


def gives_git_programs(path: str, holds: Holds) -> bool:
    """Return whether a file that is written there is such a file, or makes a folder above a repository."""
    parts = path.split("/")
    for number, name in enumerate(parts):
        if name.casefold() not in ("head", "objects", "refs", "commondir"):
            continue  # it makes no folder a repository
        folder = "/".join(parts[:number])

        def has(at: str, what: str, folder: str = folder, name: str = name) -> bool:
            return (at, what.casefold()) == (folder, name.casefold()) or holds(at, what)

        if _is_repository(folder, has) and not _is_repository(folder, holds):
            return True
    return makes_git_run(path, holds)


def holds_below(root: str | Path) -> Holds:
    """Return what tells whether a folder below a root holds a name."""
    return lambda folder, name: os.path.lexists(os.path.join(root, folder, name))


def repository_files(root: str, found: GitListing) -> tuple[set[str], list[str]]:
    """Return these files below a folder, and the ignored folders that were not looked through."""
    holds = holds_below(root)
    every = (*found.files, *found.ignored)
    folders = {"", *(path.rstrip("/") for path in found.repositories)}
    for name in {name.rpartition(b"/")[0] for name in every}:
        folder = text_of(name)
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    ignored = [text_of(name) for name in found.ignored if name.endswith(b"/")]
    inner, unseen = _below(root, ignored)
    places = {f"{folder}/{_REAL}" if folder else _REAL for folder in (*folders, *inner)}
    bare = {text_of(n).rpartition("/")[0] for n in every if n.endswith(b"/HEAD")}
    bare |= {folder for folder in inner if holds(folder, "HEAD")}
    files: set[str] = set()
    for place in (*places, *(each for each in bare if each and _is_repository(each, holds))):
        with contextlib.suppress(OSError):
            files.update(_programs(root, place))
    return files, unseen


def _below(root: str, folders: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the folders below some, the topmost first, up to a limit; and those that were cut short."""
    looked: list[str] = []
    tops = sorted(folders)
    waiting = deque(tops)
    while waiting and len(looked) < LOOK_LIMIT_FOLDERS:
        looked.append(folder := waiting.popleft().rstrip("/"))
        with contextlib.suppress(OSError), os.scandir(os.path.join(root, folder)) as entries:
            inner = [composed(each.name) for each in entries if is_folder(each)]
            waiting += (f"{folder}/{name}" for name in sorted(inner) if name != _REAL)
    return looked, [top for top in tops if any(f"{each}/".startswith(top) for each in waiting)]


def _programs(root: str, place: str) -> Iterator[str]:
    """Yield the files of one repository that make git run something, links among them."""
    waiting, left = deque([place]), _OWN_LIMIT
    while waiting and left > 0:
        at = waiting.popleft()
        found = os.lstat(os.path.join(root, at))
        if not stat.S_ISDIR(found.st_mode) or is_link(found):
            yield at
            continue
        inner = at[len(place) + 1 :].split("/")
        is_of_others = inner[0] in _OTHERS
        with os.scandir(os.path.join(root, at)) as entries:
            for each in entries:
                left -= 1
                path = f"{at}/{each.name}"
                if is_folder(each):
                    is_way = each.name in (*_OTHERS, *_FOLDERS) or is_of_others
                    waiting += [path] * (is_way and each.name not in _DATA)
                elif inner[-1] == "hooks":
                    if not each.name.endswith(".sample"):
                        yield path
                elif each.name in (*_PROGRAMS, *_FOLDERS) or (inner[-1], each.name) == _ATTRIBUTES:
                    yield path


def _is_repository(folder: str, holds: Holds) -> bool:
    has_own = holds(folder, "objects") and holds(folder, "refs")
    return holds(folder, "HEAD") and (has_own or holds(folder, "commondir"))
