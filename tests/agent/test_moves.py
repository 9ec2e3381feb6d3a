"""MOVE_FILE: both ends are checked, nothing is overwritten unasked, and all of it can be undone."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codingagent.agent import context
from codingagent.model.events import FileMoved
from codingagent.model.journal_entries import AnswerTaken, ContentChange, OperationStarted
from codingagent.model.observations import digest_of
from codingagent.model.operations import Kind
from codingagent.workspace.workspace import READ_LIMIT_BYTES
from tests.builders import LATER
from tests.helpers import LiveSession, live_session, plain_session, small_disk
from tests.killing import command_line_here, settings_for, tree
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("plain")


def move(path: str, to: str, more: str = "") -> str:
    return f'[MOVE_FILE path="{path}" to="{to}"{more}]\n'


def lay(workspace: Path) -> None:
    for path, text in (("a.txt", "a\n"), ("b.txt", "b\n"), ("sub/c.txt", "c\n"), ("big/d", "d\n")):
        (workspace / path).parent.mkdir(exist_ok=True)
        (workspace / path).write_text(text)
    (workspace / "a.txt").chmod(0o751)
    (workspace / "link").symlink_to("b.txt")
    (workspace / "out").symlink_to("../..")
    (workspace / "inside").symlink_to("sub")
    (workspace / ".git").mkdir()
    (workspace / ".git" / "config").write_text("")


@pytest.fixture
def moving(tmp_path: Path) -> "contextlib.AbstractContextManager[LiveSession]":
    (tmp_path / "home" / "workspace").mkdir(parents=True)
    lay(tmp_path / "home" / "workspace")
    return live_session(tmp_path / "home", settings=settings_for("none"))


@pytest.mark.with_git
@pytest.mark.parametrize(
    ("reply", "old", "new"),
    [
        (move("a.txt", "z.txt"), "a.txt", "z.txt"),
        (move("a.txt", "new/deep/z.txt"), "a.txt", "new/deep/z.txt"),
        (move("a.txt", "A.txt"), "a.txt", "A.txt"),
        (move("a.txt", "inside/z.txt"), "a.txt", "sub/z.txt"),
        (move("inside/c.txt", "z.txt"), "sub/c.txt", "z.txt"),
        (move("a.txt", "b.txt", ' overwrite="true"'), "a.txt", "b.txt"),
    ],
)
@pytest.mark.one_in(3)
def test_a_file_is_moved_shown_as_changed_undone_and_redone(
    moving: "contextlib.AbstractContextManager[LiveSession]", reply: str, old: str, new: str
) -> None:
    """Design, operations: bytes and mode go along; undo and redo bring all back exactly."""
    with moving as live:
        workspace, home = live.workspace, live.home.root
        before = tree(workspace)
        said = live.answer(reply)
        quoted = re.findall(r'"(.*?)"', reply)
        assert said == f"[OK] MOVE_FILE: Moved '{quoted[0]}' to '{quoted[1]}'"
        after = dict(before)
        after[new] = after.pop(old)
        assert tree(workspace) == after
        session_id = live.session_id
        # What the chat is told in short: the old path is gone, the new one is there.
        short = live.home.mailbox.short_path(session_id, 2).read_text()
        assert f"deleted: {old}" in short
        assert f"{'modified' if new in before else 'added'}: {new}" in short
    status, shown, fault = command_line_here(home, "diff", session_id)
    assert (status, fault) == (0, "")
    assert {old, new} <= set(re.findall(r"^diff --git a/(\S+) b/", shown, re.MULTILINE))
    assert command_line_here(home, "undo", session_id)[0] == 0
    assert tree(workspace) == before
    assert command_line_here(home, "undo", session_id, "--redo")[0] == 0
    assert tree(workspace) == after


@pytest.fixture(name="laid")
def _laid(tmp_path: Path) -> Iterator[LiveSession]:
    (workspace := tmp_path / "home" / "workspace").mkdir(parents=True)
    lay(workspace)
    with plain_session(tmp_path / "home", settings=settings_for("none")) as live:
        yield live


@pytest.mark.with_git
@each_row(
    ("reply", "reason"),
    [
        (move("a.txt", "b.txt"), "'b.txt' already exists"),
        (move("a.txt", "link"), "'link' already exists"),
        (move("a.txt", "link", ' overwrite="true"'), "not a regular file"),
        (move("a.txt", "sub", ' overwrite="true"'), "'sub' is a folder"),
        (move("a.txt", "a.txt"), "is where the file is already"),
        (move("a.txt", "./a.txt"), "is where the file is already"),
        (move("sub/c.txt", "inside/c.txt"), "is where the file is already"),
        (move("sub/c.txt", "inside/c.txt", ' overwrite="true"'), "is where the file is already"),
        (move("link", "z.txt"), "not a regular file"),
        (move("sub", "z"), "'sub' is a folder"),
        (move("none.txt", "z.txt"), "'none.txt' not found"),
        (move("none/x", "z.txt"), "'none/x' not found"),
        (move("a.txt", "b.txt/z"), "is a file, not a folder"),
        (move("a.txt", "../z.txt"), "outside workspace"),
        (move("../a.txt", "z.txt"), "outside workspace"),
        (move("a.txt", "out/z.txt"), "outside workspace"),
        (move("out/x", "z.txt"), "outside workspace"),
        (move("a.txt", "/tmp/z.txt"), "outside workspace"),
        (move("a.txt", ".git/hooks/post-commit"), "is in .git"),
        (move(".git/config", "z.txt"), "is in .git"),
        (move("a.txt", "NUL"), "is not a file name on Windows"),
        (move("a.txt", "z.txt", ' overwrite="yes"'), "Invalid overwrite"),
        ('[MOVE_FILE path="a.txt"]\n', "Missing attribute 'to'"),
        ('[MOVE_FILE to="a.txt"]\n', "Missing attribute 'path'"),
    ],
)
def test_what_can_not_be_moved_is_refused_and_left_alone(laid: LiveSession, reply: str, reason: str) -> None:
    """Design, workspace: both ends are walked alike; no link is followed at an end, no folder left behind."""
    before = tree(laid.workspace)
    folders = sorted(p for p in laid.workspace.rglob("*") if p.is_dir())
    said = laid.answer(reply)
    assert said.startswith("[FAILED] MOVE_FILE"), said
    assert reason in said
    assert tree(laid.workspace) == before
    assert sorted(p for p in laid.workspace.rglob("*") if p.is_dir()) == folders


def test_the_same_file_by_a_second_name_is_not_lost(
    moving: "contextlib.AbstractContextManager[LiveSession]",
) -> None:
    """rename(2) of one hard link over the other does nothing; it must not be told as done."""
    with moving as live:
        os.link(live.workspace / "a.txt", live.workspace / "same.txt")
        said = live.answer(move("a.txt", "same.txt", ' overwrite="true"'))
        assert "the same file by another name" in said
        assert (live.workspace / "a.txt").exists()


@pytest.mark.parametrize(
    ("reply", "protected"),
    [
        (move("a.txt", ".vscode/tasks.json"), ".vscode/tasks.json"),
        (move(".envrc", "z.txt"), ".envrc"),
        (move("a.txt", ".envrc", ' overwrite="true"'), ".envrc"),
    ],
)
def test_either_end_may_be_protected(tmp_path: Path, reply: str, protected: str) -> None:
    """Safety: what other programs run is not moved, nor moved to, without a yes."""
    home = tmp_path / "home"
    workspace = home / "workspace"
    workspace.mkdir(parents=True)
    lay(workspace)
    (workspace / ".envrc").write_text("x\n")
    before = tree(workspace)
    with live_session(home, settings=settings_for("none")) as live:
        live.drop(reply)
        session_id = live.session_id
    status, shown, _ = command_line_here(home, "resume", "--once")
    assert (status, tree(workspace)) == (3, before)
    assert f"'{protected}' is protected" in shown
    assert command_line_here(home, "approve", session_id)[0] == 0
    assert command_line_here(home, "resume", "--once")[0] == 0
    moved = re.findall(r'"(.*?)"', reply)
    assert not (workspace / moved[0]).exists()
    assert (workspace / moved[1]).exists()


def done(workspace: Path) -> None:
    (workspace / "a.txt").rename(workspace / "z.txt")


def half(workspace: Path) -> None:
    os.link(workspace / "a.txt", workspace / "z.txt")


def other(workspace: Path) -> None:
    (workspace / "z.txt").write_text("the person's\n")


@pytest.mark.parametrize(
    ("left", "said", "text"),
    [
        (lambda _: None, "[OK] MOVE_FILE: Moved 'a.txt' to 'z.txt'", "a\n"),
        (done, "[OK] MOVE_FILE: Moved 'a.txt' to 'z.txt'", "a\n"),
        (half, "[OK] MOVE_FILE: Moved 'a.txt' to 'z.txt'", "a\n"),
        (other, "[FAILED] MOVE_FILE: 'a.txt' interrupted", "the person's\n"),
    ],
)
def test_a_move_is_settled_after_a_kill_at_each_instant(
    tmp_path: Path, left: Callable[[Path], None], said: str, text: str
) -> None:
    """Design, nothing is lost: before it, after it, between its two steps, and where someone else was."""
    home, reply = tmp_path / "home", move("a.txt", "z.txt")
    (home / "workspace").mkdir(parents=True)
    lay(home / "workspace")
    with live_session(home, settings=settings_for("none")) as live:
        mailbox, sessions = live.home.mailbox, live.home.sessions
        live.drop(reply)
        workspace = live.workspace
    taken = mailbox.take("reply.txt", live.session_id, 1)
    event = FileMoved("a.txt", "z.txt", 2, replaced=False)
    digest = digest_of(b"a\n")
    changes = (ContentChange("a.txt", digest, None), ContentChange("z.txt", None, digest))
    with contextlib.closing(sessions.open(live.session_id)) as journal:
        journal.append(AnswerTaken(1, taken, digest_of(reply.encode()), LATER))
        journal.append(OperationStarted(0, Kind.MOVE_FILE, "a.txt", LATER, changes, event))
    left(workspace)
    with live_session(home, settings=settings_for("none"), session_id=live.session_id) as again:
        assert again.results().startswith(said)
        assert (workspace / "z.txt").read_text() == text
        assert (workspace / "a.txt").exists() == (left is other)


@pytest.mark.deep
@pytest.mark.with_git
@pytest.mark.parametrize("size", [6_000_000, pytest.param(READ_LIMIT_BYTES + 4096, marks=pytest.mark.deep)])
def test_a_large_and_an_ignored_file_are_moved_and_undone(
    moving: "contextlib.AbstractContextManager[LiveSession]", size: int
) -> None:
    """Design, undo: what operations changed is covered, also if git ignores it or it is large."""
    with moving as live:
        workspace, home = live.workspace, live.home.root
        (workspace / ".gitignore").write_text("*.log\nbuild/\n")
        (workspace / "x.log").write_bytes(b"log\n")
        with (workspace / "large.bin").open("wb") as file:
            file.truncate(size)
        before = tree(workspace)
        said = live.answer(move("x.log", "build/y.log") + move("large.bin", "larger.bin"))
        assert said.count("[OK] MOVE_FILE") == 2
        after = tree(workspace)
        assert set(before) ^ set(after) == {"x.log", "build/y.log", "large.bin", "larger.bin"}
        session_id = live.session_id
    assert command_line_here(home, "undo", session_id)[0] == 0
    assert tree(workspace) == before
    assert command_line_here(home, "undo", session_id, "--redo")[0] == 0
    assert tree(workspace) == after


RENAME = """```diff
diff --git a/b.txt b/n.txt
similarity index 60%
rename from b.txt
rename to n.txt
--- a/b.txt
+++ b/n.txt
@@ -1 +1 @@
-{}
+n
```
"""
B_EDIT = '[EDIT_FILE path="b.txt"]\n<<<<<<< SEARCH\nb\n=======\nb2\n>>>>>>> REPLACE\n[/EDIT_FILE]\n'


@each_row(
    ("name", "answer", "made"),
    [
        ("one", RENAME.format("b"), ("n.txt", "n\n")),
        ("two", B_EDIT + RENAME.format("b2"), ("n.txt", "n\n")),
        ("neither", RENAME.format("x"), ("b.txt", "b\n")),
        ("first", B_EDIT + RENAME.format("x"), ("b.txt", "b2\n")),
    ],
)
def test_a_file_that_moves_with_changes_is_changed_and_moved_or_neither(
    name: str, answer: str, made: tuple[str, str], tmp_path: Path
) -> None:
    """Also where an edit before them has changed the file; and so a rehearsal says it."""
    (home := tmp_path / name / "workspace").mkdir(parents=True)
    lay(home)
    person = context.Person(lambda _: None, accepts_formats=True)
    with plain_session(home.parent, person=person) as live:
        rehearsed = [*live.conversation.rehearsed(answer.encode())]
        said = live.answer(answer)
        path, text = made
        assert [p.name for p in home.glob("[bn].txt")] == [path]
        assert (home / path).read_text() == text
        assert ("was not moved to 'n.txt', because its changes" in said) is (path == "b.txt")
        assert name == "first" or bool(rehearsed[-1].fault) is (path == "b.txt")


def test_what_the_chat_knew_of_a_file_goes_along(
    moving: "contextlib.AbstractContextManager[LiveSession]",
) -> None:
    """Design, the person's changes: a moved file that the chat wrote is no change of the person's."""
    with moving as live:
        live.answer('[CREATE_FILE path="n.txt"]\none\n[/CREATE_FILE]\n', "1.txt")
        live.answer(move("n.txt", "m.txt"), "2.txt")
        assert live.conversation.session.known["m.txt"] == digest_of(b"one\n")
        assert live.conversation.session.known["n.txt"] == ""
        (live.workspace / "m.txt").write_text("theirs\n")
        said = live.answer(move("a.txt", "m.txt", ' overwrite="true"'), "3.txt")
        assert "'m.txt' was changed since the chat" in said
        assert (live.workspace / "m.txt").read_text() == "theirs\n"


def test_a_file_that_the_chat_never_saw_is_not_known_at_its_new_path(
    moving: "contextlib.AbstractContextManager[LiveSession]",
) -> None:
    """Design, the person's changes: what took the place of a known file is not taken for it."""
    with moving as live:
        live.answer('[CREATE_FILE path="n.txt"]\none\n[/CREATE_FILE]\n', "1.txt")
        (live.workspace / "late.txt").write_text("late\n")
        live.answer(move("late.txt", "n.txt", ' overwrite="true"'), "2.txt")
        assert (live.workspace / "n.txt").read_text() == "late\n"
        assert "n.txt" not in live.conversation.session.known


# --- to another disk -------------------------------------------------------------------------------


def test_a_move_to_another_disk_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """It could not be done in one step."""
    home = tmp_path / "home"
    with small_disk(home / "workspace" / "far"):
        lay(home / "workspace")
        before = tree(home / "workspace")
        with live_session(home, settings=settings_for("none")) as live:
            said = live.answer(move("a.txt", "far/new/z.txt"))
        assert said.startswith("[FAILED] MOVE_FILE: 'far/new/z.txt' is on another disk than 'a.txt'; use mv")
        assert tree(home / "workspace") == before
