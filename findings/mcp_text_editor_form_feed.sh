#!/bin/sh
# mcp-text-editor 1.0.2 (with mcp 1.30.0): an edit by line numbers in a file that holds a form feed, NEL or U+2028, as
# older C and Emacs Lisp, logs of mainframes and texts that were pasted from pages do.
#
# Expected: the two tools count lines alike; what the first one shows as line 2 is line 2 of the second one.
# Seen: `get_text_file_contents` ends lines at LF, `edit_text_file_contents` at those characters too, so the digest of
# the lines, just read, never fits: "Content hash mismatch - file has been modified since last read". Such a file can't
# be edited below that line.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check mcp-text-editor==1.0.2 mcp==1.30.0
cd "$folder"
venv/bin/python - <<'P'
import asyncio
import json
import pathlib
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

path = pathlib.Path("part.txt").resolve()


async def main():
    async with stdio_client(StdioServerParameters(command="venv/bin/mcp-text-editor")) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()

            async def call(name, files):
                came = await session.call_tool(name, {"files": files})
                return json.loads(came.content[0].text)[str(path)]

            results = []
            for between in ("-", "\f", "\x85", "\u2028"):
                path.write_text(f"one{between}one\ntwo\n", "utf-8")
                lines = {"file_path": str(path), "ranges": [{"start": 2, "end": 2}]}
                read = await call("get_text_file_contents", [lines])
                digest = read["ranges"][0]["range_hash"]
                patch = {"line_start": 2, "line_end": 2, "contents": "2\n", "range_hash": digest}
                edit = {"path": str(path), "file_hash": read["file_hash"], "patches": [patch]}
                made = await call("edit_text_file_contents", [edit])
                print(repr(between), read["ranges"][0]["content"].encode(), made["result"], made.get("reason", ""))
                results.append(made["result"])
            return results


sys.exit(asyncio.run(main()) != ["ok", "error", "error", "error"])
P
