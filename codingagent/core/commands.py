"""The seven commands of the tag protocol: what each is called, takes and means.

It is also where a block of one becomes an operation. The guide for the model and the reference in
README are made from this table.
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass

from codingagent.core import bodies, edits, paths
from codingagent.core.bodies import Body
from codingagent.core.channel import UNHARMED, Channel
from codingagent.core.operations import (
    CreateFile,
    DeleteFile,
    EditFile,
    Finish,
    LineEnd,
    LineRange,
    Operation,
    ReadFile,
    RunCommand,
    ShowMessage,
)
from codingagent.core.tags import Block
from codingagent.errors import OperationError

# A build may take its time, a forgotten server may not: specification 001 stops at the same hour.
TIMEOUT_LIMIT_S = 3600

# Linux gives one argument 128 KiB; a longer script belongs in a file.
_COMMAND_LIMIT_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Attribute:
    """One `name="value"` of an opening tag, with an example of the value."""

    name: str
    example: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its tag, what it means to the model, an example, and how it is decoded."""

    tag: str
    meaning: str
    attributes: tuple[Attribute, ...]
    example: str
    decode: "Callable[[_Values], Operation]"
    has_body: bool = True


class _Values:
    """A block's attributes and body, read by name; complains in words that say what to write."""

    def __init__(self, block: Block, way: Channel) -> None:
        self.tag = block.name
        self.body = block.body
        self.way = way
        self.notes: tuple[str, ...] = ()
        self._attributes = dict(block.attributes)
        if len(self._attributes) < len(block.attributes):
            seen: set[str] = set()
            for name, _ in block.attributes:
                if name in seen:
                    raise OperationError(f"Attribute '{name}' is given twice; give it once")
                seen.add(name)

    def get(self, name: str) -> str | None:
        return self._attributes.get(name)

    def need(self, name: str, example: str) -> str:
        value = self.get(name)
        if value is None:
            raise OperationError(
                f"Missing attribute '{name}'; write [{self.tag} {name}=\"{example}\"]"
            )
        return value

    def mend(self, mend: "Callable[[str, Channel], Body]") -> str:
        """Gives the body without what was certainly done to it; with `until` it is as it came."""
        if self.get("until") is not None:
            bodies.check_letters(self.body, self.get("path") or "", self.way, self.tag)
            return self.body
        body = mend(self.body, self.way)
        self.notes += body.notes
        return body.text

    def unknown(self, known: frozenset[str]) -> tuple[str, ...]:
        """Gives notes on the attributes that the command does not have."""
        if known.issuperset(self._attributes):
            return ()
        names = (name for name in self._attributes if name not in known)
        return tuple(f"unknown attribute '{paths.shown(name)}' was ignored" for name in names)

    def path(self) -> str:
        return paths.workspace_path(self.need("path", "relative/path"))

    def number(self, name: str, highest: int = 10**9) -> int | None:
        value = self.get(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit() and len(value) < 10):
            raise OperationError(
                f"Invalid {name} '{paths.shown(value)}'; write a whole number, {name}=\"12\""
            )
        if not 1 <= int(value) <= highest:
            raise OperationError(f"Invalid {name} '{value}'; it must be from 1 to {highest}")
        return int(value)

    def choice(self, name: str, choices: tuple[str, ...]) -> str | None:
        value = self._attributes.get(name)
        if value is None or value in choices:
            return value
        allowed = " or ".join(f'{name}="{choice}"' for choice in choices)
        raise OperationError(f"Invalid {name} '{paths.shown(value)}'; write {allowed}")


def _create_file(values: _Values) -> Operation:
    path = values.path()
    overwrite = values.choice("overwrite", ("true", "false")) != "false"
    eol = values.choice("eol", ("lf", "crlf"))
    ended = values.choice("final_newline", ("true", "false")) != "false"
    if values.choice("encoding", ("utf-8", "base64")) == "base64":
        try:
            data = base64.b64decode("".join(values.body.split()), validate=True)
        except (binascii.Error, ValueError) as fault:
            raise OperationError(
                f"The body is not valid base64 ({fault}); send it again"
            ) from fault
        return CreateFile(path, data, overwrite=overwrite)
    whole = values.mend(lambda body, way: bodies.mend_file(body, path, way))
    body = whole if ended else whole.removesuffix("\n")
    return CreateFile(path, body, LineEnd(eol) if eol else None, overwrite)


def _edit_file(values: _Values) -> Operation:
    path = values.path()
    if values.get("start_line") is None and values.get("end_line") is None:
        body = values.mend(lambda body, _: bodies.mend_replacements(body, edits.read_replacements))
        return EditFile(path, edits.read_replacements(body), values.way)
    for name in ("start_line", "end_line"):
        if values.get(name) is None:
            raise OperationError(f"Missing attribute '{name}'; write both start_line and end_line")
    start, end = values.number("start_line"), values.number("end_line")
    if start is None or end is None or start > end:
        raise OperationError(
            f"Invalid line range {start}-{end}; start_line must not be after end_line"
        )
    if edits.has_markers(values.body):
        raise OperationError(
            "Line numbers and <<<<<<< SEARCH markers together; leave out start_line and end_line"
        )
    body = values.mend(lambda body, way: bodies.mend_lines(body, path, way))
    return EditFile(path, LineRange(start, end, body))


def _delete_file(values: _Values) -> Operation:
    return DeleteFile(values.path())


def _read_file(values: _Values) -> Operation:
    path = values.path()
    start, end = values.number("start_line"), values.number("end_line")
    if start is not None and end is not None and start > end:
        raise OperationError(
            f"Invalid line range {start}-{end}; start_line must not be after end_line"
        )
    return ReadFile(path, start, end)


def _run_command(values: _Values) -> Operation:
    command = values.mend(bodies.mend_command).strip()
    lines = [line.strip() for line in command.split("\n")]
    if all(not line or line.startswith("#") for line in lines):
        raise OperationError("The command is empty; write it between the tags")
    if "\0" in command:
        raise OperationError("The command has a NUL character; write it without")
    if len(command.encode(errors="replace")) > _COMMAND_LIMIT_BYTES:
        raise OperationError(
            f"The command is longer than {_COMMAND_LIMIT_BYTES} bytes;"
            " write a script with CREATE_FILE and run that"
        )
    cwd = values.get("cwd")
    timeout = values.number("timeout", TIMEOUT_LIMIT_S)
    return RunCommand(command, timeout, "." if cwd is None else paths.folder_path(cwd))


def _show_message(values: _Values) -> Operation:
    return ShowMessage(values.body.strip("\n"))


def _finish(values: _Values) -> Operation:
    return Finish(values.body.strip("\n"))


PATH = Attribute("path", "relative/path", "relative to the workspace root, with /")
UNTIL = Attribute(
    "until", "TOKEN", "the body then ends only at the closing tag with that word, [/NAME TOKEN]"
)

COMMANDS = (
    Command(
        "CREATE_FILE",
        "Creates a file or replaces the whole of one. Missing folders are made.",
        (
            PATH,
            Attribute("overwrite", "false", "fail if the file exists"),
            Attribute("eol", "lf", '"lf" or "crlf" line ends; a replaced CRLF file stays CRLF'),
            Attribute("final_newline", "false", "no line end after the last line"),
            Attribute("encoding", "base64", "the body is base64, for binary files"),
            UNTIL,
        ),
        '[CREATE_FILE path="src/greet.py"]\ndef greet(name):\n    return f"Hello, {name}!"\n[/CREATE_FILE]',
        _create_file,
    ),
    Command(
        "EDIT_FILE",
        "Changes part of a file. SEARCH holds whole lines exactly as they stand in the file now, enough"
        " of them to fit one place only; REPLACE holds what takes their place. Several"
        " SEARCH/REPLACE blocks may follow one another: all are applied, or none.",
        (
            PATH,
            Attribute(
                "start_line",
                "3",
                "with end_line, in place of SEARCH/REPLACE: the body takes the place of these lines"
                " (1-based, inclusive)",
            ),
            Attribute("end_line", "5", "see start_line; work from the bottom of a file up"),
            UNTIL,
        ),
        '[EDIT_FILE path="src/greet.py"]\n<<<<<<< SEARCH\n    return f"Hello, {name}!"\n=======\n'
        '    return f"Good day, {name}!"\n>>>>>>> REPLACE\n[/EDIT_FILE]',
        _edit_file,
    ),
    Command(
        "DELETE_FILE",
        "Deletes one file. One line, no closing tag.",
        (PATH,),
        '[DELETE_FILE path="src/old.py"]',
        _delete_file,
        has_body=False,
    ),
    Command(
        "READ_FILE",
        "Asks for a file: its text will be in the next request. One line, no closing tag.",
        (
            Attribute("path", "relative/path", "as above, or a glob with *, ** and ?"),
            Attribute("start_line", "100", "the first line wanted"),
            Attribute("end_line", "160", "the last line wanted"),
        ),
        '[READ_FILE path="src/main.py"]',
        _read_file,
        has_body=False,
    ),
    Command(
        "RUN_COMMAND",
        "Runs shell lines in the workspace. Nothing can be typed into them; what they leave running is"
        " ended with them. You get the exit code and the output, its middle cut when it is long.",
        (
            Attribute("timeout", "120", f"seconds allowed, up to {TIMEOUT_LIMIT_S}"),
            Attribute("cwd", "sub/folder", "a folder to run in, relative to the workspace root"),
            UNTIL,
        ),
        "[RUN_COMMAND]\npython3 -m unittest\n[/RUN_COMMAND]",
        _run_command,
    ),
    Command(
        "MESSAGE",
        "Shows a text to the person: what you do and why, or a question.",
        (UNTIL,),
        "[MESSAGE]\nI will read the parser first.\n[/MESSAGE]",
        _show_message,
    ),
    Command(
        "DONE",
        "Ends the task, with a summary. Send it only when results have shown that the work is right.",
        (UNTIL,),
        "[DONE]\nGreetings are formal now, and tested.\n[/DONE]",
        _finish,
    ),
)

BY_TAG = {command.tag: command for command in COMMANDS}
HAS_BODY = {command.tag: command.has_body for command in COMMANDS}
_KNOWN = {
    command.tag: frozenset(attribute.name for attribute in command.attributes)
    for command in COMMANDS
}


def decode(block: Block, way: Channel = UNHARMED) -> tuple[Operation, tuple[str, ...]]:
    """Gives the operation that a closed block asks for, and notes on how it was read.

    Args:
        block: as the grammar found it.
        way: what the tags of the reply have suffered.

    Raises:
        OperationError: if an attribute is missing or wrong, or the body can't be read.
    """
    command = BY_TAG[block.name]
    if block.fault:
        raise OperationError(block.fault)
    values = _Values(block, way)
    until = values.get("until")
    if command.has_body and until is not None and not _is_token(until):
        raise OperationError(
            f"Invalid until '{paths.shown(until)}'; write letters, digits and -_. only"
        )
    operation = command.decode(values)
    return operation, values.unknown(_KNOWN[block.name]) + values.notes


def _is_token(text: str) -> bool:
    return bool(text) and all(c.isascii() and (c.isalnum() or c in "-_.") for c in text)
