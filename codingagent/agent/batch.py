"""Execute the items of one answer or one message in order, with records and approvals.

Each item records its end in the journal, and each change its start too. `after_kill` and `perform`
continue what a kill interrupted: what is in the journal is done, the rest is still to do.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from codingagent.agent import check, executor, file_operations, protected, tried
from codingagent.agent.context import Context, OperationRequest, subject_of
from codingagent.agent.spelling import Spellings
from codingagent.context.rank import TESTS
from codingagent.editing import syntax_check
from codingagent.errors import ApprovalError, OperationError, UsageError, WorkError
from codingagent.model import check_outcome, events, operations, paths, patterns, plain_text, results
from codingagent.model import journal_entries as entries
from codingagent.model.approval import NOBODY, Answer, Question, is_about_secrets, nothing_awaits
from codingagent.model.operations import EVERYWHERE, CreateFile, EditFile, Finish, Kind, RunCommand, named
from codingagent.model.session_state import Phase, Session
from codingagent.protocols.tags.reply import Problem, Step
from codingagent.storage.clock import now

# Total size of contents and outputs in the events of one answer, in characters: it bounds memory.
RETURNED_LIMIT = 64 * 2**20
# A name that every shell reads as one word, and never as an option.
_PLAIN_NAME = patterns.lazy_pattern(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}")
# How many of the failures that keep a DONE from counting are named.
_first = partial(plain_text.some, most=3)
_LEFT_OUT = "the user said no"
_AFTER_NO = "Find another way, or ask with MESSAGE what they want instead."
_ABOUT_NAMES = "To keep a secret value, write its placeholder (SECRET-…) exactly where the value was."
_OLD = "fix that if the task asks for it, else say with MESSAGE that you can't"
_NOT_CHECKED = "the check was not run, because an edit failed"

_QUESTION_GONE = "the question that waited is gone: what it was about has changed since, or can't be done now"


class Execution:
    """Execute what one answer, or one message, asks for. What is done raises WorkError if the disk fails."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.log, self.checkpointer = context.log, context.checkpointer
        self._executor = executor.Executor(context)
        self.check = check.Check(context, self._executor)
        self.protection = protected.Protection(context)
        self._spellings = Spellings(context.workspace)
        self._edits: dict[str, list[events.FileEdited]] = {}
        """Those of the answer so far, by path: a search of all its events for each would be quadratic."""
        self._counted: dict[str, str | None] = {}
        """By path, the texts in which the answer's edits by line numbers count."""

    @property
    def session(self) -> Session:
        return self.log.session

    def after_kill(self) -> None:
        """End the operation that a kill interrupted, from the state of its file."""
        started = self.session.unfinished
        if started is None or (event := self._executor.after_kill(started)) is None:
            return
        if started.kind is Kind.CHECK:
            self.log.record(entries.CheckEnded(event, now(), started.subject))
        else:
            self._end(started.index, started.operation_id, event)

    def perform(self, items: Sequence[Step | Problem], told: Callable[[], None] = lambda: None) -> None:
        """Execute those of all items that are not in the journal yet; call `told` after each.

        ApprovalError if nobody can answer a question; `answer` continues from there.
        """
        self._executor.begin()
        self.checkpointer.listed = None
        self.context.workspace.check()
        self._spellings = Spellings(self.context.workspace)
        begun = len(self.session.results) >= len(items) or self.session.checkpoints.before
        meant = list(self._operations(items))
        todo = [] if begun else meant
        self.checkpointer.is_late = False
        if any(each.changes for each in todo):
            # The checkpoint holds the files that are about to change, by their real names.
            held: set[str] = set()
            if any(isinstance(each, RunCommand) for each in todo):
                self.context.runner.start()  # it takes as long as the checkpoint of a small folder
                held |= check.hidden_files(self.context)
            for change in itertools.chain.from_iterable(map(named, todo)):
                with contextlib.suppress(OperationError):
                    real = self.context.workspace.resolved
                    held.add(real(change.path, follow_last=change.follows))
            is_edit = self.session.is_of_tools and isinstance(todo[0], EditFile | CreateFile)
            self.checkpointer.is_late = is_edit and all(map(self.checkpointer.may_follow, held))
            if not self.checkpointer.is_late:
                self.checkpointer.before(held)
        self._edits.clear()
        paths = {each.path for each in meant if isinstance(each, EditFile) and each.ranges}
        self._counted = {path: file_operations.text_counted(self.context, path) for path in paths}
        for event in self.session.results:
            self._note(event)
        for index in range(len(self.session.results), len(items)):
            # A command may have moved the workspace away during the turn.
            self.context.workspace.check_root()
            self._perform(index, items)
            told()
        self._settle()

    def adopt(self, candidate: tried.Tried) -> None:
        """Make the changes of a candidate, and record what came of its operations: nothing is run again.

        ApprovalError as `perform`; WorkError, with nothing changed, if no checkpoint can be taken. After a
        kill, files that are as tried already are left alone.
        """
        workspace, store = self.context.workspace, self.checkpointer.lazy_store.needed()
        workspace.check()
        changes = store.changes(candidate.before, candidate.after) if candidate.before else ()
        paths = [change.path for change in changes]
        if paths and not self.session.checkpoints.began:
            self.checkpointer.before(paths)
            self.checkpointer.sync()
        if paths and not self.session.checkpoints.parts:
            if not (before := self.session.checkpoints.before):
                raise WorkError(f"candidate {candidate.began.number} can't be taken without a checkpoint")
            for left in store.restore(candidate.after, before, paths):
                if left.reason.startswith(("the disk ", "File too large")):
                    raise WorkError(f"{left.told}; once that is mended, `codingagent resume` does the rest")
                self.context.remark(f"not as it was tried: {left.told}")
        taken = self.session.taken
        assert taken is not None, "it was taken"
        index, done = 0, len(self.session.results)
        for started, ended in candidate.outcomes():
            is_check = isinstance(ended, entries.CheckEnded)
            if self.session.checked is None if is_check else index >= done:
                if started is not None:
                    self.log.record(replace(started, index=index, at=taken.at))
                at = {} if is_check else {"index": index}
                self.log.record(replace(ended, at=now(), **at))
            index += not is_check
        workspace.check()
        self._settle()

    def _settle(self) -> None:
        """End the work of a turn: the check, the checkpoint, and the question about protected files."""
        if not self.session.protected_found:
            if not any(isinstance(event, events.Finished) for event in self.session.results):
                self.check.run(ends=False)
            self.context.workspace.check()
            # Also after a turn that only read: what the person changed meanwhile is news to the chat.
            kept = self.session.checkpoints
            if (kept.before or kept.latest) and not self.checkpointer.is_late:
                self.checkpointer.after()
            self.protection.look()
        if self.session.protected_found and self.session.protected_settled is None:
            self.checkpointer.listed = None  # the question takes time
            index, asked = len(self.session.results), self.session.asked
            question = self.protection.question() if asked is None else asked.question
            self.protection.carry_out(self._answer_to(index, protected.NAME, question))

    def _operations(self, items: Sequence[Step | Problem], start: int = 0) -> Iterator[operations.Operation]:
        for item in itertools.islice(items, start, None):
            if isinstance(meant := self._spellings.meant(item), Step):
                yield meant.operation

    # --- one item ------------------------------------------------------------------------------
    def _perform(self, index: int, items: Sequence[Step | Problem]) -> None:
        """Execute one item; any mistake of the model becomes its result."""
        item, waits = self._spellings.meant(items[index]), self.session.is_awaiting_approval
        event: events.Event
        is_end = isinstance(item, Step) and isinstance(item.operation, Finish)
        if is_end and (why := self._why_not_done(items)):
            event = events.Refused(item.kind, why[0], advice=f"; {why[1]}, then send DONE again")
        elif isinstance(item, Problem):
            event = events.Refused(item.kind, item.fact, item.detail, item.subject, advice=item.advice)
        elif self.session.taken is not None and index in self.session.taken.skipped:
            subject = subject_of(item.operation)
            event = events.Denied(item.kind, subject, ("review",), _LEFT_OUT, _AFTER_NO)
        else:
            room = max(RETURNED_LIMIT - self.session.returned, 0)
            earlier = self._edits.get(subject_of(item.operation), ())
            if item.kind is Kind.MOVE_FILE:  # it may need the edit before it, and no other
                earlier = [each for each in self.session.results[-1:] if isinstance(each, events.FileEdited)]
            order = OperationRequest(index, item.operation, earlier, room, item.id, item.foreign)
            is_chat = self.context.texts is not None
            later = partial(self._operations, items, index + 1) if is_chat else None
            counted = self._counted.get(subject_of(item.operation))
            event = self._decide(replace(order, later=later, names=item.names, counted=counted))
        if waits and self.session.answered is None:
            self.context.remark(_QUESTION_GONE)
        if item.notes:
            notes, facts = plain_text.parted(item.notes)
            told, notes = (facts or notes) + (event.facts or event.notes), notes + event.notes
            event = replace(event, notes=notes, facts=() if told == notes else told)
        self._end(index, item.id, event)

    def _why_not_done(self, items: Sequence[Step | Problem]) -> tuple[str, str] | None:
        """Return why a DONE does not count, and what to do first; None: it counts.

        The person's check, if there is one, decides about what commands and parsers say, but for tests of
        the answer's own, which it may not run. What the person denied is theirs.
        """
        has_check = bool(self.context.settings.check)
        failed, doubted = list[str](), list[str]()
        for item, event in zip(items, self.session.results, strict=False):
            is_theirs = isinstance(event, events.Denied) and event.reason.startswith(_LEFT_OUT)
            is_command = item.kind is Kind.RUN_COMMAND and (
                is_theirs or (has_check and isinstance(event, events.CommandRan))
            )
            if not (events.succeeded(event) or is_command):
                failed.append(self._named(item))
            if any(note.endswith(plain_text.DOUBT) for note in event.notes):
                doubted.append(self._named(item))
        if failed:
            return f"Not accepted, because this failed: {_first(failed)}", "fix that"
        if doubted:
            how = "look at the lines, mend them if they are damaged"
            return f"Not accepted, because a note doubts {_first(doubted)}", how
        has_begun = self.check.has_changed()
        if not self.check.run(ends=True):
            assert self.session.checked is not None, "it was just run"
            found, why = check_outcome.compared(self.session), results.words_of(self.session.checked)
            if not (has_begun and found.counts_not):
                as_before = " as before any change" * found.is_same
                is_old = found.is_same or (found.old and not found.new)
                return f"{results.NOT_ACCEPTED}{as_before}: {why}", _OLD if is_old else "fix that"
            self.context.remark("it fails only where it failed before any change, so DONE counts")
        if own := self._own_failures():
            return f"Not accepted, because tests of your own fail: {_first(own)}", "fix that"
        workspace, broken = self.context.workspace, list[str]()
        for path in () if has_check else sorted(self.session.unparsed):
            with contextlib.suppress(OperationError):  # it is gone
                text = workspace.text(path, workspace.read(path).data)
                if text is not None and (fault := syntax_check.fault_in(path, text.text)):
                    broken.append(f"'{path}' ({fault})")
        if not broken:
            return None
        way_out = "" if self.session.terms.protocol == "json" else ', or send it with unchecked="true"'
        why = f"Not accepted, because this can't be parsed: {_first(broken)}"
        return why, f"correct or delete it{way_out}"

    def _own_failures(self) -> list[str]:
        """Return the tests that fail in files of this answer, by its own commands after its last change."""
        found, changed = dict[str, list[str]](), set[str]()
        for event in self.session.results:
            if files := events.file_changes((event,)):
                found.clear()
                changed |= {each.path.rpartition("/")[2] for each in files if TESTS.search(each.path)}
            elif isinstance(event, events.CommandRan):
                is_own = any(name in event.output for name in changed)
                is_failure = is_own and not events.succeeded(event)
                # The last run of a command counts.
                found[event.command] = [*check_outcome.failures_in(event).names] if is_failure else []
        return [name for names in found.values() for name in names]

    def _named(self, item: Step | Problem) -> str:
        """Name an item for the model, in the words of the session's protocol."""
        kind: str = item.kind
        if self.session.terms.protocol == "json":
            from codingagent.protocols.json.wire import type_of  # pydantic with it

            kind = type_of(item.kind)
        if isinstance(item, Problem):
            return f"{kind} '{item.subject}'" if item.subject else f"{kind} at line {item.line}"
        return f"{kind} '{plain_text.one_line(subject_of(item.operation))}'"

    def _decide(self, order: OperationRequest) -> events.Event:
        """Do an operation, once approved if the policy asks."""
        asked, answered = self.session.asked, self.session.answered
        given = None if answered is None else answered.answer
        if given is not None and given.decision == "no":
            # It stays one, also where nothing would be asked any more.
            assert asked is not None, "it was answered"
            if asked.index == order.index:
                return _denied(order, asked.question, given)
        found = self._executor.perform(order)
        while isinstance(found, Question):
            answer = self._answer_to(order.index, order.id, found)
            if answer.decision == "no":
                return _denied(order, found, answer)
            found = self._executor.perform(order, found.digest)
        return found

    def _answer_to(self, index: int, name: str, question: Question) -> Answer:
        """Return the answer to a question, asked now unless it was before; ApprovalError if nobody can."""
        asked, answered = self.session.asked, self.session.answered
        is_same = asked is not None and (asked.index, asked.question) == (index, question)
        if is_same and answered is not None:
            return answered.answer
        if not is_same:
            if self.session.is_awaiting_approval:
                self.context.remark("what the operation would do has changed since you were asked")
            asked = entries.ApprovalAsked(index, question, now(), name)
            self.log.record(asked)
        assert asked is not None
        answer: Answer | None
        was_denied = not self.session.denied.isdisjoint(question.grants)
        if not was_denied and question.grants and self.session.granted.issuperset(question.grants):
            answer = Answer("yes", "always", how="always")
        elif not was_denied and self.context.person.approves_all:
            answer = Answer("yes", "--yes", how="--yes")
        else:
            answer = self.context.person.ask(asked)
        if answer is not None:
            self.log.record(entries.ApprovalAnswered(index, answer, now()))
            return answer
        # What the person does before they answer does not belong to the turn.
        if self.session.checkpoints.before:
            self.checkpointer.after()
        self.context.checkpointer.sync()
        # The model chose the name, and a person may paste the line into a shell.
        words = self.session.session_id
        if _PLAIN_NAME.fullmatch(asked.name):
            words += f" {asked.name}"
        approve, deny = f"`codingagent approve {words}`", f"`codingagent deny {words}`"
        ways = f"{approve} runs it, {deny} skips it"
        if question.kind is Kind.FILES_CHANGED:
            ways = f"{approve} keeps the changes, {deny} restores the files"
        raise ApprovalError(f"{paths.shown(asked.name)} waits for approval: {ways}")

    def answer(self, name: str | None, answer: Answer) -> None:
        """Answer the pending question (`name`: the operation's id); UsageError if another waits, or none."""
        asked, session_id = self.session.asked, self.session.session_id
        if self.session.phase is not Phase.AWAITING_APPROVAL or asked is None:
            raise UsageError(nothing_awaits(session_id))
        awaited = asked.name
        if name == awaited and any(ended.name == name for ended in self.session.ends):
            # An answer that is sent twice must not approve the next operation of the same name.
            how = "leave the id out to answer the one that waits for approval"
            raise UsageError(f"several operations are called '{paths.shown(name)}': {how}")
        if name not in (None, awaited):
            raise UsageError(f"'{name}' does not wait for approval; {awaited} does")
        self.log.record(entries.ApprovalAnswered(asked.index, answer, now()))

    def end(self, sequence: int, notes: tuple[str, ...] = (), cut: str = "") -> None:
        """Record the end of the turn, with the files that changed in it."""
        changes = self.protection.changes()
        changed = tuple(dict.fromkeys((*self.session.changed, *changes)))
        notes += self.protection.notes(changes)
        if self.check.waits_for_edits() and not self.session.is_run:
            # The person is told why nothing was.
            refused = (each.kind for each in self.session.results if isinstance(each, events.Refused))
            is_told = cut or Kind.DONE in refused
            notes += (plain_text.Note("", _NOT_CHECKED) if is_told else _NOT_CHECKED,)
        # Those of a candidate have it said already.
        notes, facts = plain_text.parted((*dict.fromkeys(notes),))
        changed = changed[: entries.CHANGED_LIMIT]
        self.log.record(entries.TurnEnded(sequence, notes, now(), cut, changed, facts))

    def _end(self, index: int, name: str, event: events.Event) -> None:
        self.log.record(entries.OperationEnded(index, event, now(), name))
        self._note(event)

    def _note(self, event: events.Event) -> None:
        if EVERYWHERE in event.changes:
            self._spellings = Spellings(self.context.workspace)
        for change in events.file_changes((event,)):
            self._spellings.add(change.path)
        tell = (".gitattributes", ".editorconfig")  # how others are written
        if any(not each.path or each.path.endswith(tell) for each in event.changes):
            self.context.workspace.check()
        if isinstance(event, events.FileCreated | events.FileMoved):
            for kept in (self._edits, self._counted):
                kept.pop(getattr(event, "to", event.path), None)
        if isinstance(event, events.FileMoved):
            self._edits[event.to] = self._edits.pop(event.path, [])
        if isinstance(event, events.FileEdited):
            self._edits.setdefault(event.path, []).append(event)


def _denied(order: OperationRequest, question: Question, answer: Answer) -> events.Denied:
    reason = "the user said no" + (f": {answer.reason}" if answer.reason else "")
    reason = answer.reason if answer.by == NOBODY else reason
    told = _AFTER_NO
    if any(map(is_about_secrets, question.rules)):
        told = f"They were asked because {'; '.join(question.reasons)}. {_ABOUT_NAMES} {told}"
    return events.Denied(order.kind, question.subject, question.rules, reason, told)
