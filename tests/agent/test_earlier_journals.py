"""Sessions that earlier versions wrote: resumed, shown, undone and redone today."""

import tarfile
from pathlib import Path

from codingagent.model.journal_entries import ContentChange, OperationStarted
from codingagent.storage.homes import Home
from tests.helpers import live_session
from tests.killing import command_line_here, settings_for

ONE_PATH = Path(__file__).parent / "earlier" / "one_path_a_start.tar.gz"
SESSION = "14ac0686"
WRITTEN_AT = b"/srv/fixture/home"


JSON_APPROVAL = ONE_PATH.with_name("json_approval.tar.gz")
JSON_SESSION = "9d539332"


def unpacked(folder: Path, archived: Path = ONE_PATH, session: str = SESSION) -> Path:
    """Unpack a home; that of `ONE_PATH` has records of starts with one path each, and no list of changes."""
    with tarfile.open(archived) as archive:
        archive.extractall(folder, filter="data")
    home = folder / "home"
    for name in (f"{session}.json", f"{session}/journal.jsonl"):
        file = home / "sessions" / name
        file.write_bytes(file.read_bytes().replace(WRITTEN_AT, str(home).encode()))
    return home


def test_a_start_with_one_path_is_read_as_one_with_a_list(tmp_path: Path) -> None:
    """Design, nothing is lost: what an earlier version began is known by its path without links."""
    home = Home.at(unpacked(tmp_path), create=False)
    starts = [r for r in home.records(SESSION) if isinstance(r, OperationStarted)]
    assert [start.kind for start in starts] == [
        "EDIT_FILE",
        "DELETE_FILE",
        "CREATE_FILE",
        "RUN_COMMAND",
        "CREATE_FILE",
    ]
    assert [change.place for start in starts for change in start.changes] == [
        "src/a.py",
        "old.txt",
        "docs/new.txt",
        "docs/new.txt",
    ]
    assert starts[3].changes == ()
    (first,) = starts[0].changes
    assert first == ContentChange("link/a.py", first.before, first.after, "src/a.py")
    assert None not in (first.before, first.after)


def test_a_session_with_such_starts_is_shown_undone_redone_and_gone_on_with(tmp_path: Path) -> None:
    """Design, undo: what operations changed is known from the record, no matter who wrote it."""
    home = unpacked(tmp_path)
    workspace = home / "workspace"
    status, shown, _ = command_line_here(home, "show", SESSION)
    assert status == 0
    assert "docs/new.txt" in shown
    status, _, fault = command_line_here(home, "undo", SESSION, "--turns", "2")
    assert status == 0, fault
    assert (workspace / "src" / "a.py").read_text() == "one = 1\ntwo = 2\n"
    assert (workspace / "old.txt").read_text() == "old\n"
    assert (workspace / "old.txt").stat().st_mode & 0o777 == 0o755
    assert not (workspace / "docs").exists()
    assert not (workspace / "made.txt").exists()
    status, _, fault = command_line_here(home, "undo", SESSION, "--redo")
    assert status == 0, fault
    assert (workspace / "docs" / "new.txt").read_text() == "newer\n"
    assert not (workspace / "old.txt").exists()
    with live_session(home, settings=settings_for("none"), session_id=SESSION) as live:
        edit = '[EDIT_FILE path="src/a.py" start_line="1" end_line="1"]\none = 2\n[/EDIT_FILE]\n'
        assert live.answer(edit, "three.txt").startswith("[OK] EDIT_FILE")


def test_an_approval_that_a_json_session_waits_for_still_counts(tmp_path: Path) -> None:
    """Design, policies: a yes holds for exactly what was asked, also where it was asked as `shell`."""
    home = unpacked(tmp_path, JSON_APPROVAL, JSON_SESSION)
    keep = home / "workspace" / "keep"
    assert keep.exists()
    status, said, fault = command_line_here(home, "approve", "--sandbox", "off")
    assert status == 0, fault
    assert "continuing with answer 1, which waited for approval" in said
    assert not keep.exists()
