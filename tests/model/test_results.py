"""Events in words: specification 003, previous command results, and Design, the outbox."""

from hypothesis import given
from hypothesis import strategies as st

from codingagent.model import results
from codingagent.model.events import (
    CommandRan,
    Event,
)
from codingagent.model.operations import Kind
from codingagent.model.results import Result


def lines_of(event: Event) -> list[str]:
    return results.lines_of(results.result_of(event)).split("\n")


def test_a_result_carries_the_fields_of_the_session_file() -> None:
    """Specification 003, execution errors: a result has a `Success` flag and a summary."""
    event = CommandRan("x", 1, "out\n", 1.0, notes=("n",))
    assert results.result_of(event) == Result(
        Kind.RUN_COMMAND, "Ran 'x' (exit code 1)", False, "out\n", ("n",), "none"
    )


@given(st.text(max_size=60), st.text(max_size=100), st.integers(-70, 300))
def test_no_output_stands_at_the_start_of_a_line(command: str, output: str, exit_code: int) -> None:
    """Design, the outbox: text that came from a command can imitate our headings, so it is indented."""
    first, *others = lines_of(CommandRan(command, exit_code, output, 1.0))
    assert first.startswith(("[OK] RUN_COMMAND: Ran '", "[FAILED] RUN_COMMAND: Ran '"))
    assert all(line.startswith("  ") or not line for line in others)
