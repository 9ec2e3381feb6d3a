"""Commits of any repository as diffs in a chat answer, ours beside `git apply`: how many come out right.

`python -m tests.benchmarks.commits PATH... [--count 200]` takes commits from git repositories, evenly spread
over their history, and shows each as a model would: as it is, with wrong numbers in its hunks' headers,
with the blanks at line ends stripped, with one line of context, and with tabs shown as blanks. Ours reads
the answer and changes the parent's whole tree; git gets the same text without its fence.
"""

import argparse
import io
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.protocols.foreign.doing import do, files_in

Files = Mapping[str, bytes]

# A longer one is no answer of a chat.
LONGEST_CHARACTERS = 100_000
_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_KINDS = ("right", "as it came", "asked", "partly asked", "wrong", "silent")
_GITS = ((), ("--recount",), ("--recount", "--ignore-whitespace"))


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: its parent's tree, what it makes of the files that it changes, and how it is shown."""

    name: str
    repository: Path
    before: Files
    changed: Mapping[str, bytes | None]

    def diff(self, *options: str) -> str:
        """Return what `git diff` shows of it."""
        words = ("diff", "--no-renames", "--no-color", *options, f"{self.name}^", self.name)
        return _git(self.repository, *words).decode()

    @property
    def after(self) -> Files:
        return {n: d for n, d in {**self.before, **self.changed}.items() if d is not None}


@dataclass(frozen=True, slots=True)
class Variant:
    """How a commit is shown: the options of `git diff`, and what becomes of each of its lines.

    `lost` makes an added line what nobody can know to be more, given the file that it is added to.
    """

    name: str
    options: tuple[str, ...] = ()
    change: Callable[[str, random.Random], str] = lambda diff, _: diff
    lost: Callable[[str, str], str] = lambda line, _: line


def _renumbered(diff: str, chance: random.Random) -> str:
    """Put wrong line numbers and wrong counts into the headers of hunks that are of no new file."""

    def wrong(found: re.Match[str]) -> str:
        old, old_count, new, new_count = (int(number or 1) for number in found.groups())
        if not old or not new:
            return f"@@ -{old},{old_count} +{new},{max(new_count + chance.choice((-2, -1, 1, 2)), 1)} @@"
        off = chance.choice((-9, -4, -2, -1, 1, 2, 5, 12))
        counts = (max(count + chance.choice((-2, -1, 1, 2)), 1) for count in (old_count, new_count))
        return f"@@ -{max(old + off, 1)},{next(counts)} +{max(new + off, 1)},{next(counts)} @@"

    return "\n".join(
        _HEADER.sub(wrong, line) if line.startswith("@@ ") else line for line in diff.split("\n")
    )


def _stripped(diff: str, _: random.Random) -> str:
    return "\n".join(line.rstrip(" \t") for line in diff.split("\n"))


def _without_tabs(diff: str, _: random.Random) -> str:
    return diff.replace("\t", "    ")


def as_tabs_are_lost(line: str, old: str) -> str:
    """Nothing tells of lost tabs in a file that is indented by blanks, or new."""
    by_tabs, by_blanks = (old.count(f"\n{lead}") for lead in ("\t", "  "))
    return line if by_tabs > by_blanks else line.replace("\t", "    ")


VARIANTS = (
    Variant("clean"),
    Variant("wrong numbers", change=_renumbered),
    Variant("blanks stripped", change=_stripped, lost=lambda line, _: line.rstrip(" \t")),
    Variant("one line of context", ("-U1",)),
    Variant("tabs as blanks", change=_without_tabs, lost=as_tabs_are_lost),
)


# --- commits ---------------------------------------------------------------------------------------


def commits(repository: Path, count: int) -> Iterator[Commit]:
    """Yield commits that change text alone, evenly spread; the next one where one does more than that."""
    names = _git(repository, "rev-list", "--no-merges", "--min-parents=1", "HEAD").decode().split()
    at = 0
    for number in range(count):
        at = max(at, number * len(names) // count)
        while at < len(names):
            commit = _commit(repository, names[at])
            at += 1
            if commit is not None:
                yield commit
                break


def _commit(repository: Path, name: str) -> Commit | None:
    told = _git(repository, "diff-tree", "-r", "-z", "--no-renames", f"{name}^", name).split(b"\0")
    changed: dict[str, bytes | None] = {}
    for about, path in zip(told[:-1:2], told[1::2], strict=True):
        old, new, *_, kind = about.decode().lstrip(":").split()
        if kind not in "AMD" or (kind == "M" and old != new) or {old, new} - {"100644", "100755", "000000"}:
            return None
        new_text = None if kind == "D" else _git(repository, "show", f"{name}:{path.decode()}")
        changed[path.decode()] = new_text
    before = _tree(repository, f"{name}^")
    texts = [text for path, new in changed.items() for text in (before.get(path), new) if text is not None]
    commit = Commit(name, repository, before, changed)
    if not texts or any(not _is_text(text) for text in texts) or len(commit.diff()) > LONGEST_CHARACTERS:
        return None
    return commit


def _is_text(data: bytes) -> bool:
    try:
        return b"\0" not in data and data.decode() is not None
    except UnicodeDecodeError:
        return False


def _tree(repository: Path, name: str) -> dict[str, bytes]:
    """Return the files of a tree; `git archive` would leave some of them out."""
    listed = _git(repository, "ls-tree", "-r", "-z", name).decode().split("\0")[:-1]
    rows = [row.partition("\t") for row in listed]
    blobs = {path: about.split()[2] for about, _, path in rows if about.startswith("100")}
    asked = "".join(f"{blob}\n" for blob in blobs.values()).encode()
    given = io.BytesIO(_git(repository, "cat-file", "--batch", given=asked))
    tree = {}
    for path in blobs:
        tree[path] = given.read(int(given.readline().split()[2]))
        given.read(1)
    return tree


def _git(repository: Path, *words: str, given: bytes = b"") -> bytes:
    command = ["git", "-C", str(repository), *words]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


# --- what comes of it ------------------------------------------------------------------------------


def judge(commit: Commit, lost: Files, files: Files, *, is_asked: bool) -> str:
    """Return what came of a commit, by the files there are now and those that what is left can make."""
    after = commit.after
    states: Counter[str] = Counter()
    for name in {*commit.before, *after, *files}:
        now, old = files.get(name), commit.before.get(name)
        if now == after.get(name):
            states["right"] += name in commit.changed
        elif now == old:
            states["missing"] += 1
        elif now == lost.get(name):
            states["as it came"] += 1
        else:
            return "wrong"
    if not states["missing"]:
        return "as it came" if states["as it came"] else "right"
    if not is_asked:
        return "silent"
    return "partly asked" if states["right"] or states["as it came"] else "asked"


def _lost(commit: Commit, variant: Variant) -> Files:
    """Return what a commit makes if its added lines are what is left of them, and all else is as it is."""
    lines = commit.diff().split("\n")
    old = ""
    for at, line in enumerate(lines):
        if line.startswith("+++ "):
            old = commit.before.get(line[len("+++ b/") :], b"").decode()
        elif line.startswith("+"):
            lines[at] = variant.lost(line, old)
    return _applied(commit, "\n".join(lines), ())[0]


def by_us(commit: Commit, diff: str) -> tuple[Files, Sequence[str]]:
    """Return the files that come of a diff as an answer, and what it is told."""
    with tempfile.TemporaryDirectory() as folder:
        done = do(f"Here is the change:\n\n```diff\n{diff}```\n", commit.before, Path(folder))
    return done.files, done.failures


def _applied(commit: Commit, diff: str, options: Sequence[str]) -> tuple[Files, bool]:
    """Return the files that `git apply` makes of a diff in a folder of no repository, and whether it does."""
    touched = [name for name in commit.changed if name in commit.before]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in touched:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(commit.before[name])
        done = subprocess.run(
            ["git", "apply", *options, "-"],
            cwd=root,
            input=diff.encode(),
            capture_output=True,
            check=False,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(root.parent)},
        )
        rest = {name: data for name, data in commit.before.items() if name not in touched}
        return {**rest, **files_in(root)}, done.returncode == 0


def main() -> int:
    """Print the table, and each commit that came out wrong or silent; with -v each that is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("-v", action="store_true")
    given = parser.parse_args()
    ours: dict[str, Counter[str]] = {variant.name: Counter() for variant in VARIANTS}
    gits = {(variant.name, each): Counter[str]() for variant in VARIANTS for each in _GITS}
    told = []
    for number, path in enumerate(given.paths):
        share = given.count * (number + 1) // len(given.paths) - given.count * number // len(given.paths)
        for commit in commits(path, share):
            plain = commit.diff()
            for variant in VARIANTS:
                chance = random.Random(commit.name)
                diff = variant.change(commit.diff(*variant.options), chance)
                if diff == plain and variant.name != "clean":
                    continue
                lost = _lost(commit, variant)
                files, why = by_us(commit, diff)
                came = judge(commit, lost, files, is_asked=bool(why))
                ours[variant.name][came] += 1
                if came in ("wrong", "silent") or (given.v and came not in ("right", "as it came")):
                    told.append(f"{came}: {path} {commit.name[:12]}, {variant.name}: {'; '.join(why)}\n")
                for each in _GITS:
                    files, is_done = _applied(commit, diff, each)
                    gits[variant.name, each][judge(commit, lost, files, is_asked=not is_done)] += 1
    names = "".join(f" {' '.join(('apply', *each))} |" for each in _GITS)
    sys.stdout.write(f"| shown | commits | {' | '.join(_KINDS)} |{names}\n")
    sys.stdout.write("|" + "---|" * (len(_KINDS) + 2 + len(_GITS)) + "\n")
    for name, count in ours.items():
        cells = [name, str(count.total()), *(str(count[kind]) for kind in _KINDS)]
        for each in _GITS:
            by = gits[name, each]
            wrong = by["wrong"] + by["silent"]
            cells.append(f"{by['right'] + by['as it came']}" + (f", {wrong} wrong" if wrong else ""))
        sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.write("".join(told))
    return int(any(count["wrong"] or count["silent"] for count in ours.values()))


if __name__ == "__main__":
    sys.exit(main())
