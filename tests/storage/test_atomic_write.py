"""Files of our own: whole or not at all."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codingagent.errors import WorkError
from codingagent.storage import atomic_write
from tests.helpers import line_from, python


def test_a_file_is_put_in_place_whole(tmp_path: Path) -> None:
    """Specification 003, atomic writes: write {path}.tmp, then rename it to {path}."""
    path = tmp_path / "a.txt"
    for text in ("old é\n", "new\r\n\udcff", ""):
        atomic_write.write_whole(path, text)
        assert path.read_bytes() == text.encode("utf-8", "replace")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_leftover_of_a_kill_is_written_over(tmp_path: Path) -> None:
    """Specification 003, atomic writes: a crash in the middle costs nothing."""
    (tmp_path / "a.txt.tmp").write_text("half of something longer", "utf-8")
    atomic_write.write_whole(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text("utf-8") == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


READER = """
import sys
seen = set()
while "end" not in seen:
    with open(sys.argv[1]) as file:
        text = file.read()
    if not seen:
        print("ready", flush=True)
    seen.add(text if len(set(text)) > 1 else len(text))
print(sorted(map(str, seen)), flush=True)
"""


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    """Specification 003, atomic writes: this prevents partial reads."""
    path = tmp_path / "a.txt"
    atomic_write.write_whole(path, "a" * 100_000)
    with python(READER, str(path)) as process:
        assert line_from(process) == "ready"
        for letter in "bcdefg" * 10:
            atomic_write.write_whole(path, letter * 100_000)
        atomic_write.write_whole(path, "end")
        assert line_from(process) == "['100000', 'end']"


def test_json_is_written_for_others_to_read(tmp_path: Path) -> None:
    """Specification 003, session state: persisted as JSON."""
    atomic_write.write_json(tmp_path / "a.json", {"task": "é\n", "n": [1]})
    assert json.loads((tmp_path / "a.json").read_bytes()) == {"task": "é\n", "n": [1]}


def test_what_cannot_be_written_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    """Design, nothing is lost: a fault says what and where, and leaves the old file."""
    (tmp_path / "a").mkdir()
    with pytest.raises(WorkError, match="/a can't be written: Is a directory"):
        atomic_write.write_whole(tmp_path / "a", "text")
    with pytest.raises(WorkError, match="No such file or directory"):
        atomic_write.write_whole(tmp_path / "no" / "a", "text")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """Design, nothing is lost: a full disk says so, and leaves the old file."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can't be mounted here: that needs root")
    try:
        atomic_write.write_whole(folder / "a", "old")
        with pytest.raises(WorkError, match="No space left"):
            atomic_write.write_whole(folder / "a", "x" * 10**6)
        assert (folder / "a").read_text("utf-8") == "old"
        assert [entry.name for entry in folder.iterdir()] == ["a"]
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_all_disks_are_synced(tmp_path: Path) -> None:
    """Design, nothing is lost: after power loss, everything up to the last written outbox stands."""
    (tmp_path / "b").mkdir()
    atomic_write.sync((tmp_path, tmp_path / "b"))


HOSTILE = """
import os
os.mkdir("top"); os.chdir("top")
for _ in range(3000):
    os.mkdir("d"); open("file", "w").close(); os.symlink("/etc", "link"); os.chdir("d")
os.mkdir("none"); open("none/file", "w").close(); os.mkdir("none/inner"); os.chmod("none", 0)
"""


def test_a_folder_is_removed_however_deep_it_is(tmp_path: Path) -> None:
    """Design, commands: what a command has left in its /tmp is gone after, whatever it is."""
    folder, beside = tmp_path / "folder", tmp_path / "beside"
    folder.mkdir()
    beside.mkdir()
    (beside / "kept").write_text("kept", "utf-8")
    (folder / "out").symlink_to(beside)
    subprocess.run([sys.executable, "-S", "-c", HOSTILE], cwd=folder, check=True)
    atomic_write.remove_folder(folder)
    assert [path.name for path in tmp_path.rglob("*")] == ["beside", "kept"]
    atomic_write.remove_folder(folder)  # there is none
    (tmp_path / "link").symlink_to(beside)
    atomic_write.remove_folder(tmp_path / "link")
    assert (beside / "kept").read_text("utf-8") == "kept"
