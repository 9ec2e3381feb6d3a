"""Indentation that new lines have lost, or changed, on their way: what proves it, and what it was.

How it works. A new line that is in the file with another indentation, and with its own nowhere, has
moved. Whether a chat has moved it, or the answer, shows in how all of them have moved: a chat takes all
indentation, or leaves one blank of it, or makes blanks of tabs. Python is read with and without it. Tabs
and one shift of all lines are restored; lines that may have lost their indentation are refused, where the
file shows that they have one.
"""

import difflib
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise

from codingagent.editing import file_kinds
from codingagent.editing.characters import Ground, MendedLines
from codingagent.editing.nearest import steps
from codingagent.errors import OperationError
from codingagent.model.chat_damage import Arrival, Kept, Rule
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import blanks

_LIKENESS = 0.6
_COMPARED_CHARACTERS = 300
TAB_WIDTHS = (2, 3, 4, 8)
_ITEM = lazy_pattern(r"\s*([-*+]|\d{1,3}[.)])[ \t]+\S")
CLOSER = lazy_pattern(
    r"\s*(?:[)}\]]|</|(?:end|fi|done|else|elif|elsif|elseif|except|finally|until|esac|case|default)\b)"
)
_OPENER = lazy_pattern(r"(?:[{(\[:]|\b(?:then|do))[ \t]*$|<[a-z][^<>/]*>[ \t]*$")
_STARRED = lazy_pattern(r"[ \t]*(?:/?\*+(?:[ \t!]|$)|//)")
_COMMENT = lazy_pattern(r"/\*(?!.*\*/)")
_MOSTLY = 0.7
_CUT_COLUMN = 40
_STATEMENT_END = lazy_pattern(r"[;{}()\[\],:\\]$")


def spread(line: str, width: int) -> str:
    """Return a line with blanks for the tabs at its start, without those at its end."""
    lead = blanks(line)
    return lead.replace("\t", " " * width) + line[len(lead) :].rstrip() if lead else line.rstrip()


def to_tabs(width: int, line: str) -> str | None:
    """Return a line with tabs for the blanks at its start; None if they are no whole number of tabs."""
    lead = blanks(line)
    # The stars of a comment's lines are one blank deeper than its first.
    rest = 1 if len(lead) % width == 1 and line[len(lead) :].startswith("*") else 0
    if (len(lead) - rest) % width or "\t" in lead:
        return None
    return "\t" * (len(lead) // width) + line[len(lead) - rest :]


def to_blanks(width: int, line: str) -> str:
    return blanks(line).replace("\t", " " * width) + line[len(blanks(line)) :]


def is_alike(one: str, other: str) -> bool:
    """Return whether two lines say the same in other words."""
    pair = (one[:_COMPARED_CHARACTERS], other[:_COMPARED_CHARACTERS])
    return difflib.SequenceMatcher(None, *pair, autojunk=False).ratio() >= _LIKENESS


def restore(new: list[str], ground: Ground, arrival: Arrival) -> MendedLines:
    """Return new lines with the indentation that the lines they replace prove; refuse them if it is lost."""
    if not any(line.strip() for line in new):
        return MendedLines(new)
    moves = _Moves(new, ground, arrival)
    for rule in RULES if moves.old_leads else RULES[-1:]:
        if (found := rule.run(moves)) is not None:
            return found
    _check_kind_of_part(moves)
    if _is_odd_at_the_margin(moves) and not moves.is_all_that_changes:
        what = "the body is not indented, unlike the lines that it replaces or stands between"
        raise moves.refusal(what)
    return MendedLines(new)


def _check_kind_of_part(moves: "_Moves") -> None:
    """Refuse spaces where the code of the file is indented by tabs alone, and tabs where by spaces."""
    ground = moves.ground
    if len(ground.replaced) == len(ground.lines) or file_kinds.is_prose(ground.path):
        return
    if not ground.file.has("\t") and not any(lead.startswith("\t") for lead in moves.leads):
        return
    there = ground.text_there
    code = ground.file.once("code", lambda lines: [x for i, x in enumerate(lines) if i not in there])
    text = ground.text_among(moves.new)
    new = [line for index, line in enumerate(moves.new) if index not in text]
    old = [line for index, line in enumerate(ground.replaced, ground.start) if index not in there]
    # Most lines are indented as those that they replace.
    if not {blanks(line)[:1] for line in new} <= {"", *(blanks(line)[:1] for line in old)}:
        check_kind(code, new, "the body")


def _is_odd_at_the_margin(moves: "_Moves") -> bool:
    """Return whether new lines begin at the margin where the file shows that such lines do not.

    Only where no line of the answer shows that its indentation was kept.
    """
    ground, arrival = moves.ground, moves.arrival
    if len(ground.replaced) == len(ground.lines) or arrival.in_code:
        return False
    if Kept.INDENTATION in arrival.kept or max(map(depth, moves.leads)) > 1:
        return False
    old, new = list(ground.replaced), moves.new
    for _, a, a_end, b, b_end in steps([*map(_key, old)], [*map(_key, new)]):
        there = [line for line in old[a:a_end] if line.strip()] or [
            _last_line(old[:a]) or _line_above(ground),
            _last_line(old[a_end:][::-1]) or _line_below(ground),
        ]
        if any(_is_out(line, there) for line in new[b:b_end]):
            return True
    return _lacks_levels(ground, new)


class _Moves:
    def __init__(self, new: list[str], ground: Ground, arrival: Arrival) -> None:
        self.new = new
        self.ground = ground
        self.arrival = arrival
        self.leads = [blanks(line) for line in new if line.strip()]
        self.old_leads = [blanks(line) for line in ground.replaced if line.strip()]

    @cached_property
    def _there(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for line in self.ground.replaced:
            if len(line.strip()) > 3:
                found.setdefault(_key(line), set()).add(line.rstrip())
        return found

    @cached_property
    def moved(self) -> list[tuple[str, set[str]]]:
        """New lines that are among the replaced ones, but nowhere with their indentation."""
        pairs = ((line.rstrip(), self._there.get(_key(line))) for line in self.new)
        known = self.ground.file.once("ends", lambda lines: frozenset(map(str.rstrip, lines)))
        return [(line, there) for line, there in pairs if there and line not in known]

    @property
    def fresh(self) -> list[str]:
        """New lines that are not among the replaced ones, whatever their indentation."""
        known = set(map(_key, self.ground.replaced))
        return [line for line in self.new if _key(line) not in known]

    @cached_property
    def has_kept(self) -> bool:
        """Whether a new line is among the replaced ones as it is, and is indented."""
        return any(
            line[:1].isspace() and line.rstrip() in self._there.get(_key(line), ()) for line in self.new
        )

    @cached_property
    def is_all_that_changes(self) -> bool:
        """Whether nothing but the indentation changes: then the answer has moved the lines."""
        return [*map(str.strip, self.new)] == [*map(str.strip, self.ground.replaced)]

    @cached_property
    def parses(self) -> bool | None:
        return self.ground.parses_with(self.new)

    def undone(self, new: list[str], what: str) -> MendedLines | None:
        """Return what was restored; None if the edit changes nothing else: the move is meant."""
        if list(map(_key, new)) == list(map(_key, self.ground.replaced)):
            return None
        if self.ground.parses_with(new) is False:
            raise self.refusal(what)
        how = "as in the file" if self.ground.lines else "because no such file begins so"
        return MendedLines(new, (f"{what}: it was restored {how}",))

    def refusal(self, what: str) -> OperationError:
        how = "send this block again in a code block"
        if self.arrival.in_code:
            how = "write each line with its intended indentation"
        why = f"{what}, and the indentation of some new lines is unknown"
        return OperationError(f"{why}. Nothing was done", advice=f"; {how}")


def _key(line: str) -> str:
    return " ".join(line.split())


def _tabs(moves: _Moves) -> MendedLines | None:
    """Tabs that came as blanks, or blanks as tabs: each line that is known shows by how many."""
    has_tabs = any("\t" in lead for lead in moves.old_leads)
    if has_tabs == any("\t" in lead for lead in moves.leads):
        return None
    own = own_indentation(moves.new, moves.ground)
    known = {line.rstrip() for line in moves.ground.replaced}
    kept = (i for i, line in enumerate(moves.new) if line[:1] == " " and line.rstrip() in known)
    if has_tabs and any(i not in own for i in kept):
        return None
    what = f"the indentation came as {'spaces' if has_tabs else 'tabs'}"

    def fits(width: int) -> bool:
        return all(
            spread(line, width) in {spread(each, width) for each in there} for line, there in moves.moved
        )

    width = next(filter(fits, TAB_WIDTHS), 0) if moves.moved else 0
    if not width:
        return None
    undo = partial(to_tabs if has_tabs else to_blanks, width)
    undone = [line if own.get(index) else undo(line) for index, line in enumerate(moves.new)]
    if None in undone or False in own.values():
        raise moves.refusal(what)
    return moves.undone([line for line in undone if line is not None], what)


def own_indentation(new: Sequence[str], ground: Ground) -> dict[int, bool]:
    """Return the lines in strings whose tabs or blanks are their own, by index; False: that is not known.

    A string may be indented otherwise than its program, as YAML in Go: the others of the file show it.
    """
    if not file_kinds.is_program(ground.path):
        return {}
    there = ground.text_there
    inner = (line for i, line in enumerate(ground.lines) if i in there and not _STARRED.match(line))
    kinds, known = {blanks(line)[:1] for line in inner} - {""}, frozenset(ground.lines)
    found: dict[int, bool] = {}
    for i in ground.text_among(new):
        kind = blanks(new[i])[:1] if i < len(new) and not _STARRED.match(new[i]) else ""
        if kind and (new[i] in known or kind in kinds or not kinds):
            found[i] = new[i] in known or kinds == {kind}
    return found


def _lost(moves: _Moves) -> MendedLines | None:
    """No line is indented by more than a blank, and those that they replace are."""
    deepest = max(map(len, moves.leads))
    if deepest > 1 or any("\t" in lead for lead in moves.leads) or moves.has_kept:
        return None
    if max(map(depth, moves.old_leads)) <= deepest or moves.is_all_that_changes:
        return None
    # Nobody indents by one blank what was deeper.
    if moves.parses is True and not (deepest == 1 and moves.moved and any(moves.fresh)):
        return None
    if _is_certainly_lost(moves, is_thin=deepest == 1):
        raise moves.refusal("the body has lost its indentation")
    return None


def _is_certainly_lost(moves: _Moves, *, is_thin: bool) -> bool:
    deeper = [a for a, there in moves.moved if any(depth(b) > depth(a) for b in there)]
    is_inside = all(moves.old_leads)
    if moves.parses is False:
        return bool(deeper) or is_inside
    if moves.arrival.in_code:
        return is_thin and bool(deeper)
    if file_kinds.is_prose(moves.ground.path):
        # Lines of a text that only move are meant to; to move and to rewrite them is rare.
        is_rewritten = (deeper or _are_alike(moves)) and any(map(str.strip, moves.fresh))
        return bool(is_thin and deeper) or is_rewritten
    if deeper and (is_thin or is_inside or has_levels(moves.new)):
        return True
    words = [line for line in moves.new if line.strip()]
    # A label and what is for a preprocessor may be at the margin.
    may_be_there = all(line.startswith("#") or line.endswith(":") for line in words)
    is_in_place = _are_alike(moves) or (is_inside and not may_be_there)
    return is_in_place and 0 not in moves.ground.text_among(moves.new)


def _are_alike(moves: _Moves) -> bool:
    """Return whether each new line takes the place of one that says the same in other words."""
    old = [line for line in moves.ground.replaced if line.strip()]
    new = [line for line in moves.new if line.strip()]
    pairs = zip(old, new, strict=False)
    return len(old) == len(new) and all(is_alike(a.strip(), b.strip()) for a, b in pairs)


def _shifted(moves: _Moves) -> MendedLines | None:
    """Every line deeper by the same, where no file of the kind can be so."""
    shift = min(moves.leads, key=len)
    if not shift or not all(lead.startswith(shift) for lead in moves.leads):
        return None
    back = [line.removeprefix(shift) for line in moves.new]
    was_deep = all(moves.old_leads) and bool(moves.old_leads)
    if not was_deep and moves.parses is False and moves.ground.parses_with(back):
        return moves.undone(back, "the body was indented")
    if len(moves.ground.replaced) != len(moves.ground.lines):
        if _is_too_deep(moves, shift) and not moves.arrival.in_code:
            raise moves.refusal("the body is deeper than the lines that it replaces")
        return None
    if moves.ground.lines:
        pairs = moves.moved if file_kinds.is_program(moves.ground.path) else []
        is_odd = bool(pairs) and all(any(shift + each == line for each in there) for line, there in pairs)
    else:
        is_odd = file_kinds.is_code(moves.ground.path) and moves.parses is not True
    return moves.undone(back, "the body was indented") if is_odd else None


def _is_too_deep(moves: _Moves, shift: str) -> bool:
    """Return whether new lines are deeper than any that may follow the line before them."""
    ground = moves.ground
    if not file_kinds.is_code(moves.ground.path):
        return False
    extra = {line.removesuffix(each) for line, there in moves.moved for each in there}
    least = min(map(len, moves.old_leads), default=0)
    if len(extra) == 1 and any(map(str.strip, moves.fresh)):
        more = extra.pop()
        return more.isspace() and len(shift) >= least + len(more)
    is_no_deeper = min(map(len, moves.old_leads), default=99) >= len(shift)
    if is_no_deeper or moves.parses is not None or 0 in ground.text_among(moves.new):
        return False
    before, first = _line_above(ground), _last_line(moves.new[::-1])
    step = depth(first) - depth(before)
    within = ground.text_there

    def widest(lines: Sequence[str]) -> int:
        depths = [depth(line) for i, line in enumerate(lines) if line.strip() and i not in within]
        return max((b - a for a, b in pairwise(depths)), default=0)

    return step > ground.file.once("step", widest) or (step > 0 and first.lstrip()[:1] in ")]}")


RULES: tuple[Rule[Callable[[_Moves], MendedLines | None]], ...] = (
    Rule("tabs or blanks", "the indentation came as {kind}", _tabs),
    Rule("lost indentation", "the body has lost its indentation", _lost),
    Rule("deeper by the same", "the body was indented", _shifted),
)


# --- levels: what begins one, and whether new lines are as deep as the file shows ---------------------
def depth(line: str) -> int:
    """Return how deep a line is: a tab is deeper than a blank."""
    return len(blanks(line).replace("\t", "    "))


def has_levels(lines: Sequence[str]) -> bool:
    """Return whether a line opens a level, and the next that has a word is not deeper."""
    words = [line for line in lines if line.strip()]
    return any(
        is_opener(a) and not CLOSER.match(b) and len(blanks(b)) <= len(blanks(a)) for a, b in pairwise(words)
    )


def is_opener(line: str) -> bool:
    return _OPENER.search(line) is not None


def is_cut(new: Sequence[str], ground: Ground) -> bool:
    """Return whether a long line was broken at a blank, and goes on at the margin.

    All breaks must be at one column that no line goes beyond, as where a chat wraps lines.
    """
    if not file_kinds.is_code(ground.path):
        return False
    breaks = {
        index: len(a) + 1 + len(b.split()[0])
        for index, (a, b) in enumerate(pairwise(new), 1)
        if a[:1].isspace() and b[:1].strip() and len(a) > _CUT_COLUMN
        if not (CLOSER.match(b) or b[0] == "#" or _STATEMENT_END.search(a) or b in ground.replaced)
    }
    if not breaks or ground.parses is not None:
        return False
    text = ground.text_among(new)
    ends = [end for index, end in breaks.items() if index not in text and index - 1 not in text]
    widest = max((len(line) for line in new if " " in line.strip()), default=0)
    return widest < min(ends, default=0)


def is_cut_from_file(new: Sequence[str], ground: Ground) -> bool:
    """Return whether a long line that is replaced was broken at a blank, and goes on at the margin.

    No line goes beyond a column where one was broken. What is broken on purpose goes on indented.
    """
    known = {" ".join(line.split()) for line in ground.replaced if len(line) > _CUT_COLUMN}
    if not known or not file_kinds.is_program(ground.path):
        return False
    starts = {line[:_CUT_COLUMN] for line in known}
    widest = max((len(line) for line in new if " " in line.strip()), default=0)
    for index, (a, b) in enumerate(pairwise(new), 1):
        if len(a) <= _CUT_COLUMN or not a[0].isspace() or not b[:1].strip() or b in ground.replaced:
            continue
        words = " ".join(a.split())
        # In a string of several lines such a break is no fault of the grammar.
        is_start = words[:_CUT_COLUMN] in starts and words not in known and index in ground.text_among(new)
        is_joined = f"{words} {' '.join(b.split())}" in known
        if (is_start or is_joined) and widest < len(a) + 1 + len(b.split()[0]):
            return True
    return False


def _last_line(lines: Sequence[str]) -> str:
    """Return the last line with a word; empty if there is none."""
    return next((line for line in reversed(lines) if line.strip()), "")


def _line_above(ground: Ground) -> str:
    above = (ground.lines[at] for at in range(ground.start - 1, -1, -1))
    return next(filter(str.strip, above), "")


def _line_below(ground: Ground) -> str:
    below = (ground.lines[at] for at in range(ground.end, len(ground.lines)))
    return next(filter(str.strip, below), "")


def _is_out(line: str, there: Sequence[str]) -> bool:
    """Return whether a line is less deep than all of some others; a label and a `#if` may be."""
    if not line.strip() or line.startswith("#") or line.endswith(":"):
        return False
    if (item := _ITEM.match(line)) is not None:
        # An item beside others like it.
        like = [each for each in there if (a := _ITEM.match(each)) and a[1] == item[1]]
        there = like or there
    return bool(there) and all(depth(each) > depth(line) for each in there)


def _lacks_levels(ground: Ground, new: Sequence[str]) -> bool:
    """Return whether a new line opens a level and the next is not as deep as any such line of the file."""
    known = set(ground.replaced)
    lines = [_line_above(ground), *new]
    for opener in (_opens_level, _opens_comment):
        fresh = [level for level in _levels(lines, opener) if level[1] not in known]
        if not fresh:
            continue
        there = ground.file.once(opener, partial(_levels, opener=opener))
        deeper = {step for _, _, step in there if step > 0}
        flat = [line for line, _, step in there if step <= 0]
        steps = {step for line, _, step in fresh if line not in flat}
        if len(flat) < (1 - _MOSTLY) * len(there) and not steps <= deeper:
            return True
    return False


def _opens_level(line: str) -> bool:
    return is_opener(line) and not _STARRED.match(line)


def _opens_comment(line: str) -> bool:
    return _COMMENT.search(line) is not None


def _levels(lines: Sequence[str], opener: Callable[[str], bool]) -> list[tuple[str, str, int]]:
    """Return each line that opens a level, the one behind it, and by how much that is deeper."""
    words = [line for line in lines if line.strip()]
    return [
        (a, b, depth(b) - depth(a))
        for a, b in pairwise(words)
        if opener(a) and not CLOSER.match(b) and b[0] != "#"
    ]


def is_indented(line: str) -> bool:
    """Return whether a line has an indentation that a chat would have taken."""
    return line.startswith(("  ", "\t")) and bool(line.strip())


def check_kind(lines: Sequence[str], new: Sequence[str], what: str) -> None:
    """Refuse lines that are indented as no line of the file is: by blanks where it has tabs alone."""
    kinds = {"tabs": "\t", "spaces": "  "}

    def has(some: Sequence[str], kind: str) -> bool:
        return any(line.startswith(kinds[kind]) and line.strip() for line in some)

    for came, usual in (("spaces", "tabs"), ("tabs", "spaces")):
        if has(new, came) and not has(lines, came) and has(lines, usual):
            raise OperationError(
                f"the file is indented with {usual} and {what} with {came}",
                advice=f"; write it with {usual}; if it is intended, send it with"
                ' until="TOKEN" and close it with [/EDIT_FILE TOKEN]',
            )
