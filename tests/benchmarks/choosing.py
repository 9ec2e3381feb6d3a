"""What the choice of files from a task costs, with a repository of 1,000 commits and nothing cached."""

import os
import random
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from codingagent.agent.wanted_files import RankedFiles, Wanted
from codingagent.model.settings import Settings
from codingagent.process.runner import run_tool
from codingagent.process.select_sandbox import policy_of
from codingagent.workspace.git_files import Git
from codingagent.workspace.programs import find_program
from codingagent.workspace.workspace import Workspace
from tests.benchmarks.measuring import Figure

_TASK = "The discount of a cart must lower the total price of an order, and count the stock of an item"
_WORDS = ("cart", "total", "discount", "stock", "order", "price", "count", "item", "user", "value")
_COMMITS = 1_000


def choosing() -> Iterator[Figure]:
    """Up to 750 files at most 0.3 s, 5,000 files of 63 MB at most 2 s, of CPU; the best of three."""
    program = find_program("git", Path.cwd())
    if program is None:
        return
    for count, size_bytes, budget_s in ((750, 12_600, 0.3), (5_000, 12_600, 2.0)):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            _lay(root, program, count, size_bytes)
            git = Git(program, partial(run_tool, timeout_s=60), os.environ)
            workspace = Workspace(root, git=lambda git=git: git)  # type: ignore[misc]
            listing, policy = workspace.listing(), policy_of(Settings(), root)
            wanted = Wanted(_TASK, 12_000)

            taken_s = []
            for _ in range(3):
                begun_s = sum(os.times()[:4])
                RankedFiles(workspace, policy, listing, wanted, workspace.history()).show(200_000)
                taken_s.append(sum(os.times()[:4]) - begun_s)
            workspace.close()
        seconds = min(taken_s)
        name = f"choose files of {count} with {_COMMITS:,} commits"
        yield Figure(name, f"{seconds:.2f} s", f"{budget_s} s", seconds, budget_s, "s")


def _lay(root: Path, program: str, count: int, size_bytes: int) -> None:
    """Write files of lines like code, and a history that changes three of them each time."""
    chance = random.Random(1)
    lines = [f"    def {'_'.join(chance.choices(_WORDS, k=3))}(self): ...\n" for _ in range(5_000)]
    paths = [f"d{n % 40}/{chance.choice(_WORDS)}_{n}.py" for n in range(count)]
    each = size_bytes // (sum(map(len, lines)) // len(lines))
    for path in paths:
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("".join(chance.choices(lines, k=each)))
    told = []
    for number in range(_COMMITS):
        message = " ".join(chance.choices(_WORDS, k=4))
        told.append(f"commit refs/heads/main\ncommitter A <a@b> {number} +0000\ndata {len(message)}\n")
        told.append(f"{message}\n")
        told += [
            f"M 100644 inline {path}\ndata {len(str(number))}\n{number}\n" for path in chance.sample(paths, 3)
        ]
    variables = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    run = partial(subprocess.run, cwd=root, check=True, env=variables)
    run((program, "init", "-q", "-b", "main"))
    run((program, "fast-import", "--quiet"), input="".join(told).encode())


ALL = (choosing,)
