"""Repair the body of a block: rules that undo damage around it, before its lines, inside them.

Each rule has its proof: the lines on disk that the body replaces, the kind of the file, or the tags of the
same answer. What looks like damage and has no proof is written as it came, and the result says so; what is
certainly damaged, and can't be known, is asked for again.

Over 500 lines: the rules, their tables in the order in which they are tried, and what applies them.
"""

import itertools
import re
from collections.abc import Sequence
from functools import partial
from itertools import groupby, pairwise

from msgspec import Struct
from msgspec.structs import replace

from codingagent.editing import characters, file_kinds, file_lines, indentation
from codingagent.editing.characters import BodyCase, BodyRule, ReplacedLines
from codingagent.errors import OperationError
from codingagent.model import chat_damage
from codingagent.model.chat_damage import ROWS, BodyEvidence, Channel, Damage, Rule
from codingagent.model.patterns import lazy_pattern, sections, words
from codingagent.model.plain_text import DOUBT, blanks, joined

_FENCE = lazy_pattern(r"[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^`\n]*?)[ \t]*")
FENCE_NOTE = "the code fence around the body was removed"
_BOX = sections(__file__)
_LANGUAGES = words(_BOX["languages"])
_BUTTONS = "|".join(map(str.strip, _BOX["buttons"].splitlines()))
_COPY = lazy_pattern(rf"^[ \t]*(?:{_BUTTONS})[ \t]*$", re.IGNORECASE | re.MULTILINE)
_BUTTON = lazy_pattern(rf"[ \t]*(?:{_BUTTONS}|{'|'.join(words(_BOX['more buttons']))})[ \t]*", re.IGNORECASE)
LABEL = lazy_pattern(
    rf"^[ \t]*(?:(?:{'|'.join(map(re.escape, _LANGUAGES))})[ \t]+)?(?:{_BUTTONS})[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""What a code box shows above its text, with the name of its language or without."""
_BLANKS = (" ", "\t")
_ENDS_BLANK = lazy_pattern(r"\s$")
_RECIPE = lazy_pattern(
    r"^[^\s#:=][^:=\n]*:(?!=)[^=\n]*(?<!\\)\n(?: +\S|[@-]?(?:\$\(|\w[^:=\n]*$)(?!.*[:=]))", re.MULTILINE
)


def _fence(case: BodyCase, *, is_first: bool = True) -> list[str] | None:
    lines = without_fence(case.lines)
    if lines is not None and _wraps(case, lines):
        # In there no chat has escaped anything.
        way = case.arrival.way - {Damage.ESCAPES, Damage.UNDERSCORES}
        case.arrival = replace(case.arrival, way=way, in_code=True, is_spaced=False)
        case.lines = lines
        # A label may be above a fence.
        return (_fence(case, is_first=False) if is_first else None) or lines
    if lines is None and not is_fence(next(filter(str.strip, case.lines), "")):
        return None
    _check_extra_fence(case)
    words = [line for line in case.lines if line.strip()]
    is_pair = len(words) > 1 and is_fence(words[0]) and is_fence(words[-1])
    if lines is not None and is_pair and depth_after(words[1:-1], words[0]) == 0:
        case.say(f"the body is one code fence from its first line to its last, {DOUBT}")
    elif lines is not None and words and _COPY.fullmatch(words[0]):
        case.say(f"the body begins with what may be a button of the chat's code box, {DOUBT}")
    is_program = case.is_whole and file_kinds.is_program(case.path)
    if lines is None and is_program:
        case.refuse("it begins with a code fence that ends before its last line")
    return None


def _check_extra_fence(case: BodyCase) -> None:
    """Refuse lines that begin with a bare fence which is never closed, while all others of the file are."""
    lines = [*itertools.dropwhile(lambda line: not line.strip(), case.lines)]
    if len(lines) < 2 or lines[0].strip(" \t`~") or not is_fence(lines[0]):
        return
    there, gone, come = (
        sum(map(is_fence, each)) for each in (case.ground.lines, case.ground.replaced, lines)
    )
    # In a fence of its own no chat has put another round it.
    is_odd = not case.arrival.in_code if case.is_whole else file_kinds.is_prose(case.path) and there % 2 == 0
    if is_odd and (there - gone + come) % 2:
        case.refuse("it begins with a code fence that ends nowhere")


def _wraps(case: BodyCase, bare: list[str]) -> bool:
    """Return whether a fence round a body is no part of the file."""
    old = [line for line in case.ground.replaced if line.strip()]
    if any(is_fence(line) for line in (*old[:1], *old[-1:])):
        return False
    if has_label(case.lines) and not has_label(old):
        return True
    is_program, ground = file_kinds.is_program(case.path), case.ground
    if case.is_whole:
        words = [line for line in bare if line.strip()]
        return is_program or bool(words and old and (words[0] == old[0] or words[-1] == old[-1]))
    parses = ground.parses_with(case.lines) if is_program else True
    return ground.start not in ground.text_among(case.lines) if parses is None else not parses


# As requests show the lines of a file; as a code box does, with a mark or glued to its lines.
_OUR_NUMBER = lazy_pattern(r"^[ \t]*(\d{1,9}) \|(?: |$)")
_ANY_NUMBER = lazy_pattern(r"[ \t]*(\d{1,9})(:(?!$)|[^,.\d]|$)")


def _numbers(case: BodyCase) -> None:
    """Refuse lines that came with their numbers; a code box may have all of these first, one to a line."""
    ground, new = case.ground, case.lines
    kind, is_program, half = file_kinds.ending(case.path), file_kinds.is_program(case.path), len(new) // 2
    has_digits = any(line.lstrip()[:1].isdigit() for line in new)
    if not has_digits or kind in ("csv", "tsv", "log") or ground.lines.has(_OUR_NUMBER):
        return
    known = ground.lines.once("lines", frozenset) - {""}
    if any(line != (bare := _OUR_NUMBER.sub("", line)) and bare in known for line in new):
        case.refuse("some of its lines begin with a number")
    is_column = half > 0 and [*map(str.strip, new[:half])] == [*map(str, range(1, half + 1))]
    if is_column and (is_program or not known.isdisjoint(new[half:])):
        case.refuse("it begins with the numbers of its lines")
    found = [_ANY_NUMBER.match(line) for line in new]
    numbers = [int(each[1]) for each in found if each]
    is_ours, start = all(map(_OUR_NUMBER.match, new)), numbers[0] if numbers else 0
    is_counted = numbers == [*range(start, start + len(new))]
    if not is_counted or ground.parses_with(new) or any(map(_ANY_NUMBER.match, ground.replaced)):
        return
    both = [(line, each) for line, each in zip(new, found, strict=True) if each]
    bare_lines = {line[each.end(1) :].lstrip("|│:→\t ") for line, each in both} - {""}
    is_proven = not bare_lines.isdisjoint(line.strip() for line in known)
    # Numbers with a colon may be the keys of a mapping.
    is_key = kind in ("yml", "yaml") and all(each[2] == ":" for _, each in both)
    is_odd = (is_program and not is_key) or is_ours
    if is_proven or (is_odd and (len(new) > 1 or (is_ours and start == ground.start + 1))):
        case.refuse("each of its lines begins with its number")


def _marks(case: BodyCase) -> None:
    """Refuse a + before all lines where no such file has any, or lines on disk fit without it."""
    has_all = bool(case.lines) and all(line.startswith("+") for line in case.lines)
    if not has_all or file_kinds.ending(case.path) in ("diff", "patch"):
        return
    if file_kinds.is_program(case.path) or case.is_proven([line[1:] for line in case.lines]):
        case.refuse("each line begins with the + of a diff")
    if len(case.lines) > 1:
        case.say(f"each line begins with +, {DOUBT}")


def _lead(case: BodyCase) -> list[str] | None:
    lead = case.arrival.lead
    if not lead or not all(line.startswith(lead) for line in case.lines if line.strip()):
        return None
    back = [line.removeprefix(lead) if line.strip() else "" for line in case.lines]
    as_is, shifted = (sum(line in case.ground.known for line in lines) for lines in (case.lines, back))
    parses = [case.ground.parses_with(lines) for lines in (case.lines, back)]
    if shifted > as_is:
        return back
    is_shifted = case.is_whole and file_kinds.is_program(case.path) and parses[0] is not True
    if shifted == as_is and (case.arrival.is_moved or is_shifted or parses == [False, True]):
        return back
    if shifted == as_is and not case.is_whole:
        case.refuse("it is indented like its tags")
    case.say(f"the body is indented like its tags, {DOUBT}")
    return None


def _trail(case: BodyCase) -> None:
    words = [line for line in case.lines if line.strip()]
    if not words or not words[0].endswith(_BLANKS) or not all(line.endswith(_BLANKS) for line in words):
        return
    bare = [line.rstrip() for line in case.lines]
    # No line of a program's file has any, and each new one would.
    is_odd = len(words) > 1 and file_kinds.is_program(case.path)
    is_odd = is_odd and not case.ground.lines.has(_ENDS_BLANK)
    if bare != list(case.ground.replaced) and (is_odd or case.is_proven(bare)):
        case.refuse("spaces end each of its lines")


def _blank_lines(case: BodyCase) -> None:
    if what := _fault_of_blanks(case.lines, case.ground, is_spaced=case.arrival.is_spaced):
        case.refuse(what)
    # A blank line of a SEARCH that fits came as it was.
    is_spared = case.is_whole or "\n\n" in case.ground.spared
    if not is_spared and _are_doubled(case.lines, case.ground):
        case.refuse("blank lines are doubled, where the file has single ones")


def _breaks(case: BodyCase) -> list[str] | None:
    if not any(line.endswith(_BLANKS) for line in case.ground.replaced):
        return None
    if any(line[-1] in " \t" for line in case.lines if line.strip()):
        return None  # no chat has taken any
    ended: dict[str, set[str]] = {}
    for line in case.ground.replaced:
        ended.setdefault(line.rstrip(" \t"), set()).add(line)
    ended.pop("", None)
    if all(len(line) == len(bare) for bare, lines in ended.items() for line in lines):
        return None
    text = case.ground.text_among([*case.lines, ""])
    if file_kinds.ending(case.path) not in ("yml", "yaml"):
        text = frozenset(index - 1 for index in text)  # a line's end is within what the next one begins in
    kept = [
        next(iter(ended[line])) if index in text and len(ended.get(line, ())) == 1 else line
        for index, line in enumerate(case.lines)
    ]
    # Else taking them off is all that the edit does.
    return kept if kept not in (case.lines, list(case.ground.replaced)) else None


def _whole_file(case: BodyCase) -> None:
    if case.arrival.is_one_line and len(case.ground.replaced) > 1 and case.lines:
        case.refuse("it is on one line with its tags, and would replace several lines")
    if not case.is_whole or not file_kinds.is_program(case.path):
        return
    text, is_yaml = joined(case.lines), file_kinds.ending(case.path) in ("yml", "yaml")
    has_own = "\t" in text or ".RECIPEPREFIX" in text
    if file_kinds.is_makefile(case.path) and not has_own and _RECIPE.search(text):
        case.refuse("recipes begin with spaces, not with a tab")
    tabbed = {i for i, line in enumerate(case.lines) if is_yaml and line.startswith("\t")}
    if tabbed and tabbed - case.ground.text_among(case.lines):
        case.refuse("it is indented with tabs, which YAML does not allow")
    if case.ground.lines or case.arrival.in_code or case.ground.parses is False:
        return
    within = case.ground.text_among(case.lines)
    code = [line for i, line in enumerate(case.lines) if i not in within and line.strip()]
    leads = set(map(blanks, code))
    is_flat = not any(map(blanks, case.lines)) and not file_kinds.is_markup(case.path)
    if is_yaml:
        # An item of one value may be at the margin below its key.
        code = [_YAML_ITEM.sub(")", line) for line in code if not line.lstrip().startswith("#")]
    is_levelled = is_yaml or file_kinds.is_code(case.path) or file_kinds.is_markup(case.path)
    if (is_flat or leads == {"", " "}) and is_levelled and indentation.has_levels(code):
        case.refuse(f"no line is indented{'' if is_flat else ' by more than a space'}")


_YAML_ITEM = lazy_pattern(r"- (?!.*:(?:\s|$)).+")


# --- blank lines: put between all lines, doubled or lost; the lines of the file prove it ---
# A function of Python begins after two.
_PART = lazy_pattern(r"def |class |@|async |if |#")


def _fault_of_blanks(lines: list[str], ground: ReplacedLines, *, is_spaced: bool) -> str:
    """Return what is wrong with the blank lines of a body; empty: nothing is.

    `is_spaced` means that a blank line follows each line of the answer, its tags too.
    """
    old = list(ground.replaced)
    if lines and all(map(str.strip, lines)) and all(map(str.strip, old)):
        return ""
    if is_spaced and not any(map(str.strip, lines[::2])) and lines[1::2] != old:
        return "a blank line follows each line, including the tags"
    was, now = _gaps(old), _gaps(lines)
    shared = [(was[key], now[key]) for key in now.keys() & was.keys()]
    if all(after == before for before, after in shared):
        return ""
    if any(all(after == 2 * before + more for before, after in shared) for more in (0, 1)):
        return "" if [*filter(None, lines)] == [*filter(None, old)] else "blank lines are doubled"
    lost = [not after for before, after in shared if before]
    if lost and all(lost) and "" not in lines and lines != [*filter(None, old)]:
        return "the blank lines between lines of the file are gone"
    return ""


def _are_doubled(new: Sequence[str], ground: ReplacedLines) -> bool:
    """Return whether all blank lines of a part are in twos, and those of the file before such lines never."""
    now = [] if all(map(str.strip, new)) else _runs(new, ground.path)
    if not now or any(count % 2 for count, _ in now):
        return False
    was = _runs(ground.replaced, ground.path)
    fresh = [run for run in now if run not in was]
    there = ground.lines.once(_runs, partial(_runs, path=ground.path)) if fresh else []
    counts = [[each for each, other in there if other == sort] for _, sort in fresh]
    return any(len(c) >= 3 and max(c) < run[0] for run, c in zip(fresh, counts, strict=True))


def _runs(lines: Sequence[str], path: str) -> list[tuple[int, str]]:
    """Return how many blank lines are before a line each time, and what sort of line that is."""
    runs = [(is_blank, list(run)) for is_blank, run in groupby(lines, lambda line: not line.strip())]
    before = [(len(run), line) for (is_blank, run), (_, (line, *_)) in pairwise(runs) if is_blank]
    is_python = file_kinds.is_python(path)

    def sort(line: str) -> str:
        return "indented" if line[0].isspace() else "part" if is_python and _PART.match(line) else "margin"

    return [(count, sort(line)) for count, line in before]


def _gaps(lines: Sequence[str]) -> dict[tuple[str, str], int]:
    """Return how many blank lines are between any two that follow one another, if always as many."""
    found: dict[tuple[str, str], int] = {}
    words = [index for index, line in enumerate(lines) if line.strip()]
    for at, after in pairwise(words):
        pair, count = (lines[at], lines[after]), after - at - 1
        found[pair] = count if found.get(pair, count) == count else -1
    return {pair: count for pair, count in found.items() if count >= 0}


def _bare(new: Sequence[str], ground: ReplacedLines) -> list[str] | None:
    """Return lines with nothing in the blank ones; None if they may be meant as they are.

    The blank lines of the file show it, unless others of these have none. In a string they may be meant.
    """
    spaced = {i for i, line in enumerate(new) if line and not line.strip(" \t")}
    if not spaced or "" in new or file_kinds.ending(ground.path) in ("csv", "tsv", "log", "diff", "patch"):
        return None
    text = ground.text_among(new) if file_kinds.is_code(ground.path) else frozenset[int]()
    there = ground.lines.once("blank", lambda lines: {x for x in lines if not x.strip(" \t")})
    if there != {""} or spaced <= text:
        return None
    return ["" if i in spaced else line for i, line in enumerate(new)]


# --- code fences ---
def has_label(lines: Sequence[str]) -> bool:
    """Return whether lines begin with a language and the button of a code box: nobody writes both."""
    words = [line.strip().lower() for line in lines[:4] if line.strip()]
    return len(words) > 1 and words[0] in _LANGUAGES and _COPY.match(words[1]) is not None


def is_fence(line: str) -> bool:
    return _FENCE.fullmatch(line) is not None


def depth_after(lines: Sequence[str], opening: str) -> int:
    """Return how many fences are still open in the lines of one, or -1 if they close it."""
    marks = opening.strip()
    mark = marks[: len(marks) - len(marks.lstrip(marks[0]))]
    depth = 0
    for line in lines:
        found = _FENCE.fullmatch(line) if mark[:3] in line else None
        if found is None or not found[1].startswith(mark):
            continue
        depth += 1 if found[2] else -1
        if depth < 0:
            return -1
    return depth


def without_fence(lines: Sequence[str]) -> list[str] | None:
    """Return what a fence holds that opens on the first of some lines and closes on the last.

    A line "Copy code" and the language before it belong to the fence. One of the two fences may be
    outside of the tags. A fence that is balanced inside is no wrapper.
    """
    start, end = 0, len(lines)
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    has_language = start < end and lines[start].strip().lower() in _LANGUAGES
    label = start + has_language
    copied = label
    while copied < end and (_COPY if copied == label else _BUTTON).fullmatch(lines[copied]):
        copied += 1
    # A language alone is a label only where both fences follow.
    is_pair = label + 1 < end and is_fence(lines[label]) and is_fence(lines[end - 1])
    # One alone is an empty body, such as that of `__init__.py`.
    has_label = label < copied
    first = copied if has_label else label if has_language and is_pair else start
    opened = _FENCE.fullmatch(lines[first]) if first < end else None
    closed = _FENCE.fullmatch(lines[end - 1]) if end - 1 > first else None
    if closed is not None and (closed[2] or (has_label and opened is None)):
        closed = None
    if has_label and has_language and opened is not None:
        language = opened[2].strip().lower()
        if language not in ("", lines[start].strip().lower()):
            opened = closed = None  # the label is that of the box, in which the fence is text
    if opened is None and closed is None and not has_label:
        return None
    begin = first + 1 if opened is not None else first
    stop = end - 1 if closed is not None else len(lines)
    if opened is not None:
        depth = depth_after(lines[begin:stop], lines[first])
        if depth < 0 or (depth and closed is not None):
            return None
    elif closed is not None and sum(map(is_fence, lines[begin:stop])) % 2:
        return None
    return list(lines[begin:stop])


# --- commands ---

_QUOTED = lazy_pattern(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_HERE = lazy_pattern(r"(?<![<\d(])<<-?[ \t]*(?:(['\"])(\w+)\1|([A-Z_]{2,})(?!\w))")
_LONG_DASH = lazy_pattern(r"(?:(?<=\s)|^)[–—]{1,2}(?=[\w\s])", re.MULTILINE)
# What a shell takes for a part of a word where only a damaged character can be.
_NOT_IN_COMMANDS = (
    (chat_damage.ENTITY, "it has <, > and & as HTML entities"),
    (chat_damage.ODD_BLANK, "no-break spaces separate its words"),
    (chat_damage.TYPOGRAPHIC, "it has typographic quotes instead of plain ones"),
    (chat_damage.FULL_WIDTH, "it has full-width brackets instead of plain ones"),
    (chat_damage.ZERO_WIDTH, "it has zero-width characters"),
    (chat_damage.LINK, "it has links instead of file names"),
    (_LONG_DASH, "it has long dashes instead of the hyphens of options"),
)


def _here_document(case: BodyCase, *, is_file: bool = False) -> None:
    """Refuse a here-document without its end: its lines were joined into one, or shifted."""
    text, at = joined(case.lines), 0
    if "<<" not in text or not file_kinds.is_shell(case.path, case.lines):
        return
    words = {line.strip() for line in case.lines}
    while (opened := _HERE.search(text, at)) is not None:
        at = opened.end()
        before = text[text.rfind("\n", 0, opened.start()) + 1 : opened.start()]
        if before.count("'") % 2 or before.count('"') % 2 or before.lstrip().startswith("#"):
            continue  # in a string
        name = opened[2] or opened[3]
        if is_file and name not in words:
            continue  # a shift
        tabs = "\t*" * opened[0].startswith("<<-")
        end = re.compile(f"^{tabs}{name}$", re.MULTILINE).search(text, at)
        if end is None:
            why = ": spaces are before its end" * (name in words)
            case.refuse(f"no line ends its here-document {opened[0]}{why}")
        at = end.end()


def _odd_command(case: BodyCase) -> None:
    """Refuse what is outside of all quotes in a command and can't be meant there."""
    text = joined(case.lines)
    if text.isascii() and "&" not in text and "](" not in text:
        return
    within = file_kinds.lines_of_text(case.lines, case.path)
    lines = (line for index, line in enumerate(case.lines) if index not in within)
    rest = _QUOTED.sub("''", "\n".join(lines))
    for trace, what in _NOT_IN_COMMANDS:
        if trace.search(rest):
            case.refuse(what)


# In their order: what is round the lines, what is before each, then the lines themselves.
_SHARED: tuple[Rule[BodyRule], ...] = (
    Rule("code fence", FENCE_NOTE, _fence),
    Rule("line numbers", "some of its lines begin with a number", _numbers),
    Rule("marks of a diff", "each line begins with the + of a diff", _marks),
    Rule("indentation of the tags", "the body was indented with its tags, and was shifted back", _lead),
    Rule("trailing blanks", "spaces end each of its lines", _trail),
    Rule("hard breaks", "spaces that the file has at the ends of lines were kept", _breaks),
    Rule(
        "blanks in blank lines",
        "spaces were removed from the blank lines",
        lambda case: _bare(case.lines, case.ground),
    ),
    Rule("blank lines", "blank lines are doubled", _blank_lines),
    Rule("characters", "{damage} were undone in the body, {proof}", characters.mend),
)
CHARACTERS = _SHARED[-1:]
RULES: tuple[Rule[BodyRule], ...] = (
    *_SHARED,
    Rule("indentation", "{what}: it was restored {ground}", indentation.restore),
    Rule("kind of the file", "recipes begin with spaces, not with a tab", _whole_file),
    Rule(
        "a script's here-documents", "no line ends its here-document", partial(_here_document, is_file=True)
    ),
)
COMMAND_RULES: tuple[Rule[BodyRule], ...] = (
    *_SHARED,
    Rule("here-documents", "no line ends its here-document", _here_document),
    Rule("characters of a command", "no-break spaces separate its words", _odd_command),
)


# --- a body, repaired ---------------------------------------------------------------------------------
# Specification 003 says that a body is taken as written. A body that has `until` is taken letter by
# letter: that is how to say that it is meant.
_MEANT = 'if it is intended, send it with until="TOKEN" and close it with [/{name} TOKEN]'
_THE_BODY = lazy_pattern(r"\b([Tt]he) body\b")


class Body(Struct, frozen=True):
    """A body as it was meant, and what was undone in it."""

    text: str
    notes: tuple[str, ...] = ()


def mend_file(body: str, path: str, arrival: BodyEvidence, old: str | None = None) -> Body:
    """Return the text of a whole file, over `old`; refuse it if what it was can't be known."""
    lines = file_lines.FileLines(line.removesuffix("\r") for line in file_lines.split(old or ""))
    return mend_lines(body, ReplacedLines(path, lines, 0, len(lines)), arrival, "CREATE_FILE")


def mend_lines(  # what is told of a body, and to whom
    body: str,
    ground: ReplacedLines,
    arrival: BodyEvidence,
    name: str = "EDIT_FILE",
    called: str = r"\1 body",
    rules: Sequence[Rule[BodyRule]] = RULES,
) -> Body:
    """Return the lines that replace others; a refusal is about the block `name`, its body `called` so."""
    lines = file_lines.split(body)
    case = BodyCase(lines, ground, arrival)
    try:
        case.apply(rules)
    except OperationError as fault:
        meant = "" if 'until="TOKEN"' in fault.advice else f"; {_MEANT.format(name=name)}"
        fact, advice = (_THE_BODY.sub(called, each) for each in (fault.fact, fault.advice + meant))
        raise OperationError(fact, fault.detail, advice=advice) from None
    notes = tuple(_THE_BODY.sub(called, note) for note in case.notes)
    if case.lines is lines:
        return Body(body, notes)
    text = joined(case.lines)
    return Body(text if body.endswith("\n") else text.removesuffix("\n"), notes)


def mend_command(body: str, arrival: BodyEvidence) -> Body:
    """Return the shell lines of a command; refuse them if they are damaged: only what was meant is run."""
    how = arrival, "RUN_COMMAND", r"\1 command", COMMAND_RULES
    return mend_lines(body, ReplacedLines("command.sh"), *how)


def check_letters(body: str, path: str, way: Channel, name: str) -> None:
    """Refuse a body with `until` that shows the same damage as the tags of its answer.

    Such a body is meant letter by letter, but these letters can no longer be known. In entities
    even markers of edits are damage: no file but markup holds them so.
    """
    is_damaged = any(row.damage in way and row.trace.search(body) for row in ROWS)
    if is_damaged or (Damage.ANGLES in way and chat_damage.ENTITY.search(body)):
        fact = "The chat damaged the tags of this answer, and the body has the same damage"
    elif not file_kinds.is_markup(path) and chat_damage.has_encoded_marker(body):
        fact = f"The {name} body has SEARCH/REPLACE markers in HTML entities, as by damage of the chat"
    else:
        return
    raise OperationError(f"{fact}: nothing was done", advice="; send this block again in a code block")
