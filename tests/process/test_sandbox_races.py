"""What a sandbox mounts is what was looked at, whatever another command exchanges meanwhile."""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from codingagent.model.observations import Confined
from codingagent.model.settings import Settings
from codingagent.process.bubblewrap import Bubblewrap
from codingagent.process.runner import Runner, environment
from codingagent.process.select_sandbox import bubblewrap_for
from codingagent.rpc.methods import Host, host_of
from tests.helpers import HANG_S
from tests.sandboxes import line_by_names, needs_bwrap

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")

SECRET = "SECRET, outside"

# How many commands are started beside each race, and at most until one is led astray.
STARTS, DEEP_STARTS, TRIES = 25, 3_000, 5_000


@dataclass(frozen=True)
class Site:
    """A person's home with a workspace in it, keys beside it, and a home of ours in the workspace."""

    root: Path

    @property
    def person(self) -> Path:
        return self.root / "person"

    @property
    def workspace(self) -> Path:
        return self.person / "project"

    @property
    def keys(self) -> Path:
        return self.person / "keys"

    @property
    def session(self) -> Path:
        """Where a session of the home in the workspace keeps what is its own."""
        return self.workspace / ".codingagent" / "sessions" / "x"

    def sandbox(self, temporary: Path | None = None) -> Bubblewrap:
        hidden = (self.workspace / ".codingagent",)
        own = temporary or self.root / "own" / "tmp"
        found = bubblewrap_for(self.workspace, hidden, own, has_network=False)
        assert found is not None
        return found

    def looks(self) -> list[tuple[str, int]]:
        """Return what is outside of the workspace, with what changes when something is made there."""
        outside = [self.keys, *self.keys.rglob("*"), self.root / "own"]
        return [(str(path), path.lstat().st_mtime_ns) for path in outside if path.exists()]


@pytest.fixture(name="site")
def _site() -> Iterator[Site]:
    needs_bwrap()
    # Not in /tmp, of which a sandbox has its own.
    root = Path(tempfile.mkdtemp(prefix="codingagent-test-", dir="/var/tmp")).resolve()
    site = Site(root)
    for folder in (site.workspace / "lib" / ".git", site.keys / ".git", site.keys / "x" / "tmp"):
        folder.mkdir(parents=True)
    (site.workspace / ".git").mkdir()
    (site.workspace / ".codingagent" / "sessions").mkdir(parents=True)
    (site.workspace / ".codingagent" / "secret").write_text(SECRET, "utf-8")
    for folder in (site.keys, site.keys / ".git", site.keys / "x" / "tmp"):
        (folder / "secret").write_text(SECRET, "utf-8")
    yield site
    subprocess.run(["rm", "-rf", str(root)], check=True)


# --- once, just behind the look --------------------------------------------------------------------


@dataclass(frozen=True)
class Late:
    """A sandbox beside which something happens after it has looked, and before it starts."""

    sandbox: Bubblewrap
    happens: Callable[[], object]
    tier: str = "bwrap"
    has_network: bool = False

    def confine(
        self, command: str, variables: Mapping[str, str], folder: str, added: Mapping[str, str]
    ) -> Confined:
        confined = self.sandbox.confine(command, variables, folder, added)
        self.happens()
        return confined


def exchange(path: Path, target: Path | str) -> None:
    """Puts a link in the place of a folder, which gets another name."""
    path.rename(path.with_name(f"{path.name}-aside"))
    path.symlink_to(target)


# What is exchanged, relative to the workspace, and for a link to what. An absolute link leads elsewhere
# for bwrap, which has the host's files below /oldroot while it mounts.
EXCHANGES = {
    ".git": (".git", "{keys}"),
    ".git, for the whole disk": (".git", "/"),
    "a folder with a repository": ("lib", "{keys}"),
    "a folder with a repository, for one to be made in": ("lib", "/oldroot{keys}/x"),
    "a repository": ("lib/.git", "{keys}"),
    "our home": (".codingagent", "{keys}"),
    "our home, for one to be made in": (".codingagent", "/oldroot{keys}/x/new"),
    "the workspace": (".", "{keys}"),
    "the /tmp of a session": (".codingagent/sessions/x/tmp", "{keys}"),
    "a folder above the /tmp of a session": (".codingagent/sessions", "{keys}"),
}

LOOK = "cat $(find . /tmp -name secret) 2>/dev/null; cat .git/etc/hostname .git/*/secret"


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "target"), EXCHANGES.values(), ids=EXCHANGES.keys())
def test_what_was_exchanged_after_the_look_is_not_mounted(site: Site, name: str, target: str) -> None:
    """Design, sandbox: what is mounted is what was looked at, else the command does not start."""
    place = Path(os.path.normpath(site.workspace / name))
    temporary = site.session / "tmp"
    before = site.looks()
    late = Late(site.sandbox(temporary), lambda: exchange(place, target.format(keys=site.keys)))
    with contextlib.closing(Runner(late, environment(os.environ))) as runner:
        outcome = runner.run(LOOK, str(site.workspace), HANG_S, lambda _: None)
    assert SECRET not in outcome.output
    assert "changed while the sandbox was set up; run the command again" in outcome.failure
    assert site.looks() == before, "something was made outside"


def test_what_was_exchanged_before_the_look_is_not_mounted_either(site: Site) -> None:
    """Design, sandbox: a link in the way of a session's /tmp is not believed, no matter who laid it."""
    sandbox = site.sandbox(site.session / "tmp")
    exchange(site.workspace / ".codingagent" / "sessions", site.keys)
    with contextlib.closing(Runner(sandbox, environment(os.environ))) as runner:
        outcome = runner.run(LOOK, str(site.workspace), HANG_S, lambda _: None)
    assert "is not a folder of yours" in outcome.failure
    assert SECRET not in outcome.output


# --- repositories that move ------------------------------------------------------------------------


def test_a_repository_is_protected_wherever_it_is_moved(site: Site) -> None:
    """Design, sandbox: `.git` is read-only; a command that renames the folder around it gains nothing."""
    git = site.workspace / "lib" / ".git"
    with contextlib.closing(Runner(site.sandbox(), environment(os.environ))) as runner:

        def says(line: str) -> str:
            outcome = runner.run(line, str(site.workspace), HANG_S, lambda _: None)
            assert not outcome.failure, outcome.failure
            return outcome.output

        says("mkdir deep && mv lib deep/moved")
        assert "Read-only" in says("echo x >deep/moved/.git/config; mv deep/moved/.git y; ls")
        says("mv deep/moved lib")
        assert "Read-only" in says("echo x >lib/.git/config")
        shutil.rmtree(git)
        assert says("echo x >lib/.git && cat lib/.git") == "x\n"  # it is gone, and this one is new


def test_the_git_file_of_a_submodule_is_read_only(site: Site) -> None:
    """Design, sandbox: git in the repository around it obeys what the file leads to."""
    file = site.workspace / "sub" / ".git"
    file.parent.mkdir()
    file.write_text("gitdir: ../.git/modules/sub\n", "utf-8")
    with contextlib.closing(Runner(site.sandbox(), environment(os.environ))) as runner:
        line = "echo x >sub/.git; rm -f sub/.git; mv sub/.git y; echo x >sub/beside; true"
        outcome = runner.run(line, str(site.workspace), HANG_S, lambda _: None)
    assert outcome.exit_code == 0
    assert file.read_text("utf-8") == "gitdir: ../.git/modules/sub\n"
    assert (site.workspace / "sub" / "beside").exists()


# --- over and over, from the other connection of a server ------------------------------------------

# Runs in the sandbox of the first connection, at the speed of C.
SWAPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
a, b = map(os.fsencode, sys.argv[1:])
while True:
    for _ in range(1000): libc.renameat2(-100, a, -100, b, 2)
    if os.path.exists("stop"): break
"""

# What the first connection makes and exchanges.
RACES = {
    ".git and a link to keys": ("mkdir .git; ln -s {keys} x", ".git", "x"),
    ".git and a link to the whole disk": ("mkdir .git; ln -s / x", ".git", "x"),
    ".git and a link to the home folder": ("mkdir .git; ln -s {person} x", ".git", "x"),
    "a folder with a repository and one with a link": ("mkdir x; ln -s {keys} x/.git", "lib", "x"),
    "a folder with a repository and a link": ("ln -s {keys} x", "lib", "x"),
    "a folder with a repository and a link as bwrap sees it": ("ln -s /oldroot{keys}/x x", "lib", "x"),
}


@contextlib.contextmanager
def attacked(host: Host, setup: str, first: str, second: str) -> Iterator[None]:
    """Exchanges two names from one connection while the block runs."""
    ready = host.root / "ready"

    def attack() -> None:
        with host.open_methods() as methods:
            swap = f"{sys.executable} -S swap.py {first} {second}"
            done = methods.exec(f"{setup}; mkdir ready; {swap}", None)
            assert done["exit_code"] == 0, done

    attacker = threading.Thread(target=attack)
    attacker.start()
    try:
        while not ready.exists() and attacker.is_alive():
            attacker.join(0.01)
        assert ready.exists()
        yield
    finally:
        (host.root / "stop").touch()
        attacker.join(HANG_S)
    assert not attacker.is_alive()


def escapes_of(site: Site, host: Host, starts: int) -> Counter[str]:
    """Starts commands on a connection; counts those that saw what is outside, and those refused."""
    keys = site.keys.relative_to("/")
    shown = " ".join(
        f"{at}/{below}secret"
        for at in (".git", "x", "lib/.git", "x/.git")
        for below in ("", "keys/", f"{keys}/")
    )
    counts: Counter[str] = Counter()
    with host.open_methods() as methods:
        for _ in range(starts):
            done = methods.exec(f"cat {shown}", HANG_S)
            counts["escaped"] += SECRET in done["stdout"]
            counts["started"] += done["exit_code"] >= 0
    return counts


def race(site: Site, race_of: tuple[str, str, str], starts: int) -> None:
    setup, first, second = race_of
    (site.workspace / ".git").rmdir()
    (site.workspace / "swap.py").write_text(SWAPPER, "utf-8")
    before = site.looks()
    settings = Settings(sandbox="require", policy="permissive")
    with host_of(site.root / "home", site.workspace, settings, None) as host:
        named = setup.format(keys=site.keys, person=site.person)
        with attacked(host, named, first, second):
            counts = escapes_of(site, host, starts)
    assert counts["escaped"] == 0, counts
    assert counts["started"] > starts / 4, counts
    assert site.looks() == before, "something was made outside"


@pytest.mark.one_in(6)
@pytest.mark.parametrize("race_of", RACES.values(), ids=RACES.keys())
def test_a_race_mounts_nothing_outside(site: Site, race_of: tuple[str, str, str]) -> None:
    """Design, sandbox: what another command of the workspace exchanges meanwhile leads nowhere."""
    race(site, race_of, STARTS)


@pytest.mark.deep
@pytest.mark.parametrize("race_of", RACES.values(), ids=RACES.keys())
def test_a_long_race_mounts_nothing_outside(site: Site, race_of: tuple[str, str, str]) -> None:
    """The same, for long: the attack that was tried has an escape in fifty starts or so."""
    race(site, race_of, DEEP_STARTS // len(RACES))


# --- the attack is real ----------------------------------------------------------------------------


def output_by_names(sandbox: Bubblewrap, line: str, happens: Callable[[], object]) -> bytes:
    """Runs a line in the same sandbox, in which bwrap mounts all by its name."""
    confined = sandbox.confine(line, environment(os.environ), "/")
    happens()
    *words, _, _, _, _ = line_by_names(confined)
    argv = [str(confined.handles[w]) if isinstance(w, int) else w for w in words]
    argv += ["-c", f"cd {shlex.quote(str(sandbox.workspace))}; {line}"]
    done = subprocess.run(argv, capture_output=True, pass_fds=confined.handles, check=False)
    for handle in confined.handles:
        os.close(handle)
    return done.stdout


def test_an_exchange_shows_what_is_outside_if_names_are_believed(site: Site) -> None:
    """A link in the place of what is mounted shows what it leads to."""
    temporary = site.session / "tmp"
    seen = output_by_names(site.sandbox(temporary), LOOK, lambda: exchange(temporary, site.keys))
    assert SECRET.encode() in seen


@pytest.mark.deep
def test_a_race_shows_what_is_outside_if_names_are_believed(site: Site) -> None:
    """The race is fast enough: bwrap looks a name up twice, and finds the folder and then the link."""
    (site.workspace / ".git").rmdir()
    (site.workspace / "swap.py").write_text(SWAPPER, "utf-8")
    settings = Settings(sandbox="require", policy="permissive")
    with host_of(site.root / "home", site.workspace, settings, None) as host:
        assert isinstance(host.sandbox, Bubblewrap)
        with attacked(host, f"mkdir .git; ln -s {site.keys} x", ".git", "x"):
            for _ in range(TRIES):
                line = "cat .git/secret x/secret 2>/dev/null"
                with contextlib.suppress(OSError):  # exchanged while it was looked at
                    if SECRET.encode() in output_by_names(host.sandbox, line, lambda: None):
                        return
    pytest.fail(f"not one of {TRIES} starts was led astray: no test of a race here tells anything")
