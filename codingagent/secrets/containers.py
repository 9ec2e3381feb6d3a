"""Secrets of files whose form says where they are: netrc, pgpass, htpasswd; columns of tables."""

import re
from collections.abc import Iterator

from codingagent.model.patterns import lazy_pattern
from codingagent.secrets import assigned, values
from codingagent.secrets.files import is_secret_file
from codingagent.secrets.rules import pairs
from codingagent.secrets.texts import Places
from codingagent.secrets.values import Form, form_of

# The end of a path, and the expression whose group 1 is a secret.
_BY_PATH = pairs("forms of files")
# One search tells nearly all paths.
_FORMED = lazy_pattern(rf"(?:^|[/._])(?:{'|'.join(end for end, _ in _BY_PATH)})$")
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
_LINE = lazy_pattern(r"(?!\\\.|\Z)([^\n]*)\n?")
# A heading of a table: where its rows begin, the kinds of its columns, what parts cells, what a row is.
_Head = tuple[int, list[str | None], str, re.Pattern[str]]


def spans(text: str, leads: Places, path: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and kind of the secrets that the form of a file shows."""
    if path:
        yield from _in_file(text, path)
    if leads and _SQL.search(text):
        yield from _in_rows(text, _heads_in_sql(text))
    if "\n" in text and form_of(path) is not Form.CODE:
        yield from _in_rows(text, _heads_in_lines(text, leads))


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


def _heads_in_lines(text: str, leads: Places) -> Iterator[_Head]:
    """Yield the headings that call a column secrets: of CSV, Markdown, a database's table."""
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
        low = max(0, start - _HEADER_CHARACTERS)
        above = text[text.rfind("\n", low, max(0, start - 1)) + 1 : start]
        is_row = above.count(sign) == header.count(sign) and set(above.strip()) - _BORDER
        if all(map(_CELL.fullmatch, cells)) and sum(map(bool, cells)) > 1 and not is_row:
            yield at, _kinds(cells), sign, _LINE


def _heads_in_sql(text: str) -> Iterator[_Head]:
    """Yield the columns of each INSERT and COPY."""
    for found in _INSERT.finditer(text):
        row = (",", _TUPLE) if found[2] else ("\t", _LINE)
        yield found.end(), _kinds(found[1].split(",")), *row


def _kinds(cells: list[str]) -> list[str | None]:
    return [assigned.kind_of(re.sub(r"\W+", "_", cell.strip(" \"'*`\n"))) for cell in cells]


def _apart(row: str, sign: str) -> list[str]:
    """Return the cells of a row; a sign in quotes parts none."""
    return _IN_QUOTES.sub(lambda found: found[0].replace(sign, "\0"), row).split(sign)


def _in_rows(text: str, heads: Iterator[_Head]) -> Iterator[tuple[int, int, str]]:
    """Yield the values of the columns that hold secrets."""
    done = 0
    for at, kinds, sign, expression in heads:
        if at <= done or not any(kinds):
            continue
        done = at
        while row := expression.match(text, done):
            cells = _apart(row[1], sign)
            if len(cells) != len(kinds) and set(cells[0]) - _BORDER:
                break
            first, done = row.start(1), row.end()
            for cell, kind in zip(cells, kinds, strict=False):
                bare = cell.strip(" \"'`\r\n*")
                start = first + cell.index(bare)
                value = text[start : start + len(bare)]
                if kind and values.is_password(value, Form.DATA) and values.is_said(value):
                    yield start, start + len(value), kind.replace("MAYBE", "KEY")
                first += len(cell) + 1
