"""Find values that a name calls a secret, in the syntaxes of code, of data and of people."""

import re
from collections.abc import Iterator
from functools import lru_cache

from codingagent.model.patterns import lazy_pattern
from codingagent.secrets import values
from codingagent.secrets.rules import one_of, pairs, part, words
from codingagent.secrets.texts import Places
from codingagent.secrets.values import Form

_OTHER_LANGUAGES = words("stems of other languages")
# In lower case, one of these is in each name of a secret.
STEMS = tuple(sorted(words("stems") | _OTHER_LANGUAGES))
_ABOUT, _PUBLIC = words("names about secrets"), words("names of what is public")
_SETTINGS = words("names of settings") | _ABOUT
_KEYS, _TRAILING = words("names beside key"), words("names that go on")
_NAME_CHARACTERS = 48
_WORDS = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
# The kind of secret that the last word of a name promises, tried in turn.
_KINDS = [(kind, lazy_pattern(last)) for kind, last in pairs("names")]
_KINDS.append(("KEY", lazy_pattern(rf"(?:{'|'.join(sorted(_KEYS))})keys?")))
_SEPARATOR, _QUOTE = lazy_pattern(part("separator"), re.IGNORECASE), lazy_pattern(part("quote"))
# A call that takes the name of something, not its value.
_LOOK_UP = lazy_pattern(rf"(?:.*[.:])?(?:{one_of('calls that look up')})", re.IGNORECASE)
_BARE = lazy_pattern(r"[^\s\"'`<>]{1,1000}")
# The value of a name is the next line of YAML, if that is one word: after `|` any, else one with digits.
_BLOCK = lazy_pattern(r"[|>][+-]?\d?[ \t]*\r?\n[ \t]*([^\s\"'`<>]{4,1000})[ \t]*\r?(?:\n|$)")
_LINE = lazy_pattern(r"([^\s\"'`<>:=-][^\s\"'`<>:=]{5,1000})[ \t]*\r?(?:\n|$)")
_CLOSED = lazy_pattern(r"(?:\]\]>)?\s{0,40}</")
_LINE_CHARACTERS = 300
# A name is judged by so many characters before and after it.
_BEFORE, _AFTER = _LINE_CHARACTERS + _NAME_CHARACTERS, 2000
_QUOTED_CHARACTERS = 1000
LONG = 200
"""A longer value that is no secret is judged only once."""
_AFTER_A_SENTENCE = ".,;:)}]"
_BEFORE_A_NAME = {"", "ENV", "ARG", "set", "setenv", "export", "#define", ":", "{:", "(:"}
_WORDS_BEFORE = lazy_pattern(r"(?:[\w/.-]{1,60}[ \t]+){1,4}[\w/.:-]{0,60}")
# Several values in one: the members of a list, with or without names.
_PIECE = lazy_pattern(r"(?:[\w.-]{1,60}[:=](?=[^,;]))?([^,;\s]{4,})")
_COMMENTS = ("#", "//", "*", "/*", "--", "<!--")
_VERBS = {"pass", "key", "auth"}
_ONLY_QUOTED = {",", "(", "||", "??", "or", "==", "===", "!=", "!==", ".equals("}


def spans(text: str, leads: Places, form: Form) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and kind of each value that its name makes a secret."""
    for stem in STEMS:
        end = 0
        for at in leads.get(stem, ()):
            if at < end:
                continue
            low = max(0, at - _BEFORE)
            if found := _value(text[low : at + _AFTER], at - low, stem, form):
                end, kind, spans = found
                end += low
                yield from ((low + first, low + last, kind) for first, last in spans)


@lru_cache(256)  # where one line stands a thousand times, it is judged once
def _value(text: str, at: int, stem: str, form: Form) -> tuple[int, str, list[tuple[int, int]]] | None:
    """Return a value's end, kind and spans; none for a long value that is no secret: judge it only once."""
    match = _SEPARATOR.match(text, at + len(stem))
    if match is None:
        return None
    start, name = name_at(text, at, match.end("rest"))
    if name[0] == "$" and match["blank"] is not None:  # "$PWD" python3: a shell's variable
        return None
    kind = "PASSWORD" if stem in _OTHER_LANGUAGES else kind_of(name)
    said = match["said"] or ""
    before = text[max(0, start - 20) : start].lower().rstrip("-").split()[-1:]
    # The words around a bare `key` say which: API key, key of the API.
    if kind == "MAYBE" and not _KEYS.isdisjoint([*before, *said.lower().split()]):
        kind = "KEY"
    elif name.lower() in _VERBS and (match["blank"] is not None or " " in said.strip()):
        return None
    is_about = not _ABOUT.isdisjoint(said.lower().split()[:1])
    if kind is None or is_about or text.startswith("checksum/", max(0, start - 9)):
        return None
    line = text[max(0, start - _LINE_CHARACTERS) : start].rpartition("\n")[2].lstrip()
    if form is Form.CODE:
        is_in_string = not match["close"] and any(line.count(quote) & 1 for quote in "\"'`")
        if is_in_string or line.startswith(_COMMENTS):
            form = Form.PROSE
    place = _literal(text, match, start, form, line)
    if place is None:
        return None
    first, last, is_quoted = place
    first = last - len(text[first:last].removeprefix("{noop}"))

    def fits(first: int, last: int) -> bool:
        if kind == "PASSWORD":
            return values.is_password(text[first:last], form, quoted=is_quoted)
        return values.is_token(text[first:last], form, quoted=is_quoted, named=kind != "MAYBE")

    spans = [(first, last)]
    signs = {*text[first:last]}
    # The ; of an &amp; parts nothing.
    if signs & {",", ";"} and "&" not in signs and not values.is_reference(text[first:last]):
        pieces = [each.span(1) for each in _PIECE.finditer(text, first, last)]
        spans = pieces if len(pieces) > 1 and all(fits(*each) for each in pieces) else spans
    if len(spans) == 1 and not fits(first, last):
        return (last, "", []) if last - first > LONG else None
    return last, kind.replace("MAYBE", "KEY"), spans


def name_at(text: str, at: int, end: int) -> tuple[int, str]:
    """Return where a name begins that goes on here, and the name up to its end."""
    start = at
    while start > max(0, at - _NAME_CHARACTERS) and (text[start - 1].isalnum() or text[start - 1] in "_-.$"):
        start -= 1
    return start, text[start:end]


def _parts(name: str) -> list[str]:
    parts = [word.lower() for word in _WORDS.findall(name)]
    while parts and (parts[-1].isdigit() or parts[-1] in _TRAILING):
        parts.pop()
    return parts


def is_about(name: str) -> bool:
    """Return whether a name in a collection of secrets is not that of one."""
    parts = _parts(name)
    return not _ABOUT.isdisjoint(parts[-1:]) or not _PUBLIC.isdisjoint(parts)


def is_setting(name: str) -> bool:
    """Return whether a name, in a secret file, is that of something that other files name, too."""
    return not _SETTINGS.isdisjoint(_parts(name)[-1:])


@lru_cache(1000)
def kind_of(name: str) -> str | None:
    """Return which kind of secret a name promises; None if none, MAYBE for a key of any sort."""
    parts = _parts(name)
    last = parts[-1] if parts else ""
    if not last or last in _ABOUT or (last != "salt" and not _PUBLIC.isdisjoint(parts)):
        return None
    for kind, expression in _KINDS:
        if expression.fullmatch(last):
            return kind
    if last not in {"key", "keys"}:
        return None
    is_telling = not _KEYS.isdisjoint(parts) or (name.isupper() and len(parts) > 1)
    return "KEY" if is_telling else "MAYBE"


def _literal(
    text: str, match: re.Match[str], begin: int, form: Form, line: str
) -> tuple[int, int, bool] | None:
    """Return the span of the value after a separator, and whether it is quoted."""
    start = match.end()
    is_blank = match["blank"] is not None
    is_flag = text.startswith("-", begin)
    prefix = line.rsplit(None, 1)[-1:]
    is_bare_name = not prefix or prefix[0] in _BEFORE_A_NAME
    if (match["sep"] or "")[:1] in ("\r", "\n") and match["sep"][-1] == "-" and not is_flag:
        return None  # the next item of a list
    if quote := _QUOTE.match(text, start):
        is_list = (
            match["sep"] == ","
            and not is_flag
            and text[begin - 1 : begin] != "{"
            and not text[begin : match.end("rest")].rpartition(".")[2].isupper()
            and (not match["close"] or "\n" in match[0] or form is Form.DATA)
        )
        if is_list or (is_blank and form is Form.CODE and not (is_bare_name or is_flag)):
            return None
        if "default" not in quote[0] and quote[0] != quote[1] and _LOOK_UP.match(quote[0]):
            return None
        end = _end_of_quoted(text, quote.end(), quote[1])
        is_secret = end and (not match["said"] or values.is_said(text[quote.end() : end]))
        return (quote.end(), end, True) if is_secret else None
    if form is Form.DATA and (block := _BLOCK.match(text, start)):
        return *block.span(1), False
    bare = _BARE.match(text, start)
    if bare is None or match["sep"] in _ONLY_QUOTED:
        return None
    is_below = form is Form.DATA and "\n" in match[0] and not match["xml"]
    if is_below and "\\" not in match[0]:
        below = _LINE.match(text, start)
        return (*below.span(1), False) if below and values.is_said(below[1]) else None
    end = bare.end()
    if match["xml"]:
        is_element = line.rfind("<") > line.rfind(">") or "</" in match["xml"]
        end -= 2 * text.startswith("]]>", end - 2)
        return (start, end, True) if is_element and _CLOSED.match(text, end) else None
    if form is Form.CODE:
        return None
    if text[begin - 1 : begin] in {"?", "&", ";"}:  # of an address
        ends = (at for sign in "&;" if (at := text.find(sign, start, end)) >= 0)
        return start, min(ends, default=end), True
    if form is not Form.DATA or match["close"] or "{" in line:
        while end > start and text[end - 1] in _AFTER_A_SENTENCE:
            end -= 1
    is_free = is_blank and not (is_flag or form is Form.PROSE or is_bare_name)
    if is_free:
        if text[end : end + 9].partition("\n")[0].strip() or not _WORDS_BEFORE.fullmatch(line):
            return None
        end -= text[start:end].endswith(";")
    is_sentence = match["said"] or is_free or (is_blank and form is Form.PROSE and not is_flag)
    return None if is_sentence and not values.is_said(text[start:end]) else (start, end, False)


def _end_of_quoted(text: str, start: int, mark: str) -> int:
    """Return where a string ends; 0: nowhere near."""
    end = text.find(mark, start, start + _QUOTED_CHARACTERS)
    while end > 0 and len(mark) == 1 and text[end - 1] == "\\" and text[end - 2] != "\\":
        end = text.find(mark, end + 1, start + _QUOTED_CHARACTERS)
    return 0 if end < 0 or (len(mark) < 3 and "\n" in text[start:end]) else end
