"""The six operations, and the message that holds them: specification 001, operation types.

Validation is 001's and no more: what else can't be done (an empty path, a text that is no base64)
fails when it is executed.
"""

from typing import Annotated, Literal

from pydantic import FailFast, Field

from codingagent.protocols.json.fields import (
    Command,
    FileContent,
    Flag,
    Message,
    Milliseconds,
    Present,
    RelativePath,
    Text,
    Variables,
    types_of,
    wire_value,
)

Encoding = Literal["utf-8", "base64"]


@wire_value
class _Operation:
    """The fields that each operation begins with."""

    type: str
    id: Annotated[Text | None, Present()] = None


@wire_value
class MessageOperation(_Operation):
    """Say something to the person; nothing is executed."""

    type: Literal["message"] = "message"
    content: Message


@wire_value
class CreateFileOperation(_Operation):
    """Write a whole file; parent folders are made."""

    type: Literal["createFile"] = "createFile"
    path: RelativePath
    # Before the content, whose size it decides.
    encoding: Encoding = "utf-8"
    content: FileContent
    overwrite: Flag = False


@wire_value
class ReadFileOperation(_Operation):
    """Ask for the content of a file."""

    type: Literal["readFile"] = "readFile"
    path: RelativePath
    encoding: Encoding = "utf-8"


@wire_value
class FileEdit:
    """Put the new content in the place of the first occurrence of the old."""

    old_content: Text
    new_content: Text


@wire_value
class EditFileOperation(_Operation):
    """Apply edits to a file in order, all or none."""

    type: Literal["editFile"] = "editFile"
    path: RelativePath
    edits: Annotated[tuple[FileEdit, ...], FailFast()]


@wire_value
class DeleteFileOperation(_Operation):
    """Delete a file; never a folder."""

    type: Literal["deleteFile"] = "deleteFile"
    path: RelativePath


@wire_value
class ShellOperation(_Operation):
    """Run a shell command; the timeout is in milliseconds."""

    type: Literal["shell"] = "shell"
    command: Command
    cwd: Annotated[RelativePath | None, Present()] = None
    timeout: Annotated[Milliseconds | None, Present()] = None
    env: Annotated[Variables | None, Present()] = None


Operation = (
    MessageOperation
    | CreateFileOperation
    | ReadFileOperation
    | EditFileOperation
    | DeleteFileOperation
    | ShellOperation
)
TaggedOperation = Annotated[Operation, Field(discriminator="type")]
OPERATION_TYPES = types_of(Operation)


@wire_value
class OperationsMessage:
    """The operations that an agent asks for, in order."""

    protocol_version: Literal["1.0"]
    operations: Annotated[tuple[TaggedOperation, ...], FailFast()]
