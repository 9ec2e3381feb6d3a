"""Secrets of files whose form says where they are: netrc, pgpass, htpasswd, manifests of Kubernetes."""

import re
from collections.abc import Iterator

from codingagent.model.patterns import lazy_pattern
from codingagent.secrets import assigned, values
from codingagent.secrets.files import is_secret_file
from codingagent.secrets.rules import rows
from codingagent.secrets.texts import Places
from codingagent.secrets.values import Form, form_of

# The end of a path, and the expression whose group 1 is a secret.
_BY_PATH = [row.split(None, 1) for row in rows("forms of files")]
# One search tells nearly all paths.
_FORMED = lazy_pattern(rf"(?:^|[/._])(?:{'|'.join(end for end, _ in _BY_PATH)})$")
_MANIFEST = lazy_pattern(r"^[ \t{-]*[\"']?kind[\"']?:[ \t]*[\"']?Secret\b", re.MULTILINE)
_ENTRIES = lazy_pattern(
    r"^(?P<indent>[ -]{0,20})(?:data|stringData):[ \t]*(?:\{([^{}]{1,20000})\}|\r?\n)"
    r"|\"(?:data|stringData)\"\s{0,9}:\s{0,9}\{([^{}]{1,20000})\}",
    re.MULTILINE,
)
_ENTRY = lazy_pattern(
    r"[ ]+(?:[\w.-]{1,100}:[ \t]+)?[\"']?([^\s\"'#][^\n\r\"'#]{2,5000}?)[\"']?[ \t]*\r?$",
    re.MULTILINE,
)
_PAIR = lazy_pattern(r"[\w.-]{1,100}[\"']?\s{0,9}:\s{0,9}[\"']?([^\s\"',}]{3,5000})")
# Columns of a table, one of which may be of secrets.
_CELL = lazy_pattern(r"[\w .\"'*-]{0,40}")
HEADINGS = ("passw", "pwd", "secret", "token", "apikey", "api key", "api_key", "api-key")
_HEADER_CHARACTERS = 400
_BORDER = set("-+|: =")
_IN_QUOTES = lazy_pattern(r"\"[^\"\n]{0,500}\"|'(?:[^'\n\\]|\\.){0,500}'")
_SQL = lazy_pattern(r"\b(?:INSERT|insert|COPY|copy)\b")
_INSERT = lazy_pattern(
    r"\(([^()]{5,2000})\)\s{0,20}(?:(values?)\s{0,20}|from stdin;\r?\n)", re.IGNORECASE
)
_TUPLE = lazy_pattern(
    r"\s{0,20},?\s{0,20}\(((?:'(?:[^'\\\n]|\\.|''){0,300}+'[^'()\n]{0,50}|[^'()\n]{1,50}){0,50}+)\)"
)
_TABBED = lazy_pattern(r"(?!\\\.)([^\n]{1,4000})\n")


def spans(text: str, leads: Places, path: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and kind of the secrets that the form of a file shows."""
    if path:
        yield from _in_file(text, path)
    if "Secret" in text and _MANIFEST.search(text):
        yield from _manifest(text)
    if leads and _SQL.search(text):
        yield from _rows_of_sql(text)
    if "\n" in text and form_of(path) is not Form.CODE:
        yield from _columns(text, leads)


def _in_file(text: str, path: str) -> Iterator[tuple[int, int, str]]:
    """Yield the secrets that the name of the file tells."""
    name = path.replace("\\", "/").casefold()
    for end, line in _BY_PATH if _FORMED.search(name) else ():
        if re.search(rf"(?:^|[/._])(?:{end})$", name):
            for match in re.finditer(line, text, re.MULTILINE):
                if not values.is_reference(match[1]) or match[1].isalnum():
                    yield match.start(1), match.end(1), "PASSWORD"
    bare = text.strip()
    if 8 <= len(bare) <= 5000 and len(bare.split()) == 1 and _is_of_one_secret(name):
        start = text.index(bare)
        if "=" not in bare.rstrip("=") and not values.is_reference(bare):
            yield start, start + len(bare), "SECRET"


def _is_of_one_secret(path: str) -> bool:
    """Return whether a file with one word holds a secret, as those that containers are given do."""
    folder, _, name = path.rpartition("/")
    kind = assigned.kind_of(name.removesuffix(".txt"))
    return kind not in (None, "MAYBE") or folder.endswith("secrets") or is_secret_file(path)


def _manifest(text: str) -> Iterator[tuple[int, int, str]]:
    end = 0
    for entries in _ENTRIES.finditer(text):
        if pairs := entries.lastindex and max(2, entries.lastindex):
            found = [*_PAIR.finditer(text, *entries.span(pairs))] if entries[pairs] else []
            yield from ((*each.span(1), "SECRET") for each in found if values.is_literal(each[1]))
            if found:
                continue
        if entries["indent"] is None or entries.end() < end:
            continue
        end = entries.end()
        margin = len(entries["indent"])
        while end < len(text):
            stop = text.find("\n", end) + 1 or len(text)
            line = text[end:stop]
            bare = line.strip()
            if bare and len(line) - len(line.lstrip(" ")) <= margin:
                break
            has_none = bare.startswith("#") or bare.endswith((":", "|", ">", "|-", ">-"))
            entry = None if has_none else _ENTRY.match(text, end, stop)
            if entry and values.is_literal(entry[1]):
                yield *entry.span(1), "SECRET"
            end = stop


def _columns(text: str, leads: Places) -> Iterator[tuple[int, int, str]]:
    """Yield the values below a heading that calls them secrets: of CSV, Markdown, a database's table."""
    at = 0
    for found in sorted(at for word in HEADINGS for at in leads.get(word, ())):
        if found < at:
            continue
        start = text.rfind("\n", max(at, found - _HEADER_CHARACTERS), found) + 1 or at
        at = text.find("\n", found) + 1 or len(text)
        header = text[start:at]
        sign = next((each for each in "|\t;," if each in header), "")
        if not sign or len(header) > _HEADER_CHARACTERS:
            continue
        cells = header.strip(" \r\n").split(sign)
        if not all(map(_CELL.fullmatch, cells)) or sum(map(bool, cells)) < 2:
            continue
        low = max(0, start - _HEADER_CHARACTERS)
        above = text[text.rfind("\n", low, max(0, start - 1)) + 1 : start]
        if above.count(sign) == header.count(sign) and set(above.strip()) - _BORDER:
            continue  # a row like others
        kinds = _kinds(cells)
        while at < len(text) and any(kinds):
            stop = text.find("\n", at) + 1 or len(text)
            row = _apart(text[at:stop].rstrip(" \r\n"), sign)
            if len(row) != len(cells) and set(row[0]) - _BORDER:
                break
            yield from _of_row(text, at, row, kinds)
            at = stop


def _rows_of_sql(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the values of columns that an INSERT or a COPY calls secrets."""
    at = 0
    for found in _INSERT.finditer(text):
        if found.start() < at:
            continue
        kinds, at = _kinds(found[1].split(",")), found.end()
        row = _TUPLE if found[2] else _TABBED
        while any(kinds) and (match := row.match(text, at)):
            values_ = _apart(match[1], "," if found[2] else "\t")
            yield from _of_row(text, match.start(1), values_, kinds)
            at = match.end()


def _kinds(cells: list[str]) -> list[str | None]:
    return [assigned.kind_of(re.sub(r"\W+", "_", cell.strip(" \"'*`\n"))) for cell in cells]


def _apart(row: str, sign: str) -> list[str]:
    """Return the cells of a row; a sign in quotes is none."""
    return _IN_QUOTES.sub(lambda found: found[0].replace(sign, "\0"), row).split(sign)


def _of_row(
    text: str, at: int, row: list[str], kinds: list[str | None]
) -> Iterator[tuple[int, int, str]]:
    for cell, kind in zip(row, kinds, strict=False):
        bare = cell.strip(" \"'`\r\n*")
        first = at + cell.index(bare)
        value = text[first : first + len(bare)]
        if kind and values.is_password(value, Form.DATA) and values.is_said(value):
            yield first, first + len(value), kind.replace("MAYBE", "KEY")
        at += len(cell) + 1
