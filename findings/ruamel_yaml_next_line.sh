#!/bin/sh
# ruamel.yaml 0.19.1, `YAML()`, YAML 1.2: a text with U+0085 (NEL), as recorded output of old systems has it.
#
# YAML 1.2.2 (5.4): NEL, U+2028 and U+2029 are no line breaks, as they were in 1.1; they are characters of the text.
# Expected: what is dumped is loaded as the same text, here and by npm's yaml 2.9.1, which is for 1.2 as well.
# Seen: the character is written as it is, with blanks behind it, as a line break would be, and comes back as one blank;
# U+2028 comes back here, but the other reader finds two blanks behind it.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund yaml@2.9.1 >/dev/null
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check ruamel.yaml==0.19.1
cat >look.mjs <<'J'
import { readFileSync } from "node:fs";
import YAML from "yaml";

process.stdout.write(JSON.stringify(YAML.parse(readFileSync(0, "utf8")).text));
J
venv/bin/python - <<'P'
import io
import json
import subprocess
import sys

from ruamel.yaml import YAML

ROWS = [
    ("one\x85two", "one two", "one\x85  two"),
    ("one\u2028two", "one\u2028two", "one\u2028  two"),
    ("one two", "one two", "one two"),
]
right = True
for text, by_ruamel, by_other in ROWS:
    written = io.StringIO()
    YAML().dump({"text": text}, written)
    seen = YAML().load(written.getvalue())["text"]
    node = subprocess.run(["node", "look.mjs"], input=written.getvalue().encode(), capture_output=True, check=True)
    other = json.loads(node.stdout)
    print(f"{text!r} is written as {written.getvalue()!r}\n  read back as {seen!r}, by npm's yaml as {other!r}")
    right &= (seen, other) == (by_ruamel, by_other)
sys.exit(not right)
P
