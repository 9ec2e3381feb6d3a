"""Read code blocks: where a fence opens and closes, the whole file in it, and SEARCH/REPLACE in any spelling.

A fence whose text holds fences of the same length has no certain end by itself: the rules of Markdown
close it at the first bare fence, and models nest them all the same. An end is given only where both
readings agree, or one of them is not possible.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from codingagent.editing import edit_markers, elisions
from codingagent.editing.edit_markers import MarkedEdit
from codingagent.errors import OperationError
from codingagent.model import chat_damage, paths
from codingagent.model.chat_damage import BodyEvidence, Channel, Damage, without_direction
from codingagent.model.operations import CreateFile, Replacement
from codingagent.model.patterns import lazy_pattern, sections, word_lists, words
from codingagent.model.plain_text import DOUBT, joined
from codingagent.protocols.foreign.diffs import Asked, other_kind
from codingagent.protocols.foreign.file_names import Files, Name, name_in_comment
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
        """The language that the fence names, in lower case."""
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
        self._by_line = {fence.line: fence for fence in self.all}

    def at(self, line: int) -> Fence | None:
        """Return the fence at a line."""
        return self._by_line.get(line)

    def first_close(self, opening: Fence, start: int) -> int | None:
        """Return the first line from `start` on that could close a fence."""
        key = (opening.marks, len(opening.indent))
        known = self._closes.get(key)
        if known is not None and known[0] <= start and (known[1] is None or start <= known[1]):
            return known[1]
        found = None
        for index in range(bisect_right(self._lines, start - 1), len(self.all)):
            fence = self.all[index]
            if not fence.info and _belongs(opening, fence):
                found = fence.line
                break
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
    opening = found.at(first)
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


def find_edits(lines: Sequence[str]) -> tuple[MarkedEdit, ...]:
    """Return the blocks of an answer in order; a marker that belongs to none is a broken one."""
    found: list[MarkedEdit] = []
    at = 0
    for edit in (*edit_markers.find_edits(lines), None):
        for index in range(at, len(lines) if edit is None else edit.start):
            lacks = "closing" if edit_markers.asks(lines[index]) else ""
            if lacks := lacks or "opening" * edit_markers.answers(lines[index]):
                fault = f"it has no {lacks} marker"
                found.append(MarkedEdit(index, index + 1, fault=fault, asks=True))
        if edit is not None:
            found.append(edit)
            at = edit.end
    return tuple(found)


def replacement(edit: MarkedEdit, indent: str, *, fenced: bool) -> tuple[Replacement, Channel]:
    """Return the replacement that a block asks for, and what its text may still have suffered."""
    if edit.fault:
        raise OperationError(edit.fault, advice=f"; {_HOW}")
    both = dedented([*edit.old, *edit.new], indent)
    if Damage.ANGLES in edit.way:
        # What encoded the markers has encoded the text between them.
        both = [chat_damage.without_entities(line) for line in both]
    old, new = both[: len(edit.old)], both[len(edit.old) :]
    elided = elisions.first_elision(new, {line.strip() for line in old})
    if elided is not None:
        raise OperationError(
            f"its new text has '{new[elided].strip()}', which stands for text that was left out",
            advice="; write that text",
        )
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
        raise OperationError(
            f"its fence says {language}, which '{paths.shown(path)}' is not",
            advice="; if it is that file, send it with the fence of its language",
        )


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
    if name.is_new and path in files:
        notes += (f"{paths.shown(path)} was called new, and exists",)
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
        raise OperationError(
            f"'{lines[elided].strip()}' stands for text of '{paths.shown(path)}' that was left out",
            advice="; send the file whole, or only an edit",
        )
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
    name = name_in_comment(lines[0], 0, files)
    if name is None or name.texts[0].rpartition("/")[2] != path.rpartition("/")[2]:
        return False
    is_first = len(lines) > 1 and _FIRST.match(lines[1]) is not None
    return is_first or path.lower().endswith((".json", ".csv", ".txt"))
