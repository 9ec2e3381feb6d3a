"""The markers of edits and conflicts, however they are spelled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing import edit_markers
from codingagent.editing.edit_markers import MarkedEdit
from codingagent.model.chat_damage import Damage

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


@pytest.mark.parametrize("spelling", SPELLINGS, ids=" ".join)
def test_a_block_is_found_in_any_spelling(spelling: tuple[str, str, str]) -> None:
    """A chat's own markers, version control's, and those of other tools are the same thing."""
    opening, middle, closing = spelling
    lines = ["import os", opening, "a", "b", middle, "c", closing, "", opening, middle, closing]
    found = edit_markers.find_edits(lines)
    assert found == (MarkedEdit(1, 7, ("a", "b"), ("c",)), MarkedEdit(8, 11))
    assert edit_markers.first_outside(lines, found) == 0
    assert edit_markers.first_outside(lines[1:], edit_markers.find_edits(lines[1:])) is None
    assert edit_markers.has_edits("\n".join(lines))


@pytest.mark.parametrize(
    ("marks", "damage"),
    [
        (
            "&lt;&lt;&lt;&lt;&lt;&lt;&lt; SEARCH|=======|&gt;&gt;&gt;&gt;&gt;&gt;&gt; REPLACE",
            "ANGLES",
        ),
        ("&#60;&#60;&#60;&#60;&#60; HEAD|=====|&#62;&#62;&#62;&#62;&#62; x", "ANGLES"),
        ("<<<<<<< SEARCH|=======|&gt;&gt;&gt;&gt;&gt;&gt;&gt; REPLACE", "ANGLES"),
        (r"\<\<\<\<\<\<\< SEARCH|\=======|\>\>\>\>\>\>\> REPLACE", "ESCAPES"),
        (r"<<<<<<< SEARCH|\=======|\>>>>>>> REPLACE", "ESCAPES"),
    ],
)
def test_markers_that_a_chat_has_changed_are_markers(marks: str, damage: str) -> None:
    """The text between them is given as it came, and what they have suffered is said."""
    opening, middle, closing = marks.split("|")
    (found,) = edit_markers.find_edits([opening, "a &lt; b", middle, r"a \< c", closing])
    assert (found.old, found.new, found.fault) == (("a &lt; b",), (r"a \< c",), "")
    assert found.way == {Damage[damage]}


def test_what_the_opening_says_is_kept() -> None:
    """A path may stand behind its word; version control names a branch there."""
    edits = edit_markers.find_edits(
        [
            "<<<<<<< SEARCH src/a.py",
            "=======",
            ">>>>>>> REPLACE",
            "<<<<<<< HEAD",
            "=======",
            ">>>>>>> b",
        ]
    )
    assert [(e.label, e.asks) for e in edits] == [("SEARCH src/a.py", True), ("HEAD", False)]
    assert edit_markers.asks("<<<<<<< SEARCH")
    assert not edit_markers.asks("<<<<<<< HEAD")


@pytest.mark.parametrize(
    ("new", "kept"),
    [
        (["x = 1  # long enough", "======="], ["x = 1  # long enough"]),
        (["    x", "======="], ["    x"]),
        (["}", "======="], ["}"]),
        (["======="], []),
        (["x = 1  # long enough", "=======", ""], ["x = 1  # long enough"]),
        (["x", "=====", "y"], ["x", "=====", "y"]),
    ],
)
def test_a_middle_marker_written_twice_ends_the_new_lines(new: list[str], kept: list[str]) -> None:
    """Models repeat it before the closing marker; it is no line of a program."""
    lines = ["<<<<<<< SEARCH", "a", "=======", *new, ">>>>>>> REPLACE"]
    (found,) = edit_markers.find_edits(lines)
    assert (found.old, found.new, found.fault) == (("a",), tuple(kept), "")


@pytest.mark.parametrize("new", [["Title", "======="], ["=======", "x"]])
def test_a_middle_marker_that_may_be_text_is_a_fault(new: list[str]) -> None:
    """It may underline a heading; who means that writes longer markers."""
    lines = ["<<<<<<< SEARCH", "a", "=======", *new, ">>>>>>> REPLACE"]
    (found,) = edit_markers.find_edits(lines)
    assert "more than one" in found.fault


def test_the_common_ancestor_of_a_conflict_is_on_no_side() -> None:
    """Version control may write three versions; the middle one is neither."""
    lines = ["<<<<<<< ours", "a", "||||||| base", "b", "=======", "c", ">>>>>>> theirs"]
    assert edit_markers.find_edits(lines) == (MarkedEdit(0, 7, ("a",), ("c",)),)


@pytest.mark.parametrize(
    "lines",
    [
        ["<<<<<<< SEARCH", "a", "=======", "b"],
        ["<<<<<<< SEARCH", "a", ">>>>>>> REPLACE"],
        ["<<<<<<< SEARCH", "a", "=======", "=======", "b", ">>>>>>> REPLACE"],
        ["&lt;&lt;&lt;&lt;&lt; SEARCH", "a", "&gt;&gt;&gt;&gt;&gt; REPLACE"],
        ["------- SEARCH", "a", "=======", "b"],
    ],
)
def test_a_block_that_lacks_a_marker_is_found_by_its_word(lines: list[str]) -> None:
    """It is an edit, if a broken one, and no text of a file."""
    (found,) = edit_markers.find_edits(lines)
    assert found.fault
    assert (found.old, found.new) == ((), ())


@pytest.mark.parametrize(
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
    assert not edit_markers.has_edits(text)


def test_examples_in_documentation_are_no_blocks() -> None:
    """What is fenced or indented there is shown, not asked for; in a program nothing is."""
    block = ["<<<<<<< SEARCH", "a", "=======", "b", ">>>>>>> REPLACE"]
    fenced = [
        "# How",
        "````text",
        "```",
        *block,
        "```",
        "````",
        "",
        *(f"    {line}" for line in block),
    ]
    assert edit_markers.find_edits(fenced, is_prose=True) == ()
    assert len(edit_markers.find_edits(fenced)) == 2
    assert len(edit_markers.find_edits([*fenced, *block], is_prose=True)) == 1


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
