#!/bin/sh
# langchain-text-splitters 1.1.3, `MarkdownHeaderTextSplitter`: code in a document that is cut at its headings.
#
# CommonMark (4.5): code in a fence is taken as it stands; a fence of four backticks ends at four or more.
# Expected: the lines of the chunk are lines of the document, and only headings outside of code cut it.
# Seen: each line of code loses its indentation and its tabs, so that Python does not compile and a Makefile has no
# recipe; a fence of four backticks ends at the first three inside of it, and a `# comment` behind that is a heading.
# Reported to the project since 2024; a class beside it that keeps them is called experimental.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  langchain-text-splitters==1.1.3 langchain-core==1.8.3
"$folder/venv/bin/python" - <<'P'
import sys

from langchain_text_splitters import MarkdownHeaderTextSplitter

ROWS = [
    ("```python\nif x:\n    y = 1\n```", [({"h1": "Title"}, "```python\nif x:\ny = 1\n```")]),
    ("```make\nall:\n\tcc\ta.c\n```", [({"h1": "Title"}, "```make\nall:\ncca.c\n```")]),
    (
        "````\n```\n# comment\n```\n````",
        [({"h1": "Title"}, "````\n```"), ({"h1": "comment"}, "```\n````")],
    ),
    ("```\n# comment\n```", [({"h1": "Title"}, "```\n# comment\n```")]),
]
right = True
for code, expected in ROWS:
    chunks = MarkdownHeaderTextSplitter([("#", "h1")]).split_text(f"# Title\n\n{code}\n")
    seen = [(chunk.metadata, chunk.page_content) for chunk in chunks]
    print(f"{code!r}\n  gives {seen}")
    right &= seen == expected
sys.exit(not right)
P
