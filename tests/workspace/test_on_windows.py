"""Windows, imitated: folders by name, and names that lead elsewhere than they say (design, workspace)."""

import ast
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from codingagent.agent import factory, wanted_files
from codingagent.cli import edit_settings
from codingagent.cli.task_input import read_task
from codingagent.errors import OperationError, UsageError
from codingagent.model.paths import is_plain_on_windows
from codingagent.model.session_state import Session
from codingagent.policy.rules import PRESETS
from codingagent.storage.homes import Home, read_toml
from codingagent.workspace import path_walk
from codingagent.workspace.dirfd import Folder, is_link
from codingagent.workspace.workspace import Workspace
from tests import warm
from tests.helpers import REPOSITORY, NamedWorkspace
from tests.rows import each_row

posix = pytest.mark.skipif(sys.platform == "win32", reason="it makes what only POSIX has")

ODD = ["D:", "a.txt:b", ".env::$DATA", ".env.", ".env ", "NUL", "con.txt", "COM1", "a\\b", "LPT¹", "a?"]


def _entered(workspace: Workspace, path: str) -> None:
    with workspace.folder(path):
        pass


@posix
@pytest.mark.parametrize("name", ODD)
def test_a_name_that_leads_elsewhere_is_refused_in_each_operation(tmp_path: Path, name: str) -> None:
    """Also where such a file exists: on another system it does, and a share may hold it."""
    assert not is_plain_on_windows(name)
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / name).write_text("secret")
    (root / "link").symlink_to(f"src/{name}")
    workspace = NamedWorkspace(root)
    for path in (f"src/{name}", f"src/{name}/any/file", "link"):
        calls: list[Callable[[], object]] = [
            partial(workspace.read, path),
            partial(workspace.write, path, b"x", None),
            partial(_entered, workspace, path),
            partial(workspace.digest, path),
        ]
        if path != "link":
            calls.append(partial(workspace.delete, path))
        for call in calls:
            with pytest.raises(OperationError):
                call()
    assert (root / "src" / name).read_text() == "secret"


@pytest.mark.parametrize("name", ["a.txt", "café.py", "a~1.txt", "[id].tsx", "console.py", "com.py", "$x"])
def test_a_plain_name_is_used(tmp_path: Path, name: str) -> None:
    workspace = NamedWorkspace(tmp_path)
    workspace.write(name, b"x", None)
    assert workspace.read(name).data == b"x"


class _Windows(Folder):
    """A folder in which `PRIVAT~1` is the short name of `private`, and `junction` a junction."""

    target = ""

    def open(self, name: str) -> "Folder":
        return _Windows(Folder.open(self, _long(name)).handle)

    def lstat(self, name: str) -> Any:
        found = Folder.lstat(self, _long(name))
        if name == "junction":
            return SimpleNamespace(
                st_mode=stat.S_IFDIR | 0o777, st_reparse_tag=0xA000_0003, st_dev=1, st_ino=1
            )
        return found

    def open_file(self, name: str, flags: int) -> int:
        return Folder.open_file(self, _long(name), flags)

    def readlink(self, name: str) -> str:
        start = "//" if self.target.startswith("?") else "//?/"
        return f"{start}{self.target}" if name == "junction" else Folder.readlink(self, name)


def _long(name: str) -> str:
    return "private" if name.upper() == "PRIVAT~1" else name


def _windows(root: Path, target: Path) -> Workspace:
    _Windows.target = os.fspath(target)
    return Workspace(root, (), lambda folder: _Windows(os.fspath(folder)))


def test_a_short_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "a").write_text("x")
    workspace = _windows(tmp_path, tmp_path)
    assert workspace.read("private/a").data == b"x"
    with pytest.raises(OperationError, match="a short name"):
        workspace.read("PRIVAT~1/a")


def test_a_short_name_of_a_file_is_not_read(tmp_path: Path) -> None:
    """A forged index may list it, and `ENV~1` is no name of a file of secrets."""
    (tmp_path / "private").write_text("x")
    (tmp_path / "a~1.txt").write_text("y")
    workspace = _windows(tmp_path, tmp_path)
    assert [*workspace.read_each(["PRIVAT~1", "a~1.txt"])] == [("a~1.txt", b"y")]


@posix
def test_an_index_names_no_path_of_windows_elsewhere() -> None:
    program = (
        "import sys; from codingagent.workspace import workspace; sys.platform = 'win32'\n"
        "from codingagent.workspace import git_files\n"
        "names = [b'a.py', br'..\\x', b'b/D:x', b'.env ', b'.env./x', b'c:d', b'.a b.c/d']\n"
        "print(git_files._plain(b'\\0'.join((*names, b'')), ()))\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.stdout == "[b'a.py', b'.a b.c/d']\n", done.stderr


class _Short(Folder):
    """A folder in whose path no more names fit."""

    def mkdir(self, name: str) -> None:
        raise FileNotFoundError(2, os.strerror(2), name)


def test_a_folder_that_can_not_be_made_is_not_said_to_be_missing(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, (), lambda folder: _Short(os.fspath(folder)))
    with pytest.raises(OperationError, match="'a/b' could not be used: No such file"):
        workspace.write("a/b", b"x", None)


def test_a_junction_is_a_link(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "a").write_text("mine")
    outside.mkdir()
    (outside / "a").write_text("not mine")
    (root / "junction").mkdir()
    with pytest.raises(OperationError, match="is a link that leads out"):
        _windows(root, outside).read("junction/a")
    assert _windows(root, root / "inner").read("junction/a").data == b"mine"
    for other in ("?/UNC/server/share/x", "?/Volume{1-2}/x"):
        with pytest.raises(OperationError, match="is a link that leads out"):
            _windows(root, Path(other)).read("junction/a")
    found = _Windows(os.fspath(root)).lstat("junction")
    assert is_link(found)


def test_a_junction_is_no_folder_of_a_home(tmp_path: Path) -> None:
    """Whoever laid it out would have the answers, or the requests, elsewhere."""
    assert "is a link; a home needs real folders" in _in_home_with_junction(tmp_path / "home", "inbox")
    assert "is a link to" in _in_home_with_junction(tmp_path / "other", "workspace")


def _in_home_with_junction(home: Path, name: str) -> str:
    (home / name).mkdir(parents=True)
    program = (
        "import os, sys; from pathlib import Path; from types import SimpleNamespace\n"
        "home, name = Path(sys.argv[1]), sys.argv[2]; lstat = os.lstat\n"
        "def lies(path, **_):\n"
        "    fields = {'st_mode': lstat(path).st_mode, 'st_reparse_tag': 0xA000_0003}\n"
        "    return SimpleNamespace(**fields) if str(path).endswith(name) else lstat(path)\n"
        "from codingagent.storage import homes; os.lstat = lies\n"
        "homes.check_home(home, was_found=False); homes.make_workspace(home, home / 'workspace')\n"
    )
    words = [sys.executable, "-c", program, str(home), name]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stderr


@posix
def test_what_no_person_hands_to_a_model_is_no_workspace() -> None:
    of_macos = ("/System/Volumes/Data/Users/max/proj", "/Volumes/Backup", "/.vol/1234/56")
    for name in ("/", "/usr", "/private/etc", "/System", "/Library", *of_macos):
        assert path_walk.is_too_much(Path(name))
    with pytest.raises(UsageError, match="too much to hand to a model"):
        Workspace(Path("/usr"))


@posix
def test_hooks_behind_a_junction_that_a_command_made_are_found_and_put_back(tmp_path: Path) -> None:
    """A link stands for it, which says that it is a folder: it was taken for the old one."""
    subprocess.run(["git", "init", "-q", tmp_path / "w"], check=True)
    (tmp_path / "w/.gitignore").write_text("build/\n")
    (tmp_path / "w/build/hooks").mkdir(parents=True)
    # Package managers make circles.
    (tmp_path / "w/build/circle").symlink_to(tmp_path / "w")
    program = (
        "import shutil, stat; from types import SimpleNamespace\n"
        "lstat, scandir, stat_ = os.lstat, os.scandir, os.stat; has = []\n"
        "def seen(found):\n"
        "    told = {name: getattr(found, name) for name in dir(found) if name.startswith('st_')}\n"
        "    junction = {'st_mode': 0o40777, 'st_reparse_tag': 0xA000_0003}\n"
        "    return SimpleNamespace(**(told | junction)) if stat.S_ISLNK(found.st_mode) else found\n"
        "def looked(path, *, dir_fd=None, follow_symlinks=True):\n"
        "    found = stat_(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)\n"
        "    return found if follow_symlinks else seen(found)\n"
        "class Entry:\n"
        "    def __init__(self, real): self.real, self.name, self.path = real, real.name, real.path\n"
        "    def is_dir(self, follow_symlinks): return self.real.is_dir()\n"
        "    def stat(self, follow_symlinks): return seen(self.real.stat(follow_symlinks=False))\n"
        "class Entries(list):\n"
        "    def __enter__(self): return self\n"
        "    def __exit__(self, *_): pass\n"
        "from codingagent.checkpoints import repository, store\n"
        "from codingagent.process.runner import run_tool\n"
        "from codingagent.workspace import dirfd, git_files\n"
        "git, root = git_files.Git(shutil.which('git'), run_tool), Path(here, 'w')\n"
        "kept = store.Checkpoints(Path(here, 'store'), root, (), git)\n"
        "first = kept.take().id\n"
        "shutil.rmtree(root / '.git/hooks'); os.symlink('../build/hooks', root / '.git/hooks')\n"
        "dirfd.os = SimpleNamespace(**{**vars(os), 'name': 'nt', 'stat': looked,\n"
        "    'lstat': lambda path: seen(lstat(path))})\n"
        "repository.os = SimpleNamespace(**{**vars(dirfd.os),\n"
        "    'scandir': lambda path: Entries(map(Entry, scandir(path)))})\n"
        "second = kept.take().id\n"
        "print(*(change.path for change in kept.changes(first, second)))\n"
        "kept.restore(first, second, ['.git/hooks'])\n"
        "print(os.path.lexists(root / '.git/hooks'))\n"
    )
    assert _said(program, tmp_path) == ".git/hooks\nFalse\n"


@posix
def test_a_clipboard_that_is_kept_back_for_a_while_is_watched_on(tmp_path: Path) -> None:
    """While the screen is locked nobody may open it: answers that came after that were not seen."""
    program = (
        "from types import SimpleNamespace; from codingagent.cli.commands import clipboard\n"
        "from codingagent.errors import WorkError; clipboard.is_the_terminals = lambda: False\n"
        "def read():\n"
        "    if found := found_.pop(0): return found\n"
        "    raise WorkError('Access is denied')\n"
        "clipboard.read, os.name, found_, seen = read, 'nt', ['a', '', 'b'], []\n"
        "glance = clipboard.ClipboardPoller(None, print)\n"
        "for _ in range(3): glance(SimpleNamespace(is_answer=seen.append))\n"
        "print(*seen)"
    )
    assert _said(program, tmp_path) == "a b\n"


@posix
def test_a_file_that_is_held_for_a_moment_is_read(tmp_path: Path) -> None:
    """Each ended the command, or had the home refused, while a virus scanner looked at the file."""
    program = (
        "import io, pathlib, time; pathlib.WindowsPath = pathlib.PosixPath\n"
        "from codingagent.agent import secrecy\nfrom codingagent.storage import homes, journal\n"
        "from codingagent.secrets.vault import Wishes\n"
        "os.name, time.sleep, real, held = 'nt', lambda _: None, io.open, set()\n"
        "home = Path(here); (home / 'sessions').mkdir(); os.environ['LOCALAPPDATA'] = here\n"
        "homes.register(home); (home / 'journal.jsonl').write_text('{}\\n')\n"
        "(home / 'secrets.json').write_text('{}')\n"
        "def once(path, *words, **more):\n"
        "    if str(path) in held: return real(path, *words, **more)\n"
        "    held.add(str(path)); raise PermissionError(13, 'held')\n"
        "io.open = once\n"
        "print(homes.is_registered(home), [*journal._lines(home / 'journal.jsonl')],\n"
        "    secrecy.VaultFile(home).wishes() == Wishes(), len(held))"
    )
    assert _said(program, tmp_path) == "True [b'{}\\n'] True 4\n"


@posix
def test_the_folder_of_programs_is_none_to_work_in(tmp_path: Path) -> None:
    """To a 32-bit Python PROGRAMFILES is the other one."""
    program = (
        "from codingagent.workspace import path_walk; path_walk._ON_WINDOWS = True\n"
        "os.environ['PROGRAMW6432'] = here; print(path_walk.is_too_much(Path(here, 'a')))"
    )
    assert _said(program, tmp_path) == "True\n"


@posix
def test_a_program_behind_a_junction_into_the_workspace_is_not_ours(tmp_path: Path) -> None:
    """Nor one on a mapped drive: to Python neither is a link, and only the resolved path says it."""
    (tmp_path / "project/bin").mkdir(parents=True)
    (tmp_path / "junction").symlink_to(tmp_path / "project/bin")
    program = (
        "import os, sys; from pathlib import Path\n"
        "from codingagent.workspace import programs, real_paths\n"
        "here = sys.argv[1]; sys.platform = 'win32'; real_paths.is_link = lambda _: False\n"
        "os.environ['PATH'] = f'{here}/junction:/usr/bin'; programs.distrust(Path(here, 'project'))\n"
        "print(programs.own_path())"
    )
    words = [sys.executable, "-c", program, str(tmp_path.resolve())]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.stdout == "/usr/bin\n", done.stderr


@posix
def test_a_drive_that_the_system_can_not_resolve_holds_a_workspace(tmp_path: Path) -> None:
    """A RAM disk, or what rclone mounts: `realpath` fails there where it is strict."""
    program = (
        "from codingagent.workspace.workspace import Workspace; real = os.path.realpath\n"
        "def realpath(path, *, strict=False):\n"
        "    if strict: raise OSError(22, 'Incorrect function')\n"
        "    return real(path)\n"
        "os.path.realpath = realpath; print(Workspace(Path(here)).root == Path(here))"
    )
    assert _said(program, tmp_path) == "True\n"


@posix
def test_a_read_only_file_that_a_command_made_is_taken_back(tmp_path: Path) -> None:
    """Windows neither removes nor replaces one: it stayed, as if another program had it open."""
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    for name in ("kept", "new", "changed", "before"):
        (tmp_path / name).touch(0o644 if name == "before" else 0o444)
    program = (
        "import stat, time; from codingagent.workspace.dirfd import Folder\n"
        "unlink, replace, held, time.sleep = os.unlink, os.replace, PermissionError(13, ''), print\n"
        "def checked(path):\n"
        "    if not os.lstat(path).st_mode & stat.S_IWRITE: raise held\n"
        "def removed(path, dir_fd): checked(path); unlink(path)\n"
        "def replaced(old, new, **_): checked(new); replace(old, new)\n"
        "os.unlink, os.replace, os.name, folder = removed, replaced, 'nt', Folder(here)\n"
        "folder.unlink('new'); folder.rename('before', 'changed'); folder.unlink('link')\n"
        "print(*sorted(os.listdir(here)), oct(os.stat(here + '/kept').st_mode & 0o777))"
    )
    assert _said(program, tmp_path) == "changed kept 0o444\n"


@posix
def test_the_rest_of_a_paste_answers_no_question(tmp_path: Path) -> None:
    """A terminal hands a long one over in pieces, and its last line may be a letter of an answer."""
    program = (
        "import builtins, time; from types import SimpleNamespace\n"
        "keys, later = ['b'], ['y', '\\r']\n"
        "def sleep(pause_s):\n"
        "    if pause_s > 0.3: keys.extend(later); later.clear()\n"
        "time.sleep, builtins.input, sys.platform = sleep, lambda: 'a', 'win32'\n"
        "console = {'kbhit': lambda: keys, 'getwch': lambda: keys.pop(0)}\n"
        "sys.modules['msvcrt'] = SimpleNamespace(**console)\n"
        "from codingagent.cli import keyboard\n"
        "try: keyboard.Keyboard(None, None).line(list, list)\n"
        "except keyboard.PasteError: print(keys, later)"
    )
    assert _said(program, tmp_path) == "[] []\n"


@posix
def test_a_run_whose_reader_has_gone_goes_on(tmp_path: Path) -> None:
    """Windows calls a pipe without a reader an invalid argument."""
    program = (
        "from types import SimpleNamespace; from codingagent.cli import runs; out = sys.stdout\n"
        "def gone(*_): raise OSError(22, 'Invalid argument')\n"
        "os.name, sys.stdout = 'nt', SimpleNamespace(flush=gone, fileno=gone)\n"
        "runs._print(runs.ErrorEvent(timestamp=runs.now(), category='validation', message=''))\n"
        "sys.stdout = out; print('on')"
    )
    assert _said(program, tmp_path) == "on\n"


@posix
def test_own_code_that_was_started_by_a_mapped_drive_is_kept(tmp_path: Path) -> None:
    """A link stands for the drive, which to Python is none: only the resolved path says where it leads."""
    (tmp_path / "project/lib").mkdir(parents=True)
    (tmp_path / "drive").symlink_to(tmp_path / "project")
    program = (
        "from codingagent.workspace import own_code, real_paths; sys.platform = 'win32'\n"
        "own_code.is_link_at = real_paths.is_link = lambda _: False\n"
        "sys.path.append(f'{here}/drive/lib'); print(*own_code.own_code_in(Path(here, 'project')).kept)"
    )
    assert _said(program, tmp_path) == f"{tmp_path.resolve()}/project/lib\n"


@posix
def test_a_path_leads_through_a_junction(tmp_path: Path) -> None:
    """Else one that leads to our own code could be replaced."""
    (tmp_path / "real").mkdir()
    (tmp_path / "junction").symlink_to(tmp_path / "real")
    program = (
        "from types import SimpleNamespace; from codingagent.workspace.real_paths import steps\n"
        "found, target = SimpleNamespace(st_mode=0o40777, st_reparse_tag=0xA000_0003), f'//?/{here}/real'\n"
        "lstat = os.lstat; os.readlink = lambda _: target\n"
        "os.lstat = lambda path: found if str(path).endswith('junction') else lstat(path)\n"
        "print([*steps(Path(here, 'junction/a'))][-1])"
    )
    assert _said(program, tmp_path) == f"{tmp_path.resolve()}/real/a\n"


@posix
def test_what_the_configuration_of_git_names_with_slashes_is_protected(tmp_path: Path) -> None:
    """A name with neither a dot nor this system's own separator was taken for a word."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/clean").touch()
    with (tmp_path / ".git/config").open("a") as config:
        config.write('[filter "x"]\nclean = tools/clean --all\n')
    program = (
        "from codingagent.checkpoints.checkpointer import git_for\n"
        "from codingagent.workspace.git_programs import named_by_git\n"
        "git = git_for(Path(here)); os.sep = chr(92)\n"
        "print(*named_by_git(Path(here), git))"
    )
    assert _said(program, tmp_path) == "./tools/clean\n"


def _said(program: str, here: Path) -> str:
    """Return what a program prints in a process of its own, which may imitate another system."""
    begin = "import os, sys; from pathlib import Path; here = sys.argv[1]\n"
    words = [sys.executable, "-c", begin + program, str(here.resolve())]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@posix
def test_a_temporary_file_that_a_program_holds_ends_nothing() -> None:
    """A virus scanner reads what was just written: it stays in the temporary folder then."""
    program = (
        "import os, tempfile; from codingagent.cli.task_input import edited\n"
        "def held(*_, **__): raise PermissionError(13, 'held')\n"
        "os.environ.update(VISUAL='true'); tempfile.tempdir = os.environ['TMPDIR']\n"
        "os.unlink = held; print(edited('a.txt', 'words'))"
    )
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=REPOSITORY,
            env={**os.environ, "TMPDIR": folder},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout == "b'words'\n", done.stderr


@posix
def test_an_editor_that_does_not_wait_is_waited_for(tmp_path: Path) -> None:
    """As Notepad of Windows 11. A link stands for a TEMP that other programs see elsewhere."""
    (tmp_path / "real").mkdir()
    (tmp_path / "temp").symlink_to(tmp_path / "real")
    (tmp_path / "notepad.EXE").write_text('#!/bin/sh\nprintf %s "$1" >"${0%/*}/named"\n')
    (tmp_path / "notepad.EXE").chmod(0o755)
    program = (
        "import pathlib, tempfile; from types import SimpleNamespace\n"
        "from codingagent.cli import task_input; from codingagent.process import runner\n"
        "def enter(): Path(Path(here, 'named').read_text()).write_text('words')\n"
        "sys.stdin, task_input.is_terminal = SimpleNamespace(readline=enter), lambda _: True\n"
        "os.name, pathlib.WindowsPath, tempfile.tempdir = 'nt', pathlib.PosixPath, f'{here}/temp'\n"
        "os.environ['VISUAL'] = f'{here}/notepad'; print(task_input.edited('a.txt', 'begun'))"
    )
    said = _said(program, tmp_path)
    assert said.startswith("b'words'\n"), said
    assert said.endswith("save the file there, then press Enter here: ")
    named = (tmp_path / "named").read_text()
    assert named.startswith(f"{tmp_path.resolve()}/real/")


@posix
def test_a_session_on_a_mapped_drive_goes_on(tmp_path: Path) -> None:
    """Its record has the drive, its home resolves to the share behind it: a link stands for the drive."""
    (tmp_path / "share").mkdir()
    (tmp_path / "drive").symlink_to(tmp_path / "share")
    home = Home.at(tmp_path / "drive/.codingagent", create=True, was_found=True, is_passing=True)
    (tmp_path / "share/a").touch()
    meanings = wanted_files._meanings  # noqa: SLF001  # a workspace resolves its root here
    assert meanings(tmp_path / "drive", "a", tmp_path / "drive") == ["a"]
    session = Session("a1b2c3d4", "task", str(tmp_path / "drive"), "", "")
    factory.check_workspace(home, session)
    with pytest.raises(UsageError, match="not where its home was found"):
        factory.check_workspace(home, replace(session, workspace=str(tmp_path / "other")))


LINES: dict[str, tuple[str, object]] = {
    "words": (
        r"quoted(['a b', r'C:\p\x.txt', '', '--check', '\u00fc'])",
        '"a b" C:\\p\\x.txt "" --check \u00fc',
    ),
    "an editor": (
        r"""split(r'"C:\Program Files\n.exe" -w C:\a')""",
        ["C:\\Program Files\\n.exe", "-w", "C:\\a"],
    ),
    "quotes within a word": (r"""split(r'n --dir="C:\a b" "" -w')""", ["n", "--dir=C:\\a b", "", "-w"]),
    "an apostrophe": ("""split("O'Neil.txt 'a b'")""", ["O'Neil.txt", "a b"]),
    "a file": (r"split(r'src\main.py')", ["src\\main.py"]),
    "a pager": (r"for_system([r'C:\a b\less.exe', '-FRX'])", r'call "C:\a b\less.exe" -FRX'),
    "another drive": (r"from_root('D:\\x', 'C:\\y')", ".."),
    "a variable that is passed": (
        "__import__('codingagent.process.runner').process.runner.environment({'A': 'a'}, ['a'])['A']",
        "a",
    ),
    "a link inside": ("below('c:/WS/sub', [r'C:/ws'])", "/sub"),
    "a mapped drive": ("str(root_of(Mapped(r'H:\\proj')))", r"H:\proj"),
    "a share": ("str(root_of(Mapped(r'\\\\server\\share\\proj')))", r"\\server\share\proj"),
    "a held file": (
        "dirfd.reason_of(PermissionError(13, 'x'), 'a')",
        "'a' could not be used: permission denied, or another program has it open: close it there first",
    ),
    "a long path": (
        "dirfd.reason_of(FileNotFoundError(2, 'x', 'C:/' + 245 * 'a'), 'a')",
        "'a' could not be used: its whole path, 248 characters, is too long for this system: shorten it",
    ),
    # Both cmd.exe and PowerShell 5.1 take each of these for a call; neither a quoted path.
    "our program": (r"ours(r'C:\venv\Scripts\codingagent')", r"C:\venv\Scripts\codingagent"),
    "our program nearby": (r"ours(r'C:\a b\v\Scripts\codingagent')", r"v\Scripts\codingagent"),
    "our module": (r"ours(r'C:\a b\v\Lib\codingagent\__main__.py')", r"v\Scripts\python.exe -m codingagent"),
    "a file in a folder that PowerShell would read": (
        (
            r"setattr(os, 'getcwd', lambda: r'C:\$a')"
            r" or setattr(sys.modules[put_first.__module__], 'Path', Mapped)"
            r" or quoted_path(Mapped(r'C:\$a\b c\x.txt'))"
        ),
        r'"b c\x.txt"',
    ),
    "a pipe without a reader": ("stdio.has_no_reader(OSError(22, 'Invalid argument'))", True),
    "a file of a wrong name": ("stdio.has_no_reader(OSError(22, 'Invalid argument', 'a?'))", False),
    "a folder first": ("put_first('C:x') or persons_variables()['PATH'][:4]", f"C:x{os.pathsep}"),
}


@each_row("what", LINES)
def test_lines_of_the_person_are_read_and_written_as_windows_does(what: str) -> None:
    """An empty word stays one, a backslash is part of a path."""
    program, expected = LINES[what]
    line = (
        "from codingagent.workspace.programs import *\nfrom codingagent.workspace.real_paths import *\n"
        "import ntpath, os; from pathlib import PureWindowsPath\n"
        "from codingagent.workspace import dirfd\n"
        "class Mapped(PureWindowsPath):\n"
        "    def resolve(self): return PureWindowsPath(r'\\\\server\\share\\proj')\n"
        "    def absolute(self): return self\n"
        "    cwd = classmethod(lambda cls: cls(os.getcwd()))\n"
        "import sys; from codingagent.cli import command_table, stdio\n"
        "def ours(name): sys.argv = [name]; return command_table._program()\n"
        r"sys.executable = r'C:\a b\v\Scripts\python.exe'; os.getcwd = lambda: r'C:\a b'; "
        "os.environ['PATH'] = ''; command_table.Path = Mapped\n"
        f"os.name = 'nt'; os.path = ntpath; print(ascii({program}))"
    )
    done = warm.run(line, capture_output=True, text=True)
    assert not done.stderr
    assert ast.literal_eval(done.stdout) == expected


@posix
def test_a_program_is_found_without_its_ending(tmp_path: Path) -> None:
    """Such as an editor, `code --wait`, or ssh: Python 3.11 adds no ending to a path."""
    for name in ("code", "code.CMD", "n+.EXE"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    program = (
        "import os, pathlib, sys; from codingagent.workspace import programs\n"
        "os.environ['PATH'] = here = sys.argv[1]\n"
        "os.name, pathlib.WindowsPath = 'nt', pathlib.PosixPath\n"
        "print(*programs.command_line('code --wait'), *programs.command_line(f'{here}/n+'))"
    )
    words = [sys.executable, "-c", program, os.fspath(tmp_path)]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.stdout == f"{tmp_path}/code.CMD --wait {tmp_path}/n+.EXE\n", done.stderr


@posix
def test_names_and_ignore_files_that_are_not_utf8_end_nothing(tmp_path: Path) -> None:
    """Notepad once wrote umlauts so, and an index of Linux may hold such a name."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name, data in ((b"caf\xe9", b""), (b"a.py", b""), (b".gitignore", b"# \xfc\n*.log\n")):
        Path(tmp_path, os.fsdecode(name)).write_bytes(data)
    (tmp_path / ".codingagentignore").write_bytes(b"# \xfc\n*.tmp\n")
    subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
    program = (
        "import os, shutil, sys; from pathlib import Path; from codingagent.checkpoints import store\n"
        "from codingagent.process.runner import run_tool; from codingagent.workspace import git_files\n"
        "from codingagent.workspace.workspace import Workspace; root = Path(sys.argv[1])\n"
        "git = git_files.Git(shutil.which('git'), run_tool)\n"
        "os.fsdecode = lambda name: os.fsencode(name).decode('utf-8', 'surrogatepass')\n"
        "print(*('a.py' in Workspace(root, git=lambda: g).listing().files for g in (git, None)))\n"
        "kept = store.Checkpoints(Path(sys.argv[2]), root, (), git)\n"
        "print('a.py' in kept.covered(kept.take().id))\n"
        "from codingagent.agent.commit import PersonsRepository\n"
        "print('a.py' in PersonsRepository(root)._indexed())\n"
    )
    words = [sys.executable, "-c", program, str(tmp_path), f"{tmp_path}-store"]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.stdout == "True True\nTrue\nTrue\n", done.stderr


def test_a_glob_is_no_file_there(tmp_path: Path) -> None:
    """READ_FILE and --attach ask first whether a file has that name: no glob went through."""
    (tmp_path / "a.py").touch()
    workspace = NamedWorkspace(tmp_path)
    assert not workspace.exists("**/*.py")
    found, _ = wanted_files.attachable(workspace, ["*.py"], tmp_path, PRESETS["standard"])
    assert "a.py" in found


def test_what_a_person_types_with_backslashes_has_slashes() -> None:
    """Tab in cmd.exe and PowerShell writes them; such patterns protected nothing."""
    code = "import os; os.sep = chr(92); from codingagent.workspace import real_paths"
    code += r"; print(real_paths.with_slashes(r'a\b'))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert done.stdout == "a/b\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
def test_rules_and_settings_as_powershell_writes_them_count(tmp_path: Path, encoding: str) -> None:
    """Windows PowerShell 5.1: `>` writes UTF-16, `-Encoding utf8` a mark."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "a.txt").touch()
    (tmp_path / ".codingagentignore").write_text("private/\r\n", encoding)
    assert "private/a.txt" not in Workspace(tmp_path).listing().files
    settings, task = tmp_path / "settings.toml", tmp_path / "task.txt"
    settings.write_text("context = 7\r\n", encoding)
    assert read_toml(settings) == {"context": 7}
    edit_settings.set_value(settings, "diff", "full")
    assert read_toml(settings) == {"context": 7, "diff": "full"}
    task.write_text("größer\r\nund mehr", encoding)
    assert read_task([], task, edit=False) == "größer\nund mehr"


def test_settings_of_another_encoding_are_refused_in_our_words(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"# gr\xf6\xdfer\n")
    for read in (read_toml, lambda path: read_task([], path, edit=False)):
        with pytest.raises(UsageError, match=r"a\.toml is not UTF-8 text; save it as UTF-8"):
            read(tmp_path / "a.toml")


def test_a_git_that_takes_its_time_is_waited_for() -> None:
    """Half a second is usual under antivirus: the answer was looked for before it was there."""
    code = (
        "import sys, time; from codingagent.workspace.git_files import together; sys.platform = 'win32'"
        "; print(together(None, lambda: time.sleep(1.2) or 7))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert done.stdout == "[7]\n"
