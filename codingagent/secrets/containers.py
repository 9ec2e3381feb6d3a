"""Find secrets by what holds them: lists and maps of a telling name, files of a known form, tables."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from codingagent.model.patterns import lazy_pattern
from codingagent.secrets import values
from codingagent.secrets.assigned import STEMS, is_about, kind_of, name_at
from codingagent.secrets.files import is_secret_file
from codingagent.secrets.rules import pairs, part
from codingagent.secrets.texts import Places
from codingagent.secrets.values import Form, form_of

_REST = lazy_pattern(r"[\w-]{0,48}+(?![\w-])")
# At the end of the name of what holds secrets: secretEnv, token_list.
_HOLDS = lazy_pattern(r"[_-]?(?:env|list|map|set|vars?|variables|store)$", re.IGNORECASE)
_HOLDER = lazy_pattern(part("holder"))
_ONE = lazy_pattern(part("literal"))
_CALLERS = ("name", "key", "id", "label", "type", "variable", "field", "option")
_BEFORE = ":=>( \t@\\\"'`"
_IS_CALLED = lazy_pattern(rf"{part('called')}$")
_RECORD = lazy_pattern(part("record"))
_OPENS = lazy_pattern(part("opens"))
_VALUES = lazy_pattern(part("given"))
_BETWEEN = lazy_pattern(part("between"))
_RECORD_CHARACTERS = 300
_TOKEN = lazy_pattern(part("item"))
_SUBSCRIPT = lazy_pattern(r"\w\[[\"']")
_AFTER_KEY = lazy_pattern(r"[ \t]{0,20}(?:\][ \t]{0,20})?(?:=>|[:=])(?!=)")
_IN_BLOCK = lazy_pattern(part("block_line"))
_IN_TABLE = lazy_pattern(part("table_line"))
_TEXT = lazy_pattern(r"(<key)?>\s{0,80}([^<>\s][^<>\n]{0,500}?)\s{0,80}</")
_CLOSING = lazy_pattern(r"</([\w$.-]+)")
# A longer collection is looked through up to here.
_CHARACTERS = 100_000
# What a manifest of Kubernetes calls the secrets in it.
_MANIFEST = lazy_pattern(r"^[ \t{-]*[\"']?kind[\"']?:[ \t]*[\"']?Secret\b", re.MULTILINE)
_DATA = lazy_pattern(r"(?<![\w.-])(?:data|stringData)(?=[\"']?\s{0,9}:(?!=))")


class _Member(NamedTuple):
    start: int
    end: int
    key: str
    is_bare: bool


def members(text: str, leads: Places, form: Form) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and kind of each secret that the name of what is around it tells."""
    found = {at: stem for stem in STEMS for at in leads.get(stem, ())}
    if "Secret" in text and _MANIFEST.search(text):
        found |= {each.start(): each[0] for each in _DATA.finditer(text)}
    end, again = 0, 100_000  # so much of collections in others is read again
    judged: set[int] = set()
    for at in sorted(found):
        if (rest := _REST.match(text, at + len(found[at]))) is None:
            continue
        last = rest.end()
        start, name = name_at(text, at, last)
        kind = kind_of(name)
        if kind and kind != "MAYBE":
            own = _in_record(text, start, last)
            if own and own.start not in judged and _fits(text, own, kind, form, "own"):
                yield own.start, own.end, kind
            judged.add(own.start if own else -1)
        is_data = found[at] in ("data", "stringData")
        kind, how = ("SECRET", "data") if is_data else _held_by(name)
        holder = _HOLDER.match(text, last) if kind and (at >= end or again > 0) else None
        if kind is None or holder is None:
            continue
        held, stop = _held(text, start, last, holder, Form.DATA if how == "data" else form)
        again -= (stop - last) if at < end else 0
        end = max(end, stop)
        if how != "data":
            held = [each for each in held if not (each.key and is_about(each.key))]
        if (holder["one"] or holder["call"]) and {*"\"'`"} & {*text[last : holder.end()]}:
            how = "own"
        fitting = [each for each in held if _fits(text, each, kind, form, how)]
        # Of the tokens of a parser, or the keys of a keyboard, some look random.
        if how == "data" or len(fitting) * 3 >= len(held):
            yield from ((*each[:2], kind.replace("MAYBE", "KEY")) for each in fitting)


@lru_cache(1000)
def _held_by(name: str) -> tuple[str | None, str]:
    """Return which kind of secrets a collection of this name holds, and how."""
    holds = _HOLDS.sub("", name)
    low = name.rstrip("_0123456789").lower()
    is_plural = holds != name or (low.endswith("s") and name[-2:].lower() != "ss")
    return kind_of(holds), "several" if is_plural else ""


def _fits(text: str, member: _Member, kind: str, form: Form, how: str) -> bool:
    """Return whether a member is a secret: in a list of passwords any word, elsewhere what looks like one.

    `how` it is held: "data" of a manifest, the "own" value of a name, one of "several", or else.
    """
    value, quoted = text[member.start : member.end], not member.is_bare
    if how == "data":
        return values.is_literal(value)
    if kind == "PASSWORD" and how == "own":
        is_name = value.isascii() and not any(map(str.isdigit, value)) and kind_of(value)
        return not is_name and values.is_password(value, form, quoted=quoted)
    if kind != "PASSWORD" or how != "several":
        return values.is_token(value, Form.CODE, named=kind != "MAYBE")
    is_word = bool(member.key) or form is not Form.DATA
    return values.is_password(value, Form.CODE if is_word else form, quoted=is_word or quoted)


def _in_record(text: str, start: int, last: int) -> _Member | None:
    """Return the value that a record has for the name in it, or under it."""
    low = max(0, start - _RECORD_CHARACTERS)
    before = text[max(0, start - 60) : start].lower() if text[start - 1 : start] in _BEFORE else ""
    # Nearly no text before a name has such a word.
    is_called = any(map(before.__contains__, _CALLERS)) and bool(
        _IS_CALLED.search(text, max(0, start - 60), start)
    )
    after = _RECORD.match(text, last) if is_called or _OPENS.match(text, last) else None
    if after and (after["own"] or is_called):
        line = text[text.rfind("\n", low, start) + 1 : start]
        margin = len(after["own"].rpartition("\n")[2]) if ":\n" in (after["own"] or "") else 999
        return _member(after) if margin > len(line) - len(line.lstrip(" ")) else None
    found = [*_VALUES.finditer(text, low, start)] if is_called else []
    is_near = found and _BETWEEN.fullmatch(text, found[-1].end(), start)
    return _member(found[-1]) if is_near else None


def _member(found: re.Match[str], key: str = "") -> _Member:
    group = "quoted" if found["quote"] else "bare"
    return _Member(*found.span(group), key, group == "bare")


def _held(text: str, start: int, last: int, holder: re.Match[str], form: Form) -> tuple[list[_Member], int]:
    """Return the members of a collection, each with its key and whether it is bare, and where it ends."""
    at = holder.end()
    most = min(at + _CHARACTERS, len(text))
    low = max(0, start - 200)
    before = text[text.rfind("\n", low, start) + 1 or low : start]
    key = (re.findall(r"[\w@-]+", holder["path"]) or [""])[-1] if holder["path"] else ""
    if holder["one"]:
        one = _ONE.match(text, at) if key else None
        return [_member(one, key)] if one and (one["quote"] or form is Form.DATA) else [], at
    if opened := holder["open"] or holder["call"] or holder["label"]:
        is_words = form is Form.DATA or opened.endswith(("%w[", "%i[", "qw("))
        return _in_brackets(text, at, most, key, is_words=is_words)
    if holder["plist"] or (holder["element"] and before.rstrip().endswith("<")):
        ends = _closings(text).get(holder["tag"] or text[start:last], [])
        index = bisect_left(ends, at)
        end = ends[index] + 2 if index < len(ends) and ends[index] < most else at
        found = []
        for each in _TEXT.finditer(text, at - 1, end):
            if each[1]:
                key = each[2]
            else:
                found.append(_Member(*each.span(2), key, is_bare=True))
        return found, at
    is_table = holder["table"] and re.fullmatch(r"\[{1,2}[\w.-]{0,100}", before)
    if is_table or (holder["block"] and form is Form.DATA):
        margin = None if is_table else len(before) - len(before.lstrip(" -"))
        return _in_lines(text, at, most, margin)
    return [], at


@lru_cache(1)
def _closings(text: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for each in _CLOSING.finditer(text):
        found.setdefault(each[1], []).append(each.start())
    return found


def _in_brackets(text: str, at: int, most: int, key: str, *, is_words: bool) -> tuple[list[_Member], int]:
    """Return the members of what a bracket opened; without `is_words` a bare word is none."""
    found: list[_Member] = []
    depth = 1
    for token in _TOKEN.finditer(text, at, most):
        at = token.end()
        depth += bool(token["open"]) - bool(token["close"])
        if not depth:
            break
        group = "quoted" if token["quote"] else "bare"
        word = token[group]
        if not word or _SUBSCRIPT.match(text, max(0, token.start() - 2)):
            continue
        if _AFTER_KEY.match(text, at) or (group == "bare" and word.endswith((":", "=", "=>"))):
            key = word.strip(":=>") or key
        elif group == "quoted" or is_words:
            found.append(_Member(*token.span(group), key, group == "bare"))
            key = ""
    return found, at


def _in_lines(text: str, at: int, most: int, margin: int | None) -> tuple[list[_Member], int]:
    """Return the members of a block of YAML, deeper than its name, or of a table of TOML or INI."""
    found: list[_Member] = []
    expression = _IN_TABLE if margin is None else _IN_BLOCK
    while at < most:
        stop = text.find("\n", at, most) + 1 or most
        bare = text[at:stop].strip()
        depth = stop - at - len(text[at:stop].lstrip(" "))
        is_deep = margin is None or depth > margin or (depth == margin and bare[:1] == "-")
        if (bare and not is_deep) or (margin is None and bare.startswith("[")):
            break
        if entry := expression.match(text, at, stop - text.startswith("\n", stop - 1)):
            found.append(_member(entry, entry["key"] or ""))
        at = stop
    return found, at


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
_INSERT = lazy_pattern(r"\(([^()]{5,2000})\)\s{0,20}(?:(values?)\s{0,20}|from stdin;\r?\n)", re.IGNORECASE)
_TUPLE = lazy_pattern(part("tuple"))
_LINE = lazy_pattern(r"(?!\\\.|\Z)([^\n]*)\n?")
# A heading of a table: where its rows begin, the kinds of its columns, what parts cells, what a row is.
_Head = tuple[int, list[str | None], str, re.Pattern[str]]


def by_form(text: str, leads: Places, path: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and kind of the secrets that the form of a file shows."""
    if path:
        yield from _in_file(text, path)
    if leads and _SQL.search(text):
        yield from _in_rows(text, _heads_in_sql(text))
    if "\n" in text and form_of(path) is not Form.CODE:
        yield from _in_rows(text, _heads_in_lines(text, leads))


def _in_file(text: str, path: str) -> Iterator[tuple[int, int, str]]:
    name = path.replace("\\", "/").casefold()
    for end, line in _BY_PATH if _FORMED.search(name) else ():
        if re.search(rf"(?:^|[/._])(?:{end})$", name):
            for match in re.finditer(line, text, re.MULTILINE):
                if not values.is_reference(match[1]) or match[1].isalnum():
                    yield match.start(1), match.end(1), "PASSWORD"
    bare = text.strip()
    if 8 <= len(bare) <= 5000 and len(bare.split()) == 1:
        # One word may be a secret, as in the files that containers are given.
        folder, _, own = name.rpartition("/")
        kind, start = kind_of(own.removesuffix(".txt")), text.index(bare)
        is_told = kind not in (None, "MAYBE") or folder.endswith("secrets") or is_secret_file(name)
        if is_told and "=" not in bare.rstrip("=") and not values.is_reference(bare):
            yield start, start + len(bare), "SECRET"


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
    for found in _INSERT.finditer(text):
        row = (",", _TUPLE) if found[2] else ("\t", _LINE)
        yield found.end(), _kinds(found[1].split(",")), *row


def _kinds(cells: list[str]) -> list[str | None]:
    return [kind_of(re.sub(r"\W+", "_", cell.strip(" \"'*`\n"))) for cell in cells]


def _apart(row: str, sign: str) -> list[str]:
    return _IN_QUOTES.sub(lambda found: found[0].replace(sign, "\0"), row).split(sign)


def _in_rows(text: str, heads: Iterator[_Head]) -> Iterator[tuple[int, int, str]]:
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
