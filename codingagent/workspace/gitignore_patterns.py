"""Parse one gitignore pattern as git does, and compile its wildcards with pathspec.

pathspec reads some patterns differently from git's wildmatch (classes, backslashes, trailing
blanks, runs of stars). So a pattern is first rewritten to a form that both read alike. All text
here has one character per byte, since git's `?` matches one byte.
"""

import re
import string
from typing import Literal, NamedTuple

from msgspec import Struct

# More than anyone writes by hand; beyond it, a file would only cost time.
LINES_LIMIT = 5_000
_EXPRESSION_COST = 2
_SEARCHING_COST = 40
_SEARCHING = ("(?>", ".+", ".*")
_MARK = r"(?:(?P<ps_d>/)|$)"  # pathspec's group for paths below a match
_ANY = "**"
_ODD_STARS = re.compile(r"([^*?\[\\]*[^*?\[\\/])(\*{2,}(?:/.*)?)", re.DOTALL)

_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, range(1, 32))) + "\x7f",
    "digit": string.digits,
    "graph": string.ascii_letters + string.digits + string.punctuation,
    "lower": string.ascii_lowercase,
    "print": string.ascii_letters + string.digits + string.punctuation + " ",
    "punct": string.punctuation,
    "space": " \t\n\r",  # git's own table: no vertical tab, no form feed
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}
_NAME_BYTES = frozenset(map(chr, range(1, 256))) - {"/"}


class Pattern(Struct, frozen=True):
    """One line of an ignore file, for paths below the file's folder.

    Attributes:
        form: what `text` is: a whole name, the end of a name, or an expression for a name; with
            `path`, an expression for a whole path.
        text: as `form` says.
        folder: the folder of the names, "" or with a trailing slash; None for any depth.
        is_negated: whether it re-includes what it matches.
        only_folders: whether it matches folders only.
    """

    form: Literal["name", "suffix", "expression", "path"]
    text: str
    folder: str | None
    is_negated: bool
    only_folders: bool

    @property
    def cost(self) -> int:
        """How long one match takes, as measured, in units of one suffix match.

        A plain name is free: it is looked up among all names at once. An expression that tries
        several positions costs by far the most.
        """
        if self.form == "name":
            return 0
        if self.form == "suffix":
            return 1
        searches = any(sign in self.text for sign in _SEARCHING)
        return _SEARCHING_COST if searches else _EXPRESSION_COST


class _Segment(NamedTuple):
    """A part of a pattern between two slashes.

    `chunks` are its parts between stars, as pathspec reads them; `name` or `suffix` is set if it is
    a plain name or suffix. `is_any` marks `**`, any number of folders.
    """

    chunks: tuple[str, ...]
    name: str | None
    suffix: str | None
    is_any: bool = False


def bytewise(text: str) -> str:
    """Return text with one character per byte on disk."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("latin-1")
    except UnicodeEncodeError:  # a lone surrogate, which occurs only on Windows
        return text.encode("utf-8", "surrogatepass").decode("latin-1")


def patterns(text: str) -> tuple[Pattern, ...]:
    """Parse the first lines of an ignore file; skip lines that are not patterns."""
    found: list[Pattern] = []
    lines = bytewise(text).removeprefix("\xef\xbb\xbf").split("\n", LINES_LIMIT)
    for line in lines[:LINES_LIMIT]:
        if not line or line.startswith("#"):
            continue
        pattern = _pattern(_stripped(line.removesuffix("\r").partition("\0")[0]))
        if pattern is not None:
            found.append(pattern)
    return tuple(found)


def _stripped(line: str) -> str:
    """Strip trailing blanks, up to an escaped one."""
    bare = line.rstrip(" ")
    escapes = len(bare) - len(bare.rstrip("\\"))
    return f"{bare} " if escapes % 2 and len(line) > len(bare) else bare


def _pattern(line: str) -> Pattern | None:
    is_negated = line.startswith("!")
    core = line[is_negated:]
    only_folders = core.endswith("/")
    core = core[: len(core) - only_folders]
    inner = core.removeprefix("/")
    segments = _segments(inner)
    if not segments:
        return None
    if "/" in core:
        form, text, folder = _of_path(inner, segments)
    else:
        form, text, folder = *_of_name(segments[0]), None
    return Pattern(form, text, folder, is_negated, only_folders)


_NameForm = Literal["name", "suffix", "expression"]
_Form = _NameForm | Literal["path"]


def _of_name(segment: _Segment) -> tuple[_NameForm, str]:
    if segment.name is not None:
        return "name", segment.name
    if segment.suffix is not None:
        return "suffix", segment.suffix
    return "expression", _one(segment)


def _of_path(inner: str, segments: "list[_Segment]") -> tuple[_Form, str, str | None]:
    if odd := _ODD_STARS.fullmatch(inner):
        # git compares the text before the first wildcard separately, then sees `**/` at the
        # beginning.
        rest = _segments(odd[2]) or []
        text = ".*" if len(rest) == 1 else _translated(rest)
        return "path", re.escape(odd[1]) + text, None
    *above, last = segments
    if [segment.is_any for segment in above] == [True] or (last.is_any and not above):
        return *_of_name(last), None
    names = [segment.name for segment in above]
    if not last.is_any and None not in names:
        return *_of_name(last), "".join(f"{name}/" for name in names)
    return "path", _translated(segments), None


# --- rewrite git's syntax to one that pathspec reads alike
# ---------------------------------------------


def _segments(text: str) -> list[_Segment] | None:
    """Split a pattern at its slashes; return None if nothing can ever match it."""
    found: list[_Segment] = []
    pieces: list[
        tuple[str, str]
    ] = []  # of one segment: the text for pathspec, and its literal meaning
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "/":
            if not pieces:
                return None
            _add(found, pieces)
            pieces = []
        elif character == "*":
            pieces.append(("*", ""))
        elif character == "?":
            pieces.append(("?", ""))
        elif character == "[":
            members, at = _class(text, at)
            if not members:
                return None
            pieces.append((_written(members), ""))
        else:
            if character == "\\":
                character = text[at : at + 1]
                at += 1
                if character == "/" and not pieces:
                    return None
                if not character:
                    return None
                if character == "/":
                    _add(found, pieces)
                    if found[-1].is_any:
                        # Only before a bare slash may it match no folder at all.
                        found.append(_Segment(("", ""), None, ""))
                    pieces = []
                    continue
            pieces.append((_plain(character), character))
    if not pieces:
        return None
    _add(found, pieces)
    return found


def _plain(character: str) -> str:
    """Escape a literal character; pathspec strips every kind of trailing blank."""
    if character.isspace():
        return _written(frozenset(character))
    return character if character.isalnum() else f"\\{character}"


def _add(found: list[_Segment], pieces: list[tuple[str, str]]) -> None:
    globs = [glob for glob, _ in pieces]
    if len(globs) > 1 and set(globs) == {"*"}:
        # A run of stars equals one star, and repeated `**` equals one `**`.
        if not found or not found[-1].is_any:
            found.append(_Segment((), None, "", is_any=True))
        return
    chunks = [""]
    for number, glob in enumerate(globs):
        if glob != "*":
            chunks[-1] += glob
        elif number == 0 or globs[number - 1] != "*":
            chunks.append("")
    plain = "".join(one for _, one in pieces)
    wild = [glob for glob, one in pieces if not one]
    is_suffix = len(chunks) == 2 and not chunks[0] and set(wild) == {"*"}
    found.append(_Segment(tuple(chunks), None if wild else plain, plain if is_suffix else None))


def _class(text: str, at: int) -> tuple[frozenset[str], int]:
    """Read a class after its bracket like wildmatch; return its bytes, or none if it is not closed."""
    is_negated = text[at : at + 1] in ("!", "^") and at < len(text)
    at += is_negated
    members: set[str] = set()
    before = ""
    start = at
    while at < len(text) and (text[at] != "]" or at == start):
        character = text[at]
        if character == "-" and before and text[at + 1 : at + 2] not in ("", "]"):
            at += 1 + (text[at + 1] == "\\")
            if at >= len(text):
                break
            members.update(map(chr, range(ord(before), ord(text[at]) + 1)))
            character = ""
        elif character == "[" and text[at + 1 : at + 2] == ":":
            end = text.find("]", at + 2)
            if end < 0:
                break
            if text[end - 1] == ":" and end - 1 >= at + 2:
                name = text[at + 2 : end - 1]
                if name not in _CLASSES:
                    break
                members.update(_CLASSES[name])
                character, at = "", end
            else:
                members.add("[")
        else:
            if character == "\\":
                at += 1
                character = text[at : at + 1]
            members.add(character)
        before = character
        at += 1
    else:
        if at < len(text):
            return (_NAME_BYTES - members if is_negated else _NAME_BYTES & members), at + 1
    return frozenset(), len(text)


def _written(members: frozenset[str]) -> str:
    """Write a class so that pathspec and Python read each character literally.

    A NUL, which no name contains, keeps `!` and `^` from the position where they negate.
    """
    inner = "".join(f"{c}-{c}" if c != "-" else "" for c in sorted(members - {"]", "-"}))
    return f"[{']' if ']' in members else ''}\0{inner}{'-' if '-' in members else ''}]"


def _translated(segments: list[_Segment]) -> str:
    """Return the expression that a whole path must match."""
    if sum(segment.is_any for segment in segments) < 2 and all(len(s.chunks) < 3 for s in segments):
        return _expression("/".join(_ANY if s.is_any else "*".join(s.chunks) for s in segments))
    # What matched up to a slash is not retried: otherwise time grows with the product of the
    # choices.
    parts: list[list[str]] = [[]]
    for segment in segments:
        if segment.is_any:
            parts.append([])
        else:
            parts[-1].append(_one(segment))
    end = "".join(f"(?>{name}/)" for name in parts[-1][:-1]) + "".join(parts[-1][-1:])
    if len(parts) == 1:
        return end
    first, *between = ["".join(f"(?>{name}/)" for name in part) for part in parts[:-1]]
    middle = "".join(f"(?>(?:[^/]+/)*?{part})" for part in between)
    return f"{first}{middle}{f'(?:[^/]+/)*{end}' if end else '.+'}"


def _one(segment: _Segment) -> str:
    """Return the expression that a name must match."""
    if len(segment.chunks) < 3:
        return _expression("*".join(segment.chunks))
    # As above: between two stars, the first match is as good as any other.
    first, *between, last = [_expression(chunk) if chunk else "" for chunk in segment.chunks]
    return f"{first}{''.join(f'(?>[^/]*?{chunk})' for chunk in between)}[^/]*{last}"


def _expression(pattern: str) -> str:
    """Compile an anchored pattern with pathspec."""
    # Imported late: a workspace without such patterns does not need it.
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    if pattern == "*":
        return "[^/]+"
    found, _ = GitIgnoreSpecPattern.pattern_to_regex(f"/{pattern}")
    text = str(found)
    # The whole path must match, as in git; pathspec accepts a prefix.
    body = text.removesuffix(_MARK)
    body = body if body != text else f"{body}.*"
    return body[1:] if body.startswith("^") else f".*{body}"
