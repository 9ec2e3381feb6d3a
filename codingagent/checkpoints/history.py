"""What a journal says about changed files: the steps that can be undone, and what operations changed."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from codingagent.checkpoints.changes import Change, ChangeKind
from codingagent.model import journal_entries as entries
from codingagent.model.events import Refused
from codingagent.model.session_state import Session
from codingagent.prompt.file_list import shown_path

Expected = Mapping[str, frozenset[str | None]]
"""By path, the digests of what may be there; None: nothing."""


class UndoStep(Struct, frozen=True):
    """A turn, a part of one, or an undo, with the checkpoints before and after it.

    A turn that paused for approval has several parts: what the person did meanwhile is in none of
    them. `sequence` is 0 for an undo; `after` is empty if no checkpoint could be taken then.
    `uncovered` lists files that operations changed and no checkpoint covers. For an undo, `undoes`
    lists the undone steps, `kept` their files that it left because someone had changed them, and `failed`
    those that could not be restored. `undo` is the later undo that undid this step, if any.
    """

    sequence: int
    before: str
    after: str
    at: str
    left_out: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
    undoes: tuple[int, ...] = ()
    kept: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    undo: "UndoStep | None" = None


def _ends(found: list[UndoStep], record: entries.CheckpointTaken) -> bool:
    """Return whether a checkpoint ends the last step; a read-only turn has none before it."""
    last = found[-1] if found else None
    return last is not None and (last.after, last.sequence) == ("", record.sequence)


def steps(records: Iterable[entries.Record]) -> tuple[UndoStep, ...]:
    """Return all steps of a journal that can be undone, or were, in order."""
    found: list[UndoStep] = []
    began: entries.UndoBegan | None = None
    for record in records:
        match record:
            case entries.CheckpointTaken(before=True):
                # The earlier one has no checkpoint after it, but its beginning is known.
                found.append(UndoStep(record.sequence, record.name, "", record.at, record.left_out))
            case entries.CheckpointTaken() if _ends(found, record):
                left_out = tuple(dict.fromkeys((*found[-1].left_out, *record.left_out)))
                found[-1] = replace(
                    found[-1], after=record.name, left_out=left_out, uncovered=record.uncovered
                )
            case entries.UndoBegan():
                began = record
            case entries.UndoEnded() if began is not None:
                found.append(undo_step(began, record))
                began = None
            case _:
                pass
    return settled(found)


def undo_step(began: entries.UndoBegan, ended: entries.UndoEnded) -> UndoStep:
    """Return the step of an undo; one that restored nothing undoes nothing."""
    undoes = () if ended.is_void else began.steps
    return UndoStep(
        0, began.name, ended.name, ended.at, undoes=undoes, kept=ended.kept, failed=ended.failed
    )


def settled(found: Sequence[UndoStep]) -> tuple[UndoStep, ...]:
    """Return the steps with what later undos left of each; an undone undo no longer counts."""
    by: dict[int, UndoStep] = {}
    for index in reversed(range(len(found))):
        for earlier in () if index in by else found[index].undoes:
            by.setdefault(earlier, found[index])
    return tuple(replace(step, undo=by.get(index)) for index, step in enumerate(found))


def turns_undone(found: Iterable[UndoStep]) -> frozenset[int]:
    """Return the turns that are undone at least in part."""
    return frozenset(step.sequence for step in found if step.sequence and step.undo)


# --- what operations changed --------------------------------------------------------------------


def expected(starts: Iterable[entries.OperationStarted]) -> Expected | None:
    """Return the expected state of each changed path; None if a command may have changed more."""
    found: dict[str, frozenset[str | None]] = {}
    for start in starts:
        if start.event is None:
            return None
        # An operation that failed on the way left everything unchanged.
        for change in start.changes:
            found[change.place] = frozenset((change.before, change.after))
    return found


def altogether(
    earlier: Iterable[Change], starts: Iterable[entries.OperationStarted]
) -> tuple[str, ...]:
    """Describe the net changes of earlier changes followed by operations, all completed."""
    kinds: dict[str, ChangeKind] = {change.path: change.kind for change in earlier}
    first: dict[str, entries.ContentChange] = {}
    last: dict[str, entries.ContentChange] = {}
    for change in (each for start in starts for each in start.changes):
        first.setdefault(change.place, change)
        last[change.place] = change
    for path, change in last.items():
        kind = kinds.get(path)
        was = kind == "deleted" or (kind != "added" and first[path].before is not None)
        if change.after is None:
            kinds.pop(path, None)
            if was:
                kinds[path] = "deleted"
        elif not was:
            kinds[path] = "added"
        elif path in kinds or first[path].before != change.after:
            kinds[path] = "modified"
    return tuple(f"{kinds[path]}: {shown_path(path)}" for path in sorted(kinds))


def done(session: Session) -> tuple[entries.OperationStarted, ...]:
    """Return the operations since the checkpoint, except failed ones."""
    failed = {ended.index for ended in session.ends if isinstance(ended.event, Refused)}
    return tuple(start for start in session.checkpoints.starts if start.index not in failed)
