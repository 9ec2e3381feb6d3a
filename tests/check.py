"""Set up a virtual environment of its own and run all that must hold: `python3 tests/check.py`.

Lint, format, types, import contracts, then every test but the deep ones, which `--deep` adds: the long
rows of kills, many more examples of each property. All words behind it go to pytest.

All of it but the installation runs with an empty home folder and an environment of its own, as on a machine
that was never used: what somebody set up by hand can't make it pass.
"""

import concurrent.futures
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-test"
SCRIPTS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")

# Tests wait half of their time, for a process or a limit: four more than processors. Each imports all.
WORKERS = str((os.cpu_count() or 1) + 4)

# Of memory, for the files of the tests: they are 300 MB.
ROOM_BYTES = 2 * 2**30

# Python compiles what it imports; pip would compile all of it.
INSTALL = (
    *("pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"),
    *("--editable", ".[test]"),
)
OTHER_SYSTEMS = tuple({"linux", "win32", "darwin"} - {sys.platform})
# All that the checks see of this machine's variables: where programs are, and what its system needs.
SEEN = (
    *("PATH", "TMPDIR", "CI", "SANDBOX_TESTS", "BROWSER_TESTS", "SCREENSHOTS"),
    *("SUDO_UID", "DEVELOPER_DIR", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP"),
    *("TMP", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432"),
)
CHECKS = (("ruff", "check", "."), ("ruff", "format", "--check", "."), ("lint-imports",))


def main() -> int:
    """Run everything, even after a failure; return 0 if all of it passed."""
    if sys.version_info < (3, 11):  # noqa: UP036  # this is how an older one finds out
        sys.stderr.write("codingagent needs Python 3.11 or newer\n")
        return 2
    if not (SCRIPTS / "python").exists() and not (SCRIPTS / "python.exe").exists():
        say(f"making a virtual environment in {ENVIRONMENT.name}/")
        venv.create(ENVIRONMENT, with_pip=True)
    wanted = f"{ROOT} {sys.version} " + (ROOT / "pyproject.toml").read_text("utf-8")
    installed = ENVIRONMENT / "installed"
    if not installed.exists() or installed.read_text("utf-8") != wanted:
        say("installing what the tests need; the first time takes a minute or two")
        # pip alone sees what the person set: which index, through which proxy.
        own = {name: os.environ[name] for name in os.environ if not name.startswith("PYTHON")}
        if run("python", "-m", *INSTALL, variables=own):
            return 1
        installed.write_text(wanted, "utf-8")
    with fast_folder() as folder, tempfile.TemporaryDirectory(prefix="home-") as home:
        variables = fresh(home)
        failed = [" ".join(check) for check in CHECKS if run(*check, variables=variables)]
        failed += tested(variables | ({} if folder is None else {"TMPDIR": folder}))
    say(f"failed: {', '.join(failed)}" if failed else "all of it passed")
    return 1 if failed else 0


def fresh(home: str) -> dict[str, str]:
    """Return the variables of a machine that was never used, with this home folder."""
    variables = {name: os.environ[name] for name in SEEN if name in os.environ}
    language = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"
    # `python3` may be a script that looks for Python in the person's home folder.
    python = Path(sys.executable).resolve().parent
    path = os.pathsep.join((str(python), variables.get("PATH", os.defpath)))
    variables |= {"HOME": home, "USERPROFILE": home, "LANG": language, "PATH": path}
    return variables | {"GIT_CONFIG_NOSYSTEM": "1"}


def tested(variables: dict[str, str]) -> list[str]:
    """Run the tests and check the types, with these variables; return what failed."""
    failed = []
    # The tests wait now and then, for a process or a limit: there is room for the types.
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        types = [beside.submit(types_for, system, variables) for system in ("", *OTHER_SYSTEMS)]
        # Each worker would compile all tests, at the same time as the others.
        if not [*(ROOT / "tests" / "__pycache__").glob("conftest*pytest*")]:
            words = [str(SCRIPTS / "pytest"), "--collect-only", "--quiet"]
            quiet = subprocess.DEVNULL
            subprocess.run(words, cwd=ROOT, env=variables, stdout=quiet, check=False)
        how = ("-n", WORKERS, "--dist", "loadgroup", *sys.argv[1:])
        if run("pytest", *how, variables=variables):
            failed.append("pytest")
    for done in (each.result() for each in types):
        say(f"{' '.join(done.args)}, which ran beside the tests")
        sys.stdout.write(done.stdout)
        if done.returncode:
            failed.append("mypy")
    return failed


def types_for(system: str, variables: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Check all types as this system has them, or the program's as another one has."""
    other = ["--platform", system, "--cache-dir", f".mypy_cache/{system}", "-p", "codingagent"]
    return subprocess.run(
        [str(SCRIPTS / "mypy"), *(other if system else ())],
        cwd=ROOT,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@contextlib.contextmanager
def fast_folder() -> Iterator[str | None]:
    """Yield a folder in memory, where tests that sync their files end sooner; None: the system's own."""
    memory = Path("/dev/shm")
    # The deep run leaves far more.
    if "--deep" in sys.argv or not memory.is_dir() or shutil.disk_usage(memory).free < ROOM_BYTES:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="t-", dir=memory) as folder:
        yield folder


def run(program: str, *arguments: str, variables: dict[str, str]) -> int:
    """Run one program of the virtual environment in the project's folder; return its exit code."""
    say(f"{program} {' '.join(arguments)}")
    done = subprocess.run([SCRIPTS / program, *arguments], cwd=ROOT, env=variables, check=False)
    return done.returncode


def say(words: str) -> None:
    sys.stdout.write(f"--- {words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
