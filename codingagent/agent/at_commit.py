"""Tell what of the person's runs at a commit, with their rights, and which files of the workspace that are.

A change of those was asked about, but not of what git ignores: that is refused, unless the person trusts it.
"""

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from codingagent.checkpoints.history import named
from codingagent.errors import UsageError
from codingagent.workspace.git_files import Git
from codingagent.workspace.git_programs import AT_COMMIT, GitProgram, programs_of
from codingagent.workspace.git_repository import text_of
from codingagent.workspace.programs import persons_path
from codingagent.workspace.real_paths import from_root, resolved

TRUST = "--trust-ignored"
ASKED = ("check-attr", "-z", "--stdin", "filter")
"""How to ask git about the files of a commit."""


class AtCommit(NamedTuple):
    """Programs and files of the person's that a commit runs."""

    said: str
    """Hooks and filters in words, and the files of the workspace that they run; empty if there are none."""
    unseen: tuple[str, ...]
    """Those of them that git ignores: no one sees what commands do to them."""

    def begin(self, tell: Callable[[str], None], *, trusts_ignored: bool) -> None:
        """Tell it; UsageError if no one saw some of it, and it is not trusted."""
        if self.said:
            tell(self.said)
        check_seen(() if trusts_ignored else self.unseen, f"add {TRUST}")


class PersonsPrograms:
    """Programs that the person's git runs in a workspace; `ignored` picks the paths that git ignores."""

    def __init__(self, root: Path, git: Git, ignored: Callable[[Iterable[str]], list[str]]) -> None:
        self._root, self._git, self._ignored = resolved(root), git, ignored

    def at_commit(self, told: bytes) -> AtCommit:
        """Return what runs at a commit of files, of which git told the attribute for filters."""
        used = {f"filter.{text_of(name)}" for name in told.split(b"\0")[2::3]}
        every = [
            each
            for each in programs_of(self._root, self._git)
            if AT_COMMIT.fullmatch(each.what) or each.what.rpartition(".")[0] in used
        ]
        files = sorted({path for each in every for path in self._there(each) if each.named[path]})
        run = (each for each in every if each.told or not each.named.keys().isdisjoint(files))
        names = dict.fromkeys(each.told or each.what for each in run)
        said = f"your git runs with your rights, on what answers wrote: {', '.join(names)}"
        said += f"; of the workspace: {named(files)}" if files else ""
        known = self._git.variables.get("PATH", "").split(os.pathsep)
        gone = {each: 0 for each in persons_path().split(os.pathsep) if each and each not in known}
        if gone:
            where = named([from_root(each, self._root) for each in gone])
            said += f"; not from {where}, where an answer could have put programs, without {TRUST}"
        return AtCommit(said if names else "", self._unseen(every))

    def filters(self) -> tuple[str, ...]:
        """Return what git ignores of the files and folders that filters name."""
        return self._unseen(p for p in programs_of(self._root, self._git) if p.what.startswith("filter."))

    def _there(self, program: GitProgram) -> list[str]:
        return [path for path in program.named if os.path.lexists(self._root / path)]

    def _unseen(self, programs: Iterable[GitProgram]) -> tuple[str, ...]:
        paths = {path for each in programs for path in self._there(each)}
        # What a link on the way leads to is named, too; git looks behind none.
        real = [p for p in paths if (self._root / p).parent.resolve() == (self._root / p).parent]
        return tuple(sorted(self._ignored(real)))


def check_seen(unseen: Collection[str], remedy: str) -> None:
    """Refuse, with a UsageError, to run what no one saw."""
    if unseen:
        why = "which git ignores, so nobody saw what commands changed there"
        raise UsageError(f"your hooks or filters use {named([*unseen])}, {why}: look at it, then {remedy}")
