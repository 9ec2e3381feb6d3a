"""Read a whole file in a fence: its lines, and the ones that only name it."""

import re
from functools import lru_cache
from itertools import pairwise

from codingagent.editing import elisions
from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.chat_damage import Arrival
from codingagent.model.operations import CreateFile
from codingagent.model.patterns import lazy_pattern, words
from codingagent.model.plain_text import joined
from codingagent.protocols.foreign import fences
from codingagent.protocols.foreign.file_names import Files, Name, is_path, name_in_comment

_MARKDOWN = (".md", ".markdown", ".mdx", ".mdown")
# Files that hold what elsewhere is to be applied.
DIFFERENCES = (".diff", ".patch")

# What has to be the first line of its file, so that no comment can be above it.
_FIRST = lazy_pattern(
    r"#!|<\?(?:xml|php)|<!doctype|---[ \t]*$|@charset|#[ \t]*-\*-|\ufeff", re.IGNORECASE
)

# Endings of files that can have no comment.
_UNCOMMENTED = (".json", ".csv", ".txt")

# Words for the same language, as a fence line and as an ending of names.
_FAMILIES = """
    python py pyi pyx python3; javascript js jsx mjs cjs typescript ts tsx vue svelte node; json
    json5 jsonc jsonl ipynb; yaml yml; toml; html htm xhtml xml svg vue svelte xsd csproj php
    jinja hbs; css scss sass less; rust rs; go golang; java kotlin kt kts groovy gradle scala; c h
    cpp c++ cc cxx hpp objc m mm cuda cu ino; csharp cs c#; ruby rb rake; sql; lua; markdown md
    mdx; bash sh shell zsh fish bats; powershell ps1 pwsh; r; swift; dart
"""


@lru_cache(1000)
def _is_of_language(language: str, path: str) -> bool | None:
    """Return whether a fence says the language that its path's ending does; None: it can't be known."""
    ending = path.rpartition(".")[2].lower()
    families = list(map(words, _FAMILIES.split(";")))
    says = [family for family in families if language in family]
    is_known = says and any(ending in family for family in families)
    return any(ending in family for family in says) if is_known else None


def check_language(language: str, path: str) -> None:
    """Refuse a fence of another language: it may be the output, the settings or the use of that file."""
    if _is_of_language(language, path) is False:
        raise OperationError(
            f"its fence says {language}, which '{paths.shown(path)}' is not; if it is that file, send it"
            " with the fence of its language"
        )


def is_markdown(path: str, language: str) -> bool:
    """Return whether a file's text may hold fences of its own."""
    return path.lower().endswith(_MARKDOWN) or language in fences.MARKDOWN_LANGUAGES


def name_inside(lines: list[str], at: int, files: Files, language: str = "") -> Name | None:
    """Return the path that the first line of a file names in a comment, or None.

    A bare path is one too, where it can't be a line of the fence's language.
    """
    if not lines:
        return None
    bare = lines[0].strip()
    is_code = language not in fences.MARKDOWN_LANGUAGES and _is_of_language(language, bare)
    if is_code and "/" in bare and is_path(bare, files):
        return Name((bare,), at)
    return name_in_comment(lines[0], at, files)


def operation_of(
    lines: list[str], name: Name, files: Files, *, is_inside: bool
) -> tuple[CreateFile, tuple[str, ...]]:
    """Return the operation that a whole file asks for, and notes on how it was read.

    `is_inside`: the path is known from the first line only. Refuse a text that leaves something out.
    """
    name.only("one path above each file")
    path, note = files.whole(name)
    notes: tuple[str, ...] = (note,) if note else ()
    if name.is_new and path in files:
        notes += (f"{paths.shown(path)} was called new, and exists",)
    if not path.endswith(DIFFERENCES) and _is_difference(lines):
        raise OperationError(
            f"its lines look like a difference of '{paths.shown(path)}'; send that in a fence that says"
            " diff, or the file whole and without + and -; if the file has them, send"
            f' [CREATE_FILE path="{paths.shown(path)}"]'
        )
    elided = elisions.first_elision(lines)
    has_label = bool(lines) and (is_inside or _is_label(lines, path, files))
    text = [i for i, line in enumerate(lines) if line.strip()][has_label:]
    if has_label and not text:
        raise OperationError(
            f"it has nothing but the path '{paths.shown(path)}'; send its text too, or an empty"
            f' [CREATE_FILE path="{paths.shown(path)}"] if it has none'
        )
    if elided is not None and (path in files or all(elisions.is_elision(lines, i) for i in text)):
        raise OperationError(
            f"'{lines[elided].strip()}' stands for text of '{paths.shown(path)}' that was left out; send"
            " the file whole, or only an edit"
        )
    if elided is not None:
        notes += (f"'{lines[elided].strip()}' was written as it is",)
    if has_label:
        notes += (f"the first line, '{paths.shown(lines[0].strip())}', was taken as the path only",)
        lines = lines[1:]
    arrival = Arrival(in_code=True)
    return CreateFile(path, joined(lines), overwrite=path in files, arrival=arrival), notes


def _is_difference(lines: list[str]) -> bool:
    """Return whether lines have the marks of a difference: no file has these by itself."""
    if any(a[:1] == "-" and b[:1] == "+" for a, b in pairwise(lines)):
        return True
    marks = {line[0] for line in lines if line.strip()}
    return "+" in marks and marks <= {"+", "-", " "}


def _is_label(lines: list[str], path: str, files: Files) -> bool:
    """Return whether the first line names the path and can't be part of the file.

    Where the path is known from elsewhere the line was not needed for it: it is the file's own
    comment, if the file can have one there.
    """
    name = name_in_comment(lines[0], 0, files)
    if name is None or name.texts[0].rpartition("/")[2] != path.rpartition("/")[2]:
        return False
    is_first = len(lines) > 1 and _FIRST.match(lines[1]) is not None
    return is_first or path.lower().endswith(_UNCOMMENTED)
