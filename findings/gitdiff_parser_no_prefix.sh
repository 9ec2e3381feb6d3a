#!/bin/sh
# gitdiff-parser 0.3.1, git diffs without prefixes (`diff.noprefix`, `git diff --no-prefix`).
#
# Expected: the name as it stands, or a fault.
# Seen: the first two characters of each name are cut off, whatever they are: `setup.py` is `tup.py`.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund gitdiff-parser@0.3.1 >/dev/null
cat >look.mjs <<'J'
import reader from "gitdiff-parser";

const diff = `diff --git setup.py setup.py
index 587be6b..975fbec 100644
--- setup.py
+++ setup.py
@@ -1 +1 @@
-x
+y
`;
const [file] = (reader.default ?? reader).parse(diff);
console.log(file.oldPath, file.newPath);
process.exit(file.newPath === "tup.py" ? 0 : 1);
J
node look.mjs
