"""A home in a work tree stays out of `git status`: Design, the workspace; the repository is the user's."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codingagent.workspace.git_exclude import exclude

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None or os.name == "nt", reason="there is no git")

NAME = ".codingagent"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "repo")
    return tmp_path / "repo"


def git(at: Path, *words: str) -> str:
    assert GIT is not None
    people = {
        f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    own = {"HOME": "/nowhere", "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", **people}
    argv = [GIT, "-C", os.fspath(at), *words]
    return subprocess.run(argv, env=own, capture_output=True, check=True, text=True).stdout


def made(at: Path) -> Path:
    """Makes a home with something in it."""
    home = at / NAME
    home.mkdir(parents=True)
    (home / "x").write_text("x")
    return home


def status(at: Path) -> str:
    return git(at, "status", "--porcelain", "--untracked-files=all")


def text(root: Path) -> bytes:
    return (root / ".git" / "info" / "exclude").read_bytes()


def test_a_status_stays_clean(root: Path) -> None:
    """Design, the workspace: a home in a repository is nobody's change; other homes are not spoken of."""
    exclude(made(root))
    assert status(root) == ""
    made(root / "other")
    assert status(root) == f"?? other/{NAME}/x\n"


def test_twice_adds_one_line(root: Path) -> None:
    """Design, the workspace: the file is the user's; we add to it what is missing, and nothing else."""
    before = text(root)
    home = made(root)
    exclude(home)
    once = text(root)
    exclude(home)
    assert text(root) == once == before + b"/.codingagent/\n"


@pytest.mark.parametrize("folder", ["sub", "a/b c/d", "[x]*?", "!a", "#b", "é", " ", "back\\slash"])
def test_a_home_in_a_subfolder_is_named_from_the_root_on(root: Path, folder: str) -> None:
    """Design, the workspace: the line is anchored, and each character in it stands for itself."""
    exclude(made(root / folder))
    assert status(root) == ""
    made(root / "x" / folder)
    assert NAME in status(root)


def test_a_folder_that_no_line_can_name_is_left(root: Path) -> None:
    """Design, purpose: nothing fails; the home's own ignore file does it."""
    before = text(root)
    exclude(made(root / "a\nb"))
    assert text(root) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"", b"/.codingagent/\n"),
        (b"a", b"a\n/.codingagent/\n"),
        (b"a\r\nb\r\n", b"a\r\nb\r\n/.codingagent/\r\n"),
        (b"a\r\nb", b"a\r\nb\r\n/.codingagent/\r\n"),
        (b"\xff\xfe\0\n", b"\xff\xfe\0\n/.codingagent/\n"),
        (b"a\n/.codingagent/", b"a\n/.codingagent/"),
        (b"/.codingagent/\r\na\r\n", b"/.codingagent/\r\na\r\n"),
        (b"x/.codingagent/\n", b"x/.codingagent/\n/.codingagent/\n"),
    ],
)
def test_what_stands_there_stays(root: Path, old: bytes, new: bytes) -> None:
    """Design, the workspace: the file's bytes, its ends of lines and its mode are kept."""
    file = root / ".git" / "info" / "exclude"
    file.write_bytes(old)
    file.chmod(0o640)
    exclude(made(root))
    assert file.read_bytes() == new
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(path.name for path in file.parent.iterdir()) == ["exclude"]


def test_a_missing_file_and_a_missing_folder_are_made(root: Path) -> None:
    """Design, the workspace: a repository from another template has no info/."""
    shutil.rmtree(root / ".git" / "info")
    exclude(made(root))
    assert text(root) == b"/.codingagent/\n"
    assert status(root) == ""


def test_a_work_tree_shares_its_repositorys_file(root: Path, tmp_path: Path) -> None:
    """Design, the workspace: git reads the file of the common folder."""
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "worktree", "add", "-q", os.fspath(tmp_path / "other"))
    exclude(made(tmp_path / "other" / "sub"))
    assert status(tmp_path / "other") == ""
    assert text(root).endswith(b"\n/sub/.codingagent/\n")


def test_without_a_repository_nothing_is_done(tmp_path: Path) -> None:
    """Design, the workspace: most folders are in none."""
    exclude(made(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def _link_file(root: Path, outside: Path) -> None:
    (root / ".git" / "info" / "exclude").unlink()
    (root / ".git" / "info" / "exclude").symlink_to(outside / "file")


def _link_info(root: Path, outside: Path) -> None:
    shutil.rmtree(root / ".git" / "info")
    (root / ".git" / "info").symlink_to(outside)


def _link_git(root: Path, outside: Path) -> None:
    (root / ".git").rename(outside / "git")
    (root / ".git").symlink_to(outside / "git")


def _pipe(root: Path, _: Path) -> None:
    (root / ".git" / "info" / "exclude").unlink()
    os.mkfifo(root / ".git" / "info" / "exclude")


def _folder(root: Path, _: Path) -> None:
    (root / ".git" / "info" / "exclude").unlink()
    (root / ".git" / "info" / "exclude").mkdir()


def _no_repository(root: Path, _: Path) -> None:
    (root / ".git" / "HEAD").unlink()


def _name_another(root: Path, outside: Path) -> None:
    (root / ".git").rename(outside / "git")
    (root / ".git").write_text(f"gitdir: {outside}/git\n")


def _forge_a_work_tree(root: Path, outside: Path) -> None:
    git(outside, "init", "-q", "theirs")
    own = outside / "theirs" / ".git" / "worktrees" / "x"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (own / "gitdir").write_text(f"{outside}/file\n")
    shutil.rmtree(root / ".git")
    (root / ".git").write_text(f"gitdir: {own}\n")


def _too_much(root: Path, _: Path) -> None:
    (root / ".git" / "info" / "exclude").write_bytes(b"#" * (1 << 21))


def _another_users(root: Path, _: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(root / ".git", 1234, 1234)


@pytest.mark.parametrize(
    "lay",
    [
        *(_link_file, _link_info, _link_git, _pipe, _folder, _no_repository, _name_another),
        *(_forge_a_work_tree, _too_much, _another_users),
    ],
)
def test_what_is_not_plain_is_left_alone(
    root: Path, tmp_path: Path, lay: Callable[[Path, Path], None]
) -> None:
    """Design, safety: anyone who sent the repository must not make us write elsewhere, nor wait."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine\n")
    lay(root, outside)
    before = _bytes(tmp_path)
    exclude(made(root))
    shutil.rmtree(root / NAME)
    assert _bytes(tmp_path) == before


def test_a_trap_beside_the_file_is_removed_not_followed(root: Path, tmp_path: Path) -> None:
    """Design, safety: a file is written whole, under a name of ours first; a link may be there."""
    (tmp_path / "mine").write_text("mine\n")
    for name in (".ca-exclude.tmp", "exclude.tmp"):
        (root / ".git" / "info" / name).symlink_to(tmp_path / "mine")
    exclude(made(root))
    assert (tmp_path / "mine").read_text() == "mine\n"
    assert text(root).endswith(b"/.codingagent/\n")


def test_a_hard_link_to_a_file_of_the_user_is_not_written_through(
    root: Path, tmp_path: Path
) -> None:
    """Design, safety: the file is replaced, not changed."""
    (tmp_path / "mine").write_text("mine\n")
    (root / ".git" / "info" / "exclude").unlink()
    os.link(tmp_path / "mine", root / ".git" / "info" / "exclude")
    exclude(made(root))
    assert (tmp_path / "mine").read_text() == "mine\n"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_fails_nothing(root: Path) -> None:
    """Design, purpose: the home's own ignore file stays as the second net."""
    (root / ".git" / "info").chmod(0o555)
    before = text(root)
    exclude(made(root))
    (root / ".git" / "info").chmod(0o755)
    assert text(root) == before


def test_a_link_for_a_home_is_left(root: Path, tmp_path: Path) -> None:
    """Design, safety: where it leads is not ours to speak of."""
    before = text(root)
    made(tmp_path / "outside")
    (root / NAME).symlink_to(tmp_path / "outside" / NAME)
    exclude(root / NAME)
    assert text(root) == before


def _bytes(root: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        look = path.lstat()
        is_file = stat.S_ISREG(look.st_mode)
        found[os.fspath(path)] = (look.st_mode, path.read_bytes() if is_file else None)
    return found
