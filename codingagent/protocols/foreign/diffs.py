"""Read unified and git differences: the files they name, and their hunks, however badly counted.

How it works. A hunk is first read by the numbers in its header; if lines that change something go on
behind them, they are wrong, and it is read by the marks of its lines alone. What tools write between two
files is known by its words.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile

from msgspec import Struct, field

from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.operations import DiffHunk, FileEnd, FileOperation
from codingagent.model.patterns import lazy_pattern

_HUNK = lazy_pattern(
    r"@@(?:[ \t]+-(\d{1,9})(?:,(\d{1,9}))?[ \t]+\+(\d{1,9})(?:,(\d{1,9}))?[ \t]+@@.*|(?!@).*)"
)
_NUMBERS = lazy_pattern(r"-\d+(?:,\d+)?[ \t]+\+\d+(?:,\d+)?[ \t]*")
_EXTENDED = lazy_pattern(
    "index |old mode |new mode |deleted file mode|new file mode|similarity index|dissimilarity index"
    "|rename from |rename to |copy from |copy to |Binary files |GIT binary patch|====="
)
# What tools write between the hunks of two files, or of two commits: no line of a hunk.
_BETWEEN = lazy_pattern(
    "diff -|Property changes on: |=== [a-z]+ [a-z]+ '|-{20,}$|# HG changeset patch|changeset: +[0-9]+:"
    "|(?:From|commit) [0-9a-f]{5,64}\\b"
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
NO_FILE = "/dev/null"
Asked = tuple[Sequence[FileOperation], tuple[str, ...]]
"""Operations, each of which needs the one before, and notes on how they were read."""


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
            fact = f"the hunk at line {self.line} has no line of the old text, so its place is not certain"
            raise OperationError(fact, advice="; add the lines around it")
        end: FileEnd | None = "kept" if self.at_end or (self.old_open and self.new_open) else None
        if self.old_open != self.new_open:
            # It gives the last line of the file its end, or takes it.
            end = "open" if self.new_open else "ended"
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
        return both[0] if both[1] == NO_FILE else both[1]

    @property
    def is_new(self) -> bool:
        is_dated = self.absent[0] and not any(hunk.old for hunk in self.hunks)
        return self.old == NO_FILE or is_dated or self.says("new file mode") is not None

    @property
    def is_gone(self) -> bool:
        # Some disks and build tools date all files so: lines that stay prove that this one exists.
        is_dated = self.absent[1] and not any(hunk.new for hunk in self.hunks)
        return self.new == NO_FILE or is_dated or self.says("deleted file mode") is not None

    def says(self, what: str) -> str | None:
        """Return what follows such words in the lines above the hunks."""
        said = (mark[len(what) :].strip() for mark in self.marks if mark.startswith(what))
        return next(said, None)


def begins(lines: list[str], at: int, end: int) -> bool:
    """Return whether a difference begins at a line."""
    return (
        lines[at].startswith(("diff --git ", "Index: "))
        or _is_header(lines, at, end)
        or is_hunk_header(lines[at])
    )


def begins_below(lines: list[str], at: int, end: int) -> bool:
    """Return whether a difference begins at a line, or below what tools put above one."""
    is_above = _BETWEEN.match(lines[at]) is not None
    return begins(lines, at, end) or (is_above and any(begins(lines, i, end) for i in range(at, end)))


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
    unread = [each for each in found if not (each.hunks or each.fault)]
    if unread and not fenced:
        below = takewhile(lambda i: not (begins(lines, i, end) or lines[i][:3] == "```"), range(at, end))
        passed = [lines[i] for i in below]
    changes = any(one[:1] == "-" and other[:1] == "+" for one, other in pairwise(passed))
    kind = other_kind(passed) or changes * "a difference that names no file"
    if kind := kind or ("no unified diff" if any(passed) and not found else ""):
        fault = OperationError(f"it is {kind}", advice="; send a unified one, as diff -u writes it")
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
        kinds = (line.startswith("Index: "), line.startswith("diff --git "), _is_header(lines, at, end))
        kind = kinds.index(True) + 1 if any(kinds) else 0
        # CVS and IDEs write more lines below that of the index.
        is_below_index = last == 1 and line[:1] not in ("", "@", "+", "-", " ")
        if kind <= last and not (kind == 0 and (is_below_index or _EXTENDED.match(line))):
            break
        last = max(last, kind)
        if kind == 2:
            difference.git = line[len("diff --git ") :].strip()
        elif kind == 3:
            both = lines[at][4:].rstrip(), lines[at + 1][4:].rstrip()
            difference.old, difference.new = map(path_of, both)
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
        # A removed comment `-- x` looks like a header, too, but no other of that file and no hunk follow it.
        is_next = at < end and _is_header(lines, at, end) and lines[at + 1 : at + 3][-1][:2] == "@@"
        if is_next:
            names = {path_of(line[4:]).rpartition("/")[2] for line in lines[at : at + 2]}
            is_next = len(names - {"null"}) == 1
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


def path_of(text: str) -> str:
    """Return a path of a header without its date; git quotes bytes beyond ASCII in octal."""
    text = text.rstrip()
    name = paths.unquoted(text)
    return _TIMESTAMP.sub("", text).strip() if name == text else name
