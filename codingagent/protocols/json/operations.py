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
    wire_value,
)

Encoding = Literal["utf-8", "base64"]


@wire_value
class MessageOperation:
    """Say something to the person; nothing is executed."""

    type: Literal["message"] = "message"
    id: Annotated[Text | None, Present()] = None
    content: Message


@wire_value
class CreateFileOperation:
    """Write a whole file; parent folders are made."""

    type: Literal["createFile"] = "createFile"
    id: Annotated[Text | None, Present()] = None
    path: RelativePath
    # Before the content, whose size it decides.
    encoding: Encoding = "utf-8"
    content: FileContent
    overwrite: Flag = False


@wire_value
class ReadFileOperation:
    """Ask for the content of a file."""

    type: Literal["readFile"] = "readFile"
    id: Annotated[Text | None, Present()] = None
    path: RelativePath
    encoding: Encoding = "utf-8"


@wire_value
class FileEdit:
    """Put the new content in the place of the first occurrence of the old."""

    old_content: Text
    new_content: Text


@wire_value
class EditFileOperation:
    """Apply edits to a file in order, all or none."""

    type: Literal["editFile"] = "editFile"
    id: Annotated[Text | None, Present()] = None
    path: RelativePath
    edits: Annotated[tuple[FileEdit, ...], FailFast()]


@wire_value
class DeleteFileOperation:
    """Delete a file; never a folder."""

    type: Literal["deleteFile"] = "deleteFile"
    id: Annotated[Text | None, Present()] = None
    path: RelativePath


@wire_value
class ShellOperation:
    """Run a shell command; the timeout is in milliseconds."""

    type: Literal["shell"] = "shell"
    id: Annotated[Text | None, Present()] = None
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
OPERATION_TYPES = ("message", "createFile", "readFile", "editFile", "deleteFile", "shell")


@wire_value
class OperationsMessage:
    """What an agent asks for, in order."""

    protocol_version: Literal["1.0"]
    operations: Annotated[tuple[TaggedOperation, ...], FailFast()]
