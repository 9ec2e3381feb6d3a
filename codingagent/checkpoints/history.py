"""What changed, as values: between checkpoints, in the steps that a journal tells, by operations."""

import stat
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model import journal_entries as entries
from codingagent.model import paths
from codingagent.model.plain_text import some

if TYPE_CHECKING:
    from codingagent.workspace.git_files import GitListing

ChangeKind = Literal["added", "deleted", "modified", "mode", "type", "left_out"]
IGNORED = "ignored"
UNSEEN = "ignored, and too large to be looked through for git repositories"
NO_CHECKPOINT = "one of the checkpoints did not cover it"
# How many files one line names.
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
    """The files at one moment; `id` finds them again."""

    id: str
    left_out: tuple[LeftOut, ...] = ()
    set_aside: str = ""
    """The new path of a damaged store with all earlier checkpoints, or empty."""
    listed: "GitListing | None" = None
    """What belonged to the workspace."""


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
    """How a path differs between two checkpoints; `left_out`: one of them did not cover it."""

    path: str
    kind: ChangeKind
    old: State | None
    new: State | None

    @property
    def is_void(self) -> bool:
        return self.kind != "left_out" and self.old == self.new

    def joined(self, later: "Change") -> "Change":
        """Return this change and a later one of the same path as one."""
        is_known = "left_out" not in (self.kind, later.kind)
        kind = kind_of(self.old, later.new) if is_known else "left_out"
        return Change(self.path, kind, self.old, later.new)


def kind_of(old: State | None, new: State | None) -> ChangeKind:
    if old is None or new is None:
        return "added" if old is None else "deleted"
    if old.is_link != new.is_link:
        return "type"
    return "modified" if old.blob != new.blob else "mode"


def is_of_git(path: str) -> bool:
    return ".git" in path.split("/")


def named(names: Sequence[str]) -> str:
    """Return the first names as one line, and how many more there are."""
    return some([*map(paths.shown, names)], NAMED) or "no files"


class HistoryStep(Struct, frozen=True):
    """A turn, a part of one, or an undo, with the checkpoints before and after it.

    A turn that paused for approval has several parts: what the person did meanwhile is in none of them.
    """

    sequence: int
    """0 for an undo."""
    before: str
    after: str
    """Empty if no checkpoint could be taken then."""
    left_out: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
    """Files that operations changed and no checkpoint covers."""
    undoes: tuple[int, ...] = ()
    kept: tuple[str, ...] = ()
    """Files of the undone steps that it left because someone had changed them."""
    failed: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Its only files: of an undo, or of a hook's changes; empty: all."""
    is_forced: bool = False
    """It undid what someone had changed, too."""
    undo: "HistoryStep | None" = None
    """The later undo that undid this step; several of some files each are told as one."""

    def its(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Return those of the changes between its checkpoints that are its own."""
        return tuple(each for each in changes if not self.files or each.path in self.files)

    def with_earlier(self, earlier: "HistoryStep") -> "HistoryStep":
        """Return this undo of a step and an earlier one of the same step as one."""
        if not self.files:
            return self if self.is_forced else replace(self, kept=(*earlier.kept, *self.kept))
        kept, failed = (
            tuple(path for path in old if path not in self.files) + new
            for old, new in ((earlier.kept, self.kept), (earlier.failed, self.failed))
        )
        files = (*earlier.files, *self.files) if earlier.files else ()
        return replace(self, kept=kept, failed=failed, files=files)


def steps(records: Iterable[entries.Record]) -> tuple[HistoryStep, ...]:
    """Return all steps of a journal that can be undone, or were, in order."""
    found: list[HistoryStep] = []
    began: entries.UndoBegan | None = None
    for record in records:
        # A read-only turn has no checkpoint before it.
        awaited = found[-1].sequence if found and not found[-1].after else None
        match record:
            case entries.CheckpointTaken(before=True):
                # The earlier one has no checkpoint after it, but its beginning is known.
                found.append(HistoryStep(record.sequence, record.name, "", record.left_out))
            case entries.CheckpointTaken() if record.sequence == awaited:
                left_out = tuple(dict.fromkeys((*found[-1].left_out, *record.left_out)))
                found[-1] = replace(
                    found[-1], after=record.name, left_out=left_out, uncovered=record.uncovered
                )
            case entries.HookChanged():
                part = HistoryStep(record.sequence, record.before, record.after, files=record.files)
                found.append(part)
            case entries.UndoBegan():
                began = record
            case entries.UndoEnded() if began is not None:
                undoes = () if record.is_void else began.steps
                left = record.kept, record.failed, began.files
                found.append(HistoryStep(0, began.name, record.name, (), (), undoes, *left, began.force))
                began = None
            case _:
                pass
    # What later undos left of each; an undone undo no longer counts.
    by: dict[int, HistoryStep] = {}
    for index in reversed(range(len(found))):
        for earlier in () if index in by else found[index].undoes:
            by[earlier] = by[earlier].with_earlier(found[index]) if earlier in by else found[index]
    return tuple(replace(step, undo=by.get(index)) for index, step in enumerate(found))
