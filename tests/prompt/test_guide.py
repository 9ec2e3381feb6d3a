"""The PROTOCOL section: specification 003, PROTOCOL section, and Design, tag blocks and the outbox."""

import re

import pytest

from codingagent.model.commands import COMMANDS, TagCommand
from codingagent.model.operations import CreateFile, EditFile, Finish, RunCommand
from codingagent.prompt import guide
from codingagent.protocols.tags import decoder, reply, scanner
from codingagent.protocols.tags.reply import Header, Step
from tests.rows import each_row

_TEXT = guide.protocol_text()


def test_the_example_of_a_good_answer_is_one() -> None:
    """Design, the outbox: every example in PROTOCOL is parsed by a test."""
    found = reply.read(guide.EXAMPLE)
    operations = [item.operation for item in found.items if isinstance(item, Step)]
    assert [type(operation) for operation in operations] == [EditFile, CreateFile, RunCommand, Finish]
    assert len(operations) == len(found.items)
    assert not [note for item in found.items for note in item.notes]
    assert (found.header, found.notes, found.has_outbox) == (Header("a1b2c3d4", 2), (), False)
    assert guide.EXAMPLE in _TEXT


def test_each_block_in_the_guide_is_valid() -> None:
    """Design, the outbox: every example in PROTOCOL is parsed by a test, wherever it stands in the text."""
    # The example answer ends with [END], and the command DONE with itself: each block for itself.
    found = scanner.scan_lines(_TEXT)
    decoded = [decoder.decode(block) for block in found.blocks]
    assert all(block.closed for block in found.blocks)
    assert not [note for _, notes in decoded for note in notes]
    assert not [note for block in found.blocks for note in block.notes]
    assert found.notes == ()
    assert {each.kind for each, _ in decoded} == {command.kind for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.kind)
def test_each_command_is_described_with_its_example_and_attributes(command: TagCommand) -> None:
    """Specification 003, PROTOCOL section: available commands with syntax examples."""
    section = _TEXT.partition(f"### {command.kind}\n")[2].partition("###")[0]
    assert command.meaning in section
    # Those that stand in the example of an answer need none of their own.
    assert command.example in section or f"\n[{command.kind}" in guide.EXAMPLE
    for attribute in command.attributes:
        if attribute.name not in {"path", "to", "until", "unchecked"}:
            assert f'  {attribute.name}="{attribute.example}": {attribute.meaning}' in section


@each_row(
    "sentence",
    [
        "Paths count from the workspace root, with /;",
        "A program executes your operations in order",
        'first line is [REPLY session="…" sequence="…"]',
        "the last is [END].",
        'until="TOKEN"',
        "[/CREATE_FILE TOKEN]",
        "from the bottom up",
        "EDIT_FILE with SEARCH/REPLACE",
        "a glob with *, ** and ?",
        "the user commits",
        "It is accepted only if every operation succeeded",
        "If it matters, ask in one MESSAGE, and stop.",
    ],
)
def test_the_guide_tells_the_rules(sentence: str) -> None:
    """Specification 003, PROTOCOL section: rules for paths, behavioral guidelines. Design, tag blocks."""
    assert sentence in re.sub(r"\s+", " ", _TEXT)


def test_the_guide_is_the_same_every_time() -> None:
    """Specification 003, PROTOCOL section: identical in every outbox file for a given protocol version."""
    assert guide.protocol_text() == _TEXT
    assert not re.search(r"\d{4}-\d\d|/home|/root|/tmp", _TEXT)


def test_the_guide_has_no_heading_of_a_section() -> None:
    """Specification 003, section markers: four sections, and no line within one looks like a marker."""
    assert not re.search(r"^\s*=== \w+ ===", _TEXT, re.MULTILINE)


def test_the_guide_is_short() -> None:
    """Design, purpose: it is pasted each turn, so every line of it costs."""
    assert len(_TEXT) < 4_300
