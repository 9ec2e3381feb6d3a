"""Rewrite what only newer versions of Python and TOML read in the words of the parsers here.

A project may be for a newer version than runs this. Lines keep their numbers; only a parser reads the text.
"""

import contextlib
import re
from functools import cache

from codingagent.model.patterns import lazy_pattern

# A field of a formatted string, with strings of the same quotes in it (PEP 701), and one level of braces.
_FIELD = r"""\{(?:[^{}"'\n]|"[^"\n]*"|'[^'\n]*'|\{[^{}\n]*\})++\}"""
_LONG = r"(?:\\.|\{\{|\}\}|" + _FIELD.replace(r"\n", "") + r"|[^\\{}])*?"
_STRINGS = lazy_pattern(
    rf"""#[^\n]*|(\b(?:[rR]?[fFtT]|[fFtT][rR])(?:\"\"\"{_LONG}\"\"\"|'''{_LONG}'''"""
    rf"""|"(?:\\.|\{{\{{|\}}\}}|{_FIELD}|[^"\\\n{{}}])*+"|'(?:\\.|\{{\{{|\}}\}}|{_FIELD}|[^'\\\n{{}}])*+'))"""
    r"""|\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+'""",
    re.DOTALL,
)
# Type parameters and aliases (3.12), several exceptions without parentheses and templates (3.14).
_WORDS = (
    (lazy_pattern(r"^([ \t]*)type (\w+)(?:\[[^\n]*?\])?(?= *=)", re.MULTILINE), r"\1\2"),
    (lazy_pattern(r"^([ \t]*(?:async )?(?:def|class) \w+)\[[^\n]*?\](?=[(:])", re.MULTILINE), r"\1"),
    (lazy_pattern(r"^([ \t]*except\*? )([\w.]+(?:, *[\w.]+)+)(?=:)", re.MULTILINE), r"\1(\2)"),
    (lazy_pattern(r"\b[tT]([rR]?[\"'])"), r"f\1"),
    (lazy_pattern(r"^([ \t]*)lazy (?=import |from )", re.MULTILINE), r"\1"),
)
_TOML = lazy_pattern(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*+"|\'[^\'\n]*+\'|#[^\n]*|[\[\]{}\n]'
    r"|,(?=(?:\s|#[^\n]*\n)*\})|(?<![\d:.])\d\d:\d\d(?![\d:])",
    re.DOTALL,
)
_ESCAPE = lazy_pattern(r"\\(?:(e)|x([0-9a-fA-F]{2})|.)", re.DOTALL)


def older_python(text: str) -> str:
    """Return Python as versions before 3.12 read it; of formatted strings only their place is left."""

    def older(found: re.Match[str]) -> str:
        lines = "\n" * found[0].count("\n")
        return found[0] if found[1] is None else f'"""{lines}"""'

    text = text if _nests_strings() else _STRINGS.sub(older, text)
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text


@cache
def _nests_strings() -> bool:
    """Return whether this Python reads the quotes of a formatted string in it, as 3.12 and later do."""
    with contextlib.suppress(SyntaxError):
        return bool(compile("""f'{a['b']}'""", "", "eval"))
    return False


def older_toml(text: str) -> str:
    """Return TOML 1.1 as 1.0: inline tables on one line, escapes by number, times with seconds."""
    opened, late = list[str](), 0

    def older(found: re.Match[str]) -> str:
        nonlocal late
        mark, is_inline = found[0], "{" in opened
        if mark in "[{":
            opened.append(mark)
        elif mark in "]}":
            del opened[-1:]
        elif mark[0] == '"':
            return _ESCAPE.sub(lambda e: f"\\u00{'1b' if e[1] else e[2]}" if e[1] or e[2] else e[0], mark)
        elif mark[0].isdigit():
            return f"{mark}:00"
        elif mark == "\n":
            late, lines = (late + 1, " ") if is_inline else (0, "\n" * (late + 1))
            return lines
        elif mark == "," or (is_inline and mark[0] == "#"):
            return ""
        return mark

    return _TOML.sub(older, text)
