"""Tell where words and known values are in a text, escaped, encoded or cut; change all texts in a value."""

import re
from base64 import b64decode
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from operator import is_
from typing import Any
from unicodedata import normalize
from urllib.parse import quote, quote_plus

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model import encoding
from codingagent.model.patterns import lazy_pattern
from codingagent.secrets.rules import part

ENCODED = lazy_pattern(part("encoded"))
# Half of a longer one, as a line's end or a program leaves it, says too much.
_SHORTEST_HALF = 16
_CODECS = ("utf-8", "cp1252", "utf-16-le", "cp1251", "gb18030", "cp932", "euc-kr", "euc-jp", "big5")
# Characters that all of them write as they are.
_SAME = lazy_pattern(r"[A-Za-z0-9_.-]*")
_HEX = lazy_pattern(r"(?:[0-9A-Fa-f]{2})+")
Places = dict[str, list[int]]
"""Where words are in a text; one that is not in it has no entry."""


def places(text: str, word: str, step: int = 0) -> list[int]:
    """Return where a word is in a text; not overlapping unless there is a step."""
    found: list[int] = []
    at = text.find(word)
    while at >= 0:
        found.append(at)
        at = text.find(word, at + (step or len(word)))
    return found


def likely(words: Iterable[str]) -> re.Pattern[str]:
    """Return what matches where one of some words may begin: each character is in one at its place."""
    classes = (f"[{''.join(map(re.escape, sorted({*column})))}]" for column in zip(*words, strict=False))
    return re.compile(f"(?={''.join(classes) or '(?!)'})")


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with all of its texts changed: of structs, sequences, sets and dicts, at any depth."""
    match value:
        # First, because nearly all values are one of these.
        case str() if not isinstance(value, Enum):
            return change(value)
        case Enum() | None | bool() | int() | float():
            return value
        case bytes():
            found = encoding.decode_file(value)
            if found is not None and found.codec.startswith(("utf-16", "utf-32")):
                return found.encode(change(found.text))
            text = value.decode("utf-8", "surrogateescape")
            changed = change(text)
            return value if changed == text else changed.encode("utf-8", "surrogateescape")
        case Struct():
            changes: dict[str, Any] = {}
            for name in value.__struct_fields__:
                each = None if name == "at" else getattr(value, name)  # a time of ours
                # Most fields are empty or numbers, and answers have thousands of them.
                if each and each.__class__ is not int and (new := mapped(each, change)) is not each:
                    changes[name] = new
            return replace(value, **changes) if changes else value
        case Sequence() | frozenset():
            items = [mapped(each, change) for each in value]
            kind = frozenset if isinstance(value, frozenset) else tuple
            return value if all(map(is_, items, value)) else kind(items)
        case dict():
            return {mapped(key, change): mapped(each, change) for key, each in value.items()}
        case _:
            return value


def forms_of(value: str) -> list[str]:
    """Return a value as it is and as JSON, URLs, HTML, shells, SQL and INI files write it."""
    if _SAME.fullmatch(value):
        return [value]
    # Imported late: most sessions have no known value.
    import json
    from html import escape

    in_json = json.dumps(value)[1:-1]
    plain = json.dumps(value, ensure_ascii=False)[1:-1]
    in_urls = [quote(value, safe=""), quote(value), quote_plus(value)]
    in_html = escape(value)
    as_numbers = in_html.replace("&quot;", "&#34;").replace("x27", "39")
    in_htmls = [escape(value, quote=False), in_html, as_numbers]
    in_shells = [re.sub(r"[^\w@%+=:,./-]", r"\\\g<0>", value), value.replace("'", "'\"'\"'")]
    doubled = [value.replace(sign, sign * 2) for sign in "'\"%$"]
    # As Go writes JSON.
    plain_too = re.sub("[&<>]", lambda found: f"\\u{ord(found[0]):04x}", plain)
    in_urls += [re.sub("%..", lambda found: found[0].lower(), each) for each in in_urls]
    in_jsons = (plain, in_json, json.dumps(in_json)[1:-1], plain.replace("/", "\\/"))
    others = (*in_htmls, *in_shells, *doubled, plain_too, *_in_bytes(value))
    return list(dict.fromkeys((value, *in_jsons, *in_urls, *others)))


def _in_bytes(value: str) -> Iterator[str]:
    """Yield how a value that is not ASCII reads in other encodings, and as programs write its bytes."""
    for form in () if value.isascii() else (value, normalize("NFC", value), normalize("NFD", value)):
        yield from (form, ascii(form)[1:-1])
        for codec in _CODECS:
            data = form.encode(codec, "replace")
            yield from (repr(data)[2:-1], data.decode("latin-1"))
            yield "".join(chr(each) if each < 128 else f"\\{each:03o}" for each in data)
            seen = data.replace(b"\0", b"").decode("utf-8", "replace")
            yield seen if len({*seen} - {"\ufffd"}) >= _SHORTEST_HALF // 4 else value


def decoded(run: str) -> str:
    """Return what digits mean in hexadecimal and in base64, from each of the first characters on."""
    digits = re.sub(r"[\s=]+", "", run)
    if len(digits) % 2 == 0 and _HEX.fullmatch(digits):
        return bytes.fromhex(digits).decode("utf-8", "replace")
    if digits.islower() or digits.isupper():
        return ""  # a word
    digits = digits.translate({ord("-"): "+", ord("_"): "/"})
    meanings = []
    for start in range(4):
        part = digits[start : len(digits) - ((len(digits) - start) % 4 == 1)]
        data = b64decode(part + "=" * (-len(part) % 4))
        meanings.append(data.replace(b"\0", b"").decode("utf-8", "replace"))  # UTF-16, too
    return "\0".join(meanings)


def end_of(text: str, form: str, at: int) -> int:
    """Return where a value ends that begins here, whole, cut by dots, or its first half; 0: another text."""
    if text.startswith(form, at):
        return at + len(form)
    half = max(len(form) // 2, _SHORTEST_HALF)
    if text.startswith(form[:half], at) and len(form) > half:
        lengths = range(half, len(form))
        differs = bisect(lengths, False, key=lambda n: not text.startswith(form[: n + 1], at))
        return at + lengths[differs]
    ends = (text.find(dots, at, at + len(form) + len(dots)) for dots in ("…", "..."))
    return next((end for end in ends if end > 0 and form.startswith(text[at:end])), 0)
