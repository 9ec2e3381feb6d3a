"""Parse an answer in the protocol of its request; join it to a truncated one; else try other formats."""

import contextlib
import locale
from collections.abc import Sized

from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent import put_back
from codingagent.agent.context import Context
from codingagent.errors import OperationError
from codingagent.model import chat_damage, encoding
from codingagent.model.observations import digest_of
from codingagent.model.operations import CreateFile, Kind
from codingagent.model.plain_text import Note
from codingagent.protocols.tags import continuation, prose, reply, tag_blocks, transcript
from codingagent.protocols.tags.reply import Foreign, Problem, Reply, Step
from codingagent.storage.mailbox import Mailbox

# No model's answer has so many; each would be shown and need approval.
_FOREIGN_LIMIT = 2_000

_FOREIGN = Note(
    "the answer has no operations in the format of PROTOCOL; those in another format were applied",
    ": write operations next time",
)
_WHOLE_AGAIN = "the answer that was cut off, now complete: what comes before the cut was done then"


class ReadAnswer(Struct, frozen=True):
    """An answer's file: its digest, its text, and what that asks for."""

    digest: str
    text: str
    reply: Reply


class AnswerReader:
    """Parse the answers to one session."""

    def __init__(self, context: Context, mailbox: Mailbox) -> None:
        self._context = context
        self._mailbox = mailbox

    def read(self, data: bytes) -> ReadAnswer | None:
        """Parse an answer's bytes; return None if they are not text."""
        decoded = _decoded(data)
        if decoded is None:
            return None
        found = reply.with_note(self.parse(decoded.text), decoded.note)
        said = None if found.header is None else found.header.sequence
        awaited = self._context.log.session.sequence
        if said is not None and said > awaited:
            note = f"the answer says sequence {said}; it was applied as the one to {awaited}"
            found = reply.with_note(found, note)
        restored = put_back.restored(self._context.secrecy.vault, found.items)
        items = tuple(reply.with_joined_edits(restored))
        return ReadAnswer(digest_of(data), decoded.text, replace(found, items=items))

    def parse(self, text: str) -> Reply:
        """Parse a text that may be a whole conversation: its answer to the request that waits."""
        session = self._context.log.session
        # Before all else: no other format is known with such marks before its lines.
        text = chat_damage.without_direction_margin(tag_blocks.fold_line_ends(text))
        text, note = transcript.answer_in(text, session.session_id, session.sequence)
        return reply.with_note(self._parse_one(text), note)

    def _parse_one(self, text: str) -> Reply:
        """Parse a single answer, ignoring what the chat said before and after it."""
        session = self._context.log.session
        if session.is_asking:
            return self._parse_words(text)
        cut = session.cut
        if cut and (whole := continuation.join(cut, text)) is not None:
            note = f"joined with the {whole.lines} lines that had arrived before"
            return self._parse_joined(whole, note)
        if cut and (whole := self._whole_again(text)) is not None:
            return self._parse_joined(whole, _WHOLE_AGAIN)
        found = reply.read(text)
        if cut and (half := continuation.second_half(cut, text)) is not None:
            return reply.without_what_follows(found, half, cut)
        if not found.is_bare or found.has_outbox:
            return self._with_others(found)
        if "{" in text or session.protocol == "json":
            # Imported late: it takes a third of a second, which tag blocks do not need.
            from codingagent.protocols.json import messages

            if (message := messages.read_reply(text)) is not None:
                return message
        return self._parse_other_formats(text, found)

    def _parse_words(self, text: str) -> Reply:
        """Parse the answer to a question: words to show, and what only reads; the rest is named."""
        found = reply.read(text)
        items = prose.answer_items(prose.words_of(text), found.items)
        is_open = found.header is not None and "[END" not in text.replace("\\", "")
        notes = (reply.CUT,) if is_open else ()
        return replace(found, items=items, notes=notes, is_bare=False, cut="", beside="")

    def _parse_joined(self, whole: continuation.Joined, note: str) -> Reply:
        joined = self._with_others(reply.read(whole.text))
        return replace(reply.with_note(joined, note), is_joined=True)

    def _whole_again(self, text: str) -> continuation.Joined | None:
        """Return an answer that had been truncated and is complete now; None if it is not that."""
        session = self._context.log.session
        header = transcript.last_header(text)
        said = None if header is None else header.sequence
        sequence = session.sequence - 1 if said is None else said
        name = self._mailbox.find_taken(session.session_id, sequence)
        data = None if name is None else self._mailbox.read_taken(name)
        read = None if data is None else _decoded(data)
        return None if read is None else continuation.whole_again(read.text, session.cut, text)

    def _with_others(self, found: Reply) -> Reply:
        """Add operations in other formats next to the commands."""
        # A turn that an older version began is parsed as that version did.
        taken = self._context.log.session.reply
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
            mixed = mixing.mixed(found, other, self._foreign)
        return replace(mixed, files=files or ("",))

    def _parse_other_formats(self, text: str, found: Reply) -> Reply:
        """Parse formats that models write instead of commands; without any, return the model's words."""
        from codingagent.protocols.foreign import parser

        files = self._files()
        other = parser.read(text, files)
        said = (*found.notes, *other.notes, *other.asides)
        if not other.items:
            is_json = self._context.log.session.protocol == "json"
            words = prose.items_of(text, files, is_json=is_json)
            if (new := self._only_file(text)) is not None:
                step = Step(new, 1, foreign=self._foreign)
                words, said = (words[0], step), (*said, _FOREIGN)
            return replace(found, items=words, notes=said, files=files or ("",))
        if len(other.items) > _FOREIGN_LIMIT:
            return replace(found, items=(_too_many(other.items),))
        items = tuple(
            replace(item, foreign=self._foreign) if isinstance(item, Step) else item
            for item in other.items
        )
        return replace(found, items=items, notes=(*said, _FOREIGN), files=files or ("",))

    @property
    def _foreign(self) -> Foreign:
        return "accepted" if self._context.person.accepts_formats else "asked"

    def _only_file(self, text: str) -> CreateFile | None:
        """Return the new text of the only file that the person attached, if that is all an answer has."""
        attached = {path for said in self._context.log.session.said for path in said.attached}
        if len(attached) != 1:
            return None
        with contextlib.suppress(OperationError):
            (path,) = attached
            workspace = self._context.workspace
            old = workspace.text(path, workspace.read(path).data)
            return None if old is None else prose.whole_file(text, path, old.text)
        return None

    def _files(self) -> tuple[str, ...]:
        """Return the file names by which paths in other formats are resolved."""
        session = self._context.log.session
        if session.reply is None or not session.reply.files:
            listing = self._context.workspace.listing(session.touched)
            return tuple(listing.files)
        # As when it was taken: its effects since must not change the meaning of the rest.
        return session.reply.files


def _decoded(data: bytes) -> encoding.ReplyText | None:
    return encoding.decode_reply(data, locale.getpreferredencoding(do_setlocale=False))


def _too_many(items: Sized) -> Problem:
    fact = f"The answer holds {len(items)} edits in another format: too many to be intended"
    return Problem(Kind.ANSWER, fact, 1, advice="; send operations")
