"""Choose the blocks of a workspace's files that a task needs, by one order over all files.

A block is as good as its file, as the task's words in it, as its own name and as its calls to and from the
best blocks. The budget is filled in this order; tests and documents have a share of it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import nlargest

from msgspec import Struct

from codingagent.context.blocks import CodeBlock, blocks, lines_of
from codingagent.context.rank import BY_TASK, DOCS, TESTS, Query, Ranked, bm25, parts_of, said_shares
from codingagent.model.observations import PastCommit
from codingagent.model.patterns import lazy_pattern
from codingagent.prompt.tokens import estimate

# The best files hold nearly all that is changed; more of them cost time.
FILES_LIMIT = 40
_FILE, _TEXT, _NAME, _LENGTH = 3.0, 2.0, 1.0, 0.2
# For what the task names: a file, and a definition or an option that so few blocks have.
_NAMED_FILE, _NAMED_PLACE, _NAMED_IN = 4.0, 3.0, 3
# Of the budget for a file that is named for another reason than what the task names in others; and of how
# many times fewer lines it has of that.
_ASIDE, _FEWER = 1 / 3, 4
# So many of the best blocks count as what others call, or are called by; and for how much at most.
_SEEDS, _CALLS = 6, 0.75
# Of the budget, times how often a kind changed with sources; where the task has one of these words; and of
# which budget on.
_SHARES = {"test": 0.25, "doc": 0.2}
_ASKED_SHARES = {"test": 0.22, "doc": 0.12}
_FULL_BUDGET = 8_000
_LATEST = 200
# New entries of a changelog stand in its first lines, where so many commits of sources write some.
_TOP_LINES, _KEPT_SHARE = 25, 0.1
_GAP_TOKENS, _FILE_TOKENS, _LEAST_TOKENS = 9, 14, 60
_IMPORTS_LINES, _IMPORTS_WITHIN = 30, 120
_IDENTIFIER = lazy_pattern(r"[A-Za-z_$][\w$]{3,}")
_CHANGELOG = lazy_pattern(r"(?i)(?:^|/)(?:change(?:s|log)|history|news|release[-_]notes)[^/]*$")
_estimate = lru_cache(maxsize=2 * FILES_LIMIT)(estimate)
_IMPORT = lazy_pattern(
    r"(?:import\b|from\s+\S+\s+import\b|use\s|#\s*include|require\b|(?:const|let|var)\s.*\brequire\()"
)


class Chosen(Struct, frozen=True):
    """A file of the choice: which of its lines are shown, all of them if it is whole."""

    file: Ranked
    shown: tuple[int, ...]
    total: int
    tokens: int

    @property
    def is_whole(self) -> bool:
        return len(self.shown) == self.total


class _Page:
    """A file while the budget is filled: what its lines cost, and which of them are shown."""

    def __init__(self, file: Ranked, text: str) -> None:
        # Of a changelog only the top is written to, however loudly the task names it.
        is_source = bool(file.named) and not _CHANGELOG.search(file.path)
        self.file, self.kind = file, "source" if is_source else kind_of(file.path)
        self.is_aside, self.score = False, 0.0
        self.text, self.lines = text, lines_of(text)
        ratio = _estimate(text) / (len(text) or 1)
        self.costs: list[float] = [ratio * (len(line) + 1) for line in self.lines]
        self.shown: set[int] = set()
        self.tokens = 0.0

    def add(self, block: CodeBlock, left: float) -> float:
        """Show a block with what it is in, and the imports, if it fits; return its tokens."""
        more = {*range(block.first, block.last + 1), *block.around}
        price = 0 if block.first == 1 or block.first - 1 in self.shown else _GAP_TOKENS
        if not self.shown:
            more |= imports(self.lines)
            price += _FILE_TOKENS
        more -= self.shown
        cost: float = price + sum(self.costs[line - 1] for line in more)
        if cost > left:
            return 0.0
        self.shown |= more
        self.tokens += cost
        return cost

    def chosen(self) -> Chosen:
        # A few short lines cost less than the mark of their gap.
        shown = list[int]()
        for line in (*sorted(self.shown), len(self.lines) + 1):
            gap = range(shown[-1] + 1 if shown else 1, line)
            shown += gap if sum(self.costs[at - 1] for at in gap) <= _GAP_TOKENS else ()
            shown.append(line)
        return Chosen(self.file, (*shown[:-1],), len(self.lines), round(self.tokens))


class _Candidate(Struct, frozen=True, eq=False):
    page: _Page
    block: CodeBlock
    text: str = ""
    counts: tuple[int, ...] = ()
    """How often each of the task's words is a part of a name in it."""
    names: frozenset[str] = frozenset()
    """The parts of what it defines."""


# Most files are as they were a request ago.
@lru_cache(maxsize=2 * FILES_LIMIT)
def _cut(asked: Query, path: str, text: str) -> list[tuple[CodeBlock, str, tuple[int, ...], frozenset[str]]]:
    """Return the blocks of a file, each as a candidate has it."""
    lines, cut = lines_of(text), blocks(path, text)
    texts = ["\n".join(lines[each.first - 1 : each.last]) for each in cut]
    names = [parts_of(" ".join(each.names)) for each in cut]
    return list(zip(cut, texts, map(asked.count_parts, texts), names, strict=True))


def choose(
    asked: Query,
    ranked: Sequence[Ranked],
    texts: Mapping[str, str],
    budget: int,
    log: Sequence[PastCommit] = (),
) -> list[Chosen]:
    """Return parts of files that together cost at most the budget, in tokens; all files, if these do.

    `ranked` has the best file first, `texts` those that may be shown, `log` the latest commit first.
    """
    pages = [_Page(file, text) for file in ranked if (text := texts.get(file.path))]
    whole = sum(_FILE_TOKENS + sum(page.costs) for page in pages)
    if len(ranked) <= FILES_LIMIT and whole <= budget:
        for page in pages:
            page.add(CodeBlock(1, len(page.lines)), budget)
        return [page.chosen() for page in pages]
    latest = [commit.paths for commit in log[:_LATEST]]
    latest = [paths for paths in latest if "source" in map(kind_of, paths)]
    ordered = [*_top_of_changelog(pages, latest), *_ordered(asked, pages)]
    total = 0.0
    for kind in ("test", "doc", "source"):
        limit = min(total + budget * _share(asked, kind, latest, budget), budget)
        for each in ordered:
            if limit - total < _LEAST_TOKENS:
                break
            if each.page.kind == kind:
                most = budget * _ASIDE - each.page.tokens if each.page.is_aside else budget
                total += each.page.add(each.block, min(limit - total, most))
    return [page.chosen() for page in sorted(pages, key=lambda page: page.kind != "source") if page.shown]


def kind_of(path: str) -> str:
    """Return whether a path is that of a test, a document or a source: "test", "doc", "source"."""
    return "test" if TESTS.search(path) else "doc" if DOCS.search(path) else "source"


def _share(asked: Query, kind: str, latest: Sequence[Sequence[str]], budget: int) -> float:
    """Return the part of the budget that a kind may have: as often as it changed with sources."""
    if kind == "source":
        return 1.0
    of_full = min(budget / _FULL_BUDGET, 1) ** 2
    changed = sum(kind in map(kind_of, paths) for paths in latest)
    usual = _SHARES[kind] * (changed / len(latest) if latest else 0.5)
    return of_full * max(usual, _ASKED_SHARES[kind] * (kind in asked.kinds))


def _top_of_changelog(pages: Iterable[_Page], latest: Sequence[Sequence[str]]) -> Iterator[_Candidate]:
    """Yield the first lines of one that is named or that commits of sources keep: some fit anywhere."""
    # Its ending may have changed.
    names = [path.partition(".")[0] for each in latest for path in each if _CHANGELOG.search(path)]
    for page in pages:
        is_kept = names.count(page.file.path.partition(".")[0]) > len(latest) * _KEPT_SHARE
        if is_kept or (page.file.named and _CHANGELOG.search(page.file.path)):
            for at in range(1, min(_TOP_LINES, len(page.lines)) + 1):
                yield _Candidate(page, CodeBlock(at, at))


def _ordered(asked: Query, pages: Sequence[_Page]) -> list[_Candidate]:
    found = [_Candidate(page, *each) for page in pages for each in _cut(asked, page.file.path, page.text)]
    by_text = bm25(asked, [each.counts for each in found], [len(each.text) + 20 for each in found])
    by_name = said_shares([each.names for each in found], asked.words)
    named = _named(asked, found)
    of_named = Counter[str]()
    for each in (found[at] for at in named):
        of_named[each.page.file.path] += each.block.last - each.block.first + 1
    for page in (page for page in pages if page.file.named):
        is_less = of_named[page.file.path] * _FEWER < max(of_named.values(), default=0)
        page.is_aside = is_less or page.file.named != BY_TASK
    best = max((page.file.score for page in pages), default=0.0) or 1.0
    for page in pages:
        page.score = _NAMED_FILE if page.file.named else _FILE * page.file.score / best
    scores = [
        each.page.score + _TEXT * text + _NAME * name - _LENGTH * math.log(len(each.text) + 60)
        for each, text, name in zip(found, by_text, by_name, strict=True)
    ]
    for at in named:
        scores[at] += _NAMED_PLACE
    heads = {(found[at].page, *found[at].block.around[-1:]) for at in named}
    for at, each in enumerate(found):  # with a class its members are named
        if any((each.page, line) in heads for line in each.block.around[:-1]):
            scores[at] += _NAMED_PLACE
    calls = _calls(found, scores)
    scores = [score + more for score, more in zip(scores, calls, strict=True)]
    for at in sorted(named):  # the pieces of a definition in their order
        if at - 1 in named and found[at].block.around == found[at - 1].block.around:
            scores[at] = scores[at - 1]
    return [found[at] for at in sorted(range(len(found)), key=scores.__getitem__, reverse=True)]


def _calls(found: Sequence[_Candidate], scores: Sequence[float]) -> list[float]:
    """Score blocks by whether they call, or are called by, the best ones of the sources."""
    sources = [at for at, each in enumerate(found) if each.page.kind == "source"]
    seeds = [found[at] for at in nlargest(_SEEDS, sources, scores.__getitem__)]
    own = {name for each in seeds for name in each.block.names if _IDENTIFIER.fullmatch(name)}
    called = {name for each in seeds for name in _IDENTIFIER.findall(each.text)} - own
    links: dict[str, list[int]] = defaultdict(list)
    for at, each in enumerate(found):
        for name in called.intersection(each.block.names):
            links[name].append(at)
    for name in own:
        holding = (at for at, each in enumerate(found) if name in each.text and name not in each.block.names)
        links[name].extend(holding)
    calls = [0.0] * len(found)
    for places in sorted(links.values()):  # sums of one order, whatever that of the names
        for at in places:
            calls[at] += 1 / math.sqrt(len(places))
    return [min(score / 2, _CALLS) for score in calls]


def _named(asked: Query, found: Sequence[_Candidate]) -> set[int]:
    """Return which blocks define what the task quotes, or hold an option that it names, if few do."""
    named: set[int] = set()
    for word in asked.exact:
        name = word.rpartition(".")[2]
        meant = [at for at, each in enumerate(found) if name in map(str.lower, each.block.names)]
        if not meant and word.startswith("-"):
            meant = [at for at, each in enumerate(found) if word in each.text.lower()]
        if len({(found[at].page.file.path, found[at].block.around) for at in meant}) <= _NAMED_IN:
            named.update(meant)
    return named


def imports(lines: Sequence[str]) -> set[int]:
    """Return the lines of a file's imports, each to its closing bracket: they go with any part of it."""
    found: list[int] = []
    is_open = False
    for at, line in enumerate(lines[:_IMPORTS_WITHIN], 1):
        if is_open or _IMPORT.match(line):
            found.append(at)
            is_open = line[:1] not in {")", "}"} and (is_open or line.rstrip()[-1:] in {"(", "{"})
    if found and found[-1] <= _IMPORTS_LINES:
        return set(range(found[0], found[-1] + 1))
    return set(found[:_IMPORTS_LINES])
