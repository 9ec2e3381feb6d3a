#!/bin/sh
# whatthepatch 1.0.7, gitdiff-parser 0.3.1, diff2html 3.4.56: what git writes behind a name with a blank.
#
# git ends `--- a/my file.txt` with a tab where the name holds a blank, so that GNU patch finds the end of the name.
# Expected: the name is `my file.txt`.
# Seen: all three give the name with the tab, and only where there is a blank: a file of that name is not there.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check whatthepatch==1.0.7
npm install --silent --no-audit --no-fund gitdiff-parser@0.3.1 diff2html@3.4.56 >/dev/null
git init --quiet work
printf 'x\n' >"work/my file.txt"
git -C work add .
printf 'y\n' >"work/my file.txt"
git -C work diff >my.diff
cat >look.mjs <<'J'
import { readFileSync } from "node:fs";
import reader from "gitdiff-parser";
import { parse } from "diff2html";

const diff = readFileSync("my.diff", "utf8");
console.log(JSON.stringify((reader.default ?? reader).parse(diff)[0].newPath));
console.log(JSON.stringify(parse(diff)[0].newName));
J
cat >look.py <<'P'
import json

import whatthepatch

(diff,) = whatthepatch.parse_patch(open("my.diff").read())
print(json.dumps(diff.header.new_path))
P
{ node look.mjs; venv/bin/python look.py; } | tee names
test "$(grep -c 'my file.txt\\t"' names)" = 3
