"""A reply as a whole: specification 003, inbox format, and Design, tag blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing import apply
from codingagent.errors import OperationError
from codingagent.model.journal_entries import AnswerTaken
from codingagent.model.operations import (
    AT_ONCE,
    CreateFile,
    DeleteFile,
    EditFile,
    Finish,
    Kind,
    Operation,
    ReadFile,
    RunCommand,
    ShowMessage,
)
from codingagent.model.session_state import Session
from codingagent.prompt import guide
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Header, Problem, Reply, Step
from tests.builders import LATER, SESSION_ID, session_of, turn
from tests.helpers import calls_of, cpu_below

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


# --- reading ---------------------------------------------------------------------------------------


def test_a_good_reply_is_read_whole_and_in_order() -> None:
    """Specification 003, parsing rules 5 and 6: many commands, executed in order of appearance."""
    found = reply.read(_GOOD)
    assert [type(item.operation) for item in found.items if isinstance(item, Step)] == [
        ShowMessage,
        CreateFile,
        EditFile,
        RunCommand,
        DeleteFile,
        ReadFile,
        Finish,
    ]
    assert [(item.kind, item.line) for item in found.items] == [
        ("MESSAGE", 2),
        ("CREATE_FILE", 5),
        ("EDIT_FILE", 10),
        ("RUN_COMMAND", 17),
        ("DELETE_FILE", 20),
        ("READ_FILE", 21),
        ("DONE", 22),
    ]
    assert (found.header, found.has_outbox, found.notes) == (Header(SESSION_ID, 2), False, ())


@pytest.mark.parametrize(
    "mangled",
    [
        _GOOD.replace("\n", "\r\n"),
        f"Sure, here it is:\n\n{_GOOD}\nLet me know!\n",
        f"````\n{_GOOD}````\n",
        _GOOD.removesuffix("\n"),
        _GOOD.replace("]\n", "]  \n"),
        f"\n\n{_GOOD}",
    ],
    ids=["CRLF", "in prose", "in a fence", "no last newline", "trailing blanks", "blank lines"],
)
def test_a_good_reply_means_the_same_however_it_is_pasted(mangled: str) -> None:
    """Design, replies as chats give them: CRLF, prose, a fence, trailing blanks, no last newline."""
    assert operations(mangled) == operations(_GOOD)
    assert not problems(mangled)


def test_one_bad_block_never_costs_the_others() -> None:
    """Design, tag blocks: one bad block never costs the others; it is an item in its place."""
    text = '[READ_FILE path="a"]\n[READ_FILE path="../x"]\n[READ_FILE path="b"]\n'
    assert reply.read(text).items == (
        Step(ReadFile("a"), 1),
        Problem(
            Kind.READ_FILE,
            "REJECTED: Path is outside workspace: '../x' (line 2 of the answer)",
            2,
            subject="../x",
        ),
        Step(ReadFile("b"), 3),
    )


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
        "The answer holds 10,001 commands; at most 10,000 are executed at once, so nothing was done: send"
        " several answers"
    )
    assert len(reply.read(text.removesuffix(block.format(n=AT_ONCE))).items) == AT_ONCE


def test_a_problem_says_its_line() -> None:
    """Specification 003, parse errors: sent to the LLM, so that it can correct itself."""
    (problem,) = problems("text\n\n[CREATE_FILE]\nx\n[/CREATE_FILE]\n")
    assert problem == Problem(
        Kind.CREATE_FILE,
        "Missing attribute 'path'; write [CREATE_FILE path=\"relative/path\"] (line 3 of the answer)",
        3,
    )


def test_notes_on_the_block_and_on_its_attributes_are_kept_together() -> None:
    """Design, tag blocks: each is noted in the result of the block that it is about."""
    (item,) = reply.read('[READ_FILE path="a" x="1"] please\n').items
    assert item.notes == (
        "text after the tag was ignored: 'please'",
        "unknown attribute 'x' was ignored",
    )


def test_a_problem_keeps_the_notes_of_its_block() -> None:
    """Design, tag blocks: an opening line inside a body is warned of, even if the block has another fault."""
    (problem,) = problems('[CREATE_FILE path="../a"]\n[DELETE_FILE path="b"]\n[/CREATE_FILE]\n')
    assert problem.notes
    assert "is inside this body, at line 2" in problem.notes[0]


@pytest.mark.parametrize(
    "text", ["", "\n", "Sorry, I can't.", "```python\nx\n```\n", "[TODO]\n", "[DONE] follows\n"]
)
def test_a_reply_without_any_block_says_so_and_shows_an_example(text: str) -> None:
    """Design, tag blocks, no block at all: the turn's result says so and shows the model one example."""
    (problem,) = reply.read(text).items
    assert isinstance(problem, Problem)
    assert problem.kind == "REPLY"
    assert problem.reason == (
        "No command was found in the answer, so nothing was done. Write commands at the start of a line,"
        " for example:"
    )
    assert operations(problem.detail)
    assert not problems(problem.detail)


# --- unclosed and cut short ------------------------------------------------------------------------


def test_an_unclosed_block_is_asked_for_again_and_the_blocks_before_it_are_executed() -> None:
    """Specification 003, parse errors: an unclosed command is noted. Design: "send only …"."""
    text = '[READ_FILE path="a"]\n[CREATE_FILE path="b"]\nx\n[DELETE_FILE path="c"]\n'
    assert operations(text) == [ReadFile("a")]
    (problem,) = problems(text)
    assert (problem.kind, problem.line) == ("CREATE_FILE", 2)
    assert problem.reason == (
        "CREATE_FILE 'b' at line 2 has no closing tag [/CREATE_FILE], so nothing of it was used; send only"
        " this block again, whole"
    )


def test_an_unclosed_block_with_until_is_told_its_own_closing_tag() -> None:
    """Design, tag blocks: it ends only at `[/NAME TOKEN]`, so that is the closing tag that is missing."""
    (problem,) = problems('[CREATE_FILE path="b" until="EOF"]\nx\n[/CREATE_FILE]\n')
    assert "has no closing tag [/CREATE_FILE EOF]," in problem.reason


def test_a_reply_with_its_header_and_without_its_end_is_cut_short() -> None:
    """Design, tag blocks: `REPLY` but no `END`: complete blocks are executed, the rest is asked for."""
    found = reply.read('[REPLY session="a1b2c3d4" sequence="1"]\n[READ_FILE path="a"]\n')
    assert len(found.items) == 1
    assert found.notes == (
        (
            "the answer has no [END], so it may have been cut short: what arrived whole was executed; send"
            " only what is missing"
        ),
    )


@pytest.mark.parametrize(
    "text",
    [
        '[READ_FILE path="a"]\n',
        '[REPLY session="a1b2c3d4"]\n[READ_FILE path="a"]\n[END]\n',
        '[REPLY session="a1b2c3d4"]\n[DONE]\nok\n[/DONE]\n',
    ],
)
def test_a_whole_reply_is_not_called_cut_short(text: str) -> None:
    """Design, tag blocks: REPLY and END are optional to the reader, and DONE ends a reply too."""
    assert reply.read(text).notes == ()


def test_a_reply_cut_right_behind_its_header_is_both() -> None:
    """Design, tag blocks: truncated, and without any block."""
    found = reply.read('[REPLY session="a1b2c3d4" sequence="1"]\n')
    assert [type(item) for item in found.items] == [Problem]
    assert len(found.notes) == 1


# --- DONE and END ----------------------------------------------------------------------------------


def test_after_done_nothing_more_is_executed_and_it_is_named() -> None:
    """Design, tag blocks, after DONE: nothing more of that reply is executed; what stood there is named."""
    found = reply.read(
        '[DONE]\nok\n[/DONE]\n[DELETE_FILE path="a"]\n[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n'
    )
    assert found.items == (
        Problem(
            Kind.DONE,
            "Not taken, because this was not executed: DELETE_FILE at line 4, RUN_COMMAND at line 5; send"
            " it, and DONE as the last block",
            1,
        ),
    )
    assert found.notes == ()


def test_a_done_that_is_no_done_ends_nothing() -> None:
    """Design, tag blocks: prose such as `[DONE] will follow` is no command."""
    assert operations('[DONE] will follow\n[READ_FILE path="a"]\n') == [ReadFile("a")]


@pytest.mark.parametrize(
    "text", ["[DONE]", "[DONE]\n[END]\n", '[REPLY session="a1b2c3d4"]\n[DONE]\n\n[END]\n']
)
def test_a_bare_done_at_the_end_finishes(text: str) -> None:
    """Design, tag blocks: a bare `[DONE]` as the last line is accepted, and noted; `[END]` may follow."""
    found = reply.read(text)
    assert [item.operation for item in found.items if isinstance(item, Step)] == [Finish("")]
    assert found.items[0].notes
    assert found.notes == ()


def test_what_stands_behind_the_end_is_named_and_not_executed() -> None:
    """Design, tag blocks: the guide asks the model to end with `[END]`; never silence about the rest."""
    found = reply.read('[READ_FILE path="a"]\n[END]\n[DELETE_FILE path="b"]\n')
    assert operations('[READ_FILE path="a"]\n[END]\n[DELETE_FILE path="b"]\n') == [ReadFile("a")]
    assert found.notes == ("not executed, because it comes after [END]: DELETE_FILE at line 3",)


def test_of_many_blocks_after_done_twenty_are_named() -> None:
    """Design, tag blocks: what stood there is named, within reason."""
    found = reply.read("[DONE]\nok\n[/DONE]\n" + '[DELETE_FILE path="a"]\n' * 100)
    [problem] = found.items
    assert "DELETE_FILE at line 23 and 80 more; send it" in str(problem)


# --- whose reply it is -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ('[REPLY session="a1b2c3d4" sequence="2"]', Header("a1b2c3d4", 2)),
        ('[REPLY sequence="0002"]', Header(None, 2)),
        ('[REPLY session="a1b2c3d4"]', Header("a1b2c3d4", None)),
        ('[REPLY session="a1b2c3d4" sequence="two"]', Header("a1b2c3d4", None)),
        ('[REPLY session="a1b2c3d4" sequence="-1"]', Header("a1b2c3d4", None)),
        ('[REPLY sequence="' + "9" * 5000 + '"]', Header(None, None)),
        ("[REPLY]", Header(None, None)),
        ("text", None),
    ],
)
def test_the_header_says_what_is_answered(line: str, header: Header | None) -> None:
    """Design, tag blocks: `[REPLY session="…" sequence="N"]`, optional to the reader."""
    assert reply.read(f"{line}\n[END]\n").header == header


def test_a_header_counts_behind_other_blocks_too() -> None:
    """Design, tag blocks: a `REPLY` that names another session is not executed, wherever it stands."""
    found = reply.read(
        '[MESSAGE]\nhi\n[/MESSAGE]\n[REPLY session="ffffffff" sequence="1"]\n[DELETE_FILE path="a"]\n[END]\n'
    )
    assert found.header == Header("ffffffff", 1)


def _waiting(sequence: int = 2, digest: str = "") -> Session:
    session = session_of(*(record for n in range(1, sequence) for record in turn(sequence=n)))
    assert session.sequence == sequence
    if not digest:
        return session
    return session_of(*turn(), AnswerTaken(2, "x", digest, LATER)) if sequence == 2 else session


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
    assert reason == (
        "it is the last answer again, letter by letter, and was executed already" if objects else ""
    )


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
def test_what_is_left_of_a_reply_cut_short_is_what_stood_there(
    text: str, data: st.DataObject
) -> None:
    """Design, tag blocks, truncated: complete blocks up to the cut are executed, and nothing else."""
    cut = data.draw(st.integers(0, len(text)))
    before, whole = operations(text[:cut]), operations(text)
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
        found = reply.read(
            '[CREATE_FILE path="a"]\nx\n[/CREATE_FILE]\n[READ_FILE path="../b"]\n' * 5_000
        )
    assert len(found.items) == 10_000


@pytest.mark.parametrize(
    "line", ["[REPLY session=ffffffff sequence=7]", "[REPLY session=“ffffffff” sequence=“7”]"]
)
def test_a_header_is_read_however_it_is_quoted(line: str) -> None:
    """Design, tag blocks: a REPLY that names another session is not executed, whatever its quotes."""
    assert reply.read(f"{line}\n[END]\n").header == Header("ffffffff", 7)


def test_a_closing_tag_with_text_beside_it_is_named() -> None:
    """Specification 003, parse errors: missing closing tag; what looks like one says why it is none."""
    (problem,) = problems("[RUN_COMMAND]\npytest\n[/RUN_COMMAND].\n")
    assert "line 3 has text beside the tag: it must be alone" in problem.reason


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
            return apply.apply(
                item.operation.change, file, item.operation.arrival, path="a.py"
            ).text
        except OperationError as fault:
            return fault.reason

    assert "it may have lost its indentation; send the edit again inside of a code block" in result(
        edit
    )
    assert result(f"````\n{edit}````\n") == file.replace("a():", "a(x):\nreturn x")
    assert result(f"Here:\n\n```text\n{edit}```\n") == result(f"````\n{edit}````\n")
    assert "send the edit again" in result(f"```\nls\n```\n\n{edit}")


def test_the_markers_of_an_edit_are_read_once() -> None:
    """A second reading is for a body that can't be read as it came."""
    assert calls_of(apply.read_replacements, lambda: reply.read(_GOOD)) == 1
