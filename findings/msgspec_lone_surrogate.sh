#!/bin/sh
# msgspec 0.22.0, JSON: half a surrogate pair, which RFC 8259 (section 8.2) lets stand in a string.
#
# Expected: one error that names the surrogate, wherever it stands; Python's own json takes it.
# Seen: with more behind it the fault names the surrogate pair; as the last character of a whole document the
# fault is "Input data was truncated", as for a text that was cut. A program that takes that for "wait for more"
# waits for what never comes.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check msgspec==0.22.0
"$folder/venv/bin/python" - <<'P'
import json
import sys

import msgspec

HALF = r"\ud83d"
told = {}
for name, text in {"at the end": f'"{HALF}"', "in the middle": f'"{HALF} and more of it"'}.items():
    assert len(json.loads(text)) >= 1
    try:
        msgspec.json.decode(text)
        told[name] = "taken"
    except msgspec.DecodeError as fault:
        told[name] = str(fault)
    print(f"{name}: {told[name]}")
sys.exit(not (told["at the end"] == "Input data was truncated" != told["in the middle"]))
P
