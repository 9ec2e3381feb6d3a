"""A session at work: take answers, each as a turn, and write requests until the task is done.

`Conversation.take` is the way of an answer, from the inbox to the next request. All of it is in the
journal, so that `recover` can continue from any instant.
"""

import contextlib
import copy
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent import batch, candidates, executor, spelling
from codingagent.agent.answers import NO_TEXT, AnswerReader, Objection, ReadAnswer, Recipients
from codingagent.agent.context import Context, OperationRequest, Plan, bare_context, subject_of
from codingagent.agent.requests import Requests
from codingagent.agent.tried import folder_of, tried
from codingagent.checkpoints.history import steps
from codingagent.errors import ApprovalError, OperationError, UsageError
from codingagent.model import check_outcome, documents, notices, observations, results
from codingagent.model.events import Denied, FileEdited, succeeded
from codingagent.model.journal_entries import AnswerSetAside, AnswerTaken, CommitMade, TurnEnded
from codingagent.model.operations import FileOperation, Finish, Kind, RunCommand, ShowMessage, named, text_of
from codingagent.model.session_state import Phase, Session
from codingagent.protocols.tags import continuation
from codingagent.protocols.tags.reply import Problem, Reply, Step
from codingagent.storage import atomic_write, homes
from codingagent.storage.clock import now
from codingagent.storage.mailbox import is_bare
from codingagent.workspace import programs, workspace

_SAVE_AGAIN = "save the answer's text as a plain .txt file in the inbox"
_TOO_LARGE = Objection("it is too large to be an answer", _SAVE_AGAIN)
_NO_GUIDE = "this chat keeps no guide, or another one: the next request has it whole; see `codingagent guide`"
_NOT_TEXT = Objection("it is not text in UTF-8", _SAVE_AGAIN)


class Rehearsed(Struct, frozen=True):
    """One item of an answer, as it would be done.

    `difference` is the diff of a file change, or the text of a command or a message. `fault` says why it
    would fail as the files are now; `difference` is then the text of the operation, and `depends` are the
    numbers, from 1, of the commands before it, which may mend that. `reasons` are what would be asked.
    """

    index: int
    operation: Kind
    subject: str
    difference: str = ""
    fault: str = ""
    reasons: tuple[str, ...] = ()
    can_skip: bool = False
    depends: tuple[int, ...] = ()


class Conversation:
    """One session: its turns, from one request to the next. All but `is_answer` may raise WorkError."""

    def __init__(
        self, requests: Requests, home: homes.Home, trials: candidates.Trials, *, is_named: bool
    ) -> None:
        self.requests = requests
        self.context = requests.context
        self._log = self.context.log
        self._home = home
        self._mailbox = home.mailbox
        self._recipients = Recipients(home, is_named)
        self.trials = trials
        self._reader = AnswerReader(self.context, home.mailbox)
        self._execution = batch.Execution(self.context)
        # Answers the pending question; `recover` then continues.
        self.answer, self.check = self._execution.answer, self._execution.check

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

    def lacks_end(self, name: str) -> bool:
        """Return whether a file that somebody saved says which answer it is, and does not end as one."""
        if self._mailbox.named(name) is not None or not self._mailbox.has(name):
            return False
        data = self._mailbox.read(name) or b""
        return b"[REPLY" in data and b"[END" not in data

    def take(self, name: str, *beside: str, accept: bool = False, skip: tuple[int, ...] = ()) -> bool:
        """Take a complete file from the inbox: execute it, or move it to `rejected/` with the reason.

        With those `beside` it, if they are single files that a browser saved: all are one answer.
        Return False if it is for another session of this home: it then stays, and that is said.
        `accept` executes it even if it answers another request or was executed already. `skip` are the
        indexes of what the person left out. If the disk fails, the answer is in the inbox or in processed/.

        UsageError if its session is unknown.
        """
        if not self._mailbox.has(name):
            return True
        data = self._mailbox.read(name)
        try:
            if data is not None:
                name, data = self._as_answer(data, name, *beside)
                if (kind := documents.kind_of(data)) is not None:
                    self._reject(name, Objection(f"it is {kind[0]}, not plain text", kind[1]))
                    return True
            answer = None if data is None else self._reader.read(data)
        except UsageError as fault:
            for each in filter(self._mailbox.has, (name, *beside)):
                self._reject(each, Objection(str(fault), _SAVE_AGAIN))
            return True
        if data is None or answer is None:
            self._reject(name, _TOO_LARGE if data is None else _NOT_TEXT)
            return True
        if not accept and (other := self._recipients.other(name, answer, self.session)):
            how = f"it stays in the inbox, and `codingagent resume {other}` takes it"
            self.context.remark(f"{name} is for session {other}: {how}")
            return False
        objection = self._recipients.objection(answer, self.session, accept=accept)
        if objection is not None:
            self._reject(name, objection)
            return True
        if self.session.chats is not None and not (accept or self.session.is_asking):
            self._begin_trial(name, data, (answer.reply.header and answer.reply.header.sequence) or 0)
            return True
        taken = self._mailbox.take(name, self.session.session_id, self.session.sequence)
        if self._mailbox.read_taken(taken) != data:
            # It was still being written; nothing is in the journal, so it is simply not ready yet.
            self._mailbox.put_back(taken, name)
            return True
        if answer.lacks_guide and not self.session.lacks_guide:
            self.context.remark(_NO_GUIDE)
        self._begin(taken, answer, skip)
        self._execute(answer.reply)
        return True

    def take_call(self, data: bytes) -> None:
        """Execute a call of a tool as an answer; ApprovalError if nobody answers its question."""
        answer = self._reader.read(data)
        assert answer is not None, "it is JSON"
        # Lost with the power, it counts as unread: nothing of it runs again.
        where = self.session.session_id, self.session.sequence, ".json"
        kept = self._mailbox.keep(data, *where, is_synced=False)
        self._begin(kept, answer)
        self._execute(answer.reply)

    def _begin_trial(self, name: str, data: bytes, said: int) -> None:
        """Keep an answer as a candidate, for `finish_trials`; try one to a candidate's own request now."""
        own = [number for number, _ in self.session.trials if self.trials.named(number).awaits(said)]
        if len(own) > 1:
            names, file = " and ".join(map(str, own)), programs.quoted_path(self._mailbox.rejected / name)
            reason = f"the chats of candidates {names} all wait with an answer to request {said}"
            self._reject(name, Objection(reason, f"say whose it is: codingagent try --after N {file}"))
        elif own:
            self.trials.give(own[0], data)
            self._mailbox.remove(name)
            self.try_candidates(own)
        else:
            self.trials.begin(data, name)

    def try_candidates(self, numbers: Sequence[int]) -> None:
        """Execute candidates in copies; take the only green one of all if the person said so."""
        self.check.end()
        self.trials.run(numbers)
        chats, every = self.session.chats, self.session.trials
        green = [number for number, ended in every if ended and ended.outcome == "green"]
        if chats is None or not all(ended for _, ended in every):
            return
        # A later request is for one chat alone: that whose answer was taken.
        earlier = (each for each in self.session.candidates if each.sequence < self.session.sequence)
        if len(every) < (1 if any(each.at > chats.at for each in earlier) else chats.count):
            return
        why = f"{len(green)} of {len(every)} are green: `codingagent take N` takes one"
        try:
            if chats.takes_green and len(green) == 1:
                self.take_candidate(green[0])
                return
        except UsageError as fault:
            why = str(fault)
        self.context.remark(why)

    def finish_trials(self, *, after_kill: bool = False) -> bool:
        """Try what waits for it, `after_kill` also what that interrupted; return whether there was any."""
        every = self.session.trials if self.session.is_awaiting_answer else []
        if not after_kill and all(ended for _, ended in every):
            return False
        begun = [number for number, ended in every if not ended or self.trials.named(number).is_interrupted]
        if begun:
            self.try_candidates(begun)
        return bool(begun)

    def take_candidate(self, number: int) -> None:
        """Make a candidate's changes the turn, byte for byte as tried; UsageError if they can't be."""
        self.check.end()
        one = self.trials.takeable(number)
        assert one.session is not None, "it has ended"
        began, told = one.began, ((), len(one.session.ends), (), bool(one.session.lacks_guide))
        taken = AnswerTaken(began.sequence, began.name, began.digest, now(), *told, candidate=number)
        self._log.record(taken)
        self._log.sync()
        self._adopt(taken)

    def _adopt(self, taken: AnswerTaken) -> None:
        """Do what is left of the taking of a candidate."""
        one = tried(self._home, self.session, taken.candidate)
        try:
            self._execution.adopt(one)
        except ApprovalError:
            self._home.sessions.mend_document(self.session)
            raise
        ended = [each for each in one.records if isinstance(each, TurnEnded)][-1]
        self._execution.end(taken.sequence, ended.notes, ended.cut)
        self.write_due()

    def rehearsed(self, data: bytes) -> Iterator[Rehearsed]:
        """Yield what each item of an answer would do, and do nothing; UsageError if it is none.

        Its file operations are done to copies of the files that it names; commands are only named, as what
        they do is not known. What depends on other files may be judged otherwise in the end.
        """
        answer, context = self._reader.read(data), self.context
        if answer is None or answer.reply.has_outbox:
            raise UsageError("that is no answer: it is no text, or the request itself")
        made = tempfile.TemporaryDirectory(prefix="codingagent-", ignore_cleanup_errors=True)
        with made as folder, contextlib.closing(workspace.Workspace(Path(folder))) as copies:
            spellings = spelling.Spellings(context.workspace)
            items = [spellings.meant(item) for item in answer.reply.items]
            operations = [item.operation for item in items if isinstance(item, Step)]
            for change in (change for each in operations for change in named(each)):
                with contextlib.suppress(OperationError):
                    if not copies.exists(change.path):
                        copies.write(change.path, context.workspace.read(change.path).data, None)
            # What would be known of secrets afterwards is not kept.
            secrecy = copy.deepcopy(context.secrecy)
            bare = bare_context(copies, context.runner, context.policy, self._log)
            context = replace(bare, texts=context.texts, secrecy=secrecy)
            commands: tuple[int, ...] = ()
            edits: list[FileEdited] = []
            for index, item in enumerate(items):
                yield _rehearsed(context, index, item, commands, edits)
                if isinstance(item, Step) and isinstance(item.operation, RunCommand):
                    commands += (index + 1,)

    def _as_answer(self, data: bytes, name: str, *beside: str) -> tuple[str, bytes]:
        """Return the name and the bytes of an answer; files of the workspace are packed as one first."""
        if b"[REPLY" in data and not is_bare(name):
            return name, data
        from codingagent.agent import downloads  # late: most answers are text

        others = {each: own for each in beside if (own := self._mailbox.read(each)) is not None}
        if len(others) < len(beside):
            raise UsageError("a file that came with it is too large")
        made = downloads.as_answer([(name, data), *others.items()], self._reader.files)
        return (name, data) if made is data else (self._mailbox.replace([name, *beside], made), made)

    def _reject(self, name: str, objection: Objection) -> None:
        new = self._mailbox.set_aside(name, objection.reason)
        remedy = objection.remedy or (
            "Apply it anyway: codingagent resume"
            f" {self.session.session_id} --accept {programs.quoted_path(self._mailbox.rejected / new)}"
        )
        self._log.record(AnswerSetAside(new, objection.reason, now(), remedy))

    def _begin(self, taken: str, answer: ReadAnswer, skip: tuple[int, ...] = ()) -> None:
        """Journal that an answer was taken: its turn begins, and what ran before it ends."""
        self.check.end()
        count = sum(isinstance(item, Step) for item in answer.reply.items)
        told = answer.reply.files, count, skip, answer.lacks_guide
        self._log.record(AnswerTaken(self.session.sequence, taken, answer.digest, now(), *told))

    def _execute(self, found: Reply) -> None:
        """Execute what is not done yet of an answer, and write the next request; ApprovalError."""
        try:
            self._execution.perform(found.items)
        except ApprovalError:
            self._home.sessions.mend_document(self.session)
            raise
        old = self.session.cut
        is_done = found.is_joined or any(continuation.is_about(old, i.kind) for i in found.items)
        cut = found.cut or ("" if is_done else old)
        self._execution.end(self.session.sequence, found.notes, cut)
        self.write_due()

    def changes(self) -> notices.Changes:
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
        found = notices.Changes(self.session.workspace, paths, can_undo, can_commit, last)
        return self.context.secrecy.hide_all(found)

    def tell_check(self, *, is_told: bool) -> None:
        """Record what the check said beside the person; if `is_told`, write a failure into the request."""
        self.check.end(is_told=is_told)
        if self.session.phase is Phase.REQUEST_DUE:
            self.write_due()
            failure = check_outcome.failure_before(self.session)
            has_names = failure is not None and check_outcome.failures_in(failure).names
            what = "the failing tests" if has_names else "what your check says"
            self.context.remark(f"request {self.session.sequence} has {what} now: paste this one")

    def write_due(self) -> None:
        """Write the request that is due, if any; execute nothing.

        The last turn has no request after it, so its changes are made durable here.
        """
        self.requests.write()
        if self.session.is_complete:
            self.context.checkpointer.sync()
            atomic_write.remove_folder(folder_of(self._home, self.session.session_id))

    def recover(self) -> None:
        """Finish what a kill, an interrupt or an error left unfinished, up to the next request."""
        mailbox, session = self._mailbox, self.session
        if session.phase is Phase.AWAITING_ANSWER:
            # An answer may have been moved and not journalled; its new name has its session.
            name = mailbox.find_taken(session.session_id, session.sequence)
            data = None if name is None else mailbox.read_taken(name)
            if name is not None and data is not None:
                self._begin(
                    name, self._reader.read(data) or ReadAnswer(observations.digest_of(data), "", NO_TEXT)
                )
        if self.session.phase in (Phase.EXECUTING, Phase.AWAITING_APPROVAL):
            why = "was interrupted" if self.session.asked is None else "waited for approval"
            self.context.remark(f"continuing with answer {self.session.sequence}, which {why}")
            if self.session.taken is not None and self.session.taken.candidate:
                self._adopt(self.session.taken)
            else:
                self._execution.after_kill()
                self._execute(self._read_again())
        else:
            self.write_due()

    def _read_again(self) -> Reply:
        """Return the answer that a kill interrupted, from its file."""
        taken = self.session.taken
        assert taken is not None, "a turn has a reply"
        data = self._mailbox.read_taken(taken.name)
        if data is None or observations.digest_of(data) != taken.digest:
            left = "what is not among these results was not done"
            fact = f"The answer {taken.name} was changed or removed while it was executed; {left}"
        else:
            answer = self._reader.read(data)
            if answer is not None and not answer.reply.has_outbox:
                return answer.reply
            # Recovery after a kill takes an answer by name only; a power failure may have emptied it.
            fact = f"The answer {taken.name} can't be read"
        # Items that are done keep their positions; the one after them reports the loss, if one was to come.
        count = len(self.session.results) + (not self.session.protected_found)
        lost = (Problem(Kind.ANSWER, fact, 1, advice=": send it again"),) * count
        return Reply(lost, None, has_outbox=False, notes=())


def _rehearsed(
    context: Context, index: int, item: Step | Problem, commands: tuple[int, ...], edits: list[FileEdited]
) -> Rehearsed:
    hide = context.secrecy.hide
    if isinstance(item, Problem):
        return Rehearsed(index, item.kind, hide(item.subject), fault=hide(item.fact))
    operation, subject = item.operation, hide(subject_of(item.operation))
    told = Rehearsed(index, operation.kind, subject)
    match operation:
        case RunCommand():
            text = subject
        case ShowMessage(text=text) | Finish(summary=text):
            return replace(told, difference=hide(text))
        case _ if not isinstance(operation, FileOperation):
            return told
        case _:
            text = context.secrecy.hide_diff(text_of(operation), subject)
    told = replace(told, difference=text, can_skip=True)
    try:
        earlier = [each for each in edits if each.path == subject_of(operation)]
        order = OperationRequest(index, operation, earlier, id=item.id, foreign=item.foreign, later=tuple)
        plan = executor.Executor(context).plan(replace(order, names=item.names))
        if not isinstance(plan, Plan):
            fault = "" if succeeded(plan) else results.words_of(plan)
            # No command changes what a policy says.
            depends = commands * (bool(fault) and not isinstance(plan, Denied))
            return replace(told, fault=hide(fault), depends=depends)
        shown = context.secrecy.hide_diff(plan.shown(), plan.subject)
        if not isinstance(operation, RunCommand):
            plan.act()
            edits += [plan.event] if isinstance(plan.event, FileEdited) else []
    except OperationError as fault:
        return replace(told, fault=hide(fault.fact), depends=commands)
    reasons = tuple(reason for each in plan.asked for reason in each.reasons)
    return replace(told, difference=shown, reasons=tuple(map(hide, reasons)))
