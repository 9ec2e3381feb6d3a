"""Which version of each file the chat knows: its digest when the chat last saw or wrote it whole.

A request that shows a whole file makes it known, and so does an answer that writes one. An edit of a
known file makes the result known, unless someone else had changed the file in between. A change made
while one of our commands, checks or undos ran counts as ours. Every other difference is the person's.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from codingagent.model.events import Refused, file_changes
from codingagent.model.journal_entries import OperationStarted, RequestWritten
from codingagent.model.session_state import Session

# A kernel may set a modification time one tick before the clock; the record has milliseconds.
_TICK_NS = 20 * 10**6
_ROUNDED_NS = 10**6


def after_request(session: Session, record: RequestWritten) -> Mapping[str, str]:
    """Return what the chat knows once it has the request, including files that the person changed."""
    told = {e.subject: e.digest for e in session.results if isinstance(e, Refused) and e.digest}
    shown = {file.path: file.digest for file in record.shown}
    return {**session.known, **told, **shown} if told or shown else session.known


def after_changes(
    known: Mapping[str, str], written: Iterable[OperationStarted]
) -> Mapping[str, str]:
    """Return what the chat knows of files after its own changes, in their order."""
    found = dict(known)
    for start in written:
        made = () if start.event is None else file_changes((start.event,))
        kinds = {change.path: change.after for change in made}
        were = [found.get(change.path) for change in start.changes]
        for change in start.changes:
            kind = kinds.get(change.path)
            is_known = change.path in found and not start.is_unseen
            if kind == "moved" and change.after not in were:
                found.pop(change.path, None)
            elif kind != "part" or is_known:
                found[change.path] = change.after or ""
    return found


def digest_known(session: Session, path: str) -> str | None:
    """Return the digest of a file as the chat knows it whole; None if it never did before this turn."""
    if path not in session.known:
        return None
    for start in reversed(session.written):
        for change in () if start.is_unseen else start.changes:
            if change.path == path:
                return change.after or ""
    return session.known[path]


def is_ours(session: Session, modified_ns: int) -> bool:
    """Return whether a file with that modification time was written by what we ran, not by the person."""
    for begun, ended in reversed(session.spans):
        if _ns(ended) + _ROUNDED_NS < modified_ns:
            return False
        if _ns(begun) - _TICK_NS <= modified_ns:
            return True
    return False


def _ns(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1000) * 10**6
