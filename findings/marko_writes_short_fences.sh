#!/bin/sh
# marko 2.2.4, `MarkdownRenderer`: documents whose code fences are longer than three backticks, or tildes.
#
# CommonMark (4.5): code that holds a fence has a longer one around it, or one of the other character.
# Expected: what the renderer writes is read again as the same code, as with mdformat 1.0.0.
# Seen: each fence becomes three backticks, so that code with a fence in it is two blocks with prose between them; the
# renderer's own parser reads it so too. To format a README is to break its examples.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check marko==2.2.4 mdformat==1.0.0
"$folder/venv/bin/python" - <<'P'
import sys

import marko
import mdformat
from marko.block import FencedCode
from marko.md_renderer import MarkdownRenderer


def code(text):
    return [block.children[0].children for block in marko.parse(text).children if isinstance(block, FencedCode)]


INNER = "```sh\nmake\n```\n"
right = True
for text in (f"````md\n{INNER}````\n", f"~~~md\n{INNER}~~~\n"):
    by_marko = marko.Markdown(renderer=MarkdownRenderer)(text)
    by_mdformat = mdformat.text(text)
    print(f"{text!r}\n  marko:    {by_marko!r}\n  mdformat: {by_mdformat!r}")
    right &= code(text) == code(by_mdformat) == [INNER] and code(by_marko) == ["```sh\nmake\n", ""]
sys.exit(not right)
P
