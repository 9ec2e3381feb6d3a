"""What the output of a check says, as the person is told before any change; checks.txt has a line a case."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from codingagent.model import check_outcome, plain_text
from codingagent.model.events import CommandRan
from codingagent.model.journal_entries import CheckEnded
from codingagent.model.session_state import Session
from tests import golden
from tests.helpers import cpu_below
from tests.rows import each_row


def ran(command: str, exit_code: int, output: str, ended_by: Any = "itself") -> CommandRan:
    return CommandRan(command, exit_code, output, 1.0, ended_by, "300 s" * (ended_by != "itself"))


def told(case: tuple[Any, ...]) -> str:
    """Return what the person is told, and whether all failures are known by name."""
    event = ran(*case)
    is_whole = check_outcome.failures_in(event).is_whole
    words = check_outcome.told_before(event, "here `pytest` is /usr/bin/pytest")
    return f"{words}{' (all known)' * is_whole}"


def brief(output: str, before: Sequence[str] = ()) -> str:
    return check_outcome.brief(ran("check", 1, output), before)


def printed_by(runner: str) -> str:
    """Return what a runner printed, as a request shows it; its version is in the file's name."""
    file = Path(__file__).parent / "runners" / f"{runner}.txt"
    return plain_text.without_controls(file.read_bytes().decode())


def read(runner: str) -> str:
    """Return what the person is told of an output, and the first failure in it, its lines joined."""
    output = printed_by(runner)
    first = check_outcome.first_failure(output).strip().split("\n")
    shown = " / ".join(line.strip() for line in first[:9] if line.strip())
    return f"{check_outcome.told_before(ran('check', 1, output), '')} | {shown}"


TABLES = {"checks.txt": told, "runners.txt": read}


@each_row(("runner", "expected"), golden.cases(__file__, "runners.txt"))
def test_failures_of_the_common_runners_are_read(runner: str, expected: str) -> None:
    """Their own output, recorded: names, the first failure; nothing that a test which passes printed."""
    assert read(runner) == expected
    assert "fetch keys" not in read(runner).partition(" | ")[0]
    assert len(brief(printed_by(runner))) < 6200


def test_several_runners_in_one_output_are_read_in_turn() -> None:
    """`npm test && pytest`, `make test`: each names its own, and each failure stands whole."""
    output = printed_by("vitest-4.1.12") + printed_by("go-1.27.3") + printed_by("rspec-3.12.0")
    output += "_____ test_a _____\na.py:3: E\n=== short test summary info ===\nFAILED a.py::test_a - x\n"
    names = check_outcome.failures_in(ran("make test", 1, output)).names
    assert names[1:4:2] == ("calc.test.ts > Calc > adds", "TestAdds/two")
    assert names[-2:] == ("Calc of two divides", "a.py::test_a")
    told = brief(output)
    assert "AssertionError: expected 3 to be 4" in told
    assert "_____ test_a _____\na.py:3: E\n" in told


def test_a_failure_of_the_same_name_is_new_where_there_is_one_more() -> None:
    """Many runners do not name the file: another one of that name is not an old one."""
    one = "test tests::a ... FAILED\n"
    first, more = ran("cargo test", 101, one), ran("cargo test", 101, one * 2)
    assert compared(first, more).new == ("tests::a",)
    assert compared(more, first).old == ("tests::a",)


def test_timing_colours_and_order_make_no_failure_a_new_one() -> None:
    for runner in ("vitest-4.1.12", "mocha-12.0.3", "node-20.20.2-spec", "maven-surefire-3.2.5"):
        output = printed_by(runner)
        again = re.sub(r"\d+(?:\.\d+)?(?=ms\b| s\b)", "77", output)
        found = compared(ran("x", 1, output), ran("x", 1, f"more\n{again}"))
        assert (len(found.old) > 1, found.new) == (True, ())


@each_row(("case", "expected"), golden.cases(__file__, "checks.txt"))
def test_what_a_check_says_before_any_change(case: tuple[Any, ...], expected: str) -> None:
    assert told(case) == expected


def compared(first: CommandRan, last: CommandRan, task: str = "task") -> check_outcome.Compared:
    before = CheckEnded(first, "", first.command)
    session = Session("0" * 8, task, "/", "", "", check_before=before, last_checked=last)
    return check_outcome.compared(replace(session, checked_by=last.command))


def test_a_failure_is_an_old_one_by_its_name_or_its_whole_output() -> None:
    """Whatever else is printed, and however long it took."""
    end = "1 failed, 1 passed in {:.2f}s\n"
    first = ran("pytest", 1, "FAILED a.py::test_a - x\n" + end.format(1))
    same = ran("pytest", 1, "more\nFAILED a.py::test_a - y\n" + end.format(2))
    assert compared(first, same) == check_outcome.Compared(("a.py::test_a",), (), True, True)
    assert not compared(first, same, "make the tests pass").counts_not
    other = ran("pytest", 1, "FAILED a.py::test_b - x\n" + end.format(1))
    assert compared(first, other) == check_outcome.Compared((), ("a.py::test_b",))
    named_anew = ran("pytest -q", 1, same.output)
    assert compared(first, named_anew) == check_outcome.Compared()
    part = "SUBFAILED[a] (n='b - c') a.py::T::test_a - x\n1 failed, 1 passed, 2 subtests passed in 0.1s\n"
    found = compared(ran("pytest", 1, part), ran("pytest", 1, f"more\n{part}"))
    assert found == check_outcome.Compared(("a.py::T::test_a > [a] (n='b - c')",), (), True, True)
    nothing = ran("make", 2, "cc: no such file\n0.1s\n")
    later = ran("make", 2, "cc: no such file\n0.3s\n")
    assert compared(nothing, later) == check_outcome.Compared(is_same=True)
    assert compared(nothing, ran("make", 2, "cc: no")) == check_outcome.Compared()


def test_a_model_is_shown_the_first_failures_whole_and_equal_ones_counted() -> None:
    """Without warnings and what passed; the end is there, whatever the length."""

    def failed(name: str, line: str) -> str:
        head = f"{'_' * 9} {name} {'_' * 9}"
        return f"{head}\n\n    def {name}():\n>       {line}\nE       {line}\n\na.py:3: E\n"

    text = "..F.  [ 80%]\na.py::test_x PASSED [ 90%]\n=== FAILURES ===\n"
    text += "".join(
        failed(f"test_{n}", "raise ConnectionError" if n % 2 else f"assert {'x' * n}") for n in range(40)
    )
    text += "=== warnings summary ===\na.py:1: DeprecationWarning\n-- Docs: https\n"
    text += "=== short test summary info ===\nFAILED a.py::test_0 - x\n\n- a\n+ b\n"
    text += "FAILED a.py::test_2 - y\n  y\n40 failed, 1 passed in 1.0s\n"
    told = brief(text * 3)
    assert len(told) < 6100
    told = brief(text)
    assert told.startswith("=== FAILURES ===\n_________ test_0 _________\n")
    assert told.count("raise ConnectionError") == 2
    assert "… 19 more fail in the same way: test_3, test_5, test_7 and 16 more\n" in told
    assert "Warning" not in told
    assert "PASSED" not in told
    assert told.endswith("FAILED a.py::test_0 - x\nFAILED a.py::test_2 - y\n40 failed, 1 passed in 1.0s\n")
    assert "left out" not in told
    old = brief(text, ["a.py::test_0", "a.py::test_1"])
    assert old.startswith("=== FAILURES ===\n_________ test_2 _________\n")
    long = brief("".join(failed(f"test_{n}", f"assert {'x' * n * 99}") for n in range(9)))
    assert "more failures left out" in long
    assert len(long) < 6100
    assert brief("x\n" * 9) == "x\n" * 9


def test_of_a_check_that_passes_the_summary_is_shown() -> None:
    """What passed says nothing: a model is not sent a page of it each turn. Several runs are summed up."""
    cargo = "test result: ok. {} passed; 0 failed; {} ignored; 0 measured; 0 filtered out; finished in 0s\n"
    page = "".join(f"src/a{n}.py  {n}  0  100%\n" for n in range(90))
    for output, shown in (
        (f"{page}5 passed, 1 skipped in 0.31s\n", "5 passed, 1 skipped"),
        (f"{page}Tests:       3 passed, 3 total\nTime: 1 s\nRan all test suites.\n", "3 passed, 3 total"),
        (cargo.format(12, 0) + cargo.format(0, 3) + f"   Doc-tests a\n{cargo.format(4, 0)}", "16 passed"),
        ("5 passed, 1 skipped in 0.31s\n12 passed in 2s\n", "17 passed, 1 skipped"),
        ("  Tests  3 passed | 2 skipped (5)\n  Tests  4 passed (4)\n", "7 passed, 2 skipped"),
        ("-----\n9 tests, 27 assertions, 0 failures, 0 errors\n100% passed\n", "9 tests"),
        ("..\nFinished in 0.05 seconds\n9 tests, 0 failures\nRandomized with seed 0\n", "9 tests"),
        ("ℹ tests 9\nℹ suites 1\nℹ pass 8\nℹ fail 0\nℹ skipped 1\nℹ duration_ms 5.4\n", "pass 8"),
        (f"{page}a\nb\nc\n\n", "a\nb\nc"),
        ("", ""),
    ):
        assert check_outcome.brief(ran("make", 0, output)) == shown
    assert len(check_outcome.brief(ran("make", 0, "x" * 9_000))) < 700


def test_a_failure_that_a_command_and_the_check_print_is_shown_once() -> None:
    """By the check, which ran last; another failure of the command stays, and so does what only it prints."""
    check = printed_by("vitest-4.1.12")
    again = re.sub(r"\d+(?=ms\b)", "77", check)

    def left(output: str, code: int = 1) -> str:
        return check_outcome.left_of(ran("npx vitest run", code, output), ran("npm test", 1, check))

    assert "expected 3 to be 4" in again
    assert "expected 3 to be 4" not in left(again)
    assert "AssertionError: other" in left(again.replace("expected 3 to be 4", "other"))
    assert left(again, 0) == again
    error = "cc -c a.c\na.c:1:1: error: unknown type name 'foo'\n"
    make = ran("make && ./test", 2, error + "make: *** [Makefile:2: test] Error 1\n")
    assert check_outcome.left_of(ran("cc -c a.c", 1, error), make) == ""
    assert check_outcome.left_of(ran("cc -c a.c", 1, f"{error}b.c: error\n"), make) == f"{error}b.c: error\n"
    assert check_outcome.left_of(ran(" make && ./test", 2, "other"), make) == ""


@pytest.mark.parametrize("text", ["x" + " " * 20_000, "a > " * 5_000, "1) a::b" * 3_000])
def test_no_line_of_an_output_takes_long_to_look_through(text: str) -> None:
    """A command may print anything: as long a line as an output may have costs no square of its length."""
    with cpu_below(3):
        brief(text)
        check_outcome.failures_in(ran("x", 1, text))
