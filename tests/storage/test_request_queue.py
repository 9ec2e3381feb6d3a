"""The queue: errands are done once, can be withdrawn up to then, and garbage on it harms nobody."""

import itertools
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from codingagent.errors import UsageError, WorkError
from codingagent.storage.lock import HomeLock
from codingagent.storage.request_queue import RequestQueue
from tests.helpers import REPOSITORY, cpu_below, line_from, python
from tests.killing import tree

STALE = "0" * 20 + "-" + "0" * 16


@pytest.fixture(name="queue")
def _queue(tmp_path: Path) -> RequestQueue:
    return RequestQueue(tmp_path / "desk")


def leave(queue: RequestQueue, data: bytes) -> str:
    name = queue.new_name()
    queue.leave(name, data)
    return name


def on(queue: RequestQueue) -> list[str]:
    return sorted(path.name for path in queue.folder.iterdir())


# --- an errand's way -------------------------------------------------------------------------------


def test_errands_are_taken_in_the_order_they_were_left_and_nothing_stays(
    queue: RequestQueue,
) -> None:
    names = [leave(queue, data) for data in (b"1", b"2", b"3")]
    taken = list(queue.take())
    assert [left.data for left in taken] == [b"1", b"2", b"3"]
    assert [left.name for left in taken] == names
    for left in taken:
        assert queue.fetch(left.name) is None
        queue.report(left.name, b"done " + left.data)
    assert [queue.fetch(name) for name in names] == [b"done 1", b"done 2", b"done 3"]
    assert [queue.fetch(name) for name in names] == [None, None, None]
    assert on(queue) == []


def test_one_that_is_withdrawn_is_not_done_and_one_that_is_taken_can_not_be_withdrawn(
    queue: RequestQueue,
) -> None:
    first, second = leave(queue, b"1"), leave(queue, b"2")
    assert queue.withdraw(first)
    assert [left.name for left in queue.take()] == [second]
    assert not queue.withdraw(second)
    assert not queue.withdraw(first)


def test_what_one_had_taken_who_was_killed_is_given_to_the_next(queue: RequestQueue) -> None:
    """Else anyone who asked would wait until that one ends."""
    name = leave(queue, b"1")
    assert [left.name for left in queue.take()] == [name]
    assert [left.name for left in RequestQueue(queue.folder).take()] == [name]
    queue.report(name, b"done")
    assert list(RequestQueue(queue.folder).take()) == []


def test_one_that_is_given_up_leaves_nothing(queue: RequestQueue) -> None:
    name = leave(queue, b"1")
    list(queue.take())
    queue.forget(name)
    assert on(queue) == []


def test_what_nobody_fetches_goes_after_an_hour_and_what_is_waited_for_stays(
    queue: RequestQueue,
) -> None:
    names = [leave(queue, b"1"), leave(queue, b"2")]
    long_ago = time.time() - 7200
    for path in queue.folder.iterdir():
        os.utime(path, (long_ago, long_ago))
    queue.keep(names[1])
    queue.open()
    assert on(queue) == [f"{names[1]}.asker", f"{names[1]}.errand"]


def test_more_than_can_be_handed_over_is_refused(queue: RequestQueue) -> None:
    with pytest.raises(UsageError, match="16 MiB at most; write less, or attach fewer files"):
        leave(queue, b"x" * (16 * 2**20 + 1))


@pytest.mark.skipif(os.name != "posix", reason="a file in the place of the folder, POSIX errors")
def test_a_queue_that_can_not_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "desk").write_text("x", "utf-8")
    with pytest.raises(WorkError, match="can't be made"):
        leave(RequestQueue(tmp_path / "desk"), b"1")


def test_a_report_that_can_not_be_written_is_said(queue: RequestQueue) -> None:
    with pytest.raises(WorkError, match="can't be written"):
        queue.report(STALE, b"done")


# --- garbage ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
def test_garbage_is_passed_over_and_nothing_outside_is_touched(
    queue: RequestQueue, tmp_path: Path
) -> None:
    """A link must not lead outside, a pipe not block, and a large file not fill the memory."""
    queue.open()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret", "utf-8")
    number = iter(range(1, 100))

    def at(suffix: str) -> Path:
        """Return a path of the queue that someone seems to wait for."""
        name = f"{next(number):020d}-{'a' * 16}"
        (queue.folder / f"{name}.asker").symlink_to(outside / "secret")
        return queue.folder / f"{name}{suffix}"

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
        (queue.folder / name).write_text("{}", "utf-8")
    # Where a report, or what it is first written to, leads outside.
    planted = at(".errand")
    planted.write_bytes(b"{}")
    planted.with_suffix(".asker").unlink()
    asker = HomeLock(planted.with_suffix(".asker"))
    planted.with_suffix(".report.tmp").symlink_to(outside / "secret")
    behind = at(".errand")
    behind.write_bytes(b"{}")
    behind.with_suffix(".report").symlink_to(outside / "secret")
    before = tree(outside)
    good = leave(queue, b"good")
    taken = list(queue.take())
    assert [left.name for left in taken] == [planted.stem, good]
    for left in taken:
        queue.report(left.name, b"done")
    assert queue.fetch(good) == b"done"
    assert queue.fetch(behind.stem) is None
    long_ago = time.time() - 7200
    for path in queue.folder.iterdir():
        os.utime(path, (long_ago, long_ago), follow_symlinks=False)
    queue.open()
    asker.close()
    assert tree(outside) == before


@pytest.mark.deep
def test_thousands_of_files_cost_no_time(queue: RequestQueue) -> None:
    queue.open()
    for number in range(5000):
        (queue.folder / f"{number}.errand").touch()
    name = leave(queue, b"1")
    with cpu_below(50):
        assert [left.name for left in queue.take()] == [name]


# --- many at once ----------------------------------------------------------------------------------

_LEAVER = """
import sys
from pathlib import Path
from codingagent.storage.request_queue import RequestQueue
queue = RequestQueue(Path(sys.argv[1]))
for number in range(40):
    name = queue.new_name()
    queue.leave(name, f"{sys.argv[2]} {number}".encode())
    if number % 4 == 0 and queue.withdraw(name):
        continue
    print(f"{sys.argv[2]} {number}", flush=True)
print("all", flush=True)
sys.stdin.read()  # what it asked for would die with it
"""


def test_each_of_many_that_are_left_at_once_is_taken_once_and_whole(queue: RequestQueue) -> None:
    """Two terminals speak at once; what was withdrawn in time is not done."""
    queue.open()
    words = [sys.executable, "-c", _LEAVER, str(queue.folder)]
    pipe = subprocess.PIPE
    leavers = [
        subprocess.Popen([*words, who], cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True)
        for who in ("a", "b", "c")
    ]
    taken: list[str] = []
    said: list[str] = []

    def listen(leaver: "subprocess.Popen[str]") -> None:
        assert leaver.stdout
        said.extend(itertools.takewhile(lambda line: line != "all\n", leaver.stdout))

    listeners = [threading.Thread(target=listen, args=(leaver,)) for leaver in leavers]
    for listener in listeners:
        listener.start()

    def take() -> None:
        for left in queue.take():
            taken.append(left.data.decode())
            queue.report(left.name, b"")

    while any(listener.is_alive() for listener in listeners):
        take()
    take()
    for leaver in leavers:
        leaver.communicate()
    assert sorted(taken) == sorted(line.rstrip("\n") for line in said)


def test_errands_die_with_the_process_that_left_them(queue: RequestQueue) -> None:
    """Design, command line: what is asked for dies with who typed it, and nothing is half written."""
    program = """
import sys
from pathlib import Path
from codingagent.storage.request_queue import RequestQueue
queue = RequestQueue(Path(sys.argv[1]))
data = b"x" * 4_000_000
queue.leave(queue.new_name(), data)
print("ready", flush=True)
while True:
    queue.leave(queue.new_name(), data)
"""
    for _ in range(5):
        with python(program, str(queue.folder)) as process:
            assert line_from(process) == "ready"
            process.kill()
            process.wait()
        left = [path for path in queue.folder.iterdir() if path.suffix == ".errand"]
        assert {path.stat().st_size for path in left} == {4_000_000}
        assert list(queue.take()) == []
        assert not [path for path in queue.folder.iterdir() if path.suffix == ".errand"]
