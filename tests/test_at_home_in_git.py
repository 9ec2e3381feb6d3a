"""`new --here` in somebody's repository: its status stays clean, and a reply still can't write in .git."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from codingagent.cli import main
from tests.cli.test_cli import drop

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None or os.name == "nt", reason="there is no git")


def git(at: Path, *words: str) -> str:
    assert GIT is not None
    own = {"HOME": "/nowhere", "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    argv = [GIT, "-C", os.fspath(at), *words]
    return subprocess.run(argv, env=own, capture_output=True, check=True, text=True).stdout


@pytest.mark.parametrize("folder", ["", "sub"])
def test_the_status_of_a_repository_stays_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """README: the home's own .gitignore keeps it out of the status, and safe from a clean-up."""
    git(tmp_path, "init", "-q")
    (tmp_path / folder).mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path / folder)
    for _ in range(2):
        assert main.run(["new", "--here", "--no-wait", "x"]) == 0
        assert git(tmp_path, "status", "--porcelain") == ""
    assert git(tmp_path, "clean", "-n", "-d") == ""


def test_a_reply_does_not_write_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design, the workspace: `.git` is not writable through file operations, nor is it for commands."""
    git(tmp_path, "init", "-q")
    monkeypatch.chdir(tmp_path)
    assert main.run(["new", "--here", "--no-wait", "x"]) == 0
    exclude = tmp_path / ".git" / "info" / "exclude"
    before = exclude.read_bytes()
    drop(
        tmp_path / ".codingagent",
        '[CREATE_FILE path=".git/info/exclude"]\n*\n[/CREATE_FILE]\n'
        '[CREATE_FILE path="a.txt"]\na\n[/CREATE_FILE]\n',
    )
    main.run(["resume", "--once"])
    assert exclude.read_bytes() == before
    assert (tmp_path / "a.txt").exists()


def test_a_turn_starts_few_git_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs milliseconds in every turn: a file and a command, a command, a read, and the end.

    Four of each turn's run while the answer rests: they cost no time. One more notes in the index that files
    are older than the last look.
    """
    count, tools = tmp_path / "count", tmp_path / "tools"
    tools.mkdir()
    (tools / "git").write_text(f'#!/bin/sh\necho >>"{count}"\nexec "{GIT}" "$@"\n', "utf-8")
    (tools / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    home = tmp_path / "home"
    assert main.run(["--home", str(home), "new", "--no-wait", "x"]) == 0
    command = "[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n"
    for reply, most in (
        (f'[CREATE_FILE path="a.txt"]\na\n[/CREATE_FILE]\n{command}', 14),
        (command, 12),
        ('[READ_FILE path="a.txt"]\n', 11),
        ('[CREATE_FILE path="b.txt"]\nb\n[/CREATE_FILE]\n', 15),
        ("[DONE]\nok\n[/DONE]\n", 9),
    ):
        count.write_bytes(b"")
        drop(home, reply)
        assert main.run(["--home", str(home), "resume", "--once"]) == 0, reply
        assert 0 < len(count.read_bytes()) <= most, reply
