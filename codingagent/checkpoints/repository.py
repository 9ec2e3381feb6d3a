"""Private git directory for checkpoints: objects, commits and an index that the workspace can't influence.

git compares files with the index; what it stores comes to it through a pipe. So no filter, hook or link
of the workspace takes effect.
"""

import hashlib
import io
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from codingagent.checkpoints.history import State
from codingagent.checkpoints.repository_files import real, stored
from codingagent.errors import disk_errors
from codingagent.workspace.git_files import OWN_CONFIG, Git, GitError, own_variables, together
from codingagent.workspace.git_repository import text_of
from codingagent.workspace.sharing import retried

# Content that git gets at once; twice this is held in memory.
_BATCH_BYTES = 8 * 1024 * 1024

_BRANCH = "refs/heads/main"
_DIGEST_BYTES = 20
_EMPTY_INDEX = bytes.fromhex("44495243000000020000000039d890139ee5356c7ef572216cebcd27aa41f9df")
# Late in 2037: a time that every disk takes, FAT as well as 32 bits.
_LATE_S = 2_145_000_000

# In a commit: the files, and the metadata that git's trees can't hold.
FILES = "files"
NOTES = "notes"

# After what each git directory of ours has in its section `core`.
_CONFIG = """\
\tprecomposeUnicode = false
\tfileMode = true
\tsymlinks = true
\tprotectHFS = false
\tprotectNTFS = false
\tlogAllRefUpdates = false
\tcheckStat = {check_stat}
\ttrustctime = {trust_ctime}
\tcompression = 1
\tfsync = none
[gc]
\tauto = 0
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
        """Create what is missing, and remove what a kill has left."""
        with disk_errors(f"the checkpoints in {self.path} can't be kept"):
            for folder in ("objects/pack", "refs/heads", "info"):
                (self.path / folder).mkdir(parents=True, exist_ok=True)
            self._settle()
            # Only one process uses the store, so the owner of a lock is dead.
            own = ("*.lock", "*.new", "fast_import_crash_*")
            for pattern in (*own, "refs/heads/*.lock", "objects/pack/tmp_*"):
                for path in self.path.glob(pattern):
                    if os.name == "nt":
                        path.chmod(0o600)  # a pack that git began is read-only
                    retried(partial(path.unlink, missing_ok=True))

    def _settle(self) -> None:
        """Write our settings, replacing whatever was there."""
        is_windows = os.name == "nt"
        config = OWN_CONFIG + _CONFIG.format(
            # git for Windows fills in no more of the metadata.
            check_stat="minimal" if is_windows else "default",
            trust_ctime=str(not is_windows).lower(),
        )
        files = {"HEAD": f"ref: {_BRANCH}\n", "config": config, "info/attributes": _ATTRIBUTES}
        for name, text in files.items():
            if _read(self.path / name) != text.encode():
                (self.path / name).write_text(text, "utf-8", newline="\n")

    def set_aside(self) -> Path:
        """Rename the directory, so that nothing in it is lost and a new one can be created."""
        number = 1
        while os.path.lexists(aside := self.path.with_name(f"{self.path.name}.damaged-{number}")):
            number += 1
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
        """Make a lost or damaged index of a commit anew; another one may know its files' metadata."""
        if not commit or _is_whole(self.index(commit)):
            return
        others = [each for each in self.path.glob("index.*") if _is_whole(each)]
        # A commit without files has no such tree.
        has_files = bool(self.git("ls-tree", commit, "--", FILES))
        tree = f"{commit}:{FILES}" if has_files else "--empty"
        words = ("read-tree", *(("-m", "-i") if others and has_files else ()), tree)
        self._make_index(commit, others[0] if others else None, {words: b""})

    def write_index(
        self,
        old: str,
        new: str,
        changes: Mapping[str, State | None],
        recent: Mapping[str, State] | None,
    ) -> None:
        """Write a commit's index, made from that of another one and the paths that differ.

        With `recent`, note the metadata of all files as they are now, except of these.
        """
        calls: dict[tuple[str, ...], bytes] = {}
        if changes:
            calls["update-index", "--add", "--replace", "-z", "--index-info"] = _lines_of(changes)
        if recent is not None:
            calls["update-index", "-q", "--refresh", "-z", "--index-info"] = _lines_of(recent)
        self._make_index(new, self.index(old) if old else None, calls)

    def _make_index(
        self, commit: str, old: Path | None, calls: Mapping[tuple[str, ...], bytes]
    ) -> None:
        """Change a copy of an index by calls of git; it then takes the place of all others."""
        path, new = self.index(commit), self.path / "index.new"
        with disk_errors(f"{path} can't be written"):
            retried(partial(new.unlink, missing_ok=True))
            if old is None:
                new.write_bytes(_EMPTY_INDEX)
            else:
                shutil.copyfile(old, new)
            for words, data in calls.items():
                together(self.root, partial(self.git, *words, data=data, index=new))
            # No entry is newer than this: git then never reads a file to compare it.
            os.utime(new, (_LATE_S, _LATE_S))
            retried(lambda: os.replace(new, path))
            for other in self.path.glob("index.*"):
                if other != path:
                    retried(other.unlink)

    # --- git -----------------------------------------------------------------------------------

    def git(self, *words: str, data: bytes = b"", index: Path | None = None) -> bytes:
        """Run git on an index, by default an empty one, and return its output."""
        with disk_errors(failure := f"the checkpoints in {self.path} can't be used", GitError):
            self._settle()
        folder = os.fspath(self.root)
        variables = own_variables(self.path, self.root) | {
            "GIT_INDEX_FILE": os.fspath(index or self.index("")),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "HOME": os.fspath(self.path / "nowhere"),
            "XDG_CONFIG_HOME": os.fspath(self.path / "nowhere"),
        }
        if os.name == "nt":
            variables["SYSTEMROOT"] = os.environ.get("SYSTEMROOT", "C:\\Windows")
        done = self.own_git.run((self.own_git.program, "-C", folder, *words), variables, data)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace")
            raise GitError(f"{failure}: {_first(said)}")
        return done.stdout

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
        names = list(ids)
        if not names:
            return {}
        answer = self.git("cat-file", "--batch-check", data=_lines(names))
        lines = answer.decode("utf-8", "replace").split("\n")
        return {name: self._size(name, line) for name, line in zip(names, lines, strict=False)}

    def contents(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the content of each object, all read at once; GitError if one does not exist."""
        if not names:
            return
        answer = io.BytesIO(self.git("cat-file", "--batch", data=_lines(names)))
        for name in names:
            # "<id> blob <size>", the content, and the end of a line.
            size = self._size(name, answer.readline().decode("utf-8", "replace"))
            yield name, answer.read(size)
            answer.read(1)

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

    def blob(self, data: bytes) -> None:
        self._chunks += (b"blob\ndata %d\n" % len(data), data, b"\n")
        self._held += len(data)
        if self._held > _BATCH_BYTES:
            self._send()

    def commit(self, parent: str, changes: Mapping[str, State | None], notes: bytes) -> str:
        """Create a commit whose files differ from its parent's in these paths; return its id."""
        who = b"committer codingagent <codingagent> %d +0000" % time.time()
        self._chunks.append(b"commit %s\nmark :1\n%s\ndata 0\n" % (_BRANCH.encode(), who))
        if parent:
            self._chunks.append(b"from %s\n" % parent.encode())
        # Removals first: a folder may take a file's place.
        for path, state in sorted(changes.items(), key=lambda change: change[1] is not None):
            name = stored(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            change = "D" if state is None else f"M {state.git_mode:o} {state.blob}"
            self._chunks.append(os.fsencode(f'{change} "{FILES}/{name}"\n'))
        self._chunks.append(b"M 100644 inline %s\ndata %d\n" % (NOTES.encode(), len(notes)))
        self._chunks += (notes, b"\n\nget-mark :1\n")
        return self._send().decode("ascii", "replace").strip()

    def _send(self) -> bytes:
        # `--done`: if we are killed while git still reads, partial input must not pass for all of it.
        data = b"".join((*self._chunks, b"done\n"))
        self._chunks.clear()
        self._held = 0
        # `--force`: a kill may have left a later commit that nothing refers to.
        words = ("fast-import", "--quiet", "--force", "--done", "--depth=0", "--date-format=raw")
        return self.store.git(*words, data=data)


def _lines_of(changes: Mapping[str, State | None]) -> bytes:
    """Return changes of an index as git reads them."""
    gone = f"0 {'0' * 40}"
    lines = (
        f"{f'{state.git_mode:o} {state.blob}' if state else gone}\t{stored(path)}\0"
        for path, state in changes.items()
    )
    return os.fsencode("".join(lines))


def names_of(data: bytes) -> list[str]:
    """Return the fields of what git says, in which each file of a repository has its real path."""
    return real(text_of(data)).split("\0")[:-1]


def _lines(words: Sequence[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _is_whole(index: Path) -> bool:
    # SHA-1 is git's format; here it guards against torn writes, not against attackers.
    data = memoryview(_read(index))
    digest = hashlib.sha1(data[:-_DIGEST_BYTES], usedforsecurity=False).digest()
    return digest == data[-_DIGEST_BYTES:]


def _first(said: str) -> str:
    """Return the line of git's output that says what happened."""
    if any(words in said for words in _FULL):
        return "the disk is full"
    lines = [line for line in said.splitlines() if line.strip()]
    faults = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (faults or lines or ["git ended with a fault"])[0].partition(": ")[2] or "git failed"
