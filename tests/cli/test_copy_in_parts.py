"""A request in parts: nothing of it is lost, and a chat is told when it may answer."""

import re

from hypothesis import given
from hypothesis import strategies as st

from codingagent.cli.commands.clipboard import in_parts

_FRAME = re.compile(r"\A\[part \d+ of \d+ of one request\]\n(.*)\[end of part .*\]\n\Z", re.DOTALL)


def test_what_fits_is_one_part_as_it_is() -> None:
    """A short request needs no words round it."""
    assert in_parts("x" * 1_000, 1_000) == ("x" * 1_000,)


def test_only_the_last_part_asks_for_the_answer() -> None:
    """A chat that answers each part loses the others."""
    first, *middle, last = in_parts("line\n" * 1_000, 1_500)
    assert all("Don't answer yet" in part for part in (first, *middle))
    assert "Now answer the whole request" in last
    assert f"[part 1 of {len(middle) + 2} of one request]" in first


def test_a_part_ends_at_the_end_of_a_line() -> None:
    """Code that is cut within a line misleads."""
    for part in in_parts("a line of some length\n" * 500, 2_000):
        found = _FRAME.match(part)
        assert found is not None
        assert found[1].endswith("length\n")


@given(st.text("ab\n", max_size=9_000), st.integers(1_000, 3_000))
def test_nothing_is_lost_and_no_part_is_too_long(text: str, limit: int) -> None:
    """The parts in order are the request, each at most as long as was asked for."""
    pieces = in_parts(text, limit)
    assert all(len(piece) <= limit for piece in pieces)
    if len(pieces) == 1:
        assert pieces == (text,)
        return
    bodies = []
    for piece in pieces:
        found = _FRAME.match(piece)
        assert found is not None
        bodies.append(found[1])
    # Where a part could not end at a line's end, it got one.
    assert "".join(bodies).replace("\n", "") == text.replace("\n", "")
