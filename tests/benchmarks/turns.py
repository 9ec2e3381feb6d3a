"""What a turn costs anyone who waits for it: a reply in the inbox to the next request in the outbox."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from codingagent.storage import atomic_write
from tests.benchmarks.measuring import Figure, milliseconds

ROUNDS = 15

CREATES, EDITS = 9, 10

# Nobody answers sooner; what the agent does in that time is no one's loss.
_PAUSE_S = 1.0
_LOOK_EVERY_S = 0.0001
_PATIENCE_S = 30.0

_LINES = "".join(f"VALUE_{number} = {number}\n" for number in range(60))


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Delete:
    path: str


Operation = Create | Edit | Delete


def turns() -> Iterator[Figure]:
    """A turn of 20 file operations against the same ones bare, each renamed into place, synced once."""
    for files, budget in ((50, 20), (1000, 27)):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            lay_out(root / "workspace", files)
            lay_out(root / "bare", files)
            with _waiting(root) as answer:
                ours, peer = _timed(answer, root / "bare")
            name = f"a turn of {CREATES + EDITS + 1} file operations in {files} files, against them bare"
            yield Figure(name, f"{ours:.2f} ms", f"{peer:.2f} ms", ours / peer, budget)


def lay_out(root: Path, count: int) -> None:
    """Lays files there, ten in a folder."""
    for number in range(count):
        path = root / _path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"version = 0\n{_LINES}", "utf-8")


def _path(number: int) -> str:
    return f"part_{number // 10}/file_{number}.py"


def operations(turn: int) -> list[Operation]:
    """Return what one turn does. Every other one takes away what the one before it had made."""
    made = [f"part_{number % 5}/made_{number}.py" for number in range(CREATES)]
    if turn % 2:
        return [Delete(path) for path in made[1:]]
    edits = [
        Edit(_path(number * 4), f"version = {turn // 2}\n", f"version = {turn // 2 + 1}\n")
        for number in range(EDITS)
    ]
    creates = [Create(path, f"turn = {turn}\n{_LINES}") for path in made]
    return [*creates, *edits, Delete(made[0])]


def reply_of(turn: int, done: list[Operation]) -> str:
    """Return operations as an answer that is like no earlier one, and whole: neither is waited for."""
    return "\n".join((f"Turn {turn}.\n", *map(_block, done), "[END]\n"))


def _block(operation: Operation) -> str:
    match operation:
        case Create(path, text):
            return f'[CREATE_FILE path="{path}"]\n{text}[/CREATE_FILE]\n'
        case Edit(path, old, new):
            body = f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"
            return f'[EDIT_FILE path="{path}"]\n{body}[/EDIT_FILE]\n'
        case Delete(path):
            return f'[DELETE_FILE path="{path}"]\n'


def bare(root: Path, done: list[Operation]) -> None:
    """Does operations with as much durability as a turn has, and nothing else."""
    for operation in done:
        path = root / operation.path
        match operation:
            case Create():
                _replace(path, operation.text)
            case Edit():
                text = path.read_text("utf-8")
                assert operation.old in text
                _replace(path, text.replace(operation.old, operation.new, 1))
            case Delete():
                path.unlink()
    atomic_write.sync((root,))


def _replace(path: Path, text: str) -> None:
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:  # noqa: PTH123  # the bare loop has no ballast
        file.write(text)
    os.replace(temporary, path)  # noqa: PTH105  # as above


def _timed(answer: Callable[[str], float], root: Path) -> tuple[float, float]:
    ours: list[float] = []
    peer: list[float] = []
    for turn in range(2 * ROUNDS + 2):
        done = operations(turn)
        took = answer(reply_of(turn, done))
        took_bare = milliseconds(partial(bare, root, done))
        # The first of each kind does not count.
        if turn % 2 == 0 and turn:
            ours.append(took)
            peer.append(took_bare)
    return statistics.median(ours), statistics.median(peer)


@contextmanager
def _waiting(root: Path) -> Iterator[Callable[[str], float]]:
    """Yield what answers a `new` that waits, and tells how many ms later the next request was there."""
    home = root / "home"
    words = [sys.executable, "-m", "codingagent", "--home", str(home), "new", "a task"]
    words += ["--workspace", str(root / "workspace")]
    sequence = 1

    def outbox(number: int) -> Path | None:
        return next((home / "outbox").glob(f"*_seq{number:04d}.txt"), None)

    def answer(text: str) -> float:
        nonlocal sequence
        first = outbox(sequence)
        assert first is not None
        following = first.with_name(first.name.replace(f"{sequence:04d}", f"{sequence + 1:04d}"))
        part = home / "reply.part"
        part.write_text(text, "utf-8")
        time.sleep(_PAUSE_S)

        def drop() -> None:
            part.rename(home / "inbox" / "reply.txt")
            _await(following)

        took = milliseconds(drop)
        text = following.read_text("utf-8")
        assert "[FAILED]" not in text, text
        sequence += 1
        return took

    def _await(path: Path) -> None:
        until = time.perf_counter() + _PATIENCE_S
        while not path.exists():
            assert process.poll() is None, "it ended"
            assert time.perf_counter() < until, "no next request came"
            time.sleep(_LOOK_EVERY_S)

    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=root) as process:
        try:
            until = time.perf_counter() + _PATIENCE_S
            while outbox(1) is None and time.perf_counter() < until:
                time.sleep(0.01)
            # It arms its watch only then.
            time.sleep(1)
            yield answer
        finally:
            process.terminate()


ALL = (turns,)
