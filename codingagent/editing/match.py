"""Find the one place in a file that a SEARCH means, and the lines that REPLACE puts there.

How it works. Each row of `places.RULES` is a way in which lines may differ from those of the file, and
`chat_damage.ROWS` is what chats do to characters. A search is undone by one of each. The first way that
fits counts: at one place only, and all that fit must come to the same text. REPLACE came as SEARCH did: it is
undone alike, or refused where a new line may be meant.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce

from msgspec.structs import replace

from codingagent.editing import body_repair, elisions, file_kinds, indentation, line_numbers
from codingagent.editing.characters import ReplacedLines
from codingagent.editing.file_lines import FileLines
from codingagent.editing.nearest import (
    EXCERPT_LIMIT_LINES,
    SHOWN_LINE_CHARACTERS,
    around,
    clip,
    common_ends,
    nearest,
    steps,
)
from codingagent.editing.places import AS_IT_CAME, RULES, File, Found, Place, SearchEdit, only
from codingagent.errors import OperationError
from codingagent.model import chat_damage, citations
from codingagent.model.chat_damage import Damage
from codingagent.model.plain_text import WRITTEN, blanks, joined, with_controls

# --- what may be undone ----------------------------------------------------------------------------

_ROWS = [row for row in chat_damage.ROWS if row.trace is not chat_damage.LEADING_BLANK]
# Requests show them so.
_ROWS.append(chat_damage.DamageRow(Damage.CONTROLS, WRITTEN, with_controls, ""))
_ROWS.append(chat_damage.DamageRow(Damage.NUMBERS, line_numbers.OURS, line_numbers.without, ""))
# Of several extents of one damage the widest.
_TRACE_OF = {row.damage: row.trace for row in reversed(_ROWS)}


_Way = tuple[tuple[Damage, ...], Callable[[str], str]]


def _ways(sought: SearchEdit) -> list[_Way]:
    """Return what may be undone in a search: each damage that left a trace, and all of them."""
    there = [(row.damage, row.undo) for row in _ROWS if any(row.undo(line) != line for line in sought.search)]
    ways: list[_Way] = [((), str), *(((damage,), undo) for damage, undo in there)]
    if len(damages := tuple(dict.fromkeys(damage for damage, _ in there))) > 1:
        ways.append((damages, partial(reduce, lambda line, each: each[1](line), there)))
    return ways


# --- the one place ---------------------------------------------------------------------------------
def find(lines: FileLines, sought: SearchEdit) -> Found:
    """Return the one place where a search is meant to be, else OperationError."""
    if not sought.search:
        raise OperationError(f"{sought.label} is empty", advice="; give the lines to replace")
    file = File(lines)
    lead = "" if sought.arrival is None else sought.arrival.lead
    bare = tuple(line.removeprefix(lead) for line in sought.search) if lead else sought.search
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
    detail: str | Callable[[], str] = partial(nearest, lines, [*sought.search])
    part = sought.search[0].strip() if len(sought.search) == 1 else ""
    is_indented = any(line[:1].isspace() for line in sought.search)
    is_flat = not (is_indented or file.indented.isdisjoint(sought.search))
    long = (i for i, line in enumerate(lines) if part and len(line) > SHOWN_LINE_CHARACTERS and part in line)
    if (at := elisions.first_elision(sought.search)) is not None:
        dots = clip(sought.search[at].strip())
        what = f"has the line '{dots}' instead of the lines themselves"
        how = "; write all lines, or only those that change with enough around them"
    elif is_flat and sought.arrival is not None and not sought.is_verbatim:
        # The next answer would come so, too.
        what += ", and no line of it is indented, as if the chat had removed that"
        how = f"; {_again(sought)}, its lines exactly as the file has them"
    elif (index := next(long, None)) is not None:
        line, at = lines[index], lines[index].index(part)
        # No value is cut at its head, or nobody would know it for a secret.
        head = line[max(at - SHOWN_LINE_CHARACTERS // 2, 0) : at].partition(" ")[2]
        detail = f"It stands here: …{head}{clip(line[at:])}"
        what = f"is a part of line {index + 1}, which has {len(line):,} characters"
        how = "; write that line whole, or change it with RUN_COMMAND"
    raise OperationError(f"{sought.label} {what}", detail, advice=how)


def _as_it_came(lines: FileLines, sought: SearchEdit, place: Place, *, is_shifted: bool) -> Found:
    """Return the place of a search that fits as it came; REPLACE is then the body of an edit by numbers."""
    old = frozenset(sought.search)
    _check_trail(sought, place, set(sought.replace) - old)
    new, same = tuple(map(place.change, sought.replace)), common_ends(sought.search, sought.replace)
    if sought.arrival is None:
        return Found(place.start, place.count, new, same, place.note)
    path = sought.path
    if is_shifted and (not sought.is_verbatim or file_kinds.is_prose(path) or file_kinds.is_makefile(path)):
        check_flush(sought, place, lines)
    fresh = [line for line in new if line not in old]
    dots = [line for i, line in enumerate(fresh) if elisions.is_elision(fresh, i, bare=False)]
    if (elided := next((line for line in dots if not lines.counts[line]), None)) is not None:
        raise OperationError(
            f"REPLACE has the line '{clip(elided.strip())}' instead of the lines themselves",
            advice="; write all lines that belong there",
        )
    spared = joined(sought.search)
    kept = chat_damage.kept_in(spared)
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
        in_code=sought.is_verbatim or chat_damage.Preserved.INDENTATION in kept,
        kept=sought.arrival.kept | kept,
    )
    ground = ReplacedLines(sought.path, lines, place.start, place.start + place.count, spared)
    mended, notes = body_repair.mend_replacement([*new], ground, arrival)
    if mended != [*new]:
        new, same = tuple(mended), common_ends(sought.search, mended)
        if sought.search != tuple(lines[place.start : place.start + place.count]):
            same = (0, 0)
    return Found(place.start, place.count, new, same, place.note, notes=notes)


def _mended(file: File, sought: SearchEdit) -> Found | None:
    """Return the place that fits once a damage is undone, if all that fit come to the same."""
    ways = _ways(sought)
    for rule in RULES:
        results: list[Found] = []
        # As it came, it has been looked for by these.
        for damages, undo in ways[1:] if rule in AS_IT_CAME else ways:
            search = tuple(_each(undo, sought.search))
            if places := file.places(rule, search):
                place = only(file.lines, sought.label, places)
                results.append(_undone(file.lines, sought, search, place, damages, undo))
        if results:
            if len({(found.start, found.count, found.new) for found in results}) > 1:
                raise OperationError(
                    f"{sought.label} matches once damage by the chat is undone, but REPLACE can then be read"
                    " in more than one way",
                    around(file.lines, [(results[0].start + 1, results[0].start + results[0].count)]),
                    advice=f"; {_again(sought)}, with SEARCH exactly as the file has it",
                )
            # Escapes, say, of which several extents would do.
            return replace(results[0], undone=frozenset[Damage]().union(*(each.undone for each in results)))
    return None


def _each(undo: Callable[[str], str], lines: Iterable[str]) -> Iterator[str]:
    """Yield lines without their damage; one of citation marks alone is none."""
    pairs = ((line, undo(line)) for line in lines)
    return (undone for line, undone in pairs if undone.strip() or citations.without(line) == line)


def _undone(
    lines: FileLines,
    sought: SearchEdit,
    search: Sequence[str],
    place: Place,
    damages: tuple[Damage, ...],
    undo: Callable[[str], str],
) -> Found:
    """Return what REPLACE was before the damage that the place of `search` proves; refuse a line in doubt."""
    there = lines[place.start : place.start + place.count]
    old = frozenset(sought.search)
    fresh = [line for line in sought.replace if line not in old]
    _check_trail(sought, place, map(undo, fresh))
    if Damage.NUMBERS in damages and not line_numbers.levels_are_known(search, sought.replace, sought.search):
        raise _in_doubt(sought, "without a number, whose indentation is unknown", there)
    for line in fresh:
        for damage in damages if undo(line) != line else ():
            if _may_be_meant(damage, line, lines, sought.search):
                raise _in_doubt(sought, f"with {damage.value} that might be intended", there)
    new = [*_each(undo, sought.replace)]
    ground = ReplacedLines(sought.path, lines, place.start, place.start + place.count)
    own = indentation.own_indentation(new, ground) if place.note.endswith("as indentation") else {}
    if False in own.values():
        raise _in_doubt(sought, "in a string, whose tabs or spaces are unknown", there)
    new = [place.change(line) if line.strip() and i not in own else line for i, line in enumerate(new)]
    undoing = f"after undoing {' and '.join(damage.value for damage in damages)}" if damages else ""
    note = "matched " + ", ".join(filter(None, (undoing, place.note.removeprefix("matched "))))
    same = common_ends(there, new)
    return Found(place.start, place.count, tuple(new), same, note, frozenset(damages))


def _check_trail(sought: SearchEdit, place: Place, fresh: Iterable[str]) -> None:
    if place.trail and any(line.strip() and line.endswith(place.trail) for line in fresh):
        raise OperationError(
            f"{sought.label} was damaged by the chat, with spaces at the ends of its lines, and REPLACE"
            " might be, too",
            advice=f"; {_again(sought)}, with SEARCH exactly as the file has it",
        )


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


def _in_doubt(sought: SearchEdit, what: str, there: Sequence[str]) -> OperationError:
    return OperationError(
        f"{sought.label} was damaged by the chat, and REPLACE has a new line {what}",
        "The lines in the file are:\n" + "\n".join(f"  {clip(line)}" for line in there[:EXCERPT_LIMIT_LINES]),
        advice=f"; {_again(sought)}, exactly as the file has it",
    )


# --- new lines of a search that fits as it came ----------------------------------------------------
def check_flush(sought: SearchEdit, place: Place, lines: list[str]) -> None:
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
    alike: set[int] = set()
    for kind, a, a_end, b, b_end in steps(sought.search, sought.replace):
        if kind == "replace" and a_end - a == b_end - b:
            pairs = zip(sought.search[a:a_end], range(b, b_end), strict=True)
            alike |= {i for old, i in pairs if indentation.is_alike(old, sought.replace[i])}
    if any(i not in kept and i not in alike and i > max(kept, default=-1) for i in new):
        what = "whose indentation is unknown, because SEARCH has lost its own"
        raise _in_doubt(sought, what, lines[place.start :][: place.count])


def _again(sought: SearchEdit) -> str:
    return f"send the edit again{'' if sought.is_verbatim else ' in a code block'}"
