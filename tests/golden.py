"""Tables of what a function makes of an input: text files with a line a case, read by people.

A line is the input as Python writes it, a tab, and what comes of it. A line that begins with "# " says
what the cases below it show. `python -m tests.golden` writes all outcomes anew: `git diff` then shows what
a change of the code changed.
"""

import ast
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Show = Callable[[Any], str]
Read = Callable[[str], Any]
TESTS = Path(__file__).parent


def cases(test: str, name: str, read: Read = ast.literal_eval) -> list[Any]:
    """Return the input and the outcome of each line in the table beside a test's file."""
    table = Path(test).with_name(name)
    return [
        pytest.param(read(given), outcome, id=f"{table.stem}-{number}")
        for number, given, outcome in _lines(table)
    ]


def text(test: str, name: str) -> str:
    """Return a text beside a test's file, which a function of its `TEXTS` makes."""
    return Path(test).with_name(name).read_text("utf-8")


def _lines(table: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(table.read_text("utf-8").split("\n"), 1):
        if line and not line.startswith("# "):
            given, _, outcome = line.partition("\t")
            yield number, given, outcome


def _write_anew() -> None:
    for test in sorted(TESTS.rglob("test_*.py")):
        source = test.read_text("utf-8")
        if "golden.cases(" in source or "golden.text(" in source:
            module = importlib.import_module(".".join(test.relative_to(TESTS.parent).with_suffix("").parts))
            for name, make in getattr(module, "TEXTS", {}).items():
                test.with_name(name).write_text(make(), "utf-8", newline="\n")
            read: Read = getattr(module, "READ", ast.literal_eval)
            for name, show in getattr(module, "TABLES", {}).items():
                table = test.with_name(name)
                lines = table.read_text("utf-8").split("\n")
                for number, given, _ in _lines(table):
                    outcome = show(read(given))
                    assert "\n" not in outcome
                    lines[number - 1] = f"{given}\t{outcome}"
                table.write_text("\n".join(lines), "utf-8", newline="\n")


if __name__ == "__main__":
    _write_anew()
