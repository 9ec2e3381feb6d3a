"""What may be undone in a body without the file: Design, replies as chats really give them."""

import contextlib

import pytest

from codingagent.editing import apply, body_repair
from codingagent.errors import OperationError
from codingagent.model.chat_damage import AS_IT_IS, UNHARMED, Arrival, Damage
from codingagent.model.operations import Replacement
from tests.helpers import cpu_below

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
    mended = body_repair.mend_file(body, "a.py", AS_IT_IS)
    assert mended == body_repair.Body(PROGRAM, ("the code fence round the body was taken off",))
    assert body_repair.mend_command(body, AS_IT_IS).text == PROGRAM


@pytest.mark.parametrize(
    "path", ["README.md", "a.txt", "NOTES", "x/b.rst", "p.MDX", "a.mdc", "a.adoc", "a.j2", "a.svx"]
)
def test_in_a_file_that_may_hold_a_fence_it_is_taken_as_written(path: str) -> None:
    """In doubt the body is what the specification says, and the result says so."""
    body = "```\nx = 1\n```\n"
    found = body_repair.mend_file(body, path, AS_IT_IS)
    assert found.text == body
    assert "was written so" in found.notes[0]


@pytest.mark.parametrize("old", ["# T\n\nold\n", "old\n\nend\n"])
def test_the_file_on_disk_proves_that_a_fence_is_a_wrapper(old: str) -> None:
    """It begins, or ends, with the line that the fence stands round."""
    body = "```markdown\n# T\n\n```py\nx\n```\n\nend\n```\n"
    assert body_repair.mend_file(body, "a.md", AS_IT_IS, old).text == body[12:-4]
    assert body_repair.mend_file(body, "a.md", AS_IT_IS, f"```\n{old}").text == body


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("x\n```\ny\n", "a.py"),
        ("```console\n$ x\n```\n\n# T\n", "README.md"),
        ("# T\n\n```\nx\n```\n", "LICENSE"),
        ("```\nx\n```\n\n```\ny\n```\n", "a.md"),
        ("&lt;p&gt;\n", "a.html"),
        ("&lt;p&gt; &amp;\n", "a.md"),
        ("It’s two, „zwei“.\n", "a.md"),
        ("b\\_c\n", "a.tex"),
        ('x = "&lt;b&gt;"\n', "a.py"),
        ("/* &lt;b&gt; it’s */\n", "a.ts"),
        ("    # all of it\n    is indented\n", "a.txt"),
        ("python\nx\n", "a.py"),
        ("text\n```\nx\ny\n", "a.py"),
        ("# a\n\n```\nx\n```\n\nb\n", "README.md"),
        ("&lt;b&gt; <i>\n", "a.html"),
        ("a &amp; b\n", "a.md"),
        ("1 | a\n3 | b\n", "a.txt"),
        ("+1\n", "a.txt"),
        ("/*\n * a\n */\nf({\na: 1 });\n", "a.js"),
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
    assert body_repair.mend_file(body, path, AS_IT_IS) == body_repair.Body(body)


@pytest.mark.parametrize(
    ("body", "path", "text"),
    [
        ("1 | a\n2 | b\n", "a.py", "a\nb\n"),
        ("1: a\n2: b\n", "a.ts", "a\nb\n"),
        ("     1\ta\n     2\t\tb\n", "a.go", "a\n\tb\n"),
        ("def f():\n\u00a0\u00a0x\n", "a.py", "def f():\n  x\n"),
        ("a:\n&nbsp; b: 1\n", "a.yml", "a:\n  b: 1\n"),
        ("if a &lt; b &amp;&amp; c {\n", "a.go", "if a < b && c {\n"),
        ("a &amp;&amp; b\n", "a.sh", "a && b\n"),
        (
            "&lt;!doctype html&gt;\n&lt;p&gt;a &amp;amp; b&lt;/p&gt;\n",
            "a.html",
            "<!doctype html>\n<p>a &amp; b</p>\n",
        ),
        ("&lt;?php\necho $a-&gt;b;\n", "a.php", "<?php\necho $a->b;\n"),
        ("foo_\u200bbar\n", "a.py", "foo_bar\n"),
        ("print(“hi”)\n", "a.py", 'print("hi")\n'),
        ("f(“a”, b);\n", "a.ts", 'f("a", b);\n'),
        ("x［0］ = “a”\n", "a.py", 'x[0] = "a"\n'),
        ("    x = 1\n    y = 2\n", "a.py", "x = 1\ny = 2\n"),
        ("a: 1  \nb:  \n  c: 2  \n", "a.yml", "a: 1\nb:\n  c: 2\n"),
        ("# A\n\n\n\nb\n\nc\n\n", "a.md", "# A\n\nb\nc\n"),
        *(
            (f"{line}\n\n".replace("\n", "\n\n") * 4, path, f"{line}\n\n" * 4)
            for line, path in (("if (a) {\n  f();\n}", "a.js"), ("<p>\n  a\n</p>", "a.html"))
        ),
        ("```\n# A\n\n```py\nx\n```\n", "a.md", "# A\n\n```py\nx\n```\n"),
        ("   1 | # A\n   2 | \n   3 | b\n", "a.md", "# A\n\nb\n"),
        ("1: a:\n2:   b: 1\n", "a.yml", "a:\n  b: 1\n"),
        ("```py\n  x\n```\na\n", "a.md", "```py\n  x\n```\na\n"),
    ],
)
def test_what_no_file_of_its_kind_holds_is_undone(body: str, path: str, text: str) -> None:
    """The kind of the file proves it, and what it was is certain."""
    found = body_repair.mend_file(body, path, AS_IT_IS)
    assert found.text == text
    assert found.notes


@pytest.mark.parametrize(
    ("body", "path", "what"),
    [
        ("+a\n+\n+b\n", "a.go", "the + of a diff"),
        ("if a &lt; b && c {\n", "a.go", "HTML entities"),
        ("a: &quot;b&quot;\n", "a.yml", "HTML entities"),
        ("all: x\n    make\n", "Makefile", "not with a tab"),
        ("all: x\n\u00a0make\n", "Makefile", "no-break spaces"),
        ("all: $(OBJECT\\_FILES)\n\tmake\n", "Makefile", "Markdown escapes"),
        ("a: foo_\u200bbar\n", "a.yml", "zero-width characters"),
        ('x = "foo_\u200bbar"\n', "a.py", "zero-width characters"),
        ("a:\n\tb: 1\n", "a.yml", "tabs, which YAML"),
        ("if (a) {\nb();\n}\n", "a.js", "no line is indented"),
        ("```py\nx = 1\n```\nThat is all.\n", "a.py", "begins with a code fence"),
        ("a {\n  b();\n}\n\n\nc {\n  d();\n\n\n  e();\n}\n", "a.js", "blank lines are in twos"),
        ("a {\n b {\n c();\n }\n}\n", "a.ts", "more than a blank"),
        ("a:\nb:\nc: 1\n", "a.yml", "no line is indented"),
        ("a:\n- b: 1\nc: 2\n", "a.yml", "no line is indented"),
        (
            "a {\n  const one = of(the(first), of(all, the(others))) +\nand.some + more;\n}\n",
            "a.ts",
            "broken into two",
        ),
    ],
)
def test_a_file_that_looks_damaged_is_asked_for_again(body: str, path: str, what: str) -> None:
    """Never wrong bytes: what no such file has is not written."""
    with pytest.raises(OperationError) as caught:
        body_repair.mend_file(body, path, AS_IT_IS)
    assert what in caught.value.reason
    assert 'until="TOKEN"' in caught.value.reason


@pytest.mark.parametrize("line", ["f（a, b);", "f(a，b);", "x ＝ 1;", "a();；"])
@pytest.mark.parametrize("path", ["a.js", "a.go", "a.java"])
def test_signs_of_an_input_method_in_code_are_asked_for_again(path: str, line: str) -> None:
    """In a new file, over an old one, in an edit; not in strings, comments and beside such letters."""
    for old in (None, "f(a, b);\n"):
        with pytest.raises(OperationError, match="full-width punctuation"):
            body_repair.mend_file(f"{line}\n", path, AS_IT_IS, old)
    with pytest.raises(OperationError, match="full-width punctuation"):
        apply.apply((Replacement("f(a, b);\n", f"{line}\n"),), "f(a, b);\n", AS_IT_IS, path=path)
    for said in (f'g("{line}");', f"// {line}", f"<p>你好（{line}）</p>", "x();"):
        assert body_repair.mend_file(f"{said}\n", path, AS_IT_IS).text == f"{said}\n"
    there = f"{line}\n"
    assert body_repair.mend_file(f"{there}y();\n", path, AS_IT_IS, there).text == f"{there}y();\n"


def test_a_long_line_of_such_signs_takes_no_time() -> None:
    """Design, purpose: the reply is not trusted."""
    body = "（" * 300_000 + "你\n"
    with cpu_below(50):
        assert body_repair.mend_file(body, "a.js", AS_IT_IS).text == body


def test_entities_in_a_string_with_escapes_are_meant() -> None:
    """As in a program that escapes HTML."""
    body = 'char *f() {\n  return g("&&amp;\\0<&lt;\\0\'&apos;\\0\\"&quot;\\0");\n}\n'
    assert body_repair.mend_file(body, "a.c", AS_IT_IS).text == body


@pytest.mark.parametrize("body", ["a: 1\nb:\n- c\n- d e\n", "# A:\n#b:\n#  - c\nd: 1\n"])
def test_yaml_at_the_margin_may_be_meant(body: str) -> None:
    """Items of one value may be there, and comments."""
    assert body_repair.mend_file(body, "a.yml", AS_IT_IS).text == body


def test_a_line_of_a_mark_alone_was_a_blank_line() -> None:
    """Lines of citations alone are taken out: only a chat adds such lines."""
    body = "".join(f"\ufeff{line}\n" for line in ("def f():", "    return 1", "", "", "x = f()"))
    mended = body_repair.mend_file(body, "a.py", Arrival(frozenset({Damage.ZERO_WIDTH})))
    assert mended.text == "def f():\n    return 1\n\n\nx = f()\n"


def test_soft_hyphens_of_the_tags_are_undone_where_none_can_be_meant() -> None:
    """In a program, and where the file has none; in a new text for people they may be meant."""
    arrival = Arrival(frozenset({Damage.SOFT_HYPHENS}))
    body = "# The chap\u00adter\n\nA docu\u00adment.\n"
    bare = body.replace("\u00ad", "")
    assert body_repair.mend_file(body, "a.py", arrival).text == bare
    assert body_repair.mend_file(body, "a.md", arrival, "# Old\n").text == bare
    for old in (None, "# O\u00adld\n"):
        with pytest.raises(OperationError, match="soft hyphens, as in the tags"):
            body_repair.mend_file(body, "a.md", arrival, old)
    other = Arrival(frozenset({Damage.ZERO_WIDTH}))
    with pytest.raises(OperationError, match="and they may be meant"):
        body_repair.mend_file(body, "a.py", other)
    assert body_repair.mend_file(body, "a.md", AS_IT_IS).text == body


def test_a_blank_line_after_each_line_of_a_text_is_taken_out_if_the_file_shows_it() -> None:
    """Three of them where the file has one are not meant; a looser list may be."""
    arrival = Arrival(is_spaced=True)
    body = "\n# A\n\n\n\n- b\n\n- d\n\n"
    assert (
        body_repair.mend_file(body, "a.md", arrival, "# A\n\n- b\n- c\n").text
        == "# A\n\n- b\n- d\n"
    )
    for old in (None, "# A\n- b\n- c\n", "- b\n- d\n", "# A\n\n- b\n\n\n- d\n"):
        with pytest.raises(OperationError, match="a blank line follows each line"):
            body_repair.mend_file(body, "a.md", arrival, old)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("on:\n  - well-known\n  - b\n", "a.yml"),
        ("# A\n\n- well-known\n", "a.md"),
        ("all: x\n\trm -f a-b\n", "Makefile"),
    ],
)
def test_hyphens_are_plain_again_where_only_plain_ones_have_a_meaning(body: str, path: str) -> None:
    """The mark of a list or of an option shows it, if no plain one is left and the file has no other."""
    other = body.replace("-", "\u2011")
    found = body_repair.mend_file(other, path, AS_IT_IS)
    assert found.text == body
    assert "where only plain ones have a meaning" in found.notes[0]
    partly = f"{body}# x-y\n".replace("- ", "\u2011 ").replace("-f", "\u2011f")
    for text, old in ((partly, None), (other, "# a\u2011b\n")):
        with contextlib.suppress(OperationError):
            assert body_repair.mend_file(text, path, AS_IT_IS, old).text == text


def test_hyphens_within_words_of_a_text_may_be_meant() -> None:
    """Nothing shows that a chat made them."""
    body = "A well\u2011known thing, and \u2011s as a suffix.\n"
    assert body_repair.mend_file(body, "a.md", AS_IT_IS).text == body


def test_the_marks_of_a_diff_are_taken_off_where_only_then_it_can_be_read() -> None:
    """A program that begins each line with + is none."""
    assert body_repair.mend_file("+a = 1\n+\n+b = 2\n", "a.py", AS_IT_IS).text == "a = 1\n\nb = 2\n"
    for body in ("+a = (\n+\n", "+1\n+2\n"):
        with pytest.raises(OperationError, match="each line begins with the \\+ of a diff"):
            body_repair.mend_file(body, "a.py", AS_IT_IS)


@pytest.mark.parametrize(
    ("way", "body", "text"),
    [
        (Damage.ESCAPES, "a\\_b = c\\[0\\] \\* '\\\\n'\n", "a_b = c[0] * '\\n'\n"),
        (Damage.ESCAPES, "```\nx = r'a\\_b'\n```\n", "x = r'a\\_b'\n"),
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
    assert body_repair.mend_file(body, "a.py", Arrival(frozenset({way}))).text == text


@pytest.mark.parametrize(
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
    for mend in (body_repair.mend_command, lambda b, w: body_repair.mend_file(b, "a.py", w)):
        with pytest.raises(OperationError, match="inside of a code block"):
            mend(body, Arrival(frozenset({way})))


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
    ((found,), _) = body_repair.mend_replacements(body, apply.read_replacements)
    assert (found.search, found.replace) == ("a\n", "b\n")


def test_a_body_with_readable_markers_is_not_looked_into() -> None:
    """Its text may tell of markers in another form."""
    body = "<<<<<<< SEARCH\n**=======**\n=======\n  >>>>>>> REPLACE\n>>>>>>> REPLACE\n"
    _, read = body_repair.mend_replacements(body, apply.read_replacements)
    assert read == body_repair.Body(body)


def test_markers_in_entities_show_what_became_of_the_body() -> None:
    """What encodes one < encodes all of them, once; quotes may be spared."""
    plain = '<<<<<<< SEARCH\nif a < "b":\n=======\nif a > "&lt;":\n>>>>>>> REPLACE\n'
    body = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    _, mended = body_repair.mend_replacements(body, apply.read_replacements)
    assert mended.text == plain
    assert mended.notes
    with pytest.raises(OperationError, match="entities"):
        body_repair.mend_replacements(body.replace("a &lt;", "a <"), apply.read_replacements)


def test_letters_are_meant_only_where_the_tags_came_unharmed() -> None:
    """Nobody can say what was written in a body that suffered with its tags."""
    body_repair.check_letters("a\\_b &lt; “c”\n", "a.py", UNHARMED, "CREATE_FILE")
    body_repair.check_letters("a_b\n", "a.py", frozenset({Damage.ESCAPES}), "CREATE_FILE")
    for damage in (Damage.ESCAPES, Damage.ENTITIES, Damage.QUOTES):
        with pytest.raises(OperationError, match="send this block again"):
            body_repair.check_letters(
                "a\\_b &lt; “c”\n", "a.py", frozenset({damage}), "CREATE_FILE"
            )


def test_a_label_alone_is_an_empty_program() -> None:
    """No program consists of it."""
    assert body_repair.mend_file("python\nCopy code\n", "a/__init__.py", AS_IT_IS).text == ""


def test_a_body_with_a_bare_mark_and_no_escaped_one_was_spared() -> None:
    """What escapes a _ in the tags escapes each of them."""
    body = 'a_b = "\\." + "\\n"\n'
    assert body_repair.mend_file(body, "a.py", Arrival(frozenset({Damage.ESCAPES}))).text == body


def test_fences_within_fences_are_taken_off_twice_at_most() -> None:
    """A hostile body has a thousand of them."""
    body = "".join(f"```a{number}\n" for number in range(2_000)) + "x\n" + "```\n" * 2_000
    mended = body_repair.mend_file(body, "a.ts", AS_IT_IS)
    assert mended.text.startswith(("```a1\n", "```a2\n"))
