"""A turn that makes thousands of files: what is shown of them is bounded, with a word."""

import shutil
from pathlib import Path

import pytest

from tests.helpers import command_line

FILES = 2_010


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("git") is None, reason="checkpoints need git")
def test_a_diff_of_thousands_of_files_is_cut_with_a_word(tmp_path: Path) -> None:
    """Design, speed: a folder of new files is no reason to wait."""
    home = tmp_path / "home"
    assert command_line(home, "new", "--no-wait", "--sandbox", "off", "x").returncode == 0
    make = f"mkdir new; cd new; for i in $(seq {FILES}); do echo $i >$i.txt; done"
    reply = f"[RUN_COMMAND]\n{make}\n[/RUN_COMMAND]\n"
    (home / "inbox" / "reply.txt").write_text(reply, "utf-8")
    assert command_line(home, "resume", "--once").returncode == 0
    shown = command_line(home, "diff").stdout
    assert shown.count("diff --git") == 2_000
    assert "(10 more files differ; too much to show at once)" in shown
    assert command_line(home, "undo").returncode == 0
    assert not (home / "workspace" / "new").exists()
