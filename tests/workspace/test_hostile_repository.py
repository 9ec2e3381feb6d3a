"""A repository that means harm: what it says is read up to a bound, and what was not read is named."""

import contextlib
import hashlib
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from codingagent.process.runner import run_tool
from codingagent.prompt.file_list import Listing, lines
from codingagent.workspace import git_files
from codingagent.workspace.git_files import Git
from codingagent.workspace.workspace import Workspace
from tests.helpers import calls_of, forged_index

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


GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None or os.name == "nt", reason="there is no git")


def listed(root: Path, *, with_git: bool = False) -> Listing:
    git = Git(GIT, run_tool) if with_git and GIT is not None else None
    with contextlib.closing(Workspace(root, git=lambda: git)) as workspace:
        return workspace.listing()


def paths(found: Listing) -> set[str]:
    return set(found.files)


@needs_git
def test_an_index_that_is_a_hole_is_not_read(root: Path) -> None:
    """Design, the workspace: five gigabytes of nothing cost nothing, and the list says what is missing."""
    with (root / ".git" / "index").open("wb") as file:
        os.truncate(file.fileno(), 5 * 2**30)
    found = listed(root, with_git=True)
    assert paths(found) == {"a.py", ".gitignore"}
    assert found.unread == (f".git/index: it is too large{MISSING}",)
    assert lines(found)[-1] == f"  (not read: {found.unread[0]})"


@needs_git
@pytest.mark.parametrize("folder", ["", "inner"])
def test_an_index_that_git_did_not_write_is_named(root: Path, folder: str) -> None:
    """It is also told of a repository inside the workspace which one it was."""
    if folder:
        (root / folder).mkdir()
        for name in (".git", ".gitignore", "a.log"):
            (root / name).rename(root / folder / name)
    (root / folder / ".git" / "index").write_bytes(b"DIRC" + b"\xff" * 1_000_000)
    where = f"{folder}/" if folder else ""
    found = listed(root, with_git=True)
    assert found.unread == (f"{where}.git/index: it is in two parts, or not as git writes it{MISSING}",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#" * (2**20 + 1), ".gitignore beyond its first 1 MiB"),
        ("x\n" * 6_000, ".gitignore to its end: the ignore files hold too many patterns"),
    ],
    ids=["bytes", "lines"],
)
@pytest.mark.parametrize("name", [".gitignore", ".codingagentignore"])
def test_an_ignore_file_counts_up_to_a_bound(root: Path, name: str, text: str, said: str) -> None:
    """Our own rules, and all where git can't be asked: what comes first still counts."""
    (root / ".gitignore").write_text("")
    (root / name).write_text(f"*.log\n{text}")
    found = listed(root)
    assert list(found.unread) == [said.replace(".gitignore", name)]
    assert "a.log" not in paths(found)


@needs_git
def test_git_is_shown_no_more_of_an_exclude_file(root: Path) -> None:
    """It is copied up to a bound, and to the end of a line."""
    text = "*.log\n" + "#" * (2**20 - 9) + "\na.py\n"
    (root / ".gitignore").unlink()
    (root / ".git" / "info" / "exclude").write_text(text)
    assert paths(listed(root, with_git=True)) == {"a.py"}


def test_ignore_files_count_up_to_a_bound_together(root: Path) -> None:
    """Each of them may be small: it is what they hold together that costs."""
    for number in range(100):
        folder = root / f"d{number}"
        folder.mkdir()
        (folder / ".gitignore").write_text("".join(f"{number}.{line}\n" for line in range(400)))
        (folder / "b.py").write_text("1\n")
    found = listed(root)
    assert len(found.unread) == 1
    assert sum(path.endswith("b.py") for path in paths(found)) == 100


@pytest.mark.skipif(os.name == "nt", reason="an index names such paths elsewhere")
@needs_git
def test_a_forged_index_leads_nowhere(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its paths may lead upwards, into .git, or through a link: none of them is listed, or looked at."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("123")
    (root / "link").symlink_to(outside)
    names = [b"../secret", b"/etc/passwd", b".git/HEAD", b"a/../../x", b"link/secret", b"a.log"]
    (root / ".git" / "index").write_bytes(forged_index(names))
    assert paths(listed(root, with_git=True)) == {"a.py", ".gitignore", "a.log"}


@needs_git
def test_a_forged_submodule_leads_nowhere(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The names of files in a repository beside the workspace are not told."""
    subprocess.run(["git", "init", "-q", beside := tmp_path_factory.mktemp("beside")], check=True)
    (beside / "secret").write_text("123")
    file, module = (struct.pack(">I", mode) for mode in (0o100644, 0o160000))
    name = os.fsencode(os.path.relpath(beside, root))
    data = forged_index([name])[:-20].replace(file, module)
    digest = hashlib.sha1(data, usedforsecurity=False).digest()
    (root / ".git" / "index").write_bytes(data + digest)
    assert paths(listed(root, with_git=True)) == {"a.py", ".gitignore"}


# What git opens of a repository, of its own and of one inside.
PIPES = (
    *("objects/info/alternates", "shallow", "objects/info/commit-graph", "index", "HEAD", "config"),
    *("packed-refs", "commondir", "info/exclude", "objects/info/packs", "refs/heads/main", "gitdir"),
    *("info/grafts", "objects/pack/multi-pack-index", "info/sparse-checkout", "logs/HEAD"),
)


@pytest.mark.one_in(7)
@needs_git
@pytest.mark.parametrize("folder", ["", "inner/"])
@pytest.mark.parametrize("names", [*((name,) for name in PIPES), PIPES, ("loose",)])
def test_a_pipe_in_a_repository_holds_nobody_up(tmp_path: Path, names: tuple[str, ...], folder: str) -> None:
    """Design, the workspace: what git waits for is let go or given up; the list is made without history."""
    root = tmp_path / "r"
    root.mkdir()
    inner = root / folder
    inner.mkdir(exist_ok=True)
    who = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgSign=false")
    (inner / "a.py").write_text("1\n")
    for words in (("init", "-q", "-b", "main"), ("add", "a.py"), (*who, "commit", "-qm", "m")):
        subprocess.run([GIT or "", "-C", inner, *words], check=True)
    loose = [f for f in (inner / ".git" / "objects").glob("??/*") if "loose" in names]
    for path in loose or [inner / ".git" / name for name in names]:
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)
    # Each of these would wait for ever, if git waited for ever.
    git = Git(GIT or "", run_tool)
    with contextlib.closing(Workspace(root, git=lambda: git)) as workspace:
        assert f"{folder}a.py" in workspace.listing().files
        workspace.history()


@needs_git
def test_many_pipes_cost_no_more_than_one(root: Path) -> None:
    """Each is let go as soon as git waits for it, however many there are."""
    for number in range(120):
        (root / f"d{number}").mkdir()
        os.mkfifo(root / f"d{number}" / ".gitignore")
        (root / f"d{number}" / "f.py").touch()
    looks = calls_of(git_files._let_go, lambda: listed(root, with_git=True))  # noqa: SLF001
    assert looks <= 2
