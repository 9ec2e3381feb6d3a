"""The probe of `doctor`: each promise holds in the sandbox, and it sees what does not hold without one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import HANG_S
from tests.sandboxes import SWITCH, needs_bwrap

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probe is for Linux")


def test_a_sandbox_that_is_required_is_not_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_sandbox_keeps_every_promise(tmp_path: Path) -> None:
    """Sandbox: prove, don't assume. Each promise is looked at, and each holds."""
    from codingagent.process.probe import PROMISES
    from codingagent.process.select_sandbox import prove_sandbox

    needs_bwrap()
    told = prove_sandbox(tmp_path)
    assert list(told) == list(PROMISES)
    assert not [name for name, (holds, _) in told.items() if holds is False], told
    assert all(detail for _, detail in told.values())


def test_without_a_sandbox_the_probe_sees_what_a_command_could_do(tmp_path: Path) -> None:
    """Nothing holds by itself; and the probe leaves nothing behind."""
    from codingagent.process import probe

    folders = [tmp_path / name for name in ("workspace", "outside")]
    for folder in folders:
        folder.mkdir()
    (lure := tmp_path / "file").write_text("a lure")
    order = {
        "workspace": str(folders[0]),
        "data": str(folders[0]),
        "outside": "/var/tmp",
        "home_file": str(lure),
        "agent_pid": os.getpid(),
        "tcp_port": 9,
    }
    program = Path(probe.__file__).read_text("utf-8")
    argv = [sys.executable, "-I", "-S", "-c", program, json.dumps(order)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, "")
    broken = {name for name, (holds, _) in json.loads(done.stdout).items() if not holds}
    assert {"outside read-only", "home hidden", "agent process hidden"} <= broken
    assert not broken & {"workspace writable", "shared memory works", "loopback works"}
    assert not [path for folder in folders for path in folder.iterdir()]
