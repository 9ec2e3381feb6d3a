"""Damage to the characters of new lines: what proves it, and what is only text that may be meant.

How it works. Each row of `chat_damage` that would change the lines needs its proof: a line that is in
the file once the damage is undone, and not before; tags of the same answer with that damage; or
a kind of file that can't hold what it left. What is proven is undone, if all of it must be damage, and
else asked for again. What nothing proves is taken as written.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Literal, NoReturn

from msgspec import Struct, field

from codingagent.editing import file_kinds, file_lines, syntax_check
from codingagent.errors import OperationError
from codingagent.model import chat_damage, citations, plain_text
from codingagent.model.chat_damage import ROWS, BodyEvidence, Channel, Damage, DamageRow, Rule
from codingagent.model.patterns import lazy_pattern

Says = Literal["keep", "undo", "ask"]
"""What to do with text that looks damaged."""


class ReplacedLines(Struct, dict=True):
    """The lines of a file that new lines replace, or the place of new ones."""

    path: str
    lines: file_lines.FileLines = field(default_factory=file_lines.FileLines)
    start: int = 0
    end: int = 0
    spared: str = ""
    """Text that came with the new lines, and is as the file has it."""
    replaced: list[str] = []

    def __post_init__(self) -> None:
        self.replaced = self.lines[self.start : self.end]

    @property
    def known(self) -> frozenset[str]:
        """The lines of the file that can't be in a text by chance."""
        return self.lines.once("known", lambda lines: frozenset(x for x in lines if len(x.strip()) > 3))

    @property
    def text_there(self) -> frozenset[int]:
        """The indexes of lines of the file that begin within a string or comment of several lines."""
        return self.lines.once("text", lambda lines: file_kinds.lines_of_text(lines, self.path))

    @cached_property
    def parses(self) -> bool | None:
        """Return whether the file is valid now; a new file has nothing against it."""
        if not self.lines and syntax_check.is_known(self.path):
            return True
        return self._is_valid(self.lines)

    def parses_with(self, new: Sequence[str]) -> bool | None:
        """Return whether the file is valid with the new lines; None where that can't be told."""
        if self.parses is not True:
            return None
        return self._is_valid([*self.lines[: self.start], *new, *self.lines[self.end :]])

    def _is_valid(self, lines: Sequence[str]) -> bool | None:
        if not syntax_check.is_known(self.path, lines[0] if lines else "") or not self.lines.may_parse():
            return None
        return syntax_check.parses(self.path, plain_text.joined(lines))

    def text_among(self, new: Sequence[str]) -> frozenset[int]:
        """Return the indexes of new lines that begin within a string or comment of several lines."""
        state = self.lines.state_before(self.start, self.path)
        return file_kinds.lines_of_text(new, self.path, state)

    def has(self, lines: Iterable[str]) -> bool:
        return not self.known.isdisjoint(lines)


class BodyCase(Struct):
    """A body under repair: each rule may change its lines and say so."""

    lines: list[str]
    ground: ReplacedLines
    arrival: BodyEvidence
    notes: list[str] = field(default_factory=list)

    def apply(self, rules: "Sequence[Rule[BodyRule]]") -> None:
        for rule in rules:
            if (lines := rule.run(self)) is not None:
                self.lines = lines
                if "{" not in rule.said:  # else the rule itself has said what differs
                    self.say(rule.said)

    @property
    def path(self) -> str:
        return self.ground.path

    @property
    def is_whole(self) -> bool:
        """Return whether the body is all that the file will hold."""
        return len(self.ground.replaced) == len(self.ground.lines)

    def say(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def refuse(self, what: str) -> NoReturn:
        meant, fenced = " with the characters that the file should contain", " in a code block"
        fact = f"The body looks damaged by the chat: {what}. Nothing was done"
        raise OperationError(
            fact, advice=f"; send this block again{meant if self.arrival.in_code else fenced}"
        )

    def is_proven(self, undone: Sequence[str]) -> bool:
        """Return whether lines are in the file after something is undone, and none of them before."""
        return self.ground.has(undone) and not self.ground.has(self.lines)


BodyRule = Callable[[BodyCase], list[str] | None]
"""Returns the lines as they were meant; None if it does not change them."""


def mend(case: BodyCase) -> list[str] | None:
    """Return new lines without the damage to their characters that is proven; refuse what is lost by it."""
    # The signs of an input method where only code can be.
    new, ground, text = case.lines, case.ground, "\n".join(case.lines)
    if not text.isascii() and _WIDE.search(text):
        fresh = ["" if line in ground.known else line for line in new]
        within = ground.text_among(new)
        is_new = _WIDE.search("\n".join(fresh)) is not None
        if is_new and file_kinds.cannot_hold(_WIDE, fresh, ground.path, within):
            case.refuse("it contains full-width punctuation, which no such file has")
    for row in ROWS if may_be_damaged(text) else ():
        undone = [row.undo(line) for line in new]
        if row.damage is Damage.CITATIONS:
            undone = row.undo("\n".join(new)).split("\n")
        if undone == new:
            continue
        look = _Look(row, new, undone, ground)
        if any(mark in ground.spared for mark in look.targets):
            continue
        says, why = _verdict(look, case.arrival.way)
        if says == "ask":
            case.refuse(f"it contains {row.damage.value}, {why}")
        if says == "keep" and why:
            case.say(why)
        if says == "undo":
            pairs, new = zip(new, look.undone, strict=True), look.undone
            if row.damage is Damage.CITATIONS:  # a line of nothing else goes
                new = [line for was, line in pairs if line.strip() or not was.strip()]
            case.say(f"{row.damage.value} were undone in the body, {why}")
    return None if new is case.lines else new


# In a line that has no other letters than ASCII.
_LETTER = r"[\t\x20-\x7e\uff01-\uff5e]"
_WIDE = lazy_pattern(rf"^(?=[^\n]*[（），；：｛｝＝＂！＜＞＋＊．]){_LETTER}+$", re.MULTILINE)


class _Look:
    """What can be known of one damage in some new lines."""

    def __init__(self, row: DamageRow, new: list[str], undone: list[str], ground: ReplacedLines) -> None:
        self.row = row
        self.new = new
        self.undone = undone
        self.ground = ground
        self.path = ground.path
        self.changed = [i for i, line in enumerate(new) if line != undone[i]]

    @cached_property
    def stands_so(self) -> bool:
        """Whether a line with such marks is in the file: then they are meant."""
        return self.ground.has(self.new[i] for i in self.changed)

    @cached_property
    def stands_undone(self) -> bool:
        """Whether a line is in the file as it is without them."""
        if self.ground.has(self.undone[i] for i in self.changed):
            return True
        is_lead = self.row.trace is chat_damage.LEADING_BLANK
        if not is_lead or self.ground.lines.has(self.row.trace):
            return False
        leads = [lead for lead in map(plain_text.blanks, self.ground.replaced) if lead][:1]
        return leads == [plain_text.blanks(self.undone[i]) for i in self.changed[:1]]

    @cached_property
    def is_all_that_changes(self) -> bool:
        """Whether nothing would be changed if they were damage."""
        return self.undone == list(self.ground.replaced)

    @cached_property
    def targets(self) -> frozenset[str]:
        """The plain characters that the marks replace."""
        text = "\n".join(self.new)
        marks = {found[0] for found in self.row.trace.finditer(text)}
        return frozenset(self.row.undo(mark) for mark in marks) - {"", " "}

    @cached_property
    def is_throughout(self) -> bool:
        """Whether nothing was spared that the damage would have changed."""
        if not self.row.plain:
            return True
        rest = self.row.trace.sub("", "\n".join(line.lstrip() for line in self.new))
        if self.row.damage is Damage.BLANKS:
            return " " not in rest
        sought = self.targets & frozenset(self.row.plain)
        if self.row.damage is Damage.ENTITIES:
            if not any(map(str.isascii, self.targets)):
                return True  # letters of other scripts
            sought |= frozenset("<>&")
        return bool(sought) and not any(mark in rest for mark in sought)

    @cached_property
    def is_impossible(self) -> bool:
        """Whether a file of this kind can't hold them at these places, or is not likely to."""
        damage, trace, path, file = self.row.damage, self.row.trace, self.path, self.ground.lines
        if trace is chat_damage.LEADING_BLANK:
            return self._is_odd_indentation()
        parses = self.ground.parses_with(self.new)
        if parses is False and self.ground.parses_with(self.undone):
            return True
        whole = "\n".join(self.new)
        if file_kinds.is_prose(path):
            # Not even text for people has such list marks.
            is_mark = damage is Damage.HYPHENS and "-" not in whole and _LIST_MARK.search(whole)
            return bool(is_mark) or (damage in _NOT_IN_CODE and self._is_in_code_of_text())
        if damage is Damage.UNDERSCORES and file_kinds.is_python(path) and _ESCAPED_IN_STRING.search(whole):
            return True
        if damage in _ESCAPES:
            return parses is not True and self._is_escaped_code()
        # `a &lt; b` is Python, too.
        if parses is not True or damage is Damage.ENTITIES:
            text, there = self.ground.text_among(self.new), self.ground.text_there
            if file_kinds.cannot_hold(trace, self.new, path, text):
                # The file may have such marks already where only code can be.
                return not file.once(
                    (trace, "in code"), lambda lines: file_kinds.cannot_hold(trace, lines, path, there)
                )
        is_whole = len(self.ground.replaced) == len(self.ground.lines)
        if damage is Damage.ENTITIES and is_whole and "<" not in whole and _ENCODED_TAG.search(whole):
            return True
        trace = _ODD_THERE.get(damage, trace)
        if damage not in _ODD_THERE or not file_kinds.is_program(path) or not trace.search(whole, 1):
            return False
        if damage is Damage.ENTITIES and (
            file_kinds.is_markup(path) or file_kinds.is_code(path) or not self.is_throughout
        ):
            return False
        return not file.has(self.row.trace)

    def _is_escaped_code(self) -> bool:
        """Whether each bracket and each backslash is escaped: a part of a pattern has some that is not."""
        text, text_trace = "\n".join(self.new), self.row.trace
        pairs, rest = chat_damage.ESCAPE.findall(text), chat_damage.ESCAPE.sub("", text)
        if {"[", "\\"} <= {*pairs} and not any(mark in rest for mark in "[]\\"):
            return True
        within = self.ground.text_among(self.new)
        if text_trace is chat_damage.ESCAPE or not file_kinds.is_code(self.path):
            is_odd = file_kinds.is_makefile(self.path) and _ESCAPED_NAME.search(text, 1) is not None
            return is_odd and not self.ground.lines.has(_ESCAPED_NAME)
        # Undone, an escape in a string would end it; regular expressions are full of them.
        within |= {i for i, line in enumerate(self.new) if "/" in line}
        return file_kinds.cannot_hold(text_trace, self.new, self.path, within)

    def _is_in_code_of_text(self) -> bool:
        code = "\n".join(found[1] for found in _CODE_IN_TEXT.finditer("\n".join(self.new)))
        return self.row.trace.search(code) is not None and not any(c in code for c in self.targets)

    def _is_odd_indentation(self) -> bool:
        if self.ground.lines.has(self.row.trace) or self.ground.parses_with(self.new) is True:
            return False
        changed = [self.new[i] for i in self.changed]
        if file_kinds.is_markup(self.path) and all("&nbsp;" in line for line in changed):
            return False
        # Nobody types U+00A0 there.
        is_typed = all("\u3000" in line or "&" in line[:6] for line in changed)
        return not is_typed or file_kinds.is_program(self.path) or self.ground.lines.has(_INDENTED)


# Code of a text for people, but of the languages that may hold both.
_CODE_IN_TEXT = lazy_pattern(
    r"^ {0,3}(?:```|~~~)(?!text|plain|html|xml|svg|md|markdown)\w+[ \t]*\n(.*?)^ {0,3}(?:```|~~~)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
# Only whole files: a chat that has encoded one has left no tag in it.
_ENCODED_TAG = lazy_pattern(r"&lt;(?:/|!doctype|!--|\?)", re.IGNORECASE)
# Joiners and soft hyphens are meant where people write words; these are not, in a program.
_ODD_THERE = {
    Damage.ZERO_WIDTH: lazy_pattern("[\u200b\u2060\ufeff]"),
    Damage.HYPHENS: chat_damage.HYPHEN,
    Damage.ENTITIES: lazy_pattern(r"&(?:[lg]t|quot|#\w+);|&amp;(?:&amp;|$| )", re.MULTILINE),
}
# Python takes this for a backslash, and warns of it.
_ESCAPED_IN_STRING = lazy_pattern(
    r"""(?<![rR"'])(?<![rR][bBfF])(?:"(?:[^"\\\n]|\\[^_\n])*|'(?:[^'\\\n]|\\[^_\n])*)\\_"""
)
_ESCAPED_NAME = lazy_pattern(r"[A-Za-z]\\_[A-Za-z]")
_LIST_MARK = lazy_pattern("^[ \t]*[\u2010\u2011] ", re.MULTILINE)
_NOT_IN_CODE = (Damage.ENTITIES, Damage.QUOTES)
_INDENTED = lazy_pattern("^  ")
_ESCAPES = frozenset((Damage.ESCAPES, Damage.UNDERSCORES))
# The others were seen in no chat, or authors write them, too: they are asked for again.
_UNDONE = frozenset((*_ESCAPES, Damage.ENTITIES, Damage.BLANKS))


def _verdict(look: _Look, way: Channel) -> tuple[Says, str]:
    """Return what to do, and the proof or why there is none."""
    damage = look.row.damage
    if damage is Damage.CITATIONS:
        return _of_citations(look, way)
    if damage is Damage.DIRECTION:
        return _of_direction(look, is_in_tags=damage in way)
    if damage in way or (damage is Damage.ENTITIES and Damage.ANGLES in way):
        return _by_tags(look, way)
    # The tags may have escapes of another extent.
    is_other = damage in _ESCAPES and not _ESCAPES.isdisjoint(way)
    if look.stands_so or look.is_all_that_changes or is_other:
        return "keep", ""
    may_undo = damage in _UNDONE and "\u3000" not in "".join(look.new)
    if look.stands_undone and look.is_throughout:
        may_be_meant = file_kinds.is_prose(look.path) and damage is not Damage.BLANKS
        return "undo" if may_undo and not may_be_meant else "ask", "where lines of the file have none"
    if look.is_impossible:
        return "ask", "which no such file has"
    return "keep", ""


def _of_citations(look: _Look, way: Channel) -> tuple[Says, str]:
    """Return what to do with marks of what a chat cites.

    One that only a chat writes is taken off unless the text handles such marks. One that a person may type is
    never taken off: a program with one is asked for again, and a text for people is written so.
    """
    text, path = "\n".join(look.new), look.path
    forms = [f for f in citations.forms_in(text) if citations.pattern_of((f,)).search(text)]
    pattern = citations.pattern_of(tuple(forms))
    marks = list(pattern.finditer(text))
    is_prose = file_kinds.is_prose(path) or file_kinds.ending(path) in ("tex", "bib")
    # Only without them the file is valid.
    is_broken = look.ground.parses_with(look.new) is False and look.ground.parses_with(look.undone)
    is_handled = _are_handled(text, marks, pattern)
    is_known = look.ground.lines.has(pattern)
    # A mark that nobody types proves the others of its chat.
    sure = {form.chat for form in forms if not form.is_typed}
    others = {form.chat for form in forms if form.is_typed} - sure
    if sure and not (is_handled or is_known) and (not others or is_broken):
        return "undo", "which no author writes"
    is_odd = bool(sure) or (any(form.is_named for form in forms) and not is_handled)
    is_odd &= not (is_known or is_prose or (not sure and file_kinds.is_markup(path)))
    is_odd |= bool(sure and others and not (is_known or is_handled))
    if look.stands_undone and not (look.stands_so or look.is_all_that_changes):
        is_odd = True
    shown = f"'{marks[0][0].strip()[:40]}'"
    if is_odd or is_broken or Damage.CITATIONS in way:
        return "ask", f"{shown}, which might be intended"
    # People write the others so, and a program slices.
    doubt = f", {plain_text.DOUBT}" * any(form.is_named for form in forms)
    return "keep", f"it holds what may be a citation mark of the chat ({shown}){doubt}"


# A program that looks for such marks, or tries what does, says one of these beside them.
_HANDLES = lazy_pattern(
    r"(?i)(?<![a-z])cit(?:e|ing|ation)s?(?![a-z])|oaicite|contentReference|[†\ue200]|【\d|utm_source"
)
_WORKS = lazy_pattern(r"(?i)(?:strip|clean|sanit\w*|remove|assert|\bre\.\w+|\bsub)\b[^\"']{0,40}[\"']")
_QUOTES = frozenset("\"'`/«»“”‘’")


def _are_handled(text: str, marks: Sequence[re.Match[str]], pattern: re.Pattern[str]) -> bool:
    """Return whether a text is about such marks: it speaks of them, quotes one, or works on a string."""
    if _HANDLES.search(pattern.sub("", text)):
        return True
    beside = ({text[m.start() - 1 : m.start()], text[m.end() : m.end() + 1]} for m in marks)
    worked = (_WORKS.search(line) for line in text.split("\n") if pattern.search(line))
    return any(each <= _QUOTES for each in beside) or any(worked)


def _of_direction(look: _Look, *, is_in_tags: bool) -> tuple[Says, str]:
    """Return what to do with direction marks before lines; within a line they are the text's own."""
    if look.stands_so or look.ground.lines.has(look.row.trace):
        return "keep", ""
    words = [line for line in look.new if line.strip()]
    is_proven = len(words) > 1 or look.stands_undone or is_in_tags
    if is_proven and all(map(look.row.trace.search, words)):
        return "undo", "before each of its lines"
    is_odd = bool(look.ground.lines) and not look.is_all_that_changes
    if file_kinds.is_program(look.path):
        # No text begins so outside of a string.
        text = look.ground.text_among(look.new)
        first = (look.new[i].lstrip() for i in look.changed if i not in text)
        is_odd = look.stands_undone or any(map(chat_damage.TURN.match, first))
    return ("ask", "before some of its lines") if is_odd else ("keep", "")


def _by_tags(look: _Look, way: Channel) -> tuple[Says, str]:
    """Return what the tags of the answer, or the markers of an edit in it, prove of a body."""
    damage, text = look.row.damage, "\n".join(look.new)
    why = f"as in {'edits of this answer' if damage not in way else 'the tags of this answer'}"
    if look.row.trace is chat_damage.LEADING_BLANK:
        return "keep", ""  # all blanks are damaged, or none
    match damage:
        case Damage.ENTITIES:
            rest, undone = chat_damage.ENTITY.sub("", text), "\n".join(look.undone)
            if damage in way and '"' in rest:
                return "keep", ""  # it would have been encoded with the tags
            is_twice = not any(c in undone for c in "<>") and ("&lt;" in undone or "&gt;" in undone)
            is_sure = look.is_throughout and not is_twice
        case Damage.ESCAPES | Damage.UNDERSCORES:
            if chat_damage.is_spared_by_escapes(text):
                return "keep", ""
            is_sure = damage is Damage.UNDERSCORES or chat_damage.is_escaped_throughout(text)
            is_sure = (is_sure and look.is_throughout) or look.stands_undone
        case Damage.BLANKS:
            # Not one ordinary blank is left in it: all of them were changed.
            is_sure = " " not in text
        case _:
            if not look.is_throughout and (look.stands_so or not look.is_impossible):
                return "keep", ""
            is_sure = False
    return ("undo", why) if is_sure else ("ask", f"{why}, and they might be intended")


def may_be_damaged(text: str) -> bool:
    """Return whether a text holds any character that a chat makes of another; most hold none."""
    is_odd = not text.isascii() or "&" in text or "\\" in text or "http" in text
    return is_odd or bool(citations.forms_in(text))
