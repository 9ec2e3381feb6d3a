"""Read an answer in formats other than ours: the operations that it asks for, and notes on the rest.

A part begins at a line: a fence, SEARCH/REPLACE, an element, a patch or a difference, and is read to its own
end. A fence may hold edits, a patch, a difference, or a file. A path is looked for in the part, in its
fence line, and in the lines above it, back to the part before. A part that has no path, or no certain end, or
may mean two things, is a problem that says what to send: nothing is guessed, nothing like a file or a change
is passed over.
"""

import re
from bisect import bisect_right
from collections.abc import Collection
from functools import partial

from codingagent.editing import edit_markers
from codingagent.editing.edit_markers import MarkedEdit
from codingagent.errors import OperationError
from codingagent.model import paths, patterns, plain_text
from codingagent.model.operations import Kind
from codingagent.protocols.foreign import blocks, diff_operations, diffs, file_names
from codingagent.protocols.foreign.blocks import Ending, Fence, Fences, Headings, only
from codingagent.protocols.foreign.diffs import Asked, DiffPart, FileDiff
from codingagent.protocols.foreign.file_names import Files, Name
from codingagent.protocols.foreign.items import SHELL, UNNAMED, ForeignAnswer, Items
from codingagent.protocols.tags import reply, scanner

# Each is looked at for a file, and for its name in the lines above.
_FENCES = 20_000
_DIFF_LANGUAGES = patterns.words("diff patch udiff unidiff git-diff")
_STARTS = ("```", "~~~", "<", "*** ", "--- ", "diff --git ", "Index: ", "@@")
_BEGIN, _END, _END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_MOVE = "*** Move to:"
_SECTIONS = ("*** Add File:", "*** Update File:", "*** Delete File:")
_MARKS = {"*** Add File": ["new file mode"], "*** Delete File": ["deleted file mode"]}
# Words of a line that may tell of a deletion or a renaming.
_CHANGE = patterns.lazy_pattern(r"\b(?:delete|remove|rename|move)d?\b", re.IGNORECASE)


def read(text: str, files: Collection[str]) -> ForeignAnswer:
    """Return what a text asks for. Never raises: what can't be read is a problem.

    The text has no commands of ours, or `BLOCK_LINE` in the place of each.
    """
    if (count := text.count("\n```")) > _FENCES:
        fact = f"The answer has {count} code fences: too many to be intended"
        return ForeignAnswer((reply.Problem(Kind.ANSWER, fact, 1, advice="; send operations"),), ())
    lines = scanner.fold_line_ends(text.removeprefix("\ufeff")).split("\n")
    return _AnswerReader(blocks.unwrapped(lines), Files(files)).run()


class _AnswerReader:
    def __init__(self, lines: list[str], files: Files) -> None:
        self._lines = lines
        self._files = files
        self._fences = Fences(lines)
        self._edits = {edit.start: edit for edit in edit_markers.find_edits(lines, has_strays=True)}
        self._openings = list(self._edits)
        self._names = Headings(lines, files, self._fences)
        self._items = Items(files)
        self._changes: list[Name] = []

    def run(self) -> ForeignAnswer:
        at = 0
        for start, line in enumerate(self._lines):
            if start < at:
                continue
            may_begin = start in self._edits or line.lstrip().startswith(_STARTS)
            end = self._read_part(start) if may_begin else None
            if end is not None:
                at = self._names.floor = end
                continue
            if line.startswith(reply.BLOCK_LINE):
                self._names.floor = start + 1
            elif _CHANGE.search(line, 0, 300):
                name = file_names.name_in(line, start, self._files)
                if name is not None and (name.is_gone or name.is_moved):
                    self._changes.append(name)
        self._items.flush()
        for name in self._changes:
            self._items.refuse_said(name)
        return self._items.answer()

    def _first_line(self, start: int, end: int) -> int | None:
        return next((i for i in range(start, end) if self._lines[i].strip()), None)

    def _read_part(self, at: int) -> int | None:
        """Read what begins at a line, and return the line after it; None: nothing does."""
        lines, end = self._lines, len(self._lines)
        if (fence := self._fences.by_line.get(at)) is not None:
            return self._read_fence(fence)
        if (edit := self._edits.get(at)) is not None:
            self._take_edit(edit, None)
            return edit.end
        if (behind := self._read_element(at)) is not None:
            return behind
        if _begins_patch(lines[at]):
            return self._read_patch(at, end, fenced=False)
        if diffs.begins(lines, at, end):
            return self._read_diff(at, end, fenced=False, name=self._names.near(at))
        return None

    # --- fences --------------------------------------------------------------------------------
    def _read_fence(self, fence: Fence) -> int:
        above = self._names.above(fence)
        close = self._fences.first_close(fence, fence.line + 1)
        start = None if close is None else self._first_line(fence.line + 1, close)
        edit = self._next_edit(fence.line, len(self._lines) if close is None else close)
        if edit is not None:
            is_context = start is not None and close is not None and start < edit.start
            if not is_context or not self._begins_difference(start or 0, close):
                return self._read_edits(fence, edit)
        if start is None or close is None:
            return self._read_fenced_file(fence, above)
        if (patch := self._patch_start(start, close)) is not None:
            self._read_patch(patch, close, fenced=True)
            return close + 1
        path = above.texts[0] if above is not None and above.is_heading else ""
        says_diff = fence.language in _DIFF_LANGUAGES or self._begins_difference(start, close)
        if not says_diff or path.endswith(blocks.DIFFERENCES):
            return self._read_fenced_file(fence, above)
        name = self._names.of_difference(fence, above)
        self._read_diff(start, close, fenced=True, name=name)
        return close + 1

    def _begins_difference(self, start: int, close: int | None = None) -> bool:
        close = len(self._lines) if close is None else close
        is_patch = self._patch_start(start, close) is not None
        return is_patch or diffs.begins_below(self._lines, start, close)

    def _patch_start(self, start: int, close: int) -> int | None:
        first = range(start, min(start + 3, close))
        return next((i for i in first if _begins_patch(self._lines[i])), None)

    def _read_fenced_file(self, fence: Fence, above: Name | None) -> int:
        """Read a fence that holds a file, a command or an example."""
        named = file_names.name_in_info(fence.info, fence.line, self._files) or above
        path = named.texts[0] if named is not None else ""
        is_markdown = blocks.is_markdown(path, fence.language)
        close, ending = self._fences.close(fence, is_markdown=is_markdown)
        path = path if named is not None and named.is_heading else ""
        # Code with labelled fences at its margin is rarer than a fence that was not closed.
        is_doubtful = ending is Ending.NESTED and bool(path) and not is_markdown
        if close is None or ending is Ending.DOUBTFUL or is_doubtful:
            return self._read_unclosed(fence, close, path)
        behind = close + 1
        line = fence.line + 1
        lines = blocks.dedented(self._lines[line:close], fence.indent)

        def whole() -> Asked | None:
            name, is_inside = self._names.of_whole(fence, above, lines)
            if name is None:
                self._pass_over(fence, above, lines)
                if ending is Ending.NESTED:
                    self._items.notes.append(
                        f"the fence at line {line} holds other fences, and nothing in it was used"
                    )
                return None
            blocks.check_language(fence.language, name.texts[0])
            return blocks.whole_file(lines, name, self._files, is_inside=is_inside)

        self._items.take(Kind.FILE, line, path, whole)
        return behind

    def _read_unclosed(self, fence: Fence, close: int | None, path: str) -> int:
        """Read a fence without a certain end: nothing after it is sure to be what it looks like."""
        line, end = fence.line + 1, len(self._lines)
        if close is None and self._first_line(line, end) is None:
            return end
        if close is not None and not path:
            self._pass_over(fence, None, self._lines[line:close])
            return close + 1
        fault = OperationError(
            "its fence is not closed with certainty, so nothing from there on was used",
            advice="; send what follows it again, each file in a longer fence (````) if it holds fences"
            " itself",
        )
        self._items.refuse(Kind.FILE if path else Kind.ANSWER, line, fault, path)
        return end

    def _pass_over(self, fence: Fence, above: Name | None, lines: list[str]) -> None:
        line = fence.line + 1
        start = next((text for text in lines if text.strip()), "")
        if fence.language in blocks.SHELLS or start.startswith("$ "):
            self._items.pass_over(SHELL, line)
            return
        elements = filter(file_names.element_in, lines[:3])
        inside = (file_names.name_in(text, fence.line, self._files) for text in elements)
        heading = self._names.of_section(fence.line) if above is None else None
        near = above or heading or self._names.near(fence.line) or next(inside, None)
        path = "" if near is None else near.texts[0]
        shown = paths.shown(path)
        is_label = above is not None and above.is_label and path in self._files
        is_new = heading is not None and heading.is_heading and not self._files.fits(path)
        if file_names.is_line_quote(fence.info):
            self._items.notes.append(f"the block at line {line} quotes lines of a file and was not used")
        elif near is not None and (is_label or is_new):
            fault = OperationError(
                f"line {near.line + 1} names '{shown}', and it is not certain that this is all of it",
                advice="; send it whole with its path alone on the line above its fence, or SEARCH/REPLACE",
            )
            self._items.refuse(Kind.FILE, line, fault, path)
        elif near is not None and (above or near.is_heading or path in self._files):
            fact = (
                f"the block at line {line} was not used: '{shown}' is named at line {near.line + 1},"
                " but not as the path of a whole file"
            )
            how = "; for one, write its path alone on the line above the fence, for a piece of one send"
            self._items.notes.append(plain_text.Note(fact, f"{how} SEARCH/REPLACE"))
        elif start:
            self._items.pass_over(UNNAMED, line)

    # --- elements ------------------------------------------------------------------------------
    def _read_element(self, at: int) -> int | None:
        """Refuse a file in an element by its name; None: what it holds is read without it."""
        tag, path = file_names.element_in(self._lines[at]) or ("", "")
        if not file_names.is_path(path, self._files, labelled=True):
            return None
        first = self._first_line(at + 1, len(self._lines))
        if first is not None and (
            first in self._edits or self._fences.by_line.get(first) or self._begins_difference(first)
        ):
            return None
        fault = OperationError(
            f"<{tag}> names '{paths.shown(path)}' and is no operation",
            advice="; send [CREATE_FILE], [EDIT_FILE], [DELETE_FILE] or [READ_FILE], each with"
            f' path="{paths.shown(path)}"',
        )
        self._items.refuse(Kind.FILE, at + 1, fault, path)
        return at + 1

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
            following = self._next_edit(edit.start, len(self._lines) if close is None else close)
            if following is None:
                break
            if close is None and self._fences.by_line.get(following.start - 1) is not None:
                break
            edit = following
        if close is not None:
            strays += self._strays(behind, close)
            behind = close + 1
        if strays and not all(edit.asks for edit in found):
            fact = f"it is among other lines (line {strays[0] + 1}), so it may be a whole file"
            fault = OperationError(fact, advice="; send the file whole and resolved, or only SEARCH/REPLACE")
            self._items.refuse(Kind.SEARCH_REPLACE, found[0].start + 1, fault, "")
            return behind
        for edit in found:
            self._take_edit(edit, fence)
            self._names.floor = edit.end
        for at in strays[:1]:
            self._items.notes.append(
                f"what is between SEARCH/REPLACE blocks, from line {at + 1} on, was ignored:"
                f" '{paths.shown(self._lines[at].strip()[:60])}'"
            )
        return behind

    def _take_edit(self, edit: MarkedEdit, fence: Fence | None) -> None:
        name = self._names.of_edit(edit, fence, self._items.run_name())
        indent = plain_text.blanks(self._lines[edit.start])
        line = edit.start + 1
        try:
            found, way = blocks.replacement(edit, indent, fenced=fence is not None)
            self._items.add_replacement(found, way, only(name), line)
        except OperationError as fault:
            shown = "" if name is None else name.texts[0]
            self._items.refuse(Kind.SEARCH_REPLACE, line, fault, shown, keep_run=name)

    def _strays(self, start: int, end: int) -> list[int]:
        """Return the lines between blocks that name no path."""
        return [
            at
            for at in range(start, end)
            if (text := self._lines[at].strip()) and file_names.name_in(text, at, self._files) is None
        ]

    def _next_edit(self, at: int, end: int) -> MarkedEdit | None:
        """Return the first block that begins between two lines."""
        index = bisect_right(self._openings, at)
        start = self._openings[index] if index < len(self._openings) else end
        return self._edits[start] if start < end else None

    # --- differences and patches ---------------------------------------------------------------
    def _read_diff(self, at: int, end: int, *, fenced: bool, name: Name | None) -> int:
        found, behind = diffs.read(self._lines, at, end, fenced=fenced)
        self._take_diffs(Kind.DIFF, found, name)
        return max(behind, at + 1)

    def _read_patch(self, at: int, end: int, *, fenced: bool) -> int:
        found, behind = _read_patch(self._lines, at, end, fenced=fenced)
        self._take_diffs(Kind.PATCH, found, None)
        if not found:
            fault = OperationError("it has no sections", advice="; send them")
            self._items.refuse(Kind.PATCH, at + 1, fault, "")
        return behind

    def _take_diffs(self, kind: Kind, found: list[FileDiff], name: Name | None) -> None:
        self._items.flush()
        heads = diff_operations.heads_of(found, self._files)
        for each in found:
            subject = each.path or (name.texts[0] if name else "")
            asked = partial(diff_operations.operations_of, each, name, self._files, heads)
            self._items.take(kind, each.line, subject, asked)


# --- patches without numbers: `*** Begin Patch` ---
def _begins_patch(line: str) -> bool:
    return line.rstrip() == _BEGIN or line.startswith(_SECTIONS)


def _read_patch(lines: list[str], at: int, end: int, *, fenced: bool) -> tuple[list[FileDiff], int]:
    """Read a patch from its first line on; return its sections and the index after it."""
    found: list[FileDiff] = []
    names: list[str] = []
    is_open = is_ended = False
    while at < end and not is_ended:
        line = lines[at].rstrip()
        at += 1
        is_ended = line == _END
        if line.startswith(_SECTIONS):
            kind, _, path = line.partition(":")
            path = path.strip().strip("`")
            found.append(FileDiff(at, paths=(path, path), marks=_MARKS.get(kind, [])))
            names, is_open = [], False
        elif not found or line in (_BEGIN, _END):
            continue
        elif line.startswith(_MOVE) and not found[-1].hunks:
            found[-1].paths = found[-1].path, line[len(_MOVE) :].strip()
        elif line.startswith("@@"):
            names = [*([] if is_open else names), *diffs.sections_of(line)]
            is_open = False
        elif line == _END_OF_FILE:
            if found[-1].hunks:
                found[-1].hunks[-1].without_trailing_blanks().at_end = True
            is_open = False
        elif is_open or line:
            if not is_open:
                found[-1].hunks.append(DiffPart(at, sections=tuple(names), is_verbatim=fenced))
            is_open = True
            if not found[-1].hunks[-1].take(lines[at - 1]):
                # Context that has lost its blank; that it fits the file will prove it.
                found[-1].hunks[-1].take(f" {lines[at - 1]}")
    for hunk in (hunk for each in found for hunk in each.hunks):
        hunk.without_trailing_blanks()
    if found and not (is_ended or fenced):
        fault = OperationError(f"it has no {_END}, so it may be cut", advice="; send it again, whole")
        found[-1].fault = fault
    return found, at
