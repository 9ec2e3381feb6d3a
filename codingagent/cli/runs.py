"""The commands for runs: read an operations message, print the events message, return an exit status."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from codingagent.agent import context, factory
from codingagent.agent.space import Run, Space
from codingagent.checkpoints.checkpointer import Checkpointer, LazyStore, check_present, place_of
from codingagent.checkpoints.undo import UndoChoice, finish_undo, take_back
from codingagent.cli.output import fail
from codingagent.cli.stdio import has_no_reader, silence
from codingagent.errors import ApprovalError, InterruptError, UsageError, WorkError, disk_errors
from codingagent.model import approval, journal_entries, notices
from codingagent.model.events import MessageShown
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings
from codingagent.protocols.json.messages import SIZE_LIMIT_BYTES, MessageError, read_answer
from codingagent.protocols.json.wire import ErrorEvent, Event, EventsMessage, to_json
from codingagent.storage.clock import now
from codingagent.storage.homes import Home
from codingagent.storage.journal import SessionLog

if TYPE_CHECKING:
    from codingagent.cli.plain_output import Screen

_STATUS = {"completed": 0, "error": 1, "awaiting_approval": ApprovalError.exit_status}


def read_message(name: str) -> bytes:
    """Return the bytes of a message, from a file or with `-` from stdin, up to just over the limit."""
    # One byte over the limit: the reader then says what is wrong.
    most = SIZE_LIMIT_BYTES + 1
    if name == "-":
        return sys.stdin.buffer.read(most)
    with disk_errors(f"{name} can't be read", UsageError), Path(name).open("rb") as file:
        return file.read(most)


def execute(
    home: Home, root: Path, settings: Settings, data: bytes, *, approves_all: bool, streams: bool
) -> int:
    """Execute a message; return the exit status."""
    tell: Callable[[Event], None] = _print if streams else lambda _: None
    with _space(home, root, settings, approves_all, tell) as space:
        try:
            run = space.run(message=data)
        except MessageError as fault:
            # As the protocol has it: with one error event.
            event = ErrorEvent(timestamp=now(), category="validation", message=str(fault))
            tell(event)
            run_id, events = factory.new_run_id(), () if streams else (event,)
            _print(EventsMessage(protocol_version="1.0", run_id=run_id, status="error", events=events))
            return fail(str(fault), UsageError.exit_status)
        return _report(run, len(run.events) if streams else 0)


def answer(
    home: Home,
    session: Session,
    settings: Settings,
    given: str | bytes | None,
    decided: approval.Answer,
    *,
    approves_all: bool,
) -> int:
    """Answer a run's question and print what came of it; return the exit status.

    `given` is the operation's id, or a message that holds the answer; otherwise `decided` is the answer.
    """
    name = given if not isinstance(given, bytes) else None
    if isinstance(given, bytes):
        try:
            name, said = read_answer(given)
        except MessageError as fault:
            raise UsageError(f"the answer on stdin {fault}") from fault
        if decided.decision == "no" and said.decision != "no":
            raise UsageError("this message approves, but the command is `deny`: use `codingagent approve`")
        always = decided.decision == "always" and said.decision == "yes"
        decision = decided.decision if always else said.decision
        decided = replace(said, decision=decision, reason=said.reason or decided.reason)
    with _run(home, session, settings, approves_all) as run:
        known = len(run.session.ends)
        run.decide(name, decided)
        return _report(run, known)


def finish(home: Home, session: Session, settings: Settings, *, approves_all: bool) -> int:
    """Finish an interrupted run and print all its events; return the exit status."""
    if session.is_complete:
        raise UsageError(f"{session.session_id} is done; `codingagent show {session.session_id}` shows it")
    with _run(home, session, settings, approves_all) as run:
        if run.pending_approval is None or approves_all:
            run.go_on()
        return _report(run, 0)


def undo(home: Home, session: Session, what: UndoChoice, screen: "Screen") -> None:
    """Undo what a run changed, or revert its last undo."""
    folders = (Path(session.workspace), home.root)
    with (
        contextlib.closing(home.runs.open(session.session_id)) as journal,
        contextlib.closing(LazyStore(place_of(home, session))) as store,
    ):
        log = SessionLog(journal, session, screen.record)
        checkpointer = Checkpointer(log, store, folders, screen.show)
        if session.undoing is None:
            if left := take_back(home, checkpointer, what):
                raise WorkError(left)
            return
        store.needed()
        finish_undo(home, checkpointer)
        screen.remark("finished an interrupted undo; nothing else was undone")


@contextlib.contextmanager
def _space(
    home: Home, root: Path, settings: Settings, approves_all: bool, tell: Callable[[Event], None]
) -> Iterator[Space]:
    person = context.Person(_say, approves_all=approves_all, record=_say_words)
    with Space.of(home, root, settings, person, tell) as space:
        try:
            yield space
        except KeyboardInterrupt:
            raise InterruptError(
                "stopped; `codingagent list --runs` names the run, `codingagent resume RUN_ID` finishes it"
            ) from None


@contextlib.contextmanager
def _run(home: Home, session: Session, settings: Settings, approves_all: bool) -> Iterator[Run]:
    check_present(session)
    with _space(home, Path(session.workspace), settings, approves_all, lambda _: None) as space:
        factory.check_workspace(home, session)
        yield space.open_run(session.session_id)


def _say(notice: notices.Notice) -> None:
    """Print on stderr what is meant for a person: stdout is for the program."""
    if isinstance(notice, notices.Remark):
        fail(notice.text)


def _say_words(record: journal_entries.Record, _: Session) -> None:
    if isinstance(record, journal_entries.UndoEnded):
        fail("; ".join(record.notes))
    elif isinstance(event := getattr(record, "event", None), MessageShown):
        sys.stderr.write(f"{event.text}\n")


def _print(value: Event | EventsMessage) -> None:
    """Print JSON and a line end, in UTF-8 whatever the terminal's encoding is, while somebody reads."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(to_json(value).encode() + b"\n")
        sys.stdout.buffer.flush()
    except OSError as fault:
        if not has_no_reader(fault):
            raise
        # The reader has gone (`| head`); the work goes on without it, as in a session.
        silence(sys.stdout)


def _report(run: Run, since: int) -> int:
    _print(run.message(since))
    return _STATUS[run.status]
