#!/bin/sh
# comment-json 5.0.0 (npm) and json-five 1.1.2 (PyPI): U+2028 in a string, as text that was pasted from a page has it.
#
# RFC 8259 (section 7): of characters only quotes, the backslash and U+0000 to U+001F are escaped. JSON5 (5.2): U+2028
# and U+2029 may stand in a string, so that JSON is JSON5.
# Expected: JSON that json and JSON.parse take is taken, as by jsonc-parser 3.3.1.
# Seen: both refuse the document; comment-json says "Unexpected token ILLEGAL", line 1, whatever the file is like.
# A settings file that its own program wrote is one that no tool with these readers can change.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund comment-json@5.0.0 jsonc-parser@3.3.1 >/dev/null
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check json-five==1.1.2
cat >look.mjs <<'J'
import comments from "comment-json";
import * as jsonc from "jsonc-parser";

const text = JSON.stringify({ text: "one\u2028two" });
let told = "taken";
try {
  comments.parse(text);
} catch (fault) {
  told = fault.message;
}
const other = jsonc.parse(text).text === JSON.parse(text).text;
console.log(`comment-json: ${told}; jsonc-parser takes it: ${other}`);
process.exit(told.includes("ILLEGAL") && other && comments.parse('{"text": "one"}').text === "one" ? 0 : 1);
J
node look.mjs
venv/bin/python - <<'P'
import json
import sys

import json5

text = json.dumps({"text": "one\u2028two"}, ensure_ascii=False)
assert json.loads(text) == {"text": "one\u2028two"}
assert json5.loads('{"text": "one"}') == {"text": "one"}
try:
    json5.loads(text)
except json5.JSON5DecodeError as fault:
    print(f"json-five: {fault}")
else:
    sys.exit(1)
P
