#!/bin/sh
# @openai/codex 0.171.0 (Linux, x86_64), `apply_patch`: a hunk that fits in two places, a file whose last line has no end,
# and names that are taken already.
#
# Expected: which of two places is meant is asked; lines that the patch does not name stay as they are; "Add File" and
# "Move to" of a name that is taken are faults; a patch of two files is done as a whole or not.
# Seen: the first place is taken without a word, and the last line of the file gets an end, far from the change. Both
# headings replace the file that is there and say success. Where the second file's lines are not found, the first file
# is changed all the same, and the message does not say so.
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

printf 'kept\n' >a.txt
../apply_patch '*** Begin Patch
*** Add File: a.txt
+new
*** End Patch'
printf 'new\n' | cmp - a.txt
printf 'kept\n' >b.txt
../apply_patch '*** Begin Patch
*** Update File: a.txt
*** Move to: b.txt
@@
-new
+moved
*** End Patch'
printf 'moved\n' | cmp - b.txt
printf 'one\n' >c.txt
../apply_patch '*** Begin Patch
*** Update File: c.txt
@@
-one
+ONE
*** Update File: b.txt
@@
-not there
+two
*** End Patch' >told 2>&1 && exit 1
cat told
printf 'ONE\n' | cmp - c.txt
! grep -q 'c\.txt' told
