#!/bin/sh
# openai-agents 0.24.0 (`apply_diff`, and 0.20.0 of @openai/agents-core, `applyDiff`), against @openai/codex 0.171.0
# (Linux, x86_64), `apply_patch`: five patches of the one format that all three are for.
#
# Expected: the same file of the same patch, or a fault.
# Seen: a heading `@@ class C:` that is not in the file is a fault for codex; the other two change the first place that
# fits, in another class. Lines to add without any beside them go to the end of the file for codex, to its beginning for
# the others, or behind the heading. A new file ends its last line only with codex. Two headings, one for a class and
# one for a method, which the format's help shows, are a fault for codex and narrow the place for the others.
# A model that learnt the format from one of them writes into the wrong place with the other, and no one says so.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @openai/codex@0.171.0 @openai/agents-core@0.20.0 >/dev/null
# The program applies a patch where its own name is apply_patch; it needs no key and no network for that.
ln -s "$(find node_modules/@openai -path '*/bin/codex' -type f -perm -100 | head -n 1)" apply_patch
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check openai-agents==0.24.0
cat >look.mjs <<'J'
import { readFileSync } from "node:fs";
import { applyDiff } from "@openai/agents-core";

const [text, diff, mode] = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(applyDiff(text, diff, mode)));
J
venv/bin/python - <<'P'
import json
import pathlib
import subprocess
import sys

from agents import apply_diff

TWO = "class A:\n    x = 1\n\nclass B:\n    x = 1\n"
NESTED = "class A:\n  def f():\n    x = 1\n\nclass B:\n  def f():\n    x = 1\n"
CHANGE = "-    x = 1\n+    x = 2"
ROWS = [
    ("default", TWO, f"@@ class C:\n{CHANGE}", None, TWO.replace("1", "2", 1)),
    ("default", "one\ntwo\n", "@@\n+three", "one\ntwo\nthree\n", "three\none\ntwo\n"),
    ("default", "one\ntwo\nthree\n", "@@ one\n+new", "one\ntwo\nthree\nnew\n", "one\nnew\ntwo\nthree\n"),
    ("create", "", "+one", "one\n", "one"),
    ("default", NESTED, f"@@ class B:\n@@   def f():\n{CHANGE}", None, NESTED[:-2] + "2\n"),
]
right = True
for mode, text, diff, by_codex, by_agents in ROWS:
    file = pathlib.Path("a.txt")
    file.unlink(missing_ok=True)
    if text:
        file.write_text(text)
    head = "Update" if text else "Add"
    patch = f"*** Begin Patch\n*** {head} File: a.txt\n{diff}\n*** End Patch"
    done = subprocess.run(["./apply_patch", patch], capture_output=True, text=True)
    codex = file.read_text() if done.returncode == 0 else None
    python = apply_diff(text, diff, mode)
    told = json.dumps([text, diff, mode])
    node = json.loads(subprocess.run(["node", "look.mjs"], input=told, capture_output=True, text=True).stdout)
    print(f"{diff!r}\n  codex:  {codex!r}  {done.stderr.strip()}\n  python: {python!r}\n  node:   {node!r}")
    right &= (codex, python, node) == (by_codex, by_agents, by_agents)
sys.exit(not right)
P
