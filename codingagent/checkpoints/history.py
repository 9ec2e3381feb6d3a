"""What changed, as values: between checkpoints, in the steps that a journal tells, by operations."""

import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model import journal_entries as entries
from codingagent.model import paths
from codingagent.model.events import Refused
from codingagent.model.session_state import Session
from codingagent.prompt.file_list import shown_path

if TYPE_CHECKING:
    from codingagent.workspace.git_files import Belonging

ChangeKind = Literal["added", "deleted", "modified", "mode", "type", "left_out"]

IGNORED = "ignored"
UNSEEN = "ignored, and too large to be looked through for git repositories"

NO_CHECKPOINT = "one of the checkpoints did not cover it"

# How many files one line names; the file list has all.
NAMED = 20


class LeftOut(Struct, frozen=True, array_like=True):
    """A path that was not covered or not restored, and why; a folder's path ends with /."""

    path: str
    reason: str

    @property
    def is_ignored(self) -> bool:
        return self.reason in (IGNORED, UNSEEN)

    @property
    def told(self) -> str:
        return f"left as it is: {paths.shown(self.path)}: {self.reason}"


class Checkpoint(Struct, frozen=True):
    """The files at one moment; `id` finds them again.

    `left_out` lists paths that are not covered. `set_aside` is the new path of a damaged store, or empty;
    earlier checkpoints are in there. `missed` lists paths that had changed again before they were read.
    `listed` is what belonged to the workspace, if all of it was asked for.
    """

    id: str
    left_out: tuple[LeftOut, ...] = ()
    set_aside: str = ""
    missed: tuple[str, ...] = ()
    listed: "Belonging | None" = None


class State(Struct, frozen=True, array_like=True):
    """One file or link: git's id of its content, and its type and permissions as in `st_mode`."""

    blob: str
    mode: int

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def git_mode(self) -> int:
        return stat.S_IFLNK if self.is_link else 0o100755 if self.mode & 0o100 else 0o100644


class Change(Struct, frozen=True):
    """How a path differs between two checkpoints; None means that nothing is there.

    The kind is `left_out` if one of the two did not cover the path, so the change is unknown.
    """

    path: str
    kind: ChangeKind
    old: State | None
    new: State | None


class Restored(Struct, frozen=True):
    """The paths restored (including those already correct), and those left alone with the reason."""

    paths: tuple[str, ...]
    left_alone: tuple[LeftOut, ...]


def kind_of(old: State | None, new: State | None) -> ChangeKind:
    if old is None or new is None:
        return "added" if old is None else "deleted"
    if old.is_link != new.is_link:
        return "type"
    return "modified" if old.blob != new.blob else "mode"


def named(names: Sequence[str]) -> str:
    """Return the first names as one line, and how many more there are."""
    shown = ", ".join(map(paths.shown, names[:NAMED])) or "no files"
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown


# --- the steps of a journal ---------------------------------------------------------------------

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
    left_out: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
    undoes: tuple[int, ...] = ()
    kept: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    undo: "UndoStep | None" = None


def steps(records: Iterable[entries.Record]) -> tuple[UndoStep, ...]:
    """Return all steps of a journal that can be undone, or were, in order."""
    found: list[UndoStep] = []
    began: entries.UndoBegan | None = None
    for record in records:
        # A read-only turn has no checkpoint before it.
        awaited = found[-1].sequence if found and not found[-1].after else None
        match record:
            case entries.CheckpointTaken(before=True):
                # The earlier one has no checkpoint after it, but its beginning is known.
                found.append(UndoStep(record.sequence, record.name, "", record.left_out))
            case entries.CheckpointTaken() if record.sequence == awaited:
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
    return UndoStep(0, began.name, ended.name, undoes=undoes, kept=ended.kept, failed=ended.failed)


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
    kinds: dict[str, str] = {change.path: change.kind for change in earlier}
    for path, (before, after) in net(starts).items():
        kind = kinds.get(path)
        if kind == "deleted" or (kind != "added" and before is not None):
            is_same = not kind and before == after
            kinds[path] = "deleted" if after is None else "" if is_same else "modified"
        else:
            kinds[path] = "" if after is None else "added"
    return tuple(f"{kind}: {shown_path(path)}" for path, kind in sorted(kinds.items()) if kind)


def net(starts: Iterable[entries.OperationStarted]) -> Mapping[str, tuple[str | None, str | None]]:
    """Return by path the digests of what operations found first and left last; None: nothing."""
    found: dict[str, tuple[str | None, str | None]] = {}
    for change in (each for start in starts for each in start.changes):
        first, _ = found.get(change.place, (change.before, None))
        found[change.place] = first, change.after
    return found


def done(session: Session) -> tuple[entries.OperationStarted, ...]:
    """Return the operations since the checkpoint, except failed ones."""
    failed = {ended.index for ended in session.ends if isinstance(ended.event, Refused)}
    return tuple(start for start in session.checkpoints.starts if start.index not in failed)
