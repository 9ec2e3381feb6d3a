"""What is undone in the body of a block: a fence round it, numbers or marks before its lines, and damage.

A body is what a file will hold: the specification's word is that it is taken as written. So each rule
below has its proof: the lines on disk that the body takes the place of, the kind of the file, or the tags
of the same answer. What looks like damage and has no proof is written as it came, and the result says so;
what is certainly damaged, and not to be known, is asked for again. A body that has `until` is taken
letter by letter: that is how to say that it is meant.

Over 500 lines: one function for each damage of a body, in the order in which they are undone.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from codingagent.editing import blank_lines, characters, file_kinds, indentation
from codingagent.editing.characters import Ground
from codingagent.errors import OperationError
from codingagent.model import chat_damage
from codingagent.model.chat_damage import ROWS, Arrival, Channel, Damage, Kept

_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^`\n]*?)[ \t]*")
_COPY = re.compile(r"[ \t]*(?:copy(?: code)?|copied!?|edit)[ \t]*", re.IGNORECASE)
_LANGUAGES = file_kinds.words(
    "plaintext text python py javascript js typescript ts jsx tsx bash sh shell zsh console powershell json"
    " yaml yml toml ini html xml css scss markdown md c cpp c++ csharp c# java kotlin swift go rust ruby php"
    " perl lua r sql diff makefile dockerfile latex tex vue svelte scala haskell elixir dart"
)
_FENCE_NOTE = "the code fence round the body was taken off"
_MEANT = 'if it is meant so, send it with until="TOKEN" and close it with [/{name} TOKEN]'

_NUMBERED = re.compile(r"[ \t]*(\d+)(?: ?(\||│|:|→)|(\t))")
# No value of a mapping begins so.
_NESTED = re.compile(r"[ \t]*\d+:(?: {2,}[^#\s]| ?$)")
_RECIPE = re.compile(
    r"^[^\s#:=][^:=\n]*:(?!=)[^=\n]*(?<!\\)\n(?: +\S|[@-]?(?:\$\(|\w[^:=\n]*$)(?!.*[:=]))",
    re.MULTILINE,
)
is_prose = file_kinds.is_prose


class Body(Struct, frozen=True):
    """A body as it was meant, and what was undone in it."""

    text: str
    notes: tuple[str, ...] = ()


# --- bodies of files -------------------------------------------------------------------------------


def mend_file(body: str, path: str, arrival: Arrival, old: str | None = None) -> Body:
    """Return the text of a file that is written whole.

    Args:
        body: as it came.
        path: the file.
        arrival: how it came.
        old: the file that it takes the place of.

    Raises:
        OperationError: if it is certainly damaged, and what it was can't be known.
    """
    lines = [] if old is None else [line.removesuffix("\r") for line in _split(old)]
    return _mend(body, Ground(path, lines, 0, len(lines)), arrival, "CREATE_FILE")


def mend_lines(body: str, ground: Ground, arrival: Arrival) -> Body:
    """Return the lines that take the place of a range of lines.

    Raises:
        OperationError: as for a file.
    """
    return _mend(body, ground, arrival, "EDIT_FILE")


def _mend(body: str, ground: Ground, arrival: Arrival, name: str) -> Body:
    lines = _split(body)
    case = _Case(lines, ground, arrival)
    try:
        for rule in _RULES:
            rule(case)
    except OperationError as fault:
        meant = "" if 'until="TOKEN"' in fault.reason else f"; {_MEANT.format(name=name)}"
        raise OperationError(f"{fault.reason}{meant}", fault.detail) from None
    if case.lines is lines:
        return Body(body, tuple(case.notes))
    text = "".join(f"{line}\n" for line in case.lines)
    if not body.endswith("\n"):
        text = text.removesuffix("\n")
    return Body(text, tuple(case.notes))


def _split(text: str) -> list[str]:
    return text.split("\n")[:-1] if text.endswith("\n") or not text else text.split("\n")


class _Case:
    """A body on its way through the rules: each may change the lines and say so."""

    def __init__(self, lines: list[str], ground: Ground, arrival: Arrival) -> None:
        self.lines = lines
        self.ground = ground
        self.arrival = arrival
        self.notes: list[str] = []

    @property
    def path(self) -> str:
        return self.ground.path

    @property
    def is_whole(self) -> bool:
        """Whether the body is all that the file will hold."""
        return len(self.ground.replaced) == len(self.ground.lines)

    def take(self, lines: list[str], note: str) -> None:
        self.lines = lines
        self.say(note)

    def say(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def refuse(self, what: str) -> None:
        raise OperationError(characters.refusal(what, self.arrival))

    def is_proven(self, undone: Sequence[str]) -> bool:
        """Return whether lines are in the file after something is undone, and none of them before."""
        return self.ground.has(undone) and not self.ground.has(self.lines)


def _fence(case: _Case) -> None:
    """Take off a fence round the body, only where the file can't have one there."""
    text = "".join(f"{line}\n" for line in case.lines)
    if not _is_marked_up(text):
        return
    bare = _without_fence(text)
    lines = None if bare is None else _split(bare)
    if lines is not None and _wraps(case, lines):
        case.take(lines, _FENCE_NOTE)
        # In there no chat has escaped anything.
        case.arrival = _spared(case.arrival)
        _fence(case)  # a label may be above a fence
    elif (rest := _without_extra_fence(case)) is not None:
        case.take(rest, _FENCE_NOTE)
    elif lines is not None:
        if _is_one_fence(case.lines):
            case.say(
                "the body is one code fence from its first line to its last, and was written so"
            )
    elif case.is_whole and file_kinds.is_program(case.path) and _is_fence(_first_word(case.lines)):
        case.refuse("it begins with a code fence that ends before its last line")


def _without_extra_fence(case: _Case) -> list[str] | None:
    """Return the lines after a bare fence that is never closed, while all others in them are."""
    lines = case.lines[:]
    while lines and not lines[0].strip():
        del lines[0]
    found = _FENCE.fullmatch(lines[0]) if lines else None
    if found is None or found[2]:
        return None
    if case.is_whole:
        return lines[1:] if _depth_behind(lines[1:], lines[0]) == 0 else None
    there, gone = (sum(map(_is_fence, part)) for part in (case.ground.lines, case.ground.replaced))
    with_all = there - gone + sum(map(_is_fence, lines))
    return lines[1:] if is_prose(case.path) and there % 2 == 0 and with_all % 2 else None


def _first_word(lines: Sequence[str]) -> str:
    return next((line for line in lines if line.strip()), "")


def _wraps(case: _Case, bare: list[str]) -> bool:
    """Return whether a fence round a body is no part of the file."""
    old = [line for line in case.ground.replaced if line.strip()]
    if any(_is_fence(line) for line in (*old[:1], *old[-1:])):
        return False
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


def _spared(arrival: Arrival) -> Arrival:
    way = arrival.way - {Damage.ESCAPES, Damage.UNDERSCORES}
    return replace(arrival, way=way, in_code=True, is_spaced=False)


def _numbers(case: _Case) -> None:
    """Take off the line numbers with which requests show lines."""
    if not case.lines or _NUMBERED.match(case.lines[0]) is None:
        return
    found = [_NUMBERED.match(line) for line in case.lines]
    if not all(found) or file_kinds.ending(case.path) in ("csv", "tsv", "log"):
        return
    numbers = [int(each[1]) for each in found if each is not None]
    first = numbers[0]
    if numbers != list(range(first, first + len(numbers))):
        return
    if any(map(_NUMBERED.match, case.ground.replaced)):
        return
    bare = [line[each.end() :] for line, each in zip(case.lines, found, strict=True) if each]
    mark = "".join(sorted({each[2] or each[3] for each in found if each}))
    if mark not in "\t→" and all(line.startswith(" ") for line in bare if line):
        bare = [line.removeprefix(" ") for line in bare]
    if case.is_proven(bare) or _are_numbers(case, mark, first):
        case.take(bare, "the line numbers copied along were taken off")
    elif len(bare) > 1:
        case.say("each line begins with its number, and was written so")


def _are_numbers(case: _Case, mark: str, first: int) -> bool:
    """Return whether no text of the kind begins its lines so; one line is little to go by."""
    is_ours = mark == "|" and first == case.ground.start + 1
    if is_ours and (case.ground.lines or (len(case.lines) > 2 and case.lines[0].startswith("  "))):
        return True
    if not file_kinds.is_program(case.path):
        return False
    is_shell = file_kinds.ending(case.path) == "sh"
    is_padded = mark == "\t" and case.lines[0].startswith("  ")
    if len(case.lines) < 2 and not (is_ours or is_shell or is_padded):
        return False
    # Numbers with a colon may be the keys of a mapping.
    is_yaml = file_kinds.ending(case.path) in ("yml", "yaml")
    return mark != ":" or not is_yaml or any(map(_NESTED.match, case.lines))


def _marks(case: _Case) -> None:
    """Take off the + with which a diff shows new lines."""
    if not case.lines or not all(line.startswith("+") for line in case.lines):
        return
    if file_kinds.ending(case.path) in ("diff", "patch"):
        return
    bare = [line[1:] for line in case.lines]
    old = _first_word(case.ground.replaced)
    is_deep = bool(indentation.blanks(old)) and file_kinds.is_program(case.path)
    is_deep = is_deep and indentation.blanks(_first_word(bare)) == indentation.blanks(old)
    if case.is_proven(bare) or is_deep:
        case.take(bare, "the + of a difference before each line was taken off")
    elif file_kinds.is_code(case.path) or file_kinds.ending(case.path) == "sh":
        case.refuse("each line begins with the + of a diff")
    elif len(bare) > 1:
        case.say("each line begins with +, and was written so")


def _lead(case: _Case) -> None:
    """Take off the indentation of the tags, where each line of the body has it too."""
    lead = case.arrival.lead
    if not lead or not all(line.startswith(lead) for line in case.lines if line.strip()):
        return
    back = [line.removeprefix(lead) if line.strip() else "" for line in case.lines]
    note = "the body was indented with its tags, and was shifted back"
    as_is, shifted = (_known(case.ground, lines) for lines in (case.lines, back))
    if as_is != shifted:
        if shifted > as_is:
            case.take(back, note)
        return
    old, new = (_first_word(part) for part in (case.ground.replaced, case.lines))
    depth, here = len(indentation.blanks(old)), len(indentation.blanks(new))
    if old and depth in (here, here - len(lead)):
        if depth != here:
            case.take(back, note)
        return
    parses = [case.ground.parses_with(lines) for lines in (case.lines, back)]
    is_proven = parses[0] is False and parses[1] is True
    is_shifted = case.is_whole and file_kinds.is_program(case.path) and parses[0] is not True
    if is_proven or case.arrival.is_moved or is_shifted:
        case.take(back, note)
    else:
        case.say("the body is indented as its tags are, and was written so")


def _known(ground: Ground, lines: Sequence[str]) -> int:
    return sum(line in ground.known for line in lines)


def _trail(case: _Case) -> None:
    """Blanks at the end of each line, which the lines of the file do not have."""
    words = [line for line in case.lines if line.strip()]
    if not words or not all(line[-1] in " \t" for line in words):
        return
    bare = [line.rstrip() for line in case.lines]
    # No line of a program's file has any, and each new one would.
    is_odd = len(words) > 1 and file_kinds.is_program(case.path)
    is_odd = is_odd and all(line == line.rstrip() for line in case.ground.lines)
    if (is_odd or case.is_proven(bare)) and bare != list(case.ground.replaced):
        case.take(bare, "blanks at the end of each line were taken off")


def _blank_lines(case: _Case) -> None:
    """Blank lines that were doubled, or put after each line, or lost."""
    if case.arrival.is_spaced and not any(map(str.strip, case.lines[::2])):
        if is_prose(case.path):
            case.refuse("a blank line stands after each line, of the tags too")
        note = "the blank line after each line, of the tags too, was taken out"
        case.take(case.lines[1::2], note)
        return
    spaced = _every_second(case.lines)
    if spaced is not None and _is_spaced_out(spaced, case):
        case.take(spaced, "blank lines that were doubled were taken out")
        return
    if "" not in case.lines and "" not in case.ground.replaced:
        return
    pairs = _gaps(case.ground.replaced)
    now = _gaps(case.lines)
    shared = [(pairs[key], now[key]) for key in now.keys() & pairs.keys()]
    for undone, more in ((spaced, 1), (blank_lines.halved(case.lines), 0)):
        if undone is None or all(was == is_ for was, is_ in shared):
            continue
        if all(is_ == 2 * was + more for was, is_ in shared):
            if undone != list(case.ground.replaced):
                case.take(undone, "blank lines that were doubled were taken out")
            return
    lost = [was for was, is_ in shared if was and not is_]
    if lost and "" not in case.lines and len(lost) == sum(1 for was, _ in shared if was):
        case.refuse("the blank lines between lines of the file are gone")
    if Kept.LINES not in case.arrival.kept and blank_lines.are_doubled(case.lines, case.ground):
        case.refuse("blank lines stand in twos, where the file has one at a time")
    if (
        not case.ground.lines
        and file_kinds.is_code(case.path)
        and _is_in_twos(case.lines, is_go=case.path.endswith(".go"))
    ):
        case.refuse("blank lines stand in twos")


def _is_spaced_out(spaced: list[str], case: _Case) -> bool:
    """Return whether a blank line after each line is no text that is meant."""
    words = [line for line in spaced if line.strip()]
    if len(words) < 2:
        return False
    if len(words) < len(spaced):
        return True  # the blank lines of the text itself were doubled with the rest
    if not file_kinds.is_program(case.path) or case.lines[-1].strip():
        return False
    gaps = _gaps(case.ground.lines)
    if gaps and 2 * sum(map(bool, gaps.values())) > len(gaps):
        return False
    has_levels = any(line[:1].isspace() for line in words) or any(map(indentation.is_opener, words))
    return has_levels and (bool(gaps) or len(words) >= 8)


def _is_in_twos(lines: Sequence[str], *, is_go: bool) -> bool:
    """Return whether blank lines stand in twos, one such pair within a level, or in fours."""
    runs = "".join(
        "x" if not line.strip() else "a" if line[:1].isspace() else "b" for line in lines
    )
    is_odd = "xxxx" in runs or "xxa" in runs or (is_go and runs.count("xx") > 1)
    return is_odd and blank_lines.halved(lines) is not None


def _gaps(lines: Sequence[str]) -> dict[tuple[str, str], int]:
    """Return how many blank lines are between any two that follow one another."""
    found: dict[tuple[str, str], int] = {}
    before, count = "", 0
    for line in lines:
        if not line.strip():
            count += 1
            continue
        if before:
            pair = (before, line)
            found[pair] = count if found.get(pair, count) == count else -1
        before, count = line, 0
    return {pair: count for pair, count in found.items() if count >= 0}


def _every_second(lines: list[str]) -> list[str] | None:
    """Return lines without the blank one after each, or before each."""
    for start in (1, 0):
        if len(lines) > 2 and not any(line.strip() for line in lines[start::2]):
            return lines[1 - start :: 2]
    return None


def _characters(case: _Case) -> None:
    mended = characters.mend(case.lines, case.ground, case.arrival)
    case.lines = mended.lines
    case.notes += mended.notes


def _indentation(case: _Case) -> None:
    mended = indentation.restore(case.lines, case.ground, case.arrival)
    case.lines = mended.lines
    case.notes += mended.notes


def _whole_file(case: _Case) -> None:
    """Find what no whole file of its kind has."""
    if not case.is_whole or not file_kinds.is_program(case.path):
        return
    text = "".join(f"{line}\n" for line in case.lines)
    if file_kinds.is_makefile(case.path) and _lacks_tabs(text):
        case.refuse("recipes begin with blanks, not with a tab")
    if file_kinds.ending(case.path) in ("yml", "yaml") and _has_tabs(case):
        case.refuse("it is indented by tabs, which YAML does not have")
    if case.ground.lines or case.arrival.in_code or case.ground.parses is False:
        return
    within = case.ground.text_among(case.lines)
    code = [line for i, line in enumerate(case.lines) if i not in within and line.strip()]
    leads = set(map(indentation.blanks, code))
    is_flat = leads == {""} and not file_kinds.is_markup(case.path)
    if (is_flat or leads == {"", " "}) and indentation.has_levels(code):
        is_yaml = file_kinds.ending(case.path) in ("yml", "yaml")
        if is_yaml or file_kinds.is_code(case.path) or file_kinds.is_markup(case.path):
            case.refuse(
                "no line is indented" if is_flat else "no line is indented by more than a blank"
            )


def _wrapped(case: _Case) -> None:
    """Lines of the file that were broken into two."""
    if indentation.is_cut(case.lines, case.ground):
        case.refuse("a line is broken into two")
    known = {" ".join(line.split()) for line in case.ground.replaced if len(line) > 40}
    if not known:
        return
    words = [" ".join(line.split()) for line in case.lines]
    if any(a and b and f"{a} {b}" in known for a, b in pairwise(words)):
        case.refuse("a line of the file is broken into two")


# In their order: what is round the lines, what is before each, then the lines themselves.
_RULES: tuple[Callable[[_Case], None], ...] = (
    _fence,
    _numbers,
    _marks,
    _lead,
    _trail,
    _blank_lines,
    _characters,
    _indentation,
    _wrapped,
    _whole_file,
)


# --- commands --------------------------------------------------------------------------------------

_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_LONG_DASH = re.compile(r"(?:(?<=\s)|^)[–—]{1,2}(?=[\w\s])", re.MULTILINE)
# What a shell takes for a part of a word where only a damaged character can be.
_NOT_IN_COMMANDS = (
    (chat_damage.ENTITY, "<, > and & stand in it as HTML entities"),
    (chat_damage.ODD_BLANK, "no-break spaces part its words"),
    (chat_damage.TYPOGRAPHIC, "typographic quotes stand in it for plain ones"),
    (chat_damage.FULL_WIDTH, "full-width brackets stand in it for plain ones"),
    (chat_damage.ZERO_WIDTH, "zero-width characters stand in it"),
    (chat_damage.LINK, "links stand in it for file names"),
    (_LONG_DASH, "long dashes stand in it for those of its options"),
)


def mend_command(body: str, arrival: Arrival) -> Body:
    """Return the shell lines of a command.

    Raises:
        OperationError: if they are certainly damaged: a command that is not what was meant is never run.
    """
    case = _Case(_split(body), Ground("command.sh"), arrival)
    try:
        for rule in (
            _fence,
            _numbers,
            _marks,
            _lead,
            _trail,
            _blank_lines,
            _characters,
            _shell_indentation,
        ):
            rule(case)
        text = "".join(f"{line}\n" for line in case.lines)
        what = _odd_in_command(text)
        if what:
            case.refuse(what)
    except OperationError as fault:
        reason = fault.reason.replace("The body", "The command", 1)
        raise OperationError(f"{reason}; {_MEANT.format(name='RUN_COMMAND')}") from None
    return Body(text, tuple(case.notes))


def _shell_indentation(case: _Case) -> None:
    """All lines indented alike, so that the end of a here-document is none."""
    lead = min(
        (indentation.blanks(line) for line in case.lines if line.strip()), default="", key=len
    )
    if not lead or not all(line.startswith(lead) for line in case.lines if line.strip()):
        return
    ends = re.findall(r"<<[ \t]*['\"]?(\w+)", "\n".join(case.lines))
    if any(f"{lead}{end}" in case.lines for end in ends):
        case.take([line.removeprefix(lead) for line in case.lines], "the command was indented")


def _odd_in_command(text: str) -> str:
    """Return what is outside of all quotes in a command and can't be meant there; empty if nothing."""
    if text.isascii() and "&" not in text and "](" not in text:
        return ""
    if any(map(chat_damage.LEADING_BLANK.search, text.split("\n"))):
        return "lines are indented by no-break spaces"
    within = file_kinds.lines_of_text(text.split("\n"), "command.sh")
    lines = (line for index, line in enumerate(text.split("\n")) if index not in within)
    rest = _QUOTED.sub("''", "\n".join(lines))
    return next((what for trace, what in _NOT_IN_COMMANDS if trace.search(rest)), "")


# --- bodies that are taken letter by letter --------------------------------------------------------


def check_letters(body: str, path: str, way: Channel, name: str) -> None:
    """Refuse a body with `until` that has what the tags of its answer have suffered.

    Such a body is meant letter by letter, but nobody can say what these letters were. In entities
    even markers of edits are damage: no file but markup holds them so.

    Raises:
        OperationError: if it may have been damaged.
    """
    if any(row.damage in way and row.trace.search(body) for row in ROWS) or (
        Damage.ANGLES in way and chat_damage.ENTITY.search(body)
    ):
        raise OperationError(
            "The tags of this reply were damaged on its way, and the body holds the like: nothing was"
            " done; send this block again, inside of a code block"
        )
    if not file_kinds.is_markup(path) and chat_damage.has_encoded_marker(body):
        raise OperationError(
            f"The {name} body has SEARCH/REPLACE markers in HTML entities, and they look damaged on their"
            " way: nothing was done; send this block again, inside of a code block"
        )


# --- SEARCH/REPLACE --------------------------------------------------------------------------------


def mend_replacements(body: str, reads: Callable[[str], object]) -> Body:
    """Return the body of SEARCH/REPLACE blocks with readable markers, if the damage to these is certain.

    Markers in entities show what became of all of the body. It is decoded as a whole then, once.

    Args:
        body: as it came.
        reads: raises OperationError for what can't be read.

    Raises:
        OperationError: if the markers came in entities, and the lines of the body not throughout.
    """
    if _reads(body, reads):
        return Body(body)
    notes: tuple[str, ...] = ()
    bare = _without_fence(body) if _is_marked_up(body) else None
    if bare is not None:
        body, notes = bare, (_FENCE_NOTE,)
        if _reads(body, reads):
            return Body(body, notes)
    lines = body.split("\n")
    mended = [marker_of(line) or line for line in lines]
    text = "\n".join(mended)
    if mended != lines and _reads(text, reads) and chat_damage.has_encoded_marker(body):
        if not _can_be_decoded(body):
            raise OperationError(
                "The markers of this edit came as HTML entities, and the lines between them only in part:"
                " nothing was done; send this block again, inside of a code block"
            )
        body = chat_damage.without_entities(body)
        notes = (*notes, f"{Damage.ENTITIES.value} were undone in the body, as in its markers")
        if _reads(body, reads):
            return Body(body, notes)
        lines = body.split("\n")
        mended = [marker_of(line) or line for line in lines]
        text = "\n".join(mended)
    if mended != lines and _reads(text, reads):
        return Body(text, (*notes, "damaged SEARCH/REPLACE markers were read as such"))
    return Body(body, notes)


def _can_be_decoded(body: str) -> bool:
    """Return whether all of a body went through one serializer of HTML: nothing in it was left out."""
    rest = chat_damage.ENTITY.sub("", body)
    quotes = {"&quot;": '"', "&#34;": '"', "&#39;": "'", "&#x27;": "'", "&apos;": "'"}
    is_partly = any(name in body and quote in rest for name, quote in quotes.items())
    return not is_partly and not any(c in rest for c in "<>&")


def _reads(body: str, reads: Callable[[str], object]) -> bool:
    try:
        reads(body)
    except OperationError:
        return False
    return True


# --- markers ---------------------------------------------------------------------------------------

_MARKER = re.compile(r"(<{7,}) ?SEARCH|(={7,})|(>{7,}) ?REPLACE")


def marker_of(line: str) -> str | None:
    """Return the marker that a line is, whatever was done to it, or None.

    Only used where the body can't be read otherwise, so that a body that holds such text is safe.
    """
    if len(line) > 200 or not any(mark in line for mark in ("SEARCH", "REPLACE", "===", "\\=")):
        return None
    text = chat_damage.with_plain_blanks(chat_damage.without_zero_width(line))
    text = chat_damage.without_escapes(chat_damage.without_entities(text)).strip().strip("*`~ ")
    found = _MARKER.fullmatch(text)
    if found is None:
        return None
    if found[1]:
        return f"{found[1]} SEARCH"
    return found[2] or f"{found[3]} REPLACE"


# --- fences ----------------------------------------------------------------------------------------


def _is_marked_up(body: str) -> bool:
    """Tell cheaply whether a fence or a label can be round a body."""
    head = body[:200]
    if "```" in head or "~~~" in head or "opy" in head:
        return True
    tail = body[-60:]
    return "```" in tail or "~~~" in tail


def _is_fence(line: str) -> bool:
    return _FENCE.fullmatch(line) is not None


def _is_one_fence(lines: Sequence[str]) -> bool:
    """Return whether lines are one fence, open at the first and closed at the last that has a word."""
    words = [line for line in lines if line.strip()]
    if len(words) < 2 or not (_is_fence(words[0]) and _is_fence(words[-1])):
        return False
    return _depth_behind(words[1:-1], words[0]) == 0


def _depth_behind(lines: Sequence[str], opening: str) -> int:
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


def _without_fence(body: str) -> str | None:
    """Return what a fence holds that opens on the first line of a body and closes on its last.

    A line "Copy code" and the language before it belong to the fence. One of the two fences may be
    outside of the tags. A fence that is balanced inside is no wrapper.
    """
    lines = body.split("\n")
    start, end = 0, len(lines)
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    has_language = start < end and lines[start].strip().lower() in _LANGUAGES
    label = start + has_language
    copied = label
    while copied < end and _COPY.fullmatch(lines[copied]):
        copied += 1
    # A language alone is a label only where both fences follow.
    is_pair = label + 1 < end and _is_fence(lines[label]) and _is_fence(lines[end - 1])
    # One alone is an empty body, such as that of `__init__.py`.
    has_label = label < copied
    first = copied if has_label else label if has_language and is_pair else start
    opened = _FENCE.fullmatch(lines[first]) if first < end else None
    closed = _FENCE.fullmatch(lines[end - 1]) if end - 1 > first else None
    if closed is not None and (closed[2] or (has_label and opened is None)):
        closed = None
    if opened is None and closed is None and not has_label:
        return None
    begin = first + 1 if opened is not None else first
    stop = end - 1 if closed is not None else len(lines) - (not lines[-1])
    if opened is not None:
        depth = _depth_behind(lines[begin:stop], lines[first])
        if depth < 0 or (depth and closed is not None):
            return None
    elif closed is not None and sum(map(_is_fence, lines[begin:stop])) % 2:
        return None
    return "".join(f"{line}\n" for line in lines[begin:stop])


# --- whole files -----------------------------------------------------------------------------------


def _lacks_tabs(makefile: str) -> bool:
    has_own = "\t" in makefile or ".RECIPEPREFIX" in makefile
    return not has_own and _RECIPE.search(makefile) is not None


def _has_tabs(case: _Case) -> bool:
    text = case.ground.text_among(case.lines)
    return any(line.startswith("\t") and i not in text for i, line in enumerate(case.lines))
