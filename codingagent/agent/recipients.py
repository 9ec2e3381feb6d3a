"""Find the session that an answer is for: from its [REPLY …], else its file name, else the person."""

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from codingagent.errors import CodingAgentError
from codingagent.model.session_state import Session
from codingagent.protocols.tags import reply, scanner, transcript
from codingagent.protocols.tags.reply import Header
from codingagent.storage.homes import Home, all_sessions

Ask = Callable[[str, Sequence[Session]], str]
"""Return the id of the session that a file of the inbox answers, of those that wait."""


class Recipients(Struct):
    """The sessions of one home. `ask` is None if the person named the current session."""

    home: Home
    ask: Ask | None = None
    _chosen: dict[str, str] = field(default_factory=dict)
    """The other session that the person chose for a file, until that one has taken it."""

    def of(self, name: str, header: Header | None, at_work: Session) -> str:
        """Return the id of the session that an answer is for; the current one if nothing says otherwise.

        Args:
            name: the answer's file in the inbox.
            header: its [REPLY …] header.
            at_work: the current session, which waits.

        Raises:
            UsageError: if several wait, the answer names none, and nobody can be asked.
        """
        named = None if header is None else header.session
        if named is not None:
            sequence = None if header is None else header.sequence
            return named if self._expects(named, sequence) else at_work.session_id
        # `paste` names a file after its session, and a person may save an answer under the request's
        # name.
        by_name = self.home.mailbox.named(name)
        if by_name is not None and by_name[0] == at_work.session_id:
            return by_name[0]
        if by_name is not None and self._expects(*by_name):
            return by_name[0]
        if self.ask is None:
            return at_work.session_id
        if self._chosen.pop(name, "") == at_work.session_id:
            return at_work.session_id
        waiting = waiting_sessions(self.home)
        chosen = at_work.session_id if len(waiting) < 2 else self.ask(name, waiting)
        if chosen != at_work.session_id:
            self._chosen[name] = chosen
        return chosen

    def session(self, session_id: str) -> Session | None:
        """Return a session of this home; None if there is none with that id, or it can't be read."""
        try:
            return self.home.sessions.load(session_id)
        except CodingAgentError:
            return None

    def _expects(self, session_id: str, sequence: int | None) -> bool:
        """Return whether a session waits for an answer to this request, or has not reached it yet."""
        found = self.session(session_id)
        if found is None or found.is_complete:
            return False
        return sequence is None or sequence >= found.sequence


def header_of(text: str) -> Header | None:
    """Return the header of an answer, in either protocol."""
    header = transcript.last_header(scanner.fold_line_ends(text))
    if header is None and "{" in text and reply.read(text).is_bare:
        # Imported late: it takes a third of a second.
        from codingagent.protocols.json import replies

        found = replies.read(text)
        header = None if found is None else found.header
    return header


def waiting_sessions(home: Home) -> list[Session]:
    """Return the sessions of a home whose requests wait for answers, the latest first."""
    return [each for each in all_sessions(home, lambda _: None) if each.is_awaiting_answer]
