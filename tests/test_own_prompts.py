"""Prompts that the person keeps, out of reach of answers; those of a repository are files like others."""

import os
from pathlib import Path

import pytest

from codingagent.storage import own_prompts
from codingagent.storage.homes import Home
from tests.helpers import run_here

OWN = "Review the code.\nName what is wrong."


@pytest.fixture(name="home")
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "person"))
    (tmp_path / "home" / "workspace").mkdir(parents=True)
    return tmp_path / "home"


def keep(folder: Path, name: str, text: str = OWN) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text(text, "utf-8")
    return path


def tasks(home: Path) -> list[str]:
    if not (home / "sessions").exists():
        return []
    sessions = Home.at(home, create=False).sessions
    return [sessions.load(name).task for name in sessions.ids()]


@pytest.mark.parametrize("command", ["new", "ask"])
def test_a_prompt_of_the_person_begins_the_task(home: Path, command: str) -> None:
    keep(own_prompts.folder_of_own(), "review")
    words = ("--home", str(home), command, "--no-wait", "--prompt", "review")
    assert run_here(*words).returncode == 0
    assert run_here(*words, "only src/").returncode == 0
    assert sorted(tasks(home)) == [OWN, f"{OWN}\n\nonly src/"]


def test_an_unknown_name_is_told_with_those_that_there_are(home: Path) -> None:
    """One line; nothing is begun, no name leads out of the folder, and a repository has none."""
    keep(own_prompts.folder_of_own(), "review")
    keep(home / "workspace" / ".codingagent" / "prompts", "audit")
    keep(home / "workspace", "outside")
    for name in ("reviews", "audit", "../../outside", ""):
        done = run_here("--home", str(home), "new", "--no-wait", "--prompt", name, "x")
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "there are review, or name a file with --file" in done.stderr
    assert tasks(home) == []


def test_an_own_prompt_that_an_answer_could_write_is_none(home: Path) -> None:
    keep(own_prompts.folder_of_own(), "review")
    words = ("new", "--no-wait", "--prompt", "review", "--workspace", str(home.parent))
    done = run_here("--home", str(home.parent / "other"), *words)
    assert (done.returncode, "no prompt 'review' of yours" in done.stderr) == (2, True), done.stderr


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_prompt_that_a_link_leads_to_in_the_workspace_is_none(home: Path) -> None:
    """An answer could write it."""
    inside = keep(home / "workspace", "inside")
    own_prompts.folder_of_own().mkdir(parents=True)
    (own_prompts.folder_of_own() / "mine.md").symlink_to(inside)
    done = run_here("--home", str(home), "new", "--no-wait", "--prompt", "mine")
    assert "there is no prompt 'mine'" in done.stderr
