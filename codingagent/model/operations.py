"""Operations: what an answer can ask for, in any protocol. No limits of a wire apply here.

Lines of text in an operation end with "\\n"; `encoding` and `edits` decide how a file's own bytes
become
such text and back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from codingagent.model.chat_damage import AS_IT_IS, Arrival
from codingagent.model.encoding import Encoding

# Larger answers are refused whole: each operation is checked, recorded and executed by itself.
AT_ONCE = 10_000


class LineEnd(Enum):
    """How the lines of a written file end."""

    LF = "lf"
    CRLF = "crlf"


@dataclass(frozen=True, slots=True)
class CreateFile:
    """Write a whole file, new or replacing an old one; missing parent folders are made."""

    path: str
    content: str | bytes
    line_end: LineEnd | None = None
    """None keeps CRLF if every line of the replaced file ends with it, else LF."""
    overwrite: bool = True
    unchecked: bool = False
    """The answer says that the content is intended, even if it does not parse."""
    arrival: Arrival | None = field(default=AS_IT_IS, compare=False)
    """How the text came through a chat; None: take it literally."""

    @property
    def is_literal(self) -> bool:
        """Return whether the answer marks the end of the text and asks to take it literally."""
        return self.arrival is None


@dataclass(frozen=True, slots=True)
class LineRange:
    """Replace the lines from `start_line` to `end_line`, 1-based and inclusive, with `text`."""

    start_line: int
    end_line: int
    text: str


class FileEnd(Enum):
    """How the last line of an edited file ends."""

    KEPT = "as before"
    ENDED = "with a line end"
    OPEN = "without one"


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replace the only lines that read `search` with `replace`."""

    search: str
    replace: str
    is_verbatim: bool = field(default=False, compare=False)
    """It came in a code block, where no chat removes indentation."""


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """Consecutive lines of a diff, with hints about their position.

    A line is a mark and a text: " " is context, "-" is removed, "+" is added.
    """

    lines: tuple[tuple[str, str], ...]
    old_start: int | None = None
    """The number of its first old line, from its header."""
    new_start: int | None = None
    """The number of its first new line, from its header."""
    sections: tuple[str, ...] = ()
    """Lines above it in the file, outermost first: usually the class and the function."""
    is_counted: bool = False
    """Its header counts exactly these lines, so none is missing."""
    is_verbatim: bool = False
    """It came in a code block, where no chat removes indentation."""
    end: FileEnd | None = None
    """If given, the hunk must be at the end of the file, which then ends this way."""


@dataclass(frozen=True, slots=True)
class Diff:
    """Hunks of one file; all their line numbers refer to the file before the diff."""

    hunks: tuple[DiffHunk, ...]


@dataclass(frozen=True, slots=True)
class Substitution:
    """Replace the first occurrence of `old`, which may be any part of the text, with `new`."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Substitutions:
    """Several substitutions in order, each applied to the result of the one before."""

    edits: tuple[Substitution, ...]


@dataclass(frozen=True, slots=True)
class EditFile:
    """Change part of a file: a line range, replacements, substitutions or hunks, all or none."""

    path: str
    change: LineRange | tuple[Replacement, ...] | Substitutions | Diff
    arrival: Arrival | None = field(default=AS_IT_IS, compare=False)
    """How the text came through a chat; None: take it literally."""
    unchecked: bool = False
    """As in `CreateFile`."""


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Remove one file; never a folder."""

    path: str


@dataclass(frozen=True, slots=True)
class MoveFile:
    """Give one regular file another path; missing parent folders are made."""

    path: str
    to: str
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Request a file's text, or its lines from `start_line` to `end_line`; a glob, all matches."""

    path: str
    start_line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True, slots=True)
class FetchFile:
    """Request a file's whole content at once, as text or as bytes in base64."""

    path: str
    encoding: Encoding = "utf-8"


@dataclass(frozen=True, slots=True)
class ListFolder:
    """Request the contents of a folder; `.` is the workspace root."""

    path: str


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a shell command in the workspace, or in `cwd` within it."""

    command: str
    timeout_s: float | None = None
    """None means the limit in the settings; 0 means none."""
    cwd: str = "."
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables to add."""
    parts_streams: bool = False
    """Keep stdout and stderr apart, and more of them."""


@dataclass(frozen=True, slots=True)
class ShowMessage:
    """Show the person a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """End the session: the task is done."""

    summary: str


Operation = (
    CreateFile
    | EditFile
    | DeleteFile
    | MoveFile
    | ReadFile
    | FetchFile
    | ListFolder
    | RunCommand
    | ShowMessage
    | Finish
)
