"""How many secrets are found, what is taken for one, and how fast; beside detect-secrets and CredSweeper.

`python -m tests.benchmarks.secrets [FOLDER …]` prints the tables. The folders hold other people's code;
without one it is Python's standard library. Of a folder with `.leaky-meta/secrets.csv` (leaky-repo) the
lines are counted that it calls a risk. Peers that are not installed are left out.
"""

import csv
import importlib
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from codingagent.model.patterns import words
from codingagent.secrets.detect import find_secrets
from tests.benchmarks.measuring import Figure, milliseconds
from tests.secrets import corpus

# Of each file by its number: the line and the value of each finding.
Findings = dict[int, list[tuple[int, str]]]
Texts = list[tuple[str, str]]

_LARGEST_BYTES = 2_000_000
_CODE = words(
    ".py .js .ts .go .java .c .h .rb .rs .php .cs .tsx .sh .yml .yaml .toml .ini .cfg .json .xml .md .rst",
    ".txt .html .css",
)


def ours(texts: Texts) -> Findings:
    return {
        number: [
            (text.count("\n", 0, each.start) + 1, text[each.start : each.end])
            for each in find_secrets(text, path)
        ]
        for number, (path, text) in enumerate(texts)
    }


def _written(texts: Texts, folder: Path) -> Iterator[Path]:
    """Write each text below a folder of its own, so that its name stays."""
    for number, (path, text) in enumerate(texts):
        file = folder / str(number) / (path or "message.txt")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8", errors="replace", newline="")
        yield file


def detect_secrets(texts: Texts) -> Findings:
    package = importlib.import_module("detect_secrets")
    settings = importlib.import_module("detect_secrets.settings")
    found: Findings = {}
    with tempfile.TemporaryDirectory() as name, settings.default_settings():
        for number, file in enumerate(_written(texts, Path(name))):
            collection = package.SecretsCollection()
            collection.scan_file(str(file))
            found[number] = [(each.line_number, each.secret_value or "") for _, each in collection]
    return found


def credsweeper(texts: Texts) -> Findings:
    importlib.import_module("credsweeper")
    found: Findings = {number: [] for number in range(len(texts))}
    with tempfile.TemporaryDirectory() as name:
        folder, report = Path(name) / "texts", Path(name) / "report.json"
        list(_written(texts, folder))
        line = [sys.executable, "-m", "credsweeper", "--path", str(folder), "--save-json", str(report)]
        subprocess.run(line, check=True, capture_output=True)
        for credential in json.loads(report.read_text("utf-8")) if report.exists() else []:
            for each in credential["line_data_list"]:
                number = int(Path(each["path"]).relative_to(folder).parts[0])
                found[number].append((each["line_num"], each["value"] or ""))
    return found


def shares(tool: Callable[[Texts], Findings]) -> dict[str, float]:
    """Return the share that is right of each group and half of the corpus."""
    cases = list(corpus.cases())
    texts = [(case.path, case.text) for case in cases]
    found = tool(texts)
    done: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for number, case in enumerate(cases):
        values = [value for _, value in found[number]]
        is_right = any(case.secrets[0] in value for value in values) if case.secrets else not values
        for group in (case.group, f"{case.group} {case.half}"):
            done[group] += 1
            right[group] += is_right
    return {group: 100 * right[group] / done[group] for group in sorted(done)}


def code_of(folder: Path) -> Texts:
    """Return the code of a folder; of the standard library without its tests."""
    return [
        (str(file.relative_to(folder)), file.read_text("utf-8", errors="replace"))
        for file in sorted(folder.rglob("*"))
        if file.suffix in _CODE
        and file.is_file()
        and file.stat().st_size <= _LARGEST_BYTES
        and not {"site-packages", "test", "tests", "idle_test", ".git"} & set(file.relative_to(folder).parts)
    ]


def lines_found(texts: Texts, tool: Callable[[Texts], Findings]) -> tuple[int, int, float]:
    """Return the lines with a finding, all lines, and the speed in MB/s of processor time."""
    started = sum(os.times()[:4])
    found = tool(texts)
    seconds = sum(os.times()[:4]) - started
    flagged = sum(len({line for line, _ in each}) for each in found.values())
    size = sum(len(text) for _, text in texts) / 1e6
    return flagged, sum(text.count("\n") for _, text in texts), size / seconds


def risks(folder: Path, tool: Callable[[Texts], Findings]) -> tuple[int, int]:
    """Return how many lines of leaky-repo that are a risk have a finding, and how many there are."""
    rows = (folder / ".leaky-meta" / "secrets.csv").read_text("utf-8").splitlines()
    named = [row for row in csv.reader(rows) if row and not row[0].startswith("#")]
    texts = [(row[0], (folder / row[0]).read_text("utf-8", errors="replace")) for row in named]
    found = tool(texts)
    hits = (min(int(row[1]), len({line for line, _ in found[number]})) for number, row in enumerate(named))
    return sum(hits), sum(int(row[1]) for row in named)


def speed() -> Iterator[Figure]:
    """A request of 200,000 characters: sources, and the request's own words."""
    sources = Path(__file__).resolve().parents[2] / "codingagent"
    text = "".join(file.read_text("utf-8") for file in sorted(sources.rglob("*.py")))[:200_000]
    find_secrets(text)
    # A text that was just searched is remembered: each is another.
    others = [f"{text[:-2]}\n{number}" for number in range(9)]
    figure = min(milliseconds(partial(find_secrets, each, "a.py")) for each in others)
    rate = f"{len(text) / 1000 / figure:.1f} MB/s"
    yield Figure("200,000 characters searched for secrets", f"{figure:.1f} ms", rate, figure, 40, "ms")


ALL = (speed,)
_TOOLS = {"ours": ours, "detect-secrets": detect_secrets, "CredSweeper": credsweeper}


def main() -> int:
    folders = [Path(name) for name in sys.argv[1:]] or [Path(sysconfig.get_paths()["stdlib"])]
    for name, tool in _TOOLS.items():
        try:
            right = shares(tool)
        except ImportError:
            sys.stdout.write(f"{name} is not installed here\n")
            continue
        cells = " | ".join(f"{group} {share:.2f} %" for group, share in right.items())
        sys.stdout.write(f"| {name} | {cells} |\n")
        for folder in folders:
            if (folder / ".leaky-meta").exists():
                hits, lines = risks(folder, tool)
                sys.stdout.write(f"| {name} | leaky-repo: {hits} of {lines} lines |\n")
                continue
            texts = code_of(folder)
            flagged, lines, rate = lines_found(texts, tool)
            each = f"{flagged} of {lines} lines, {flagged / lines * 10_000:.2f} in 10,000"
            sys.stdout.write(f"| {name} | {folder.name}: {each} | {rate:.2f} MB/s |\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
