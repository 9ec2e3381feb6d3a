"""Edits in another format beside commands of ours: what is done, in which order, and what is named."""

from codingagent.model.operations import CreateFile, EditFile, Finish, MoveFile, RunCommand, ShowMessage
from codingagent.protocols.foreign import items, parser
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Problem, Reply, Step
from tests.rows import each_row

FILES = {"a.py", "b.py", "old.py"}
DONE = "[DONE]\nAll of it.\n[/DONE]\n"
RUN = "[RUN_COMMAND]\npytest\n[/RUN_COMMAND]\n"
SAY = "[MESSAGE]\nHere it is.\n[/MESSAGE]\n"


def search(path: str, old: str, new: str) -> str:
    return f"{path}\n```python\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n```\n"


def whole(path: str, text: str) -> str:
    return f"### {path}\n\n```python\n{text}\n```\n"


def read(text: str) -> Reply:
    found = reply.read(text)
    return items.mixed(found, parser.read(found.beside, FILES), "asked")


def kinds(found: Reply) -> list[object]:
    return [
        type(item.operation) if isinstance(item, Step) else f"{item.kind}: {item.reason}"
        for item in found.items
    ]


@each_row(
    ("text", "has_others"),
    [
        (f'````\n[REPLY sequence="1"]\n{SAY}{RUN}\n{DONE}[END]\n````\n', False),
        (f"Here it is:\n\n```text\n{SAY}```\n\n~~~~\n{RUN}\n~~~~\nThat is all.\n", False),
        (f"````\n{SAY}````\n\n```python\nx\n```\n", True),
        (f"````\n{SAY}a.py\n````\n", True),
        (f"```python\nx\n```\n```\n{SAY}```\n", True),
        (f"````\n{SAY}", True),
    ],
)
def test_a_fence_around_blocks_alone_is_no_other_format(text: str, *, has_others: bool) -> None:
    assert bool(reply.read(text).beside) is has_others


def test_an_edit_that_names_its_file_is_done_in_its_place() -> None:
    """Design, replies: beside blocks of ours they go the same way where they can't be meant otherwise."""
    found = read(f"{SAY}\n{search('a.py', 'a', 'b')}\n{RUN}\n{whole('new.py', 'x')}\n{DONE}")
    assert kinds(found) == [ShowMessage, EditFile, RunCommand, CreateFile, Finish]
    edit, made = found.items[1], found.items[3]
    assert isinstance(edit, Step)
    assert isinstance(made, Step)
    assert (edit.foreign, made.foreign) == ("asked", "asked")
    assert (edit.line, made.line) == (7, 20)
    assert found.notes == (
        "2 edits in another format next to the operations were applied, too: write operations next time",
    )


def test_what_is_not_certain_is_named_first() -> None:
    """Design, replies: else they are named first in the results. So a DONE after them does not count."""
    found = read(f"{RUN}\n{whole('a.py', 'x')}\n{DONE}")
    assert kinds(found) == [
        (
            "CREATE_FILE: The part at line 7 was not used: 'a.py' exists, and this may be a part of it;"
            ' if it is intended, send [CREATE_FILE path="a.py"] with all of it, or [EDIT_FILE path="a.py"]'
        ),
        RunCommand,
        Finish,
    ]


def test_an_edit_that_can_not_be_read_is_named_first() -> None:
    found = read(f"{RUN}\n{search('b', 'a', 'b').removeprefix('b')}\n{DONE}")
    assert kinds(found)[0] == (
        "SEARCH/REPLACE: SEARCH/REPLACE at line 7 was not used: no path is above it; write 'File:' and"
        " its path on the line above it"
    )
    assert isinstance(found.items[0], Problem)


def test_an_edit_of_a_file_that_a_command_changes_comes_after_it() -> None:
    """Where it only repeats the command, the file holds it then, and nothing is done twice."""
    command = '[EDIT_FILE path="a.py"]\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n[/EDIT_FILE]\n'
    found = read(f"{search('a.py', 'a', 'b')}\n{command}\n{RUN}\n{DONE}")
    assert kinds(found) == [EditFile, EditFile, RunCommand, Finish]
    assert [item.foreign for item in found.items if isinstance(item, Step)][:2] == ["no", "asked"]


def test_a_whole_file_that_a_command_writes_too_is_taken_once() -> None:
    command = '[CREATE_FILE path="new.py"]\nx\n[/CREATE_FILE]\n'
    same = read(f"{command}\n{whole('new.py', 'x')}\n{DONE}")
    assert kinds(same) == [CreateFile, Finish]
    assert same.notes == ("line 7 repeats what an operation does",)
    other = read(f"{command}\n{whole('new.py', 'y')}\n{DONE}")
    assert "is changed by an operation, too" in str(kinds(other)[0])
    assert kinds(other)[1] is CreateFile


def test_what_comes_after_done_is_named() -> None:
    """Design, tag blocks: after DONE nothing more is executed."""
    found = read(f"{RUN}\n{DONE}\n{search('a.py', 'a', 'b')}")
    first, _, last = kinds(found)
    assert "it changes 'a.py' after DONE; send it as an operation before DONE" in str(first)
    assert last is Finish


def test_a_deletion_in_words_is_asked_for_unless_a_command_does_it() -> None:
    text = "### Deleted file: `old.py`\n\n"
    assert "it says that 'old.py' is deleted; send [DELETE_FILE" in str(
        kinds(read(f"{text}{RUN}\n{DONE}"))[0]
    )
    for command in ('[DELETE_FILE path="old.py"]\n', "[RUN_COMMAND]\nrm old.py\n[/RUN_COMMAND]\n"):
        assert DONE not in text
        assert [k for k in kinds(read(f"{text}{command}{DONE}")) if isinstance(k, str)] == []
        assert len(read(f"{text}{command}{DONE}").items) == 2


def test_a_renaming_in_words_is_asked_for_unless_a_command_does_it() -> None:
    text = "### Renamed file: `old.py` to `new.py`\n\n"
    assert "RENAME: What is said at line 1 was not used: it renames" in str(
        kinds(read(f"{text}{RUN}{DONE}"))[0]
    )
    done = read(f"{text}[RUN_COMMAND]\nmv old.py new.py\n[/RUN_COMMAND]\n{DONE}")
    assert kinds(done) == [RunCommand, Finish]


def test_a_fence_around_a_command_is_no_file() -> None:
    """Chats show a command in a code block under the path that it writes."""
    command = '[CREATE_FILE path="b.py"]\nx\n[/CREATE_FILE]'
    for fence in ("```", "````text"):
        marks = fence.rstrip("tex")
        text = f"### b.py\n\n{fence}\n{command}\n{marks}\n\n{whole('new.py', 'y')}{DONE}"
        assert kinds(read(text)) == [CreateFile, CreateFile, Finish]
    everything = f"````\n{command}\n\n{search('a.py', 'a', 'b')}\n{DONE}````\n"
    assert kinds(read(everything)) == [CreateFile, EditFile, Finish]


def test_what_a_command_holds_is_its_own() -> None:
    """Markers and fences in a body are body, whatever they look like."""
    body = search("a.py", "a", "b") + "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"
    text = f'Look: `x`\n\n<b>\n[CREATE_FILE path="doc.md" until="E"]\n{body}[/CREATE_FILE E]\n{DONE}'
    assert kinds(read(text)) == [CreateFile, Finish]


def test_code_that_names_no_file_is_no_edit() -> None:
    """An example in the text is said nowhere, and the task ends."""
    found = read(f"For example:\n\n```python\nx = 1\n```\n\n```sh\nls\n```\n\n{RUN}{DONE}")
    assert (kinds(found), found.notes) == ([RunCommand, Finish], ())
    named = read(f"In `a.py` it says:\n\n```python\nx = 1\n```\n\n{RUN}{DONE}")
    assert kinds(named) == [RunCommand, Finish]
    assert "the block at line 3 was not used: 'a.py' is named at line 1" in named.notes[0]


def test_a_piece_of_what_a_command_writes_is_no_edit() -> None:
    """Chats show what they change before they send it."""
    command = (
        '[EDIT_FILE path="a.py"]\n<<<<<<< SEARCH\ndef a():\n    pass\n=======\ndef a():\n    return 1\n'
        ">>>>>>> REPLACE\n[/EDIT_FILE]\n"
    )
    piece = whole("a.py", "def a():\n    return 1")
    found = read(f"{piece}\n{command}\n{DONE}")
    assert kinds(found) == [EditFile, Finish]
    other = read(f"{whole('a.py', 'return 2')}\n{command}\n{DONE}")
    assert "is changed by an operation, too" in str(kinds(other)[0])


def test_a_move_stays_behind_the_edit_that_it_needs() -> None:
    lines = "@@ -1 +1 @@\n-a\n+b\n"
    names = "diff --git a/a.py b/c.py\nrename from a.py\nrename to c.py\n--- a/a.py\n+++ b/c.py\n"
    edit = '[EDIT_FILE path="a.py" start_line="9" end_line="9"]\nz\n[/EDIT_FILE]\n'
    for before, behind in ((RUN, ""), ("", RUN), (RUN, edit)):
        found = read(f"{before}\n```diff\n{names}{lines}```\n\n{behind}\n{DONE}")
        order = [kind for kind in kinds(found) if kind in (EditFile, MoveFile)]
        assert order[-2:] == [EditFile, MoveFile]
