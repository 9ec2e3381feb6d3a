"""Lay out a unified diff for the page: by files and lines, coloured by language, changed words marked."""

import difflib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from codingagent.model.paths import unquoted
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import on_screen

_HUNK = lazy_pattern(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_WORD = lazy_pattern(r"\w+|\s+|[^\w\s]")
# Colours cost time; a longer line has none. Some of pygments' lexers take for ever for a line of blanks: of
# those below the worst line that was found takes what the square of its length lets expect.
_COLOURED_CHARACTERS = 400
_NAMED = (
    "bash c cpp csharp css docker elixir go haskell html ini java javascript json jsx kotlin lua make perl"
    " php powershell python r ruby rust scala scss sql swift toml tsx typescript xml yaml"
)
_LANGUAGES = frozenset(_NAMED.split())
_MARKED_CHARACTERS = 400
_SHOWN_LINES = 3_000
# What colours and marks may cost in a view: characters, and pairs of words that are alike.
_COLOURED_IN_ALL = 300_000
_MARKED_IN_ALL = 500_000
_MARKED_PAIRS = 5_000
_NOT_HERE = "not all of it is shown here: `codingagent diff` shows more"

Piece = tuple[str, str]
"""A text with the classes of its style."""


class DiffRow(Struct):
    """A line of a diff: its sign (`+`, `-`, a space, or `@` for a gap), its numbers, and its pieces."""

    sign: str
    old: int | None
    new: int | None
    pieces: list[Piece]


class DiffView(Struct):
    path: str
    rows: list[DiffRow]
    about: str = ""
    """What is said of a file without lines to show."""

    @property
    def pairs(self) -> Iterator[tuple[DiffRow | None, DiffRow | None]]:
        """The rows side by side: each with the one that took its place."""
        removed: list[DiffRow] = []
        added: list[DiffRow] = []
        for row in (*self.rows, None):
            if row is not None and row.sign in "+-":
                (added if row.sign == "+" else removed).append(row)
                continue
            for number in range(max(len(removed), len(added))):
                yield (
                    removed[number] if number < len(removed) else None,
                    added[number] if number < len(added) else None,
                )
            removed, added = [], []
            if row is not None:
                yield row, row


def files_of_all(texts: Iterable[str]) -> list[list[DiffView]]:
    """Return the files of each of some diffs that are shown in one view."""
    spent = Counter[str]()
    return [files_of(text, spent=spent) for text in texts]


def files_of(text: str, named: Iterable[str] = (), spent: Counter[str] | None = None) -> list[DiffView]:
    """Return the files of a unified diff, as git writes it, and those `named` of which it has nothing.

    `spent` is what others of the view have cost.
    """
    spent = Counter() if spent is None else spent
    found: list[DiffView] = []
    old = new = 0
    shown = 0
    for line in text.split("\n"):
        if line.startswith("diff --git ") or (not found and line.startswith("--- ")):
            # Both of git's names are the same.
            pair = line.removeprefix("diff --git ")
            name = unquoted(pair[: len(pair) // 2]).removeprefix("a/")
            found.append(DiffView(line[4:] if line[0] == "-" else name, []))
            old = new = 0
        elif not found:
            continue
        elif hunk := _HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[2])
            if found[-1].rows:
                found[-1].rows.append(DiffRow("@", None, None, []))
        elif not new and not old:
            if line.startswith(("new file", "deleted file", "Binary files", "similarity")):
                found[-1].about = line.partition(" mode ")[0]
        elif line[:1] in ("+", "-", " "):
            if (shown := shown + 1) > _SHOWN_LINES:
                found[-1].about = _NOT_HERE
                continue
            sign, pieces = line[0], [(on_screen(line[1:]).expandtabs(4), "")]
            at = (old if sign != "+" else None), (new if sign != "-" else None)
            found[-1].rows.append(DiffRow(sign, *at, pieces))
            old, new = old + (sign != "+"), new + (sign != "-")
        elif line[:1] in ("\\", "…"):
            found[-1].rows.append(DiffRow("@", None, None, [(on_screen(line), "")]))
    known = {each.path for each in found}
    found += (DiffView(path, [], _NOT_HERE) for path in named if path not in known)
    # By its language, then the words in which a line changed.
    for each in found:
        for row in each.rows:
            line = "".join(text for text, _ in row.pieces)
            length = min(len(line), _COLOURED_CHARACTERS)
            spent["colours"] += max(length, length**2 // 200)
            if spent["colours"] < _COLOURED_IN_ALL:
                row.pieces = _coloured(each.path, line)
        for before, after in [*each.pairs]:
            if before is None or after is None or before is after:
                continue
            if spent["marks"] < _MARKED_IN_ALL:
                spent["marks"] += _mark(before, after)
    return found


def _coloured(path: str, line: str) -> list[Piece]:
    lexer = _lexer(path.rpartition("/")[2])
    if lexer is None or len(line) > _COLOURED_CHARACTERS or not line.strip():
        return [(line, "")]
    names = _names()
    found = [(text, names.get(kind, "")) for kind, text in lexer.get_tokens(line)]
    return [(text, f"t-{name}" if name else "") for text, name in found if text]


@cache
def _lexer(name: str) -> Any:
    from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        found = get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return None if _LANGUAGES.isdisjoint(found.aliases) else found


@cache
def _names() -> dict[Any, str]:
    """Return a style for each kind of token; those that say little have none."""
    from pygments.token import STANDARD_TYPES  # type: ignore[import-untyped]

    styles = {"k": "keyword", "c": "comment", "s": "string", "m": "number"}
    found = {kind: styles.get(short[:1], "") for kind, short in STANDARD_TYPES.items()}
    return {kind: name for kind, name in found.items() if name}


def _mark(old: DiffRow, new: DiffRow) -> int:
    """Mark the words in which two lines differ, unless they have little in common; return what it cost."""
    texts = ["".join(text for text, _ in row.pieces) for row in (old, new)]
    if max(map(len, texts)) > _MARKED_CHARACTERS:
        return 0
    words = [_WORD.findall(text) for text in texts]
    counts = [*map(Counter, words)]
    # Where one word comes again and again, the comparison takes the cube of that.
    pairs = sum(count * counts[1][word] for word, count in counts[0].items())
    if pairs > _MARKED_PAIRS:
        return 0
    match = difflib.SequenceMatcher(None, words[0], words[1], autojunk=False)
    if match.ratio() < 0.5:
        return pairs
    for row, side, sequence in ((old, 0, words[0]), (new, 1, words[1])):
        spans = []
        for tag, *ends in match.get_opcodes():
            first, last = ends[2 * side : 2 * side + 2]
            if tag != "equal" and first < last:
                start = sum(map(len, sequence[:first]))
                spans.append((start, start + sum(map(len, sequence[first:last]))))
        row.pieces = [*_cut(row.pieces, spans)]
    return pairs


def _cut(pieces: Sequence[Piece], spans: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    """Yield the pieces, cut where a span begins or ends; those within one are marked."""
    edges = sorted({edge for span in spans for edge in span})
    at = 0
    for text, style in pieces:
        cuts = [0, *(edge - at for edge in edges if 0 < edge - at < len(text)), len(text)]
        for first, last in itertools.pairwise(cuts):
            inside = any(start <= at + first < end for start, end in spans)
            yield text[first:last], f"{style} word".strip() if inside else style
        at += len(text)
