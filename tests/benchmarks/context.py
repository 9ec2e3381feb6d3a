"""Whether a first request shows the files that a task needs, judged by histories of real repositories.

`python -m tests.benchmarks.context REPOSITORY... [--count 60]` takes commits from git repositories, evenly
spread over the newest 1,500. The task is a commit's message; the truth is the files that it changed, that
existed before it and that a guess may show at all. Every second commit is held out, and only these count:
the weights were fitted on the others (`--fitted`). Left out: merges, more than ten files, and commits that
no person would give as a task (versions, dependencies, typos, formatting, CI), or that change no source.

Each figure twice: for source files, and for all files with tests, documents and settings.

- recall at 10: the part of the truth among the first ten files.
- truth at 8k: the part of which anything is shown within 8,000 tokens.
- hunks at 4k, 8k, 16k: the part of the changed hunks all of whose lines are shown (where a hunk only adds,
  the line before or after); also of tests and of documents. Plain: whole files in the same order instead.
- tasks at 4k, 8k, 16k: the part of the tasks all of whose source hunks are shown.
- waste at 4k, 8k, 16k: the part of the tokens that go for files in which nothing is changed.
- listed: the part of the truth that the list of files names, and how many tokens it takes.

Beside ours: the same choice in the order of BM25 over whole texts; blocks of all files by BM25 alone, in its
order until the budget is full; and, with `--aider PYTHON`, the repo map that aider-chat makes under that
Python, of every `--aider-every`th task, with the others of the same tasks.
"""

import argparse
import io
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codingagent.agent import wanted_files
from codingagent.context import blocks, choose, rank
from codingagent.model.observations import PastCommit
from codingagent.prompt import file_list
from codingagent.prompt.tokens import estimate

NEWEST = 1_500
LOG_LIMIT = 1_000
_HEADING_TOKENS = 14
FILES_LIMIT = 10
BUDGETS = (4_000, 8_000, 16_000)
# No task that a person would give: versions, dependencies, reverts, formatting.
_NO_TASK = re.compile(
    r"(?i)^(?:(?:build|chore|ci|style|release)\b.*[:!]|bump|release|version|revert|merge|prepare|update dep"
    r"|pin |\[pre-commit|v?\d+[\d.]*$|.*\bbump\b.*\bto\b|📝|⬆|👷|🔖|🌐)"
)
_NO_CODE = re.compile(
    r"(?i)\b(?:typos?|spelling|comments?|docstrings?|docs?|changelog|readme|lint|linter|format|formatting|reformat"
    r"|rustfmt|gofmt|black|prettier|copyright|whitespace|indentation)\b|^(?:deps|ci|doc|docs|crates)\b"
    r"|\b(?:github actions|dependabot|travis|appveyor|ci)\b"
)
_SOURCE = re.compile(
    r"\.(?:py|pyi|go|js|mjs|cjs|jsx|ts|tsx|mts|cts|c|h|cc|cpp|hpp|rs|java|kt|y|l|jq|rb|php|cs|swift|scala)$"
)
_TRAILER = re.compile(r"(?m)^[A-Z][\w-]+-by: .*$|\(#\d+\)|^(?:Fixes|Closes|PR|Ref)\b[ :#].*$")


@dataclass(frozen=True, slots=True)
class Hunk:
    """The lines of the old file that a commit replaces; none if it adds after line `first`."""

    path: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Task:
    """A commit as a task: its message, the tree and the history before it, and what it changed."""

    name: str
    message: str
    texts: Mapping[str, str]
    log: tuple[PastCommit, ...]
    hunks: tuple[Hunk, ...]

    @property
    def truth(self) -> set[str]:
        return {hunk.path for hunk in self.hunks}

    @property
    def sources(self) -> set[str]:
        return {path for path in self.truth if is_source(path)}


def is_source(path: str) -> bool:
    """Return whether a path is that of a program's source, and neither a test nor a document."""
    is_aside = rank.TESTS.search(path) or rank.DOCS.search(path)
    return _SOURCE.search(path) is not None and not is_aside


def tasks(repository: Path, count: int, first: int = 0) -> Iterator[Task]:
    """Yield commits that are tasks, evenly spread, the next one where one is none: every second of them.

    `first` is 1 for those that are held out, 0 for those that the weights were fitted on.
    """
    names = _git(repository, "rev-list", "--no-merges", "--min-parents=1", f"-{NEWEST}", "HEAD")
    given = names.decode().split()
    blobs: dict[str, str | None] = {}
    at = 0
    for number in range(count):
        at = max(at, number * len(given) // count)
        while at < len(given):
            name = given[at]
            at += 1
            try:
                if (found := _asked(repository, name)) is not None:
                    if number % 2 == first:
                        yield _task(repository, name, *found, blobs)
                    break
            except subprocess.CalledProcessError:  # a snapshot may lack its largest files
                continue


def _asked(repository: Path, name: str) -> tuple[str, tuple[Hunk, ...]] | None:
    """Return the message and the hunks of a commit that is a task."""
    said = _git(repository, "show", "-s", "--format=%B", name).decode("utf-8", "replace")
    message = _TRAILER.sub("", said).strip()
    subject = message.partition("\n")[0]
    is_short = len(re.findall(r"[A-Za-z]{2,}", subject)) < 3
    if is_short or _NO_TASK.match(subject) or _NO_CODE.search(subject):
        return None
    diff = _git(repository, "diff", "-U0", "--no-renames", "--no-color", f"{name}^", name)
    hunks = _hunks(diff.decode("utf-8", "replace"))
    changed = {hunk.path for hunk in hunks}
    is_task = any(map(is_source, changed)) and len(changed) <= FILES_LIMIT
    return (message, hunks) if is_task else None


def task_of(repository: Path, name: str, message: str, blobs: dict[str, str | None]) -> Task:
    """Return a commit as a task of another message; `blobs` keeps the texts of files."""
    diff = _git(repository, "diff", "-U0", "--no-renames", "--diff-filter=M", "--no-color", f"{name}^", name)
    return _task(repository, name, message, _hunks(diff.decode("utf-8", "replace")), blobs)


def _task(
    repository: Path, name: str, message: str, hunks: tuple[Hunk, ...], blobs: dict[str, str | None]
) -> Task:
    texts = _texts(repository, f"{name}^", blobs)
    may_go = tuple(hunk for hunk in hunks if hunk.path in texts)
    return Task(name, message, texts, _log(repository, f"{name}^"), may_go)


def _hunks(diff: str) -> tuple[Hunk, ...]:
    found = []
    path = ""
    for line in diff.split("\n"):
        if line.startswith("--- "):
            path = line[len("--- a/") :].rstrip("\t") if line.startswith("--- a/") else ""
        elif path and (at := re.match(r"@@ -(\d+)(?:,(\d+))? ", line)):
            found.append(Hunk(path, int(at[1]), int(at[2] or 1)))
    return tuple(found)


def _texts(repository: Path, name: str, blobs: dict[str, str | None]) -> dict[str, str]:
    listed = _git(repository, "ls-tree", "-r", "-z", name).decode("utf-8", "replace").split("\0")
    rows = [row.partition("\t") for row in listed if row.startswith("100")]
    ids = {path: about.split()[2] for about, _, path in rows}
    missing = list(dict.fromkeys(blob for blob in ids.values() if blob not in blobs))
    asked = "".join(f"{blob}\n" for blob in missing).encode()
    given = io.BytesIO(_git(repository, "cat-file", "--batch", given=asked))
    for blob in missing:
        *_, size = given.readline().split()
        if size == b"missing":
            blobs[blob] = None
            continue
        data = given.read(int(size))
        given.read(1)
        paths = [path for path, each in ids.items() if each == blob]
        decoded = data.decode("utf-8", "replace")
        refused = any(map(wanted_files.why_not_named, paths)) or wanted_files.why_not_text(decoded)
        blobs[blob] = None if refused else decoded
    return {path: text for path, blob in ids.items() if (text := blobs[blob]) is not None}


def _log(repository: Path, name: str) -> tuple[PastCommit, ...]:
    told = _git(
        repository,
        *("log", f"-{LOG_LIMIT}", "--no-merges", "--no-renames", "--name-only", "-z"),
        *("--format=%x01%B%x02", name),
    )
    log = []
    for part in told.decode("utf-8", "replace").split("\x01")[1:]:
        message, _, paths = part.partition("\x02")
        log.append(PastCommit(message, tuple(path for p in paths.split("\0") if (path := p.strip()))))
    return tuple(log)


def _git(repository: Path, *words: str, given: bytes = b"") -> bytes:
    command = ["git", "-C", str(repository), *words]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


# --- the figures -----------------------------------------------------------------------------------


def covered(hunk: Hunk, shown: Collection[int]) -> bool:
    """Return whether the lines that a hunk changes are all shown."""
    if hunk.count:
        return all(line in shown for line in range(hunk.first, hunk.first + hunk.count))
    return hunk.first in shown or hunk.first + 1 in shown


def chosen(task: Task, asked: rank.Query, ranked: Sequence[rank.Ranked], budget: int) -> list[choose.Chosen]:
    """Return the choice for a task, from the best files of an order."""
    texts = {file.path: task.texts[file.path] for file in ranked[: choose.FILES_LIMIT]}
    return choose.choose(asked, ranked, texts, budget, task.log)


class Figures:
    """Means over tasks, by the name of a figure."""

    def __init__(self) -> None:
        self._found: dict[str, list[float]] = defaultdict(list)

    def add(self, name: str, parts: Iterable[bool]) -> None:
        given = list(parts)
        if given:
            self._found[name].append(sum(given) / len(given))

    def count(self, name: str, value: float) -> None:
        self._found[name].append(value)

    def __str__(self) -> str:
        return "".join(
            f"| {name} | {sum(values) / len(values):.3f} | {len(values)} |\n"
            for name, values in self._found.items()
        )


def take(task: Task, repository: str, figures: Figures) -> None:
    """Add the figures of a task: ours, ours without history and without a file's name, and BM25."""
    asked = rank.query(task.message)
    rows = [rank.look(asked, path, text) for path, text in task.texts.items()]
    ranked = rank.rank(asked, rows, task.log)
    _recall(task, figures, "", ranked)
    _recall(task, figures, f", {repository}", ranked)
    _recall(task, figures, ", no history", rank.rank(asked, rows))
    if any(map(rank.TESTS.search, task.truth)):
        title, end, rest = task.message.partition("\n")
        more = rank.query(f"{title}, with a test{end}{rest}")
        rows_of_more = [rank.look(more, path, text) for path, text in task.texts.items()]
        _recall(task, figures, ", with a test", rank.rank(more, rows_of_more, task.log))
    if bare := _without_names(task):
        plain = rank.query(bare)
        rows_of_bare = [rank.look(plain, path, text) for path, text in task.texts.items()]
        _recall(task, figures, ", of tasks that name a file", ranked)
        _recall(task, figures, ", their names taken out", rank.rank(plain, rows_of_bare, task.log))
    for budget in BUDGETS:
        name = f"{budget // 1000}k"
        found = chosen(task, asked, ranked, budget)
        shown = {part.file.path: set(part.shown) for part in found}
        wholes = _wholes((file.path for file in ranked), task.texts, budget)
        for kind, truth in (("source", task.sources), ("all", task.truth)):
            hunks = [hunk for hunk in task.hunks if hunk.path in truth]
            are_shown = [covered(hunk, shown.get(hunk.path, ())) for hunk in hunks]
            if budget == BUDGETS[1]:
                figures.add(f"{kind}: truth at {name}", (path in shown for path in truth))
            figures.add(f"{kind}: hunks at {name}", are_shown)
            figures.add(f"{kind}: hunks at {name}, plain", (h.path in wholes for h in hunks))
            if kind == "source":
                figures.add(f"tasks at {name}", [all(are_shown)])
                figures.add(f"tasks at {name}, {repository}", [all(are_shown)])
                figures.add(f"source: hunks at {name}, {repository}", are_shown)
        for kind in ("test", "doc"):
            hunks = [hunk for hunk in task.hunks if choose.kind_of(hunk.path) == kind]
            figures.add(f"{kind}: hunks at {name}", (covered(h, shown.get(h.path, ())) for h in hunks))
        tokens = sum(part.tokens for part in found)
        idle = sum(part.tokens for part in found if part.file.path not in task.truth)
        figures.count(f"waste at {name}", idle / (tokens or 1))
    _take_list(task, ranked, figures)
    _take_blocks(task, asked, figures)
    by_text = sorted(
        zip(rank.bm25(asked, [row.counts for row in rows], [row.size for row in rows]), rows, strict=True),
        key=lambda each: (-each[0], each[1].path),
    )
    order = [rank.Ranked(row.path, score) for score, row in by_text]
    _recall(task, figures, ", BM25", order)
    found = chosen(task, asked, order, BUDGETS[1])
    present = {part.file.path for part in found}
    figures.add("source: truth at 8k, BM25", (path in present for path in task.sources))
    figures.add("all: truth at 8k, BM25", (path in present for path in task.truth))


def _take_blocks(task: Task, asked: rank.Query, figures: Figures, beside: str = "") -> None:
    """Add what blocks of all files show in the order of BM25, of nothing else."""
    found = []
    for path, text in task.texts.items():
        lines = blocks.lines_of(text)
        found += [
            (path, block, "\n".join(lines[block.first - 1 : block.last]))
            for block in blocks.blocks(path, text)
        ]
    low = [text.lower() for _, _, text in found]
    counts = [tuple(text.count(word) for word in asked.words) for text in low]
    scores = rank.bm25(asked, counts, [len(text) for text in low])
    order = sorted(range(len(found)), key=lambda at: -scores[at])
    costs = [estimate(text) for _, _, text in found]
    for budget in BUDGETS:
        shown: dict[str, set[int]] = defaultdict(set)
        left = budget
        for at in order:
            path, block, _ = found[at]
            price = costs[at] + (0 if path in shown else _HEADING_TOKENS)
            if price <= left:
                left -= price
                shown[path].update(range(block.first, block.last + 1))
            if left < _HEADING_TOKENS:
                break
        _take_shown(task, shown, figures, f"{budget // 1000}k, BM25 over blocks{beside}")


def _take_shown(task: Task, shown: Mapping[str, Collection[int]], figures: Figures, name: str) -> None:
    """Add how many hunks of sources are shown, and of how many tasks all of them."""
    hunks = [hunk for hunk in task.hunks if is_source(hunk.path)]
    are_shown = [covered(hunk, shown.get(hunk.path, ())) for hunk in hunks]
    figures.add(f"source: hunks at {name}", are_shown)
    figures.add(f"tasks at {name}", [all(are_shown)] if hunks else [])


def _take_list(task: Task, ranked: Sequence[rank.Ranked], figures: Figures) -> None:
    """Add what the list of files names, as a first request has it."""
    lately = [path for commit in task.log[:300] for path in commit.paths]
    listing = file_list.Listing(dict.fromkeys(task.texts, 1))
    lines = file_list.lines(listing, [*(file.path for file in ranked[:100]), *lately])
    named: set[str] = set()
    for line in lines:
        folder, in_folder, names = line.strip().rpartition("/: ")
        each = re.split(r", | and ", names.partition(" (")[0])
        named.update(f"{folder}/{name}" if in_folder else name for name in each)
    figures.add("listed", (path in named for path in task.truth))
    figures.count("list, tokens", estimate("\n".join(lines)))


def _recall(task: Task, figures: Figures, name: str, ranked: Sequence[rank.Ranked]) -> None:
    first = {file.path for file in ranked[:10]}
    figures.add(f"source: recall at 10{name}", (path in first for path in task.sources))
    figures.add(f"all: recall at 10{name}", (path in first for path in task.truth))


def _without_names(task: Task) -> str:
    """Return the task without the names of files that it holds; empty if it holds none."""
    named = rank.named_in(task.message, task.texts)
    ends = {path.rpartition("/")[2] for path in named}
    bare = task.message
    for end in ends:
        bare = re.sub(rf"[\w./-]*{re.escape(end)}", "", bare, flags=re.IGNORECASE)
    return bare.strip() if named else ""


def _wholes(order: Iterable[str], texts: Mapping[str, str], budget: int) -> set[str]:
    found = set()
    for path in order:
        tokens = estimate(texts[path])
        if tokens <= budget:
            budget -= tokens
            found.add(path)
        if budget < 100:
            break
    return found


# --- aider's repo map ------------------------------------------------------------------------------

# Run by another Python: aider pins the versions of a hundred packages.
_AIDER = """
import json, re, sys
from pathlib import Path
from aider.repomap import RepoMap
class Model:
    def token_count(self, text): return len(text) / 3.6
class Map(RepoMap):
    trees = {}
    def render_tree(self, path, name, lines):
        text = super().render_tree(path, name, lines)
        seen = '\\n'.join(line[:100] for line in text.splitlines())
        self.trees[name, seen] = sorted(self.tree_context_cache[name]['context'].show_lines)
        return text
class Terminal:
    def read_text(self, name): return Path(name).read_text('utf-8', 'replace')
    def tool_output(self, *a, **k): pass
    tool_error = tool_warning = tool_output
root, task, paths, budgets = json.load(sys.stdin)
idents = set(re.split(r'\\W+', task))
names = {p for p in paths for i in idents if len(i) >= 5 and Path(p).stem.lower() == i.lower()}
names |= {p for p in paths if p in task or Path(p).name in task.split()}
made = Map(map_tokens=8000, root=root, main_model=Model(), io=Terminal(), map_mul_no_files=1)
absolute = [root + '/' + p for p in paths]
tags = made.get_ranked_tags([], absolute, names, idents) or []
order = list(dict.fromkeys(tag[0] for tag in tags))
def lines_at(budget):
    text = made.get_ranked_tags_map([], absolute, budget, names, idents) or ''
    present = set(text.splitlines())
    made_of = [(name, at) for (name, seen), at in Map.trees.items() if f'\\n{name}:\\n{seen}' in text]
    shown = {name: [line + 1 for line in at] for name, at in made_of}
    return {p: shown.get(p, []) for p in paths if p in present or p + ':' in present}
json.dump([order[:10], [lines_at(budget) for budget in budgets]], sys.stdout)
"""


def take_aider(task: Task, python: str, figures: Figures) -> None:
    """Add the figures of aider's repo map, and ours of the same task."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in task.texts.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        given = json.dumps([folder, task.message, list(task.texts), BUDGETS])
        done = subprocess.run([python, "-c", _AIDER], input=given, capture_output=True, text=True, check=True)
    first, maps = json.loads(done.stdout)
    present = maps[1]
    asked = rank.query(task.message)
    rows = [rank.look(asked, path, text) for path, text in task.texts.items()]
    ranked = rank.rank(asked, rows, task.log)
    for budget, shown in zip(BUDGETS, maps, strict=True):
        _take_shown(task, shown, figures, f"{budget // 1000}k, aider")
        found = chosen(task, asked, ranked, budget)
        parts = {part.file.path: part.shown for part in found}
        _take_shown(task, parts, figures, f"{budget // 1000}k, beside aider")
    _take_blocks(task, asked, figures, ", beside aider")
    found = chosen(task, asked, ranked, BUDGETS[1])
    ours = {part.file.path for part in found}
    for kind, truth in (("source", task.sources), ("all", task.truth)):
        figures.add(f"{kind}: recall at 10, aider", (path in first for path in truth))
        top = {file.path for file in ranked[:10]}
        figures.add(f"{kind}: recall at 10, beside aider", (path in top for path in truth))
        figures.add(f"{kind}: truth at 8k, aider", (path in present for path in truth))
        figures.add(f"{kind}: truth at 8k, beside aider", (path in ours for path in truth))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--fitted", action="store_true")
    parser.add_argument("--aider", metavar="PYTHON")
    parser.add_argument("--aider-every", type=int, default=6)
    given = parser.parse_args()
    figures = Figures()
    for repository in given.repositories:
        name = repository.parent.name if repository.name in ("repo", ".git") else repository.name
        for number, task in enumerate(tasks(repository, given.count, int(not given.fitted))):
            if given.aider is None:
                take(task, name, figures)
            elif number % given.aider_every == 0:
                take_aider(task, given.aider, figures)
        sys.stderr.write(f"{name}: taken\n{figures}")  # of a long run one wants to see something
    sys.stdout.write(f"| figure | mean | tasks |\n|---|---|---|\n{figures}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
