"""Ask git which files belong to a folder; the request and the checkpoints both ask here.

git runs with a git directory of our own, made for one call. Of a repository, which is found and read here
without git, only its index and its exclude file are copied there: its configuration names programs to run,
so git never sees it. The person's own configuration applies. A nested repository is listed by its own rules.

Over 500 lines: what git is shown of a repository is what is read of it here.
"""

import contextlib
import hashlib
import io
import os
import re
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from codingagent.errors import OperationError, WorkError
from codingagent.model.observations import PastCommit
from codingagent.model.patterns import lazy_pattern, text_at
from codingagent.workspace import dirfd, real_paths

# git lists a hundred thousand files in a fraction of this time.
_PATIENCE_S = 0.5
# git reads a thousand commits of a large repository in a fraction of this time.
_HISTORY_S = 3.0
_COMMIT = lazy_pattern(r"[0-9a-f]{40}")
# Between two looks whether git waits for a pipe.
_SHORT_S = 0.0005
# Nobody writes an ignore file that needs so much memory at once; a forged one may claim it.
_ALLOCATION = "256m"
# Nested repositories listed at once.
_REPOSITORIES = 500
_WORDS_LIMIT = 20_000
_UNREADABLE = lazy_pattern(r"^warning: could not open directory '(.*)': (.*)$", re.MULTILINE)
# An index may be forged: its paths may lead anywhere. Looked for in paths between slashes, in small letters:
# a name for each slash and each NUL, of very many paths at once.
_ODD: tuple[bytes, ...] = (b"//", b"/./", b"/../", b"/.git/")
if sys.platform == "win32":
    _ODD += (b"\\", b":", b"./", b" /")  # a folder, a drive or stream, and what Windows drops
_BETWEEN_SLASHES = bytes(range(256)).lower().replace(b"\0", b"/")
_GITLINK_MODE = b"\0\0\xe0\0"  # of a submodule, as an index holds it
_GITLINK = lazy_pattern(rb"160000 [^\t]*\t(.*)", re.DOTALL)

# Variables that lead git to the person's configuration and, on Windows, to itself.
_FOR_GIT = (
    *("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
    *("USERPROFILE", "HOMEDRIVE", "HOMEPATH", "SYSTEMROOT", "PROGRAMDATA"),
)
OWN_CONFIG = text_at(f"{__file__.removesuffix('py')}txt").format(
    is_mac=str(sys.platform == "darwin").lower(),
    ignores_case=str(sys.platform in ("win32", "darwin")).lower(),
    nowhere=os.devnull.replace("\\", "\\\\"),
)
"""The configuration of a git directory of ours; its last section is `core`."""
_LIST = ("ls-files", "-z")
_MISSING = "; files that git tracks although an ignore rule names them are missing here"
_OF_FINDER = lazy_pattern(rb"(?:\A|/)\.(?:DS_Store|_[^/]*)\Z")
_SHA256 = "[extensions]\n\tobjectFormat = sha256\n"
# Far more of an ignore file than anyone writes by hand.
RULES_LIMIT_BYTES = 1 << 20
# What Finder writes into each folder that is looked at, and beside files on disks of other systems.
OF_FINDER = ".DS_Store\n._*\n" if sys.platform == "darwin" else ""
# About 600,000 files. A larger index is not read in part, because its end identifies it.
_INDEX_LIMIT_BYTES = 1 << 26
_LINE_LIMIT_BYTES = 1 << 13


ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
"""Variables with which git obeys nothing but its directory."""


def own_variables(directory: Path, tree: Path) -> dict[str, str]:
    """Return what has git work in a directory of ours: it obeys no other, and fetches nothing."""
    return {
        "GIT_DIR": os.fspath(directory),
        # Without this, a file `commondir` there would make git obey another folder's config.
        "GIT_COMMON_DIR": os.fspath(directory),
        "GIT_WORK_TREE": os.fspath(tree),
        "GIT_OPTIONAL_LOCKS": "0",
        # Missing objects stay missing: nothing is fetched by a program that a config names.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "LC_ALL": "C",
    }


class GitResult(Protocol):
    """The result of a program that has ended."""

    returncode: int
    stdout: bytes
    stderr: bytes


Run = Callable[[Sequence[str], Mapping[str, str], bytes], GitResult]
"""Runs a program to its end, given its arguments, whole environment and standard input."""


class Git(Struct, frozen=True):
    """The git program by its full path, the function that runs it, and the person's environment."""

    program: str
    run: Run
    variables: Mapping[str, str] = field(default_factory=dict)


class GitError(WorkError):
    """git failed."""


def objects_in(told: bytes, names: Sequence[str], where: str) -> Iterator[tuple[str, int, io.BytesIO]]:
    """Yield name, size and answer of each object that `git cat-file` told; GitError if one is missing."""
    answer = io.BytesIO(told)
    for name in names:
        if (found := re.fullmatch(rb"\w+ blob (\d+)\n", answer.readline())) is None:
            raise GitError(f"{where} are damaged: {name[:50]} is missing")
        yield name, int(found[1]), answer


def contents_in(told: bytes, names: Sequence[str], where: str) -> Iterator[tuple[str, bytes]]:
    """Yield the content of each object that `git cat-file --batch` told; GitError if one is missing."""
    for name, size, answer in objects_in(told, names, where):
        yield name, answer.read(size)
        answer.read(1)  # the end of a line


# --- a repository, read without git --------------------------------------------------------------
class Repository(Struct, frozen=True):
    """The repository whose `.git` is in a folder; paths are relative to that folder."""

    folder: dirfd.Folder
    own: str
    """The part of this work tree."""
    common: str
    """The part that all its work trees share."""
    names: tuple[str, ...]
    """The way from that folder down to the one that it was looked for in."""

    def excludes(self) -> bytes:
        """Return its own exclude file, without what exceeds a limit."""
        return whole_lines(_read(self.folder, f"{self.common}/info/exclude", RULES_LIMIT_BYTES))

    def head(self) -> str:
        """Return the id of the commit that is checked out; empty if there is none."""
        told = _read(self.folder, f"{self.own}/HEAD", _LINE_LIMIT_BYTES).decode("ascii", "replace")
        if not told.startswith("ref: "):
            return told.strip()
        name = told.removeprefix("ref: ").strip()
        if not name.startswith("refs/") or ".." in name:
            return ""
        if data := _read(self.folder, f"{self.common}/{name}", _LINE_LIMIT_BYTES):
            return data.decode("ascii", "replace").strip()
        packed = _read(self.folder, f"{self.common}/packed-refs", _INDEX_LIMIT_BYTES)
        found = re.search(rb"(?m)^([0-9a-f]+) " + re.escape(name.encode()) + b"$", packed)
        return found[1].decode() if found else ""

    def index(self) -> bytes | None:
        """Return its index; None if it is too large."""
        path = f"{self.own}/index"
        state = self.folder.stat(path)
        is_large = state is not None and state.st_size > _INDEX_LIMIT_BYTES
        return None if is_large else _read(self.folder, path, _INDEX_LIMIT_BYTES)

    def shared_index(self, index: bytes) -> tuple[str, bytes]:
        """Return name and bytes of what a split index builds on (gitformat-index, `link`), or nothing."""
        for found in re.finditer(rb"(?s)link(.{4})(?=(.{20}))(?=(.{32})?)", index):
            for digest in filter(None, found.groups()[1:]):
                name = f"sharedindex.{digest.hex()}"
                if data := _read(self.folder, f"{self.own}/{name}", _INDEX_LIMIT_BYTES):
                    return name, data
        return "", b""


def _repository_in(folder: dirfd.Folder, names: tuple[str, ...]) -> Repository | None:
    """Return the repository of a folder that holds `.git`, a folder or a file that names one."""
    found = folder.stat(".git")
    if found is None:
        return None
    own = ".git"
    if stat.S_ISREG(found.st_mode):
        own = _named(_read(folder, ".git", _LINE_LIMIT_BYTES), b"gitdir: ")
    shared = _named(_read(folder, f"{own}/commondir", _LINE_LIMIT_BYTES), b"") if own else ""
    common = os.path.join(own, shared) if shared else own
    needed = (f"{own}/HEAD", f"{common}/objects", f"{common}/refs")
    if not own or any(folder.stat(name) is None for name in needed):
        return None
    return Repository(folder, own, common, names)


@contextlib.contextmanager
def repository_of(root: Path, *, looks_above: bool = True) -> Iterator[Repository | None]:
    """Yield the repository of a folder, or the nearest around it on its file system, as git does."""
    device = None
    names: tuple[str, ...] = ()
    for above in (root, *root.parents) if looks_above else (root,):
        try:
            folder = dirfd.open_root(above)
        except OSError:
            break
        with contextlib.closing(folder):
            if folder.identity()[0] != (device := device or folder.identity()[0]):
                break
            if (found := _repository_in(folder, names)) is not None:
                yield found
                return
        names = (above.name, *names)
    yield None


def text_of(data: bytes) -> str:
    """Return names or lines of files as text; Windows' own way refuses what is not UTF-8."""
    try:
        return os.fsdecode(data)
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")


def whole_lines(data: bytes) -> bytes:
    """Return patterns without a truncated last line, which could mean something else."""
    return data if len(data) <= RULES_LIMIT_BYTES else data[: data.rfind(b"\n") + 1]


def _named(data: bytes, before: bytes) -> str:
    if not data.startswith(before):
        return ""
    return text_of(data[len(before) :].rstrip(b"\r\n"))


def _read(folder: dirfd.Folder, name: str, limit_bytes: int) -> bytes:
    """Read a file of git's by links, up to a byte beyond the limit; empty if there is none."""
    found = folder.stat(name)
    if found is None or not stat.S_ISREG(found.st_mode):
        return b""
    try:
        return dirfd.read_opened(folder.open_file(name, dirfd.CAREFULLY), found, limit_bytes)[0]
    except (OSError, OperationError):
        return b""


# --- what git lists --------------------------------------------------------------------------------
class GitListing(Struct):
    """The paths of a folder, as git names them."""

    files: list[bytes] = field(default_factory=list)
    """Tracked paths, some of which may be gone or repeated, and others that no rule ignores."""
    ignored: list[bytes] = field(default_factory=list)
    """A folder ignored as a whole ends with a slash; so does a nested repository."""
    unread: list[tuple[str, str]] = field(default_factory=list)
    """Folders and indexes that git could not read, with the reason."""
    repositories: list[str] = field(default_factory=list)


def belonging(root: Path, git: Git, hidden: Iterable[str] = ()) -> GitListing:
    """Return the files of a folder (a real path) but the hidden ones; GitError if git can't list it."""
    asking = _Asking(root, git, tuple(hidden))
    waiting = asking.repository("")
    while waiting:
        path = waiting.pop()
        asking.found.repositories.append(path)
        if len(asking.found.repositories) > _REPOSITORIES:
            asking.found.unread.append((path, f"more than {_REPOSITORIES} repositories at once"))
            continue
        try:
            waiting += asking.repository(path)
        except GitError:
            asking.found.unread.append((path, "git can't list this repository"))
    return asking.found


def addable(root: Path, git: Git, paths: Collection[str]) -> set[str]:
    """Return those of a folder's paths that `git add` takes there: tracked, perhaps gone, or not ignored."""
    with _directory(git, root, looks_above=True) as (directory, repository):
        if repository is None:
            return set()
        directory.make(repository)
        # Windows allows 32,767 characters in a command line.
        named = paths if sum(map(len, paths)) + len(paths) < _WORDS_LIMIT else ()
        words = ("--literal-pathspecs", *_LIST, "-co", "--exclude-standard", "--", *named)
        [done] = together(root, partial(directory.run, *words))
        return {*paths} & {*map(text_of, fields(done.stdout))}


def history(root: Path, git: Git) -> list[PastCommit]:
    """Return the latest commits of the repository around a folder, the newest first; none without one.

    git reads the objects alone, with an empty directory of ours: no configuration, hook, attribute or remote
    of the repository takes effect.
    """
    with _directory(git, root, looks_above=True) as (directory, found):
        head = found.head() if found else ""
        if found is None or not _COMMIT.fullmatch(head):
            return []
        directory.make(None)
        top = root.parents[len(found.names) - 1] if found.names else root
        own, common = directory.path, top / found.common
        variables = own_variables(own, own) | {
            **ALONE,
            "GIT_OBJECT_DIRECTORY": os.fspath(common / "objects"),
            "GIT_SHALLOW_FILE": os.fspath(common / "shallow"),
            # Where Windows has the parts of programs.
            "SYSTEMROOT": git.variables.get("SYSTEMROOT", ""),
        }
        options = ("--no-merges", "--no-renames", "--name-only", "-z", "--no-show-signature")
        words = (git.program, "log", "-1000", *options, "--format=%x01%ct %B%x02", head, "--")
        try:
            # Whatever in the repository is a pipe, git waits for it: seconds, then without history.
            run: Any = git.run
            told = run(words, variables, b"", timeout_s=_HISTORY_S).stdout
        except WorkError:
            return []
    commits: list[PastCommit] = []
    above = "".join(f"{name}/" for name in found.names)
    # What was told before git failed holds: a partial clone lacks trees.
    for part in told.decode("utf-8", "surrogateescape").split("\1")[1:]:
        message, _, rest = part.partition("\2")
        at_s, _, message = message.partition(" ")
        paths = (path.strip("\n") for path in rest.split("\0"))
        inner = (path.removeprefix(above) for path in paths if path and path.startswith(above))
        commits.append(PastCommit(message.strip(), tuple(inner), int(at_s)))
    return commits


@contextlib.contextmanager
def _directory(
    git: Git, tree: Path, *, looks_above: bool
) -> "Iterator[tuple[_Directory, Repository | None]]":
    """Make a git directory of our own for a folder; yield it and the repository that holds the folder."""
    scratch = tempfile.TemporaryDirectory(prefix="codingagent-", ignore_cleanup_errors=True)
    with repository_of(tree, looks_above=looks_above) as found, scratch as name:
        yield _Directory(git, Path(name), tree, "/".join(found.names if found else ())), found


class _Asking(Struct, frozen=True):
    root: Path
    git: Git
    hidden: tuple[str, ...]
    found: GitListing = field(default_factory=GitListing)

    def repository(self, prefix: str) -> list[str]:
        """Add the files of one repository; return the nested ones, with a slash at the end."""
        tree = self.root / prefix
        with _directory(self.git, tree, looks_above=not prefix) as (made, repository):
            directory, above = made, made.above
            has_modules, unread = directory.make(repository)
            words = ("check-ignore", "-q", "--no-index", "--", ".")
            if above and not directory.run(*words, ok=(0, 1)).returncode:
                # A session that works there does want to see it, whatever the repository ignores.
                directory = _Directory(self.git, directory.path, tree, "")
                has_modules, unread = directory.make(None)
            try:
                nested = self._listed(prefix, directory, has_modules=has_modules)
            except GitError:
                if not directory.index.exists():
                    raise
                dirfd.retried(directory.index.unlink)
                unread = "it is in two parts, or not as git writes it"
                nested = self._listed(prefix, directory, has_modules=False)
            if unread:
                self.found.unread.append((f"{prefix}.git/index", unread + _MISSING))
            return nested

    def _listed(self, prefix: str, directory: "_Directory", *, has_modules: bool) -> list[str]:
        lead = f"/{directory.above}/" if directory.above else "/"
        inner = [path[len(prefix) :] for path in self.hidden if path.startswith(prefix)]
        escaped = (re.sub(r"([\\*?\[\] ])", r"\\\1", lead + path) for path in inner)
        hidden = tuple(f"--exclude={path}/" for path in escaped)
        words = ("--exclude-standard", *hidden)
        # With --no-empty-directory git would not look into folders of which it tracks nothing, and an
        # ignored file of secrets there would not be known.
        queries = [("-co", *words), ("-oi", "--directory", *words)]
        queries += [("-s",)] if has_modules else []
        done = together(self.root, *(partial(directory.run, *_LIST, *each) for each in queries))
        for name, reason in _UNREADABLE.findall(text_of(done[0].stderr)):
            self.found.unread.append((f"{prefix}{name.rstrip('/')}/", reason.lower()))
        names = _plain(done[0].stdout, inner)
        left_out = fields(done[1].stdout)
        if OF_FINDER:
            left_out = [name for name in left_out if not _OF_FINDER.search(name)]
        nested: list[bytes] = []
        if b"/\0" in done[0].stdout:
            nested = [name for name in names if name.endswith(b"/")]
            names = [name for name in names if not name.endswith(b"/")]
        if has_modules:
            modules = {m[1] for line in fields(done[-1].stdout) if (m := _GITLINK.match(line))}
            modules.intersection_update(names)  # the plain ones
            names = [name for name in names if name not in modules]
            at = os.fsencode(directory.tree)
            nested += [n + b"/" for n in modules if os.path.lexists(os.path.join(at, n, b".git"))]
        start = os.fsencode(prefix)
        self.found.files += [start + name for name in names] if start else names
        ours = tuple(os.fsencode(f"{path}/") for path in inner)
        ignored = [name for name in left_out if not name.startswith(ours)]
        self.found.ignored += [start + name for name in _topmost(ignored)]
        unseen = {f"{path}/" for path in self.hidden}
        return [path for name in nested if (path := prefix + text_of(name)) not in unseen]


class _Directory(Struct, frozen=True):
    """A git directory of our own at `path`, for a tree that is at `above` in its repository."""

    git: Git
    path: Path
    tree: Path
    above: str

    @property
    def index(self) -> Path:
        return self.path / "index"

    def make(self, repository: Repository | None) -> tuple[bool, str]:
        """Write the directory; return whether submodules are tracked, and why the index is not read."""
        for name in ("objects", "refs", "info"):
            (self.path / name).mkdir(exist_ok=True)
        dirfd.retried(lambda: self.index.unlink(missing_ok=True))
        exclude = b"" if repository is None else repository.excludes()
        (self.path / "info" / "exclude").write_bytes(OF_FINDER.encode() + exclude)
        index = b"" if repository is None else repository.index()
        data = b""
        # Nothing else of the repository says which digests it uses.
        is_wide = index and hashlib.sha256(index[:-32]).digest() == index[-32:]
        if index and repository is not None:
            self.index.write_bytes(index)
            name, data = repository.shared_index(index)
            if name:
                (self.path / name).write_bytes(data)
        config = OWN_CONFIG + (_SHA256 if is_wide else "")
        (self.path / "config").write_text(config, "utf-8", newline="\n")
        (self.path / "HEAD").write_text("ref: refs/heads/main\n", "ascii")
        return _GITLINK_MODE in (index or b"") + data, "it is too large" if index is None else ""

    def run(self, *words: str, ok: tuple[int, ...] = (0,)) -> GitResult:
        """Run git in the tree; GitError if it fails."""
        top = self.tree.parents[self.above.count("/")] if self.above else self.tree
        own = {name: value for name in _FOR_GIT if (value := self.git.variables.get(name))}
        variables = own | own_variables(self.path, top) | {"GIT_ALLOC_LIMIT": _ALLOCATION}
        done = self.git.run((self.git.program, "-C", os.fspath(self.tree), *words), variables, b"")
        if done.returncode not in ok:
            said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise GitError(f"git can't list {self.tree}: {said or done.returncode}")
        return done


def together(root: Path | None, *calls: Callable[[], Any]) -> list[Any]:
    """Make several calls that wait for git at the same time; raise the first error among them.

    git opens every .gitignore, and blocks forever if one is a pipe, which a command could have
    made. So after a while, every such pipe below the root is opened for writing and closed to unblock git.
    """
    answers: dict[int, object] = {}

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
        if sys.platform != "win32" and any(thread.is_alive() for thread in threads):
            _let_go(root, threads)
    for thread in threads:
        while thread.is_alive():  # under antivirus, say; an interrupt comes through
            thread.join(_PATIENCE_S)
    for number in range(len(calls)):
        if isinstance(fault := answers[number], Exception):
            raise fault
    return [answers[number] for number in range(len(calls))]


def fields(data: bytes) -> list[bytes]:
    """Split NUL-terminated output of git."""
    return data.split(b"\0")[:-1]


def paths_below(root: Path, folders: Iterable[Path]) -> tuple[str, ...]:
    """Return the paths of those folders that are below a root, relative to it."""
    real = real_paths.resolved(root)
    places = (each for each in map(real_paths.resolved, folders) if real in each.parents)
    return tuple(dirfd.composed(each.relative_to(real).as_posix()) for each in places)


def _let_go(root: Path | None, threads: Sequence[threading.Thread]) -> None:
    """Unblock readers of the pipes below a root, until the threads have ended."""
    if sys.platform != "win32":
        # git looks into ignore files and into nested repositories.
        pipes: list[str] = []
        for folder, _, names in dirfd.walk_names(os.fspath(root)) if root else ():
            obeyed = {".gitignore", ".gitattributes"}.intersection(names)
            for name in names if f"{os.sep}.git" in folder else obeyed:
                with contextlib.suppress(OSError):
                    if stat.S_ISFIFO(os.lstat(path := os.path.join(folder, name)).st_mode):
                        pipes.append(path)
        wait_s = _PATIENCE_S / 10
        for thread in threads:
            while thread.is_alive():
                for path in pipes:
                    # Without a reader this fails at once, as it should.
                    with contextlib.suppress(OSError):
                        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
                # Without a pipe git is only slow, and needs the machine for itself.
                thread.join(_SHORT_S if pipes else wait_s)
                wait_s *= 2


def _plain(data: bytes, hidden: Sequence[str]) -> list[bytes]:
    """Return the names that lead only downwards, and not into hidden folders or .git."""
    names = fields(data)
    ours = tuple(b"%s/" % os.fsencode(path).lower() for path in hidden)
    every = b"/" + data.translate(_BETWEEN_SLASHES)
    if not any(part in every for part in (*_ODD, *(b"/" + each for each in ours))):
        return names
    plain: list[bytes] = []
    for name in names:
        path = name.lower()
        # A nested repository ends with a slash.
        whole = b"/%s/" % path.removesuffix(b"/")
        if not (path.startswith(ours) or any(part in whole for part in _ODD)):
            plain.append(name)
    return plain


def _topmost(names: list[bytes]) -> list[bytes]:
    """Drop folders of which git also names content: those are not ignored as a whole."""
    parents = set()
    for name in names:
        folder = name.rstrip(b"/").rpartition(b"/")[0]
        while folder and folder not in parents:
            parents.add(folder)
            folder = folder.rpartition(b"/")[0]
    return [name for name in names if not (name.endswith(b"/") and name[:-1] in parents)]
