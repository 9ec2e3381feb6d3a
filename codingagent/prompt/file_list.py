"""List the workspace's files for the model: the likely ones by name, and how many others of each kind."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, field

from codingagent.model.paths import shown
from codingagent.model.plain_text import plural
from codingagent.prompt.tokens import estimate

# So few files have a line each, with their sizes.
_FEW = 30
# The list of more takes so many tokens, and more of them by the file.
_TOKENS, _TOKENS_PER_FILE, _MOST_TOKENS = 700, 0.4, 1_400
# A file of more is better read in parts: its size is told.
_LARGE_BYTES = 20_000
# Of one folder; what is beyond is summed up.
_KINDS_SHOWN, _FOLDERS_SHOWN = 4, 8


class Ignored(Struct):
    """What the ignore rules excluded; `is_partial` means that counting stopped at its limit."""

    files: int = 0
    size_bytes: int = 0
    is_partial: bool = False
    names: list[str] = field(default_factory=list)


class Listing(Struct, frozen=True):
    """All files of a workspace, what was excluded, and the ignore files that could not be read."""

    files: Mapping[str, int | None]
    """Their sizes in bytes by path, with /; None for one that has no line of its own."""
    ignored: Ignored = field(default_factory=Ignored)
    unread: tuple[str, ...] = ()


def lines(
    listing: Listing, likely: Collection[str] = (), limit: int = 2_000, characters: int | None = None
) -> list[str]:
    """Return the lines of `## Workspace Files`, of so many names and characters, the `likely` first."""
    files, ignored = listing.files, listing.ignored
    left_out = [] if files else ["(empty workspace)"]
    if ignored.files:
        more, count = "more than " * ignored.is_partial, ignored.files
        left_out.append(
            f"  ({more}{count} {plural(count, 'file')} left out by ignore rules,"
            f" {more}{human_size(ignored.size_bytes)})"
        )
    left_out += (f"  (not read: {reason})" for reason in listing.unread)
    tokens = min(_TOKENS + _TOKENS_PER_FILE * len(files), _MOST_TOKENS)
    if len(files) <= min(_FEW, limit):
        sizes = {path: "" if size is None else f" ({size} bytes)" for path, size in files.items()}
        found = [f"  {shown_path(path)}{sizes[path]}" for path in sorted(sizes)]
        if characters is None or sum(map(len, found)) + len(found) <= characters:
            return found + left_out
    outermost = sorted(files, key=lambda path: (path.count("/"), path))
    order = [*dict.fromkeys((*(path for path in likely if path in files), *outermost))]
    counts = {folder: Counter(map(_kind, held)) for folder, held in by_folder(files).items()}
    # As many names as fit, found by halving.
    found, fits, fails = _folded(counts, {}), 0, min(limit, len(order)) + 1
    count = fails - 1
    while fails - fits > 1 + fits // 20:
        tried = _folded(counts, {path: files[path] for path in order[:count]})
        text = "\n".join(tried)
        if estimate(text) <= tokens and (characters is None or len(text) <= characters):
            fits, found = count, tried
        else:
            fails = count
        count = (fits + fails) // 2
    return found + left_out


def _kind(path: str) -> str:
    name, dot, ending = path.rpartition("/")[2].rpartition(".")
    return f".{ending}" if name and dot and len(ending) <= 10 else "other"


def _folded(counts: Mapping[str, Counter[str]], named: Mapping[str, int | None]) -> list[str]:
    """Return a line a folder: the named files in it, and how many others of each kind."""
    names: dict[str, list[str]] = defaultdict(list)
    told: dict[str, list[str]] = defaultdict(list)
    for path in sorted(named):
        folder, _, name = path.rpartition("/")
        names[folder].append(name)
        size = named[path] or 0
        told[folder].append(shown_path(name) + f" ({human_size(size)})" * (size >= _LARGE_BYTES))
    open_ = {""}
    for folder in names:
        while folder not in open_:
            open_.add(folder)
            folder = folder.rpartition("/")[0]  # noqa: PLW2901  # up to a known folder
    others: dict[str, Counter[str]] = defaultdict(Counter)
    folders = Counter[str]()
    for folder, kinds in counts.items():
        line = folder
        while line not in open_ and (above := line.rpartition("/")[0]) not in open_:
            line = above
        others[line] += kinds
        folders[line] += 1
        if folder in names:
            others[line] -= Counter(map(_kind, names[folder]))
    beside = Counter(line.rpartition("/")[0] for line in others if line not in open_)
    for line in [line for line in others if line not in open_]:
        above = line.rpartition("/")[0]
        if beside[above] > _FOLDERS_SHOWN:
            others[f"{above}/*" if above else "*"] += others[line]
            folders[f"{above}/*" if above else "*"] += folders.pop(line)
            del others[line]
    return [
        _line(folder, told.get(folder, ()), others[folder], folders[folder])
        for folder in sorted({*names, *others})
        if folder in names or +others[folder]
    ]


def _line(folder: str, names: Collection[str], others: Counter[str], folders: int) -> str:
    kinds = others.most_common(_KINDS_SHOWN)
    rest = sum(others.values()) - sum(count for _, count in kinds)
    told = [f"{count} {kind}" for kind, count in (*kinds, ("more", rest)) if count]
    where = f"{shown_path(folder)}/: " if folder else ""
    below = f" in {folders} folders" if folders > 1 else ""
    said = ", ".join(names)
    joint = " and " if names and told else ""
    return f"  {where}{said}{joint}{', '.join(told)}{below}"


def human_size(size_bytes: int) -> str:
    """Return a size in the unit that keeps it short."""
    size = float(size_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if round(size) < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.0f} TB"


def by_folder(files: Iterable[str]) -> dict[str, list[str]]:
    """Return the files directly in each folder; "" is the root."""
    found: dict[str, list[str]] = {}
    for path in files:
        found.setdefault(path.rpartition("/")[0], []).append(path)
    return found


def shown_path(path: str) -> str:
    """Return a plain path unchanged, any other with escapes, on one line."""
    return path if path.isprintable() else shown(path)
