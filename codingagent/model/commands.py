"""The commands of the tag protocol, as commands.txt lists them; `decoder` makes operations of them."""

import re
from collections.abc import Mapping

from msgspec import Struct

from codingagent.errors import OperationError
from codingagent.model.operations import Kind
from codingagent.model.patterns import sections

# A build may take long, but a forgotten server must not run forever: specification 001 has the same hour.
TIMEOUT_LIMIT_S = 3600
# Linux gives one argument 128 KiB; a longer script belongs in a file.
_COMMAND_LIMIT_BYTES = 100_000


class Attribute(Struct, frozen=True):
    """One `name="value"` of an opening tag, with an example of the value."""

    name: str
    example: str
    meaning: str


class TagCommand(Struct, frozen=True):
    """One command: its kind, which is its tag, what it means to the model, and an example."""

    kind: Kind
    meaning: str
    attributes: tuple[Attribute, ...]
    example: str


def _attributes(text: str, known: Mapping[str, Attribute]) -> list[Attribute]:
    found: list[Attribute] = []
    for names, *own in re.findall(r'^    (?:\+ (.+)|(\w+)="(.*?)": (.+))$', text, re.MULTILINE):
        found += [known[name] for name in names.split()] if names else [Attribute(*own)]
    return found


def _command(kind: str, text: str) -> TagCommand:
    meaning = " ".join(re.findall(r'^    (?![+>]|\w+=")(.+)$', text, re.MULTILINE))
    example = "\n".join(re.findall(r"^    > (.+)$", text, re.MULTILINE))
    return TagCommand(Kind(kind), meaning, tuple(_attributes(text, _SHARED)), example)


_SECTIONS = sections(__file__)
_SHARED = {each.name: each for each in _attributes(_SECTIONS.pop("attributes"), {})}
PATH, TO, UNTIL, UNCHECKED = _SHARED.values()
COMMANDS = tuple(_command(kind, text) for kind, text in _SECTIONS.items())
BY_TAG = {str(command.kind): command for command in COMMANDS}
HAS_BODY = {tag: "[/" in command.example for tag, command in BY_TAG.items()}


def check_length(command: str, how: str) -> None:
    """Refuse a command that is longer than Linux lets one argument be, and say `how` else."""
    if len(command.encode(errors="replace")) > _COMMAND_LIMIT_BYTES:
        raise OperationError(f"The command is longer than {_COMMAND_LIMIT_BYTES} bytes", advice=f"; {how}")
