"""Which paths the ignore files leave out of the listing, by git's rules."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

# In this order: of two that speak about a path, the later wins.
IGNORE_FILES = (".gitignore", ".codingagentignore")


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules in force in one folder: its own and those of the folders above it."""

    _specs: "tuple[tuple[str, GitIgnoreSpec], ...]" = ()

    def extended(self, folder: str, text: str) -> "IgnoreRules":
        """Gives the rules with those of one more ignore file, which lies in `folder` ("" is the root)."""
        from pathspec import GitIgnoreSpec  # late: a workspace without ignore files needs none

        lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
        if not lines:
            return self
        prefix = f"{folder}/" if folder else ""
        return IgnoreRules((*self._specs, (prefix, GitIgnoreSpec.from_lines(lines))))

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Tells whether a path is left out; the folders above it are known not to be.

        The innermost file that says anything about the path decides.
        """
        for prefix, spec in reversed(self._specs):
            inner = path[len(prefix) :] + ("/" if is_folder else "")
            verdict = spec.check_file(inner).include
            if verdict is not None:
                return verdict
        return False
