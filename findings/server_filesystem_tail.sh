#!/bin/sh
# @modelcontextprotocol/server-filesystem 2026.8.31: `read_text_file` with `tail` and `head`.
#
# Expected: `tail: 1` gives the last line, as tail(1) does; both give lines as they are.
# Seen: what stands behind the last line end counts as a line, so that `tail: 1` of a text file is empty and `tail: 2`
# its last line; `tail` makes LF of CRLF, `head` keeps the CR, the last one too, and drops only the LF behind it.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/server-filesystem@2026.8.31 >/dev/null
mkdir work
printf 'one\ntwo\nthree\n' >work/lf.txt
printf 'one\r\ntwo\r\nthree\r\n' >work/crlf.txt
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


def say(message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    server.stdin.flush()


def ask(method, params):
    say({"id": 1, "method": method, "params": params})
    for line in server.stdout:
        if "result" in (answer := json.loads(line)):
            return answer["result"]


def read(name, **lines):
    words = {"path": os.path.abspath(f"work/{name}"), **lines}
    return ask("tools/call", {"name": "read_text_file", "arguments": words})["content"][0]["text"]


client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "one", "version": "1"}}
ask("initialize", client)
say({"method": "notifications/initialized"})
seen = [read("lf.txt", tail=1), read("lf.txt", tail=2), read("crlf.txt", tail=3), read("crlf.txt", head=2)]
server.stdin.close()
server.wait()
print(seen)
sys.exit(seen != ["", "three\n", "two\nthree\n", "one\r\ntwo\r"])
P
