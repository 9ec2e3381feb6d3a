"""What the output of a check says, as the person is told before any change; checks.txt has a line a case."""

from typing import Any

import pytest

from codingagent.model import check_outcome
from codingagent.model.events import CommandRan
from codingagent.model.journal_entries import CheckEnded
from tests import golden


def ran(command: str, exit_code: int, output: str, ended_by: Any = "itself") -> CommandRan:
    return CommandRan(command, exit_code, output, 1.0, ended_by, "300 s" * (ended_by != "itself"))


def told(case: tuple[Any, ...]) -> str:
    """Return what the person is told, and whether all failures are known by name."""
    event = ran(*case)
    is_whole = check_outcome.failures_in(event).is_whole
    words = check_outcome.told_before(event, "here `pytest` is /usr/bin/pytest")
    return f"{words}{' (all known)' * is_whole}"


TABLES = {"checks.txt": told}


@pytest.mark.parametrize(("case", "expected"), golden.cases(__file__, "checks.txt"))
def test_what_a_check_says_before_any_change(case: tuple[Any, ...], expected: str) -> None:
    assert told(case) == expected


def test_a_failure_is_an_old_one_by_its_name_or_its_whole_output() -> None:
    """Whatever else is printed, and however long it took."""
    end = "1 failed, 1 passed in {:.2f}s\n"
    first = ran("pytest", 1, "FAILED a.py::test_a - x\n" + end.format(1))
    before = CheckEnded(first, "", "pytest")
    same = ran("pytest", 1, "more\nFAILED a.py::test_a - y\n" + end.format(2))
    assert check_outcome.compared(before, same, "pytest").is_same
    other = ran("pytest", 1, "FAILED a.py::test_b - x\n" + end.format(1))
    found = check_outcome.compared(before, other, "pytest")
    assert (found.old, found.new, found.is_same) == ((), ("a.py::test_b",), False)
    assert check_outcome.compared(before, same, "pytest -q") == check_outcome.Compared()
    nothing = CheckEnded(ran("make", 2, "cc: no such file\n0.1s\n"), "", "make")
    later = ran("make", 2, "cc: no such file\n0.3s\n")
    assert check_outcome.compared(nothing, later, "make").is_same
    assert not check_outcome.compared(nothing, ran("make", 2, "cc: no"), "make").is_same
