"""Reads messages, from JSON or from what a program made of it: whole or not, or each operation by itself.

What is no JSON, nested too deep or over the size limit is no message. NaN and Infinity are read as
numbers, of which no field takes one; so only the operation that holds them suffers. Where an object
names a field twice, the last counts, as with every common reader of JSON.
"""

import json
import math
from codecs import BOM_UTF8
from functools import cache
from typing import Any, Literal, TypeVar

from msgspec import Struct
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from codingagent.model.operations import AT_ONCE
from codingagent.protocols.json.errors import (
    Accepted,
    Fault,
    MessageError,
    OperationValidationError,
    Rejected,
    Validated,
    described,
    fault_of,
    is_text,
)
from codingagent.protocols.json.events import (
    Approval,
    ApprovalMessage,
    Event,
    EventsMessage,
    TaggedEvent,
)
from codingagent.protocols.json.fields import FROM_WIRE, wire_value
from codingagent.protocols.json.operations import Operation, OperationsMessage, TaggedOperation

# Room for two files of the largest size. What JSON can make of so much takes a gigabyte of memory.
SIZE_LIMIT_BYTES = 32 * 2**20

# What Python itself reads; a longer number would cost the square of its length.
_DIGITS_LIMIT = 4_300

_T = TypeVar("_T")

WireValue = Operation | Event | OperationsMessage | EventsMessage | ApprovalMessage


class Malformed(Struct, frozen=True):
    """Something in a message's list that is no operation; `id` is its own, if it has one."""

    id: str | None
    fault: Fault


Received = tuple[Operation | Malformed, ...]
"""An operations message as it came: each item is an operation, or says why it is none."""


def validate_operation(obj: object) -> Validated[Operation]:
    """Return whether a value of JSON (a dict) is an operation; one of our own values is one."""
    return _validated(TaggedOperation, obj, of="operation")


def parse_operation(obj: object) -> Operation:
    """Return the operation that a value of JSON (a dict) is.

    Raises:
        OperationValidationError: if it is none; says where, and what is allowed.
    """
    validated = validate_operation(obj)
    if validated.success:
        return validated.data
    raise OperationValidationError(validated.error)


def validate_operations_message(obj: object) -> Validated[OperationsMessage]:
    """Return whether a value of JSON is an operations message, each operation in it valid."""
    return _validated_message(OperationsMessage, obj, of="operation")


def validate_event(obj: object) -> Validated[Event]:
    """Return whether a value of JSON is an event."""
    return _validated(TaggedEvent, obj, of="event")


def validate_events_message(obj: object) -> Validated[EventsMessage]:
    """Return whether a value of JSON is an events message, each event in it valid."""
    return _validated_message(EventsMessage, obj, of="event")


def validate_approval(obj: object) -> Validated[Approval]:
    """Return whether a value of JSON is a structured approval, `{"approval": {...}}`."""
    validated = _validated_message(ApprovalMessage, obj, of="event")
    return Accepted(validated.data.approval) if validated.success else validated


def read_operations_message(source: object, *, limit_bytes: int = SIZE_LIMIT_BYTES) -> Received:
    """Read a message from JSON (str, or bytes in UTF-8), or from a value of JSON (a dict).

    An operation that is malformed does not spoil the others. `limit_bytes` is for JSON; a str is
    counted in characters, of which there are never more than bytes.

    Raises:
        MessageError: if this is no operations message at all, or has too many of them.
    """
    if isinstance(source, str | bytes):
        text = _without_mark(source, limit_bytes)
        try:
            # The way of nearly all messages: all in one, with no value of Python in between.
            message = _adapter(OperationsMessage).validate_json(
                text, by_name=False, context=FROM_WIRE
            )
        except ValueError:
            source = value_of(text)
        else:
            return _not_too_many(message.operations)
    if isinstance(source, OperationsMessage):
        return _not_too_many(source.operations)
    envelope = _validated_message(_Envelope, source, of="operation")
    if not envelope.success:
        raise MessageError(envelope.error)
    operations = _not_too_many(envelope.data.operations)
    return tuple(_item(f"operations[{index}]", obj) for index, obj in enumerate(operations))


def _not_too_many(operations: tuple[_T, ...]) -> tuple[_T, ...]:
    if len(operations) > AT_ONCE:
        raise MessageError(
            Fault(
                "operations",
                f"hold {len(operations):,}; at most {AT_ONCE:,} are executed at once: send several messages",
            )
        )
    return operations


def to_wire(value: WireValue) -> Any:
    """Return an operation, event or message as a value of JSON; what is absent is left out."""
    form: Any = type(value)
    return _adapter(form).dump_python(value, mode="json", by_alias=True, exclude_none=True)


def to_json(value: WireValue) -> str:
    """Return an operation, event or message as JSON on one line; what is absent is left out."""
    return to_json_bytes(value).decode()


def to_json_bytes(value: WireValue) -> bytes:
    """Return the same in UTF-8, without a copy as text."""
    form: Any = type(value)
    return _adapter(form).dump_json(value, by_alias=True, exclude_none=True)


@wire_value
class _Envelope:
    """A message whose operations have not been looked at yet."""

    protocol_version: Literal["1.0"]
    operations: tuple[Any, ...]


@cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)


def _validated(
    form: Any, obj: object, *, of: Literal["operation", "event"], root: str = "", name: str = ""
) -> Validated[Any]:
    try:
        return Accepted(_adapter(form).validate_python(obj, by_name=False, context=FROM_WIRE))
    except ValidationError as error:
        return Rejected(fault_of(error, root, of=of, name=name))


def _validated_message(
    form: Any, obj: object, *, of: Literal["operation", "event"]
) -> Validated[Any]:
    if isinstance(obj, dict | form):
        return _validated(form, obj, of=of, name="message")
    return Rejected(Fault("message", f"must be an object, not {described(obj)}"))


def _item(where: str, obj: object) -> Operation | Malformed:
    found: Validated[Operation] = _validated(TaggedOperation, obj, of="operation", root=where)
    if found.success:
        return found.data
    own = obj.get("id") if isinstance(obj, dict) else None
    return Malformed(own if isinstance(own, str) and is_text(own) else None, found.error)


def _without_mark(text: str | bytes, limit_bytes: int) -> str | bytes:
    """Return JSON without the byte-order mark that some editors put before it."""
    if len(text) > limit_bytes:
        raise MessageError(
            Fault(
                "message",
                f"has {len(text)} bytes; at most {limit_bytes} are read: send less at once",
            )
        )
    return text.removeprefix("\ufeff") if isinstance(text, str) else text.removeprefix(BOM_UTF8)


def value_of(text: str | bytes) -> object:
    """Return the value that JSON means.

    Raises:
        MessageError: if it is no JSON, or nested too deep.
    """
    try:
        return from_json(text)
    except (ValueError, TypeError):
        # Half a surrogate pair, a number without end: JSON all the same, in one operation of many.
        # Python's own reader takes it, more slowly.
        pass
    try:
        text = text.decode() if isinstance(text, bytes) else text
        return json.loads(text, parse_int=_integer)
    except UnicodeDecodeError as error:
        fault = f"is not UTF-8: byte {error.start + 1} is not allowed there"
    except json.JSONDecodeError as error:
        fault = f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
    except RecursionError:
        fault = "is nested too deep to be read; a message needs five levels"
    raise MessageError(Fault("message", fault))


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= _DIGITS_LIMIT else math.inf
