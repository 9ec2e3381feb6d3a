"""Citation marks of chats, and marks of direction: in tags, values, bodies and words."""

from pathlib import Path

import pytest

from codingagent.editing import apply, body_rules
from codingagent.errors import OperationError
from codingagent.model import citations
from codingagent.model.chat_damage import AS_IT_IS
from codingagent.model.citations import FORMS
from codingagent.model.operations import CreateFile, Finish, Replacement, ShowMessage
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Step
from tests.helpers import plain_session
from tests.rows import each_row

PRIVATE = "\ue200cite\ue202turn0search1\ue202turn0search3\ue201"
MARKS = {
    form.example: PRIVATE if form.example.startswith("U+") else form.example.replace("…", "")
    for form in FORMS
}
BESIDE = ["[1]", "[1][2]", "[1], [2]", "[[1]](http://a.b)", "[source](http://a.b)", "¹", "【1】", "([a][1])"]
TURNS = ["\u200f", "\u200e", "\u061c", "\u202a", "\u202b", "\u202e", "\u2066", "\u2067", "\u2068"]
DAGGER = "【12†source】"
OAICITE = ":contentReference[oaicite:2]{index=2}"


def steps(text: str) -> list[Step]:
    found = reply.read(text)
    assert all(isinstance(item, Step) for item in found.items), found.items
    return [item for item in found.items if isinstance(item, Step)]


@each_row("mark", [*MARKS.values(), *BESIDE])
@each_row("place", ["{0} {1}", "{0}{1}", "{1}{0}"])
def test_marks_beside_tags_cost_no_block(mark: str, place: str) -> None:
    """Design, replies as chats really give them: in tags damage is undone always, and said."""
    opening, closing = (place.format(tag, mark) for tag in ('[CREATE_FILE path="a.py"]', "[/CREATE_FILE]"))
    end = place.format("[END]", mark)
    (step,) = steps(f'[REPLY session="a1b2c3d4" sequence="1"] {mark}\n{opening}\nx = 1\n{closing}\n{end}\n')
    assert isinstance(step.operation, CreateFile)
    assert (step.operation.path, step.operation.content) == ("a.py", "x = 1\n")
    assert "citation marks" in " ".join(step.notes)


@each_row("mark", MARKS.values())
def test_marks_within_a_tag_are_no_part_of_its_values(mark: str) -> None:
    for tag in (f'[READ_FILE path="a.py{mark}"]', f'[READ_FILE path="a.py" {mark}]'):
        if '"' in mark:
            continue  # it ends the value
        (step,) = steps(f"{tag}\n")
        assert getattr(step.operation, "path", "") == "a.py"


@each_row("mark", MARKS.values())
def test_what_the_person_is_told_has_no_marks(mark: str) -> None:
    """Each repair is named; what the words show as code is meant."""
    message, done = steps(
        f"[MESSAGE]\nTax is added{mark}. See `{mark}`.\n[/MESSAGE]\n[DONE]\nAdded it {mark}\n[/DONE]\n"
    )
    assert message.operation == ShowMessage(f"Tax is added. See `{mark}`.")
    assert done.operation == Finish("Added it")
    assert all("citation marks were removed" in " ".join(step.notes) for step in (message, done))


@each_row(
    ("path", "body", "expected"),
    [
        ("a.py", "x = 1 {}\ny = 2\n", "x = 1\ny = 2\n"),
        ("a.py", "x = 1  # the tax {}\n", "x = 1  # the tax\n"),
        ("a.py", 'def f():\n    """Add {}."""\n', 'def f():\n    """Add."""\n'),
        ("a.py", 'print("Added. {}")\n', 'print("Added.")\n'),
        ("a.py", "x = 1\n{}\ny = 2\n", "x = 1\ny = 2\n"),
        ("a.go", "x := 1 {}\n", "x := 1\n"),
        ("a.json", '{{"a": 1}} {}\n', '{{"a": 1}}\n'),
        ("README.md", "It adds tax. {}\n", "It adds tax.\n"),
        # It handles such marks, or its file does.
        ("a.py", 'MARK = "{}"\n', None),
        ("a.py", 'assert strip("See {}") == "See"\n', None),
        ("a.py", "def without_citations(t):\n    return t  # {}\n", None),
        ("README.md", "Marks such as `{0}` go.\n", "Marks such as `{0}` go.\n"),
    ],
)
@each_row(
    "mark",
    [
        *(OAICITE, DAGGER, PRIVATE, "[cite_start]", "citeturn0search1", "citeturn0file0"),
        *("[oai_citation:1‡a.py](sandbox:/mnt/data/a.py)", "([oai_citation:0‡b.org](https://b.org))"),
        *("[F:src/a.py†L10-L20]", "〖3:1†a.py〗"),
    ],
)
def test_a_mark_that_only_a_chat_writes(mark: str, path: str, body: str, expected: str | None) -> None:
    """Taken off where it can't be meant; asked about in a program that handles such marks."""
    if expected is None:
        with pytest.raises(OperationError, match="citation marks"):
            body_rules.mend_file(body.format(mark), path, AS_IT_IS)
        return
    found = body_rules.mend_file(body.format(mark), path, AS_IT_IS)
    assert found.text == expected.format(mark)
    assert "citation mark" in " ".join(found.notes)


@each_row("mark", MARKS.values())
def test_search_text_stands_on_disk_only_without_marks(mark: str) -> None:
    """Certain: REPLACE came the same way."""
    edit = (Replacement(f"x = 1 {mark}\n", f"x = 2 {mark}\nz = 3\n"),)
    edited = apply.apply(edit, "a = 0\nx = 1\n", AS_IT_IS, path="a.py")
    assert edited.text == "a = 0\nx = 2\nz = 3\n"
    assert "citation marks" in " ".join(edited.notes)


# --- marks of direction ------------------------------------------------------------------------------

ANSWER = (
    '[REPLY session="a1b2c3d4" sequence="1"]\nشرح التغيير:\n\n[CREATE_FILE path="a.py"]\ndef f():\n'
    "    return 'שלום'\n[/CREATE_FILE]\n[DONE]\nתוקן\n[/DONE]\n[END]\n"
)


@each_row("turn", TURNS)
@each_row("end", ["", "\u202c", "\u2069"])
def test_a_direction_mark_before_each_line(turn: str, end: str) -> None:
    lines = [f"{turn}{line}{end}" if line else line for line in ANSWER.split("\n")]
    create, done = steps("\n".join(lines))
    assert isinstance(create.operation, CreateFile)
    body = body_rules.mend_file(str(create.operation.content), "a.py", AS_IT_IS)
    assert body.text == "def f():\n    return 'שלום'\n"
    assert isinstance(done.operation, Finish)


@each_row("turn", TURNS)
def test_a_direction_mark_beside_tags(turn: str) -> None:
    tag = f'{turn}[CREATE_FILE path="a.py"]{turn}'
    (step,) = steps(f"שינוי:\n{tag}\nx = 1\n{turn}[/CREATE_FILE]{turn}\n{turn}[END]\n")
    assert getattr(step.operation, "path", "") == "a.py"
    assert getattr(step.operation, "content", "") == "x = 1\n"
    assert "direction marks" in " ".join(step.notes)


@each_row("turn", TURNS)
def test_direction_marks_in_bodies(turn: str) -> None:
    """Before each line, or before code, they are the chat's; within a line they are the text's."""
    body = f"{turn}def f():\n{turn}    return 1\n"
    assert body_rules.mend_file(body, "a.py", AS_IT_IS).text == "def f():\n    return 1\n"
    inner = f"x = 'a{turn}b'\n"
    assert body_rules.mend_file(inner, "a.py", AS_IT_IS).text == inner
    old = f"{turn}one\n{turn}two\n"
    assert body_rules.mend_file(f"{old}{turn}three\n", "a.md", AS_IT_IS, old).text == f"{old}{turn}three\n"
    edit = (Replacement(f"{turn}x = 1\n", f"{turn}x = 2\n"),)
    assert apply.apply(edit, "x = 1\n", AS_IT_IS, path="a.py").text == "x = 2\n"


def test_each_form_is_found_by_its_traces() -> None:
    for form in FORMS:
        mark = MARKS[form.example]
        assert form in citations.forms_in(mark)
        assert not citations.without(f"{mark}").strip()


def test_a_turned_line_in_a_program_is_said(tmp_path: Path) -> None:
    """Trojan source: written so, and the result says where; not again for a file that has it."""
    with plain_session(tmp_path) as live:
        body = "x = 1\n# \u202e x = 2 \u202c\n"
        said = live.answer(f'[CREATE_FILE path="a.py"]\n{body}[/CREATE_FILE]\n')
        assert "line 2 contains U+202E, which is invisible" in said
        assert (live.workspace / "a.py").read_text("utf-8") == body
        said = live.answer(
            '[EDIT_FILE path="a.py" start_line="1" end_line="1"]\nx = 3\n[/EDIT_FILE]\n', "b.txt"
        )
        assert "U+202E, which" not in said.partition("=== PROMPT")[0].rpartition("Turn 2")[2]
