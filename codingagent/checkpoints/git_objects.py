"""Private git directory for checkpoints: objects and commits that the workspace can't influence.

git reads no file of the workspace here except ignore files. It compares metadata and names paths;
content comes to it through a pipe. So no filter, hook or link of the workspace takes effect.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from codingagent.checkpoints import git_index
from codingagent.errors import disk_errors
from codingagent.model.patterns import lazy_pattern
from codingagent.workspace.git_files import Git, GitError, GitResult

if TYPE_CHECKING:
    from concurrent.futures import Future

# Content that git gets at once. As much is read meanwhile, and three times this is held in memory.
_BATCH_BYTES = 8 * 1024 * 1024

_BRANCH = "refs/heads/main"
_INDEX = lazy_pattern(r"index\.([0-9a-f]{40})")

# No index entry is newer than this: git then never reads a file to be sure.
_INDEX_TIME = (0, 0)

_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\tfileMode = true
\tsymlinks = true
\tignoreCase = {ignore_case}
\tprecomposeUnicode = false
\tprotectHFS = false
\tprotectNTFS = false
\tlogAllRefUpdates = false
\tautocrlf = false
\tsafecrlf = false
\tquotePath = false
\tfsmonitor = false
\tuntrackedCache = false
\thooksPath = {nowhere}
\tattributesFile = {nowhere}
\texcludesFile = {nowhere}
\tcheckStat = {check_stat}
\ttrustctime = {trust_ctime}
\tcompression = 1
\tfsync = none
\tfsyncObjectFiles = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[pack]
\tthreads = 1
"""
# These override every .gitattributes, so bytes stay unchanged.
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding !diff !merge\n"

_FULL = ("No space left", "Disk quota exceeded", "File too large")


class Store:
    """The git directory at `path`, for the files below `root`."""

    def __init__(self, path: Path, root: Path, git: Git) -> None:
        self.path = path
        self.root = root
        self.own_git = git

    # --- the directory -------------------------------------------------------------------------

    def prepare(self) -> None:
        """Create what is missing, and remove what a kill has left.

        Raises:
            WorkError: if that fails.
        """
        with disk_errors(f"the checkpoints in {self.path} can't be kept"):
            for folder in ("objects/pack", "refs/heads", "info"):
                (self.path / folder).mkdir(parents=True, exist_ok=True)
            self._settle()
            if not self._empty_index.exists():
                self._write(self._empty_index, git_index.empty())
            self._clean()

    def _settle(self) -> None:
        """Write our settings, replacing whatever was there."""
        is_windows = os.name == "nt"
        config = _CONFIG.format(
            nowhere=os.devnull.replace("\\", "\\\\"),
            ignore_case=str(is_windows or sys.platform == "darwin").lower(),
            # git for Windows fills in no more of the metadata.
            check_stat="minimal" if is_windows else "default",
            trust_ctime=str(not is_windows).lower(),
        )
        files = {"HEAD": f"ref: {_BRANCH}\n", "config": config, "info/attributes": _ATTRIBUTES}
        for name, text in files.items():
            if not _has(self.path / name, text):
                (self.path / name).write_text(text, "utf-8", newline="\n")

    def _clean(self) -> None:
        """Remove locks and partial files: only one process uses the store, so their owner is dead."""
        leftovers = [*self.path.glob("*.lock"), *self.path.glob("refs/heads/*.lock")]
        leftovers += [*self.path.glob("objects/pack/tmp_*"), *self.path.glob("*.new")]
        for path in (*leftovers, *self.path.glob("fast_import_crash_*")):
            path.unlink(missing_ok=True)

    def set_aside(self) -> Path:
        """Rename the directory, so that nothing in it is lost and a new one can be created.

        Raises:
            WorkError: if that fails.
        """
        number = 1
        while os.path.lexists(aside := self.path.with_name(f"{self.path.name}.damaged-{number}")):
            number += 1
        with disk_errors(f"{self.path} is damaged and can't be renamed"):
            os.rename(self.path, aside)
        return aside

    # --- the index -----------------------------------------------------------------------------

    @property
    def _empty_index(self) -> Path:
        return self.path / "index.empty"

    def index(self, commit: str) -> Path:
        """Return the path of a commit's index, whose name ties the two together."""
        return self.path / f"index.{commit}" if commit else self._empty_index

    def indexed(self, commit: str) -> frozenset[bytes]:
        """Return the paths in a commit's index.

        Raises:
            GitError: if it is damaged.
        """
        path = self.index(commit)
        try:
            return git_index.paths(path.read_bytes())
        except (OSError, ValueError) as fault:
            raise GitError(f"{path} can't be read: {fault}; try again") from fault

    def latest(self) -> str:
        """Return the latest commit with an index, else the branch's commit (its index is lost), else ""."""
        with contextlib.suppress(OSError):
            branch = self._branch()
            named = [m[1] for name in os.listdir(self.path) if (m := _INDEX.fullmatch(name))]
            return branch if branch in named or not named else named[0]
        return ""

    def _branch(self) -> str:
        try:
            return (self.path / _BRANCH).read_text("ascii", "replace").strip()
        except FileNotFoundError:
            return ""

    def write_index(self, commit: str, data: bytes) -> None:
        """Write a commit's index atomically, which makes the commit the latest.

        Raises:
            WorkError: if it can't be written.
        """
        path = self.index(commit)
        with disk_errors(f"{path} can't be written"):
            self._write(path, data)
            for name in os.listdir(self.path):
                if _INDEX.fullmatch(name) and name != path.name:
                    os.unlink(self.path / name)

    def _write(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f"{path.name}.new")
        try:
            temporary.write_bytes(data)
            os.utime(temporary, _INDEX_TIME)
            os.replace(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise

    # --- git -----------------------------------------------------------------------------------

    def git(
        self,
        *words: str,
        data: bytes = b"",
        index: Path | None = None,
    ) -> GitResult:
        """Run git and return its output.

        Args:
            words: the command.
            data: the standard input.
            index: the index to use; an empty one by default.

        Raises:
            GitError: if it fails.
        """
        try:
            self._settle()
        except OSError as fault:
            raise GitError(
                f"the checkpoints in {self.path} can't be used: {fault.strerror or fault}"
            ) from fault
        folder = os.fspath(self.root)
        variables = {
            "GIT_DIR": os.fspath(self.path),
            # Without this, a file `commondir` there would make git obey another folder's config.
            "GIT_COMMON_DIR": os.fspath(self.path),
            # Missing objects stay missing: nothing is fetched by a program that a config names.
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "",
            "GIT_WORK_TREE": folder,
            "GIT_INDEX_FILE": os.fspath(index or self._empty_index),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "HOME": os.fspath(self.path / "nowhere"),
            "XDG_CONFIG_HOME": os.fspath(self.path / "nowhere"),
            "LC_ALL": "C",
        }
        if os.name == "nt":
            variables["SYSTEMROOT"] = os.environ.get("SYSTEMROOT", "C:\\Windows")
        done = self.own_git.run((self.own_git.program, "-C", folder, *words), variables, data)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace")
            raise GitError(f"the checkpoints in {self.path} can't be used: {_first(said)}")
        return done

    def blobs(self, ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the content of each object, read in batches that fit in memory.

        Raises:
            GitError: if one does not exist.
        """
        batch: list[str] = []
        left = _BATCH_BYTES
        for name, size in self.sizes(ids):
            if batch and size > left:
                yield from self.contents(batch)
                batch, left = [], _BATCH_BYTES
            batch.append(name)
            left -= size
        yield from self.contents(batch)

    def sizes(self, ids: Iterable[str]) -> list[tuple[str, int]]:
        """Return the size of each object.

        Raises:
            GitError: if one does not exist.
        """
        names = list(ids)
        if not names:
            return []
        answer = self.git("cat-file", "--batch-check", data=_lines(names)).stdout
        lines = answer.decode("utf-8", "replace").split("\n")
        return [(name, self._size(name, line)) for name, line in zip(names, lines, strict=False)]

    def contents(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the content of each object, all read at once.

        Raises:
            GitError: if one does not exist.
        """
        if not names:
            return
        answer = memoryview(self.git("cat-file", "--batch", data=_lines(names)).stdout)
        at = 0
        for name in names:
            # "<id> blob <size>"; an id has 40 digits, so the line is near the start.
            head = bytes(answer[at : at + 400]).partition(b"\n")[0]
            size = self._size(name, head.decode("utf-8", "replace"))
            at += len(head) + 1
            yield name, bytes(answer[at : at + size])
            at += size + 1

    def _size(self, name: str, line: str) -> int:
        words = line.split()
        if len(words) != 3 or words[1] != "blob" or not words[2].isdigit():
            raise GitError(f"the checkpoints in {self.path} are damaged: {name[:50]} is missing")
        return int(words[2])


class Import(Struct):
    """Content and one commit being written to the store."""

    store: Store
    _chunks: list[bytes] = field(default_factory=list)
    _held: int = 0
    _running: "Future[bytes] | None" = None

    def blob(self, data: bytes) -> None:
        """Add content.

        Raises:
            GitError: if it, or earlier content, can't be stored.
        """
        self._chunks += (b"blob\ndata %d\n" % len(data), data, b"\n")
        self._held += len(data)
        if self._held > _BATCH_BYTES:
            self._finish()
            # git stores one batch while the next is read.
            from concurrent.futures import ThreadPoolExecutor  # late: few checkpoints are so large

            storing = ThreadPoolExecutor(1)
            self._running = storing.submit(self._run, self._taken())
            storing.shutdown(wait=False)

    def commit(self, parent: str, entries: Mapping[bytes, tuple[int, str] | None]) -> str:
        """Create a commit that differs from its parent in these paths; return its id.

        Raises:
            GitError: if it can't be stored.
        """
        now = int(time.time())
        lines = [
            b"commit %s\nmark :1\ncommitter codingagent <codingagent> %d +0000\ndata 0\n"
            % (_BRANCH.encode(), now),
        ]
        if parent:
            lines.append(b"from %s\n" % parent.encode())
        # Removals first: a file may replace a folder.
        gone = [path for path, what in entries.items() if what is None]
        lines += [b"D %s\n" % _quoted(path) for path in gone]
        for path, what in entries.items():
            if what is not None:
                mode, blob = what
                lines.append(b"M %o %s %s\n" % (mode, blob.encode(), _quoted(path)))
        lines.append(b"\nget-mark :1\n")
        self._chunks += lines
        self._finish()
        return self._run(self._taken()).decode("ascii", "replace").strip()

    def _finish(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.result()

    def _taken(self) -> bytes:
        # `--done`: if we are killed while git still reads, partial input must not pass for all of
        # it.
        data = b"".join((*self._chunks, b"done\n"))
        self._chunks.clear()
        self._held = 0
        return data

    def _run(self, data: bytes) -> bytes:
        # `--force`: a kill may have left a later commit that nothing refers to.
        words = ("fast-import", "--quiet", "--force", "--done", "--depth=0", "--date-format=raw")
        return self.store.git(*words, data=data).stdout


def _quoted(path: bytes) -> bytes:
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"%s"' % escaped


def _lines(words: Sequence[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()


def _has(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except FileNotFoundError:
        return False


def _first(said: str) -> str:
    """Return the line of git's output that says what happened."""
    if any(words in said for words in _FULL):
        return "the disk is full"
    lines = [line for line in said.splitlines() if line.strip()]
    faults = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (faults or lines or ["git ended with a fault"])[0].partition(": ")[2] or "git failed"
