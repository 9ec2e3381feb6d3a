"""Tell which lines of a file the chat has, so that they are not sent again."""

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

from msgspec import Struct

from codingagent.context.blocks import lines_of
from codingagent.editing.nearest import steps

# Shown around a change to lines that the chat has.
_FRAME_LINES = 3
_FEWEST_LINES = 5


class Held(Struct, frozen=True):
    """Lines of a file that the chat has, and those that changed under it, with three lines of frame."""

    lines: frozenset[int] = frozenset()
    changed: frozenset[int] = frozenset()

    def unseen(self, shown: Iterable[int], text: str) -> tuple[int, ...]:
        """Return which lines to show of those chosen; few alone are not worth their frame."""
        new, lines = sorted(self.changed.union(shown) - (self.lines - self.changed)), lines_of(text)
        is_much = sum(bool(lines[line - 1].strip()) for line in new) >= _FEWEST_LINES
        return tuple(new) if self.changed or is_much else ()


def held(old: str, new: str, lines: Collection[int], *, is_own: bool) -> Held:
    """Return what a chat that had `lines` of `old` has of `new`; `is_own`: the change was its own."""
    before, after = lines_of(old), lines_of(new)
    kept, changed, lines = set[int](), set[int](), frozenset(lines)
    for tag, i, i_end, j, j_end in steps(before, after):
        if tag == "equal":
            kept |= {j + line - i for line in range(i + 1, i_end + 1) if line in lines}
        elif lines.isdisjoint(range(i, i_end + 2)):
            continue
        elif is_own:
            kept |= {*range(j + 1, j_end + 1)}
        else:
            changed |= {*range(max(j + 1 - _FRAME_LINES, 1), min(j_end + _FRAME_LINES, len(after)) + 1)}
    return Held(frozenset(kept), frozenset(changed))


def spans(shown: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run of line numbers."""
    for _, run in groupby(enumerate(shown), key=lambda each: each[1] - each[0]):
        lines = [line for _, line in run]
        yield lines[0], lines[-1]
