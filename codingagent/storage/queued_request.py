"""Messages between processes of one home: what to do in a session, and the report on it."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Literal, get_args

from codingagent.errors import OperationError, UsageError
from codingagent.model import paths
from codingagent.model.approval import Answer, Decision
from codingagent.model.observations import digest_of
from codingagent.model.plain_text import without_halves

What = Literal["say", "refresh", "answer", "revoke"]


@dataclass(frozen=True, slots=True)
class Errand:
    """Something to do in a session, for the process that works there.

    `text` and `attached` are the person's words and files; for a revocation, `text` lists what is
    revoked, one per line. `operation_id` and `answer` answer a pending approval, and `seen` is the
    digest of what was shown, so that the answer can't apply to a later question.
    """

    what: What
    session_id: str
    text: str = ""
    attached: tuple[str, ...] = ()
    operation_id: str = ""
    answer: Answer | None = None
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of an errand: `fault` says why it was not done, if so; `exit_status` goes with it."""

    fault: str = ""
    exit_status: int = 0


def seen(shown: str) -> str:
    """Return the digest of what was shown for approval, as the journal keeps it."""
    return digest_of(shown.encode("utf-8", "replace"))


def encode(value: Errand | Report) -> bytes:
    """Return a value as JSON."""
    return json.dumps(asdict(value)).encode()


def decode_errand(data: bytes) -> Errand:
    """Return an errand that `encode` wrote.

    Raises:
        UsageError: if it is not one.
    """
    found = _object(data, Errand)
    answer = found.pop("answer", None)
    if found.get("what") not in get_args(What):
        raise _misunderstood("it asks for nothing that is known here")
    attached = found.get("attached", [])
    if not isinstance(attached, list):
        raise _misunderstood("it is no errand")
    session_id, text, operation_id, seen = (
        _text(found.get(name, "")) for name in ("session_id", "text", "operation_id", "seen")
    )
    given = None if answer is None else _answer(answer)
    what: What = found["what"]  # type: ignore[assignment]  # it was looked up
    return Errand(what, session_id, text, tuple(map(_path, attached)), operation_id, given, seen)


def decode_report(data: bytes) -> Report:
    """Return a report that `encode` wrote.

    Raises:
        UsageError: if it is not one.
    """
    found = _object(data, Report)
    fault, status = found.get("fault"), found.get("exit_status")
    if not isinstance(fault, str) or not isinstance(status, int):
        raise _misunderstood("it is no report")
    return Report(fault, status)


def _misunderstood(why: str) -> UsageError:
    """Return the error for a message of another version; within one version the format never changes."""
    return UsageError(
        f"the codingagent in the other terminal is a different version ({why}): stop it there, then try again"
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _misunderstood("it is no errand")
    # No journal holds lone surrogates.
    return without_halves(value)


def _path(value: object) -> str:
    try:
        return paths.workspace_path(_text(value))
    except OperationError as fault:
        raise UsageError(fault.reason) from fault


def _answer(value: object) -> Answer:
    if not isinstance(value, dict) or value.get("decision") not in get_args(Decision):
        raise _misunderstood("it answers neither yes nor no")
    return Answer(value["decision"], reason=_text(value.get("reason", "")))


def _object(data: bytes, kind: type[Errand | Report]) -> dict[str, object]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as fault:
        raise _misunderstood(f"it can't be read: {fault}") from fault
    if not isinstance(found, dict):
        raise _misunderstood("it is no object")
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in found.items() if name in names}
