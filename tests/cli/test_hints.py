"""What is printed to be copied works where it is printed: from any folder, home and call of the program."""

import contextvars
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from codingagent.cli import command_table
from tests.cli.terminals import on_terminal
from tests.helpers import HANG_S, REPOSITORY

FIRST = """[DELETE_FILE path="old.txt"]
[CREATE_FILE path="it's new.py"]
x = 1
[/CREATE_FILE]
[CREATE_FILE path="build/ignored.txt"]
x
[/CREATE_FILE]
[CREATE_FILE path="[a].txt"]
y
[/CREATE_FILE]
[CREATE_FILE path="passing.txt"]
z
[/CREATE_FILE]
"""
SECOND = """[EDIT_FILE path="kept.txt"]
<<<<<<< SEARCH
one
=======
two
>>>>>>> REPLACE
[/EDIT_FILE]
[DELETE_FILE path="passing.txt"]
[DONE]
All done.
[/DONE]
"""


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", folder, *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """`codingagent` as pip installs it, in a folder that PATH does not name."""
    path = tmp_path / "a venv" / "bin" / "codingagent"
    path.parent.mkdir(parents=True)
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {os.fspath(REPOSITORY)!r})\n"
        "from codingagent.__main__ import main\nmain()\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    (folder / "sub").mkdir(parents=True)
    for name in ("old.txt", "kept.txt", "mine.txt"):
        (folder / name).write_text("one\n")
    (folder / ".gitignore").write_text("build/\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "begin")
    (folder / "mine.txt").write_text("the person's own, not yet committed\n")
    return folder


def without_us() -> dict[str, str]:
    """The environment with git and an editor that writes a message, and no codingagent on PATH."""
    folders = os.environ["PATH"].split(os.pathsep)
    path = [each for each in folders if shutil.which("codingagent", path=each) is None]
    names = {f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {**os.environ, **names, "PATH": os.pathsep.join(path), "GIT_EDITOR": "echo kept >"}


def shell(line: str, folder: Path, variables: Mapping[str, str]) -> str:
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=folder, env=variables, capture_output=True, text=True, check=False,
        timeout=HANG_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, (line, done)
    return done.stdout + done.stderr


@pytest.mark.one_in(2)
@pytest.mark.parametrize("named", [False, True])
def test_each_command_that_is_printed_works(
    program: Path, project: Path, tmp_path: Path, *, named: bool
) -> None:
    """Of a session whose home is beside the project and found, or elsewhere and named."""
    home = tmp_path / "a home" if named else project / ".codingagent"
    own = ["--home", os.fspath(home)] if named else []
    folder, place = (tmp_path, ["--workspace", os.fspath(project)]) if named else (project, ["--here"])
    variables = without_us()

    def seen(*words: str) -> str:
        shown = on_terminal([*own, *words], 500, variables, folder=folder, called=os.fspath(program))
        return shown.text

    def answered(sequence: int, text: str) -> str:
        session = next((home / "sessions").glob("*.json")).stem
        answer = f'[REPLY session="{session}" sequence="{sequence}"]\n{text}[END]\n'
        (home / "inbox" / "answer.txt").write_text(answer)
        return seen("resume", "--once")

    said = seen("new", "--no-wait", *place, "the task")
    folder = folder if named else project / "sub"
    said += answered(1, FIRST) + seen("show")
    resume = re.findall(r"Then: (.*? resume \w+)", said)
    assert len(resume) == 2, said
    for line in resume:
        shell(f"{line} --once", folder, variables)
    said = answered(2, SECOND)
    changed = re.search(r"Changed: (.*)", said)
    assert changed is not None
    names = "old.txt (deleted), it's new.py, build/ignored.txt, [a].txt, passing.txt (deleted), kept.txt"
    assert changed[1] == names
    keep, diff, undo = re.findall(r"`(.*?)`", said[changed.end() :])
    assert "+two" in shell(diff, folder, variables)
    shell(keep, folder, variables)
    assert git(project, "show", "--no-renames", "--format=%s", "--name-status", "-z").split("\0") == [
        "the task", "\nA", "[a].txt", "A", "it's new.py", "M", "kept.txt", "D", "old.txt", "",
    ]  # fmt: skip
    assert git(project, "status", "--porcelain") == " M mine.txt\n"
    shell(undo, folder, variables)
    assert (project / "kept.txt").read_text() == "one\n"


def test_where_there_is_no_repository_or_no_git_nothing_of_it_is_printed(
    program: Path, project: Path
) -> None:
    """What would fail is not advised."""
    shutil.rmtree(project / ".git")
    for number, path in enumerate((os.environ["PATH"], "/nowhere")):
        words = ["new", "--here", "--sandbox", "off", "--reply-with", f"cat {project}/answer", "task"]
        (project / "answer").write_text(
            f'[CREATE_FILE path="{number}.txt"]\nx\n[/CREATE_FILE]\n[DONE]\n[/DONE]\n'
        )
        words[5] = f"/bin/cat '{project}/answer'"
        said = on_terminal(words, 200, {"PATH": path}, folder=project, called=os.fspath(program)).text
        assert f"Changed: {number}.txt" in said
        assert " commit`" not in said
        assert ("\nNext: `" in said) == (number == 0)


def test_called_as_a_module_it_is_printed_so(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    monkeypatch.setattr(sys, "argv", [os.fspath(REPOSITORY / "codingagent/__main__.py")])
    variables = without_us()
    monkeypatch.setenv("PATH", variables["PATH"])
    line = command_table.runnable("`codingagent --version`").strip("`")
    assert "-m codingagent" in line
    variables["PYTHONPATH"] = os.fspath(REPOSITORY)
    assert shell(line, project, variables).startswith("codingagent ")


def test_words_of_others_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command counts as ours only where our messages have one."""
    monkeypatch.setattr(sys, "argv", ["/x y/codingagent"])
    monkeypatch.setenv("PATH", "/nowhere")
    ours = "'/x y/codingagent'"
    for before, after in {
        "`codingagent diff`": f"`{ours} diff`",
        "then: codingagent resume a": f"then: {ours} resume a",
        "> use codingagent resume": "> use codingagent resume",
        "about codingagent itself": "about codingagent itself",
    }.items():
        # Without the home that a test before this one may have named.
        assert contextvars.Context().run(command_table.runnable, before) == after
