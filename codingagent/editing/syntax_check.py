"""Whether a text is Python, JSON or TOML as its file's name says; nothing is executed.

Only what certainly can't be read is a fault. Of what the parsers of this interpreter can't judge (too
deep, too long, another kind of file) nothing is said.
"""

import contextlib
import hashlib
import re
import warnings
from bisect import bisect_left, bisect_right
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from codingagent.editing.nearest import common_ends
from codingagent.model.patterns import lazy_pattern

if TYPE_CHECKING:
    import ast

# A parser takes seconds for more; the tree of a Python program takes a thousand times its size.
_LIMIT_CHARACTERS, _TREE_CHARACTERS = 1_000_000, 250_000
_PYTHON = (".py", ".pyi", ".pyw")
_JSON = (".json", ".ipynb", ".webmanifest", ".geojson", ".jsonld")
# What a program without an ending begins with; of Python 2 nothing can be said.
_SHEBANG = lazy_pattern(r"#![^\n]*\bpython(?:3[.\d]*)?(?: |$)", re.MULTILINE)
# Editors and compilers read comments in these.
_WITH_COMMENTS = lazy_pattern(r"(?:^|/)(?:\.vscode/|[tj]sconfig[^/]*$|\.?devcontainer[^/]*$)")
# A limit of this parser, and no fault of the text.
_LIMITS = ("too many", "Exceeds the limit")
_DUNDER = lazy_pattern(r"\b__[A-Za-z0-9]\w*?__\b")
_TOKEN = lazy_pattern(r"\w+|[^\w\s]")


class SyntaxFault(Struct, frozen=True):
    """Why a text can't be read: the line, 1-based, and the parser's words."""

    line: int
    message: str
    is_indentation: bool = False
    """A line that opens a block has none after it."""


_UNKNOWN = SyntaxFault(0, "nothing can be said of it")


def find_fault(path: str, text: str) -> SyntaxFault | None:
    """Return why a text can't be what its file's name says; None if it can, or if that is unknown."""
    fault = _check(path, text)
    return None if fault is _UNKNOWN else fault


def fault_in(path: str, text: str) -> str:
    """Return as words what `find_fault` returns; empty: nothing."""
    fault = find_fault(path, text)
    return "" if fault is None else f"line {fault.line}: {fault.message}"


def parses(path: str, text: str) -> bool | None:
    """Return whether a text is what its file's name says; None where that can't be told."""
    fault = _check(path, text)
    return None if fault is _UNKNOWN else fault is None


def is_known(path: str, text: str = "") -> bool:
    """Return whether anything can be said of such a file."""
    return _kind(path.lower(), text) != ""


def _kind(name: str, text: str) -> str:
    if "." not in name.rpartition("/")[2]:
        return ".py" if _SHEBANG.match(text) else ""
    kinds = {".py": _PYTHON, ".json": _JSON, ".toml": (".toml",)}
    found = (kind for kind, ends in kinds.items() if name.endswith(ends))
    return "" if _WITH_COMMENTS.search(name) else next(found, "")


def lost_underscores(old: str, new: str) -> tuple[str, ...]:
    """Return the names of Python such as `__name__` that a text has without their underscores.

    A renderer takes them for bold. The proof is the text before: the same neighbours stood around
    the name with its underscores, and nothing in the new text has them any more.
    """
    if len(old) + len(new) > _LIMIT_CHARACTERS:
        return ()
    names = dict.fromkeys(_DUNDER.findall(old))
    missing = {name.strip("_"): name for name in names if name not in new}
    if not missing:
        return ()
    there = _neighbours(old, frozenset(missing.values()))
    wanted = {(before, name.strip("_"), behind): name for before, name, behind in there}
    for bare in _neighbours(old, frozenset(missing)):
        wanted.pop(bare, None)
    found = (wanted.get(bare) for bare in _neighbours(new, frozenset(missing)))
    return tuple(dict.fromkeys(name for name in found if name))


def _neighbours(text: str, names: frozenset[str]) -> list[tuple[str, str, str]]:
    """Return each of the names with the tokens of its line beside it."""
    found: list[tuple[str, str, str]] = []
    for line in text.split("\n"):
        tokens = ["", *_TOKEN.findall(line), ""]
        threes = zip(tokens, tokens[1:], tokens[2:], strict=False)
        found += [each for each in threes if each[1] in names]
    return found


def _check(path: str, text: str) -> SyntaxFault | None:
    text = text.removeprefix("\ufeff")
    kind = _kind(path.lower(), text)
    if len(text) > _LIMIT_CHARACTERS or not kind:
        return _UNKNOWN
    key = kind, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    if key not in _FAULTS:
        try:
            found = _READERS[kind](text)
        except (RecursionError, MemoryError, UnicodeError):
            return _UNKNOWN
        if len(_FAULTS) >= _REMEMBERED:
            _FAULTS.clear()
        _FAULTS[key] = found
    return _FAULTS[key]


def _python(text: str) -> SyntaxFault | None:
    if len(text) > _TREE_CHARACTERS:
        return _UNKNOWN
    if (nul := text.find("\0")) >= 0:
        return SyntaxFault(text.count("\n", 0, nul) + 1, "it holds a NUL character")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                _parse(text)
            except SyntaxError:
                if (older := _older_python(text)) == text:
                    raise
                _parse(older)
    except SyntaxError as fault:
        # One that is nested more deeply than is looked into.
        if fault.msg.startswith((*_LIMITS, "f-string")):
            return _UNKNOWN
        is_indentation = isinstance(fault, IndentationError) and "expected an" in fault.msg
        return SyntaxFault(fault.lineno or 1, fault.msg, is_indentation)
    return None


def _parse(text: str) -> None:
    """Parse Python; of a text that is nearly the last one, only the statements that differ.

    Statements of the top level that can be parsed alone can be parsed beside any others.
    """
    # Imported late: most answers change no Python.
    import ast

    if "\r" in text:
        ast.parse(text)  # for the parser it has other lines
        return
    lines = text.split("\n")
    known, cuts = _LAST[0]
    head, tail = common_ends(known, lines)
    longer = len(lines) - len(known)
    before, after = bisect_right(cuts, head), bisect_left(cuts, len(known) - tail)
    first = cuts[before - 1]
    rest = [cut + longer for cut in cuts[after:] if cut < len(known)]
    part = lines[first : rest[0] if rest else None]
    # What ends the text has no end of its own, and what goes on in the next line is not whole.
    is_whole = not "".join(part[-1:]).endswith("\\") if rest else part
    if len(part) < len(lines) and is_whole:
        with contextlib.suppress(SyntaxError):
            tree = ast.parse("\n".join([*part, ""] if rest else part))
            _LAST[0] = lines, [*cuts[:before], *_begun(tree, part, first), *rest]
            return
    _LAST[0] = lines, [0, *_begun(ast.parse(text), lines, 0)]


def _begun(tree: "ast.Module", lines: list[str], first: int) -> list[int]:
    """Return at which lines a statement begins that goes on from nothing before it; the first aside."""
    return [
        first + node.lineno - 1
        for node in tree.body
        if not node.col_offset and not getattr(node, "decorator_list", None)
        if node.lineno > 1 and not lines[node.lineno - 2].endswith("\\")
    ]


# The lines of the Python that was parsed last, and before which of them it can be cut.
_LAST: list[tuple[list[str], list[int]]] = [([], [0])]


def _json(text: str) -> SyntaxFault | None:
    import json

    try:
        # Numbers may have any length.
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as fault:
        return SyntaxFault(fault.lineno, fault.msg)
    return None


def _toml(text: str) -> SyntaxFault | None:
    import tomllib

    if any(line.count(".") > _KEY_PARTS for line in text.split("\n")):
        return _UNKNOWN  # a key of so many parts takes time with the square of them
    try:
        tomllib.loads(text, parse_float=str)
    except tomllib.TOMLDecodeError as fault:
        if _NEWER_TOML.search(text):
            return _UNKNOWN
        found = re.search(r"\(at line (\d+), column \d+\)$", str(fault))
        line = int(found[1]) if found else text.count("\n") + 1
        return SyntaxFault(line, str(fault).partition(" (at ")[0])
    except ValueError:
        # A number of more digits than this interpreter converts.
        return _UNKNOWN
    return None


# A line with more dots may hold a key that nobody writes.
_KEY_PARTS = 300
_READERS = {".py": _python, ".toml": _toml, ".json": _json}
# What was found, by kind and digest. A text after an edit is read to place its lines and to judge the
# whole, and again before the next edit; reading it takes longer than all else that is done with it.
_FAULTS: dict[tuple[str, bytes], SyntaxFault | None] = {}
_REMEMBERED = 1_000


# --- what only newer versions read: a project may be for a newer one than runs this ---
# A field of a formatted string, with strings of the same quotes in it (PEP 701), and one level of braces.
_FIELD = r"""\{(?:[^{}"'\n]|"[^"\n]*"|'[^'\n]*'|\{[^{}\n]*\})++\}"""
_LONG = r"(?:\\.|\{\{|\}\}|" + _FIELD.replace(r"\n", "") + r"|[^\\{}])*?"
_NEWER_STRINGS = lazy_pattern(
    rf"""#[^\n]*|(\b(?:[rR]?[fFtT]|[fFtT][rR])(?:\"\"\"{_LONG}\"\"\"|'''{_LONG}'''"""
    rf"""|"(?:\\.|\{{\{{|\}}\}}|{_FIELD}|[^"\\\n{{}}])*+"|'(?:\\.|\{{\{{|\}}\}}|{_FIELD}|[^'\\\n{{}}])*+'))"""
    r"""|\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+'""",
    re.DOTALL,
)
# Type parameters and aliases (3.12), several exceptions without parentheses and templates (3.14).
_NEWER_WORDS = (
    (lazy_pattern(r"^([ \t]*)type (\w+)(?:\[[^\n]*?\])?(?= *=)", re.MULTILINE), r"\1\2"),
    (lazy_pattern(r"^([ \t]*(?:async )?(?:def|class) \w+)\[[^\n]*?\](?=[(:])", re.MULTILINE), r"\1"),
    (lazy_pattern(r"^([ \t]*except\*? )([\w.]+(?:, *[\w.]+)+)(?=:)", re.MULTILINE), r"\1(\2)"),
    (lazy_pattern(r"\b[tT]([rR]?[\"'])"), r"f\1"),
    (lazy_pattern(r"^([ \t]*)lazy (?=import |from )", re.MULTILINE), r"\1"),
)
# TOML 1.1: inline tables of several lines, a comma at their end, escapes, times without seconds.
_NEWER_TOML = lazy_pattern(r"\{[^{}\"']*\n|,\s*\}|\\[ex]|(?<![\d:.])\d\d:\d\d(?![\d:])")


def _older_python(text: str) -> str:
    """Return Python as versions before 3.12 read it; of formatted strings only their place is left."""

    def older(found: re.Match[str]) -> str:
        lines = "\n" * found[0].count("\n")
        return found[0] if found[1] is None else f'"""{lines}"""'

    text = text if _nests_strings() else _NEWER_STRINGS.sub(older, text)
    for pattern, words in _NEWER_WORDS:
        text = pattern.sub(words, text)
    return text


@cache
def _nests_strings() -> bool:
    """Return whether this Python reads the quotes of a formatted string in it, as 3.12 and later do."""
    with contextlib.suppress(SyntaxError):
        return bool(compile("""f'{a['b']}'""", "", "eval"))
    return False
