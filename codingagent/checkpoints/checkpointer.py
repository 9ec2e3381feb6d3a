"""A session's checkpoints: where they are kept, and when they are taken, around turns and at pauses."""

import contextlib
import os
from collections.abc import Callable, Collection
from datetime import datetime
from functools import cache, cached_property, partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from codingagent.checkpoints.history import NAMED, UNSEEN, Change, Checkpoint, LeftOut, is_of_git, named
from codingagent.errors import UsageError, WorkError
from codingagent.model import journal_entries, observations, paths, patterns, session_state
from codingagent.model.notices import Notice, Remark
from codingagent.process.runner import run_tool
from codingagent.prompt.file_list import shown_path
from codingagent.storage import atomic_write, clock, homes, journal
from codingagent.workspace import programs, real_paths

if TYPE_CHECKING:
    from codingagent.checkpoints.store import Checkpoints
    from codingagent.workspace.git_files import Git, GitListing

_TICK_NS = 10**7
# So many edits get their checkpoints at once: that takes less than a second.
_LATE = 500

# What tools make again by themselves, by names that nobody gives to work of their own: so not `build`,
# `dist` and `target`.
_REBUILT = patterns.lazy_pattern(
    r"(?:^|/)(?:__pycache__|\.(?:pytest|mypy|ruff|parcel)[-_]cache|\.hypothesis|\.tox|\.nox|\.gradle"
    r"|node_modules/\.cache|\.coverage(?:\.[^/]+)?|htmlcov|[^/]+\.egg-info|[^/]+\.pyc|[^/]+\.tsbuildinfo"
    r"|\.phpunit(?:\.result)?\.cache|\.php-cs-fixer\.cache|\.eslintcache|\.nyc_output)(?:/|$)"
)

_Result = TypeVar("_Result")
_Other = TypeVar("_Other")


class WorkLayout(Struct, frozen=True):
    """The folders of a session or run; `root` is the workspace."""

    root: Path
    hidden: tuple[Path, ...]
    """The agent's own folders, which may be in the workspace."""
    temporary: Path
    """What sandboxed commands see as /tmp."""
    store: Path | None
    """It holds checkpoints."""
    original: Path | None = None
    """The workspace that `root` is a copy of, and under whose path commands see it."""
    beside: tuple[Path, ...] = ()
    """Folders of the original that the copy lacks, and that commands see in it."""


def place_of(home: homes.Home, session: session_state.Session) -> WorkLayout:
    check_present(session)
    root = Path(session.workspace)
    if session.is_run:
        return place_of_runs(home, root)
    own = home.sessions.folder / session.session_id
    return WorkLayout(root, homes.own_folders(home.root, root), own / "tmp", own / "checkpoints")


def check_present(session: session_state.Session) -> None:
    """Refuse a session or run whose workspace is gone: it can't continue in another."""
    if not Path(session.workspace).exists():
        what = "run" if session.is_run else "session"
        raise UsageError(
            f"workspace {session.workspace} of {what} {session.session_id} does not exist; put it back"
            " where it was"
        )


def place_of_runs(home: homes.Home, root: Path) -> WorkLayout:
    """Return the folders that a workspace's thousands of runs share; each has a /tmp of its own."""
    key = observations.digest_of(os.fsencode(real_paths.root_of(root)))[:12]
    folder = home.runs.folder
    return WorkLayout(root, homes.own_folders(home.root, root), folder / "tmp", folder / f"checkpoints-{key}")


@cache
def git_for(root: Path) -> "Git | None":
    """Return git with the person's environment, which has their global ignore rules; None without it."""
    # Imported late, as the store: the first request needs neither.
    from codingagent.workspace.git_files import Git

    program = programs.find_program("git", root)
    # git blocks forever on a .gitignore that is a pipe, and an answer could make one.
    return Git(program, partial(run_tool, timeout_s=60), os.environ) if program else None


class LazyStore:
    """The checkpoint store of a workspace, opened when first needed."""

    def __init__(self, place: WorkLayout) -> None:
        self._place = place

    @cached_property
    def opened(self) -> "Checkpoints | None":
        """The store; None without git."""
        place = self._place
        if place.store is None or (git := git_for(place.root)) is None:
            return None
        from codingagent.checkpoints.store import Checkpoints

        return Checkpoints(place.store, real_paths.root_of(place.root), place.hidden, git)

    def files_read(self) -> int:
        """Return how many files the checkpoint that is being taken has read; another thread may ask."""
        store: Checkpoints | None = vars(self).get("opened")
        return 0 if store is None else store.files_read

    def needed(self) -> "Checkpoints":
        if self.opened is None:
            raise UsageError("this needs git, which is not installed here; everything else works without it")
        return self.opened

    def close(self) -> None:
        if (store := vars(self).get("opened")) is not None:
            store.close()


class Checkpointer:
    """The checkpoints of one session, which goes on without if it must; `folders` are made durable first."""

    def __init__(
        self,
        log: journal.SessionLog,
        lazy_store: LazyStore,
        folders: tuple[Path, ...],
        show: Callable[[Notice], None],
    ) -> None:
        self.log, self.lazy_store, self.show = log, lazy_store, show
        self._folders = folders
        self.is_late = False
        """The checkpoints around the edit of this turn follow later, of all edits so far at once."""
        self._said: set[str] = set()
        """What undo does not cover, as far as the person was told."""
        self.listed: GitListing | None = None
        """What belonged to the workspace after the turn, until something may have changed it: git said it."""

    @property
    def written(self) -> set[str]:
        """The paths that operations of this turn changed."""
        return {each.place for start in self.log.session.written for each in start.changes}

    def tried(self, act: "Callable[[Checkpoints], _Result]", otherwise: _Other) -> "_Result | _Other":
        """Act on the store; return something else without git, or if it can't be read."""
        with contextlib.suppress(WorkError):
            return otherwise if (store := self.lazy_store.opened) is None else act(store)
        return otherwise

    def sync(self) -> None:
        """Make everything written durable, in the workspace and in the home."""
        atomic_write.sync(self._folders)

    def may_follow(self, path: str) -> bool:
        """Return whether the checkpoints around an edit of a file may follow later."""
        latest = self.log.session.checkpoints.latest
        if len(self.log.session.late) >= _LATE:
            self.settle()
        act = methodcaller("covers_plainly", latest, path)
        return bool(latest) and self.tried(act, otherwise=False)

    def keep(self, path: str, edited: tuple[bytes, bytes, int] | None) -> journal_entries.KeptEdit | None:
        """Keep what a file holds before and after an edit, for checkpoints that follow; else take the first.

        None: there is one, or it was taken now.
        """
        kept: journal_entries.KeptEdit | None = None
        if self.is_late:
            latest = self.log.session.checkpoints.latest
            if edited is not None:
                kept = self.tried(methodcaller("keep", latest, path, *edited), None)
            if kept is None:
                self.is_late = False
                self.before((path,))
        return kept

    def settle(self) -> None:
        """Make the checkpoints that edits still lack; where that fails these can't be undone."""
        late = self.log.session.late
        if late and (store := self.lazy_store.opened) is not None:
            try:
                made = store.follow(edit for _, edit in late)
            except WorkError as fault:
                self.show(Remark(f"edits can't be undone: {fault}"))
                return
            for index, name in enumerate(made):
                part = late[index // 2][0], index % 2 == 0, name
                self.log.record(journal_entries.CheckpointTaken(*part, (), clock.now()))

    def before(self, held: Collection[str] = ()) -> None:
        """Checkpoint before a turn or a part of it, covering some paths even if git ignores them."""
        self.listed = None
        if (found := self._take({*held, *self.written})) is not None:
            self._record(found, before=True)

    def after(self, *, says: bool = True) -> None:
        """Checkpoint after a turn or at a pause; `says`: it is the answer's, and undo may not cover all."""
        kept = self.log.session.checkpoints
        found = self._take(self.written)
        if found is None:
            return
        self.listed = found.listed if says else None
        self._record(found, before=False)
        if kept.before and kept.commanded_at and says:
            if unseen := [left.path for left in found.left_out if left.reason == UNSEEN]:
                what = "too large to be looked through for git repositories"
                self.show(Remark(f"{what}: {named(unseen)}"))
            changed = self._changed_outside(kept.before, found.id, kept.commanded_at)
            left = [each for each in changed if each.path not in self._said]
            left = [each for each in left if not _REBUILT.search(each.path)]
            self._said.update(each.path for each in left)
            if left:
                names = named([f"{each.path} ({each.reason})" for each in left])
                self.show(Remark(f"undo does not cover what commands changed here: {names}"))

    def unheld(self) -> tuple[LeftOut, ...]:
        """Return what changed in a turn with commands and no checkpoint holds: all, if there is none."""
        session, kept = self.log.session, self.log.session.checkpoints
        if session.taken is None:
            return ()
        since = session.taken.at
        left = [each for part in kept.parts for each in self._changed_outside(*part, since)]
        if kept.before or not kept.parts:
            left += self.tried(lambda store: store.younger(_since_ns(since)), ())
        return tuple(left)

    def prepare(self) -> None:
        """Take the first checkpoint while its answer is awaited: then all files are read."""
        if not self.log.session.checkpoints.latest:
            self.tried(lambda store: store.take(), None)

    def is_as_at(self, checkpoint: str) -> bool:
        """Return whether the workspace is as at a checkpoint; False if there is none."""
        if not checkpoint or (found := self._take()) is None:
            return False
        ids = checkpoint, found.id
        return self.tried(lambda store: store.are_alike(*ids), otherwise=False)

    def is_uncovered(self, path: str) -> bool:
        """Return whether undo does not cover a path, so that its current content would be lost."""
        with contextlib.suppress(WorkError):
            # Without git nothing is covered, and that was said; single operations have no session.
            if (store := self.lazy_store.opened) is None:
                return False
            kept = self.log.session.checkpoints
            commit = kept.latest if self.is_late else kept.before
            return not commit or bool(store.left_out_of((commit,), (path,)))
        return True

    def changes(self, old: str, new: str) -> tuple[Change, ...] | None:
        """Return the differences between two checkpoints; None if unknown."""
        known = bool(old and new)
        return self.tried(lambda store: store.changes(old, new), None) if known else None

    def changed_since_request(self) -> tuple[str, ...] | None:
        """Return the changes since the last request, one per line; None if unknown."""
        kept = self.log.session.checkpoints
        changes = self.changes(kept.shown, kept.before or kept.latest)
        if changes is None:
            return None
        # What a repository runs is the person's: no answer can read it. What was left out may be as it was.
        told = (each for each in changes if not (each.kind == "left_out" or is_of_git(each.path)))
        return tuple(f"{e.kind}: {shown_path(e.path)}" for e in told if not _REBUILT.search(e.path))

    def _take(self, held: Collection[str] = ()) -> Checkpoint | None:
        self.settle()
        try:
            if (store := self.lazy_store.opened) is None:
                return None
            found = store.take(held)
        except WorkError as fault:
            self.show(Remark(f"this turn can't be undone: {fault}"))
            return None
        if found.set_aside:
            self.show(Remark(f"earlier checkpoints were damaged and are kept in {found.set_aside}"))
        return found

    def _record(self, found: Checkpoint, *, before: bool) -> None:
        """Record a checkpoint; say what operations changed and it and the one before can't undo."""
        session, kept = self.log.session, self.log.session.checkpoints
        first = found.left_out[:NAMED]
        left_out = tuple(f"{paths.shown(left.path)} ({left.reason})" for left in first)
        if more := len(found.left_out) - len(first):
            left_out += (f"{more} more",)
        uncovered: tuple[str, ...] = ()
        if not before:
            own, parts = self.written, (kept.before, found.id)
            missing = self.tried(lambda store: store.left_out_of(parts, own), set[str]())
            uncovered = tuple(sorted(missing))
        if uncovered:
            names = ", ".join(map(paths.shown, uncovered))
            self.show(Remark(f"undo does not cover {names}: ignored by git, or too large"))
        # Once its request is written, the session is one turn further.
        sequence = kept.turn if kept.before and not before else session.sequence
        self.log.record(
            journal_entries.CheckpointTaken(sequence, before, found.id, left_out, clock.now(), uncovered)
        )

    def _changed_outside(self, old: str, new: str, since: str) -> tuple[LeftOut, ...]:
        """Return what neither checkpoint covers and what changed since a time, except by operations."""
        own, since_ns = self.written, _since_ns(since)
        return self.tried(lambda store: store.changed_outside(old, new, since_ns, own), ())


def _since_ns(time: str) -> int:
    # The system's clock for files may be one tick behind.
    return int(datetime.fromisoformat(time).timestamp() * 10**9) - _TICK_NS
