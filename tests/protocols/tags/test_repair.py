"""Tags as chats give them: Design, replies as chats really give them."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing import body_rules
from codingagent.model import chat_damage
from codingagent.model.operations import CreateFile, Finish, Operation
from codingagent.prompt import guide
from codingagent.protocols.tags import repair, reply, scanner
from codingagent.protocols.tags.reply import Step
from tests.builders import SESSION_ID
from tests.helpers import calls_of, cpu_below, grows_with
from tests.rows import each_row

_HEADER = f'[REPLY session="{SESSION_ID}" sequence="2"]\n'


def operations(text: str) -> list[Operation]:
    return [item.operation for item in reply.read(text).items if isinstance(item, Step)]


def written(text: str, old: str | None = None) -> str:
    """Return what the only file of an answer would be, with what stands there now as proof."""
    (operation,) = operations(text)
    assert isinstance(operation, CreateFile)
    assert isinstance(operation.content, str)
    assert operation.arrival is not None
    return body_rules.mend_file(operation.content, operation.path, operation.arrival, old).text


def notes(text: str) -> str:
    found = reply.read(text)
    return "\n".join([*found.notes, *(note for item in found.items for note in item.notes)])


def create(body: str, path: str = "a.py") -> str:
    return f'[CREATE_FILE path="{path}"]\n{body}[/CREATE_FILE]\n'


# --- blocks that were moved ------------------------------------------------------------------------


def _indented(text: str, lead: str) -> str:
    return "".join(f"{lead}{line}\n" for line in text.split("\n")[:-1])


def test_indentation_that_the_body_shares_with_its_tags_is_the_files_unless_it_is_proven() -> None:
    """Specification 003: the body is verbatim; the file on disk, or all of the answer, shows otherwise."""
    text = _indented(create("first\n    second\n", "a.txt"), "    ")
    assert written(text) == "    first\n        second\n"
    assert written(text, "first\n    third\n") == "first\n    second\n"
    assert written(text, "    first\n    third\n") == "    first\n        second\n"
    assert written(f"    {_HEADER}{text}") == "first\n    second\n"


# --- the reply as a whole --------------------------------------------------------------------------


def _request(session: str = SESSION_ID) -> str:
    return (
        f"=== HEADER ===\nSession: {session}\nSequence: 2\nTask: t\n\n=== PROTOCOL ===\n"
        f"{guide.protocol_text()}\n\n=== CONTEXT ===\n\n=== PROMPT ===\nt\n\n{guide.reminder(session, 2)}"
    )


@each_row(
    "text",
    [
        _request(),
        _request() + create("x\n"),
        _request() + create("x\n") + _request(),
        _request().removesuffix(guide.reminder(SESSION_ID, 2)) + create("x\n"),
        create("x\n") + _request() + create("y\n"),
    ],
)
def test_a_text_with_a_request_in_it_is_rejected(text: str) -> None:
    """Design, tag blocks: an outbox is never executed: its examples are commands."""
    assert reply.read(text).has_outbox


# --- properties ------------------------------------------------------------------------------------

_NASTY = st.sampled_from(
    [
        "",
        "x",
        "    y = 1",
        "\tz",
        "```",
        "```python",
        "> quoted",
        "- item",
        "`[DONE]`",
        "**[/CREATE_FILE]**",
        r"\[CREATE\_FILE path=\"b\"\]",
        "> [/CREATE_FILE]",
        '<li class="a">&lt;b&gt;</li>',
        "a “quoted” word",
        "\u00a0\u00a0x",
        "\u200b",
        "【x】",
        "<think>",
        "</think>",
        "1 | x",
        "+ x",
        "\\_",
        "…",
        "# ... rest unchanged",
        "[END",
        "=== HEADER ===",
        "trailing  ",
        "\ufeff",
        "\x85",
        "\u2028",
    ]
)


@given(st.lists(_NASTY, max_size=6), st.sampled_from(["a.md", "a.py", "a.txt", "Makefile"]))
def test_a_clean_body_arrives_letter_by_letter_or_is_asked_for(lines: list[str], path: str) -> None:
    """Design: a clean reply is never altered by a byte; only a fence round a program is taken off."""
    body = "".join(f"{line}\n" for line in lines)
    text = f"{_HEADER}{create(body, path)}[END]\n"
    (item,) = reply.read(text).items
    if isinstance(item, Step):
        assert isinstance(item.operation, CreateFile)
        is_fenced = body.strip().startswith("```") or body.strip().endswith("```")
        assert item.operation.content == body or (is_fenced and path in ("a.py", "Makefile"))
    shielded = text.replace(f'"{path}"]', f'"{path}" until="T"]').replace(
        "[/CREATE_FILE]\n[END]", "[/CREATE_FILE T]\n[END]"
    )
    assert operations(shielded) == [CreateFile(path, body, arrival=None)]


_PIECES = [
    create("x = 1\n"),
    create("“x”\n", "b.md"),
    '[CREATE_FILE path=“c.py”]\nx_y = "1"\n[/CREATE_FILE]\n',
    '\\[CREATE\\_FILE path="d.py"\\]\nx\\_y = 1\n\\[/CREATE\\_FILE\\]\n',
    "**[RUN_COMMAND]**\nls -l\n**[/RUN_COMMAND]**\n",
    "[RUN_COMMAND]ls[/RUN_COMMAND]\n",
    "`[RUN_COMMAND]ls[/RUN_COMMAND]`\n",
    '- [DELETE_FILE path="d"]\n',
    '[DELETE_FILE path="e"]\n',
    "> [RUN_COMMAND]\n> pwd\n> [/RUN_COMMAND]\n",
    '    [CREATE_FILE path="f.py"]\n    x\n    [/CREATE_FILE]\n',
    "1. [RUN_COMMAND]\n   id\n   [/RUN_COMMAND]\n",
    "**[/CREATE_FILE]**\n",
    "&#91;RUN_COMMAND&#93;\na &amp;&amp; b\n&#91;/RUN_COMMAND&#93;\n",
    _HEADER,
    f"**{_HEADER.strip()}**\n",
    "prose\n",
    "<think>\n",
    "```\n",
    "**[END]**\n",
    "**[DONE]**\nok\n**[/DONE]**\n",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=6, unique=True), st.integers(0, 400))
def test_a_cut_reply_does_the_beginning_of_what_the_whole_one_does(pieces: list[str], cut: int) -> None:
    """Any prefix of a reply executes a prefix of its operations (the summary of DONE aside)."""
    text = "".join(pieces)
    if "<think>" in text and not text.startswith("<think>"):
        return  # where the opening was lost, only </think> tells
    if "[REPLY" in text[4:]:
        return  # what stands before it is a draft
    whole = [op for op in operations(text) if not isinstance(op, Finish)]
    part = [op for op in operations(text[:cut]) if not isinstance(op, Finish)]
    assert part == whole[: len(part)]


@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(_PIECES)).map("".join)))
def test_reading_never_raises_and_repairing_is_idempotent(text: str) -> None:
    """Reading never raises; what was repaired needs no repair."""
    once = repair.read(text).text
    assert repair.read(once).text == once
    found = reply.read(text)
    assert found.items or found.notes
    lines = [item.line for item in found.items]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("undo", "text"), [(chat_damage.without_entities, "&amp;lt;"), (chat_damage.without_escapes, r"\\\_")]
)
def test_damage_is_undone_once(undo: Callable[[str], str], text: str) -> None:
    """What a serializer did once is undone once."""
    assert undo(text) in ("&lt;", r"\_")


def test_the_repairer_reads_a_clean_reply_as_the_grammar_does() -> None:
    """Design: a clean reply is never altered."""
    text = _HEADER + create("x\n") * 3 + "[DONE]\nok\n[/DONE]\n[END]\n"
    mended = repair.read(text)
    assert (mended.text, mended.scan, mended.notes) == (text, scanner.scan_lines(text), [])


# --- hostile ---------------------------------------------------------------------------------------


@pytest.mark.one_in(9)
@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "```\n",
        "> ",
        "> \n",
        "&lt;",
        "\\",
        "\\[",
        "**[DONE]**\n",
        "> [DONE]\n",
        "**[RUN_COMMAND]**\n",
        "**[/RUN_COMMAND]**\n",
        '\\[CREATE\\_FILE path="a"\\]\n',
        "CREATE_FILE ",
        "<<<<<<< SEARCH\n",
        "<think>\n",
        "</think>\n",
        "=== HEADER ===\n",
        "*",
        "`",
        "\u200b",
        '[CREATE_FILE path="a"]\n**[/CREATE_FILE]**\n',
        "  [DONE]\n  x\n  [/DONE]\n",
        "> [DONE]\n> x\n> [/DONE]\n",
        "[REPLY \n",
        "- [DELETE_FILE path=“a”]\n",
        '\\[CREATE\\_FILE path="a"\\]\nx\n\\[/CREATE\\_FILE\\]\n',
        '[CREATE_FILE path="a"]\nx\n[/CREATE_FILE]\n',
    ],
)
def test_a_hostile_reply_takes_time_in_proportion(piece: str) -> None:
    """Design, purpose: the reply is not trusted. Twice the text takes about twice the time."""
    grows_with(6_000, lambda size: reply.read(piece * (size // len(piece))))


def test_text_beside_commands_costs_time_in_proportion() -> None:
    block = '[READ_FILE path="a"]\n[/READ_FILE]\n'
    grows_with(8_000, lambda size: reply.read(f"{block}{'#' * size}\n"))


def test_markers_in_entities_tell_of_the_bodies_beside_them() -> None:
    """Nothing else shows that `<` and `&` of a text for people were encoded."""
    edit = "&lt;&lt;&lt;&lt;&lt;&lt;&lt; SEARCH\na\n=======\nb\n&gt;&gt;&gt;&gt;&gt;&gt;&gt; REPLACE\n"
    page = '[CREATE_FILE path="a.md"]\nUse &lt;b&gt; and x &amp;&amp; y.\n[/CREATE_FILE]\n'
    step = reply.read(f'[EDIT_FILE path="a.py"]\n{edit}[/EDIT_FILE]\n{page}').items[1]
    assert isinstance(step, Step)
    created = step.operation
    assert isinstance(created, CreateFile)
    assert isinstance(created.content, str)
    assert created.arrival is not None
    mended = body_rules.mend_file(created.content, created.path, created.arrival)
    assert mended.text == "Use <b> and x && y.\n"


def test_a_line_is_read_as_a_tag_only_after_it_was_changed() -> None:
    text = "".join(f"[DONE]{number}\n" for number in range(100))
    assert calls_of(scanner.is_opening, lambda: reply.read(text)) < 600


def test_half_a_megabyte_of_almost_tags_take_a_moment() -> None:
    """Design, speed: no work that grows beyond the text."""
    with cpu_below(30):
        for piece in ("[", "```\n", "> ", "&lt;"):
            reply.read(piece * (500_000 // len(piece)))


@pytest.mark.parametrize("end", ["\r\n", "\r\r\n"])
def test_what_is_said_of_a_reply_is_of_the_text_that_was_read(end: str) -> None:
    """Design, tag blocks: line ends are folded, also where a program has written each twice.

    Where blocks stand and where else is looked must be said of one and the same text.
    """
    text = create("x\n") + "```diff\n--- a\n```\n" + create("y\n") * 3 + "[DONE]\n"
    assert reply.read(text.replace("\n", end)) == reply.read(text)


@pytest.mark.deep
def test_of_very_many_damaged_tags_the_rest_is_named() -> None:
    """Design: never silence."""
    assert "after this line were not read" in notes("`[END]`\n" * 30_000)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("line", ['[CREATE_FILE path="a"\n', "[RUN_COMMAND\n", "(RUN_COMMAND)\n"])
@pytest.mark.deep
def test_lines_that_name_a_command_and_are_no_tags_are_looked_at_up_to_a_bound(line: str) -> None:
    """Design, limits: a hundred thousand malformed operations cost seconds."""
    bound = 20_000
    assert f"line {bound}: too many tags" in " ".join(reply.read(line * 3 * bound).notes)
