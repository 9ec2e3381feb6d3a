"""Prove what a chat did to an edit, undo it, and derive the lines that REPLACE puts in the file.

What fits after a damage is undone is proof: the lines are in the file after exactly this repair, at one
place only, and not before. REPLACE came the same way: its lines that are lines of the search become those
of the file, and new ones are undone alike. Each repair that fits is worked out; unless all of them come to
the same text, nothing is taken. Where a new line may be meant as it came, nothing is taken either.
"""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import reduce

from msgspec import Struct
from msgspec.structs import replace

from codingagent.editing import (
    blank_lines,
    characters,
    cited,
    elisions,
    indentation,
    levels,
    shapes,
)
from codingagent.editing.characters import Ground
from codingagent.editing.nearest import EXCERPT_LIMIT_LINES, around, clip, common_ends
from codingagent.editing.places import (
    AS_IT_CAME,
    RULES,
    Found,
    Place,
    Sought,
    only,
    without_indentation,
)
from codingagent.errors import OperationError
from codingagent.model import chat_damage, citations
from codingagent.model.chat_damage import UNHARMED, Damage, DamageRow
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import blanks, joined

_ROWS = [row for row in chat_damage.ROWS if row.trace is not chat_damage.LEADING_BLANK]
_UNDO = tuple((row.damage, row.undo) for row in _ROWS)
# Of several extents of one damage the widest.
_ROW_OF: dict[Damage, DamageRow] = {row.damage: row for row in reversed(_ROWS)}
_FOLDS = (Damage.ZERO_WIDTH, Damage.BLANKS, Damage.QUOTES)


def check_new_lines(
    lines: list[str], sought: Sought, placed: Sequence[str], at: tuple[int, int] = (0, 0)
) -> None:
    """Refuse new lines that are certainly damaged, though the search came as it should be.

    A search that fits as it is, with a character that would have been changed, shows that the body was
    spared: REPLACE came the same way, and is taken. One that has no such character says nothing of
    characters that are damaged in the tags, or that no file of the kind can hold. `placed` is REPLACE as
    it would be in the file, `at` from where to where SEARCH fits.
    """
    if sought.is_literal:
        return
    known = set(sought.search)
    pairs = [pair for pair in zip(sought.replace, placed, strict=True) if pair[0] not in known]
    ground = Ground(sought.path, lines, *at)
    if not any(map(levels.is_indented, sought.search)) and not sought.is_verbatim:
        levels.check(ground, sought.search, sought.replace, placed)
    if not sought.is_verbatim and levels.is_cut(placed, ground):
        raise OperationError(f"REPLACE has a line that is broken into two; {_again(sought)}")
    kept = chat_damage.kept_in(joined(sought.search))
    is_spared = sought.is_verbatim or chat_damage.Kept.LINES in kept
    if not is_spared and blank_lines.are_doubled(placed, ground):
        raise OperationError(
            f"REPLACE has blank lines in twos, where the file has one at a time; {_again(sought)};"
            f" {levels.MEANT}"
        )
    if not any(sought.way or _SUSPICIOUS.search(line) for _, line in pairs):
        return
    there = set(lines)
    new = [line for _, line in pairs if line not in there]
    _check_characters(ground, sought, new, placed)
    elided = elisions.first_elision(new, bare=False)
    if elided is not None and not sought.is_whole:
        raise OperationError(
            f"REPLACE has the line '{clip(new[elided].strip())}' in place of others: a part never takes"
            " the place of the whole; write all lines that belong there"
        )


def without_citations(lines: list[str], sought: Sought) -> tuple[Sought, str]:
    """Return an edit without the citation marks of a chat in new lines that can't be meant; and a note."""
    new = "\n".join(line for line in sought.replace if line not in sought.search)
    if sought.is_literal or not citations.forms_in(new):
        return sought, ""
    says, why = cited.verdict(new.split("\n"), sought.path, lines, (None, None))
    if says == "ask":
        raise OperationError(
            f"REPLACE holds {why} as a chat's citation marks; {_again(sought)} without them;"
            f" {levels.MEANT}"
        )
    if says == "keep":
        return sought, why
    undone = [line if line in sought.search else citations.without(line) for line in sought.replace]
    bare = tuple(characters.without_empty(sought.replace, undone))
    return replace(sought, replace=bare), f"without {Damage.CITATIONS.value} in REPLACE"


def _again(sought: Sought) -> str:
    return f"send the edit again{'' if sought.is_verbatim else ' inside of a code block'}"


def _check_characters(
    ground: Ground, sought: Sought, new: list[str], placed: Sequence[str]
) -> None:
    """Refuse new lines with the damage of the tags, or with what no file of the kind can hold."""
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
    what = characters.check(list(placed), ground, spared)
    if what:
        how = " with the characters that are meant for the file" if sought.is_verbatim else ""
        raise OperationError(
            f"REPLACE looks damaged on its way: it holds {what}, where a file of its kind has none;"
            f" {_again(sought)}{how}; {levels.MEANT}"
        )


# What only a look at the whole file can clear: a character that a chat makes, or words of an elision.
_SUSPICIOUS = lazy_pattern(
    r"[^\x00-\x7f]|\\|&|\]\(|\.{3}|rest|existing|remain|unchanged|previous|same", re.IGNORECASE
)


def check_flush(sought: Sought, place: "Place", lines: list[str]) -> None:
    """Refuse new lines whose depth is unknown: neither they nor the search are indented.

    It may have been written at the left edge, or each line may have lost its own indentation. Both
    come to the same for lines in the place of as many, and for those before one that is known. After
    these a level may have ended.
    """
    both = [line for line in (*sought.search, *sought.replace) if line.strip()]
    if any(line[0].isspace() for line in both) or not blanks(place.change("x")):
        return
    derive = _NewLines(lines, sought, _Repair((), str), lines[place.start :][: place.count])
    known = set(sought.search)
    new = [index for index, line in enumerate(sought.replace) if line.strip()]
    kept = [index for index in new if sought.replace[index] in known]
    if not kept and len(new) <= sum(1 for line in sought.search if line.strip()):
        return
    for index in new:
        if index not in kept and index > max(kept, default=-1):
            derive.need_counterpart(index)


def _shows_it_was_spared(row: DamageRow, text: str) -> bool:
    """Return whether a text has what would have been changed with the rest: a chat changes all or none."""
    if row.damage is Damage.ESCAPES:
        return chat_damage.is_spared_by_escapes(text)
    return row.damage is not Damage.BLANKS and _has_any(row.plain, row.trace.sub("", text))


def _has_any(characters: str, text: str) -> bool:
    return any(c in text for c in characters)


class _Repair(Struct, frozen=True):
    damages: tuple[Damage, ...]
    undo: Callable[[str], str]
    folds_file: bool = False
    """The file is undone too, for comparing: it has what the search lost."""


def _repairs(lines: list[str], search: Sequence[str]) -> Iterator[_Repair]:
    """Yield what may undo the damage to a search, each damage alone and then those that left a trace."""
    yield _Repair((), str)
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


def mended(lines: list[str], sought: Sought) -> Found | None:
    """Return the place that fits after undoing damage, if all repairs that fit come to the same."""
    if not any(line.strip() for line in sought.search):
        return None
    shaped_ways = list(shapes.shapes(sought))
    for rule in RULES:
        results: list[Found] = []
        several: list[Place] = []
        for name, shaped in shaped_ways:
            for repair in _repairs(lines, shaped.search):
                if not name and not repair.damages and rule in AS_IT_CAME:
                    continue  # tried before
                undone = [repair.undo(line) for line in shaped.search]
                file = [repair.undo(line) for line in lines] if repair.folds_file else lines
                places = rule.run(file, undone)
                if len({place.start for place in places}) > 1:
                    several += places
                    continue
                is_bare = rule.run is without_indentation
                results += [_worked_out(lines, shaped, repair, p, is_bare, name) for p in places]
        if results:
            if len({(found.start, found.count, found.new) for found in results}) > 1:
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
            only(lines, sought.label, list({place.start: place for place in several}.values()))
    return None


def _worked_out(
    lines: list[str], sought: Sought, repair: _Repair, place: Place, unindented: bool, name: str
) -> Found:
    """Return what REPLACE was before the damage that the place has proven; refuse a line in doubt."""
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
            new.append(repair.undo(line))
        elif unindented:
            new.append(derive.indented(index))
        else:
            new.append(place.change(derive.undone(index)))
    what = " and ".join(damage.value for damage in repair.damages)
    how = f"after undoing {what}" if what else ""
    how = f"up to {what} that are in the file" if repair.folds_file else how
    note = "fitted " + ", ".join(filter(None, (name, how, place.note.removeprefix("fitted "))))
    undone = UNHARMED if repair.folds_file else frozenset(repair.damages)
    return Found(place.start, place.count, tuple(new), common_ends(there, new), note, undone)


def as_the_others(lines: list[str], sought: Sought, place: Place) -> Found | None:
    """Undo in new lines the damage to others of the same edit, where the search has no trace of it.

    None if there is nothing to undo, or a character shows that this one was spared.
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
    repair = _Repair((damage,), undo)
    return _worked_out(lines, sought, repair, place, unindented=False, name="")


def _pairs(search: Sequence[str], there: Sequence[str]) -> dict[str, str]:
    """Return the true line for each line of a search, where that is one and the same."""
    both = dict.fromkeys(zip(search, there, strict=True))
    times = Counter(here for here, _ in both)
    return {here: true for here, true in both if times[here] == 1}


class _NewLines:
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
        """Refuse a line whose like is in the file, so that it may be meant as it came."""
        trace = _ROW_OF[damage].trace
        marks = {found[0] for found in trace.finditer(line)}
        if damage is Damage.ESCAPES:
            proven = {r"\_", r"\*", r"\[", r"\]"}
            proven |= {found[0] for found in trace.finditer(self._search)}
            is_doubtful = bool(marks - proven) or any(mark in self._file for mark in marks)
        elif damage is Damage.ENTITIES:
            is_doubtful = trace.search(self._file) is not None and "&amp;" not in self._search
        else:
            is_doubtful = any(mark in self._file for mark in marks)
        if is_doubtful and marks:
            raise self._refusal(f"with {damage.value} that may be meant")

    def _as_in_file(self, index: int) -> str:
        """Return a new line without the characters that the search lost and the file has; refuse others."""
        line = self._sought.replace[index]
        plain = {Damage.QUOTES: "\"'", Damage.BLANKS: " "}
        plain[Damage.ZERO_WIDTH] = "\ufeff\u200b\u2060\u00ad"
        if not any(c in line for damage in self._repair.damages for c in plain[damage]):
            return line
        raise self._refusal("where the file has characters that chats change")

    def indented(self, index: int) -> str:
        """Return a line that lost its indentation with that of the line whose place it takes."""
        line = self._repair.undo(self._sought.replace[index])
        if line[:1].isspace():
            raise self._refusal("with an indentation, and SEARCH has lost its own")
        return blanks(self._there[self.need_counterpart(index)]) + line

    def need_counterpart(self, index: int) -> int:
        row = self._counterpart(index)
        if row is None:
            raise self._refusal("whose indentation can't be known, for SEARCH has lost its own")
        return row

    def _counterpart(self, index: int) -> int | None:
        """Return the line of the search whose place a new line takes: the same line in other words."""
        matcher = difflib.SequenceMatcher(
            None, self._sought.search, self._sought.replace, autojunk=False
        )
        for kind, old, old_end, new, new_end in matcher.get_opcodes():
            if kind == "replace" and new <= index < new_end and old_end - old == new_end - new:
                row = old + index - new
                alike = indentation.is_alike(self._sought.search[row], self._sought.replace[index])
                return row if alike else None
        return None

    def _refusal(self, what: str) -> OperationError:
        return OperationError(
            f"{self._sought.label} was damaged on its way, and REPLACE has a new line {what};"
            f" {_again(self._sought)}, letter by letter as the file has it",
            "The lines in the file are:\n"
            + "\n".join(f"  {clip(line)}" for line in self._there[:EXCERPT_LIMIT_LINES]),
        )
