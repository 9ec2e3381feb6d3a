"""Judge a value that a name or a word calls a secret: a literal, or a reference, a type, an example."""

import base64
import contextlib
import itertools
import re
from collections.abc import Callable
from enum import Enum
from functools import lru_cache

from codingagent.model.patterns import lazy_pattern
from codingagent.secrets.rules import any_of, part, words

_CODE, _PROSE = words("suffixes of code"), words("suffixes of prose")
_PLAIN = words("words that are no values")


class Form(Enum):
    """How the text of a file is written."""

    CODE = "code"  # a bare word is a variable
    DATA = "data"  # a bare word is a value
    PROSE = "prose"  # anything


def form_of(path: str) -> Form:
    """Return the form of a file by its name; text of no file is prose."""
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    suffix = name.rpartition(".")[2] if "." in name else ""
    if suffix in _CODE:
        return Form.CODE
    return Form.PROSE if not name or suffix in _PROSE else Form.DATA


_EXAMPLE = any_of("examples")
_RUN = any_of("runs")
_REFERENCE = any_of("references")
_CALL = lazy_pattern(part("call"))
_TECHNICAL = any_of("technical", re.IGNORECASE)
_PATH = lazy_pattern(r"[~.]{0,2}/[\w.-]+(?:/[\w.@-]*)*")
_IDENTIFIER = any_of("identifiers", re.IGNORECASE)
# A bare word with these is an expression of code.
_SYNTAX = lazy_pattern(r"[(){}\[\],;]|^[A-Za-z_]+(?:\.[a-z_]\w*)+$")
_VOWELS = lazy_pattern("[aeiouy0-9]")
_PIECE = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[A-Z]")


def is_example(value: str) -> bool:
    """Return whether a value is an example: a run of the alphabet is none if the rest is random."""
    low = value[:300].lower()
    if _EXAMPLE.search(low) or len(set(low)) < (8 if len(low) >= 20 else 3):
        return True
    if not _RUN.search(low):
        return False
    steps = [ord(two) - ord(one) in (0, 1) for one, two in itertools.pairwise(low)]
    apart = [not (a or b) for a, b in itertools.pairwise([False, *steps, False])]
    rest = "".join(itertools.compress(value, apart))
    is_mixed = len(set(rest)) >= 12 and any(map(str.isdigit, rest))
    return len(rest) < 20 or not (is_mixed or is_random(rest))


def is_reference(value: str) -> bool:
    """Return whether a value only refers to a secret, or is a blank to fill in."""
    return bool(_REFERENCE.search(value[:300])) or value.strip("\"'`.,;:!?()").lower() in _PLAIN


def is_plain(value: str) -> bool:
    """Return whether a value is a word or a small number that many settings have."""
    return value.lower() in _PLAIN or (value.isdigit() and len(value) < 4)


def is_literal(value: str) -> bool:
    return not is_reference(value) and not is_example(value)


def _consonants(word: str) -> int:
    """Return the length of the longest run of consonants, which is 3 in most words."""
    return max(map(len, _VOWELS.split(word.lower().replace("ngth", "e").replace("ght", "e"))))


@lru_cache(1000)
def is_random(value: str) -> bool:
    """Return whether letters and digits alternate as they do in no word."""
    pieces = _PIECE.findall(value)
    digits = sum(piece.isdigit() for piece in pieces)
    letters = sum(map(str.isalpha, value))
    if not letters or not digits:  # letters alone: only where upper and lower case alternate
        runs = sorted(_consonants(piece) for piece in pieces if not piece.isupper())
        capitals = sum(len(piece) > 1 and piece.isupper() for piece in pieces)
        mixed = len(pieces) * 3.2 > len(value) or capitals > 2
        mixed = mixed or (len(runs) > 1 and sum(runs[-2:]) > 7)
        return len(value) == letters >= 16 and mixed
    if len(pieces) * 2.9 >= len(value) or (digits >= 3 and len(value) >= 10):
        return True
    is_long = len(value) >= 16 and value.isalnum()
    return is_long and any(_consonants(each) > 3 for each in pieces if len(each) > 3)


def is_technical(value: str) -> bool:
    """Return whether a value has the shape of a version, a date, a size, the name of a file or a host."""
    return _TECHNICAL.fullmatch(value) is not None


def _is_plain(value: str, *, bare: bool) -> bool:
    return (
        is_example(value)
        or is_reference(value)
        # A number of many digits can be a password.
        or (is_technical(value) and not (value.isdigit() and len(value) > 5))
        or (_PATH.fullmatch(value) is not None and not is_random(value))
        or (bare and _CALL.match(value) is not None and not any(map(str.isdigit, value)))
    )


@lru_cache(1000)
def is_password(value: str, form: Form, *, quoted: bool = True) -> bool:
    """Return whether a password's value is one: nearly all in data; elsewhere with digits or odd signs."""
    if not 4 <= len(value) <= 1000 or value.startswith("--"):  # an option
        return False
    if _is_plain(value, bare=not quoted and form is not Form.DATA):
        return False
    if " " in value:  # words: seldom a password
        said = value.endswith((".", "?", "!", ":")) or len(value) > 100
        return form is Form.DATA and quoted and not said and any(map(str.isdigit, value))
    if form is Form.DATA:
        return quoted or not _SYNTAX.search(value)
    if not quoted and (form is Form.CODE or _SYNTAX.search(value)):
        return False
    letters = any(map(str.isalpha, value))
    digits = any(map(str.isdigit, value))
    if letters and digits:
        return len(value) >= (5 if quoted else 6)
    if digits:
        return len(value) >= 6 and quoted
    signs = len(value) >= 8 and not value.endswith(tuple(":?!*")) and bool(_signs(value))
    return letters and (signs or is_random(value))


@lru_cache(1000)
def is_token(value: str, form: Form, *, quoted: bool = True, named: bool = True) -> bool:
    """Return whether a token's value is one, long and random; if not `named` no identifier either."""
    if not 8 <= len(value) <= 4000 or " " in value:
        return False
    if _is_plain(value, bare=not quoted and form is not Form.DATA):
        return False
    if not named and (_IDENTIFIER.fullmatch(value) or _PATH.fullmatch(value)):
        return False
    if value.startswith("--") or value.count("|") > 5 or (not quoted and set("()|") & set(value)):
        return False
    if not quoted and form is not Form.DATA and _SYNTAX.search(value):
        return False
    letters = any(map(str.isalpha, value))
    digits = sum(map(str.isdigit, value))
    if not letters or (not digits and not is_random(value) and len(_signs(value)) < 2):
        return False
    if not named:
        return len(value) >= 20 and digits >= 2 and is_random(value)
    if is_random(value) or (value.isalnum() and digits > 1 and len(value) >= 16):
        return len(value) >= (8 if form is Form.DATA or quoted else 12)
    return form is Form.DATA and len(value) >= 12 and digits > 0


def _signs(value: str) -> set[str]:
    return {each for each in value if not each.isalnum() and each not in "-_./: ,'"}


def is_said(word: str) -> bool:
    """Return whether a bare word in a sentence is a value: it has a digit, or signs inside."""
    if any(map(str.isdigit, word)) and any(map(str.isalpha, word)):
        return len(word) >= 6
    return len(word) >= 8 and word.isascii() and bool(set(word) & set("!@#$%^&+"))


def _is_in_address(value: str, _form: Form) -> bool:
    bare = value.strip("[]()")
    return len(bare) > 2 and is_literal(bare)


def _is_login(value: str, form: Form) -> bool:
    """Accept Basic credentials: base64 of a name, a colon and a password."""
    with contextlib.suppress(ValueError):
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        return _is_in_address(plain.partition(b":")[2].decode("ascii"), form)
    return False


JUDGES: dict[str, Callable[[str, Form], bool]] = {
    "": lambda value, _: not is_example(value),
    "any": lambda value, _: not is_example(value),
    "password": is_password,
    "token": is_token,
    "stated": lambda value, form: (
        len(value) >= 8 and is_said(value) and is_password(value, form, quoted=False)
    ),
    "address": _is_in_address,
    "login": _is_login,
    "authorization": lambda value, form: _is_login(value, form) or is_token(value, form),
    "aws": lambda value, form: is_token(value, form) and not (value.islower() or value.isupper()),
}
"""How a value that a rule found is judged, by the word in the rule."""
