"""When the workspace is kept: before a turn that changes it, after it, or where it pauses for the person.

How it works. A turn whose operations alone changed files is known by their starts in the journal. So the
checkpoint after it need not hold up the request: it takes in just these paths, and only with the bytes
that the journal says, whenever it comes. What the person changes meanwhile is not the turn's. A command
may change anything; what it did must be looked at before anybody else can change it.
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

# Of what a checkpoint leaves out so much is named.
_LEFT_OUT_NAMED = 20


class LedgerLike(Protocol):
    """A session's record and what it says."""

    @property
    def session(self) -> Session: ...
    def record(self, record: Record) -> None: ...


@dataclass(frozen=True, slots=True)
class Keeping:
    """What keeps the workspace; whatever gives None could not, and has said so."""

    take: Callable[[bool, Collection[str]], Checkpoint | None]
    """Keeps the workspace, and what git ignores if it is named; True: it is to be known what that is."""
    take_only: Callable[[str, Expected], Checkpoint | None]
    """Keeps it as in a checkpoint, and of these paths what is expected there."""
    prepare: Callable[[str], bool]
    """Keeps it ahead of time, for who compares it with that checkpoint; False: to be tried once more."""
    uncovered: Callable[[str, str, tuple[str, ...]], tuple[str, ...]]
    """Gives those of the paths that neither of two checkpoints holds as they are now."""
    outside: Callable[[str, str, str, Collection[str]], tuple[LeftOut, ...]]
    """Returns what neither of two checkpoints holds and what changed since a time, without some paths."""
    changes: Callable[[str, str], tuple[Change, ...] | None]
    """Gives what differs between two checkpoints; None if that can't be known."""
    difference: Callable[[str, str, tuple[str, ...]], str]
    """Returns how the content of some paths differs between two checkpoints; empty if that can't be known."""
    put_back: Callable[[str, str, tuple[str, ...]], Restored | None]
    """Makes paths what they are in one checkpoint, where they still are as in another; None: no git."""
    sync: Callable[[], None]
    """Makes all that was written durable."""
    now: Callable[[], str]
    """UTC, ISO 8601 with Z."""
    show: Callable[[Notice], None]


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps the workspace for one session. A turn goes on without, if it must."""

    ledger: LedgerLike
    means: Keeping

    def before(self, held: Collection[str] = ()) -> None:
        """Keep the workspace as it is before a turn, or a part of it; some paths even if git ignores them."""
        if (found := self.means.take(True, {*held, *self._written()})) is not None:
            self._record(found, before=True)

    def after(self) -> None:
        """Keep it as it is after a turn, or where it pauses; say what of it no undo covers."""
        session = self.ledger.session
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
        """Return what operations of this turn changed."""
        return {each.place for start in self.ledger.session.written for each in start.changes}

    @property
    def can_wait(self) -> bool:
        """Tells whether the turn so far is known by its operations."""
        session = self.ledger.session
        return bool(session.checkpoint) and net_changes.expected(session.starts) is not None

    def catch_up(self) -> None:
        """Take the checkpoint after the last turn, if that one has none yet and is known all the same.

        Raises:
            WorkError: if the record can't be written.
        """
        session = self.ledger.session
        expected = net_changes.expected(session.starts)
        ended = session.phase in (Phase.AWAITING_REPLY, Phase.COMPLETE)
        if not (ended and session.checkpoint) or expected is None:
            return
        found = self.means.take_only(session.checkpoint, expected)
        if found is not None:
            # What the record names must outlive whatever the record outlives.
            self.means.sync()
            self._record(found, before=False)

    def changed(self) -> tuple[str, ...] | None:
        """Return what differs from when the last request was written, a line each; None: not known."""
        session = self.ledger.session
        waits = bool(session.checkpoint)
        earlier = self.means.changes(session.shown, session.checkpoint or session.kept)
        if earlier is None:
            return None
        return net_changes.altogether(earlier, net_changes.done(session) if waits else ())

    def _record(self, found: Checkpoint, *, before: bool) -> None:
        session = self.ledger.session
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
        # Behind its request the session is one further already.
        waited = session.checkpoint and not before
        sequence = session.checkpoint_of if waited else session.sequence
        self.ledger.record(
            CheckpointTaken(sequence, before, found.id, left_out, self.means.now(), uncovered)
        )


def _outlasting(events: Iterable[Event]) -> tuple[str, ...]:
    """Return the paths that file operations changed, without those that came and went in one turn."""
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
