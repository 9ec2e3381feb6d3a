#!/bin/sh
# json-repair 0.64.6: complete strings of a JSON answer that was cut behind them, as a file's content in a tool call.
#
# RFC 8259 (section 7): `\/` stands for `/`; blank characters and code fences in a string are characters.
# Expected: only the end of the document is mended, the strings that are whole are what Python's json makes of them.
# Seen: line ends at a string's end are cut off, `\/` keeps its backslash, and a string that begins with a fence of JSON
# begins with the n of its \n instead. With the last brace in place all three are right. A file written from such an
# answer has no last line end, and the path names another file.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check json-repair==0.64.6
"$folder/venv/bin/python" - <<'P'
import json
import sys

import json_repair

rows = [
    (r'{"text": "def f():\n    return 1\n"', "def f():\n    return 1"),
    (r'{"text": "src\/main.py"', r"src\/main.py"),
    (r'{"text": "```json\n{}\n```"', "n{}\n```"),
]
right = True
for cut, seen in rows:
    whole = json.loads(cut + "}")["text"]
    mended = json_repair.loads(cut)["text"]
    print(f"{cut}\n  whole:  {whole!r}\n  mended: {mended!r}")
    right &= mended == seen != whole == json_repair.loads(cut + "}")["text"]
sys.exit(not right)
P
