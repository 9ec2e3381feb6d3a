#!/bin/sh
# @modelcontextprotocol/server-filesystem 2026.8.31: `edit_file` where the old text differs from the file by blanks at
# the left, in a file of CRLF lines, and where the old text stands twice; `read_text_file` with `tail` and `head`.
#
# Expected: its README says "Whitespace normalization with indentation preservation", so lines below an `if` stay below
# it; a line that the edit does not name keeps its end; two places are refused, or named. `tail: 1` gives the last line,
# as tail(1) does, and both give lines as they are.
# Seen: all lines but the first are put at the first one's indentation, or left of it, so that Python no longer
# compiles; each CRLF of the file becomes LF, and the difference that it answers with does not show that; of two places
# the first is taken without a word. What stands behind the last line end counts as a line of `tail`, so that `tail: 1`
# of a text file is empty; `tail` makes LF of CRLF, `head` keeps the CR, the last one too, and drops the LF behind it.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/server-filesystem@2026.8.31 >/dev/null
mkdir work
python3 - <<'P'
import json
import os
import subprocess
import sys

server = subprocess.Popen(
    ["node_modules/.bin/mcp-server-filesystem", "work"],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
)
path = os.path.abspath("work/part.py")


def say(message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    server.stdin.flush()


def ask(method, params):
    say({"id": 1, "method": method, "params": params})
    for line in server.stdout:
        if "result" in (answer := json.loads(line)):
            return answer["result"]


def put(data):
    with open(path, "wb") as file:
        file.write(data)


def read(data, **lines):
    put(data)
    return ask("tools/call", {"name": "read_text_file", "arguments": {"path": path, **lines}})["content"][0]["text"]


def edited(before, old, new):
    put(before)
    words = {"path": path, "edits": [{"oldText": old, "newText": new}]}
    told = ask("tools/call", {"name": "edit_file", "arguments": words})["content"][0]["text"]
    with open(path, "rb") as file:
        after = file.read()
    print(f"{before} -> {after}\n{told}")
    return after, told.count("\n-"), told.count("\n+")


client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "one", "version": "1"}}
ask("initialize", client)
say({"method": "notifications/initialized"})
nested = edited(
    b"def work():\n    if ready:\n        first()\n        second()\n",
    "if ready:\n    first()\n    second()",
    "if ready:\n    first()\n    third()",
)
ends = edited(b"one\r\ntwo\r\nthree\r\n", "two", "2")
twice = edited(b"same\nother\nsame\n", "same", "new")
unix, dos = b"one\ntwo\nthree\n", b"one\r\ntwo\r\nthree\r\n"
seen = [read(unix, tail=1), read(unix, tail=2), read(dos, tail=3), read(dos, head=2)]
print(seen)
server.stdin.close()
server.wait()
is_so = (
    nested[0] == b"def work():\n    if ready:\n    first()\n    third()\n"
    and ends == (b"one\n2\nthree\n", 2, 2)  # the header's line, and the one that the edit names
    and twice[0] == b"new\nother\nsame\n"
    and seen == ["", "three\n", "two\nthree\n", "one\r\ntwo\r"]
)
sys.exit(not is_so)
P
