"""Where the programs on a PATH really live: what a command must see of a home folder to find its tools.

Only tools, never the home folder itself: what else is there is nobody's business. What is beside the
tools in their own folders, `credentials` knows.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from codingagent.process import credentials

_BIN = ("bin", "sbin", "shims")

# Folders whose `bin` is on many a PATH and whose other contents are not all tools: what of them is.
# A person's own `bin` folders have neighbours that are nobody's business either.
_PARTS = {
    ".local": (
        *("bin", "lib", "pipx/venvs", "share/pipx/venvs", "share/pipx/shared", "share/uv/python"),
        *("share/uv/tools", "share/pnpm", "share/mise/installs", "share/mise/plugins"),
    ),
    ".cargo": ("bin", "registry", "git"),
    "go": ("bin", "pkg"),
}

# What a tool finds beside itself, in the home folder.
_COMPANIONS = {".cargo": (".rustup",)}

# The Go language itself, by whatever name; else `go` is where a person's sources are.
_GO = "src/runtime"

# Of these everything belongs to the tool. Any other folder shows by one of the marks that it is one.
_WHOLE = frozenset({".pyenv", ".rbenv", ".nodenv", ".asdf", ".nvm", ".volta", ".bun", ".deno"})
_MARKS = ("lib", "libexec", "pyvenv.cfg", "conda-meta")

_LINK_LIMIT = 40
_FIRST_PERSON = 1_000
_SMALL_BYTES = 64 * 1024


def folders(path: str, home: Path, workspace: Path, prefixes: Iterable[str] = ()) -> list[Path]:
    """Return the real folders that hold the programs on a PATH, and what these need to run.

    Args:
        path: as the environment variable PATH.
        home: the person's home folder, which is never given itself, nor what is above it.
        workspace: what is there is visible anyway, and no link or file in it is believed.
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
    people = (home, *homes())
    harmless = (f for f in found if all(_is_harmless(f.resolve(), each) for each in people))
    return _outermost(harmless)


def homes() -> list[Path]:
    """Return the home folders of all people who have one on this machine, whatever HOME says."""
    try:
        import pwd
    except ImportError:  # Windows
        return []
    return [Path(e.pw_dir) for e in pwd.getpwall() if e.pw_uid == 0 or e.pw_uid >= _FIRST_PERSON]


def _passes(folder: Path, workspace: Path) -> bool:
    """Tells whether the way to a folder leads through the workspace, by any link on it."""
    at, left, links = Path("/"), list(folder.parts[1:]), 0
    while left:
        name = left.pop(0)
        if name == "..":
            at = at.parent
        else:
            at /= name
        if at == workspace or workspace in at.parents:
            return True
        if at.is_symlink():
            links += 1
            if links > _LINK_LIMIT:
                return True
            target = Path(os.readlink(at))
            at = Path("/") if target.is_absolute() else at.parent
            left = [*(part for part in target.parts if part != "/"), *left]
    return False


def _installation(folder: Path, home: Path) -> Iterator[Path]:
    """Yield what belongs to a folder of programs: `…/node/bin` belongs to `…/node`."""
    real = folder.resolve()
    yield real
    prefix = real.parent
    if folder.name not in _BIN or not _is_harmless(prefix, home):
        return
    if prefix.name in _PARTS and not (prefix / _GO).is_dir():
        yield from (prefix / part for part in _PARTS[prefix.name])
        yield from (prefix.parent / name for name in _COMPANIONS.get(prefix.name, ()))
    elif prefix.name in _WHOLE or any((prefix / mark).exists() for mark in _MARKS):
        yield prefix
        yield from _base_python(prefix)


def _base_python(environment: Path) -> Iterator[Path]:
    """Yield the Python that a virtual environment was made from.

    Its file may say anything: only a folder that holds a whole Python is believed to be one.
    """
    for line in small_text(environment / "pyvenv.cfg").splitlines():
        name, _, value = line.partition("=")
        if name.strip() != "home" or not os.path.isabs(value.strip()) or "\0" in value:
            continue
        with contextlib.suppress(
            OSError, RuntimeError
        ):  # too many links; 3.11 says so by the latter
            prefix = Path(value.strip()).resolve().parent
            if _is_python(prefix):
                yield prefix


def small_text(path: Path) -> str:
    """Return the text of a small file; nothing if it is not there, or no file, or not small.

    A command may have put anything in its place: a pipe is not waited for, a device not read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY)
    except OSError:
        return ""
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _SMALL_BYTES:
            return ""
        return os.read(handle, _SMALL_BYTES).decode("utf-8", "replace")
    finally:
        os.close(handle)


def _is_python(prefix: Path) -> bool:
    return any((prefix / "lib").glob("python3*/os.py")) and any((prefix / "bin").glob("python3*"))


def _outermost(found: Iterable[Path]) -> list[Path]:
    """Return those that exist and are not seen in one of the others anyway, sorted."""
    real = {folder.resolve() for folder in found if folder.is_dir()}
    return sorted(
        folder
        for folder in real
        if not any(_is_seen(folder, each) for each in real.intersection(folder.parents))
    )


def _is_seen(folder: Path, other: Path) -> bool:
    """Return whether nothing is hidden on the way from one folder down to another."""
    return not any(map(credentials.is_hidden, folder.relative_to(other).parts))


def _is_harmless(folder: Path, home: Path) -> bool:
    """Tells whether a folder is a place for tools: no home folder, nor any that holds one, nor a safe."""
    is_private = folder.name in credentials.PRIVATE
    return folder not in (home, *home.parents) and folder.parent != Path("/") and not is_private
