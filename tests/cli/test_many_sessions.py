"""A home with many sessions: commands look at the times of files, and read few of them."""

import os
from pathlib import Path

import pytest

from codingagent.model.journal_entries import (
    Record,
    RequestWritten,
    SessionClosed,
    SessionStarted,
    encode_record,
)
from codingagent.storage.homes import NEWEST
from tests import warm
from tests.helpers import command_line

SESSIONS = 1000
AT = "2025-01-15T10:{:02}:{:02}Z".format

# Counts the journals that a command opens.
_COUNTING = """
import sys
opened = []
sys.addaudithook(lambda event, what: event == "open" and opened.append(str(what[0])))
from codingagent.cli import main
status = main.run(sys.argv[1:])
sys.stdout.flush()
journals = sum(name.endswith(".jsonl") for name in opened)
sys.stderr.write(f"\\n{status} {journals} {len(opened)}\\n")
"""


def lay_out(home: Path, count: int = SESSIONS) -> None:
    """Lay out a home of complete sessions, the last ones waiting; `task 0` is the oldest."""
    for name in ("inbox", "outbox", "workspace"):
        (home / name).mkdir(parents=True)
    for number in range(count):
        folder = home / "sessions" / f"{number:08x}"
        folder.mkdir(parents=True)
        at = AT(number // 60, number % 60)
        started = SessionStarted(folder.name, f"task {number}", str(home / "workspace"), at)
        records: list[Record] = [started, RequestWritten(1, at)]
        if number < count - 5:
            records.append(SessionClosed(at))
        journal = folder / "journal.jsonl"
        journal.write_bytes(b"".join(map(encode_record, records)))
        os.utime(journal, ns=(10**9 * (number + 1),) * 2)
    (home / "outbox" / f"{count - 1:08x}_seq0001.txt").write_text("a request\n")


def counted(home: Path, *words: str) -> tuple[int, int, int, str]:
    """Return the status, how many journals and how many files were opened, and what was printed."""
    done = warm.run(_COUNTING, "--home", str(home), *words, capture_output=True, text=True)
    *rest, last = done.stderr.rstrip().split("\n")
    status, journals, files = map(int, last.split())
    return status, journals, files, done.stdout + "\n".join(rest)


@pytest.fixture(name="home", scope="module")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("many") / "home"
    lay_out(home)
    return home


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "words", ["list", "show", "resume --once", "say words", "refresh", "approve", "config", "copy"]
)
def test_a_command_reads_few_of_many_sessions(home: Path, words: str) -> None:
    """Design, command line: the latest is found by what is cheap to know."""
    status, journals, files, said = counted(home, *words.split())
    assert (journals <= 4 * NEWEST + 40, files <= 600) == (True, True), (journals, files)
    assert status in (0, 2), said


def test_list_shows_the_latest_and_all_the_rest(home: Path) -> None:
    """Design, command line: what is left out is said, with how to see it."""
    _, _, _, said = counted(home, "list")
    lines = [line for line in said.split("\n") if "task" in line]
    assert f"task {SESSIONS - 1}" in said
    assert f"these are the latest {NEWEST} of {SESSIONS}: --all lists the others, too" in said
    assert len(lines) <= NEWEST + 1
    _, journals, _, said = counted(home, "list", "--all")
    assert journals >= SESSIONS
    assert said.count("task ") == SESSIONS


def test_times_that_a_copy_lost_change_nothing_in_a_small_home(tmp_path: Path) -> None:
    """Design, command line: what was recorded decides, where all are read."""
    home = tmp_path / "home"
    lay_out(home, NEWEST)
    for number, path in enumerate(sorted((home / "sessions").glob("*/journal.jsonl"), reverse=True)):
        os.utime(path, ns=(10**9 * (number + 1),) * 2)
    shown = command_line(home, "show").stdout
    assert f"task {NEWEST - 1}" in shown
