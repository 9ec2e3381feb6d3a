#!/bin/sh
# GitPython 3.2.1: a repository or a user with `diff.noprefix`, and one with `* text eol=lf` in .gitattributes.
#
# git-config(1): `diff.noprefix` only takes `a/` and `b/` off the names. gitattributes(5): a text file's CRLF is LF in
# the repository, however it got there.
# Expected: with patches the files that the same call names without them, and the blob that `git add` makes.
# Seen: `diff(create_patch=True)` of the folder and of the index is an empty list, without a fault: a reader believes that
# nothing changed. `index.add` stores CRLF, so that git calls the file modified as soon as it is committed, and all its
# lines are in the next difference. `diff.mnemonicPrefix` was such a case until 2026.
#
# Ends with 0 while that is so, else with 1. Needs git.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check GitPython==3.2.1
cd "$folder"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
venv/bin/python - <<'P'
import pathlib
import sys

import git

right = True
for prefix, expected in (("false", [1, 1, 1, 1]), ("true", [1, 0, 1, 0])):
    folder = pathlib.Path(f"noprefix-{prefix}")
    repository = git.Repo.init(folder)
    repository.git.config("diff.noprefix", prefix)
    path = folder / "a.txt"
    path.write_text("one\n")
    repository.index.add(["a.txt"])
    repository.index.commit("m")
    path.write_text("two\n")
    lists = [repository.index.diff(None, create_patch=patch) for patch in (False, True)]
    repository.index.add(["a.txt"])
    lists += [repository.head.commit.diff(create_patch=patch) for patch in (False, True)]
    seen = [*map(len, lists)]
    print(f"noprefix={prefix}: files of the folder, with patches, of the index, with patches: {seen}")
    right &= seen == expected

folder = pathlib.Path("attributes")
repository = git.Repo.init(folder)
(folder / ".gitattributes").write_text("* text eol=lf\n")
(folder / "a.txt").write_bytes(b"one\r\n")
blob = lambda: repository.index.entries[("a.txt", 0)].to_blob(repository).data_stream.read()
repository.index.add([".gitattributes", "a.txt"])
seen = [blob()]
repository.index.commit("m")
changed = repository.git.diff("--name-only")
repository.git.rm("--cached", "a.txt")
repository.git.add("a.txt")
repository = git.Repo(folder)
seen.append(blob())
print(f"index.add stores {seen[0]}, git add {seen[1]}; git diff after the commit: {changed!r}")
sys.exit(not (right and seen == [b"one\r\n", b"one\n"] and changed == "a.txt"))
P
