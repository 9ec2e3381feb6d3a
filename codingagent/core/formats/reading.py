"""A reply without any block of ours: the operations that it asks for in whatever other formats it has.

How it works. Lines at which something may begin (a fence, a marker, a difference's header) are found
first; then the parts are read in order, each to its own end. A path is looked for in the part, in its
fence line, and in the lines above it, back to the part before. What has no path, or no certain end, or
may mean two things, is a problem that says what to send; nothing is guessed.
"""

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass, replace

from codingagent.core import paths, tags
from codingagent.core.formats import conflicts, diffs, fences, patches, wholes
from codingagent.core.formats.conflicts import Conflict
from codingagent.core.formats.fences import Ending, Fence, Fences
from codingagent.core.formats.names import (
    Files,
    Name,
    is_line_quote,
    is_path,
    name_in,
    name_in_info,
    words,
)
from codingagent.core.operations import CreateFile, DeleteFile, EditFile, Replacement
from codingagent.core.reply import Problem, Step
from codingagent.errors import OperationError

# How far above a part its path may stand, in lines that are not blank.
_ABOVE_LIMIT = 8
_INSIDE_LIMIT = 3

_DIFF_LANGUAGES = words("diff patch udiff unidiff git-diff")
_WRAPPER_LANGUAGES = frozenset(
    ("", "text", "txt", "plaintext", "plain", *wholes.MARKDOWN_LANGUAGES)
)
_STARTS = ("```", "~~~", "<<<<<", "*** ", "--- ", "diff --git ", "Index: ", "@@")
_SCRIPTS = (".sh", ".bash", ".zsh", ".fish", ".ps1", ".psm1", ".bat", ".cmd", ".env", ".bats")
_SESSIONS = words("console terminal shell-session shellsession sh-session")
_NOTE_LIMIT = 12
_SHOWN_LINES = 10

_TAGS = {CreateFile: "CREATE_FILE", EditFile: "EDIT_FILE", DeleteFile: "DELETE_FILE"}
_WORDS = {
    conflicts.TAG: "SEARCH/REPLACE",
    diffs.TAG: "The difference",
    patches.TAG: "The patch",
    wholes.TAG: "The file",
}

FileOperation = CreateFile | EditFile | DeleteFile


@dataclass(frozen=True, slots=True)
class Found:
    """What a reply asks for in other formats, in its order, and what is said of the rest of it."""

    items: tuple[Step | Problem, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """One item on one line of a screen: the path, or what else is known of it, and what is asked."""

    path: str
    what: str


def read(text: str, files: Collection[str]) -> Found:
    """Reads a reply that has no block of ours. Never raises: what can't be read is a problem.

    Args:
        text: the reply.
        files: the paths that exist in the workspace, in plain form.
    """
    lines = tags.fold_line_ends(text.removeprefix("\ufeff")).split("\n")
    return _Reader(_unwrapped(lines), Files(files)).run()


def describe(item: Step | Problem) -> Description:
    """Gives what the screen says of an item before the person is asked."""
    if isinstance(item, Problem):
        return Description(paths.shown(item.subject) or f"line {item.line}", item.reason)
    match item.operation:
        case CreateFile(path=path, content=content, overwrite=overwrite):
            count = content.count("\n") if isinstance(content, str) else 0
            ends = isinstance(content, str) and content and not content.endswith("\n")
            what = f"whole file, {_counted(count + bool(ends), 'line')}"
            return Description(paths.shown(path), what if overwrite else f"new file, {what[12:]}")
        case EditFile(path=path, change=tuple() as change):
            return Description(paths.shown(path), _counted(len(change), "edit"))
        case DeleteFile(path=path):
            return Description(paths.shown(path), "deleted")
        case _:
            return Description(item.tag, "")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _unwrapped(lines: list[str]) -> list[str]:
    """Gives the lines without a fence round all of them, if there are fences inside."""
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


class _Reader:
    """One pass over one reply; `_floor` is the index behind the last part."""

    def __init__(self, lines: list[str], files: Files) -> None:
        self._lines = lines
        self._files = files
        self._fences = Fences(lines)
        self._openings = [i for i, line in enumerate(lines) if conflicts.begins(line)]
        self._floor = 0
        self._items: list[Step | Problem] = []
        self._notes: list[str] = []
        self._shells: list[int] = []
        self._unused = 0
        self._wholes: dict[str, int] = {}
        self._run: _Run | None = None

    def run(self) -> Found:
        at = 0
        for start, line in enumerate(self._lines):
            if start >= at and line.lstrip().startswith(_STARTS):
                behind = self._read_part(start)
                if behind is not None:
                    at = self._floor = behind
        self._flush()
        return Found(tuple(self._items), (*self._notes, *self._closing_notes()))

    def _read_part(self, at: int) -> int | None:
        """Reads the part that begins at a line; None if none does."""
        line = self._lines[at]
        if (fence := self._fences.at(at)) is not None:
            return self._read_fence(fence)
        if conflicts.begins(line):
            found = conflicts.read(self._lines, at, self._limit(at))
            self._take_conflict(found, None)
            return found.end
        if patches.begins(line):
            return self._read_patch(at, len(self._lines), fenced=False)
        if diffs.begins(self._lines, at, len(self._lines)):
            return self._read_diff(at, len(self._lines), fenced=False)
        return None

    # --- fences --------------------------------------------------------------------------------

    def _read_fence(self, fence: Fence) -> int:
        first = fence.line + 1
        close = self._fences.first_close(fence, first)
        opening = self._next_opening(fence.line)
        if opening is not None and (close is None or opening < close):
            return self._read_conflicts(fence, opening)
        name = self._name_above(fence)
        if close is not None:
            start = self._first_line(first, close)
            if start is not None and self._is_patch(start, close):
                return self._read_patch(self._patch_start(start, close), close, fenced=True)
            if start is not None and self._is_diff(fence, name, start, close):
                self._read_diff(
                    diffs.start(self._lines, start, close), close, fenced=True, name=name
                )
                return close + 1
        return self._read_block(fence, name)

    def _read_block(self, fence: Fence, above: Name | None) -> int:
        """Reads a fence that holds a file, a command or an example."""
        named = name_in_info(fence.info, fence.line, self._files) or above
        path = named.texts[0] if named is not None else ""
        is_markdown = wholes.is_markdown(path, fence.language)
        close, ending = self._fences.close(fence, is_markdown=is_markdown)
        path = path if named is not None and named.is_heading else ""
        # Code with labelled fences at its margin is rarer than a fence that was not closed.
        is_doubtful = ending is Ending.NESTED and bool(path) and not is_markdown
        if close is None or ending is Ending.DOUBTFUL or is_doubtful:
            return self._read_unclosed(fence, close, path)
        lines = fences.dedented(self._lines[fence.line + 1 : close], fence.indent)
        line = fence.line + 1
        try:
            name, is_inside = self._file_name(fence, above, lines)
            if name is not None:
                wholes.check_language(fence.language, name.texts[0])
                operation, notes = wholes.operation_of(
                    lines, name, self._files, is_inside=is_inside
                )
                self._add_whole(operation, line, notes)
        except OperationError as fault:
            self._refuse(wholes.TAG, line, fault.reason, path)
            return close + 1
        if name is None:
            self._pass_over(fence, above, lines)
            if ending is Ending.NESTED:
                self._note(
                    f"the fence at line {line} holds other fences, and nothing in it was used"
                )
        return close + 1

    def _file_name(
        self, fence: Fence, above: Name | None, lines: list[str]
    ) -> tuple[Name | None, bool]:
        """Gives the path of a whole file, and whether it stands in its first line only.

        Raises:
            OperationError: if two places name two files.
        """
        if is_line_quote(fence.info):
            return None, False
        info = name_in_info(fence.info, fence.line, self._files)
        heading = above if above is not None and self._is_file_heading(above) else None
        outside = _one(info, heading)
        if fence.language in fences.SHELLS and not _may_be_script(outside, fence, lines):
            return None, False
        if outside is not None:
            inside = wholes.name_inside(lines, fence.line + 1, self._files)
            if len(outside.texts) == 1 and inside is not None:
                outside = _longer(outside, inside, self._files)
            return outside, False
        return wholes.name_inside(lines, fence.line + 1, self._files), True

    def _is_file_heading(self, name: Name) -> bool:
        """Tells whether the line above says that a whole file follows, not a piece of it."""
        if name.is_heading or len(name.texts) > 1:
            return name.is_heading
        return name.is_whole or (name.is_new and name.texts[0] not in self._files)

    def _read_unclosed(self, fence: Fence, close: int | None, path: str) -> int:
        """A fence without a certain end: nothing behind it is sure to be what it looks like."""
        line = fence.line + 1
        end = len(self._lines)
        if close is None and self._first_line(line, end) is None:
            return end
        if close is None:
            self._refuse(
                "REPLY" if not path else wholes.TAG,
                line,
                "its fence is not closed with certainty, so nothing from there on was used; send what"
                " stands there again, each file in a longer fence (````) if it holds fences itself",
                path,
            )
            return end
        if not path:
            self._pass_over(fence, None, [])
            return close + 1
        self._refuse(
            wholes.TAG,
            line,
            "it holds fences as long as its own, so its end is not certain; nothing from there on was"
            " used: send it again in a longer fence (````), and what follows it",
            path,
        )
        return end

    def _pass_over(self, fence: Fence, above: Name | None, lines: list[str]) -> None:
        """Says what a fence was taken for that is no file."""
        line = fence.line + 1
        start = next((text for text in lines if text.strip()), "")
        if fence.language in fences.SHELLS or start.startswith("$ "):
            self._flush()
            self._shells.append(line)
            return
        near = above if above is not None else self._name_near(fence.line)
        if is_line_quote(fence.info):
            self._note(f"the block at line {line} quotes lines of a file and was not used")
        elif near is not None and (above is not None or near.texts[0] in self._files):
            self._note(
                f"the block at line {line} was not used: '{paths.shown(near.texts[0])}' is named at line"
                f" {near.line + 1}, but not as the path of a whole file; for one, write its path alone on"
                " the line above the fence, for a piece of one send SEARCH/REPLACE"
            )

    def _is_patch(self, start: int, close: int) -> bool:
        return any(patches.begins(self._lines[i]) for i in range(start, min(start + 3, close)))

    def _patch_start(self, start: int, close: int) -> int:
        return next(i for i in range(start, close) if patches.begins(self._lines[i]))

    def _is_diff(self, fence: Fence, name: Name | None, start: int, close: int) -> bool:
        path = "" if name is None or not name.is_heading else name.texts[0]
        if path.endswith(wholes.DIFFERENCES):
            return False
        start = diffs.start(self._lines, start, close)
        return fence.language in _DIFF_LANGUAGES or diffs.begins(self._lines, start, close)

    # --- SEARCH/REPLACE ------------------------------------------------------------------------

    def _read_conflicts(self, fence: Fence, opening: int) -> int:
        """Reads the blocks in a fence; markers end them, whatever fences they hold."""
        found: list[Conflict] = []
        strays: list[int] = []
        at, behind = opening, fence.line + 1
        while True:
            strays += self._strays(behind, at)
            found.append(conflicts.read(self._lines, at, self._limit(at)))
            behind = found[-1].end
            close = self._fences.first_close(fence, behind)
            following = self._next_opening(at)
            if following is None or (close is not None and close < following):
                break
            if close is None and self._fences.at(following - 1) is not None:
                break
            at = following
        if close is not None:
            strays += self._strays(behind, close)
            behind = close + 1
        if strays and any(conflict.is_git for conflict in found):
            reason = (
                f"it stands among other lines (line {strays[0] + 1}), so it may be a whole file; send the"
                " file whole and resolved, or only SEARCH/REPLACE"
            )
            self._refuse(conflicts.TAG, opening + 1, reason, "")
            return behind
        for conflict in found:
            self._take_conflict(conflict, fence)
            self._floor = conflict.end
        if strays:
            self._note(
                f"line {strays[0] + 1}, between SEARCH/REPLACE blocks, was passed over:"
                f" '{paths.shown(self._lines[strays[0]].strip()[:60])}'"
            )
        return behind

    def _take_conflict(self, found: Conflict, fence: Fence | None) -> None:
        name = self._conflict_name(found, fence)
        shown = "" if name is None else name.texts[0]
        line = found.start + 1
        try:
            self._add_replacement(found.replacement(), _only(name), line)
        except OperationError as fault:
            self._refuse(conflicts.TAG, line, fault.reason, shown, keep_run=name)

    def _add_replacement(self, replacement: Replacement, text: str, line: int) -> None:
        if not replacement.search.strip():
            path = paths.workspace_path(text)
            if path in self._files:
                raise OperationError(
                    f"its SEARCH is empty and '{paths.shown(path)}' exists; give the lines whose place"
                    " the new ones take"
                )
            self._flush()
            self._add(CreateFile(path, replacement.replace, overwrite=False), line, ())
            self._run = _Run(text, path, line, [], ())
            return
        path, note = self._files.existing(text)
        if self._run is None or self._run.path != path:
            self._flush()
            self._run = _Run(text, path, line, [], (note,) if note else ())
        elif not self._run.replacements:
            self._run = _Run(text, path, line, [], self._run.notes)
        self._run.replacements.append(replacement)

    def _conflict_name(self, found: Conflict, fence: Fence | None) -> Name | None:
        if found.name and is_path(found.name, self._files, labelled=True):
            return Name((found.name,), found.start)
        start = self._floor if fence is None else max(self._floor, fence.line + 1)
        name = self._name_between(start, found.start, _INSIDE_LIMIT if fence else _ABOVE_LIMIT)
        if name is None and fence is not None:
            name = name_in_info(fence.info, fence.line, self._files)
            if name is None and self._floor <= fence.line:
                name = self._name_between(self._floor, fence.line, _ABOVE_LIMIT)
        if name is None and self._run is not None:
            return Name((self._run.text,), self._run.line)
        return name

    def _strays(self, start: int, end: int) -> list[int]:
        """Gives the first line between blocks that names no path."""
        for at in range(start, end):
            text = self._lines[at].strip()
            if text and name_in(text, at, self._files) is None and self._comment_name(at) is None:
                return [at]
        return []

    def _next_opening(self, at: int) -> int | None:
        index = bisect_right(self._openings, at)
        return self._openings[index] if index < len(self._openings) else None

    def _limit(self, at: int) -> int:
        following = self._next_opening(at)
        return len(self._lines) if following is None else following

    # --- differences and patches ---------------------------------------------------------------

    def _read_diff(self, at: int, end: int, *, fenced: bool, name: Name | None = None) -> int:
        above = name if fenced else self._name_between(self._floor, at, _ABOVE_LIMIT)
        found, behind = diffs.read(self._lines, at, end, fenced=fenced)
        self._flush()
        for difference in found:
            try:
                operation, notes = diffs.operation_of(difference, above, self._files)
            except OperationError as fault:
                subject = difference.new or difference.old or (above.texts[0] if above else "")
                self._refuse(diffs.TAG, difference.line, fault.reason, subject)
            else:
                self._add(operation, difference.line, notes)
        return max(behind, at + 1)

    def _read_patch(self, at: int, end: int, *, fenced: bool) -> int:
        sections, behind = patches.read(self._lines, at, end, fenced=fenced)
        self._flush()
        for section in sections:
            try:
                operation, notes = patches.operation_of(section, self._files)
            except OperationError as fault:
                self._refuse(patches.TAG, section.line, fault.reason, section.path)
            else:
                self._add(operation, section.line, notes)
        if not sections:
            self._refuse(patches.TAG, at + 1, "it has no sections; send them", "")
        return end + 1 if fenced else behind

    # --- names ---------------------------------------------------------------------------------

    def _name_above(self, fence: Fence) -> Name | None:
        """Gives what the nearest line above a fence names, at most two blank lines away."""
        return self._name_between(max(self._floor, fence.line - 3), fence.line, 1)

    def _name_near(self, at: int) -> Name | None:
        return self._name_between(self._floor, at, _ABOVE_LIMIT)

    def _name_between(self, start: int, end: int, limit: int) -> Name | None:
        """Gives the nearest name above `end`, looking at some lines that are not blank."""
        for at in range(end - 1, max(start, end - 3 * limit - 3) - 1, -1):
            if self._lines[at].strip():
                name = name_in(self._lines[at], at, self._files) or self._comment_name(at)
                if name is not None:
                    return name
                limit -= 1
                if not limit:
                    break
        return None

    def _comment_name(self, at: int) -> Name | None:
        return wholes.name_inside([self._lines[at]], at, self._files)

    def _first_line(self, start: int, end: int) -> int | None:
        return next((i for i in range(start, end) if self._lines[i].strip()), None)

    # --- what is kept --------------------------------------------------------------------------

    def _add(self, operation: FileOperation, line: int, notes: tuple[str, ...]) -> None:
        self._items.append(Step(operation, _TAGS[type(operation)], line, notes))

    def _add_whole(self, operation: CreateFile, line: int, notes: tuple[str, ...]) -> None:
        self._flush()
        index = self._wholes.setdefault(operation.path, len(self._items))
        if index == len(self._items):
            self._add(operation, line, notes)
            return
        first = self._items[index]
        if isinstance(first, Step) and first.operation == operation:
            self._note(f"'{paths.shown(operation.path)}' stands there twice, at line {line} again")
            return
        reason = (
            f"The file '{paths.shown(operation.path)}' is given whole at line {first.line} and again at"
            f" line {line}, with another text, so neither was used: send it once"
        )
        self._items[index] = Problem(wholes.TAG, reason, first.line, subject=operation.path)

    def _refuse(
        self, tag: str, line: int, reason: str, subject: str, *, keep_run: Name | None = None
    ) -> None:
        self._flush()
        what = _WORDS.get(tag, "The block")
        text = f"{what} at line {line} was not used: {reason}"
        self._items.append(Problem(tag, text, line, subject=subject[:300]))
        if keep_run is not None and len(keep_run.texts) == 1:
            # The blocks behind a broken one are of the same file.
            self._run = _Run(keep_run.texts[0], "", line, [], ())

    def _flush(self) -> None:
        """Keeps the edit whose blocks are all there."""
        run, self._run = self._run, None
        if run is not None and run.replacements:
            self._add(EditFile(run.path, tuple(run.replacements)), run.line, run.notes)

    def _note(self, text: str) -> None:
        if len(self._notes) < _NOTE_LIMIT:
            self._notes.append(text)
        else:
            self._unused += 1

    def _closing_notes(self) -> tuple[str, ...]:
        notes: list[str] = []
        if self._unused:
            notes.append(f"{self._unused} more remarks are not shown")
        count = len(self._shells)
        if count:
            numbers = ", ".join(map(str, self._shells[:_SHOWN_LINES]))
            more = f" and {count - _SHOWN_LINES} more" if count > _SHOWN_LINES else ""
            what = "a shell block at line" if count == 1 else "shell blocks at lines"
            was = "was" if count == 1 else "were"
            notes.append(
                f"{what} {numbers}{more} {was} not executed; to run a command send [RUN_COMMAND]"
            )
        return tuple(notes)


@dataclass(slots=True)
class _Run:
    """SEARCH/REPLACE blocks of one file that follow one another: all are applied, or none."""

    text: str
    path: str
    line: int
    replacements: list[Replacement]
    notes: tuple[str, ...]


def _only(name: Name | None) -> str:
    """Gives the one path of a name.

    Raises:
        OperationError: if there is none, or more.
    """
    if name is None:
        raise OperationError("no path stands above it; write the path on the line above it")
    if len(name.texts) > 1:
        both = " and ".join(map(paths.shown, name.texts[:3]))
        raise OperationError(f"{both} stand above it; write one path above each block")
    return name.texts[0]


def _one(info: Name | None, heading: Name | None) -> Name | None:
    """Gives the name of a fence line and a heading, if they say the same.

    Raises:
        OperationError: if they say two.
    """
    if info is None or heading is None:
        return info or heading
    longer = _same(info, heading)
    if longer is None:
        raise OperationError(_two(info, heading))
    return replace(longer, is_new=heading.is_new)


def _longer(outside: Name, inside: Name, files: Files) -> Name:
    """Gives the name that says more of the two, where the second is the first line of the file.

    Raises:
        OperationError: if it says another file that exists.
    """
    longer = _same(outside, inside)
    if longer is None and inside.texts[0] in files:
        raise OperationError(_two(outside, inside))
    return outside if longer is None else replace(outside, texts=longer.texts)


def _same(one: Name, other: Name) -> Name | None:
    a, b = (f"/{name.texts[0].removeprefix('./')}" for name in (one, other))
    if a.endswith(b):
        return one
    return other if b.endswith(a) else None


def _two(one: Name, other: Name) -> str:
    return (
        f"line {one.line + 1} says '{paths.shown(one.texts[0])}' and line {other.line + 1} says"
        f" '{paths.shown(other.texts[0])}'; write one path above each file"
    )


def _may_be_script(name: Name | None, fence: Fence, lines: list[str]) -> bool:
    """Tells whether shell lines are a file, and not to be typed: a script has its path or `#!` above."""
    if fence.language in _SESSIONS:
        return False
    if name is None:
        return any(line.startswith("#!") for line in lines[:2])
    last = name.texts[0].rpartition("/")[2]
    return "." not in last.strip(".") or last.endswith(_SCRIPTS)
