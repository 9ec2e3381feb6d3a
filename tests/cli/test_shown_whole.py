"""What an answer wrote is shown whole on every face, and what a repository holds moves no chat's terminal."""

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.terminals import on_terminal
from tests.helpers import run_here

pytestmark = [
    pytest.mark.usefixtures("plain"),
    pytest.mark.with_git,
    pytest.mark.skipif(os.name == "nt", reason="the commands are a POSIX shell's"),
    pytest.mark.skipif(shutil.which("git") is None, reason="a diff needs git"),
]

# Each stands before what would be drawn over it, or within what a terminal would keep to itself.
HIDING = """[REPLY session="{}" sequence="1"]
[MESSAGE]
EVIL_MESSAGE\rall is well
[/MESSAGE]
[CREATE_FILE path="b.txt"]
EVIL_RETURN\r# fine
t = "\x9d"; EVIL_STRING
/*\x1b]*/ EVIL_ESCAPE;
[/CREATE_FILE]
[EDIT_FILE path="dos.txt"]
<<<<<<< SEARCH
two
=======
EVIL_DOS\rtwo
>>>>>>> REPLACE
[/EDIT_FILE]
[RUN_COMMAND]
: EVIL_COMMAND #\r ls
[/RUN_COMMAND]
[DONE]
EVIL_DONE\rdone
[/DONE]
[END]
"""
IN_FILES: tuple[str, ...] = ("EVIL_RETURN\\r# fine", '\\x9d"; EVIL_STRING', "\\x1b]*/ EVIL_ESCAPE;")
SAID: tuple[str, ...] = ("EVIL_MESSAGE\\rall", "EVIL_DONE\\rdone")
RAN: tuple[str, ...] = ("EVIL_COMMAND #\\r ls",)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    (tmp_path / "AGENTS.md").write_bytes(b"Be brief.\x1b[201~\x1b]52;c;ZXZpbA==\x07\r: evil\x9b2J\n")
    words = ("new", "--here", "--no-wait", "--sandbox", "off", "--attach", "dos.txt", "the task")
    begun = run_here(*words, folder=tmp_path)
    assert begun.returncode == 0, begun.stderr
    return tmp_path / ".codingagent"


def drop(home: Path, text: str) -> None:
    session = next((home / "sessions").glob("*.json")).stem
    (home / "inbox" / "a.txt").write_bytes(text.format(session).encode())


def test_what_is_looked_at_is_all_there_on_every_face(home: Path) -> None:
    root = home.parent
    drop(home, HIDING)
    tried = run_here("resume", "--dry-run", str(home / "inbox" / "a.txt"), folder=root).stdout
    faces: dict[str, tuple[str, tuple[str, ...]]] = {"dry run": (tried, (*IN_FILES, *SAID, *RAN))}
    words = ("resume", "--once", "--yes", "--sandbox", "off")
    faces["turn"] = (on_terminal(words, 200, folder=root).text, (*IN_FILES, *SAID, *RAN))
    for name, wanted in (("diff", IN_FILES), ("log", (*SAID, *RAN)), ("show", (*SAID, *RAN))):
        faces[name] = (run_here(name, folder=root).stdout, wanted)
        faces[f"{name} there"] = (on_terminal([name], 200, folder=root).text, wanted)
    faces["markdown"] = (run_here("show", "--markdown", folder=root).stdout, (*SAID, *RAN))
    for face, (shown, wanted) in faces.items():
        for each in wanted:
            assert each in shown, (face, each, shown)
        assert not {*"\x07\x08\x0d\x1b\x9d\u202e"} & {*shown}, face
    # Where all lines of a file end in CRLF, nobody is told so in each.
    assert " one\n-two\n+EVIL_DOS\\rtwo\n" in faces["diff"][0]


def test_a_request_moves_no_terminal_and_what_is_copied_from_it_is_found(home: Path) -> None:
    request = next((home / "outbox").glob("*_seq0001.txt")).read_bytes().decode()
    assert "Be brief.\\u001b[201~\\u001b]52;c;ZXZpbA==\\u0007\\u000d: evil\\u009b2J\n" in request
    assert not {*map(chr, (*range(32), *range(127, 160)))} & {*request} - {*"\n\t"}
    copied = "Be brief.\\u001b[201~\\u001b]52;c;ZXZpbA==\\u0007\\u000d: evil\\u009b2J"
    edit = f'[EDIT_FILE path="AGENTS.md"]\n<<<<<<< SEARCH\n{copied}\n=======\nBe kind.\n>>>>>>> REPLACE\n'
    head = '[REPLY session="{}" sequence="1"]\n'
    drop(home, f"{head}{edit}[/EDIT_FILE]\n[DONE]\nok\n[/DONE]\n[END]\n")
    done = run_here("resume", "--once", "--yes", "--sandbox", "off", folder=home.parent)
    assert (home.parent / "AGENTS.md").read_bytes() == b"Be kind.\n", done.stdout
