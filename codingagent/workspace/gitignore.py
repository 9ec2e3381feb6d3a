"""Which paths the ignore files leave out of the listing, by git's rules.

Of the patterns that speak about a path the last decides, of the files the innermost. What is asked is
always all names of one folder at once: one set, one call, one expression for many of them.
"""

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from codingagent.workspace.gitignore_patterns import LINES_LIMIT, Pattern, bytewise, patterns

GIT_IGNORE_FILE = ".gitignore"
OWN_IGNORE_FILE = ".codingagentignore"
# In this order: of two that speak about a path, the later wins.
IGNORE_FILES = (GIT_IGNORE_FILE, OWN_IGNORE_FILE)

# What the patterns in force in a folder may cost together, see `Pattern.cost`: two thousand expressions,
# or a hundred of the costly ones. Ten thousand names then take a second at the very worst.
_COST_LIMIT = 4_000
# Each change between leaving out and taking back asks about all names once more.
_RUN_COST = 4


@dataclass(frozen=True, slots=True)
class _Names:
    """Patterns about single names, whichever of them matches."""

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


@dataclass(frozen=True, slots=True)
class _Group:
    """Patterns that stand together in a file and say the same; which of them matches is all one."""

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


@dataclass(frozen=True, slots=True)
class _Layer:
    """One ignore file: what it says of all things and of folders, and where it is.

    A path as its patterns see it is `above` and what is left of the path after the first `skip`
    characters: the file may be in the folder asked about, or above all that is ever asked about.
    """

    skip: int
    above: str
    for_files: tuple[_Group, ...]
    for_folders: tuple[_Group, ...]


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules in force in one folder: its own and those of the folders above it.

    Attributes:
        layers: one for each ignore file.
        cost: what asking them costs.
        is_cut: patterns beyond the limit are not among them.
    """

    layers: tuple[_Layer, ...] = ()
    cost: int = 0
    is_cut: bool = False

    def extended(self, folder: str, text: str, *, above: str = "") -> "IgnoreRules":
        """Return the rules with those of one more ignore file.

        Args:
            folder: where it is; "" is the root.
            text: what it says.
            above: for a file that is above the root: the path from there to the root.
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
        """Return these rules and, with the last word, others."""
        layers = (*self.layers, *others.layers)
        return IgnoreRules(layers, self.cost + others.cost, self.is_cut or others.is_cut)

    def ignored(self, folder: str, names: list[str], *, are_folders: bool) -> set[str]:
        """Return those of a folder's names that are left out; the folder itself is known not to be.

        Args:
            folder: "" for the root, else with a slash behind.
            names: what is in it.
            are_folders: whether they are folders; else none of them is.
        """
        if not self.layers or not names:
            return set()
        if folder.isascii() and "".join(names).isascii():
            return self._ignored(folder, names, are_folders=are_folders)
        real = {bytewise(name): name for name in names}
        found = self._ignored(bytewise(folder), list(real), are_folders=are_folders)
        return {real[name] for name in found}

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Tells whether a path is left out; the folders above it are known not to be."""
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


# In a tree of many projects the same file is in many folders.
@lru_cache(maxsize=64)
def _groups(text: str, room: int) -> tuple[tuple[_Group, ...], tuple[_Group, ...], int, bool]:
    """Return what an ignore file says about files, and about folders; what comes last comes first.

    With them what it costs to ask them, and whether patterns are left out because that was too much.
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
        # "[[a]" and the like make the expression compiler talk.
        warnings.simplefilter("ignore")
        return re.compile("|".join(f"(?:{one})" for one in expressions), re.DOTALL | re.ASCII)
