"""How text is laid out: it fits, whatever the width, and nothing of it is lost."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from codingagent.cli import layout
from codingagent.cli.layout import PIPE, Look
from tests.rows import each_row

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
WIDE, NARROW, PLAIN = Look(80, has_marks=True), Look(20, has_marks=True), Look(20)


def at(**past: float) -> str:
    return (NOW - timedelta(**past)).isoformat().replace("+00:00", "Z")


@each_row(
    ("past", "said"),
    [
        ({"seconds": 5}, "just now"),
        ({"seconds": -5}, "just now"),  # another machine's clock
        ({"minutes": 3}, "3 min ago"),
        ({"minutes": 59.9}, "60 min ago"),
        ({"hours": 2}, "2 h ago"),
        ({"days": 1}, "24 h ago"),
        ({"days": 6.9}, "7 days ago"),
        ({"days": 7}, "2026-03-03"),
    ],
)
def test_a_time_is_said_as_people_say_it(past: dict[str, float], said: str) -> None:
    """How long ago; the day where that is long."""
    assert layout.ago(at(**past), NOW) == said


def test_a_clock_tells_the_day_only_if_it_is_another() -> None:
    """What was today needs no date."""
    assert layout.clock(at(hours=2), NOW) == "10:00"
    assert layout.clock(at(days=2), NOW) == "2026-03-08 12:00"


@each_row(
    ("seconds", "said"), [(0.04, "0.0 s"), (3.21, "3.2 s"), (75, "75 s"), (600, "10 min"), (9000, "2 h")]
)
def test_a_duration_is_no_more_exact_than_it_matters(seconds: float, said: str) -> None:
    """Nobody needs milliseconds of minutes."""
    assert layout.duration(seconds) == said


def test_a_cut_text_says_so() -> None:
    """In marks that the terminal has; wide characters count twice."""
    assert layout.cut("a rather long text", 10, WIDE) == "a rather…"
    assert layout.cut("a rather long text", 10, PLAIN) == "a rathe..."
    assert layout.cut("漢字漢字漢字", 7, WIDE) == "漢字漢…"
    assert layout.cut("short", 10, WIDE) == "short"
    assert layout.cut("a rather long text", 10, PIPE) == "a rather long text"


WORDS = st.text(alphabet="ab 漢ü/-", max_size=80)


@given(st.lists(st.tuples(WORDS, st.sampled_from(["", "dim"])), max_size=5), st.integers(12, 60))
def test_what_hangs_fits_and_keeps_every_character(spans: list[tuple[str, str]], width: int) -> None:
    """Only blanks where a line is broken are lost."""
    lines = list(layout.hang(spans, Look(width, has_marks=True), 4))
    assert all(layout.cells(layout.plain_lines([line])[:-1]) <= width for line in lines)
    told = "".join(text for line in lines for text, _ in line)
    assert told.replace(" ", "") == "".join(text for text, _ in spans).replace(" ", "")


@given(WORDS, st.integers(2, 40))
def test_wrapped_lines_fit(text: str, width: int) -> None:
    """Also a word that is longer than a line."""
    lines = layout.wrap(text, width)
    assert all(layout.cells(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_a_table_is_folded_and_then_taken_apart() -> None:
    """A column that is too narrow tells nothing; the first cell is never cut."""
    rows = [[("a1b2c3d4", "bold"), ("done", "good"), ("a text that needs some room", "")]]
    headings = ("session", "state", "task")

    def drawn(look: Look, *, cuts: bool = False) -> list[str]:
        return layout.plain_lines(layout.table(headings, rows, look, cuts=cuts)).splitlines()

    assert drawn(WIDE) == ["session   state  task", "a1b2c3d4  done   a text that needs some room"]
    assert drawn(Look(38, has_marks=True)) == [
        "session   state  task",
        "a1b2c3d4  done   a text that needs",
        "                 some room",
    ]
    assert drawn(Look(38, has_marks=True), cuts=True)[1] == "a1b2c3d4  done   a text that needs so…"
    assert drawn(NARROW) == ["a1b2c3d4", "  done", "  a text that needs", "  some room"]
    assert drawn(PIPE) == drawn(WIDE)
