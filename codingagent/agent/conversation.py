"""A session at work: take answers, each as a turn, and write requests until the task is done.

A turn takes the answer (moved first, then journalled), executes its items in order, ends, and writes the
next request. All of it is in the journal, so that `recover` can continue from any instant.
"""

import shlex
from collections.abc import Sized
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent.batch import Execution, Surroundings
from codingagent.agent.executor import Agent
from codingagent.agent.requests import Requests
from codingagent.checkpoints.checkpointer import Checkpointer
from codingagent.model import encoding, results
from codingagent.model.approval import Answer
from codingagent.model.events import Finished
from codingagent.model.journal_entries import AnswerSetAside, AnswerTaken
from codingagent.model.observations import digest_of
from codingagent.model.session_state import Phase, Session
from codingagent.model.ui_events import (
    Remark,
    ReplyAccepted,
    ReplyRejected,
    SessionDone,
    TurnDone,
)
from codingagent.protocols.tags import continuation, prose, reply, scanner, transcript
from codingagent.protocols.tags.reply import Foreign, Header, Problem, Reply, Step


class InboxLike(Protocol):
    """Where answers arrive."""

    rejected: Path

    def has(self, name: str) -> bool: ...
    def read(self, name: str) -> bytes | None: ...
    def take(self, name: str, session_id: str, sequence: int) -> str: ...
    def put_back(self, taken: str, name: str) -> None: ...
    def find_taken(self, session_id: str, sequence: int) -> str | None: ...
    def read_taken(self, name: str) -> bytes | None: ...
    def set_aside(self, name: str, reason: str) -> str: ...


class RecipientsLike(Protocol):
    """Find the session of a home that an answer is for."""

    def of(self, name: str, header: Header | None, at_work: Session) -> str: ...
    def session(self, session_id: str) -> Session | None: ...


class _Objection(Struct, frozen=True):
    """Why a file is not an answer to this session, and what to do; no remedy means: accept it."""

    reason: str
    remedy: str


# No model's answer has so many; each would be shown and need approval.
_FOREIGN_LIMIT = 2_000

_FOREIGN = (
    "no command of PROTOCOL was in the answer; what it holds in another format was taken instead: write"
    " commands next time"
)
_CUT = (
    "the answer was cut short inside {}: copy the whole answer again, or send the request: it asks for the"
    " rest"
)
_WHOLE_AGAIN = (
    "the whole of the answer that had been cut short: what comes before the cut was done then"
)
_SAVE_AGAIN = "save the answer's text as a plain .txt file in the inbox"
_TOO_LARGE = _Objection("it is too large to be a reply", _SAVE_AGAIN)
_NO_TEXT = _Objection("it is no text", _SAVE_AGAIN)


class Correspondence(Struct, frozen=True):
    """How a conversation gets its answers."""

    mailbox: InboxLike
    recipients: RecipientsLike
    locale_codec: str
    accepts_formats: bool = False
    """Operations in other formats need no approval."""
    follows_answers: bool = False
    """The caller continues with the session that an answer is for."""


def _too_many(items: Sized) -> Problem:
    reason = f"The answer holds {len(items)} edits in another format: too many to be meant; send commands"
    return Problem("REPLY", reason, 1)


class Conversation:
    """One session: its turns, from one request to the next."""

    def __init__(
        self, requests: Requests, agent: Agent, surroundings: Surroundings, mail: Correspondence
    ) -> None:
        self.requests = requests
        self.log = requests.log
        self._means = surroundings
        self._mail = mail
        self._execution = Execution(self.log, agent, surroundings)

    @property
    def session(self) -> Session:
        """The session as its journal has it now."""
        return self.log.session

    @property
    def checkpointer(self) -> Checkpointer:
        """The session's checkpoints."""
        return self._means.checkpointer

    @property
    def follows_answers(self) -> bool:
        """Return whether the caller continues with the session that an answer is for."""
        return self._mail.follows_answers

    # --- turns ---------------------------------------------------------------------------------

    def recover(self) -> None:
        """Finish what a kill, an interrupt or an error left unfinished, up to the next request.

        Raises:
            WorkError: if the disk fails.
        """
        if self.session.phase is Phase.AWAITING_ANSWER:
            self._recover_taken()
        if self.session.phase in (Phase.EXECUTING, Phase.AWAITING_APPROVAL):
            self._means.show(
                Remark(f"going on with reply {self.session.sequence}, which was interrupted")
            )
            self._execution.settle()
            self._execute(self._read_again())
        self.write_due()

    def is_answer(self, text: str) -> bool:
        """Return whether a text says that it answers the waiting request, and asks for something."""
        found = self._read(text)
        header = found.header
        if found.has_outbox or header is None:
            return False
        awaited = (self.session.session_id, self.session.sequence)
        has_steps = any(isinstance(item, Step) for item in found.items)
        is_prose = found.is_bare and found.items[-1].tag == "REPLY"
        return has_steps and not is_prose and (header.session, header.sequence) == awaited

    def take(self, name: str, *, accept: bool = False) -> str:
        """Take a complete file from the inbox: execute it, or move it to `rejected/` with the reason.

        Return the id of the other session of this home that it is for, if it is; it then stays in place.
        Else "".

        Args:
            name: the file.
            accept: execute it even if it answers another request or was executed already.

        Raises:
            UsageError: if its session is unknown.
            WorkError: if the disk fails. The answer is then in the inbox or in processed/.
        """
        if not self._mail.mailbox.has(name):
            return ""
        data = self._mail.mailbox.read(name)
        if data is None:
            self._set_aside(name, _TOO_LARGE)
            return ""
        found = self._interpret(data)
        if found is None:
            self._set_aside(name, _NO_TEXT)
            return ""
        if not accept and (other := self._is_for_another(name, found, data)):
            return other
        objection = self._objection(found, data, accept=accept)
        if objection is not None:
            self._set_aside(name, objection)
            return ""
        taken = self._mail.mailbox.take(name, self.session.session_id, self.session.sequence)
        if self._mail.mailbox.read_taken(taken) != data:
            # It was still being written; nothing is in the journal, so it is simply not ready yet.
            self._mail.mailbox.put_back(taken, name)
            return ""
        self._begin(taken, data, found)
        self._execute(found)
        self.write_due()
        return ""

    def _is_for_another(self, name: str, found: Reply, data: bytes) -> str:
        """Return the id of the other session that an answer is for, and say so; else ""."""
        if found.is_joined:
            return ""
        header = found.header
        if header is None or header.session != self.session.session_id:
            read = encoding.decode_reply(data, self._mail.locale_codec)
            last = transcript.last_header(scanner.fold_line_ends(read.text)) if read else None
            if found.has_outbox and last is None:
                return ""
            header = last or header
        owner = self._mail.recipients.of(name, header, self.session)
        if owner == self.session.session_id:
            return ""
        how = "it stays in the inbox, and"
        goes_on = f"{how} `codingagent resume {owner}` takes it"
        if self._mail.follows_answers:
            goes_on = "going on with that session"
        self._means.show(Remark(f"{name} is for session {owner}: {goes_on}"))
        return owner

    def answer(self, name: str | None, answer: Answer) -> None:
        """Answer the pending question; `recover` then continues.

        Args:
            name: the operation's id, if the person named it.
            answer: theirs.

        Raises:
            UsageError: if nothing awaits approval, or something else does.
        """
        self._execution.answer(name, answer)

    def write_due(self) -> None:
        """Write the request that is due, if any, and checkpoint the turn before.

        The last turn has no request after it, so its changes are made durable here. Nothing is executed.

        Raises:
            WorkError: if the disk fails.
        """
        self.requests.write()
        if self.session.is_complete:
            self._means.sync()
        self._execution.checkpointer.catch_up()

    def prepare_ahead(self) -> bool:
        """Prepare the next turn while nobody waits; return False to be called again later."""
        return self._means.checkpointer.prepare()

    def _begin(self, taken: str, data: bytes, found: Reply | None) -> None:
        files = () if found is None else found.files
        sequence, at = self.session.sequence, self._means.now()
        self.log.record(AnswerTaken(sequence, taken, digest_of(data), at, files))

    def _recover_taken(self) -> None:
        """Continue with an answer that was moved and not journalled; its new name has its session."""
        name = self._mail.mailbox.find_taken(self.session.session_id, self.session.sequence)
        data = None if name is None else self._mail.mailbox.read_taken(name)
        if name is not None and data is not None:
            self._begin(name, data, self._interpret(data))

    def _interpret(self, data: bytes) -> Reply | None:
        """Parse an answer's bytes; None if they are not text."""
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
        """Parse an answer in the request's protocol; join it to the truncated one that it resumes."""
        session = self.session
        text, note = transcript.answer_in(
            scanner.fold_line_ends(text), session.session_id, session.sequence
        )
        return reply.with_note(self._read_answer(text), note)

    def _read_answer(self, text: str) -> Reply:
        """Parse a single answer, ignoring what the chat said before and after it."""
        cut = self.session.cut
        if cut and (whole := continuation.join(cut, text)) is not None:
            note = f"joined with the {whole.lines} lines that had arrived before"
            joined = self._with_others(reply.read(whole.text))
            return replace(reply.with_note(joined, note), is_joined=True)
        if cut and (whole := self._whole_again(text)) is not None:
            joined = self._with_others(reply.read(whole.text))
            return replace(reply.with_note(joined, _WHOLE_AGAIN), is_joined=True)
        found = reply.read(text)
        if cut and (half := continuation.second_half(cut, text)) is not None:
            return reply.without_what_follows(found, half, cut)
        if not found.is_bare or found.has_outbox:
            return self._with_others(found)
        is_json = self.session.protocol == "json"
        if "{" not in text and not is_json:
            return self._read_other_formats(text, found)
        # Imported late: it takes a third of a second, which tag blocks do not need.
        from codingagent.protocols.json import replies

        message = replies.read(text)
        if message is not None:
            return message
        return self._read_other_formats(text, found)

    def _whole_again(self, text: str) -> continuation.Joined | None:
        """Return an answer that had been truncated and is complete now; None if it is not that."""
        session = self.session
        header = transcript.last_header(text)
        said = None if header is None else header.sequence
        sequence = session.sequence - 1 if said is None else said
        name = self._mail.mailbox.find_taken(session.session_id, sequence)
        data = None if name is None else self._mail.mailbox.read_taken(name)
        read = None if data is None else encoding.decode_reply(data, self._mail.locale_codec)
        return None if read is None else continuation.whole_again(read.text, session.cut, text)

    def _with_others(self, found: Reply) -> Reply:
        """Add operations in other formats next to the commands."""
        # A turn that an older version began is parsed as that version did.
        taken = self.session.reply
        if not found.beside or found.has_outbox or (taken is not None and not taken.files):
            return found
        from codingagent.protocols.foreign import mixing, parser

        files = self._files()
        other = parser.read(found.beside, files)
        if not other.items:
            return replace(found, notes=(*found.notes, *other.notes))
        if len(other.items) > _FOREIGN_LIMIT:
            mixed = replace(found, items=(_too_many(other.items), *found.items))
        else:
            mixed = mixing.mixed(found, other, self._foreign())
        return replace(mixed, files=files or ("",))

    def _read_other_formats(self, text: str, found: Reply) -> Reply:
        """Parse formats that models write instead of commands; where there are none, it is words."""
        from codingagent.protocols.foreign import parser

        files = self._files()
        other = parser.read(text, files)
        said = (*found.notes, *other.notes, *other.asides)
        if not other.items:
            words = prose.items_of(text, files, is_json=self.session.protocol == "json")
            return replace(found, items=words, notes=said, files=files or ("",))
        if len(other.items) > _FOREIGN_LIMIT:
            return replace(found, items=(_too_many(other.items),))
        foreign = self._foreign()
        items = tuple(
            replace(item, foreign=foreign) if isinstance(item, Step) else item
            for item in other.items
        )
        return replace(found, items=items, notes=(*said, _FOREIGN), files=files or ("",))

    def _files(self) -> tuple[str, ...]:
        """Return the file names by which paths in other formats are resolved."""
        taken = self.session.reply
        if taken is None or not taken.files:
            listing = self._means.workspace.listing(self.session.touched)
            return tuple(file.path for file in listing.files)
        # As when it was taken: its effects since must not change the meaning of the rest.
        return taken.files

    def _foreign(self) -> Foreign:
        return "accepted" if self._mail.accepts_formats else "asked"

    def _objection(self, found: Reply, data: bytes, *, accept: bool) -> _Objection | None:
        """Return why an answer must not be executed, or None."""
        if found.has_outbox:
            return _Objection(
                "it holds a request, not an answer: a request's examples must not be executed",
                "save only the chat's answer in the inbox",
            )
        if accept:
            return None
        named = None if found.header is None else found.header.session
        if found.is_joined and named in (None, self.session.session_id):
            return None
        other = self._mail.recipients.session(named) if named else None
        if other is not None and other.session_id != self.session.session_id:
            state = "is complete" if other.is_complete else f"is at request {other.sequence}"
            return _Objection(
                f"it answers a request of session {named} that waits no more: that session {state}",
                f"`codingagent show {named}` tells what that session waits for",
            )
        reason = reply.objection(found.header, self.session, digest_of(data))
        return _Objection(reason, "") if reason else None

    def _set_aside(self, name: str, objection: _Objection) -> None:
        new = self._mail.mailbox.set_aside(name, objection.reason)
        self.log.record(AnswerSetAside(new, objection.reason, self._means.now()))
        path = self._mail.mailbox.rejected / new
        remedy = objection.remedy or (
            "to execute it all the same: codingagent resume"
            f" {self.session.session_id} --accept {shlex.quote(str(path))}"
        )
        self._means.show(ReplyRejected(name, str(path), objection.reason, remedy))

    # --- execution -----------------------------------------------------------------------------

    def _execute(self, found: Reply) -> None:
        """Execute all items of the answer that are not done yet, and end the turn."""
        taken = self.session.reply
        assert taken is not None, "a turn has a reply"
        self._means.workspace.check()
        operations = sum(isinstance(item, Step) for item in found.items)
        self._means.show(ReplyAccepted(taken.sequence, taken.name, operations))
        self._execution.perform(found.items, catches_up=True)
        self._execution.end(self.session.sequence, found.notes, self._left_of(found))
        self._conclude(taken)
        if found.cut:
            self._means.show(Remark(_CUT.format(continuation.name_of(found.cut))))

    def _left_of(self, found: Reply) -> str:
        """Return the truncated text that still waits for its rest: from this answer, or an earlier one."""
        old = self.session.cut
        is_done = found.is_joined or any(continuation.is_about(old, i.tag) for i in found.items)
        return found.cut or ("" if is_done else old)

    def _read_again(self) -> Reply:
        """Return the answer that a kill interrupted, from its file."""
        taken = self.session.reply
        assert taken is not None, "a turn has a reply"
        data = self._mail.mailbox.read_taken(taken.name)
        if data is None or digest_of(data) != taken.digest:
            reason = (
                f"The reply {taken.name} was changed or removed while it was executed; what is not"
                " among these results was not done: send it again"
            )
            # Items that are done keep their positions; the one after them reports the loss.
            lost = Problem("REPLY", reason, 1)
            items = (lost,) * (len(self.session.results) + 1)
            return Reply(items, None, has_outbox=False, notes=())
        found = self._interpret(data)
        if found is None or found.has_outbox:
            # Recovery after a kill takes an answer by name only; a power failure may have emptied it.
            reason = f"The reply {taken.name} can't be read: send it again"
            return Reply((Problem("REPLY", reason, 1),), None, has_outbox=False, notes=())
        return found

    def _conclude(self, taken: AnswerTaken) -> None:
        told = [results.result_of(event) for event in self.session.results]
        failed = [result for result in told if not result.success]
        self._means.show(
            TurnDone(
                taken.sequence,
                len(told) - len(failed),
                len(failed),
                self.session.changed,
                self.session.notes,
            )
        )
        self.requests.ask()
        if self.session.is_complete:
            last = self.session.results[-1]
            summary = last.summary if isinstance(last, Finished) else ""
            lines = tuple(f"{result.command_type}: {result.summary}" for result in failed)
            self._means.show(SessionDone(self.session.session_id, summary, lines))
