"""Look at an answer before it is done, and leave parts of it out: `resume --dry-run`, `--skip`."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.helpers import run_here

pytestmark = pytest.mark.usefixtures("plain")

ANSWER = """[CREATE_FILE path="a.txt"]
one
[/CREATE_FILE]
[EDIT_FILE path="a.txt"]
<<<<<<< SEARCH
one
=======
two
>>>>>>> REPLACE
[/EDIT_FILE]
[MOVE_FILE path="b.txt" to="c.txt"]
[DELETE_FILE path="gone.txt"]
[EDIT_FILE path="missing.txt"]
<<<<<<< SEARCH
x
=======
y
>>>>>>> REPLACE
[/EDIT_FILE]
[RUN_COMMAND]
touch made
[/RUN_COMMAND]
"""


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    (tmp_path / "b.txt").write_text("b\n")
    (tmp_path / "gone.txt").write_text("gone\n")
    begun = run_here("new", "--here", "--no-wait", "the task", folder=tmp_path)
    assert begun.returncode == 0, begun.stderr
    # The home is hidden from answers; a file beside the workspace's others is one of them.
    path = tmp_path / ".codingagent" / "answer.txt"
    path.write_text(ANSWER)
    return path


def test_a_dry_run_shows_all_and_does_nothing(answer: Path) -> None:
    root = answer.parent.parent
    before = {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}
    journal = next((root / ".codingagent" / "sessions").glob("*/journal.jsonl")).read_bytes()
    done = run_here("resume", "--dry-run", str(answer), "--json", folder=root)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    found = [each for each in found if each["kind"] == "rehearsed"]
    create, edit, move, delete, missing, command = found
    assert "+one" in create["difference"]
    # Each operation meets what the one before it left.
    assert "-one" in edit["difference"]
    assert "+two" in edit["difference"]
    assert "c.txt" in move["difference"]
    assert "deleted" in delete["difference"]
    assert "missing.txt" in missing["fault"]
    assert command["difference"] == "touch made"
    assert {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()} == before
    assert next((root / ".codingagent" / "sessions").glob("*/journal.jsonl")).read_bytes() == journal
    told = run_here("resume", "--dry-run", str(answer), folder=root).stdout
    assert "5 EDIT_FILE missing.txt would fail" in told


def test_what_is_skipped_is_denied_and_the_rest_is_done(answer: Path) -> None:
    root = answer.parent.parent
    words = ("resume", "--once", "--accept", str(answer), "--skip", "3,4 6")
    done = run_here(*words, folder=root)
    assert done.returncode == 0, done.stderr
    assert (root / "a.txt").read_text() == "two\n"
    assert (root / "b.txt").exists()
    assert (root / "gone.txt").exists()
    assert not (root / "made").exists()
    short = next((root / ".codingagent" / "outbox" / "short").glob("*_seq0002.txt")).read_text()
    assert short.count("said no") == 3


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--skip", "1"], "--skip needs --accept"),
        (["--accept", "FILE", "--skip", "x"], "must be numbers"),
        (["--accept", "FILE", "--skip", "0"], "must be numbers"),
        (["--dry-run", "nothing.txt"], "nothing.txt can't be read"),
        pytest.param(
            ["--dry-run", "/dev/zero"],
            "too large to be an answer",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="no file without an end"),
        ),
        pytest.param(
            ["--dry-run", "pipe"],
            "or a pipe; name another file",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="no pipe in a folder"),
        ),
    ],
)
def test_a_wrong_review_is_refused_in_words(answer: Path, words: list[str], why: str) -> None:
    if sys.platform != "win32":
        os.mkfifo(answer.parent.parent / "pipe")
    given = [str(answer) if word == "FILE" else word for word in words]
    done = run_here("resume", "--once", *given, folder=answer.parent.parent)
    assert done.returncode == 2
    assert why in done.stderr


def test_what_may_depend_on_a_command_is_shown_with_its_text_and_can_be_left_out(answer: Path) -> None:
    """As the files are now it fails; once the command has run it would not. What fails anyhow is shown."""
    root = answer.parent.parent
    edit = '[EDIT_FILE path="{}.txt"]\n<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n[/EDIT_FILE]\n'
    command = "[RUN_COMMAND]\ncp b.txt new.txt\n[/RUN_COMMAND]\n"
    edits = (edit.format("no", "a", "EVIL"), command, edit.format("new", "b", "EVIL"))
    answer.write_text("".join((*edits, '[DELETE_FILE path="new.txt"]\n')))
    told = run_here("resume", "--dry-run", str(answer), folder=root).stdout
    fails, _, rest = told.partition("2 RUN_COMMAND")
    assert "1 EDIT_FILE no.txt would fail" in fails
    assert "  -a\n  +EVIL\n" in fails
    assert "3 EDIT_FILE new.txt depends on command 2; without it: File 'new.txt' not found" in rest
    assert "  -b\n  +EVIL\n" in rest
    assert "4 DELETE_FILE new.txt depends on command 2" in rest
    words = ("resume", "--once", "--yes", "--accept", str(answer), "--skip", "3,4")
    run_here(*words, folder=root)
    assert (root / "new.txt").read_text() == "b\n"


def test_words_are_withdrawn_from_any_terminal(answer: Path) -> None:
    root = answer.parent.parent
    run_here("say", "not that", folder=root)
    request = next((root / ".codingagent" / "outbox").glob("*_seq0001.txt"))
    assert "not that" in request.read_text()
    done = run_here("say", "--withdraw", folder=root)
    assert done.returncode == 0, done.stderr
    assert "not that" not in request.read_text()
    assert "nothing to withdraw" in run_here("say", "--withdraw", folder=root).stderr


def test_a_dry_run_keeps_nothing_of_secrets(answer: Path) -> None:
    """Of a file with secrets that would be moved, the session still knows the old place only."""
    root = answer.parent.parent
    (root / ".env").write_text("TOKEN=ghp_1234567890abcdefghijklmnopqrstuvwxyz\n")
    assert run_here("say", "look", "--attach", ".env", folder=root).returncode == 0
    vault = next((root / ".codingagent" / "sessions").glob("*/vault.json"))
    before = vault.read_bytes()
    assert b'".env"' in before
    answer.write_text('[MOVE_FILE path=".env" to="b.env"]\n')
    done = run_here("resume", "--dry-run", str(answer), folder=root)
    assert "'.env' is moved to 'b.env'" in done.stdout
    assert "ghp_" not in done.stdout
    assert vault.read_bytes() == before


def test_a_dry_run_shows_the_beginning_of_a_long_change(answer: Path) -> None:
    """A file of a million empty lines was a million lines on the screen, each written by itself."""
    answer.write_text('[CREATE_FILE path="b.txt"]\n' + "\n" * 100_000 + "[/CREATE_FILE]\n")
    root = answer.parent
    told = run_here("resume", "--dry-run", str(answer), folder=root).stdout.splitlines()
    assert len(told) < 210
    assert told[-1] == "  … 99,800 more lines"
