"""Rules that undo damage to a block's body: around it, before its lines, inside them.

Each rule has its proof: the lines on disk that the body replaces, the kind of the file, or the tags of the
same answer. What looks like damage and has no proof is written as it came, and the result says so; what is
certainly damaged, and can't be known, is asked for again.
"""

import re
from collections.abc import Callable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from codingagent.editing import (
    blank_lines,
    characters,
    fences,
    file_kinds,
    indentation,
    levels,
    shapes,
)
from codingagent.editing.characters import Ground
from codingagent.editing.places import split
from codingagent.model import chat_damage
from codingagent.model.chat_damage import Arrival, Damage, Kept
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import blanks, joined
from codingagent.model.rule import Rule

_NUMBERED = lazy_pattern(r"[ \t]*(\d+)(?: ?(\||│|:|→)|(\t))")
# No value of a mapping begins so.
_NESTED = lazy_pattern(r"[ \t]*\d+:(?: {2,}[^#\s]| ?$)")
_RECIPE = lazy_pattern(
    r"^[^\s#:=][^:=\n]*:(?!=)[^=\n]*(?<!\\)\n(?: +\S|[@-]?(?:\$\(|\w[^:=\n]*$)(?!.*[:=]))",
    re.MULTILINE,
)


class BodyCase(Struct):
    """A body under repair: each rule may change its lines and say so."""

    lines: list[str]
    ground: Ground
    arrival: Arrival
    notes: list[str] = field(default_factory=list)

    def apply(self, rules: "Sequence[Rule[BodyRule]]") -> None:
        for rule in rules:
            if (lines := rule.run(self)) is not None:
                self.lines = lines
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

    def refuse(self, what: str) -> None:
        raise characters.refusal(what, self.arrival)

    def is_proven(self, undone: Sequence[str]) -> bool:
        """Return whether lines are in the file after something is undone, and none of them before."""
        return self.ground.has(undone) and not self.ground.has(self.lines)


BodyRule = Callable[[BodyCase], list[str] | None]
"""Returns the lines as they were meant; None if it does not change them."""


def _fence(case: BodyCase, *, is_first: bool = True) -> list[str] | None:
    if not fences.is_marked_up(joined(case.lines)):
        return None
    bare = fences.without_fence(joined(case.lines))
    if (lines := None if bare is None else split(bare)) is not None and _wraps(case, lines):
        # In there no chat has escaped anything.
        way = case.arrival.way - {Damage.ESCAPES, Damage.UNDERSCORES}
        case.arrival = replace(case.arrival, way=way, in_code=True, is_spaced=False)
        case.lines = lines
        # A label may be above a fence.
        return (_fence(case, is_first=False) if is_first else None) or lines
    if (rest := _without_extra_fence(case)) is not None:
        return rest
    if lines is not None and fences.is_one_fence(case.lines):
        case.say("the body is one code fence from its first line to its last, and was written so")
    is_program = case.is_whole and file_kinds.is_program(case.path)
    if lines is None and is_program and fences.is_fence(_first_line(case.lines)):
        case.refuse("it begins with a code fence that ends before its last line")
    return None


def _without_extra_fence(case: BodyCase) -> list[str] | None:
    """Return the lines after a bare fence that is never closed, while all others in them are."""
    lines = case.lines[:]
    while lines and not lines[0].strip():
        del lines[0]
    if len(lines) < 2 or lines[0].strip(" \t`~") or not fences.is_fence(lines[0]):
        return None
    if case.is_whole:
        # In a fence of its own no chat has put another round it.
        is_open = not case.arrival.in_code and fences.depth_after(lines[1:], lines[0]) == 0
        return lines[1:] if is_open else None
    there, gone = (
        sum(map(fences.is_fence, part)) for part in (case.ground.lines, case.ground.replaced)
    )
    with_all = there - gone + sum(map(fences.is_fence, lines))
    return lines[1:] if file_kinds.is_prose(case.path) and there % 2 == 0 and with_all % 2 else None


def _first_line(lines: Sequence[str]) -> str:
    return next((line for line in lines if line.strip()), "")


def _wraps(case: BodyCase, bare: list[str]) -> bool:
    """Return whether a fence round a body is no part of the file."""
    old = [line for line in case.ground.replaced if line.strip()]
    if any(fences.is_fence(line) for line in (*old[:1], *old[-1:])):
        return False
    if fences.has_label(case.lines) and not fences.has_label(old):
        return True
    if case.is_whole:
        if file_kinds.is_program(case.path):
            return True
        words = [line for line in bare if line.strip()]
        return bool(words and old) and (words[0] == old[0] or words[-1] == old[-1])
    if not file_kinds.is_program(case.path):
        return False
    parses = case.ground.parses_with(case.lines)
    if parses is not None:
        return not parses
    return case.ground.start not in case.ground.text_among(case.lines)


def _numbers(case: BodyCase) -> list[str] | None:
    is_program = file_kinds.is_program(case.path)
    bare, is_doubtful = shapes.without_numbers(case.lines, case.ground, is_program=is_program)
    if bare is not None:
        return bare
    if is_doubtful:
        if is_program:
            case.refuse("some of its lines begin with a number")
        case.say("some lines begin with a number, and were written so")
    found = [_NUMBERED.match(line) for line in case.lines]
    if not found or not all(found) or file_kinds.ending(case.path) in ("csv", "tsv", "log"):
        return None
    numbers = [int(each[1]) for each in found if each is not None]
    first = numbers[0]
    if numbers != list(range(first, first + len(numbers))):
        if is_program and all(map(shapes.OURS.match, case.lines)):
            case.refuse("each line begins with a number, and they do not follow one another")
        return None
    if any(map(_NUMBERED.match, case.ground.replaced)):
        return None
    bare = [line[each.end() :] for line, each in zip(case.lines, found, strict=True) if each]
    mark = "".join(sorted({each[2] or each[3] for each in found if each}))
    if mark not in "\t→" and all(line.startswith(" ") for line in bare if line):
        bare = [line.removeprefix(" ") for line in bare]
    lead = blanks(_first_line(case.ground.replaced))
    is_deep = len(bare) == 1 and lead != "" and blanks(bare[0]) == lead
    if case.is_proven(bare) or _are_numbers(case, mark, first, is_deep=is_deep):
        return bare
    if len(bare) > 1:
        case.say("each line begins with its number, and was written so")
    elif is_program:
        old = _first_line(case.ground.replaced)
        if old and indentation.is_alike(bare[0], old):
            case.refuse("it begins with the number of a line")
    return None


def _are_numbers(case: BodyCase, mark: str, first: int, *, is_deep: bool) -> bool:
    """Return whether no text of the kind begins its lines so; one line is little to go by."""
    is_ours = mark == "|" and first == case.ground.start + 1
    if is_ours and (case.ground.lines or (len(case.lines) > 2 and case.lines[0].startswith("  "))):
        return True
    if not file_kinds.is_program(case.path) or is_deep:
        return is_deep
    is_shell = file_kinds.ending(case.path) == "sh"
    is_padded = mark == "\t" and case.lines[0].startswith("  ")
    if len(case.lines) < 2 and not (is_ours or is_shell or is_padded):
        return False
    # Numbers with a colon may be the keys of a mapping.
    is_yaml = file_kinds.ending(case.path) in ("yml", "yaml")
    return mark != ":" or not is_yaml or any(map(_NESTED.match, case.lines))


def _marks(case: BodyCase) -> list[str] | None:
    has_all = bool(case.lines) and all(line.startswith("+") for line in case.lines)
    if not has_all or file_kinds.ending(case.path) in ("diff", "patch"):
        return None
    bare = [line[1:] for line in case.lines]
    old = _first_line(case.ground.replaced)
    is_deep = bool(blanks(old)) and file_kinds.is_program(case.path)
    is_deep = is_deep and blanks(_first_line(bare)) == blanks(old)
    parses = [case.ground.parses_with(each) for each in (case.lines, bare)]
    if case.is_proven(bare) or is_deep or parses == [False, True]:
        return bare
    if file_kinds.is_code(case.path) or file_kinds.ending(case.path) == "sh":
        case.refuse("each line begins with the + of a diff")
    if len(bare) > 1:
        case.say("each line begins with +, and was written so")
    return None


def _lead(case: BodyCase) -> list[str] | None:
    lead = case.arrival.lead
    if not lead or not all(line.startswith(lead) for line in case.lines if line.strip()):
        return None
    back = [line.removeprefix(lead) if line.strip() else "" for line in case.lines]
    known = case.ground.known
    as_is, shifted = (sum(line in known for line in lines) for lines in (case.lines, back))
    if as_is != shifted:
        return back if shifted > as_is else None
    old, new = (_first_line(part) for part in (case.ground.replaced, case.lines))
    depth, here = len(blanks(old)), len(blanks(new))
    if old and depth in (here, here - len(lead)):
        return None if depth == here else back
    parses = [case.ground.parses_with(lines) for lines in (case.lines, back)]
    is_proven = parses == [False, True]
    is_shifted = case.is_whole and file_kinds.is_program(case.path) and parses[0] is not True
    if is_proven or case.arrival.is_moved or is_shifted:
        return back
    case.say("the body is indented as its tags are, and was written so")
    return None


def _trail(case: BodyCase) -> list[str] | None:
    words = [line for line in case.lines if line.strip()]
    if not words or not all(line[-1] in " \t" for line in words):
        return None
    bare = [line.rstrip() for line in case.lines]
    # No line of a program's file has any, and each new one would.
    is_odd = len(words) > 1 and file_kinds.is_program(case.path)
    is_odd = is_odd and all(line == line.rstrip() for line in case.ground.lines)
    is_new = bare != list(case.ground.replaced)
    return bare if is_new and (is_odd or case.is_proven(bare)) else None


def _spaced(case: BodyCase) -> list[str] | None:
    if not case.arrival.is_spaced or any(map(str.strip, case.lines[::2])):
        return None
    bare = case.lines[1::2]
    if file_kinds.is_prose(case.path) and not blank_lines.are_as_in(case.ground.lines, bare):
        case.refuse("a blank line follows each line, of the tags too")
    return bare


def _blank_lines(case: BodyCase) -> list[str] | None:
    spaced = blank_lines.every_second(case.lines)
    if spaced == list(case.ground.replaced):
        return None  # all that the edit does is to put them there
    if spaced is not None and blank_lines.is_spaced_out(spaced, case.lines, case.ground):
        if len(list(filter(None, spaced))) < 3:
            case.refuse("a blank line follows each of its two lines")
        return spaced
    if "" not in case.lines and "" not in case.ground.replaced:
        return None
    pairs = blank_lines.gaps(case.ground.replaced)
    now = blank_lines.gaps(case.lines)
    shared = [(pairs[key], now[key]) for key in now.keys() & pairs.keys()]
    for undone, more in ((spaced, 1), (blank_lines.halved(case.lines), 0)):
        if undone is None or all(was == is_ for was, is_ in shared):
            continue
        if all(is_ == 2 * was + more for was, is_ in shared):
            if more and len(undone) < 3:
                case.refuse("a blank line follows each of its two lines")
            return None if undone == list(case.ground.replaced) else undone
    if blank_lines.are_lost(case.lines, case.ground.replaced, shared):
        case.refuse("the blank lines between lines of the file are gone")
    if Kept.LINES not in case.arrival.kept and blank_lines.are_doubled(case.lines, case.ground):
        case.refuse("blank lines are in twos, where the file has one at a time")
    is_new = not case.ground.lines and file_kinds.is_code(case.path)
    if is_new and blank_lines.is_in_twos(case.lines, is_go=case.path.endswith(".go")):
        case.refuse("blank lines are in twos")
    return None


def _characters(case: BodyCase) -> None:
    case.lines, notes = characters.mend(case.lines, case.ground, case.arrival)
    case.notes += notes


def _indentation(case: BodyCase) -> None:
    case.lines, notes = indentation.restore(case.lines, case.ground, case.arrival)
    case.notes += notes


def _wrapped(case: BodyCase) -> None:
    if levels.is_cut(case.lines, case.ground):
        case.refuse("a line is broken into two")
    if levels.is_cut_from_file(case.lines, case.ground):
        case.refuse("a line of the file is broken into two")


def _whole_file(case: BodyCase) -> None:
    if not case.is_whole or not file_kinds.is_program(case.path):
        return
    if file_kinds.is_makefile(case.path) and _lacks_tabs(joined(case.lines)):
        case.refuse("recipes begin with blanks, not with a tab")
    if file_kinds.ending(case.path) in ("yml", "yaml") and _has_tabs(case):
        case.refuse("it is indented by tabs, which YAML does not have")
    if case.ground.lines or case.arrival.in_code or case.ground.parses is False:
        return
    within = case.ground.text_among(case.lines)
    code = [line for i, line in enumerate(case.lines) if i not in within and line.strip()]
    leads = set(map(blanks, code))
    is_flat = not any(map(blanks, case.lines)) and not file_kinds.is_markup(case.path)
    if is_yaml := file_kinds.ending(case.path) in ("yml", "yaml"):
        # An item of one value may be at the margin below its key.
        code = [_YAML_ITEM.sub(")", line) for line in code if not line.lstrip().startswith("#")]
    is_levelled = is_yaml or file_kinds.is_code(case.path) or file_kinds.is_markup(case.path)
    if (is_flat or leads == {"", " "}) and is_levelled and levels.has_levels(code):
        case.refuse(f"no line is indented{'' if is_flat else ' by more than a blank'}")


_YAML_ITEM = lazy_pattern(r"- (?!.*:(?:\s|$)).+")


def _lacks_tabs(makefile: str) -> bool:
    has_own = "\t" in makefile or ".RECIPEPREFIX" in makefile
    return not has_own and _RECIPE.search(makefile) is not None


def _has_tabs(case: BodyCase) -> bool:
    text = case.ground.text_among(case.lines)
    return any(line.startswith("\t") and i not in text for i, line in enumerate(case.lines))


# --- commands ---

_QUOTED = lazy_pattern(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_LONG_DASH = lazy_pattern(r"(?:(?<=\s)|^)[–—]{1,2}(?=[\w\s])", re.MULTILINE)
# What a shell takes for a part of a word where only a damaged character can be.
_NOT_IN_COMMANDS = (
    (chat_damage.ENTITY, "it has <, > and & as HTML entities"),
    (chat_damage.ODD_BLANK, "no-break spaces part its words"),
    (chat_damage.TYPOGRAPHIC, "it has typographic quotes for plain ones"),
    (chat_damage.FULL_WIDTH, "it has full-width brackets for plain ones"),
    (chat_damage.ZERO_WIDTH, "it has zero-width characters"),
    (chat_damage.LINK, "it has links for file names"),
    (_LONG_DASH, "it has long dashes for those of its options"),
)


def _shell_indentation(case: BodyCase) -> list[str] | None:
    words = [line for line in case.lines if line.strip()]
    lead = min(map(blanks, words), default="", key=len)
    if not lead or not all(line.startswith(lead) for line in words):
        return None
    ends = re.findall(r"<<[ \t]*['\"]?(\w+)", "\n".join(case.lines))
    is_odd = any(f"{lead}{end}" in case.lines for end in ends)
    return [line.removeprefix(lead) for line in case.lines] if is_odd else None


def _odd_command(case: BodyCase) -> None:
    """Refuse what is outside of all quotes in a command and can't be meant there."""
    text = joined(case.lines)
    if text.isascii() and "&" not in text and "](" not in text:
        return
    if any(map(chat_damage.LEADING_BLANK.search, case.lines)):
        case.refuse("lines are indented by no-break spaces")
    within = file_kinds.lines_of_text(case.lines, case.path)
    lines = (line for index, line in enumerate(case.lines) if index not in within)
    rest = _QUOTED.sub("''", "\n".join(lines))
    for trace, what in _NOT_IN_COMMANDS:
        if trace.search(rest):
            case.refuse(what)


# In their order: what is round the lines, what is before each, then the lines themselves.
_SHARED: tuple[Rule[BodyRule], ...] = (
    Rule("code fence", fences.NOTE, _fence),
    Rule("line numbers", "the line numbers copied along were taken off", _numbers),
    Rule("marks of a diff", "the + of a diff before each line was taken off", _marks),
    Rule(
        "indentation of the tags",
        "the body was indented with its tags, and was shifted back",
        _lead,
    ),
    Rule("trailing blanks", "blanks at the end of each line were taken off", _trail),
    Rule(
        "blanks in blank lines",
        "blanks were taken off the blank lines",
        lambda case: blank_lines.bare(case.lines, case.ground),
    ),
    Rule(
        "spaced answer", "the blank line after each line, of the tags too, was taken out", _spaced
    ),
    Rule("blank lines", "blank lines that were doubled were taken out", _blank_lines),
    Rule("characters", "{damage} were undone in the body, {proof}", _characters),
)
CHARACTERS = _SHARED[-1:]
RULES: tuple[Rule[BodyRule], ...] = (
    *_SHARED,
    Rule("indentation", "{what}: it was given back as {ground}", _indentation),
    Rule("broken lines", "a line is broken into two", _wrapped),
    Rule("kind of the file", "recipes begin with blanks, not with a tab", _whole_file),
)
COMMAND_RULES: tuple[Rule[BodyRule], ...] = (
    *_SHARED,
    Rule("indented command", "the command was indented", _shell_indentation),
    Rule("characters of a command", "no-break spaces part its words", _odd_command),
)
