"""What the lines that an edit by numbers replaces prove of its body: right, or asked for again."""

import pytest

from codingagent.editing import apply
from codingagent.errors import OperationError
from codingagent.model.chat_damage import AS_IT_IS, Arrival
from codingagent.model.operations import LineRange

GO = """import (
\t"a/v1"
\t"b"
)

func a() {
\tone()

\ttwo()

\tthree()
}

func b() {
\tx()

\ty()
}
"""
RST = "Title\n\none::\n\n    a line of code here\n    one more\n\nThe end is near.\nAnd here.\n"
PYTHON = "import os\n\n\ndef a():\n    b = 1\n\n    c = 2\n\n    d = 3\n\n    return b\n"


def after(
    text: str, path: str, start: int, end: int, body: str, arrival: Arrival = AS_IT_IS
) -> str:
    """What a body makes of a file; what is asked for again, if it is."""
    try:
        return apply.apply(LineRange(start, end, body), text, arrival, path=path).text
    except OperationError as fault:
        return fault.reason


@pytest.mark.parametrize("lead", ["", " "])
@pytest.mark.parametrize(
    ("start", "end", "body"),
    [
        (2, 2, '{}"a/v2"\n'),
        # Beside lines that are at the margin in the file, too.
        (1, 3, 'import (\n{}"a/v2"\n{}"b"\n'),
        (2, 4, '{}"a/v2"\n{}"b"\n)\n'),
    ],
)
def test_a_tab_may_have_become_one_blank_or_none(
    start: int, end: int, body: str, lead: str
) -> None:
    right = GO.replace("v1", "v2")
    assert after(GO, "a.go", start, end, body.replace("{}", "\t")) == right
    assert after(GO, "a.go", start, end, body.replace("{}", lead)) == right


def test_what_looks_like_a_comment_does_not_hide_code() -> None:
    text = GO.replace('"a/v1"', '"a/*v1"')
    assert after(text, "a.go", 7, 7, "one(1)\n") == text.replace("one()", "one(1)")


def test_a_level_that_begins_and_is_not_deeper_is_asked_for_again() -> None:
    body = "func c() {\nconst (\ny = 1\n)\n"
    said = after(GO, "a.go", 14, 14, body)
    assert "is not indented, though a level begins" in said
    assert said.count("if it is meant so") == 1
    deep = "func c() {\n\tconst (\n\t\ty = 1\n\t)\n"
    assert deep in after(GO, "a.go", 14, 14, deep)
    # In a code block blanks are not lost; and a file that does it so shows that it is meant.
    assert body in after(GO, "a.go", 14, 14, body, Arrival(in_code=True))
    flat = GO.replace("\t", "")
    assert body in after(flat, "a.go", 14, 14, body)


def test_a_level_of_one_blank_is_asked_for_where_the_file_has_none() -> None:
    body = "func c() {\n y = 1\n}\n"
    assert "lost its indentation" in after(GO, "a.go", 14, 14, body)
    assert body in after(GO, "a.go", 14, 14, body, Arrival(in_code=True))
    # A comment is no level: one of the file proves nothing, and a new one is meant.
    assert "lost its indentation" in after(f"{GO}/* a\n * b */\n", "a.go", 14, 14, body)
    for comment in ("/* One\n * two. */\nfunc c() {\n", "/* One\n two. */\nfunc c() {\n"):
        assert comment in after(GO, "a.go", 14, 14, comment)
    thin = GO.replace("\tx", " x")
    assert body in after(thin, "a.go", 14, 14, body)
    assert body in after(GO.replace("\t", ""), "a.go", 14, 14, body)
    assert body in after(GO, "a.txt", 14, 14, body)


def test_a_text_is_not_moved_and_written_anew_at_once() -> None:
    assert "is not indented" in after(RST, "a.rst", 5, 5, "a line of code there\n")
    assert "is not indented" in after(RST, "a.rst", 5, 6, "a line of code there\none more\n")
    assert "is not indented" in after(RST, "a.rst", 6, 6, "one more\nand one that is new\n")
    for body in (
        "    a line of code there\n",
        "a line of code here\n",  # only moved
        "Something else that is said of it.\n",
    ):
        assert after(RST, "a.rst", 5, 5, body) == RST.replace("    a line of code here\n", body)


def test_no_text_is_indented_by_no_break_blanks() -> None:
    body = "\u00a0\u00a0\u00a0\u00a0a line of code there\n"
    right = RST.replace("code here", "code there")
    assert after(RST, "a.rst", 5, 5, body) == right
    kept = RST.replace("    one", "\u00a0\u00a0one")
    assert after(kept, "a.rst", 5, 5, body) == kept.replace("    a line of code here\n", body)


def test_blank_lines_in_twos_are_asked_for_where_the_file_has_none() -> None:
    doubled = "\tone()\n\n\n\tfour()\n"
    assert "blank lines stand in twos" in after(GO, "a.go", 7, 7, doubled)
    for text, path, start, body in (
        (GO, "a.go", 7, "\tone()\n\n\tfour()\n"),
        (GO, "a.go", 7, "\tone()\n\n\n\tfour()\n\n\tfive()\n"),  # not all of them
        (GO.replace("()\n\n\tth", "()\n\n\n\tth"), "a.go", 7, doubled),
        (PYTHON, "a.py", 11, "    return b\n\n\ndef z():\n    pass\n"),
        ("a = 1\n\nb = 2\n\nc = 3\n\nd = 4\n", "a.py", 7, "d = 4\n\n\ndef z():\n    pass\n"),
        ("a\n\nb\n\nc\n", "a.txt", 1, "a\n\n\nb\n"),  # too few to tell
    ):
        lines = text.split("\n")
        expected = "\n".join([*lines[: start - 1], *body.split("\n")[:-1], *lines[start:]])
        assert after(text, path, start, start, body) == expected
    assert "in twos" in after(PYTHON, "a.py", 5, 5, "    b = 1\n\n\n    e = 5\n")


@pytest.mark.parametrize("path", ["a.py", "a.rst"])
def test_blank_lines_round_each_line_of_the_answer_are_not_of_a_body(path: str) -> None:
    """The tags have them, too: `is_spaced`."""
    text, body = "a = 1\nbc = 2\nd = 3\n", "\nbc = 4\n\n"
    came = after(text, path, 2, 2, body, Arrival(is_spaced=True))
    if path == "a.py":
        assert came == text.replace("bc = 2", "bc = 4")
        assert after(text, path, 2, 2, "\n", Arrival(is_spaced=True)) == "a = 1\nd = 3\n"
    else:
        assert "a blank line stands after each line" in came
    assert after(text, path, 2, 2, body) == text.replace("bc = 2\n", body)


def test_no_line_of_a_program_ends_in_blanks_where_none_did() -> None:
    body = "\tone(1)  \n\ttwo(2)  \n"
    assert "\tone(1)\n\ttwo(2)\n" in after(GO, "a.go", 7, 7, body)
    assert body in after(GO.replace("two()", "two()  "), "a.go", 7, 7, body)
    assert "a break  \nthere  \n" in after(RST, "a.md", 8, 8, "a break  \nthere  \n")
