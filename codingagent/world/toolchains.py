"""Where the programs on a PATH really live: what a command must see of a home folder to find its tools.

Only tools, never the home folder itself: what else lies there is nobody's business.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_BIN = ("bin", "sbin", "shims")

# Folders whose `bin` is on many a PATH and whose other contents are not all tools: what of them is.
_PARTS = {
    ".local": ("bin", "lib", "pipx", "share/pipx", "share/uv", "share/pnpm", "share/mise"),
    ".cargo": ("bin", "registry", "git"),
}

# What a tool finds beside itself, in the home folder.
_COMPANIONS = {".cargo": (".rustup",), ".local": ()}


def folders(path: str, home: Path, workspace: Path, prefixes: Iterable[str] = ()) -> list[Path]:
    """Gives the real folders that hold the programs on a PATH, and what these need to run.

    Args:
        path: as the environment variable PATH.
        home: the person's home folder, which is never given itself, nor what is above it.
        workspace: what lies there is visible anyway, and no link or file in it is believed.
        prefixes: installations besides, such as the running Python's.
    """
    home = home.resolve()
    found: dict[Path, None] = {}
    for name in [*path.split(os.pathsep), *(os.path.join(prefix, "bin") for prefix in prefixes)]:
        if os.path.isabs(name) and os.path.isdir(name):
            if _passes(Path(name), workspace):
                found.update(dict.fromkeys(_base_python(Path(name).parent)))
            else:
                found.update(dict.fromkeys(_installation(Path(name), home)))
    return [folder for folder in _outermost(found) if _is_harmless(folder, home)]


def _passes(folder: Path, workspace: Path) -> bool:
    """Tells whether the way to a folder leads through the workspace."""
    real = (each.resolve() for each in (folder, *folder.parents))
    return any(each == workspace or workspace in each.parents for each in real)


def _installation(folder: Path, home: Path) -> Iterator[Path]:
    """Gives what belongs to a folder of programs: `…/node/bin` belongs to `…/node`."""
    yield folder.resolve()
    prefix = folder.resolve().parent
    if folder.name not in _BIN or not _is_harmless(prefix, home):
        return
    if prefix.parent == home and prefix.name in _PARTS:
        yield from (prefix / part for part in _PARTS[prefix.name])
        yield from (home / name for name in _COMPANIONS[prefix.name])
    else:
        yield prefix
        yield from _base_python(prefix)


def _base_python(environment: Path) -> Iterator[Path]:
    """Gives the Python that a virtual environment was made from.

    Its file may say anything: only a folder that holds a whole Python is believed to be one.
    """
    try:
        lines = (environment / "pyvenv.cfg").read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        name, _, value = line.partition("=")
        prefix = Path(value.strip()).resolve().parent
        if name.strip() == "home" and os.path.isabs(value.strip()) and _is_python(prefix):
            yield prefix


def _is_python(prefix: Path) -> bool:
    return any((prefix / "lib").glob("python3*/os.py")) and any((prefix / "bin").glob("python3*"))


def _outermost(found: Iterable[Path]) -> list[Path]:
    """Gives those that exist and lie in none of the others, sorted."""
    real = sorted({folder.resolve() for folder in found if folder.is_dir()})
    return [folder for folder in real if not any(other in folder.parents for other in real)]


def _is_harmless(folder: Path, home: Path) -> bool:
    """Tells whether a folder is a place for tools: not the home folder, nor any that holds it."""
    return folder not in (home, *home.parents) and folder.parent != Path("/")
