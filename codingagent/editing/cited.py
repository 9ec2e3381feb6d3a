"""Citation marks of a chat in new lines: whether they can be meant there.

A mark that only a chat writes is taken off unless the text handles such marks: it has one between quotes,
its file has the like, or it speaks of them. One that a person may type is taken off only where no such
file can hold it; a program with another one is asked for again, and a text for people is written so.
"""

import re
from collections.abc import Sequence
from typing import Literal

from codingagent.editing import file_kinds
from codingagent.model import citations
from codingagent.model.patterns import lazy_pattern

Says = Literal["keep", "undo", "ask"]
"""What to do with text that looks damaged."""

# A program that looks for such marks, or tries what does, says one of these beside them.
_HANDLES = lazy_pattern(
    r"(?i)(?<![a-z])cit(?:e|ing|ation)s?(?![a-z])|oaicite|contentReference|[†\ue200]|【\d|utm_source"
)
_WORKS = lazy_pattern(r"(?i)strip|clean|sanit|re(?:move|gex|place)\b|\bre\.|==|assert|\bsub\(")
# In a longer line nobody can tell what a mark is in, and to look would take long.
_LINE_LIMIT = 1000
_QUOTES = "\"'`/«»“”‘’"
_KEPT = "it holds what may be a citation mark of the chat ('{}'), written as it came"


def verdict(
    new: Sequence[str], path: str, lines: Sequence[str], parses: tuple[bool | None, bool | None]
) -> tuple[Says, str]:
    """Return what to do with the marks in new lines of a file that has these `lines`, and why.

    `parses` tells whether the file is valid with them, and without.
    """
    text = "\n".join(new)
    forms = [f for f in citations.forms_in(text) if citations.pattern_of((f,)).search(text)]
    if not forms:
        return "keep", ""
    pattern = citations.pattern_of(tuple(forms))
    marks = list(pattern.finditer(text))
    shown = f"'{marks[0][0].strip()[:40]}'"
    kept = _KEPT.format(shown.strip("'"))
    is_prose = file_kinds.is_prose(path) or file_kinds.ending(path) in ("tex", "bib")
    is_broken = parses == (False, True)
    is_sure = not all(form.is_typed for form in forms)
    if pattern.search("\n".join(lines)):
        return ("ask", f"{shown}, and its file has the like") if is_broken else ("keep", kept)
    rest = pattern.sub("", "\n".join((text, *lines)))
    if not (is_prose or is_sure) and any(_is_slice(mark, path, rest) for mark in marks):
        return ("ask", f"{shown}, which might be intended") if is_broken else ("keep", "")
    if _is_handled(text, marks, pattern, is_prose=is_prose):
        is_odd = is_sure and not is_prose
        return ("ask", f"{shown}, which it may handle") if is_odd else ("keep", kept)
    if is_broken or is_sure:
        # A mark that nobody types proves the others of its chat.
        sure = {form.chat for form in forms if not form.is_typed}
        others = {form.chat for form in forms if form.is_typed} - sure
        if not others or is_broken:
            return "undo", "which no author writes" if is_sure else "with which it can't be read"
        return "ask", f"{shown}, and others that might be intended"
    if is_prose or file_kinds.is_markup(path) or not any(form.is_named for form in forms):
        return "keep", kept
    if file_kinds.is_code(path):
        within = file_kinds.lines_of_text(new, path)
        code = (line for index, line in enumerate(new) if index not in within)
        if any(pattern.search(file_kinds.bare(line, path)) for line in code):
            return "undo", "where only code can be"
    return "ask", shown


def _is_slice(mark: re.Match[str], path: str, rest: str) -> bool:
    """Return whether a mark is right behind a name or a bracket in code, as in `x[page:3]`.

    A name that the other text of the file never says is none: `x[cite: 3]` can be parsed as well.
    """
    name = mark[0].strip("[").partition(":")[0]
    if name.isidentifier() and re.search(rf"\b{name}\b", rest) is None:
        return False
    before = mark.string[mark.start() - 1 : mark.start()]
    is_glued = before.isalnum() or before in ("_", ")", "]")
    line = _line_at(mark.string, mark.start())[1] if is_glued else ""
    return is_glued and (len(line) > _LINE_LIMIT or mark[0] in file_kinds.bare(line, path))


def _line_at(text: str, at: int) -> tuple[int, str]:
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    return start, text[start : end if end >= 0 else len(text)]


def _is_handled(
    text: str, marks: Sequence[re.Match[str]], pattern: re.Pattern[str], *, is_prose: bool
) -> bool:
    if _HANDLES.search(pattern.sub("", text)):
        return True
    for mark in marks:
        before, behind = text[mark.start() - 1 : mark.start()], text[mark.end() : mark.end() + 1]
        if before and before in _QUOTES and behind and behind in _QUOTES:
            return True
        if not is_prose and _is_tried(text, mark.start()):
            return True
    return False


def _is_tried(text: str, at: int) -> bool:
    """Return whether a place is in a string that its line compares or works on."""
    start, line = _line_at(text, at)
    if len(line) > _LINE_LIMIT:
        return True
    strings = file_kinds.STRING.finditer(line)
    is_inside = any(each.start() < at - start < each.end() for each in strings)
    return is_inside and _WORKS.search(line) is not None
