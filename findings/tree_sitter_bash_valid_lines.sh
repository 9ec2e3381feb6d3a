#!/bin/sh
# tree-sitter-bash 0.25.1: three lines that every POSIX shell and bash take.
#
# POSIX (2.7): a command may have several here-documents, `<>` opens a file for both, `<` may be quoted for `[`.
# Expected: a tree without an error, or an error for all that is not in the grammar.
# Seen: each of the three has an ERROR node, so a guard that refuses what does not parse refuses them; `sh -n` takes all.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check tree-sitter==0.26.1 tree-sitter-bash==0.25.1
"$folder/venv/bin/python" - <<'P'
import subprocess
import sys

import tree_sitter
import tree_sitter_bash

LINES = ("cat <<A - <<B\n1\nA\n2\nB\n", "exec 3<>log\n", '[ "$a" \\< "$b" ]\n', "cat <<A\n1\nA\n")
parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
told = []
for line in LINES:
    shell = subprocess.run(["sh", "-n"], input=line.encode(), check=False).returncode == 0
    told.append((shell, parser.parse(line.encode()).root_node.has_error))
    print(repr(line), told[-1])
sys.exit(told != [(True, True)] * 3 + [(True, False)])
P
