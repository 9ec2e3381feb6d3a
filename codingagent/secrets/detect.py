"""Find the secrets in a text, in linear time: expressions begin at literals, and repetitions have limits."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern
from codingagent.secrets import assigned, containers, rules, values
from codingagent.secrets.rules import compiled, rows, words
from codingagent.secrets.texts import Places, places


class Secret(Struct, frozen=True):
    """A secret by its offsets in the text, without quotes or anything else around it."""

    start: int
    end: int
    kind: str
    is_wide: bool = True
    """Its value is hidden in every text, not only where it was found."""


def find_secrets(text: str, path: str = "") -> list[Secret]:
    """Return the secrets of a text, sorted and not overlapping; the path of its file tells its form."""
    return [*next((found for most, found in _CACHES if len(text) <= most), _found)(text, path)]


def _found(text: str, path: str) -> list[Secret]:
    form, leads = values.form_of(path), _leads_in(text)
    found: list[Secret] = []
    if leads:
        found += (*_by_rules(text, leads, form), *_private_keys(text, leads))
        found += _cookies(text, leads, form)
        named = assigned.spans(text, leads, form), containers.members(text, leads, form)
        found += (Secret(*span) for spans in named for span in spans)
    found += (Secret(*span) for span in containers.by_form(text, leads, path))
    return _joined(found)


# The same paths, words and lines are told in many places, the same files are looked through before an edit
# and for each request, and a whole request holds what a short one holds; each needs a hundred searches.
_CACHES = [
    (most, lru_cache(remembered)(lambda text, path: tuple(_found(text, path))))
    for most, remembered in ((300, 4096), (20_000, 128), (2_000_000, 4))
]


def _joined(found: list[Secret]) -> list[Secret]:
    """Return secrets sorted; overlapping ones become one, of the kind of the longer."""
    kept: list[Secret] = []
    for each in sorted(found, key=lambda each: (each.start, -each.end)):
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
        elif each.end > (last := kept[-1]).end:
            longer = max(each, last, key=lambda one: one.end - one.start)
            kept[-1] = Secret(last.start, each.end, longer.kind)
    return kept


# Known kinds. Nearly all of them are long runs of these characters, and such runs are few: leads are looked
# for in the runs only, which is five times faster.
_RUN = lazy_pattern(r"[A-Za-z0-9_.~-]{18,}")
_IN_RUN = lazy_pattern(r"[A-Za-z0-9_.~-]+")
_ESCAPE = lazy_pattern(rules.part("escape"), re.IGNORECASE)
# Leads that also end common words.
_WORDS = words("kinds after a word")
# A secret that begins before its lead ends at most so many characters after it.
_BEHIND = 250


class SecretRule(Struct, frozen=True):
    """One kind of secret: literal leads, and the expression that matches at one or, by `back`, before."""

    kind: str
    leads: tuple[str, ...]
    expression: str
    """The secret is its group 1, if it has one."""
    back: int = 0
    judge: str = ""
    """How what stands beside a word is judged; empty for what its form alone makes a secret."""
    is_stated: bool = False


_NEAR = lazy_pattern(r"(\w+) (\w+) *(\d*)((?: *`[^`]+`)+)(.+)")


def _rules() -> Iterator[SecretRule]:
    for kind, *leads, rest in map(str.split, rows("kinds")):
        some = "|".join(map(re.escape, leads))
        yield SecretRule(kind, tuple(leads), f"(?:{some})(?:{rest})(?![0-9A-Za-z])")
    for kind, lead, back, whole in map(str.split, rows("kinds around")):
        yield SecretRule(kind, (lead,), f"(?:{whole})(?![0-9A-Za-z])", int(back))
    for section in ("near", "near in sentences"):
        for kind, judge, back, leads, whole in _NEAR.findall("\n".join(rows(section))):
            each = tuple(leads.strip()[1:-1].split("` `"))
            is_stated = section != "near"
            yield SecretRule(kind, each, f"(?i:{whole})", int(back or 0), judge, is_stated)


RULES = tuple(_rules())


# Of each lead the places of its rules, each with the lead.
_RANKS: dict[str, list[tuple[int, str]]] = {}
for _rank, _rule in enumerate(RULES):
    for _lead in _rule.leads:
        _RANKS.setdefault(_lead, []).append((_rank, _lead))


def _by_rules(text: str, leads: Places, form: values.Form) -> Iterator[Secret]:
    """Yield known kinds, and what a word or a sign nearby makes a secret: headers, addresses, commands."""
    there = sorted(each for lead in leads for each in _RANKS.get(lead, ()))
    for rule, lead in ((RULES[rank], lead) for rank, lead in there):
        if rule.is_stated and form is not values.Form.PROSE:
            continue
        is_short = len(lead) < 4 or lead.isalnum() or lead in _WORDS
        is_whole = not (rule.judge or rule.back) and is_short
        expression = compiled(rule.expression)
        end = 0
        for at in leads[lead]:
            # A word that began before goes on here.
            goes_on = is_whole and at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")
            if at < end or (goes_on and not _ESCAPE.search(text, max(0, at - 12), at)):
                continue
            low, high = max(end, at - rule.back), at + (rule.back if rule.judge else _BEHIND)
            match = expression.search(text, low, high) if rule.back else expression.match(text, at)
            if match is None:
                continue
            first, last = match.span(min(1, expression.groups))
            is_secret = values.JUDGES[rule.judge](text[first:last], form)
            if is_secret:
                yield Secret(first, last, rule.kind)
            if is_secret or not rule.judge or last - first > assigned.LONG:
                end = last


# Private keys, each line a secret of its own: so line numbers stay true.
_BEGIN = lazy_pattern(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_HEADER = lazy_pattern(r"[A-Z][A-Za-z-]{2,20}: ")
_BODY = lazy_pattern(rules.part("key_line"))
_LINE = lazy_pattern(r"[^\n]+")


def _private_keys(text: str, leads: Places) -> Iterator[Secret]:
    done = 0
    for at in leads.get("PRIVATE KEY", ()):
        if at < done:
            continue
        line = text.rfind("\n", max(0, at - 100), at) + 1 or max(0, at - 100)
        if begin := _BEGIN.search(text, max(line, at - 60), at + 30):
            end = text.find("-----END", begin.end(), begin.end() + 100_000)
            lines = _LINE.finditer(text, begin.end(), len(text) if end < 0 else end)
            spans = [*_key_lines(text, map(re.Match.span, lines), is_closed=end >= 0)]
            yield from spans
            done = max(end, spans[-1].end if spans else at)
        elif (end := text.rfind("-----END", line, at)) >= 0:
            yield from _key_lines(text, _lines_before(text, end))
    for at in leads.get("Private-Lines:", ()):
        start = text.find("\n", at) + 1 or len(text)
        yield from _key_lines(text, map(re.Match.span, _LINE.finditer(text, start)))


def _key_lines(text: str, lines: Iterable[tuple[int, int]], *, is_closed: bool = False) -> Iterator[Secret]:
    """Yield the lines of a key; where one end of it is not there, as long as they look like some."""
    for start, stop in lines:
        match = _BODY.match(text, start, stop)
        is_long = match and (is_closed or len(match[1]) >= 16)
        if match and is_long and not _HEADER.match(text, start, stop):
            yield Secret(*match.span(1), "PRIVATEKEY")
        elif not is_closed and text[start:stop].strip():
            return


def _lines_before(text: str, end: int) -> Iterator[tuple[int, int]]:
    while end > 0:
        start = text.rfind("\n", 0, end - 1) + 1
        yield start, end
        end = start


_COOKIES = lazy_pattern(r"cookie2?[\"'\])]{0,3}\s{0,3}[:=,]\s{0,3}[\"'`]?([^\"'`\n]{8,8000})", re.IGNORECASE)
_COOKIE = lazy_pattern(r"[\w.-]{1,80}=([^;\s]{12,4000})")


def _cookies(text: str, leads: Places, form: values.Form) -> Iterator[Secret]:
    end = 0
    for at in leads.get("cookie", ()):
        if at >= end and (header := _COOKIES.match(text, at)):
            end = header.end()
            for pair in _COOKIE.finditer(text, header.start(1), end):
                if values.is_token(pair[1], form):
                    yield Secret(pair.start(1), pair.end(1), "COOKIE")


_KNOWN = [(lead, rule.expression) for rule in RULES if not rule.judge for lead in rule.leads]
# Of known kinds, the leads that are looked for outside of runs, too.
_ANYWHERE = {lead for lead, rest in _KNOWN if "+/" in rest or not _IN_RUN.fullmatch(lead)}
_IN_RUNS = {lead for lead, _ in _KNOWN} - _ANYWHERE
_ANYWHERE |= {"PRIVATE KEY", "Private-Lines:"}
_LOWER = {"cookie", *assigned.STEMS, *containers.HEADINGS}
_LOWER.update(lead for rule in RULES if rule.judge for lead in rule.leads)

# Of a part of a text: at least so many characters, and so many more if no blank line comes before.
_PART_LEAST, _PART_MORE = 250, 1_750


def _leads_in(text: str) -> Places:
    found: Places = {}
    at = 0
    for part in _parts(text):
        for lead, there in _leads_of_part(part).items():
            found.setdefault(lead, []).extend([at + each for each in there])
        at += len(part)
    return found


def _parts(text: str) -> Iterator[str]:
    """Yield a text in parts of whole lines, cut by these alone: what an edit leaves is known then."""
    at = 0
    while at < len(text):
        least = at + _PART_LEAST
        gap = text.find("\n\n", least, least + _PART_MORE + 2)
        end = text.find("\n", gap + 1 if gap >= 0 else least + _PART_MORE) + 1 or len(text)
        yield text[at:end]
        at = end


@lru_cache(8192)  # of texts before the last ones, too
def _leads_of_part(text: str) -> Places:
    lower = text.replace("\u0130", "i").lower()  # the one letter whose lower case is longer
    found = {lead: places(lower, lead) for lead in _LOWER if lead in lower}
    found |= {lead: places(text, lead) for lead in _ANYWHERE if lead in text}
    runs = [*_RUN.finditer(text)]
    short = "\n".join(run[0] for run in runs)
    for lead in (lead for lead in _IN_RUNS if lead in short) if short else ():
        found[lead] = [run.start() + at for run in runs for at in places(run[0], lead)]
    return found
