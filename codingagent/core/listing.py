"""The workspace's files as the model sees them: sorted, and summed up beyond a number of entries."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from codingagent.core.paths import shown


class ListedFile(NamedTuple):
    """One file: its path with /, and its size in bytes. A tuple: there may be a hundred thousand."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Ignored:
    """What the ignore rules left out; `is_partial` means that counting stopped at its limit."""

    files: int = 0
    size_bytes: int = 0
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """All files of a workspace, and what was left out of it."""

    files: tuple[ListedFile, ...]
    ignored: Ignored = Ignored()


def lines(listing: Listing, limit: int, always: Iterable[str] = ()) -> list[str]:
    """Gives the lines under `## Workspace Files`, without that heading.

    Args:
        listing: the files.
        limit: how many entries there may be; beyond it the folders with the most files are summed up.
        always: paths that are named whatever their folder, unless they are too many themselves.
    """
    entries = _sum_up(sorted(listing.files, key=lambda file: file.path), limit, frozenset(always))
    if not entries:
        entries = ["(empty workspace)"]
    ignored = listing.ignored
    if ignored.files:
        more = "more than " if ignored.is_partial else ""
        entries.append(
            f"  ({more}{_count(ignored.files)} left out by ignore rules,"
            f" {more}{human_size(ignored.size_bytes)}; READ_FILE still works on them)"
        )
    return entries


def human_size(size_bytes: int) -> str:
    """Gives a size in the unit that keeps it short."""
    size = float(size_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if round(size) < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.0f} TB"


@dataclass(slots=True)
class _Folder:
    """A folder while entries are summed up: what it holds itself, and whether it became one line."""

    entries: dict[str, tuple[int, int]]
    """Name of each file, or of each folder that was summed up: count of files, bytes."""
    open_folders: int = 0


def _sum_up(files: list[ListedFile], limit: int, always: frozenset[str]) -> list[str]:
    """Sums up, one by one, the folder without folders in it that has the most entries."""
    if len(files) <= limit:
        return [_entry(file.path, 1, file.size_bytes) for file in files]
    if len(always) > limit // 2:
        always = frozenset()
    kept = {file.path: (1, file.size_bytes) for file in files if file.path in always}
    folders = _folders(file for file in files if file.path not in always)
    count = len(files)
    heap = [(-len(f.entries), path) for path, f in folders.items() if path and not f.open_folders]
    heapq.heapify(heap)
    while count > limit and heap:
        _, path = heapq.heappop(heap)
        folder = folders.pop(path)
        parent, _, name = path.rpartition("/")
        above = folders[parent]
        above.entries[f"{name}/"] = _sum(folder.entries.values())
        above.open_folders -= 1
        count -= len(folder.entries) - 1
        if parent and not above.open_folders:
            heapq.heappush(heap, (-len(above.entries), parent))
    for path, folder in folders.items():
        prefix = f"{path}/" if path else ""
        kept.update({prefix + name: what for name, what in folder.entries.items()})
    ordered = sorted(kept)
    # Only the root itself can still hold too many: there is no folder to sum it up.
    too_many = len(ordered) - limit + 1 if len(ordered) > limit else 0
    rest = set([path for path in ordered if path not in always][-too_many:] if too_many else ())
    lines = [_entry(path, *kept[path]) for path in ordered if path not in rest]
    if rest:
        number, size = _sum(kept[path] for path in rest)
        lines.append(f"  … and more ({_count(number)}, {human_size(size)})")
    return lines


def _sum(entries: Iterable[tuple[int, int]]) -> tuple[int, int]:
    numbers, sizes = zip(*entries, strict=True)
    return sum(numbers), sum(sizes)


def _entry(path: str, files: int, size_bytes: int) -> str:
    what = (
        f"{_count(files)}, {human_size(size_bytes)}" if path[-1] == "/" else f"{size_bytes} bytes"
    )
    return f"  {shown_path(path)} ({what})"


def _folders(files: Iterable[ListedFile]) -> dict[str, _Folder]:
    folders = {"": _Folder({})}
    for file in files:
        folder, _, name = file.path.rpartition("/")
        if folder not in folders:
            _add_folder(folders, folder)
        folders[folder].entries[name] = (1, file.size_bytes)
    return folders


def _add_folder(folders: dict[str, _Folder], path: str) -> None:
    missing = []
    while path not in folders:
        missing.append(path)
        path = path.rpartition("/")[0]
    for new in reversed(missing):
        folders[new] = _Folder({})
        folders[new.rpartition("/")[0]].open_folders += 1


def _count(files: int) -> str:
    return f"{files} file" if files == 1 else f"{files} files"


def shown_path(path: str) -> str:
    """Gives a path as it is if it is plain, else with escapes, on one line."""
    return path if path.isprintable() else shown(path)
