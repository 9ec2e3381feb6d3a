"""What may be undone in a body without the file: Design, replies as chats really give them."""

import pytest

from codingagent.core import bodies, edits
from codingagent.core.channel import Damage
from codingagent.errors import OperationError

PROGRAM = "x = 1\n"


@pytest.mark.parametrize(
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
    mended = bodies.mend_file(body, "a.py", frozenset())
    assert mended == bodies.Body(PROGRAM, ("the code fence round the body was taken off",))
    assert bodies.mend_command(body, frozenset()).text == PROGRAM


@pytest.mark.parametrize("path", ["README.md", "a.txt", "NOTES", "x/b.rst", "p.MDX"])
def test_in_a_file_that_may_hold_a_fence_it_is_asked_for_again(path: str) -> None:
    """Markdown may be meant so; what is doubtful says what to send, also if it is meant."""
    with pytest.raises(OperationError, match=r"without the fence; if it is meant so, .*until="):
        bodies.mend_file("```\nx = 1\n```\n", path, frozenset())


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("x\n```\ny\n", "a.py"),
        ("python\nx\n", "a.py"),
        ("text\n```\nx\ny\n", "a.py"),
        ("# a\n\n```\nx\n```\n\nb\n", "README.md"),
        ("&lt;b&gt; <i>\n", "a.html"),
        ("a &amp; b\n", "a.md"),
        ("1 | a\n3 | b\n", "a.txt"),
        ("+1\n", "a.txt"),
        ("+a\n b\n", "a.txt"),
        ("+a\n+b\n", "fix.patch"),
        ("def f(): pass\nx = 1\n", "a.py"),
        ("all:\n\tmake\n", "Makefile"),
        ("A = 1\\\n  2\n", "Makefile"),
        ("say “hi”\n", "a.py"),
        ("x\u00a0y\n", "a.py"),
    ],
)
def test_a_body_that_may_be_meant_stays_as_it_is(body: str, path: str) -> None:
    """A clean reply is never changed by a byte."""
    assert bodies.mend_file(body, path, frozenset()) == bodies.Body(body)


@pytest.mark.parametrize(
    ("body", "path", "what"),
    [
        ("1 | a\n2 | b\n", "a.py", "each line begins with its number"),
        ("+a\n+\n+b\n", "a.py", "the + of a diff"),
        ("def f():\n\u00a0\u00a0x\n", "a.py", "indented by no-break spaces"),
        ("if a &lt; b &amp;&amp; c {\n", "a.go", "HTML entities only"),
        ("a &amp;&amp; b\n", "a.sh", "HTML entities only"),
        ("&lt;p&gt;\n", "a.html", "HTML entities only"),
        ("all: x\n    make\n", "Makefile", "not with a tab"),
        ("foo_\u200bbar\n", "a.py", "zero-width spaces"),
    ],
)
def test_a_file_that_looks_damaged_is_asked_for_again(body: str, path: str, what: str) -> None:
    """Never wrong bytes: what no such file has is not written."""
    with pytest.raises(OperationError) as caught:
        bodies.mend_file(body, path, frozenset())
    assert what in caught.value.reason
    assert 'until="TOKEN"' in caught.value.reason


@pytest.mark.parametrize(
    ("way", "body", "text"),
    [
        (Damage.ESCAPES, "a\\_b = c\\[0\\] \\* '\\\\n'\n", "a_b = c[0] * '\\n'\n"),
        (Damage.ESCAPES, "```\na\\_b\n```\n", "a\\_b\n"),
        (Damage.ESCAPES, "plain\n", "plain\n"),
        (Damage.ENTITIES, "a &lt; &quot;b&quot; &amp;amp;\n", 'a < "b" &amp;\n'),
        (Damage.ENTITIES, '"a &lt; b"\n', '"a &lt; b"\n'),
        (Damage.BLANKS, "a\u00a0=\u00a01\n", "a = 1\n"),
        (Damage.QUOTES, 'x = "“"\n', 'x = "“"\n'),
        (Damage.BRACKETS, "x[0] = '【'\n", "x[0] = '【'\n"),
    ],
)
def test_what_the_tags_prove_is_undone_where_the_body_agrees(
    way: Damage, body: str, text: str
) -> None:
    """Each character that the way changes was changed; one that was not shows that it was spared."""
    assert bodies.mend_file(body, "a.py", frozenset({way})).text == text


@pytest.mark.parametrize(
    ("way", "body"),
    [
        (Damage.ESCAPES, "\\section{a\\_b}\n"),
        (Damage.ESCAPES, "a_b c\\_d\n"),
        (Damage.ESCAPES, "r'\\.'\n"),
        (Damage.ENTITIES, "a < &lt;\n"),
        (Damage.BLANKS, "a b\u00a0c\n"),
        (Damage.QUOTES, "say “hi”\n"),
        (Damage.ZERO_WIDTH, "a\u200db\n"),
        (Damage.BRACKETS, "x【0】\n"),
    ],
)
def test_what_the_tags_do_not_settle_is_asked_for_again(way: Damage, body: str) -> None:
    """Never guess: LaTeX and regular expressions have backslashes of their own."""
    for mend in (bodies.mend_command, lambda b, w: bodies.mend_file(b, "a.py", w)):
        with pytest.raises(OperationError, match="inside of a code block"):
            mend(body, frozenset({way}))


@pytest.mark.parametrize(
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
    (found,) = edits.read_replacements(bodies.mend_replacements(body, edits.read_replacements).text)
    assert (found.search, found.replace) == ("a\n", "b\n")


def test_a_body_with_readable_markers_is_not_looked_into() -> None:
    """Its text may tell of markers in another form."""
    body = "<<<<<<< SEARCH\n**=======**\n=======\n  >>>>>>> REPLACE\n>>>>>>> REPLACE\n"
    assert bodies.mend_replacements(body, edits.read_replacements) == bodies.Body(body)


def test_markers_in_entities_show_what_became_of_the_body() -> None:
    """What encodes one < encodes all of them, once; quotes may be spared."""
    plain = '<<<<<<< SEARCH\nif a < "b":\n=======\nif a > "&lt;":\n>>>>>>> REPLACE\n'
    body = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    mended = bodies.mend_replacements(body, edits.read_replacements)
    assert mended.text == plain
    assert mended.notes
    with pytest.raises(OperationError, match="entities"):
        bodies.mend_replacements(body.replace("a &lt;", "a <"), edits.read_replacements)


def test_letters_are_meant_only_where_the_tags_came_unharmed() -> None:
    """Nobody can say what was written in a body that suffered with its tags."""
    bodies.check_letters("a\\_b &lt; “c”\n", "a.py", frozenset(), "CREATE_FILE")
    bodies.check_letters("a_b\n", "a.py", frozenset({Damage.ESCAPES}), "CREATE_FILE")
    for damage in (Damage.ESCAPES, Damage.ENTITIES, Damage.QUOTES):
        with pytest.raises(OperationError, match="send this block again"):
            bodies.check_letters("a\\_b &lt; “c”\n", "a.py", frozenset({damage}), "CREATE_FILE")


def test_a_label_alone_is_an_empty_program() -> None:
    """No program consists of it."""
    assert bodies.mend_file("python\nCopy code\n", "a/__init__.py", frozenset()).text == ""


def test_a_body_with_a_bare_mark_and_no_escaped_one_was_spared() -> None:
    """What escapes a _ in the tags escapes each of them."""
    body = 'a_b = "\\." + "\\n"\n'
    assert bodies.mend_file(body, "a.py", frozenset({Damage.ESCAPES})).text == body
