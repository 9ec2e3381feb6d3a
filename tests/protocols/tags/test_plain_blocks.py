"""A blank after an opening tag is nothing to the grammar: each text is read with such blanks, too."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from codingagent.model.commands import HAS_BODY
from codingagent.protocols.tags import reply, scanner
from codingagent.protocols.tags.scanner import Scan
from tests import reply_table
from tests.manglings import MANGLINGS
from tests.rows import each_row

_OPENING = re.compile(rf'(\[(?:{"|".join(HAS_BODY)})(?: [a-z_]+="[^"\\\n]*")*\])(?=\r?\n)')
_PLAIN = (
    '[CREATE_FILE path="a.py"]\nx = [1]\n[/CREATE_FILE]\n',
    '[CREATE_FILE path="a.py" until="X"]\n[/CREATE_FILE]\n[DONE]\n[/CREATE_FILE X]\n',
    '[CREATE_FILE path="empty"]\n[/CREATE_FILE]\n',
    '[EDIT_FILE path="a" start_line="1" end_line="2"]\ny\n[/EDIT_FILE]\n',
    "[RUN_COMMAND]\nls [a-z]*\n[/RUN_COMMAND]\n",
    "[MESSAGE]\nhi\n[/MESSAGE]\n",
    "[DONE]\nall of it\n[/DONE]\n",
    '[READ_FILE path="b"]\n',
    '[REPLY session="a1b2c3d4" sequence="1"]\n',
    "[END]\n",
)
_PIECES = (
    '[CREATE_FILE path="a.py"]',
    '[CREATE_FILE path="a.py" until="X"]',
    '[CREATE_FILE path="a.py" until=""]',
    "[/CREATE_FILE]",
    "[/CREATE_FILE X]",
    "[RUN_COMMAND]",
    "[/RUN_COMMAND]",
    "[MESSAGE]",
    "[MESSAGE",
    "[/MESSAGE]",
    "[DONE]",
    "[/DONE] ",
    "[/DONE]x",
    '[DELETE_FILE path="b"]',
    "[WRITE_FILE]",
    "[/WRITE_FILE]",
    "[done]",
    "**[MESSAGE]**",
    "`[/MESSAGE]`",
    r"\[/RUN\_COMMAND\]",
    "[END]",
    "=== HEADER ===",
    "=== PROTOCOL ===",
    r"\=== HEADER \===",
    "</think>",
    "[OK] CREATE_FILE: a.py",
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\r",
    "\x85",
    "\u2028",
    " ",
    "\u00a0",
    '"',
    "]",
    "[",
    "text",
)
_TEXTS = st.lists(st.sampled_from(_PLAIN + _PIECES)).map("".join)
_CASES = sorted({case.reply for case in reply_table.cases()})


def with_blanks(text: str) -> str:
    return _OPENING.sub(r"\1 ", text)


def without_blanks(said: object) -> str:
    """Return what was said, without the blanks that openings inside of bodies got too.

    The last eighty characters of what was cut off begin elsewhere by that.
    """
    return re.sub(r"\] (\\+n|')", r"]\1", re.sub("«[^»]*»", "«»", repr(said)))


def as_said(found: Scan) -> object:
    blocks = [block._replace(start=0, end=0) for block in found.blocks]
    return blocks, found.header, found.ended, found.has_outbox, found.notes


def test_a_closing_tag_beside_other_text_puts_the_next_block_in_doubt() -> None:
    """Design, replies as chats really give them: perhaps it was meant, and all behind it is body."""
    (block,) = scanner.scan_lines("[MESSAGE] x\n> [/MESSAGE]\n[DONE]\nx\n[/DONE]\n").blocks
    assert block.is_doubtful


@each_row("mark", ["", "> "])
@each_row("end", ["", "[DONE]\n[/MESSAGE]\n"])
def test_a_request_is_seen_in_a_block_that_may_be_none(mark: str, end: str) -> None:
    """Design, tag blocks: an outbox saved into the inbox is never executed; its examples are commands."""
    request = f"{mark}=== HEADER ===\n{mark}=== PROTOCOL ===\n"
    assert reply.read(f"[MESSAGE]\n{request}{end}").has_outbox
    assert not reply.read(f"[MESSAGE]\n{request}[/MESSAGE]\n").has_outbox
    assert scanner.scan_lines(f"[MESSAGE]\n{request}{end}").has_outbox


@given(_TEXTS)
def test_a_blank_after_an_opening_is_nothing(text: str) -> None:
    """Specification 003, parsing rules: blanks behind a tag are nothing, and a clean reply no exception."""
    plain, long = scanner.scan_lines(text), scanner.scan_lines(with_blanks(text))
    assert without_blanks(as_said(plain)) == without_blanks(as_said(long))


@given(_TEXTS)
def test_a_reply_is_read_alike_with_blanks_after_its_openings(text: str) -> None:
    """Design, replies as chats really give them: what is certain does not depend on how it was found."""
    assert without_blanks(reply.read(text)) == without_blanks(reply.read(with_blanks(text)))


@pytest.mark.one_in(48)
@pytest.mark.parametrize("name", [name for name in MANGLINGS if name != "the request above"])
def test_a_mangled_reply_is_read_alike_both_ways(name: str) -> None:
    """Design, replies as chats really give them: all replies and all that happens to them."""
    for case in _CASES:
        text = MANGLINGS[name](case)
        assert without_blanks(reply.read(text)) == without_blanks(reply.read(with_blanks(text)))


@given(_TEXTS)
def test_what_stands_around_the_blocks_is_all_that_is_not_in_them(text: str) -> None:
    """Design, tag blocks: what is looked for outside of blocks is looked for wherever none is."""
    text = scanner.fold_line_ends(text)
    found = scanner.scan_lines(text)
    edges = [0, *(at for block in found.blocks for at in (block.start, block.end)), len(text)]
    gaps = [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    assert list(found.around) == [(start, end) for start, end in gaps if end - start > 1]


_WORDS = (
    "=== HEADER ===",
    "=== PROTOCOL ===",
    "> === HEADER ===",
    r"\=== PROTOCOL \===",
    "<think>",
    "</think>",
    "&lt;/think&gt;",
    "[OK] CREATE_FILE: a.py",
    "=== CONTEXT ===",
    "diff --git a b",
    "**[MESSAGE]**",
    "> [DONE]",
    "[done]",
    "[WRITE_FILE]",
    "[/WRITE_FILE]",
    '[REPLY session="a1b2c3d4" sequence="1"]',
    "[END]",
)


@given(st.lists(st.sampled_from(_WORDS), min_size=1), st.lists(st.sampled_from(_PLAIN + _WORDS)))
def test_what_a_plain_block_holds_says_nothing_of_the_reply(words: list[str], others: list[str]) -> None:
    """Specification 003, parsing rule 3: a body is a body, whatever it looks like."""
    around = "".join(f"{other}\n" for other in others)
    one, two = (
        reply.read(f"[MESSAGE]\n{body}\n[/MESSAGE]\n{around}")
        for body in ("\n".join(words), "\n".join("x" for _ in words))
    )
    assert one.items[1:] == two.items[1:]
    assert replace(one, items=()) == replace(two, items=())
