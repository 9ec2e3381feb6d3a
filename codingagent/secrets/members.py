"""Find secrets in lists and maps: members inherit the name of what holds them, `passwords` or `api_keys`."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from codingagent.model.patterns import lazy_pattern
from codingagent.secrets import values
from codingagent.secrets.assigned import STEMS, is_about, kind_of, name_at
from codingagent.secrets.values import Form
from codingagent.secrets.words import Places

# What follows the name of what holds secrets.
_HOLDER = lazy_pattern(
    r"""(?P<rest>[\w-]{0,48}+)(?:(?P<table>(?:\.[\w.-]{1,40})?\]{1,2}[ \t]*\r?\n)"""
    r"""|(?P<plist></key>\s{0,40}<(?:array|dict)>)|["'`]?\]?(?:[ \t]*\[\d{0,3}\])?[ \t]{0,20}(?:"""
    # passwords: list[str] = [; passwords := map[string]string{; PASSWORDS=(; passwords = new Map([
    r"""(?P<open>(?::[ \t]*[A-Za-z_\[][\w.<>\[\], |&;:]{0,40}=|[:+]=|=>|[:=])\s{0,20}(?:"""
    r"""(?:new[ ])?(?:dict|list|tuple|(?:frozen)?set|[Aa]rrays?(?:\.asList)?|(?:mutable)?(?:list|set|map)Of"""
    r"""|\w{0,20}(?:List|Set|Map)(?:<[^<>()\n]{0,40}>)?(?:\.(?:of|ofEntries))?)?\("""
    r"""|(?:new[ ]?)?[\w.<>,]{0,30}(?:\[\w{0,20}\])?[\w*.<>]{0,20}[ ]?\{|(?:vec!|%[wi])?\[|(?:qw|@)?\("""
    r"""|@\{))"""
    r"""|(?P<block>:[ \t]*(?:[&!][\w-]{1,40}[ \t]*)?(?:#[^\n]{0,200})?\r?\n))"""
    r"""|(?P<element>(?:[ ][^<>\n]{0,80})?>))"""
)
_TOKEN = lazy_pattern(
    r"""(?P<quote>["'`])(?P<quoted>(?:[^"'`\\\n]|\\.|(?!(?P=quote))["'`]){0,500})(?P=quote)|(?P<open>[\[({])"""
    r"""|(?P<close>[\])}])|(?P<bare>[^\s"'`,;\[\]{}()<>]{1,500})|\#[^\n]{0,500}"""
)
_AFTER_KEY = lazy_pattern(r"[ \t]{0,20}(?:\][ \t]{0,20})?(?:=>|[:=])(?!=)")
_KEY = r"""[ \t]*(?:-[ \t]+)*(?:["']?(?P<key>[\w.@/-]{1,60})["']?[ \t]{0,20}"""
_MEMBER = (
    r"""[ \t]*(?:(?P<quote>["'])(?P<quoted>[^"'\n]{1,500})(?P=quote)"""
    r"""|(?P<bare>[^\s"'#\[{&*|>][^\s"']{0,500}))"""
    r"""[ \t]*,?[ \t]*(?:\#[^\n]*)?\r?$"""
)
_IN_BLOCK = lazy_pattern(rf"{_KEY}:(?=\s))?{_MEMBER}")
_IN_TABLE = lazy_pattern(rf"{_KEY}[:=]){_MEMBER}")
_TEXT = lazy_pattern(r">\s{0,80}([^<>\s][^<>\n]{0,500}?)\s{0,80}</")
# A longer collection is looked through up to here.
_CHARACTERS = 20_000


class _Member(NamedTuple):
    start: int
    end: int
    key: str
    is_bare: bool


def spans(text: str, leads: Places, form: Form) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and kind of each secret that what holds it names; each text is read once."""
    found = {at: stem for stem in STEMS for at in leads.get(stem, ())}
    end = 0
    for at in sorted(found):
        holder = _HOLDER.match(text, at + len(found[at])) if at >= end else None
        if holder is None:
            continue
        start, name = name_at(text, at, holder.end("rest"))
        if (kind := kind_of(name)) is None:
            continue
        is_plural = name.rstrip("_0123456789").lower().endswith("s") and name[-2:].lower() != "ss"
        members, end = _members(text, start, holder, form)
        members = [each for each in members if not (each.key and is_about(each.key))]
        fitting = [each for each in members if _fits(text, each, kind, form, is_plural=is_plural)]
        # Of the tokens of a parser, or the keys of a keyboard, some look random.
        if len(fitting) * 3 >= len(members):
            yield from ((each.start, each.end, kind.replace("MAYBE", "KEY")) for each in fitting)


def _fits(text: str, member: _Member, kind: str, form: Form, *, is_plural: bool) -> bool:
    """Return whether a member is a secret: in a list of passwords any word, elsewhere what looks like one."""
    value = text[member.start : member.end]
    if kind != "PASSWORD" or not is_plural:
        return values.is_token(value, Form.CODE, named=kind != "MAYBE")
    is_word = bool(member.key) or form is not Form.DATA
    as_form = Form.CODE if is_word else form
    return values.is_password(value, as_form, quoted=is_word or not member.is_bare)


def _members(text: str, start: int, holder: re.Match[str], form: Form) -> tuple[list[_Member], int]:
    """Return the members of a collection, each with its key and whether it is bare, and where it ends."""
    at = holder.end()
    most = min(at + _CHARACTERS, len(text))
    line = text.rfind("\n", max(0, start - 200), start) + 1
    before = text[line:start] if line else text[max(0, start - 200) : start]
    if holder["open"]:
        return _in_brackets(
            text, at, most, form, is_words=holder["open"].endswith(("%w[", "%i[", "qw("))
        )
    if holder["plist"] or (holder["element"] and before.rstrip().endswith("<")):
        tag = "</array" if holder["plist"] else f"</{text[start : holder.end('rest')]}"
        end = text.find(tag, at, most)
        found = _TEXT.finditer(text, at - 1, end + 2 if end > 0 else at)
        return [_Member(*each.span(1), "", is_bare=True) for each in found], at
    is_table = holder["table"] and re.fullmatch(r"\[{1,2}[\w.-]{0,100}", before)
    if is_table or (holder["block"] and form is Form.DATA):
        margin = None if is_table else len(before) - len(before.lstrip(" -"))
        return _in_lines(text, at, most, margin)
    return [], at


def _in_brackets(
    text: str, at: int, most: int, form: Form, *, is_words: bool
) -> tuple[list[_Member], int]:
    found: list[_Member] = []
    depth, key = 1, ""
    for token in _TOKEN.finditer(text, at, most):
        at = token.end()
        depth += bool(token["open"]) - bool(token["close"])
        if not depth:
            break
        group = "quoted" if token["quote"] else "bare"
        word = token[group]
        if not word:
            continue
        if _AFTER_KEY.match(text, at) or (group == "bare" and word.endswith((":", "=", "=>"))):
            key = word.strip(":=>") or key
        elif group == "quoted" or is_words or form is Form.DATA:
            found.append(_Member(*token.span(group), key, group == "bare"))
            key = ""
    return found, at


def _in_lines(text: str, at: int, most: int, margin: int | None) -> tuple[list[_Member], int]:
    """Return the members of a block of YAML, deeper than its name, or of a table of TOML or INI."""
    found: list[_Member] = []
    expression = _IN_TABLE if margin is None else _IN_BLOCK
    while at < most:
        stop = text.find("\n", at, most) + 1 or most
        bare = text[at:stop].strip()
        depth = stop - at - len(text[at:stop].lstrip(" "))
        is_inside = (
            depth > margin or (depth == margin and bare[0] == "-")
            if bare and margin is not None
            else True
        )
        if not is_inside or (margin is None and bare.startswith("[")):
            break
        if entry := expression.match(text, at, stop - text.startswith("\n", stop - 1)):
            group = "quoted" if entry["quote"] else "bare"
            found.append(_Member(*entry.span(group), entry["key"] or "", group == "bare"))
        at = stop
    return found, at
