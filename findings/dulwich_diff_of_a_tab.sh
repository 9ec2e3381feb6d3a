#!/bin/sh
# dulwich 1.2.21: the diff of a file whose name holds a tab.
#
# Expected: as git-diff(1) says of "unusual" characters, the name in double quotes, with the tab as \t.
# Seen: the tab as it is. The name then ends there for whoever reads the diff, since GNU diff and git part a
# name from its date by a tab: `git apply` looks for a file of the first half of the name.
#
# Ends with 0 while that is so, else with 1. Needs git.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check dulwich==1.2.21
mkdir "$folder/r"
cd "$folder/r"
"$folder/venv/bin/python" - > ../dulwich.diff <<'P'
import sys
from pathlib import Path

from dulwich import porcelain
from dulwich.repo import Repo

repository = Repo.init(".")
told = {"author": b"a <a@example.org>", "committer": b"a <a@example.org>"}
trees = []
for text in ("one\n", "two\n"):
    Path("left\tright").write_text(text)
    porcelain.add(".", ["left\tright"])
    trees.append(repository[porcelain.commit(".", message=b"m", **told)].tree)
porcelain.diff_tree(".", *trees, outstream=sys.stdout.buffer)
P
git diff HEAD~1 HEAD > ../git.diff
git checkout --quiet --detach HEAD~1
head -n 1 ../git.diff ../dulwich.diff
git apply --check ../git.diff
if git apply --check ../dulwich.diff 2> ../said; then exit 1; fi
cat ../said
grep -q 'left: No such file' ../said
