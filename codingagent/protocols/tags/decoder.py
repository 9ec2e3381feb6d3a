"""Decode a block of the tag protocol: make an operation of its attributes and its body."""

import base64
import binascii
from collections import Counter
from collections.abc import Callable

from codingagent.editing import apply, body_rules
from codingagent.errors import OperationError
from codingagent.model import chat_damage, citations, commands, operations, paths, patterns
from codingagent.model.chat_damage import AS_IT_IS, BodyEvidence, Damage
from codingagent.model.operations import Operation
from codingagent.protocols.tags import block_repair, scanner

_TOKEN = patterns.lazy_pattern(r"[A-Za-z0-9_.-]+")
# What stands beside a path in a sentence (`src/h.py (updated)`).
_REMARK = patterns.lazy_pattern(r"\.\w{1,8}[\"'`]?\s+(?:\([^()/]*\)|[-–—#:←→].*)\Z")


class _Values:
    """A block's attributes and body, read by name; complains in words that say what to write."""

    def __init__(self, block: scanner.Block, arrival: BodyEvidence) -> None:
        self.tag = block.name
        self.body = block.body
        self._came = arrival
        self.notes: tuple[str, ...] = ()
        self.attributes = {name: citations.without(value) for name, value in block.attributes}
        if self.attributes != dict(block.attributes):
            self.notes = (block_repair.SAID.format(what=Damage.CITATIONS.value),)
        if any(map(chat_damage.LINK.fullmatch, self.attributes.values())):
            how = "; write the bare name, in a code block"
            raise OperationError("A link is in place of a name in the tag", advice=how)
        if len(self.attributes) < len(block.attributes):
            ((name, _),) = Counter(name for name, _ in block.attributes).most_common(1)
            raise OperationError(f"Attribute '{name}' is given twice", advice="; give it once")

    def arrival(self) -> BodyEvidence | None:
        """Return how the body came; None with `until`: it is then meant letter by letter."""
        if self.attributes.get("until") is None:
            return self._came
        body_rules.check_letters(self.body, self.attributes.get("path") or "", self._came.way, self.tag)
        return None

    def path(self, name: str = "path") -> str:
        if name not in self.attributes:
            how = f'; write [{self.tag} {name}="{"relative" if name == "path" else "new"}/path"]'
            raise OperationError(f"Missing attribute '{name}'", advice=how)
        return paths.workspace_path(self.attributes[name])

    def new_path(self, name: str = "path") -> str:
        """Return the path of a file that may be new; refuse one with words of the chat beside it."""
        path = self.path(name)
        if _REMARK.search(path) and self.attributes.get("unchecked") != "true":
            advice = '; write the path alone, or add unchecked="true" if the file is called so'
            raise OperationError(f"'{paths.shown(path)}' is a path with a remark", advice=advice)
        return path

    def number(self, name: str, highest: int = 10**9) -> int | None:
        value = self.attributes.get(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit() and len(value) < 10):
            how = f'write a whole number, {name}="12"'
            raise OperationError(f"Invalid {name} '{paths.shown(value)}'", advice=f"; {how}")
        if not 1 <= int(value) <= highest:
            raise OperationError(f"Invalid {name} '{value}'; it must be from 1 to {highest}")
        return int(value)

    def lines(self) -> tuple[int | None, int | None]:
        start, end = self.number("start_line"), self.number("end_line")
        if start is not None and end is not None and start > end:
            how = "start_line must not be after end_line"
            raise OperationError(f"Invalid line range {start}-{end}", advice=f"; {how}")
        return start, end

    def flag(self, name: str, default: str = "false") -> bool:
        return (self.choice(name, ("true", "false")) or default) == "true"

    def choice(self, name: str, choices: tuple[str, ...]) -> str | None:
        value = self.attributes.get(name)
        if value is None or value in choices:
            return value
        allowed = " or ".join(f'{name}="{choice}"' for choice in choices)
        raise OperationError(f"Invalid {name} '{paths.shown(value)}'", advice=f"; write {allowed}")


def _create_file(values: _Values) -> Operation:
    path = values.new_path()
    overwrite = values.flag("overwrite", "true")
    eol = values.choice("eol", ("lf", "crlf"))
    ended = values.flag("final_newline", "true")
    unchecked = values.flag("unchecked")
    if values.choice("encoding", ("utf-8", "base64")) == "base64":
        try:
            data = base64.b64decode("".join(values.body.split()), validate=True)
        except (binascii.Error, ValueError) as fault:
            what = f"The body is not valid base64 ({fault})"
            raise OperationError(what, advice="; send it again") from fault
        return operations.CreateFile(path, data, overwrite=overwrite, unchecked=unchecked)
    arrival = values.arrival()
    # What may be undone in it depends on the file that it takes the place of.
    body = values.body if ended else values.body.removesuffix("\n")
    return operations.CreateFile(path, body, eol, overwrite, unchecked, arrival)


def _edit_file(values: _Values) -> Operation:
    path, unchecked, (start, end) = values.path(), values.flag("unchecked"), values.lines()
    if (start is None) is not (end is None):
        name = "start_line" if start is None else "end_line"
        raise OperationError(f"Missing attribute '{name}'", advice="; write both start_line and end_line")
    if start is not None and any(map(apply.OPEN.fullmatch, values.body.split("\n"))):
        what = "Line numbers and <<<<<<< SEARCH markers together"
        raise OperationError(what, advice="; leave out start_line and end_line")
    arrival = values.arrival()
    if start is not None and end is not None:
        part = operations.LineRange(start, end, values.body)
        return operations.EditFile(path, part, arrival, unchecked)
    if arrival is None:
        return operations.EditFile(path, apply.read_replacements(values.body), None, unchecked)
    change, notes = apply.mend_replacements(values.body)
    values.notes += notes
    return operations.EditFile(path, change, arrival, unchecked)


def _words(values: _Values) -> str:
    """Return what the person is told, without the marks of what the chat cites."""
    text = values.body.strip("\n")
    if values.attributes.get("until") is not None or (bare := citations.without_unquoted(text)) == text:
        return text
    values.notes += (f"{Damage.CITATIONS.value} were removed from it",)
    return bare.strip("\n")


def _run_command(values: _Values) -> Operation:
    arrival, command = values.arrival(), values.body
    commands.check_length(command, "write a script with CREATE_FILE and run that")
    if arrival is not None:
        mended = body_rules.mend_command(command, arrival)
        command, values.notes = mended.text, values.notes + mended.notes
    command = command.strip()
    if all(line.strip()[:1] in ("", "#") for line in command.split("\n")):
        raise OperationError("The command is empty", advice="; write it between the tags")
    if "\0" in command:
        raise OperationError("The command has a NUL character", advice="; write it without")
    cwd = values.attributes.get("cwd")
    timeout = values.number("timeout", commands.TIMEOUT_LIMIT_S)
    return operations.RunCommand(command, timeout, "." if cwd is None else paths.folder_path(cwd))


DECODE: "dict[str, Callable[[_Values], Operation]]" = {
    "CREATE_FILE": _create_file,
    "EDIT_FILE": _edit_file,
    "DELETE_FILE": lambda values: operations.DeleteFile(values.path()),
    "MOVE_FILE": lambda values: operations.MoveFile(
        values.path(), values.new_path("to"), values.flag("overwrite")
    ),
    "READ_FILE": lambda values: operations.ReadFile(values.path(), *values.lines()),
    "RUN_COMMAND": _run_command,
    "MESSAGE": lambda values: operations.ShowMessage(_words(values)),
    "DONE": lambda values: operations.Finish(_words(values)),
}


def decode(block: scanner.Block, arrival: BodyEvidence = AS_IT_IS) -> tuple[Operation, tuple[str, ...]]:
    """Return the operation that a closed block asks for, and notes on how it was read."""
    if block.fault:
        raise OperationError(block.fault[0], advice=block.fault[1])
    values = _Values(block, arrival)
    until = values.attributes.get("until")
    if commands.HAS_BODY[block.name] and until is not None and not _TOKEN.fullmatch(until):
        how = "write letters, digits and -_. only"
        raise OperationError(f"Invalid until '{paths.shown(until)}'", advice=f"; {how}")
    operation = DECODE[block.name](values)
    known = {attribute.name for attribute in commands.BY_TAG[block.name].attributes}
    unknown = (paths.shown(name) for name in values.attributes if name not in known)
    notes = tuple(f"unknown attribute '{name}' was ignored" for name in unknown)
    return operation, notes + values.notes
