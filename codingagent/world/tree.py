"""All files below a folder, without those that ignore files leave out."""

import contextlib
import os
from dataclasses import dataclass, field

from codingagent.core.ignore import IGNORE_FILES, IgnoreRules
from codingagent.core.listing import ListedFile
from codingagent.errors import OperationError
from codingagent.world.folders import Folder, Place, read_regular, regular

# Each level holds one handle while the tree is walked, and 256 is a common limit of handles.
_DEPTH_LIMIT = 150
# Counting what is ignored is a courtesy; node_modules must not make every turn slow.
_IGNORED_COUNT_LIMIT = 20_000


@dataclass(slots=True)
class ListingWalk:
    """A walk over all files, pruned by ignore rules; what is pruned is counted up to a limit."""

    hidden: frozenset[tuple[int, int]]
    files: list[ListedFile] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ignored_files: int = 0
    ignored_bytes: int = 0
    is_partial: bool = False

    def walk(self, folder: Folder, prefix: str = "", rules: IgnoreRules | None = None) -> None:
        if (entries := _entries(folder)) is None:
            return
        known = rules or IgnoreRules()
        names = {entry.name for entry in entries}
        for name in IGNORE_FILES:
            if name in names:
                known = known.extended(prefix.rstrip("/"), _ignore_text(folder, name))
        for entry in entries:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    self._walk_inner(folder, entry.name, path, known)
            elif known.ignores(path, is_folder=False):
                self._count(entry)
            elif entry.is_symlink():
                self.links.append(path)
            elif entry.is_file(follow_symlinks=False) and not _is_skipped(entry.name):
                with contextlib.suppress(OSError):
                    size = entry.stat(follow_symlinks=False).st_size
                    self.files.append(ListedFile(path, size))

    def _walk_inner(self, folder: Folder, name: str, path: str, rules: IgnoreRules) -> None:
        ignored = rules.ignores(path, is_folder=True)
        if path.count("/") >= _DEPTH_LIMIT or (ignored and self.is_partial):
            return
        try:
            inner = folder.open(name)
        except OSError:
            return
        with contextlib.closing(inner):
            if inner.identity() in self.hidden:
                return
            if ignored:
                self._count_all(inner, path.count("/"))
            else:
                self.walk(inner, f"{path}/", rules)

    def _count_all(self, folder: Folder, depth: int) -> None:
        for entry in _entries(folder) or ():
            if self.ignored_files >= _IGNORED_COUNT_LIMIT:
                self.is_partial = True
            if self.is_partial or depth >= _DEPTH_LIMIT:
                return
            if not entry.is_dir(follow_symlinks=False):
                self._count(entry)
                continue
            with contextlib.suppress(OSError), contextlib.closing(folder.open(entry.name)) as inner:
                self._count_all(inner, depth + 1)

    def uncount(self, file: ListedFile) -> None:
        """Takes back the count of an ignored file that is listed all the same."""
        if not self.is_partial:
            self.ignored_files -= 1
            self.ignored_bytes -= file.size_bytes

    def _count(self, entry: "os.DirEntry[str]") -> None:
        with contextlib.suppress(OSError):
            self.ignored_bytes += entry.stat(follow_symlinks=False).st_size
            self.ignored_files += 1


def _entries(folder: Folder) -> "list[os.DirEntry[str]] | None":
    try:
        return folder.entries()
    except OSError:
        return None  # a folder without permission is listed as if it were empty


def _is_skipped(name: str) -> bool:
    return name == ".git" or is_temporary(name)


def is_temporary(name: str) -> bool:
    return len(name) == 20 and name.startswith(".ca-") and name.endswith(".tmp")


def _ignore_text(folder: Folder, name: str) -> str:
    place = Place(folder, name)
    try:
        data, _ = read_regular(place, regular(place, name), 1 << 20)
    except (OSError, OperationError):
        return ""
    return data.decode("utf-8", "replace")
