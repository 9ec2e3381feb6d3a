"""Where blocks begin and end in a reply: specification 003, parsing rules, and Design, tag blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.model.commands import HAS_BODY
from codingagent.protocols.tags import scanner
from codingagent.protocols.tags.scanner import Block, Scan
from tests import golden
from tests.helpers import cpu_below
from tests.rows import each_row

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
    return scanner.scan_lines(scanner.fold_line_ends(text))


def only(text: str) -> Block:
    (block,) = scan(text).blocks
    return block


def show(text: str) -> str:
    """Return all that is found in an answer, in one line."""
    found = scan(text)
    words = [_shown(block) for block in found.blocks]
    words += [f"header {dict(found.header)}"] if found.header is not None else []
    words += ["ended"] * found.ended + ["a request"] * found.has_outbox
    return " · ".join([*words, *found.notes]) or "nothing"


def _shown(block: Block) -> str:
    behind = " behind the end" if block.behind_end else ""
    words = [f"{block.name} at {block.line}{behind}{'' if block.closed else ' unclosed'}"]
    words += [f"{key}={value!r}" for key, value in block.attributes]
    words += [repr(block.body)] if block.body else []
    return ", ".join([*words, *([f"fault: {''.join(block.fault)}"] if block.fault else []), *block.notes])


TABLES: dict[str, golden.Show] = {"scans.txt": show}


@each_row(("text", "found"), golden.cases(__file__, "scans.txt"))
def test_what_is_found_in_an_answer(text: str, found: str) -> None:
    """Specification 003, parsing rules, and Design, tag blocks."""
    assert show(text) == found


def test_of_many_notes_the_first_twelve_are_kept() -> None:
    """Design, purpose: the same remark a hundred times teaches no more, and fills the next request."""
    assert len(scan("[done]\n" * 100).notes) == 12


def test_a_lone_final_return_ends_the_last_line() -> None:
    """Design, tag blocks: a lone final CR is folded; within the text a CR is a character."""
    assert scanner.fold_line_ends("a\rb\r\nc\r") == "a\rb\nc\n"
    assert scanner.fold_line_ends("a") == "a"


# --- properties ------------------------------------------------------------------------------------


@given(_REPLIES)
def test_scanning_never_raises_and_goes_forward(text: str) -> None:
    """Design, tag blocks: whatever the text, blocks come in order of their lines, and notes are few."""
    found = scan(text)
    lines = [block.line for block in found.blocks]
    assert lines == sorted(set(lines))
    assert all(1 <= line <= scanner.fold_line_ends(text).count("\n") + 1 for line in lines)
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
    assert (block.name, block.body, block.line, block.closed, block.notes) == (name, body, 2, True, ())


@given(st.lists(st.sampled_from([f for f in _FRAGMENTS if "/CREATE_FILE]" not in f and "\r" not in f])))
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
