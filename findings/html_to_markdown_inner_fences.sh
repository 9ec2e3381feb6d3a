#!/bin/sh
# markdownify 1.2.3, html2text 2025.4.15 (`backquote_code_style`), node-html-markdown 2.0.0: code that holds a code
# fence, as a page of a chat that shows a README has it.
#
# CommonMark (4.5): a fence of code that has a line of three backticks must be longer than that.
# Expected: the same code after Markdown is made of the page, as turndown 7.2.5 does with four backticks.
# Seen: all three write three backticks around it, so that the code ends at its own first fence, and what follows is
# prose and a second block. What was one file is cut into pieces without a fault.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund turndown@7.2.5 node-html-markdown@2.0.0 >/dev/null
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  markdownify==1.2.3 html2text==2025.4.15 markdown-it-py==4.3.0
cat >look.mjs <<'J'
import { readFileSync } from "node:fs";
import { NodeHtmlMarkdown } from "node-html-markdown";
import Turndown from "turndown";

const page = readFileSync(0, "utf8");
const turndown = new Turndown({ codeBlockStyle: "fenced" }).turndown(page);
process.stdout.write(JSON.stringify({ turndown, "node-html-markdown": NodeHtmlMarkdown.translate(page) }));
J
venv/bin/python - <<'P'
import json
import subprocess
import sys

import html2text
import markdownify
from markdown_it import MarkdownIt

CODE = "# How to\n\n```sh\nmake\n```\n\nThat is all.\n"
page = MarkdownIt().render(f"````md\n{CODE}````\n")
texts = json.loads(subprocess.run(["node", "look.mjs"], input=page, capture_output=True, text=True, check=True).stdout)
texts["markdownify"] = markdownify.markdownify(page)
writer = html2text.HTML2Text()
writer.backquote_code_style = True
texts["html2text"] = writer.handle(page)
kept = {}
for name, text in texts.items():
    blocks = [token.content for token in MarkdownIt().parse(text) if token.type == "fence"]
    kept[name] = CODE in blocks
    print(f"{name}: {len(blocks)} code blocks of one: {blocks}")
sys.exit(kept != {"turndown": True, "node-html-markdown": False, "markdownify": False, "html2text": False})
P
