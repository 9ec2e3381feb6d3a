#!/bin/sh
# tomlkit 0.15.2: a value added to a document whose lines all end in CRLF.
#
# Expected: the new line ends as its neighbours do: the library keeps a document's style.
# Seen: it ends in LF, so that the file has both kinds.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check tomlkit==0.15.2
"$folder/venv/bin/python" - <<'P'
import sys

import tomlkit

document = tomlkit.parse("[tool]\r\none = 1\r\n")
document["tool"]["two"] = 2
text = tomlkit.dumps(document)
print(repr(text))
sys.exit(text != "[tool]\r\none = 1\r\ntwo = 2\n")
P
