#!/bin/sh
# jupytext 1.19.6: notebooks as text (`py:percent`, `py:light`) and back, in memory, without an edit.
#
# Its documentation: the text formats hold all inputs of the cells, and only the outputs are kept apart.
# Expected: the cells as they were, or a fault. Python's lines end at LF, CR or CRLF (language reference, 2.1.2).
# Seen: a `%%writefile` cell whose file has a `# %%` line comes back as two cells; a text cell `+++` is gone in light
# form, and the code behind it begins with a blank line; U+2028 in a string becomes a line end: code that ran before
# is a fault of syntax now.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check jupytext==1.19.6
"$folder/venv/bin/python" - <<'P'
import sys

import jupytext
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
ROWS = [
    ("py:percent", new_code_cell("%%writefile a\nx = 1\n# %%\ny = 2"), ["%%writefile a\nx = 1", "y = 2", "last = 1"]),
    ("py:light", new_markdown_cell("+++"), ["\nlast = 1"]),
    ("py:percent", new_code_cell('s = "one\u2028two"'), ['s = "one\ntwo"', "last = 1"]),
    ("py:percent", new_code_cell("x = 1\n\n\ny = 2"), ["x = 1\n\n\ny = 2", "last = 1"]),
]
right = True
for kind, cell, expected in ROWS:
    cells = [new_code_cell("first = 1"), cell, new_code_cell("last = 1")]
    text = jupytext.writes(new_notebook(cells=cells, metadata=KERNEL), kind)
    seen = [back.source for back in jupytext.reads(text, kind).cells]
    print(f"{kind} {cell.cell_type} {cell.source!r}\n  comes back as {seen[1:]!r}")
    right &= seen == ["first = 1", *expected]
sys.exit(not right)
P
