"""A session of tools: each call that changes something is a turn, with journal, approval and undo.

All of one happens in a thread of its own, as commands end with the thread that started them.
"""

import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent.context import Person
from codingagent.agent.factory import OpenSession, session_in, start_session
from codingagent.checkpoints.undo import UndoChoice, take_back
from codingagent.errors import (
    ApprovalError,
    CodingAgentError,
    GoneOnError,
    OperationError,
    UsageError,
    WorkError,
)
from codingagent.mcp.reading import ToolReader
from codingagent.model import approval, events, notices, observations, plain_text, results, session_state
from codingagent.model.journal_entries import ApprovalAsked, RefreshAsked, RequestWritten, ShownFile
from codingagent.model.settings import Settings
from codingagent.protocols import calls
from codingagent.storage import clock, homes
from codingagent.workspace.real_paths import root_of

_WENT_ON = approval.Answer(
    "no", approval.NOBODY, "nobody answered, and the client has gone on with something else"
)


class ToolPlace(Struct, frozen=True):
    """The folder that the person named, and where its sessions are kept."""

    root: Path
    home: Callable[[], homes.Home]
    """Makes the home, if it is not there yet."""
    settings: Settings
    """Those of a new session."""
    kept: Callable[[homes.Home, session_state.Session], Settings]
    """Returns those of a session that goes on."""
    say: Callable[[str], object]
    """Tell the person: a client shows it in its log, if at all."""


class Caller(Protocol):
    """Who made a call. `turn` is that of a call made once more, with an answer to its question; else 0."""

    turn: int

    def is_gone(self) -> bool: ...
    def show(self, output: str, /) -> None: ...
    def ask(self, asked: ApprovalAsked, is_answered: Callable[[], bool], /) -> approval.Answer | None:
        """Return the person's answer; None where nobody gives one, or it was given elsewhere."""
        ...


class Told(Struct, frozen=True):
    """What came of a call: words for the model, and facts for a program."""

    text: str
    facts: dict[str, object]
    is_error: bool = False
    turn: int = 0
    asked: ApprovalAsked | None = None
    """What waits for approval; nothing of it was done."""


class ToolSession:
    """The session that a client named, or a new one."""

    _work: OpenSession
    _reader: ToolReader
    _caller: Caller

    def __init__(self, place: ToolPlace, session_id: str, client: str) -> None:
        self._place, self.session_id = place, session_id
        self._stack, self._is_gone = contextlib.ExitStack(), False
        self._hide: Callable[[str], str] = lambda text: text
        self._thread = ThreadPoolExecutor(1, "session")
        self._begun = self._thread.submit(self._begin, client)

    # --- from other threads --------------------------------------------------------------------
    def begin(self, call: Any, caller: Caller) -> "Future[Told]":
        """Do a call when those before it are done."""
        return self._thread.submit(self._do, call, caller)

    @property
    def has_failed(self) -> bool:
        """Whether it could not be begun, or is gone: its last call says why, and it takes no other."""
        return self._is_gone or (self._begun.done() and self._begun.exception() is not None)

    def cancel(self) -> None:
        """End the command that runs, if any."""
        if self._begun.done() and not self.has_failed:
            self._work.context.runner.end_command()

    def close(self) -> None:
        """End the session's thread, once its calls are done."""
        self._thread.submit(self._end)
        self._thread.shutdown()

    # --- calls ---------------------------------------------------------------------------------
    def _begin(self, client: str) -> None:
        """Begin or find the session; UsageError if it is none of a client's in this folder."""
        place, self._home = self._place, (home := self._place.home())
        if self.session_id:
            session = home.sessions.load(self.session_id)
            if not session.is_of_tools or session.workspace != str(root_of(place.root)):
                raise UsageError(f"session {self.session_id} is no client's here: leave it out")
        else:
            settings = replace(place.settings, check="", conventions=False)
            session = start_session(home, place.root, client, settings, "calls")
            self.session_id = session.session_id
        self._heard = len(session.said)
        with home.lock.held(self._place.say):
            self._open()
            if self._state.phase is session_state.Phase.REQUEST_DUE:
                self._work.conversation.write_due()

    def _open(self) -> None:
        self._is_gone = True  # unless it is opened again
        self._stack.close()
        session = self._home.sessions.load(self.session_id)
        person, settings = Person(self._show, self._ask), self._place.kept(self._home, session)
        self._work = work = self._stack.enter_context(session_in(self._home, session, settings, person))
        self._reader, self._hide, self._is_gone = ToolReader(work.context), work.context.secrecy.hide, False

    def _end(self) -> None:
        with self._stack:
            if not self.has_failed:
                # Who has the home now writes the file itself; two at once would take each other's.
                with contextlib.suppress(WorkError), self._home.lock.held():
                    self._home.sessions.mend_document(self._state)

    @property
    def _state(self) -> session_state.Session:
        return self._work.context.log.session

    def _do(self, call: Any, caller: Caller) -> Told:
        """Do a call and return what came of it; a mistake of the model's is told, too."""
        try:
            self._begun.result()
            match calls.tool_of(call):
                case "diff":
                    return self._locked(lambda: self._of(self._reader.diff(self._home)), caller)
                case "undo":
                    return self._locked(lambda: self._undo(call.calls), caller)
                case tool if tool in calls.CHANGING:
                    return self._locked(lambda: self._change(plain_text.in_json(call)), caller)
                case _:
                    text = self._reader.read(call)
                    self._work.context.secrecy.save()
                    return self._of(text)
        except OperationError as fault:
            text = "\n".join(filter(None, (fault.reason, fault.detail)))
        except CodingAgentError as fault:
            text = str(fault)
        return self._of(self._hide(text), is_error=True)

    def _locked(self, act: Callable[[], Told], caller: Caller) -> Told:
        """Do what changes something while no other process works in this home."""
        with self._home.lock.held(self._place.say):
            self._caller = caller
            if self._work.context.log.has_grown():
                self._open()
            self._reader.forget()
            while not caller.is_gone():
                with contextlib.suppress(GoneOnError):
                    return act()
                caller.turn = self._state.sequence
                self._open()
        return self._of("cancelled: nothing was done", is_error=True)

    def _change(self, data: bytes) -> Told:
        state, digest, turn = self._state, observations.digest_of(data), self._caller.turn
        if turn and (state.sequence, state.last_digest) == (turn + 1, digest):
            return self._told()  # another process has done it, once it was approved there
        is_same = state.taken is not None and state.taken.digest == digest
        try:
            self._finish(withdraws=not is_same)
            if not is_same:
                self._record_read()
                self._work.conversation.take_call(data)
        except GoneOnError:
            raise
        except ApprovalError as fault:
            done = self._told().text if self._state.results else "Nothing was done."
            how = "or they answer on the page. Then make the same call again, or do something else."
            text, state = f"{done}\nNot answered: {fault}, {how}", self._state
            return replace(self._of(text, is_error=True), turn=state.sequence, asked=state.asked)
        return self._told()

    def _undo(self, count: int) -> Told:
        self._finish(withdraws=True)
        left = take_back(self._home, self._work.context.checkpointer, UndoChoice(max(count, 1)))
        told = self._state.undo_note.removeprefix("the user ") or "nothing was undone"
        self._work.conversation.write_due()
        return self._of(self._hide("\n".join(filter(None, (told, left)))), is_error=bool(left))

    def _finish(self, *, withdraws: bool) -> None:
        """Finish what is unfinished; a question of another call is withdrawn."""
        if self._state.is_awaiting_approval and withdraws:
            self._work.conversation.answer(None, _WENT_ON)
        if self._state.is_complete:  # the person closed it, and its client goes on
            self._work.requests.reopen()
        if self._state.phase is not session_state.Phase.AWAITING_ANSWER:
            self._work.conversation.recover()

    def _record_read(self) -> None:
        """Record which files the client has read whole, so that it may replace them."""
        log, read = self._work.context.log, self._reader.whole
        if news := [ShownFile(*each) for each in read.items() if log.session.known.get(each[0]) != each[1]]:
            log.record(RefreshAsked(clock.now()))
            log.record(RequestWritten(log.session.sequence, clock.now(), tuple(news)))
        read.clear()

    def _told(self) -> Told:
        """Return what came of the last turn."""
        state, secrecy = self._state, self._work.context.secrecy
        lines, facts = list[str](), dict[str, object]()
        for event in map(secrecy.event, state.results):
            words, text = results.result_of(event)
            lines += (words, text.strip("\n"), *(f"Note: {note}" for note in event.notes))
            if isinstance(event, events.Refused) and event.digest:  # its words say that the file is shown
                lines.append(self._reader.files([event.subject]))
            if isinstance(event, events.CommandRan):
                facts["exit_code"] = results.exit_code_of(event)
        lines += (f"Note: {self._hide(note)}" for note in state.notes)
        lines += (f"The user says: {self._hide(each.text)}" for each in state.said[self._heard :])
        self._heard = len(state.said)
        secrecy.save()
        is_error = not all(map(events.succeeded, state.results))
        if changed := [*map(self._hide, state.changed)]:
            facts["changed"] = changed
        return self._of("\n".join(filter(None, lines)), is_error=is_error, **facts)

    def _of(self, text: str, *, is_error: bool = False, **facts: object) -> Told:
        return Told(text, {"session": self.session_id, **facts}, is_error)

    # --- the person ----------------------------------------------------------------------------
    def _show(self, notice: notices.Notice) -> None:
        if isinstance(notice, notices.OutputCame):
            self._caller.show(notice.text)
        elif isinstance(notice, notices.Remark):
            self._place.say(notice.text)

    def _ask(self, asked: ApprovalAsked) -> approval.Answer | None:
        context = self._work.context
        if asked.index < 0:
            return None  # secret values are shown only where the person allowed it beforehand
        context.secrecy.save()
        with self._home.lock.set_aside(self._place.say):
            answer = self._caller.ask(asked, context.log.has_grown)
        if context.log.has_grown():
            raise GoneOnError(f"session {self.session_id} has gone on elsewhere")
        return answer
