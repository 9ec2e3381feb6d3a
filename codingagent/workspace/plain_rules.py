"""Ignore rules as most people write them, where git can't be asked.

They serve our own ignore file, and a workspace that git can't list. Names, `*`, `?`, `[…]`, `**`, `!` and
slashes mean what they mean to git; of classes, `[[:alpha:]]` and the like do not. As in git, the last
matching pattern of the innermost file decides, and what is below an ignored folder stays ignored.
"""

import fnmatch
import re
from collections.abc import Callable
from functools import cache

from msgspec import Struct, field

from codingagent.model.paths import ANY_FOLDERS, names_fit
from codingagent.model.patterns import lazy_pattern

OWN_IGNORE_FILE = ".codingagentignore"
# Far more than anyone writes by hand; beyond it, the files would only cost time.
_LINES_LIMIT = 1_000
_LENGTH_LIMIT = 1_000
_ESCAPE = lazy_pattern(r"\\(.)")


class _Rule(Struct, frozen=True):
    """One pattern: what matches each name of a path below `folder`; `**` matches any number."""

    folder: str
    names: tuple[str, ...]
    is_negated: bool
    only_folders: bool

    def matches(self, path: str) -> bool:
        if not path.startswith(self.folder):
            return False
        return names_fit([*map(_compiled, self.names)], path[len(self.folder) :].split("/"))


@cache
def _compiled(name: str) -> Callable[[str], object] | None:
    if name == ANY_FOLDERS:
        return None
    # fnmatch writes `[^` as `[!`, and a literal wildcard as a class of its own.
    text = _ESCAPE.sub(lambda m: f"[{m[1]}]" if m[1] in "*?[" else m[1], name.replace("[^", "[!"))
    return re.compile(fnmatch.translate(text)).match


class PlainRules(Struct):
    """The rules of all ignore files read so far, outer ones first."""

    is_cut: bool = False
    """Not all patterns were taken: there were too many."""
    has_negated: bool = False
    _rules: list[_Rule] = field(default_factory=list)
    _folders: dict[str, bool] = field(default_factory=dict)

    def add(self, folder: str, text: str) -> None:
        """Add an ignore file; its folder is "" or ends with a slash."""
        for line in text.splitlines():
            rule = _rule(folder, line)
            if rule is not None and len(self._rules) >= _LINES_LIMIT:
                self.is_cut = True
            elif rule is not None:
                self._rules.append(rule)
                self.has_negated = self.has_negated or rule.is_negated
        self._folders.clear()

    def __bool__(self) -> bool:
        return bool(self._rules)

    def decides(self, path: str, *, is_folder: bool = False) -> bool | None:
        """Return whether a path is ignored, by itself or with a folder; None if no pattern says."""
        above = path.rpartition("/")[0]
        if above and self._is_out(above):
            return True
        for rule in reversed(self._rules):
            if (is_folder or not rule.only_folders) and rule.matches(path):
                return not rule.is_negated
        return None

    def _is_out(self, folder: str) -> bool:
        missing = []
        while folder and folder not in self._folders:
            missing.append(folder)
            folder = folder.rpartition("/")[0]
        for path in reversed(missing):
            self._folders[path] = self.decides(path, is_folder=True) is True
        return self._folders.get(missing[0] if missing else folder, False)


def _rule(folder: str, line: str) -> _Rule | None:
    if line.startswith("#"):
        return None
    is_negated = line.startswith("!")
    text = line.removeprefix("!")
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    only_folders = text.endswith("/")
    text = text.rstrip("/")
    names = [name for name in text.split("/") if name]
    if not names or len(text) > _LENGTH_LIMIT:
        return None
    if "/" not in text:
        names.insert(0, ANY_FOLDERS)
    return _Rule(folder, tuple(names), is_negated, only_folders)
