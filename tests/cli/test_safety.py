"""The command line's safety: approvals, settings that are not obeyed, diff, undo, log, doctor."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codingagent.cli import main
from codingagent.workspace.own_code import state_folder
from tests.cli.test_cli import CREATE, DONE, drop, outboxes, run, session_of
from tests.helpers import REPOSITORY, command_line, run_here
from tests.sandboxes import needs_bwrap

pytestmark = pytest.mark.usefixtures("plain")

REMOVE = "[RUN_COMMAND]\nrm -r build\n[/RUN_COMMAND]\n"


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(name="waiting")
def _waiting(home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A home with a session that waits for its first reply, and a workspace with a build folder."""
    (home / "workspace" / "build").mkdir(parents=True)
    (home / "workspace" / "build" / "o").write_text("kept\n")
    assert run(home, "new", "--no-wait", "Write", "a", "file") == 0
    capsys.readouterr()
    return home


def request(home: Path) -> str:
    """Return the text of the latest request."""
    return (home / "outbox" / outboxes(home)[-1]).read_text("utf-8")


# --- approvals -------------------------------------------------------------------------------------


def test_what_awaits_approval_ends_with_status_3_and_says_how_to_go_on(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, command line: 3 stopped, awaiting approval; one line on stderr."""
    drop(waiting, REMOVE)
    assert run(waiting, "resume", "--once") == 3
    said = capsys.readouterr()
    assert "rm -r build" in said.out
    assert said.err.count("\n") == 1
    assert f"approve {session_of(waiting)} op-1" in said.err
    assert run(waiting, "resume", "--once") == 3
    assert (waiting / "workspace" / "build").exists()
    assert run(waiting, "list") == 0
    assert "awaiting approval" in capsys.readouterr().out


def test_approve_does_it_and_goes_on_to_the_next_request(waiting: Path) -> None:
    """Design, command line: approve answers what is awaiting approval, then goes on."""
    drop(waiting, REMOVE + CREATE)
    assert run(waiting, "resume", "--once") == 3
    assert run(waiting, "approve", session_of(waiting), "op-2") == 2
    assert (waiting / "workspace" / "build").exists()
    assert run(waiting, "approve", session_of(waiting), "op-1") == 0
    assert not (waiting / "workspace" / "build").exists()
    assert (waiting / "workspace" / "a.txt").exists()
    assert "[OK] RUN_COMMAND: Ran 'rm -r build'" in request(waiting)
    assert run(waiting, "approve", session_of(waiting)) == 2


def test_approve_and_deny_answer_what_waits_unless_several_do(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, command line: without a name, the session or run that awaits approval is meant."""
    assert run(waiting, "approve") == 2
    assert "nothing waits for approval here" in capsys.readouterr().err
    drop(waiting, REMOVE + CREATE + REMOVE.replace("build", "other"))
    assert run(waiting, "resume", "--once") == 3
    assert run(waiting, "approve", "op-2") == 2
    assert run(waiting, "approve", "op-1") == 3
    assert not (waiting / "workspace" / "build").exists()
    message = waiting.parent / "message.json"
    operation = {"type": "shell", "command": "rm -r src"}
    message.write_text(json.dumps({"protocolVersion": "1.0", "operations": [operation]}))
    assert run(waiting, "run", str(message)) == 3
    capsys.readouterr()
    assert run(waiting, "deny") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"codingagent: 2 wait for approval; name one of: {session_of(waiting)} (rm -r")
    assert re.search(r", run_[0-9a-f]{12} \(rm -r src\)$", line)
    assert run(waiting, "deny", session_of(waiting)) == 0
    assert run(waiting, "deny", "--reason", "keep it") == 0
    assert "keep it" in capsys.readouterr().out
    assert run(waiting, "deny") == 2


def test_deny_tells_the_model_why_and_goes_on(waiting: Path) -> None:
    """Design, command line: deny goes on without it; a denied operation is a result."""
    drop(waiting, REMOVE + CREATE)
    assert run(waiting, "resume", "--once") == 3
    assert run(waiting, "deny", session_of(waiting), "--reason", "the release needs it") == 0
    assert (waiting / "workspace" / "build" / "o").exists()
    assert "DENIED 'rm -r build': the user said no: the release needs it" in request(waiting)


def test_one_approval_after_the_other_ends_with_status_3_again(waiting: Path) -> None:
    """Design, policy: each question needs its own answer, unless it was "always"."""
    drop(waiting, REMOVE + "[RUN_COMMAND]\ngit clean\n[/RUN_COMMAND]\n" + REMOVE)
    assert run(waiting, "resume", "--once") == 3
    assert run(waiting, "approve", session_of(waiting), "--always") == 3
    assert run(waiting, "deny", session_of(waiting)) == 0
    assert request(waiting).count("Ran 'rm -r build'") == 2


def test_json_tells_what_awaits_approval(waiting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Design, command line: --json gives one JSON object a line on stdout and nothing else there."""
    drop(waiting, REMOVE)
    assert run(waiting, "resume", "--once", "--json") == 3
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (asked,) = [entry["question"] for entry in said if entry["kind"] == "approval_asked"]
    assert asked["shown"] == "rm -r build"
    assert run(waiting, "resume", "--once", "--json") == 3
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [entry["question"] for entry in said if "question" in entry] == [asked]


# --- settings that are not obeyed --------------------------------------------------------------------


@pytest.mark.with_git
def test_a_settings_file_in_the_workspace_is_not_obeyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, policy: a policy or setting inside the workspace is never obeyed."""
    tmp_path = tmp_path / "project"
    tmp_path.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path.parent / "state"))
    monkeypatch.chdir(tmp_path)
    home = tmp_path / ".codingagent"
    assert main.run(["new", "--here", "--no-wait", "x"]) == 0
    capsys.readouterr()
    (home / "codingagent.toml").write_text('sandbox = "off"\npolicy = "permissive"\n')
    assert main.run(["new", "--here", "--no-wait", "x"]) == 0
    said = capsys.readouterr().out
    assert "is ignored" in said
    assert "--sandbox off" not in said
    (tmp_path / "build").mkdir()
    drop(home, REMOVE)
    assert main.run(["resume", session_of(home), "--once"]) == 3
    assert (tmp_path / "build").exists()


def test_a_settings_file_beside_the_workspace_is_obeyed(home: Path) -> None:
    """Design, command line: codingagent.toml in home."""
    (home / "workspace" / "build").mkdir(parents=True)
    (home / "codingagent.toml").write_text('policy = "permissive"\n')
    assert run(home, "new", "--no-wait", "x") == 0
    drop(home, REMOVE)
    assert run(home, "resume", "--once") == 0
    assert not (home / "workspace" / "build").exists()


@pytest.mark.parametrize("where", ["workspace/rules.toml", "link.toml"])
def test_a_policy_file_in_the_workspace_is_refused(
    home: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, policy: a policy inside the workspace is never obeyed, by whatever name."""
    (home / "workspace").mkdir(parents=True)
    (home / "workspace" / "rules.toml").write_text('extends = "permissive"\n')
    (home / "link.toml").symlink_to("workspace/rules.toml")
    assert run(home, "new", "--no-wait", "--policy", str(home / where), "x") == 2
    assert "is in the workspace" in capsys.readouterr().err
    assert not (home / "sessions").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[shel]\n", "did you mean 'shell'"),
        ("[shell]\nenabled = 3\n", "shell.enabled is 3; it must be true or false"),
        ("[shell\n", "can't be read"),
    ],
)
def test_a_policy_file_that_is_wrong_is_said_in_one_line(
    home: Path, text: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, command line: wrong settings: exit status 2, one line: what, where, what to do."""
    home.mkdir()
    (home / "rules.toml").write_text(text)
    assert run(home, "new", "--no-wait", "--policy", str(home / "rules.toml"), "x") == 2
    err = capsys.readouterr().err
    assert says in err
    assert "rules.toml" in err
    assert err.count("\n") == 1


def test_a_session_keeps_its_policy_and_an_option_overrides_it(home: Path) -> None:
    """Design, command line: settings are kept in the session; options are strongest."""
    (home / "workspace" / "build").mkdir(parents=True)
    assert run(home, "new", "--no-wait", "--policy", "restrictive", "x") == 0
    drop(home, CREATE)
    assert run(home, "resume", "--once") == 0
    assert not (home / "workspace" / "a.txt").exists()
    drop(home, CREATE + REMOVE)
    assert (
        run(
            home,
            "resume",
            "--once",
            "--accept",
            str(next((home / "inbox").glob("*.txt"))),
            "--policy",
            "permissive",
        )
        == 0
    )
    assert (home / "workspace" / "a.txt").exists()
    assert not (home / "workspace" / "build").exists()


@pytest.mark.parametrize("words", [("--policy", "permissive"), ("--network",), ("--secrets", "off")])
def test_a_looser_record_within_the_workspace_holds_where_the_persons_own_says_so_too(
    tmp_path: Path,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is in the workspace loosens nothing; what the person said once is kept out of its reach."""
    tmp_path = tmp_path / "project"
    tmp_path.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path.parent / "state"))
    monkeypatch.chdir(tmp_path)
    home = tmp_path / ".codingagent"
    assert main.run(["new", "--here", "--no-wait", *words, "x"]) == 0
    said = capsys.readouterr().out
    assert main.run(["new", "--here", "--no-wait", "y"]) == 0
    (named,) = [line.split()[-1] for line in said.splitlines() if line.startswith("Then: ")]
    (other,) = {each.name for each in (home / "sessions").glob("????????")} - {named}
    journals = [home / "sessions" / each / "journal.jsonl" for each in (named, other)]
    first, *rest = journals[0].read_bytes().split(b"\n")
    forged = [first.replace(named.encode(), other.encode()), *rest]
    journals[1].write_bytes(b"\n".join(forged))
    assert main.run(["resume", "--once", other]) == 2
    assert f"give {' '.join(words)} again" in capsys.readouterr().err
    drop(home, CREATE)
    assert main.run(["resume", "--once", named]) == 0
    assert (tmp_path / "a.txt").exists()
    if shutil.which("git"):
        assert main.run(["undo", named]) == 0  # it executes nothing
        assert not (tmp_path / "a.txt").exists()
    before = {*(state_folder() / "allowed").iterdir()}
    assert main.run(["delete", named, "--yes"]) == 0
    assert len(before - {*(state_folder() / "allowed").iterdir()}) == 1


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--sandbox", "maybe", "--sandbox is 'maybe'; it must be one of auto, require, off"),
        ("--policy", "lax", "is neither a preset (restrictive, standard, permissive) nor a file"),
    ],
)
def test_a_mistyped_choice_is_said_and_nothing_is_made(
    home: Path, option: str, value: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, command line: wrong usage: exit status 2; what, where, what to do instead."""
    assert run(home, "new", "--no-wait", option, value, "x") == 2
    assert says in capsys.readouterr().err
    assert not home.exists()


# --- homes that others have laid -----------------------------------------------------------------------


def plant(home: Path, workspace: Path) -> None:
    """Lays a home with a session that would run a planted reply with all rights."""
    session = home / "sessions" / "deadbeef"
    session.mkdir(parents=True)
    (home / "outbox").mkdir()
    (home / "inbox").mkdir()
    start = {
        "session_id": "deadbeef",
        "task": "x",
        "workspace": str(workspace),
        "at": "2026-01-01T00:00:00Z",
        "policy": "permissive",
        "sandbox": "off",
        "network": True,
        "kind": "session_started",
    }
    written = {"sequence": 1, "at": "2026-01-01T00:00:01Z", "kind": "outbox_written"}
    (session / "journal.jsonl").write_text(f"{json.dumps(start)}\n{json.dumps(written)}\n")
    (home / "inbox" / "a.txt").write_text("[RUN_COMMAND]\ntouch escaped\n[/RUN_COMMAND]\n")


@pytest.mark.parametrize("name", [".", ".codingagent"])
@pytest.mark.parametrize(
    "words", [["resume", "--once"], ["undo"], ["diff"], ["log"], ["show"], ["list"], ["new", "x"]]
)
def test_a_home_that_came_with_a_clone_or_an_answer_is_not_believed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    words: list[str],
) -> None:
    """Design, policy: nothing inside a workspace is obeyed; a home counts if it was made here or named."""
    monkeypatch.chdir(tmp_path)
    plant(tmp_path / name, tmp_path)
    assert main.run(words) == 2
    err = capsys.readouterr().err
    assert "did not make here" in err
    assert "--home" not in err
    assert "codingagent help troubleshooting" in err
    assert err.count("\n") == 1
    assert not list(tmp_path.rglob("escaped"))


def test_in_a_clone_that_looks_like_a_home_the_one_made_there_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the clone's own folders were looked at, and what they advised would have trusted them."""
    monkeypatch.chdir(tmp_path)
    plant(tmp_path, tmp_path)
    assert main.run(["new", "--here", "--no-wait", "a task"]) == 0
    capsys.readouterr()
    assert main.run(["list"]) == 0
    assert "a task" in capsys.readouterr().out


def test_a_home_counts_where_it_was_made_and_after_it_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design, command line: every command finds the home; a copy of one is named once."""
    (tmp_path / "one").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    assert main.run(["new", "--no-wait", "x"]) == 0
    assert main.run(["list"]) == 0
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    monkeypatch.chdir(tmp_path / "two")
    assert main.run(["list"]) == 2
    assert main.run(["--home", str(tmp_path / "two"), "list"]) == 0
    assert main.run(["list"]) == 0
    for path in list((tmp_path / "one").iterdir()):
        shutil.rmtree(path)
    plant(tmp_path / "one", tmp_path / "one")
    monkeypatch.chdir(tmp_path / "one")
    assert main.run(["list"]) == 2


def test_settings_that_came_with_a_clone_are_not_obeyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, policy: a setting that nobody here chose loosens nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "codingagent.toml").write_text('sandbox = "off"\nworkspace = ".."\n')
    assert main.run(["new", "--no-wait", "x"]) == 2
    assert "codingagent.toml that codingagent did not make" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["codingagent.toml"]


@pytest.mark.parametrize("name", ["sessions", "outbox", "inbox", "workspace", ".codingagent"])
def test_folders_of_a_home_that_are_links_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Design, purpose: nothing outside is written, also by ourselves; a clone can hold links."""
    target, home = tmp_path / "target", tmp_path / "home"
    target.mkdir()
    home.mkdir()
    (home / name).symlink_to(target)
    monkeypatch.chdir(home)
    here = ["--here"] if name == ".codingagent" else []
    assert main.run(["new", "--no-wait", *here, "x"]) == 2
    assert not list(target.iterdir())


def test_a_home_deep_in_the_workspace_is_refused(tmp_path: Path) -> None:
    """Design, workspace: a home inside it is invisible to commands, which could move its parents away."""
    home = tmp_path / "tools" / "agent"
    assert run(home, "new", "--no-wait", "--workspace", str(tmp_path), "x") == 2


@pytest.mark.parametrize("words", [["--workspace", "{loop}"], ["--home", "{loop}"]])
def test_a_link_to_itself_is_said_in_one_line(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, command line: bad input gets one line, and never a traceback."""
    (tmp_path / "loop").symlink_to("loop")
    option, value = words[0], words[1].format(loop=tmp_path / "loop")
    home = [] if option == "--home" else ["--home", str(tmp_path / "home")]
    before = [option, value] if option == "--home" else []
    after = [] if before else [option, value]
    assert main.run([*home, *before, "new", "--no-wait", *after, "x"]) in (1, 2)
    assert capsys.readouterr().err.count("\n") == 1


def test_config_shows_what_is_in_force_and_what_the_policy_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, command line: config prints the settings in force; a file in the workspace is not."""
    monkeypatch.chdir(tmp_path)
    assert main.run(["new", "--here", "--no-wait", "x"]) == 0
    (tmp_path / ".codingagent" / "codingagent.toml").write_text('policy = "permissive"\n')
    capsys.readouterr()
    assert main.run(["config"]) == 0
    said = capsys.readouterr().out
    assert "permissive" not in said.replace("restrictive, standard, permissive", "")
    assert "`rm" not in said
    assert main.run(["config", "policy"]) == 0
    assert "asks before: `rm" in capsys.readouterr().out


def test_a_taken_reply_that_a_power_failure_emptied_costs_a_turn_and_no_more(home: Path) -> None:
    """Design, nothing is lost: whatever is found after a fall, the session goes on."""
    assert run(home, "new", "--no-wait", "x") == 0
    drop(home, CREATE)
    (home / "inbox" / "processed").mkdir()
    taken = home / "inbox" / "processed" / f"{session_of(home)}_seq0001.txt"
    (home / "inbox" / "reply.txt").rename(taken)
    taken.write_bytes(b"\0" * 100)
    assert run(home, "resume", "--once") == 0
    assert "can't be read: send it again" in request(home)


# --- diff, undo, log -------------------------------------------------------------------------------


def needs_git(test: Callable[..., None]) -> Callable[..., None]:
    pytest.mark.skipif(not shutil.which("git"), reason="diff and undo need git")(test)
    pytest.mark.with_git(test)
    return test


CHANGE = (
    '[CREATE_FILE path="new/made.txt"]\nmade\n[/CREATE_FILE]\n'
    "[RUN_COMMAND]\nrm build/o; echo 1 > by-command; chmod 600 old; ln -s old link\n[/RUN_COMMAND]\n"
)


def tree(root: Path) -> dict[str, tuple[int, str]]:
    """Return every file and link with its permissions and its content."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(root))] = (0, str(path.readlink()))
        elif path.is_file():
            found[str(path.relative_to(root))] = (path.stat().st_mode, path.read_text())
    return found


@pytest.fixture(name="changed")
def _changed(waiting: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, dict[str, tuple[int, str]]]:
    """A home whose session has changed files in a turn, and the files as they were before."""
    (waiting / "workspace" / "old").write_text("old\n")
    before = tree(waiting / "workspace")
    drop(waiting, CHANGE)
    assert run(waiting, "resume", "--once") == 0
    capsys.readouterr()
    return waiting, before


@needs_git
def test_diff_shows_what_undo_restores_byte_for_byte_and_it_can_be_undone(
    changed: tuple[Path, dict[str, tuple[int, str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, diff: what a session changed, also by commands, untracked files too.

    Design, undo: the workspace is as before, modes and links included; undo can itself be undone. The
    person's own work is not taken back with the model's, unless they say so.
    """
    home, before = changed
    assert run(home, "diff", "--turn", "1") == 0
    said = capsys.readouterr().out
    for line in ("+made", "+1", "-kept", "b/link"):
        assert line in said
    assert run(home, "diff", "--turn", "7") == 2
    assert "turn 7" in capsys.readouterr().err
    assert run(home, "diff", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["turns"] == [1]
    assert "+made" in document["diff"]
    after = tree(home / "workspace")
    assert after != before
    assert run(home, "undo") == 0
    assert tree(home / "workspace") == before
    text = request(home)
    assert "the user undid turn 1: restored build/o, old, removed by-command, link, new/made.txt" in text
    assert "made.txt" not in text.partition("## Previous")[0]
    assert outboxes(home)[-1].endswith("_seq0002.txt")
    assert run(home, "undo") == 2
    assert run(home, "undo", "--redo") == 0
    assert tree(home / "workspace") == after
    # The two cancel out: the model need not hear of them.
    assert "the person" not in request(home).partition("## Previous")[2].partition("## ")[0]
    assert run(home, "undo", "--redo") == 2
    made = home / "workspace" / "new" / "made.txt"
    made.write_text("made\nand mine\n")
    assert run(home, "undo") == 0
    assert made.read_text() == "made\nand mine\n"
    assert "left as it is: new/made.txt" in request(home)
    assert run(home, "undo", "--redo") == 0
    assert run(home, "undo", "--force") == 0
    assert tree(home / "workspace") == before


@needs_git
def test_undo_takes_several_turns_back_and_leaves_what_they_did_not_touch(
    changed: tuple[Path, dict[str, tuple[int, str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, undo: `--turns N`; turns that changed nothing do not count; the person's files stay."""
    home, before = changed
    drop(home, "[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n")
    assert run(home, "resume", "--once") == 0
    drop(home, '[CREATE_FILE path="new/made.txt"]\nagain\n[/CREATE_FILE]\n')
    assert run(home, "resume", "--once") == 0
    (home / "workspace" / "mine").write_text("mine\n")
    assert run(home, "undo", "--turns", "3") == 2
    assert "only 2 turns of this session" in capsys.readouterr().err
    assert run(home, "undo") == 0
    assert (home / "workspace" / "new" / "made.txt").read_text() == "made\n"
    assert run(home, "undo") == 0
    found = tree(home / "workspace")
    assert found.pop("mine")[1] == "mine\n"
    assert found == before


@needs_git
def test_undo_by_force_acts_on_the_turn_that_undo_spoke_of(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, undo: `--force` takes back what the undo before left, and nothing else."""
    workspace = waiting / "workspace"
    for number in (1, 2):
        names = [f"one{number}.txt", f"two{number}.txt"]
        drop(waiting, "".join(f'[CREATE_FILE path="{n}"]\nmade\n[/CREATE_FILE]\n' for n in names))
        assert run(waiting, "resume", "--once") == 0
    (workspace / "two2.txt").write_text("made\nand mine\n")
    capsys.readouterr()
    assert run(waiting, "undo") == 0
    assert (
        f"left as it is: two2.txt: it was changed again since; `codingagent --home {waiting} undo --force`"
        in (capsys.readouterr().out)
    )
    # What the person did after the undo is none of its business.
    (workspace / "one2.txt").write_text("mine\n")
    before = tree(workspace)
    assert run(waiting, "undo", "--force") == 0
    assert sorted(path.name for path in workspace.glob("*.txt")) == ["one1.txt", "one2.txt", "two1.txt"]
    assert (workspace / "one2.txt").read_text() == "mine\n"
    assert "the user undid turn 2: removed two2.txt\n" in request(waiting)
    # Each of the two can be undone by itself, the last one first.
    assert run(waiting, "undo", "--redo") == 0
    assert tree(workspace) == before
    assert run(waiting, "undo", "--force") == 0
    assert run(waiting, "undo", "--force") == 0
    assert [path.name for path in workspace.glob("*.txt")] == ["one2.txt"]


@pytest.mark.deep
@needs_git
def test_undo_by_force_takes_as_many_turns_as_undo_names(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, undo: the command that undo names takes back all that it left; redo likewise."""
    workspace = waiting / "workspace"
    before = tree(workspace)
    for number in (1, 2, 3):
        drop(waiting, f'[CREATE_FILE path="{number}.txt"]\nmade\n[/CREATE_FILE]\n')
        assert run(waiting, "resume", "--once") == 0
    for number in (1, 3):
        (workspace / f"{number}.txt").write_text("mine\n")
    edited = tree(workspace)
    capsys.readouterr()
    assert run(waiting, "undo", "--turns", "3") == 0
    assert " undo --force --turns 2` undoes" in capsys.readouterr().out
    assert run(waiting, "undo", "--force", "--turns", "2") == 0
    assert tree(workspace) == before
    assert run(waiting, "undo", "--redo") == 0
    assert run(waiting, "undo", "--redo") == 0
    assert tree(workspace) == edited
    assert run(waiting, "undo", "--force", "--turns", "3") == 0
    (workspace / "2.txt").write_text("mine\n")
    capsys.readouterr()
    assert run(waiting, "undo", "--redo") == 0
    assert (
        f"2.txt: it was changed again since; `codingagent --home {waiting} undo --redo --force`"
        in capsys.readouterr().out
    )
    assert (workspace / "2.txt").read_text() == "mine\n"
    assert run(waiting, "undo", "--redo", "--force") == 0
    assert tree(workspace) == edited


@needs_git
def test_several_undos_leave_one_note_for_the_model(waiting: Path) -> None:
    """Undo: it says what each did, in order, and nothing of what the person did meanwhile."""
    for number in (1, 2):
        drop(waiting, f'[CREATE_FILE path="{number}.txt"]\nmade\n[/CREATE_FILE]\n')
        assert run(waiting, "resume", "--once") == 0
    assert run(waiting, "undo") == 0
    (waiting / "workspace" / "mine.txt").write_text("mine\n")
    assert run(waiting, "undo") == 0
    results = request(waiting).partition("## Previous")[2].partition("## ")[0]
    assert results.count("Note: ") == 1
    both = "the user undid turn 2: removed 2.txt; the user undid turn 1: removed 1.txt"
    assert f"Note: {both}\n" in results
    assert run(waiting, "undo", "--redo") == 0
    assert f"Note: {both}; the user redid turn 1: restored 1.txt\n" in request(waiting)
    # Once it was answered it is told; what comes then is told by itself.
    drop(waiting, "[MESSAGE]\nI see.\n[/MESSAGE]\n")
    assert run(waiting, "resume", "--once") == 0
    assert "the user undid" not in request(waiting)
    assert run(waiting, "undo", "--redo") == 0
    assert "Note: the user redid turn 2: restored 2.txt\n" in request(waiting)


@needs_git
def test_a_turn_that_awaits_approval_is_not_undone_and_what_the_person_does_meanwhile_is_theirs(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, undo: a turn under way is ended first; it takes back what it did itself, not what happened."""
    drop(waiting, CREATE + REMOVE)
    assert run(waiting, "resume", "--once") == 3
    capsys.readouterr()
    assert run(waiting, "undo") == 2
    named = session_of(waiting)
    commands = f"--home {waiting} approve {named}` or `codingagent --home {waiting} deny {named}`"
    assert commands in capsys.readouterr().err
    assert (waiting / "workspace" / "a.txt").exists()
    mine = waiting / "workspace" / "mine.txt"
    mine.write_text("mine\n")
    assert run(waiting, "approve", named) == 0
    assert run(waiting, "undo") == 0
    assert mine.read_text() == "mine\n"
    assert not (waiting / "workspace" / "a.txt").exists()
    assert (waiting / "workspace" / "build" / "o").read_text() == "kept\n"


@needs_git
def test_a_turn_without_a_checkpoint_after_it_can_be_taken_back(waiting: Path) -> None:
    """Design, undo: what was kept before a turn is of use whatever happened after it."""
    drop(waiting, CREATE)
    assert run(waiting, "resume", "--once") == 0
    journal = next((waiting / "sessions").glob("*/journal.jsonl"))
    kept = [
        line
        for line in journal.read_text().splitlines(keepends=True)
        if not ('"checkpoint_taken"' in line and '"before":false' in line)
    ]
    journal.write_text("".join(kept))
    assert run(waiting, "undo") == 0
    assert not (waiting / "workspace" / "a.txt").exists()


@needs_git
def test_undo_works_on_a_session_that_is_complete(waiting: Path) -> None:
    """Design, undo: the model is told in the next outbox, which comes when the session is reopened."""
    drop(waiting, CREATE + DONE)
    assert run(waiting, "resume", "--once") == 0
    assert run(waiting, "undo") == 0
    assert not (waiting / "workspace" / "a.txt").exists()
    assert run(waiting, "show") == 0
    drop(waiting, CREATE)
    assert run(waiting, "resume", session_of(waiting), "--once") == 0
    text = (waiting / "outbox" / f"{session_of(waiting)}_seq0002.txt").read_text("utf-8")
    assert "the user undid turn 1: removed a.txt" in text


@pytest.mark.with_git
def test_without_git_diff_and_undo_say_so_and_the_rest_works(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design, undo: git is a dependency of this feature only."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert run(home, "new", "--no-wait", "--sandbox", "off", "x") == 0
    lack = "git is not installed: nothing can be undone, and you are not asked when a command changes a"
    assert lack in " ".join(capsys.readouterr().out.split())
    drop(home, CREATE)
    assert run(home, "resume", "--once") == 0
    assert "git is not installed" not in capsys.readouterr().out
    assert (home / "workspace" / "a.txt").exists()
    for command in ("diff", "undo"):
        assert run(home, command) == 2
        assert "this needs git" in capsys.readouterr().err


@pytest.mark.with_git
def test_a_git_that_an_answer_could_have_made_is_not_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design, commands: programs of ours are never taken from the workspace, whatever PATH says."""
    tools = home / "workspace" / "bin"
    tools.mkdir(parents=True)
    for name in ("git", "bwrap"):
        (tools / name).write_text(f"#!/bin/sh\ntouch '{home}/escaped'\n")
        (tools / name).chmod(0o755)
    (home / "way").symlink_to(tools)
    monkeypatch.setenv("PATH", f"{tools}:{home / 'way'}:bin:{os.environ['PATH']}")
    assert run(home, "new", "--no-wait", "x") == 0
    drop(home, CREATE)
    assert run(home, "resume", "--once") == 0
    assert run(home, "doctor") in {0, 1}
    assert not (home / "escaped").exists()


@pytest.mark.with_git
@pytest.mark.parametrize(
    ("lure", "words"),
    [
        # As the console script, which does not look in the current folder; the server is a process of ours.
        ("codingagent", ("-P", "-m", "codingagent", "call", "ping", "--stdio")),
        ("secrets", ("-m", "codingagent", "new", "--here", "--no-wait", "task")),
    ],
)
def test_no_module_of_the_current_folder_is_imported(
    tmp_path: Path, lure: str, words: tuple[str, ...]
) -> None:
    """Design, the workspace: an answer can write modules, and the person works beside them."""
    folder = tmp_path / "project"
    (folder / lure).mkdir(parents=True)
    for name in ("__init__.py", "__main__.py"):
        (folder / lure / name).write_text(f"open({str(tmp_path / 'escaped')!r}, 'w')\n")
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "escaped").exists()


def test_log_tells_what_was_tried(waiting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Design, log: reading it one understands what was tried."""
    hostile = (
        '[READ_FILE path="/etc/shadow"]\n'
        '[CREATE_FILE path="../out"]\nx\n[/CREATE_FILE]\n'
        "[RUN_COMMAND]\nsudo reboot\n[/RUN_COMMAND]\n"
        "[RUN_COMMAND]\nprintf 'a\\033]0;owned\\007b'\n[/RUN_COMMAND]\n"
    )
    drop(waiting, hostile + REMOVE)
    assert run(waiting, "resume", "--once") == 3
    assert run(waiting, "deny", session_of(waiting)) == 0
    capsys.readouterr()
    assert run(waiting, "log") == 0
    said = capsys.readouterr().out
    for words in (
        "session started",
        "answer 1: 3 operations, kept as ",
        "FAILED READ_FILE: REJECTED",
        "FAILED CREATE_FILE: REJECTED: Path is outside workspace",
        "FAILED RUN_COMMAND: DENIED 'sudo reboot'",
        "$ printf ",
        "op-5: Run `rm -r build`?",
        "op-5: you said no (`codingagent deny`)",
        "Turn 1: ",
    ):
        assert words in said, words
    assert "\033" not in said
    assert run(waiting, "log", "--json") == 0
    kinds = [json.loads(line)["kind"] for line in capsys.readouterr().out.splitlines()]
    assert kinds[0] == "session_started"
    assert {"approval_asked", "approval_answered", "operation_ended"} <= set(kinds)


# --- doctor ----------------------------------------------------------------------------------------


@pytest.mark.with_git
def test_doctor_tells_every_promise_of_the_sandbox(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Design, command line: doctor: what this machine offers, one line each, with the remedy."""
    status = run(home, "doctor", "--json")
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert status == any(each["isNeeded"] and each["holds"] is False for each in found)
    names = [entry["name"] for entry in found]
    assert names[:3] == ["Python", "git", "sandbox"]
    sandbox = found[2]
    promises = [entry for entry in found if entry["isPromise"]]
    if sandbox["holds"]:
        assert len(promises) > 8
        assert all(entry["holds"] is not False for entry in promises)
    else:
        assert sandbox["detail"]
    assert run(home, "doctor", "--verbose") == status
    assert len(capsys.readouterr().out.splitlines()) == len(found) + 1
    assert run(home, "doctor") == status
    *lines, verdict = capsys.readouterr().out.splitlines()
    faults = {entry["name"] for entry in found if entry["holds"] is False}
    needed = faults & {"sandbox", "git", "home", "inbox"}
    assert verdict.startswith("missing: " if needed else "ready")
    assert all(name in verdict for name in faults - {entry["name"] for entry in promises})
    broken = [entry for entry in promises if entry["holds"] is False]
    assert len(lines) == len(found) - len(promises) + len(broken)
    if promises and not broken:
        kept = [entry for entry in promises if entry["holds"]]
        assert f"all {len(kept)} protections work" in lines[2]


@pytest.mark.with_git
def test_doctor_without_a_home_and_without_programs(tmp_path: Path) -> None:
    """Design, command line: commands that only look need nothing and make nothing."""
    done = command_line(tmp_path / "none", "doctor")
    is_missing = done.stdout.splitlines()[-1].startswith("missing: ")
    assert (done.returncode, done.stderr) == (is_missing, "")
    assert not (tmp_path / "none").exists()
    for more in ((), ("--json",)):
        done = run_here("doctor", *more, folder=tmp_path, variables={"PATH": str(tmp_path)})
        assert (done.returncode, done.stderr) == (1, "")
    # Only what is needed counts.
    git = {"PATH": str(Path(shutil.which("git") or "").parent)}
    done = run_here("doctor", folder=tmp_path, variables={**git, "EDITOR": "no-such-editor"})
    assert done.returncode == is_missing
    assert "editor" in done.stdout.splitlines()[-1]


@pytest.mark.with_git
@pytest.mark.outside_dev
def test_doctor_in_a_home_that_can_not_be_written_goes_on_to_its_end(home: Path) -> None:
    """A doctor is asked when something is wrong."""
    needs_bwrap()
    assert run(home, "new", "--no-wait", "task") == 0
    ours = [sys.executable, "-m", "codingagent", "--home", str(home), "doctor"]
    confined = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *ours]
    done = subprocess.run(confined, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert re.search("MISSING +inbox: .* can't be written", done.stdout)
    assert re.search("MISSING +home: .* can't be written; name another", done.stdout)
    assert "encoding: " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("missing: sandbox, inbox, home")
