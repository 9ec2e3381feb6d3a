#!/bin/sh
# diff2html 3.4.56, diff 9.0.0 (jsdiff), parse-diff 0.12.0: git diffs without prefixes (`diff.noprefix`), and a file
# that has no hunk: an empty new file, a change of the mode alone.
#
# Expected: two files with their names, as with prefixes.
# Seen: diff2html gives no file at all, jsdiff and parse-diff give files without a name. With prefixes all three name both.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund diff@9.0.0 parse-diff@0.12.0 diff2html@3.4.56 >/dev/null
cat >look.mjs <<'J'
import { parsePatch } from "diff";
import parseDiff from "parse-diff";
import { parse } from "diff2html";

const diff = (a, b) => `diff --git ${a}empty.py ${b}empty.py
new file mode 100644
index 0000000..e69de29
diff --git ${a}run.sh ${b}run.sh
old mode 100644
new mode 100755
`;
const names = (text) => ({
  diff2html: parse(text).map((file) => file.newName),
  jsdiff: parsePatch(text).map((file) => file.newFileName),
  "parse-diff": parseDiff(text).map((file) => file.to),
});
const plain = names(diff("a/", "b/"));
const bare = names(diff("", ""));
console.log("with prefixes", plain);
console.log("without", bare);
const named = (found) => Object.values(found).map((all) => all.filter(Boolean).length).join();
process.exit(named(plain) === "2,2,2" && named(bare) === "0,0,0" ? 0 : 1);
J
node look.mjs
