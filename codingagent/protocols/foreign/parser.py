"""An answer in other formats than ours: the operations that it asks for, and what is said of the rest.

How it works. Lines at which something may begin (a fence, a marker, a difference's header) are found
first; then the parts are read in order, each to its own end. A path is looked for in the part, in its
fence line, and in the lines above it, back to the part before. What has no path, or no certain end, or
may mean two things, is a problem that says what to send; nothing is guessed, and nothing that looks
like a file or a change is passed over without a word.

Over 500 lines: one pass over an answer, a method for each kind of part.
"""

import re
from bisect import bisect_right
from collections.abc import Collection

from msgspec import Struct

from codingagent.editing.edit_markers import MarkedEdit
from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.operations import DeleteFile
from codingagent.protocols.foreign import (
    begin_patch,
    elements,
    fences,
    search_replace,
    unified_diff,
    whole_files,
)
from codingagent.protocols.foreign.elements import Element
from codingagent.protocols.foreign.fences import Ending, Fence, Fences
from codingagent.protocols.foreign.file_names import (
    Files,
    Name,
    is_line_quote,
    is_path,
    name_in,
    name_in_info,
    words,
)
from codingagent.protocols.foreign.headings import (
    TEXT_LANGUAGES,
    TITLE,
    Headings,
    is_bare_path,
    only,
)
from codingagent.protocols.foreign.items import RENAMING, Items
from codingagent.protocols.tags import scanner
from codingagent.protocols.tags.reply import BLOCK_LINE, Problem, Step

_DIFF_LANGUAGES = words("diff patch udiff unidiff git-diff")
_WRAPPER_LANGUAGES = frozenset((*TEXT_LANGUAGES, *whole_files.MARKDOWN_LANGUAGES))
_STARTS = ("```", "~~~", "<", "*** ", "--- ", "diff --git ", "Index: ", "@@")
# Words of a line that may tell of a deletion or a renaming.
_CHANGE = re.compile(r"\b(?:delete|remove|rename|move)d?\b", re.IGNORECASE)


class ForeignAnswer(Struct, frozen=True):
    """What an answer asks for in other formats, in its order, and what is said of the rest of it.

    `notes` are about parts that name a file, `asides` about code blocks that name none.
    """

    items: tuple[Step | Problem, ...]
    notes: tuple[str, ...]
    asides: tuple[str, ...] = ()


def read(text: str, files: Collection[str]) -> ForeignAnswer:
    """Return what a text asks for. Never raises: what can't be read is a problem.

    Args:
        text: an answer without commands of ours, or one with `BLOCK_LINE` in the place of each.
        files: the paths that exist in the workspace, in plain form.
    """
    lines = scanner.fold_line_ends(text.removeprefix("\ufeff")).split("\n")
    return _AnswerReader(_unwrapped(_without_wrappers(lines)), Files(files)).run()


def _without_wrappers(lines: list[str]) -> list[str]:
    """Return the lines without the fences around commands of ours: they belong to these."""
    blocks = [index for index, line in enumerate(lines) if _is_block(line)]
    if not blocks:
        return lines
    kept = list(lines)
    found = Fences(lines)
    closed: set[int] = set()
    at = 0
    while (fence := found.next_from(at)) is not None:
        at = fence.line + 1
        if fence.line in closed:
            continue
        close = found.first_close(fence, at)
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


def _is_block(line: str) -> bool:
    return line.startswith(BLOCK_LINE)


def _unwrapped(lines: list[str]) -> list[str]:
    """Return the lines without a fence around all of them, if there are fences inside."""
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None or not lines[first].strip().startswith(("```", "~~~")):
        return lines
    last = next(i for i in range(len(lines) - 1, -1, -1) if lines[i].strip())
    found = Fences(lines)
    opening = found.at(first)
    if opening is None or opening.info not in _WRAPPER_LANGUAGES or found.count() < 4:
        return lines
    close, ending = found.close(opening, is_markdown=False)
    if close != last or ending is Ending.DOUBTFUL:
        return lines
    return [*lines[:first], "", *lines[first + 1 : last], "", *lines[last + 1 :]]


class _AnswerReader:
    """One pass over one answer; `_floor` is the index after the last part."""

    def __init__(self, lines: list[str], files: Files) -> None:
        self._lines = lines
        self._files = files
        self._fences = Fences(lines)
        self._edits = {edit.start: edit for edit in search_replace.find(lines)}
        self._openings = list(self._edits)
        self._closings = elements.Closings(lines)
        self._names = Headings(lines, files, self._fences)
        self._items = Items(files)
        self._changes: list[Name] = []

    def run(self) -> ForeignAnswer:
        at = 0
        for start, line in enumerate(self._lines):
            if start < at:
                continue
            if start in self._edits or line.lstrip().startswith(_STARTS):
                behind = self._read_part(start)
                if behind is not None:
                    at = self._names.floor = behind
                    continue
            if _is_block(line):
                self._names.floor = start + 1
            elif _CHANGE.search(line, 0, 300):
                self._hear(start)
        self._tell_of_changes()
        items = self._items.all()
        return ForeignAnswer(items, self._items.notes(), self._items.asides())

    def _read_part(self, at: int) -> int | None:
        """Read the part that begins at a line and return the index after it; None: none does."""
        line = self._lines[at]
        if (fence := self._fences.at(at)) is not None:
            return self._read_fence(fence)
        if (edit := self._edits.get(at)) is not None:
            self._take_edit(edit, None)
            return edit.end
        if (element := elements.opening(line)) is not None:
            return self._read_element(at, len(self._lines), element)
        if begin_patch.begins(line):
            return self._read_patch(at, len(self._lines), fenced=False)
        if unified_diff.begins(self._lines, at, len(self._lines)):
            return self._read_diff(at, len(self._lines), fenced=False)
        return None

    # --- fences --------------------------------------------------------------------------------

    def _read_fence(self, fence: Fence) -> int:
        first = fence.line + 1
        close = self._fences.first_close(fence, first)
        start = None if close is None else self._first_line(first, close)
        edit = self._next_edit(fence.line)
        if edit is not None and (close is None or edit.start < close):
            is_context = start is not None and close is not None and start < edit.start
            if not (is_context and self._begins_difference(start or 0, close or 0)):
                return self._read_edits(fence, edit)
        name = self._names.above(fence)
        if close is not None and start is not None:
            behind = self._fences.behind(close)
            if self._is_patch(start, close):
                self._read_patch(self._patch_start(start, close), close, fenced=True)
                return behind
            inside = whole_files.name_inside(
                self._lines[start:close], start, self._files, fence.language
            )
            if (
                inside is not None
                and start + 1 < close
                and self._begins_difference(start + 1, close)
            ):
                self._read_diff(start + 1, close, fenced=True, name=inside)
                return behind
            if self._is_diff(fence, name, start, close):
                begin = unified_diff.start(self._lines, start, close)
                self._read_diff(
                    begin, close, fenced=True, name=self._names.of_difference(fence, name)
                )
                return behind
        return self._read_block(fence, name)

    def _begins_difference(self, start: int, close: int) -> bool:
        begin = unified_diff.start(self._lines, start, close)
        return self._is_patch(start, close) or unified_diff.begins(self._lines, begin, close)

    def _read_block(self, fence: Fence, above: Name | None) -> int:
        """Read a fence that holds a file, a command or an example."""
        named = name_in_info(fence.info, fence.line, self._files) or above
        path = named.texts[0] if named is not None else ""
        is_markdown = whole_files.is_markdown(path, fence.language)
        close, ending = self._fences.close(fence, is_markdown=is_markdown)
        path = path if named is not None and named.is_heading else ""
        # Code with labelled fences at its margin is rarer than a fence that was not closed.
        is_doubtful = ending is Ending.NESTED and bool(path) and not is_markdown
        if close is None or ending is Ending.DOUBTFUL or is_doubtful:
            return self._read_unclosed(fence, close, path)
        first = self._first_line(fence.line + 1, close)
        if first is not None and self._holds_elements(first, close):
            self._read_elements(first, close)
            return self._fences.behind(close)
        lines = fences.dedented(self._lines[fence.line + 1 : close], fence.indent)
        line = fence.line + 1
        try:
            name, is_inside = self._names.of_whole(fence, above, lines)
            if name is not None:
                whole_files.check_language(fence.language, name.texts[0])
                operation, notes = whole_files.operation_of(
                    lines, name, self._files, is_inside=is_inside, is_fenced=True
                )
                self._items.add_whole(operation, line, notes)
        except OperationError as fault:
            self._items.refuse(whole_files.TAG, line, fault.reason, path)
            return self._fences.behind(close)
        if name is None:
            self._pass_over(fence, above, lines)
            if ending is Ending.NESTED:
                self._items.note(
                    f"the fence at line {line} holds other fences, and nothing in it was used"
                )
        return self._fences.behind(close)

    def _read_unclosed(self, fence: Fence, close: int | None, path: str) -> int:
        """Read a fence without a certain end: nothing after it is sure to be what it looks like."""
        line = fence.line + 1
        end = len(self._lines)
        if close is None and self._first_line(line, end) is None:
            return end
        if close is None:
            self._items.refuse(
                "REPLY" if not path else whole_files.TAG,
                line,
                "its fence is not closed with certainty, so nothing from there on was used; send what"
                " stands there again, each file in a longer fence (````) if it holds fences itself",
                path,
            )
            return end
        if not path:
            self._pass_over(fence, None, self._lines[fence.line + 1 : close])
            return close + 1
        self._items.refuse(
            whole_files.TAG,
            line,
            "it holds fences as long as its own, so its end is not certain; nothing from there on was"
            " used: send it again in a longer fence (````), and what follows it",
            path,
        )
        return end

    def _pass_over(self, fence: Fence, above: Name | None, lines: list[str]) -> None:
        """Say what a fence was taken for that is no file."""
        line = fence.line + 1
        start = next((text for text in lines if text.strip()), "")
        if fence.language in fences.SHELLS or start.startswith("$ "):
            self._items.pass_over_shell(line)
            return
        near = above or self._names.of_section(fence.line) or self._names.near(fence.line)
        if is_line_quote(fence.info):
            self._items.note(f"the block at line {line} quotes lines of a file and was not used")
        elif near is not None and (above or near.is_heading or near.texts[0] in self._files):
            self._items.note(
                f"the block at line {line} was not used: '{paths.shown(near.texts[0])}' is named at line"
                f" {near.line + 1}, but not as the path of a whole file; for one, write its path alone on"
                " the line above the fence, for a piece of one send SEARCH/REPLACE"
            )
        elif start:
            self._items.pass_over_unnamed(line)

    def _is_patch(self, start: int, close: int) -> bool:
        return any(begin_patch.begins(self._lines[i]) for i in range(start, min(start + 3, close)))

    def _patch_start(self, start: int, close: int) -> int:
        return next(i for i in range(start, close) if begin_patch.begins(self._lines[i]))

    def _is_diff(self, fence: Fence, name: Name | None, start: int, close: int) -> bool:
        path = "" if name is None or not name.is_heading else name.texts[0]
        if path.endswith(whole_files.DIFFERENCES):
            return False
        start = unified_diff.start(self._lines, start, close)
        return fence.language in _DIFF_LANGUAGES or unified_diff.begins(self._lines, start, close)

    # --- elements ------------------------------------------------------------------------------

    def _holds_elements(self, first: int, close: int) -> bool:
        """Return whether a fence holds files in elements and nothing else."""
        if self._lines[first].strip().lower() == "<files>":
            return True
        element = elements.opening(self._lines[first])
        if element is None or not element.is_whole:
            return False
        last = next(i for i in range(close - 1, first - 1, -1) if self._lines[i].strip())
        return self._lines[last].strip() == f"</{element.tag}>"

    def _read_elements(self, start: int, end: int) -> None:
        at = start
        while at < end:
            element = elements.opening(self._lines[at])
            behind = None if element is None else self._read_element(at, end, element)
            at = at + 1 if behind is None else behind

    def _read_element(self, at: int, end: int, element: Element) -> int | None:
        """Read a file, or a change of one, in an element; None: its text is read as if it stood bare."""
        line, path = at + 1, element.path
        if element.is_gone:
            self._changes.append(Name((path,), at, is_heading=False, is_gone=True))
            return None
        close = self._closings.first(element.tag, at + 1, end)
        first = None if close is None else self._first_line(at + 1, close)
        if close is None or first is None or not element.is_whole:
            is_named = is_path(path, self._files, labelled=True)
            first = self._first_line(at + 1, end)
            if is_named and (first is None or self._fences.at(first) is None):
                self._items.note(
                    f"the element <{element.tag}> at line {line} names '{paths.shown(path)}' and was not"
                    ' used; send [CREATE_FILE path="…"], or an edit'
                )
            return None
        if self._fences.at(first) is not None or self._next_edit_before(at, close) is not None:
            return None
        name = Name((path,), at)
        start, last = elements.inner(self._lines, first, close)
        if start < last and self._begins_difference(start, last):
            self._read_diff(start, last, fenced=True, name=name)
            return close + 1
        text = self._lines[at + 1 : close]
        try:
            operation, notes = whole_files.operation_of(
                text, name, self._files, is_inside=False, is_fenced=False
            )
            self._items.add_whole(operation, line, notes)
        except OperationError as fault:
            self._items.refuse(whole_files.TAG, line, fault.reason, path)
        return close + 1

    # --- SEARCH/REPLACE ------------------------------------------------------------------------

    def _read_edits(self, fence: Fence, edit: MarkedEdit) -> int:
        """Read the blocks in a fence; markers end them, whatever fences they hold."""
        found: list[MarkedEdit] = []
        strays: list[int] = []
        behind = fence.line + 1
        while True:
            strays += self._strays(behind, edit.start)
            found.append(edit)
            behind = edit.end
            close = self._fences.first_close(fence, behind)
            following = self._next_edit(edit.start)
            if following is None or (close is not None and close < following.start):
                break
            if close is None and self._fences.at(following.start - 1) is not None:
                break
            edit = following
        if close is not None:
            strays += self._strays(behind, close)
            behind = self._fences.behind(close)
        if strays and not all(edit.asks for edit in found):
            reason = (
                f"it stands among other lines (line {strays[0] + 1}), so it may be a whole file; send the"
                " file whole and resolved, or only SEARCH/REPLACE"
            )
            self._items.refuse(search_replace.TAG, found[0].start + 1, reason, "")
            return behind
        for edit in found:
            self._take_edit(edit, fence)
            self._names.floor = edit.end
        if strays:
            more = f" and {len(strays) - 1} more" if len(strays) > 1 else ""
            self._items.note(
                f"line {strays[0] + 1}{more}, between SEARCH/REPLACE blocks, was passed over:"
                f" '{paths.shown(self._lines[strays[0]].strip()[:60])}'"
            )
        return behind

    def _take_edit(self, edit: MarkedEdit, fence: Fence | None) -> None:
        name = self._names.of_edit(edit, fence, self._items.run_name())
        shown = "" if name is None else name.texts[0]
        opening = self._lines[edit.start]
        indent = opening[: len(opening) - len(opening.lstrip())]
        line = edit.start + 1
        try:
            found, way = search_replace.replacement(edit, indent, fenced=fence is not None)
            self._items.add_replacement(found, way, only(name), line)
        except OperationError as fault:
            self._items.refuse(search_replace.TAG, line, fault.reason, shown, keep_run=name)

    def _strays(self, start: int, end: int) -> list[int]:
        """Return the lines between blocks that name no path."""
        return [
            at
            for at in range(start, end)
            if (text := self._lines[at].strip())
            and name_in(text, at, self._files) is None
            and self._names.in_comment(at) is None
            and not (at + 1 == end and is_bare_path(text, self._files))
        ]

    def _next_edit(self, at: int) -> MarkedEdit | None:
        index = bisect_right(self._openings, at)
        return self._edits[self._openings[index]] if index < len(self._openings) else None

    def _next_edit_before(self, at: int, end: int) -> MarkedEdit | None:
        edit = self._next_edit(at)
        return edit if edit is not None and edit.start < end else None

    # --- differences and patches ---------------------------------------------------------------

    def _read_diff(self, at: int, end: int, *, fenced: bool, name: Name | None = None) -> int:
        above = name if fenced else self._names.near(at)
        found, behind = unified_diff.read(self._lines, at, end, fenced=fenced)
        self._items.flush()
        for difference in found:
            try:
                operation, notes = unified_diff.operation_of(difference, above, self._files)
            except OperationError as fault:
                subject = difference.new or difference.old or (above.texts[0] if above else "")
                self._items.refuse(unified_diff.TAG, difference.line, fault.reason, subject)
            else:
                self._items.add(operation, difference.line, notes)
        return max(behind, at + 1)

    def _read_patch(self, at: int, end: int, *, fenced: bool) -> int:
        sections, behind = begin_patch.read(self._lines, at, end, fenced=fenced)
        self._items.flush()
        for section in sections:
            try:
                operation, notes = begin_patch.operation_of(section, self._files)
            except OperationError as fault:
                self._items.refuse(begin_patch.TAG, section.line, fault.reason, section.path)
            else:
                self._items.add(operation, section.line, notes)
        if not sections:
            self._items.refuse(begin_patch.TAG, at + 1, "it has no sections; send them", "")
        return end + 1 if fenced else behind

    # --- deletions and renamings in words ------------------------------------------------------

    def _hear(self, at: int) -> None:
        """Keep a line that tells of nothing but the deletion or the renaming of a file."""
        name = name_in(self._lines[at], at, self._files)
        if name is not None and (name.is_gone or name.is_moved):
            self._changes.append(name)

    def _tell_of_changes(self) -> None:
        """Do what headings such as "Deleted file:" say, where no part of the answer does it."""
        self._items.flush()
        for name in self._changes:
            if name.is_moved:
                self._tell_of_renaming(name)
                continue
            text, line = name.texts[0], name.line + 1
            shown = paths.shown(text)
            try:
                path = self._files.existing(text)[0]
            except OperationError as fault:
                self._items.refuse("DELETE_FILE", line, fault.reason, text)
                continue
            if path in self._items.deleted:
                continue
            written = self._lines[name.line]
            is_title = TITLE.match(written) or re.search(r"(?i)\bfile\b", written)
            if path in self._files and is_title:
                self._items.add(DeleteFile(path), line, ())
            elif path in self._files:
                self._items.note(
                    f"line {line} tells of the deletion of '{shown}', and it was not deleted; send"
                    f' [DELETE_FILE path="{shown}"]'
                )
            elif is_title:
                self._items.note(
                    f"line {line} says that '{shown}' is deleted; there is no such file"
                )

    def _tell_of_renaming(self, name: Name) -> None:
        old, new = name.texts
        if old not in self._files and new in self._files:
            old, new = new, old
        said = not self._items.refused.isdisjoint((new, f"b/{new}"))
        if old in self._files and new not in self._files and not said:
            reason = unified_diff.renaming(old, new, edited=False)
            self._items.refuse(RENAMING, name.line + 1, reason, new)

    # --- names ---------------------------------------------------------------------------------

    def _first_line(self, start: int, end: int) -> int | None:
        return next((i for i in range(start, end) if self._lines[i].strip()), None)
