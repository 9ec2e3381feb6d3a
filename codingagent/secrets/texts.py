"""Tell where words are in a text; change all texts in a value, at any depth."""

from collections.abc import Callable, Sequence
from enum import Enum
from operator import is_
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model import encoding

Places = dict[str, list[int]]
"""Where words are in a text; one that is not in it has no entry."""


def places(text: str, word: str, step: int = 0) -> list[int]:
    """Return where a word is in a text; not overlapping unless there is a step."""
    found: list[int] = []
    at = text.find(word)
    while at >= 0:
        found.append(at)
        at = text.find(word, at + (step or len(word)))
    return found


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with all of its texts changed: of structs, sequences, sets and dicts, at any depth."""
    match value:
        # First, because nearly all values are one of these.
        case str() if not isinstance(value, Enum):
            return change(value)
        case Enum() | None | bool() | int() | float():
            return value
        case bytes():
            found = encoding.decode_file(value)
            if found is not None and found.codec.startswith(("utf-16", "utf-32")):
                return found.encode(change(found.text))
            text = value.decode("utf-8", "surrogateescape")
            changed = change(text)
            return value if changed == text else changed.encode("utf-8", "surrogateescape")
        case Struct():
            changes: dict[str, Any] = {}
            for name in value.__struct_fields__:
                each = getattr(value, name)
                # Most fields are empty or numbers, and answers have thousands of them.
                if each and each.__class__ is not int and (new := mapped(each, change)) is not each:
                    changes[name] = new
            return replace(value, **changes) if changes else value
        case Sequence() | frozenset():
            items = [mapped(each, change) for each in value]
            kind = frozenset if isinstance(value, frozenset) else tuple
            return value if all(map(is_, items, value)) else kind(items)
        case dict():
            return {mapped(key, change): mapped(each, change) for key, each in value.items()}
        case _:
            return value
