"""The agent with real folders: what each operation does, what the model is told, what is kept."""

import codecs
import contextlib
import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codingagent.agent import context
from codingagent.errors import UsageError, WorkError
from codingagent.model import results
from codingagent.model.events import MessageShown
from codingagent.model.journal_entries import AnswerSetAside, OperationEnded, TurnEnded
from codingagent.model.notices import Notice, OutputCame
from codingagent.model.operations import Kind
from codingagent.model.settings import Settings
from codingagent.storage import homes, journal
from codingagent.workspace import git_files
from codingagent.workspace.dirfd import Folder
from codingagent.workspace.workspace import Workspace
from tests.helpers import (
    HANG_S,
    REPOSITORY,
    LiveSession,
    Told,
    calls_of,
    command_line,
    conversation_in,
    cpu_below,
    live_session,
    million_steps_s,
    new_marker,
    none_left,
    plain_session,
)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveSession]:
    with plain_session(tmp_path / "home") as made:
        yield made


def create(path: str, content: str, more: str = "") -> str:
    return f'[CREATE_FILE path="{path}"{more}]\n{content}[/CREATE_FILE]\n'


def replace_lines(path: str, start: int, end: int, content: str) -> str:
    head = f'[EDIT_FILE path="{path}" start_line="{start}" end_line="{end}"]'
    return f"{head}\n{content}[/EDIT_FILE]\n"


def replace_text(path: str, search: str, replacement: str) -> str:
    body = f"<<<<<<< SEARCH\n{search}=======\n{replacement}>>>>>>> REPLACE\n"
    return f'[EDIT_FILE path="{path}"]\n{body}[/EDIT_FILE]\n'


def run(command: str, more: str = "") -> str:
    return f"[RUN_COMMAND{more}]\n{command}\n[/RUN_COMMAND]\n"


def document(live: LiveSession) -> dict[str, object]:
    path = live.home.sessions.folder / f"{live.session_id}.json"
    found = json.loads(path.read_bytes())
    assert isinstance(found, dict)
    return found


def said(live: LiveSession, kind: type[Told]) -> list[Told]:
    return [notice for notice in live.notices if isinstance(notice, kind)]


# --- CREATE_FILE -----------------------------------------------------------------------------------


def test_create_file_makes_a_file_and_its_folders(live: LiveSession) -> None:
    """Specification 003, previous command results: [OK] CREATE_FILE: Created 'src/Calculator.cs'."""
    text = live.answer(create("src/Calculator.cs", "class A {\n}\n"))
    assert text == "[OK] CREATE_FILE: Created 'src/Calculator.cs'"
    assert (live.workspace / "src" / "Calculator.cs").read_bytes() == b"class A {\n}\n"


def test_create_file_replaces_a_file_and_says_so(live: LiveSession) -> None:
    """Specification 003, CREATE_FILE: overwrites existing files."""
    (live.workspace / "a.txt").write_bytes(b"old\nlines\n")
    assert live.answer(create("a.txt", "new\n")) == "[OK] CREATE_FILE: Replaced 'a.txt'"
    assert (live.workspace / "a.txt").read_bytes() == b"new\n"


@pytest.mark.parametrize(
    ("old", "more", "new"),
    [
        (None, "", b"one\ntwo\n"),
        (b"a\r\nb\r\n", "", b"one\r\ntwo\r\n"),
        (b"a\r\nb\r\n", ' eol="lf"', b"one\ntwo\n"),
        (b"a\r\nb\n", "", b"one\ntwo\n"),
        (b"a\nb\n", "", b"one\ntwo\n"),
        (b"", "", b"one\ntwo\n"),
        (None, ' eol="crlf"', b"one\r\ntwo\r\n"),
        (None, ' final_newline="false"', b"one\ntwo"),
        (b"a\r\n", ' final_newline="false"', b"one\r\ntwo"),
    ],
)
@pytest.mark.one_in(3)
def test_create_file_keeps_or_sets_line_ends(
    live: LiveSession, old: bytes | None, more: str, new: bytes
) -> None:
    """Body to bytes: overwriting a file whose lines all end in CRLF keeps CRLF."""
    if old is not None:
        (live.workspace / "a.txt").write_bytes(old)
    live.answer(create("a.txt", "one\ntwo\n", more))
    assert (live.workspace / "a.txt").read_bytes() == new


def test_an_empty_body_makes_an_empty_file(live: LiveSession) -> None:
    """Body to bytes: an empty body makes an empty file."""
    live.answer(create("a.txt", ""))
    assert (live.workspace / "a.txt").read_bytes() == b""


def test_create_file_writes_bytes_from_base64(live: LiveSession) -> None:
    """Attributes added: encoding="base64"."""
    live.answer(create("a.bin", "AP8B\nCg==\n", ' encoding="base64"'))
    assert (live.workspace / "a.bin").read_bytes() == b"\x00\xff\x01\n"


def test_create_file_can_be_told_not_to_replace(live: LiveSession) -> None:
    """Attributes added: overwrite="false"."""
    (live.workspace / "a.txt").write_bytes(b"old\n")
    text = live.answer(create("a.txt", "new\n", ' overwrite="false"'))
    assert text.startswith("[FAILED] CREATE_FILE: File 'a.txt' already exists")
    assert (live.workspace / "a.txt").read_bytes() == b"old\n"


@pytest.mark.deep
def test_create_file_replaces_a_file_of_any_size(live: LiveSession) -> None:
    """Specification 003, CREATE_FILE: overwrites existing files; a log may be larger than any chat."""
    with (live.workspace / "log").open("wb") as file:
        file.truncate(11 * 2**20)
    answer = live.answer(create("log", "new\n"))
    assert answer.startswith("[OK] CREATE_FILE: Replaced 'log'\n  Note: it is text in UTF-8 now")
    assert (live.workspace / "log").read_bytes() == b"new\n"


# --- paths -----------------------------------------------------------------------------------------


def test_a_path_may_step_back_within_the_workspace(live: LiveSession) -> None:
    """Specification 003, path sandboxing: join, canonicalize, then compare."""
    assert live.answer(create("a/../b.txt", "x\n")) == "[OK] CREATE_FILE: Created 'b.txt'"


def test_git_is_read_only(live: LiveSession) -> None:
    """Workspace: `.git` is not writable through file operations; the person commits."""
    hook = live.workspace / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_bytes(b"#!/bin/sh\n")
    path = ".git/hooks/pre-commit"
    text = live.answer(create(path, "x\n") + f'[DELETE_FILE path="{path}"]\n[READ_FILE path="{path}"]\n')
    first, second, third = text.split("\n")
    assert first.startswith("[FAILED] CREATE_FILE: REJECTED:")
    assert second.startswith("[FAILED] DELETE_FILE: REJECTED:")
    assert third.startswith("[OK] READ_FILE")
    assert hook.read_bytes() == b"#!/bin/sh\n"


def test_a_home_inside_the_workspace_is_invisible(tmp_path: Path) -> None:
    """Workspace: a home inside is invisible to listing and file operations."""
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.txt").write_bytes(b"a\n")
    settings = Settings(workspace=str(tmp_path / "repo"))
    with plain_session(tmp_path / "repo" / ".codingagent", settings=settings) as live:
        assert "  a.txt (2 bytes)\n\n" in live.request()
        assert ".codingagent/" not in live.request().partition("## Workspace Files")[2]
        text = live.answer('[READ_FILE path=".codingagent/sessions/.lock"]')
        assert "belongs to codingagent itself" in text


def test_a_home_cannot_be_its_own_workspace(tmp_path: Path) -> None:
    """Workspace: one line says what to use instead."""
    with pytest.raises(UsageError, match="can't be workspace and home at once"):
        homes.workspace_of(tmp_path, Settings(workspace=str(tmp_path)))


# --- EDIT_FILE -------------------------------------------------------------------------------------


def test_edit_file_replaces_a_range_of_lines(live: LiveSession) -> None:
    """Specification 003, EDIT_FILE: removes the lines and inserts the replacement there."""
    (live.workspace / "a.txt").write_bytes(b"1\n2\n3\n4\n")
    text = live.answer(replace_lines("a.txt", 2, 3, "two\ntwo and a half\nthree\n"))
    assert text.startswith("[OK] EDIT_FILE: Edited 'a.txt' (lines 2-3 replaced by lines 2-4)\n")
    assert (live.workspace / "a.txt").read_bytes() == b"1\ntwo\ntwo and a half\nthree\n4\n"


def test_edit_file_keeps_all_bytes_outside_the_edit(live: LiveSession) -> None:
    """Body to bytes: bytes outside the edited lines are untouched, whatever their encoding."""
    before = b"caf\xe9\r\n\xff\x0c\r\nold\r\nlast \xe2\x82\xac"
    (live.workspace / "a.txt").write_bytes(before)
    live.answer(replace_text("a.txt", "old\n", "new\nnewer\n"))
    after = (live.workspace / "a.txt").read_bytes()
    assert after == before.replace(b"old\r\n", b"new\r\nnewer\r\n")


def test_a_session_survives_bytes_that_are_no_text(live: LiveSession, tmp_path: Path) -> None:
    """Nothing is lost: a file that is not quite UTF-8 must not cost the session."""
    (live.workspace / "a.txt").write_bytes("€\n".encode() + b"caf\xe9\nold\n")
    (live.workspace / os.fsdecode(b"\xff.log")).write_bytes(b"x\n")
    reply = replace_text("a.txt", "old\n", "new\n") + '[READ_FILE path="*.log"]\n'
    assert "[OK] EDIT_FILE" in live.answer(reply)
    assert document(live)["sequenceNumber"] == 2
    with plain_session(tmp_path / "home", session_id=live.session_id) as again:
        assert again.conversation.session == live.conversation.session
    assert not list(live.home.sessions.folder.glob("*.damaged-*"))


def test_edit_file_of_a_missing_file(live: LiveSession) -> None:
    """Specification 003, previous command results: [FAILED] EDIT_FILE: File '…' not found."""
    text = live.answer(replace_lines("src/Missing.cs", 1, 1, "x\n"))
    assert text == "[FAILED] EDIT_FILE: File 'src/Missing.cs' not found"


def test_edit_file_of_a_range_that_is_not_there(live: LiveSession) -> None:
    """Specification 003, execution errors: invalid line range: Success = false."""
    (live.workspace / "a.txt").write_bytes(b"1\n2\n")
    text = live.answer(replace_lines("a.txt", 2, 5, "x\n"))
    assert text.startswith("[FAILED] EDIT_FILE: 'a.txt': ")
    assert (live.workspace / "a.txt").read_bytes() == b"1\n2\n"


def test_edits_come_one_after_the_other(live: LiveSession) -> None:
    """Line numbers: in order, each on the result of the one before, and a shift is said."""
    (live.workspace / "a.txt").write_bytes(b"1\nthe second\n3\n")
    one, two = replace_lines("a.txt", 1, 1, "one\nand\n"), replace_lines("a.txt", 3, 3, "the 2nd\n")
    text = live.answer(one + two)
    assert (live.workspace / "a.txt").read_bytes() == b"one\nand\nthe 2nd\n3\n"
    assert "line 3 of the edit was taken as it is now" in text


def test_a_search_that_does_not_fit_shows_the_true_lines(live: LiveSession) -> None:
    """Outbox: when an edit fails, the next outbox carries the true lines around the place."""
    (live.workspace / "a.py").write_bytes(b"def f(x):\n    return x + 1\n")
    text = live.answer(replace_text("a.py", "def f(x):\n    return x + 2\n", "pass\n"))
    assert text.startswith("[FAILED] EDIT_FILE: 'a.py': ")
    assert "return x + 1" in text
    assert (live.workspace / "a.py").read_bytes() == b"def f(x):\n    return x + 1\n"


def test_a_binary_file_is_not_edited(live: LiveSession) -> None:
    """Never wrong bytes: what is no text is replaced whole or not at all."""
    (live.workspace / "a.bin").write_bytes(b"\x00\x01old\n")
    text = live.answer(replace_lines("a.bin", 1, 1, "x\n"))
    assert text == "[FAILED] EDIT_FILE: File 'a.bin' is not text (6 bytes); replace it whole"


# --- DELETE_FILE and READ_FILE ---------------------------------------------------------------------


def test_delete_file(live: LiveSession) -> None:
    """Specification 003, DELETE_FILE: deletes a file; not found is a failure."""
    (live.workspace / "a.txt").write_bytes(b"a\n")
    text = live.answer('[DELETE_FILE path="a.txt"]\n[DELETE_FILE path="a.txt"]\n')
    assert text == "[OK] DELETE_FILE: Deleted 'a.txt'\n[FAILED] DELETE_FILE: File 'a.txt' not found"
    assert not (live.workspace / "a.txt").exists()


def test_read_file_puts_the_text_into_the_next_request(live: LiveSession) -> None:
    """Specification 003, requested file contents: between --- path --- and --- end path ---."""
    (live.workspace / "a.txt").write_bytes(b"one\r\ntwo")
    text = live.answer('[READ_FILE path="a.txt"]\n[READ_FILE path="no.txt"]\n')
    assert text.split("\n") == [
        "[OK] READ_FILE: Read 'a.txt'; its text is below",
        "[FAILED] READ_FILE: File 'no.txt' not found",
    ]
    assert live.contents() == "--- a.txt ---\none\ntwo\n--- end a.txt ---"


def test_a_read_file_is_shown_as_it_is_after_the_reply(live: LiveSession) -> None:
    """Specification 003, READ_FILE: the contents will be included in the next outbox."""
    live.answer('[READ_FILE path="a.txt"]\n' + create("b.txt", "b\n"))
    assert live.contents() == ""
    live.answer(create("a.txt", "1\n") + '[READ_FILE path="a.txt"]\n' + create("a.txt", "2\n"))
    assert live.contents() == "--- a.txt ---\n2\n--- end a.txt ---"


def test_read_file_of_some_lines(live: LiveSession) -> None:
    """Attributes added: READ_FILE takes start_line, end_line."""
    (live.workspace / "a.txt").write_bytes(b"".join(b"%d\n" % n for n in range(1, 101)))
    live.answer('[READ_FILE path="a.txt" start_line="99"]\n')
    assert live.contents() == "--- a.txt (lines 99-100 of 100) ---\n99\n100\n--- end a.txt ---"
    assert "[FAILED]" in live.answer('[READ_FILE path="a.txt" start_line="101"]\n')


def test_lines_asked_for_come_with_what_they_stand_in(live: LiveSession) -> None:
    """The imports once, the class and the function around them, what the gaps define; numbers stay true."""
    methods = [f"    def m{n}(self):\n" + "        a = 1\n" * 20 for n in range(4)]
    text = "import os\n\n\nclass Cart:\n" + "\n".join(methods)
    (live.workspace / "a.py").write_text(text, "utf-8")
    lines = text.split("\n")
    ask = '[READ_FILE path="a.py" start_line="{}" end_line="{}"]\n'
    live.answer(ask.format(50, 52) + ask.format(54, 54))
    heading = "--- a.py (lines {} of 91, with the code around them; … marks lines left out) ---\n"
    assert live.contents() == (
        heading.format("50-52")
        + "import os\n… lines 2-3\nclass Cart:\n… lines 5-48: m0, m1\n    def m2(self):\n"
        + "".join(f"{line}\n" for line in lines[49:52])
        + "… lines 53-91: m2, m3\n--- end a.py ---\n"
        + heading.format("54-54")
        + "… lines 1-3\nclass Cart:\n… lines 5-48: m0, m1\n"
        + "    def m2(self):\n… lines 50-53: m2\n        a = 1\n"
        + "… lines 55-91: m2, m3\n--- end a.py ---"
    )
    live.answer(ask.format(1, 91))
    assert live.contents() == f"--- a.py ---\n{text}--- end a.py ---"


def test_a_glob_reads_all_that_fit(live: LiveSession) -> None:
    """Attributes added: path may be a glob; brackets are never a glob."""
    for path in ("a.py", "sub/b.py", "sub/deep/c.py", "d.txt", "[id].py"):
        (live.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (live.workspace / path).write_bytes(b"x\n")
    text = live.answer('[READ_FILE path="**/*.py"]\n[READ_FILE path="?.py"]\n[READ_FILE path="*.c"]')
    assert text.split("\n") == [
        "[OK] READ_FILE: Read 4 files for '**/*.py'; their text is below",
        "[OK] READ_FILE: Read 1 files for '?.py'; their text is below",
        "[FAILED] READ_FILE: No file matches '*.c'; see Workspace Files for what there is",
    ]
    assert live.answer('[READ_FILE path="[id].py"]').startswith("[OK] READ_FILE: Read '[id].py'")


def test_a_file_whose_name_has_a_star_is_that_file(live: LiveSession) -> None:
    """Attributes added: a path that names an existing file is that file."""
    for name in ("a*.txt", "ab.txt"):
        (live.workspace / name).write_bytes(b"x\n")
    assert live.answer('[READ_FILE path="a*.txt"]').startswith("[OK] READ_FILE: Read 'a*.txt';")


# --- RUN_COMMAND, MESSAGE, DONE --------------------------------------------------------------------


def test_run_command_tells_exit_code_and_output(live: LiveSession) -> None:
    """Specification 003, previous command results: Ran 'dotnet build' (exit code 0), Output: …."""
    text = live.answer(run("echo built") + run("echo one; echo two >&2; exit 3") + run("true"))
    assert text.split("\n") == [
        "[OK] RUN_COMMAND: Ran 'echo built' (exit code 0)",
        "  Output: built",
        "[FAILED] RUN_COMMAND: Ran 'echo one; echo two >&2; exit 3' (exit code 3)",
        "  Output:",
        "    one",
        "    two",
        "[OK] RUN_COMMAND: Ran 'true' (exit code 0)",
    ]


def test_run_command_works_in_the_workspace(live: LiveSession) -> None:
    """Specification 003, RUN_COMMAND: working directory is the workspace root; design: or cwd."""
    (live.workspace / "sub").mkdir()
    text = live.answer(run("pwd -P") + run("pwd -P", ' cwd="sub"') + run("pwd", ' cwd="../"'))
    root = live.workspace.resolve()
    assert f"  Output: {root}\n" in text
    assert f"  Output: {root}/sub\n" in text
    assert text.split("\n")[-1].startswith("[FAILED] RUN_COMMAND: REJECTED: Path is outside workspace")


def test_run_command_that_times_out_has_failed(live: LiveSession) -> None:
    """Specification 003, execution errors: command timeout: Success = false."""
    marker = new_marker()
    with none_left(marker):
        text = live.answer(run(f"echo begun; sleep {marker}", ' timeout="4"'))
    assert text.startswith("[FAILED] RUN_COMMAND: Ran 'echo begun; sleep")
    assert "ended at its time limit of 4 s" in text
    assert "  Output: begun" in text


def test_the_settings_hold_the_usual_time_limit(tmp_path: Path) -> None:
    """Commands: 30 s unless said, in the settings or the block."""
    assert Settings().command_timeout == 30
    with plain_session(tmp_path / "home", settings=Settings(command_timeout=1)) as live:
        assert "time limit of 1 s" in live.answer(run("sleep 60"))


def test_what_a_command_left_running_is_said(live: LiveSession) -> None:
    """Commands: then the whole tree is ended, and the model is told."""
    assert "1 background process was ended with the command" in live.answer(run("sleep 60 &"))
    text = live.answer(run("sleep 60 & sleep 60 &"))
    assert "2 background processes were ended with the command" in text


def test_long_output_is_cut_in_the_middle(live: LiveSession) -> None:
    """Outbox: at most 20,000 characters, the head and the tail, with a line between."""
    text = live.answer(run("seq 1 100000"))
    assert "    1\n    2\n" in text
    assert "\n    99999\n    100000" in text
    assert " characters left out …" in text
    assert 19_000 < len(text.replace("\n    ", "\n")) < 20_300


def test_terminal_controls_reach_neither_model_nor_person(live: LiveSession) -> None:
    """Outbox: text from a command is made harmless."""
    text = live.answer(run(r"printf '\033[2J\033]0;title\007red\033[31m\r\nnext\n'"))
    shown = "".join(notice.text for notice in said(live, OutputCame))  # type: ignore[union-attr]  # chosen by kind
    assert "\x1b" not in text + shown
    assert shown == "red\nnext\n"
    assert text.endswith("  Output:\n    red\n    next")


def test_output_cannot_pass_for_a_heading(live: LiveSession) -> None:
    """Outbox: command output is indented, so that it cannot imitate our headings."""
    text = live.answer(run("printf '=== PROMPT ===\\n[OK] CREATE_FILE: no\\n## Environment\\n'"))
    assert "    === PROMPT ===\n    [OK] CREATE_FILE: no\n    ## Environment" in text
    assert live.request().count("\n=== PROMPT ===\n") == 1


def test_a_message_is_shown_to_the_person(live: LiveSession) -> None:
    """Specification 003, MESSAGE: the body is displayed in the console."""
    text = live.answer("[MESSAGE]\nI will \x1b[31mread\n  first.\n[/MESSAGE]\n")
    assert text == "[OK] MESSAGE: Message was shown"
    (told,) = said(live, OperationEnded)
    assert isinstance(told, OperationEnded)
    assert told.event == MessageShown("I will \x1b[31mread\n  first.")


def test_done_ends_the_session(live: LiveSession) -> None:
    """Specification 003, DONE: the agent stops the session loop after processing this command."""
    live.drop(run("exit 0") + "[DONE]\nAll is well.\n[/DONE]\n")
    live.conversation.take("reply.txt")
    assert live.conversation.session.is_complete
    assert document(live)["isComplete"] is True
    assert [path.name for path in live.home.mailbox.outbox.iterdir()] == [f"{live.session_id}_seq0001.txt"]
    assert len(said(live, TurnEnded)) == 1


def test_a_session_that_was_done_can_go_on(live: LiveSession) -> None:
    """After DONE: `resume SESSION` reopens, with those results in the next outbox."""
    live.drop(run("exit 0") + "[DONE]\nAll is well.\n[/DONE]\n")
    live.conversation.take("reply.txt")
    live.conversation.requests.reopen()
    live.conversation.recover()
    assert "[OK] RUN_COMMAND: Ran 'exit 0' (exit code 0)" in live.request(2)
    assert live.answer(create("a.txt", "x\n")).startswith("[OK]")


# --- the request -----------------------------------------------------------------------------------


def test_a_request_has_its_sections_and_its_name(tmp_path: Path) -> None:
    """Specification 003, outbox format: four sections, in a file named {sessionId}_seq{NNNN}.txt."""
    with plain_session(tmp_path / "home", "Create a calculator\nin C#") as live:
        assert [path.name for path in live.home.mailbox.outbox.iterdir()] == [
            f"{live.session_id}_seq0001.txt"
        ]
        lines = live.request().split("\n")
        assert lines[:3] == ["=== HEADER ===", f"Session: {live.session_id}", "Sequence: 1"]
        assert lines[3].startswith("Task: Create a calculator")
        sections = [line for line in lines if line.startswith("=== ") and line.endswith(" ===")]
        expected = ["HEADER", "PROTOCOL", "CONTEXT", "PROMPT"]
        assert sections == [f"=== {name} ===" for name in expected]
        assert "## Workspace Files\n(empty workspace)\n" in live.request()
        assert "## Previous Command Results" not in live.request()
        assert "=== PROMPT ===\nCreate a calculator\nin C#\n" in live.request()
        live.answer(create("a.txt", "x\n"))
        second = live.request(2)
        assert "\nSequence: 2\n" in second
        assert "## Workspace Files\n  a.txt (2 bytes)\n" in second
        assert "=== PROMPT ===\nContinue working on the task based on the results above." in second
        first = live.request(1)
        assert protocol_of(first) == protocol_of(second)


def protocol_of(request: str) -> str:
    return request.partition("=== PROTOCOL ===")[2].partition("=== CONTEXT ===")[0]


def test_each_reply_is_a_turn_with_the_next_number(live: LiveSession) -> None:
    """Specification 003, sequence numbering: increments by 1 for each cycle."""
    for number in range(1, 6):
        live.answer(create(f"{number}.txt", "x\n"), f"reply-{number}.txt")
        assert document(live)["sequenceNumber"] == number + 1
    names = sorted(path.name for path in live.home.mailbox.outbox.glob("*.txt"))
    assert names == [f"{live.session_id}_seq{number:04d}.txt" for number in range(1, 7)]
    taken = sorted(path.name for path in live.home.mailbox.processed.iterdir())
    assert taken == [f"{live.session_id}_seq{number:04d}.txt" for number in range(1, 6)]


def test_the_session_file_tells_of_the_last_results(live: LiveSession) -> None:
    """Specification 003, session state: lastResults and readFileRequests."""
    (live.workspace / "a.txt").write_bytes(b"a\n")
    live.answer('[READ_FILE path="a.txt"]\n' + run("echo out; exit 2") + "[MESSAGE]\nhi\n[/MESSAGE]\n")
    found = document(live)
    assert found["sessionId"] == live.session_id
    assert found["task"] == "the task"
    assert (found["sequenceNumber"], found["isComplete"]) == (2, False)
    assert found["readFileRequests"] == ["a.txt"]
    assert found["lastResults"] == [
        {
            "commandType": "READ_FILE",
            "summary": "Read 'a.txt'; its text is below",
            "success": True,
            "output": "",
        },
        {
            "commandType": "RUN_COMMAND",
            "summary": "Ran 'echo out; exit 2' (exit code 2)",
            "success": False,
            "output": "out",
        },
        {"commandType": "MESSAGE", "summary": "Message was shown", "success": True, "output": ""},
    ]
    for name in ("createdAt", "updatedAt"):
        assert str(found[name]).endswith("Z")


def test_a_file_that_the_session_made_stays_in_the_list(live: LiveSession) -> None:
    """Outbox: a file that this session made or read is always listed."""
    (live.workspace / ".gitignore").write_bytes(b"build/\n")
    live.answer(create("build/made.txt", "x\n") + run("echo >build/other.txt"))
    assert "  build/made.txt (2 bytes)\n" in live.request()
    assert "build/other.txt" not in live.request().partition("## Workspace")[2].partition("## Prev")[0]


def test_only_what_is_not_listed_counts_as_left_out(live: LiveSession) -> None:
    """Outbox: what is left out, with one line that says how many files and bytes that is."""
    (live.workspace / ".gitignore").write_bytes(b"build/\n")
    live.answer(create("build/made.txt", "made\n") + run("echo >build/other.txt"))
    assert "(1 file left out by ignore rules, 1 bytes)" in live.request()


def files_of(live: LiveSession) -> str:
    return live.request().partition("## Workspace Files\n")[2].partition("\n## ")[0]


@pytest.fixture
def with_git(tmp_path: Path) -> Iterator[LiveSession]:
    with live_session(tmp_path / "home") as made:
        yield made


def test_the_list_after_a_command_is_the_checkpoints(with_git: LiveSession) -> None:
    """Speed: git lists the files before a command and after it, and not again for the request.

    The list is the same as one made anew, though checkpoints cover ignored files that programs execute.
    """
    live = with_git
    made = ".vscode/settings.json sub/.envrc out/x.log sub/kept.txt .idea/a/.gitignore .idea/a/b"
    for name in made.split():
        (live.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (live.workspace / name).write_text("*\n")
    (live.workspace / ".gitignore").write_text("*.log\n.vscode/\n.envrc\n.idea/a/b\n")
    live.answer(run("true"))
    made_by = run("mkdir new && echo x > new/a.txt && echo y > new/b.log && rm sub/kept.txt")
    assert calls_of(git_files.belonging, lambda: live.answer(made_by)) == 2
    found = files_of(live)
    assert "  new/a.txt (2 bytes)\n" in found
    assert ".envrc" not in found and ".vscode" not in found and "kept.txt" not in found
    live.conversation.requests.refresh()
    live.conversation.write_due()
    assert files_of(live) == found
    (live.workspace / "new" / "later.txt").write_text("later\n")
    live.conversation.requests.refresh()
    live.conversation.write_due()
    assert "  new/later.txt (6 bytes)\n" in files_of(live)


# --- replies that are not taken --------------------------------------------------------------------


def assert_set_aside(live: LiveSession, reply: str | bytes, reason: str) -> None:
    """Drops a reply and makes sure that it is set aside, unread and unharmed."""
    before = live.conversation.session
    live.drop(reply, "odd.txt")
    live.conversation.take("odd.txt")
    data = reply.encode() if isinstance(reply, str) else reply
    assert (live.home.mailbox.rejected / "odd.txt").read_bytes() == data
    assert reason in (live.home.mailbox.rejected / "odd.txt.reason").read_text("utf-8")
    assert not (live.home.mailbox.inbox / "odd.txt").exists()
    (rejected,) = said(live, AnswerSetAside)
    assert isinstance(rejected, AnswerSetAside)
    assert reason in rejected.reason
    assert live.conversation.session.sequence == before.sequence
    assert not (live.workspace / "trap.txt").exists()


TRAP = create("trap.txt", "x\n")


def test_a_reply_to_another_session_is_set_aside(live: LiveSession) -> None:
    """Design, REPLY: one that names another session is not executed; it is set aside and said."""
    other = "00000000" if live.session_id != "00000000" else "11111111"
    assert_set_aside(live, f'[REPLY session="{other}" sequence="1"]\n{TRAP}[END]\n', other)


def test_a_reply_to_an_older_request_is_set_aside(live: LiveSession) -> None:
    """Design, REPLY: one that names an older sequence is not executed."""
    live.answer(create("a.txt", "x\n"))
    head = f'[REPLY session="{live.session_id}" sequence="1"]'
    assert_set_aside(live, f"{head}\n{TRAP}[END]\n", "it answers request 1, but request 2")


def test_the_same_reply_again_is_set_aside(live: LiveSession) -> None:
    """Nothing is lost: the same reply text does nothing a second time, and says so."""
    reply = run("echo x >>count.txt")
    live.answer(reply)
    assert_set_aside(live, reply, "it is exactly the last answer")
    assert (live.workspace / "count.txt").read_bytes() == b"x\n"


def test_an_earlier_reply_again_is_set_aside(live: LiveSession) -> None:
    """An older download would undo what came after it."""
    reply = run("echo x >>count.txt")
    live.answer(reply)
    live.answer(run("echo y >>count.txt"))
    assert_set_aside(live, reply, "it is exactly an earlier answer")
    assert (live.workspace / "count.txt").read_bytes() == b"x\ny\n"


def test_the_same_text_for_the_present_request_is_taken(live: LiveSession) -> None:
    """Nothing is lost: set aside only without a `[REPLY]` that names the present sequence."""
    assert live.session_id
    for sequence in ("1", "2"):
        head = f'[REPLY session="{live.session_id}" sequence="{sequence}"]\n'
        live.answer(f"{head}{run('echo x >>count.txt')}[END]\n")
    assert (live.workspace / "count.txt").read_bytes() == b"x\nx\n"


def test_a_request_saved_as_the_reply_is_set_aside(live: LiveSession) -> None:
    """Tag blocks: an outbox saved into the inbox is never executed."""
    assert_set_aside(live, live.request(1), "it is a request, not an answer")
    assert list(live.workspace.iterdir()) == []


def test_a_reply_with_the_request_in_front_is_set_aside(live: LiveSession) -> None:
    """Tag blocks: its examples are commands. Where it does not stand whole, nobody knows its end."""
    request = live.request(1).replace("End with [DONE]", "End  with [DONE]")
    assert_set_aside(live, f"You said:\n{request}\n{TRAP}", "it is a request")


def test_an_answer_below_the_whole_request_is_taken(live: LiveSession) -> None:
    """Replies as chats give them: the outbox pasted back above the answer, known to the letter."""
    results = live.answer(f"You said:\n{live.request(1)}\n" + create("made.txt", "x\n"))
    assert results.startswith("[OK] CREATE_FILE: Created 'made.txt'")
    assert "only the last answer to request 1 in it was taken" in results
    assert [path.name for path in live.workspace.iterdir()] == ["made.txt"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x00\x01\x02" * 100, "it is not text"),
        (b"PK\x03\x04\x00\x00", "no zip file that can be read"),
        (b"\xff\xfea", "it is not text"),
    ],
)
def test_what_is_no_text_is_set_aside(live: LiveSession, data: bytes, why: str) -> None:
    """Inbox: UTF-8, marked UTF-16 or 8-bit text; anything else is said to be none."""
    assert_set_aside(live, data, why)


def test_a_reply_that_was_set_aside_can_be_accepted(live: LiveSession) -> None:
    """Nothing is lost: `resume --accept FILE` executes it all the same."""
    reply = run("echo x >>count.txt")
    live.answer(reply)
    live.drop(reply)
    live.conversation.take("reply.txt")
    name = live.home.mailbox.bring_back(live.home.mailbox.rejected / "reply.txt")
    live.conversation.take(name, accept=True)
    assert (live.workspace / "count.txt").read_bytes() == b"x\nx\n"
    assert live.conversation.session.sequence == 3


# --- replies as they come --------------------------------------------------------------------------

PLAIN = create("a.txt", "é €\n")


@pytest.mark.parametrize(
    "data",
    [
        PLAIN.encode(),
        PLAIN.replace("\n", "\r\n").encode(),
        codecs.BOM_UTF8 + PLAIN.encode(),
        codecs.BOM_UTF16_LE + PLAIN.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + PLAIN.replace("\n", "\r\n").encode("utf-16-be"),
        PLAIN.rstrip("\n").encode(),
        b"Sure!\n\n" + PLAIN.encode() + b"\nDone.",
    ],
    ids=["utf-8", "crlf", "mark", "utf-16-le", "utf-16-be", "no last newline", "prose"],
)
@pytest.mark.one_in(2)
def test_a_reply_means_the_same_in_each_encoding(live: LiveSession, data: bytes) -> None:
    """Inbox: UTF-8 with or without mark, UTF-16 with mark; lines end in LF or CRLF."""
    assert live.answer(data) == "[OK] CREATE_FILE: Created 'a.txt'"
    assert (live.workspace / "a.txt").read_bytes() == "é €\n".encode()


def test_an_eight_bit_reply_is_read_and_said(live: LiveSession) -> None:
    """Inbox: else the locale's 8-bit encoding, said in the result."""
    text = live.answer(create("a.txt", "caf\xe9\n").encode("latin-1"))
    assert (live.workspace / "a.txt").read_bytes() == "café\n".encode()
    assert "Note: the reply was not UTF-8 and was read as" in text


def test_a_reply_without_a_block_gets_an_example(live: LiveSession) -> None:
    """No block at all: the turn's result says so and shows the model one example."""
    text = live.answer("I think that we should first talk about it.\n")
    first, second = text.splitlines()[:2]
    assert first == "[OK] MESSAGE: Message was shown"
    assert second.startswith("[FAILED] REPLY: The answer has no operations")
    assert "[READ_FILE path=" in text
    assert live.conversation.session.sequence == 2


def test_one_bad_block_does_not_cost_the_others(live: LiveSession) -> None:
    """Specification 003, parse errors: malformed commands are included in the results."""
    text = live.answer(
        create("a.txt", "x\n")
        + "[DELETE_FILE]\n"
        + '[EDIT_FILE path="a.txt" start_line="one" end_line="2"]\nx\n[/EDIT_FILE]\n'
        + create("b.txt", "x\n")
        + '[CREATE_FILE path="c.txt"]\nhalf'
    )
    lines = [line for line in text.split("\n") if line.startswith("[")]
    assert lines[0] == "[OK] CREATE_FILE: Created 'a.txt'"
    assert lines[1].startswith("[FAILED] DELETE_FILE: Missing attribute 'path'")
    assert lines[2].startswith("[FAILED] EDIT_FILE: Invalid start_line 'one'")
    assert lines[3] == "[OK] CREATE_FILE: Created 'b.txt'"
    assert lines[4].startswith("[FAILED] CREATE_FILE: Cut off inside CREATE_FILE")
    assert not (live.workspace / "c.txt").exists()


def test_an_empty_file_waits(tmp_path: Path) -> None:
    """Inbox: empty files wait."""
    with plain_session(tmp_path / "home") as live:
        live.drop(b"")
    done = command_line(tmp_path / "home", "resume", "--once")
    assert done.returncode == 0, done.stderr
    assert (live.home.mailbox.inbox / "reply.txt").exists()
    assert len(list(live.home.mailbox.outbox.iterdir())) == 1


@pytest.mark.parametrize("lines", [50_000, pytest.param(3_000_000, marks=pytest.mark.deep)])
def test_a_huge_reply_costs_bounded_work_and_memory(tmp_path: Path, lines: int) -> None:
    """Specification 003, trust model: protects against excessive output; 100 MB are no exception."""
    with plain_session(tmp_path / "home") as live:
        live.drop(create("a.txt", "x\n") + "prose without any command [in it]\n" * lines)
    program = (
        "import re, resource, sys\nfrom codingagent.cli.main import run\n"
        "status = run(sys.argv[1:])\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "most = used.ru_maxrss\n"
        # ru_maxrss has what the test's own process held when it made this one.
        "if sys.platform == 'linux':\n"
        "    most = int(re.search('VmHWM:\\\\s+([0-9]+)', open('/proc/self/status').read())[1])\n"
        "print(used.ru_utime + used.ru_stime, most // 1024)\nsys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--home", str(tmp_path / "home"), "resume", "--once"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=HANG_S * lines / 50_000,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seconds, mebibytes = done.stdout.split()[-2:]
    assert float(seconds) < (100 + lines / 3_000) * million_steps_s()
    assert int(mebibytes) < 100 + lines / 7_500  # the text is held a few times, never more
    assert (tmp_path / "home" / "workspace" / "a.txt").read_bytes() == b"x\n"


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.deep)])
def test_thousands_of_blocks_are_done_in_bounded_work(tmp_path: Path, count: int) -> None:
    """Speed: no work that grows with the history."""
    with plain_session(tmp_path / "home") as live, cpu_below(5 + count / 15):
        reply = "".join(create(f"{n % 100}/{n}.txt", f"{n}\n") for n in range(count))
        text = live.answer(reply)
    assert "more results did not fit here" in text
    assert len(list(live.workspace.rglob("*.txt"))) == count


def test_an_answer_that_was_pasted_twice_is_executed_once(live: LiveSession) -> None:
    """Nothing runs twice; two commands alone may be meant."""
    once = create("a.py", "x = 1\n") + run("echo ran >> log")
    assert "the answer was there twice, and was taken once" in live.answer(f"{once}\n{once}\n")
    assert (live.workspace / "log").read_text() == "ran\n"
    live.answer(run("echo again >> log") * 2)
    assert (live.workspace / "log").read_text() == "ran\nagain\nagain\n"


def test_an_edit_of_a_long_file_is_not_searched_for_what_all_of_the_file_says(live: LiveSession) -> None:
    """Speed: 1,500 edits of a file of 366 KB took 80 seconds."""
    lines = [f"word {n} and more" for n in range(4_000)]
    (live.workspace / "a.md").write_text("\n".join(lines))
    edits = "".join(
        f'[EDIT_FILE path="a.md"]\n<<<<<<< SEARCH\n{line}\n=======\n{line}!\n>>>>>>> REPLACE\n[/EDIT_FILE]\n'
        for line in lines[:99]
    )
    with cpu_below(40):
        live.answer(edits)
    assert (live.workspace / "a.md").read_text().count("!") == 99


def test_a_hundred_edits_of_one_file_in_a_row_are_one(live: LiveSession) -> None:
    """Speed: 1,500 of them were 1,500 operations, each with several looks at the whole file."""
    lines = [f"word {n} and more\n" for n in range(600)]
    (live.workspace / "a.md").write_text("".join(lines))
    edits = [replace_text("a.md", line, f"new {line}") for line in lines]
    text = live.answer(edits[0] + create("b.txt", "b\n") + "".join(edits[1:500]))
    assert text.count("[OK] EDIT_FILE") == 2
    assert "499 EDIT_FILE in a row for this file were applied as one: all of them, or none" in text
    changed = (live.workspace / "a.md").read_text()
    assert changed == "".join(f"new {line}" for line in lines[:500]) + "".join(lines[500:])
    # One of them that fits nowhere: none of its row is half applied.
    text = live.answer("".join([*edits[500:549], edits[0].replace("word", "none"), *edits[550:]]))
    assert "[FAILED] EDIT_FILE: 'a.md': SEARCH 50 of 100 " in text
    assert (live.workspace / "a.md").read_text() == changed
    assert live.answer("".join(edits[500:599])).count("[OK] EDIT_FILE") == 99


def test_edits_of_two_files_in_turn_are_one_for_each(live: LiveSession) -> None:
    """Speed: 6,000 edits of two long files in turn took 38 seconds, by line numbers 23."""
    lines = [f"word {n} and more\n" for n in range(240)]
    for name in "ab":
        (live.workspace / f"{name}.md").write_text("".join(lines))
    by_number = '[EDIT_FILE path="b.md" start_line="{n}" end_line="{n}"]\nnew {line}[/EDIT_FILE]\n'
    edits = [
        replace_text("a.md", line, f"new {line}")
        + '[READ_FILE path="a.md"]\n'
        + by_number.format(n=n + 1, line=line)
        for n, line in enumerate(lines)
    ]
    text = live.answer("".join([*edits[:120], create("c.txt", "c\n"), *edits[120:122]]))
    assert text.count("EDIT_FILE in a row for this file were applied as one") == 2
    made = [f"new {line}" for line in lines[:122]] + lines[122:]
    for name in "ab":
        assert (live.workspace / f"{name}.md").read_text() == "".join(made)


@pytest.mark.parametrize("other", ["./a.md", "link.md", "A.md", "sub/../a.md"])
def test_edits_of_one_file_by_two_names_keep_their_order(live: LiveSession, other: str) -> None:
    (live.workspace / "a.md").write_text("0\n")
    (live.workspace / "sub").mkdir()
    if other == "link.md":
        (live.workspace / other).symlink_to("a.md")
    names = ("a.md", other)
    live.answer("".join(replace_text(names[n % 2], f"{n}\n", f"{n + 1}\n") for n in range(240)))
    assert (live.workspace / "a.md").read_text() == "240\n"


def test_patterns_list_the_files_once_until_something_changes(live: LiveSession) -> None:
    """Speed: 2,000 patterns that fit nothing were 2,000 listings."""
    folders = "".join(f'[READ_FILE path="d{n}/*.txt"]\n' for n in range(20))
    listing = Workspace.listing
    once = calls_of(listing, lambda: live.answer(create("a.txt", "x\n") + folders[:29]))
    assert calls_of(listing, lambda: live.answer(create("b.txt", "x\n") + folders)) == once
    text = live.answer(folders + create("d1/new.txt", "x\n") + folders)
    assert text.count("[FAILED] READ_FILE") == 39
    assert "[OK] READ_FILE: Read 1 files for 'd1/*.txt'" in text


def test_thousands_of_new_files_look_at_what_is_there_once(live: LiveSession) -> None:
    """Speed: each of 10,000 listed its folder, read its neighbours, and was walked to sixteen times."""

    def made(count: int) -> Callable[[], object]:
        text = "".join(create(f"{count}/{n}.txt", "x\n") for n in range(count))
        return lambda: live.answer(text)

    live.answer(create("a.txt", "x\n"))
    for look, most in ((Workspace.names, 0), (Workspace.read, 1), (Folder.open, 12)):
        assert calls_of(look, made(40)) - calls_of(look, made(20)) <= 20 * most, look
    text = create(".editorconfig", "[*]\nend_of_line = crlf\n") + create("b.txt", "x\n")
    live.answer(text + "[RUN_COMMAND]\nrm .editorconfig\n[/RUN_COMMAND]\n" + create("c.txt", "x\n"))
    assert [(live.workspace / f"{name}.txt").read_bytes() for name in "bc"] == [b"x\r\n", b"x\n"]


def test_a_turn_words_each_result_and_the_session_file_only_as_often_as_it_is_shown(
    live: LiveSession,
) -> None:
    """Speed: nothing is done twice. Once for the file and each form of the request."""
    live.answer("".join(create(f"{n}.txt", f"{n}\n") for n in range(3)))
    again = "".join(create(f"{n}.py", f"{n}\n") for n in range(3))
    assert calls_of(results.result_of, lambda: live.answer(again)) == 3 * 3
    assert calls_of(journal.document, lambda: live.answer(create("last.py", "x\n"))) == 1


def test_a_request_stays_within_its_budget(tmp_path: Path) -> None:
    """Outbox: `context_chars` for the whole outbox; what does not fit is cut and said."""
    with plain_session(tmp_path / "home", settings=Settings(context_chars=30_000)) as live:
        live.answer("".join(create(f"{n % 10}/{n}.txt", f"{n}\n") for n in range(200)))
        assert len(live.request()) <= 30_000
        live.answer('[READ_FILE path="**/*.txt"]\n' + run("seq 1 10000"))
        assert len(live.request()) <= 30_000


# --- in the middle of a turn -----------------------------------------------------------------------


class Interruption:
    """Interrupts the work when a command prints something."""

    def __init__(self) -> None:
        self.armed = True

    def __call__(self, notice: Notice) -> None:
        if self.armed and isinstance(notice, OutputCame):
            raise KeyboardInterrupt


@contextlib.contextmanager
def interrupted_turn(home: Path, reply: str) -> Iterator[LiveSession]:
    """Have an answer taken until its first command prints; yield the session with its broken turn."""
    with plain_session(home) as live:
        pass
    live.drop(reply)
    with (
        conversation_in(
            live.home, live.conversation.session, Settings(), context.Person(Interruption())
        ) as conversation,
        pytest.raises(KeyboardInterrupt),
    ):
        conversation.take("reply.txt")
    yield live


def test_an_interrupted_command_is_not_run_again(tmp_path: Path) -> None:
    """Nothing is lost: a command that had started is never started again, and is said."""
    marker = new_marker()
    reply = (
        create("a.txt", "x\n")
        + run(f"echo x >>count.txt; echo up; sleep {marker}")
        + run("echo y >>count.txt")
    )
    with none_left(marker), interrupted_turn(tmp_path / "home", reply) as broken:
        pass
    with plain_session(tmp_path / "home", session_id=broken.session_id) as live:
        lines = live.results().split("\n")
        assert lines[0] == "[OK] CREATE_FILE: Created 'a.txt'"
        assert lines[1].startswith("[FAILED] RUN_COMMAND: ")
        assert lines[1].endswith("interrupted: it may have run in part; it was not run again")
        assert lines[2] == "[OK] RUN_COMMAND: Ran 'echo y >>count.txt' (exit code 0)"
        assert (live.workspace / "count.txt").read_bytes() == b"x\ny\n"
        assert live.conversation.session.sequence == 2


@pytest.mark.parametrize("change", ["deleted", "changed"])
def test_a_reply_that_vanished_in_the_middle_ends_the_turn(tmp_path: Path, change: str) -> None:
    """Nothing is lost: what was done is told, and the rest is asked for again."""
    reply = create("a.txt", "x\n") + run("echo up; sleep 60") + create("b.txt", "x\n")
    with interrupted_turn(tmp_path / "home", reply) as broken:
        (taken,) = broken.home.mailbox.processed.iterdir()
        if change == "deleted":
            taken.unlink()
        else:
            taken.write_text(TRAP, "utf-8")
    with plain_session(tmp_path / "home", session_id=broken.session_id) as live:
        text = live.results()
        assert text.startswith("[OK] CREATE_FILE: Created 'a.txt'\n[FAILED] RUN_COMMAND: ")
        assert "was changed or removed while it was executed" in text
        assert not (live.workspace / "b.txt").exists()
        assert not (live.workspace / "trap.txt").exists()
        assert live.answer(create("b.txt", "x\n")) == "[OK] CREATE_FILE: Created 'b.txt'"


def test_a_workspace_that_was_replaced_stops_the_turn(live: LiveSession, tmp_path: Path) -> None:
    """Workspace: at each turn the root's name must lead to the folder that was opened."""
    live.workspace.rename(tmp_path / "moved")
    live.workspace.mkdir()
    live.drop(create("a.txt", "x\n"))
    with pytest.raises(WorkError, match="was moved or replaced"):
        live.conversation.take("reply.txt")
    assert list(live.workspace.iterdir()) == []
    assert list((tmp_path / "moved").iterdir()) == []


def test_a_file_changed_by_a_command_is_seen_by_the_next_edit(live: LiveSession) -> None:
    """Specification 003, parsing rules: commands are executed in order of appearance."""
    text = live.answer(
        create("a.txt", "1\n")
        + run("echo 2 >>a.txt")
        + replace_text("a.txt", "2\n", "two\n")
        + run("cat a.txt; rm a.txt")
        + '[DELETE_FILE path="a.txt"]\n'
    )
    assert "    1\n    two" in text
    assert text.endswith("[FAILED] DELETE_FILE: File 'a.txt' not found")


def test_a_file_operation_in_doubt_is_settled_by_looking(tmp_path: Path) -> None:
    """Nothing is lost: a doubtful file operation is settled by looking, and applied once."""
    from codingagent.model.events import FileEdited
    from codingagent.model.journal_entries import AnswerTaken, ContentChange, OperationStarted
    from codingagent.model.observations import digest_of

    edit = replace_text("a.txt", "end\n", "line\nend\n")
    before, after = b"end\n", b"line\nend\n"
    for found, expected in (
        (before, "[OK] EDIT_FILE: Edited 'a.txt'"),
        (after, "[OK] EDIT_FILE: Edited 'a.txt'"),
        (b"the person's\n", "[FAILED] EDIT_FILE: 'a.txt' interrupted: it may have run in part"),
    ):
        home = tmp_path / digest_of(found)[:8]
        with plain_session(home) as live:
            mailbox, sessions = live.home.mailbox, live.home.sessions
            live.drop(edit)
        taken = mailbox.take("reply.txt", live.session_id, 1)
        at = "2025-01-15T10:30:00Z"
        event = FileEdited("a.txt", (), "")
        change = ContentChange("a.txt", digest_of(before), digest_of(after))
        started = OperationStarted(0, Kind.EDIT_FILE, "a.txt", at, (change,), event)
        with contextlib.closing(sessions.open(live.session_id)) as journal:
            journal.append(AnswerTaken(1, taken, digest_of(edit.encode()), at))
            journal.append(started)
        (home / "workspace" / "a.txt").write_bytes(found)
        with plain_session(home, session_id=live.session_id) as again:
            assert again.results().startswith(expected)
            wanted = found if found not in (before, after) else after
            assert (again.workspace / "a.txt").read_bytes() == wanted


def test_a_reply_that_is_gone_when_its_turn_comes_is_no_end(live: LiveSession) -> None:
    """Inbox: the folder is the truth; a person may take a file back while we look."""
    live.drop(create("a.txt", "x\n"))
    reader = threading.Thread(target=(live.home.mailbox.inbox / "reply.txt").unlink)
    reader.start()
    reader.join()
    with contextlib.suppress(WorkError):
        live.conversation.take("reply.txt")
    assert live.conversation.session.sequence == 1
    assert live.answer(create("a.txt", "x\n"), "again.txt") == "[OK] CREATE_FILE: Created 'a.txt'"


def test_a_full_disk_fails_the_operation_and_not_the_session(tmp_path: Path) -> None:
    """Nothing is lost: a full disk fails the operation, says so, and leaves the old file."""
    with plain_session(tmp_path / "home") as live:
        (live.workspace / "a.txt").write_bytes(b"old\n")
        live.drop(create("a.txt", "x" * 2**21 + "\n") + create("b.txt", "x\n"))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        # A limit of the process on file sizes fails a write as a full disk does, journals stay small.
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))
        try:
            live.conversation.take("reply.txt")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        first, second = live.results().split("\n")
        assert first.startswith("[FAILED] CREATE_FILE: 'a.txt' could not be used: ")
        assert second == "[OK] CREATE_FILE: Created 'b.txt'"
        assert (live.workspace / "a.txt").read_bytes() == b"old\n"
        assert sorted(path.name for path in live.workspace.iterdir()) == ["a.txt", "b.txt"]
