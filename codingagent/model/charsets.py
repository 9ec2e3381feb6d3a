"""Find the encoding of a file that is not UTF-8: what it says itself, else what its letters make likely."""

import codecs
import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

from codingagent.model.patterns import lazy_pattern

# The forms in which a file names its encoding: a comment of the first two lines (PEP 263, Emacs, Ruby), XML,
# HTML, CSS, gettext and TeX; then vim, which looks at both ends.
_HEAD = lazy_pattern(
    r"\A(?:[^\n]*\n)?[ \t\f]*(?:#|\W{0,4}-\*-)[^\n]*?coding[:=][ \t]*([-\w.]+)"
    r"|\A\s*<\?xml[^>\n]*?\sencoding=[\"']([-\w.]+)"
    r"|\A\s*(?=<)(?:[^<]|<(?!body))*?<meta[^<>]*?charset=[\"']?\s*([-\w.]+)"
    r"|\A@charset \"([-\w.]+)\";"
    r"|^\"Content-Type:[^\n]*?charset=([-\w.]+)"
    r"|^[^%\n]*\\usepackage\[([-\w]+)\]\{inputenc\}",
    re.IGNORECASE | re.MULTILINE,
)
_VIM = lazy_pattern(r"\b(?:vim?|ex):[^\n]*?\b(?:fileencoding|fenc)=([-\w.]+)", re.IGNORECASE)
_HEAD_CHARACTERS, _VIM_CHARACTERS = 2_000, 500

# What is often called by a name that means less. What it says is tried first.
_MORE = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "cp950",
    "tis-620": "cp874",
    "iso8859-1": "cp1252",
}
_LESS = {"euc_jis_2004": "euc_jp", "shift_jis_2004": "cp932"}
# Encodings that most texts can't tell apart.
_ALIKE = (
    ("gbk", "gb18030"),
    ("shift_jis", "cp932"),
    ("euc_kr", "cp949"),
    ("big5", "cp950", "big5hkscs"),
    ("iso8859-1", "cp1252", "iso8859-15"),
    ("tis-620", "cp874"),
    ("koi8-r", "koi8-u"),
)
# Files of these are met; what looks like any other is not certain.
_USUAL = frozenset(
    re.findall(
        r"\S+",
        "big5 big5hkscs cp437 cp737 cp775 cp850 cp852 cp855 cp857 cp858 cp860 cp861 cp862 cp863 cp865 cp866"
        " cp874 cp932 cp949 cp950 cp1125 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258"
        " euc_jp euc_kr gb18030 gb2312 gbk iso8859-1 iso8859-2 iso8859-5 iso8859-6 iso8859-7 iso8859-8"
        " iso8859-9 iso8859-13 iso8859-15 iso8859-16 koi8-r koi8-u mac-cyrillic mac-roman shift_jis tis-620",
    )
)
# By the number of words that are not ASCII: what part of the best one's confidence keeps another in the race.
# Fitted on messages of Django in 36 languages and their encodings: of 6,384 new lines none was written wrong.
_LEAST_PARTS = ((3, 0.05), (6, 0.3), (15, 0.7))
_LEAST_PART = 0.9
_EVIDENCE_BYTES, _WORDS_CHARACTERS = 16_384, 2_000
# Some languages have no blanks between words.
_WORD_BYTES = 8
_WORDS_AN_ODD_ONE = 4
# They are written without blanks between other letters.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH", "HALFWIDTH", "IDEOGRAPHIC")


def codec_of(name: str) -> str:
    """Return Python's name of an encoding of texts; empty if there is none."""
    try:
        known = codecs.lookup(name)
        "".encode(known.name)  # not base64 or rot13
    except (LookupError, ValueError):
        return ""
    return known.name.removesuffix("-sig")


def declared(text: str) -> str:
    """Return the encoding that a file's text itself names; empty if none that is known here."""
    return _declared(text[:_HEAD_CHARACTERS], text[-_VIM_CHARACTERS:])


@lru_cache(64)  # asked ten times for each edit
def _declared(head: str, tail: str) -> str:
    found = _HEAD.search(head) or _VIM.search(head, 0, _VIM_CHARACTERS) or _VIM.search(tail)
    return "" if found is None else codec_of(next(filter(None, found.groups())))


def declared_in(data: bytes) -> str:
    """Return the encoding that a file's bytes name in ASCII."""
    ends = data[:_HEAD_CHARACTERS] + data[-_VIM_CHARACTERS:]
    return declared((ends if len(data) > len(ends) else data).decode("latin-1"))


def decoded(data: bytes, codec: str) -> str | None:
    """Return all of some bytes as text; None if they are not in that encoding."""
    try:
        return data.decode(codec)
    except (UnicodeError, LookupError):
        return None


def fitting(data: bytes, name: str) -> str:
    """Return the encoding of this name, or the one that it often means, if all bytes are in it."""
    codec = codec_of(name)
    wide = _MORE.get(codec, "")
    if codec == "iso8859-1" and any(0x80 <= byte < 0xA0 for byte in set(data)):
        codec = wide
    return next((each for each in (codec, wide) if each and decoded(data, each) is not None), "")


def alike(codec: str) -> Iterator[str]:
    """Yield an encoding and those that most texts can't tell from it."""
    yield codec
    for group in _ALIKE:
        if codec in group:
            yield from group


def plausible(data: bytes) -> tuple[str, ...]:
    """Return all encodings that bytes may well be in, the likeliest first; empty: nothing is likely."""
    lines = dict.fromkeys(line for line in data.split(b"\n") if not line.isascii())
    found = _measured(b"\n".join(lines)[:_EVIDENCE_BYTES])
    fit = [codec for codec in found if decoded(data, codec) is not None]
    return tuple(codec for codec in fit if codec in _USUAL and fit[0] in _USUAL)


@lru_cache(64)
def _measured(evidence: bytes) -> tuple[str, ...]:
    # Imported late: only a file that is neither UTF-8 nor says its encoding needs it.
    from chardet import detect_all

    words = dict.fromkeys(word for word in evidence.split() if not word.isascii())
    size = max(len(words), sum(map(len, words)) // _WORD_BYTES)
    limits = (part for count, part in _LEAST_PARTS if size < count)
    found = detect_all(evidence, ignore_threshold=True, compat_names=False, max_bytes=len(evidence))
    least = found[0]["confidence"] * next(limits, _LEAST_PART)
    near = dict.fromkeys(
        like
        for each in found
        if (name := each["encoding"]) and each["confidence"] >= least
        for like in alike(_LESS.get(name, codec_of(name)))
    )
    sample = b"\n".join(words)[:_WORDS_CHARACTERS]
    odd = {codec: _odd(sample.decode(codec, "replace")) for codec in near if codec}
    fewest = min(odd.values(), default=0)
    if fewest * _WORDS_AN_ODD_ONE > size:
        return ()
    return tuple(codec for codec, count in odd.items() if count == fewest)


def _odd(text: str) -> int:
    """Count what nobody writes: controls, signs or other scripts in words, capitals after small letters."""
    count, before, kind_before = 0, "", ""
    for character in text:
        kind = _kind(character)
        if character > "\x7f" or before > "\x7f":
            is_mixed = bool(kind and kind_before) and kind != kind_before
            count += kind == "?" or is_mixed or (before.islower() and character.isupper())
        before, kind_before = character, kind
    return count


@cache
def _kind(character: str) -> str:
    """Return the script of a letter, "#" for a sign, "?" for what is no text; empty for all else."""
    category = unicodedata.category(character)
    if character < "\x80":
        return "LATIN" if category[0] == "L" else ""
    if category in ("Cc", "Cn", "Co"):
        return "?"
    if category in ("So", "Sm", "Sk", "Sc", "No") or character in "ªº":
        return "" if character == "°" else "#"
    script = unicodedata.name(character, "?").partition(" ")[0] if category[0] == "L" else ""
    return "" if script.startswith(_UNSPACED) else script
