"""Kills at any instant: a child is killed while it executes a reply, and what came of it is judged.

KILL_ROUNDS in the environment says how many rounds there are; a failure names its seed.
"""

import contextlib
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codingagent.core.events import CommandRan, FileCreated, FileDeleted, FileEdited, Interrupted
from codingagent.core.session import OperationEnded, OperationStarted, Phase
from codingagent.world.journal import Sessions
from tests.helpers import REPOSITORY, command_line, desk_at, is_zombie, wait_until

ROUNDS = int(os.environ.get("KILL_ROUNDS", "15"))

# ReplyTaken, a start and an end for each of twelve operations, TurnEnded, OutboxWritten.
RECORDS = 1 + 2 * 12 + 2

# The last section of a request: what has it is whole.
PROMPT = "\n=== PROMPT ===\n"


def reply_text(log: Path) -> str:
    """Gives twelve operations: whatever is done twice shows."""

    def command(number: int) -> str:
        return f"[RUN_COMMAND]\necho {number} >>'{log}'\n[/RUN_COMMAND]\n"

    def edit(number: int) -> str:
        body = f"<<<<<<< SEARCH\nend\n=======\nline {number}\nend\n>>>>>>> REPLACE\n"
        return f'[EDIT_FILE path="edited.txt"]\n{body}[/EDIT_FILE]\n'

    return "".join(
        [
            '[CREATE_FILE path="edited.txt"]\nend\n[/CREATE_FILE]\n',
            command(1),
            edit(1),
            '[CREATE_FILE path="new/deep/made.txt"]\nmade\n[/CREATE_FILE]\n',
            edit(2),
            command(2),
            '[DELETE_FILE path="old.txt"]\n',
            '[CREATE_FILE path="replaced.txt"]\nnew\n[/CREATE_FILE]\n',
            command(3),
            edit(3),
            '[DELETE_FILE path="replaced.txt"]\n',
            command(4),
        ]
    )


def start_resume(home: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "codingagent", "--home", str(home), "resume", "--once"],
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def kill_when(home: Path, condition: Callable[[], bool], linger_s: float) -> bool:
    """Runs `resume --once` and kills it once a condition holds, or a little later; False: it ended."""
    with start_resume(home) as process:
        # No pause between looks: the instants that matter are shorter than any.
        while not condition():
            if process.poll() is not None:
                assert process.stderr is not None
                assert process.returncode == 0, process.stderr.read().decode()
                return False
        until = time.perf_counter() + linger_s
        while time.perf_counter() < until:
            pass
        process.kill()
        return process.wait() < 0


def file_operations_are_applied_once(workspace: Path) -> None:
    assert (workspace / "edited.txt").read_bytes() == b"line 1\nline 2\nline 3\nend\n"
    assert (workspace / "new" / "deep" / "made.txt").read_bytes() == b"made\n"
    assert sorted(path.name for path in workspace.iterdir()) == ["edited.txt", "new"]
    assert [path.name for path in (workspace / "new" / "deep").iterdir()] == ["made.txt"]


def commands_ran_at_most_once(log: Path, sessions: Sessions, session_id: str) -> None:
    ran = log.read_text("utf-8").split() if log.exists() else []
    assert len(ran) == len(set(ran)), f"a command ran twice: {ran}"
    assert ran == sorted(ran), f"the order was changed: {ran}"
    for event in sessions.load(session_id).results:
        if isinstance(event, CommandRan):
            number = re.findall(r"echo (\d)", event.command)[0]
            assert number in ran, f"told of as run, and was not: {number}"


def all_is_told_once(sessions: Sessions, session_id: str) -> None:
    records = list(sessions.records(session_id))
    ended = [record.index for record in records if isinstance(record, OperationEnded)]
    assert ended == list(range(12))
    kinds = [type(event) for event in sessions.load(session_id).results]
    command = (CommandRan, Interrupted)
    expected = [
        *((FileCreated,), command, (FileEdited,), (FileCreated,), (FileEdited,), command),
        *((FileDeleted,), (FileCreated,), command, (FileEdited,), (FileDeleted,), command),
    ]
    assert all(kind in allowed for kind, allowed in zip(kinds, expected, strict=True)), kinds
    started = [record for record in records if isinstance(record, OperationStarted)]
    commands = [record.index for record in started if record.tag == "RUN_COMMAND"]
    assert commands == [1, 5, 8, 11]


def own_files_are_whole(home: Path, session_id: str, sequence: int) -> None:
    outboxes = sorted((home / "outbox").glob("*.txt"))
    names = [f"{session_id}_seq{number:04d}.txt" for number in range(1, sequence + 1)]
    assert [path.name for path in outboxes] == names
    for number, path in enumerate(outboxes, start=1):
        text = path.read_text("utf-8")
        assert text.startswith(f"=== HEADER ===\nSession: {session_id}\nSequence: {number}\n")
        assert f'[REPLY session="{session_id}" sequence="{number}"]' in text.partition(PROMPT)[2]
        assert text.endswith("\n")
    document = json.loads((home / "sessions" / f"{session_id}.json").read_bytes())
    assert (document["sessionId"], document["sequenceNumber"]) == (session_id, sequence)
    assert not list(home.rglob("*.tmp"))
    assert not list(home.rglob("*.damaged-*"))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_turn_that_is_killed_is_finished_and_nothing_is_done_twice(
    tmp_path: Path, seed: int
) -> None:
    """Design, nothing is lost: killed at any instant, the next `resume` finishes the turn."""
    chance = random.Random(seed)
    home, log = tmp_path / "home", tmp_path / "log"
    with desk_at(home) as desk:
        workspace, session_id, sessions = desk.workspace, desk.session_id, desk.home.sessions
        for name in ("old.txt", "replaced.txt"):
            (workspace / name).write_bytes(b"old\n")
        reply = reply_text(log)
        desk.drop(reply)
    journal = sessions.journal_path(session_id)
    before = journal.read_bytes().count(b"\n")
    killed = []
    for records in sorted(chance.choices(range(RECORDS + 1), k=chance.randint(1, 3))):
        lines = before + records
        linger_s = chance.choice([0, 0, chance.uniform(0, 0.003)])
        is_there = lambda: journal.read_bytes().count(b"\n") >= lines  # noqa: B023, E731  # at once
        killed.append(kill_when(home, is_there, linger_s) and records)
    for _ in range(2):  # the second finds nothing left to do
        done = command_line(home, "resume", "--once")
        assert done.returncode == 0, (seed, killed, done.stderr)
    assert sessions.load(session_id).phase is Phase.AWAITING_REPLY, (seed, killed)
    file_operations_are_applied_once(workspace)
    commands_ran_at_most_once(log, sessions, session_id)
    all_is_told_once(sessions, session_id)
    own_files_are_whole(home, session_id, 2)
    kept = [path for path in (home / "inbox").rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in kept] == [reply.encode()], (seed, killed)
    results = (home / "outbox" / f"{session_id}_seq0002.txt").read_text("utf-8")
    assert results.count("\n[OK] ") + results.count("\n[FAILED] ") == 12


def test_a_command_that_was_under_way_is_ended_and_not_run_again(tmp_path: Path) -> None:
    """Design, nothing is lost: a command that had started is never started again."""
    home, log, pid = tmp_path / "home", tmp_path / "log", tmp_path / "pid"
    with desk_at(home) as desk:
        line = f"echo 1 >>'{log}'; echo $$ >'{pid}.part'; mv '{pid}.part' '{pid}'; sleep 60; echo 2"
        desk.drop(f"[RUN_COMMAND]\n{line} >>'{log}'\n[/RUN_COMMAND]\n")
    assert kill_when(home, pid.exists, 0)
    wait_until(lambda: not is_alive(int(pid.read_text("utf-8"))), 2)
    done = command_line(home, "resume", "--once")
    assert done.returncode == 0, done.stderr
    assert log.read_text("utf-8") == "1\n"
    with desk_at(home, session_id=desk.session_id) as again:
        assert "interrupted: it may have run in part; it was not run again" in again.results()
        own_files_are_whole(home, desk.session_id, 2)


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return not is_zombie(pid)
    return False


@pytest.mark.parametrize("name", ["reply.txt", "REPLY.TXT", "reply.md"])
def test_a_reply_that_was_moved_and_not_journalled_is_executed(tmp_path: Path, name: str) -> None:
    """Design, nothing is lost: killed between the move and the record, the turn is finished."""
    home = tmp_path / "home"
    with desk_at(home) as desk:
        desk.drop('[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]\n', name)
    desk.home.mailbox.take(name, desk.session_id, 1)
    done = command_line(home, "resume", "--once")
    assert done.returncode == 0, done.stderr
    assert (home / "workspace" / "a.txt").read_bytes() == b"x\n"
    own_files_are_whole(home, desk.session_id, 2)


def test_a_request_that_was_written_and_not_journalled_is_written_again(tmp_path: Path) -> None:
    """Design, nothing is lost: the sequence has no gap and no repeat; no `.tmp` stays."""
    home = tmp_path / "home"
    with desk_at(home) as desk:
        desk.answer('[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]\n')
    journal = desk.home.sessions.journal_path(desk.session_id)
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    (home / "outbox" / f"{desk.session_id}_seq0002.txt.tmp").write_text("half", "utf-8")
    (home / "sessions" / f"{desk.session_id}.json.tmp").write_text("{", "utf-8")
    done = command_line(home, "resume", "--once")
    assert done.returncode == 0, done.stderr
    own_files_are_whole(home, desk.session_id, 2)


def test_a_session_that_ended_in_the_instant_of_a_kill_is_known_as_complete(
    tmp_path: Path,
) -> None:
    """Specification 003, session state: `isComplete` is true once DONE was processed."""
    home = tmp_path / "home"
    with desk_at(home) as desk:
        document = home / "sessions" / f"{desk.session_id}.json"
        before = document.read_bytes()
        desk.drop("[DONE]\nAll is well.\n[/DONE]\n")
        desk.conversation.take("reply.txt")
    document.write_bytes(before)
    (home / "sessions" / f"{desk.session_id}.json.tmp").write_text("{", "utf-8")
    command_line(home, "resume", "--once")
    assert json.loads(document.read_bytes())["isComplete"] is True
    assert not list(home.rglob("*.tmp"))


def test_a_damaged_session_file_is_rebuilt_and_kept(tmp_path: Path) -> None:
    """Design, nothing is lost: a damaged session file is reported, and rebuilt from the journal."""
    home = tmp_path / "home"
    with desk_at(home) as desk:
        document = home / "sessions" / f"{desk.session_id}.json"
        whole = json.loads(document.read_bytes())
    document.write_bytes(b'{"sessionId": "')
    done = command_line(home, "resume", "--once")
    assert done.returncode == 0
    assert "the session file was damaged" in done.stdout
    assert json.loads(document.read_bytes()) == whole
    (aside,) = (home / "sessions").glob("*.damaged-*")
    assert aside.read_bytes() == b'{"sessionId": "'


def test_a_damaged_journal_ends_the_command_with_one_line(tmp_path: Path) -> None:
    """Design, command line: damaged session: exit status 1, one line on stderr; nothing is touched."""
    home = tmp_path / "home"
    with desk_at(home) as desk:
        desk.answer('[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]\n')
        desk.drop('[CREATE_FILE path="b.txt"]\nx\n[/CREATE_FILE]\n')
    journal = desk.home.sessions.journal_path(desk.session_id)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"\0" * 20 + b"\n", *lines[2:]]))
    done = command_line(home, "resume", desk.session_id, "--once")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "is damaged at line 2" in done.stderr
    assert (home / "inbox" / "reply.txt").exists()


def test_a_second_executor_is_refused(tmp_path: Path) -> None:
    """Design, command line: a second one gets one line with the holder's pid."""
    home, pid = tmp_path / "home", tmp_path / "pid"
    with desk_at(home) as desk:
        line = f"echo $$ >'{pid}.part'; mv '{pid}.part' '{pid}'; sleep 60"
        desk.drop(f"[RUN_COMMAND]\n{line}\n[/RUN_COMMAND]\n")
    with start_resume(home) as process:
        wait_until(pid.exists)
        done = command_line(home, "resume", "--once")
        process.kill()
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"(pid {process.pid})" in done.stderr
    wait_until(lambda: not is_alive(int(pid.read_text("utf-8"))), 2)
