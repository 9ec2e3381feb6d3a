"""What only newer versions of Python and TOML read: a project may be for a newer one than runs this.

Python is rewritten in the words of the parser here, on as many lines. TOML of that kind is not judged.
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
# TOML 1.1: inline tables of several lines, a comma at their end, escapes, times without seconds.
_TOML = lazy_pattern(r"\{[^{}\"']*\n|,\s*\}|\\[ex]|(?<![\d:.])\d\d:\d\d(?![\d:])")


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


def is_newer_toml(text: str) -> bool:
    """Return whether a text may have what only TOML 1.1 reads."""
    return _TOML.search(text) is not None
