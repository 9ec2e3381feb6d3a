"""The programs that we start for ourselves: none is taken from where an answer could have put it."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codingagent.workspace import programs
from tests.cli.terminals import on_terminal
from tests.helpers import run_here

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the traps are shell scripts")

TRAPS = ("less", "vi", "xclip", "xsel", "wl-copy", "wl-paste", "git", "tmux", "ssh", "which", "sh", "llm")


class Project:
    """A home with a session in a project, whose folder of programs an answer has filled with traps."""

    def __init__(self, root: Path, bin_: str) -> None:
        self.home, self.root = root / "home", root / "project"
        self.bin = self.root / bin_
        self.sprung = root / "sprung"
        self.bin.mkdir(parents=True)
        for name in TRAPS:
            (self.bin / name).write_text(f"#!/bin/sh\necho {name} $PPID >>'{self.sprung}'\n")
            (self.bin / name).chmod(0o755)
        (root / "way").symlink_to(self.bin)
        (self.root / "out").symlink_to("/usr/bin")
        self.own = root / "own"
        self.own.mkdir()
        (self.own / "vi").write_text("#!/bin/sh\necho 'my words' >\"$1\"\n")
        (self.own / "less").write_text("#!/bin/sh\nexec cat\n")
        for each in self.own.iterdir():
            each.chmod(0o755)
        self.variables = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "DISPLAY": ":99",
            **dict.fromkeys(("TMUX", "WAYLAND_DISPLAY", "SSH_TTY", "SSH_CONNECTION"), ""),
            **dict.fromkeys(("PAGER", "EDITOR", "VISUAL"), ""),
        }
        named = ("--workspace", str(self.root), "--sandbox", "off", "--no-wait")
        assert run_here("--home", str(self.home), "new", "a task", *named).returncode == 0
        (self.home / "inbox" / "a.txt").write_text(
            '[CREATE_FILE path="long.txt"]\n' + "line\n" * 200 + "[/CREATE_FILE]\n"
        )
        assert self.run("resume", "--once").returncode == 0

    def run(self, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Runs codingagent in this process."""
        named = ("--home", str(self.home), *words)
        return run_here(*named, folder=self.home, variables={**self.variables, **variables})


@contextmanager
def project(bin_: str = "node_modules/.bin") -> Iterator[Project]:
    with tempfile.TemporaryDirectory(prefix="codingagent-test-", dir="/var/tmp") as root:
        yield Project(Path(root), bin_)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("path", ["{bin}", "{root}/../way", ".", "", "{root}/out/../{name}/.venv/bin"])
@pytest.mark.parametrize(
    "words", [("diff",), ("help", "commands"), ("log",), ("say", "--edit"), ("doctor",), ("copy",)]
)
def test_no_program_is_taken_from_the_workspace(words: tuple[str, ...], path: str) -> None:
    """Safety: whatever PATH says, by whatever link."""
    with project(".venv/bin") as at:
        shown = path.format(bin=at.bin, root=at.root, name=at.root.name)
        variables = {**at.variables, "PATH": f"{shown}:{at.own}:{os.environ['PATH']}"}
        variables = {name: value for name, value in variables.items() if value}
        folder = at.bin if shown in ("", ".") else at.home
        on_terminal(["--home", str(at.home), *words], variables=variables, folder=folder)
        assert not at.sprung.exists(), at.sprung.read_text()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["less", "./less", "{bin}/less -R", "../project/node_modules/.bin/less"])
def test_a_pager_or_editor_of_the_workspace_is_refused_in_words(name: str) -> None:
    """Safety: a program that the person names is not started either, and they hear why."""
    with project() as at:
        line = name.format(bin=at.bin)
        path = f"{at.bin}:/nowhere"
        variables = {"PAGER": line, "PATH": path, "DISPLAY": ""}
        words = ["--home", str(at.home), "help", "commands"]
        shown = on_terminal(words, variables=variables, folder=at.bin).text
        assert "codingagent --help lists the commands" in shown
        assert "an answer could have written" in " ".join(shown.split())
        said = at.run("say", "--edit", EDITOR=line, PATH=path)
        assert (said.returncode, "an answer could have written" in said.stderr) == (2, True)
        found = at.run("doctor", EDITOR=line, PATH=path)
        assert "an answer could have written" in found.stdout
        assert not at.sprung.exists()


def test_the_programs_of_the_person_are_used_and_commands_keep_their_path() -> None:
    """Safety: what lies elsewhere is found as ever, and what works for answers sees the person's PATH."""
    with project() as at:
        path = f"{at.bin}:{at.own}:{os.environ['PATH']}"
        assert at.run("say", "--edit", PATH=path).returncode == 0
        (at.home / "inbox" / "b.txt").write_text("[RUN_COMMAND]\nllm\necho $PATH\n[/RUN_COMMAND]\n")
        assert at.run("resume", "--once", "--sandbox", "off", PATH=path).returncode == 0
        assert at.sprung.read_text().startswith("llm ")
        assert path in at.run("show", "--json").stdout


def test_a_command_for_answers_is_not_taken_from_the_workspace() -> None:
    """Safety: `--reply-with` runs outside of the sandbox each turn."""
    with project() as at:
        done = at.run("resume", "--reply-with", "llm -m x")
        assert done.returncode == 1
        assert "an answer could have written them" in done.stderr
        assert not at.sprung.exists()


def test_without_the_command_line_the_environment_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Safety: a program that uses the package keeps its PATH; what is found is found safely all the same."""
    trap = tmp_path / "ws" / "git"
    trap.parent.mkdir()
    trap.write_text("#!/bin/sh\n")
    trap.chmod(0o755)
    usual = os.environ["PATH"]
    path = f"{trap.parent}:{usual}"
    monkeypatch.setenv("PATH", path)
    assert programs.find_program("git", trap.parent) == shutil.which("git", path=usual)
    assert os.environ["PATH"] == path
    with programs.own_programs():
        programs.distrust(trap.parent)
        assert str(trap.parent) not in os.environ["PATH"]
        assert programs.persons_path() == path
    assert os.environ["PATH"] == path


def test_a_folder_of_path_where_nobody_may_look_is_passed_by(tmp_path: Path) -> None:
    """After `su`, PATH still has the folders of the other user, closed to this one."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    code = """if True:
        import os, sys
        from codingagent.workspace import programs
        os.geteuid() or os.setuid(65534)
        print(programs.find_program("sh"))
    """
    path = f"{closed}/a/bin:{os.environ['PATH']}"
    words, env = (sys.executable, "-c", code), {**os.environ, "PATH": path}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith("/sh"), done.stderr


def test_the_model_is_told_which_python_there_is(tmp_path: Path) -> None:
    """Its name says so where its link leads; it is not run for that."""
    (tmp_path / "python3.12").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "python3.12").chmod(0o755)
    (tmp_path / "python3").symlink_to("python3.12")
    shutil.copy(tmp_path / "python3.12", tmp_path / "python")
    named = "as_found('python3'), as_found('python'), as_found('go')"
    code = f"from codingagent.workspace.programs import as_found; print({named})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout == "python3 (3.12) python \n"
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="it makes programs by their permission")
def test_what_only_opens_the_store_of_windows_is_no_python(tmp_path: Path) -> None:
    """Unless a Python came from there, whose versioned name lies beside it."""
    folder = tmp_path / "WindowsApps"
    folder.mkdir()
    code = "from codingagent.workspace.programs import as_found as f; print(f('python3'), f('wt'))"
    for name in ("python3", "wt", "python3.12.exe"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
        env = os.environ | {"PATH": str(folder)}
        words = [sys.executable, "-c", code]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
        said = {"python3": " \n", "wt": " wt\n", "python3.12.exe": "python3 wt\n"}
        assert done.stdout == said[name]
