"""Messages between processes of one home: what to do in a session, and the report on it."""

from typing import Literal, TypeVar

from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from codingagent.errors import OperationError, UsageError
from codingagent.model import paths
from codingagent.model.approval import Answer
from codingagent.model.observations import digest_of
from codingagent.model.plain_text import in_json
from codingagent.model.session_state import Session

What = Literal["say", "refresh", "answer", "revoke", "undo"]


class Errand(Struct, frozen=True):
    """Something to do in a session, for the process that works there.

    `text` and `attached` are the person's words and files; for a revocation, `text` lists what is
    revoked, one per line. `operation_id` and `answer` answer a pending approval, and `seen` is the
    digest of what was shown, so that the answer can't apply to a later question. `turns` are to be undone;
    None: the last undo is. With `force`, also files that have changed again since.
    """

    what: What
    session_id: str
    text: str = ""
    attached: tuple[str, ...] = ()
    operation_id: str = ""
    answer: Answer | None = None
    seen: str = ""
    turns: int | None = None
    force: bool = False
    sequence: int = 0
    """The request that the session had come to when this was typed; 0: whichever it has now."""

    def check_turn(self, session: Session) -> None:
        """Refuse (UsageError) what was typed about an earlier turn, when another would be undone."""
        if self.sequence not in (0, session.sequence):
            raise UsageError(
                f"session {session.session_id} has gone on from request {self.sequence} to"
                f" {session.sequence} since you typed this: nothing was done; see `codingagent show`"
            )


class Report(Struct, frozen=True):
    """The outcome of an errand: `fault` says why it was not done, if so; `exit_status` goes with it."""

    fault: str = ""
    exit_status: int = 0


def seen(shown: str) -> str:
    """Return the digest of what was shown for approval, as the journal keeps it."""
    return digest_of(shown.encode("utf-8", "replace"))


def encode(value: Errand | Report) -> bytes:
    """Return a value as JSON; no journal holds lone surrogates."""
    return in_json(value)


def decode_errand(data: bytes) -> Errand:
    """Return an errand that `encode` wrote; UsageError if it is not one."""
    errand = _decoded(data, Errand)
    try:
        attached = tuple(map(paths.workspace_path, errand.attached))
    except OperationError as fault:
        raise UsageError(fault.reason) from fault
    # Who answered, and how, is for the process that does the errand to say.
    said = errand.answer
    answer = Answer(said.decision, reason=said.reason) if said else None
    return replace(errand, attached=attached, answer=answer)


def decode_report(data: bytes) -> Report:
    """Return a report that `encode` wrote; UsageError if it is not one."""
    return _decoded(data, Report)


_T = TypeVar("_T")


def _decoded(data: bytes, kind: type[_T]) -> _T:
    try:
        return json.decode(data, type=kind)
    except (MsgspecError, ValueError, RecursionError) as fault:
        # Within one version the format never changes.
        raise UsageError(
            f"the codingagent in the other terminal is a different version (the message can't be read:"
            f" {fault}): stop it there, then try again"
        ) from fault
