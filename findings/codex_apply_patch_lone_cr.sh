#!/bin/sh
# @openai/codex 0.171.0 (Linux, x86_64), `apply_patch`: a file of LF lines one of which holds a CR, as a log of a
# progress bar or a test's expected output does.
#
# Expected: the new line ends as the lines do that stand beside it, in LF; the other lines stay.
# Seen: the new line ends in a CR alone. For git, an editor's line numbers and Python's `open` with newline="\n" it is
# one line with the next now; as the last line the file has no LF at its end any more. The call says success.
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
for last in '' 'end\n'; do
  printf "10%%\r20%%\nold\n$last" >log.txt
  ../apply_patch '*** Begin Patch
*** Update File: log.txt
@@
-old
+new
*** End Patch'
  od -c log.txt
  printf "10%%\r20%%\nnew\r$last" | cmp - log.txt
done
