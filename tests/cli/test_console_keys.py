"""The classic console of Windows, imitated: what is pasted comes as keys (design, the waiting terminal)."""

import pytest
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from codingagent.cli.waiting_line import as_paste


def keys(text: str) -> list[KeyPress]:
    """Return the keys that conhost sends for a text."""
    special = {"\r": Keys.ControlM, "\n": Keys.ControlJ, "\t": Keys.ControlI}
    return [KeyPress(special.get(character, character), character) for character in text]


@pytest.mark.parametrize("text", ["[DONE]\r/check rm\r", "\r/quit", "a\rb", "/undo\r", "\tx\r"])
def test_lines_that_come_at_once_are_a_paste_and_no_commands(text: str) -> None:
    [paste] = as_paste(keys(text))
    assert (paste.key, paste.data) == (Keys.BracketedPaste, text)


@pytest.mark.parametrize("text", ["", "a", "\r", "words", "\t"])
def test_words_and_a_lone_enter_are_typed(text: str) -> None:
    assert as_paste(keys(text)) == keys(text)


def test_a_marked_paste_stays_one() -> None:
    marked = [KeyPress(Keys.BracketedPaste, "[DONE]\r\n"), KeyPress(Keys.Left)]
    assert as_paste(marked) == marked


def test_a_paste_that_the_library_saw_is_no_less_than_the_rest_of_it() -> None:
    first = KeyPress(Keys.BracketedPaste, "[REPLY]\n")
    [paste] = as_paste([first, *keys("[END]\r")])
    assert paste.data == "[REPLY]\n[END]\r"
