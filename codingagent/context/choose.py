"""Choose how much of each file goes into a request: whole, or its outline and its best blocks."""

import math
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from codingagent.context.lines import LineSpan, lines_of
from codingagent.context.outline import blocks, definitions
from codingagent.context.rank import Query, Ranked, bm25
from codingagent.prompt.tokens import estimate

FILES_LIMIT = 12
_SHARES = (0.4, 0.25, 0.15, 0.1)
_WHOLE_SHARE = 0.25
# Of what a file may cost, what its outline may: the rest is for its blocks.
_OUTLINE_SHARE = 0.4
# Tests, documents and settings tell less for their size.
_ASIDE_SHARE = 0.08
# A heading and a line number cost something too.
_FILE_TOKENS, _LINE_TOKENS = 12, 2
# Less of a file is a scrap, unless it is all of it.
_LEAST_TOKENS = 60
# Of the budget, what other files may take where the task names some: more is worse.
_UNNAMED_SHARE = 0.25


class Chosen(Struct, frozen=True):
    """A file of the choice: which of its lines are shown, all of them if it is whole."""

    file: Ranked
    shown: tuple[int, ...]
    total: int
    tokens: int

    @property
    def is_whole(self) -> bool:
        return len(self.shown) == self.total


def choose(
    asked: Query,
    ranked: Iterable[Ranked],
    read: Callable[[str], str | None],
    budget: int,
) -> list[Chosen]:
    """Return at most twelve ranked files that together cost at most the budget in tokens, in their order.

    Where the task names files, all others get a quarter of it at most. `read` returns a file's text; None
    leaves it out.
    """
    files = list(ranked)
    chosen = _fill(asked, (file for file in files if file.is_named), read, budget)
    if chosen:
        left = budget - sum(part.tokens for part in chosen)
        budget = min(left, round(budget * _UNNAMED_SHARE))
    others = (file for file in files if not file.is_named)
    return [*chosen, *_fill(asked, others, read, budget, FILES_LIMIT - len(chosen))]


def _fill(
    asked: Query,
    ranked: Iterable[Ranked],
    read: Callable[[str], str | None],
    budget: int,
    limit: int = FILES_LIMIT,
) -> list[Chosen]:
    chosen: list[Chosen] = []
    texts: dict[str, str] = {}
    left = budget
    for file in ranked:
        if len(chosen) == limit or left < _FILE_TOKENS:
            break
        text = read(file.path)
        if not text:
            continue
        texts[file.path] = text
        whole = _whole(file, text)
        share = _SHARES[min(len(chosen), len(_SHARES) - 1)]
        most = _WHOLE_SHARE
        if file.is_aside and not file.is_named:
            share = most = _ASIDE_SHARE
        if whole.tokens <= min(budget * most, left):
            part = whole
        else:
            part = _part(asked, file, text, min(round(budget * share), left))
        if part.shown and (part.is_whole or part.tokens >= _LEAST_TOKENS):
            chosen.append(part)
            left -= part.tokens
    # What is left goes to sources first.
    for at, part in sorted(enumerate(chosen), key=lambda each: each[1].file.is_aside):
        whole = _whole(part.file, texts[part.file.path])
        if not part.is_whole and whole.tokens - part.tokens <= left:
            left -= whole.tokens - part.tokens
            chosen[at] = whole
    return chosen


def _whole(file: Ranked, text: str) -> Chosen:
    lines = len(lines_of(text))
    return Chosen(file, tuple(range(1, lines + 1)), lines, _FILE_TOKENS + estimate(text))


def _part(asked: Query, file: Ranked, text: str, budget: int) -> Chosen:
    lines = lines_of(text)
    defined = definitions(file.path, lines)
    shown: set[int] = set()
    spent = _FILE_TOKENS
    each = estimate(text) / len(text)
    cost = [math.ceil(each * len(line)) + _LINE_TOKENS for line in lines]

    def add(span: LineSpan, limit: float) -> bool:
        nonlocal spent
        new = {line for line in range(span.first, span.last + 1) if line not in shown}
        price = sum(cost[line - 1] for line in new)
        if spent + price > limit:
            return False
        spent += price
        shown.update(new)
        return True

    for span in sorted(defined, key=lambda span: (_depth(lines[span.first - 1]), span)):
        if not add(span, budget * _OUTLINE_SHARE):
            break
    for block in _best(asked, lines, blocks(lines, defined)):
        add(block, budget)
    return Chosen(file, tuple(sorted(shown)), len(lines), spent)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _best(asked: Query, lines: Sequence[str], found: Sequence[LineSpan]) -> list[LineSpan]:
    """Return the blocks in the order of what the task's words say for them; those without any last."""
    texts = ["\n".join(lines[block.first - 1 : block.last]).lower() for block in found]
    counts = [tuple(text.count(word) for word in asked.words) for text in texts]
    # Here a word of the task's first line counts no more than another.
    scores = bm25(replace(asked, weights=(1.0,) * len(asked.words)), counts)
    return [found[at] for at in sorted(range(len(found)), key=lambda at: (-scores[at], at))]
