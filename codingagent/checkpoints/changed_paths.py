"""List the paths that a checkpoint must read: git compares metadata and names new files."""

import contextlib
import os
import re
import stat
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct, field

from codingagent.checkpoints.file_changes import LeftOut
from codingagent.checkpoints.git_objects import GitError, GitResult, Store, fields
from codingagent.policy.presets import PROTECTED_PATHS
from codingagent.workspace.dirfd import open_root, walk_names
from codingagent.workspace.git_index_reader import Tracked
from codingagent.workspace.git_repository import repository_above, repository_in

# Files that other programs execute are covered even if git ignores them; the last rule of a command
# line wins.
_PROTECTED = tuple(
    f"--exclude=!{pattern}{inside}"
    for pattern in PROTECTED_PATHS
    if pattern not in ("**/.git", "**/.codingagent")
    for inside in ("", "/**")
)
# Within a folder that is excluded itself nothing can be taken back in.
_TAKEN_IN = ("--exclude=!**/.github", *_PROTECTED)

# git lists a hundred thousand files in a fraction of this time.
_PATIENCE_S = 0.5

_UNREADABLE = re.compile(r"^warning: could not open directory '(.*)': (.*)$", re.MULTILINE)


class ChangedPaths(Struct):
    """The paths to read, as git names them."""

    known: dict[bytes, tuple[int, str]] = field(default_factory=dict)
    """Covered paths whose metadata changed, with their old state."""
    new: set[bytes] = field(default_factory=set)
    left: list[LeftOut] = field(default_factory=list)
    ignored: list[bytes] = field(default_factory=list)
    tracked: list[bytes] = field(default_factory=list)
    """Paths that the workspace's own repositories track though they are ignored; some may be gone."""


class Lister:
    """List the paths of a workspace.

    Args:
        store: runs git.
        hidden: folders that are never listed, though they may be inside.
        repositories: how many nested repositories are listed at once.
    """

    def __init__(self, store: Store, hidden: Iterable[Path], repositories: int) -> None:
        self._store = store
        self.hidden_paths = _paths_below(store.root, hidden)
        self._repositories = repositories
        self._tracked: dict[bytes, tuple[object, Tracked]] = {}

    def is_hidden(self, path: str) -> bool:
        return any(f"{path}/".startswith(f"{hidden}/") for hidden in self.hidden_paths)

    def listing(self, commit: str, *, with_ignored: bool) -> ChangedPaths:
        index = self._store.index(commit)
        others = ["ls-files", "-o", "-z", "--exclude-standard", *_TAKEN_IN]
        others += [f"--exclude=/{_escaped(path)}/" for path in self.hidden_paths]

        def changed() -> GitResult:
            words = ("diff-files", "--raw", "-z", "--no-abbrev", "--ignore-submodules=all")
            return self._store.git(*words, index=index)

        def new() -> GitResult:
            return self._store.git(*others, index=index)

        def ignored() -> GitResult:
            return self._store.git(*others, "-i", "--directory", index=index)

        changed_, new_, *ignored_ = self._together(
            changed, new, *([ignored] if with_ignored else [])
        )
        listing = ChangedPaths()
        parts = fields(changed_.stdout)
        for head, path in zip(parts[::2], parts[1::2], strict=True):
            words = head[1:].split(b" ")
            listing.known[path] = int(words[0], 8), words[2].decode()
        self._add_new(listing, [(b"", new_), *self._replaced(listing)])
        for done in ignored_:
            listing.ignored += _without_parents(fields(done.stdout))
        if with_ignored:
            # A removed path is still among the known ones, and may be ignored when it returns.
            names = self._by_repository([*listing.ignored, *listing.known])
            for prefix, inner in names.items():
                listing.tracked += self._tracked_of(prefix, inner)
        listing.new.update(listing.tracked)
        return listing

    def _by_repository(self, paths: Iterable[bytes]) -> dict[bytes, list[bytes]]:
        """Group paths by the repository folder that contains them, relative to that folder."""
        root = os.fsencode(self._store.root)
        known: dict[bytes, bytes] = {b"": b""}

        def of(folder: bytes) -> bytes:
            unknown: list[bytes] = []
            while folder not in known:
                unknown.append(folder)
                folder = folder.rpartition(b"/")[0]
            for inner in reversed(unknown):
                is_one = os.path.lexists(b"%s/%s/.git" % (root, inner))
                known[inner] = inner + b"/" if is_one else known[folder]
                folder = inner
            return known[folder]

        found: dict[bytes, list[bytes]] = {}
        for path in paths:
            prefix = of(path.rstrip(b"/").rpartition(b"/")[0])
            found.setdefault(prefix, []).append(path[len(prefix) :])
        return found

    def _tracked_of(self, prefix: bytes, names: list[bytes]) -> list[bytes]:
        """Return what a repository tracks of some names, relative to its folder, or below them.

        git adds none of it to the checkpoint store, but to the person these are ordinary files.
        """
        root = self._store.root / os.fsdecode(prefix)
        with contextlib.ExitStack() as stack:
            try:
                folder = stack.enter_context(contextlib.closing(open_root(root)))
            except OSError:
                return []
            repository, above = repository_in(folder), b""
            if repository is None and not prefix:
                found = stack.enter_context(repository_above(root))
                if found is not None:
                    repository, above = found[0], os.fsencode("/".join(found[1]) + "/")
            if repository is None:
                return []
            stamp, known = repository.stamp(), self._tracked.get(prefix)
            if known is None or known[0] != stamp:
                known = self._tracked[prefix] = (stamp, repository.tracked())
        tracked: list[bytes] = []
        for name in names:
            path = above + name
            if name.endswith(b"/"):
                tracked += known[1].below(path)
            elif known[1].has_file(path):
                tracked.append(path)
        return [prefix + path[len(above) :] for path in tracked if _is_plain(path)]

    def _replaced(self, listing: ChangedPaths) -> Iterable[tuple[bytes, GitResult]]:
        """List repositories that replaced a file: git does not name those."""
        for path in tuple(listing.known):
            if os.path.lexists(os.path.join(self._store.root, os.fsdecode(path), ".git")):
                yield from self._repository(listing, path + b"/", 1)

    def _add_new(self, listing: ChangedPaths, waiting: list[tuple[bytes, GitResult]]) -> None:
        """Add the paths that are not covered yet, including those in nested repositories."""
        repositories = 0
        while waiting:
            prefix, done = waiting.pop()
            for name, reason in _UNREADABLE.findall(os.fsdecode(done.stderr)):
                path = os.fsdecode(prefix) + name.rstrip("/") + "/"
                listing.left.append(LeftOut(path, reason.lower()))
            for name in fields(done.stdout):
                path_ = prefix + name
                if not name.endswith(b"/"):
                    listing.new.add(path_)
                elif path_ != prefix and not self.is_hidden(os.fsdecode(path_)):
                    repositories += 1
                    waiting += self._repository(listing, path_, repositories)

    def _repository(
        self, listing: ChangedPaths, path: bytes, number: int
    ) -> Iterable[tuple[bytes, GitResult]]:
        """List a nested repository, which git names as one folder."""
        shown = os.fsdecode(path)
        if number > self._repositories:
            reason = f"more than {self._repositories} repositories at once"
            listing.left.append(LeftOut(shown, reason))
            return ()
        tree = self._store.root / shown
        words = ("ls-files", "-o", "-z", "--exclude-standard", *_TAKEN_IN)
        try:
            new, ignored = self._together(
                lambda: self._store.git(*words, tree=tree),
                lambda: self._store.git(*words, "-i", "--directory", tree=tree),
            )
        except GitError:
            listing.left.append(LeftOut(shown, "git can't list this repository"))
            return ()
        listing.ignored += [path + name for name in _without_parents(fields(ignored.stdout))]
        return ((path, new),)

    def _together(self, *calls: Callable[[], GitResult]) -> list[GitResult]:
        """Make several calls that wait for git at the same time; raise the first error among them.

        git opens every .gitignore, and blocks forever if one is a pipe, which a command could have
        made. So after a while, every such pipe is opened for writing and closed to unblock git.
        """
        answers: dict[int, GitResult | Exception] = {}

        def call(number: int) -> None:
            try:
                answers[number] = calls[number]()
            except Exception as fault:  # noqa: BLE001  # raised again below, in the caller's thread
                answers[number] = fault

        threads = [threading.Thread(target=call, args=(number,)) for number in range(len(calls))]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join(_PATIENCE_S)
        finally:
            # Also after an interrupt: none of our threads is left waiting.
            while any(thread.is_alive() for thread in threads):
                _let_go(self._store.root)
                for thread in threads:
                    thread.join(_PATIENCE_S / 10)
        done: list[GitResult] = []
        for number in range(len(calls)):
            answer = answers[number]
            if isinstance(answer, Exception):
                raise answer
            done.append(answer)
        return done


def _let_go(root: Path) -> None:
    """Unblock every reader of a pipe named .gitignore."""
    for folder, _, names in walk_names(os.fspath(root)):
        if ".gitignore" in names:
            with contextlib.suppress(OSError):
                path = os.path.join(folder, ".gitignore")
                if stat.S_ISFIFO(os.lstat(path).st_mode):
                    # Without a reader this fails at once, as it should.
                    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))


def _without_parents(names: list[bytes]) -> list[bytes]:
    """Drop folders of which git also names content: those are not ignored as a whole."""
    parents = set()
    for name in names:
        folder = name.rstrip(b"/").rpartition(b"/")[0]
        while folder and folder not in parents:
            parents.add(folder)
            folder = folder.rpartition(b"/")[0]
    return [name for name in names if not (name.endswith(b"/") and name[:-1] in parents)]


def _is_plain(path: bytes) -> bool:
    """Return whether a path leads only downwards; the repository's author may have forged its index."""
    return not {b"", b".", b".."} & set(path.split(b"/"))


def _escaped(path: str) -> str:
    """Return a path escaped as an ignore pattern."""
    return re.sub(r"([\\*?\[\] ])", r"\\\1", path)


def _paths_below(root: Path, folders: Iterable[Path]) -> tuple[str, ...]:
    below = []
    for folder in folders:
        with contextlib.suppress(ValueError):
            path = Path(os.path.realpath(folder)).relative_to(os.path.realpath(root)).as_posix()
            if path != ".":
                below.append(path)
    return tuple(below)
