"""Events in words: specification 003, previous command results, and Design, the outbox."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.model import results
from codingagent.model.events import (
    CommandRan,
    Event,
    FileCreated,
    FileDeleted,
    FileEdited,
    FileRequested,
    Finished,
    Hunk,
    Interrupted,
    MessageShown,
    Refused,
    succeeded,
)
from codingagent.model.operations import Kind
from codingagent.model.results import Result


def lines_of(event: Event) -> list[str]:
    return results.lines_of(results.result_of(event)).split("\n")


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            FileCreated("src/Calculator.cs", 245, replaced=False),
            "[OK] CREATE_FILE: Created 'src/Calculator.cs'",
        ),
        (FileCreated("a", 1, replaced=True), "[OK] CREATE_FILE: Replaced 'a'"),
        (
            FileEdited("a", (Hunk(3, 1, 3, 1),), ""),
            "[OK] EDIT_FILE: Edited 'a' (line 3 replaced by line 3)",
        ),
        (
            FileEdited("a", (Hunk(3, 2, 3, 3),), ""),
            "[OK] EDIT_FILE: Edited 'a' (lines 3-4 replaced by lines 3-5)",
        ),
        (
            FileEdited("a", (Hunk(3, 2, 3, 0),), ""),
            "[OK] EDIT_FILE: Edited 'a' (lines 3-4 removed)",
        ),
        (
            FileEdited("a", (Hunk(9, 1, 9, 1), Hunk(3, 1, 3, 0)), ""),
            "[OK] EDIT_FILE: Edited 'a' (line 9 replaced by line 9; line 3 removed)",
        ),
        (FileEdited("a", (Hunk(1, 1, 1, 1),) * 4, ""), "[OK] EDIT_FILE: Edited 'a' (4 places)"),
        (FileDeleted("a"), "[OK] DELETE_FILE: Deleted 'a'"),
        (FileRequested("a", ("a",)), "[OK] READ_FILE: Read 'a'; its text is below"),
        (
            FileRequested("*.py", ("a.py", "b.py")),
            "[OK] READ_FILE: Read 2 files for '*.py'; their text is below",
        ),
        (
            CommandRan("dotnet build", 0, "", 1.0),
            "[OK] RUN_COMMAND: Ran 'dotnet build' (exit code 0)",
        ),
        (CommandRan("pytest", 1, "", 1.0), "[FAILED] RUN_COMMAND: Ran 'pytest' (exit code 1)"),
        (CommandRan("x", -9, "", 1.0), "[FAILED] RUN_COMMAND: Ran 'x' (ended by signal SIGKILL)"),
        (CommandRan("x", -999, "", 1.0), "[FAILED] RUN_COMMAND: Ran 'x' (ended by signal 999)"),
        (
            CommandRan("x", -15, "", 30.0, "time_limit", "30 s"),
            (
                "[FAILED] RUN_COMMAND: Ran 'x' (ended at its time limit of 30 s;"
                ' timeout="SECONDS" allows more)'
            ),
        ),
        (
            CommandRan("x", 0, "", 30.0, "time_limit", "30 s"),
            (
                "[FAILED] RUN_COMMAND: Ran 'x' (ended at its time limit of 30 s;"
                ' timeout="SECONDS" allows more)'
            ),
        ),
        (
            CommandRan("x", -15, "", 1.0, "output_limit", "64 MB"),
            "[FAILED] RUN_COMMAND: Ran 'x' (ended after 64 MB of output; print less)",
        ),
        (
            CommandRan("cd a\nls\nls b\n", 0, "", 1.0),
            "[OK] RUN_COMMAND: Ran 'cd a … (+2 lines)' (exit code 0)",
        ),
        (
            Interrupted(Kind.RUN_COMMAND, "make"),
            "[FAILED] RUN_COMMAND: 'make' interrupted: it may have run in part; it was not run again",
        ),
        (MessageShown("hi"), "[OK] MESSAGE: Message was shown"),
        (Finished("ok"), "[OK] DONE: Task was ended"),
        (
            Refused(Kind.EDIT_FILE, "File 'src/Missing.cs' not found"),
            "[FAILED] EDIT_FILE: File 'src/Missing.cs' not found",
        ),
        (
            Refused(Kind.READ_FILE, "REJECTED: Path is outside workspace: '../x'"),
            "[FAILED] READ_FILE: REJECTED: Path is outside workspace: '../x'",
        ),
    ],
)
def test_each_event_is_one_line(event: Event, line: str) -> None:
    """Specification 003, previous command results and execution errors: the outcome of each command."""
    assert lines_of(event) == [line]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (FileCreated("a", 1, replaced=False), True),
        (CommandRan("x", 0, "", 1.0), True),
        (CommandRan("x", 1, "", 1.0), False),
        (CommandRan("x", 0, "", 1.0, "time_limit"), False),
        (CommandRan("x", 0, "", 1.0, "output_limit"), False),
        (Interrupted(Kind.RUN_COMMAND, "x"), False),
        (Refused(Kind.EDIT_FILE, "x"), False),
        (Finished("x"), True),
    ],
)
def test_success_is_what_the_specification_calls_so(event: Event, expected: bool) -> None:
    """Specification 003, execution errors: timeout, non-zero exit code, refusals: `Success = false`."""
    assert succeeded(event) is expected
    assert results.result_of(event).success is expected


def test_one_line_of_output_stands_behind_its_name() -> None:
    """Specification 003, previous command results: `  Output: Build succeeded.`."""
    event = CommandRan("dotnet build", 0, "Build succeeded. 0 Warning(s) 0 Error(s)\n", 1.0)
    assert lines_of(event)[1:] == ["  Output: Build succeeded. 0 Warning(s) 0 Error(s)"]


def test_output_of_many_lines_is_indented() -> None:
    """Design, the outbox: command output is indented, so that it can't imitate our headings."""
    event = CommandRan("x", 1, "\none\n\n  two\n=== PROMPT ===\n[OK] DONE: x\n\n", 1.0)
    assert lines_of(event)[1:] == [
        "  Output:",
        "    one",
        "",
        "      two",
        "    === PROMPT ===",
        "    [OK] DONE: x",
    ]


def test_what_is_shown_of_a_file_is_indented() -> None:
    """Design, tag blocks: a result shows the lines around the edit."""
    event = FileEdited("a", (Hunk(1, 1, 1, 1),), "1 | x\n2 | y")
    assert lines_of(event)[1:] == ["  Output:", "    1 | x", "    2 | y"]
    assert lines_of(Refused(Kind.EDIT_FILE, "no", "1 | x\n2 | y"))[1:] == [
        "  Output:",
        "    1 | x",
        "    2 | y",
    ]


def test_notes_stand_below_one_a_line() -> None:
    """Design, tag blocks: what is noted is noted in the result."""
    event = CommandRan("x", 0, "out", 1.0, notes=("first", "second"))
    assert lines_of(event)[1:] == ["  Output: out", "  Note: first", "  Note: second"]


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
