#!/bin/sh
# codecrate 0.4.4: `pack` of a folder, then `validate-pack` and `unpack` of that pack, which nobody has touched.
#
# Its help: unpack "Reconstruct files from a packed context Markdown", validate-pack checks sums of the files' contents.
# Expected: a pack is valid for the tool that wrote it, and the files come back as they were, or a fault says which not.
# Seen: a file whose last line has no end makes the pack invalid: "pack content was edited after generation", and comes
# back with a line end. CRLF and a lone CR come back as LF, and there no sum is wrong and no word is said.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check codecrate==0.4.4
PATH=$folder/venv/bin:$PATH
cd "$folder"

mkdir ends
printf 'one = 1\r\ntwo = 2\r\n' >ends/crlf.py
printf '10%%\r20%%\ndone\n' >ends/log.txt
printf 'one = 1\n' >ends/lf.py
codecrate pack ends --include-preset everything --output ends.md >told
codecrate validate-pack ends.md
codecrate unpack ends.md --out-dir ends.out
for name in crlf.py log.txt lf.py; do cmp "ends/$name" "ends.out/$name" || echo "$name" >>changed; done
test "$(tr '\n' ' ' <changed)" = 'crlf.py log.txt '

mkdir open
printf 'one = 1' >open/open.py
codecrate pack open --include-preset everything --output open.md >told
codecrate validate-pack open.md >told 2>&1 && exit 1
cat told
grep -q 'pack content was edited after generation' told
codecrate unpack open.md --out-dir open.out
printf 'one = 1\n' | cmp - open.out/open.py
