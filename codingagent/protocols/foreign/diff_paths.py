"""Read the paths in the headers of differences: quoted by git, dated, with `a/` and `b/` before them."""

import re

from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.patterns import lazy_pattern
from codingagent.protocols.foreign.file_names import Files

# What diff and git put after a path: a tab, or a date.
_TIMESTAMP = lazy_pattern(
    r"(?:\t.*|[ ]+(?:\d{4}-\d\d-\d\d|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ).*"
    r"|[ ]+\((?:original|modified|old|new|before|after|working copy|revision \d+)\))$"
)
_BACKUPS = (".orig", ".old", ".bak")


def path_of(text: str) -> str:
    text = text.rstrip()
    if text.startswith('"') and (close := text.rfind('"')) > 0:
        return _unquoted(text[1:close])
    return _TIMESTAMP.sub("", text).strip()


def _unquoted(text: str) -> str:
    """Return a path that git has quoted: bytes beyond ASCII are there in octal."""
    try:
        return text.encode().decode("unicode_escape").encode("latin-1").decode()
    except UnicodeError:
        return text


def git_sides(text: str) -> tuple[str, str] | None:
    """Return the paths of a `diff --git` line, which are the same but for their first letter."""
    quoted = re.fullmatch(r'"(.*)" "(.*)"', text)
    if quoted is not None:
        return _unquoted(quoted[1]), _unquoted(quoted[2])
    middle = len(text) // 2
    if len(text) % 2 and text[middle] == " " and text[:middle][2:] == text[middle + 1 :][2:]:
        return text[:middle], text[middle + 1 :]
    both = text.split(" ")
    return (both[0], both[1]) if len(both) == 2 else None


def unprefixed_one(path: str, prefix: str, files: Files, *, is_git: bool) -> str:
    """Take git's `a/` or `b/` off one path; refuse it where such a folder may be meant."""
    if is_git or not path.startswith(prefix) or not files.has_folder(prefix[0]):
        return path.removeprefix(prefix)
    raise OperationError(
        f"'{paths.shown(path)}' may be in the folder {prefix} or not; write the line diff --git above it"
    )


def unprefixed(old: str, new: str, files: Files, *, is_git: bool) -> tuple[str, str]:
    """Take git's `a/` and `b/` off, or whatever folders mean before and after; refuse what may be both."""
    if old.startswith("a/") and new.startswith("b/"):
        if not is_git and old in files and new in files:
            raise OperationError(
                f"'{paths.shown(old)}' and '{paths.shown(new)}' both exist; write one path above it"
            )
        return old[2:], new[2:]
    if old == new:
        if old[:2] in ("a/", "b/") and old not in files:
            return old[2:], new[2:]
        return old, new
    plain_old, plain_new = _without(old, "a/", files), _without(new, "b/", files)
    if plain_old == plain_new:
        return plain_old, plain_new
    for ending in _BACKUPS:
        if plain_old == plain_new + ending and plain_old not in files:
            return plain_new, plain_new
    before, after = old.partition("/")[2], new.partition("/")[2]
    if before and before == after and old not in files and new not in files:
        return after, after
    return plain_old, plain_new


def _without(path: str, prefix: str, files: Files) -> str:
    return path if path in files else path.removeprefix(prefix)
