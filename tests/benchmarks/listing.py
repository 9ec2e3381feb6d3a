"""What a listing costs: against `git ls-files` on the same tree, and in memory."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from codingagent.process.runner import run_tool
from codingagent.workspace.git_files import Git
from codingagent.workspace.programs import find_program
from codingagent.workspace.workspace import Workspace
from tests.benchmarks.measuring import Figure, ratio

_RULES = """\
# built
node_modules/
__pycache__/
*.py[cod]
/dist/
*.log
*~
.env
coverage*.xml
!keep.log
"""
_INNER_RULES = "/build/\n*.tmp\nout_*/gen/\n"

# Begins a session as the command does, and tells the most memory that the process itself took.
_CHILD = """
import re, sys
from codingagent.cli import main
assert main.run(["new", "--here", "--no-wait", "task"]) == 0
sys.stderr.write("VmHWM " + re.search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1])
"""


def _lay(root: Path, program: str, own: dict[str, str]) -> None:
    """Makes 100,000 files: 30,000 are listed, half of them tracked; ignored ones lie among them, too."""
    _write(root, [".gitignore"], _RULES)
    for part in range(20):
        package = root / f"pkg{part}"
        _write(package, [".gitignore"], _INNER_RULES)
        for number in range(30):
            source = package / f"src{number}"
            names = [f"mod_{n}.py" for n in range(48)] + ["notes.txt", "keep.log"]
            _write(source, names + [f"mod_{n}.pyc" for n in range(8)])
            _write(source, [f"run_{n}.log" for n in range(4)])
            _write(source / "__pycache__", [f"mod_{n}.pyc" for n in range(12)])
        _write(package / "build", [f"{n}.o" for n in range(240)])
        for number in range(111):
            library = package / "node_modules" / f"lib{number}" / "dist"
            _write(library, [f"chunk{n}.js" for n in range(23)])
    subprocess.run([program, "init", "-q", root], env=own, check=True)
    tracked = [f"pkg{part}" for part in range(10)]
    subprocess.run([program, "-C", root, "add", "--", *tracked], env=own, check=True)


def _write(folder: Path, names: list[str], text: str = "x = 1\n" * 5) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(text, "utf-8")


def listing() -> Iterator[Figure]:
    """Design, speed: a workspace of 100,000 files, of which 70,000 are ignored."""
    with tempfile.TemporaryDirectory(prefix="codingagent-bench-") as name:
        home, root = Path(name).resolve() / "home", Path(name).resolve() / "tree"
        program = find_program("git", root)
        if program is None:
            return
        own = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
        _lay(root, program, own)
        words = [program, "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"]

        def git() -> bytes:
            return subprocess.run(words, env=own, stdout=subprocess.PIPE, check=True).stdout

        asked = Git(program, run_tool, own)
        with contextlib.closing(Workspace(root, git=lambda: asked)) as workspace:
            listed = set(workspace.listing().files)
            assert listed == set(os.fsdecode(git()).split("\0")) - {""}
            what = f"a listing of {len(listed)} of 100,000 files against `git ls-files`"
            yield ratio(what, workspace.listing, git, 1.8, 15)
        done = subprocess.run(
            [sys.executable, "-c", _CHILD],
            env={**os.environ, "XDG_STATE_HOME": str(home), "PYTHONPATH": str(Path.cwd())},
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
        found = re.search(r"VmHWM (\d+)", done.stderr)
        assert found is not None
        took = int(found[1]) / 1024
        yield Figure("memory of `new --no-wait` there", f"{took:.0f} MB", "120 MB", took, 120, "MB")


ALL = (listing,)
