"""What can be said of a text by its file's name: Design, replies as chats really give them."""

import ast
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing import syntax_check
from codingagent.editing.syntax_check import SyntaxFault
from tests.helpers import cpu_below
from tests.rows import each_row

DEEP = 100_000


@each_row(
    ("path", "text", "fault"),
    [
        ("a.py", "x = (1\ny = 2\n", SyntaxFault(1, "'(' was never closed")),
        (
            "a.py",
            "class A:\ndef f(self):\n    return 1\n",
            SyntaxFault(2, "expected an indented block after class definition on line 1", True),
        ),
        ("a.PYI", "def f(: ...\n", SyntaxFault(1, "invalid syntax")),
        ("a.py", "  x = 1\n", SyntaxFault(1, "unexpected indent")),
        ("a.py", "x\n\0\n", SyntaxFault(2, "it holds a NUL character")),
        ("b/a.json", '{"a": 1,\n "b" 2}\n', SyntaxFault(2, "Expecting ':' delimiter")),
        ("a.json", "", SyntaxFault(1, "Expecting value")),
        ("pyproject.toml", '[a]\nb = "c\n', SyntaxFault(2, "Illegal character '\\n'")),
        ("a.toml", "a = 1\na = 2\n", SyntaxFault(2, "Cannot overwrite a value")),
    ],
)
def test_what_cannot_be_read_is_a_fault_with_its_line(path: str, text: str, fault: SyntaxFault) -> None:
    """The model mends it from the line and the parser's words."""
    assert syntax_check.find_fault(path, text) == fault
    assert syntax_check.parses(path, text) is not True


@each_row(
    ("path", "text"),
    [
        ("a.py", ""),
        ("a.py", "\ufeffx = 1\r\ny = 2"),
        ("a.py", "# -*- coding: latin-1 -*-\nx = 'é'\n"),
        ("a.py", "def f():\n    return x\nreturn 1\n"),
        ("a.json", '{"a": [1e999, NaN, ' + "9" * 5000 + "]}\n"),
        ("a.toml", 'a = """\n<<<<<<< HEAD\n"""\r\n'),
    ],
)
def test_what_can_be_read_is_no_fault(path: str, text: str) -> None:
    """No check of style, and none of meaning."""
    assert syntax_check.parses(path, text) is True
    assert syntax_check.find_fault(path, text) is None


@each_row(
    ("path", "text"),
    [
        ("a.txt", "x = ("),
        ("py", "x = ("),
        ("a.jsonc", "{ // x\n}"),
        ("tsconfig.json", "{ // x\n}"),
        ("web/tsconfig.build.json", "{ // x\n}"),
        (".vscode/settings.json", "{ // x\n}"),
        ("a.py", "x = (" + "\n" * 1_000_000),
        ("a.py", "-" * DEEP + "1"),
        ("a.py", "a" + ".b" * DEEP),
        ("a.py", "lambda: " * DEEP + "1"),
        ("a.py", "(" * DEEP),
        ("a.py", "x = " + "9" * 5000),
        ("a.py", "x = '\udc80'\n("),
        ("a.json", "[" * DEEP),
        ("a.toml", "a = " + "[" * DEEP),
        ("a.toml", "a = " + "9" * 5000),
    ],
)
def test_of_what_no_parser_here_can_judge_nothing_is_said(path: str, text: str) -> None:
    """Too deep, too long, of another kind: that is no reason to ask again."""
    assert syntax_check.find_fault(path, text) is None
    assert syntax_check.parses(path, text) is not True


def test_what_python_warns_of_is_not_shown() -> None:
    """A warning would stand in the person's terminal."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert syntax_check.parses("a.py", "x = '\\d'\n1 is 1\n") is True
    assert heard == []


@given(st.sampled_from(["a.py", "a.json", "a.toml"]), st.text())
def test_reading_never_raises(path: str, text: str) -> None:
    """Whatever the text, there is one answer."""
    assert (syntax_check.find_fault(path, text) is None) or syntax_check.parses(path, text) is not True


OLD = (
    "from __future__ import annotations\n\n__all__ = ['A']\n\nclass A:\n"
    "    def __init__(self, name):\n        self.name = name\n\n"
    'if __name__ == "__main__":\n    print(A(__file__).name)\n'
)


@each_row(
    ("new", "lost"),
    [
        (OLD, ()),
        (OLD.replace("__", ""), ("__future__", "__all__", "__init__", "__name__", "__main__", "__file__")),
        (OLD.replace("__name__", "name"), ("__name__",)),
        (OLD.replace("def __init__(self, name)", "def init(self, name, *more)"), ("__init__",)),
        # Left out, moved elsewhere, or renamed to what is no remnant of it.
        (OLD.partition("if ")[0], ()),
        (OLD.replace("__init__", "start"), ()),
        (OLD.replace("__file__", "self.file"), ()),
        ("name = 1\nall(x)\n", ()),
    ],
)
def test_underscores_that_bold_has_eaten_are_missed(new: str, lost: tuple[str, ...]) -> None:
    """The file on disk proves it: the same neighbours, and no underscores left."""
    assert syntax_check.lost_underscores(OLD, new) == lost


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.toml", f"a{'.a' * 150_000} = 1\n"),
        ("a.toml", f"[{'a.' * 150_000}a]\n"),
        ("a.toml", "x = 1\ny = {a" + '."b c"' * 50_000 + " = 1}\n"),
        ("a.toml", "".join(f"a{'.a' * 299} = {number}\n" for number in range(400))),
        ("a.toml", "a = " + "[" * 300_000),
        ("a.json", "[" * 300_000),
        ("a.json", '{"a":' * 60_000),
        ("a.py", "(" * 300_000),
        ("a.py", "-" * 300_000 + "1"),
        ("a.py", f"x = {'+'.join('1' * 150_000)}\n"),
        ("a.py", "".join(f"{' ' * depth}if 1:\n" for depth in range(700))),
    ],
    ids=lambda value: value[:20],
)
def test_no_text_of_an_answer_takes_long_to_read(path: str, text: str) -> None:
    """Design, speed: nothing of 300 KB costs more than a second or two."""
    with cpu_below(40):
        syntax_check.find_fault(path, text)


# Whole statements, and lines that open, close or go on with something.
_WHOLE = st.sampled_from(
    [
        "x = 1",
        "def f():\n    pass",
        "@a\n@b\ndef f():\n  pass",
        "if x:\n\ty",
        's = """\nx = 2\n"""',
        "(\nx\n)",
        "# c\\",
        "x = 1 + \\\n1",
        "\\\ny = 2",
        "x;\\\ny",
        "",
        "class A:\n    @(\n    a)\n    def f(self): pass",
        "@(\na)\nclass B: x",
    ]
)
_PART = st.sampled_from(
    [
        "(",
        ")",
        '"""',
        "@a",
        "else: y",
        "    y",
        "if x:",
        "x = \\",
        "\\",
        "# c",
        "\fz",
        "z\r",
        "x = 1;\\",
        "'",
        "def f(): g",
    ]
)


@given(
    st.lists(_WHOLE, min_size=3, max_size=8),
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 3), st.lists(_WHOLE | _PART, max_size=2)), max_size=6
    ),
    st.booleans(),
)
def test_after_an_edit_python_is_judged_as_if_all_of_it_were_parsed(
    text: list[str], edits: list[tuple[int, int, list[str]]], is_undone: bool
) -> None:
    lines = "\n".join(text).split("\n")
    for at, count, new in [(0, 0, []), *edits]:
        before = lines
        lines = "\n".join([*lines[:at], *new, *lines[at + count :]]).split("\n")
        try:
            ast.parse("\n".join(lines))
            fault = None
        except SyntaxError as raised:
            fault = raised.lineno or 1, raised.msg
        found = syntax_check.find_fault("a.py", "\n".join(lines))
        assert (found and (found.line, found.message)) == fault
        lines = before if fault and is_undone else lines


def test_after_an_edit_only_the_statements_that_it_changes_are_parsed() -> None:
    """Design, speed: each of many edits of a long file would cost a parse of all of it."""
    lines = [f"x{i} = [{i}]" for i in range(5_000)]
    syntax_check.find_fault("a.py", "\n".join(lines))
    with cpu_below(40):
        for i in range(0, 5_000, 50):
            lines[i] += "  # changed"
            assert syntax_check.find_fault("a.py", "\n".join(lines)) is None


_SHORT = "".join(f"x{i} < {i}\n" for i in range(9_000))


@each_row("text", [_SHORT, f'{_SHORT}y = """\n{_SHORT}"""\n', f"if y:\n    x\n{_SHORT}else:\n"])
def test_a_long_text_is_judged_as_a_whole(text: str) -> None:
    syntax_check.find_fault("a.py", f"y = {len(text)}")
    try:
        ast.parse(text)
        assert syntax_check.find_fault("a.py", text) is None
    except SyntaxError as fault:
        found = syntax_check.find_fault("a.py", text)
        assert found is not None
        assert (found.line, found.message) == (fault.lineno, fault.msg)


@pytest.mark.parametrize(
    "text",
    [
        'x = f"{d["k"]}"\n',
        "x = f\"{'\\n'.join(y)}\"\n",
        'x = f"{{{d["k"]:>{w}}}}" "f" + rf"""\n{d["""k"""]}\n"""  # f"{\n',
        "x = f'{f'{y}'}' if y else f'{', '.join(y)!r}'\n",
        "lazy import json\nlazy from a import b\n",
        "type Pair[T] = tuple[T, T]\n",
        "type Name = str\n",
        "def first[T: (int, str)](x: list[T]) -> T:\n    return x[0]\n",
        "class Box[T]:\n    pass\n",
        "try:\n    pass\nexcept KeyError, ValueError:\n    pass\n",
        'x = t"{name}"\n',
    ],
)
def test_what_only_a_newer_python_reads_is_no_fault(text: str) -> None:
    assert syntax_check.parses("a.py", text) is True
    fault = syntax_check.find_fault("a.py", f"{text}def f(:\n    pass\n")
    assert fault is not None
    assert fault.line == text.count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        "a = {\n  b = 1,  # }\n  c = [\n    {d = 1,},\n  ],\n}\n",
        'a = "\\e[0m \\x41 \\\\x"\n',
        "a = 07:32\nb = 1979-05-27T07:32Z\n",
        "a = {b = \"}\\e\", 'c' = '\\e,}',}\n",
    ],
)
def test_what_only_toml_1_1_allows_is_no_fault(text: str) -> None:
    """https://toml.io/en/v1.1.0; nothing is said of such a file."""
    assert syntax_check.parses("a.toml", text) is None
    assert syntax_check.find_fault("a.toml", text) is None


@pytest.mark.parametrize("text", ["type = 1 +\n", "def f[T(x):\n    pass\n", "except A, B:\n"])
def test_a_fault_beside_newer_words_is_one(text: str) -> None:
    assert syntax_check.find_fault("a.py", text) is not None
