"""A session at work: take answers, each as a turn, and write requests until the task is done.

`Conversation.take` is the way of an answer, from the inbox to the next request. All of it is in the
journal, so that `recover` can continue from any instant.
"""

from typing import TYPE_CHECKING

from codingagent.agent.answer_reader import AnswerReader
from codingagent.agent.batch import Execution
from codingagent.agent.recipients import Objection, Recipients
from codingagent.agent.requests import Requests
from codingagent.checkpoints.history import steps
from codingagent.errors import ApprovalError, UsageError
from codingagent.model import documents
from codingagent.model.approval import Answer
from codingagent.model.journal_entries import AnswerSetAside, AnswerTaken, CommitMade, TurnEnded
from codingagent.model.observations import digest_of
from codingagent.model.operations import Kind
from codingagent.model.session_state import Phase, Session
from codingagent.model.ui_events import Changes
from codingagent.protocols.tags import continuation
from codingagent.protocols.tags.reply import Problem, Reply, Step
from codingagent.storage.clock import now
from codingagent.storage.homes import Home
from codingagent.workspace.programs import quoted_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codingagent.agent.rehearsal import Rehearsed
    from codingagent.workspace.git_files import Belonging

_SAVE_AGAIN = "save the answer's text as a plain .txt file in the inbox"
_TOO_LARGE = Objection("it is too large to be an answer", _SAVE_AGAIN)
_NO_TEXT = Objection("it is not text in UTF-8", _SAVE_AGAIN)


class Conversation:
    """One session: its turns, from one request to the next. All but `is_answer` may raise WorkError."""

    def __init__(self, requests: Requests, home: Home, recipients: Recipients) -> None:
        self.requests = requests
        self.context = requests.context
        self._log = self.context.log
        self._home = home
        self._mailbox = home.mailbox
        self._recipients = recipients
        self._reader = AnswerReader(self.context, home.mailbox)
        self._execution = Execution(self.context)
        self.check = self._execution.check

    @property
    def session(self) -> Session:
        return self._log.session

    def is_answer(self, text: str, *, is_handed: bool = False) -> bool:
        """Return whether a text may answer the waiting request, and asks for something."""
        found = self._reader.parse(text)
        if found.has_outbox or not (found.header or is_handed):
            return False
        awaited = (self.session.session_id, self.session.sequence)
        # Half an answer asks for the other half.
        is_half = is_handed and bool(found.cut or found.is_joined)
        has_steps = is_half or any(isinstance(item, Step) for item in found.items)
        is_prose = found.is_bare and found.items[-1].kind is Kind.ANSWER
        named = found.header and (found.header.session, found.header.sequence)
        return has_steps and not is_prose and (is_handed or named == awaited)

    def take(self, name: str, *, accept: bool = False, skip: tuple[int, ...] = ()) -> bool:
        """Take a complete file from the inbox: execute it, or move it to `rejected/` with the reason.

        Return False if it is for another session of this home: it then stays, and that is said.
        `accept` executes it even if it answers another request or was executed already. `skip` are the
        indexes of what the person left out. If the disk fails, the answer is in the inbox or in processed/.

        UsageError if its session is unknown.
        """
        if not self._mailbox.has(name):
            return True
        data = self._mailbox.read(name)
        if data is not None and (kind := documents.kind_of(data)) is not None:
            self._reject(name, Objection(f"it is {kind[0]}, not plain text", kind[1]))
            return True
        answer = None if data is None else self._reader.read(data)
        if data is None or answer is None:
            self._reject(name, _TOO_LARGE if data is None else _NO_TEXT)
            return True
        if not accept and (other := self._recipients.other(name, answer, self.session)):
            how = f"it stays in the inbox, and `codingagent resume {other}` takes it"
            self.context.remark(f"{name} is for session {other}: {how}")
            return False
        objection = self._recipients.objection(answer, self.session, accept=accept)
        if objection is not None:
            self._reject(name, objection)
            return True
        taken = self._mailbox.take(name, self.session.session_id, self.session.sequence)
        if self._mailbox.read_taken(taken) != data:
            # It was still being written; nothing is in the journal, so it is simply not ready yet.
            self._mailbox.put_back(taken, name)
            return True
        self._begin(taken, answer.digest, answer.reply, skip)
        self.write_due(self._execute(answer.reply))
        return True

    def rehearsed(self, data: bytes) -> "Iterator[Rehearsed]":
        """Yield what an answer would do, and do nothing; UsageError if it is none."""
        from codingagent.agent.rehearsal import rehearse

        answer = self._reader.read(data)
        if answer is None or answer.reply.has_outbox:
            raise UsageError("that is no answer: it is no text, or the request itself")
        return rehearse(self.context, answer.reply)

    def _reject(self, name: str, objection: Objection) -> None:
        """Move an answer to `rejected/`, and say why and what to do."""
        new = self._mailbox.set_aside(name, objection.reason)
        remedy = objection.remedy or (
            "Apply it anyway: codingagent resume"
            f" {self.session.session_id} --accept {quoted_path(self._mailbox.rejected / new)}"
        )
        self._log.record(AnswerSetAside(new, objection.reason, now(), remedy))

    def _begin(
        self, taken: str, digest: str, found: Reply | None, skip: tuple[int, ...] = ()
    ) -> None:
        """Journal that an answer was taken: its turn begins, and what ran before it ends."""
        self.check.end()
        files = () if found is None else found.files
        count = 0 if found is None else sum(isinstance(item, Step) for item in found.items)
        self._log.record(
            AnswerTaken(self.session.sequence, taken, digest, now(), files, count, skip)
        )

    def _execute(self, found: Reply) -> "Belonging | None":
        """Execute all items of the answer that are not done yet, run the check, and end the turn.

        Return what belongs to the workspace now, if known. ApprovalError if nobody can answer a question.
        """
        self.context.workspace.check()
        try:
            listed = self._execution.perform(found.items)
        except ApprovalError:
            self._home.sessions.mend_document(self.session)
            raise
        old = self.session.cut
        is_done = found.is_joined or any(continuation.is_about(old, i.kind) for i in found.items)
        cut = found.cut or ("" if is_done else old)
        self._execution.end(self.session.sequence, found.notes, cut)
        return listed

    def changes(self) -> Changes:
        """Return the files that the session's turns changed since its last commit, but for undone turns."""
        records = [*self._home.records(self.session.session_id)]
        undos = {step.sequence: step.undo for step in steps(records) if step.undo}
        counts = [record.records for record in records if isinstance(record, CommitMade)]
        changed, last = dict[str, None](), 0
        for index, turn in enumerate(records):
            if isinstance(turn, TurnEnded):
                undo = undos.get(turn.sequence)
                gone = () if undo is None else undo.files or turn.changed
                left = [path for path in turn.changed if path not in gone]
                last = turn.sequence if left else last
                changed |= dict.fromkeys(left if index >= max(counts, default=0) else ())
        paths = tuple(changed)
        can_undo = self.context.checkpointer.lazy_store.opened is not None
        can_commit = can_undo and bool(self.context.workspace.addable(paths))
        found = Changes(self.session.workspace, paths, can_undo, can_commit, last)
        return self.context.secrecy.hide_all(found)

    def write_due(self, listed: "Belonging | None" = None) -> None:
        """Write the request that is due, if any.

        The last turn has no request after it, so its changes are made durable here. Nothing is executed.
        `listed` is what belongs to the workspace now; None: unknown.
        """
        self.requests.write(listed)
        if self.session.is_complete:
            self.context.sync()

    def answer(self, name: str | None, answer: Answer) -> None:
        """Answer the pending question, as `Execution.answer`; `recover` then continues."""
        self._execution.answer(name, answer)

    def recover(self) -> None:
        """Finish what a kill, an interrupt or an error left unfinished, up to the next request."""
        if self.session.phase is Phase.AWAITING_ANSWER:
            self._recover_taken()
        listed = None
        if self.session.phase in (Phase.EXECUTING, Phase.AWAITING_APPROVAL):
            why = "was interrupted" if self.session.asked is None else "waited for approval"
            self.context.remark(f"continuing with answer {self.session.sequence}, which {why}")
            self._execution.settle()
            listed = self._execute(self._read_again())
        self.write_due(listed)

    def _recover_taken(self) -> None:
        """Continue with an answer that was moved and not journalled; its new name has its session."""
        name = self._mailbox.find_taken(self.session.session_id, self.session.sequence)
        data = None if name is None else self._mailbox.read_taken(name)
        if name is not None and data is not None:
            answer = self._reader.read(data)
            self._begin(name, digest_of(data), None if answer is None else answer.reply)

    def _read_again(self) -> Reply:
        """Return the answer that a kill interrupted, from its file."""
        taken = self.session.reply
        assert taken is not None, "a turn has a reply"
        data = self._mailbox.read_taken(taken.name)
        if data is None or digest_of(data) != taken.digest:
            fact = (
                f"The answer {taken.name} was changed or removed while it was executed; what is not"
                " among these results was not done"
            )
        else:
            answer = self._reader.read(data)
            if answer is not None and not answer.reply.has_outbox:
                return answer.reply
            # Recovery after a kill takes an answer by name only; a power failure may have emptied it.
            fact = f"The answer {taken.name} can't be read"
        # Items that are done keep their positions; the one after them reports the loss, if one was to come.
        count = len(self.session.results) + (not self.session.found)
        lost = (Problem(Kind.ANSWER, fact, 1, advice=": send it again"),) * count
        return Reply(lost, None, has_outbox=False, notes=())
