"""Answers: parse one, whatever the chat made of it; find the session that it is for, and save it.

An answer is parsed in the protocol of its request, joined to a truncated one, else tried as other formats.
It is for the session in its [REPLY …], else in its file name, else for the one that the person chooses. If
it is for none of this home, it is said why it can't be executed.
"""

import contextlib
import locale
import re
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent import placeholders, spelling
from codingagent.agent.context import Context
from codingagent.errors import CodingAgentError, OperationError, UsageError
from codingagent.model import documents, encoding, operations, plain_text
from codingagent.model.observations import digest_of
from codingagent.model.session_state import Session
from codingagent.prompt import guide
from codingagent.protocols.tags import continuation, reply, scanner, transcript
from codingagent.protocols.tags.reply import ForeignConsent, Header, Problem, Reply, Step
from codingagent.storage.homes import Home, all_sessions, told_as
from codingagent.storage.mailbox import Mailbox

# No model's answer has so many; each would be shown and need approval.
_FOREIGN_LIMIT = 2_000

_FOREIGN = plain_text.Note(
    "the answer has no operations in the format of PROTOCOL; those in another format were applied",
    ": write operations next time",
)
NO_TEXT = Reply((), None, has_outbox=False, notes=())
_WHOLE_AGAIN = "the answer that was cut off, now complete: what comes before the cut was done then"


class ReadAnswer(Struct, frozen=True):
    """An answer's file: its digest, its text, and what that asks for."""

    digest: str
    text: str
    reply: Reply
    lacks_guide: bool = False
    """It shows that its chat does not keep the guide, or another one, though it should."""


class AnswerReader:
    """Parse the answers to one session."""

    def __init__(self, context: Context, mailbox: Mailbox) -> None:
        self._context = context
        self._mailbox = mailbox

    def read(self, data: bytes) -> ReadAnswer | None:
        """Parse an answer's bytes; return None if they are neither text nor files.

        UsageError if they are files that can't be taken, or a chat's export in JSON.
        """
        given, session = data, self._context.log.session
        if session.is_of_tools:
            from codingagent.protocols import calls  # chats need none of it

            if (call := calls.read(data)) is not None:
                items = placeholders.restored(self._context.secrecy.vault, call.items)
                return ReadAnswer(digest_of(data), "", replace(call, items=items))
        own, files, notes = list[Step | Problem](), tuple[str, ...](), list[str]()
        if documents.is_zip(data):
            from codingagent.agent import downloads  # late: most answers are text

            files = self.files()
            given, whole_files, notes = downloads.opened(data, files, Path(session.workspace).name)
            own = downloads.items_of(whole_files, files)
        decoded = _decoded(given)
        if decoded is None:
            return None
        text, note = decoded
        transcript.check_export(text)
        found = NO_TEXT if own and not text else reply.with_note(self.parse(text), note)
        if own and session.is_asking:
            found = reply.with_note(found, "files of a zip were left: this request only asks")
        elif own:
            items = (*own, *found.items)
            found = replace(found, items=items, is_bare=False, files=files or ("",))
        found = replace(found, notes=(*notes, *found.notes))
        said = None if found.header is None else found.header.sequence
        awaited = session.sequence
        if said is not None and said > awaited:
            note = f"the answer says sequence {said}; it was applied as the one to {awaited}"
            found = reply.with_note(found, note)
        restored = placeholders.restored(self._context.secrecy.vault, found.items)
        if note:
            restored = tuple(map(_doubted, restored))
        items = tuple(reply.with_joined_edits(restored, cache(self._file_of)))
        lacks = session.terms.guide == "installed" and not session.is_asking and not found.is_joined
        shown = re.search(rf"REPLY\b[^\n]*{guide.mark()}", text)
        lacks = shown is None if lacks and text else lacks and bool(session.lacks_guide)
        return ReadAnswer(digest_of(data), text, replace(found, items=items), lacks)

    def parse(self, text: str) -> Reply:
        """Parse a text that may be a whole conversation: its answer to the request that waits."""
        session = self._context.log.session
        text = scanner.fold_line_ends(text)
        text, note = transcript.answer_in(text, session.session_id, session.sequence)
        bare = text.strip()
        half = bare[: len(bare) // 2].strip()
        is_twice = "_FILE " in half and "RUN_COMMAND" in half and bare[len(bare) // 2 :].strip() == half
        text, twice = half if is_twice else text, "the answer was there twice, and was taken once" * is_twice
        return reply.with_note(reply.with_note(self._parse_one(text), note), twice)

    def _parse_one(self, text: str) -> Reply:
        """Parse a single answer, ignoring what the chat said before and after it."""
        session = self._context.log.session
        if session.is_asking:  # words to show, and what only reads; the rest is named
            found = reply.read(text)
            items = reply.answer_items(reply.words_of(text), found.items)
            is_open = found.header is not None and "[END" not in text.replace("\\", "")
            notes = (reply.CUT,) if is_open else ()
            return replace(found, items=items, notes=notes, is_bare=False, cut="", beside="")
        cut, note = session.cut, _WHOLE_AGAIN
        whole = continuation.join(cut, text) if cut else None
        if whole is not None:
            count = cut.count("\n")
            note = f"joined with the {count} lines that had arrived before"
        elif cut:
            # The answer that was cut off may have come once more, complete.
            header = transcript.last_header(text)
            said = None if header is None else header.sequence
            sequence = session.sequence - 1 if said is None else said
            name = self._mailbox.find_taken(session.session_id, sequence)
            data = None if name is None else self._mailbox.read_taken(name)
            read = None if data is None else _decoded(data)
            whole = None if read is None else continuation.whole_again(read[0], cut, text)
        if whole is not None:
            joined = self._with_beside(reply.read(whole))
            return replace(reply.with_note(joined, note), is_joined=True)
        found = reply.read_again(text)
        if cut and (half := continuation.second_half(cut, text)) is not None:
            return reply.without_what_follows(found, half, cut)
        if not found.is_bare or found.has_outbox:
            return self._with_beside(found)
        if "{" in text or session.terms.protocol == "json":
            # Imported late: it takes a third of a second, which tag blocks do not need.
            from codingagent.protocols.json import messages

            if (message := messages.read_reply(text)) is not None:
                return message
        return self._in_other_formats(text, found, is_beside=False)

    def _with_beside(self, found: Reply) -> Reply:
        """Add operations in other formats next to the commands."""
        # An answer that was taken without them has none after a kill either, whatever was made since.
        taken = self._context.log.session.taken
        if not found.beside or found.has_outbox or (taken is not None and not taken.files):
            return found
        return self._in_other_formats(found.beside, found, is_beside=True)

    def _in_other_formats(self, text: str, found: Reply, *, is_beside: bool) -> Reply:
        """Parse formats that models write beside or instead of commands; without any, the words count."""
        from codingagent.protocols.foreign import items, parser

        files = self.files()
        other = parser.read(text, files)
        consent: ForeignConsent = "accepted" if self._context.person.accepts_formats else "asked"
        said = (*found.notes, *other.notes, *(() if is_beside else other.asides))
        if is_beside and not other.items:
            return replace(found, notes=said)
        if (count := len(other.items)) > _FOREIGN_LIMIT:
            fact = f"The answer holds {count} edits in another format: too many to be intended"
            many = Problem(operations.Kind.ANSWER, fact, 1, advice="; send operations")
            mixed = replace(found, items=(many, *(found.items if is_beside else ())))
        elif is_beside:
            mixed = items.mixed(found, other, consent)
        elif other.items:
            made = (replace(i, foreign=consent) if isinstance(i, Step) else i for i in other.items)
            mixed = replace(found, items=tuple(made), notes=(*said, _FOREIGN))
        else:
            is_json = self._context.log.session.terms.protocol == "json"
            mixed = replace(found, items=reply.items_of_words(text, is_json=is_json), notes=said)
        return replace(mixed, files=files or ("",))

    def _file_of(self, path: str) -> str:
        """Return what all names of a file have in common, those of links and of other spellings too."""
        with contextlib.suppress(OperationError):
            return self._context.workspace.resolved(spelling.Spellings(self._context.workspace).of(path)[0])
        return path

    def files(self) -> tuple[str, ...]:
        """Return the file names by which paths in other formats are resolved."""
        session = self._context.log.session
        if session.taken is None or not session.taken.files:
            listing = self._context.workspace.listing(session.touched)
            return tuple(listing.files)
        # As when it was taken: its effects since must not change the meaning of the rest.
        return session.taken.files


def _doubted(item: Step | Problem) -> Step | Problem:
    """Return an item of an answer whose encoding is a guess, with a note if a file gets letters by it."""
    operation = item.operation if isinstance(item, Step) else None
    if not isinstance(operation, operations.FileOperation) or operations.text_of(operation).isascii():
        return item
    return replace(item, notes=(*item.notes, f"its letters beyond ASCII are a guess, {plain_text.DOUBT}"))


def objection(data: bytes, session: Session) -> str:
    """Return why an answer's bytes are not this session's next one, or nothing."""
    text = "" if documents.is_zip(data) else encoding.typed_text(data, "replace")
    header = transcript.last_header(scanner.fold_line_ends(text))
    return reply.objection(header, session, digest_of(data))


def _decoded(data: bytes) -> tuple[str, str] | None:
    return encoding.decode_reply(data, locale.getpreferredencoding(do_setlocale=False))


class Objection(Struct, frozen=True):
    """Why a file is not an answer to this session, and what to do about it; no `remedy`: offer `--accept`."""

    reason: str
    remedy: str


class Recipients(Struct, frozen=True):
    """The sessions of one home; `is_named` if the person named the current session."""

    home: Home
    is_named: bool = True

    def of(self, name: str, header: Header | None, at_work: Session) -> str:
        """Return the id of the session that an answer is for; the current one if nothing says otherwise.

        UsageError if it names none, several wait, and the person named none either.
        """
        named = None if header is None else header.session
        if named is not None:
            sequence = None if header is None else header.sequence
            return named if self._expects(named, sequence, at_work) else at_work.session_id
        # `paste` names a file after its session, and a person may save an answer under the request's name.
        by_name = self.home.mailbox.named(name)
        is_own = by_name is not None and by_name[0] == at_work.session_id
        if by_name is not None and (is_own or self._expects(*by_name, at_work)):
            return by_name[0]
        if self.is_named or self.home.sessions.ids() == [at_work.session_id]:
            return at_work.session_id
        waiting = [s for s in all_sessions(self.home, lambda _: None) if s.is_awaiting_answer]
        if len(waiting) > 1:
            raise unclear(name, waiting)
        return at_work.session_id

    def other(self, name: str, answer: ReadAnswer, at_work: Session) -> str:
        """Return the id of the session other than the current one that an answer is for; else ""."""
        header = answer.reply.header
        if answer.reply.is_joined:
            return ""
        if header is None or header.session != at_work.session_id:
            last = transcript.last_header(scanner.fold_line_ends(answer.text))
            if answer.reply.has_outbox and last is None:
                return ""
            header = last or header
        owner = self.of(name, header, at_work)
        return "" if owner == at_work.session_id else owner

    def objection(self, answer: ReadAnswer, at_work: Session, *, accept: bool) -> Objection | None:
        """Return why the current session must not execute an answer, or None."""
        found = answer.reply
        if found.has_outbox:
            return Objection("it is a request, not an answer", "save only what the chat answered")
        named = None if found.header is None else found.header.session
        if accept or (found.is_joined and named in (None, at_work.session_id)):
            return None
        other = self._known(named, at_work) if named else None
        if other is not None and other.session_id != at_work.session_id:
            ended = "was closed" if other.is_closed else "is complete"
            state = ended if other.is_complete else f"is at request {other.sequence}"
            return Objection(
                f"it answers an earlier request of session {named}, which {state}",
                f"`codingagent show {named}` shows what that session waits for",
            )
        reason = reply.objection(found.header, at_work, answer.digest)
        return Objection(reason, "") if reason else None

    def _known(self, session_id: str, at_work: Session) -> Session | None:
        """Return a session of this home; None if there is none with that id, or it can't be read."""
        if session_id == at_work.session_id:
            return at_work  # its journal grows: replaying it for each answer would cost more and more
        with contextlib.suppress(CodingAgentError):
            return self.home.sessions.load(session_id)
        return None

    def _expects(self, session_id: str, sequence: int | None, at_work: Session) -> bool:
        """Return whether a session waits for an answer to this request, or has not reached it yet."""
        found = self._known(session_id, at_work)
        if found is None or found.is_complete:
            return False
        return sequence is None or sequence >= found.sequence


def unclear(name: str, waiting: list[Session]) -> UsageError:
    fact = f"{name} doesn't say which session it answers, and {len(waiting)} wait for one"
    names = ", ".join(map(told_as, waiting))
    return UsageError(f"{fact}; run `codingagent resume` with one of: {names}")


def refuse_request(home: Home, session: Session, text: str) -> None:
    """Refuse (UsageError) the request that waits: it was copied in place of its answer."""
    for path in home.mailbox.waiting_paths(session.session_id, session.sequence):
        if path.read_text("utf-8", "replace").strip() == text.strip():
            what = f"that is request {session.sequence} itself"
            raise UsageError(f"{what}: copy the chat's answer, then paste again")


def save_answer(home: Home, session: Session, data: bytes, *, is_named: bool = True) -> tuple[Path, str]:
    """Save an answer in the inbox; return its path, and the session that it is for, as `Recipients.of`."""
    if (kind := documents.kind_of(data)) is not None:
        raise UsageError(f"that is {kind[0]}, not plain text: {kind[1]}")
    text = ""
    if not documents.is_zip(data):
        text = encoding.typed_text(data, "replace")
        transcript.check_export(text)
        if not text.strip():
            raise UsageError("there is nothing to paste: copy the chat's answer first")
    header = transcript.last_header(scanner.fold_line_ends(text))
    if header is None and "{" in text and reply.read(text).is_bare:
        # Imported late: it takes a third of a second.
        from codingagent.protocols.json import messages

        found = messages.read_reply(text)
        header = None if found is None else found.header
    owner = Recipients(home, is_named).of("the answer", header, session)
    session = home.sessions.load(owner)
    refuse_request(home, session, text)
    return home.mailbox.drop(data, session.session_id, session.sequence), owner
