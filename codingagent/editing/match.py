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
from functools import cached_property, reduce
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from codingagent.editing import body_repair, elisions, indentation, shapes
from codingagent.editing.characters import Ground
from codingagent.editing.nearest import EXCERPT_LIMIT_LINES, around, clip, common_ends, nearest
from codingagent.editing.places import AS_IT_CAME, RULES, File, FitRule, Found, Place, Sought, only
from codingagent.errors import OperationError
from codingagent.model import chat_damage
from codingagent.model.chat_damage import UNHARMED, Damage, DamageRow
from codingagent.model.plain_text import blanks, joined

# --- what may be undone ----------------------------------------------------------------------------

_ROWS = [row for row in chat_damage.ROWS if row.trace is not chat_damage.LEADING_BLANK]
_UNDO = tuple((row.damage, row.undo) for row in _ROWS)
# Of several extents of one damage the widest.
_ROW_OF: dict[Damage, DamageRow] = {row.damage: row for row in reversed(_ROWS)}
_FOLDS = (Damage.ZERO_WIDTH, Damage.BLANKS, Damage.QUOTES)
_PLAIN = {Damage.QUOTES: "\"'", Damage.BLANKS: " ", Damage.ZERO_WIDTH: "\ufeff\u200b\u2060\u00ad"}


class _Repair(Struct, frozen=True):
    damages: tuple[Damage, ...] = ()
    undo: Callable[[str], str] = str
    folds_file: bool = False
    """The file is undone too, for comparing: it has what the search lost."""


class _Attempt:
    """A search as it may have been, and where the file may have it."""

    def __init__(self, file: File, sought: Sought, name: str, repair: _Repair) -> None:
        self.sought = sought
        self.name = name
        self.repair = repair
        self.search = tuple(map(repair.undo, sought.search))
        self.file = File([*map(repair.undo, file.lines)]) if repair.folds_file else file

    @cached_property
    def starts(self) -> list[int]:
        return self.file.starts(self.search)

    def places(self, rule: FitRule) -> list[Place]:
        starts = None if rule is RULES[0] else self.starts
        return self.file.places(rule, self.search, starts)


def _attempts(file: File, sought: Sought) -> Iterator[_Attempt]:
    """Yield a search as it came, then what it may have been before."""
    for name, shaped in shapes.shapes(sought):
        repairs = _repairs(file.lines, shaped.search)
        yield from (_Attempt(file, shaped, name, repair) for repair in repairs)


def _repairs(lines: list[str], search: Sequence[str]) -> Iterator[_Repair]:
    """Yield what may undo the damage to a search, each damage alone and then those that left a trace."""
    yield _Repair()
    text = "\n".join(search)
    there = [(damage, undo) for damage, undo in _UNDO if undo(text) != text]
    for damage, undo in there:
        yield _Repair((damage,), undo)
    if len({damage for damage, _ in there}) > 1:
        damages = tuple(dict.fromkeys(damage for damage, _ in there))
        yield _Repair(damages, lambda line: reduce(lambda text, each: each[1](text), there, line))
    whole = "\n".join(lines)
    folds = [(d, u) for d, u in _UNDO if d in _FOLDS and not whole.isascii() and u(whole) != whole]
    for damage, undo in folds:
        yield _Repair((damage,), undo, folds_file=True)


# --- the one place ---------------------------------------------------------------------------------
def find(lines: list[str], sought: Sought) -> Found:
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
    plain = _Attempt(file, sought, "", _Repair())
    for rule in AS_IT_CAME:
        if places := plain.places(rule):
            place = only(lines, sought.label, places)
            return _as_it_came(lines, sought, place, is_shifted=rule is AS_IT_CAME[-1])
    if any(map(str.strip, sought.search)) and (found := _mended(file, sought)) is not None:
        return found
    what, how = "not found", "; copy its lines exactly as the file has them"
    if (at := elisions.first_elision(sought.search)) is not None:
        dots = clip(sought.search[at].strip())
        what = f"has the line '{dots}' instead of the lines themselves"
        how = "; write all lines, or only those that change with enough around them"
    raise OperationError(f"{sought.label} {what}", nearest(lines, [*sought.search]), advice=how)


def _as_it_came(lines: list[str], sought: Sought, place: Place, *, is_shifted: bool) -> Found:
    """Return the place of a search that fits as it came; REPLACE is then the body of an edit by numbers."""
    new, same = place.new(sought.replace), common_ends(sought.search, sought.replace)
    if sought.arrival is None:
        return Found(place.start, place.count, new, same, place.note)
    if is_shifted and not sought.is_verbatim:
        check_flush(sought, place, lines)
    fresh = [line for line in new if line not in sought.search]
    dots = (line for i, line in enumerate(fresh) if elisions.is_elision(fresh, i, bare=False))
    if (elided := next((line for line in dots if line not in lines), None)) is not None:
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
    every = [each for each in _attempts(file, sought) if each.starts]
    # What fits the file as it is comes before what fits it undone.
    folded = [
        [each for each in every if each.repair.folds_file is folds] for folds in (False, True)
    ]
    for attempts, rule in product(folded, RULES):
        results: list[Found] = []
        several: list[Place] = []
        for each in attempts:
            places = each.places(rule)
            if len(places) > 1:
                several += places
            elif places:
                results.append(_worked_out(file.lines, each, places[0], rule is RULES[-1]))
        if results:
            if len({(found.start, found.count, found.new) for found in results}) > 1:
                raise OperationError(
                    f"{sought.label} matches once damage by the chat is undone, but REPLACE can then be read"
                    " in more than one way",
                    around(
                        file.lines, [(results[0].start + 1, results[0].start + results[0].count)]
                    ),
                    advice=f"; {_again(sought)}, with SEARCH exactly as the file has it",
                )
            # Escapes, say, of which several extents would do.
            ways = frozenset[Damage]().union(*(found.undone for found in results))
            return replace(results[0], undone=ways)
        if several:
            only(file.lines, sought.label, [*{place.start: place for place in several}.values()])
    return None


def _worked_out(lines: list[str], attempt: _Attempt, place: Place, is_bare: bool) -> Found:
    """Return what REPLACE was before the damage that the place has proven; refuse a line in doubt."""
    sought, repair = attempt.sought, attempt.repair
    there = lines[place.start : place.start + place.count]
    known = _pairs(sought.search, there)
    fresh = [line for line in sought.replace if line not in known]
    if place.trail:
        bare = dict(zip(fresh, place.without_trail(fresh), strict=True))
        sought = replace(sought, replace=tuple(bare.get(line, line) for line in sought.replace))
        is_off = all(not line.strip() or bare[line] != line for line in fresh)
        if not is_off and any(repair.undo(line).endswith(place.trail) for line in fresh):
            raise OperationError(
                f"{sought.label} was damaged by the chat, with spaces at the ends of its lines, and REPLACE"
                " might be, too",
                advice=f"; {_again(sought)}, with SEARCH exactly as the file has it",
            )
    new_lines = _NewLines(lines, sought, repair, there)
    new: list[str] = []
    for index, line in enumerate(sought.replace):
        if line in known:
            new.append(known[line])
        elif not line.strip():
            new.append(repair.undo(line))
        elif is_bare:
            new.append(new_lines.indented(index))
        else:
            new.append(place.change(new_lines.undone(index)))
    what = " and ".join(damage.value for damage in repair.damages)
    how = f"after undoing {what}" if what else ""
    how = f"ignoring {what} in the file" if repair.folds_file else how
    parts = (attempt.name, how, place.note.removeprefix("matched "))
    undone = UNHARMED if repair.folds_file else frozenset(repair.damages)
    note = "matched " + ", ".join(filter(None, parts))
    return Found(place.start, place.count, tuple(new), common_ends(there, new), note, undone)


def _pairs(search: Sequence[str], there: Sequence[str]) -> dict[str, str]:
    """Return the true line for each line of a search, where that is one and the same."""
    both = dict.fromkeys(zip(search, there, strict=True))
    times = Counter(here for here, _ in both)
    return {here: true for here, true in both if times[here] == 1}


class _NewLines:
    """New lines of an edit, each undone as its search was; those in doubt are refused."""

    def __init__(
        self, lines: list[str], sought: Sought, repair: _Repair, there: Sequence[str]
    ) -> None:
        self._file = "\n".join(lines)
        self._sought = sought
        self._repair = repair
        self._there = there

    def undone(self, index: int) -> str:
        line, repair = self._sought.replace[index], self._repair
        if repair.folds_file:
            if not any(c in line for damage in repair.damages for c in _PLAIN[damage]):
                return line
            raise self._refusal("where the file has characters that chats change")
        undone = repair.undo(line)
        for damage in repair.damages if undone != line else ():
            self._check(damage, line)
        return undone

    def _check(self, damage: Damage, line: str) -> None:
        """Refuse a line whose like is in the file, so that it may be meant as it came."""
        trace, search = _ROW_OF[damage].trace, "\n".join(self._sought.search)
        marks = {found[0] for found in trace.finditer(line)}
        is_doubtful = any(mark in self._file for mark in marks)
        if damage is Damage.ESCAPES:
            proven = {r"\_", r"\*", r"\[", r"\]", *(found[0] for found in trace.finditer(search))}
            is_doubtful = is_doubtful or bool(marks - proven)
        elif damage is Damage.ENTITIES:
            is_doubtful = trace.search(self._file) is not None and "&amp;" not in search
        if is_doubtful and marks:
            raise self._refusal(f"with {damage.value} that might be intended")

    def indented(self, index: int) -> str:
        """Return a line that lost its indentation with that of the line whose place it takes."""
        line = self._repair.undo(self._sought.replace[index])
        if line[:1].isspace():
            raise self._refusal("with indentation, while SEARCH has lost its own")
        return blanks(self._there[self.need_counterpart(index)]) + line

    def need_counterpart(self, index: int) -> int:
        """Return the line of the search whose place a new line takes: the same line in other words."""
        search, new = self._sought.search, self._sought.replace
        matcher = difflib.SequenceMatcher(None, search, new, autojunk=False)
        for kind, a, a_end, b, b_end in matcher.get_opcodes():
            is_inside = kind == "replace" and b <= index < b_end and a_end - a == b_end - b
            if is_inside and indentation.is_alike(search[a + index - b], new[index]):
                return a + index - b
        raise self._refusal("whose indentation is unknown, because SEARCH has lost its own")

    def _refusal(self, what: str) -> OperationError:
        return OperationError(
            f"{self._sought.label} was damaged by the chat, and REPLACE has a new line {what}",
            "The lines in the file are:\n"
            + "\n".join(f"  {clip(line)}" for line in self._there[:EXCERPT_LIMIT_LINES]),
            advice=f"; {_again(self._sought)}, exactly as the file has it",
        )


# --- new lines of a search that fits as it came ----------------------------------------------------
def check_flush(sought: Sought, place: "Place", lines: list[str]) -> None:
    """Refuse new lines whose depth is unknown: neither they nor the search are indented.

    It may have been written at the left edge, or each line may have lost its own indentation. Both are the
    same for lines in the place of as many, or before a known one; after that a level may have ended.
    """
    both = [line for line in (*sought.search, *sought.replace) if line.strip()]
    if any(line[0].isspace() for line in both) or not blanks(place.change("x")):
        return
    new_lines = _NewLines(lines, sought, _Repair(), lines[place.start :][: place.count])
    known = set(sought.search)
    new = [index for index, line in enumerate(sought.replace) if line.strip()]
    kept = [index for index in new if sought.replace[index] in known]
    if not kept and len(new) <= sum(1 for line in sought.search if line.strip()):
        return
    for index in new:
        if index not in kept and index > max(kept, default=-1):
            new_lines.need_counterpart(index)


def _again(sought: Sought) -> str:
    return f"send the edit again{'' if sought.is_verbatim else ' in a code block'}"
