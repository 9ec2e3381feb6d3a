"""Read `*** Begin Patch`: sections that add, update and delete files, without any numbers."""

from msgspec import Struct, field

from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.operations import CreateFile, DeleteFile, EditFile
from codingagent.model.plain_text import joined
from codingagent.protocols.foreign import hunks, unified_diff
from codingagent.protocols.foreign.file_names import Files
from codingagent.protocols.foreign.hunks import DiffPart

_BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_END_OF_FILE = "*** End of File"
_MOVE = "*** Move to:"
_KINDS = {"*** Add File:": "add", "*** Update File:": "update", "*** Delete File:": "delete"}


class Section(Struct):
    """The part of a patch that is about one file; `line` is 1-based."""

    line: int
    kind: str
    path: str
    body: list[str] = field(default_factory=list)
    moved_to: str = ""
    is_cut: bool = False
    is_verbatim: bool = False


def begins(line: str) -> bool:
    """Return whether a line opens a patch, or a section of one."""
    return line.startswith("*** ") and (line.rstrip() == _BEGIN or bool(_mark(line)))


def read(lines: list[str], at: int, end: int, *, fenced: bool) -> tuple[list[Section], int]:
    """Read a patch from its first line on; return its sections and the index after it."""
    sections: list[Section] = []
    ended = fenced
    if lines[at].rstrip() == _BEGIN:
        at += 1
    while at < end:
        line = lines[at].rstrip()
        at += 1
        if line == _END:
            ended = True
            break
        if mark := _mark(line):
            path = line[len(mark) :].strip().strip("`")
            sections.append(Section(at, _KINDS[mark], path, is_verbatim=fenced))
        elif line.startswith(_MOVE) and sections and not sections[-1].body:
            sections[-1].moved_to = line[len(_MOVE) :].strip()
        elif sections and line != _BEGIN:
            sections[-1].body.append(lines[at - 1])
    if sections and not ended:
        sections[-1].is_cut = True
    return sections, at


def _mark(line: str) -> str:
    return next((mark for mark in _KINDS if line.startswith(mark)), "")


def operation_of(
    section: Section, files: Files
) -> tuple[CreateFile | EditFile | DeleteFile, tuple[str, ...]]:
    """Return the operation that a section asks for, and notes on how it was read."""
    if section.is_cut:
        raise OperationError(f"it has no {_END}, so it may be cut; send it again, whole")
    if section.kind == "delete":
        return DeleteFile(files.existing(section.path)[0]), ()
    if section.kind == "add":
        return _creation(section), ()
    path, note = files.existing(section.path)
    found = _hunks(section)
    if section.moved_to:
        raise OperationError(unified_diff.renaming(path, section.moved_to, edited=bool(found)))
    if not found:
        raise OperationError("it has no hunks; send them")
    return hunks.edit_of(path, found), (note,) if note else ()


def _creation(section: Section) -> CreateFile:
    path, body = paths.workspace_path(section.path), section.body
    while body and not body[-1].strip():
        body.pop()
    bad = next((i for i, line in enumerate(body) if line and line[0] != "+"), None)
    if bad is not None:
        raise OperationError(
            f"line {section.line + 1 + bad} has no + before it; begin each line of a new file with +"
        )
    return CreateFile(path, joined(line[1:] for line in body), overwrite=False)


def _hunks(section: Section) -> list[DiffPart]:
    found: list[DiffPart] = []
    sections: list[str] = []
    is_open = False
    for offset, line in enumerate(section.body):
        at = section.line + 1 + offset
        if line.startswith("@@"):
            sections = [*([] if is_open else sections), *unified_diff.sections_of(line)]
            is_open = False
        elif line.rstrip() == _END_OF_FILE:
            if found:
                found[-1].without_trailing_blanks().at_end = True
            is_open = False
        elif is_open or line.strip():
            if not is_open:
                found.append(
                    DiffPart(at, sections=tuple(sections), is_verbatim=section.is_verbatim)
                )
                is_open = True
            _take(found[-1], line)
    return [hunk.without_trailing_blanks() for hunk in found]


def _take(hunk: DiffPart, line: str) -> None:
    mark = line[:1] or " "
    if mark in " +-":
        hunk.take(mark, line[1:])
    elif not line.startswith("\\ No newline"):
        # Context that has lost its blank; that it fits the file will prove it.
        hunk.take(" ", line)
