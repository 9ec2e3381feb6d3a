"""Text from commands made harmless and short: specification 003, RUN_COMMAND, and Design, the outbox."""

import functools
import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codingagent.model import plain_text
from tests.helpers import cpu_below
from tests.rows import each_row


@each_row(("text", "whole"), [("", ""), ("a\nb", "a\nb"), ("é→", "é→"), ("caf\udce9 \ud800", "caf? ?")])
def test_half_characters_become_question_marks(text: str, whole: str) -> None:
    """No UTF-8 and no JSON can hold them."""
    assert plain_text.without_halves(text) == whole


_OUTPUTS = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(
            [
                "\x1b",
                "[",
                "]",
                "0;",
                "31m",
                "\x07",
                "\\",
                "\x9b",
                "\x9d",
                "\x9c",
                "\r",
                "\n",
                "a",
                "P",
                "\x00",
                "\t",
                " ",
            ]
        )
    ).map("".join),
)


@each_row(
    ("text", "expected"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[1;38;5;196mred\x1b[m", "red"),
        ("\x1b[2J\x1b[Htop", "top"),
        ("\x1b[?25lx\x1b[?25h", "x"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdata\x1b\\x", "x"),
        ("\x1b(Bx", "x"),
        ("\x1b=x\x1b>", "x"),
        ("\x1bcx", "x"),
        ("\x1b]0;never ended\nnext", "\nnext"),
        ("a\x07b\x08c\x00d\x7fe\x85f", "abcdef"),
        ("\x1b", ""),
        ("\x1b[", ""),
        ("[31m stays", "[31m stays"),
    ],
)
def test_terminal_control_sequences_are_taken_out(text: str, expected: str) -> None:
    """Design, the outbox: what a command printed must not move the person's cursor or mislead the model."""
    assert plain_text.without_controls(text) == expected


@each_row(
    ("text", "expected"),
    [
        ("10%\r20%\r100%\n", "100%\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("10%\r100%\r\nok\r\n", "100%\nok\n"),
        ("done\r", "done"),
        ("done\r\r\n", "done\n"),
        ("a\n10%\r20%", "a\n20%"),
        ("one\r\rtwo", "two"),
    ],
)
def test_of_a_line_drawn_over_the_last_drawing_stays(text: str, expected: str) -> None:
    """Design, the outbox: a progress bar costs one line of the request."""
    assert plain_text.without_controls(text) == expected


@given(_OUTPUTS)
@example("\x1b\x1b[31m[31m")
def test_no_control_character_is_left(text: str) -> None:
    """Design, the outbox: whatever was printed; taking out twice is taking out once."""
    left = plain_text.without_controls(text)
    assert not [c for c in left if unicodedata.category(c) == "Cc" and c not in "\t\n"]
    assert plain_text.without_controls(left) == left


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])))
def test_text_without_controls_stays(text: str) -> None:
    """Design, replies as chats give them: a clean text is never altered."""
    assert plain_text.without_controls(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "\r" + "x" * 100_000,
        "x" * 100_000 + "\r" + "y" * 100_000,
        "\r" * 20_000,
        "a\r" * 50_000,
        "\x1b" * 100_000,
        "\x1b[" * 100_000,
        "\x1b[" + "0" * 100_000,
        "\x1b]" * 100_000,
        "\x1b]" + "x" * 100_000,
        "\x1b[" + " " * 100_000,
    ],
    ids=lambda text: ascii(text[:8]),
)
def test_hostile_output_takes_no_time(text: str) -> None:
    """Design, commands: output is held in bounded memory, and read in bounded time."""
    with cpu_below(10):
        plain_text.without_controls(text)


# --- clipping --------------------------------------------------------------------------------------


def test_a_short_text_is_not_clipped() -> None:
    """Specification 003, RUN_COMMAND: truncated to 4000 characters."""
    assert plain_text.clip_middle("x" * 4000, 4000) == "x" * 4000
    assert plain_text.clip_middle("", 4000) == ""


def test_head_and_tail_stay_and_the_gap_is_counted() -> None:
    """Design, the outbox: the head and the tail, with `… N characters left out …` between."""
    clipped = plain_text.clip_middle("a" * 3000 + "b" * 3000, 4000)
    assert clipped == f"{'a' * 2000}\n… 2000 characters left out …\n{'b' * 2000}"


def test_what_was_never_kept_is_counted_too() -> None:
    """Design, the outbox: the gap says what is missing, wherever it was lost."""
    assert plain_text.clip_middle("abcd", 4000, 1_000_000) == "ab\n… 1000000 characters left out …\ncd"
    assert "… 1002000 characters left out …" in plain_text.clip_middle("x" * 6000, 4000, 1_000_000)


def test_whole_lines_are_kept_where_a_line_end_is_near() -> None:
    """Design, the outbox: the head and the tail, in lines where it can be."""
    text = "".join(f"line {n:04}\n" for n in range(1000))
    head, gap, *tail = plain_text.clip_middle(text, 4000).partition("\n… ")
    assert gap
    assert head.split("\n")[-1] == "line 0199"
    assert tail[0].split("\n")[1].startswith("line ")


@given(
    st.one_of(st.text(max_size=300), st.lists(st.sampled_from(["\n", "a", "bb\n"])).map("".join)),
    st.integers(2, 60),
    st.integers(0, 50),
)
def test_clipped_text_is_bounded_and_the_numbers_add_up(text: str, limit: int, dropped: int) -> None:
    """Design, the outbox: at most so many characters, and one line that says what is missing."""
    clipped = plain_text.clip_middle(text, limit, dropped)
    if clipped == text:
        assert dropped == 0
        assert len(text) <= limit
        return
    head, _, rest = clipped.partition("\n… ")
    number, _, tail = rest.partition(" characters left out …\n")
    assert len(head) + len(tail) <= limit
    assert text.startswith(head)
    assert text.endswith(tail)
    # Line ends before the gap are not told from the gap's own.
    assert (
        0
        <= len(text) + dropped - len(head) - len(tail) - int(number)
        <= len(text) - len(text.rstrip("\n")) + text.count("\n")
    )


@each_row(
    ("text", "expected"),
    [
        ("one", "one"),
        ("", ""),
        ("one\n", "one"),
        ("\n\none\n", "one"),
        ("one\ntwo", "one … (+1 line)"),
        ("one\ntwo\nthree\n", "one … (+2 lines)"),
        ("x" * 201, "x" * 200 + "…"),
        ("\x1b[31mred\r\x1b[0m", "\\x1b[31mred\\r\\x1b[0m"),
    ],
)
def test_one_line_is_one_short_line(text: str, expected: str) -> None:
    """Design, the command line: what is shown of a text of many lines is one line, and says so."""
    assert plain_text.one_line(text) == expected


@given(st.text(max_size=400))
def test_one_line_never_has_a_second(text: str) -> None:
    """Design, the outbox: no line of a command can pass for a result."""
    line = plain_text.one_line(text)
    assert "\n" not in line
    assert len(line) <= 220


@given(_OUTPUTS)
@example("rm -rf src #\r ls")
@example("\u202e\u2066\u200b")
def test_what_is_unmasked_is_printed_as_it_stands(text: str) -> None:
    """Design, policy: what a person is to say yes to is shown."""
    shown = plain_text.unmasked(text)
    assert shown.replace("\n", "").replace("\t", "").isprintable()
    assert plain_text.without_controls(shown) == shown
    assert shown.count("\n") == text.count("\n")


_ESCAPE = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|r)")
_TRICKY = st.text(
    st.sampled_from("ab \r\n\t\x1b[]\x07\x9d\x9b\u202e\u200d\u200c\ufe0f❤👩م💻❷\u0915\u094d\u3164")
)


@given(_OUTPUTS | _TRICKY)
@example('print("EVIL")\r# harmless\ny = "\x9d"; evil()\n')
@pytest.mark.parametrize("show", [plain_text.on_screen, plain_text.unmasked])
def test_nothing_of_what_is_shown_is_lost(show: Callable[[str], str], text: str) -> None:
    """What is reviewed is all there, in its place: what was escaped can be read back, and moves no cursor."""
    text = text.replace("\\", "/").replace("\r\n", "\n")
    shown = show(text)
    assert not [c for c in shown if unicodedata.category(c) == "Cc" and c not in "\t\n"]
    assert _ESCAPE.sub(lambda found: found[0].encode().decode("unicode_escape"), shown) == text
    assert show(shown) == shown


@each_row(
    ("text", "shown"),
    [
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\r\nb\n", "a\\r\nb\n"),
        ("x = 1\r# y\r\n", "x = 1\\r# y\n"),
        ("a\r", "a\\r"),
        ("a\r\r\n", "a\\r\n"),
    ],
)
def test_a_carriage_return_is_seen_but_where_each_line_ends_so(text: str, shown: str) -> None:
    assert plain_text.on_screen(text) == shown
    # Of a command each is a character of it.
    assert plain_text.unmasked(text) == text.replace("\r", "\\r")


@given(_OUTPUTS)
def test_no_control_character_goes_into_a_request_and_each_comes_back(text: str) -> None:
    """A terminal obeys none where a request is pasted; the model's copy means the file's own again."""
    text = text.replace("\\", "/")
    shown = plain_text.in_request(text)
    assert not [c for c in shown if unicodedata.category(c) == "Cc" and c not in "\t\n\f"]
    assert plain_text.with_controls(shown) == text


@functools.cache
def _unseen() -> tuple[str, ...]:
    every = map(chr, range(0x80, 0x110000))
    return tuple(each for each in every if unicodedata.category(each) in {"Cf", "Zl", "Zp"})


@each_row("show", [plain_text.on_screen, plain_text.unmasked, plain_text.one_line])
def test_what_is_invisible_is_shown_escaped(show: Callable[[str], str]) -> None:
    """Marks of direction, joiners, the tag block, fillers: a person would not see that they are there."""
    unseen = _unseen()
    assert {"\u061c", "\u200e", "\ufeff", "\U000e0041", "\u202e", "\u2028"} <= {*unseen}
    selectors = "\u180b\ufe00\ufe0f\U000e0100\U000e01ef"
    for character in (*unseen, "\u3164", "\u2800", "\ud800", *selectors):
        shown = show(f"a{character}b")
        assert shown.isascii()
        assert shown == f"a{character.encode('unicode_escape').decode()}b"


def test_what_a_screen_can_show_stays() -> None:
    """Wide spaces and the icons of terminal fonts are seen, and so are all scripts."""
    text = "a\tb\n\u3000日本\u00a0é\ue0b0 👍🏽 שלום ❤\ufe0f ℹ\ufe0f 1\ufe0f\u20e3 葛\U000e0100 ᠠ\u180b"
    assert plain_text.on_screen(text) == text
    joined = "👩\u200d💻 ❤\ufe0f\u200d🔥 می\u200cخواهم क्\u200dष"
    assert plain_text.on_screen(joined) == plain_text.unmasked(joined) == joined
    assert plain_text.on_screen("a\u200db👩\u200dx") == r"a\u200db👩\u200dx"
    hidden = "❤\ufe0f\ufe01 \ufe0f葛\U000e0100\U000e0101"
    shown = "❤\ufe0f\\ufe01 \\ufe0f葛\U000e0100\\U000e0101"
    assert plain_text.on_screen(hidden) == plain_text.unmasked(hidden) == shown
