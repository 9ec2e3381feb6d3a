"""A session of tools: each call that changes something is a turn, with journal, approval and undo.

All of one happens in a thread of its own, as commands end with the thread that started them.
"""

import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent import factory
from codingagent.agent.context import Person
from codingagent.agent.factory import OpenSession
from codingagent.checkpoints.undo import UndoChoice, take_back
from codingagent.errors import ApprovalError, CodingAgentError, GoneOnError, OperationError, UsageError
from codingagent.mcp.reading import ToolReader
from codingagent.model import events, results
from codingagent.model.approval import NOBODY, Answer
from codingagent.model.journal_entries import ApprovalAsked, RefreshAsked, RequestWritten, ShownFile
from codingagent.model.notices import Notice, OutputCame, Remark
from codingagent.model.observations import digest_of
from codingagent.model.plain_text import in_json
from codingagent.model.session_state import Phase, Session
from codingagent.model.settings import Settings
from codingagent.protocols import calls
from codingagent.storage.clock import now
from codingagent.storage.homes import Home
from codingagent.workspace.real_paths import root_of

_WENT_ON = Answer("no", NOBODY, "nobody answered, and the client has gone on with something else")


class ToolPlace(Struct, frozen=True):
    """Where sessions are: a home, which need not be there yet, and the folder that the person named."""

    home: Path
    was_found: bool
    """Nobody named the home itself."""
    root: Path
    settings: Callable[[Session | None], Settings]
    """Returns those of a session that goes on, or of a new one."""
    say: Callable[[str], object]
    """Tell the person: a client shows it in its log, if at all."""


class Caller(Struct, frozen=True):
    """Who made a call, and what reaches them while it runs."""

    show: Callable[[str], None] = lambda _: None
    """Show the output of a command as it comes."""
    ask: Callable[[ApprovalAsked, Callable[[], bool]], Answer | None] = lambda _, __: None
    """Ask for approval until the other function says that it was given elsewhere; None: nobody answered."""
    is_gone: Callable[[], bool] = bool
    """Whether they have cancelled the call."""
    turn: int = 0
    """The turn of a call that is made once more, with an answer to its question."""


_NONE = Caller()


class Told(Struct, frozen=True):
    """What came of a call: words for the model, and facts for a program."""

    text: str
    session: str = ""
    is_error: bool = False
    changed: tuple[str, ...] = ()
    exit_code: int | None = None
    turn: int = 0
    asked: ApprovalAsked | None = None
    """What waits for approval; nothing of it was done."""


class ToolSession:
    """A session that a client begins with its first call, or goes on with if it names one."""

    def __init__(self, place: ToolPlace, session_id: str, client: str) -> None:
        self.session_id = session_id
        self._place, self._client, self._caller = place, client, _NONE
        self._thread = ThreadPoolExecutor(1, "session")
        self._stack = contextlib.ExitStack()
        self._work: OpenSession | None = None

    # --- from other threads --------------------------------------------------------------------
    def begin(self, call: Any, caller: Caller) -> "Future[Told]":
        """Do a call when those before it are done."""
        return self._thread.submit(self._do, call, caller)

    def cancel(self) -> None:
        """End the command that runs, if any."""
        if (work := self._work) is not None:
            work.context.runner.end_command()

    def close(self) -> None:
        """End the session's thread, once its calls are done."""
        self._thread.submit(self._close)
        self._thread.shutdown()

    def _close(self) -> None:
        with contextlib.suppress(CodingAgentError), self._stack:
            if self._work is not None:
                self._home.sessions.mend_document(self._state)

    # --- calls ---------------------------------------------------------------------------------
    def _do(self, call: Any, caller: Caller) -> Told:
        """Do a call and return what came of it; a mistake of the model's is told, too."""
        try:
            if self._work is None:
                self._begin()
            match calls.tool_of(call):
                case "diff":
                    text = self._reader.diff(self._home, self.session_id)
                case "undo":
                    return self._locked(lambda: self._undo(call.calls), caller)
                case tool if tool in calls.CHANGING:
                    return self._locked(lambda: self._change(in_json(call)), caller)
                case _:
                    text = self._reader.read(call)
                    self._opened.context.secrecy.save()
            return Told(text, self.session_id)
        except OperationError as fault:
            text = "\n".join(filter(None, (fault.reason, fault.detail)))
        except CodingAgentError as fault:
            text = str(fault)
        hide = (lambda text: text) if self._work is None else self._work.context.secrecy.hide
        return Told(hide(text), self.session_id, is_error=True)

    def _begin(self) -> None:
        """Begin or find the session; UsageError if it is none of a client's in this folder."""
        place = self._place
        self._home = home = Home.at(place.home, create=True, was_found=place.was_found)
        if self.session_id:
            session = home.sessions.load(self.session_id)
            if not session.is_of_tools or session.workspace != str(root_of(place.root)):
                raise UsageError(f"session {self.session_id} is no client's here: leave it out")
        else:
            settings = replace(place.settings(None), check="", conventions=False)
            session = factory.start_session(home, place.root, self._client, settings, "calls")
            self.session_id = session.session_id
        with home.lock.held(place.say):
            self._open()
            if self._state.phase is Phase.REQUEST_DUE:
                self._opened.conversation.write_due()

    def _open(self) -> None:
        self._work = None
        self._stack.close()
        session = self._home.sessions.load(self.session_id)
        opened = factory.session_in(
            self._home, session, self._place.settings(session), Person(self._show, self._ask)
        )
        self._work = self._stack.enter_context(opened)
        self._reader = ToolReader(self._work.context)

    @property
    def _opened(self) -> OpenSession:
        assert self._work is not None, "its first call opens it"
        return self._work

    @property
    def _state(self) -> Session:
        return self._opened.context.log.session

    def _locked(self, act: Callable[[], Told], caller: Caller) -> Told:
        """Do what changes something while no other process works in this home."""
        with self._home.lock.held(self._place.say):
            if self._opened.context.log.has_grown():
                self._open()
            self._caller = caller
            self._reader.forget()
            while not caller.is_gone():
                with contextlib.suppress(GoneOnError):
                    return act()
                self._caller = replace(caller, turn=self._state.sequence)
                self._open()
        return Told("cancelled: nothing was done", self.session_id, is_error=True)

    def _change(self, data: bytes) -> Told:
        conversation, state, digest = self._opened.conversation, self._state, digest_of(data)
        turn = self._caller.turn
        if turn and (state.sequence, state.last_digest) == (turn + 1, digest):
            return self._told()  # another process has done it, once it was approved there
        is_same = state.taken is not None and state.taken.digest == digest
        try:
            self._finish(withdraws=not is_same)
            if not is_same:
                self._record_read()
                conversation.take_call(data)
        except GoneOnError:
            raise
        except ApprovalError as fault:
            done = self._told().text if self._state.results else "Nothing was done."
            text = (
                f"{done}\nNot answered: {fault}, or answers on the page. Then make the same call again,"
                " or do something else."
            )
            state = self._state
            return Told(text, self.session_id, is_error=True, turn=state.sequence, asked=state.asked)
        return self._told()

    def _undo(self, count: int) -> Told:
        self._finish(withdraws=True)
        left = take_back(self._home, self._opened.context.checkpointer, UndoChoice(max(count, 1)))
        told = self._state.undo_note.removeprefix("the user ") or "nothing was undone"
        self._opened.conversation.write_due()
        text = self._opened.context.secrecy.hide("\n".join(filter(None, (told, left))))
        return Told(text, self.session_id, is_error=bool(left))

    def _finish(self, *, withdraws: bool) -> None:
        """Finish what is unfinished; a question of another call is withdrawn."""
        if self._state.is_awaiting_approval and withdraws:
            self._opened.conversation.answer(None, _WENT_ON)
        if self._state.phase is not Phase.AWAITING_ANSWER:
            self._opened.conversation.recover()

    def _record_read(self) -> None:
        """Record which files the client has read whole, so that it may replace them."""
        log, read = self._opened.context.log, self._reader.whole
        if news := [each for each in read.items() if log.session.known.get(each[0]) != each[1]]:
            log.record(RefreshAsked(now()))
            shown = tuple(ShownFile(*each) for each in news)
            log.record(RequestWritten(log.session.sequence, now(), shown))
        read.clear()

    def _told(self) -> Told:
        """Return what came of the last turn."""
        state, secrecy = self._state, self._opened.context.secrecy
        lines, exit_code = list[str](), None
        for event in map(secrecy.event, state.results):
            words, text = results.result_of(event)
            lines += (words, text.strip("\n"), *(f"Note: {note}" for note in event.notes))
            if isinstance(event, events.Refused) and event.digest:  # its words say that the file is shown
                lines.append(self._reader.files([event.subject]))
            if isinstance(event, events.CommandRan):
                exit_code = results.exit_code_of(event)
        lines += (f"Note: {secrecy.hide(note)}" for note in state.notes)
        secrecy.save()
        is_error = not all(map(events.succeeded, state.results))
        changed = tuple(map(secrecy.hide, events.changed_paths(state.results)))
        return Told("\n".join(filter(None, lines)), self.session_id, is_error, changed, exit_code)

    # --- the person ----------------------------------------------------------------------------
    def _show(self, notice: Notice) -> None:
        if isinstance(notice, OutputCame):
            self._caller.show(notice.text)
        elif isinstance(notice, Remark):
            self._place.say(notice.text)

    def _ask(self, asked: ApprovalAsked) -> Answer | None:
        context = self._opened.context
        if asked.index < 0:
            return None  # secret values are shown only where the person allowed it beforehand
        context.secrecy.save()
        with self._home.lock.set_aside(self._place.say):
            answer = self._caller.ask(asked, context.log.has_grown)
        if context.log.has_grown():
            raise GoneOnError(f"session {self.session_id} has gone on elsewhere")
        return answer
