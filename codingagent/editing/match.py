"""Find the one place in a file that a SEARCH means, and the lines that REPLACE puts there.

How it works. Each row of `places.RULES` is a way in which lines may differ from those of the file, each
row of `shapes.RULES` something that was put round or between them, and `chat_damage.ROWS` is what chats
do to characters. A search is undone by one of each. The first way that fits counts: at one place only,
and all that fit must come to the same text. REPLACE came as SEARCH did: its lines that are lines of the
search become those of the file, and new ones are undone alike, or refused where they may be meant.
"""

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import NamedTuple

from msgspec.structs import replace

from codingagent.editing import body_repair, elisions, indentation, shapes
from codingagent.editing.characters import Ground
from codingagent.editing.file_lines import FileLines
from codingagent.editing.nearest import EXCERPT_LIMIT_LINES, around, clip, common_ends, nearest
from codingagent.editing.places import AS_IT_CAME, RULES, File, Found, Place, Sought, only
from codingagent.errors import OperationError
from codingagent.model import chat_damage
from codingagent.model.chat_damage import Damage
from codingagent.model.plain_text import WRITTEN, blanks, joined, with_controls

# --- what may be undone ----------------------------------------------------------------------------

_ROWS = [row for row in chat_damage.ROWS if row.trace is not chat_damage.LEADING_BLANK]
# Requests show them so.
_ROWS.append(chat_damage.DamageRow(Damage.CONTROLS, WRITTEN, with_controls, ""))
# Of several extents of one damage the widest.
_TRACE_OF = {row.damage: row.trace for row in reversed(_ROWS)}


class _Attempt(NamedTuple):
    """A search as it may have been, and where the file has it, up to blanks round its lines."""

    sought: Sought
    how: str
    """What else was taken off its lines."""
    search: Sequence[str]
    starts: Sequence[int]
    damages: tuple[Damage, ...] = ()
    undo: Callable[[str], str] = str


def _attempts(file: File, sought: Sought) -> Iterator[_Attempt]:
    """Yield what a search may have been: each damage undone alone, then all that left a trace."""
    for how, shaped in shapes.shapes(sought):
        text = "\n".join(shaped.search)
        there = [(row.damage, row.undo) for row in _ROWS if row.undo(text) != text]
        ways: list[tuple[tuple[Damage, ...], Callable[[str], str]]] = [((), str)]
        ways += [((damage,), undo) for damage, undo in there]
        if len(damages := tuple(dict.fromkeys(damage for damage, _ in there))) > 1:
            ways.append((damages, partial(reduce, lambda line, each: each[1](line), there)))
        for damages, undo in ways:
            search = [*map(undo, shaped.search)]
            if starts := file.starts(search):
                yield _Attempt(shaped, how, search, starts, damages, undo)


# --- the one place ---------------------------------------------------------------------------------
def find(lines: FileLines, sought: Sought) -> Found:
    """Return the one place where a search is meant to be, else OperationError."""
    if not sought.search:
        raise OperationError(f"{sought.label} is empty", advice="; give the lines to replace")
    file = File(lines)
    lead = "" if sought.arrival is None else sought.arrival.lead
    bare = tuple(line.removeprefix(lead) for line in sought.search)
    if bare != sought.search and all(file.places(RULES[0], each) for each in (bare, sought.search)):
        raise OperationError(
            f"{sought.label} matches both with the indentation of its tags and without it",
            advice="; send it again with its tags at the start of a line",
        )
    for rule in AS_IT_CAME:
        if places := file.places(rule, sought.search):
            place = only(lines, sought.label, places)
            return _as_it_came(lines, sought, place, is_shifted=rule is AS_IT_CAME[-1])
    if any(map(str.strip, sought.search)) and (found := _mended(file, sought)) is not None:
        return found
    what, how = "not found", "; copy its lines exactly as the file has them"
    if (at := elisions.first_elision(sought.search)) is not None:
        dots = clip(sought.search[at].strip())
        what = f"has the line '{dots}' instead of the lines themselves"
        how = "; write all lines, or only those that change with enough around them"
    elif sought.arrival is not None and not sought.is_verbatim and _is_flat(file, sought.search):
        # The next answer would come so, too.
        what += ", and no line of it is indented, as if the chat had removed that"
        how = f"; {_again(sought)}, its lines exactly as the file has them"
    detail = partial(nearest, lines, [*sought.search])
    raise OperationError(f"{sought.label} {what}", detail, advice=how)


def _is_flat(file: File, search: Sequence[str]) -> bool:
    """Return whether no line of a search is indented, though lines of the file that it has are."""
    return not any(line[:1].isspace() for line in search) and not file.indented.isdisjoint(search)


def _as_it_came(lines: FileLines, sought: Sought, place: Place, *, is_shifted: bool) -> Found:
    """Return the place of a search that fits as it came; REPLACE is then the body of an edit by numbers."""
    new, same = place.new(sought.replace), common_ends(sought.search, sought.replace)
    if sought.arrival is None:
        return Found(place.start, place.count, new, same, place.note)
    if is_shifted and not sought.is_verbatim:
        check_flush(sought, place, lines)
    old = frozenset(sought.search)
    fresh = [line for line in new if line not in old]
    dots = [line for i, line in enumerate(fresh) if elisions.is_elision(fresh, i, bare=False)]
    if (elided := next((line for line in dots if not lines.counts[line]), None)) is not None:
        raise OperationError(
            f"REPLACE has the line '{clip(elided.strip())}' instead of the lines themselves",
            advice="; write all lines that belong there",
        )
    spared = joined(sought.search)
    kept = chat_damage.kept_in(spared)
    # A chat changes all or none: a character that it would have changed shows that it was not there.
    rows = {row.damage for row in chat_damage.ROWS if not any(c in spared for c in row.plain)}
    proven = (sought.proven - sought.arrival.way) & rows
    # Only tags show that quotes would have been encoded, too.
    entities, angles = Damage.ENTITIES, Damage.ANGLES
    arrival = replace(
        sought.arrival,
        way=(sought.arrival.way & rows) | {angles if d is entities else d for d in proven},
        in_code=sought.is_verbatim or chat_damage.Kept.INDENTATION in kept,
        kept=sought.arrival.kept | kept,
    )
    ground = Ground(sought.path, lines, place.start, place.start + place.count, spared)
    mended, notes = body_repair.mend_replacement([*new], ground, arrival)
    if mended != [*new]:
        new, same = tuple(mended), common_ends(sought.search, mended)
        if sought.search != tuple(lines[place.start : place.start + place.count]):
            same = (0, 0)
    return Found(place.start, place.count, new, same, place.note, notes=notes)


def _mended(file: File, sought: Sought) -> Found | None:
    """Return the place that fits after undoing damage, if all repairs that fit come to the same."""
    attempts = list(_attempts(file, sought))
    for rule in RULES:
        results: list[Found] = []
        several: list[Place] = []
        for each in attempts:
            places = file.places(rule, each.search, each.starts)
            if len(places) > 1:
                several += places
            elif places:
                results.append(_worked_out(file.lines, each, places[0]))
        if results:
            if len({(found.start, found.count, found.new) for found in results}) > 1:
                raise OperationError(
                    f"{sought.label} matches once damage by the chat is undone, but REPLACE can then be read"
                    " in more than one way",
                    around(file.lines, [(results[0].start + 1, results[0].start + results[0].count)]),
                    advice=f"; {_again(sought)}, with SEARCH exactly as the file has it",
                )
            # Escapes, say, of which several extents would do.
            ways = frozenset[Damage]().union(*(found.undone for found in results))
            return replace(results[0], undone=ways)
        if several:
            only(file.lines, sought.label, [*{place.start: place for place in several}.values()])
    return None


def _worked_out(lines: FileLines, attempt: _Attempt, place: Place) -> Found:
    """Return what REPLACE was before the damage that the place has proven; refuse a line in doubt."""
    sought, undo = attempt.sought, attempt.undo
    there = lines[place.start : place.start + place.count]
    # The true line for each line of the search, where that is one and the same.
    both = dict.fromkeys(zip(sought.search, there, strict=True))
    times = Counter(here for here, _ in both)
    known = {here: true for here, true in both if times[here] == 1}
    fresh = [line for line in sought.replace if line not in known]
    if place.trail:
        bare = dict(zip(fresh, place.without_trail(fresh), strict=True))
        sought = replace(sought, replace=tuple(bare.get(line, line) for line in sought.replace))
        is_off = all(not line.strip() or bare[line] != line for line in fresh)
        if not is_off and any(undo(line).endswith(place.trail) for line in fresh):
            raise OperationError(
                f"{sought.label} was damaged by the chat, with spaces at the ends of its lines, and REPLACE"
                " might be, too",
                advice=f"; {_again(sought)}, with SEARCH exactly as the file has it",
            )
    new: list[str] = []
    for line in sought.replace:
        undone = undo(line)
        if line in known:
            new.append(known[line])
            continue
        for damage in attempt.damages if line.strip() and undone != line else ():
            if _may_be_meant(damage, line, lines, sought.search):
                raise _in_doubt(sought, f"with {damage.value} that might be intended", there)
        new.append(place.change(undone) if line.strip() else undone)
    what = " and ".join(damage.value for damage in attempt.damages)
    undoing = f"after undoing {what}" if what else ""
    parts = (attempt.how, undoing, place.note.removeprefix("matched "))
    note = "matched " + ", ".join(filter(None, parts))
    same = common_ends(there, new)
    return Found(place.start, place.count, tuple(new), same, note, frozenset(attempt.damages))


def _may_be_meant(damage: Damage, line: str, lines: FileLines, search: Sequence[str]) -> bool:
    """Return whether the like of a new line is in the file, so that it may be meant as it came."""
    trace, came = _TRACE_OF[damage], "\n".join(search)
    marks = {found[0] for found in trace.finditer(line)}
    is_doubtful = any(lines.has(mark) for mark in marks)
    if damage is Damage.ESCAPES:
        proven = {r"\_", r"\*", r"\[", r"\]", *(found[0] for found in trace.finditer(came))}
        is_doubtful = is_doubtful or bool(marks - proven)
    elif damage is Damage.ENTITIES:
        is_doubtful = lines.has(trace) and "&amp;" not in came
    return is_doubtful and bool(marks)


def _in_doubt(sought: Sought, what: str, there: Sequence[str]) -> OperationError:
    return OperationError(
        f"{sought.label} was damaged by the chat, and REPLACE has a new line {what}",
        "The lines in the file are:\n" + "\n".join(f"  {clip(line)}" for line in there[:EXCERPT_LIMIT_LINES]),
        advice=f"; {_again(sought)}, exactly as the file has it",
    )


# --- new lines of a search that fits as it came ----------------------------------------------------
def check_flush(sought: Sought, place: Place, lines: list[str]) -> None:
    """Refuse new lines whose depth is unknown: neither they nor the search are indented.

    It may have been written at the left edge, or each line may have lost its own indentation. Both are the
    same for lines in the place of as many, or before a known one; after that a level may have ended.
    """
    both = [line for line in (*sought.search, *sought.replace) if line.strip()]
    if any(line[0].isspace() for line in both) or not blanks(place.change("x")):
        return
    known = set(sought.search)
    new = [index for index, line in enumerate(sought.replace) if line.strip()]
    kept = [index for index in new if sought.replace[index] in known]
    if not kept and len(new) <= sum(1 for line in sought.search if line.strip()):
        return
    steps = difflib.SequenceMatcher(None, sought.search, sought.replace, autojunk=False)
    alike: set[int] = set()
    for kind, a, a_end, b, b_end in steps.get_opcodes():
        if kind == "replace" and a_end - a == b_end - b:
            pairs = zip(sought.search[a:a_end], range(b, b_end), strict=True)
            alike |= {i for old, i in pairs if indentation.is_alike(old, sought.replace[i])}
    if any(i not in kept and i not in alike and i > max(kept, default=-1) for i in new):
        what = "whose indentation is unknown, because SEARCH has lost its own"
        raise _in_doubt(sought, what, lines[place.start :][: place.count])


def _again(sought: Sought) -> str:
    return f"send the edit again{'' if sought.is_verbatim else ' in a code block'}"
