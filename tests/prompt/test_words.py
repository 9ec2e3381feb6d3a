"""The person's words in the record and in the requests: each stays, and none is lost between two requests."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from codingagent.model.approval import Answer, Question
from codingagent.model.events import FileCreated, Finished, MessageShown
from codingagent.model.journal_entries import (
    AnswerTaken,
    ApprovalAnswered,
    ApprovalAsked,
    OperationEnded,
    PersonSaid,
    Record,
    RefreshAsked,
    RequestWritten,
    SessionReopened,
    TurnEnded,
    UndoBegan,
    UndoEnded,
)
from codingagent.model.operations import Kind
from codingagent.model.session_fold import fold, replay
from codingagent.model.session_state import Phase, Session
from codingagent.prompt import render as outbox
from tests.builders import BUDGET, LATER, context_of, session_of, started, turn

_QUESTION = Question(Kind.RUN_COMMAND, "rm", ("destroys",), ("may destroy",), "rm -r x", "digest")
ADDS_NOTHING = "The user has no reply to your message"


def say(text: str, *attached: str) -> PersonSaid:
    return PersonSaid(text, attached, LATER)


def whole(session: Session) -> str:
    return outbox.render(session, context_of(), BUDGET).partition("=== PROMPT ===\n")[2]


def short(session: Session) -> str:
    text = outbox.render_short(session, context_of(), BUDGET, outbox.tag_dialect(), None)
    return text.partition("=== PROMPT ===\n")[2]


# --- the record ------------------------------------------------------------------------------------


def test_words_make_a_request_due_again_under_its_number() -> None:
    session = session_of(RequestWritten(1, LATER), say("also this", "a.py"))
    assert (session.phase, session.sequence) == (Phase.REQUEST_DUE, 1)
    assert [(said.sequence, said.text, said.attached) for said in session.said] == [
        (1, "also this", ("a.py",))
    ]
    assert session.attached == ("a.py",)
    assert "a.py" in session.touched


def test_a_refresh_makes_a_request_due_again_and_says_nothing() -> None:
    session = session_of(RequestWritten(1, LATER), RefreshAsked(LATER))
    assert (session.phase, session.sequence, session.said) == (Phase.REQUEST_DUE, 1, ())


def test_words_in_mid_turn_belong_to_the_next_request() -> None:
    begun = (RequestWritten(1, LATER), AnswerTaken(1, "r.txt", "d", LATER))
    session = session_of(*begun, say("also this", "a.py"), TurnEnded(1, (), LATER))
    assert [said.sequence for said in session.said] == [session.sequence] == [2]
    assert session.attached == ("a.py",)


def test_words_in_mid_turn_keep_a_task_open_that_the_turn_ends() -> None:
    """Anyone who sent [DONE] did not know of them."""
    begun = (RequestWritten(1, LATER), AnswerTaken(1, "r.txt", "d", LATER))
    done = (OperationEnded(0, Finished("ok"), LATER), TurnEnded(1, ("a note",), LATER))
    session = session_of(*begun, say("also this"), *done)
    assert (session.phase, session.sequence) == (Phase.REQUEST_DUE, 2)
    assert "after your DONE" in session.notes[-1]
    assert "The user says:\nalso this" in whole(session)
    assert session_of(*begun, *done).is_complete


def test_words_do_not_come_where_a_session_is_complete() -> None:
    with pytest.raises(ValueError, match="person_said"):
        session_of(*turn(Finished("ok")), say("more"))


def test_an_undo_ends_where_words_came_in_between() -> None:
    """Without git an interrupted undo waits, and the person may speak meanwhile."""
    undo = (UndoBegan((0,), "c", LATER), say("x"), UndoEnded("d", ("undone",), LATER))
    session = session_of(RequestWritten(1, LATER), *undo)
    assert (session.phase, session.undoing) == (Phase.REQUEST_DUE, None)


def _next(session: Session, choice: int, text: str) -> tuple[Record, ...]:
    """Return records that may follow, as the program writes them."""
    number = session.sequence
    match session.phase:
        case Phase.REQUEST_DUE:
            return ((RequestWritten(number, LATER),), (say(text, "a"),))[choice % 2]
        case Phase.AWAITING_ANSWER:
            taken = AnswerTaken(number, f"r{number}", f"d{number}", LATER)
            return ((say(text),), (RefreshAsked(LATER),), (taken,), (say("", "b"),))[choice % 4]
        case Phase.EXECUTING:
            index = len(session.results)
            ended: tuple[Record, ...] = (TurnEnded(number, (), LATER),)
            return (
                (OperationEnded(index, MessageShown("hm"), LATER),),
                (OperationEnded(index, Finished("ok"), LATER), *ended),
                (ApprovalAsked(index, _QUESTION, LATER),),
                (say(text),),
                ended,
            )[choice % 5]
        case Phase.AWAITING_APPROVAL:
            assert session.asked is not None
            answered = ApprovalAnswered(session.asked.index, Answer("yes"), LATER)
            return ((answered,), (say(text, "c"),))[choice % 2]
        case Phase.COMPLETE:
            return (SessionReopened(LATER), say(text))


@given(st.lists(st.tuples(st.integers(0, 60), st.text(max_size=8)), max_size=40), st.data())
def test_a_session_is_what_its_record_says_and_every_word_is_in_it_once(
    choices: list[tuple[int, str]], data: st.DataObject
) -> None:
    """Design, nothing is lost: replay(journal) == session; words are never before their request."""
    records: list[Record] = [started()]
    session = fold(None, records[0])
    written: list[int] = []
    for choice, text in choices:
        for record in _next(session, choice, text):
            before = session
            session = fold(session, record)
            records.append(record)
            if isinstance(record, RequestWritten):
                written.append(record.sequence)
            if isinstance(record, PersonSaid):
                busy = before.phase in (Phase.EXECUTING, Phase.AWAITING_APPROVAL)
                assert session.said[-1].sequence == before.sequence + busy
    assert session == replay(records)
    cut = data.draw(st.integers(1, len(records)))
    again = replay(records[:cut])
    for record in records[cut:]:
        again = fold(again, record)
    assert again == session
    told = [(r.text, r.attached) for r in records if isinstance(r, PersonSaid)]
    assert [(said.text, said.attached) for said in session.said] == told
    # No gap in the sequence, and no step back.
    assert all(later - earlier in {0, 1} for earlier, later in itertools.pairwise(written))
    # Whoever has not been in a request yet is still to come.
    assert all(said.sequence <= session.sequence + 1 for said in session.said)
    if session.is_complete:
        assert all(said.sequence <= session.sequence for said in session.said)


# --- the requests ----------------------------------------------------------------------------------


def test_words_stand_in_the_request_they_came_with_whole_and_short() -> None:
    session = session_of(*turn(FileCreated("a", 1, replaced=False)), say("one"), say("two"))
    for text in (whole(session), short(session)):
        assert "The user says:\none\n\ntwo\n" in text


def test_words_that_the_answer_may_have_missed_come_again() -> None:
    written = RequestWritten(1, LATER)
    session = session_of(written, say("one"), *turn(MessageShown("hm")), say("two"))
    for text in (whole(session), short(session)):
        assert "before your last answer, which might not have seen it:\none\n" in text
        assert "The user says:\ntwo\n" in text


def test_words_that_the_request_had_from_the_first_were_seen() -> None:
    """Only what came after the request was out may be news to the one who answered it."""
    reopened = SessionReopened(LATER)
    for session in (
        session_of(say("by Friday"), *turn(MessageShown("hm"))),
        session_of(*turn(Finished("ok")), reopened, say("by Friday"), *turn(MessageShown(""), sequence=2)),
    ):
        assert "Earlier the user said:\nby Friday\n" in whole(session)
        assert "might not have seen" not in whole(session)
        assert "by Friday" not in short(session)


def test_in_the_whole_request_all_earlier_words_stay() -> None:
    """A whole request is for a chat that has seen nothing."""
    records: list[Record] = []
    for number in range(1, 9):
        records += [
            RequestWritten(number, LATER),
            say(f"word {number} " + "x" * 4000),
            *turn(MessageShown("hm"), sequence=number),
        ]
    session = session_of(*records)
    assert [n for n in range(1, 9) if whole(session).count(f"word {n} ") == 1] == list(range(1, 9))
    assert "word 1 " not in short(session)
    assert "word 8 " in short(session)


def test_earlier_words_beyond_their_share_lose_their_middle_and_that_is_said() -> None:
    records: list[Record] = []
    for number in range(1, 5):
        records += [say(f"w{number} " + "x" * 40_000), *turn(MessageShown("hm"), sequence=number)]
    session = session_of(*records)
    text = whole(session)
    assert "w1 " in text
    assert "characters left out" in text
    assert len(text) < 40_000 + BUDGET.context_chars // 2


def test_attached_files_are_named_and_are_no_silence() -> None:
    session = session_of(*turn(MessageShown("which file?")), say("", "src/a b.py", "c\n.py"))
    assert "The user attaches src/a b.py, c\\n.py: see Requested File Contents." in whole(session)
    assert ADDS_NOTHING not in whole(session)


def test_to_a_message_alone_the_person_adds_nothing_unless_they_speak() -> None:
    asked = session_of(*turn(MessageShown("tabs or blanks?")))
    spoken = replace(fold(asked, say("tabs")), phase=Phase.REQUEST_DUE)
    other = session_of(*turn(MessageShown("done so far"), FileCreated("a", 1, replaced=False)))
    for render in (whole, short):
        assert ADDS_NOTHING in render(asked)
        assert ADDS_NOTHING not in render(spoken)
        assert ADDS_NOTHING not in render(other)
