"""Read unified and git differences: the files they name, and their hunks, however badly counted.

How it works. A hunk is first read by the numbers in its header; if lines that change something go on
behind them, they are wrong, and it is read by the marks of its lines alone. What tools write between two
files is known by its words. The paths of a patch begin alike: what its edited files prove holds for all.
"""

import contextlib
import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile

from msgspec import Struct, field

from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.chat_damage import Arrival
from codingagent.model.operations import (
    CreateFile,
    DeleteFile,
    Diff,
    DiffHunk,
    EditFile,
    FileEnd,
    FileOperation,
    MoveFile,
)
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import Note, joined
from codingagent.protocols.foreign.file_names import Files, Name, ambiguous

_HUNK = lazy_pattern(
    r"@@(?:[ \t]+-(\d{1,9})(?:,(\d{1,9}))?[ \t]+\+(\d{1,9})(?:,(\d{1,9}))?[ \t]+@@.*|(?!@).*)"
)
_NUMBERS = lazy_pattern(r"-\d+(?:,\d+)?[ \t]+\+\d+(?:,\d+)?[ \t]*")
_EXTENDED = lazy_pattern(
    "index |old mode |new mode |deleted file mode|new file mode|similarity index|dissimilarity index"
    "|rename from |rename to |copy from |copy to |Binary files |GIT binary patch|====="
)
# What such lines above the hunks say of a file, and what to do with it.
_NO_TEXT = {
    "copy from ": ("a copy", "; send it whole"),
    " 160000": ("a submodule, which can't be changed here", "; leave it out"),
    " 120000": ("a symbolic link, which only a command can change", "; send [RUN_COMMAND]"),
    "Binary files ": ("binary", '; send it with [CREATE_FILE] and encoding="base64"'),
    "GIT binary": ("binary", '; send it with [CREATE_FILE] and encoding="base64"'),
}
# What tools write between the hunks of two files, or of two commits: no line of a hunk.
_BETWEEN = lazy_pattern(
    "diff -|Property changes on: |=== [a-z]+ [a-z]+ '|-{20,}$|# HG changeset patch|changeset: +[0-9]+:"
    "|(?:From|commit) [0-9a-f]{7,64}\\b"
)
# What they write of a file whose lines they don't show.
_NOT_SHOWN = lazy_pattern(
    "Only in .+: .|(?:Binary )?[Ff]iles? .+ (?:differ|has changed)$|=== (?:renamed|added|removed) [a-z]+ '"
)
# Other kinds of differences, which have no marks that a unified one has.
_OTHER_KINDS = {
    "a context diff": lazy_pattern(r"^\*{15}.*\n\*\*\* \d", re.MULTILINE),
    "a normal diff": lazy_pattern(r"^\d+(?:,\d+)?[acd]\d+(?:,\d+)?\n[<>] ", re.MULTILINE),
    "an ed script": lazy_pattern(r"\A\s*(?:[ad]\d+ \d+\n|\d+(?:,\d+)?(?:d\s|[ac]\n(?:.*\n)*?\.\s))"),
    "a word diff": lazy_pattern(
        r"\[-.{1,200}?-\]\{\+|(?<!\S)(?:\[-[^\]\n]{1,200}-\]|\{\+[^}\n]{1,200}\+\})(?!\S)"
    ),
    "a side-by-side diff": lazy_pattern(r"\t {2,}[|<>](?:\t|$)", re.MULTILINE),
    "a JSON Patch": lazy_pattern(
        r'\A\s*\[\s*\{(?=[^{}]*"op"\s*:\s*"(?:add|remove|replace|move|copy|test)")[^{}]*"path"\s*:\s*"(?:/|")'
    ),
}
# What diff and git put after a path: a tab, or a date.
_TIMESTAMP = lazy_pattern(r"(?:\t.*|[ ]+(?:\d{4}-\d\d-\d\d|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ).*)$")
# What is put there if there is no file: the beginning of time, in any zone, or words.
_ABSENT = lazy_pattern(
    r"[ \t](?:1970-01-01|1969-12-31) [\d:.]+|[ \t]Thu Jan +0?1 [\d:]+ 1970|\((?:nonexistent|revision 0)\)"
)
_NO_FILE = "/dev/null"
# How git names the bytes of an empty file.
_EMPTY = "..e69de29"
Asked = tuple[Sequence[FileOperation], tuple[str, ...]]
"""Operations, each of which needs the one before, and notes on how they were read."""
Heads = tuple[str, str]
"""What the paths of a patch begin with, before and after, beyond those in the workspace: `a/` and `b/`."""


class DiffPart(Struct):
    """Lines with their marks, from 1-based `line` of the answer on, and what is said of their place.

    `old_open` and `new_open` tell that the last of them is the file's last and has no line end;
    `at_end` that the last of them is the file's last.
    """

    line: int
    lines: list[tuple[str, str]] = field(default_factory=list)
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

    def take(self, line: str) -> bool:
        """Take one line by its mark; tell whether it had one."""
        mark = line[:1] or " "
        if line.startswith("\\ "):
            # No newline at the end: said of the line before, in the text that has that line.
            last = self.lines[-1][0] if self.lines else " "
            self.old_open = self.old_open or last != "+"
            self.new_open = self.new_open or last != "-"
            return True
        if mark not in " +-":
            return False
        self.lines.append((mark, line[1:]))
        self.old_open = self.old_open and mark == "+"
        self.new_open = self.new_open and mark == "-"
        return True

    def without_trailing_blanks(self) -> "DiffPart":
        """Take empty context off the end: it may as well be what parts the hunk from the next thing."""
        while self.lines and self.lines[-1] == (" ", ""):
            self.lines.pop()
        return self

    def as_said(self) -> DiffHunk:
        """Return the hunk of an edit; refuse one whose place nothing tells."""
        has_text = any(line.strip() for line in self.old)
        if not has_text and self.old_start != 0 and (not self.old or self.old_start is None):
            raise OperationError(
                f"the hunk at line {self.line} has no line of the old text, so its place is not certain",
                advice="; add the lines around it",
            )
        end = FileEnd.KEPT if self.at_end or (self.old_open and self.new_open) else None
        if self.old_open != self.new_open:
            # It gives the last line of the file its end, or takes it.
            end = FileEnd.OPEN if self.new_open else FileEnd.ENDED
        said = tuple(self.lines), self.old_start, self.new_start, self.sections
        return DiffHunk(*said, self.is_counted, self.is_verbatim, end)


class FileDiff(Struct):
    """The part of a difference or a patch that is about one file; `line` is 1-based.

    `old` and `new` are its paths as headers have them, `paths` those that are given plainly. `absent` tells
    what the dates beside its paths say: that there is no file before, or after.
    """

    line: int
    old: str | None = None
    new: str | None = None
    paths: tuple[str, str] | None = None
    git: str = ""
    marks: list[str] = field(default_factory=list)
    hunks: list[DiffPart] = field(default_factory=list)
    absent: tuple[bool, bool] = (False, False)
    fault: OperationError | None = None

    @property
    def path(self) -> str:
        """The path as it is given, for a subject; empty if none is."""
        both = self.paths or (self.old or "", self.new or "")
        return both[0] if both[1] == _NO_FILE else both[1]

    @property
    def is_new(self) -> bool:
        is_dated = self.absent[0] and not any(hunk.old for hunk in self.hunks)
        return self.old == _NO_FILE or is_dated or self.says("new file mode") is not None

    @property
    def is_gone(self) -> bool:
        # Some disks and build tools date all files so: lines that stay prove that this one exists.
        is_dated = self.absent[1] and not any(hunk.new for hunk in self.hunks)
        return self.new == _NO_FILE or is_dated or self.says("deleted file mode") is not None

    def says(self, what: str) -> str | None:
        """Return what follows such words in the lines above the hunks."""
        said = (mark[len(what) :].strip() for mark in self.marks if mark.startswith(what))
        return next(said, None)


def begins(lines: list[str], at: int, end: int) -> bool:
    """Return whether a difference begins at a line."""
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


def other_kind(lines: Iterable[str]) -> str:
    """Return which kind of difference lines are that is no unified one; empty: none."""
    text = "\n".join((*lines, ""))
    return next((kind for kind, pattern in _OTHER_KINDS.items() if pattern.search(text)), "")


def read(lines: list[str], at: int, end: int, *, fenced: bool) -> tuple[list[FileDiff], int]:
    """Read the differences from a line on, or all in a fence; return them, and the index after."""
    found: list[FileDiff] = []
    passed: list[str] = []
    start, first = at, next((i for i in range(at, end) if begins(lines, i, end)), end) if fenced else at
    # Marked lines without a header may be a hunk, but none of a list in what is above another header.
    is_bare = first == end and not other_kind(lines[at:end])
    while at < end:
        line = lines[at]
        is_marked = is_bare and not found and line[:1] in ("+", "-", " ") and line.strip()
        if is_marked or is_hunk_header(line):
            if not found:
                found.append(FileDiff(at + 1))
            at = _read_hunks(lines, at, end, found[-1], fenced=fenced)
        elif begins(lines, at, end):
            each = FileDiff(at + 1)
            at = _read_header(lines, at, end, each)
            if found and each.git and each.git == found[-1].git and found[-1].is_gone:
                found[-1].marks += each.marks  # it becomes another kind of file: both, or neither
            else:
                found.append(each)
            if at < end and not begins(lines, at, end) and lines[at][:1] in ("+", "-", " ", "\\"):
                at = _read_hunks(lines, at, end, found[-1], fenced=fenced)
        elif _NOT_SHOWN.match(line) and not (at + 1 < end and begins(lines, at + 1, end)):
            fact = f"'{paths.shown(line.strip()[:100])}' shows no lines of that file"
            fault = OperationError(fact, advice="; send it whole, or MOVE_FILE or DELETE_FILE")
            found.append(FileDiff(at + 1, fault=fault))
            at += 1
        elif fenced:
            passed.append(line)
            at += 1
        else:
            break
    changes = any(one[:1] == "-" and other[:1] == "+" for one, other in pairwise(passed))
    if kind := other_kind(passed) or changes * "a difference that names no file":
        fault = OperationError(f"it is {kind}", advice="; send a unified one, as diff -u writes it")
        unread = [each for each in found if not (each.hunks or each.fault)]
        for each in unread:
            each.fault = fault
        found += [] if unread else [FileDiff(start + 1, fault=fault)]
    return found, at


def _is_header(lines: list[str], at: int, end: int) -> bool:
    if not lines[at].startswith("--- ") or at + 1 >= end or not lines[at + 1].startswith("+++ "):
        return False
    behind = lines[at + 2] if at + 2 < end else ""
    return behind.startswith("@@") or not lines[at + 1][4:].strip().count(" ")


def _read_header(lines: list[str], at: int, end: int, difference: FileDiff) -> int:
    """Read the lines above the hunks of one file, each kind once, in the order in which tools write them."""
    last = 0
    while at < end:
        line = lines[at]
        kinds = (
            line.startswith("Index: "),
            line.startswith("diff --git "),
            _is_header(lines, at, end),
        )
        kind = kinds.index(True) + 1 if any(kinds) else 0
        if kind <= last and not (kind == 0 and _EXTENDED.match(line)):
            break
        last = max(last, kind)
        if kind == 2:
            difference.git = line[len("diff --git ") :].strip()
        elif kind == 3:
            both = lines[at][4:].rstrip(), lines[at + 1][4:].rstrip()
            difference.old, difference.new = map(_path_of, both)
            difference.absent = _ABSENT.search(both[0]) is not None, _ABSENT.search(both[1]) is not None
            at += 1
        else:
            difference.marks.append(line.rstrip())
        at += 1
    return at


# --- hunks -----------------------------------------------------------------------------------------
def _read_hunks(lines: list[str], at: int, end: int, difference: FileDiff, *, fenced: bool) -> int:
    """Read the hunks of one file; return the index after the last."""
    while at < end:
        first, numbers = at, _HUNK.fullmatch(lines[at].rstrip())
        counts = (int(numbers[2] or "1"), int(numbers[4] or "1")) if numbers and numbers[1] else None
        at += numbers is not None
        read_hunk = _by_counts(lines, at, end, counts, fenced=fenced) if counts else None
        if read_hunk is None:
            read_hunk = _by_marks(lines, at, end, difference, fenced=fenced)
        hunk, at = read_hunk
        if counts and not fenced and not hunk.is_counted:
            old, new = counts
            is_short = len(hunk.new) < new and (len(hunk.old) < old or old == 0)
            if is_short and not any(line.strip() for line in lines[at:]):
                difference.fault = OperationError(
                    f"it may be cut off: its last header announces {new} lines, and {len(hunk.new)} arrived",
                    advice="; send it again, in a fence (```diff)",
                )
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


def sections_of(header: str) -> tuple[str, ...]:
    """Return what a header names after its numbers: the function or the class that the hunk is in."""
    text = _NUMBERS.sub("", header.strip("@ \t")).strip("@ \t")
    return (text,) if re.search(r"\w", text) else ()


def _by_counts(
    lines: list[str], at: int, end: int, counts: tuple[int, int], *, fenced: bool
) -> tuple[DiffPart, int] | None:
    """Read as many lines as a header says; None if that can't be what it means."""
    hunk, (old, new) = DiffPart(at, is_counted=True), counts
    while old > 0 or new > 0:
        # A removed comment `-- x` looks like a header, too, but no other and no hunk follow it.
        is_next = at < end and _is_header(lines, at, end) and lines[at + 1 : at + 3][-1][:2] == "@@"
        if at >= end or is_next or not hunk.take(lines[at]):
            return None
        old -= lines[at][:1] in ("-", " ", "")
        new -= lines[at][:1] in ("+", " ", "")
        if old < 0 or new < 0:
            return None
        at += 1
    if at < end and lines[at].startswith("\\ "):
        hunk.take(lines[at])
        at += 1
    behind = at
    while behind < end and not lines[behind].strip() and (fenced or behind < at + 3):
        behind += 1
    if behind >= end or _is_between(lines, behind, end):
        return hunk, at
    rest = takewhile(lambda i: not _is_between(lines, i, end), range(behind, end if fenced else behind + 1))
    # Lines without a mark may be context that has lost it: if they change nothing, nothing is missing.
    is_more = lines[at][:1] in ("+", "-", " ", "\\") or any(lines[i][:1] in ("+", "-") for i in rest)
    if is_more or (not fenced and lines[behind][:1] in (" ", "\\")):
        return None
    hunk.is_counted = not fenced
    return hunk, at


def _is_between(lines: list[str], at: int, end: int) -> bool:
    """Return whether a line is of no hunk: a header, or what tools write between two files."""
    line = lines[at]
    if line.rstrip() == "--":  # what mail has below a text
        return at + 1 >= end or not lines[at + 1].strip() or re.match(r"\d+\.\d+", lines[at + 1]) is not None
    return begins(lines, at, end) or any(rule.match(line) for rule in (_BETWEEN, _NOT_SHOWN))


def _by_marks(
    lines: list[str], at: int, end: int, difference: FileDiff, *, fenced: bool
) -> tuple[DiffPart, int]:
    """Read lines as long as they have the marks of a hunk's."""
    hunk = DiffPart(at)
    while at < end and not _is_between(lines, at, end):
        line = lines[at]
        if fenced and not hunk.take(line):
            # Context that has lost its blank; that it fits the file will prove it.
            hunk.take(f" {line}")
        elif not fenced and (not line or not hunk.take(line)):
            behind = lines[at + 1][:1] if not line and at + 1 < end else ""
            is_marked = behind in ("+", "-", " ") and not begins(lines, at + 1, end)
            if line.startswith("\\") or (behind and is_marked):
                difference.fault = OperationError(
                    f"its end is not certain at line {at + 1}",
                    advice="; put it in a fence (```diff), with the blank lines that the file has and no"
                    " others",
                )
            break
        at += 1
    return hunk.without_trailing_blanks(), at


# --- what is asked for -----------------------------------------------------------------------------
def operations_of(difference: FileDiff, named: Name | None, files: Files, heads: Heads | None) -> Asked:
    """Return the operations that a difference asks for, and notes on how it was read."""
    if difference.fault:
        raise difference.fault
    old, new = _sides(difference, files, heads)
    if old is None or new is None:
        if named is None:
            raise OperationError("it names no file", advice="; write --- a/path and +++ b/path above it")
        old = new = named.only("--- a/path and +++ b/path")
    notes, hunks = _check_kind(difference, new), difference.hunks
    if difference.is_new and difference.is_gone:
        what = "it says that its file is new, and that it is deleted"
        raise OperationError(what, advice="; write one header")
    if difference.is_gone:
        if old not in files and (fits := files.fits(old)):
            raise ambiguous(old, fits)
        if any(hunk.new for hunk in hunks):
            raise OperationError(
                f"it deletes '{paths.shown(old)}' and has lines that are to stay",
                advice="; begin each of its"
                " lines with -, or send the changes without the header of a deleted file",
            )
        gone = tuple(text for hunk in hunks for text in hunk.old)
        return (DeleteFile(paths.workspace_path(old), gone if hunks else None),), notes
    if difference.is_new:
        if not (hunks or difference.paths) and _EMPTY not in (difference.says("index ") or ""):
            raise OperationError("it makes a new file and has none of its lines", advice="; send them")
        return (creation_of(paths.workspace_path(new), hunks),), notes
    if old != new:
        return _renaming(difference, old, new, files, notes)
    path, note = files.existing(new)
    notes = (*notes, note) if note else notes
    if path not in files and len(hunks) == 1 and hunks[0].new and not any(hunks[0].old):
        return (creation_of(path, hunks),), notes
    return (edit_of(path, hunks),), notes


def _renaming(difference: FileDiff, old: str, new: str, files: Files, notes: tuple[str, ...]) -> Asked:
    """Return an edit, and the move that needs it; refuse what can't be read, or is no certain move."""
    is_said = difference.paths is not None or difference.says("rename from ") is not None
    is_whole = difference.says("similarity index ") in (None, "100%") and difference.says("index ") is None
    is_whole = is_whole and difference.old is None
    is_done = new in files and old not in files
    if not is_said or (new in files and not is_done) or not (difference.hunks or is_whole):
        raise renaming(old, new, edited=not is_whole)
    old, new = paths.workspace_path(old), paths.workspace_path(new)
    edits = [edit_of(new if is_done else old, difference.hunks)] if difference.hunks else []
    if is_done:
        return edits, (*notes, f"'{paths.shown(old)}' is renamed already")
    return (*edits, MoveFile(old, new, is_after_edit=bool(edits))), notes


def edit_of(path: str, hunks: list[DiffPart]) -> EditFile:
    """Return the edit that hunks of one file ask for; refuse one without any."""
    if not hunks:
        raise OperationError("it has no hunks", advice="; send them")
    said = [hunk.as_said() for hunk in hunks if any(mark != " " for mark, _ in hunk.lines)]
    if not said:
        how = "begin the lines that go with - and those that come with +"
        raise OperationError("it changes nothing", advice=f"; {how}")
    return EditFile(path, Diff(tuple(said)))


def creation_of(path: str, hunks: list[DiffPart]) -> CreateFile:
    """Return the new file that one hunk of added lines makes; refuse other hunks."""
    if not hunks:
        return CreateFile(path, "", overwrite=False)
    if len(hunks) > 1:
        raise OperationError("a new file in several hunks", advice="; send it whole")
    hunk = hunks[0]
    if any(hunk.old):
        how = "begin each of its lines with +"
        raise OperationError("a new file with lines that are not added", advice=f"; {how}")
    # Empty lines that lost their "+": a new file has no other kind.
    text = "\n".join(hunk.new) if hunk.new_open else joined(hunk.new)
    is_exact = hunk.is_counted and hunk.is_verbatim
    arrival = None if is_exact else Arrival(in_code=hunk.is_verbatim)
    return CreateFile(path, text, overwrite=False, arrival=arrival)


def renaming(old: str, new: str, *, edited: bool) -> OperationError:
    """Return what to send in place of a renaming."""
    move = f'[MOVE_FILE path="{paths.shown(old)}" to="{paths.shown(new)}"]'
    then = f', then [EDIT_FILE path="{paths.shown(new)}"] with the changes' if edited else ""
    fact = f"it renames '{paths.shown(old)}' to '{paths.shown(new)}'"
    return OperationError(fact, advice=f"; send {move}{then}")


def _check_kind(difference: FileDiff, path: str) -> tuple[str, ...]:
    """Refuse what is no text, or only a mode; return a note on a mode that stays as it was."""
    shown = paths.shown(path)
    for trace, (what, how) in _NO_TEXT.items():
        if any(trace in mark for mark in difference.marks) and not (difference.is_gone and "inary" in trace):
            raise OperationError(f"'{shown}' is {what}", advice=how)
    changed, new = difference.says("new mode "), difference.says("new file mode ") or ""
    if changed is None and not new.endswith("755"):
        return ()
    change = f"the mode of '{shown}', which only a command can do"
    command = f"chmod {(changed or new)[-3:] or '644'} {shlex.quote(shown)}"
    how = f"; send [RUN_COMMAND]{command}[/RUN_COMMAND]"
    if changed is not None and not difference.hunks and difference.says("rename from ") is None:
        raise OperationError(f"it changes {change}", advice=how)
    return (Note(f"it also changes {change}", how),)


# --- paths -----------------------------------------------------------------------------------------
def heads_of(differences: Iterable[FileDiff], files: Files) -> Heads | None:
    """Return what the paths of a patch begin with, as its edited files prove; None: nothing does."""
    found: set[Heads] = set()
    for each in differences:
        if each.old and each.new and _NO_FILE not in (each.old, each.new):
            with contextlib.suppress(OperationError):
                old, new = _unprefixed(each.old, each.new, files, is_git=bool(each.git))
                if old == new and each.old.endswith(old) and each.new.endswith(new):
                    found.add((each.old.removesuffix(old), each.new.removesuffix(new)))
    return found.pop() if len(found) == 1 else None


def _sides(difference: FileDiff, files: Files, heads: Heads | None) -> tuple[str | None, str | None]:
    """Return the file's path before and after, both the same for a file that is only then; None: not said."""
    if difference.paths is not None:
        return difference.paths
    renamed = difference.says("rename from "), difference.says("rename to ")
    if renamed[0] is not None and renamed[1] is not None:
        return _path_of(renamed[0]), _path_of(renamed[1])
    git = _git_sides(difference)
    old, new = (difference.old, difference.new) if difference.old and difference.new else git or ("", "")
    if old == new and old in ("", _NO_FILE):
        index = difference.says("Index: ")
        return index, index
    is_lone = difference.says("new file mode") is not None or difference.says("deleted file mode") is not None
    if _NO_FILE not in (old, new) and not (git and is_lone):
        if heads is not None and old.startswith(heads[0]) and new.startswith(heads[1]):
            return old.removeprefix(heads[0]), new.removeprefix(heads[1])
        return _unprefixed(old, new, files, is_git=git is not None)
    side, path = (0, old) if new == _NO_FILE else (1, new)
    head = heads[side] if heads is not None else ""
    if head and path.startswith(head):
        path = path.removeprefix(head)
    elif git and git[side] == path:
        path = _common_tail(*git) or path
    else:
        path = _unprefixed_one(path, ("a/", "b/")[side], files, is_bare=heads == ("", ""))
    return path, path


def _git_sides(difference: FileDiff) -> tuple[str, str] | None:
    """Return the two paths of a `diff --git` line: they may hold blanks, and nothing else parts them."""
    text, old, new = difference.git, difference.old or "", difference.new or ""
    if old == _NO_FILE and text.endswith(f" {new}"):
        return text.removesuffix(f" {new}"), new
    if new == _NO_FILE and text.startswith(f"{old} "):
        return old, text.removeprefix(f"{old} ")
    middle = len(text) // 2
    is_halved = len(text) % 2 and text[middle] == " "
    both = [text[:middle], text[middle + 1 :]] if is_halved else text.split(" ")
    return (_path_of(both[0]), _path_of(both[1])) if len(both) == 2 else None


def _common_tail(one: str, other: str) -> str:
    """Return the components that two paths have in common at their ends."""
    both = zip(reversed(one.split("/")), reversed(other.split("/")), strict=False)
    return "/".join(reversed([a for a, _ in takewhile(lambda pair: pair[0] == pair[1], both)]))


def _path_of(text: str) -> str:
    """Return a path of a header without its date; git quotes bytes beyond ASCII in octal."""
    text = text.rstrip()
    name = paths.unquoted(text)
    return _TIMESTAMP.sub("", text).strip() if name == text else name


def _unprefixed_one(path: str, prefix: str, files: Files, *, is_bare: bool) -> str:
    """Take git's `a/` or `b/` off one path; refuse it where a first folder may be meant, or not."""
    folder, _, rest = path.partition("/")
    is_prefixed = path.startswith(prefix)
    is_odd = not is_bare and not files.has_folder(folder) and files.has_folder(rest.partition("/")[0])
    if files.has_folder(folder) if is_prefixed else is_odd and "/" in rest:
        raise OperationError(
            f"'{paths.shown(path)}' may be in the folder {folder}/ or not",
            advice="; write the line diff --git above it",
        )
    return path.removeprefix(prefix)


def _unprefixed(old: str, new: str, files: Files, *, is_git: bool) -> tuple[str, str]:
    """Take git's `a/` and `b/` off, or whatever folders mean before and after; refuse what may be both."""
    (folder, _, before), (other, _, after) = old.partition("/"), new.partition("/")
    there = [side for side in (old, new) if side in files]
    if before and before == after and folder != other:
        if len(there) == 2 and not is_git:
            raise OperationError(
                f"'{paths.shown(old)}' and '{paths.shown(new)}' both exist",
                advice="; write one path above it",
            )
        if not there or (folder, other) == ("a", "b"):
            return before, after
    tail = _common_tail(old, new)
    if old != new and tail in files and not any(side in files for side in (old, new, before, after)):
        return tail, tail  # `--src-prefix=x/y/`, or two folders that `git diff --no-index` compares
    old, new = (side if side in files else re.sub("^[ab]/", "", side) for side in (old, new))
    # A copy beside the file, `a.py.orig`, is none of the workspace's.
    return (new, new) if old not in files and new in files else (old, new)
