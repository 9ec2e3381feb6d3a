"""Operations: what an answer can ask for, in any protocol. No limits of a wire apply here.

Lines of text in an operation end with "\\n"; `encoding` and `edits` make it of a file's bytes, and back.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, Literal

from msgspec import Struct, field

from codingagent.model.chat_damage import AS_IT_IS, BodyEvidence
from codingagent.model.encoding import Encoding

# Larger answers are refused whole: each operation is checked, recorded and executed by itself.
AT_ONCE = 10_000


class Kind(StrEnum):
    """The kinds of operations and of parts of an answer, as journals and results name them."""

    CREATE_FILE = "CREATE_FILE"
    EDIT_FILE = "EDIT_FILE"
    DELETE_FILE = "DELETE_FILE"
    MOVE_FILE = "MOVE_FILE"
    READ_FILE = "READ_FILE"
    LIST_FOLDER = "LIST_FOLDER"
    RUN_COMMAND = "RUN_COMMAND"
    MESSAGE = "MESSAGE"
    DONE = "DONE"

    CHECK = "CHECK"
    FILES_CHANGED = "FILES_CHANGED"
    """A question after a command: keep what it changed, or put it back?"""

    ANSWER = "REPLY"
    FILE = "FILE"
    SEARCH_REPLACE = "SEARCH/REPLACE"
    DIFF = "DIFF"
    PATCH = "PATCH"
    RENAME = "RENAME"
    MALFORMED = "operation"
    """Part of a JSON message, of no known type."""


After = Literal["whole", "part", "moved", "nothing", "anything"]
"""What is at a path afterwards: a file written whole, one changed in part, one from another path, none, or
nobody knows."""


class PathChange(Struct, frozen=True):
    """A path that changes, and what is there then; `is_new`: nothing was before (None: unknown)."""

    path: str
    after: After
    is_new: bool | None = None

    @property
    def follows(self) -> bool:
        """Whether a link at the end of the path is followed, so that its target is changed."""
        return self.after not in ("moved", "nothing")

    @property
    def removes(self) -> bool:
        return self.after == "nothing"


Changes = tuple[PathChange, ...]
"""What an operation may change, or its event says it has: policy, record, undo and check ask for it."""
EVERYWHERE = PathChange("", "anything")


def moved(path: str, to: str, *, is_new: bool | None) -> Changes:
    return PathChange(path, "nothing", is_new=False), PathChange(to, "moved", is_new)


class CreateFile(Struct, frozen=True):
    """Write a whole file, new or replacing an old one; missing parent folders are made."""

    kind: ClassVar[Kind] = Kind.CREATE_FILE

    path: str
    content: str | bytes
    line_end: str | None = None
    """`lf` or `crlf`; None keeps CRLF if every line of the replaced file ends with it, else LF."""
    overwrite: bool = True
    unchecked: bool = False
    """The answer says that the content is intended, even if it does not parse."""
    arrival: BodyEvidence | None = AS_IT_IS
    """How the text came through a chat; None: take it literally."""

    @property
    def changes(self) -> Changes:
        return (PathChange(self.path, "whole", None if self.overwrite else True),)

    @property
    def written(self) -> list[str]:
        """The texts that it writes, but for those that are taken literally."""
        return [self.content] if isinstance(self.content, str) else []


FileEnd = Literal["kept", "ended", "open"]


class LineRange(Struct, frozen=True):
    """Replace the lines from `start_line` to `end_line`, 1-based and inclusive, with `text`."""

    start_line: int
    end_line: int
    text: str


class Replacement(Struct, frozen=True):
    """Replace the only lines that read `search` with `replace`."""

    search: str
    replace: str
    is_verbatim: bool = False
    """It came in a code block, where no chat removes indentation."""


class DiffHunk(Struct, frozen=True):
    """Consecutive lines of a diff, with hints about their position."""

    lines: tuple[tuple[str, str], ...]
    """Each a mark (" " context, "-" removed, "+" added) and a text."""
    old_start: int | None = None
    new_start: int | None = None
    """The numbers of its first old and first new line, from its header."""
    sections: tuple[str, ...] = ()
    """Lines above it in the file, outermost first: usually the class and the function."""
    is_counted: bool = False
    """Its header counts exactly these lines, so none is missing."""
    is_verbatim: bool = False
    end: FileEnd | None = None
    """If given, the hunk must be at the end of the file, which then ends this way."""


class Diff(Struct, frozen=True):
    """Hunks of one file; all their line numbers refer to the file before the diff."""

    hunks: tuple[DiffHunk, ...]


class Substitution(Struct, frozen=True):
    """Replace the first occurrence of `old`, which may be any part of the text, with `new`."""

    old: str
    new: str


class Substitutions(Struct, frozen=True):
    """Several substitutions in order, each applied to the result of the one before."""

    edits: tuple[Substitution, ...]


class EditFile(Struct, frozen=True):
    """Change part of a file: a line range, replacements, substitutions or hunks, all or none."""

    kind: ClassVar[Kind] = Kind.EDIT_FILE

    path: str
    change: LineRange | tuple[Replacement | LineRange, ...] | Substitutions | Diff
    arrival: BodyEvidence | None = AS_IT_IS
    unchecked: bool = False

    @property
    def changes(self) -> Changes:
        return (PathChange(self.path, "part", is_new=False),)

    @property
    def parts(self) -> tuple[Replacement | LineRange, ...]:
        """The edits by lines that it consists of, in their order; empty for the other kinds of change."""
        if isinstance(self.change, LineRange):
            return (self.change,)
        return self.change if isinstance(self.change, tuple) else ()

    @property
    def ranges(self) -> tuple[LineRange, ...]:
        return tuple(part for part in self.parts if isinstance(part, LineRange))

    @property
    def written(self) -> list[str]:
        match self.change:
            case Diff(hunks=hunks):
                return [text for hunk in hunks for mark, text in hunk.lines if mark == "+"]
            case Substitutions():  # taken literally
                return []
            case _:
                return [part.text if isinstance(part, LineRange) else part.replace for part in self.parts]


class DeleteFile(Struct, frozen=True):
    """Remove one file; never a folder."""

    kind: ClassVar[Kind] = Kind.DELETE_FILE
    written: ClassVar[Sequence[str]] = ()

    path: str
    lines: tuple[str, ...] | None = None
    """The lines that the file must have, as a diff removes them; None: any."""

    @property
    def changes(self) -> Changes:
        return (PathChange(self.path, "nothing", is_new=False),)


class MoveFile(Struct, frozen=True):
    """Give one regular file another path; missing parent folders are made."""

    kind: ClassVar[Kind] = Kind.MOVE_FILE
    written: ClassVar[Sequence[str]] = ()

    path: str
    to: str
    overwrite: bool = False
    is_after_edit: bool = False
    """It is moved only if the operation before it has changed it: both, or neither."""

    @property
    def changes(self) -> Changes:
        return moved(self.path, self.to, is_new=None if self.overwrite else True)


class ReadFile(Struct, frozen=True):
    """Request a file's text, or its lines from `start_line` to `end_line`; a glob, all matches."""

    kind: ClassVar[Kind] = Kind.READ_FILE
    changes: ClassVar[Changes] = ()

    path: str
    start_line: int | None = None
    end_line: int | None = None


class FetchFile(Struct, frozen=True):
    """Request a file's whole content at once, as text or as bytes in base64."""

    kind: ClassVar[Kind] = Kind.READ_FILE
    changes: ClassVar[Changes] = ()

    path: str
    encoding: Encoding = "utf-8"


class ListFolder(Struct, frozen=True):
    """Request the contents of a folder; `.` is the workspace root."""

    kind: ClassVar[Kind] = Kind.LIST_FOLDER
    changes: ClassVar[Changes] = ()

    path: str


class RunCommand(Struct, frozen=True):
    """Run a shell command in the workspace, or in `cwd` within it."""

    kind: ClassVar[Kind] = Kind.RUN_COMMAND
    changes: ClassVar[Changes] = (EVERYWHERE,)

    command: str
    timeout_s: float | None = None
    """None means the limit in the settings; 0 means none."""
    cwd: str = "."
    variables: Mapping[str, str] = field(default_factory=dict)
    parts_streams: bool = False


class ShowMessage(Struct, frozen=True):
    kind: ClassVar[Kind] = Kind.MESSAGE
    changes: ClassVar[Changes] = ()

    text: str


class Finish(Struct, frozen=True):
    kind: ClassVar[Kind] = Kind.DONE
    changes: ClassVar[Changes] = ()

    summary: str


FileOperation = CreateFile | EditFile | DeleteFile | MoveFile
Operation = FileOperation | ReadFile | FetchFile | ListFolder | RunCommand | ShowMessage | Finish


def text_of(operation: FileOperation) -> str:
    """Return what an operation of an answer says, as lines that go and come."""
    match operation:
        case EditFile(change=Diff(hunks=hunks)):
            return "\n".join(mark + text for hunk in hunks for mark, text in hunk.lines)
        case EditFile(parts=parts) if parts:
            pairs = [
                (f"lines {each.start_line} to {each.end_line}", each.text)
                if isinstance(each, LineRange)
                else (each.search, each.replace)
                for each in parts
            ]
        case EditFile(change=Substitutions(edits=edits)):
            pairs = [(each.old, each.new) for each in edits]
        case MoveFile(to=to):
            pairs = [(operation.path, to)]
        case _:
            pairs = [("", text) for text in operation.written]
    sides = ((mark, text) for pair in pairs for mark, text in zip("-+", pair, strict=True) if text)
    return "\n".join(mark + text.removesuffix("\n").replace("\n", f"\n{mark}") for mark, text in sides)


def named(operation: Operation) -> Changes:
    """Return the changes of an operation whose paths it names."""
    return tuple(change for change in operation.changes if change is not EVERYWHERE)
