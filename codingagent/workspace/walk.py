"""List the workspace's files with sizes: as git says, or plain rules, then our own ignore file."""

import codecs
import contextlib
import fnmatch
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct, field

from codingagent.errors import OperationError, WorkError, disk_errors
from codingagent.model.paths import ANY_FOLDERS, names_fit
from codingagent.model.patterns import lazy_pattern
from codingagent.prompt.file_list import Ignored, by_folder, shown_path
from codingagent.workspace.dirfd import Folder, Position, composed, is_link, read_regular, regular, walk_names
from codingagent.workspace.git_files import (
    OF_FINDER,
    RULES_LIMIT_BYTES,
    Git,
    GitListing,
    belonging,
    paths_below,
    text_of,
    whole_lines,
)

# Up to this count, all files are measured, including summarized ones.
_MEASURED_LIMIT = 10_000
_TEMPORARY_LENGTH = 20
# The count of ignored files is informational; node_modules must not slow every turn.
_IGNORED_COUNT_LIMIT = 1_000
_LARGE = ("node_modules/", "venv/", "__pycache__/", "target/", "dist/", "build/")
# More of them would tell the reader nothing new.
_UNREAD_LIMIT = 10
# Where git can't list: deeper folders would hold too many handles.
_DEPTH_LIMIT = 150
OWN_IGNORE_FILE = ".codingagentignore"
# Far more than anyone writes by hand; beyond it, the files would only cost time.
_LINES_LIMIT = 1_000
_LENGTH_LIMIT = 1_000
_ESCAPE = lazy_pattern(r"\\(.)")
_LONG_LINE = lazy_pattern(rf".{{{_LENGTH_LIMIT + 1}}}")
# A backslash that marks no special character: in a path of Windows, say.
_OTHER_SLASH = lazy_pattern(r"(?m)^(?!#)(?:[^\\\n]|\\[\\*?\[\]!# ])*\\(?![\\*?\[\]!# ])")


@cache
def _compiled(name: str) -> Callable[[str], object] | None:
    if name == ANY_FOLDERS:
        return None
    # fnmatch writes `[^` as `[!`, and a literal wildcard as a class of its own.
    text = _ESCAPE.sub(lambda m: f"[{m[1]}]" if m[1] in "*?[" else m[1], name.replace("[^", "[!"))
    return re.compile(fnmatch.translate(text)).match


class PlainRules:
    """Ignore rules as git has them, but for classes like `[[:alpha:]]`; outer files are added first."""

    def __init__(self) -> None:
        self.is_cut = False
        """Not all patterns were taken: there were too many."""
        # Of each pattern: its folder, what fits each name below (`**` any number), and the two marks.
        self._rules: list[tuple[str, list[str], bool, bool]] = []
        self._folders: dict[str, bool] = {}

    def add(self, folder: str, text: str) -> None:
        """Add an ignore file; its folder is "" or ends with a slash."""
        self._folders.clear()
        for whole in text.split("\n"):
            line = whole.removesuffix("\r")
            pattern = line.removeprefix("!")
            while pattern.endswith(" ") and not pattern.endswith("\\ "):
                pattern = pattern[:-1]
            plain = pattern.rstrip("/")
            names = [name for name in plain.split("/") if name]
            if line.startswith("#") or not names or len(plain) > _LENGTH_LIMIT:
                continue
            if len(self._rules) >= _LINES_LIMIT:
                self.is_cut = True
                return
            if "/" not in plain:
                names.insert(0, ANY_FOLDERS)
            self._rules.append((folder, names, line.startswith("!"), pattern.endswith("/")))

    def decides(self, path: str, *, is_folder: bool = False) -> bool | None:
        """Return whether a path is ignored, by itself or with a folder; None if no pattern says."""
        above = path.rpartition("/")[0]
        if above and self._is_out(above):
            return True
        for folder, wanted, is_negated, only_folders in reversed(self._rules):
            if path.startswith(folder) and (is_folder or not only_folders):
                names = path[len(folder) :].split("/")
                if names_fit([*map(_compiled, wanted)], names):
                    return not is_negated
        return None

    def _is_out(self, folder: str) -> bool:
        missing = []
        while folder and folder not in self._folders:
            missing.append(folder)
            folder = folder.rpartition("/")[0]
        for path in reversed(missing):
            self._folders[path] = self.decides(path, is_folder=True) is True
        return self._folders.get(missing[0] if missing else folder, False)


class ListingWalk(Struct):
    """One listing of all files that belong to the workspace; ignored ones are counted up to a limit."""

    hidden: tuple[Path, ...]
    git: Callable[[], Git | None]
    files: dict[str, int | None] = field(default_factory=dict)
    """All files with their sizes, folder by folder; None for one that was not measured."""
    links: list[str] = field(default_factory=list)
    ignored: Ignored = field(default_factory=Ignored)
    unread: list[str] = field(default_factory=list)
    """Ignore files, indexes and folders that were not read, or not to the end, with the reason."""
    found: GitListing = field(default_factory=GitListing)

    @property
    def count(self) -> int:
        return max(len(self.found.files), len(self.files))

    def walk(self, root: Folder, path: Path, known: GitListing | None = None) -> None:
        """List everything below a folder, which is at `path`; `known` is what git has just said of it."""
        found = self.found = self._belonging(root, path) if known is None else known
        for name, reason in found.unread:
            self._note(f"{name}: {reason}")
        # One text for all names: there may be a hundred thousand.
        text, left_out = (text_of(b"\0".join(names)) for names in (found.files, found.ignored))
        names, ignored = text.split("\0") if text else [], left_out.split("\0") if left_out else []
        # Files come first, then folders, last those of packages and builds.
        self._count(path, sorted(ignored, key=lambda each: each.endswith("/") + each.endswith(_LARGE)))
        if OWN_IGNORE_FILE in text or OWN_IGNORE_FILE in left_out:
            names = self._without_own(root, path, names, ignored)
        if ".ca-" in text:
            names = [name for name in names if not is_temporary(name.rpartition("/")[2])]
        if len(names) > _MEASURED_LIMIT:
            self.files.update(dict.fromkeys(names))
            return
        folders = by_folder(names)
        prefixes = sorted(f"{folder}/" * bool(folder) for folder in folders)
        for prefix, opened in _opened(root, prefixes):
            self._measure(opened, prefix, sorted(folders[prefix.removesuffix("/")]))

    def uncount(self, size_bytes: int) -> None:
        """Uncount an ignored file that is listed after all."""
        if not self.ignored.is_partial:
            self.ignored.files -= 1
            self.ignored.size_bytes -= size_bytes

    def _belonging(self, root: Folder, path: Path) -> GitListing:
        hidden = paths_below(path, self.hidden)
        git = self.git()
        if git is not None:
            try:
                return belonging(path, git, hidden)
            except WorkError as fault:
                self._note(f"git's ignore rules, only plain ones: {fault}")
        # Walk over everything, by the plain rules of the .gitignore files.
        found, rules = self.found, PlainRules()
        rules.add("", OF_FINDER)
        waiting = [""]
        while waiting:
            prefix = waiting.pop()
            for _, folder in _opened(root, [prefix]):
                try:
                    inner = {composed(e.name): e for e in folder.entries() if e.name != ".git"}
                    folders = [name for name, e in inner.items() if e.is_dir(follow_symlinks=False)]
                    files = [
                        n for n, e in inner.items() if e.is_symlink() or e.is_file(follow_symlinks=False)
                    ]
                except OSError:  # nobody may look
                    continue
                if ".gitignore" in files:
                    self._add(rules, folder, prefix, ".gitignore")
                for name in files:
                    out = rules.decides(prefix + name)
                    (found.ignored if out else found.files).append(os.fsencode(prefix + name))
                for name in folders:
                    if prefix + name in hidden:
                        continue
                    if rules.decides(prefix + name, is_folder=True):
                        found.ignored.append(os.fsencode(f"{prefix}{name}/"))
                    elif prefix.count("/") < _DEPTH_LIMIT:
                        waiting.append(f"{prefix}{name}/")
        return found

    def _without_own(self, root: Folder, path: Path, names: list[str], ignored: list[str]) -> list[str]:
        """Apply our own ignore files, whose rules hold for tracked files too; they bring nothing back."""
        rules = PlainRules()
        parted = (name.rpartition("/") for name in (*names, *ignored))
        prefixes = {folder + slash for folder, slash, last in parted if last == OWN_IGNORE_FILE}
        for prefix, folder in _opened(root, sorted(prefixes)):
            self._add(rules, folder, prefix, OWN_IGNORE_FILE)
        out = {name for name in names if rules.decides(name)}
        self._count(path, out)
        return [name for name in names if name not in out]

    def _add(self, rules: PlainRules, folder: Folder, prefix: str, name: str) -> None:
        place, data = Position(folder, name), b""
        with contextlib.suppress(OSError, OperationError):  # as for git, a link is none
            data, _ = read_regular(place, regular(place, name), RULES_LIMIT_BYTES)
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # PowerShell 5.1 writes so
            data = data.decode("utf-16", "replace").encode()
        was_cut = rules.is_cut
        rules.add(prefix, text_of(whole_lines(data.removeprefix(codecs.BOM_UTF8))))
        if len(data) > RULES_LIMIT_BYTES:
            self._note(f"{prefix}{name} beyond its first {RULES_LIMIT_BYTES >> 20} MiB")
        elif rules.is_cut and not was_cut:
            self._note(f"{prefix}{name} to its end: the ignore files hold too many patterns")

    def _note(self, what: str) -> None:
        if len(self.unread) < _UNREAD_LIMIT:
            self.unread.append(shown_path(what))

    def _measure(self, folder: Folder, prefix: str, paths: list[str]) -> None:
        """Add the files of a folder with their sizes, and its links; skip what is neither."""
        # Thousands of files pass here, so every step counts.
        look, files, is_regular, start = folder.lstat, self.files, stat.S_ISREG, len(prefix)
        for path in paths:
            try:
                seen = look(path[start:])
            except OSError:
                continue
            if seen is None:
                continue
            if is_regular(seen.st_mode):
                files[path] = seen.st_size
            elif is_link(seen):
                self.links.append(path)

    def _count(self, root: Path, paths: Iterable[str]) -> None:
        start = os.path.join(root, "")
        for path in itertools.chain.from_iterable(_inside(root, path) for path in paths):
            if self.ignored.files >= _IGNORED_COUNT_LIMIT:
                self.ignored.is_partial = True
                return
            try:
                found = os.lstat(start + path)
            except OSError:
                continue
            if not stat.S_ISDIR(found.st_mode):
                self.ignored.names.append(path)
                self.ignored.size_bytes += found.st_size
                self.ignored.files += 1


def is_temporary(name: str) -> bool:
    return len(name) == _TEMPORARY_LENGTH and name.startswith(".ca-") and name.endswith(".tmp")


def _inside(root: Path, path: str) -> Iterator[str]:
    if not path.endswith("/"):
        yield path
        return
    skip = len(os.path.join(root, ""))
    for folder, _, names in walk_names(os.path.join(root, path.removesuffix("/"))):
        inside = os.path.join(folder, "")[skip:].replace(os.sep, "/")
        yield from (inside + name for name in names)


def _opened(root: Folder, prefixes: Iterable[str]) -> Iterator[tuple[str, Folder]]:
    """Open folders, given in order and with a slash at the end; skip those that are gone or links."""
    way = [("", root)]
    try:
        for prefix in prefixes:
            while not prefix.startswith(way[-1][0]):
                way.pop()[1].close()
            with contextlib.suppress(OSError):  # removed meanwhile
                for name in prefix[len(way[-1][0]) :].split("/")[:-1]:
                    above, folder = way[-1]
                    way.append((f"{above}{name}/", folder.open(name)))
            if way[-1][0] == prefix:
                yield prefix, way[-1][1]
    finally:
        for _, folder in way[1:]:
            folder.close()


def rules_above(root: Path, name: str) -> tuple[PlainRules, str] | None:
    """Return the rules of files of a name, from a repository's top to a folder, and that folder's path there.

    None: there is no such file. WorkError if one may not mean what is read.
    """
    above = (root, *root.parents)
    at = next((n for n, each in enumerate(above) if (each / ".git").exists()), 0)
    top, rules, has_any = above[at], PlainRules(), False
    for folder in reversed(above[: at + 1]):
        if os.path.lexists(path := folder / name):
            has_any = True
            rules.add(_below(folder, top), _rules_in(path))
    if rules.is_cut:
        raise WorkError(f"{top / name} has too many patterns, so nothing is sent: name folders in it")
    return (rules, _below(root, top)) if has_any else None


def _below(folder: Path, top: Path) -> str:
    """Return the path of a folder from one above it, with a slash at its end; empty for that one."""
    return "" if folder == top else f"{folder.relative_to(top).as_posix()}/"


def _rules_in(path: Path) -> str:
    """Return the text of a file that says what never leaves; WorkError if it may not mean what is read."""
    with disk_errors(f"{path} can't be read"):
        data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    for is_so, how in (
        (path.is_symlink(), "is a link: make it a file"),
        ("\0" in text, "is not text in UTF-8: save it so"),
        ("\r" in text.replace("\r\n", ""), "ends lines as old Macs did: save it with LF"),
        (_LONG_LINE.search(text), f"has a line over {_LENGTH_LIMIT:,} characters: cut it"),
        (_OTHER_SLASH.search(text), "has a \\ between folders: write /"),
        ("[:" in text, "has a class like [[:digit:]], which is not read here: write [0-9]"),
    ):
        if is_so:
            raise WorkError(f"{path} {how}; until then nothing is sent")
    return text
