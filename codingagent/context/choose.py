"""Choose the blocks of a workspace's files that a task needs, by one order over all files.

A block is as good as its file, as the task's words in it, as its own name and as its calls to and from the
best blocks. The budget is filled in this order; tests and documents have a share of it.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from codingagent.context.blocks import CodeBlock, blocks, lines_of
from codingagent.context.rank import DOCS, TESTS, Query, Ranked, bm25, parts_of, said_shares
from codingagent.model.observations import PastCommit
from codingagent.model.patterns import lazy_pattern
from codingagent.prompt.tokens import estimate

# The best files hold nearly all that is changed; more of them cost time.
FILES_LIMIT = 40
_FILE, _TEXT, _NAME, _CALLER, _CALLEE, _EXACT = 3.0, 2.0, 1.0, 1.0, 1.0, 0.7
# For a file that the task names, and for a definition or an option that at most three blocks have.
_NAMED_FILE, _NAMED_PLACE, _NAMED_IN = 1.0, 3.0, 3
_LENGTH = 0.2
# So many of the best blocks count as what others call, or are called by.
_SEEDS = 6
# Of the budget for what is no source, times how often it changed with sources; and where it is asked for.
_SHARES = {"test": 0.3, "doc": 0.2}
_ASKED_SHARE = 0.4
# Of a smaller budget, sources need more; imports are fewer lines, a 300th of its tokens.
_FULL_BUDGET, _LEAST_PART, _IMPORTS_OF = 8_000, 0.5, 300
_LATEST = 200
# New entries of a changelog stand in its first lines, where so many commits of sources write some.
_TOP_LINES, _TOP_TOKENS, _KEPT_SHARE = 25, 400, 0.1
# Of the budget for that top, and for documents where there is one.
_TOP_SHARE, _WITH_TOP = 0.05, 0.06
_GAP_TOKENS, _FILE_TOKENS = 9, 14
_IMPORTS_LINES = 30
_IMPORTS_WITHIN = 120
_HOLE_LINES = 2
_LEAST_TOKENS = 60
# Of a file that a failed command names.
_AROUND_LINES = 120

_IDENTIFIER = lazy_pattern(r"[A-Za-z_$][\w$]{3,}")
_CHANGELOG = lazy_pattern(r"(?i)(?:^|/)(?:change(?:s|log)|history|news|release[-_]notes)[^/]*$")
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


class _Candidate(NamedTuple):
    file: Ranked
    block: CodeBlock
    text: str
    score: float = 0.0
    """What it has to begin with: the top of a kept changelog has some."""


def choose(
    asked: Query,
    ranked: Sequence[Ranked],
    texts: Mapping[str, str],
    budget: int,
    log: Sequence[PastCommit] = (),
) -> list[Chosen]:
    """Return parts of files that together cost at most the budget; all files, if these do.

    Args:
        asked: what the files were ranked for.
        ranked: the files, the best first.
        texts: the texts of those that may be shown.
        budget: the number of tokens.
        log: the commits of the past, the latest first.
    """
    files = [file for file in ranked if texts.get(file.path)]
    if len(ranked) <= FILES_LIMIT:
        wholes = [_whole(file, texts[file.path]) for file in files]
        if sum(each.tokens for each in wholes) <= budget:
            return wholes
    latest = [commit.paths for commit in log[:_LATEST]]
    latest = [paths for paths in latest if "source" in map(kind_of, paths)]
    changelog = _changelog(latest)
    shares = _shares(asked, latest, budget)
    if changelog:
        shares["doc"] = max(shares["doc"], _WITH_TOP)
    top = int(min(_TOP_TOKENS, budget * _TOP_SHARE))
    return _fill(_ordered(asked, files, texts, changelog, top), texts, budget, shares)


def _whole(file: Ranked, text: str) -> Chosen:
    count = len(lines_of(text))
    return Chosen(file, tuple(range(1, count + 1)), count, _FILE_TOKENS + estimate(text))


def _shares(asked: Query, latest: Sequence[Sequence[str]], budget: int) -> dict[str, float]:
    """Return which part of the budget tests and documents get: as often as they changed with sources."""
    kinds = [{kind_of(path) for path in paths} for paths in latest]
    part = min(budget / _FULL_BUDGET, 1)
    shares = {
        kind: part * most * (sum(kind in each for each in kinds) / len(kinds) if kinds else 0.5)
        for kind, most in _SHARES.items()
    }
    if asked.wants_tests:
        shares["test"] = _ASKED_SHARE * max(part, _LEAST_PART)
    if asked.wants_docs:
        shares["doc"] = _ASKED_SHARE * max(part, _LEAST_PART)
    return shares


def _changelog(latest: Sequence[Sequence[str]]) -> str:
    """Return the changelog that commits of sources keep, without its ending; empty if they keep none."""
    found = Counter(
        path.partition(".")[0] for paths in latest for path in paths if _CHANGELOG.search(path)
    )
    [(path, count)] = found.most_common(1) or [("", 0)]
    return path if count > len(latest) * _KEPT_SHARE else ""


def kind_of(path: str) -> str:
    """Return whether a path is that of a test, a document or a source: "test", "doc", "source"."""
    return "test" if TESTS.search(path) else "doc" if DOCS.search(path) else "source"


def _ordered(
    asked: Query, files: Sequence[Ranked], texts: Mapping[str, str], changelog: str, top_tokens: int
) -> list[_Candidate]:
    found = []
    for file in files:
        lines = lines_of(texts[file.path])
        parts = [*blocks(file.path, texts[file.path])]
        if changelog and file.path.partition(".")[0] == changelog:
            top = min(_TOP_LINES, len(lines))
            while top > 1 and estimate("\n".join(lines[:top])) > top_tokens:
                top -= 1
            text = "\n".join(lines[:top])
            found.append(_Candidate(file, CodeBlock(1, top), text, _NAMED_PLACE))
            parts = [each for each in parts if each.first > top]
        found += [
            _Candidate(file, block, "\n".join(lines[block.first - 1 : block.last]))
            for block in parts
        ]
    if not found:
        return []
    low = [each.text.lower() for each in found]
    by_text = bm25(
        asked,
        [tuple(text.count(word) for word in asked.words) for text in low],
        [len(text) + 20 for text in low],
    )
    names = [{part for name in each.block.names for part in parts_of(name)} for each in found]
    by_name = said_shares(names, asked.parts.__contains__)
    best = max((file.score for file in files), default=0.0) or 1.0
    exact = _by_exact(asked, found, low)
    scores = []
    for each, text, said, name, named in zip(found, low, by_text, by_name, exact, strict=True):
        of_file = 1 + _NAMED_FILE / _FILE if each.file.is_named else each.file.score / best
        score = each.score + _FILE * of_file + _TEXT * said + _NAME * name + named
        scores.append(score - _LENGTH * math.log(len(text) + 60))
    calls = _calls(found, scores)
    scored = [
        each._replace(score=score + more)
        for each, score, more in zip(found, scores, calls, strict=True)
    ]
    return sorted(scored, key=lambda each: -each.score)


def _by_exact(asked: Query, found: Sequence[_Candidate], low: Sequence[str]) -> list[float]:
    """Score blocks by what the task quotes or writes as code; what few of them hold or define is meant."""
    scores = [0.0] * len(found)
    held = {word: [at for at, text in enumerate(low) if word in text] for word in asked.exact}
    weights = {word: math.log(1 + len(low) / (1 + len(places))) for word, places in held.items()}
    most = sum(weights.values()) or 1.0
    for word, places in held.items():
        name = word.rpartition(".")[2]
        defining = [at for at in places if name in {each.lower() for each in found[at].block.names}]
        for at in places:
            scores[at] += _EXACT * weights[word] / most
        meant = defining or (places if word.startswith("-") else ())
        for at in meant if len(meant) <= _NAMED_IN else ():
            scores[at] = max(scores[at], _NAMED_PLACE)
    return scores


def _calls(found: Sequence[_Candidate], scores: Sequence[float]) -> list[float]:
    """Score blocks by whether they call, or are called by, the best ones of the sources."""
    sources = (at for at, each in enumerate(found) if kind_of(each.file.path) == "source")
    seeds = sorted(sources, key=lambda at: -scores[at])[:_SEEDS]
    called = {
        name
        for at in seeds
        for name in _IDENTIFIER.findall(found[at].text)
        if name not in found[at].block.names
    }
    defined = Counter(name for each in found for name in set(each.block.names))
    own = {name for at in seeds for name in found[at].block.names if _IDENTIFIER.fullmatch(name)}
    holding = {
        name: [name in each.text and name not in each.block.names for each in found] for name in own
    }
    rarity = {name: 1 / math.sqrt(max(sum(each), 1)) for name, each in holding.items()}
    more = []
    for at, each in enumerate(found):
        calls = min(1.0, sum(rarity[name] for name in own if holding[name][at]))
        is_called = max(
            (1 / math.sqrt(defined[name]) for name in each.block.names if name in called),
            default=0.0,
        )
        more.append(_CALLER * calls + _CALLEE * is_called)
    return more


def _fill(
    ordered: Sequence[_Candidate],
    texts: Mapping[str, str],
    budget: int,
    shares: Mapping[str, float],
) -> list[Chosen]:
    shown: dict[str, set[int]] = {}
    files: dict[str, Ranked] = {}
    spent: dict[str, float] = {}
    costs: dict[str, tuple[list[str], list[float]]] = {}
    total = 0.0
    for kind in ("test", "doc", "source"):
        limit = budget if kind == "source" else total + budget * shares[kind]
        for each in ordered:
            if limit - total < _LEAST_TOKENS:
                break
            path = each.file.path
            if kind_of(path) != kind:
                continue
            if path not in costs:
                lines = lines_of(texts[path])
                ratio = estimate(texts[path]) / (len(texts[path]) or 1)
                costs[path] = lines, [ratio * (len(line) + 1) for line in lines]
            lines, cost = costs[path]
            have = shown.get(path, set())
            new = set(range(each.block.first, each.block.last + 1))
            if not have:
                new |= imports(lines, min(_IMPORTS_LINES, budget // _IMPORTS_OF))
            if each.block.parent:
                new.add(each.block.parent)
            new -= have
            more = _GAP_TOKENS * (_runs(have | new) - _runs(have)) + (0 if have else _FILE_TOKENS)
            price = sum(cost[at - 1] for at in new) + more
            if total + price <= limit:
                total += price
                shown.setdefault(path, set()).update(new)
                files.setdefault(path, each.file)
                spent[path] = spent.get(path, 0.0) + price
    for path, have in shown.items():
        _, cost = costs[path]
        for before, after in pairwise(sorted(have)):
            price = sum(cost[before : after - 1]) - _GAP_TOKENS
            if 1 < after - before <= _HOLE_LINES + 1 and total + price <= budget:
                total += price
                spent[path] += price
                have.update(range(before, after))
    found = [
        Chosen(file, tuple(sorted(shown[path])), len(costs[path][0]), round(spent[path]))
        for path, file in files.items()
    ]
    return sorted(found, key=lambda part: kind_of(part.file.path) != "source")


def _runs(lines: set[int]) -> int:
    return sum(line - 1 not in lines for line in lines)


def around(path: str, text: str, wanted: Sequence[int]) -> tuple[int, ...]:
    """Return the lines of the blocks that hold some lines, the last ones first, with imports and classes."""
    shown: set[int] = set()
    found = blocks(path, text)
    for line in dict.fromkeys(reversed(wanted)):
        for block in found:
            if block.first <= line <= block.last and len(shown) < _AROUND_LINES:
                shown.update(range(block.first, block.last + 1), {block.parent} - {0})
    return tuple(sorted(shown | imports(lines_of(text)))) if shown else ()


def imports(lines: Sequence[str], most: int = _IMPORTS_LINES) -> set[int]:
    """Return the lines of a file's imports, each to its closing bracket: they go with any part of it."""
    found: list[int] = []
    is_open = False
    for at, line in enumerate(lines[:_IMPORTS_WITHIN], 1):
        if is_open or _IMPORT.match(line):
            found.append(at)
            is_open = line[:1] not in {")", "}"} and (is_open or line.rstrip()[-1:] in {"(", "{"})
    if found and found[-1] <= most:
        return set(range(found[0], found[-1] + 1))
    return set(found[:most])
