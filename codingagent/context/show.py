"""Write a choice of parts for the model, one line a file for the person, one object a part for programs."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from codingagent.context.blocks import blocks, lines_of
from codingagent.context.choose import Chosen, imports
from codingagent.context.held import spans
from codingagent.context.rank import Ranked
from codingagent.model.plain_text import blanks, plural
from codingagent.prompt.file_contents import FileView, unclipped
from codingagent.prompt.file_list import shown_path
from codingagent.prompt.tokens import estimate

_NOTE = "## Chosen Files\ncodingagent guessed these parts of files from the task."
_GAPS = " A line such as `… lines 41-110: add, drop` stands for lines left out, and names what they define."
EDIT_IT = (
    " The lines shown are exact: edit them without reading them again. READ_FILE other lines and files before"
    " you edit them, all that you need in one answer."
)
# Of a gap: so many names, so long; of a line for the person: so many spans and words.
_NAMES_SHOWN, _NAME_CHARACTERS = 8, 40
_SPANS_SHOWN, _WORDS_SHOWN = 3, 3
# Of a file that a failed command names.
_AROUND_LINES = 120
# Of a file of data.
_DATA_HEAD, _DATA_TAIL = 20, 10


def for_model(views: Sequence[FileView], relied: str = "") -> str:
    """Return the choice as a request shows it; `relied` says what is not shown, since the chat has it."""
    shown = "".join(unclipped(some_lines(view, view.lines) for view in views))
    has_gaps = any(len(view.lines) < view.text.count("\n") for view in views)
    # A chat that has parts already was told what they are, but perhaps by a question.
    note = f"## Chosen Files\n{relied}" if relied else _NOTE + _GAPS * has_gaps
    return f"{note}{EDIT_IT}\n\n{shown}\n" if shown else f"{note}\n\n" if relied else ""


def part_of(view: FileView, wanted: Sequence[int]) -> FileView:
    """Return the blocks of a file that hold some lines, the last of these first; all of a short file."""
    lines = lines_of(view.text)
    shown: set[int] = set()
    for line in reversed(wanted):
        for block in blocks(view.path, view.text):
            is_in = block.first <= min(line, len(lines)) <= block.last
            if is_in and len(shown) < _AROUND_LINES:
                shown |= {*range(block.first, block.last + 1), *block.around}
    if shown:
        shown |= imports(lines)
    return view if len(shown) in {0, len(lines)} else some_lines(view, sorted(shown))


def some_lines(view: FileView, shown: Sequence[int]) -> FileView:
    """Return some lines of a whole file, or all; what the gaps define is said."""
    total = len(lines_of(view.text))
    count = f"{total:,} {plural(total, 'line')}"
    about = count if len(shown) == total else f"parts of {count}"
    body = _body(view.path, view.text, shown)
    return replace(view, text=body, first_line=0, total_lines=total, about=about, lines=shown)


def ends_of(view: FileView) -> FileView:
    """Return the first and the last lines of a file of data, and how many it has; all of a short one."""
    total, ends = view.total_lines, (_DATA_HEAD, _DATA_TAIL)
    if total <= 2 * sum(ends):
        return view
    shown = (*range(1, ends[0] + 1), *range(total - ends[1] + 1, total + 1))
    return some_lines(view, shown)


def in_frame(view: FileView, text: str, *, imported: bool = True) -> FileView:
    """Return lines of a file with its imports, what they stand in, and what the gaps define."""
    lines, own = lines_of(text), view.numbers
    depth = next((len(blanks(lines[line - 1])) for line in own if lines[line - 1].strip()), 0)
    within = [each for each in blocks(view.path, text) if each.first <= own[0] <= each.last]
    frame = {line for each in within for line in each.around if len(blanks(lines[line - 1])) < depth}
    frame |= imports(lines) if imported else set()
    around = some_lines(replace(view, text=text), sorted(frame.union(own)))
    if not frame and ": " not in around.text.replace(view.text, "", 1):  # the heading's numbers say as much
        return view
    return replace(view, around=around)


def _body(path: str, text: str, shown: Sequence[int]) -> str:
    """Return the shown lines of a file; a gap is a line that says what is in it."""
    lines, before, body = lines_of(text), 0, list[str]()
    end = len(lines) + 1
    for number in (*shown, end):
        first, last = before + 1, number - 1
        if first <= last:
            found = (each for each in blocks(path, text) if each.first <= last and first <= each.last)
            names = [*dict.fromkeys(name for each in found for name in each.names if name)]
            some = [name[:_NAME_CHARACTERS] for name in names[:_NAMES_SHOWN]]
            some += ["…"] * (len(names) > _NAMES_SHOWN)
            span = f"line {first}" if first == last else f"lines {first}-{last}"
            body.append(f"… {span}{': ' if some else ''}{', '.join(some)}\n")
        if number < end:
            body.append(f"{lines[number - 1]}\n")
        before = number
    return "".join(body)


def as_chosen(view: FileView, why: str) -> Chosen:
    """Return what is shown of a file for another reason than the choice."""
    tokens = estimate(*unclipped([view]))
    return Chosen(Ranked(view.path, 0, named=why), (*view.numbers,), view.total_lines, tokens)


def for_person(chosen: Sequence[Chosen], now_s: float) -> Iterator[str]:
    """Yield one line a file: how much of it goes, its tokens, and what speaks for it at a time."""
    for part in chosen:
        runs = [f"{first}-{last}" if first < last else str(first) for first, last in spans(part.shown)]
        more = ", …" if len(runs) > _SPANS_SHOWN else ""
        some = f"{plural(len(part.shown), 'line')} {', '.join(runs[:_SPANS_SHOWN])}{more} of {part.total}"
        much = "whole" if part.is_whole else some
        said = "; ".join(_reasons(part, now_s))
        yield f"{shown_path(part.file.path)}, {much}, {part.tokens:,} tokens{': ' if said else ''}{said}"


def for_programs(chosen: Sequence[Chosen], now_s: float) -> Iterator[dict[str, Any]]:
    """Yield an object a part: `path`, `firstLine`, `lastLine` or `whole`, `lines`; `tokens`, `why`."""
    for part in chosen:
        path, why = part.file.path, "; ".join(_reasons(part, now_s))
        if part.is_whole:
            yield {"path": path, "whole": True, "lines": part.total, "tokens": part.tokens, "why": why}
            continue
        at, size, count = part.shown.index, part.tokens, len(part.shown)
        for first, last in spans(part.shown):
            tokens = size * (at(last) + 1) // count - size * at(first) // count  # their sum is `size`
            yield {"path": path, "firstLine": first, "lastLine": last, "tokens": tokens, "why": why}


def _reasons(part: Chosen, now_s: float) -> Iterator[str]:
    yield from filter(None, (part.file.named, *part.file.reasons))
    most = sorted(part.file.words.items(), key=lambda each: -each[1])[:_WORDS_SHOWN]
    if most:
        yield ", ".join(f'"{word}" ×{count}' for word, count in most)
    if part.file.changed_s is not None:
        days = int(now_s - part.file.changed_s) // (24 * 60 * 60)
        yield f"changed {days} days ago" if days > 1 else "changed lately"
