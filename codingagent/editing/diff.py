"""What a change does to the bytes of a file, as a unified difference for people."""

import difflib
from collections.abc import Iterator

from msgspec import Struct

from codingagent.editing import nearest
from codingagent.model import encoding, patterns, plain_text

# Of a difference so many lines are shown; the rest is counted.
LINES_LIMIT = 200
# Larger files are not compared: the comparison would be slow, and too long to read.
BYTES_LIMIT = 400_000
# Lines before times lines after, where they differ at all: a reply could have lines compared for hours.
# What is more is shown as replaced in one piece.
_WORK_LIMIT = 1_000_000
# The lines that name the file come first.
_HEAD = 2
_HUNK = patterns.lazy_pattern(r"@@ -(\d+)(.*) \+(\d+)(.*) @@")


class Difference(Struct, frozen=True):
    """Lines of a unified difference, without the two that name the file, and how many came and went."""

    lines: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    instead: str = ""
    """What changed, in words, where no lines can be given; the numbers are 0 then."""

    def first(self, limit: int) -> tuple[str, ...]:
        """Return at most about so many lines; the last one then counts the rest."""
        lines = (self.instead,) if self.instead else self.lines
        left_out = len(lines) - limit
        # To say that one line is left out takes a line too.
        return lines if left_out <= 1 else (*lines[:limit], f"… {left_out} more lines")


def between(old: bytes, new: bytes, context: int = 3) -> Difference:
    """Return how two texts differ, with so many lines of context; in words if they are no text, or large."""
    if len(old) + len(new) > BYTES_LIMIT:
        return Difference(instead=f"{len(new)} bytes in place of {len(old)}")
    text = encoding.decode_file(old, neighbours=tuple)
    new_text = encoding.decode_file(new, lambda: text.codec if text and old else "", tuple)
    if text is None or new_text is None:
        return Difference(instead=f"{len(new)} bytes that are not text")
    both = plain_text.uniform(text.text, new_text.text)
    before, after = (each.removesuffix("\n").split("\n") if each else [] for each in both)
    lines = tuple(_unified(before, after, context))
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return Difference(lines, added, removed)


def _unified(before: list[str], after: list[str], context: int) -> Iterator[str]:
    """Yield a unified difference; only what is between equal beginnings and ends is compared."""
    head, tail = nearest.common_ends(before, after)
    changed = [each[head : len(each) - tail] for each in (before, after)]
    if not any(changed):
        return
    first = max(head - context, 0)
    lead, trail = before[first:head], before[len(before) - tail :][:context]
    if len(changed[0]) * len(changed[1]) > _WORK_LIMIT:
        old, new = (len(lead) + len(each) + len(trail) for each in changed)
        yield f"@@ -{first + 1},{old} +{first + 1},{new} @@"
        yield from (f" {line}" for line in lead)
        yield from (f"-{line}" for line in changed[0])
        yield from (f"+{line}" for line in changed[1])
        yield from (f" {line}" for line in trail)
        return
    old_part, new_part = ([*lead, *each, *trail] for each in changed)
    unified = difflib.unified_diff(old_part, new_part, lineterm="", n=context)
    for number, line in enumerate(unified):
        if number < _HEAD:
            continue
        hunk = _HUNK.fullmatch(line)
        if hunk is None:
            yield line
        else:
            old_at, new_at = (int(hunk[each]) + first for each in (1, 3))
            yield f"@@ -{old_at}{hunk[2]} +{new_at}{hunk[4]} @@"


def text_of(path: str, old: bytes, new: bytes | None) -> str:
    """Return a change as it is shown for approval; None for `new` deletes the file."""
    if new is None:
        return "the file is deleted"
    found = between(old, new)
    if not found.lines:
        return found.instead or "its lines stay as they are"
    # The two lines that name the file count.
    return "\n".join((f"--- {path}", f"+++ {path}", *found.first(LINES_LIMIT - _HEAD)))
