"""The hunks of a diff, and all places of a file that each of them fits.

How it works. A place fits exactly, else up to trailing blanks or one constant indentation. `diff_apply`
says which of several is meant.
"""

from codingagent.editing import places
from codingagent.editing.places import Place
from codingagent.model.operations import DiffHunk

# So often new lines are judged by what the whole file would be with them; then by themselves.
_LOOKS_LIMIT = 50


class HunkFile:
    """The lines of a file, and what is asked of them for each hunk."""

    def __init__(self, lines: list[str], path: str) -> None:
        self.lines = lines
        self.path = path
        self.looks_left = _LOOKS_LIMIT
        bare = [line.strip() for line in lines]
        self.known = set(bare)
        self.is_shown = False  # the answer has lines of it with their indentation
        self._bare = places.framed(bare)
        self._sections: dict[str, list[tuple[int, int]]] = {}

    def starts(self, wanted: list[str]) -> list[int]:
        """Return where lines are, whatever blanks are round each."""
        bare = [line.strip() for line in wanted]
        return places.positions_in(self._bare, bare) if self.known.issuperset(bare) else []

    def sections(self, name: str) -> list[tuple[int, int]]:
        """Return where each class or function of that name begins, and where the next thing does."""
        if name not in self._sections:
            self._sections[name] = _sections(self.lines, name)
        return self._sections[name]


class HunkFit(places.Span, frozen=True):
    """A place of a hunk, and how it fits there: it changes the lines from `first` to before `last`."""

    first: int
    last: int
    place: Place


class PlacedHunk:
    """A hunk with its two sides, the lines of context round its changes, and what it fits."""

    def __init__(self, said: DiffHunk, label: str, shift: int) -> None:
        self.said = said
        self.label = label
        self.shift = shift
        self.old = [text for mark, text in said.lines if mark != "+"]
        self.new = [text for mark, text in said.lines if mark != "-"]
        marks = [mark for mark, _ in said.lines]
        changed = [index for index, mark in enumerate(marks) if mark != " "]
        self.lead = changed[0]
        self.trail = len(marks) - 1 - changed[-1]
        self.only_adds = "-" not in marks
        self.has_text = any(line.strip() for line in self.old)
        self.fits: list[HunkFit] = []

    @property
    def is_one_sided(self) -> bool:
        """Return whether it has context on one side of its changes only, as at an end of a file."""
        return bool(self.lead) != bool(self.trail)


def fits_of(file: HunkFile, hunk: PlacedHunk) -> list[HunkFit]:
    """Return all places that a hunk fits in the first of the ways that fits any."""
    count = len(hunk.old)
    starts = file.starts(hunk.old) if hunk.old else []
    for rule in places.AS_IT_CAME if starts else ():
        found: list[HunkFit] = []
        for start in starts:
            there = file.lines[start : start + count]
            for place in () if _lost_mark(there, hunk.old) else rule.run(there, hunk.old):
                first, last = start + hunk.lead, start + count - hunk.trail
                found.append(HunkFit(start, count, first, last, place))
        if found:
            return found
    return []


def _lost_mark(there: list[str], old: list[str]) -> bool:
    """Return whether a hunk fits one blank deeper: its context has lost the marks, its new lines have not."""
    row = next((row for row, line in enumerate(old) if line.strip()), 0)
    return there[row].rstrip() == f" {old[row].rstrip()}"


def _sections(lines: list[str], name: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, line in enumerate(lines):
        if not line.strip().startswith(name) or not _is_same_head(line.strip(), name):
            continue
        depth = len(line) - len(line.lstrip())
        ends = (at for at in range(start + 1, len(lines)) if _begins_next(lines[at], depth))
        found.append((start, next(ends, len(lines))))
    return found


def _begins_next(line: str, depth: int) -> bool:
    """Return whether a line begins what follows a class or function of some depth."""
    text = line.lstrip()
    return bool(text) and len(line) - len(text) <= depth and (text[0].isalnum() or text[0] in "_$")


def _is_same_head(line: str, name: str) -> bool:
    # git cuts the text at 80 characters.
    return len(name) >= 70 or not (line[len(name) :][:1].isalnum() or line[len(name) :][:1] == "_")
