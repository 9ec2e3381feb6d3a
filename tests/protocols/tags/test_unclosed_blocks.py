"""A block whose closing tag may be missing: Design, an opening line inside a body."""

import pytest

from codingagent.model.operations import CreateFile, Finish, ReadFile, RunCommand, ShowMessage
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Problem, Step
from tests.helpers import grows_with
from tests.manglings import MANGLINGS

B = '[CREATE_FILE path="b.py"]\ny = 2\n[/CREATE_FILE]\n'
RUN = "[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n"
ADVICE = (
    " so a [/CREATE_FILE] may be missing before it: nothing of the block was used, nor of what is in"
    " it. Send all of that again, each block with its closing tag; if the line is meant as text, open the"
    ' block with until="TOKEN" and close it with [/CREATE_FILE TOKEN]'
)


def read(text: str) -> list[object]:
    """Give the operations, and the names of the tags with problems."""
    items = reply.read(text).items
    return [item.operation if isinstance(item, Step) else item.kind for item in items]


def test_a_block_that_was_not_closed_before_the_next_is_asked_for_again() -> None:
    """Neither file is written: nobody knows where the first one ends. What follows is done."""
    (problem, after) = reply.read(f'[CREATE_FILE path="a.py"]\nx = 1\n{B}{RUN}').items
    assert isinstance(problem, Problem)
    assert problem.reason == (
        '[CREATE_FILE path="b.py"] opens at line 3 of the answer, inside the block of line 1,'
        + ADVICE
    )
    assert isinstance(after, Step)
    assert after.operation == RunCommand("ls", None, ".")


@pytest.mark.parametrize(
    ("opening", "body"),
    [
        ('[CREATE_FILE path="a.py"]', "x = 1\n[DONE]\n"),
        ('[CREATE_FILE path="a.py"]', "x = 1\n[CREATE_FILE path=b.py]\n"),
        ('[CREATE_FILE path="a.py"]', "x = 1\n[RUN_COMMAND]ls[/RUN_COMMAND]\n"),
        ('[CREATE_FILE path="a.py"]', "x = 1\n[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n"),
        ('[CREATE_FILE path="a.md"]', 'x\n[CREATE_FILE path="b.md"]\ny\n'),
        ('[CREATE_FILE path="a.md"]', "x\n[RUN_COMMAND]\n"),
        ('  [CREATE_FILE path="a.py"]', '  [READ_FILE path="b"]\n'),
        ("[RUN_COMMAND]", f"ls\n{B}"),
        ("[MESSAGE]", "I read it.\n[MESSAGE]\nAgain.\n"),
        ("[DONE]", "All done.\n[DONE]\n"),
        ('[EDIT_FILE path="a.py" start_line="1" end_line="1"]', 'x\n[DELETE_FILE path="b"]\n'),
        (
            '[EDIT_FILE path="a.py"]',
            '<<<<<<< SEARCH\na\n=======\n[READ_FILE path="b"]\n>>>>>>> REPLACE\n',
        ),
    ],
)
def test_no_body_that_holds_an_opening_line_is_used(opening: str, body: str) -> None:
    """It usually means a missing closing tag, whatever the two commands."""
    name = opening.strip()[1:].split(" ")[0].rstrip("]")
    assert read(f"{opening}\n{body}[/{name}]\n") == [name]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("docs/tags.md", f"# Tags\n\n{RUN}\nEnds the task:\n[DONE]\nWords.\n[/DONE]\n"),
        ("notes.txt", 'Write\n[READ_FILE path="a"]\nand wait.\n'),
        ("README", "[RUN_COMMAND]ls[/RUN_COMMAND]\n"),
        # Deeper than the block's own tag: text of a program, such as a test.
        ("test_tags.py", 'T = """\n    [RUN_COMMAND]\n    ls\n    [/RUN_COMMAND]\n"""\n'),
        ("words.py", "[DONE] will follow\n[MESSAGE to you\n[READ_FILES]\n"),
    ],
)
def test_a_text_about_tags_is_body(path: str, body: str) -> None:
    """Documentation whose every tag is closed, and what only begins like a tag."""
    assert read(f'[CREATE_FILE path="{path}"]\n{body}[/CREATE_FILE]\n') == [CreateFile(path, body)]


def test_what_was_taken_as_text_is_said() -> None:
    """The model learns how to say that it is meant."""
    (item,) = reply.read(f'[CREATE_FILE path="a.md"]\n{RUN}[/CREATE_FILE]\n').items
    assert 'if it is meant, use until="TOKEN"' in item.notes[0]


def test_words_about_tags_are_shown() -> None:
    """A message to the person, and the summary, are text like documentation."""
    assert read("[MESSAGE]\nI will send\n[DONE]\nok\n[/DONE]\n[/MESSAGE]\n") == [
        ShowMessage("I will send\n[DONE]\nok\n[/DONE]")
    ]
    assert read("[DONE]\n[RUN_COMMAND]ls[/RUN_COMMAND]\n[/DONE]\n") == [
        Finish("[RUN_COMMAND]ls[/RUN_COMMAND]")
    ]


def test_documentation_beside_an_unclosed_block_is_asked_for_too() -> None:
    """With one closing tag missing somewhere, nothing says where it is."""
    doc = f'[CREATE_FILE path="a.md"]\n{RUN}[/CREATE_FILE]\n'
    assert read(f"{doc}[MESSAGE]\nhi\n") == ["CREATE_FILE", "MESSAGE"]


@pytest.mark.parametrize("path", ["tags.md", "tags.py"])
def test_no_example_behind_an_example_is_executed(path: str) -> None:
    """Its own closing tag ends a body, so examples within would be commands: all up to the last is text."""
    doc = f'[CREATE_FILE path="{path}"]\n{B}then\n[DELETE_FILE path="c"]\n{B}[/CREATE_FILE]\n'
    assert read(f'{doc}[READ_FILE path="d"]\n') == ["CREATE_FILE", ReadFile("d")]


def test_blocks_behind_the_one_that_was_not_closed_are_done() -> None:
    """One bad block never costs the others."""
    text = f'[CREATE_FILE path="a.py"]\nx\n{B}{B}[CREATE_FILE path="c" until="E"]\n{B}[/CREATE_FILE E]\n'
    assert read(text) == [
        "CREATE_FILE",
        CreateFile("b.py", "y = 2\n"),
        CreateFile("c", B, arrival=None),
    ]


def test_until_says_that_it_is_meant() -> None:
    """The advice, followed to the letter, leads to an answer that is taken."""
    body = f"x = 1\n{B}[DONE]\n"
    text = f'[CREATE_FILE path="a.py" until="EOF"]\n{body}[/CREATE_FILE EOF]\n'
    assert read(text) == [CreateFile("a.py", body, arrival=None)]


# The first is no tag without its closing one; of the second, what stands above is cut off before.
OTHERS = {"blocks as list items", "the request above"}


@pytest.mark.parametrize("name", [name for name in MANGLINGS if name not in OTHERS])
def test_a_missing_closing_tag_is_seen_whatever_the_chat_did(name: str) -> None:
    """The next opening was damaged as the first one was, so it is no text."""
    text = f'[REPLY session="a1b2c3d4" sequence="1"]\n[CREATE_FILE path="src/a_one.py"]\nx\n{B}{RUN}[END]\n'
    assert "CREATE_FILE" in read(MANGLINGS[name](text))
    assert not any(isinstance(found, CreateFile) for found in read(MANGLINGS[name](text)))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "line",
    [
        '[READ_FILE path="b"]\n',
        B,
        RUN,
        "[DONE]\n",
        '[CREATE_FILE path="b"]\n',
        '[CREATE_FILE path="b" until="{}"]\n',
        "[RUN_COMMAND]\n> [/RUN_COMMAND]\n",
    ],
)
@pytest.mark.parametrize("path", ["a.md", "a.py"])
def test_tags_within_a_body_cost_as_much_as_they_are_many(path: str, line: str) -> None:
    """A hostile answer costs no more time than a long one."""
    grows_with(
        400,
        lambda size: reply.read(
            f'[CREATE_FILE path="{path}"]\n{B}'
            f"{''.join(line.replace('{}', str(number)) for number in range(size))}[/CREATE_FILE]\n"
        ),
    )
