"""Calls of tools, as a client of the Model Context Protocol makes them: calls.txt words them.

A call is a value with its arguments as fields. One that changes something is kept as JSON, as the answer of a
chat is: after a kill it is read again.
"""

from typing import Any

from msgspec import MsgspecError, Struct, convert, defstruct, json

from codingagent.errors import OperationError
from codingagent.model import commands, operations, paths
from codingagent.model.operations import Kind, LineRange, Replacement
from codingagent.model.patterns import sections
from codingagent.protocols.tags.reply import Problem, Reply, Step

CHANGING = ("edit_file", "write_file", "move_file", "delete_file", "run_command")
_TEXT = {"type": "string"}
# What Python and JSON Schema call the kinds of arguments.
_KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "text": (str, _TEXT),
    "number": (int, {"type": "integer"}),
    "flag": (bool, {"type": "boolean"}),
    "texts": (list[str], {"type": "array", "items": _TEXT}),
}


class CallForm:
    """The form of a tool's calls: those of its rows' fields that have a default may be left out.

    `does` says in words for a model what it does. Its schema is short, as each chat pays for it: what breaks
    other rules is told so.
    """

    def __init__(self, name: str, rows: str) -> None:
        self.does, *fields = map(str.strip, rows.splitlines())
        table = [row.split() for row in fields]
        types: list[Any] = [(key, _KINDS[kind][0], *map(json.decode, more)) for key, kind, *more in table]
        how: Any = {"frozen": True, "kw_only": True, "forbid_unknown_fields": True, "omit_defaults": True}
        self.type = defstruct(name, types, tag_field="tool", tag=name, **how)
        self.schema: dict[str, Any] = {
            "type": "object",
            "properties": {key: _KINDS[kind][1] for key, kind, *_ in table},
            "required": [key for key, _, *default in table if not default],
        }


_ROWS = sections(__file__)
INSTRUCTIONS = " ".join(_ROWS.pop("instructions").split())
_EDIT = CallForm("edit", _ROWS.pop("edit"))
_KINDS["edits"] = list[_EDIT.type], {"type": "array", "items": _EDIT.schema}  # type: ignore[name-defined]
TOOLS = {name: CallForm(name, f'{rows}session text ""\n') for name, rows in _ROWS.items()}


def tool_of(call: Struct) -> str:
    return str(call.__struct_config__.tag)


def decoded(tool: str, arguments: dict[str, Any]) -> Any:
    """Return a call of one of TOOLS; ValueError in words if it takes other arguments."""
    try:
        return convert({**arguments, "tool": tool}, TOOLS[tool].type)
    except MsgspecError as fault:
        raise ValueError(f"{tool}: {fault}") from fault


def read(data: bytes) -> Reply | None:
    """Return what a kept call asks for, as the answer that it stands for; None if it is none."""
    try:
        tool = json.decode(data)["tool"]
        call = json.decode(data, type=TOOLS[tool if tool in CHANGING else ""].type)
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
        commands.check_length(call.command, "write a script and run that")
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
