#!/bin/sh
# trafilatura 2.3.1, which tools that read pages for a model take the text out with: code on a page.
#
# HTML (4.4.3): what is in `pre` is text that stands as it is typed.
# Expected: the code as it is, in a fence where the output is Markdown; its own XML has the lines of `<pre><code>`.
# Seen: in Markdown and in plain text the blank lines of code are gone. `<pre>` without `<code>`, as for a Makefile, has
# no fence in Markdown; in XML it is a quotation, on one line. Code in a list's item begins behind the item's words, so
# that its fence is none. What a model is shown of a page is other code.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check trafilatura==2.3.1 lxml==6.1.3 \
  lxml_html_clean==0.4.6 jusText==3.0.2
"$folder/venv/bin/python" - <<'P'
import re
import sys

import trafilatura

WORDS = "These are words that a reader finds on the page, beside the code. " * 5
ROWS = [
    ("<pre><code>a = 1\n\nb = 2\n</code></pre>", "txt", "a = 1\nb = 2"),
    ("<pre><code>a = 1\n\nb = 2\n</code></pre>", "markdown", "```\na = 1\nb = 2\n```"),
    ("<pre><code>a = 1\n\nb = 2\n</code></pre>", "xml", "<code>a = 1\n\nb = 2\n</code>"),
    ("<pre>all:\n\tcc a.c\n</pre>", "markdown", "all:\n\tcc a.c"),
    ("<pre>all:\n\tcc a.c\n</pre>", "xml", "<quote>all: cc a.c </quote>"),
    ("<ul><li>One:<pre><code>a = 1\n</code></pre></li></ul>", "markdown", "- One:```\na = 1\n```"),
]
right = True
for block, kind, expected in ROWS:
    inside = f"<h1>Title</h1><p>{WORDS}Here it begins.</p>{block}<p>Here it ends. {WORDS}</p>"
    text = trafilatura.extract(f"<html><body><article>{inside}</article></body></html>", output_format=kind)
    seen = text.partition("Here it begins.")[2].partition("Here it ends.")[0]
    seen = re.sub("</?p>", "", seen).strip()
    print(f"{block!r} as {kind}: {seen!r}")
    right &= seen == expected
sys.exit(not right)
P
