#!/bin/sh
# @openai/codex 0.171.0 (Linux, x86_64), `apply_patch`: a hunk that fits in two places, a file whose last line has no end.
#
# Expected: which of two places is meant is asked; lines that the patch does not name stay as they are.
# Seen: the first place is taken without a word, and the last line of the file gets an end, far from the change.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund @openai/codex@0.171.0 >/dev/null
# The program applies a patch where its own name is apply_patch; it needs no key and no network for that.
ln -s "$(find node_modules/@openai -path '*/bin/codex' -type f -perm -100 | head -n 1)" apply_patch
mkdir work
cd work

printf 'one\nsame\ntwo\nsame\nlast' >part.txt
../apply_patch '*** Begin Patch
*** Update File: part.txt
@@
-same
+other
*** End Patch'
printf 'one\nother\ntwo\nsame\nlast\n' | cmp - part.txt
