"""Read a workspace's files as text, by what the person and the files beside them say of their encoding."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from codingagent.errors import OperationError
from codingagent.model.encoding import FileText, decode_file
from codingagent.model.observations import Seen
from codingagent.model.paths import glob_matcher
from codingagent.model.patterns import lazy_pattern
from codingagent.prompt.file_list import Listing

if TYPE_CHECKING:
    from configparser import ConfigParser

# Enough to know the habits of a folder.
_NEIGHBOURS, _NEIGHBOUR_BYTES = 30, 200_000
_BRACES = lazy_pattern(r"\{([^{}]*,[^{}]*)\}")
_GLOBS = 100
# Deeper folders are not looked into for an .editorconfig.
_DEPTH = 100


class FileTexts:
    """The files of a workspace as text. The last one is kept: it is often asked for again."""

    def __init__(
        self,
        read: Callable[[str], Seen],
        read_each: Callable[[Iterable[str]], Iterator[tuple[str, bytes]]],
        listing: Callable[[], Listing],
    ) -> None:
        self._read, self._read_each, self._listing = read, read_each, listing
        self._last: tuple[str, bytes, FileText | None] = ("", b"", None)

    def text(self, path: str, data: bytes) -> FileText | None:
        """Return the text of a file with these bytes; None: it is no text."""
        if self._last[:2] != (path, data):
            found = decode_file(data, lambda: self._charset(path), lambda: self._neighbours(path))
            self._last = path, data, found
        return self._last[2]

    def _neighbours(self, path: str) -> Iterator[bytes]:
        """Yield other files, those of the folder and of the same ending first."""
        folder, ending = _folder(path), path.rpartition(".")[2]
        near = sorted(
            (_folder(each) != folder, each.rpartition(".")[2] != ending, each)
            for each, size in self._listing().files.items()
            if each != path and 0 < (size or 0) <= _NEIGHBOUR_BYTES
        )
        alike = [each for is_far, is_other, each in near if not (is_far and is_other)]
        for _, data in self._read_each(alike[:_NEIGHBOURS]):
            yield data

    def _charset(self, path: str) -> str:
        """Return the `charset` of .editorconfig for a file: of the nearest one, its last that fits."""
        names = path.split("/")
        at = min(len(names) - 1, _DEPTH)
        folder, inner = "/".join(names[:at]), "/".join(names[at:])
        while True:
            data = b""
            with contextlib.suppress(OperationError):
                data = self._read(f"{folder}/.editorconfig".removeprefix("/")).data
            config = _parsed(data)
            told = [
                section["charset"]
                for glob, section in config.items()
                if "charset" in section and any(map(_fitting(inner), _globs(glob)))
            ]
            is_root = config.get("/", "root", fallback="").lower() == "true"
            if told or is_root or not folder:
                return told[-1] if told else ""
            inner, folder = f"{folder.rpartition('/')[2]}/{inner}", _folder(folder)


@lru_cache(8)  # asked for each edit
def _parsed(data: bytes) -> "ConfigParser":
    from configparser import ConfigParser, Error

    config = ConfigParser(None, strict=False, interpolation=None, delimiters=("=",))
    with contextlib.suppress(Error):
        config.read_string(f"[/]\n{data.decode('utf-8-sig', 'replace')}")
    return config


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _fitting(path: str) -> Callable[[str], bool]:
    return lambda glob: glob_matcher(glob.removeprefix("/") if "/" in glob else f"**/{glob}")(path)


def _globs(section: str) -> list[str]:
    """Return a section's name without braces: `*.{c,h}` is two globs."""
    todo = [section]
    for glob in todo:
        if (braces := _BRACES.search(glob)) is not None and len(todo) < _GLOBS:
            head, tail = glob[: braces.start()], glob[braces.end() :]
            todo += [f"{head}{each}{tail}" for each in braces[1].split(",")]
    return todo
