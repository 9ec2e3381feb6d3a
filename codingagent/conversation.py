"""A session at work: replies come in, each a turn, and requests go out, until the task is done.

How it works. A turn is: take the reply (moved first, then journalled), do its items in order, end the
turn, write the next request. All of it is in the journal, so that `recover` goes on from any instant.
"""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from codingagent.agent import Agent, Views
from codingagent.core import (
    continuation,
    encoding,
    outbox,
    paths,
    reply,
    results,
    tokens,
    tracebacks,
)
from codingagent.core.approval import Answer
from codingagent.core.events import (
    CommandRan,
    FileCreated,
    FileFetched,
    FileRequested,
    Finished,
    MessageShown,
    succeeded,
)
from codingagent.core.findings import Letter, digest_of
from codingagent.core.listing import Listing
from codingagent.core.notices import (
    OutboxReady,
    QuestionAsked,
    Remark,
    ReplyAccepted,
    ReplyRejected,
    SessionDone,
    TurnDone,
    Waiting,
)
from codingagent.core.reply import Foreign, Problem, Reply, Step
from codingagent.core.session import (
    InboxFound,
    LyingFile,
    OutboxWritten,
    PersonSaid,
    Phase,
    RefreshAsked,
    ReplySetAside,
    ReplyTaken,
    Session,
    SessionReopened,
    TurnEnded,
    changed_paths,
)
from codingagent.errors import OperationError, UsageError
from codingagent.execution import Execution, Ledger, Surroundings


class MailboxLike(Protocol):
    """The outbox and the inbox."""

    inbox: Path
    rejected: Path

    def outbox_path(self, session_id: str, sequence: int) -> Path: ...
    def short_path(self, session_id: str, sequence: int) -> Path: ...
    def write_beside(self, path: Path, text: str) -> None: ...
    def put_in_place(self, path: Path) -> None: ...
    def look(self) -> list[Letter]: ...
    def has(self, name: str) -> bool: ...
    def read(self, name: str) -> bytes | None: ...
    def take(self, name: str, session_id: str, sequence: int) -> str: ...
    def put_back(self, taken: str, name: str) -> None: ...
    def find_taken(self, session_id: str, sequence: int) -> str | None: ...
    def read_taken(self, name: str) -> bytes | None: ...
    def set_aside(self, name: str, reason: str) -> str: ...


@dataclass(frozen=True, slots=True)
class _Objection:
    """Why a file is no reply of this session's, and what to do; no remedy means: accept it."""

    reason: str
    remedy: str


# What is read for a request is cut to fair shares there; more than this can't be of use.
_VIEWS_PER_BUDGET = 4

# No answer of a model has so many; each would be shown and asked for.
_FOREIGN_LIMIT = 2_000

_FOREIGN = (
    "no command of PROTOCOL was in the answer; what it holds in another format was taken instead: write"
    " commands next time"
)
_NOT_JOINED = (
    "this does not go on where the block before was cut short: its last lines, written once more, were"
    " not found at the beginning; send the block again from its start"
)
_SAVE_AGAIN = "save the answer's text as a plain .txt file in the inbox"
_TOO_LARGE = _Objection("it is too large to be a reply", _SAVE_AGAIN)
_NO_TEXT = _Objection("it is no text", _SAVE_AGAIN)


@dataclass(frozen=True, slots=True)
class Correspondence:
    """What a conversation writes its requests with, and reads the replies."""

    mailbox: MailboxLike
    budget: outbox.Budget
    environment: outbox.Environment
    locale_codec: str
    accepts_formats: bool = False
    """What comes in other formats than ours needs no yes."""


class Conversation:
    """One session: its turns, from one request to the next."""

    def __init__(
        self, ledger: Ledger, agent: Agent, surroundings: Surroundings, mail: Correspondence
    ) -> None:
        self.ledger = ledger
        self._means = surroundings
        self._mail = mail
        self._execution = Execution(ledger, agent, surroundings)

    @property
    def session(self) -> Session:
        """The session as its journal has it now."""
        return self.ledger.session

    # --- turns ---------------------------------------------------------------------------------

    def recover(self) -> None:
        """Finishes what a kill, an interrupt or a fault left unfinished, up to the next request.

        Raises:
            WorkError: if the disk does not let it.
        """
        if self.session.phase is Phase.AWAITING_REPLY:
            self._recover_taken()
        if self.session.phase in (Phase.EXECUTING, Phase.AWAITING_APPROVAL):
            self._means.show(
                Remark(f"going on with reply {self.session.sequence}, which was interrupted")
            )
            self._execution.settle()
            self._execute(self._read_again())
        self.write_due()

    def begin(self) -> None:
        """Names what lies in the inbox already, and leaves it alone until it changes.

        Raises:
            WorkError: if the disk does not let it.
        """
        lying = tuple(
            LyingFile(letter.name, letter.sighting.size_bytes, letter.sighting.modified_ns)
            for letter in self._mail.mailbox.look()
        )
        if lying:
            self.ledger.record(InboxFound(lying, self._means.now()))
            names = ", ".join(paths.shown(file.name) for file in lying)
            self._means.show(
                Remark(
                    f"left alone, because it lay in the inbox before: {names}; to use one: codingagent"
                    f" resume {self.session.session_id} --accept FILE"
                )
            )

    def reopen(self) -> None:
        """Goes on with a session that was complete: the next request has its last results."""
        self.ledger.record(SessionReopened(self._means.now()))

    def say(self, text: str, attached: tuple[str, ...] = (), errand: str = "") -> None:
        """Adds words of the person, and files, to the request that is due, or waits: `recover` writes it.

        A complete session is reopened.

        Args:
            text: their words; may be empty if there are files.
            attached: paths as `attachable` gives them.
            errand: by what name another process handed this over; a second time does nothing.

        Raises:
            WorkError: if the disk does not let it.
        """
        if errand and any(said.errand == errand for said in self.session.said):
            return
        if self.session.is_complete:
            self.reopen()
        self.ledger.record(PersonSaid(text, attached, self._means.now(), errand))

    def refresh(self) -> None:
        """Has the request that waits written anew, from the workspace as it is now: by `recover`.

        Raises:
            UsageError: if none waits, or is due.
            WorkError: if the disk does not let it.
        """
        if self.session.phase is Phase.OUTBOX_DUE:
            return
        if self.session.phase is not Phase.AWAITING_REPLY:
            session_id, phase = self.session.session_id, self.session.phase.value
            raise UsageError(
                f"session {session_id} has no request that waits; it is {phase}: see `codingagent show"
                f" {session_id}`"
            )
        self.ledger.record(RefreshAsked(self._means.now()))

    def announce(self, *, watched: bool) -> None:
        """Says what the person is to do now, and whether someone waits for it."""
        session_id, sequence = self.session.session_id, self.session.sequence
        mailbox = self._mail.mailbox
        path = mailbox.outbox_path(session_id, sequence)
        short = str(mailbox.short_path(session_id, sequence)) if sequence > 1 else ""
        self._means.show(
            Waiting(session_id, sequence, str(path), str(mailbox.inbox), watched, short)
        )

    def is_answer(self, text: str) -> bool:
        """Tells whether a text says itself that it answers the request that waits, and asks for something."""
        found = self._read(text)
        header = found.header
        if found.has_outbox or header is None:
            return False
        awaited = (self.session.session_id, self.session.sequence)
        has_steps = any(isinstance(item, Step) for item in found.items)
        return has_steps and (header.session, header.sequence) == awaited

    def take(self, name: str, *, accept: bool = False) -> None:
        """Takes a finished file of the inbox: a turn, or to `rejected/` with the reason.

        Args:
            name: the file.
            accept: execute it even if it answers another request or was executed already.

        Raises:
            WorkError: if the disk does not let it. The reply is then in the inbox or in processed/.
        """
        if not self._mail.mailbox.has(name):
            return
        data = self._mail.mailbox.read(name)
        if data is None:
            self._set_aside(name, _TOO_LARGE)
            return
        found = self._interpret(data)
        if found is None:
            self._set_aside(name, _NO_TEXT)
            return
        objection = self._objection(found, data, accept=accept)
        if objection is not None:
            self._set_aside(name, objection)
            return
        taken = self._mail.mailbox.take(name, self.session.session_id, self.session.sequence)
        if self._mail.mailbox.read_taken(taken) != data:
            # Someone was still writing it; nothing was journalled, so it is simply not ready yet.
            self._mail.mailbox.put_back(taken, name)
            return
        self._begin(taken, data, found)
        self._execute(found)
        self.write_due()

    def answer(self, name: str | None, answer: Answer) -> None:
        """Answers what awaits approval; `recover` then goes on.

        Args:
            name: the operation's id, if the person named it.
            answer: theirs.

        Raises:
            UsageError: if nothing awaits approval, or something else does.
        """
        self._execution.answer(name, answer)

    def write_due(self) -> None:
        """Writes the request that is due, if one is; executes nothing.

        Raises:
            WorkError: if the disk does not let it.
        """
        if self.session.phase is Phase.OUTBOX_DUE:
            self._write_outbox()
        elif self.session.is_complete:
            self._means.sync()
        self._execution.keeper.catch_up()
        self._means.keep_document(self.session)

    def rest(self) -> bool:
        """Does ahead what the next turn begins with, while nobody waits; False: ask again in a while."""
        return self._means.keeping.prepare(self.session.told)

    def _begin(self, taken: str, data: bytes, found: Reply | None) -> None:
        files = () if found is None else found.files
        sequence, at = self.session.sequence, self._means.now()
        self.ledger.record(ReplyTaken(sequence, taken, digest_of(data), at, files))

    def _recover_taken(self) -> None:
        """A reply that was moved and not journalled: the name that it got says whose it is."""
        name = self._mail.mailbox.find_taken(self.session.session_id, self.session.sequence)
        data = None if name is None else self._mail.mailbox.read_taken(name)
        if name is not None and data is not None:
            self._begin(name, data, self._interpret(data))

    def _interpret(self, data: bytes) -> Reply | None:
        """Gives what a reply's bytes say, or None if they are no text."""
        read = encoding.decode_reply(data, self._mail.locale_codec)
        if read is None:
            return None
        found = reply.with_note(self._read(read.text), read.note)
        said = None if found.header is None else found.header.sequence
        awaited = self.session.sequence
        if said is None or said <= awaited:
            return found
        note = f"the reply says sequence {said}; it was taken as the one to {awaited}"
        return reply.with_note(found, note)

    def _read(self, text: str) -> Reply:
        """Reads a reply in either protocol, whichever the request was in; one that goes on is joined."""
        if self.session.cut and (whole := continuation.join(self.session.cut, text)) is not None:
            note = f"joined with the {whole.lines} lines that had arrived before"
            return replace(reply.with_note(reply.read(whole.text), note), is_joined=True)
        found = reply.read(text)
        if self.session.cut and continuation.seems_to_go_on(self.session.cut, text):
            found = reply.with_note(found, _NOT_JOINED)
        if not found.is_bare or found.has_outbox:
            return self._with_note_on_others(found)
        is_json = self.session.protocol == "json"
        if "{" not in text and not is_json:
            return self._read_other_formats(text, found) or found
        # Imported late: it costs a third of a second, which tag blocks need not pay.
        from codingagent.core.messages import replies

        message = replies.read(text)
        if message is not None:
            return message
        other = self._read_other_formats(text, found)
        if other is None and is_json:
            return replace(found, items=(replies.no_message(),))
        return other or found

    @staticmethod
    def _with_note_on_others(found: Reply) -> Reply:
        """Names what stands beside commands in another format: it is not executed."""
        if not found.beside or found.has_outbox:
            return found
        from codingagent.core.formats import reading

        items = [reading.describe(item) for item in reading.read(found.beside, ()).items]
        names = ", ".join(dict.fromkeys(item.path for item in items if item.path))
        if not items:
            return found
        note = (
            f"{len(items)} edits in another format stand beside the commands and were not executed"
            f"{f' ({names})' if names else ''}: send them as commands"
        )
        return replace(found, notes=(*found.notes, note))

    def _read_other_formats(self, text: str, found: Reply) -> Reply | None:
        """Reads what models write in place of commands; None if there is nothing of that."""
        from codingagent.core.formats import reading

        taken = self.session.reply
        if taken is None or not taken.files:
            listing = self._means.workspace.listing(self.session.touched)
            files = tuple(file.path for file in listing.files)
        else:
            # As when it was taken: what it has done since must not change what the rest of it means.
            files = taken.files
        other = reading.read(text, files)
        if not other.items:
            return replace(found, notes=(*found.notes, *other.notes)) if other.notes else None
        foreign: Foreign = "accepted" if self._mail.accepts_formats else "asked"
        items = tuple(
            replace(item, foreign=foreign) if isinstance(item, Step) else item
            for item in other.items
        )
        if len(items) > _FOREIGN_LIMIT:
            reason = f"The answer holds {len(items)} edits in another format: too many to be meant"
            return replace(found, items=(Problem("REPLY", reason, 1),))
        notes = (*found.notes, *other.notes, _FOREIGN)
        return replace(found, items=items, notes=notes, files=files or ("",))

    def _objection(self, found: Reply, data: bytes, *, accept: bool) -> _Objection | None:
        """Gives why a reply is not to be executed, or None if it is."""
        if found.has_outbox:
            return _Objection(
                "it holds a request, not an answer: a request's examples must not be executed",
                "save only the chat's answer in the inbox",
            )
        reason = reply.objection(found.header, self.session, digest_of(data))
        return _Objection(reason, "") if reason and not accept else None

    def _set_aside(self, name: str, objection: _Objection) -> None:
        new = self._mail.mailbox.set_aside(name, objection.reason)
        self.ledger.record(ReplySetAside(new, objection.reason, self._means.now()))
        path = self._mail.mailbox.rejected / new
        remedy = objection.remedy or (
            "to execute it all the same: codingagent resume"
            f" {self.session.session_id} --accept {shlex.quote(str(path))}"
        )
        self._means.show(ReplyRejected(name, str(path), objection.reason, remedy))

    # --- execution -----------------------------------------------------------------------------

    def _execute(self, found: Reply) -> None:
        """Does all items of the reply that are not done yet, and ends the turn."""
        taken = self.session.reply
        assert taken is not None, "a turn has a reply"
        self._means.workspace.check()
        operations = sum(isinstance(item, Step) for item in found.items)
        self._means.show(ReplyAccepted(taken.sequence, taken.name, operations))
        self._execution.perform(found.items, catches_up=True)
        self.ledger.record(
            TurnEnded(self.session.sequence, found.notes, self._means.now(), self._left_of(found))
        )
        self._conclude(taken)

    def _left_of(self, found: Reply) -> str:
        """Gives what is still to be gone on with: what was cut now, or before if this is not about it."""
        old = self.session.cut
        is_done = found.is_joined or any(continuation.is_about(old, i.tag) for i in found.items)
        return found.cut or ("" if is_done else old)

    def _read_again(self) -> Reply:
        """Gives the reply that was under way when we were killed, from where it lies."""
        taken = self.session.reply
        assert taken is not None, "a turn has a reply"
        data = self._mail.mailbox.read_taken(taken.name)
        if data is None or digest_of(data) != taken.digest:
            reason = (
                f"The reply {taken.name} was changed or removed while it was executed; what is not"
                " among these results was not done: send it again"
            )
            # Items that are done keep their places; the one behind them tells what happened.
            lost = Problem("REPLY", reason, 1)
            items = (lost,) * (len(self.session.results) + 1)
            return Reply(items, None, has_outbox=False, notes=())
        found = self._interpret(data)
        if found is None or found.has_outbox:
            # Taken by a kill's recovery, which looks only at its name; a power failure may have emptied it.
            reason = f"The reply {taken.name} can't be read: send it again"
            return Reply((Problem("REPLY", reason, 1),), None, has_outbox=False, notes=())
        return found

    def _conclude(self, taken: ReplyTaken) -> None:
        told = [results.result_of(event) for event in self.session.results]
        failed = [result for result in told if not result.success]
        self._means.show(
            TurnDone(
                taken.sequence,
                len(told) - len(failed),
                len(failed),
                changed_paths(self.session.results),
                self.session.notes,
            )
        )
        if told and all(isinstance(event, MessageShown) for event in self.session.results):
            self._means.show(QuestionAsked(self.session.session_id))
        if self.session.is_complete:
            last = self.session.results[-1]
            summary = last.summary if isinstance(last, Finished) else ""
            lines = tuple(f"{result.command_type}: {result.summary}" for result in failed)
            self._means.show(SessionDone(self.session.session_id, summary, lines))

    # --- the request ---------------------------------------------------------------------------

    def _write_outbox(self) -> None:
        """Writes the request that is due. All that it tells of is durable before it appears."""
        context, budget = self._context(), self._mail.budget
        text = outbox.render(self.session, context, budget, self._dialect())
        mailbox, session_id, sequence = (
            self._mail.mailbox,
            self.session.session_id,
            self.session.sequence,
        )
        path = mailbox.outbox_path(session_id, sequence)
        mailbox.write_beside(path, text)
        short = self._write_short(context)
        # They are made durable with all that they tell of: nothing of it can be missing then.
        self._means.sync()
        if short is not None:
            mailbox.put_in_place(short[0])
        mailbox.put_in_place(path)
        self.ledger.record(OutboxWritten(sequence, self._means.now()))
        size = tokens.estimate(text)
        ready = OutboxReady(
            session_id, sequence, str(path), len(text), size, budget=budget.characters
        )
        if short is not None:
            short_path, brief = short
            ready = replace(
                ready,
                short_path=str(short_path),
                short_characters=len(brief),
                short_tokens=tokens.estimate(brief),
            )
        self._means.show(ready)
        if len(text) > self._mail.budget.characters:
            limit = self._mail.budget.characters
            self._means.show(
                Remark(f"it is longer than context_chars ({limit}): the task itself is")
            )

    def _write_short(self, context: outbox.Context) -> tuple[Path, str] | None:
        """Writes beside its path what a chat needs that has seen the earlier ones; None for the first."""
        session = self.session
        if session.sequence == 1:
            return None
        changed = self._execution.keeper.changed()
        text = outbox.render_short(session, context, self._mail.budget, self._dialect(), changed)
        path = self._mail.mailbox.short_path(session.session_id, session.sequence)
        self._mail.mailbox.write_beside(path, text)
        return path, text

    def _dialect(self) -> outbox.Dialect:
        if self.session.protocol == "tags":
            return outbox.tag_dialect()
        from codingagent.core.messages.dialect import dialect

        return dialect()

    def _requests(self) -> list[FileRequested]:
        """Gives what the request is to hold the text of; events as JSON hold what they fetched themselves."""
        requests = [FileRequested(path, (path,)) for path in self.session.attached]
        for event in self.session.results:
            if isinstance(event, FileRequested):
                requests.append(event)
            elif isinstance(event, FileFetched) and self.session.protocol == "tags":
                requests.append(FileRequested(event.path, (event.path,)))
        return requests

    def _context(self) -> outbox.Context:
        views: dict[tuple[str, int | None, int | None], outbox.FileView] = {}
        unread: list[str] = []
        requests = self._requests()
        shown = Views(self._means.workspace)
        room = _VIEWS_PER_BUDGET * self._mail.budget.characters
        for path, start, end in _wanted(requests):
            if room <= 0:
                unread.append(
                    f"{paths.shown(path)}: did not fit here; ask for fewer files at a time"
                )
                continue
            try:
                view = shown.view(path, start, end)
            except OperationError as fault:
                unread.append(f"{paths.shown(path)}: {fault.reason}")
                continue
            # No more of a file is kept than a whole request could hold.
            view = view.clipped(self._mail.budget.characters)
            room -= len(view.text)
            views[path, start, end] = view
        listing = self._means.workspace.listing(self.session.touched)
        offered = tuple(self._offered(shown, listing, {path for path, _, _ in views}))
        return outbox.Context(
            listing, tuple(views.values()), unread, self._mail.environment, offered
        )

    def _offered(
        self, shown: Views, listing: Listing, known: set[str]
    ) -> Iterator[outbox.FileView]:
        """Gives what the outputs of failed commands name: the model would ask for it next."""
        session = self.session
        events = (*session.results, *filter(None, (session.checked,)))
        outputs = [e.output for e in events if isinstance(e, CommandRan) and not succeeded(e)]
        if not outputs:
            return
        # What this very answer wrote whole is known to whoever wrote it.
        written = {event.path for event in events if isinstance(event, FileCreated)}
        files = [file.path for file in listing.files]
        root = str(self._means.workspace.root)
        for named in tracebacks.named_in("\n".join(outputs), root, files):
            if named.path in known or named.path in written:
                continue
            try:
                whole = shown.view(named.path, None, None)
                view = shown.view(named.path, *named.range_of(whole.total_lines))
            except OperationError:
                continue  # nobody asked for it: no text, or gone since
            yield replace(view, reason="named in an output above")


def _wanted(requests: Iterable[FileRequested]) -> Iterator[tuple[str, int | None, int | None]]:
    """Gives each file and range once, and no range of a file that is wanted whole."""
    wanted = dict.fromkeys(
        (path, event.start_line, event.end_line) for event in requests for path in event.paths
    )
    for path, start, end in wanted:
        if (start, end) == (None, None) or (path, None, None) not in wanted:
            yield path, start, end
