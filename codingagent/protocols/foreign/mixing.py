"""Decide which edits in another format are done beside commands of ours, and which are only named.

How it works. An edit that names a file and can't be meant otherwise is done in its place among the
commands. An edit of a file that a command changes, too, comes after that command: where it only
repeats it, the file then holds it already. Any other is named before the results, and DONE does not count.
"""

from msgspec.structs import replace

from codingagent.model import paths
from codingagent.model.operations import (
    CreateFile,
    DeleteFile,
    EditFile,
    Kind,
    LineRange,
    MoveFile,
    RunCommand,
    named,
)
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import Note
from codingagent.protocols.foreign.items import ForeignAnswer
from codingagent.protocols.tags.reply import Foreign, Problem, Reply, Step, finishes

_MOVES = lazy_pattern(r"\b(?:rm|mv|del|ren|move|Remove-Item|Move-Item|Rename-Item)\b")


def mixed(found: Reply, other: ForeignAnswer, foreign: Foreign) -> Reply:
    """Return an answer with what is beside its commands; `foreign` says whether that needs a yes."""
    ours = found.items
    done = next((item.line for item in ours if finishes(item)), 0)
    refused: list[Problem] = []
    placed: list[tuple[int, int, Step]] = []
    notes: list[str] = []
    for item in other.items:
        if isinstance(item, Problem):
            if item.kind is not Kind.RENAME or not _is_moved(item.subject, ours):
                refused.append(item)
            continue
        doubt, place = _judge(item, ours, done)
        if doubt is not None:
            fact = f"The part at line {item.line} was not used: {doubt[0]}"
            told = Problem(item.kind, fact, item.line, subject=_path(item), advice=f"; {doubt[1]}")
            refused.append(told)
        elif place is None:
            notes.append(f"line {item.line} repeats what an operation does")
        else:
            placed.append((place, item.line, replace(item, foreign=foreign)))
    if placed:
        what, was = ("an edit", "was") if len(placed) == 1 else (f"{len(placed)} edits", "were")
        beside = "in another format next to the operations"
        notes.append(Note(f"{what} {beside} {was} applied, too", ": write operations next time"))
    kept = list(ours)
    # From the last on, so that no place moves before it is used.
    for place, _, step in sorted(placed, key=lambda each: each[:2], reverse=True):
        kept.insert(place + 1, step)
    return replace(found, items=(*refused, *kept), notes=(*found.notes, *other.notes, *notes))


def _judge(
    item: Step, ours: tuple[Step | Problem, ...], done: int
) -> tuple[tuple[str, str] | None, int | None]:
    """Return why an operation is in doubt, with advice, or after which command it comes.

    Neither: a command does it.
    """
    operation, path = item.operation, _path(item)
    shown = paths.shown(path)
    same = [i for i, other in enumerate(ours) if isinstance(other, Step) and _path(other) == path]
    before = max((i for i, other in enumerate(ours) if other.line < item.line), default=-1)
    match operation:
        case CreateFile(content=str() as content) if any(
            set(map(str.strip, content.split("\n"))) <= _lines_of(ours[i]) for i in same
        ):
            return None, None
        case DeleteFile() | MoveFile() if _is_moved(path, ours):
            return None, None
        case _:
            pass
    if done and item.line > done:
        return (f"it changes '{shown}' after DONE", "send it as an operation before DONE"), -1
    match operation:
        case EditFile():
            return None, max(same[-1] if same else -1, before)
        case CreateFile() if same or operation.overwrite:
            why = (
                "is changed by an operation, too"
                if same
                else "exists, and this may be a part of it"
            )
            how = f'[CREATE_FILE path="{shown}"] with all of it, or [EDIT_FILE path="{shown}"]'
            return (f"'{shown}' {why}", f"if it is intended, send {how}"), -1
        case DeleteFile() if same:
            how = f'send [DELETE_FILE path="{shown}"]'
            return (f"an operation changes '{shown}', too", how), -1
        case _:
            return None, before


def _lines_of(item: Step | Problem) -> set[str]:
    """Return the lines that a command writes into its file, or looks for in it."""
    match item:
        case Step(operation=CreateFile(content=str() as content)):
            texts = [content]
        case Step(operation=EditFile(change=LineRange(text=text))):
            texts = [text]
        case Step(operation=EditFile(change=tuple() as change)):
            texts = [text for each in change for text in (each.search, each.replace)]
        case _:
            return set()
    return {line.strip() for text in texts for line in text.split("\n")}


def _is_moved(path: str, ours: tuple[Step | Problem, ...]) -> bool:
    """Return whether a command may delete or move a file."""
    for item in ours:
        match item:
            case Step(operation=MoveFile() | DeleteFile() as operation):
                if path in [change.path for change in named(operation)]:
                    return True
            case Step(operation=RunCommand(command=line)) if path in line and _MOVES.search(line):
                return True
            case _:
                pass
    return False


def _path(item: Step) -> str:
    return next((change.path for change in named(item.operation)), "")
