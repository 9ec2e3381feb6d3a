"""Show a Jupyter notebook (nbformat 4) as its cells, and put changed cells back into its JSON.

An edit is applied to the text as shown. Only the strings of a cell whose text it changes are written anew;
all other bytes stay, among them outputs, which are shown folded and without images.
"""

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from codingagent.editing.nearest import common_ends
from codingagent.errors import OperationError
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import plural

_ENDING = ".ipynb"
_HEAD = "notebook: edit the text of its cells as it stands here"
_OUTPUT_CHARACTERS = 600
_BLANKS = lazy_pattern(r"[ \t\r\n]*")
_ESCAPE_CODES = lazy_pattern(r"\x1b\[[0-9;]*m")
_LIKE_OURS = lazy_pattern(r"^# (%%+) ", re.MULTILINE)
_DECODER = json.JSONDecoder()


class _Cell(Struct, frozen=True):
    """The text of a cell, and where the JSON of it is."""

    source: str
    start: int
    end: int


def shown(path: str, text: str) -> str:
    """Return the text of a file as it is shown: the cells of a notebook, else what it is."""
    found = _read(text) if path.lower().endswith(_ENDING) else None
    return text if found is None else "".join(line + body for line, body in found[1])


def to_edit(path: str, text: str, olds: Iterable[str], *, is_counted: bool) -> str:
    """Return the text that an edit means: as it is shown, or of JSON operations as it is on disk.

    OperationError if it counts lines of a notebook, which has others on disk than it shows.
    """
    found = shown(path, text)
    if is_counted and found != text:
        raise OperationError(
            f"'{path}': lines of a notebook are not counted: it has others on disk than it shows",
            advice=": send the edit with SEARCH and REPLACE",
        )
    return found if all(old in found for old in olds) else text


def is_shown(path: str, text: str) -> bool:
    """Return whether a text for a notebook has the form in which notebooks are shown."""
    head = rf"# %+ {re.escape(_HEAD)}\n"
    return path.lower().endswith(_ENDING) and re.match(head, text) is not None


def written(text: str, new: str) -> str:
    """Return a notebook's JSON once `new` takes the place of its shown text.

    OperationError if cells would come, go or move, or an output would change.
    """
    found = _read(text)
    if found is None:
        raise OperationError("the file is no notebook of nbformat 4")
    cells, sections = found
    lines = [line for line, _ in sections]
    whole, mark = new if new.endswith("\n") else f"{new}\n", lines[0].split()[1]
    pieces = re.split(rf"^(# {mark} .*\n)", whole, flags=re.MULTILINE)
    if pieces[0] or pieces[1::2] != lines:
        raise OperationError(
            "the lines that begin with '# %%' are those of the notebook's cells and must stay",
            advice=": edit the text of cells; to add or remove one, run a program that uses nbformat",
        )
    # Who writes the whole file may leave out the line of an empty cell.
    both = zip(lines, pieces[2::2], strict=True)
    bodies = [body or "\n" * (line in cells) for line, body in both]
    parts, at, is_ascii = [], 0, text.isascii() and "\\u" in text
    for (line, before), after in zip(sections, bodies, strict=True):
        if before == after:
            continue
        if (cell := cells.get(line)) is None:
            raise OperationError("outputs of a notebook can't be edited", advice=": edit its cells")
        style = _style(text, (cell, *cells.values()))
        made = _spliced(text, cell, after.removesuffix("\n"), style, is_ascii=is_ascii)
        parts += [text[at : cell.start], made]
        at = cell.end
    result = "".join((*parts, text[at:]))
    again = _read(result)
    if again is None or again[1] != [*zip(lines, bodies, strict=True)]:
        raise OperationError("the notebook would not say what the edit says: nothing was written")
    return result


def replaced(path: str, new: str, old: str | None) -> str:
    """Return the JSON of a notebook whose new text came whole, in the form in which notebooks are shown."""
    if old is None or not is_shown(path, shown(path, old)):
        raise OperationError(
            f"'{path}' has the form in which notebooks are shown, and is none",
            advice=": make one with a program that uses nbformat, then edit it",
        )
    return written(old, new)


def _read(text: str) -> tuple[dict[str, _Cell], list[tuple[str, str]]] | None:
    """Return the cells by their first lines, and all that is shown; None: no known notebook."""
    try:
        return _parsed(text)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _parsed(text: str) -> tuple[dict[str, _Cell], list[tuple[str, str]]] | None:
    document = json.loads(text)
    cells = document["cells"]
    sources = [_joined(cell["source"]) for cell in cells]
    kinds = [str(cell["cell_type"]) for cell in cells]
    if document["nbformat"] != 4:
        return None
    listed = _members(text, _members(text, _after_blanks(text, 0))["cells"][0]).values()
    spans = [_members(text, start)["source"] for start, _ in listed]
    printed = [_outputs(cell.get("outputs")) for cell in cells]
    taken = {each for text in (*sources, *printed) for each in _LIKE_OURS.findall(text)}
    mark = next(each for count in itertools.count(2) if (each := "%" * count) not in taken)
    known: dict[str, _Cell] = {}
    sections = [(f"# {mark} {_HEAD}\n", "")]
    for number, (kind, source, told) in enumerate(zip(kinds, sources, printed, strict=True), 1):
        line = f"# {mark} cell {number} ({kind})\n"
        known[line] = _Cell(source, *spans[number - 1])
        sections.append((line, f"{source}\n"))
        if told:
            sections.append((f"# {mark} output of cell {number}\n", told))
    return known, sections


def _joined(source: Any) -> str:
    return source if isinstance(source, str) else "".join(source)


def _outputs(outputs: Any) -> str:
    """Return what a cell printed, in brief, and what else it showed by its kind."""
    texts, others = [], dict[str, int]()
    for output in outputs if isinstance(outputs, list) else ():
        data = output.get("data") or {}
        trace = "\n".join(output.get("traceback") or ())
        texts.append(_joined(output.get("text") or data.get("text/plain") or trace))
        for kind in data.keys() - {"text/plain"}:
            others[kind] = others.get(kind, 0) + 1
    told = "\n".join(text.strip("\n") for text in texts if text)
    text = _brief(_ESCAPE_CODES.sub("", told))
    left = ", ".join(f"{count} {plural(count, kind)}" for kind, count in sorted(others.items()))
    return "".join(f"{part}\n" for part in (text, left and f"(left out: {left})") if part)


def _brief(text: str) -> str:
    """Return the first and last lines of an output: whole ones, as a part of a secret is not found."""
    if len(text) <= _OUTPUT_CHARACTERS:
        return text
    lines = text.split("\n")
    head, tail = (_within(side, _OUTPUT_CHARACTERS // 2) for side in (lines, lines[::-1]))
    left = len(lines) - len(head) - len(tail)
    return "\n".join((*head, f"… {left} {plural(left, 'line')} left out …", *tail[::-1]))


def _within(lines: Sequence[str], room: int) -> list[str]:
    ends = itertools.accumulate(len(line) + 1 for line in lines)
    return [line for line, end in zip(lines, ends, strict=True) if end <= room]


def _members(text: str, at: int) -> Mapping[str | int, tuple[int, int]]:
    """Return where each value of an object or an array is that begins at an offset."""
    found: dict[str | int, tuple[int, int]] = {}
    is_object = text[at] == "{"
    at = _after_blanks(text, at + 1)
    while text[at] not in "]}":
        key: str | int = len(found)
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _after_blanks(text, _after_blanks(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        found[key] = at, end
        at = _after_blanks(text, end)
        at = _after_blanks(text, at + 1) if text[at] == "," else at
    return found


def _after_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    assert found is not None, "it may be empty"
    return found.end()


def _style(text: str, cells: Iterable[_Cell]) -> tuple[str, str, str]:
    """Return what stands before, between and after the strings of a cell: as in the first that has two."""
    for cell in cells:
        spans = [*_members(text, cell.start).values()] if text[cell.start] == "[" else []
        if len(spans) > 1:
            (first, end), (second, _), (_, last) = spans[0], spans[1], spans[-1]
            return text[cell.start + 1 : first], text[end:second], text[last : cell.end - 1]
    return "", ", ", ""


def _spliced(text: str, cell: _Cell, source: str, style: tuple[str, str, str], *, is_ascii: bool) -> str:
    """Return the JSON of a cell's new text: strings of lines that stay are kept as they are written."""
    quoted = partial(json.dumps, ensure_ascii=is_ascii)
    if text[cell.start] != "[":
        return quoted(source)
    spans = _members(text, cell.start).values()
    raw = [text[start:end] for start, end in spans]
    old, new = [str(json.loads(each)) for each in raw], re.findall(r"[^\n]*\n|[^\n]+", source)
    # difflib, which finds the fewest changes, takes minutes where thousands of lines are equal.
    head, tail = common_ends(old, new)
    known = dict(zip(old, raw, strict=True))
    changed = (known.get(line) or quoted(line) for line in new[head : len(new) - tail])
    strings = [*raw[:head], *changed, *raw[len(raw) - tail :]]
    before, between, after = style
    return f"[{before}{between.join(strings)}{after}]" if strings else "[]"
