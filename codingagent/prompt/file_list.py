"""List the workspace's files for the model: sorted, and summarized beyond a number of entries."""

import heapq
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from codingagent.model.paths import shown
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import plural

# Words of the task that may name a file or a folder; the shortest say nothing.
_WORD = lazy_pattern(r"[^\W_]{3,}")


class Ignored(Struct, frozen=True):
    """What the ignore rules excluded; `is_partial` means that counting stopped at its limit."""

    files: int = 0
    size_bytes: int = 0
    is_partial: bool = False
    names: tuple[str, ...] = ()
    """The first of them."""


class Room(Struct, frozen=True):
    """How long a text may be; below the `fewest` lines it is not cut."""

    characters: int
    fewest: int


class Listing(Struct, frozen=True):
    """All files of a workspace, what was excluded, and the ignore files that could not be read.

    Attributes:
        files: their sizes in bytes by path, with /; None for one that has no line of its own.
        ignored: what was excluded.
        unread: what could not be read, with the reason.
    """

    files: Mapping[str, int | None]
    ignored: Ignored = Ignored()
    unread: tuple[str, ...] = ()


def lines(
    listing: Listing,
    limit: int,
    always: Iterable[str] = (),
    wanted: Collection[str] = (),
    room: Room | None = None,
) -> list[str]:
    """Return the lines under `## Workspace Files`, without that heading, in `room` characters (None: any).

    Beyond `limit` entries the folders with the most files are summarized, those `wanted` after all others.
    Paths in `always` are named whatever their folder, unless there are too many.
    """
    folders = by_folder(listing.files)
    totals = {folder: _total(map(listing.files.get, held)) for folder, held in folders.items()}
    while True:
        found = _sum_up(listing.files, folders, totals, limit, frozenset(always), wanted)
        found += _left_out(listing)
        characters = sum(map(len, found)) + len(found) - 1
        if room is None or characters <= room.characters or limit <= room.fewest:
            return found
        limit = max(min(len(found) * room.characters // characters, limit - 1), room.fewest)


def _left_out(listing: Listing) -> Iterator[str]:
    if not listing.files:
        yield "(empty workspace)"
    ignored = listing.ignored
    if ignored.files:
        more = "more than " if ignored.is_partial else ""
        yield (
            f"  ({more}{_count(ignored.files)} left out by ignore rules,"
            f" {more}{human_size(ignored.size_bytes)})"
        )
    yield from (f"  (not read: {reason})" for reason in listing.unread)


def human_size(size_bytes: int) -> str:
    """Return a size in the unit that keeps it short."""
    size = float(size_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if round(size) < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.0f} TB"


def folders_for(listing: Listing, near: Iterable[str], task: str) -> set[str]:
    """Return the folders of some paths, and those that a task names by their name or a file's."""
    found = {path.rpartition("/")[0] for path in near}
    text = "\n".join(listing.files).lower()
    words = {word for word in _WORD.findall(task.lower()) if word in text}
    if not words:
        return found
    # Most paths hold none of them: only the others are looked at word by word.
    may_be_named = re.compile("|".join(map(re.escape, words)))
    for path in listing.files:
        if may_be_named.search(path.lower()) is None:
            continue
        folder, _, name = path.rpartition("/")
        if folder not in found and not words.isdisjoint(
            _WORD.findall(f"{folder.rpartition('/')[2]} {name.partition('.')[0]}".lower())
        ):
            found.add(folder)
    return found


def open_folders(
    counts: Mapping[str, int], limit: int, wanted: Collection[str] = ()
) -> frozenset[str]:
    """Return the folders whose files keep their own lines; each of the others becomes one line.

    `counts` are the files directly in each folder ("" is the root), `limit` the lines. Those `wanted` are the
    last to close.
    """
    entries = {"": 0}
    inner = {"": 0}  # number of open folders inside each
    for path in counts:
        missing = []
        while path not in entries:
            missing.append(path)
            path = path.rpartition("/")[0]  # noqa: PLW2901  # up to a known folder
        for new in reversed(missing):
            entries[new] = inner[new] = 0
            inner[new.rpartition("/")[0]] += 1
    entries.update(counts)
    total = sum(counts.values())
    heap = [
        (path in wanted, -number, path)
        for path, number in entries.items()
        if path and not inner[path]
    ]
    heapq.heapify(heap)
    while total > limit and heap:
        _, number, path = heapq.heappop(heap)
        del entries[path]
        above = path.rpartition("/")[0]
        entries[above] += 1
        inner[above] -= 1
        total += number + 1
        if above and not inner[above]:
            heapq.heappush(heap, (above in wanted, -entries[above], above))
    return frozenset(entries)


_Files = Mapping[str, int | None]


def by_folder(files: Iterable[str]) -> dict[str, list[str]]:
    """Return the files directly in each folder; "" is the root."""
    found: dict[str, list[str]] = {}
    for path in files:
        found.setdefault(path.rpartition("/")[0], []).append(path)
    return found


def _sum_up(
    files: _Files,
    folders: Mapping[str, list[str]],
    totals: Mapping[str, int | None],
    limit: int,
    always: frozenset[str],
    wanted: Collection[str],
) -> list[str]:
    """Repeatedly summarize the innermost folder with the most entries."""
    if len(files) <= limit:
        return [_entry(path, 1, size) for path, size in sorted(files.items())]
    always = always & files.keys() if len(always) <= limit // 2 else frozenset()
    entries = {path: (1, files[path]) for path in always}
    counts = Counter({folder: len(paths) for folder, paths in folders.items()})
    counts.subtract(path.rpartition("/")[0] for path in always)
    open_ = open_folders(+counts, limit - len(entries), wanted)
    for folder, paths in folders.items():
        others = [path for path in paths if path not in always] if always else paths
        line = _line_of(folder, open_)
        if line is None:
            entries.update((path, (1, files[path])) for path in others)
        elif others:
            number, size = entries.get(line, (0, 0))
            is_all = len(others) == len(paths)
            inner = totals[folder] if is_all else _total(map(files.get, others))
            entries[line] = (number + len(others), _total((size, inner)))
    ordered = sorted(entries)
    # Only the root can still hold too many: no folder summarizes it.
    too_many = len(ordered) - limit + 1 if len(ordered) > limit else 0
    rest = set([path for path in ordered if path not in always][-too_many:] if too_many else ())
    shown_ = [_entry(path, *entries[path]) for path in ordered if path not in rest]
    if rest:
        number = sum(entries[path][0] for path in rest)
        size = _total(entries[path][1] for path in rest)
        shown_.append(f"  … and more ({_amount(number, size)})")
    return shown_


def _line_of(folder: str, open_: frozenset[str]) -> str | None:
    """Return the line of the closed folder that contains this one; None for an open one."""
    line = None
    while folder not in open_:
        line = f"{folder}/"
        folder = folder.rpartition("/")[0]
    return line


def _total(sizes: Iterable[int | None]) -> int | None:
    """Return the sum; None if one is unknown."""
    known = list(sizes)
    return None if None in known else sum(filter(None, known))


def _entry(path: str, files: int, size_bytes: int | None) -> str:
    if path[-1] == "/":
        return f"  {shown_path(path)} ({_amount(files, size_bytes)})"
    return f"  {shown_path(path)}" + ("" if size_bytes is None else f" ({size_bytes} bytes)")


def _amount(files: int, size_bytes: int | None) -> str:
    return _count(files) if size_bytes is None else f"{_count(files)}, {human_size(size_bytes)}"


def _count(files: int) -> str:
    return f"{files} {plural(files, 'file')}"


def shown_path(path: str) -> str:
    """Return a plain path unchanged, any other with escapes, on one line."""
    return path if path.isprintable() else shown(path)
