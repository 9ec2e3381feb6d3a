"""Which checkpoints of the workspace a session has: the part of its state that only they change."""

from typing import Never

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model.append_list import AppendList
from codingagent.model.journal_entries import CheckpointTaken, OperationStarted

_NONE: AppendList[Never] = AppendList()


class CheckpointState(Struct, frozen=True):
    """The checkpoints of a session, by name; empty: none. A pause for approval ends a part of a turn."""

    before: str = ""
    """The one before the part of a turn that has none after it yet."""
    turn: int = 0
    """That turn's number."""
    starts: AppendList[OperationStarted] = _NONE
    """Operations begun since it was taken."""
    began: str = ""
    """The one before the whole turn."""
    parts: tuple[tuple[str, str], ...] = ()
    """Those before and after each part of the turn."""
    latest: str = ""
    told: str = ""
    """The latest when the last request was written."""
    shown: str = ""
    """The same for the request before the one that is due or waits: later changes are news in it."""

    def with_start(self, start: OperationStarted) -> "CheckpointState":
        """Return the state once an operation has started."""
        return replace(self, starts=self.starts.with_one(start)) if self.before else self

    def with_request(self) -> "CheckpointState":
        """Return the state once a request is written."""
        return replace(self, told=self.latest)

    def with_answer(self) -> "CheckpointState":
        """Return the state once an answer is taken."""
        return replace(self, before="", starts=_NONE, began="", parts=())

    def with_turn_ended(self) -> "CheckpointState":
        """Return the state once all of an answer is done."""
        return replace(self, shown=self.told)

    def with_one(self, record: CheckpointTaken, *, is_told: bool) -> "CheckpointState":
        """Return the state with one more; `is_told` says that the request about its turn is already out."""
        name, begins = record.name, record.name if record.before else ""
        ends = self.before and not record.before
        return replace(
            self,
            before=begins,
            turn=record.sequence,
            starts=_NONE,
            began=self.began or begins,
            parts=(*self.parts, (self.before, name)) if ends else self.parts,
            latest=name,
            told=name if is_told else self.told or name,
        )
