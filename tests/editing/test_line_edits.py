"""What the lines that an edit by numbers replaces prove of its body: right, or asked for again."""

import re
from pathlib import Path

import pytest

from codingagent.editing import apply, body_repair
from codingagent.editing.characters import Ground
from codingagent.errors import OperationError
from codingagent.model.chat_damage import AS_IT_IS, Arrival, Kept
from codingagent.model.operations import LineRange, Replacement
from tests import reply_table

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
    assert "is not indented" in said
    assert said.count("if it is meant so") == 1
    deep = "func c() {\n\tconst (\n\t\ty = 1\n\t)\n"
    assert deep in after(GO, "a.go", 14, 14, deep)
    # In a code block blanks are not lost; and a file that does it so shows that it is meant.
    assert body in after(GO, "a.go", 14, 14, body, Arrival(in_code=True))
    flat = GO.replace("\t", "")
    assert body in after(flat, "a.go", 14, 14, body)


def test_a_level_of_one_blank_is_asked_for_where_the_file_has_none() -> None:
    body = "func c() {\n y = 1\n}\n"
    assert "not indented" in after(GO, "a.go", 14, 14, body)
    assert body in after(GO, "a.go", 14, 14, body, Arrival(in_code=True))
    # A comment is no level: one of the file proves nothing, and a new one is meant.
    assert "not indented" in after(f"{GO}/* a\n * b */\n", "a.go", 14, 14, body)
    for comment in ("/* One\n * two. */\nfunc c() {\n", "/* One\n two. */\nfunc c() {\n"):
        assert comment in after(GO, "a.go", 14, 14, comment)
    thin = GO.replace("\tx", " x")
    assert body in after(thin, "a.go", 14, 14, body)
    assert body in after(GO.replace("\t", ""), "a.go", 14, 14, body)
    assert "not indented" in after(GO, "a.txt", 14, 14, body)


def test_a_text_is_not_moved_and_written_anew_at_once() -> None:
    assert "is not indented" in after(RST, "a.rst", 5, 5, "a line of code there\n")
    assert "is not indented" in after(RST, "a.rst", 5, 6, "a line of code there\none more\n")
    assert "is not indented" in after(RST, "a.rst", 6, 6, "one more\nand one that is new\n")
    assert "is not indented" in after(RST, "a.rst", 5, 5, "Something else that is said of it.\n")
    for body in ("    a line of code there\n", "a line of code here\n"):  # or only moved
        assert after(RST, "a.rst", 5, 5, body) == RST.replace("    a line of code here\n", body)


def test_no_text_is_indented_by_no_break_blanks() -> None:
    body = "\u00a0\u00a0\u00a0\u00a0a line of code there\n"
    right = RST.replace("code here", "code there")
    assert after(RST, "a.rst", 5, 5, body) == right
    kept = RST.replace("    one", "\u00a0\u00a0one")
    assert after(kept, "a.rst", 5, 5, body) == kept.replace("    a line of code here\n", body)


def test_blank_lines_in_twos_are_asked_for_where_the_file_has_none() -> None:
    doubled = "\tone()\n\n\n\tfour()\n"
    assert "blank lines are in twos" in after(GO, "a.go", 7, 7, doubled)
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
        assert "a blank line follows each line" in came
    assert after(text, path, 2, 2, body) == text.replace("bc = 2\n", body)


def test_no_line_of_a_program_ends_in_blanks_where_none_did() -> None:
    body = "\tone(1)  \n\ttwo(2)  \n"
    assert "\tone(1)\n\ttwo(2)\n" in after(GO, "a.go", 7, 7, body)
    assert body in after(GO.replace("two()", "two()  "), "a.go", 7, 7, body)
    assert "a break  \nthere  \n" in after(RST, "a.md", 8, 8, "a break  \nthere  \n")


C = """/* Adds
 * two. */
int add(int a, int b) {
    if (a < 0) {
        return b;
    }
    return a + b;
}

int mask = 1 << 3;

int sub(int a, int b) {
    return a - b;
}
"""
JSON = '{\n  "name": "x",\n  "version": "1.0",\n  "main": "y"\n}\n'
MOD = "module a\n\nrequire (\n\tb.c/d v1.2\n)\n"
LIST = "Changes\n\n  * one\n  * two\n"
YAML = "jobs:\n  a:\n    os: linux\n    go: 1\n"


@pytest.mark.parametrize("lead", ["", " "])
@pytest.mark.parametrize(
    ("text", "path", "start", "end", "body"),
    [
        (JSON, "a.json", 3, 4, '  "version": "2.0",\n  "type": "module",\n  "main": "z"\n'),
        (MOD, "go.mod", 5, 5, ")\n\nrequire (\n\te.f/g v1.3\n)\n"),
        (LIST, "History.md", 2, 2, "\n  * zero\n"),
        (YAML, "a.yml", 3, 3, "    os: windows\n    arch: all\n"),
        (C, "a.c", 9, 9, "\nint neg(int a) {\n    return -a;\n}\n\n"),
        (C, "a.c", 5, 5, "        a = b;\n        return other(a, b);\n"),
        (C, "a.c", 13, 13, "    if (a)\n        return 1;\n    return a - b;\n"),
        (RST, "a.rst", 5, 6, "    quite another thing\n\n    is said of it\n"),
    ],
)
def test_the_margin_is_for_lines_that_the_file_has_there(
    text: str, path: str, start: int, end: int, body: str, lead: str
) -> None:
    lines = text.split("\n")
    right = "\n".join([*lines[: start - 1], *body.split("\n")[:-1], *lines[end:]])
    assert after(text, path, start, end, body) == right
    flat = re.sub(r"^[ \t]+(?=\S)", lead, body, flags=re.MULTILINE)
    came = after(text, path, start, end, flat)
    assert came == right or "indent" in came or "opens a level" in came


def test_one_line_with_its_indentation_shows_that_a_chat_took_none() -> None:
    """Be it in a block before, or in this one."""
    kept = Arrival(kept=frozenset((Kept.INDENTATION,)))
    flat = "\n* zero\n"
    assert "not indented" in after(LIST, "a.md", 2, 2, flat)
    assert after(LIST, "a.md", 2, 2, flat, kept) == LIST.replace("\n\n", "\n\n* zero\n")
    text = f"{flat}  * half\n"
    assert after(LIST, "a.md", 2, 2, text) == LIST.replace("\n\n", f"\n{text}")


def test_what_is_at_the_margin_beside_the_like_is_taken() -> None:
    for text, path, start, end, body in (
        (C, "a.c", 10, 10, "int mask = 2;\nint other = 3;\n"),
        (C, "a.c", 7, 7, "#ifdef X\nend:\n#endif\n"),
        (C, "a.c", 9, 11, "\nint mask;\n\n"),
        (LIST, "History.md", 1, 2, "All changes\n\n"),
        (MOD, "go.mod", 1, 1, "module b\n"),
    ):
        lines = text.split("\n")
        whole = "\n".join([*lines[: start - 1], *body.split("\n")[:-1], *lines[end:]])
        assert after(text, path, start, end, body) == whole


def test_a_shift_to_the_left_in_c_is_no_text_of_a_shell() -> None:
    """What comes after it is code, where no entity can be."""
    right = C.replace("a - b", "a > b")
    assert after(C, "a.c", 13, 13, "    return a &gt; b;\n") == right


def test_tabs_that_came_as_blanks_are_asked_for_where_none_is_replaced() -> None:
    body = ")\n\nrequire (\n    e.f/g v1.3\n)\n"
    assert "indented by tabs" in after(MOD, "go.mod", 5, 5, body)
    text = GO.replace("x()", "x(`\n  a`)")
    assert "indented by tabs" in after(text, "a.go", 13, 13, "func z() {\n    z()\n}\n")
    # Within a string blanks are meant.
    raw = "\tx(`\n    b\n  a`)\n"
    assert raw in after(text, "a.go", 15, 16, raw)


def test_doubled_blank_lines_are_asked_for_where_the_file_has_them_rarely() -> None:
    text = "".join(f"word {number}\n\n" for number in range(12)) + "\nlast\n"
    doubled = "word\n\n\nand more\n"
    assert "in twos" in after(text, "a.txt", 3, 3, doubled)
    assert doubled in after(text.replace("\n\n", "\n\n\n"), "a.txt", 4, 4, doubled)
    assert doubled in after(text, "a.txt", 3, 3, doubled, Arrival(kept=frozenset((Kept.LINES,))))
    # What it replaces had half of them.
    assert "in twos" in after(MOD, "go.mod", 2, 3, "\n\nrequire ( // all\n")
    assert "\n\nrequire ( // all\n" in after(MOD, "go.mod", 2, 3, "\nrequire ( // all\n")


def test_a_search_does_not_bring_doubled_blank_lines() -> None:
    text = GO.replace("\n}\n\nfunc", "\n}\nfunc")
    new = "\tx()\n\n\n\tz()\n"
    (edit,) = (Replacement("\tx()\n", new),)
    with pytest.raises(OperationError, match="in twos"):
        apply.apply((edit,), text, AS_IT_IS, path="a.go")
    assert new in apply.apply((edit,), text, None, path="a.go").text
    # A single one in it shows that none was doubled.
    edit = Replacement("\tx()\n\n\ty()\n", f"{new}\n\n\ty()\n")
    assert new in apply.apply((edit,), text, AS_IT_IS, path="a.go").text


def test_lines_as_deep_as_those_that_they_replace_are_not_shifted() -> None:
    """Though only so they would make a valid file: the next edit may do that."""
    body = "    ]\n    w = 2\n"
    assert after("v = [\n    1]\n", "a.py", 2, 2, body) == f"v = [\n{body}"
    assert after("v = [\n1]\n", "a.py", 2, 2, body) == "v = [\n]\nw = 2\n"


def test_code_in_a_starred_comment_opens_no_level() -> None:
    body = " * so it is {\n * and so on\n"
    assert after(C, "a.c", 1, 2, f"/* Adds:\n{body} */\n").startswith(f"/* Adds:\n{body} */\n")


def test_a_body_deeper_than_a_next_line_can_be_is_asked_for_again() -> None:
    """Lines after an opener are one level deeper, never two."""
    text = "a() {\n  one();\n  two();\n}\n"
    ground = Ground("a.ts", text.split("\n")[:-1], 1, 2)
    with pytest.raises(OperationError, match="deeper than the lines that it replaces"):
        body_repair.mend_lines("      one();\n      new();\n", ground, AS_IT_IS)
    body = "    one();\n    two();\n"
    assert body_repair.mend_lines(body, ground, Arrival(in_code=True)).text == body


def test_a_replace_whose_line_was_broken_is_asked_for_again() -> None:
    """It ends at one column, and goes on at the margin."""
    new = "  const one = of(the(first), of(all, the(others))) +\nand.some + more;\n"
    change = (Replacement("  one();\n", new),)
    with pytest.raises(OperationError, match="broken into two"):
        apply.apply(change, "a() {\n  one();\n}\n", AS_IT_IS, path="a.ts")


_GO = ["func a() {", "\tx := one()", "\ty := two()", "}"]
_PY = ["def f():", "    a = call_one()", "    b = 2"]
_MD = ["- one", "    deep text here", "    more deep text"]


@pytest.mark.parametrize(
    ("path", "lines", "body", "in_code", "text"),
    [
        ("a.go", _GO, "    x := one()\n\n     * z\n", True, "\tx := one()\n\n\t * z\n"),
        ("a.go", _GO, "    x := one()\n   z := three()\n", True, ""),
        ("a.go", _GO, "x := one()\nz := three()\n", True, "x := one()\nz := three()\n"),
        ("a.go", _GO, "x := one()\nz := three()\n", False, "\tx := one()\n\tz := three()\n"),
        ("a.py", _PY, "a = call_one()\nc = 3\n", True, "    a = call_one()\n    c = 3\n"),
        (
            "a.md",
            _MD,
            " deep text here\n other text\n",
            False,
            "    deep text here\n    other text\n",
        ),
        ("a.md", _MD, "deep text here\nother text\n", False, ""),
    ],
)
def test_indentation_is_given_back_where_lines_on_disk_or_the_parser_prove_it(
    path: str, lines: list[str], body: str, in_code: bool, text: str
) -> None:
    """In a code block no chat takes it: then only the parser shows that it is gone. Else it is asked for."""
    arrival = Arrival(in_code=in_code)
    try:
        assert body_repair.mend_lines(body, Ground(path, lines, 1, 3), arrival).text == text
    except OperationError:
        assert not text


@pytest.mark.parametrize("path", ["a.md", "a.py"])
def test_a_body_of_one_blank_line_is_one(path: str, tmp_path: Path) -> None:
    """With blank lines between all tags, too: a clean answer is never refused."""
    edit = (
        f'Sure.\n\n[EDIT_FILE path="{path}" start_line="2" end_line="2"]\n\n[/EDIT_FILE]\n\n[END]\n'
    )
    done = reply_table.execute(edit, {path: b"x = 1\ny = 2\nz = 3\n"}, tmp_path)
    assert (done.files, done.problems) == ({path: b"x = 1\n\nz = 3\n"}, [])


_JS = [f"x{n} = {n};" for n in range(1, 120)]
_JS[5:8] = ["function g() {", "    return 1;", "}"]
_NEW = "function g() {\n    return 2;\n}"


def _searched(search: str, new: str) -> str:
    edit = f"<<<<<<< SEARCH\n{search}\n=======\n{new}\n>>>>>>> REPLACE"
    return f'[EDIT_FILE path="a.js"]\n{edit}\n[/EDIT_FILE]\n'


def _ranged(body: str) -> str:
    return f'[EDIT_FILE path="a.js" start_line="6" end_line="8"]\n{body}\n[/EDIT_FILE]\n'


_OURS = "  6 | function g() {\n  7 |     return 1;\n  8 | }"


@pytest.mark.parametrize(
    ("answer", "is_right"),
    [
        (_searched(_OURS, _NEW), True),
        (_searched(_OURS.replace("  6", "      6").replace("\n  ", "\n      "), _NEW), True),
        (_searched(_OURS, _OURS.replace("return 1", "return 2")), True),
        (_searched(_OURS, _OURS.replace("  7 |     return 1", "    return 2")), True),
        (_searched("  7 |     return 1;", "    return 2;"), True),
        (_searched("  7 |     return 1;", "        return 2;"), False),
        (_ranged(_OURS.replace("return 1", "return 2")), True),
        (_ranged(_OURS.replace("  7 |     return 1", "    return 2")), True),
        # The numbers are not those of the file: it was another text, or it has changed since.
        (_ranged("9 | function g() {\n    return 2;\n11 | }"), False),
        (_ranged("6 | function h() {\n7 |     return 2;\n9 | }"), False),
    ],
)
def test_the_numbers_of_a_request_are_undone_wherever_they_are_copied(
    answer: str, *, is_right: bool, tmp_path: Path
) -> None:
    """With the blanks before them, and beside lines without a number: right, or asked for again."""
    old = "\n".join(_JS) + "\n"
    done = reply_table.execute(answer, {"a.js": old.encode()}, tmp_path)
    new = old.replace("return 1", "return 2") if is_right else old
    assert (done.files["a.js"].decode(), not done.problems) == (new, is_right)


def test_numbers_with_a_bar_are_text_where_the_file_has_such(tmp_path: Path) -> None:
    """A clean answer is never altered."""
    old = "6 | a\n7 | b\n"
    answer = (
        '[EDIT_FILE path="a.txt" start_line="2" end_line="2"]\n1 | 6 | a\n7 | c\n[/EDIT_FILE]\n'
    )
    done = reply_table.execute(answer, {"a.txt": old.encode()}, tmp_path)
    assert done.files["a.txt"] == b"6 | a\n1 | 6 | a\n7 | c\n"


@pytest.mark.parametrize(
    ("old", "body", "text"),
    [
        ("x = 1\n\ny = 2\n", "a = 1\n  \nb = 2\n", "a = 1\n\nb = 2\n"),
        # The file has such lines; they are in a string; no file says so.
        ("x = 1\n  \ny = 2\n", "a = 1\n  \nb = 2\n", None),
        ("x = 1\n\ny = 2\n", 'a = """\n  \n"""\n', None),
        ("", "def f():\n    a = 1\n    \n    b = 2\n", None),
        ("", "a = 1\n  \nb = 2\n", None),
    ],
)
def test_blanks_in_blank_lines_are_taken_off_where_the_file_has_none(
    old: str, body: str, text: str | None
) -> None:
    """In a body and in REPLACE; where they may be meant they are written."""
    lines = old.split("\n")[:-1]
    arrival = Arrival(in_code=True)
    made = body_repair.mend_lines(body, Ground("a.py", lines, 0, len(lines)), arrival).text
    assert made == (text or body)
    if old:
        edit = (Replacement("x = 1\n", body),)
        new = apply.apply(edit, old, arrival, path="a.py").text
        assert new == old.replace("x = 1\n", text or body)


_LONG = "    total = first_of(the_values_here, one) + second_of(the_values_here, two)"


@pytest.mark.parametrize(
    ("path", "line", "at"),
    [
        ("a.py", _LONG.replace("= ", "= (") + ")", " +"),
        ("a.ts", _LONG + ";", " +"),
        (
            "a.md",
            "Some words of a text that goes on, and on. It is one line of a paragraph.",
            " It",
        ),
        ("a.sql", "SELECT first_of_all, second_of_all, third_of_all FROM a_table WHERE x", " FROM"),
    ],
)
def test_a_clean_edit_may_break_a_line_in_two(path: str, line: str, at: str) -> None:
    """A program goes on indented, a text at the margin; only what a chat breaks is asked for again."""
    depth = "        " if line[0] == " " else ""
    body = line.replace(at, "\n" + depth + at[1:], 1) + "\n"
    lines = ["if x:", line] if depth else [line]
    ground = Ground(path, lines, len(lines) - 1, len(lines))
    assert body_repair.mend_lines(body, ground, AS_IT_IS).text == body
    if depth:
        broken = line.replace(at, "\n" + at[1:], 1) + "\n"
        with pytest.raises(OperationError, match="broken into two"):
            body_repair.mend_lines(broken, ground, AS_IT_IS)


_CALLS = "f(() => {\n  a();\n\n  b();\n});\ng(() => {\n  c();\n});\n"
_SAID = "// A says this:\n//     a.b()\n"
_SAID += "".join(f"func {name}() {{\n\ta()\n}}\n\n" for name in "ABC")


@pytest.mark.parametrize(
    ("path", "old", "first", "last", "body"),
    [
        # A line with a blank one behind it, and another so; an edit that only removes lines.
        ("a.js", _CALLS, 2, 3, "  a();\n\n  d();\n\n"),
        ("a.py", "import a\n\nimport b\n\n\nx = 1\n", 1, 3, "import a\nimport b\n"),
        ("a.rst", "a\n\nb\n\nc\n\n.. _x:\n\nd\n\ne\n", 6, 8, "\n\n"),
        ("a.md", "a\n\n{% code %}\nb\n{% end %}\n", 5, 5, "~~~\n"),
        # What looks like a level is a comment, or has nothing deeper behind it in the file.
        ("a.go", _SAID, 2, 2, "//\n//\ta.b()\n"),
        ("a.rst", ".. _x:\n\nX\n\na::\n\n  b\n\nc::\n\n  d\n\ne::\n\n  f\n", 3, 3, "Y\n"),
        # All that it does is to put blank lines there; two of them were there before.
        ("a.js", "a();\nb();\n", 1, 2, "a();\n\nb();\n"),
        ("a.py", "def f():\n    a()\n    b()\n\nx = 1\n", 2, 4, "    a()\n\n    b()\n\n\n"),
        ("a.md", "a\n\nb\n" * 9 + "- a\n\n\n# B\n", 28, 30, "- a\n- c\n\n\n"),
        # A longer line before one that is in the file.
        ("a.ts", f"{_LONG}\nUse:\n", 1, 2, f"{_LONG} and more of them\nUse:\n"),
        # One blank line of several has blanks.
        ("a.py", "def f():\n    a()\n\n    b()\n", 2, 3, "    a()\n\n    c()\n    \n"),
    ],
)
def test_what_real_commits_do_to_lines_is_taken_as_it_came(
    path: str, old: str, first: int, last: int, body: str
) -> None:
    """None of them was damaged on its way."""
    edited = apply.apply(LineRange(first, last, body), old, AS_IT_IS, path=path)
    lines = old.split("\n")
    lines[first - 1 : last] = body.split("\n")[:-1]
    assert (edited.text, edited.notes) == ("\n".join(lines), ())


def test_two_lines_with_a_blank_one_behind_each_are_asked_for_again() -> None:
    """They may be meant, or each line of the body has got one; with three in between, too."""
    old = "def f():\n    a()\n    b()\n\n\nx = 1\n"
    assert "each of its two lines" in after("# A\n\nb\n", "a.md", 3, 3, "b\n\n\n\n![c](d)\n")
    for first, last, body in ((2, 4, "    a()\n\n    b()\n\n"), (2, 2, "    c()\n\n    d()\n\n")):
        with pytest.raises(OperationError, match="a blank line follows each of its two lines"):
            apply.apply(LineRange(first, last, body), old, AS_IT_IS, path="a.py")
