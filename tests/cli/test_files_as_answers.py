"""Files as answers by each way in: the inbox, `resume FILE`, a pipe, a path pasted at the terminal."""

import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from codingagent.agent import downloads
from tests.cli.test_amend import terminal
from tests.cli.test_waiting_line import PROMPT, confirm, paste
from tests.helpers import command_line, run_here, wait_until

pytestmark = pytest.mark.usefixtures("plain")
NEW = b"total = 2\n"


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "workspace" / "shop").mkdir(parents=True)
    (home / "workspace" / "shop" / "cart.py").write_text("total = 1\n")
    assert command_line(home, "new", "--no-wait", "--sandbox", "off", "count").returncode == 0
    return home


def packed(**files: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in files.items():
            archive.writestr(f"shop/{name}.py", data)
    return made.getvalue()


def resume(home: Path, *words: str) -> str:
    done = command_line(home, "resume", "--once", "--accept-formats", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def cart(home: Path) -> bytes:
    return (home / "workspace" / "shop" / "cart.py").read_bytes()


def left(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "inbox").iterdir() if path.is_file())


def in_the_inbox(home: Path, _: Path) -> None:
    (home / "inbox" / "cart (1).py").write_bytes(NEW)
    (home / "inbox" / "more.zip").write_bytes(packed(tax=NEW))
    resume(home)
    assert (home / "workspace" / "shop" / "tax.py").read_bytes() == NEW


def named(home: Path, downloads_: Path) -> None:
    (downloads_ / "cart.py").write_bytes(NEW)
    resume(home, str(downloads_ / "cart.py"))
    assert (downloads_ / "cart.py").read_bytes() == NEW


def piped(home: Path, _: Path) -> None:
    assert run_here("--home", str(home), "paste", stdin=packed(cart=NEW)).returncode == 0
    resume(home)


def dropped_on_the_terminal(home: Path, downloads_: Path) -> None:
    (downloads_ / "an answer.zip").write_bytes(packed(cart=NEW))
    with terminal(home, "resume", "--accept-formats") as asked:
        asked.says(PROMPT)
        paste(asked, f"'{downloads_}/an answer.zip' ")
        asked.says("an answer.zip")
        confirm(asked)
        wait_until(lambda: cart(home) == NEW)


@pytest.mark.parametrize("way", [in_the_inbox, named, piped, dropped_on_the_terminal])
def test_files_are_taken(way: Callable[[Path, Path], None], home: Path, tmp_path: Path) -> None:
    if way is dropped_on_the_terminal and sys.platform == "win32":
        pytest.skip("a pty is what is tested")
    (tmp_path / "downloads").mkdir()
    way(home, tmp_path / "downloads")
    assert cart(home) == NEW
    assert left(home) == []


def test_half_a_zip_waits_for_the_rest(home: Path) -> None:
    data = packed(cart=NEW)
    (home / "inbox" / "answer.zip").write_bytes(data[:-30])
    assert "not a whole zip" in resume(home)
    assert left(home) == ["answer.zip"]
    (home / "inbox" / "answer.zip").write_bytes(data)
    resume(home)
    assert cart(home) == NEW


def test_a_file_that_a_kill_left_beside_its_zip_is_not_applied_again(home: Path) -> None:
    (home / "inbox" / "cart.py").write_bytes(NEW)
    made = downloads.as_answer([("cart.py", NEW)], lambda: ["shop/cart.py"])
    (home / "inbox" / "cart.zip").write_bytes(made)
    resume(home)
    resume(home)
    assert [path.name for path in (home / "inbox" / "rejected").glob("*.zip")] == ["cart.zip"]
    assert len([*(home / "inbox" / "processed").iterdir()]) == 1


@pytest.mark.parametrize("data", [NEW, b"# /app/other.py\n", b"# ~/other.py\n", b"# ../shop/other.py\n"])
def test_a_download_of_another_session_is_no_answer_of_this_one(data: bytes, home: Path) -> None:
    """What no file is called stays whole, with what to do."""
    (home / "inbox" / "other.py").write_bytes(data)
    assert "no file of the workspace is called" in resume(home)
    assert (home / "inbox" / "rejected" / "other.py").read_bytes() == data
