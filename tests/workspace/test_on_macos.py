"""macOS, imitated: a folder has many spellings there, and a path keeps the one that was typed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codingagent.workspace.dirfd import Folder
from tests.helpers import REPOSITORY

_BEGIN = """
import os, sys
system, sys.platform = sys.platform, "darwin"
from pathlib import Path
from codingagent.errors import UsageError
here = Path(sys.argv[1])
"""

PROGRAMS = {
    "a path": """
from codingagent.workspace.real_paths import resolved
found = [resolved(here / name) for name in ("MAX/proj", "cafe\\u0301", "max/none", "Max/Proj")]
print(found == [here / name for name in ("Max/Proj", "caf\\u00e9", "Max/none", "Max/Proj")])
""",
    "the person's own folder": """
os.environ["HOME"] = str(here / "max")
from codingagent.workspace.path_walk import is_too_much
print(is_too_much(here / "Max") and is_too_much(here) and not is_too_much(here / "Max/Proj"))
""",
    "the person's settings": """
from codingagent.storage import homes
one, other = here / "MAX/proj", here / "Max/Proj"
os.environ["XDG_CONFIG_HOME"] = str(here / "max/Proj/config")
is_same = all(of(one) == of(other) for of in (homes.settings_path, homes.registry_entry))
print(is_same and not homes.is_out_of_reach(one))
""",
    "a home after a restart": """
from codingagent.storage import homes
os.environ["XDG_STATE_HOME"] = str(here / "state")
(here / "Max/Proj/sessions").mkdir()
homes.register(here / "Max/Proj")
stat = Path.stat
Path.stat = lambda path, **how: os.stat_result([*(now := stat(path, **how))[:2], 99, *now[3:]])
is_known = homes.is_registered(here / "Max/Proj")
(here / "Max/Proj/sessions/.home").write_text("another")
print(is_known and not homes.is_registered(here / "Max/Proj"))
""",
    "a workspace that is the home": """
from codingagent.model.settings import Settings
from codingagent.storage import homes
try:
    homes.workspace_of(here / "MAX/proj", Settings(workspace=str(here / "Max/Proj")))
except UsageError as fault:
    print("at once" in str(fault))
""",
    "the person's own folder as a workspace": """
os.environ["HOME"] = str(here / "max")
from codingagent.storage import homes
print(not homes.workspaces_of(here / "MAX/.codingagent"))
""",
    "our own code": """
from codingagent.workspace.own_code import own_code_in
(here / "Max/Proj/lib").mkdir()
sys.path.append(str(here / "MAX/proj/lib"))
print(own_code_in(here / "Max/Proj").kept == (here / "Max/Proj/lib",))
""",
    "programs": """
from codingagent.workspace import programs
programs.distrust(here / "max/proj")
os.environ["PATH"] = f"{here}/MAX/PROJ/bin:/usr/bin:{here}/Max/other"
print(programs.own_path() == f"/usr/bin:{here}/Max/other")
""",
    "a home's sessions in the workspace": """
from codingagent.workspace.git_files import paths_below
folders = [here / "MAX/proj/sessions", here / "max", here / "Max/PROJECT"]
print(paths_below(here / "max/Proj", folders) == ("sessions",))
""",
    "what happens in the inbox": """
from codingagent.workspace import real_paths
sys.platform = system
from watchdog.events import FileCreatedEvent
from codingagent.storage.watch import Watch
watch = Watch(here / "MAX/proj")
watch.on_any_event(FileCreatedEvent(f"{here}/Max/Proj/a.txt"))
print([*watch.wait(0)] == ["a.txt"])
""",
    "a home in a subfolder": """
from codingagent.storage.homes import check_apart
try:
    check_apart(here / "MAX/proj/sub/home", here / "Max/Proj")
except UsageError:
    print(True)
""",
    "Apple's git": """
from codingagent.workspace.programs import as_found, find_program
os.environ["PATH"] = "/usr/bin"
os.environ["DEVELOPER_DIR"] = "/"
is_found = find_program("git") == "/usr/bin/git"
del os.environ["DEVELOPER_DIR"]
has_none = find_program("git") is None and not as_found("git") and as_found("sed") == "sed"
print(is_found and (has_none or os.path.exists("/System")))
""",
    "what Finder writes": """
from codingagent.process.runner import run_tool
from codingagent.workspace import git_files
from codingagent.workspace.workspace import Workspace
for name in (".DS_Store", "Max/._a.py", "Max/a.py"):
    (here / name).touch()
git = git_files.Git("/usr/bin/git", run_tool)
with_git, without = (Workspace(here, git=lambda: each).listing() for each in (git, None))
is_out = not with_git.ignored.names and [*with_git.files] == ["Max/a.py", "Max/Proj/policy.toml"]
print(is_out and with_git.files == without.files)
""",
    "a name as Finder writes it": """
from codingagent.checkpoints.repository import _below
from codingagent.workspace import dirfd, git_files
from codingagent.workspace.workspace import Workspace
at, composed = dirfd.Folder.at, "gr\\u00fcn.txt"
dirfd.Folder.at = lambda folder, name: at(folder, "gru\\u0308n.txt" if name == composed else name)
(here / "gru\\u0308n.txt").touch()
(here / "Max/gru\\u0308n").mkdir()
workspace = Workspace(here)
listed = workspace.names(), workspace.listing().files, [each.name for each in workspace.entries(".")]
listed += ([name for _, _, names in dirfd.walk_names(str(here)) for name in names],)
print(all(composed in names for names in listed) and "Max/gr\\u00fcn" in _below(here, ["Max"])[0]
    and "precomposeUnicode = true" in git_files.OWN_CONFIG)
""",
    "the clipboard in a locale without UTF-8": """
import platform
platform.system = lambda: "Darwin"
os.environ["PATH"] = f"{here}:/usr/bin:/bin"
os.environ.pop("LC_ALL", None)
for name, line in {"pbcopy": "cat >$0.text", "pbpaste": "cat ${0%paste}copy.text"}.items():
    (here / name).write_text(f'#!/bin/sh\\necho $LC_ALL >>"{here}/said"\\n{line}\\n')
    (here / name).chmod(0o755)
from codingagent.cli.commands import clipboard
clipboard.write("gr\u00fcn")
is_same = clipboard.read() == "gr\u00fcn"
print(is_same and {*(here / "said").read_text().split()} == {"en_US.UTF-8"} and not os.environ["LC_ALL"])
""",
    "a folder that macOS keeps from the terminal": """
import errno
import codingagent.cli.main
from codingagent.errors import WorkError, disk_errors
try:
    with disk_errors("~/Desktop/inbox can't be read"):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
except WorkError as fault:
    print("not permitted; allow your terminal this folder in System Settings > Privacy" in str(fault))
""",
    "doctor": """
from codingagent.process.select_sandbox import _UNCONFINED
print(_UNCONFINED.startswith("none: commands run with your full permissions; the policy asks before"))
""",
    "a policy file": """
from codingagent.model.settings import Settings
from codingagent.process.select_sandbox import policy_of
try:
    policy_of(Settings(policy=f"{here}/Max/Proj/policy.toml"), here / "max/PROJ")
except UsageError as fault:
    print("in the workspace" in str(fault))
""",
}


# Each in a fork of its own: it changes what it likes.
_EACH = """
import json, traceback
from codingagent.process import runner, select_sandbox
from codingagent.storage import homes
from codingagent.workspace import workspace
for number, (what, program) in enumerate(json.load(sys.stdin).items()):
    place = here / str(number)
    (place / "Max/Proj").mkdir(parents=True)
    (place / "Max/Proj/policy.toml").touch()
    (place / "caf\\u00e9").mkdir()
    print(what, end=": ", flush=True)
    if os.fork():
        os.wait()
        continue
    here = place
    try:
        exec(program)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(0)
"""


def test_a_folder_is_found_in_any_spelling(tmp_path: Path) -> None:
    words = [sys.executable, "-c", _BEGIN + _EACH, str(tmp_path.resolve())]
    given = json.dumps(PROGRAMS)
    done = subprocess.run(words, input=given, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f"{what}: True" for what in PROGRAMS], done.stderr


class _AnyCase(Folder):
    """A folder of a disk that ignores case."""

    def at(self, name: str) -> str:
        return super().at(name.lower())


def test_a_file_gets_its_name_in_another_spelling(tmp_path: Path) -> None:
    """No call there both renames and never replaces, and the new name is already found: it is this file."""
    folder = _AnyCase(str(tmp_path))
    (tmp_path / "readme.md").write_text("x")
    folder.move("README.md", folder, "Readme.md", overwrite=False)
    assert (tmp_path / "readme.md").read_text() == "x"
    os.link(tmp_path / "readme.md", tmp_path / "other")
    with pytest.raises(FileExistsError):
        folder.move("README.md", folder, "OTHER", overwrite=False)


def test_a_file_is_moved_on_a_disk_without_links(tmp_path: Path) -> None:
    """exFAT and shares have none. A folder stands for such a file: it can't be linked anywhere."""
    folder = Folder(str(tmp_path))
    (tmp_path / "a").mkdir()
    folder.move("a", folder, "b", overwrite=False)
    (tmp_path / "c").touch()
    with pytest.raises(FileExistsError):
        folder.move("b", folder, "c", overwrite=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c"]
