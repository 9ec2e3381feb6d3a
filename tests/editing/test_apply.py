"""How an edit changes a text: specification 003, EDIT_FILE, and Design, tag blocks."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing import apply, blank_lines, file_kinds, syntax_check
from codingagent.editing.apply import Edited
from codingagent.errors import OperationError
from codingagent.model import encoding
from codingagent.model.events import Hunk
from codingagent.model.operations import LineRange, Replacement
from tests.helpers import calls_of, cpu_below


def replaced(text: str, *pairs: tuple[str, str]) -> Edited:
    return apply.apply(tuple(Replacement(search, replace) for search, replace in pairs), text)


def refused(text: str, *pairs: tuple[str, str]) -> OperationError:
    with pytest.raises(OperationError) as caught:
        replaced(text, *pairs)
    return caught.value


def unreadable(body: str) -> str:
    with pytest.raises(OperationError) as caught:
        apply.read_replacements(body)
    return caught.value.reason


# --- reading the body ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", [("a\n", "b\n")]),
        ("<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n", [("", "")]),
        ("<<<<<<< SEARCH\na\n\n  b\n=======\n>>>>>>> REPLACE\n", [("a\n\n  b\n", "")]),
        (
            (
                "\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n\n  \n"
                "<<<<<<< SEARCH\nc\n=======\nd\n>>>>>>> REPLACE\n\n"
            ),
            [("a\n", "b\n"), ("c\n", "d\n")],
        ),
        ("<<<<<<< SEARCH  \na\n======= \nb\n>>>>>>> REPLACE\t\n", [("a\n", "b\n")]),
        ("<<<<<<< SEARCH\na\n=======\n  b\n=======\n>>>>>>> REPLACE\n", [("a\n", "  b\n")]),
        (
            "<<<<<<<< SEARCH\n<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n========\nb\n>>>>>>>> REPLACE\n",
            [("<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n", "b\n")],
        ),
        (
            "<<<<<<< SEARCH\n======\n========\n=======\n>>>>>> REPLACE\n REPLACE\n>>>>>>> REPLACE",
            [("======\n========\n", ">>>>>> REPLACE\n REPLACE\n")],
        ),
        (
            "<<<<<<< SEARCH\n =======\n=======\n  >>>>>>> REPLACE\n>>>>>>> REPLACE\n",
            [(" =======\n", "  >>>>>>> REPLACE\n")],
        ),
    ],
)
def test_search_and_replace_blocks_are_read_in_order(
    body: str, expected: list[tuple[str, str]]
) -> None:
    """Design, tag blocks: one or more blocks; where body lines equal a marker, all three are longer."""
    assert apply.read_replacements(body) == tuple(Replacement(*pair) for pair in expected)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "No SEARCH/REPLACE and no line numbers; "),
        ("x\n", "Line 1 of the body is outside of SEARCH/REPLACE; "),
        (
            "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\nx\n",
            "Line 6 of the body is outside of SEARCH/REPLACE; ",
        ),
        (
            "<<<<<<< SEARCH\na\n=======\nb\n",
            "SEARCH at line 1 of the body has no >>>>>>> REPLACE; ",
        ),
        (
            "<<<<<<< SEARCH\na\n=======\n<<<<<<< SEARCH\nb\n=======\n>>>>>>> REPLACE\n",
            "SEARCH at line 1 of the body has no >>>>>>> REPLACE; ",
        ),
        (
            "<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n",
            "SEARCH at line 1 of the body has no line =======; ",
        ),
        (
            "<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE\n",
            "SEARCH at line 1 of the body has more than one line =======; ",
        ),
        (
            "<<<<<<<< SEARCH\na\n=======\nb\n>>>>>>>> REPLACE\n",
            "SEARCH at line 1 of the body has no line ========; ",
        ),
        (
            "<<<<<<<< SEARCH\na\n========\nb\n>>>>>>> REPLACE\n",
            "SEARCH at line 1 of the body has no >>>>>>> REPLACE; ",
        ),
        ("<<<<<< SEARCH\na\n======\nb\n>>>>>> REPLACE\n", "Line 1 of the body is outside"),
        ("<<<<<<< ORIGINAL\na\n=======\nb\n>>>>>>> UPDATED\n", "Line 1 of the body is outside"),
        (">>>>>>> REPLACE\n", "Line 1 of the body is outside"),
        (
            "<<<<<<< SEARCH\na\n=======\n:start_line:2\n-------\nb\n>>>>>>> REPLACE\n",
            "SEARCH at line 1 of the body, or its REPLACE, begins with the number of a line",
        ),
    ],
)
def test_markers_out_of_place_are_refused(body: str, reason: str) -> None:
    """Design, tag blocks: never a guess where SEARCH ends and REPLACE begins."""
    assert unreadable(body).startswith(reason)


def test_the_refusal_shows_how_to_write_it() -> None:
    """Design, tag blocks: a problem says what to write instead."""
    assert unreadable("x\n") == (
        "Line 1 of the body is outside of SEARCH/REPLACE; write <<<<<<< SEARCH, the lines as they are"
        " in the file, =======, the new lines, >>>>>>> REPLACE"
    )
    assert unreadable("<<<<<<< SEARCH\n=======\n=======\n>>>>>>> REPLACE\n").endswith(
        "; if the text itself holds such a line, make all three markers longer, of equal length"
    )


@given(
    st.lists(
        st.tuples(
            *[
                st.lists(
                    st.sampled_from(
                        [
                            "",
                            "a",
                            "  b",
                            "=======",
                            "<<<<<<< SEARCH",
                            ">>>>>>> REPLACE",
                            "========",
                            "<<<<<<<< SEARCH",
                        ]
                    )
                )
            ]
            * 2
        ),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_written_with_longer_markers_is_what_is_read(
    blocks: list[tuple[list[str], list[str]]],
) -> None:
    """Design, tag blocks: all three markers are longer, of equal length."""
    pairs = [
        ("".join(f"{line}\n" for line in a), "".join(f"{line}\n" for line in b)) for a, b in blocks
    ]
    n = 9
    body = "".join(f"{'<' * n} SEARCH\n{a}{'=' * n}\n{b}{'>' * n} REPLACE\n" for a, b in pairs)
    assert apply.read_replacements(body) == tuple(Replacement(*pair) for pair in pairs)


@given(
    st.lists(
        st.sampled_from(
            ["<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "a", "", "<<<<<<<< SEARCH"]
        )
    ).map("\n".join)
)
def test_reading_markers_gives_blocks_or_one_line_of_refusal(body: str) -> None:
    """Specification 003, design goals: malformed commands produce error results rather than crashes."""
    try:
        assert apply.read_replacements(body)
    except OperationError as fault:
        assert fault.reason.isprintable()


# --- line ranges -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "new", "expected"),
    [
        (1, 1, "x\n", "x\nb\nc\n"),
        (2, 3, "x\n", "a\nx\n"),
        (2, 2, "x\ny\nz\n", "a\nx\ny\nz\nc\n"),
        (1, 3, "", ""),
        (2, 2, "", "a\nc\n"),
        (2, 2, "\n", "a\n\nc\n"),
        (2, 2, "b", "a\nb\nc\n"),
    ],
)
def test_a_range_of_lines_is_replaced(start: int, end: int, new: str, expected: str) -> None:
    """Specification 003, EDIT_FILE: removes lines start to end, inserts the replacement, of any length."""
    edited = apply.apply(LineRange(start, end, new), "a\nb\nc\n")
    assert edited.text == expected
    assert edited.hunks == (Hunk(start, end - start + 1, start, new.count("\n") or len(new)),)


@pytest.mark.parametrize(
    ("text", "start", "end", "total"),
    [
        ("a\nb\n", 1, 3, "2 lines"),
        ("a\nb\n", 3, 3, "2 lines"),
        ("a", 2, 2, "1 line"),
        ("\n", 2, 9, "1 line"),
    ],
)
def test_a_range_beyond_the_file_is_refused(text: str, start: int, end: int, total: str) -> None:
    """Specification 003, execution errors: invalid line range. The answer says how many lines there are."""
    with pytest.raises(OperationError) as caught:
        apply.apply(LineRange(start, end, "x\n"), text)
    assert caught.value.reason == (
        f"Invalid line range {start}-{end}: the file has {total}; use SEARCH/REPLACE, or read the file first"
    )


def test_a_range_beyond_the_file_shows_the_true_lines() -> None:
    """Design, the outbox: when an edit fails, the next outbox carries the true lines without being asked."""
    with pytest.raises(OperationError) as caught:
        apply.apply(LineRange(3, 4, "x\n"), "alpha\nbeta\n")
    assert "2 | beta" in caught.value.detail


# --- line ends -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "start", "end", "new", "expected"),
    [
        ("a\r\nb\r\nc\r\n", 2, 2, "x\ny\n", "a\r\nx\r\ny\r\nc\r\n"),
        ("a\r\nb\nc\r\n", 2, 2, "x\ny\n", "a\r\nx\ny\nc\r\n"),
        ("a\nb\r\nc\n", 2, 2, "x\ny\n", "a\nx\r\ny\r\nc\n"),
        ("a\nb", 2, 2, "x\ny\n", "a\nx\ny"),
        ("a\r\nb", 2, 2, "x\ny\n", "a\r\nx\r\ny"),
        ("a\r\nb\r\nc", 2, 2, "x\n", "a\r\nx\r\nc"),
        ("a", 1, 1, "x\ny\n", "x\ny"),
        ("a\nb", 2, 2, "", "a"),
        ("a\r\nb", 2, 2, "", "a"),
        ("a", 1, 1, "", ""),
        ("a\r\n", 1, 1, "x\n", "x\r\n"),
        ("a\x0cb\u2028c\x85d\ne\n", 2, 2, "x\n", "a\x0cb\u2028c\x85d\nx\n"),
        ("a\rb\nc\n", 2, 2, "x\n", "a\rb\nx\n"),
    ],
)
def test_the_files_own_line_ends_are_kept(
    text: str, start: int, end: int, new: str, expected: str
) -> None:
    """Design, tag blocks: EDIT_FILE keeps the file's line ends and whether its last line is ended."""
    assert apply.apply(LineRange(start, end, new), text).text == expected


@given(st.data())
def test_lines_outside_of_the_range_are_untouched(data: st.DataObject) -> None:
    """Design, tag blocks: bytes outside the edited lines are untouched, in any mixture of line ends."""
    contents = data.draw(
        st.lists(
            st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=5),
            min_size=1,
            max_size=8,
        )
    )
    ends = data.draw(
        st.lists(st.sampled_from(["\n", "\r\n"]), min_size=len(contents), max_size=len(contents))
    )
    lines = [content + end for content, end in zip(contents, ends, strict=True)]
    # An empty line without an end is no line: such a text can't be written down.
    ended = data.draw(st.booleans()) or not all(contents)
    if not ended:
        lines[-1] = contents[-1]
    start = data.draw(st.integers(1, len(lines)))
    end = data.draw(st.integers(start, len(lines)))
    new = data.draw(st.lists(st.sampled_from(["x", "", "  y"]), max_size=4))
    edited = apply.apply(
        LineRange(start, end, "".join(f"{line}\n" for line in new)), "".join(lines), None
    ).text
    before, behind = "".join(lines[: start - 1]), "".join(lines[end:])
    assert edited.endswith(behind)
    if behind or new or ended:
        assert edited.startswith(before)
        between = edited[len(before) : len(edited) - len(behind)]
        assert between.replace("\r\n", "\n").split("\n")[: len(new)] == new or not new
        if behind and new:
            assert between.endswith("\n")
    else:
        # The last lines of a file without a last line end are gone: the new last one has none either.
        assert edited == before.removesuffix("\n").removesuffix("\r")
    kept = new or contents[: start - 1]
    if not behind and not ended and kept and kept[-1]:
        # An empty line can't stand at the end of a file without an end of its own.
        assert not edited.endswith("\n")


@given(
    st.lists(st.sampled_from(["a", "b", "  a", "a ", "", "\tb"]), max_size=10),
    st.lists(st.sampled_from(["a", "b", " a", "", "  b"]), max_size=3),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_a_search_changes_one_place_or_nothing(
    lines: list[str], search: list[str], end: str, ended: bool
) -> None:
    """Design, tag blocks: the one place that fits is changed; more than one, or none, changes nothing."""
    text = end.join(lines) + (end if ended and lines else "")
    try:
        edited = replaced(text, ("".join(f"{line}\n" for line in search), "NEW\n"))
    except OperationError as fault:
        assert fault.reason
        return
    (hunk,) = edited.hunks
    assert hunk.old_count == len(search)
    start, stop = hunk.old_start - 1, hunk.old_start - 1 + hunk.old_count
    assert [line.strip() for line in lines[start:stop]] == [line.strip() for line in search]
    after = edited.text.split(end)
    assert after[start].strip() == "NEW"
    assert after[:start] == lines[:start]
    assert (
        after[start + 1 :] == (end.join(lines) + (end if ended and lines else "")).split(end)[stop:]
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("a", False),
        ("a\r\n", True),
        ("a\r\nb", True),
        ("a\r\nb\n", False),
        ("a\n", False),
        ("a\rb", False),
    ],
)
def test_a_file_is_crlf_if_all_its_line_ends_are(text: str, expected: bool) -> None:
    """Design, tag blocks: overwriting a file whose lines all end in CRLF keeps CRLF."""
    assert apply.is_all_crlf(text) is expected


# --- search and replace ----------------------------------------------------------------------------


def test_the_search_is_replaced_where_it_fits() -> None:
    """Design, tag blocks: the search text must match exactly once."""
    edited = replaced("a\nb\nc\n", ("b\n", "x\ny\n"))
    assert edited == Edited("a\nx\ny\nc\n", (Hunk(2, 1, 2, 2),), ())


def test_whole_lines_only_are_found() -> None:
    """Design, tag blocks: SEARCH holds whole lines; part of a line is no match."""
    assert replaced("ab\nb\n", ("b\n", "x\n")).text == "ab\nx\n"
    assert refused("abc\n", ("b\n", "x\n")).reason.startswith("SEARCH was not found")


def test_a_search_has_no_line_ends_of_its_own() -> None:
    """Design, tag blocks: EDIT_FILE keeps the file's line ends; a CRLF file is no loose fit."""
    edited = replaced("a\r\nb\r\n", ("a\n", "x\n"))
    assert edited == Edited("x\r\nb\r\n", (Hunk(1, 1, 1, 1),), ())
    assert apply.excerpt(edited.text, edited.hunks) == "1 | x\n2 | b"


def test_an_exact_match_comes_before_a_loose_one() -> None:
    """Design, tag blocks: looser fits count only if it does not match exactly."""
    assert replaced("  a\na\na  \n", ("a\n", "x\n")) == Edited(
        "  a\nx\na  \n", (Hunk(2, 1, 2, 1),), ()
    )


def test_replacements_apply_in_order_each_to_the_result_of_the_one_before() -> None:
    """Design, tag blocks: applied in order, each to the result of the one before."""
    edited = replaced("a\n", ("a\n", "b\nc\n"), ("c\n", "d\n"), ("b\nd\n", "e\n"))
    assert edited.text == "e\n"


def test_all_apply_or_none() -> None:
    """Design, tag blocks: all apply, or none; the one that failed is named."""
    fault = refused("a\nb\n", ("a\n", "x\n"), ("zzz\n", "y\n"))
    assert fault.reason == (
        "SEARCH 2 of 2 was not found; write its lines letter by letter as they are in the file; none of the"
        " 2 was applied: send all of them again"
    )


def test_a_search_that_fits_two_places_changes_nothing() -> None:
    """Design, tag blocks: more than one place changes nothing, and the places are named."""
    fault = refused("a\nb\na\n", ("a\n", "x\n"))
    assert fault.reason == (
        "SEARCH fits 2 places (at lines 1, 3); add lines around it until it fits one; nothing was changed:"
        " send the edit again"
    )


def test_a_search_that_fits_two_places_shows_their_lines() -> None:
    """Design, tag blocks: more than one place, or none: the result shows the nearest lines with numbers."""
    fault = refused("head\na\nb\na\ntail\n", ("a\n", "x\n"))
    assert "1 | head" in fault.detail
    assert "5 | tail" in fault.detail


def test_places_that_overlap_are_two_places() -> None:
    """Design, tag blocks: must match exactly once."""
    assert "fits 2 places (at lines 1, 2)" in refused("a\na\na\n", ("a\na\n", "x\n")).reason


def test_of_many_places_ten_are_named() -> None:
    """Design, the outbox: what does not fit is cut, and said."""
    assert (
        "fits 50 places (at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)"
        in refused("a\n" * 50, ("a\n", "x\n")).reason
    )


@pytest.mark.parametrize(
    ("text", "search", "expected"),
    [
        ("a  \nb\n", "a\nb\n", "x\n"),
        ("a\nb\t\n", "a\nb\n", "x\n"),
        ("a\nb\n", "a \nb  \n", "x\n"),
        ("a\r\nb\n", "a \nb\n", "x\r\n"),
    ],
)
def test_a_search_may_differ_in_trailing_blanks(text: str, search: str, expected: str) -> None:
    """Design, tag blocks: the one place where it matches up to trailing blanks is taken and said."""
    edited = replaced(text, (search, "x\n"))
    assert (edited.text, edited.notes) == (expected, ("SEARCH fitted up to trailing blanks",))


@pytest.mark.parametrize(
    ("text", "search", "replace", "expected", "note"),
    [
        (
            "    a\n      b\n",
            "a\n  b\n",
            "a\n\n  c\n",
            "    a\n\n      c\n",
            "SEARCH fitted when indented by 4 blanks more",
        ),
        (
            "a\n  b\n",
            "    a\n      b\n",
            "    a\n      c\n",
            "a\n  c\n",
            "SEARCH fitted when indented by 4 blanks less",
        ),
        ("\ta\n", "a\n", "c\n", "\tc\n", "SEARCH fitted when indented by 1 tab more"),
        (" a\n\n b\n", "a\n\nb\n", "c\n", " c\n", "SEARCH fitted when indented by 1 blank more"),
        ("  a  \n", "a\n", "c\n", "  c\n", "SEARCH fitted when indented by 2 blanks more"),
    ],
)
def test_a_search_may_differ_by_one_constant_indentation(
    text: str, search: str, replace: str, expected: str, note: str
) -> None:
    """Design, tag blocks: up to one constant indentation (REPLACE is shifted alike), and said."""
    edited = replaced(text, (search, replace))
    assert (edited.text, edited.notes) == (expected, (note,))


@pytest.mark.parametrize(
    ("text", "search"),
    [
        ("    a\n  b\n", "a\nb\n"),
        ("\ta\n    b\n", "a\nb\n"),
        ("  a\n b\n", "  a\n  b\n"),
        ("a\n  b\n", "  a\n  b\n"),
    ],
)
def test_an_indentation_that_is_not_constant_does_not_fit(text: str, search: str) -> None:
    """Design, tag blocks: one constant indentation, and no other, unless what is new can be derived."""
    assert refused(text, (search, "x\n")).reason.startswith("SEARCH was ")


def test_a_replace_that_cannot_be_shifted_alike_changes_nothing() -> None:
    """Design, tag blocks: REPLACE is shifted alike. A line with fewer blanks than the shift can't be."""
    assert refused("if a:\n    b()\n", ("        b()\n", "        b()\n  c()\n")).reason


@pytest.mark.parametrize("loose", [("a  \na\t\n", "a \n"), ("  a\n    a\n", "a\n")])
def test_two_loose_places_change_nothing(loose: tuple[str, str]) -> None:
    """Design, tag blocks: the *one* place where it matches loosely is taken."""
    text, search = loose
    assert "fits 2 places" in refused(text, (search, "x\n")).reason


@pytest.mark.parametrize("search", ["  \n", "\t\n \n"])
def test_blanks_alone_fit_exactly_or_not_at_all(search: str) -> None:
    """Design, tag blocks: a search without a word says nothing about where it belongs."""
    assert refused("a\n\nb\n", (search, "x\n")).reason.startswith("SEARCH was not found")


def test_an_empty_search_is_refused() -> None:
    """Design, tag blocks: the search text must match exactly once; nothing matches everywhere."""
    assert refused("a\n", ("", "x\n")).reason == (
        "SEARCH is empty; give the lines whose place REPLACE takes; nothing was changed: send the edit again"
    )


def test_the_notes_of_several_replacements_name_them() -> None:
    """Design, tag blocks: a loose fit is said, for each."""
    edited = replaced("a  \nb\n", ("a\n", "x\n"), ("b\n", "y\n"))
    assert edited.notes == ("SEARCH 1 of 2 fitted up to trailing blanks",)


def test_an_empty_replace_removes_the_lines() -> None:
    """Design, tag blocks: a body is its lines; no lines are no lines."""
    assert replaced("a\nb\nc\n", ("b\n", "")) == Edited("a\nc\n", (Hunk(2, 1, 2, 0),), ())


def test_earlier_hunks_move_with_later_ones() -> None:
    """Design, tag blocks: a result shows the lines around the edit with their new numbers."""
    edited = replaced("a\nb\nc\n", ("c\n", "z\n"), ("a\n", "x\ny\n"))
    assert edited.hunks == (Hunk(3, 1, 4, 1), Hunk(1, 1, 1, 2))
    assert edited.text.split("\n")[4 - 1] == "z"


# --- what is shown ---------------------------------------------------------------------------------


def test_a_search_that_is_not_found_shows_the_nearest_lines() -> None:
    """Design, tag blocks: the result shows the nearest lines with their numbers."""
    text = "".join(f"line {n}\n" for n in range(1, 101))
    fault = refused(text, ("line 50\nline 5l\nline 52\n", "x\n"))
    assert fault.detail.startswith("The nearest lines in the file are:\n42 | line 42\n")
    assert "\n51 | line 51\n" in fault.detail
    assert "\n60 | line 60\n" in fault.detail
    assert fault.detail.endswith(
        "SEARCH (-) differs from the file (+):\n@@ -1,3 +1,3 @@\n line 50\n-line 5l\n+line 51\n line 52"
    )


def test_a_search_with_a_typing_error_shows_the_line_that_was_meant() -> None:
    """Design, tag blocks: nearest lines, even where no line is the same."""
    fault = refused("def total(self):\n    return self.net\n", ("    return self.nett\n", "x\n"))
    assert "2 |     return self.net" in fault.detail


def test_in_an_empty_file_there_is_nothing_near() -> None:
    """Design, tag blocks: none changes nothing, and says why."""
    for replacement in (("a\n", "x\n"), ("", "x\n")):
        fault = refused("", replacement)
        assert fault.reason == "The file is empty; write it whole with CREATE_FILE"
    with pytest.raises(OperationError, match=r"^The file is empty; write it whole"):
        apply.apply(LineRange(1, 1, "x\n"), "")


def test_an_excerpt_shows_the_lines_around_with_their_new_numbers() -> None:
    """Design, tag blocks: a result shows the lines around the edit with their new numbers."""
    edited = apply.apply(LineRange(5, 5, "x\ny\n"), "".join(f"{n}\n" for n in range(1, 13)))
    assert apply.excerpt(edited.text, edited.hunks) == (
        "2 | 2\n3 | 3\n4 | 4\n5 | x\n6 | y\n7 | 6\n8 | 7\n9 | 8"
    )


def test_an_excerpt_of_places_that_touch_shows_each_line_once() -> None:
    """Design, tag blocks: the lines around the edit."""
    text = "".join(f"{n}\n" for n in range(1, 31))
    hunks = (Hunk(20, 1, 20, 1), Hunk(2, 1, 2, 1), Hunk(6, 1, 6, 1))
    numbers = [int(line.split("|")[0]) for line in apply.excerpt(text, hunks).split("\n")]
    assert numbers == [*range(1, 10), *range(17, 24)]


def test_an_excerpt_of_nothing_left_is_empty() -> None:
    """Specification 003, EDIT_FILE: an edit may remove all lines."""
    assert apply.excerpt("", (Hunk(1, 3, 1, 0),)) == ""


def test_an_excerpt_of_many_new_lines_shows_the_first_and_the_last() -> None:
    """Design, commands: the model has just written what is between."""
    text = "".join(f"{n}\n" for n in range(1, 1001))
    shown = apply.excerpt(text, (Hunk(1, 1, 1, 1000),)).split("\n")
    assert [line.split(" | ")[1] for line in shown] == [
        "1",
        "2",
        "3",
        "4",
        *map(str, range(997, 1001)),
    ]


def test_a_long_line_is_clipped() -> None:
    """Design, the outbox: what does not fit is cut and said."""
    assert apply.excerpt("x" * 10_000, (Hunk(1, 1, 1, 1),)) == f"1 | {'x' * 300}…"


@pytest.mark.parametrize("data", [b"\xc3\xa9\nx\xff\ny\n", b"\xc3\xa9\xff\nold\n"])
def test_what_is_shown_of_stray_bytes_can_be_written(data: bytes) -> None:
    """Design, nothing is lost: a result is journalled and sent, so it holds no half characters."""
    decoded = encoding.decode_file(data)
    assert decoded is not None
    edited = apply.apply(LineRange(2, 2, "z\n"), decoded.text)
    apply.excerpt(edited.text, edited.hunks).encode()
    with pytest.raises(OperationError) as caught:
        replaced(decoded.text, ("é\nnot there\n", "x\n"))
    caught.value.detail.encode()


@pytest.mark.parametrize(
    ("hunks", "line", "by"),
    [
        ((), 5, 0),
        ((Hunk(1, 1, 1, 3),), 5, 2),
        ((Hunk(1, 3, 1, 1),), 5, -2),
        ((Hunk(9, 1, 9, 3),), 5, 0),
        ((Hunk(9, 1, 9, 3), Hunk(1, 1, 1, 2)), 5, 1),
        ((Hunk(1, 1, 1, 6), Hunk(12, 1, 12, 2)), 10, 6),
        ((Hunk(1, 5, 1, 0), Hunk(8, 1, 8, 3)), 10, -5),
        ((Hunk(1, 1, 1, 2), Hunk(1, 1, 1, 2)), 5, 2),
    ],
)
def test_earlier_edits_shift_the_lines_behind_them(
    hunks: tuple[Hunk, ...], line: int, by: int
) -> None:
    """Design, tag blocks: each edit counts on the result of the one before, so what they moved adds up."""
    assert apply.shift_at(hunks, line) == by


# --- hostile ---------------------------------------------------------------------------------------


def test_a_search_that_nearly_fits_everywhere_takes_no_time() -> None:
    """Design, purpose: the reply is not trusted; neither is the file that an earlier one wrote."""
    text = "".join(f"{' ' * (1 + n % 2)}x\n" for n in range(8000))
    with cpu_below(10):
        refused(text, ("   x\n" * 4000, "y\n"))


def test_a_search_like_no_line_of_a_large_file_takes_no_time() -> None:
    """Design, tag blocks: the nearest lines are looked for within reason."""
    rng = random.Random(1)
    text = "".join("".join(rng.choices("ab", k=300)) + "\n" for _ in range(6_000))
    with cpu_below(60):
        refused(text, ("".join(rng.choices("ab", k=300)) + "\n", "y\n"))


def test_a_search_in_a_file_of_equal_lines_takes_no_time() -> None:
    """Design, purpose: the reply is not trusted."""
    with cpu_below(20):
        assert "fits 99991 places" in refused("a\n" * 100_000, ("a\n" * 10, "y\n")).reason


def test_many_replacements_in_a_large_file_take_no_time() -> None:
    """Design, speed: look at each file once; a thousand edits are not a thousand files."""
    text = "".join(f"line {n}\n" for n in range(10_000))
    pairs = [(f"line {n}\n", f"row {n}\n") for n in range(0, 10_000, 20)]
    with cpu_below(50):
        assert len(replaced(text, *pairs).hunks) == 500


@pytest.mark.parametrize("path", ["a.py", "a.ts"])
@pytest.mark.parametrize(
    ("look", "most"),
    [
        (file_kinds.lines_of_text, 0),
        (syntax_check.parses, 0),
        (blank_lines._runs, 20),  # noqa: SLF001
    ],
)
def test_a_plain_replacement_reads_no_more_than_its_own_lines(
    path: str, look: Callable[..., object], most: int
) -> None:
    """What needs all of the file is looked for only where the new lines give a reason."""
    text = "".join(f"line_{n} = {n}\n" for n in range(400))
    change = tuple(Replacement(f"line_{n} = {n}\n", f"row_{n} = {n}\n") for n in range(20))
    assert calls_of(look, lambda: apply.apply(change, text, path=path)) <= most


def test_markers_without_end_take_no_time() -> None:
    """Design, purpose: the reply is not trusted."""
    with cpu_below(50):
        assert unreadable("<<<<<<< SEARCH\n" * 300_000)
        assert unreadable("<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n" * 50_000 + "x")
