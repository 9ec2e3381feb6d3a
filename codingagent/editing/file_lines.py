"""The lines of a file while edits are put into them, and what was found out about all of them.

How it works. An answer may hold thousands of edits of one file, and each is judged by the whole of it.
So the file is looked at once: where its lines are is kept up to date with each edit, and what its lines
are like is told of the file as it was before the first one.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import TypeVar

from codingagent.editing import file_kinds
from codingagent.editing.file_kinds import AS_CODE, TextState
from codingagent.errors import OperationError

T = TypeVar("T")
# Lines that are compared for one search; more are in a file of like lines alone.
_WORK_LIMIT = 5_000_000
# So many lines are parsed to judge the edits of one file: a second's worth. Of more no parser says anything.
_PARSED_LINES = 150_000


def split(text: str) -> list[str]:
    """Return the lines of a text, whether its last one is ended or not."""
    return text.split("\n")[:-1] if text.endswith("\n") or not text else text.split("\n")


class FileLines(list[str]):
    """Lines without their ends; only `put` changes them."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        super().__init__(lines)
        self._facts: dict[Hashable, object] = {}
        self._states: list[TextState] = []
        self._near = 0
        """Where something was found last: the next edit is likely to be below."""
        self._parsed = 0

    def put(self, start: int, end: int, new: Sequence[str]) -> None:
        """Put lines in the place of those from `start` to before `end`."""
        found = self.__dict__
        if "counts" in found:
            for line in self[start:end]:
                self.counts[line] -= 1
            self.counts.update(new)
        if "bare" in found:
            bare = [*map(str.strip, new)]
            self.bare_counts.subtract(self.bare[start:end])
            self.bare_counts.update(bare)
            self.bare[start:end] = bare
        del self._states[start + 1 :]
        self[start:end] = new

    def once(self, what: Hashable, work: Callable[["FileLines"], T]) -> T:
        """Return what some work says of the file, as it was when that was asked for first."""
        if what not in self._facts:
            self._facts[what] = work(self)
        found: T = self._facts[what]  # type: ignore[assignment]  # each name has one kind of work
        return found

    def has(self, mark: str | re.Pattern[str]) -> bool:
        """Return whether a line had such a mark, when that was asked for first."""
        if isinstance(mark, str):
            return self.once(mark, lambda lines: any(mark in line for line in lines))
        return self.once(mark, lambda lines: any(map(mark.search, lines)))

    # --- where lines are ---------------------------------------------------------------------------
    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(self)

    @cached_property
    def bare(self) -> list[str]:
        """The lines without blanks round them."""
        return [*map(str.strip, self)]

    @cached_property
    def bare_counts(self) -> Counter[str]:
        return Counter(self.bare)

    @property
    def indented(self) -> frozenset[str]:
        """The lines that are indented, without that."""
        return self.once(
            "indented",
            lambda lines: frozenset(b for a, b in zip(lines, lines.bare, strict=True) if b and a[0] != b[0]),
        )

    def places(self, search: Sequence[str], *, is_bare: bool = False) -> list[int]:
        """Return where lines are; with `is_bare` whatever blanks are round each, the search having none.

        OperationError if they are in too many places to look at each.
        """
        there, counts = (self.bare, self.bare_counts) if is_bare else (self, self.counts)
        wanted = [*search]
        each = [counts.get(line, 0) for line in wanted]
        rarest = each.index(count := min(each))
        if count * len(wanted) > _WORK_LIMIT:
            fact = f"each of its lines is in {count:,} places of the file or more"
            raise OperationError(fact, advice="; add a line that is nowhere else")
        found: list[int] = []
        at, near = -1, self._near if count == 1 else 0
        for _ in range(count):
            try:
                at = there.index(wanted[rarest], max(at + 1, near))
            except ValueError:  # above the last one, then
                at = there.index(wanted[rarest], 0, near)
            start = at - rarest
            if start >= 0 and there[start : start + len(wanted)] == wanted:
                found.append(start)
        self._near = max(at, 0)
        return found

    def starts(self, search: Sequence[str]) -> list[int]:
        """Return where lines are, whatever blanks are round each."""
        return self.places([*map(str.strip, search)], is_bare=True)

    # --- what is text in them ----------------------------------------------------------------------
    def state_before(self, index: int, path: str) -> TextState:
        """Return what is open where a line begins, in a file of that name."""
        states, step = self._states, file_kinds.stepper(path)
        if not states:
            states.append(AS_CODE)
        for line in islice(self, len(states) - 1, index):
            states.append(step(line, states[-1])[1])
        return states[index]

    def may_parse(self) -> bool:
        """Return whether all lines may be parsed once more to judge an edit."""
        self._parsed += len(self)
        return self._parsed <= _PARSED_LINES
