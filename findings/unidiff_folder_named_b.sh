#!/bin/sh
# unidiff 1.0.1, git diffs: a path with " b/" in it, as a folder called `part b` gives.
#
# Expected: one file, `part b/x.txt`; git and GNU patch read it by the `---` and `+++` lines.
# Seen: the whole set is refused ("Target without source"), although the lines with both names are there. A name
# with a blank elsewhere is read.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check unidiff==1.0.1
"$folder/venv/bin/python" - <<'P'
import sys

import unidiff

DIFF = """diff --git a/%(name)s b/%(name)s
index 587be6b..975fbec 100644
--- a/%(name)s\t
+++ b/%(name)s\t
@@ -1 +1 @@
-x
+y
"""
told = {}
for name in ("part c/x.txt", "part b/x.txt"):
    try:
        told[name] = [file.path for file in unidiff.PatchSet(DIFF % {"name": name})]
    except unidiff.UnidiffParseError as fault:
        told[name] = str(fault).strip()
    print(f"{name}: {told[name]}")
sys.exit(not (told["part c/x.txt"] == ["part c/x.txt"] and "Target without source" in told["part b/x.txt"]))
P
