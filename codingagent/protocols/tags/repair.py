"""Make an answer readable as a chat gave it: undo what is certain, name what is in doubt.

Each row of RULES is about the whole answer and is tried once, in order; the row "damaged tags" is a
table of its own (`block_repair`). An answer in which the strict grammar (`scanner`) finds every tag is clean,
and no byte of it is changed. Lines keep their numbers.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence

from codingagent.model import chat_damage, citations
from codingagent.model.chat_damage import Damage, Rule
from codingagent.model.patterns import lazy_pattern
from codingagent.protocols.tags import block_repair, rendered, scanner, tag_blocks, turns
from codingagent.protocols.tags.block_repair import RepairedAnswer

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
    mended = RepairedAnswer(tag_blocks.fold_line_ends(tag_blocks.fold_line_ends(text)))
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


RULES: tuple[Rule[Callable[[RepairedAnswer], _Said]], ...] = (
    Rule("thoughts", "thoughts before the answer were ignored{drafts}", _thoughts),
    Rule("drafts", "what is before the final channel was ignored{drafts}", _drafts),
    Rule("damaged tags", "", block_repair.repair),
    Rule("marked paths", "", _cited),
    Rule("encoded markers", "", _encoded_markers),
    Rule("words of the chat", "", turns.doubt),
    Rule("rendered", "", rendered.doubt),
)
