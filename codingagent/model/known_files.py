"""Which version of each file the chat knows: its digest when the chat last saw or wrote it whole.

A request that shows a whole file makes it known, and so does an answer that writes one. An edit of a
known file makes the result known, unless someone else had changed the file in between. A change made
while one of our commands, checks or undos ran counts as ours. Every other difference is the person's.
"""

from datetime import datetime

from codingagent.model.session_state import Session

# A kernel may set a modification time one tick before the clock; the record has milliseconds.
_TICK_NS = 20 * 10**6
_ROUNDED_NS = 10**6


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
