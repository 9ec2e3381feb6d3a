"""Find what a sandbox shows of the home, for programs on PATH and of tools' data, and what it hides there.

Never the home folder itself is shown. Of credentials a list of names is never complete. So everything that an
application keeps in a dot folder is hidden too, except folders known to hold programs, and so are sockets.
"""

import contextlib
import os
import stat
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from pathlib import Path

from msgspec import Struct

from codingagent.model.paths import HOME_MARK, OF_HOME
from codingagent.model.patterns import lazy_pattern, sections
from codingagent.secrets.detect import find_secrets
from codingagent.secrets.files import NAMES, is_secret_file
from codingagent.workspace.dirfd import CAREFULLY, NO_FOLLOW, PATH_ONLY, file_id, walk_names
from codingagent.workspace.real_paths import leads_through

_SECTIONS = sections(__file__)


def listed(section: str) -> tuple[str, ...]:
    return tuple(_SECTIONS[section].split())


def pairs(section: str) -> dict[str, str]:
    """Return the lines of a section by what is before their first colon."""
    lines = (line.strip().partition(": ") for line in _SECTIONS[section].splitlines())
    return {name: rest for name, _, rest in lines}


_BIN = ("bin", "sbin", "shims")
_PARTS = {name: rest.split() for name, rest in pairs("parts of tool folders").items()}
# Marks the Go toolchain, under any name; otherwise `go` holds a person's sources.
_GO = "src/runtime"
# Any other folder needs one of the marks.
_WHOLE = listed("whole tool folders")
_MARKS = ("lib", "libexec", "pyvenv.cfg", "conda-meta")
# Of a folder of programs so many names are looked at for links, and so far up for what one leads to.
_LINKS_LIMIT, _UPWARDS = 5_000, 4
_SYSTEM = tuple(f"{each}/" for each in listed("system folders") if each not in ("/opt", "/snap"))
_FIRST_PERSON = 1_000
_NAMES = NAMES.union(listed("credentials"))
_PRIVATE, _OPEN, _PACKAGES, _CODE = (
    frozenset(listed(section)) for section in ("private folders", "open folders", "packages", "code")
)
_DEPTH, _FOLDERS, _DATA_FOLDERS = 4, 2000, 100
# A workspace's secret files are not looked for here: they are a repository's and other people's.
_OTHERS = frozenset({".git", "node_modules", "site-packages", "__pycache__"})
_NAMES_LIMIT = 200_000
_SMALL_BYTES = 64 * 1024
# A start must not wait for a walk through everything ever installed.
_LOOK_LIMIT_FOLDERS = 2000
# What git obeys, and what this program does of sessions that go on there.
_KEPT = frozenset({".git", ".codingagent"})
_NOT_LOOKED_INTO = _KEPT | {"node_modules", ".venv", "venv", "target", "__pycache__"}
# Each is held open, and a process has about a thousand descriptors.
_REPOSITORY_LIMIT = 400


def tool_folders(
    path: str, home: Path, workspace: Path, prefixes: Iterable[str] = (), programs: Iterable[Path] = ()
) -> list[Path]:
    """Return the real folders of the programs on PATH and of what they need to run.

    No link or file in the workspace is trusted. `prefixes` are further installations, `programs` further
    paths.
    """
    homes_and_above = around_homes(home)
    found: set[Path] = set()
    for program in programs:
        found.update(_around_program(program, workspace, homes_and_above))
    own = (os.path.join(prefix, "bin") for prefix in prefixes)
    for place in map(Path, {*path.split(os.pathsep), *own}):
        if not (place.is_absolute() and place.is_dir()):
            continue
        if leads_through(place, [workspace]):
            found.update(_base_python(place.parent))
        else:
            found.update(_installation(place, homes_and_above))
            for program in _linked_programs(place, found):
                found.update(_around_program(program, workspace, homes_and_above))
    real = {folder.resolve() for folder in found if folder.exists()}
    real = {folder for folder in real if _is_harmless(folder, homes_and_above)}
    # Others are already visible in one above, with nothing hidden between.
    return sorted(
        folder
        for folder in real
        if all(
            any(map(_is_hidden, folder.relative_to(above).parts))
            for above in real.intersection(folder.parents)
        )
    )


def around_homes(home: Path) -> set[Path]:
    """Return all people's home folders, and those above them: none of these is ever shown."""
    return {f for each in (home.resolve(), *homes()) for f in (each, *each.parents)}


def homes() -> list[Path]:
    """Return the home folders of all users on this machine, whatever HOME says."""
    if sys.platform != "win32":
        import pwd

        found = pwd.getpwall()
        return [Path(e.pw_dir) for e in found if e.pw_uid == 0 or e.pw_uid >= _FIRST_PERSON]
    else:  # noqa: RET505  # the type checker follows this
        return []


def _installation(folder: Path, homes_and_above: set[Path]) -> Iterator[Path]:
    """Yield the installation around a folder of programs: `…/node` for `…/node/bin`."""
    real = folder.resolve()
    yield real
    prefix = real.parent
    if folder.name not in _BIN or not _is_harmless(prefix, homes_and_above):
        return
    if prefix.name in _PARTS and not (prefix / _GO).is_dir():
        yield from (prefix / part for part in _PARTS[prefix.name])
    elif prefix.name in _WHOLE or any((prefix / mark).exists() for mark in _MARKS):
        yield prefix
        yield from _base_python(prefix)


def _linked_programs(folder: Path, shown: AbstractSet[Path]) -> Iterator[Path]:
    """Yield the links in a folder of PATH that lead out of it and of the system, to what is not shown."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, _LINKS_LIMIT):
            # Most links of a system's folder lead to a name beside them.
            if not entry.is_symlink() or "/" not in (target := os.readlink(entry.path)):
                continue
            place = os.path.normpath(os.path.join(folder, target))
            if not place.startswith(_SYSTEM) and shown.isdisjoint(Path(place).parents):
                yield Path(entry.path)


def _around_program(program: Path, workspace: Path, homes_and_above: set[Path]) -> Iterator[Path]:
    """Yield the installation that a program leads to, but through no workspace; if none, its file alone."""
    try:
        real = program.resolve(strict=True)
    except (OSError, RuntimeError):
        return
    if leads_through(program, [workspace]) or not real.is_file():
        return
    packages = next((each for each in reversed(real.parents) if each.name == "node_modules"), None)
    marked = (each for each in list(real.parents)[:_UPWARDS] if (each / "package.json").is_file())
    prefix = packages or next(marked, None)
    if prefix is not None and _is_harmless(prefix, homes_and_above):
        yield prefix
        return
    around = list(_installation(real.parent, homes_and_above))
    yield from around[1:]
    if len(around) == 1 and os.access(real, os.X_OK):
        yield real


def _base_python(environment: Path) -> Iterator[Path]:
    """Yield the Python that a virtual environment was made from, if the named folder holds a whole one."""
    for line in small_text(environment / "pyvenv.cfg").splitlines():
        name, _, value = line.partition("=")
        if name.strip() != "home" or not os.path.isabs(value.strip()) or "\0" in value:
            continue
        # Of too many links, Python 3.11 raises the latter.
        with contextlib.suppress(OSError, RuntimeError):
            prefix = Path(value.strip()).resolve().parent
            has_library = any((prefix / "lib").glob("python3*/os.py"))
            if has_library and any((prefix / "bin").glob("python3*")):
                yield prefix


def small_text(path: Path) -> str:
    """Return the text of a small file; empty if it is missing, a link, a pipe, a device, or not small."""
    with (
        contextlib.suppress(OSError),
        open(path, "rb", opener=lambda name, _: os.open(name, CAREFULLY | NO_FOLLOW)) as file,
    ):
        found = os.fstat(file.fileno())
        if stat.S_ISREG(found.st_mode) and found.st_size <= _SMALL_BYTES:
            return file.read(_SMALL_BYTES).decode("utf-8", "replace")
    return ""


def _is_harmless(folder: Path, homes_and_above: AbstractSet[Path]) -> bool:
    """Return whether a folder may be shown: not a home, above a home, or a place of secrets."""
    is_private = folder.name in _PRIVATE
    return folder not in homes_and_above and folder.parent != Path("/") and not is_private


def is_harmless_part(target: Path, real: Path, workspace: Path, homes_and_above: AbstractSet[Path]) -> bool:
    """Return whether a part of a home may be shown: its links lead to no secrets, and no answer laid them."""
    led = (name for name in real.parts if name not in target.parts)
    is_private = any(name in _PRIVATE or _is_named(name) for name in led)
    is_private = is_private or leads_through(target, [workspace])
    return not is_private and _is_harmless(real, homes_and_above)


def git_folders(workspace: Path) -> list[Path]:
    """Return the paths to make read-only to protect git's data: `.git` and, for a worktree, its repository.

    A worktree's `.git` is a file that names a folder elsewhere. It is trusted only if that folder
    names this worktree in turn, which a process that writes only here can't arrange.
    """
    git = workspace / ".git"
    if git.is_symlink():
        # A command may have written this file: its target must not become visible because of that.
        with contextlib.suppress(OSError, RuntimeError):  # it may lead to itself
            real = git.resolve()
            return [real] if workspace in real.parents and real.exists() else []
        return []
    if git.is_dir():
        return [git]
    said = small_text(git)
    if not said.startswith("gitdir:") or "\0" in said:
        return [git] if git.exists() else []
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        folder = (workspace / said.removeprefix("gitdir:").strip()).resolve()
        back = small_text(folder / "gitdir").strip()
        common = (folder / small_text(folder / "commondir").strip()).resolve()
        is_ours = (folder / back).resolve() == git and folder.parent == common / "worktrees"
        if back and is_ours and (common / "HEAD").is_file() and (common / "objects").is_dir():
            return [git, common]
    return [git]


class OpenRepository:
    """A `.git`, or a home, held open so that it can be found wherever a command moves it."""

    def __init__(self, path: str) -> None:
        self._handle = os.open(path, PATH_ONLY | NO_FOLLOW)
        found = os.fstat(self._handle)
        self.is_link = stat.S_ISLNK(found.st_mode)
        self.identity = file_id(found)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # it could not be opened
            os.close(self._handle)

    def place(self) -> Path:
        """Return its current path; one that is nowhere if it was removed."""
        path = os.readlink(f"/proc/self/fd/{self._handle}")
        return Path() if path.endswith(" (deleted)") else Path(path)


def repositories_in(workspace: Path) -> tuple[OpenRepository, ...]:
    """Return the repositories below a workspace's root, and the homes in it, that a bounded walk finds."""
    found: list[OpenRepository] = []
    root = os.fspath(workspace)
    for folder, names, others in islice(walk_names(root), _LOOK_LIMIT_FOLDERS):
        is_home = os.path.lexists(os.path.join(folder, "sessions", HOME_MARK))
        for name in (_KEPT | OF_HOME if is_home else _KEPT).intersection([*names, *others]):
            if (folder, name) != (root, ".git"):
                with contextlib.suppress(OSError):  # removed meanwhile
                    repository = OpenRepository(os.path.join(folder, name))
                    if not repository.is_link:
                        found.append(repository)
        for name in _NOT_LOOKED_INTO.intersection(names):
            names.remove(name)
        if len(found) >= _REPOSITORY_LIMIT:
            break
    return tuple(found)


# --- credentials ---
def files_of_secrets(workspace: Path, passed_over: AbstractSet[Path]) -> list[Path]:
    """Return a workspace's secret files, ignored ones too, by real paths; OSError for too many names."""
    found: set[Path] = set()
    looked = 0
    for folder, inner, names in walk_names(os.fspath(workspace)):
        here = Path(folder)
        searched = (name for name in inner if here / name not in passed_over)
        inner[:] = [name for name in searched if name not in _OTHERS]
        looked += len(inner) + len(names)
        if looked > _NAMES_LIMIT:
            raise OSError(f"more than {_NAMES_LIMIT:,} names to look at; use --secrets redact")
        # The target of a link has another name.
        secret = (name for name in names if is_secret_file(f"{folder}/{name}"))
        found.update((here / name).resolve() for name in secret)
    return sorted(each for each in found if workspace in each.parents and each.is_file())


def _is_hidden(name: str) -> bool:
    return name not in _OPEN and (name.startswith(".") or _is_named(name))


def _is_named(name: str) -> bool:
    return name.casefold().lstrip("._") in _NAMES


class CredentialSearch:
    """Find what to hide; unchanged folders are not read again."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], tuple[tuple[int, int, int], list[str], list[str]]] = {}

    def hidden_in(
        self, folders: AbstractSet[Path], passed_over: Path, data: AbstractSet[Path] = frozenset()
    ) -> list[Path]:
        """Return the outermost hidden paths in tool folders; in `data` only files named like credentials."""
        found: set[Path] = set()
        for folder in folders | data:
            is_data = folder in data
            is_passed = folder.name in _PACKAGES and not is_data
            todo = deque([] if is_passed else [(os.fspath(folder), 0)])
            for _ in range(_DATA_FOLDERS if is_data else _FOLDERS):
                if not todo:
                    break
                name, depth = todo.popleft()
                hidden, inner = self._listing(name, is_data=is_data)
                found.update(map(Path, hidden))
                if depth < _DEPTH:
                    todo += ((each, depth + 1) for each in inner if each != str(passed_over))
        # Whose nearest listed ancestor is shown, not hidden.
        is_listed = (folders | data | found).__contains__
        nearest = {each: next(filter(is_listed, each.parents), None) for each in found}
        return sorted(each for each, above in nearest.items() if above in folders | data)

    def _listing(self, folder: str, *, is_data: bool) -> tuple[list[str], list[str]]:
        """Return the hidden names in a folder, and its subfolders to search."""
        try:
            about = os.lstat(folder)
            state = about.st_dev, about.st_ino, about.st_mtime_ns
            known = self._known.get((folder, is_data))
            if known is None or known[0] != state:
                with os.scandir(folder) as entries:
                    known = state, *_sorted_out(entries, is_data=is_data)
                self._known[folder, is_data] = known
        except OSError:  # removed, or not readable
            return [], []
        return known[1], known[2]


def _sorted_out(entries: Iterable[os.DirEntry[str]], *, is_data: bool) -> tuple[list[str], list[str]]:
    is_hidden = _is_named if is_data else _is_hidden
    hidden: list[str] = []
    inner: list[str] = []
    for entry in entries:
        if entry.is_symlink():
            # The target of a link has another name.
            if _is_named(entry.name) and os.path.isfile(entry.path):
                hidden.append(os.path.realpath(entry.path))
        elif entry.is_dir():
            if not is_data and _is_hidden(entry.name):
                hidden.append(entry.path)
            elif entry.name not in _CODE and entry.name not in _PACKAGES:
                inner.append(entry.path)
        elif not entry.is_file() or (
            is_hidden(entry.name) and ("." in entry.name or not entry.stat().st_mode & stat.S_IXUSR)
        ):  # without an ending it may be a program
            hidden.append(entry.path)
    return hidden, inner


# --- what tools keep of their data in a home, as folders.txt lists it: narrow parts of it ---
OFFLINE = dict(each.split("=") for each in _SECTIONS["offline"].split())
ALONE = dict(line.strip().split("=", 1) for line in _SECTIONS["alone"].splitlines())
_PART = lazy_pattern(r"([+!?=]?)(?:(\w+)=)?(.*?)(?://(.*))?")
_BASES = {".cache": "XDG_CACHE_HOME", ".config": "XDG_CONFIG_HOME", ".local/share": "XDG_DATA_HOME"}
# A project file may be in a folder of the workspace's root; of so many entries.
_LOOKED_AT = 200
# A setting of an address with a password, or what a rule for secrets may not know.
_DOUBTFUL = lazy_pattern(r"(?i)token|passw|secret|auth|credential|://[^/\s]*@")


class Part(Struct, frozen=True):
    """A part of a tool's data, as folders.txt marks it; without a `real` path outside there is none."""

    tool: str
    kind: str
    target: Path
    real: Path | None


class ToolData(Struct, frozen=True):
    """The parts of the tools that a workspace may use, and the person's variables that lead to some."""

    parts: tuple[Part, ...] = ()
    variables: Mapping[str, str] = {}


def tool_data(path: str, home: Path, workspace: Path, variables: Mapping[str, str]) -> ToolData:
    """Return the parts of each tool that is on `path` or has a project file in the workspace."""
    homes = around_homes(home)
    there, root = set[str](), os.fspath(workspace)
    for folder, inner, names in islice(walk_names(root), _LOOKED_AT + 1):
        there.update(names if folder == root else names[:_LOOKED_AT])
        if folder != root:
            inner.clear()
    folders = [folder for folder in path.split(os.pathsep) if os.path.isabs(folder)]
    parts: dict[Path, Part] = {}
    passed: dict[str, str] = {}
    for words, rest in pairs("tools").items():
        named = words.split()
        if not there.intersection(named) and not any(
            os.path.exists(f"{folder}/{name}") for name in named for folder in folders
        ):
            continue
        for part, used in parts_of(named[0], rest, home, variables):
            passed.update(used)
            if part.target not in parts:
                parts[part.target] = _resolved(part, home, workspace, homes)
    # A part within another one is seen with it.
    shown = [each for each in parts.values() if each.real or each.kind in ("+", "!")]
    outer = {part.target for part in shown}
    return ToolData(tuple(each for each in shown if outer.isdisjoint(each.target.parents)), passed)


def parts_of(
    tool: str, rest: str, home: Path, variables: Mapping[str, str]
) -> Iterator[tuple[Part, dict[str, str]]]:
    """Yield each part of a tool's line as it would be, and the variable by which it was found."""
    for word in rest.split():
        match = _PART.fullmatch(word)
        assert match is not None, word
        kind, name, base, inner = match.groups()
        value, used = variables.get(name or "", ""), {}
        places = [each for each in value.split(os.pathsep) if each]
        if places and all(map(os.path.isabs, places)):
            used[name] = value
        else:
            places = [_usual(base, home, variables, used)] if base else []
        for place in places:
            target = Path(os.path.normpath(os.path.join(place, inner or "")))
            yield Part(tool, kind, target, None), used


def _usual(base: str, home: Path, variables: Mapping[str, str], used: dict[str, str]) -> str:
    for folder, name in _BASES.items():
        value = variables.get(name, "")
        if base.startswith(f"{folder}/") and os.path.isabs(value):
            used[name] = value
            return value + base.removeprefix(folder)
    return os.path.join(home, base)


def _resolved(part: Part, home: Path, workspace: Path, homes: AbstractSet[Path]) -> Part:
    real = part.target.resolve() if os.path.lexists(part.target) else None
    if real is None and home in part.target.parents:
        return part
    if real is None or not is_harmless_part(part.target, real, workspace, homes):
        return Part(part.tool, "", part.target, None)
    if part.kind == "?":
        text = small_text(real)
        is_harmless = text and not _DOUBTFUL.search(text) and not find_secrets(text, str(real))
        real = real if is_harmless else None
    elif not real.is_dir():
        real = None
    return Part(part.tool, part.kind if real else "", part.target, real)
