"""Outline a file: the lines that define something, and the blocks between them.

By expression: a line that looks like a definition of its language family, the headings of a text, the top
keys of data. What no family covers has no outline, and its blocks are pieces of equal length.
"""

import functools
import re
from collections.abc import Sequence

from codingagent.context.lines import LineSpan
from codingagent.model.patterns import lazy_pattern

_SCRIPT = (
    r"\s*(?:export\b|(?:async\s+)?function\b|(?:abstract\s+)?class\b|interface\b|enum\b|namespace\b|type\s+\w+.*="
    r"|(?:const|let|var)\s+[\w$]+.*(?:=>|function\b)|(?:module\.)?exports\b|[\w$.]+\s*=\s*(?:async\s+)?function\b"
    r"|(?:(?:public|private|protected|static|async|readonly|get|set|override)\s+)*(?!if|for|while|switch|catch|return"
    r"|else)[\w$#]+\s*(?:<.*>)?\([^;]*\)[^;=]*\{\s*$)"
)
_MANAGED = (
    r"\s*(?:(?:public|private|protected|internal|static|final|abstract|sealed|open|override|virtual|async|data|inline"
    r"|suspend|case|partial|default|synchronized|native|func|fun|def|class|interface|enum|record|object|trait|struct"
    r"|extension|protocol|namespace|init)\b[^;]*$)"
)
_PATTERNS = {
    "py pyi": r"\s*(?:async\s+def|def|class)\s|[A-Z][A-Z0-9_]+\s*(?::.*)?=",
    "js mjs cjs jsx ts tsx mts cts vue svelte": _SCRIPT,
    "go": r"(?:func|type|var|const)\b",
    "rs": r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:async|unsafe|const|default|extern(?:\s+\"\w+\")?)\s+)*"
    r"(?:fn|struct|enum|trait|impl|mod|type|union|static|macro_rules!)\b",
    "c h cc cpp cxx hpp hh m y l": r"(?:[A-Za-z_][^;={}()]*\([^;]*$|(?:static|typedef|struct|enum|union|class"
    r"|namespace|template|extern)\b.*|#\s*define\s+\w+\()",
    "java kt kts cs scala swift groovy": _MANAGED,
    "rb": r"\s*(?:def|class|module)\s",
    "php": r"\s*(?:(?:public|private|protected|static|abstract|final)\s+)*(?:function|class|interface"
    r"|trait|enum)\s",
    "sh bash zsh": r"\s*(?:function\s+\w+|[\w-]+\s*\(\))",
    "lua": r"\s*(?:local\s+)?function\b",
    "ex exs": r"\s*(?:def\w*)\s",
    "sql": r"\s*(?i:create|alter)\s",
    "md mdx markdown": r"#{1,6}\s",
    "rst": r"\.\. [\w-]+::",
    "json": r"(?:  |\t| {4})?\"[^\"]+\"\s*:",
    "yml yaml": r"[\w\"'.-][^:#]*:",
    "toml ini cfg": r"\[",
    "css scss less": r"[^\s@}/*][^;{]*\{|@\w+",
    "html xml": r"\s{0,4}<(?!/|!)[\w:-]+",
}
_PIECE_LINES = 40
_BLOCK_LINES = 80
_BEFORE = lazy_pattern(r"\s*(?:@|#(?!\s*define|include)|//|/\*|\*|--|;)")


@functools.cache
def _pattern(suffix: str) -> re.Pattern[str] | None:
    for suffixes, pattern in _PATTERNS.items():
        if suffix in suffixes.split():
            return re.compile(pattern)
    return None


def definitions(path: str, lines: Sequence[str]) -> list[LineSpan]:
    """Return each line that looks like a definition; none for an unknown kind of file."""
    pattern = _pattern(path.rpartition(".")[2].lower())
    if pattern is None:
        return []
    return [LineSpan(at, at) for at, line in enumerate(lines, 1) if pattern.match(line)]


def blocks(lines: Sequence[str], defined: Sequence[LineSpan]) -> list[LineSpan]:
    """Cut a file before each definition and what belongs to it, and at blank lines where that is long."""
    starts = {1}
    for span in defined:
        start = span.first
        while start > 1 and _BEFORE.match(lines[start - 2]):
            start -= 1
        starts.add(start)
    found: list[LineSpan] = []
    ends = [*sorted(starts)[1:], len(lines) + 1]
    for start, end in zip(sorted(starts), ends, strict=True):
        first = start
        while end - first > _BLOCK_LINES:
            cut = next(
                (
                    at
                    for at in range(first + _PIECE_LINES, first + _BLOCK_LINES)
                    if not lines[at - 1].strip()
                ),
                first + _PIECE_LINES - 1,
            )
            found.append(LineSpan(first, cut))
            first = cut + 1
        found.append(LineSpan(first, end - 1))
    return found
