"""Find the secrets in a text: known kinds, keys, assignments, headers, addresses, words to people.

Every expression is anchored at a literal that `str.find` found, and every repetition in one has an upper
limit: a text full of look-alikes costs linear time.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern
from codingagent.secrets import assigned, containers, members, values
from codingagent.secrets.rules import CONTEXT, RULES, STATED, Pattern, compiled
from codingagent.secrets.words import places, words


class Secret(Struct, frozen=True):
    """A secret by its offsets in the text, without quotes or anything else around it."""

    start: int
    end: int
    kind: str


def find_secrets(text: str, path: str = "") -> list[Secret]:
    """Return the secrets of a text, sorted and not overlapping.

    The path of the file says which form the text has; it may be empty.
    """
    for most, found in _CACHES:
        if len(text) <= most:
            return [*found(text, path)]
    return _found(text, path)


def _found(text: str, path: str) -> list[Secret]:
    lower = text.replace("\u0130", "i").lower()  # the one letter whose lower case is longer
    if not (_RUN.search(text) or any(map(lower.__contains__, SIGNS))):
        return _joined([Secret(*span) for span in containers.spans(text, lower, path)])
    form = values.form_of(path)
    known = _known_in_long if _CACHES[1][0] < len(text) <= _CACHES[2][0] else _known
    found = [*known(text), *_private_keys(text), *_in_context(text, lower, form)]
    found += _cookies(text, lower, form)
    found += (Secret(*span) for span in assigned.spans(text, lower, form))
    found += (Secret(*span) for span in members.spans(text, lower, form))
    found += (Secret(*span) for span in containers.spans(text, lower, path))
    return _joined(found)


# The same paths, words and lines are told in many places, the same files are looked through before an edit
# and for each request, and a whole request holds what a short one holds; each needs a hundred searches.
_CACHES = [
    (most, lru_cache(remembered)(lambda text, path: tuple(_found(text, path))))
    for most, remembered in ((300, 4096), (20_000, 128), (400_000, 2))
]


def _joined(found: list[Secret]) -> list[Secret]:
    """Return secrets sorted; overlapping ones become one, of the kind of the longer."""
    kept: list[Secret] = []
    for each in sorted(found, key=lambda each: (each.start, -each.end)):
        if kept and each.start < kept[-1].end:
            last = kept[-1]
            if each.end > last.end:
                longer = max(each, last, key=lambda one: one.end - one.start)
                kept[-1] = Secret(last.start, each.end, longer.kind)
        else:
            kept.append(each)
    return kept


# Known kinds. Nearly all of them are long runs of these characters, and such runs are few: leads are looked
# for in the runs only, which is five times faster.
_RUN = lazy_pattern(r"[A-Za-z0-9_.~-]{18,}")
_IN_RUN = lazy_pattern(r"[A-Za-z0-9_.~-]+")
# What can come right before a secret inside a longer string.
_ESCAPE = lazy_pattern(
    r"(?:\\[a-z0]|[%=][0-9A-F]{2}|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\x1b\[[0-9;]{0,9}m)$", re.IGNORECASE
)


# Leads that also end common words.
_WORDS = words(
    "key- live_ test_ sandbox_ secret_ sdk- api- mob- rel- pat. sat. ext_ API- perm: perm- oauth: v1.0-"
)


_LEADS = [
    (lead, rule, "+/" in rule.expression or not _IN_RUN.fullmatch(lead))
    for rule in RULES
    for lead in rule.leads
]
# Most texts are short, and have no run.
DIRECT_LEADS = [each for each in _LEADS if each[2]]


def _known(text: str) -> Iterator[Secret]:
    runs = [(match.start(), match.group()) for match in _RUN.finditer(text)]
    short = "\n".join(run for _, run in runs)
    starts = list(accumulate((len(run) + 1 for _, run in runs), initial=0))
    for lead, rule, direct in _LEADS if runs else DIRECT_LEADS:
        where = text if direct else short
        if lead not in where:
            continue
        end = 0
        for at in places(where, lead):
            place = at
            if not direct:
                index = bisect_right(starts, at) - 1
                place = runs[index][0] + at - starts[index]
            if place >= end and (match := _match(rule, lead, text, place)):
                group = min(1, match.re.groups)
                if values.is_example(match[group]):
                    end = match.end()
                else:
                    yield Secret(*match.span(group), rule.kind)


# A long file is looked through twice after an edit: as a file of its form, and as a text on the screen.
_known_in_long = lru_cache(2)(lambda text: tuple(_known(text)))


def _match(rule: Pattern, lead: str, text: str, at: int) -> re.Match[str] | None:
    expression = compiled(rule.expression)
    if rule.back:
        return expression.search(text, max(0, at - rule.back), at + rule.back + 250)
    if (len(lead) < 4 or lead.isalnum() or lead in _WORDS) and _continues(text, at):
        return None
    return expression.match(text, at)


def _continues(text: str, at: int) -> bool:
    """Return whether a word goes on here that began before."""
    if not at or not (text[at - 1].isalnum() or text[at - 1] == "_"):
        return False
    return not _ESCAPE.search(text, max(0, at - 12), at)


# Private keys, each line a secret of its own: so line numbers stay true.
_BEGIN = lazy_pattern(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_HEADER = lazy_pattern(r"[A-Z][A-Za-z-]{2,20}: ")
# After a margin, as of a quotation or a string: base64, in which `\n` can be written out.
_BODY = lazy_pattern(
    r"[\s\"'`+>|#*,;.-]*(?:\d+[ \t|:]+)?(?:\\[nr]|[\"'` ])*"
    r"([A-Za-z0-9+/=]{2,}(?:(?:\\[nr])+[A-Za-z0-9+/=]+)*)"
)
_SHORTEST_LINE = 16


def _private_keys(text: str) -> Iterator[Secret]:
    done = 0
    for at in places(text, "PRIVATE KEY"):
        if at < done:
            continue
        line = text.rfind("\n", max(0, at - 100), at) + 1 or max(0, at - 100)
        if begin := _BEGIN.search(text, max(line, at - 60), at + 30):
            end = text.find("-----END", begin.end(), begin.end() + 100_000)
            yield from (spans := [*_key_lines(text, begin.end(), end)])
            done = max(end, spans[-1].end if spans else at)
        elif (end := text.rfind("-----END", line, at)) >= 0:
            yield from _key_lines_before(text, end)
    for at in places(text, "Private-Lines:"):
        start = text.find("\n", at) + 1
        yield from _key_lines(text, start, -1) if start else ()


def _key_lines(text: str, start: int, end: int) -> Iterator[Secret]:
    """Yield the lines of a key; without an end, those that look like one."""
    closed = end >= 0
    while start < (end if closed else len(text)):
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        stop = min(stop, end) if closed else stop
        match = _BODY.match(text, start, stop)
        if (
            match
            and (closed or len(match[1]) >= _SHORTEST_LINE)
            and not _HEADER.match(text, start, stop)
        ):
            yield Secret(match.start(1), match.end(1), "PRIVATEKEY")
        elif not closed and text[start:stop].strip():
            return
        start = stop + 1


def _key_lines_before(text: str, end: int) -> Iterator[Secret]:
    """Yield the lines of a key whose beginning was cut off."""
    stop = end
    while stop > 0:
        start = text.rfind("\n", 0, stop - 1) + 1
        match = _BODY.match(text, start, stop)
        if not match or len(match[1]) < _SHORTEST_LINE:
            return
        yield Secret(match.start(1), match.end(1), "PRIVATEKEY")
        stop = start


# The leads by form, each once: most texts have none of them.
_IN_PROSE, _ELSEWHERE = (
    (rules, tuple(dict.fromkeys(lead for rule in rules for lead in rule.leads)))
    for rules in (CONTEXT + STATED, CONTEXT)
)


def _in_context(text: str, lower: str, form: values.Form) -> Iterator[Secret]:
    """Yield what a word or a sign nearby makes a secret: headers, addresses, commands."""
    rules, leads = _IN_PROSE if form is values.Form.PROSE else _ELSEWHERE
    known = {lead: places(lower, lead) for lead in leads if lead in lower}
    there = ((rule, lead) for rule in rules for lead in rule.leads if lead in known)
    for rule, lead in there:
        expression = compiled(rule.expression)
        end = 0
        for at in known[lead]:
            if at < end:
                continue
            if rule.back:
                match = expression.search(text, max(end, at - rule.back), at + rule.back)
            else:
                match = expression.match(text, at)
            if match and rule.check(match[1], form):
                yield Secret(match.start(1), match.end(1), rule.kind)
                end = match.end(1)
            elif match and len(match[1]) > assigned.LONG:
                end = match.end(1)  # or each lead in it would be judged to the same end


_COOKIES = lazy_pattern(
    r"cookie2?[\"'\])]{0,3}\s{0,3}[:=,]\s{0,3}[\"'`]?([^\"'`\n]{8,8000})", re.IGNORECASE
)
_COOKIE = lazy_pattern(r"[\w.-]{1,80}=([^;\s]{12,4000})")


def _cookies(text: str, lower: str, form: values.Form) -> Iterator[Secret]:
    end = 0
    for at in places(lower, "cookie"):
        if at >= end and (header := _COOKIES.match(text, at)):
            end = header.end()
            for pair in _COOKIE.finditer(text, header.start(1), end):
                if values.is_token(pair[1], form):
                    yield Secret(pair.start(1), pair.end(1), "COOKIE")


def _shortest(leads: Iterable[str]) -> tuple[str, ...]:
    """Return the leads that hold no other: a text without these has none at all."""
    lower = {lead.lower() for lead in leads}
    kept = (one for one in lower if not any(each in one for each in lower - {one}))
    return tuple(sorted(kept, key=len))  # the short ones are in most texts


# A text with none of these, and without a run, has secrets only if the form of its file says so.
SIGNS = _shortest(
    (
        *(lead for lead, _, _ in DIRECT_LEADS),
        *_IN_PROSE[1],
        *assigned.STEMS,
        *("private-lines:", "cookie"),  # "private key" has a stem
    )
)
