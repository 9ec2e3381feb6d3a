"""The watch: what happens in the inbox is heard at once."""

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent.model.observations import Hint
from codingagent.storage.watch import Watch
from tests.helpers import REPOSITORY, wait_until

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="asks the system what is watched")


class Ear:
    """Gathers what a watch tells."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.heard: dict[str, Hint] = {}

    def hears(self, name: str, *hints: Hint) -> None:
        def is_heard() -> bool:
            self.heard.update(self._watch.wait(0.05))
            return self.heard.get(name) in hints

        wait_until(is_heard)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    (folder / "processed").mkdir(parents=True)
    return folder


@pytest.fixture
def ear(inbox: Path) -> Iterator[Ear]:
    with Watch(inbox) as watch:
        assert not watch.fault
        yield Ear(watch)


def inodes_watched() -> set[int]:
    """Return the inodes that this process watches, as Linux tells of its descriptors."""
    told = ""
    for path in Path("/proc/self/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            told += path.read_text("ascii")
    return {int(number, 16) for number in re.findall(r"^inotify .*?ino:([0-9a-f]+)", told, re.MULTILINE)}


def test_a_closed_file_is_heard(inbox: Path, ear: Ear) -> None:
    """Design, inbox: a file is taken when it is finished (closed)."""
    (inbox / "a.txt").write_text("reply", "utf-8")
    ear.hears("a.txt", Hint.CLOSED)


def test_an_open_file_is_not_called_closed(inbox: Path, ear: Ear) -> None:
    """Design, inbox: a file is taken when it is finished; one still being written is not."""
    with (inbox / "a.txt").open("w", encoding="utf-8") as file:
        file.write("half")
        file.flush()
        ear.hears("a.txt", Hint.APPEARED)
    ear.hears("a.txt", Hint.CLOSED)


def test_a_rename_into_place_is_heard(inbox: Path, ear: Ear) -> None:
    """Design, inbox: a file is taken when it is renamed into place."""
    (inbox / "a.part").write_text("reply", "utf-8")
    (inbox / "a.part").rename(inbox / "a.txt")
    ear.hears("a.txt", Hint.CLOSED)


def test_a_move_from_outside_is_heard(tmp_path: Path, inbox: Path, ear: Ear) -> None:
    """Design, inbox: a file that a browser or an editor moves in is a reply too."""
    (tmp_path / "a.txt").write_text("reply", "utf-8")
    (tmp_path / "a.txt").rename(inbox / "a.txt")
    ear.hears("a.txt", Hint.APPEARED, Hint.CLOSED)


def test_what_happens_below_is_not_told(inbox: Path, ear: Ear) -> None:
    """Design, inbox: `.txt` directly in `inbox/`."""
    (inbox / "processed" / "b.txt").write_text("old", "utf-8")
    (inbox / "a.txt").write_text("reply", "utf-8")
    ear.hears("a.txt", Hint.CLOSED)
    assert set(ear.heard) == {"a.txt"}


@on_linux
def test_a_reply_that_left_does_not_hold_up_the_next(inbox: Path, ear: Ear) -> None:
    """Design, inbox: with processed/ watched too, no event is held back after a file has left."""
    assert inodes_watched() >= {inbox.stat().st_ino, (inbox / "processed").stat().st_ino}
    for number in range(3):
        (inbox / "a.txt").write_text("reply", "utf-8")
        ear.hears("a.txt", Hint.CLOSED)
        ear.heard.clear()
        (inbox / "a.txt").rename(inbox / "processed" / f"{number}.txt")
        (inbox / "b.txt").write_text("reply", "utf-8")
        ear.hears("b.txt", Hint.CLOSED)
        ear.heard.clear()


@on_linux
def test_a_folder_made_later_is_watched_too(tmp_path: Path) -> None:
    """Design, inbox: processed/ comes with the first reply, and must not slow down the second."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with Watch(inbox) as watch:
        ear = Ear(watch)
        (inbox / "a.txt").write_text("reply", "utf-8")
        ear.hears("a.txt", Hint.CLOSED)
        (inbox / "processed").mkdir()
        wait_until(lambda: (inbox / "processed").stat().st_ino in inodes_watched())
        for number in range(3):
            (inbox / "a.txt").rename(inbox / "processed" / f"{number}.txt")
            (inbox / "a.txt").write_text("reply", "utf-8")
            ear.heard.clear()
            ear.hears("a.txt", Hint.CLOSED)


def test_waiting_ends_with_its_time(inbox: Path) -> None:
    """Design, inbox: notifications are a hint; the folder is also looked at once a second."""
    with Watch(inbox) as watch:
        started = time.monotonic()
        assert watch.wait(0.1) == {}
        assert time.monotonic() - started >= 0.09


def test_a_folder_that_cannot_be_watched_is_no_end(tmp_path: Path) -> None:
    """Design, inbox: network drives, WSL and containers send no events; looking goes on."""
    with Watch(tmp_path / "none") as watch:
        assert watch.fault
        assert watch.wait(0) == {}


@on_linux
def test_without_an_inotify_instance_the_folder_is_looked_at(tmp_path: Path) -> None:
    """Editors and sync tools use them up; a session that waits still takes its answer."""
    home = tmp_path / "home"
    command = f"{sys.executable} -m codingagent --home {home}"
    script = f"""
        echo 0 > /proc/sys/user/max_inotify_instances || exit 77
        {command} new --no-wait --sandbox off "a task" >&2
        {command} doctor | grep "^inbox.*once a second.*max_user_instances\\|can't be watched"
        printf '[MESSAGE]\\nhello\\n[/MESSAGE]\\n[DONE]\\nbye\\n[/DONE]\\n' > {home}/inbox/a.txt
        exec {command} resume
    """
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", script],
        check=False,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no user namespace here")
    assert done.returncode == 0, done.stderr
    assert "can't be watched (inotify instance limit reached)" in done.stdout
    assert "Done: bye" in done.stdout
