"""What can be asked for, whichever protocol asked. Carries no limits of any wire.

Text in an operation has lines ended by "\\n"; how a file's own bytes become such text and back is
decided in `encoding` and `edits`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from codingagent.model.chat_damage import AS_IT_IS, Arrival
from codingagent.model.encoding import Encoding

# More are refused whole: each is checked, recorded, executed and answered for itself.
AT_ONCE = 10_000


class LineEnd(Enum):
    """How the lines of a written file end."""

    LF = "lf"
    CRLF = "crlf"


@dataclass(frozen=True, slots=True)
class CreateFile:
    """Write a whole file, new or in place of an old one; missing parent folders are made."""

    path: str
    content: str | bytes
    line_end: LineEnd | None = None
    """None keeps CRLF where every line of the file being replaced ends so, else LF."""
    overwrite: bool = True
    unchecked: bool = False
    """The answer says that it is meant so, whatever the file's kind needs."""
    arrival: Arrival | None = field(default=AS_IT_IS, compare=False)
    """How the text came through a chat; None: it is to be taken letter by letter."""

    @property
    def is_literal(self) -> bool:
        """The answer says where the text ends, and that it is meant letter by letter."""
        return self.arrival is None


@dataclass(frozen=True, slots=True)
class LineRange:
    """Put `text` in place of the lines from `start_line` to `end_line`, 1-based and inclusive."""

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
    """Put `replace` in the place of the only lines that read `search`."""

    search: str
    replace: str
    is_verbatim: bool = field(default=False, compare=False)
    """It came in a code block, where no chat takes indentation away."""


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """Lines of a diff that belong together, and what is said of their place.

    A line is a mark and a text: " " is context, "-" is removed, "+" is added.
    """

    lines: tuple[tuple[str, str], ...]
    old_start: int | None = None
    """The number that its header gives to its first old line."""
    new_start: int | None = None
    """The number that its header gives to its first new line."""
    sections: tuple[str, ...] = ()
    """Lines above it in the file, the outermost first: the class and the function, as a rule."""
    is_counted: bool = False
    """Its header counts exactly these lines, so none was left out."""
    is_verbatim: bool = False
    """It came in a code block, where no chat takes indentation away."""
    end: FileEnd | None = None
    """Given: the place must be the end of the file, which then ends so."""


@dataclass(frozen=True, slots=True)
class Diff:
    """Hunks of one file, all of which count in the file as it is before them."""

    hunks: tuple[DiffHunk, ...]


@dataclass(frozen=True, slots=True)
class Substitution:
    """Put `new` in the place of the first occurrence of `old`, which may be any part of the text."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Substitutions:
    """Several of them, in order, each in the text that the one before has left."""

    edits: tuple[Substitution, ...]


@dataclass(frozen=True, slots=True)
class EditFile:
    """Change part of a file: a range of lines, or replacements, substitutions or hunks, all or none."""

    path: str
    change: LineRange | tuple[Replacement, ...] | Substitutions | Diff
    arrival: Arrival | None = field(default=AS_IT_IS, compare=False)
    """How the text came through a chat; None: it is to be taken letter by letter."""
    unchecked: bool = False
    """As in `CreateFile`."""


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Remove one file; never a folder."""

    path: str


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Ask for a file's text, or its lines from `start_line` to `end_line`; a glob asks for all it fits."""

    path: str
    start_line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True, slots=True)
class FetchFile:
    """Ask for a file's whole content at once, its text or its bytes in base64."""

    path: str
    encoding: Encoding = "utf-8"


@dataclass(frozen=True, slots=True)
class ListFolder:
    """Ask for what a folder holds; `.` is the workspace root."""

    path: str


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a shell command in the workspace, or in `cwd` within it."""

    command: str
    timeout_s: float | None = None
    """None means the limit in the settings; 0 means none."""
    cwd: str = "."
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables besides the usual."""
    parts_streams: bool = False
    """Keep stdout and stderr apart, and more of them."""


@dataclass(frozen=True, slots=True)
class ShowMessage:
    """Show the person a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """End the session, the task being done."""

    summary: str


Operation = (
    CreateFile
    | EditFile
    | DeleteFile
    | ReadFile
    | FetchFile
    | ListFolder
    | RunCommand
    | ShowMessage
    | Finish
)
