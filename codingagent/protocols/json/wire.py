"""Operations and events as JSON: specification 001, operation types and event types.

The types of 001's JSON Schema are strict: no value is turned into another type. Its rules are all there
is: what else can't be done (an empty path, a text that is no base64) fails when it is executed. Fields are
called as on the wire in JSON (`oldContent`), and as Python does it in code.
"""

import base64
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast, get_args

import pydantic
from annotated_types import Predicate
from pydantic import BeforeValidator, FailFast, Field, Strict, StringConstraints
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError

from codingagent.errors import OperationError
from codingagent.model import operations, paths
from codingagent.model.operations import Kind
from codingagent.model.plain_text import without_halves

PATH_LIMIT = 255
COMMAND_LIMIT = 4_096
MESSAGE_LIMIT = 100_000
TIMEOUT_LOWEST_MS = 1_000
TIMEOUT_HIGHEST_MS = 3_600_000
# "Max 10MB for files": the size of the file that the content makes, so bytes, not characters. A
# megabyte is 2^20 of them, as everywhere in this project.
FILE_LIMIT_BYTES = 10 * 2**20
# No leading `/`, no `..` anywhere, no NUL; written without looking ahead, which not every reader of
# patterns can do. The class names `\x00` since JavaScript, Python and Rust all read that.
_PATH_PATTERN = r"^(?:(?:[^./\x00]|\.[^.\x00])(?:[^.\x00]|\.[^.\x00])*)?\.?$"

# RFC 3339, the profile of ISO 8601 that JSON Schema calls date-time.
_TIME_PATTERN = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})$"
)

# --- kinds of values -------------------------------------------------------------------------------

RULES = {
    _PATH_PATTERN: f"must be a relative path without `..` and NUL, of at most {PATH_LIMIT} characters",
    _TIME_PATTERN: "must be a time in ISO 8601, such as '2025-01-15T10:30:00Z'",
}
"""What a pattern asks for, in words."""


class _Absent:
    """Mark a field that may be absent, None in code, but is never null in JSON."""

    def __get_pydantic_core_schema__(self, source: Any, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        nullable: Any = handler(source)
        return cast("CoreSchema", nullable["schema"])


def _whole(value: object) -> object:
    """Return 1000.0 as 1000: to JSON Schema it is an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_file_size(content: str, info: pydantic.ValidationInfo) -> str:
    """Refuse what makes a file over the limit; that base64 is base64 is found out when it is executed."""
    if len(content) > FILE_LIMIT_BYTES // 4:  # a character takes at most four bytes
        if info.data.get("encoding") == "base64":
            # Four letters hold three bytes; line ends and the padding hold none.
            size_bytes = (len(content) - sum(map(content.count, "= \t\r\n"))) * 3 // 4
        else:
            size_bytes = len(content.encode())
        if size_bytes > FILE_LIMIT_BYTES:
            raise PydanticCustomError("size", f"must make a file of at most {FILE_LIMIT_BYTES} bytes")
    return content


def _first_fault(variables: object) -> object:
    """Return the first variable alone if it is faulty: pydantic would gather gigabytes of faults."""
    if isinstance(variables, dict):
        for name, value in variables.items():
            if not (is_text(name) and is_text(value)):
                return {name: value}
    return variables


def is_text(value: object) -> bool:
    """Return whether a value is a string of whole characters, without half of a surrogate pair."""
    return isinstance(value, str) and without_halves(value) == value


_T = TypeVar("_T")
OrAbsent = Annotated[_T | None, _Absent()]
# The length makes pydantic look at each character, and refuse half a surrogate pair, which is no text.
Text = Annotated[str, StringConstraints(strict=True, min_length=0)]
Message = Annotated[str, StringConstraints(strict=True, max_length=MESSAGE_LIMIT)]
Command = Annotated[str, StringConstraints(strict=True, max_length=COMMAND_LIMIT)]
RelativePath = Annotated[str, StringConstraints(strict=True, max_length=PATH_LIMIT, pattern=_PATH_PATTERN)]
FileContent = Annotated[
    Text,
    pydantic.AfterValidator(_check_file_size),
    Field(description=f"At most {FILE_LIMIT_BYTES} bytes as a file."),
]
Timestamp = Annotated[str, StringConstraints(strict=True, pattern=_TIME_PATTERN)]
Encoding = Literal["utf-8", "base64"]
Flag = Annotated[bool, Strict()]
# Not Literal[True]: that takes 1 as well.
AlwaysTrue = Annotated[Flag, Predicate(bool), pydantic.WithJsonSchema({"const": True})]
Whole = Annotated[int, Strict(), BeforeValidator(_whole)]
Milliseconds = Annotated[
    int, Strict(), Field(ge=TIMEOUT_LOWEST_MS, le=TIMEOUT_HIGHEST_MS), BeforeValidator(_whole)
]
Number = Annotated[int, Strict()] | Annotated[float, Strict(), Field(allow_inf_nan=False)]


def _plain(schema: dict[str, Any]) -> None:
    """Remove what is pydantic's or Python's own from a JSON Schema; a tag's default is for code."""
    schema.pop("discriminator", None)
    for name, field in schema.get("properties", {}).items():
        field.pop("title", None)
        if "const" in field and field.pop("default", None):
            schema["required"] = [name, *schema.get("required", ())]
        elif field.get("default", "") is None:
            del field["default"]


class Wire(pydantic.BaseModel):
    """A frozen value of this wire. Unknown fields are ignored: 001 is additive."""

    model_config = pydantic.ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        frozen=True,
        cache_strings="keys",  # contents and paths hardly ever come twice
        json_schema_extra=_plain,
    )


_TAG = Field(discriminator="type", json_schema_extra=_plain)


# --- operations ------------------------------------------------------------------------------------
class _Operation(Wire):
    type: str
    id: OrAbsent[Text] = None


class MessageOperation(_Operation):
    """Say something to the person; nothing is executed."""

    kind: ClassVar[Kind] = Kind.MESSAGE
    type: Literal["message"] = "message"
    content: Message

    def asked(self) -> operations.Operation:
        return operations.ShowMessage(self.content)


class CreateFileOperation(_Operation):
    """Write a whole file; parent folders are made."""

    kind: ClassVar[Kind] = Kind.CREATE_FILE
    type: Literal["createFile"] = "createFile"
    path: RelativePath
    # Before the content, whose size it decides.
    encoding: Encoding = "utf-8"
    content: FileContent
    overwrite: Flag = False

    def asked(self) -> operations.Operation:
        data, path = self.content.encode(), paths.workspace_path(self.path)
        if self.encoding == "base64":
            try:
                data = base64.b64decode(data.translate(None, b" \t\r\n"), validate=True)
            except ValueError as fault:
                raise OperationError(f"content is no valid base64: {fault}") from fault
        return operations.CreateFile(path, data, overwrite=self.overwrite)


class ReadFileOperation(_Operation):
    """Ask for the content of a file."""

    kind: ClassVar[Kind] = Kind.READ_FILE
    type: Literal["readFile"] = "readFile"
    path: RelativePath
    encoding: Encoding = "utf-8"

    def asked(self) -> operations.Operation:
        return operations.FetchFile(paths.workspace_path(self.path), self.encoding)


class FileEdit(Wire):
    """Put the new content in the place of the first occurrence of the old."""

    old_content: Text
    new_content: Text


class EditFileOperation(_Operation):
    """Apply edits to a file in order, all or none."""

    kind: ClassVar[Kind] = Kind.EDIT_FILE
    type: Literal["editFile"] = "editFile"
    path: RelativePath
    edits: Annotated[tuple[FileEdit, ...], FailFast()]

    def asked(self) -> operations.Operation:
        pairs = (operations.Substitution(e.old_content, e.new_content) for e in self.edits)
        path = paths.workspace_path(self.path)
        return operations.EditFile(path, operations.Substitutions(tuple(pairs)))


class DeleteFileOperation(_Operation):
    """Delete a file; never a folder."""

    kind: ClassVar[Kind] = Kind.DELETE_FILE
    type: Literal["deleteFile"] = "deleteFile"
    path: RelativePath

    def asked(self) -> operations.Operation:
        return operations.DeleteFile(paths.workspace_path(self.path))


class ShellOperation(_Operation):
    """Run a shell command; the timeout is in milliseconds."""

    kind: ClassVar[Kind] = Kind.RUN_COMMAND
    type: Literal["shell"] = "shell"
    command: Command
    cwd: OrAbsent[RelativePath] = None
    timeout: OrAbsent[Milliseconds] = None
    env: OrAbsent[Annotated[dict[Text, Text], BeforeValidator(_first_fault)]] = None

    def asked(self) -> operations.Operation:
        return operations.RunCommand(
            self.command,
            None if self.timeout is None else self.timeout / 1000,
            "." if not self.cwd else paths.folder_path(self.cwd),
            self.env or {},
            parts_streams=True,
        )


_FileOperation = CreateFileOperation | ReadFileOperation | EditFileOperation | DeleteFileOperation
Operation = MessageOperation | _FileOperation | ShellOperation
TYPES: dict[Kind, str] = {form.kind: form.model_fields["type"].default for form in get_args(Operation)}
TYPES[Kind.DONE] = TYPES[Kind.MESSAGE]
TaggedOperation = Annotated[Operation, _TAG]


def type_of(kind: Kind) -> str:
    """Return how a message spells a kind, or the kind itself where no message can have it."""
    return TYPES.get(kind, kind)


class OperationsMessage(Wire):
    """The operations that an agent asks for, in order."""

    protocol_version: Literal["1.0"]
    operations: Annotated[tuple[TaggedOperation, ...], FailFast()]


# --- events ----------------------------------------------------------------------------------------
class _Outcome(Wire):
    """The fields that most events begin with. In an example of 001 a null `operationId` is an absent one."""

    type: str
    operation_id: Text | None = None
    timestamp: Timestamp


class FileOutcome(_Outcome):
    path: Text
    success: Flag
    error: OrAbsent[Text] = None


class UserMessageEvent(Wire):
    type: Literal["userMessage"] = "userMessage"
    timestamp: Timestamp
    content: Text


class MessageEvent(_Outcome):
    type: Literal["message"] = "message"
    success: AlwaysTrue


class CreateFileEvent(FileOutcome):
    type: Literal["createFile"] = "createFile"
    bytes_written: OrAbsent[Whole] = None


class ReadFileEvent(FileOutcome):
    type: Literal["readFile"] = "readFile"
    content: OrAbsent[Text] = None
    encoding: OrAbsent[Encoding] = None
    size: OrAbsent[Whole] = None


class EditFileEvent(FileOutcome):
    type: Literal["editFile"] = "editFile"
    edits_applied: OrAbsent[Whole] = None


class DeleteFileEvent(FileOutcome):
    type: Literal["deleteFile"] = "deleteFile"


class ShellEvent(_Outcome):
    """The outcome of a command; `error` is of the system, not of the command."""

    type: Literal["shell"] = "shell"
    command: Text
    success: Flag
    exit_code: OrAbsent[Whole] = None
    stdout: OrAbsent[Text] = None
    stderr: OrAbsent[Text] = None
    duration_ms: OrAbsent[Number] = None
    error: OrAbsent[Text] = None
    timed_out: OrAbsent[Flag] = None


class ApprovalDetails(Wire):
    """The operation that waits, and the policy that asks."""

    command: OrAbsent[Text] = None
    path: OrAbsent[Text] = None
    policy: OrAbsent[Text] = None


class ApprovalRequiredEvent(Wire):
    """The run has paused: this operation needs a yes."""

    type: Literal["approvalRequired"] = "approvalRequired"
    timestamp: Timestamp
    operation_id: Text
    operation_type: Text
    reason: Text
    details: ApprovalDetails


class PolicyDeniedEvent(_Outcome):
    """The policy, or the person, did not let it be done."""

    type: Literal["policyDenied"] = "policyDenied"
    operation_type: Text
    reason: Text
    suggestion: OrAbsent[Text] = None


class ErrorEvent(_Outcome):
    """Something went wrong that no other event tells."""

    type: Literal["error"] = "error"
    category: Literal["validation", "policy", "execution", "timeout", "system"]
    message: Text
    details: OrAbsent[dict[str, Any]] = None


_FileEvent = CreateFileEvent | ReadFileEvent | EditFileEvent | DeleteFileEvent
_Undone = ApprovalRequiredEvent | PolicyDeniedEvent | ErrorEvent
Event = UserMessageEvent | MessageEvent | _FileEvent | ShellEvent | _Undone
TaggedEvent = Annotated[Event, _TAG]
EVENTS: dict[str, Any] = {form.model_fields["type"].default: form for form in get_args(Event)}
Status = Literal["completed", "awaiting_approval", "error"]


class EventsMessage(Wire):
    """The outcomes of a run so far."""

    protocol_version: Literal["1.0"]
    run_id: Text
    status: Status
    events: Annotated[tuple[TaggedEvent, ...], FailFast()]


class Approval(Wire):
    """The person's answer for one operation."""

    operation_id: Text
    decision: Literal["approved", "denied"]
    reason: OrAbsent[Text] = None


class ApprovalMessage(Wire):
    approval: Approval


def to_wire(value: Wire) -> dict[str, Any]:
    """Return an operation, event or message as a value of JSON; what is absent is left out."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def to_json(value: Wire) -> str:
    """Return an operation, event or message as JSON on one line; what is absent is left out."""
    return value.model_dump_json(by_alias=True, exclude_none=True)


def schema_of(form: type[Wire]) -> dict[str, Any]:
    """Return the JSON Schema of a message, which can't state one rule: the limit of a file counts bytes."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **form.model_json_schema()}
