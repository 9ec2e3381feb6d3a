"""Collect the operations that an answer in other formats asks for, in its order, and notes on the rest.

Beside commands of ours an edit that names a file and can't be meant otherwise is done in its place among
them. An edit of a file that a command changes, too, comes after that command: where it only repeats it, the
file then holds it already. Any other is named before the results, and DONE does not count.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from codingagent.errors import OperationError
from codingagent.model import operations, paths, patterns, plain_text
from codingagent.model.chat_damage import UNHARMED, BodyEvidence, Channel
from codingagent.model.operations import CreateFile, DeleteFile, EditFile, FileOperation, Kind, MoveFile
from codingagent.protocols.foreign import diff_operations, diffs
from codingagent.protocols.foreign.file_names import Files, Name
from codingagent.protocols.tags.reply import ForeignConsent, Problem, Reply, Step, finishes

_NOTE_LIMIT = 12
_SHOWN_LINES = 10

UNNAMED = (
    "the code at {} names no file and was not used",
    "; for a whole file write its path alone on the line above the fence",
)
SHELL = "the shell code at {} was not executed", "; to run a command send [RUN_COMMAND]"
_WORDS = {
    Kind.SEARCH_REPLACE: "SEARCH/REPLACE",
    Kind.DIFF: "The difference",
    Kind.PATCH: "The patch",
    Kind.FILE: "The file",
    Kind.RENAME: "What is said",
}


class ForeignAnswer(Struct, frozen=True):
    """The operations that an answer asks for in other formats, in its order, and notes on the rest."""

    items: tuple[Step | Problem, ...]
    notes: tuple[str, ...]
    asides: tuple[str, ...] = ()
    """About code blocks that name no file; `notes` are about parts that name one."""


class _Run(Struct):
    """SEARCH/REPLACE blocks of one file that follow one another: all are applied, or none."""

    text: str
    path: str
    line: int
    replacements: list[operations.Replacement]
    notes: tuple[str, ...]
    way: Channel = UNHARMED


class Items:
    """The operations and problems of an answer, and the notes on the rest of it."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._items: list[Step | Problem] = []
        self.notes: list[str] = []
        """What is said of the answer; too many remarks are only counted."""
        self._asides: dict[tuple[str, str], list[int]] = {}
        self._wholes: dict[str, int] = {}
        self._run: _Run | None = None
        # Paths that parts delete or move, and those of parts that were not used.
        self._settled: set[str] = set()

    def answer(self) -> ForeignAnswer:
        self.flush()
        notes = list(self.notes[:_NOTE_LIMIT])
        if left := len(self.notes) - len(notes):
            notes.append(f"{left} more remarks are not shown")
        asides = []
        for (fact, how), lines in sorted(self._asides.items()):
            at = f"line{'s' if len(lines) > 1 else ''} {plain_text.some([*map(str, lines)], _SHOWN_LINES)}"
            asides.append(plain_text.Note(fact.format(at), how))
        items = sorted(self._items, key=lambda item: item.line)
        return ForeignAnswer(tuple(items), tuple(notes), tuple(asides))

    def take(self, kind: Kind, line: int, subject: str, read: Callable[[], diffs.Asked | None]) -> None:
        """Add the operations that `read` returns, or a problem if it refuses; None: nothing."""
        try:
            found, notes = read() or ((), ())
            add = self._add_whole if kind is Kind.FILE else self.add
            for operation in found:
                add(operation, line, notes)
                notes = ()
            self.notes += notes
        except OperationError as fault:
            self.refuse(kind, line, fault, subject)

    def add(self, operation: FileOperation, line: int, notes: tuple[str, ...]) -> None:
        self.flush()
        self._items.append(Step(operation, line, notes))
        if isinstance(operation, DeleteFile | MoveFile):
            self._settled.add(operation.path)

    def _add_whole(self, operation: FileOperation, line: int, notes: tuple[str, ...]) -> None:
        """Add a whole file, which must not be there twice with different texts."""
        self.flush()
        index = self._wholes.setdefault(operation.path, len(self._items))
        if index == len(self._items):
            self.add(operation, line, notes)
            return
        first = self._items[index]
        if isinstance(first, Step) and first.operation == operation:
            self.notes.append(f"'{paths.shown(operation.path)}' is there twice, at line {line} again")
            return
        fact = (
            f"The file '{paths.shown(operation.path)}' is given whole at line {first.line} and again at"
            f" line {line}, with another text, so neither was used"
        )
        self._items[index] = Problem(
            Kind.FILE, fact, first.line, subject=operation.path, advice=": send it once"
        )

    def add_replacement(
        self, replacement: operations.Replacement, way: Channel, text: str, line: int
    ) -> None:
        """Add a SEARCH/REPLACE block of the file that `text` names; an empty SEARCH makes a new one."""
        if not replacement.search.strip():
            path = self._files.plain(text)
            if path in self._files:
                raise OperationError(
                    f"its SEARCH is empty and '{paths.shown(path)}' exists",
                    advice="; give the lines to replace, or send the whole file under its path",
                )
            arrival = BodyEvidence(way, in_code=replacement.is_verbatim)
            new = CreateFile(path, replacement.replace, overwrite=False, arrival=arrival)
            self.add(new, line, ())
            self._run = _Run(text, path, line, [], ())
            return
        path, note = self._files.existing(text)
        if self._run is None or self._run.path != path:
            self.flush()
            self._run = _Run(text, path, line, [], (note,) if note else ())
        self._run.replacements.append(replacement)
        self._run.way |= way

    def run_name(self) -> Name | None:
        """Return the path of the block before, which holds for those that follow and name none."""
        return None if self._run is None else Name((self._run.text,), self._run.line)

    def flush(self) -> None:
        """Keep the edit whose blocks are all there."""
        run, self._run = self._run, None
        if run is not None and run.replacements:
            edit = EditFile(run.path, tuple(run.replacements), BodyEvidence(run.way))
            self.add(edit, run.line, run.notes)

    def refuse(
        self, kind: Kind, line: int, fault: OperationError, subject: str, *, keep_run: Name | None = None
    ) -> None:
        """Add a part that was not used, and what to send instead."""
        self.flush()
        what = _WORDS.get(kind, "The block")
        fact = f"{what} at line {line} was not used: {fault.fact}"
        self._items.append(Problem(kind, fact, line, subject=subject[:300], advice=fault.advice))
        self._settled.add(subject)
        if keep_run is not None and len(keep_run.texts) == 1:
            # The blocks after a broken one are of the same file.
            self._run = _Run(keep_run.texts[0], "", line, [], ())

    def pass_over(self, why: tuple[str, str], line: int) -> None:
        """Keep the line of a block that names no file, or that is shell code, which is never executed."""
        self.flush()
        self._asides.setdefault(why, []).append(line)

    def refuse_said(self, name: Name) -> None:
        """Refuse a deletion or a renaming that a line only tells of, where no part does it."""
        line, old, new = name.line + 1, name.texts[0], name.texts[-1]
        if name.is_moved and old not in self._files and new in self._files:
            old, new = new, old
        fits = self._files.fits(old)
        if not self._settled.isdisjoint((*fits, old, new, f"b/{new}")):
            return
        shown = paths.shown(fits[0] if fits else old)
        if name.is_moved:
            if fits and new not in self._files:
                self.refuse(Kind.RENAME, line, diff_operations.renaming(old, new, edited=False), new)
        elif fits:
            advice = f'; send [DELETE_FILE path="{shown}"]'
            fault = OperationError(f"it says that '{shown}' is deleted", advice=advice)
            self.refuse(Kind.RENAME, line, fault, fits[0])
        else:
            self.notes.append(f"line {line} says that '{shown}' is deleted; there is no such file")


# --- beside commands of ours ---------------------------------------------------------------------------
_MOVES = patterns.lazy_pattern(r"\b(?:rm|mv|del|ren|move|Remove-Item|Move-Item|Rename-Item)\b")


def mixed(found: Reply, other: ForeignAnswer, foreign: ForeignConsent) -> Reply:
    """Return an answer with what is beside its commands; `foreign` says whether that needs a yes."""
    ours = found.items
    done = next((item.line for item in ours if finishes(item)), 0)
    ranked: list[tuple[tuple[int, int], Step | Problem]] = [((at, 0), each) for at, each in enumerate(ours)]
    refused: list[Problem] = []
    notes: list[str] = []
    for item in other.items:
        if isinstance(item, Problem):
            if item.kind is not Kind.RENAME or not _is_moved(item.subject, ours):
                refused.append(item)
            continue
        try:
            place = _place_of(item, ours, done)
        except OperationError as fault:
            fact = f"The part at line {item.line} was not used: {fault.fact}"
            refused.append(Problem(item.kind, fact, item.line, subject=_path(item), advice=fault.advice))
            continue
        if place is None:
            notes.append(f"line {item.line} repeats what an operation does")
        else:
            ranked.append(((place, item.line), replace(item, foreign=foreign)))
    if count := len(ranked) - len(ours):
        what, was = ("an edit", "was") if count == 1 else (f"{count} edits", "were")
        beside = "in another format next to the operations"
        notes.append(plain_text.Note(f"{what} {beside} {was} applied, too", ": write operations next time"))
    kept = [each for _, each in sorted(ranked, key=lambda each: each[0])]
    return replace(found, items=(*refused, *kept), notes=(*found.notes, *other.notes, *notes))


def _place_of(item: Step, ours: tuple[Step | Problem, ...], done: int) -> int | None:
    """Return after which command an operation comes, by its index; None: a command does it.

    OperationError where it is in doubt.
    """
    operation, path = item.operation, _path(item)
    shown = paths.shown(path)
    same = [i for i, other in enumerate(ours) if isinstance(other, Step) and _path(other) == path]
    before = max((i for i, other in enumerate(ours) if other.line < item.line), default=-1)
    match operation:
        case CreateFile(content=str() as content) if any(
            set(map(str.strip, content.split("\n"))) <= _lines_of(ours[i]) for i in same
        ):
            return None
        case DeleteFile() | MoveFile() if _is_moved(path, ours):
            return None
        case _ if done and item.line > done:
            how = "; send it as an operation before DONE"
            raise OperationError(f"it changes '{shown}' after DONE", advice=how)
        case EditFile() | MoveFile(is_after_edit=True):
            return max(same[-1] if same else -1, before)
        case CreateFile() if same or operation.overwrite:
            why = "is changed by an operation, too" if same else "exists, and this may be a part of it"
            how = f'[CREATE_FILE path="{shown}"] with all of it, or [EDIT_FILE path="{shown}"]'
            raise OperationError(f"'{shown}' {why}", advice=f"; if it is intended, send {how}")
        case DeleteFile() if same:
            how = f'; send [DELETE_FILE path="{shown}"]'
            raise OperationError(f"an operation changes '{shown}', too", advice=how)
        case _:
            return before


def _lines_of(item: Step | Problem) -> set[str]:
    """Return the lines that a command writes into its file, or looks for in it."""
    match item:
        case Step(operation=CreateFile(content=str() as content)):
            texts = [content]
        case Step(operation=EditFile(parts=parts) as edit) if parts:
            searches = (each.search for each in parts if isinstance(each, operations.Replacement))
            texts = [*edit.written, *searches]
        case _:
            return set()
    return {line.strip() for text in texts for line in text.split("\n")}


def _is_moved(path: str, ours: tuple[Step | Problem, ...]) -> bool:
    """Return whether a command may delete or move a file."""
    for item in ours:
        match item:
            case Step(operation=MoveFile() | DeleteFile() as operation):
                if path in [change.path for change in operations.named(operation)]:
                    return True
            case Step(operation=operations.RunCommand(command=line)) if path in line and _MOVES.search(line):
                return True
            case _:
                pass
    return False


def _path(item: Step) -> str:
    return next((change.path for change in operations.named(item.operation)), "")
