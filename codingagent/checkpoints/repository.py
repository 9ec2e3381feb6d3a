"""The private git directory for checkpoints, which no filter, hook or link of the workspace can influence.

And the files by which the workspace's own repositories make git run something: checkpoints hold these, too.
"""

import contextlib
import hashlib
import os
import shutil
import stat
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, field

from codingagent.checkpoints.history import State
from codingagent.errors import disk_errors
from codingagent.model.patterns import text_at
from codingagent.storage import atomic_write
from codingagent.workspace import git_files
from codingagent.workspace.dirfd import composed, is_folder, is_link, retried
from codingagent.workspace.git_files import GitListing, text_of

# Content that git gets at once; twice this is held in memory.
_BATCH_BYTES = 8 * 1024 * 1024
_BRANCH = "refs/heads/main"
_DIGEST_BYTES = 20
_GONE = f"0 {'0' * 40}"
_EMPTY_INDEX = bytes.fromhex("44495243000000020000000039d890139ee5356c7ef572216cebcd27aa41f9df")
# Late in 2037: a time that every disk takes, FAT as well as 32 bits.
_LATE_S = 2_145_000_000
# In a commit: the files, and the metadata that git's trees can't hold.
FILES = "files"
NOTES = "notes"
_IS_WINDOWS = os.name == "nt"
_SETTINGS = {
    "HEAD": f"ref: {_BRANCH}\n",
    # Our common settings end with the section `core`. git for Windows fills in less of the metadata.
    "config": git_files.OWN_CONFIG
    + text_at(f"{__file__.removesuffix('py')}txt").format(
        stat="minimal" if _IS_WINDOWS else "default", trusts_ctime=str(not _IS_WINDOWS).lower()
    ),
    # These override every .gitattributes, so bytes stay unchanged.
    "info/attributes": "* -text -eol -ident -filter -working-tree-encoding !diff !merge\n",
}
_LEFTOVERS = ("*.lock", "*.new", "fast_import_crash_*", "refs/heads/*.lock", "objects/pack/tmp_*")
# In a checkpoint: git refuses to store a `.git`, and no file is called like the other one.
# As the bytes that they are in UTF-8: another locale can't encode the character.
STORED, _REAL = os.fsdecode(".git\u2063".encode()), ".git"
# How many folders that git ignores are looked into: nobody waits for all of node_modules.
LOOK_LIMIT_FOLDERS = 3_000
# Of one repository: its hooks, submodules and work trees.
_OWN_LIMIT = 500
_PROGRAMS = ("config", "config.worktree", "commondir", "gitdir")
# The first holds programs; the second, which of those that a configuration names are run.
_FOLDERS = ("hooks", "info")
_ATTRIBUTES = ("info", "attributes")
# Repositories of submodules, and other work trees.
_OTHERS = ("modules", "worktrees")
_DATA = ("objects", "refs", "logs", "lfs")
_FULL = ("No space left", "Disk quota exceeded", "File too large")
_States: TypeAlias = Mapping[str, State | None]
_Commits: TypeAlias = Callable[[], list[str]]


class Store:
    """The git directory at `path`, for the files below `root`."""

    def __init__(self, path: Path, root: Path, git: git_files.Git) -> None:
        self.path, self.root, self.own_git = path, root, git

    # --- the directory -------------------------------------------------------------------------
    def prepare(self) -> None:
        """Create what is missing, and remove what a kill has left."""
        with disk_errors(f"the checkpoints in {self.path} can't be kept"):
            for folder in ("objects/pack", "refs/heads", "info"):
                (self.path / folder).mkdir(parents=True, exist_ok=True)
            self._settle()
            # Only one process uses the store, so the owner of a lock is dead.
            for path in (path for pattern in _LEFTOVERS for path in self.path.glob(pattern)):
                if _IS_WINDOWS:
                    path.chmod(0o600)  # a pack that git began is read-only
                retried(partial(path.unlink, missing_ok=True))

    def _settle(self) -> None:
        for name, text in _SETTINGS.items():
            if _read(self.path / name) != text.encode():
                (self.path / name).write_text(text, "utf-8", newline="\n")

    def set_aside(self) -> Path:
        """Rename the directory, so that nothing in it is lost and a new one can be created."""
        aside = atomic_write.free_name(self.path.parent, f"{self.path.name}.damaged-{{}}")
        with disk_errors(f"{self.path} is damaged and can't be renamed"):
            retried(lambda: os.rename(self.path, aside))
        return aside

    def latest(self) -> str:
        """Return the latest commit, or what damage made of it; empty if there is none."""
        with disk_errors(f"the checkpoints in {self.path} can't be read"):
            return _read(self.path / _BRANCH).decode("ascii", "replace").strip()

    # --- the index -----------------------------------------------------------------------------
    def index(self, commit: str) -> Path:
        """Return the path of a commit's index, whose name ties the two together."""
        return self.path / f"index.{commit or 'none'}"

    def ready_index(self, commit: str) -> None:
        """Make a lost or damaged index of a commit anew: then each file is read again."""
        if not commit:
            return
        # SHA-1 is git's format; here it guards against torn writes, not against attackers.
        data = memoryview(_read(self.index(commit)))
        digest = hashlib.sha1(data[:-_DIGEST_BYTES], usedforsecurity=False).digest()
        if digest != data[-_DIGEST_BYTES:]:
            # A commit without files has no such tree.
            has_files = bool(self.git("ls-tree", commit, "--", FILES))
            tree = f"{commit}:{FILES}" if has_files else "--empty"
            self.write_index("", lambda: [commit], {}, tree=tree)

    def write_index(
        self, old: str, commits: _Commits, changes: _States, recent: _States | None = None, tree: str = ""
    ) -> str:
        """Make commits, and an index of the last from another one; it then takes the place of all others.

        It differs from that in `changes`, or holds a tree; `recent`: also note all metadata. Both are made at
        the same time: an index names content that is not there yet. Return the commit.
        """
        new, calls = self.path / "index.new", dict[tuple[str, ...], _States]()
        if tree:
            calls["read-tree", tree] = {}
        if changes:
            calls["update-index", "--add", "--replace", "-z", "--index-info"] = changes
        if recent is not None:
            calls["update-index", "-q", "--refresh", "-z", "--index-info"] = recent

        def update() -> None:
            for call, entries in calls.items():
                lines = (
                    f"{f'{state.git_mode:o} {state.blob}' if state else _GONE}\t{stored(path)}\0"
                    for path, state in entries.items()
                )
                data = os.fsencode("".join(lines))
                git_files.together(self.root, partial(self.git, *call, data=data, index=new))

        with disk_errors(f"{new} can't be written"):
            if old:
                shutil.copyfile(self.index(old), new)
            else:
                new.write_bytes(_EMPTY_INDEX)
            try:
                made, _ = git_files.together(None, commits, update)
            except git_files.GitError:
                new.unlink()
                raise
            path = self.index(made[-1])
            # No entry is newer than this: git then never reads a file to compare it.
            os.utime(new, (_LATE_S, _LATE_S))
            retried(lambda: os.replace(new, path))
            for other in self.path.glob("index.*"):
                if other != path:
                    retried(other.unlink)
        return str(made[-1])

    # --- git -----------------------------------------------------------------------------------
    def keep(self, data: bytes) -> str:
        """Keep content that a checkpoint will name, without git, as in gitformat-loose(5); return its id."""
        blob = blob_id(data)
        path = f"{self.path}/objects/{blob[:2]}/{blob[2:]}"
        if not os.path.exists(path):
            with disk_errors(f"{path} can't be written"):
                os.makedirs(os.path.dirname(path), exist_ok=True)
            whole = zlib.compress(b"blob %d\0" % len(data) + data, 1)
            atomic_write.write_whole(Path(path), whole, is_synced=False)
        return blob

    def git(self, *words: str, data: bytes = b"", index: Path | None = None) -> bytes:
        """Run git on an index, by default an empty one, and return its output."""
        with disk_errors(failure := f"the checkpoints in {self.path} can't be used", git_files.GitError):
            self._settle()
        nowhere = os.fspath(self.path / "nowhere")
        variables = git_files.own_variables(self.path, self.root) | {
            "GIT_INDEX_FILE": os.fspath(index or self.index("")),
            **git_files.ALONE,
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "HOME": nowhere,
            "XDG_CONFIG_HOME": nowhere,
        }
        if _IS_WINDOWS:
            variables["SYSTEMROOT"] = os.environ.get("SYSTEMROOT", "C:\\Windows")
        argv = (self.own_git.program, "-C", os.fspath(self.root), *words)
        done = self.own_git.run(argv, variables, data)
        if done.returncode == 0:
            return done.stdout
        said = done.stderr.decode("utf-8", "replace")
        if any(words in said for words in _FULL):
            raise git_files.GitError(f"{failure}: the disk is full")
        lines = [line for line in said.splitlines() if line.strip()]
        faults = [line for line in lines if line.startswith(("fatal:", "error:"))]
        what = (faults or lines or [""])[0].partition(": ")[2]
        raise git_files.GitError(f"{failure}: {what or 'git failed'}")

    def blobs(self, ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the content of each object, read in batches that fit in memory."""
        batch: list[str] = []
        left = _BATCH_BYTES
        for name, size in self.sizes(ids).items():
            if batch and size > left:
                yield from self.contents(batch)
                batch, left = [], _BATCH_BYTES
            batch.append(name)
            left -= size
        yield from self.contents(batch)

    def sizes(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the size of each object; GitError if one does not exist."""
        names = list(ids)
        told = self._told("--batch-check", names)
        return {name: size for name, size, _ in git_files.objects_in(told, names, self._where)}

    def contents(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the content of each object, all read at once; GitError if one does not exist."""
        yield from git_files.contents_in(self._told("--batch", names), names, self._where)

    def _told(self, how: str, names: Sequence[str]) -> bytes:
        lines = "".join(f"{name}\n" for name in names)
        return self.git("cat-file", how, data=lines.encode()) if names else b""

    @property
    def _where(self) -> str:
        return f"the checkpoints in {self.path}"


class Import(Struct):
    """Content and one commit being written to the store."""

    store: Store
    _chunks: list[bytes] = field(default_factory=list)
    _held: int = 0

    def blob(self, data: bytes) -> None:
        self._chunks += (b"blob\ndata %d\n" % len(data), data, b"\n")
        self._held += len(data)
        if self._held > _BATCH_BYTES:
            self._send()

    def commits(self, parent: str, steps: Sequence[Mapping[str, State | None]], notes: bytes) -> list[str]:
        """Create commits, whose files differ from the parent's, and from one another's, in these paths.

        Return their ids; GitError if git does not tell them.
        """
        for changes in steps:
            lines = [f"commit {_BRANCH}", "mark :1"]
            lines += [f"committer codingagent <codingagent> {time.time():.0f} +0000", "data 0"]
            lines += [f"from {parent}"] if parent else []
            # Removals first: a folder may take a file's place.
            for path, state in sorted(changes.items(), key=lambda change: change[1] is not None):
                name = stored(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
                change = "D" if state is None else f"M {state.git_mode:o} {state.blob}"
                lines.append(f'{change} "{FILES}/{name}"')
            lines += [f"M 100644 inline {NOTES}", f"data {len(notes)}\n"]
            self._chunks += (os.fsencode("\n".join(lines)), notes, b"\n\nget-mark :1\n")
            parent = ""  # the branch goes on
        made = self._send().decode("ascii", "replace").split()
        if len(made) != len(steps):
            raise git_files.GitError(f"git made {len(made)} of {len(steps)} checkpoints")
        return made

    def _send(self) -> bytes:
        # `--done`: if we are killed while git still reads, partial input must not pass for all of it.
        data = b"".join((*self._chunks, b"done\n"))
        self._chunks.clear()
        self._held = 0
        # `--force`: a kill may have left a later commit that nothing refers to.
        words = ("fast-import", "--quiet", "--force", "--done", "--depth=0", "--date-format=raw")
        return self.store.git(*words, data=data)


def names_of(data: bytes) -> list[str]:
    """Return the fields of what git says, in which each file of a repository has its real path."""
    return real(text_of(data)).split("\0")[:-1]


def blob_id(data: bytes) -> str:
    """Return git's id of content; its SHA-1 is no security measure here."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


# --- files by which a repository makes git run something, wherever a command made one ---------------
# `git status` in a folder runs what the configuration of its repository names, and hooks. git lists no
# `.git`, so these files are found here, for the checkpoints to hold: then they are named, asked about
# and put back like any protected file. The rest of a `.git` runs nothing.
def stored(path: str) -> str:
    """Return the name of a path in a checkpoint."""
    parts = path.split("/")
    return path if _REAL not in parts else "/".join(STORED if p == _REAL else p for p in parts)


def real(path: str) -> str:
    """Return the path of a name in a checkpoint."""
    return path.replace(STORED, _REAL) if STORED in path else path


def makes_git_run(path: str, root: str | Path) -> bool:
    """Return whether a path below a root is such a file of a bare repository, which lies in no `.git`."""
    folder, _, name = path.rpartition("/")
    above, _, last = folder.rpartition("/")
    at = above if last in ("hooks", "info") else folder
    is_one = last == "hooks" or (last == "info" and name == "attributes")
    return (is_one or name in (*_PROGRAMS, "HEAD")) and _is_repository(root, at)


def gives_git_programs(path: str, root: str | Path) -> bool:
    """Return whether a file that is written there is such a file, or makes a folder above a repository."""
    parts = path.split("/")
    for number, name in enumerate(parts):
        if name.casefold() not in ("head", "objects", "refs", "commondir"):
            continue  # it makes no folder a repository
        folder = "/".join(parts[:number])
        if _is_repository(root, folder, name) and not _is_repository(root, folder):
            return True
    return makes_git_run(path, root)


def repository_files(root: str, found: GitListing) -> tuple[set[str], list[str]]:
    """Return these files below a folder, and the ignored folders that were not looked through."""
    every = (*found.files, *found.ignored)
    folders = {"", *(path.rstrip("/") for path in found.repositories)}
    for name in {name.rpartition(b"/")[0] for name in every}:
        folder = text_of(name)
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    ignored = [text_of(name) for name in found.ignored if name.endswith(b"/")]
    inner, unseen = _below(root, ignored)
    places = {f"{folder}/{_REAL}" if folder else _REAL for folder in (*folders, *inner)}
    bare = {*inner, *(text_of(n).rpartition("/")[0] for n in every if n.endswith(b"/HEAD"))}
    files: set[str] = set()
    for place in (*places, *(each for each in bare if each and _is_repository(root, each))):
        with contextlib.suppress(OSError):
            files.update(_programs(root, place))
    return files, unseen


def _below(root: str, folders: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the folders below some, the topmost first, up to a limit; and those that were cut short."""
    looked: list[str] = []
    tops = sorted(folders)
    waiting = deque(tops)
    while waiting and len(looked) < LOOK_LIMIT_FOLDERS:
        looked.append(folder := waiting.popleft().rstrip("/"))
        with contextlib.suppress(OSError), os.scandir(os.path.join(root, folder)) as entries:
            inner = [composed(each.name) for each in entries if is_folder(each)]
            waiting += (f"{folder}/{name}" for name in sorted(inner) if name != _REAL)
    return looked, [top for top in tops if any(f"{each}/".startswith(top) for each in waiting)]


def _programs(root: str, place: str) -> Iterator[str]:
    """Yield the files of one repository that make git run something, links among them."""
    waiting, left = deque([place]), _OWN_LIMIT
    while waiting and left > 0:
        at = waiting.popleft()
        found = os.lstat(os.path.join(root, at))
        if not stat.S_ISDIR(found.st_mode) or is_link(found):
            yield at
            continue
        inner = at[len(place) + 1 :].split("/")
        is_of_others = inner[0] in _OTHERS
        with os.scandir(os.path.join(root, at)) as entries:
            for each in entries:
                left -= 1
                path = f"{at}/{each.name}"
                if is_folder(each):
                    is_way = each.name in (*_OTHERS, *_FOLDERS) or is_of_others
                    waiting += [path] * (is_way and each.name not in _DATA)
                elif inner[-1] == "hooks":
                    if not each.name.endswith(".sample"):
                        yield path
                elif each.name in (*_PROGRAMS, *_FOLDERS) or (inner[-1], each.name) == _ATTRIBUTES:
                    yield path


def _is_repository(root: str | Path, folder: str, new: str = "") -> bool:
    """Return whether a folder below a root is a repository, with what would get this name in it."""

    def holds(name: str) -> bool:
        is_new = name.casefold() == new.casefold()
        return is_new or os.path.lexists(os.path.join(root, folder, name))

    return holds("HEAD") and ((holds("objects") and holds("refs")) or holds("commondir"))
