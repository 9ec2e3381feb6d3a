"""Indentation that new lines have lost, or changed, on their way: what proves it, and what it was.

How it works. A new line that is in the file with another indentation, and with its own nowhere, has
moved. Whether a chat has moved it, or the answer, shows in how all of them have moved: a chat takes all
indentation, or leaves one blank of it, or makes blanks of tabs. Python is read with and without it.
"""

import difflib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from codingagent.editing import file_kinds
from codingagent.editing.characters import Ground, MendedLines
from codingagent.editing.levels import (
    CLOSER,
    check_kind,
    depth,
    has_levels,
    is_opener,
    is_out,
    lacks_levels,
    last_line,
)
from codingagent.errors import OperationError
from codingagent.model.chat_damage import Arrival, Kept
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import blanks
from codingagent.model.rule import Rule

LIKENESS = 0.6
_COMPARED_CHARACTERS = 300
TAB_WIDTHS = (2, 3, 4, 8)
# Aligning takes time that grows with the square.
_ALIGNED_LIMIT_LINES = 2000


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
    return difflib.SequenceMatcher(None, *pair, autojunk=False).ratio() >= LIKENESS


def restore(new: list[str], ground: Ground, arrival: Arrival) -> MendedLines:
    """Return new lines with the indentation that the lines they replace prove; refuse them if it is lost."""
    if not any(line.strip() for line in new):
        return MendedLines(new)
    moves = _Moves(new, ground, arrival)
    for rule in RULES if moves.old_leads else RULES[-1:]:
        if (found := rule.run(moves)) is not None:
            return found
    _check_kind_of_part(moves)
    if _is_odd_at_the_margin(moves):
        aligned = _aligned(new, list(ground.replaced))
        what = "the body is not indented, unlike the lines that it replaces or stands between"
        if aligned is None:
            raise moves.refusal(what)
        return moves.undone(aligned, what) or MendedLines(new)
    return MendedLines(new)


def _check_kind_of_part(moves: "_Moves") -> None:
    """Refuse spaces where the code of the file is indented by tabs alone, and tabs where by spaces."""
    ground = moves.ground
    # Most lines are indented as those that they replace.
    is_alike = {lead[:1] for lead in moves.leads} <= {"", *(lead[:1] for lead in moves.old_leads)}
    if is_alike or len(ground.replaced) == len(ground.lines) or file_kinds.is_prose(moves.path):
        return
    there = file_kinds.lines_of_text(ground.lines, moves.path)
    code = [line for index, line in enumerate(ground.lines) if index not in there]
    text = ground.text_among(moves.new)
    new = [line for index, line in enumerate(moves.new) if index not in text]
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
    if len(old) > _ALIGNED_LIMIT_LINES or len(new) > _ALIGNED_LIMIT_LINES:
        return False
    for _, a, a_end, b, b_end in _steps(old, new):
        there = [line for line in old[a:a_end] if line.strip()] or [
            *last_line([*ground.lines[: ground.start], *old[:a]]),
            *last_line([*old[a_end:], *ground.lines[ground.end :]][::-1]),
        ]
        if any(is_out(line, there) for line in new[b:b_end]):
            return True
    return lacks_levels(ground, new)


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
        known = {line.rstrip() for line in self.ground.lines}
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
            line[:1].isspace() and line.rstrip() in self._there.get(_key(line), ())
            for line in self.new
        )

    @property
    def path(self) -> str:
        return self.ground.path

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
    if has_tabs == any("\t" in lead for lead in moves.leads) or (has_tabs and moves.has_kept):
        return None
    what = f"the indentation came as {'spaces' if has_tabs else 'tabs'}"
    width = _width(moves.moved)
    if not width:
        return None
    if not has_tabs:
        return moves.undone([to_blanks(width, line) for line in moves.new], what)
    tabbed = [to_tabs(width, line) for line in moves.new]
    if None in tabbed:
        raise moves.refusal(what)
    return moves.undone([line for line in tabbed if line is not None], what)


def _width(moved: list[tuple[str, set[str]]]) -> int:
    """Return how many blanks replace a tab in lines that are known; 0 if they do not all agree."""
    for width in TAB_WIDTHS if moved else ():
        if all(
            spread(line, width) in {spread(each, width) for each in there} for line, there in moved
        ):
            return width
    return 0


def _lost(moves: _Moves) -> MendedLines | None:
    """No line is indented by more than a blank, and those that they replace are."""
    deepest = max(map(len, moves.leads))
    if deepest > 1 or any("\t" in lead for lead in moves.leads) or moves.has_kept:
        return None
    if max(map(depth, moves.old_leads)) <= deepest:
        return None
    # Nobody indents by one blank what was deeper.
    if moves.parses is True and not (deepest == 1 and moves.moved and any(moves.fresh)):
        return None
    if not _is_certainly_lost(moves, is_thin=deepest == 1):
        return None
    what = "the body has lost its indentation"
    aligned = _aligned(moves.new, list(moves.ground.replaced))
    # Two blanks before a remark may have become one, too.
    if aligned is None or (deepest == 1 and any(map(_REMARK.search, moves.fresh))):
        raise moves.refusal(what)
    return moves.undone(aligned, what)


_REMARK = lazy_pattern(r"\S (?:#|//|--) ")


def _is_certainly_lost(moves: _Moves, *, is_thin: bool) -> bool:
    deeper = [a for a, there in moves.moved if any(depth(b) > depth(a) for b in there)]
    is_inside = all(moves.old_leads)
    if moves.parses is False:
        return bool(deeper) or is_inside
    if moves.arrival.in_code:
        return is_thin and bool(deeper)
    if file_kinds.is_prose(moves.path):
        if is_thin and deeper:
            return True
        # Lines of a text that only move are meant to; to move and to rewrite them is rare.
        if (deeper or _are_alike(moves)) and any(map(str.strip, moves.fresh)):
            raise moves.refusal("the body is not indented, unlike the lines that it replaces")
        return False
    if deeper and (is_thin or is_inside or has_levels(moves.new)):
        return True
    in_text = 0 in moves.ground.text_among(moves.new)
    if _are_alike(moves):
        return not in_text or (is_inside and file_kinds.is_code(moves.path))
    if not is_inside or in_text:
        return False
    # A label and what is for a preprocessor may be at the margin.
    is_structured = file_kinds.is_code(moves.path) or file_kinds.is_indented(moves.path)
    words = [line for line in moves.new if line.strip()]
    return is_structured and not all(line.startswith("#") or line.endswith(":") for line in words)


def _are_alike(moves: _Moves) -> bool:
    """Return whether each new line takes the place of one that says the same in other words."""
    old = [line for line in moves.ground.replaced if line.strip()]
    new = [line for line in moves.new if line.strip()]
    pairs = zip(old, new, strict=False)
    return len(old) == len(new) and all(is_alike(a.strip(), b.strip()) for a, b in pairs)


def _aligned(new: list[str], old: list[str]) -> list[str] | None:
    """Return new lines with the indentation of the old ones whose place they take; None if unknown."""
    if max(len(new), len(old)) > _ALIGNED_LIMIT_LINES:
        return None
    leads = {blanks(line) for line in old if line.strip()}
    uniform = leads.pop() if len(leads) == 1 and _are_of_one_level(old, new) else None
    out: list[str] = []
    for kind, a, a_end, b, b_end in _steps(old, new):
        if kind == "equal":
            if any(o.strip() != n.strip() for o, n in zip(old[a:a_end], new[b:b_end], strict=True)):
                return None  # blanks within lines are gone, too
            out += [o if o.strip() else n for o, n in zip(old[a:a_end], new[b:b_end], strict=True)]
            continue
        pairs = zip(old[a:a_end], new[b:b_end], strict=True) if a_end - a == b_end - b else None
        for line in new[b:b_end]:
            before = next(pairs)[0] if pairs is not None else ""
            if not line.strip():
                out.append("")
            elif before.strip() and is_alike(before.strip(), line.strip()):
                out.append(blanks(before) + line.strip())
            elif uniform is not None:
                out.append(uniform + line.strip())
            else:
                return None
    return out


def _are_of_one_level(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether no line begins or ends a level, or goes on in the next: all end as those in the file."""
    words = [line.rstrip() for line in new if line.strip()]
    ends = {line.rstrip()[-1] for line in old if line.strip()}
    is_odd = any(is_opener(line) or CLOSER.match(line) for line in words)
    return not is_odd and all(line[-1] in ends for line in words)


def _steps(old: list[str], new: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    keys = list(map(_key, old)), list(map(_key, new))
    yield from difflib.SequenceMatcher(None, *keys, autojunk=False).get_opcodes()


def _shifted(moves: _Moves) -> MendedLines | None:
    """Every line deeper by the same, where no file of the kind can be so."""
    shift = min(moves.leads, key=len)
    if not shift or not all(lead.startswith(shift) for lead in moves.leads):
        return None
    back = [line.removeprefix(shift) for line in moves.new]
    was_deep = all(moves.old_leads) and bool(moves.old_leads)
    if moves.parses is False and not was_deep and moves.ground.parses_with(back):
        return moves.undone(back, "the body was indented")
    if len(moves.ground.replaced) != len(moves.ground.lines):
        if _is_too_deep(moves, shift) and not moves.arrival.in_code:
            raise moves.refusal("the body is deeper than the lines that it replaces")
        return None
    if not moves.ground.lines and file_kinds.is_code(moves.path) and moves.parses is not True:
        return moves.undone(back, "the body was indented")
    if not file_kinds.is_program(moves.path) or not moves.moved:
        return None
    if all(any(shift + each == line for each in there) for line, there in moves.moved):
        return moves.undone(back, "the body was indented")
    return None


def _is_too_deep(moves: _Moves, shift: str) -> bool:
    """Return whether new lines are deeper than any that may follow the line before them."""
    ground = moves.ground
    if not file_kinds.is_code(moves.path):
        return False
    extra = {line.removesuffix(each) for line, there in moves.moved for each in there}
    least = min(map(len, moves.old_leads), default=0)
    if len(extra) == 1 and any(map(str.strip, moves.fresh)):
        more = extra.pop()
        return more.isspace() and len(shift) >= least + len(more)
    if moves.parses is not None:
        return False
    is_no_deeper = min(map(len, moves.old_leads), default=99) >= len(shift)
    if is_no_deeper or 0 in ground.text_among(moves.new):
        return False
    ends, old_ends = (
        [*last_line(part[::-1]), *last_line(part)] for part in (moves.new, ground.replaced)
    )
    if ends[0] != ends[1] and list(map(_key, ends)) == list(map(_key, old_ends)):
        deeper = all(depth(a) > depth(b) for a, b in zip(ends, old_ends, strict=True))
        return deeper and len(moves.leads) > 2 and any(map(str.strip, moves.fresh))
    before, first = last_line(ground.lines[: ground.start])[0], last_line(moves.new[::-1])[0]
    step = depth(first) - depth(before)
    within = file_kinds.lines_of_text(ground.lines, moves.path)
    words = [line for i, line in enumerate(ground.lines) if line.strip() and i not in within]
    steps = [depth(b) - depth(a) for a, b in pairwise(words)]
    return step > max(steps, default=0) or (step > 0 and first.lstrip()[:1] in ")]}")


RULES: tuple[Rule[Callable[[_Moves], MendedLines | None]], ...] = (
    Rule("tabs or blanks", "the indentation came as {kind}", _tabs),
    Rule("lost indentation", "the body has lost its indentation", _lost),
    Rule("deeper by the same", "the body was indented", _shifted),
)
