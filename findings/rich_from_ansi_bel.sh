#!/bin/sh
# rich 15.0.0, `Text.from_ansi`: what `ls --hyperlink=always` of GNU coreutils writes, and a window's title.
#
# ECMA-48 ends an OSC by ST; xterm's control sequences, and all that write them since, by BEL too ("OSC ... ST or BEL").
# Expected: `a.txt` with a link, as for the same one ended by ESC \; a title is no text.
# Seen: only the ESC goes: the text is `8;;file:///a.txta.txt8;;` and `0;titletext`, without a link. A keyboard mode of
# xterm, ESC [ > 4 ; 1 m, makes the text bold. What a reader sees of a listing is not what was written.
#
# Ends with 0 while that is so, else with 1. Needs GNU ls.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check rich==15.0.0
mkdir "$folder/d"
cd "$folder/d"
: >a.txt
"$folder/venv/bin/python" - <<'P'
import subprocess
import sys

from rich.text import Text

listing = subprocess.run(["ls", "--hyperlink=always"], capture_output=True, text=True, check=True).stdout.strip()
rows = {
    "ls": listing,
    "BEL": "\x1b]8;;file:///a.txt\x07a.txt\x1b]8;;\x07",
    "ST": "\x1b]8;;file:///a.txt\x1b\\a.txt\x1b]8;;\x1b\\",
    "title": "\x1b]0;title\x07text",
    "mode": "\x1b[>4;1mtext",
}
seen = {}
for name, text in rows.items():
    read = Text.from_ansi(text)
    seen[name] = (read.plain, [str(span.style) for span in read.spans])
    print(f"{name}: {text!r}\n  {read.plain!r} {seen[name][1]}")
right = seen["ls"][0].startswith("8;;file://") and seen["ls"][0].endswith("a.txt8;;")
right &= seen["BEL"] == ("8;;file:///a.txta.txt8;;", []) and seen["title"] == ("0;titletext", [])
right &= seen["ST"] == ("a.txt", ["link file:///a.txt"])
right &= seen["mode"][0] == "text" and "bold" in seen["mode"][1][0]
sys.exit(not right)
P
