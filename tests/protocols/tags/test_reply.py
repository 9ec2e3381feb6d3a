"""A reply as a whole: specification 003, inbox format, and Design, tag blocks."""

import contextlib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from codingagent.editing import apply, body_rules
from codingagent.errors import OperationError
from codingagent.model.chat_damage import BodyEvidence
from codingagent.model.journal_entries import AnswerTaken
from codingagent.model.operations import AT_ONCE, CreateFile, EditFile, Finish, Operation
from codingagent.model.session_state import Session
from codingagent.prompt import guide
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Header, Problem, Reply, Step
from tests import golden
from tests.builders import LATER, SESSION_ID, session_of, turn
from tests.helpers import calls_of, cpu_below
from tests.rows import each_row

_GOOD = (
    '[REPLY session="a1b2c3d4" sequence="2"]\n[MESSAGE]\nhi\n[/MESSAGE]\n[CREATE_FILE path="a.py"]\n'
    "def f():\n    return 1\n[/CREATE_FILE]\nSome words.\n"
    '[EDIT_FILE path="a.py"]\n<<<<<<< SEARCH\n    return 1\n'
    "=======\n    return 2\n>>>>>>> REPLACE\n[/EDIT_FILE]\n"
    "[RUN_COMMAND]\npytest\n[/RUN_COMMAND]\n"
    '[DELETE_FILE path="b"]\n[READ_FILE path="c"]\n[DONE]\nAll is well.\n[/DONE]\n[END]\n'
)
_PIECES = [
    '[CREATE_FILE path="a"]\nx\n[/CREATE_FILE]\n',
    '[CREATE_FILE path="a" until="E"]\n[/CREATE_FILE]\n[/CREATE_FILE E]\n',
    "[RUN_COMMAND]ls[/RUN_COMMAND]\n",
    "[MESSAGE] a\nb\n[/MESSAGE]\n",
    '[READ_FILE path="r"] now\n',
    '[DELETE_FILE path="d"]\n',
    "prose\n",
    "[DONE] will follow\n",
    "[DONE]\nok\n[/DONE]\n",
    "[END]\n",
    "[CREATE_FILE path=a]\nx\n[/CREATE_FILE]\n",
    '[READ_FILE path="../x"]\n',
    '[MESSAGE]\n[DELETE_FILE path="m"]\n[/MESSAGE]\n',
    '[REPLY session="a1b2c3d4" sequence="1"]\n',
]


def operations(text: str) -> list[Operation]:
    return [item.operation for item in reply.read(text).items if isinstance(item, Step)]


def problems(text: str) -> list[Problem]:
    return [item for item in reply.read(text).items if isinstance(item, Problem)]


def show(text: str) -> str:
    """Return all that an answer is read as, in one line; a whole file as it would be written."""
    found = reply.read(text)
    words = [", ".join([_shown(item), *item.notes]) for item in found.items]
    words += [str(found.header)] if found.header else []
    words += ["a request"] * found.has_outbox + ["no block"] * found.is_bare
    return " · ".join([*words, *([f"cut {found.cut!r}"] if found.cut else []), *found.notes])


def _shown(item: Step | Problem) -> str:
    if isinstance(item, Problem):
        return f"{item.kind} at {item.line}, not done: {item.reason}"
    fields: dict[str, object] = asdict(item.operation)
    arrival = fields.pop("arrival", None)
    if isinstance(item.operation, CreateFile) and isinstance(arrival, BodyEvidence):
        content, path = item.operation.content, item.operation.path
        if isinstance(content, str):
            with contextlib.suppress(OperationError):
                fields["content"] = body_rules.mend_file(content, path, arrival, None).text
    usual: dict[str, object] = {"timeout_s": None, "cwd": ".", "variables": {}, "overwrite": True}
    said = {key: value for key, value in fields.items() if value is not None}
    words = [f"{key}={value!r}" for key, value in said.items() if usual.get(key, False) != value]
    return ", ".join([f"{item.kind} at {item.line}", *words])


TABLES: dict[str, golden.Show] = {"reads.txt": show}


@each_row(("text", "found"), golden.cases(__file__, "reads.txt"))
def test_what_an_answer_is_read_as(text: str, found: str) -> None:
    """Specification 003, Design, tag blocks, and Design, replies as chats really give them."""
    assert show(text) == found


# --- reading ---------------------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "block",
    ['[DELETE_FILE path="{n}"]\n', '[CREATE_FILE pth="{n}"]\nx\n[/CREATE_FILE]\n', "[READ_FILE]\n"],
    ids=["good", "bad", "bare"],
)
def test_too_many_blocks_are_refused_whole(block: str) -> None:
    """Safety: what would take minutes to answer one by one is answered in one line, well-formed or not."""
    text = "".join(block.format(n=n) for n in range(AT_ONCE + 1))
    [problem] = reply.read(text).items
    assert isinstance(problem, Problem)
    assert problem.kind == "REPLY"
    assert problem.reason == (
        "The answer has 10,001 operations; at most 10,000 are executed, so nothing was done: send"
        " several answers"
    )
    assert len(reply.read(text.removesuffix(block.format(n=AT_ONCE))).items) == AT_ONCE


@each_row("text", ["", "\n", "Sorry, I can't.", "```python\nx\n```\n", "[TODO]\n", "[DONE] follows\n"])
def test_a_reply_without_any_block_says_so_and_shows_an_example(text: str) -> None:
    """Design, tag blocks, no block at all: the turn's result says so and shows the model one example."""
    (problem,) = reply.read(text).items
    assert isinstance(problem, Problem)
    assert problem.kind == "REPLY"
    assert problem.reason == (
        "The answer has no operations, so nothing was done. Write operations at the start of a line,"
        " for example:"
    )
    assert operations(problem.detail)
    assert not problems(problem.detail)


# --- DONE and END ----------------------------------------------------------------------------------


def test_of_many_blocks_after_done_twenty_are_named() -> None:
    """Design, tag blocks: what stood there is named, within reason."""
    found = reply.read("[DONE]\nok\n[/DONE]\n" + '[DELETE_FILE path="a"]\n' * 100)
    [problem] = found.items
    assert isinstance(problem, Problem)
    assert "DELETE_FILE at line 23 and 80 more; send it" in problem.reason


# --- whose reply it is -----------------------------------------------------------------------------


def _waiting(sequence: int = 2, digest: str = "") -> Session:
    session = session_of(*(record for n in range(1, sequence) for record in turn(sequence=n)))
    assert session.sequence == sequence
    if not digest:
        return session
    return session_of(*turn(), AnswerTaken(2, "x", digest, LATER)) if sequence == 2 else session


@each_row(
    ("header", "reason"),
    [
        (None, ""),
        (Header(None, None), ""),
        (Header(SESSION_ID, 2), ""),
        (Header(SESSION_ID, None), ""),
        (Header(None, 2), ""),
        (Header("ffffffff", 2), "it answers session ffffffff, not a1b2c3d4"),
        (Header("ffffffff", None), "it answers session ffffffff, not a1b2c3d4"),
        (Header(SESSION_ID, 1), "it answers request 1, but request 2 is waiting"),
        (Header(None, 1), "it answers request 1, but request 2 is waiting"),
    ],
)
def test_a_reply_to_something_else_is_objected_to(header: Header | None, reason: str) -> None:
    """Design, tag blocks: one that names another session or an older sequence is not executed."""
    assert reply.objection(header, _waiting(), "new") == reason


@each_row(
    ("header", "objects"),
    [
        (None, True),
        (Header(SESSION_ID, None), True),
        (Header(SESSION_ID, 2), False),
        (Header(None, 2), False),
    ],
)
def test_the_last_reply_again_is_objected_to(header: Header | None, objects: bool) -> None:
    """Design, nothing runs twice: the last reply again, byte for byte, without a `[REPLY]` of this turn."""
    reason = reply.objection(header, _waiting(), "digest-1")
    assert reason == ("it is exactly the last answer, which was executed already" if objects else "")


def test_a_foreign_session_is_shown_in_one_short_line() -> None:
    """Design, purpose: the reply is not trusted, in messages neither."""
    reason = reply.objection(Header("x\n[OK]\x1b" * 1000, 2), _waiting(), "new")
    assert reason.isprintable()
    assert len(reason) < 2500


def test_an_outbox_is_known() -> None:
    """Design, tag blocks: an outbox saved into the inbox is never executed."""
    assert reply.read(f"=== HEADER ===\nSession: x\n=== PROTOCOL ===\n{_GOOD}").has_outbox
    assert not reply.read(_GOOD).has_outbox


def test_an_outbox_behind_an_unclosed_block_is_known_too() -> None:
    """Design, tag blocks: an outbox is never executed: an open block would end at one of its examples."""
    outbox = f"=== HEADER ===\nSession: a1b2c3d4\n\n=== PROTOCOL ===\n{guide.protocol_text()}\n"
    assert reply.read(f'[CREATE_FILE path="a"]\nx\n{outbox}').has_outbox


def test_a_note_is_put_in_front() -> None:
    """Design, the inbox: an encoding that was guessed is said in the result."""
    found = Reply((), None, has_outbox=False, notes=("b",))
    assert reply.with_note(found, "a").notes == ("a", "b")
    assert reply.with_note(found, "") is found


# --- properties ------------------------------------------------------------------------------------


@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(_PIECES)).map("".join)))
def test_reading_never_raises_and_never_says_nothing(text: str) -> None:
    """Design, replies as chats give them: never silence; items come in the order of their lines."""
    found = reply.read(text)
    lines = [item.line for item in found.items]
    assert found.items or found.notes
    assert lines == sorted(lines)
    assert all(item.reason.isprintable() for item in found.items if isinstance(item, Problem))
    finishes = [
        index
        for index, item in enumerate(found.items)
        if isinstance(item, Step) and isinstance(item.operation, Finish)
    ]
    assert finishes in ([], [len(found.items) - 1])


@given(st.lists(st.sampled_from(_PIECES)).map("".join), st.data())
def test_what_is_left_of_a_reply_cut_short_is_what_stood_there(text: str, data: st.DataObject) -> None:
    """Design, tag blocks, truncated: complete blocks up to the cut are executed, and nothing else."""
    cut = data.draw(st.integers(0, len(text)))
    before, whole = operations(text[:cut]), operations(text)
    if "[REPLY" in text[1:]:
        return  # what stands before it is a draft
    # A body with a tag in it is taken only where all blocks are closed: cut, it is asked for again.
    rest = iter(whole)
    assert all(operation in rest for operation in before[:-1])


@given(st.lists(st.sampled_from(_PIECES)).map("".join))
def test_reading_the_same_text_twice_gives_the_same(text: str) -> None:
    """Specification 003, design goals: re-processing a message produces the same results."""
    assert reply.read(text) == reply.read(text)


def test_ten_thousand_blocks_are_read_in_a_moment() -> None:
    """Design, speed: no work that grows beyond the text."""
    with cpu_below(50):
        found = reply.read('[CREATE_FILE path="a"]\nx\n[/CREATE_FILE]\n[READ_FILE path="../b"]\n' * 5_000)
    assert len(found.items) == 10_000


@pytest.mark.parametrize("around", ["{}", '[CREATE_FILE path="a.md"]\nx\n{}[/CREATE_FILE]\n'])
def test_blank_lines_take_no_more_memory_than_other_lines(around: str) -> None:
    """A repetition keeps a way back for each round: 126 MB for a megabyte of line ends."""
    text = around.format("\n" * 200_000)
    reply.read(around.format("\n"))
    tracemalloc.start()
    try:
        reply.read(text)
        assert tracemalloc.get_traced_memory()[1] < 60 * len(text)
    finally:
        tracemalloc.stop()


def test_what_came_in_a_code_block_has_not_lost_its_indentation() -> None:
    """Design, replies: advice must be possible to follow; "send it in a code block" is not, there."""
    edit = (
        '[EDIT_FILE path="a.py"]\n<<<<<<< SEARCH\ndef a():\n=======\ndef a(x):\nreturn x\n>>>>>>> REPLACE\n'
        "[/EDIT_FILE]\n"
    )
    file = "def a():\n    pass\n\n\ndef c():\n    pass\n"

    def result(text: str) -> str:
        (item,) = reply.read(text).items
        assert isinstance(item, Step)
        assert isinstance(item.operation, EditFile)
        assert isinstance(item.operation.change, tuple)
        try:
            return apply.apply(item.operation.change, file, item.operation.arrival, path="a.py").text
        except OperationError as fault:
            return fault.reason

    assert "send this block again in a code block" in result(edit)
    assert result(f"````\n{edit}````\n") == file.replace("a():", "a(x):\nreturn x")
    assert result(f"Here:\n\n```text\n{edit}```\n") == result(f"````\n{edit}````\n")
    assert "send this block again" in result(f"```\nls\n```\n\n{edit}")


def test_the_markers_of_an_edit_are_read_once() -> None:
    """A second reading is for a body that can't be read as it came."""
    assert calls_of(apply.read_replacements, lambda: reply.read(_GOOD)) == 1
