"""The session file for other programs (specification 003, session state)."""

from codingagent.model.events import FileRequested
from codingagent.model.results import result_of
from codingagent.model.session_state import Session


def document(session: Session) -> dict[str, object]:
    """Return the session as the content of `sessions/{id}.json`."""
    results = [result_of(event) for event in session.results]
    requested = [path for e in session.results if isinstance(e, FileRequested) for path in e.paths]
    return {
        "sessionId": session.session_id,
        "task": session.task,
        "sequenceNumber": session.sequence,
        "isComplete": session.is_complete,
        "createdAt": session.created_at,
        "updatedAt": session.updated_at,
        "lastResults": [
            {
                "commandType": result.kind,
                "summary": result.summary,
                "success": result.success,
                "output": "\n".join((result.output, *result.notes)).strip("\n"),
            }
            for result in results
        ],
        "readFileRequests": list(dict.fromkeys(requested)),
        "workspace": session.workspace,
    }
