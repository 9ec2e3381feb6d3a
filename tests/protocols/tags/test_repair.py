"""Tags as chats give them: Design, replies as chats really give them."""

import html
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing import body_repair
from codingagent.model import chat_damage
from codingagent.model.operations import (
    CreateFile,
    DeleteFile,
    Finish,
    Operation,
    RunCommand,
    ShowMessage,
)
from codingagent.prompt import guide
from codingagent.protocols.tags import repair, reply, scanner
from codingagent.protocols.tags.reply import Problem, Step
from tests.builders import SESSION_ID
from tests.helpers import calls_of, cpu_below, grows_with

_HEADER = f'[REPLY session="{SESSION_ID}" sequence="2"]\n'


def operations(text: str) -> list[Operation]:
    return [item.operation for item in reply.read(text).items if isinstance(item, Step)]


def written(text: str, old: str | None = None) -> str:
    """Return what the only file of an answer would be, with what stands there now as proof."""
    (operation,) = operations(text)
    assert isinstance(operation, CreateFile)
    assert isinstance(operation.content, str)
    assert operation.arrival is not None
    return body_repair.mend_file(operation.content, operation.path, operation.arrival, old).text


def problems(text: str) -> list[Problem]:
    return [item for item in reply.read(text).items if isinstance(item, Problem)]


def notes(text: str) -> str:
    found = reply.read(text)
    return "\n".join([*found.notes, *(note for item in found.items for note in item.notes)])


def create(body: str, path: str = "a.py") -> str:
    return f'[CREATE_FILE path="{path}"]\n{body}[/CREATE_FILE]\n'


# --- tags ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (r"\[RUN\_COMMAND\]", "Markdown escapes"),
        ("**[RUN_COMMAND]**", "bold or code"),
        ("__[RUN_COMMAND]__", "bold or code"),
        ("***`[RUN_COMMAND]`***", "bold or code"),
        ("**[RUN_COMMAND]", "bold or code"),
        ("[**RUN_COMMAND**]", "bold or code"),
        ("- [RUN_COMMAND]", "a list item"),
        ("12. [RUN_COMMAND]", "a list item"),
        ("• **[RUN_COMMAND]**", "a list item"),
        ("### [RUN_COMMAND]", "a heading"),
        ("&#91;RUN_COMMAND&#93;", "HTML entities"),
        ("&#x5b;RUN&#95;COMMAND&#x5D;", "HTML entities"),
        ("\u200b[RUN_COMMAND]\u200b", "zero-width characters"),
        ("[RUN_\u200bCOMMAND]", "zero-width characters"),
        ("\u00a0\u00a0[RUN_COMMAND]", "no-break spaces"),
        ("［RUN_COMMAND］", "full-width brackets"),
        ("【RUN_COMMAND】", "full-width brackets"),
    ],
)
def test_a_damaged_tag_is_read_and_named(line: str, what: str) -> None:
    """Design: in tags always; each repair is named in the result."""
    text = f"{line}\nls\n{line.replace('RUN', '/RUN', 1)}\n"
    assert operations(text) == [RunCommand("ls")]
    # Blanks before a tag are the grammar's own business.
    assert what in notes(text) or line[0] == "\u00a0"


@pytest.mark.parametrize(
    "attribute",
    [
        "path=“a.py”",
        "path=„a.py“",
        "path='a.py'",
        "path=‘a.py’",
        "path=&quot;a.py&quot;",
        r"path=\"a.py\"",
    ],
)
def test_the_quotes_of_an_attribute_are_read_whatever_they_became(attribute: str) -> None:
    """Design: typographic quotes, entities and escapes in tags."""
    assert operations(f"[CREATE_FILE {attribute}]\nx\n[/CREATE_FILE]\n") == [
        CreateFile("a.py", "x\n")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "I will send `[DONE]` when it works.\n",
        "- [DONE] the parser\n- [DONE] the tests\n",
        "Use **[RUN_COMMAND]** to run:\n",
        "- [RUN_COMMAND]\n- [CREATE_FILE]\n- [DONE]\nare what I know.\n",
        "\\[TODO\\]\n",
        "[[DONE]]\n",
    ],
)
def test_prose_that_names_commands_is_prose(text: str) -> None:
    """Design: never wrong; a sentence is no command."""
    assert operations(text) == []


@pytest.mark.parametrize(
    "line",
    [
        '- [DELETE_FILE path="a"]',
        '`[DELETE_FILE path="a"]`',
        '> [DELETE_FILE path="a"]',
        "- `[RUN_COMMAND]rm -r build[/RUN_COMMAND]`",
    ],
)
def test_what_a_plan_may_only_mention_is_asked_for_again(line: str) -> None:
    """Design: what is doubtful is a problem; with a header in the same form it is none."""
    (problem,) = problems(f"The plan:\n{line}\n")
    assert "may only be mentioned" in problem.reason
    assert operations(f"The plan:\n{line}\n") == []
    mark = line[: line.index("[")]
    end = "`" if "`" in mark else ""
    assert len(operations(f"{mark}{_HEADER.strip()}{end}\n{line}\n")) == 1


# --- blocks that were moved ------------------------------------------------------------------------


def test_a_quoted_reply_is_read_without_the_marks() -> None:
    """Design: a tag can't be quoted by itself, so each line of its block was."""
    quoted = "".join(
        f"> {line}\n" for line in (_HEADER + create("a = 1\n\nb > 2\n")).split("\n")[:-1]
    )
    assert operations(quoted) == [CreateFile("a.py", "a = 1\n\nb > 2\n")]


def test_a_quoted_block_with_lines_that_are_not_is_in_doubt() -> None:
    """Design: only where the result is certain."""
    text = f'> {_HEADER}> [CREATE_FILE path="a"]\n> x\ny\n> [/CREATE_FILE]\n'
    assert operations(text) == []
    assert "lines of its body are not" in problems(text)[0].reason


def test_a_quoted_block_in_a_reply_that_is_not_quoted_is_in_doubt() -> None:
    """It may be someone else's words that the model repeats."""
    text = f'{_HEADER}You said:\n> [RUN_COMMAND]\n> ls\n> [/RUN_COMMAND]\n[DELETE_FILE path="b"]\n[END]\n'
    assert operations(text) == [DeleteFile("b")]
    assert "is quoted" in problems(text)[0].reason


@pytest.mark.parametrize("lead", ["    ", "\t", "  "])
def test_a_block_that_was_indented_as_a_whole_is_shifted_back(lead: str) -> None:
    """No program begins with an indented line, so all of it was moved, its tags too."""
    text = _indented(create("def f():\n    return 1\n"), lead)
    assert written(text) == "def f():\n    return 1\n"


def _indented(text: str, lead: str) -> str:
    return "".join(f"{lead}{line}\n" for line in text.split("\n")[:-1])


def test_indentation_that_the_body_shares_with_its_tags_is_the_files_unless_it_is_proven() -> None:
    """Specification 003: the body is verbatim; the file on disk, or all of the answer, shows otherwise."""
    text = _indented(create("one\n    two\n", "a.txt"), "    ")
    assert written(text) == "    one\n        two\n"
    assert written(text, "one\n    three\n") == "one\n    two\n"
    assert written(text, "    one\n    three\n") == "    one\n        two\n"
    assert written(f"    {_HEADER}{text}") == "one\n    two\n"


def test_indented_tags_alone_shift_nothing() -> None:
    """Specification 003, parsing rule 3: the body is verbatim, whatever the tags' indentation."""
    text = '  [CREATE_FILE path="a.py"]\ndef f():\n    return 1\n  [/CREATE_FILE]\n'
    assert operations(text) == [CreateFile("a.py", "def f():\n    return 1\n")]
    assert notes(text) == ""


def test_a_block_all_of_whose_lines_are_indented_further_is_what_its_kind_can_be() -> None:
    """Nobody indents a whole program; a text may be meant so, and is taken as written."""
    text = '  [CREATE_FILE path="a.{}"]\n      x = 1\n  [/CREATE_FILE]\n'
    assert written(text.format("py")) == "x = 1\n"
    assert written(text.format("md")) == "      x = 1\n"


def test_blanks_at_the_end_of_every_line_are_taken_off() -> None:
    """The tags have them too, so they came with all lines; on some lines alone they are the file's."""
    text = create("# a\nb\n", "a.md").replace("\n", "  \n")
    assert operations(text) == [CreateFile("a.md", "# a\nb\n")]
    kept = '[CREATE_FILE path="a.md"]  \n# a  \nb\n[/CREATE_FILE]  \n'
    assert operations(kept) == [CreateFile("a.md", "# a  \nb\n")]


# --- closing tags ----------------------------------------------------------------------------------


def test_a_damaged_closing_line_in_a_whole_block_is_text() -> None:
    """Design: a clean reply is never altered; a document may show these very tags."""
    body = 'Write:\n\n> [CREATE_FILE path="x"]\n> [/CREATE_FILE]\n\n**[/CREATE_FILE]**\n'
    assert operations(create(body, "a.md")) == [CreateFile("a.md", body)]


def test_a_damaged_closing_line_with_a_block_behind_it_is_in_doubt() -> None:
    """The whole one may be that block's: what is written then would be two files in one."""
    text = '[CREATE_FILE path="a"]\nx\n**[/CREATE_FILE]**\n' + create("y\n")
    assert operations(text) == []
    assert "is in it in another form, at line 3" in problems(text)[0].reason


def test_a_document_that_shows_a_closing_tag_and_is_cut_off_is_not_written() -> None:
    """Design, unclosed block: nothing of it is written; a form that no tag before it has closes nothing."""
    text = '[CREATE_FILE path="a.md"]\nClose it:\n**[/CREATE_FILE]**\nand th'
    assert operations(text) == []
    assert "has no closing tag" in problems(text)[0].reason


# --- the reply as a whole --------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\r", "\x85", "\u2028", "\u2029"])
def test_another_line_end_is_one_where_there_is_no_other(end: str) -> None:
    """Design: CR, NEL and Unicode's separators; beside "\\n" they are characters (section 5)."""
    text = create("a\nb\n")
    assert operations(text.replace("\n", end)) == [CreateFile("a.py", "a\nb\n")]
    mixed = create(f"a{end}b\n")
    assert operations(mixed) == [CreateFile("a.py", f"a{end}b\n")]


def test_an_answer_that_was_encoded_twice_is_decoded_twice_if_nothing_was_left_out() -> None:
    """All of it came through the same serializer: a bare sign anywhere shows that it did not."""
    text = create('if a < b & c[0] == "x":\n    d\n')
    twice = html.escape(html.escape(text))
    assert written(twice) == 'if a < b & c[0] == "x":\n    d\n'
    assert "encoded twice" in notes(twice)
    for spared in ('Here "it" is:\n', "a < b\n", "AT&T says:\n", "&lt;x&gt;\n"):
        assert operations(spared + twice) == []
        assert "encoded twice" not in notes(spared + twice)


def test_a_document_about_text_that_was_encoded_twice_is_taken_as_written() -> None:
    """Its tags show that nothing was encoded; what is in a block is no tag of the answer."""
    body = html.escape(html.escape('[READ_FILE path="a < b"]\n'))
    assert written(create(body, "a.md")) == body
    assert operations(f"[MESSAGE]\n{body}[/MESSAGE]\n") == [ShowMessage(body.rstrip("\n"))]


@pytest.mark.parametrize(
    "thought",
    [
        "<think>\n{}</think>\n",
        "<thinking>\n{}</thinking>\n",
        "\n```\n<think>{}\n</think>",
        "Let me see.\n{}</think>\n",
        "<antThinking>{}</antThinking>\n",
        "[THINK]\n{}[/THINK]\n",
        "◁think▷{}◁/think▷",
        '<details type="reasoning" done="true">\n<summary>Thought for 9 s</summary>\n{}</details>\n',
        "Sure.\n\n<reasoning>\n{}</reasoning>\n",
    ],
)
def test_what_was_thought_is_not_executed(thought: str) -> None:
    """Design: `<think>…</think>` before the answer; its opening may be lost."""
    text = thought.format('\n[DELETE_FILE path="b"]\n') + create("x\n")
    assert operations(text) == [CreateFile("a.py", "x\n")]
    assert "thought before its answer was passed over, with 1 blocks" in notes(text)


@pytest.mark.parametrize(
    "said",
    [
        "<think>\nNow the end.\n</think>\n",
        "Now the `</think>` tag is known.\n",
        "I take out <think> and </think>.\n",
        f"{_HEADER}</think>\n",
        "<analysis>\n",
        "<details>\n<summary>All</summary>\n</details>\n",
    ],
)
def test_what_is_before_thoughts_between_blocks_is_executed(said: str) -> None:
    """A model may think again after a block; a mark within a sentence is only spoken of."""
    first = _HEADER if said.startswith(_HEADER) else ""
    text = first + create("x\n") + said.removeprefix(_HEADER) + create("y\n", "b.py")
    assert operations(text) == [CreateFile("a.py", "x\n"), CreateFile("b.py", "y\n")]


def test_thoughts_that_do_not_end_are_all_there_is() -> None:
    """A reply cut off while it was thought has no answer."""
    assert operations('<think>\n[DELETE_FILE path="b"]\nhm') == []


def test_a_body_that_tells_of_thoughts_is_a_body() -> None:
    """A clean reply is never altered."""
    body = "<think>\nx\n</think>\n"
    assert operations(create(body)) == [CreateFile("a.py", body)]
    assert operations('[DELETE_FILE path="b"]\n' + create(body)) == [
        DeleteFile("b"),
        CreateFile("a.py", body),
    ]


def test_the_same_answer_twice_is_executed_once() -> None:
    """Design: the same answer twice in one file; the second may be cut off where the header shows it."""
    answer = _HEADER + create("x\n") + "[RUN_COMMAND]\nmake\n[/RUN_COMMAND]\n"
    once = [CreateFile("a.py", "x\n"), RunCommand("make")]
    assert operations(answer + "Copy code\n" + answer) == once
    assert operations(answer + answer[:-10]) == once
    assert operations(answer.removeprefix(_HEADER) * 2) == once
    assert "came twice" in notes(answer * 2)


@pytest.mark.parametrize(
    "text",
    [
        "[RUN_COMMAND]\nmake\n[/RUN_COMMAND]\n" * 2,
        '[DELETE_FILE path="b"]\n' * 2,
        create("x\n") * 4,
    ],
)
def test_what_may_be_meant_twice_is_done_twice(text: str) -> None:
    """A command may be meant to run again; nothing certain tells otherwise."""
    assert len(operations(text)) == text.count("[/RUN") + text.count("[DEL") + text.count("[/CR")


def _request(session: str = SESSION_ID) -> str:
    return (
        f"=== HEADER ===\nSession: {session}\nSequence: 2\nTask: t\n\n=== PROTOCOL ===\n"
        f"{guide.protocol_text()}\n\n=== CONTEXT ===\n\n=== PROMPT ===\nt\n\n{guide.reminder(session, 2)}"
    )


@pytest.mark.parametrize(
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
    assert operations(shielded) == [CreateFile(path, body)]


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
def test_a_cut_reply_does_the_beginning_of_what_the_whole_one_does(
    pieces: list[str], cut: int
) -> None:
    """Any prefix of a reply executes a prefix of its operations (the summary of DONE aside)."""
    text = "".join(pieces)
    if "<think>" in text and not text.startswith("<think>"):
        return  # where the opening was lost, only </think> tells
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
    ("undo", "text"),
    [
        (chat_damage.without_entities, "&amp;lt;"),
        (chat_damage.without_escapes, r"\\\_"),
    ],
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
    edit = (
        "&lt;&lt;&lt;&lt;&lt;&lt;&lt; SEARCH\na\n=======\nb\n&gt;&gt;&gt;&gt;&gt;&gt;&gt; REPLACE\n"
    )
    page = '[CREATE_FILE path="a.md"]\nUse &lt;b&gt; and x &amp;&amp; y.\n[/CREATE_FILE]\n'
    step = reply.read(f'[EDIT_FILE path="a.py"]\n{edit}[/EDIT_FILE]\n{page}').items[1]
    assert isinstance(step, Step)
    created = step.operation
    assert isinstance(created, CreateFile)
    assert isinstance(created.content, str)
    assert created.arrival is not None
    mended = body_repair.mend_file(created.content, created.path, created.arrival)
    assert mended.text == "Use <b> and x && y.\n"


def test_a_line_is_read_as_a_tag_only_after_it_was_changed() -> None:
    text = "".join(f"[DONE]{number}\n" for number in range(100))
    assert calls_of(scanner.is_opening, lambda: reply.read(text)) < 600


def test_megabytes_of_almost_tags_take_a_moment() -> None:
    """Design, speed: no work that grows beyond the text."""
    with cpu_below(60):
        for piece in ("[", "```\n", "> ", "&lt;"):
            reply.read(piece * (1_000_000 // len(piece)))


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
