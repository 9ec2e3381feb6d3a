"""Unified and git differences: which files they name, and their hunks, however badly counted.

How it works. A hunk is first read by the numbers in its header; if these don't end it at something
that can follow a hunk, they are wrong, and it is read by the marks of its lines alone.
"""

import re
import shlex
from dataclasses import dataclass, field

from codingagent.core import paths
from codingagent.core.formats import hunks
from codingagent.core.formats.hunks import Hunk
from codingagent.core.formats.names import Files, Name
from codingagent.core.operations import CreateFile, DeleteFile, EditFile
from codingagent.errors import OperationError

TAG = "DIFF"

_HUNK = re.compile(
    r"@@(?:[ \t]+-(\d{1,9})(?:,(\d{1,9}))?[ \t]+\+(\d{1,9})(?:,(\d{1,9}))?[ \t]+@@.*|(?!@).*)"
)
_EXTENDED = (
    "index ",
    "old mode ",
    "new mode ",
    "deleted file mode",
    "new file mode",
    "similarity index",
    "dissimilarity index",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "Binary files ",
    "GIT binary patch",
    "=====",
)
# What diff and git put behind a path: a tab, or a date.
_TIMESTAMP = re.compile(
    r"(?:\t.*|[ ]+(?:\d{4}-\d\d-\d\d|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ).*"
    r"|[ ]+\((?:original|modified|old|new|before|after|working copy|revision \d+)\))$"
)
_PATH = re.compile(r"/dev/null|[^\s]*[^\s.]\.[A-Za-z]\w*|[^\s]+/[^\s]+")
# A list below a difference that is in no fence. Hardly a line of code begins with one blank and a capital.
_BULLET = re.compile(r"[-+] (?:[A-Z][A-Za-z']* |`|\*\*)")
_OCTAL = re.compile(r"\\([0-7]{3}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_NOTHING = "/dev/null"
_BACKUPS = (".orig", ".old", ".bak")


@dataclass(slots=True)
class Difference:
    """What a difference says of one file; `line` is 1-based."""

    line: int
    old: str | None = None
    new: str | None = None
    git: str = ""
    marks: list[str] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)
    fault: str = ""

    def says(self, what: str) -> str | None:
        """Gives what follows such words in the lines above the hunks."""
        return next(
            (mark[len(what) :].strip() for mark in self.marks if mark.startswith(what)), None
        )


def begins(lines: list[str], at: int, end: int) -> bool:
    """Tells whether a difference begins at a line."""
    line = lines[at]
    if line.startswith(("diff --git ", "Index: ")):
        return True
    return _is_header(lines, at, end) or is_hunk_header(line)


def start(lines: list[str], at: int, end: int) -> int:
    """Gives where a difference begins below what `git format-patch` and `git show` put above it."""
    if not lines[at].startswith(("From ", "commit ")):
        return at
    return next((i for i in range(at, end) if lines[i].startswith("diff --git ")), at)


def is_hunk_header(line: str) -> bool:
    """Tells whether a line opens a hunk, with numbers or without."""
    return line.startswith("@@") and _HUNK.fullmatch(line.rstrip()) is not None


def read(lines: list[str], at: int, end: int, *, fenced: bool) -> tuple[list[Difference], int]:
    """Reads the differences from a line on.

    Args:
        lines: the reply.
        at: where the first one begins.
        end: the index behind the last line that may belong to them.
        fenced: all lines up to there do.

    Returns:
        What each says, and the index behind the last.
    """
    found: list[Difference] = []
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
        difference = Difference(at + 1)
        found.append(difference)
        at = _read_header(lines, at, end, difference)
        if at < end and not begins(lines, at, end) and lines[at][:1] in ("+", "-", " ", "\\"):
            at = _read_hunks(lines, at, end, difference, fenced=fenced)
    return found, at


def _opened(found: list[Difference], at: int) -> Difference:
    if not found:
        found.append(Difference(at + 1))
    return found[-1]


def _begins_behind(lines: list[str], at: int, end: int) -> bool:
    """Tells whether only blank lines part a bare difference from its next part; looks at one or two."""
    behind = next((i for i in range(at, min(at + 3, end)) if lines[i].strip()), None)
    return behind is not None and begins(lines, behind, end)


def _is_header(lines: list[str], at: int, end: int) -> bool:
    if not lines[at].startswith("--- ") or at + 1 >= end or not lines[at + 1].startswith("+++ "):
        return False
    behind = lines[at + 2] if at + 2 < end else ""
    return behind.startswith("@@") or not lines[at + 1][4:].strip().count(" ")


def _is_next_file(lines: list[str], at: int, end: int) -> bool:
    if not lines[at].startswith("--- ") or not _is_header(lines, at, end):
        return False
    sides = (_path_of(lines[at][4:]), _path_of(lines[at + 1][4:]))
    return lines[min(at + 2, end - 1)].startswith("@@") and all(map(_PATH.fullmatch, sides))


def _read_header(lines: list[str], at: int, end: int, difference: Difference) -> int:
    line = lines[at]
    if line.startswith("diff --git "):
        difference.git = line[len("diff --git ") :].strip()
        at += 1
    while at < end and lines[at].startswith(("Index: ", *_EXTENDED)):
        difference.marks.append(lines[at].rstrip())
        at += 1
    if at < end and _is_header(lines, at, end):
        difference.old = _path_of(lines[at][4:])
        difference.new = _path_of(lines[at + 1][4:])
        at += 2
    return at


def _path_of(text: str) -> str:
    text = text.rstrip()
    if text.startswith('"') and (close := text.rfind('"')) > 0:
        return _unquoted(text[1:close])
    return _TIMESTAMP.sub("", text).strip()


def _unquoted(text: str) -> str:
    """Gives a path that git has quoted: bytes beyond ASCII stand there in octal."""

    def byte(found: re.Match[str]) -> str:
        said = found[1]
        return chr(int(said, 8) & 255) if len(said) == 3 else _ESCAPES.get(said, said)

    plain = _OCTAL.sub(byte, text)
    try:
        return plain.encode("latin-1").decode()
    except (UnicodeEncodeError, UnicodeDecodeError):
        return plain


# --- hunks -----------------------------------------------------------------------------------------


def _read_hunks(
    lines: list[str], at: int, end: int, difference: Difference, *, fenced: bool
) -> int:
    """Reads the hunks of one file; gives the index behind the last."""
    while at < end:
        first = at
        numbers: re.Match[str] | None = None
        if is_hunk_header(lines[at]):
            numbers = _HUNK.fullmatch(lines[at].rstrip())
            at += 1
        read_hunk = None
        if numbers is not None and numbers[1] is not None:
            read_hunk = _by_counts(lines, at, end, _counts(numbers), fenced=fenced)
        if read_hunk is None:
            read_hunk = _by_marks(lines, at, end, difference, fenced=fenced)
            if not fenced and numbers is not None and numbers[1] is not None:
                _check_not_cut(read_hunk, _counts(numbers), lines, difference)
        hunk, at = read_hunk
        hunk.line = first + 1
        if hunk.old or hunk.new:
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
    found: tuple[Hunk, int], counts: tuple[int, int], lines: list[str], difference: Difference
) -> None:
    """Doubts a hunk that ends with the answer though its header says more: it may be cut short."""
    (hunk, at), (old, new) = found, counts
    is_last = not any(line.strip() for line in lines[at:])
    if is_last and len(hunk.new) < new and (len(hunk.old) < old or old == 0):
        difference.fault = (
            f"it may be cut short: its last header tells of {new} lines, and {len(hunk.new)} arrived;"
            " send it again, in a fence (```diff)"
        )


def _counts(numbers: re.Match[str]) -> tuple[int, int]:
    return int(numbers[2] or "1"), int(numbers[4] or "1")


def _by_counts(
    lines: list[str], at: int, end: int, counts: tuple[int, int], *, fenced: bool
) -> tuple[Hunk, int] | None:
    """Reads as many lines as a header says; None if that can't be what it means."""
    hunk, (old, new) = Hunk(at), counts
    while len(hunk.old) < old or len(hunk.new) < new:
        # A removed comment `-- x` looks like a header too, but names no path.
        if at >= end or _is_next_file(lines, at, end) or not _take(hunk, lines[at]):
            return None
        if len(hunk.old) > old or len(hunk.new) > new:
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


def _take(hunk: Hunk, line: str) -> bool:
    """Takes one line by its mark; tells whether it had one."""
    mark = line[:1]
    if mark == "+":
        hunk.add(line[1:])
        hunk.new_open = False
    elif mark == "-":
        hunk.remove(line[1:])
        hunk.old_open = False
    elif mark in (" ", ""):
        hunk.keep(line[1:])
        hunk.old_open = hunk.new_open = False
    elif mark == "\\":
        _take_open_end(hunk)
    else:
        return False
    hunk.last = mark if mark != "\\" else hunk.last
    return True


def _take_open_end(hunk: Hunk) -> None:
    """`\\ No newline at end of file`: it is said of the line before, in the text that has that line."""
    if hunk.last in ("-", " ", ""):
        hunk.old_open = True
    if hunk.last in ("+", " ", ""):
        hunk.new_open = True


def _by_marks(
    lines: list[str], at: int, end: int, difference: Difference, *, fenced: bool
) -> tuple[Hunk, int]:
    """Reads lines as long as they have the marks of a hunk's."""
    hunk = Hunk(at)
    while at < end and not begins(lines, at, end):
        line = lines[at]
        if not line.strip() and not fenced and not line:
            behind = lines[at + 1][:1] if at + 1 < end else ""
            if behind in ("+", "-", " ") and not begins(lines, at + 1, end):
                difference.fault = (
                    f"its end is not certain at line {at + 1}; put it in a fence (```diff)"
                )
            break
        if line.rstrip() == "--" and at + 1 < end and re.match(r"\d+\.\d+", lines[at + 1]):
            break
        if not _take(hunk, line):
            if not fenced:
                break
            # Context that has lost its blank; that it fits the file will prove it.
            hunk.keep(line)
            hunk.last = " "
        at += 1
    return hunk.without_trailing_blanks(), at


# --- what is asked for -----------------------------------------------------------------------------


def operation_of(
    difference: Difference, named: Name | None, files: Files
) -> tuple[CreateFile | EditFile | DeleteFile, tuple[str, ...]]:
    """Gives the operation that a difference asks for, and notes on how it was read.

    Raises:
        OperationError: if it can't be told, or there is no operation for it.
    """
    if difference.fault:
        raise OperationError(difference.fault)
    old, new = _sides(difference, files)
    if old is None and new is None:
        if named is None:
            raise OperationError("it names no file; write --- a/path and +++ b/path above it")
        if len(named.texts) > 1:
            shown = " and ".join(map(paths.shown, named.texts[:3]))
            raise OperationError(f"{shown} stand above it; write --- a/path and +++ b/path")
        old = new = named.texts[0]
    _refuse_what_is_no_text(difference, new or old or "")
    if new is None:
        return DeleteFile(paths.workspace_path(old or "")), ()
    if old is None:
        return hunks.creation_of(paths.workspace_path(new), difference.hunks), ()
    if old != new:
        raise OperationError(renaming(old, new, edited=bool(difference.hunks)))
    path, note = files.existing(new)
    notes = (note,) if note else ()
    if path not in files and _only_adds(difference.hunks):
        return hunks.creation_of(path, difference.hunks), notes
    if not difference.hunks:
        raise OperationError("it has no hunks; send them")
    return hunks.edit_of(path, difference.hunks), notes


def renaming(old: str, new: str, *, edited: bool) -> str:
    """Says what to send in place of a renaming."""
    move = f"mv {shlex.quote(paths.shown(old))} {shlex.quote(paths.shown(new))}"
    then = f', then [EDIT_FILE path="{paths.shown(new)}"] with the changes' if edited else ""
    return (
        f"it renames '{paths.shown(old)}' to '{paths.shown(new)}', which only a command can do; send"
        f" [RUN_COMMAND]{move}[/RUN_COMMAND]{then}"
    )


def _only_adds(found: list[Hunk]) -> bool:
    return len(found) == 1 and bool(found[0].new) and not any(found[0].old)


def _refuse_what_is_no_text(difference: Difference, path: str) -> None:
    shown = paths.shown(path)
    if (source := difference.says("copy from ")) is not None:
        raise OperationError(f"it copies '{paths.shown(source)}'; send the new file whole")
    if any(mark.startswith(("Binary files ", "GIT binary")) for mark in difference.marks):
        raise OperationError(f"'{shown}' is binary; send it with encoding=\"base64\"")
    is_mode = difference.says("old mode ") is not None and difference.says("rename from ") is None
    if is_mode and not difference.hunks:
        mode = (difference.says("new mode ") or "644")[-3:]
        raise OperationError(
            f"it changes the mode of '{shown}', which only a command can do; send"
            f" [RUN_COMMAND]chmod {mode} {shlex.quote(shown)}[/RUN_COMMAND]"
        )


def _sides(difference: Difference, files: Files) -> tuple[str | None, str | None]:
    """Gives the file's path before and after, None where there is no file then."""
    old, new = difference.old, difference.new
    renamed = difference.says("rename from "), difference.says("rename to ")
    if renamed[0] is not None and renamed[1] is not None:
        return _path_of(renamed[0]), _path_of(renamed[1])
    if old is None and new is None:
        if (both := _git_sides(difference.git)) is None:
            index = difference.says("Index: ")
            return index, index
        old, new = both
    old_path = None if old == _NOTHING else old
    new_path = None if new == _NOTHING else new
    is_git = difference.git.startswith(("a/", '"a/'))
    if old_path is not None and new_path is not None:
        old_path, new_path = _unprefixed(old_path, new_path, files, is_git=is_git)
    elif new_path is not None:
        new_path = _unprefixed_one(new_path, "b/", files, is_git=is_git)
    elif old_path is not None:
        old_path = _unprefixed_one(old_path, "a/", files, is_git=is_git)
    if difference.says("new file mode") is not None:
        old_path = None
    if difference.says("deleted file mode") is not None:
        new_path = None
    return old_path, new_path


def _git_sides(text: str) -> tuple[str, str] | None:
    """Gives the paths of a `diff --git` line, which are the same but for their first letter."""
    quoted = re.fullmatch(r'"(.*)" "(.*)"', text)
    if quoted is not None:
        return _unquoted(quoted[1]), _unquoted(quoted[2])
    middle = len(text) // 2
    if len(text) % 2 and text[middle] == " " and text[:middle][2:] == text[middle + 1 :][2:]:
        return text[:middle], text[middle + 1 :]
    both = text.split(" ")
    return (both[0], both[1]) if len(both) == 2 else None


def _unprefixed_one(path: str, prefix: str, files: Files, *, is_git: bool) -> str:
    """Takes git's `a/` or `b/` off the path of a file that is new or deleted.

    Raises:
        OperationError: if there is such a folder, and nothing says that git wrote this.
    """
    if is_git or not path.startswith(prefix) or not files.has_folder(prefix[0]):
        return path.removeprefix(prefix)
    raise OperationError(
        f"'{paths.shown(path)}' may be in the folder {prefix} or not; write the line diff --git above it"
    )


def _unprefixed(old: str, new: str, files: Files, *, is_git: bool) -> tuple[str, str]:
    """Takes git's `a/` and `b/` off, or whatever folders stand for before and after.

    Raises:
        OperationError: if there are such folders.
    """
    if old.startswith("a/") and new.startswith("b/"):
        if not is_git and old in files and new in files:
            raise OperationError(
                f"'{paths.shown(old)}' and '{paths.shown(new)}' both exist; write one path above it"
            )
        return old[2:], new[2:]
    if old == new:
        if old[:2] in ("a/", "b/") and old not in files:
            return old[2:], new[2:]
        return old, new
    plain_old, plain_new = _without(old, "a/", files), _without(new, "b/", files)
    if plain_old == plain_new:
        return plain_old, plain_new
    for ending in _BACKUPS:
        if plain_old == plain_new + ending and plain_old not in files:
            return plain_new, plain_new
    before, after = old.partition("/")[2], new.partition("/")[2]
    if before and before == after and old not in files and new not in files:
        return after, after
    return plain_old, plain_new


def _without(path: str, prefix: str, files: Files) -> str:
    return path if path in files else path.removeprefix(prefix)
