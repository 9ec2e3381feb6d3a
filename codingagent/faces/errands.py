"""Errands: `say`, `refresh`, `approve` and `deny`, handed to the process that holds the home's lock."""

import contextlib
import time
from collections.abc import Callable, Iterator

from codingagent.conversation import Conversation
from codingagent.core import errands
from codingagent.core.approval import Answer
from codingagent.core.errands import Errand, Report
from codingagent.core.notices import ApprovalAwaited
from codingagent.errors import CodingAgentError, UsageError, WorkError
from codingagent.homes import Home
from codingagent.world.desk import Desk, Left

_LOOK_EVERY_S = 0.05
_LOCK_EVERY_S = 0.5
_SAY_SO_AFTER_S = 2.0


@contextlib.contextmanager
def locked_or_handed(
    home: Home, errand: Errand, complain: Callable[[str], None]
) -> Iterator[tuple[Report | None, str]]:
    """Holds the home's lock, or has the one who holds it do an errand.

    Gives its report, or None if the lock is ours and the errand is to be done by whoever called; and the
    errand's name, under which it may have been begun by one who was killed.

    Args:
        home: where.
        errand: what is to be done.
        complain: gets a line if it takes long.

    Raises:
        WorkError: if it can't be handed over.
        KeyboardInterrupt: passed on; the errand is withdrawn, if that is still possible.
    """
    name = ""
    report: Report | None = None
    started = looked = time.monotonic()
    has_complained = False
    with contextlib.ExitStack() as stack:
        while report is None:
            if not name or time.monotonic() - looked >= _LOCK_EVERY_S:
                looked = time.monotonic()
                busy = _lock(home, stack)
                if not busy:
                    # Not done, done, or begun by one who was killed: `say` knows the name.
                    report = (
                        None if not name or home.desk.withdraw(name) else _report(home.desk, name)
                    )
                    break
                if time.monotonic() - started > _SAY_SO_AFTER_S and not has_complained:
                    complain(f"{busy}; waiting until it has time (Ctrl-C: nothing is said)")
                    has_complained = True
            name = name or home.desk.leave(errands.encode(errand))
            try:
                time.sleep(_LOOK_EVERY_S)
                report = _report(home.desk, name)
            except KeyboardInterrupt:
                home.desk.withdraw(name)
                raise
        yield report, name


def _lock(home: Home, stack: contextlib.ExitStack) -> str:
    """Takes the home's lock; gives who holds it, if another does."""
    try:
        stack.enter_context(home.locked())
    except WorkError as fault:
        return str(fault).partition(";")[0]
    return ""


def _report(desk: Desk, name: str) -> Report | None:
    data = desk.fetch(name)
    return None if data is None else errands.decode_report(data)


class Attendant:
    """Does the errands that others leave while a session waits for its answer."""

    def __init__(self, home: Home) -> None:
        self._desk = home.desk

    def __call__(self, conversation: Conversation) -> bool:
        """Does all that lie there; tells whether the request was written anew.

        Raises:
            WorkError: if the disk does not let it; that is reported too.
        """
        is_new = False
        for left in self._desk.take():
            try:
                is_new = _do(left, conversation) or is_new
            except CodingAgentError as fault:
                self._tell(left, Report(str(fault), fault.exit_status))
                if not isinstance(fault, UsageError):
                    raise
            else:
                self._tell(left, Report())
        return is_new

    def answer_to(self, awaited: ApprovalAwaited) -> Answer | None:
        """Gives the answer that someone gave elsewhere to what awaits approval here."""

        def is_answer(data: bytes) -> bool:
            try:
                return errands.decode_errand(data).what == "answer"
            except UsageError:
                return False

        for left in self._desk.take(is_answer):
            errand = errands.decode_errand(left.data)
            named = errand.operation_id in ("", awaited.operation_id)
            if errand.session_id == awaited.session_id and named and errand.answer is not None:
                self._tell(left, Report())
                return errand.answer
            what = (
                f"{awaited.operation_id} of {awaited.session_id} awaits approval, and nothing else"
            )
            self._tell(left, Report(what, UsageError.exit_status))
        return None

    def _tell(self, left: Left, report: Report) -> None:
        self._desk.report(left.name, errands.encode(report))


def _do(left: Left, conversation: Conversation) -> bool:
    errand = errands.decode_errand(left.data)
    session = conversation.session
    if errand.session_id != session.session_id:
        raise UsageError(
            f"another codingagent is at work here with session {session.session_id}: stop it with Ctrl-C"
            f" first, then do it again for {errand.session_id}"
        )
    if errand.what == "say":
        conversation.say(errand.text, errand.attached, left.name)
    elif errand.what == "refresh":
        conversation.refresh()
    else:
        raise UsageError(f"nothing in {session.session_id} awaits approval")
    conversation.recover()
    return True
