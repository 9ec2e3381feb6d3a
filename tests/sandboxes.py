"""What tests of the sandbox need: to know whether this machine can have one, and lures around it."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from codingagent.process.bubblewrap import Confined
from tests.helpers import HANG_S

BWRAP = "/usr/bin/bwrap"

# Set to "require" where a sandbox must be there: what is skipped elsewhere then fails.
SWITCH = "SANDBOX_TESTS"


def needs_bwrap(program: str = BWRAP) -> None:
    """Skips the test, or fails it where a sandbox is required, if bubblewrap does not work here."""
    reason = why_no_bwrap(program)
    if reason and os.environ.get(SWITCH) == "require":
        pytest.fail(f"{reason} ({SWITCH}=require)")
    if reason:
        pytest.skip(reason)


@cache
def why_no_bwrap(program: str = BWRAP) -> str:
    """Return why bubblewrap does not work on this machine, or nothing."""
    if sys.platform != "linux":
        return "bubblewrap is for Linux"
    if not os.access(program, os.X_OK):
        return f"there is no {program}"
    namespaces = ["--unshare-user", "--unshare-pid", "--unshare-net"]
    folders = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    argv = [program, *namespaces, *folders, "/bin/sh", "-c", "exit 0"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=HANG_S)
    return f"bubblewrap can't make a sandbox here: {done.stderr.strip()}" if done.returncode else ""


def needs_root() -> None:
    """Skips the test unless root runs it: for what the system itself keeps from everyone else."""
    if os.geteuid() != 0:
        pytest.skip(
            "only root could do here what is refused; the test needs root to tell who refuses"
        )


def line_by_names(confined: Confined) -> list[str | int]:
    """Return a command line of bwrap's alone for the same sandbox: all is mounted by its name."""
    flags: list[str] = []
    for mount in confined.mounts:
        target, is_read_only = str(mount["target"]), mount["is_read_only"]
        if mount["kind"] == "empty" and Path(target).is_file():
            flags += ["--ro-bind", "/dev/null", target]
        elif mount["kind"] == "empty":
            flags += ["--perms", f"{mount['mode']:o}", "--tmpfs", target]
            flags += ["--remount-ro", target] if is_read_only else []
        else:
            flags += ["--ro-bind" if is_read_only else "--bind"]
            flags += [str(mount["source"] or target), target]
    gate = confined.argv.index("--file")
    # There is no guard that would hear of its start.
    rest = [
        w.replace("|| exit", "") if isinstance(w, str) else w for w in confined.argv[gate + 3 :]
    ]
    return [*confined.argv[:gate], *flags, *rest]


# --- lures -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lures:
    """A home with a workspace in it, and around them things that a sandbox must keep away."""

    root: Path
    token: str
    agent_pid: int
    """A process with the token in its environment."""
    tcp_port: int
    abstract_socket: str
    tmp_file: Path
    """A file in the /tmp of everyone."""

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def home_file(self) -> Path:
        return self.home / "secret.txt"

    @property
    def workspace(self) -> Path:
        return self.home / "project"

    @property
    def git(self) -> Path:
        return self.workspace / ".git"

    @property
    def agent_home(self) -> Path:
        return self.workspace / ".codingagent"

    @property
    def session_tmp(self) -> Path:
        """The folder that becomes the sandbox's own /tmp."""
        return self.root / "session-tmp"

    @property
    def outside(self) -> Path:
        """A folder that anyone who runs the tests may write to."""
        return self.root / "outside"

    @property
    def unix_socket(self) -> Path:
        return self.outside / "socket"

    @property
    def program(self) -> Path:
        """A tool of the person's, with credentials beside it."""
        return self.root / "application" / "bin" / "program"

    @property
    def credentials(self) -> list[Path]:
        return [self.root / "application" / name for name in (".netrc", "etc/npmrc")]

    def argument(self) -> dict[str, object]:
        """Return the argument of the probe that names them all."""
        return {
            "workspace": str(self.workspace),
            "home": str(self.home),
            "home_file": str(self.home_file),
            "outside_folder": str(self.outside),
            "tmp_file": str(self.tmp_file),
            "agent_pid": self.agent_pid,
            "agent_token": self.token,
            "tcp_port": self.tcp_port,
            "unix_socket": str(self.unix_socket),
            "abstract_socket": self.abstract_socket,
            "network": False,
            "git": str(self.git),
            "agent_home": str(self.agent_home),
            "program": str(self.program),
            "credentials": list(map(str, self.credentials)),
        }

    def files(self) -> list[str]:
        """Return the names of all files and folders, for a look before and after."""
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))


@contextlib.contextmanager
def lures() -> Iterator[Lures]:
    """Lays them out, and takes them away again.

    Not in pytest's folder, which is in /tmp: a sandbox has another /tmp, and would hide them by that.
    """
    token = f"token-{uuid.uuid4().hex}"
    with contextlib.ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="codingagent-test-", dir="/var/tmp"))
        stack.callback(shutil.rmtree, root)
        file = stack.enter_context(
            tempfile.NamedTemporaryFile(prefix="codingagent-test-", dir="/tmp")
        )
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{token}")
        abstract.listen()
        agent = stack.enter_context(
            subprocess.Popen(
                ["/bin/sh", "-c", "read line"], env={"T": token}, stdin=subprocess.PIPE
            )
        )
        stack.callback(agent.kill)
        laid = Lures(root, token, agent.pid, listener.getsockname()[1], token, Path(file.name))
        for folder in (laid.session_tmp, laid.outside, laid.git / "hooks", laid.agent_home):
            folder.mkdir(parents=True)
        laid.home_file.write_text("a secret")
        (laid.agent_home / "settings.toml").touch()
        for lure in (laid.program, *laid.credentials):
            lure.parent.mkdir(parents=True, exist_ok=True)
            lure.write_text("a lure")
        by_path = stack.enter_context(socket.socket(socket.AF_UNIX))
        by_path.bind(str(laid.unix_socket))
        by_path.listen()
        yield laid
