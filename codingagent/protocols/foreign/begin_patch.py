"""Read `*** Begin Patch`: sections that add, update and delete files, without any numbers."""

from msgspec import Struct, field

from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.operations import DeleteFile
from codingagent.protocols.foreign import diffs
from codingagent.protocols.foreign.diffs import Asked, DiffPart
from codingagent.protocols.foreign.file_names import Files

_BEGIN, _END, _END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_MOVE = "*** Move to:"
_SECTIONS = ("*** Add File:", "*** Update File:", "*** Delete File:")


class Section(Struct):
    """The part of a patch that is about one file; `line` is 1-based."""

    line: int
    kind: str
    path: str
    is_fenced: bool
    body: list[str] = field(default_factory=list)
    moved_to: str = ""
    is_cut: bool = False


def begins(line: str) -> bool:
    """Return whether a line opens a patch, or a section of one."""
    return line.rstrip() == _BEGIN or line.startswith(_SECTIONS)


def read(lines: list[str], at: int, end: int, *, fenced: bool) -> tuple[list[Section], int]:
    """Read a patch from its first line on; return its sections and the index after it."""
    sections: list[Section] = []
    while at < end:
        line = lines[at].rstrip()
        at += 1
        if line == _END:
            return sections, at
        if line.startswith(_SECTIONS):
            kind, _, path = line.partition(":")
            sections.append(Section(at, kind.split()[1], path.strip().strip("`"), fenced))
        elif line.startswith(_MOVE) and sections and not sections[-1].body:
            sections[-1].moved_to = line[len(_MOVE) :].strip()
        elif sections and line != _BEGIN:
            sections[-1].body.append(lines[at - 1])
    if sections and not fenced:
        sections[-1].is_cut = True
    return sections, at


def operation_of(section: Section, files: Files) -> Asked:
    """Return the operation that a section asks for, and notes on how it was read."""
    if section.is_cut:
        raise OperationError(f"it has no {_END}, so it may be cut", advice="; send it again, whole")
    hunks = _hunks(section)
    if section.kind == "Add":
        return diffs.creation_of(paths.workspace_path(section.path), hunks), ()
    path, note = files.existing(section.path)
    notes = (note,) if note else ()
    if section.kind == "Delete":
        return DeleteFile(path), notes
    if section.moved_to:
        raise diffs.renaming(path, section.moved_to, edited=bool(hunks))
    return diffs.edit_of(path, hunks), notes


def _hunks(section: Section) -> list[DiffPart]:
    found: list[DiffPart] = []
    sections: list[str] = []
    is_open = False
    for at, line in enumerate(section.body, section.line + 1):
        if line.startswith("@@"):
            sections = [*([] if is_open else sections), *diffs.sections_of(line)]
            is_open = False
        elif line.rstrip() == _END_OF_FILE:
            if found:
                found[-1].without_trailing_blanks().at_end = True
            is_open = False
        elif is_open or line.strip():
            if not is_open:
                found.append(DiffPart(at, sections=tuple(sections), is_verbatim=section.is_fenced))
                is_open = True
            if not found[-1].take(line):
                # Context that has lost its blank; that it fits the file will prove it.
                found[-1].take(f" {line}")
    return [hunk.without_trailing_blanks() for hunk in found]
