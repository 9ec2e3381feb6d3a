"""Convert this wire's operations into the core's own, and their outcomes into this wire's events.

The core knows no `createFile`: all that tells the one vocabulary from the other is here. A value that
001 allows and the workspace refuses (a name of blanks, text that is not base64) is a problem here, and
becomes the failure event of its operation.
"""

import base64
from typing import Any, assert_never

from codingagent.errors import OperationError
from codingagent.model import events as core
from codingagent.model import operations, paths
from codingagent.model.approval import Answer, operation_id
from codingagent.model.journal_entries import ApprovalAsked, OperationEnded
from codingagent.model.operations import Kind
from codingagent.model.plain_text import without_halves
from codingagent.model.results import NOT_RUN_AGAIN, exit_code_of, why_ended
from codingagent.protocols.json import TYPES, type_of, wire
from codingagent.protocols.json.messages import (
    Malformed,
    MessageError,
    Received,
    described,
    validate_approval,
    value_of,
)
from codingagent.protocols.tags.reply import Problem, Step

_KINDS = {type_: kind for kind, type_ in TYPES.items()} | {"message": Kind.MESSAGE}
_FILE_TYPES = frozenset({"createFile", "readFile", "editFile", "deleteFile"})
_SPACES = str.maketrans("", "", " \t\r\n")

# What quotes names and commands, which may not be UTF-8.
_QUOTES = frozenset({"path", "command", "reason", "suggestion", "error", "message"})

# --- operations ------------------------------------------------------------------------------------


def items_of(received: Received) -> tuple[Step | Problem, ...]:
    """Return what a message asks for, in order, each item under its own id, or by its place.

    001 asks for no unique ids, so neither do we: two items may be called the same.
    """
    return tuple(_item(index, item) for index, item in enumerate(received))


def _item(index: int, received: wire.Operation | Malformed) -> Step | Problem:
    line, name = index + 1, operation_id(index) if received.id is None else received.id
    if isinstance(received, Malformed):
        reason = f"{received.where} {received.reason}"
        return Problem(Kind.MALFORMED, reason, line, id=name, subject=received.where)
    try:
        return Step(_operation(received), line, id=name)
    except OperationError as fault:
        subject = getattr(received, "command", getattr(received, "path", ""))
        kind = _KINDS[received.type]
        return Problem(kind, fault.reason, line, fault.detail, id=name, subject=subject)


def _operation(received: wire.Operation) -> operations.Operation:
    match received:
        case wire.MessageOperation():
            return operations.ShowMessage(received.content)
        case wire.CreateFileOperation():
            path = paths.workspace_path(received.path)
            return operations.CreateFile(path, _bytes_of(received), overwrite=received.overwrite)
        case wire.ReadFileOperation():
            return operations.FetchFile(paths.workspace_path(received.path), received.encoding)
        case wire.EditFileOperation():
            pairs = (operations.Substitution(e.old_content, e.new_content) for e in received.edits)
            path = paths.workspace_path(received.path)
            return operations.EditFile(path, operations.Substitutions(tuple(pairs)))
        case wire.DeleteFileOperation():
            return operations.DeleteFile(paths.workspace_path(received.path))
        case wire.ShellOperation():
            return operations.RunCommand(
                received.command,
                None if received.timeout is None else received.timeout / 1000,
                "." if not received.cwd else paths.folder_path(received.cwd),
                received.env or {},
                parts_streams=True,
            )
        case _:
            assert_never(received)


def _bytes_of(received: wire.CreateFileOperation) -> bytes:
    if received.encoding == "utf-8":
        return received.content.encode()
    try:
        return base64.b64decode(received.content.translate(_SPACES), validate=True)
    except ValueError as fault:
        raise OperationError(f"content is no valid base64: {fault}") from fault


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
        case core.FileEdited():
            edits = event.edits
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


def _failure(
    ended: OperationEnded, event: core.Interrupted | core.Refused, reason: str
) -> wire.Event:
    """Return the event of an operation that was not done; an error, where its type is not known."""
    type_ = type_of(event.kind)
    if type_ in _FILE_TYPES:
        return _made(type_, ended, path=event.subject, success=False, error=reason)
    if type_ == "shell":
        return _made(type_, ended, command=event.subject, success=False, error=reason)
    return _made("error", ended, category="validation", message=reason)


def _made(type_: str, of: OperationEnded, **fields: Any) -> wire.Event:
    """Return an event; a field that is None is absent."""
    fields = {name: value for name, value in fields.items() if value is not None}
    for name in _QUOTES & fields.keys():
        fields[name] = without_halves(fields[name])
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
    """Read the answer to an approval: the operation's id, if it is named, and the decision.

    It is JSON (str or bytes), or a value of JSON: `{"approval": {…}}`, or a `userMessage` event that says
    `approved` or `denied`, alone or in `{"events": […]}` (001, approval flow); else MessageError.
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
        reason = f"must be 'approved' or 'denied', not {described(content)}"
        raise MessageError("content", reason)
    return None, _answer(said, "")


def _answer(decision: str, reason: str) -> Answer:
    return Answer("yes" if decision == "approved" else "no", reason=reason, how="program")
