"""What a file can hold, by its name: whether code fences, entities or typographic quotes may be meant in it.

Only what no file of a kind ever holds counts as a proof. A kind that is not known may hold anything.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from codingagent.model.chat_damage import ENTITY
from codingagent.model.patterns import lazy_pattern, word_lists

_WORDS = word_lists(__file__)
_CODE = _WORDS["code"]
_MARKUP = _WORDS["markup"]
_NAMES = _WORDS["names"]
_SHELLS = ("sh", "bash", "zsh", "ksh", "bats")


@lru_cache(64)
def ending(path: str) -> str:
    """Return what follows the last dot of a file's name, in lower case; empty if there is none."""
    name = path.rpartition("/")[2].lower()
    return name.rpartition(".")[2] if "." in name.lstrip(".") else ""


def _name(path: str) -> str:
    return path.rpartition("/")[2].lower()


def is_prose(path: str) -> bool:
    """Return whether a file is text for people, or has no ending that says otherwise."""
    return _name(path) not in _NAMES and ending(path) in _WORDS["prose"] | {""}


def is_program(path: str) -> bool:
    """Return whether no whole file of this kind begins or ends with a code fence."""
    return _name(path) in _NAMES or ending(path) in _CODE | _MARKUP | _WORDS["loose"]


def is_code(path: str) -> bool:
    """Return whether text for people is only in strings and comments in it."""
    return _name(path) not in _NAMES and ending(path) in _CODE


def is_markup(path: str) -> bool:
    """Return whether entities are its own way to write characters."""
    return ending(path) in _MARKUP


def is_makefile(path: str) -> bool:
    """Return whether recipes in it begin with a tab."""
    return _name(path) in ("makefile", "gnumakefile") or ending(path) == "mk"


def is_shell(path: str, lines: Sequence[str]) -> bool:
    """Return whether a POSIX shell reads it, by its ending, or by its first line where it has none."""
    shebang = lines[0] if lines and lines[0].startswith("#!") else ""
    return ending(path) in _SHELLS or (not ending(path) and shebang.rstrip().endswith(_SHELLS))


def is_python(path: str) -> bool:
    return ending(path) in ("py", "pyi", "pyw")


# What opens a run of text over several lines, and what ends it.
_ENDS = {'"""': '"""', "'''": "'''", "`": "`", "/*": "*/", "<!--": "-->", "<pre": "</pre"}
_ENDS |= {"<textarea": "</textarea", "=begin": "=end", r"\begin{verbatim}": r"\end{verbatim}"}
_ENDS |= {r"\begin{lstlisting}": r"\end{lstlisting}"}
_SCALAR = lazy_pattern(r"(\s*)(?:- )?[^#]*[:-][ \t]+[|>][-+0-9]*[ \t]*(?:#.*)?")
_HEREDOC = lazy_pattern(r"<<[-~]?[ \t]*(['\"]?)(\w+)\1")
# A pattern between slashes is one, too, where no operand is before it.
STRING = lazy_pattern(
    r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`(?:\\.|[^`\\])*`'
    r"|(?<=[(,=:])[ \t]*/(?![*/])(?:\\.|[^/\\])+/"
)


class TextState(NamedTuple):
    """What is open where a line begins: a run of text up to `end`, or a scalar of YAML by its key's depth."""

    end: str = ""
    scalar: int | None = None


AS_CODE = TextState()


def lines_of_text(lines: Iterable[str], path: str, state: TextState = AS_CODE) -> frozenset[int]:
    """Return the indexes of lines that begin within a string or comment of several lines.

    Without a parser, it may take code for text, and then nothing in it is taken for damage. `state` is
    what is open where the first line begins.
    """
    if is_prose(path) or not is_program(path):
        return frozenset(range(len([*lines]) + 1))
    step = stepper(path)
    found: set[int] = set()
    for index, line in enumerate(lines):
        is_text, state = step(line, state)
        if is_text:
            found.add(index)
    return frozenset(found)


@lru_cache(64)
def stepper(path: str) -> Callable[[str, TextState], tuple[bool, TextState]]:
    """Return what tells whether a line is text, and what is open after it; it is given what was before."""
    kind = ending(path)
    tokens, has_heredocs = _tokens(kind in _WORDS["ticked"]), not is_code(path)

    def step(line: str, state: TextState) -> tuple[bool, TextState]:
        end, scalar = state
        is_text = bool(end)
        if scalar is not None and (not line.strip() or len(line) - len(line.lstrip()) > scalar):
            return True, state
        if end and end.isidentifier():
            return True, AS_CODE if line.strip() == end else state
        if end := _end_behind(line, end, tokens):
            return is_text, TextState(end)
        if kind in ("yml", "yaml") and (opened := _SCALAR.fullmatch(line)) is not None:
            return is_text, TextState(scalar=len(opened[1]))
        here = _HEREDOC.search(line) if has_heredocs and "<<" in line else None
        return is_text, AS_CODE if here is None else TextState(here[2])

    return step


def _end_behind(line: str, end: str, tokens: re.Pattern[str]) -> str:
    """Return what ends the run of text that is open after a line; empty if none is."""
    for found in tokens.finditer(line):
        token = found[0]
        if token.startswith("\\") and token not in _ENDS and token not in _ENDS.values():
            continue  # escaped
        if not end:
            end = _ENDS.get(token, "")
        elif token == end:
            end = ""
    return end


@cache
def _tokens(has_ticks: bool) -> re.Pattern[str]:
    marks = {mark for run in _ENDS.items() for mark in run if has_ticks or mark != "`"}
    every = sorted(marks, key=len, reverse=True)
    return re.compile("|".join([*map(re.escape, every), r"\\."]))


def bare(line: str, path: str) -> str:
    """Return a line of code without its strings and its comment."""
    if line.lstrip().startswith(("*", "//", "#", "--")):
        return ""
    line = STRING.sub(" ", line)
    kind = ending(path)
    mark = "#" if is_python(path) else "--" if kind in _WORDS["dash comments"] else "//"
    # A string that does not end here, or has begun further up, is text to the end of the line.
    return re.split(rf"{mark}|/\*|[\"'`]", line, maxsplit=1)[0]


def cannot_hold(trace: re.Pattern[str], new: Iterable[str], path: str, text: frozenset[int]) -> bool:
    """Return whether a trace is in lines of code where only code can be; `text` are those within text."""
    has_ampersands = is_makefile(path) or ending(path) in _WORDS["with ampersands"]
    is_strict = is_code(path) or (trace is ENTITY and has_ampersands)
    return is_strict and any(
        index not in text and trace.search(line) and trace.search(bare(line, path))
        for index, line in enumerate(new)
    )
