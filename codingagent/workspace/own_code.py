"""Find the files that this very program runs from, or by, at its next start: no answer may change them."""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from codingagent.workspace.dirfd import is_link_at
from codingagent.workspace.real_paths import resolved, steps

_PACKAGE = Path(__file__).parents[1]
_INSTALL = (
    "install it elsewhere, `pipx install codingagent`, with nothing of the workspace in PYTHONPATH and"
    " LD_LIBRARY_PATH"
)
# Where a workspace has environments of Python, in `lib/python3.x`.
_ENVIRONMENTS = ("*", "*/*", "*/*/.venv", ".pixi/envs/*")


class OwnCode(Struct, frozen=True):
    """What of a workspace this program runs from or by."""

    kept: tuple[Path, ...] = ()
    """Real paths in the workspace, files and links among them, that must stay as they are."""
    around: tuple[Path, ...] = ()
    """The folders on the way to them, which must keep their names."""
    fault: str = ""
    """Why the workspace can't be used at all; empty if it can."""
    remark: str = ""
    shared: str = ""
    """Says what is kept only because it shares files with what this program runs from."""


def own_code_in(workspace: Path) -> OwnCode:
    """Return what of a workspace this program runs from; links in the workspace's path count as resolved."""
    libraries, of_person = os.environ.get("LD_LIBRARY_PATH", ""), (config_folder(), state_folder())
    return _own_code_in(resolved(workspace), tuple(sys.path), libraries, of_person)


def config_folder() -> Path:
    """Return the folder of what the person wrote: settings and prompts."""
    return _user_folder("XDG_CONFIG_HOME", "APPDATA", ".config")


def state_folder() -> Path:
    """Return the folder of what the person agreed to, and of the homes that they use."""
    return _user_folder("XDG_STATE_HOME", "LOCALAPPDATA", ".local/state")


def _user_folder(variable: str, on_windows: str, usual: str) -> Path:
    """Return this program's folder of a kind (XDG base directories, which ignore relative paths)."""
    names = (variable, on_windows) if os.name == "nt" else (variable,)
    named = (os.environ.get(name, "") for name in names)
    found = next(filter(os.path.isabs, named), None)
    return Path(found or Path("~").expanduser() / usual) / "codingagent"


@cache
def _own_code_in(root: Path, path: tuple[str, ...], libraries: str, of_person: tuple[Path, ...]) -> OwnCode:
    imported = [Path(entry) for entry in path if os.path.isabs(entry)]
    kept: set[Path] = set()
    whole = {_PACKAGE.resolve(), Path(os.__file__).parent.resolve(), *map(resolved, of_person)}
    loaded = (Path(os.path.abspath(each)) for each in libraries.split(os.pathsep) if each)
    places = (*_installed(root), *imported, *loaded, *_told(root, of_person))
    for place in places:
        kept.update(_steps(place, root))
        if sys.platform != "linux":  # written by another spelling, or a mapped drive
            kept.update(_steps(resolved(place), root))
        real = Path(os.path.realpath(place))
        is_whole = real in whole
        is_whole = is_whole or real.name in ("site-packages", "dist-packages", "lib-dynload")
        if root in kept or (is_whole and real in root.parents):
            return OwnCode(
                fault=f"the workspace {root} is where codingagent itself runs from, or what it obeys"
                f" ({place}): an answer could change the program that confines it; name another, or"
                f" {_INSTALL}"
            )
    linked = {step for place in _linked(root) for step in _steps(place, root)} - kept
    every = kept | linked
    outermost = tuple(sorted(each for each in every if every.isdisjoint(each.parents)))
    around = {above for each in outermost for above in each.parents if root in above.parents}
    own, others = (
        ", ".join([os.fspath(each.relative_to(root)) for each in outermost if each in held][:3])
        for held in (kept, linked)
    )
    remark = (
        f"codingagent itself runs from {own} in the workspace, or by what it says, so answers can't change"
        f" anything there; to let them, {_INSTALL}"
    )
    shared = (
        f"{others} shares files with codingagent's own packages, as uv and conda link one file into several"
        " places, so answers can't change it; to let them, reinstall it with UV_LINK_MODE=copy"
    )
    told = {"remark": remark * bool(own), "shared": shared * bool(others)}
    return OwnCode(outermost, tuple(sorted(around)), **told)


def _told(root: Path, folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the person's folders, and the links in that of the settings; the other may hold thousands."""
    for folder in folders:
        if root in resolved(folder).parents and root != Path(root.anchor):
            with contextlib.suppress(OSError):
                # What is not there yet, an answer could make.
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = folder.rglob("*") if folder == config_folder() else ()
        places = (folder, *filter(is_link_at, held))
        yield from (each for each in places if os.path.lexists(resolved(each)))


def _installed(root: Path) -> Iterator[Path]:
    """Yield the files and folders of this installation, by the names that it was started with."""
    for prefix in {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}:
        # Of one around the workspace only this file is Python's alone.
        is_around = Path(os.path.realpath(prefix)) in (root, *root.parents)
        yield Path(prefix, "pyvenv.cfg") if is_around else Path(prefix)
    for program in (sys.executable, getattr(sys, "_base_executable", ""), *sys.argv[:1]):
        if os.path.isabs(program):
            yield Path(program)
    yield Path(sys.executable).parent
    yield from (_PACKAGE, Path(os.__file__).parent)
    site = sys.modules.get("site")
    for name in (getattr(site, "USER_SITE", None) or "", sys.pycache_prefix or ""):
        if os.path.isabs(name):
            yield Path(name)


def _linked(root: Path) -> Iterator[Path]:
    """Yield what of the workspace's environments shares files with ours, as uv and conda link them."""
    library, package = Path(os.__file__), Path(msgspec.__file__)
    if root in package.parents or all(each.stat().st_nlink == 1 for each in (library, package)):
        return
    own = list(package.parents[1].iterdir())
    for pattern in _ENVIRONMENTS:
        for place in root.glob(f"{pattern}/lib/python*"):
            if _is_same(library, place / library.name):
                yield place.parents[1]
            for each in own:
                other = place / "site-packages" / each.name
                if _is_same(each, other) or _is_same(each / "__init__.py", other / "__init__.py"):
                    yield other


def _is_same(one: Path, other: Path) -> bool:
    return other.is_file() and one.is_file() and os.path.samefile(one, other)


def _steps(place: Path, root: Path) -> Iterator[Path]:
    """Yield each link on a path in the workspace, and its end, or the folder where that could be made."""
    text = os.fspath(place)
    if os.path.realpath(text) == text and not place.is_relative_to(root):
        return  # without a link on the way it leads nowhere else
    end = root.parent
    for end in steps(place):
        if is_link_at(end) and end.is_relative_to(root):
            yield end
    end = end if os.path.lexists(end) else end.parent
    if end.is_relative_to(root):
        yield end
