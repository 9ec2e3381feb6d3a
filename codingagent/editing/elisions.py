"""Lines in place of text that was left out: `...`, `# rest unchanged`, `// ... existing code ...`."""

import re
from collections.abc import Collection, Sequence

from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import blanks

_DOTS = lazy_pattern(r"(?:\.{3,}|…|\. \. \.)")
# "rest of the file", "unchanged", "existing code", "same as before", "omitted": in a comment only.
_WORDS = lazy_pattern(
    r"(?:\brest of\b|\b(?:rest|remainder|remaining|everything else)\b.*"
    r"\b(?:same|unchanged|as is|as before|here)\b"
    r"|\bunchanged\b|\b(?:existing|previous|original|other) (?:code|content|contents|imports?|methods?"
    r"|functions?|fields?|lines?|routes?|tests?|rules?|styles?|props?|logic|implementation)\b"
    r"|\bsame as (?:before|above)\b|\bno changes?\b|\b(?:omitted|truncated|elided|snipped?)\b"
    r"|\bremain(?:s|ing|der)?\b.*\b(?:same|code|unchanged)\b|\bkeep (?:the )?(?:rest|existing)\b)",
    re.IGNORECASE,
)
_COMMENT = lazy_pattern(
    r"(?:#|//|--|;+|%|\*|/\*+|\{/\*|<!--|\{#|\"\"\"|''')[ \t]*(.*?)[ \t]*"
    r"(?:\*+/\}?|-->|#\}|\"\"\"|''')?[,;]?"
)
_BRACKETED = lazy_pattern(r"[\[(<{][ \t]*(.*?)[ \t]*[\])>}]")
_LINE_LIMIT = 200
# Every line that is one begins so: most lines do not.
_STARTS = frozenset(".…#/-;%*{<[(\"'")


def first_elision(
    lines: Sequence[str], known: Collection[str] = (), *, bare: bool = True
) -> int | None:
    """Return the index of the first line that replaces others, and is not known; or None.

    Known lines have no blanks round them. Without `bare` three dots alone are code, as in Python.
    """
    at = range(len(lines))
    return next(
        (i for i in at if is_elision(lines, i, bare=bare) and lines[i].strip() not in known), None
    )


def elision_in(body: str, old: str, path: str) -> str:
    """Return the line of a whole file in place of lines of the one that it would replace, or nothing."""
    lines = body.split("\n")
    if path.endswith((".py", ".pyi")):
        # Its own dots are a body: they are indented.
        lines = [
            line for line in lines if not (line[:1].isspace() and _DOTS.fullmatch(line.strip()))
        ]
    at = first_elision(lines, {line.strip() for line in old.split("\n")})
    return "" if at is None else lines[at].strip()


def is_elision(lines: Sequence[str], index: int, *, bare: bool = True) -> bool:
    """Return whether a line says only that something was left out."""
    line = lines[index]
    text = line.strip()
    if text[:1] not in _STARTS or len(line) > _LINE_LIMIT:
        return False
    if _DOTS.fullmatch(text):
        return bare and not _is_stub(lines, index)
    comment = _COMMENT.fullmatch(text)
    said = comment[1] if comment is not None else ""
    if not said:
        # `[...]` and `{...}` alone; `(...args)` and `{ ...state }` are code.
        bracketed = _BRACKETED.fullmatch(text)
        inner = "" if bracketed is None else bracketed[1]
        if _DOTS.match(inner) is None:
            return False
        return _DOTS.fullmatch(inner) is not None or _WORDS.search(inner) is not None
    if (dots := _DOTS.match(said)) is not None:
        # "...but not twice" goes on with a sentence.
        rest = said[dots.end() :]
        is_short = not rest[:1].strip() and len(rest.split()) < 7
        if is_short or _DOTS.search(rest) or _WORDS.search(rest):
            return True
    # A sentence about something that is unchanged is none: these comments are short.
    return bool(_WORDS.search(said)) and len(said.split()) <= 9 and _is_claim(said)


_CLAIM = lazy_pattern(
    r"\(?(?:\.{3}|…)?[ \t]*(?:the )?(?:rest|remaining|remainder|everything else|unchanged|existing|previous"
    r"|original|other|same|no change|omitted|truncated|snip|keep|all (?:other|existing))",
    re.IGNORECASE,
)
_CLAIM_END = lazy_pattern(
    r"(?:unchanged|the same|as before|as is|omitted|truncated|here|\.{3}|…|file|class|function|code|above"
    r"|content|contents|methods|imports|same|brevity|changes?|snip(?:ped)?|stays?|tests|routes)[.)\]]*$",
    re.IGNORECASE,
)


def _is_claim(said: str) -> bool:
    return bool((_CLAIM.match(said) or said.startswith(("(", "["))) and _CLAIM_END.search(said))


def _is_stub(lines: Sequence[str], index: int) -> bool:
    """Return whether `...` is Python's: the whole body of what the line above opens."""
    indent = blanks(lines[index])
    above = next((line for line in reversed(lines[max(index - 3, 0) : index]) if line.strip()), "")
    below = next((line for line in lines[index + 1 : index + 6] if line.strip()), "")
    opens = above.rstrip().endswith(":") and len(blanks(above)) < len(indent)
    documented = above.rstrip().endswith(('"""', "'''")) and blanks(above) == indent
    return (
        bool(indent) and (opens or documented) and (not below or len(blanks(below)) < len(indent))
    )
