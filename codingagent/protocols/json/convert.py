"""Convert this wire's operations into the core's own, and their outcomes into this wire's events.

The core knows no `createFile`: all that tells the one vocabulary from the other is here. A value that
001 allows and the workspace refuses (a name of blanks, text that is not base64) is a problem here, and
becomes the failure event of its operation.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, assert_never

from codingagent.errors import OperationError
from codingagent.model import events as core
from codingagent.model import operations, paths
from codingagent.model.approval import Answer, Decision, operation_id
from codingagent.model.journal_entries import ApprovalAsked, OperationEnded
from codingagent.model.operations import Kind
from codingagent.model.plain_text import without_halves
from codingagent.model.results import NOT_RUN_AGAIN, exit_code_of, why_ended
from codingagent.protocols.json import events as wire
from codingagent.protocols.json.errors import Fault, MessageError, described
from codingagent.protocols.json.operations import (
    CreateFileOperation,
    DeleteFileOperation,
    EditFileOperation,
    MessageOperation,
    Operation,
    ReadFileOperation,
    ShellOperation,
)
from codingagent.protocols.json.parser import Malformed, Received, validate_approval, value_of
from codingagent.protocols.json.spelling import TYPES, type_of
from codingagent.protocols.tags.reply import Problem, Step

_KINDS = {type_: kind for kind, type_ in TYPES.items()} | {"message": Kind.MESSAGE}

NOT_ON_THIS_WIRE = frozenset({Kind.LIST_FOLDER, Kind.MOVE_FILE})
"""Operations that no message can ask for; their results have the name of the other protocol."""

_FileEvent = wire.CreateFileEvent | wire.ReadFileEvent | wire.EditFileEvent | wire.DeleteFileEvent
_OF_FILES: Mapping[str, Callable[..., _FileEvent]] = {
    "createFile": wire.CreateFileEvent,
    "readFile": wire.ReadFileEvent,
    "editFile": wire.EditFileEvent,
    "deleteFile": wire.DeleteFileEvent,
}

_SPACES = str.maketrans("", "", " \t\r\n")


# --- operations ------------------------------------------------------------------------------------


def items_of(received: Received) -> tuple[Step | Problem, ...]:
    """Return what a message asks for, in order, each item under its own id, or by its place.

    001 asks for no unique ids, so neither do we: two items may be called the same.
    """
    return tuple(_item(index, item) for index, item in enumerate(received))


def _item(index: int, received: Operation | Malformed) -> Step | Problem:
    line, name = index + 1, operation_id(index) if received.id is None else received.id
    if isinstance(received, Malformed):
        fault = received.fault
        return Problem(Kind.MALFORMED, str(fault), line, id=name, subject=fault.where)
    try:
        return Step(_operation(received), line, id=name)
    except OperationError as fault:
        kind, subject = _KINDS[received.type], _subject(received)
        return Problem(kind, fault.reason, line, fault.detail, id=name, subject=subject)


def _operation(received: Operation) -> operations.Operation:
    match received:
        case MessageOperation():
            return operations.ShowMessage(received.content)
        case CreateFileOperation():
            path = paths.workspace_path(received.path)
            return operations.CreateFile(path, _bytes_of(received), overwrite=received.overwrite)
        case ReadFileOperation():
            return operations.FetchFile(paths.workspace_path(received.path), received.encoding)
        case EditFileOperation():
            pairs = (operations.Substitution(e.old_content, e.new_content) for e in received.edits)
            path = paths.workspace_path(received.path)
            return operations.EditFile(path, operations.Substitutions(tuple(pairs)))
        case DeleteFileOperation():
            return operations.DeleteFile(paths.workspace_path(received.path))
        case ShellOperation():
            return operations.RunCommand(
                received.command,
                None if received.timeout is None else received.timeout / 1000,
                "." if not received.cwd else paths.folder_path(received.cwd),
                received.env or {},
                parts_streams=True,
            )
        case _:
            assert_never(received)


def _subject(received: Operation) -> str:
    if isinstance(received, ShellOperation):
        return received.command
    return "" if isinstance(received, MessageOperation) else received.path


def _bytes_of(received: CreateFileOperation) -> bytes:
    if received.encoding == "utf-8":
        return received.content.encode()
    try:
        content = received.content
        if any(blank in content for blank in " \t\r\n"):
            content = content.translate(_SPACES)
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as fault:
        raise OperationError(f"content is no valid base64: {fault}") from fault


# --- events ----------------------------------------------------------------------------------------


def event_of(ended: OperationEnded) -> wire.Event:
    """Return the outcome of one operation as an event of this wire."""
    event = ended.event
    match event:
        case core.MessageShown() | core.Finished():
            return _made(wire.MessageEvent, ended, success=True)
        case core.FileCreated(path=path, size_bytes=size):
            return _done(wire.CreateFileEvent, ended, path, bytes_written=size)
        case core.FileMoved(to=path, size_bytes=size):
            # Only the other protocol moves files; this one can say where the file is now.
            return _done(wire.CreateFileEvent, ended, path, bytes_written=size)
        case core.FileFetched(path=path, content=text, encoding=encoding, size_bytes=size):
            return _done(
                wire.ReadFileEvent, ended, path, content=text, encoding=encoding, size=size
            )
        case core.FileRequested(asked=path) | core.FolderListed(path=path):
            # Only the other protocol asks for these, and its request shows what was found.
            return _done(wire.ReadFileEvent, ended, path)
        case core.FileEdited():
            return _done(wire.EditFileEvent, ended, event.path, edits_applied=event.edits)
        case core.FileDeleted():
            return _done(wire.DeleteFileEvent, ended, event.path)
        case core.CommandRan():
            return _made(
                wire.ShellEvent,
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
            return _made(
                wire.PolicyDeniedEvent,
                ended,
                operation_type=type_of(event.kind),
                reason=event.reason,
                suggestion=event.suggestion or None,
            )
        case core.Interrupted():
            return _failure(ended, event, "; ".join((NOT_RUN_AGAIN, *event.notes)))
        case core.Refused():
            reason = f"{event.reason}\n{event.detail}" if event.detail else event.reason
            return _failure(ended, event, reason)
        case _:
            assert_never(event)


_Made = TypeVar("_Made")

# What quotes names and commands, which may not be UTF-8.
_QUOTES = frozenset({"path", "command", "reason", "suggestion", "error", "message"})


def _made(form: Callable[..., _Made], of: OperationEnded | ApprovalAsked, **found: Any) -> _Made:
    for name in _QUOTES & found.keys():
        found[name] = found[name] and without_halves(found[name])
    return form(operation_id=of.name, timestamp=of.at, **found)


def _done(
    form: Callable[..., _FileEvent], ended: OperationEnded, path: str, **found: Any
) -> _FileEvent:
    return _made(form, ended, path=path, success=True, **found)


def _failure(
    ended: OperationEnded, event: core.Interrupted | core.Refused, reason: str
) -> wire.Event:
    """Return the event of an operation that was not done; an error, where its type is not known."""
    type_ = type_of(event.kind)
    if (of_file := _OF_FILES.get(type_)) is not None:
        return _made(of_file, ended, path=event.subject, success=False, error=reason)
    if type_ == "shell":
        return _made(wire.ShellEvent, ended, command=event.subject, success=False, error=reason)
    return _made(wire.ErrorEvent, ended, category="validation", message=reason)


def approval_event(asked: ApprovalAsked) -> wire.ApprovalRequiredEvent:
    """Return the event of a run that has paused (001, approvalRequired)."""
    question = asked.question
    type_, subject = type_of(question.kind), without_halves(question.subject)
    is_command = type_ == "shell"
    reasons = list(question.reasons)
    if is_command and question.shown != question.subject:
        # Its folder and its variables decide too, and 001 has no field for them.
        reasons.append(f"it is run as: {question.shown}")
    policy = without_halves(", ".join(question.rules))
    about = {"command" if is_command else "path": subject}
    details = wire.ApprovalDetails(**about, policy=policy)
    reason = "; ".join(reasons)
    return _made(
        wire.ApprovalRequiredEvent, asked, operation_type=type_, reason=reason, details=details
    )


# --- answers ---------------------------------------------------------------------------------------

_DECISIONS: Mapping[str, Decision] = {"approved": "yes", "denied": "no"}


def read_answer(source: object) -> tuple[str | None, Answer]:
    """Read the answer to an approval: the operation's id, if it is named, and the decision.

    It is JSON (str or bytes), or a value of JSON: `{"approval": {…}}`, or a `userMessage` event that says
    `approved` or `denied`, alone or in `{"events": […]}` (001, approval flow).

    Raises:
        MessageError: if it is neither.
    """
    value = value_of(source) if isinstance(source, str | bytes) else source
    if isinstance(value, dict) and "approval" in value:
        found = validate_approval(value)
        if not found.success:
            raise MessageError(found.error)
        decision: Decision = "yes" if found.data.decision == "approved" else "no"
        return found.data.operation_id, Answer(
            decision, reason=found.data.reason or "", how="program"
        )
    if isinstance(value, dict) and isinstance(events := value.get("events"), list) and events[:1]:
        value = events[0] if len(events) == 1 else None
    if not isinstance(value, dict) or value.get("type") != "userMessage":
        raise MessageError(Fault("answer", "must hold an approval, or be a userMessage"))
    content = value.get("content")
    said = content.strip().casefold() if isinstance(content, str) else ""
    if said not in _DECISIONS:
        raise MessageError(
            Fault("content", f"must be 'approved' or 'denied', not {described(content)}")
        )
    return None, Answer(_DECISIONS[said], how="program")
