"""The lock: one home, one executor, and a dead one holds nothing."""

import contextlib
import os
import re
from pathlib import Path

import pytest

from codingagent.errors import WorkError
from codingagent.storage.lock import HomeLock
from tests.helpers import children, line_from, new_marker, none_left, python

HOLDER = """
import sys
from pathlib import Path
from codingagent.storage.lock import HomeLock
lock = HomeLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.readline()
lock.close()
print("let go", flush=True)
sys.stdin.readline()
"""

HOLDER_AT_WORK = """
import os, sys
from pathlib import Path
from codingagent.storage.lock import HomeLock
from codingagent.process.runner import Runner, environment
from codingagent.process.bubblewrap import Unconfined
lock = HomeLock(Path(sys.argv[1]))
runner = Runner(Unconfined(), environment(os.environ))
runner.run(f"setsid sleep {sys.argv[2]} & echo up; sleep {sys.argv[2]}", "/", 60,
           lambda text: print(text, flush=True))
"""


def test_a_second_holder_is_told_who_holds_it(tmp_path: Path) -> None:
    """Design, command line: a second one gets one line with the holder's pid."""
    path = tmp_path / "home" / "sessions" / ".lock"
    path.parent.mkdir(parents=True)
    with python(HOLDER, str(path)) as process:
        assert line_from(process) == "held"
        expected = rf"pid {process.pid}\) is at work in {re.escape(str(tmp_path / 'home'))}; "
        for _ in range(2):
            with pytest.raises(WorkError, match=expected):
                HomeLock(path)
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert line_from(process) == "let go"
        HomeLock(path).close()


def test_one_process_cannot_hold_it_twice(tmp_path: Path) -> None:
    """Design, command line: one home, one executor."""
    held = HomeLock(tmp_path / ".lock")
    with contextlib.closing(held), pytest.raises(WorkError, match=f"pid {os.getpid()}"):
        HomeLock(tmp_path / ".lock")
    HomeLock(tmp_path / ".lock").close()


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    """Design, nothing is lost: killed at any instant, the next `resume` goes on."""
    path = tmp_path / ".lock"
    with python(HOLDER, str(path)) as process:
        assert line_from(process) == "held"
        process.kill()
        process.wait()
        HomeLock(path).close()


def test_a_killed_holders_helpers_hold_nothing_either(tmp_path: Path) -> None:
    """Design, nothing is lost: a command that is still being ended keeps nobody waiting."""
    path, marker = tmp_path / ".lock", new_marker()
    with none_left(marker), python(HOLDER_AT_WORK, str(path), marker) as process:
        assert line_from(process) == "up"
        (supervisor,) = children(process.pid)
        open_files = [str(fd.readlink()) for fd in Path(f"/proc/{supervisor}/fd").iterdir()]
        assert str(path) not in open_files
        process.kill()
        process.wait()
        HomeLock(path).close()


def test_a_lock_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """Design, command line: one line, what, where."""
    with pytest.raises(WorkError, match=r"\.lock can't be written: No such file or directory"):
        HomeLock(tmp_path / "no" / ".lock")
