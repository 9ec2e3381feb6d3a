"""What several answers to one request cost: the copy of a workspace, and checks that run side by side.

`python -m tests.benchmarks.best FOLDER` also says what a copy takes of the disk there: name a folder where
files can share blocks.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from codingagent.workspace.copies import copy_files
from tests.benchmarks.measuring import Figure, interleaved, milliseconds

_FOLDERS, _FILES = 600, 100
_LINES = "value = 1\n" * 40
# A copy has a name and an inode of its own for each file: what these take is judged beside files of 16 KB.
_LONGER = "value = 1\n" * 1_600
_CHECK_S = 10


def copies(place: str | None = None) -> Iterator[Figure]:
    """A copy of 60,000 files against another work tree of git's."""
    with tempfile.TemporaryDirectory(dir=place) as name:
        root = Path(name)
        source = root / "source"
        for number in range(_FOLDERS):
            folder = source / f"part_{number // 20}" / f"folder_{number}"
            folder.mkdir(parents=True)
            for file in range(_FILES):
                (folder / f"file_{file}.py").write_text(f"# {number} {file}\n{_LONGER if place else _LINES}")
        git = ("git", "-C", str(source), "-c", "user.name=x", "-c", "user.email=x@y", "-c", "gc.auto=0")
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x")):
            subprocess.run([*git, *words], check=True)
        listed = subprocess.run([*git, "ls-files"], check=True, capture_output=True, text=True)
        paths, numbers = listed.stdout.split("\n")[:-1], iter(range(100))
        os.sync()
        before = os.statvfs(root)
        copy_files(source, root / "counted", paths)
        os.sync()
        used = (before.f_bfree - os.statvfs(root).f_bfree) * before.f_frsize
        ours = partial(lambda: copy_files(source, root / f"copy_{next(numbers)}", paths))

        def peer() -> None:
            words = ("worktree", "add", "-q", "--detach", str(root / f"tree_{next(numbers)}"))
            subprocess.run([*git, *words], check=True)

        a, b = interleaved(ours, peer, 3)
        line = "a copy of 60,000 files for a candidate, against `git worktree add`"
        yield Figure(line, f"{a:.0f} ms", f"{b:.0f} ms", a / b, 2)
        if place is None:
            return
        size = sum((source / path).stat().st_size for path in paths)
        line = "what its files take of a disk that shares blocks"
        yield Figure(line, f"{used / 1e6:.1f} MB", f"{size / 1e6:.1f} MB", used / size, 0.05)


def checks() -> Iterator[Figure]:
    """Three answers in one command, each with a check of ten seconds, against two checks."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        ours = (sys.executable, "-m", "codingagent", "--home", str(root / "home"))
        run = partial(subprocess.run, check=True, capture_output=True)
        run([*ours, "new", "x", "--no-wait", "--check", f"sleep {_CHECK_S}"])
        files = [root / f"{number}.txt" for number in range(3)]
        for file in files:
            file.write_text(f'[CREATE_FILE path="a.txt"]\n{file.name}\n[/CREATE_FILE]\n')
        took = milliseconds(partial(run, [*ours, "try", *map(str, files)]))
        line = f"three candidates with a check of {_CHECK_S} s, against two such checks"
        yield Figure(line, f"{took / 1000:.1f} s", f"{2 * _CHECK_S} s", took / 2000 / _CHECK_S, 1.7)


ALL = (copies, checks)

if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        for each in (*copies(*sys.argv[1:]), *checks()):
            print(each)  # noqa: T201
