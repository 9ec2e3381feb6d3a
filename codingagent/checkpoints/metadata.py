"""What a checkpoint keeps in mind beside the files: permissions, and what it left out."""

import json
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from codingagent.checkpoints.file_changes import LeftOut

IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Notes:
    """What a commit says beside its files."""

    usual: tuple[int, int] = (0o644, 0o755)
    """Permissions of a file that may not be run, and of one that may."""
    unusual: Mapping[str, int] = field(default_factory=dict)
    left: tuple[LeftOut, ...] = ()
    is_partial: bool = False
    """Not all ignored paths are in `left`."""
    tracked: tuple[str, ...] = ()
    """Paths that are covered though `left` names them, or a folder above: the workspace's own
    repository tracks them, or operations were about to change them."""
    held: Mapping[str, int] = field(default_factory=dict)
    """Contents that are kept for operations alone, and their sizes; their sum has a limit."""

    def mode(self, path: str, git_mode: int) -> int:
        if stat.S_ISLNK(git_mode):
            return stat.S_IFLNK
        usual = self.usual[bool(git_mode & 0o100)]
        return stat.S_IFREG | self.unusual.get(path, usual)

    def encoded(self) -> bytes:
        document: dict[str, object] = {
            "usual": self.usual,
            "unusual": self.unusual,
            "left": [(left.path, left.reason) for left in self.left],
            "is_partial": self.is_partial,
        }
        if self.tracked:
            document["tracked"] = self.tracked
        if self.held:
            document["held"] = dict(self.held)
        return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()

    @classmethod
    def decoded(cls, data: bytes) -> "Notes":
        document = json.loads(data)
        left = tuple(LeftOut(path, reason) for path, reason in document["left"])
        plain, runnable = document["usual"]
        tracked = tuple(document.get("tracked", ()))
        held = document.get("held", {})
        partial = document["is_partial"]
        return cls((plain, runnable), document["unusual"], left, partial, tracked, held)


class Covering:
    """Which paths a checkpoint left out, though something may have stood there."""

    def __init__(self, notes: Notes, *, is_doubtful: bool) -> None:
        self._paths = frozenset(left.path for left in notes.left)
        self._tracked = frozenset(notes.tracked)
        # Not all ignored paths are known, and the rules were changed: each new file may be an old one.
        self._is_doubtful = notes.is_partial and is_doubtful

    def leaves_out(self, path: str) -> bool:
        if path in self._tracked:
            return False
        if self._is_doubtful or path in self._paths:
            return True
        at = path.find("/")
        while at != -1:
            if path[: at + 1] in self._paths:
                return True
            at = path.find("/", at + 1)
        return False


def most_common(modes: Iterable[int | None]) -> tuple[int, int]:
    """Return the permissions that most files have, of those that may not be run and those that may."""
    counted = Counter(mode for mode in modes if mode is not None)
    ordered = [mode for mode, _ in counted.most_common()]
    plain = next((mode for mode in ordered if not mode & 0o100), 0o644)
    return plain, next((mode for mode in ordered if mode & 0o100), 0o755)
