"""A block whose closing tag may be missing: Design, an opening line inside a body."""

import pytest

from codingagent.model.operations import CreateFile
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Step
from tests.helpers import grows_with
from tests.manglings import MANGLINGS, UNSEEN
from tests.rows import each_row

B = '[CREATE_FILE path="b.py"]\ny = 2\n[/CREATE_FILE]\n'
RUN = "[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n"


def read(text: str) -> list[object]:
    """Give the operations, and the names of the tags with problems."""
    items = reply.read(text).items
    return [item.operation if isinstance(item, Step) else item.kind for item in items]


# What stands above is cut off before; the others are no tags.
OTHERS = {"the request above", *UNSEEN}


@each_row("name", [name for name in MANGLINGS if name not in OTHERS])
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
