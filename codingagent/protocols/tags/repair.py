"""Make an answer readable as a chat gave it: undo what is certain, name what is in doubt.

Each row of RULES is about the whole answer and is tried once, in order; the row "damaged tags" is a
table of its own (`block_repair`). An answer in which the strict grammar (`scanner`) finds every tag is clean,
and no byte of it is changed. Lines keep their numbers.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from codingagent.editing import file_kinds, syntax_check
from codingagent.model import chat_damage, citations
from codingagent.model.chat_damage import Damage, Rule
from codingagent.model.patterns import lazy_pattern, sections
from codingagent.model.plain_text import blanks, one_line
from codingagent.protocols.tags import block_repair, scanner
from codingagent.protocols.tags.block_repair import RepairedAnswer
from codingagent.protocols.tags.scanner import Block

_THOUGHT = lazy_pattern(
    r"[<◁\[;](/?)((?<=/)details|details(?=[^<]*<summary>[^<]*(?:think|thought|reason))"
    r"|[a-z:_]{0,20}(?:think|thought|reason|reflect|scratch|analysis)[a-z]{0,9})"
    r"(?: [^<>\n]{0,99}=[^<>\n]{0,99}|\\)?(?:[>▷\]]|&gt;)",
    re.IGNORECASE,
)
# What ends a draft, all of it before: the final channel of a model that writes several, or its last thought.
_FINAL = lazy_pattern(
    r"(?:<\|start\|>assistant)?<\|channel\|?>[ \t]*final\b[^\n<\[]*(?:<\|message\|?>)?"
    r"|(?i:<\|END_(?:OF_)?(?:THINKING|THOUGHT)\|>)|<unused95>|<channel\|>|^assistantfinal(?![a-z])"
    r"|^(?:\.{3}|…) ?done thinking\.?$",
    re.MULTILINE,
)
_Said = Mapping[str, object] | None
"""The values in the note of a rule that was applied; None if it was not."""


def read(text: str) -> RepairedAnswer:
    """Find the blocks of an answer, also where a chat has damaged the tags. Never raises.

    An answer whose tags are right is read as it came, but for line ends and a byte-order mark.
    """
    text = text.lstrip("\ufeff")
    # Twice, because some programs write "\r\r\n".
    mended = RepairedAnswer(scanner.fold_line_ends(scanner.fold_line_ends(text)))
    for rule in RULES:
        if (said := rule.run(mended)) is not None and rule.said:
            mended.notes.append(rule.said.format(**said))
    return mended


def _thoughts(mended: RepairedAnswer) -> _Said:
    """Blank what is between the marks of thoughts, and all before a lone `</think>`, outside of blocks.

    A model may think again between its blocks. Marks within a sentence are only spoken of.
    """
    text, blocks = mended.text, mended.scan.blocks
    # The first word that is not a fence, a label or a byte-order mark.
    before = re.match(r"(?:[\s\ufeff\\]++|&lt(?=;)|`{3,}[a-z]*\n|(?:plaintext|text|Copy code)\n)*+", text)
    start = before.end() if before else 0
    header = mended.header_at if mended.header_at >= 0 else len(text)
    parts: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for mark in _THOUGHT.finditer(text):
        is_first = opened is not None and opened.start() == start
        end = parts[-1][1] if parts else 0
        at = bisect_right(blocks, mark.start(), key=lambda block: block.start) - 1
        is_inside = at >= 0 and end <= blocks[at].start and mark.start() < blocks[at].end
        is_text = is_inside and not is_first
        if is_text or (opened is not None and (mark[2][:5] != opened[2][:5] or not mark[1])):
            continue
        begins = not text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()].strip(" \t\\&lt")
        if opened is not None:
            parts.append((opened.start(), mark.end()))
            opened = None
        elif not mark[1]:
            opened = mark if begins or mark.start() == start else None
        elif "think" in mark[2] and mark.start() < header:
            parts = [(start, mark.end())] if begins or text[mark.end() :][:1] in "\n[" else parts
    is_all = opened is not None and opened[2] in ("think", "thinking") and opened[0][0] != "["
    if is_all and opened is not None and opened.start() == start:
        parts.append((start, len(text)))
    return _blanked(mended, parts)


def _drafts(mended: RepairedAnswer) -> _Said:
    """Blank all before the last mark of a final channel: blocks in there are a draft."""
    marks = (mark for part in mended.scan.around for mark in _FINAL.finditer(mended.text, *part))
    return _blanked(mended, [(0, mark.end()) for mark in marks][-1:])


def _blanked(mended: RepairedAnswer, parts: Sequence[tuple[int, int]]) -> _Said:
    """Blank parts of an answer, and say how many blocks were in them."""
    if not parts:
        return None
    starts = [block.start for block in mended.scan.blocks]
    drafts = sum(bisect_left(starts, end) - bisect_left(starts, at) for at, end in parts)
    mended.blank(*parts)
    return {"drafts": f", with {drafts} blocks in it that were not executed" if drafts else ""}


def _cited(mended: RepairedAnswer) -> None:
    """Keep in mind which tags had citation marks beside them or in a value: bodies may have others."""
    for block in mended.scan.blocks:
        is_cited = any(citations.without(value) != value for _, value in block.attributes)
        if is_cited or scanner.CITED in block.notes:
            mended.ways.setdefault(Damage.CITATIONS, block.line)


def _encoded_markers(mended: RepairedAnswer) -> None:
    """Tags hold no character that HTML needs encoded but quotes, so the markers show what they can't."""
    edits = (b for b in mended.scan.blocks if b.name == "EDIT_FILE" and not b.is_doubtful)
    plain = (block.body for block in edits if "until" not in dict(block.attributes))
    if any(map(chat_damage.has_encoded_marker, plain)):
        mended.ways[Damage.ANGLES] = 1


# --- words of the chat --------------------------------------------------------------------------------
# Two messages that are copied as one have the words of the chat between them, and a block that was cut in
# the first has them in its body. What is before the `[REPLY …]` line may be a draft. Such a block is asked
# for again; `until` says that a body is meant.
_WORDS = {name: "|".join(map(str.strip, lines.splitlines())) for name, lines in sections(__file__).items()}
_WORDS["turns"] = _WORDS["turns"].replace("{model}", f"(?:{_WORDS['model']})")
# Marks of a heading or of emphasis, or a picture, before a label; and what ends one.
_MARKS, _LABEL_END = r"(?:[*_>#]|[^\x00-\u2fff]){0,6}[ \t]*", r"[ \t]*[:：]?[*_ \t]*"
_ANY_CASE = re.IGNORECASE | re.MULTILINE
# In small letters an expression sees at once that a line begins as none of its words. No marker is one.
_LOW = r"(?![\s=]|<{7}|>{7})"
PERSON = lazy_pattern(rf"^(?=\S){_MARKS}(?:you said|{_WORDS['person']}){_LABEL_END}$", _ANY_CASE)
"""The label of a turn of the person, alone on its line."""
_TURN = lazy_pattern(rf"^{_LOW}{_MARKS}(?:{_WORDS['turns']}){_LABEL_END}$", re.MULTILINE)
_GO_ON = lazy_pattern(
    rf"^{_LOW}(?:(?:{_MARKS}(?:{_WORDS['person']}){_LABEL_END}|\[inst\])\s*)?"
    rf"[*_>]{{0,3}}(?:please )?(?:{_WORDS['go on']})(?: please)?"
    r"[.!…。！*_ \t]*(?:<[|｜]\w+[|｜]>|\[/inst\])?[ \t]*$",
    re.MULTILINE,
)
_RESUMES, _THE_REST = (
    lazy_pattern(rf"^{_LOW}[(\[*_]{{0,3}}(?:{_WORDS[each]})[^\n]{{0,80}}[:：….)\]*_][ \t]*$", re.MULTILINE)
    for each in ("resumes", "rest")
)
_TWO_TURNS = lazy_pattern(
    rf"^{_LOW}{_MARKS}(?:{_WORDS['person']}){_LABEL_END}\n+(?:[^\s-][^\n]*\n+){{1,3}}?"
    rf"{_MARKS}(?:{_WORDS['model']})(?: [\w. -]{{1,20}})?{_LABEL_END}$",
    re.MULTILINE,
)
OPTION = lazy_pattern(
    rf"^[^\w\n]{{0,9}}(?:{_WORDS['options']})[^\w\n]{{0,3}}(?:{_WORDS['second']})\b", _ANY_CASE
)
"""The heading of the second of several ways, of which the person may be meant to choose one."""
_END_CHARACTERS = 400
# How calls of tools and turns of a chat end.
_SPECIAL = r"<[|｜][\w▁ -]{1,30}[|｜]>|</?(?:end|start)_of_turn>|<eos>|\[/INST\]"
_LEAKED = lazy_pattern(
    rf"^(?:[ \t]*(?:</(?:[a-z]+:)?(?:{_WORDS['elements']})>|{_SPECIAL})[ \t`]*\n)+(?:>{{3,}} ?REPLACE\n)?\Z",
    _ANY_CASE,
)
_ELEMENT = lazy_pattern(rf"(?:(?:</[\w:.-]+>|{_SPECIAL})[ \t`]*\n)+(?:>{{3,}} ?REPLACE\n)?\Z", re.IGNORECASE)
_ELEMENT_NAME = lazy_pattern(r"</([\w:.-]+)>")


def _words_of_the_chat(mended: RepairedAnswer) -> None:
    """Have blocks asked for again that hold words of the chat, or may be a draft."""
    fenced, text, blocks = mended.fenced, mended.text, mended.scan.blocks
    header = mended.header_at
    is_behind = any(block.start > header for block in blocks)
    for block in blocks:
        is_meant = "until" in dict(block.attributes) or not block.body
        if is_behind and block.start < header and block.name not in ("MESSAGE", "READ_FILE"):
            fact = "It is before the [REPLY] line, so it may be a draft: nothing of it was used"
            how = " if it is none"
        elif is_meant:
            continue
        elif (end := _end_of_fence(block, fenced.get(block.start, ""))) or _has_turn(block):
            if end:
                mended.joints[block.line] = text.find("\n", block.start) + 1 + end
            fact = "Two messages were copied as one, within this block"
            how = ', whole, in one message, or with until="TOKEN" if it is intended'
        elif leaked := _leaked(block):
            fact = f"The body ends with {one_line(leaked, 60)}, which is no part of it"
            how = ' without it, or with until="TOKEN" if it is intended'
        else:
            continue
        mended.doubts.setdefault(block.line, (fact, f"; send this block again{how}"))


def _end_of_fence(block: Block, fence: str) -> int:
    """Return where the code block of a body ends in it; 0: nowhere."""
    # A chat closes the fence that is open where an answer stops; that is no part of the body either.
    if not fence or (len(fence) == len("```") and file_kinds.is_prose(_path_of(block))):
        return 0
    close = re.search(rf"^{fence}{fence[0]}*[ \t]*$(?=\s*\S)", block.body, re.MULTILINE)
    return 0 if close is None else close.start()


def _has_turn(block: Block) -> bool:
    """Return whether the next turn of a chat begins in a body."""
    path, body = _path_of(block), block.body
    small = body.lower()
    if any(each.search(small) for each in (_TURN, _GO_ON, _RESUMES)):
        return True
    found = next(filter(None, (each.search(small) for each in (_THE_REST, _TWO_TURNS))), None)
    if found is None or not file_kinds.is_program(path):
        return False
    # A comment may say so.
    return small.count("\n", 0, found.start()) not in file_kinds.lines_of_text(body.split("\n"), path)


def _leaked(block: Block) -> str:
    """Return the end of another syntax at the end of a body, which opens nowhere in it; empty: none."""
    path, body = _path_of(block), block.body
    # A page has many elements of its own, and a part of one may end with any of them.
    has_own = not file_kinds.is_program(path) or file_kinds.is_markup(path)
    has_own |= file_kinds.ending(path) in ("js", "ts", "mjs", "mts")
    # The last lines alone: each of thousands may begin such an end.
    last = body.rfind("\n", 0, max(len(body) - _END_CHARACTERS, 0)) + 1
    found = (_LEAKED if has_own else _ELEMENT).search(body, last)
    if found is None or any(f"<{name}" in body for name in _ELEMENT_NAME.findall(found[0])):
        return ""
    leaked = found[0].partition(">>>")[0].strip()
    return leaked if body.count(leaked) == 1 else ""


# --- what a chat has rendered -------------------------------------------------------------------------
# A page changes all text of one kind in one way. What one body shows, the others may have lost without a
# trace: so each body of such an answer is asked for again, but those in a code block that show nothing.
_CHANGING = ("CREATE_FILE", "EDIT_FILE", "DELETE_FILE", "MOVE_FILE", "RUN_COMMAND")
_FEWEST_LINES = 8
_LINE_CHARACTERS = 300
# What opens a level, in most languages, and what is as deep as its opening.
_OPENS = lazy_pattern(r"(?!namespace|extern).*(?:[{(\[]|\b(?:do|then|case .* in)|(?<!case)(?<!\)):)$")
_CLOSES = lazy_pattern(r"[})\]]|- |(?:done|fi|esac|end|else)\b|#|//|\*\)")
_BLOCK = lazy_pattern(r"[ \t]*(?:class|def|if|for|while|with|try|else)\b.*:$")
_JOINED = lazy_pattern(r"\[[^\n\]]*\] [^\n]* \[/\w+\][ \t]*\Z")
# Ends of levels in a script.
_SHELL_END = lazy_pattern(r"(?:done|fi|esac)\b")
_LOOP = lazy_pattern(r"\bfor (\w+) in\b")
# A page writes `>` so, and it opens no quote then; `$$` that a template has halved stands for nothing.
_QUOTE_MARK = lazy_pattern(r"^(?:&gt; ?)+\S", re.MULTILINE)
_HALVED = lazy_pattern(r"^\$\n(?:.*\n)*?\$$", re.MULTILINE)
_BLANK_LINES = lazy_pattern(r"\n((?:[ \t]*+\n)++)(.?)")
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


def _rendered(mended: RepairedAnswer) -> None:
    """Have the bodies of an answer asked for again if one of them proves that it was rendered."""
    blocks = [b for b in mended.scan.blocks if b.closed and b.name in _CHANGING and not b.fault]
    fenced = mended.fenced
    proofs = {b.line: why for b in blocks if (why := _proof(b, in_code=b.start in fenced))}
    for block in blocks:
        # A line end beside a tag that a page made a blank of.
        is_joined = block.body[-2:-1] == " " and _JOINED.match(mended.text, block.start, block.end)
        if is_joined and block.name in ("CREATE_FILE", "EDIT_FILE") and not _is_meant(block):
            proofs[block.line] = "its lines are joined into one"
        is_quoted = any(Damage.QUOTES.value in note for note in mended.notes_of.get(block.line, ()))
        if is_quoted and block.body and file_kinds.is_prose(_path_of(block)):
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


def _path_of(block: Block) -> str:
    return "command.sh" if block.name == "RUN_COMMAND" else dict(block.attributes).get("path", "")


def _is_meant(block: Block) -> bool:
    return not dict(block.attributes).keys().isdisjoint(("until", "encoding", "unchecked"))


def _proof(block: Block, *, in_code: bool) -> str:
    """Return what in a body no author has written; empty: nothing."""
    path = _path_of(block)
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
    found = [(m[1].count("\n"), m[2], _path_of(b)) for b in blocks for m in _BLANK_LINES.finditer(b.body)]
    pythons = sum(n == 2 and not behind.isspace() and file_kinds.is_python(path) for n, behind, path in found)
    # A text for people may have its parts so; nobody writes Markdown so.
    spared = Counter(n for n, _, path in found if file_kinds.is_prose(path) and not _is_markdown(path))
    bodies = Counter(count for count, *_ in found) - spared
    whole = Counter(match[1].count("\n") for match in _BLANK_LINES.finditer(text.strip())) - spared
    return any(
        runs.total() > max(1, pythons) and not any(count % 2 for count in runs) for runs in (whole, bodies)
    )


RULES: tuple[Rule[Callable[[RepairedAnswer], _Said]], ...] = (
    Rule("thoughts", "thoughts before the answer were ignored{drafts}", _thoughts),
    Rule("drafts", "what is before the final channel was ignored{drafts}", _drafts),
    Rule("damaged tags", "", block_repair.repair),
    Rule("marked paths", "", _cited),
    Rule("encoded markers", "", _encoded_markers),
    Rule("words of the chat", "", _words_of_the_chat),
    Rule("rendered", "", _rendered),
)
