"""What a block asks for: specification 003, command syntax and parse errors, and Design, tag blocks."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.errors import OperationError
from codingagent.model.commands import COMMANDS, HAS_BODY, TagCommand
from codingagent.model.operations import CreateFile, Operation
from codingagent.protocols.tags import decoder, scanner
from codingagent.protocols.tags.scanner import Block
from tests.helpers import cpu_below
from tests.rows import each_row


def block_of(text: str) -> Block:
    (block,) = scanner.scan_lines(text).blocks
    return block


def decode(text: str) -> Operation:
    return decoder.decode(block_of(text))[0]


def refusal(text: str) -> str:
    with pytest.raises(OperationError) as caught:
        decode(text)
    assert "\n" not in caught.value.reason
    return caught.value.reason


# --- each command ----------------------------------------------------------------------------------


def test_those_that_need_no_text_are_self_closing() -> None:
    """Specification 003, command syntax reference: DELETE_FILE and READ_FILE have no body."""
    bare = [name for name, has_body in HAS_BODY.items() if not has_body]
    assert bare == ["DELETE_FILE", "MOVE_FILE", "READ_FILE"]


# --- paths -----------------------------------------------------------------------------------------


def test_of_very_many_attributes_one_given_twice_is_found_in_a_moment() -> None:
    """Design, purpose: the reply is not trusted; reading any takes time in proportion to its length."""
    names = "".join(f' a{number}="b"' for number in range(100_000))
    with cpu_below(50):
        reason = refusal(f'[DELETE_FILE{names} a99999="b"]\n')
    assert reason == "Attribute 'a99999' is given twice; give it once"


# --- CREATE_FILE -----------------------------------------------------------------------------------


@given(st.binary(max_size=300), st.integers(1, 80))
def test_base64_gives_any_bytes(data: bytes, width: int) -> None:
    """Design, tag blocks: `encoding="base64"` on CREATE_FILE, in lines of any length."""
    coded = base64.b64encode(data).decode()
    lines = "".join(f"{coded[i : i + width]}\n" for i in range(0, len(coded), width))
    text = f'[CREATE_FILE path="a" encoding="base64"]\n{lines}[/CREATE_FILE]\n'
    assert decode(text) == CreateFile("a", data)


@each_row("body", ["YQ", "Y", "Y!==", "é", "YQ==YQ=="])
def test_damaged_base64_is_refused(body: str) -> None:
    """Design, replies as chats give them: never wrong bytes; the block is asked for again."""
    reason = refusal(f'[CREATE_FILE path="a" encoding="base64"]\n{body}\n[/CREATE_FILE]\n')
    assert reason.startswith("The body is not valid base64 (")
    assert reason.endswith("); send it again")


@each_row("token", ["", "a b", "é", "a]b", "a/b"])
def test_an_until_that_is_no_token_is_refused(token: str) -> None:
    """Design, tag blocks: `until="TOKEN"`; what can't be found again is refused."""
    block = Block("CREATE_FILE", (("path", "a"), ("until", token)), "x\n", 1)
    with pytest.raises(OperationError, match=r"^Invalid until '.*'; write letters, digits and -_\. only$"):
        decoder.decode(block)


# --- EDIT_FILE -------------------------------------------------------------------------------------

_MARKED = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"


@each_row("value", ["x", "1.5", "-1", "", " 1", "1e3", "0x1", "²", "١", "1" * 10, "1" * 5000])
@each_row("name", ["start_line", "end_line"])
def test_a_line_number_that_is_no_number_is_refused(name: str, value: str) -> None:
    """Specification 003, parse errors: invalid attribute values, e.g. non-integer line numbers."""
    other = {"start_line": "end_line", "end_line": "start_line"}[name]
    reason = refusal(f'[EDIT_FILE path="a" {name}="{value}" {other}="1"]\nx\n[/EDIT_FILE]\n')
    assert reason.startswith(f"Invalid {name} '{value[:200]}")
    assert reason.endswith(f'\'; write a whole number, {name}="12"')


# --- RUN_COMMAND -----------------------------------------------------------------------------------


def test_a_command_that_no_system_takes_is_refused() -> None:
    """Design, commands: what can't be started is said before it is tried."""
    assert (
        refusal("[RUN_COMMAND]\na\0b\n[/RUN_COMMAND]\n")
        == "The command has a NUL character; write it without"
    )
    assert refusal(f"[RUN_COMMAND]\n{'é' * 50_001}\n[/RUN_COMMAND]\n") == (
        "The command is longer than 100000 bytes; write a script with CREATE_FILE and run that"
    )


# --- the table -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.kind)
def test_each_example_in_the_table_is_valid(command: TagCommand) -> None:
    """Design, the outbox: every example in PROTOCOL is parsed by a test."""
    block = block_of(f"{command.example}\n")
    assert block.name == command.kind
    assert block.notes == ()
    assert decoder.decode(block)[1] == ()


@given(
    st.sampled_from(COMMANDS),
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "path",
                    "start_line",
                    "end_line",
                    "timeout",
                    "cwd",
                    "eol",
                    "encoding",
                    "overwrite",
                    "until",
                    "x",
                ]
            ),
            st.one_of(
                st.sampled_from(["a", "1", "2", "true", "false", "lf", "base64", "..", "."]),
                st.text(max_size=20),
            ),
        ),
        max_size=4,
    ),
    st.one_of(st.text(max_size=80), st.sampled_from([_MARKED, "YQ==\n", "ls\n"])),
)
def test_decoding_gives_an_operation_or_one_line_of_refusal(
    command: TagCommand, attributes: list[tuple[str, str]], body: str
) -> None:
    """Specification 003, design goals: malformed commands produce error results rather than crashes."""
    block = Block(command.kind, tuple(attributes), body, 1)
    try:
        decoder.decode(block)
    except OperationError as fault:
        assert fault.reason
        assert fault.reason.isprintable()
