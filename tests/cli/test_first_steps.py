"""A newcomer's first steps and missteps: where they stand, what they meant, what they are told."""

import io
import os
import re
import shutil
from pathlib import Path

import pytest

from codingagent.cli import main
from tests.cli.test_cli import drop
from tests.helpers import command_line
from tests.killing import command_line_here

pytestmark = pytest.mark.usefixtures("plain")


@pytest.fixture(name="project")
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file, in which someone stands."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "cli.py").write_text("x = 1\n")
    monkeypatch.chdir(folder)
    return folder


def run(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = main.run(list(words))
    said = capsys.readouterr()
    return status, said.out, said.err


def test_who_stands_among_files_and_starts_beside_them_is_told(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`new` in a project, without --here: the model would see nothing."""
    status, out, _ = run("new", "--no-wait", "Add an option", capsys=capsys)
    assert status == 0
    assert "the model gets no files; to work in this folder instead: codingagent new --here" in out
    (project / "workspace" / "a.py").touch()
    assert "gets no files" not in run("new", "--no-wait", "Again", capsys=capsys)[1]


def test_who_works_here_or_in_an_empty_folder_is_told_nothing(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is as it should be needs no words."""
    assert "gets no files" not in run("new", "--here", "--no-wait", "x", capsys=capsys)[1]
    empty = tmp_path / "empty"
    empty.mkdir()
    os.chdir(empty)
    assert "gets no files" not in run("new", "--no-wait", "x", capsys=capsys)[1]
    assert project.is_dir()


@pytest.mark.with_git
def test_a_clone_that_brings_empty_folders_is_nobodys_home(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as this repository's: git keeps a folder only with a file in it."""
    for name in ("sessions", "inbox", "outbox", "workspace"):
        (project / name).mkdir()
        (project / name / (".gitkeep" if name == "inbox" else ".gitignore")).write_text("*\n")
    _, out, _ = run("doctor", capsys=capsys)
    assert f"home: {project}\n" in out
    status, _, err = run("new", "--no-wait", "x", capsys=capsys)
    assert (status, err) == (0, "")
    # A copy of it then is somebody's.
    shutil.copytree(project, project.parent / "copy")
    os.chdir(project.parent / "copy")
    status, _, err = run("new", "--no-wait", "x", capsys=capsys)
    assert (status, "holds sessions that codingagent did not make here" in err) == (2, True)
    assert run("doctor", capsys=capsys)[0] == 1
    for path in Path("sessions").iterdir():
        if path.name not in {".gitignore", ".home"}:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert run("list", capsys=capsys)[0] == 2


def test_attaching_without_here_says_what_is_missing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of the current folder, and no workspace yet."""
    status, _, err = run("new", "--attach", "cli.py", "x", capsys=capsys)
    assert status == 2
    assert "to work in this folder add --here" in err
    assert sorted(path.name for path in project.iterdir()) == ["cli.py"]


@pytest.mark.parametrize("limit", [["--max-turns", "3"], ["--reply-timeout", "5"]])
def test_limits_of_a_reply_command_need_one(
    tmp_path: Path, limit: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """An option that would do nothing is refused."""
    assert main.run(["--home", str(tmp_path / "home"), "new", "--no-wait", *limit, "x"]) == 2
    assert f"{limit[0]} needs --reply-with" in capsys.readouterr().err
    assert not (tmp_path / "home").exists()


def test_copy_and_paste_mean_the_session_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another that was just finished changed later, and waits for nothing."""
    command_line(tmp_path, "new", "--no-wait", "the one that waits")
    [waiting] = [path.stem for path in (tmp_path / "sessions").glob("*.json")]
    command_line(tmp_path, "new", "--no-wait", "the one that is done")
    [done] = {path.stem for path in (tmp_path / "sessions").glob("*.json")} - {waiting}
    (tmp_path / "inbox" / "r.txt").write_text("[DONE]\nno work\n[/DONE]\n")
    assert command_line_here(tmp_path, "resume", done, "--once")[0] == 0
    status, out, _ = command_line_here(tmp_path, "copy")
    assert status == 0
    assert f"Session: {waiting}" in out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"[DONE]\nx\n[/DONE]\n")))
    status, out, _ = command_line_here(tmp_path, "paste")
    assert status == 0
    assert f"resume {waiting}" in out


def test_where_no_session_can_be_read_nobody_is_told_to_start(tmp_path: Path) -> None:
    """There are sessions, and what is wrong with them was said."""
    command_line(tmp_path, "new", "--no-wait", "a task")
    [journal] = tmp_path.glob("sessions/*/journal.jsonl")
    journal.write_text("no record\n")
    status, out, err = command_line_here(tmp_path, "list")
    assert (status, out) == (0, "")
    assert "is damaged at line 1" in err
    status, _, err = command_line_here(tmp_path, "show")
    assert status == 1
    assert "is damaged at line 1" in err


def test_a_record_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """One line, and no hanging."""
    command_line(tmp_path, "new", "--no-wait", "a task")
    [journal] = tmp_path.glob("sessions/*/journal.jsonl")
    journal.unlink()
    os.mkfifo(journal)
    status, _, err = command_line_here(tmp_path, "show", journal.parent.name)
    assert status == 1
    assert "is not a file; put back a copy" in err


def test_what_turns_text_round_is_seen(tmp_path: Path) -> None:
    """A message of the model's, and a change that is shown, say what they hold."""
    command_line(tmp_path, "new", "--no-wait", "a task")
    message = "[MESSAGE]\nsafe \u202edaer \u061c\u200e\ufeff\U000e0041.\n[/MESSAGE]\n"
    creation = "[CREATE_FILE path=\"a.py\"]\nx = '\u2066'\n[/CREATE_FILE]\n"
    (tmp_path / "inbox" / "r.txt").write_text(message + creation)
    _, out, _ = command_line_here(tmp_path, "resume", "--once", "--diff", "full")
    assert "safe \\u202edaer \\u061c\\u200e\\ufeff\\U000e0041." in out
    assert "+x = '\\u2066'" in out
    assert "\u2066" in (tmp_path / "workspace" / "a.py").read_text()


def test_what_a_request_shows_only_in_part_is_said_before_it_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files and outputs that were cut, and a request that is more than many chats take."""
    home, workspace = tmp_path / "home", tmp_path / "work"
    workspace.mkdir()
    (workspace / "big.txt").write_text("a line of words and more words\n" * 20_000, "utf-8")
    (workspace / "small.txt").write_text("all of it\n", "utf-8")
    words = ["--workspace", str(workspace), "--attach", "*.txt", "look"]
    assert main.run(["--home", str(home), "new", "--no-wait", *words]) == 0
    said = capsys.readouterr().out
    assert re.search(r"Only part of big\.txt fits: lines 1–\d,\d{3} of 20,000\n", said)
    assert "small.txt:" not in said
    assert re.search(r"Request 1, ~\d+,\d{3} tokens, is too long for many chats", said)
    drop(home, "[RUN_COMMAND]\nseq 1 20000\n[/RUN_COMMAND]\n")
    assert main.run(["--home", str(home), "resume", "--once"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"Only part of the output of a command fits: all but \d\d,\d{3} char", said)


def test_context_before_the_first_session_looks_where_new_here_would(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is when one wants it; it leaves nothing behind."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (project / "workspace").mkdir()
    before = sorted(tmp_path.rglob("*"))
    status, out, _ = run("context", "change x in cli.py", capsys=capsys)
    assert (status, out[:12]) == (0, "1  cli.py, w")
    assert sorted(tmp_path.rglob("*")) == before
    assert run("new", "--here", "--no-wait", "x", capsys=capsys)[0] == 0
    assert run("context", "change x in cli.py", capsys=capsys)[1] == out
