"""The person's check: run it once before the first request, then after each turn that changed a file.

Before the first request it is waited for a while, so that the chat learns what fails already. Where it takes
longer it runs beside the person, who carries the request, and an answer that comes meanwhile ends it.
"""

import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import get_args

from codingagent.agent import executor
from codingagent.agent.context import Context, OperationRequest
from codingagent.editing.file_kinds import is_prose
from codingagent.errors import CodingAgentError, OperationError
from codingagent.model import check_outcome
from codingagent.model import journal_entries as entries
from codingagent.model.approval import Question
from codingagent.model.events import SKIPPED, CommandRan, Denied, Event, Interrupted, Refused, file_changes
from codingagent.model.observations import Outcome, digest_of
from codingagent.model.operations import EVERYWHERE, FileOperation, Kind, RunCommand
from codingagent.model.paths import shown
from codingagent.model.patterns import sections
from codingagent.model.session_state import Phase
from codingagent.process.diagnosis import lacking
from codingagent.storage.clock import now
from codingagent.workspace.workspace import Workspace

# Files, the command that each means, and the expression of which it has a match then; a group is the command.
_PROPOSED = re.findall(r" +(\S+) {2,}(.*?) {2,}(.*)\n", sections(__file__)["proposed"])
_LOOK_EVERY_S = 0.1
_BEFORE = (Phase.REQUEST_DUE, Phase.AWAITING_ANSWER)
_EDITS = {each.kind for each in get_args(FileOperation)}


def hidden_files(context: Context) -> set[str]:
    """Return the files with hidden values, also ignored ones: a command may remove the last."""
    found = context.secrecy.vault.by_name.values()
    return {path for entry in found for path in entry.places}


def proposal(workspace: Workspace) -> str:
    """Return the command that runs the tests of a workspace, as one of its files says; empty: none does."""
    for path, command, pattern in _PROPOSED:
        with contextlib.suppress(OperationError):
            text = workspace.text(path, workspace.read(path).data)
            if text is not None and (found := re.search(pattern, text.text, re.MULTILINE)):
                command = "".join(found.groups()) or command  # noqa: PLW2901
                folder, end = (".venv/Scripts", ".exe") if os.name == "nt" else (".venv/bin", "")
                is_own = command + end in workspace.names(folder)
                return f"{folder}/{command}".replace("/", os.sep) if is_own else command
    return ""


class Check:
    def __init__(self, context: Context, executor: executor.Executor) -> None:
        self._context, self._executor, self._log = context, executor, context.log
        self._ahead: _Ahead | None = None

    @property
    def is_running(self) -> bool:
        """Return whether it runs beside the person, or its outcome is still to be recorded."""
        return self._ahead is not None

    @property
    def has_ended(self) -> bool:
        return self._ahead is not None and not self._ahead.is_alive()

    def begin(self) -> bool:
        """Start it in a thread, unless it was run before or an answer was; return whether it runs."""
        session, context, check = self._log.session, self._context, self._context.settings.check
        is_before = session.phase in _BEFORE and session.is_first_wish
        if self.is_running or not is_before:
            return self.is_running
        self.end()  # a kill interrupted it
        before = self._log.session.check_before
        is_same = before and before.command == check and before.settings in ("", self._seen)
        if check and not is_same:
            context.checkpointer.before(hidden_files(context))
            self._log.record(entries.OperationStarted(0, Kind.CHECK, check, now()))
            # As with all commands: one whose start is lost would start twice.
            self._log.sync()
            self._ahead = _Ahead(context, self._operation)
        return self.is_running

    def run_ahead(self) -> None:
        """Run it to its end now, unless it was begun: an answer is there before anyone waited for it."""
        if not self.is_running and self.begin():
            self._context.remark("first your check runs on the files as they are")
            self.wait(lambda: False)
            self.end()

    def wait(self, leaves: Callable[[], bool]) -> bool:
        """Wait until it has ended, or `leaves` says so; return whether it has. An interrupt ends it."""
        try:
            while self._ahead and self._ahead.is_alive() and not leaves():
                self._ahead.join(_LOOK_EVERY_S)
        except BaseException:
            self.end()
            raise
        return not (self._ahead and self._ahead.is_alive())

    def end(self, *, is_told: bool = False) -> None:
        """Record what it said before the first answer, and end it; `is_told`: a failure is for a request."""
        started, ahead = self._log.session.unfinished, self._ahead
        if started is None or started.kind is not Kind.CHECK or self._log.session.taken is not None:
            return
        event = ahead.event() if ahead else Interrupted(Kind.CHECK, started.subject)
        self._ahead = None
        sees = self._sees(event) if isinstance(event, CommandRan) else ""
        was_told = check_outcome.failure_before(self._log.session) is not None
        is_news = is_told and (was_told or check_outcome.is_news(event))
        ended = entries.CheckEnded(event, now(), started.subject, sees, is_news, self._seen)
        self._log.record(ended)
        if self._log.session.checkpoints.before and self._log.session.phase in _BEFORE:
            self._context.checkpointer.after(says=False)

    @cached_property
    def _seen(self) -> str:
        """The digest of what decides what commands see: settings, and what a project's tools lack."""
        settings, sandbox = self._context.settings, self._context.sandbox
        lacks = lacking(sandbox, self._context.workspace.root, self._context.runner.variables.get("PATH", ""))
        seen = (settings.show, settings.pass_env, sandbox.tier, sandbox.has_network, *lacks)
        return digest_of(repr(seen).encode("utf-8", "replace"))[:12]

    @property
    def _operation(self) -> RunCommand:
        settings = self._context.settings
        return RunCommand(settings.check, timeout_s=settings.check_timeout)

    def _sees(self, event: CommandRan) -> str:
        """Say which program a check starts, or why it can't: a sandbox does not show all."""
        lost = check_outcome.lost_program(event)
        name = lost or next((word for word in event.command.split() if "=" not in word), "")
        path = shutil.which(name, path=self._context.runner.variables.get("PATH", "")) or ""
        host = self._context.workspace.root / (name if "/" in name else path)
        if not lost:
            where = "here" if event.sandbox == "none" else "in the sandbox"
            return f"{where} `{name}` is {host}" if host.is_file() else ""
        if host.is_file():
            place = os.path.normpath(host if host.parent == Path.home() else host.parent)
            helps = f"codingagent config add show {shlex.quote(place)}"
            return f"{host} is not visible in the sandbox: {helps}"
        return f"there is no program `{shown(name)}`" + " on your PATH" * ("/" not in name)

    def run(self, *, ends: bool) -> bool:
        """Run it if this turn changed a file; return whether its last run succeeded.

        A turn that `ends` the task also runs it unless it last succeeded on exactly these files: the
        person may have changed some, or named another check.
        """
        check, session = self._context.settings.check, self._log.session
        if not check or session.is_run:
            return True
        is_another = session.checked_by not in ("", check)
        if self.waits_for_edits():
            return not session.is_failing
        # An interrupted check is not run again; but the person may have named another one since.
        was_run = session.checked is not None and not is_another
        if not was_run and ((ends and not self._is_checked) or self._has_changed):
            changed = file_changes(session.results)
            may_change = any(EVERYWHERE in event.changes for event in session.results)
            if changed and not may_change and all(is_prose(each.path) for each in changed):
                found = self._run_or_skip()
            else:
                order = OperationRequest(len(session.results), self._operation, is_check=True)
                done = self._executor.perform(order)
                assert not isinstance(done, Question), "the person is not asked for what they want"
                found = done
            self._log.record(entries.CheckEnded(found, now(), check))
        return not self._log.session.is_failing

    def _run_or_skip(self) -> Event:
        """Run it until a key of the person's skips it: what changed is hardly its concern."""
        check, context = self._context.settings.check, self._context
        index, limit_s = len(self._log.session.results), executor.limit_of(context, self._operation)
        started = entries.OperationStarted(index, Kind.CHECK, check, now(), limit_s=limit_s)
        self._log.record(started)
        self._log.sync()
        ahead = _Ahead(context, self._operation)
        try:
            with context.person.any_key("your check runs, though only prose changed") as is_skipped:
                while ahead.is_alive() and not is_skipped():
                    ahead.join(_LOOK_EVERY_S)
        except BaseException:
            ahead.event()
            raise
        event, reason = ahead.event(), "the user skipped it, as only prose changed"
        is_ended = isinstance(event, Interrupted)
        return Denied(Kind.CHECK, check, SKIPPED, reason) if is_ended else event

    def waits_for_edits(self) -> bool:
        """Return whether an edit of this turn failed: what it says of half of a change is of no use."""
        refused = (each for each in self._log.session.results if isinstance(each, Refused))
        return bool(self._context.settings.check) and any(each.kind in _EDITS for each in refused)

    def has_changed(self) -> bool:
        """Return whether the session changed a file, as far as is known: the check runs after each change."""
        session = self._log.session
        return session.last_checked is not None or session.is_unchecked or self._has_changed

    @property
    def _is_checked(self) -> bool:
        """Return whether the check last succeeded on exactly the files as they are."""
        session, check = self._log.session, self._context.settings.check
        if session.is_failing or session.is_unchecked or session.checked_by != check:
            return False
        return self._context.checkpointer.is_as_at(session.checked_on)

    @property
    def _has_changed(self) -> bool:
        """Return whether this turn changed a file; changes by commands show only in a checkpoint."""
        session = self._log.session
        if file_changes(session.results):
            return True
        if not any(EVERYWHERE in event.changes for event in session.results):
            return False
        # A pause for approval splits a turn: the part before it counts too.
        return not self._context.checkpointer.is_as_at(session.checkpoints.began)


class _Ahead(Thread):
    """The check in a thread of its own; what it printed is read by the thread that began it."""

    def __init__(self, context: Context, operation: RunCommand) -> None:
        super().__init__(daemon=True)
        self._context, self._operation = context, operation
        self._outcome: Outcome | None = None
        executor.learn_files(context, operation)
        context.runner.start()
        self.start()

    def run(self) -> None:
        context, line = self._context, self._operation.command
        limit_s = executor.limit_of(context, self._operation)
        try:
            with context.workspace.folder(".") as folder:
                self._outcome = context.runner.run(line, folder, limit_s, lambda _: None)
        except CodingAgentError as fault:
            self._outcome = Outcome(-1, "", 0.0, failure=str(fault))

    def event(self) -> Event:
        """Return what came of it; if it still runs, end it."""
        was_running = self.is_alive()
        while self.is_alive():
            self._context.runner.end_command()
            self.join(_LOOK_EVERY_S)
        if was_running or self._outcome is None:
            return Interrupted(Kind.CHECK, self._operation.command)
        try:
            return executor.ended(self._context, self._operation, self._outcome)
        except OperationError as fault:
            hide = self._context.secrecy.hide
            return Refused(Kind.CHECK, hide(fault.fact), advice=hide(fault.advice))
