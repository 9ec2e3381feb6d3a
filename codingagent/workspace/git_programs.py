"""Find what the person's git runs or obeys around a workspace: hooks, filters, editors, by its own settings.

Their words are read for files of the workspace. Those are protected, whether they are there or not, and a
commit names them. Only git reads its settings, in all places that it has; `git config` runs nothing.
"""

import contextlib
import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from glob import glob
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from codingagent.model.patterns import alternatives, lazy_pattern, sections, words
from codingagent.workspace.git_repository import Repository, repository_of, text_of
from codingagent.workspace.programs import clean_variables, persons_variables
from codingagent.workspace.real_paths import from_root, resolved, with_slashes

if TYPE_CHECKING:
    from codingagent.workspace.git_files import Git

_TOLD = sections(__file__)
_LOCAL, _PLAIN, _PATHS = words(_TOLD["local"]), words(_TOLD["plain"]), words(_TOLD["path"])
_COMMANDS, _OBEYED = words(_TOLD["commands"]), words(_TOLD["obeyed"])
_TAKES = {
    name: files.split()
    for names, files in re.findall(r"(?m)^ *(\S.*?)  +(\S.*)", _TOLD["takes"])
    for name in names.split()
}
_TAKEN = {file for files in _TAKES.values() for file in files}
AT_COMMIT = alternatives(_TOLD["at a commit"])
"""What runs at a commit, besides filters."""
# Of what one program names, so much is read: scripts that run scripts.
_LIMIT_BYTES, _FOLDERS_LIMIT = 1 << 17, 8
_COMMENT = lazy_pattern(r"(?m)^[ \t]*#(?!!).*$")
# What nobody knows beforehand: `"$(git rev-parse --show-toplevel)"/x` leaves `/x`.
_VARIABLE = lazy_pattern(r"\$\{[^}]*\}|\$\w+")
# What is formatted or looked through is not run; what a substitution among the arguments runs, is.
_ABOUT = lazy_pattern(
    rf"""(?<![\w./-])(?:{alternatives(_TOLD["about"]).pattern})(?=\s)"""
    r"""(?:"(?:[^"`$]|\$(?!\())*"|'[^']*'|[^;&|\n"'`()<>])*"""
)
# Scripts whose name is made when they are run.
_SCRIPTS = lazy_pattern(r"([\w./-]+/)[\w.-]*(?:\*|\$\w+|\$\{\w+\})[\w.-]*\.sh\b")
_TOKEN = lazy_pattern(r""""((?:[^"\\]|\\.)*)"|'([^']*)'|((?:[^\s"'\\]|\\.)+)""", re.DOTALL)
_PIECE = lazy_pattern(r"[\w./~@%+-]+")
_ESCAPED = lazy_pattern(r"\\(?=.)", re.DOTALL)
_UPWARDS = lazy_pattern(r"^(?:\.{0,2}/)+")
_MODULE = lazy_pattern(r"(?:^|[\s\"'])-m\s*([\w.]+)")
_IMPORT = lazy_pattern(
    r"""(?m)(?:^|[;"'])[ \t]*(?:from[ \t]+([\w.]+)[ \t]+)?import[ \t]+(\([^)]*|[\w., \t]+)"""
)
_QUOTED = lazy_pattern(r"""['"]([^'"\s]*/[^'"\s]+)['"]""")
# What Python and Node run of a folder.
_OF_FOLDER = ("__main__.py", "index.js")
_SHELL = lazy_pattern(r"#!.*\b(?:ba|da|k|z)?sh\b")
_PYTHON = lazy_pattern(r"#!.*\bpython")
_OF_NODE = (".js", ".cjs", ".mjs")
# They hold commands of hooks.
_LISTS = lazy_pattern(r"\.?(?:pre-commit|lefthook|lint-?staged|overcommit|husky).*|.*\.(?:ba)?sh")


class GitProgram(NamedTuple):
    """What git runs or obeys, and what of the workspace that names."""

    what: str
    """`hook NAME`, the key of a setting, or the name of a variable or a file."""
    named: Mapping[str, bool]
    """By path from the workspace: whether a change of it changes what runs; of a mere folder, none does."""

    @property
    def told(self) -> str:
        """Itself as a hook or filter in words; empty for others."""
        return re.sub(r"^(filter|hook)\.(.*)\.\w+|^(?!hook ).*", r"\1 \2", self.what).strip()


def git_variables(*outside: Path, trusts_all: bool = False) -> dict[str, str]:
    """Return the variables with which the person's git runs: clean ones, unless all are trusted."""
    every = persons_variables() if trusts_all else clean_variables(*outside)
    return {name: value for name, value in every.items() if name not in _LOCAL}


def named_by_git(root: Path, git: "Git | None") -> list[str]:
    """Return the paths in a folder that git runs or obeys there, each with `./` before it."""
    every = (each.named.items() for each in programs_of(root, git))
    return list(dict.fromkeys(f"./{path}" for named in every for path, runs in named if runs))


def programs_of(root: Path, git: "Git | None") -> list[GitProgram]:
    """Return what git runs or obeys in the repository around a folder; nothing without one."""
    if git is None:
        return []
    with repository_of(root) as found:
        return [*_programs(resolved(root), git, found)] if found else []


def _programs(root: Path, git: "Git", found: Repository) -> Iterator[GitProgram]:
    top = root.parents[len(found.names) - 1] if found.names else root
    search, hooks = _Search(root, top), os.path.join(top, found.common, "hooks")
    variables = git_variables(root, top)
    for name in (_COMMANDS | _OBEYED) & variables.keys():
        find = search.at if name in _OBEYED else search.named
        yield GitProgram(name, find(variables[name]))
    settings = [*_settings(top, git, variables)]
    yield from (GitProgram(file, search.at(file)) for file in {file for file, _, _ in settings})
    for origin, key, value in settings:
        last = key.rpartition(".")[2]
        is_include = last == "path" and key.startswith("include")
        if is_include or key in _PATHS:
            beside = os.path.dirname(origin) if is_include else ""
            yield GitProgram(key, search.at(os.path.join(beside, os.path.expanduser(value))))
            hooks = os.path.join(top, os.path.expanduser(value)) if last == "hookspath" else hooks
        elif last not in _PLAIN:
            yield GitProgram(key, search.named(value))
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(hooks)):
            place = os.path.join(hooks, name)
            is_run = os.access(place, os.X_OK) and os.path.isfile(place)
            if not name.endswith(".sample") and (is_run or os.path.islink(place)):
                yield GitProgram(f"hook {name}", search.at(place) | search.read(place))


def _settings(top: Path, git: "Git", variables: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the file, the key and the value of each of git's settings, in the order in which they count."""
    from codingagent.workspace.git_files import together

    how = ("-c", "safe.directory=*", "config", "--list", "--show-origin", "-z")
    argv = (git.program, "-C", os.fspath(top), *how)
    [done] = together(top, partial(git.run, argv, variables, b""))
    told = done.stdout.split(b"\0")
    for origin, entry in zip(told[::2], told[1::2], strict=False):
        kind, _, file = text_of(origin).partition(":")
        key, _, value = text_of(entry).partition("\n")
        yield file if kind == "file" else os.devnull, key, value


class _Search:
    """The search for what texts name of a workspace."""

    def __init__(self, root: Path, top: Path) -> None:
        self._root, self._top = root, os.fspath(top)

    def at(self, path: str) -> dict[str, bool]:
        """Return a path, and where it leads by links, as paths of the workspace."""
        place = os.path.normpath(os.path.join(self._top, path))
        return dict.fromkeys((each for each, _ in self._inside(place)), True)

    def named(self, value: str) -> dict[str, bool]:
        """Return what a setting's value names. Its first word is found on PATH, unless it is a path."""
        first, _, rest = value.strip().partition(" ")
        is_path = not re.fullmatch(r"[\w-]*", first)
        return self._found([(value if is_path or first in _TAKES else rest, self._top)])

    def read(self, place: str) -> dict[str, bool]:
        """Return what a hook names."""
        return self._found([*self._texts(place, os.path.dirname(place), is_run=True)])

    def _found(self, texts: list[tuple[str, str]]) -> dict[str, bool]:
        found: dict[str, bool] = {}
        waiting, left = deque(texts), _LIMIT_BYTES
        while waiting and left > 0:
            text, beside = waiting.popleft()
            left -= len(text)
            for place, importing in self._places(text, beside):
                for path, each in self._inside(place):
                    if path not in found:
                        found[path] = not os.path.isdir(each)
                        waiting += self._texts(each, importing)
        return found

    def _inside(self, place: str) -> Iterator[tuple[str, str]]:
        for each in dict.fromkeys((place, os.path.realpath(place))):
            path = with_slashes(from_root(each, self._root))
            if path != "." and not path.startswith("..") and ".git" not in path.split("/"):
                yield path, each

    def _texts(self, place: str, importing: str, *, is_run: bool = False) -> Iterator[tuple[str, str]]:
        """Yield what a script runs, its commands or what it imports, and the folder that has it."""
        text = ""
        with contextlib.suppress(OSError):
            if os.path.isfile(place) and os.path.getsize(place) <= _LIMIT_BYTES:
                text = Path(place).read_bytes().decode("utf-8", "replace")
        name = os.path.basename(place)
        is_list = name in _TAKEN or _LISTS.fullmatch(name)
        if is_run or is_list or _SHELL.match(text):
            yield text, os.path.dirname(place)
        elif text.startswith("#!") or place.endswith((".py", ".pl", ".rb", *_OF_NODE)):
            ends = ("", *_OF_NODE, ".json") if place.endswith(_OF_NODE) else ("",)
            said = [f"{name}{end}" for name in _QUOTED.findall(text) for end in ends]
            if place.endswith(".py") or _PYTHON.match(text):
                said += (f"import {name}" for name in _imported(text))
            for beside in {importing, os.path.dirname(place)}:
                yield "\n".join(said), beside

    def _places(self, text: str, beside: str) -> Iterator[tuple[str, str]]:
        """Yield the places that a text may mean, and where what is there imports from."""
        text = _ABOUT.sub(" ", _COMMENT.sub("", text))
        for folder in _SCRIPTS.findall(text):
            place = os.path.join(self._top, folder)
            yield from ((each, place) for each in (f"{place}*.sh", *glob(f"{place}*.sh")))
        text = _VARIABLE.sub("", text)
        tokens = _TOKEN.findall(text)
        said = {quoted or single or _ESCAPED.sub("", bare) for quoted, single, bare in tokens}
        said |= {piece for token in said for piece in _PIECE.findall(token)}
        said = {os.path.expanduser(word) for word in said if "\0" not in word and len(word) < 1000}
        # As written, and after a beginning that nobody knows.
        ways = {word: {word, _UPWARDS.sub("", word) or word} for word in sorted(said)}
        there = (os.path.normpath(os.path.join(self._top, way)) for way in chain(*ways.values()))
        inner = [place for place in there if os.path.isdir(place) and any(self._inside(place))]
        folders = dict.fromkeys((self._top, beside, *inner[:_FOLDERS_LIMIT]))
        for word, both in ways.items():
            # An answer could make it.
            is_path = "/" in word and "//" not in word and _PIECE.fullmatch(word)
            for folder, way in product(folders, both):
                place = os.path.normpath(os.path.join(folder, way))
                if not (os.path.lexists(place) or (is_path and folder in (self._top, beside))):
                    continue
                yield place, os.path.dirname(place)
                if os.path.isdir(place):
                    yield from ((os.path.join(place, name), place) for name in _OF_FOLDER)
        for name in (*_MODULE.findall(text), *_imported(text)):
            parts = name.strip(".").split(".")
            for base in {self._top, beside}:
                above = [os.path.join(base, *parts[:n]) for n in range(1, len(parts) + 1)]
                for each in above:
                    yield from ((f"{each}{end}", base) for end in (".py", "/__init__.py"))
                yield f"{above[-1]}/__main__.py", base
        for name in {bare for _, _, bare in tokens} & _TAKES.keys():
            taken = (os.path.join(f, each) for f in (self._top, *inner) for each in _TAKES[name])
            yield from ((place, beside) for place in taken)


def _imported(text: str) -> list[str]:
    """Return the modules that a text of Python's may import; of `from a import b`, a.b."""
    found = ((base, re.findall(r"[\w.]+", names)) for base, names in _IMPORT.findall(text))
    return [f"{base}.{name}" if base else name for base, names in found for name in names]
