#!/bin/sh
# micromark 4.0.3, to HTML: code in an item of a list, directly below the item's text, as READMEs have it.
#
# CommonMark (5.2): the item's lines are read as blocks of their own, without the item's indentation.
# Expected: the code that commonmark 0.31.2 gives, and micromark with a blank line above the fence.
# Seen: all lines of the code are one: "if x:    y", and so are "one" and "two". What is copied from the page is another
# program, or none. The tree that mdast-util-from-markdown 2.1.0 makes with the same parser has the line ends. So since
# 3.2.0 at least; reported to the project in 2025.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund micromark@4.0.3 commonmark@0.31.2 mdast-util-from-markdown@2.1.0 >/dev/null
cat >look.mjs <<'J'
import { HtmlRenderer, Parser } from "commonmark";
import { fromMarkdown } from "mdast-util-from-markdown";
import { micromark } from "micromark";

const code = (html) => /<code>([^]*)<\/code>/.exec(html)[1];
const rows = [
  ["if x:\n    y\nz\n", "if x:    yz\n"],
  ["one\n\ntwo\n", "onetwo\n"],
  ["one\ntwo\n", "onetwo\n"],
  ["one\n", "one\n"],
];
let right = true;
for (const [text, expected] of rows) {
  const block = "```\n" + text + "```\n";
  const inside = (between) => `- an item\n${between}${block.replace(/^(?=.)/gm, "  ")}`;
  const seen = code(micromark(inside("")));
  const below = code(micromark(inside("\n")));
  const other = code(new HtmlRenderer().render(new Parser().parse(inside(""))));
  const tree = fromMarkdown(inside("")).children[0].children[0].children[1].value + "\n";
  console.log(`${JSON.stringify(text)} is ${JSON.stringify(seen)}`);
  right &&= seen === expected && [below, other, tree].every((each) => each === text);
}
process.exit(right ? 0 : 1);
J
node look.mjs
