"""Try answers before one is taken: each is executed in a copy of the workspace, in a home of its own.

    sessions/ID/candidates/N/answer.txt         the answer as it came
                             home/workspace/    the copy, seen by commands under the workspace's own path
                             home/sessions/ID/  the session's journal, which goes on there as it would here
                             layer/             what commands write to folders that git ignores

The copy is complete once `home` has its name. What a kill interrupts goes on as in any home.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from codingagent.agent.context import Context
from codingagent.agent.tried import ANSWER, Tried, folder_of, tried
from codingagent.checkpoints.checkpointer import WorkLayout
from codingagent.checkpoints.repository_files import is_of_git
from codingagent.errors import ApprovalError, UsageError, disk_errors
from codingagent.model.journal_entries import CandidateBegan
from codingagent.model.observations import digest_of
from codingagent.model.plain_text import plural, some
from codingagent.model.session_state import Phase, Session, no_request_waits
from codingagent.process.bubblewrap import NO_TRIALS, Bubblewrap
from codingagent.storage import atomic_write
from codingagent.storage.clock import now
from codingagent.storage.homes import Home
from codingagent.workspace.own_code import own_code_in

Act: TypeAlias = Callable[[Home, Session, WorkLayout, int], None]
"""Finish what is begun in a copy of a session's workspace; if that still awaits its answer, take it."""

# So many folders that git ignores are shown; each is a mount for every command.
_BESIDE_MOST = 100
# What every interpreter makes again by itself.
_CACHE = "__pycache__"
# What git needs in order to list the copy; commands see the repository itself, read-only.
_OF_GIT = ("HEAD", "config", "index", "info/exclude")
_NAMED = 5


class Trials:
    """The candidates of a session. What is done raises WorkError if the disk fails."""

    def __init__(self, context: Context, home: Home, act: Act) -> None:
        self._context, self._home, self._act = context, home, act
        self._log = context.log

    def all(self) -> list[Tried]:
        """Return the candidates for the request that waits."""
        session = self._log.session
        of_now = (each for each in session.candidates if each.sequence == session.sequence)
        return [tried(self._home, session.session_id, each) for each in of_now]

    def named(self, number: int) -> Tried:
        found = {each.number: each for each in self.all()}
        if number not in found:
            have = (
                f"there are {some([*map(str, found)], _NAMED)}"
                if found
                else "there is none: `codingagent try FILE`"
            )
            raise UsageError(f"there is no candidate {number} for the request that waits; {have}")
        return found[number]

    def begin(self, data: bytes, *, again: bool = True) -> int:
        """Journal an answer to the waiting request as a candidate; return its number.

        Unless `again`, the same answer stays the same candidate.
        """
        context, session, digest = self._context, self._log.session, digest_of(data)
        if session.phase is not Phase.AWAITING_ANSWER:
            raise UsageError(no_request_waits(session))
        if not isinstance(context.sandbox, Bubblewrap):
            raise UsageError(NO_TRIALS)
        context.checkpointer.lazy_store.needed()
        known = (digest, session.sequence)
        same = [each.number for each in session.candidates if (each.digest, each.sequence) == known]
        if same and not again:
            context.remark(f"that answer is candidate {same[-1]} already")
            return same[-1]
        number = len(session.candidates) + 1
        folder = folder_of(self._home, session.session_id, number)
        with disk_errors(f"{folder} can't be made"):
            folder.mkdir(parents=True, exist_ok=True)
        atomic_write.write_whole(folder / ANSWER, data)
        self._log.record(CandidateBegan(number, session.sequence, digest, now()))
        self._log.sync()
        return number

    def run(self, number: int) -> Tried:
        """Execute a candidate's answer in its copy, or what is left of it; ask the person what must be."""
        one = self.named(number)
        if one.session is None:
            with disk_errors(f"the copy for candidate {number} can't be made"):
                self._copy(one.folder)
            one = self.named(number)
        if one.state and one.session is not None:
            names = (one.folder / "beside").read_bytes().split(b"\0")
            original = self._context.workspace.root
            own = one.home.sessions.folder / one.session.session_id
            beside = tuple(original / os.fsdecode(name) for name in names if name)
            root = one.home.root / "workspace"
            place = WorkLayout(root, (), own / "tmp", own / "checkpoints", original, beside)
            with contextlib.suppress(ApprovalError):  # what it asks stands in the comparison
                self._act(one.home, one.session, place, one.sequence)
        return self.named(number)

    def _copy(self, folder: Path) -> None:
        """Copy the files that a checkpoint of now holds, and all else that belongs to the session."""
        if sys.platform == "win32":
            raise UsageError(NO_TRIALS)
        from codingagent.workspace.copies import copy_files

        context, session_id = self._context, self._log.session.session_id
        store, root = context.checkpointer.lazy_store.needed(), context.workspace.root
        made = folder / "home.tmp"
        atomic_write.remove_folder(made)
        copy, own = made / "workspace", made / "sessions" / session_id
        for each in (copy, own, made / "inbox", made / "outbox"):
            each.mkdir(parents=True)
        found = store.take()
        left = [each.path for each in found.left_out]
        held = [path for path in store.covered(found.id) if not is_of_git(path)]
        copy_files(root, copy, [*held, *(path for path in left if not path.endswith("/"))])
        if (root / ".git").is_dir():
            copy_files(root / ".git", copy / ".git", _OF_GIT)
            for name in ("objects", "refs"):
                (copy / ".git" / name).mkdir()
        elif (root / ".git").is_file():
            copy_files(root, copy, [".git"])
        folders = [path.rstrip("/") for path in left if path.endswith("/")]
        beside = [each for each in folders if each.rpartition("/")[2] != _CACHE and (root / each).is_dir()]
        if left_out := beside[_BESIDE_MOST:]:
            context.remark(f"commands of a candidate do not see {some(left_out, _NAMED)}: git ignores them")
        for each in beside:  # what is mounted on must be there
            (copy / each).mkdir(parents=True, exist_ok=True)
        atomic_write.write_whole(folder / "beside", b"\0".join(map(os.fsencode, beside[:_BESIDE_MOST])))
        kept = self._home.sessions.folder / session_id
        context.secrecy.save()
        for name in ("journal.jsonl", "vault.json", "secrets.json"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(kept / name, own / name)
        if (kept / "shown").is_dir():
            shutil.copytree(kept / "shown", own / "shown")
        store.copy_to(own / "checkpoints", copy, found.id)
        shutil.copyfile(folder / ANSWER, made / "inbox" / ANSWER)
        made.rename(folder / "home")

    # --- what is to be compared ----------------------------------------------------------------
    def compare(self) -> list[Tried]:
        """Show a line for each candidate, and return them."""
        every, store = self.all(), self._context.checkpointer.lazy_store.needed()
        for one in every:
            changes = [] if one.state or not one.before else [*store.changes(one.before, one.after)]
            lines = store.diff(one.before, one.after).split("\n") if changes else []
            added, gone = (sum(line[:1] == sign and line[:3] != sign * 3 for line in lines) for sign in "+-")
            names = some([each.path for each in changes], _NAMED)
            files = f"; {len(changes)} {plural(len(changes), 'file')} +{added} -{gone}: {names}"
            told = one.told() + files * bool(changes)
            self._context.remark(f"candidate {one.number}: {told}")
        return every

    def diff(self, old: int, new: int) -> str:
        """Return how the files of two candidates differ, as a unified diff."""
        context, both = self._context, [self.named(number) for number in (old, new)]
        for one in both:
            if one.state or not one.before:
                raise UsageError(f"candidate {one.number} {one.state or 'changed nothing'}")
        store = context.checkpointer.lazy_store.needed()
        return context.secrecy.hide(store.diff(both[0].after, both[1].after))

    # --- taking --------------------------------------------------------------------------------
    def takeable(self, number: int) -> Tried:
        """Return a candidate whose changes can be made as they were tried; else UsageError says why not."""
        one, context = self.named(number), self._context
        if one.state:
            raise UsageError(f"candidate {number} {one.state}; `codingagent try` goes on with it")
        if not one.before:
            return one
        store, root = context.checkpointer.lazy_store.needed(), context.workspace.root
        present = store.take().id
        moved = [each for each in store.changes(one.before, present) if each.kind != "left_out"]
        if names := [each.path for each in moved if not is_of_git(each.path)]:
            what = f"{some(names, _NAMED)} changed in the workspace since candidate {number} was tried"
            raise UsageError(f"{what}: try it again, `codingagent try {one.folder / ANSWER}`")
        beside = [each for each in (one.folder / "beside").read_bytes().split(b"\0") if each]
        shut = [*map(os.fsdecode, beside)]
        shut += [each.relative_to(root).as_posix() for each in own_code_in(root).kept]
        paths = [each.path for each in store.changes(one.before, one.after)]
        if bad := [path for path in paths if any(f"{path}/".startswith(f"{each}/") for each in shut)]:
            what = f"candidate {number} changed {some(bad, _NAMED)}, in a folder that git ignores"
            raise UsageError(f"{what}: the copy could not hold that; give the answer without `try`")
        return one
