"""Answers that are almost JSON: repaired where one reading is possible, else asked for again."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.protocols.json import mend, replies
from codingagent.protocols.tags.reply import Problem

HEAD = '{"protocolVersion": "1.0", "session": "a1b2c3d4", "sequence": 2, "operations": ['


def content_of(text: str) -> object:
    """Return the content of the first operation of an answer, as repaired."""
    found = mend.mended(text)
    assert found is not None
    return json.loads(found[0])["operations"][0]["content"]


@pytest.mark.parametrize(
    ("written", "content"),
    [
        ('"content": "a\nb\n"', "a\nb\n"),
        ('"content": "a\tb"', "a\tb"),
        ('"content": "a", ', "a"),
        (r'"content": "re.match(\d+\.\w)"', r"re.match(\d+\.\w)"),
        ('"content": "print("hi")"', 'print("hi")'),
        ('"content": "print("a", "b")\nprint("c")\n"', 'print("a", "b")\nprint("c")\n'),
        ('"content": "x = {"a": 1}\n"', 'x = {"a": 1}\n'),
        (r'"content": "say \"hi\" and "bye" now"', 'say "hi" and "bye" now'),
    ],
)
def test_what_has_one_reading_is_repaired(written: str, content: str) -> None:
    """Design, operations and events: an answer in JSON that was mangled is repaired where it is certain."""
    text = f'{HEAD}{{"type": "createFile", "path": "a.py", {written}}}]}}'
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    assert content_of(text) == content
    found = replies.read(text)
    assert found is not None
    assert found.notes[0].startswith("the JSON was repaired: ")
    assert (found.header and found.header.session, len(found.items)) == ("a1b2c3d4", 1)
    assert not isinstance(found.items[0], Problem)


@pytest.mark.parametrize(
    "operation",
    [
        # A model that forgets to double \\d may have forgotten it for \\n, too.
        r'{"type": "createFile", "path": "a.py", "content": "x = \d\n"}',
        # An unknown field, or text of the content?
        '{"type": "createFile", "path": "a.py", "content": "say "x"", "why": "so"}',
        '{"type": "shell", "command": "echo "x"", "env": {"A": "1", "B": "2"}}',
        '{"type": "createFile", "path": "a.py", "content": "say "x"", "why-so": "y", "id": "1"}',
        # The content seems to end early.
        '{"type": "createFile", "path": "a.json", "content": "{"a": ["x"]}"}',
        '{"type": "createFile", "path": "a.json", "content": "{"a": "x", "path": "y"}"}',
        # Cut short.
        '{"type": "createFile", "path": "a.py", "content": "abc',
        '{"type": "createFile", "path": "a.py"',
    ],
)
def test_what_has_two_readings_is_asked_for_again(operation: str) -> None:
    """Design, no wrong bytes: in doubt nothing is executed, and the place is named."""
    found = replies.read(f"{HEAD}{operation}]}}")
    assert found is not None
    (item,) = found.items
    assert isinstance(item, Problem)
    assert "is not JSON" in item.reason
    assert "line" in item.reason


PIECES = [*'abc",:{}[]\\nt\n ', '", "path": "', '"}', '"]', ', "b": ', '"overwrite"']
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
MANGLES: dict[str, Callable[[str], str]] = {
    "line ends": lambda text: text.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\\\"),
    "quotes": lambda text: text.replace('\\"', '"'),
    "backslashes": lambda text: text.replace("\\\\", "\\"),
    "commas": lambda text: f"{text[:-2]},]}}",
}


@given(st.lists(TEXTS, min_size=1, max_size=3), st.sampled_from(sorted(MANGLES)))
def test_a_mangled_message_is_read_as_it_was_or_not_at_all(texts: list[str], how: str) -> None:
    """Design, no wrong bytes: a repair that is not certain is none."""
    operations = [
        {"type": "createFile", "path": "a.py", "content": text, "overwrite": True} for text in texts
    ]
    clean = json.dumps({"protocolVersion": "1.0", "operations": operations})
    text = MANGLES[how](clean)
    try:
        json.loads(text)
    except ValueError:
        found = mend.mended(text)
        if found is not None:
            assert json.loads(found[0])["operations"] == operations
