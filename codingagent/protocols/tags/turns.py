"""Find what belongs to the chat and not to the answer: turns, drafts, ends of other syntaxes.

Two messages that are copied as one have the words of the chat between them, and a block that was cut in
the first has them in its body. What is before the `[REPLY …]` line may be a draft. Nothing of this is mended:
the block is asked for again. `until` says that a body is meant.
"""

import re

from codingagent.editing import file_kinds
from codingagent.model.patterns import lazy_pattern, sections
from codingagent.model.plain_text import one_line
from codingagent.protocols.tags.block_repair import RepairedAnswer
from codingagent.protocols.tags.tag_blocks import Block

_WORDS = {name: "|".join(map(str.strip, lines.splitlines())) for name, lines in sections(__file__).items()}
_WORDS["turns"] = _WORDS["turns"].replace("{model}", f"(?:{_WORDS['model']})")
# Marks of a heading or of emphasis, or a picture, before a label; and what ends one.
_MARKS, _END = r"(?:[*_>#]|[^\x00-\u2fff]){0,6}[ \t]*", r"[ \t]*[:：]?[*_ \t]*"
_ANY_CASE = re.IGNORECASE | re.MULTILINE
# In small letters an expression sees at once that a line begins as none of its words. No marker is one.
_LOW = r"(?![\s=]|<{7}|>{7})"
PERSON = lazy_pattern(rf"^(?=\S){_MARKS}(?:you said|{_WORDS['person']}){_END}$", _ANY_CASE)
"""The label of a turn of the person, alone on its line."""
_TURN = lazy_pattern(rf"^{_LOW}{_MARKS}(?:{_WORDS['turns']}){_END}$", re.MULTILINE)
_GO_ON = lazy_pattern(
    rf"^{_LOW}(?:(?:{_MARKS}(?:{_WORDS['person']}){_END}|\[inst\])\s*)?"
    rf"[*_>]{{0,3}}(?:please )?(?:{_WORDS['go on']})(?: please)?"
    r"[.!…。！*_ \t]*(?:<[|｜]\w+[|｜]>|\[/inst\])?[ \t]*$",
    re.MULTILINE,
)
_RESUMES, _REST = (
    lazy_pattern(rf"^{_LOW}[(\[*_]{{0,3}}(?:{_WORDS[each]})[^\n]{{0,80}}[:：….)\]*_][ \t]*$", re.MULTILINE)
    for each in ("resumes", "rest")
)
_TWO_TURNS = lazy_pattern(
    rf"^{_LOW}{_MARKS}(?:{_WORDS['person']}){_END}\n+(?:[^\s-][^\n]*\n+){{1,3}}?"
    rf"{_MARKS}(?:{_WORDS['model']})(?: [\w. -]{{1,20}})?{_END}$",
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
_NAME = lazy_pattern(r"</([\w:.-]+)>")


def doubt(mended: RepairedAnswer) -> None:
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


def path_of(block: Block) -> str:
    return "command.sh" if block.name == "RUN_COMMAND" else dict(block.attributes).get("path", "")


def _end_of_fence(block: Block, fence: str) -> int:
    """Return where the code block of a body ends in it; 0: nowhere."""
    # A chat closes the fence that is open where an answer stops; that is no part of the body either.
    if not fence or (len(fence) == len("```") and file_kinds.is_prose(path_of(block))):
        return 0
    close = re.search(rf"^{fence}{fence[0]}*[ \t]*$(?=\s*\S)", block.body, re.MULTILINE)
    return 0 if close is None else close.start()


def _has_turn(block: Block) -> bool:
    """Return whether the next turn of a chat begins in a body."""
    path, body = path_of(block), block.body
    small = body.lower()
    if any(each.search(small) for each in (_TURN, _GO_ON, _RESUMES)):
        return True
    found = next(filter(None, (each.search(small) for each in (_REST, _TWO_TURNS))), None)
    if found is None or not file_kinds.is_program(path):
        return False
    # A comment may say so.
    return small.count("\n", 0, found.start()) not in file_kinds.lines_of_text(body.split("\n"), path)


def _leaked(block: Block) -> str:
    """Return the end of another syntax at the end of a body, which opens nowhere in it; empty: none."""
    path, body = path_of(block), block.body
    # A page has many elements of its own, and a part of one may end with any of them.
    has_own = not file_kinds.is_program(path) or file_kinds.is_markup(path)
    has_own |= file_kinds.ending(path) in ("js", "ts", "mjs", "mts")
    # The last lines alone: each of thousands may begin such an end.
    last = body.rfind("\n", 0, max(len(body) - _END_CHARACTERS, 0)) + 1
    found = (_LEAKED if has_own else _ELEMENT).search(body, last)
    if found is None or any(f"<{name}" in body for name in _NAME.findall(found[0])):
        return ""
    leaked = found[0].partition(">>>")[0].strip()
    return leaked if body.count(leaked) == 1 else ""
