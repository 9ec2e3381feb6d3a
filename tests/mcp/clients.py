"""Clients of the official SDK, each with a server of ours in a process of its own."""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, ElicitResult, TextContent, jsonrpc_message_adapter

from tests import warm

ERAS = ("legacy", "2026-07-28")
"""The ways to speak: with a handshake (2025-11-25), and without."""


class Tools:
    """A client's tools: a call returns what the model reads."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._heard = ""
        self._news = asyncio.Event()

    async def result(self, tool: str, **arguments: Any) -> CallToolResult:
        async def progress(progress: float, total: float | None, message: str | None) -> None:
            assert progress
            assert total is None
            self._heard += message or ""
            self._news.set()

        return await self.client.call_tool(tool, arguments, progress_callback=progress)

    async def __call__(self, tool: str, **arguments: Any) -> str:
        found = await self.result(tool, **arguments)
        [text] = found.content
        assert isinstance(text, TextContent)
        return f"{'FAILED ' * bool(found.is_error)}{text.text}"

    async def heard(self, text: str) -> None:
        """Wait until a call has told of something by its progress, since it was last heard."""
        while text not in self._heard:
            await self._news.wait()
            self._news.clear()
        self._heard = self._heard.partition(text)[2]

    async def session(self) -> str:
        facts = (await self.result("list_files")).structured_content
        return str((facts or {})["session"])


@contextlib.asynccontextmanager
async def server_at(folder: Path, *options: str) -> AsyncIterator[Any]:
    """Start a server at a folder; yield what comes from it and what goes to it, as a client takes them.

    The SDK's own would start an interpreter, and import anew: most of what such a test costs.
    """
    arrived, coming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    going, sent = anyio.create_memory_object_stream[SessionMessage](0)
    words = ("mcp", str(folder), *options)
    process = warm.start_command(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def read() -> None:
        async with arrived:
            async for line in anyio.wrap_file(stdout):
                with contextlib.suppress(anyio.BrokenResourceError):  # the client has gone
                    await arrived.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))

    def write(line: str) -> None:
        stdin.write(line)
        stdin.flush()

    async def send() -> None:
        with stdin, sent:  # its end is the server's, too
            async for each in sent:
                line = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                await anyio.to_thread.run_sync(write, f"{line}\n")

    with process:
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(send)
            try:
                yield coming, going
            finally:
                coming.close()
                going.close()


def talk(
    server: Any,
    work: Callable[[Tools], Awaitable[None]],
    era: str = ERAS[0],
    answers: list[ElicitResult] | None = None,
) -> list[str]:
    """Have a client work; return what it was asked. Without answers it can't be asked."""
    asked: list[str] = []

    async def elicited(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        assert answers is not None
        assert context is not None
        return answers[min(len(asked), len(answers)) - 1]

    async def run() -> None:
        callback = None if answers is None else elicited
        async with Client(server, mode=era, elicitation_callback=callback) as client:
            try:
                await work(Tools(client))
            except AssertionError as fault:  # the SDK would bury it in groups of groups
                failed.append(fault)

    failed: list[AssertionError] = []
    asyncio.run(run())
    for fault in failed:
        raise fault
    return asked
