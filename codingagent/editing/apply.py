"""Apply an edit to a text, and show the lines that it changed.

How it works. A text is lines parted by "\\n"; a "\\r" before it belongs to the line end, and form feeds
and the like are characters. An edit works on whole lines and leaves all others as they are. Where a
search belongs is decided in `find`; it must fit one place only.
"""

import contextlib
import difflib
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from codingagent.editing import body_rules, diff_apply, edit_markers, match, nearest
from codingagent.editing.characters import ReplacedLines
from codingagent.editing.file_lines import FileLines, split
from codingagent.errors import OperationError
from codingagent.model import chat_damage
from codingagent.model.chat_damage import AS_IT_IS, UNHARMED, BodyEvidence, Channel, Damage
from codingagent.model.events import Hunk
from codingagent.model.operations import Diff, FileEnd, LineRange, Replacement, Substitution
from codingagent.model.paths import shown
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import joined, plural

OPEN = lazy_pattern(r"(<{7,}) SEARCH[ \t]*")
_HOW = "write <<<<<<< SEARCH, the lines exactly as in the file, =======, the new lines, >>>>>>> REPLACE"


class Edited(Struct, frozen=True):
    """A text after an edit, and what was changed in it."""

    text: str
    hunks: tuple[Hunk, ...]
    notes: tuple[str, ...]


# --- the body of an edit ---------------------------------------------------------------------------
def read_replacements(body: str) -> tuple[Replacement, ...]:
    """Read the SEARCH/REPLACE blocks of an edit: the markers of a block have one length, seven or more."""
    lines = split(body)
    bare = [line.rstrip(" \t") for line in lines]
    replacements: list[Replacement] = []
    at = 0
    while at < len(lines):
        if (opened := OPEN.fullmatch(bare[at])) is None:
            at += 1
            if bare[at - 1].strip():
                fact = f"Line {at} of the body is outside of SEARCH/REPLACE"
                raise OperationError(fact, advice=f"; {_HOW}")
            continue
        replacement, at = _read_replacement(lines, bare, at, len(opened[1]))
        replacements.append(replacement)
    if not replacements:
        raise OperationError("No SEARCH/REPLACE and no line numbers", advice=f"; {_HOW}")
    return tuple(replacements)


def _read_replacement(lines: list[str], bare: list[str], at: int, length: int) -> tuple[Replacement, int]:
    """Read the block that opens at `at`; return it and the index of the line after it.

    `bare` are the lines without the blanks at their ends.
    """
    close = next((i for i in range(at + 1, len(bare)) if bare[i] == ">" * length + " REPLACE"), None)
    inside = bare[at + 1 : close]
    if close is None or bare[at] in inside:
        fact = f"SEARCH at line {at + 1} of the body has no >>>>>>> REPLACE"
        raise OperationError(fact, advice=f"; {_HOW}")
    middles = [i for i, line in enumerate(inside, at + 1) if line == "=" * length]
    end = close
    if len(middles) == 2 and edit_markers.is_doubled(lines, at, middles[1], close):
        end = middles.pop()
    if len(middles) != 1:
        what = "more than one" if middles else "no"
        raise OperationError(
            f"SEARCH at line {at + 1} of the body has {what} line {'=' * length}",
            advice=";"
            " if the text itself contains such a line, make all three markers longer, of equal length",
        )
    search, new = lines[at + 1 : middles[0]], lines[middles[0] + 1 : end]
    return Replacement(joined(search), joined(new)), close + 1


_QUOTE_ENTITIES = {"&quot;": '"', "&#34;": '"', "&#39;": "'", "&#x27;": "'", "&apos;": "'"}
# A parameter of an address that has lost its name: `&lt=3` is read as an entity too.
_NAMELESS = lazy_pattern(r"://\S{1,500}?&(?:amp|lt|gt);=")


def mend_replacements(body: str) -> tuple[tuple[Replacement, ...], tuple[str, ...]]:
    """Read the body of SEARCH/REPLACE blocks, its markers damaged or not; return what it says, and notes.

    Markers in entities show what became of all of the body. It is decoded as a whole then, once, and
    refused where not all of it came so.
    """
    try:
        return read_replacements(body), ()
    except OperationError:
        bare, notes = body_rules.without_fence(split(body)), tuple[str, ...]()
        if bare is None and _with_markers(body) == body:
            raise
    if bare is not None:
        body, notes = joined(bare), (body_rules.FENCE_NOTE,)
    if chat_damage.has_encoded_marker(body):
        # All of it went through one serializer of HTML: nothing in it was left out.
        rest = chat_damage.ENTITY.sub("", body)
        is_partly = any(name in body and quote in rest for name, quote in _QUOTE_ENTITIES.items())
        if is_partly or any(c in rest for c in "<>&") or _NAMELESS.search(body):
            raise OperationError(
                "The markers of this edit came as HTML entities, and the lines between them only in part:"
                " nothing was done",
                advice="; send this block again in a code block",
            )
        body = chat_damage.without_entities(body)
        notes += (f"{Damage.ENTITIES.value} were undone in the body, as in its markers",)
    if (whole := _with_markers(body)) != body:
        notes += ("damaged SEARCH/REPLACE markers were read as such",)
    return read_replacements(whole), notes


def _with_markers(body: str) -> str:
    return "\n".join(edit_markers.marker_of(line) or line for line in body.split("\n"))


# --- applying --------------------------------------------------------------------------------------
def apply(
    change: LineRange | tuple[Replacement | LineRange, ...] | Diff,
    text: str,
    arrival: BodyEvidence | None = AS_IT_IS,
    earlier: Sequence[Hunk] = (),
    path: str = "",
    counted: str | None = None,
) -> Edited:
    """Return the text after the change; all of it is applied, or none (OperationError).

    `arrival` is how the change came through a chat; None: it is to be taken exactly. `earlier` is what edits
    of the same answer have put into the file, whose name, `path`, shows what it may hold. `counted` is the
    text in which the chat counts lines; None: all that is known is what the edits have moved.
    """
    lines = _Lines(text)
    if isinstance(change, Diff):
        return _apply_diff(change, lines, earlier, path)
    if not lines.raw:
        raise OperationError("The file is empty", advice="; write all of it with CREATE_FILE")
    parts = change if isinstance(change, tuple) else (change,)
    several = len(parts) > 1
    proven = _proven(parts, lines.lines) if several else UNHARMED
    hunks: list[Hunk] = []
    notes: list[str] = []
    moving, moved = [*earlier], 0
    lowest = min((hunk.old_start for hunk in earlier), default=len(lines.raw) + 1)
    shown = None if counted is None or several else split(counted.replace("\r\n", "\n"))
    for number, part in enumerate(parts, start=1):
        is_counted = isinstance(part, LineRange)
        label = f"SEARCH {number} of {len(parts)}" if several else "SEARCH"
        try:
            if isinstance(part, LineRange):
                label = f"lines {part.start_line}-{part.end_line}"
                below = part.end_line < lowest and shown is None
                place = _place_of(part, lines.lines, () if below else moving, shown)
                meant, told = _meant(part, place, lines.lines, moved)
                found = _by_number(meant, lines.lines, arrival, path)
                notes, moved = notes + [told] * bool(told), moved + bool(told)
            else:
                came = part.is_verbatim or (arrival is not None and arrival.in_code)
                both = (*split(part.search),), (*split(part.replace),)
                sought = match.SearchEdit(*both, label, arrival, proven, came, path)
                found = match.find(lines.lines, sought)
        except OperationError as fault:
            raise fault if is_counted and not several else _refused(fault, len(parts)) from None
        notes += [f"{label} {found.note}"] if found.note else []
        notes += found.notes if is_counted and not several else [f"{label}: {note}" for note in found.notes]
        hunks.append(lines.take(found))
        if found.count != len(found.new):
            moving.append(hunks[-1])
            lowest = min(lowest, found.start + 1)
    return Edited(lines.text(), _settled(hunks), tuple(notes))


def _by_number(part: LineRange, lines: FileLines, arrival: BodyEvidence | None, path: str) -> match.Found:
    start, end = part.start_line - 1, part.end_line
    if end > (total := len(lines)):
        raise OperationError(
            f"Invalid line range {part.start_line}-{end}: the file has {total} {plural(total, 'line')}",
            nearest.around(lines, [(min(part.start_line, total), total)]),
            advice="; use SEARCH/REPLACE, or read the file first",
        )
    body = body_rules.Body(part.text)
    if arrival is not None:
        body = body_rules.mend_lines(part.text, ReplacedLines(path, lines, start, end), arrival)
    return match.Found(start, end - start, (*split(body.text),), (0, 0), notes=body.notes)


def _apply_diff(diff: Diff, lines: "_Lines", earlier: Sequence[Hunk], path: str) -> Edited:
    if not lines.raw:
        if len(diff.hunks) > 1 or any(mark != "+" for mark, _ in diff.hunks[0].lines):
            raise OperationError("the file is empty", advice="; send it whole")
        lines = _Lines(joined(text for _, text in diff.hunks[0].lines))
        lines.finish(diff.hunks[0].end)
        return Edited(lines.text(), (Hunk(1, 0, 1, len(lines.raw)),), ())
    try:
        shifts = [shift_at(earlier, hunk.old_start or 1) for hunk in diff.hunks]
        puts, notes = diff_apply.apply(diff, lines.lines, shifts, path, is_ended=lines.is_ended)
    except OperationError as fault:
        raise _refused(fault, len(diff.hunks)) from None
    hunks = _settled([*map(lines.take, puts)])
    return Edited(lines.text(), hunks, notes)


def _refused(fault: OperationError, count: int) -> OperationError:
    # Seen in the wild: a model that sends only the failed one again, and loses the others.
    if count > 1:
        return fault.but(advice=f"; none of the {count} was applied: send all of them again")
    is_told = "again" in fault.advice
    return fault if is_told else fault.but(advice="; nothing was changed: send the edit again")


def _proven(change: Iterable[Replacement | LineRange], lines: FileLines) -> Channel:
    """Return the damage that searches show which fit the file only after it is undone."""
    proven: Channel = UNHARMED
    for part in change:
        search = [] if isinstance(part, LineRange) else split(part.search)
        if not search or lines.places(search):
            continue
        with contextlib.suppress(OperationError):
            proven |= match.find(lines, match.SearchEdit(tuple(search), ())).undone
    return proven


def excerpt(text: str, hunks: Iterable[Hunk]) -> str:
    """Show the first and the last line of each hunk and those around them, with their new numbers."""
    places = []
    for hunk in hunks:
        last = hunk.new_start + hunk.new_count - 1
        # The model has just written what is between.
        places += [(hunk.new_start, min(hunk.new_start, last)), (last, last)]
    return nearest.around(_Lines(text).lines, sorted(places))


def shift_at(hunks: Iterable[Hunk], line: int) -> int:
    """Return by how many lines earlier edits, in their order, have moved the text at `line`."""
    by = 0
    for hunk in hunks:
        if hunk.old_start <= line + by:
            by += hunk.new_count - hunk.old_count
    return by


class _Lines:
    """A text as lines; `raw` are the same, each still with its "\r". `is_ended`: the last one has an end."""

    def __init__(self, text: str) -> None:
        raw = text.split("\n")
        if is_ended := raw[-1] == "":
            raw.pop()
        self.is_ended = is_ended
        self.lines = FileLines(line.removesuffix("\r") for line in raw) if "\r" in text else FileLines(raw)
        self.raw = raw if "\r" in text else self.lines

    def text(self) -> str:
        return "\n".join(self.raw) + ("\n" if self.is_ended and self.raw else "")

    def take(self, found: match.Found) -> Hunk:
        """Put lines in the place of others; they get the line end that stood there."""
        start, count, new, (head, tail) = found.start, found.count, found.new, found.same
        end = start + count
        at_end = end == len(self.raw)
        if at_end and not self.is_ended:
            head = max(min(head, count - 1), 0)  # the last line may need an end now
        is_unended = start == len(self.raw) - 1 and not self.is_ended
        beside = self.raw[start - 1 if is_unended and start else start] if self.raw else ""
        made = [*new[head : len(new) - tail]]
        if self.raw is not self.lines:
            return_mark = "\r" * beside.endswith("\r")
            raw = self.raw[start + head : end - tail] = [f"{line}{return_mark}" for line in made]
            made = [line.removesuffix("\r") for line in raw]
        self.lines.put(start + head, end - tail, made)
        if at_end and not self.is_ended and count and self.raw:
            self._end_last(is_returned=False)
        self.finish(found.end)
        return Hunk(start + 1, count, start + 1, len(new))

    def _end_last(self, *, is_returned: bool) -> None:
        """Give the last line a "\r", or take it off."""
        if self.raw is not self.lines:
            self.raw[-1] = self.raw[-1].removesuffix("\r") + "\r" * is_returned

    def finish(self, end: FileEnd | None) -> None:
        if end in (None, "kept") or not self.raw or self.is_ended is (end == "ended"):
            return
        self.is_ended = end == "ended"
        self._end_last(is_returned=self.is_ended and len(self.raw) > 1 and self.raw[-2].endswith("\r"))


def _settled(hunks: Sequence[Hunk]) -> tuple[Hunk, ...]:
    """Return the hunks of edits, each with its place after all of them."""
    starts: list[int] = []
    for hunk in hunks:
        if by := hunk.new_count - hunk.old_count:
            at = hunk.old_start
            starts = [max(1, start + by) if start > at else start for start in starts]
        starts.append(hunk.new_start)
    return tuple(replace(hunk, new_start=at) for hunk, at in zip(hunks, starts, strict=True))


# --- which lines numbers mean -----------------------------------------------------------------------
# Specification 003 counts in the file as it stands. Models count in what they were shown, and forget that
# their own edits and commands have moved the lines. Where these are two places, the new lines show which is
# meant, or nobody knows.

# Comparing takes time that grows with the square.
_COMPARED_CHARACTERS = 1_000
_LIKE, _LIKER = 0.6, 0.25
# To tell which lines each of so many means takes seconds.
_OTHERS = 200
_MOVED = "lines have moved since the chat was shown them: {} of the edit was taken as {}"
# A shorter line may be anywhere.
_TELLING = 3
Span = tuple[int, int]
"""Indexes of lines: the first, and the one behind the last."""


def _place_of(
    change: LineRange, now: Sequence[str], hunks: Iterable[Hunk], shown: Sequence[str] | None
) -> Span | None:
    """Return where the lines are now that an edit's numbers mean in the text that was shown; None: nowhere.

    Where that text is not known, the edits count that have moved lines, in their order.
    """
    start, end = change.start_line - 1, change.end_line
    if shown is not None:
        return _moved(shown, now, start, end)
    for hunk in hunks:
        first = hunk.old_start - 1
        if start < first + hunk.old_count and first < end:
            return None
        by = hunk.new_count - hunk.old_count if first < end else 0
        start, end = start + by, end + by
    return start, end


def _meant(change: LineRange, place: Span | None, now: Sequence[str], others: int) -> tuple[LineRange, str]:
    """Return an edit with the numbers of the lines that it means now, and a note if they had moved.

    `place` is where the lines are that the chat was shown, `now` all of the file. OperationError if its new
    lines do not show which of two places is meant, or too many `others` of the same change have moved.
    """
    start, end = change.start_line - 1, change.end_line
    if place == (start, end):
        return change, ""
    if others >= _OTHERS:
        fact = f"more than {_OTHERS} edits count lines that others have moved"
        raise OperationError(fact, advice="; send them from the bottom of the file up")
    spans = [each for each in ((start, end), place) if each is not None and each[1] <= len(now)]
    if not spans:
        return change, ""
    found = sorted(((_likeness(change, now, each), each) for each in spans), reverse=True)
    (most, best), (less, _) = (*found, (0, spans[0]))[:2]
    is_only = place is not None and len(spans) == 1
    if not is_only and (most < _LIKE or most - less < _LIKER):
        raise OperationError(
            f"its lines have moved meanwhile: {_named(start, end)} may be two places",
            nearest.around([*now], sorted((first + 1, last) for first, last in spans)),
            advice="; send this edit again, with SEARCH/REPLACE or with the numbers of now",
        )
    if best == (start, end):
        return change, _MOVED.format(_named(start, end), "it is now")
    moved = replace(change, start_line=best[0] + 1, end_line=best[1])
    return moved, _MOVED.format(_named(start, end), f"{_named(*best)} of now")


def _named(start: int, end: int) -> str:
    return f"line {end}" if end - start == 1 else f"lines {start + 1}-{end}"


def _moved(shown: Sequence[str], now: Sequence[str], start: int, end: int) -> Span | None:
    """Return where lines are now, or as many in their place; None if neither is."""
    if end > len(shown):  # the shown text has no such lines
        return start, end
    before, after = 0, len(now) - len(shown)
    for _, a, last, b, _ in (step for step in nearest.steps(shown, now) if step[0] == "equal"):
        if a >= end:
            after = b - a
            break
        before = b - a
        if a <= start and end <= last:
            after = before
            break
    return (start + before, end + before) if before == after else None


def _likeness(change: LineRange, now: Sequence[str], place: Span) -> float:
    """Return how like the lines in a place new ones are."""
    new, (start, end) = split(change.text), place
    old = [line.strip() for line in now[start:end] if line.strip()]
    bare = [line.strip() for line in new]
    if new and (
        (bare[0] and new[:1] == now[max(start - 1, 0) : start])
        or (bare[-1] and new[-1:] == now[end : end + 1])
    ):
        return 0  # the file would have that line twice
    shared = sum(line in bare for line in old if len(line) > _TELLING)
    # What is new stands most often behind what was there.
    was, *both = ("\n".join(lines)[:_COMPARED_CHARACTERS] for lines in (old, bare, bare[: len(old)]))
    ratio = (
        max(difflib.SequenceMatcher(None, was, each, autojunk=False).ratio() for each in both) if was else 0
    )
    return 1 if 2 * shared >= len(old) > 0 else ratio


# --- substitutions ----------------------------------------------------------------------------------

# So many edits of so many characters take some seconds: each is searched for from the start, and makes
# a new text.
_WORK_LIMIT = 2 * 10**10
_LINE = lazy_pattern(".*\n|.+")


def substitute(substitutions: Sequence[Substitution], text: str) -> Edited:
    """Return the text after replacing the first occurrence of each, in order, all or none.

    Specification 001, editFile. The one hunk is whatever lines have changed.
    """
    if len(substitutions) * len(text) > _WORK_LIMIT:
        fact = f"{len(substitutions)} edits are too many for a file of {len(text)} characters"
        raise OperationError(fact, advice="; replace the whole file")
    new = text
    for index, substitution in enumerate(substitutions):
        where = f"edits[{index}].oldContent"
        if not substitution.old:
            fact = f"{where} is empty; nothing was changed"
            raise OperationError(fact, advice=": give the text to replace")
        at = new.find(substitution.old)
        if at < 0:
            old, how = substitution.old, ": read the file and copy its text exactly"
            folded = old.replace("\r\n", "\n")
            if "\r\n" in new and "\n" in old and folded in new.replace("\r\n", "\n"):
                how = ": the file's lines end in \\r\\n, write them so"
            raise OperationError(f"{where} not found: '{shown(old)}'; nothing was changed", advice=how)
        new = f"{new[:at]}{substitution.new}{new[at + len(substitution.old) :]}"
    before, after = (_LINE.findall(each) for each in (text, new))
    head, tail = nearest.common_ends(before, after)
    start, same = head + 1, head + tail
    hunk = Hunk(start, len(before) - same, start, len(after) - same)
    return Edited(new, (hunk,) if new != text else (), ())
