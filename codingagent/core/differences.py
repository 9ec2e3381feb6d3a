"""What a change does to the bytes of a file, as a unified difference for people."""

import difflib
from dataclasses import dataclass

# Of a difference so many lines are shown; the rest is counted.
LINES_LIMIT = 200

# Larger files are not compared: nobody would read it, and everybody would wait for it.
BYTES_LIMIT = 400_000

# The lines that name the file come first.
_HEAD = 2


@dataclass(frozen=True, slots=True)
class Difference:
    """Lines of a unified difference, without the two that name the file, and how many came and went.

    Where none can be given `instead` says in words what changed, and the numbers are 0.
    """

    lines: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    instead: str = ""

    def first(self, limit: int) -> tuple[str, ...]:
        """Gives at most about so many lines; the last one then counts the rest."""
        lines = (self.instead,) if self.instead else self.lines
        left_out = len(lines) - limit
        # To say that one line is left out takes a line too.
        return lines if left_out <= 1 else (*lines[:limit], f"… {left_out} more lines")


def between(old: bytes, new: bytes, context: int = 3) -> Difference:
    """Gives how two texts differ, with so many lines of context; in words if they are no text, or large."""
    if b"\0" in old or b"\0" in new:
        return Difference(instead=f"{len(new)} bytes that are not text")
    if len(old) + len(new) > BYTES_LIMIT:
        return Difference(instead=f"{len(new)} bytes in place of {len(old)}")
    before, after = (each.decode("utf-8", "replace").splitlines() for each in (old, new))
    unified = difflib.unified_diff(before, after, lineterm="", n=context)
    lines = tuple(unified)[_HEAD:]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return Difference(lines, added, removed)


def text_of(path: str, old: bytes, new: bytes | None) -> str:
    """Gives a change as it is shown for approval; None for `new` deletes the file."""
    if new is None:
        return "the file is deleted"
    found = between(old, new)
    if not found.lines:
        return found.instead or "its lines stay as they are"
    # The two lines that name the file count.
    return "\n".join((f"--- {path}", f"+++ {path}", *found.first(LINES_LIMIT - _HEAD)))
