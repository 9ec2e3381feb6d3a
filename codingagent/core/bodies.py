"""What may be undone in the body of a block without a look at the file, and what is in doubt.

A body is what a file will hold, so nothing is changed here but what can't have been meant: the fence
round the whole of a program, and what the tags of the same reply prove (`channel`). What may be
damage and may be meant is neither written nor changed: it raises, in words that say what to send.
A body that has `until` is taken letter by letter: that is how to say that it is meant.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from codingagent.core import channel
from codingagent.core.channel import Channel, Damage
from codingagent.errors import OperationError

_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^`\n]*?)[ \t]*")
_COPY = re.compile(r"[ \t]*(?:copy(?: code)?|copied!?|edit)[ \t]*", re.IGNORECASE)
_LANGUAGES = frozenset(
    {
        *(
            "plaintext",
            "text",
            "python",
            "py",
            "javascript",
            "js",
            "typescript",
            "ts",
            "jsx",
            "tsx",
        ),
        *(
            "bash",
            "sh",
            "shell",
            "zsh",
            "console",
            "powershell",
            "json",
            "yaml",
            "yml",
            "toml",
            "ini",
        ),
        *(
            "html",
            "xml",
            "css",
            "scss",
            "markdown",
            "md",
            "c",
            "cpp",
            "c++",
            "csharp",
            "c#",
            "java",
        ),
        *(
            "kotlin",
            "swift",
            "go",
            "rust",
            "ruby",
            "php",
            "perl",
            "lua",
            "r",
            "sql",
            "diff",
            "makefile",
        ),
        *("dockerfile", "latex", "tex", "vue", "svelte", "scala", "haskell", "elixir", "dart"),
    }
)

# In these a fence may be meant: it is their own syntax, or they hold any text at all.
_PROSE_ENDS = (
    ".md", ".markdown", ".mdown", ".mkd", ".mdx", ".mdc", ".qmd", ".rmd", ".rst", ".adoc", ".asciidoc",
    ".txt", ".text", ".org", ".textile", ".prompt", ".tmpl", ".j2",
)  # fmt: skip
# Without an ending most files are prose (README, NOTES); these are programs.
_PROGRAM_NAMES = frozenset(
    {
        *(
            "makefile",
            "gnumakefile",
            "dockerfile",
            "containerfile",
            "justfile",
            "procfile",
            "gemfile",
        ),
        *(
            "jenkinsfile",
            "vagrantfile",
            "rakefile",
            "brewfile",
            "cmakelists.txt",
            "requirements.txt",
        ),
        *(".gitignore", ".gitattributes", ".dockerignore", ".editorconfig", ".env", ".npmrc"),
        *(".bashrc", ".profile"),
    }
)
_MARKUP_ENDS = (
    ".html", ".htm", ".xml", ".xhtml", ".svg", ".vue", ".svelte", ".jsx", ".tsx", ".php", ".erb", ".ejs",
)  # fmt: skip
_FENCE_NOTE = "the code fence round the body was taken off"
_MEANT = 'if it is meant so, send it with until="TOKEN" and close it with [/{name} TOKEN]'

_NUMBERED = re.compile(r"[ \t]*(\d+)[ \t]?(?:\||│|:|→|\t)")
# Joiners and soft hyphens are meant where people write words; these two are not, in a program.
_STRAY = re.compile("[\u200b\u2060\ufeff]")
_RECIPE = re.compile(r"^[^\s#:=][^:=\n]*:(?!=)[^=\n]*(?<!\\)\n {2,}\S", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Body:
    """A body as it was meant, and what was undone in it."""

    text: str
    notes: tuple[str, ...] = ()


def mend_file(body: str, path: str, way: Channel) -> Body:
    """Gives the body of a file that is written whole.

    Raises:
        OperationError: if it may have been damaged and can't be proven either way.
    """
    if not way and not _is_marked_up(body):
        _check_file(body, path, way)
        return Body(body)
    bare, way, notes = _out_of_fence(body, way)
    if notes and is_prose(path):
        raise OperationError(
            "A code fence stands round the whole body, and in this file it may be meant or not: send"
            f" the block again without the fence; {_MEANT.format(name='CREATE_FILE')}"
        )
    mended = _mend_by_channel(bare, way, "CREATE_FILE")
    _check_file(mended.text, path, way)
    return Body(mended.text, notes + mended.notes)


def mend_command(body: str, way: Channel) -> Body:
    """Gives the shell lines of a command.

    Raises:
        OperationError: as for a file.
    """
    bare, way, notes = _out_of_fence(body, way)
    mended = _mend_by_channel(bare, way, "RUN_COMMAND")
    what = ""
    if _is_encoded(mended.text, way):
        what = "<, > and & stand in it as HTML entities only"
    elif _begins_with_odd_blanks(mended.text):
        what = "lines are indented by no-break spaces"
    if what:
        raise OperationError(
            f"The command looks damaged on its way: {what}. Nothing was run; send this block again,"
            f" inside of a code block; {_MEANT.format(name='RUN_COMMAND')}"
        )
    return Body(mended.text, notes + mended.notes)


def mend_lines(body: str, path: str, way: Channel) -> Body:
    """Gives the lines that take the place of a range of lines.

    Raises:
        OperationError: as for a file.
    """
    bare, spared, notes = (body, way, ()) if is_prose(path) else _out_of_fence(body, way)
    mended = _mend_by_channel(bare, spared, "EDIT_FILE")
    return Body(mended.text, notes + mended.notes)


def check_letters(body: str, path: str, way: Channel, name: str) -> None:
    """Refuses a body with `until` that has what the tags of its reply have suffered.

    Such a body is meant letter by letter, but nobody can say what these letters were. In entities
    even markers of edits are damage: no file but markup holds them so.

    Raises:
        OperationError: if it may have been damaged.
    """
    if any(damage in way and trace.search(body) for damage, trace in _ALL_TRACES):
        raise OperationError(
            "The tags of this reply were damaged on its way, and the body holds the like: nothing was"
            " done; send this block again, inside of a code block"
        )
    is_markup = path.lower().endswith(_MARKUP_ENDS)
    if not is_markup and channel.has_encoded_marker(body):
        raise OperationError(
            f"The {name} body has SEARCH/REPLACE markers in HTML entities, and they look damaged on their"
            " way: nothing was done; send this block again, inside of a code block"
        )


def mend_replacements(body: str, reads: Callable[[str], object]) -> Body:
    """Gives the body of SEARCH/REPLACE blocks with readable markers, if the damage to these is certain.

    Markers in entities show what became of all of the body. It is decoded as a whole then, once.

    Args:
        body: as it came.
        reads: raises OperationError for what can't be read.

    Raises:
        OperationError: if the markers came in entities, and the lines of the body not throughout.
    """
    if _reads(body, reads):
        return Body(body)
    notes: tuple[str, ...] = ()
    bare = _without_fence(body) if _is_marked_up(body) else None
    if bare is not None:
        body, notes = bare, (_FENCE_NOTE,)
        if _reads(body, reads):
            return Body(body, notes)
    lines = body.split("\n")
    mended = [marker_of(line) or line for line in lines]
    text = "\n".join(mended)
    if mended != lines and _reads(text, reads) and channel.has_encoded_marker(body):
        if not _can_be_decoded(body):
            raise _doubt(Damage.ANGLES, "EDIT_FILE")
        body = channel.without_entities(body)
        notes = (*notes, f"{Damage.ENTITIES.value} were undone in the body, as in its markers")
        if _reads(body, reads):
            return Body(body, notes)
        lines = body.split("\n")
        mended = [marker_of(line) or line for line in lines]
        text = "\n".join(mended)
    if mended != lines and _reads(text, reads):
        return Body(text, (*notes, "damaged SEARCH/REPLACE markers were read as such"))
    return Body(body, notes)


def _can_be_decoded(body: str) -> bool:
    """Tells whether all of a body went through one serializer of HTML: nothing in it was left out."""
    rest = channel.ENTITY.sub("", body)
    quotes = {"&quot;": '"', "&#34;": '"', "&#39;": "'", "&#x27;": "'", "&apos;": "'"}
    is_partly = any(name in body and quote in rest for name, quote in quotes.items())
    return not is_partly and not any(c in rest for c in "<>&")


def is_prose(path: str) -> bool:
    """Tells whether a file may hold a code fence as its own text."""
    name = path.rpartition("/")[2].lower()
    if name in _PROGRAM_NAMES:
        return False
    return name.endswith(_PROSE_ENDS) or "." not in name


def _reads(body: str, reads: Callable[[str], object]) -> bool:
    try:
        reads(body)
    except OperationError:
        return False
    return True


# --- markers ---------------------------------------------------------------------------------------

_MARKER = re.compile(r"(<{7,}) ?SEARCH|(={7,})|(>{7,}) ?REPLACE")


def marker_of(line: str) -> str | None:
    """Gives the marker that a line is, whatever was done to it, or None.

    Only used where the body can't be read otherwise, so that a body that holds such text is safe.
    """
    if len(line) > 200 or not any(mark in line for mark in ("SEARCH", "REPLACE", "===", "\\=")):
        return None
    text = channel.with_plain_blanks(channel.without_zero_width(line))
    text = channel.without_escapes(channel.without_entities(text)).strip().strip("*`~ ")
    found = _MARKER.fullmatch(text)
    if found is None:
        return None
    if found[1]:
        return f"{found[1]} SEARCH"
    return found[2] or f"{found[3]} REPLACE"


# --- fences ----------------------------------------------------------------------------------------


def _out_of_fence(body: str, way: Channel) -> tuple[str, Channel, tuple[str, ...]]:
    """Gives a body out of its fence; in there no chat has escaped anything."""
    notes: tuple[str, ...] = ()
    # A label may stand above a fence.
    for _ in range(2):
        bare = _without_fence(body) if _is_marked_up(body) else None
        if bare is None:
            break
        body, notes = bare, (_FENCE_NOTE,)
    return body, way - {Damage.ESCAPES} if notes else way, notes


def _is_marked_up(body: str) -> bool:
    """Tells cheaply whether a fence or a label can stand round a body."""
    head = body[:200]
    if "```" in head or "~~~" in head or "opy" in head:
        return True
    tail = body[-60:]
    return "```" in tail or "~~~" in tail


def _is_fence(line: str) -> bool:
    return _FENCE.fullmatch(line) is not None


def _without_fence(body: str) -> str | None:
    """Gives what a fence holds that opens on the first line of a body and closes on its last.

    A line "Copy code" and the language before it belong to the fence. Where just one of the two
    fences is inside (the other stands outside of the tags), that one is taken off: no program
    begins or ends with one.
    """
    lines = body.split("\n")
    start, end = 0, len(lines)
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    has_language = start < end and lines[start].strip().lower() in _LANGUAGES
    label = start + has_language
    copied = label
    while copied < end and _COPY.fullmatch(lines[copied]):
        copied += 1
    # A language alone is a label only where both fences follow.
    is_pair = label + 1 < end and _is_fence(lines[label]) and _is_fence(lines[end - 1])
    # One alone is an empty body, such as that of `__init__.py`.
    has_label = label < copied
    first = copied if has_label else label if has_language and is_pair else start
    opened = _FENCE.fullmatch(lines[first]) if first < end else None
    closed = _FENCE.fullmatch(lines[end - 1]) if end - 1 > first else None
    if closed is not None and closed[2]:
        closed = None
    if opened is None and closed is None and not has_label:
        return None
    begin = first + 1 if opened is not None else first
    stop = end - 1 if closed is not None else end
    return "".join(f"{line}\n" for line in lines[begin:stop])


# --- what the tags prove ---------------------------------------------------------------------------


def _mend_by_channel(body: str, way: Channel, name: str) -> Body:
    """Undoes in a body what the tags of its reply have suffered, if that is certain here too."""
    if not way:
        return Body(body)
    notes: list[str] = []
    if Damage.ENTITIES in way and channel.ENTITY.search(body):
        # A bare one of these would have been encoded with the tags: the body came another way.
        if channel.is_encoded_throughout(body):
            body = channel.without_entities(body)
            notes.append(_undone(Damage.ENTITIES))
        elif '"' not in channel.ENTITY.sub("", body):
            raise _doubt(Damage.ENTITIES, name)
    if Damage.ANGLES in way and Damage.ENTITIES not in way and channel.ENTITY.search(body):
        # The markers of an edit before it came so. Quotes may be left as they are.
        if not _can_be_decoded(body):
            raise _doubt(Damage.ANGLES, name)
        body = channel.without_entities(body)
        notes.append(_undone(Damage.ANGLES))
    if notes and not any(c in body for c in "<>") and ("&lt;" in body or "&gt;" in body):
        raise _doubt(Damage.ENTITIES, name)  # encoded twice, or meant so
    if Damage.ESCAPES in way and channel.has_escapes(body):
        if channel.is_escaped_throughout(body):
            body = channel.without_escapes(body)
            notes.append(_undone(Damage.ESCAPES))
        elif not channel.is_spared_by_escapes(body):
            raise _doubt(Damage.ESCAPES, name)
    if Damage.BLANKS in way and channel.ODD_BLANK.search(body):
        # Not one ordinary blank is left in it: all of them became no-break spaces.
        if " " in body:
            raise _doubt(Damage.BLANKS, name)
        body = body.replace("\u00a0", " ")
        notes.append(_undone(Damage.BLANKS))
    for damage, trace, plain in _TRACES:
        if damage in way and trace.search(body) and not any(c in body for c in plain):
            raise _doubt(damage, name)
    return Body(body, tuple(notes))


# A plain one of these in a body shows that it did not suffer what the tags did.
_TRACES = (
    (Damage.QUOTES, channel.TYPOGRAPHIC, '"'),
    (Damage.ZERO_WIDTH, channel.ZERO_WIDTH, ""),
    (Damage.BRACKETS, channel.FULL_WIDTH, "[]"),
)


_ALL_TRACES = (
    (Damage.ENTITIES, channel.ENTITY),
    (Damage.ANGLES, channel.ENTITY),
    (Damage.ESCAPES, re.compile(r"\\[!-/:-@\[-`{-~]")),
    (Damage.QUOTES, channel.TYPOGRAPHIC),
    (Damage.BLANKS, channel.ODD_BLANK),
    (Damage.ZERO_WIDTH, channel.ZERO_WIDTH),
    (Damage.BRACKETS, channel.FULL_WIDTH),
)


def _undone(damage: Damage) -> str:
    where = "edits before it" if damage is Damage.ANGLES else "the tags of this reply"
    return f"{damage.value} were undone in the body, as in {where}"


def _doubt(damage: Damage, name: str) -> OperationError:
    return OperationError(
        f"The tags or edits of this reply came with {damage.value}, and the body holds some that may be"
        " damage too: nothing was done; send this block again, inside of a code block;"
        f" {_MEANT.format(name=name)}"
    )


# --- what looks damaged ----------------------------------------------------------------------------


def _check_file(body: str, path: str, way: Channel) -> None:
    """Refuses a whole file that has what no such file has."""
    name = path.rpartition("/")[2].lower()
    what = ""
    if _is_numbered(body) and not name.endswith((".csv", ".tsv", ".log")):
        what = "each line begins with its number"
    elif _is_added(body) and not name.endswith((".diff", ".patch")):
        what = "each line begins with the + of a diff"
    elif _begins_with_odd_blanks(body):
        what = "lines are indented by no-break spaces"
    elif _is_encoded(body, way, path):
        what = "<, > and & stand in it as HTML entities only"
    elif not body.isascii() and not is_prose(path) and _STRAY.search(body, 1):
        what = "zero-width spaces stand in it"
    elif (name in ("makefile", "gnumakefile") or name.endswith(".mk")) and _lacks_tabs(body):
        what = "recipes begin with blanks, not with a tab"
    if what:
        raise OperationError(
            f"The body looks damaged on its way: {what}. Nothing was written; send this block again,"
            f" inside of a code block; {_MEANT.format(name='CREATE_FILE')}"
        )


def _lacks_tabs(makefile: str) -> bool:
    has_own = "\t" in makefile or ".RECIPEPREFIX" in makefile
    return not has_own and _RECIPE.search(makefile) is not None


def _is_numbered(body: str) -> bool:
    found = _NUMBERED.match(body)
    if found is None:
        return False
    lines = body.split("\n")[:-1]
    numbers = [_NUMBERED.match(line) for line in lines]
    if len(lines) < 2 or not all(numbers):
        return False
    first = int(found[1])
    return all(n is not None and int(n[1]) == first + i for i, n in enumerate(numbers))


def _is_added(body: str) -> bool:
    if not body.startswith("+") or body.count("\n") < 2:
        return False
    return body.count("\n+") == body.count("\n") - 1


def _begins_with_odd_blanks(body: str) -> bool:
    if "\u00a0" not in body:
        return False
    return re.search("^[ \t]*\u00a0", body, re.MULTILINE) is not None


def _is_encoded(body: str, way: Channel, path: str = "") -> bool:
    """Tells whether entities stand in a body, and none of the characters that they stand for.

    In prose and markup, `&amp;` may be meant; in a command, which has no path, it is not.
    """
    if "&" not in body or "<" in body or ">" in body or {Damage.ENTITIES, Damage.ANGLES} & way:
        return False
    if "&lt;" in body or "&gt;" in body:
        return True
    may_have_amp = bool(path) and (is_prose(path) or path.lower().endswith(_MARKUP_ENDS))
    return not may_have_amp and "&" not in body.replace("&amp;", "")
