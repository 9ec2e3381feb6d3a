"""A session on which other processes work, too: the home's lock is held only while this one works.

Whoever waits, for an answer or for approval, sets the lock aside. Another terminal may then add words, undo,
approve or take the answer: it does so itself, and the one that waits follows the journal.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from codingagent.errors import GoneOnError, InterruptError, UsageError
from codingagent.model import journal_entries as entries
from codingagent.model.approval import Answer
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings
from codingagent.storage.homes import Home, told_as

if TYPE_CHECKING:
    from codingagent.agent.conversation import Conversation
    from codingagent.agent.factory import OpenSession
    from codingagent.cli.plain_output import Screen

_T = TypeVar("_T")
AT_WORK: "ContextVar[SharedSession | None]" = ContextVar("at_work", default=None)
"""The session of this process while a command runs that was entered in the terminal that waits.

The command uses it: a journal has one writer.
"""


class SharedSession:
    """A session at work in a locked home, opened anew after another process has worked on it."""

    def __init__(
        self,
        home: Home,
        screen: "Screen",
        open_session: "Callable[[Session, Settings], contextlib.AbstractContextManager[OpenSession]]",
        settings: Settings,
        reread: Callable[[Session, Settings], Settings],
    ) -> None:
        self._home = home
        self._settings, self._reread = settings, reread
        self._screen = screen
        self._open_session = open_session
        self._stack = contextlib.ExitStack()
        self.work: OpenSession
        self._news: list[tuple[entries.Record, Session]] = []

    @contextlib.contextmanager
    def opened(self, session: Session) -> Iterator["SharedSession"]:
        """Open the session; at the end close what is open then. An interrupt says how to continue."""
        try:
            # What is open hides secrets in the message of an error that leaves it.
            with self._stack:
                self.work = self._stack.enter_context(self._open_session(session, self._settings))
                yield self
        except KeyboardInterrupt:
            if self._screen.is_passing:
                raise
            raise InterruptError(
                f"stopped; nothing is lost: `codingagent resume {session.session_id}` continues"
            ) from None

    @property
    def conversation(self) -> "Conversation":
        return self.work.conversation

    def check_first(self, limit_s: int) -> None:
        """Run the check before the first request is written; after the limit, or a key, it goes on beside."""
        began_s, check = time.monotonic(), self.conversation.check
        with self._screen.any_key("your check runs first", limit_s) as is_left:
            if check.begin() and check.wait(lambda: is_left() or time.monotonic() - began_s > limit_s):
                check.end()
        self.work.context.workspace.check()  # it may have moved that away

    def announce_checked(self) -> None:
        """Say what to do now; where the check still runs, wait for it, and say so again if it fails."""
        requests = self.work.requests
        requests.announce(watched=False)
        if not self.work.is_checking:
            return
        self._screen.remark(
            "your check still runs: wait before you send this; if it fails, the request is written anew"
        )
        self.conversation.check.wait(lambda: False)
        written = requests.written
        self.conversation.tell_check(is_told=True)
        if requests.written != written:
            requests.announce(watched=False)

    def has_gone_on(self) -> bool:
        """Return whether another process has worked on the session, or settings of its commands changed."""
        return self.work.context.log.has_grown() or self._has_new_settings()

    def _has_new_settings(self) -> bool:
        old, new = self._settings, self._reread(self.work.context.log.session, self._settings)
        is_other = (old.show, old.pass_env) != (new.show, new.pass_env)
        return is_other and not self._screen.is_passing

    def wait(self, until: Callable[[], _T]) -> _T:
        """Return what `until` returns. Meanwhile others may work on the session, unless its check runs."""
        if self.conversation.check.is_running:
            return until()
        with self._set_aside():
            found = until()
        if self.has_gone_on():
            self.follow()
        return found

    def ask(self, asked: entries.ApprovalAsked) -> Answer | None:
        """Return the person's answer. GoneOnError if another process has answered, or ended the session."""
        log = self.work.context.log
        before = log.session.asked
        is_kept = log.session.is_awaiting_approval

        def is_answered() -> bool:
            if is_kept:
                self._news += log.catch_up()
                return log.session.asked != before or not log.session.is_awaiting_approval
            return log.has_grown()  # no record tells of this question: each may be an answer to it

        with self._set_aside():
            answer = self._screen.ask(asked, log.session, is_answered)
        # What is half written is cut off where the session is opened anew.
        if is_answered() or log.has_grown():
            session_id = log.session.session_id
            raise GoneOnError(
                f"session {session_id} has gone on in another terminal: `codingagent show {session_id}`"
                " shows how"
            )
        if self._news:
            self._tell()
        return answer

    def follow(self) -> None:
        """Say what another process did, open the session anew, and finish what is unfinished."""
        self._news += self.work.context.log.catch_up()
        if is_new := self._has_new_settings():
            self._screen.remark("your settings changed: what commands see changes with them")
        if self._news or not is_new:
            self._tell()
        self._reopen()

    def go_on(self) -> None:
        """Finish what a kill, an interrupt or another process left unfinished, up to the next request."""
        if not self.conversation.session.is_complete:
            self.doing(self.conversation.recover)
            self.doing(lambda: self.conversation.finish_trials(after_kill=True))

    def doing(self, step: Callable[[], _T]) -> _T | None:
        """Return what a step of this session returns; None if another process answered its question."""
        try:
            return step()
        except GoneOnError:
            self.follow()
            return None

    def name_check(self, command: str) -> None:
        """Use another check from now on, and tell the model; UsageError if it can't be run."""
        from codingagent.process import select_sandbox

        context, session = self.work.context, self.work.requests.session
        if session.is_complete:
            raise UsageError("the task is done: type what is next first, then /check")
        settings = replace(context.settings, check=command)
        select_sandbox.refuse_impossible_check(settings, context.policy, context.workspace.root)
        self.conversation.check.end()
        self.work.requests.name_check(command)
        self._reopen()

    def _tell(self) -> None:
        """Show what another process did, as it was shown there."""
        record, screen = self.work.context.secrecy.record, self._screen
        screen.remark("in another terminal:")
        shown = [screen.record(*record(*each), is_elsewhere=True) for each in self._news]
        if not any(shown):
            screen.remark("  work was done or begun")
        self._news.clear()

    def _reopen(self) -> None:
        """Open the session anew, and finish what is unfinished."""
        before, session = self.work, self._home.sessions.load(self.work.requests.session.session_id)
        self._stack.close()
        self._settings = self._reread(session, self._settings)
        self.work = self._stack.enter_context(self._open_session(session, self._settings))
        # What it found is a request that the person has not been told of here.
        requests, earlier = self.work.requests, before.requests
        requests.choice, requests.written = earlier.choice, earlier.written + 1
        self.go_on()

    @contextlib.contextmanager
    def _set_aside(self) -> Iterator[None]:
        self.work.context.secrecy.save()
        with self._home.lock.set_aside(self._screen.remark):
            yield


def locked(home: Home, say: Callable[[str], None]) -> contextlib.AbstractContextManager[None]:
    """Hold the home's lock; a command entered in the terminal that waits has it already."""
    return contextlib.nullcontext() if AT_WORK.get() else home.lock.held(say)


def announce(conversation: "Conversation") -> None:
    """Tell the person what to do now, unless this process waits for it and does so itself."""
    if AT_WORK.get() is None:
        conversation.requests.announce(watched=False)


def at_work_on(session: Session) -> SharedSession | None:
    """Return what this process works on, if a command was entered there; UsageError for another session."""
    own = AT_WORK.get()
    if own and (other := own.work.requests.session).session_id != session.session_id:
        raise UsageError(f"this terminal works on {told_as(other)}: leave that first, with /quit")
    return own
