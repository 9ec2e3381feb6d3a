"""Where lines may be in a file, and in which ways they may differ from those that are there."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct

from codingagent.editing import indentation
from codingagent.editing.file_lines import FileLines
from codingagent.editing.nearest import around
from codingagent.errors import OperationError
from codingagent.model.chat_damage import AS_IT_IS, UNHARMED, BodyEvidence, Channel, Rule
from codingagent.model.operations import FileEnd
from codingagent.model.plain_text import blanks, plural

SHOWN_PLACES = 3
_MORE_LINES = "add surrounding lines until it matches one"


class SearchEdit(Struct, frozen=True):
    """One SEARCH and its REPLACE as lines, what to call it, and how they came."""

    search: tuple[str, ...]
    replace: tuple[str, ...]
    label: str = "SEARCH"
    arrival: BodyEvidence | None = AS_IT_IS
    """None: REPLACE is to be taken letter by letter."""
    proven: Channel = UNHARMED
    """The certain damage to others of the same edit."""
    is_verbatim: bool = False
    """It came in a code block: no line has lost its indentation."""
    path: str = ""
    """The file's name, which shows what it may hold."""


class Found(Struct, frozen=True):
    """The index of the first of some lines of a file, how many, and what is to take their place."""

    start: int
    count: int
    new: tuple[str, ...]
    same: tuple[int, int]
    """How many new lines at the head and at the tail are the old ones, to the byte."""
    note: str = ""
    undone: Channel = UNHARMED
    """What was undone in the search, and has made it fit."""
    end: FileEnd | None = None
    """Whether the file's last line is to have an end, where a diff says so."""
    notes: tuple[str, ...] = ()
    """What was undone in REPLACE beyond that."""


def split(text: str) -> list[str]:
    """Return the lines of a text, whether its last one is ended or not."""
    return text.split("\n")[:-1] if text.endswith("\n") or not text else text.split("\n")


class Place(Struct, frozen=True):
    """Where a search fits: its first line and how many; how a line of REPLACE is to be changed to fit too."""

    start: int
    count: int
    note: str = ""
    change: Callable[[str], str] = str


P = TypeVar("P", bound=Place)


def only(lines: list[str], label: str, places: list[P], advice: str = _MORE_LINES) -> P:
    """Return the one place of something; refuse several, with the first of them shown."""
    if len(places) == 1:
        return places[0]
    where = ", ".join(str(place.start + 1) for place in places[:10])
    more = ", …" if len(places) > 10 else ""
    raise OperationError(
        f"{label} matches {len(places)} places (lines {where}{more})",
        around(lines, [(p.start + 1, p.start + p.count) for p in places[:SHOWN_PLACES]]),
        advice=f"; {advice}",
    )


Fit = tuple[str, Callable[[str], str]] | None
"""A note on how lines fit, and what makes a new line fit, too."""


def _exact(there: Sequence[str], search: Sequence[str]) -> Fit:
    return ("", str) if [*there] == [*search] else None


def _up_to_trailing_blanks(there: Sequence[str], search: Sequence[str]) -> Fit:
    is_same = [*map(str.rstrip, there)] == [*map(str.rstrip, search)]
    return ("matched ignoring trailing spaces", str) if is_same else None


def _up_to_indentation(there: Sequence[str], search: Sequence[str]) -> Fit:
    """Each line differs from the search by the same leading blanks; blank lines have none to compare."""
    shift: tuple[str, str] | None = None
    for line, here in zip(there, search, strict=True):
        if not here.strip():
            continue
        old, new = blanks(line), blanks(here)
        this = (old.removesuffix(new), "") if old.endswith(new) else ("", new.removesuffix(old))
        if shift not in (None, this) or not (this[0] or new.endswith(old)):
            return None
        shift = this
    add, drop = shift or ("", "")
    by = f"{_measure(add)} more" if add else f"{_measure(drop)} less"
    return f"matched when indented by {by}", partial(_shift, add=add, drop=drop)


def _shift(line: str, add: str, drop: str) -> str:
    if not line.strip():
        return line
    if not line.startswith(drop):
        raise OperationError(
            "REPLACE has a line that is indented less than SEARCH differs from the file",
            advice="; write both with the indentation of the file",
        )
    return add + line.removeprefix(drop)


def _measure(lead: str) -> str:
    kind = "tab" if set(lead) == {"\t"} else "space"
    return f"{len(lead)} {plural(len(lead), kind)}"


def _up_to_tabs(there: Sequence[str], search: Sequence[str]) -> Fit:
    """Leading tabs replace blanks, or blanks tabs, always as many."""
    has_tabs = any("\t" in blanks(line) for line in there)
    if has_tabs == any("\t" in blanks(line) for line in search):
        return None  # both, or neither: that is another difference
    for width in indentation.TAB_WIDTHS:
        spread = partial(indentation.spread, width=width)
        if [*map(spread, there)] == [*map(spread, search)]:
            change = partial(_to_tabs if has_tabs else indentation.to_blanks, width)
            return f"matched with {'tabs' if has_tabs else 'spaces'} as indentation", change
    return None


def _to_tabs(width: int, line: str) -> str:
    tabbed = indentation.to_tabs(width, line)
    if tabbed is None:
        raise OperationError(
            "the file is indented with tabs, and a line of REPLACE with spaces that are no whole number of"
            " tabs",
            advice="; write both with the indentation of the file",
        )
    return tabbed


# What changes least comes first.
FitRule = Rule[Callable[[Sequence[str], Sequence[str]], Fit]]
RULES: tuple[FitRule, ...] = (
    Rule("exact", "", _exact),
    Rule("trailing blanks", "matched ignoring trailing spaces", _up_to_trailing_blanks),
    Rule("shifted", "matched when indented by {count} more", _up_to_indentation),
    Rule("tabs", "matched with {kind} as indentation", _up_to_tabs),
)
AS_IT_CAME = RULES[:3]


def fits(
    lines: FileLines, rule: FitRule, search: Sequence[str], starts: Sequence[int] | None = None
) -> list[Place]:
    """Return where a search fits by a rule; `starts` are where it is up to blanks, if known."""
    count = len(search)
    if rule.run is _exact:
        return [Place(start, count) for start in lines.places(search)]
    if not any(map(str.strip, search)):
        return []
    starts = lines.starts(search) if starts is None else starts
    found = ((start, rule.run(lines[start : start + count], search)) for start in starts)
    return [Place(start, count, *fit) for start, fit in found if fit is not None]
