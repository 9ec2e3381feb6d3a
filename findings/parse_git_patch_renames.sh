#!/bin/sh
# parse-git-patch 2.1.1: a file that was renamed and changed, a line of `- `, and a last line without an end.
#
# git-diff(1): a rename's extended header is followed by its hunks like any other; `\ No newline at end of file` is no
# line of a file; only what stands behind a hunk's counted lines is the mail's signature.
# Expected: per file each line that was added or taken away, with its number.
# Seen: the renamed file has no changed line at all; a removed `- ` (it reads `-- `) is left out; the line that was added
# behind `\ No newline at end of file` has a number that is one too high.
#
# Ends with 0 while that is so, else with 1. Needs git.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund parse-git-patch@2.1.1 >/dev/null
git init --quiet r
cd r
git config user.name n
git config user.email n@example.org
printf 'one\ntwo\nthree\nfour\nfive\n' >old.txt
printf 'list:\n- \nend\n' >dash.txt
printf 'one\ntwo' >noend.txt
git add .
git commit --quiet --message first
git mv old.txt new.txt
printf 'one\ntwo\nthree\nfour\nFIVE\n' >new.txt
printf 'list:\nend\n' >dash.txt
printf 'one\nTWO' >noend.txt
git add .
git commit --quiet --message second
git format-patch -1 --stdout >../the.patch
cd ..
sed -n '/^diff/,$p' the.patch
cat >look.mjs <<'J'
import { readFileSync } from "node:fs";
import read from "parse-git-patch";

const files = read.default(readFileSync("the.patch", "utf8")).files;
const lines = Object.fromEntries(files.map((file) => [file.afterName, file.modifiedLines]));
console.log(JSON.stringify(lines, null, 1));
const two = lines["noend.txt"].map((line) => `${line.added ? "+" : "-"}${line.lineNumber} ${line.line}`).join(", ");
process.exit(lines["new.txt"].length === 0 && lines["dash.txt"].length === 0 && two === "-2 two, +3 TWO" ? 0 : 1);
J
node look.mjs
