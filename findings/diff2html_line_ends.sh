#!/bin/sh
# diff2html 3.4.56: a change of line ends alone (CRLF to LF), as `git diff` writes it.
#
# Expected: the two lines differ, or the page says what changed.
# Seen: the CR is dropped, so that the removed and the added line are the same text, and nothing tells why.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund diff2html@3.4.56 >/dev/null
cat >look.mjs <<'J'
import { parse } from "diff2html";

const [file] = parse(`diff --git a/run.bat b/run.bat
index b02a2b9..2d1d8a0 100644
--- a/run.bat
+++ b/run.bat
@@ -1 +1 @@
-echo on\r
+echo on
`);
const lines = file.blocks[0].lines.map((line) => [line.type, line.content.slice(1)]);
console.log(lines);
process.exit(lines.length === 2 && lines[0][1] === lines[1][1] ? 0 : 1);
J
node look.mjs
