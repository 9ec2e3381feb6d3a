"""The person's check: run it once before the first answer, then after each turn that changed a file.

Before the first answer it runs beside the person, who carries the request: they learn what fails
already. An answer that comes meanwhile ends it.
"""

import shutil
from functools import partial
from threading import Thread

from codingagent.agent import run_command
from codingagent.agent.context import Context
from codingagent.agent.executor import Agent
from codingagent.agent.plan import Order
from codingagent.errors import CodingAgentError, OperationError
from codingagent.model import check_outcome
from codingagent.model import journal_entries as entries
from codingagent.model.approval import Question
from codingagent.model.effects import file_changes, may_change_anything
from codingagent.model.events import Event, Interrupted, Refused
from codingagent.model.observations import Outcome
from codingagent.model.operations import Kind, RunCommand
from codingagent.model.session_state import Phase, Session
from codingagent.process.check_trial import first_program
from codingagent.process.runner import environment
from codingagent.storage.clock import now
from codingagent.workspace.programs import persons_variables

_LOOK_EVERY_S = 0.1


def hidden_files(context: Context) -> set[str]:
    """Return the files with hidden values, also ignored ones: a command may remove the last."""
    found = context.secrecy.vault.by_name.values()
    return {path for entry in found for path in entry.places}


class Check:
    """The check of one session."""

    def __init__(self, context: Context, agent: Agent) -> None:
        self._context, self._agent, self._log = context, agent, context.log
        self._ahead: _Ahead | None = None

    @property
    def _session(self) -> Session:
        return self._log.session

    # --- before the first answer ---------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether it runs beside the person, or its outcome is still to be recorded."""
        return self._ahead is not None

    @property
    def has_ended(self) -> bool:
        return self._ahead is not None and not self._ahead.is_alive()

    def begin(self) -> bool:
        """Start it beside the person, unless it was run before or an answer was; return whether it runs."""
        if self._session.phase is not Phase.AWAITING_ANSWER or self._session.sequence > 1:
            return False
        if self.is_running:
            return True
        self.end()  # a kill interrupted it
        context, check, before = self._context, self._context.settings.check, self._session.before
        if check and (before is None or before.command != check):
            context.checkpointer.before(hidden_files(context))
            self._log.record(entries.OperationStarted(0, Kind.CHECK, check, now()))
            # As with all commands: one whose start is lost would start twice.
            self._log.sync()
            self._ahead = _Ahead(context, self._operation())
        return self.is_running

    def run_ahead(self) -> None:
        """Run it to its end now, unless it was begun: an answer is there before anyone waited for it."""
        if not self.is_running and self.begin() and (ahead := self._ahead):
            self._context.remark("first your check runs on the files as they are")
            ahead.finish()
            self.end()

    def end(self) -> None:
        """Record and tell what it said before the first answer; if it still runs, end it."""
        started, ahead = self._session.started, self._ahead
        if started is None or started.kind is not Kind.CHECK or self._session.reply is not None:
            return
        self._ahead = None
        event: Event = Interrupted(Kind.CHECK, started.subject)
        if ahead is not None:
            ahead.stop()
            event = ahead.event()
        sees = self._sees(started.subject)
        self._log.record(entries.CheckEnded(event, now(), started.subject, sees))
        if self._session.checkpoints.before and self._session.phase is Phase.AWAITING_ANSWER:
            self._context.checkpointer.after(says=False)

    def _operation(self) -> RunCommand:
        settings = self._context.settings
        return RunCommand(settings.check, timeout_s=settings.check_timeout)

    def _sees(self, check: str) -> str:
        """Say which program a check starts: another environment than the person's is often why it fails."""
        name = first_program(check)
        variables = environment(persons_variables(), self._context.settings.pass_env)
        path = shutil.which(name, path=variables.get("PATH")) if name else None
        where = "here" if self._context.sandbox.tier == "none" else "in the sandbox"
        return f"{where} `{name}` is {path}" if path else f"it is not installed {where}"

    # --- after a turn --------------------------------------------------------------------------

    def settle(self, event: Event) -> None:
        """End the check of a turn that a kill interrupted."""
        started = self._session.started
        assert started is not None, "it was interrupted"
        self._end(event, started.subject)

    def run(self, *, ends: bool) -> bool:
        """Run it if this turn changed a file; return whether its last run succeeded.

        A turn that `ends` the task also runs it unless it last succeeded on exactly these files: the
        person may have changed some, or named another check.
        """
        check, session = self._context.settings.check, self._session
        if not check or session.is_run:
            return True
        is_another = session.checked_by not in ("", check)
        # An interrupted check is not run again; but the person may have named another one since.
        was_run = session.checked is not None and not is_another
        if not was_run and ((ends and not self._is_checked(check)) or self._has_changed()):
            order = Order(len(session.results), self._operation(), is_check=True)
            found = self._agent.perform(order)
            assert not isinstance(found, Question), "the person is not asked for what they want"
            self._end(found, check)
        return not self._session.is_failing

    def fails_as_before(self) -> bool:
        """Return whether nothing fails but tests that failed before any change, and say so."""
        session = self._session
        assert session.checked is not None, "it was just run"
        found = check_outcome.compared(session.before, session.checked, session.checked_by)
        said = (session.task, *(each.text for each in session.said))
        about = any(check_outcome.is_about(text, found.old) for text in said)
        if about or not (found.is_whole and found.is_same):
            return False
        count = len(found.old)
        what = "1 test failed" if count == 1 else f"{count} tests failed"
        self._context.remark(f"{what} before, too: {check_outcome.some(found.old)}")
        return True

    def _is_checked(self, check: str) -> bool:
        session = self._session
        if session.is_failing or session.is_unchecked or session.checked_by != check:
            return False
        return self._context.checkpointer.is_as_at(session.checked_on)

    def _has_changed(self) -> bool:
        """Return whether this turn changed a file; changes by commands show only in a checkpoint."""
        session = self._session
        if file_changes(session.results):
            return True
        if not any(map(may_change_anything, session.results)):
            return False
        # A pause for approval splits a turn: the part before it counts too.
        return not self._context.checkpointer.is_as_at(session.checkpoints.began)

    def _end(self, event: Event, command: str) -> None:
        self._log.record(entries.CheckEnded(event, now(), command))


class _Ahead(Thread):
    """The check in a thread of its own; what it printed is read by the thread that began it."""

    def __init__(self, context: Context, operation: RunCommand) -> None:
        super().__init__(daemon=True)
        self._context, self._operation = context, operation
        self._had_git = context.workspace.has_git()
        self._outcome: Outcome | None = None
        run_command.learn_files(context, operation)
        context.runner.start()
        self.start()

    def run(self) -> None:
        line, limit_s = (
            self._operation.command,
            run_command.limit_of(self._context, self._operation),
        )
        try:
            with self._context.workspace.folder(".") as folder:
                self._outcome = self._context.runner.run(line, folder, limit_s, lambda _: None)
        except CodingAgentError as fault:
            self._outcome = Outcome(-1, "", 0.0, failure=str(fault))

    def finish(self) -> None:
        """Wait for its end; an interrupt ends it."""
        try:
            while self.is_alive():
                self.join(_LOOK_EVERY_S)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it if it still runs; it then has no outcome."""
        if self.is_alive():
            while self.is_alive():
                self._context.runner.end_command()
                self.join(_LOOK_EVERY_S)
            self._outcome = None

    def event(self) -> Event:
        """Return what came of it, once it does not run any more."""
        if self._outcome is None:
            return Interrupted(Kind.CHECK, self._operation.command)
        ended = partial(run_command.ended, self._context, self._operation, self._outcome)
        try:
            return ended(0, had_git=self._had_git)
        except OperationError as fault:
            return Refused(Kind.CHECK, self._context.secrecy.hide(fault.reason))
