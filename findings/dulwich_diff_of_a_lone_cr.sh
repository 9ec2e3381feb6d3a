#!/bin/sh
# dulwich 1.2.21: the diff of a text file with a lone CR in a line, as progress lines that were recorded have.
#
# git (git-diff(1)) and POSIX diff end a line at LF; a CR is a character of its line.
# Expected: `git apply` takes the diff, as it takes git's own; dulwich applies both.
# Seen: the writer ends a line at the CR too and counts by that, but writes the CR as it is, so that the hunk has fewer
# lines than its heading says: git calls it corrupt. dulwich's `apply_patch` splits the file in the same way, so that
# neither its own diff nor git's fits the file that both were made of.
#
# Ends with 0 while that is so, else with 1. Needs git.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check dulwich==1.2.21
cd "$folder"
git init --quiet r
cd r
printf '10%%\r20%%\ndone\n' >log.txt
git add log.txt
git -c user.name=n -c user.email=n@example.org commit --quiet --message first
printf '10%%\r20%%\nDONE\n' >log.txt
git diff >../git.diff
"$folder/venv/bin/python" -c "from dulwich import porcelain; porcelain.diff('.', outstream=open('../dulwich.diff', 'wb'))"
git checkout --quiet log.txt
for writer in git dulwich; do
  echo "$writer wrote: $(grep '^@@' ../$writer.diff)"
  git apply --check ../$writer.diff 2>&1 && echo "git takes it"
done | tee ../git.says
"$folder/venv/bin/python" - <<'P' | tee ../dulwich.says
from dulwich import porcelain
from dulwich.patch import PatchApplicationFailure

for writer in ("git", "dulwich"):
    try:
        porcelain.apply_patch(".", f"../{writer}.diff", check=True)
        print(f"dulwich takes what {writer} wrote")
    except PatchApplicationFailure as fault:
        print(f"dulwich refuses what {writer} wrote: {fault}")
P
test "$(grep -c 'git takes it' ../git.says)" = 1
grep -q 'corrupt patch' ../git.says
test "$(grep -c 'refuses what' ../dulwich.says)" = 2
