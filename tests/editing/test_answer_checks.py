"""What an answer must not make of a file: Design, replies as chats really give them."""

import itertools

import pytest

from codingagent.editing import answer_checks
from codingagent.errors import OperationError
from codingagent.model.operations import (
    CreateFile,
    DeleteFile,
    EditFile,
    LineRange,
    Operation,
    Replacement,
    RunCommand,
    Substitution,
    Substitutions,
)
from tests.editing.test_edit_markers import SPELLINGS
from tests.rows import each_row

OLD = "a = 1\nb = 2\n"
MARKED = "<<<<<<< SEARCH\nb = 2\n=======\nb = 3\n>>>>>>> REPLACE\n"
CONFLICT = "<<<<<<< HEAD\nb = 2\n=======\nb = 3\n>>>>>>> topic\n"


def refusal(whole: CreateFile, old: str | None) -> str:
    with pytest.raises(OperationError) as fault:
        answer_checks.check_no_edits(whole, old)
    return fault.value.reason


# --- text full of markers --------------------------------------------------------------------------


@each_row("path, spelling", itertools.product(["a.go", "notes.md", "a.py"], SPELLINGS[:-1]))
@each_row("before", ["", "\n", "a = 1\n"])
def test_edits_in_place_of_a_file_are_asked_for_again(
    path: str, spelling: tuple[str, str, str], before: str
) -> None:
    """They never take the place of the file, be they all of the text or among other lines."""
    opening, middle, closing = spelling
    text = f"{before}{opening}\nb = 2\n{middle}\nb = 3\n{closing}\n"
    reason = refusal(CreateFile(path, text), OLD)
    line = 1 + bool(before)
    assert reason.startswith(f"The body contains an edit, {opening} at its line {line}; such text never")
    assert 'send it with until="TOKEN"' in reason


def test_edits_that_lack_a_marker_or_a_file_are_asked_for_again() -> None:
    broken = MARKED.replace("=======\n", "")
    for text, old in ((broken, OLD), (MARKED, None)):
        assert "at its line 1; such text never" in refusal(CreateFile("a.py", text), old)


@each_row(
    ("whole", "old"),
    [
        # As it was, and another; new documentation; a string of a program; an example in a text.
        (CreateFile("a.go", f"{CONFLICT}x\n{MARKED}"), f"x\n{CONFLICT}"),
        (CreateFile("a.txt", MARKED), None),
        (CreateFile("a.go", f"x\n{MARKED}"), None),
        (CreateFile("a.py", f'T = """\n{MARKED}"""\n'), OLD),
        (CreateFile("a.toml", f"t = '''\n{MARKED}'''\n"), "a = 1\n"),
        (CreateFile("a.md", f"How:\n\n```text\n{MARKED}```\n"), "How?\n"),
        (CreateFile("a.rst", "How::\n\n" + "".join(f"    {x}\n" for x in MARKED.split("\n"))), "x\n"),
        (CreateFile("a.py", f"x\n{MARKED}", arrival=None), OLD),
        (CreateFile("a.py", MARKED, unchecked=True), OLD),
        (CreateFile("a.bin", MARKED.encode()), OLD),
        (CreateFile("a.md", "Title\n=======\n\n>>>>>>> quoted\n"), OLD),
    ],
)
def test_markers_that_are_meant_are_text(whole: CreateFile, old: str | None) -> None:
    """A clean answer is taken to the byte: the file, its grammar or the answer shows that it is one."""
    answer_checks.check_no_edits(whole, old)


# --- files that could be parsed --------------------------------------------------------------------


def check(
    operation: CreateFile | EditFile, old: str | None, *later: Operation, is_json: bool = False
) -> tuple[str, ...]:
    if isinstance(operation, CreateFile):
        assert isinstance(operation.content, str)
        new = operation.content
    else:
        assert old is not None
        new = answer_checks.apply_edit(operation, old).text
    return answer_checks.check_reading(operation, old, new, later, is_json=is_json)


def fault(*args: object, is_json: bool = False) -> OperationError:
    with pytest.raises(OperationError) as raised:
        check(*args, is_json=is_json)  # type: ignore[arg-type]  # as there
    return raised.value


def test_a_file_that_could_be_parsed_and_no_longer_would_is_asked_for_again() -> None:
    """With the line, the parser's words, the lines as they would be, and how to say that it is meant."""
    found = fault(CreateFile("a.py", "a = 1\nb = (2\n"), OLD)
    assert found.reason == (
        "'a.py' parses now and would not after this: line 2: '(' was never closed. Nothing was"
        " changed; send it again so that the file parses after it, with all that belongs to it in the same"
        ' answer and no command in between. If it is intended, add unchecked="true" to the opening tag of the'
        " block"
    )
    assert found.detail == "The lines would then be:\n1 | a = 1\n2 | b = (2\n3 | "


@each_row(
    ("operation", "old"),
    [
        (EditFile("a.py", (Replacement("b = 2\n", "b = (2\n"),)), OLD),
        (EditFile("a.py", LineRange(2, 2, "  b = 2\n")), OLD),
        (EditFile("a.py", Substitutions((Substitution("2", "2)"),))), OLD),
        (CreateFile("a.json", '{"a": 1,}\n'), "{}"),
        (EditFile("a.json", (Replacement('{"a": 1}\n', '{"a": 1\n'),)), '{"a": 1}\n'),
        (CreateFile("pyproject.toml", "[a\n"), "[a]\n"),
        (CreateFile("a.pyi", "def f(: ...\n"), ""),
    ],
)
def test_every_change_of_every_kind_is_judged(operation: CreateFile | EditFile, old: str) -> None:
    """Whole files and edits, Python, JSON and TOML."""
    assert "parses now" in fault(operation, old).reason
    assert "shell operation" in fault(operation, old, is_json=True).reason


@each_row(
    ("operation", "old"),
    [
        # New, broken before, said to be meant, of another kind.
        (CreateFile("a.py", "x = (\n"), None),
        (CreateFile("a.py", "x = (\n"), "y = (\n"),
        (CreateFile("a.py", "print 'x'\n"), "print 'y'\n"),
        (CreateFile("a.py", "x = (\n", unchecked=True), OLD),
        (EditFile("a.py", LineRange(2, 2, "(\n"), unchecked=True), OLD),
        (CreateFile("a.rb", "x = (\n"), OLD),
        (CreateFile("tsconfig.json", "{ // x\n}\n"), "{}\n"),
    ],
)
def test_other_changes_are_not_judged(operation: CreateFile | EditFile, old: str | None) -> None:
    """Only a file that could be parsed can be broken."""
    assert check(operation, old) == ()


def test_changes_of_one_file_are_judged_by_what_all_of_them_make_of_it() -> None:
    """A renamed bracket takes two edits: the first alone breaks the file."""
    first = EditFile("a.py", (Replacement("a = 1\n", "a = (1,\n"),))
    second = EditFile("a.py", (Replacement("b = 2\n", "2)\n"),))
    other = CreateFile("b.py", "x\n")
    misfit = EditFile("a.py", (Replacement("c = 3\n", "c = 4\n"),))
    note = "until the changes after this one, 'a.py' does not parse (line 1: '(' was never closed)"
    mending: list[list[Operation]] = [
        [other, misfit, second],
        [CreateFile("a.py", OLD)],
        [EditFile("a.py", LineRange(2, 2, "2)\n")), misfit],
        [DeleteFile("a.py")],
    ]
    for later in mending:
        assert check(first, OLD, *later) == (note,)
    not_mending: list[list[Operation]] = [
        [],
        [misfit],
        [DeleteFile("b.py"), other],
        # A command would see the file as it can't be read.
        [RunCommand("pytest"), second],
        [*[misfit] * 20, second],
    ]
    for later in not_mending:
        assert "parses now" in fault(first, OLD, *later).reason
    # The last one finds it unreadable already, and may leave it so.
    assert check(EditFile("a.py", LineRange(1, 1, "a = (2,\n")), "a = (1,\nb = 2\n") == ()


CLASS = "class A:\n    def f(self):\n        return self.__class__\n"


@pytest.mark.parametrize("old", [None, CLASS, "("])
def test_a_file_whose_indentation_is_gone_is_asked_for_again(old: str | None) -> None:
    """A line opens a block and the next is no deeper: nobody writes that, whatever was there before."""
    shallow = CLASS.replace("\n    ", "\n")
    found = fault(CreateFile("a.py", shallow), old)
    assert found.reason.startswith(
        "The body looks damaged by the chat: its indentation is gone (line 2: expected an indented block"
        " after class definition on line 1). Nothing was written; send it again in a code block."
    )
    assert check(CreateFile("a.py", shallow, unchecked=True), old) == ()
    if old is None:
        assert check(CreateFile("a.py", shallow, arrival=None), old) == ()


def test_underscores_that_are_gone_are_asked_for_again() -> None:
    """`__class__` was shown in bold; the text can be parsed, and is another."""
    bare = CLASS.replace("__", "")
    assert "'a.py' would have class for __class__" in fault(CreateFile("a.py", bare), CLASS).reason
    assert check(CreateFile("a.py", bare, unchecked=True), CLASS) == ()
    assert check(CreateFile("a.py", bare), None) == ()
