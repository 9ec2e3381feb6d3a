"""`close` and `delete`: what ends a session, and what is left of it."""

import os
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from codingagent.storage.lock import HomeLock
from tests.cli.terminals import on_terminal
from tests.cli.test_amend import locked, terminal
from tests.cli.test_cli import CREATE, DONE, drop, run, session_of, started
from tests.helpers import HANG_S
from tests.sandboxes import needs_bwrap

pytestmark = pytest.mark.usefixtures("plain")


@pytest.fixture(name="home")
def _home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A home with a session that did one turn and waits for its second answer."""
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "Write", "a", "file") == 0
    drop(home, CREATE)
    assert run(home, "resume", "--once") == 0
    capsys.readouterr()
    return home


def test_a_session_that_is_renamed_is_listed_found_and_told_by_its_name(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lists show the name in place of the task; an empty one takes it away."""
    session = session_of(home)
    assert run(home, "rename", session, "  the\nverbose option ") == 0
    for words in (("list",), ("list", "verbose"), ("show", session), ("log", session)):
        capsys.readouterr()
        assert run(home, *words) == 0
        assert "verbose option" in capsys.readouterr().out, words
    assert "the verbose option" in (home / "sessions" / f"{session}.json").read_text()
    assert run(home, "rename", session, "") == 0
    capsys.readouterr()
    assert run(home, "list") == 0
    assert "Write a file" in capsys.readouterr().out
    assert run(home, "rename", "00000000", "x") == 2


def test_a_session_is_told_as_markdown_without_its_secrets(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a pull request or a colleague: no secret, and no word of a model's is a link, a tag or a name."""
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2eF4hJ6"
    lure = "@all ![x](http://x/) <img src=x> [y](z) ``` `` www.x.org #1"
    assert run(home, "say", f"use {secret} {lure}") == 0
    drop(
        home,
        f"[RUN_COMMAND]\necho '*_* {lure}'\n[/RUN_COMMAND]\n"
        f"[MESSAGE]\nnot {secret}\u200b\ufe0f\n````\n{lure}\n# so\n[/MESSAGE]\n"
        f"[DONE]\n{lure}\n[/DONE]\n",
    )
    assert run(home, "resume", "--once") == 0
    capsys.readouterr()
    assert run(home, "show", "--markdown") == 0
    told = capsys.readouterr().out
    assert secret not in told
    assert "\\u200b\\ufe0f" in told
    assert told.startswith("`````text\nWrite a file\n")
    assert re.search(r"^ +ok +echo", told, re.MULTILINE)
    [fence] = MarkdownIt("commonmark").parse(told)
    assert (fence.type, fence.info) == ("fence", "text")
    assert lure in fence.content


def test_a_closed_session_takes_no_answer_until_words_reopen_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ended as abandoned: `resume` and `list` no longer mean it; nothing of it is lost."""
    session = session_of(home)
    assert run(home, "close", session) == 0
    assert f" say {session} TEXT` reopens it" in capsys.readouterr().out
    assert run(home, "list") == 0
    said = capsys.readouterr()
    assert session not in said.out
    assert "closed sessions are left out (1): --all lists them, too" in said.err
    assert run(home, "list", "--all") == 0
    assert f"{session}  closed" in capsys.readouterr().out
    assert run(home, "resume", "--once") == 2
    assert run(home, "close", session) == 2
    assert "is done already" in capsys.readouterr().err
    drop(home, DONE)
    assert run(home, "say", session, "go on") == 0
    request = (home / "outbox" / f"{session}_seq0003.txt").read_text("utf-8")
    assert "go on" in request
    assert "after your DONE" not in request
    assert run(home, "log", session) == 0
    assert "session closed" in capsys.readouterr().out
    assert run(home, "show", session) == 0
    assert re.search(r"^session closed  .*\n(.*\n)*session reopened  ", capsys.readouterr().out, re.MULTILINE)


def test_a_session_in_the_middle_of_a_turn_is_not_closed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A question must be answered first: what it is about may have begun."""
    drop(home, "[RUN_COMMAND]\nrm -r build\n[/RUN_COMMAND]\n")
    assert run(home, "resume", "--once") == 3
    capsys.readouterr()
    assert run(home, "close", session_of(home)) == 2
    assert "first answer it with approve or deny" in capsys.readouterr().err


@pytest.mark.with_git
def test_delete_leaves_nothing_of_a_session_and_all_of_the_rest(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Journal, checkpoints, vault, requests and answers go; a link is removed, not followed."""
    first = session_of(home)
    own = home / "sessions" / first
    aside = tmp_path / "aside"
    aside.mkdir()
    (aside / "kept").touch()
    (own / "tmp").mkdir(exist_ok=True)
    (own / "tmp" / "link").symlink_to(aside)
    shut = own / "tmp" / "shut"
    (shut / "inner").mkdir(parents=True)
    shut.chmod(0)
    made = sorted(path.name for path in (home / "workspace").iterdir())
    assert run(home, "new", "--no-wait", "Another") == 0
    other = next(s.stem for s in (home / "sessions").glob("*.json") if s.stem != first)
    capsys.readouterr()
    assert run(home, "delete", first) == 2  # nobody can be asked
    assert "add --yes" in capsys.readouterr().err
    assert run(home, "delete", first, "--yes") == 0
    left = [path for path in home.rglob("*") if first in str(path)]
    assert left == []
    assert (aside / "kept").exists()
    assert sorted(path.name for path in (home / "workspace").iterdir()) == made
    assert run(home, "show", other) == 0
    assert run(home, "delete", first, "--yes") == 2


def test_delete_asks_on_a_terminal(home: Path) -> None:
    """Its number, yes or no decides, typed after the question; "keep it" deletes nothing."""
    session = session_of(home)
    words = ["--home", str(home), "delete", session]
    shown = on_terminal(words, 100, answers=[("Its number:", "n\r")])
    assert "nothing was deleted" in shown.text
    assert (home / "sessions" / session / "journal.jsonl").exists()
    shown = on_terminal(words, 100, answers=[("Its number:", "yes\r")])
    assert f"deleted session {session}; the workspace is as it was" in shown.text
    assert not (home / "sessions" / session).exists()


def test_a_deletion_that_was_interrupted_is_ended_by_another(home: Path) -> None:
    """The session's folder goes last: while it is there, with or without a journal, it can be named."""
    session = session_of(home)
    own = home / "sessions" / session
    for path in (home / "outbox").glob("*.txt"):
        path.unlink()
    own.with_suffix(".json").unlink()
    (own / "journal.jsonl").unlink()
    assert run(home, "delete", session, "--yes") == 0
    assert not own.exists()


def test_a_session_on_which_another_process_works_is_deleted_after_that(home: Path) -> None:
    """Design, command line: a second one waits, and says for whom."""
    own = home / "sessions" / session_of(home)
    with started(home, "delete", own.name, "--yes") as process:
        with HomeLock(home / "sessions" / ".lock").held():
            assert process.stdout is not None
            line = process.stdout.readline()
            assert f"another codingagent (pid {os.getpid()}) is using {home}; waiting" in line
            assert own.is_dir()
        assert process.wait(HANG_S) == 0
    assert not own.exists()


def test_its_question_keeps_nobody_waiting(home: Path) -> None:
    session = session_of(home)
    with terminal(home, "delete", session) as asked:
        asked.says("Its number:")
        with locked(home):
            asked.types("1\r")
            asked.says("is using")
            assert (home / "sessions" / session).is_dir()
        asked.says(f"deleted session {session}")


@pytest.mark.parametrize("words", [("sandbox", "--forget"), ("delete",)], ids=lambda words: words[0])
def test_what_commands_wrote_to_tools_data_is_named_and_forgotten(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """Design, sandbox: the layer is named, removed by `delete` and by a command of its own."""
    needs_bwrap()
    (home / "workspace" / "package.json").touch()
    drop(home, "[RUN_COMMAND]\necho kept >~/.npm/_cacache/x; cat ~/.npm/_cacache/x\n[/RUN_COMMAND]\n")
    assert run(home, "resume", "--once", "--sandbox", "require") == 0
    capsys.readouterr()
    assert run(home, "sandbox") == 0
    said = capsys.readouterr().out
    assert re.search(r"^node  .*/\.npm/_cacache  layer$", said, re.MULTILINE), said
    [layer] = map(Path, re.findall("^the layer: (.*) \\(", said, re.MULTILINE))
    assert [each.read_text() for each in layer.rglob("x")] == ["kept\n"]
    assert run(home, "sandbox", "--json") == 0
    assert '"tool": "node"' in capsys.readouterr().out
    run(home, "doctor")
    assert f"layer: {layer} (0 MB of 5,000)" in capsys.readouterr().out
    more = (session_of(home), "--yes") if words == ("delete",) else ()
    assert run(home, *words, *more) == 0
    assert not layer.exists()
