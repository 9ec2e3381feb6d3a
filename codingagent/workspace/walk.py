"""List all files below a folder except ignored ones, by the rules of its repository.

Each folder is opened from its parent, and its names are judged together. As in git, a tracked file
is listed even if it is ignored, so the walk continues below an ignored folder wherever the index
has an entry. A nested repository starts its own rules.
"""

import contextlib
import functools
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from codingagent.prompt.file_list import ListedFile, open_folders, shown_path
from codingagent.workspace.dirfd import Folder
from codingagent.workspace.git_index_reader import Tracked
from codingagent.workspace.git_repository import (
    RULES_LIMIT_BYTES,
    Repository,
    ignore_text,
    repository_above,
    repository_in,
)
from codingagent.workspace.gitignore import (
    GIT_IGNORE_FILE,
    IGNORE_FILES,
    OWN_IGNORE_FILE,
    IgnoreRules,
)
from codingagent.workspace.gitignore_patterns import LINES_LIMIT

# Each level holds one handle during the walk, and 256 is a common handle limit.
_DEPTH_LIMIT = 150
# Up to this count, all files are measured, including summarized ones.
_MEASURED_LIMIT = 10_000
_TEMPORARY_LENGTH = 20
# The count of ignored files is informational; node_modules must not slow every turn.
_IGNORED_COUNT_LIMIT = 1_000
# Lines of distinct ignore files parsed for one listing: one second's work.
_RULE_LINES_LIMIT = 30_000
# More of them would tell the reader nothing new.
_UNREAD_LIMIT = 10


# ListedFile(path, None) without a Python-level call: there may be a hundred thousand.
_unmeasured: Callable[[tuple[str, None]], ListedFile] = functools.partial(tuple.__new__, ListedFile)


class _Index:
    """The paths that a repository tracks, read only if something in it is ignored.

    Args:
        read: reads the index.
        skip: how many characters of a path precede the repository.
        above: if the repository contains the tree: the path from its root to the tree.
    """

    def __init__(self, read: Callable[[], Tracked], skip: int = 0, above: str = "") -> None:
        self._read = read
        self._skip = skip
        self._above = above
        self._found: Tracked | None = None

    def files(self, folder: str, names: Iterable[str]) -> list[str]:
        """Return the tracked names of a folder, which is given with its slash."""
        tracked, prefix = self._tracked(), self._name(folder)
        if not tracked.has_below(prefix):
            return []
        return [name for name in names if tracked.has_file(prefix + os.fsencode(name))]

    def has_below(self, path: str) -> bool:
        return self._tracked().has_below(self._name(path) + b"/")

    def _tracked(self) -> Tracked:
        if self._found is None:
            self._found = self._read()
        return self._found

    def _name(self, path: str) -> bytes:
        return os.fsencode(self._above + path[self._skip :])


class _State(Struct, frozen=True):
    """The rules in force in one folder.

    Attributes:
        rules: all ignore rules.
        own: those from the agent's own ignore files, which apply to tracked files too.
        index: what the repository tracks.
        is_left_out: the folder itself is ignored; only tracked files are listed.
    """

    rules: IgnoreRules
    own: IgnoreRules
    index: _Index
    is_left_out: bool = False

    def extended(self, folder: str, text: str, *, is_own: bool) -> "_State":
        rules = self.rules.extended(folder, text)
        own = self.own.extended(folder, text) if is_own else self.own
        return replace(self, rules=rules, own=own)

    def ignored(self, folder: str, names: list[str], *, are_folders: bool) -> set[str]:
        """Return the ignored names of a folder, except tracked ones."""
        if self.is_left_out:
            return set(names)
        return self.rules.ignored(folder, names, are_folders=are_folders)


class ListingWalk(Struct):
    """A walk over all files, pruned by ignore rules; pruned files are counted up to a limit.

    Measuring a file costs as much as everything else about it. So of very many files, only those
    with a line of their own are measured.

    Args:
        hidden: folders to skip, by device and inode.
        user_rules: returns the user's global ignore patterns.
        entries: the maximum number of lines.
    """

    hidden: frozenset[tuple[int, int]]
    user_rules: Callable[[], str]
    entries: int
    links: list[str] = field(default_factory=list)
    ignored_files: int = 0
    ignored_bytes: int = 0
    is_partial: bool = False
    unread: list[str] = field(default_factory=list)
    """Ignore files and indexes that were not read, or not to the end, with the reason."""
    _rule_lines: int = 0
    _rules_seen: set[int] = field(default_factory=set)
    _names: dict[str, list[str]] = field(default_factory=dict)
    """The listed files: names by folder, with a trailing slash."""
    _measured: dict[str, list[ListedFile]] = field(default_factory=dict)
    _total: int = 0

    def walk(self, root: Folder, path: Path) -> None:
        """Walk over everything below a folder, which is at `path`."""
        bare = _State(IgnoreRules(), IgnoreRules(), _Index(Tracked))
        if repository_in(root) is not None:
            self._walk(root, "", bare)
        else:
            with repository_above(path) as found:
                state = None if found is None else self._state_below(*found)
                self._walk(root, "", state or bare)
        self._measure(root)

    def files(self) -> Iterator[ListedFile]:
        """Yield all listed files, folder by folder."""
        for prefix, names in self._names.items():
            measured = self._measured.get(prefix)
            if measured is None:
                yield from map(
                    _unmeasured, zip([prefix + n for n in names], itertools.repeat(None))
                )
            else:
                yield from measured

    def uncount(self, file: ListedFile) -> None:
        """Uncount an ignored file that is listed after all."""
        if not self.is_partial:
            self.ignored_files -= 1
            self.ignored_bytes -= file.size_bytes or 0

    def _state_below(self, repository: Repository, names: tuple[str, ...]) -> _State | None:
        """Return the rules in a folder of a repository; None if they ignore that very folder.

        A session that works there does want to see it, whatever the repository ignores.
        """
        path = "/".join(names)
        texts = [self.user_rules(), self._rules(".git/info/exclude", *repository.excludes())]
        rules = seen = IgnoreRules()
        with contextlib.ExitStack() as opened:
            folder = repository.folder
            for number, name in enumerate(names):
                text, is_whole = ignore_text(folder, GIT_IGNORE_FILE)
                texts.append(self._rules(f"{GIT_IGNORE_FILE} above the workspace", text, is_whole))
                inner, rest = "/".join(names[:number]), "/".join(names[number:])
                for text in texts:
                    seen = seen.extended(inner, text)
                    rules = rules.extended("", text, above=rest)
                texts.clear()
                if seen.ignores("/".join(names[: number + 1]), is_folder=True):
                    return None
                try:
                    folder = opened.enter_context(contextlib.closing(folder.open(name)))
                except OSError:
                    return None
        self._note_cut(rules, IgnoreRules(), "the ignore files above the workspace")
        tracked = functools.partial(self._tracked, repository, "the repository above: ")
        return _State(rules, IgnoreRules(), _Index(tracked, 0, f"{path}/"))

    def _state_of(self, repository: Repository, prefix: str, outer: _State) -> _State:
        """Return the rules in a nested repository: from the outer ones, only the agent's own."""
        inner = prefix.removesuffix("/")
        name = f"{prefix}.git/info/exclude"
        rules = IgnoreRules().extended(inner, self.user_rules())
        rules = rules.extended(inner, self._rules(name, *repository.excludes()))
        self._note_cut(rules, IgnoreRules(), name)
        tracked = functools.partial(self._tracked, repository, prefix)
        return _State(rules.followed_by(outer.own), outer.own, _Index(tracked, len(prefix)))

    # --- what a repository says, up to a bound ----------------------------------------------------

    def _rules(self, name: str, text: str, is_whole: bool) -> str:
        """Return an ignore file's text; empty once there were too many."""
        if not is_whole:
            self._note(f"{name} beyond its first {RULES_LIMIT_BYTES >> 20} MiB")
        if (key := hash(text)) not in self._rules_seen:
            lines = self._rule_lines + min(text.count("\n") + 1, LINES_LIMIT)
            if lines > _RULE_LINES_LIMIT:
                self._note(f"{name}: the ignore files hold too many lines")
                return ""
            self._rule_lines = lines
            self._rules_seen.add(key)
        return text

    def _note_cut(self, rules: IgnoreRules, before: IgnoreRules, name: str) -> None:
        if rules.is_cut and not before.is_cut:
            self._note(f"{name} to its end: its patterns are too many, or too costly")

    def _tracked(self, repository: Repository, prefix: str) -> Tracked:
        tracked = repository.tracked()
        if tracked.unread:
            self._note(
                f"{prefix}.git/{tracked.unread}; files that git tracks although an ignore rule names"
                " them are missing here"
            )
        return tracked

    def _note(self, what: str) -> None:
        if len(self.unread) < _UNREAD_LIMIT:
            self.unread.append(shown_path(what))

    def _walk(self, folder: Folder, prefix: str, state: _State) -> None:
        if (found := _contents(folder)) is None:
            return
        folders, files, links = found
        if (".git" in folders or ".git" in files) and not state.is_left_out:
            repository = repository_in(folder)
            if repository is not None:
                state = self._state_of(repository, prefix, state)
        for name in IGNORE_FILES:
            is_own = name == OWN_IGNORE_FILE
            if name in files and (is_own or not state.is_left_out):
                text = self._rules(f"{prefix}{name}", *ignore_text(folder, name))
                extended = state.extended(prefix.removesuffix("/"), text, is_own=is_own)
                self._note_cut(extended.rules, state.rules, f"{prefix}{name}")
                state = extended
        # Length first, because this runs for each file of the tree.
        ours = [name for name in files if len(name) == _TEMPORARY_LENGTH and is_temporary(name)]
        if ours or ".git" in files:
            files = [name for name in files if name not in {*ours, ".git"}]
        self._files(folder, prefix, files, links, state)
        if prefix.count("/") < _DEPTH_LIMIT:
            self._folders(folder, prefix, folders, state)

    def _files(
        self, folder: Folder, prefix: str, names: list[str], links: list[str], state: _State
    ) -> None:
        """List files and links, and count the ignored ones."""
        ignored = state.ignored(prefix, names + links, are_folders=False)
        if ignored:
            tracked = state.index.files(prefix, ignored)
            ignored.difference_update(tracked)
            ignored |= state.own.ignored(prefix, tracked, are_folders=False)
            self._count(folder, ignored)
            names = [name for name in names if name not in ignored]
        self.links += [prefix + name for name in links if name not in ignored and name != ".git"]
        if names:
            self._names[prefix] = names
            self._total += len(names)

    def _measure(self, root: Folder) -> None:
        """Measure the files whose sizes will be shown, reopening their folders."""
        wanted = set(self._names)
        if self._total > _MEASURED_LIMIT:
            counts = {prefix[:-1]: len(names) for prefix, names in self._names.items()}
            open_ = open_folders(counts, self.entries)
            wanted = {prefix for prefix in wanted if prefix[:-1] in open_}
        with contextlib.ExitStack() as all_:
            way: list[tuple[str, Folder, contextlib.ExitStack]] = [("", root, all_)]
            for prefix in sorted(wanted):
                while not prefix.startswith(way[-1][0]):
                    way.pop()[2].close()
                try:
                    for name in prefix[len(way[-1][0]) :].split("/")[:-1]:
                        above, folder, _ = way[-1]
                        inner = all_.enter_context(contextlib.ExitStack())
                        opened = inner.enter_context(contextlib.closing(folder.open(name)))
                        way.append((f"{above}{name}/", opened, inner))
                except OSError:
                    self._measured[prefix] = []  # removed meanwhile
                    continue
                self._measured[prefix] = _measured(way[-1][1], prefix, self._names[prefix])

    def _folders(self, folder: Folder, prefix: str, names: list[str], state: _State) -> None:
        """Walk over folders, and count the files in ignored ones."""
        ignored = state.ignored(prefix, names, are_folders=True)
        tracked = [name for name in ignored if state.index.has_below(prefix + name)]
        out = ignored.difference(tracked) | state.own.ignored(prefix, tracked, are_folders=True)
        below = replace(state, is_left_out=True) if tracked else state
        for name in names:
            if name == ".git" or (name in out and self.is_partial):
                continue
            try:
                inner = folder.open(name)
            except OSError:
                continue
            with contextlib.closing(inner):
                if self.hidden and inner.identity() in self.hidden:
                    continue
                if name in out:
                    self._count_all(inner, prefix.count("/"))
                else:
                    self._walk(inner, f"{prefix}{name}/", below if name in ignored else state)

    def _count_all(self, folder: Folder, depth: int) -> None:
        if depth >= _DEPTH_LIMIT or (found := _contents(folder)) is None:
            return
        folders, files, links = found
        self._count(folder, files + links)
        for name in folders:
            if self.is_partial:
                return
            with contextlib.suppress(OSError), contextlib.closing(folder.open(name)) as inner:
                self._count_all(inner, depth + 1)

    def _count(self, folder: Folder, names: Iterable[str]) -> None:
        for name in names:
            if self.is_partial:
                return
            if self.ignored_files >= _IGNORED_COUNT_LIMIT:
                self.is_partial = True
                return
            try:
                found = folder.lstat(name)
            except OSError:
                continue
            if found is not None:
                self.ignored_bytes += found.st_size
                self.ignored_files += 1


def _measured(folder: Folder, prefix: str, names: list[str]) -> list[ListedFile]:
    """Return the files of a folder with their sizes, skipping those no longer regular."""
    found: list[ListedFile] = []
    # Thousands of files pass here, so every step counts.
    look, is_regular, made = folder.lstat, stat.S_ISREG, found.append
    for name in names:
        try:
            seen = look(name)
        except OSError:
            continue
        if seen is not None and is_regular(seen.st_mode):
            made(ListedFile(prefix + name, seen.st_size))
    return found


def _contents(folder: Folder) -> tuple[list[str], list[str], list[str]] | None:
    """Return the names of a folder's folders, regular files and links; None without permission."""
    folders: list[str] = []
    files: list[str] = []
    links: list[str] = []
    try:
        for entry in folder.entries():
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_symlink():
                links.append(entry.name)
    except OSError:
        return None
    return folders, files, links


def is_temporary(name: str) -> bool:
    return len(name) == _TEMPORARY_LENGTH and name.startswith(".ca-") and name.endswith(".tmp")
