"""The workspace: what may be read and changed, and that nothing else ever is."""

import contextlib
import os
import resource
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from codingagent.errors import OperationError, UsageError, WorkError
from codingagent.model.events import FolderEntry
from codingagent.workspace.dirfd import Folder, temporary_name, walk_names
from codingagent.workspace.workspace import READ_LIMIT_BYTES, Workspace
from tests.helpers import NamedWorkspace, descriptors, grows_with, line_from, python
from tests.rows import each_row

SECRET = b"SECRET"


@dataclass
class Yard:
    """A workspace between neighbours that must stay as they are."""

    root: Path
    outside: Path
    workspace: Workspace

    def write(self, path: str, data: bytes) -> None:
        """Writes as the agent does: reads first if there is a file."""
        self.workspace.check_writable(path)
        seen = self.workspace.read(path) if self.workspace.exists(path) else None
        self.workspace.write(path, data, seen)

    def edit(self, path: str) -> None:
        self.workspace.check_writable(path)
        seen = self.workspace.read(path)
        self.workspace.write(path, seen.data + b"edited", seen)

    def enter(self, path: str) -> None:
        with self.workspace.folder(path):
            pass

    def listed(self, always: frozenset[str] = frozenset()) -> list[str]:
        return sorted(self.workspace.listing(always).files)


Act = Callable[[Yard, str], object]

pytestmark = pytest.mark.one_in(2, "yard")

READ: Act = lambda yard, path: yard.workspace.read(path)  # noqa: E731  # a table of acts
CREATE: Act = lambda yard, path: yard.workspace.write(path, b"new", None)  # noqa: E731
WRITE: Act = lambda yard, path: yard.write(path, b"new")  # noqa: E731
EDIT: Act = lambda yard, path: yard.edit(path)  # noqa: E731
DELETE: Act = lambda yard, path: yard.workspace.delete(path)  # noqa: E731
ENTER: Act = lambda yard, path: yard.enter(path)  # noqa: E731
LIST: Act = lambda yard, path: yard.workspace.entries(path)  # noqa: E731
DIGEST: Act = lambda yard, path: yard.workspace.digest(path)  # noqa: E731
CHANGES = {"create": CREATE, "write": WRITE, "edit": EDIT, "delete": DELETE}
ALL = {"read": READ, **CHANGES, "enter": ENTER, "list": LIST, "digest": DIGEST}


def acts(table: dict[str, Act]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("act", table.values(), ids=table.keys())


@pytest.fixture(params=[Workspace, NamedWorkspace], ids=["handles", "names"])
def yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Yard]:
    """A workspace with neighbours; after each test these are unchanged and nothing is left over."""
    root, outside, twin = tmp_path / "ws", tmp_path / "out", tmp_path / "ws-evil"
    for folder in (root, outside, twin, root / "sub"):
        folder.mkdir()
    for folder in (outside, twin):
        (folder / "secret").write_bytes(SECRET)
    (root / "ok.txt").write_bytes(b"ok\n")
    (root / "sub" / "in.txt").write_bytes(b"in\n")
    handles = descriptors()
    workspace = request.param(root)
    with contextlib.closing(workspace):
        yield Yard(root, outside, workspace)
    for folder in (outside, twin):
        assert [path.name for path in folder.iterdir()] == ["secret"]
        assert (folder / "secret").read_bytes() == SECRET
    assert not list(tmp_path.rglob(".ca-*.tmp"))
    assert descriptors() == handles


# --- plain use -------------------------------------------------------------------------------------


def test_a_file_is_written_read_and_deleted(yard: Yard) -> None:
    """Design, workspace: a write is whole, what is read is what was written."""
    yard.write("new.bin", bytes(range(256)))
    assert yard.workspace.read("new.bin").data == bytes(range(256))
    yard.write("new.bin", b"")
    assert yard.workspace.read("new.bin").data == b""
    yard.workspace.delete("new.bin")
    assert not yard.workspace.exists("new.bin")
    assert yard.workspace.digest("new.bin") is None


def test_missing_parents_are_made(yard: Yard) -> None:
    """Specification 003, CREATE_FILE: creates parent directories if needed."""
    yard.write("a/b/c/new.txt", b"new")
    assert (yard.root / "a/b/c/new.txt").read_bytes() == b"new"


@pytest.mark.parametrize("path", ["no.txt", "no/deep.txt"])
@acts({"read": READ, "edit": EDIT, "delete": DELETE})
def test_a_missing_file_is_not_found(yard: Yard, act: Act, path: str) -> None:
    """Specification 003, execution errors: file not found for EDIT_FILE, DELETE_FILE, READ_FILE."""
    with pytest.raises(OperationError, match=f"^File '{path}' not found$"):
        act(yard, path)


@acts(ALL)
def test_a_file_is_no_folder(yard: Yard, act: Act) -> None:
    """Design, workspace: a path that goes on behind a file is refused."""
    with pytest.raises(OperationError, match="is a file, not a folder"):
        act(yard, "ok.txt/x")
    assert (yard.root / "ok.txt").read_bytes() == b"ok\n"


@acts({"read": READ, **CHANGES})
def test_a_folder_is_no_file(yard: Yard, act: Act) -> None:
    """Design, workspace: only regular files are read or replaced."""
    with pytest.raises(OperationError, match="is a folder"):
        act(yard, "sub")
    assert (yard.root / "sub" / "in.txt").exists()


def test_a_command_runs_in_a_folder_of_the_workspace(yard: Yard) -> None:
    """Design, commands: cwd the workspace, or a folder within it."""
    for path, expected in ((".", yard.root), ("sub", yard.root / "sub")):
        with yard.workspace.folder(path) as folder:
            found = os.fstat(folder) if isinstance(folder, int) else Path(folder).stat()
            assert found.st_ino == expected.stat().st_ino
    for path, reason in (("no", "Folder 'no' not found"), ("ok.txt", "is not a folder")):
        with pytest.raises(OperationError, match=reason):
            yard.enter(path)


@pytest.mark.parametrize("name", ["é" * 127, "a" * 255, "two words", "$HOME", "%41", "-rf", "~x"])
def test_an_odd_name_is_taken_as_it_stands(yard: Yard, name: str) -> None:
    """Design, workspace: names are opened as they were checked, never expanded or trimmed."""
    yard.write(name, b"odd")
    assert (yard.root / name).read_bytes() == b"odd"
    yard.workspace.delete(name)
    assert not (yard.root / name).exists()


# --- links that lead out ---------------------------------------------------------------------------


@pytest.fixture(name="trapped")
def _trapped(yard: Yard) -> Yard:
    """Return the yard with links that lead out."""
    root, outside = yard.root, yard.outside
    links: dict[str, str | Path] = {
        "absolute": outside,
        "relative": "../out",
        "up": "..",
        "twin": f"{root}-evil",
        "step-out": "sub/../../out",
        "over-the-root": f"{root}/../out",
        "first": "second",
        "second": outside,
        "sub/deep": "../../out",
        "machine": "/",
        "self": "/proc/self/root",
        "cwd": "/proc/self/cwd",
        "slashes": f"//{outside}",
        "leaf": outside / "secret",
        "leaf-relative": "../out/secret",
        "leaf-of-leaf": "leaf",
        "dangling": outside / "nothing",
        "dangling-deep": outside / "no" / "thing",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    return yard


OUTSIDE_PATHS = [
    *("absolute/secret", "relative/secret", "up/out/secret", "twin/secret", "step-out/secret"),
    *("over-the-root/secret", "first/secret", "sub/deep/secret", "machine/etc/passwd"),
    *("self/etc/passwd", "cwd/secret", "slashes/secret", "absolute/new.txt", "absolute/a/b/new.txt"),
]
OUTSIDE_LEAVES = ["leaf", "leaf-relative", "leaf-of-leaf", "dangling", "dangling-deep", "absolute"]


@each_row("path", OUTSIDE_PATHS)
@acts(ALL)
def test_a_path_through_a_link_out_is_refused(trapped: Yard, act: Act, path: str) -> None:
    """Specification 003, path sandboxing: paths that escape are rejected with these words."""
    with pytest.raises(OperationError, match=r"^REJECTED: Path is outside workspace"):
        act(trapped, path)


@each_row("path", OUTSIDE_LEAVES)
@acts({name: act for name, act in ALL.items() if name != "delete"})
def test_a_link_out_is_not_followed_at_the_end_either(trapped: Yard, act: Act, path: str) -> None:
    """Specification 003, path sandboxing: the canonical path must start with the workspace root."""
    with pytest.raises(OperationError, match=r"^REJECTED: Path is outside workspace"):
        act(trapped, path)


@pytest.mark.parametrize("path", OUTSIDE_LEAVES)
def test_deleting_a_link_leaves_its_target(trapped: Yard, path: str) -> None:
    """Design, workspace: what is deleted is the link, never what it names."""
    trapped.workspace.delete(path)
    assert not (trapped.root / path).is_symlink()
    assert (trapped.outside / "secret").exists()


@each_row("path", ["../out/secret", "sub/../../out/secret", ".."])
@acts(ALL)
def test_the_walk_itself_does_not_step_out(yard: Yard, act: Act, path: str) -> None:
    """Design, workspace: paths are checked twice, as text and at use."""
    with pytest.raises(OperationError):
        act(yard, path)


# --- links that stay inside ------------------------------------------------------------------------


def _lay_links(yard: Yard) -> None:
    links: dict[str, str | Path] = {
        "to-file": "sub/in.txt",
        "to-folder": "sub",
        "by-name": yard.root / "sub" / "in.txt",
        "root-by-name": yard.root,
        "sub/back": "../ok.txt",
        "sub/dots": "./.././sub//in.txt",
        "two": "to-file",
    }
    for name, target in links.items():
        (yard.root / name).symlink_to(target)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("to-file", "sub/in.txt"),
        ("to-folder/in.txt", "sub/in.txt"),
        ("by-name", "sub/in.txt"),
        ("root-by-name/sub/in.txt", "sub/in.txt"),
        ("sub/back", "ok.txt"),
        ("to-folder/back", "ok.txt"),
        ("sub/dots", "sub/in.txt"),
        ("two", "sub/in.txt"),
    ],
)
def test_a_link_that_stays_inside_is_followed(yard: Yard, path: str, target: str) -> None:
    """Design, workspace: writing through a link that stays inside replaces its target."""
    _lay_links(yard)
    assert yard.workspace.read(path).data == (yard.root / target).read_bytes()
    was_link = (yard.root / path).is_symlink()
    yard.write(path, b"through")
    assert (yard.root / target).read_bytes() == b"through"
    assert (yard.root / path).is_symlink() == was_link


def test_a_root_reached_by_a_link_is_known_by_both_names(yard: Yard, tmp_path: Path) -> None:
    """Design, workspace: an absolute target inside the root starts again at the root."""
    (tmp_path / "alias").symlink_to(yard.root)
    (yard.root / "link").symlink_to(tmp_path / "alias" / "ok.txt")
    with contextlib.closing(type(yard.workspace)(tmp_path / "alias")) as workspace:
        assert workspace.root == yard.root
        assert workspace.read("link").data == b"ok\n"


def test_a_new_file_is_made_through_a_dangling_link_inside(yard: Yard) -> None:
    """Design, workspace: a link that stays inside is followed, as canonical paths are."""
    (yard.root / "link").symlink_to("sub/later.txt")
    yard.write("link", b"now")
    assert (yard.root / "sub" / "later.txt").read_bytes() == b"now"
    assert (yard.root / "link").is_symlink()


@acts({name: act for name, act in ALL.items() if name != "delete"})
def test_a_loop_of_links_is_refused(yard: Yard, act: Act) -> None:
    """Design, workspace: a link is read at most 40 times."""
    (yard.root / "loop").symlink_to("loop")
    (yard.root / "ping").symlink_to("pong/x")
    (yard.root / "pong").symlink_to("ping/x")
    for path in ("loop", "ping"):
        with pytest.raises(OperationError, match="has too many links in it"):
            act(yard, path)


def test_a_chain_of_forty_links_is_the_longest(yard: Yard) -> None:
    """Design, workspace: links are read at most 40 times."""
    (yard.root / "link-0").symlink_to("ok.txt")
    for number in range(1, 41):
        (yard.root / f"link-{number}").symlink_to(f"link-{number - 1}")
    assert yard.workspace.read("link-39").data == b"ok\n"
    with pytest.raises(OperationError, match="has too many links in it"):
        yard.workspace.read("link-40")


# --- what is no plain file -------------------------------------------------------------------------


def _make_special(yard: Yard, kind: str) -> str:
    path = yard.root / kind
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "socket":
            # The name is short: an address has 108 bytes at most.
            with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(yard.root):
                server.bind(kind)
        case _:
            try:
                os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            except OSError:
                pytest.skip("devices can't be made here: that needs root")
    return kind


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
@pytest.mark.parametrize("through_link", [False, True], ids=["itself", "link"])
@acts({"read": READ, **CHANGES})
def test_a_special_file_is_refused_at_once(yard: Yard, act: Act, kind: str, through_link: bool) -> None:
    """Design, workspace: a FIFO, device or socket is refused without opening it for data."""
    if through_link and act is DELETE:
        pytest.skip("deleting a link removes the link")
    path = _make_special(yard, kind)
    if through_link:
        (yard.root / "link").symlink_to(path)
        path = "link"
    with pytest.raises(OperationError, match="is not a regular file; only those can be used"):
        act(yard, path)
    assert not stat.S_ISREG((yard.root / kind).lstat().st_mode)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/stdin", "/dev/null"])
@acts({"read": READ, "write": WRITE, "edit": EDIT})
def test_a_link_to_a_device_leads_out(yard: Yard, act: Act, device: str) -> None:
    """Specification 003, path sandboxing: the resolved path must start with the workspace root."""
    (yard.root / "link").symlink_to(device)
    with pytest.raises(OperationError, match=r"^REJECTED: Path is outside workspace"):
        act(yard, "link")


def test_a_hard_link_outside_keeps_its_bytes(yard: Yard, tmp_path: Path) -> None:
    """Design, workspace: a write replaces the name, so another name of the file stays as it was."""
    other = tmp_path / "other"
    other.write_bytes(b"ORIGINAL")
    (yard.root / "twin").hardlink_to(other)
    yard.write("twin", b"new")
    assert (yard.root / "twin").read_bytes() == b"new"
    (yard.root / "twin-2").hardlink_to(other)
    yard.workspace.delete("twin-2")
    assert other.read_bytes() == b"ORIGINAL"


# --- modes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [(0o755, 0o755), (0o600, 0o600), (0o4755, 0o755), (0o2755, 0o755), (0o1644, 0o644)],
    ids=oct,
)
def test_a_replaced_file_keeps_its_mode_but_no_setuid(yard: Yard, before: int, after: int) -> None:
    """Design, workspace: the old file's mode is kept; setuid never passes to a model's bytes."""
    (yard.root / "ok.txt").chmod(before)
    yard.write("ok.txt", b"new")
    assert stat.S_IMODE((yard.root / "ok.txt").stat().st_mode) == after


def test_a_new_file_has_the_mode_that_the_person_chose(yard: Yard) -> None:
    """Design, workspace: the umask counts for a new file as for any other."""
    old = os.umask(0o027)
    try:
        yard.write("new.txt", b"new")
    finally:
        os.umask(old)
    assert stat.S_IMODE((yard.root / "new.txt").stat().st_mode) == 0o640


@acts({"write": WRITE, "edit": EDIT})
def test_a_read_only_file_is_not_replaced(yard: Yard, act: Act) -> None:
    """Design, workspace: a rename would pass over a mode that says no, so we ask first."""
    (yard.root / "ok.txt").chmod(0o444)
    with pytest.raises(OperationError, match=r"'ok\.txt' is read-only"):
        act(yard, "ok.txt")
    assert (yard.root / "ok.txt").read_bytes() == b"ok\n"


# --- .git ------------------------------------------------------------------------------------------

GIT_NAMES = [
    *(".git", ".GIT", ".Git", ".git.", ".git ", ".git. .", "GIT~1", "git~1", "git~2"),
    *(".g\u200cit", ".\u200bgit", "\ufeff.git", ".ｇｉｔ", ".git::$INDEX_ALLOCATION", ".git:x"),
]


@each_row("name", GIT_NAMES)
@each_row("shape", ["{}/config", "sub/{}/hooks/pre-commit", "a file/{}"])
@acts(CHANGES)
def test_git_is_not_writable_in_any_spelling(yard: Yard, act: Act, name: str, shape: str) -> None:
    """Design, workspace: `.git` is not writable through file operations."""
    path = shape.format(name)
    target = yard.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(b"git's")
    with pytest.raises(OperationError, match=r"^REJECTED: .* is in \.git, which is read-only"):
        act(yard, path)
    assert target.read_bytes() == b"git's"


@acts(CHANGES)
def test_git_is_not_writable_through_a_link(yard: Yard, act: Act) -> None:
    """Design, workspace: `.git` is not writable, whichever way leads there."""
    hook = yard.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_bytes(b"git's")
    links: dict[str, str | Path] = {"hooks": ".git/hooks", "by-name": yard.root / ".git", "sub/g": "../.git"}
    for name, target in links.items():
        (yard.root / name).symlink_to(target)
    for path in ("hooks/pre-commit", "by-name/hooks/pre-commit", "sub/g/hooks/pre-commit"):
        with pytest.raises(OperationError, match="which is read-only here"):
            act(yard, path)
    assert hook.read_bytes() == b"git's"


def test_git_can_be_read_and_its_neighbours_written(yard: Yard) -> None:
    """Design, workspace: only `.git` itself is meant, and only writing."""
    (yard.root / ".git").mkdir()
    (yard.root / ".git" / "config").write_bytes(b"[core]\n")
    assert yard.workspace.read(".git/config").data == b"[core]\n"
    for path in (".gitignore", ".github/x.yml", "git/x", "legit~1x", ".gitmodules"):
        yard.write(path, b"new")
        assert (yard.root / path).read_bytes() == b"new"


# --- a home inside the workspace -------------------------------------------------------------------


@acts({"read": READ, **CHANGES, "enter": ENTER, "list": LIST})
def test_a_home_inside_the_workspace_is_out_of_reach(yard: Yard, act: Act) -> None:
    """Design, workspace: a home inside is invisible to listing and file operations."""
    home = yard.root / ".codingagent"
    (home / "sessions").mkdir(parents=True)
    (home / "sessions" / "x.json").write_bytes(SECRET)
    (yard.root / "link").symlink_to(".codingagent/sessions")
    with contextlib.closing(type(yard.workspace)(yard.root, (home, home / "sessions"))) as hiding:
        hidden = Yard(yard.root, yard.outside, hiding)
        paths = [".codingagent/sessions", "link"] if act in (ENTER, LIST) else []
        for path in paths or [".codingagent/sessions/x.json", "link/x.json"]:
            with pytest.raises(OperationError, match="belongs to codingagent itself"):
                act(hidden, path)
        always = frozenset({".codingagent/sessions/x.json", "link/x.json"})
        assert hidden.listed(always) == ["ok.txt", "sub/in.txt"]
        assert ".codingagent" not in [entry.name for entry in hiding.entries(".")]
    assert (home / "sessions" / "x.json").read_bytes() == SECRET


def test_a_folder_is_listed_by_name_with_what_its_links_lead_to(yard: Yard) -> None:
    """Specification 004, FileEntry: name, whether it is a folder, its size (0 for folders)."""
    folder = yard.root / "list"
    (folder / "b").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"12345")
    (folder / "inner").symlink_to("b")
    (folder / "file").symlink_to("../list/a.txt")
    (folder / "out").symlink_to(yard.outside)
    (folder / "nowhere").symlink_to("missing")
    os.mkfifo(folder / "pipe")
    assert yard.workspace.entries("list") == (
        FolderEntry("a.txt", is_folder=False, size_bytes=5),
        FolderEntry("b", is_folder=True, size_bytes=0),
        FolderEntry("file", is_folder=False, size_bytes=5),
        FolderEntry("inner", is_folder=True, size_bytes=0),
        FolderEntry("nowhere", is_folder=False, size_bytes=0),
        FolderEntry("out", is_folder=False, size_bytes=0),
        FolderEntry("pipe", is_folder=False, size_bytes=0),
    )


# --- the root --------------------------------------------------------------------------------------


def test_a_replaced_root_stops_the_work(yard: Yard, tmp_path: Path) -> None:
    """Design, workspace: at each turn the root's name must lead to the folder that was opened."""
    yard.workspace.check()
    yard.root.rename(tmp_path / "moved")
    for put in (None, yard.root.mkdir, lambda: yard.root.symlink_to(yard.outside)):
        if yard.root.is_dir():
            yard.root.rmdir()
        if put is not None:
            put()
        if isinstance(yard.workspace, NamedWorkspace):
            continue  # a name has no memory; the system's own handle does
        with pytest.raises(WorkError, match="was moved or replaced"):
            yard.workspace.check()


@pytest.mark.parametrize("root", [Path("/"), Path.home(), Path.home().parent], ids=str)
def test_too_much_of_the_machine_is_no_workspace(root: Path) -> None:
    """Design, workspace: `/`, the user's home folder or a parent of it is refused."""
    with pytest.raises(UsageError, match="too much to hand to a model"):
        Workspace(root)


def test_a_root_must_be_a_folder(yard: Yard) -> None:
    """Design, command line: what a person got wrong is one line that names it."""
    with pytest.raises(UsageError, match="does not exist"):
        Workspace(yard.root / "no")
    with pytest.raises(UsageError, match="is not a folder"):
        Workspace(yard.root / "ok.txt")


# --- whole or not at all ---------------------------------------------------------------------------


@pytest.mark.parametrize("trap", ["file", "link out", "dangling"])
def test_a_squatted_temporary_name_is_no_trap(yard: Yard, trap: str) -> None:
    """Design, workspace: a write follows nothing that lies under its temporary name."""
    squatted = yard.root / temporary_name("ok.txt")
    match trap:
        case "file":
            squatted.write_bytes(b"left by a kill")
        case "link out":
            squatted.symlink_to(yard.outside / "secret")
        case _:
            squatted.symlink_to(yard.outside / "nothing")
    yard.write("ok.txt", b"new")
    assert (yard.root / "ok.txt").read_bytes() == b"new"
    assert not (yard.root / "ok.txt").is_symlink()


def test_a_file_that_changed_meanwhile_is_not_overwritten(yard: Yard) -> None:
    """Design, workspace: what changed since it was read is a conflict; nothing is written."""
    seen = yard.workspace.read("ok.txt")
    (yard.root / "ok.txt").write_bytes(b"the person's")
    with pytest.raises(OperationError, match="was changed by something else meanwhile"):
        yard.workspace.write("ok.txt", b"new", seen)
    assert (yard.root / "ok.txt").read_bytes() == b"the person's"


def test_a_file_of_the_same_size_put_in_place_is_noticed(yard: Yard) -> None:
    """Design, workspace: a conflict is known by the file's identity too."""
    seen = yard.workspace.read("ok.txt")
    other = yard.root / "other"
    other.write_bytes(b"OK\n")
    os.utime(other, ns=(seen.state[3], seen.state[3]))
    other.rename(yard.root / "ok.txt")
    with pytest.raises(OperationError, match="was changed by something else meanwhile"):
        yard.workspace.write("ok.txt", b"new", seen)


def test_a_file_that_appeared_or_vanished_meanwhile_is_a_conflict(yard: Yard) -> None:
    """Design, workspace: nothing is replaced that was not seen, nothing revived that was removed."""
    with pytest.raises(OperationError, match="was changed by something else meanwhile"):
        yard.workspace.write("ok.txt", b"new", None)
    assert (yard.root / "ok.txt").read_bytes() == b"ok\n"
    seen = yard.workspace.read("ok.txt")
    (yard.root / "ok.txt").unlink()
    with pytest.raises(OperationError, match="was changed by something else meanwhile"):
        yard.workspace.write("ok.txt", b"new", seen)
    assert not (yard.root / "ok.txt").exists()


def test_a_failed_write_removes_the_folders_it_made(yard: Yard) -> None:
    """Design, workspace: a write is whole or not at all."""
    seen = yard.workspace.read("ok.txt")
    with pytest.raises(OperationError):
        yard.workspace.write("sub/new/deep/x.txt", b"x", seen)
    assert sorted(path.name for path in (yard.root / "sub").iterdir()) == ["in.txt"]
    with pytest.raises(OperationError):
        yard.workspace.write("made/.git/x", b"x", None)
    assert not (yard.root / "made").exists()


def test_a_link_put_in_place_of_a_read_file_is_not_followed(yard: Yard) -> None:
    """Design, workspace: a link swapped in between check and use gains nothing."""
    seen = yard.workspace.read("ok.txt")
    (yard.root / "ok.txt").unlink()
    (yard.root / "ok.txt").symlink_to(yard.outside / "secret")
    with pytest.raises(OperationError, match=r"^REJECTED: Path is outside workspace"):
        yard.workspace.write("ok.txt", b"new", seen)


class _Moving(Folder):
    """A folder that another process moves out of the workspace just before a file is put in place."""

    away: Path

    def open(self, name: str) -> Folder:
        inner = super().open(name)
        moving = _Moving(os.dup(int(inner.handle)))
        moving.away = self.away
        inner.close()
        return moving

    def rename(self, name: str, new_name: str) -> None:
        here = Path(f"/proc/self/fd/{self.handle}").readlink()
        if here != self.away:
            here.rename(self.away)
        super().rename(name, new_name)


@pytest.mark.skipif(sys.platform != "linux", reason="a folder's present name is read from /proc")
@pytest.mark.parametrize("is_new", [True, False])
def test_a_folder_that_is_moved_out_while_written_is_noticed(tmp_path: Path, is_new: bool) -> None:
    """Design, workspace: no file outside is written; where the folder went meanwhile, it is said."""
    (tmp_path / "ws" / "sub").mkdir(parents=True)

    def opened(root: Path) -> Folder:
        folder = _Moving(os.open(root, os.O_RDONLY))
        folder.away = tmp_path / "away"
        return folder

    with contextlib.closing(Workspace(tmp_path / "ws", (), opened)) as workspace:
        if not is_new:
            (tmp_path / "ws" / "sub" / "a").write_bytes(b"old")
        seen = None if is_new else workspace.read("sub/a")
        with pytest.raises(OperationError, match="its folder was moved away while it was written"):
            workspace.write("sub/a", b"new", seen)
    assert [path.name for path in (tmp_path / "away").iterdir()] == ([] if is_new else ["a"])


def test_what_a_killed_write_left_is_discarded(yard: Yard) -> None:
    """Design, nothing is lost: after a kill no temporary file stays."""
    for path in ("ok.txt", "sub/new.txt"):
        left = (yard.root / path).parent / temporary_name(Path(path).name)
        left.write_bytes(b"half")
        yard.workspace.discard_temporary(path)
        assert not left.exists()
    yard.workspace.discard_temporary("no/such.txt")


def test_a_full_disk_fails_the_write_and_keeps_the_old_file(tmp_path: Path) -> None:
    """Design, nothing is lost: a full disk fails the operation, says so, and leaves the old file."""
    root = tmp_path / "small"
    root.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(root)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can't be mounted here: that needs root")
    try:
        (root / "old.txt").write_bytes(b"old")
        with contextlib.closing(Workspace(root)) as workspace:
            for path, seen in (("old.txt", workspace.read("old.txt")), ("a/b/new.txt", None)):
                with pytest.raises(OperationError, match="the disk is full"):
                    workspace.write(path, b"x" * 10**6, seen)
        assert [path.name for path in root.iterdir()] == ["old.txt"]
        assert (root / "old.txt").read_bytes() == b"old"
    finally:
        subprocess.run(["umount", str(root)], check=True)


# --- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [READ_LIMIT_BYTES + 1, 2**40], ids=["a byte more", "1 TiB"])
def test_a_huge_file_is_refused_with_a_way_out(yard: Yard, size: int) -> None:
    """Design, workspace: reading is bounded, and the model is told what to do instead."""
    with (yard.root / "huge").open("wb") as file:
        file.truncate(size)
    with pytest.raises(OperationError, match="larger than 32 MiB; use RUN_COMMAND"):
        yard.workspace.read("huge")


def test_a_file_at_the_limit_is_read(yard: Yard) -> None:
    """Design, workspace: the limit itself is allowed."""
    with (yard.root / "large").open("wb") as file:
        file.truncate(READ_LIMIT_BYTES)
    assert len(yard.workspace.read("large").data) == READ_LIMIT_BYTES


def test_a_growing_file_is_read_in_bounded_memory(yard: Yard) -> None:
    """Design, workspace: a file that grows while it is read gives no more than the limit."""
    grow = (
        "import sys\nwith open(sys.argv[1], 'ab', buffering=0) as f:\n"
        " for i in range(96):\n  f.write(bytes(2**20))\n  i == 8 and print('growing', flush=True)"
    )
    with python(grow, str(yard.root / "log")) as process:
        assert line_from(process) == "growing"
        try:
            assert len(yard.workspace.read("log").data) <= READ_LIMIT_BYTES
        except OperationError as fault:
            assert "larger than" in fault.reason


def _nest(root: Path, levels: int) -> None:
    """Makes folders in folders; pathlib itself would recurse too deep."""
    for level in range(100, levels + 1, 100):
        (root / "/".join("d" * level)).mkdir(parents=True)


def _unnest(root: Path, levels: int) -> None:
    for level in range(levels, 0, -1):
        folder = root / "/".join("d" * level)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def test_a_very_deep_workspace_does_no_harm(yard: Yard) -> None:
    """Design, workspace: 1,100 nested folders are no fault of ours; a file in them can be deleted."""
    levels, old = 1100, resource.getrlimit(resource.RLIMIT_NOFILE)
    _nest(yard.root, levels)
    deep = "/".join("d" * levels) + "/x"
    (yard.root / deep).write_bytes(b"deep")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, old[1]))  # the usual limit
    try:
        assert {"ok.txt", "sub/in.txt"} <= set(yard.listed())
        yard.workspace.delete(deep)
        assert not (yard.root / deep).exists()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)
        _unnest(yard.root, levels)


# --- listing ---------------------------------------------------------------------------------------


def _files(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"12345")


def test_a_listing_has_each_file_with_its_size(yard: Yard) -> None:
    """Specification 003, workspace files: all files in the workspace with sizes."""
    _files(yard.root, "a/b/c.txt", ".hidden", ".config/x", "empty/../two words.txt")
    sizes = yard.workspace.listing().files
    assert sizes == {
        "ok.txt": 3,
        "sub/in.txt": 3,
        "a/b/c.txt": 5,
        ".hidden": 5,
        ".config/x": 5,
        "two words.txt": 5,
    }


def test_git_is_never_listed(yard: Yard) -> None:
    """Design, outbox: `.git` never, whether it is a folder or a file, at any depth."""
    _files(yard.root, ".git/config", "sub/.git", "other/.git/HEAD", ".gitattributes")
    assert yard.listed() == [".gitattributes", "ok.txt", "sub/in.txt"]


def test_ignore_files_leave_out_by_gits_rules(yard: Yard) -> None:
    """Design, outbox: what .gitignore excludes is left out, and its files and bytes are counted."""
    _files(yard.root, "a.log", "sub/b.log", "sub/keep.log", "build/x/y.o", "sub/build/z", "top")
    (yard.root / ".gitignore").write_text("# logs\n*.log\n/build/\n/top\n", "utf-8")
    (yard.root / "sub" / ".gitignore").write_text("!keep.log\n/in.txt\n", "utf-8")
    listed = yard.listed()
    assert listed == [".gitignore", "ok.txt", "sub/.gitignore", "sub/build/z", "sub/keep.log"]
    ignored = yard.workspace.listing().ignored
    assert (ignored.files, ignored.size_bytes, ignored.is_partial) == (5, 23, False)


def test_our_own_ignore_file_leaves_out_more(yard: Yard) -> None:
    """Design, outbox: what .gitignore or .codingagentignore excludes is left out; neither takes back."""
    _files(yard.root, "a.log", "b.log", "data/x")
    (yard.root / ".gitignore").write_text("*.log\n", "utf-8")
    (yard.root / ".codingagentignore").write_text("!b.log\ndata/\n.*ignore\n", "utf-8")
    assert yard.listed() == ["ok.txt", "sub/in.txt"]


def test_a_file_of_this_session_is_always_listed(yard: Yard) -> None:
    """Design, outbox: a file that this session made or read is always listed."""
    _files(yard.root, "build/made.txt", "build/other.txt")
    (yard.root / ".gitignore").write_text("build/\n", "utf-8")
    always = frozenset({"build/made.txt", "build/gone.txt", "ok.txt"})
    assert yard.listed(always) == [".gitignore", "build/made.txt", "ok.txt", "sub/in.txt"]


def test_what_was_read_in_git_or_through_a_link_is_not_taken_from_the_ignored(yard: Yard) -> None:
    """Design, outbox: `.git` never; and how many files are left out is said."""
    _files(yard.root, ".git/config", "a.log")
    (yard.root / ".gitignore").write_text("*.log\n", "utf-8")
    (yard.root / "way").symlink_to("sub")
    always = frozenset({".git/config", "way/in.txt"})
    assert yard.listed(always) == [".gitignore", "ok.txt", "sub/in.txt", "way/in.txt"]
    assert yard.workspace.listing(always).ignored.files == 1


def test_links_are_listed_if_they_stay_inside(trapped: Yard) -> None:
    """Design, workspace: what a link names outside is not even told of."""
    _lay_links(trapped)
    inside = ["by-name", "sub/back", "sub/dots", "to-file", "two"]
    assert trapped.listed() == sorted(["ok.txt", "sub/in.txt", *inside])


def test_a_name_that_no_file_can_have_is_refused_and_leaves_no_folder(yard: Yard) -> None:
    for act in (
        lambda: yard.workspace.read("\ud800"),
        lambda: yard.workspace.write("new/\ud800/b", b"x", None),
        lambda: yard.workspace.entries("\ud800"),
    ):
        with pytest.raises(OperationError, match="no file can be called"):
            act()
    assert not (yard.root / "new").exists()


def test_special_files_are_not_listed(yard: Yard) -> None:
    """Design, workspace: only regular files are read, so only these are offered."""
    _make_special(yard, "fifo")
    _make_special(yard, "socket")
    (yard.root / "link").symlink_to("fifo")
    assert yard.listed() == ["ok.txt", "sub/in.txt"]


def test_weird_names_are_listed(yard: Yard) -> None:
    """Design, workspace: any name that a disk can hold is listed, and can be read and deleted."""
    names = [b"new\nline", b"tab\t", b"\xff\xfe.txt", "\u202etxt".encode(), b"'[x]"]
    # Without handles on folders, the system is Windows, which has no such names.
    names += [] if isinstance(yard.workspace, NamedWorkspace) else [b"'\"*?[x]", b" "]
    for name in names:
        (yard.root / os.fsdecode(name)).write_bytes(b"12345")
    listed = yard.listed()
    for name in names:
        assert os.fsdecode(name) in listed
        assert yard.workspace.read(os.fsdecode(name)).data == b"12345"
        yard.workspace.delete(os.fsdecode(name))
    assert yard.listed() == ["ok.txt", "sub/in.txt"]


def test_an_ignore_file_that_is_a_trap_is_passed_over(yard: Yard) -> None:
    """Design, workspace: not even ignore rules are read through a link out or from a FIFO."""
    (yard.outside.parent / "rules").write_text("*\n", "utf-8")
    (yard.root / ".gitignore").symlink_to(yard.outside.parent / "rules")
    os.mkfifo(yard.root / "sub" / ".gitignore")
    assert yard.listed() == ["ok.txt", "sub/in.txt"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root gives files away")
def test_a_replaced_file_keeps_its_owner(tmp_path: Path) -> None:
    """Design, workspace: a write changes the bytes, not whose file it is."""
    (tmp_path / "a").write_text("old")
    os.chown(tmp_path / "a", 1234, 1234)
    with contextlib.closing(Workspace(tmp_path)) as workspace:
        workspace.write("a", b"new", workspace.read("a"))
    found = (tmp_path / "a").stat()
    assert (found.st_uid, found.st_gid, (tmp_path / "a").read_bytes()) == (1234, 1234, b"new")


@pytest.mark.parametrize("folder", ["/", "/etc", "/usr", "/var"])
def test_what_the_machine_is_made_of_is_no_workspace(folder: str) -> None:
    """Design, workspace: what is too much of the machine to hand to a model is refused."""
    if not Path(folder).is_dir():
        pytest.skip(f"there is no {folder} here")
    with pytest.raises(UsageError):
        Workspace(Path(folder))


def test_a_walk_by_names_goes_as_deep_as_names_do(tmp_path: Path) -> None:
    """Safety: a command may make folders within folders; no depth ends the agent."""
    at = tmp_path
    handle = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    found = sum(1 for _ in walk_names(str(at)))
    assert found == 1201
    subprocess.run(["rm", "-r", str(tmp_path / "d")], check=True)


def test_very_many_files_are_not_measured(tmp_path: Path) -> None:
    """Design, speed: a size costs as much as all else of a file; what is always listed has one."""
    (tmp_path / "many").mkdir()
    for number in range(10_001):
        (tmp_path / "many" / f"{number}").touch()
    with contextlib.closing(Workspace(tmp_path)) as workspace:
        found = workspace.listing(frozenset({"many/7"})).files
    assert len(found) == 10_001
    assert [found["many/7"], found["many/8"]] == [0, None]


def test_threads_that_list_a_folder_at_once_each_get_all_of_it(tmp_path: Path) -> None:
    """Of 12,000 lists by four connections of a server 2,800 were short, some of them empty."""
    for number in range(50):
        (tmp_path / str(number)).touch()
    workspace, counts, old = Workspace(tmp_path), set[int](), sys.getswitchinterval()

    def lists() -> None:
        counts.update(len(workspace.entries(".")) for _ in range(200))

    threads = [threading.Thread(target=lists) for _ in range(4)]
    sys.setswitchinterval(1e-5)
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(old)
    assert counts == {50}


def test_a_new_file_costs_the_same_beside_however_many(tmp_path: Path) -> None:
    def look(count: int) -> None:
        folder = tmp_path / str(count)
        folder.mkdir(exist_ok=True)
        for number in range(count):
            (folder / f"{number}.py").touch()
        with contextlib.closing(Workspace(folder)) as found:
            for _ in range(count):
                assert found.line_end("new.py") == ("", "")

    grows_with(500, look)
