"""Specification 001, editFile: in order, the first occurrence, all or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing.apply import substitute
from codingagent.errors import OperationError
from codingagent.model.events import Hunk
from codingagent.model.operations import Substitution
from tests.rows import each_row

_TEXT = st.text("ab\r\n", max_size=30)


def test_only_the_first_occurrence_is_replaced() -> None:
    """Specification 001: if oldContent appears multiple times, only the first is replaced."""
    assert substitute([Substitution("x", "y")], "x x\nx").text == "y x\nx"


def test_each_works_on_what_the_one_before_has_left() -> None:
    """Specification 001: edits are applied in order."""
    both = [Substitution("a", "b"), Substitution("bb", "c")]
    assert substitute(both, "ab").text == "c"


def test_a_text_that_is_not_there_fails_all_of_them() -> None:
    """Specification 001: all edits must succeed; the fault names the one that did not."""
    with pytest.raises(OperationError, match=r"edits\[1\]\.oldContent not found: 'no\\nwhere'"):
        substitute([Substitution("a", "b"), Substitution("no\nwhere", "")], "a")


def test_an_empty_old_text_is_refused() -> None:
    """Design, operations and events: an empty oldContent fails when it is executed."""
    with pytest.raises(OperationError, match=r"edits\[0\]\.oldContent is empty"):
        substitute([Substitution("", "b")], "a")


def test_a_file_with_crlf_says_so() -> None:
    """A message says what to do instead."""
    with pytest.raises(OperationError, match=r"the file's lines end in \\r\\n"):
        substitute([Substitution("a\nb", "c")], "a\r\nb\r\n")


def test_work_without_end_is_refused() -> None:
    """A hundred thousand edits of a large file would take hours."""
    many = [Substitution("x", "x")] * 100_000
    with pytest.raises(OperationError, match="edits are too many"):
        substitute(many, "x" * 1_000_000)


@each_row(
    ("old", "new", "text", "hunk"),
    [
        ("b", "c", "a\nb\nd\n", Hunk(2, 1, 2, 1)),
        ("b\n", "", "a\nb\nd\n", Hunk(2, 1, 2, 0)),
        ("a", "a\nx\ny", "a\nb\n", Hunk(2, 0, 2, 2)),
        ("b", "bc", "a\nb", Hunk(2, 1, 2, 1)),
        ("a", "a", "a\n", None),
    ],
)
def test_its_hunk_is_the_lines_that_changed(old: str, new: str, text: str, hunk: Hunk | None) -> None:
    """The result shows the lines around the change."""
    found = substitute([Substitution(old, new)], text).hunks
    assert found == (() if hunk is None else (hunk,))


@given(_TEXT, st.lists(st.tuples(_TEXT.filter(bool), _TEXT), max_size=4))
def test_it_does_what_replacing_once_does(text: str, pairs: list[tuple[str, str]]) -> None:
    """A second opinion: str.replace with a count of one."""
    expected: str | None = text
    for old, new in pairs:
        expected = None if expected is None or old not in expected else expected.replace(old, new, 1)
    try:
        found = substitute([Substitution(*pair) for pair in pairs], text)
    except OperationError:
        assert expected is None
        return
    assert found.text == expected
    for hunk in found.hunks:
        assert 1 <= hunk.old_start <= text.count("\n") + 1
        assert 1 <= hunk.new_start <= found.text.count("\n") + 1
