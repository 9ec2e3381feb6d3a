#!/bin/sh
# pytest 9.2.0 and pytest-json-report 1.5.0: a test of unittest one of whose parts (`subTest`) fails.
#
# For Python's own runner the test failed. pytest's `--lf` runs the tests that failed in the last run.
# Expected: `--lf` runs it again; its outcome in the report is "failed".
# Seen: the run ends with 1 and names it SUBFAILED, yet `--lf` leaves it out, as long as another one failed; in the
# report its outcome is "subtests passed", its call "passed", and the summary has no "failed". Who runs only the failures
# after a repair, or reads the report, believes that all is well. Where a part of pytest's own `subtests` fixture fails,
# its test is run again. pytest has subtests since 9.0; the first of the two is reported to the project, in 2026.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check pytest==9.2.0 pytest-json-report==1.5.0
cd "$folder"
cat >test_parts.py <<'T'
import unittest


class Test(unittest.TestCase):
    def test_parts(self):
        for number in (1, 2, 3):
            with self.subTest(number=number):
                self.assertNotEqual(number, 2)

    def test_whole(self):
        self.fail()


def test_fixture(subtests):
    for number in (1, 2, 3):
        with subtests.test(number=number):
            assert number != 2
T
unset PYTEST_ADDOPTS
run() { venv/bin/python -m pytest -q --tb=no "$@" || [ $? = 1 ]; }
run test_parts.py | grep -c -e ^SUBFAILED -e ^FAILED >count
run --lf --collect-only test_parts.py | grep :: >again
run --json-report --json-report-file=report.json test_parts.py::Test::test_parts >told
cat count again told
venv/bin/python - <<'P'
import json
import sys

report = json.load(open("report.json"))
(test,) = report["tests"]
again = open("again").read().split()
print(report["exitcode"], report["summary"], test["outcome"], test["call"]["outcome"])
seen = (again, report["exitcode"], test["outcome"], test["call"]["outcome"], report["summary"].get("failed"))
expected = ["test_parts.py::Test::test_whole", "test_parts.py::test_fixture"]
sys.exit(seen != (expected, 1, "subtests passed", "passed", None))
P
