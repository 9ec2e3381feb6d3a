"""Lines of a text, by their numbers."""

from typing import NamedTuple


class LineSpan(NamedTuple):
    """Lines of a file, from `first` to `last`, counted from 1."""

    first: int
    last: int


def lines_of(text: str) -> list[str]:
    """Return the lines of a text; a final line end begins no further line."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
