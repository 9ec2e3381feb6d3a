"""Write a choice of files for the model, parts marked as parts, and one line a file for the person."""

from collections.abc import Iterable, Mapping, Sequence

from codingagent.context.choose import Chosen
from codingagent.context.lines import lines_of
from codingagent.model.plain_text import plural
from codingagent.prompt.file_list import shown_path

_NOTE = (
    "## Chosen Files\n"
    "The program chose these files from the task, by a guess. Name what is missing, and read it, before you"
    " edit. A part is not the file: its lines have their numbers, and what is left out can be read, too."
)
_WORDS_SHOWN = 3
_DAY_S = 24 * 60 * 60


def for_model(chosen: Sequence[Chosen], texts: Mapping[str, str]) -> str:
    """Return the choice as a request shows it; nothing for no files. The texts are those it was made from."""
    shown = "".join(_file(part, texts[part.file.path]) for part in chosen)
    return f"{_NOTE}\n\n{shown}\n" if shown else ""


def _file(part: Chosen, text: str) -> str:
    """Return a whole file as it is, of a part the lines with their numbers."""
    path = shown_path(part.file.path)
    lines = lines_of(text)
    count = f"{part.total} {plural(part.total, 'line')}"
    end = f"--- end {path} ---\n"
    if part.is_whole:
        return f"--- {path} ({count}) ---\n" + "".join(f"{line}\n" for line in lines) + end
    width = len(str(part.total))
    body = []
    before = 0
    for number in part.shown:
        if number > before + 1:
            body.append(f"{'…':>{width}}\n")
        body.append(f"{number:>{width}} | {lines[number - 1]}".rstrip(" ") + "\n")
        before = number
    if before < part.total:
        body.append(f"{'…':>{width}}\n")
    return f"--- {path} (a part: {len(part.shown)} of {count}, with their numbers) ---\n{''.join(body)}{end}"


def for_person(chosen: Sequence[Chosen], now_s: float) -> Iterable[str]:
    """Yield one line a file: how much of it goes, its tokens, and what speaks for it."""
    for part in chosen:
        much = "whole" if part.is_whole else f"{len(part.shown)} of {part.total} lines of"
        said = "; ".join(_reasons(part, now_s))
        path = shown_path(part.file.path)
        yield f"{much} {path} {part.tokens:,} tokens{': ' if said else ''}{said}"


def _reasons(part: Chosen, now_s: float) -> Iterable[str]:
    if part.file.is_named:
        yield "named in the task"
    most = sorted(part.file.words.items(), key=lambda each: -each[1])[:_WORDS_SHOWN]
    if most:
        yield ", ".join(f'"{word}" ×{count}' for word, count in most)
    if part.file.changed_s is not None:
        days = int(now_s - part.file.changed_s) // _DAY_S
        yield f"changed {days} days ago" if days > 1 else "changed lately"
