"""What belongs to the chat and not to the answer: turns, drafts, ends of other syntaxes."""

from pathlib import Path

import pytest

from codingagent.protocols.tags import continuation, reply
from tests.helpers import cpu_below
from tests.reply_table import execute

PREFIX = '[REPLY session="5e551011" sequence="2"]\n'
DONE = "[DONE]\nIt is done.\n[/DONE]\n[END]\n"
# Of each kind: a first half, and the second one.
HALVES = {
    "a.yml": ("a:\n  b: 1\nc:\n", "  d: 2\n"),
    "a.go": ("package a\n\nfunc a() {\n\tx()\n", "\ty()\n}\n"),
    "a.md": ("# A\n\ntext\n", "more\n"),
}


def create(path: str, body: str) -> str:
    return f'[CREATE_FILE path="{path}"]\n{body}[/CREATE_FILE]\n'


@pytest.mark.parametrize("path", HALVES)
@pytest.mark.parametrize(
    "between",
    [
        "You said:\n\nnext\n\nChatGPT said:\n",
        "Vous avez dit :\nencore\nChatGPT a dit :\n",
        "Du hast gesagt:\nbitte\nChatGPT hat gesagt:\n",
        "Você disse:\nmais\nO ChatGPT disse:\n",
        "你说：\n好\nChatGPT 说：\n",
        "Continue generating\n",
        "Continuer la génération\n",
        "Continue\n",
        "User\ncontinue\nAssistant\n",
        "## User\n\ngo on\n\n## Assistant\n\n",
        "**You:** continue\n\n**Gemini:** sure\n",
        "👤 Ich\nweiter\n🤖 Bot\n",
        "Anna\n继续\nQwen2.5\n",
        "<|im_end|>\n<|im_start|>user\nagain<|im_end|>\n",
        "[INST] continue [/INST]\n",
        "Human: продолжай\n\nAssistant:\n",
        "Thought for 12 seconds\n",
        "\nContinuing:\n\n",
        "\nHier geht es weiter:\n\n",
    ],
)
def test_two_messages_within_one_block_are_not_written(tmp_path: Path, path: str, between: str) -> None:
    first, second = HALVES[path]
    block = create(path, first + between + second)
    done = execute(f"{PREFIX}{block}{DONE}", {}, tmp_path)
    assert not done.files
    assert "Two messages were copied as one" in done.problems[0].reason


@pytest.mark.parametrize(
    ("path", "between"),
    [("a.yml", "Here is the rest of the file:\n"), ("a.go", "User\nwhere is the rest?\nDeepSeek V3\n")],
)
def test_nor_into_a_program(tmp_path: Path, path: str, between: str) -> None:
    first, second = HALVES[path]
    done = execute(f"{PREFIX}{create(path, first + between + second)}{DONE}", {}, tmp_path)
    assert not done.files
    assert "Two messages were copied as one" in done.problems[0].reason


def test_a_code_block_that_ends_in_a_block_cuts_it(tmp_path: Path) -> None:
    """What arrived is kept, to be gone on with, or for the whole answer once more."""
    first, second = create("b.txt", "b\n"), "function a() {\n"
    block = create("a.js", f"{second}````\n\nGo on:\n\n````\n}}\n")
    text = f"````\n{PREFIX}{first}{block}{DONE}````\n"
    done = execute(text, {}, tmp_path)
    assert list(done.files) == ["b.txt"]
    assert "Cut off inside CREATE_FILE 'a.js': 1 line arrived" in done.problems[0].reason
    cut = reply.read(text).cut
    again = f"````\n{PREFIX}{first}{create('a.js', second)}{DONE}````\n".replace("{\n[", "{\n}\n[")
    whole = continuation.whole_again(text, cut, again)
    assert whole is not None
    assert [item.kind.value for item in reply.read(whole).items] == ["CREATE_FILE", "DONE"]
    assert not reply.read(text.replace("[DONE]", "[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n[DONE]")).cut


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("a.md", "# Prompts\n\nUser:\n\n> Hello.\n\nAssistant:\n\n> Hi.\n\nHere is the rest of the file:\n"),
        ("a.sh", "for i in 1 2; do\n    [ $i = 1 ] && continue\n    continue\ndone\n"),
        ("a.yml", "user:\n  name: a\nassistant:\n  name: b\nsteps:\n- continue\n# Continue\n"),
        ("a.py", '"""A.\n\nHere is the rest of it:\nUser\n"""\n\nwhile True:\n    continue\n'),
        ("a.json", '{"a": [\n"continue",\n"you"\n]}\n'),
        ("a.txt", "To be continued soon.\nContinue with the next step.\n"),
    ],
)
def test_words_of_a_file_are_no_turns(tmp_path: Path, path: str, body: str) -> None:
    assert execute(f"{PREFIX}{create(path, body)}{DONE}", {}, tmp_path).files == {path: body.encode()}


DRAFTS = {
    "**Draft:**\n{}**Final:**\n": "it may be a draft",
    "Show thinking\n{}": "it may be a draft",
    "*Thinking*\n*{}*\n": "was read as prose",
}


@pytest.mark.parametrize("draft", DRAFTS)
def test_what_is_before_the_reply_may_be_a_draft(tmp_path: Path, draft: str) -> None:
    """But where nothing else is: then it is the answer."""
    first, run = create("a.txt", "1\n"), "[RUN_COMMAND]\nrm -r x\n[/RUN_COMMAND]\n"
    second = create("b.txt", "2\n")
    done = execute(f"{draft.format(first + run)}{PREFIX}{second}{DONE}", {}, tmp_path)
    assert done.files == {"b.txt": b"2\n"}
    assert ("ran", "rm -r x") not in done.acts
    assert DRAFTS[draft] in done.problems[0].reason
    assert not any(isinstance(item, reply.Problem) for item in reply.read(f"{first}{PREFIX}[END]\n").items)


@pytest.mark.parametrize("name", ["run.sh", "t.md", "a.go", "a.html"])
@pytest.mark.parametrize(
    "end",
    [
        "</content>\n</invoke>",
        "<|im_end|>",
        "</s>",
        "</file>",
        "  </parameter>\n</function>",
        "</antArtifact>",
        "<end_of_turn>",
        "<｜end▁of▁sentence｜>",
    ],
)
def test_the_end_of_another_syntax_gets_into_no_file(tmp_path: Path, name: str, end: str) -> None:
    block = create(name, f"x\n{end}\n")
    done = execute(f"{PREFIX}{block}{DONE}", {}, tmp_path)
    assert not done.files
    assert "which is no part of it" in done.problems[0].reason


@pytest.mark.parametrize(
    ("before", "block"),
    [
        ("", create("a.yml", "a: 1</content>\n")),
        ("", create("a.go", "x\n</anything>\n")),
        (
            "a: 1\n",
            '[EDIT_FILE path="a.yml"]\n<<<<< SEARCH\na: 1\n=====\na: 2\n</s>\n>>>>> REPLACE\n[/EDIT_FILE]\n',
        ),
    ],
)
def test_nor_behind_a_line_or_into_an_edit(tmp_path: Path, before: str, block: str) -> None:
    files = {"a.yml": before.encode()}
    done = execute(f"{PREFIX}{block}{DONE}", files, tmp_path)
    assert done.files == files
    assert "which is no part of it" in done.problems[0].reason


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("a.xml", "<content>\nx\n</content>\n"),
        ("a.xml", "<file name='a'>\n</file>\n"),
        ("a.xml", "a</s>\n"),
        ("end.html", "<p>x</p>\n</body>\n</html>\n"),
        ("a.tsx", "  );\n</Wrapper>\n"),
        ("a.md", "<details>\nx\n</details>\n"),
    ],
)
def test_the_end_of_what_opens_in_a_body_belongs_to_it(tmp_path: Path, path: str, body: str) -> None:
    assert execute(f"{PREFIX}{create(path, body)}{DONE}", {}, tmp_path).files == {path: body.encode()}


@pytest.mark.parametrize("piece", ["You\n", "\n", "# ", "</a>", "> ", "继续 ", "user\n\n", "<|a", "option "])
def test_words_of_the_chat_take_no_long_time(piece: str) -> None:
    body = piece * (300_000 // len(piece))
    with cpu_below(60):
        reply.read(f'{PREFIX}[CREATE_FILE path="a.go"]\n{body}\n[/CREATE_FILE]\n{body}\n{DONE}')


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("faq.md", "You said:\n\nhello\n"),
        ("a.txt", "Press enter to\ncontinue\nor stop\n"),
        ("a.yaml", "a:\nb:\nc:\nd:\ne: 1\n"),
        ("a.md", "# A\n\n\n# B\n\n\n# C\n"),
    ],
)
def test_what_is_doubted_and_intended_is_taken_as_the_advice_says(
    tmp_path: Path, path: str, body: str
) -> None:
    block = create(path, body)
    asked = execute(f"````\n{PREFIX}{block}{DONE}````\n", {}, tmp_path)
    assert not asked.files
    assert 'with until="TOKEN"' in asked.problems[0].reason
    meant = block.replace('"]', '" until="TOKEN"]', 1).replace("[/CREATE_FILE]", "[/CREATE_FILE TOKEN]")
    assert execute(f"````\n{PREFIX}{meant}{DONE}````\n", {}, tmp_path).files == {path: body.encode()}
