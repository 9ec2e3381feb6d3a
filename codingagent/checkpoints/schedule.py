"""When to checkpoint: around a turn that may change files, and at approval pauses.

If only operations changed files, the journal's start records say which. So the checkpoint after
such a turn need not delay the request: it covers just these paths, and only with the bytes that the
journal names, whenever it is taken. What the person changes meanwhile is not part of the turn. A
command may change anything, so its changes must be read before anyone can make others.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from codingagent.checkpoints import net_changes
from codingagent.checkpoints.file_changes import Change, Checkpoint, LeftOut, Restored
from codingagent.checkpoints.net_changes import Expected
from codingagent.model import paths
from codingagent.model.effects import PathChange, file_changes
from codingagent.model.events import Event
from codingagent.model.journal_entries import CheckpointTaken, Record
from codingagent.model.session_state import Phase, Session
from codingagent.model.ui_events import Notice, Remark

# How many uncovered paths are named.
_LEFT_OUT_NAMED = 20


class SessionLogLike(Protocol):
    """A session's journal and its state."""

    @property
    def session(self) -> Session: ...
    def record(self, record: Record) -> None: ...


@dataclass(frozen=True, slots=True)
class Keeping:
    """The functions that take and compare checkpoints; one that returns None failed and has said so."""

    take: Callable[[bool, Collection[str]], Checkpoint | None]
    """Take a checkpoint, covering named paths even if git ignores them; True: also list what is ignored."""
    take_only: Callable[[str, Expected], Checkpoint | None]
    """Take a checkpoint like an earlier one, with the expected state of these paths."""
    prepare: Callable[[str], bool]
    """Take one ahead of time, to compare with that checkpoint; False: try again later."""
    uncovered: Callable[[str, str, tuple[str, ...]], tuple[str, ...]]
    """Return the paths whose change these two checkpoints can't undo."""
    outside: Callable[[str, str, str, Collection[str]], tuple[LeftOut, ...]]
    """Return what neither checkpoint covers and what changed since a time, except some paths."""
    changes: Callable[[str, str], tuple[Change, ...] | None]
    """Return the differences between two checkpoints; None if unknown."""
    difference: Callable[[str, str, tuple[str, ...]], str]
    """Return a diff of some paths between two checkpoints; empty if unknown."""
    put_back: Callable[[str, str, tuple[str, ...]], Restored | None]
    """Restore paths to one checkpoint where they are still as in another; None: no git."""
    sync: Callable[[], None]
    """Make everything written durable."""
    now: Callable[[], str]
    """Return the current time: UTC, ISO 8601 with Z."""
    show: Callable[[Notice], None]


@dataclass(frozen=True, slots=True)
class Keeper:
    """Take the checkpoints of one session. A turn continues without them if it must."""

    log: SessionLogLike
    means: Keeping

    def before(self, held: Collection[str] = ()) -> None:
        """Checkpoint before a turn or a part of it, covering some paths even if git ignores them."""
        if (found := self.means.take(True, {*held, *self._written()})) is not None:
            self._record(found, before=True)

    def after(self) -> None:
        """Checkpoint after a turn or at a pause; say what undo does not cover."""
        session = self.log.session
        commands = [start.at for start in session.starts if start.event is None]
        if (found := self.means.take(bool(commands), self._written())) is None:
            return
        before = session.checkpoint
        self._record(found, before=False)
        if not (before and commands):
            return
        if left := self.means.outside(before, found.id, commands[0], self._written()):
            names = [f"{paths.shown(each.path)} ({each.reason})" for each in left[:_LEFT_OUT_NAMED]]
            more = f" and {len(left) - len(names)} more" if len(left) > len(names) else ""
            what = "undo does not cover what commands changed here"
            self.means.show(Remark(f"{what}: {', '.join(names)}{more}"))

    def _written(self) -> set[str]:
        """Return the paths that operations of this turn changed."""
        return {each.place for start in self.log.session.written for each in start.changes}

    @property
    def can_wait(self) -> bool:
        """Return whether the turn's changes so far are known from its operations."""
        session = self.log.session
        return bool(session.checkpoint) and net_changes.expected(session.starts) is not None

    def catch_up(self) -> None:
        """Take the checkpoint after the last turn if it is still missing and can be derived.

        Raises:
            WorkError: if the journal can't be written.
        """
        session = self.log.session
        expected = net_changes.expected(session.starts)
        ended = session.phase in (Phase.AWAITING_REPLY, Phase.COMPLETE)
        if not (ended and session.checkpoint) or expected is None:
            return
        found = self.means.take_only(session.checkpoint, expected)
        if found is not None:
            # A checkpoint must be at least as durable as the record that names it.
            self.means.sync()
            self._record(found, before=False)

    def changed(self) -> tuple[str, ...] | None:
        """Return the changes since the last request, one per line; None if unknown."""
        session = self.log.session
        waits = bool(session.checkpoint)
        earlier = self.means.changes(session.shown, session.checkpoint or session.kept)
        if earlier is None:
            return None
        return net_changes.altogether(earlier, net_changes.done(session) if waits else ())

    def _record(self, found: Checkpoint, *, before: bool) -> None:
        session = self.log.session
        named = found.left_out[:_LEFT_OUT_NAMED]
        left_out = tuple(f"{paths.shown(left.path)} ({left.reason})" for left in named)
        if found.left_out_count > len(named):
            left_out += (f"{found.left_out_count - len(named)} more",)
        uncovered: tuple[str, ...] = ()
        if not before:
            outlasting = _outlasting(session.results)
            uncovered = self.means.uncovered(session.checkpoint, found.id, outlasting)
            uncovered = tuple(dict.fromkeys((*uncovered, *found.missed)))
        if uncovered:
            names = ", ".join(map(paths.shown, uncovered))
            reasons = "ignored by git, too large, or changed again at once"
            self.means.show(Remark(f"undo does not cover {names}: {reasons}"))
        # Once its request is written, the session is one turn further.
        waited = session.checkpoint and not before
        sequence = session.checkpoint_of if waited else session.sequence
        self.log.record(
            CheckpointTaken(sequence, before, found.id, left_out, self.means.now(), uncovered)
        )


def _outlasting(events: Iterable[Event]) -> tuple[str, ...]:
    """Return the paths that file operations changed, except files created and removed in one turn."""
    first: dict[str, PathChange] = {}
    last: dict[str, PathChange] = {}
    for change in file_changes(events):
        first.setdefault(change.path, change)
        last[change.path] = change
    return tuple(
        path
        for path, change in first.items()
        if not (change.is_new and last[path].after == "nothing")
    )
