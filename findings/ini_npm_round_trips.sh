#!/bin/sh
# ini 6.0.0 (npm), which reads and writes npm's own settings: `stringify`, then `parse` of that text.
#
# Its README: `safe`, which the writer uses, turns a text into one that is safe to use as a key or value.
# Expected: the settings as they were, or a fault.
# Seen: a value with a backslash before a `;` is cut at the `;`, since the writer doubles the backslash and leaves the
# `;` bare; a key with a `=` is put in quotes, and the reader parts it at that `=` all the same.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund ini@6.0.0 >/dev/null
cat >look.mjs <<'J'
import ini from "ini";

const rows = [
  [{ pattern: "a\\;b" }, { pattern: "a\\" }],
  [{ "a=b": "c" }, { '"a': 'b"=c' }],
  [{ pattern: "a;b" }, { pattern: "a;b" }],
  [{ path: "C:\\new" }, { path: "C:\\new" }],
];
let right = true;
for (const [settings, expected] of rows) {
  const text = ini.stringify(settings);
  const seen = JSON.stringify(ini.parse(text));
  console.log(`${JSON.stringify(settings)} is written as ${text.trim()}\n  and read as ${seen}`);
  right &&= seen === JSON.stringify(expected);
}
process.exit(right ? 0 : 1);
J
node look.mjs
