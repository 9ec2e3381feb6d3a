"""The desk: errands are done once, can be withdrawn up to then, and garbage on it harms nobody."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codingagent.errors import UsageError, WorkError
from codingagent.storage.request_queue import Desk
from tests.helpers import REPOSITORY, cpu_below, line_from, python
from tests.killing import tree

STALE = "0" * 20 + "-" + "0" * 16


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk")


def leave(desk: Desk, data: bytes) -> str:
    name = desk.new_name()
    desk.leave(name, data)
    return name


def on(desk: Desk) -> list[str]:
    return sorted(path.name for path in desk.folder.iterdir())


# --- an errand's way -------------------------------------------------------------------------------


def test_errands_are_taken_in_the_order_they_were_left_and_nothing_stays(desk: Desk) -> None:
    names = [leave(desk, data) for data in (b"1", b"2", b"3")]
    taken = list(desk.take())
    assert [left.data for left in taken] == [b"1", b"2", b"3"]
    assert [left.name for left in taken] == names
    for left in taken:
        assert desk.fetch(left.name) is None
        desk.report(left.name, b"done " + left.data)
    assert [desk.fetch(name) for name in names] == [b"done 1", b"done 2", b"done 3"]
    assert [desk.fetch(name) for name in names] == [None, None, None]
    assert on(desk) == []


def test_one_that_is_withdrawn_is_not_done_and_one_that_is_taken_can_not_be_withdrawn(
    desk: Desk,
) -> None:
    first, second = leave(desk, b"1"), leave(desk, b"2")
    assert desk.withdraw(first)
    assert [left.name for left in desk.take()] == [second]
    assert not desk.withdraw(second)
    assert not desk.withdraw(first)


def test_what_one_had_taken_who_was_killed_is_given_to_the_next(desk: Desk) -> None:
    """Else whoever asked would wait until that one ends."""
    name = leave(desk, b"1")
    assert [left.name for left in desk.take()] == [name]
    assert [left.name for left in Desk(desk.folder).take()] == [name]
    desk.report(name, b"done")
    assert list(Desk(desk.folder).take()) == []


def test_one_that_is_given_up_leaves_nothing(desk: Desk) -> None:
    name = leave(desk, b"1")
    list(desk.take())
    desk.forget(name)
    assert on(desk) == []


def test_what_nobody_fetches_goes_after_an_hour_and_what_is_waited_for_stays(desk: Desk) -> None:
    names = [leave(desk, b"1"), leave(desk, b"2")]
    long_ago = time.time() - 7200
    for name in names:
        os.utime(desk.folder / f"{name}.errand", (long_ago, long_ago))
    desk.keep(names[1])
    desk.open()
    assert on(desk) == [f"{names[1]}.errand"]


def test_more_than_can_be_handed_over_is_refused(desk: Desk) -> None:
    with pytest.raises(UsageError, match="16 MiB at most; write less, or attach fewer files"):
        leave(desk, b"x" * (16 * 2**20 + 1))


@pytest.mark.skipif(os.name != "posix", reason="a file in the place of the folder, POSIX errors")
def test_a_desk_that_can_not_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "desk").write_text("x", "utf-8")
    with pytest.raises(WorkError, match="can't be made"):
        leave(Desk(tmp_path / "desk"), b"1")


def test_a_report_that_can_not_be_written_is_said(desk: Desk) -> None:
    with pytest.raises(WorkError, match="can't be written"):
        desk.report(STALE, b"done")


# --- garbage ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
def test_garbage_is_passed_over_and_nothing_outside_is_touched(desk: Desk, tmp_path: Path) -> None:
    """A link must not lead outside, a pipe not block, and a large file not fill the memory."""
    desk.open()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret", "utf-8")
    number = iter(range(1, 100))

    def at(suffix: str) -> Path:
        return desk.folder / f"{next(number):020d}-{'a' * 16}{suffix}"

    at(".errand").symlink_to(outside / "secret")
    at(".taken").symlink_to(outside / "secret")
    at(".errand").symlink_to(outside)
    at(".errand").symlink_to(outside / "missing")
    at(".errand").mkdir()
    at(".taken").mkdir()
    os.mkfifo(at(".errand"))
    os.mkfifo(at(".taken"))
    with at(".errand").open("wb") as large:
        large.truncate(100 * 2**20)
    for name in ("x.errand", ".errand", "-", "a\nb.errand", "é.errand", "x" * 200 + ".errand"):
        (desk.folder / name).write_text("{}", "utf-8")
    # Where a report, or what it is first written to, leads outside.
    planted = at(".errand")
    planted.write_bytes(b"{}")
    planted.with_suffix(".report.tmp").symlink_to(outside / "secret")
    behind = at(".errand")
    behind.write_bytes(b"{}")
    behind.with_suffix(".report").symlink_to(outside / "secret")
    before = tree(outside)
    good = leave(desk, b"good")
    taken = list(desk.take())
    assert [left.name for left in taken] == [planted.stem, good]
    for left in taken:
        desk.report(left.name, b"done")
    assert desk.fetch(good) == b"done"
    assert desk.fetch(behind.stem) is None
    long_ago = time.time() - 7200
    for path in desk.folder.iterdir():
        os.utime(path, (long_ago, long_ago), follow_symlinks=False)
    desk.open()
    assert tree(outside) == before


def test_thousands_of_files_cost_no_time(desk: Desk) -> None:
    desk.open()
    for number in range(5000):
        (desk.folder / f"{number}.errand").touch()
    name = leave(desk, b"1")
    with cpu_below(50):
        assert [left.name for left in desk.take()] == [name]


# --- many at once ----------------------------------------------------------------------------------

_LEAVER = """
import sys
from pathlib import Path
from codingagent.storage.request_queue import Desk
desk = Desk(Path(sys.argv[1]))
for number in range(40):
    name = desk.new_name()
    desk.leave(name, f"{sys.argv[2]} {number}".encode())
    if number % 4 == 0 and desk.withdraw(name):
        continue
    print(f"{sys.argv[2]} {number}", flush=True)
"""


def test_each_of_many_that_are_left_at_once_is_taken_once_and_whole(desk: Desk) -> None:
    """Two terminals speak at once; what was withdrawn in time is not done."""
    desk.open()
    words = [sys.executable, "-c", _LEAVER, str(desk.folder)]
    leavers = [
        subprocess.Popen([*words, who], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
        for who in ("a", "b", "c")
    ]
    taken: list[str] = []

    def take() -> None:
        for left in desk.take():
            taken.append(left.data.decode())
            desk.report(left.name, b"")

    while any(process.poll() is None for process in leavers):
        take()
    take()
    said = [line for process in leavers for line in process.communicate()[0].splitlines()]
    assert sorted(taken) == sorted(said)


def test_one_that_is_killed_while_it_leaves_leaves_nothing_half(desk: Desk) -> None:
    program = """
import sys
from pathlib import Path
from codingagent.storage.request_queue import Desk
desk = Desk(Path(sys.argv[1]))
data = b"x" * 4_000_000
desk.leave(desk.new_name(), data)
print("ready", flush=True)
while True:
    desk.leave(desk.new_name(), data)
"""
    for _ in range(5):
        with python(program, str(desk.folder)) as process:
            assert line_from(process) == "ready"
            process.kill()
            process.wait()
        assert {len(left.data) for left in desk.take()} == {4_000_000}
        for path in desk.folder.iterdir():
            path.unlink()
