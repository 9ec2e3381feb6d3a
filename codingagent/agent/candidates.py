"""Try answers before one is taken: each is executed in a copy of the workspace, in a home of its own.

    sessions/ID/candidates/N/
        home/copy           leads to the copy, seen by commands under the workspace's own path
        home/sessions/ID/   the session's journal, which goes on there as here
        layer/              what commands write to folders that git ignores

The answer is in `processed/`; the copy is complete once `home` has its name. What a kill interrupts goes on
as in any home.
"""

import contextlib
import filecmp
import itertools
import os
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from codingagent.agent.context import Context, Person
from codingagent.agent.secrecy import vault_file_of
from codingagent.agent.tried import ANSWER, Tried, named
from codingagent.checkpoints.checkpointer import WorkLayout
from codingagent.checkpoints.history import is_of_git
from codingagent.errors import ApprovalError, CodingAgentError, UsageError, disk_errors
from codingagent.model.journal_entries import CandidateBegan, RequestWritten
from codingagent.model.observations import digest_of
from codingagent.model.plain_text import plural, some
from codingagent.model.session_state import check_request_waits
from codingagent.process.bubblewrap import NO_TRIALS, Bubblewrap
from codingagent.process.runner import Runner
from codingagent.storage import atomic_write
from codingagent.storage.clock import now
from codingagent.storage.homes import Home, own_folders
from codingagent.workspace.git_files import repository_of
from codingagent.workspace.own_code import own_code_in
from codingagent.workspace.programs import quoted_path

# What every interpreter makes again by itself.
_CACHE = "__pycache__"
# What git needs in order to list the copy; commands see the repository itself, read-only.
_OF_GIT = (".git", ".git/HEAD", ".git/config", ".git/index", ".git/info/exclude")
_IN_GIT, _RULES = (".git/objects", ".git/refs"), (".gitignore", ".gitattributes")
_NAMED = 5
_NO_COPY = "the copy for candidate {} can't be made; `codingagent try` does it once there is room"
_LOOK_EVERY_S = 0.1


class Trials:
    """The candidates of a session. What is done raises WorkError if the disk fails."""

    def __init__(
        self, context: Context, home: Home, session_in: Callable[..., contextlib.AbstractContextManager[Any]]
    ) -> None:
        self._context, self._home, self._session_in = context, home, session_in
        self._log = context.log

    def named(self, number: int) -> Tried:
        return named(self._home, self._log.session, number)

    def begin(self, data: bytes, name: str = "") -> int:
        """Journal an answer to the waiting request as a candidate, and keep it; return its number.

        `name` is its file in the inbox, which is then removed: what a kill left there is no second one.
        """
        context, session, digest = self._context, self._log.session, digest_of(data)
        check_request_waits(session)
        if not isinstance(context.sandbox, Bubblewrap):
            raise UsageError(NO_TRIALS)
        context.checkpointer.lazy_store.needed()
        mailbox, known = self._home.mailbox, (session.sequence, digest)
        same = [each.number for each in session.candidates if (each.sequence, each.digest) == known]
        number = same[-1] if same and name else len(session.candidates) + 1
        if number > len(session.candidates):
            kept = mailbox.keep(data, session.session_id, session.sequence, f"_candidate{number}.txt")
            self._log.record(CandidateBegan(number, session.sequence, kept, digest, now()))
            self._log.sync()
        elif name:
            context.remark(f"{name} is candidate {number} once more: set aside")
        if name and mailbox.read(name) == data:  # else it was still being written, and is another one
            mailbox.remove(name)
        return number

    def give(self, number: int, data: bytes) -> None:
        """Keep the next answer of a candidate's own chat, for `run`."""
        one = self.named(number)
        if one.asks or one.is_interrupted or one.session is None or not one.session.is_awaiting_answer:
            raise UsageError(f"candidate {number} {one.state or 'is done'}: it takes no further answer")
        kept_as = one.session.session_id, one.session.sequence, f"_candidate{number}.txt"
        self._home.mailbox.keep(data, *kept_as)  # the candidate's own folder goes with the session
        atomic_write.write_whole(one.home.mailbox.inbox / ANSWER, data)

    def run(self, numbers: Sequence[int]) -> None:
        """Execute answers in their copies, or what is left of them, and tell what came of each.

        Several at once are done side by side, as far as nobody is asked.
        """
        for one in map(self.named, numbers):
            if one.session is None and not one.damage:
                with contextlib.ExitStack() as made, disk_errors(_NO_COPY.format(one.began.number)):
                    # Half a copy would hold the room that all else needs.
                    made.callback(atomic_write.remove_folder, one.home.root.with_name("home.tmp"))
                    self._copy(one)
        todo = [one for one in map(self.named, numbers) if one.is_interrupted]
        if len(todo) > 1:
            self._side_by_side(todo)
        for number in numbers:
            if (one := self.named(number)).asks or one.is_interrupted:
                with contextlib.suppress(ApprovalError):  # what it asks is told
                    self._go_on(one, self._context.person)
            self._tell(self.named(number))

    def _go_on(self, one: Tried, person: Person, began: Callable[[Runner], object] = bool) -> None:
        """Finish what is begun in its copy, or take the answer; do not show its request."""
        assert one.session is not None, "it has a copy"
        original, own = self._context.workspace.root, one.home.sessions.folder / one.session.session_id
        beside = tuple(original / name for name in _folders(one, "beside"))
        copy, hidden = (one.home.root / "copy").resolve(), own_folders(self._home.root, original)
        place = WorkLayout(copy, hidden, own / "tmp", own / "checkpoints", original, beside)
        # What the session learned meanwhile, and the person's wishes, count in the next request, too.
        ours, theirs = (vault_file_of(at.sessions.folder, one.session) for at in (self._home, one.home))
        theirs.keep_wishes(ours.wishes())
        (held := theirs.load()).join(self._context.secrecy.vault)
        theirs.save(held)
        show = person.record
        person = replace(person, record=lambda *told: isinstance(told[0], RequestWritten) or show(*told))
        with self._session_in(one.home, one.session, self._context.settings, person, place) as work:
            began(work.context.runner)
            work.conversation.recover()
            work.conversation.take(ANSWER, accept=True)

    def _side_by_side(self, todo: Sequence[Tried]) -> None:
        """Execute several answers as far as it goes without the person; an interrupt ends all."""
        from concurrent.futures import ThreadPoolExecutor, wait  # with logging: each start would pay for it

        runners, is_over = list[Runner](), threading.Event()

        def shown(*_: object) -> None:
            if is_over.is_set():
                raise KeyboardInterrupt

        person = replace(self._context.person, show=shown, record=shown, ask=lambda _: None)

        def go_on(one: Tried) -> None:
            # What it asks, and what failed, is told by who goes on with it afterwards.
            with contextlib.suppress(CodingAgentError, KeyboardInterrupt):
                self._go_on(one, person, runners.append)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            begun = [pool.submit(go_on, one) for one in todo]
            try:
                wait(begun)
            finally:
                is_over.set()
                while wait(begun, _LOOK_EVERY_S).not_done:
                    for runner in runners:
                        runner.end_command()

    def _tell(self, one: Tried) -> None:
        """Journal what came of a candidate, which shows it."""
        context = self._context
        if one.session is not None:
            # What is told may name values that were found there first.
            context.secrecy.vault.join(vault_file_of(one.home.sessions.folder, one.session).load())
            context.secrecy.save()
        told, store = "", context.checkpointer.lazy_store.needed()
        if not one.state and one.before and (changes := store.changes(one.before, one.after)):
            lines = [*store.counts(one.before, one.after).values()] or [(0, 0)]
            added, gone = map(sum, zip(*lines, strict=True))
            names = some([each.path for each in changes], _NAMED)
            told = f"{len(changes)} {plural(len(changes), 'file')} +{added} -{gone}: {names}"
        self._log.record(one.ended(told, now()))

    def _copy(self, one: Tried) -> None:
        """Copy the files that a checkpoint of now holds, and all else that belongs to the session."""
        context, session_id = self._context, self._log.session.session_id
        store, root = context.checkpointer.lazy_store.needed(), context.workspace.root
        made = one.home.root.with_name("home.tmp")
        atomic_write.remove_folder(made)
        with repository_of(root) as repository:
            above = repository.names if repository else ()  # its rules count in the copy, too
        top, copied = (root, *root.parents)[len(above)], made / "workspace"
        copy, own = copied.joinpath(*above), made / "sessions" / session_id
        for folder in (copy, own, made / "inbox", made / "outbox"):
            folder.mkdir(parents=True)
        found = store.take()
        left = [each.path for each in found.left_out]
        held = [path for path in store.covered(found.id) if not is_of_git(path)]
        nested = [f"{each}.git" for each in found.listed.repositories] if found.listed else []
        held += [path for path in (*left, *nested) if not path.endswith("/")]
        folders = [path.rstrip("/") for path in left if path.endswith("/")]
        folders = [each for each in folders if each.rpartition("/")[2] != _CACHE and (root / each).is_dir()]
        beside = folders
        if sys.platform == "linux":
            from codingagent.workspace.copies import copy_files, files_below

            # What is mounted on can't be removed, as a check does with what it makes anew.
            below = {each: files_below(root, each) for each in folders}
            beside = [each for each, inner in below.items() if inner is None]
            copy_files(root, copy, [*held, *itertools.chain(*filter(None, below.values()))])
            rules = ["/".join((*above[:depth], name)) for depth in range(len(above)) for name in _RULES]
            rules += [f".git/{each.name}" for each in (top / ".git").glob("sharedindex.*")]
            copy_files(top, copied, (*_OF_GIT, *rules))
        inner = [copy / path for path in nested if (root / path).is_dir()]
        inner += [copied / name for name in _IN_GIT if (top / name).is_dir()]
        for folder in (*(copy / name for name in folders), *inner):  # what is mounted on must be there
            folder.mkdir(parents=True, exist_ok=True)
        for name, paths in (("beside", beside), ("ignored", folders)):
            (made / name).write_bytes(b"\0".join(map(os.fsencode, paths)))
        (made / "copy").symlink_to(copy.relative_to(made))
        context.secrecy.save()
        for path in (self._home.sessions.folder / session_id).iterdir():
            if path.suffix in (".jsonl", ".json"):
                shutil.copyfile(path, own / path.name)
            elif path.name == "shown":
                shutil.copytree(path, own / path.name)
        store.copy_to(own / "checkpoints", copy, found.id)
        shutil.copyfile(self._home.mailbox.processed / one.began.name, made / "inbox" / ANSWER)
        made.rename(one.home.root)

    def takeable(self, number: int) -> Tried:
        """Return a candidate whose changes can be made as they were tried; else UsageError says why not."""
        one, context = self.named(number), self._context
        if one.state or number not in self._log.session.tried:
            state = one.state or "was interrupted"
            raise UsageError(f"candidate {number} {state}; `codingagent try` goes on with it")
        store, root = context.checkpointer.lazy_store.needed(), context.workspace.root
        moved = store.changes(one.before, store.take().id) if one.before else ()
        names = [each.path for each in moved if each.kind != "left_out" and not is_of_git(each.path)]
        if names:
            what = f"{some(names, _NAMED)} changed in the workspace since candidate {number} was tried"
            again = quoted_path(self._home.mailbox.processed / one.began.name)
            raise UsageError(f"{what}; try it again: codingagent try {again}")
        shut = _folders(one, "ignored") + [own.relative_to(root).as_posix() for own in own_code_in(root).kept]
        paths = [each.path for each in store.changes(one.before, one.after)] if one.before else []
        bad = [path for path in paths if any(f"{path}/".startswith(f"{each}/") for each in shut)]
        left = store.left(one.before, one.after) if one.before else set[str]()
        if bad := sorted(left.difference(filecmp.cmpfiles(one.home.root / "copy", root, left)[0], bad)) + bad:
            what = f"candidate {number} changed {some(bad, _NAMED)}, in a folder that git ignores"
            raise UsageError(f"{what} or over 5 MB, which no copy holds; give the answer without `try`")
        return one


def _folders(one: Tried, which: str) -> list[str]:
    """Return the folders that git ignores, or those of them that commands see beside the copy."""
    names = (one.home.root / which).read_bytes().split(b"\0")
    return [os.fsdecode(name) for name in names if name]
