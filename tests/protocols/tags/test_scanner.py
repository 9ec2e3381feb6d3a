"""Where blocks begin and end in a reply: specification 003, parsing rules, and Design, tag blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.model.commands import HAS_BODY
from codingagent.protocols.tags import scanner, tag_blocks
from codingagent.protocols.tags.tag_blocks import Block, Scan
from tests.helpers import cpu_below

_FRAGMENTS = [
    '[CREATE_FILE path="a.py"]',
    '[CREATE_FILE path="a.py" until="X"]',
    "[/CREATE_FILE]",
    "[/CREATE_FILE X]",
    "[RUN_COMMAND]",
    "[/RUN_COMMAND]",
    "[DONE]",
    "[/DONE]",
    "[MESSAGE",
    '[READ_FILE path="b"]',
    "[DELETE_FILE ",
    '[REPLY session="a1b2c3d4" sequence="1"]',
    "[END]",
    "[WRITE_FILE]",
    "[/WRITE_FILE]",
    "[done]",
    "=== HEADER ===",
    "=== PROTOCOL ===",
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "\x0c",
    "\x85",
    "\u2028",
    '"',
    "\\",
    "]",
    "[",
    "[/",
    "=",
    "text",
    "```",
]
_REPLIES = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(_FRAGMENTS)).map("".join))


def scan(text: str) -> Scan:
    return scanner.scan_lines(tag_blocks.fold_line_ends(text))


def only(text: str) -> Block:
    (block,) = scan(text).blocks
    return block


def names(text: str) -> list[str]:
    return [block.name for block in scan(text).blocks]


# --- openings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "before", ["", " ", "\t", "    ", "text\n", "text\n  \t", "\u00a0", "\x0c"]
)
def test_an_opening_stands_at_the_start_of_a_trimmed_line(before: str) -> None:
    """Specification 003, parsing rule 1: `[COMMAND_NAME` at the start of a trimmed line."""
    assert names(f'{before}[DELETE_FILE path="a"]\n') == ["DELETE_FILE"]


@pytest.mark.parametrize(
    "before", ["- ", "> ", "1. ", "use ", "`", "\\", "[", "text\u2028", "x\x0c"]
)
def test_an_opening_within_a_line_is_text(before: str) -> None:
    """Specification 003, parsing rules 1 and 7: text between blocks is silently ignored."""
    assert scan(f'{before}[DELETE_FILE path="a"]\n') == Scan(
        (), None, ended=False, has_outbox=False, notes=()
    )


@pytest.mark.parametrize(
    "opening",
    [
        '[DELETE_FILES path="a"]',
        '[DELETE_FILE_2 path="a"]',
        '[DELETE_FILE-2 path="a"]',
        '[DELETE_FILE.path="a"]',
        '[DELETE path="a"]',
        '[ DELETE_FILE path="a"]',
        'DELETE_FILE path="a"',
        '(DELETE_FILE path="a")',
        '<DELETE_FILE path="a">',
    ],
)
def test_a_name_is_matched_whole(opening: str) -> None:
    """Specification 003, parsing rule 1: other names are no commands."""
    assert names(opening + "\n") == []


@pytest.mark.parametrize("name", ["delete_file", "Delete_File", "DELETE_file"])
def test_names_are_upper_case_and_others_are_noted(name: str) -> None:
    """Design, tag blocks: tag names are upper case, and only so."""
    found = scan(f'text\n[{name} path="a"]\n')
    assert found.blocks == ()
    assert found.notes == (f"line 2: [{name}] is no command: names are upper case, [DELETE_FILE]",)


def test_a_tag_that_looks_like_ours_is_ignored_and_noted() -> None:
    """Design, tag blocks: `[WRITE_FILE …]` with its closing tag is ignored, and noted."""
    found = scan('[WRITE_FILE path="a"]\nx\n[/WRITE_FILE]\n[DELETE_FILE path="a"]\n')
    assert [block.name for block in found.blocks] == ["DELETE_FILE"]
    assert found.notes == ("line 1: [WRITE_FILE] is no command and was ignored",)


@pytest.mark.parametrize(
    "line", ["[TODO]", "[X] done", "[INFO] starting", "[1]", "[link](http://x)", "[ERROR"]
)
def test_brackets_in_prose_are_silently_ignored(line: str) -> None:
    """Specification 003, parsing rule 7: text between command blocks is silently ignored."""
    assert scan(f"{line}\n") == Scan((), None, ended=False, has_outbox=False, notes=())


def test_of_many_notes_the_first_twelve_are_kept() -> None:
    """Design, purpose: the same remark a hundred times teaches no more, and fills the next request."""
    assert len(scan("[done]\n" * 100).notes) == 12


# --- attributes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "attributes"),
    [
        ("", ()),
        (' path="a"', (("path", "a"),)),
        (
            ' path="a" start_line="1" end_line="2"',
            (("path", "a"), ("start_line", "1"), ("end_line", "2")),
        ),
        ('  path = "a"  ', (("path", "a"),)),
        ('\tpath="a"\t', (("path", "a"),)),
        (' path=""', (("path", ""),)),
        (' path="my file.txt"', (("path", "my file.txt"),)),
        (' path="app/[id]/page.tsx"', (("path", "app/[id]/page.tsx"),)),
        (' path="a]b"', (("path", "a]b"),)),
        (' path="a\'b"', (("path", "a'b"),)),
        (' path="a=b"', (("path", "a=b"),)),
        (r' path="a\"b"', (("path", 'a"b'),)),
        (r' path="a\\b"', (("path", r"a\b"),)),
        (r' path="a\nb"', (("path", r"a\nb"),)),
        (r' path="\\\""', (("path", '\\"'),)),
        (' path="a" path="b"', (("path", "a"), ("path", "b"))),
        (' data-x="1" _y="2"', (("data-x", "1"), ("_y", "2"))),
        (' path="a", start_line="1"', (("path", "a"), ("start_line", "1"))),
    ],
)
def test_attributes_are_pairs_of_key_and_quoted_value(
    written: str, attributes: tuple[tuple[str, str], ...]
) -> None:
    r"""Specification 003, parsing rule 2: `key="value"`. Design: values may hold `\"` and `\\`."""
    block = only(f"[READ_FILE{written}]\n")
    assert block.attributes == attributes
    assert block.fault == ""
    assert block.notes == ()


@pytest.mark.parametrize(
    "written",
    [
        " path=a",
        " path='a'",
        ' path="a',
        ' path="a"',
        " path=“a”",
        ' path="a" b=c]',
        ' path:"a"]',
        r' path="a\"]',
    ],
)
def test_an_opening_that_cannot_be_read_is_a_fault_and_not_skipped(written: str) -> None:
    """Specification 003, parse errors: a malformed block is an error with a descriptive message."""
    block = only(f"[READ_FILE{written}\n")
    assert block.fault.startswith("can't read the opening tag at ")
    assert block.fault.endswith(': write attributes as name="value" and end the tag with ]')


def test_the_body_behind_an_unreadable_opening_is_passed_over() -> None:
    """Design, tag blocks: one bad block never costs the others, and nothing inside it is executed."""
    found = scan(
        '[CREATE_FILE path=a]\n[DELETE_FILE path="b"]\n[/CREATE_FILE]\n[READ_FILE path="c"]\n'
    )
    assert [(block.name, bool(block.fault)) for block in found.blocks] == [
        ("CREATE_FILE", True),
        ("READ_FILE", False),
    ]


def test_an_unreadable_opening_without_a_closing_tag_is_unclosed() -> None:
    """Design, tag blocks, unclosed block: nothing inside it is executed, to the end of the answer."""
    block = only('[CREATE_FILE path=a]\n[DELETE_FILE path="b"]\n')
    assert (block.closed, bool(block.fault)) == (False, True)


def test_an_unreadable_opening_on_one_line_ends_with_that_line() -> None:
    """Design, tag blocks: one bad block never costs the others."""
    assert names('[RUN_COMMAND timeout=5]ls[/RUN_COMMAND]\n[READ_FILE path="a"]\n') == [
        "RUN_COMMAND",
        "READ_FILE",
    ]


def test_an_unreadable_opening_heeds_its_until() -> None:
    """Design, tag blocks: `until` ends the block only there, so what is inside is never executed."""
    text = "[CREATE_FILE path='a' until=\"EOF\"]\n[/CREATE_FILE]\n"
    text += '[DELETE_FILE path="b"]\n[/CREATE_FILE EOF]\n'
    assert names(text) == ["CREATE_FILE"]


# --- bodies and closings ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "",
        "one\n",
        "one\ntwo\n",
        "    indented\n\ttabs\n",
        "trailing  \n\t\n",
        "\n",
        "\n\nblank around\n\n",
        "form\x0cfeed\x0bNEL\x85LS\u2028PS\u2029FS\x1c\n",
        "lone\rreturn\n",
        "```python\nx\n```\n",
        "[/MESSAGE]\n",
        "[CREATE_FILE]x\n",
        "a [/CREATE_FILE]\n",
        "[/CREATE_FILE] a\n",
        "[/CREATE_FILE ]\n",
        "[/create_file]\n",
        "[ /CREATE_FILE]\n",
        "=== HEADER ===\n=== PROTOCOL ===\n",
        "[END]\n",
        '[REPLY session="ffffffff" sequence="9"]\n',
        "[/CREATE_FILE\n",
        "\\[/CREATE_FILE]\n",
        "--- end a ---\n",
    ],
)
def test_a_body_is_verbatim(body: str) -> None:
    """Specification 003, parsing rules 3 and 4: verbatim, until a line that is exactly the closing tag."""
    found = scan(f'[CREATE_FILE path="a"]\n{body}[/CREATE_FILE]\n')
    assert [block.body for block in found.blocks] == [body]
    assert found.blocks[0].closed
    assert (found.header, found.ended, found.has_outbox, found.notes) == (None, False, False, ())


@pytest.mark.parametrize(
    "closing", ["[/CREATE_FILE]", "  [/CREATE_FILE]", "\t[/CREATE_FILE]  ", "[/CREATE_FILE]\u00a0"]
)
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r"])
def test_a_closing_tag_is_alone_on_its_trimmed_line(closing: str, end: str) -> None:
    """Specification 003, parsing rule 4: exact match on a trimmed line; the last line needs no end."""
    block = only(f'[CREATE_FILE path="a"]\n  x\n{closing}{end}')
    assert (block.body, block.closed, block.notes) == ("  x\n", True, ())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_may_be_crlf(end: str) -> None:
    """Design, tag blocks: lines are parted by LF, with CRLF folded."""
    text = '[CREATE_FILE path="a"]\nx\n\n y\n[/CREATE_FILE]\n[DONE]\nok\n[/DONE]\n'
    assert scan(text.replace("\n", end)) == scan(text)


def test_a_lone_final_return_ends_the_last_line() -> None:
    """Design, tag blocks: a lone final CR is folded; within the text a CR is a character."""
    assert tag_blocks.fold_line_ends("a\rb\r\nc\r") == "a\rb\nc\n"
    assert tag_blocks.fold_line_ends("a") == "a"


def test_commands_come_in_order_and_text_between_them_is_ignored() -> None:
    """Specification 003, parsing rules 5, 6 and 7."""
    text = (
        "I think.\n[MESSAGE]\nhi\n[/MESSAGE]\nThen:\n\n"
        '[DELETE_FILE path="a"]\nand\n[RUN_COMMAND]\nls\n[/RUN_COMMAND]\nBye.\n'
    )
    found = scan(text)
    assert [(block.name, block.line, block.body) for block in found.blocks] == [
        ("MESSAGE", 2, "hi\n"),
        ("DELETE_FILE", 7, ""),
        ("RUN_COMMAND", 9, "ls\n"),
    ]
    assert found.notes == ()


def test_a_self_closing_command_has_no_body() -> None:
    """Specification 003, DELETE_FILE and READ_FILE: self-closing, no body or closing tag."""
    assert names('[DELETE_FILE path="a"]\n[READ_FILE path="b"]\n[DELETE_FILE path="c"]') == [
        "DELETE_FILE",
        "READ_FILE",
        "DELETE_FILE",
    ]


@pytest.mark.parametrize("behind", ["[/READ_FILE]", "\n[/READ_FILE]", "  ", ""])
def test_a_closing_tag_of_a_self_closing_command_is_harmless(behind: str) -> None:
    """Specification 003, READ_FILE: self-closing; a superfluous closing tag is text, which is ignored."""
    found = scan(f'[READ_FILE path="a"]{behind}\n')
    assert (found.blocks[0].notes, found.notes) == ((), ())


def test_text_behind_a_self_closing_tag_is_ignored_and_noted() -> None:
    """Design, tag blocks, text after the bracket: DELETE_FILE, READ_FILE: ignored, and noted."""
    block = only('[READ_FILE path="a"] to see it\n')
    assert block.notes == ("text after the tag was ignored: 'to see it'",)


def test_a_stray_closing_tag_is_noted() -> None:
    """Design, tag blocks: a file that contains its own closing tag needs `until`; never silence."""
    found = scan('[CREATE_FILE path="a"]\nx\n[/CREATE_FILE]\nrest\n[/CREATE_FILE]\n')
    assert found.notes == (
        (
            "line 5: [/CREATE_FILE] closes nothing; if the body before it holds this line as text, send the"
            ' block again with until="TOKEN" and [/CREATE_FILE TOKEN]'
        ),
    )


# --- until -----------------------------------------------------------------------------------------


def test_until_ends_the_body_only_at_its_own_closing_tag() -> None:
    """Design, tag blocks: with `until="TOKEN"` a block ends only at `[/NAME TOKEN]`."""
    body = '[/CREATE_FILE]\n[/CREATE_FILE OTHER]\n[DELETE_FILE path="b"]\n'
    block = only(f'[CREATE_FILE path="a" until="EOF_1"]\n{body}[/CREATE_FILE EOF_1]\n')
    assert (block.body, block.notes, block.closed) == (body, (), True)


@pytest.mark.parametrize("name", [name for name, has_body in HAS_BODY.items() if has_body])
def test_until_works_on_any_block_with_a_body(name: str) -> None:
    """Design, tag blocks: `until` on any block with a body."""
    assert only(f'[{name} until="X"]\n[/{name}]\n[/{name} X]\n').body == f"[/{name}]\n"


def test_until_works_on_one_line() -> None:
    """Design, tag blocks: the closing tag of a block with `until` is `[/NAME TOKEN]` on one line too."""
    block = only('[RUN_COMMAND until="X"]echo [/RUN_COMMAND] [/RUN_COMMAND X]\n')
    assert block.body.strip() == "echo [/RUN_COMMAND]"


def test_a_block_whose_until_is_missing_at_its_end_is_unclosed() -> None:
    """Design, tag blocks: it then ends only there, so the plain closing tag does not end it."""
    assert not only('[CREATE_FILE path="a" until="X"]\nx\n[/CREATE_FILE]\n').closed


@pytest.mark.parametrize("token", ["MY TOKEN", "é", "a:b", "<EOF>"])
def test_a_token_that_is_no_token_still_shields_its_body(token: str) -> None:
    """Design, tag blocks: with `until` the block ends only there; nothing inside it is executed."""
    text = f'[CREATE_FILE path="a" until="{token}"]\n[/CREATE_FILE]\n'
    text += f'[DELETE_FILE path="b"]\n[/CREATE_FILE {token}]\n'
    assert names(text) == ["CREATE_FILE"]


# --- an opening with text behind it ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ("[RUN_COMMAND]pytest[/RUN_COMMAND]", "pytest\n"),
        ("  [RUN_COMMAND]pytest[/RUN_COMMAND]  ", "pytest\n"),
        ('[RUN_COMMAND timeout="5"]pytest -q[/RUN_COMMAND]', "pytest -q\n"),
        ("[RUN_COMMAND][/RUN_COMMAND]", ""),
        ("[DONE]all done[/DONE]", "all done\n"),
        ('[CREATE_FILE path="a"]x[/CREATE_FILE]', "x\n"),
    ],
)
def test_a_block_may_stand_on_one_line(line: str, body: str) -> None:
    """Design, tag blocks, text after the bracket: its closing tag ends the same line."""
    block = only(f"{line}\n")
    assert (block.body, block.closed, block.notes) == (body, True, ())


def test_two_blocks_on_one_line_are_not_one() -> None:
    """Specification 003, parsing rules 4 and 5: no body holds the closing tag that ends it."""
    for block in scan("[RUN_COMMAND]a[/RUN_COMMAND] [RUN_COMMAND]b[/RUN_COMMAND]\n").blocks:
        assert block.fault or "[/RUN_COMMAND]" not in block.body


def test_text_behind_an_opening_is_its_first_line_if_the_block_is_closed() -> None:
    """Design, tag blocks, text after the bracket: the closing tag comes before any other opening line."""
    block = only("[MESSAGE] Hello,\nworld.\n[/MESSAGE]\n")
    assert block.body == "Hello,\nworld.\n"
    assert block.notes == (
        "the text after the opening tag was taken as the first line of the body",
    )


@pytest.mark.parametrize(
    "text",
    [
        "[DONE] will follow\n",
        "[DONE] will follow\n[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n[DONE]\nok\n[/DONE]\n",
        "[MESSAGE] and such\n",
    ],
)
def test_an_opening_with_text_behind_it_is_prose_otherwise(text: str) -> None:
    """Design, tag blocks, text after the bracket: else it is prose (`[DONE] will follow`), and noted."""
    found = scan(text)
    name = text[1:].partition("]")[0]
    assert found.notes == (f"line 1: [{name}] has text after it and no closing tag: read as prose",)
    assert all(block.line > 1 for block in found.blocks)


def test_prose_that_begins_like_an_opening_is_prose() -> None:
    """Design, tag blocks, text after the bracket: `[DONE will follow` has neither value nor closing tag."""
    found = scan('[DONE will follow]\n[READ_FILE path="a"]\n')
    assert [block.name for block in found.blocks] == ["READ_FILE"]
    assert found.notes == ("line 1: '[DONE will follow]' was read as prose",)


# --- an opening inside a body ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "opening", ['[DELETE_FILE path="b"]', "[RUN_COMMAND]", '  [CREATE_FILE path="b"]']
)
def test_an_opening_line_inside_a_body_is_body_with_a_warning(opening: str) -> None:
    """Design, tag blocks: it is body, but the result warns: it usually means a missing closing tag."""
    found = scan(f'text\n[CREATE_FILE path="a"]\nx\n{opening}\n[/CREATE_FILE]\n')
    assert [block.body for block in found.blocks] == [f"x\n{opening}\n"]
    assert found.blocks[0].notes == (
        (
            "an opening tag is inside this body, at line 4 of the answer, and was taken as text: if a"
            " [/CREATE_FILE] is missing before it, send the block again; if it is meant, use"
            ' until="TOKEN"'
        ),
    )


def test_an_opening_on_the_first_line_of_a_body_is_warned_of() -> None:
    """Design, tag blocks: an opening line inside a body is warned of, wherever it stands."""
    assert only("[MESSAGE]\n[DONE]\n[/MESSAGE]\n").notes


# --- unclosed --------------------------------------------------------------------------------------


def test_nothing_inside_an_unclosed_block_is_a_block() -> None:
    """Design, tag blocks, unclosed block: to the end of the answer, nothing inside it is executed."""
    found = scan(
        '[READ_FILE path="a"]\n[CREATE_FILE path="b"]\nx\n'
        '[DELETE_FILE path="c"]\n[DONE]\nok\n[/DONE]\n[END]\n'
    )
    assert [(block.name, block.closed) for block in found.blocks] == [
        ("READ_FILE", True),
        ("CREATE_FILE", False),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[DONE]",
        "[DONE]\n",
        "x\n  [DONE]  \n\n",
        "[DONE]\n[END]\n",
        "[DONE]\n\n  [END]",
        "````\n[DONE]\n[END]\n````\n",
    ],
)
def test_a_bare_done_as_the_last_line_is_accepted_and_noted(text: str) -> None:
    """Design, tag blocks: a bare `[DONE]` as the last line is accepted, and noted."""
    block = only(text)
    assert (block.closed, block.body, block.behind_end) == (True, "", False)
    assert block.notes == (
        "a bare DONE was taken as the end; write a summary and its closing tag after it",
    )
    assert scan(text).ended is ("[END]" in text)


@pytest.mark.parametrize("text", ["[DONE]\nAll good.\n", "[MESSAGE]\n", '[CREATE_FILE path="a"]'])
def test_other_blocks_without_a_closing_tag_are_unclosed(text: str) -> None:
    """Specification 003, parse errors: missing closing tag; an empty file is not made by a cut."""
    assert not only(text).closed


# --- around the blocks -----------------------------------------------------------------------------


def test_the_first_reply_line_is_the_header() -> None:
    """Design, tag blocks: the reply begins with `[REPLY session="…" sequence="N"]`."""
    found = scan('Sure!\n[REPLY session="a1b2c3d4" sequence="3"]\n[DONE]\nok\n[/DONE]\n')
    assert found.header == {"session": "a1b2c3d4", "sequence": "3"}
    assert len(found.blocks) == 1


def test_the_header_and_the_end_are_optional() -> None:
    """Design, tag blocks: both are optional to the reader."""
    found = scan('[READ_FILE path="a"]\n')
    assert (found.header, found.ended, len(found.blocks)) == (None, False, 1)


@pytest.mark.parametrize(
    ("line", "ended"),
    [
        ("[END]", True),
        ("  [END]  ", True),
        ("[END] of story", False),
        ("[ENDING]", False),
        ("[end]", False),
        ("x [END]", False),
    ],
)
def test_the_end_is_a_line_of_its_own(line: str, ended: bool) -> None:
    """Design, tag blocks: the reply ends with `[END]`."""
    assert scan(f"text\n{line}\n").ended is ended


def test_blocks_behind_the_end_are_told_from_those_before() -> None:
    """Design, tag blocks: `[END]` is where a reply says that it is whole."""
    found = scan('[READ_FILE path="a"]\n[END]\n[READ_FILE path="b"]\n')
    assert [block.behind_end for block in found.blocks] == [False, True]


@pytest.mark.parametrize(
    ("text", "has_outbox"),
    [
        ("=== HEADER ===\nx\n=== PROTOCOL ===\n", True),
        ("text\n  === HEADER ===\n[DONE]\nx\n[/DONE]\n=== PROTOCOL ===", True),
        ("=== HEADER ===\n", False),
        ("=== PROTOCOL ===\n=== HEADER ===\n", False),
        ("in a line === HEADER === and === PROTOCOL ===\n", False),
        ("[MESSAGE]\n=== HEADER ===\n=== PROTOCOL ===\n[/MESSAGE]\n", False),
        ("[MESSAGE]\n=== HEADER ===\n[/MESSAGE]\n=== PROTOCOL ===\n", False),
    ],
)
def test_an_outbox_is_known_by_its_headings_outside_of_blocks(text: str, has_outbox: bool) -> None:
    """Design, tag blocks: an outbox saved into the inbox has our HEADER and PROTOCOL."""
    assert scan(text).has_outbox is has_outbox


# --- properties ------------------------------------------------------------------------------------


@given(_REPLIES)
def test_scanning_never_raises_and_goes_forward(text: str) -> None:
    """Design, tag blocks: whatever the text, blocks come in order of their lines, and notes are few."""
    found = scan(text)
    lines = [block.line for block in found.blocks]
    assert lines == sorted(set(lines))
    assert all(1 <= line <= tag_blocks.fold_line_ends(text).count("\n") + 1 for line in lines)
    assert all(block.body == "" or block.body.endswith("\n") for block in found.blocks)
    assert all(block.closed for block in found.blocks[:-1])
    assert len(found.notes) <= 12


@given(
    st.sampled_from([name for name, has_body in HAS_BODY.items() if has_body]),
    st.one_of(
        st.text(st.characters(codec="utf-8", exclude_characters="\r")),
        st.lists(st.sampled_from([f for f in _FRAGMENTS if "\r" not in f])).map("".join),
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_is_written_is_what_is_read(name: str, body: str, end: str) -> None:
    """Specification 003, parsing rule 3, and Design, `until`: any body arrives letter by letter."""
    if body and not body.endswith("\n"):
        body += "\n"
    token = "T"
    while f"[/{name} {token}]" in body:
        token += "T"
    text = f'before\n[{name} path="x" until="{token}"]\n{body}[/{name} {token}]\nbehind\n'
    block = only(text.replace("\n", end))
    assert (block.name, block.body, block.line, block.closed, block.notes) == (
        name,
        body,
        2,
        True,
        (),
    )


@given(
    st.lists(st.sampled_from([f for f in _FRAGMENTS if "/CREATE_FILE]" not in f and "\r" not in f]))
)
def test_a_body_without_its_closing_tag_needs_no_token(fragments: list[str]) -> None:
    """Specification 003, parsing rule 3: all but the closing tag is body, other blocks too."""
    body = "".join(f"{line}\n" for line in "".join(fragments).split("\n"))
    if any(line.strip() == "[/CREATE_FILE]" for line in body.split("\n")):
        return
    assert only(f'[CREATE_FILE path="a"]\n{body}[/CREATE_FILE]\n').body == body


# --- hostile ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ('[CREATE_FILE path="a"]\nx\n[/CREATE_FILE]\n' * 2_500, 2_500),
        ('[READ_FILE path="a"]\n' * 10_000, 10_000),
        (f'[READ_FILE path="{"a" * 2**18}"]\n', 1),
        ("[READ_FILE" + ' a="b"' * 10_000 + "]\n", 1),
        ("[READ_FILE" + " " * 2**18, 1),
        ('[READ_FILE path="' + "\\" * 2**18, 1),
        ("[" * 625_000, 0),
        ("[/" * 500_000, 0),
        ("```\n" * 156_250, 0),
        (" " * 312_500 + "[DONE]", 1),
        (" [DONE]" * 31_250, 0),
        ("\n" * 312_500, 0),
        ('[CREATE_FILE path="a"]\n' * 10_000, 1),
        ("[CREATE_FILE path=a]\n" * 10_000, 1),
        ('[CREATE_FILE path="a"]\n[/CREATE_FILE]x\n' * 10_000, 1),
        ('[CREATE_FILE path="a"]\n [/CREATE_FILE]\n' * 2_500, 2_500),
        ('[CREATE_FILE path="a"]\n[/DONE]\n[/CREATE_FILE]\n' * 2_500, 2_500),
        ("[MESSAGE]\n" * 10_000 + "[/DONE]\n" * 10_000, 1),
        ("[" + "A" * 625_000 + "-", 0),
        ("[DONE] x\n" * 10_000, 0),
        ("[DONE x\n" * 10_000, 0),
        ("[/DONE]\n" * 10_000, 0),
        ("[/DONE] x\n" * 10_000, 0),
        ("[WRITE_FILE]\n" * 10_000, 0),
        ("[END]\n" * 10_000, 0),
        ('[REPLY session="a"]\n' * 12_500, 0),
        ("=== HEADER ===\n" * 10_000, 0),
        ("[MESSAGE]\n" + "[/MESSAGE] x\n" * 10_000, 1),
        ("[MESSAGE]\n" + "[DONE]\n" * 10_000 + "[/MESSAGE]\n", 1),
        ("[MESSAGE] x\n[/MESSAGE] y\n" * 10_000, 0),
        ('[MESSAGE until="X"]\n' + "[/MESSAGE]\n" * 10_000, 1),
    ],
    ids=lambda value: str(value)[:24].replace("\n", "/") if isinstance(value, str) else None,
)
@pytest.mark.one_in(3)
def test_a_hostile_reply_takes_no_time(text: str, blocks: int) -> None:
    """Design, purpose: the reply is not trusted; reading any takes time in proportion to its length."""
    with cpu_below(15):
        found = scan(text)
    assert len(found.blocks) == blocks
    assert len(found.notes) <= 12
