"""Outcomes of operations as JSON (specification 001, event types), and answers to an approval.

001 has no schema for events, only its interfaces and examples. An example gives `operationId` as
null: that is read as absent. On the way out what is absent is left out, never null.
"""

from typing import Annotated, Any, Literal

from pydantic import FailFast, Field

from codingagent.protocols.json.fields import (
    AlwaysTrue,
    Flag,
    Number,
    Present,
    Text,
    Timestamp,
    Whole,
    types_of,
    wire_value,
)
from codingagent.protocols.json.operations import Encoding

_OptionalText = Annotated[Text | None, Present()]
_OptionalWhole = Annotated[Whole | None, Present()]


@wire_value
class _Outcome:
    """The fields that most events begin with."""

    type: str
    operation_id: Text | None = None
    timestamp: Timestamp


@wire_value
class _FileOutcome(_Outcome):
    path: Text
    success: Flag


@wire_value
class UserMessageEvent:
    """The person said something."""

    type: Literal["userMessage"] = "userMessage"
    timestamp: Timestamp
    content: Text


@wire_value
class MessageEvent(_Outcome):
    """A message was shown."""

    type: Literal["message"] = "message"
    success: AlwaysTrue


@wire_value
class CreateFileEvent(_FileOutcome):
    """The outcome of writing a file."""

    type: Literal["createFile"] = "createFile"
    error: _OptionalText = None
    bytes_written: _OptionalWhole = None


@wire_value
class ReadFileEvent(_FileOutcome):
    """The outcome of reading a file; its size is in bytes."""

    type: Literal["readFile"] = "readFile"
    content: _OptionalText = None
    encoding: Annotated[Encoding | None, Present()] = None
    size: _OptionalWhole = None
    error: _OptionalText = None


@wire_value
class EditFileEvent(_FileOutcome):
    """The outcome of editing a file."""

    type: Literal["editFile"] = "editFile"
    edits_applied: _OptionalWhole = None
    error: _OptionalText = None


@wire_value
class DeleteFileEvent(_FileOutcome):
    """The outcome of deleting a file."""

    type: Literal["deleteFile"] = "deleteFile"
    error: _OptionalText = None


@wire_value
class ShellEvent(_Outcome):
    """The outcome of a command; `error` is of the system, not of the command."""

    type: Literal["shell"] = "shell"
    command: Text
    success: Flag
    exit_code: _OptionalWhole = None
    stdout: _OptionalText = None
    stderr: _OptionalText = None
    duration_ms: Annotated[Number | None, Present()] = None
    error: _OptionalText = None
    timed_out: Annotated[Flag | None, Present()] = None


@wire_value
class ApprovalDetails:
    """The operation that waits, and the policy that asks."""

    command: _OptionalText = None
    path: _OptionalText = None
    policy: _OptionalText = None


@wire_value
class ApprovalRequiredEvent:
    """The run has paused: this operation needs a yes."""

    type: Literal["approvalRequired"] = "approvalRequired"
    timestamp: Timestamp
    operation_id: Text
    operation_type: Text
    reason: Text
    details: ApprovalDetails


@wire_value
class PolicyDeniedEvent(_Outcome):
    """The policy, or the person, did not let it be done."""

    type: Literal["policyDenied"] = "policyDenied"
    operation_type: Text
    reason: Text
    suggestion: _OptionalText = None


Category = Literal["validation", "policy", "execution", "timeout", "system"]


@wire_value
class ErrorEvent(_Outcome):
    """Something went wrong that no other event tells."""

    type: Literal["error"] = "error"
    category: Category
    message: Text
    details: Annotated[dict[Text, Any] | None, Present()] = None


Event = (
    UserMessageEvent
    | MessageEvent
    | CreateFileEvent
    | ReadFileEvent
    | EditFileEvent
    | DeleteFileEvent
    | ShellEvent
    | ApprovalRequiredEvent
    | PolicyDeniedEvent
    | ErrorEvent
)
TaggedEvent = Annotated[Event, Field(discriminator="type")]
EVENT_TYPES = types_of(Event)
Status = Literal["completed", "awaiting_approval", "error"]


@wire_value
class EventsMessage:
    """The outcomes of a run so far."""

    protocol_version: Literal["1.0"]
    run_id: Text
    status: Status
    events: Annotated[tuple[TaggedEvent, ...], FailFast()]


@wire_value
class Approval:
    """The person's answer for one operation."""

    operation_id: Text
    decision: Literal["approved", "denied"]
    reason: _OptionalText = None


@wire_value
class ApprovalMessage:
    """An answer, as a program sends it."""

    approval: Approval
