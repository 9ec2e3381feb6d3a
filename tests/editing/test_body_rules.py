"""What may be undone in a body without the file: Design, replies as chats really give them."""

import pytest

from codingagent.editing import apply, body_rules
from codingagent.errors import OperationError
from codingagent.model.chat_damage import AS_IT_IS, UNHARMED, BodyEvidence, Damage
from codingagent.model.operations import Replacement
from tests.helpers import cpu_below
from tests.rows import each_row

PROGRAM = "x = 1\n"


@each_row(
    "body",
    [
        "```\nx = 1\n```\n",
        "```python\nx = 1\n```\n",
        "\n~~~ py\nx = 1\n~~~\n\n",
        "python\nCopy code\nx = 1\n",
        "python\nCopy\n\n```\nx = 1\n```\n",
        "python\n```\nx = 1\n```\n",
        "```python\nx = 1\n",
        "x = 1\n```\n",
    ],
)
def test_a_fence_round_a_program_is_taken_off(body: str) -> None:
    """The damage can't be meant: no program begins or ends with a fence."""
    mended = body_rules.mend_file(body, "a.py", AS_IT_IS)
    assert mended == body_rules.Body(PROGRAM, ("the code fence around the body was removed",))
    assert body_rules.mend_command(body, AS_IT_IS).text == PROGRAM


@each_row("line", ["f（a, b);", "f(a，b);", "x ＝ 1;", "a();；"])
@each_row("path", ["a.js", "a.go", "a.java"])
def test_signs_of_an_input_method_in_code_are_asked_for_again(path: str, line: str) -> None:
    """In a new file, over an old one, in an edit; not in strings, comments and beside such letters."""
    for old in (None, "f(a, b);\n"):
        with pytest.raises(OperationError, match="full-width punctuation"):
            body_rules.mend_file(f"{line}\n", path, AS_IT_IS, old)
    with pytest.raises(OperationError, match="full-width punctuation"):
        apply.apply((Replacement("f(a, b);\n", f"{line}\n"),), "f(a, b);\n", AS_IT_IS, path=path)
    for said in (f'g("{line}");', f"// {line}", f"<p>你好（{line}）</p>", "x();"):
        assert body_rules.mend_file(f"{said}\n", path, AS_IT_IS).text == f"{said}\n"
    there = f"{line}\n"
    assert body_rules.mend_file(f"{there}y();\n", path, AS_IT_IS, there).text == f"{there}y();\n"


def test_a_long_line_of_such_signs_takes_no_time() -> None:
    """Design, purpose: the reply is not trusted."""
    body = "（" * 300_000 + "你\n"
    with cpu_below(50):
        assert body_rules.mend_file(body, "a.js", AS_IT_IS).text == body


def test_empty_lines_before_all_else_take_no_time() -> None:
    body = "\n" * 150_000 + "x\n"
    with cpu_below(20):
        assert body_rules.mend_file(body, "a.txt", AS_IT_IS).text == body


@each_row(
    ("way", "body"),
    [
        (Damage.ESCAPES, "\\section{a\\_b}\n"),
        (Damage.ESCAPES, "a_b c\\_d\n"),
        (Damage.ESCAPES, "r'\\.'\n"),
        (Damage.ENTITIES, "a < &lt;\n"),
        (Damage.BLANKS, "a b\u00a0c\n"),
        (Damage.QUOTES, "say “hi”\n"),
        (Damage.ZERO_WIDTH, "a\u00adb\u200b\n"),
        (Damage.BRACKETS, "say 【hi there】\n"),
    ],
)
def test_what_the_tags_do_not_settle_is_asked_for_again(way: Damage, body: str) -> None:
    """Never guess: LaTeX and regular expressions have backslashes of their own."""
    for mend in (body_rules.mend_command, lambda b, w: body_rules.mend_file(b, "a.py", w)):
        with pytest.raises(OperationError, match="in a code block"):
            mend(body, BodyEvidence(frozenset({way})))


@each_row(
    "markers",
    [
        ("&lt;&lt;&lt;&lt;&lt;&lt;&lt; SEARCH", "=======", "&gt;&gt;&gt;&gt;&gt;&gt;&gt; REPLACE"),
        (r"\<<<<<<< SEARCH", r"\=======", r"\>>>>>>> REPLACE"),
        ("**<<<<<<< SEARCH**", "**=======**", "**>>>>>>> REPLACE**"),
        ("  <<<<<<< SEARCH", "  =======", "  >>>>>>> REPLACE"),
        ("<<<<<<<\u00a0SEARCH", "=======", ">>>>>>>\u00a0REPLACE"),
    ],
)
def test_damaged_markers_are_read(markers: tuple[str, str, str]) -> None:
    """Only where the body can't be read otherwise: text that looks like a marker is safe."""
    body = f"{markers[0]}\na\n{markers[1]}\nb\n{markers[2]}\n"
    ((found,), _) = apply.mend_replacements(body)
    assert (found.search, found.replace) == ("a\n", "b\n")


def test_a_body_with_readable_markers_is_not_looked_into() -> None:
    """Its text may tell of markers in another form."""
    body = "<<<<<<< SEARCH\n**=======**\n=======\n  >>>>>>> REPLACE\n>>>>>>> REPLACE\n"
    (_, notes) = apply.mend_replacements(body)
    assert notes == ()


def test_markers_in_entities_show_what_became_of_the_body() -> None:
    """What encodes one < encodes all of them, once; quotes may be spared."""
    plain = '<<<<<<< SEARCH\nif a < "b":\n=======\nif a > "&lt;":\n>>>>>>> REPLACE\n'
    body = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    mended, notes = apply.mend_replacements(body)
    assert mended == apply.read_replacements(plain)
    assert notes
    nameless = body.replace("&amp;lt;", "https://a.org/?q=1&lt;=3")
    for lost in (body.replace("a &lt;", "a <"), nameless):
        with pytest.raises(OperationError, match="entities"):
            apply.mend_replacements(lost)


def test_letters_are_meant_only_where_the_tags_came_unharmed() -> None:
    """Nobody can say what was written in a body that suffered with its tags."""
    body_rules.check_letters("a\\_b &lt; “c”\n", "a.py", UNHARMED, "CREATE_FILE")
    body_rules.check_letters("a_b\n", "a.py", frozenset({Damage.ESCAPES}), "CREATE_FILE")
    for damage in (Damage.ESCAPES, Damage.ENTITIES, Damage.QUOTES):
        with pytest.raises(OperationError, match="send this block again"):
            body_rules.check_letters("a\\_b &lt; “c”\n", "a.py", frozenset({damage}), "CREATE_FILE")


def test_fences_within_fences_are_taken_off_twice_at_most() -> None:
    """A hostile body has a thousand of them."""
    body = "".join(f"```a{number}\n" for number in range(2_000)) + "x\n" + "```\n" * 2_000
    mended = body_rules.mend_file(body, "a.ts", AS_IT_IS)
    assert mended.text.startswith(("```a1\n", "```a2\n"))
