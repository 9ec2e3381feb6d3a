#!/bin/sh
# dulwich 1.2.21: the diff of a commit that changes a file's mode alone (`porcelain.diff_tree`).
#
# Expected: git's extended header, `old mode 100644` and `new mode 100755`, which `git apply` takes.
# Seen: `old file mode` and `new file mode`, words that git does not know: it finds no patch in the diff.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check dulwich==1.2.21
"$folder/venv/bin/python" - <<'P'
import io
import pathlib
import subprocess
import sys
import tempfile

from dulwich import porcelain

with tempfile.TemporaryDirectory() as folder:

    def git(*words):
        set_up = ["-c", "user.name=n", "-c", "user.email=n@example.com"]
        done = subprocess.run(["git", "-C", folder, *set_up, *words], check=True, capture_output=True, text=True)
        return done.stdout.strip().encode()

    def tree():
        git("add", "--all")
        git("commit", "--quiet", "--message=m")
        return git("rev-parse", "HEAD^{tree}")

    git("init", "--quiet")
    script = pathlib.Path(folder, "run.sh")
    script.write_text("x\n")
    script.chmod(0o644)
    before = tree()
    script.chmod(0o755)
    after = tree()
    diff = io.BytesIO()
    porcelain.diff_tree(folder, before, after, outstream=diff)
    git("checkout", "--quiet", "HEAD~1")
    applied = subprocess.run(["git", "-C", folder, "apply"], input=diff.getvalue(), capture_output=True, check=False)
print(diff.getvalue().decode(), applied.stderr.decode())
sys.exit(not (b"old file mode 100644" in diff.getvalue() and applied.returncode))
P
