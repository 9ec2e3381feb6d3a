#!/bin/sh
# mcp 2.3.0 (`MCPServer`): a tool with an argument that is a text or nothing, called with a text that is JSON.
#
# A tool that writes files has such an argument: the content, or none for an empty file.
# Expected: a string of the call is the string, as with an argument of type `str`.
# Seen: where the type is not `str` alone, the text is parsed first: "null" arrives as None, an object is refused as
# "not a valid string", and for `str | list[str]` the text of a JSON list arrives as a list.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check mcp==2.3.0
"$folder/venv/bin/python" - <<'P'
import asyncio
import logging
import sys

from mcp import Client
from mcp.server.mcpserver import MCPServer

logging.disable()
server = MCPServer("files")
came = []


@server.tool()
def plain(content: str) -> str:
    came.append(content)
    return ""


@server.tool()
def optional(content: str | None = None) -> str:
    came.append(content)
    return ""


@server.tool()
def lines(content: str | list[str]) -> str:
    came.append(content)
    return ""


async def main():
    async with Client(server) as client:
        for tool, text in (("plain", "null"), ("optional", "null"), ("lines", '["one"]')):
            await client.call_tool(tool, {"content": text})
        return await client.call_tool("optional", {"content": '{"one": 1}'})


refused = asyncio.run(main())
print(came, refused.content[0].text.splitlines()[0])
sys.exit(not (came == ["null", None, ["one"]] and refused.is_error))
P
