#!/bin/sh
# gitignore_parser 0.1.13 (PyPI), which tools that pack a repository for a model read .gitignore with.
#
# Expected: as `git check-ignore`, by gitignore(5): `\` takes the meaning off any character, blanks at a line's end go,
# `[^b]` is `[!b]`, POSIX classes, and a file below an ignored folder is not brought back.
# Seen: `foo\*` does not match `foo*`, `a ` not `a`, `a[^b]c` matches `abc` and not `axc`, `[[:digit:]]*` not `1a`, and
# `!d/f` behind `d/` brings `d/f` back.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check gitignore_parser==0.1.13
cd "$folder"
venv/bin/python -W ignore - <<'P'
import pathlib
import subprocess
import sys
import tempfile

from gitignore_parser import parse_gitignore

CASES = (
    *((r"foo\*", "foo*"), ("a ", "a"), ("a[^b]c", "axc"), ("a[^b]c", "abc"), ("[[:digit:]]*", "1a")),
    *(("d/\n!d/f", "d/f"), ("*.o", "a.o"), ("a[!b]c", "axc")),  # the last two as git has them
)
seen = []
for rules, path in CASES:
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name).resolve()
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).touch()
        (root / ".gitignore").write_text(f"{rules}\n")
        subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
        words = ["git", "check-ignore", "--quiet", "--", path]
        by_git = subprocess.run(words, cwd=root, check=False).returncode == 0
        by_parser = parse_gitignore(root / ".gitignore")(root / path)
    print(f"{rules!r} {path!r}: git {by_git}, gitignore_parser {by_parser}")
    seen.append(by_git == by_parser)
sys.exit(seen != [False] * 6 + [True] * 2)
P
