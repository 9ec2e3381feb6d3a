"""Whether a first request shows what a commit changes, by its subject: 292 commits of 35 repositories.

`python -m tests.benchmarks.subjects CLONES [--half out]`: CLONES holds bare clones as OWNER+NAME, or with the
clone in repo/ below; subjects.txt names the commits, a line each: repository, commit, language, half, subject
without numbers. Settings were picked on the half "tune"; "out" is held out; "others" are 60 of six more, in
languages that neither has. The state is the parent's. Taken twice: the subject, and with a wish for tests and
documentation after it. Means over commits, in %.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from codingagent.context import choose, rank
from tests.benchmarks.context import BUDGETS, Task, covered, is_source, task_of

_LISTED = Path(__file__).with_suffix(".txt")
_WISHES = {"subject": "", "with tests and documentation": " With tests and documentation."}


def figures_of(task: Task) -> Iterator[tuple[str, float]]:
    """Yield figures of one commit: their names, and shares from 0 to 1."""
    asked = rank.query(task.message)
    rows = [rank.look(asked, path, text) for path, text in task.texts.items()]
    ranked = rank.rank(asked, rows, task.log)
    texts = {file.path: task.texts[file.path] for file in ranked[: choose.FILES_LIMIT]}
    for budget in BUDGETS:
        chosen = choose.choose(asked, ranked, texts, budget, task.log)
        shown = {part.file.path: set(part.shown) for part in chosen}
        hits: dict[str, list[bool]] = defaultdict(list)
        for hunk in task.hunks:
            kind = "source" if is_source(hunk.path) else choose.kind_of(hunk.path)
            hits[kind].append(covered(hunk, shown.get(hunk.path, ())))
        for kind, each in hits.items():
            if kind == "source" or budget == 8_000:
                yield f"{kind} {budget // 1000}k", sum(each) / len(each)
        if budget == 8_000:
            yield "whole 8k", all(hits["source"])


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("clones", type=Path)
    parser.add_argument("--half", default="out", choices=["out", "tune", "others"])
    given = parser.parse_args()
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    blobs: dict[str, str | None] = {}
    for line in _LISTED.read_text("utf-8").splitlines():
        repository, commit, language, half, subject = line.split("\t")
        if half != given.half:
            continue
        clone = given.clones / repository
        clone = clone / "repo" if (clone / "repo").exists() else clone
        for wish, added in _WISHES.items():
            task = task_of(clone, commit, subject + added, blobs)
            for name, share in figures_of(task):
                for rows in (language, *["all but Python"] * (language != "python")):
                    found[wish, rows][name].append(share)
    names = ("source 4k", "source 8k", "source 16k", "whole 8k", "test 8k", "doc 8k")
    sys.stdout.write(f"| | | {' | '.join(names)} | commits |\n|---{'|---' * (len(names) + 2)}|\n")
    for (wish, rows), by_name in sorted(found.items()):
        means = (f"{100 * sum(s) / len(s):.1f}" if (s := by_name[name]) else "" for name in names)
        sys.stdout.write(f"| {wish} | {rows} | {' | '.join(means)} | {len(by_name['whole 8k'])} |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
