"""Take checkpoints of the workspace, whoever changed its files, and restore them, without following a link.

git's metadata comparison finds the few files to read; their content is stored in a private git directory.
A checkpoint covers what git would add: not ignored files, `.git` or large files; nested repositories are
covered too. Where a link is on the way, a file in place of a folder, or one of the agent's own folders, the
path is left alone.

Over 500 lines: what one checkpoint takes in, the next one and a restore must see alike.
"""

import contextlib
import errno
import itertools
import os
import stat
import time
from collections import Counter
from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from codingagent.checkpoints import history
from codingagent.checkpoints.compare import Notes, Reader, with_folders
from codingagent.checkpoints.history import Change, Checkpoint, LeftOut, State, is_of_git
from codingagent.checkpoints.repository import STORED, Import, Store, blob_id, names_of, repository_files
from codingagent.errors import OperationError, disk_errors
from codingagent.model.journal_entries import KeptEdit
from codingagent.model.paths import is_git_name, is_home_name
from codingagent.policy import rules
from codingagent.storage.atomic_write import free_name
from codingagent.workspace import dirfd, git_files, walk

# Files that other programs execute are covered even if git ignores them.
_TAKEN_IN = (*rules.TAKEN_IN, ".github")
_EXECUTED = tuple(rules.EXECUTED_NAMES)
# What looking at a file costs beside reading it, in bytes.
_FILE_BYTES = 20_000


class Limits(Struct, frozen=True):
    """The limits of one checkpoint; the first of all may take in more files."""

    file_bytes: int = 5_000_000
    # All ignored or large content that is kept because operations change it.
    held_bytes: int = 100_000_000
    new_files: int = 50_000
    first_files: int = 500_000
    new_bytes: int = 10**9
    # A file changed this recently may change again with the same modification time.
    recent_ns: int = 2 * 10**9
    # So much may be read again each time before git is asked to note the metadata; a file counts as more.
    stale_bytes: int = 10**6


class Checkpoints(Reader):
    """The checkpoints of a workspace, a real path, without `hidden` folders, in a `store` of theirs."""

    limits = Limits()
    open_folder = staticmethod(dirfd.open_root)

    def __init__(self, store: Path, root: Path, hidden: tuple[Path, ...], git: git_files.Git) -> None:
        self._hidden = (*hidden, store.absolute())
        hidden_paths = git_files.paths_below(root, self._hidden)
        super().__init__(Store(store.absolute(), root, git), hidden_paths)
        with disk_errors(f"put the workspace {root} back where it was: it can't be opened"):
            self._folder = self.open_folder(root)
        self._covered: tuple[str, frozenset[str]] = "", frozenset()  # a commit, and its paths
        self.files_read = 0  # by the checkpoint that is being taken

    def close(self) -> None:
        self._folder.close()

    # --- taking --------------------------------------------------------------------------------
    def take(self, held: Collection[str] = ()) -> Checkpoint:
        """Checkpoint the files as they are now; set a damaged store aside and begin a new one.

        `held` are paths to cover even if ignored or large, up to a total limit. WorkError if it can't be
        taken; earlier checkpoints are unchanged.
        """
        latest = self._store.latest()
        try:
            return self._take(latest, held)
        except git_files.GitError:
            # A damaged store, or a full disk?
            if not latest or self._is_readable(latest):
                raise
        aside = self._store.set_aside()
        return replace(self._take("", held), set_aside=os.fspath(aside))

    def _take(self, base: str, held: Collection[str]) -> Checkpoint:
        store = self._store
        dirfd.check_root(store.root, self._folder)
        store.prepare()
        notes = self._notes(base) if base else Notes()
        taking = Snapshot(notes, self.limits, {*held}, Import(store))
        store.ready_index(base)
        listed = self._list(taking, base)
        limit = self.limits.new_files if base else self.limits.first_files
        with contextlib.closing(self._ground()) as ground:
            names = {*taking.bounded(limit), *taking.known}
            # By folder, so that the walk stays where it is.
            by_folder = sorted(names, key=lambda path: path.rpartition("/"))
            for self.files_read, path in enumerate(by_folder, 1):
                if not self._is_hidden(path):
                    taking.examine(path, ground)
        links = tuple(f"{path}/" for path, state in taking.changes.items() if state and state.is_link)
        # Of a folder that is a link to itself now, git can't tell that its files are gone.
        unseen = {path for path in self.covered(base) if path.startswith(links)} if links else set[str]()
        unseen -= taking.known.keys()
        taking.changes |= dict.fromkeys(unseen)
        new, new_notes = base, taking.noted(is_first=not base)
        commits = partial(taking.stream.commits, base, [taking.changes], new_notes.encoded())
        is_new = bool(taking.changes) or new_notes != notes or not base
        recent = taking.recent if taking.stale_bytes > self.limits.stale_bytes else None
        if is_new or recent is not None:
            new = store.write_index(base, commits if is_new else lambda: [base], taking.changes, recent)
        if not any(state and state.is_link for state in taking.changes.values()):
            covered = self.covered(base)
            gone = {path for path, state in taking.changes.items() if state is None}
            if made := taking.changes.keys() - gone - covered:
                covered |= made
            self._covered = new, covered - gone if gone else covered
        self._known[new] = new_notes
        if base and new != base and not unseen:
            states = {path: (taking.known.get(path), s) for path, s in taking.changes.items()}
            self._remember(base, new, states)
        self.files_read = 0
        return Checkpoint(new, new_notes.left, listed=listed)

    def _list(self, taking: "Snapshot", base: str) -> git_files.GitListing:
        """Find the paths to read: git compares metadata, and names the files that belong."""
        store, notes, root = self._store, taking.notes, os.fspath(self._store.root)
        words = ("diff-files", "--raw", "-z", "--no-abbrev", "--ignore-submodules=all")
        found: git_files.GitListing
        changed, covered, found = git_files.together(
            None,
            lambda: names_of(store.git(*words, index=store.index(base))) if base else [],
            lambda: self.covered(base),
            # The request asks there, too.
            lambda: git_files.belonging(store.root, store.own_git, self._hidden_paths),
        )
        for head, path in zip(changed[::2], changed[1::2], strict=True):
            mode, _, blob, *_ = head[1:].split(" ")
            state = notes.state(path, int(mode, 8), blob)
            if state is not None:
                taking.known[path] = state
        # Sets of all files would cost more than these passes.
        listed, ignored = (
            git_files.text_of(b"\0".join(names)).split("\0") if names else []
            for names in (found.files, found.ignored)
        )
        taken, ignored = _taken_in(root, ignored)
        files = listed + taken
        new = {path for path in files if path not in covered}
        odd = {path for path in new if STORED in path}  # it would pass for another one's name
        taking.new = taking.held - covered | new - odd
        taking.forced = taking.held - covered - new
        taking.left = [LeftOut(name, reason) for name, reason in found.unread]
        taking.left += [LeftOut(path, "its name can't be recorded") for path in odd]
        of_git, unseen = repository_files(root, found)
        taking.new |= of_git - covered
        without = {*ignored}
        gone = covered.difference(files) if ignored else set[str]()
        tracked = {path for path in gone | of_git if not without.isdisjoint(with_folders(path))}
        taking.tracked = tracked | without & taking.held
        taking.left += [
            LeftOut(path, history.UNSEEN if path in unseen else history.IGNORED)
            for path in without - taking.tracked
            if not self._is_hidden(path)
        ]
        return found

    def covered(self, commit: str) -> frozenset[str]:
        """Return the paths of all files of the latest checkpoint."""
        if self._covered[0] != commit:
            listed = self._store.git("ls-files", "-z", index=self._store.index(commit))
            self._covered = commit, frozenset(names_of(listed))
        return self._covered[1]

    # --- edits whose checkpoints follow later --------------------------------------------------
    def covers_plainly(self, commit: str, path: str) -> bool:
        """Return whether an edit changes nothing of a checkpoint but the content of a file in it."""
        notes = self._notes(commit)
        is_odd = path in notes.unusual or path in notes.tracked
        return not is_odd and path in self.covered(commit)

    def keep(self, commit: str, path: str, old: bytes, new: bytes, mode: int) -> KeptEdit | None:
        """Keep both contents of an edit, so that `follow` can make checkpoints of it; None if it is odd."""
        mode = stat.S_IFREG | mode & 0o6777
        is_small = max(len(old), len(new)) <= self.limits.file_bytes
        if not is_small or mode not in self._notes(commit).usual:
            return None
        return KeptEdit(path, self._store.keep(old), self._store.keep(new), mode)

    def follow(self, edits: Iterable[KeptEdit]) -> list[str]:
        """Make checkpoints before and after each edit that was kept; return their ids, in their order.

        What else changed is in none of them.
        """
        base, states = self._store.latest(), list[dict[str, State | None]]()
        for edit in edits:
            states += [{edit.path: State(blob, edit.mode)} for blob in (edit.before, edit.after)]
        self._store.prepare()
        self._store.ready_index(base)
        covered, notes = self.covered(base), self._notes(base)
        made = Import(self._store).commits(base, states, notes.encoded())
        last = {path: state for each in states for path, state in each.items()}
        self._store.write_index(base, lambda: made, last)
        self._covered, self._known[made[-1]] = (made[-1], covered), notes
        return made

    # --- restoring -----------------------------------------------------------------------------
    def restore(self, target: str, now: str, paths: Collection[str]) -> list[LeftOut]:
        """Restore paths to one checkpoint where they are as in another, which was taken just before.

        Return those that were left alone. Nothing is lost: what `now` does not hold is never overwritten or
        removed. If it is killed and run again, with the same `now` or a new one, the result is the same.
        """
        wanted = {*paths}
        changes = [change for change in self.changes(target, now) if change.path in wanted]
        certain = [change for change in changes if change.kind != "left_out"]
        unknown = (change.path for change in changes if change.kind == "left_out")
        left = [LeftOut(path, history.NO_CHECKPOINT) for path in unknown]
        by_blob: dict[str, list[Change]] = {}
        for change in certain:
            if change.old is not None:
                by_blob.setdefault(change.old.blob, []).append(change)
        # Removals make room for additions; innermost first, so that folders become empty.
        made = [change for change in reversed(certain) if change.old is None]
        blobs = self._store.blobs(by_blob)
        additions = ((change, data) for blob, data in blobs for change in by_blob[blob])
        with contextlib.closing(self._ground()) as ground:
            for change, data in itertools.chain(((each, b"") for each in made), additions):
                try:
                    ground.restore(change, data, self.limits.held_bytes)
                except (OSError, OperationError) as fault:
                    left.append(LeftOut(change.path, _obstacle(fault)))
        for path in {change.path for change in made}.difference(each.path for each in left):
            git = (self._store.root / path).parent
            # A repository that was not there is taken out of the workspace: no commit in it is lost.
            # On another disk the rest stays, which makes git run nothing.
            with contextlib.suppress(OSError):
                if f"/{path}".endswith("/.git/config") and git.is_dir() and git.resolve() == git:
                    aside = free_name(self._store.path.parent, "removed-{}.git")
                    dirfd.retried(partial(os.rename, git, aside))
        return left

    def copy_to(self, path: Path, root: Path, commit: str) -> None:
        """Make a store for a copy of the latest checkpoint's files at `root`; it shares the content."""
        self._store.copy_to(path, root, commit)

    def states(self, paths: Iterable[str]) -> dict[str, State | None]:
        """Return what is at some paths now; of what can't be read, a state that no checkpoint has."""
        found: dict[str, State | None] = {}
        with contextlib.closing(self._ground()) as ground:
            for path in paths:
                found[path] = State("", 0)
                with contextlib.suppress(OSError, OperationError):
                    look = ground.look(path, self.limits.held_bytes)
                    found[path] = look.state if look else None
        return found

    def _ground(self) -> "SafeReader":
        return SafeReader(self._folder, dirfd.hidden_identities(self._hidden, self._folder))


class Snapshot(Struct):
    """A checkpoint being taken, after one with these notes: what is to be read, and what was."""

    notes: Notes
    limits: Limits
    held: set[str]
    stream: Import
    tracked: set[str] = field(default_factory=set)
    """Covered paths that are ignored now, by themselves or with a folder."""
    known: dict[str, State] = field(default_factory=dict)
    """Covered paths whose metadata changed, with their old state."""
    forced: set[str] = field(default_factory=set)
    """Those of `held` that nothing else would cover, as far as it was asked."""
    new: set[str] = field(default_factory=set)
    left: list[LeftOut] = field(default_factory=list)
    changes: dict[str, State | None] = field(default_factory=dict)
    recent: dict[str, State] = field(default_factory=dict)
    """Files that may change again without a difference in their metadata."""
    stale_bytes: int = 0
    """What was read though it is not recent: the index lacks the metadata."""
    new_bytes: int = 0
    held_blobs: dict[str, int] = field(default_factory=dict)

    def bounded(self, limit: int) -> Iterable[str]:
        """Return new paths without the topmost folders that hold most, until they are within the limit."""
        by_folder: dict[str, list[str]] = {}
        for path in self.new - self.known.keys():
            folder, slash, _ = path.partition("/")
            by_folder.setdefault(folder + slash if slash else "", []).append(path)
        count = sum(map(len, by_folder.values()))
        for folder, held in sorted(by_folder.items(), key=lambda item: -len(item[1])):
            if count > limit:
                reason = f"more than {limit} new files at once"
                self.left += [LeftOut(name, reason) for name in ([folder] if folder else held)]
                # Not what other programs execute: it is never displaced by a crowd.
                by_folder[folder] = [path for path in held if rules.covering(_EXECUTED, path)]
                count -= len(held) - len(by_folder[folder])
        return itertools.chain.from_iterable(by_folder.values())

    def examine(self, path: str, ground: "SafeReader") -> None:
        """Read a path, and keep what differs."""
        old, limits, look = self.known.get(path), self.limits, None
        if old is None and walk.is_temporary(path.rpartition("/")[2]):
            return
        try:
            limit = limits.held_bytes if path in self.held else limits.file_bytes
            if (look := ground.look(path, limit)) is not None:
                self._check_room(path, look)
        except (OSError, OperationError) as fault:
            self.left.append(LeftOut(path, _obstacle(fault)))
            look = None
        state = None if look is None else look.state
        if state != old:
            self.changes[path] = state
        if look is None or state is None:
            return
        if old is None or old.blob != state.blob:
            self.stream.blob(look.data)
        if look.changed_ns > time.time_ns() - limits.recent_ns:
            self.recent[path] = state
        elif not is_of_git(path):
            self.stale_bytes += len(look.data) + _FILE_BYTES

    def _check_room(self, path: str, look: "_Present") -> None:
        """Count new content, and content that is kept only because of operations."""
        size, limits = len(look.data), self.limits
        if path not in self.known:
            if self.new_bytes + size > limits.new_bytes:
                most = f"{limits.new_bytes / 10**9:g} GB"
                raise OperationError(f"more than {most} of new files at once")
            self.new_bytes += size
        if path in self.forced or size > limits.file_bytes:
            kept = {**self.notes.held, **self.held_blobs, look.state.blob: size}
            if sum(kept.values()) > limits.held_bytes:
                limit = f"{limits.held_bytes // 10**6} MB of ignored or large files"
                raise OperationError(f"more than {limit} are kept already")
            self.held_blobs[look.state.blob] = size

    def noted(self, *, is_first: bool) -> Notes:
        """Return the notes of the new checkpoint; the first one tells which modes are usual."""
        files = {path: each for path, each in self.changes.items() if each and not each.is_link}
        usual = self.notes.usual
        if is_first:
            common = Counter(state.mode for state in files.values()).most_common()
            by_kind = {bool(mode & 0o100): mode for mode, _ in reversed(common)}
            usual = by_kind.get(False, usual[0]), by_kind.get(True, usual[1])
        unusual = {path: state for path, state in files.items() if state.mode not in usual}
        old = self.notes.unusual.items()
        unusual |= {path: state for path, state in old if path not in self.changes}
        left = tuple(sorted(self.left, key=lambda each: (each.is_ignored, each.path)))
        held = {**self.notes.held, **self.held_blobs}
        notes = Notes(usual, unusual, left, (*self.tracked,), held)
        # Content that could not be held is left out by its own name; a path that was empty is known to be.
        refused = {each.path for each in left if not each.is_ignored}
        known = notes.left_out_of(self.held - refused)
        return replace(notes, tracked=tuple(sorted({*self.tracked, *known} - refused)))


def _taken_in(root: str, ignored: Iterable[str]) -> tuple[list[str], list[str]]:
    files: list[str] = []
    others: list[str] = []
    for name in ignored:
        if rules.covering(_TAKEN_IN, name.rstrip("/")) is None:
            others.append(name)
        elif not name.endswith("/"):
            files.append(name)
        else:
            for folder, inner, names in dirfd.walk_names(os.path.join(root, name.rstrip("/"))):
                inner[:] = [each for each in inner if each != ".git"]
                at = os.path.relpath(folder, root).replace(os.sep, "/")
                files += [f"{at}/{each}" for each in names if each != ".git"]
    return files, others


class _Present(Struct, frozen=True):
    """A file or link as it is now, its bytes (a link's are its target), and when it changed."""

    state: State
    data: bytes
    changed_ns: int


class SafeReader:
    """A workspace's files, one at a time, but not in `hidden` folders; sorted paths cost least."""

    def __init__(self, root: dirfd.Folder, hidden: frozenset[tuple[int, int]]) -> None:
        self._hidden = hidden
        self._place = dirfd.Position(root)
        self._at = ""

    def close(self) -> None:
        self._place.close()
        self._at = ""

    def look(self, path: str, limit_bytes: int) -> _Present | None:
        """Return the file or link at this path, if any; a folder is none."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            name = self._go(path)
            found = self._place.folder.lstat(name)
            if found is None or (stat.S_ISDIR(found.st_mode) and not dirfd.is_link(found)):
                return None
            if dirfd.is_link(found):
                # A link's permissions are meaningless.
                data, mode = os.fsencode(self._place.folder.readlink(name)), stat.S_IFLNK
            elif not stat.S_ISREG(found.st_mode):
                raise OperationError("neither a file nor a link")
            else:
                self._place.name, mode = name, stat.S_IFREG | (found.st_mode & 0o6777)
                size, data = found.st_size, b""
                if size <= limit_bytes:
                    data, _ = dirfd.read_regular(self._place, found, limit_bytes)
                if max(size, len(data)) > limit_bytes:
                    raise OperationError(f"larger than {limit_bytes // 10**6} MB")
            # Metadata is from before the bytes were read, so a later change shows in it.
            changed_ns = max(found.st_ctime_ns, found.st_mtime_ns)
            return _Present(State(blob_id(data), mode), data, changed_ns)
        return None

    def restore(self, change: Change, data: bytes, limit_bytes: int) -> None:
        """Restore the old state of a path, with this content, if it is in its new one, or done already."""
        if self._is_settled(change, limit_bytes):
            return
        if change.old is not None:
            self._put(change, change.old, data, limit_bytes)
            return
        path = change.path
        name = self._go(path)
        self._place.folder.unlink(name)
        with contextlib.suppress(OSError, OperationError):  # the folders that became empty
            while path := path.rpartition("/")[0]:
                name = self._go(path)
                self._place.folder.rmdir(name)

    def _is_settled(self, change: Change, limit_bytes: int) -> bool:
        look = self.look(change.path, limit_bytes)
        state = None if look is None else look.state
        if state not in (change.old, change.new):
            raise OperationError("it was changed after the latest checkpoint, or is not covered")
        return state == change.old

    def _put(self, change: Change, state: State, data: bytes, limit_bytes: int) -> None:
        name = self._go(change.path, create=True)
        target, temporary = self._place.folder, dirfd.temporary_name(name)
        try:
            if state.is_link:
                # A leftover of an earlier kill, or a trap.
                with contextlib.suppress(FileNotFoundError):
                    target.unlink(temporary)
                target.symlink(os.fsdecode(data), temporary)
            else:
                dirfd.write_new(target, temporary, data, state.mode & 0o777, is_durable=False)
            # Looked at once more when all is ready; the walk is still here then.
            self._is_settled(change, limit_bytes)
            found = target.lstat(name)
            if found is not None and stat.S_ISDIR(found.st_mode):
                # Only an empty folder; with anything in it this fails and changes nothing.
                target.rmdir(name)
            target.rename(temporary, name)
        except BaseException:
            with contextlib.suppress(OSError):
                target.unlink(temporary)
            self.close()
            raise
        self._place.made.clear()

    def _go(self, path: str, *, create: bool = False) -> str:
        """Go to a path's folder, from the root or a folder above it; return its name there."""
        folder, _, name = path.rpartition("/")
        # A deep tree would otherwise cost the square of its depth.
        if not f"{folder}/".startswith(f"{self._at}/"):
            self.close()
        at, self._at = self._at, "\0"  # nowhere: if this walk ends on its way, the next begins at the root
        for part in filter(None, folder[len(at) :].split("/")):
            _refuse_protected(part)
            missing = create and self._place.folder.lstat(part) is None
            self._place.enter(part, create=missing)
            if self._place.folder.identity() in self._hidden:
                raise OperationError("not covered: it belongs to codingagent itself")
        _refuse_protected(name)
        self._at = folder
        return name


def _obstacle(fault: OSError | OperationError) -> str:
    """Return what stands in the way, without the path, which is shown beside it."""
    if isinstance(fault, OperationError):
        return fault.reason
    if fault.errno in (errno.ENOTDIR, errno.ELOOP):
        return "a file or link is where a folder was"
    if fault.errno in (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST):
        return "a folder with other files is there"
    return dirfd.reason_of(fault, "").partition(": ")[2]


def _refuse_protected(name: str) -> None:
    """Refuse a name that some file system would take for `.git` or an agent home."""
    if name.isascii():
        # Fast, since every name passes here: nothing else in ASCII folds to one of the two.
        lower = name.lower()
        if ("git" not in lower and "codingagent" not in lower) or name == ".git":
            return  # of a repository, checkpoints hold only what makes git run something
    if is_git_name(name) or is_home_name(name):
        raise OperationError("its name is git's or codingagent's own on some systems")
