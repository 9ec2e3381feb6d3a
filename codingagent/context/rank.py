"""Order the files of a workspace by how much a task speaks for each of them.

Without an index or a parser: how often the task's words occur in a file and in its path, how much of the
file's own name its first line says, and which files past commits changed. Each signal ranges from 0 to 1. The
weights were fitted on histories of real repositories; endings of words, imports, folders and files changed
together added nothing worth their code.
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from codingagent.model.observations import PastCommit
from codingagent.model.patterns import lazy_pattern

_TEXT, _PATH, _NAME, _LATELY, _OFTEN, _ALIKE = 3.0, 1.5, 1.0, 1.5, 0.5, 1.5
# Where there is no history, of files that hold a word of the task: large ones are changed more often.
_SIZE = 1.0
# Of tests and docs, unless the task asks for them; and of settings, which every release changes.
_TESTS, _DOCS, _SETTINGS = -1.0, -1.5, -1.5
# Of tests and docs that the task asks for too ("with a test"): the sources still come first.
_ASKED = -0.7
_ALIKE_COMMITS = 40
_MOST_FILES = 10
# A word of the task's first line counts as much as two of the rest.
_TITLE = 2.0
# Parameters of BM25: how soon more of the same word stops counting, and how much long files are held back.
_SATURATION, _LENGTH = 1.2, 0.75

# Those of the first line come first. More of them cost time, and find the rest of a long message instead.
_WORDS_LIMIT = 30
_WORD = lazy_pattern(r"\w+(?:[./-]\w+)*")
_PATH_LIKE = lazy_pattern(r"(?<![\w.])\.?\w+(?:[./-]\w+)*")
_PART = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d{2,}|[^\W\d_a-zA-Z]+")
_EXACT = lazy_pattern(
    r"[`\"']([^`\"'\n]{3,60})[`\"']"
    r"|((?<![\w-])--?[a-z][\w-]+|\w+(?:[._-]\w+)+|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w*|\b[A-Z]{2,}\b|\w+\(\))"
)
_COMMON = frozenset(
    re.findall(
        r"\S+",
        "a about add added all also an and any are as at be because been but by can change could do does"
        " don for from get has have if in into is it its just like make may more must need new no not now"
        " of on only or other our out please see should so some such than that the their them then there"
        " these they this to up us use used using want was we were what when where which will with would"
        " you your always both e.g each every i.e instead never once one same still under usual usually"
        " without",
    )
)
TESTS = lazy_pattern(
    r"(?:^|[/_.-])(?:tests?|specs?|__tests__|testdata|fixtures?)(?=$|[/_.-])", re.IGNORECASE
)
DOCS = lazy_pattern(
    r"(?:^|/)(?:docs?|examples?|docs_src|changelogs?|website)/|\.(?:md|rst|txt|adoc|mdx)$"
    r"|(?:^|/)(?:changes|changelog|history|readme|license)[^/]*$",
    re.IGNORECASE,
)
_CONFIGURED = lazy_pattern(
    r"(?:^|/)\.[^/]+|\.(?:json|toml|ya?ml|cfg|ini|xml|am|ac|in|gradle|mk|html|css)$"
    r"|(?:^|/)(?:makefile|dockerfile|setup\.py|requirements)[^/]*$|(?:^|/)(?:bench\w*|scripts)/",
    re.IGNORECASE,
)


class Query(Struct, frozen=True):
    """A task to look for: its words in lower case with their weights, and the kinds of files it names."""

    task: str
    """The task, and the check: what they name comes first."""
    words: tuple[str, ...]
    weights: tuple[float, ...]
    parts: frozenset[str] = frozenset()
    """Parts of the compound names in the task, in lower case."""
    exact: frozenset[str] = frozenset()
    """What the task quotes or writes as code: `x`, --x, a_b, aB, X_Y; in lower case."""
    wants_tests: bool = False
    wants_docs: bool = False


class Row(NamedTuple):
    """A file that was read: its size in characters, and how often each word of the query occurs."""

    path: str
    size: int
    counts: tuple[int, ...]


class Ranked(Struct, frozen=True):
    """A file with its score and the reasons: words counted, and when it was last committed."""

    path: str
    score: float
    words: Mapping[str, int] = {}
    changed_s: int | None = None
    """In seconds since the epoch."""
    is_named: bool = False
    is_aside: bool = False
    """Whether it is a test, a document or settings."""


def query(task: str, check: str = "") -> Query:
    """Return the words of a task that tell files apart, with the parts of compound names.

    Args:
        task: what the person wrote.
        check: their command: the files that it names count as named.
    """
    title, _, rest = task.strip().partition("\n")
    found: dict[str, float] = {}
    for text, weight in ((title, _TITLE), (rest, 1.0)):
        for name in _WORD.findall(text):
            for word in (name, *re.split(r"[./-]", name), *_PART.findall(name)):
                lower = word.lower().strip("_")
                if len(lower) > 2 and lower not in _COMMON and not lower.isdecimal():
                    found.setdefault(lower, weight)
    words = tuple(found)[:_WORDS_LIMIT]
    lower = task.lower()
    exact = {next(filter(None, each)).strip("().").lower() for each in _EXACT.findall(task)}
    return Query(
        f"{task}\n{check}",
        words,
        tuple(found[word] for word in words),
        frozenset(parts_of(task) - _COMMON),
        frozenset(each for each in exact if len(each) > 2),
        wants_tests=re.search(r"\b(?:tests?|specs?|fixtures?)\b", lower) is not None,
        wants_docs=re.search(r"\b(?:docs?|documentation|readme|changelog|typos?)\b", lower)
        is not None,
    )


def look(asked: Query, path: str, text: str) -> Row:
    """Count the words of a query in a file, inside longer words too."""
    lower = text.lower()
    return Row(path, len(text), tuple(lower.count(word) for word in asked.words))


def rank(
    asked: Query, rows: Sequence[Row], log: Sequence[PastCommit] = (), attached: Iterable[str] = ()
) -> list[Ranked]:
    """Return all files, those named by the task or attached first. The log has the latest first."""
    paths = [row.path for row in rows]
    lower = [path.lower() for path in paths]
    # A commit of most of the files, such as the first import, says nothing about any of them.
    log = [commit for commit in log if len(commit.paths) <= max(_MOST_FILES, len(rows) // 2)]
    by_text = bm25(asked, [row.counts for row in rows], [row.size for row in rows])
    by_path = bm25(asked, [tuple(path.count(word) for word in asked.words) for path in lower])
    last: dict[str, int] = {}
    for ago, commit in enumerate(log):
        for path in commit.paths:
            last.setdefault(path, ago)
    often = Counter(path for commit in log for path in commit.paths)
    most = math.log1p(max((often[path] for path in paths), default=0)) or 1.0
    alike = _alike(asked, log)
    title = asked.task.strip().partition("\n")[0].lower()
    names = [parts_of(path.rpartition("/")[2].partition(".")[0]) for path in paths]
    own = said_shares(names, title.__contains__)
    largest = math.log1p(max((row.size for row in rows), default=0)) or 1.0
    named = named_in(asked.task, paths) | set(attached)
    ranked = []
    for path, row, text, name, said in zip(paths, rows, by_text, by_path, own, strict=True):
        score = _TEXT * text + _PATH * name + _NAME * said + _ALIKE * alike.get(path, 0.0)
        aside = _of_its_kind(asked, path)
        score += aside
        if path in last:
            score += _LATELY / (1 + last[path] / 20) + _OFTEN * math.log1p(often[path]) / most
        if not log and (text or name):
            score += _SIZE * math.log1p(row.size) / largest
        changed_s = log[last[path]].at_s if path in last else None
        words = {word: count for word, count in zip(asked.words, row.counts, strict=True) if count}
        ranked.append(Ranked(path, score, words, changed_s, path in named, aside < 0))
    return sorted(ranked, key=lambda file: (not file.is_named, -file.score, file.path))


def named_in(task: str, paths: Iterable[str]) -> set[str]:
    """Return the paths that a task names: whole, or by an end that at most three of them share."""
    task = unicodedata.normalize("NFC", task)
    said = {word.lower() for word in said_in(task)}
    task = task.lower()
    found: dict[str, list[str]] = {}
    for path in paths:
        # A disk may keep other forms of the letters, and in some scripts \w ends within a word.
        parts = unicodedata.normalize("NFC", path).lower().split("/")
        for start in range(len(parts)):
            end = "/".join(parts[start:])
            if end in said or (not end.isascii() and "." in end and end in task):
                found.setdefault(end, []).append(path)
                break
    return {path for several in found.values() if len(several) <= 3 for path in several}


def said_in(task: str) -> set[str]:
    """Return the words of a task that look like paths."""
    return {word for word in _PATH_LIKE.findall(task) if "." in word or "/" in word}


def bm25(asked: Query, counts: Sequence[tuple[int, ...]], sizes: Sequence[int] = ()) -> list[float]:
    """Score each document against the query, the best 1; without sizes, length does not count."""
    number = len(counts)
    mean = sum(sizes) / number if sizes else 1.0
    holding = [sum(1 for count in column if count) for column in zip(*counts, strict=True)]
    weights = [
        weight * math.log(1 + (number - held + 0.5) / (held + 0.5))
        for held, weight in zip(holding, asked.weights, strict=False)
    ]
    scores = []
    for at, row in enumerate(counts):
        long = 1 - _LENGTH + _LENGTH * sizes[at] / (mean or 1.0) if sizes else 1.0
        held = (
            weight * count * (_SATURATION + 1) / (count + _SATURATION * long)
            for count, weight in zip(row, weights, strict=True)
            if count
        )
        scores.append(sum(held))
    best = max(scores, default=0.0) or 1.0
    return [score / best for score in scores]


def _of_its_kind(asked: Query, path: str) -> float:
    """Return what counts against a file that is no source of the program."""
    if TESTS.search(path):
        return _ASKED if asked.wants_tests else _TESTS
    if DOCS.search(path):
        return _ASKED if asked.wants_docs else _DOCS
    return _SETTINGS if _CONFIGURED.search(path) else 0.0


def said_shares(names: Sequence[set[str]], is_said: Callable[[str], bool]) -> list[float]:
    """Return which part of each name is said; rare parts weigh more."""
    held = Counter(part for parts in names for part in parts)
    weights = {part: math.log(1 + len(names) / count) for part, count in held.items()}
    said = set(filter(is_said, held))
    return [
        sum(weights[part] for part in parts & said) / (sum(weights[part] for part in parts) or 1.0)
        for parts in names
    ]


def parts_of(name: str) -> set[str]:
    """Return the parts of a compound name, in lower case."""
    return {part.lower() for part in _PART.findall(name) if len(part) > 2}


def _alike(asked: Query, log: Sequence[PastCommit]) -> dict[str, float]:
    """Score files by the past commits that changed them and whose messages are most like the task."""
    counts = []
    for commit in log:
        lower = commit.message.lower()
        counts.append(tuple(lower.count(word) for word in asked.words))
    scores = bm25(asked, counts)
    best = sorted(range(len(log)), key=lambda at: -scores[at])[:_ALIKE_COMMITS]
    total: dict[str, float] = defaultdict(float)
    for at in best:
        for path in log[at].paths:
            total[path] += scores[at] / math.sqrt(len(log[at].paths))
    most = max(total.values(), default=0.0) or 1.0
    return {path: score / most for path, score in total.items()}
