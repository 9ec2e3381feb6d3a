"""What tools keep in a person's home: commands see narrow parts of it, and write to a project's layer."""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from codingagent.errors import UsageError
from codingagent.model.observations import Outcome
from codingagent.model.settings import Settings
from codingagent.process import folders
from codingagent.process.bubblewrap import Bubblewrap, forget_layer
from codingagent.process.diagnosis import causes
from codingagent.process.runner import Runner, environment
from codingagent.process.select_sandbox import bubblewrap_for, layer_of, paths_to_show
from tests.helpers import HANG_S
from tests.sandboxes import needs_bwrap

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")

SECRET = "SECRET, a credential"
ROWS = folders.pairs("tools")

# As pip, twine, npm, cargo, gem, composer, Maven, Gradle, docker, kube and git keep them.
CREDENTIALS = (
    *(".npmrc", ".pypirc", ".netrc", ".pgpass", ".git-credentials", ".aws/credentials"),
    *(".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"),
    *(".cargo/credentials.toml", ".cargo/credentials", ".gem/credentials", ".bundle/config"),
    *(".local/share/gem/credentials", ".composer/auth.json", ".config/composer/auth.json"),
    *(".config/pip/pip.conf", ".pip/pip.conf", ".docker/config.json", ".kube/config"),
    *(".config/pypoetry/auth.toml", ".config/hatch/config.toml", ".cargo/config.toml"),
    *(".config/gh/hosts.yml", ".hex/hex.config", ".nuget/NuGet/NuGet.Config", ".yarnrc.yml"),
    *(".cache/huggingface/token", ".terraform.d/credentials.tfrc.json", ".conan2/credentials.json"),
)


class Site:
    """A person's home with tools' data in it, a project there, and where codingagent keeps its state."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home, self.project = root / "person", root / "person" / "project"
        self.project.mkdir(parents=True)

    def lay(self, name: str, text: str = "theirs", mode: int = 0o644) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        path.chmod(mode)
        return path

    def sandbox(self, *, has_network: bool = False, check: str = "") -> Bubblewrap:
        own = self.root / "own" / "tmp"
        found = bubblewrap_for(self.project, (), own, has_network, check=check)
        assert found is not None
        return found

    def run(
        self, line: str, sandbox: Bubblewrap | None = None, variables: Mapping[str, str] | None = None
    ) -> Outcome:
        """Runs a shell line as a command of its own; it must have started."""
        chosen = sandbox or self.sandbox()
        shown = environment({**os.environ, **(variables or {})}, tuple(variables or ()))
        with contextlib.closing(Runner(chosen, shown)) as runner:
            outcome = runner.run(line, str(chosen.workspace), HANG_S, lambda _: None)
        assert not outcome.failure, outcome.failure
        return outcome

    def says(self, line: str, sandbox: Bubblewrap | None = None) -> str:
        return self.run(f"{{ {line}\n}} 2>&1", sandbox).output.strip()

    def theirs(self) -> list[tuple[str, int, int, bytes]]:
        """Return everything of the person's, but the project, with its state."""
        found = [path for path in self.home.rglob("*") if self.project not in (path, *path.parents)]
        return [
            (str(path), path.lstat().st_mtime_ns, path.lstat().st_mode, _bytes(path))
            for path in sorted(found)
        ]


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""


@pytest.fixture(name="site")
def _site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    needs_bwrap()
    # Not in /tmp, of which a sandbox has its own.
    root = Path(tempfile.mkdtemp(prefix="codingagent-test-", dir="/var/tmp")).resolve()
    site = Site(root)
    for name in list(os.environ):
        if name.startswith("XDG_") or name in ("GOPATH", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(site.home))
    monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    yield site
    subprocess.run(["chmod", "-R", "u+rwX", str(root)], check=False)
    shutil.rmtree(root, ignore_errors=True)


# --- what is shown ---------------------------------------------------------------------------------


def test_each_part_of_the_table_is_seen_and_no_credential(site: Site) -> None:
    """Design, sandbox: the data of tools that the project uses is shown without its credentials."""
    parts = []
    for names in ROWS:
        project_file = names.split()[-1]
        (site.project / project_file).touch()
        found = folders.parts_of("", ROWS[names], site.home, {})
        parts += [part.target for part, _ in found]
    files = {f"{part.relative_to(site.home)}" for part in parts}
    is_file = {".cargo/config", ".cargo/config.toml"} | {each for each in files if ".toml" in each}
    is_file |= {".config/go/env", ".config/ccache/ccache.conf"}
    for name in files - is_file:
        site.lay(f"{name}/kept/data", f"data of {name}")
        for hidden in ("credentials.json", ".netrc", "npmrc", "kept/token", "kept/settings-security.xml"):
            site.lay(f"{name}/{hidden}", SECRET)
    for name in CREDENTIALS:
        site.lay(name, f'[registry]\ntoken = "{SECRET}"\n')
    for name in is_file - {*CREDENTIALS}:
        site.lay(name, f"data of {name}")
    before = site.theirs()
    said = site.says("cd ~ && grep -rha . . --exclude-dir=project")
    assert SECRET not in said
    told = {line.removeprefix("data of ") for line in said.splitlines() if "data of" in line}
    assert told == files - {*CREDENTIALS}
    assert site.theirs() == before


def test_what_no_program_and_no_project_file_asks_for_is_not_seen(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part is shown for a tool that is here: by a program on PATH, or by a file of the project."""
    site.lay("go/pkg/mod/x")
    monkeypatch.setenv("PATH", "/nowhere:/usr/bin:/bin")
    if not shutil.which("go"):
        assert site.says("ls ~/go") == f"ls: cannot access '{site.home}/go': No such file or directory"
    site.lay("tools/go", mode=0o755)
    monkeypatch.setenv("PATH", f"{site.home}/tools:/usr/bin:/bin")
    assert site.says("ls ~/go/pkg/mod") == "x"


def test_a_project_file_in_a_folder_of_the_project_asks_for_its_tool(site: Site) -> None:
    site.lay(".yarn/berry/cache/x")
    site.lay("project/web/yarn.lock")
    assert site.says("ls ~/.yarn/berry/cache") == "x"


def test_data_of_tools_is_looked_for_once_when_the_first_command_runs(site: Site) -> None:
    """A start looks for none; what commands do later changes nothing of what they see."""
    sandbox = site.sandbox()
    site.lay(".yarn/berry/cache/x")
    site.lay("project/yarn.lock")
    assert site.says("ls ~/.yarn/berry/cache", sandbox) == "x"
    site.lay("go/pkg/mod/x")
    site.lay("project/go.mod")
    assert "No such file" in site.says("ls ~/go/pkg/mod", sandbox)


def test_a_variable_of_the_persons_leads_to_a_part(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that keeps its data elsewhere finds it there: the variable comes along, if it is a path."""
    site.lay("project/go.mod")
    site.lay("elsewhere/pkg/mod/x")
    site.lay("caches/pre-commit/x")
    site.lay("project/.pre-commit-config.yaml")
    monkeypatch.setenv("GOPATH", f"{site.home}/elsewhere")
    monkeypatch.setenv("XDG_CACHE_HOME", f"{site.home}/caches")
    monkeypatch.setenv("GOMODCACHE", "not a path")
    said = site.says('cat "$GOPATH/pkg/mod/x" "$XDG_CACHE_HOME/pre-commit/x"; echo ".$GOMODCACHE."')
    assert said == "theirstheirs.."


LINKS = {
    "keys": ".ssh",
    "a folder of credentials": ".aws",
    "the home": ".",
    "above the home": "..",
    "the whole disk": "/",
    "the project": "project/made",
    "keys, through the project": "project/link",
}


@pytest.mark.parametrize("target", LINKS.values(), ids=LINKS.keys())
def test_a_part_that_is_a_link_brings_no_secret_into_view(site: Site, target: str) -> None:
    """Design, sandbox: links of a cache lead to no credentials, and an answer's links to nothing."""
    for name in (".ssh", ".aws", "project/made"):
        site.lay(f"{name}/secret", SECRET)
    (site.project / "link").symlink_to(site.home / ".ssh")
    site.lay("project/package.json")
    (site.home / ".npm").mkdir()
    (site.home / ".npm" / "_cacache").symlink_to(site.home / target)
    said = site.says(
        "ls -A ~/.npm/_cacache/; cat ~/.npm/_cacache/secret ~/.npm/_cacache/.ssh/secret ~/.ssh/secret"
    )
    assert said.count("No such file or directory") == len(said.splitlines()) in (3, 4)


def test_a_part_may_be_a_link_to_another_disk(site: Site) -> None:
    """Large caches are kept elsewhere."""
    site.lay("project/package.json")
    (site.root / "disk" / "npm").mkdir(parents=True)
    (site.root / "disk" / "npm" / "x").write_text("there", "utf-8")
    (site.home / ".npm").mkdir()
    (site.home / ".npm" / "_cacache").symlink_to(site.root / "disk" / "npm")
    assert site.says("cat ~/.npm/_cacache/x; echo new >~/.npm/_cacache/y") == "there"
    assert [each.name for each in (site.root / "disk" / "npm").iterdir()] == ["x"]


def test_links_in_a_part_lead_nowhere_outside(site: Site) -> None:
    """What a cache links to is seen only where commands see it anyway."""
    site.lay(".ssh/id", SECRET)
    site.lay("project/package.json")
    site.lay(".npm/_cacache/x")
    (site.home / ".npm" / "_cacache" / "key").symlink_to(site.home / ".ssh" / "id")
    (site.home / ".npm" / "_cacache" / "all").symlink_to(site.home)
    assert SECRET not in site.says("cd ~/.npm/_cacache; cat key all/.ssh/id all/secret; ls -A all/.ssh")


def test_a_file_is_shown_only_without_a_secret(site: Site) -> None:
    site.lay("project/Cargo.toml")
    config = site.lay(".cargo/config.toml", '[build]\nrustflags = ["--cfg", "x"]\n')
    assert "rustflags" in site.says("cat ~/.cargo/config.toml; echo >>~/.cargo/config.toml")
    assert config.read_text("utf-8").count("\n") == 2
    config.write_text(f'[registry]\ntoken = "{SECRET}"\n', "utf-8")
    assert SECRET not in site.says("cat ~/.cargo/config.toml")


# --- what is written -------------------------------------------------------------------------------


def filled(site: Site) -> Site:
    """Gives a tool a cache with a credential in it, and a second one that is not there yet."""
    site.lay("project/package.json")
    site.lay("project/build.gradle")
    site.lay(".npm/_cacache/x")
    site.lay(".npm/_cacache/credentials", SECRET)
    return site


def test_what_a_command_writes_the_next_one_finds_and_nobody_else(site: Site) -> None:
    """Design, sandbox: what is written goes to a layer of this project's own, never to the person's cache."""
    filled(site)
    other = site.lay("other/package.json").parent
    before = site.theirs()
    site.says(
        "cd ~ && echo changed >.npm/_cacache/x && echo new >.npm/_cacache/y && echo c >.cache/c"
        " && echo g >.gradle/caches/g && ln -s /etc/passwd .npm/_cacache/link; echo z >z"
    )
    assert site.says("cd ~ && cat .npm/_cacache/[xy] .cache/c .gradle/caches/g; ls z") == (
        "changed\nnew\nc\ng\nls: cannot access 'z': No such file or directory"
    )
    assert site.theirs() == before
    layer = layer_of(site.project)
    assert layer is not None
    inside = site.says(f"ls -d {shlex.quote(str(layer))} {site.root}/state; touch {layer}/1/x")
    assert inside.count("No such file") == 3
    sandbox = bubblewrap_for(other, (), site.root / "own" / "tmp", has_network=False)
    assert site.says("cd ~ && cat .npm/_cacache/x; ls .cache/c", sandbox) == (
        "theirsls: cannot access '.cache/c': No such file or directory"
    )
    site.says("cd ~ && rm -rf .npm/_cacache/* && mkdir .npm/_cacache/x")
    assert site.theirs() == before
    assert forget_layer(layer)
    assert not layer.exists()
    assert site.says("cat ~/.npm/_cacache/x") == "theirs"


# What an answer leaves in a layer to lead the next command, or its mounts, astray.
POISONS = {
    "a link in the place of a folder above a part": "mv node n; ln -s {project}/evil node",
    "a link out of the sandbox's root": "mv node n; ln -s /oldroot{home}/.ssh node",
    "a file in its place": "rm -rf node; echo >node",
    "a file where a part comes later": "echo >pre-commit",
    "a link where a part comes later": "ln -s {project}/evil pre-commit",
    "a link where a credential comes later": "ln -s {project}/evil ~/.npm/_cacache/token",
    "a folder where a credential comes later": "mkdir ~/.npm/_cacache/token",
    "a link where a program comes later": "ln -s {home}/.ssh program",
}


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS.keys())
def test_what_is_left_in_a_layer_leads_no_later_command_astray(
    site: Site, monkeypatch: pytest.MonkeyPatch, poison: str
) -> None:
    """Design, sandbox: the upper folder is as untrusted as the workspace; commands go on to work."""
    filled(site)
    site.lay(".ssh/id", SECRET)
    (site.project / "evil" / "corepack").mkdir(parents=True)
    site.lay("project/yarn.lock")
    site.lay("project/.pre-commit-config.yaml")
    line = poison.format(project=site.project, home=site.home)
    assert "evil" not in site.says(f"cd ~/.cache && mkdir -p node && {line}")
    site.lay(".cache/node/corepack/v1/pnpm", "theirs")
    site.lay("tools/corepack", mode=0o755)
    site.lay(".cache/pre-commit/db")
    site.lay(".npm/_cacache/token", SECRET)
    monkeypatch.setenv("PATH", f"{site.lay('.cache/program/bin/x', mode=0o755).parent}:/usr/bin:/bin")
    before = site.theirs()
    said = site.says(
        "echo works; ls -R ~/.cache; cat ~/.cache/*/* ~/.cache/*/*/* ~/.npm/*/*; touch ~/.cache/node/made"
    )
    assert said.startswith("works")
    assert SECRET not in said
    assert site.theirs() == before
    assert [*(site.project / "evil").rglob("*")] in (
        [site.project / "evil" / "corepack"],
        [site.project / "evil" / "corepack", site.project / "evil" / "made"],
    )


def test_a_layer_can_not_be_told_to_show_what_is_hidden(site: Site) -> None:
    """The kernel reads its notes in a layer from attributes of files: no command can write those."""
    filled(site)
    for name in ("_cacache/a/credentials", "_cacache/b/x"):
        site.lay(f".npm/{name}", SECRET if "cred" in name else "theirs")
    write = "import os; os.setxattr('b', 'user.overlay.redirect', b'/a')"
    said = site.says(
        f"cd ~/.npm/_cacache; python3 -c {shlex.quote(write)}; mkdir n; mv a n/a; cp -r a n/c; cat n/*/*"
    )
    assert SECRET not in said
    assert SECRET not in site.says("cd ~/.npm/_cacache; cat */* n/*/*; mv b n/b; cat n/b/*")


@pytest.mark.parametrize("place", [".npm/_cacache", "tools"])
def test_a_credential_stays_hidden_when_it_is_replaced(
    site: Site, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A login writes a new file and renames it, in the midst of a command that looks for it."""
    filled(site)
    secret = site.lay(f"{place}/credentials", SECRET)
    site.lay("tools/x", mode=0o755)
    monkeypatch.setenv("PATH", f"{site.home}/tools:/usr/bin:/bin")
    (site.project / "go").unlink(missing_ok=True)
    done = threading.Event()

    def log_in() -> None:
        while not (site.project / "looks").exists():
            done.wait(0.01)
        for _ in range(50):
            new = secret.with_name("new")
            new.write_text(SECRET, "utf-8")
            new.rename(secret)
        (site.project / "go").touch()

    person = threading.Thread(target=log_in)
    person.start()
    said = site.says(
        f"touch looks; until [ -e go ]; do cat ~/{place}/credentials; done; cat ~/{place}/credentials"
    )
    done.set()
    person.join()
    assert said == ""


def test_two_commands_at_once_do_not_write_to_one_folder(site: Site) -> None:
    """Two overlays with one upper folder are undefined: the second command gets a folder of its own."""
    filled(site)
    turns = [
        threading.Thread(
            target=site.says,
            args=(f"echo >{mine}; until [ -e {other} ]; do :; done; echo {mine} >>~/.cache/mark",),
        )
        for mine, other in (("a", "b"), ("b", "a"))
    ]
    for each in turns:
        each.start()
    for each in turns:
        each.join()
    layer = layer_of(site.project)
    assert layer is not None
    assert sorted(each.name for each in layer.iterdir()) == ["1", "2"]
    marks = [path.read_text("utf-8") for path in layer.glob("*/plain/*/mark")]
    assert sorted(marks) == ["a\n", "b\n"]


def test_a_full_layer_ends_the_command_and_begins_anew(site: Site) -> None:
    """It is bounded, in one command and in many."""
    filled(site)
    small = replace(site.sandbox(), layer_bytes=4 * 2**20)
    grow = "head -c {} /dev/urandom >~/.cache/{}; echo kept"
    endless = f"n=0; while :; do {grow.format(2**20, '$n')}; n=$((n + 1)); done"
    ended = site.run(endless, small)
    assert (ended.ended_by, ended.limit) == ("layer_limit", "5 GB")
    assert site.says("ls -A ~/.cache", small).split() == site.says("ls -A ~/.cache", small).split()
    assert "0" not in site.says("ls -A ~/.cache", small).split()
    counts = []
    with contextlib.closing(Runner(small, environment(os.environ))) as runner:
        for number in range(20):
            line = f"{grow.format(2**20, f'file{number}')}; ls ~/.cache | grep -c file"
            outcome = runner.run(line, str(site.project), HANG_S, lambda _: None)
            counts += [int(each) for each in outcome.output.split() if each.isdigit()]
    assert max(counts) < 10, "many commands, which each write little, fill it"
    assert counts != sorted(counts), "it was emptied"


def test_without_a_layer_over_it_a_part_is_read_only(site: Site) -> None:
    """Where the kernel can't lay one over a folder: to read, and caches of the project's own; both work."""
    if os.geteuid():
        pytest.skip("in a user namespace of one's own no program belongs to root")
    filled(site)
    site.lay(".gradle/caches/theirs")
    for name in ("state", "upper", "work"):
        (site.root / name).mkdir(exist_ok=True)
    # A folder of an overlay can't be the upper one of another: so it is in most containers.
    layers = f"lowerdir={site.root}/state,upperdir={site.root}/upper,workdir={site.root}/work"
    inside = f"""
import os, sys
from pathlib import Path
sys.path[:0] = {sys.path!r}
from codingagent.process.runner import Runner, environment
from codingagent.process.select_sandbox import bubblewrap_for, prove_sandbox
found = bubblewrap_for(Path({str(site.project)!r}), (), Path({str(site.root)!r}) / "own/tmp", False)
runner = Runner(found, environment(os.environ))
for line in (
    "cat ~/.npm/_cacache/x ~/.npm/_cacache/credentials; touch ~/.npm/_cacache/y",
    "ls ~/.gradle/caches; echo ours >~/.gradle/caches/g; echo c >~/.cache/c",
    "cat ~/.gradle/caches/g ~/.cache/c",
):
    outcome = runner.run(line, {str(site.project)!r}, 60, lambda _: None)
    print(outcome.output, outcome.failure, end="")
runner.close()
print(prove_sandbox(Path("/var/tmp"))["tools' folders can be written"][0])
"""
    mount = f"mount -t overlay -o userxattr,{layers} overlay {site.root}/state"
    line = f"{mount} && exec {shlex.quote(sys.executable)} -c {shlex.quote(inside)}"
    done = subprocess.run(["unshare", "-Urm", "sh", "-c", line], capture_output=True, text=True, check=False)
    if "mount:" in done.stderr:
        pytest.skip(f"no overlay can be mounted here: {done.stderr}")
    touched = f"touch: cannot touch '{site.home}/.npm/_cacache/y': Read-only file system"
    assert done.stdout == f"theirs{touched}\n  ours\nc\n False\n", done.stderr


# --- programs --------------------------------------------------------------------------------------


def test_the_persons_check_may_name_a_program_of_the_home_by_its_path(site: Site) -> None:
    """The check is the person's own: what it names is a tool, as if its folder were on PATH."""
    site.lay("envs/demo/bin/tool", "#!/bin/sh\ncat ${0%/*}/../lib/x\n", 0o755)
    site.lay("envs/demo/lib/x", "found")
    for named in (
        f"{site.home}/envs/demo/bin/tool -q",
        "~/envs/demo/bin/tool",
        "FOO=1 $HOME/envs/demo/bin/tool",
    ):
        assert site.says(named, site.sandbox(check=named)) == "found"
    assert "not found" in site.says("~/envs/demo/bin/tool")


def test_without_network_tools_are_told_not_to_try(site: Site) -> None:
    """Tools' retries end at once; what the person passes is theirs, and with network nothing is set."""
    assert site.says("echo $PIP_RETRIES $UV_OFFLINE $GOPROXY") == "0 1 off"
    assert site.says("echo $PIP_RETRIES $UV_OFFLINE", site.sandbox(has_network=True)) == ""
    theirs = {"GOPROXY": "file:///proxy", "GRADLE_OPTS": "-Xmx2g"}
    assert site.run("echo $GOPROXY $GRADLE_OPTS", variables=theirs).output == "file:///proxy -Xmx2g\n"


@pytest.mark.parametrize("has_network", [False, True])
def test_no_daemon_is_started_that_would_end_with_the_command(site: Site, *, has_network: bool) -> None:
    said = site.says("echo $GRADLE_OPTS", site.sandbox(has_network=has_network))
    assert "-Dorg.gradle.daemon=false" in said


def test_the_system_tells_its_processors_and_has_shared_memory(site: Site) -> None:
    assert (
        site.says("cat /sys/devices/system/cpu/online")
        == Path("/sys/devices/system/cpu/online").read_text("utf-8").strip()
    )
    assert "Read-only" in site.says("echo 0 >/sys/devices/system/cpu/cpu0/online || touch /sys/x")
    outside = os.statvfs("/dev/shm")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    inside = int(site.says("stat -f -c '%b * %S' /dev/shm").partition(" ")[0]) * 4096
    most = min(outside.f_blocks * outside.f_frsize, memory // 4)
    assert abs(inside - max(most, 256 * 2**20)) < 2**20


# --- what the person says to show ------------------------------------------------------------------


def shown(site: Site, *paths: str) -> Bubblewrap:
    settings = Settings(show=paths)
    return replace(site.sandbox(), shown=paths_to_show(settings, site.project))


def test_the_person_shows_a_path_to_read_or_to_write(site: Site) -> None:
    """Design, sandbox: `show` in the person's settings adds paths; credentials stay hidden there, too."""
    site.lay("data/x")
    site.lay("data/credentials", SECRET)
    site.lay("scratch/x")
    sandbox = shown(site, "~/data", f"{site.home}/scratch:rw", "~/missing")
    said = site.says("cd ~; cat data/*; touch data/y; cat scratch/x; echo w >scratch/y", sandbox)
    assert said == "theirstouch: cannot touch 'data/y': Read-only file system\ntheirs"
    assert (site.home / "scratch" / "y").read_text("utf-8") == "w\n"


REFUSED = {
    "the home": "~",
    "above": "~/..",
    "the disk": "/",
    "a folder of the disk": "/var",
    "relative": "data",
    "codingagent's settings": "~/.config/codingagent:rw",
    "around them": "~/.config",
    "its state": "{state}/codingagent/layers",
    "its code": str(Path(folders.__file__).parent),
}


@pytest.mark.parametrize("path", REFUSED.values(), ids=REFUSED.keys())
def test_a_home_or_what_is_codingagents_own_is_not_shown(site: Site, path: str) -> None:
    (site.home / ".config" / "codingagent").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"^show: "):
        shown(site, path.format(state=site.root / "state"))


def test_a_home_of_codingagents_is_not_shown_but_what_lies_around_the_project(site: Site) -> None:
    """An answer could else write the record and the answers of its own session."""
    sessions = site.lay("agent/sessions/x").parent
    inside = site.project / ".codingagent"
    settings = Settings(show=("~/agent:rw",))
    with pytest.raises(UsageError, match=r"codingagent's own files"):
        paths_to_show(settings, site.project, (sessions, inside))
    assert paths_to_show(settings, site.project, (inside,)) == {sessions.parent: True}


def test_a_path_that_leads_through_the_project_is_not_shown(site: Site) -> None:
    site.lay(".ssh/id", SECRET)
    (site.project / "link").symlink_to(site.home / ".ssh")
    assert shown(site, f"{site.project}/link").shown == {}


def test_the_sandbox_says_what_is_seen(site: Site) -> None:
    """For a diagnosis: whether a path is hidden."""
    filled(site)
    sandbox = site.sandbox()
    key = site.home / ".ssh" / "id"
    assert sandbox.unseen([site.home / ".npm" / "_cacache" / "x", key]) == [key]


LINKED = {
    "python": (".venv/lib/python3.11/site-packages", "ModuleNotFoundError: No module named 'other_lib'"),
    "npm": ("node_modules", "Error: Cannot find module 'other-lib'"),
    "a scope of npm": ("node_modules/@us", "Error: Cannot find package '@us/other-lib' imported from /a.js"),
}


@pytest.mark.parametrize(("folder", "said"), LINKED.values(), ids=LINKED.keys())
def test_a_package_installed_where_it_lies_is_named(site: Site, folder: str, said: str) -> None:
    """Outside it works (`pip install -e`: PEP 610; `npm link`); inside, a tool says that it is missing."""
    for name in ("other", "unused"):
        there = site.lay(f"code/{name}/{name}_lib/__init__.py").parents[1]
        note = json.dumps({"dir_info": {"editable": True}, "url": there.as_uri()})
        at = Path("project", folder, f"{name}-1.dist-info", "direct_url.json")
        if folder.startswith(".venv"):
            site.lay(str(at), note)
        else:
            (site.home / at.parents[1]).mkdir(parents=True, exist_ok=True)
            (site.home / at.parents[1] / f"{name}-lib").symlink_to(there)

    def told(output: str) -> list[str]:
        return [*causes(site.sandbox(), "check", output, os.environ, environment(os.environ))]

    assert told(said) == ["in the sandbox ~/code/other is hidden: codingagent config add show '~/code/other'"]
    assert told(said.replace("other", "foreign")) == []
