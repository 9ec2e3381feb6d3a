"""What it costs to read a reply of whole files: against aider's parser on the same files, and in memory.

The contents are the standard library's own sources, cut at line ends into pieces of about five
kilobytes. Where aider-chat (0.86) can't be imported, its lines are left out.
"""

import importlib
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from codingagent.model.operations import CreateFile
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Step
from tests.benchmarks.measuring import Figure, ratio

COUNT = 2_000
PIECE_CHARACTERS = 5_000
LARGE_COUNT = 10_000

# Reads a reply as a session does, and tells the most memory that it took; with no file, reads nothing.
_CHILD = """
import re, sys
from pathlib import Path
from codingagent.protocols.tags import reply
from codingagent.model import encoding
if sys.argv[1:]:
    data = Path(sys.argv[1]).read_bytes()
    found = reply.read(encoding.decode_reply(data, "utf-8")[0])
    assert len(found.items) == int(sys.argv[2])
most = re.search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1]
sys.stderr.write(str(int(most) * 1024))
"""


def _pieces() -> Iterator[str]:
    """Yield real source text, a piece at a time, all of it once."""
    lines: list[str] = []
    size = 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if {"site-packages", "test", "tests"} & set(path.parts):
            continue
        for line in path.read_text("utf-8", "replace").split("\n"):
            lines.append(f"{line}\n")
            size += len(line) + 1
            if size >= PIECE_CHARACTERS:
                yield "".join(lines)
                lines, size = [], 0


def _contents(count: int) -> list[str]:
    """Return as many pieces as are wanted, from the first again where there are no more.

    A few sources have what a chat may have done to them, zero-width spaces: these are refused.
    """
    taken = [piece for piece in _pieces() if _created(_as_ours([piece])) == [piece]]
    return list(islice(cycle(taken), count))


def _created(text: str) -> list[str | bytes]:
    operations = [item.operation for item in reply.read(text).items if isinstance(item, Step)]
    return [each.content for each in operations if isinstance(each, CreateFile)]


def _as_ours(contents: list[str]) -> str:
    blocks = "".join(
        f'[CREATE_FILE path="src/part_{number}.py"]\n{content}[/CREATE_FILE]\n'
        for number, content in enumerate(contents)
    )
    return f'[REPLY session="a1b2c3d4" sequence="2"]\n{blocks}[END]\n'


def _as_aider(contents: list[str]) -> str:
    return "".join(
        f"src/part_{number}.py\n```python\n<<<<<<< SEARCH\n=======\n{content}>>>>>>> REPLACE\n```\n\n"
        for number, content in enumerate(contents)
    )


def against_aider() -> Iterator[Figure]:
    """Design, speed: new files as blocks of ours, and as SEARCH/REPLACE blocks with nothing to search."""
    try:
        aider = importlib.import_module("aider.coders.editblock_coder")
    except ImportError:
        return
    sources = _contents(COUNT)
    plain = [source.encode("ascii", "replace").decode() for source in sources]
    yield _against(aider, "ASCII", plain)
    # One character beyond the first 65,536 makes each of the answer's take four bytes.
    yield _against(aider, "Unicode", sources)


def _against(aider: Any, what: str, contents: list[str]) -> Figure:
    ours, theirs = _as_ours(contents), _as_aider(contents)

    def by_aider() -> list[Any]:
        return list(aider.find_original_update_blocks(theirs))

    assert _created(ours) == contents
    assert [new for _, _, new in by_aider()] == contents
    name = f"{len(contents)} new files, {len(ours) / 1e6:.0f} MB of {what}, read, against aider's parser"
    return ratio(name, lambda: reply.read(ours), by_aider, 0.125, 15)


def memory() -> Iterator[Figure]:
    """Design, speed: a reply of a hundred megabytes, from its bytes to its operations."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "reply.txt")
        contents = [piece.encode("ascii", "replace").decode() for piece in _contents(LARGE_COUNT)]
        path.write_text(_as_ours(contents), "utf-8")
        size = path.stat().st_size
        took = _most_memory(str(path), str(LARGE_COUNT)) - _most_memory()
    name = f"memory for a reply of {size / 1e6:.0f} MB, {LARGE_COUNT} new files"
    yield Figure(name, f"{took / 2**20:.0f} MiB", f"{size / 2**20:.0f} MiB", took / size, 5)


def _most_memory(*arguments: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *arguments], capture_output=True, text=True, check=True
    )
    return int(done.stderr.split()[-1])


ALL = (against_aider, memory)
