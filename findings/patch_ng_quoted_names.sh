#!/bin/sh
# patch-ng 1.19.1: names outside of ASCII in the diffs that git writes by default (`core.quotePath`).
#
# git quotes such a name and writes its bytes in octal behind backslashes: "a/gr\\303\\266\\303\\237e.txt".
# Expected: the name `größe.txt`, or a fault.
# Seen: the backslashes become slashes, so that the patch is for a file in folders called 303, 266 and 303; a
# warning speaks of an invalid name, `errors` and `warnings` of the set are 0.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check patch-ng==1.19.1
"$folder/venv/bin/python" - <<'P'
import sys

import patch_ng

DIFF = br"""diff --git "a/gr\303\266\303\237e.txt" "b/gr\303\266\303\237e.txt"
index 587be6b..975fbec 100644
--- "a/gr\303\266\303\237e.txt"
+++ "b/gr\303\266\303\237e.txt"
@@ -1 +1 @@
-x
+y
"""
found = patch_ng.fromstring(DIFF)
(item,) = found.items
print(item.target, found.errors, found.warnings)
sys.exit(not (b"gr/303/266/303/237e.txt" in item.target and found.errors == found.warnings == 0))
P
