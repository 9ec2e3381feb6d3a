"""Answers in four styles over real files, each damaged in many ways: `python -m tests.damage_table` counts.

Apart from `manglings`, whose replies are written by hand: here an answer is made from a file as it is and
as it is to be, line by line with what each line is, so that a damage can touch all text, only tags, or
only bodies. What may come of it: the right bytes; nothing, and a problem that asks again; or exactly the
damaged body, where nobody could tell it from an answer that is meant. That is so in two cases, and each
has a column:

- "as written": `Row.meant_in` names the kind of file as one in which people write such text.
- "can't be known", by a rule that looks at texts alone, never at what became of them (`is_unknowable`):
  all that is outside of bodies came as it was sent; the damaged body is a normal text of its kind
  (`oddities` finds nothing); and the lines that it replaces do not show the damage: no line and no pair
  of neighbours in it is what the damage would make of those lines.
"""

import ast
import difflib
import html
import itertools
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path

from tests import reply_table
from tests.builders import SESSION_ID
from tests.reply_table import Came, Done

TEXTS = Path(__file__).with_name("replies") / "texts"
STYLES = ("create", "new", "search", "lines", "lines around", "command")

Part = tuple[str, str]
"""What a line is (`head`, `tag`, `close`, `marker`, `body`, `say`) and the line."""
Damage = Callable[[list[Part]], str]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in one style, and the files that it finds."""

    style: str
    file: str
    parts: tuple[Part, ...]
    before: dict[str, bytes]

    @property
    def text(self) -> str:
        return _joined(self.parts)


@dataclass(frozen=True, slots=True)
class Row:
    """A damage: what it does, and what is lost of it for good.

    `lossy` says that nobody can know the text from what arrives, `unseen` that no chat and no report shows
    the damage: then it may be asked again. `meant_in` are the ends of names of
    files in which the damaged body may be just what is meant.
    """

    name: str
    damage: Damage
    lossy: bool = False
    meant_in: tuple[str, ...] = ()
    unseen: bool = False


def _joined(parts: Iterable[Part]) -> str:
    return "".join(f"{line}\n" for _, line in parts)


# --- the answers -----------------------------------------------------------------------------------


def answers() -> Iterator[Answer]:
    """Yield every file in every style."""
    for path in sorted((TEXTS / "before").iterdir()):
        old, new = path.read_text("utf-8"), (TEXTS / "after" / path.name).read_text("utf-8")
        files = {path.name: old.encode()}
        yield _answer("create", path.name, _created(path.name, new), files)
        yield _answer("new", path.name, _created(path.name, new), {})
        yield from edits(path.name, old, new)
    yield _answer("command", "command", _commands(), {})


def edits(name: str, old: str, new: str) -> Iterator[Answer]:
    """Yield the answers that make one text of another by an edit, in each style."""
    files = {name: old.encode()}
    yield _answer("search", name, _searched(name, old, new), files)
    yield _answer("lines", name, _ranged(name, old, new, 0), files)
    yield _answer("lines around", name, _ranged(name, old, new, 1), files)


def _answer(style: str, name: str, parts: list[Part], before: dict[str, bytes]) -> Answer:
    head = ("head", f'[REPLY session="{SESSION_ID}" sequence="2"]')
    said = ("say", "This changes what you asked for:")
    end = [("say", "")] if style == "command" else []
    return Answer(style, name, (head, said, *parts, *end, ("head", "[END]")), before)


def _created(name: str, new: str) -> list[Part]:
    return [("tag", f'[CREATE_FILE path="{name}"]'), *_body(new), ("close", "[/CREATE_FILE]")]


def _body(text: str) -> list[Part]:
    return [("body", line) for line in text.split("\n")[:-1]]


def _changes(old: list[str], new: list[str], around: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield what is replaced by what, each with lines around it that are the same."""
    found = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in found.get_grouped_opcodes(around):
        (_, a, _, b, _), (_, _, a_end, _, b_end) = group[0], group[-1]
        # What is only added takes the line before it along; at the top, the one after it.
        before, behind = int(a == a_end and a > 0), int(a == a_end and a == 0)
        yield a - before, a_end + behind, b - before, b_end + behind


def _searched(name: str, old: str, new: str) -> list[Part]:
    before, after = old.split("\n")[:-1], new.split("\n")[:-1]
    parts: list[Part] = [("tag", f'[EDIT_FILE path="{name}"]')]
    for a, a_end, b, b_end in _changes(before, after, 2):
        parts.append(("marker", "<<<<<<< SEARCH"))
        parts += [("body", line) for line in before[a:a_end]]
        parts.append(("marker", "======="))
        parts += [("body", line) for line in after[b:b_end]]
        parts.append(("marker", ">>>>>>> REPLACE"))
    return [*parts, ("close", "[/EDIT_FILE]")]


def _ranged(name: str, old: str, new: str, around: int) -> list[Part]:
    before, after = old.split("\n")[:-1], new.split("\n")[:-1]
    parts: list[Part] = []
    for a, a_end, b, b_end in reversed(list(_changes(before, after, around))):
        parts.append(("tag", f'[EDIT_FILE path="{name}" start_line="{a + 1}" end_line="{a_end}"]'))
        parts += [("body", line) for line in after[b:b_end]]
        parts.append(("close", "[/EDIT_FILE]"))
    return parts


_SHELL = (
    """python3 -c "print('a_b' if 1 < 2 and [3] else {})" && cat slugs.py > out_1.txt""",
    """cat <<'END_OF' > notes.md
# It's "noted"

    x = a[0] & b_c
END_OF
grep -n -- '--x_y' slugs.py || true""",
)


def _commands() -> list[Part]:
    parts: list[Part] = [
        ("tag", "[MESSAGE]"),
        ("body", """I'll look at "a_b" & <c> first."""),
        ("close", "[/MESSAGE]"),
    ]
    for lines in _SHELL:
        parts.append(("tag", "[RUN_COMMAND]"))
        parts += [("body", line) for line in lines.split("\n")]
        parts.append(("close", "[/RUN_COMMAND]"))
    return parts


# --- the damages -----------------------------------------------------------------------------------

_ALL = ("head", "tag", "close", "marker", "body", "say")
_TAGS = ("head", "tag", "close")
_BODIES = ("body",)
_INNER = ("body", "marker")


def _each(change: Callable[[str], str], roles: Sequence[str] = _ALL) -> Damage:
    return lambda parts: _joined((r, change(line) if r in roles else line) for r, line in parts)


def _text(change: Callable[[str], str]) -> Damage:
    return lambda parts: change(_joined(parts))


def _groups(parts: list[Part]) -> Iterator[tuple[str, list[str]]]:
    """Yield runs of lines of one kind; markers and what they part are one body."""
    run: list[str] = []
    kind = ""
    for role, line in parts:
        this = "body" if role in _INNER else role
        if run and (this != kind or this != "body"):
            yield kind, run
            run = []
        kind = this
        run.append(line)
    yield kind, run


def _bodies(change: Callable[[list[str]], list[str]]) -> Damage:
    def damaged(parts: list[Part]) -> str:
        out: list[str] = []
        for kind, lines in _groups(parts):
            out += change(lines) if kind == "body" else lines
        return "".join(f"{line}\n" for line in out)

    return damaged


def _sections(change: Callable[[list[str]], list[str]]) -> Damage:
    """Change the lines between tags and markers: what is SEARCH, REPLACE or a whole body."""

    def damaged(parts: list[Part]) -> str:
        out: list[str] = []
        run: list[str] = []
        for role, line in (*parts, ("end", "")):
            if role == "body":
                run.append(line)
                continue
            out += change(run) if run else []
            run = []
            out.append(line)
        return "".join(f"{line}\n" for line in out[:-1])

    return damaged


def _without_header(change: Damage) -> Damage:
    return lambda parts: change([part for part in parts if part[0] != "head"])


def _lead(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _with_lead(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda line: change(_lead(line)) + line[len(_lead(line)) :]


def _curly(line: str) -> str:
    line = re.sub(r"(?<![^\s(\[{=:,>])\"", "“", line).replace('"', "”")
    return re.sub(r"(?<![^\s(\[{=:,>“])'", "‘", line).replace("'", "’")


def _low_quotes(line: str) -> str:
    return re.sub(r"(?<![^\s(\[{=:,>])\"", "„", line).replace('"', "“")


def _numeric(line: str) -> str:
    return re.sub(r"[<>&\"']", lambda found: f"&#{ord(found[0])};", line)


def _hexadecimal(line: str) -> str:
    return re.sub(r"[<>&\"']", lambda found: f"&#x{ord(found[0]):x};", line)


def _foreign_letters(line: str) -> str:
    return re.sub("[\u0370-\u1fff\u3040-\uffef]", lambda found: f"&#{ord(found[0])};", line)


def _linked(line: str) -> str:
    return re.sub(r"(?<![\w/.])(\w+\.(?:py|md|ts|go|sh))(?![\w/])", r"[\1](http://\1)", line)


def _slack_linked(line: str) -> str:
    return re.sub(r"(?<![\w/.])(\w+\.(?:py|md|ts|go|sh))(?![\w/])", r"<http://\1|\1>", line)


def _backslashed(line: str, marks: str) -> str:
    return re.sub(f"[{re.escape(marks)}]", lambda found: f"\\{found[0]}", line)


def _alternating(lead: str) -> str:
    return "\u00a0" * (len(lead) - 1) + " " if len(lead) > 1 and "\t" not in lead else lead


def _numbered(form: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [form.format(n, line) for n, line in enumerate(lines, start=1)]


def _numbered_as_we_do(parts: list[Part]) -> str:
    """Our own requests show lines so, with the numbers that they have in the file."""
    out: list[str] = []
    at = 1
    for role, line in parts:
        if role == "tag":
            found = re.search(r'start_line="(\d+)"', line)
            at = int(found[1]) if found else 1
        if role == "body":
            out.append(f"{at:>4} | {line}")
            at += 1
        else:
            out.append(line)
    return "".join(f"{line}\n" for line in out)


def _copied_with_numbers(lead: str) -> Damage:
    """Lines that the file has come with their numbers, as requests show them; new lines come without."""

    def damaged(parts: list[Part]) -> str:
        search = [part for part, in_search in _in_search(parts) if in_search]
        numbers = {line: at for at, (_, line) in enumerate(search, 97)}
        return "".join(
            f"{lead}{numbers[line]:>3} | {line}".rstrip(" ") + "\n"
            if role == "body" and line in numbers
            else f"{line}\n"
            for role, line in parts
        )

    return damaged


def _in_search(parts: list[Part]) -> Iterator[tuple[Part, bool]]:
    """Yield each part, and whether it is a line of a SEARCH."""
    is_in = False
    for part in parts:
        is_in = part[1].endswith(" SEARCH") if part[0] in ("marker", "tag") else is_in
        yield part, is_in and part[0] == "body"


def _fenced(fence: str, label: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [f"{fence}{label}", *lines, fence]


def _across(parts: list[Part]) -> str:
    return _joined(
        pair
        for role, line in parts
        for pair in ([(role, line), ("say", "```")] if role in ("tag", "close") else [(role, line)])
    )


def _list_items(parts: list[Part]) -> str:
    out: list[str] = []
    number = 0
    for role, line in parts:
        if role == "tag":
            number += 1
            out.append(f"{number}. {line}")
        elif role in ("head", "say"):
            out.append(line)
        else:
            out.append(f"   {line}" if line else "")
    return "".join(f"{line}\n" for line in out)


def _shown_as_code(parts: list[Part]) -> str:
    """Each block in a box with its label, as it is copied from some pages."""
    out: list[str] = []
    for role, line in parts:
        if role == "tag":
            out += ["python", "Copy", "Edit"]
        out.append(line)
    return "".join(f"{line}\n" for line in out)


def _cited(mark: str, roles: Sequence[str], one_in: int = 3) -> Damage:
    """Put a chat's mark behind some of the lines that are not blank."""

    def damaged(parts: list[Part]) -> str:
        out: list[Part] = []
        count = 0
        for role, line in parts:
            count = 0 if role == "tag" and role not in roles else count
            count += role in roles and bool(line.strip())
            is_cited = role in roles and bool(line.strip()) and count % one_in == 0
            out.append((role, f"{line}{mark}" if is_cited else line))
        return _joined(out)

    return damaged


def _cited_below(mark: str) -> Damage:
    """Put a chat's mark on a line of its own, below each part of a body."""
    return _sections(lambda lines: [*lines, mark])


def _turned(before: str, behind: str = "") -> Callable[[str], str]:
    return lambda line: f"{before}{line}{behind}" if line.strip() else line


_ESCAPED_BY_PANDOC = "\\`*_[]<>#\"'$^~@|"
_PROSE = (".md",)
_MARKUP = (".md", ".html")
_BARE_TEXT = (".md", ".html", ".tex", ".yml", "Makefile")

_B = _BODIES
_CITED = {
    "oaicite": ":contentReference[oaicite:2]{index=2}",
    "dagger": " 【12†source】",
    "private": " \ue200cite\ue202turn0search1\ue201",
    "cite_start": "[cite_start]",
}
ROWS: tuple[Row, ...] = (
    Row("as it is", _each(str)),
    # line ends and blank lines
    Row("<br> at line ends", _each(lambda t: f"{t}<br>"), unseen=True),
    Row("<br /> at line ends", _each(lambda t: f"{t}<br />"), unseen=True),
    Row("<br> in place of line ends", _text(lambda t: t.replace("\n", "<br>")), unseen=True),
    Row("CRLF", _text(lambda t: t.replace("\n", "\r\n"))),
    Row("CR", _text(lambda t: t.replace("\n", "\r")), unseen=True),
    Row("line separators", _text(lambda t: t.replace("\n", "\u2028")), unseen=True),
    Row("a blank line after each", _each(lambda t: f"{t}\n"), unseen=True),
    Row("blanks in blank lines", _each(lambda t: t or "  "), meant_in=_PROSE),
    Row("a tab in blank lines of bodies", _each(lambda t: t or "\t", _B), meant_in=_PROSE),
    Row("blank lines doubled", _each(lambda t: t or "\n")),
    Row("blank lines lost", _text(lambda t: re.sub(r"\n\n+", "\n", t)), lossy=True),
    Row("no line ends at all", _text(lambda t: t.replace("\n", " ")), lossy=True),
    Row("trailing blank", _each(lambda t: f"{t} "), unseen=True),
    Row("trailing blanks in bodies", _each(lambda t: f"{t}  " if t else t, _B), lossy=True, meant_in=_PROSE),
    Row("trailing backslashes", _each(lambda t: f"{t}\\"), lossy=True),
    # indentation
    Row("all of it 4 deep", _each(lambda t: f"    {t}" if t else t)),
    Row("all of it 2 deep, no header", _without_header(_each(lambda t: f"  {t}"))),
    Row("all of it a tab deep", _each(lambda t: f"\t{t}")),
    Row("tags indented", _each(lambda t: f"    {t}", _TAGS)),
    Row("blocks as list items", _list_items, unseen=True),
    Row("bodies 4 deep", _each(lambda t: f"    {t}" if t else t, _INNER), meant_in=_BARE_TEXT, unseen=True),
    Row("no indentation", _each(str.lstrip), lossy=True, meant_in=_PROSE),
    Row("no indentation in bodies", _each(str.lstrip, _B), lossy=True, meant_in=_PROSE),
    Row(
        "indentation of one blank",
        _each(_with_lead(lambda t: t[:1] and " "), _B),
        lossy=True,
        meant_in=_PROSE,
    ),
    Row("runs of blanks as one", _each(lambda t: re.sub(r"[ \t]+", " ", t)), lossy=True),
    Row("tabs as 4 blanks", _each(lambda t: t.expandtabs(4)), lossy=True),
    Row("tabs as 8 blanks", _each(lambda t: t.expandtabs(8)), lossy=True),
    Row("tabs lost", _each(lambda t: t.replace("\t", "")), lossy=True),
    Row("4 blanks as tabs", _each(_with_lead(lambda t: t.replace("    ", "\t")), _B), lossy=True),
    Row("no-break indentation", _each(_with_lead(lambda t: t.replace(" ", "\u00a0")))),
    Row("no-break blanks but the last", _each(_with_lead(_alternating))),
    Row("indentation as &nbsp;", _each(_with_lead(lambda t: t.replace(" ", "&nbsp;"))), meant_in=_MARKUP),
    Row("no-break blanks throughout", _each(lambda t: t.replace(" ", "\u00a0"))),
    Row("wide indentation", _each(_with_lead(lambda t: t.replace("  ", "\u3000"))), lossy=True),
    Row("narrow no-break blanks", _each(lambda t: t.replace(" ", "\u202f"))),
    # characters, of all text
    Row("entities", _each(html.escape)),
    # The tags hold none of these characters, and show nothing.
    Row("entities, not quotes", _each(lambda t: html.escape(t, quote=False)), meant_in=_MARKUP),
    Row("entities twice", _each(lambda t: html.escape(html.escape(t)))),
    Row("numeric entities", _each(_numeric)),
    Row("hexadecimal entities", _each(_hexadecimal)),
    Row("letters of other scripts as entities", _each(_foreign_letters), meant_in=_MARKUP),
    Row("curly quotes", _each(_curly), lossy=True),
    Row("German quotes", _each(_low_quotes), lossy=True),
    Row("dashes and ellipses", _each(lambda t: t.replace("--", "—").replace("...", "…")), lossy=True),
    Row("no-break hyphens", _each(lambda t: t.replace("-", "\u2011")), unseen=True),
    Row("full-width brackets", _each(lambda t: t.replace("[", "［").replace("]", "］")), unseen=True),
    Row("zero-width blanks", _each(lambda t: re.sub(r"([_./])", "\\1\u200b", t)), unseen=True),
    Row("soft hyphens", _each(lambda t: re.sub(r"(\w{6})(?=\w{3})", "\\1\u00ad", t)), unseen=True),
    Row("a byte-order mark per line", _each(lambda t: f"\ufeff{t}"), unseen=True),
    Row("escaped underscores", _each(lambda t: _backslashed(t, "_"))),
    Row("escaped by turndown", _each(lambda t: _backslashed(t, "\\`*_[]"))),
    Row("escaped by pandoc", _each(lambda t: _backslashed(t, _ESCAPED_BY_PANDOC))),
    Row("linked file names", _each(_linked), unseen=True),
    Row("linked file names as in Slack", _each(_slack_linked), unseen=True),
    # characters, of bodies alone: a model's own habit
    Row("entities in bodies", _each(lambda t: html.escape(t, quote=False), _B), meant_in=_MARKUP),
    Row("curly quotes in bodies", _each(_curly, _B), lossy=True, meant_in=_BARE_TEXT),
    Row(
        "escaped underscores in bodies",
        _each(lambda t: _backslashed(t, "_"), _B),
        meant_in=(".md", ".tex", ".yml", "Makefile", ".html"),
    ),
    Row("no-break indentation in bodies", _each(_with_lead(lambda t: t.replace(" ", "\u00a0")), _B)),
    # what stands round or before the lines of a body
    Row("bodies in fences", _bodies(_fenced("```", "")), meant_in=_PROSE),
    Row("bodies in fences with a language", _bodies(_fenced("```", "python")), meant_in=_PROSE),
    Row("bodies in tildes", _bodies(_fenced("~~~", "text")), meant_in=_PROSE),
    Row("sections in fences", _sections(_fenced("```", "python")), meant_in=_PROSE),
    Row("a fence that opens inside", _across, meant_in=_PROSE),
    Row("numbered as we do", _numbered_as_we_do, unseen=True),
    Row("copied with our numbers", _copied_with_numbers(""), unseen=True),
    Row("copied with the numbers of a result", _copied_with_numbers("    "), unseen=True),
    Row("numbered with colons", _sections(_numbered("{}: {}")), meant_in=_PROSE, unseen=True),
    Row("numbered by cat -n", _sections(_numbered("{:6d}\t{}")), meant_in=_PROSE, unseen=True),
    Row(
        "numbered by a code box",
        _bodies(lambda t: [*map(str, range(1, len(t) + 1)), *t]),
        meant_in=_PROSE,
        unseen=True,
    ),
    Row(
        "numbers of a code box, closely",
        _bodies(lambda t: [f"{n}{line}" for n, line in enumerate(t, 1)]),
        lossy=True,
        meant_in=_PROSE,
    ),
    Row("under a label within", _bodies(lambda t: ["Python", "复制代码", *t]), meant_in=_PROSE),
    Row("under a button within", _bodies(lambda t: ["Code kopieren", *t]), meant_in=_PROSE),
    Row("marks of a diff", _each(lambda t: f"+{t}", _B), meant_in=_BARE_TEXT, unseen=True),
    # tags
    Row("attributes without quotes", _each(lambda t: t.replace('"', ""), _TAGS), unseen=True),
    Row(
        "blanks inside the brackets",
        _each(lambda t: re.sub(r"=", " = ", t).replace("[", "[ ").replace("]", " ]"), _TAGS),
        unseen=True,
    ),
    Row("values between guillemets", _each(lambda t: re.sub('"([^"]*)"', r"« \1 »", t), _TAGS), unseen=True),
    Row("values between corners", _each(lambda t: re.sub('"([^"]*)"', r"「\1」", t), _TAGS), unseen=True),
    Row("tags bold", _each(lambda t: f"**{t}**", _TAGS), unseen=True),
    Row("tags in code", _each(lambda t: f"`{t}`", _TAGS), unseen=True),
    Row("tags as comments", _each(lambda t: f"<!-- {t} -->", _TAGS), unseen=True),
    Row("tags in lower case", _each(str.lower, _TAGS), lossy=True),
    Row("tags with angle brackets", _each(lambda t: f"<{t[1:-1]}>", _TAGS), lossy=True),
    # marks of what a chat cites, and of the direction of a line
    *(
        Row(f"{name} behind {where}", _cited(mark, roles, one_in))
        for name, mark in _CITED.items()
        for where, roles, one_in in (("tags", _TAGS, 1), ("some lines", _B, 3), ("all", _ALL, 1))
    ),
    *(Row(f"{name} below a body", _cited_below(mark.strip())) for name, mark in _CITED.items()),
    Row("[cite: 3] behind tags", _cited(" [cite: 3]", _TAGS, 1)),
    Row("[cite: 3] behind some lines", _cited(" [cite: 3]", _B), meant_in=_BARE_TEXT, lossy=True),
    Row("[1] behind tags", _cited(" [1]", _TAGS, 1)),
    Row("U+200F before each line", _each(_turned("\u200f"))),
    Row("U+202B around each line", _each(_turned("\u202b", "\u202c"))),
    Row("U+061C before tags", _each(_turned("\u061c"), _TAGS)),
    Row("U+200E behind each line", _each(_turned("", "\u200e"))),
    Row("U+2067 around tags", _each(_turned("\u2067", "\u2069"), _TAGS)),
    Row("U+200E before lines of bodies", _each(_turned("\u200e"), _B)),
    # quoting
    Row("quoted, no header", _without_header(_each(lambda t: f"> {t}")), unseen=True),
    Row("quoted closely, no header", _without_header(_each(lambda t: f">{t}")), unseen=True),
    Row("quoted twice, no header", _without_header(_each(lambda t: f"> > {t}")), unseen=True),
    Row("quoted", _each(lambda t: f"> {t}".rstrip()), unseen=True),
    # the answer as a whole
    Row("in a fence", _text(lambda t: f"```\n{t}```\n")),
    Row("in a longer fence", _text(lambda t: f"Here:\n\n````text\n{t}````\n")),
    Row("labels of a page", _shown_as_code),
    Row("who said it", _text(lambda t: f"ChatGPT said:\n\n{t}\n\n10:41\n")),
    Row("the last line lost", _text(lambda t: t[: t.rstrip().rindex("\n") + 1])),
    Row("cut in the closing tag", _text(lambda t: t[: t.rindex("[/") + 4]), lossy=True),
    Row("twice", _text(lambda t: t + t), unseen=True),
)


# --- what can't be known -----------------------------------------------------------------------------

_STRICT = (".py", ".go", ".ts")
_LEVELLED = (*_STRICT, ".yml", ".html")
_TEXT = (".md", ".tex")
_STRANGE = re.compile("[\u00a0\u00ad\u200b-\u200d\u2010\u2011\u202f\u2060\ufeff]")
_TYPESET = re.compile("[\u2013\u2014\u2018-\u201e\u2026]")
_OPENS = re.compile(r"(?:[{(\[:]|\b(?:then|do))$|<(?!li|p|meta|link)[a-z]+[^<>/]*>$")
_CLOSES = re.compile(r"\s*(?:[)}\]#]|</|- |(?:fi|done|else|elif|except|finally|case|default)\b)")


def is_unknowable(row: Row, answer: Answer, block: Sequence[Part]) -> bool:
    """Return whether the damaged body of a block is also what an author may have meant there."""
    body = [part for part in block if part[0] in _INNER]
    outside = [part for part in answer.parts if part[0] not in _INNER and part[1]]
    if row.damage(outside) != _joined(outside):
        return False
    old, start, end = _replaced(answer, block)
    new = row.damage(body).split("\n")[:-1]
    there = old[start:end]
    was = row.damage([("body", line) for line in there]).split("\n")[:-1]
    if (_units(was) - _units(there)) & _units(new):
        return False
    clean = [line for _, line in body]
    odd = set(oddities([*old[:start], *new, *old[end:]], new, answer.file))
    return odd <= set(oddities([*old[:start], *clean, *old[end:]], clean, answer.file))


def _replaced(answer: Answer, block: Sequence[Part]) -> tuple[list[str], int, int]:
    """Return the lines on disk, and which of them a block replaces."""
    data = answer.before.get(answer.file, b"").decode()
    old = data.split("\n")[:-1]
    found = re.search(r'start_line="(\d+)" end_line="(\d+)"', block[0][1])
    return (old, int(found[1]) - 1, int(found[2])) if found else (old, 0, len(old))


def _units(lines: Sequence[str]) -> set[tuple[str, ...]]:
    """Return the lines, and the neighbours with the blank lines between them."""
    words = [index for index, line in enumerate(lines) if line.strip()]
    pairs = {tuple(lines[a : b + 1]) for a, b in pairwise(words)}
    return {(lines[index],) for index in words} | pairs


def oddities(whole: Sequence[str], new: Sequence[str], name: str) -> Iterator[str]:
    """Yield what no author of a file of this kind would write.

    Args:
        whole: the file with the new lines.
        new: the new lines.
        name: the file, or "command".
    """
    words = [line for line in new if line.strip()]
    text = "\n".join(new)
    is_code, is_command = name.endswith(_STRICT), name == "command"
    if _STRANGE.search(text) or ((is_code or is_command) and _TYPESET.search(text)):
        yield "characters that no keyboard types"
    if re.search("&(?:lt|gt|amp);", text) and not name.endswith(_MARKUP):
        yield "entities"
    if len(words) > 1 and all(line[-1] in " \t" for line in words) and not name.endswith(_PROSE):
        yield "blanks at the end of each line"
    if is_command and all(line.startswith("+") for line in words):
        yield "marks of a diff"
    runs = [len(list(group)) for blank, group in groupby(new, lambda line: not line.strip()) if blank]
    is_spaced = len(words) > 1 and len(runs) >= len(words) - 1 and all(n % 2 for n in runs)
    if is_spaced and (max(runs) > 1 or not name.endswith(_TEXT)):
        yield "a blank line after each line"
    if runs and all(n % 2 == 0 for n in runs) and _is_doubled(new, runs, name):
        yield "blank lines in twos"
    numbers = [re.match(r" *(\d+)(?: \||:|\t)", line) for line in new]
    if len(new) > 1 and [int(n[1]) for n in numbers if n] == list(range(1, len(new) + 1)):
        yield "numbered lines"
    if name.endswith(_PROSE) and words and _opens_one_more(words):
        yield "a fence without an end"
    for a, b in pairwise(words) if name.endswith(_LEVELLED) else ():
        at, to = _depth(a), _depth(b)
        is_flat = name.endswith(".html") and not any(map(_depth, words))
        if _OPENS.search(a) and not _CLOSES.match(b) and at >= to and not is_flat:
            yield f"a level that is not deeper: {b.strip()}"
        if is_code and at and not to and not _CLOSES.match(b) and not name.endswith(".py"):
            yield f"a line at the margin within a level: {b.strip()}"
    if name == "Makefile" and re.search(r"^[\w$().-]+:[^=\n]*\n +\S", text, re.MULTILINE):
        yield "a recipe without a tab"
    if not _is_read(whole, name):
        yield "its own reader refuses it"


def _depth(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())


def _is_doubled(new: Sequence[str], runs: Sequence[int], name: str) -> bool:
    if name.endswith(".py"):
        return max(runs) > 2 or "\n\n\n " in "\n".join(new)
    return max(runs) > 2 or name.endswith(_STRICT)


def _opens_one_more(words: Sequence[str]) -> bool:
    fences = [line for line in words if line.startswith(("```", "~~~"))]
    return words[0].startswith(("```", "~~~")) and len(fences) % 2 == 1


@cache
def _is_valid_shell(text: str) -> bool:
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    return done.returncode == 0 and not done.stderr


def _is_read(whole: Sequence[str], name: str) -> bool:
    text = "".join(f"{line}\n" for line in whole)
    if name == "command":
        return _is_valid_shell(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it warns of escapes that are none
            return not name.endswith(".py") or bool(ast.parse(text))
    except SyntaxError:
        return False


# --- what came of them -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """An answer with a damage, and what came of it."""

    answer: Answer
    row: Row
    came: str
    done: Done
    text: str


@dataclass(slots=True)
class _Clean:
    """What each answer does as it was written; executed once."""

    folder: Path
    count: int = 0
    known: dict[tuple[str, str], Done] = field(default_factory=dict)

    def run(self, text: str, before: dict[str, bytes]) -> Done:
        self.count += 1
        root = self.folder / str(self.count)
        root.mkdir()
        return reply_table.execute(text, before, root)

    def of(self, answer: Answer) -> Done:
        key = (answer.style, answer.file)
        if key not in self.known:
            self.known[key] = self.run(reply_table.to_the_letter(answer.text), answer.before)
            assert not self.known[key].problems, self.known[key]
        return self.known[key]


def run(rows: Iterable[Row], every: Iterable[Answer]) -> list[Cell]:
    """Send every answer through every damage that changes it."""
    cells: list[Cell] = []
    chosen = list(every)
    with tempfile.TemporaryDirectory() as folder:
        clean = _Clean(Path(folder))
        for row in rows:
            for answer in chosen:
                text = row.damage(list(answer.parts))
                if text != answer.text or row.name == "as it is":
                    done = clean.run(text, answer.before)
                    came = _came(clean, answer, row, done)
                    cells.append(Cell(answer, row, came, done, text))
    return cells


def _came(clean: _Clean, answer: Answer, row: Row, done: Done) -> str:
    came = reply_table.judge(clean.of(answer), answer.before, done)
    if came is not Came.WRONG:
        return str(came.value)
    # Of several blocks some may have been taken, and the others asked for; or taken as they were written.
    is_meant = answer.file.endswith(row.meant_in) if row.meant_in else False
    parted = list(blocks(answer.parts))
    kinds = ["-cd" if is_meant or is_unknowable(row, answer, each) else "-c" for each in parted]
    for choice in itertools.product(*kinds):
        if ("-" in choice) != bool(done.problems):
            continue
        text = reply_table.to_the_letter(_chosen(parted, row, choice))
        made = clean.run(text, answer.before)
        if (made.files, _words(made)) == (done.files, _words(done)):
            told = "as written" if is_meant else "can't be known"
            return told if "d" in choice else "asked again"
    return str(came.value)


def _words(done: Done) -> list[tuple[str, ...]]:
    return [tuple(word.strip("\n") for word in act) for act in done.acts]


def blocks(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Yield the parts of each block: its tag, its body and its end."""
    block: list[Part] = []
    for part in parts:
        block = [part] if part[0] == "tag" else [*block, part]
        if part[0] == "close":
            yield block


def _chosen(parted: Iterable[list[Part]], row: Row, choice: Sequence[str]) -> str:
    """Return an answer with some of its blocks: clean, with the damage in their body, or not at all."""
    out: list[str] = []
    for block, kind in zip(parted, choice, strict=True):
        body = block[1:-1]
        made: str = row.damage(body) if kind == "d" else _joined(body)
        out += [] if kind == "-" else [f"{block[0][1]}\n{made}{block[-1][1]}\n"]
    return "".join(out)


def counts(cells: Iterable[Cell]) -> Counter[str]:
    return Counter(cell.came for cell in cells)


def share_right(cells: Iterable[Cell]) -> float:
    """Return how many are right of those whose text can still be known, of the damage that was seen."""
    told = (cell.came for cell in cells if not (cell.row.lossy or cell.row.unseen))
    found = [came for came in told if came not in ("as written", "can't be known")]
    return found.count("right") / max(len(found), 1)


_KINDS = ("right", "as written", "can't be known", "asked again", "wrong", "silent")


def main() -> int:
    """Print the table; with -v each cell that is asked again or as written, too."""
    cells = run(ROWS, answers())
    out = sys.stdout.write
    for row in ROWS:
        count = counts(cell for cell in cells if cell.row is row)
        lossy = "~" if row.lossy else " "
        out(f"{lossy}{row.name:34}" + "".join(f"{count[kind] or '':>15}" for kind in _KINDS) + "\n")
    for style in STYLES:
        count = counts(cell for cell in cells if cell.answer.style == style)
        out(f" {style:34}" + "".join(f"{count[kind] or '':>15}" for kind in _KINDS) + "\n")
    out(f"{'':35}" + "".join(f"{kind:>15}" for kind in _KINDS) + "\n")
    count = counts(cells)
    out(f"{'all':35}" + "".join(f"{count[kind]:>15}" for kind in _KINDS) + "\n")
    out(f"right, where it can be known: {share_right(cells):.1%}\n")
    for cell in cells:
        if cell.came in ("wrong", "silent") or ("-v" in sys.argv and cell.came != "right"):
            reasons = "; ".join(f"{p.kind}: {p.reason[:200]}" for p in cell.done.problems)
            out(f"{cell.came}: {cell.row.name} / {cell.answer.style} {cell.answer.file}: {reasons}\n")
    return int(any(cell.came in ("wrong", "silent") for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
