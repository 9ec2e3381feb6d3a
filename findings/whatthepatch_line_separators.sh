#!/bin/sh
# whatthepatch 1.0.7, unified diffs: a line that holds U+2028 or a form feed, which git takes for characters.
#
# Expected: lines end at LF, as in the diff, or a fault.
# Seen: the patch is split at each character that `str.splitlines` knows, and the rest of such a line is dropped without
# a fault: of "one", U+2028, "three" the added line is "one".
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check whatthepatch==1.0.7
"$folder/venv/bin/python" - <<'P'
import sys

import whatthepatch

DIFF = """--- a/notes.txt
+++ b/notes.txt
@@ -1,2 +1,2 @@
 first
-one%stwo
+one%sthree
"""
wrong = 0
for name, mark in {"U+2028": "\u2028", "form feed": "\f"}.items():
    (diff,) = whatthepatch.parse_patch(DIFF % (mark, mark))
    lines = [change.line for change in diff.changes]
    print(f"{name}: {lines}")
    wrong += not any("three" in line for line in lines)
sys.exit(wrong != 2)
P
