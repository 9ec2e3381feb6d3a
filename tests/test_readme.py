"""What README says and can be derived is derived: it may not drift from the code."""

import contextlib
import json
import re
import shlex
from dataclasses import fields
from pathlib import Path
from typing import get_args

import codingagent
from codingagent.cli import main
from codingagent.model.commands import COMMANDS, Command
from codingagent.model.settings import Settings, meanings
from codingagent.protocols.json.events import EVENT_TYPES
from codingagent.protocols.json.operations import OPERATION_TYPES, Operation
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Step

README = (Path(__file__).resolve().parent.parent / "README.md").read_text("utf-8")


def section(name: str) -> str:
    """Gives what stands between the two remarks that name a generated part."""
    found = re.search(rf"<!-- {name}: .* -->\n(.*?)<!-- end of {name} -->", README, re.DOTALL)
    assert found is not None
    return found[1]


def describe(command: Command) -> str:
    lines = [f"**`{command.tag}`** {command.meaning}", "", "```text", command.example, "```", ""]
    if command.attributes:
        lines += ["| attribute | meaning |", "|---|---|"]
        lines += [f'| `{a.name}="{a.example}"` | {a.meaning} |' for a in command.attributes]
        lines.append("")
    return "\n".join(lines)


def test_the_reference_of_commands_is_made_from_the_definitions() -> None:
    """Design: the tag reference comes from the operation definitions."""
    assert section("commands") == "\n".join(map(describe, COMMANDS))


def test_the_table_of_settings_is_made_from_the_definitions() -> None:
    """Design: every setting stands in README with its default and meaning."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for each in fields(Settings):
        # As it is written in the file.
        default = str(each.default).lower() if isinstance(each.default, bool) else each.default
        default = f"`{default}`" if default not in ("", ()) else "(none)"
        rows.append(f"| `{each.name}` | {default} | {meanings()[each.name]} |")
    assert section("settings") == "\n".join(rows) + "\n"


def test_every_command_of_the_command_line_stands_in_readme() -> None:
    """A command that README does not tell of is one that nobody finds."""
    table = README.partition("## Commands")[2].partition("## Settings")[0]
    for command in (name for group in main.COMMANDS.values() for name in group):
        assert re.search(rf"`{command}\b", table), command


def test_every_room_stands_in_the_layout() -> None:
    """A newcomer reads the house by this list."""
    layout = README.partition("## How the code is laid out")[2].partition("## Tests")[0]
    package = Path(codingagent.__file__).parent
    rooms = {path.name for path in package.iterdir() if path.suffix in ("", ".py")}
    missing = {room for room in rooms if room not in layout and not room.startswith("__")}
    assert missing <= {"demo"}  # what the demonstration works on


def test_each_command_can_be_decoded() -> None:
    """A command that is only told of would be a fault when an answer uses it."""
    for command in COMMANDS:
        assert isinstance(reply.read(f"{command.example}\n").items[0], Step)


def test_the_two_command_lines_name_what_is_there() -> None:
    """README gives one line for the main job and one for all tests."""
    root = Path(__file__).resolve().parent.parent
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    words = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert ["python3", "tests/check.py"] in words
    assert (root / "tests" / "check.py").is_file()
    assert any(
        line[:4] == ["python3", "-m", "venv", ".venv"] and line[-1] == "demo" for line in words
    )
    assert "python3 tests/check.py" in (root / ".ci" / "run").read_text("utf-8")


def test_the_messages_in_readme_are_valid() -> None:
    """What a program is written after must be what is read and written."""
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", README, re.DOTALL)]
    operations, events = blocks
    assert codingagent.validate_operations_message(operations).success
    assert codingagent.validate_events_message(events).success


def test_every_operation_with_its_fields_stands_in_readme() -> None:
    """A program on another stack can be written from README alone."""
    table = README.partition("## For programs")[2].partition("## What holds")[0]
    for type_, each in zip(OPERATION_TYPES, get_args(Operation), strict=True):
        row = re.search(rf"^\| `{type_}` \|.*$", table, re.MULTILINE)
        assert row is not None, each
        for name in {field.name for field in fields(each)} - {"type", "id"}:
            assert f"`{name}" in row[0], (each, name)
    for name in EVENT_TYPES:
        assert f"`{name}`" in table or name == "userMessage", name


def test_the_python_example_in_readme_works(tmp_path: Path) -> None:
    """Each example in the docs is run."""
    (tmp_path / "project" / "build").mkdir(parents=True)
    example, _ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    with contextlib.chdir(tmp_path):
        exec(compile(example, "README.md", "exec"), {})
    assert not (tmp_path / "project" / "build").exists()
