"""Read a line as one of our tags, whatever a chat made of it.

Each row of RULES undoes one thing that chats do to a tag. They are tried in order, each on top of those
before it, until the line reads as the grammar has it. A line that never does is not a tag.
"""

import re
from collections.abc import Callable
from functools import cache

from msgspec import Struct

from codingagent.model import chat_damage, citations
from codingagent.model.chat_damage import Channel, Damage, Rule
from codingagent.model.patterns import lazy_pattern
from codingagent.protocols.tags import scanner

_HEAD = lazy_pattern(r"\[(/?)([A-Z][A-Z0-9_]*)(?=[ \t\]])")
_CLOSING = lazy_pattern(r"\[/[A-Z_]+(?: [A-Za-z0-9._-]+)?\]")
_WRAPPING = "*_`~"
_WRAPPED_NAME = lazy_pattern(r"\A\[[*_`~]*(/?)[*_`~]*([A-Z][A-Z_]*?)[*_`~]+(?=[ \]])")
_VALUE_QUOTES = lazy_pattern(r"""=[ \t]*(?:'([^'"\n]*)'|"([^'"\n]*)'|([^\s"'\[\]=<>&\\]+))(?=[ \t\]])""")
# As they are typed in other languages.
_CORNERS = lazy_pattern(
    r"=[ \t\u00a0]*(?:[「『«‹]|'')[ \t\u00a0]*([^「」『』«»‹›\"'\n]*?)[ \t\u00a0]*(?:[」』»›]|'')"
)
_INNER_BLANKS = lazy_pattern(r"\A(\[)[ \t]*(/?)[ \t]*(?=[A-Z])|[ \t]+(?=\]\Z)")
_BREAK = lazy_pattern(r"(?:[ \t]*<br[ \t]*/?>)+[ \t]*$", re.IGNORECASE)
_COMMENT = lazy_pattern(r"[ \t]*<!--[ \t]*(.*?)[ \t]*-->[ \t]*")
_DAMAGES = {damage.value: damage for damage in Damage}
SAID = "the chat changed the tag, and it was read as meant: {what}"


class _Line:
    """A line under repair; `prefix` is what was taken off its start."""

    def __init__(self, text: str, names: frozenset[str]) -> None:
        self.text = text
        self.prefix = ""
        self.names = names

    def without(self, pattern: re.Pattern[str]) -> str:
        """Take a prefix off, if it is the first one; return the rest."""
        found = None if self.prefix else pattern.match(self.text)
        if found is None:
            return self.text
        self.prefix = found[0]
        return self.text[found.end() :]


def _row(name: str, undo: Callable[[str], str]) -> Rule[Callable[[_Line], str]]:
    return Rule(name, SAID, lambda line: undo(line.text))


def _mark(name: str, pattern: str) -> Rule[Callable[[_Line], str]]:
    compiled = re.compile(pattern)
    return Rule(name, SAID, lambda line: line.without(compiled))


def _without_emphasis(text: str) -> str:
    if text[:1] in _WRAPPING or text[-1:] in _WRAPPING:
        text = text.strip(_WRAPPING).strip()
    return _WRAPPED_NAME.sub(r"[\1\2", text)


def _without_underscore_escapes(line: _Line) -> str:
    undone = chat_damage.without_underscore_escapes(line.text)
    return undone if _head(undone, line.names) else line.text


_EMPHASIS = _row("bold or code", _without_emphasis)
RULES: tuple[Rule[Callable[[_Line], str]], ...] = (
    _row(Damage.BREAKS.value, lambda text: _BREAK.sub("", text).rstrip()),
    _row(Damage.SOFT_HYPHENS.value, lambda text: chat_damage.without_soft_hyphens(text).rstrip()),
    _row(Damage.ZERO_WIDTH.value, lambda text: chat_damage.without_zero_width(text).rstrip()),
    _row(Damage.DIRECTION.value, lambda text: chat_damage.TURN.sub("", text).rstrip()),
    _row(Damage.CITATIONS.value, lambda text: citations.off_tag(text).rstrip()),
    _row(Damage.BLANKS.value, lambda text: chat_damage.with_plain_blanks(text).rstrip()),
    _mark("quoted", r"[ \t]*(?:>[ \t]?)+"),
    _mark("a list item", r"[ \t]*(?:[-*+•‣◦]|\d{1,3}[.)])[ \t]+"),
    _mark("a heading", r"[ \t]*#{1,6}[ \t]+"),
    Rule("indentation", "", lambda line: line.without(re.compile(r"\s+"))),
    _row("a comment", lambda text: _COMMENT.sub(r"\1", text)),
    _EMPHASIS,
    _row(Damage.BRACKETS.value, chat_damage.with_ascii_brackets),
    _row(Damage.ENTITIES.value, chat_damage.without_entities),
    Rule(Damage.UNDERSCORES.value, SAID, _without_underscore_escapes),
    _row(Damage.ESCAPES.value, chat_damage.without_escapes),
    _row(Damage.QUOTES.value, chat_damage.with_straight_quotes),
    _row("quotes of other languages", lambda text: _CORNERS.sub(r'="\1"', text)),
    _EMPHASIS,
    _row("spaces inside its brackets", lambda text: _INNER_BLANKS.sub(r"\1\2", text)),
    _row("attributes without double quotes", lambda text: _VALUE_QUOTES.sub(r'="\1\2\3"', text)),
)


class Tag(Struct, frozen=True):
    """A line that is one of our tags once its damage is undone.

    `prefix` is what was before it (a quote mark, its indentation). `how` names what was undone; it is
    empty for a tag as it should be. `way` is the damage to its characters.
    """

    start: int
    end: int
    text: str
    name: str
    is_closing: bool
    prefix: str
    how: tuple[str, ...]
    way: Channel

    @property
    def is_one_line(self) -> bool:
        return self.text.endswith(f"[/{self.name}]") and not self.is_closing


def tag_of(text: str, start: int, end: int, names: frozenset[str]) -> Tag | None:
    """Return the line between two offsets as the tag that it is; None if it is not a tag."""
    line = _Line(text[start:end].rstrip(), names)
    if line.text[-1:].isalnum() and line.text[-1:].isascii() and "cite" not in line.text:
        return None  # no damage ends so: none of the rules need be tried
    done: list[str] = []
    head = _head(line.text, names)
    for rule in () if head is not None else RULES:
        undone = rule.run(line)
        if undone == line.text:
            continue
        line.text = undone
        if rule.said:
            done.append(rule.name)
        if (head := _head(undone, names)) is not None:
            break
    if head is None:
        return None
    way = frozenset(_DAMAGES[name] for name in done if name in _DAMAGES)
    how = [name for name in done if name not in _DAMAGES]
    how += [damage.value for damage in Damage if damage in way]
    return Tag(start, end, line.text, head[2], bool(head[1]), line.prefix, tuple(how), way)


def _head(text: str, names: frozenset[str]) -> re.Match[str] | None:
    """Return the start of a tag as the grammar has it, with nothing after it; None if it is not one."""
    head = _HEAD.match(text)
    if head is None or head[2] not in names:
        return None
    if head[1]:
        return head if _CLOSING.fullmatch(text) else None
    is_tag = scanner.is_opening(text, head.end()) or (
        text.endswith(f"[/{head[2]}]") and scanner.is_opening(text.partition("]")[0] + "]", head.end())
    )
    return head if is_tag else None


@cache
def mention_of(names: tuple[str, ...], *, unseen: bool) -> re.Pattern[str]:
    """Return a pattern of commands' names, whatever became of the `_`; `unseen` may be between."""
    joint = r"(?:_|[^\sA-Za-z0-9]{1,9}|&#[xX]?[0-9A-Fa-f]{2,4};)"
    between = f"(?:{chat_damage.ZERO_WIDTH.pattern})*" if unseen else ""
    parts = ([between.join(part) for part in name.split("_")] for name in (*names, "REPLY", "END"))
    words = map(joint.join, parts)
    return re.compile(f"(?:{'|'.join(words)})(?![A-Za-z0-9])")
