"""The lock: one home, one executor, and a dead one holds nothing."""

import re
import sys
from pathlib import Path

import pytest

from codingagent.errors import WorkError
from codingagent.storage.lock import HomeLock, is_held
from tests.helpers import children, line_from, new_marker, none_left, python

HOLDER = """
import sys
from pathlib import Path
from codingagent.storage.lock import HomeLock
with HomeLock(Path(sys.argv[1])).held(lambda said: None):
    print("held", flush=True)
    sys.stdin.readline()
print("let go", flush=True)
sys.stdin.readline()
"""

HOLDER_AT_WORK = """
import os, sys
from pathlib import Path
from codingagent.storage.lock import HomeLock
from codingagent.process.runner import Runner, environment
from codingagent.process.bubblewrap import Unconfined
runner = Runner(Unconfined(), environment(os.environ))
with HomeLock(Path(sys.argv[1])).held():
    runner.run(f"setsid sleep {sys.argv[2]} & echo up; sleep {sys.argv[2]}", "/", 60,
               lambda text: print(text, flush=True))
"""


class _SaidError(Exception):
    pass


def _say(text: str) -> None:
    raise _SaidError(text)


def test_a_second_one_waits_and_says_for_whom(tmp_path: Path) -> None:
    """Design, command line: a second one that comes meanwhile waits, and says for whom."""
    path = tmp_path / "home" / "sessions" / ".lock"
    path.parent.mkdir(parents=True)
    with python(HOLDER, str(path)) as process:
        assert line_from(process) == "held"
        expected = rf"pid {process.pid}\) is using {re.escape(str(tmp_path / 'home'))}; waiting"
        with pytest.raises(_SaidError, match=expected), HomeLock(path).held(_say):
            pass
        with python(HOLDER, str(path)) as second:
            assert second.poll() is None
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
            assert line_from(process) == "let go"
            assert line_from(second) == "held"


def test_a_lock_that_is_set_aside_is_anyones(tmp_path: Path) -> None:
    """Design, command line: the lock is held while one works, not while one waits."""
    path = tmp_path / ".lock"
    lock = HomeLock(path)
    with lock.held():
        assert is_held(path)
        with lock.set_aside(_say):
            with HomeLock(path).held(_say):
                assert is_held(path)
            assert not is_held(path)
        assert is_held(path)
    assert not is_held(path)


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    """Design, nothing is lost: killed at any instant, the next `resume` goes on."""
    path = tmp_path / ".lock"
    with python(HOLDER, str(path)) as process:
        assert line_from(process) == "held"
        process.kill()
        process.wait()
        assert not is_held(path)


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
        assert not is_held(path)


def test_a_lock_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """Design, command line: one line, what, where."""
    with pytest.raises(WorkError, match=r"\.lock can't be written: No such file or directory"):
        HomeLock(tmp_path / "no" / ".lock").held().__enter__()


NO_LOCKS = """
import ctypes, platform, struct, sys
from pathlib import Path
from codingagent.storage.lock import HomeLock
flock = {"x86_64": 73, "aarch64": 32}[platform.machine()]
# linux/filter.h: load the number of the call; if it is this one, it fails with ENOLCK.
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, flock), (0x06, 0, 0, 0x50000 | 37), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
try:
    with HomeLock(Path(sys.argv[1])).held(print):
        print("held", flush=True)
except Exception as fault:
    print(type(fault).__name__, fault, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a filter of Linux takes the locks away")
def test_a_disk_without_locks_is_no_other_process(tmp_path: Path) -> None:
    """Some network disks have none: whoever waited there would wait for ever."""
    with python(NO_LOCKS, str(tmp_path / ".lock")) as process:
        assert "WorkError" in (said := line_from(process))
        assert "can't be locked (No locks available): have the home on another disk" in said
