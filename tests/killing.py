"""What the kill tests share: a command line that is killed, and looks at what it left behind."""

import contextlib
import ctypes
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from codingagent.model.journal_entries import Record
from codingagent.model.settings import Settings
from tests.helpers import children, is_zombie, run_here, wait_until
from tests.sandboxes import needs_bwrap
from tests.warm import start_command

TIERS = ("none", "bwrap")

# Commands append to it. An ignore file names it, so that no undo takes back what tells of them.
LOG = "commands.log"

# linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36


def settings_for(tier: str) -> Settings:
    """Return settings under which commands run in that tier and no other."""
    if tier == "bwrap":
        needs_bwrap()
        return Settings(sandbox="require")
    return Settings(sandbox="off")


# --- killing ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def none_outlives() -> Iterator[None]:
    """Fail if what the block started lives on after it: whatever lost its parent becomes ours."""
    if sys.platform != "linux":
        yield
        return
    library = ctypes.CDLL(None)
    before = children(os.getpid())

    def left() -> set[int]:
        for pid in children(os.getpid()) - before:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return children(os.getpid()) - before

    library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
        wait_until(lambda: not left())
    finally:
        while found := left():
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        library.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def kill_when(
    home: Path, arguments: Sequence[str], condition: Callable[[], bool], linger_s: float = 0
) -> bool:
    """Runs a command line and kills it once a condition holds, or a little later.

    Nothing that it started may outlive it. False: it ended before, and well.
    """
    pause = threading.Event()
    with (
        none_outlives(),
        start_command(
            *("--home", str(home), *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        while not condition():
            if process.poll() is not None:
                assert process.stderr is not None
                # 3: it stopped because something awaits approval.
                assert process.returncode in (0, 3), process.stderr.read().decode()
                return False
            pause.wait(0.0002)
        until = time.perf_counter() + linger_s
        while time.perf_counter() < until:
            pass
        process.kill()
        return process.wait() == -signal.SIGKILL


def lines_of(journal: Path) -> int:
    """Return how many records a journal has."""
    return journal.read_bytes().count(b"\n")


def has_lines(journal: Path, count: int) -> Callable[[], bool]:
    """Return a condition: the journal has so many records."""
    return lambda: lines_of(journal) >= count


def has_text(path: Path) -> bool:
    """Return whether a file is there and has something in it."""
    return path.exists() and bool(path.read_bytes())


# --- looking ---------------------------------------------------------------------------------------

Tree = dict[str, tuple[str, bytes, int]]


def tree(root: Path, without: Sequence[str] = ()) -> Tree:
    """Return all files and links below a folder: kind, bytes (of a link its target), permissions."""
    found: Tree = {}
    for above, folders, files in os.walk(root):
        for name in files + folders:
            path = Path(above, name)
            key = path.relative_to(root).as_posix()
            what = path.lstat()
            if key in without:
                continue
            if stat.S_ISLNK(what.st_mode):
                found[key] = ("link", os.fsencode(path.readlink()), 0)
            elif stat.S_ISREG(what.st_mode):
                found[key] = ("file", path.read_bytes(), stat.S_IMODE(what.st_mode))
    return found


def command_line_here(home: Path, *arguments: str) -> tuple[int, str, str]:
    """Run a command line in this process; return its status and its streams."""
    done = run_here("--home", str(home), *arguments)
    return done.returncode, done.stdout, done.stderr


def everything(home: Path) -> Tree:
    """Return all files of a home, but for the lock, which says who held it last."""
    return tree(home, ("sessions/.lock",))


def logged(workspace: Path) -> list[int]:
    """Return the numbers that commands wrote to their log."""
    log = workspace / LOG
    return [int(word) for word in log.read_text("utf-8").split()] if log.exists() else []


def no_halves(home: Path) -> None:
    """Fails if a temporary file is left, of ours, of git's or of a write in the workspace."""
    patterns = ("*.tmp", "*.lock", "*.new", "tmp_*", "*.damaged-*", "fast_import_crash_*")
    left = [path for pattern in patterns for path in home.rglob(pattern)]
    halves = [path for path in left if path.name != ".lock"]
    assert not halves, halves


def kinds_of(records: Sequence[Record]) -> list[str]:
    """Return what each record is."""
    return [record.class_name for record in records]


def is_alive(pid: int) -> bool:
    """Return whether a process has not ended."""
    with contextlib.suppress(OSError):
        return not is_zombie(pid)
    return False
