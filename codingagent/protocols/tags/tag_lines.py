"""Read a line as one of our tags, whatever a chat made of it.

Each row of RULES undoes one thing that chats do to a tag. They are tried in order, each on top of those
before it, until the line reads as the grammar has it. A line that never does is not a tag.
"""

import re
from collections.abc import Callable

from msgspec import Struct

from codingagent.model import chat_damage, citations, commands
from codingagent.model.chat_damage import Channel, Damage, Rule
from codingagent.model.patterns import lazy_pattern
from codingagent.protocols.tags import scanner

_HEAD = lazy_pattern(r"\[(/?)([A-Z][A-Z0-9_]*)(?=[ \t\]])")
_CLOSING = lazy_pattern(r"\[/[A-Z_]+(?: [A-Za-z0-9._-]+)?\]")
_NAMES = (*commands.HAS_BODY, "REPLY", "END")
_JOINT = r"(?:_|[^\sA-Za-z0-9]{1,9}|&#[xX]?[0-9A-Fa-f]{2,4};)"
MENTION = lazy_pattern(f"(?:{'|'.join(_NAMES).replace('_', _JOINT)})(?![A-Za-z0-9])")
"""A command's name, whatever became of its `_`."""
SAID = "the chat changed the tag, and it was read as meant: {what}"


RULES: tuple[Rule[Callable[[str], str]], ...] = tuple(
    Rule(damage.value, SAID, undo)
    for damage, undo in (
        (Damage.DIRECTION, lambda text: chat_damage.TURN.sub("", text)),
        (Damage.CITATIONS, citations.off_tag),
        (Damage.BLANKS, chat_damage.with_plain_blanks),
        (Damage.ENTITIES, chat_damage.without_entities),
        # A chat that escapes all has escaped the bracket, too.
        (
            Damage.UNDERSCORES,
            lambda tag: chat_damage.without_underscore_escapes(tag) if tag[:1] == "[" else tag,
        ),
        (Damage.ESCAPES, chat_damage.without_escapes),
        (Damage.QUOTES, chat_damage.with_straight_quotes),
    )
)


class Tag(Struct, frozen=True):
    """A line that is one of our tags once its damage is undone.

    `way` is the damage to its characters that was undone; it is empty for a tag as it should be.
    """

    start: int
    end: int
    text: str
    name: str
    is_closing: bool
    way: Channel

    @property
    def is_one_line(self) -> bool:
        return self.text.endswith(f"[/{self.name}]") and not self.is_closing


def tag_of(text: str, start: int, end: int) -> Tag | None:
    """Return the line between two offsets as the tag that it is; None if it is not a tag."""
    line = text[start:end].rstrip().lstrip(" \t")
    if line[-1:].isalnum() and line[-1:].isascii() and "cite" not in line:
        return None  # no damage ends so: none of the rules need be tried
    done: list[str] = []
    head = _head(line)
    for rule in () if head is not None else RULES:
        undone = rule.run(line).strip(" \t")
        if undone == line:
            continue
        line = undone
        done.append(rule.name)
        if (head := _head(undone)) is not None:
            break
    if head is None:
        return None
    return Tag(start, end, line, head[2], bool(head[1]), frozenset(map(Damage, done)))


def _head(text: str) -> re.Match[str] | None:
    """Return the start of a tag as the grammar has it, with nothing after it; None if it is not one."""
    head = _HEAD.match(text)
    if head is None or head[2] not in _NAMES:
        return None
    if head[1]:
        return head if _CLOSING.fullmatch(text) else None
    is_tag = scanner.is_opening(text, head.end()) or (
        text.endswith(f"[/{head[2]}]") and scanner.is_opening(text.partition("]")[0] + "]", head.end())
    )
    return head if is_tag else None
