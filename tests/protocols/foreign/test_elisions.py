"""Which lines stand for others that were left out."""

import pytest

from codingagent.editing.elisions import first_elision
from tests.rows import each_row


@each_row(
    "line",
    [
        "...",
        "    ...",
        "# ...",
        "// ...",
        "/* ... */",
        "<!-- ... -->",
        "{/* ... */}",
        "-- ...",
        "# ... existing code ...",
        "// ... rest of the file unchanged",
        "# rest of the code remains the same",
        "// (rest of the class unchanged)",
        "# [rest of the file remains the same]",
        "/* unchanged */",
        "// ... other methods ...",
        "# … unchanged …",
        "// existing imports...",
        "# The rest of your code here",
        "// same as before",
        "# keep existing code",
        "[...]",
        "# (omitted for brevity)",
        "# ... (previous code) ...",
        "// Remaining code unchanged",
    ],
)
def test_a_line_that_stands_for_others(line: str) -> None:
    assert first_elision(["def f():", "    x = 1", line, "def g():"]) == 2


@each_row(
    "line",
    [
        "f(...args)",
        "  ...state,",
        "x = [1, ...]",
        "print('...')",
        "# Wait for the rest of the message, then answer",
        "# unchanged_files holds what git says",
        "if unchanged:",
        "# Returns the existing code if the user has one, else makes a new code for them",
        "Loading...",
        "tuple[int, ...]",
        "raise NotImplementedError",
        "# other functions call this",
        "# ...but not twice",
    ],
)
def test_a_line_of_code_is_none(line: str) -> None:
    assert first_elision(["def f():", "    x = 1", line, "def g():"]) is None


@pytest.mark.parametrize(
    "lines",
    [
        ["def f() -> None:", "    ...", "", "def g() -> None:", "    ..."],
        ["class A(Exception):", '    """Says."""', "    ...", "", "x = 1"],
    ],
)
def test_dots_as_the_whole_body_of_a_function_are_python(lines: list[str]) -> None:
    assert first_elision(lines) is None


def test_a_line_that_the_old_text_has_is_kept() -> None:
    assert first_elision(["# ...", "b"], {"# ...", "a"}) is None
    assert first_elision(["b", "# ..."], {"a"}) == 1
