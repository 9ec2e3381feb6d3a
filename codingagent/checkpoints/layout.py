"""Folders of a session or run: its workspace, the agent's own folders in it, and its checkpoints."""

import os
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from codingagent.errors import UsageError
from codingagent.model.observations import digest_of
from codingagent.model.session_state import Session
from codingagent.process.runner import run_tool
from codingagent.storage.homes import Home, own_folders
from codingagent.workspace.programs import find_program
from codingagent.workspace.real_paths import root_of

if TYPE_CHECKING:
    from codingagent.checkpoints.store import Checkpoints
    from codingagent.workspace.git_files import Git


class WorkLayout(Struct, frozen=True):
    """The folders of a session or run; `root` is the workspace."""

    root: Path
    hidden: tuple[Path, ...]
    """The agent's own folders, which may be in the workspace."""
    temporary: Path
    """What sandboxed commands see as /tmp."""
    store: Path | None
    """It holds checkpoints."""


def place_of(home: Home, session: Session) -> WorkLayout:
    check_present(session)
    root = Path(session.workspace)
    if session.is_run:
        return place_of_runs(home, root)
    own = home.sessions.folder / session.session_id
    return WorkLayout(root, own_folders(home.root, root), own / "tmp", own / "checkpoints")


def check_present(session: Session) -> None:
    """Refuse a session or run whose workspace is gone: it can't continue in another."""
    if not Path(session.workspace).exists():
        what = "run" if session.is_run else "session"
        raise UsageError(
            f"workspace {session.workspace} of {what} {session.session_id} does not exist; put it back"
            " where it was"
        )


def place_of_runs(home: Home, root: Path) -> WorkLayout:
    """Return the folders that a workspace's thousands of runs share; each has a /tmp of its own."""
    key = digest_of(os.fsencode(root_of(root)))[:12]
    folder = home.runs.folder
    return WorkLayout(
        root, own_folders(home.root, root), folder / "tmp", folder / f"checkpoints-{key}"
    )


@cache
def git_for(root: Path) -> "Git | None":
    """Return git with the person's environment, which has their global ignore rules; None without it."""
    # Imported late, as the store: the first request needs neither.
    from codingagent.workspace.git_files import Git

    program = find_program("git", root)
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
        from codingagent.checkpoints.store import Checkpoints, Site

        return Checkpoints(place.store, Site(root_of(place.root), place.hidden), git)

    def files_read(self) -> int:
        """Return how many files the checkpoint that is being taken has read; another thread may ask."""
        store: Checkpoints | None = vars(self).get("opened")
        return 0 if store is None else store.files_read

    def needed(self) -> "Checkpoints":
        if self.opened is None:
            raise UsageError(
                "this needs git, which is not installed here; everything else works without it"
            )
        return self.opened

    def close(self) -> None:
        if (store := vars(self).get("opened")) is not None:
            store.close()
