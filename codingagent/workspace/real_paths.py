"""Compare paths: the places that one leads through, without links and in the disk's own spelling."""

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from codingagent.model import paths
from codingagent.workspace.dirfd import is_link

_STEP_LIMIT = 1000
IGNORES_CASE = sys.platform == "darwin"
"""Whether one folder has a path in several spellings, which differ as paths: not on Windows."""


def with_slashes(text: str) -> str:
    """Return paths or globs as this system writes them with the slashes of a workspace's paths."""
    return text.replace(os.sep, "/")


def plain_target(target: str) -> str:
    """Return a link's target with slashes, without the mark that Windows puts before a drive or share."""
    marked = "^//[?]/(UNC/|(?=.:|/))"
    return re.sub(marked, lambda found: "//" if found[1] else "", with_slashes(target))


def below(place: str, roots: Iterable[str]) -> str | None:
    """Return what follows a root in an absolute path with slashes; None if it lies in no root."""
    for name in (with_slashes(root).rstrip("/") + "/" for root in roots):
        if os.path.normcase(f"{place}/").startswith(os.path.normcase(name)):
            return place[len(name) - 1 :]
    return None


def steps(path: Path) -> Iterator[Path]:
    """Yield each link and real folder that a path leads through; links without end lead to the root."""
    at, left = Path(path.anchor), list(path.parts[1:])
    for _ in range(_STEP_LIMIT):
        if not left:
            return
        name = left.pop(0)
        inner = at.parent if name == ".." else at / name
        yield inner
        try:
            found = os.lstat(inner)
        except (OSError, ValueError):  # missing, or nobody may look
            return
        if is_link(found):
            target = Path(plain_target(os.readlink(inner)))
            at = Path(target.anchor) if target.is_absolute() else at
            left = [*target.parts[target.is_absolute() :], *left]
        else:
            at = inner
    yield Path(path.anchor)


def leads_through(path: Path, places: Iterable[Path]) -> bool:
    """Return whether an absolute path leads to or through one of these real places, by any link on it."""
    # Of each step all folders above it are steps, too, but for the root.
    return not {Path(path.anchor), *steps(path)}.isdisjoint(places)


def from_root(place: str, root: Path) -> str:
    """Return a path as it is written from a root; `..` if no path leads to it: another drive of Windows."""
    try:
        return os.path.relpath(place, root)
    except ValueError:
        return os.pardir


def typed_in(root: Path, typed: str, folder: Path) -> str | None:
    """Return a path that was typed in a folder as it is written from a root; None if it leads outside."""
    # A file that is gone has a real folder; a mapped drive of Windows has two names.
    parent, name = os.path.split(os.path.normpath(os.path.join(folder, os.path.expanduser(typed))))
    near = with_slashes(from_root(os.path.join(resolved(Path(parent)), name), resolved(root)))
    return None if near.split("/")[0] == os.pardir else near


def root_of(path: Path) -> Path:
    """Return a folder without links; on a mapped drive of Windows by that drive, in which cmd.exe works."""
    real, named = resolved(path), type(path)(os.path.abspath(path))
    return named if named.drive.endswith(":") and not real.drive.endswith(":") else real


def resolved(path: Path) -> Path:
    """Return a path without links, in the disk's own spelling: that is what can be compared."""
    real = path.resolve()
    if not IGNORES_CASE:
        return real
    at = Path(real.anchor)
    for name in real.parts[1:]:
        with contextlib.suppress(OSError):
            listed = os.listdir(at)
            if name not in listed:
                seen = paths.folded(name)
                name = next((each for each in listed if paths.folded(each) == seen), name)  # noqa: PLW2901
        at /= name
    return at
