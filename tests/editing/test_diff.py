"""What a change does to a file, in lines for people."""

from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing import diff
from tests.helpers import cpu_below

LINES = "".join(f"line {number}\n" for number in range(1, 31)).encode()


def test_a_difference_counts_what_came_and_went() -> None:
    """The two lines that name the file are not among them."""
    found = diff.between(b"a\nb\nc\n", b"a\nB\nB2\nc\n", 1)
    assert found.lines == ("@@ -1,3 +1,4 @@", " a", "-b", "+B", "+B2", " c")
    assert (found.added, found.removed) == (2, 1)


def test_lines_that_look_like_a_heading_are_lines() -> None:
    """A line of the file may begin with -- or ++."""
    found = diff.between(b"-- old\n", b"++ new\n")
    assert found.lines[1:] == ("--- old", "+++ new")
    assert (found.added, found.removed) == (1, 1)


def test_what_is_no_text_or_too_large_is_said_in_words() -> None:
    """Nobody would read it, and everybody would wait for it."""
    assert diff.between(b"a", b"\0\1").instead == "2 bytes that are not text"
    large = b"x\n" * diff.BYTES_LIMIT
    assert diff.between(b"", large).instead == f"{len(large)} bytes in place of 0"


def test_the_first_lines_say_how_many_more_there_are() -> None:
    """And one line more is shown, rather than counted."""
    found = diff.between(b"", LINES)
    assert found.first(12)[12:] == ("… 19 more lines",)
    assert found.first(31) == found.first(30) == found.lines


def test_a_deletion_and_no_change_are_said_in_words() -> None:
    """Anyone who is to approve it must see something."""
    assert diff.text_of("a", b"x\n", None) == "the file is deleted"
    assert diff.text_of("a", b"x\n", b"x\n") == "its lines stay as they are"
    text = diff.text_of("a", b"", LINES * 20)
    assert text.startswith("--- a\n+++ a\n@@ -0,0 +1,600 @@\n+line 1\n")
    assert text.endswith("… 403 more lines")


def test_a_carriage_return_that_is_not_everywhere_is_in_the_lines() -> None:
    """Code before one in a line is shown beside what follows, and a change of line ends is a change."""
    found = diff.between(b"a\r\nb\r\n", b"a\r\nc\r\n")
    assert found.lines[1:] == (" a", "-b", "+c")
    assert diff.between(b"a\r\n", b"a\n").lines[1:] == ("-a\r", "+a")
    assert diff.between(b"", b"evil()\r# fine\n").lines[1:] == ("+evil()\r# fine",)


FEW = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12)


def patched(before: list[str], lines: tuple[str, ...]) -> list[str]:
    """Applies a unified difference, by its numbers."""
    result, at = [], 0
    for line in lines:
        if line.startswith("@@"):
            start, _, count = line.split()[1][1:].partition(",")
            begin = int(start) - (count != "0")
            result += before[at:begin]
            at = begin
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert before[at] == line[1:]
            at += 1
            result += [line[1:]] if line.startswith(" ") else []
    return result + before[at:]


@given(FEW, FEW, st.integers(0, 3))
def test_a_difference_leads_from_the_old_to_the_new(old: list[str], new: list[str], context: int) -> None:
    """With true numbers of lines, wherever they are."""
    before, after = ("".join(f"{line}\n" for line in each).encode() for each in (old, new))
    assert patched(old, diff.between(before, after, context).lines) == new


def test_a_reply_can_not_have_lines_compared_for_hours() -> None:
    """Each second line changed of very many: what is replaced is then one piece, and still true."""
    old = [f"{number}" if number % 2 else f"a{number}" for number in range(20_000)]
    new = [f"{number}" if number % 2 else f"b{number}" for number in range(20_000)]
    before, after = ("\n".join(each).encode() for each in (old, new))
    with cpu_below(20):
        found = diff.between(before, after)
    assert patched(old, found.lines) == new


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_bytes_of_any_kind_can_be_compared(old: bytes, new: bytes) -> None:
    """What a file holds is not ours to choose."""
    found = diff.between(old, new)
    assert len(found.first(12)) <= 13
    assert bool(found.instead) == (b"\0" in old + new)
