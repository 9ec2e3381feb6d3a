"""A machine that is not ours: the wheel as pip installs it, in a folder that PATH does not name.

Nothing of this checkout can be imported there, and no registry is asked: what the package needs is taken from
the environment of the tests.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.helpers import HANG_S, REPOSITORY

CHECK = "python3 -m unittest -q"
ANSWER = """[CREATE_FILE path="test_cli.py"]
import unittest, cli
class Test(unittest.TestCase):
    def test(self):
        self.assertEqual(cli.VERBOSE, True)
[/CREATE_FILE]
[EDIT_FILE path="cli.py"]
<<<<<<< SEARCH
VERBOSE = False
=======
VERBOSE = True
>>>>>>> REPLACE
[/EDIT_FILE]
[DONE]
There is an option now.
[/DONE]
"""


@pytest.fixture(name="venv", scope="module")
def _venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel in it, which is built here and holds all that it needs."""
    folder = tmp_path_factory.mktemp("elsewhere") / "a venv"
    wheels = folder.parent / "wheels"
    python = [sys.executable, "-m"]
    build = [*python, "hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)
    [wheel] = wheels.glob("*.whl")
    subprocess.run([*python, "venv", "--without-pip", folder], check=True)
    into = ["--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*python, "pip", *into, wheel], check=True)
    [site] = folder.glob("lib/python*/site-packages")
    # The .pth files in there, which lead to the checkout, are not obeyed from here.
    (site / "needed.pth").write_text(f"{Path(msgspec.__file__).parents[1]}\n")
    return folder


class Machine:
    """A person's machine: some programs on PATH, a home folder, and the script by its full path."""

    def __init__(self, venv: Path, root: Path, programs: set[str]) -> None:
        self.script, self.root = venv / "bin" / "codingagent", root
        shims = root / "bin"
        (root / "home").mkdir()
        shims.mkdir()
        for name in programs:
            if found := shutil.which(name):
                (shims / name).symlink_to(os.path.realpath(found))
        # The one that environments are made of: it has no packages of ours.
        (shims / "python3").symlink_to(os.path.realpath(Path(sys.base_prefix, "bin", "python3")))
        self.variables = {"PATH": str(shims), "HOME": str(root / "home"), "LANG": "C.UTF-8"}

    def run(self, *words: str, folder: Path, status: int = 0) -> str:
        done = subprocess.run(
            [self.script, *words],
            cwd=folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=HANG_S,
        )
        assert done.returncode == status, done.stdout
        assert "\nTraceback" not in done.stdout
        return done.stdout


def test_nothing_of_the_checkout_is_found(venv: Path) -> None:
    """Else the tests below prove nothing."""
    words = "import codingagent, sys; print(codingagent.__file__); print('tests' in sys.modules)"
    done = subprocess.run(
        [venv / "bin" / "python", "-I", "-c", words], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{venv}/lib/"), done.stdout


@pytest.mark.one_in(4)
@pytest.mark.parametrize("more", [("bwrap", "git"), (), ("git",), ("bwrap",)], ids="-".join)
def test_the_first_commands_of_readme(venv: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    """With and without a sandbox, with and without git: what the screen says is what is there."""
    has_git, has_sandbox = "git" in more and shutil.which("git"), "bwrap" in more
    machine = Machine(venv, tmp_path, {"sh", "cat", "ls", "env", *more})
    if not more or len(more) == 2:
        said = machine.run("demo", folder=tmp_path)
        first, _, second = said.partition("Turn 1: ")
        assert "FAILED (failures=3)" in first
        assert "Turn 2: 5 ok" in second
        assert f"'{machine.script}' new --here" in second
        assert ("run in a sandbox" in first) or not has_sandbox

    project = tmp_path / "my project"
    project.mkdir()
    (project / "cli.py").write_text("VERBOSE = False\n")
    task = "Add a --verbose option to cli.py, with a test"
    assert "cli.py, whole" in machine.run("context", task, folder=project)
    assert not (project / ".codingagent").exists()
    said = machine.run("new", "--here", task, "--check", CHECK, "--no-wait", folder=project)
    [request] = (project / ".codingagent" / "outbox").glob("*.txt")
    session = request.name.partition("_")[0]
    answer = project / ".codingagent" / "inbox" / "answer.txt"
    answer.write_text(f'[REPLY session="{session}" sequence="1"]\n{ANSWER}[END]\n')
    said = machine.run("resume", "--once", folder=project)
    assert "Done: There is an option now." in said
    assert "ok     check: " in said

    said = machine.run("doctor", folder=project)
    assert ("MISSING       git" in said) == (not has_git)
    if has_git:
        assert "+VERBOSE = True" in machine.run("diff", folder=project)
        machine.run("undo", folder=project)
        assert (project / "cli.py").read_text() == "VERBOSE = False\n"
        assert not (project / "test_cli.py").exists()
    else:
        assert "needs git" in machine.run("diff", folder=project, status=2)
        assert "needs git" in machine.run("undo", folder=project, status=2)
