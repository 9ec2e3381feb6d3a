"""The journal: only ever added to, whole lines only, and never silently wrong."""

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent.errors import UsageError, WorkError
from codingagent.model.events import FileEdited, FileRequested, Hunk
from codingagent.model.journal_entries import (
    AnswerSetAside,
    AnswerTaken,
    OperationEnded,
    Record,
    RequestWritten,
    SessionStarted,
)
from codingagent.model.session_state import Phase
from codingagent.storage.journal import Journal, Runs, Sessions

SESSION = "a1b2c3d4"
START = SessionStarted(SESSION, "the task", "/ws", "2025-01-15T10:30:00Z")
WRITTEN = RequestWritten(1, "2025-01-15T10:30:01Z")
TAKEN = AnswerTaken(1, "reply.txt", "00", "2025-01-15T10:31:00Z")


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    made = Sessions(tmp_path / "sessions")
    made.folder.mkdir()
    return made


@contextlib.contextmanager
def journal_of(sessions: Sessions, *records: Record) -> Iterator[Journal]:
    with contextlib.closing(sessions.open(SESSION)) as journal:
        for record in records:
            journal.append(record)
        yield journal


def write(sessions: Sessions, *records: Record) -> Path:
    with journal_of(sessions, *records):
        return sessions.journal_path(SESSION)


# --- records ---------------------------------------------------------------------------------------


def test_a_record_is_read_as_it_was_written(sessions: Sessions) -> None:
    """Design, nothing is lost: the journal is the record that lets a killed session go on."""
    aside = AnswerSetAside("a\nb.txt", "it's “text” with é and \x1b", "2025-01-15T10:30:02Z")
    write(sessions, START, WRITTEN, aside)
    write(sessions, TAKEN)
    assert list(sessions.records(SESSION)) == [START, WRITTEN, aside, TAKEN]
    assert sessions.load(SESSION).phase is Phase.EXECUTING


@pytest.mark.parametrize(
    "event",
    [FileRequested("*.txt", ("\udcff\udcfe.txt",)), FileEdited("a", (Hunk(1, 1, 1, 1),), "1 | caf\udce9 €")],
    ids=["name", "excerpt"],
)
def test_bytes_that_are_no_text_survive_in_a_record(
    sessions: Sessions, event: FileRequested | FileEdited
) -> None:
    """Design, nothing is lost: a file name or a line that is no UTF-8 must not cost the session."""
    ended = OperationEnded(0, event, "2025-01-15T10:31:01Z")
    write(sessions, START, WRITTEN, TAKEN, ended)
    assert len(list(sessions.records(SESSION))) == 4
    sessions.write_document(sessions.load(SESSION))
    document = json.loads((sessions.folder / f"{SESSION}.json").read_bytes())
    assert document["sessionId"] == SESSION


def test_a_record_is_with_the_system_at_once(sessions: Sessions) -> None:
    """Design, nothing is lost: what was appended is there, though we be killed the next instant."""
    with journal_of(sessions, START) as journal:
        assert list(sessions.records(SESSION)) == [START]
        journal.append(WRITTEN)
        journal.sync()
        assert list(sessions.records(SESSION)) == [START, WRITTEN]


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_a_torn_last_line_is_dropped(sessions: Sessions, cut: int) -> None:
    """Design, nothing is lost: what a kill cut short was never answered for."""
    path = write(sessions, START, WRITTEN, TAKEN)
    path.write_bytes(path.read_bytes()[:-cut])
    assert list(sessions.records(SESSION)) == [START, WRITTEN]
    write(sessions, TAKEN)
    assert list(sessions.records(SESSION)) == [START, WRITTEN, TAKEN]


def test_a_short_record_takes_the_place_of_a_long_torn_one(sessions: Sessions) -> None:
    """Design, nothing is lost: nothing of a torn line stays behind the next record."""
    path = write(sessions, START, AnswerSetAside("a", "x" * 1000, "2025-01-15T10:30:02Z"))
    path.write_bytes(path.read_bytes()[:-1])
    write(sessions, WRITTEN)
    write(sessions, TAKEN)
    assert list(sessions.records(SESSION)) == [START, WRITTEN, TAKEN]


@pytest.mark.parametrize("damage", [b"{", b"", b"\xff\xfe", b"null", b'{"kind":"outbox_written"}'])
def test_a_damaged_line_is_named(sessions: Sessions, damage: bytes) -> None:
    """Design, nothing is lost: a damaged file is reported, never overwritten, never guessed at."""
    path = write(sessions, START, WRITTEN, TAKEN)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], damage, *lines[2:]]))
    damaged = path.read_bytes()
    with pytest.raises(WorkError, match=r"journal\.jsonl is damaged at line 2; put back a copy"):
        sessions.load(SESSION)
    assert path.read_bytes() == damaged


def test_records_in_an_order_that_cannot_be_are_damage(sessions: Sessions) -> None:
    """Design, nothing is lost: state is a fold over records, and these do not fold."""
    path = write(sessions, START, START)
    with pytest.raises(WorkError, match="is damaged: it has a second start"):
        sessions.load(SESSION)
    path.write_bytes(b"")
    with pytest.raises(WorkError, match="is empty: the session never began"):
        sessions.load(SESSION)


def test_an_append_that_fails_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    """Design, nothing is lost: a full disk says so; the record is whole or not there."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can't be mounted here: that needs root")
    try:
        sessions = Sessions(folder)
        with journal_of(sessions, START) as journal:
            large = AnswerSetAside("a", "x" * 10**6, "2025-01-15T10:30:02Z")
            with pytest.raises(WorkError, match="No space left"):
                journal.append(large)
            journal.append(WRITTEN)
        assert list(sessions.records(SESSION)) == [START, WRITTEN]
    finally:
        subprocess.run(["umount", str(folder)], check=True)


# --- sessions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "..", "../../etc", "a1b2c3d", "A1B2C3D4", "a1b2c3d4\n", "."])
def test_only_a_session_id_names_a_session(sessions: Sessions, name: str) -> None:
    """Specification 003, session id: an 8-character hex string; no path comes of another."""
    with pytest.raises(UsageError, match="is not a session id"):
        sessions.load(name)
    with pytest.raises(UsageError, match="is not a session id"):
        sessions.open(name)


def test_the_id_of_the_other_kind_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run_0123456789ab is a run, but this command needs a session"):
        Sessions(tmp_path).load("run_0123456789ab")
    with pytest.raises(UsageError, match=r"'a1b2c3d4' is not a run id \(run_ and 12"):
        Runs(tmp_path).load("a1b2c3d4")


def test_an_unknown_session_is_said(sessions: Sessions) -> None:
    """Design, command line: one line, what, where, what to do."""
    with pytest.raises(UsageError, match=r"no session a1b2c3d4 in .*`codingagent list` shows all"):
        sessions.load(SESSION)


def test_sessions_are_the_folders_with_a_journal(sessions: Sessions) -> None:
    """Design, nothing is lost: other things in sessions/ are passed over."""
    write(sessions, START)
    (sessions.folder / "b1b2c3d4").mkdir()
    (sessions.folder / "notes").mkdir()
    (sessions.folder / "a1b2c3d4.json").write_text("{}", "utf-8")
    assert sessions.ids() == [SESSION]
    assert Sessions(sessions.folder / "none").ids() == []


# --- the session file ------------------------------------------------------------------------------


def test_the_session_file_is_whole_and_as_specified(sessions: Sessions) -> None:
    """Specification 003, session state: these fields, in a file written atomically."""
    write(sessions, START, WRITTEN)
    sessions.write_document(sessions.load(SESSION))
    assert sorted(path.name for path in sessions.folder.iterdir()) == [SESSION, "a1b2c3d4.json"]
    document = json.loads((sessions.folder / "a1b2c3d4.json").read_bytes())
    expected = {
        "sessionId": SESSION,
        "task": "the task",
        "sequenceNumber": 1,
        "isComplete": False,
        "createdAt": "2025-01-15T10:30:00Z",
        "updatedAt": "2025-01-15T10:30:01Z",
        "lastResults": [],
        "readFileRequests": [],
    }
    assert {name: document[name] for name in expected} == expected


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"{}", b'{"sessionId": "ffffffff"}', b"\xff\xfe{}", b"\0" * 100]
)
def test_a_damaged_session_file_is_set_aside(sessions: Sessions, damage: bytes) -> None:
    """Design, nothing is lost: a damaged session file is never overwritten, and is rebuilt."""
    write(sessions, START, WRITTEN)
    path = sessions.folder / "a1b2c3d4.json"
    asides = []
    for _ in range(2):
        path.write_bytes(damage)
        asides.append(sessions.set_damaged_document_aside(SESSION))
        sessions.write_document(sessions.load(SESSION))
        assert json.loads(path.read_bytes())["task"] == "the task"
    assert len(set(asides)) == 2
    assert all(aside is not None and aside.read_bytes() == damage for aside in asides)
    assert sessions.set_damaged_document_aside(SESSION) is None
