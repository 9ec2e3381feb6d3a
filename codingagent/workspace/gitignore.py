"""Decide which paths ignore files leave out of the listing, by git's rules.

Among the patterns that match a path, the last one decides; among files, the innermost. A query
always covers all names of one folder: one set, one call, one expression for many names.
"""

import re
import warnings
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from codingagent.workspace.gitignore_patterns import LINES_LIMIT, Pattern, bytewise, patterns

GIT_IGNORE_FILE = ".gitignore"
OWN_IGNORE_FILE = ".codingagentignore"
# Later files win.
IGNORE_FILES = (GIT_IGNORE_FILE, OWN_IGNORE_FILE)

# The limit of the summed `Pattern.cost` in a folder: two thousand expressions, or a hundred of the
# costly ones. Ten thousand names then take one second in the worst case.
_COST_LIMIT = 4_000
# Each switch between ignoring and re-including tests all names again.
_RUN_COST = 4


class _Names(Struct, frozen=True):
    """Patterns for single names, tested together."""

    names: frozenset[str]
    suffixes: tuple[str, ...]
    expression: "re.Pattern[str] | None"

    def matching(self, names: Iterable[str]) -> set[str]:
        found = set(self.names.intersection(names))
        if self.suffixes:
            suffixes = self.suffixes
            found.update([name for name in names if name.endswith(suffixes)])
        if self.expression is not None:
            matches = self.expression.fullmatch
            found.update([name for name in names if matches(name)])
        return found


class _Group(Struct, frozen=True):
    """Consecutive patterns of a file with the same effect; it does not matter which one matches."""

    is_negated: bool
    anywhere: _Names | None
    in_folder: dict[str, _Names]
    paths: "re.Pattern[str] | None"

    def matching(self, folder: str, names: Iterable[str]) -> set[str]:
        found = self.anywhere.matching(names) if self.anywhere is not None else set()
        if (there := self.in_folder.get(folder)) is not None:
            found |= there.matching(names)
        if self.paths is not None:
            matches = self.paths.fullmatch
            found.update([name for name in names if matches(folder + name)])
        return found


class _Layer(Struct, frozen=True):
    """One ignore file: its patterns for everything and for folders, and its location.

    Its patterns see a path as `above` plus the path without its first `skip` characters: the file
    may be in the queried folder, or above every folder that is queried.
    """

    skip: int
    above: str
    for_files: tuple[_Group, ...]
    for_folders: tuple[_Group, ...]


class IgnoreRules(Struct, frozen=True):
    """The rules in force in one folder: its own and those of its parents.

    Attributes:
        layers: one for each ignore file.
        cost: the cost of a query.
        is_cut: whether patterns beyond the limit were dropped.
    """

    layers: tuple[_Layer, ...] = ()
    cost: int = 0
    is_cut: bool = False

    def extended(self, folder: str, text: str, *, above: str = "") -> "IgnoreRules":
        """Return these rules extended by one more ignore file.

        Args:
            folder: the file's folder; "" is the root.
            text: its text.
            above: for a file above the root: the path from its folder to the root.
        """
        for_files, for_folders, cost, is_cut = _groups(text, _COST_LIMIT - self.cost)
        is_cut = is_cut or self.is_cut
        if not for_folders:
            return self if is_cut == self.is_cut else replace(self, is_cut=True)
        skip = len(bytewise(folder)) + 1 if folder else 0
        lead = f"{bytewise(above)}/" if above else ""
        layer = _Layer(skip, lead, for_files, for_folders)
        return IgnoreRules((*self.layers, layer), self.cost + cost, is_cut)

    def followed_by(self, others: "IgnoreRules") -> "IgnoreRules":
        """Return these rules followed by others, which take precedence."""
        layers = (*self.layers, *others.layers)
        return IgnoreRules(layers, self.cost + others.cost, self.is_cut or others.is_cut)

    def ignored(self, folder: str, names: list[str], *, are_folders: bool) -> set[str]:
        """Return the ignored names of a folder that is itself not ignored.

        Args:
            folder: "" for the root, otherwise with a trailing slash.
            names: the names in it.
            are_folders: whether all of them are folders; otherwise none is.
        """
        if not self.layers or not names:
            return set()
        if folder.isascii() and "".join(names).isascii():
            return self._ignored(folder, names, are_folders=are_folders)
        real = {bytewise(name): name for name in names}
        found = self._ignored(bytewise(folder), list(real), are_folders=are_folders)
        return {real[name] for name in found}

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a path is ignored; its parent folders are known not to be."""
        folder, slash, name = path.rpartition("/")
        return bool(self.ignored(folder + slash, [name], are_folders=is_folder))

    def _ignored(self, folder: str, names: list[str], *, are_folders: bool) -> set[str]:
        found: set[str] = set()
        for layer in reversed(self.layers):
            inner = layer.above + folder[layer.skip :]
            for group in layer.for_folders if are_folders else layer.for_files:
                if matching := group.matching(inner, names):
                    if not group.is_negated:
                        found |= matching
                    names = [name for name in names if name not in matching]
        return found


# In a tree of many projects, many folders hold the same file.
@lru_cache(maxsize=64)
def _groups(text: str, room: int) -> tuple[tuple[_Group, ...], tuple[_Group, ...], int, bool]:
    """Parse an ignore file into its groups for files and for folders, last pattern first.

    Also return the cost of a query, and whether patterns were dropped because of it.
    """
    found: list[Pattern] = []
    cost, was_negated = 0, None
    is_cut = text.count("\n") >= LINES_LIMIT and bool(text.split("\n", LINES_LIMIT)[-1])
    for pattern in patterns(text):
        cost += pattern.cost + (_RUN_COST if pattern.is_negated != was_negated else 0)
        was_negated = pattern.is_negated
        if cost > room:
            is_cut = True
            break
        found.append(pattern)
    for_files = _runs([one for one in found if not one.only_folders])
    return for_files, _runs(found), min(cost, room), is_cut


def _runs(found: list[Pattern]) -> tuple[_Group, ...]:
    runs: list[list[Pattern]] = []
    for pattern in reversed(found):
        if not runs or runs[-1][0].is_negated != pattern.is_negated:
            runs.append([])
        runs[-1].append(pattern)
    return tuple(map(_group, runs))


def _group(run: list[Pattern]) -> _Group:
    places: dict[str | None, list[Pattern]] = {}
    for pattern in run:
        if pattern.form != "path":
            places.setdefault(pattern.folder, []).append(pattern)
    names = {folder: _names(inner) for folder, inner in places.items()}
    return _Group(
        run[0].is_negated,
        names.get(None),
        {folder: one for folder, one in names.items() if folder is not None},
        _compiled([one.text for one in run if one.form == "path"]),
    )


def _names(run: list[Pattern]) -> _Names:
    def texts(form: str) -> list[str]:
        return list(dict.fromkeys(one.text for one in run if one.form == form))

    return _Names(frozenset(texts("name")), tuple(texts("suffix")), _compiled(texts("expression")))


def _compiled(expressions: list[str]) -> "re.Pattern[str] | None":
    if not expressions:
        return None
    with warnings.catch_warnings():
        # "[[a]" and the like cause warnings of the expression compiler.
        warnings.simplefilter("ignore")
        return re.compile("|".join(f"(?:{one})" for one in expressions), re.DOTALL | re.ASCII)
