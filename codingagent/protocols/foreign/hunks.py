"""A hunk of a difference, in whichever format, and the part of an edit that it asks for."""

from msgspec import Struct, field

from codingagent.errors import OperationError
from codingagent.model.chat_damage import Arrival
from codingagent.model.operations import CreateFile, Diff, DiffHunk, EditFile, FileEnd
from codingagent.model.plain_text import joined


class DiffPart(Struct):
    """Lines with their marks, from 1-based `line` of the answer on, and what is said of their place.

    `old_open` and `new_open` tell that the last of them is the file's last and has no line end;
    `at_end` that the last of them is the file's last.
    """

    line: int
    lines: list[tuple[str, str]] = field(default_factory=list)
    old_count: int = 0
    new_count: int = 0
    old_start: int | None = None
    new_start: int | None = None
    sections: tuple[str, ...] = ()
    is_counted: bool = False
    is_verbatim: bool = False
    old_open: bool = False
    new_open: bool = False
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        return [text for mark, text in self.lines if mark != "+"]

    @property
    def new(self) -> list[str]:
        return [text for mark, text in self.lines if mark != "-"]

    @property
    def changes(self) -> bool:
        """Return whether a line goes or comes; it may be the same but for blanks that were lost."""
        return any(mark != " " for mark, _ in self.lines)

    def take(self, mark: str, text: str) -> None:
        """Take a line of context (" "), one that is to go ("-") or one that is to come ("+")."""
        self.lines.append((mark, text))
        self.old_count += mark != "+"
        self.new_count += mark != "-"

    def without_trailing_blanks(self) -> "DiffPart":
        """Take empty context off the end: it may as well be what parts the hunk from the next thing."""
        while self.lines and self.lines[-1] == (" ", ""):
            self.lines.pop()
            self.old_count -= 1
            self.new_count -= 1
        return self

    def as_said(self) -> DiffHunk:
        end = FileEnd.KEPT if self.at_end else None
        if self.old_open != self.new_open:
            # It gives the last line of the file its end, or takes it.
            end = FileEnd.OPEN if self.new_open else FileEnd.ENDED
        said = tuple(self.lines), self.old_start, self.new_start, self.sections
        return DiffHunk(*said, self.is_counted, self.is_verbatim, end)


def edit_of(path: str, hunks: list[DiffPart]) -> EditFile:
    """Return the edit that hunks of one file ask for; refuse one whose place nothing tells."""
    said = tuple(_checked(hunk).as_said() for hunk in hunks if hunk.changes)
    if not said:
        how = "begin the lines that go with - and those that come with +"
        raise OperationError(f"it changes nothing; {how}")
    return EditFile(path, Diff(said))


def creation_of(path: str, hunks: list[DiffPart]) -> CreateFile:
    """Return the new file that one hunk of added lines makes; refuse other hunks."""
    if not hunks:
        return CreateFile(path, "", overwrite=False)
    if len(hunks) > 1:
        raise OperationError("a new file in several hunks; send it whole")
    hunk = hunks[0]
    if any(hunk.old):
        how = "begin each of its lines with +"
        raise OperationError(f"a new file with lines that are not added; {how}")
    # Empty lines that lost their "+": a new file has no other kind.
    text = "\n".join(hunk.new) if hunk.new_open else joined(hunk.new)
    is_exact = hunk.is_counted and hunk.is_verbatim
    arrival = None if is_exact else Arrival(in_code=hunk.is_verbatim)
    return CreateFile(path, text, overwrite=False, arrival=arrival)


def _checked(hunk: DiffPart) -> DiffPart:
    has_text = any(line.strip() for line in hunk.old)
    if not has_text and hunk.old_start != 0 and (not hunk.old or hunk.old_start is None):
        raise OperationError(
            f"the hunk at line {hunk.line} has no line of the old text, so its place is not certain; add"
            " the lines around it"
        )
    return hunk
