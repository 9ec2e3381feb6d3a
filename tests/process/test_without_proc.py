"""macOS, imitated: a supervisor that has no /proc and asks ps (design, commands)."""

import ast
import marshal
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from codingagent.process import supervisor
from tests.helpers import HANG_S, REPOSITORY, new_marker, none_left, wait_until

# Counts what is started beside the commands; nothing is adopted on macOS.
_PROGRAM = """
import os, sys
from codingagent.process import supervisor
supervisor._has_proc = lambda: False
sys.platform = "darwin"
count = os.open(sys.argv[1], os.O_CREAT | os.O_APPEND | os.O_WRONLY)
sys.addaudithook(lambda event, _: event == "subprocess.Popen" and os.write(count, b"p"))
supervisor.main()
"""


def test_no_ps_is_started_while_nothing_runs_and_the_tree_ends(tmp_path: Path) -> None:
    """A ps that ends wakes the supervisor like any child: it must not answer with another ps."""
    ours, theirs = socket.socketpair()
    count = tmp_path / "count"
    count.touch()
    marker = new_marker()
    with (
        theirs,
        none_left(marker),
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(count)],
            stdin=theirs.fileno(),
            cwd=REPOSITORY,
            start_new_session=True,
        ),
        ours,
    ):
        control, far = socket.socketpair()
        reads, writes = os.pipe()
        folder = os.open(tmp_path, os.O_RDONLY)
        socket.send_fds(ours, [b"c"], [far.fileno(), writes, folder])
        ours.settimeout(HANG_S)
        assert ours.recv(1)  # now they may be closed: macOS loses those that are under way
        for handle in (writes, folder):
            os.close(handle)
        far.close()
        line = f"for each in $(seq 50); do sleep {marker} & done; echo ran"
        order = {
            "argv": ["/bin/sh", "-c", line],
            "variables": {"PATH": os.environ["PATH"]},
            "timeout_s": 60,
            "memory_bytes": None,
            "is_told": False,
            "mounts": [],
            "layer": "",
            "layer_bytes": 0,
            "parts_streams": False,
        }
        control.sendall(marshal.dumps(order))
        with control, control.makefile("rb") as reports:
            report = ast.literal_eval(reports.read().decode())
        assert (report["code"], report["ended_by"]) == (0, "itself")
        assert os.read(reads, 100) == b"ran\n"
        os.close(reads)
        # Not one for each process that is ended: that would take longer than anyone waits for it.
        assert (settled := count.stat().st_size) < 50
        # It is woken by the end of the guard, and by nothing after that.
        seen_at = time.monotonic()
        wait_until(lambda: time.monotonic() > seen_at + 1)
        assert count.stat().st_size <= settled + 1


def test_a_guard_that_ends_before_it_has_its_handles_is_not_waited_for() -> None:
    for answer in (b"c", b""):
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            socket.recv_fds(theirs, 1, 1)
            os._exit(theirs.send(answer) - 1)
        theirs.close()
        assert supervisor.hand_on(pid, ours, [0]) == bool(answer)
        ours.close()
        os.waitpid(pid, 0)
