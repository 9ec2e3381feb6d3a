#!/bin/sh
# pyte 0.8.2 (PyPI), ansi_up 6.0.6, anser 2.3.5 and ansi-to-html 0.7.2 (npm): colours and underlines whose parts are
# parted by colons, as newer programs write them.
#
# ECMA-48 (5.4.2): a colon parts what is in one parameter. ITU-T T.416 (13.1.8): `38:2::255:0:0` is a colour; xterm and
# most terminals take it, and `4:3`, a wavy underline.
# Expected: only "red" and "word" as text, in a colour or without one, as ansi2html 1.9.5 gives.
# Seen: all four show a part of the code as text, "2::255:0:0mred" or the like. What a reader sees of a program's output,
# or a model is told of it, is not what was written. With semicolons all are right.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund ansi_up@6.0.6 anser@2.3.5 ansi-to-html@0.7.2 >/dev/null
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pyte==0.8.2 ansi2html==1.9.5
cat >look.mjs <<'J'
import { AnsiUp } from "ansi_up";
import Anser from "anser";
import Convert from "ansi-to-html";

const text = process.argv[2];
const plain = (html) => JSON.stringify(html.replace(/<[^>]*>/g, ""));
console.log("ansi_up", plain(new AnsiUp().ansi_to_html(text)));
console.log("anser", plain(Anser.ansiToHtml(text)));
console.log("ansi-to-html", plain(new Convert().toHtml(text)));
J
cat >look.py <<'P'
import json
import re
import sys

import pyte
from ansi2html import Ansi2HTMLConverter

screen = pyte.Screen(40, 1)
pyte.Stream(screen).feed(sys.argv[1])
print("pyte", json.dumps(screen.display[0].rstrip()))
page = Ansi2HTMLConverter(inline=True).convert(sys.argv[1], full=False)
print("ansi2html", json.dumps(re.sub("<[^>]*>", "", page)))
P
escape=$(printf '\033')
for text in "$escape[38:2::255:0:0mred$escape[0m" "$escape[4:3mword$escape[0m" "$escape[38;2;255;0;0mred$escape[0m"; do
  node look.mjs "$text"
  venv/bin/python look.py "$text"
done | tee seen
cat >expected <<'T'
ansi_up "[38:2::255:0:0mred"
anser "38:2::255:0:0mred"
ansi-to-html ":2::255:0:0mred"
pyte "2::255:0:0mred"
ansi2html "red"
ansi_up "[4:3mword"
anser "4:3mword"
ansi-to-html ":3mword"
pyte "3mword"
ansi2html "word"
ansi_up "red"
anser "red"
ansi-to-html "red"
pyte "red"
ansi2html "red"
T
cmp seen expected
