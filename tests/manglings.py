"""What chats, terminals and hands do to a reply: each a function from the text as it was to what arrives."""

import html
import re
from collections.abc import Callable

from codingagent.model.commands import HAS_BODY
from codingagent.prompt import render
from tests.builders import BUDGET, SESSION_ID, context_of, session_of

Mangling = Callable[[str], str]

_NAMES = "|".join([*HAS_BODY, "REPLY", "END"])
_TAG = re.compile(rf"^\[/?(?:{_NAMES})(?=[ \]]).*\]$", re.MULTILINE)
_OPENING = re.compile(rf"^\[(?:{_NAMES})(?=[ \]]).*\]$", re.MULTILINE)
_EDIT = re.compile(r"^\[EDIT_FILE(?=[ \]]).*\]\n(?:.*\n)*?\[/EDIT_FILE\]$", re.MULTILINE)
_PART = re.compile(
    r"(?<=^<<<<<<< SEARCH\n)(?P<search>(?:.*\n)*?)=======\n(?P<replace>(?:.*\n)*?)(?=>>>>>>> REPLACE\n)",
    re.MULTILINE,
)
_BODY = re.compile(
    r"^(?P<open>\[(?P<name>CREATE_FILE|EDIT_FILE|RUN_COMMAND)(?=[ \]]).*\]\n)(?P<body>(?:.*\n)*?)"
    r"(?P<close>\[/(?P=name)(?: [^\]\n]+)?\]\n)",
    re.MULTILINE,
)
# A body that is to be taken letter by letter, and ends at its own word only.
_LETTERS = re.compile(
    r"^\[(?P<tag>[A-Z_]+) [^\n]*until=\"(?P<word>[^\"\n]+)\"[^\n]*\]\n"
    r"(?P<letters>(?:.*\n)*?)\[/(?P=tag) (?P=word)\]$",
    re.MULTILINE,
)


def _beside_letters(change: Mangling) -> Mangling:
    """Leaves out what stands letter by letter in a body with `until`.

    Who writes tags in another form, or puts a fence round what is to stand in a file, is the model
    itself, not the chat. In such a body it writes what is meant: a tag in there is text, and a fence
    or an indentation is the file's. What chats do to characters is done in there, too.
    """

    def changed(text: str) -> str:
        kept: list[str] = []

        def hide(found: re.Match[str]) -> str:
            kept.append(found["letters"])
            start, end = (at - found.start() for at in found.span("letters"))
            return f"{found[0][:start]}\x00{len(kept) - 1}\x00\n{found[0][end:]}"

        hidden = change(_LETTERS.sub(hide, text))
        return re.sub(r"[^\S\n]*\x00(\d+)\x00\n", lambda found: kept[int(found[1])], hidden)

    return changed


def _on_all_tags(change: Mangling) -> Mangling:
    """For what a chat does to all text: what looks like a tag in a body suffers it as well."""
    return lambda text: _TAG.sub(lambda found: change(found[0]), text)


def _on_tags(change: Mangling) -> Mangling:
    return _beside_letters(_on_all_tags(change))


def _on_openings(change: Mangling) -> Mangling:
    return _beside_letters(lambda text: _OPENING.sub(lambda found: change(found[0]), text))


def _on_lines(change: Mangling) -> Mangling:
    # An empty body has no line; one more would be no damage that a chat does.
    return lambda text: "".join(f"{change(line)}\n" for line in text.removesuffix("\n").split("\n") if text)


def _on_edits(
    search: Callable[[list[str]], list[str]], replace: Callable[[list[str]], list[str]]
) -> Mangling:
    """Changes the lines of SEARCH and REPLACE."""

    def made(lines: str, change: Callable[[list[str]], list[str]]) -> str:
        return "".join(f"{line}\n" for line in change(lines.split("\n")[:-1]))

    def edit_changed(found: re.Match[str]) -> str:
        return _PART.sub(
            lambda part: f"{made(part['search'], search)}=======\n{made(part['replace'], replace)}", found[0]
        )

    # Markers in other bodies are text.
    return lambda text: _EDIT.sub(edit_changed, text)


def _each_line_of_edits(change: Mangling) -> Mangling:
    def lines_changed(lines: list[str]) -> list[str]:
        return [change(line) for line in lines]

    return _on_edits(lines_changed, lines_changed)


def _on_each_edit(change: Mangling) -> Mangling:
    return lambda text: _EDIT.sub(lambda found: change(found[0]), text)


def _on_bodies(change: Mangling) -> Mangling:
    return _beside_letters(
        lambda text: _BODY.sub(
            lambda found: (
                found[0]
                if "\x00" in found["body"]
                else f"{found['open']}{change(found['body'])}{found['close']}"
            ),
            text,
        )
    )


def _curled(text: str) -> str:
    """Typographic quotes as a word processor sets them."""
    text = re.sub(r'(^|[\s(\[{=<>:,])"', r"\1“", text, flags=re.MULTILINE).replace('"', "”")
    return re.sub(r"(^|[\s(\[{=<>:,])'", r"\1‘", text, flags=re.MULTILINE).replace("'", "’")


def _escaped(text: str) -> str:
    """As turndown and its like write text in Markdown."""
    return re.sub(r"([\\`*_\[\]])", r"\\\1", text)


def _escaped_line(line: str) -> str:
    line = _escaped(line)
    return re.sub(r"^(\s*)([#+>-]|=+$|~~~)", r"\1\\\2", line)


def _nbsp_indentation(line: str) -> str:
    bare = line.lstrip(" ")
    return "\u00a0" * (len(line) - len(bare)) + bare


def _as_tabs(text: str) -> str:
    """Tabs of one width, as an editor has it: two columns where the text shows that it is not four."""
    counts = [len(line) - len(line.lstrip(" ")) for line in text.split("\n")]
    width = 2 if any(count % 4 == 2 for count in counts) else 4
    return _each_line_of_edits(lambda line: _with_tabs(line, width))(text)


def _with_tabs(line: str, width: int) -> str:
    bare = line.lstrip(" ")
    count = len(line) - len(bare)
    return "\t" * (count // width) + " " * (count % width) + bare


def _as_blanks(line: str) -> str:
    bare = line.lstrip("\t")
    return "    " * (len(line) - len(bare)) + bare


def _numbered(mark: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [f"{n}{mark}{line}" for n, line in enumerate(lines, start=41)]


def _marked(mark: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [f"{mark}{line}" for line in lines]


def _fenced(lines: list[str]) -> list[str]:
    return ["```python", *lines, "```"]


def _in_fences_each(text: str) -> str:
    return _beside_letters(
        lambda hidden: _BODY.sub(lambda found: f"Next:\n\n```text\n{found[0]}```\n", hidden)
    )(text)


def _as_list_items(text: str) -> str:
    """Blocks as items of a numbered list: all of each is indented."""

    def item(found: re.Match[str]) -> str:
        lines = found[0].split("\n")[:-1]
        return f"1. {lines[0]}\n" + "".join(f"   {line}\n" if line else "\n" for line in lines[1:])

    return _beside_letters(lambda hidden: _BODY.sub(item, hidden))(text)


def _with_request(text: str) -> str:
    request = render.render(session_of(), context_of(), BUDGET)
    return f"{request}\n{text}" if SESSION_ID in text else text


def _with_thoughts(text: str) -> str:
    draft = '<think>\nI could write\n[CREATE_FILE path="draft.txt"]\nx\n[/CREATE_FILE]\nbut no.\n</think>\n'
    return f"{draft}\n{text}"


MANGLINGS: dict[str, Mangling] = {
    "none": lambda text: text,
    # the reply as a whole
    "in a fence": lambda t: f"```\n{t}```\n",
    "in a fence with a language": lambda t: f"Sure!\n\n```plaintext\n{t}```\n\nDone.\n",
    "in a fence of tildes": lambda t: f"~~~~\n{t}~~~~\n",
    "under a Copy code label": lambda t: f"plaintext\nCopy code\n{t}",
    "in prose": lambda t: f"Certainly! Here is my answer:\n\n{t}\nTell me how it went [or not].\n",
    "blocks in fences of their own": _in_fences_each,
    "blocks as list items": _as_list_items,
    "quoted": _on_lines(lambda line: f"> {line}"),
    "quoted, empty lines bare": _on_lines(lambda line: f"> {line}" if line else ">"),
    "indented by 4": _on_lines(lambda line: f"    {line}" if line else ""),
    "indented by a tab": _on_lines(lambda line: f"\t{line}" if line else ""),
    "CRLF": lambda t: t.replace("\n", "\r\n"),
    "CR": lambda t: t.replace("\n", "\r"),
    "NEL": lambda t: t.replace("\n", "\x85"),
    "no last line end": lambda t: t.rstrip("\n"),
    "trailing blanks on every line": _on_lines(lambda line: f"{line}  "),
    "byte-order mark": lambda t: f"\ufeff{t}",
    "thoughts before": _with_thoughts,
    "thoughts before, opening lost": lambda t: _with_thoughts(t).removeprefix("<think>\n"),
    "twice": lambda t: f"{t}\n{t}",
    "twice, with a label between": lambda t: f"{t}\nCopy code\n{t}",
    "the request above": _with_request,
    # tags
    "tags escaped": _on_all_tags(_escaped),
    "tags escaped with quotes": _on_all_tags(lambda t: _escaped(t).replace('"', '\\"')),
    "tags bold": _on_tags(lambda t: f"**{t}**"),
    "tags italic": _on_tags(lambda t: f"*{t}*"),
    "tags in code": _on_tags(lambda t: f"`{t}`"),
    "tags bold and code": _on_tags(lambda t: f"**`{t}`**"),
    "names bold": _on_tags(lambda t: re.sub(r"([A-Z_]{3,})", r"**\1**", t, count=1)),
    "tags as headings": _on_tags(lambda t: f"### {t}"),
    "openings as list items": _on_openings(lambda t: f"- {t}"),
    "tags as list items": _on_tags(lambda t: f"* {t}"),
    "tags indented": _on_tags(lambda t: f"  {t}"),
    "tags with typographic quotes": _on_all_tags(_curled),
    "tags with single quotes": _on_tags(lambda t: t.replace('"', "'")),
    "tags with entities": _on_all_tags(html.escape),
    "tags with numeric entities": _on_all_tags(
        lambda t: t.replace("[", "&#91;").replace("]", "&#93;").replace('"', "&#34;")
    ),
    "tags with no-break spaces": _on_all_tags(lambda t: t.replace(" ", "\u00a0")),
    "tags with zero-width spaces": _on_all_tags(lambda t: f"\u200b{t}\u200b"),
    "tags with byte-order marks": _on_all_tags(lambda t: f"\ufeff{t}"),
    "tags with full-width brackets": _on_all_tags(lambda t: t.replace("[", "［").replace("]", "］")),
    "tags with lenticular brackets": _on_all_tags(lambda t: t.replace("[", "【").replace("]", "】")),
    "tags with trailing blanks": _on_tags(lambda t: f"{t}  \t"),
    # everything
    "everything escaped": _on_lines(_escaped_line),
    "everything in entities": html.escape,
    "less and greater in entities": lambda t: html.escape(t, quote=False),
    "everything with typographic quotes": _curled,
    "everything with no-break spaces": lambda t: t.replace(" ", "\u00a0"),
    # bodies
    "bodies in fences": _on_bodies(lambda t: f"```python\n{t}```\n"),
    "bodies in bare fences": _on_bodies(lambda t: f"\n```\n{t}```\n\n"),
    "bodies under a Copy code label": _on_bodies(lambda t: f"python\nCopy code\n{t}"),
    "fences across the tags": _beside_letters(
        lambda t: _BODY.sub(
            lambda m: m[0] if "\x00" in m[0] else f"{m['open']}```\n{m['body']}{m['close']}```\n", t
        )
    ),
    "indented by no-break spaces": _on_bodies(_on_lines(_nbsp_indentation)),
    "edits in entities": _each_line_of_edits(html.escape),
    "edits escaped": _each_line_of_edits(_escaped),
    "edits with typographic quotes": _each_line_of_edits(_curled),
    "edits with straight quotes": _each_line_of_edits(lambda t: re.sub("[“”]", '"', re.sub("[‘’]", "'", t))),
    "edits with no-break spaces": _each_line_of_edits(lambda t: t.replace(" ", "\u00a0")),
    "edits with zero-width spaces": _each_line_of_edits(lambda t: t.replace("_", "_\u200b")),
    "edits with blanks for tabs": _each_line_of_edits(_as_blanks),
    "edits with tabs for blanks": _on_each_edit(_as_tabs),
    "edits without indentation": _each_line_of_edits(str.lstrip),
    "edits indented by 2": _each_line_of_edits(lambda t: f"  {t}" if t else t),
    "edits with trailing blanks": _each_line_of_edits(lambda t: f"{t}  " if t else t),
    "blank lines of edits with blanks": _each_line_of_edits(lambda t: t or "    "),
    "edits with line numbers": _on_edits(_numbered(" | "), _numbered(" | ")),
    "edits with line numbers and colons": _on_edits(_numbered(": "), _numbered(": ")),
    "edits with numbers in SEARCH only": _on_edits(_numbered(" | "), lambda lines: lines),
    "edits with marks of a diff": _on_edits(_marked("-"), _marked("+")),
    "edits with fences inside": _on_edits(_fenced, _fenced),
    "markers escaped": lambda t: re.sub(
        r"^(<<<<<<< SEARCH|=======|>>>>>>> REPLACE)$", r"\\\1", t, flags=re.MULTILINE
    ),
    "markers indented": lambda t: re.sub(
        r"^(<<<<<<< SEARCH|=======|>>>>>>> REPLACE)$", r"  \1", t, flags=re.MULTILINE
    ),
    "markers bold": lambda t: re.sub(
        r"^(<<<<<<< SEARCH|=======|>>>>>>> REPLACE)$", r"**\1**", t, flags=re.MULTILINE
    ),
}
UNSEEN = frozenset(
    name
    for name in MANGLINGS
    if name.startswith(
        ("quoted", "twice", "tags bold", "names bold", "openings as", "tags as", "edits with line")
    )
    or name
    in ("CR", "NEL", "blocks as list items", "trailing blanks on every line", "tags italic", "tags in code")
    or name in ("tags with single quotes", "tags with zero-width spaces", "tags with byte-order marks")
    or name
    in ("tags with full-width brackets", "tags with lenticular brackets", "edits with trailing blanks")
    or name in ("edits with zero-width spaces", "edits with marks of a diff", "edits with fences inside")
    or name in ("edits with numbers in SEARCH only", "edits with straight quotes")
)
"""What no chat and no report shows: it may be asked again."""
