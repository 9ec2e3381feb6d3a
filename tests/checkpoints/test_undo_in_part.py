"""An undo is done when it is done: what can't be restored now is said, and is restored by the next one."""

import contextlib
import shutil
from pathlib import Path

import pytest

from codingagent.storage.homes import Home
from tests.helpers import command_line, small_disk

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="undo needs git")

CHANGE = (
    '[CREATE_FILE path="made.txt"]\nmade\n[/CREATE_FILE]\n[DELETE_FILE path="big.txt"]\n'
    '[EDIT_FILE path="edited.txt" start_line="1" end_line="1"]\nnew\n[/EDIT_FILE]\n'
)
BIG = "x" * 399 + "\n"
OLD = {"big.txt": BIG * 1000, "edited.txt": "old\n"}
NEW = {"made.txt": "made\n", "edited.txt": "new\n"}


def begin(home: Path, reply: str = CHANGE) -> None:
    for name, text in OLD.items():
        (home / "workspace" / name).write_text(text, "utf-8")
    assert command_line(home, "new", "--no-wait", "x").returncode == 0
    drop(home, reply)


def drop(home: Path, reply: str) -> None:
    (home / "inbox" / "reply.txt").write_text(reply, "utf-8")
    done = command_line(home, "resume", "--once", "--sandbox", "off")
    assert done.returncode == 0, done.stderr


def files(home: Path) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in (home / "workspace").iterdir()}


def undo(home: Path, *words: str) -> tuple[int, str]:
    done = command_line(home, "undo", *words)
    return done.returncode, done.stdout + done.stderr


def turns_undone(home: Path) -> str:
    (session_id,) = Home.at(home, create=False).sessions.ids()
    return command_line(home, "show", session_id).stdout


def test_where_nothing_can_be_restored_nothing_is_undone_and_it_can_be_repeated(tmp_path: Path) -> None:
    """Design, undo: an undo that could restore nothing is none; nor is such a redo."""
    home = tmp_path / "home"
    with small_disk(home / "workspace") as mount_again:
        begin(home)
        for words, before, after in (((), NEW, OLD), (("--redo",), OLD, NEW)):
            mount_again("ro")
            for _ in range(2):
                status, said = undo(home, *words)
                assert (status, files(home)) == (1, before), said
                assert "nothing could be restored" in said
                assert "the disk is read-only" in said
                assert f" {' '.join(('undo', *words))}` does the rest" in said
            request = min((home / "outbox").glob("*_seq0002.txt")).read_text("utf-8")
            assert ("the user undid" in request) == bool(words)
            mount_again("rw")
            status, said = undo(home, *words)
            assert (status, files(home)) == (0, after), said
            assert undo(home, *words)[0] == 2


@pytest.mark.deep
def test_what_is_left_is_restored_by_the_next_undo(tmp_path: Path) -> None:
    """Design, undo: one that restored a part says what is left, can be repeated, and finishes."""
    home = tmp_path / "home"
    with small_disk(home / "workspace"):
        begin(home)
        filler = home / "workspace" / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        for _ in range(2):
            status, said = undo(home)
            assert status == 1, said
            assert "could be restored: big.txt (the disk is full)" in said
            assert files(home).keys() == {"edited.txt", "filler"}
        filler.unlink()
        assert "turn 1" in turns_undone(home)
        status, said = undo(home)
        assert (status, files(home)) == (0, OLD), said
        assert undo(home)[0] == 2
        while undo(home, "--redo")[0] == 0:
            pass
        assert files(home) == NEW
        assert undo(home)[0] == 0
        assert files(home) == OLD


def test_several_turns_are_left_and_the_command_that_is_named_restores_them(tmp_path: Path) -> None:
    """Design, undo: the command named restores exactly what is left."""
    home = tmp_path / "home"
    with small_disk(home / "workspace") as mount_again:
        begin(home)
        drop(home, '[CREATE_FILE path="second.txt"]\n2\n[/CREATE_FILE]\n')
        mount_again("ro")
        status, said = undo(home, "--turns", "2")
        assert (status, " undo --turns 2` does the rest" in said) == (1, True), said
        mount_again("rw")
        assert undo(home, "--turns", "2")[0] == 0
        assert files(home) == OLD


def test_one_file_of_a_turn_is_undone_and_the_rest_of_it_later(tmp_path: Path) -> None:
    """Design, undo: a file that is named is restored alone; what is left of its turn can be undone later."""
    home = tmp_path / "home"
    (home / "workspace" / "src").mkdir(parents=True)
    begin(home)
    drop(home, '[CREATE_FILE path="src/a.txt"]\na\n[/CREATE_FILE]\n')
    (home / "workspace" / "src" / "own.txt").write_text("the person's\n", "utf-8")
    status, said = undo(home, "edited.txt")
    assert (status, "Undid turn 1 in part: restored edited.txt" in said) == (0, True), said
    assert read(home) == {"edited.txt": "old\n", "made.txt": "made\n", "src/a.txt": "a\n"}
    request = min((home / "outbox").glob("*_seq0003.txt")).read_text("utf-8")
    assert "the user undid turn 1 in part: restored edited.txt" in request
    status, said = undo(home, "edited.txt")
    assert (status, "no turn changed edited.txt" in said) == (2, True), said
    assert undo(home, "--redo", "edited.txt")[0] == 2
    assert undo(home, str(home / "workspace" / "made.txt"))[0] == 0
    assert read(home) == {"edited.txt": "old\n", "src/a.txt": "a\n"}
    assert undo(home, "--redo")[0] == 0
    assert undo(home, "src")[0] == 0
    assert read(home) == {"edited.txt": "old\n", "made.txt": "made\n"}
    assert undo(home, "--turns", "1")[0] == 0
    assert read(home) == {"edited.txt": "old\n", "big.txt": BIG * 1000}
    assert undo(home)[0] == 2
    for _ in range(3):
        assert undo(home, "--redo")[0] == 0
    assert read(home) == {"edited.txt": "new\n", "made.txt": "made\n", "src/a.txt": "a\n"}
    assert undo(home, "--redo")[0] == 2


def read(home: Path) -> dict[str, str]:
    """Return the files of the workspace but the person's own."""
    root = home / "workspace"
    found = {p.relative_to(root).as_posix(): p.read_text("utf-8") for p in root.rglob("*.txt")}
    return {name: text for name, text in found.items() if name != "src/own.txt"}


def test_what_an_undo_of_a_file_kept_can_be_undone_after_the_rest(tmp_path: Path) -> None:
    """Design, undo: what someone had changed is kept, and --force undoes it, whatever was undone since."""
    home = tmp_path / "home"
    (home / "workspace").mkdir(parents=True)
    begin(home)
    (home / "workspace" / "edited.txt").write_text("mine\n", "utf-8")
    assert "--force edited.txt` undoes that too" in undo(home, "edited.txt")[1]
    assert undo(home)[0] == 0
    assert read(home) == {"edited.txt": "mine\n", "big.txt": BIG * 1000}
    assert undo(home, "edited.txt", "--force")[0] == 0
    assert read(home) == OLD


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ["lib/b.txt", "src/a.txt", "lib", "src"])
@pytest.mark.parametrize(
    "reply",
    [
        '[MOVE_FILE path="src/a.txt" to="lib/b.txt"]\n',
        (
            '[MOVE_FILE path="src/a.txt" to="lib/b.txt"]\n'
            '[EDIT_FILE path="lib/b.txt" start_line="1" end_line="1"]\nb\n[/EDIT_FILE]\n'
        ),
        "[RUN_COMMAND]\nmkdir lib && mv src/a.txt lib/b.txt\n[/RUN_COMMAND]\n",
    ],
    ids=["move", "move and edit", "command"],
)
def test_both_ends_of_a_move_are_undone_together(tmp_path: Path, reply: str, name: str) -> None:
    """Design, undo: nothing is away, and nothing is twice, after one end was named."""
    home = tmp_path / "home"
    (home / "workspace" / "src").mkdir(parents=True)
    for path in ("src/a.txt", "src/c.txt"):
        (home / "workspace" / path).write_text("a\n", "utf-8")
    before = read(home)
    begin(home, f'{reply}[CREATE_FILE path="made.txt"]\nmade\n[/CREATE_FILE]\n')
    assert undo(home, name)[0] == 0
    assert read(home) == {**OLD, **before, "made.txt": "made\n"}
