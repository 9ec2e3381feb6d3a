"""A workspace for programs: operations in, events out, without a chat (specification 001).

    with Space("project") as space:
        run = space.run(operations=[{"type": "shell", "command": "pytest -q"}])
        if run.pending_approval:
            run.approve(run.pending_approval.operation_id)
        print(run.status, run.events[-1])

The commands `run`, `approve` and `deny` are thin wrappers around it.
"""

import contextlib
import json
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self, TypeAlias

from msgspec.structs import replace

from codingagent.agent import batch, factory, placeholders
from codingagent.agent.context import Context, Person, Resources, context_of
from codingagent.agent.secrecy import VaultFile
from codingagent.checkpoints import checkpointer, undo
from codingagent.errors import ApprovalError, UsageError, WorkError
from codingagent.model import journal_entries, notices, observations, session_fold
from codingagent.model.approval import Answer
from codingagent.model.session_state import Session
from codingagent.model.settings import OPTION, Settings, Source, resolve
from codingagent.process.select_sandbox import policy_of
from codingagent.protocols.json import messages, wire
from codingagent.protocols.tags.reply import Problem, Step
from codingagent.storage import atomic_write, clock, homes
from codingagent.storage.homes import Home
from codingagent.storage.journal import SessionLog
from codingagent.workspace import real_paths, workspace

_TellEvent: TypeAlias = Callable[[wire.Event], None]


class Run:
    """One message being executed, to its end or until an operation needs approval.

    A run is a session of one turn, with the same journal, approvals and checkpoints, but no request for a
    model. Its result is an events message (specification 001). `ready` prepares its space, and fails if
    nothing can be executed any more; `tell` gets each event as it comes.
    """

    def __init__(
        self,
        context: Context,
        ready: Callable[[], object],
        items: Sequence[Step | Problem],
        tell: _TellEvent,
        home: Home | None,
    ) -> None:
        self._context = context
        self._execution = batch.Execution(context)
        self._ready = ready
        self._items = items
        self._tell = tell
        self._home = home
        self._told: list[wire.Event] = []
        self._fault: wire.Event | None = None

    @property
    def session(self) -> Session:
        return self._context.log.session

    @property
    def run_id(self) -> str:
        """The id: `run_` and twelve hex digits."""
        return self.session.session_id

    @property
    def status(self) -> wire.Status:
        """`error` if a system failure or a kill halted it; what was done until then is done."""
        if self._fault is None and self.session.is_complete:
            return "completed"
        waits = self._fault is None and self.session.is_awaiting_approval
        return "awaiting_approval" if waits else "error"

    @property
    def events(self) -> tuple[wire.Event, ...]:
        """All events so far, ending with the pending question, if any."""
        self._catch_up()
        last = self._fault or self.pending_approval
        return (*self._told, *([] if last is None else [last]))

    def message(self, since: int = 0) -> wire.EventsMessage:
        """Return the events message; without the first `since` events."""
        events, status = self.events[since:], self.status
        return wire.EventsMessage(protocol_version="1.0", run_id=self.run_id, status=status, events=events)

    def go_on(self) -> None:
        """Execute the rest until approval is due; UsageError at once if its space is closed."""
        self._ready()
        self._fault = None
        if self.session.is_complete:
            return
        try:
            self._execution.after_kill()
            self._execution.perform(self._items, self._catch_up)
            self._execution.end(1)
            self.finish()
        except ApprovalError:
            self._catch_up()
            if (pending := self.pending_approval) is not None:
                self._tell(pending)
            if self._home is not None:
                # Show other programs what the run waits for, and what is still to come.
                message = messages.value_of(self._home.runs.message(self.run_id))
                operations = message["operations"] if isinstance(message, dict) else []
                left = operations[len(self.session.ends) :]
                self._home.runs.show(self.run_id, self._document(left))
        except WorkError as fault:
            # 001, graceful degradation: a system error may halt the run.
            self._catch_up()
            told = self._context.secrecy.hide(str(fault))
            self._fault = wire.ErrorEvent(timestamp=clock.now(), category="system", message=told)
            self._tell(self._fault)

    @property
    def pending_approval(self) -> wire.ApprovalRequiredEvent | None:
        """The operation that awaits approval, or None."""
        asked = self.session.asked if self.session.is_awaiting_approval else None
        return None if asked is None else messages.approval_event(asked)

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
        self.decide(*messages.read_answer(message))

    def decide(self, operation_id: str | None, answer: Answer) -> None:
        """Take the person's answer, and continue; raise UsageError as `approve`."""
        self._ready()
        self._execution.answer(operation_id, answer)
        self.go_on()

    def to_json(self, since: int = 0) -> str:
        """Return the events message as JSON on one line; without the first `since` events."""
        return wire.to_json(self.message(since))

    def finish(self) -> None:
        """Make everything that was done durable, and remove what was only needed to continue."""
        self._context.sandbox.with_temporary(self.run_id).clear_temporary()
        if self._home is None:
            return
        self._context.checkpointer.sync()
        runs = self._home.runs
        if runs.has_document(self.run_id):
            runs.show(self.run_id, self._document(()))
        runs.drop_message(self.run_id)
        self._context.log.close()

    def _document(self, operations: Sequence[object]) -> dict[str, object]:
        """Return the run's document; `operations` are those still to come, as they were sent."""
        session = self.session
        return {
            **wire.to_wire(self.message()),
            "workspace": session.workspace,
            "createdAt": session.created_at,
            "updatedAt": session.updated_at,
            "operations": list(operations),
        }

    def _catch_up(self) -> None:
        """Report what has ended and was not reported yet."""
        for ended in self.session.ends[len(self._told) :]:
            event = messages.event_of(replace(ended, event=self._context.secrecy.event(ended.event)))
            # A later message may hold the names.
            self._context.secrecy.save()
            self._told.append(event)
            self._tell(event)


class Space(contextlib.AbstractContextManager["Space"]):
    """One workspace, in which operations messages are executed.

    Without a home, runs live in memory. With one they are kept under its `sessions/runs/`, can be approved
    later or by another process, and undone; the home's lock is held from the first run until `close`. Use it
    from one thread at a time.

    Args:
        path: the workspace, an existing folder.
        policy: `restrictive`, `standard`, `permissive`, or a TOML file.
        home: a folder for the journals; created if missing.
        sandbox: `auto` (use one where it works), `require` or `off`.
        network: let sandboxed commands use the network.
        secrets: `off`, `redact` (events hold placeholders, operations get the values back) or `mask`
            (secret files are hidden from commands, too).
        command_timeout: default timeout of commands, in seconds.
        command_memory: megabytes for a command with all its processes; 0: three quarters of the machine's.
        on_event: gets each event as it comes.

    UsageError if the workspace, the policy or the home can't be used.
    """

    def __init__(  # noqa: PLR0913  # all but two have their defaults
        self,
        path: str | os.PathLike[str],
        policy: str | os.PathLike[str] = "standard",
        *,
        home: str | os.PathLike[str] | None = None,
        sandbox: str = "auto",
        network: bool = False,
        command_timeout: int = 30,
        command_memory: int = 0,
        secrets: str = "off",
        on_event: _TellEvent = lambda _: None,
    ) -> None:
        options = {
            "policy": os.fspath(policy),
            "sandbox": sandbox,
            "network": network,
            "command_timeout": command_timeout,
            "command_memory": command_memory,
            "secrets": secrets,
        }
        root, kept = Path(path).absolute(), None
        settings = resolve([Source(OPTION, options)]).settings
        # A space that is refused leaves no home.
        workspace.Workspace(root).close()
        policy_of(settings, root)
        if home is not None:
            homes.check_apart(at := Path(home).absolute(), root)
            kept = Home.at(at, create=True)
        self._begin(root, settings, kept, Person(lambda _: None), on_event)

    @classmethod
    def of(cls, home: Home, root: Path, settings: Settings, person: Person, on_event: _TellEvent) -> Self:
        """Return the space of an existing home; it waits while another process works there, and says so."""
        self = cls.__new__(cls)
        self._begin(root, settings, home, person, on_event)
        self._say = lambda text: person.show(notices.Remark(text))
        return self

    def _begin(
        self, root: Path, settings: Settings, home: Home | None, person: Person, on_event: _TellEvent
    ) -> None:
        self._root, self._settings, self._home = root, settings, home
        self._person, self._on_event = person, on_event
        self._say: Callable[[str], object] | None = None
        self._stack = contextlib.ExitStack()
        self._resources: Resources | None = None
        file = None if home is None else VaultFile(home.runs.folder)
        # What one run reads, the next one may write back.
        self._secrecy = factory.secrecy_for(settings, file)
        # A run keeps its space alive, not the other way round, so that it can continue. There is only one
        # object for each run, because two would execute the same operations twice.
        self._runs: weakref.WeakValueDictionary[str, Run] = weakref.WeakValueDictionary()
        # Even without `close`, no process and no lock is left.
        self._closing = weakref.finalize(self, self._stack.close)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what still runs and release everything, the home's lock included."""
        self._resources = None
        self._closing()

    # --- runs ----------------------------------------------------------------------------------
    def run(
        self,
        operations: Iterable[wire.Operation | Mapping[str, object]] | None = None,
        *,
        message: str | bytes | Mapping[str, object] | None = None,
    ) -> Run:
        """Execute operations in order, to the end or until one needs approval; return the run.

        Each operation is a JSON value (a dict), or one of `codingagent`; `message` is a whole message, JSON
        or a JSON value. MessageError if it is none; errors in a single operation are events of the run.
        UsageError or WorkError if the workspace or the home can't be used now.
        """
        if (operations is None) == (message is None):
            raise UsageError("give either operations or a message")
        if operations is not None:
            values = [op if isinstance(op, Mapping) else wire.to_wire(op) for op in operations]
            message = {"protocolVersion": "1.0", "operations": values}
        assert message is not None
        received = messages.read_operations_message(message)
        data = b"" if self._home is None else _as_json(message)  # kept until all of it is done
        self._ready()
        settings, home = self._settings, self._home
        terms = factory.kept_policy(settings), settings.sandbox, settings.network, settings.secrets
        run_id, root = factory.new_run_id(), str(real_paths.root_of(self._root))
        record = journal_entries.RunStarted(run_id, root, observations.digest_of(data), clock.now(), *terms)
        if home is not None:
            home.runs.keep_message(run_id, data)
            home.runs.begin(run_id, record)
        del message, data
        run = self._run_of(session_fold.fold(None, record), received)
        run.go_on()
        return run

    def open_run(self, run_id: str) -> Run:
        """Return a run that the home keeps: waiting for approval, interrupted, or done.

        UsageError if there is none, or it belongs to another workspace; WorkError if its journal is damaged.
        """
        if self._home is None:
            raise UsageError("without a home no run is kept")
        # Under the lock: another process could otherwise finish it in between.
        self._ready()
        if (known := self._runs.get(run_id)) is not None:
            return known
        session = self._home.runs.load(run_id)
        if Path(session.workspace) != real_paths.root_of(self._root):
            raise UsageError(f"{run_id} works in '{session.workspace}', not in '{self._root}'")
        received: messages.Received = ()
        if not session.is_complete:
            data = self._home.runs.message(run_id)
            if session.taken is None or observations.digest_of(data) != session.taken.digest:
                how = "what is left of it is not executed: send it again as a new run"
                raise WorkError(f"the message of {run_id} was changed after it began; {how}")
            received = messages.read_operations_message(data)
        return self._run_of(session, received)

    def _ready(self, run_id: str = "") -> Resources:
        """Return what is open, now or before; the commands of a run have their own /tmp from now on."""
        if not self._closing.alive:
            raise UsageError("this space is closed")
        if self._resources is None:
            home, folders = self._home, tuple[Path, ...]()
            if home is None:
                temporary = Path(tempfile.mkdtemp(prefix="codingagent-"))
                self._stack.callback(atomic_write.remove_folder, temporary)
                place = checkpointer.WorkLayout(self._root, (), temporary / "tmp", None)
            else:
                self._stack.enter_context(home.lock.held(self._say))
                place, folders = checkpointer.place_of_runs(home, self._root), (home.root,)
            opened = factory.open_workspace(place, self._settings, folders)
            self._resources = self._stack.enter_context(opened)
            if self._resources.sandbox.tier == "none" and self._settings.sandbox != "off":
                self._person.show(notices.Remark(self._resources.sandbox.remark))
        if run_id:
            self._resources.runner.sandbox = self._resources.sandbox.with_temporary(run_id)
        return self._resources

    def _run_of(self, session: Session, received: messages.Received) -> Run:
        home, run_id = self._home, session.session_id
        journal = None if home is None else home.runs.open(run_id)
        log = SessionLog(journal, session, self._person.record)
        self._secrecy.look_again()
        context = context_of(self._ready(), log, self._person, None, self._secrecy)
        run = Run(
            context,
            partial(self._ready, run_id),
            placeholders.restored(self._secrecy.vault, messages.items_of(received)),
            self._on_event,
            home,
        )
        if home is not None:
            self._stack.callback(log.close)
            undo.finish_undo(home, context.checkpointer)
            if session.is_complete and home.runs.has_message(run_id):
                # A kill came between the last record and the steps after it.
                run.finish()
            self._runs[run_id] = run
        return run


def _as_json(message: object) -> bytes:
    """Return the message as bytes to keep; values that JSON lacks become null, which no field takes.

    MessageError if it contains itself, or is nested too deep.
    """
    if isinstance(message, str | bytes):
        return message.encode("utf-8", "surrogatepass") if isinstance(message, str) else message
    try:
        return json.dumps(message, default=lambda _: None, skipkeys=True).encode()
    except (ValueError, RecursionError) as fault:
        raise messages.MessageError("message", f"is no value of JSON: {fault}") from fault
