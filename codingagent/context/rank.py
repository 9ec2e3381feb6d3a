"""Order the files of a workspace by how much a task speaks for each of them.

Without an index or a parser: how often the task's words occur in a file and in its path, how much of the
file's own name its first line says, and which files past commits changed. Each signal ranges from 0 to 1. The
weights were fitted on histories of real repositories; imports and files changed together added nothing worth
their code, nor did the names in the best blocks as words of a second round.
"""

import functools
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from operator import add
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model.observations import PastCommit
from codingagent.model.patterns import lazy_pattern, word_lists

_TEXT, _PATH, _NAME, _LATELY, _ALIKE, _MESSAGES = 3.0, 1.5, 1.0, 1.5, 0.7, 1.5
# Where there is no history, of files that hold a word of the task: large ones are changed more often.
_SIZE = 1.0
# Files beside good ones: of the mean of the three best in the folder.
_FOLDER = 0.2
# Sources come before tests; then come documents, and settings, which every release changes.
_TEST, _ASIDE = -1.0, -1.5
_ALIKE_COMMITS = 40
# The messages of a file's commits are one text, of so many characters more; wide commits say little of one.
_FEW_MESSAGES, _WIDE_COMMIT = 200, 30
# What is told of a file that such commits changed at least half as much as any.
_MUCH_ALIKE, _LIKE = 0.5, "past commits like this task changed it"
_WORDS_TOLD = 3
# Where no file scores more, a choice showed 35 % of what changed, else 66 %. Without history all score less.
_SURE, _SURE_ALONE = 5.0, 3.3
BY_TASK = "named in the task"
# A word of the first line counts as much as two of the rest; more does what is quoted or written as code.
_TITLE, _EXACT = 2.0, 1.3
# And so much that only asks for files of a kind.
_KIND = 0.2
# Parameters of BM25: how soon more of the same word stops counting, and how much long files are held back.
_SATURATION, _LENGTH = 1.2, 0.75
# Those as code come first, then those of the first line. More of them cost time, and find the rest of a
# long message instead.
_WORDS_LIMIT = 30
_WORD = lazy_pattern(r"\w+(?:[./-]\w+)*")
_PATH_LIKE = lazy_pattern(r"(?<![\w.])\.?\w+(?:[./-]\w+)*")
_PART = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d{2,}|[^\W\d_a-zA-Z]+")
# Four letters before it are enough of a root.
_ENDING = lazy_pattern(
    r"(?<=\w{4})(?:at(?:ions?|ors?)|ings?|ers?|ions?|ments?|it(?:y|ies)|ies|[ai]ble|e[ds]|ly|al|e)$"
)
_AS_CODE = lazy_pattern(
    r"[`\"']([^`\"'\n]{3,60})[`\"']"
    r"|((?<![\w-])--?[a-z][\w-]+|(?<!\w)\w+(?:[._-]\w+)+|(?<![a-z])[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w*"
    r"|\b[A-Z]{2,}\b|[A-Z]{2,}[a-z]{2,}\w*|(?<!\w)\w+(?=\((?!e?s\))))"
)
_WORDS = word_lists(__file__)
TESTS = lazy_pattern(
    r"(?i:(?:^|[/_.-])(?:tests?|specs?|testdata|fixtures?)(?=$|[/_.-]))|[a-z\d](?:Test|Spec)s?(?=[/.])"
)
DOCS = lazy_pattern(
    r"(?i)(?:^|/)(?:docs?|examples?|docs_src|changelogs?|website)/|\.(?:md|rst|txt|adoc|mdx)$"
    r"|(?:^|/)(?:changes|changelog|history|readme|license)[^/]*$"
)
_CONFIGURED = lazy_pattern(
    r"(?i)(?:^|/)\.[^/]+|\.(?:json|toml|ya?ml|cfg|ini|xml|am|ac|in|m4|gradle(?:\.kts)?|mk|cmake|html|css"
    r"|\w+proj|props|targets|sln\w*|dotsettings|properties|neon|dist|gemspec|podspec|plist|xc\w+|bat|cmd|ps1)$"
    r"|(?:^|/)(?:(?:make|docker|gem|rake|pod)file|setup\.py|requirements|gradlew|cmakelists)[^/]*$"
    r"|(?:^|/)(?:bench\w*|scripts)/"
)


class Query(Struct, frozen=True, eq=False):
    """A task to look for: its words in lower case, with their weights; each is like no other."""

    task: str
    words: Mapping[str, float]
    roots: tuple[str, ...]
    stems: tuple[str, ...]
    """The words without their endings, as they are looked for in files; and without a last s."""
    exact: frozenset[str] = frozenset()
    """What the task quotes or writes as code: `x`, --x, a_b, aB, X_Y; in lower case."""
    kinds: frozenset[str] = frozenset()
    """Whether it asks for tests ("test"), for documents ("doc")."""
    check: str = ""

    def named(self, paths: Collection[str]) -> dict[str, str]:
        """Return the paths that the task, or the check, names: they come first; and the reason."""
        by_check = dict.fromkeys(sorted(named_in(self.check, paths)), "named in the check")
        return by_check | dict.fromkeys(sorted(named_in(self.task, paths)), BY_TASK)

    def count(self, text: str) -> tuple[int, ...]:
        """Return how often each word's root occurs in a text in lower case, inside longer words too."""
        return tuple(map(text.count, self.roots))

    def count_parts(self, text: str) -> tuple[int, ...]:
        """Return how often each word is a part of a name in a text: "too" is none of "tool"."""
        low = text.lower()
        if not any(map(low.__contains__, self.stems)):  # as most texts have none
            return (0,) * len(self.words)
        have = Counter(map(str.lower, _PART.findall(text)))
        return tuple(
            have[word] + have[f"{word}s"] + (have[word[:-1]] if word[-1] == "s" else 0)
            if word.isalpha()
            else low.count(word)
            for word in self.words
        )


class Row(NamedTuple):
    """A file that was read: its size in characters, and how often each word of the query occurs."""

    path: str
    size: int
    counts: tuple[int, ...]


class Ranked(Struct, frozen=True):
    """A file with its score and the reasons, among them words counted, and when it was last committed."""

    path: str
    score: float
    words: Mapping[str, int] = {}
    changed_s: int | None = None
    """In seconds since the epoch."""
    named: str = ""
    """Why it comes first; empty: it does not."""
    reasons: tuple[str, ...] = ()


@functools.lru_cache(maxsize=10)
def query(task: str, check: str = "") -> Query:
    """Return the words of a task that tell files apart, with the parts of compound names."""
    said = {next(filter(None, each)).strip("().").lower() for each in _AS_CODE.findall(task)}
    title, _, rest = task.strip().partition("\n")
    found: dict[str, float] = {}
    for text, weight in ((title, _TITLE), (rest, 1.0)):
        for name in _WORD.findall(text):
            for word in (name, *re.split(r"[./-]", name), *_PART.findall(name)):
                lower = word.lower().strip("_")
                if len(lower) > 2 and lower not in _WORDS["common"] and not lower.isdecimal():
                    found.setdefault(lower, weight * (_EXACT if lower in said else 1))
    kinds = frozenset(kind for kind in ("test", "doc") if _WORDS[kind] & found.keys())
    # "With tests and documentation" says little of what they are about.
    found |= {each: found[each] * _KIND for each in found if each in _WORDS["of kinds"]}
    best = dict(islice(sorted(found.items(), key=lambda each: each[0] not in said), _WORDS_LIMIT))
    exact = frozenset(each for each in said if len(each) > 2)
    stems = tuple(word.removesuffix("s") for word in best)
    return Query(task, best, tuple(map(_root, best)), stems, exact, kinds, check)


def look(asked: Query, path: str, text: str) -> Row:
    return Row(path, len(text), asked.count(text.lower()))


def rank(
    asked: Query, rows: Sequence[Row], log: Sequence[PastCommit] = (), near: Mapping[str, str] = {}
) -> list[Ranked]:
    """Return all files, those that are named or `near` first, for a reason. The log has the latest first."""
    paths = [row.path for row in rows]
    by_text = bm25(asked, [row.counts for row in rows], [row.size for row in rows])
    in_paths = [asked.count(path.lower()) for path in paths]
    by_path = bm25(asked, in_paths)
    last = {path: ago for ago, commit in reversed([*enumerate(log)]) for path in commit.paths}
    told = [asked.count_parts(commit.message) for commit in log]
    alike, messages = _alike(asked, log, told), _by_messages(asked, log, told)
    title = asked.task.strip().partition("\n")[0].lower()
    names = [frozenset(map(_root, parts_of(path.rpartition("/")[2].partition(".")[0]))) for path in paths]
    own = said_shares(names, title)
    largest = math.log1p(max((row.size for row in rows), default=0)) or 1.0
    named = {**near, **asked.named(paths)}
    ranked = []
    for path, row, counts, text, name, said in zip(paths, rows, in_paths, by_text, by_path, own, strict=True):
        score = _TEXT * text + _PATH * name + _NAME * said
        score += _ALIKE * alike.get(path, 0.0) + _MESSAGES * messages.get(path, 0.0)
        score += _LATELY / (1 + last.get(path, math.inf) / 20)
        if TESTS.search(path):
            score += _TEST
        elif DOCS.search(path) or _CONFIGURED.search(path):
            score += _ASIDE
        if not log and (text or name):
            score += _SIZE * math.log1p(row.size) / largest
        held = {word: count for word, count in zip(asked.words, row.counts, strict=True) if count}
        changed_s = log[last[path]].at_s if path in last else None
        named_so = [f'"{word}"' for word, count in zip(asked.words, counts, strict=True) if count]
        reasons = (f"its path has {', '.join(named_so[:_WORDS_TOLD])}",) * bool(named_so)
        reasons += (_LIKE,) * (alike.get(path, 0.0) >= _MUCH_ALIKE)
        ranked.append(Ranked(path, score, held, changed_s, named.get(path, ""), reasons))
    folders: dict[str, list[float]] = defaultdict(list)
    for file in ranked:
        folders[file.path.rpartition("/")[0]].append(file.score)
    beside = {folder: sum(nlargest(3, scores)) / 3 for folder, scores in folders.items()}
    ranked = [replace(f, score=f.score + _FOLDER * beside[f.path.rpartition("/")[0]]) for f in ranked]
    return sorted(ranked, key=lambda file: (not file.named, -file.score, file.path))


def is_unsure(ranked: Sequence[Ranked], log: Sequence[PastCommit]) -> bool:
    """Return whether no file stands out for the task."""
    sure = _SURE if log else _SURE_ALONE
    return not any(file.named for file in ranked[:1]) and all(file.score < sure for file in ranked)


def named_in(task: str, paths: Iterable[str]) -> set[str]:
    """Return the paths that a task names: whole, or by an end that at most three of them share."""
    task = unicodedata.normalize("NFC", task)
    said, task = {word.lower() for word in said_in(task)}, task.lower()
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
    sizes = sizes or [1] * len(counts)
    mean = sum(sizes) / (len(counts) or 1) or 1.0
    holding = [len(counts) - column.count(0) for column in zip(*counts, strict=True)]
    weights = [
        weight * math.log(1 + (len(counts) - held + 0.5) / (held + 0.5))
        for held, weight in zip(holding, asked.words.values(), strict=False)
    ]
    scores = []
    for row, size in zip(counts, sizes, strict=True):
        long = _SATURATION * (1 - _LENGTH + _LENGTH * size / mean)
        each = zip(row, weights, strict=True) if any(row) else ()
        scores.append(sum(weight * count / (count + long) for count, weight in each if count))
    best = max(scores, default=0.0) or 1.0
    return [score / best for score in scores]


def said_shares(names: Sequence[frozenset[str]], said: Container[str]) -> list[float]:
    """Return which part of each name is said; rare parts weigh more."""
    held = Counter(part for parts in names for part in parts)
    weights = {part: math.log(1 + len(names) / count) for part, count in held.items()}
    known = {part for part in held if part in said}
    return [
        sum(weights[part] for part in has) / sum(weights[part] for part in parts) if has else 0.0
        for parts, has in ((parts, parts & known) for parts in names)
    ]


@functools.lru_cache(maxsize=10_000)
def parts_of(name: str) -> frozenset[str]:
    """Return the parts of a compound name, in lower case."""
    return frozenset(part.lower() for part in _PART.findall(name) if len(part) > 2)


@functools.lru_cache(maxsize=10_000)
def _root(word: str) -> str:
    """Return a word without its ending: "cleaner", "cleaning" and "cleaned" are "clean"."""
    return _ENDING.sub("", word) if word.isalpha() else word


def _alike(asked: Query, log: Sequence[PastCommit], told: Sequence[tuple[int, ...]]) -> dict[str, float]:
    """Score files by the past commits that changed them and whose messages are most like the task."""
    best = sorted(zip(bm25(asked, told), log, strict=True), key=lambda each: -each[0])[:_ALIKE_COMMITS]
    total: dict[str, float] = defaultdict(float)
    for score, commit in best:
        for path in commit.paths:
            total[path] += score / math.sqrt(len(commit.paths))
    most = max(total.values(), default=0.0) or 1.0
    return {path: score / most for path, score in total.items()}


def _by_messages(
    asked: Query, log: Sequence[PastCommit], told: Sequence[tuple[int, ...]]
) -> dict[str, float]:
    """Score files by the messages of all commits that changed them, as if these were their text."""
    counts: dict[str, tuple[int, ...]] = {}
    sizes = Counter[str]()
    for commit, row in zip(log, told, strict=True):
        for path in commit.paths if len(commit.paths) <= _WIDE_COMMIT else ():
            counts[path] = tuple(map(add, counts[path], row)) if path in counts else row
            sizes[path] += len(commit.message)
    scores = bm25(asked, [*counts.values()], [sizes[path] + _FEW_MESSAGES for path in counts])
    return dict(zip(counts, scores, strict=True))
