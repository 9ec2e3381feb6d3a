"""Find the files in which a repository tells agents how to work on it."""

from collections.abc import Collection, Iterable, Iterator

# In each folder the first of these that exists; each tool has its own name for the same thing.
NAMES = (
    "AGENTS.md",
    "CLAUDE.md",
    ".github/copilot-instructions.md",
    "CONVENTIONS.md",
    ".cursorrules",
)


def paths(listed: Collection[str], near: Iterable[str] = ()) -> Iterator[str]:
    """Yield one listed file for the root, and one for each folder on the way to `near`, outermost first."""
    folders = {""}
    for path in near:
        while path := path.rpartition("/")[0]:  # up to the root
            folders.add(f"{path}/")
    for folder in sorted(folders):
        found = next((folder + name for name in NAMES if folder + name in listed), None)
        if found is not None:
            yield found
