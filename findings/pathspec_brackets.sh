#!/bin/sh
# pathspec 1.1.1, `GitIgnoreSpec`: three lines of a .gitignore that git reads otherwise.
#
# Expected: as `git check-ignore`. gitignore is fnmatch with POSIX classes; only blanks at the end of a line go.
# Seen: `log[[:digit:]].txt` does not match log1.txt, `a[\\]]b` does not match a]b, and a tab at the end is taken off.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check pathspec==1.1.1
"$folder/venv/bin/python" - <<'P'
import pathlib
import subprocess
import sys
import tempfile
import warnings

from pathspec import GitIgnoreSpec

warnings.simplefilter("ignore")
told = []
for line, name in (("log[[:digit:]].txt", "log1.txt"), (r"a[\]]b", "a]b"), ("a\t", "a")):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "--quiet", folder], check=True)
        pathlib.Path(folder, ".gitignore").write_text(line + "\n")
        ask = ["git", "-C", folder, "check-ignore", "--quiet", "--no-index", "--", name]
        git = subprocess.run(ask, check=False).returncode == 0
    told.append((git, GitIgnoreSpec.from_lines([line]).match_file(name)))
    print(f"{line!r}, {name}: git, pathspec: {told[-1]}")
sys.exit(told != [(True, False), (True, False), (False, True)])
P
