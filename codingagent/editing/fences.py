"""Code fences round a body: where one begins and ends, and what it holds."""

import re
from collections.abc import Sequence

from codingagent.model.patterns import lazy_pattern, words
from codingagent.model.plain_text import joined

_FENCE = lazy_pattern(r"[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^`\n]*?)[ \t]*")
NOTE = "the code fence round the body was taken off"
# The button of a code box, as pages show it in several languages.
_COPY = lazy_pattern(
    r"^[ \t]*(?:copy(?: code)?|copied!?|edit|(?:code )?kopieren|copier(?: le code)?|copiar(?: (?:o )?código)?"
    r"|copia(?: codice)?|kopieer(?: code)?|kopiuj(?: kod)?|(?:kodu )?kopyala|с?копировать(?: код)?"
    r"|复制(?:代码)?|编辑|複製(?:程式碼)?|編輯|(?:コードを)?コピー(?:する)?|(?:코드 )?복사"
    r"|نسخ(?: الكود)?|คัดลอก(?:โค้ด)?)[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_LANGUAGES = words(
    "plaintext text python py javascript js typescript ts jsx tsx bash sh shell zsh console powershell json"
    " yaml yml toml ini html xml css scss markdown md c cpp c++ csharp c# java kotlin swift go rust ruby php"
    " perl lua r sql diff makefile dockerfile latex tex vue svelte scala haskell elixir dart"
    " wrap run download"
)


def is_marked_up(body: str) -> bool:
    """Return, cheaply, whether a fence or a label can be round a body."""
    head, tail = body[:200], body[-60:]
    is_label = head.strip().partition("\n")[0].strip().lower() in _LANGUAGES
    is_label = is_label or _COPY.search(head) is not None
    return is_label or any(mark in part for mark in ("```", "~~~") for part in (head, tail))


def has_label(lines: Sequence[str]) -> bool:
    """Return whether lines begin with a language and the button of a code box: nobody writes both."""
    words = [line.strip().lower() for line in lines[:4] if line.strip()]
    return len(words) > 1 and words[0] in _LANGUAGES and _COPY.match(words[1]) is not None


def is_fence(line: str) -> bool:
    return _FENCE.fullmatch(line) is not None


def is_one_fence(lines: Sequence[str]) -> bool:
    """Return whether lines are one fence, open at the first and closed at the last that has a word."""
    words = [line for line in lines if line.strip()]
    is_pair = len(words) > 1 and is_fence(words[0]) and is_fence(words[-1])
    return is_pair and depth_after(words[1:-1], words[0]) == 0


def depth_after(lines: Sequence[str], opening: str) -> int:
    """Return how many fences are still open in the lines of one, or -1 if they close it."""
    marks = opening.strip()
    mark = marks[: len(marks) - len(marks.lstrip(marks[0]))]
    depth = 0
    for line in lines:
        found = _FENCE.fullmatch(line) if mark[:3] in line else None
        if found is None or not found[1].startswith(mark):
            continue
        depth += 1 if found[2] else -1
        if depth < 0:
            return -1
    return depth


def without_fence(body: str) -> str | None:
    """Return what a fence holds that opens on the first line of a body and closes on its last.

    A line "Copy code" and the language before it belong to the fence. One of the two fences may be
    outside of the tags. A fence that is balanced inside is no wrapper.
    """
    lines = body.split("\n")
    start, end = 0, len(lines)
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    has_language = start < end and lines[start].strip().lower() in _LANGUAGES
    label = start + has_language
    copied = label
    while copied < end and _COPY.fullmatch(lines[copied]):
        copied += 1
    # A language alone is a label only where both fences follow.
    is_pair = label + 1 < end and is_fence(lines[label]) and is_fence(lines[end - 1])
    # One alone is an empty body, such as that of `__init__.py`.
    has_label = label < copied
    first = copied if has_label else label if has_language and is_pair else start
    opened = _FENCE.fullmatch(lines[first]) if first < end else None
    closed = _FENCE.fullmatch(lines[end - 1]) if end - 1 > first else None
    if closed is not None and (closed[2] or (has_label and opened is None)):
        closed = None
    if has_label and has_language and opened is not None:
        language = opened[2].strip().lower()
        if language not in ("", lines[start].strip().lower()):
            opened = closed = None  # the label is that of the box, in which the fence is text
    if opened is None and closed is None and not has_label:
        return None
    begin = first + 1 if opened is not None else first
    stop = end - 1 if closed is not None else len(lines) - (not lines[-1])
    if opened is not None:
        depth = depth_after(lines[begin:stop], lines[first])
        if depth < 0 or (depth and closed is not None):
            return None
    elif closed is not None and sum(map(is_fence, lines[begin:stop])) % 2:
        return None
    return joined(lines[begin:stop])
