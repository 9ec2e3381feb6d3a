"""Find what the person's git runs or obeys around a workspace; the files that this names are protected."""

import contextlib
import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from glob import glob, has_magic
from itertools import chain, islice, product
from pathlib import Path
from typing import NamedTuple

from codingagent.model.patterns import alternatives, lazy_pattern, sections, words
from codingagent.workspace import git_files, programs, real_paths

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
_OF_GIT = alternatives(_TOLD["of git"])
# Of what one program names, so much is read: scripts that run scripts.
_LIMIT_BYTES, _FOLDERS_LIMIT, _FILES_LIMIT, _BASES_LIMIT, _BEFORE = 1 << 17, 8, 200, 4, 400
_COMMENT = lazy_pattern(r"(?m)^[ \t]*#(?!!).*$")
# What nobody knows beforehand: `"$(git rev-parse --show-toplevel)"/x` leaves `/x`, `${X:-x}` leaves `x`.
_VARIABLE = lazy_pattern(r"\$\{\w+:?[-=]([^{}]*)\}|\$\{[^}]*\}|\$\w+")
# What is formatted or looked through is not run; what a substitution among the arguments runs, is.
_ABOUT = lazy_pattern(
    rf"""(?<![\w./-])(?:{alternatives(_TOLD["about"]).pattern})(?=\s)"""
    r"""(?:"(?:[^"`$]|\$(?!\())*"|'[^']*'|[^;&|\n"'`()<>])*"""
)
# Scripts whose name is made when they are run.
_SCRIPTS = lazy_pattern(r"(?<![\w./-])([\w./-]+/)[\w.-]*(?:\*|\$\w+|\$\{\w+\})[\w.-]*\.sh\b")
_GIT = lazy_pattern(r"(?<![\w./-])git(?![\w./-])")
# What starts a file that it is given.
_STARTS = rf"(?:{alternatives(_TOLD['interpreters']).pattern})(?=[\s;|&)'\"]|$)"
_RUN = rf"""(?:["']?(?:\S{{0,99}}/)?{_STARTS}[ \t]*(?:-[\w=]+[ \t]+)*)"""
_EACH, _STARTED = (alternatives(_TOLD[name].replace("RUN", _RUN)) for name in ("each", "started"))
_NAMED = lazy_pattern(r"""-i?name\s+["']?([^"'\s]+)""")
_GLOB = lazy_pattern(r"(?<![\w./-])[\w./-]*\*[\w./*-]*")
# Where relative names count from.
_BASE = lazy_pattern(r"""(?:\bcd\s+|\bpushd\s+|\s-C\s*|=|\bpath\.\w+\((?:0,\s*)?)["']?([\w./-]+)""")
# A name with an ending is a file's, and so is a path.
_FILE = lazy_pattern(r"(?!.*//)[\w./~@%+-]*(?:/|\w\.[A-Za-z])[\w./~@%+-]*")
# In other folders of PATH a person may have a script of their own.
_SYSTEMS = words(_TOLD["systems"])
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
_SHEBANG = lazy_pattern(r"\A#!.*")
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
    every = programs.persons_variables() if trusts_all else programs.clean_variables(*outside)
    return {name: value for name, value in every.items() if name not in _LOCAL}


def named_by_git(root: Path, git: git_files.Git | None) -> list[str]:
    """Return the paths in a folder that git runs or obeys there, each with `./` before it."""
    every = (each.named.items() for each in programs_of(root, git))
    return list(dict.fromkeys(f"./{path}" for named in every for path, runs in named if runs))


def programs_of(root: Path, git: git_files.Git | None) -> Iterator[GitProgram]:
    """Yield what git runs or obeys in the repository around a folder; nothing without one."""
    if git is None:
        return
    with git_files.repository_of(root) as found:
        if found is None:
            return
    root = real_paths.resolved(root)
    top = root.parents[len(found.names) - 1] if found.names else root
    search, hooks = _Search(root, top), os.path.join(top, found.common, "hooks")
    variables = git_variables(root, top)
    for name in (_COMMANDS | _OBEYED) & variables.keys():
        find = search.at if name in _OBEYED else search.named
        yield GitProgram(name, find(variables[name]))
    settings = [*_settings(top, git, variables)]
    search.of_git = "\n".join(("", *(value for _, key, value in settings if _OF_GIT.fullmatch(key))))
    own = os.path.join(variables.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git")
    more = {os.path.expanduser("~/.gitconfig"), os.path.join(own, "config"), os.path.join(own, "attributes")}
    yield from (GitProgram(file, search.at(file)) for file in more.union(file for file, _, _ in settings))
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
                runs = search.hook(place)
                if hooks.endswith("/_"):  # husky's: each runs the one above that has its name
                    runs |= search.hook(os.path.join(os.path.dirname(hooks), name))
                yield GitProgram(f"hook {name}", runs)


def _settings(top: Path, git: git_files.Git, variables: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the file, the key and the value of each of git's settings, in the order in which they count."""
    how = ("-c", "safe.directory=*", "config", "--list", "--show-origin", "-z")
    argv = (git.program, "-C", os.fspath(top), *how)
    [done] = git_files.together(top, partial(git.run, argv, variables, b""))
    told = done.stdout.split(b"\0")
    for origin, entry in zip(told[::2], told[1::2], strict=False):
        kind, _, file = git_files.text_of(origin).partition(":")
        key, _, value = git_files.text_of(entry).partition("\n")
        yield file if kind == "file" else os.devnull, key, value


class _Search:
    """The search for what texts name of a workspace."""

    def __init__(self, root: Path, top: Path) -> None:
        self._root, self._top, self.of_git = root, os.fspath(top), ""
        # A link, or a script of the person's, that may lead to the workspace, by its name on PATH.
        self._on_path: dict[str, str] = {}
        for folder in git_variables(root, top).get("PATH", "").split(os.pathsep)[::-1]:
            with contextlib.suppress(OSError):
                if folder not in _SYSTEMS:
                    self._on_path |= {name: os.path.join(folder, name) for name in os.listdir(folder)}

    def at(self, path: str) -> dict[str, bool]:
        """Return a path, and where it leads by links, as paths of the workspace."""
        place = os.path.normpath(os.path.join(self._top, path))
        return dict.fromkeys((each for each, _ in self._inside(place)), True)

    def named(self, value: str) -> dict[str, bool]:
        """Return what a setting's value names. Its first word is found on PATH, unless it is a path."""
        first, _, rest = value.strip().partition(" ")
        is_program = not rest and re.fullmatch(r"[\w-]*", first)
        return {} if is_program and first not in _TAKES else self._found([(value, self._top)])

    def hook(self, place: str) -> dict[str, bool]:
        """Return the path of a hook, as `at` does, and what it names."""
        places = dict.fromkeys((place, os.path.realpath(place)))
        texts = (self._texts(each, os.path.dirname(each), is_run=True) for each in places)
        return self.at(place) | self._found([*chain(*texts)])

    def _found(self, texts: list[tuple[str, str]]) -> dict[str, bool]:
        found: dict[str, bool] = {}
        outside = {self._top}
        waiting, left = deque(texts), _LIMIT_BYTES
        while waiting and left > 0:
            text, beside = waiting.popleft()
            left -= len(text)
            for place, importing in self._places(text, beside):
                inside = [*self._inside(place)]
                for path, each in inside:
                    if path not in found:
                        found[path] = not os.path.isdir(each)
                        waiting += self._texts(each, importing)
                if not inside and place not in outside and os.path.dirname(place) not in _SYSTEMS:
                    outside.add(place)
                    waiting += self._texts(place, importing, is_outside=True)
        return found

    def _inside(self, place: str) -> Iterator[tuple[str, str]]:
        for each in dict.fromkeys((place, os.path.realpath(place))):
            path = real_paths.with_slashes(real_paths.from_root(each, self._root))
            if path != "." and not path.startswith("..") and ".git" not in path.split("/"):
                yield path, each

    def _texts(
        self, place: str, importing: str, *, is_run: bool = False, is_outside: bool = False
    ) -> Iterator[tuple[str, str]]:
        """Yield what a script runs, or imports if it is in the workspace, and the folder that has it."""
        text = ""
        with contextlib.suppress(OSError):
            if os.path.isfile(place) and os.path.getsize(place) <= _LIMIT_BYTES:
                text = Path(place).read_bytes().decode("utf-8", "replace")
        name = os.path.basename(place)
        is_list = name in _TAKEN or _LISTS.fullmatch(name)
        if is_run or is_list or _SHELL.match(text):
            yield text, os.path.dirname(place)
        elif not is_outside and (text[:2] == "#!" or place.endswith((".py", ".pl", ".rb", *_OF_NODE))):
            ends = ("", *_OF_NODE, ".json") if place.endswith(_OF_NODE) else ("",)
            said = [*_SHEBANG.findall(text)]
            said += (f"{name}{end}" for name in _QUOTED.findall(text) for end in ends)
            if place.endswith(".py") or _PYTHON.match(text):
                said += (f"import {name}" for name in _imported(text))
            for beside in {importing, os.path.dirname(place)}:
                yield "\n".join(said), beside

    def _places(self, text: str, beside: str) -> Iterator[tuple[str, str]]:
        """Yield the places that a text may mean, and where what is there imports from."""
        text = _ABOUT.sub(" : ", _COMMENT.sub("", text))
        text += self.of_git if _GIT.search(text) else ""
        for folder in _SCRIPTS.findall(text):
            yield from self._each(f"{folder}*.sh")
        bases = [_UPWARDS.sub("", base) for base in _BASE.findall(_VARIABLE.sub(r"\1", text))][:_BASES_LIMIT]
        yield from self._listed(text, bases)
        started = {*chain(*_STARTED.findall(text))}
        text = _VARIABLE.sub(r"\1", text)
        tokens = _TOKEN.findall(text)
        said = {quoted or single or _ESCAPED.sub("", bare) for quoted, single, bare in tokens}
        said |= {piece for token in said for piece in _PIECE.findall(token)}
        said = {os.path.expanduser(word) for word in said if "\0" not in word and len(word) < 1000}
        # As written, and after a beginning that nobody knows.
        ways = {word: {word, _UPWARDS.sub("", word) or word} for word in sorted(said)}
        there = (os.path.normpath(os.path.join(self._top, way)) for way in chain(*ways.values()))
        inner = [place for place in there if os.path.isdir(place) and any(self._inside(place))]
        made = dict.fromkeys((self._top, beside, *(os.path.join(self._top, each) for each in bases)))
        folders = made | dict.fromkeys(inner[:_FOLDERS_LIMIT])
        for word, both in ways.items():
            # An answer could make it.
            is_file = word in started or _FILE.fullmatch(word)
            for folder, way in product(folders, both):
                place = os.path.normpath(os.path.join(folder, way))
                if not (os.path.lexists(place) or (is_file and folder in made)):
                    continue
                yield place, os.path.dirname(place)
                if os.path.isdir(place):
                    yield from ((os.path.join(place, name), place) for name in _OF_FOLDER)
        for name in (*_MODULE.findall(text), *_imported(text)):
            parts = name.strip(".").split(".")
            for base in made:
                above = [os.path.join(base, *parts[:n]) for n in range(1, len(parts) + 1)]
                for each in above:
                    yield from ((f"{each}{end}", base) for end in (".py", "/__init__.py"))
                yield f"{above[-1]}/__main__.py", base
        for name in {bare for _, _, bare in tokens} & _TAKES.keys():
            for folder, each in product((self._top, *inner), _TAKES[name]):
                yield from self._each(os.path.join(folder, each))
        for word in self._on_path.keys() & said:
            yield self._on_path[word], beside

    def _listed(self, text: str, bases: list[str]) -> Iterator[tuple[str, str]]:
        """Yield the files of lists of which a text starts each; names count from the top or from `bases`."""
        for starts in _EACH.finditer(text):
            before = re.split(r"[;\n]", text[max(starts.start() - _BEFORE, 0) : starts.start()])[-1]
            about = starts["find"] or starts["parts"] or starts["words"] or starts["from"] or before
            about = _VARIABLE.sub(r"\1", about)
            globs = {_UPWARDS.sub("", each) for each in (*_NAMED.findall(about), *_GLOB.findall(about))}
            yield from (found for each in globs if "/" in each for found in self._each(each))
            names = [each for each in globs if "/" not in each] or ["*"] * (not globs)
            words = {_UPWARDS.sub("", each) for each in _PIECE.findall(_GLOB.sub(" ", about))}
            folders = [each for each in words if each and os.path.isdir(os.path.join(self._top, each))]
            for folder, name in product(folders or ["", *bases], names):
                if folder or name != "*":
                    yield from self._each(os.path.join(folder, "**", name))

    def _each(self, pattern: str) -> Iterator[tuple[str, str]]:
        """Yield a pattern of paths, which an answer could make, and those that are there."""
        pattern = os.path.join(self._top, pattern)
        found = islice(glob(pattern, recursive=True), _FILES_LIMIT) if has_magic(pattern) else ()
        yield from ((place, os.path.dirname(place)) for place in (pattern, *found))


def _imported(text: str) -> list[str]:
    """Return the modules that a text of Python's may import; of `from a import b`, a.b."""
    found = ((base, re.findall(r"[\w.]+", names)) for base, names in _IMPORT.findall(text))
    return [f"{base}.{name}" if base else name for base, names in found for name in names]
