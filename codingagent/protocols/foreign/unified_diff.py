"""Read unified and git differences: the files they name, and their hunks, however badly counted.

How it works. A hunk is first read by the numbers in its header; if these don't end it where
one can end, they are wrong, and it is read by the marks of its lines alone.
"""

import re
import shlex

from msgspec import Struct, field

from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.operations import CreateFile, DeleteFile, EditFile, MoveFile
from codingagent.model.patterns import lazy_pattern
from codingagent.protocols.foreign import diff_paths, hunks
from codingagent.protocols.foreign.file_names import Files, Name
from codingagent.protocols.foreign.hunks import DiffPart

_HUNK = lazy_pattern(
    r"@@(?:[ \t]+-(\d{1,9})(?:,(\d{1,9}))?[ \t]+\+(\d{1,9})(?:,(\d{1,9}))?[ \t]+@@.*|(?!@).*)"
)
_NUMBERS = lazy_pattern(r"-\d+(?:,\d+)?[ \t]+\+\d+(?:,\d+)?[ \t]*")
_WORD = lazy_pattern(r"\w")
_EXTENDED = lazy_pattern(
    "index |old mode |new mode |deleted file mode|new file mode|similarity index|dissimilarity index"
    "|rename from |rename to |copy from |copy to |Binary files |GIT binary patch"
)
# What such lines above the hunks say of a file, and what to do with it.
_NO_TEXT = {
    "copy from ": "a copy; send it whole",
    " 160000": "a submodule, which can't be changed here; leave it out",
    " 120000": "a symbolic link, which only a command can change; send [RUN_COMMAND]",
    "Binary files ": 'binary; send it with [CREATE_FILE] and encoding="base64"',
    "GIT binary": 'binary; send it with [CREATE_FILE] and encoding="base64"',
}
_UNDERLINE = "====="
_PATH = lazy_pattern(r"/dev/null|[^\s]*[^\s.]\.[A-Za-z]\w*|[^\s]+/[^\s]+")
# A list below a difference that is in no fence. Hardly a line of code begins with one blank and a capital.
_BULLET = lazy_pattern(r"[-+] (?:[A-Z][A-Za-z']* |`|\*\*)")
_NOTHING = "/dev/null"


class FileDiff(Struct):
    """The part of a difference that is about one file; `line` is 1-based."""

    line: int
    old: str | None = None
    new: str | None = None
    git: str = ""
    marks: list[str] = field(default_factory=list)
    hunks: list[DiffPart] = field(default_factory=list)
    fault: str = ""

    def says(self, what: str) -> str | None:
        """Return what follows such words in the lines above the hunks."""
        said = (mark[len(what) :].strip() for mark in self.marks if mark.startswith(what))
        return next(said, None)


def begins(lines: list[str], at: int, end: int) -> bool:
    is_named = lines[at].startswith(("diff --git ", "Index: "))
    return is_named or _is_header(lines, at, end) or is_hunk_header(lines[at])


def start(lines: list[str], at: int, end: int) -> int:
    """Return where a difference begins below what `git format-patch` and `git show` put above it."""
    if not lines[at].startswith(("From ", "commit ")):
        return at
    return next((i for i in range(at, end) if lines[i].startswith("diff --git ")), at)


def is_hunk_header(line: str) -> bool:
    """Return whether a line opens a hunk, with numbers or without."""
    return line.startswith("@@") and _HUNK.fullmatch(line.rstrip()) is not None


def read(lines: list[str], at: int, end: int, *, fenced: bool) -> tuple[list[FileDiff], int]:
    """Read the differences from a line on; return what each says, and the index after the last.

    In a fence all lines up to the end belong to them.
    """
    found: list[FileDiff] = []
    while at < end:
        if not begins(lines, at, end):
            blank = not lines[at].strip()
            if fenced and not found and not blank and lines[at][0] in "+- ":
                at = _read_hunks(lines, at, end, _opened(found, at), fenced=True)
                continue
            if fenced or (blank and _begins_behind(lines, at, end)):
                at += 1
                continue
            break
        if is_hunk_header(lines[at]):
            at = _read_hunks(lines, at, end, _opened(found, at), fenced=fenced)
            continue
        difference = FileDiff(at + 1)
        found.append(difference)
        at = _read_header(lines, at, end, difference)
        if at < end and not begins(lines, at, end) and lines[at][:1] in ("+", "-", " ", "\\"):
            at = _read_hunks(lines, at, end, difference, fenced=fenced)
    return _merged(found), at


def _merged(found: list[FileDiff]) -> list[FileDiff]:
    """Return differences with those made one that are one header written twice, or in two forms."""
    made: list[FileDiff] = []
    for difference in found:
        last = made[-1] if made else difference
        if last is not difference and _is_same(last, difference):
            last.old, last.new = _side(last.old, difference.old), _side(last.new, difference.new)
            last.git = last.git or difference.git
            last.marks += difference.marks
            last.hunks += difference.hunks
            last.fault = last.fault or difference.fault
        else:
            made.append(difference)
    return made


def _is_same(one: FileDiff, other: FileDiff) -> bool:
    """Return whether two differences are of the same file, and one of them has nothing but a header."""
    if (one.hunks and other.hunks) or one.says("rename ") or one.says("copy "):
        return False
    return bool(_names(one) & _names(other))


def _names(difference: FileDiff) -> set[str]:
    sides = (difference.old, difference.new, *(diff_paths.git_sides(difference.git) or ()))
    sides += (difference.says("Index: "),)
    return {re.sub("^[ab]/", "", side) for side in sides if side and side != _NOTHING}


def _side(one: str | None, other: str | None) -> str | None:
    return _NOTHING if _NOTHING in (one, other) else one or other


def _opened(found: list[FileDiff], at: int) -> FileDiff:
    if not found:
        found.append(FileDiff(at + 1))
    return found[-1]


def _begins_behind(lines: list[str], at: int, end: int) -> bool:
    """Return whether only blank lines part a bare difference from its next part; looks at one or two."""
    behind = next((i for i in range(at, min(at + 3, end)) if lines[i].strip()), None)
    return behind is not None and begins(lines, behind, end)


def _is_header(lines: list[str], at: int, end: int) -> bool:
    if not lines[at].startswith("--- ") or at + 1 >= end or not lines[at + 1].startswith("+++ "):
        return False
    behind = lines[at + 2] if at + 2 < end else ""
    return behind.startswith("@@") or not lines[at + 1][4:].strip().count(" ")


def _is_next_file(lines: list[str], at: int, end: int) -> bool:
    if not _is_header(lines, at, end):
        return False
    sides = (diff_paths.path_of(lines[at][4:]), diff_paths.path_of(lines[at + 1][4:]))
    return lines[min(at + 2, end - 1)].startswith("@@") and all(map(_PATH.fullmatch, sides))


def _read_header(lines: list[str], at: int, end: int, difference: FileDiff) -> int:
    line = lines[at]
    if line.startswith("diff --git "):
        difference.git = line[len("diff --git ") :].strip()
        at += 1
    while at < end and (
        _EXTENDED.match(lines[at]) or lines[at].startswith(("Index: ", _UNDERLINE))
    ):
        difference.marks.append(lines[at].rstrip())
        at += 1
    if at < end and _is_header(lines, at, end):
        difference.old = diff_paths.path_of(lines[at][4:])
        difference.new = diff_paths.path_of(lines[at + 1][4:])
        at += 2
        while at < end and _EXTENDED.match(lines[at]):
            difference.marks.append(lines[at].rstrip())
            at += 1
    return at


# --- hunks -----------------------------------------------------------------------------------------


def _read_hunks(lines: list[str], at: int, end: int, difference: FileDiff, *, fenced: bool) -> int:
    """Read the hunks of one file; return the index after the last."""
    while at < end:
        first, numbers = at, _HUNK.fullmatch(lines[at].rstrip())
        counts = (
            (int(numbers[2] or "1"), int(numbers[4] or "1")) if numbers and numbers[1] else None
        )
        at += numbers is not None
        read_hunk = _by_counts(lines, at, end, counts, fenced=fenced) if counts else None
        if read_hunk is None:
            read_hunk = _by_marks(lines, at, end, difference, fenced=fenced)
            if counts and not fenced:
                _check_not_cut(read_hunk, counts, lines, difference)
        hunk, at = read_hunk
        hunk.line, hunk.is_verbatim = first + 1, fenced
        hunk.sections = sections_of(lines[first]) if numbers else ()
        if numbers and counts:
            hunk.old_start, hunk.new_start = int(numbers[1]), int(numbers[3])
        if hunk.lines:
            difference.hunks.append(hunk)
        behind = at
        while behind < end and not lines[behind].strip():
            behind += 1
            if not fenced and behind - at > 2:
                break
        if behind >= end or not is_hunk_header(lines[behind]):
            break
        at = behind
    return at


def _check_not_cut(
    found: tuple[DiffPart, int], counts: tuple[int, int], lines: list[str], difference: FileDiff
) -> None:
    """Doubt a hunk that ends with the answer though its header says more: it may be cut short."""
    (hunk, at), (old, new) = found, counts
    is_last = not any(line.strip() for line in lines[at:])
    if is_last and hunk.new_count < new and (hunk.old_count < old or old == 0):
        difference.fault = (
            f"it may be cut short: its last header tells of {new} lines, and {hunk.new_count} arrived;"
            " send it again, in a fence (```diff)"
        )


def sections_of(header: str) -> tuple[str, ...]:
    """Return what a header names after its numbers: the function or the class that the hunk is in."""
    text = _NUMBERS.sub("", header.strip("@ \t")).strip("@ \t")
    return (text,) if _WORD.search(text) else ()


def _by_counts(
    lines: list[str], at: int, end: int, counts: tuple[int, int], *, fenced: bool
) -> tuple[DiffPart, int] | None:
    """Read as many lines as a header says; None if that can't be what it means."""
    hunk, (old, new) = DiffPart(at, is_counted=True), counts
    while hunk.old_count < old or hunk.new_count < new:
        # A removed comment `-- x` looks like a header too, but names no path.
        if at >= end or _is_next_file(lines, at, end) or not _take(hunk, lines[at]):
            return None
        if hunk.old_count > old or hunk.new_count > new:
            return None
        at += 1
    if at < end and lines[at].startswith("\\"):
        _take(hunk, lines[at])
        at += 1
    behind = at
    while behind < end and not lines[behind].strip() and (fenced or behind < at + 3):
        behind += 1
    if not fenced and behind > at and behind < end and _BULLET.match(lines[behind]):
        return hunk, at
    if behind < end and lines[behind].strip() and not _ends_hunk(lines, behind, end, fenced=fenced):
        return None
    return hunk, at


def _ends_hunk(lines: list[str], at: int, end: int, *, fenced: bool) -> bool:
    line = lines[at]
    if line.rstrip() == "--" or begins(lines, at, end) or line.startswith(("From ", "Only in ")):
        return True
    # In a fence a line without a mark is context that has lost it; outside it is prose.
    return not fenced and line[0] not in "+- \\"


def _take(hunk: DiffPart, line: str) -> bool:
    """Take one line by its mark; tell whether it had one."""
    mark = line[:1] or " "
    if mark == "\\":
        # No newline at the end: said of the line before, in the text that has that line.
        last = hunk.lines[-1][0] if hunk.lines else " "
        hunk.old_open = hunk.old_open or last != "+"
        hunk.new_open = hunk.new_open or last != "-"
        return True
    if mark not in " +-":
        return False
    hunk.take(mark, line[1:])
    hunk.old_open = hunk.old_open and mark == "+"
    hunk.new_open = hunk.new_open and mark == "-"
    return True


def _by_marks(
    lines: list[str], at: int, end: int, difference: FileDiff, *, fenced: bool
) -> tuple[DiffPart, int]:
    """Read lines as long as they have the marks of a hunk's."""
    hunk = DiffPart(at)
    while at < end and not begins(lines, at, end):
        line = lines[at]
        if not line.strip() and not fenced and not line:
            behind = lines[at + 1][:1] if at + 1 < end else ""
            if behind in ("+", "-", " ") and not begins(lines, at + 1, end):
                difference.fault = (
                    f"its end is not certain at line {at + 1}; put it in a fence (```diff), with"
                    " the blank lines that the file has and no others"
                )
            break
        if line.rstrip() == "--" and at + 1 < end and re.match(r"\d+\.\d+", lines[at + 1]):
            break
        if not _take(hunk, line):
            if not fenced:
                break
            # Context that has lost its blank; that it fits the file will prove it.
            hunk.take(" ", line)
        at += 1
    return hunk.without_trailing_blanks(), at


# --- what is asked for -----------------------------------------------------------------------------


def operation_of(
    difference: FileDiff, named: Name | None, files: Files
) -> tuple[CreateFile | EditFile | DeleteFile | MoveFile, tuple[str, ...]]:
    """Return the operation that a difference asks for, and notes on how it was read."""
    if difference.fault:
        raise OperationError(difference.fault)
    old, new = _sides(difference, files)
    if old is None and new is None:
        if named is None:
            raise OperationError("it names no file; write --- a/path and +++ b/path above it")
        old = new = named.only("--- a/path and +++ b/path")
    notes = _check_kind(difference, new or old or "", is_gone=new is None)
    if new is None:
        if any(hunk.new_count for hunk in difference.hunks):
            raise OperationError(
                f"it deletes '{paths.shown(old or '')}' and has lines that are to stay; begin each of its"
                " lines with -, or send the changes without the header of a deleted file"
            )
        return DeleteFile(paths.workspace_path(old or "")), notes
    if old is None:
        if not difference.hunks and not _makes_empty(difference):
            raise OperationError("it makes a new file and has none of its lines; send them")
        return hunks.creation_of(paths.workspace_path(new), difference.hunks), notes
    if old != new and not difference.hunks and difference.says("rename from ") is not None:
        return MoveFile(paths.workspace_path(old), paths.workspace_path(new)), notes
    if old != new:
        raise OperationError(renaming(old, new, edited=bool(difference.hunks)))
    path, note = files.existing(new)
    notes = (*notes, note) if note else notes
    first = difference.hunks[0] if len(difference.hunks) == 1 else None
    if path not in files and first is not None and first.new and not any(first.old):
        return hunks.creation_of(path, difference.hunks), notes
    if not difference.hunks:
        raise OperationError("it has no hunks; send them")
    return hunks.edit_of(path, difference.hunks), notes


def renaming(old: str, new: str, *, edited: bool) -> str:
    """Return what to send in place of a renaming."""
    move = f'[MOVE_FILE path="{paths.shown(old)}" to="{paths.shown(new)}"]'
    then = f', then [EDIT_FILE path="{paths.shown(new)}"] with the changes' if edited else ""
    return f"it renames '{paths.shown(old)}' to '{paths.shown(new)}'; send {move}{then}"


def _makes_empty(difference: FileDiff) -> bool:
    """Return whether nothing says that a new file has text: git names the bytes of an empty one so."""
    index = difference.says("index ")
    return index is None or ".." not in index or index.partition("..")[2].startswith("e69de29")


def _check_kind(difference: FileDiff, path: str, *, is_gone: bool) -> tuple[str, ...]:
    """Refuse what is no text, or only a mode; return a note on a mode that stays as it was."""
    shown = paths.shown(path)
    for trace, what in _NO_TEXT.items():
        if any(trace in mark for mark in difference.marks) and not (is_gone and "inary" in trace):
            raise OperationError(f"'{shown}' is {what}")
    changed, new = difference.says("new mode "), difference.says("new file mode ") or ""
    if changed is None and not new.endswith("755"):
        return ()
    change = (
        f"the mode of '{shown}', which only a command can do; send"
        f" [RUN_COMMAND]chmod {(changed or new)[-3:] or '644'} {shlex.quote(shown)}[/RUN_COMMAND]"
    )
    if changed is not None and not difference.hunks and difference.says("rename from ") is None:
        raise OperationError(f"it changes {change}")
    return (f"it also changes {change}",)


def _sides(difference: FileDiff, files: Files) -> tuple[str | None, str | None]:
    """Return the file's path before and after, None where there is no file then."""
    old, new = difference.old, difference.new
    renamed = difference.says("rename from "), difference.says("rename to ")
    if renamed[0] is not None and renamed[1] is not None:
        return diff_paths.path_of(renamed[0]), diff_paths.path_of(renamed[1])
    if old is None and new is None:
        if (both := diff_paths.git_sides(difference.git)) is None:
            index = difference.says("Index: ")
            return index, index
        old, new = both
    old_path, new_path = (None if side == _NOTHING else side for side in (old, new))
    is_git = difference.git.startswith(("a/", '"a/'))
    if old_path is not None and new_path is not None:
        old_path, new_path = diff_paths.unprefixed(old_path, new_path, files, is_git=is_git)
    elif new_path is not None:
        new_path = diff_paths.unprefixed_one(new_path, "b/", files, is_git=is_git)
    elif old_path is not None:
        old_path = diff_paths.unprefixed_one(old_path, "a/", files, is_git=is_git)
    old_path = old_path if difference.says("new file mode") is None else None
    new_path = new_path if difference.says("deleted file mode") is None else None
    if old_path is None and new_path is None:
        what = "it says that its file is new, and that it is deleted"
        raise OperationError(f"{what}; write one header")
    return old_path, new_path
