#!/bin/sh
# aider-chat 0.86.2, its SEARCH/REPLACE blocks (`editblock_coder`): four edits as a model writes them.
#
# Its words for the model: the search part matches the file character for character; an empty one is for a new file.
# Expected: what stands between the marks is taken as it is, or a fault.
# Seen: a replace part with a heading that is underlined by five to nine `=` ends there, and the rest of it is left out of
# the file. A first line that ends with the file's name is dropped, so that such a comment is neither added nor taken
# away. A search part that is one blank line is no place: the new lines go to the end of the file. Each of the four is
# done without a word, and neither the model nor the user is told that it may not write such lines.
#
# Ends with 0 while that is so, else with 1. Needs Python 3.10, 3.11 or 3.12.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps aider-chat==0.86.2
# Only what this module imports, of the versions that aider names: the whole takes 700 MB.
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check packaging==26.0 rich==14.3.2 json5==0.13.0 \
  PyYAML==6.0.3 pillow==12.1.1 requests==2.32.5 oslex==0.1.3 mixpanel==5.0.0 posthog==7.8.6 pyperclip==1.11.0 \
  prompt_toolkit==3.0.52 pydub==0.25.1 importlib_resources==6.5.2 pathspec==1.0.4 pexpect==4.9.0 psutil==7.2.2 \
  pypandoc==1.16.2 grep-ast==0.9.0 diskcache==5.6.3 tqdm==4.67.3 diff-match-patch==20241021 beautifulsoup4==4.14.3 \
  python-dotenv==1.2.1 GitPython==3.1.46 2>/dev/null
cd "$folder"
venv/bin/python - <<'P'
import pathlib
import sys

from aider.coders.editblock_coder import do_replace, find_original_update_blocks

FENCE = ("```", "```")
ROWS = [
    ("one\nend\n", "one\n", "Title\n=======\ntwo\n", "Title\nend\n"),
    ("one\nend\n", "one\n", "# see a.txt\none\n", "one\nend\n"),
    ("# see a.txt\none\n", "# see a.txt\none\n", "one\n", "# see a.txt\none\n"),
    ("one\n\ntwo\n", "\n", "- - -\n", "one\n\ntwo\n- - -\n"),
    ("one\ntwo\n", "two\n", "TWO\n", "one\nTWO\n"),
]
path = pathlib.Path("a.txt")
right = True
for before, search, replace, expected in ROWS:
    path.write_text(before)
    answer = f"a.txt\n````\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n````\n"
    seen = before
    for _, old, new in find_original_update_blocks(answer, FENCE, ["a.txt"]):
        seen = do_replace(str(path), seen, old, new, FENCE)
    print(f"{before!r}, {search!r} by {replace!r}:\n  {seen!r}")
    right &= seen == expected
sys.exit(not right)
P
