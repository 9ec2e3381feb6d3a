"""Sets up a virtual environment of its own and runs all that must hold: `python3 tests/check.py`.

Lint, format, types, import contracts, then every test. Words behind it go to pytest.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-test"
SCRIPTS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")

CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("lint-imports",),
)


def main() -> int:
    """Runs everything, even after a failure; gives 0 if all of it passed."""
    if sys.version_info < (3, 11):  # noqa: UP036  # this is how an older one finds out
        sys.stderr.write("codingagent needs Python 3.11 or newer\n")
        return 2
    if not (SCRIPTS / "python").exists() and not (SCRIPTS / "python.exe").exists():
        venv.create(ENVIRONMENT, with_pip=True)
    install = ["pip", "install", "--quiet", "--disable-pip-version-check", "--editable", ".[test]"]
    if run("python", "-m", *install):
        return 1
    failed = [check for check in CHECKS if run(*check)]
    # pytest last: its closing line is what one looks for.
    status = run("pytest", "-n", "auto", *sys.argv[1:])
    for check in failed:
        sys.stderr.write(f"failed before the tests: {' '.join(check)}\n")
    return 1 if failed or status else 0


def run(program: str, *arguments: str) -> int:
    """Runs one program of the virtual environment in the project's folder; gives its exit code."""
    sys.stdout.write(f"--- {program} {' '.join(arguments)}\n")
    sys.stdout.flush()
    return subprocess.run([SCRIPTS / program, *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
