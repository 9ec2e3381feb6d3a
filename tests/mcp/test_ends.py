"""Progress, cancel, clients and servers that die, several at one folder."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm
from tests.helpers import children, new_marker, none_left, run_here, wait_until
from tests.killing import is_alive
from tests.mcp.clients import ERAS, Tools, server_at, talk

# A client in a process of its own, which starts the server as the SDK does: it says when its command runs.
CLIENT = f"""
import os, sys
from mcp import StdioServerParameters
from tests.mcp.clients import talk
async def work(tools):
    await tools("write_file", path="kept", content="kept")
    await tools("run_command", command=sys.argv[2], timeout_s=600)
words = ["-m", "codingagent", "mcp", sys.argv[1]]
talk(StdioServerParameters(command={sys.executable!r}, args=words, env={{**os.environ}}), work)
"""


def words_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.parametrize("era", ERAS)
def test_a_command_tells_its_output_and_is_cancelled(tmp_path: Path, era: str) -> None:
    """A cancel of the client ends the command; what comes next works."""
    marker = new_marker()

    async def work(tools: Tools) -> None:
        sleep = f"echo begun; sleep 600; : {marker}"
        call = asyncio.create_task(tools("run_command", command=sleep, timeout_s=600))
        await tools.heard("begun\n")
        call.cancel()
        await asyncio.wait({call})
        assert "Created" in await tools("write_file", path="a", content="")
        assert "ended: the program that asked for it is gone" in run_here("log", folder=tmp_path).stdout

    with none_left(marker):
        talk(server_at(tmp_path), work, era)


@pytest.mark.parametrize("which", ["client", "server"])
def test_who_is_killed_in_the_middle_of_a_command_loses_nothing(tmp_path: Path, which: str) -> None:
    """The command ends, the session says so, and what was done before can be undone."""
    marker = new_marker()
    with none_left(marker):
        command = f"touch begun; sleep 600; : {marker}"
        with warm.start(CLIENT, str(tmp_path), command, stderr=subprocess.DEVNULL) as client:
            wait_until((tmp_path / "begun").exists)
            servers = [p for p in children(client.pid) if b"codingagent\0mcp" in words_of(p)]
            os.kill(client.pid if which == "client" else servers[0], signal.SIGKILL)
            client.kill()
    wait_until(lambda: not any(map(is_alive, servers)))
    done = run_here("resume", "--once", folder=tmp_path)
    assert not done.returncode, done.stderr
    log = run_here("log", folder=tmp_path).stdout
    assert "interrupted" in log or "ended: the program that asked for it is gone" in log
    assert not run_here("undo", "--turns", "2", folder=tmp_path).returncode
    assert not (tmp_path / "kept").exists()


def test_several_clients_take_turns(tmp_path: Path) -> None:
    """Each has its session; no edit of a file that all of them change is lost."""
    names = [f"client {number}" for number in range(3)]
    (tmp_path / "a").write_text("".join(f"{name}: 0\n" for name in names))
    assert not run_here("new", "--here", "--no-wait", "x", folder=tmp_path).returncode  # the home is there

    async def count(name: str) -> None:
        async def work(tools: Tools) -> None:
            for number in range(5):
                edit = {"search": f"{name}: {number}", "replace": f"{name}: {number + 1}"}
                assert "Edited" in (told := await tools("edit_file", path="a", edits=[edit])), told

        await asyncio.to_thread(talk, server_at(tmp_path), work)

    async def all_of_them() -> None:
        await asyncio.gather(*map(count, names))

    asyncio.run(all_of_them())
    assert (tmp_path / "a").read_text() == "".join(f"{name}: 5\n" for name in names)
    assert run_here("list", folder=tmp_path).stdout.count("over MCP") == 3
