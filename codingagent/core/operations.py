"""What can be asked for, whichever protocol asked. Carries no limits of any wire.

Text in an operation has lines ended by "\\n"; how a file's own bytes become such text and back is
decided in `encoding` and `edits`.
"""

from dataclasses import dataclass
from enum import Enum

from codingagent.core.channel import UNHARMED, Channel


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


@dataclass(frozen=True, slots=True)
class LineRange:
    """Put `text` in place of the lines from `start_line` to `end_line`, 1-based and inclusive."""

    start_line: int
    end_line: int
    text: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """Put `replace` in the place of the only lines that read `search`."""

    search: str
    replace: str


@dataclass(frozen=True, slots=True)
class EditFile:
    """Change part of a file: one range of lines, or replacements in order, all or none."""

    path: str
    change: LineRange | tuple[Replacement, ...]
    way: Channel = UNHARMED
    """What the text has suffered before it came here, as far as it is known."""


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
class RunCommand:
    """Run a shell command in the workspace, or in `cwd` within it."""

    command: str
    timeout_s: float | None = None
    """None means the limit in the settings."""
    cwd: str = "."


@dataclass(frozen=True, slots=True)
class ShowMessage:
    """Show the person a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """End the session, the task being done."""

    summary: str


Operation = CreateFile | EditFile | DeleteFile | ReadFile | RunCommand | ShowMessage | Finish
