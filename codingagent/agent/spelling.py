"""Find the file that a path means: names that differ only in case, Unicode form or quotes are one."""

import sys
import unicodedata

from msgspec.structs import replace

from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.protocols.tags.reply import Problem, Step
from codingagent.workspace.workspace import Workspace

# There a name is found in any spelling, so only a list of the folder says how it is written.
_FINDS_ANY_SPELLING = sys.platform in ("darwin", "win32")
_TAKEN = "'{}' was taken as '{}', which is there: names that differ only in case, form or quotes are one"
_PLAIN = str.maketrans("\u00a0\u202f\u2010\u2011‘’“”", "  --''\"\"", "\ufe0f")
_SEVERAL = "'{}' is not there, but {} are"
_WHICH = ": which of them is meant? Send it again with that name"


class Spellings:
    """How names are written on disk; each folder is listed once, and `add` tells of new ones."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._listed: dict[str, dict[str, list[str]]] = {}

    def add(self, path: str) -> None:
        """Take note of a file that was made, so that its folder is not listed again for it."""
        folder, _, name = path.rpartition("/")
        while name:
            if (listed := self._listed.get(folder)) is not None:
                names = listed.setdefault(_key(name), [])
                names += [name] if name not in names else []
            folder, _, name = folder.rpartition("/")

    def of(self, path: str) -> list[str]:
        """Return the paths that a path may mean; what is there exactly comes alone; OperationError."""
        folder, _, last = path.rpartition("/")
        if _key(last) not in self._listed.get(folder, {_key(last): []}):
            return [path]  # a new name in a folder that was listed
        if not _FINDS_ANY_SPELLING and self._workspace.exists(path):
            return [path]
        found, names = [""], path.split("/")
        for at, name in enumerate(names):
            inner = [f"{folder}{each}/" for folder in found for each in self._like(folder, name)]
            if not inner:
                rest = "/".join(names[at:])
                return [f"{folder}{rest}" for folder in found]
            found = inner
        return [each.removesuffix("/") for each in found]

    def _like(self, folder: str, name: str) -> list[str]:
        """Return the names in a folder that are this one in some spelling; the exact one alone."""
        inner = folder.removesuffix("/")
        if inner not in self._listed:
            listed: dict[str, list[str]] = {}
            for each in self._workspace.names(inner or "."):
                listed.setdefault(_key(each), []).append(each)
            self._listed[inner] = listed
        like = self._listed[inner].get(_key(name), [])
        there = [each for each in like if self._workspace.exists(f"{folder}{each}")]
        return [name] if name in there else sorted(there)

    def meant(self, item: Step | Problem) -> Step | Problem:
        """Return an item with its paths as they are on disk, and a note; a problem if two of them fit."""
        if isinstance(item, Problem):
            return item
        operation = item.operation
        notes, changes, source = item.notes, dict[str, str](), getattr(operation, "path", "")
        for field in ("path", "to"):
            if not (written := getattr(operation, field, "")):
                continue
            try:
                found = self.of(written)
            except OperationError:
                continue  # executing it says so
            if len(found) > 1:
                several = " and ".join(f"'{paths.shown(each)}'" for each in found)
                fact = _SEVERAL.format(paths.shown(written), several)
                return Problem(item.kind, fact, item.line, "", notes, item.id, advice=_WHICH)
            path = found[0]
            if field == "path":
                source = path
            elif path == source:  # A file gets a new spelling.
                folder, slash, _ = path.rpartition("/")
                path = f"{folder}{slash}{written.rpartition('/')[2]}"
            if path != written:
                changes[field] = path
                notes += (_TAKEN.format(paths.shown(written), paths.shown(path)),)
        return replace(item, operation=replace(operation, **changes), notes=notes)


def _key(name: str) -> str:
    """Return what all spellings of a name share. `casefold` would take "ß" and "ss" for one.

    Chats make other blanks, hyphens and quotes of plain ones, put quotes round a name, or a comma behind it.
    """
    lower = name.lower().replace("&amp;", "&")
    if not lower.isascii():
        lower = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).lower())
        lower = lower.translate(_PLAIN)
    return lower.strip("`'\",;") or lower
