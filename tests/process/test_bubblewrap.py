"""The sandbox by itself: what it hides and shows, how it is chosen, and that work can be done in it."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from msgspec.structs import replace

from codingagent.errors import WorkError
from codingagent.model.observations import Outcome
from codingagent.model.settings import Settings
from codingagent.policy.rules import PRESETS
from codingagent.process import select_sandbox
from codingagent.process.bubblewrap import Bubblewrap, Unconfined, advice_on, find_bubblewrap
from codingagent.process.folders import git_folders
from codingagent.process.runner import Runner, environment
from codingagent.process.select_sandbox import bubblewrap_for, choose_sandbox, try_sandbox
from tests.helpers import HANG_S, REPOSITORY
from tests.sandboxes import needs_bwrap, needs_root

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")

SECRET = "SECRET"


@dataclass
class Site:
    """A person's home with a project in it; neither is in /tmp, of which a sandbox has its own."""

    root: Path
    tools: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    has_network: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    name: str = "project"
    home: Path | None = None

    @property
    def person(self) -> Path:
        return self.root / "person"

    @property
    def workspace(self) -> Path:
        return self.person / self.name

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    def sandbox(self) -> Bubblewrap:
        found = bubblewrap_for(self.workspace, self.hidden, self.root / "session" / "tmp", self.has_network)
        assert found is not None
        tools = (*found.tools(), *self.tools)
        return replace(found, home=self.home or self.person, tools=lambda: tools)

    def run(self, line: str, timeout_s: float = HANG_S) -> Outcome:
        """Runs a shell line in the workspace; it must have started."""
        variables = environment({**os.environ, **self.variables}, tuple(self.variables))
        runner = Runner(self.sandbox(), variables)
        with contextlib.closing(runner):
            outcome = runner.run(line, str(self.workspace), timeout_s, lambda _: None)
        assert not outcome.failure, outcome.failure
        assert outcome.sandbox == "bwrap"
        return outcome

    def says(self, line: str) -> str:
        return self.run(f"{{ {line}\n}} 2>&1").output.strip()


def says(sandbox: Bubblewrap, line: str) -> str:
    """Runs a shell line in a sandbox; gives what it printed."""
    with contextlib.closing(Runner(sandbox, environment(os.environ))) as runner:
        outcome = runner.run(line, str(sandbox.workspace), 30, lambda _: None)
    assert not outcome.failure, outcome.failure
    return outcome.output


@pytest.fixture(name="site")
def _site() -> Iterator[Site]:
    needs_bwrap()
    root = Path(tempfile.mkdtemp(prefix="codingagent-test-", dir="/var/tmp")).resolve()
    site = Site(root)
    for folder in (site.workspace, site.outside, site.person / ".ssh"):
        folder.mkdir(parents=True)
    for file in (site.person / "secret", site.person / ".ssh" / "id", site.outside / "secret"):
        file.write_text(SECRET, "utf-8")
    yield site
    subprocess.run(["rm", "-rf", str(root)], check=True)


# --- how it is chosen ------------------------------------------------------------------------------

FAILING = "#!/bin/sh\n[ $1 = --version ] && echo bubblewrap 0.8.0 && exit\necho '{}' >&2; exit 1\n"
FAILURES = {
    "bwrap: No permissions to create new namespace": "does not let users create namespaces",
    "bwrap: setting up uid map: Permission denied": "only selected programs",
    "bwrap: setting up uid map: Operation not permitted": "run codingagent as another user",
    "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted": "only selected programs",
    "bwrap: Can't mount proc on /newroot/proc": "systempaths=unconfined",
    "something new": "something new",
}


def program_at(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return str(path)


def choose(
    tmp_path: Path, program: str | None, sandbox: Literal["auto", "require", "off"], put: pytest.MonkeyPatch
) -> Bubblewrap | Unconfined:
    """Chooses a sandbox as if the system's bubblewrap were another program, or not there."""
    put.setattr(select_sandbox, "find_bubblewrap", lambda: program)
    settings = Settings(sandbox=sandbox)
    return choose_sandbox(settings, PRESETS["standard"], tmp_path, (), tmp_path / "own")


@pytest.mark.parametrize(("said", "meaning"), FAILURES.items(), ids=FAILURES.keys())
def test_a_bubblewrap_that_cannot_make_namespaces_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, meaning: str
) -> None:
    """Design, sandbox: where there is none commands run unconfined, and that is said with the reason."""
    program = program_at(tmp_path / "bwrap", FAILING.format(said.replace("'", "'\\''")))
    found = choose(tmp_path, program, "auto", monkeypatch)
    assert isinstance(found, Unconfined)
    assert said in found.reason
    assert meaning in found.reason
    assert found.reason in found.remark
    assert (found.tier, found.has_network) == ("none", True)
    assert meaning in advice_on(said)


@pytest.mark.parametrize("program", ["failing", "confining nothing", "silent", "not there"])
def test_require_never_downgrades(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Design, sandbox: `require` refuses instead, whatever is wrong with what there is."""
    texts = {
        "failing": FAILING.format("no"),
        "confining nothing": '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n',
        "silent": "#!/bin/sh\nexit 0\n",
    }
    path = program_at(tmp_path / "bwrap", texts[program]) if program in texts else None
    with pytest.raises(WorkError, match="a sandbox is required but does not work"):
        choose(tmp_path, path, "require", monkeypatch)
    assert isinstance(choose(tmp_path, path, "auto", monkeypatch), Unconfined)


def test_off_is_off_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design, sandbox: the person may turn it off; the session says so in plain words."""
    found = choose(tmp_path, "/nowhere/bwrap", "off", monkeypatch)
    assert isinstance(found, Unconfined)
    assert "--sandbox off" in found.remark
    assert "without a sandbox" in found.remark


def test_one_that_works_is_used(tmp_path: Path) -> None:
    """Design, sandbox: with bubblewrap present commands are confined, without being asked."""
    needs_bwrap()
    for sandbox in ("auto", "require"):
        settings = Settings(sandbox=sandbox)
        found = choose_sandbox(settings, PRESETS["standard"], tmp_path, (), tmp_path / "own")
        assert isinstance(found, Bubblewrap)
        assert not found.has_network
        assert try_sandbox(found) == ""


def test_bubblewrap_is_taken_from_trusted_folders_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design, sandbox: a program of that name that an answer could have made is not used."""
    fake = program_at(tmp_path / "bwrap", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert shutil.which("bwrap") == fake
    assert find_bubblewrap() in {None, "/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"}


def test_the_network_is_on_only_where_it_was_asked_for(tmp_path: Path) -> None:
    """Design, sandbox: no network, unless --network or the policy says so."""
    needs_bwrap()
    policy = PRESETS["standard"]
    allowing = replace(policy, network=replace(policy.network, enabled=True))
    for settings, chosen, expected in (
        (Settings(), policy, False),
        (Settings(network=True), policy, True),
        (Settings(), allowing, True),
    ):
        found = choose_sandbox(settings, chosen, tmp_path, (), tmp_path / "own")
        assert isinstance(found, Bubblewrap)
        assert found.has_network is expected
        assert ("--unshare-net" in found.confine("", {}, "/").argv) is not expected


def test_a_private_tmp_that_cannot_be_made_is_a_reason(site: Site) -> None:
    """Design, sandbox: what goes wrong is a reason in words, no traceback."""
    (site.root / "session").touch()
    with contextlib.closing(Runner(site.sandbox(), {})) as runner:
        outcome = runner.run("true", str(site.workspace), HANG_S, lambda _: None)
    assert "the sandbox can't be set up" in outcome.failure


# --- .git ------------------------------------------------------------------------------------------


def repository(folder: Path, worktree: Path | None = None) -> Path:
    """Makes what git looks for in a repository, and in one of a worktree; gives the latter."""
    for name in ("objects", "refs", "worktrees/x"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
    own = folder / "worktrees" / "x"
    (own / "commondir").write_text("../..\n", "utf-8")
    (own / "gitdir").write_text(f"{worktree}/.git\n", "utf-8")
    return own


ATTACKS = (
    "echo x >.git/config; mkdir -p .git/hooks && echo x >.git/hooks/pre-commit; echo x >.git/commondir;"
    " mv .git aside; rm -rf .git; ln -sfn /tmp .git; touch .git/new"
)


def test_git_as_a_folder_is_read_only(site: Site) -> None:
    """Design, outbox: `.git` is read-only and the person commits; it can't be moved aside either."""
    git = site.workspace / ".git"
    repository(git)
    before = sorted(git.rglob("*"))
    said = site.says(f"cat .git/HEAD; {ATTACKS}; echo x >beside")
    assert said.startswith("ref: refs/heads/main")
    assert sorted(git.rglob("*")) == before
    assert (git / "HEAD").read_text("utf-8") == "ref: refs/heads/main\n"
    assert not git.is_symlink()
    assert (site.workspace / "beside").exists()


def test_git_as_a_file_shows_the_repository_of_a_true_worktree(site: Site) -> None:
    """Design, sandbox: a worktree's repository can be read, and not be written."""
    other = site.outside / "main.git"
    own = repository(other, site.workspace)
    (site.workspace / ".git").write_text(f"gitdir: {own}\n", "utf-8")
    assert git_folders(site.workspace) == [site.workspace / ".git", other]
    said = site.says(f"cat {other}/HEAD; echo x >{other}/config || echo held; {ATTACKS}")
    assert "ref: refs/heads/main" in said
    assert "held" in said
    assert not (other / "config").exists()
    assert (site.workspace / ".git").read_text("utf-8") == f"gitdir: {own}\n"


FORGERIES: dict[str, Callable[[Site], str]] = {
    "that names another worktree": lambda site: str(
        repository(site.outside / "x.git", site.person / "elsewhere")
    ),
    "that names none": lambda site: str(repository(site.outside / "x.git")),
    "a folder that is no repository": lambda site: str(site.outside),
    "the home folder": lambda site: str(site.person),
    "nothing": lambda _: "",
    "relative, outside": lambda _: "../../outside",
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
@pytest.mark.one_in(2)
def test_a_forged_git_file_brings_nothing_into_view(site: Site, forge: Callable[[Site], str]) -> None:
    """Design, sandbox: a `.git` file, which a command may have made, is not believed by itself."""
    (site.workspace / ".git").write_text(f"gitdir: {forge(site)}\n", "utf-8")
    assert git_folders(site.workspace) == [site.workspace / ".git"]
    said = site.says(f"cat {site.outside}/secret {site.person}/secret {site.outside}/*/HEAD")
    assert SECRET not in said
    assert "ref:" not in said


def test_a_forged_common_folder_brings_nothing_into_view(site: Site) -> None:
    """The back pointer must be where the repository keeps its worktrees, not where a command writes."""
    planted = site.workspace / "planted"
    repository(planted, site.workspace)
    (planted / "worktrees" / "x" / "commondir").write_text(f"{site.outside}\n", "utf-8")
    (site.workspace / ".git").write_text(f"gitdir: {planted}/worktrees/x\n", "utf-8")
    assert SECRET not in site.says(f"cat {site.outside}/secret")


def test_repositories_in_the_workspace_are_read_only_too(site: Site) -> None:
    """Design, sandbox: read-only `.git`: what is planted there runs when the person uses git there."""
    inner = site.workspace / "vendor" / "lib" / ".git"
    repository(inner)
    homes = [site.workspace / name / ".codingagent" for name in (".", "vendor/lib")]
    for home in homes:
        home.mkdir()
    said = site.says(
        "echo x >vendor/lib/.git/hooks-x; mkdir .codingagent/sessions;"
        " mkdir vendor/lib/.codingagent/sessions; echo y >vendor/lib/file && echo done"
    )
    assert said.endswith("done")
    assert not (inner / "hooks-x").exists()
    # Sessions that go on in a home do what their record allows.
    assert [any(home.iterdir()) for home in homes] == [False, False]
    (site.workspace / "vendor").rename(site.workspace / "gone")
    (site.workspace / "vendor").symlink_to(site.outside)
    assert site.says("echo still") == "still"


@pytest.mark.parametrize("target", ["outside", "person", "person/.ssh", "nowhere"])
def test_git_as_a_link_brings_nothing_into_view(site: Site, target: str) -> None:
    """Design, sandbox: a link that a command may have made leads nowhere new."""
    (site.workspace / ".git").symlink_to(site.root / target)
    assert git_folders(site.workspace) == []
    assert SECRET not in site.says(f"cat .git/* {site.root}/{target}/*")


def test_git_as_a_link_inside_is_read_only_where_it_leads(site: Site) -> None:
    """Design, sandbox: `.git` is read-only, also where it is a link to a folder of the workspace."""
    repository(site.workspace / "real.git")
    (site.workspace / ".git").symlink_to("real.git")
    site.says("echo x >.git/config; echo x >real.git/config; mv real.git y")
    assert not (site.workspace / "real.git" / "config").exists()


GIT_TRAPS = {
    "a FIFO": "mkfifo .git",
    "a socket": "{python} -c 'import socket; socket.socket(socket.AF_UNIX).bind(\".git\")'",
    "a huge file": "truncate -s 1T .git",
    "a FIFO behind it": "mkdir p; echo 'gitdir: p' >.git; mkfifo p/gitdir",
    "a FIFO further behind": "mkdir p; echo 'gitdir: p' >.git; echo x >p/gitdir; mkfifo p/commondir",
    "a file without end": "mkdir p; echo 'gitdir: p' >.git; ln -s /dev/zero p/gitdir",
    "another without end": "mkdir p; echo 'gitdir: p' >.git; echo x >p/gitdir; ln -s /dev/zero p/commondir",
    "a loop": "ln -s .git .git",
    "a loop behind it": "mkdir p; echo 'gitdir: p' >.git; ln -s gitdir p/gitdir",
    "NUL": "printf 'gitdir: p\\0x' >.git",
    "no text": "printf '\\377\\376' >.git",
}

BOUNDED = """
import resource, sys
from pathlib import Path
from codingagent.process.folders import git_folders
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
git_folders(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("trap", GIT_TRAPS.values(), ids=GIT_TRAPS.keys())
@pytest.mark.one_in(3)
def test_a_git_file_that_is_a_trap_does_not_hold_us(tmp_path: Path, trap: str) -> None:
    """Design, sandbox: what a command has made of `.git` costs the next one neither time nor memory."""
    line = trap.replace("{python}", sys.executable)
    subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, check=True)
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


def test_without_git_nothing_is_made(site: Site) -> None:
    """Design, sandbox: what is missing is not made on the disk in order to be covered."""
    assert site.says("ls -A; echo x >new") == ""
    assert [path.name for path in site.workspace.iterdir()] == ["new"]


# --- a home of ours in the workspace ---------------------------------------------------------------


def test_a_home_in_the_workspace_is_hidden_and_not_writable(site: Site) -> None:
    """Design, workspace: a home that is inside is invisible to sandboxed commands."""
    home = site.workspace / ".codingagent"
    (home / "sessions").mkdir(parents=True)
    (home / "sessions" / "journal").write_text(SECRET, "utf-8")
    site.hidden = (home, home / "sessions", home / "inbox")
    said = site.says(
        "ls -AR .codingagent; cat .codingagent/sessions/journal; echo x >.codingagent/codingagent.toml;"
        " mkdir .codingagent/inbox; mv .codingagent aside; rm -rf .codingagent"
    )
    assert SECRET not in said
    assert (home / "sessions" / "journal").read_text("utf-8") == SECRET
    assert [path.name for path in home.iterdir()] == ["sessions"]
    assert [path.name for path in site.workspace.iterdir()] == [".codingagent"]


# --- names and places ------------------------------------------------------------------------------

NAMES = ["two words", "new\nline", "it's", 'a "b"', "$(id)", "`id`", "-x", "a:b", "back\\slash", "é*?"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.one_in(3)
def test_a_workspace_may_have_any_name(site: Site, name: str) -> None:
    """Design, sandbox: names are arguments, never text that a shell reads."""
    site.name = name
    site.workspace.mkdir()
    repository(site.workspace / ".git")
    said = site.says('pwd; echo x >here; echo x >.git/config && echo WROTE; ls "$HOME"')
    assert said.startswith(str(site.workspace))
    assert "WROTE" not in said
    assert (site.workspace / "here").exists()


@pytest.mark.parametrize("home", ["unset", "/", "/usr/nobody", "inside", "no such folder", "a file"])
@pytest.mark.one_in(2)
def test_any_home_does(site: Site, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    """Design, sandbox: whatever HOME is, commands have one that they may write, and no one else's."""
    values = {
        "/": "/",
        "/usr/nobody": "/usr/nobody",
        "inside": str(site.workspace),
        "no such folder": str(site.root / "none"),
        "a file": str(site.person / "secret"),
    }
    if home == "unset":
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", values[home])
    found = bubblewrap_for(site.workspace, (), site.root / "session" / "tmp", has_network=False)
    assert found is not None
    assert try_sandbox(found) == ""
    said = says(
        found, f"cd ~ && echo x >~/made && echo written; cat {site.person}/secret {site.outside}/secret"
    )
    assert "written\n" in said
    assert SECRET not in said
    assert not (site.person / "made").exists()


def test_a_workspace_in_tmp_is_the_true_one(site: Site) -> None:
    """Design, sandbox: /tmp is private, but a workspace in it is the workspace."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name, tempfile.NamedTemporaryFile() as other:
        workspace = Path(name) / "ws"
        workspace.mkdir()
        found = bubblewrap_for(workspace, (), site.root / "own", has_network=False)
        assert found is not None
        said = says(found, "echo x >made; ls /tmp")
        assert (workspace / "made").exists()
        assert Path(name).name in said.split()
        assert Path(other.name).name not in said


def test_a_subfolder_is_the_current_one(site: Site) -> None:
    """Design, commands: cwd the workspace, or a folder in it."""
    (site.workspace / "sub").mkdir()
    with contextlib.closing(Runner(site.sandbox(), environment(os.environ))) as runner:
        outcome = runner.run("pwd", str(site.workspace / "sub"), HANG_S, lambda _: None)
    assert outcome.output == f"{site.workspace / 'sub'}\n"


# --- what is seen ----------------------------------------------------------------------------------


def test_the_person_is_not_seen(site: Site) -> None:
    """Design, sandbox: commands do not see the home folder's secrets, nor anything beside the workspace."""
    said = site.says(
        f"cat {site.person}/secret {site.person}/.ssh/id ~/.ssh/id {site.outside}/secret ../secret;"
        f" ls -A ~; ls {site.outside}"
    )
    assert SECRET not in said
    assert site.says("ls -A ~ && ls -A ~/.cache") == ".cache\nproject"


def test_secrets_of_the_system_are_not_seen(site: Site) -> None:
    """Design, sandbox: of the system commands see what they need, not its passwords and keys."""
    needs_root()
    said = site.says("cat /etc/shadow /etc/shadow- /etc/gshadow /etc/sudoers; cat /etc/ssh/*_key")
    for name in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers"):
        with contextlib.suppress(OSError):
            for line in Path(name).read_text("utf-8").split("\n"):
                assert not line.strip() or line not in said
    assert site.says("cat /etc/passwd") != ""


def test_folders_of_the_machine_are_not_seen(site: Site) -> None:
    """Design, sandbox: an allow list; what nobody thought of is hidden."""
    names = set(site.says("ls -A /").split())
    assert not names & {"mnt", "media", "srv", "boot", "lost+found"}
    assert site.says("ls -A /sys; ls -A /sys/devices/system") in ("", "devices\nkernel\ncpu\nnode")
    assert not names & {"home", "root"} or SECRET not in site.says("ls -A /home /root")
    assert site.says("ls -A /run") == ""
    assert site.says("ls /dev/sda /dev/mem /dev/kmsg 2>/dev/null") == ""


def test_nothing_outside_can_be_written(site: Site) -> None:
    """Design, sandbox: commands write only the workspace, a private /tmp and a home in memory."""
    system = "/ /etc /usr /opt /var /run /dev /proc /usr/bin"
    name = f"new-{uuid.uuid4().hex}"
    said = site.says(f"for f in {system}; do touch $f/{name} && echo WROTE; done")
    assert "WROTE" not in said
    # These lie in /var/tmp, of which there is another one inside: what is written there is elsewhere.
    around = (site.root, site.outside, site.person, Path("/tmp"), Path("/var/tmp"))
    site.says("".join(f"touch {folder}/{name};" for folder in around))
    assert not [folder for folder in around if (folder / name).exists()]


def test_tools_in_the_home_folder_are_seen_read_only(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design, sandbox: what is on PATH works, wherever the person has installed it."""
    tool = site.person / ".tool" / "bin" / "mytool"
    tool.parent.mkdir(parents=True)
    program_at(tool, "#!/bin/sh\necho it works\n")
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(site.person))
    assert site.says("mytool") == "it works"
    assert "WROTE" not in site.says(f"echo x >{tool} && echo WROTE; rm {tool} && echo WROTE")
    assert tool.exists()
    assert SECRET not in site.says("cat ~/secret ~/.tool/../secret")


def test_homes_below_a_folder_of_the_system_are_not_seen(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design, sandbox: not the person's home, and nobody else's, wherever they are."""
    needs_root()
    with tempfile.TemporaryDirectory(dir="/opt", prefix="codingagent-test-") as name:
        own, other = Path(name).resolve() / "person", Path(name).resolve() / "other"
        for home in (own, other):
            (home / "bin").mkdir(parents=True)
            (home / "secret").write_text(SECRET, "utf-8")
        program_at(own / "bin" / "mytool", "#!/bin/sh\necho it works\n")
        monkeypatch.setenv("PATH", f"{own}/bin:{os.environ['PATH']}")
        monkeypatch.setenv("HOME", str(own))
        found = bubblewrap_for(site.workspace, (), site.root / "own", has_network=False)
        assert found is not None
        confining = replace(found, others=(own, other))
        said = says(confining, f"mytool; echo x >~/y && cat ~/y; grep -rs {SECRET} {name}; echo x >{other}/y")
        assert said.startswith("it works\nx\n")
        assert SECRET not in said
        assert sorted(path.name for path in Path(name).rglob("*")) == sorted(
            ["person", "other", "bin", "bin", "mytool", "secret", "secret"]
        )


def test_credentials_beside_tools_are_not_seen(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design, sandbox: PATH opens tools, not homes, and what comes there later is hidden too."""
    tool = site.person / ".tool"
    for folder in ("bin", "lib", "etc", ".config", "share/uv/credentials", ".own/bin", "project"):
        (tool / folder).mkdir(parents=True)
    program_at(tool / "bin" / "mytool", "#!/bin/sh\ncat ${0%/*}/../lib/part\n")
    program_at(tool / ".own" / "bin" / "other", "#!/bin/sh\necho the other works\n")
    (tool / "lib" / "part").write_text("it works\n", "utf-8")
    for name in (".netrc", "etc/npmrc", ".config/x", "share/uv/credentials/x", ".own/x"):
        (tool / name).write_text(SECRET, "utf-8")
    monkeypatch.setenv("PATH", f"{tool}/bin:{tool}/.own/bin:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(site.person))
    look = f"grep -rs {SECRET} {tool}; ls -A {tool}/.config {tool}/share/uv/credentials"
    assert site.says("mytool; other") == "it works\nthe other works"
    assert SECRET not in site.says(look)
    assert "WROTE" not in site.says(f"for f in .netrc etc/npmrc; do echo x >{tool}/$f && echo WROTE; done")
    with contextlib.closing(Runner(site.sandbox(), environment(os.environ))) as runner:
        for name in ("etc/uv.toml", "project/.env"):
            (tool / name).write_text(SECRET, "utf-8")
            outcome = runner.run(look, str(site.workspace), HANG_S, lambda _: None)
            assert not outcome.failure
            assert SECRET not in outcome.output
    assert (tool / ".netrc").read_text("utf-8") == SECRET


def test_a_workspace_in_a_hidden_folder_of_tools_is_shown(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design, sandbox: what is hidden around it makes place for it."""
    tool = site.person / ".tool"
    site.name = ".tool/.work/project"
    for folder in ("bin", "lib", site.name.removeprefix(".tool/")):
        (tool / folder).mkdir(parents=True)
    program_at(tool / "bin" / "mytool", "#!/bin/sh\necho it works\n")
    (tool / ".work" / "x").write_text(SECRET, "utf-8")
    monkeypatch.setenv("PATH", f"{tool}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(site.person))
    said = site.says(f"mytool; echo made >made; cat made; cat {tool}/.work/x; ls -A {tool}/.work")
    assert said.startswith("it works\nmade\n")
    assert said.endswith("\nproject")
    assert SECRET not in said


def test_a_link_on_path_through_the_workspace_shows_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design, sandbox: what an answer could have laid brings nothing into view."""
    (site.workspace / "bin").symlink_to(site.person / ".ssh")
    monkeypatch.setenv("PATH", f"{site.workspace}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(site.person))
    assert SECRET not in site.says(f"cat bin/id {site.person}/.ssh/id")


# --- /tmp, the environment, the network ------------------------------------------------------------


@pytest.mark.parametrize("target", ["person/.ssh", "outside"])
def test_a_link_in_the_place_of_tmp_opens_nothing(site: Site, target: str) -> None:
    """Design, sandbox: commands write the workspace and a private /tmp, and nothing by another's link."""
    temporary = site.root / "session" / "tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.parent.mkdir(exist_ok=True)
    temporary.symlink_to(site.root / target)
    outcome = Runner(site.sandbox(), environment(os.environ)).run(
        "echo x >/tmp/planted", str(site.workspace), 20, lambda _: None
    )
    assert "is not a folder of yours" in outcome.failure
    assert not (site.root / target / "planted").exists()


def test_tmp_is_private_and_kept_for_the_session(site: Site) -> None:
    """Design, sandbox: a private /tmp; what one command leaves there the next one finds."""
    with tempfile.NamedTemporaryFile(dir="/tmp") as other:
        assert Path(other.name).name not in site.says("ls -A /tmp")
    assert site.says("echo kept >/tmp/x; echo $TMPDIR") == "/tmp"
    assert site.says("cat /tmp/x /var/tmp/x") == "kept\nkept"
    own = site.root / "session" / "tmp"
    assert (own / "x").read_text("utf-8") == "kept\n"
    assert own.stat().st_mode & 0o777 == 0o700


def test_only_chosen_variables_are_seen(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design, commands: an allow list; nothing whose name looks like a secret passes unasked."""
    for name in ("MY_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "LD_PRELOAD_X", "PYTHONPATH"):
        monkeypatch.setenv(name, SECRET)
    said = site.says("env; cat /proc/*/environ | tr '\\0' '\\n'")
    assert SECRET not in said
    assert "TERM=dumb" in said
    assert f"HOME={site.person}" in said
    monkeypatch.setenv("MY_PORT", "8080")
    site.variables = {"MY_PORT": "8080"}
    assert site.says("echo $MY_PORT") == "8080"


def test_the_network_is_off_or_on(site: Site) -> None:
    """Design, sandbox: no network unless it is allowed; a loopback of its own in any case."""
    ours = str(Path("/proc/self/ns/net").readlink())
    assert site.says("readlink /proc/self/ns/net") != ours
    # There is the heading of the table, and no route.
    assert site.says("cat /proc/net/route").count("\n") == 0
    site.has_network = True
    assert site.says("readlink /proc/self/ns/net") == ours


# --- how commands end in it ------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_what_is_left_running_is_counted(site: Site, count: int) -> None:
    """Design, commands: leftover processes are ended with the command, and the result says how many."""
    assert site.run("sleep 100 & " * count + "true").stopped_processes == count


def test_a_command_cannot_make_the_count_a_burden(site: Site) -> None:
    """What a command says of itself is bounded: it sits beside the one who counts."""
    outcome = site.run("for p in /proc/[0-9]*; do echo 99999999 >$p/fd/3; done 2>/dev/null; true")
    assert outcome.stopped_processes <= 1000
    assert (outcome.exit_code, outcome.ended_by) == (0, "itself")


@pytest.mark.parametrize(("name", "code"), [("KILL", 137), ("TERM", 143), ("SEGV", 139)])
def test_a_command_that_a_signal_ends_is_told(site: Site, name: str, code: int) -> None:
    """Specification 003, RUN_COMMAND: as the shell says of it, 128 and the signal's number."""
    assert site.run(f"kill -{name} $$").exit_code == code


def test_a_sandbox_that_does_not_start_is_no_exit_code(site: Site) -> None:
    """Design, commands: what could not be started is said to be so; it is no failed command."""
    broken = replace(site.sandbox(), tools=lambda: (site.root / "no such folder",))
    with contextlib.closing(Runner(broken, environment(os.environ))) as runner:
        outcome = runner.run("true", str(site.workspace), HANG_S, lambda _: None)
    assert "no such folder" in outcome.failure
    assert outcome.exit_code == -1


@pytest.mark.parametrize("line", ["exit 0", "exit 7", "false", "no-such-program", "echo 'open quote"])
@pytest.mark.one_in(2)
def test_the_exit_code_is_the_commands_own(site: Site, line: str) -> None:
    """Specification 003, RUN_COMMAND: the exit code is the same as without a sandbox."""
    plain = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=False, cwd=site.workspace)
    assert site.run(line).exit_code == plain.returncode


def test_quotes_and_options_reach_the_shell_as_they_are(site: Site) -> None:
    """Design, commands: `/bin/sh -c` gets the line, whatever it begins with."""
    assert site.says("printf '%s|' \"a b\" 'c\"d' \\$x -- -x") == 'a b|c"d|$x|--|-x|'
    assert site.run("--no-such-program").exit_code in {2, 127}


# --- a developer's work ----------------------------------------------------------------------------

C = 'printf "#include <stdio.h>\\nint main(void) { puts(\\"hello\\"); return 0; }\\n" >a.c'
SERVER = (
    "import http.server, threading, urllib.request\n"
    "s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
    "threading.Thread(target=s.serve_forever, daemon=True).start()\n"
    "print(urllib.request.urlopen(f'http://127.0.0.1:{s.server_port}/').status)"
)
NODE = (
    "const h = require('http'); const s = h.createServer((q, r) => r.end('served'));"
    "s.listen(0, '127.0.0.1', () => h.get({port: s.address().port}, r => {"
    "r.on('data', d => console.log(String(d))); r.on('end', () => s.close()); }));"
)
WORKERS = (
    "const {Worker} = require('worker_threads'); const w = new Worker("
    "\"require('worker_threads').parentPort.postMessage('worked')\", {eval: true});"
    "w.on('message', console.log);"
)
PTY = "import pty; import os; print(os.waitstatus_to_exitcode(pty.spawn(['/bin/echo', 'on a terminal'])))"


PREFIX = "import sys; print(sys.prefix != sys.base_prefix)"


def python(program: str) -> str:
    return f"{sys.executable} - <<'END'\n{program}\nEND"


def main_module(line: str) -> str:
    """Return a shell line that runs a line of Python from a file, as new processes of it want it."""
    program = f"import multiprocessing as m\nif __name__ == '__main__':\n {line}"
    return f"cat >a.py <<'END'\n{program}\nEND\n{sys.executable} a.py"


# What is done, the program that it takes, and what is printed at its end.
WORK: dict[str, tuple[str, str, str]] = {
    "git, in a subfolder": (
        (
            "git init -q sub && cd sub && echo x >a && git add a && git -c user.name=x"
            " -c user.email=x@x commit -qm first && git log --format=%s && git status --short"
        ),
        "git",
        "first",
    ),
    "gcc": (f"{C} && gcc a.c -o a && ./a", "gcc", "hello"),
    "make": ("printf 'all:\\n\\t@echo made\\n' >Makefile && make -s", "make", "made"),
    "strace": ("strace -o trace true; test -s trace && echo traced", "strace", "traced"),
    "tar": ("echo x >a && tar czf a.tgz a && rm a && tar xzf a.tgz && cat a", "tar", "x"),
    "sed and find": ("echo old >a && sed -i s/old/new/ a && find . -name a -exec cat {} +", "sed", "new"),
    "mktemp": ("f=$(mktemp) && echo kept >$f && cat $f", "mktemp", "kept"),
    "a here document": ("cat <<X\nhere\nX", "cat", "here"),
    "a pipe of its own": ("mkfifo p && (echo piped >p &) && cat p", "mkfifo", "piped"),
    "jobs and wait": ("(sleep 0.1; echo waited) & wait", "sh", "waited"),
    "bash": ("bash -c 'a=(1 2 3); echo ${a[2]} <(true) >/dev/null; echo ${#a[@]}'", "bash", "3"),
    "locks": ("flock lock echo locked", "flock", "locked"),
    "node": ("node -e 'console.log(1 + 1)'", "node", "2"),
    "node, a server": (f'node -e "{NODE}"', "node", "served"),
    "node, threads": (f"node - <<'END'\n{WORKERS}\nEND", "node", "worked"),
    "node, WebAssembly": (
        "node -e 'new WebAssembly.Memory({initial: 1, maximum: 65536}); console.log(\"wasm\")'",
        "node",
        "wasm",
    ),
    "rustc": (
        "printf 'fn main() { println!(\"rusty\"); }' >a.rs && rustc a.rs -o a && ./a",
        "rustc",
        "rusty",
    ),
    "python, a venv": (
        f"{sys.executable} -m venv --without-pip v && v/bin/python -c '{PREFIX}'",
        "sh",
        "True",
    ),
    "python, processes": (
        main_module("with m.Pool(2) as p: print(sum(p.map(abs, [-1, -2])))"),
        "sh",
        "3",
    ),
    "python, a manager": (
        main_module("with m.Manager() as x: print(x.dict(a=1)['a'])"),
        "sh",
        "1",
    ),
    "python, shared memory": (
        python(
            "from multiprocessing import shared_memory as s\nm = s.SharedMemory(create=True, size=10)\n"
            "m.buf[0] = 7\nprint(m.buf[0])\nm.close(); m.unlink()"
        ),
        "sh",
        "7",
    ),
    "python, asyncio": (
        python(
            "import asyncio\nasync def f():\n p = await asyncio.create_subprocess_exec('echo', 'async')\n"
            " await p.wait()\nasyncio.run(f())"
        ),
        "sh",
        "async",
    ),
    "python, threads": (
        python("import threading\nt = threading.Thread(target=print, args=('thread',)); t.start()"),
        "sh",
        "thread",
    ),
    "python, a server": (python(SERVER), "sh", "200"),
    "python, sqlite": (
        python(
            "import sqlite3\nd = sqlite3.connect('a.db')\nd.execute('pragma journal_mode=wal')\n"
            "d.execute('create table t(x)'); d.execute('insert into t values (5)'); d.commit()\n"
            "print(d.execute('select x from t').fetchone()[0])"
        ),
        "sh",
        "5",
    ),
    "python, a terminal": (python(PTY), "sh", "0"),
    "python, a Unix socket": (
        python(
            "import socket\ns = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen()\n"
            "c = socket.socket(socket.AF_UNIX); c.connect('s'); c.send(b'x'); print(s.accept()[0].recv(1))"
        ),
        "sh",
        "b'x'",
    ),
    "python, randomness and time": (
        python("import os, time, uuid\nprint(len(os.urandom(4)), time.time() > 1, len(str(uuid.uuid1())))"),
        "sh",
        "4 True 36",
    ),
    "python, links and modes": (
        python(
            "import os\nopen('a', 'w').close(); os.link('a', 'b'); os.symlink('a', 'c')\n"
            "os.chmod('a', 0o700); os.utime('a', (1, 1)); os.rename('b', 'd'); print(os.stat('c').st_nlink)"
        ),
        "sh",
        "2",
    ),
}  # fmt: skip


@pytest.mark.one_in(9)
@pytest.mark.parametrize(("line", "tool", "expected"), WORK.values(), ids=WORK.keys())
def test_ordinary_work_is_done(site: Site, line: str, tool: str, expected: str) -> None:
    """Design, sandbox: a sandbox in which no work can be done is none that anyone keeps on."""
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool} here")
    site.home = Path.home()
    if subprocess.run([tool, "--version"], capture_output=True, check=False).returncode and tool != "sh":
        pytest.skip(f"{tool} does not work here without a sandbox either")
    outcome = site.run(line, 60)
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output.strip().split("\n")[-1] == expected


# Each makes `x` of the workspace run with its owner's rights, if it can; `x` and `d` are there.
_WAYS_TO_OWNER = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def creat(): libc.syscall(85, b"new1", 0o4755)
def link():
    handle = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o4755)
    os.link(f"/proc/self/fd/{handle}", "new2", follow_symlinks=True)
def bind():
    with socket.socket(socket.AF_UNIX) as made:
        os.fchmod(made.fileno(), 0o4755)
        made.bind("new3")
ways = [
    lambda: os.chmod("x", 0o4755), lambda: os.chmod("x", 0o2755), lambda: os.chmod("d", 0o2775),
    lambda: os.fchmod(os.open("x", os.O_RDONLY), 0o6755),
    lambda: libc.syscall(452, -100, b"x", 0o4755, 0), lambda: os.mknod("new4", 0o104755),
    lambda: os.open("new5", os.O_CREAT | os.O_RDWR, 0o4755), creat, link, bind,
    lambda: os.mkdir("new6", 0o6755), lambda: os.setxattr("x", "security.capability", bytes(20)),
    lambda: libc.syscall(437, -100, b"new7", (ctypes.c_uint64 * 3)(0o102, 0o4755, 0), 24),
]
for way in ways:
    try:
        way()
    except OSError:
        pass
"""


def test_no_file_gets_its_owners_rights(site: Site) -> None:
    """Sandbox: no setuid, setgid or capability is left on a file, by any call; all other modes are."""
    (site.workspace / "x").write_text("")
    (site.workspace / "d").mkdir()
    (site.workspace / "ways.py").write_text(_WAYS_TO_OWNER)
    usual = "chmod 1777 d; chmod 750 x; umask 0; : >plain; mkdir -m 700 m"
    site.run(f"{sys.executable} ways.py; {usual}")
    modes = {each.name: each.stat().st_mode for each in site.workspace.iterdir()}
    assert not any(mode & 0o6000 for mode in modes.values()), modes
    assert {name: modes[name] & 0o7777 for name in ("x", "d", "plain", "m")} == {
        "x": 0o750,
        "d": 0o1777,
        "plain": 0o666,
        "m": 0o700,
    }
    assert os.listxattr(site.workspace / "x") == []
