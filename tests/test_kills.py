"""Kills at any instant: the agent is killed while it executes a reply, and what came of it is judged.

A round has two kills, or three, and is there once for each way to run commands. The plain run has the
first of each; the deep run all. A failure names its seed.
"""

import contextlib
import json
import os
import pty
import random
import re
import select
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent.agent import context
from codingagent.agent.conversation import Conversation
from codingagent.model.approval import Answer
from codingagent.model.events import CommandRan, Denied, FileCreated, Interrupted
from codingagent.model.journal_entries import (
    ApprovalAnswered,
    ApprovalAsked,
    CheckpointTaken,
    OperationEnded,
    OperationStarted,
)
from codingagent.model.session_state import Phase
from codingagent.storage import homes
from codingagent.storage.journal import Sessions
from tests.helpers import HANG_S, command_line, conversation_in, live_session, wait_until
from tests.killing import (
    LOG,
    TIERS,
    command_line_here,
    everything,
    has_lines,
    kill_when,
    lines_of,
    logged,
    no_halves,
    none_outlives,
    settings_for,
    tree,
)
from tests.warm import start_command

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills are for POSIX systems")

ROUNDS = 12

OPERATIONS = 40

# AnswerTaken, a checkpoint before and after, a start and an end for each operation, TurnEnded,
# RequestWritten. Of a turn without a command the checkpoint after it is the last.
RECORDS = 1 + 2 + 2 * OPERATIONS + 2

# The last section of a request: what has it is whole.
PROMPT = "\n=== PROMPT ===\n"

with_and_without_a_sandbox = pytest.mark.parametrize("tier", TIERS)


def create(path: str, text: str) -> str:
    return f'[CREATE_FILE path="{path}"]\n{text}\n[/CREATE_FILE]\n'


def edit(number: int) -> str:
    body = f"<<<<<<< SEARCH\nend\n=======\nline {number}\nend\n>>>>>>> REPLACE\n"
    return f'[EDIT_FILE path="edited.txt"]\n{body}[/EDIT_FILE]\n'


def delete(path: str) -> str:
    return f'[DELETE_FILE path="{path}"]\n'


def move(path: str, to: str) -> str:
    return f'[MOVE_FILE path="{path}" to="{to}"]\n'


def command(line: str) -> str:
    return f"[RUN_COMMAND]\n{line}\n[/RUN_COMMAND]\n"


def logging(number: int) -> str:
    """Return a command that says in the log that it ran: at once, for a while, or with company."""
    says = f"echo {number} >>{LOG}"
    return command((says, f"{says}; sleep 0.05", f"setsid sleep 600 & {says}")[number % 3])


def forty_operations() -> str:
    """Return a reply in which whatever is done twice, or not at all, shows."""
    blocks = [create("edited.txt", "end")]
    for number in range(1, 10):
        made = create(f"made/{number}.txt", f"made {number}")
        blocks += [
            logging(number),
            edit(number),
            create("replaced.txt", f"version {number}"),
            # Every other one is taken away again.
            made if number % 2 else delete(f"made/{number - 1}.txt"),
        ]
    blocks += [create("new/deep/made.txt", "made"), delete("old.txt")]
    blocks.append(move("replaced.txt", "away/moved.txt"))
    assert len(blocks) == OPERATIONS
    return "".join(blocks)


def what_forty_operations_make(ignore: str) -> dict[str, str]:
    """Return the files and what is in them once all has been done once."""
    lines = "".join(f"line {number}\n" for number in range(1, 10))
    return {
        ".gitignore": ignore,
        "away/moved.txt": "version 9\n",
        "edited.txt": f"{lines}end\n",
        "made/9.txt": "made 9\n",
        "new/deep/made.txt": "made\n",
    }


# --- a turn ----------------------------------------------------------------------------------------


def files_are_as_after_one_application(workspace: Path, expected: dict[str, str]) -> None:
    found = {path: what[1].decode() for path, what in tree(workspace, (LOG,)).items()}
    assert found == expected


def commands_ran_at_most_once(workspace: Path, sessions: Sessions, session_id: str) -> None:
    ran = logged(workspace)
    assert ran == sorted(set(ran)), f"a command ran twice, or not in order: {ran}"
    started = Counter(
        record.subject
        for record in sessions.records(session_id)
        if isinstance(record, OperationStarted) and record.kind == "RUN_COMMAND"
    )
    assert set(started.values()) <= {1}, f"a command was started twice: {started}"
    for event in sessions.load(session_id).results:
        if isinstance(event, CommandRan):
            number = int(re.findall(r"echo (\d)", event.command)[0])
            assert number in ran, f"told of as run, and was not: {number}"


def all_is_told_once(sessions: Sessions, session_id: str, tier: str) -> None:
    records = list(sessions.records(session_id))
    ended = [record.index for record in records if isinstance(record, OperationEnded)]
    assert ended == list(range(OPERATIONS))
    events = sessions.load(session_id).results
    interrupted = [event for event in events if isinstance(event, Interrupted)]
    assert all(event.kind == "RUN_COMMAND" for event in interrupted), interrupted
    ran = [event for event in events if isinstance(event, CommandRan)]
    assert len(ran) + len(interrupted) == 9
    assert {event.sandbox for event in ran} <= {tier}


def checkpoints_are_kept_once(home: Path, session_id: str, expected: set[str]) -> None:
    """`diff` shows the whole turn, though it was killed in between."""
    sessions = homes.Home.at(home, create=False).sessions
    records = sessions.records(session_id)
    taken = [record for record in records if isinstance(record, CheckpointTaken)]
    found = [(record.sequence, record.before) for record in taken]
    # Killed between the checkpoint after the turn and its end, `resume` looks again: what the person
    # changed meanwhile is news to the chat.
    assert (found[:2], set(found[2:]) <= {(1, False)}) == ([(1, True), (1, False)], True)
    status, shown, said = command_line_here(home, "diff", "--turn", "1")
    assert (status, said) == (0, "")
    changed = re.findall(r"^diff --git a/(\S+) b/", shown, re.MULTILINE)
    assert set(changed) == expected
    assert len(changed) == len(expected)


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
    no_halves(home)


def reply_is_kept(home: Path, reply: str) -> None:
    kept = [path for path in (home / "inbox").rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in kept] == [reply.encode()]


def nothing_happens_again(home: Path, session_id: str, reply: str) -> None:
    """A second resume finds nothing to do, and the same reply once more is set aside."""
    before = everything(home)
    assert command_line_here(home, "resume", "--once")[0] == 0
    assert everything(home) == before
    (home / "inbox" / "again.txt").write_text(reply, "utf-8")
    assert command_line_here(home, "resume", "--once")[0] == 0
    assert (home / "inbox" / "rejected" / "again.txt").read_bytes() == reply.encode()
    own_files_are_whole(home, session_id, 2)
    now = everything(home)
    changed = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
    # git notes there that a file's times are of the past now.
    changed = {path for path in changed if "/checkpoints/index." not in path}
    assert changed <= {
        "inbox/rejected/again.txt",
        "inbox/rejected/again.txt.reason",
        f"sessions/{session_id}.json",
        f"sessions/{session_id}/journal.jsonl",
    }


@pytest.mark.one_in(12)
@with_and_without_a_sandbox
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_turn_that_is_killed_is_finished_and_nothing_is_done_twice(
    tmp_path: Path, seed: int, tier: str
) -> None:
    """Design, nothing is lost: killed at any instant, the next `resume` finishes the turn."""
    chance = random.Random(f"{seed} {tier}")
    home = tmp_path / "home"
    reply, ignore = forty_operations(), f"{LOG}\n"
    with live_session(home, settings=settings_for(tier)) as live:
        workspace, session_id, sessions = live.workspace, live.session_id, live.home.sessions
        (workspace / ".gitignore").write_text(ignore, "utf-8")
        for name in ("old.txt", "replaced.txt"):
            (workspace / name).write_bytes(b"old\n")
        live.drop(reply)
    journal = sessions.journal_path(session_id)
    before = lines_of(journal)
    # The first is early enough that the end can't outrun it.
    places = sorted((chance.randrange(RECORDS // 2), chance.randrange(RECORDS)))
    killed: list[int | bool] = []
    for place in places:
        count = max(before + place, lines_of(journal) + (1 if killed else 0))
        taken = has_lines(journal, count)
        if place == 0:  # between the move of the answer and its record
            taken = lambda: not (home / "inbox" / "reply.txt").exists()  # noqa: E731
        linger_s = chance.choice([0, chance.uniform(0, 0.003), chance.uniform(0, 0.03)])
        killed.append(kill_when(home, ("resume", "--once"), taken, linger_s) and place)
        reply_is_kept(home, reply)
        commands_ran_at_most_once(workspace, sessions, session_id)
    assert killed[0] is not False
    done = command_line(home, "resume", "--once")
    assert done.returncode == 0, (killed, done.stderr)
    assert sessions.load(session_id).phase is Phase.AWAITING_ANSWER, killed
    expected = what_forty_operations_make(ignore)
    files_are_as_after_one_application(workspace, expected)
    commands_ran_at_most_once(workspace, sessions, session_id)
    all_is_told_once(sessions, session_id, tier)
    changed = (expected.keys() | {"old.txt", "replaced.txt"}) - {".gitignore"}
    checkpoints_are_kept_once(home, session_id, changed)
    own_files_are_whole(home, session_id, 2)
    reply_is_kept(home, reply)
    results = (home / "outbox" / f"{session_id}_seq0002.txt").read_text("utf-8")
    assert results.count("\n[OK] ") + results.count("\n[FAILED] ") == OPERATIONS
    nothing_happens_again(home, session_id, reply)


@with_and_without_a_sandbox
def test_a_command_that_was_under_way_is_ended_and_not_run_again(tmp_path: Path, tier: str) -> None:
    """Design, nothing is lost: a command that had started is never started again."""
    home = tmp_path / "home"
    with live_session(home, settings=settings_for(tier)) as live:
        live.drop(command(f"echo 1 >>{LOG}; sleep 600; echo 2 >>{LOG}"))
    # kill_when sees to it that the sleep is ended.
    assert kill_when(home, ("resume", "--once"), lambda: logged(live.workspace) == [1])
    done = command_line(home, "resume", "--once")
    assert done.returncode == 0, done.stderr
    assert logged(live.workspace) == [1]
    with live_session(home, session_id=live.session_id) as again:
        assert "interrupted: it may have run in part; it was not run again" in again.results()
        own_files_are_whole(home, live.session_id, 2)


def test_a_kill_between_the_last_checkpoint_and_the_end_of_a_turn(tmp_path: Path) -> None:
    """Design, nothing is lost: the turn is finished, and undo and `diff` still cover it once."""
    home = tmp_path / "home"
    with live_session(home) as live:
        live.drop(create("a.txt", "a") + command(f"echo 1 >>{LOG}"))
        session_id = live.session_id
    command_line_here(home, "resume", "--once")
    journal = homes.Home.at(home, create=False).sessions.journal_path(session_id)
    whole = journal.read_bytes().splitlines(keepends=True)
    ended = next(place for place, line in enumerate(whole) if b'"turn_ended"' in line)
    assert b'"checkpoint_taken"' in whole[ended - 1]
    journal.write_bytes(b"".join(whole[:ended]))
    (home / "outbox" / f"{session_id}_seq0002.txt").unlink()
    assert command_line_here(home, "resume", "--once")[0] == 0
    checkpoints_are_kept_once(home, session_id, {"a.txt", LOG})
    own_files_are_whole(home, session_id, 2)
    assert logged(live.workspace) == [1]


# --- approvals -------------------------------------------------------------------------------------

# The places of what the policy asks for; all but one are commands.
ASKED = (1, 3, 5, 6)


def asking_reply() -> str:
    """Return a reply of which half must be approved."""
    asked = "rm -rf gone"
    return "".join(
        [
            create("a.txt", "a"),
            command(f"{asked}; echo 1 >>{LOG}; sleep 0.05"),
            command(f"echo 2 >>{LOG}"),
            create(".envrc", "export A=1"),
            create("b.txt", "b"),
            command(f"{asked}; echo 5 >>{LOG}"),
            command(f"{asked}; echo 6 >>{LOG}; sleep 0.05"),
        ]
    )


def nothing_ran_without_its_answer(workspace: Path, sessions: Sessions, session_id: str) -> None:
    """A yes stands in the record before anything is done, and nothing is started twice."""
    allowed = {2}
    starts: Counter[int] = Counter()
    for record in sessions.records(session_id):
        if isinstance(record, ApprovalAnswered) and record.answer.decision == "yes":
            allowed.add(record.index)
        if isinstance(record, OperationStarted):
            assert record.index in allowed | {0, 4}, record
            starts[record.index] += 1
    commands = {index: starts[index] for index in (1, 2, 5, 6) if starts[index]}
    assert set(commands.values()) <= {1}, f"a command was started twice: {commands}"
    ran = logged(workspace)
    assert ran == sorted(set(ran)), f"a command ran twice, or not in order: {ran}"
    assert set(ran) <= allowed & commands.keys()
    assert 3 in allowed or not (workspace / ".envrc").exists()


@pytest.mark.one_in(12)
@with_and_without_a_sandbox
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_killed_approval_is_neither_lost_nor_used_twice(tmp_path: Path, seed: int, tier: str) -> None:
    """Design, approvals: what is asked is never done without its yes, and never twice."""
    chance = random.Random(f"{seed} {tier} approvals")
    home = tmp_path / "home"
    with live_session(home, settings=settings_for(tier)) as live:
        workspace, session_id, sessions = live.workspace, live.session_id, live.home.sessions
        (workspace / ".gitignore").write_text(f"{LOG}\n", "utf-8")
        live.drop(asking_reply())
    journal = sessions.journal_path(session_id)
    said = {index: chance.choice(["approve", "approve", "deny"]) for index in ASKED}
    kills = 3
    # No more starts than kills, questions and ends: else something asks without end.
    for _ in range(kills + 2 * len(ASKED) + 2):
        if (session := sessions.load(session_id)).sequence == 2:
            break
        arguments = ["resume", "--once"]
        if session.phase is Phase.AWAITING_APPROVAL and session.asked is not None:
            index = session.asked.index
            arguments = [said[index], session_id, f"op-{index + 1}"]
        count = lines_of(journal) + chance.randint(1, 5)
        linger_s = chance.choice([0, chance.uniform(0, 0.003), chance.uniform(0, 0.05)])
        if kills and chance.random() < 0.7:
            kills -= kill_when(home, arguments, has_lines(journal, count), linger_s)
        else:
            status, _, fault = command_line_here(home, *arguments)
            assert status in (0, 3), fault
        nothing_ran_without_its_answer(workspace, sessions, session_id)
    command_line_here(home, "resume", "--once")
    assert sessions.load(session_id).sequence == 2
    records = list(sessions.records(session_id))
    asked = [record.index for record in records if isinstance(record, ApprovalAsked)]
    answers = [record for record in records if isinstance(record, ApprovalAnswered)]
    assert [record.index for record in answers] == list(ASKED)
    assert sorted(set(asked)) == list(ASKED)
    events = sessions.load(session_id).results
    for index, event in enumerate(events):
        if said.get(index) == "deny":
            assert isinstance(event, Denied)
        elif index in (1, 2, 5, 6):
            assert isinstance(event, (CommandRan, Interrupted))
            assert isinstance(event, Interrupted) or index in logged(workspace)
        else:
            assert isinstance(event, FileCreated)
    assert (workspace / ".envrc").exists() == (said[3] == "approve")
    own_files_are_whole(home, session_id, 2)


@with_and_without_a_sandbox
def test_a_kill_while_the_person_is_asked_decides_nothing(tmp_path: Path, tier: str) -> None:
    """Design, approvals: killed while a question waits on the terminal, it waits on."""
    home = tmp_path / "home"
    with live_session(home, settings=settings_for(tier)) as live:
        sessions, session_id = live.home.sessions, live.session_id
        live.drop(command(f"rm -rf gone; echo 1 >>{LOG}"))
    ours, theirs = pty.openpty()
    words = ["--home", str(home), "resume", "--once"]
    variables = {**os.environ, "TERM": "xterm"}
    with none_outlives():
        with start_command(*words, stdin=theirs, stdout=theirs, stderr=theirs, env=variables) as process:
            os.close(theirs)
            try:
                seen = b""
                while b"Approve?" not in seen:  # it asks, and waits for the answer
                    assert select.select([ours], [], [], HANG_S)[0], seen
                    seen += os.read(ours, 4096)
            finally:
                process.kill()
        os.close(ours)
    assert logged(live.workspace) == []
    for _ in range(2):
        status, _, fault = command_line_here(home, "resume", "--once")
        assert (status, logged(live.workspace)) == (3, [])
        assert f"codingagent --home {home} approve {session_id} op-1" in fault
    asked = [r for r in sessions.records(session_id) if isinstance(r, ApprovalAsked)]
    assert len(asked) == 1
    assert command_line_here(home, "approve", session_id)[0] == 0
    assert logged(live.workspace) == [1]
    own_files_are_whole(home, session_id, 2)


@with_and_without_a_sandbox
@pytest.mark.parametrize("decision", ["approve", "deny"])
@pytest.mark.one_in(2)
def test_an_answer_that_was_journalled_counts_though_the_agent_was_killed(
    tmp_path: Path, decision: str, tier: str
) -> None:
    """Design, approvals: killed right after the answer, `resume` acts on it and does not ask again."""
    home = tmp_path / "home"
    with live_session(home, settings=settings_for(tier)) as live:
        sessions, session_id = live.home.sessions, live.session_id
        live.drop(command(f"rm -rf gone; echo 1 >>{LOG}"))
    assert command_line_here(home, "resume", "--once")[0] == 3
    with live_at_rest(home, session_id) as conversation:
        conversation.answer(None, Answer("yes" if decision == "approve" else "no"))
    assert logged(live.workspace) == []
    status, _, fault = command_line_here(home, decision, session_id)
    assert (status, logged(live.workspace)) == (2, [])
    assert "waits for approval" in fault
    for _ in range(2):
        assert command_line_here(home, "resume", "--once")[0] == 0
        assert logged(live.workspace) == ([1] if decision == "approve" else [])
    kinds = [record.class_name for record in sessions.records(session_id)]
    assert (kinds.count("approval_asked"), kinds.count("approval_answered")) == (1, 1)
    own_files_are_whole(home, session_id, 2)


@contextlib.contextmanager
def live_at_rest(home: Path, session_id: str) -> Iterator[Conversation]:
    """Yield a session's conversation without letting it go on, as in the instant before a kill."""
    opened = homes.Home.at(home, create=False)
    session = opened.sessions.load(session_id)
    settings = settings_for("bwrap" if session.terms.sandbox == "require" else "none")
    with conversation_in(opened, session, settings, context.Person(lambda _: None)) as it:
        yield it


# --- what a kill leaves half done -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["reply.txt", "REPLY.TXT", "reply.md"])
def test_a_reply_that_was_moved_and_not_journalled_is_executed(tmp_path: Path, name: str) -> None:
    """Design, nothing is lost: killed between the move and the record, the turn is finished."""
    home = tmp_path / "home"
    with live_session(home) as live:
        live.drop('[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]\n', name)
    live.home.mailbox.take(name, live.session_id, 1)
    done = command_line(home, "resume", "--once")
    assert done.returncode == 0, done.stderr
    assert (home / "workspace" / "a.txt").read_bytes() == b"x\n"
    own_files_are_whole(home, live.session_id, 2)


def test_a_request_that_was_written_and_not_journalled_is_written_again(tmp_path: Path) -> None:
    """Design, nothing is lost: the sequence has no gap and no repeat; no `.tmp` stays."""
    home = tmp_path / "home"
    with live_session(home) as live:
        live.answer('[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]\n')
    journal = live.home.sessions.journal_path(live.session_id)
    # What came last is the checkpoint behind the request.
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-2]))
    (home / "outbox" / f"{live.session_id}_seq0002.txt.tmp").write_text("half", "utf-8")
    (home / "sessions" / f"{live.session_id}.json.tmp").write_text("{", "utf-8")
    done = command_line(home, "resume", "--once")
    assert done.returncode == 0, done.stderr
    own_files_are_whole(home, live.session_id, 2)


def test_a_session_that_ended_in_the_instant_of_a_kill_is_known_as_complete(tmp_path: Path) -> None:
    """Specification 003, session state: `isComplete` is true once DONE was processed."""
    home = tmp_path / "home"
    with live_session(home) as live:
        document = home / "sessions" / f"{live.session_id}.json"
        before = document.read_bytes()
        live.drop("[DONE]\nAll is well.\n[/DONE]\n")
        live.conversation.take("reply.txt")
    document.write_bytes(before)
    (home / "sessions" / f"{live.session_id}.json.tmp").write_text("{", "utf-8")
    command_line(home, "resume", "--once")
    assert json.loads(document.read_bytes())["isComplete"] is True
    assert not list(home.rglob("*.tmp"))


def test_a_damaged_session_file_is_rebuilt_and_kept(tmp_path: Path) -> None:
    """Design, nothing is lost: a damaged session file is reported, and rebuilt from the journal."""
    home = tmp_path / "home"
    with live_session(home) as live:
        document = home / "sessions" / f"{live.session_id}.json"
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
    with live_session(home) as live:
        live.answer('[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]\n')
        live.drop('[CREATE_FILE path="b.txt"]\nx\n[/CREATE_FILE]\n')
    journal = live.home.sessions.journal_path(live.session_id)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"\0" * 20 + b"\n", *lines[2:]]))
    done = command_line(home, "resume", live.session_id, "--once")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "is damaged at line 2" in done.stderr
    assert (home / "inbox" / "reply.txt").exists()


def test_a_second_executor_waits_for_the_first(tmp_path: Path) -> None:
    """Design, command line: a second one waits, and says for whom; after a kill it goes on."""
    home = tmp_path / "home"
    with live_session(home, settings=settings_for("none")) as live:
        live.drop(command(f"echo 1 >>{LOG}; sleep 600"))
    words = ["--home", str(home), "resume", "--once"]
    with none_outlives(), start_command(*words, stdout=subprocess.DEVNULL) as it:
        wait_until(lambda: logged(live.workspace) == [1])
        with start_command(*words, stdout=subprocess.PIPE, text=True) as second:
            assert second.stdout is not None
            assert f"(pid {it.pid}) is using {home}; waiting" in second.stdout.readline()
            it.kill()
            assert second.wait(HANG_S) == 0
    assert logged(live.workspace) == [1]
