"""Races: someone exchanges a folder and a link out while the workspace is at work, and gains nothing."""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from codingagent.errors import OperationError
from codingagent.model.observations import digest_of
from codingagent.workspace.workspace import Workspace
from tests.helpers import can_swap, swapping, wait_until

# Of another length than what is inside: even a size tells where it came from.
SECRET = b"SECRET, outside"
INSIDE = b"inside"
NAMES = ("secret", "victim")

# How often is acted at least, and how often both outcomes must have come about, or there was no race.
ROUNDS, OFTEN = 1000, 20


@dataclass(frozen=True, slots=True)
class Arena:
    """A workspace where `d` is a folder one moment and a link out the next."""

    root: Path
    outside: Path
    workspace: Workspace

    def is_untouched(self) -> bool:
        """Return whether the files outside are the very same, and no others came."""
        return self._looks() == dict.fromkeys(NAMES, (SECRET, 1))

    def _looks(self) -> dict[str, tuple[bytes, int]]:
        return {p.name: (p.read_bytes(), p.lstat().st_nlink) for p in self.outside.iterdir()}


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    root, outside = tmp_path / "ws", tmp_path / "out"
    for folder in (root, outside, root / "d"):
        folder.mkdir()
    for folder, data in ((outside, SECRET), (root / "d", INSIDE)):
        for name in NAMES:
            (folder / name).write_bytes(data)
    (root / "swap").symlink_to(outside)
    if not can_swap(tmp_path):
        pytest.skip("two names can't be exchanged at once on this system")
    with contextlib.closing(Workspace(root)) as workspace, swapping(root / "d", root / "swap"):
        yield Arena(root, outside, workspace)


@pytest.fixture
def guarded(arena: Arena) -> Iterator[Arena]:
    """An arena outside of which nothing may change, inode or bytes."""
    watched = [arena.outside, *(arena.outside / name for name in NAMES)]
    before = [path.stat() for path in watched]
    yield arena
    assert arena.is_untouched()
    after = [path.stat() for path in watched]
    # The time of change tells also of what was made there and taken away again.
    looks = [(what.st_ino, what.st_mtime_ns, what.st_ctime_ns, what.st_mode) for what in before]
    assert looks == [(w.st_ino, w.st_mtime_ns, w.st_ctime_ns, w.st_mode) for w in after]


def race(act: Callable[[], object], rounds: int) -> None:
    """Act so often, and then until it was done often and refused often."""
    done = refused = 0

    def once() -> bool:
        nonlocal done, refused
        try:
            act()
            done += 1
        except OperationError:
            refused += 1
        return done > OFTEN < refused

    for _ in range(rounds):
        once()
    wait_until(once)


@pytest.fixture(params=[ROUNDS, pytest.param(30 * ROUNDS, marks=pytest.mark.deep)])
def rounds(request: pytest.FixtureRequest) -> int:
    count: int = request.param
    return count


def test_a_race_never_reads_outside(guarded: Arena, rounds: int) -> None:
    """Design, workspace: a link swapped in between check and use gains nothing, reading."""

    def read() -> None:
        assert guarded.workspace.read("d/secret").data == INSIDE

    race(read, rounds)


def test_a_race_never_makes_a_file_outside(guarded: Arena, rounds: int) -> None:
    """Design, workspace: a link swapped in between check and use gains nothing, creating."""
    numbers = iter(range(10**9))
    race(lambda: guarded.workspace.write(f"d/new-{next(numbers)}", b"x", None), rounds)


def test_a_race_never_replaces_a_file_outside(guarded: Arena, rounds: int) -> None:
    """Design, workspace: a link swapped in between check and use gains nothing, replacing."""

    def replace() -> None:
        guarded.workspace.check_writable("d/secret")
        seen = guarded.workspace.read("d/secret")
        assert seen.data == INSIDE
        guarded.workspace.write("d/secret", INSIDE, seen)

    race(replace, rounds)


def test_a_race_never_deletes_outside(guarded: Arena, rounds: int) -> None:
    """Design, workspace: a link swapped in between check and use gains nothing, deleting."""

    def delete() -> None:
        with contextlib.suppress(OperationError):
            guarded.workspace.write("d/victim", b"again", None)
        guarded.workspace.delete("d/victim")

    race(delete, rounds)


def test_a_race_never_looks_outside(guarded: Arena, rounds: int) -> None:
    """Design, workspace: a link swapped in gains nothing, listing, digesting, entering a folder."""

    def look() -> None:
        sizes = set(guarded.workspace.listing().files.values())
        assert sizes <= {len(INSIDE)}
        assert guarded.workspace.digest("d/secret") in (None, digest_of(INSIDE))
        with guarded.workspace.folder("d") as folder:
            assert os.stat(folder).st_ino != guarded.outside.stat().st_ino  # noqa: PTH116

    race(look, rounds)


# --- the attack is real ------------------------------------------------------------------------------


def naive_check(arena: Arena, path: str) -> Path:
    """Return a path if it is inside when it is looked at: the way that this is not done."""
    target = arena.root / path
    if not os.path.realpath(target).startswith(f"{arena.root.resolve()}{os.sep}"):
        raise OperationError("outside")
    return target


def naive_read(arena: Arena) -> bool:
    return naive_check(arena, "d/secret").read_bytes() == SECRET


def naive_write(arena: Arena) -> bool:
    naive_check(arena, "d/secret").write_bytes(INSIDE)
    return not arena.is_untouched()


def naive_delete(arena: Arena) -> bool:
    # The same folder name again and again: what is deleted may be gone, inside or outside.
    with contextlib.suppress(FileNotFoundError):
        naive_check(arena, "d/victim").unlink()
    return not arena.is_untouched()


@pytest.mark.parametrize("naive", [naive_read, naive_write, naive_delete])
def test_the_naive_way_does_escape(arena: Arena, naive: Callable[[Arena], bool]) -> None:
    """Safety, races: a look at the real path before the use is beaten by the same attack."""
    for _ in range(20 * ROUNDS):
        with contextlib.suppress(OperationError, OSError):  # realpath itself stumbles over a swap
            if naive(arena):
                return
    pytest.skip("the naive way was lucky here: it did not escape")
