"""Where hunks of a diff go in a file: one place that is certain, or what to send instead."""

import pytest

from codingagent.core import edits
from codingagent.core.operations import Diff, DiffHunk, FileEnd
from codingagent.errors import OperationError


def hunk(lines: str, old_start: int | None = None, section: str = "", **said: object) -> DiffHunk:
    """A hunk from its lines, each with its mark before it; counted if it has a number."""
    marked = tuple((line[:1] or " ", line[1:]) for line in lines.split("\n"))
    known = {"is_counted": old_start is not None, "is_verbatim": True, **said}
    sections = (section,) if section else ()
    return DiffHunk(marked, old_start, old_start, sections, **known)  # type: ignore[arg-type]


def after(text: str, *hunks: DiffHunk) -> str:
    return edits.apply(Diff(hunks), text).text


def refusal(text: str, *hunks: DiffHunk) -> str:
    with pytest.raises(OperationError) as fault:
        edits.apply(Diff(hunks), text)
    return fault.value.reason


# --- the end of the file ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("x\na\nx\n", FileEnd.KEPT, "x\na\ny\n"),
        ("x\na\nx", FileEnd.KEPT, "x\na\ny"),
        ("x\na\nx", FileEnd.ENDED, "x\na\ny\n"),
        ("x\na\nx\n", FileEnd.ENDED, "x\na\ny\n"),
        ("x\na\nx\n", FileEnd.OPEN, "x\na\ny"),
        ("x\r\na\r\nx", FileEnd.ENDED, "x\r\na\r\ny\r\n"),
        ("x\r\na\r\nx\r\n", FileEnd.OPEN, "x\r\na\r\ny"),
        ("x", FileEnd.ENDED, "y\n"),
    ],
)
def test_a_place_at_the_end_is_taken_and_ends_as_said(
    text: str, end: FileEnd, expected: str
) -> None:
    assert after(text, hunk("-x\n+y", end=end)) == expected


def test_a_place_at_the_end_must_be_there() -> None:
    assert "belongs at the end of the file" in refusal("x\na\n", hunk("-x\n+y", end=FileEnd.KEPT))
