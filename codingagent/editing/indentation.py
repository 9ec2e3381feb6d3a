"""Indentation that new lines have lost, or changed, on their way: what proves it, and what it was.

How it works. A new line that is in the file with another indentation, and with its own nowhere, has
moved. Tabs that came as blanks, or blanks as tabs, are restored. Lines that have lost their indentation,
or are all deeper, are refused where the file shows it, or Python can't be read with them.
"""

import difflib
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise

from codingagent.editing import file_kinds
from codingagent.editing.characters import BodyCase, ReplacedLines
from codingagent.errors import OperationError
from codingagent.model.chat_damage import Rule
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import blanks

_LIKENESS = 0.6
_COMPARED_CHARACTERS = 300
TAB_WIDTHS = (2, 3, 4, 8)
_STARS = ("/*", "* ", "*", "*/")
CLOSER = lazy_pattern(
    r"\s*(?:[)}\]]|</|(?:end|fi|done|else|elif|elsif|elseif|except|finally|until|esac|case|default)\b)"
)
_OPENER = lazy_pattern(r"(?:[{(\[:]|\b(?:then|do))[ \t]*$|(?<!include )<[a-z][^<>/]*>[ \t]*$")
_STARRED = lazy_pattern(r"[ \t]*(?:/?\*+(?:[ \t!]|$)|//)")


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


def restore(case: BodyCase) -> list[str] | None:
    """Return new lines with the tabs that the replaced lines prove; refuse them if indentation is lost."""
    if not any(line.strip() for line in case.lines):
        return None
    moves = _Moves(case)
    for rule in RULES if moves.old_leads else RULES[1:]:
        if (found := rule.run(moves)) is not None:
            return found
    _check_kind_of_part(moves)
    return None


def _check_kind_of_part(moves: "_Moves") -> None:
    """Refuse spaces where the code of the file is indented by tabs alone, and tabs where by spaces."""
    ground = moves.ground
    if not ground.lines.has("\t") and not any(lead.startswith("\t") for lead in moves.leads):
        return
    if len(ground.replaced) == len(ground.lines) or file_kinds.is_prose(ground.path):
        return
    there = ground.text_there
    code = ground.lines.once("code", lambda lines: [x for i, x in enumerate(lines) if i not in there])
    text = ground.text_among(moves.new)
    new = [line for index, line in enumerate(moves.new) if index not in text]
    old = [line for index, line in enumerate(ground.replaced, ground.start) if index not in there]
    # Most lines are indented as those that they replace.
    if not {blanks(line)[:1] for line in new} <= {"", *(blanks(line)[:1] for line in old)}:
        check_kind(code, new, "the body")


class _Moves:
    def __init__(self, case: BodyCase) -> None:
        self.case = case
        self.new = case.lines
        self.ground = case.ground
        self.leads = [blanks(line) for line in self.new if line.strip()]
        self.old_leads = [blanks(line) for line in self.ground.replaced if line.strip()]

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
        known = self.ground.lines.once("ends", lambda lines: frozenset(map(str.rstrip, lines)))
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

    def undone(self, new: list[str], what: str) -> list[str] | None:
        """Return what was restored; None if the edit changes nothing else: the move is meant."""
        if list(map(_key, new)) == list(map(_key, self.ground.replaced)):
            return None
        if self.ground.parses_with(new) is False:
            raise self.refusal(what)
        how = "as in the file" if self.ground.lines else "because no such file begins so"
        self.case.say(f"{what}: it was restored {how}")
        return new

    def refusal(self, what: str) -> OperationError:
        how = "send this block again in a code block"
        if self.case.arrival.in_code:
            how = "write each line with its intended indentation"
        why = f"{what}, and the indentation of some new lines is unknown"
        return OperationError(f"{why}. Nothing was done", advice=f"; {how}")


def _key(line: str) -> str:
    return " ".join(line.split())


def _tabs(moves: _Moves) -> list[str] | None:
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


def own_indentation(new: Sequence[str], ground: ReplacedLines) -> dict[int, bool]:
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


def _lost(moves: _Moves) -> None:
    """Refuse lines of which none is indented by more than a blank, where others of the file are."""
    ground, what = moves.ground, "the body has lost its indentation"
    is_flat = len({*moves.leads}) == 1 < len(moves.leads) and has_levels(moves.new) and moves.parses is None
    has_all = ground.lines.once("levels", lambda lines: any(map(is_opener, lines)) and not has_levels(lines))
    if is_flat and has_all and not file_kinds.is_prose(ground.path):
        raise moves.refusal(what)
    if not ground.lines.once("deep", lambda lines: any(map(is_indented, lines))):
        return
    # A comment's lines with stars are one blank deep.
    bare = [line for line in moves.new if line.strip() and line.lstrip()[:2] not in _STARS]
    deepest = max(map(depth, bare), default=9)
    if deepest > 1 or moves.has_kept or moves.is_all_that_changes:
        return
    below = filter(str.strip, ground.lines[ground.end :] if not moves.old_leads else ())
    there = moves.old_leads or [*map(blanks, (_line_above(ground), next(below, "")))]
    is_inside = max(map(depth, there)) > 1 and all(there)
    deeper = any(depth(b) > depth(a) for a, there in moves.moved for b in there)
    is_rewritten = any(map(str.strip, moves.fresh))
    if moves.case.arrival.in_code and not (moves.parses is False and (deeper or is_inside)):
        return
    if file_kinds.is_prose(ground.path) or moves.parses:
        # Lines of a text that only move are meant to; to move and to rewrite them is rare.
        is_lost = (deeper or is_inside) and is_rewritten
    else:
        is_lost = deeper or is_inside or deepest == 1 or has_levels([_line_above(ground), *moves.new])
    if is_lost:
        raise moves.refusal(what)


def _shifted(moves: _Moves) -> None:
    """Refuse lines that are all deeper by the same, where no file of the kind can be so."""
    shift = min(moves.leads, key=len)
    if not shift or not all(lead.startswith(shift) for lead in moves.leads):
        return
    ground = moves.ground
    if moves.is_all_that_changes or len(shift) <= min(map(len, moves.old_leads), default=0):
        return
    if moves.case.arrival.in_code and moves.parses is not False:
        return
    extra = {line.removesuffix(each) for line, there in moves.moved for each in there}
    is_odd = moves.parses is False or (len(extra) == 1 and any(map(str.strip, moves.fresh)))
    is_known = moves.parses is not None or not file_kinds.is_code(ground.path)
    if not (is_odd or is_known or 0 in ground.text_among(moves.new)):
        first = next(filter(str.strip, moves.new), "")
        widest = 0 if CLOSER.match(first) else ground.lines.once("step", _widest_step)
        is_odd = depth(first) - depth(_line_above(ground)) > widest
    if is_odd:
        raise moves.refusal("the body is indented")


def _widest_step(lines: Sequence[str]) -> int:
    depths = map(depth, filter(str.strip, lines))
    return max((b - a for a, b in pairwise(depths)), default=0)


RULES: tuple[Rule[Callable[[_Moves], list[str] | None]], ...] = (
    Rule("tabs or blanks", "the indentation came as {kind}", _tabs),
    Rule("lost indentation", "the body has lost its indentation", _lost),
    Rule("deeper by the same", "the body is indented", _shifted),
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


def _line_above(ground: ReplacedLines) -> str:
    above = (ground.lines[at] for at in range(ground.start - 1, -1, -1))
    return next(filter(str.strip, above), "")


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
