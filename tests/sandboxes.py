"""What tests of the sandbox need: to know whether this machine can have one."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from codingagent.model.observations import Confined
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
        pytest.skip("only root could do here what is refused; the test needs root to tell who refuses")


def line_by_names(confined: Confined) -> list[str | int]:
    """Return a command line of bwrap's alone for the same sandbox: all is mounted by its name."""
    flags: list[str] = []
    for mount in confined.mounts:
        target, is_read_only = str(mount["target"]), mount["is_read_only"]
        is_empty = mount["kind"] in ("empty", "mask")
        if mount["kind"] == "layer" and not mount["source"]:
            continue
        if is_empty and Path(target).is_file():
            flags += ["--ro-bind", "/dev/null", target]
        elif is_empty:
            flags += ["--perms", f"{mount['mode']:o}", "--tmpfs", target]
            flags += ["--remount-ro", target] if is_read_only else []
        else:
            flags += ["--ro-bind" if is_read_only else "--bind"]
            flags += [str(mount["source"] or target), target]
    gate = confined.argv.index("--file")
    # There is no guard that would hear of its start.
    rest = [w.replace("|| exit", "") if isinstance(w, str) else w for w in confined.argv[gate + 3 :]]
    return [*confined.argv[:gate], *flags, *rest]
