"""What a change does to the bytes of a file, as a unified difference for people."""

import difflib
from collections.abc import Iterator

from msgspec import Struct

from codingagent.editing import nearest
from codingagent.model import encoding, plain_text

# Of a difference so many lines are shown; the rest is counted.
LINES_LIMIT = 200
# Larger files are not compared: the comparison would be slow, and too long to read.
BYTES_LIMIT = 400_000
# The lines that name the file come first.
_HEAD = 2


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
    compared = difflib.SequenceMatcher[str](None)
    # How it would compare them itself takes time that grows with the square.
    steps = [step for step in nearest.steps(before, after) if step[1] < step[2] or step[3] < step[4]]
    compared.opcodes = steps  # type: ignore[attr-defined]  # what it gives in groups
    for group in compared.get_grouped_opcodes(context) if steps else ():
        (_, start, _, new_start, _), (_, _, end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_span(start, end)} +{_span(new_start, new_end)} @@"
        for kind, start, end, new_start, new_end in group:
            if kind == "equal":
                yield from (f" {line}" for line in before[start:end])
                continue
            yield from (f"-{line}" for line in before[start:end])
            yield from (f"+{line}" for line in after[new_start:new_end])


def _span(start: int, end: int) -> str:
    """Return lines as the head of a hunk counts them: of none, the line above."""
    return str(end) if end - start == 1 else f"{start + (start < end)},{end - start}"


def text_of(path: str, old: bytes, new: bytes | None) -> str:
    """Return a change as it is shown for approval; None for `new` deletes the file."""
    if new is None:
        return "the file is deleted"
    found = between(old, new)
    if not found.lines:
        return found.instead or "its lines stay as they are"
    # The two lines that name the file count.
    return "\n".join((f"--- {path}", f"+++ {path}", *found.first(LINES_LIMIT - _HEAD)))
