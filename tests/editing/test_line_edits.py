"""What the lines that an edit by numbers replaces prove of its body: right, or asked for again."""

import hashlib
from pathlib import Path

import pytest

from codingagent.editing import apply, body_rules
from codingagent.editing.characters import ReplacedLines
from codingagent.editing.file_lines import FileLines
from codingagent.errors import OperationError
from codingagent.model.chat_damage import AS_IT_IS, BodyEvidence
from codingagent.model.operations import LineRange, Replacement
from codingagent.model.plain_text import joined
from tests import reply_table
from tests.helpers import cpu_below
from tests.rows import each_row


def after(text: str, path: str, start: int, end: int, body: str, arrival: BodyEvidence = AS_IT_IS) -> str:
    """What a body makes of a file; what is asked for again, if it is."""
    try:
        return apply.apply(LineRange(start, end, body), text, arrival, path=path).text
    except OperationError as fault:
        return fault.reason


def test_a_body_deeper_than_a_next_line_can_be_is_asked_for_again() -> None:
    """Lines after an opener are one level deeper, never two."""
    text = "a() {\n  one();\n  two();\n}\n"
    ground = ReplacedLines("a.ts", FileLines(text.split("\n")[:-1]), 1, 2)
    with pytest.raises(OperationError, match="the body is indented"):
        body_rules.mend_lines("      one();\n      new();\n", ground, AS_IT_IS)
    body = "    one();\n    two();\n"
    assert body_rules.mend_lines(body, ground, BodyEvidence(in_code=True)).text == body


_GO = ["func a() {", "\tx := one()", "\ty := two()", "}"]
_PY = ["def f():", "    a = call_one()", "    b = 2"]
_MD = ["- one", "    deep text here", "    more deep text"]


@each_row(
    ("path", "lines", "body", "in_code", "text"),
    [
        ("a.go", _GO, "    x := one()\n\n     * z\n", True, "\tx := one()\n\n\t * z\n"),
        ("a.go", _GO, "    x := one()\n   z := three()\n", True, ""),
        ("a.go", _GO, "x := one()\nz := three()\n", True, "x := one()\nz := three()\n"),
        ("a.go", _GO, "x := one()\nz := three()\n", False, ""),
        ("a.py", _PY, "a = call_one()\nc = 3\n", True, ""),
        ("a.md", _MD, " deep text here\n other text\n", False, ""),
        ("a.md", _MD, "deep text here\nother text\n", False, ""),
        ("a.md", _MD, "deep text here\nmore deep text\n", False, "deep text here\nmore deep text\n"),
    ],
)
def test_what_becomes_of_lines_with_another_indentation(
    path: str, lines: list[str], body: str, in_code: bool, text: str
) -> None:
    """Tabs are restored. What is lost is asked for; in a code block only the parser shows that it is."""
    arrival = BodyEvidence(in_code=in_code)
    try:
        assert body_rules.mend_lines(body, ReplacedLines(path, FileLines(lines), 1, 3), arrival).text == text
    except OperationError:
        assert not text


@pytest.mark.parametrize("path", ["a.md", "a.py"])
def test_a_body_of_one_blank_line_is_one(path: str, tmp_path: Path) -> None:
    """With blank lines between all tags, too: a clean answer is never refused."""
    edit = f'Sure.\n\n[EDIT_FILE path="{path}" start_line="2" end_line="2"]\n\n[/EDIT_FILE]\n\n[END]\n'
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


@each_row(
    "answer",
    [
        _searched(_OURS, _NEW),
        _searched(_OURS, _OURS.replace("return 1", "return 2")),
        _searched(_OURS, _OURS.replace("  7 |     return 1", "    return 2")),
        _ranged(_OURS.replace("return 1", "return 2")),
        _ranged(_OURS.replace("  7 |     return 1", "    return 2")),
        _ranged("9 | function g() {\n    return 2;\n11 | }"),
        _ranged("6 | function h() {\n7 |     return 2;\n9 | }"),
    ],
)
def test_lines_with_the_numbers_of_a_request_are_asked_for_again(answer: str, tmp_path: Path) -> None:
    """No chat puts them there: it is the model's mistake, and it is told."""
    old = {"a.js": ("\n".join(_JS) + "\n").encode()}
    done = reply_table.execute(answer, old, tmp_path)
    assert (done.files, len(done.problems)) == (old, 1)


def test_numbers_with_a_bar_are_text_where_the_file_has_such(tmp_path: Path) -> None:
    """A clean answer is never altered."""
    old = "6 | a\n7 | b\n"
    answer = '[EDIT_FILE path="a.txt" start_line="2" end_line="2"]\n1 | 6 | a\n7 | c\n[/EDIT_FILE]\n'
    done = reply_table.execute(answer, {"a.txt": old.encode()}, tmp_path)
    assert done.files["a.txt"] == b"6 | a\n1 | 6 | a\n7 | c\n"


@each_row(
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
    arrival = BodyEvidence(in_code=True)
    made = body_rules.mend_lines(body, ReplacedLines("a.py", FileLines(lines), 0, len(lines)), arrival).text
    assert made == (text or body)
    if old:
        edit = (Replacement("x = 1\n", body),)
        new = apply.apply(edit, old, arrival, path="a.py").text
        assert new == old.replace("x = 1\n", text or body)


_LONG = "    total = first_of(the_values_here, one) + second_of(the_values_here, two)"


@each_row(
    ("path", "line", "at"),
    [
        ("a.py", _LONG.replace("= ", "= (") + ")", " +"),
        ("a.ts", _LONG + ";", " +"),
        ("a.md", "Some words of a text that goes on, and on. It is one line of a paragraph.", " It"),
        ("a.sql", "SELECT first_of_all, second_of_all, third_of_all FROM a_table WHERE x", " FROM"),
    ],
)
def test_a_clean_edit_may_break_a_line_in_two(path: str, line: str, at: str) -> None:
    """A program goes on indented, a text at the margin."""
    depth = "        " if line[0] == " " else ""
    body = line.replace(at, "\n" + depth + at[1:], 1) + "\n"
    lines = ["if x:", line] if depth else [line]
    ground = ReplacedLines(path, FileLines(lines), len(lines) - 1, len(lines))
    assert body_rules.mend_lines(body, ground, AS_IT_IS).text == body


_SAID = "// A says this:\n//     a.b()\n"
_SAID += "".join(f"func {name}() {{\n\ta()\n}}\n\n" for name in "ABC")


def test_many_edits_from_the_top_down_are_asked_for_from_the_bottom_up() -> None:
    """To tell what each of thousands means would take minutes; from the bottom up nothing has to be told."""
    names = ["x" + hashlib.sha256(str(n).encode()).hexdigest()[:20] for n in range(2_000)]
    text = joined(names)
    parts = tuple(LineRange(n, n, f"{name}\n{name[::-1]}\n") for n, name in enumerate(names, 1))
    with cpu_below(100):
        with pytest.raises(OperationError, match="more than 200 edits count lines that others have moved"):
            apply.apply(parts, text, path="a.txt")
        edited = apply.apply(parts[::-1], text, path="a.txt")
    assert edited.text == "".join(f"{name}\n{name[::-1]}\n" for name in names)
    assert edited.notes == ()
