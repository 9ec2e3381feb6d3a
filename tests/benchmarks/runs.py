"""What it costs to execute operations messages: against the same files written bare, and their size."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from codingagent.agent.space import Space
from tests.benchmarks.measuring import Figure, ratio

COUNT = 1000
CONTENT_BYTES = 10_000_000

# Runs a message as the command does, and tells the most memory that it took; with no file, nothing runs.
_CHILD = """
import re, sys
from codingagent.cli import main
from codingagent.agent.space import Space
if sys.argv[1:]:
    status = main.run(["--home", sys.argv[1], "run", sys.argv[2]])
    assert status == 0, status
most = re.search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1]
sys.stderr.write(str(int(most) * 1024))
"""


def creating() -> Iterator[Figure]:
    """Design, speed: many small files, as durable as a loop that syncs each of them."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "workspace").mkdir()
        (root / "bare").mkdir()
        files = {f"src/part_{n % 20}/file_{n}.py": f"VALUE = {n}\n" * 20 for n in range(COUNT)}
        operations = [{"type": "createFile", "path": path, "content": text} for path, text in files.items()]
        message = json.dumps({"protocolVersion": "1.0", "operations": operations})

        def ours() -> None:
            shutil.rmtree(root / "workspace" / "src", ignore_errors=True)
            run = space.run(message=message)
            assert all(getattr(event, "success", False) for event in run.events)

        def bare() -> None:
            shutil.rmtree(root / "bare" / "src", ignore_errors=True)
            for path, text in files.items():
                _write(root / "bare" / path, text.encode())

        with Space(root / "workspace", home=root / "home") as space:
            name = f"{COUNT} files created by a run, against a loop that syncs and renames each"
            yield ratio(name, ours, bare, 2, 5)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def memory() -> Iterator[Figure]:
    """Design, speed: one content of 10 MB, in and out."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        content = ("0123456789abcde\n" * (CONTENT_BYTES // 16)).ljust(CONTENT_BYTES, "x")
        least = _most_memory()
        for what, operation in (
            ("created", {"type": "createFile", "path": "a", "content": content, "overwrite": True}),
            ("read", {"type": "readFile", "path": "a"}),
        ):
            message = root / f"{what}.json"
            message.write_text(json.dumps({"protocolVersion": "1.0", "operations": [operation]}))
            took = _most_memory(str(root / "home"), str(message)) - least
            yield Figure(
                f"memory for a content of 10 MB {what}",
                f"{took / 2**20:.0f} MiB",
                f"{CONTENT_BYTES / 2**20:.1f} MiB",
                took / CONTENT_BYTES,
                6,
            )


def _most_memory(*arguments: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *arguments], capture_output=True, text=True, check=True
    )
    return int(done.stderr.split()[-1])


ALL = (creating, memory)
