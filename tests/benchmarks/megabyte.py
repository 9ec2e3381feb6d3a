"""What an answer of 1 MB costs, whatever it is made of: CPU and memory of the turn that takes it.

`python -m tests.benchmarks.megabyte [SHAPE …]` takes these alone.
"""

import json
import os
import random
import re
import string
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks.measuring import Figure

# What nothing of 1 MB may cost.
_CPU_S, _MEMORY_MB = 3.0, 150.0
_LINES = 7_000
_CHILD = """
import os, re, sys
from codingagent.cli import main
status = main.run(sys.argv[1:])
most = re.search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1]
sys.stderr.write(f"\\n{status} {int(most) / 1024} {sum(os.times()[:4])}")
"""
Shape = tuple[dict[str, list[str]], str]
"""The lines of the files that an answer finds, and the answer."""


def program(count: int) -> list[str]:
    """Return the lines of a program of as many lines."""
    luck = random.Random(1)
    kinds = {0: "def function_{n}(left, right):", 8: "    return value_{n}", 9: ""}
    line = "    value_{n} = left[{n}] + right.name_{other}"
    return [kinds.get(n % 10, line).format(n=n, other=luck.randrange(999)) for n in range(count)]


def _edited(change: Callable[[str], tuple[str, str]], *paths: str, is_one: bool = False) -> Shape:
    """Return an edit of each assignment of a program: in turn in several files, or in one block."""
    lines = program(_LINES)
    parts = [
        (path, "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n".format(*change(line)))
        for line in lines
        if "left[" in line
        for path in paths
    ]
    if is_one:
        parts = [(paths[0], "".join(part for _, part in parts))]
    answer = "".join(f'[EDIT_FILE path="{path}"]\n{part}[/EDIT_FILE]\n' for path, part in parts)
    return dict.fromkeys(paths, lines), answer


def _by_number(line: str, number: int) -> str:
    return f'[EDIT_FILE path="a.py" start_line="{number}" end_line="{number}"]\n{line} # x\n[/EDIT_FILE]\n'


def _created(path: str, text: str) -> Shape:
    return {}, f'[CREATE_FILE path="{path}"]\n{text}[/CREATE_FILE]\n'


def _word(luck: random.Random, count: int) -> str:
    return "".join(luck.choices(string.ascii_letters + string.digits, k=count))


def shapes() -> Iterator[tuple[str, Shape]]:
    """Yield what costs most for its size, as it was found."""
    luck, lines = random.Random(2), program(_LINES)
    yield "edits of two files in turn", _edited(lambda line: (line, f"{line} # x"), "a.py", "b.py")
    yield "edits of one file", _edited(lambda line: (line, f"{line} # x"), "a.py", is_one=True)
    with_entity = lambda line: (line, line.replace("left", "a &lt; left"))  # noqa: E731
    yield "REPLACE with entities", _edited(with_entity, "a.py", is_one=True)
    escaped = lambda line: (line.replace("_", r"\_"), f"{line} # x".replace("_", r"\_"))  # noqa: E731
    yield "SEARCH with escapes", _edited(escaped, "a.py", is_one=True)
    deeper = lambda line: (f"  {line}", f"  {line} # x")  # noqa: E731
    yield "SEARCH of another indentation", _edited(deeper, "a.py", is_one=True)
    numbered = "".join(_by_number(line, at) for at, line in enumerate(lines, 1) if "left[" in line)
    yield "edits by line numbers", ({"a.py": lines}, numbered)
    tokens = "".join(f"TOKEN_{n} = 'ghp_{_word(luck, 36)}'\n" for n in range(17_000))
    yield "17,000 secrets", _created("a.py", tokens)
    said = "".join(f"the password is {_word(luck, 12)} for user {n}\n" for n in range(20_000))
    yield "passwords in prose", _created("a.txt", said)
    yield "250,000 fences", ({}, "```\n" * 250_000)
    yield "empty lines", ({}, "\n" * 1_000_000)
    yield "a file of empty lines", _created("a.txt", "\n" * 1_000_000)
    yield "a file of one line", _created("a.txt", "word is a " * 100_000 + "\n")
    yield "a new program", _created("a.py", "".join(f"{line}\n" for line in program(24_000)))
    files = {f"d/file_{n}.txt": ["x"] for n in range(2_000)}
    yield "2,000 patterns", (files, "".join(f'[READ_FILE path="d/**/*{n}.txt"]\n' for n in range(2_000)))
    settings = "".join(f"NAME_{n}={_word(luck, 20)}\n" for n in range(33_000))
    yield "a file of settings", _created(".env", settings)
    made = "".join(_created(f"d{n % 100}/f{n}.txt", "x\n")[1] for n in range(10_000))
    yield "10,000 new files", ({}, made)
    numbers = [f"value_{n} = {n}" for n in range(20_000)]
    hunk = "".join(f"-{line}\n+{line}{n}\n" for n, line in enumerate(numbers))
    head = "--- a/a.py\n+++ b/a.py\n@@ -1,20000 +1,20000 @@\n"
    yield "a diff of one hunk", ({"a.py": numbers}, f"```diff\n{head}{hunk}```\n")
    operations = [{"type": "readFile", "path": f"f{n}"} for n in range(25_000)]
    yield "JSON operations", ({}, json.dumps({"protocolVersion": "1.0", "operations": operations}))


def megabyte() -> Iterator[Figure]:
    chosen = sys.argv[1:] if __name__ == "__main__" else []
    for name, (files, answer) in shapes():
        if not chosen or name in chosen:
            cpu_s, memory_mb = _cost(files, answer)
            size = f"{len(answer) / 1e6:.2f} MB"
            yield Figure(f"{name}: CPU", f"{cpu_s:.2f} s", size, cpu_s, _CPU_S, "s")
            yield Figure(f"{name}: memory", f"{memory_mb:.0f} MB", size, memory_mb, _MEMORY_MB, "MB")


def _cost(files: dict[str, list[str]], answer: str) -> tuple[float, float]:
    """Return the seconds of CPU and the megabytes that `resume --once` takes for an answer."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for path, lines in files.items():
            file = home / "workspace" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{line}\n" for line in lines))
        words = ("new", "x", "--no-wait", "--context", "0", "--sandbox", "off")
        begun = [sys.executable, "-m", "codingagent", "--home", folder, *words]
        subprocess.run(begun, check=True, capture_output=True)
        (home / "inbox" / "answer.txt").write_text(answer)
        resumed = [sys.executable, "-c", _CHILD, "--home", folder, "resume", "--once", "--yes"]
        done = subprocess.run(resumed, capture_output=True, check=True)
    status, memory_mb, cpu_s = re.findall(rb"[\d.]+", done.stderr)[-3:]
    assert status == b"0", done.stderr
    return float(cpu_s), float(memory_mb)


ALL = (megabyte,)

if __name__ == "__main__":
    for figure in megabyte():
        sys.stdout.write(
            f"{'ok ' if figure.holds else 'OVER'} {figure.name} {figure.ours} of {figure.peer}\n"
        )
        sys.stdout.flush()
    sys.exit(os.EX_OK)
