#!/bin/sh
# marko 2.2.4: a form feed in a fenced code block, as old C and Emacs Lisp have between their sections.
#
# CommonMark (2.1): a line ends at LF, CR or CRLF; a form feed is a character.
# Expected: the character stays, as in markdown-it-py and mistune.
# Seen: it is a line end: the code has one line more, and the character is gone.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check marko==2.2.4 markdown-it-py==4.3.0
"$folder/venv/bin/python" - <<'P'
import sys

import marko
from markdown_it import MarkdownIt

TEXT = "```\none\ftwo\n```\n"
print(repr(marko.convert(TEXT)), repr(MarkdownIt().render(TEXT)))
sys.exit(not ("one\ntwo" in marko.convert(TEXT) and "one\ftwo" in MarkdownIt().render(TEXT)))
P
