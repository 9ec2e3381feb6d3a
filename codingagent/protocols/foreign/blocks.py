"""Read code blocks: where a fence opens and closes, its path, the whole file in it, SEARCH/REPLACE.

A fence whose text holds fences of the same length has no certain end by itself: the rules of Markdown
close it at the first bare fence, and models nest them all the same. An end is given only where both
readings agree, or one of them is not possible.
"""

import re
from bisect import bisect_right
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from codingagent.editing import elisions
from codingagent.editing.edit_markers import MarkedEdit
from codingagent.errors import OperationError
from codingagent.model import chat_damage, paths
from codingagent.model.chat_damage import BodyEvidence, Channel, Damage, without_direction
from codingagent.model.operations import CreateFile, Replacement
from codingagent.model.patterns import lazy_pattern, sections, word_lists, words
from codingagent.model.plain_text import DOUBT, joined
from codingagent.protocols.foreign import file_names
from codingagent.protocols.foreign.diffs import Asked, other_kind
from codingagent.protocols.foreign.file_names import Files, Name
from codingagent.protocols.tags.reply import BLOCK_LINE

_FENCE = lazy_pattern(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^`]*?)[ \t]*")

SHELLS = word_lists(__file__)["shells"]
TEXT_LANGUAGES = ("", "text", "txt", "plaintext", "plain")
MARKDOWN_LANGUAGES = ("markdown", "md", "mdx")


class Ending(Enum):
    """The certainty of the end of a fence."""

    PLAIN = "nothing else in it"
    NESTED = "fences in it, closed each"
    DOUBTFUL = "not sure"


class Fence(Struct, frozen=True):
    """A line that opens or closes a fence; `indent` is the blanks before it."""

    line: int
    indent: str
    marks: str
    info: str

    @property
    def language(self) -> str:
        return re.split(r"[\s:{,]", self.info, maxsplit=1)[0].lower()


class Fences:
    """All fence lines of a text."""

    def __init__(self, lines: list[str]) -> None:
        marked = ((at, line) for at, line in enumerate(lines) if "```" in line or "~~~" in line)
        found = ((at, _FENCE.fullmatch(without_direction(line))) for at, line in marked)
        self.all = [Fence(at, one[1], one[2], one[3]) for at, one in found if one]
        self._lines = [fence.line for fence in self.all]
        # What was found from which line on: openings without a close must not each look to the end.
        self._closes: dict[tuple[str, int], tuple[int, int | None]] = {}
        self.by_line = {fence.line: fence for fence in self.all}

    def first_close(self, opening: Fence, start: int) -> int | None:
        """Return the first line from `start` on that could close a fence."""
        key = (opening.marks, len(opening.indent))
        known = self._closes.get(key)
        if known is not None and known[0] <= start and (known[1] is None or start <= known[1]):
            return known[1]
        later = (self.all[at] for at in range(bisect_right(self._lines, start - 1), len(self.all)))
        found = next((fence.line for fence in later if not fence.info and _belongs(opening, fence)), None)
        self._closes[key] = (start, found)
        return found

    def close(self, opening: Fence, *, is_markdown: bool) -> tuple[int | None, Ending]:
        """Return the line that closes a fence, and how certain that is; Markdown may hold bare fences."""
        inner, ending = False, Ending.PLAIN
        for index in range(bisect_right(self._lines, opening.line), len(self.all)):
            fence = self.all[index]
            if not _belongs(opening, fence):
                continue
            if fence.info:
                if inner:
                    return None, Ending.DOUBTFUL
                inner, ending = True, Ending.NESTED
            elif inner:
                inner = False
            else:
                behind = self.all[index + 1] if index + 1 < len(self.all) else None
                bare = behind is not None and not behind.info and _belongs(opening, behind)
                return fence.line, Ending.DOUBTFUL if bare and is_markdown else ending
        return None, Ending.DOUBTFUL


def _belongs(opening: Fence, fence: Fence) -> bool:
    """Return whether a fence could close the opening one, or open one in it that could."""
    return fence.marks.startswith(opening.marks) and len(fence.indent) <= len(opening.indent)


def dedented(lines: list[str], indent: str) -> list[str]:
    """Return a fence's lines without the blanks before the fence, if all of them have those."""
    if not indent or any(line.strip() and not line.startswith(indent) for line in lines):
        return lines
    return [line.removeprefix(indent) for line in lines]


def _without_wrappers(lines: list[str]) -> list[str]:
    """Return the lines without the fences around commands of ours: they belong to these."""
    blocks = [index for index, line in enumerate(lines) if line.startswith(BLOCK_LINE)]
    if not blocks:
        return lines
    kept = list(lines)
    found = Fences(lines)
    closed: set[int] = set()
    at = 0
    for fence in found.all:
        if fence.line < at or fence.line in closed:
            continue
        close = found.first_close(fence, fence.line + 1)
        block = bisect_right(blocks, fence.line)
        if block < len(blocks) and (close is None or blocks[block] < close):
            kept[fence.line] = BLOCK_LINE
            if close is not None:
                kept[close] = ""
                closed.add(close)
        elif close is not None:
            at = close + 1
        else:
            break
    return kept


def unwrapped(lines: list[str]) -> list[str]:
    """Return the lines without fences around commands of ours, or around all of them and fences inside."""
    lines = _without_wrappers(lines)
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None or not lines[first].strip().startswith(("```", "~~~")):
        return lines
    last = next(i for i in range(len(lines) - 1, -1, -1) if lines[i].strip())
    found = Fences(lines)
    opening = found.by_line.get(first)
    may_wrap = opening and opening.info in (*TEXT_LANGUAGES, *MARKDOWN_LANGUAGES)
    if opening is None or not may_wrap or len(found.all) < 4:
        return lines
    close, ending = found.close(opening, is_markdown=False)
    if close != last or ending is Ending.DOUBTFUL:
        return lines
    return [*lines[:first], "", *lines[first + 1 : last], "", *lines[last + 1 :]]


# --- SEARCH/REPLACE ------------------------------------------------------------------------------

_HOW = (
    "send <<<<<<< SEARCH, the old lines, =======, the new lines, >>>>>>> REPLACE again; if the text"
    " itself contains such a line, make all three markers longer, of equal length"
)


def replacement(edit: MarkedEdit, indent: str, *, fenced: bool) -> tuple[Replacement, Channel]:
    """Return the replacement that a block asks for, and what its text may still have suffered."""
    if edit.fault:
        raise OperationError(edit.fault, advice=f"; {_HOW}")
    both = dedented([*edit.old, *edit.new], indent)
    if Damage.ANGLES in edit.way:
        # What encoded the markers has encoded the text between them.
        both = [chat_damage.without_entities(line) for line in both]
    old, new = both[: len(edit.old)], both[len(edit.old) :]
    way = edit.way - {Damage.ANGLES}
    return Replacement(joined(old), joined(new), is_verbatim=fenced), way


# --- whole files ---------------------------------------------------------------------------------

_MARKDOWN = (".md", ".markdown", ".mdx", ".mdown")
# Files that hold what elsewhere is to be applied.
DIFFERENCES = (".diff", ".patch")
# What has to be the first line of its file, so that no comment can be above it.
_FIRST = lazy_pattern(r"#!|<\?(?:xml|php)|<!doctype|---[ \t]*$|@charset|#[ \t]*-\*-|\ufeff", re.IGNORECASE)


@lru_cache(1000)
def is_of_language(language: str, path: str) -> bool | None:
    """Return whether a fence says the language that its path's ending does; None: it can't be known."""
    ending = path.rpartition(".")[2].lower()
    families = [words(line) for line in sections(__file__)["families"].split("\n")]
    says = [family for family in families if language in family]
    is_known = says and any(ending in family for family in families)
    return any(ending in family for family in says) if is_known else None


def check_language(language: str, path: str) -> None:
    """Refuse a fence of another language: it may be the output, the settings or the use of that file."""
    if is_of_language(language, path) is False:
        fact = f"its fence says {language}, which '{paths.shown(path)}' is not"
        raise OperationError(fact, advice="; if it is that file, send it with the fence of its language")


def is_markdown(path: str, language: str) -> bool:
    """Return whether a file's text may hold fences of its own."""
    return path.lower().endswith(_MARKDOWN) or language in MARKDOWN_LANGUAGES


def whole_file(lines: list[str], name: Name, files: Files, *, is_inside: bool) -> Asked:
    """Return the operation that a whole file asks for, and notes on how it was read.

    `is_inside`: the path is known from the first line only. Refuse a text that leaves something out.
    """
    name.only("one path above each file")
    path, note = files.whole(name)
    notes: tuple[str, ...] = (note,) if note else ()
    if not path.endswith(DIFFERENCES) and _is_difference(lines):
        raise OperationError(
            f"its lines look like a difference of '{paths.shown(path)}'",
            advice=f"; send that in a fence that says"
            " diff, or the file whole and without + and -; if the file has them, send"
            f' [CREATE_FILE path="{paths.shown(path)}"]',
        )
    elided = elisions.first_elision(lines)
    has_label = bool(lines) and (is_inside or _is_label(lines, path, files))
    text = [i for i, line in enumerate(lines) if line.strip()][has_label:]
    if has_label and not text:
        raise OperationError(
            f"it has nothing but the path '{paths.shown(path)}'",
            advice=f"; send its text too, or an empty"
            f' [CREATE_FILE path="{paths.shown(path)}"] if it has none',
        )
    if elided is not None and (path in files or all(elisions.is_elision(lines, i) for i in text)):
        fact = f"'{lines[elided].strip()}' stands for text of '{paths.shown(path)}' that was left out"
        raise OperationError(fact, advice="; send the file whole, or only an edit")
    if elided is not None:
        notes += (f"'{lines[elided].strip()}' may stand for other lines, {DOUBT}",)
    if has_label:
        notes += (f"the first line, '{paths.shown(lines[0].strip())}', was taken as the path only",)
        lines = lines[1:]
    arrival = BodyEvidence(in_code=True)
    return (CreateFile(path, joined(lines), overwrite=path in files, arrival=arrival),), notes


def _is_difference(lines: list[str]) -> bool:
    """Return whether lines have the marks of a difference: no file has these by itself."""
    if any(a[:1] == "-" and b[:1] == "+" for a, b in pairwise(lines)):
        return True
    marks = {line[0] for line in lines if line.strip()}
    return ("+" in marks and marks <= {"+", "-", " "}) or bool(other_kind(lines))


def _is_label(lines: list[str], path: str, files: Files) -> bool:
    """Return whether the first line names the path and can't be part of the file.

    Where the path is known from elsewhere, it is the file's own comment, if the file can have one there.
    """
    name = file_names.name_in_comment(lines[0], 0, files)
    if name is None or name.texts[0].rpartition("/")[2] != path.rpartition("/")[2]:
        return False
    is_first = len(lines) > 1 and _FIRST.match(lines[1]) is not None
    return is_first or path.lower().endswith((".json", ".csv", ".txt"))


# --- the path of a part -----------------------------------------------------------------------------
# It stands in the fence line, on the lines above, or as the heading of a section. A word that only its place
# shows to be a path is one only where nothing else can be meant.
# How far above a part its path may be, in lines that are not blank.
_ABOVE_LIMIT = 8
_INSIDE_LIMIT = 3
_SCRIPTS = (".sh", ".bash", ".zsh", ".fish", ".ps1", ".psm1", ".bat", ".cmd", ".env", ".bats")
_SESSIONS = words("console terminal shell-session shellsession sh-session")
TITLE = lazy_pattern(r"[ \t]*(?:#{1,6}[ \t]|\*\*|<)")
_BULLET = lazy_pattern(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]")


class Headings:
    """The names in an answer; none from above `floor`, the line after the last part, holds any more."""

    def __init__(self, lines: list[str], files: Files, fences: Fences) -> None:
        self._lines = lines
        self._files = files
        self._fences = fences
        self._named: dict[int, Name | None] = {}
        self.floor = 0

    def of_whole(self, fence: Fence, above: Name | None, lines: list[str]) -> tuple[Name | None, bool]:
        """Return the path of a whole file, and whether it is in its first line only; refuse two."""
        if file_names.is_line_quote(fence.info):
            return None, False
        info = file_names.name_in_info(fence.info, fence.line, self._files)
        heading = above if above is not None and self._is_file_heading(above) else None
        if info is None and heading is None:
            # The heading of a section that says that its file is new, with text below it.
            far = self.of_section(fence.line)
            is_new = far is not None and far.is_new and not self._files.fits(far.texts[0])
            if far is not None and is_new and self._texts(far.line, fence.line) == far.texts:
                heading = far if self._is_file_heading(far) else None
        outside = _longer(info, heading) if info is not None and heading is not None else info or heading
        if fence.language in SHELLS:
            # Shell lines are to be typed, unless a script has its path or `#!` above them.
            last = "" if outside is None else outside.texts[0].rpartition("/")[2]
            is_script = "." not in last.strip(".") or last.endswith(_SCRIPTS)
            if outside is None:
                is_script = any(line.startswith("#!") for line in lines[:2])
            if fence.language in _SESSIONS or not is_script:
                return None, False
        # The first line of a file may name its path in a comment, or bare where no line of code is so.
        bare, inside = (lines[0].strip() if lines else ""), None
        is_code = fence.language not in MARKDOWN_LANGUAGES
        is_code = is_code and is_of_language(fence.language, bare) is True
        if is_code and "/" in bare and file_names.is_path(bare, self._files):
            inside = Name((bare,), fence.line + 1)
        elif lines:
            inside = file_names.name_in_comment(lines[0], fence.line + 1, self._files)
        if outside is None or inside is None or len(outside.texts) > 1:
            return outside or inside, outside is None
        if _differ(outside, inside) and inside.texts[0] not in self._files:
            return outside, False
        is_twin = outside.texts[0] in self._files and self._files.plain(inside.texts[0]) not in self._files
        return _longer(outside, inside, may_differ=is_twin), False

    def of_edit(self, edit: MarkedEdit, fence: Fence | None, before: Name | None) -> Name | None:
        """Return the path of a SEARCH/REPLACE block; where none is named, that of the block before holds."""
        said = edit.label.partition(" ")[2] if edit.asks else edit.label
        said = said.strip(" ()`'\"")
        if said in self._files or (edit.asks and file_names.is_path(said, self._files, labelled=True)):
            return Name((said,), edit.start)
        start = self.floor if fence is None else max(self.floor, fence.line + 1)
        name = self.between(start, edit.start, _INSIDE_LIMIT if fence else _ABOVE_LIMIT)
        if name is None and fence is not None:
            name = file_names.name_in_info(fence.info, fence.line, self._files)
            if name is None and self.floor <= fence.line:
                name = self.between(self.floor, fence.line, _ABOVE_LIMIT)
        return name or before

    def _is_file_heading(self, name: Name) -> bool:
        """Return whether the line above says that a whole file follows, not a piece of it."""
        if name.is_heading or len(name.texts) > 1:
            return name.is_heading
        text = name.texts[0]
        if name.is_label and text not in self._files and not self._files.fits(text):
            return True
        return name.is_whole or (name.is_new and text not in self._files)

    def _name(self, at: int) -> Name | None:
        """Return what a line names; each is read once, however many parts look up to it."""
        if at not in self._named:
            self._named[at] = file_names.name_in(self._lines[at], at, self._files)
        return self._named[at]

    def _texts(self, start: int, end: int) -> tuple[str, ...]:
        names = (self._name(i) for i in range(start, end))
        return tuple(dict.fromkeys(text for name in names if name is not None for text in name.texts))

    def of_section(self, at: int) -> Name | None:
        """Return the one path of the heading over a line, if nothing but a few lines of text is between."""
        seen = 0
        for index in range(at - 1, self.floor - 1, -1):
            line = self._lines[index]
            if not line.strip():
                continue
            name = None if _BULLET.match(line) else self._name(index)
            if TITLE.match(line) or (name is not None and name.is_heading):
                return name if name is not None and len(name.texts) == 1 else None
            seen += 1
            if seen > _ABOVE_LIMIT:
                break
        return None

    def of_difference(self, fence: Fence, above: Name | None) -> Name | None:
        """Return the path that is above a difference: next to it, or as the heading of its section."""
        far = self.of_section(fence.line)
        if far is None or not far.is_heading or (above is not None and above.is_heading):
            return above
        return replace(far, texts=self._texts(far.line, fence.line))

    def above(self, fence: Fence) -> Name | None:
        """Return what the nearest line above a fence names, at most two blank lines away."""
        return self.between(max(self.floor, fence.line - 3), fence.line, 1)

    def near(self, at: int) -> Name | None:
        return self.between(self.floor, at, _ABOVE_LIMIT)

    def between(self, start: int, end: int, limit: int) -> Name | None:
        """Return the nearest name above `end`, looking at some lines that are not blank."""
        for at in range(end - 1, max(start, end - 3 * limit - 3) - 1, -1):
            if self._lines[at].strip():
                name = self._name(at)
                if name is not None:
                    return name
                limit -= 1
                if not limit:
                    break
        return None


def only(name: Name | None) -> str:
    """Return the one path of a name; refuse none, and more."""
    if name is None:
        fact = "no path is above it"
        raise OperationError(fact, advice="; write 'File:' and its path on the line above it")
    return name.only("one path above each block")


def _differ(one: Name, other: Name) -> bool:
    """Return whether neither of two paths is the end of the other."""
    a, b = (f"/{name.texts[0].removeprefix('./')}" for name in (one, other))
    return not (a.endswith(b) or b.endswith(a))


def _longer(one: Name, other: Name, *, may_differ: bool = False) -> Name:
    """Return what two names say of a file, with the longer path; refuse two files."""
    if may_differ or _differ(one, other):
        raise OperationError(
            f"line {one.line + 1} says '{paths.shown(one.texts[0])}' and line {other.line + 1} says"
            f" '{paths.shown(other.texts[0])}'",
            advice="; write one path above each file, or send [CREATE_FILE]",
        )
    return replace(max(one, other, key=lambda name: len(name.texts[0])), is_new=one.is_new or other.is_new)
