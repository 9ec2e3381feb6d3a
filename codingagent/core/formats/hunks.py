"""A hunk of a difference, in whichever format, and the replacement that it asks for.

Numbers in a hunk's header are not believed: models count wrong. Its place is where its old lines stand.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from codingagent.core.formats import elisions
from codingagent.core.operations import CreateFile, EditFile, FileEnd, Replacement
from codingagent.errors import OperationError


@dataclass(slots=True)
class Hunk:
    """Lines before and after, from 1-based `line` of the reply on.

    `old_open` and `new_open` tell that the last of them is the file's last and has no line end;
    `at_end` that the last of them is the file's last.
    """

    line: int
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    old_open: bool = False
    new_open: bool = False
    at_end: bool = False
    kept: int = 0
    """How many lines at the end are context."""
    last: str = ""
    """The mark of the line taken last."""

    def keep(self, text: str) -> None:
        """Takes a line of context."""
        self.old.append(text)
        self.new.append(text)
        self.kept += 1

    def remove(self, text: str) -> None:
        """Takes a line that is to go."""
        self.old.append(text)
        self.kept = 0

    def add(self, text: str) -> None:
        """Takes a line that is to come."""
        self.new.append(text)
        self.kept = 0

    def without_trailing_blanks(self) -> "Hunk":
        """Takes empty context off the end: it may as well be what parts the hunk from the next thing."""
        while self.kept and not self.old[-1]:
            self.old.pop()
            self.new.pop()
            self.kept -= 1
        return self


def edit_of(path: str, hunks: list[Hunk]) -> EditFile:
    """Gives the edit that hunks of one file ask for.

    Raises:
        OperationError: if the place of one is not certain.
    """
    replacements = tuple(
        _replacement(hunk) for hunk in hunks if hunk.old != hunk.new or _turns(hunk)
    )
    if not replacements:
        raise OperationError("it has no added and no removed line, so it changes nothing")
    return EditFile(path, replacements)


def creation_of(path: str, hunks: list[Hunk]) -> CreateFile:
    """Gives the new file that hunks of added lines make.

    Raises:
        OperationError: if they have other lines, or there are several.
    """
    if not hunks:
        return CreateFile(path, "", overwrite=False)
    if len(hunks) > 1:
        raise OperationError("a new file in several hunks; send it whole")
    hunk = hunks[0]
    if any(hunk.old):
        raise OperationError(
            "a new file with lines that are not added; begin each of its lines with +"
        )
    # Empty lines that lost their "+": a new file has no other kind.
    text = joined(hunk.new)
    return CreateFile(path, text.removesuffix("\n") if hunk.new_open else text, overwrite=False)


def joined(lines: Iterable[str]) -> str:
    """Gives lines as text, each ended."""
    return "".join(f"{line}\n" for line in lines)


def _turns(hunk: Hunk) -> bool:
    return hunk.old_open != hunk.new_open


def _replacement(hunk: Hunk) -> Replacement:
    if not any(line.strip() for line in hunk.old):
        raise OperationError(
            f"the hunk at line {hunk.line} has no line of the old text, so its place is not certain; add"
            " the lines around it"
        )
    elided = elisions.added_elision(hunk.old, hunk.new)
    if elided is not None:
        raise OperationError(
            f"the hunk at line {hunk.line} adds '{hunk.new[elided].strip()}', which stands for text that"
            " was left out; write that text"
        )
    return Replacement(joined(hunk.old), joined(hunk.new), _end(hunk), may_shift=False)


def _end(hunk: Hunk) -> FileEnd | None:
    if _turns(hunk):
        return FileEnd.OPEN if hunk.new_open else FileEnd.ENDED
    return FileEnd.KEPT if hunk.at_end else None
