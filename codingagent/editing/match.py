"""Where in a file the lines of a search are meant to stand, and what of REPLACE then goes there.

How it works. A search is tried exactly, then up to trailing blanks, then up to one constant
indentation. If all of that fails, the damage that chats do is undone in it, and what fits after that
is proof: the lines stand in the file after exactly this repair, at one place only, and not before.
The same way then brought REPLACE: its lines that are lines of the search become those of the file,
and new ones are undone alike. Each repair that fits is worked out; unless all of them come to the
same text, nothing is taken. Where a new line may be meant as it came, nothing is taken either.
"""

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from codingagent.editing import characters, indentation
from codingagent.editing.characters import Ground
from codingagent.editing.indentation import blanks
from codingagent.errors import OperationError
from codingagent.model import chat_damage
from codingagent.model.chat_damage import UNHARMED, Channel, Damage, Row
from codingagent.model.plain_text import without_halves

# Enough to see where one is and to write the next SEARCH, little enough for a result.
_CONTEXT_LINES = 3
_NEAREST_CONTEXT_LINES = 8
_EXCERPT_LIMIT_LINES = 40
_SHOWN_LINE_CHARACTERS = 300
_SHOWN_PLACES = 3

# Beyond this many places a line ("}", "else:") says nothing about where the search belongs.
_COMMON_LINE_COUNT = 50
_FUZZY_LIMIT_LINES = 3000

_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*[\w+#.-]*[ \t]*")
_NUMBER = re.compile(r"[ \t]*(\d+)[ \t]?(?:\||│|:|→|\t)")
# A line that stands for others. The dots alone are Python's own too, so they are told apart below.
_DOTS = re.compile(r"[ \t]*(?:\.{3}|…)[ \t]*")
_LEAD = r"[ \t]*(?:#|//|--|;+|%|/\*|<!--|\{/\*|\*|\(|\[|\.{3}|…)[ \t]*(?:\.{3}|…)?[ \t]*"
_TAIL = r"(?:\.{3}|…)?[ \t.]*(?:\*/\}?|-->|\)|\])?[ \t]*"
_KEPT = (
    r"(?:(?:keep|the|all|other|your|my)[ \t]+)*"
    r"(?:rest|remaining|remainder|existing|unchanged|previous|same)"
)
_ABOUT = (
    r"(?:[ \t]+(?:of|the|this|file|code|class|functions?|methods?|contents?|implementation|lines?|imports?"
    r"|unchanged|remains?|stays?|same|as|is|are|before|above|here|goes|omitted|module|script|tests?|not"
    r"|changed|no|changes))*"
)
_WITH_WORDS = re.compile(f"{_LEAD}{_KEPT}{_ABOUT}[ \t]*{_TAIL}", re.IGNORECASE)
_WITH_DOTS = re.compile(rf"{_LEAD}(?:{_KEPT}\b[^\n]{{0,60}}?)?[ \t]*{_TAIL}", re.IGNORECASE)
_LIKENESS = 0.6
_APPLIED_FEWEST_CHARACTERS = 16
_DIFFERENCE_LIMIT_LINES = 30


@dataclass(frozen=True, slots=True)
class Sought:
    """One SEARCH and its REPLACE as lines, what to call it, and the way by which it came."""

    search: tuple[str, ...]
    replace: tuple[str, ...]
    label: str = "SEARCH"
    way: Channel = UNHARMED
    proven: Channel = UNHARMED
    """What others of the same edit have certainly suffered."""
    is_verbatim: bool = False
    """It came in a code block: no line has lost its indentation."""
    is_whole: bool = False
    """Its lines are counted, so none of them stands for others."""
    path: str = ""
    """The file's name, which tells what it may hold."""
    is_literal: bool = False
    """REPLACE is to be taken letter by letter."""


@dataclass(frozen=True, slots=True)
class Found:
    """A place: the index of its first line, the number of lines, and what is to take their place.

    `same` tells how many of the new lines at the head and at the tail are the old ones, to the byte.
    """

    start: int
    count: int
    new: tuple[str, ...]
    same: tuple[int, int]
    note: str = ""
    undone: Channel = UNHARMED
    """What was undone in the search, and has made it fit."""


def find(lines: list[str], sought: Sought) -> Found:
    """Gives the one place where a search is meant to stand.

    Raises:
        OperationError: if there is none or more than one, or if REPLACE may have been damaged in a way
            that can't be proven; the detail shows the nearest lines and how they differ.
    """
    search = list(sought.search)
    if not search:
        raise OperationError(f"{sought.label} is empty; give the lines whose place REPLACE takes")
    for fits in (_exact, _trailing, _indented):
        if places := fits(lines, search):
            place = _only(lines, sought.label, places)
            as_others = None if sought.is_literal else _as_the_others(lines, sought, place)
            if (found := as_others) is not None:
                return found
            new = place.new(sought.replace)
            if fits is _indented and not sought.is_verbatim:
                check_flush(sought, place, lines)
            check_new_lines(lines, sought, new, (place.start, place.start + place.count))
            return Found(
                place.start, place.count, new, common_ends(search, sought.replace), place.note
            )
    for way_out in (_mended, _elided, _applied):
        found = way_out(lines, sought)
        if found is not None:
            return found
    raise OperationError(
        f"{sought.label} was not found; write its lines letter by letter as they stand in the file",
        detail=nearest(lines, search),
    )


def split(text: str) -> list[str]:
    """Gives the lines of a text, whether its last one is ended or not."""
    return text.split("\n")[:-1] if text.endswith("\n") or not text else text.split("\n")


def _only(lines: list[str], label: str, places: list["Place"]) -> "Place":
    if len(places) == 1:
        return places[0]
    where = ", ".join(str(place.start + 1) for place in places[:10])
    more = ", …" if len(places) > 10 else ""
    raise OperationError(
        f"{label} fits {len(places)} places (at lines {where}{more});"
        " add lines around it until it fits one",
        around(lines, [(p.start + 1, p.start + p.count) for p in places[:_SHOWN_PLACES]]),
    )


# --- fits ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where a search fits; how a line of REPLACE is to be changed to fit too."""

    start: int
    count: int
    note: str = ""
    change: Callable[[str], str] = str
    trail: str = ""
    tab_width: int = 0
    """How many blanks stand for a tab, where they do."""

    def new(self, replace: Sequence[str]) -> tuple[str, ...]:
        """Return new lines as they fit here."""
        return tuple(map(self.change, self.without_trail(replace)))

    def without_trail(self, lines: Sequence[str]) -> Sequence[str]:
        """Takes off what came to the end of each line of the search, if all of these lines have it too."""
        if not self.trail or not all(line.endswith(self.trail) for line in lines if line.strip()):
            return lines
        return [line.removesuffix(self.trail) for line in lines]


def _exact(lines: list[str], search: list[str]) -> list[Place]:
    return [Place(start, len(search)) for start in positions(lines, search)]


def _trailing(lines: list[str], search: list[str]) -> list[Place]:
    if not any(line.strip() for line in search):
        return []
    starts = positions([line.rstrip() for line in lines], [line.rstrip() for line in search])
    note = "fitted up to trailing blanks"
    return [
        Place(
            start,
            len(search),
            note,
            trail=_common_trail(lines[start : start + len(search)], search),
        )
        for start in starts
    ]


def _common_trail(place: Sequence[str], search: Sequence[str]) -> str:
    """Gives the blanks that each line of a search has at its end beyond those of the file."""
    ends = [
        (_trail(there), _trail(here))
        for there, here in zip(place, search, strict=True)
        if here.strip()
    ]
    extra = {here.removeprefix(there) if here.startswith(there) else "" for there, here in ends}
    return extra.pop() if len(extra) == 1 else ""


def _trail(line: str) -> str:
    return line[len(line.rstrip()) :]


def _indented(lines: list[str], search: list[str]) -> list[Place]:
    """Places where each line differs from the search by the same leading blanks."""
    if not any(line.strip() for line in search):
        return []
    starts = positions([line.strip() for line in lines], [line.strip() for line in search])
    # Blank lines have no indentation to compare.
    rows = [row for row, line in enumerate(search) if line.strip()]
    wanted = [search[row] for row in rows]
    found = (
        _shifted((lines[start + row] for row in rows), wanted, start, len(search))
        for start in starts
    )
    return [_with_trail(place, lines, search) for place in found if place is not None]


def _with_trail(place: Place, lines: list[str], search: list[str]) -> Place:
    there = lines[place.start : place.start + place.count]
    return replace(place, trail=_common_trail(there, search))


def _shifted(place: Iterable[str], search: list[str], start: int, count: int) -> Place | None:
    """Gives the place if all its lines have more, or all have less, of the same leading blanks."""
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
    return Place(
        start, count, f"fitted when indented by {by}", lambda line: _shift(line, add, drop)
    )


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
    return f"{len(blanks)} {kind}{'' if len(blanks) == 1 else 's'}"


def _retabbed(lines: list[str], search: list[str]) -> list[Place]:
    """Places where leading tabs stand for blanks, or blanks for tabs, always as many."""
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
            change = _to_tabs(width) if has_tabs else _to_blanks(width)
            here = Place(start, len(search), note, change, tab_width=width)
            found.append(_with_trail(here, lines, search))
    return found


def _to_tabs(width: int) -> Callable[[str], str]:
    def change(line: str) -> str:
        tabbed = indentation.to_tabs(line, width)
        if tabbed is None:
            raise OperationError(
                "the file is indented by tabs, and a line of REPLACE by blanks that are no whole number"
                " of tabs; write both with the indentation of the file"
            )
        return tabbed

    return change


def _to_blanks(width: int) -> Callable[[str], str]:
    return lambda line: indentation.to_blanks(line, width)


def positions(lines: list[str], search: list[str]) -> list[int]:
    """Gives the index of each place where the lines stand; one string search, then counting."""
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


def common_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """Tells how many lines two lists share at the head, and of the rest at the tail."""
    pairs = list(zip(old, new, strict=False))
    head = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
    behind = list(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    return head, next((i for i, (a, b) in enumerate(behind) if a != b), len(behind))


# --- new lines that may be damaged -----------------------------------------------------------------


def check_new_lines(
    lines: list[str], sought: Sought, placed: Sequence[str], at: tuple[int, int] = (0, 0)
) -> None:
    """Refuse new lines that are certainly damaged, though the search came as it should be.

    A search that fits as it is, with a character that would have been changed, shows that the body was
    spared: REPLACE came the same way, and is taken. One that has no such character says nothing of
    characters that the tags have suffered, or that no file of the kind can hold.

    Args:
        lines: the file.
        sought: the search, and what is to take its place.
        placed: that, as it would stand in the file.
        at: the index of the first line that it fits, and of the one behind the last.
    """
    if sought.is_literal:
        return
    known = set(sought.search)
    pairs = [pair for pair in zip(sought.replace, placed, strict=True) if pair[0] not in known]
    if not any(map(indentation.is_indented, sought.search)) and not sought.is_verbatim:
        ground = Ground(sought.path, lines, *at)
        indentation.check(ground, sought.search, sought.replace, placed)
    if not any(sought.way or _SUSPICIOUS.search(line) for _, line in pairs):
        return
    there = set(lines)
    new = [line for _, line in pairs if line not in there]
    _check_characters(lines, sought, new, placed, at)
    for line in () if sought.is_whole else new:
        if _is_elision(line, bare=False):
            raise OperationError(
                f"REPLACE has the line '{_clip(line.strip())}' in place of others: a part never takes"
                " the place of the whole; write all lines that are to stand there"
            )


def _again(sought: Sought) -> str:
    where = "" if sought.is_verbatim else " inside of a code block"
    return f"send the edit again{where}"


def check_indentation(lines: list[str], new: list[str]) -> None:
    """Refuse new lines that are indented as no line of the file is: by blanks where it has tabs alone."""
    indentation.check_kind(lines, new, "REPLACE")


def _check_characters(
    lines: list[str], sought: Sought, new: list[str], placed: Sequence[str], at: tuple[int, int]
) -> None:
    """Refuse new lines with what the tags have suffered, or what no file of the kind can hold."""
    spared = "\n".join(sought.search)
    for row in chat_damage.ROWS:
        if row.damage not in sought.way or _has_any(row.plain, spared):
            continue
        if _shows_it_was_spared(row, "\n".join(new)):
            continue
        if any(row.trace.search(line) for line in new):
            raise OperationError(
                f"the tags of this reply came with {row.damage.value}, and REPLACE holds some that may be"
                f" damage too; {_again(sought)}"
            )
    what = characters.check(list(placed), Ground(sought.path, lines, *at), spared)
    if what:
        how = " with the characters that are to stand in the file" if sought.is_verbatim else ""
        raise OperationError(
            f"REPLACE looks damaged on its way: it holds {what}, where a file of its kind has none;"
            f' {_again(sought)}{how}; if it is meant so, send it with until="TOKEN" and close it with'
            " [/EDIT_FILE TOKEN]"
        )


# What only a look at the whole file can clear: a character that a chat makes, or words of an elision.
_SUSPICIOUS = re.compile(
    r"[^\x00-\x7f]|\\|&|\]\(|\.{3}|rest|existing|remain|unchanged|previous|same", re.IGNORECASE
)


def check_flush(sought: Sought, place: "Place", lines: list[str]) -> None:
    """Refuses new lines of which nobody knows how deep they are: neither they nor the search are indented.

    It may have been written at the left edge, or each line may have lost its own indentation. Both
    come to the same for lines in the place of as many, and for those before one that is known. Behind
    these a level may have ended.
    """
    both = [line for line in (*sought.search, *sought.replace) if line.strip()]
    if any(line[0].isspace() for line in both):
        return
    if not blanks(place.change("x")):
        return
    derive = _NewLines(lines, sought, _Repair((), (), str), lines[place.start :][: place.count])
    known = set(sought.search)
    new = [index for index, line in enumerate(sought.replace) if line.strip()]
    kept = [index for index in new if sought.replace[index] in known]
    if not kept and len(new) <= sum(1 for line in sought.search if line.strip()):
        return
    for index in new:
        if index not in kept and index > max(kept, default=-1):
            derive.need_counterpart(index)


def _shows_it_was_spared(row: Row, text: str) -> bool:
    """Tell whether a text has what would have been changed with the rest: a chat changes all or none."""
    if row.damage is Damage.ESCAPES:
        return chat_damage.is_spared_by_escapes(text)
    return row.damage is not Damage.BLANKS and _has_any(row.plain, row.trace.sub("", text))


def _has_any(characters: str, text: str) -> bool:
    return any(c in text for c in characters)


# --- proven damage ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Repair:
    """One way to undo damage to a line."""

    names: tuple[str, ...]
    damages: tuple[Damage, ...]
    undo: Callable[[str], str]
    folds_file: bool = False
    """The file is undone too, for comparing: it has what the search lost."""


_UNDO = tuple(
    (row.damage, row.undo) for row in chat_damage.ROWS if row.trace is not chat_damage.LEADING_BLANK
)
# Of several extents of one damage the widest.
_ROW_OF: dict[Damage, Row] = {
    row.damage: row
    for row in reversed(chat_damage.ROWS)
    if row.trace is not chat_damage.LEADING_BLANK
}
_FOLDS = (Damage.ZERO_WIDTH, Damage.BLANKS, Damage.QUOTES)


def _repairs(lines: list[str], search: Sequence[str]) -> Iterator[_Repair]:
    """Gives what may undo the damage to a search, each damage alone and then those that left a trace."""
    yield _Repair((), (), str)
    text = "\n".join(search)
    there = [(damage, undo) for damage, undo in _UNDO if undo(text) != text]
    for damage, undo in there:
        yield _Repair((damage.value,), (damage,), undo)
    if len({damage for damage, _ in there}) > 1:
        chain = tuple(undo for _, undo in there)
        damages = tuple(dict.fromkeys(damage for damage, _ in there))
        yield _Repair(tuple(d.value for d in damages), damages, _in_turn(chain))
    whole = "\n".join(lines)
    folds = [(d, u) for d, u in _UNDO if d in _FOLDS and not whole.isascii() and u(whole) != whole]
    for damage, undo in folds:
        name = f"{damage.value} that stand in the file"
        yield _Repair((name,), (damage,), undo, folds_file=True)


def _in_turn(chain: tuple[Callable[[str], str], ...]) -> Callable[[str], str]:
    def undo(line: str) -> str:
        for each in chain:
            line = each(line)
        return line

    return undo


FITS = (_exact, _trailing, _indented, _retabbed)


def _mended(lines: list[str], sought: Sought) -> Found | None:
    """Gives the place that fits after undoing damage, if all repairs that fit come to the same."""
    if not any(line.strip() for line in sought.search):
        return None
    shapes = list(_shapes(sought))
    for fits in (*FITS, _unindented):
        results: list[Found] = []
        several: list[Place] = []
        for name, shaped in shapes:
            for repair in _repairs(lines, shaped.search):
                if not name and not repair.names and fits in (_exact, _trailing, _indented):
                    continue  # tried before
                undone = [repair.undo(line) for line in shaped.search]
                file = [repair.undo(line) for line in lines] if repair.folds_file else lines
                places = fits(file, undone)
                starts = {place.start for place in places}
                if len(starts) > 1:
                    several.extend(places)
                results += [
                    _worked_out(lines, shaped, repair, place, fits is _unindented, name)
                    for place in places
                    if len(starts) == 1
                ]
        if results:
            if any(
                (f.start, f.count, f.new) != (results[0].start, results[0].count, results[0].new)
                for f in results
            ):
                raise OperationError(
                    f"{sought.label} fits after undoing what a chat did to it, but what REPLACE was before"
                    f" can be read in more than one way; {_again(sought)}, its SEARCH letter by letter as"
                    " the file has it",
                    around(lines, [(results[0].start + 1, results[0].start + results[0].count)]),
                )
            # Escapes, say, of which several extents would do.
            ways = frozenset[Damage]().union(*(found.undone for found in results))
            return replace(results[0], undone=ways)
        if several:
            _only(lines, sought.label, list({place.start: place for place in several}.values()))
    return None


def _shapes(sought: Sought) -> Iterator[tuple[str, Sought]]:
    """Gives the edit as it came, and without what may have been copied along on each of its lines."""
    yield "", sought
    for name, strip in (
        ("without the code fences in it", _unfenced),
        ("without the line numbers copied along", _unnumbered),
        ("without the line numbers copied along", _unnumbered_closely),
        ("without the marks of a diff", _unmarked),
    ):
        search = strip(sought.search, "-")
        if search is None or not search:
            continue
        new = strip(sought.replace, "+")
        if new is None:
            new = sought.replace
            if strip is _unmarked and any(line[:1] in ("-", " ") for line in new):
                continue
            if strip in (_unnumbered, _unnumbered_closely) and (
                any(map(_NUMBER.match, new)) or all(line[:1].isspace() for line in sought.search)
            ):
                continue  # some have a number; or all were indented, and no one knows by how much
        yield (
            name,
            Sought(search, new, sought.label, sought.way, is_verbatim=sought.is_verbatim),
        )


def _unfenced(lines: Sequence[str], _: str) -> tuple[str, ...] | None:
    if len(lines) > 2 and _FENCE.fullmatch(lines[0]) and _FENCE.fullmatch(lines[-1]):
        return tuple(lines[1:-1])
    return None


def _unnumbered(lines: Sequence[str], _: str) -> tuple[str, ...] | None:
    bare = _unnumbered_closely(lines, "")
    if bare is None or not all(line.startswith(" ") for line in bare if line.strip()):
        return None
    return tuple(line.removeprefix(" ") for line in bare)


def _unnumbered_closely(lines: Sequence[str], _: str) -> tuple[str, ...] | None:
    found = [_NUMBER.match(line) for line in lines]
    if not lines or not all(found):
        return None
    return tuple(line[each.end() :] for line, each in zip(lines, found, strict=True) if each)


def _unmarked(lines: Sequence[str], mark: str) -> tuple[str, ...] | None:
    if not any(line.startswith(mark) for line in lines):
        return None if lines else ()
    if any(line and line[0] not in (mark, " ") for line in lines):
        return None
    return tuple(line[1:] for line in lines)


def _worked_out(
    lines: list[str], sought: Sought, repair: _Repair, place: Place, unindented: bool, name: str
) -> Found:
    """Gives what REPLACE was before the damage that the place has proven.

    Raises:
        OperationError: if a new line can't be derived with certainty.
    """
    there = lines[place.start : place.start + place.count]
    known = _pairs(sought.search, there)
    fresh = [line for line in sought.replace if line not in known]
    if place.trail:
        bare = dict(zip(fresh, place.without_trail(fresh), strict=True))
        sought = replace(sought, replace=tuple(bare.get(line, line) for line in sought.replace))
        is_bare = all(not line.strip() or bare[line] != line for line in fresh)
        if not is_bare and any(repair.undo(line).endswith(place.trail) for line in fresh):
            raise OperationError(
                f"{sought.label} was damaged on its way, blanks at the end of its lines too, and REPLACE may"
                f" have the like; {_again(sought)}, its SEARCH letter by letter as the file has it"
            )
    derive = _NewLines(lines, sought, repair, there)
    new: list[str] = []
    for index, line in enumerate(sought.replace):
        if line in known:
            new.append(known[line])
        elif not line.strip():
            new.append(line if line in sought.search else "")
        elif unindented:
            new.append(derive.indented(index))
        else:
            new.append(place.change(derive.undone(index)))
    what = " and ".join(repair.names)
    parts = [
        name,
        f"after undoing {what}" if what and not repair.folds_file else "",
        f"up to {what}" if repair.folds_file else "",
        place.note.removeprefix("fitted "),
    ]
    note = "fitted " + ", ".join(part for part in parts if part)
    undone = UNHARMED if repair.folds_file else frozenset(repair.damages)
    return Found(place.start, place.count, tuple(new), common_ends(there, new), note, undone)


def _as_the_others(lines: list[str], sought: Sought, place: Place) -> Found | None:
    """Undoes in new lines what others of the same edit have suffered, where the search has no trace of it.

    None if there is nothing to undo, or a character shows that this one was spared.

    Raises:
        OperationError: if a new line may be meant as it came.
    """
    known = set(sought.search)
    new = "\n".join(line for line in sought.replace if line not in known)
    search = "\n".join(sought.search)
    # Escaped underscores are among all escapes.
    extents = {Damage.UNDERSCORES} if Damage.ESCAPES in sought.proven else frozenset[Damage]()
    proven = sought.proven - extents
    undoing = [(d, undo) for d, undo in _UNDO if d in proven and undo(new) != new]
    if len({undo(new) for _, undo in undoing}) != 1:
        return None
    damage, undo = undoing[0]
    trace, plain = _ROW_OF[damage].trace, _ROW_OF[damage].plain
    if _has_any(plain, search) or _has_any(plain, trace.sub("", new)):
        return None
    repair = _Repair((damage.value,), (damage,), undo)
    return _worked_out(lines, sought, repair, place, unindented=False, name="")


def _pairs(search: Sequence[str], there: Sequence[str]) -> dict[str, str]:
    """Gives the true line for each line of a search, where that is one and the same."""
    pairs: dict[str, str] = {}
    doubtful: set[str] = set()
    for here, true in zip(search, there, strict=True):
        if pairs.setdefault(here, true) != true:
            doubtful.add(here)
    return {here: true for here, true in pairs.items() if here not in doubtful}


class _NewLines:
    """Works out lines of REPLACE that are no lines of the search."""

    def __init__(
        self, lines: list[str], sought: Sought, repair: _Repair, there: Sequence[str]
    ) -> None:
        self._file = "\n".join(lines)
        self._sought = sought
        self._search = "\n".join(sought.search)
        self._repair = repair
        self._there = there

    def undone(self, index: int) -> str:
        line = self._sought.replace[index]
        if self._repair.folds_file:
            return self._as_in_file(index)
        undone = self._repair.undo(line)
        if undone == line:
            return line
        for damage in self._repair.damages:
            self._check(damage, line)
        return undone

    def _check(self, damage: Damage, line: str) -> None:
        """Refuses a line whose like stands in the file, so that it may be meant as it came."""
        trace = _ROW_OF[damage].trace
        marks = {found[0] for found in trace.finditer(line)}
        if damage is Damage.ESCAPES:
            proven = {
                *(found[0] for found in trace.finditer(self._search)),
                r"\_",
                r"\*",
                r"\[",
                r"\]",
            }
            is_doubtful = bool(marks - proven) or any(mark in self._file for mark in marks)
        elif damage is Damage.ENTITIES:
            is_doubtful = trace.search(self._file) is not None and "&amp;" not in self._search
        else:
            is_doubtful = any(mark in self._file for mark in marks)
        if is_doubtful and marks:
            raise self._refusal(f"with {damage.value} that may be meant")

    def _as_in_file(self, index: int) -> str:
        """A new line with what the file has and the search has not: only what did not change is sure."""
        line = self._sought.replace[index]
        plain = {Damage.QUOTES: "\"'", Damage.BLANKS: " ", Damage.ZERO_WIDTH: ""}
        if not any(c in line for damage in self._repair.damages for c in plain[damage]):
            return line
        row = self._counterpart(index)
        if row is not None and Damage.ZERO_WIDTH not in self._repair.damages:
            here, true = self._sought.search[row], self._there[row]
            head, tail = common_ends(here, line)
            middle = line[head : len(line) - tail]
            if len(here) == len(true) and not any(
                c in middle for damage in self._repair.damages for c in plain[damage]
            ):
                return true[:head] + middle + true[len(true) - tail :]
        raise self._refusal("where the file has characters that chats change")

    def indented(self, index: int) -> str:
        """A line that lost its indentation, with that of the line whose place it takes."""
        line = self._repair.undo(self._sought.replace[index])
        if line[:1].isspace():
            raise self._refusal("with an indentation, and SEARCH has lost its own")
        return blanks(self._there[self.need_counterpart(index)]) + line

    def need_counterpart(self, index: int) -> int:
        """Gives the line of the search whose place a new line takes."""
        row = self._counterpart(index)
        if row is None:
            raise self._refusal("whose indentation can't be known, for SEARCH has lost its own")
        return row

    def _counterpart(self, index: int) -> int | None:
        """Gives the line of the search whose place a new line takes: the same line in other words."""
        matcher = difflib.SequenceMatcher(
            None, self._sought.search, self._sought.replace, autojunk=False
        )
        for kind, old, old_end, new, new_end in matcher.get_opcodes():
            if kind == "replace" and new <= index < new_end and old_end - old == new_end - new:
                row = old + index - new
                pair = (
                    self._sought.search[row][:_SHOWN_LINE_CHARACTERS],
                    self._sought.replace[index][:_SHOWN_LINE_CHARACTERS],
                )
                likeness = difflib.SequenceMatcher(None, *pair, autojunk=False).ratio()
                return row if likeness >= _LIKENESS else None
        return None

    def _refusal(self, what: str) -> OperationError:
        return OperationError(
            f"{self._sought.label} was damaged on its way, and REPLACE has a new line {what};"
            f" {_again(self._sought)}, letter by letter as the file has it",
            "The lines in the file are:\n"
            + "\n".join(f"  {_clip(line)}" for line in self._there[:_EXCERPT_LIMIT_LINES]),
        )


def _unindented(lines: list[str], search: list[str]) -> list[Place]:
    """Places that a search fits which has lost all indentation."""
    if any(line[:1] in (" ", "\t") for line in search if line.strip()):
        return []
    starts = positions([line.strip() for line in lines], [line.strip() for line in search])
    note = "fitted with the indentation of the file"
    return [_with_trail(Place(start, len(search), note), lines, search) for start in starts]


# --- elided lines ----------------------------------------------------------------------------------


def _is_elision(line: str, *, bare: bool = True) -> bool:
    """Tells whether a line stands for others. Without `bare` three dots alone do not: Python has them."""
    if len(line) > 160:
        return False
    if _DOTS.fullmatch(line):
        return bare
    if "..." in line or "…" in line:
        return _WITH_DOTS.fullmatch(line) is not None
    return _WITH_WORDS.fullmatch(line) is not None and line.strip().count(" ") > 1


def elision_in(body: str, old: str, path: str) -> str:
    """Gives the line of a whole file that stands for others of the file that it would replace, or nothing."""
    if (
        "..." not in body
        and "…" not in body
        and "nchanged" not in body
        and "xisting" not in body
        and " of " not in body
    ):
        return ""
    there = {line.strip() for line in old.split("\n")}
    is_python = path.endswith((".py", ".pyi"))
    for line in body.split("\n"):
        # Python's own dots are a body: they stand indented.
        is_body = is_python and line[:1].isspace() and _DOTS.fullmatch(line) is not None
        if _is_elision(line) and line.strip() not in there and not is_body:
            return line.strip()
    return ""


def _elided(lines: list[str], sought: Sought) -> Found | None:
    """Resolves lines that stand for others, if they fit one place and REPLACE keeps each of them.

    Raises:
        OperationError: if SEARCH has such lines and it can't be told which ones they stand for.
    """
    search = list(sought.search)
    dots = [i for i, line in enumerate(search) if _is_elision(line)]
    if not dots:
        return None
    kept = [line for line in sought.replace if _is_elision(line)]
    refusal = OperationError(
        f"{sought.label} has the line '{_clip(search[dots[0]].strip())}' in place of others, and it can't be"
        " told which; write all lines, or only those that change with enough around them",
        detail=nearest(lines, search),
    )
    parts = _parts(search, dots)
    if [line.strip() for line in kept] != [search[i].strip() for i in dots] or not all(parts):
        raise refusal
    starts = [positions(lines, part) for part in parts]
    if any(len(each) != 1 for each in starts):
        raise refusal
    ends = [each[0] + len(part) for each, part in zip(starts, parts, strict=True)]
    if any(end > following[0] for end, following in zip(ends, starts[1:], strict=False)):
        raise refusal
    gaps = [lines[end : following[0]] for end, following in zip(ends, starts[1:], strict=False)]
    first, last = starts[0][0], ends[-1]
    new: list[str] = []
    at = 0
    for line in sought.replace:
        if _is_elision(line):
            new.extend(gaps[at])
            at += 1
        else:
            new.append(line)
    there = lines[first:last]
    note = f"fitted with {sum(map(len, gaps))} lines of the file for '{_clip(search[dots[0]].strip())}'"
    return Found(first, last - first, tuple(new), common_ends(there, new), note)


def _parts(lines: list[str], cuts: list[int]) -> list[list[str]]:
    starts = [0, *(cut + 1 for cut in cuts)]
    return [lines[start:end] for start, end in zip(starts, [*cuts, len(lines)], strict=True)]


# --- applied before --------------------------------------------------------------------------------


def _applied(lines: list[str], sought: Sought) -> Found | None:
    """Gives the place where REPLACE stands already, if what stands there can't be there by chance.

    SEARCH is nowhere, REPLACE stands once, and it is more than a line that any file may have: at
    least two lines, or one that is much like the one it was to replace.
    """
    words = [line for line in sought.replace if line.strip()]
    if sum(len(line.strip()) for line in words) < _APPLIED_FEWEST_CHARACTERS:
        return None
    if len(words) == 1:
        before = [line for line in sought.search if line.strip()]
        pair = (
            (before[0][:_SHOWN_LINE_CHARACTERS], words[0][:_SHOWN_LINE_CHARACTERS])
            if before
            else ("", "")
        )
        if (
            len(before) != 1
            or difflib.SequenceMatcher(None, *pair, autojunk=False).ratio() < _LIKENESS
        ):
            return None
    gone = [line for line in sought.search if line.strip() and line not in sought.replace]
    there = {line.strip() for line in lines}
    if not gone or any(line.strip() in there for line in gone):
        return None
    starts = positions(lines, list(sought.replace))
    if len(starts) != 1:
        return None
    count = len(sought.replace)
    note = (
        f"was not found, but REPLACE stands at line {starts[0] + 1} already: nothing was to be done"
    )
    return Found(starts[0], count, sought.replace, (count, 0), note)


# --- showing ---------------------------------------------------------------------------------------


def around(lines: list[str], places: Iterable[tuple[int, int]]) -> str:
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


def nearest(lines: list[str], search: list[str]) -> str:
    """Shows the lines of the file that most likely were meant, with their numbers and the difference."""
    start = _likely_start(lines, search)
    if start is None:
        return ""
    first = max(start - _NEAREST_CONTEXT_LINES, 0)
    last = min(start + len(search) + _NEAREST_CONTEXT_LINES, len(lines))
    shown = "The nearest lines in the file are:\n" + _numbered(lines, first + 1, last)
    return shown + _difference(search, lines[start : start + len(search)])


def _difference(search: list[str], there: list[str]) -> str:
    """Shows how a search differs from the lines that it is nearest to."""
    if len(search) > _EXCERPT_LIMIT_LINES:
        return ""
    old, new = ([_clip(line) for line in each] for each in (search, there))
    found = list(difflib.unified_diff(old, new, "SEARCH", "the file", n=1, lineterm=""))[2:]
    if not found or len(found) > _DIFFERENCE_LIMIT_LINES:
        return ""
    return "\nSEARCH (-) differs from the file (+):\n" + "\n".join(found)


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
    # Stray bytes of the file can't be sent.
    line = without_halves(line)
    return line if len(line) <= _SHOWN_LINE_CHARACTERS else f"{line[:_SHOWN_LINE_CHARACTERS]}…"
