"""How an edit changes a text: where its lines are found, what takes their place, what is shown of it.

How it works. A text is lines parted by "\\n"; a "\\r" before it belongs to the line end, and form feeds
and the like are characters. An edit works on whole lines and leaves all others as they are. A search
is tried exactly, then up to trailing blanks, then up to one constant indentation; at each of these
it must fit one place only.
"""

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from codingagent.core.events import Hunk
from codingagent.core.operations import FileEnd, LineRange, Replacement
from codingagent.errors import OperationError

_OPEN = re.compile(r"(<{7,}) SEARCH[ \t]*")
_HOW = (
    "write <<<<<<< SEARCH, the lines as they stand in the file, =======, the new lines,"
    " >>>>>>> REPLACE"
)

# Enough to see where one is and to write the next SEARCH, little enough for a result.
_CONTEXT_LINES = 3
_NEAREST_CONTEXT_LINES = 8
_EXCERPT_LIMIT_LINES = 40
_SHOWN_LINE_CHARACTERS = 300
_SHOWN_PLACES = 3

# Beyond this many places a line ("}", "else:") says nothing about where the search belongs.
_COMMON_LINE_COUNT = 50
_FUZZY_LIMIT_LINES = 3000


@dataclass(frozen=True, slots=True)
class Edited:
    """A text after an edit, and what was changed in it."""

    text: str
    hunks: tuple[Hunk, ...]
    notes: tuple[str, ...]


# --- the body of an edit ---------------------------------------------------------------------------


def has_markers(body: str) -> bool:
    """Tells whether a body has a SEARCH marker among its lines."""
    return any(_OPEN.fullmatch(line) for line in body.split("\n"))


def read_replacements(body: str) -> tuple[Replacement, ...]:
    """Reads the SEARCH/REPLACE blocks of an edit.

    All three markers of a block have the same length, seven or more.

    Raises:
        OperationError: if a marker is missing, doubled or out of place.
    """
    lines = body.split("\n")[:-1] if body.endswith("\n") else body.split("\n")
    replacements: list[Replacement] = []
    at = 0
    while at < len(lines):
        if (opened := _OPEN.fullmatch(lines[at])) is None:
            if lines[at].strip():
                raise OperationError(
                    f"Line {at + 1} of the body stands outside of SEARCH/REPLACE; {_HOW}"
                )
            at += 1
            continue
        replacement, at = _read_replacement(lines, at, len(opened[1]))
        replacements.append(replacement)
    if not replacements:
        raise OperationError(f"No SEARCH/REPLACE and no line numbers; {_HOW}")
    return tuple(replacements)


def _read_replacement(lines: list[str], at: int, length: int) -> tuple[Replacement, int]:
    """Reads the block that opens at `at`; gives it and the index of the line behind it."""
    close = _find_marker(lines, at + 1, ">" * length + " REPLACE")
    if close is None:
        raise OperationError(f"SEARCH at line {at + 1} of the body has no >>>>>>> REPLACE; {_HOW}")
    again = next((i for i in range(at + 1, close) if _is_open(lines[i], length)), None)
    if again is not None:
        raise OperationError(f"SEARCH at line {at + 1} of the body has no >>>>>>> REPLACE; {_HOW}")
    middles = [i for i in range(at + 1, close) if lines[i].rstrip(" \t") == "=" * length]
    if len(middles) != 1:
        what = "more than one" if middles else "no"
        raise OperationError(
            f"SEARCH at line {at + 1} of the body has {what} line {'=' * length};"
            " if the text itself holds such a line, make all three markers longer, of equal length"
        )
    search = _joined(lines[at + 1 : middles[0]])
    return Replacement(search, _joined(lines[middles[0] + 1 : close])), close + 1


def _find_marker(lines: list[str], start: int, marker: str) -> int | None:
    return next((i for i in range(start, len(lines)) if lines[i].rstrip(" \t") == marker), None)


def _is_open(line: str, length: int) -> bool:
    opened = _OPEN.fullmatch(line)
    return opened is not None and len(opened[1]) == length


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


# --- applying --------------------------------------------------------------------------------------


def apply(change: LineRange | tuple[Replacement, ...], text: str) -> Edited:
    """Gives the text after the change; all of it is applied, or none.

    Raises:
        OperationError: if a range is not in the file, or a search does not fit one place; its
            detail shows the nearest lines with their numbers.
    """
    lines = _Lines.of(text)
    if not lines.raw:
        raise OperationError("The file is empty; write it whole with CREATE_FILE")
    if isinstance(change, LineRange):
        hunk = lines.replace_range(change)
        return Edited(lines.text(), (hunk,), ())
    hunks: list[Hunk] = []
    notes: list[str] = []
    for index, replacement in enumerate(change, start=1):
        label = f"SEARCH {index} of {len(change)}" if len(change) > 1 else "SEARCH"
        try:
            found = _find(lines.contents(), replacement, label)
            new = [found.shift(line) for line in _split(replacement.replace)]
        except OperationError as fault:
            # Seen in the wild: a model that sends only the failed one again, and loses the others.
            all_of_them = f"; none of the {len(change)} was applied: send all of them again"
            only = "; nothing was changed: send the edit again"
            reason = fault.reason + (all_of_them if len(change) > 1 else only)
            raise OperationError(reason, fault.detail) from None
        if found.note:
            notes.append(f"{label} {found.note}")
        same = _common_ends(_split(replacement.search), _split(replacement.replace))
        hunk = lines.put(found.start, found.count, new, same)
        lines.finish(replacement.end)
        hunks = [_moved(earlier, hunk) for earlier in hunks]
        hunks.append(hunk)
    return Edited(lines.text(), tuple(hunks), tuple(notes))


def is_all_crlf(data: bytes) -> bool:
    """Tells whether bytes have lines, and each of them ends in CRLF."""
    ends = data.count(b"\n")
    return ends > 0 and data.count(b"\r\n") == ends


def excerpt(text: str, hunks: Iterable[Hunk]) -> str:
    """Shows the lines around each hunk as they now stand, with their numbers."""
    places = [(hunk.new_start, hunk.new_start + hunk.new_count - 1) for hunk in hunks]
    return _around(_Lines.of(text).contents(), sorted(places))


def _around(lines: list[str], places: Iterable[tuple[int, int]]) -> str:
    """Shows ranges of lines, 1-based and inclusive, in rising order, each with a few lines around it."""
    wanted: list[tuple[int, int]] = []
    for first, last in places:
        start = max(first - _CONTEXT_LINES, 1)
        end = min(last + _CONTEXT_LINES, len(lines))
        if wanted and start <= wanted[-1][1] + 1:
            wanted[-1] = (wanted[-1][0], max(end, wanted[-1][1]))
        else:
            wanted.append((start, end))
    shown = [_numbered(lines, start, end) for start, end in wanted]
    return "\n".join(part for part in shown if part)


def shift_at(hunks: Iterable[Hunk], line: int) -> int:
    """Tells by how many lines earlier edits, in their order, have moved what stood at `line`."""
    by = 0
    for hunk in hunks:
        if hunk.old_start <= line + by:
            by += hunk.new_count - hunk.old_count
    return by


def _moved(earlier: Hunk, later: Hunk) -> Hunk:
    """Gives an earlier hunk with its place in the text after a later one."""
    if earlier.new_start <= later.old_start:
        return earlier
    by = later.new_count - later.old_count
    return Hunk(
        earlier.old_start, earlier.old_count, max(1, earlier.new_start + by), earlier.new_count
    )


@dataclass(slots=True)
class _Lines:
    """A text as raw lines, each still with its "\\r"; `ended` tells whether the last one has an end."""

    raw: list[str]
    ended: bool

    @classmethod
    def of(cls, text: str) -> "_Lines":
        raw = text.split("\n")
        ended = raw[-1] == ""
        return cls(raw[:-1] if ended else raw, ended)

    def text(self) -> str:
        if not self.raw:
            return ""
        return "\n".join(self.raw) + ("\n" if self.ended else "")

    def contents(self) -> list[str]:
        return [line.removesuffix("\r") for line in self.raw]

    def replace_range(self, change: LineRange) -> Hunk:
        total = len(self.raw)
        if change.end_line > total:
            raise OperationError(
                f"Invalid line range {change.start_line}-{change.end_line}: the file has"
                f" {total} {'line' if total == 1 else 'lines'}; use SEARCH/REPLACE, or read the file first",
                _around(self.contents(), [(min(change.start_line, total), total)]),
            )
        start = change.start_line - 1
        return self.put(start, change.end_line - start, _split(change.text))

    def put(
        self, start: int, count: int, new: Sequence[str], same: tuple[int, int] = (0, 0)
    ) -> Hunk:
        """Puts lines in the place of others; they get the line end that stood there.

        Args:
            start: the index of the first line.
            count: how many are replaced.
            new: what takes their place.
            same: how many of them at the head and at the tail stay, to the byte.
        """
        at_end = start + count == len(self.raw)
        head, tail = same
        if at_end and not self.ended:
            head = min(head, count - 1)  # the last line may need an end now
        return_mark = "\r" if self._has_return(start) else ""
        old = self.raw[start : start + count]
        made = [f"{line}{return_mark}" for line in new[head : len(new) - tail]]
        self.raw[start : start + count] = [*old[:head], *made, *old[count - tail :]]
        if at_end and not self.ended and count and self.raw:
            self.raw[-1] = self.raw[-1].removesuffix("\r")
        return Hunk(start + 1, count, start + 1, len(new))

    def finish(self, end: FileEnd | None) -> None:
        """Gives the last line its line end, or takes it away."""
        if end in (None, FileEnd.KEPT) or not self.raw or self.ended is (end is FileEnd.ENDED):
            return
        self.ended = end is FileEnd.ENDED
        if not self.ended:
            self.raw[-1] = self.raw[-1].removesuffix("\r")
        elif len(self.raw) > 1 and self.raw[-2].endswith("\r"):
            self.raw[-1] += "\r"

    def _has_return(self, index: int) -> bool:
        unended = index == len(self.raw) - 1 and not self.ended
        return self.raw[index - 1 if unended and index else index].endswith("\r")


# --- finding ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    """The place of a search: the index of its first line, and how REPLACE is to be shifted to fit."""

    start: int
    count: int
    note: str = ""
    add: str = ""
    drop: str = ""

    def shift(self, line: str) -> str:
        if not line.strip():
            return line
        if not line.startswith(self.drop):
            raise OperationError(
                "REPLACE has a line that is indented less than SEARCH differs from the file; write both"
                " with the indentation of the file"
            )
        return self.add + line.removeprefix(self.drop)


def _common_ends(old: list[str], new: list[str]) -> tuple[int, int]:
    """Tells how many lines two lists share at the head, and of the rest at the tail."""
    pairs = list(zip(old, new, strict=False))
    head = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
    behind = list(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    return head, next((i for i, (a, b) in enumerate(behind) if a != b), len(behind))


def _split(text: str) -> list[str]:
    return text.split("\n")[:-1] if text.endswith("\n") or not text else text.split("\n")


def _find(lines: list[str], replacement: Replacement, label: str) -> _Found:
    search = _split(replacement.search)
    if not search:
        raise OperationError(f"{label} is empty; give the lines whose place REPLACE takes")
    for places in (_exact_places, _trailing_places, _indented_places):
        if places is _indented_places and not replacement.may_shift:
            continue
        found = places(lines, search)
        if replacement.end is not None:
            found = [place for place in found if place.start + place.count == len(lines)]
        if len(found) == 1:
            return found[0]
        if found:
            where = ", ".join(str(place.start + 1) for place in found[:10])
            more = ", …" if len(found) > 10 else ""
            raise OperationError(
                f"{label} fits {len(found)} places (at lines {where}{more});"
                " add lines around it until it fits one",
                _around(lines, [(p.start + 1, p.start + p.count) for p in found[:_SHOWN_PLACES]]),
            )
    where = "" if replacement.end is None else " at the end of the file"
    raise OperationError(
        f"{label} was not found{where}; write its lines letter by letter as they stand in the file",
        detail=_nearest(lines, search),
    )


def _exact_places(lines: list[str], search: list[str]) -> list[_Found]:
    return [_Found(start, len(search)) for start in _positions(lines, search)]


def _trailing_places(lines: list[str], search: list[str]) -> list[_Found]:
    if not any(line.strip() for line in search):
        return []
    starts = _positions([line.rstrip() for line in lines], [line.rstrip() for line in search])
    return [_Found(start, len(search), "fitted up to trailing blanks") for start in starts]


def _indented_places(lines: list[str], search: list[str]) -> list[_Found]:
    """Places where each line differs from the search by the same leading blanks."""
    if not any(line.strip() for line in search):
        return []
    starts = _positions([line.strip() for line in lines], [line.strip() for line in search])
    # Blank lines have no indentation to compare.
    rows = [row for row, line in enumerate(search) if line.strip()]
    wanted = [search[row] for row in rows]
    found = (_shifted((lines[start + row] for row in rows), wanted, start) for start in starts)
    return [replace(place, count=len(search)) for place in found if place is not None]


def _shifted(place: Iterable[str], search: list[str], start: int) -> _Found | None:
    """Gives the place if all its lines have more, or all have less, of the same leading blanks."""
    shift: tuple[str, str] | None = None
    for there, here in zip(map(_blanks, place), map(_blanks, search), strict=True):
        add = there.removesuffix(here) if there.endswith(here) else None
        drop = here.removesuffix(there) if here.endswith(there) else None
        if add is None and drop is None:
            return None
        this = (add or "", "" if add else drop or "")
        if shift is not None and this != shift:
            return None
        shift = this
    add, drop = shift or ("", "")
    by = f"{_measure(add)} more" if add else f"{_measure(drop)} less"
    return _Found(start, len(search), f"fitted when indented by {by}", add, drop)


def _blanks(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _measure(blanks: str) -> str:
    kind = "tab" if set(blanks) == {"\t"} else "blank"
    return f"{len(blanks)} {kind}{'' if len(blanks) == 1 else 's'}"


def _positions(lines: list[str], search: list[str]) -> list[int]:
    """Gives the index of each place where the lines stand; one string search, then counting."""
    # A line holds no "\n", so a match framed by "\n" is a run of whole lines.
    text = "\n" + "\n".join(lines) + "\n"
    wanted = "\n" + "\n".join(search) + "\n"
    if not lines:
        return []
    found: list[int] = []
    at = text.find(wanted)
    counted, index = 0, 0
    while at >= 0:
        index += text.count("\n", counted, at)
        counted = at
        found.append(index)
        at = text.find(wanted, at + 1)
    return found


# --- showing ---------------------------------------------------------------------------------------


def _nearest(lines: list[str], search: list[str]) -> str:
    """Shows the lines of the file that most likely were meant, with their numbers."""
    start = _likely_start(lines, search)
    if start is None:
        return ""
    first = max(start - _NEAREST_CONTEXT_LINES, 0)
    last = min(start + len(search) + _NEAREST_CONTEXT_LINES, len(lines))
    return "The nearest lines in the file are:\n" + _numbered(lines, first + 1, last)


def _likely_start(lines: list[str], search: list[str]) -> int | None:
    places: dict[str, list[int]] = defaultdict(list)
    for index, line in enumerate(lines):
        places[line.strip()].append(index)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(search):
        hits = places.get(line.strip(), ()) if line.strip() else ()
        if len(hits) <= _COMMON_LINE_COUNT:
            votes.update(max(index - offset, 0) for index in hits)
    if votes:
        # The most votes; of equals the first in the file.
        return min(votes, key=lambda start: (-votes[start], start))
    return _similar_start(lines, search)


def _similar_start(lines: list[str], search: list[str]) -> int | None:
    wanted = max((line.strip()[:_SHOWN_LINE_CHARACTERS] for line in search), key=len)
    offset = next(i for i, line in enumerate(search) if line.strip().startswith(wanted))
    stripped = [line.strip()[:_SHOWN_LINE_CHARACTERS] for line in lines[:_FUZZY_LIMIT_LINES]]
    close = difflib.get_close_matches(wanted, set(stripped), n=1, cutoff=0.5)
    return max(stripped.index(close[0]) - offset, 0) if close else None


def _numbered(lines: list[str], start: int, end: int) -> str:
    """Shows lines `start` to `end`, 1-based and inclusive; the middle of many is left out."""
    numbers = list(range(start, end + 1))
    width = len(str(end))
    draw: Callable[[int], str] = lambda n: f"{n:>{width}} | {_clip(lines[n - 1])}"  # noqa: E731
    if len(numbers) <= _EXCERPT_LIMIT_LINES:
        return "\n".join(map(draw, numbers))
    half = _EXCERPT_LIMIT_LINES // 2
    left_out = f"{'…':>{width}} | ({len(numbers) - 2 * half} lines left out)"
    return "\n".join([*map(draw, numbers[:half]), left_out, *map(draw, numbers[-half:])])


def _clip(line: str) -> str:
    # Stray bytes of the file can't be sent; a question mark stands for each.
    line = line.encode("utf-8", "replace").decode()
    return line if len(line) <= _SHOWN_LINE_CHARACTERS else f"{line[:_SHOWN_LINE_CHARACTERS]}…"
