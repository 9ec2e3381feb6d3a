"""Find the path of a part: in its fence line, on the lines above it, as the heading of its section.

A word that only its place shows to be a path is one only where nothing else can be meant.
"""

from msgspec.structs import replace

from codingagent.editing.edit_markers import MarkedEdit
from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.patterns import lazy_pattern, words
from codingagent.protocols.foreign import blocks
from codingagent.protocols.foreign.blocks import Fence, Fences
from codingagent.protocols.foreign.file_names import (
    Files,
    Name,
    is_line_quote,
    is_path,
    name_in,
    name_in_comment,
    name_in_info,
)

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
        if is_line_quote(fence.info):
            return None, False
        info = name_in_info(fence.info, fence.line, self._files)
        heading = above if above is not None and self._is_file_heading(above) else None
        if info is None and heading is None:
            # The heading of a section that says that its file is new, with text below it.
            far = self.of_section(fence.line)
            is_new = far is not None and far.is_new and not self._files.fits(far.texts[0])
            if far is not None and is_new and self._texts(far.line, fence.line) == far.texts:
                heading = far if self._is_file_heading(far) else None
        outside = _longer(info, heading) if info is not None and heading is not None else info or heading
        if fence.language in blocks.SHELLS:
            # Shell lines are to be typed, unless a script has its path or `#!` above them.
            last = "" if outside is None else outside.texts[0].rpartition("/")[2]
            is_script = "." not in last.strip(".") or last.endswith(_SCRIPTS)
            if outside is None:
                is_script = any(line.startswith("#!") for line in lines[:2])
            if fence.language in _SESSIONS or not is_script:
                return None, False
        # The first line of a file may name its path in a comment, or bare where no line of code is so.
        bare, inside = (lines[0].strip() if lines else ""), None
        is_code = fence.language not in blocks.MARKDOWN_LANGUAGES
        is_code = is_code and blocks.is_of_language(fence.language, bare) is True
        if is_code and "/" in bare and is_path(bare, self._files):
            inside = Name((bare,), fence.line + 1)
        elif lines:
            inside = name_in_comment(lines[0], fence.line + 1, self._files)
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
        if said in self._files or (edit.asks and is_path(said, self._files, labelled=True)):
            return Name((said,), edit.start)
        start = self.floor if fence is None else max(self.floor, fence.line + 1)
        name = self.between(start, edit.start, _INSIDE_LIMIT if fence else _ABOVE_LIMIT)
        if name is None and fence is not None:
            name = name_in_info(fence.info, fence.line, self._files)
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
            self._named[at] = name_in(self._lines[at], at, self._files)
        return self._named[at]

    def _texts(self, start: int, end: int) -> tuple[str, ...]:
        """Return the paths that some lines name."""
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
        """Return the nearest name above a line."""
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
        raise OperationError(
            "no path is above it", advice="; write 'File:' and its path on the line above it"
        )
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
