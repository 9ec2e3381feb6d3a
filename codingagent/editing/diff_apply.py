"""Where the hunks of a diff belong in a file, and which lines they put there.

How it works. All places that a hunk fits are found in the file as it is: exactly, else up to trailing
blanks or one constant indentation. What leaves one place is then asked in turn: the order of the hunks,
the line number, the enclosing function. A number alone proves nothing, for models count wrong; of several
places that fit it may name one.
"""

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from codingagent.editing import body_rules, characters, elisions, indentation, match, nearest
from codingagent.editing.characters import BodyCase, ReplacedLines
from codingagent.editing.file_lines import FileLines
from codingagent.editing.match import Found, Place, SearchEdit
from codingagent.errors import OperationError
from codingagent.model import chat_damage, operations
from codingagent.model.plain_text import blanks, joined


class PlacedHunk:
    """A hunk with its two sides, the lines of context round its changes, and what it fits."""

    def __init__(self, said: operations.DiffHunk, label: str, shift: int) -> None:
        self.said = said
        self.label = label
        self.shift = shift
        self.old = [text for mark, text in said.lines if mark != "+"]
        self.new = [text for mark, text in said.lines if mark != "-"]
        marks = [mark for mark, _ in said.lines]
        changed = [index for index, mark in enumerate(marks) if mark != " "]
        self.lead = changed[0]
        self.trail = len(marks) - 1 - changed[-1]
        self.only_adds = "-" not in marks
        # Without context such a hunk may be done already, or not.
        self.is_bare = said.is_counted and len({*marks}) == 1
        self.has_text = any(line.strip() for line in self.old)
        self.fits: list[Place] = []
        self.done_at: int | None = None

    def changes(self, fit: Place) -> tuple[int, int]:
        """Return from where to before where it changes lines at a place."""
        return fit.start + self.lead, fit.start + fit.count - self.trail

    def within(self, lines: FileLines, name: str, fits: list[Place]) -> list[Place]:
        """Return the fits within a class or function of that name; all, if the file has none."""
        spans = lines.once(("section", name), partial(_sections, name=name))

        def is_inside(fit: Place) -> bool:
            return any(start <= fit.start + self.lead and fit.start <= end for start, end in spans)

        return [*filter(is_inside, fits)] if spans else fits

    @property
    def is_one_sided(self) -> bool:
        """Return whether it has context on one side of its changes only, as at an end of a file."""
        return bool(self.lead) != bool(self.trail)


def fits_of(lines: FileLines, hunk: PlacedHunk) -> list[Place]:
    """Return all places that a hunk fits in the first of the ways that fits any."""
    # One blank deeper: the context has lost its marks, and the new lines have not.
    row = next((row for row, line in enumerate(hunk.old) if line.strip()), 0)
    starts = lines.starts(hunk.old) if hunk.old else []
    starts = [at for at in starts if lines[at + row].rstrip() != f" {hunk.old[row].rstrip()}"]
    rules = match.AS_IT_CAME if starts else ()
    return next(filter(None, (match.fits(lines, rule, hunk.old, starts) for rule in rules)), [])


def _sections(lines: FileLines, name: str) -> list[tuple[int, int]]:
    """Return where each class or function of that name begins, and the next thing that is no deeper."""
    found: list[tuple[int, int]] = []
    # git cuts the text at 80 characters.
    begins = re.compile(rf"\s*{re.escape(name)}" + r"(?!\w)" * (len(name) < 70))
    for start, line in enumerate(lines):
        if begins.match(line):
            ends = re.compile(rf"\s{{0,{len(blanks(line))}}}[\w$]")
            later = (at for at in range(start + 1, len(lines)) if ends.match(lines[at]))
            found.append((start, next(later, len(lines))))
    return found


# Fewer characters may be in a file by chance.
_APPLIED_FEWEST_CHARACTERS = 16
# Of all hunks together; a file of like lines could have all of them compared for minutes.
_PLACES_LIMIT = 100_000
_MEANT = (
    '; if they are intended, send [EDIT_FILE] with SEARCH/REPLACE and until="TOKEN", closed with'
    " [/EDIT_FILE TOKEN]"
)
_MORE_LINES = "give it more lines of context, or the right line number in its @@ line"


def apply(
    diff: operations.Diff, lines: FileLines, shifts: Sequence[int], path: str, *, is_ended: bool
) -> tuple[list[Found], tuple[str, ...]]:
    """Return what is to be put into a file, in this order, and notes on how the diff was read.

    `shifts` are how far earlier edits of the same answer have moved the line that each hunk begins with.
    `is_ended` says whether the last line has an end. OperationError if the place of a hunk, or one of its new
    lines, is not certain.
    """
    several = len(diff.hunks) > 1
    hunks = [
        PlacedHunk(said, f"hunk {number} of {len(diff.hunks)}" if several else "the hunk", shift)
        for number, (said, shift) in enumerate(zip(diff.hunks, shifts, strict=True), start=1)
    ]
    room = _PLACES_LIMIT
    for hunk in hunks:
        hunk.fits, fault = _anchored(lines, hunk, fits_of(lines, hunk), is_last=hunk is hunks[-1])
        hunk.done_at = _stands_at(lines, hunk)
        if hunk.done_at is not None:
            hunk.fits = []
        elif fault is not None:
            raise fault
        room -= len(hunk.fits)
        if room < 0:
            raise OperationError(f"{hunk.label} matches too many places", advice=f"; {_MORE_LINES}")
    placed = [hunk for hunk in hunks if hunk.fits]
    _choose(lines, placed)
    # A line fits with its indentation: tabs and blanks are then meant as they came.
    exact = [hunk for hunk in placed if hunk.said.is_verbatim and not hunk.fits[0].note]
    fits = (hunk.fits[0] for hunk in exact)
    there = (lines[fit.start : fit.start + fit.count] for fit in fits)
    # The answer has lines of the file with their indentation.
    is_shown = any(line.startswith(("\t", "  ")) for lines in there for line in lines)
    notes: list[str] = []
    ordered: list[tuple[int, int, int, Found]] = []
    for index, hunk in enumerate(hunks):
        at = _applied_at(lines, hunk)
        if hunk.is_bare and (at is not None or hunk.fits):
            start = hunk.fits[0].start if at is None else at
            is_last = start + len(hunk.said.lines) == len(lines)
            is_elsewhere = at is None and start != (hunk.said.old_start or 0) - 1 + hunk.shift
            if is_elsewhere or (is_last and is_ended is not (hunk.said.end is None)):
                raise OperationError(f"{hunk.label} may be done already", advice=f"; {_MORE_LINES}")
        if at is not None:
            new = tuple(lines[at : at + len(hunk.new)])
            ordered.append((at, at, index, Found(at, len(new), new, (len(new), 0))))
            notes.append(f"{hunk.label} is already applied at line {at + 1}: nothing to do")
            continue
        if not hunk.fits:
            raise _not_found(lines, hunk)
        fit = hunk.fits[0]
        put = _put(lines, hunk, fit, path, is_shown=is_shown)
        ordered.append((*hunk.changes(fit), index, put))
        notes += [f"{hunk.label} {fit.note}"] if fit.note else []
    # From the end to the top, so that none moves the place of another.
    puts = [put for *_, put in sorted(ordered, key=lambda each: each[:3], reverse=True)]
    return puts, tuple(notes)


# --- which of several ------------------------------------------------------------------------------
def _anchored(
    lines: FileLines, hunk: PlacedHunk, fits: list[Place], *, is_last: bool
) -> tuple[list[Place], OperationError | None]:
    """Return the fits at the end of the file that a hunk is from, where it is from one, and why no others."""
    said, is_one_sided = hunk.said, hunk.said.is_counted and hunk.is_one_sided
    if said.end is not None:
        where, side = "the end of the file, as it says,", "below"
    elif is_one_sided and hunk.trail and (said.old_start or 0) <= 1:
        where, side = "the top of the file, having no context above its changes,", "above"
    elif is_one_sided and hunk.lead and is_last:
        where, side = "the end of the file, having no context below its changes,", "below"
    else:
        return fits, None
    last = len(lines)
    anchored = [f for f in fits if (f.start + f.count == last if side == "below" else not f.start)]
    if anchored or not fits:
        return anchored, None
    if said.end is None and not hunk.only_adds:
        return fits, None
    spans = [(fit.start + 1, fit.start + fit.count) for fit in fits[: match.SHOWN_PLACES]]
    fact = f"{hunk.label} belongs at {where} and its lines are not there"
    return [], OperationError(
        fact, nearest.around(lines, spans), advice=f"; add the lines that follow {side}"
    )


def _choose(lines: FileLines, hunks: list[PlacedHunk]) -> None:
    """Leave one fit for each hunk; refuse hunks that still have several, or change the same lines."""
    is_ordered = _in_order(hunks)
    for narrowed in (_numbered, _within_section):
        for index, hunk in enumerate(hunks):
            if len(hunk.fits) > 1 and (fit := narrowed(lines, hunks, index)) is not None:
                hunk.fits = [fit]
        is_ordered = is_ordered and _in_order(hunks)
    for index, hunk in enumerate(hunks):
        if not hunk.has_text and _numbered(lines, hunks, index) is None:
            what = f"{hunk.label} has only blank lines of the old text"
            raise OperationError(what, advice=f"; {_MORE_LINES}")
        match.only(lines, hunk.label, hunk.fits, _MORE_LINES)
    for one, other in pairwise(sorted(hunks, key=lambda hunk: hunk.changes(hunk.fits[0])[0])):
        if other.changes(other.fits[0])[0] < one.changes(one.fits[0])[1]:
            what = f"{one.label} and {other.label} change the same lines"
            raise OperationError(what, advice="; send them as one hunk")


def _in_order(hunks: list[PlacedHunk]) -> bool:
    """Leave the fits that leave room for all others in the order of the hunks; False if there is none."""
    numbers = [hunk.said.old_start for hunk in hunks if hunk.said.old_start is not None]
    if any(one > other for one, other in pairwise(numbers)):
        return False
    kept: list[list[Place]] = []
    floor = 0
    for hunk in hunks:
        kept.append([fit for fit in hunk.fits if hunk.changes(fit)[0] >= floor])
        if not kept[-1]:
            return False
        floor = min(hunk.changes(fit)[1] for fit in kept[-1])
    ceiling = max((hunk.changes(fit)[1] for hunk in hunks for fit in hunk.fits), default=0)
    for hunk, fits in zip(reversed(hunks), reversed(kept), strict=True):
        fits[:] = [fit for fit in fits if hunk.changes(fit)[1] <= ceiling]
        if not fits:
            return False
        ceiling = max(hunk.changes(fit)[0] for fit in fits)
    for hunk, fits in zip(hunks, kept, strict=True):
        hunk.fits = fits
    return True


def _numbered(lines: FileLines, hunks: list[PlacedHunk], index: int) -> Place | None:
    """Return the fit that a hunk's line number names, moved as far as its neighbours were found moved.

    None if they were moved differently, or if what its header names besides is elsewhere.
    """
    said = hunks[index].said
    if said.old_start is None:
        return None
    both = (map(_shift, reversed(hunks[:index])), map(_shift, hunks[index + 1 :]))
    near = (next((shift for shift in each if shift is not None), None) for each in both)
    moved = [shift for shift in near if shift is not None]
    if not said.is_counted and any(moved) and (len(moved) < 2 or moved[0] != moved[1]):
        return None  # its numbers are as wrong as its counts
    named = {said.old_start - 1 + shift for shift in moved or [0, hunks[index].shift]}
    found = [fit for fit in hunks[index].fits if fit.start in named]
    for name in said.sections:
        found = hunks[index].within(lines, name, found)
    return found[0] if len(found) == 1 else None


def _shift(hunk: PlacedHunk) -> int | None:
    if len(hunk.fits) != 1 or hunk.said.old_start is None or not hunk.has_text:
        return None
    return hunk.fits[0].start - (hunk.said.old_start - 1)


def _within_section(lines: FileLines, hunks: list[PlacedHunk], index: int) -> Place | None:
    """Return the only fit within what the text after a hunk's @@ names."""
    fits = hunks[index].fits
    for name in hunks[index].said.sections:
        fits = hunks[index].within(lines, name, fits) or fits
    return fits[0] if len(fits) == 1 else None


def _applied_at(lines: FileLines, hunk: PlacedHunk) -> int | None:
    """Return where a hunk's new side is already: at its place, or where it can't be by chance."""
    count = len(hunk.new)
    if hunk.done_at is not None:
        return hunk.done_at
    if hunk.fits:
        start, end = hunk.fits[0].start, hunk.fits[0].start + hunk.fits[0].count
        starts = [*([start] if hunk.lead else []), *([end - count] if hunk.trail else [])]
        adds = [text for mark, text in hunk.said.lines if mark == "+"]
        starts = starts if hunk.only_adds and (hunk.is_one_sided or _says_enough(adds)) else []
    else:
        gone = {text.strip() for mark, text in hunk.said.lines if mark == "-"} - {""}
        gone -= {*map(str.strip, hunk.new)}
        starts = lines.starts(hunk.new) if _says_enough(hunk.new) else []
        is_doubtful = len(starts) > 1 and not (gone and gone.isdisjoint(lines.bare_counts.keys()))
        starts = [] if is_doubtful or (gone and gone <= lines.bare_counts.keys()) else starts
        starts += [hunk.said.new_start - 1] if hunk.said.new_start and hunk.new else []
    sides = ((at, lines[at : at + count]) for at in starts if at >= 0)
    new = [*map(str.rstrip, hunk.new)]
    return next((at for at, there in sides if [*map(str.rstrip, there)] == new), None)


def _stands_at(lines: FileLines, hunk: PlacedHunk) -> int | None:
    """Return where a hunk's new side stands by its number or its end of the file, and its old side nowhere.

    Refuse one whose old side stands elsewhere: it may be done, or meant for that place.
    """
    said, count = hunk.said, len(hunk.new)
    if not (said.is_counted and said.new_start and said.old_start and count):
        return None
    ends = [0 if hunk.trail else len(lines) - count] if hunk.is_one_sided else []
    new = [*map(str.rstrip, hunk.new)]
    places = (at for at in (said.new_start - 1, *ends) if at >= 0)
    at = next((at for at in places if [*map(str.rstrip, lines[at : at + count])] == new), None)
    if at is None or any(fit.start in (at, said.old_start - 1 + hunk.shift) for fit in hunk.fits):
        return None
    for fit in hunk.fits:
        if fit.start < at or fit.start + fit.count > at + count:
            there = f"its new lines stand at line {at + 1}, and its old lines at line {fit.start + 1}"
            raise OperationError(f"{hunk.label} may be done already: {there}", advice=f"; {_MORE_LINES}")
    return at


def _says_enough(lines: list[str]) -> bool:
    """Return whether lines are hardly in a file by chance."""
    words = [line.strip() for line in lines if line.strip()]
    return len(words) > 1 and sum(map(len, words)) >= _APPLIED_FEWEST_CHARACTERS


# --- what goes there -------------------------------------------------------------------------------
def _put(lines: FileLines, hunk: PlacedHunk, fit: Place, path: str, *, is_shown: bool) -> Found:
    adds = iter(map(fit.change, [text for mark, text in hunk.said.lines if mark == "+"]))
    there = iter(lines[fit.start : fit.start + len(hunk.said.lines)])
    both = [(mark, next(adds if mark == "+" else there)) for mark, _ in hunk.said.lines]
    new = tuple(line for mark, line in both if mark != "-")
    ground = ReplacedLines(path, lines, fit.start, fit.start + fit.count, joined(hunk.old))
    _check(hunk, fit, new, ground, is_shown=is_shown)
    (first, end), head, tail = hunk.changes(fit), hunk.lead, hunk.trail
    # Where nothing goes, a line beside it is put there again: it has the line end that is to be had.
    above = below = 0
    if first == end:
        above, below = (1, 0) if head else (0, 1)
    start, last = first - above, end + below
    made = new[head - above : len(new) - tail + below]
    return Found(start, last - start, made, (above, below), end=hunk.said.end)


def _check(
    hunk: PlacedHunk, fit: Place, new: tuple[str, ...], ground: ReplacedLines, *, is_shown: bool
) -> None:
    """Refuse new lines that replace others by dots, or that may have been damaged on their way."""
    lines, said = ground.lines, hunk.said
    elided = None if said.is_counted else elisions.first_elision(hunk.new, lines.bare_counts.keys())
    if elided is not None:
        fact = f"{hunk.label} adds '{hunk.new[elided].strip()}', which stands for text that was left out"
        raise OperationError(fact, advice="; write that text")
    is_exact = said.is_verbatim and not fit.note
    if not said.is_verbatim:
        match.check_flush(SearchEdit(tuple(hunk.old), tuple(hunk.new), hunk.label), fit, lines)
    elif is_exact and not is_shown:
        indentation.check_kind(lines, [*set(new).difference(ground.replaced)], "REPLACE")
    adds = [text for mark, text in said.lines if mark == "+"]
    if is_exact and not characters.may_be_damaged("\n".join(adds)):
        return
    rules = body_rules.CHARACTERS if is_exact else body_rules.RULES
    is_kept = any(map(indentation.is_indented, hunk.old))
    case = BodyCase([*new], ground, chat_damage.BodyEvidence(in_code=said.is_verbatim or is_kept))
    try:
        case.apply(rules)
    except OperationError as fault:
        raise fault.but(advice=_MEANT) from None
    if case.lines != [*new]:
        how = f"; send it again with the characters that the file should contain{_MEANT}"
        raise OperationError(f"{hunk.label} looks damaged by the chat: {case.notes[-1]}", advice=how)


def _not_found(lines: FileLines, hunk: PlacedHunk) -> OperationError:
    if not hunk.old:
        return OperationError(
            f"{hunk.label} has no line of the old text, as for an empty file, and the file has text",
            advice="; add the lines around it",
        )
    return OperationError(
        f"{hunk.label} not found",
        nearest.nearest(lines, hunk.old),
        advice="; copy its context and its lines with - exactly as the file has them",
    )
