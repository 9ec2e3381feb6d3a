"""Validate paths in operations, as text only; each use checks again, against the real folders."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from codingagent.errors import OperationError
from codingagent.model.patterns import lazy_pattern

OUTSIDE = "REJECTED: Path is outside workspace"
# POSIX's PATH_MAX, and the NAME_MAX of every common file system.
_PATH_LIMIT_BYTES = 4096
_NAME_LIMIT_BYTES = 255
# Fast path: plain names, none of them `.`, `..` or too long, need no further check.
_PLAIN = lazy_pattern(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/){0,9}[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_DRIVE = lazy_pattern(r"[A-Za-z]:")
_RESERVED_ON_WINDOWS = lazy_pattern(
    r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³]) *(?:\..*)?", re.IGNORECASE
)

# A whole name, and small letters only in braces: routes of web frameworks are called `$id`.
_VARIABLE = lazy_pattern(
    r"(?<![^/])(?:\$[A-Z_][A-Z0-9_]*|\$\{[^/{}]*\}|\$\([^/()]*\)(?=/)|%[A-Za-z_]\w*%)(?![^/])"
)
# How models, their examples and diffs name the workspace. A lone name, as README.md, may well be in both.
_ROOT = lazy_pattern("(?:[ab]|workspace|project|repo(?:sitory)?|path/to)(?=/.+/)")


def workspace_path(text: str) -> str:
    """Return the path in normal form, `a/b`, relative to the workspace root, if it can name a file there.

    `a/../b` becomes `b`: specification 003, path sandboxing, joins before it compares. Quotes and
    spaces are never trimmed: the path that is checked is the path that is opened.
    """
    if _PLAIN.fullmatch(text):
        return text
    parts = _parts(text)
    if not parts or text.endswith(("/", "/.", "/..")):
        raise OperationError(f"'{shown(text)}' names a folder, not a file")
    return "/".join(parts)


def folder_path(text: str) -> str:
    """Return a folder's path in normal form; `.` is the workspace root itself."""
    return "/".join(_parts(text)) or "."


def _parts(text: str) -> list[str]:
    if not text or text.isspace():
        raise OperationError("REJECTED: Path is empty", advice="; name a file")
    # Check the length first: nothing below may scan a path of a megabyte.
    if len(text.encode(errors="replace")) > _PATH_LIMIT_BYTES:
        raise OperationError(f"REJECTED: Path is longer than {_PATH_LIMIT_BYTES} bytes")
    said = f"'{shown(text)}'"
    if "\\" in text:
        raise OperationError(f"REJECTED: {said} has a backslash", advice="; write / between names")
    if any(c < " " or unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text):
        raise OperationError(f"REJECTED: Path {said} has a character that can't be in a file name here")
    parts: list[str] = []
    for part in text.split("/"):
        if part == "..":
            if not parts:
                raise OperationError(f"{OUTSIDE}: {said}")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    if text.startswith("/") or (parts and (parts[0] == "~" or _DRIVE.match(parts[0]))):
        raise OperationError(f"{OUTSIDE}: {said}", advice="; write a path relative to the workspace")
    if any(part.isspace() for part in parts):
        raise OperationError(f"REJECTED: Path {said} has a name of spaces only", advice="; name a file")
    if any(len(part.encode()) > _NAME_LIMIT_BYTES for part in parts):
        raise OperationError(f"REJECTED: Path has a name of more than {_NAME_LIMIT_BYTES} bytes")
    return parts


def check_new_name(path: str, exists: Callable[[str], bool] = lambda _: False) -> None:
    """Reject names that a repository shared with Windows could not hold, and what would be a twin.

    That is one below a variable of a shell (`$id.tsx` is a name, and so is what `exists`), or a file that
    exists below a folder that does not, of a name for the workspace.
    """
    if (found := _ROOT.match(path)) and exists(rest := path[found.end() + 1 :]) and not exists(found[0]):
        fact = f"REJECTED: '{shown(path)}' may be '{shown(rest)}', as there is no folder {found[0]}"
        raise OperationError(fact, advice=f"; write '{shown(rest)}', or make that folder first")
    if (found := _VARIABLE.search(path)) is not None and not exists(path[: found.end()]):
        fact = f"REJECTED: '{shown(path)}' has a variable, and nothing here expands it"
        raise OperationError(fact, advice="; write a path relative to the workspace")
    for part in path.split("/"):
        if not is_plain_on_windows(part):
            fact = f"REJECTED: '{shown(part)}' is not a file name on Windows"
            raise OperationError(fact, advice="; choose another name")


def is_plain_on_windows(name: str) -> bool:
    """Return whether a name is a file's on Windows: no device, drive, stream, and no end that is dropped."""
    is_odd = set(name) & set('<>:"|?*\\') or name[-1] in ". "
    return not is_odd and not _RESERVED_ON_WINDOWS.fullmatch(name)


def is_git_name(name: str) -> bool:
    """Return whether some file system takes this name for `.git`: other case, dots at the end, GIT~1."""
    seen = folded(name)
    return seen == ".git" or seen.startswith("git~")


OF_HOME = frozenset({"sessions", "inbox"})
"""What decides in a home what is done: the record, and answers. A file in the former marks a home."""
HOME_MARK = ".home"


def is_home_name(name: str) -> bool:
    """Return whether some file system takes this name for a home, which is found by it from below."""
    return folded(name) == ".codingagent"


@lru_cache(maxsize=1_000)
def folded(name: str) -> str:
    """Return a name as file systems that ignore case, trailing dots and invisible characters see it."""
    seen = name
    if not name.isascii():  # fast path: this runs for every name of every path
        visible = "".join(c for c in name if unicodedata.category(c) != "Cf")
        seen = unicodedata.normalize("NFKC", visible)
    return seen.casefold().split(":")[0].rstrip(". ")


def is_utf8(path: str) -> bool:
    """Return whether a name is UTF-8: no answer can ask for another."""
    return path.isprintable() or not any("\ud800" <= c <= "\udfff" for c in path)


def is_glob(path: str) -> bool:
    """Return whether a path holds `*` or `?`. Brackets are never a glob: `[id].tsx` is a name."""
    return "*" in path or "?" in path


def glob_matcher(glob: str) -> Callable[[str], bool]:
    """Return a predicate for whole paths: `*` and `?` stay within one name, `**` is any number of folders.

    The time is proportional to pattern times path, even for a hostile one. Unicode forms make no difference.
    """
    wanted = [
        None if name == ANY_FOLDERS else name_pattern(name).fullmatch
        for name in unicodedata.normalize("NFC", glob).split("/")
    ]
    return lambda path: names_fit(wanted, unicodedata.normalize("NFC", path).split("/"))


def matches(glob: str, listing: str) -> list[str]:
    """Return which paths of a listing, each between two NUL, match a glob; few are looked at one by one."""
    fits, found = glob_matcher(glob), list[str]()
    plain = max(re.split(r"[*?/]+", unicodedata.normalize("NFC", glob)), key=len)
    if not (plain and unicodedata.is_normalized("NFC", listing)):
        return [path for path in listing.split("\0") if path and fits(path)]
    at = listing.find(plain)
    while at >= 0:
        end = listing.index("\0", at)
        path = listing[listing.rindex("\0", 0, at) + 1 : end]
        found += [path] * fits(path)
        at = listing.find(plain, end)
    return found


ANY_FOLDERS = "**"


def names_fit(wanted: Sequence[Callable[[str], object] | None], names: Sequence[str]) -> bool:
    """Return whether each name of a path fits what is wanted of it; None fits any number of names."""
    at = name_at = 0
    retry: tuple[int, int] | None = None
    while name_at < len(names):
        if at < len(wanted) and (fits := wanted[at]) is None:
            retry = (at, name_at)
            at += 1
        elif at < len(wanted) and fits is not None and fits(names[name_at]):
            at += 1
            name_at += 1
        elif retry is not None:
            # The last `**` takes one more name; an earlier one never needs to.
            retry = (retry[0], retry[1] + 1)
            at, name_at = retry[0] + 1, retry[1]
        else:
            return False
    return at == len(wanted)


def name_pattern(name: str) -> re.Pattern[str]:
    """Return the expression for a name of a glob. Each star takes as little as it can, for good (atomic)."""
    first, *rest = re.split(r"\*+", name)
    if not rest:
        return re.compile(_literal(first), re.DOTALL)
    *middle, last = rest
    stars = "".join(f"(?>.*?{_literal(text)})" for text in middle)
    return re.compile(f"{_literal(first)}{stars}.*{_literal(last)}", re.DOTALL)


def _literal(text: str) -> str:
    return ".".join(map(re.escape, text.split("?")))


def unquoted(name: str) -> str:
    """Return a name as it is; in a line, git quotes one with a control character, a quote or a backslash."""
    if not name.startswith('"') or (close := name.rfind('"')) <= 0:
        return name
    try:
        return name[1:close].encode().decode("unicode_escape").encode("latin-1").decode()
    except UnicodeError:
        return name[1:close]


def shown(text: str, limit: int = 200) -> str:
    """Return text for a message: on one line, of bounded length, unprintable characters escaped."""
    line = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text[:limit]
    )
    return line if len(text) <= limit else f"{line}…"
