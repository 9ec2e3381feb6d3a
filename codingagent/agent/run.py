"""Execute one operations message to its end, or until an operation needs approval.

A run is a session of one turn, with the same journal, approvals and checkpoints, but no request for a
model. Its result is an events message (specification 001).
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from codingagent.agent.batch import Execution
from codingagent.agent.context import Context
from codingagent.errors import ApprovalError, WorkError
from codingagent.model.approval import Answer
from codingagent.model.session_state import Session
from codingagent.protocols.json.messages import approval_event, event_of, read_answer, value_of
from codingagent.protocols.json.wire import (
    ApprovalRequiredEvent,
    ErrorEvent,
    Event,
    EventsMessage,
    Status,
    to_json,
    to_wire,
)
from codingagent.protocols.tags.reply import Problem, Step
from codingagent.storage.clock import now
from codingagent.storage.homes import Home


class Run:
    """One message being executed.

    `ready` prepares its space, and fails if nothing can be executed any more. `items` are all of the message,
    `tell` gets each event as it comes, and `home` is where the run is kept, if it is.
    """

    def __init__(
        self,
        context: Context,
        ready: Callable[[], object],
        items: Sequence[Step | Problem],
        tell: Callable[[Event], None],
        home: Home | None,
    ) -> None:
        self._context = context
        self._execution = Execution(context)
        self._ready = ready
        self._items = items
        self._tell = tell
        self._home = home
        self._told: list[Event] = []
        self._fault: Event | None = None

    @property
    def session(self) -> Session:
        return self._context.log.session

    @property
    def run_id(self) -> str:
        """The id: `run_` and twelve hex digits."""
        return self.session.session_id

    @property
    def status(self) -> Status:
        """`error` if a system failure or a kill halted it; what was done until then is done."""
        if self._fault is None and self.session.is_complete:
            return "completed"
        waits = self._fault is None and self.session.is_awaiting_approval
        return "awaiting_approval" if waits else "error"

    @property
    def events(self) -> tuple[Event, ...]:
        """All events so far, ending with the pending question, if any."""
        self._catch_up()
        return (*self._told, *self._pending)

    def message(self, since: int = 0) -> EventsMessage:
        """Return the events message; without the first `since` events."""
        events = self.events[since:]
        return EventsMessage(
            protocol_version="1.0", run_id=self.run_id, status=self.status, events=events
        )

    def go_on(self) -> None:
        """Execute the rest until approval is due; UsageError at once if its space is closed."""
        self._ready()
        self._fault = None
        if self.session.is_complete:
            return
        try:
            self._execution.settle()
            self._execution.perform(self._items, self._catch_up)
            self._execution.end(1)
            self.finish()
        except ApprovalError:
            self._catch_up()
            for event in self._pending:
                self._tell(event)
            self._pause()
        except WorkError as fault:
            # 001, graceful degradation: a system error may halt the run.
            self._catch_up()
            told = self._context.secrecy.hide(str(fault))
            self._fault = ErrorEvent(timestamp=now(), category="system", message=told)
            self._tell(self._fault)

    @property
    def pending_approval(self) -> ApprovalRequiredEvent | None:
        """The operation that awaits approval, or None."""
        asked = self.session.asked if self.session.is_awaiting_approval else None
        return None if asked is None else approval_event(asked)

    def approve(self, operation_id: str | None = None) -> None:
        """Approve the pending operation, None: whichever waits, and continue; UsageError if none does."""
        self.decide(operation_id, Answer("yes", how="program"))

    def deny(self, operation_id: str | None = None, reason: str = "") -> None:
        """Deny the pending operation: its event is `policyDenied`, with the reason; the rest continues."""
        self.decide(operation_id, Answer("no", reason=reason, how="program"))

    def answer(self, message: object) -> None:
        """Apply an answer that came as JSON, or its value: `{"approval": …}`, or a `userMessage`.

        MessageError if it is not an answer; UsageError as `approve`.
        """
        self.decide(*read_answer(message))

    def decide(self, operation_id: str | None, answer: Answer) -> None:
        """Take the person's answer, and continue; raise UsageError as `approve`."""
        self._ready()
        self._execution.answer(operation_id, answer)
        self.go_on()

    def to_json(self, since: int = 0) -> str:
        """Return the events message as JSON on one line; without the first `since` events."""
        return to_json(self.message(since))

    def finish(self) -> None:
        """Make everything that was done durable, and remove what was only needed to continue."""
        self._context.sandbox.with_temporary(self.run_id).clear_temporary()
        if self._home is None:
            return
        self._context.sync()
        runs = self._home.runs
        if runs.has_document(self.run_id):
            runs.show(self.run_id, self._document(()))
        runs.drop_message(self.run_id)
        self._context.log.close()

    def _pause(self) -> None:
        """Show other programs what the run waits for, and what is still to come."""
        if self._home is None:
            return
        message = value_of(self._home.runs.message(self.run_id))
        operations = message["operations"] if isinstance(message, dict) else []
        left = operations[len(self.session.ends) :]
        self._home.runs.show(self.run_id, self._document(left))

    def _document(self, operations: Sequence[object]) -> dict[str, object]:
        """Return the run's document; `operations` are those still to come, as they were sent."""
        session = self.session
        return {
            **to_wire(self.message()),
            "workspace": session.workspace,
            "createdAt": session.created_at,
            "updatedAt": session.updated_at,
            "operations": list(operations),
        }

    @property
    def _pending(self) -> tuple[Event, ...]:
        last = self._fault or self.pending_approval
        return () if last is None else (last,)

    def _catch_up(self) -> None:
        """Report what has ended and was not reported yet."""
        for ended in self.session.ends[len(self._told) :]:
            event = event_of(replace(ended, event=self._context.secrecy.event(ended.event)))
            # A later message may hold the names.
            self._context.secrecy.save()
            self._told.append(event)
            self._tell(event)
