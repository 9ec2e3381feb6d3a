"""SEARCH/REPLACE blocks as aider has them, and conflict markers, which are the same with other names."""

import re
from dataclasses import dataclass

from codingagent.core.formats import elisions
from codingagent.core.formats.fences import dedented
from codingagent.core.formats.hunks import joined
from codingagent.core.formats.names import words
from codingagent.core.operations import Replacement
from codingagent.errors import OperationError

TAG = "SEARCH/REPLACE"

_OPEN = re.compile(r"[ \t]*(<{5,9})[ \t]*(SEARCH|ORIGINAL|HEAD|OLD|BEFORE)\b[:>]?[ \t]*(.*?)[ \t]*")
_MIDDLE = re.compile(r"[ \t]*(={5,9})[ \t]*")
_BASE = re.compile(r"[ \t]*(\|{5,9})(?: .*)?")
_CLOSE = re.compile(r"[ \t]*(>{5,9})(?:[ \t]*(\S.*?))?[ \t]*")
_CLOSERS = words("REPLACE REPLACED UPDATED UPDATE NEW AFTER MODIFIED")
_HOW = "send <<<<<<< SEARCH, the old lines, =======, the new lines, >>>>>>> REPLACE again"


@dataclass(frozen=True, slots=True)
class Conflict:
    """One block: the index of its opening and the one behind it, and what it asks for.

    `fault` says why it can't be read, or is empty. `name` is what the marker says behind its word.
    """

    start: int
    end: int
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    fault: str = ""
    name: str = ""
    is_git: bool = False

    def replacement(self) -> Replacement:
        """Gives the replacement that it asks for.

        Raises:
            OperationError: if it can't be read, or its new lines leave something out.
        """
        if self.fault:
            raise OperationError(self.fault)
        elided = elisions.added_elision(self.old, list(self.new))
        if elided is not None:
            raise OperationError(
                f"its new text has '{self.new[elided].strip()}', which stands for text that was left"
                " out; write that text"
            )
        return Replacement(joined(self.old), joined(self.new))


def begins(line: str) -> bool:
    """Tells whether a line opens a block."""
    return "<<<<<" in line[:200] and len(line) <= 300 and _OPEN.fullmatch(line) is not None


def read(lines: list[str], at: int, limit: int) -> Conflict:
    """Reads the block that opens at a line.

    Args:
        lines: the reply.
        at: the index of its opening.
        limit: the index of the next opening, or of the end: a block holds no other.
    """
    opened = _OPEN.fullmatch(lines[at])
    assert opened is not None, "a block begins here"
    length, word, name = len(opened[1]), opened[2], opened[3]
    is_git = word == "HEAD"
    closes = [i for i in range(at + 1, limit) if _is_close(lines[i], is_git=is_git)]
    if not closes:
        return Conflict(at, at + 1, fault=f"it has no >>>>>>> REPLACE; {_HOW}", name=name)
    close = closes[0]
    if not is_git:
        close = next((i for i in closes if _length(lines[i]) == length), close)
    middles = [i for i in range(at + 1, close) if _MIDDLE.fullmatch(lines[i])]
    if len(middles) > 1:
        middles = [i for i in middles if _length(lines[i]) == length]
    if len(middles) != 1:
        what = "more than one" if middles else "no"
        fault = f"it has {what} line {'=' * length} of its own; {_HOW}"
        return Conflict(at, close + 1, fault=fault, name=name)
    old = lines[at + 1 : middles[0]]
    base = next((i for i, line in enumerate(old) if _BASE.fullmatch(line)), None)
    if base is not None and is_git:
        old = old[:base]
    new = lines[middles[0] + 1 : close]
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    both = dedented([*old, *new], indent)
    old, new = both[: len(old)], both[len(old) :]
    return Conflict(at, close + 1, tuple(old), tuple(new), "", name, is_git)


def _is_close(line: str, *, is_git: bool) -> bool:
    if ">>>>>" not in line[:200] or len(line) > 300:
        return False
    closed = _CLOSE.fullmatch(line)
    if closed is None:
        return False
    word = (closed[2] or "").split(" ")[0].strip(":<>").upper()
    return is_git or word in _CLOSERS or not word


def _length(line: str) -> int:
    text = line.strip()
    return len(text) - len(text.lstrip(text[0]))
