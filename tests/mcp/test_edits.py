"""Edits in quick succession: none waits for its checkpoints, and each can be undone by itself."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm
from tests.helpers import children, run_here, wait_until
from tests.mcp.clients import Tools, server_at, talk

# A client that edits a file by one step after the other until it is killed.
CLIENT = f"""
import os, sys
from mcp import StdioServerParameters
from tests.mcp.clients import talk
async def work(tools):
    for number in range(10_000):
        edit = dict(search=str(number), replace=str(number + 1))
        assert "Edited" in await tools("edit_file", path="a", edits=[edit])
words = ["-m", "codingagent", "mcp", sys.argv[1]]
talk(StdioServerParameters(command={sys.executable!r}, args=words, env={{**os.environ}}), work)
"""


async def edit(tools: Tools, old: object, new: object) -> None:
    told = await tools("edit_file", path="a", edits=[{"search": str(old), "replace": str(new)}])
    assert told.startswith("Edited"), told


def test_each_edit_of_many_is_undone_by_itself(tmp_path: Path) -> None:
    """What others changed meanwhile, there and elsewhere, stays."""
    (file := tmp_path / "a").write_text("0\n")

    async def work(tools: Tools) -> None:
        for number in range(5):
            await edit(tools, number, number + 1)
        (tmp_path / "yours").write_text("")
        file.write_text("mine\n5\n")
        await edit(tools, 5, 6)
        await edit(tools, 6, 7)
        assert "-0\n+mine\n+7\n" in (told := await tools("diff")), told
        assert "undid turn 7" in (told := await tools("undo")), told
        assert file.read_text() == "mine\n6\n"
        await tools("undo")
        assert file.read_text() == "mine\n5\n"
        assert "changed again since" in (told := await tools("undo")) or "left as it is" in told
        assert file.read_text() == "mine\n5\n"
        assert (tmp_path / "yours").exists()
        await edit(tools, 5, 9)
        assert "exit code 0" in await tools("run_command", command="cat a; echo 10 >a")
        assert "undid turn" in await tools("undo", calls=2)
        assert file.read_text() == "mine\n5\n"

    talk(server_at(tmp_path), work)


@pytest.mark.parametrize("then", ["diff --name-only", "show", "undo --turns 3", "commit -m x"])
def test_another_process_sees_every_edit_at_once(tmp_path: Path, then: str) -> None:
    """It need not wait for the server's next pause; and the server goes on after it."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name in ("name", "email"):
        subprocess.run(["git", "-C", tmp_path, "config", f"user.{name}", "a@b"], check=True)
    (tmp_path / "a").write_text("0\n")
    for words in (("add", "a"), ("commit", "-qm", "first")):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)

    async def work(tools: Tools) -> None:
        for number in range(4):
            await edit(tools, number, number + 1)
        done = run_here(*then.split(), folder=tmp_path)
        assert not done.returncode, done.stderr
        assert "a" in done.stdout
        if "undo" in then:
            assert (tmp_path / "a").read_text() == "1\n"
        now = (tmp_path / "a").read_text().strip()
        await edit(tools, now, "x")
        assert "undid turn" in await tools("undo")
        assert (tmp_path / "a").read_text() == f"{now}\n"

    talk(server_at(tmp_path), work)


@pytest.mark.parametrize("calls", [1, 2, 40])
def test_a_kill_at_any_instant_loses_no_edit(tmp_path: Path, calls: int) -> None:
    """Each that was done is in the journal, and undone by itself; the one that was being done, too."""
    (file := tmp_path / "a").write_text("0\n")
    with warm.start(CLIENT, str(tmp_path), stderr=subprocess.DEVNULL) as client:
        wait_until(lambda: int(file.read_text().strip() or 0) >= calls)
        words = ((each, Path(f"/proc/{each}/cmdline").read_bytes()) for each in children(client.pid))
        [server] = (each for each, told in words if b"codingagent\0mcp" in told)
        os.kill(server, signal.SIGKILL)
        client.kill()
    assert not run_here("resume", "--once", folder=tmp_path).returncode
    now = int(file.read_text())
    assert now >= calls
    for less in (1, 2):
        done = run_here("undo", folder=tmp_path)
        if now - less < 0:
            break
        assert not done.returncode, done.stderr
        assert file.read_text() == f"{now - less}\n"
    records = map(json.loads, run_here("log", "--json", folder=tmp_path).stdout.splitlines())
    assert sum(each["kind"] == "turn_ended" for each in records) == now
