"""What can be taken back of a session: its steps, each between two checkpoints of the workspace."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from codingagent.core.records import CheckpointTaken, Record, UndoBegan, UndoEnded


@dataclass(frozen=True, slots=True)
class Step:
    """A turn or a part of one, or an undo, with the checkpoints before and after it.

    A turn that paused for approval has several parts: what the person did meanwhile is in none of them.
    `sequence` is 0 for an undo; `after` is empty if no checkpoint could be taken then. `uncovered` are
    files that operations changed and no checkpoint holds. `undone` says that a later undo took it back,
    `undoes` which steps this one took back.
    """

    sequence: int
    before: str
    after: str
    at: str
    left_out: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
    undoes: tuple[int, ...] = ()
    undone: bool = False


def _ends(found: list[Step], record: CheckpointTaken) -> bool:
    """Tells whether a checkpoint is the one after the last step; a turn that only read has none before."""
    if not found or found[-1].after or found[-1].undoes:
        return False
    return found[-1].sequence == record.sequence


def steps(records: Iterable[Record]) -> tuple[Step, ...]:
    """Gives all steps of a journal that can be taken back, or were, in order."""
    found: list[Step] = []
    began: UndoBegan | None = None
    for record in records:
        match record:
            case CheckpointTaken(before=True):
                # Of one before it nothing came after: what it began with is known all the same.
                found.append(Step(record.sequence, record.name, "", record.at, record.left_out))
            case CheckpointTaken() if _ends(found, record):
                left_out = tuple(dict.fromkeys((*found[-1].left_out, *record.left_out)))
                found[-1] = replace(
                    found[-1], after=record.name, left_out=left_out, uncovered=record.uncovered
                )
            case UndoBegan():
                began = record
            case UndoEnded() if began is not None:
                for index in began.steps:
                    # Taking back an undo brings back what that had taken back.
                    for again in found[index].undoes:
                        found[again] = replace(found[again], undone=False)
                    found[index] = replace(found[index], undone=True)
                found.append(Step(0, began.name, record.name, record.at, undoes=began.steps))
                began = None
            case _:
                pass
    return tuple(found)
