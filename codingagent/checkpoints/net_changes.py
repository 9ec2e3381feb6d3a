"""Derive from the journal how file operations changed the workspace."""

from collections.abc import Iterable, Mapping

from codingagent.checkpoints.file_changes import Change, ChangeKind
from codingagent.model.events import Refused
from codingagent.model.journal_entries import ContentChange, OperationStarted
from codingagent.model.session_state import Session
from codingagent.prompt.file_list import shown_path

Expected = Mapping[str, frozenset[str | None]]
"""By path, the digests of what may be there; None: nothing."""


def expected(starts: Iterable[OperationStarted]) -> Expected | None:
    """Return the expected state of each changed path; None if a command may have changed more."""
    found: dict[str, frozenset[str | None]] = {}
    for start in starts:
        if start.event is None:
            return None
        # An operation that failed on the way left everything unchanged.
        for change in start.changes:
            found[change.place] = frozenset((change.before, change.after))
    return found


def altogether(earlier: Iterable[Change], starts: Iterable[OperationStarted]) -> tuple[str, ...]:
    """Describe the net changes of earlier changes followed by operations.

    Args:
        earlier: the changes before these operations.
        starts: the operations, all completed.
    """
    kinds: dict[str, ChangeKind] = {change.path: change.kind for change in earlier}
    first: dict[str, ContentChange] = {}
    last: dict[str, ContentChange] = {}
    for change in (each for start in starts for each in start.changes):
        first.setdefault(change.place, change)
        last[change.place] = change
    for path, change in last.items():
        was = _was_there(kinds.get(path), first[path])
        if change.after is None:
            kinds.pop(path, None)
            if was:
                kinds[path] = "deleted"
        elif not was:
            kinds[path] = "added"
        elif path in kinds or first[path].before != change.after:
            kinds[path] = "modified"
    return tuple(f"{kinds[path]}: {shown_path(path)}" for path in sorted(kinds))


def done(session: Session) -> tuple[OperationStarted, ...]:
    """Return the operations since the checkpoint, except failed ones."""
    failed = {ended.index for ended in session.ends if isinstance(ended.event, Refused)}
    return tuple(start for start in session.checkpoints.starts if start.index not in failed)


def _was_there(kind: ChangeKind | None, first: ContentChange) -> bool:
    if kind in ("added", "deleted"):
        return kind == "deleted"
    return first.before is not None
