"""Lines in place of text that was left out: `...`, `# rest unchanged`, `// ... existing code ...`."""

import re
from collections.abc import Collection, Iterable

_DOTS = re.compile(r"(?:\.{3,}|…|\. \. \.)")
# "rest of the file", "unchanged", "existing code", "same as before", "omitted": in a comment only.
_WORDS = re.compile(
    r"(?:\brest of\b|\b(?:rest|remainder|remaining|everything else)\b.*"
    r"\b(?:same|unchanged|as is|as before|here)\b"
    r"|\bunchanged\b|\b(?:existing|previous|original|other) (?:code|content|contents|imports?|methods?"
    r"|functions?|fields?|lines?|routes?|tests?|rules?|styles?|props?|logic|implementation)\b"
    r"|\bsame as (?:before|above)\b|\bno changes?\b|\b(?:omitted|truncated|elided|snipped?)\b"
    r"|\bremain(?:s|ing|der)?\b.*\b(?:same|code|unchanged)\b|\bkeep (?:the )?(?:rest|existing)\b)",
    re.IGNORECASE,
)
_COMMENT = re.compile(
    r"(?:#|//|--|;+|%|\*|/\*+|\{/\*|<!--|\{#|\"\"\"|''')[ \t]*(.*?)[ \t]*"
    r"(?:\*+/\}?|-->|#\}|\"\"\"|''')?[,;]?"
)
_BRACKETED = re.compile(r"[\[(<{][ \t]*(.*?)[ \t]*[\])>}]")
_LINE_LIMIT = 200


def first_elision(lines: list[str]) -> int | None:
    """Return the index of the first line that replaces others, or None."""
    for index, line in enumerate(lines):
        if ("..." in line or "…" in line or _WORDS.search(line[:_LINE_LIMIT])) and is_elision(
            lines, index
        ):
            return index
    return None


def added_elision(old: Iterable[str], new: list[str]) -> int | None:
    """Return the index of the first such line in the new text that the old one does not have."""
    return first_unknown({line.strip() for line in old}, new)


def first_unknown(known: Collection[str], new: list[str]) -> int | None:
    """Return the index of the first such line that is none of the known, which have no blanks round them."""
    for index, line in enumerate(new):
        if line.strip() not in known and is_elision(new, index):
            return index
    return None


def is_elision(lines: list[str], index: int) -> bool:
    """Return whether a line says only that something was left out."""
    line = lines[index]
    text = line.strip()
    if not text or len(line) > _LINE_LIMIT:
        return False
    if _DOTS.fullmatch(text):
        return not _is_stub(lines, index)
    comment = _COMMENT.fullmatch(text)
    said = comment[1] if comment is not None else ""
    if not said:
        bracketed = _BRACKETED.fullmatch(text)
        if bracketed is None or not _DOTS.search(bracketed[1]):
            return False
        # `[...]` and `{...}` alone; `(...args)` and `{ ...state }` are code.
        return bool(_DOTS.fullmatch(bracketed[1])) or bool(
            _WORDS.search(bracketed[1]) and _DOTS.match(bracketed[1])
        )
    if _DOTS.fullmatch(said):
        return True
    if _DOTS.match(said) and (
        _DOTS.search(said, 4) or _WORDS.search(said) or len(said.split()) < 8
    ):
        return True
    # A sentence about something that is unchanged is none: these comments are short.
    return bool(_WORDS.search(said)) and len(said.split()) <= 9 and _is_claim(said)


_CLAIM = re.compile(
    r"\(?(?:\.{3}|…)?[ \t]*(?:the )?(?:rest|remaining|remainder|everything else|unchanged|existing|previous"
    r"|original|other|same|no change|omitted|truncated|snip|keep|all (?:other|existing))",
    re.IGNORECASE,
)
_CLAIM_END = re.compile(
    r"(?:unchanged|the same|as before|as is|omitted|truncated|here|\.{3}|…|file|class|function|code|above"
    r"|content|contents|methods|imports|same|brevity|changes?|snip(?:ped)?|stays?|tests|routes)[.)\]]*$",
    re.IGNORECASE,
)


def _is_claim(said: str) -> bool:
    return bool((_CLAIM.match(said) or said.startswith(("(", "["))) and _CLAIM_END.search(said))


def _is_stub(lines: list[str], index: int) -> bool:
    """Return whether `...` is Python's: the whole body of what the line above opens."""
    indent = _indent(lines[index])
    above = next((line for line in reversed(lines[max(index - 3, 0) : index]) if line.strip()), "")
    below = next((line for line in lines[index + 1 : index + 6] if line.strip()), "")
    opens = above.rstrip().endswith(":") and _indent(above) < indent
    documented = above.rstrip().endswith(('"""', "'''")) and _indent(above) == indent
    return bool(indent) and (opens or documented) and (not below or _indent(below) < indent)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# A line of a search, or of a whole file, that replaces lines of the file that it meets. The dots alone
# are Python's own too, so they are told apart below. First what is cheap to look for.
_HINT = re.compile(r"\.\.\.|…|nchanged|xisting| of ")
_DOTS_ALONE = re.compile(r"[ \t]*(?:\.{3}|…)[ \t]*")
_LEAD = r"[ \t]*(?:#|//|--|;+|%|/\*|<!--|\{/\*|\*|\(|\[|\.{3}|…)[ \t]*(?:\.{3}|…)?[ \t]*"
_TAIL = r"(?:\.{3}|…)?[ \t.]*(?:\*/\}?|-->|\)|\])?[ \t]*"
_KEPT = (
    r"(?:(?:keep|the|all|other|your|my)[ \t]+)*"
    r"(?:rest|remaining|remainder|existing|unchanged|previous|same)"
)
_ABOUT = (
    r"(?:[ \t]+(?:of|the|this|file|code|class|functions?|methods?|contents?|implementation|lines?|imports?"
    r"|unchanged|remains?|stays?|same|as|is|are|before|above|here|goes|omitted|module|script|tests?|not"
    r"|changed|no|changes))*"
)
_WITH_WORDS = re.compile(f"{_LEAD}{_KEPT}{_ABOUT}[ \t]*{_TAIL}", re.IGNORECASE)
_WITH_DOTS_ALONE = re.compile(rf"{_LEAD}(?:{_KEPT}\b[^\n]{{0,60}}?)?[ \t]*{_TAIL}", re.IGNORECASE)


def is_elision_line(line: str, *, bare: bool = True) -> bool:
    """Return whether a line replaces others. Without `bare` three dots alone do not: Python has them."""
    if len(line) > 160:
        return False
    if _DOTS_ALONE.fullmatch(line):
        return bare
    if "..." in line or "…" in line:
        return _WITH_DOTS_ALONE.fullmatch(line) is not None
    return _WITH_WORDS.fullmatch(line) is not None and line.strip().count(" ") > 1


def elision_in(body: str, old: str, path: str) -> str:
    """Return the line of a whole file in place of lines of the file that it would replace, or nothing."""
    if _HINT.search(body) is None:
        return ""
    there = {line.strip() for line in old.split("\n")}
    is_python = path.endswith((".py", ".pyi"))
    for line in body.split("\n"):
        # Python's own dots are a body: they are indented.
        is_body = is_python and line[:1].isspace() and _DOTS_ALONE.fullmatch(line) is not None
        if is_elision_line(line) and line.strip() not in there and not is_body:
            return line.strip()
    return ""
