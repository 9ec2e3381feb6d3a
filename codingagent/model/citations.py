"""The marks that chats put behind what they cite: one row for each form, and how to take them off a text.

Chats invent new ones each year. A new form is a new row of FORMS, and nothing else.
"""

import re
from functools import cache

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern


class Citation(Struct, frozen=True):
    """One form: `traces` are texts of which each mark has one, `pattern` matches a mark.

    A group of the pattern is text that stays. `is_typed` means that a person may type such a mark;
    `is_named` that its words tell it from other text all the same. A chat's own form proves its others.
    """

    chat: str
    example: str
    traces: str
    pattern: str
    is_typed: bool = False
    is_named: bool = True


_NUMBERS = r"\d+(?:[ \t]*[-–,][ \t]*\d+)*"
_CITE = rf"\[cite:[ \t]*{_NUMBERS}(?:†\w{{0,40}})?\]"
_OAI = r"\[oai_citation[^\[\]\n]{0,200}\](?:\([^()\n]{0,500}\))?"
FORMS = (
    Citation(
        "ChatGPT",
        ":contentReference[oaicite:2]{index=2}",
        "oaicite",
        r"(?::?contentReference)?\[oaicite:[^\[\]\n]{0,20}\](?:\{index=\d+\})?",
    ),
    Citation(
        "ChatGPT",
        "【4:0†file.py】",
        "†",
        r"[【〖][^【】〖〗†\n]{0,200}†[^【】〖〗\n]{0,200}[】〗]"
        r"|\[(?:\d+(?::\d+)?|F:[^\[\]†\n]{1,200})†[^\[\]\n]{0,200}\]",
    ),
    Citation(
        "ChatGPT",
        "U+E200 cite U+E202 turn0search1 U+E201",
        "\ue200",
        "\ue200(?:url\ue202([^\ue200-\ue202\n]{0,200})|[a-z_]{1,20})\ue202[^\ue200\ue201\n]{0,400}\ue201",
    ),
    Citation(
        "ChatGPT",
        "citeturn0search1",
        "citeturn, 【turn",
        r"(?:file|nav)?cite(?:turn\d+[a-z]+\d+)+(?:L\d+(?:-L?\d+)?)?|【turn\d[^【】\n]{0,200}】",
    ),
    Citation(
        "ChatGPT",
        "([source](https://example.org/?utm_source=chatgpt.com))",
        "utm_source=",
        r"\(\[[^\[\]\n]{1,80}\]\([^()\s]{1,500}[?&]utm_source=(?:chatgpt\.com|openai)[^()\s]{0,200}\)\)",
    ),
    Citation(
        "ChatGPT", "[oai_citation:1‡a.py](sandbox:/a.py)", "[oai_citation", rf"\({_OAI}\)|{_OAI}"
    ),
    Citation(
        "ChatGPT",
        "[1](file:///a.py)",
        "](file:, ](sandbox:",
        rf"\[\^?{_NUMBERS}\]\((?:file|sandbox):[^()\n]{{0,400}}\)",
    ),
    Citation(
        "ChatGPT",
        "[source](file:///a.py)",
        "](file:, ](sandbox:",
        r"\(?\[(?:[Ss]ource|[\w-]+(?:\.[\w-]+)+)\]\((?:file|sandbox):[^()\n]{0,400}\)\)?",
        is_typed=True,
    ),
    Citation("Gemini", "[cite_start]", "[cite_", r"\[cite_(?:start|end)\][ \t]?"),
    Citation("Gemini", "[span_0](start_span)", "_span)", r"\[span_\d+\]\((?:start|end)_span\)"),
    Citation("Gemini", "[cite: 3]", "[cite:", rf"\[{_CITE}\]|{_CITE}", is_typed=True),
    Citation("DeepSeek", "[citation:3]", "[citation:", rf"\[citation:[ \t]*{_NUMBERS}\]"),
    Citation(
        "Perplexity",
        "[web:3]",
        "[web:, file:, [page:, [memory:, [source:, [ref:, [doc:, [chunk:, [来源:, [引用:, [Quelle:",
        r"\[(?:web|(?:attached_|code_)?file|page|memory|source|ref|doc|chunk|来源|引用|Quelle):[ \t]*"
        rf"{_NUMBERS}\]",
        is_typed=True,
        is_named=False,
    ),
    Citation(
        "Copilot, Kimi",
        "[^1^]",
        "[^, ^[",
        r"\[\^\d+\^\](?:\[\d+\]|\([^()\s]{0,500}\))?|\^\[\d+\]\^",
        is_typed=True,
        is_named=False,
    ),
    Citation(
        "Copilot",
        "<sup>[1]</sup>",
        "<sup>",
        rf"<sup>\[{{0,2}}{_NUMBERS}\]{{0,2}}(?:\([^()\s]{{0,500}}\))?</sup>",
        is_typed=True,
        is_named=False,
    ),
    Citation(
        "Claude",
        '<cite index="0-1">…</cite>',
        "cite index=",
        r'<(?:antml:)?cite index="[\d,:; -]{1,80}">|</(?:antml:)?cite>',
    ),
    Citation(
        "Grok",
        "<grok:render …>…</grok:render>",
        "<grok:render",
        r"<grok:render\b[^<>\n]{0,400}>[^\n]{0,400}?</grok:render>",
    ),
    Citation("Mistral", "[REF]3[/REF]", "[REF]", rf"\[REF\]{_NUMBERS}\[/REF\]"),
    Citation("Cohere", "<co: 0>…</co: 0>", "<co:", rf"</?co: {_NUMBERS}>"),
    Citation("Yuanbao", "[1](@ref)", "](@ref)", rf"\[{_NUMBERS}\]\(@ref\)"),
)

# What only the line of a tag can't mean: numbers and links in brackets.
_BESIDE_TAGS = (
    rf"\(?\[{{1,2}}\^?{_NUMBERS}\^?\]{{1,2}}(?:\([^()\n]{{0,500}}\))?\)?|[¹²³⁰⁴-⁹]+|<sup>[^<>\n]{{0,80}}</sup>"
    r"|\(?\[[^\[\]\n]{1,80}\](?:\([^()\n]{0,500}\)|\[\d+\])\)?|【[^【】\n]{0,80}】"
)


_TRACES = [(trace, form) for form in FORMS for trace in form.traces.split(", ")]


def forms_in(text: str) -> tuple[Citation, ...]:
    """Return the forms of which a text may hold a mark."""
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
    marked = pattern_of(there).sub(
        lambda found: "".join((*filter(None, found.groups()), "\0")), text
    )
    return _AT_END.sub("", marked).replace("\0", "")


def without_unquoted(text: str) -> str:
    """Take marks off a text for people, but for those that it shows as code."""
    parts = re.split(r"(`[^`\n]*`)", text) if forms_in(text) else [text]
    return "".join(part if index % 2 else without(part) for index, part in enumerate(parts))


ANY = lazy_pattern("|".join(form.pattern for form in FORMS))

# What is longer is no mark beside a tag.
_TAG_LIMIT = 2000
_BEHIND_TAG = lazy_pattern(rf"(?:[ \t,;]*(?:{pattern_of().pattern}|{_BESIDE_TAGS}))+[ \t.]*$")
_BEFORE_TAG = lazy_pattern(
    rf"[ \t]*(?:(?:{pattern_of().pattern}|{_BESIDE_TAGS})[ \t,;]*)+(?=[*_`\\]{{0,4}}\[)"
)


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
