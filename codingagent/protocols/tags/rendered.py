"""Proof that a chat has rendered an answer: in its bodies is what no author writes, and a page makes of text.

A page changes all text of one kind in one way. What one body shows, the others may have lost without a
trace: so each body of such an answer is asked for again, but those in a code block that show nothing.
"""

import re
from collections import Counter
from itertools import pairwise

from codingagent.editing import file_kinds, syntax_check
from codingagent.model.chat_damage import Damage
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import blanks
from codingagent.protocols.tags.block_repair import RepairedAnswer
from codingagent.protocols.tags.tag_blocks import Block
from codingagent.protocols.tags.turns import path_of

_CHANGING = ("CREATE_FILE", "EDIT_FILE", "DELETE_FILE", "MOVE_FILE", "RUN_COMMAND")
_FEWEST_LINES = 8
_LINE_CHARACTERS = 300
# What opens a level, in most languages, and what is as deep as its opening.
_OPENS = lazy_pattern(r"(?!namespace|extern).*(?:[{(\[]|\b(?:do|then|case .* in)|(?<!case)(?<!\)):)$")
_CLOSES = lazy_pattern(r"[})\]]|- |(?:done|fi|esac|end|else)\b|#|//|\*\)")
_BLOCK = lazy_pattern(r"[ \t]*(?:class|def|if|for|while|with|try|else)\b.*:$")
_JOINED = lazy_pattern(r"\[[^\n\]]*\] [^\n]* \[/\w+\][ \t]*\Z")
_TYPESET = lazy_pattern("[\U0001d400-\U0001d7ff]")
# Ends of levels in a script.
_SHELL_END = lazy_pattern(r"(?:done|fi|esac)\b")
_LOOP = lazy_pattern(r"\bfor (\w+) in\b")
# A page writes `>` so, and it opens no quote then; `$$` that a template has halved stands for nothing.
_QUOTE_MARK = lazy_pattern(r"^(?:&gt; ?)+\S", re.MULTILINE)
_HALVED = lazy_pattern(r"^\$\n(?:.*\n)*?\$$", re.MULTILINE)
_BLANKS = lazy_pattern(r"\n((?:[ \t]*+\n)++)(.?)")
# A line that has a blank one before it, and what it then follows.
_DEFINES = lazy_pattern(
    r"@\w|(?:(?:export|default|async|pub|public|private|static|abstract) )*"
    r"(?:def|class|func|function|fn|type|interface|struct|impl|enum) "
)
_TARGET = lazy_pattern(r"[.\w-]+:(?!=)")
_ITEM = lazy_pattern(r"(?:[-*+]|\d+[.)]) ")
_ENDS_PART = lazy_pattern(r"[ \t}]|(?:import|from|use|#include|package) ")
_SEARCH = lazy_pattern(r"^[ \t]*<{3,}[ \t]*SEARCH\b", re.MULTILINE)
_REST = (
    lazy_pattern(r"^[ \t]*={5,}", re.MULTILINE),
    lazy_pattern(r"^[ \t]*>{5,}[ \t]*REPLACE\b", re.MULTILINE),
)
_ADVICE = '; send it all again in one code block of four backticks; with until="TOKEN" what is intended so'


def doubt(mended: RepairedAnswer) -> None:
    """Have the bodies of an answer asked for again if one of them proves that it was rendered."""
    blocks = [b for b in mended.scan.blocks if b.closed and b.name in _CHANGING and not b.fault]
    fenced = mended.fenced
    proofs = {b.line: why for b in blocks if (why := _proof(b, in_code=b.start in fenced))}
    for block in blocks:
        # A line end beside a tag that a page made a blank of.
        is_joined = block.body[-2:-1] == " " and _JOINED.match(mended.text, block.start, block.end)
        if is_joined and block.name in ("CREATE_FILE", "EDIT_FILE") and not _is_meant(block):
            proofs[block.line] = "its lines are joined into one"
        said = mended.notes_of.get(block.line, ())
        if block.body and file_kinds.is_prose(path_of(block)) and any(Damage.QUOTES.value in n for n in said):
            proofs.setdefault(block.line, "its tag has typographic quotes")
    bodies = [block for block in blocks if block.body and not _is_meant(block)]
    if bodies and not proofs and _is_doubled(mended.text, bodies):
        proofs = dict.fromkeys((block.line for block in bodies), "its blank lines are doubled")
    if not proofs:
        return
    line, why = next(iter(proofs.items()))
    fact = (
        f"The chat has changed the text of this answer (line {line}: {why}): nothing of this block was used"
    )
    for block in blocks:
        if block.line in proofs or block.start not in fenced:
            mended.doubts.setdefault(block.line, (fact, _ADVICE))


def _is_meant(block: Block) -> bool:
    return not dict(block.attributes).keys().isdisjoint(("until", "encoding", "unchecked"))


def _proof(block: Block, *, in_code: bool) -> str:
    """Return what in a body no author has written; empty: nothing."""
    path = path_of(block)
    if not block.body or _is_meant(block):
        return ""
    if _is_halved(block.body, path):
        return "a $ stands alone where $$ belongs"
    if block.name == "EDIT_FILE":
        is_torn = _SEARCH.search(block.body) and not all(each.search(block.body) for each in _REST)
        return "the markers of its edit are gone" if is_torn and not in_code else ""
    lines = block.body.removesuffix("\n").split("\n")
    words = [line for line in lines if line.strip()]
    # In a code block all of it goes, or none.
    is_kept = in_code and any(map(blanks, words))
    if not (is_kept or file_kinds.is_prose(path)) and _is_flat(words, path):
        return "its indentation is gone"
    if _is_markdown(path) and _QUOTE_MARK.search(block.body):
        return "its quote marks are HTML entities"
    if in_code:
        return ""
    is_script = block.name == "RUN_COMMAND" and "<<" in block.body
    is_doubtful = is_script or (file_kinds.is_python(path) and syntax_check.fault_in(path, block.body))
    if is_doubtful and _is_shallow(words):
        return "its indentation is gone"
    if not file_kinds.is_prose(path) and _TYPESET.search(block.body):
        return "it holds letters of a typeset formula"
    if len(words) == len(lines) and _is_crowded(words, path):
        return "its blank lines are gone"
    if _is_markdown(path) and any("\t" in a.strip() and "\t" in b.strip() for a, b in pairwise(words)):
        return "its table has tabs in place of its marks"
    return ""


def _is_markdown(path: str) -> bool:
    return file_kinds.ending(path) in ("md", "markdown", "mdx")


def _is_halved(body: str, path: str) -> bool:
    """Return whether a formula, or a variable of a shell's loop in a recipe, has $ for $$."""
    if file_kinds.is_makefile(path) and (loop := _LOOP.search(body)) is not None:
        return re.search(rf"(?<!\$)\$\{{?{loop[1]}\b", body) is not None
    return (_is_markdown(path) or path.endswith(".tex")) and _HALVED.search(body) is not None


def _is_crowded(words: list[str], path: str) -> bool:
    """Return whether a part begins right behind another one, as nobody writes it throughout a file."""
    is_long = len(words) >= _FEWEST_LINES
    if _is_markdown(path):
        headings = sum(line.startswith("#") for line in words)
        has_end = any(_ITEM.match(a) and b[:1].isalpha() for a, b in pairwise(words))
        return headings > 0 if has_end else headings > 1 and is_long
    if not is_long or not file_kinds.is_program(path) or file_kinds.ending(path) in ("yml", "yaml"):
        return False
    defines = _TARGET if file_kinds.is_makefile(path) else _DEFINES
    return any(_ENDS_PART.match(a) and defines.match(b) for a, b in pairwise(words))


def _is_flat(words: list[str], path: str) -> bool:
    """Return whether two lines or more open a level, and no line behind such a one is deeper."""
    has_colons = file_kinds.ending(path) in ("yml", "yaml") or file_kinds.is_python(path)
    opened = 0
    for line, after in pairwise(words):
        is_read = len(line) < _LINE_CHARACTERS and (has_colons or not line.endswith(":"))
        if is_read and _OPENS.match(line.rstrip()):
            if len(blanks(after)) > len(blanks(line)):
                return False
            opened += not _CLOSES.match(after.lstrip())
    return opened > 1


def _is_shallow(words: list[str]) -> bool:
    """Return whether a statement of Python or of a shell has a block, and nothing in it is deeper."""
    if not any(map(blanks, words)) and any(map(_SHELL_END.match, words)):
        return True
    return any(_BLOCK.match(a) and blanks(b) <= blanks(a) for a, b in pairwise(words))


def _is_doubled(text: str, blocks: list[Block]) -> bool:
    """Return whether all blank lines of an answer, or of its bodies, are in twos.

    Two before a line of Python that is not indented say nothing.
    """
    found = [(m[1].count("\n"), m[2], path_of(b)) for b in blocks for m in _BLANKS.finditer(b.body)]
    pythons = sum(n == 2 and not behind.isspace() and file_kinds.is_python(path) for n, behind, path in found)
    # A text for people may have its parts so; nobody writes Markdown so.
    spared = Counter(n for n, _, path in found if file_kinds.is_prose(path) and not _is_markdown(path))
    bodies = Counter(count for count, *_ in found) - spared
    whole = Counter(match[1].count("\n") for match in _BLANKS.finditer(text.strip())) - spared
    return any(
        runs.total() > max(1, pythons) and not any(count % 2 for count in runs) for runs in (whole, bodies)
    )
