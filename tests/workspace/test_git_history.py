"""History is read from the repository without obeying its configuration, and is optional."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codingagent.model.observations import PastCommit
from codingagent.process.runner import run_tool
from codingagent.workspace.git_files import Git
from codingagent.workspace.git_files import history as recent
from codingagent.workspace.workspace import Workspace

GIT = shutil.which("git") or "git"
RUNS = Git(GIT, run_tool)


def git(folder: Path, *words: str, **more: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgSign=false")
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **more}
    command = (GIT, "-C", os.fspath(folder), *who, *words)
    return subprocess.run(command, check=True, capture_output=True, env=quiet).stdout.decode()


_FIRST_S = 1_700_000_000


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-b", "main")
    for number, path in enumerate(("a.py", "sub/b c.py", "sub/d.py")):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("x\n")
        git(folder, "add", "-A")
        message = f"Add {path}\n\nNumber {number}"
        date = f"@{_FIRST_S + number} +0000"
        git(folder, "commit", "--date", date, "-m", message, GIT_COMMITTER_DATE=date)
    return folder


def test_git_knows_where_windows_is(tmp_path: Path) -> None:
    """Without it a program may not start there, and history was silently missing."""
    asked: dict[str, str] = {}

    def run(words: Sequence[str], variables: Mapping[str, str], *more: Any, **limit: Any) -> Any:
        asked.update(variables)
        return run_tool(words, variables, *more, **limit)

    recent(repository(tmp_path / "root"), Git(GIT, run, {"SYSTEMROOT": r"C:\Windows"}))
    assert asked["SYSTEMROOT"] == r"C:\Windows"


def test_more_files_than_a_command_line_holds_end_nothing(tmp_path: Path) -> None:
    """Of Windows it holds 32,767 characters. A session that is done asks which of them `git add` takes."""
    root = repository(tmp_path / "root")
    workspace = Workspace(root, git=lambda: RUNS)
    assert workspace.addable(["a.py"]) == {"a.py"}
    assert workspace.addable([f"{number:0100}" for number in range(70_000)]) == set()
    workspace.close()


EXPECTED = [
    PastCommit("Add sub/d.py\n\nNumber 2", ("sub/d.py",), _FIRST_S + 2),
    PastCommit("Add sub/b c.py\n\nNumber 1", ("sub/b c.py",), _FIRST_S + 1),
    PastCommit("Add a.py\n\nNumber 0", ("a.py",), _FIRST_S),
]


def test_no_configuration_of_the_machine_is_obeyed(tmp_path: Path) -> None:
    """It may have `git log` run a program, for signatures say."""
    bad = tmp_path / "gitconfig"
    bad.write_text("[no configuration\n")
    theirs = {"GIT_CONFIG_SYSTEM": os.fspath(bad), "GIT_CONFIG_GLOBAL": os.fspath(bad)}

    def run(words: Sequence[str], variables: Mapping[str, str], *more: Any, **limit: Any) -> Any:
        return run_tool(words, theirs | dict(variables), *more, **limit)

    assert recent(repository(tmp_path / "root"), Git(GIT, run)) == EXPECTED


def test_the_latest_commits_come_first(tmp_path: Path) -> None:
    """Messages and changed files, whether refs are loose, packed or HEAD is detached."""
    root = repository(tmp_path / "r")
    assert recent(root, RUNS) == EXPECTED
    git(root, "pack-refs", "--all")
    git(root, "gc")
    assert recent(root, RUNS) == EXPECTED
    git(root, "checkout", "--detach", "HEAD~1")
    assert recent(root, RUNS) == EXPECTED[1:]


def test_paths_are_relative_to_the_folder(tmp_path: Path) -> None:
    """A workspace that is a folder of a repository sees its own files, and no others."""
    root = repository(tmp_path / "r")
    assert [past.paths for past in recent(root / "sub", RUNS)] == [("d.py",), ("b c.py",), ()]


def test_a_worktree_and_a_shallow_clone_have_a_history(tmp_path: Path) -> None:
    """What git can read: another work tree's, and as much of it as a shallow clone has."""
    root = repository(tmp_path / "r")
    git(root, "worktree", "add", "../w")
    assert recent(tmp_path / "w", RUNS) == EXPECTED
    git(root, "clone", "--depth", "2", f"file://{root}", "../s")
    found = recent(tmp_path / "s", RUNS)
    assert [past.message for past in found] == [past.message for past in EXPECTED[:2]]


def test_without_a_history_there_is_none(tmp_path: Path) -> None:
    """No repository, none with commits, damaged ones: no commits, and no error."""
    assert recent(tmp_path, RUNS) == []
    git(tmp_path, "init", "-b", "main", "empty")
    assert recent(tmp_path / "empty", RUNS) == []
    root = repository(tmp_path / "r")
    for damaged in ("ref: ../../x\n", "ref: refs/heads/none\n", "0" * 40, "--output=/tmp/x", ""):
        (root / ".git/HEAD").write_text(damaged)
        assert recent(root, RUNS) == [], damaged
    assert recent(tmp_path / "missing", RUNS) == []
    assert recent(root, Git(str(tmp_path / "no-git"), run_tool)) == []


def test_nothing_that_a_repository_configures_is_run(tmp_path: Path) -> None:
    """Its configuration names programs: each would leave a file."""
    root = repository(tmp_path / "r")
    tree = git(root, "rev-parse", "main~2^{tree}").strip()
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    (root / ".gitattributes").write_text("* diff=trap filter=trap\n")
    with (root / ".git/config").open("a") as config:
        config.write(
            f"[core]\n\tpager = {trap}\n\tfsmonitor = {trap}\n\tsshCommand = {trap}\n"
            f"[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {trap}\n[pager]\n\tlog = {trap}\n"
            f'[diff]\n\texternal = {trap}\n[diff "trap"]\n\ttextconv = {trap}\n[format]\n\tpretty = hidden\n'
            f'[alias]\n\tlog = !{trap}\n[include]\n\tpath = {trap}\n[remote "o"]\n\tpromisor = true\n'
            f"\turl = ext::{trap}\n[extensions]\n\tpartialClone = o\n[protocol]\n\tallow = always\n"
        )
    assert recent(root, RUNS) == EXPECTED
    # A lost tree is what git would fetch from the promisor.
    (root / ".git/objects" / tree[:2] / tree[2:]).unlink()
    recent(root, RUNS)
    assert not (tmp_path / "sprung").exists()
