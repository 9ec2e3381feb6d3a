"""What undo does not cover is said when it happens, and file operations destroy none of it unasked."""

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from codingagent.model.notices import Remark
from codingagent.model.settings import Settings
from tests.helpers import LiveSession, live_session
from tests.killing import command_line_here, has_lines, kill_when, lines_of, tree

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="the commands are a POSIX shell's"),
    pytest.mark.skipif(shutil.which("git") is None, reason="undo needs git"),
]

SETTINGS = Settings(sandbox="off", secrets="off")  # else all that is large is looked through
LARGE = 5_000_001


def sit_down(home: Path, *, has_large_text: bool = False) -> LiveSession:
    """Start a session whose workspace has what no checkpoint holds, none of it changed of late."""
    with live_session(home, settings=SETTINGS) as live:
        pass
    workspace = live.workspace
    (workspace / ".gitignore").write_text("*.log\nbuild/\n", "utf-8")
    for name in ("old.log", "run.log", "gone.log", "build/o", "build/p"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(f"{name}\n", "utf-8")
    (workspace / "large.bin").write_bytes(b"\x00" * LARGE)
    if has_large_text:  # each turn looks through it
        text = f"{'x' * 99}\n" * (LARGE // 100) + "a\nthe end\n"
        (workspace / "large.txt").write_text(text, "utf-8")
    return live


def said(live: LiveSession, reply: str) -> Sequence[str]:
    """Have an answer taken; return what the screen says of undo."""
    with live_session(live.home.root, settings=SETTINGS, session_id=live.session_id) as again:
        again.answer(reply)
        return [
            notice.text
            for notice in again.notices
            if isinstance(notice, Remark) and "undo does not cover" in notice.text
        ]


def command(line: str) -> str:
    return f"[RUN_COMMAND]\n{line}\n[/RUN_COMMAND]\n"


def test_what_commands_changed_and_no_undo_covers_is_said_at_once(tmp_path: Path) -> None:
    live = sit_down(tmp_path)
    (told,) = said(live, command("echo x >>run.log; rm gone.log; echo x >new.log; echo x >build/new"))
    assert told == (
        "undo does not cover what commands changed here: build/ (ignored), new.log (ignored), run.log"
        " (ignored), gone.log (it is gone)"
    )
    assert said(live, command("echo covered >covered.txt")) == []
    (told,) = said(live, command("printf x >>large.bin"))
    assert told.endswith("here: large.bin (larger than 5 MB)")


def test_what_tools_make_again_is_not_said_and_the_rest_once(tmp_path: Path) -> None:
    live = sit_down(tmp_path)
    (live.workspace / ".gitignore").write_text("*.log\n*cache*\nhtmlcov\nbuild\n", "utf-8")
    tools = "mkdir -p __pycache__ lib/.mypy_cache htmlcov; touch __pycache__/a lib/.mypy_cache/b htmlcov/c"
    with live_session(live.home.root, settings=SETTINGS, session_id=live.session_id) as again:
        for line in (tools, "echo x >>run.log", "echo y >>run.log", "echo z >>old.log"):
            again.answer(command(line))
        told = [each.text for each in again.notices if isinstance(each, Remark)]
    here = "undo does not cover what commands changed here: "
    assert [each for each in told if here in each] == [f"{here}run.log (ignored)", f"{here}old.log (ignored)"]


@pytest.mark.deep  # with a smaller limit in test_store.py
def test_a_turn_that_makes_more_files_than_undo_can_hold_says_so(tmp_path: Path) -> None:
    live = sit_down(tmp_path)
    (told,) = said(live, command("mkdir many; cd many; seq 50001 | xargs touch"))
    assert told.endswith("here: many/ (more than 50000 new files at once)")


# --- file operations -------------------------------------------------------------------------------

OPERATIONS = """\
[CREATE_FILE path="run.log"]
replaced
[/CREATE_FILE]
[EDIT_FILE path="old.log"]
<<<<<<< SEARCH
old.log
=======
edited
>>>>>>> REPLACE
[/EDIT_FILE]
[EDIT_FILE path="large.txt"]
<<<<<<< SEARCH
the end
=======
another end
>>>>>>> REPLACE
[/EDIT_FILE]
[DELETE_FILE path="gone.log"]
[DELETE_FILE path="large.bin"]
[CREATE_FILE path="build/o"]
replaced too
[/CREATE_FILE]
[CREATE_FILE path="build/new/made"]
made
[/CREATE_FILE]
[CREATE_FILE path="made.log"]
made
[/CREATE_FILE]
[CREATE_FILE path="covered.txt"]
covered
[/CREATE_FILE]
"""


def lay_modes(live: LiveSession) -> None:
    (live.workspace / "gone.log").chmod(0o600)
    (live.workspace / "build" / "o").chmod(0o751)
    (live.workspace / "run.log").write_bytes(b"\xff\x00 no text\n")


@pytest.mark.deep  # one that is killed in between is tried in the plain run
@pytest.mark.parametrize("last", ["", command("echo x >plain.txt")])
def test_undo_covers_file_operations_without_exception(tmp_path: Path, last: str) -> None:
    """Ignored and large files that operations replace or delete: bytes and modes are as before."""
    live = sit_down(tmp_path, has_large_text=True)
    lay_modes(live)
    before = tree(live.workspace)
    assert said(live, OPERATIONS + last) == []
    after = tree(live.workspace)
    assert "large.bin" not in after
    for arguments, expected in ((("undo",), before), (("undo", "--redo"), after)) * 2:
        status, shown, fault = command_line_here(tmp_path, *arguments)
        assert status == 0, fault
        assert "left as it is" not in shown + fault
        now = tree(live.workspace)
        assert {p for p in now.keys() | expected.keys() if now.get(p) != expected.get(p)} == set()


def test_a_later_turn_is_undone_alike(tmp_path: Path) -> None:
    """What a command did to an ignored file between two turns stays; what the operation did goes."""
    live = sit_down(tmp_path)
    made = ("build/o", "made.log")
    said(live, "".join(f'[CREATE_FILE path="{name}"]\nmade\n[/CREATE_FILE]\n' for name in made))
    (live.workspace / "build" / "o").write_text("the person's\n", "utf-8")
    before = tree(live.workspace)
    assert said(live, '[DELETE_FILE path="build/o"]\n[DELETE_FILE path="made.log"]\n') == []
    assert command_line_here(tmp_path, "undo")[0] == 0
    assert tree(live.workspace) == before


@pytest.mark.long
def test_what_is_too_much_to_be_kept_is_asked_about(tmp_path: Path) -> None:
    """Above the limit the person is asked first; what a yes destroys is left as it is by undo."""
    live = sit_down(tmp_path)
    huge = live.workspace / "huge.log"
    with huge.open("wb") as file:
        file.write(b"\xff\x00")
        file.truncate(100_000_001)
    live.drop('[CREATE_FILE path="a.txt"]\na\n[/CREATE_FILE]\n[DELETE_FILE path="huge.log"]\n')
    status, _, fault = command_line_here(tmp_path, "resume", "--once", "--sandbox", "off")
    assert status == 3, fault
    asked = live.home.sessions.load(live.session_id).asked
    assert asked is not None
    assert asked.question.reasons[0].startswith("undo does not cover 'huge.log'")
    assert huge.stat().st_size == 100_000_001
    status, shown, fault = command_line_here(tmp_path, "approve", live.session_id)
    assert (status, "undo does not cover huge.log" in shown) == (0, True), fault
    assert not huge.exists()
    status, shown, fault = command_line_here(tmp_path, "undo")
    assert (status, "left as it is: huge.log" in shown) == (0, True), fault
    assert not (live.workspace / "a.txt").exists()


@pytest.mark.parametrize(
    "operation", ['[DELETE_FILE path="{}"]\n', '[CREATE_FILE path="{}"]\nx\n[/CREATE_FILE]\n']
)
@pytest.mark.parametrize("name", ["old.log", "large.bin", "plain.txt"])
@pytest.mark.one_in(2)
def test_without_a_checkpoint_nothing_is_destroyed_unasked(tmp_path: Path, operation: str, name: str) -> None:
    """A full disk lets no checkpoint be made, and a file in its folder's place neither."""
    live = sit_down(tmp_path)
    (live.workspace / "plain.txt").write_text("plain\n", "utf-8")
    store = live.home.sessions.journal_path(live.session_id).parent / "checkpoints"
    store.write_text("no folder", "utf-8")
    before = tree(live.workspace)
    live.drop(operation.format(name) + '[CREATE_FILE path="new.txt"]\nnew\n[/CREATE_FILE]\n')
    status, shown, fault = command_line_here(tmp_path, "resume", "--once", "--sandbox", "off")
    assert status == 3, fault
    assert f"undo does not cover '{name}': there is no checkpoint of it" in " ".join(shown.split())
    # A no stays one, though nothing would be asked any more.
    store.unlink()
    assert command_line_here(tmp_path, "deny", live.session_id)[0] == 0
    now = tree(live.workspace)
    assert now.pop("new.txt")[1] == b"new\n"
    assert now == before


def test_a_program_s_operations_are_covered_too(tmp_path: Path) -> None:
    from codingagent import Space

    root = tmp_path / "home" / "workspace"
    root.mkdir(parents=True)
    (root / ".gitignore").write_text("*.log\n", "utf-8")
    (root / "a.log").write_bytes(b"\x00\xff")
    (root / "a.log").chmod(0o640)
    before = tree(root)
    with Space(root, home=tmp_path / "home", sandbox="off") as space:
        run = space.run(operations=[{"type": "deleteFile", "id": "d", "path": "a.log"}])
        assert run.status == "completed"
    assert not (root / "a.log").exists()
    status, _, fault = command_line_here(tmp_path / "home", "undo", run.run_id)
    assert status == 0, fault
    assert tree(root) == before


@pytest.mark.one_in(6)
@pytest.mark.parametrize("seed", range(6))
def test_a_turn_that_was_killed_is_undone_alike(tmp_path: Path, seed: int) -> None:
    """Killed within the operations, gone on with, undone and redone: each byte and mode is exact."""
    chance = random.Random(seed)
    live = sit_down(tmp_path, has_large_text=True)
    lay_modes(live)
    before = tree(live.workspace)
    journal = live.home.sessions.journal_path(live.session_id)
    live.drop(OPERATIONS)
    come = has_lines(journal, lines_of(journal) + chance.randint(1, 18))
    linger_s = chance.choice([0, chance.uniform(0, 0.01)])
    kill_when(tmp_path, ("resume", "--once", "--sandbox", "off"), come, linger_s)
    assert command_line_here(tmp_path, "resume", "--once", "--sandbox", "off")[0] == 0
    after = tree(live.workspace)
    assert "large.bin" not in after
    assert after["run.log"][1] == b"replaced\n"
    for arguments, expected in ((("undo",), before), (("undo", "--redo"), after)):
        assert command_line_here(tmp_path, *arguments)[0] == 0
        assert tree(live.workspace) == expected
