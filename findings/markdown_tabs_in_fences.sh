#!/bin/sh
# Python-Markdown 3.11.3 (`fenced_code`) and markdown2 2.5.5 (`fenced-code-blocks`): blanks inside of code fences.
#
# CommonMark (2.2): tabs are not expanded to spaces where they are no structure.
# Expected: a Makefile's recipe keeps its tab, a line of blanks keeps its blanks.
# Seen: both expand each tab to blanks and empty the line, in code too, so that what is copied out of a page is no
# Makefile any more.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check markdown==3.11.3 markdown2==2.5.5 markdown-it-py==4.3.0
"$folder/venv/bin/python" - <<'P'
import sys

import markdown
import markdown2
from markdown_it import MarkdownIt

TEXT = "```\nall:\n\tcc -o x\n   \nend\n```\n"
pages = {
    "Python-Markdown": markdown.markdown(TEXT, extensions=["fenced_code"]),
    "markdown2": markdown2.markdown(TEXT, extras=["fenced-code-blocks"]),
    "markdown-it-py": MarkdownIt().render(TEXT),
}
for name, page in pages.items():
    print(f"{name}: {page!r}")
kept = [name for name, page in pages.items() if "\tcc" in page and "\n   \n" in page]
sys.exit(kept != ["markdown-it-py"])
P
