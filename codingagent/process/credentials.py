"""Find credentials in tool folders and in the workspace, so that commands see the folders without them.

A list of names is never complete. So everything that an application keeps in a dot folder is hidden
too, except folders known to hold programs, and so are sockets. Code folders are not searched.
"""

import os
import stat
from collections import deque
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

from codingagent.process.names import listed
from codingagent.secrets.files import NAMES, is_secret_file
from codingagent.workspace.dirfd import walk_names

_NAMES = NAMES.union(listed("credentials"))
PRIVATE, _OPEN, _PACKAGES, _CODE = (
    frozenset(listed(section))
    for section in ("private folders", "open folders", "packages", "code")
)

_DEPTH, _FOLDERS = 4, 2000
# A workspace's secret files are not looked for here: they are a repository's and other people's.
_OTHERS = frozenset({".git", "node_modules", "site-packages", "__pycache__"})
_NAMES_LIMIT = 200_000


def files_of_secrets(workspace: Path, passed_over: AbstractSet[Path]) -> list[Path]:
    """Return a workspace's secret files, ignored ones too, by real paths; OSError for too many names."""
    found: set[Path] = set()
    looked = 0
    for folder, inner, names in walk_names(os.fspath(workspace)):
        here = Path(folder)
        inner[:] = [
            name for name in inner if name not in _OTHERS and here / name not in passed_over
        ]
        looked += len(inner) + len(names)
        if looked > _NAMES_LIMIT:
            raise OSError(f"more than {_NAMES_LIMIT:,} names to look at; use --secrets redact")
        # The target of a link has another name.
        found.update(
            (here / name).resolve() for name in names if is_secret_file(f"{folder}/{name}")
        )
    return sorted(each for each in found if workspace in each.parents and each.is_file())


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of this name is hidden."""
    return name not in _OPEN and (name.startswith(".") or _is_named(name))


def _is_named(name: str) -> bool:
    return name.casefold().lstrip("._") in _NAMES


class CredentialSearch:
    """Find what to hide; unchanged folders are not read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int, int], list[str], list[str]]] = {}

    def hidden_in(self, folders: AbstractSet[Path], passed_over: Path) -> list[Path]:
        """Return the hidden paths in tool folders (real paths); of nested ones, only the outermost."""
        found: set[Path] = set()
        for folder in folders:
            todo = deque([] if folder.name in _PACKAGES else [(os.fspath(folder), 0)])
            for _ in range(_FOLDERS):
                if not todo:
                    break
                name, depth = todo.popleft()
                hidden, inner = self._listing(name)
                found.update(map(Path, hidden))
                if depth < _DEPTH:
                    todo += ((each, depth + 1) for each in inner if each != str(passed_over))
        # Whose nearest listed ancestor is shown, not hidden.
        nearest = {
            each: next(filter((folders | found).__contains__, each.parents), None) for each in found
        }
        return sorted(each for each, above in nearest.items() if above in folders)

    def _listing(self, folder: str) -> tuple[list[str], list[str]]:
        """Return the hidden names in a folder, and its subfolders to search."""
        try:
            about = os.lstat(folder)
            state = about.st_dev, about.st_ino, about.st_mtime_ns
            known = self._known.get(folder)
            if known is None or known[0] != state:
                with os.scandir(folder) as entries:
                    known = state, *_sorted_out(entries)
                self._known[folder] = known
        except OSError:  # removed, or not readable
            return [], []
        return known[1], known[2]


def _sorted_out(entries: Iterable[os.DirEntry[str]]) -> tuple[list[str], list[str]]:
    hidden: list[str] = []
    inner: list[str] = []
    for entry in entries:
        if entry.is_symlink():
            # The target of a link has another name.
            if _is_named(entry.name) and os.path.isfile(entry.path):
                hidden.append(os.path.realpath(entry.path))
        elif entry.is_dir():
            if is_hidden(entry.name):
                hidden.append(entry.path)
            elif entry.name not in _CODE and entry.name not in _PACKAGES:
                inner.append(entry.path)
        elif not entry.is_file() or (
            is_hidden(entry.name) and ("." in entry.name or not entry.stat().st_mode & stat.S_IXUSR)
        ):  # without an ending it may be a program
            hidden.append(entry.path)
    return hidden, inner
