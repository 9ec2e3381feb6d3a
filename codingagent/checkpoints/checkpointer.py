"""Take, compare and restore a session's checkpoints: around turns, and at approval pauses.

If only operations changed files, the journal's start records say which. So the checkpoint after
such a turn need not delay the request: it covers just these paths, and only with the bytes that the
journal names, whenever it is taken. What the person changes meanwhile is not part of the turn. A
command may change anything, so its changes must be read before anyone can make others.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from codingagent.checkpoints import history
from codingagent.checkpoints.changes import Change, Checkpoint, LeftOut, Restored, State
from codingagent.checkpoints.history import Expected
from codingagent.checkpoints.layout import LazyStore
from codingagent.checkpoints.repository_files import is_of_git
from codingagent.errors import WorkError
from codingagent.model import paths
from codingagent.model.effects import PathChange, file_changes
from codingagent.model.events import Event
from codingagent.model.journal_entries import CheckpointTaken
from codingagent.model.session_state import Phase
from codingagent.model.ui_events import Notice, Remark
from codingagent.storage import atomic_write
from codingagent.storage.clock import now
from codingagent.storage.session_log import SessionLog

if TYPE_CHECKING:
    from codingagent.checkpoints.store import Checkpoints
    from codingagent.workspace.git_files import Belonging

# How many uncovered paths are named.
_LEFT_OUT_NAMED = 20

# How much of a command's changes to protected files is compared for display.
_SHOWN_BYTES = 200_000

_TICK_NS = 10**7

_Result = TypeVar("_Result")
_Other = TypeVar("_Other")


class Checkpointer:
    """The checkpoints of one session. A turn continues without them if it must.

    `folders` must be durable before a checkpoint is recorded.
    """

    def __init__(
        self,
        log: SessionLog,
        lazy_store: LazyStore,
        folders: tuple[Path, ...],
        show: Callable[[Notice], None],
    ) -> None:
        self.log = log
        self.show = show
        self.lazy_store = lazy_store
        self._folders = folders

    @property
    def store(self) -> "Checkpoints | None":
        """The store; None without git."""
        return self.lazy_store.opened()

    def sync(self) -> None:
        """Make everything written durable."""
        atomic_write.sync(self._folders)

    # --- around turns --------------------------------------------------------------------------

    def before(self, held: Collection[str] = ()) -> None:
        """Checkpoint before a turn or a part of it, covering some paths even if git ignores them."""
        if (found := self._take(with_ignored=True, held={*held, *self._written()})) is not None:
            self._record(found, before=True)

    def after(self) -> "Belonging | None":
        """Checkpoint after a turn or at a pause; say what undo does not cover.

        Return what belongs to the workspace now, if that was asked for: the request need not ask again.
        """
        session = self.log.session
        commands = [start.at for start in session.checkpoints.starts if start.event is None]
        if (found := self._take(with_ignored=bool(commands), held=self._written())) is None:
            return None
        listed = self._tried(lambda store: store.listed, None)
        before = session.checkpoints.before
        self._record(found, before=False)
        if not (before and commands):
            return listed
        if unseen := self._tried(lambda store: store.unseen, ()):
            large = ", ".join(map(paths.shown, unseen[:_LEFT_OUT_NAMED]))
            self.show(Remark(f"too large to be looked through for git repositories: {large}"))
        if left := self._changed_outside(before, found.id, commands[0]):
            names = [f"{paths.shown(each.path)} ({each.reason})" for each in left[:_LEFT_OUT_NAMED]]
            more = f" and {len(left) - len(names)} more" if len(left) > len(names) else ""
            what = "undo does not cover what commands changed here"
            self.show(Remark(f"{what}: {', '.join(names)}{more}"))
        return listed

    def unheld(self) -> tuple[LeftOut, ...]:
        """Return what changed in a turn with commands and no checkpoint holds.

        That is all that changed, if no checkpoint could be taken: a full disk, or a huge .gitignore.
        """
        session, kept = self.log.session, self.log.session.checkpoints
        if session.reply is None:
            return ()
        since = session.reply.at
        left = [each for part in kept.parts for each in self._changed_outside(*part, since)]
        if kept.before or not kept.parts:
            left += self._tried(lambda store: store.younger(_since_ns(since)), ())
        return tuple(left)

    @property
    def can_wait(self) -> bool:
        """Return whether the turn's changes so far are known from its operations."""
        held = self.log.session.checkpoints
        return bool(held.before) and history.expected(held.starts) is not None

    def catch_up(self) -> None:
        """Take the checkpoint after the last turn if it is still missing and can be derived."""
        session = self.log.session
        expected = history.expected(session.checkpoints.starts)
        ended = session.phase in (Phase.AWAITING_ANSWER, Phase.COMPLETE)
        if not (ended and session.checkpoints.before) or expected is None:
            return
        if (found := self._take(expected)) is not None:
            # A checkpoint must be at least as durable as the record that names it.
            self.sync()
            self._record(found, before=False)

    def prepare(self) -> None:
        """Take a checkpoint while an answer is awaited; the one before its turn then has little to read."""
        self._tried(lambda store: store.take(), None)

    # --- comparing and restoring ---------------------------------------------------------------

    def is_as_at(self, checkpoint: str) -> bool:
        """Return whether the workspace is as at a checkpoint; False if there is none."""
        found = self._take(with_ignored=False) if checkpoint else None
        return found is not None and found.id == checkpoint

    def is_uncovered(self, path: str) -> bool:
        """Return whether undo does not cover a path, so that its current content would be lost."""
        with contextlib.suppress(WorkError):
            if (store := self.store) is None:
                return False  # without git nothing is covered, and that was said
            commit = self.log.session.checkpoints.before
            return not commit or store.leaves_out(commit, path)
        return True

    def changes(self, old: str, new: str) -> tuple[Change, ...] | None:
        """Return the differences between two checkpoints; None if unknown."""
        known = bool(old and new)
        return self._tried(lambda store: store.changes(old, new), None) if known else None

    def changed_since_request(self) -> tuple[str, ...] | None:
        """Return the changes since the last request, one per line; None if unknown."""
        session, held = self.log.session, self.log.session.checkpoints
        earlier = self.changes(held.shown, held.before or held.latest)
        if earlier is None:
            return None
        # What a repository runs is the person's: no answer can read it.
        earlier = tuple(each for each in earlier if not is_of_git(each.path))
        return history.altogether(earlier, history.done(session) if held.before else ())

    def diff(self, old: str, new: str, names: tuple[str, ...]) -> str:
        """Return a diff of some paths between two checkpoints; empty if unknown."""
        return self._tried(lambda store: store.diff(old, new, names, _SHOWN_BYTES), "")

    def contents(self, states: Iterable[State | None]) -> dict[str, bytes]:
        """Return the content of files in checkpoints, by its id; empty if it can't be read."""
        ids = {state.blob for state in states if state}
        return self._tried(lambda store: store.contents(ids), {})

    def put_back(self, target: str, known: str, names: tuple[str, ...]) -> Restored | None:
        """Restore paths to one checkpoint where they are still as in another; None: it can't be read."""
        return self._tried(lambda store: store.restore(target, known, names), None)

    def _tried(
        self, act: "Callable[[Checkpoints], _Result]", otherwise: _Other
    ) -> "_Result | _Other":
        """Act on the store; return something else without git, or if it can't be read."""
        with contextlib.suppress(WorkError):
            return otherwise if (store := self.store) is None else act(store)
        return otherwise

    # --- steps of these ------------------------------------------------------------------------

    def _take(
        self,
        expected: Expected | None = None,
        *,
        with_ignored: bool = True,
        held: Collection[str] = (),
    ) -> Checkpoint | None:
        """Take a checkpoint, also of what is expected only; if it fails, the turn goes on without."""
        if (store := self.store) is None:
            return None
        try:
            if expected is None:
                found = store.take(with_ignored=with_ignored, held=held)
            else:
                found = store.take_only(self.log.session.checkpoints.before, expected)
        except WorkError as fault:
            self.show(Remark(f"this turn can't be undone: {fault}"))
            return None
        if found.set_aside:
            self.show(Remark(f"earlier checkpoints were damaged and are kept in {found.set_aside}"))
        return found

    def _record(self, found: Checkpoint, *, before: bool) -> None:
        session = self.log.session
        named = found.left_out[:_LEFT_OUT_NAMED]
        left_out = tuple(f"{paths.shown(left.path)} ({left.reason})" for left in named)
        if more := len(found.left_out) - len(named):
            left_out += (f"{more} more",)
        uncovered = () if before else self._uncovered(found)
        if uncovered:
            names = ", ".join(map(paths.shown, uncovered))
            reasons = "ignored by git, too large, or changed again at once"
            self.show(Remark(f"undo does not cover {names}: {reasons}"))
        # Once its request is written, the session is one turn further.
        waited = session.checkpoints.before and not before
        sequence = session.checkpoints.turn if waited else session.sequence
        self.log.record(CheckpointTaken(sequence, before, found.id, left_out, now(), uncovered))

    def _written(self) -> set[str]:
        """Return the paths that operations of this turn changed."""
        return {each.place for start in self.log.session.written for each in start.changes}

    def _uncovered(self, found: Checkpoint) -> tuple[str, ...]:
        """Return the paths that operations changed and these checkpoints can't undo."""
        session = self.log.session
        changed, before = _outlasting(session.results), session.checkpoints.before
        covers = self._tried(lambda store: store.covers(before, found.id, changed), changed)
        uncovered = [path for path in changed if path not in covers]
        return tuple(dict.fromkeys((*uncovered, *found.missed)))

    def _changed_outside(self, old: str, new: str, since: str) -> tuple[LeftOut, ...]:
        """Return what neither checkpoint covers and what changed since a time, except by operations."""
        own, since_ns = self._written(), _since_ns(since)
        return self._tried(lambda store: store.changed_outside(old, new, since_ns, own), ())


def _since_ns(time: str) -> int:
    # The system's clock for files may be one tick behind.
    return int(datetime.fromisoformat(time).timestamp() * 10**9) - _TICK_NS


def _outlasting(events: Iterable[Event]) -> tuple[str, ...]:
    """Return the paths that file operations changed, except files created and removed in one turn."""
    first: dict[str, PathChange] = {}
    last: dict[str, PathChange] = {}
    for change in file_changes(events):
        first.setdefault(change.path, change)
        last[change.path] = change
    return tuple(
        path for path, change in first.items() if not (change.is_new and last[path].removes)
    )
