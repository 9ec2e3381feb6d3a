"""Events in words: specification 003, previous command results, and Design, the outbox."""

from hypothesis import given
from hypothesis import strategies as st

from codingagent.model import results
from codingagent.model.events import CommandRan, Event


def lines_of(event: Event) -> list[str]:
    return results.lines_of(event).split("\n")


@given(st.text(max_size=60), st.text(max_size=100), st.integers(-70, 300))
def test_no_output_stands_at_the_start_of_a_line(command: str, output: str, exit_code: int) -> None:
    """Design, the outbox: text that came from a command can imitate our headings, so it is indented."""
    first, *others = lines_of(CommandRan(command, exit_code, output, 1.0))
    assert first.startswith(("[OK] RUN_COMMAND: Ran '", "[FAILED] RUN_COMMAND: Ran '"))
    assert all(line.startswith("  ") or not line for line in others)
