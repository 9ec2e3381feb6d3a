"""Find paths as answers write them: in a heading, in bold, after "File:", in a fence line, in a comment.

A path is made out from the files of the workspace; between two of them nothing is guessed.
"""

import re
from collections import defaultdict
from collections.abc import Collection
from functools import cached_property

from msgspec import Struct

from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.chat_damage import TURN
from codingagent.model.patterns import lazy_pattern, word_lists, words

# A longer line is no heading, whatever it says.
_LINE_LIMIT = 300
_BRACKETS = str.maketrans("：【】", ":[]")
_MARKS = lazy_pattern(r"(?:#{1,6}[ \t]+|[-*+•][ \t]+|\d{1,3}[.)][ \t]+|>[ \t]?)+")
_TICKED = lazy_pattern(r"`+([^`\n]+)`+")
_LINK = lazy_pattern(r"\[([^\]\n]+)\]\([^)\n]*\)")
_HTML = lazy_pattern(r"</?(?:b|code|details|em|file_path|h[1-6]|i|p|path|strong|summary)>|<!--|-->")
_WORD = lazy_pattern(r"[^\W_]+", re.UNICODE)
_COMMENT = lazy_pattern(
    r"[ \t]*(?:<!--[ \t]*(?P<html>.+?)[ \t]*-->|/\*+[ \t]*(?P<block>.+?)[ \t]*\*+/"
    r"|(?:#|//|--|;+|%|'|REM|\"\"\")[ \t]*(?P<line>.+?)[ \t]*)[ \t]*"
)
# Other tools have their models put a file, or a call, into an element that names the file.
_ELEMENT = lazy_pattern(
    r"[ \t]*<([A-Za-z][\w:.-]*)(?:[ \t][^<>]*)?[ \t](?:path|file|file_?name|file_?path)="
    r"(\"[^\"<>]+\"|'[^'<>]+'|[^\s\"'<>]+?)(?:[ \t][^<>]*?)?/?>[ \t]*",
    re.IGNORECASE,
)
_LINE_QUOTE = lazy_pattern(r"\d+:\d+:\S+")
_INFO_WORDS = lazy_pattern(r"\"([^\"]*)\"|'([^']*)'|([^\s:={}()\"'`]+)")
_INFO_KEYS = words("file filename file_name path title name")
# A longer line is a sentence about a file, not its label.
_LABEL_WORDS, _LABEL_CHARACTERS = 5, 60
_WORDS = word_lists(__file__)
_TEXT_NAMES = _WORDS["text names"]
# Names of products that look like names of files.
_PRODUCTS = lazy_pattern(
    r"(?:node|next|vue|nuxt|react|express|three|d3|ember|backbone|chart|alpine|discord|socket|asp|vb|ml)"
    r"\.(?:js|io|net)",
    re.IGNORECASE,
)
_EXTENSIONS = _WORDS["extensions"]
_PART = r"[^\s/\\`'\"<>|*?:;,]+"
_PATH = lazy_pattern(rf"(?:[~.]{{0,2}}[/\\])?{_PART}(?:[/\\]{_PART})*")
# What a line calls a file is one, though its name looks like none: `File: bin/tool`.
_CALLED = lazy_pattern(
    rf"(?i)([^`:]*\b(?:file|filename|filepath|path)\b[^`:]*)(?::[ \t*]*`?|`)({_PART}(?:/{_PART})*)`?:?\**"
)
_EXTENSION = lazy_pattern(r"\.([A-Za-z][A-Za-z0-9_]{0,12})")
_DOT_NAME = lazy_pattern(r"\.[A-Za-z_]\w+(?:[.-]\w+)*")


class Name(Struct, frozen=True):
    """A path as some line gives it.

    `texts` are all that the line names, `line` its index. `is_heading` tells whether the line is
    a path and nothing else but words such as "File:". `is_gone` and `is_moved` tell that it is a path
    and words for its deletion, or two paths and words for a renaming.
    """

    texts: tuple[str, ...]
    line: int
    is_heading: bool = True
    is_new: bool = False
    is_whole: bool = False
    is_gone: bool = False
    is_moved: bool = False
    is_label: bool = False
    """It is marked, and ends a line of a few words in any language, perhaps before a colon."""

    def only(self, advice: str) -> str:
        """Return the one path; with several, refuse and say what to write."""
        if len(self.texts) > 1:
            shown = " and ".join(map(paths.shown, self.texts[:3]))
            raise OperationError(f"{shown} are above it", advice=f"; write {advice}")
        return self.texts[0]


class Files:
    """The paths that exist, and which of them a text may mean."""

    def __init__(self, listed: Collection[str]) -> None:
        self._listed = listed if isinstance(listed, set | frozenset) else frozenset(listed)

    def __contains__(self, path: str) -> bool:
        return path in self._listed

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for listed in self._listed:
            found[listed.rpartition("/")[2]].append(listed)
        return found

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(listed.rpartition("/")[0] for listed in self._listed)

    @cached_property
    def _top_folders(self) -> frozenset[str]:
        return frozenset(folder.partition("/")[0] for folder in self._folders)

    def fits(self, path: str) -> list[str]:
        """Return the files whose path ends so, sorted; a file of exactly that path comes alone."""
        if path in self._listed:
            return [path]
        same = self._by_name.get(path.rpartition("/")[2], [])
        return sorted(listed for listed in same if listed.endswith(f"/{path}"))

    def has_folder(self, name: str) -> bool:
        """Return whether some file is under a folder at the root."""
        return name in self._top_folders

    def plain(self, text: str) -> str:
        r"""Return a path of the workspace; `a\b` and `/a/b` are ones where that file or its folder exists."""
        written = text.replace("\\", "/").removeprefix("/")
        if written == text or text in self._listed:
            return paths.workspace_path(text)
        folder = written.rpartition("/")[0]
        is_known = self.fits(written) or ("\\" in text and folder in self._folders and bool(folder))
        return paths.workspace_path(written if is_known else text)

    def existing(self, text: str) -> tuple[str, str]:
        """Return the file that an edit means, and a note if it was written otherwise; refuse two."""
        path = self.plain(text)
        fits = self.fits(path)
        if len(fits) > 1:
            raise ambiguous(path, fits)
        return (fits[0], _taken(text, fits[0])) if fits else (path, _taken(text, path))

    def whole(self, name: Name) -> tuple[str, str]:
        """Return the path that a whole file is to have, and a note if it was written otherwise."""
        text = name.texts[0]
        path = meant = self.plain(text)
        fits = [] if name.is_new else self.fits(path)
        if len(fits) > 1:
            raise ambiguous(path, fits).but(advice=", and 'New file:' before it if it is one")
        if fits and "/" not in path:
            meant = fits[0]
        elif fits and fits != [path] and not self.has_folder(path.partition("/")[0]):
            raise OperationError(
                f"'{paths.shown(path)}' may be a new file, or {fits[0]}",
                advice=": write the path from the workspace root, and 'New file:' before it if it is one",
            )
        return meant, _taken(text, meant)


def ambiguous(path: str, fits: list[str]) -> OperationError:
    """Return what to write in place of the end of a path, which some files have."""
    shown = " and ".join(map(paths.shown, fits[:3])) + (" and more" if len(fits) > 3 else "")
    advice = ": write the path from the workspace root"
    return OperationError(f"'{paths.shown(path)}' fits {shown}", advice=advice)


def _taken(path: str, meant: str) -> str:
    is_same = path.removeprefix("./") == meant
    return "" if is_same else f"{paths.shown(path)} was taken as {paths.shown(meant)}"


def name_in(line: str, at: int, files: Files) -> Name | None:
    """Return the paths that a line of prose names, or None."""
    if len(line) > _LINE_LIMIT or not line.strip():
        return None
    rest = TURN.sub("", line).translate(_BRACKETS).strip()
    if (marks := _MARKS.match(rest)) is not None and rest not in files:
        rest = rest[marks.end() :]
    if (element := element_in(rest)) is not None:
        rest = element[1]
    rest = _HTML.sub("", rest) if "<" in rest else rest
    rest = _LINK.sub(r"`\1`", rest.replace("**", "").strip().rstrip("#").strip())
    bare = rest.strip("`*").removesuffix(":").strip("`*").strip()
    if bare in files or (is_path(bare, files, labelled=True) and bare not in _TEXT_NAMES):
        return Name((bare,), at) if not _PRODUCTS.fullmatch(bare) else None
    ticked = [text.strip() for text in _TICKED.findall(rest)]
    texts = [text for text in ticked if is_path(text, files, labelled=True)]
    outside = _TICKED.sub(" ", rest)
    if not texts:
        words = [word.strip("()[],;!\"'*").rstrip(":.") for word in rest.split()]
        texts = [word for word in words if is_path(word, files)]
        for text in texts:
            outside = outside.replace(text, " ")
    elif len(texts) < len(ticked):
        outside += " ".join(text for text in ticked if text not in texts)
    if not texts and (called := _CALLED.fullmatch(rest)) is not None:
        outside, texts = called[1], [called[2]]
    if not texts:
        return None
    beside = [word.lower() for word in _WORD.findall(outside) if not word.isdigit()]
    plain, new, whole, gone, move, side = (
        _WORDS[f"{kind} words"] for kind in ("plain", "new", "whole", "gone", "move", "side")
    )
    said, known, distinct = frozenset(beside), plain | new | whole, tuple(dict.fromkeys(texts))
    is_new, is_whole, is_gone, is_moved = (not said.isdisjoint(kind) for kind in (new, whole, gone, move))
    is_one = len(distinct) == 1
    is_gone = is_gone and is_one and said <= plain | gone
    is_moved = is_moved and len(distinct) == 2 and said <= known | move | side
    is_label = is_one and _is_label(line, distinct[0], beside)
    return Name(distinct, at, is_one and said <= known, is_new, is_whole, is_gone, is_moved, is_label)


def _is_label(line: str, path: str, beside: list[str]) -> bool:
    """Return whether a path ends its line in bold, in backquotes or in a heading, with few words before."""
    end = line.rstrip().rstrip("*_`\"'»”:：# \t)）").endswith(path)
    before = line.rpartition(path)[0]
    is_marked = before[-1:] in ("*", "`", "_") or line.lstrip().startswith("#")
    return end and is_marked and len(beside) <= _LABEL_WORDS and len(before) <= _LABEL_CHARACTERS


def element_in(line: str) -> tuple[str, str] | None:
    """Return the tag and the path of the element that a line opens, if nothing else is on the line."""
    is_possible = "<" in line[:80] and len(line) <= _LINE_LIMIT
    found = _ELEMENT.fullmatch(line) if is_possible else None
    return None if found is None else (found[1], found[2].strip("\"' \t"))


def name_in_comment(line: str, at: int, files: Files) -> Name | None:
    """Return the path that a line of code has for its only comment, or None."""
    if len(line) > _LINE_LIMIT or (comment := _COMMENT.fullmatch(line)) is None:
        return None
    said = comment["html"] or comment["block"] or comment["line"]
    text = said.strip().removesuffix('"""').strip()
    if text.startswith("!"):
        return None
    name = re.sub(r"(?i)^(?:file(?:name|path)?|path)[ \t]*:[ \t]*", "", text).strip("`\"'")
    is_sure = "/" in name or name in files or name != text
    is_sure = is_sure or name.rpartition(".")[2].lower() in _EXTENSIONS
    return Name((name,), at) if is_sure and is_path(name, files) else None


def name_in_info(info: str, at: int, files: Files) -> Name | None:
    """Return the path that a fence line names after its marks, or None."""
    if len(info) > _LINE_LIMIT or _LINE_QUOTE.search(info):
        return None
    said = ["".join(found) for found in _INFO_WORDS.findall(info)]
    if said and not (is_path(said[0], files) and ("/" in said[0] or "." in said[0])):
        del said[0]
    said = [text for text in said if text not in _INFO_KEYS]
    is_one = len(said) == 1 and is_path(said[0], files, labelled=True)
    return Name((said[0],), at) if is_one else None


def is_line_quote(info: str) -> bool:
    """Return whether a fence line names lines of a file, `12:20:src/a.py`: a quotation, no file."""
    return _LINE_QUOTE.search(info[:_LINE_LIMIT]) is not None


def is_path(text: str, files: Files, *, labelled: bool = False) -> bool:
    """Return whether a text may be a path; `labelled`: backticks or the like show that it is a name."""
    if text in files:
        return True
    if len(text) > 255 or "://" in text or not _PATH.fullmatch(text) or text[-1] in "/\\.":
        return False
    last = re.split(r"[/\\]", text)[-1]
    if last in _WORDS["build names"] | _TEXT_NAMES:
        return labelled or last != text
    if (labelled or last != text) and _DOT_NAME.fullmatch(last):
        return True
    at = last.rfind(".")
    extension = _EXTENSION.fullmatch(last, at) if at > 0 else None
    if extension is None:
        return False
    if last == text:
        known = extension[1].lower() in _EXTENSIONS
        return known and "(" not in text and not (_PRODUCTS.fullmatch(text) and not labelled)
    return True
