"""Names that differ only in normal form or case are one name: Design, replies as chats give them."""

import json
import unicodedata
from pathlib import Path

import pytest

from codingagent.agent import wanted_files
from codingagent.agent.spelling import Spellings
from codingagent.context.rank import named_in
from codingagent.model import paths
from codingagent.policy.rules import Policy
from codingagent.workspace.workspace import Workspace
from tests.helpers import LiveSession, plain_session
from tests.killing import settings_for


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


TEXT = "one\ntwo\n"
EDIT = "<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n"
# The name on disk, the name in the answer.
NAMES = [
    (nfd("café.txt"), "café.txt"),
    ("café.txt", nfd("café.txt")),
    (nfd("한글.txt"), "한글.txt"),
    (nfd("Résumés/tiếng Việt.md"), "Résumés/tiếng Việt.md"),
    ("README.md", "Readme.md"),
    ("Src/Main.py", "src/main.py"),
    ("ПРИВЕТ.txt", "привет.txt"),
    (nfd("Été/Ö.txt"), "été/ö.txt"),
    ("it's a-b.txt", "it’s a\u2011b.txt"),
    ("l’été/a&b.txt", "l'été/a&amp;b.txt"),
    ("a.txt", "`a.txt`"),
    ("src/a.txt", "src/a.txt,"),
]


def answered(tmp_path: Path, files: dict[str, str], reply: str) -> tuple[str, dict[str, str], str]:
    """Return the results, the files after an answer, and the contents that the next request shows."""
    workspace = tmp_path / "workspace"
    for path, text in files.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    with plain_session(tmp_path, settings=settings_for("none")) as live:
        said = live.answer(reply)
        return said, laid(live), live.contents()


def laid(live: LiveSession) -> dict[str, str]:
    found = (path for path in live.workspace.rglob("*") if path.is_file())
    return {path.relative_to(live.workspace).as_posix(): path.read_text() for path in found}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("there", "said"), NAMES)
def test_a_file_in_another_spelling_is_that_file(tmp_path: Path, there: str, said: str) -> None:
    """Each operation takes the one that stands there, and says so; no second one is made."""
    reply = (
        f'[READ_FILE path="{said}"]\n[EDIT_FILE path="{said}"]\n{EDIT}[/EDIT_FILE]\n'
        f'[CREATE_FILE path="{said}"]\nnew\n[/CREATE_FILE]\n'
        f'[MOVE_FILE path="{said}" to="other.txt"]\n[MOVE_FILE path="other.txt" to="{there}"]\n'
    )
    results, files, shown = answered(tmp_path, {there: TEXT}, reply)
    assert "[FAILED]" not in results
    assert results.count(f"'{said}' was taken as '{there}', which is there") == 4
    assert files == {there: "new\n"}
    assert f"--- {there} " in shown
    results, files, _ = answered(tmp_path, {}, f'[DELETE_FILE path="{said}"]\n')
    assert (results[:4], files) == ("[OK]", {})


@pytest.mark.parametrize(("there", "said"), NAMES[:2])
def test_json_operations_mean_the_same_file(tmp_path: Path, there: str, said: str) -> None:
    """A path is data in JSON, too."""
    operation = {"id": "1", "type": "deleteFile", "path": said}
    reply = json.dumps({"protocolVersion": "1.0", "operations": [operation]})
    results, files, _ = answered(tmp_path, {there: TEXT}, reply)
    assert (results[:4], files) == ("[OK]", {}), results


@pytest.mark.parametrize(("there", "said"), [("README.md", "Readme.md"), NAMES[0], NAMES[1]])
def test_a_move_to_another_spelling_is_a_new_name(tmp_path: Path, there: str, said: str) -> None:
    """So a name can be put right."""
    for number, source in enumerate((there, said)):
        reply = f'[MOVE_FILE path="{source}" to="{said}"]\n'
        _, files, _ = answered(tmp_path / str(number), {there: TEXT}, reply)
        assert files == {said: TEXT}


def test_a_move_onto_a_file_in_another_spelling_needs_its_yes(tmp_path: Path) -> None:
    """The target is that file."""
    reply = '[MOVE_FILE path="a" to="Readme.md"]\n'
    said, files, _ = answered(tmp_path, {"README.md": TEXT, "a": "a\n"}, reply)
    assert "'README.md' already exists" in said
    assert files == {"README.md": TEXT, "a": "a\n"}


def test_what_is_there_exactly_wins(tmp_path: Path) -> None:
    """Repositories hold both x.h and X.h."""
    files = {"README.md": TEXT, "Readme.md": TEXT}
    reply = f'[EDIT_FILE path="Readme.md"]\n{EDIT}[/EDIT_FILE]\n'
    said, after, _ = answered(tmp_path, files, reply)
    assert after == {"README.md": TEXT, "Readme.md": "one\n2\n"}
    assert "was taken" not in said


@pytest.mark.parametrize(
    "reply",
    [
        f'[EDIT_FILE path="readme.md"]\n{EDIT}[/EDIT_FILE]\n',
        '[CREATE_FILE path="readme.md"]\nnew\n[/CREATE_FILE]\n',
        '[DELETE_FILE path="readme.md"]\n',
        '[MOVE_FILE path="a" to="readme.md"]\n',
    ],
)
def test_two_that_fit_are_refused_and_named(tmp_path: Path, reply: str) -> None:
    """Nothing is guessed between two."""
    files = {"README.md": TEXT, "Readme.md": TEXT, "a": "a\n"}
    said, after, _ = answered(tmp_path, files, reply)
    assert after == files
    assert "'readme.md' is not there, but 'README.md' and 'Readme.md' are" in said


def test_of_two_folders_the_one_that_holds_the_file_is_meant(tmp_path: Path) -> None:
    """A new file between two folders is refused; a new file in one is made there, not beside it."""
    files = {"Doc/a.txt": TEXT, "DOC/b.txt": TEXT, "Lib/a.txt": TEXT}
    reply = (
        '[DELETE_FILE path="doc/A.txt"]\n[CREATE_FILE path="doc/c"]\nc\n[/CREATE_FILE]\n'
        '[CREATE_FILE path="lib/c"]\nc\n[/CREATE_FILE]\n'
    )
    said, after, _ = answered(tmp_path, files, reply)
    assert after == {"DOC/b.txt": TEXT, "Lib/a.txt": TEXT, "Lib/c": "c\n"}
    assert "'doc/c' is not there, but 'DOC/c' and 'Doc/c' are" in said


def test_what_an_answer_makes_is_known_to_the_rest_of_it(tmp_path: Path) -> None:
    """A file made, moved or made by a command is found in another spelling; one deleted is not."""
    reply = (
        '[CREATE_FILE path="Sub/New.txt"]\none\ntwo\n[/CREATE_FILE]\n'
        f'[EDIT_FILE path="sub/new.txt"]\n{EDIT}[/EDIT_FILE]\n'
        '[DELETE_FILE path="SUB/NEW.TXT"]\n'
        '[CREATE_FILE path="Sub/new.txt"]\nagain\n[/CREATE_FILE]\n'
        "[RUN_COMMAND]echo c > By.txt[/RUN_COMMAND]\n"
        '[DELETE_FILE path="by.txt"]\n'
    )
    _, after, _ = answered(tmp_path, {}, reply)
    assert after == {"Sub/new.txt": "again\n"}


@pytest.mark.parametrize(
    ("reply", "made"),
    [
        ('[CREATE_FILE path="workspace/src/a.txt"]\nnew\n[/CREATE_FILE]\n', ""),
        ('[CREATE_FILE path="b/src/a.txt"]\nnew\n[/CREATE_FILE]\n', ""),
        ('[CREATE_FILE path="path/to/src/a.txt"]\nnew\n[/CREATE_FILE]\n', ""),
        (
            '[RUN_COMMAND]mkdir b[/RUN_COMMAND]\n[CREATE_FILE path="b/src/a.txt"]\nnew\n[/CREATE_FILE]\n',
            "b/src/a.txt",
        ),
        ('[CREATE_FILE path="lib/src/a.txt"]\nnew\n[/CREATE_FILE]\n', "lib/src/a.txt"),
        ('[CREATE_FILE path="b/src/new.txt"]\nnew\n[/CREATE_FILE]\n', "b/src/new.txt"),
    ],
)
def test_a_file_below_a_name_of_the_workspace_is_asked_about(tmp_path: Path, reply: str, made: str) -> None:
    """No twin of it is made."""
    said, after, _ = answered(tmp_path, {"src/a.txt": TEXT}, reply)
    assert after == {"src/a.txt": TEXT} | ({made: "new\n"} if made else {})
    assert bool(made) is not ("write 'src/a.txt', or make that folder first" in said)


def test_a_file_may_move_below_such_a_name(tmp_path: Path) -> None:
    reply = '[MOVE_FILE path="src/a.txt" to="workspace/src/a.txt"]\n'
    assert answered(tmp_path, {"src/a.txt": TEXT}, reply)[1] == {"workspace/src/a.txt": TEXT}


def test_the_sharp_s_is_a_letter_of_its_own(tmp_path: Path) -> None:
    """Two files that people have."""
    reply = '[CREATE_FILE path="strasse.txt"]\nnew\n[/CREATE_FILE]\n'
    _, after, _ = answered(tmp_path, {"straße.txt": TEXT}, reply)
    assert after == {"straße.txt": TEXT, "strasse.txt": "new\n"}


def test_each_folder_is_listed_once(tmp_path: Path) -> None:
    """Thousands of new files in one folder cost one look at it."""
    listed: list[str] = []

    class Counted(Workspace):
        def names(self, folder: str = ".") -> list[str]:
            listed.append(folder)
            return super().names(folder)

    spellings = Spellings(Counted(tmp_path))
    for number in range(20):
        name = f"x{number}.txt"
        assert spellings.of(name) == [name]
        (tmp_path / name).write_text("")
        spellings.add(name)
    assert spellings.of("X7.TXT") == ["x7.txt"]
    assert listed == ["."]


def test_the_person_and_the_task_may_spell_otherwise_too(tmp_path: Path) -> None:
    """`--attach`, globs, and what a task names."""
    there = [nfd("café.txt"), "README.md", nfd("Plan/Übersicht.md"), "ไฟล์.txt"]
    for path in there:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(TEXT)
    assert named_in("Mend café.txt, Readme.md, übersicht.md และ ไฟล์.txt", there) == {*there}
    workspace = Workspace(tmp_path)
    given = ["café.txt", "readme.md", "plan/Übersicht.md"]
    found, _ = wanted_files.attachable(workspace, given, tmp_path, Policy("mine"))
    assert list(found) == there[:3]
    assert paths.glob_matcher("caf?.*")(there[0])
