"""Operations and events as JSON, version 1.0; to import a module of this package imports pydantic."""

from collections.abc import Mapping

from codingagent.model.operations import Kind

TYPES: Mapping[Kind, str] = {
    Kind.CREATE_FILE: "createFile",
    Kind.EDIT_FILE: "editFile",
    Kind.DELETE_FILE: "deleteFile",
    Kind.READ_FILE: "readFile",
    Kind.RUN_COMMAND: "shell",
    Kind.MESSAGE: "message",
    Kind.DONE: "message",
}


def type_of(kind: Kind) -> str:
    """Return how a message spells a kind, or the kind itself where no message can have it."""
    return TYPES.get(kind, kind)
