"""Which paths the ignore files leave out of the listing, by git's rules."""

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

# In this order: of two that speak about a path, the later wins.
IGNORE_FILES = (".gitignore", ".codingagentignore")

# pathspec makes expressions of patterns; one more star in a name costs 255 times the time at worst.
_STARS_LIMIT = 3
_STARRY_PATTERNS_LIMIT = 3


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules in force in one folder: its own and those of the folders above it."""

    _specs: "tuple[tuple[str, GitIgnoreSpec], ...]" = ()

    def extended(self, folder: str, text: str) -> "IgnoreRules":
        """Gives the rules with those of one more ignore file, which lies in `folder` ("" is the root)."""
        lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
        if not lines:
            return self
        prefix = f"{folder}/" if folder else ""
        return IgnoreRules((*self._specs, (prefix, _compiled(lines))))

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


def _compiled(lines: list[str]) -> "GitIgnoreSpec":
    """Gives the rules of some lines; one that is no pattern, or hostile, costs only itself, as in git."""
    # Late: a workspace without ignore files needs none.
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    with warnings.catch_warnings():
        # "[[a]" and the like make the expression compiler talk.
        warnings.simplefilter("ignore")
        starry = 0
        patterns: list[GitIgnoreSpecPattern] = []
        for line in lines:
            stars = max(name.count("*") for name in line.split("/"))
            starry += stars >= _STARS_LIMIT
            if stars > _STARS_LIMIT or (stars == _STARS_LIMIT and starry > _STARRY_PATTERNS_LIMIT):
                continue
            try:
                patterns.extend(GitIgnoreSpec.from_lines([line]).patterns)
            except (ValueError, re.error):
                continue
    return GitIgnoreSpec(patterns)
