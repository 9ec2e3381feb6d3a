"""Parse messages from JSON or from dicts: whole, or each operation by itself; write them.

What is no JSON, nested too deep or over the size limit is no message. NaN and Infinity are read as
numbers, of which no field takes one; so only the operation that holds them suffers. Where an object
names a field twice, the last counts, as with every common reader of JSON.
"""

import json
import math
from codecs import BOM_UTF8
from functools import cache
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct
from pydantic import TypeAdapter, ValidationError

from codingagent.model.operations import AT_ONCE
from codingagent.model.paths import shown
from codingagent.protocols.json import wire
from codingagent.protocols.json.wire import WORDED, Event, Operation, OperationsMessage, is_text

# Room for two files of the largest size. What JSON can make of so much takes a gigabyte of memory.
SIZE_LIMIT_BYTES = 32 * 2**20

# What Python itself reads; a longer number would cost the square of its length.
_DIGITS_LIMIT = 4_300

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class MessageError(ValueError):
    """The value is not the message that it should be; as text one line: a place and the fault there."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where} {reason}")
        self.where = where
        self.reason = reason


class OperationValidationError(MessageError):
    """The value is not an operation."""


class Accepted(Struct, Generic[_T_co], frozen=True):
    """It is valid; `data` is what it says."""

    data: _T_co
    error: None = None
    success: Literal[True] = True


class Rejected(Struct, frozen=True):
    """It is not valid; `error` is the first fault of it."""

    error: MessageError
    data: None = None
    success: Literal[False] = False


Validated = Accepted[_T_co] | Rejected


class Malformed(Struct, frozen=True):
    """Something in a message's list that is no operation; `id` is its own, if it has one."""

    id: str | None
    where: str
    reason: str


Received = tuple[Operation | Malformed, ...]
"""An operations message as it came: each item is an operation, or says why it is none."""


def validate_operation(obj: object) -> Validated[Operation]:
    """Return whether a value of JSON (a dict) is an operation; one of our own values is one."""
    return _validated(wire.TaggedOperation, obj, "operation")


def parse_operation(obj: object) -> Operation:
    """Return the operation that a value of JSON (a dict) is.

    Raises:
        OperationValidationError: if it is none; says where, and what is allowed.
    """
    validated = validate_operation(obj)
    if validated.success:
        return validated.data
    raise OperationValidationError(validated.error.where, validated.error.reason)


def validate_operations_message(obj: object) -> Validated[OperationsMessage]:
    """Return whether a value of JSON is an operations message, each operation in it valid."""
    return _validated(OperationsMessage, obj)


def validate_event(obj: object) -> Validated[Event]:
    """Return whether a value of JSON is an event."""
    return _validated(wire.TaggedEvent, obj, "event")


def validate_events_message(obj: object) -> Validated[wire.EventsMessage]:
    """Return whether a value of JSON is an events message, each event in it valid."""
    return _validated(wire.EventsMessage, obj)


def validate_approval(obj: object) -> Validated[wire.ApprovalMessage]:
    """Return whether a value of JSON is a structured approval, `{"approval": {...}}`."""
    return _validated(wire.ApprovalMessage, obj)


def read_operations_message(source: object) -> Received:
    """Read a message from JSON (str, or bytes in UTF-8), or from a value of JSON (a dict).

    An operation that is malformed does not spoil the others.

    Raises:
        MessageError: if this is no operations message at all, or has too many of them.
    """
    if isinstance(source, str | bytes):
        # A str is counted in characters, of which there are never more than bytes.
        if len(source) > SIZE_LIMIT_BYTES:
            reason = (
                f"has {len(source)} bytes; at most {SIZE_LIMIT_BYTES} are read: send less at once"
            )
            raise MessageError("message", reason)
        text = _without_mark(source)
        try:
            # The way of nearly all messages: all in one, with no value of Python in between.
            message = _adapter(OperationsMessage).validate_json(text, by_name=False)
        except ValueError:
            source = value_of(text)
        else:
            return _not_too_many(message.operations)
    envelope = _validated(_Envelope, source)
    if not envelope.success:
        raise envelope.error
    operations = _not_too_many(envelope.data.operations)
    return tuple(_item(f"operations[{index}]", obj) for index, obj in enumerate(operations))


def _without_mark(text: str | bytes) -> str | bytes:
    """Return JSON without the byte-order mark that some editors put before it."""
    return text.removeprefix("\ufeff") if isinstance(text, str) else text.removeprefix(BOM_UTF8)


def _not_too_many(operations: tuple[_T, ...]) -> tuple[_T, ...]:
    if len(operations) <= AT_ONCE:
        return operations
    reason = (
        f"hold {len(operations):,}; at most {AT_ONCE:,} are executed at once: send several messages"
    )
    raise MessageError("operations", reason)


class _Envelope(wire.Wire):
    """A message whose operations have not been looked at yet."""

    protocol_version: Literal["1.0"]
    operations: tuple[Any, ...]


def _item(where: str, obj: object) -> Operation | Malformed:
    found: Validated[Operation] = _validated(wire.TaggedOperation, obj, where)
    if found.success:
        return found.data
    own = obj.get("id") if isinstance(obj, dict) else None
    return Malformed(own if is_text(own) else None, found.error.where, found.error.reason)


@cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)


def _validated(form: Any, obj: object, name: str = "message") -> Validated[Any]:
    """Return whether a value has a form; `name` is where it is, or what it should be."""
    try:
        return Accepted(_adapter(form).validate_python(obj, by_name=False))
    except ValidationError as error:
        return Rejected(_fault(error, name))


# What may stand in a place, by pydantic's name for the fault there; where not named, an object.
_ALLOWED = {
    WORDED: "{words}",
    "union_tag_invalid": "one of {expected_tags}",
    "literal_error": "{expected}",
    "string_type": "a text",
    "string_too_long": "a text of at most {max_length} characters",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "tuple_type": "a list",
}


def _fault(error: ValidationError, name: str) -> MessageError:
    """Return the first fault in our words."""
    first = error.errors(include_url=False)[0]
    kind, steps, value = first["type"], [*first["loc"]], first["input"]
    # The tag of a union is no step of the way.
    tag = 2 if name == "message" else 0
    del steps[tag : tag + 1]
    if kind.startswith("union_tag") and isinstance(value, dict):
        steps.append("type")
        value = value.get("type")
    root = name if "[" in name or not steps else ""
    way = "".join(f"[{s}]" if isinstance(s, int) else f".{shown(s)}" for s in steps if s != "[key]")
    where = (root + way).removeprefix(".")
    if kind in {"missing", "union_tag_not_found"}:
        return MessageError(where, "is missing")
    if isinstance(value, str) and not is_text(value):
        return MessageError(where, "holds half of a surrogate pair; a text is whole characters")
    known = {**first.get("ctx", {}), "words": first["msg"]}
    allowed = _ALLOWED.get(kind, "an object").format_map(known)
    return MessageError(where, f"must be {allowed}, not {described(value)}")


def described(value: object) -> str:
    """Return a value of JSON in words of bounded length, whatever it is."""
    if isinstance(value, str):
        return f"'{shown(value)}'" if len(value) <= 60 else f"one of {len(value)} characters"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        # Numbers too long for people would also be too long for Python to print.
        return repr(value) if not abs(value) > 1e18 else "a number as large"
    names: dict[type, str] = {dict: "an object", list: "a list", tuple: "a list"}
    return names.get(type(value), f"a value of Python's {type(value).__name__}")


def value_of(text: str | bytes) -> object:
    """Return the value that JSON means; MessageError if it is no JSON, or nested too deep."""
    try:
        text = text.decode() if isinstance(text, bytes) else text
        return json.loads(text, parse_int=_integer)
    except UnicodeDecodeError as error:
        fault = f"is not UTF-8: byte {error.start + 1} is not allowed there"
    except json.JSONDecodeError as error:
        fault = f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
    except RecursionError:
        fault = "is nested too deep to be read; a message needs five levels"
    raise MessageError("message", fault)


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= _DIGITS_LIMIT else math.inf


def to_wire(value: wire.Wire) -> dict[str, Any]:
    """Return an operation, event or message as a value of JSON; what is absent is left out."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def to_json(value: wire.Wire) -> str:
    """Return an operation, event or message as JSON on one line; what is absent is left out."""
    return value.model_dump_json(by_alias=True, exclude_none=True)


def schema_of(form: type[wire.Wire]) -> dict[str, Any]:
    """Return the JSON Schema of a message, which can't state one rule: the limit of a file counts bytes."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **form.model_json_schema()}
