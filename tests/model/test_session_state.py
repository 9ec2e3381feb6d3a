"""A session's state, folded from its records: specification 003 and Design, nothing is lost."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from codingagent.checkpoints.history import steps
from codingagent.model.approval import Answer, Question
from codingagent.model.events import (
    CommandRan,
    Denied,
    Event,
    FileCreated,
    FileDeleted,
    FileEdited,
    FileFetched,
    FileRequested,
    Finished,
    Hunk,
    Interrupted,
    MessageShown,
    Refused,
)
from codingagent.model.journal_entries import (
    AnswerSetAside,
    AnswerTaken,
    ApprovalAnswered,
    ApprovalAsked,
    CheckEnded,
    CheckpointTaken,
    ContentChange,
    OperationEnded,
    OperationStarted,
    PersonSaid,
    Record,
    RefreshAsked,
    RequestWritten,
    SessionReopened,
    SessionStarted,
    TurnEnded,
    UndoBegan,
    UndoEnded,
    decode_record,
    encode_record,
    is_session_id,
)
from codingagent.model.operations import Kind
from codingagent.model.session_fold import fold, replay
from codingagent.model.session_state import AppendList, Phase, Session
from codingagent.storage.journal import document
from tests.builders import CREATED_AT, LATER, SESSION_ID, session_of, started, turn
from tests.rows import each_row

_MADE = FileCreated("src/Calculator.cs", 245, replaced=False)
_TAKEN = AnswerTaken(1, "reply.txt", "digest-1", LATER)


# --- the id ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a1b2c3d4", "00000000", "ffffffff"])
def test_an_id_has_eight_hex_digits(text: str) -> None:
    """Specification 003, session id: an 8-character hex string."""
    assert is_session_id(text)


@each_row("text", ["", "a1b2c3d", "a1b2c3d45", "A1B2C3D4", "a1b2c3dg", "a1b2c3d4\n", "../../..", "١٢٣٤٥٦٧٨"])
def test_other_texts_are_no_id(text: str) -> None:
    """Specification 003, session id: it names files, so nothing else may stand there."""
    assert not is_session_id(text)


# --- phases ----------------------------------------------------------------------------------------


def test_a_session_begins_with_a_request_due() -> None:
    """Specification 003, sequence numbering: starts at 1 for the first outbox file."""
    head = SESSION_ID, "Create a calculator", "/work", CREATED_AT, CREATED_AT
    assert session_of() == Session(*head, 1, Phase.REQUEST_DUE, terms=started())


def test_the_phases_follow_one_another() -> None:
    """Specification 003, sequence numbering: increments by 1 for each outbox-inbox cycle."""
    records: tuple[Record, ...] = (
        started(),
        *turn(_MADE),
        *turn(Finished("ok"), sequence=2),
        SessionReopened(LATER),
    )
    seen = []
    session: Session | None = None
    for record in records:
        session = fold(session, record)
        seen.append((session.phase, session.sequence))
    assert seen == [
        (Phase.REQUEST_DUE, 1),
        (Phase.AWAITING_ANSWER, 1),
        (Phase.EXECUTING, 1),
        (Phase.EXECUTING, 1),
        (Phase.REQUEST_DUE, 2),
        (Phase.AWAITING_ANSWER, 2),
        (Phase.EXECUTING, 2),
        (Phase.EXECUTING, 2),
        (Phase.COMPLETE, 2),
        (Phase.REQUEST_DUE, 3),
    ]


def test_done_completes_the_session_even_if_something_failed() -> None:
    """Specification 003, DONE: the agent stops the session loop. Design: whatever failed beside it."""
    session = session_of(*turn(Refused(Kind.EDIT_FILE, "no"), Finished("ok")))
    assert session.is_complete
    assert not session_of(*turn(_MADE)).is_complete


def test_a_reopened_session_keeps_its_last_results() -> None:
    """Design, tag blocks: `resume SESSION` reopens, with those results in the next outbox."""
    events: tuple[Event, ...] = (Refused(Kind.EDIT_FILE, "no"), Finished("ok"))
    session = session_of(*turn(*events), SessionReopened(LATER))
    assert session.results == events
    assert (session.phase, session.sequence, session.is_complete) == (Phase.REQUEST_DUE, 2, False)
    assert session.notes == ("the user goes on after your DONE: what FAILED above is still to do",)
    session = session_of(*turn(Finished("ok")), SessionReopened(LATER))
    assert session.notes == ("the user goes on after your DONE: do what they say, or what is missing",)


def test_results_are_those_of_the_last_turn() -> None:
    """Specification 003, previous command results: of the LLM's last response."""
    session = session_of(*turn(_MADE, notes=("a",)), *turn(FileDeleted("b"), sequence=2, notes=("b",)))
    assert session.results == (FileDeleted("b"),)
    assert session.notes == ("b",)


def test_results_of_the_turn_before_are_gone_when_a_reply_is_taken() -> None:
    """Design, nothing is lost: what is executed is told from what was."""
    session = session_of(
        *turn(_MADE, notes=("a",)), RequestWritten(2, LATER), AnswerTaken(2, "x", "d", LATER)
    )
    assert (len(session.results), session.notes, session.last_digest) == (0, (), "d")


def test_a_start_without_its_end_is_remembered() -> None:
    """Design, nothing is lost: a command that had started is never started again."""
    start = OperationStarted(0, Kind.RUN_COMMAND, "make", LATER)
    under_way = session_of(RequestWritten(1, LATER), _TAKEN, start)
    assert under_way.unfinished == start
    assert fold(under_way, OperationEnded(0, _MADE, LATER)).unfinished is None


def test_the_session_knows_the_files_it_touched() -> None:
    """Design, the outbox, listing: a file that this session made or read is always listed."""
    session = session_of(
        *turn(
            _MADE,
            FileEdited("e", (), ""),
            FileRequested("*", ("r", "s")),
            FileDeleted("d"),
            Refused(Kind.READ_FILE, "x"),
        ),
        *turn(MessageShown("hi"), sequence=2),
    )
    assert session.touched == {"src/Calculator.cs", "e", "r", "s"}


def test_a_reply_set_aside_changes_nothing_but_the_time() -> None:
    """Design, nothing is lost: it is in the record all the same."""
    before = session_of(RequestWritten(1, LATER))
    after = fold(before, AnswerSetAside("x", "why", "2026-01-01T00:00:00Z"))
    assert after.updated_at == "2026-01-01T00:00:00Z"
    assert (after.phase, after.last_digest, after.results) == (
        before.phase,
        before.last_digest,
        before.results,
    )


def test_no_records_are_no_session() -> None:
    """Design, nothing is lost: to resume is to replay."""
    assert replay(()) is None


@each_row(
    ("before", "record"),
    [
        ((), SessionStarted("00000000", "x", "/", LATER)),
        ((), _TAKEN),
        ((), OperationEnded(0, _MADE, LATER)),
        ((), TurnEnded(1, (), LATER)),
        ((), SessionReopened(LATER)),
        ((RequestWritten(1, LATER),), OperationStarted(0, Kind.RUN_COMMAND, "x", LATER)),
        ((RequestWritten(1, LATER),), OperationEnded(0, _MADE, LATER)),
        ((RequestWritten(1, LATER),), TurnEnded(1, (), LATER)),
        ((RequestWritten(1, LATER), _TAKEN), AnswerTaken(1, "again", "d", LATER)),
        ((RequestWritten(1, LATER), _TAKEN), RequestWritten(1, LATER)),
        (turn(Finished("ok")), RequestWritten(1, LATER)),
        (turn(Finished("ok")), _TAKEN),
    ],
)
def test_a_record_that_cannot_follow_is_an_error(before: tuple[Record, ...], record: Record) -> None:
    """Design, nothing is lost: a damaged session is reported, never guessed at."""
    session = session_of(*before)
    with pytest.raises(ValueError):
        fold(session, record)


def test_a_journal_that_does_not_begin_is_an_error() -> None:
    """Design, nothing is lost: a damaged session is reported."""
    with pytest.raises(ValueError, match=r"^no start of a session$"):
        replay((RequestWritten(1, LATER),))
    with pytest.raises(ValueError, match=r"^a second start of a session$"):
        replay((started(), started()))


# --- what is shown ---------------------------------------------------------------------------------


def test_the_session_file_has_the_fields_of_the_specification() -> None:
    """Specification 003, session state: the names in `sessions/{sessionId}.json`."""
    session = session_of(
        *turn(_MADE),
        *turn(
            CommandRan("dotnet build", 1, "Build FAILED\n", 2.0, notes=("slow",)),
            FileRequested("src/*.cs", ("src/Calculator.cs", "src/b.cs")),
            FileRequested("src/b.cs", ("src/b.cs",)),
            sequence=2,
        ),
    )
    shown = document(session)
    assert shown == {
        "sessionId": "a1b2c3d4",
        "task": "Create a calculator",
        "sequenceNumber": 3,
        "isComplete": False,
        "createdAt": CREATED_AT,
        "updatedAt": LATER,
        "lastResults": [
            {
                "commandType": "RUN_COMMAND",
                "summary": "Ran 'dotnet build' (exit code 1)",
                "success": False,
                "output": "Build FAILED\n\nslow",
            },
            {
                "commandType": "READ_FILE",
                "summary": "Read 2 files for 'src/*.cs'; their text is below",
                "success": True,
                "output": "",
            },
            {
                "commandType": "READ_FILE",
                "summary": "Read 'src/b.cs'; its text is below",
                "success": True,
                "output": "",
            },
        ],
        "readFileRequests": ["src/Calculator.cs", "src/b.cs"],
        "workspace": "/work",
    }
    assert json.loads(json.dumps(shown)) == shown


def test_the_session_file_says_when_it_is_complete() -> None:
    """Specification 003, session state: `isComplete`."""
    assert document(session_of(*turn(Finished("ok"))))["isComplete"] is True


def kept(name: str, sequence: int, *, before: bool) -> CheckpointTaken:
    return CheckpointTaken(sequence, before, name, (), LATER)


def test_the_checkpoint_after_a_turn_may_come_behind_its_request() -> None:
    """Design, undo: the request need not wait for it; until it comes it is known what it is to hold."""
    start = OperationStarted(0, Kind.CREATE_FILE, "a", LATER, (ContentChange("a", None, "digest"),), _MADE)
    records: tuple[Record, ...] = (
        RequestWritten(1, LATER),
        AnswerTaken(1, "r", "d", LATER),
        kept("one", 1, before=True),
        start,
        OperationEnded(0, _MADE, LATER),
        TurnEnded(1, (), LATER),
        RequestWritten(2, LATER),
    )
    waits = session_of(*records)
    held = waits.checkpoints
    assert (held.before, held.turn) == ("one", 1)
    late = fold(waits, kept("two", 1, before=False))
    held = late.checkpoints
    assert (held.before, held.latest) == ("", "two")
    # The request told of all that.
    assert held.told == "two"
    assert late.phase is Phase.AWAITING_ANSWER
    (step,) = steps((started(), *records, kept("two", 1, before=False)))
    assert (step.sequence, step.before, step.after) == (1, "one", "two")
    with pytest.raises(ValueError, match="has not begun"):
        fold(waits, kept("two", 2, before=True))


def test_what_was_begun_before_a_checkpoint_is_not_of_the_part_behind_it() -> None:
    """Design, undo: what the person did where a turn paused is theirs."""
    records: tuple[Record, ...] = (
        RequestWritten(1, LATER),
        AnswerTaken(1, "r", "d", LATER),
        kept("one", 1, before=True),
        OperationStarted(0, Kind.RUN_COMMAND, "true", LATER),
        OperationEnded(0, CommandRan("true", 0, "", 0.1), LATER),
        kept("two", 1, before=False),
    )
    assert session_of(*records[:-1]).checkpoints.commanded_at == LATER
    assert session_of(*records).checkpoints.commanded_at == ""
    assert session_of(*records, kept("three", 1, before=True)).checkpoints.commanded_at == ""


def test_changed_files_are_each_named_once_in_order_if_they_are_other_than_before() -> None:
    """Design, the command line: files touched."""
    changes = ("b", "1", "2"), ("a", None, "1"), ("b", "2", "1"), ("same", "1", "1")
    made = (ContentChange(*each) for each in changes)
    starts = [OperationStarted(at, Kind.EDIT_FILE, "", LATER, (each,)) for at, each in enumerate(made)]
    assert replace(session_of(), written=AppendList(starts)).changed == ("b", "a")


# --- the journal's lines ---------------------------------------------------------------------------

_TEXT = st.text(max_size=10)
_NOTES = st.lists(_TEXT, max_size=2).map(tuple)
_NUMBER = st.integers(0, 10**6)
_HUNKS = st.lists(st.builds(Hunk, _NUMBER, _NUMBER, _NUMBER, _NUMBER), max_size=2).map(tuple)
_PATHS = st.lists(_TEXT, max_size=3).map(tuple)
_KINDS = st.sampled_from(Kind)
_EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(FileCreated, _TEXT, _NUMBER, st.booleans(), notes=_NOTES),
    st.builds(FileEdited, _TEXT, _HUNKS, _TEXT, _NUMBER, notes=_NOTES),
    st.builds(FileDeleted, _TEXT, notes=_NOTES),
    st.builds(FileRequested, _TEXT, _PATHS, st.none() | _NUMBER, st.none() | _NUMBER, notes=_NOTES),
    st.builds(
        CommandRan,
        _TEXT,
        st.integers(-70, 255),
        _TEXT,
        st.floats(0, 3600),
        st.sampled_from(["itself", "time_limit", "output_limit", "process_limit", "memory_limit"]),
        _TEXT,
        _NUMBER,
        st.sampled_from(["bwrap", "none"]),
        st.booleans(),
        st.none() | _TEXT,
        st.none() | _TEXT,
        notes=_NOTES,
    ),
    st.builds(Interrupted, _KINDS, _TEXT, notes=_NOTES),
    st.builds(MessageShown, _TEXT, notes=_NOTES),
    st.builds(Finished, _TEXT, notes=_NOTES),
    st.builds(Refused, _KINDS, _TEXT, _TEXT, _TEXT, notes=_NOTES),
    st.builds(FileFetched, _TEXT, _TEXT, st.sampled_from(["utf-8", "base64"]), _NUMBER, notes=_NOTES),
    st.builds(Denied, _KINDS, _TEXT, _NOTES, _TEXT, _TEXT, notes=_NOTES),
)
_QUESTIONS = st.builds(Question, _KINDS, _TEXT, _NOTES, _NOTES, _TEXT, _TEXT)
_ANSWERS = st.builds(Answer, st.sampled_from(["yes", "no", "always"]), _TEXT, _TEXT)
_CHANGES = st.builds(ContentChange, _TEXT, st.none() | _TEXT, st.none() | _TEXT, _TEXT)
_RECORDS: st.SearchStrategy[Record] = st.one_of(
    st.builds(SessionStarted, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT, st.booleans()),
    st.builds(ApprovalAsked, _NUMBER, _QUESTIONS, _TEXT, _TEXT),
    st.builds(ApprovalAnswered, _NUMBER, _ANSWERS, _TEXT),
    st.builds(CheckpointTaken, _NUMBER, st.booleans(), _TEXT, _NOTES, _TEXT),
    st.builds(UndoBegan, st.lists(_NUMBER, max_size=3).map(tuple), _TEXT, _TEXT),
    st.builds(UndoEnded, _TEXT, _NOTES, _TEXT),
    st.builds(RequestWritten, _NUMBER, _TEXT),
    st.builds(AnswerTaken, _NUMBER, _TEXT, _TEXT, _TEXT),
    st.builds(AnswerSetAside, _TEXT, _TEXT, _TEXT),
    st.builds(
        OperationStarted,
        _NUMBER,
        _KINDS,
        _TEXT,
        _TEXT,
        st.lists(_CHANGES, max_size=3).map(tuple),
        st.none() | _EVENTS,
    ),
    st.builds(OperationEnded, _NUMBER, _EVENTS, _TEXT, _TEXT),
    st.builds(TurnEnded, _NUMBER, _NOTES, _TEXT, _TEXT),
    st.builds(SessionReopened, _TEXT),
    st.builds(PersonSaid, _TEXT, _NOTES, _TEXT),
    st.builds(RefreshAsked, _TEXT, st.booleans()),
    st.builds(CheckEnded, _EVENTS, _TEXT),
)


@given(_RECORDS)
def test_a_record_comes_back_from_its_line(record: Record) -> None:
    """Design, nothing is lost: the journal lets a killed session go on, so it keeps every field."""
    assert decode_record(encode_record(record)) == record


@each_row(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b'{"kind": "other"}',
        b'{"kind": "outbox_written"}',
        b'{"kind": "outbox_written", "sequence": "x", "at": ""}',
        b'{"kind": "outbox_written", "sequence": 1, "at"',
        b'{"kind": "operation_ended", "index": 0, "event": {}, "at": ""}',
        b"[" * 100_000,
    ],
)
def test_a_line_that_is_no_record_is_an_error(line: bytes) -> None:
    """Design, nothing is lost: a damaged session is reported."""
    with pytest.raises(ValueError):
        decode_record(line)


_TURNS = st.lists(st.tuples(st.lists(_EVENTS, max_size=4), _NOTES), max_size=4)


def _journal(turns: list[tuple[list[Event], tuple[str, ...]]]) -> list[Record]:
    """Return a journal as the agent would write it, up to the turn that finishes."""
    records: list[Record] = [started()]
    for sequence, (events, notes) in enumerate(turns, start=1):
        records += turn(*events, sequence=sequence, notes=notes)
        if any(isinstance(event, Finished) for event in events):
            break
    return records


@given(_TURNS, st.data())
def test_nothing_is_known_that_the_journal_does_not_know(
    turns: list[tuple[list[Event], tuple[str, ...]]], data: st.DataObject
) -> None:
    """Design, nothing is lost: killed at any instant, the state is what the records say, and no more."""
    records = _journal(turns)
    cut = data.draw(st.integers(0, len(records)))
    session = replay(records[:cut])
    known = [record.event for record in records[:cut] if isinstance(record, OperationEnded)]
    if session is not None:
        assert list(session.results) == known[len(known) - len(session.results) :]
        assert sum(isinstance(record, TurnEnded) for record in records[:cut]) in {
            session.sequence - 1,
            session.sequence,
        }
        paths = {event.path for event in known if isinstance(event, FileCreated | FileEdited | FileFetched)}
        paths.update(path for event in known if isinstance(event, FileRequested) for path in event.paths)
        assert session.touched <= paths
        assert session.updated_at == records[cut - 1].at
    for record in records[cut:]:
        session = fold(session, record)
    assert session == replay(records)
