"""The session file for other programs (specification 003, session state)."""

from codingagent.model.events import Event, FileRequested, succeeded
from codingagent.model.results import result_of
from codingagent.model.session_state import Session


def document(session: Session) -> dict[str, object]:
    """Return the session as the content of `sessions/{id}.json`."""
    requested = [path for e in session.results if isinstance(e, FileRequested) for path in e.paths]
    named = {"name": session.name} if session.name else {}
    return {
        "sessionId": session.session_id,
        **named,
        "task": session.task,
        "sequenceNumber": session.sequence,
        "isComplete": session.is_complete,
        "createdAt": session.created_at,
        "updatedAt": session.updated_at,
        "lastResults": [_result(event) for event in session.results],
        "readFileRequests": list(dict.fromkeys(requested)),
        "workspace": session.workspace,
    }


def _result(event: Event) -> dict[str, object]:
    kind, words, output = result_of(event)
    told = {"commandType": kind, "summary": words, "success": succeeded(event)}
    return {**told, "output": "\n".join((output, *event.notes)).strip("\n")}
