"""Checkpoint metadata beside the files: permissions, and what was not covered."""

import json
import stat
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct, convert, field, to_builtins

from codingagent.checkpoints import repository_files
from codingagent.checkpoints.file_changes import LeftOut

IGNORED = "ignored"
UNSEEN = "ignored, and too large to be looked through for git repositories"


class Notes(Struct, frozen=True):
    """The metadata of a commit."""

    usual: tuple[int, int] = (0o644, 0o755)
    """The most common permissions of a non-executable and of an executable file."""
    unusual: Mapping[str, int] = field(default_factory=dict)
    left: tuple[LeftOut, ...] = ()
    is_partial: bool = False
    """Not all ignored paths are in `left`."""
    tracked: tuple[str, ...] = ()
    """Paths that are covered though `left` names them or a folder above: the workspace's repository
    tracks them, or operations were about to change them.
    """
    held: Mapping[str, int] = field(default_factory=dict)
    """Contents kept only because of operations, with their sizes, whose sum is limited."""

    def mode(self, path: str, git_mode: int) -> int:
        if stat.S_ISLNK(git_mode):
            return stat.S_IFLNK
        usual = self.usual[bool(git_mode & 0o100)]
        return stat.S_IFREG | self.unusual.get(path, usual)

    def encoded(self) -> bytes:
        # msgspec writes no names that are not UTF-8; json escapes them.
        return json.dumps(to_builtins(self), separators=(",", ":"), sort_keys=True).encode()

    @classmethod
    def decoded(cls, data: bytes) -> "Notes":
        """Read notes.

        Raises:
            ValueError: if they are damaged.
        """
        return convert(json.loads(data), cls)


class Covering:
    """Answer which paths a checkpoint did not cover, though something may have been there."""

    def __init__(self, notes: Notes, *, is_doubtful: bool) -> None:
        self._paths = frozenset(left.path for left in notes.left)
        self._unseen = frozenset(left.path for left in notes.left if left.reason == UNSEEN)
        self._tracked = frozenset(notes.tracked)
        # Not all ignored paths are known, and the rules changed: a new file may have existed
        # before.
        self._is_doubtful = notes.is_partial and is_doubtful

    def leaves_out(self, path: str) -> bool:
        if path in self._tracked:
            return False
        is_of_git = repository_files.is_of_git(path)
        paths = self._unseen if is_of_git else self._paths
        if (self._is_doubtful and not is_of_git) or path in paths:
            return True
        at = path.find("/")
        while at != -1:
            if path[: at + 1] in paths:
                return True
            at = path.find("/", at + 1)
        return False


def most_common(modes: Iterable[int | None]) -> tuple[int, int]:
    """Return the most common permissions of non-executable and of executable files."""
    counted = Counter(mode for mode in modes if mode is not None)
    ordered = [mode for mode, _ in counted.most_common()]
    plain = next((mode for mode in ordered if not mode & 0o100), 0o644)
    return plain, next((mode for mode in ordered if mode & 0o100), 0o755)
