"""Rules for the probe: it sees each protection, and sees when one is gone."""

import contextlib
import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import pytest

from codingagent.process import probe
from codingagent.process.seccomp import filter_program
from tests.helpers import HANG_S
from tests.sandboxes import BWRAP, SWITCH, Lures, lures, needs_bwrap, needs_root

Profile: TypeAlias = dict[str, list[str]]
Verdicts: TypeAlias = dict[str, tuple[bool | None, str]]

PROBE = Path(probe.__file__)
# Not the virtual environment's, which may lie in a /tmp that a sandbox replaces.
PYTHON = Path(
    sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}"
).resolve()
NAMES = {name for name, _ in probe.PROMISES}

# Where the descriptor of the filter goes; it is known only when the sandbox is started.
FILTER = "{filter}"


@pytest.fixture(name="laid")
def _laid() -> Iterator[Lures]:
    needs_bwrap()
    with lures() as laid:
        yield laid


# --- the sandbox -----------------------------------------------------------------------------------


def profile(laid: Lures) -> Profile:
    """Return the whole sandbox, part by part: parents first, the workspace later, protections last."""
    return {
        "user": ["--unshare-user"],
        "ipc": ["--unshare-ipc"],
        "pid": ["--unshare-pid"],
        "uts": ["--unshare-uts"],
        "cgroup": ["--unshare-cgroup-try"],
        "net": ["--unshare-net"],
        "no-userns": ["--disable-userns"],
        "parent": ["--die-with-parent"],
        "session": ["--new-session"],
        "caps": ["--cap-drop", "ALL"],
        "system": [*bound("/usr", "/etc", "/opt"), *merged("bin", "sbin", "lib", "lib32", "lib64")],
        "shadow": [word for name in secrets() for word in ("--ro-bind", "/dev/null", name)],
        "keys": [word for name in secret_folders() for word in ("--tmpfs", name)],
        "proc": ["--proc", "/proc"],
        "proc-ro": ["--remount-ro", "/proc"],
        "dev": ["--dev", "/dev"],
        "shm": ["--size", "268435456", "--tmpfs", "/dev/shm"],
        "tmp": ["--bind", str(laid.session_tmp), "/tmp"],
        "var": ["--dir", "/var", "--symlink", "../tmp", "/var/tmp", "--dir", "/run"],
        "home": ["--perms", "0700", "--size", "268435456", "--tmpfs", str(laid.home)],
        "python": python(),
        "tool": bound(str(laid.program.parents[1])),
        "credentials": [w for f in laid.credentials for w in ("--ro-bind", "/dev/null", str(f))],
        "workspace": ["--bind", str(laid.workspace), str(laid.workspace)],
        "git": ["--ro-bind", str(laid.git), str(laid.git)],
        "agent-home": ["--tmpfs", str(laid.agent_home), "--remount-ro", str(laid.agent_home)],
        "dev-ro": ["--remount-ro", "/dev"],
        "root-ro": ["--remount-ro", "/"],
        "folder": ["--chdir", str(laid.workspace)],
        "seccomp": ["--seccomp", FILTER],
    }


def bound(*names: str) -> list[str]:
    return [word for name in names if Path(name).is_dir() for word in ("--ro-bind", name, name)]


def merged(*names: str) -> list[str]:
    """Return what puts /bin and the like there: as the links they are on most systems, else as folders."""
    words: list[str] = []
    for name in names:
        path = Path("/", name)
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        else:
            words += bound(str(path))
    return words


def secrets() -> list[str]:
    names = ("shadow", "gshadow", "shadow-", "gshadow-", "sudoers")
    return [f"/etc/{name}" for name in names if Path("/etc", name).exists()]


def secret_folders() -> list[str]:
    folders = ("/etc/ssh", "/etc/ssl/private", "/etc/sudoers.d")
    return [folder for folder in folders if Path(folder).is_dir()]


def python() -> list[str]:
    """Return what makes this Python visible, if it is not one of the system's."""
    prefix = Path(sys.base_prefix).resolve()
    return [] if prefix.is_relative_to("/usr") else ["--ro-bind", str(prefix), str(prefix)]


def run_probe(
    laid: Lures,
    parts: Profile,
    before: Sequence[str] = (),
    pass_fds: tuple[int, ...] = (),
    changes: Mapping[str, object] = MappingProxyType({}),
) -> Verdicts:
    """Runs the probe in a sandbox of some parts; no parts, no sandbox."""
    with contextlib.ExitStack() as stack:
        argv = [word for part in parts.values() for word in part]
        if FILTER in argv:
            handle = filter_handle()
            stack.callback(os.close, handle)
            pass_fds = (*pass_fds, handle)
            argv[argv.index(FILTER)] = str(handle)
        argument = json.dumps({**laid.argument(), **changes})
        done = subprocess.run(
            [
                *before,
                *([BWRAP, *argv, "--"] if parts else []),
                *(str(PYTHON), "-I", "-S", "-c", PROBE.read_text("utf-8"), argument),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            pass_fds=pass_fds,
            check=False,
            timeout=HANG_S,
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    promises = json.loads(done.stdout)["promises"]
    return {promise["name"]: (promise["enforced"], promise["detail"]) for promise in promises}


def filter_handle() -> int:
    program = filter_program(platform.machine())
    if program is None:
        pytest.skip(f"no filter for {platform.machine()}")
    handle = os.memfd_create("filter")
    os.write(handle, program)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def broken(verdicts: Verdicts) -> dict[str, str]:
    """Return the promises that do not hold, and why."""
    return {name: detail for name, (enforced, detail) in verdicts.items() if enforced is False}


def inapplicable(verdicts: Verdicts) -> set[str]:
    return {name for name, (enforced, _) in verdicts.items() if enforced is None}


def test_a_sandbox_that_is_required_is_not_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sandbox: without a sandbox these tests say why they are skipped, and fail where one must be."""
    broken_one = tmp_path / "bwrap"
    broken_one.write_text("#!/bin/sh\necho No permissions to create new namespace >&2\nexit 1\n")
    broken_one.chmod(0o755)
    for program, reason in (
        (str(broken_one), "No permissions to create new namespace"),
        (str(tmp_path / "none"), "there is no"),
    ):
        monkeypatch.delenv(SWITCH, raising=False)
        with pytest.raises(pytest.skip.Exception, match=reason):
            needs_bwrap(program)
        monkeypatch.setenv(SWITCH, "require")
        with pytest.raises(pytest.fail.Exception, match=reason):
            needs_bwrap(program)


# --- the whole sandbox -----------------------------------------------------------------------------


def test_the_whole_sandbox_keeps_every_promise(laid: Lures) -> None:
    """Sandbox: prove, don't assume. Each promise is looked at, and each holds."""
    verdicts = run_probe(laid, profile(laid))
    assert set(verdicts) == NAMES
    assert not broken(verdicts)
    assert not inapplicable(verdicts)
    assert all(detail for _, detail in verdicts.values())


def test_the_probe_leaves_nothing_behind(laid: Lures) -> None:
    """It makes files to see whether it can, in the sandbox and without one; none of them stays."""
    before = laid.files()
    run_probe(laid, profile(laid))
    mountpoints = {path for path in laid.files() if path.startswith("session-tmp/")}
    assert [path for path in laid.files() if path not in mountpoints] == before
    # Its files have its number in their names: other probes may be at work here.
    note = laid.root / "pid"
    run_probe(laid, {}, ["/bin/sh", "-c", 'echo $$ >"$0"; exec "$@"', str(note)])
    own = f".codingagent-probe-{note.read_text().strip()}-"
    folders = ("/", "/etc", "/usr", "/opt", "/var", "/run", "/tmp", "/dev/shm", laid.workspace)
    assert not [path for folder in folders for path in Path(folder).glob(f"{own}*")]
    note.unlink()
    assert [path for path in laid.files() if path not in mountpoints] == before


def test_the_probe_runs_as_a_file_too(laid: Lures) -> None:
    """It imports nothing of the package, so it runs as a file of its own."""
    parts = {**profile(laid), "probe": ["--ro-bind", str(PROBE), str(laid.workspace / "p.py")]}
    argv = [word for part in parts.values() for word in part]
    handle = filter_handle()
    argv[argv.index(FILTER)] = str(handle)
    program = [str(PYTHON), "-I", "-S", str(laid.workspace / "p.py"), json.dumps(laid.argument())]
    said = subprocess.check_output(
        [BWRAP, *argv, "--", *program], text=True, pass_fds=[handle], timeout=HANG_S
    )
    os.close(handle)
    assert all(promise["enforced"] for promise in json.loads(said)["promises"])


def test_without_lures_nothing_is_claimed_of_them(laid: Lures) -> None:
    """What the argument does not name is not said to be hidden."""
    verdicts = run_probe(laid, profile(laid), changes=dict.fromkeys(laid.argument()))
    assert not broken(verdicts)
    assert inapplicable(verdicts) == {
        "home hidden",
        "credentials beside tools hidden",
        "own /tmp private",
        "git folder read-only",
        "agent home hidden",
        "no network",
        "no sockets of others",
        "no abstract sockets of others",
    }


def test_a_git_folder_may_be_a_file(laid: Lures) -> None:
    """A linked worktree has a file there; it is protected like the folder, and seen when it is not."""
    (laid.git / "hooks").rmdir()
    laid.git.rmdir()
    laid.git.write_text("gitdir: elsewhere\n")
    assert not broken(run_probe(laid, profile(laid)))
    assert set(broken(run_probe(laid, {**profile(laid), "git": []}))) == {"git folder read-only"}
    assert laid.git.read_text() == "gitdir: elsewhere\n"


def test_an_argument_is_asked_for(laid: Lures) -> None:
    """Without its argument the probe can't run, and says so."""
    done = subprocess.run(
        [PYTHON, "-I", "-S", PROBE], capture_output=True, text=True, check=False, cwd=laid.root
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "JSON" in done.stderr


# --- one protection taken out ----------------------------------------------------------------------


def test_without_a_sandbox_every_promise_about_it_is_broken(laid: Lures) -> None:
    """Nothing holds by itself: with no sandbox at all, the probe sees what a command could do."""
    hold_anyway = {
        # There is no terminal to open in a test that has none, and these work everywhere.
        *("no terminal", "workspace writable", "own /tmp writable", "shared memory works"),
        *("loopback works", "no inherited descriptors"),
    }
    if os.geteuid() != 0:
        # What the system refuses everyone but root.
        hold_anyway |= {"no mounts", "kernel settings read-only", "system secrets hidden"}
    seen = set(broken(run_probe(laid, {}, ["/usr/bin/env"])))
    assert NAMES - hold_anyway - machine_keeps() <= seen
    assert not seen & (hold_anyway - {"no terminal"})


def machine_keeps() -> set[str]:
    """Return the promises that hold for everything that these tests start, sandbox or not."""
    kept = set()
    status = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines())
    if int(status["CapBnd"], 16) == int(status["CapPrm"], 16) == 0:
        kept.add("no capabilities")
    if status["NoNewPrivs"] == "1":
        kept.add("no new privileges")
    if status["Seccomp"] == "2":
        kept.add("system call filter")
    if not any(can_make(family) for family in (38, 40)):  # AF_ALG, AF_VSOCK
        kept.add("no special sockets")
    tiocsti = Path("/proc/sys/dev/tty/legacy_tiocsti")
    if tiocsti.exists() and tiocsti.read_text().strip() == "0":
        kept.add("no typing into terminals")
    return kept


def can_make(family: int) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        with contextlib.suppress(OSError), socket.socket(family, kind):
            return True
    return False


FILTERED = {"system call filter", "no special sockets", "no typing into terminals"}

# The parts left out, and the promises that then do not hold.
LEFT_OUT: list[tuple[set[str], set[str]]] = [
    ({"net"}, {"no network", "no abstract sockets of others"}),
    ({"pid"}, {"agent process hidden"}),
    ({"seccomp"}, FILTERED),
    # The filter refuses what this does too: it shows only when both are gone.
    ({"no-userns"}, set()),
    ({"seccomp", "no-userns"}, {*FILTERED, "no new namespaces"}),
    ({"git"}, {"git folder read-only"}),
    ({"credentials"}, {"credentials beside tools hidden"}),
    # What is not shown can't prove that anything beside it is hidden.
    ({"tool", "credentials"}, {"credentials beside tools hidden"}),
    ({"agent-home"}, {"agent home hidden"}),
    ({"shm"}, {"shared memory works"}),
    ({"root-ro"}, {"outside read-only"}),
    ({"dev-ro"}, {"outside read-only"}),
]


@pytest.mark.parametrize(("parts", "promises"), LEFT_OUT)
def test_a_part_left_out_breaks_its_promise(
    laid: Lures, parts: set[str], promises: set[str]
) -> None:
    """Sandbox: what depends on a protection is reported when it is gone, and only that."""
    rest = {name: words for name, words in profile(laid).items() if name not in parts}
    assert set(broken(run_probe(laid, rest))) == promises - machine_keeps()


# For anyone but root bubblewrap drops all rights by itself, and the system's files are closed.
LEFT_OUT_AS_ROOT = [
    ({"caps"}, {"no capabilities"}),
    # A second user namespace, which keeps the first from getting more, owns none of the mounts.
    ({"caps", "seccomp"}, {*FILTERED, "no capabilities"}),
    (
        {"caps", "seccomp", "no-userns"},
        {*FILTERED, "no capabilities", "no mounts", "no new namespaces"},
    ),
    ({"proc-ro"}, {"kernel settings read-only"}),
    ({"shadow"}, {"system secrets hidden"}),
]


@pytest.mark.parametrize(("parts", "promises"), LEFT_OUT_AS_ROOT)
def test_as_root_a_part_left_out_breaks_its_promise(
    laid: Lures, parts: set[str], promises: set[str]
) -> None:
    """The same for what shows only as root, where a sandbox is most easily none."""
    needs_root()
    test_a_part_left_out_breaks_its_promise(laid, parts, promises)


def test_the_whole_disk_instead_of_chosen_folders_shows_sockets(laid: Lures) -> None:
    """A read-only disk stops no connection: programs that listen on a path are in reach."""
    parts = {**profile(laid), "system": ["--ro-bind", "/", "/"], "var": []}
    assert set(broken(run_probe(laid, parts))) == {"no sockets of others"}


def test_the_whole_disk_and_no_empty_home_shows_secrets(laid: Lures) -> None:
    """What keeps the home's files away, if the disk is shown, is the empty folder in its place."""
    parts = {**profile(laid), "system": ["--ro-bind", "/", "/"], "var": [], "home": []}
    assert set(broken(run_probe(laid, parts))) == {"no sockets of others", "home hidden"}


def test_a_home_that_is_shown_is_seen(laid: Lures) -> None:
    """The home's secrets count as hidden only if they can't be found."""
    parts = {**profile(laid), "home": ["--ro-bind", str(laid.home), str(laid.home)]}
    assert set(broken(run_probe(laid, parts))) == {"home hidden"}


def test_the_tmp_of_everyone_is_seen(laid: Lures) -> None:
    """A private /tmp is none if it is the one of everyone."""
    parts = {**profile(laid), "tmp": ["--bind", "/tmp", "/tmp"], "var": ["--dir", "/run"]}
    assert set(broken(run_probe(laid, parts))) == {"own /tmp private"}


def test_a_writable_folder_outside_is_seen(laid: Lures) -> None:
    """One folder that commands may write to is enough; nothing is left in it."""
    parts = {**profile(laid), "var": ["--bind", str(laid.outside), str(laid.outside)]}
    seen = broken(run_probe(laid, parts))
    assert set(seen) == {"outside read-only", "no sockets of others"}
    assert str(laid.outside) in seen["outside read-only"]
    assert list(laid.outside.iterdir()) == [laid.unix_socket]


def test_a_workspace_that_cannot_be_written_is_seen(laid: Lures) -> None:
    """A sandbox in which no work can be done is none that was asked for."""
    where = str(laid.workspace)
    parts = {**profile(laid), "workspace": ["--ro-bind", where, where], "agent-home": []}
    seen = set(broken(run_probe(laid, parts)))
    assert seen == {"workspace writable", "agent home hidden"}


def test_an_inherited_descriptor_is_seen(laid: Lures) -> None:
    """Sandbox: a folder handed in by its descriptor is a way out."""
    handle = os.open(laid.outside, os.O_RDONLY | os.O_DIRECTORY)
    try:
        seen = broken(run_probe(laid, profile(laid), pass_fds=(handle,)))
    finally:
        os.close(handle)
    assert set(seen) == {"no inherited descriptors"}
    assert str(handle) in seen["no inherited descriptors"]


def test_the_agents_environment_is_seen(laid: Lures) -> None:
    """A sandbox started with the agent's environment shows it to every command, in its own process."""
    seen = broken(run_probe(laid, profile(laid), ["/usr/bin/env", f"T={laid.token}"]))
    assert set(seen) == {"agent process hidden"}


# Becomes the leader of a session with a terminal, and goes on as another program.
_WITH_TERMINAL = """
import os, sys
os.open(sys.argv[1], os.O_RDWR)
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("left_out", [False, True])
def test_a_terminal_of_the_person_is_seen(laid: Lures, left_out: bool) -> None:
    """Without a session of its own a command can open the terminal that the agent was started in."""
    parts = profile(laid)
    if left_out:
        del parts["session"]
    keyboard, screen = os.openpty()
    try:
        starter = [str(PYTHON), "-I", "-S", "-c", _WITH_TERMINAL, os.ttyname(screen)]
        verdicts = run_probe(laid, parts, ["/usr/bin/setsid", "--wait", *starter])
    finally:
        os.close(keyboard)
        os.close(screen)
    assert set(broken(verdicts)) == ({"no terminal"} if left_out else set())


def test_a_dead_loopback_is_seen(laid: Lures) -> None:
    """Test servers need 127.0.0.1; a new network has it, but not switched on."""
    parts = profile(laid)
    del parts["net"]
    # A network of its own that nobody has switched on: nothing outside is in reach either.
    verdicts = run_probe(laid, parts, ["/usr/bin/unshare", "--map-root-user", "--user", "--net"])
    assert "loopback works" in broken(verdicts)
    assert verdicts["no network"][0]


# --- the network, allowed --------------------------------------------------------------------------


def test_a_network_that_is_allowed_is_no_broken_promise(laid: Lures) -> None:
    """Anyone who allows the network is told that it is allowed; all else still holds."""
    parts = profile(laid)
    del parts["net"]
    verdicts = run_probe(laid, parts, changes={"network": True})
    assert not broken(verdicts)
    assert inapplicable(verdicts) == {"no network", "no abstract sockets of others"}
    assert verdicts["no network"] == (None, "allowed")
