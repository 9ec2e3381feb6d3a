#!/bin/sh
# yaml 2.9.1 (npm): `stringify` of a text that is a line of blanks, then `parse` of what it gave.
#
# YAML 1.2.2 (8.1.1.1): blanks of a block scalar's leading lines count for its indentation; without an indicator such a
# line is empty.
# Expected: the text as it was: with an indentation indicator, `|2+`, or in double quotes, as js-yaml 5.5.0 writes it.
# Seen: `|+` with no indicator: the blanks are read as indentation and are gone, for this reader and for js-yaml's.
# A diff's context line, a line of a table or of a test's expected output loses its blanks without a fault.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund yaml@2.9.1 js-yaml@5.5.0 >/dev/null
cat >look.mjs <<'J'
import * as other from "js-yaml";
import YAML from "yaml";

const rows = [
  ["  \n", "\n"],
  ["    \n  \n", "\n\n"],
  ["  x\n", "  x\n"],
];
let right = true;
for (const [text, expected] of rows) {
  const written = YAML.stringify({ text });
  const byOther = other.dump({ text });
  const read = [YAML.parse(written), other.load(written), YAML.parse(byOther)];
  const seen = read.map((value) => JSON.stringify(value.text));
  console.log(`${JSON.stringify(text)} is written as ${JSON.stringify(written)}`);
  console.log(`  yaml reads ${seen[0]}, js-yaml ${seen[1]}`);
  console.log(`  js-yaml writes ${JSON.stringify(byOther)}, read as ${seen[2]}`);
  right &&= seen[0] === JSON.stringify(expected) && seen[1] === seen[0] && seen[2] === JSON.stringify(text);
}
process.exit(right ? 0 : 1);
J
node look.mjs
