"""What size costs: a folder of 60,000 files, and an answer of 10,000 operations."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

from codingagent.model.observations import SETTLED_AFTER_S
from tests.benchmarks.measuring import Figure, milliseconds

_FOLDERS, _FILES = 600, 100
_LINES = "value = 1\n" * 40
_TURNS = 5
_EDIT = "<<<<<<< SEARCH\ntwo\n=======\nthree\n>>>>>>> REPLACE\n"
_OPERATIONS = 10_000
# A file in the inbox is left alone for so long: it may still grow.
_REST_MS = 1_000 * SETTLED_AFTER_S


def sizes() -> Iterator[Figure]:
    """The first turn takes in all files, as `git add`; a later one looks for changes, as `git status`."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        workspace = root / "home" / "workspace"
        for number in range(_FOLDERS):
            folder = workspace / f"part_{number // 20}" / f"folder_{number}"
            folder.mkdir(parents=True)
            for file in range(_FILES):
                (folder / f"file_{file}.py").write_text(f"# {number} {file}\n{_LINES}")
        _run("git", "init", "-q", str(root / "git"))
        git = ("git", f"--git-dir={root / 'git' / '.git'}", f"--work-tree={workspace}")
        add = milliseconds(partial(_run, *git, "add", "-A"))
        who = ("-c", "user.name=x", "-c", "user.email=x@y", "-c", "maintenance.auto=0", "-c", "gc.auto=0")
        _run(*git, *who, "commit", "-qm", "x")
        status = median(milliseconds(partial(_run, *git, "status", "-s")) for _ in range(_TURNS))
        ours = _agent(root / "home")
        ours("new", "x", "--no-wait", "--context", "0", "--sandbox", "off")
        start = median(milliseconds(partial(ours, "resume", "--once")) for _ in range(_TURNS))
        took = []
        for turn in range(_TURNS):
            text = f"[RUN_COMMAND]\necho {turn} > new_{turn}.txt\n[/RUN_COMMAND]\n"
            (root / "home" / "inbox" / f"{turn}.txt").write_text(text, "utf-8")
            took.append(milliseconds(partial(ours, "resume", "--once")) - start - _REST_MS)
    later = median(took[1:])
    name = "the first turn in 60,000 files, less its start, against `git add -A`"
    yield Figure(name, f"{took[0]:.0f} ms", f"{add:.0f} ms", took[0] / add, 1.3)
    name = "a later turn there, less its start, against `git status`"
    yield Figure(name, f"{later:.0f} ms", f"{status:.0f} ms", later / status, 6.5)


def answers() -> Iterator[Figure]:
    """10,000 operations in one answer, against the same writes, each synced and renamed into place."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        ours = _agent(root / "home")
        ours("new", "x", "--no-wait", "--context", "0", "--sandbox", "off")
        for what, budget, body in (
            ("created", 2.5, '[CREATE_FILE path="{path}"]\none {n}\ntwo\n[/CREATE_FILE]\n'),
            ("edited", 4, f'[EDIT_FILE path="{{path}}"]\n{_EDIT}[/EDIT_FILE]\n'),
        ):
            places = [(n, f"folder_{n // 100}/file_{n}.txt") for n in range(_OPERATIONS)]
            text = "".join(body.format(n=n, path=path) for n, path in places)
            (root / "home" / "inbox" / f"{what}.txt").write_text(text, "utf-8")
            took = milliseconds(partial(ours, "resume", "--once"))
            peer = milliseconds(partial(_write_each, root / "bare", places))
            line = f"{_OPERATIONS:,} files {what} in one answer, against them written and synced"
            yield Figure(line, f"{took:.0f} ms", f"{peer:.0f} ms", took / peer, budget)


def _write_each(root: Path, places: list[tuple[int, str]]) -> None:
    for n, path in places:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"{target.name}.tmp")
        with temporary.open("w", encoding="utf-8") as file:
            file.write(f"one {n}\ntwo\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)


def _agent(home: Path) -> Callable[..., None]:
    return partial(_run, sys.executable, "-m", "codingagent", "--home", str(home))


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


ALL = (sizes, answers)
