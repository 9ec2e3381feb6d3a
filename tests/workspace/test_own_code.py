"""What this program itself runs from, where that lies in a workspace: no answer changes it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from venv import EnvBuilder

import msgspec
import pytest

from codingagent.model.settings import Settings
from codingagent.workspace.dirfd import is_link_at
from codingagent.workspace.own_code import own_code_in
from tests.helpers import HANG_S, REPOSITORY, calls_of, live_session, run_here
from tests.sandboxes import needs_bwrap

SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
OURS = [entry for entry in sys.path if entry.endswith("site-packages")]


class Project:
    """A project with a venv in it that has codingagent, as `pip install codingagent` leaves it."""

    def __init__(self, root: Path, venv: str) -> None:
        self.root = root / "project"
        self.root.mkdir()
        self.venv = self.root / venv
        self.home = root / "home"
        EnvBuilder(symlinks=True).create(self.venv)
        # Found by a file of the venv's, as an installed package is by its folder.
        lines = "\n".join([str(REPOSITORY), *OURS])
        (self.venv / SITE / "codingagent.pth").write_text(f"{lines}\n")

    def call(self, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Runs codingagent as the person does, from the venv."""
        return subprocess.run(
            [self.venv / "bin" / "python", "-m", "codingagent", "--home", self.home, *words],
            cwd=self.root.parent,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    def run(self, *operations: object, sandbox: str = "require", **variables: str) -> str:
        """Has the operations of an answer executed; returns what is printed."""
        message = self.root.parent / "operations.json"
        message.write_text(json.dumps({"protocolVersion": "1.0", "operations": operations}))
        named = ("--workspace", str(self.root), "--sandbox", sandbox, "--policy", "permissive")
        done = self.call("run", str(message), *named, **variables)
        return done.stdout + done.stderr


@contextmanager
def project(venv: str = ".venv") -> Iterator[Project]:
    """Makes one, not in /tmp: a sandbox has its own."""
    with tempfile.TemporaryDirectory(prefix="codingagent-test-", dir="/var/tmp") as root:
        yield Project(Path(root), venv)


def shell(line: str) -> dict[str, str]:
    return {"type": "shell", "command": line}


LINES = (
    # A module of a name that Python imports by itself, and a file that it executes.
    (
        f'echo \'open("{{mark}}", "w")\' >tools/.venv/{SITE}/zz.py;'
        f" echo 'import zz' >tools/.venv/{SITE}/zz.pth"
    ),
    f'echo \'open("{{mark}}", "w")\' >tools/.venv/{SITE}/sitecustomize.py',
    # Another venv at the same path: all folders above can be renamed, the venv can't.
    (
        "mv tools old; mkdir -p tools; cp -a old/.venv tools/.venv;"
        f' echo \'open("{{mark}}", "w")\' >tools/.venv/{SITE}/sitecustomize.py'
    ),
    (
        "rm tools/.venv/bin/python; printf '#!/bin/sh\\ntouch {mark}\\n' >tools/.venv/bin/python;"
        " chmod +x tools/.venv/bin/python"
    ),
    "echo home=/nowhere >tools/.venv/pyvenv.cfg",
)


def test_a_command_changes_nothing_that_the_next_start_runs() -> None:
    """Safety: no command writes where this program itself runs from."""
    needs_bwrap()
    with project("tools/.venv") as at:
        mark = at.root.parent / "mark"
        said = at.run(*(shell(line.format(mark=mark)) for line in LINES))
        assert said.count("exitCode") == len(LINES), said
        again = at.call("list")
        assert (again.returncode, mark.exists()) == (0, False), again.stderr
        # The rest of the workspace can be written to, beside it too.
        assert "exitCode" in at.run(shell("echo 1 >new && echo 2 >tools/new"))
        assert (at.root / "tools" / "new").read_text() == "2\n"


@pytest.mark.parametrize("sandbox", ["require", pytest.param("off", marks=pytest.mark.deep)])
def test_no_file_operation_changes_it(sandbox: str) -> None:
    """Safety: nor does a file operation, whatever path leads there."""
    if sandbox == "require":
        needs_bwrap()
    with project() as at:
        (at.root / "way").symlink_to(".venv")
        before = sorted(at.venv.rglob("*"))
        said = at.run(
            {"type": "createFile", "path": f".venv/{SITE}/a.pth", "content": "import os"},
            {"type": "createFile", "path": "way/b.txt", "content": "b"},
            {"type": "deleteFile", "path": ".venv/pyvenv.cfg"},
            {"type": "moveFile", "path": ".venv/pyvenv.cfg", "to": "c.cfg"},
            {"type": "createFile", "path": "free.txt", "content": "d"},
            sandbox=sandbox,
        )
        assert said.count("belongs to codingagent itself") >= 3, said
        assert sorted(at.venv.rglob("*")) == before
        assert (at.root / "free.txt").exists()


def test_a_link_to_it_stays_a_link() -> None:
    """Safety: a link on the way is as much a part of it as what it leads to."""
    needs_bwrap()
    with project() as at:
        at.venv.rename(at.root.parent / "venvs")
        at.venv.symlink_to("../venvs")
        at.run(shell("rm -f .venv; mv .venv other; ln -sfn /tmp .venv; echo 1 >new"))
        assert str(at.venv.readlink()) == "../venvs"
        assert (at.root / "new").exists()
        at.run({"type": "deleteFile", "path": ".venv"})
        assert at.venv.is_symlink()


def test_where_it_lies_is_said_once_and_by_doctor() -> None:
    """Safety: the person hears where it lies, what that means and what to do."""
    with project() as at:
        new = at.call("new", "task", "--workspace", str(at.root), "--no-wait")
        assert "codingagent itself runs from .venv in the workspace" in new.stderr + new.stdout
        assert "pipx install codingagent" in new.stderr + new.stdout
        doctor = at.call("doctor", CODINGAGENT_WORKSPACE=str(at.root))
        assert "runs from .venv" in doctor.stdout
        resumed = at.call("resume", "--no-wait")
        assert "itself runs from" not in resumed.stderr + resumed.stdout


def test_what_the_person_told_it_is_kept_as_well() -> None:
    """Safety: settings, prompts, agreed texts and known homes decide what the next start does."""
    needs_bwrap()
    with project() as at:
        state, config, linked = (at.root / name for name in (".local/state", ".config", "dotfiles"))
        for folder in (config / "codingagent", linked):
            folder.mkdir(parents=True)
        (linked / "s.toml").write_text("")
        (config / "codingagent" / "settings.toml").symlink_to(linked / "s.toml")
        variables = {"XDG_STATE_HOME": str(state), "XDG_CONFIG_HOME": str(config)}
        paths = (
            *(".local/state/codingagent/prompts/x", ".config/codingagent/prompts/x.md"),
            *(".config/codingagent/workspaces/x.toml", "dotfiles/s.toml"),
            *("inner/inbox/x.txt", "inner/sessions/a/x"),
        )
        # A home in the workspace that sessions of elsewhere use: their record says what they may do.
        (at.root / "inner" / "inbox").mkdir(parents=True)
        (at.root / "inner" / "sessions").mkdir()
        (at.root / "inner" / "sessions" / ".home").touch()
        lines = [f"mkdir -p $(dirname {path}); echo 1 >{path}" for path in paths]
        lines.append("mv .config old; mv .local/state old; mv inner/sessions old")
        files = [{"type": "createFile", "path": path, "content": "x"} for path in paths]
        said = at.run(*files, *map(shell, lines), shell(": >.config/free; : >inner/free"), **variables)
        assert said.count("exitCode") == len(lines) + 1, said
        assert (at.root / "inner" / "free").exists()
        assert said.count("belongs to codingagent itself") == len(paths), said
        assert (linked / "s.toml").read_text() == ""
        assert [path for path in paths if (at.root / path).exists()] == ["dotfiles/s.toml"]
        assert (config / "free").exists()
        assert (state / "codingagent").is_dir()
        at.root = config / "codingagent"
        assert "or what it obeys" in at.run(shell("ls"), **variables)


def test_the_homes_of_a_person_cost_no_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be thousands."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    homes = tmp_path / "state" / "codingagent" / "homes"
    homes.mkdir(parents=True)
    for number in range(200):
        (homes / str(number)).touch()
    assert calls_of(is_link_at, lambda: own_code_in(tmp_path / "ws")) < 200


@pytest.mark.parametrize("entry", ["src", pytest.param("new", marks=pytest.mark.deep), ""])
def test_what_variables_lead_to_is_its_own_too(entry: str) -> None:
    """Safety: a folder on PYTHONPATH is imported from; the workspace itself can't be one."""
    needs_bwrap()
    with project() as at:
        (at.root / "src").mkdir()
        mark = at.root.parent / "mark"
        variables = {"PYTHONPATH": str(at.root / entry)}
        program = f"open({str(mark)!r}, 'w')"
        line = f'mkdir -p new; for f in src new .; do echo "{program}" >$f/sitecustomize.py; done'
        said = at.run(shell(line), **variables)
        assert "Python: " in at.call("doctor", **variables).stdout
        assert not mark.exists()
        if entry != "src":
            assert "nothing of the workspace in PYTHONPATH" in said


@pytest.mark.parametrize("at", [pytest.param(".venv", marks=pytest.mark.deep), "packages/api/.venv"])
def test_what_shares_files_with_ours_is_kept(at: str) -> None:
    """Safety: uv links files of a package into each venv; a write into one is a write into all."""
    needs_bwrap()
    own = Path(msgspec.__file__)
    with tempfile.TemporaryDirectory(dir=own.parents[4]) as root:  # on the same disk
        place = Path(root, "workspace", at, SITE, "msgspec")
        place.mkdir(parents=True)
        os.link(own, place / own.name)
        os.link(own.parent / "json.py", place / "json.py")
        shutil.copy(own, place.parent / "free.py")
        code = own_code_in(Path(root, "workspace"))
        assert code.kept == (place,)
        assert "runs from" not in code.remark + code.shared
        assert f"{at}/{SITE}/msgspec shares files with codingagent's own packages" in code.shared
        with live_session(Path(root), settings=Settings(sandbox="require")) as live:
            begun = str(live.notices)
            said = live.answer(
                f"[RUN_COMMAND]\ncd {at}/{SITE}; : >>free.py; : >>msgspec/json.py\n[/RUN_COMMAND]\n"
                f'[CREATE_FILE path="{at}/{SITE}/msgspec/new.py"]\nx\n[/CREATE_FILE]\n'
            )
        assert "or shares files with them: read-only here" in said
        # Who changes nothing there need not hear of it.
        assert "shares files" not in begun
        doctor = run_here("doctor", folder=Path(root, "workspace")).stdout
        assert f"-             installation: {at}/{SITE}/msgspec shares" in doctor
        assert "msgspec/json.py: Read-only" in said
        assert "create free.py" not in said


def test_what_holds_no_code_of_ours_is_free(tmp_path: Path) -> None:
    """Safety: a folder beside or below what is imported from is a workspace like any other."""
    assert own_code_in(tmp_path) == own_code_in(REPOSITORY / "workspace")
    assert own_code_in(tmp_path).kept == ()
    for refused in (REPOSITORY, REPOSITORY / "codingagent", Path(OURS[0]) / "rich"):
        assert own_code_in(refused).fault
