"""Commit to the person's repository what a session changed, and nothing that they changed themselves.

The session's changes of each file are replayed on HEAD, in order, each as a merge of three texts. The
result is committed from a temporary index by the person's own git, with their hooks and their signature. What
the person changed beside it, staged or not, stays as it is.

Over 500 lines: what is planned and what is done of it share the person's git, HEAD and index.
"""

import contextlib
import itertools
import math
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from msgspec import json

from codingagent.agent.uncommitted import WorkDone, chains_of
from codingagent.checkpoints.history import State, named
from codingagent.checkpoints.store import Checkpoints
from codingagent.errors import UsageError, WorkError
from codingagent.model.patterns import sections, table
from codingagent.process.runner import run_in_terminal, run_tool
from codingagent.workspace.git_files import Git, GitResult, contents_in, text_of
from codingagent.workspace.git_programs import AT_COMMIT, GitProgram, git_variables, programs_of
from codingagent.workspace.programs import find_program, persons_path
from codingagent.workspace.real_paths import from_root, resolved

_TOLD = sections(__file__)
# By the file of git's that says so.
_IN_PROGRESS = table(_TOLD["in progress"])
_LINK_MODE = "120000"
_NOT_SET = (b"unspecified", b"unset")
_PATIENCE_S = 600
# Only `git commit` runs the person's hooks.
_NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
_TRUST = "--trust-ignored"
_scratch = partial(TemporaryDirectory, prefix="codingagent-", ignore_cleanup_errors=True)


class IndexEntry(NamedTuple):
    """A file as git's index holds it: six octal digits and an object id."""

    mode: str
    blob: str


_Tree = Mapping[str, IndexEntry]
_Entry = IndexEntry | None
# How a file changed, step after step.
_Chain = Sequence[tuple[State | None, State | None]]
_Chains = Mapping[str, _Chain]


class CommitPlan(NamedTuple):
    """The entries that a commit sets, by path from the top; None deletes. `left` says what it leaves out."""

    entries: Mapping[str, _Entry]
    left: tuple[str, ...]


class Committed(NamedTuple):
    """A commit that was made: its id, its branch, and its files, by paths from the top."""

    commit: str
    branch: str
    files: tuple[str, ...]


class AtCommit(NamedTuple):
    """What of the person's runs at a commit, with their rights."""

    said: str
    """Hooks and filters in words, and the files of the workspace that they run; empty if there are none."""
    unseen: tuple[str, ...]
    """Those files that git ignores: no one sees what commands do to them."""


class _OverlapError(Exception):
    """Two changes are in the same lines, or in a file that has no lines."""


class PersonsRepository:
    """The person's repository around a workspace, through their own git."""

    def __init__(self, root: Path, *, trusts_ignored: bool = False) -> None:
        """Find the repository of a workspace; UsageError if there is none, or no git."""
        program = find_program("git", root)
        if program is None:
            raise UsageError("committing needs git, which is not installed here")
        self._program, self._at, self._edited_at = program, root, math.inf
        self._root, self._trusts_ignored = resolved(root), trusts_ignored
        self._variables = git_variables(root, trusts_all=trusts_ignored)
        self._programs = partial(programs_of, self._root, Git(program, run_tool, self._variables))
        top = self._said(
            *("rev-parse", "--show-toplevel"),
            why="the workspace is in no git repository that this git can read",
        )
        self._prefix = self._said("rev-parse", "--show-prefix")
        self._directory = Path(self._said("rev-parse", "--absolute-git-dir"))
        self._at = Path(top)

    def check(self, branch: str | None) -> None:
        """Refuse, with a UsageError, where a commit would be made in the middle of something else."""
        for name, what in _IN_PROGRESS.items():
            if (self._directory / name).exists():
                raise UsageError(f"{what} is in progress in this repository: finish it, then commit")
        if (lock := self._directory / "index.lock").exists():
            raise UsageError(f"another git works here, or one was killed: {lock} is there")
        if self._git("ls-files", "-u", "-z"):
            raise UsageError("files of this repository are unmerged: resolve them, then commit")
        who = 'git config --global user.name "YOUR NAME"; git config --global user.email YOU@EXAMPLE.ORG'
        lacks = f"git doesn't know who commits: type `{who}`, then commit again"
        for role in ("AUTHOR", "COMMITTER"):
            self._said("var", f"GIT_{role}_IDENT", why=lacks)
        if branch is None and not self.branch:
            raise UsageError("HEAD is on no branch, so a commit would be easily lost: add --branch NAME")
        if branch is not None:
            self._said("check-ref-format", "--branch", branch, why=f"{branch!r} can't name a branch")
            if self._said("for-each-ref", f"refs/heads/{branch}"):
                raise UsageError(f"there is a branch {branch} already: name another")

    @property
    def branch(self) -> str:
        """The name of the branch; empty if HEAD is detached."""
        return self._said("symbolic-ref", "-q", "--short", "HEAD", ok=(0, 1))

    @property
    def head(self) -> str:
        """The id of the last commit; empty if there is none."""
        return self._said("rev-parse", "-q", "--verify", "HEAD^{commit}", ok=(0, 1))

    def holds(self, commit: str) -> bool:
        """Return whether a commit is part of the branch's history."""
        asked = ("merge-base", "--is-ancestor", commit, "HEAD")
        return self._run(*asked, ok=(0, 1, 128)).returncode == 0

    def worktree(self, branch: str, made: contextlib.ExitStack) -> Path:
        """Return the workspace's folder in a working tree of a branch, beside the repository's own.

        The branch is made at HEAD, and the tree, where there is none: `made` takes back what was made.
        UsageError if git can't.
        """
        self._said("check-ref-format", "--branch", branch, why=f"{branch!r} can't name a branch")
        place = self._at.parent / f"{self._at.name}-{branch.replace('/', '-')}"
        known = self._said("worktree", "list", "--porcelain").split("\n\n")
        if not place.is_dir() or not any(
            {f"worktree {place.as_posix()}", f"branch refs/heads/{branch}"} <= {*each.split("\n")}
            for each in known
        ):
            if place.exists():
                raise UsageError(f"{place} is there already, and is no working tree of {branch}")
            is_there = self._said("rev-parse", "-q", "--verify", f"refs/heads/{branch}", ok=(0, 1))
            named = (str(place), branch) if is_there else ("-b", branch, str(place))
            filters = (each for each in self._programs() if each.what.startswith("filter."))
            _check_seen(self._unseen(filters), "make the working tree with git")
            ok = range(-64, 256)  # it may not have come to that
            if not is_there:
                made.callback(self._run, "branch", "-q", "-D", branch, ok=ok)
            made.callback(self._run, "worktree", "remove", "--force", str(place), ok=ok)
            self._said("worktree", "add", "-q", *named)
        return place / self._prefix

    def runs(self, paths: Iterable[str]) -> AtCommit:
        """Return what of the person's a commit of some files of the workspace runs."""
        how = ("check-attr", "-z", "--stdin", "filter")
        told = self._git(*how, data=_nul_ended(self._prefix + path for path in paths))
        used = {f"filter.{text_of(name)}" for name in told.split(b"\0")[2::3]}
        every = [
            each
            for each in self._programs()
            if AT_COMMIT.fullmatch(each.what) or each.what.rpartition(".")[0] in used
        ]
        files = sorted({path for each in every for path in self._there(each) if each.named[path]})
        run = (each for each in every if each.told or not each.named.keys().isdisjoint(files))
        names = dict.fromkeys(each.told or each.what for each in run)
        said = f"your git runs with your rights, on what answers wrote: {', '.join(names)}"
        said += f"; of the workspace: {named(files)}" if files else ""
        known = self._variables.get("PATH", "").split(os.pathsep)
        gone = {each: 0 for each in persons_path().split(os.pathsep) if each and each not in known}
        if gone:
            where = named([from_root(each, self._root) for each in gone])
            said += f"; not from {where}, where an answer could have put programs, without {_TRUST}"
        return AtCommit(said if names else "", self._unseen(every))

    def _there(self, program: GitProgram) -> list[str]:
        return [path for path in program.named if os.path.lexists(self._root / path)]

    def _unseen(self, programs: Iterable[GitProgram]) -> tuple[str, ...]:
        paths = {path for each in programs for path in self._there(each)}
        # What a link on the way leads to is named, too; git looks behind none.
        real = [p for p in paths if (self._root / p).parent.resolve() == (self._root / p).parent]
        data = _nul_ended(self._prefix + path for path in real)
        ignored = self._run("check-ignore", "-z", "--stdin", data=data, ok=(0, 1)).stdout.split(b"\0")[:-1]
        return tuple(sorted(text_of(each).removeprefix(self._prefix) for each in ignored))

    # --- what is committed ---------------------------------------------------------------------
    def plan(
        self,
        checkpoints: Checkpoints,
        work: WorkDone,
        addable_of: Callable[[Collection[str]], set[str]],
        *,
        whole: bool,
        tell: Callable[[str], None],
    ) -> CommitPlan:
        """Return what a commit of some work sets: with `whole`, files as they are on disk.

        `addable_of` returns those of some paths that `git add` takes; `tell` is told what runs. UsageError if
        it changes nothing, changes of the person's are in the same lines, or nobody saw what would run.
        """
        changed, unknown = chains_of(checkpoints, work.steps)
        runs = self.runs(changed)
        if runs.said:
            tell(runs.said)
        _check_seen(() if self._trusts_ignored else runs.unseen, f"add {_TRUST}")
        head, index = self._tree(self.head), self._indexed()
        chains, ignored = self._taken(changed, addable_of(changed), {*head, *index})
        left = unknown + ignored
        kept, gone, more = self._kept(checkpoints, chains, head, index)
        on_disk, renamed = self._on_disk(chains, head, index) if whole or gone else ({}, [])
        wanted = on_disk if whole else self._replayed(checkpoints, kept, head, index)
        found = {path: new for path, new in wanted.items() if new != head.get(path)}
        left += [] if whole and found else more
        # HEAD would lose what has another name by now.
        if parted := [new for old, new in renamed if old in found and new not in found]:
            why = "you have renamed what the session moved: commit that first"
            raise UsageError(f"{named(parted)}: {why} (git commit), or take both with --whole")
        if not found:
            why = "; ".join(left) or "HEAD has what the session changed"
            raise UsageError(f"there is nothing to commit: {why}")
        # What the session took from under another name that the person staged.
        found |= {path: None for path in wanted.keys() & index if not (wanted[path] or path in head)}
        for path, new in found.items():
            if new and path in head and path not in index and chains[path][0][0]:
                or_both = "" if self._is_there(path) else ", or take both with --whole"
                what = f"you have staged that {path} is deleted or renamed, and the session changed it"
                raise UsageError(f"{what}: commit that first (git commit){or_both}")
            try:
                self._staged(index.get(path), head.get(path), new)
            except _OverlapError:
                what = f"what you have staged of {path} is in the same lines as the session's change"
                how = "unstage it (git restore --staged), or commit it first"
                raise UsageError(f"{what}: {how}") from None
        return CommitPlan(found, tuple(left))

    def _taken(self, chains: _Chains, addable: set[str], known: Collection[str]) -> tuple[_Chains, list[str]]:
        """Return how each file changed that git may take, by paths from the top, and what is left out."""
        places = {self._prefix + path: path for path in chains}
        unadded = {p for p, path in places.items() if not (path in addable or p in known)}
        ignored = sorted(filter(self._is_there, unadded))
        why = "ignored by git, or of another repository"
        left = [f"{named([places[p] for p in ignored])}: {why}"] if ignored else []
        return {p: chains[path] for p, path in places.items() if p not in ignored}, left

    def _kept(
        self, checkpoints: Checkpoints, chains: _Chains, head: _Tree, index: _Tree
    ) -> tuple[_Chains, list[str], list[str]]:
        """Return the changes that the person has not taken back, as a stash does; files that are gone; words.

        A file that is as it was between two steps, or as HEAD has it, has the changes before that one alone.
        """
        places = {path: path.removeprefix(self._prefix) for path in chains}
        states = checkpoints.states(places.values())
        now = {path: states[place] for path, place in places.items()}
        others = {path: chain for path, chain in chains.items() if now[path] != chain[-1][1]}
        if as_head := head.keys() & index.keys() & others.keys():
            as_head = as_head.difference(self._unlike("diff-index", "HEAD"), *self._hidden().values())
        kept: dict[str, _Chain] = {**chains}
        for path, chain in others.items():
            ends = [state for change in chain for state in change]
            count = len(chain)
            if now[path] is None:  # a deletion between two steps was the session's
                count *= path in head and path not in index
            elif now[path] in ends:
                count = (len(ends) - ends[::-1].index(now[path])) // 2
            kept[path] = chain[: 0 if path in as_head else count]
        out = {path for path, chain in kept.items() if not chain}
        gone = sorted(path for path in out if now[path] is None)
        words = {
            "you have deleted or renamed it: commit that with git": gone,
            "you have taken the changes back, or stashed them (git stash pop)": sorted(out.difference(gone)),
        }
        told = ((why, [places[path] for path in paths]) for why, paths in words.items() if paths)
        left = [f"{named(paths)}: {why}" for why, paths in told]
        return {path: chain for path, chain in kept.items() if chain}, gone, left

    def _unlike(self, *asked: str, variables: Mapping[str, str] | None = None) -> set[str]:
        """Return the files that are on disk otherwise than where git is asked to look."""
        self._run("update-index", "-q", "--refresh", ok=(0, 1), variables=variables)
        told = self._git(asked[0], "--name-only", "-z", *asked[1:], variables=variables)
        return {*map(text_of, told.split(b"\0"))}

    def _is_there(self, path: str) -> bool:
        return (self._at / path).is_symlink() or (self._at / path).is_file()

    def _replayed(
        self, checkpoints: Checkpoints, chains: _Chains, head: _Tree, index: _Tree
    ) -> dict[str, _Entry]:
        """Return each file as HEAD has it with the session's changes replayed on it."""
        wanted = {
            (path, state): None
            for path, chain in chains.items()
            for change in chain
            for state in change
            if state is not None
        }
        clean = self._cleaned(checkpoints, head, [*wanted])
        found: dict[str, _Entry] = {}
        overlaps: list[str] = []
        for path, chain in chains.items():
            changes = [(clean.get((path, old)), clean.get((path, new))) for old, new in chain]
            new = head.get(path)
            # Some of it may be committed already, by the person.
            done = [number for number, (_, after) in enumerate(changes, 1) if after == new]
            try:
                if chain[0][0] and path in index and path not in head:
                    raise _OverlapError  # noqa: TRY301  # it goes on as one of git's own
                for old, after in changes[done[-1] if done else 0 :]:
                    new = self._merged(new, old, after)
            except _OverlapError:
                overlaps.append(path)
            found[path] = new
        if overlaps:
            why = "changes of your own are in the same lines as the session's"
            if new_here := [path for path in overlaps if path not in head]:
                overlaps = new_here
                why = "you have not committed it yet, and the session changed it"
            remedy = "commit yours first, or take both with --whole"
            raise UsageError(f"{named(overlaps)}: {why}; {remedy}")
        return found

    def _on_disk(
        self, chains: _Chains, head: _Tree, index: _Tree
    ) -> tuple[dict[str, _Entry], list[tuple[str, str]]]:
        """Return files as `git add` takes them now, and pairs of names of those that were renamed."""
        paths = {*chains}
        gone = {p for p, chain in chains.items() if chain[-1][1] and not self._is_there(p)}
        if gone or any(p not in head and chain[0][0] for p, chain in chains.items()):
            paths |= index.keys() ^ head.keys()
            listed = map(text_of, self._git("ls-files", "-doz", "--exclude-standard").split(b"\0"))
            paths |= {path for path in listed if path and path[-1] != "/"}  # else of another repository
        with self._index() as variables:
            # git refuses a name that neither HEAD nor the disk has.
            data = _nul_ended(path for path in paths if path in head or self._is_there(path))
            # What is outside of a sparse checkout is there as well.
            literal = ("--literal-pathspecs", "-c", "core.sparseCheckout=false")
            how = ("add", "-A", "-f", "--pathspec-from-file=-", "--pathspec-file-nul")
            self._run(*literal, *how, data=data, variables=variables)
            now = _parsed(self._git("ls-files", "-s", "-z", variables=variables))
            asked = ("diff-index", "--cached", "-M", "--diff-filter=R", "--name-status", "-z")
            told = self._git(*asked, "HEAD", variables=variables) if paths > {*chains} else b""
        if lost := [p for p in chains if self._is_there(p) and not (p in now or p in head)]:
            why = "git takes it for another name of a file in HEAD"
            raise UsageError(f"{named(lost)}: {why}; commit the rename first (git commit)")
        names = [*map(text_of, told.split(b"\0"))]
        both = zip(names[1::3], names[2::3], strict=False)
        renamed = [pair for pair in both if not chains.keys().isdisjoint(pair)]
        return {path: now.get(path) for path in (*chains, *itertools.chain(*renamed))}, renamed

    def _merged(self, ours: _Entry, old: _Entry, new: _Entry) -> _Entry:
        """Return our version of a file with the change from an old one to a new one; _OverlapError."""
        if new in (old, ours):
            return ours
        if ours == old:
            return new
        if ours is None or old is None or new is None:
            raise _OverlapError
        mode = new.mode if new.mode != old.mode else ours.mode
        if new.blob in (old.blob, ours.blob):
            return IndexEntry(mode, ours.blob)
        if ours.blob == old.blob:
            return IndexEntry(mode, new.blob)
        if _LINK_MODE in (ours.mode, old.mode, new.mode):
            raise _OverlapError
        with _scratch() as folder:
            places = [Path(folder) / name for name in ("yours", "before", "after")]
            blobs = self._contents(ours.blob, old.blob, new.blob)
            for place, data in zip(places, blobs, strict=True):
                place.write_bytes(data)
            # More than 0: so many conflicts; 255: no text.
            how = ("merge-file", "-p", "-q", *map(os.fspath, places))
            merged = self._run(*how, ok=range(256))
        if merged.returncode:
            raise _OverlapError
        return IndexEntry(mode, self._store(merged.stdout, "--no-filters"))

    def _staged(self, staged: _Entry, old: _Entry, new: _Entry) -> _Entry:
        """Return what stays staged after a commit; of a file that is new in either, the committed one."""
        return self._merged(staged, old, new) if old and staged else new

    def _hidden(self) -> dict[str, list[str]]:
        """Return the files at which the person told git not to look, by the option that says so."""
        lines = filter(None, self._git("ls-files", "-v", "-z").split(b"\0"))
        listed = [(line[:1], text_of(line[2:])) for line in lines]
        return {
            "--skip-worktree": [path for tag, path in listed if tag in (b"S", b"s")],
            "--assume-unchanged": [path for tag, path in listed if tag.islower()],
        }

    def _cleaned(
        self, checkpoints: Checkpoints, head: _Tree, wanted: Sequence[tuple[str, State]]
    ) -> dict[tuple[str, State | None], IndexEntry]:
        """Return states of files as git would add them: through the person's filters and line ends."""
        # As on Windows: there the disk says nothing about either.
        is_set = partial(self._said, "config", "--type=bool", "--get", ok=(0, 1))
        has_modes, has_links = (is_set(name) != "false" for name in ("core.fileMode", "core.symlinks"))
        contents = checkpoints.contents({state.blob for _, state in wanted})
        # What git changes when it is added, but for line ends.
        asked = ("check-attr", "-z", "--stdin", "filter", "ident", "working-tree-encoding")
        attributes = self._git(*asked, data=_nul_ended({path for path, _ in wanted})).split(b"\0")
        pairs = zip(attributes[::3], attributes[2::3], strict=False)
        filtered = {text_of(path) for path, value in pairs if value not in _NOT_SET}
        found: dict[tuple[str, State | None], IndexEntry] = {}
        raw: list[tuple[str, State, str]] = []
        for path, state in wanted:
            data, was, mode = contents[state.blob], head.get(path), f"{state.git_mode:o}"
            if not has_links and was is not None and was.mode == _LINK_MODE:
                mode = _LINK_MODE
            elif not (has_modes or state.is_link):
                mode = "100644" if was is None else was.mode
            is_raw = mode == _LINK_MODE or (b"\r\n" not in data and path not in filtered)
            if not is_raw and b"\r\n" in data and was is not None and was.mode != _LINK_MODE:
                # HEAD may have it in another form than git would add: it then stays in that form.
                (before,) = self._contents(was.blob)
                is_raw = self._store(before, f"--path={path}") != was.blob
            if is_raw:
                raw.append((path, state, mode))
            else:
                found[path, state] = IndexEntry(mode, self._store(data, f"--path={path}"))
        with _scratch() as folder:
            names = [Path(folder) / str(number) for number in range(len(raw))]
            for name, (_, state, _) in zip(names, raw, strict=True):
                name.write_bytes(contents[state.blob])
            listed = b"".join(os.fsencode(name) + b"\n" for name in names)
            how = ("hash-object", "-w", "--no-filters", "--stdin-paths")
            blobs = self._git(*how, data=listed).decode().split() if raw else []
        for (path, state, mode), blob in zip(raw, blobs, strict=True):
            found[path, state] = IndexEntry(mode, blob)
        return found

    def _store(self, data: bytes, *options: str) -> str:
        return self._git("hash-object", "-w", "--stdin", *options, data=data).decode().strip()

    def _contents(self, *blobs: str) -> list[bytes]:
        told = self._git("cat-file", "--batch", data="\n".join(blobs).encode() + b"\n")
        where = "the objects of your repository"
        return [data for _, data in contents_in(told, blobs, where)]

    def _tree(self, commit: str) -> _Tree:
        """Return the files of a commit; none before the first."""
        listed = ("ls-tree", "-r", "-z", "--full-tree", commit)
        return _parsed(self._git(*listed)) if commit else {}

    def _indexed(self) -> _Tree:
        return _parsed(self._git("ls-files", "-s", "-z"))

    # --- the commit ----------------------------------------------------------------------------
    def commit(self, plan: CommitPlan, message: str, *, edit: bool, branch: str | None) -> Committed:
        """Make the commit, its message edited if `edit`; WorkError, and no change, if git can't."""
        before, old_branch = self.head, self.branch
        try:
            if branch is not None:
                self._git("switch", "-q", "-c", branch)
            self._commit(plan, message, edit=edit)
        except BaseException:
            # A branch that was made for nothing goes, unless the person has gone on meanwhile.
            if branch is not None and (self.branch, self.head) == (branch, before):
                on_branch = ("symbolic-ref", "HEAD", f"refs/heads/{old_branch}")
                self._git(*(on_branch if old_branch else ("switch", "-q", "--detach")))
                if before:
                    self._git("branch", "-q", "-D", branch)
            raise
        try:
            files = self._follow(before, plan)
        except UsageError as fault:
            made = f"commit {self.head[:10]} was made, and git's index could not follow it"
            raise WorkError(f"{made} ({fault}): `git reset` fixes that") from fault
        return Committed(self.head, self.branch, files)

    def _commit(self, plan: CommitPlan, message: str, *, edit: bool) -> None:
        before = self.head
        with self._index() as variables:
            self._set(plan.entries, variables)
            file = Path(variables["GIT_INDEX_FILE"]).with_name("message")
            file.write_bytes(message.encode(errors="replace"))
            # A line of Markdown may begin with #.
            cleanup = ("--edit", "--cleanup=scissors") if edit else ("--cleanup=whitespace",)
            how = ("-C", os.fspath(self._at), "commit", "-q", "-F", os.fspath(file), *cleanup)
            events = file.with_name("events")
            traced = {"GIT_TRACE2_EVENT": os.fspath(events)} if edit else {}
            status = run_in_terminal([self._program, *how], variables | traced)
            self._edited_at = _editor_start(events)
            is_made = self.head != before
            if is_made and status:  # a hook after it failed, or somebody else committed
                tree = self._said("rev-parse", "HEAD^{tree}")
                is_made = tree == self._git("write-tree", variables=variables).decode().strip()
        if not is_made:
            raise WorkError("git made no commit (see above)")

    def _follow(self, before: str, plan: CommitPlan) -> tuple[str, ...]:
        """Have the person's index agree with the commit, but for what they staged; return its files."""
        old, new, index = self._tree(before), self._tree(self.head), self._indexed()
        files = tuple(sorted(path for path in {*old, *new} if old.get(path) != new.get(path)))
        changed: dict[str, _Entry] = {}
        overlaps: set[str] = set()  # of a hook's change with what was staged
        for path in {*files, *plan.entries}:
            try:
                changed[path] = self._staged(index.get(path), old.get(path), new.get(path))
            except _OverlapError:
                overlaps.add(path)
        if overlaps:  # the commit may have all that the file has by now
            with self._index() as variables:
                overlaps -= self._unlike("diff-files", variables=variables)
            changed |= {path: new.get(path) for path in overlaps}
        hidden = self._hidden()
        self._set(changed, self._variables)
        for option, paths in hidden.items():
            data = _nul_ended(path for path in paths if changed.get(path))
            self._git("update-index", option, "-z", "--stdin", data=data)
        return files

    def altered(self, plan: CommitPlan) -> set[str]:
        """Return the files of a plan that HEAD has in another form: as a hook added them."""
        now = self._tree(self.head)
        return {path for path, entry in plan.entries.items() if now.get(path) != entry}

    def hooked(self, plan: CommitPlan) -> dict[str, str]:
        """Return a plan's files by their paths in the workspace, but for what was written after hooks ran."""
        return {
            path.removeprefix(self._prefix): path
            for path in plan.entries
            if not self._is_there(path) or os.lstat(self._at / path).st_mtime <= self._edited_at
        }

    def differing(self, files: Iterable[str]) -> list[str]:
        """Return those files in which the person has changes that are not committed."""
        return sorted(self._unlike("diff-files").intersection(files))

    def _set(self, changed: Mapping[str, _Entry], variables: Mapping[str, str]) -> None:
        nothing = IndexEntry("0", "0" * len(self.head))
        lines = (" ".join(entry or nothing) + f"\t{path}" for path, entry in changed.items())
        how = ("update-index", "-z", "--index-info")
        self._run(*how, data=_nul_ended(lines), variables=variables)

    @contextlib.contextmanager
    def _index(self) -> Iterator[dict[str, str]]:
        """Yield the variables that have git use a temporary index, which holds HEAD."""
        with _scratch() as folder:
            path = Path(folder) / "index"
            # What it knows of the files on disk need not be read again.
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(self._directory / "index", path)
            variables = self._variables | {"GIT_INDEX_FILE": os.fspath(path)}
            what = ("--reset", "HEAD") if self.head else ("--empty",)
            self._run("read-tree", *what, variables=variables)
            yield variables

    def _run(
        self,
        *args: str,
        data: bytes = b"",
        ok: Collection[int] = (0,),
        variables: Mapping[str, str] | None = None,
        why: str = "",
    ) -> GitResult:
        argv = (self._program, "-C", os.fspath(self._at), *_NO_HOOKS, *args)
        done = run_tool(argv, variables or self._variables, data, _PATIENCE_S)
        if done.returncode not in ok:
            # What is named may stand in lines of its own.
            told = re.sub(r"\n[ \t]+", " ", done.stderr.decode(errors="replace").strip())
            lines = told.split("\n")
            said = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1])
            raise UsageError(f"{why or f'git {args[0]} failed'}: {said or done.returncode}")
        return done

    def _git(self, *args: str, data: bytes = b"", variables: Mapping[str, str] | None = None) -> bytes:
        return self._run(*args, data=data, variables=variables).stdout

    def _said(self, *args: str, ok: Collection[int] = (0,), why: str = "") -> str:
        return text_of(self._run(*args, ok=ok, why=why).stdout).removesuffix("\n")


def _check_seen(unseen: Collection[str], remedy: str) -> None:
    if unseen:
        why = "which git ignores, so nobody saw what commands changed there"
        raise UsageError(f"your hooks or filters use {named([*unseen])}, {why}: look at it, then {remedy}")


def _editor_start(events: Path) -> float:
    """Return when git, by its events, opened an editor, in seconds since the epoch; infinity: it did not."""
    with contextlib.suppress(FileNotFoundError):
        for line in events.read_bytes().splitlines():
            if b'"child_class":"editor"' in line:
                return datetime.fromisoformat(json.decode(line)["time"]).timestamp()
    return math.inf


def _nul_ended(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\0" for line in lines).encode(errors="surrogateescape")


def _parsed(listed: bytes) -> dict[str, IndexEntry]:
    """Return the entries that `ls-tree` or `ls-files -s` lists."""
    found: dict[str, IndexEntry] = {}
    for line in listed.split(b"\0"):
        head, _, name = line.partition(b"\t")
        if not name:
            continue
        mode, *others = head.decode().split()
        # "MODE blob ID" of a tree, "MODE ID STAGE" of an index.
        found[text_of(name)] = IndexEntry(mode, max(others, key=len))
    return found
