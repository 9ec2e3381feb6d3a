"""How soon it is there: `--version`, `--help`, and the first request, against the least and against others.

CPU seconds of whole processes, so that what the disk does meanwhile does not count. The other programs
are found on PATH: files-to-prompt (0.6) and repomix (1.14) write a tree's files for a chat.
"""

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.measuring import Figure

# A machine has its moods.
ROUNDS = 25
_FILES = 1_000

# A program of ten lines, and what every program pays that has typer and one pydantic model.
_TEN_LINES = """\
import typer

app = typer.Typer()

@app.command()
def main(name: str, count: int = 1) -> None:
    for _ in range(count):
        print(f"hello {name}")

app()
"""
_TYPER_AND_PYDANTIC = """\
import typer
from pydantic import BaseModel

class Model(BaseModel):
    name: str
    count: int = 1

print(typer.__version__, Model(name="x"))
"""


def starts() -> Iterator[Figure]:
    """Whole processes from their start to their end."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        ten = folder / "ten.py"
        ten.write_text(_TEN_LINES)
        peer = [sys.executable, str(ten), "World"]
        for word in ("--version", "--help"):
            yield _figure(
                f"`{word}` against a typer program of ten lines", [_ours(), word], peer, folder, 1.15
            )
        tree = folder / "tree"
        _plant(tree)
        model = folder / "model.py"
        model.write_text(_TYPER_AND_PYDANTIC)
        new = [_ours(), "--home", str(folder / "home"), "new", "--no-wait", "--workspace"]
        new += [str(tree), "Say what this does"]
        name = f"`new --no-wait` on {_FILES:,} files"
        yield _figure(
            f"{name} against importing typer and pydantic", new, [sys.executable, str(model)], folder, 1.9
        )
        others = {
            "files-to-prompt": ["files-to-prompt", str(tree), "-o", str(folder / "prompt.txt")],
            "repomix": ["repomix", str(tree), "-o", str(folder / "mix.xml"), "--quiet"],
        }
        for program, line in others.items():
            if shutil.which(program):
                yield _figure(f"{name} against {program}", new, line, folder, 1.0)


def _figure(name: str, ours: list[str], peer: list[str], folder: Path, budget: float) -> Figure:
    a, b = [], []
    for number in range(ROUNDS + 1):
        times = _cpu_s(ours, folder), _cpu_s(peer, folder)
        if number:  # the first round fills the caches
            a.append(times[0])
            b.append(times[1])
    mine, theirs = statistics.median(a), statistics.median(b)
    return Figure(name, f"{mine * 1000:.0f} ms", f"{theirs * 1000:.0f} ms", mine / theirs, budget)


def _cpu_s(argv: list[str], folder: Path) -> float:
    """Runs a program to its end; gives the seconds of processor time that it took, with its children's."""
    variables = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    with Path(os.devnull).open("wb") as nowhere:
        actions = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)]
        pid = os.posix_spawnp(argv[0], argv, variables, file_actions=actions)
        _, status, used = os.wait4(pid, 0)
    assert status == 0, argv
    return used.ru_utime + used.ru_stime


def _ours() -> str:
    return str(Path(sys.executable).with_name("codingagent"))


def _plant(tree: Path) -> None:
    """Makes a tree of source files of about 4 kB, in folders of fifty."""
    lines = "".join(f"def function_{number}(value):\n    return value + {number}\n" for number in range(90))
    for number in range(_FILES):
        path = tree / f"package_{number // 50}" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines)


ALL = (starts,)
