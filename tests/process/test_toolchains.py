"""What a command is shown of a home folder to find its tools: only that, and never more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codingagent.process.bubblewrap import tools_for
from codingagent.process.folders import tool_folders as folders
from tests.helpers import HANG_S, REPOSITORY, grows_with

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sandboxes that need this are POSIX")


class Machine:
    """A person's home with tools in it, a workspace in it, and a folder of the system's."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.home = self.root / "homes" / "person"
        self.workspace = self.home / "work" / "project"
        for folder in (self.workspace, self.home / ".ssh", self.root / "opt"):
            folder.mkdir(parents=True)
        (self.home / ".ssh" / "id").touch()

    def tool(self, path: str) -> Path:
        """Lays a program; gives the folder that it is in."""
        program = self.root / path
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n", "utf-8")
        program.chmod(0o755)
        return program.parent

    def python(self, path: str) -> Path:
        """Lays a whole Python; gives the folder of its programs."""
        prefix = self.root / path
        (prefix / "lib" / "python3.11").mkdir(parents=True)
        (prefix / "lib" / "python3.11" / "os.py").touch()
        return self.tool(f"{path}/bin/python3")

    def venv(self, folder: Path, home: str) -> Path:
        """Makes a virtual environment that says where its Python is; gives the folder of its programs."""
        (folder / "bin").mkdir(parents=True)
        (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n", "utf-8")
        return folder / "bin"

    def given(self, *path: Path | str, prefixes: tuple[str, ...] = ()) -> list[str]:
        """Return what is shown for a PATH, relative to the machine's root; nothing may be too much."""
        found = folders(os.pathsep.join(map(str, path)), self.home, self.workspace, prefixes)
        for folder in found:
            assert folder == folder.resolve()
            assert folder not in (self.home, *self.home.parents), "the home folder itself"
            assert self.home / ".ssh" not in (folder, *folder.parents), "keys"
            assert folder.parent != Path("/")
        return [str(folder.relative_to(self.root)) for folder in found]


@pytest.fixture(name="machine")
def _machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# --- what is given ---------------------------------------------------------------------------------


def test_an_installation_is_given_whole(machine: Machine) -> None:
    """Design, sandbox: a program is of use only with what is beside its `bin`."""
    path = machine.tool("homes/person/.nvm/versions/node/v20/bin/node")
    machine.tool("homes/person/.nvm/versions/node/v20/lib/node_modules/npm")
    assert machine.given(path) == ["homes/person/.nvm/versions/node/v20"]


@pytest.mark.parametrize("name", ["bin", "sbin", "shims"])
def test_what_holds_a_folder_of_programs_is_its_installation(machine: Machine, name: str) -> None:
    """A folder of these names may have its libraries beside it; if not, the rest is the person's."""
    path = machine.tool(f"homes/person/.tool/{name}/x")
    machine.tool("homes/person/.tool/credentials")
    assert machine.given(path) == [f"homes/person/.tool/{name}"]
    machine.tool("homes/person/.tool/lib/y")
    assert machine.given(path) == ["homes/person/.tool"]


@pytest.mark.parametrize("name", [".foundry", ".docker", ".pulumi", "Documents", ".config"])
def test_what_lies_beside_a_persons_own_programs_is_not_given(machine: Machine, name: str) -> None:
    """Design, sandbox: commands do not see the home folder's secrets."""
    machine.tool(f"homes/person/{name}/credentials.json")
    assert machine.given(machine.tool(f"homes/person/{name}/bin/x")) == [f"homes/person/{name}/bin"]


def test_a_folder_of_another_name_is_given_alone(machine: Machine) -> None:
    """A folder with programs in it says nothing of its neighbours."""
    machine.tool("homes/person/things/secret")
    path = machine.tool("homes/person/things/scripts/x")
    assert machine.given(path) == ["homes/person/things/scripts"]


def test_bin_in_the_home_folder_is_given_alone(machine: Machine) -> None:
    """`~/bin` belongs to nothing: what is beside it is the person's."""
    assert machine.given(machine.tool("homes/person/bin/x")) == ["homes/person/bin"]


def test_of_folders_with_more_in_them_only_the_tools_are_given(machine: Machine) -> None:
    """`~/.local` and `~/.cargo` hold keyrings and tokens beside their tools."""
    local, cargo = (machine.tool("homes/person/.local/bin/x"), machine.tool("homes/person/.cargo/bin/x"))
    for name in (
        *(".local/share/keyrings", ".local/lib/python3.11", ".local/share/uv/tools", ".rustup/x"),
        *(".local/share/uv/credentials", ".local/share/pipx/venvs", ".local/share/mise/shims"),
    ):
        (machine.home / name).mkdir(parents=True)
    (machine.home / ".cargo" / "credentials.toml").touch()
    (machine.home / ".cargo" / "registry").mkdir()
    assert machine.given(local, cargo) == [
        "homes/person/.cargo/bin",
        "homes/person/.local/bin",
        "homes/person/.local/lib",
        "homes/person/.local/share/pipx/venvs",
        "homes/person/.local/share/uv/tools",
    ]


def test_of_a_folder_for_go_the_sources_are_not_given(machine: Machine) -> None:
    """`~/go` holds the person's own projects beside the programs; unless it is the language itself."""
    path = machine.tool("homes/person/go/bin/x")
    for name in ("pkg/mod", "src/example.com/private"):
        (machine.home / "go" / name).mkdir(parents=True)
    assert machine.given(path) == ["homes/person/go/bin"]
    (machine.home / "go" / "src" / "runtime").mkdir()
    (machine.home / "go" / "lib").mkdir()
    assert machine.given(path) == ["homes/person/go"]


@pytest.mark.parametrize("name", [".gnupg", ".aws", ".docker", ".config", ".kube", ".terraform.d"])
def test_a_folder_of_credentials_is_never_given_itself(machine: Machine, name: str) -> None:
    """Design, sandbox: PATH opens tools: a `bin` there is given, and nothing beside it."""
    path = machine.tool(f"homes/person/{name}/bin/x")
    machine.tool(f"homes/person/{name}/lib/x")
    assert machine.given(path) == [f"homes/person/{name}/bin"]
    assert machine.given(path.parent) == []


def test_tools_in_what_is_hidden_of_others_are_given(machine: Machine) -> None:
    """Under a dot there may be what is on PATH itself: that is shown, and not what lies around it."""
    outer = machine.tool("homes/person/.tool/bin/x")
    inner = machine.tool("homes/person/.tool/.own/bin/y")
    machine.tool("homes/person/.tool/lib/z")
    assert machine.given(outer, inner) == ["homes/person/.tool", "homes/person/.tool/.own/bin"]


def test_a_virtual_environment_brings_its_python(machine: Machine) -> None:
    """A virtual environment is of no use without the Python that it was made from."""
    base = machine.python("homes/person/.pyenv/versions/3.11")
    path = machine.venv(machine.home / "envs" / "x", str(base))
    assert machine.given(path) == ["homes/person/.pyenv/versions/3.11", "homes/person/envs/x"]


def test_a_virtual_environment_in_the_workspace_brings_a_true_python(machine: Machine) -> None:
    """The usual case: `.venv` in the project, made from a Python in the home folder."""
    base = machine.python("homes/person/.pyenv/versions/3.11")
    path = machine.venv(machine.workspace / ".venv", str(base))
    assert machine.given(path) == ["homes/person/.pyenv/versions/3.11"]


def test_an_installation_besides_path_is_given(machine: Machine) -> None:
    """The running Python's own folders are tools, on PATH or not."""
    machine.python("homes/person/py")
    assert machine.given(prefixes=(str(machine.home / "py"),)) == ["homes/person/py"]


def test_links_of_the_persons_are_resolved(machine: Machine) -> None:
    """What the person has laid is believed; what is given is where it leads."""
    machine.tool("homes/person/.tool/v2/bin/x")
    machine.tool("homes/person/.tool/v2/lib/y")
    (machine.home / ".tool" / "current").symlink_to("v2")
    assert machine.given(machine.home / ".tool" / "current" / "bin") == ["homes/person/.tool/v2"]


def test_each_folder_is_given_once_and_none_within_another(machine: Machine) -> None:
    """A folder twice on PATH, or within another one, is one mount."""
    path = machine.tool("homes/person/.tool/bin/x")
    machine.tool("homes/person/.tool/lib/y")
    (machine.home / ".tool" / "bin" / "deep" / "bin").mkdir(parents=True)
    assert machine.given(path, path, path / "deep" / "bin") == ["homes/person/.tool"]


def test_a_path_of_many_folders_costs_as_much_as_they_are_many(machine: Machine) -> None:
    """Package managers put hundreds of folders on PATH, and each start looks at them."""
    path = [machine.tool(f"homes/person/tools/{number}/bin/x") for number in range(240)]
    grows_with(60, lambda size: machine.given(*path[:size]))


def linked(machine: Machine, target: str, name: str = "homes/person/.local/bin/x") -> Path:
    """Lays a link on PATH; gives the folder that it is in."""
    link = machine.root / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(machine.root / target)
    return link.parent


def test_a_link_on_path_brings_the_installation_that_it_leads_to(machine: Machine) -> None:
    """Installers put one link on PATH: poetry's, pipenv's, npm's with a folder of its own."""
    base = machine.python("homes/person/.pyenv/versions/3.11")
    machine.venv(machine.home / ".local" / "share" / "pypoetry" / "venv", str(base))
    machine.tool("homes/person/.local/share/pypoetry/venv/bin/poetry")
    machine.tool("homes/person/.local/share/pypoetry/secrets")
    path = linked(machine, "homes/person/.local/share/pypoetry/venv/bin/poetry")
    venv = "homes/person/.local/share/pypoetry/venv"
    python = "homes/person/.pyenv/versions/3.11"
    assert machine.given(path) == ["homes/person/.local/bin", venv, python]


LINKED = {
    "a package": ("apps/tool/package.json", "apps/tool/dist/cli.js", "apps/tool"),
    "a package among others": (
        "apps/node_modules/tool/package.json",
        "apps/node_modules/tool/cli.js",
        "apps/node_modules",
    ),
    "an installation": ("apps/tool/lib/x", "apps/tool/bin/run", "apps/tool"),
    "a program alone": ("apps/tool/secret", "apps/tool/run", "apps/tool/run"),
}


@pytest.mark.parametrize(("mark", "target", "shown"), LINKED.values(), ids=LINKED.keys())
@pytest.mark.parametrize("folder", ["homes/person/.local/bin", "opt/bin"])
def test_what_a_link_on_path_leads_to_is_given_as_narrowly_as_it_works(
    machine: Machine, folder: str, mark: str, target: str, shown: str
) -> None:
    machine.tool(f"homes/person/{mark}")
    machine.tool(f"homes/person/{target}")
    path = linked(machine, f"homes/person/{target}", f"{folder}/x")
    assert set(machine.given(path)) == {folder, f"homes/person/{shown}"}


def test_a_link_on_path_brings_nothing_that_is_private(machine: Machine) -> None:
    """The same rules as for folders on PATH: no home, no keys, nothing that an answer laid."""
    machine.tool("homes/person/package.json")
    machine.tool("homes/person/cli.js")
    machine.tool("homes/person/.aws/lib/x")
    machine.tool("homes/person/.aws/bin/aws")
    machine.tool("homes/person/private/lib/x")
    machine.tool("homes/person/private/bin/x")
    (machine.workspace / "out").symlink_to(machine.home / "private")
    for number, target in enumerate(
        (".ssh/id", ".ssh", "", "work/project/out/bin/x", "gone", ".aws/credentials", ".local/bin/x7")
    ):
        linked(machine, f"homes/person/{target}", f"homes/person/.local/bin/x{number}")
    linked(machine, "homes/person/cli.js", "homes/person/.local/bin/home")
    path = linked(machine, "homes/person/.aws/bin/aws", "homes/person/.local/bin/aws")
    bare = ["homes/person/.aws/bin/aws", "homes/person/.local/bin", "homes/person/cli.js"]
    assert machine.given(path) == bare


# --- what is never given ---------------------------------------------------------------------------


def test_the_home_folder_is_never_given(machine: Machine) -> None:
    """Design, sandbox: commands do not see the home folder's secrets, whatever is on PATH."""
    for path in (machine.home, f"{machine.home}/", f"{machine.home}/.ssh/..", machine.home.parent):
        assert machine.given(path) == []
    assert machine.given(machine.root) == []
    assert machine.given("/", "/bin/..") == []


def test_a_link_to_the_home_folder_is_not_given(machine: Machine) -> None:
    """A folder of programs that is the home folder by another name is still the home folder."""
    for name, target in (("bin", machine.home), ("up", machine.home.parent)):
        (machine.root / "opt" / name).symlink_to(target)
    assert machine.given(machine.root / "opt" / "bin", machine.root / "opt" / "up") == []


def test_a_home_folder_that_is_a_link_is_known(machine: Machine) -> None:
    """HOME may name the folder by a link: it is the same folder."""
    alias = machine.root / "alias"
    alias.symlink_to(machine.home)
    assert folders(str(alias), alias, machine.workspace) == []
    assert folders(str(machine.home), alias, machine.workspace) == []


@pytest.mark.parametrize("path", ["", ":", ".", "bin", "../bin", "~/bin", "no/such", "\n"])
def test_what_is_no_absolute_folder_is_passed_over(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A relative name means another folder wherever one stands; in a workspace it is the answer's."""
    machine.tool("homes/person/work/project/bin/x")
    monkeypatch.chdir(machine.workspace)
    assert machine.given(path) == []


def test_a_file_or_nothing_on_path_is_passed_over(machine: Machine) -> None:
    """PATH may name anything."""
    assert machine.given(machine.home / ".ssh" / "id", machine.home / "gone") == []


def test_the_workspace_is_not_given_again(machine: Machine) -> None:
    """It is visible anyway, and writable; as a tool it would be read-only."""
    path = machine.tool("homes/person/work/project/node_modules/.bin/x")
    own = machine.tool("homes/person/work/project/bin/x")
    assert machine.given(path, own, machine.workspace) == []


LINKS = {
    "the folder of programs": ("bin", "{home}/.ssh", "bin"),
    "a folder above it": ("tool", "{home}/.ssh", "tool/bin"),
    "to the home folder": ("bin", "{home}", "bin"),
    "to where it looks like tools": ("bin", "{home}/private/bin", "bin"),
    "a second link behind it": ("bin", "{root}/opt/link", "bin"),
}


@pytest.mark.parametrize(("name", "target", "path"), LINKS.values(), ids=LINKS.keys())
def test_a_link_in_the_workspace_is_not_believed(machine: Machine, name: str, target: str, path: str) -> None:
    """Design, sandbox: what an answer could have laid brings nothing into view."""
    (machine.home / ".ssh" / "bin").mkdir()
    machine.tool("homes/person/private/bin/x")
    (machine.root / "opt" / "link").symlink_to(machine.home / "private" / "bin")
    (machine.workspace / name).symlink_to(target.format(home=machine.home, root=machine.root))
    assert machine.given(machine.workspace / path) == []


def test_a_way_through_the_workspace_is_not_believed(machine: Machine) -> None:
    """The same if the way leads into the workspace by a link of the person's, and out of it again."""
    machine.tool("homes/person/private/bin/x")
    (machine.workspace / "out").symlink_to(machine.home / "private")
    (machine.home / "current").symlink_to(machine.workspace)
    assert machine.given(machine.home / "current" / "out" / "bin") == []
    (machine.home / "linked").symlink_to(machine.workspace / "out")
    assert machine.given(machine.home / "linked" / "bin") == []


def test_a_link_of_the_persons_to_a_link_of_an_answers_is_not_believed(machine: Machine) -> None:
    """The person keeps `~/bin` as a link into the project, where an answer puts a link in its place."""
    (machine.workspace / "bin").symlink_to(machine.home / "private")
    machine.tool("homes/person/private/x")
    (machine.home / "bin").symlink_to(machine.workspace / "bin")
    assert machine.given(machine.home / "bin") == []


FORGERIES = [
    *("{home}/.ssh", "{home}/.ssh/bin", "{home}", "{home}/private/bin", "{root}/opt", "/", "/etc"),
    *("../../.ssh", "", "{home}/private/bin/../../.ssh/x", "relative/bin", "\0", "{home}/" + "x" * 5000),
]


@pytest.mark.parametrize("said", FORGERIES, ids=range(len(FORGERIES)))
def test_a_virtual_environment_is_not_believed_by_what_it_says(machine: Machine, said: str) -> None:
    """Design, sandbox: pyvenv.cfg may say anything; only what holds a whole Python is one."""
    machine.tool("homes/person/private/bin/python3")
    (machine.home / ".ssh" / "bin").mkdir()
    home = said.format(home=machine.home, root=machine.root)
    path = machine.venv(machine.workspace / ".venv", home)
    assert machine.given(path) == []


def test_a_python_made_up_in_the_workspace_brings_nothing(machine: Machine) -> None:
    """An answer can lay a whole Python in the workspace, and links in it to anything."""
    base = machine.python("homes/person/work/project/py")
    (machine.workspace / "py" / "out").symlink_to(machine.home)
    path = machine.venv(machine.workspace / ".venv", str(base))
    shown = machine.given(path)
    assert all(name.startswith("homes/person/work/project") for name in shown)
    assert tools_for(machine.workspace, str(path), machine.home, ()) == ()


def test_a_python_linked_together_in_the_workspace_brings_nothing(machine: Machine) -> None:
    """The marks of a Python laid beside a link to what is secret make no Python of it."""
    private = machine.home / "private"
    private.mkdir()
    fake = machine.workspace / "fake"
    (fake / "lib" / "python3.11").mkdir(parents=True)
    (fake / "lib" / "python3.11" / "os.py").touch()
    (fake / "bin").symlink_to(private)
    path = machine.venv(machine.workspace / ".venv", str(fake / "bin"))
    assert machine.given(path) == []


VENV_TRAPS = {
    "a FIFO": "mkfifo pyvenv.cfg",
    "a file without end": "ln -s /dev/zero pyvenv.cfg",
    "a huge file": "truncate -s 1T pyvenv.cfg",
    "a loop": "ln -s pyvenv.cfg pyvenv.cfg",
    "a folder": "mkdir pyvenv.cfg",
}

BOUNDED = """
import resource, sys
from pathlib import Path
from codingagent.process.folders import tool_folders as folders
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
folders(sys.argv[1] + "/.venv/bin", Path("/nowhere/home"), Path(sys.argv[1]))
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("trap", VENV_TRAPS.values(), ids=VENV_TRAPS.keys())
def test_a_virtual_environment_that_is_a_trap_does_not_hold_us(tmp_path: Path, trap: str) -> None:
    """What a command has made of pyvenv.cfg costs the next session neither time nor memory."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    subprocess.run(["/bin/sh", "-c", trap], cwd=tmp_path / ".venv", check=True)
    try:
        done = subprocess.run(
            [sys.executable, "-c", BOUNDED, str(tmp_path)],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.fail("it waits for ever")
    assert done.returncode == 0, done.stderr


def test_the_system_is_not_given_again(machine: Machine) -> None:
    """What every sandbox shows needs no second mount, nor does the workspace."""
    found = tools_for(machine.workspace, "/usr/bin:/bin:/usr/local/bin", machine.home, ())
    assert found == ()
