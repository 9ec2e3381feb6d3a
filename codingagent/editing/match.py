"""Find the one place in a file that a SEARCH means, and the lines that REPLACE puts there.

How it works. Each row of `RULES` is a way in which lines may differ from those of the file. The first
that fits counts, at one place only: for the search as it came, else without all that a chat does to
characters. REPLACE is then the body of an edit by numbers. A new line in which something would be undone is
refused: it may be meant.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from codingagent.editing import body_rules, characters, elisions, file_kinds, indentation, nearest
from codingagent.editing.file_lines import FileLines, split
from codingagent.errors import OperationError
from codingagent.model import chat_damage, operations
from codingagent.model.chat_damage import AS_IT_IS, UNHARMED, BodyEvidence, Channel, Damage, DamageRow, Rule
from codingagent.model.plain_text import WRITTEN, blanks, joined, plural, with_controls

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
    end: operations.FileEnd | None = None
    """Whether the file's last line is to have an end, where a diff says so."""
    notes: tuple[str, ...] = ()
    """What was undone in REPLACE beyond that."""


class Place(Struct, frozen=True):
    """Where a search fits: its first line and how many; how a line of REPLACE is to be changed to fit too."""

    start: int
    count: int
    note: str = ""
    change: Callable[[str], str] = str


def only(lines: list[str], label: str, places: list[Place], advice: str = _MORE_LINES) -> Place:
    """Return the one place of something; refuse several, with the first of them shown."""
    if len(places) == 1:
        return places[0]
    where = ", ".join(str(place.start + 1) for place in places[:10])
    more = ", …" if len(places) > 10 else ""
    raise OperationError(
        f"{label} matches {len(places)} places (lines {where}{more})",
        nearest.around(lines, [(p.start + 1, p.start + p.count) for p in places[:SHOWN_PLACES]]),
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
        fact = "REPLACE has a line that is indented less than SEARCH differs from the file"
        raise OperationError(fact, advice="; write both with the indentation of the file")
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


# Of several extents of one damage the widest; requests write control characters out.
_ROWS = [row for row in reversed(chat_damage.ROWS) if row.trace is not chat_damage.LEADING_BLANK]
_UNDO = {row.damage: row for row in _ROWS if row.damage is not Damage.UNDERSCORES}
_UNDO[Damage.CONTROLS] = DamageRow(Damage.CONTROLS, WRITTEN, with_controls, "")


# --- the one place ---------------------------------------------------------------------------------
def find(lines: FileLines, sought: SearchEdit) -> Found:
    """Return the one place where a search is meant to be, else OperationError."""
    if not sought.search:
        raise OperationError(f"{sought.label} is empty", advice="; give the lines to replace")
    lead = "" if sought.arrival is None else sought.arrival.lead
    bare = tuple(line.removeprefix(lead) for line in sought.search) if lead else sought.search
    if bare != sought.search and all(map(lines.places, (bare, sought.search))):
        fact = f"{sought.label} matches both with the indentation of its tags and without it"
        raise OperationError(fact, advice="; send it again with its tags at the start of a line")
    for said, rows in _readings(sought):
        for rule in RULES:
            if places := fits(lines, rule, said.search):
                place = only(lines, sought.label, places)
                if rows:
                    _check_fresh(lines, sought, place, rows)
                    damages = dict.fromkeys(row.damage.value for row in rows)
                    place = replace(place, note=f"matched after undoing {' and '.join(damages)}")
                found = _replacement(lines, said, place, is_retabbed=rule is RULES[-1])
                undone = frozenset(row.damage for row in rows)
                # What escapes all has escaped these, too.
                return replace(
                    found, undone=undone | ({Damage.UNDERSCORES} if Damage.ESCAPES in undone else undone)
                )
    what, how = "not found", "; copy its lines exactly as the file has them"
    detail: str | Callable[[], str] = partial(nearest.nearest, lines, [*sought.search])
    part = sought.search[0].strip() if len(sought.search) == 1 else ""
    is_indented = any(line[:1].isspace() for line in sought.search)
    is_flat = not (is_indented or lines.indented.isdisjoint(sought.search))
    most = nearest.SHOWN_LINE_CHARACTERS
    long = (i for i, line in enumerate(lines) if part and len(line) > most and part in line)
    if (at := elisions.first_elision(sought.search)) is not None:
        dots = nearest.clip(sought.search[at].strip())
        what = f"has the line '{dots}' instead of the lines themselves"
        how = "; write all lines, or only those that change with enough around them"
    elif is_flat and sought.arrival is not None and not sought.is_verbatim:
        # The next answer would come so, too.
        what += ", and no line of it is indented, as if the chat had removed that"
        how = f"; {_again(sought)}, its lines exactly as the file has them"
    elif (index := next(long, None)) is not None:
        line, at = lines[index], lines[index].index(part)
        # No value is cut at its head, or nobody would know it for a secret.
        head = line[max(at - most // 2, 0) : at].partition(" ")[2]
        detail = f"It stands here: …{head}{nearest.clip(line[at:])}"
        what = f"is a part of line {index + 1}, which has {len(line):,} characters"
        how = "; write that line whole, or change it with RUN_COMMAND"
    raise OperationError(f"{sought.label} {what}", detail, advice=how)


def _readings(sought: SearchEdit) -> Iterator[tuple[SearchEdit, Sequence[DamageRow]]]:
    """Yield an edit as it came, then without each damage to its characters, then without all of them."""
    yield sought, ()
    if sought.arrival is None:
        return
    there = [row for row in _UNDO.values() if any(row.undo(line) != line for line in sought.search)]
    for rows in (*([row] for row in there), *[there] * (len(there) > 1)):
        search, new = sought.search, sought.replace
        for row in rows:
            search, new = _without(row, search), _without(row, new)
        if any(map(str.strip, search)):
            yield replace(sought, search=search, replace=new), rows


def _without(row: DamageRow, lines: Sequence[str]) -> tuple[str, ...]:
    """Return lines without a damage; one of citation marks alone goes."""
    return tuple(undone for line in lines if (undone := row.undo(line)).strip() or not line.strip())


def _check_fresh(lines: FileLines, sought: SearchEdit, place: Place, rows: Iterable[DamageRow]) -> None:
    """Refuse what is undone in a new line if the like is in the file, so that it may be meant as it came."""
    came = "\n".join(sought.search)
    for line in {*sought.replace} - {*sought.search}:
        for row in rows:
            marks = {found[0] for found in row.trace.finditer(line)}
            is_doubtful = any(map(lines.has, marks))
            if row.damage is Damage.ESCAPES:
                proven = {r"\_", r"\*", r"\[", r"\]", *(found[0] for found in row.trace.finditer(came))}
                is_doubtful |= bool(marks - proven)
            elif row.damage is Damage.ENTITIES:
                is_doubtful |= bool(marks) and lines.has(row.trace) and "&amp;" not in came
            if is_doubtful:
                there = lines[place.start : place.start + place.count]
                raise _in_doubt(sought, f"with {row.damage.value} that might be intended", there)


def _replacement(lines: FileLines, sought: SearchEdit, place: Place, *, is_retabbed: bool) -> Found:
    """Return what is to take the place of a search: REPLACE is the body of an edit by numbers."""
    _check_trail(sought, lines[place.start : place.start + place.count])
    spared = joined(sought.search)
    ground = characters.ReplacedLines(sought.path, lines, place.start, place.start + place.count, spared)
    own = indentation.own_indentation(sought.replace, ground) if is_retabbed else {}
    if False in own.values():
        raise _in_doubt(sought, "in a string, whose tabs or spaces are unknown", ground.replaced)
    new = tuple(line if i in own else place.change(line) for i, line in enumerate(sought.replace))
    same = nearest.common_ends(sought.search, sought.replace)
    if sought.arrival is None:
        return Found(place.start, place.count, new, same, place.note)
    is_loose = file_kinds.is_prose(sought.path) or file_kinds.is_makefile(sought.path)
    if is_loose or not sought.is_verbatim:
        check_flush(sought, place, lines)
    old = frozenset(sought.search)
    fresh = [line for line in new if line not in old]
    dots = [line for i, line in enumerate(fresh) if elisions.is_elision(fresh, i, bare=False)]
    if (elided := next((line for line in dots if not lines.counts[line]), None)) is not None:
        fact = f"REPLACE has the line '{nearest.clip(elided.strip())}' instead of the lines themselves"
        raise OperationError(fact, advice="; write all lines that belong there")
    way = sought.arrival.way
    if way or sought.proven:
        # A chat changes all or none: a character that it would have changed shows that it was not there.
        rows = {row.damage for row in chat_damage.ROWS if not any(c in spared for c in row.plain)}
        proven = (sought.proven - way) & rows
        # Only tags show that quotes would have been encoded, too.
        entities, angles = Damage.ENTITIES, Damage.ANGLES
        way = (way & rows) | {angles if d is entities else d for d in proven}
    arrival = replace(
        sought.arrival,
        lead="",  # what SEARCH was shifted by, REPLACE was, too
        way=way,
        in_code=sought.is_verbatim or any(map(indentation.is_indented, sought.search)),
    )
    mended = body_rules.mend_lines(joined(new), ground, arrival, called="REPLACE")
    if (lines_meant := (*split(mended.text),)) != new:
        new, same = lines_meant, nearest.common_ends(sought.search, lines_meant)
        if sought.search != tuple(lines[place.start : place.start + place.count]):
            same = (0, 0)
    return Found(place.start, place.count, new, same, place.note, notes=mended.notes)


def _check_trail(sought: SearchEdit, there: Sequence[str]) -> None:
    """Refuse spaces at the ends of new lines if the search has them where the file has none."""
    pairs = zip(there, sought.search, strict=True)
    came = any(line.strip() and line != line.rstrip() and here == here.rstrip() for here, line in pairs)
    fresh = {*sought.replace} - {*sought.search}
    if came and any(line.strip() and line != line.rstrip() for line in fresh):
        raise OperationError(
            f"{sought.label} was damaged by the chat, with spaces at the ends of its lines, and REPLACE"
            " might be, too",
            advice=f"; {_again(sought)}, with SEARCH exactly as the file has it",
        )


def _in_doubt(sought: SearchEdit, what: str, there: Sequence[str]) -> OperationError:
    return OperationError(
        f"{sought.label} was damaged by the chat, and REPLACE has a new line {what}",
        "The lines in the file are:\n"
        + "\n".join(f"  {nearest.clip(line)}" for line in there[: nearest.EXCERPT_LIMIT_LINES]),
        advice=f"; {_again(sought)}, exactly as the file has it",
    )


# --- new lines of a search that fits as it came ----------------------------------------------------
def check_flush(sought: SearchEdit, place: Place, lines: list[str]) -> None:
    """Refuse new lines whose depth is unknown: neither they nor the search are indented.

    It may have been written at the left edge, or each line may have lost its own indentation. Both are the
    same for lines in the place of as many, or before one that stays; after that a level may have ended.
    """
    both = [line for line in (*sought.search, *sought.replace) if line.strip()]
    if any(line[0].isspace() for line in both) or not blanks(place.change("x")):
        return
    known = set(sought.search)
    new = [index for index, line in enumerate(sought.replace) if line.strip()]
    kept = [index for index in new if sought.replace[index] in known]
    if not kept and len(new) <= sum(1 for line in sought.search if line.strip()):
        return
    if any(i not in kept and i > max(kept, default=-1) for i in new):
        what = "whose indentation is unknown, because SEARCH has lost its own"
        raise _in_doubt(sought, what, lines[place.start :][: place.count])


def _again(sought: SearchEdit) -> str:
    return f"send the edit again{'' if sought.is_verbatim else ' in a code block'}"
