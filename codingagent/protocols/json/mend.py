"""Repair an answer that is almost JSON, where it can be read in one way only.

Models forget escapes: a line end, a quote or a backslash stands in a string as it is. Chats and models
leave a comma after the last item. Each is repaired where its context says what was meant; a text that
then still is no message of known fields is not taken.
"""

import json
from dataclasses import fields
from typing import get_args

from pydantic.alias_generators import to_camel

from codingagent.model.patterns import lazy_pattern
from codingagent.protocols.json.operations import FileEdit, Operation, OperationsMessage

_LINE_END, _COMMA, _BACKSLASH, _QUOTE = (
    "line ends in strings written as \\n",
    "commas after the last item removed",
    "single backslashes doubled",
    "quotes in strings escaped",
)

# What is longer is asked for again: character by character it would take seconds.
_LIMIT_CHARACTERS = 2 * 2**20

_ESCAPES = '"\\/bfnrtu'

# What ends a string for certain; a comma does so only before a field's name.
_ENDS_OBJECT = lazy_pattern(r"\s*(?:[}\]]|\Z)")
_NEXT_FIELD = lazy_pattern(r'\s*,\s*(?:"([^"]*)"\s*:|[{}\]])')
_COLON = lazy_pattern(r"\s*:")
_CLOSES = lazy_pattern(r"\s*[}\]]")
_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def mended(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return valid JSON for an answer that is almost that, and what was repaired; None if in doubt."""
    if len(text) > _LIMIT_CHARACTERS:
        return None
    for has_quotes in (False, True):
        found = _Scan(text, has_quotes=has_quotes).mended()
        if found is not None and found[1] and _is_message(found[0]):
            return found
    return None


class _Scan:
    """One pass over the text; `has_quotes` also takes quotes inside strings for the string's own."""

    def __init__(self, text: str, *, has_quotes: bool) -> None:
        self._text = text
        self._has_quotes = has_quotes
        self._notes: dict[str, None] = {}
        self._has_escapes = False

    def mended(self) -> tuple[str, tuple[str, ...]] | None:
        text, parts, at, is_value = self._text, list[str](), 0, False
        while at < len(text):
            char = text[at]
            if char == '"':
                found = self._string(at + 1, is_value=is_value)
                if found is None:
                    return None
                body, at = found
                parts.append(f'"{body}"')
                is_value = False
                continue
            if char == "," and _CLOSES.match(text, at + 1):
                self._notes[_COMMA] = None
            else:
                parts.append(char)
            # In a list of strings there are no names: no field of a message is one.
            is_value = char == ":" or (is_value and char.isspace())
            at += 1
        # A model that wrote \d for a backslash may have written \n or \\ for one, too.
        if self._has_escapes and _BACKSLASH in self._notes:
            return None
        return "".join(parts), tuple(self._notes)

    def _string(self, start: int, *, is_value: bool) -> tuple[str, int] | None:
        """Return a string's text as JSON writes it, and where it ended; None if it can't be known."""
        text, parts, at = self._text, list[str](), start
        while at < len(text):
            char = text[at]
            if char == "\\":
                after = text[at + 1 : at + 2]
                if after and after in _ESCAPES:
                    self._has_escapes |= after != '"'
                    parts.append(text[at : at + 2])
                    at += 2
                    continue
                self._notes[_BACKSLASH] = None
                parts.append("\\\\")
            elif char == '"':
                ends = self._ends(at, is_value=is_value)
                # After two backslashes it may have been a backslash and an escaped quote.
                if ends is None or (not ends and parts[-1:] == ["\\\\"]):
                    return None
                if ends:
                    return "".join(parts), at + 1
                self._notes[_QUOTE] = None
                parts.append('\\"')
            elif char in _CONTROLS:
                self._notes[_LINE_END] = None
                parts.append(_CONTROLS[char])
            else:
                parts.append(char)
            at += 1
        return None

    def _ends(self, at: int, *, is_value: bool) -> bool | None:
        """Return whether the quote at this place ends its string; None if that can't be known."""
        if not self._has_quotes:
            return True
        if not is_value:
            return _COLON.match(self._text, at + 1) is not None
        if _ENDS_OBJECT.match(self._text, at + 1):
            return True
        found = _NEXT_FIELD.match(self._text, at + 1)
        if found is None:
            return False
        # Another name may be a field that we do not know, or text.
        return True if found[1] is None or found[1] in _NAMES else None


def _wire_names() -> frozenset[str]:
    values = (OperationsMessage, FileEdit, *get_args(Operation))
    names = {to_camel(each.name) for value in values for each in fields(value)}
    return frozenset(names | {"session", "sequence"})


_NAMES = _wire_names()


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field stands twice")
    return found


def _is_message(text: str) -> bool:
    """Return whether a text is JSON, and all its fields are known: none was torn from a string."""
    try:
        value = json.loads(text, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError):
        return False
    operations = value.get("operations") if isinstance(value, dict) else None
    if not isinstance(operations, list) or not value.keys() <= _NAMES:
        return False
    for operation in operations:
        edits = operation.get("edits", []) if isinstance(operation, dict) else None
        if not isinstance(edits, list):
            return False
        for each in (operation, *edits):
            if not isinstance(each, dict) or not each.keys() <= _NAMES:
                return False
    return True
