"""Messages of this wire: parsed whole or each operation by itself, in the core's words and back, and written.

What is no JSON, nested too deep or over the size limit is no message. NaN and Infinity are read as
numbers, of which no field takes one; so only the operation that holds them suffers. Where an object
names a field twice, the last counts, as with every common reader of JSON.

The core knows no `createFile`: all that tells the one vocabulary from the other is here and in `wire`.
A value that 001 allows and the workspace refuses (a name of blanks, text that is not base64) is a
problem here, and becomes the failure event of its operation.
"""

import json
import math
import re
from functools import cache
from itertools import starmap
from typing import Any, Generic, Literal, TypeVar, assert_never

from msgspec import Struct
from msgspec.structs import replace
from pydantic import TypeAdapter, ValidationError

from codingagent.errors import OperationError
from codingagent.model import events as core
from codingagent.model import operations, paths
from codingagent.model.approval import Answer, operation_id
from codingagent.model.journal_entries import ApprovalAsked, OperationEnded
from codingagent.model.operations import AT_ONCE, Kind
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import without_halves
from codingagent.model.results import NOT_RUN_AGAIN, exit_code_of, why_ended
from codingagent.protocols.json import wire
from codingagent.protocols.json.wire import Event, Operation, OperationsMessage, is_text, type_of
from codingagent.protocols.tags.reply import Header, Problem, Reply, Step

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
Received = tuple[Operation | Problem, ...]
"""An operations message as it came: each item is an operation, or says why it is none."""


def validate_operation(obj: object) -> Validated[Operation]:
    """Return whether a value of JSON (a dict) is an operation; one of our own values is one."""
    return _validated(wire.TaggedOperation, obj, "operation")


def parse_operation(obj: object) -> Operation:
    """Return the operation that a value is; OperationValidationError says why it is none."""
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
    """Read a message of JSON (str, or UTF-8), or a dict; a malformed operation does not spoil the others.

    MessageError if this is no operations message at all, or has too many of them.
    """
    if isinstance(source, str | bytes):
        # A str is counted in characters, of which there are never more than bytes.
        if len(source) > SIZE_LIMIT_BYTES:
            most = f"at most {SIZE_LIMIT_BYTES} are read: send less at once"
            raise MessageError("message", f"has {len(source)} bytes; {most}")
        text = _text(source)
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
    return tuple(_item(index, obj) for index, obj in enumerate(operations))


def _not_too_many(operations: tuple[_T, ...]) -> tuple[_T, ...]:
    if (count := len(operations)) <= AT_ONCE:
        return operations
    most = f"at most {AT_ONCE:,} are executed at once: send several messages"
    raise MessageError("operations", f"hold {count:,}; {most}")


class _Envelope(wire.Wire):
    """A message whose operations have not been looked at yet."""

    protocol_version: Literal["1.0"]
    operations: tuple[Any, ...]


def _item(index: int, obj: object) -> Operation | Problem:
    found: Validated[Operation] = _validated(wire.TaggedOperation, obj, f"operations[{index}]")
    if found.success:
        return found.data
    own = obj.get("id") if isinstance(obj, dict) else None
    name = own if isinstance(own, str) and is_text(own) else operation_id(index)
    where = found.error.where
    return Problem(Kind.MALFORMED, str(found.error), index + 1, id=name, subject=where)


@cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)


def _validated(form: Any, obj: object, name: str = "message") -> Validated[Any]:
    """Return whether a value has a form; `name` is where it is, or what it should be."""
    try:
        return Accepted(_adapter(form).validate_python(obj, by_name=False))
    except ValidationError as error:
        return Rejected(_fault(error, name))


def _fault(error: ValidationError, name: str) -> MessageError:
    """Return pydantic's first fault: its place, and its words as the end of our sentence."""
    first = error.errors(include_url=False, include_input=False)[0]
    kind, about = first["type"], first.get("ctx", {})
    steps = [step for step in first["loc"] if step not in {"[key]", "int", "float"}]
    # The tag of a union is no step of the way.
    tag = 2 if name == "message" else 0
    del steps[tag : tag + 1]
    if kind.startswith("union_tag"):
        steps.append("type")
    root = name if "[" in name or not steps else ""
    way = "".join(f"[{s}]" if isinstance(s, int) else f".{paths.shown(s)}" for s in steps)
    reason = wire.RULES.get(about.get("pattern", ""), first["msg"])
    for was, better in _WORDS:
        reason = was.sub(better, reason)
    if kind in {"missing", "union_tag_not_found"}:
        reason = "is missing"
    elif kind == "union_tag_invalid":
        reason = f"must be one of {about['expected_tags']}"
    return MessageError((root + way).removeprefix("."), reason)


_WORDS = (
    (lazy_pattern(r"^(?:Input|String) should"), "must"),
    (lazy_pattern(r"a valid dictionary.*"), "an object"),
    (lazy_pattern(r"a valid tuple"), "a list"),
    (lazy_pattern(r"^Predicate.*"), "must be true"),
)


def value_of(source: str | bytes) -> object:
    """Return the value that JSON means; MessageError if it is no JSON, or nested too deep."""
    try:
        return json.loads(_text(source), parse_int=lambda d: int(d) if len(d) <= _DIGITS_LIMIT else math.inf)
    except json.JSONDecodeError as error:
        fault = f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
    except RecursionError:
        fault = "is nested too deep to be read; a message needs five levels"
    raise MessageError("message", fault)


def _text(source: str | bytes) -> str:
    """Return JSON as text, without the byte-order mark that some editors put before it."""
    try:
        text = source.decode() if isinstance(source, bytes) else source
    except UnicodeDecodeError as error:
        fault = f"is not UTF-8: byte {error.start + 1} is not allowed there"
        raise MessageError("message", fault) from error
    return text.removeprefix("\ufeff")


# --- operations in the core's words ---------------------------------------------------------------


def items_of(received: Received) -> tuple[Step | Problem, ...]:
    """Return what a message asks for, in order, each by its own id (001: not always unique) or its place."""
    return tuple(starmap(_step, enumerate(received)))


def _step(index: int, received: Operation | Problem) -> Step | Problem:
    if isinstance(received, Problem):
        return received
    line, name = index + 1, operation_id(index) if received.id is None else received.id
    try:
        return Step(received.asked(), line, id=name)
    except OperationError as fault:
        subject = getattr(received, "command", getattr(received, "path", ""))
        kind, why = received.kind, (fault.fact, line, fault.detail)
        return Problem(kind, *why, id=name, subject=subject, advice=fault.advice)


# --- events ----------------------------------------------------------------------------------------
def event_of(ended: OperationEnded) -> wire.Event:
    """Return the outcome of one operation as an event of this wire."""
    event = ended.event
    match event:
        case core.MessageShown() | core.Finished():
            return _made("message", ended, success=True)
        case core.FileCreated(path=path) | core.FileMoved(to=path):
            # Only the other protocol moves files; this one can say where the file is now.
            size = event.size_bytes
            return _made("createFile", ended, path=path, success=True, bytes_written=size)
        case core.FileFetched():
            found = {"content": event.content, "encoding": event.encoding, "size": event.size_bytes}
            return _made("readFile", ended, path=event.path, success=True, **found)
        case core.FileRequested(asked=path) | core.FolderListed(path=path):
            # Only the other protocol asks for these, and its request shows what was found.
            return _made("readFile", ended, path=path, success=True)
        case core.FileEdited(edits=edits):
            return _made("editFile", ended, path=event.path, success=True, edits_applied=edits)
        case core.FileDeleted():
            return _made("deleteFile", ended, path=event.path, success=True)
        case core.CommandRan():
            return _made(
                "shell",
                ended,
                command=event.command,
                success=core.succeeded(event),
                exit_code=exit_code_of(event),
                stdout=event.output if event.stdout is None else event.stdout,
                stderr=event.stderr or "",
                duration_ms=round(event.duration_s * 1000),
                error=why_ended(event) or None,
                timed_out=True if event.ended_by == "time_limit" else None,
            )
        case core.Denied():
            why = {"reason": event.reason, "suggestion": event.suggestion or None}
            return _made("policyDenied", ended, operation_type=type_of(event.kind), **why)
        case core.Interrupted():
            return _failure(ended, event, "; ".join((NOT_RUN_AGAIN, *event.notes)))
        case core.Refused():
            reason = f"{event.reason}\n{event.detail}" if event.detail else event.reason
            return _failure(ended, event, reason)
        case _:
            assert_never(event)


def _failure(ended: OperationEnded, event: core.Interrupted | core.Refused, reason: str) -> wire.Event:
    """Return the event of an operation that was not done; an error, where its type is not known."""
    type_ = type_of(event.kind)
    if issubclass(wire.EVENTS.get(type_, object), wire.FileOutcome):
        return _made(type_, ended, path=event.subject, success=False, error=reason)
    if type_ == "shell":
        return _made(type_, ended, command=event.subject, success=False, error=reason)
    return _made("error", ended, category="validation", message=reason)


def _made(type_: str, of: OperationEnded, **fields: Any) -> wire.Event:
    """Return an event; a field that is None is absent."""
    fields = {name: value for name, value in fields.items() if value is not None}
    # Names and commands may not be UTF-8.
    fields |= {name: without_halves(value) for name, value in fields.items() if isinstance(value, str)}
    event: wire.Event = wire.EVENTS[type_](operation_id=of.name, timestamp=of.at, **fields)
    return event


def approval_event(asked: ApprovalAsked) -> wire.ApprovalRequiredEvent:
    """Return the event of a run that has paused (001, approvalRequired)."""
    question = asked.question
    type_, reasons = type_of(question.kind), list(question.reasons)
    if type_ == "shell" and question.shown != question.subject:
        # Its folder and its variables decide too, and 001 has no field for them.
        reasons.append(f"it is run as: {question.shown}")
    about = {"command" if type_ == "shell" else "path": without_halves(question.subject)}
    policy = without_halves(", ".join(question.rules))
    return wire.ApprovalRequiredEvent(
        timestamp=asked.at,
        operation_id=asked.name,
        operation_type=type_,
        reason=without_halves("; ".join(reasons)),
        details=wire.ApprovalDetails(**about, policy=policy),
    )


# --- answers ---------------------------------------------------------------------------------------
def read_answer(source: object) -> tuple[str | None, Answer]:
    """Read the answer to an approval: the operation's id, if named, and the decision; else MessageError.

    JSON, or a value of it: `{"approval": {…}}`, or a `userMessage` event that says `approved` or `denied`,
    alone or in `{"events": […]}` (001, approval flow).
    """
    value = value_of(source) if isinstance(source, str | bytes) else source
    if isinstance(value, dict) and "approval" in value:
        found = validate_approval(value)
        if not found.success:
            raise found.error
        approval = found.data.approval
        return approval.operation_id, _answer(approval.decision, approval.reason or "")
    if isinstance(value, dict) and isinstance(events := value.get("events"), list):
        value = events[0] if len(events) == 1 else None
    if not isinstance(value, dict) or value.get("type") != "userMessage":
        raise MessageError("answer", "must hold an approval, or be a userMessage")
    content = value.get("content")
    said = content.strip().casefold() if isinstance(content, str) else ""
    if said not in {"approved", "denied"}:
        raise MessageError("content", "must be 'approved' or 'denied'")
    return None, _answer(said, "")


def _answer(decision: str, reason: str) -> Answer:
    return Answer("yes" if decision == "approved" else "no", reason=reason, how="program")


# --- a model's reply that is an operations message instead of tag blocks ---------------------------

# One that is never closed goes to the end: if it was cut short, reading it says where.
_FENCE = lazy_pattern(
    r"^[ \t]*(`{3,}|~{3,})[^`\n]*$(.*?)(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_DONE = "DONE:"
_WRITE = (
    r"; in strings write \n for a line end, \" for a quote and \\ for a backslash, and put no comma after a"
    " last item"
)


def read_reply(text: str) -> Reply | None:
    """Read an answer that is an operations message, bare or in a code fence, else None. Never raises."""
    bodies = _bodies(text)
    if not bodies:
        return None
    if len(bodies) > 1:
        fact = f"The reply holds {len(bodies)} JSON messages, so nothing was executed"
        return _unread(fact, ": send all in one")
    try:
        items = items_of(read_operations_message(bodies[0]))
    except MessageError as fault:
        how = _WRITE if "is not JSON" in str(fault) else ""
        return _unread(f"The JSON message was not executed: {fault}", f"{how}. Send it again, whole")
    last = items[-1] if items else None
    if isinstance(last, Step) and isinstance(last.operation, operations.ShowMessage):
        said = last.operation.text.strip()
        if said.startswith(_DONE):
            finish = operations.Finish(said.removeprefix(_DONE).strip())
            items = (*items[:-1], replace(last, operation=finish))
    return Reply(items, _header(bodies[0]), has_outbox=False, notes=())


def _unread(why: str, advice: str) -> Reply:
    items = (Problem(Kind.ANSWER, why, 1, advice=advice),)
    return Reply(items, None, has_outbox=False, notes=())


def _bodies(text: str) -> list[str]:
    """Return the parts that may be a message: the whole text, or the content of each code fence."""
    text = text.strip().removeprefix("\ufeff").strip()
    bodies = [text] if text.startswith("{") else [f[2].strip() for f in _FENCE.finditer(text)]
    # One of these a message has, and an object that is something else has not.
    telling = ('"operations"', '"protocolVersion"')
    return [b for b in bodies if b.startswith("{") and any(word in b for word in telling)]


def _header(body: str) -> Header | None:
    """Return the request that the message names, in the two fields that the guide asks for."""
    value = value_of(body)
    if not isinstance(value, dict) or not {"session", "sequence"} & value.keys():
        return None
    session, sequence = value.get("session"), value.get("sequence")
    # Not isinstance: to Python, true is a number.
    number = sequence if type(sequence) is int and 0 <= sequence < 10**9 else None
    return Header(session if isinstance(session, str) else None, number)
