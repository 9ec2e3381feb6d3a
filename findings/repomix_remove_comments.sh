#!/bin/sh
# repomix 1.14.0, `--remove-comments`: files whose code holds the marks of comments, in texts, patterns and names.
#
# Its README: the removal is "conservative to avoid accidentally removing code"; some comments may be left.
# Expected: the code stays, and what it does; a text or pattern is no comment.
# Seen: of a JavaScript file all lines from a pattern with `/*` in it to the next `*/` are gone, code in between too; an
# f-string of Python is cut at its `#`, so are `${name#prefix}` of a shell and the text under a `|` of YAML; `url(//…)` of
# CSS is cut, and an attribute of PHP, `#[…]`, is dropped. The pack has no word of it: a model is shown a program that
# does not run, and writes edits by lines that are not in the files.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund repomix@1.14.0 >/dev/null
mkdir files
printf '%s\n' 'const mark = /[/*]x/;' 'save(mark);' 'const all = "**/*.js";' >files/a.js
printf '%s\n' 'name = f"{part}#{number}"' 'print(name)' >files/b.py
printf '%s\n' 'short=${name#prefix}' 'echo "$short"' >files/c.sh
printf '%s\n' 'a:' '  - |' '    make #all' '  - two' >files/d.yaml
printf '%s\n' 'a { background: url(//cdn.example.org/x.png); }' 'b { color: red; }' >files/e.css
printf '%s\n' '<?php' '#[Route("/a")]' 'class A {}' >files/f.php
printf '%s\n' 'const site = "http://example.org"; // a comment' >files/g.js
for option in --no-file-summary --remove-comments; do
  node_modules/.bin/repomix files --no-file-summary $option --style json -o $option.json >told
done
cat >look.mjs <<'J'
import fs from "node:fs";

const read = (option) => JSON.parse(fs.readFileSync(`./${option}.json`, "utf8")).files;
const whole = read("--no-file-summary");
const seen = read("--remove-comments");
const expected = {
  "a.js": "const mark = /[\n\n*.js\";",
  "b.py": 'name = f"{part}\nprint(name)',
  "c.sh": 'short=${name\necho "$short"',
  "d.yaml": "a:\n  - |\n    make\n  - two",
  "e.css": "a { background: url(\nb { color: red; }",
  "f.php": "<?php\n\nclass A {}",
  "g.js": 'const site = "http://example.org";',
};
let right = Object.keys(whole).length === Object.keys(expected).length;
for (const [name, text] of Object.entries(expected)) {
  console.log(`${name}: ${JSON.stringify(whole[name])}\n  ${JSON.stringify(seen[name])}`);
  right &&= seen[name] === text;
}
process.exit(right ? 0 : 1);
J
node look.mjs
