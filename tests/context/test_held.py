"""Which lines of a file the chat has: Design, the outbox."""

import pytest

from codingagent.context.blocks import blocks
from codingagent.context.held import Held, held
from tests.helpers import cpu_below


@pytest.mark.parametrize(
    ("old", "new", "lines", "is_own", "kept", "changed"),
    [
        ("a\nb\nc\n", "a\nb\nc\n", {1, 2}, False, {1, 2}, set()),
        ("a\nb\nc\n", "x\na\nb\nc\n", {2, 3}, False, {3, 4}, set()),
        ("a\nb\nc\n", "a\nB\nc\n", {1, 2, 3}, False, {1, 3}, {1, 2, 3}),
        ("a\nb\nc\n", "a\nB\nc\n", {1, 2, 3}, True, {1, 2, 3}, set()),
        ("a\nb\nc\n", "a\nB\nc\n", set(), False, set(), set()),
    ],
)
def test_what_the_chat_has_follows_its_lines(
    old: str, new: str, lines: set[int], is_own: bool, kept: set[int], changed: set[int]
) -> None:
    found = held(old, new, lines, is_own=is_own)
    assert found == Held(frozenset(kept), frozenset(changed))


def test_a_file_of_which_every_other_line_changed_takes_no_time() -> None:
    """Design, speed: difflib compares 20,000 such lines for a minute."""
    old = "".join(f"line {n}\n" for n in range(20_000))
    new = old.replace("3\n", "three\n").replace("7\n", "seven\n")
    with cpu_below(15):
        found = held(old, new, range(1, 20_001), is_own=False)
        held(old, f"{new}more\n", range(1, 20_001), is_own=False)
    assert len(found.lines) == 16_000


def test_a_file_of_a_program_s_size_is_cut_into_pieces_alone() -> None:
    """Design, speed: 110,000 definitions in 1 MB took 150 MB of memory."""
    text = "def f():\n" * 110_000
    found = blocks("a.py", text)
    assert len(found) < 10_000
    assert not any(block.names for block in found)
    assert sum(block.last - block.first + 1 for block in found) == 110_000
    assert blocks("a.py", text[:900])[0].names
