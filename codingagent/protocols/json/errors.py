"""Faults of a message: where each is, and what is allowed there, in one line."""

from typing import Generic, Literal, TypeVar

from msgspec import Struct
from pydantic import ValidationError

from codingagent.model.paths import shown
from codingagent.protocols.json.events import EVENT_TYPES
from codingagent.protocols.json.fields import (
    COMMAND_LIMIT,
    FILE_LIMIT_BYTES,
    MESSAGE_LIMIT,
    PATH_LIMIT,
    PRESENT,
    TIMEOUT_HIGHEST_MS,
    TIMEOUT_LOWEST_MS,
)
from codingagent.protocols.json.operations import OPERATION_TYPES

_T_co = TypeVar("_T_co", covariant=True)


class Fault(Struct, frozen=True):
    """A place (`operations[3].timeout`) and the fault there; as text both, in one line."""

    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where} {self.reason}"


class MessageError(ValueError):
    """The value is not the message that it should be; as text one line."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.where = fault.where
        self.reason = fault.reason


class OperationValidationError(MessageError):
    """The value is not an operation."""


class Accepted(Struct, Generic[_T_co], frozen=True):
    """It is valid; `data` is what it says."""

    data: _T_co
    error: None = None
    success: Literal[True] = True


class Rejected(Struct, frozen=True):
    """It is not valid; `error` is the first fault of it."""

    error: Fault
    data: None = None
    success: Literal[False] = False


Validated = Accepted[_T_co] | Rejected

_TEXT = "a text"
_FLAG = "true or false"
_WHOLE = "a whole number"
_ENCODING = "'utf-8' or 'base64'"
_PATH = f"a relative path without `..` and NUL, of at most {PATH_LIMIT} characters"

# What may be in a field, where that is not just any text; in some it depends on the type that has it.
_ALLOWED = {
    "path": _PATH,
    "cwd": _PATH,
    "command": f"a text of at most {COMMAND_LIMIT} characters",
    "timeout": f"a whole number of milliseconds from {TIMEOUT_LOWEST_MS} to {TIMEOUT_HIGHEST_MS}",
    "encoding": _ENCODING,
    "overwrite": _FLAG,
    "edits": "a list of objects that each have the texts oldContent and newContent",
    "env": "an object whose values are texts",
    "protocolVersion": "'1.0'",
    "operations": "a list of operations",
    "events": "a list of events",
    "timestamp": "a time in ISO 8601, such as '2025-01-15T10:30:00Z'",
    "success": _FLAG,
    "timedOut": _FLAG,
    "bytesWritten": _WHOLE,
    "size": _WHOLE,
    "editsApplied": _WHOLE,
    "exitCode": _WHOLE,
    "durationMs": "a number",
    "details": "an object",
    "category": "one of validation, policy, execution, timeout, system",
    "status": "one of completed, awaiting_approval, error",
    "approval": "an object with operationId and decision",
    "decision": "'approved' or 'denied'",
    "operation message.content": f"a text of at most {MESSAGE_LIMIT} characters",
    "operation createFile.content": f"a text that makes a file of at most {FILE_LIMIT_BYTES} bytes",
    # In an event these tell what happened, not what may be asked for.
    "event path": _TEXT,
    "event command": _TEXT,
    "event message.success": "true",
}

# After these more of the way follows; after others only what pydantic calls its own validators.
_CONTAINERS = frozenset({"edits", "env", "details", "approval"})

# A value of JSON with millions of faults would cost gigabytes to describe.
_FAULTS_LIMIT = 1_000


def fault_of(
    error: ValidationError, root: str, *, of: Literal["operation", "event"], name: str = ""
) -> Fault:
    """Return the first fault. `root` is where the value checked is; empty: on its own.

    `of` says what the value is, or is a message of; `name` what to call it, if not that.
    """
    if error.error_count() > _FAULTS_LIMIT:
        return Fault(root or name or of, f"has more than {_FAULTS_LIMIT} faults")
    first = error.errors(include_url=False, include_context=False)[0]
    place, value = first["loc"], first["input"]
    if place and place[0] in {"operations", "events"} and len(place) > 1:
        root, place = f"{place[0]}[{place[1]}]", place[2:]
    types = OPERATION_TYPES if of == "operation" else EVENT_TYPES
    if not place:
        return _fault_of_whole(root or of, bool(root), value, types)
    # After the tag of a union its fields follow; a field of a message itself has no tag before it.
    tag, steps = (str(place[0]), place[1:]) if place[0] in types else ("", place)
    if PRESENT in steps[1:]:
        label = steps.index(PRESENT, 1)
        steps = (*steps[:label], *steps[label + 1 :])
    where = _way(root, steps)
    allowed = _allowed(tag, steps, of=of)
    if first["type"] == "missing":
        return Fault(where, f"is missing; it must be {allowed}")
    if isinstance(value, str) and not is_text(value):
        return Fault(where, "holds half of a surrogate pair; a text is whole characters")
    return Fault(where, f"must be {allowed}, not {described(value)}")


def described(value: object) -> str:
    """Return a value of JSON in words of bounded length, whatever it is."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{shown(value)}'" if len(value) <= 60 else f"one of {len(value)} characters"
        case int() | float():
            # Numbers too long for people would also be too long for Python to print.
            return repr(value) if not abs(value) > 1e18 else "a number as large"
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"a value of Python's {type(value).__name__}"


def is_text(value: str) -> bool:
    """Return whether a string is whole characters, without half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fault_of_whole(where: str, has_root: bool, value: object, types: tuple[str, ...]) -> Fault:
    if not isinstance(value, dict):
        return Fault(where, f"must be an object, not {described(value)}")
    place = f"{where}.type" if has_root else "type"
    allowed = f"must be one of {', '.join(types)}"
    if "type" not in value:
        return Fault(place, f"is missing; it {allowed}")
    return Fault(place, f"{allowed}, not {described(value['type'])}")


def _way(root: str, steps: tuple[int | str, ...]) -> str:
    if steps[0] not in _CONTAINERS:
        steps = steps[:1]
    way = root
    for step in steps:
        if isinstance(step, int):
            way += f"[{step}]"
        elif step != "[key]":
            way += f".{shown(step)}" if way else shown(step)
    return way


def _allowed(tag: str, steps: tuple[int | str, ...], *, of: Literal["operation", "event"]) -> str:
    name = str(steps[0])
    if len(steps) > 1 and name in _CONTAINERS:
        if isinstance(steps[-1], int):
            return "an object"
        name = "" if name == "env" else steps[-1]
    places = (f"{of} {tag}.{name}", f"{of} {name}", name)
    return next((_ALLOWED[place] for place in places if place in _ALLOWED), _TEXT)
