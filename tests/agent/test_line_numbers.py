"""Edits by line numbers after an edit, or a command, that moved the lines: Design, replies, and 003."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent.model.settings import Settings
from tests.agent.test_requests_asked import DONE, command
from tests.helpers import LiveSession, plain_session
from tests.killing import command_line_here
from tests.rows import each_row

OLD = """import os

def one():
    a = 1
    return a


def two():
    b = 2
    return b


def three():
    c = 3
    return c
"""


def lines(start: int, end: int, text: str) -> str:
    return f'[EDIT_FILE path="a.py" start_line="{start}" end_line="{end}"]\n{text}[/EDIT_FILE]\n'


MORE = lines(4, 4, "    a = 1\n    a += 1\n    a += 2\n")
GROWN = OLD.replace("    a = 1\n", "    a = 1\n    a += 1\n    a += 2\n")
SHORTER = command("sed -i 1,2d a.py")
CUT = OLD.partition("\n\n")[2]
MOVED = "lines have moved since the chat was shown them: "
ASKED = "may be two places; send this edit again, with SEARCH/REPLACE or with the numbers of now"


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveSession]:
    with plain_session(tmp_path / "home") as made:
        (made.workspace / "a.py").write_text(OLD)
        yield made


def taken(number: str, how: str) -> str:
    return f"{number} of the edit was taken as {how}"


B20 = ("b = 2\n", "b = 20\n")


@each_row(
    ("answer", "made", "told"),
    [
        # Counted in the text that was shown.
        (MORE + lines(9, 9, "    b = 20\n"), GROWN.replace(*B20), taken("line 9", "line 11 of now")),
        (
            MORE + lines(14, 15, "    c = 4\n    return c\n"),
            GROWN.replace("c = 3", "c = 4"),
            taken("lines 14-15", "lines 16-17 of now"),
        ),
        (
            SHORTER + lines(15, 15, "    return 3 * c\n"),
            CUT.replace("return c", "return 3 * c"),
            taken("line 15", "line 13 of now"),
        ),
        (SHORTER + lines(9, 9, "    b = 20\n"), CUT.replace(*B20), taken("line 9", "line 7 of now")),
        # Counted in the file as it stands.
        (MORE + lines(11, 11, "    b = 20\n"), GROWN.replace(*B20), taken("line 11", "it is now")),
        (MORE + lines(17, 17, "    return 3\n"), GROWN.replace("return c", "return 3"), ""),
        (
            MORE + lines(5, 5, "    a += 10\n"),
            GROWN.replace("a += 1\n", "a += 10\n"),
            taken("line 5", "it is now"),
        ),
        # Nobody knows.
        (MORE + lines(9, 9, ""), GROWN, ASKED),
        (MORE + lines(9, 9, "    pass\n"), GROWN, ASKED),
        (SHORTER + lines(4, 5, "    print(os)\n"), CUT, ASKED),
        # It makes no difference.
        (lines(9, 9, "    b = 20\n") + MORE, GROWN.replace(*B20), ""),
        (
            lines(4, 4, "    a = 7\n") + lines(9, 9, ""),
            OLD.replace("a = 1", "a = 7").replace("    b = 2\n", ""),
            "",
        ),
        (lines(4, 4, "    a = 7\n") + lines(4, 4, "    print()\n"), OLD.replace("a = 1", "print()"), ""),
        (MORE + lines(3, 3, "def uno():\n"), GROWN.replace("one", "uno"), ""),
        (command("touch b.py") + lines(9, 9, "    pass\n"), OLD.replace("b = 2\n", "pass\n"), ""),
    ],
)
def test_the_lines_that_are_meant_are_edited_or_asked_for(
    live: LiveSession, answer: str, made: str, told: str
) -> None:
    """What an edit replaces is like what it writes; where nothing shows that, nothing is written."""
    path = live.workspace / f"{len(list(live.workspace.iterdir()))}a.py"
    path.write_text(OLD)
    found = live.answer(f'[READ_FILE path="a.py"]\n{answer}'.replace("a.py", path.name))
    assert told in found
    assert (" have moved since" in found) == (bool(told) and told != ASKED)
    assert path.read_text() == made
    assert ("[FAILED]" in found) == (told == ASKED)


def test_what_a_command_did_is_shown_with_the_next_request_and_counted_in(live: LiveSession) -> None:
    """The chat may count in either text: the new line shows which, and a note says so."""
    live.answer('[READ_FILE path="a.py"]\n')
    live.answer(SHORTER)
    assert f"--- a.py (parts of {CUT.count(chr(10))} lines; changed since" in live.home.mailbox.short_path(
        live.session_id, 3
    ).read_text("utf-8")
    assert f"{MOVED}{taken('line 7', 'it is now')}" in live.answer(lines(7, 7, "    b = 20\n"))
    assert (live.workspace / "a.py").read_text() == CUT.replace(*B20)


def test_what_was_asked_stands_against_done(live: LiveSession) -> None:
    """And the next request shows both places; its numbers are those of now."""
    found = live.answer(MORE + lines(9, 9, "") + DONE)
    assert "Not accepted, because this failed: EDIT_FILE 'a.py'" in found
    assert "11 |     b = 2" in found
    assert MOVED not in live.answer(lines(11, 11, ""))
    assert (live.workspace / "a.py").read_text() == GROWN.replace("    b = 2\n", "")


@pytest.mark.parametrize("is_shown", [True, False])
def test_they_are_known_after_a_question(tmp_path: Path, *, is_shown: bool) -> None:
    """Another process goes on with the answer, when the lines have moved already."""
    with plain_session(tmp_path, settings=Settings(sandbox="off")) as live:
        (live.workspace / "a.py").write_text(OLD)
        if is_shown:
            live.answer('[READ_FILE path="a.py"]\n')
        live.drop(MORE + command("rm -rf build") + lines(9, 9, "    b = 20\n"))
    assert command_line_here(tmp_path, "resume", "--once")[0] == 3
    assert command_line_here(tmp_path, "approve", live.session_id)[0] == 0
    assert (live.workspace / "a.py").read_text() == GROWN.replace(*B20)


def test_numbers_of_a_file_that_moved_count_as_before(live: LiveSession) -> None:
    moved = '[MOVE_FILE path="a.py" to="b.py"]\n'
    said = live.answer(MORE + moved + lines(9, 9, "    b = 20\n").replace("a.py", "b.py"))
    assert (live.workspace / "b.py").read_text() == GROWN.replace(*B20)
    assert taken("line 9", "line 11 of now") in said
