"""Find where in a file the lines of a search are: exactly, or up to blanks, indentation or tabs."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from codingagent.editing import indentation
from codingagent.editing.nearest import around
from codingagent.errors import OperationError
from codingagent.model.chat_damage import UNHARMED, Channel
from codingagent.model.operations import FileEnd
from codingagent.model.plain_text import blanks, plural
from codingagent.model.rule import Rule

SHOWN_PLACES = 3
_MORE_LINES = "add lines around it until it fits one"


class Sought(Struct, frozen=True):
    """One SEARCH and its REPLACE as lines, what to call it, and the way by which it came."""

    search: tuple[str, ...]
    replace: tuple[str, ...]
    label: str = "SEARCH"
    way: Channel = UNHARMED
    proven: Channel = UNHARMED
    """The certain damage to others of the same edit."""
    is_verbatim: bool = False
    """It came in a code block: no line has lost its indentation."""
    is_whole: bool = False
    """Its lines are counted, so none of them replaces others."""
    path: str = ""
    """The file's name, which shows what it may hold."""
    is_literal: bool = False
    """REPLACE is to be taken letter by letter."""


class Found(Struct, frozen=True):
    """A place: the index of its first line, the number of lines, and what is to take their place.

    `same` is how many of the new lines at the head and at the tail are the old ones, to the byte.
    """

    start: int
    count: int
    new: tuple[str, ...]
    same: tuple[int, int]
    note: str = ""
    undone: Channel = UNHARMED
    """What was undone in the search, and has made it fit."""
    end: FileEnd | None = None
    """Whether the file's last line is to have an end, where a diff says so."""


def split(text: str) -> list[str]:
    """Return the lines of a text, whether its last one is ended or not."""
    return text.split("\n")[:-1] if text.endswith("\n") or not text else text.split("\n")


class Span(Struct, frozen=True):
    """Some lines of a file: the index of the first, and how many."""

    start: int
    count: int


S = TypeVar("S", bound=Span)


def only(lines: list[str], label: str, places: list[S], advice: str = _MORE_LINES) -> S:
    """Return the one place of something; refuse several, with the first of them shown."""
    if len(places) == 1:
        return places[0]
    where = ", ".join(str(place.start + 1) for place in places[:10])
    more = ", …" if len(places) > 10 else ""
    raise OperationError(
        f"{label} fits {len(places)} places (at lines {where}{more}); {advice}",
        around(lines, [(p.start + 1, p.start + p.count) for p in places[:SHOWN_PLACES]]),
    )


class Place(Span, frozen=True):
    """Where a search fits; how a line of REPLACE is to be changed to fit too."""

    note: str = ""
    change: Callable[[str], str] = str
    trail: str = ""

    def new(self, replace: Sequence[str]) -> tuple[str, ...]:
        """Return new lines as they fit here."""
        return tuple(map(self.change, self.without_trail(replace)))

    def without_trail(self, lines: Sequence[str]) -> Sequence[str]:
        """Take off what came to the end of each line of the search, if all of these lines have it too."""
        if not self.trail or not all(line.endswith(self.trail) for line in lines if line.strip()):
            return lines
        return [line.removesuffix(self.trail) for line in lines]


def exact(lines: list[str], search: list[str]) -> list[Place]:
    return [Place(start, len(search)) for start in positions(lines, search)]


def up_to_trailing_blanks(lines: list[str], search: list[str]) -> list[Place]:
    if not any(line.strip() for line in search):
        return []
    starts = positions([line.rstrip() for line in lines], [line.rstrip() for line in search])
    note = "fitted up to trailing blanks"
    return [_with_trail(Place(start, len(search), note), lines, search) for start in starts]


def _common_trail(place: Sequence[str], search: Sequence[str]) -> str:
    """Return the blanks that each line of a search has at its end beyond those of the file."""
    both = (each for each in zip(place, search, strict=True) if each[1].strip())
    ends = (map(_trail, each) for each in both)
    extra = {here.removeprefix(there) if here.startswith(there) else "" for there, here in ends}
    return extra.pop() if len(extra) == 1 else ""


def _trail(line: str) -> str:
    return line[len(line.rstrip()) :]


def up_to_indentation(lines: list[str], search: list[str]) -> list[Place]:
    """Places where each line differs from the search by the same leading blanks."""
    if not any(line.strip() for line in search):
        return []
    starts = positions([line.strip() for line in lines], [line.strip() for line in search])
    # Blank lines have no indentation to compare.
    rows = [row for row, line in enumerate(search) if line.strip()]
    wanted = [search[row] for row in rows]
    found: list[Place] = []
    for start in starts:
        place = _shifted((lines[start + row] for row in rows), wanted, start, len(search))
        found += [_with_trail(place, lines, search)] if place is not None else []
    return found


def _with_trail(place: Place, lines: list[str], search: list[str]) -> Place:
    there = lines[place.start : place.start + place.count]
    return replace(place, trail=_common_trail(there, search))


def _shifted(place: Iterable[str], search: list[str], start: int, count: int) -> Place | None:
    """Return the place if all its lines have more, or all have less, of the same leading blanks."""
    shift: tuple[str, str] | None = None
    for there, here in zip(map(blanks, place), map(blanks, search), strict=True):
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
    change = partial(_shift, add=add, drop=drop)
    return Place(start, count, f"fitted when indented by {by}", change)


def _shift(line: str, add: str, drop: str) -> str:
    if not line.strip():
        return line
    if not line.startswith(drop):
        raise OperationError(
            "REPLACE has a line that is indented less than SEARCH differs from the file; write both"
            " with the indentation of the file"
        )
    return add + line.removeprefix(drop)


def _measure(blanks: str) -> str:
    kind = "tab" if set(blanks) == {"\t"} else "blank"
    return f"{len(blanks)} {plural(len(blanks), kind)}"


def up_to_tabs(lines: list[str], search: list[str]) -> list[Place]:
    """Places where leading tabs replace blanks, or blanks for tabs, always as many."""
    if not any(line[:1] in (" ", "\t") for line in search):
        return []
    found: list[Place] = []
    for width in indentation.TAB_WIDTHS:
        wanted = [indentation.spread(line, width) for line in search]
        for start in positions([indentation.spread(line, width) for line in lines], wanted):
            place = lines[start : start + len(search)]
            has_tabs = any(blanks(line).count("\t") for line in place)
            if has_tabs == any(blanks(line).count("\t") for line in search):
                continue  # both, or neither: that is another difference
            note = f"fitted with {'tabs' if has_tabs else 'blanks'} for its indentation"
            change = partial(_to_tabs if has_tabs else indentation.to_blanks, width)
            here = Place(start, len(search), note, change)
            found.append(_with_trail(here, lines, search))
    return found


def _to_tabs(width: int, line: str) -> str:
    tabbed = indentation.to_tabs(width, line)
    if tabbed is None:
        raise OperationError(
            "the file is indented by tabs, and a line of REPLACE by blanks that are no whole number"
            " of tabs; write both with the indentation of the file"
        )
    return tabbed


def positions(lines: list[str], search: list[str]) -> list[int]:
    """Return the index of each place where the lines are; one string search, then counting."""
    return positions_in(framed(lines), search) if lines else []


def framed(lines: Iterable[str]) -> str:
    """Return lines as one text, in which a run of whole lines is framed by "\\n": they hold none."""
    return "\n" + "\n".join(lines) + "\n"


def positions_in(text: str, search: Iterable[str]) -> list[int]:
    """Return the index of each place where lines are in a framed text."""
    wanted = framed(search)
    found: list[int] = []
    at = text.find(wanted)
    counted, index = 0, 0
    while at >= 0:
        index += text.count("\n", counted, at)
        counted = at
        found.append(index)
        at = text.find(wanted, at + 1)
    return found


def without_indentation(lines: list[str], search: list[str]) -> list[Place]:
    """Places that a search fits which has lost all indentation."""
    if any(line[:1] in (" ", "\t") for line in search if line.strip()):
        return []
    starts = positions([line.strip() for line in lines], [line.strip() for line in search])
    note = "fitted with the indentation of the file"
    return [_with_trail(Place(start, len(search), note), lines, search) for start in starts]


_ONE_PLACE = "it fits one place only"
# The order in which they are tried: what changes least comes first.
RULES: tuple[Rule[Callable[[list[str], list[str]], list[Place]]], ...] = (
    Rule("exact", "lines of the file, to the letter", _ONE_PLACE, "replaces them", "", exact),
    Rule("trailing blanks", "lines of the file, but for blanks at their ends", _ONE_PLACE,
         "takes blanks that SEARCH has on each line off REPLACE, too", "fitted up to trailing blanks",
         up_to_trailing_blanks),
    Rule("shifted", "lines of the file, all deeper or all less deep by the same blanks", _ONE_PLACE,
         "shifts REPLACE alike", "fitted when indented by {count} more", up_to_indentation),
    Rule("tabs", "lines of the file, with blanks for their leading tabs or tabs for blanks",
         "always as many blanks for a tab", "writes REPLACE as the file is written",
         "fitted with {kind} for its indentation", up_to_tabs),
    Rule("no indentation", "lines of the file, all without indentation", _ONE_PLACE,
         "indents each new line as the line that it replaces; asks again where there is none",
         "fitted with the indentation of the file", without_indentation),
)  # fmt: skip
AS_IT_CAME = RULES[:3]
