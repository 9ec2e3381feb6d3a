"""Show a Jupyter notebook (nbformat 4) as its cells, and put changed cells back into its JSON.

An edit is applied to the text as shown. Only the text of cells changes in the file: one that is not written
as Python's json writes it is not edited. Outputs are shown folded and without images.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from codingagent.errors import OperationError
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import plural

_ENDING = ".ipynb"
_HEAD = "notebook: edit the text of its cells as it stands here"
_OUTPUT_CHARACTERS = 600
_ESCAPE_CODES = lazy_pattern(r"\x1b\[[0-9;]*m")
_LIKE_OURS = lazy_pattern(r"^# (%%+) ", re.MULTILINE)


class _Notebook(Struct, frozen=True):
    """A notebook's JSON as a value, its cells by their first lines, and all that is shown, by such lines."""

    document: Any
    cells: dict[str, Any]
    sections: list[tuple[str, str]]


def shown(path: str, text: str) -> str:
    """Return the text of a file as it is shown: the cells of a notebook, else what it is."""
    found = _read(text) if path.lower().endswith(_ENDING) else None
    return text if found is None else "".join(line + body for line, body in found.sections)


def is_old(path: str, text: str) -> bool:
    """Return whether a file is a notebook of nbformat 3 or older: its cells are not shown."""
    return path.lower().endswith(_ENDING) and re.search(r'"nbformat"\s*:\s*[123]\b', text) is not None


def to_edit(path: str, text: str, olds: Iterable[str], *, is_counted: bool) -> str:
    """Return the text that an edit means: as it is shown, or of JSON operations as it is on disk.

    OperationError if it counts lines of a notebook, which has others on disk than it shows.
    """
    found = shown(path, text)
    if is_counted and found != text:
        fact = f"'{path}': lines of a notebook are not counted: it has others on disk than it shows"
        raise OperationError(fact, advice=": send the edit with SEARCH and REPLACE")
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
    dumps, line_end = _style(text), "\r\n" if "\r\n" in text else "\n"
    tail = text[len(text.rstrip()) :]
    if dumps(found.document).replace("\n", line_end) + tail != text:
        fact = "this notebook is not written as Jupyter writes one"
        raise OperationError(fact, advice=": edit it with a program")
    lines = [line for line, _ in found.sections]
    whole, mark = new if new.endswith("\n") else f"{new}\n", lines[0].split()[1]
    pieces = re.split(rf"^(# {mark} .*\n)", whole, flags=re.MULTILINE)
    if pieces[0] or pieces[1::2] != lines:
        raise OperationError(
            "the lines that begin with '# %%' are those of the notebook's cells and must stay",
            advice=": edit the text of cells; to add or remove one, run a program that uses nbformat",
        )
    # Who writes the whole file may leave out the line of an empty cell.
    both = zip(lines, pieces[2::2], strict=True)
    bodies = [body or "\n" * (line in found.cells) for line, body in both]
    for (line, before), after in zip(found.sections, bodies, strict=True):
        if before == after:
            continue
        if (cell := found.cells.get(line)) is None:
            raise OperationError("outputs of a notebook can't be edited", advice=": edit its cells")
        source = after.removesuffix("\n")
        is_list = isinstance(cell["source"], list)
        cell["source"] = re.findall(r"[^\n]*\n|[^\n]+", source) if is_list else source
    result = dumps(found.document).replace("\n", line_end) + tail
    again = _read(result)
    if again is None or again.sections != [*zip(lines, bodies, strict=True)]:
        raise OperationError("the notebook would not say what the edit says: nothing was written")
    return result


def _style(text: str) -> Callable[[Any], str]:
    """Return what writes JSON with the indentation and the escapes of a text."""
    indent = re.match(r"\{\r?\n( +)", text)
    is_ascii = text.isascii() and "\\u" in text
    return partial(json.dumps, indent=len(indent[1]) if indent else None, ensure_ascii=is_ascii)


def replaced(path: str, new: str, old: str | None) -> str:
    """Return the JSON of a notebook whose new text came whole, in the form in which notebooks are shown."""
    if old is None or not is_shown(path, shown(path, old)):
        fact = f"'{path}' has the form in which notebooks are shown, and is none"
        raise OperationError(fact, advice=": make one with a program that uses nbformat, then edit it")
    return written(old, new)


def _read(text: str) -> _Notebook | None:
    try:
        return _parsed(text)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _parsed(text: str) -> _Notebook | None:
    document = json.loads(text)
    cells = document["cells"]
    sources = [_joined(cell["source"]) for cell in cells]
    kinds = [str(cell["cell_type"]) for cell in cells]
    if document["nbformat"] != 4:
        return None
    printed = [_outputs(cell.get("outputs")) for cell in cells]
    taken = {each for text in (*sources, *printed) for each in _LIKE_OURS.findall(text)}
    mark = next(each for count in itertools.count(2) if (each := "%" * count) not in taken)
    known: dict[str, Any] = {}
    sections = [(f"# {mark} {_HEAD}\n", "")]
    for number, (kind, source, told) in enumerate(zip(kinds, sources, printed, strict=True), 1):
        line = f"# {mark} cell {number} ({kind})\n"
        known[line] = cells[number - 1]
        sections.append((line, f"{source}\n"))
        if told:
            sections.append((f"# {mark} output of cell {number}\n", told))
    return _Notebook(document, known, sections)


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
