"""A repository that means harm: what it says is read up to a bound, and what was not read is named."""

import contextlib
import os
from pathlib import Path

import pytest

from codingagent.prompt.file_list import Listing, lines
from codingagent.workspace.workspace import Workspace

MISSING = "; files that git tracks although an ignore rule names them are missing here"


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    for name in ("objects", "refs", "info"):
        (tmp_path / ".git" / name).mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "a.py").write_text("1\n")
    (tmp_path / "a.log").write_text("1\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    return tmp_path


def listed(root: Path) -> Listing:
    with contextlib.closing(Workspace(root)) as workspace:
        return workspace.listing()


def paths(found: Listing) -> set[str]:
    return {file.path for file in found.files}


def test_an_index_that_is_a_hole_is_not_read(root: Path) -> None:
    """Design, the workspace: five gigabytes of nothing cost nothing, and the list says what is missing."""
    with (root / ".git" / "index").open("wb") as file:
        os.truncate(file.fileno(), 5 * 2**30)
    found = listed(root)
    assert paths(found) == {"a.py", ".gitignore"}
    assert found.unread == (f".git/index: it is larger than 64 MiB{MISSING}",)
    assert lines(found, 100)[-1] == f"  (not read: {found.unread[0]})"


@pytest.mark.parametrize("folder", ["", "inner"])
def test_an_index_that_git_did_not_write_is_named(root: Path, folder: str) -> None:
    """It is also told of a repository inside the workspace which one it was."""
    if folder:
        (root / folder).mkdir()
        for name in (".git", ".gitignore", "a.log"):
            (root / name).rename(root / folder / name)
    (root / folder / ".git" / "index").write_bytes(b"DIRC" + b"\xff" * 1_000_000)
    where = f"{folder}/" if folder else ""
    assert listed(root).unread == (f"{where}.git/index: it is not as git writes it{MISSING}",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#" * (2**20 + 1), ".gitignore beyond its first 1 MiB"),
        ("x\n" * 6_000, ".gitignore to its end: its patterns are too many, or too costly"),
        (
            "".join(f"*a*b*{number}\n" for number in range(300)),
            ".gitignore to its end: its patterns are too many, or too costly",
        ),
        (
            "".join(f"x{number}\n!y{number}\n" for number in range(2_000)),
            ".gitignore to its end: its patterns are too many, or too costly",
        ),
    ],
    ids=["bytes", "lines", "costly", "back and forth"],
)
@pytest.mark.parametrize("name", [".gitignore", ".git/info/exclude"])
def test_an_ignore_file_counts_up_to_a_bound(root: Path, name: str, text: str, said: str) -> None:
    """What comes first still counts."""
    (root / ".gitignore").write_text("")
    (root / name).write_text(f"*.log\n{text}")
    found = listed(root)
    assert [reason.replace(".git/info/exclude", ".gitignore") for reason in found.unread] == [said]
    assert "a.log" not in paths(found)


def test_ignore_files_count_up_to_a_bound_together(root: Path) -> None:
    """Each of them may be small: it is what they hold together that costs."""
    for number in range(100):
        folder = root / f"d{number}"
        folder.mkdir()
        (folder / ".gitignore").write_text("".join(f"{number}.{line}\n" for line in range(400)))
        (folder / "b.py").write_text("1\n")
    found = listed(root)
    assert len(found.unread) == 10
    assert all(reason.endswith("hold too many lines") for reason in found.unread)
    assert sum(path.endswith("b.py") for path in paths(found)) == 100


def test_the_same_ignore_file_in_many_folders_is_one(root: Path) -> None:
    """A tree of many projects has the same rules in each of them: that is no attack."""
    for number in range(100):
        (root / f"d{number}").mkdir()
        (root / f"d{number}" / ".gitignore").write_text("x\n" * 400)
    assert listed(root).unread == ()
