"""Takes turns back: the files that they changed are as they were before, by commands or by operations.

How it works. The workspace as it is now is kept first, so that an undo is a step like a turn is and can
be taken back itself. Then each file that the steps changed gets the content that it had before the first
of them that changed it. All of it is journalled, so that one that was killed is finished: what is
already as it should be is left as it is.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from codingagent.core import paths
from codingagent.core.changes import Change, Checkpoint, LeftOut, Restored
from codingagent.core.notices import Notice, Remark
from codingagent.core.session import Phase, Record, Session, Step, UndoBegan, UndoEnded
from codingagent.errors import UsageError

# A note to the model names so many files; the listing has all.
_NAMED = 20


class CheckpointsLike(Protocol):
    """Where the workspace as it was is kept."""

    def take(self) -> Checkpoint: ...
    def changes(self, old: str, new: str) -> tuple[Change, ...]: ...
    def restore(self, target: str, now: str, paths: Collection[str]) -> Restored: ...


class LedgerLike(Protocol):
    """A session's record and what it says."""

    @property
    def session(self) -> Session: ...
    def record(self, record: Record) -> None: ...


@dataclass(frozen=True, slots=True)
class Undo:
    """Takes back steps of one session; `steps` are all that its journal has."""

    ledger: LedgerLike
    checkpoints: CheckpointsLike
    steps: tuple[Step, ...]
    sync: Callable[[], None]
    """Makes all that was written durable: before anything is overwritten, what it was must be."""
    now: Callable[[], str]
    show: Callable[[Notice], None]

    def turns(self, count: int) -> None:
        """Takes back the last turns that changed something and are not taken back yet.

        Raises:
            UsageError: if there are not so many, or a turn is under way.
            WorkError: if a checkpoint can't be taken or read, or the disk does not let it.
        """
        chosen: list[int] = []
        for index in reversed(range(len(self.steps))):
            step = self.steps[index]
            if step.sequence and not step.undone and self._changes_of(step):
                chosen.append(index)
            if len(chosen) == count:
                break
        if len(chosen) < count:
            found = f"only {len(chosen)}" if chosen else "no turn"
            raise UsageError(f"{found} of this session can be taken back: see `codingagent log`")
        self._begin(tuple(sorted(chosen)))

    def redo(self) -> None:
        """Takes the last undo back.

        Raises:
            UsageError, WorkError: as `turns`.
        """
        undone = [
            index
            for index, step in enumerate(self.steps)
            if not step.undone and any(self.steps[other].sequence for other in step.undoes)
        ]
        if not undone:
            raise UsageError("there is no undo in this session that could be taken back")
        self._begin((undone[-1],))

    def finish(self) -> None:
        """Finishes what was begun.

        Raises:
            WorkError: if a checkpoint can't be read, or the disk does not let it.
        """
        began = self.ledger.session.undoing
        assert began is not None, "only what was begun is finished"
        settled: set[str] = set()
        restored: list[str] = []
        alone: list[LeftOut] = []
        for index in began.steps:
            step = self.steps[index]
            touched = {change.path for change in self._changes_of(step)} - settled
            settled |= touched
            done = self.checkpoints.restore(step.before, began.name, touched)
            restored += done.paths
            alone += done.left_alone
        after = self.checkpoints.take()
        for left in alone:
            self.show(Remark(f"left as it is: {paths.shown(left.path)}: {left.reason}"))
        note = self._words(began, _named(restored))
        if alone:
            note += f"; left as it is: {_named([left.path for left in alone])}"
        self.ledger.record(UndoEnded(after.id, (note,), self.now()))
        self.show(Remark(note))

    def _begin(self, chosen: tuple[int, ...]) -> None:
        if self.ledger.session.phase not in (Phase.AWAITING_REPLY, Phase.COMPLETE):
            session_id = self.ledger.session.session_id
            raise UsageError(
                f"a turn is under way: `codingagent resume {session_id}` ends it; then undo can begin"
            )
        present = self.checkpoints.take()
        self.ledger.record(UndoBegan(chosen, present.id, self.now()))
        self.sync()
        self.finish()

    def _changes_of(self, step: Step) -> tuple[Change, ...]:
        return self.checkpoints.changes(step.before, step.after)

    def _words(self, began: UndoBegan, restored: str) -> str:
        first = self.steps[began.steps[0]]
        if first.undoes:
            turns = _turns([self.steps[index].sequence for index in first.undoes])
            return f"the person brought {turns} back; now as after that: {restored}"
        turns = _turns([self.steps[index].sequence for index in began.steps])
        return f"the person took {turns} back; now as before that: {restored}"


def _turns(numbers: Sequence[int]) -> str:
    word = "turn" if len(numbers) == 1 else "turns"
    return f"{word} {', '.join(map(str, numbers))}"


def _named(names: Sequence[str]) -> str:
    if not names:
        return "no files"
    shown = ", ".join(paths.shown(name) for name in names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown
