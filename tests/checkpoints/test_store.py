"""Checkpoints: what they cover, that nothing in a workspace gets a say, and that files come back."""

import contextlib
import os
import random
import resource
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.checkpoints.compare import Notes, Reader
from codingagent.checkpoints.history import Checkpoint, LeftOut, State
from codingagent.checkpoints.repository import Store, stored
from codingagent.checkpoints.store import Checkpoints, Limits
from codingagent.errors import WorkError
from codingagent.process.runner import run_tool
from codingagent.workspace.dirfd import temporary_name
from codingagent.workspace.git_files import Git
from tests.helpers import (
    can_swap,
    descriptors,
    fewer_examples,
    forged_index,
    line_from,
    open_by_name,
    python,
    swapping,
    wait_until,
)

GIT = shutil.which("git")
pytestmark = [
    pytest.mark.skipif(GIT is None, reason="checkpoints need git, which is not here"),
    pytest.mark.one_in(2, "yard"),
]

SECRET = b"SECRET"
Tree = dict[bytes, tuple[str, bytes, int]]


@dataclass
class Restored:
    paths: tuple[str, ...]
    left_alone: tuple[LeftOut, ...]


@dataclass
class Yard:
    """A workspace beside a folder that must stay as it is, and its checkpoints."""

    root: Path
    outside: Path
    store: Path
    checkpoints: Checkpoints
    kind: type[Checkpoints]

    def write(self, path: str, data: bytes | str, mode: int = 0o644) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        file.chmod(mode)
        return file

    def take(self) -> str:
        return self.checkpoints.take().id

    def kinds(self, old: str, new: str) -> dict[str, str]:
        """Return how two checkpoints differ: whoever took them knows the same as who reads them."""
        assert GIT is not None
        found = Reader(Store(self.store, self.root, Git(GIT, run_tool)), ()).changes(old, new)
        assert self.checkpoints.changes(old, new) == found
        return {change.path: change.kind for change in found}

    def back_to(self, target: str, paths: Collection[str] | None = None) -> Restored:
        """Undoes as the caller does: a fresh checkpoint first."""
        now = self.take()
        differing = [change.path for change in self.checkpoints.changes(target, now)]
        return self.restore(target, now, differing if paths is None else paths)

    def restore(self, target: str, now: str, paths: Collection[str]) -> Restored:
        left = self.checkpoints.restore(target, now, paths)
        done = {*paths}.difference(each.path for each in left)
        return Restored(tuple(sorted(done)), tuple(left))

    def again(self, hidden: tuple[Path, ...] = (), limits: Limits | None = None) -> None:
        """Opens the checkpoints anew, as the next start of the program does."""
        self.checkpoints.close()
        assert GIT is not None
        self.checkpoints = self.kind(self.store, self.root, hidden, Git(GIT, run_tool))
        self.checkpoints.limits = limits or Limits()


class ByName(Checkpoints):
    open_folder = staticmethod(open_by_name)


@pytest.fixture(name="yard", params=[Checkpoints, ByName], ids=["handles", "names"])
def _yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Yard]:
    """A workspace; after each test what is outside is unchanged and nothing is left over."""
    root, outside = tmp_path / "ws", tmp_path / "out"
    for folder in (root, outside):
        folder.mkdir()
    (outside / "secret").write_bytes(SECRET)
    handles = descriptors()
    store = tmp_path / "store"
    checkpoints = request.param(store, root, (), Git(GIT or "", run_tool))
    yard = Yard(root, outside, store, checkpoints, request.param)
    yield yard
    yard.checkpoints.close()
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_bytes() == SECRET
    assert not list(root.rglob(".ca-*.tmp"))
    assert descriptors() == handles


def tree(root: Path) -> Tree:
    """Return all files and links below a folder with their content and permissions; no `.git`."""
    found: Tree = {}
    for above, folders, files in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
        for name in files + folders:
            path = Path(above, name)
            what = path.lstat()
            key = os.fsencode(path.relative_to(root))
            if stat.S_ISLNK(what.st_mode):
                found[key] = ("link", os.fsencode(path.readlink()), 0)
            elif stat.S_ISREG(what.st_mode):
                found[key] = ("file", path.read_bytes(), stat.S_IMODE(what.st_mode))
    return found


def git(folder: Path, *words: str) -> str:
    """Runs the person's git, with nobody's settings."""
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **names}
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", *words],
        cwd=folder, env=variables, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def all_bytes(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# --- what is seen ----------------------------------------------------------------------------------


def test_every_kind_of_change_is_seen(yard: Yard) -> None:
    """Design, checkpoints: what operations and commands changed, untracked files too."""
    for name in ("gone", "changed", "mode", "private", "type", "same", "old name"):
        yard.write(name, name)
    old = yard.take()
    (yard.root / "gone").unlink()
    yard.write("changed", "CHANGED")
    (yard.root / "mode").chmod(0o755)
    (yard.root / "private").chmod(0o600)
    (yard.root / "type").unlink()
    (yard.root / "type").symlink_to("same")
    (yard.root / "old name").rename(yard.root / "new name")
    yard.write("one/two/three/new", "")
    new = yard.take()
    expected = {
        "gone": "deleted",
        "changed": "modified",
        "mode": "mode",
        "private": "mode",
        "type": "type",
        "old name": "deleted",
        "new name": "added",
        "one/two/three/new": "added",
    }
    assert yard.kinds(old, new) == expected
    change = next(c for c in yard.checkpoints.changes(old, new) if c.path == "private")
    assert change.old is not None
    assert change.new is not None
    assert (change.old.mode, change.new.mode) == (0o100644, 0o100600)
    assert change.old.blob == change.new.blob


def test_a_folder_that_is_gone_leads_the_walk_nowhere_else(yard: Yard) -> None:
    """Design, checkpoints: the file that is read next is sought from the right folder."""
    for name in ("a/f", "a/b/gone/f", "a/x/f"):
        yard.write(name, "old")
    old = yard.take()
    (yard.root / "a/b/gone/f").unlink()
    (yard.root / "a/b/gone").rmdir()
    for name in ("a/f", "a/x/f"):
        yard.write(name, "newer")
    changed = {"a/f": "modified", "a/b/gone/f": "deleted", "a/x/f": "modified"}
    assert yard.kinds(old, yard.take()) == changed


def test_without_changes_the_checkpoint_is_the_same(yard: Yard) -> None:
    """Design, checkpoints: the store stays small."""
    yard.write("a", "a")
    first = yard.take()
    before = all_bytes(yard.store)
    assert yard.take() == first
    yard.again()
    assert yard.take() == first
    assert all_bytes(yard.store) == before


def test_an_empty_workspace_has_a_checkpoint(yard: Yard) -> None:
    """A session may begin in an empty folder, and end in one."""
    empty = yard.take()
    yard.write("a/b", "x")
    full = yard.take()
    assert yard.kinds(empty, full) == {"a/b": "added"}
    for index in yard.store.glob("index.*"):
        index.unlink()
    assert yard.back_to(empty).paths == ("a/b",)
    assert list(yard.root.iterdir()) == []
    emptied = yard.take()
    (yard.store / f"index.{emptied}").unlink()
    assert yard.take() == emptied
    assert yard.back_to(full).paths == ("a/b",)
    assert tree(yard.root) == {b"a/b": ("file", b"x", 0o644)}


def test_a_change_within_the_same_instant_is_seen(yard: Yard) -> None:
    """Design, checkpoints: no time of change, however coarse, hides a change from us."""
    file = yard.write("a", "one")
    times = (10**18, 10**18)
    os.utime(file, ns=times)
    old = yard.take()
    file.write_bytes(b"two")
    os.utime(file, ns=times)
    middle = yard.take()
    assert yard.kinds(old, middle) == {"a": "modified"}
    file.chmod(0o640)
    assert yard.kinds(middle, yard.take()) == {"a": "mode"}


def test_the_index_settles(yard: Yard) -> None:
    """Design, speed: look at each file once; a file that is old enough is known by its metadata."""
    yard.again(limits=Limits(recent_ns=0, stale_bytes=0))
    file = yard.write("a", "one")
    os.utime(file, ns=(10**18, 10**18))
    first = yard.take()
    index = yard.store / f"index.{first}"
    # A time that FAT takes, too: it has none before 1980. git holds no entry before it for racy.
    assert 10**9 < index.stat().st_mtime < 2**31
    settled = index.read_bytes()
    assert settled[12 + 8 : 12 + 12] == (10**9).to_bytes(4, "big")
    ours = index.stat().st_ino
    assert yard.take() == first
    assert index.stat().st_ino == ours
    file.write_bytes(b"two!")
    assert yard.kinds(first, yard.take()) == {"a": "modified"}


ODD = [
    b"two words", b"new\nline", b'"quoted"', b"-rf", b"--", b":(glob)*", b"back\\slash", b"\xff\xfe",
    "é".encode(), b"tab\t", b"{arrow => b}", b"*", b"[a]", b"\x01", b"#x", b"!x", b"a" * 255,
    b"files", b"notes", b".gitmodules", b".gitattributes", b"d/ trailing ", b"con", b"x.lock",
]  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_odd_names_come_back(yard: Yard) -> None:
    """Design, checkpoints: a name is bytes, taken as it stands."""
    (yard.root / "d").mkdir()
    empty = yard.take()
    for name in ODD:
        (yard.root / os.fsdecode(name)).write_bytes(name)
    odd = tree(yard.root)
    full = yard.take()
    assert set(yard.kinds(empty, full)) == {os.fsdecode(name) for name in ODD}
    assert yard.checkpoints.diff(empty, full)
    one = yard.checkpoints.diff(empty, full, paths=["*"])
    assert one.count("diff --git") == 1
    yard.back_to(empty)
    assert tree(yard.root) == {}
    assert len(yard.back_to(full).paths) == len(ODD)
    assert tree(yard.root) == odd


def test_links_are_kept_as_links(yard: Yard) -> None:
    """Design, checkpoints: links to outside, dangling ones and loops are kept, never followed."""
    yard.write("in", "in")
    empty = yard.take()
    targets = {"out": "../out/secret", "folder": "../out", "gone": "nowhere", "loop": "loop", "in2": "in"}
    for name, target in targets.items():
        (yard.root / name).symlink_to(target)
    full = yard.take()
    assert set(yard.kinds(empty, full)) == set(targets)
    assert SECRET not in all_contents(yard)
    yard.back_to(empty)
    assert tree(yard.root).keys() == {b"in"}
    yard.back_to(full)
    assert {name: str((yard.root / name).readlink()) for name in targets} == targets


def stored_in(yard: Yard, *words: str) -> bytes:
    """Return what git says of the store."""
    variables = {"GIT_DIR": str(yard.store), "PATH": os.environ["PATH"]}
    return subprocess.run(["git", *words], env=variables, capture_output=True, check=True).stdout


def all_contents(yard: Yard) -> bytes:
    """Return the content of every object in the store, used or not."""
    return stored_in(yard, "cat-file", "--batch-all-objects", "--batch")


@pytest.mark.parametrize("turned", ["file to folder", "link to folder", "folder to file", "to link"])
@pytest.mark.one_in(4, "yard")
def test_types_change_and_change_back(yard: Yard, turned: str) -> None:
    """Design, checkpoints: a folder that became a file, and the other way."""
    if turned == "file to folder":
        yard.write("x", "file")
    elif turned == "link to folder":
        (yard.root / "x").symlink_to("../out")
    else:
        yard.write("x/y/z", "inner")
        yard.write("x/w", "inner")
    old, was = yard.take(), tree(yard.root)
    if "to folder" in turned:
        (yard.root / "x").unlink()
        yard.write("x/y/z", "inner")
    else:
        shutil.rmtree(yard.root / "x")
        if turned == "folder to file":
            yard.write("x", "file")
        else:
            (yard.root / "x").symlink_to("../out")
    new, became = yard.take(), tree(yard.root)
    assert yard.back_to(old).left_alone == ()
    assert tree(yard.root) == was
    assert yard.back_to(new).left_alone == ()
    assert tree(yard.root) == became


def test_permissions_of_what_was_displaced_are_forgotten(yard: Yard) -> None:
    """Design, checkpoints: git does not name a file below a link that leads to itself."""
    yard.write("usual", "x", 0o600)
    (yard.root / "a").symlink_to("a")
    old = yard.take()
    (yard.root / "a").unlink()
    yard.write("a/b", "x", 0o644)
    yard.take()
    (yard.root / "a/b").unlink()
    (yard.root / "a").rmdir()
    (yard.root / "a").symlink_to("a")
    assert yard.kinds(old, yard.take()) == {}


@pytest.mark.parametrize("umask", [0o644, 0o664, 0o600], ids=oct)
def test_all_permissions_come_back(yard: Yard, umask: int) -> None:
    """Design, checkpoints: full permissions, not only whether a file may be run."""
    for name in "abc":
        yard.write(name, name, umask)
    modes = {"r": 0o444, "rw": 0o666, "x": 0o711, "wild": 0o777, "odd": 0o640}
    for name, mode in modes.items():
        yard.write(name, "same", mode)
    old, was = yard.take(), tree(yard.root)
    for path in yard.root.iterdir():
        path.chmod(0o700)
    yard.take()
    (yard.root / "wild").unlink()
    assert yard.back_to(old).left_alone == ()
    assert tree(yard.root) == was


@pytest.mark.deep
@pytest.mark.parametrize("depth", [300, pytest.param(1000, marks=pytest.mark.deep)])
def test_very_many_folders_deep(yard: Yard, depth: int) -> None:
    """A deep path is slow at worst; without handles each step walks all names again."""
    yard.write("a", "a")
    old = yard.take()
    count = depth // 7 if yard.kind is ByName else depth
    path = "/".join(["d"] * count)
    for length in range(1, 2 * count, 2):
        (yard.root / path[:length]).mkdir()
    (yard.root / path / "f").write_bytes(b"deep")
    (yard.root / path / "f").chmod(0o644)
    new = yard.take()
    assert yard.kinds(old, new) == {f"{path}/f": "added"}
    assert yard.back_to(old).left_alone == ()
    assert [p.name for p in yard.root.iterdir()] == ["a"]
    yard.back_to(new)
    assert (yard.root / path / "f").read_bytes() == b"deep"
    yard.back_to(old)


# --- what is left out ------------------------------------------------------------------------------


def test_ignored_and_large_and_special_files_are_left_out_and_said(yard: Yard) -> None:
    """Design, checkpoints: what is not covered is said, with the reason."""
    yard.write(".gitignore", "*.pyc\n!keep.pyc\nnode_modules/\n")
    yard.write("sub/.gitignore", "local\n!again.pyc\n")
    for path in ("a.pyc", "keep.pyc", "node_modules/x/y", "sub/local", "sub/again.pyc", "local"):
        yard.write(path, path)
    yard.write("big", bytes(5_000_001))
    yard.write("fits", bytes(5_000_000))
    yard.write("git~1", "x")
    yard.write("was", "a file")
    yard.checkpoints.take()
    (yard.root / "was").unlink()
    os.mkfifo(yard.root / "was")
    os.mkfifo(yard.root / "fifo")
    taken = yard.checkpoints.take()
    left = {left.path: left.reason for left in taken.left_out}
    assert left == {
        "a.pyc": "ignored",
        "node_modules/": "ignored",
        "sub/local": "ignored",
        "big": "larger than 5 MB",
        "git~1": "its name is git's or codingagent's own on some systems",
        "was": "neither a file nor a link",
    }
    assert len(taken.left_out) == len(left)
    covered = {"keep.pyc", "sub/again.pyc", "local", "fits", ".gitignore", "sub/.gitignore"}
    assert covered_by(yard, taken.id) == covered


def covered_by(yard: Yard, checkpoint: str) -> set[str]:
    names = stored_in(yard, "ls-tree", "-r", "-z", "--name-only", f"{checkpoint}:files")
    return {os.fsdecode(name) for name in names.split(b"\0")[:-1]}


def test_a_covered_file_stays_covered_when_it_is_ignored(yard: Yard) -> None:
    """git's rule: what is tracked is not ignored."""
    yard.write("a.log", "one")
    old = yard.take()
    yard.write(".gitignore", "*.log")
    yard.write("a.log", "two")
    assert yard.kinds(old, yard.take()) == {".gitignore": "added", "a.log": "modified"}


def test_what_was_ignored_before_is_not_removed(yard: Yard) -> None:
    """Design, checkpoints: a file that a turn only uncovered is not one that it made."""
    yard.write(".gitignore", ".env\nbuild/\n")
    yard.take()
    yard.write(".env", "secret")
    yard.write("build/out", "out")
    old = yard.checkpoints.take().id
    (yard.root / ".gitignore").unlink()
    yard.write("made", "made")
    new = yard.checkpoints.take().id
    expected = {".env": "left_out", "build/out": "left_out", ".gitignore": "deleted", "made": "added"}
    assert yard.kinds(old, new) == expected
    restored = yard.back_to(old)
    assert [left.path for left in restored.left_alone] == [".env", "build/out"]
    assert restored.paths == (".gitignore", "made")
    assert (yard.root / ".env").read_bytes() == b"secret"
    assert not (yard.root / "made").exists()


def test_a_folder_with_ignored_files_is_not_taken_for_ignored(yard: Yard) -> None:
    """Only what git ignores as a whole covers what is made in it later."""
    yard.write(".gitignore", "*.pyc")
    yard.write("a/b/x.pyc", "x")
    old = yard.take()
    yard.write("a/b/x.py", "x")
    assert yard.kinds(old, yard.take()) == {"a/b/x.py": "added"}
    assert yard.back_to(old).paths == ("a/b/x.py",)
    assert (yard.root / "a/b/x.pyc").exists()


def test_files_are_alike_if_only_ignored_ones_came(yard: Yard) -> None:
    """Design, check: it runs again once files changed, also those that no checkpoint holds."""
    yard.write(".gitignore", "*.pyc\n")
    first = yard.take()
    yard.write("a.pyc", "x")
    second = yard.take()
    assert second != first
    assert yard.checkpoints.are_alike(first, second)
    yard.write("large", bytes(5_000_001))
    third = yard.take()
    assert yard.kinds(second, third) == {}
    assert not yard.checkpoints.are_alike(second, third)


def test_a_file_that_grew_too_large_is_left_alone(yard: Yard) -> None:
    """Design, checkpoints: what no checkpoint holds is never overwritten."""
    yard.write("data", "small")
    yard.write("was big", bytes(6_000_000))
    old = yard.take()
    yard.write("data", bytes(6_000_000))
    yard.write("was big", "small")
    new = yard.take()
    assert yard.kinds(old, new) == {"data": "left_out", "was big": "left_out"}
    assert {left.path for left in yard.back_to(old).left_alone} == {"data", "was big"}
    assert (yard.root / "data").stat().st_size == 6_000_000


def test_too_many_new_files_are_left_out(yard: Yard) -> None:
    """Design, checkpoints: bounded; the folder with the most new files goes first."""
    yard.again(limits=Limits(new_files=50, new_bytes=1000, first_files=1000))
    yard.write("a/old", "x")
    yard.take()
    for number in range(60):
        yard.write(f"node_modules/{number}", "x")
    yard.write("node_modules/.envrc", "x")
    yard.write("a/new", "x")
    yard.write("b/large", bytes(900))
    yard.write("c/large", bytes(900))
    taken = yard.checkpoints.take()
    assert covered_by(yard, taken.id) == {"a/old", "a/new", "b/large", "node_modules/.envrc"}
    assert {left.path: left.reason for left in taken.left_out} == {
        "node_modules/": "more than 50 new files at once",
        "c/large": "more than 1e-06 GB of new files at once",
    }


def test_a_file_that_came_with_its_folder_counts_as_new(yard: Yard) -> None:
    """Where no checkpoint tells: a renamed folder changes no time of what is in it."""
    yard.write("sub/old", "x")
    yard.write("a/b/c", "x")
    place = yard.root / "a"
    since_ns = (place / "b" / "c").stat().st_ctime_ns + 1
    while place.stat().st_ctime_ns < since_ns:
        place = place.rename(yard.root / ("z" if place.name == "a" else "a"))
    young = {left.path for left in yard.checkpoints.younger(since_ns)}
    assert young == {f"{place.name}/b/c"}


def test_a_file_that_was_written_later_than_made_counts_as_changed(yard: Yard) -> None:
    """Windows tells when a file was made where other systems tell when it was changed."""
    made_ns = yard.write("a", "x").stat().st_ctime_ns
    os.utime(yard.root / "a", ns=(2 * made_ns, 2 * made_ns))
    since_ns = (yard.root / "a").stat().st_ctime_ns + 1
    assert [left.path for left in yard.checkpoints.younger(since_ns)] == ["a"]


def test_unreadable_files_and_folders_are_left_out_and_said(yard: Yard) -> None:
    """Design, checkpoints: what can't be read is said; it stops nothing."""
    yard.write("a", "a")
    if os.access(yard.write("secret", "x", 0o000), os.R_OK):
        pytest.skip("root may read everything")
    yard.write("closed/x", "x")
    (yard.root / "closed").chmod(0o000)
    try:
        taken = yard.checkpoints.take()
    finally:
        (yard.root / "closed").chmod(0o755)
    expected = {"secret": "permission denied", "closed/": "permission denied"}
    assert {left.path: left.reason for left in taken.left_out} == expected
    assert covered_by(yard, taken.id) == {"a"}


def test_a_socket_is_passed_over(yard: Yard) -> None:
    """Safety, special files: none of them is opened."""
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(yard.root)
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        os.mkfifo(yard.root / "fifo")
        yard.write("a", "a")
        assert covered_by(yard, yard.take()) == {"a"}


def test_a_pipe_for_attributes_keeps_no_checkpoint_waiting(yard: Yard) -> None:
    """Safety: git opens `.gitattributes` when it notes the metadata of files that it compares."""
    yard.again(limits=Limits(recent_ns=0, stale_bytes=0))
    yard.write("d/a", "a")
    for name in (".gitattributes", "d/.gitattributes"):
        os.mkfifo(yard.root / name)
    assert covered_by(yard, yard.take()) == {"d/a"}


@pytest.mark.parametrize("name", [".codingagent", "sub dir/[home]*"])
def test_our_own_folders_do_not_exist(yard: Yard, name: str) -> None:
    """Design, workspace: a home inside the workspace is invisible, whatever its ignore file says."""
    home = yard.root / name
    yard.write(".gitignore", "!/.codingagent/\n!.codingagent/**\n!*\n")
    yard.write(f"{name}/sessions/x/journal.jsonl", "one")
    yard.write(f"{name}/.gitignore", "!*\n")
    yard.write("sub dir/h", "h")
    yard.store = home / "sessions/x/checkpoints"
    yard.again(hidden=(home,))
    first = yard.checkpoints.take()
    assert covered_by(yard, first.id) == {".gitignore", "sub dir/h"}
    assert first.left_out == ()
    yard.write(f"{name}/sessions/x/journal.jsonl", "two")
    yard.write("a", "a")
    assert yard.kinds(first.id, yard.take()) == {"a": "added"}
    (yard.root / "a").rename(home / "a")
    (yard.root / "a").symlink_to(home)
    before = all_bytes(home / "sessions" / "x" / "journal.jsonl")
    now = yard.take()
    restored = yard.restore(first.id, now, ["a", f"{name}/a", f"{name}/.gitignore"])
    assert restored.left_alone == ()
    assert (home / "a").read_bytes() == b"a"
    assert all_bytes(home / "sessions" / "x" / "journal.jsonl") == before


# --- no say for the workspace ----------------------------------------------------------------------


def plant(folder: Path, marker: Path) -> None:
    """Makes a repository in which every setting that can name a program names one."""
    trap = folder.parent / "trap.sh"
    trap.write_text(f"#!/bin/sh\necho $0 $* >> '{marker}'\ncat\n")
    trap.chmod(0o755)
    git(folder, "init", "-q")
    config = f"""
[core]
\tfsmonitor = {trap}
\thooksPath = {folder}/hooks
\tpager = {trap}
\tsshCommand = {trap}
\teditor = {trap}
\taskPass = {trap}
\talternateRefsCommand = {trap}
[filter "evil"]
\tclean = {trap} clean
\tsmudge = {trap} smudge
\tprocess = {trap} process
\trequired = true
[diff]
\texternal = {trap}
[diff "evil"]
\tcommand = {trap}
\ttextconv = {trap}
[merge "evil"]
\tdriver = {trap}
[include]
\tpath = {folder}/more
[uploadpack]
\tpackObjectsHook = {trap}
[gpg]
\tprogram = {trap}
[submodule "sub"]
\tupdate = !{trap}
"""
    (folder / ".git" / "config").write_text(config)
    attributes = "* filter=evil diff=evil merge=evil text eol=crlf ident working-tree-encoding=UTF-16\n"
    (folder / ".gitattributes").write_text(attributes)
    (folder / ".git" / "info" / "attributes").write_text(attributes)
    (folder / "hooks").mkdir()
    names = ("pre-commit", "post-commit", "reference-transaction", "post-index-change", "fsmonitor-watchman",
             "post-checkout", "pre-auto-gc", "post-rewrite", "update")  # fmt: skip
    for name in names:
        shutil.copy(trap, folder / "hooks" / name)
        shutil.copy(trap, folder / ".git" / "hooks" / name)


@pytest.mark.parametrize("shape", ["plain", "file", "commondir", "worktree"])
@pytest.mark.one_in(4, "yard")
def test_no_program_that_the_workspace_names_is_run(yard: Yard, shape: str) -> None:
    """Safety, finding 4: filters, hooks, monitors, drivers: none fires, and bytes stay as they are."""
    marker = yard.root.parent / "marker"
    nested = yard.root / "nested"
    nested.mkdir()
    for folder in (yard.root, nested):
        plant(folder, marker)
        if shape == "file":
            (folder / ".git").rename(folder / "elsewhere")
            (folder / ".git").write_text("gitdir: elsewhere\n")
        elif shape == "commondir":
            shutil.copytree(folder / ".git", folder / "common")
            (folder / ".git" / "commondir").write_text("../common\n")
        elif shape == "worktree":
            with (folder / ".git" / "config").open("a", encoding="utf-8") as config:
                config.write(f"[core]\n\tworktree = {yard.outside}\n\texcludesFile = /dev/null\n")
    mixed = b"one\r\ntwo\n$Id$\xff\n"
    yard.write("mixed.txt", mixed)
    yard.write("nested/mixed.txt", mixed)
    old, was = yard.take(), tree(yard.root)
    assert {"mixed.txt", "nested/mixed.txt", ".gitattributes"} <= covered_by(yard, old)
    for path in ("mixed.txt", "nested/mixed.txt"):
        yard.write(path, b"changed\r\n$Id$\n")
    new = yard.take()
    assert yard.kinds(old, new) == {"mixed.txt": "modified", "nested/mixed.txt": "modified"}
    assert "+changed" in yard.checkpoints.diff(old, new)
    yard.back_to(old)
    assert tree(yard.root) == was
    assert not marker.exists(), marker.read_text()


def test_the_trap_of_the_test_above_is_one(tmp_path: Path) -> None:
    """A test in which nothing can fire proves nothing: the person's git does run these programs."""
    folder = tmp_path / "ws"
    folder.mkdir()
    plant(folder, tmp_path / "marker")
    (folder / "a").write_text("a")
    with contextlib.suppress(subprocess.CalledProcessError):
        git(folder, "status")
        git(folder, "add", "-A")
    assert (tmp_path / "marker").exists()


def test_the_persons_repository_is_not_touched(yard: Yard) -> None:
    """Design, checkpoints: a private git directory; the person's index, branches and settings stay."""
    git(yard.root, "init", "-q")
    yard.write("a", "one")
    git(yard.root, "add", "a")
    git(yard.root, "commit", "-qm", "first")
    yard.write("staged", "x")
    git(yard.root, "add", "staged")
    yard.write("a", "two")
    before = all_bytes(yard.root / ".git")
    old = yard.take()
    yard.write("a", "three")
    yard.take()
    yard.back_to(old)
    assert all_bytes(yard.root / ".git") == before
    assert (yard.root / "a").read_bytes() == b"two"


@pytest.mark.parametrize("commits", [True, False], ids=["with commits", "without"])
@pytest.mark.parametrize("is_file", [True, False], ids=[".git file", ".git folder"])
@pytest.mark.one_in(4, "yard")
def test_repositories_inside_are_covered_like_folders(yard: Yard, commits: bool, is_file: bool) -> None:
    """Design, checkpoints: a repository in the workspace is files too, also one in another, or a late one."""
    yard.write("late/a", "a")
    first = yard.take()
    for path in ("late", "sub", "sub/inner/deep"):
        folder = yard.root / path
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "-q")
        yard.write(f"{path}/f", "f")
        yard.write(f"{path}/.gitignore", "*.o\n")
        yard.write(f"{path}/x.o", "o")
        if commits:
            git(folder, "add", "f")
            git(folder, "commit", "-qm", "x")
        if is_file:
            (folder / ".git").rename(yard.root.parent / path.replace("/", "-"))
            where = yard.root.parent / path.replace("/", "-")
            (folder / ".git").write_text(f"gitdir: {where}\n")
    second = yard.checkpoints.take()
    names = {
        f"{path}/{name}"
        for path in ("late", "sub", "sub/inner/deep")
        for name in ("f", ".gitignore", ".git" if is_file else ".git/config")
    }
    assert yard.kinds(first, second.id) == dict.fromkeys(names, "added")
    ignored = {left.path for left in second.left_out if left.reason == "ignored"}
    assert ignored == {"late/x.o", "sub/x.o", "sub/inner/deep/x.o"}
    yard.write("sub/inner/deep/f", "changed")
    yard.write("late/a", "changed")
    yard.write("sub/g", "new")
    third = yard.take()
    expected = {"sub/inner/deep/f": "modified", "late/a": "modified", "sub/g": "added"}
    assert yard.kinds(second.id, third) == expected
    assert b"160000 " not in stored_in(yard, "ls-tree", "-r", third)
    yard.back_to(second.id)
    assert yard.take() != third
    assert (yard.root / "late/a").read_bytes() == b"a"
    yard.back_to(first)
    assert {name for name in tree(yard.root) if not name.endswith((b".o", b".git"))} == {b"late/a"}


@pytest.mark.parametrize("inner", ["", "sub", "sub/inner"])
@pytest.mark.parametrize("kind", ["modified", "deleted"])
@pytest.mark.one_in(4, "yard")
def test_what_a_repository_tracks_is_covered_though_it_is_ignored(yard: Yard, inner: str, kind: str) -> None:
    """Design, checkpoints: git's own rule, for every repository of the workspace; the rest stays ignored."""
    folder = yard.root / inner
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    at = f"{inner}/" if inner else ""
    yard.write(f"{at}.gitignore", "build/\n*.log\n")
    names = [f"{at}build/deep/kept.txt", f"{at}kept.log"]
    for name in (*names, f"{at}build/deep/other.txt", f"{at}other.log"):
        yard.write(name, "one")
    git(folder, "add", "--force", *(name.removeprefix(at) for name in names))
    old = yard.checkpoints.take()
    ignored = {left.path for left in old.left_out if left.reason == "ignored"}
    assert f"{at}other.log" in ignored
    assert not ignored & set(names)
    for name in names:
        if kind == "modified":
            yard.write(name, "two")
        else:
            (yard.root / name).unlink()
    yard.write(f"{at}build/deep/other.txt", "two")
    yard.write(f"{at}build/made.txt", "made")
    new = yard.checkpoints.take()
    assert yard.kinds(old.id, new.id) == dict.fromkeys(names, kind)
    # Nothing changed since: then there is no further checkpoint, also one that looks for what is ignored.
    assert yard.take() == yard.take()
    assert yard.back_to(old.id).paths == tuple(names)
    assert [(yard.root / name).read_text() for name in names] == ["one", "one"]
    assert (yard.root / at / "build/deep/other.txt").read_text() == "two"
    assert yard.kinds(old.id, yard.take()) == {}


def test_a_workspace_below_a_repository_is_covered_by_its_index(yard: Yard) -> None:
    """Design, checkpoints: the index counts from the repository's root."""
    git(yard.root.parent, "init", "-q")
    (yard.root.parent / ".gitignore").write_text("*.log\n")
    yard.write(".gitignore", "*.log\n")
    yard.write("sub/kept.log", "one")
    yard.write("sub/other.log", "one")
    git(yard.root.parent, "add", "--force", "ws/sub/kept.log")
    old = yard.take()
    yard.write("sub/kept.log", "two")
    yard.write("sub/other.log", "two")
    assert yard.kinds(old, yard.take()) == {"sub/kept.log": "modified"}


def test_an_index_leads_nowhere_else(yard: Yard) -> None:
    """Design, checkpoints: the author of the repository wrote it; nothing outside is looked at."""
    git(yard.root, "init", "-q")
    yard.write(".gitignore", "build/\n")
    yard.write("build/x", "x")
    blob = git(yard.root, "hash-object", "-w", "build/x").strip()
    names = [b"build/../../out/secret", b"build//x", b"build/./x", b"build/.git/config"]
    (yard.root / ".git" / "index").write_bytes(forged_index(names, blob))
    taken = yard.take()
    # The stored name of its own configuration, which is where git runs programs from.
    assert covered_by(yard, taken) == {".gitignore", stored(".git/config")}


def test_a_file_that_became_a_repository_is_no_submodule(yard: Yard) -> None:
    """Design, checkpoints: no gitlink ever comes in."""
    yard.write("x", "file")
    first, was = yard.take(), tree(yard.root)
    (yard.root / "x").unlink()
    (yard.root / "x").mkdir()
    git(yard.root / "x", "init", "-q")
    yard.write("x/f", "f")
    git(yard.root / "x", "add", "f")
    git(yard.root / "x", "commit", "-qm", "x")
    second = yard.take()
    added = dict.fromkeys(("x/f", "x/.git/config"), "added")
    assert yard.kinds(first, second) == {"x": "deleted", **added}
    assert b"160000 " not in stored_in(yard, "ls-tree", "-r", second)
    restored = yard.back_to(first)
    assert [(left.path, left.reason) for left in restored.left_alone] == [
        ("x", "a folder with other files is there")
    ]
    shutil.rmtree(yard.root / "x")
    yard.back_to(first)
    assert tree(yard.root) == was


# --- putting back ----------------------------------------------------------------------------------


def test_only_what_is_named_is_put_back(yard: Yard) -> None:
    """Design, undo: the paths that the undone turns changed, and no others."""
    for name in "abc":
        yard.write(name, "one")
    old = yard.take()
    for name in "abc":
        yard.write(name, "two")
    restored = yard.back_to(old, ["a", "missing"])
    assert restored.paths == ("a", "missing")
    assert {name: (yard.root / name).read_bytes() for name in "abc"} == {
        "a": b"one", "b": b"two", "c": b"two",
    }  # fmt: skip


def test_what_changed_after_the_latest_checkpoint_is_left_alone(yard: Yard) -> None:
    """Design, undo: content that no checkpoint holds is never overwritten or removed."""
    yard.write("a", "one")
    yard.write("gone", "gone")
    old = yard.take()
    yard.write("a", "two")
    yard.write("new", "new")
    (yard.root / "gone").unlink()
    now = yard.take()
    yard.write("a", "three")
    yard.write("new", "newer")
    yard.write("gone", "someone made it again")
    restored = yard.restore(old, now, ["a", "new", "gone"])
    assert restored.paths == ()
    reason = "it was changed after the latest checkpoint, or is not covered"
    assert {(left.path, left.reason) for left in restored.left_alone} == {
        ("a", reason), ("new", reason), ("gone", reason),
    }  # fmt: skip
    assert (yard.root / "a").read_bytes() == b"three"


def test_a_link_on_the_way_is_an_obstacle(yard: Yard) -> None:
    """Safety, links: nothing is written or removed through one."""
    yard.write("d/secret", "mine")
    yard.write("d/more", "mine")
    old = yard.take()
    shutil.rmtree(yard.root / "d")
    (yard.root / "d").symlink_to(yard.outside)
    now = yard.take()
    assert yard.kinds(old, now) == {"d": "added", "d/secret": "deleted", "d/more": "deleted"}
    restored = yard.restore(old, now, ["d/secret", "d/more"])
    assert restored.paths == ()
    reason = "a file or link is where a folder was"
    assert {left.reason for left in restored.left_alone} == {reason}
    assert yard.back_to(old).left_alone == ()
    assert (yard.root / "d/secret").read_bytes() == b"mine"


def test_a_link_to_itself_takes_the_place_of_a_folder(yard: Yard) -> None:
    """Of the files below it git says that there are too many links, and not that they are gone."""
    yard.write("d/d", "mine")
    old = yard.take()
    shutil.rmtree(yard.root / "d")
    (yard.root / "d").symlink_to("d")
    now = yard.take()
    assert yard.kinds(old, now) == {"d": "added", "d/d": "deleted"}
    assert yard.back_to(old).left_alone == ()
    assert (yard.root / "d/d").read_bytes() == b"mine"
    assert yard.back_to(now).left_alone == ()
    assert (yard.root / "d").is_symlink()


def test_an_ignored_file_in_the_way_stays(yard: Yard) -> None:
    """Design, undo: what is ignored is in no checkpoint, so it stays and the path is named."""
    yard.write(".gitignore", "*.o\n")
    yard.write("x", "file")
    old = yard.take()
    (yard.root / "x").unlink()
    yard.write("x/a.o", "object")
    yard.write("x/a.c", "source")
    restored = yard.back_to(old)
    assert [left.path for left in restored.left_alone] == ["x"]
    assert tree(yard.root).keys() == {b".gitignore", b"x/a.o"}


def test_an_empty_folder_gives_way(yard: Yard) -> None:
    """A folder without files is in no checkpoint; nothing is lost with it."""
    yard.write("x", "file")
    old, was = yard.take(), tree(yard.root)
    (yard.root / "x").unlink()
    (yard.root / "x").mkdir()
    assert yard.back_to(old).left_alone == ()
    assert tree(yard.root) == was


def test_a_trap_under_the_temporary_name_is_removed(yard: Yard) -> None:
    """Safety, squatting: a link where the new content is written first is never followed."""
    yard.write("a", "one")
    old = yard.take()
    yard.write("a", "two")
    (yard.root / temporary_name("a")).symlink_to(yard.outside / "secret")
    assert yard.back_to(old).paths == ("a",)
    assert (yard.root / "a").read_bytes() == b"one"


def test_a_write_that_fails_leaves_no_halves(yard: Yard) -> None:
    """Design, workspace: a write is whole or not at all."""
    yard.write("d/a", bytes(2_000_000))
    old = yard.take()
    shutil.rmtree(yard.root / "d")
    now = yard.take()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        restored = yard.restore(old, now, ["d/a"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert [left.path for left in restored.left_alone] == ["d/a"]
    assert list(yard.root.iterdir()) == []
    assert yard.restore(old, now, ["d/a"]).paths == ("d/a",)


@pytest.mark.deep
def test_many_large_files_are_put_back(yard: Yard) -> None:
    """Design, speed: content is read in batches that memory can hold."""
    source = random.Random(1)
    for number in range(7):
        yard.write(f"f{number}", source.randbytes(4_000_000 + number))
    old, was = yard.take(), tree(yard.root)
    for path in yard.root.iterdir():
        path.unlink()
    assert len(yard.back_to(old).paths) == 7
    assert tree(yard.root) == was


_RESTORER = """
import os, sys
from pathlib import Path
from codingagent.checkpoints.store import Checkpoints
from codingagent.workspace.git_files import Git
from codingagent.process.runner import run_tool
git, store, root, act, *ids = sys.argv[1:]
checkpoints = Checkpoints(Path(store), Path(root), (), Git(git, run_tool))
print("ready", flush=True)
if act == "restore":
    old, now = ids
    paths = [change.path for change in checkpoints.changes(old, now)]
    checkpoints.restore(old, now, paths)
    print("done", flush=True)
else:
    while True:
        for path in Path(root).iterdir():
            path.write_bytes(os.urandom(9000))
        print(checkpoints.take().id, flush=True)
"""


def test_a_killed_restore_is_finished_by_the_next(yard: Yard) -> None:
    """Design, nothing is lost: killed at any instant and run again it ends in the same state."""
    for number in range(150):
        yard.write(f"d{number % 7}/f{number}", f"one {number}")
    old, was = yard.take(), tree(yard.root)
    for number in range(150):
        if number % 3:
            yard.write(f"d{number % 7}/f{number}", f"two {number}")
            yard.write(f"e{number % 7}/f{number}", "new")
        else:
            (yard.root / f"d{number % 7}/f{number}").unlink()
    now = yard.take()
    paths = [change.path for change in yard.checkpoints.changes(old, now)]
    # Killed as soon as this many paths are as they should be.
    for count in (1, 60, 130):
        words = (GIT or "", str(yard.store), str(yard.root), "restore", old, now)
        with python(_RESTORER, *words) as process:
            assert line_from(process) == "ready"
            wait_until(
                lambda: process.poll() is not None or so_far(yard.root, was) >= count  # noqa: B023
            )
            process.kill()
    restored = yard.restore(old, now, paths)
    assert restored.left_alone == ()
    assert tree(yard.root) == was


def so_far(root: Path, was: Tree) -> int:
    """Return how many paths are as they were, though someone changes them meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        found = tree(root)
        return sum(found.get(path) == what for path, what in was.items())
    return 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs exchanged names, as Linux has them")
def test_swapped_folders_never_lead_outside(tmp_path: Path) -> None:
    """Safety, races: a link put in a folder's place, over and over, gains nothing."""
    root, outside = tmp_path / "ws", tmp_path / "out"
    for folder in (root, root / "d", outside):
        folder.mkdir()
    if not can_swap(tmp_path):
        pytest.skip("this disk can't exchange two names")
    checkpoints = Checkpoints(tmp_path / "store", root, (), Git(GIT or "", run_tool))
    yard = Yard(root, outside, tmp_path / "store", checkpoints, Checkpoints)
    with contextlib.closing(checkpoints):
        for name in ("a", "b"):
            (root / "d" / name).write_bytes(b"inside")
        (outside / "a").write_bytes(SECRET)
        old = yard.take()
        (root / "l").symlink_to(outside)
        with swapping(root / "d", root / "l"):
            for number in range(12):
                with contextlib.suppress(OSError):
                    (root / "d" / "b").write_bytes(b"inside %d" % number)
                    (outside / "b").unlink(missing_ok=True)
                now = yard.take()
                paths = [change.path for change in checkpoints.changes(old, now)]
                checkpoints.restore(old, now, paths)
        assert all(b"inside" not in data for data in [(outside / "a").read_bytes()])
        assert (outside / "a").read_bytes() == SECRET
        assert SECRET not in all_contents(yard)


# --- the store -------------------------------------------------------------------------------------


def test_unchanged_content_is_stored_once(yard: Yard) -> None:
    """Design, checkpoints: the store stays small."""
    data = random.Random(1).randbytes(1_000_000)
    for name in "abcdef":
        yard.write(name, data)
    yard.take()
    for number in range(5):
        yard.write("small", str(number))
        yard.take()
    size = sum(len(data) for data in all_bytes(yard.store).values())
    assert size < 1_300_000


@pytest.mark.parametrize(
    "leftover",
    ["refs/heads/main.lock", "index.lock", "HEAD.lock", "objects/pack/tmp_pack_x", "index.empty.new"],
)
def test_what_a_kill_left_is_removed(yard: Yard, leftover: str) -> None:
    """Design, nothing is lost: a stale lock does not keep us from going on."""
    yard.write("a", "one")
    yard.take()
    path = yard.store / leftover
    path.write_bytes(b"half")
    yard.write("a", "two")
    yard.take()
    assert not path.exists()


@pytest.mark.parametrize("damage", ["garbage", "short", "gone", "empty", "flipped", "at once"])
@pytest.mark.one_in(4, "yard")
def test_a_damaged_index_is_made_anew(yard: Yard, damage: str) -> None:
    """Design, checkpoints: the index is only a memory of the latest commit, also within one process."""
    yard.write("a", "one")
    yard.write("gone", "x")
    old = yard.take()
    index = yard.store / f"index.{old}"
    data = index.read_bytes()
    damaged = {"garbage": os.urandom(200), "short": data[:-30], "empty": b""}
    if damage == "gone":
        index.unlink()
    else:
        flipped = data[:-1] + bytes([data[-1] ^ 1])
        index.write_bytes(damaged.get(damage, flipped))
    if damage != "at once":
        yard.again()
    yard.write("a", "two")
    (yard.root / "gone").unlink()
    new = yard.checkpoints.take()
    assert new.set_aside == ""
    assert yard.kinds(old, new.id) == {"a": "modified", "gone": "deleted"}


def test_a_killed_commit_is_as_if_it_had_not_been(yard: Yard) -> None:
    """Design, checkpoints: the index says which commit is the latest, and the next one goes on from it."""
    yard.write("a", "one")
    first = yard.take()
    saved = (yard.store / f"index.{first}").read_bytes()
    yard.write("ghost", "x")
    second = yard.take()
    # Killed after git had made the commit, before the index was in place.
    (yard.store / f"index.{second}").unlink()
    (yard.store / f"index.{first}").write_bytes(saved)
    (yard.root / "ghost").unlink()
    yard.again()
    assert yard.kinds(first, yard.take()) == {}
    # Killed after the index was in place, before the earlier one was gone.
    yard.write("b", "b")
    third = yard.take()
    (yard.store / f"index.{first}").write_bytes(saved)
    yard.again()
    assert yard.take() == third


@pytest.mark.one_in(4, "yard")
@pytest.mark.parametrize("damage", ["objects", "commit", "branch", "folder"])
def test_a_damaged_store_is_set_aside(yard: Yard, damage: str) -> None:
    """Design, checkpoints: what is damaged is named in one line and kept; a new store is begun."""
    yard.write("d/a", "one")
    old = yard.take()
    yard.write("d/a", "two")
    new = yard.take()
    objects = yard.store / "objects"
    if damage == "objects":
        for path in objects.rglob("*"):
            if path.is_file():
                path.chmod(0o644)
                path.write_bytes(b"damaged")
    elif damage == "branch":
        (yard.store / f"index.{new}").unlink()
        (yard.store / "refs/heads/main").write_bytes(b"\0" * 41)
    else:
        name = f"{new}:files/d" if damage == "folder" else new
        lost = stored_in(yard, "rev-parse", name).decode().strip()
        (objects / lost[:2] / lost[2:]).unlink()
    yard.again()
    if damage in ("objects", "commit"):  # else only the way to the latest commit, or its files, is lost
        with pytest.raises(WorkError, match=r"^the checkpoint '[0-9a-f]+' can't be read from .*$"):
            yard.checkpoints.changes(old, new)
    yard.write("d/a", "three")
    taken = yard.checkpoints.take()
    assert taken.set_aside == f"{yard.store}.damaged-1"
    assert Path(taken.set_aside, "HEAD").exists()
    assert covered_by(yard, taken.id) == {"d/a"}
    yard.write("d/a", "four")
    assert yard.kinds(taken.id, yard.take()) == {"d/a": "modified"}


def test_a_vanished_store_is_said_and_begun_anew(yard: Yard) -> None:
    """Design, checkpoints: one line says what happened."""
    yard.write("a", "one")
    old = yard.take()
    yard.write("a", "two")
    new = yard.take()
    shutil.rmtree(yard.store)
    with pytest.raises(WorkError, match=r"^.*$"):
        yard.checkpoints.changes(new, old)  # what it did not make itself
    again = yard.take()
    assert covered_by(yard, again) == {"a"}
    with pytest.raises(WorkError, match="can't be used: bad object"):
        yard.restore(old, again, ["a"])


def test_settings_written_into_the_store_are_overwritten(yard: Yard) -> None:
    """Safety: a command that finds the store can't have a program run by it."""
    yard.write("a", "one")
    old = yard.take()
    yard.write("a", "two")
    new = yard.take()
    marker = yard.root.parent / "marker"
    for act in (lambda: yard.checkpoints.diff(old, new), yard.take, lambda: yard.back_to(old)):
        evil = f"[core]\n\tfsmonitor = touch '{marker}'; false\n[diff]\n\texternal = touch '{marker}'\n"
        (yard.store / "config").write_text(evil)
        act()
        assert "touch" not in (yard.store / "config").read_text()
    assert not marker.exists()


def test_a_store_that_leads_elsewhere_is_not_followed(yard: Yard) -> None:
    """Safety: git obeys the config of the folder that `commondir` names, unless it is told otherwise."""
    yard.write("a", "one")
    old = yard.take()
    yard.write("a", "two")
    new = yard.take()
    marker, evil = yard.root.parent / "marker", yard.store.parent / "evil"
    (evil / "objects" / "pack").mkdir(parents=True)
    (evil / "refs" / "heads").mkdir(parents=True)
    (evil / "HEAD").write_text("ref: refs/heads/main\n")
    (evil / "config").write_text(
        f"[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tfsmonitor = touch '{marker}'; false\n"
        f'[extensions]\n\tpartialClone = o\n[remote "o"]\n\tpromisor = true\n'
        f'\turl = ext::sh -c touch% {marker}\n[protocol "ext"]\n\tallow = always\n'
    )
    (yard.store / "commondir").write_text("../evil\n")
    yard.write("a", "three")
    yard.take()
    yard.checkpoints.diff(old, new)
    with pytest.raises(WorkError):
        yard.checkpoints.diff("a" * 40, "b" * 40)
    yard.back_to(old)
    assert not marker.exists()
    shutil.rmtree(evil)


@pytest.mark.parametrize("id_", ["", "HEAD", "--all", "0" * 40, "x\ny"])
def test_what_is_no_checkpoint_is_said(yard: Yard, id_: str) -> None:
    """A wrong id is an error in one line, never an option to git."""
    yard.write("a", "one")
    good = yard.take()
    for old, new in ((id_, good), (good, id_)):
        with pytest.raises(WorkError, match=r"^[^\n]+$"):
            yard.checkpoints.changes(old, new)


@pytest.mark.parametrize("files", [5, 1])
def test_a_full_disk_fails_the_checkpoint_and_harms_no_other(tmp_path: Path, files: int) -> None:
    """Design, nothing is lost: a full disk is said, and the earlier checkpoints stand.

    Of five files, git stores the first while the others are read.
    """
    root = tmp_path / "ws"
    root.mkdir()
    is_full = False

    def run(
        argv: Sequence[str], variables: Mapping[str, str], data: bytes
    ) -> "subprocess.CompletedProcess[bytes]":
        # A limit on file sizes fails a write as a full disk does; git alone is held to it.
        limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 100; exec "$@"', "sh", *argv]
        return run_tool(limited if is_full else argv, {"PATH": os.environ["PATH"], **variables}, data)

    with contextlib.closing(Checkpoints(tmp_path / "store", root, (), Git(GIT or "", run))) as checkpoints:
        (root / "a").write_text("one")
        old = checkpoints.take().id
        before = {p: p.read_bytes() for p in (tmp_path / "store").glob("index.*")}
        for number in range(files):
            (root / f"b{number}").write_bytes(random.Random(number).randbytes(600_000))
        is_full = True
        with pytest.raises(WorkError, match=r"^[^\n]*: the disk is full$"):
            checkpoints.take()
        assert 0 < checkpoints.files_read <= files + 1
        is_full = False
        assert {p: p.read_bytes() for p in (tmp_path / "store").glob("index.*")} == before
        new = checkpoints.take()
        assert new.set_aside == ""
        assert checkpoints.files_read == 0
        assert [change.kind for change in checkpoints.changes(old, new.id)] == ["added"] * files
        written = {path.name: path.read_bytes() for path in root.iterdir()}
        for name in written:
            (root / name).unlink()
        checkpoints.restore(new.id, checkpoints.take().id, [*written])
        assert {path.name: path.read_bytes() for path in root.iterdir()} == written


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.deep)])
def test_killed_at_any_instant_the_earlier_checkpoints_stand(yard: Yard, kills: int) -> None:
    """Design, nothing is lost: killed at any instant, what was taken can be read, and we go on."""
    for number in range(20):
        yard.write(f"f{number}", "x")
    pauses = random.Random(7)
    ids: list[str] = [yard.take()]
    for _ in range(kills):
        words = (GIT or "", str(yard.store), str(yard.root), "take")
        with python(_RESTORER, *words) as process:
            assert line_from(process) == "ready"
            ids.append(line_from(process))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(pauses.uniform(0, 0.12))
            process.kill()
            assert process.stdout is not None
            ids += process.stdout.read().decode().split()
        yard.again()
        taken = yard.checkpoints.take()
        assert taken.set_aside == ""
        ids.append(taken.id)
        now = {change.path for change in yard.checkpoints.changes(ids[0], taken.id)}
        assert now <= {f"f{number}" for number in range(20)}
        is_true_to_disk(yard, taken)
    for one, other in pairwise(ids):
        yard.checkpoints.changes(one, other)
        assert yard.checkpoints.diff(one, other) is not None


def is_true_to_disk(yard: Yard, taken: Checkpoint) -> None:
    """Checks every file of a checkpoint against the disk."""
    for path in covered_by(yard, taken.id):
        kept = stored_in(yard, "cat-file", "blob", f"{taken.id}:files/{path}")
        assert kept == (yard.root / path).read_bytes()


def test_a_workspace_that_was_replaced_is_said(yard: Yard) -> None:
    """Design, workspace: the root is the folder that was opened."""
    yard.take()
    moved = yard.root.rename(yard.root.parent / "moved")
    yard.root.mkdir()
    if yard.kind is Checkpoints:
        with pytest.raises(WorkError, match="was moved or replaced"):
            yard.checkpoints.take()
    yard.root.rmdir()
    moved.rename(yard.root)


def test_a_workspace_that_can_not_be_opened_is_said(yard: Yard) -> None:
    """One that goes in this instant."""
    if yard.kind is Checkpoints:
        with pytest.raises(WorkError, match=r"^put .*gone back where it was: it can't be opened: "):
            Checkpoints(yard.store, yard.root / "gone", (), Git(GIT or "", run_tool))


# --- the diff --------------------------------------------------------------------------------------


def test_the_diff_is_plain_and_unified(yard: Yard) -> None:
    """Design, diff: unified, without colour; binary files are named."""
    yard.write("sub/a.py", "one\ntwo\n")
    yard.write("bin", bytes(range(256)))
    old = yard.take()
    yard.write("sub/a.py", "one\nTWO\n")
    yard.write("bin", bytes(reversed(range(256))))
    new = yard.take()
    text = yard.checkpoints.diff(old, new)
    assert "--- a/sub/a.py\n+++ b/sub/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n" in text
    assert "Binary files a/bin and b/bin differ" in text
    assert "\x1b" not in text
    assert yard.checkpoints.diff(old, new, ["sub/a.py"]).count("diff --git") == 1
    assert yard.checkpoints.diff(old, new, ["nothing"]) == ""
    short = yard.checkpoints.diff(old, new, limit_bytes=300)
    assert short.count("diff --git") == 1
    assert short.endswith("(1 more files differ; too much to show at once)\n")


# --- all of it -------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d e", "ü", "-x"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
WHATS = st.one_of(
    st.tuples(st.just("file"), st.binary(max_size=60), st.sampled_from([0o644, 0o755, 0o600, 0o444, 0o777])),
    st.tuples(st.just("link"), st.sampled_from([b"a", b"../out", b"nowhere", b"."]), st.just(0)),
)
TREES = st.dictionaries(PATHS, WHATS, max_size=12)


def lay(root: Path, wanted: dict[str, tuple[str, bytes, int]]) -> None:
    """Puts files there; what is in the way of one goes."""
    for path, (kind, data, mode) in wanted.items():
        place = root / path
        for above in [*reversed(place.relative_to(root).parents)][1:]:
            if (root / above).is_symlink() or (root / above).is_file():
                (root / above).unlink()
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink() or place.is_file():
            place.unlink()
        elif place.is_dir():
            shutil.rmtree(place)
        if kind == "link":
            place.symlink_to(os.fsdecode(data))
        else:
            place.write_bytes(data)
            place.chmod(mode)


@fewer_examples(3)
@given(first=TREES, second=TREES, gone=st.randoms(use_true_random=False))
def test_there_and_back_again(
    first: dict[str, tuple[str, bytes, int]], second: dict[str, tuple[str, bytes, int]], gone: random.Random
) -> None:
    """Design, undo: what comes back is byte for byte what was, and so is what was undone."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "ws")
        root.mkdir()
        checkpoints = Checkpoints(Path(folder, "store"), root, (), Git(GIT or "", run_tool))
        yard = Yard(root, root, Path(folder, "store"), checkpoints, Checkpoints)
        with contextlib.closing(checkpoints):
            lay(root, first)
            old, was = yard.take(), tree(root)
            for path in sorted(tree(root)):
                if gone.random() < 0.3:
                    (root / os.fsdecode(path)).unlink()
            lay(root, second)
            new, became = yard.take(), tree(root)
            yard.kinds(old, new)  # which compares the two ways to know
            assert yard.back_to(old).left_alone == ()
            assert tree(root) == was
            assert yard.kinds(old, yard.take()) == {}
            assert yard.back_to(new).left_alone == ()
            assert tree(root) == became


def test_notes_are_read_again_and_odd_names_survive() -> None:
    """A name that is not UTF-8 is a name like others."""
    notes = Notes(left=(LeftOut("a\udc80", "large"),), unusual={"b": State("0", 0o100700)})
    assert Notes.decoded(notes.encoded()) == notes
    for damaged in (b"", b"{}x", b'{"left":[["a"]]}', b'{"usual":[1]}'):
        with pytest.raises(ValueError):
            Notes.decoded(damaged)
