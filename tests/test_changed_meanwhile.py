"""Files that the person changed since the chat saw them: Design, the workspace."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent.agent import factory
from codingagent.model.settings import Settings
from tests.helpers import LiveSession, plain_session

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"
THEIRS = OLD.replace("two", "the person's")
NEW = OLD.replace("eight", "the answer's")
REFUSED = (
    "[FAILED] CREATE_FILE: 'a.txt' was changed since the chat saw it last, and this would undo that change."
    " That change and the whole file are shown in this request: keep the user's change, or drop it on"
    " purpose, and send it again"
)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveSession]:
    with plain_session(tmp_path / "home") as made:
        write(made, OLD)
        yield made


def write(live: LiveSession, text: str) -> None:
    (live.workspace / "a.txt").write_text(text)


def text_of(live: LiveSession) -> str:
    return (live.workspace / "a.txt").read_text()


def create(text: str) -> str:
    return f'[CREATE_FILE path="a.txt"]\n{text}[/CREATE_FILE]\n'


def edit(search: str, replacement: str) -> str:
    body = f"<<<<<<< SEARCH\n{search}\n=======\n{replacement}\n>>>>>>> REPLACE\n"
    return f'[EDIT_FILE path="a.txt"]\n{body}[/EDIT_FILE]\n'


def lines(start: int, end: int, text: str) -> str:
    return f'[EDIT_FILE path="a.txt" start_line="{start}" end_line="{end}"]\n{text}\n[/EDIT_FILE]\n'


def answer(live: LiveSession, text: str) -> str:
    """Have an answer to the request that waits taken; the same words again are another answer."""
    sequence = live.conversation.session.sequence
    return live.answer(f'[REPLY session="{live.session_id}" sequence="{sequence}"]\n{text}[END]\n')


AS_JSON = '{"protocolVersion": "1.0", "operations": [%s]}'
READ = '[READ_FILE path="a.txt"]\n'


def attach(live: LiveSession) -> None:
    live.conversation.requests.say("look", {"a.txt": True})
    live.conversation.write_due()


def read(live: LiveSession) -> None:
    answer(live, READ)


def created(live: LiveSession) -> None:
    answer(live, create(OLD))


def edited(live: LiveSession) -> None:
    write(live, OLD.replace("three", "3"))
    answer(live, READ)
    answer(live, edit("3", "three"))


def listed_as_json(live: LiveSession) -> None:
    live.answer('{"protocolVersion": "1.0", "operations": [{"type": "readFile", "path": "a.txt"}]}')


@pytest.mark.parametrize("seen", [attach, read, created, edited, listed_as_json])
@pytest.mark.one_in(2)
def test_what_the_person_changed_is_not_replaced_unseen(live: LiveSession, seen: object) -> None:
    """However the chat came to know the file. It sees the change, and then decides on purpose."""
    assert callable(seen)
    seen(live)
    write(live, THEIRS)
    assert answer(live, create(NEW)).startswith(REFUSED)
    assert text_of(live) == THEIRS
    assert "    -two\n    +the person's\n" in live.request()
    assert f"--- a.txt ---\n{THEIRS}--- end a.txt ---\n" in live.request()
    assert answer(live, create(NEW)) == "[OK] CREATE_FILE: Replaced 'a.txt'"
    assert text_of(live) == NEW


def test_a_file_changed_once_more_is_shown_once_more(live: LiveSession) -> None:
    """The chat knows what the last request showed, and nothing later."""
    read(live)
    write(live, THEIRS)
    answer(live, create(NEW))
    write(live, f"{THEIRS}more\n")
    assert answer(live, create(NEW)).startswith(REFUSED)
    assert "    +more\n" in live.request()
    assert answer(live, create(NEW)).startswith("[OK]")


def test_what_a_request_shows_anew_is_known(live: LiveSession) -> None:
    """`refresh`, words and files of the person: each request counts."""
    attach(live)
    write(live, THEIRS)
    live.conversation.requests.refresh()
    live.conversation.write_due()
    assert answer(live, create(NEW)).startswith("[OK]")


def test_files_that_the_chat_never_saw_whole_are_replaced(live: LiveSession) -> None:
    """It could not know them, and was not asked to; so was it always."""
    answer(live, '[READ_FILE path="a.txt" start_line="2" end_line="3"]\n')
    write(live, THEIRS)
    assert answer(live, create(NEW)).startswith("[OK]")


@pytest.mark.parametrize("text", [OLD, NEW])
def test_nothing_is_asked_where_nothing_would_be_lost(live: LiveSession, text: str) -> None:
    """Changed and changed back, or to what the answer writes itself."""
    read(live)
    write(live, THEIRS)
    write(live, text)
    assert answer(live, create(NEW)).startswith("[OK]")


def test_an_edit_whose_search_fits_goes_through_and_the_file_stays_unknown(live: LiveSession) -> None:
    """It takes nothing back. A whole file after it still would."""
    read(live)
    write(live, THEIRS)
    told = answer(live, edit("eight", "8"))
    assert told.startswith("[OK]")
    assert "Note: this file was changed since the chat saw all of it" in told
    assert text_of(live) == THEIRS.replace("eight", "8")
    assert answer(live, f"{edit('seven', '7')}{create(NEW)}").count("[FAILED] CREATE_FILE") == 1
    assert text_of(live) == THEIRS.replace("eight", "8").replace("seven", "7")


def test_line_numbers_count_where_the_lines_are_as_they_were_shown(live: LiveSession) -> None:
    """Of lines that were changed, or moved, nobody knows which were meant."""
    read(live)
    write(live, THEIRS)
    assert answer(live, lines(8, 8, "8")).startswith("[OK]")
    told = answer(live, lines(2, 2, "2"))
    assert told.startswith("[FAILED] EDIT_FILE: 'a.txt' was changed since the chat saw it last")
    assert "send these lines again" in told
    assert answer(live, lines(2, 2, "2")).startswith("[OK]")
    write(live, f"zero\n{text_of(live)}")
    assert answer(live, lines(8, 8, "7")).startswith("[FAILED]")


def test_what_a_command_did_is_nobodys_change(live: LiveSession) -> None:
    """A formatter that the answer ran may be overwritten; what the person did after it may not."""
    read(live)
    answer(live, "[RUN_COMMAND]\nsed -i s/two/zwei/ a.txt\n[/RUN_COMMAND]\n")
    assert text_of(live) == OLD.replace("two", "zwei")
    assert answer(live, create(OLD)).startswith("[OK]")
    told = answer(live, f"[RUN_COMMAND]\nsed -i s/two/2/ a.txt\n[/RUN_COMMAND]\n{create(NEW)}")
    assert told.count("[OK]") == 2
    answer(live, "[RUN_COMMAND]\nsed -i s/one/1/ a.txt\n[/RUN_COMMAND]\n")
    write(live, THEIRS)
    assert answer(live, create(NEW)).startswith(REFUSED)


def test_a_file_that_came_back_after_it_was_deleted_is_theirs(live: LiveSession) -> None:
    """The chat knows that there is none."""
    answer(live, '[DELETE_FILE path="a.txt"]\n')
    write(live, THEIRS)
    assert answer(live, create(NEW)).startswith(REFUSED)
    assert "    +the person's\n" in live.request()


def test_line_ends_are_no_change(live: LiveSession) -> None:
    """Only the lines that the person changed are shown."""
    (live.workspace / "a.txt").write_bytes(OLD.replace("\n", "\r\n").encode())
    read(live)
    (live.workspace / "a.txt").write_bytes(THEIRS.replace("\n", "\r\n").encode())
    answer(live, create(NEW))
    assert live.request().count("\n    -") == 2  # the line, and the name of the file
    assert answer(live, create(NEW)).startswith("[OK]")


def test_other_formats_go_the_same_way(live: LiveSession) -> None:
    """A whole file under its path is a whole file."""
    read(live)
    write(live, THEIRS)
    change = '{"type": "createFile", "path": "a.txt", "overwrite": true, "content": "x\\n"}'
    told = live.answer(f'{{"protocolVersion": "1.0", "operations": [{change}]}}')
    assert "'a.txt' was changed since the chat" in told
    write(live, f"{THEIRS}again\n")
    live.answer(f"a.txt\n\n```text\n{NEW}```\n")
    assert text_of(live) == f"{THEIRS}again\n"


def test_without_the_text_of_before_the_whole_file_is_shown(live: LiveSession) -> None:
    """Nothing depends on what is kept beside the record."""
    read(live)
    write(live, THEIRS)
    shutil.rmtree(live.home.sessions.folder / live.session_id / "shown")
    assert "The whole file is shown in this request" in answer(live, create(NEW))
    assert f"--- a.txt ---\n{THEIRS}--- end a.txt ---\n" in live.request()
    assert answer(live, create(NEW)).startswith("[OK]")


def test_a_file_too_long_to_be_shown_is_refused_once(tmp_path: Path) -> None:
    """What can't be shown whole was said all the same; the chat is not asked for ever."""
    with plain_session(tmp_path / "home", settings=Settings(context_chars=20_000)) as live:
        long = "".join(f"{number} {'x' * 60}\n" for number in range(400))
        answer(live, create(long))
        write(live, f"{long}more\n")
        assert answer(live, create(long)).startswith("[FAILED]")
        assert "    +more\n" in live.request()
        assert answer(live, create(long)).startswith("[OK]")


def test_only_what_the_chat_knows_is_kept(live: LiveSession) -> None:
    """What a file was before it is of no use any more."""
    read(live)
    for number in range(3):
        answer(live, create(f"{number}\n"))
    kept = list((live.home.sessions.folder / live.session_id / "shown").iterdir())
    assert [path.read_text() for path in kept] == ["2\n"]


@pytest.mark.parametrize("forgets", [False, True])
def test_the_record_tells_it_after_a_restart(tmp_path: Path, forgets: bool) -> None:
    """A journal that was written before this rule knows nothing, and is read all the same."""
    with plain_session(tmp_path / "home") as live:
        write(live, OLD)
        read(live)
        write(live, THEIRS)
        session_id = live.session_id
    if forgets:
        journal = tmp_path / "home" / "sessions" / session_id / "journal.jsonl"
        records = [json.loads(line) for line in journal.read_text().splitlines()]
        for record in records:
            record.pop("shown", None)
            record.pop("is_unseen", None)
        journal.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    with plain_session(tmp_path / "home", session_id=session_id) as live:
        assert answer(live, create(NEW)).startswith("[OK]" if forgets else REFUSED)


def test_a_kill_at_any_instant_forgets_none_of_it(tmp_path: Path) -> None:
    """From each record of the turn on, it ends as it would have, and nothing is taken back."""
    home, done = tmp_path / "home", tmp_path / "done"
    with plain_session(home) as live:
        write(live, OLD)
        read(live)
        write(live, THEIRS)
        session_id = live.session_id
        journal = Path("sessions") / session_id / "journal.jsonl"
        before = len((home / journal).read_bytes().splitlines())
        shutil.copytree((home / journal).with_name("shown"), tmp_path / "shown")
        answer(live, f"{edit('eight', '8')}{create(NEW)}")
    home.rename(done)
    records = (done / journal).read_bytes().splitlines(keepends=True)
    assert len(records) > before + 5
    for count in range(before + 1, len(records) + 1):
        shutil.copytree(done, home)
        (home / journal).write_bytes(b"".join(records[:count]))
        shutil.copytree(tmp_path / "shown", (home / journal).with_name("shown"), dirs_exist_ok=True)
        if not any(b'"operation_started"' in record for record in records[before:count]):
            (home / "workspace" / "a.txt").write_text(THEIRS)
        with plain_session(home, session_id=session_id) as live:
            assert text_of(live) == THEIRS.replace("eight", "8")
            assert REFUSED in live.results()
            assert answer(live, create(NEW)).startswith("[OK]")
        shutil.rmtree(home)


def test_events_as_json_show_a_file_too(tmp_path: Path) -> None:
    """In a session that asks for JSON the text stands in an event, and the change in another."""
    with plain_session(tmp_path / "home") as first:
        session = factory.start_session(first.home, first.workspace, "task", Settings(), protocol="json")
    with plain_session(tmp_path / "home", session_id=session.session_id) as live:
        write(live, OLD)
        live.answer(AS_JSON % '{"type": "readFile", "path": "a.txt"}')
        write(live, THEIRS)
        change = '{"type": "createFile", "path": "a.txt", "overwrite": true, "content": "%s"}'
        told = live.answer(AS_JSON % change % "x\\n")
        assert "'a.txt' was changed since the chat" in told
        assert "-two\\n+the person's\\n" in told
        assert text_of(live) == THEIRS
        live.answer(AS_JSON % change % "y\\n")
        assert text_of(live) == "y\n"
