"""When the workspace is kept: what a turn did is the turn's, and what the person did is theirs."""

import contextlib
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from codingagent.agent import context, factory
from codingagent.checkpoints.checkpointer import Checkpointer
from codingagent.cli import inbox_loop
from codingagent.cli.plain_output import Screen
from codingagent.cli.shared_session import SharedSession
from codingagent.model.journal_entries import CheckpointTaken, Record, RequestWritten
from codingagent.model.observations import Hint
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings
from codingagent.storage import homes
from codingagent.storage.mailbox import Mailbox
from tests.helpers import LiveSession, calls_of, conversation_in, live_session
from tests.killing import command_line_here, kinds_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="checkpoints need git")

OFF = Settings(sandbox="off", policy="permissive")
TWO = '[CREATE_FILE path="a.txt"]\na\n[/CREATE_FILE]\n[CREATE_FILE path="b.txt"]\nb\n[/CREATE_FILE]\n'
COMMAND = "[RUN_COMMAND]\necho c >c.txt\n[/RUN_COMMAND]\n"
DONE = "[DONE]\nAll is well.\n[/DONE]\n"


class Meddler:
    """A person who changes files in the very moment in which a request appears."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.is_busy = False

    def see(self, record: Record, _: Session) -> None:
        if isinstance(record, RequestWritten) and self.is_busy:
            (self.workspace / "mine.txt").write_text("mine\n", "utf-8")
            (self.workspace / "b.txt").write_text("changed by the person\n", "utf-8")


@contextlib.contextmanager
def meddled_with(root: Path) -> Iterator[tuple[LiveSession, Meddler]]:
    """Yield a live whose person is a meddler, once they are busy."""
    home = homes.Home.at(root, create=True)
    workspace = homes.workspace_of(root, OFF)
    session = factory.start_session(home, workspace, "the task", OFF)
    meddler = Meddler(workspace)
    with conversation_in(
        home, session, OFF, context.Person(lambda _: None, record=meddler.see)
    ) as conversation:
        conversation.recover()
        yield LiveSession(home, session.session_id, conversation), meddler


def changed(live: LiveSession) -> str:
    """Return what the short form of the latest request says of changed files."""
    name = f"{live.session_id}_seq{live.conversation.session.sequence:04d}.txt"
    text = (live.home.mailbox.outbox / "short" / name).read_text("utf-8")
    return text.partition("## Changed Files\n")[2].partition("\n\n")[0]


def kinds(live: LiveSession) -> list[str]:
    return kinds_of(tuple(live.home.sessions.records(live.session_id)))


def test_what_the_person_changes_as_the_request_appears_is_theirs(tmp_path: Path) -> None:
    """Design, undo: a turn takes back what it did itself."""
    home = tmp_path / "home"
    with meddled_with(home) as (live, meddler):
        meddler.is_busy = True
        live.answer(f'{TWO}[CREATE_FILE path=".phpunit.result.cache"]\nx\n[/CREATE_FILE]\n')
        assert changed(live) == "  added: a.txt\n  added: b.txt"
        meddler.is_busy = False
        live.answer('[READ_FILE path="a.txt"]\n')
        # The chat has seen neither change.
        listed, _, lines = changed(live).partition("\n--- b.txt (")
        assert listed == "  modified: b.txt\n  added: mine.txt"
        assert "\nchanged by the person\n" in lines
        workspace = live.workspace
    status, said, _ = command_line_here(home, "undo")
    assert status == 0
    assert "left as it is: b.txt" in said
    assert not (workspace / "a.txt").exists()
    assert (workspace / "mine.txt").read_text("utf-8") == "mine\n"
    assert (workspace / "b.txt").read_text("utf-8") == "changed by the person\n"


def test_what_a_command_did_is_kept_before_anybody_else_can_change_it(tmp_path: Path) -> None:
    """Design, undo: a command may change anything, and no record says what."""
    home = tmp_path / "home"
    with meddled_with(home) as (live, meddler):
        meddler.is_busy = True
        live.answer(TWO + COMMAND)
        assert kinds(live)[-3:] == ["checkpoint_taken", "turn_ended", "outbox_written"]
        workspace = live.workspace
    assert command_line_here(home, "undo")[0] == 0
    assert not (workspace / "c.txt").exists()
    assert (workspace / "mine.txt").exists()
    # Changed again since: only `--force` undoes that too.
    assert (workspace / "b.txt").read_text("utf-8") == "changed by the person\n"


def test_a_turn_through_a_link_is_taken_back_where_the_link_leads(tmp_path: Path) -> None:
    """Design, undo: what changed is the file, whatever it was called."""
    home = tmp_path / "home"
    with live_session(home, settings=OFF) as live:
        (live.workspace / "real").mkdir()
        (live.workspace / "real" / "x.txt").write_text("old\n", "utf-8")
        (live.workspace / "link").symlink_to("real")
        live.answer('[CREATE_FILE path="link/x.txt"]\nnew\n[/CREATE_FILE]\n[DELETE_FILE path="link"]\n')
        assert changed(live) == "  deleted: link\n  modified: real/x.txt"
        workspace = live.workspace
    assert command_line_here(home, "undo")[0] == 0
    assert (workspace / "link").is_symlink()
    assert (workspace / "real" / "x.txt").read_text("utf-8") == "old\n"


def test_of_ignored_files_the_model_is_told_nothing(tmp_path: Path) -> None:
    """A private key among what a build makes is covered for its protection only: it may be as it was."""
    with live_session(tmp_path / "home", settings=OFF) as live:
        (live.workspace / ".gitignore").write_text("target/\n", "utf-8")
        (live.workspace / "target").mkdir()
        (live.workspace / "target" / "a.key").write_text("1\n", "utf-8")
        live.answer(TWO)
        live.answer("[RUN_COMMAND]\necho 2 >c.txt\n[/RUN_COMMAND]\n")
        assert changed(live) == "  added: c.txt"


def test_a_session_that_is_done_can_be_taken_back(tmp_path: Path) -> None:
    """Design, undo: the last turn is one like the others."""
    home = tmp_path / "home"
    with live_session(home, settings=OFF) as live:
        live.drop(TWO + DONE)
        live.conversation.take("reply.txt")
        assert live.conversation.session.is_complete
        assert kinds(live)[-2:] == ["checkpoint_taken", "turn_ended"]
        workspace = live.workspace
    assert command_line_here(home, "undo")[0] == 0
    assert not (workspace / "a.txt").exists()


# --- while nobody waits ------------------------------------------------------------------------------


class Reader:
    """A person who drops an answer whenever the agent waits for one."""

    def __init__(self, mailbox: Mailbox, answers: list[str]) -> None:
        self.mailbox = mailbox
        self.answers = answers

    def wait(self, timeout_s: float) -> dict[str, Hint]:
        del timeout_s
        (self.mailbox.inbox / "reply.txt").write_text(self.answers.pop(0), "utf-8")
        return {"reply.txt": Hint.CLOSED}


@contextlib.contextmanager
def shared(live: LiveSession) -> Iterator[SharedSession]:
    """Yields the session as the loop that waits has it."""
    opened = contextlib.nullcontext(live.work)
    how = (lambda *_: opened, live.work.context.settings, lambda _, now: now)
    work = SharedSession(live.home, Screen(sys.stdout), *how)
    with live.home.lock.held(), work.opened(live.work.requests.session):
        yield work


def test_what_the_next_turn_begins_with_is_done_while_nobody_waits(tmp_path: Path) -> None:
    """Design, speed: the checkpoint before a turn is there when its reply comes."""
    with live_session(tmp_path / "home", settings=OFF) as live:
        (live.workspace / "old.txt").write_text("old\n", "utf-8")
        reader = Reader(live.home.mailbox, [TWO, DONE])
        with shared(live) as work:
            inbox_loop.follow(work, inbox_loop.Inbox(live.home.mailbox), reader.wait)
        assert reader.answers == []
        records = tuple(live.home.sessions.records(live.session_id))
        taken = [record for record in records if isinstance(record, CheckpointTaken)]
        assert [(record.sequence, record.before) for record in taken] == [(1, True), (1, False), (2, False)]
        assert taken[1].name == taken[2].name


def test_a_checkpoint_is_prepared_while_an_answer_rests(tmp_path: Path) -> None:
    """Design, speed: an answer that was just saved may still grow; the time until it counts is used."""
    with live_session(tmp_path / "home", settings=OFF) as live:
        (live.home.mailbox.inbox / "a.txt").write_text(TWO, "utf-8")
        inbox = inbox_loop.Inbox(live.home.mailbox)
        with shared(live) as work:
            told: list[str] = []
            take = partial(inbox_loop.take_present, work, inbox, told.append)
            assert calls_of(Checkpointer.prepare, take) == 1
        assert (live.workspace / "a.txt").exists()


def test_where_nothing_can_be_kept_the_turn_goes_on_without(tmp_path: Path) -> None:
    """Design, undo: a turn is never held up by what can't be kept of it."""
    with live_session(tmp_path / "home", settings=OFF) as live:
        store = live.home.root / "sessions" / live.session_id / "checkpoints"
        store.write_text("in the way", "utf-8")
        live.conversation.context.checkpointer.prepare()
        assert "Created 'a.txt'" in live.answer(TWO)
        assert any("can't be undone" in str(notice) for notice in live.notices)
