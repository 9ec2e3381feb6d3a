"""What a call of a tool costs, against an empty tool of the SDK's own `MCPServer`, by the SDK's client."""

import asyncio
import contextlib
import itertools
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.benchmarks.measuring import Figure
from tests.helpers import wait_until

CALLS, ROUNDS, STARTS = 100, 7, 7

_EMPTY = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("empty", log_level="ERROR")
@server.tool()
def nothing(paths: list[str]) -> str:
    return ""
if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run("stdio")
"""
_PORT = 18_777

Arguments = Callable[[int], dict[str, Any]]


def _words(folder: Path) -> tuple[list[str], list[str]]:
    return ["-m", "codingagent", "mcp", str(folder)], ["-c", _EMPTY]


def _stdio(words: list[str]) -> Any:
    return StdioServerParameters(command=sys.executable, args=words, env={**os.environ})


@contextlib.asynccontextmanager
async def _http(port: int, token: str) -> AsyncIterator[Any]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as client,
        streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=client) as streams,
    ):
        yield streams


def _listens() -> bool:
    """Return whether the empty server takes connections."""
    with socket.socket() as trial:
        return not trial.connect_ex(("127.0.0.1", _PORT))


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[tuple[Callable[[], Any], Callable[[], Any]]]:
    """Serve both over HTTP; yield what connects to each."""
    ours, empty = _words(folder)
    quiet = subprocess.DEVNULL
    with (
        subprocess.Popen([sys.executable, *ours, "--http"], stderr=subprocess.PIPE, text=True) as first,
        subprocess.Popen([sys.executable, *empty, str(_PORT)], stderr=quiet, stdout=quiet) as second,
    ):
        assert first.stderr is not None
        found = re.search(r":(\d+)/mcp; token (\w+)", first.stderr.readline())
        assert found is not None
        wait_until(_listens)
        try:
            yield lambda: _http(int(found[1]), found[2]), lambda: _http(_PORT, "none")
        finally:
            first.terminate()
            second.terminate()


async def _taken(clients: list[Client], tool: str, arguments: Arguments, numbers: Iterator[int]) -> float:
    """Return how long a call takes, in milliseconds, if each client makes its calls one after the other."""

    async def some(client: Client) -> None:
        for _ in range(CALLS // len(clients)):
            found = await client.call_tool(tool, arguments(next(numbers)))
            assert not found.is_error, found

    started = time.perf_counter()
    await asyncio.gather(*map(some, clients))
    return (time.perf_counter() - started) * 1000 / CALLS


async def _pairs(
    ours: Callable[[], Any], empty: Callable[[], Any], count: int, tool: str, arguments: Arguments
) -> tuple[float, float]:
    """Return the medians of our tool's call and of the empty one's, of so many clients at once."""
    async with contextlib.AsyncExitStack() as stack:
        both = [
            [await stack.enter_async_context(Client(server(), mode="2026-07-28")) for _ in range(count)]
            for server in (ours, empty)
        ]
        numbers, taken = itertools.count(), list[tuple[float, float]]()
        for _ in range(ROUNDS + 1):
            a = await _taken(both[0], tool, arguments, numbers)
            b = await _taken(both[1], "nothing", lambda _: {"paths": ["a.txt"]}, numbers)
            taken.append((a, b))
    return statistics.median(a for a, _ in taken[1:]), statistics.median(b for _, b in taken[1:])


def _read(_: int) -> dict[str, Any]:
    return {"paths": ["a.txt"]}


def _edit(number: int) -> dict[str, Any]:
    return {"path": "b.txt", "edits": [{"start_line": 1, "end_line": 1, "replace": str(number)}]}


def calls() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a.txt").write_text("one\ntwo\n")
        (folder / "b.txt").write_text("one\ntwo\n")
        own, empty = _words(folder)
        kinds = [("stdio", lambda: _stdio(own), lambda: _stdio(empty))]
        with _served(folder) as over_http:
            for how, ours, peer in (*kinds, ("HTTP", *over_http)):
                for count, tool, arguments, budget in (
                    (1, "read_files", _read, 1.25),
                    (8, "read_files", _read, 1.25),
                    (1, "edit_file", _edit, 2.0),
                ):
                    a, b = asyncio.run(_pairs(ours, peer, count, tool, arguments))
                    who = "1 client" if count == 1 else f"{count} clients"
                    what = f"`{tool}` over {how}, {who}, against the SDK's empty tool"
                    yield Figure(what, f"{a:.2f} ms", f"{b:.2f} ms", a / b, budget)


def start() -> Iterator[Figure]:
    async def listed(words: list[str]) -> float:
        started = time.perf_counter()
        async with Client(_stdio(words), mode="2026-07-28") as client:
            await client.list_tools()
            return (time.perf_counter() - started) * 1000

    with tempfile.TemporaryDirectory() as name:
        own, empty = _words(Path(name))
        pairs = [(asyncio.run(listed(own)), asyncio.run(listed(empty))) for _ in range(STARTS)]
    a, b = (statistics.median(each) for each in zip(*pairs, strict=True))
    yield Figure(
        "start to the list of tools, against an empty server", f"{a:.0f} ms", f"{b:.0f} ms", a / b, 1.2
    )


ALL = (start, calls)
