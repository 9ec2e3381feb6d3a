"""DONE counts if it is true: everything of its answer succeeded, and nothing of it is left."""

import json
from pathlib import Path

import pytest

from codingagent.model.journal_entries import Protocol
from codingagent.model.settings import Settings
from tests.agent.test_requests_asked import (
    BAD_JSON_EDIT,
    DONE,
    EDIT,
    command,
    create,
    message,
    short,
    working,
)
from tests.helpers import LiveSession, plain_session
from tests.killing import command_line_here, kill_when

END = {"type": "message", "content": "DONE: It works."}


def answered(live: LiveSession, text: str | bytes) -> str:
    """Return the results of an answer, with blanks folded; "" if it ended the task."""
    live.drop(text)
    live.conversation.take("reply.txt")
    if live.conversation.session.is_complete:
        return ""
    return " ".join(live.request().partition("## Previous Command Results\n")[2].split())


@pytest.mark.parametrize(
    "answer",
    [
        DONE,
        "[DONE]\n",
        create("b.py", "x = 1") + command("test -e b.py") + DONE,
        '[READ_FILE path="a.py"]\n' + DONE,
        "[MESSAGE]\nNothing is to be done.\n[/MESSAGE]\n" + DONE,
        create("b.py", "x = 1") + DONE + "[END]\nIt works now.\n",
        create("b.py", "x = 1") + DONE + DONE,
    ],
)
@pytest.mark.one_in(2)
def test_it_ends_the_task_after_what_succeeded(tmp_path: Path, answer: str) -> None:
    """Design, after DONE: it completes the session if everything of the same answer succeeded."""
    with working(tmp_path) as live:
        assert answered(live, answer) == ""


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (EDIT + DONE, "EDIT_FILE 'a.py'"),
        (command("exit 3") + DONE, "RUN_COMMAND 'exit 3'"),
        (EDIT + create("b.py", "x = 1") + command("exit 3") + DONE, "EDIT_FILE 'a.py', RUN_COMMAND 'exit 3'"),
        (command("sudo true") + DONE, "RUN_COMMAND 'sudo true'"),
        ('[CREATE_FILE path="../b.py"]\nx\n[/CREATE_FILE]\n' + DONE, "CREATE_FILE '../b.py'"),
        ('[EDIT_FILE path="a.py"]\nno markers\n[/EDIT_FILE]\n' + DONE, "EDIT_FILE 'a.py'"),
        (
            "".join(command(f"exit {code}") for code in range(2, 7)) + DONE,
            "RUN_COMMAND 'exit 4' and 2 more",
        ),
    ],
)  # fmt: skip
@pytest.mark.one_in(2)
def test_it_does_not_count_after_what_failed(tmp_path: Path, answer: str, why: str) -> None:
    """The next request, whole and short, names what failed in one line, besides the results."""
    with working(tmp_path) as live:
        results = answered(live, answer)
        assert f"{why}; fix that, then send DONE again" in results
        for text in (live.request(), short(live)):
            lines = [line for line in text.splitlines() if line.startswith("[FAILED] DONE: ")]
            assert len(lines) == 1
            assert lines[0].startswith("[FAILED] DONE: Not accepted, because this failed: ")


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (DONE + create("b.py", "x = 1"), "CREATE_FILE at line 4"),
        (DONE + "[END]\n" + command("touch ran"), "RUN_COMMAND at line 5"),
        ('[WRITE_FILE path="b.py"]\nx\n[/WRITE_FILE]\n' + DONE, "[WRITE_FILE] is no operation"),
    ],
)  # fmt: skip
def test_it_does_not_count_where_something_is_left(tmp_path: Path, answer: str, what: str) -> None:
    """Design, after DONE: nothing more of that answer is executed; what is left is named."""
    with working(tmp_path) as live:
        results = answered(live, answer)
        line = results.partition("[FAILED] DONE: Not accepted, because this was not executed: ")[2]
        assert what in line.partition("; send")[0]
        assert sorted(path.name for path in live.workspace.iterdir()) == ["a.py"]


@pytest.mark.parametrize("check", ["true", "false"])
def test_a_check_decides_about_commands_and_not_about_other_failures(tmp_path: Path, check: str) -> None:
    """Design, after DONE: a check that succeeds decides, also if a command of the model's own failed."""
    with working(tmp_path / "command", check) as live:
        results = answered(live, create("b.py", "x = 1") + command("exit 3") + DONE)
        assert (results == "") == (check == "true")
    with working(tmp_path / "edit", check) as live:
        results = answered(live, create("b.py", "x = 1") + EDIT + DONE)
        assert "Not accepted, because this failed: EDIT_FILE 'a.py'" in results
        assert "CHECK: Ran" not in results
        assert "Note: the check was not run, because an edit failed" in results


def test_it_counts_once_what_failed_is_mended(tmp_path: Path) -> None:
    """Why it did not count is told once, and the next answer may end the task."""
    with working(tmp_path) as live:
        answered(live, command("test -e b.py") + DONE)
        assert "Not accepted" not in answered(live, '[READ_FILE path="a.py"]\n')
        assert answered(live, create("b.py", "x = 1") + command("test -e b.py") + DONE) == ""


@pytest.mark.parametrize("says", ["no", "yes"])
@pytest.mark.parametrize("what", ["command", "file"])
def test_a_command_that_the_person_denied_does_not_stand_against_it_and_a_file_does(
    tmp_path: Path, says: str, what: str
) -> None:
    """They know what they left out of it; without a change that they denied the work is not whole."""
    with plain_session(tmp_path, settings=Settings(sandbox="off")) as live:
        asked = command("rm -rf build") if what == "command" else create(".envrc", "x")
        live.drop(asked + DONE)
    assert command_line_here(tmp_path, "resume", "--once")[0] == 3
    word = "approve" if says == "yes" else "deny"
    assert command_line_here(tmp_path, word, live.session_id)[0] == 0
    session = live.home.sessions.load(live.session_id)
    assert session.is_complete == (says == "yes" or what == "command")
    if not session.is_complete:
        request = live.home.mailbox.outbox_path(live.session_id, 2).read_text("utf-8")
        assert "Not accepted, because this failed: CREATE_FILE '.envrc'" in request


FAILING = command("echo 'FAILED test_b.py::test_b - x'; exit 1")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("answer", "is_done"),
    [
        (create("test_b.py", "x = 1") + FAILING, False),
        (create("b.py", "x = 1") + FAILING, True),  # the test is not its own
        (create("test_b.py", "x = 1") + command("echo test_b.py; exit 1"), True),  # it names no test
        (FAILING + create("test_b.py", "x = 1"), True),  # what it says is no longer so
        (create("test_b.py", "x = 1") + FAILING + create("b.py", "x = 1"), True),
    ],
)
def test_a_failing_test_of_its_own_is_asked_about_whatever_the_check_says(
    tmp_path: Path, answer: str, is_done: bool
) -> None:
    """The check may not run it. Who then sends DONE again has been asked."""
    with working(tmp_path, "true") as live:
        results = answered(live, answer + DONE)
        assert ("because tests of your own fail: test_b.py::test_b" in results) != is_done
        assert live.conversation.session.is_complete == is_done
        if not is_done:
            assert answered(live, DONE) == ""


@pytest.mark.parametrize(
    ("path", "text", "charset", "note"),
    [
        ("b.txt", "+ one\n+ two", "utf-8", "each line begins with +, written as it came"),
        ("b.md", "Tax [cite: 3].", "utf-8", "citation mark of the chat ('[cite: 3]'), written as it came"),
        ("b.md", "Tax [web:3]<sup>[1]</sup>.", "utf-8", ""),
        ("b.py", 'a = "\u2067x"', "utf-8", "order the line is shown; it is written as it came"),
        ("b.py", 'a = "é"', "cp1252", "its letters beyond ASCII are a guess, written as it came"),
        ("b.py", 'a = "e"', "cp1252", ""),
    ],
)
def test_an_edit_that_a_note_doubts_is_asked_about(
    tmp_path: Path, path: str, text: str, charset: str, note: str
) -> None:
    """What may be damage and has no proof was written; the model says whether it is meant."""
    with working(tmp_path, "true") as live:
        results = answered(live, ("[MESSAGE]\né\n[/MESSAGE]\n" + create(path, text) + DONE).encode(charset))
        assert (live.workspace / path).read_text() == f"{text}\n"
        if note:
            assert f"because a note doubts CREATE_FILE '{path}'" in results
            assert note in results
            results = answered(live, DONE)
        assert results == ""


@pytest.mark.parametrize(
    ("operations", "is_complete"),
    [
        ((END,), True),
        (({"type": "shell", "command": "true"}, END), True),
        (({"type": "shell", "command": "exit 3"}, END), False),
        ((BAD_JSON_EDIT, END), False),
        ((END, {"type": "shell", "command": "true"}), False),
    ],
)
@pytest.mark.one_in(2)
def test_in_json_it_counts_alike(
    tmp_path: Path, operations: tuple[object, ...], *, is_complete: bool
) -> None:
    """Design, operations and events: `DONE:` as the last message of other operations."""
    protocol: Protocol = "json"
    with working(tmp_path, protocol=protocol) as live:
        live.drop(json.dumps(json.loads(message(*operations))))
        live.conversation.take("reply.txt")
        assert live.conversation.session.is_complete == is_complete
        if not is_complete and operations[-1] is END:
            assert "Not accepted, because this failed: " in live.request()


def test_why_it_did_not_count_survives_a_kill_and_is_told_once(tmp_path: Path) -> None:
    """Design, nothing is lost: killed before the request is written, it is told in that request."""
    with plain_session(tmp_path, settings=Settings(sandbox="off")) as live:
        live.drop(command("echo x >> count; exit 3") + DONE)
    journal = tmp_path / "sessions" / live.session_id / "journal.jsonl"
    kill_when(tmp_path, ("resume", "--once"), lambda: b"Not accepted" in journal.read_bytes())
    assert command_line_here(tmp_path, "resume", "--once")[0] == 0
    request = live.home.mailbox.outbox_path(live.session_id, 2).read_text("utf-8")
    assert request.count("[FAILED] DONE: ") == 1
    assert (live.workspace / "count").read_text() == "x\n"
    (live.home.mailbox.inbox / "next.txt").write_text('[READ_FILE path="count"]\n')
    assert command_line_here(tmp_path, "resume", "--once")[0] == 0
    request = live.home.mailbox.outbox_path(live.session_id, 3).read_text("utf-8")
    assert "[FAILED] DONE: " not in request


BROKEN = "def f(:\n    pass"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("b.py", BROKEN),
        ("b.json", '{"a": 1,}'),
        ("b.ipynb", '{"cells": [}'),
        ("pyproject.toml", "[a\nb = 1"),
        ("b.pyw", BROKEN),
        ("b.geojson", '{"a": 1,}'),
        ("tool", f"#!/usr/bin/env python3\n{BROKEN}"),
    ],
)
def test_a_new_program_that_does_not_parse_keeps_the_task_open(tmp_path: Path, path: str, text: str) -> None:
    """It is written and said; DONE waits over later turns, until the file parses or is deleted."""
    with working(tmp_path) as live:
        results = answered(live, create(path, text) + DONE)
        assert f"[OK] CREATE_FILE: Created '{path}' Note: it can't be parsed, line " in results
        why = f"Not accepted, because this can't be parsed: '{path}' (line "
        assert why in results
        assert (live.workspace / path).read_text() == text + "\n"
        assert why in answered(live, '[READ_FILE path="a.py"]\n' + DONE)
        assert why in answered(live, command("true") + create("c.py", "x = 1") + DONE)
        edit = f"<<<<<<< SEARCH\n{text}\n=======\n{text}\n\n>>>>>>> REPLACE"
        assert why in answered(live, f'[EDIT_FILE path="{path}"]\n{edit}\n[/EDIT_FILE]\n{DONE}')
        assert why in answered(live, f'[MOVE_FILE path="{path}" to="x{path}"]\n{DONE}').replace(
            "x" + path, path
        )
        assert answered(live, f'[DELETE_FILE path="x{path}"]\n' + DONE) == ""


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "answer",
    [
        create("b.py", "x = 1"),
        create("b.py", BROKEN).replace('b.py"', 'b.py" unchecked="true"'),
        command("rm b.py"),
        command("echo x = 1 > b.py"),
        command("mv b.py b.txt"),
        '[EDIT_FILE path="b.py" start_line="1" end_line="1"]\ndef f():\n[/EDIT_FILE]\n',
    ],
)
def test_it_counts_once_a_new_program_parses_is_gone_or_is_meant_so(tmp_path: Path, answer: str) -> None:
    """Also in the same answer, and without a word about what came before."""
    with working(tmp_path / "later") as live:
        answered(live, create("b.py", BROKEN))
        assert answered(live, answer + DONE) == ""
    with working(tmp_path / "same") as live:
        assert answered(live, create("b.py", BROKEN) + answer + DONE) == ""


def test_only_new_programs_of_the_session_must_parse(tmp_path: Path) -> None:
    """What the person had, other kinds of files, and a file that is meant so do not keep a task open."""
    with working(tmp_path) as live:
        (live.workspace / "old.py").write_text("print 1\n")
        edit = "<<<<<<< SEARCH\nprint 1\n=======\nprint 2\n>>>>>>> REPLACE\n"
        answer = f'[EDIT_FILE path="old.py"]\n{edit}[/EDIT_FILE]\n' + create("b.txt", BROKEN)
        meant = create("c.py", BROKEN).replace('c.py"', 'c.py" unchecked="true"')
        assert answered(live, answer + meant + DONE) == ""


def test_in_json_a_new_program_must_parse_too(tmp_path: Path) -> None:
    """There is no attribute for it; a shell writes what is meant so, once the file is deleted."""
    made = {"type": "createFile", "path": "b.py", "content": BROKEN}
    gone = {"type": "deleteFile", "path": "b.py"}
    written = {"type": "shell", "command": "echo 'def f(:' > b.py"}
    with working(tmp_path, protocol="json") as live:
        assert "correct or delete it, then send DONE again" in answered(live, message(made, END))
        assert answered(live, message(gone, written, END)) == ""


@pytest.mark.parametrize("check", ["true", "false"])
def test_a_check_decides_about_what_does_not_parse(tmp_path: Path, check: str) -> None:
    """It knows what the project needs."""
    with working(tmp_path, check) as live:
        results = answered(live, create("b.py", BROKEN) + DONE)
        assert ("Not accepted: the user's check fails" in results) == (check == "false")
        assert "because" not in results


def test_a_new_program_that_does_not_parse_is_known_after_a_kill(tmp_path: Path) -> None:
    """The journal holds it: killed after the file was written, or between turns, DONE still waits."""
    with plain_session(tmp_path, settings=Settings(sandbox="off")) as live:
        live.drop(create("b.py", BROKEN) + DONE)
    journal = tmp_path / "sessions" / live.session_id / "journal.jsonl"
    kill_when(tmp_path, ("resume", "--once"), (live.workspace / "b.py").exists)
    assert command_line_here(tmp_path, "resume", "--once")[0] == 0
    (live.home.mailbox.inbox / "next.txt").write_text('[READ_FILE path="b.py"]\n' + DONE)
    kill_when(tmp_path, ("resume", "--once"), lambda: journal.read_bytes().count(b"reply_taken") > 1)
    assert command_line_here(tmp_path, "resume", "--once")[0] == 0
    for sequence in (2, 3):
        request = live.home.mailbox.outbox_path(live.session_id, sequence).read_text("utf-8")
        assert request.count("Not accepted, because this can't be parsed: 'b.py' (line 1: ") == 1
    (live.home.mailbox.inbox / "last.txt").write_text(create("b.py", "x = 1") + DONE)
    assert command_line_here(tmp_path, "resume", "--once")[0] == 0
    assert live.home.sessions.load(live.session_id).is_complete
