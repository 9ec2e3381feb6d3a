"""A long session: what looks at it again does no work for what was told before. Work is counted."""

import json
from pathlib import Path

import pytest

from codingagent.agent.secrecy import vault_file_of
from codingagent.cli.page.view import SessionView, Story, files_of
from codingagent.cli.page.workers import Worker
from codingagent.model.events import FileCreated, MessageShown, Refused
from codingagent.model.journal_entries import (
    OperationEnded,
    OperationStarted,
    Record,
    SessionRenamed,
    SessionStarted,
    decode_record,
    encode_record,
)
from codingagent.model.operations import Kind
from codingagent.model.plain_text import on_screen
from codingagent.secrets.vault import Wishes
from codingagent.storage.homes import Home
from tests.builders import CREATED_AT, LATER, SESSION_ID, turn
from tests.helpers import calls_of, cpu_below
from tests.killing import command_line_here

OPERATIONS = 1_000


def records_of(workspace: Path, turns: int, operations: int) -> list[Record]:
    """Return a session in which a turn's last operation fails."""
    found: list[Record] = [SessionStarted(SESSION_ID, "a task", str(workspace), CREATED_AT)]
    for number in range(1, turns + 1):
        made = [FileCreated(f"{number}/{each}.txt", 2, replaced=False) for each in range(operations)]
        for record in turn(*made, Refused(Kind.DELETE_FILE, f"no {number}"), sequence=number):
            if isinstance(record, OperationEnded):
                found.append(OperationStarted(record.index, record.event.kind, "x", LATER))
            found.append(record)
    return found


@pytest.fixture
def home(tmp_path: Path) -> Home:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    made = Home.at(tmp_path, create=True)
    folder = made.sessions.folder / SESSION_ID
    folder.mkdir()
    records = records_of(workspace, 4, OPERATIONS // 4)
    (folder / "journal.jsonl").write_bytes(b"".join(map(encode_record, records)))
    return made


def append(home: Home, *records: Record) -> None:
    with home.sessions.journal_path(SESSION_ID).open("ab") as journal:
        journal.writelines(map(encode_record, records))


def view_of(home: Home, story: Story) -> SessionView:
    return SessionView(home, SESSION_ID, Worker((), lambda: None), story)


def told(view: SessionView) -> str:
    return json.dumps([[turn.number, turn.lines, turn.changed] for turn in view.turns])


def test_a_view_reads_on_where_the_one_before_had_ended(home: Home) -> None:
    """Design, speed: no work that grows with the history."""
    story = Story()
    view_of(home, story)

    def look() -> None:
        view_of(home, story)

    assert calls_of(decode_record, look) == 0
    append(home, SessionRenamed("another name", LATER))
    assert calls_of(decode_record, look) == 1
    assert calls_of(on_screen, look) < 40
    # What it tells is what a view tells that reads all of it at once.
    append(home, *turn(FileCreated("later.txt", 2, replaced=False), sequence=5))
    view, anew = view_of(home, story), view_of(home, Story())
    assert told(view) == told(anew)
    assert "later.txt" in told(view)
    assert view.title == anew.title == "another name"
    assert view.session == anew.session
    drawn: list[object] = []

    def line_of(line: object) -> str:
        drawn.append(line)
        return str(line)

    assert [each.told(line_of) for each in view.turns] == [
        each.told(line_of) for each in view_of(home, story).turns
    ]
    assert len(drawn) == sum(len(each.lines) for each in view.turns)


def test_a_message_that_goes_on_and_on_is_cut_and_says_so(home: Home) -> None:
    """A megabyte of short lines made 22 megabytes of HTML, again for each redraw."""
    append(home, *turn(MessageShown("```\n" * 50_000 + "its end"), sequence=5))
    last = view_of(home, Story()).turns[-1].lines
    assert "(48,001 more lines: the text of the answer has all)" in str(last[2_000])
    assert len(last) < 2_100


def test_what_becomes_a_secret_is_hidden_in_what_was_told_before(home: Home) -> None:
    """Design, secrets: a view hides what the person says now, also in earlier turns."""
    story = Story()
    assert "1/7.txt" in told(view_of(home, story))
    vault = vault_file_of(home.sessions.folder, home.load(SESSION_ID))
    vault.keep_wishes(Wishes(hide=("1/7.txt",)))
    assert "1/7.txt" not in told(view_of(home, story))


def test_show_only_counts_what_did_well_early(home: Home) -> None:
    status, said, err = command_line_here(home.root, "show")
    assert status == 0, err
    assert "the first 704 operations that did well are only counted" in said
    for number in range(1, 5):
        assert f"FAILED DELETE_FILE: no {number}\n" in said
        assert f"Turn {number}: 250 ok, 1 failed" in said
    assert "1/7.txt" not in said
    assert f"4/{OPERATIONS // 4 - 1}.txt, new" in said


def test_what_changed_in_a_line_is_marked_however_often_a_word_comes_again() -> None:
    old, new = "." * 400, ".," * 200
    lines = "".join(f"-{old}\n+{new}\n" for _ in range(40))
    with cpu_below(10):
        [file] = files_of(f"--- a/a.txt\n+++ b/a.txt\n@@ -1,40 +1,40 @@\n{lines}")
    assert len(file.rows) == 80
    [file] = files_of("--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-the old word\n+the new word\n")
    assert file.rows[1].pieces == [("the ", ""), ("new", "word"), (" word", "")]
