#!/bin/sh
# repomix 1.14.0, Markdown and XML: files that begin with a blank line or an indented line, or end in blank lines.
#
# Expected: the contents as they are: models write search-and-replace edits and line numbers by them.
# Seen: blank lines and the first line's indentation are cut off, as are blank lines at the end, without an option that
# asks for it, so that all line numbers of such a file are smaller than on disk.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund repomix@1.14.0 >/dev/null
mkdir work
printf '\n\n    four blanks\nlast\n\n\n' >work/part.txt
for style in markdown xml; do
    node_modules/.bin/repomix --style "$style" --output "$folder/$style" --quiet work >/dev/null
    grep -n -B1 -A2 'four blanks' "$style"
    grep -q '^four blanks$' "$style"
done
