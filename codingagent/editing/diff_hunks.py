"""The hunks of a diff, and all places of a file that each of them fits.

How it works. A place fits exactly, else up to trailing blanks, one constant indentation, tabs shown as
blanks, or blank lines between its lines. `diff_apply` says which of several is meant.
"""

from collections.abc import Iterator, Sequence

from codingagent.editing import file_kinds, places
from codingagent.editing.places import Place
from codingagent.model.operations import DiffHunk

# Fewer lines with blanks than one in so many are text within code that has tabs.
_TABS_FOR_EACH_BLANK = 20
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
        self.has_inner_tabs = any("\t" in line for line in self.known)
        by_blanks, by_tabs = (sum(line.startswith(lead) for line in lines) for lead in ("  ", "\t"))
        rare = 0 if file_kinds.is_prose(path) else by_tabs // _TABS_FOR_EACH_BLANK
        self.is_mixed = by_blanks > rare and by_tabs > 0
        self.is_shown = False  # the answer has lines of it with their indentation
        self.rows = [row for row, line in enumerate(bare) if line]
        self._bare = places.framed(bare)
        self._bare_rows = places.framed(bare[row] for row in self.rows)
        self._sections: dict[str, list[tuple[int, int]]] = {}

    def starts(self, wanted: list[str], *, in_rows: bool = False) -> list[int]:
        """Return where lines are, whatever blanks are round each; or among those not blank, the `rows`."""
        bare = [line.strip() for line in wanted]
        text = self._bare_rows if in_rows else self._bare
        return places.positions_in(text, bare) if self.known.issuperset(bare) else []

    def sections(self, name: str) -> list[tuple[int, int]]:
        """Return where each class or function of that name begins, and where the next thing does."""
        if name not in self._sections:
            self._sections[name] = _sections(self.lines, name)
        return self._sections[name]


class HunkFit(places.Span, frozen=True):
    """A place of a hunk: it changes the lines from `first` to before `last`.

    `places` has one way to fit there for each width that a tab may have. `made` is what is then
    there: the index of a line that stays, or a new line; None where each old line has its own.
    """

    first: int
    last: int
    places: tuple[Place, ...]
    made: tuple[int | str, ...] | None = None


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
    if not hunk.old:
        return []
    count = len(hunk.old)
    starts = file.starts(hunk.old)
    for rule in places.FITS if starts else ():
        found: list[HunkFit] = []
        for start in starts:
            ways = tuple(rule.run(file.lines[start : start + count], hunk.old))
            if ways and not _lost_mark(file.lines[start : start + count], hunk.old, ways[0]):
                first, last = start + hunk.lead, start + count - hunk.trail
                found.append(HunkFit(start, count, first, last, ways))
        if found:
            return found
    return list(_spaced(file, hunk))


def _lost_mark(there: list[str], old: list[str], place: Place) -> bool:
    """Return whether a hunk fits one blank deeper: its context has lost the marks, its new lines have not."""
    row = next((row for row, line in enumerate(old) if line.strip()), 0)
    return not place.tab_width and there[row].rstrip() == f" {old[row].rstrip()}"


def _spaced(file: HunkFile, hunk: PlacedHunk) -> Iterator[HunkFit]:
    """Yield places that a hunk fits but for blank lines that are missing or too many between its lines."""
    wanted = [line.rstrip() for line in hunk.old if line.strip()]
    note = "fitted with the blank lines of the file"
    for at in file.starts(wanted, in_rows=True) if wanted else ():
        rows = file.rows[at : at + len(wanted)]
        is_exact = [file.lines[row].rstrip() for row in rows] == wanted
        made = _with_blanks(hunk.said.lines, rows) if is_exact else None
        if made is None:
            continue
        start, last = rows[0], rows[-1] + 1
        lead, trail = places.common_ends(range(start, last), made)
        place = Place(start, last - start, note)
        yield HunkFit(start, last - start, start + lead, last - trail, (place,), tuple(made))


def _with_blanks(lines: Sequence[tuple[str, str]], rows: Sequence[int]) -> list[int | str] | None:
    """Return what is to be at a place whose lines are `rows`, with its own blank lines between them.

    None where it can't be told on which side of a blank line a new line belongs.
    """
    made: list[int | str] = []
    at = 0
    for here, following in zip([-1, *rows], [*rows, -1], strict=True):
        gap: list[tuple[str, str]] = []
        while at < len(lines) and (lines[at][0] == "+" or not lines[at][1].strip()):
            gap.append(lines[at])
            at += 1
        blanks = range(here + 1, following) if here >= 0 and following >= 0 else range(0)
        marks = "".join(mark for mark, _ in gap)
        if blanks and len(marks.replace("+", "")) == len(blanks):
            there = iter(blanks)
            both = [(mark, text if mark == "+" else next(there)) for mark, text in gap]
            made += [each for mark, each in both if mark != "-"]
        else:
            # New lines right after as many that they replace are on their side of any blank line.
            added = len(marks) - len(marks.lstrip("+"))
            before = lines[: at - len(gap)][-added - 1 :]
            replaced = [mark == "-" and bool(text.strip()) for mark, text in before]
            is_sure = all(replaced[-added:]) and not any(replaced[: len(replaced) - added])
            is_sure = is_sure and "+" not in marks[added:]
            if "-" in marks or ("+" in marks and (blanks or " " in marks) and not is_sure):
                return None
            made += [*(text for mark, text in gap if mark == "+"), *blanks]
        if at < len(lines):
            made += [following] if lines[at][0] == " " else []
            at += 1
    return made


def _sections(lines: list[str], name: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, line in enumerate(lines):
        if not line.strip().startswith(name) or not _is_same_head(line.strip(), name):
            continue
        depth = len(line) - len(line.lstrip())
        end = next(
            (
                at
                for at in range(start + 1, len(lines))
                if (text := lines[at].strip())
                and len(lines[at]) - len(lines[at].lstrip()) <= depth
                and (text[0].isalnum() or text[0] in "_$")
            ),
            len(lines),
        )
        found.append((start, end))
    return found


def _is_same_head(line: str, name: str) -> bool:
    # git cuts the text at 80 characters.
    return len(name) >= 70 or not (line[len(name) :][:1].isalnum() or line[len(name) :][:1] == "_")
