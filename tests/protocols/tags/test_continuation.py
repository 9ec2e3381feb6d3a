"""An answer that was cut short, and the one that goes on: joined where that is certain, else asked again."""

from hypothesis import given
from hypothesis import strategies as st

from codingagent.model.operations import CreateFile
from codingagent.protocols.tags import continuation, reply
from codingagent.protocols.tags.reply import Problem, Step
from tests.helpers import grows_with
from tests.rows import each_row

REPLY = '[REPLY session="a1b2c3d4" sequence="2"]\n'
BODY = "".join(f"def function_{n}():\n    return {n}\n\n\n" for n in range(20))
WHOLE = f'{REPLY}[CREATE_FILE path="a.py"]\n{BODY}[/CREATE_FILE]\n[END]\n'


def cut_at(length: int) -> str:
    """Return what is kept of the whole answer when it is cut there."""
    return reply.read(WHOLE[:length]).cut


def joined(cut: str, text: str) -> tuple[Step | Problem, ...]:
    """Return the items of both parts together."""
    found = continuation.join(cut, text)
    assert found is not None
    return reply.read(found).items


def test_a_cut_block_is_asked_for_from_where_it_stopped() -> None:
    """Design, tag blocks: nothing of it is written; the rest is asked for, with what arrived last."""
    found = reply.read(WHOLE[:300])
    (item,) = found.items
    assert isinstance(item, Problem)
    assert "Cut off inside CREATE_FILE 'a.py'" in item.reason
    assert "nothing of it was used" in item.reason
    assert WHOLE[:300].endswith(item.detail)
    assert found.cut == WHOLE[len(REPLY) : 300].rstrip("\n")


def test_a_block_that_a_fence_ends_is_kept() -> None:
    """An answer that only closes the block, or opens it and has the rest, is known as its second half."""
    cut = reply.read(f'{REPLY}````\n[CREATE_FILE path="a.py"]\n{BODY}````\n').cut
    assert cut == f'[CREATE_FILE path="a.py"]\n{BODY}'.rstrip()
    rest = f"````\n{BODY[-20:]}[/CREATE_FILE]\n[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n[END]\n````\n"
    (item, _) = joined(cut, rest)
    assert isinstance(item, Step)
    assert isinstance(item.operation, CreateFile)
    assert item.operation.content == BODY
    for opening in ("", '[CREATE_FILE path="a.py"]\n'):
        other = f"````\n{opening}x = 1\n[/CREATE_FILE]\n[END]\n````\n"
        assert continuation.join(cut, other) is None
        assert continuation.second_half(cut, other) is not None


@given(st.integers(len(REPLY) + 60, WHOLE.index("[/CREATE_FILE]") - 1))
def test_the_parts_make_the_whole_wherever_it_was_cut(length: int) -> None:
    """The continuation repeats the last line that arrived, and is joined on it to the byte."""
    cut = cut_at(length)
    (item,) = reply.read(WHOLE[:length]).items
    assert isinstance(item, Problem)
    start = length - len(item.detail) - (len(WHOLE[:length]) - len(WHOLE[:length].rstrip("\n")))
    (item,) = joined(cut, f"{REPLY}````\n{WHOLE[start:]}````\n")
    assert isinstance(item, Step)
    assert isinstance(item.operation, CreateFile)
    assert (item.operation.path, item.operation.content) == ("a.py", BODY)


def test_words_before_the_continuation_do_no_harm() -> None:
    """Models like to say that they go on; the fence shows where that begins."""
    cut = cut_at(WHOLE.index("return 7") + 4)
    rest = WHOLE[WHOLE.index("def function_7") :]
    (item,) = joined(cut, f"{REPLY}Sure, here is the rest:\n\n```python\n{rest}```\n")
    assert isinstance(item, Step)
    assert item.operation == CreateFile("a.py", BODY)


@each_row(
    "text",
    [
        f"{REPLY}something else entirely\n[/CREATE_FILE]\n[END]\n",
        f'{REPLY}[READ_FILE path="a.py"]\n[END]\n',
        WHOLE,
        "",
    ],
    ids=["no overlap", "another block", "the block again", "nothing"],
)
def test_what_does_not_go_on_is_not_joined(text: str) -> None:
    """A cut reply never overwrites a file with a part, nor with two parts that do not fit."""
    assert continuation.join(cut_at(300), text) is None


def test_an_overlap_further_down_is_not_trusted() -> None:
    """It may be a line that only reads the same; what stands before it would be lost."""
    cut = '[CREATE_FILE path="a.py"]\ndef a():\n    total = 0\n    return total'
    rest = "def b():\n    return total_of(1)\n[/CREATE_FILE]\n"
    assert continuation.join(cut, f"{REPLY}\n\n{rest}") is None
    assert continuation.join(cut, f"{REPLY}    return total\n\n\n{rest}") is not None
    more = continuation.join(cut, f"{REPLY}    total = 0\n    return total\n{rest}")
    assert more is not None
    assert more.count("total = 0") == 1


@each_row(
    "opening",
    [
        '[CREATE_FILE path="b.py"]',
        '[CREATE_FILE path="./a.py"]',
        '[CREATE_FILE  path="a.py" ]',
        '**[CREATE_FILE path="a.py"]**',
        "[CREATE_FILE path=“a.py”]",
        '\\[CREATE\\_FILE path="a.py"\\]',
    ],
)
def test_a_block_that_begins_is_never_joined(opening: str) -> None:
    """It starts the block again, or is another one."""
    text = f"{REPLY}{opening}\n{BODY}[/CREATE_FILE]\n[END]\n"
    assert continuation.join(cut_at(300), text) is None
    behind = f"{WHOLE[280:320]}\n{opening}\nx\n[/CREATE_FILE]\n"
    assert continuation.join(cut_at(300), f"{REPLY}{behind}") is None


def test_a_block_can_come_in_three_parts() -> None:
    """What is cut short again is kept with what had arrived before."""
    first = cut_at(300)
    (item,) = reply.read(WHOLE[:300]).items
    assert isinstance(item, Problem)
    start = WHOLE[:300].rindex(item.detail)
    middle = continuation.join(first, f"{REPLY}{WHOLE[start:500]}")
    assert middle is not None
    found = reply.read(middle)
    (item,) = found.items
    assert isinstance(item, Problem)
    start = WHOLE[:500].rindex(item.detail)
    (last,) = joined(found.cut, f"{REPLY}{WHOLE[start:]}")
    assert isinstance(last, Step)
    assert last.operation == CreateFile("a.py", BODY)


def test_a_cut_within_the_closing_tag_is_no_line_of_the_body() -> None:
    """The model would be asked to write half a tag."""
    text = f'{REPLY}[CREATE_FILE path="a.py"]\n{BODY[:200]}\nlast line here\n[/CREATE_FI'
    assert reply.read(text).cut.endswith("last line here")


def test_lines_that_stand_elsewhere_too_are_no_overlap() -> None:
    """What is sent again from the top must not be joined to the end."""
    body = "the same line\n" * 30
    found = reply.read(f'{REPLY}[CREATE_FILE path="a.txt"]\n{body}')
    (item,) = found.items
    assert isinstance(item, Problem)
    assert item.reason.endswith("Send it again from its start")
    assert continuation.join(found.cut, f"{REPLY}{body}[/CREATE_FILE]\n") is None


@given(st.text(), st.text())
def test_joining_never_raises(cut: str, text: str) -> None:
    """Whatever a chat gives."""
    continuation.join(cut, text)
    continuation.second_half(cut, text)
    continuation.whole_again(text, cut, text)


@each_row("blank", [" ", "\t", "\r", "\xa0", "\u2028", "\n", "漢\n"])
def test_blanks_without_end_are_joined_in_time_that_grows_with_them(blank: str) -> None:
    cut = '[CREATE_FILE path="a.py"]\nx = 1'
    grows_with(8_000, lambda size: continuation.join(cut, blank * size))
