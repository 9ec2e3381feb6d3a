"""A part of the table of damaged answers, and the rule by which a body can't be known."""

import pytest

from tests import damage_table
from tests.damage_table import ROWS, answers, is_unknowable
from tests.rows import each_row


@pytest.mark.long
def test_no_damaged_answer_becomes_a_file_that_was_not_meant() -> None:
    """Right, asked again, or a text that an author may have meant; the module itself runs all."""
    sample = [*ROWS[6::36], *(row for row in ROWS if row.name == "a byte-order mark per line")]
    cells = damage_table.run(sample, answers())
    assert len(cells) > 100
    assert [(c.row.name, c.answer.style, c.answer.file) for c in cells if c.came in ("wrong", "silent")] == []


@pytest.mark.deep
def test_of_the_answers_whose_text_can_be_known_nearly_all_are_right() -> None:
    """At least 90 of 100, and nothing is wrong or lost in silence."""
    cells = damage_table.run(ROWS, answers())
    assert {c.came for c in cells} == {"right", "as written", "can't be known", "asked again"}
    assert damage_table.share_right(cells) > 0.9


@each_row(
    ("damage", "style", "file", "expected"),
    [
        ("blank lines lost", "new", "README.md", True),
        ("no indentation in bodies", "new", "slugs.py", False),
        ("no-break hyphens", "new", "README.md", False),
        ("all of it 4 deep", "new", "README.md", False),
        ("bodies 4 deep", "lines around", "store.ts", False),
    ],
)
def test_what_can_not_be_known_is_judged_by_texts_alone(
    damage: str, style: str, file: str, *, expected: bool
) -> None:
    """A normal text of its kind, with no trace outside of it, and nothing on disk that shows the damage."""
    row = next(row for row in ROWS if row.name == damage)
    answer = next(each for each in answers() if (each.style, each.file) == (style, file))
    block = next(iter(damage_table.blocks(answer.parts)))
    assert is_unknowable(row, answer, block) is expected
