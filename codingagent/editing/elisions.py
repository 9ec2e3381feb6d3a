"""Lines in place of text that was left out: `...`, `# rest unchanged`, or a lone comment where code stood."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import accumulate

from codingagent.editing import file_kinds
from codingagent.editing.indentation import is_alike
from codingagent.model.patterns import lazy_pattern, sections
from codingagent.model.plain_text import blanks

_DOTS = lazy_pattern(r"(?:\.{3,}|[…⋯⋮‥]+|(?:[·・。] ?){3,}|\. \. \.)")
_TOLD = {name: [line.strip() for line in body.splitlines()] for name, body in sections(__file__).items()}
_WORDS, _CLAIM, _CLAIM_END = (
    lazy_pattern("|".join(_TOLD[name]), re.IGNORECASE) for name in ("words", "claims", "ends of claims")
)
_COMMENT = lazy_pattern(
    r"(?:#|//|--|;+|%|\*|/\*+|\{/\*|<!--|\{#|\"\"\"|''')[ \t]*(.*?)[ \t]*"
    r"(?:\*+/\}?|-->|#\}|\"\"\"|''')?[,;]?"
)
_BRACKETED = lazy_pattern(r"[\[(<{‹«][ \t]*(.*?)[ \t]*[\])>}›»]")
_CELLS = lazy_pattern(r"[\"',:;\s\[\]]+")
_LINE_LIMIT = 200
# Every line that is one begins so: most lines do not.
_STARTS = frozenset(".…⋯⋮‥·・。#/-;%*{<[(‹«\"'")


def first_elision(lines: Sequence[str], known: Collection[str] = ()) -> int | None:
    """Return the index of the first line that replaces others, unless `known` has it, stripped."""
    found = (i for i in range(len(lines)) if is_elision(lines, i))
    return next((i for i in found if lines[i].strip() not in known), None)


def elision_in(body: str, old: str, path: str) -> str:
    """Return the line of a whole file in place of lines of the one that it would replace, or nothing."""
    lines, known = body.split("\n"), {line.strip() for line in old.split("\n")}
    if known <= {"", *map(str.strip, lines)}:
        return ""  # nothing is lost
    if file_kinds.is_python(path):
        # Its own dots are a body: they are indented.
        lines = [line for line in lines if not (line[:1].isspace() and _DOTS.fullmatch(line.strip()))]
    if file_kinds.ending(path) in ("json", "csv", "tsv"):
        lines = [line if line.strip() in known else _CELLS.sub("", line) for line in lines]
    at = first_elision(lines, known)
    return "" if at is None else lines[at].strip()


def is_elision(lines: Sequence[str], index: int, *, bare: bool = True) -> bool:
    """Return whether a line says only that something was left out."""
    line = lines[index]
    text = line.strip()
    if text[:1] not in _STARTS or len(line) > _LINE_LIMIT:
        return False
    if _DOTS.fullmatch(text):
        return bare and not _is_stub(lines, index)
    comment = _COMMENT.fullmatch(text)
    said = comment[1] if comment is not None else ""
    if not said:
        # `[...]` and `{...}` alone; `(...args)` and `{ ...state }` are code.
        bracketed = _BRACKETED.fullmatch(text)
        inner = "" if bracketed is None else bracketed[1]
        if _DOTS.match(inner) is None:
            return False
        return _DOTS.fullmatch(inner) is not None or _WORDS.search(inner) is not None
    if (dots := _DOTS.match(said)) is not None:
        # "...but not twice" goes on with a sentence.
        rest = said[dots.end() :]
        is_short = not rest[:1].strip() and len(rest.split()) < 7
        if is_short or _DOTS.search(rest) or _WORDS.search(rest):
            return True
    # A sentence about something that is unchanged is none: these comments are short.
    is_short = _WORDS.search(said) is not None and len(said.split()) <= 9
    is_claim = _CLAIM.match(said) is not None or said.startswith(("(", "["))
    return is_short and is_claim and _CLAIM_END.search(said) is not None


def _is_stub(lines: Sequence[str], index: int) -> bool:
    """Return whether `...` is Python's: the whole body of what the line above opens."""
    indent = blanks(lines[index])
    above = next((line for line in reversed(lines[max(index - 3, 0) : index]) if line.strip()), "")
    below = next((line for line in lines[index + 1 : index + 6] if line.strip()), "")
    opens = above.rstrip().endswith(":") and len(blanks(above)) < len(indent)
    documented = above.rstrip().endswith(('"""', "'''")) and blanks(above) == indent
    is_last = not below or len(blanks(below)) < len(indent)
    return bool(indent) and (opens or documented) and is_last


# --- a comment in place of lines, in any language ----------------------------------------------------

_BRACKETS = lazy_pattern(r"[*_]*[\[(（【].*[\])）】][*_.]*")
_BEHIND = lazy_pattern(r"(?:\*+[/@]\}?|\*\)|-->|#[>}]|-*%>|-*\}\}|-\}|\"+|'+)$")
_BARE = lazy_pattern(r"[#/*;%-]+")
_BLOCKS = r"/\*+|\{/\*|<!--|\{#|<%(?:#|--)|\{\{(?:!-*|--)|@\*|<#"
_OPENS = lazy_pattern(rf"{_BLOCKS}|[({{][*-]|\"{{3}}|'{{3}}")
_MARKS = {
    kind: marks for kinds, marks in (line.split(": ", 1) for line in _TOLD["marks"]) for kind in kinds.split()
}
# They speak to a tool.
_PRAGMA = lazy_pattern(
    r"!|-\*-|\W*(?:type:|eslint|ts-|pylint|(?:end)?region|fmt:|go:|\+build|nolint|istanbul|SPDX)|.*noqa"
)
# A value that is only dots; Python has three of its own.
_VALUE = r"(?<=[:=-])[ \t]+(?=(?:[…⋯⋮]|[<(\[{‹«](?:\.{3,}|[…⋯⋮])+[>)\]}›»])[,;]?[ \t]*$)"
_LONGEST = 3
# A line that is in more places shows none of them.
_RARE = 5
# So many lines were lost in one place, and of all lines this part or so many more than are new.
_FEWEST, _PART, _MANY, _SHRUNK, _GLUED = 3, 0.2, 60, 0.4, 0.3


@cache
def _marks(kind: str, path: str) -> re.Pattern[str]:
    if kind in _MARKS:
        marks = _MARKS[kind]
    elif file_kinds.is_prose(path):
        marks = "<!--|%%|\\{# "
    elif file_kinds.is_python(path):
        marks = r"#|(\"{3}|'{3})(?=.+\1$)"  # a string alone says no more
    elif file_kinds.is_code(path) or file_kinds.is_markup(path):
        marks = rf"//|{_BLOCKS}"
    else:
        marks = rf"#|//|--|;+|{_BLOCKS}"
    return re.compile(marks)


def _comment(line: str, path: str) -> str:
    """Return the words of a line that is only a comment; empty if it is none, or speaks to a tool."""
    text = line.strip()
    name = path.rpartition("/")[2]
    if (mark := _marks(file_kinds.ending(name), name).match(text)) is not None:
        said = _BEHIND.sub("", text[mark.end() :]).strip()
        is_said = any(map(str.isalpha, said)) and _PRAGMA.match(said) is None
        return said if is_said else ""
    is_linked = "](" in text or "://" in text
    return text if file_kinds.is_prose(path) and not is_linked and _BRACKETS.fullmatch(text) else ""


def _parted(lines: Sequence[str], path: str, known: Collection[str]) -> tuple[list[str], frozenset[int]]:
    """Return lines with new comments behind code, and dots for a value, on lines of their own; and which."""
    name = path.rpartition("/")[2]
    marks = _marks(file_kinds.ending(name), name).pattern
    behind = re.compile(rf"(?<=\S)[ \t]+(?=(?:{marks})[ \t])|{_VALUE}")
    out: list[str] = []
    tails: list[int] = []
    for line in lines:
        found = None
        if line.strip() not in known and len(line) < _LINE_LIMIT:
            bare = file_kinds.STRING.sub(lambda text: "_" * len(text[0]), line)
            found = behind.search(bare, len(blanks(line)))
        if found is not None:
            out.append(line[: found.start()])
            tails.append(len(out))
        out.append(line if found is None else line[found.end() :])
    return out, frozenset(tails)


def _said(lines: Sequence[str], path: str) -> list[str]:
    """Return the words of each line that is only a comment, be it alone between the marks of one."""
    said = [_comment(line, path) for line in lines]
    for at in range(1, len(lines) - 1):
        if _BEHIND.fullmatch(lines[at + 1].strip()) and _OPENS.fullmatch(lines[at - 1].strip()):
            said[at - 1 : at + 2] = [lines[at].strip(" \t*")] * 3
    return said


def _in_dots(lines: Sequence[str], path: str, known: Collection[str]) -> list[int]:
    """Return which new lines say only that something was left out; in Python, dots are a body, too."""
    fresh = (i for i, line in enumerate(lines) if line.strip() not in known)
    if file_kinds.is_python(path):
        fresh = (i for i in fresh if not lines[i][:1].isspace())
    return [i for i in fresh if is_elision(lines, i)]


def in_place_of(old: Sequence[str], new: Sequence[str], path: str) -> str:
    """Return the words of a new comment that stands alone where many of the old lines stood, or nothing.

    Its words mean nothing here: they may be of any language. It is alone if it says nothing of a line
    right behind it, and is no comment of the old text in other words.
    """
    if len(old) < _FEWEST and not any(map(_DOTS.search, new)):
        return ""
    known: dict[str, list[int]] = {}
    for index, line in enumerate(old):
        known.setdefault(line.strip(), []).append(index)
    new, tails = _parted(new, path, known)
    said = _said(new, path)
    for index in (*tails, *_in_dots(new, path, known)):
        said[index] = said[index] or (_DOTS.search(new[index]) and new[index].strip()) or ""
    runs = _fresh_runs(new, said, known)
    if not runs:
        return ""
    there = {line.strip() for line in new}
    code = [_is_code(line, path) for line in old]
    lost = _sums(c and line.strip() not in there for line, c in zip(old, code, strict=True))
    anchors = [i for i, line in enumerate(new) if 0 < len(known.get(line.strip(), ())) <= _RARE]
    anchors = [i for i in anchors if any(map(str.isalpha, new[i]))]
    added = _sums(_is_code(line, path) and line.strip() not in known for line in new)
    times = Counter(said[start] for start, _ in runs)
    net = lost[-1] - added[-1]
    total, first = 0, ""
    for start, end in runs:
        is_repeated = times[said[start]] > 1
        behind = new[end] if end < len(new) else ""
        is_dotted = _DOTS.search(said[start][:3] + said[start][-3:]) is not None
        is_glued = len(behind.strip()) > 2 and blanks(behind) == blanks(new[start])
        is_fresh = is_glued and start not in tails and behind.strip() not in known
        before = new[start - 1].strip() if start else ""
        is_doc = before.endswith(":") and new[start].lstrip()[:1] in ('"', "'") and not is_dotted
        rest = next(filter(str.strip, new[end:]), "")
        if is_doc and (before not in known or blanks(rest) == blanks(new[start])):
            continue
        if is_fresh and not (is_repeated and net >= _SHRUNK * sum(code)):
            continue
        if start in tails and not is_dotted and len(blanks(behind)) > len(blanks(new[start - 1])):
            continue  # it speaks of the level that its line opens
        is_glued = (is_glued or start in tails) and not (is_repeated or is_dotted)
        at = bisect_right(anchors, start)
        a, b = anchors[at - 1] if at else -1, anchors[at] if at < len(anchors) else len(new)
        befores = known[new[a].strip()] if at else [-1]
        afters = known[new[b].strip()] if b < len(new) else [len(old)]
        gaps = [
            (lost[after] - lost[before + 1], before + 1, after)
            for before in befores
            for after in afters[bisect_right(afters, before) :][:1]
        ]
        gone, gap_start, gap_end = max(gaps, default=(0, 0, 0))
        if behind.strip() or before or net < _SHRUNK * sum(code):
            gone -= added[b] - added[a + 1]
        if gone and start in tails and not any(map(str.isalpha, said[start])):
            return said[start]
        if gone < _FEWEST or (is_glued and gone < _GLUED * sum(code)):
            continue
        ends = (*old[gap_start : gap_start + 3], *old[max(gap_end - 3, gap_start) : gap_end])
        before_it = [words for line in ends if (words := _comment(line, path))]
        if any(is_alike(words, said[start]) for words in before_it):
            continue
        first, total = first or said[start], total + gone
        if is_repeated or net >= _SHRUNK * sum(code) or total >= min(_PART * sum(code), _MANY):
            return first
    return ""


def _fresh_runs(new: Sequence[str], said: Sequence[str], known: Collection[str]) -> list[tuple[int, int]]:
    """Return where comments begin and end that are new, short, and beside no other comment."""
    runs: list[tuple[int, int]] = []
    start = 0
    while start < len(new):
        end = start
        while end < len(new) and said[end]:
            end += 1
        # Code that is only commented out is there still.
        words = (*new[start:end], *said[start:end])
        fresh = (each.strip() not in known for each in words if any(map(str.isalpha, each)))
        # Several lines above all others are the head of a file.
        is_head = len({*said[start:end]}) > 1 and not any(map(str.strip, new[:start]))
        # A line of marks alone goes on to the next.
        is_longer = any(said[end + 1 : end + 2]) and _BARE.fullmatch(new[end].strip())
        if 0 < end - start <= _LONGEST and not (is_head or is_longer) and all(fresh):
            runs.append((start, end))
        start = end + 1
    return runs


def _is_code(line: str, path: str) -> bool:
    text = line.strip()
    return len(text) > 2 and (text[0] in "\"'" or not _comment(line, path))


def _sums(counted: Iterable[bool]) -> list[int]:
    return [0, *accumulate(map(int, counted))]
