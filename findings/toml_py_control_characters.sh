#!/bin/sh
# toml 0.10.2 (PyPI): `dumps` of texts with a form feed, NEL or ESC, and of tables in a list in a list.
#
# TOML 1.0 (String): control characters are written as \f, \u0085, \u001b. (Array): an array may hold arrays of tables.
# Expected: what Python's tomllib reads back is what was given, as with tomli-w 1.2.0, or a fault that names the value.
# Seen: the form feed becomes the letters x0c and NEL x85, without a fault; ESC is an IndexError; of tables in a list in
# a list only the keys are left, as texts. A colour code or a page break in a setting is another text in the file.
#
# Ends with 0 while that is so, else with 1. Needs Python 3.11 or newer.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check toml==0.10.2 tomli-w==1.2.0
"$folder/venv/bin/python" - <<'P'
import sys
import tomllib

import toml
import tomli_w

ROWS = [
    ("one\ftwo", "onex0ctwo"),
    ("one\x85two", "onex85two"),
    ("\x1b[0m", IndexError),
    ([[{"a": 1}]], [[["a"]]]),
    ("one\ttwo", "one\ttwo"),
]
right = True
for value, expected in ROWS:
    try:
        seen = tomllib.loads(toml.dumps({"k": value}))["k"]
    except IndexError:
        seen = IndexError
    other = tomllib.loads(tomli_w.dumps({"k": value}))["k"]
    print(f"{value!r}: toml {seen!r}, tomli-w {other!r}")
    right &= seen == expected and other == value
sys.exit(not right)
P
