"""The markers of edits and conflicts, however they are spelled."""

from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing import edit_markers
from codingagent.editing.edit_markers import MarkedEdit
from tests import golden
from tests.rows import each_row

SPELLINGS = (
    ("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"),
    ("<<<<<<< search", "=======", ">>>>>>> replace"),
    ("<<<<<<<SEARCH", "=======", ">>>>>>>REPLACE"),
    ("<<<<< SEARCH", "=======", ">>>>>>>>> REPLACE"),
    ("<<<< FIND", "====", ">>>> REPLACE"),
    ("<<<<<<< FIND", "=======", ">>>>>>> REPLACE"),
    ("<<<<<<< SEARCH:", "=======", ">>>>>>> REPLACE"),
    ("<<<<<<< ORIGINAL", "=======", ">>>>>>> UPDATED"),
    ("<<<<<<< original", "=======", ">>>>>>> updated"),
    ("<<<<<<< Current", "=======", ">>>>>>> Incoming"),
    ("<<<<<<< Current (src/a.py)", "=======", ">>>>>>> Incoming (src/a.py)"),
    ("<<<<<<< HEAD", "=======", ">>>>>>> topic/x"),
    ("<<<<<<< Updated upstream", "=======", ">>>>>>> Stashed changes"),
    ("<<<<<<<", "=======", ">>>>>>>"),
    ("<<<<", "====", ">>>>"),
    ("<<<<<<<<<", "=========", ">>>>>>>>>"),
    ("------- SEARCH", "=======", "+++++++ REPLACE"),
    ("----- search", "=====", "+++++ replace"),
    ("------- SEARCH>", "=======", "+++++++ REPLACE>"),
    ("  <<<<<<< SEARCH", "  =======  ", "  >>>>>>> REPLACE\t"),
)


def show(case: tuple[str, bool]) -> str:
    """Return the edits that are found in a text, which may be prose."""
    text, is_prose = case
    found = edit_markers.find_edits(text.split("\n"), is_prose=is_prose)
    return " · ".join(map(_shown, found)) or "nothing"


def _shown(edit: MarkedEdit) -> str:
    words = [f"{edit.start}-{edit.end} {edit.label!r}{' asks' * edit.asks}"]
    words += [repr(edit.old), repr(edit.new), *sorted(damage.value for damage in edit.way)]
    return ", ".join([*words, *([edit.fault] if edit.fault else [])])


TABLES: dict[str, golden.Show] = {"marked.txt": show}


@each_row(("case", "outcome"), golden.cases(__file__, "marked.txt"))
def test_what_edits_are_found_in_a_text(case: tuple[str, bool], outcome: str) -> None:
    """Edits that lack a marker are found too, and examples in documentation are none."""
    assert show(case) == outcome


def test_a_search_asks_for_an_edit_and_a_branch_does_not() -> None:
    """Alone it is a broken one, as is the end of an edit."""
    lines = ["<<<<<<< HEAD", "a", "<<<<<<< SEARCH", "b", ">>>>>>> REPLACE"]
    found = edit_markers.find_edits(lines[:3], has_strays=True)
    assert [(edit.start, edit.fault) for edit in found] == [(2, "it has no closing marker")]
    found = edit_markers.find_edits(lines[3:], has_strays=True)
    assert [(edit.start, edit.fault) for edit in found] == [(1, "it has no opening marker")]


@each_row("spelling", SPELLINGS)
def test_a_block_is_found_in_any_spelling(spelling: tuple[str, str, str]) -> None:
    """A chat's own markers, version control's, and those of other tools are the same thing."""
    opening, middle, closing = spelling
    lines = ["import os", opening, "a", "b", middle, "c", closing, "", opening, middle, closing]
    found = edit_markers.find_edits(lines)
    said = [(edit.start, edit.end, edit.old, edit.new, edit.fault) for edit in found]
    assert said == [(1, 7, ("a", "b"), ("c",), ""), (8, 11, (), (), "")]


@each_row(
    "text",
    [
        "",
        "Title\n=======\n\n>>>>>>> quoted seven times\n",
        "<<<<<<<<<< ten\na\n==========\nb\n>>>>>>>>>>\n",
        "<<< three\na\n===\nb\n>>>\n",
        "<<<<<<< topic\na\n=====\nb\n>>>>>>> other\n",
        "x = 1 <<<<<<< HEAD\n=======\n>>>>>>> x\n",
        "<<<<<<< HEAD\nonly an opening\n",
        "<<<<<<< x\n>>>>>>> y\n",
        "-------\nsearch\n=======\n+++++++ replace\n",
        "cat <<<< SEARCH\n",
        "-- SEARCH\n=======\n++ REPLACE\n",
    ],
)
def test_other_text_is_no_block(text: str) -> None:
    """Headings, quotes and what only begins like a marker is text."""
    assert not edit_markers.find_edits(text.split("\n"))


@given(
    st.lists(
        st.sampled_from(
            ["<<<<<<< SEARCH", "<<<<", "=======", "====", ">>>>>>> REPLACE", ">>>>", "a", "", "```"]
        )
    ),
    st.booleans(),
)
def test_blocks_are_in_order_and_apart(lines: list[str], is_prose: bool) -> None:
    """Whatever the lines, each block begins behind the one before, and reading never raises."""
    at = 0
    for found in edit_markers.find_edits(lines, is_prose=is_prose):
        assert at <= found.start < found.end <= len(lines)
        at = found.end
