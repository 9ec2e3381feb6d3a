"""Join an answer that was cut short within a block with the next one that goes on from there.

Nothing of a cut block is ever executed by itself. It is joined with the next part only where the two
overlap in a text that can't be mistaken: the last line that arrived, sent once more.
"""

import re

from codingagent.editing import file_kinds, syntax_check
from codingagent.errors import OperationError
from codingagent.model import commands, paths, plain_text, results
from codingagent.model.patterns import lazy_pattern
from codingagent.protocols.tags import block_repair, scanner
from codingagent.protocols.tags.scanner import Block

# A shorter overlap ("}", "end") may be anywhere; then more lines are taken.
_FEWEST_CHARACTERS = 8
_MOST_LINES = 12
# One of so many first lines stays in a file that is sent again from its start.
_FIRST_LINES = 5
# What a model says before it goes on.
_LEAD_LINES = 30
# Another tag in the body: then a closing tag is missing, or the body is about these very tags.
_NAMES = "|".join(name.replace("_", r"\\?_") for name in commands.BY_TAG)
_OURS = lazy_pattern(rf"[\[［【]/?(?:{_NAMES})(?=[ \t\]\\］】*])")
# A few lines that say what follows, and the fence that opens right before it.
_LEAD = lazy_pattern(r"(?:[^`~\n][^\n]*\n|\n){0,6}[ \t]*(?:`{3,}|~{3,})\w*[ \t]*\n")
# A sentence: words at the margin, and nothing that only code has.
_SENTENCE = lazy_pattern(r"[^\s#/|+-][^\n]{0,300}?[:：.。…!！?？*_)）»”][ \t]*")
_CODE = lazy_pattern(r"[{}=;<>\[\]\\$]|\w\(|^\S+$(?<=[\x00-\x7f])|^[\w.-]+[ \t]*:[ \t]*\S")
# What may be before an answer's own text: its [REPLY …], and the fence round all of it.
_NO_TEXT = lazy_pattern(r"(?:[ \t]*+(?:(?:\[REPLY[^\]\n]*\]|`{3,}\w*|~{3,}\w*)[ \t]*)?\n)*")
_FENCE = lazy_pattern(r"[ \t]*(?:`{3,}|~{3,})[ \t]*")


def cut_of(mended: block_repair.RepairedAnswer, block: Block, *, is_last: bool) -> str:
    """Return the text of a block that was cut short, from its opening tag on; empty if it was not.

    A block that is only missing its closing tag was not: something of ours, or the end of a fence,
    is after it. One whose code block ends in it was.
    """
    text = mended.text
    if joint := mended.joints.get(block.line):
        return text[block.start : joint].rstrip("\n")
    if not is_last or not _may_be_cut(block) or not block.body:
        return ""
    rest = text[block.start :].rstrip("\n")
    before, _, last = rest.rpartition("\n")
    if last.strip() == "[END]" or _FENCE.fullmatch(last):
        return ""
    # Cut within its own closing tag: that is no line of the body.
    is_tag = len(last.strip()) > 1 and block.closing.startswith(last.strip())
    return (before if is_tag else rest).rstrip("\n")


def opening_of(text: str, block: Block) -> str:
    """Return the text of a block at whose end a fence is closed: it may have been cut there."""
    arrived, _, last = text[block.start :].rstrip("\n").rpartition("\n")
    return arrived.rstrip("\n") if _may_be_cut(block) and _FENCE.fullmatch(last) else ""


def _may_be_cut(block: Block) -> bool:
    return not (block.closed or block.fault or _OURS.search(block.body))


def named(block: Block) -> str:
    """Return the name of a block in words: its command and its path."""
    path = dict(block.attributes).get("path")
    return block.name if path is None else f"{block.name} '{paths.shown(path)}'"


def refusal(cut: str, block: Block) -> OperationError:
    """Return why a cut block is not used; its detail is the lines with which the model is to go on."""
    lines, again = cut.count("\n"), _overlap(cut.partition("\n")[2])
    counted = f"{lines} {plain_text.plural(lines, 'line')}"
    fact = f"{results.CUT_OFF} {named(block)}: {counted} arrived, nothing of it was used"
    advice = ". Send it again from its start"
    if again:
        advice = (
            ". It is kept: start with [REPLY …], repeat the lines below exactly, complete the last one, and"
            f" go on from there to {block.closing}"
        )
    return OperationError(fact, again, advice=advice)


def join(cut: str, text: str) -> str | None:
    """Return what `cut_of` gave and the next answer as one, or None if that does not go on from there."""
    text = scanner.fold_line_ends(text)
    (opening, _, body), head = cut.partition("\n"), _head(cut)
    # The opening tag once more, and not the block from its start: the model goes on within it.
    again = re.search(rf"^[ \t]*{re.escape(opening.strip())}[ \t]*\n", text, re.MULTILINE)
    if again is not None:
        if not body or text.startswith(body.partition("\n")[0], again.end()):
            return None
        text = text[: again.start()] + text[again.end() :]
    ends = head and re.search(rf"^[ \t]*{re.escape(head.closing)}[ \t]*$", text, re.MULTILINE)
    end = ends.start() if ends else len(text)
    # Another tag of ours before the end: it starts the block again, or is about something else.
    if _OURS.search(text, _first(text), end):
        return None
    # The fence round what goes on, below a few lines that say so, is the chat's.
    lead = _LEAD.match(text, _first(text), end)
    first = _first(text) if lead is None else lead.end()
    opened = text[:first].rstrip("\n").rpartition("\n")[2].strip()
    *_, last = text[:end].rstrip("\n").rpartition("\n")
    inner = text[first:end].rstrip("\n").splitlines()[:-1]
    has_others = any(map(_FENCE.fullmatch, inner)) or _has_fence(cut)
    if opened.startswith(("```", "~~~")) and _FENCE.fullmatch(last) and not has_others:
        start = text[:end].rstrip("\n").rfind("\n") + 1
        text, end = text[:start] + text[end:], start
    overlap = _overlap(body)
    arrived = cut[: len(cut) - len(overlap)]
    path = "" if head is None else dict(head.attributes).get("path", "")
    at = _place(text[:end], overlap, arrived, path) if overlap else None
    # A fence in what was added, and none in what was there, may be the chat's.
    if at is None or (_has_fence(text[at:end]) and not _has_fence(cut)):
        return None
    # What was sent once more from further up is there already.
    first = _first(text)
    start = first if text[first:at].strip() else at
    return f"{text[:start]}{arrived}{text[at:]}"


def whole_again(earlier: str, cut: str, text: str) -> str | None:
    """Return an answer that was cut short and came again whole, from the block on that was cut.

    What is before that block was done when the answer came first. None if it is not that answer.
    """
    first = scanner.fold_line_ends(earlier).strip()
    before, _, last = first.rpartition("\n")
    # A chat closes the fence that was open where the answer stopped.
    first = before.rstrip() if _FENCE.fullmatch(last) else first
    again = scanner.fold_line_ends(text)
    start = len(again) - len(again.lstrip())
    at = first.rfind(cut.rstrip())
    # What follows a cut between two messages is of the second one.
    if at < 0 or not again.startswith(first[: at + len(cut.rstrip())], start):
        return None
    before = again[: start + at]
    return "\n" * before.count("\n") + again[start + at :]


SecondHalf = tuple[Block, int, bool]
"""A block that an answer closes and does not open, without its body; the line; whether it begins there."""


def second_half(cut: str, text: str) -> SecondHalf | None:
    """Return where a text closes the block that was cut, without having opened it; None if nowhere.

    A file that is opened once more, and of whose first lines none had arrived as such, is a second half too.
    """
    head = _head(cut)
    if head is None:
        return None
    text = scanner.fold_line_ends(text)
    blocks = scanner.scan_lines(text).blocks
    closing = re.escape(head.closing[1:-1]).replace("_", r"\\?_")
    arrived = head._replace(body=cut.partition("\n")[2])
    for block in blocks:
        if is_rest(arrived, block):
            return head, block.line, True
    line = rf"^[ \t>*_`]*\\?\[{closing}\\?\][ \t*_`]*$"
    for found in re.finditer(line, text, re.MULTILINE):
        at = found.start()
        if any(block.name == head.name and block.start < at for block in blocks):
            return None
        if not any(block.start <= at < block.end for block in blocks):
            return head, text.count("\n", 0, at) + 1, False
    return None


def is_rest(cut: Block, block: Block) -> bool:
    """Return whether a file that was cut is opened once more with none of the lines that it began with."""
    arrived = _first_lines(cut.body)
    is_same = cut.name == "CREATE_FILE" and block[:2] == cut[:2]
    return is_same and bool(arrived) and not arrived & _first_lines(block.body)


def _first_lines(body: str) -> set[str]:
    return {line.strip() for line in list(filter(str.strip, body.split("\n")))[:_FIRST_LINES]}


def is_about(cut: str, name: str) -> bool:
    """Return whether a command of this name may be the block that was cut, begun again."""
    head = _head(cut)
    return head is not None and head.name == name


def _head(cut: str) -> Block | None:
    """Return the block that was cut, without its body."""
    return next(iter(scanner.scan_lines(cut.partition("\n")[0] + "\n").blocks), None)


def _first(text: str) -> int:
    lead = _NO_TEXT.match(text)
    return lead.end() if lead else 0


def _is_said(before: str, arrived: str) -> bool:
    """Return whether a few lines can only be what a model says before it goes on, in any language."""
    lines = [line for line in before.split("\n") if line.strip()]
    known = arrived.split("\n")
    return 0 < len(lines) < 4 and all(is_sentence(line) and line not in known for line in lines)


def is_sentence(line: str) -> bool:
    """Return whether a line is words at the margin that end as a sentence does, and no code."""
    return _SENTENCE.fullmatch(line) is not None and _CODE.search(line) is None


def _has_fence(text: str) -> bool:
    return any(map(_FENCE.fullmatch, text.splitlines()))


def _overlap(body: str) -> str:
    """Return the end of what arrived, from a line's start, that is at no other place in it."""
    at = len(body)
    for _ in range(_MOST_LINES):
        at = body.rfind("\n", 0, max(at - 1, 0)) + 1
        lines = body[at:]
        is_long = len("".join(lines.split())) >= _FEWEST_CHARACTERS
        if is_long and f"\n{body}".find(f"\n{lines}") == at:
            return lines
        if at == 0:
            break
    return ""


def _place(text: str, overlap: str, arrived: str, path: str) -> int | None:
    """Return where the overlap is: at the very beginning, or after what had arrived before it too.

    Or after a sentence, if such a file has none. Anywhere else it may be a line that only reads the
    same, and what is before it would be lost.
    """
    first = _first(text)
    for found in re.finditer(rf"^{re.escape(overlap)}", text, re.MULTILINE):
        before = text[first : found.start()]
        if not before.strip() or _LEAD.fullmatch(before) or arrived.endswith(before):
            return found.start()
        # In a text for people one line may be there twice, each time after such a sentence.
        is_sure = "\n" in overlap or not file_kinds.is_prose(path)
        # Several lines of the end may be there once more, behind the sentence.
        lines = before.splitlines(keepends=True)
        tail = range(max(len(lines) - _MOST_LINES, 0), len(lines))
        ends = (n for n in tail if arrived.endswith("\n" + "".join(lines[n:])))
        if is_sure and _is_said("".join(lines[: next(ends, None)]), arrived):
            whole = f"{arrived}{text[found.start() :]}".partition("\n")[2]
            direct = f"{arrived}{overlap}\n{text[first:]}".partition("\n")[2]
            if syntax_check.parses(path, whole) is True or syntax_check.parses(path, direct) is not True:
                return found.start()
        if text.count("\n", 0, found.start()) > _LEAD_LINES:
            return None
    return None
