"""The marks of chats behind what they cite; a new form is a new section of citations.txt."""

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern, sections


class Citation(Struct, frozen=True):
    """One form: `traces` are texts of which each mark has one, `pattern` matches a mark; its groups stay.

    `is_typed`: a person may type such a mark; `is_named`: its words tell it from other text all the same.
    A chat's own form proves its others.
    """

    chat: str
    example: str
    traces: tuple[str, ...]
    pattern: str
    is_typed: bool = False
    is_named: bool = True


_NUMBERS = r"\d+(?:[ \t]*[-–,][ \t]*\d+)*"
_PARTS = {
    "<numbers>": _NUMBERS,
    "<cite>": rf"\[cite:[ \t]*{_NUMBERS}(?:†\w{{0,40}})?\]",
    "<oai>": r"\[oai_citation[^\[\]\n]{0,200}\](?:\([^()\n]{0,500}\))?",
}


def _forms() -> Iterator[Citation]:
    for head, body in sections(__file__).items():
        text = re.sub(r"\\u(\w{4})", lambda found: chr(int(found[1], 16)), body)
        for name, meaning in _PARTS.items():
            text = text.replace(name, meaning)
        traces, patterns = (
            re.findall(rf"^ +{key} (.+)$", text, re.MULTILINE) for key in ("trace", "pattern")
        )
        chat, _, example = head.partition(": ")
        is_typed, is_named = "\n    typed" in text, "not named" not in text
        yield Citation(chat, example, tuple(traces), "|".join(patterns), is_typed, is_named)


FORMS = tuple(_forms())
_ANY = "|".join(form.pattern for form in FORMS)
ANY = lazy_pattern(_ANY)

# What only the line of a tag can't mean: numbers and links in brackets.
_BESIDE_TAGS = (
    rf"\(?\[{{1,2}}\^?{_NUMBERS}\^?\]{{1,2}}(?:\([^()\n]{{0,500}}\))?\)?|[¹²³⁰⁴-⁹]+|<sup>[^<>\n]{{0,80}}</sup>"
    r"|\(?\[[^\[\]\n]{1,80}\](?:\([^()\n]{0,500}\)|\[\d+\])\)?|【[^【】\n]{0,80}】"
)
_TRACES = [(trace, form) for form in FORMS for trace in form.traces]
_TRACE = lazy_pattern("|".join(re.escape(trace) for trace, _ in _TRACES))


def forms_in(text: str) -> tuple[Citation, ...]:
    """Return the forms of which a text may hold a mark."""
    if _TRACE.search(text) is None:  # as nearly always
        return ()
    return tuple(dict.fromkeys([form for trace, form in _TRACES if trace in text]))


@cache
def pattern_of(forms: tuple[Citation, ...] = FORMS) -> re.Pattern[str]:
    return re.compile("|".join(form.pattern for form in forms) or "(?!)")


_AT_END = lazy_pattern(r"(?<![ \t\0])[ \t]*\0[ \t\0]*(?=$|[.,;:!?)\"'`<])", re.MULTILINE)


def without(text: str, forms: tuple[Citation, ...] = FORMS) -> str:
    """Take the marks of some forms off a text, with the blanks before those that end a line or a sentence."""
    there = tuple(form for form in forms_in(text) if form in forms)
    if not there or "\0" in text:
        return text
    marked = pattern_of(there).sub(lambda found: "".join((*filter(None, found.groups()), "\0")), text)
    return _AT_END.sub("", marked).replace("\0", "")


def without_unquoted(text: str) -> str:
    """Take marks off a text for people, but for those that it shows as code."""
    parts = re.split(r"(`[^`\n]*`)", text) if forms_in(text) else [text]
    return "".join(part if index % 2 else without(part) for index, part in enumerate(parts))


# What is longer is no mark beside a tag.
_TAG_LIMIT = 2000
_BEHIND_TAG = lazy_pattern(rf"(?:[ \t,;]*(?:{_ANY}|{_BESIDE_TAGS}))+[ \t.]*$")
_BEFORE_TAG = lazy_pattern(rf"[ \t]*(?:(?:{_ANY}|{_BESIDE_TAGS})[ \t,;]*)+(?=[*_`\\]{{0,4}}\[)")


def behind_tag(text: str) -> str:
    """Return what is behind a tag on its line, without the marks at its end."""
    found = _BEHIND_TAG.search(text) if len(text) < _TAG_LIMIT else None
    return text if found is None else text[: found.start()]


def off_tag(line: str) -> str:
    """Return the line of a tag without marks before, within and behind it."""
    line = without(line)
    at = line.find("]") + 1
    line = line[:at] + behind_tag(line[at:]) if at else line
    before = _BEFORE_TAG.match(line)
    return line if before is None else line[before.end() :]
