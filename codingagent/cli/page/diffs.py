"""Lay out a unified diff for the page: by files and lines, with what changed in a line marked."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from codingagent.model.paths import unquoted
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import on_screen

_HUNK = lazy_pattern(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_WORD = lazy_pattern(r"\w+|\s+|[^\w\s]")
_SHOWN_LINES = 3_000
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


def files_of(text: str, named: Iterable[str] = ()) -> list[DiffView]:
    """Return the files of a unified diff, as git writes it, and those `named` of which it has nothing."""
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
    for each in found:
        for before, after in [*each.pairs]:
            if before is not None and after is not None and before is not after:
                _mark(before, after)
    return found


def _mark(old: DiffRow, new: DiffRow) -> None:
    """Mark the words between those with which both lines begin and end, unless that is most of them."""
    sides = [_WORD.findall(row.pieces[0][0]) for row in (old, new)]
    first = _shared(*sides)
    last = _shared(*(words[first:][::-1] for words in sides))
    if 4 * (first + last) < sum(map(len, sides)):
        return
    for row, words in zip((old, new), sides, strict=True):
        end = len(words) - last
        parts = (words[:first], ""), (words[first:end], "word"), (words[end:], "")
        row.pieces = [("".join(part), style) for part, style in parts if part]


def _shared(old: Sequence[str], new: Sequence[str]) -> int:
    """Return with how many equal words both begin."""
    return next(
        (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
