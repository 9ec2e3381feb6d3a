"""Calls of tools, as a client of the Model Context Protocol makes them: calls.txt has their arguments.

A call is a value with its arguments as fields. One that changes something is kept as JSON, as the answer of a
chat is: after a kill it is read again.
"""

from typing import Any

from msgspec import MsgspecError, Struct, convert, defstruct, json

from codingagent.errors import OperationError
from codingagent.model import operations, paths
from codingagent.model.operations import Kind, LineRange, Replacement
from codingagent.model.patterns import sections
from codingagent.protocols.tags.reply import Problem, Reply, Step

# As of the tag (specification 003, RUN_COMMAND).
_COMMAND_LIMIT_BYTES = 100_000
# Of JSON Schema: the rest is told to who breaks it.
_TOLD = ("type", "properties", "items", "required")
CHANGING = ("edit_file", "write_file", "move_file", "delete_file", "run_command")
_KINDS: dict[str, Any] = {"text": str, "number": int, "flag": bool, "texts": list[str]}


def _form(name: str, rows: list[str]) -> type[Struct]:
    """Return the form of a call: the fields in its rows, of which those with a default may be left out."""
    fields: list[Any] = []
    for field, kind, *default in (row.split() for row in rows):
        fields.append((field, _KINDS[kind], *map(json.decode, default)))
    how: Any = {"frozen": True, "kw_only": True, "forbid_unknown_fields": True, "omit_defaults": True}
    return defstruct(name, fields, tag_field="tool", tag=name, **how)


_ROWS = {name: [*map(str.strip, rows.splitlines())] for name, rows in sections(__file__).items()}
_KINDS["edits"] = list[_form("edit", _ROWS.pop("edit")[1:])]  # type: ignore[misc]  # made here
_SESSION = 'session text ""'
TOOLS = {name: (does, _form(name, [*rows, _SESSION])) for name, (does, *rows) in _ROWS.items()}
"""By name, what each tool does, in words for a model, and the form of its calls."""


def tool_of(call: Struct) -> str:
    return str(call.__struct_config__.tag)


def decoded(tool: str, arguments: dict[str, Any]) -> Any:
    """Return a call of one of TOOLS; ValueError in words if it takes other arguments."""
    try:
        return convert({**arguments, "tool": tool}, TOOLS[tool][1])
    except MsgspecError as fault:
        raise ValueError(f"{tool}: {fault}") from fault


def schema_of(tool: str) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, as short as it can be: each chat pays for it."""
    _, kinds = json.schema_components([TOOLS[tool][1]], ref_template="{name}")

    def shortened(value: Any, *, is_named: bool = False) -> Any:
        if not isinstance(value, dict):
            return [each for each in value if each != "tool"] if isinstance(value, list) else value
        value = kinds[value["$ref"]] if "$ref" in value else value
        return {
            key: shortened(item, is_named=key == "properties")
            for key, item in value.items()
            if (key != "tool" if is_named else key in _TOLD)
        }

    found: dict[str, Any] = shortened(kinds[tool])
    return found


def read(data: bytes) -> Reply | None:
    """Return what a kept call asks for, as the answer that it stands for; None if it is none."""
    try:
        tool = json.decode(data)["tool"]
        call = json.decode(data, type=TOOLS[tool if tool in CHANGING else ""][1])
    except (MsgspecError, RecursionError, LookupError, TypeError):
        return None
    try:
        item: Step | Problem = Step(_operation_of(call), 1, id=tool)
    except OperationError as fault:
        kind, subject = Kind(tool.upper().replace("WRITE", "CREATE")), getattr(call, "path", "")
        item = Problem(kind, fault.fact, 1, fault.detail, id=tool, subject=subject, advice=fault.advice)
    return Reply((item,), None, has_outbox=False, notes=())


def _operation_of(call: Any) -> operations.Operation:
    """Return the operation that a call asks for; its texts are taken literally."""
    if (tool := tool_of(call)) == "run_command":
        if len(call.command.encode(errors="replace")) > _COMMAND_LIMIT_BYTES:
            fact = f"The command is longer than {_COMMAND_LIMIT_BYTES} bytes"
            raise OperationError(fact, advice="; write a script and run that")
        limit_s = min(max(call.timeout_s, 0), 3600) or None
        return operations.RunCommand(call.command, limit_s, paths.folder_path(call.cwd))
    path = paths.workspace_path(call.path)
    match tool:
        case "edit_file":
            return operations.EditFile(path, tuple(map(_edit_of, call.edits)), None)
        case "write_file":
            return operations.CreateFile(path, call.content, arrival=None)
        case "move_file":
            return operations.MoveFile(path, paths.workspace_path(call.to), call.overwrite)
        case _:
            return operations.DeleteFile(path)


def _edit_of(edit: Any) -> Replacement | LineRange:
    search, new = (_lines(text.replace("\r\n", "\n")) for text in (edit.search, edit.replace))
    if search and not (edit.start_line or edit.end_line):
        return Replacement(search, new, is_verbatim=True)
    if search or not 1 <= edit.start_line <= edit.end_line:
        raise OperationError("An edit needs either search, or start_line and end_line")
    return LineRange(edit.start_line, edit.end_line, new)


def _lines(text: str) -> str:
    """Return a text as lines, each ended; an empty one has none."""
    return text if text.endswith("\n") or not text else f"{text}\n"
