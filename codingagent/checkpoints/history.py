"""Connect a session with its checkpoints: take them around turns, and undo turns."""

import contextlib
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

from codingagent.checkpoints.file_changes import Change, Checkpoint, LeftOut, Restored
from codingagent.checkpoints.layout import Archive, place_of
from codingagent.checkpoints.schedule import Keeper, Keeping
from codingagent.checkpoints.store import Checkpoints
from codingagent.checkpoints.undo import Undo
from codingagent.checkpoints.undo_history import UndoStep, steps
from codingagent.errors import UsageError, WorkError
from codingagent.model.journal_entries import OperationStarted
from codingagent.model.session_state import Session
from codingagent.model.ui_events import Notice, Remark
from codingagent.storage import atomic_write
from codingagent.storage.clock import now
from codingagent.storage.homes import Home
from codingagent.storage.session_log import SessionLog

# How much of a command's changes to protected files is compared for display.
_SHOWN_BYTES = 200_000

_TICK_NS = 10**7


def keeping(archive: Archive, folders: tuple[Path, ...], show: Callable[[Notice], None]) -> Keeping:
    """Return the functions with which a keeper takes checkpoints.

    Args:
        archive: the checkpoints.
        folders: folders to sync before a checkpoint is reported.
        show: receives notices of failures.
    """
    return Keeping(
        lambda ignored, held: _keep(
            archive, show, lambda kept: kept.take(with_ignored=ignored, held=held)
        ),
        lambda since, wanted: _keep(archive, show, lambda kept: kept.take_only(since, wanted)),
        lambda shown: _prepare(archive, shown),
        lambda old, new, changed: _uncovered(archive, old, new, changed),
        lambda old, new, since, own: _outside(archive, old, new, since, own),
        lambda old, new: _changes(archive, old, new),
        lambda old, new, names: _difference(archive, old, new, names),
        lambda target, known, names: _put_back(archive, target, known, names),
        lambda: atomic_write.sync(folders),
        now,
        show,
    )


def _keep(
    archive: Archive,
    show: Callable[[Notice], None],
    take: Callable[[Checkpoints], Checkpoint],
) -> Checkpoint | None:
    """Take a checkpoint; if that fails, the turn continues but can't be undone."""
    checkpoints = archive.opened()
    if checkpoints is None:
        return None
    try:
        found = take(checkpoints)
    except WorkError as fault:
        show(Remark(f"this turn can't be undone: {fault}"))
        return None
    if found.set_aside:
        show(Remark(f"earlier checkpoints were damaged and are kept in {found.set_aside}"))
    return found


def _prepare(archive: Archive, shown: str) -> bool:
    """Take a checkpoint ahead of time and compare it; failures are reported when it is needed."""
    checkpoints = archive.opened()
    if checkpoints is None:
        return True
    try:
        return checkpoints.prepare(shown)
    except WorkError:
        return True


def _uncovered(archive: Archive, old: str, new: str, changed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the changed paths that these two checkpoints can't undo."""
    checkpoints = archive.opened() if changed else None
    if checkpoints is None:
        return ()
    try:
        known = checkpoints.covers(old, new, changed)
    except WorkError:
        return ()
    return tuple(path for path in changed if path not in known)


def _changes(archive: Archive, old: str, new: str) -> tuple[Change, ...] | None:
    """Return the differences between two checkpoints; None if unknown."""
    checkpoints = archive.opened() if old and new else None
    if checkpoints is None:
        return None
    if old == new:
        return ()
    try:
        return checkpoints.changes(old, new)
    except WorkError:
        return None


def is_uncovered(archive: Archive, commit: str, path: str) -> bool:
    """Return whether a checkpoint does not cover a path, so that its current content would be lost.

    Without git nothing is covered, and that was said; without a checkpoint that git could have made,
    because the disk is full, say, nothing is either.
    """
    checkpoints = archive.opened()
    try:
        return checkpoints is not None and (not commit or checkpoints.leaves_out(commit, path))
    except WorkError:
        return True


def _outside(
    archive: Archive, old: str, new: str, since: str, own: Collection[str]
) -> tuple[LeftOut, ...]:
    """Return what neither of two checkpoints covers and what changed since a time."""
    checkpoints = archive.opened()
    if checkpoints is None:
        return ()
    # The system's clock for files may be one tick behind.
    since_ns = int(datetime.fromisoformat(since).timestamp() * 10**9) - _TICK_NS
    try:
        return checkpoints.changed_outside(old, new, since_ns, own)
    except WorkError:
        return ()


def _difference(archive: Archive, old: str, new: str, names: tuple[str, ...]) -> str:
    """Return a diff of content between two checkpoints; empty if unknown."""
    checkpoints = archive.opened()
    if checkpoints is None:
        return ""
    try:
        return checkpoints.diff(old, new, names, _SHOWN_BYTES)
    except WorkError:
        return ""


def _put_back(archive: Archive, target: str, known: str, names: tuple[str, ...]) -> Restored | None:
    """Restore files to one checkpoint where they are still as in another."""
    checkpoints = archive.opened()
    return None if checkpoints is None else checkpoints.restore(target, known, names)


def finish_undo(
    home: Home,
    log: SessionLog,
    archive: Archive,
    show: Callable[[Notice], None],
) -> None:
    """Finish an undo that a kill interrupted; without git, leave it pending."""
    checkpoints = archive.opened() if log.session.undoing is not None else None
    if checkpoints is not None:
        _undo(home, log, checkpoints, show).finish()


def _undo(
    home: Home,
    log: SessionLog,
    checkpoints: Checkpoints,
    show: Callable[[Notice], None],
    *,
    force: bool = False,
) -> Undo:
    session = log.session
    found = steps(home.records(session.session_id))
    folders = (Path(session.workspace), home.root)
    # Files that operations changed are undone even if git ignores them.
    held = frozenset(
        change.place
        for record in home.records(session.session_id)
        if isinstance(record, OperationStarted)
        for change in record.changes
    )
    sync = partial(atomic_write.sync, folders)
    return Undo(log, checkpoints, found, held, sync, now, show, force)


@contextlib.contextmanager
def history_of(home: Home, session: Session) -> Iterator[tuple[Checkpoints, tuple[UndoStep, ...]]]:
    """Yield a session's checkpoints, for reading, and the steps between them.

    Raises:
        UsageError: if git is missing, or the workspace is gone.
        WorkError: if the workspace can't be opened.
    """
    with contextlib.closing(Archive(place_of(home, session))) as archive:
        yield _opened(archive), steps(home.records(session.session_id))


def _opened(archive: Archive) -> Checkpoints:
    checkpoints = archive.opened()
    if checkpoints is None:
        raise UsageError(NO_GIT)
    return checkpoints


NO_GIT = "this needs git, which is not installed here; everything else works without it"


def take_back(
    home: Home,
    log: SessionLog,
    turns: int | None,
    show: Callable[[Notice], None],
    *,
    force: bool = False,
) -> None:
    """Undo the last turns of a session or run; with None, redo the last undo.

    With `force`, also undo what someone has changed since.

    Raises:
        UsageError: if git is missing, or there is nothing to undo.
        WorkError: if the disk fails.
    """
    with contextlib.closing(Archive(place_of(home, log.session))) as archive:
        checkpoints = _opened(archive)
        folders = (Path(log.session.workspace), home.root)
        Keeper(log, keeping(archive, folders, show)).catch_up()
        undo = _undo(home, log, checkpoints, show, force=force)
        if turns is None:
            undo.redo()
        else:
            undo.turns(turns)
