"""Find the session that an answer is for: from its [REPLY …], else its file name, else the person.

If it is for none of this home, say why it can't be executed.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from codingagent.agent.answer_reader import ReadAnswer
from codingagent.errors import CodingAgentError, UsageError
from codingagent.model import documents
from codingagent.model.encoding import typed_text
from codingagent.model.session_state import Session
from codingagent.protocols.tags import reply, tag_blocks, transcript
from codingagent.protocols.tags.reply import Header
from codingagent.storage.homes import Home, all_sessions

Ask = Callable[[str, Sequence[Session]], str]
"""Return the id of the session that a file of the inbox answers, of those that wait."""


class Objection(Struct, frozen=True):
    """Why a file is not an answer to this session, and what to do; no remedy means: accept it."""

    reason: str
    remedy: str


class Recipients(Struct, frozen=True):
    """The sessions of one home. `ask` is None if the person named the current session."""

    home: Home
    ask: Ask | None = None

    def of(self, name: str, header: Header | None, at_work: Session) -> str:
        """Return the id of the session that an answer is for; the current one if nothing says otherwise.

        UsageError if several wait, the answer names none, and nobody can be asked.
        """
        named = None if header is None else header.session
        if named is not None:
            sequence = None if header is None else header.sequence
            return named if self._expects(named, sequence) else at_work.session_id
        # `paste` names a file after its session, and a person may save an answer under the request's name.
        by_name = self.home.mailbox.named(name)
        is_own = by_name is not None and by_name[0] == at_work.session_id
        if by_name is not None and (is_own or self._expects(*by_name)):
            return by_name[0]
        if self.ask is None or self.home.sessions.ids() == [at_work.session_id]:
            return at_work.session_id
        everyone = all_sessions(self.home, lambda _: None)
        waiting = [each for each in everyone if each.is_awaiting_answer]
        return at_work.session_id if len(waiting) < 2 else self.ask(name, waiting)

    def other(self, name: str, answer: ReadAnswer, at_work: Session) -> str:
        """Return the id of the session other than the current one that an answer is for; else ""."""
        header = answer.reply.header
        if answer.reply.is_joined:
            return ""
        if header is None or header.session != at_work.session_id:
            last = transcript.last_header(tag_blocks.fold_line_ends(answer.text))
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
        other = self._session(named) if named else None
        if other is not None and other.session_id != at_work.session_id:
            ended = "was closed" if other.is_closed else "is complete"
            state = ended if other.is_complete else f"is at request {other.sequence}"
            return Objection(
                f"it answers an earlier request of session {named}, which {state}",
                f"`codingagent show {named}` shows what that session waits for",
            )
        reason = reply.objection(found.header, at_work, answer.digest)
        return Objection(reason, "") if reason else None

    def _session(self, session_id: str) -> Session | None:
        """Return a session of this home; None if there is none with that id, or it can't be read."""
        try:
            return self.home.sessions.load(session_id)
        except CodingAgentError:
            return None

    def _expects(self, session_id: str, sequence: int | None) -> bool:
        """Return whether a session waits for an answer to this request, or has not reached it yet."""
        found = self._session(session_id)
        if found is None or found.is_complete:
            return False
        return sequence is None or sequence >= found.sequence


def header_of(text: str) -> Header | None:
    """Return the header of an answer, in either protocol."""
    header = transcript.last_header(tag_blocks.fold_line_ends(text))
    if header is None and "{" in text and reply.read(text).is_bare:
        # Imported late: it takes a third of a second.
        from codingagent.protocols.json import messages

        found = messages.read_reply(text)
        header = None if found is None else found.header
    return header


def refuse_request(home: Home, session: Session, text: str) -> None:
    """Refuse (UsageError) the request that waits: it was copied in place of its answer."""
    for path in home.mailbox.waiting_paths(session.session_id, session.sequence):
        if path.read_text("utf-8", "replace").strip() == text.strip():
            what = f"that is request {session.sequence} itself"
            raise UsageError(f"{what}: copy the chat's answer, then paste again")


def save_answer(home: Home, session: Session, ask: Ask | None, data: bytes) -> tuple[Path, str]:
    """Save an answer in the inbox; return its path, and the session that it is for.

    It is for this session unless it names another one that waits. If it names none and several wait, `ask`
    decides; without `ask`, the person named the session.
    """
    if (kind := documents.kind_of(data)) is not None:
        raise UsageError(f"that is {kind[0]}, not plain text: {kind[1]}")
    text = typed_text(data, "replace")
    if not text.strip():
        raise UsageError("there is nothing to paste: copy the chat's answer first")
    owner = Recipients(home, ask).of("the answer", header_of(text), session)
    session = home.sessions.load(owner)
    refuse_request(home, session, text)
    return home.mailbox.drop(data, session.session_id, session.sequence), owner
