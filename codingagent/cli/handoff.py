"""Hand `say`, `refresh`, `approve`, `deny` and `undo` to the process that holds the home's lock."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from msgspec.structs import replace

from codingagent.errors import (
    CodingAgentError,
    IncompleteError,
    InterruptError,
    UsageError,
    WorkError,
)
from codingagent.model.approval import Answer, nothing_awaits
from codingagent.model.session_state import Session
from codingagent.model.settings import SESSION_VARIABLE
from codingagent.model.ui_events import ApprovalAwaited, Notice, Remark
from codingagent.storage import queued_request
from codingagent.storage.homes import Home, told_as
from codingagent.storage.lock import HeldError
from codingagent.storage.queued_request import Errand, Report, What
from codingagent.storage.request_queue import Left, RequestQueue

if TYPE_CHECKING:
    from codingagent.agent.conversation import Conversation
    from codingagent.agent.factory import OpenSession

_LOOK_EVERY_S = 0.05
_LOCK_EVERY_S = 0.5
_SAY_SO_AFTER_S = 2.0


AT_WORK: "ContextVar[tuple[OpenSession, QueueWorker] | None]" = ContextVar("at_work", default=None)
"""The open session while a command runs that was entered in the terminal that waits.

The command uses it: a journal has one writer.
"""


def at_work_on(session: Session) -> "tuple[OpenSession, QueueWorker]":
    """Return what this process works on; UsageError if that is another session."""
    own = AT_WORK.get()
    assert own is not None, "a command entered in the terminal that waits asks"
    if (other := own[0].context.log.session).session_id != session.session_id:
        raise UsageError(f"this terminal works on {told_as(other)}: leave that first, with /quit")
    return own


@contextlib.contextmanager
def locked(home: Home) -> Iterator[None]:
    """Hold the home's lock; a command entered in the terminal that waits has it already."""
    with contextlib.nullcontext() if AT_WORK.get() else home.locked():
        yield


def announce(conversation: "Conversation") -> None:
    """Tell the person what to do now, unless this process waits for it and does so itself."""
    if AT_WORK.get() is None:
        conversation.requests.announce(watched=False)


@contextlib.contextmanager
def held_or_handed(
    home: Home, errand: Errand, complain: Callable[[str], None]
) -> Iterator[tuple[bool, str]]:
    """Hold the home's lock, or have its holder run an errand; complain if that takes long.

    Yield whether it did; otherwise this process must run the errand itself. Also yield the errand's name,
    under which a killed process may have begun it.
    """
    queue = home.queue
    with contextlib.ExitStack() as stack:
        if AT_WORK.get() is not None or not _lock(home, stack):
            yield False, ""
            return
        if os.environ.get(SESSION_VARIABLE) == errand.session_id:
            raise UsageError(
                "this was called by the command that answers for the chat, and the other terminal waits for"
                " that command: print your words instead, as a [MESSAGE] in the answer"
            )
        name = queue.new_name()
        try:
            queue.leave(name, queued_request.encode(errand))
            report = _wait(home, name, stack, complain)
        except KeyboardInterrupt:
            if queue.withdraw(name):
                raise InterruptError("stopped; nothing was handed over") from None
            raise InterruptError(
                "stopped, but too late to cancel it: the other terminal has already started on it"
            ) from None
        except BaseException:
            queue.withdraw(name)
            raise
        if report is not None and report.fault:
            kind = UsageError if report.exit_status == UsageError.exit_status else WorkError
            raise kind(report.fault)
        yield report is not None, name


def _wait(
    home: Home, name: str, stack: contextlib.ExitStack, complain: Callable[[str], None]
) -> Report | None:
    """Wait for the report on an errand; None if this process has the lock and the errand is not finished."""
    queue = home.queue
    started = looked = time.monotonic()
    has_complained = False
    while (report := _report(queue, name)) is None:
        time.sleep(_LOOK_EVERY_S)
        if time.monotonic() - looked < _LOCK_EVERY_S:
            continue
        looked = time.monotonic()
        if not (busy := _lock(home, stack)):
            report = _report(queue, name)
            # A killed process had begun it: `say` recognizes the name.
            queue.forget(name)
            return report
        queue.keep(name)
        if looked - started > _SAY_SO_AFTER_S and not has_complained:
            complain(f"{busy}; waiting for it (Ctrl-C cancels this)")
            has_complained = True
    return report


def _lock(home: Home, stack: contextlib.ExitStack) -> str:
    """Take the home's lock; return its holder, if another process has it."""
    try:
        stack.enter_context(home.locked())
    except HeldError as fault:
        return str(fault).partition(";")[0]
    return ""


def _report(queue: RequestQueue, name: str) -> Report | None:
    data = queue.fetch(name)
    return None if data is None else queued_request.decode_report(data)


class QueueWorker:
    """Run errands that other processes leave while a session waits for an answer or for approval."""

    def __init__(self, home: Home, show: Callable[[Notice], None]) -> None:
        self._home = home
        self._queue = home.queue
        self._show = show
        self._work: OpenSession | None = None

    def serve(self, work: "OpenSession") -> None:
        """Set the current session: words may come for it while it waits for approval."""
        self._work = work

    def __call__(self, conversation: "Conversation") -> None:
        """Run all waiting errands."""
        for left in self._queue.take():
            if (what := self._do(left, conversation)) is not None:
                self._show(Remark(f"{what}: send the chat this request"))

    def answer_to(self, awaited: ApprovalAwaited) -> Answer | None:
        """Return the answer given elsewhere to the question that waits here, if any."""
        for left in self._queue.take():
            try:
                errand = queued_request.decode_errand(left.data)
            except UsageError as fault:
                self._tell(left, Report(str(fault), fault.exit_status))
                continue
            if errand.what != "answer" and self._work is not None:
                self._do(left, self._work.conversation)
                continue
            named = errand.operation_id in ("", awaited.operation_id)
            is_meant = errand.seen == queued_request.seen(awaited.shown)
            is_ours = errand.session_id == awaited.session_id
            if is_ours and named and is_meant and errand.answer is not None:
                self._tell(left, Report())
                return replace(errand.answer, how="command")
            what = (
                f"only {awaited.operation_id} of {awaited.session_id} awaits approval:"
                " see the question in the other terminal"
            )
            self._tell(left, Report(what, UsageError.exit_status))
        return None

    def _do(self, left: Left, conversation: "Conversation") -> str | None:
        """Run an errand and report; return how the request was rewritten, in words, or None."""
        try:
            what = self._run(queued_request.decode_errand(left.data), left.name, conversation)
        except CodingAgentError as fault:
            self._tell(left, Report(str(fault), fault.exit_status))
            if not isinstance(fault, UsageError | IncompleteError):
                raise
            return None
        self._tell(left, Report())
        return what

    def _run(self, errand: Errand, name: str, conversation: "Conversation") -> str | None:
        session = conversation.session
        if errand.session_id != session.session_id:
            raise UsageError(
                f"another terminal works on session {session.session_id} in this home: stop it with Ctrl-C"
                f" first, then run this again for {errand.session_id}"
            )
        errand.check_turn(session)
        left = ""
        match errand.what:
            case "say":
                conversation.requests.say(errand.text, errand.attached, name)
                done = "words were added in another terminal"
            case "refresh":
                conversation.requests.refresh()
                done = "rewritten at the request of another terminal"
            case "undo":
                from codingagent.checkpoints.undo import take_back

                assert self._work is not None, "its checkpoints are open"
                checkpointer = self._work.context.checkpointer
                left = take_back(self._home, checkpointer, errand.turns, force=errand.force)
                done = "undone at the request of another terminal"
            case "revoke":
                conversation.requests.revoke(tuple(errand.text.split("\n")))
                return None
            case "answer":
                raise UsageError(nothing_awaits(session.session_id))
        write_request(conversation, after=errand.what)
        if left:
            raise IncompleteError(left)
        return done

    def _tell(self, left: Left, report: Report) -> None:
        self._queue.report(left.name, queued_request.encode(report))


def write_request(conversation: "Conversation", *, after: What) -> None:
    """Write the request that is due after words or a refresh."""
    try:
        # Not `recover`: this must not execute any of an answer, and it may come in the middle of a turn.
        conversation.write_due()
    except WorkError as fault:
        session_id = conversation.session.session_id
        kept = "your words are kept, don't repeat them: " if after == "say" else ""
        raise WorkError(
            f"{fault}; {kept}`codingagent refresh {session_id}` writes the request"
        ) from fault
