"""Find the one place in a file that a SEARCH means, and the lines that REPLACE puts there.

How it works. Each row of `places.RULES` is a way in which lines may differ from those of the file, each
row of `shapes.RULES` something that was put round or between them, and `chat_damage.ROWS` is what chats
do to characters. A search is undone by one of each. The first way that fits counts: at one place only,
and all that fit must come to the same text. REPLACE came as SEARCH did: its lines that are lines of the
search become those of the file, and new ones are undone alike, or refused where they may be meant.
"""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, reduce

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
from codingagent.editing.nearest import EXCERPT_LIMIT_LINES, around, clip, common_ends, nearest
from codingagent.editing.places import AS_IT_CAME, RULES, File, FitRule, Found, Place, Sought, only
from codingagent.errors import OperationError
from codingagent.model import chat_damage, citations
from codingagent.model.chat_damage import UNHARMED, Damage, DamageRow
from codingagent.model.patterns import lazy_pattern
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


class _Candidate:
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


def _candidates(file: File, sought: Sought) -> Iterator[_Candidate]:
    """Yield a search as it came, then what it may have been before."""
    for name, shaped in shapes.shapes(sought):
        repairs = _repairs(file.lines, shaped.search)
        yield from (_Candidate(file, shaped, name, repair) for repair in repairs)


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
    """Return the one place where a search is meant to be.

    Raises:
        OperationError: if there is none or more than one, or if REPLACE may have been damaged in a way
            that can't be proven; the detail shows the nearest lines and how they differ.
    """
    if not sought.search:
        raise OperationError(f"{sought.label} is empty; give the lines whose place REPLACE takes")
    file = File(lines)
    plain = _Candidate(file, sought, "", _Repair())
    for rule in AS_IT_CAME:
        if places := plain.places(rule):
            place = only(lines, sought.label, places)
            return _as_it_came(lines, sought, place, is_shifted=rule is AS_IT_CAME[-1])
    if any(map(str.strip, sought.search)) and (found := _mended(file, sought)) is not None:
        return found
    what = "was not found; write its lines letter by letter as they are in the file"
    if (at := elisions.first_elision(sought.search)) is not None:
        dots = clip(sought.search[at].strip())
        what = (
            f"has the line '{dots}' in place of others, and it can't be told which; write all lines, or only"
            " those that change with enough around them"
        )
    raise OperationError(f"{sought.label} {what}", detail=nearest(lines, [*sought.search]))


def _as_it_came(lines: list[str], sought: Sought, place: Place, *, is_shifted: bool) -> Found:
    sought, note = _without_citations(lines, sought)
    if not sought.is_literal and (found := _as_the_others(lines, sought, place)) is not None:
        return found
    new, same = place.new(sought.replace), common_ends(sought.search, sought.replace)
    if is_shifted and not sought.is_verbatim:
        check_flush(sought, place, lines)
    check_new_lines(lines, sought, new, (place.start, place.start + place.count))
    note = ", ".join(filter(None, (place.note, note)))
    return Found(place.start, place.count, new, same, note)


def _mended(file: File, sought: Sought) -> Found | None:
    """Return the place that fits after undoing damage, if all repairs that fit come to the same."""
    candidates = [each for each in _candidates(file, sought) if each.starts]
    for rule in RULES:
        results: list[Found] = []
        several: list[Place] = []
        for each in candidates:
            places = each.places(rule)
            if len(places) > 1:
                several += places
            elif places:
                results.append(_worked_out(file.lines, each, places[0], rule is RULES[-1]))
        if results:
            if len({(found.start, found.count, found.new) for found in results}) > 1:
                raise OperationError(
                    f"{sought.label} fits after undoing what a chat did to it, but what REPLACE was before"
                    f" can be read in more than one way; {_again(sought)}, its SEARCH letter by letter as"
                    " the file has it",
                    around(
                        file.lines, [(results[0].start + 1, results[0].start + results[0].count)]
                    ),
                )
            # Escapes, say, of which several extents would do.
            ways = frozenset[Damage]().union(*(found.undone for found in results))
            return replace(results[0], undone=ways)
        if several:
            only(file.lines, sought.label, [*{place.start: place for place in several}.values()])
    return None


def _worked_out(lines: list[str], candidate: _Candidate, place: Place, is_bare: bool) -> Found:
    """Return what REPLACE was before the damage that the place has proven; refuse a line in doubt."""
    sought, repair = candidate.sought, candidate.repair
    there = lines[place.start : place.start + place.count]
    known = _pairs(sought.search, there)
    fresh = [line for line in sought.replace if line not in known]
    if place.trail:
        bare = dict(zip(fresh, place.without_trail(fresh), strict=True))
        sought = replace(sought, replace=tuple(bare.get(line, line) for line in sought.replace))
        is_off = all(not line.strip() or bare[line] != line for line in fresh)
        if not is_off and any(repair.undo(line).endswith(place.trail) for line in fresh):
            raise OperationError(
                f"{sought.label} was damaged on its way, blanks at the end of its lines too, and REPLACE may"
                f" have the like; {_again(sought)}, its SEARCH letter by letter as the file has it"
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
    how = f"up to {what} that are in the file" if repair.folds_file else how
    parts = (candidate.name, how, place.note.removeprefix("fitted "))
    undone = UNHARMED if repair.folds_file else frozenset(repair.damages)
    note = "fitted " + ", ".join(filter(None, parts))
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
            raise self._refusal(f"with {damage.value} that may be meant")

    def indented(self, index: int) -> str:
        """Return a line that lost its indentation with that of the line whose place it takes."""
        line = self._repair.undo(self._sought.replace[index])
        if line[:1].isspace():
            raise self._refusal("with an indentation, and SEARCH has lost its own")
        return blanks(self._there[self.need_counterpart(index)]) + line

    def need_counterpart(self, index: int) -> int:
        """Return the line of the search whose place a new line takes: the same line in other words."""
        search, new = self._sought.search, self._sought.replace
        matcher = difflib.SequenceMatcher(None, search, new, autojunk=False)
        for kind, a, a_end, b, b_end in matcher.get_opcodes():
            is_inside = kind == "replace" and b <= index < b_end and a_end - a == b_end - b
            if is_inside and indentation.is_alike(search[a + index - b], new[index]):
                return a + index - b
        raise self._refusal("whose indentation can't be known, for SEARCH has lost its own")

    def _refusal(self, what: str) -> OperationError:
        return OperationError(
            f"{self._sought.label} was damaged on its way, and REPLACE has a new line {what};"
            f" {_again(self._sought)}, letter by letter as the file has it",
            "The lines in the file are:\n"
            + "\n".join(f"  {clip(line)}" for line in self._there[:EXCERPT_LIMIT_LINES]),
        )


# --- new lines of a search that fits as it came ----------------------------------------------------


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


def _without_citations(lines: list[str], sought: Sought) -> tuple[Sought, str]:
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
    new_lines = _NewLines(lines, sought, _Repair(), lines[place.start :][: place.count])
    known = set(sought.search)
    new = [index for index, line in enumerate(sought.replace) if line.strip()]
    kept = [index for index in new if sought.replace[index] in known]
    if not kept and len(new) <= sum(1 for line in sought.search if line.strip()):
        return
    for index in new:
        if index not in kept and index > max(kept, default=-1):
            new_lines.need_counterpart(index)


def _shows_it_was_spared(row: DamageRow, text: str) -> bool:
    """Return whether a text has what would have been changed with the rest: a chat changes all or none."""
    if row.damage is Damage.ESCAPES:
        return chat_damage.is_spared_by_escapes(text)
    return row.damage is not Damage.BLANKS and _has_any(row.plain, row.trace.sub("", text))


def _has_any(characters: str, text: str) -> bool:
    return any(c in text for c in characters)


def _as_the_others(lines: list[str], sought: Sought, place: Place) -> Found | None:
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
    each = _Candidate(File([]), sought, "", _Repair((damage,), undo))
    return _worked_out(lines, each, place, is_bare=False)
