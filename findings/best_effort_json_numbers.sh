#!/bin/sh
# best-effort-json-parser 1.5.1: a number with an exponent in a JSON answer that is not at its end yet.
#
# RFC 8259 (section 6): 2.5e3 is a number. The package is for JSON as it streams in.
# Expected: the values so far, as jsonrepair 3.15.0 gives them: {"seconds":2500,"path":"a.txt"}.
# Seen: the number ends before its exponent, and the rest of it becomes a member with the name of the next one in its
# own: {"seconds":2.5,"e3, \"path\"":"a.txt"}. No fault; once the brace is there, the whole is right.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund best-effort-json-parser@1.5.1 jsonrepair@3.15.0 >/dev/null
cat >look.mjs <<'J'
import parser from "best-effort-json-parser";
import { jsonrepair } from "jsonrepair";

const soFar = '{"seconds": 2.5e3, "path": "a.txt"';
const seen = JSON.stringify(parser.parse(soFar));
const other = JSON.stringify(JSON.parse(jsonrepair(soFar)));
const whole = JSON.stringify(parser.parse(soFar + "}"));
console.log(`${soFar}\n  best-effort: ${seen}\n  jsonrepair:  ${other}\n  with a brace: ${whole}`);
const right = '{"seconds":2500,"path":"a.txt"}';
process.exit(seen === '{"seconds":2.5,"e3, \\"path\\"":"a.txt"}' && other === right && whole === right ? 0 : 1);
J
node look.mjs
