"""Clients of the official SDK, each with a server of ours in a process of its own."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, ElicitResult, TextContent

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


def server_at(folder: Path, *options: str) -> StdioServerParameters:
    words = ["-m", "codingagent", "mcp", str(folder), *options]
    return StdioServerParameters(command=sys.executable, args=words, env={**os.environ})


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
