"""`pytest --workers N`: every test is reported once, whatever becomes of its worker."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]

TESTS = """
import os
import pytest

@pytest.mark.parametrize("number", range(20))
def test_that_holds(number, tmp_path):
    assert not list(tmp_path.iterdir())

def test_that_fails(capfd):
    os.write(1, b"said before")
    assert capfd.readouterr().out == "said"

def test_that_prints_and_fails():
    os.system("echo from a child")
    assert False

def test_that_ends_its_worker():
    os._exit(3)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="without fork the tests run one by one")
def test_a_failure_and_the_end_of_a_worker_are_reported_and_all_others_run(tmp_path: Path) -> None:
    (tmp_path / "test_them.py").write_text(TESTS, "utf-8")
    options = ["-p", "tests.workers", "-p", "no:cacheprovider", "--workers", "4", "-c", os.devnull]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", tmp_path, tmp_path],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "its worker ended before the test did" in done.stdout
    # The last test ends its worker, so no test after it can be lost with it.
    assert "3 failed, 20 passed" in done.stdout
    assert "said before" in done.stdout
    assert "from a child" in done.stdout
