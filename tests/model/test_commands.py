"""What a block asks for: specification 003, command syntax and parse errors, and Design, tag blocks."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.errors import OperationError
from codingagent.model.commands import COMMANDS, HAS_BODY, TagCommand
from codingagent.model.operations import (
    CreateFile,
    DeleteFile,
    EditFile,
    Finish,
    LineEnd,
    LineRange,
    Operation,
    ReadFile,
    Replacement,
    RunCommand,
    ShowMessage,
)
from codingagent.protocols.tags import decoder, scanner
from codingagent.protocols.tags.tag_blocks import Block
from tests.helpers import cpu_below


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


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        (
            '[CREATE_FILE path="relative/path"]\nfile contents\n[/CREATE_FILE]\n',
            CreateFile("relative/path", "file contents\n"),
        ),
        (
            '[EDIT_FILE path="a" start_line="2" end_line="3"]\nreplacement content\n[/EDIT_FILE]\n',
            EditFile("a", LineRange(2, 3, "replacement content\n")),
        ),
        ('[DELETE_FILE path="relative/path"]\n', DeleteFile("relative/path")),
        ('[READ_FILE path="relative/path"]\n', ReadFile("relative/path")),
        ("[RUN_COMMAND]\ncommand text\n[/RUN_COMMAND]\n", RunCommand("command text")),
        ("[MESSAGE]\nmessage text\n[/MESSAGE]\n", ShowMessage("message text")),
        ("[DONE]\nsummary text\n[/DONE]\n", Finish("summary text")),
    ],
)
def test_each_command_of_the_specification_is_read(text: str, operation: Operation) -> None:
    """Specification 003, command syntax reference: the seven examples as they stand there."""
    assert decoder.decode(block_of(text)) == (operation, ())


def test_those_that_need_no_text_are_self_closing() -> None:
    """Specification 003, command syntax reference: DELETE_FILE and READ_FILE have no body."""
    assert HAS_BODY == {
        "CREATE_FILE": True,
        "EDIT_FILE": True,
        "DELETE_FILE": False,
        "MOVE_FILE": False,
        "READ_FILE": False,
        "RUN_COMMAND": True,
        "MESSAGE": True,
        "DONE": True,
    }


# --- paths -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["CREATE_FILE", "EDIT_FILE", "DELETE_FILE", "READ_FILE"])
def test_a_missing_path_is_said(tag: str) -> None:
    """Specification 003, parse errors: missing required attributes, with a descriptive message."""
    closing = f"[/{tag}]\n" if HAS_BODY[tag] else ""
    assert (
        refusal(f"[{tag}]\n{closing}")
        == f"Missing attribute 'path'; write [{tag} path=\"relative/path\"]"
    )


@pytest.mark.parametrize("tag", ["CREATE_FILE", "EDIT_FILE", "DELETE_FILE", "READ_FILE"])
def test_each_path_is_checked(tag: str) -> None:
    """Specification 003, path sandboxing: all file paths in the four file commands."""
    closing = f"[/{tag}]\n" if HAS_BODY[tag] else ""
    reason = refusal(f'[{tag} path="../../../etc/passwd"]\n{closing}')
    assert reason == "REJECTED: Path is outside workspace: '../../../etc/passwd'"


def test_a_path_is_given_in_its_plain_form() -> None:
    """Specification 003, path sandboxing: the path is resolved before anything else."""
    assert decode('[DELETE_FILE path="./a/../b//c"]\n') == DeleteFile("b/c")


def test_a_backslash_in_a_path_is_refused() -> None:
    """Design, tag blocks: a backslash in a path is refused: "write /"."""
    assert "write /" in refusal(r'[READ_FILE path="src\a.py"]' "\n")


def test_an_attribute_given_twice_is_refused() -> None:
    """Design, purpose: what is doubtful is a problem, never a guess."""
    reason = refusal('[DELETE_FILE path="a" path="b"]\n')
    assert reason == "Attribute 'path' is given twice; give it once"


def test_of_very_many_attributes_one_given_twice_is_found_in_a_moment() -> None:
    """Design, purpose: the reply is not trusted; reading any takes time in proportion to its length."""
    names = "".join(f' a{number}="b"' for number in range(100_000))
    with cpu_below(50):
        reason = refusal(f'[DELETE_FILE{names} a99999="b"]\n')
    assert reason == "Attribute 'a99999' is given twice; give it once"


def test_unknown_attributes_are_ignored_and_noted() -> None:
    """Design, tag blocks: an unknown attribute is ignored and noted in the result."""
    text = '[READ_FILE path="a" mode="fast" reason="x"]\n'
    assert decoder.decode(block_of(text)) == (
        ReadFile("a"),
        ("unknown attribute 'mode' was ignored", "unknown attribute 'reason' was ignored"),
    )


@pytest.mark.parametrize("tag", ["MESSAGE", "DONE", "RUN_COMMAND"])
def test_commands_without_attributes_note_those_they_get(tag: str) -> None:
    """Specification 003, RUN_COMMAND, MESSAGE and DONE: no attributes. Design: ignored and noted."""
    _, notes = decoder.decode(block_of(f'[{tag} path="a"]\nx\n[/{tag}]\n'))
    assert notes == ("unknown attribute 'path' was ignored",)


def test_an_opening_that_cannot_be_read_is_refused() -> None:
    """Specification 003, parse errors: a malformed block is an error that says how to write it."""
    assert refusal("[DELETE_FILE path=a]\n") == (
        "can't read the opening tag at 'path=a]': write attributes as name=\"value\" and end the tag with ]"
    )


# --- CREATE_FILE -----------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["", "\n", "a\n", "  a\n\n b  \n", "\ta\x0c\n"])
def test_a_body_is_the_file(body: str) -> None:
    """Design, tag blocks, body to bytes: each line ended by LF; an empty body makes an empty file."""
    assert decode(f'[CREATE_FILE path="a"]\n{body}[/CREATE_FILE]\n') == CreateFile("a", body)


@pytest.mark.parametrize(
    ("attribute", "operation"),
    [
        ('eol="lf"', CreateFile("a", "x\ny\n", LineEnd.LF)),
        ('eol="crlf"', CreateFile("a", "x\ny\n", LineEnd.CRLF)),
        ('final_newline="false"', CreateFile("a", "x\ny")),
        ('final_newline="true"', CreateFile("a", "x\ny\n")),
        ('overwrite="false"', CreateFile("a", "x\ny\n", overwrite=False)),
        ('overwrite="true"', CreateFile("a", "x\ny\n")),
        ('encoding="utf-8"', CreateFile("a", "x\ny\n")),
        ('until="EOF"', CreateFile("a", "x\ny\n", arrival=None)),
        ('unchecked="true"', CreateFile("a", "x\ny\n", unchecked=True)),
    ],
)
def test_the_attributes_of_create_file(attribute: str, operation: Operation) -> None:
    """Design, tag blocks, attributes added: all optional, on CREATE_FILE."""
    closing = "[/CREATE_FILE EOF]" if "until" in attribute else "[/CREATE_FILE]"
    text = f'[CREATE_FILE path="a" {attribute}]\nx\ny\n{closing}\n'
    assert decoder.decode(block_of(text)) == (operation, ())


def test_final_newline_false_takes_one_newline_only() -> None:
    """Design, tag blocks: `final_newline="false"` leaves the last line unended, other lines as they are."""
    text = '[CREATE_FILE path="a" final_newline="false"]\nx\n\n[/CREATE_FILE]\n'
    assert decode(text) == CreateFile("a", "x\n")


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ('eol="cr"', 'Invalid eol \'cr\'; write eol="lf" or eol="crlf"'),
        ('eol="CRLF"', 'Invalid eol \'CRLF\'; write eol="lf" or eol="crlf"'),
        ('overwrite="no"', 'Invalid overwrite \'no\'; write overwrite="true" or overwrite="false"'),
        (
            'final_newline=""',
            'Invalid final_newline \'\'; write final_newline="true" or final_newline="false"',
        ),
        ('encoding="hex"', 'Invalid encoding \'hex\'; write encoding="utf-8" or encoding="base64"'),
    ],
)
def test_a_choice_that_is_none_is_refused(attribute: str, reason: str) -> None:
    """Specification 003, parse errors: invalid attribute values; the answer names the valid ones."""
    assert refusal(f'[CREATE_FILE path="a" {attribute}]\nx\n[/CREATE_FILE]\n') == reason


@given(st.binary(max_size=300), st.integers(1, 80))
def test_base64_gives_any_bytes(data: bytes, width: int) -> None:
    """Design, tag blocks: `encoding="base64"` on CREATE_FILE, in lines of any length."""
    coded = base64.b64encode(data).decode()
    lines = "".join(f"{coded[i : i + width]}\n" for i in range(0, len(coded), width))
    text = f'[CREATE_FILE path="a" encoding="base64"]\n{lines}[/CREATE_FILE]\n'
    assert decode(text) == CreateFile("a", data)


def test_base64_heeds_overwrite() -> None:
    """Design, tag blocks: `overwrite="false"` on CREATE_FILE, in whatever encoding."""
    text = '[CREATE_FILE path="a" encoding="base64" overwrite="false"]\nYQ==\n[/CREATE_FILE]\n'
    assert decode(text) == CreateFile("a", b"a", overwrite=False)


@pytest.mark.parametrize("body", ["YQ", "Y", "Y!==", "é", "YQ==YQ=="])
def test_damaged_base64_is_refused(body: str) -> None:
    """Design, replies as chats give them: never wrong bytes; the block is asked for again."""
    reason = refusal(f'[CREATE_FILE path="a" encoding="base64"]\n{body}\n[/CREATE_FILE]\n')
    assert reason.startswith("The body is not valid base64 (")
    assert reason.endswith("); send it again")


@pytest.mark.parametrize("token", ["", "a b", "é", "a]b", "a/b"])
def test_an_until_that_is_no_token_is_refused(token: str) -> None:
    """Design, tag blocks: `until="TOKEN"`; what can't be found again is refused."""
    block = Block("CREATE_FILE", (("path", "a"), ("until", token)), "x\n", 1)
    with pytest.raises(
        OperationError, match=r"^Invalid until '.*'; write letters, digits and -_\. only$"
    ):
        decoder.decode(block)


# --- EDIT_FILE -------------------------------------------------------------------------------------

_MARKED = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"


def test_an_edit_without_line_numbers_holds_search_and_replace() -> None:
    """Design, tag blocks: EDIT_FILE without line numbers holds SEARCH/REPLACE blocks."""
    text = f'[EDIT_FILE path="a"]\n{_MARKED}[/EDIT_FILE]\n'
    assert decode(text) == EditFile("a", (Replacement("a\n", "b\n"),))


@pytest.mark.parametrize("name", ["start_line", "end_line"])
def test_one_line_number_alone_is_refused(name: str) -> None:
    """Specification 003, EDIT_FILE: `start_line` and `end_line` are required."""
    other = {"start_line": "end_line", "end_line": "start_line"}[name]
    reason = refusal(f'[EDIT_FILE path="a" {name}="1"]\nx\n[/EDIT_FILE]\n')
    assert reason == f"Missing attribute '{other}'; write both start_line and end_line"


@pytest.mark.parametrize(
    "value", ["x", "1.5", "-1", "", " 1", "1e3", "0x1", "²", "١", "1" * 10, "1" * 5000]
)
@pytest.mark.parametrize("name", ["start_line", "end_line"])
def test_a_line_number_that_is_no_number_is_refused(name: str, value: str) -> None:
    """Specification 003, parse errors: invalid attribute values, e.g. non-integer line numbers."""
    other = {"start_line": "end_line", "end_line": "start_line"}[name]
    reason = refusal(f'[EDIT_FILE path="a" {name}="{value}" {other}="1"]\nx\n[/EDIT_FILE]\n')
    assert reason.startswith(f"Invalid {name} '{value[:200]}")
    assert reason.endswith(f'\'; write a whole number, {name}="12"')


def test_lines_are_counted_from_one() -> None:
    """Specification 003, EDIT_FILE: 1-indexed, inclusive."""
    reason = refusal('[EDIT_FILE path="a" start_line="0" end_line="1"]\nx\n[/EDIT_FILE]\n')
    assert reason == "Invalid start_line '0'; it must be from 1 to 1000000000"


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    """Specification 003, execution errors: invalid line range."""
    reason = refusal('[EDIT_FILE path="a" start_line="3" end_line="2"]\nx\n[/EDIT_FILE]\n')
    assert reason == "Invalid line range 3-2; start_line must not be after end_line"


def test_a_range_with_an_empty_body_removes_the_lines() -> None:
    """Specification 003, EDIT_FILE: the replacement can have a different number of lines than the range."""
    text = '[EDIT_FILE path="a" start_line="2" end_line="3"]\n[/EDIT_FILE]\n'
    assert decode(text) == EditFile("a", LineRange(2, 3, ""))


@pytest.mark.parametrize(
    "before", ["", "\n", "\n\n", "  \n", "\t\n \n", "here is the edit:\n", "```\n"]
)
def test_line_numbers_together_with_markers_are_a_problem(before: str) -> None:
    """Design, tag blocks: line numbers together with markers are a problem, wherever the markers stand."""
    reason = refusal(
        f'[EDIT_FILE path="a" start_line="1" end_line="2"]\n{before}{_MARKED}[/EDIT_FILE]\n'
    )
    assert (
        reason
        == "Line numbers and <<<<<<< SEARCH markers together; leave out start_line and end_line"
    )


def test_an_edit_with_neither_is_told_both_ways() -> None:
    """Specification 003, parse errors: missing required attributes."""
    assert "SEARCH/REPLACE" in refusal('[EDIT_FILE path="a"]\nx\n[/EDIT_FILE]\n')
    assert refusal('[EDIT_FILE path="a"]\n[/EDIT_FILE]\n').startswith(
        "No SEARCH/REPLACE and no line numbers; write"
    )


# --- READ_FILE -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "operation"),
    [
        ('path="a" start_line="5"', ReadFile("a", 5, None)),
        ('path="a" end_line="5"', ReadFile("a", None, 5)),
        ('path="a" start_line="5" end_line="5"', ReadFile("a", 5, 5)),
        ('path="src/**/*.py"', ReadFile("src/**/*.py")),
        ('path="app/[id]/page.tsx"', ReadFile("app/[id]/page.tsx")),
    ],
)
def test_a_file_is_read_in_part_or_by_a_glob(attributes: str, operation: Operation) -> None:
    """Design, tag blocks: READ_FILE takes `start_line`, `end_line`, and `path` may be a glob."""
    assert decoder.decode(block_of(f"[READ_FILE {attributes}]\n")) == (operation, ())


def test_a_range_to_read_that_ends_before_it_begins_is_refused() -> None:
    """Specification 003, parse errors: invalid attribute values."""
    reason = refusal('[READ_FILE path="a" start_line="3" end_line="2"]\n')
    assert reason == "Invalid line range 3-2; start_line must not be after end_line"


# --- RUN_COMMAND -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("ls\n", "ls"),
        ("\n\ncd a\n  ls\n\n", "cd a\n  ls"),
        ("cat <<EOF\n  x\n\nEOF\n", "cat <<EOF\n  x\n\nEOF"),
        ("# why\nls\n", "# why\nls"),
    ],
)
def test_the_body_is_the_command(body: str, command: str) -> None:
    """Specification 003, RUN_COMMAND: the body is the command to execute; of many lines, one script."""
    assert decode(f"[RUN_COMMAND]\n{body}[/RUN_COMMAND]\n") == RunCommand(command)


@pytest.mark.parametrize("body", ["", "\n", "  \n\t\n", "# nothing\n"])
def test_an_empty_command_is_refused(body: str) -> None:
    """Design, tag blocks: a problem says what to write instead."""
    assert (
        refusal(f"[RUN_COMMAND]\n{body}[/RUN_COMMAND]\n")
        == "The command is empty; write it between the tags"
    )


def test_a_command_that_no_system_takes_is_refused() -> None:
    """Design, commands: what can't be started is said before it is tried."""
    assert (
        refusal("[RUN_COMMAND]\na\0b\n[/RUN_COMMAND]\n")
        == "The command has a NUL character; write it without"
    )
    assert refusal(f"[RUN_COMMAND]\n{'é' * 50_001}\n[/RUN_COMMAND]\n") == (
        "The command is longer than 100000 bytes; write a script with CREATE_FILE and run that"
    )


@pytest.mark.parametrize(
    ("attributes", "operation"),
    [
        ('timeout="120"', RunCommand("ls", 120)),
        ('timeout="1"', RunCommand("ls", 1)),
        ('timeout="3600"', RunCommand("ls", 3600)),
        ('cwd="src/"', RunCommand("ls", None, "src")),
        ('cwd="."', RunCommand("ls", None, ".")),
        ('timeout="5" cwd="a/b"', RunCommand("ls", 5, "a/b")),
    ],
)
def test_a_command_takes_a_timeout_and_a_folder(attributes: str, operation: Operation) -> None:
    """Design, tag blocks: RUN_COMMAND takes `timeout="SECONDS"` and `cwd`."""
    assert decoder.decode(block_of(f"[RUN_COMMAND {attributes}]\nls\n[/RUN_COMMAND]\n")) == (
        operation,
        (),
    )


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ('timeout="0"', "Invalid timeout '0'; it must be from 1 to 3600"),
        ('timeout="3601"', "Invalid timeout '3601'; it must be from 1 to 3600"),
        ('timeout="5s"', "Invalid timeout '5s'; write a whole number, timeout=\"12\""),
        ('cwd="../x"', "REJECTED: Path is outside workspace: '../x'"),
        (
            'cwd="/tmp"',
            "REJECTED: Path is outside workspace: '/tmp'; write a path relative to the workspace",
        ),
    ],
)
def test_a_wrong_timeout_or_folder_is_refused(attribute: str, reason: str) -> None:
    """Specification 003, parse errors: invalid attribute values."""
    assert refusal(f"[RUN_COMMAND {attribute}]\nls\n[/RUN_COMMAND]\n") == reason


# --- MESSAGE and DONE ------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["", "one\n", "  one\n\n  two\n"])
def test_the_body_is_the_message_or_the_summary(body: str) -> None:
    """Specification 003, MESSAGE and DONE: the body is displayed; the body is a summary."""
    assert decode(f"[MESSAGE]\n{body}[/MESSAGE]\n") == ShowMessage(body.strip("\n"))
    assert decode(f"[DONE]\n{body}[/DONE]\n") == Finish(body.strip("\n"))


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
