#!/bin/sh
# node-html-markdown 2.0.0: a code block in a list item and in a quote, as pages of chats and issues have them.
#
# CommonMark (5.2, 5.1): code in an item is indented with it; what is in code stays as it is, blank lines too.
# Expected: after HTML has been made of the Markdown, the same code; turndown 7.2.5 gives that.
# Seen: in the item the blank lines are gone and each line has two blanks at its end; a second item that begins with
# code is taken into the first one's block. In the quote an indented line loses a blank: Python that does not run.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund turndown@7.2.5 node-html-markdown@2.0.0 markdown-it@15.0.3 >/dev/null
cat >look.mjs <<'J'
import MarkdownIt from "markdown-it";
import { NodeHtmlMarkdown } from "node-html-markdown";
import Turndown from "turndown";

const it = new MarkdownIt();
const code = (text) => it.parse(text, {}).filter((token) => token.type === "fence").map((token) => token.content);
const turndown = new Turndown({ codeBlockStyle: "fenced" });
const rows = [
  ["- item\n\n  ```py\n  def f():\n      pass\n\n  f()\n  ```\n", ["def f():  \n    pass  \nf()  \n"]],
  ["- ```\n  one\n  ```\n- ```\n  two\n  ```\n", ["", "* ```  \ntwo  \n"]],
  ["> ```\n> if:\n>     then\n> ```\n", ["if:\n   then\n\n"]],
];
let right = true;
for (const [text, expected] of rows) {
  const page = it.render(text);
  const [seen, other] = [NodeHtmlMarkdown.translate(page), turndown.turndown(page)].map(code).map((c) => JSON.stringify(c));
  const whole = JSON.stringify(code(text));
  console.log(`code:  ${whole}\n  node-html-markdown: ${seen}\n  turndown:           ${other}`);
  right &&= other === whole && seen === JSON.stringify(expected);
}
process.exit(right ? 0 : 1);
J
node look.mjs
