"""The demonstration is true: what its recorded answers say is what its files do, without anything of ours."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import codingagent
from tests.helpers import HANG_S
from tests.warm import start_command

DEMO = Path(codingagent.__file__).parent / "demo"
_FAILURE = re.compile(r"^FAIL: (\w+) .*?^(AssertionError: .*?)$", re.MULTILINE | re.DOTALL)


def test_its_files_are_somebodys_project() -> None:
    """They import what every Python has, and themselves."""
    for path in (DEMO / "workspace").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in (name.partition(".")[0] for name in names):
                assert name in {"durations", *sys.stdlib_module_names}, (path, name)


def test_what_fails_first_is_what_the_answer_mends() -> None:
    """A project's Python has no package of ours: -S leaves all packages out."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", *["-m", "unittest", "discover", "-s", "tests", "-t", "."]],
        cwd=DEMO / "workspace",
        capture_output=True,
        text=True,
        check=False,
    )
    assert dict(_FAILURE.findall(done.stderr)) == {
        "test_units_add_up": "AssertionError: 1800 != 5400",
        "test_parts_that_are_zero_are_left_out": "AssertionError: '1h 30m 0s' != '1h 30m'",
        "test_nothing_at_all": "AssertionError: '0h 0m 0s' != '0s'",
    }
    assert done.stderr.endswith("FAILED (failures=3)\n")
    said = (DEMO / "replies" / "2.txt").read_text("utf-8")
    assert '"1h 30m" gives 1800' in said
    assert 'never leaves out parts that are zero, and needs "0s" for nothing at all' in said


def test_the_demo_solves_its_task_and_says_that_the_answers_are_recorded(tmp_path: Path) -> None:
    """Design, command line: demo runs the whole loop on a small real task, said to be recorded.

    Its tests run by a Python that has nothing of ours.
    """
    variables = {**os.environ, "PATH": f"{_bare_python(tmp_path)}{os.pathsep}{os.environ['PATH']}"}
    with start_command(
        "demo", env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        said, _ = demo.communicate(timeout=HANG_S)
    assert demo.returncode == 0, said
    assert "The answers are recorded" in said
    first, _, second = said.partition("Turn 1: ")
    assert "FAILED python3 -m unittest" in first
    assert "AssertionError: '0h 0m 0s' != '0s'" in first
    assert "FAILED (failures=3)" in first
    assert "ok     python3 -m unittest" in second
    assert "Done: parse() added nothing up" in second
    folder = re.search(r"in (\S+), which is deleted", said)
    assert folder is not None
    assert not Path(folder[1]).exists()


def _bare_python(folder: Path) -> Path:
    """Return a folder with a `python3` that finds no packages, where a sandboxed command sees it."""
    shim = folder / "python3"
    shim.write_text(f'#!/bin/sh\nexec "{os.path.realpath(sys.executable)}" -S "$@"\n')
    shim.chmod(0o755)
    return folder
