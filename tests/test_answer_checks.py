"""Answers that would damage a file, in a real workspace: asked for again, and nothing is written."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent import Space
from tests.helpers import LiveSession, live_session

GOOD = "def f():\n    return {\n        1: 2,\n    }\n"
MARKED = "<<<<<<< original\n        1: 2,\n=======\n        1: 3,\n>>>>>>> updated\n"


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveSession]:
    with live_session(tmp_path / "home") as made:
        (made.workspace / "a.py").write_text(GOOD)
        yield made


def text_of(live: LiveSession) -> str:
    return (live.workspace / "a.py").read_text()


def create(content: str, more: str = "") -> str:
    return f'[CREATE_FILE path="a.py"{more}]\n{content}[/CREATE_FILE]\n'


def edit(search: str, replacement: str) -> str:
    body = f"<<<<<<< SEARCH\n{search}=======\n{replacement}>>>>>>> REPLACE\n"
    return f'[EDIT_FILE path="a.py"]\n{body}[/EDIT_FILE]\n'


BREAKS = edit("        1: 2,\n", "        1: (2,\n")
MENDS = edit("    }\n", "    )}\n")


def test_a_whole_file_of_edits_is_applied_as_the_edit_that_it_is(live: LiveSession) -> None:
    """The file is not replaced by markers, and the result says what was done."""
    told = live.answer(create(MARKED))
    assert told.startswith("[OK] EDIT_FILE: Edited 'a.py' (line 3 replaced by line 3)")
    assert "EDIT_FILE is the command for them" in told
    assert text_of(live) == GOOD.replace("1: 2", "1: 3")


def test_a_whole_file_of_edits_that_do_not_fit_changes_nothing(live: LiveSession) -> None:
    """As with any edit, the nearest lines are shown."""
    told = live.answer(create(MARKED.replace("1: 2", "1: 9")))
    assert told.startswith("[FAILED] CREATE_FILE: 'a.py': SEARCH")
    assert text_of(live) == GOOD


@pytest.mark.parametrize("change", [create("def f(:\n"), BREAKS, create(GOOD.replace("    ", ""))])
def test_what_would_break_a_file_is_not_written(live: LiveSession, change: str) -> None:
    """Nothing is half applied, and the advice, followed to the letter, leads to an answer that is taken."""
    assert live.answer(change).startswith("[FAILED] ")
    assert text_of(live) == GOOD
    meant = change.replace('path="a.py"', 'path="a.py" unchecked="true"')
    assert live.answer(meant).startswith("[OK] ")
    assert text_of(live) != GOOD


def test_edits_of_one_answer_may_pass_through_what_cannot_be_read(live: LiveSession) -> None:
    """All of them count, with nothing in between that would see it; the result says so."""
    told = live.answer(f"{BREAKS}{MENDS}")
    assert told.count("[OK]") == 2
    assert "until the changes after this one 'a.py' can't be read" in told
    assert text_of(live) == GOOD.replace("1: 2,", "1: (2,").replace("    }\n", "    )}\n")


def test_a_command_between_edits_would_see_a_broken_file(live: LiveSession) -> None:
    """The first is refused; the second alone would break the file too."""
    told = live.answer(f"{BREAKS}[RUN_COMMAND]\ncat a.py\n[/RUN_COMMAND]\n{MENDS}")
    assert told.count("[FAILED] EDIT_FILE") == 2
    assert text_of(live) == GOOD


def test_a_message_of_operations_goes_the_same_way(tmp_path: Path) -> None:
    """In the loop, JSON is an answer of a chat as well; there is no attribute, but a shell."""
    change = '{"type": "createFile", "path": "a.py", "overwrite": true, "content": "def f(:\\n"}'
    with live_session(tmp_path / "home") as live:
        (live.workspace / "a.py").write_text(GOOD)
        told = live.answer(f'{{"protocolVersion": "1.0", "operations": [{change}]}}')
        assert "can be read now" in told
        assert "write the file with a shell operation" in told
        assert text_of(live) == GOOD


def test_a_program_is_taken_at_its_word(tmp_path: Path) -> None:
    """What a program sends went through no chat."""
    (tmp_path / "a.py").write_text(GOOD)
    operations = [
        {"type": "createFile", "path": "a.py", "overwrite": True, "content": content}
        for content in ("(", MARKED)
    ]
    run = Space(tmp_path).run(operations=operations)
    assert run.status == "completed"
    assert (tmp_path / "a.py").read_text() == MARKED
