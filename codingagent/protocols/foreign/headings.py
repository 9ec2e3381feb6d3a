"""Find the path of a part: in its fence line, on the lines above it, as the heading of its section.

A word that only its place shows to be a path is one only where nothing else can be meant.
"""

import re

from msgspec.structs import replace

from codingagent.editing.edit_markers import MarkedEdit
from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.patterns import lazy_pattern, words
from codingagent.protocols.foreign import fences, whole_files
from codingagent.protocols.foreign.fences import Fence, Fences
from codingagent.protocols.foreign.file_names import (
    Files,
    Name,
    is_line_quote,
    is_path,
    name_in,
    name_in_info,
)

# How far above a part its path may be, in lines that are not blank.
_ABOVE_LIMIT = 8
_INSIDE_LIMIT = 3
_SCRIPTS = (".sh", ".bash", ".zsh", ".fish", ".ps1", ".psm1", ".bat", ".cmd", ".env", ".bats")
_SESSIONS = words("console terminal shell-session shellsession sh-session")
TITLE = lazy_pattern(r"[ \t]*(?:#{1,6}[ \t]|\*\*|<)")
_BULLET = lazy_pattern(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]")
_SAYS_WHOLE = lazy_pattern(
    r"\b(?:complete|entire|full|whole)\b.*\b(?:file|version|code|contents?|script|module)\b[^.]*:[ \t]*$",
    re.IGNORECASE,
)
# What follows such a word is how a file is used, or what it does.
_SAYS_USE = lazy_pattern(
    r"\b(?:call|example|imports?|output|prints|run|test|usage|used?|using|would)\b", re.IGNORECASE
)


class Headings:
    """The names in an answer; none from above `floor`, the line after the last part, holds any more."""

    def __init__(self, lines: list[str], files: Files, fences: Fences) -> None:
        self._lines = lines
        self._files = files
        self._fences = fences
        self.floor = 0

    def of_whole(
        self, fence: Fence, above: Name | None, lines: list[str]
    ) -> tuple[Name | None, bool]:
        """Return the path of a whole file, and whether it is in its first line only; refuse two."""
        if is_line_quote(fence.info):
            return None, False
        info = name_in_info(fence.info, fence.line, self._files)
        heading = above if above is not None and self._is_file_heading(above) else None
        if info is None and heading is None:
            heading = self._bare_name(fence, lines) or self._far_heading(fence)
        outside = _one(info, heading)
        if fence.language in fences.SHELLS and not _may_be_script(outside, fence, lines):
            return None, False
        if outside is not None:
            inside = whole_files.name_inside(lines, fence.line + 1, self._files, fence.language)
            if len(outside.texts) == 1 and inside is not None:
                outside = _longer(outside, inside, self._files)
            return outside, False
        return whole_files.name_inside(lines, fence.line + 1, self._files, fence.language), True

    def of_edit(self, edit: MarkedEdit, fence: Fence | None, before: Name | None) -> Name | None:
        """Return the path of a SEARCH/REPLACE block; where none is named, that of the block before holds."""
        said = edit.label.partition(" ")[2] if edit.asks else edit.label
        said = said.strip(" ()`'\"")
        if said in self._files or (edit.asks and is_path(said, self._files, labelled=True)):
            return Name((said,), edit.start)
        start = self.floor if fence is None else max(self.floor, fence.line + 1)
        name = self.between(start, edit.start, _INSIDE_LIMIT if fence else _ABOVE_LIMIT)
        if name is None and fence is not None:
            name = name_in_info(fence.info, fence.line, self._files)
            if name is None and self.floor <= fence.line:
                name = self.between(self.floor, fence.line, _ABOVE_LIMIT)
        return name or before or self._bare_edit_name(edit, fence)

    def _is_file_heading(self, name: Name) -> bool:
        """Return whether the line above says that a whole file follows, not a piece of it."""
        if name.is_heading or len(name.texts) > 1:
            return name.is_heading
        text = name.texts[0]
        if name.is_label and text not in self._files and not self._files.fits(text):
            return True
        return name.is_whole or (name.is_new and text not in self._files)

    def _bare_name(self, fence: Fence, lines: list[str]) -> Name | None:
        """Return the word alone on the line above, which only its place or a script shows to be a path."""
        if fence.line <= self.floor:
            return None
        text = self._lines[fence.line - 1].strip().strip("`").removesuffix(":").strip("`")
        is_script = bool(lines) and lines[0].startswith("#!")
        plain = fence.language in (*fences.TEXT_LANGUAGES, text.rpartition(".")[2].lower())
        if is_bare_path(text, self._files) and (is_script or (plain and "/" not in text)):
            return Name((text,), fence.line - 1)
        return None

    def _far_heading(self, fence: Fence) -> Name | None:
        """Return the heading of a section whose text is between it and its only code block.

        It must be certain that the whole file follows: it is new, or the text says so.
        """
        name = self.of_section(fence.line)
        if name is None or not self._is_file_heading(name):
            return None
        between = [line for line in self._lines[name.line + 1 : fence.line] if line.strip()]
        others = (name_in(line, 0, self._files) for line in between)
        if any(other is not None and other.texts != name.texts for other in others):
            return None
        is_whole = name.is_whole or (bool(between) and _SAYS_WHOLE.search(between[-1]) is not None)
        text = name.texts[0]
        is_new = text not in self._files and not self._files.fits(text)
        is_whole = is_whole or (is_new and name.is_new)
        if not is_whole and is_new and whole_files.is_of_language(fence.language, text):
            is_used = any(map(_SAYS_USE.search, between))
            is_whole = not is_used and self._is_only_fence(name.line, fence)
        return replace(name, is_whole=True) if is_whole else None

    def of_section(self, at: int) -> Name | None:
        """Return the one path of the heading over a line, if nothing but a few lines of text is between."""
        seen = 0
        for index in range(at - 1, self.floor - 1, -1):
            line = self._lines[index]
            if not line.strip():
                continue
            name = None if _BULLET.match(line) else name_in(line, index, self._files)
            if TITLE.match(line) or (name is not None and name.is_heading):
                return name if name is not None and len(name.texts) == 1 else None
            seen += 1
            if seen > _ABOVE_LIMIT:
                break
        return None

    def _is_only_fence(self, heading: int, fence: Fence) -> bool:
        """Return whether no other code block is between a heading and the next."""
        close = self._fences.first_close(fence, fence.line + 1)
        following = None if close is None else self._fences.next_from(close + 1)
        if following is None:
            return True
        between = self._lines[(close or heading) + 1 : following.line]
        return any(TITLE.match(line) for line in between)

    def of_difference(self, fence: Fence, above: Name | None) -> Name | None:
        """Return the path that is above a difference: next to it, or as the heading of its section."""
        far = self.of_section(fence.line)
        if far is None or not far.is_heading:
            return above
        between = range(far.line + 1, fence.line)
        near = [name_in(self._lines[i], i, self._files) for i in between]
        others = [name for name in near if name is not None and name.texts != far.texts]
        if not others:
            return far
        if above is not None and above.is_heading:
            return above
        return Name((*far.texts, *others[0].texts), far.line)

    def _bare_edit_name(self, edit: MarkedEdit, fence: Fence | None) -> Name | None:
        """Return the one word next above a block: it can only be its path, whatever it looks like."""
        for at in (edit.start - 1, fence.line - 1 if fence is not None else -1):
            text = self._lines[at].strip().strip("*`").strip() if at >= self.floor else ""
            if is_bare_path(text, self._files):
                return Name((text,), at)
        return None

    def above(self, fence: Fence) -> Name | None:
        """Return what the nearest line above a fence names, at most two blank lines away."""
        return self.between(max(self.floor, fence.line - 3), fence.line, 1)

    def near(self, at: int) -> Name | None:
        """Return the nearest name above a line."""
        return self.between(self.floor, at, _ABOVE_LIMIT)

    def between(self, start: int, end: int, limit: int) -> Name | None:
        """Return the nearest name above `end`, looking at some lines that are not blank."""
        for at in range(end - 1, max(start, end - 3 * limit - 3) - 1, -1):
            if self._lines[at].strip():
                name = name_in(self._lines[at], at, self._files) or self.in_comment(at)
                if name is not None:
                    return name
                limit -= 1
                if not limit:
                    break
        return None

    def in_comment(self, at: int) -> Name | None:
        """Return the path that a line names as a comment does."""
        return whole_files.name_inside([self._lines[at]], at, self._files)


def is_bare_path(text: str, files: Files) -> bool:
    """Return whether a word where a path is expected can be one, though its name tells nothing."""
    if "/" in text:
        return is_path(f"{text}.txt", files)
    return is_path(f"./{text}", files, labelled=True)


def only(name: Name | None) -> str:
    """Return the one path of a name; refuse none, and more."""
    if name is None:
        raise OperationError("no path is above it; write the path on the line above it")
    return name.only("one path above each block")


def _one(info: Name | None, heading: Name | None) -> Name | None:
    """Return the name of a fence line and a heading; refuse two that differ."""
    if info is None or heading is None:
        return info or heading
    longer = _same(info, heading)
    if longer is None:
        raise OperationError(_two(info, heading))
    return replace(longer, is_new=heading.is_new)


def _longer(outside: Name, inside: Name, files: Files) -> Name:
    """Return the name that says more of the two; refuse a first line that names another file."""
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
    """Return whether shell lines are a file, and not to be typed: a script has its path or `#!` above."""
    if fence.language in _SESSIONS:
        return False
    if name is None:
        return any(line.startswith("#!") for line in lines[:2])
    last = name.texts[0].rpartition("/")[2]
    return "." not in last.strip(".") or last.endswith(_SCRIPTS)
