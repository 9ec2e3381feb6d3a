"""What undo does not cover is said when it happens, and file operations destroy none of it unasked."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from codingagent.model.settings import Settings
from codingagent.model.ui_events import Remark
from tests.helpers import Desk, desk_at

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="the commands are a POSIX shell's"),
    pytest.mark.skipif(shutil.which("git") is None, reason="undo needs git"),
]

SETTINGS = Settings(sandbox="off")
LARGE = 5_000_001


def sit_down(home: Path) -> Desk:
    """Start a session whose workspace has what no checkpoint holds, none of it changed of late."""
    with desk_at(home, settings=SETTINGS) as desk:
        pass
    workspace = desk.workspace
    (workspace / ".gitignore").write_text("*.log\nbuild/\n", "utf-8")
    for name in ("old.log", "run.log", "gone.log", "build/o", "build/p"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(f"{name}\n", "utf-8")
    (workspace / "large.bin").write_bytes(b"\x00" * LARGE)
    return desk


def said(desk: Desk, reply: str) -> Sequence[str]:
    """Have an answer taken; return what the screen says of undo."""
    with desk_at(desk.home.root, settings=SETTINGS, session_id=desk.session_id) as again:
        again.answer(reply)
        return [
            notice.text
            for notice in again.notices
            if isinstance(notice, Remark) and "undo does not cover" in notice.text
        ]


def command(line: str) -> str:
    return f"[RUN_COMMAND]\n{line}\n[/RUN_COMMAND]\n"


def test_what_commands_changed_and_no_undo_covers_is_said_at_once(tmp_path: Path) -> None:
    desk = sit_down(tmp_path)
    (told,) = said(
        desk, command("echo x >>run.log; rm gone.log; echo x >new.log; echo x >build/new")
    )
    assert told == (
        "undo does not cover what commands changed here: build/ (ignored), new.log (ignored), run.log"
        " (ignored), gone.log (it is gone)"
    )
    assert said(desk, command("echo covered >covered.txt")) == []
    (told,) = said(desk, command("printf x >>large.bin"))
    assert told.endswith("here: large.bin (larger than 5 MB)")


def test_a_turn_that_makes_more_files_than_undo_can_hold_says_so(tmp_path: Path) -> None:
    desk = sit_down(tmp_path)
    (told,) = said(desk, command("mkdir many; cd many; seq 50001 | xargs touch"))
    assert told.endswith("here: many/ (more than 50000 new files at once)")
