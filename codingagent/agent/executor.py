"""Execute operations: plan one, ask the policy, journal its start, do it, and return its event.

Every change is recorded before it is made, so that after a kill at any instant the journal tells what to
do: what had not begun is done, an interrupted file operation is settled by looking at the file, and an
interrupted command is never run again.
"""

import contextlib
from typing import assert_never

from msgspec.structs import replace

from codingagent.agent import file_operations, read_operations, run_command
from codingagent.agent.context import Context
from codingagent.agent.file_views import Views
from codingagent.agent.plan import Order, Plan, subject_of
from codingagent.errors import OperationError
from codingagent.model import operations, plain_text
from codingagent.model.approval import Question
from codingagent.model.events import Event, FileMoved, Finished, Interrupted, MessageShown, Refused
from codingagent.model.journal_entries import OperationStarted
from codingagent.model.observations import digest_of
from codingagent.storage.clock import now


class Agent:
    """Execute operations of any protocol."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._views = Views(context.workspace)

    def perform(self, order: Order, approved: str = "") -> Event | Question:
        """Do one operation and return its outcome; the model's mistakes are events too.

        If the policy requires approval, return a question instead. Call again with `approved`, the digest of
        the question that was answered with yes: the operation is done if it would still do exactly the same.

        If the journal can't be written (WorkError), nothing was changed.
        """
        try:
            plan = self.plan(order)
            if not isinstance(plan, Plan):
                return plan
            if plan.asked and not order.is_check:
                question = _question(order, plan)
                secrecy = self._context.secrecy
                shown = secrecy.hide_diff(question.shown, plan.subject)
                shown = secrecy.quote(shown, "", order.names)
                question = replace(question, shown=shown)
                if question.digest != approved:
                    return question
            self._start(order, plan)
            return plan.act()
        except OperationError as fault:
            subject, quote = subject_of(order.operation), self._context.secrecy.quote
            fact, detail, advice = (
                quote(text, subject, order.names)
                for text in (fault.fact, fault.detail, fault.advice)
            )
            return Refused(order.kind, fact, detail, subject, advice=advice)

    def plan(self, order: Order) -> Plan | Event:
        """Return what is to be done, or the outcome of what changes nothing or can't be done."""
        context, operation = self._context, order.operation
        if isinstance(operation, operations.FileOperation):
            return file_operations.plan(context, order, operation)
        match operation:
            case operations.ReadFile():
                return read_operations.request(context, order, operation, self._views)
            case operations.FetchFile():
                return read_operations.fetch(context, order, operation)
            case operations.ListFolder():
                return read_operations.list_folder(context, order, operation)
            case operations.RunCommand():
                return run_command.plan(context, order, operation)
            case operations.ShowMessage():
                return MessageShown(plain_text.without_controls(operation.text))
            case operations.Finish():
                return Finished(operation.summary)
            case _:
                assert_never(operation)

    def _start(self, order: Order, plan: Plan) -> None:
        """Journal that an operation begins: everything that it changes is recorded before it is changed."""
        log, command = self._context.log, order.operation
        limit_s: float | None = None
        if isinstance(command, operations.RunCommand):
            limit_s = run_command.limit_of(self._context, command)
        started = OperationStarted(
            order.index,
            order.kind,
            plan.subject,
            now(),
            plan.changes,
            plan.event,
            order.id,
            plan.is_unseen,
            limit_s,
        )
        log.record(started)
        if plan.event is None:
            # A command whose start is lost in a power failure would start twice.
            log.sync()

    def settle(self, started: OperationStarted) -> Event | None:
        """Return the outcome of an operation that a kill interrupted; None: it had not begun."""
        if started.event is None:
            return Interrupted(started.kind, started.subject)
        follows = {change.path: change.follows for change in started.event.changes}
        found = [self._digest_now(each.path, follows[each.path]) for each in started.changes]
        if found == [change.after for change in started.changes]:
            return started.event
        if found == [change.before for change in started.changes]:
            return None
        if isinstance(started.event, FileMoved):
            with contextlib.suppress(OperationError):
                if self._context.workspace.finish_move(started.event.path, started.event.to):
                    return started.event
        fact = "the file is neither as it was before nor as it should be now"
        notes = (f"{fact}: read it",)
        return Interrupted(started.kind, started.subject, notes=notes, facts=(fact,))

    def _digest_now(self, path: str, follow_last: bool) -> str | None:
        """Return the digest of the file that a kill left at a path, and remove a partial one beside it."""
        try:
            self._context.workspace.discard_temporary(path)
            return self._context.workspace.digest(path, follow_last=follow_last)
        except OperationError:
            return "out of reach"


def _question(order: Order, plan: Plan) -> Question:
    """Return the question whose digest covers all that a plan would do."""
    return Question(
        order.kind,
        plan.subject,
        tuple(rule for each in plan.asked for rule in each.rules),
        tuple(reason for each in plan.asked for reason in each.reasons),
        plan.shown(),
        digest_of("\0".join((order.kind, plan.subject, *plan.parts)).encode(errors="replace")),
        tuple(grant for each in plan.asked for grant in each.grants),
    )
