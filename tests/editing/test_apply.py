"""How an edit changes a text: specification 003, EDIT_FILE, and Design, tag blocks."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing import apply, body_rules, file_kinds, match, nearest, syntax_check
from codingagent.editing.apply import Edited
from codingagent.editing.characters import ReplacedLines
from codingagent.editing.file_lines import FileLines
from codingagent.errors import OperationError
from codingagent.model import encoding
from codingagent.model.events import Hunk
from codingagent.model.operations import LineRange, Replacement
from tests.helpers import calls_of, cpu_below
from tests.rows import each_row


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
    pairs = [("".join(f"{line}\n" for line in a), "".join(f"{line}\n" for line in b)) for a, b in blocks]
    n = 9
    body = "".join(f"{'<' * n} SEARCH\n{a}{'=' * n}\n{b}{'>' * n} REPLACE\n" for a, b in pairs)
    assert apply.read_replacements(body) == tuple(Replacement(*pair) for pair in pairs)


@given(
    st.lists(
        st.sampled_from(["<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "a", "", "<<<<<<<< SEARCH"])
    ).map("\n".join)
)
def test_reading_markers_gives_blocks_or_one_line_of_refusal(body: str) -> None:
    """Specification 003, design goals: malformed commands produce error results rather than crashes."""
    try:
        assert apply.read_replacements(body)
    except OperationError as fault:
        assert fault.reason.isprintable()


# --- line ranges -----------------------------------------------------------------------------------


def test_a_range_beyond_the_file_shows_the_true_lines() -> None:
    """Design, the outbox: when an edit fails, the next outbox carries the true lines without being asked."""
    with pytest.raises(OperationError) as caught:
        apply.apply(LineRange(3, 4, "x\n"), "alpha\nbeta\n")
    assert "2 | beta" in caught.value.detail


# --- line ends -------------------------------------------------------------------------------------


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
    assert after[start + 1 :] == (end.join(lines) + (end if ended and lines else "")).split(end)[stop:]


# --- search and replace ----------------------------------------------------------------------------


def test_a_search_has_no_line_ends_of_its_own() -> None:
    """Design, tag blocks: EDIT_FILE keeps the file's line ends; a CRLF file is no loose fit."""
    edited = replaced("a\r\nb\r\n", ("a\n", "x\n"))
    assert edited == Edited("x\r\nb\r\n", (Hunk(1, 1, 1, 1),), ())
    assert apply.excerpt(edited.text, edited.hunks) == "1 | x\n2 | b"


def test_a_search_that_fits_two_places_shows_their_lines() -> None:
    """Design, tag blocks: more than one place, or none: the result shows the nearest lines with numbers."""
    fault = refused("head\na\nb\na\ntail\n", ("a\n", "x\n"))
    assert "1 | head" in fault.detail
    assert "5 | tail" in fault.detail


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
    numbers = [line.split("|")[0].strip() for line in apply.excerpt(text, hunks).split("\n")]
    assert numbers == [*map(str, range(1, 10)), "…", *map(str, range(17, 24))]


def test_an_excerpt_of_nothing_left_is_empty() -> None:
    """Specification 003, EDIT_FILE: an edit may remove all lines."""
    assert apply.excerpt("", (Hunk(1, 3, 1, 0),)) == ""


def test_an_excerpt_of_many_new_lines_shows_the_first_and_the_last() -> None:
    """Design, commands: the model has just written what is between."""
    text = "".join(f"{n}\n" for n in range(1, 1001))
    shown = apply.excerpt(text, (Hunk(1, 1, 1, 1000),)).split("\n")
    assert [line.split(" | ")[-1] for line in shown] == ["1", "2", "3", "4", "…", *map(str, range(997, 1001))]


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


@each_row(
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
def test_earlier_edits_shift_the_lines_behind_them(hunks: tuple[Hunk, ...], line: int, by: int) -> None:
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
    text = "".join("".join(rng.choices("ab", k=300)) + "\n" for _ in range(3_000))
    with cpu_below(30):
        refused(text, ("".join(rng.choices("ab", k=300)) + "\n", "y\n"))


def test_a_search_in_a_file_of_equal_lines_takes_no_time() -> None:
    """Design, purpose: the reply is not trusted."""
    with cpu_below(20):
        assert "matches 99991 places" in refused("a\n" * 100_000, ("a\n" * 10, "y\n")).reason


def test_many_replacements_in_a_large_file_take_no_time() -> None:
    """Design, speed: look at each file once; a thousand edits are not a thousand files."""
    text = "".join(f"line {n}\n" for n in range(5_000))
    pairs = [(f"line {n}\n", f"row {n}\n") for n in range(0, 5_000, 20)]
    with cpu_below(15):
        assert len(replaced(text, *pairs).hunks) == 250


@pytest.mark.parametrize("path", ["a.py", "a.ts"])
@pytest.mark.parametrize(
    ("look", "most"),
    [
        (file_kinds.lines_of_text, 0),
        (syntax_check.parses, 0),
        (body_rules._runs, 20),  # noqa: SLF001
        (vars(ReplacedLines)["known"].fget, 0),
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
    with cpu_below(20):
        assert unreadable("<<<<<<< SEARCH\n" * 100_000)
        assert unreadable("<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n" * 20_000 + "x")


def test_what_explains_a_failure_is_looked_for_only_where_it_is_told() -> None:
    """6,500 searches that fit nowhere: each was compared with each line of the file."""
    text = "".join(f"line_{n} = {n}\n" for n in range(400))
    change = tuple(Replacement(f"line_{n} = x{n}\n", "y\n") for n in range(20))
    faults: list[OperationError] = []

    def refused() -> None:
        with pytest.raises(OperationError, match="SEARCH 1 of 20 not found") as fault:
            apply.apply(change, text, path="a.py")
        faults.append(fault.value)

    assert calls_of(nearest.nearest, refused) == 0
    assert calls_of(nearest.nearest, lambda: faults[0].detail) == 1
    assert "line_0 = 0" in faults[0].detail


def test_lines_are_found_wherever_they_are_also_where_they_overlap() -> None:
    """A search that repeats itself: a look from each of its places at all of it was a square."""
    luck = random.Random(1)
    for _ in range(500):
        unit = luck.choices("ab", k=luck.randint(1, 3))
        text = [*(unit * 6), *luck.choices("ab", k=luck.randint(0, 6)), *(unit * 4)]
        search = (unit * 4)[: luck.randint(1, 9)]
        found = [place.start for place in match.fits(FileLines(text), match.RULES[0], search)]
        assert found == [at for at in range(len(text)) if text[at : at + len(search)] == search]
    with cpu_below(20):
        for count in (20_000, 40_000):
            with pytest.raises(OperationError, match="is in 40,000 places of the file or more; add a line"):
                apply.apply((Replacement("same\n" * count, "x\n"),), "same\n" * 40_000, path="a.txt")
