#!/bin/sh
# codex-apply-patch 0.4.0 (PyPI): `generate_patch` of two texts, and `apply_patch` of what it gave to the first one.
#
# Expected: the second text, or a fault of the one that can't say it.
# Seen: the patch has the line ends of a CRLF file in it, yet the applied file has LF on every line, those that the patch
# does not name too; of two blank lines at the end one is lost; with a lone CR in a line nothing is changed. No fault.
# A tool that makes its patches and applies them with the same package changes whole files by a change of one line.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check codex-apply-patch==0.4.0
cd "$folder"
"$folder/venv/bin/python" - <<'P'
import pathlib
import sys

from codex_apply_patch import apply_patch, generate_patch

rows = [
    (b"one\r\ntwo\r\nthree\r\n", b"one\r\nTWO\r\nthree\r\n", b"one\nTWO\nthree\n"),
    (b"one\n\n\n", b"ONE\n\n\n", b"ONE\n\n"),
    (b"10%\r20%\nend\n", b"10%\r20%\nEND\n", b"10%\r20%\nend\n"),
    (b"one\ntwo\n", b"one\nTWO\n", b"one\nTWO\n"),
]
right = True
for old, new, expected in rows:
    file = pathlib.Path("a.txt")
    file.write_bytes(old)
    patch = generate_patch("a.txt", old.decode(), new.decode())
    said = apply_patch(patch)
    print(f"{patch!r}\n  said:   {said!r}\n  wanted: {new!r}\n  got:    {file.read_bytes()!r}")
    right &= file.read_bytes() == expected
sys.exit(not right)
P
