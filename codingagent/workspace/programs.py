"""Find the programs that we start for ourselves (git, an editor), where no answer could have put one."""

import contextlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from codingagent.errors import UsageError
from codingagent.model.patterns import lazy_pattern, words
from codingagent.workspace.real_paths import IGNORES_CASE, from_root, leads_through, resolved

# A process serves one person: where it or another once let an answer write is never trusted again.
_untrusted: set[Path] = set()
_unknown: list[Callable[[], Iterable[Path]]] = []
_persons: list[str] = []
# Variables with folders, files or options by which a program loads code.
_CODE = words(
    "PATH PYTHONPATH PYTHONHOME PYTHONSTARTUP NODE_PATH NODE_OPTIONS PERL5LIB PERL5OPT RUBYLIB RUBYOPT",
    "LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH BASH_ENV ENV GIT_EXEC_PATH",
)
# Without one of the tools, these of macOS only ask the person to install them (xcode-select(1)).
_STUBS = frozenset(f"/usr/bin/{name}" for name in ("git", "python3", "make", "clang", "gcc", "g++"))
_TOOLS = (*("/Library/Developer/CommandLineTools", "/Applications/Xcode.app"), "/var/db/xcode_select_link")
# Where python3 leads, its file is called so: the version is known without running it.
_PYTHON = lazy_pattern(r"python(3\.\d+)(?:\.exe)?")
# On Windows: an apostrophe within a word is one.
_WORD = lazy_pattern(r"""'([^'"]*)'(?!\S)|((?:[^\s"]|"[^"]*")+)""")
# In quotes, too, PowerShell or cmd.exe put something else in the place of what these begin.
_READ_BY_SHELLS = lazy_pattern("[$`%]")


class UntrustedError(UsageError):
    """An answer could have written the program that was named."""


def distrust(*folders: Path) -> None:
    """Take no program from these folders any more, nor from below them."""
    _untrusted.update(map(resolved, folders))
    if _persons:
        os.environ["PATH"] = own_path()


def distrust_later(find: Callable[[], Iterable[Path]]) -> None:
    """Distrust the folders that a function finds, when a program is needed: most commands need none."""
    _unknown.append(find)


def persons_path() -> str:
    """Return PATH as the person has it, for what works for answers."""
    return _persons[0] if _persons else os.environ.get("PATH", "")


def put_first(folder: str) -> None:
    path = os.pathsep.join((folder, persons_path()))
    if _persons:
        _persons[0] = path
    else:
        os.environ["PATH"] = path


def persons_variables() -> dict[str, str]:
    return {**os.environ, "PATH": persons_path()} if _persons else dict(os.environ)


@contextlib.contextmanager
def own_programs() -> Iterator[None]:
    """Have this process, and what it starts, find its programs on our own PATH."""
    if _persons:
        yield
        return
    before = {*_untrusted}
    _persons.append(os.environ.get("PATH", os.defpath))
    os.environ["PATH"] = own_path()
    try:
        yield
    finally:
        os.environ["PATH"] = _persons.pop()
        _unknown.clear()
        _untrusted.intersection_update(before)


def own_path(*outside: Path) -> str:
    """Return PATH without distrusted and relative folders, those in `outside` and in the project here."""
    return _apart(persons_path(), _not_ours(outside))


def clean_variables(*outside: Path) -> dict[str, str]:
    """Return the person's variables; those that lead to code without what an answer could have written."""
    distrusted()
    places, found = _not_ours(outside), persons_variables()
    cleaned = {name: _apart(found[name], places) for name in _CODE & found.keys()}
    return {name: value for name, value in (found | cleaned).items() if value or name not in _CODE}


def _apart(folders: str, places: Iterable[Path]) -> str:
    return os.pathsep.join(each for each in folders.split(os.pathsep) if _is_apart(each, places))


def _not_ours(outside: Iterable[Path]) -> list[Path]:
    project: list[Path] = []
    with contextlib.suppress(OSError):  # the current folder is gone
        here, home = Path.cwd().resolve(), Path(os.path.expanduser("~")).resolve()
        above = (each for each in (here, *here.parents) if each not in (home, *home.parents))
        project = [each for each in above if os.path.lexists(each / ".git")][:1]
    return [*_untrusted, *(each.resolve() for each in outside), *project]


def find_program(name: str, *outside: Path) -> str | None:
    """Return the path of a program of our own; None if there is none where no answer could have put it."""
    if os.name == "nt" and name == "git":
        name = "git.exe"  # cmd.exe would read what stands in the arguments of a batch file
    places = [*distrusted(), *(each.resolve() for each in outside)]
    not_ours = _not_ours(outside)
    for folder in persons_path().split(os.pathsep):
        # With its folder: a bare name is looked for in the current folder first, on Windows.
        found = _program_at(os.path.join(folder, name)) if folder else None
        if not found or _is_stub(found):
            continue
        if _is_apart(folder, not_ours) and _is_apart(found, places):
            return found
    return None


def as_found(name: str) -> str:
    """Return a program's name if a command finds it, and no stub; with its version if a Python."""
    found = shutil.which(name, path=persons_path())
    if found is None or _is_stub(found):
        return ""
    if not name.startswith("python"):
        return name
    version = _PYTHON.fullmatch(os.path.basename(os.path.realpath(found)))
    return f"{name} ({version[1]})" if version else name


def _is_stub(found: str) -> bool:
    folder, name = os.path.split(found)
    if name.lower().startswith("python") and folder.lower().endswith("windowsapps"):
        return not any(Path(folder).glob("python3.*.exe"))  # which a Python from the Store has
    tools = (*_TOOLS, os.environ.get("DEVELOPER_DIR", ""))
    return IGNORES_CASE and found in _STUBS and not any(map(os.path.exists, tools))


def quoted(words: Iterable[str]) -> str:
    """Return words as a line of the person's shell."""
    if os.name == "nt":
        plain = re.compile(r"(?!~)[\w./\\:~-]+").fullmatch
        return " ".join(word if plain(word) else f'"{word}"' for word in words)
    return shlex.join(words)


def quoted_path(path: Path) -> str:
    """Return a path as a word of the person's shell; from here if PowerShell or cmd.exe would read in it."""
    word = os.fspath(path)
    if os.name == "nt" and _READ_BY_SHELLS.search(word):
        near = from_root(word, Path.cwd())
        word = word if near == os.pardir else near
    return quoted([word])


def for_system(words: Iterable[str]) -> str:
    """Return words as a line for os.system: `cmd /c` would take off a quote that it begins with."""
    return f"{'call ' if os.name == 'nt' else ''}{quoted(words)}"


def split(line: str) -> list[str]:
    """Return the words of a line that a person typed; ValueError if a quote is not closed."""
    if os.name != "nt":
        return shlex.split(line)
    if line.count('"') % 2:
        raise ValueError("No closing quotation")
    return [quoted or word.replace('"', "") for quoted, word in _WORD.findall(line)]


def command_line(line: str) -> list[str]:
    """Return the words of a line such as EDITOR, the program by its path; UsageError, `UntrustedError`."""
    try:
        name, *words = split(line)
    except ValueError as fault:
        raise UsageError(f"{line!r} is not a command line: {fault}") from fault
    if os.path.basename(name) == name:
        found = find_program(name)
        other = None if found else shutil.which(name, path=persons_path())
    else:
        is_apart = _is_apart(name, distrusted())
        found, other = (_program_at(name), None) if is_apart else (None, name)
    if found:
        return [found, *words]
    if other:
        raise UntrustedError(
            f"{line!r} is not started: an answer could have written {other}; name a program outside of"
            " the workspace, by its full path"
        )
    raise UsageError(f"{line!r} can't be started: there is no {name!r}")


def _program_at(path: str) -> str | None:
    """Return the program at a path; on Windows with its ending, which `which` adds from Python 3.12 on."""
    known = [*filter(None, os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").upper().split(";"))]
    is_whole = os.name != "nt" or os.path.splitext(path)[1].upper() in known
    return next(filter(shutil.which, [path] if is_whole else [path + each for each in known]), None)


def distrusted() -> Iterable[Path]:
    """Return the distrusted folders; look for those now that were to be found when needed."""
    while _unknown:
        distrust(*_unknown.pop()())
    return _untrusted


def _is_apart(place: str, places: Iterable[Path]) -> bool:
    """Return whether a path is absolute and leads through none of these places, by any link on it."""
    path, places = Path(place), list(places)
    if not os.path.isabs(place) or leads_through(path, places):
        return False
    # Also mapped drives and short names.
    return sys.platform == "linux" or not leads_through(resolved(path), places)
